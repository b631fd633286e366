//! Which CPU each reactor gets.

use crate::config::StepPlan;
use crate::session::SessionError;
use crate::sys::cpu::{AllowedCpus, choose_cpus, sibling_groups};
use crate::sysfs::Sysfs;

/// The CPU of every reactor of a step: those the user named, or the best of those allowed.
///
/// # Errors
/// A named CPU that this process may not use; fewer CPUs than reactors. Two reactors never share a CPU:
/// each spins, and their figures would be halves of one.
pub fn place(
    step: &StepPlan,
    allowed: &AllowedCpus,
    sysfs: &Sysfs,
) -> Result<Vec<u32>, SessionError> {
    let wanted = step.reactors_count as usize;
    if !step.cpus.is_empty() {
        allowed.check(sysfs, &step.cpus)?;
        if step.cpus.len() >= wanted {
            return Ok(step.cpus[..wanted].to_vec());
        }
        return Err(SessionError::TooFewCpus {
            wanted,
            got: step.cpus.len(),
        });
    }
    let siblings = sibling_groups(sysfs, allowed.cpus());
    let chosen = choose_cpus(allowed.cpus(), &siblings, None, wanted);
    if chosen.len() < wanted {
        return Err(SessionError::TooFewCpus {
            wanted,
            got: chosen.len(),
        });
    }
    Ok(chosen)
}
