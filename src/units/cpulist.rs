//! Lists of CPUs in the kernel's notation: `0-3,8,127`.

use std::fmt;
use std::str::FromStr;

/// An ordered list of CPU numbers without repeats. The order is the user's: reactors take CPUs by it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuList(pub Vec<u32>);

/// Why a text is not a list of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a list of CPUs: {why}")]
pub struct CpuListError {
    /// The text.
    pub text: String,
    /// What is wrong and what is allowed.
    pub why: CpuListFault,
}

/// What is wrong with a list of CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CpuListFault {
    /// Not numbers, ranges and commas.
    #[error("use CPU numbers and ranges such as 0-3,8,127, without spaces")]
    Garbled,
    /// A range that runs down.
    #[error("the range {0}-{1} runs backwards; write {1}-{0}")]
    Reversed(u32, u32),
    /// A CPU named twice.
    #[error("CPU {0} is named twice; name each once")]
    Repeated(u32),
    /// A number that no kernel gives out. It also keeps a mistyped range from filling the memory.
    #[error("a CPU number is at most {MAX_CPU}")]
    TooLarge,
}

/// The kernel's largest NR_CPUS (x86, MAXSMP) is 8192.
const MAX_CPU: u32 = 8191;

impl FromStr for CpuList {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        parse(text).map(Self).map_err(|why| CpuListError {
            text: text.to_owned(),
            why,
        })
    }
}

fn parse(text: &str) -> Result<Vec<u32>, CpuListFault> {
    let mut cpus = Vec::new();
    let mut seen = vec![false; MAX_CPU as usize + 1];
    for part in text.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return Err(CpuListFault::Reversed(first, last));
        }
        for cpu in first..=last {
            if std::mem::replace(&mut seen[cpu as usize], true) {
                return Err(CpuListFault::Repeated(cpu));
            }
            cpus.push(cpu);
        }
    }
    Ok(cpus)
}

fn number(text: &str) -> Result<u32, CpuListFault> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(CpuListFault::Garbled);
    }
    match text.parse() {
        Ok(cpu) if cpu <= MAX_CPU => Ok(cpu),
        _ => Err(CpuListFault::TooLarge),
    }
}

impl fmt::Display for CpuList {
    /// In the notation it is read from; runs of rising numbers as ranges, the order kept.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut at = 0;
        while at < self.0.len() {
            let first = self.0[at];
            let mut run = 1;
            while at + run < self.0.len()
                && self.0[at + run - 1].checked_add(1) == Some(self.0[at + run])
            {
                run += 1;
            }
            let comma = if at == 0 { "" } else { "," };
            if run == 1 {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{}", self.0[at + run - 1])?;
            }
            at += run;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn cpus(text: &str) -> Vec<u32> {
        text.parse::<CpuList>().unwrap().0
    }

    fn why(text: &str) -> CpuListFault {
        text.parse::<CpuList>().unwrap_err().why
    }

    #[test]
    fn lists_and_ranges_reach_beyond_64() {
        assert_eq!(cpus("0-3,8,127"), [0, 1, 2, 3, 8, 127]);
        assert_eq!(cpus("5"), [5]);
        assert_eq!(cpus("3-3"), [3]);
        assert_eq!(cpus("0-8191").len(), 8192);
        assert_eq!(cpus("7,2-3"), [7, 2, 3]);
    }

    #[test]
    fn what_is_no_list_says_what_is() {
        assert_eq!(why("3-0"), CpuListFault::Reversed(3, 0));
        assert_eq!(why("1,1"), CpuListFault::Repeated(1));
        assert_eq!(why("0-3,2"), CpuListFault::Repeated(2));
        assert_eq!(why("0-4294967295"), CpuListFault::TooLarge);
        assert_eq!(why("99999999999999999999"), CpuListFault::TooLarge);
        for text in [
            "", ",", "1,", ",1", "1-", "-1", "1-2-3", "a", "1, 2", " 1", "0x1", "1.5", "+1",
        ] {
            assert_eq!(why(text), CpuListFault::Garbled, "`{text}`");
        }
    }

    proptest! {
        #[test]
        fn lists_round_trip(set in proptest::collection::hash_set(0_u32..=MAX_CPU, 1..40)) {
            let list = CpuList(set.into_iter().collect());
            prop_assert_eq!(list.to_string().parse::<CpuList>().unwrap(), list);
        }

        #[test]
        fn no_text_panics(text in "[0-9,\\-a ]*") {
            let _ = text.parse::<CpuList>();
        }
    }
}
