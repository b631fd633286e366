//! The order in which people expect names.

/// `sda2` before `sda10`, `sdz` before `sdaa`.
pub(super) fn natural_key(name: &str) -> Vec<(usize, String)> {
    let mut key: Vec<(usize, String)> = Vec::new();
    let mut was_digit = None;
    for c in name.chars() {
        let is_digit = c.is_ascii_digit();
        if was_digit == Some(is_digit)
            && let Some((length, text)) = key.last_mut()
        {
            text.push(c);
            *length = if is_digit { text.len() } else { 0 };
        } else {
            key.push((usize::from(is_digit), c.to_string()));
        }
        was_digit = Some(is_digit);
    }
    // Letters are ordered by themselves, but a longer suffix of SCSI disks comes later.
    if name.starts_with("sd")
        && let Some((length, text)) = key.first_mut()
    {
        *length = text.len();
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_people_expect() {
        let mut names = [
            "sdaa", "sdb", "sdz", "sda", "loop10", "loop2", "nvme1n1", "nvme0n12", "nvme0n2",
        ];
        names.sort_by_key(|name| natural_key(name));
        assert_eq!(
            names,
            [
                "loop2", "loop10", "nvme0n2", "nvme0n12", "nvme1n1", "sda", "sdb", "sdz", "sdaa"
            ]
        );
    }
}
