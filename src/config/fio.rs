//! Options of fio that have no namesake here, and what to take in their place.

/// What stands here in the place of an option of fio, as a hint; `None` for any other name.
#[must_use]
pub fn instead_of(name: &str) -> Option<&'static str> {
    Some(match name.replace('-', "_").as_str() {
        "numjobs" => "use streams (access patterns of their own) and reactors (polling cores)",
        "filename" => "use device",
        "ioengine" => "use backend",
        "direct" => "leave it out: I/O is always direct",
        "group_reporting" => "leave it out: the result of a step is that of all its streams",
        "time_based" => "leave it out: a step goes on for its runtime, or until number_ios",
        "thread" => "leave it out: every reactor is a thread",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::STEP_KEYS;

    #[test]
    fn no_key_of_ours_is_taken_for_one_of_fio() {
        assert!(STEP_KEYS.iter().all(|key| instead_of(key).is_none()));
        assert!(instead_of("time-based").is_some() && instead_of("bs").is_none());
    }
}
