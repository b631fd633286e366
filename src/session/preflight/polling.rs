//! The kernel's polled queues: named for each driver here that could have them, since without them every
//! completion costs an interrupt.

use super::{Check, State};
use crate::sysfs::{Sysfs, SysfsError, host, names_in, optional};

/// Drivers with a parameter for polled queues: the check's name, the driver, and a reservation.
const DRIVERS: [(&str, &str, &str); 3] = [
    ("nvme.poll_queues", "nvme", ""),
    ("mpt3sas.poll_queues", "mpt3sas", "; older cards ignore it"),
    (
        "megaraid_sas.poll_queues",
        "megaraid_sas",
        "; older cards ignore it",
    ),
];

/// One row for each of these drivers that has a device.
pub(in crate::session) fn rows(sysfs: &Sysfs) -> Vec<Check> {
    let row = |(name, driver, but): (&'static str, &'static str, &'static str)| match judged(
        sysfs, name, driver, but,
    ) {
        Ok(row) => row,
        Err(error) => Some(Check {
            name,
            state: State::Unknown,
            found: error.to_string(),
            remedy: "make that file readable, or ignore this check".to_owned(),
        }),
    };
    DRIVERS.into_iter().filter_map(row).collect()
}

fn judged(
    sysfs: &Sysfs,
    name: &'static str,
    driver: &str,
    but: &str,
) -> Result<Option<Check>, SysfsError> {
    let bound = optional(names_in(&sysfs.sys("bus/pci/drivers").join(driver)))?.unwrap_or_default();
    let devices: Vec<String> = bound
        .into_iter()
        .filter(|name| crate::sysfs::pci::Bdf::parse(name).is_some())
        .collect();
    if devices.is_empty() {
        return Ok(None);
    }
    let devices = devices.join(", ");
    let remedy =
        format!("boot with {driver}.poll_queues=2, or reload the module with poll_queues=2{but}");
    let count = host::module_parameter(sysfs, driver, "poll_queues")?;
    let (state, found, remedy) = match count.as_deref().map(str::parse::<u32>) {
        Some(Ok(0)) => (
            State::Warn,
            format!("none: {driver} completes by interrupt ({devices})"),
            remedy,
        ),
        Some(Ok(count)) => (State::Ok, format!("{count} ({devices})"), String::new()),
        Some(Err(_)) => (
            State::Unknown,
            format!("{driver} says `{}`", count.unwrap_or_default()),
            remedy,
        ),
        None => (
            State::Warn,
            format!("this kernel's {driver} cannot poll ({devices})"),
            "a newer kernel, whose driver has the parameter poll_queues".to_owned(),
        ),
    };
    Ok(Some(Check {
        name,
        state,
        found,
        remedy,
    }))
}
