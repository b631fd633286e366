//! Every verdict five times true and five times nearly so, on simulated devices behind links of made machines:
//! rates, curves over depth and burnt time are measured, only the link is lent.

use crate::guard_tree::fixture;
use lanemark::ceiling::datasheet;
use lanemark::ceiling::evidence::{Members, Peer};
use lanemark::ceiling::host::{self, BurnPoint};
use lanemark::ceiling::plateau::{self, CurvePoint};
use lanemark::config::{BackendChoice, Job, StepPlan, plan};
use lanemark::reactor::Control;
use lanemark::record::{CounterDelta, LinkChange, Step, VerdictKind};
use lanemark::session::path::SeenPath;
use lanemark::session::{Opened, Probe, Proofs, Session, Setup, Silent, add_verdict};
use lanemark::sys::clock::MachineClock;
use lanemark::sys::cpu::AllowedCpus;
use lanemark::sysfs::Sysfs;
use std::sync::Arc;

/// The links that are lent: machine, node.
const P3700: (&str, &str) = ("p3700-gen2-slot.tree", "/dev/nvme0n1");
const SWITCHED: (&str, &str) = ("nvme-downgraded-hop.tree", "/dev/nvme1n1");
const SAS: (&str, &str) = ("sas-expander.tree", "/dev/sda");
const ON_CHIP: (&str, &str) = ("sata3-on-sata2.tree", "/dev/sda");
const VIRTUAL: (&str, &str) = ("lab-default.tree", "/dev/vda");

/// What is measured, and what it must come to.
#[derive(Clone)]
struct Case {
    link: (&'static str, &'static str),
    /// Rate of the device as a share of the link's ceiling; of 1 GB/s where none is known.
    share: f64,
    /// Reactor's own time per I/O.
    host_ns: u64,
    /// Whether latency, not the cap, makes the rate: it then rises with depth.
    rises: bool,
    /// Whether a curve and burns are measured at all.
    proves: bool,
    /// Keys of the step besides size and depth.
    keys: &'static str,
    lend: fn(&mut SeenPath),
    add: fn(&mut Proofs, &Step),
    want: VerdictKind,
}

impl Case {
    fn new(link: (&'static str, &'static str), share: f64, want: VerdictKind) -> Self {
        Self {
            link,
            share,
            host_ns: 0,
            rises: false,
            proves: true,
            keys: "rw: read",
            lend: |_| {},
            add: |_, _| {},
            want,
        }
    }
    fn with(mut self, lend: fn(&mut SeenPath)) -> Self {
        self.lend = lend;
        self
    }
    fn adding(mut self, add: fn(&mut Proofs, &Step)) -> Self {
        self.add = add;
        self
    }
    fn rising(mut self) -> Self {
        self.rises = true;
        self
    }
    fn unproven(mut self) -> Self {
        self.proves = false;
        self
    }
    fn costing(mut self, host_ns: u64) -> Self {
        self.host_ns = host_ns;
        self
    }
    fn keyed(mut self, keys: &'static str) -> Self {
        self.keys = keys;
        self
    }
}

const BLOCK_BYTES: u64 = 128 << 10;
const DEPTHS: [u32; 4] = [2, 8, 16, 32];

fn session() -> Session {
    let sysfs = Sysfs::host();
    Session {
        clock: MachineClock::new(&sysfs),
        allowed: AllowedCpus::of(&[0]),
        sysfs,
        control: Arc::new(Control::default()),
        tool_cost_ns: None,
    }
}

/// One run on the simulated device.
struct Bench {
    session: Session,
    opened: Opened,
    keys: &'static str,
    host_ns: u64,
}

impl Bench {
    fn new(case: &Case, bytes_per_s: f64) -> Self {
        // One long service at deepest depth, or a cap that a few in flight reach.
        let name = if case.rises {
            let latency_ns = f64::from(DEPTHS[3]) * BLOCK_BYTES as f64 * 1e9 / bytes_per_s;
            format!("sim:latency={}ns,parallelism=1024", latency_ns.round())
        } else {
            format!("sim:latency=10us,cap_bytes_per_s={}", bytes_per_s.round())
        };
        let mut setup = Setup {
            control: &Control::default(),
            observer: &mut Silent,
            dry_run: false,
        };
        let opened = Opened::open(&[&name], BackendChoice::Auto, &Sysfs::host(), &mut setup);
        Self {
            session: session(),
            opened: opened.unwrap(),
            keys: case.keys,
            host_ns: case.host_ns,
        }
    }

