//! What the tool itself costs on this machine, stage by stage, in nanoseconds and instructions per I/O.

use crate::clock::Clock;
use crate::measure::{LatencyHistogram, StampChoice};
use crate::record::{Environment, Tool, Warning};
use crate::session::{
    EngineLoad, Opened, SessionError, engine_cost, environment, random_reads, tool,
};
use crate::sys::clock::MachineClock;
use crate::sys::cpu::{AllowedCpus, choose_cpus, pin_current_thread, set_affinity, sibling_groups};
use crate::sys::perf::{InstructionCounter, why_not};
use crate::sysfs::Sysfs;
use crate::workload::Generator;
use serde::Serialize;
use std::hint::black_box;

/// Version of the JSON layout.
pub const SCHEMA_VERSION: u32 = 1;
/// Every stage is measured this many times.
pub const ROUNDS_COUNT: usize = 7;
/// Calls in one round of a stage without I/O.
const CALLS_COUNT: u64 = 200_000;
/// Above this share of a latency the tool can be seen in it.
const TOLERATED_RATIO: f64 = 0.05;

/// The whole result.
#[derive(Debug, Clone, Serialize)]
pub struct Calibration {
    /// Version of this layout.
    pub schema_version: u32,
    /// The program.
    pub tool: Tool,
    /// The machine.
    pub environment: Environment,
    /// Where it was measured.
    pub cpu: u32,
    /// How often each stage was measured.
    pub rounds_count: usize,
    /// Why instructions were not counted; absent where they were.
    pub instructions_missing: Option<String>,
    /// The costs.
    pub stages: Vec<Stage>,
    /// Latencies that the cost is held against.
    pub latencies: Vec<DepthOne>,
    /// What to beware of.
    pub warnings: Vec<Warning>,
}

/// One stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stage {
    /// What is priced.
    pub stage: String,
    /// On which backend; absent for what all share.
    pub backend: Option<String>,
    /// Median of the rounds, nanoseconds per I/O.
    pub ns_per_io: f64,
    /// The cheapest round.
    pub min_ns_per_io: f64,
    /// The dearest round.
    pub max_ns_per_io: f64,
    /// Median of the rounds; absent where the CPU does not let us count, or the stage is not apart.
    pub instructions_per_io: Option<f64>,
}

/// Latency of a device at depth 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DepthOne {
    /// The device.
    pub device: String,
    /// Its backend.
    pub backend: String,
    /// Median, nanoseconds.
    pub p50_ns: u64,
}

/// The CPU to measure on: the one that was asked for, or the best of those allowed.
///
/// # Errors
/// [`SessionError::Cpu`] where it may not be used, [`SessionError::TooFewCpus`] without any.
pub fn cpu(asked: Option<u32>, allowed: &AllowedCpus, sysfs: &Sysfs) -> Result<u32, SessionError> {
    if let Some(cpu) = asked {
        allowed.check(sysfs, &[cpu])?;
        return Ok(cpu);
    }
    let siblings = sibling_groups(sysfs, allowed.cpus());
    choose_cpus(allowed.cpus(), &siblings, None, 1)
        .first()
        .copied()
        .ok_or(SessionError::TooFewCpus { wanted: 1, got: 0 })
}

/// Measures everything on one CPU: what all backends share, then each device's queue.
///
/// # Errors
/// [`SessionError`] where the CPU cannot be had or a device fails.
pub fn calibrate(
    sysfs: &Sysfs,
    allowed: &AllowedCpus,
    cpu: u32,
    opened: &[Opened],
) -> Result<Calibration, SessionError> {
    let clock = MachineClock::new(sysfs);
    let bench = Bench::run(&clock, cpu, opened);
    // The caller's thread goes back to where it may run.
    set_affinity(allowed.cpus())?;
    let bench = bench?;
    let of_records = bench.cost("engine loop, depth 128, batch 32, exact stamps");
    Ok(Calibration {
        schema_version: SCHEMA_VERSION,
        tool: tool(of_records),
        environment: environment(sysfs, &clock, allowed),
        cpu,
        rounds_count: ROUNDS_COUNT,
        instructions_missing: bench.counter.as_ref().err().cloned(),
        warnings: warnings(bench.cost(DEPTH_ONE), &bench.latencies),
        stages: bench.stages,
        latencies: bench.latencies,
    })
}

