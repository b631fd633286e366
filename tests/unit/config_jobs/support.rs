//! Made-up devices, and short ways to plan.

use lanemark::backend::{DeviceFacts, DeviceKind};
use lanemark::config::{ConfigError, Job, Plan, StepPlan, plan};
use lanemark::units::{BlockSize, Bytes};

/// A block device that can do everything.
pub fn device(path: &str, block_bytes: u32, capacity_bytes: u64) -> DeviceFacts {
    DeviceFacts {
        path: path.to_owned(),
        kind: DeviceKind::Block,
        identity: None,
        model: None,
        serial: None,
        firmware: None,
        capacity: Bytes(capacity_bytes),
        logical_block: BlockSize::new(block_bytes).unwrap(),
        physical_block: None,
        rotational: None,
        max_io: None,
        max_command: None,
        block_path: None,
        device_depth: None,
        trim: Ok(()),
        write_zeroes: Ok(None),
        flush: Ok(()),
        probe: Ok(()),
        in_use: Vec::new(),
        own_scratch: false,
    }
}

/// 1 TiB in blocks of 512 bytes.
pub fn disk() -> DeviceFacts {
    device("disk", 512, 1 << 40)
}

/// 1 TiB in blocks of 4096 bytes.
pub fn disk_4kn() -> DeviceFacts {
    device("disk4kn", 4096, 1 << 40)
}

/// Parses and plans.
pub fn plan_on(yaml: &str, facts: &[DeviceFacts]) -> Result<Plan, ConfigError> {
    plan(&Job::from_yaml(yaml, "job.yaml")?, facts, 42)
}

/// The only step of a job whose step is written in one line, such as `rw: read, bs: 4k`.
pub fn step_on(keys: &str, facts: &[DeviceFacts]) -> StepPlan {
    let plan = plan_on(&format!("steps:\n  - {{ {keys} }}\n"), facts);
    plan.unwrap_or_else(|error| panic!("{keys}: {error}"))
        .steps
        .remove(0)
}

/// The step on [`disk`].
pub fn step(keys: &str) -> StepPlan {
    step_on(keys, &[disk()])
}

/// What planning the step refuses.
pub fn refused_on(keys: &str, facts: &[DeviceFacts]) -> ConfigError {
    match plan_on(&format!("steps:\n  - {{ {keys} }}\n"), facts) {
        Err(error) => error,
        Ok(_) => panic!("accepted: {keys}"),
    }
}

/// What planning the step on [`disk`] refuses.
pub fn refused(keys: &str) -> ConfigError {
    refused_on(keys, &[disk()])
}