    fn plan(&self, depth: u32) -> StepPlan {
        let text = format!(
            "device: sim\nsteps:\n  - {{ {}, bs: 128k, iodepth: {depth}, runtime: 100ms, ramp_time: 20ms }}\n",
            self.keys
        );
        let job = Job::from_yaml(&text, "matrix.yaml").unwrap();
        plan(&job, &self.opened.facts(), 1).unwrap().steps.remove(0)
    }

    fn run(&self, depth: u32, burn_ns: u64) -> Step {
        let plan = self.plan(depth);
        let probe = Probe {
            plan: &plan,
            plan_json: serde_json::Value::Null,
            numbers: (1, 1),
            burn_ns: Some(burn_ns + self.host_ns),
            devices: None,
        };
        let found = self.session.probe(&self.opened, probe, &mut Silent);
        found.unwrap().0
    }

    fn proofs(&self) -> Proofs {
        let curve: Vec<CurvePoint> = DEPTHS
            .iter()
            .map(|depth| CurvePoint {
                depth_count: u64::from(*depth),
                rate: iops(&self.run(*depth, 0)),
            })
            .collect();
        let base = iops(&self.run(DEPTHS[3], 0));
        let burns: Vec<BurnPoint> = [0.25, 0.5, 1.0]
            .iter()
            .map(|part| {
                let burn_ns = (part * 1e9 / base).round();
                BurnPoint {
                    burn_ns,
                    iops: iops(&self.run(DEPTHS[3], burn_ns as u64)),
                }
            })
            .collect();
        Proofs {
            plateau: Some(plateau::judge(&curve)),
            host: host::judge(base, 1, &burns),
            host_iops: host::reachable_iops(base, 1, &burns),
            ..Proofs::default()
        }
    }
}

fn iops(step: &Step) -> f64 {
    [&step.read, &step.write]
        .into_iter()
        .flatten()
        .map(|d| d.iops)
        .sum()
}

fn lent(link: (&str, &str)) -> SeenPath {
    let tree = fixture(link.0);
    let mut path = SeenPath::of_name(&tree.sysfs(), link.1);
    if link == P3700 {
        path.promise(Some("INTEL SSDPEDMD016T4"), 1_600_321_314_816);
    }
    path
}

fn ceiling(path: &SeenPath) -> f64 {
    let index = path.record.narrowest_index;
    index.map_or(1e9, |index| {
        path.record.hops[index as usize]
            .read_ceiling
            .unwrap()
            .high_bytes_per_s
    })
}

fn verdict_of(case: &Case) -> (VerdictKind, String) {
    let mut path = lent(case.link);
    (case.lend)(&mut path);
    let bench = Bench::new(case, case.share * ceiling(&path));
    let mut step = bench.run(DEPTHS[3], 0);
    let mut proofs = if case.proves {
        bench.proofs()
    } else {
        Proofs::default()
    };
    (case.add)(&mut proofs, &step);
    add_verdict(&mut step, &bench.plan(DEPTHS[3]), &[path], &proofs);
    (step.verdict.kind, format!("{:?}, {proofs:?}", step.verdict))
}

