//! The way from a function up to its root port, and the links on it.

use super::{Absent, Bdf, Fact, Function, PciSpeed, PortKind};
use crate::sysfs::{Sysfs, SysfsError, real_path};
use std::path::Path;

/// A function and the bridges above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PciPath {
    /// From the root port down to the function itself, which is the last. A function on the root bus (an on-chip
    /// controller, or one whose bridges a virtual machine hides) is alone.
    pub functions: Vec<Function>,
    /// The function whose domain this one lives in: Intel's VMD controller, which is a part of the processor and
    /// no link of its own.
    pub behind: Option<Bdf>,
}

/// One link: a port that faces down and what is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// The port above; `None` where it cannot be seen and only the function below tells of the link.
    pub upper: Option<Bdf>,
    /// The function below.
    pub lower: Bdf,
    /// Speed now. Where both ends say it, they must agree.
    pub speed: Fact<PciSpeed>,
    /// Lanes now.
    pub width_count: Fact<u8>,
    /// The most that its ends could do: the lesser of what they say, or what the only one says.
    pub max_speed: Fact<PciSpeed>,
    /// The most lanes that its ends could use. Whether the board wires that many, nobody says.
    pub max_width_count: Fact<u8>,
    /// The most that both ends could do: absent where only one says it, unless the link runs at that.
    pub both_max_speed: Option<PciSpeed>,
    /// The most lanes that both ends could use; absent likewise.
    pub both_max_width_count: Option<u8>,
}

impl Hop {
    /// Whether it runs slower or narrower than both its ends could; `None` where that cannot be told.
    #[must_use]
    pub fn is_degraded(&self) -> Option<bool> {
        let slower = below(&self.speed, self.both_max_speed);
        let narrower = below(&self.width_count, self.both_max_width_count);
        match (slower, narrower) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        }
    }

    /// Whether what is said of its most is the word of one end alone.
    #[must_use]
    pub const fn has_one_ends_word(&self) -> bool {
        (self.max_speed.is_ok() && self.both_max_speed.is_none())
            || (self.max_width_count.is_ok() && self.both_max_width_count.is_none())
    }
}

fn below<T: Copy + Ord>(now: &Fact<T>, most: Option<T>) -> Option<bool> {
    Some(*now.as_ref().ok()? < most?)
}

impl PciPath {
    /// Reads the function at this address and everything above it. A virtual function's path is that of its
    /// physical function.
    ///
    /// # Errors
    /// [`SysfsError::Read`] where there is no such function.
    pub fn read(sysfs: &Sysfs, bdf: Bdf) -> Result<Self, SysfsError> {
        let dir = real_path(&sysfs.sys("bus/pci/devices").join(bdf.to_string()))?;
        let own = Function::read(sysfs, bdf)?;
        let dir = match own.physical {
            Some(physical) => real_path(&sysfs.sys("bus/pci/devices").join(physical.to_string()))?,
            None => dir,
        };
        let mut functions = Vec::new();
        let mut above = dir.as_path();
        while let Some(bdf) = bdf_of(above) {
            functions.push(Function::at(sysfs, bdf, above.to_owned()));
            match above.parent() {
                Some(parent) => above = parent,
                None => break,
            }
        }
        functions.reverse();
        // `…/0000:00:0e.0/pci10000:e0/10000:e0:06.0/…`: VMD's host bridge lies in the folder of its function.
        let behind = above.parent().and_then(bdf_of);
        Ok(Self { functions, behind })
    }

    /// The function itself.
    #[must_use]
    pub fn device(&self) -> Option<&Function> {
        self.functions.last()
    }

    /// What the function at this place in [`Self::functions`] is. The configuration space says so to root; to
    /// others the order does: root port, then upstream and downstream ports of switches in turn.
    #[must_use]
    pub fn kind(&self, index: usize) -> Option<PortKind> {
        let function = self.functions.get(index)?;
        if let Ok(express) = &function.express {
            return Some(express.kind);
        }
        let is_conventional = matches!(function.express, Err(Absent::Lacking { .. }));
        Some(match (function.is_bridge(), index) {
            (true, _) if is_conventional => PortKind::Bridge,
            (true, 0) => PortKind::RootPort,
            (true, index) if index % 2 == 1 => PortKind::Upstream,
            (true, _) => PortKind::Downstream,
            (false, 0) if function.link.speed.is_err() => PortKind::RootIntegrated,
            (false, _) => PortKind::Endpoint,
        })
    }

    /// The links, from the root port's down. Inside a switch, from its upstream to its downstream port, is none.
    #[must_use]
    pub fn hops(&self) -> Vec<Hop> {
        let mut hops = Vec::new();
        for (index, lower) in self.functions.iter().enumerate() {
            let faces_down = |index| self.kind(index).is_some_and(PortKind::faces_down);
            let upper = index.checked_sub(1);
            if let Some(above) = upper.filter(|above| faces_down(*above)) {
                hops.push(hop(Some(&self.functions[above]), lower));
            } else if upper.is_none() && !faces_down(index) && lower.link.speed.is_ok() {
                hops.push(hop(None, lower));
            }
        }
        hops
    }
}

fn hop(upper: Option<&Function>, lower: &Function) -> Hop {
    let link = upper.map(|upper| &upper.link);
    let below = &lower.link;
    let speed = agreed(link.map(|link| &link.speed), &below.speed);
    let width_count = agreed(link.map(|link| &link.width_count), &below.width_count);
    let speeds = (link.map(|link| &link.max_speed), &below.max_speed);
    let widths = (
        link.map(|link| &link.max_width_count),
        &below.max_width_count,
    );
    Hop {
        upper: upper.map(|upper| upper.bdf),
        lower: lower.bdf,
        both_max_speed: of_both(speeds.0, speeds.1, &speed),
        both_max_width_count: of_both(widths.0, widths.1, &width_count),
        max_speed: lesser(speeds.0, speeds.1),
        max_width_count: lesser(widths.0, widths.1),
        speed,
        width_count,
    }
}

/// Both ends of one link see the same: what one does not know the other may.
fn agreed<T: Copy + PartialEq + ToString>(upper: Option<&Fact<T>>, lower: &Fact<T>) -> Fact<T> {
    match (upper, lower) {
        (Some(Ok(upper)), Ok(lower)) if upper != lower => Err(Absent::Disagree {
            upper: upper.to_string(),
            lower: lower.to_string(),
        }),
        (Some(Ok(upper)), Err(_)) => Ok(*upper),
        (_, lower) => lower.clone(),
    }
}

fn lesser<T: Copy + Ord>(upper: Option<&Fact<T>>, lower: &Fact<T>) -> Fact<T> {
    match (upper, lower) {
        (Some(Ok(upper)), Ok(lower)) => Ok(*upper.min(lower)),
        (Some(Ok(upper)), Err(_)) => Ok(*upper),
        (_, lower) => lower.clone(),
    }
}

/// The lesser of both. Where only one is known and the link runs at it, the other end can do it as well.
fn of_both<T: Copy + Ord>(upper: Option<&Fact<T>>, lower: &Fact<T>, now: &Fact<T>) -> Option<T> {
    match (upper.and_then(|upper| upper.as_ref().ok()), lower) {
        (Some(upper), Ok(lower)) => Some(*upper.min(lower)),
        (Some(one), Err(_)) | (None, Ok(one)) => {
            Some(*one).filter(|one| now.as_ref().is_ok_and(|now| now >= one))
        }
        (None, Err(_)) => None,
    }
}

fn bdf_of(dir: &Path) -> Option<Bdf> {
    Bdf::parse(dir.file_name()?.to_str()?)
}