/// The engine's cost that a latency at depth 1 contains at most.
const DEPTH_ONE: &str = "engine loop, depth 1, exact stamps";

fn warnings(cost_ns: Option<f64>, latencies: &[DepthOne]) -> Vec<Warning> {
    let Some(cost_ns) = cost_ns else {
        return Vec::new();
    };
    let visible = latencies.iter().filter(|latency| {
        #[allow(clippy::cast_precision_loss)]
        let p50_ns = latency.p50_ns as f64;
        cost_ns > TOLERATED_RATIO * p50_ns
    });
    visible
        .map(|latency| Warning {
            kind: "tool-cost".to_owned(),
            text: format!(
                "the engine itself costs {cost_ns:.0} ns per I/O, over 5 % of the p50 of {} ns that {} has at depth 1",
                latency.p50_ns, latency.device
            ),
            next_step: "read latencies of this device as upper bounds; `stamp: batch` and larger batches lower the cost".to_owned(),
        })
        .collect()
}

/// The stages so far, on the pinned thread.
struct Bench<'a> {
    clock: &'a MachineClock,
    cpu: u32,
    counter: Result<InstructionCounter, String>,
    stages: Vec<Stage>,
    latencies: Vec<DepthOne>,
}

/// One round: nanoseconds and I/Os.
struct Round {
    ns_per_io: f64,
    ios_count: u64,
}

impl<'a> Bench<'a> {
    fn run(clock: &'a MachineClock, cpu: u32, opened: &[Opened]) -> Result<Self, SessionError> {
        pin_current_thread(cpu)?;
        let mut bench = Self {
            clock,
            cpu,
            counter: InstructionCounter::open().map_err(why_not),
            stages: Vec::new(),
            latencies: Vec::new(),
        };
        bench.parts();
        bench.loops();
        for opened in opened {
            for batch in [1, 32] {
                bench.queue(opened, batch)?;
            }
        }
        Ok(bench)
    }

    fn cost(&self, stage: &str) -> Option<f64> {
        let stage = self.stages.iter().find(|each| each.stage == stage)?;
        Some(stage.ns_per_io)
    }

    /// What every I/O passes through, by itself.
    fn parts(&mut self) {
        let clock = *self.clock;
        self.calls("clock read", |_| {
            black_box(clock.now());
        });
        let mut histogram = LatencyHistogram::new();
        self.calls("histogram record", |number| {
            // Anything between 65 and 131 µs, never twice the same bucket in a row.
            histogram.record(65_536 + (number.wrapping_mul(0x9E37_79B9) & 0xFFFF));
        });
        black_box(histogram.count());
        let mut generator = Generator::new(&random_reads(8, 1 << 31, 1));
        self.calls("generator next, uniform 4 KiB", |_| {
            black_box(generator.next());
        });
    }

    /// One stage of many equal calls.
    #[allow(clippy::cast_precision_loss)]
    fn calls(&mut self, stage: &str, mut call: impl FnMut(u64)) {
        let clock = *self.clock;
        self.stage(stage, || {
            let start = clock.now();
            (0..CALLS_COUNT).for_each(&mut call);
            let ns = clock.to_ns(clock.now().since(start));
            Some(Round {
                ns_per_io: ns as f64 / CALLS_COUNT as f64,
                ios_count: CALLS_COUNT,
            })
        });
    }