fn check(cases: &[Case]) {
    let mut wrong = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let (kind, why) = verdict_of(case);
        if kind != case.want {
            wrong.push(format!("case {number}: {:?} wanted: {why}", case.want));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

use VerdictKind::*;

fn no_promise(path: &mut SeenPath) {
    path.drive = None;
}

fn changed(path: &mut SeenPath) {
    path.record.changes.push(LinkChange {
        at: "0000:00:03.0".to_owned(),
        before: "5 GT/s x4".to_owned(),
        after: "5 GT/s x2".to_owned(),
        at_s: 1.0,
    });
}

fn errors(path: &mut SeenPath) {
    path.record.counters.push(CounterDelta {
        at: "0000:01:00.0".to_owned(),
        counter: "aer correctable".to_owned(),
        grown_count: Some(3),
        is_unread: false,
    });
}

/// A drive that promises 1,550 MB/s.
fn es3000(path: &mut SeenPath) {
    let mut all = datasheet::drives().iter();
    path.drive = all.rfind(|drive| drive.name == "Huawei ES3000 V2 1.6 TB");
}

/// An HBA rated for 290,000 IOPS.
fn rated(path: &mut SeenPath) {
    let known = datasheet::controller(0x1000, 0x0072).unwrap();
    path.controller = Some((known, "0000:01:00.0".parse().unwrap()));
}

#[test]
fn link_bound_and_nearly_so() {
    check(&[
        Case::new(P3700, 0.91, LinkBound),
        Case::new(P3700, 1.0, LinkBound),
        Case::new(SWITCHED, 0.95, LinkBound),
        Case::new(SAS, 0.95, LinkBound),
        // Both ways at once carry 1 / 0.9 of it.
        Case::new(SWITCHED, 1.03, LinkBound).keyed("rw: rw, rwmixread: 90"),
        Case::new(P3700, 0.89, LinkLimitedLikely),
        Case::new(P3700, 0.95, LinkLimitedLikely).rising(),
        Case::new(P3700, 0.95, LinkLimitedLikely).unproven(),
        Case::new(P3700, 0.95, Undecided).with(changed),
        Case::new(ON_CHIP, 0.95, Undecided),
    ]);
}

#[test]
fn link_limited_likely_and_nearly_so() {
    check(&[
        Case::new(P3700, 0.76, LinkLimitedLikely),
        Case::new(SWITCHED, 0.80, LinkLimitedLikely),
        Case::new(SAS, 0.85, LinkLimitedLikely),
        Case::new(P3700, 0.89, LinkLimitedLikely).unproven(),
        Case::new(SWITCHED, 0.88, LinkLimitedLikely).rising(),
        Case::new(SWITCHED, 0.74, DeviceBound),
        Case::new(P3700, 0.91, LinkBound),
        Case::new(P3700, 0.85, DeviceBound).with(es3000),
        Case::new(ON_CHIP, 0.80, Undecided),
        Case::new(SWITCHED, 0.80, Undecided).keyed("rw: read, rate_iops: 100000"),
    ]);
}

#[test]
fn datasheet_unreachable_and_nearly_so() {
    check(&[
        Case::new(P3700, 0.10, DatasheetUnreachable).unproven(),
        Case::new(P3700, 0.30, DatasheetUnreachable).rising(),
        Case::new(P3700, 0.50, DatasheetUnreachable).unproven(),
        Case::new(P3700, 0.60, DatasheetUnreachable).rising(),
        Case::new(P3700, 0.74, DatasheetUnreachable).unproven(),
        Case::new(P3700, 0.50, DeviceBound),
        Case::new(P3700, 0.50, Undecided)
            .unproven()
            .with(no_promise),
        Case::new(P3700, 0.50, Undecided).unproven().with(es3000),
        Case::new(P3700, 0.76, LinkLimitedLikely).unproven(),
        Case::new(P3700, 0.50, Undecided)
            .unproven()
            .keyed("rw: write"),
    ]);
}

#[test]
fn device_bound_and_nearly_so() {
    check(&[
        Case::new(P3700, 0.10, DeviceBound),
        Case::new(SWITCHED, 0.50, DeviceBound),
        Case::new(SAS, 0.70, DeviceBound).with(rated),
        Case::new(P3700, 0.84, DeviceBound).with(es3000),
        Case::new(SWITCHED, 0.40, DeviceBound).keyed("rw: write"),
        Case::new(SWITCHED, 0.50, Undecided).rising(),
        // Nobody knows what the HBA can do.
        Case::new(SAS, 0.70, Undecided),
        Case::new(SWITCHED, 0.50, HostBound).costing(100_000),
        Case::new(SWITCHED, 0.76, LinkLimitedLikely),
        Case::new(ON_CHIP, 0.50, Undecided),
        Case::new(SWITCHED, 0.50, Undecided).with(errors),
    ]);
}

/// What the device did, and two others just as much, alone; all together no more than part of that.
fn members(proofs: &mut Proofs, step: &Step, together_ratio: f64) {
    let own = step.read.as_ref().map_or(0.0, |read| read.bytes_per_s);
    proofs.members = Some(Members {
        controller: Some("0000:01:00.0".to_owned()),
        alone_bytes_per_s: vec![own / together_ratio / 3.0; 3],
        together_bytes_per_s: own,
    });
}

#[test]
fn controller_bound_and_nearly_so() {
    check(&[
        Case::new(SAS, 0.60, ControllerBound).adding(|proofs, step| members(proofs, step, 0.40)),
        Case::new(SAS, 0.20, ControllerBound).adding(|proofs, step| members(proofs, step, 0.60)),
        Case::new(SAS, 0.74, ControllerBound).adding(|proofs, step| members(proofs, step, 0.84)),
        Case::new(SWITCHED, 0.50, ControllerBound)
            .adding(|proofs, step| members(proofs, step, 0.5)),
        Case::new(SAS, 0.50, ControllerBound)
            .keyed("rw: write")
            .adding(|proofs, _| {
                proofs.members = Some(Members {
                    controller: Some("0000:01:00.0".to_owned()),
                    alone_bytes_per_s: vec![2.0, 2.0],
                    together_bytes_per_s: 2.5,
                });
            }),
        Case::new(SAS, 0.60, Undecided).adding(|proofs, step| members(proofs, step, 0.90)),
        Case::new(SWITCHED, 0.60, DeviceBound).adding(|proofs, step| members(proofs, step, 0.98)),
        // Together far less than alone, and no controller to lay it to.
        Case::new(SWITCHED, 0.60, Undecided).adding(|proofs, step| {
            members(proofs, step, 0.5);
            proofs.members.as_mut().unwrap().controller = None;
        }),
        Case::new(SAS, 0.80, LinkLimitedLikely).adding(|proofs, step| members(proofs, step, 0.5)),
        Case::new(SAS, 0.60, Undecided)
            .rising()
            .adding(|proofs, step| members(proofs, step, 0.5)),
        Case::new(SAS, 0.60, DeviceBound).with(rated),
        Case::new(ON_CHIP, 0.60, Undecided).adding(|proofs, step| members(proofs, step, 0.5)),
    ]);
}

fn peers(proofs: &mut Proofs, media: [&str; 2], mb_per_s: [f64; 2]) {
    proofs.peers = media
        .iter()
        .zip(mb_per_s)
        .map(|(medium, mb)| Peer {
            name: format!("{medium} of {mb}"),
            medium: (*medium).to_owned(),
            bytes_per_s: mb * 1e6,
        })
        .collect();
}

const UNLIKE: [&str; 2] = ["rotating", "solid state"];

/// methods.md, 3: 122.7 against 112.5 MB/s are alike, 394.4 against 572.3 are not.
#[test]
fn platform_capped_and_nearly_so() {
    check(&[
        Case::new(VIRTUAL, 0.12, PlatformCapped).adding(|p, _| peers(p, UNLIKE, [122.7, 112.5])),
        Case::new(VIRTUAL, 0.12, PlatformCapped).adding(|p, _| peers(p, UNLIKE, [122.7, 122.5])),
        Case::new(VIRTUAL, 0.50, PlatformCapped).adding(|p, _| peers(p, UNLIKE, [500.0, 500.0])),
        Case::new(VIRTUAL, 0.20, PlatformCapped).adding(|p, _| peers(p, UNLIKE, [200.0, 210.0])),
        Case::new(VIRTUAL, 0.30, PlatformCapped).adding(|p, _| peers(p, UNLIKE, [300.0, 310.0])),
        // A disk and a cheap SSD on ports that show all: as fast by chance.
        Case::new(SWITCHED, 0.20, DeviceBound).adding(|p, _| peers(p, UNLIKE, [200.0, 210.0])),
        Case::new(VIRTUAL, 0.30, Undecided)
            .rising()
            .adding(|p, _| peers(p, UNLIKE, [300.0, 310.0])),
        Case::new(VIRTUAL, 0.50, Undecided).adding(|p, _| peers(p, UNLIKE, [394.4, 572.3])),
        Case::new(VIRTUAL, 0.12, Undecided)
            .adding(|p, _| peers(p, ["solid state"; 2], [122.7, 122.7])),
        Case::new(VIRTUAL, 0.12, Undecided).adding(|p, _| peers(p, UNLIKE, [100.0, 111.0])),
        Case::new(SWITCHED, 0.80, LinkLimitedLikely)
            .adding(|p, _| peers(p, UNLIKE, [500.0, 500.0])),
        Case::new(VIRTUAL, 0.12, Undecided),
    ]);
}

#[test]
fn host_bound_and_nearly_so() {
    // At 128 KiB and half of the ceiling of 7.2 GB/s the device takes an I/O every 36 µs.
    check(&[
        Case::new(SWITCHED, 0.50, HostBound).costing(60_000),
        Case::new(SWITCHED, 0.95, HostBound).costing(1_000_000),
        Case::new(P3700, 0.95, HostBound).costing(200_000),
        Case::new(ON_CHIP, 0.95, HostBound).costing(1_000_000),
        Case::new(VIRTUAL, 0.50, HostBound).costing(600_000),
        Case::new(SWITCHED, 0.50, DeviceBound).costing(5_000),
        Case::new(SWITCHED, 0.95, LinkBound).costing(2_000),
        // The smallest burn bites, but not in full.
        Case::new(SWITCHED, 0.50, Undecided).costing(33_000),
        Case::new(SWITCHED, 0.50, Undecided).rising(),
        Case::new(SWITCHED, 0.50, Undecided)
            .costing(60_000)
            .unproven(),
    ]);
}

#[test]
fn link_data_distrusted_and_nearly_so() {
    check(&[
        Case::new(P3700, 1.06, LinkDataDistrusted),
        Case::new(P3700, 1.10, LinkDataDistrusted).unproven(),
        Case::new(SWITCHED, 1.50, LinkDataDistrusted).rising(),
        Case::new(SAS, 2.0, LinkDataDistrusted),
        Case::new(ON_CHIP, 5.0, LinkDataDistrusted),
        Case::new(P3700, 1.0, LinkBound),
        // Addresses below 4 GiB have shorter headers: 2.7 % more at packets of 128 bytes. What was in flight when
        // the window began, of this short one, is another percent or two.
        Case::new(P3700, 1.02, LinkBound),
        Case::new(SWITCHED, 0.99, LinkBound),
        Case::new(P3700, 1.04, Undecided).with(changed),
        Case::new(ON_CHIP, 0.99, Undecided),
        Case::new(VIRTUAL, 5.0, Undecided),
    ]);
}

/// Packet sizes that nobody could read: 100 % of the worst case is less than 75 % of the best.
fn unread(path: &mut SeenPath) {
    for link in &mut path.links {
        if let Some(lanemark::session::path::Carrier::Pcie(_, sizes)) = &mut link.carrier {
            sizes.payload_bytes = (32, 512);
        }
    }
}

#[test]
fn undecided_and_nearly_so() {
    check(&[
        Case::new(VIRTUAL, 0.50, Undecided),
        Case::new(P3700, 0.95, Undecided).with(errors),
        Case::new(SWITCHED, 0.95, Undecided).keyed("rw: read, rate_iops: 5000"),
        Case::new(SWITCHED, 0.70, Undecided).with(unread),
        Case::new(SWITCHED, 0.50, Undecided).unproven(),
        Case::new(SWITCHED, 0.50, DeviceBound),
        Case::new(P3700, 0.95, LinkBound),
        Case::new(SWITCHED, 0.30, DeviceBound).with(unread),
        Case::new(P3700, 0.50, DatasheetUnreachable).unproven(),
        Case::new(VIRTUAL, 0.50, HostBound).costing(600_000),
    ]);
}