    /// The whole engine over a device that answers at once.
    fn loops(&mut self) {
        let load = |depth, complete_max, stamp| EngineLoad {
            depth,
            complete_max,
            stamp,
        };
        let loads = [
            (DEPTH_ONE, load(1, 1, StampChoice::Exact)),
            (
                "engine loop, depth 32, exact stamps",
                load(32, 32, StampChoice::Exact),
            ),
            (
                "engine loop, depth 128, batch 32, exact stamps",
                EngineLoad::OF_RECORDS,
            ),
            (
                "engine loop, depth 128, batch 32, batch stamps",
                load(128, 32, StampChoice::Batch),
            ),
        ];
        let (clock, cpu) = (*self.clock, self.cpu);
        for (stage, load) in loads {
            self.stage(stage, || {
                let cost = engine_cost(&clock, cpu, load)?;
                Some(Round {
                    ns_per_io: cost.ns_per_io,
                    ios_count: cost.ios_count,
                })
            });
        }
    }

    /// Measures a stage. One that cannot run is left out.
    #[allow(clippy::cast_precision_loss)]
    fn stage(&mut self, stage: &str, mut round: impl FnMut() -> Option<Round>) {
        let (mut ns, mut instructions) = (Vec::new(), Vec::new());
        let counter = self.counter.as_ref().ok();
        let count = || counter.and_then(InstructionCounter::read);
        for _ in 0..ROUNDS_COUNT {
            let before = count();
            let Some(done) = round() else { continue };
            ns.push(done.ns_per_io);
            if let (Some(before), Some(after)) = (before, count()) {
                instructions.push((after - before) as f64 / done.ios_count as f64);
            }
        }
        self.push(stage, None, ns, instructions);
    }

    fn push(
        &mut self,
        stage: &str,
        backend: Option<&str>,
        mut ns: Vec<f64>,
        mut instructions: Vec<f64>,
    ) {
        let Some(ns_per_io) = median(&mut ns) else {
            return;
        };
        self.stages.push(Stage {
            stage: stage.to_owned(),
            backend: backend.map(str::to_owned),
            ns_per_io,
            min_ns_per_io: ns[0],
            max_ns_per_io: ns[ns.len() - 1],
            instructions_per_io: median(&mut instructions),
        });
    }

    /// Handing over and reaping on one backend.
    fn queue(&mut self, opened: &Opened, batch: u32) -> Result<(), SessionError> {
        let mut costs = Vec::new();
        for _ in 0..ROUNDS_COUNT {
            costs.push(opened.queue_cost(self.clock, batch)?);
        }
        let backend = opened.backend_use().name;
        let submit = costs.iter().map(|cost| cost.submit_ns).collect();
        let reap = costs.iter().filter_map(|cost| cost.reap_ns).collect();
        let of = format!("{batch} at a time");
        self.push(&format!("submit, {of}"), Some(&backend), submit, Vec::new());
        self.push(&format!("reap, {of}"), Some(&backend), reap, Vec::new());
        // The device that prices the engine has no latency of its own.
        if batch == 1 && !opened.is_null() {
            costs.sort_by_key(|cost| cost.p50_ns);
            let device = opened.facts().first().map(|facts| facts.path.clone());
            self.latencies.push(DepthOne {
                device: device.unwrap_or_default(),
                backend,
                p50_ns: costs[costs.len() / 2].p50_ns,
            });
        }
        Ok(())
    }
}

/// The middle value, or the mean of the two; sorts. `None` without values.
fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len().is_multiple_of(2) {
        f64::midpoint(values[middle - 1], upper)
    } else {
        upper
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&mut []), None);
    }

    #[test]
    fn a_fast_device_is_flagged_and_a_slow_one_is_not() {
        let latency = |device: &str, p50_ns| DepthOne {
            device: device.to_owned(),
            backend: "uring".to_owned(),
            p50_ns,
        };
        let found = warnings(Some(50.0), &[latency("fast", 999), latency("slow", 1_000)]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].kind, "tool-cost");
        assert!(found[0].text.contains("fast"));
        assert!(warnings(None, &[latency("fast", 1)]).is_empty());
    }
}
