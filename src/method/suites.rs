//! The suites: published methods as job files that are part of the program.

/// One suite, or a part that suites include.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$((
            concat!("configs/", $name, ".yaml"),
            include_str!(concat!("../../configs/", $name, ".yaml")),
        )),*]
    };
}

/// Every file of `configs/suites`, and what they include from beside it, by its path.
pub const FILES: [(&str, &str); 29] = files![
    "suites/access-time",
    "suites/aida64",
    "suites/anvil",
    "suites/applications",
    "suites/atto",
    "suites/bsweep",
    "suites/burst",
    "suites/consistency",
    "suites/crystaldiskmark",
    "suites/depth-index",
    "suites/fio-s3710",
    "suites/hdtach",
    "suites/latency-under-load",
    "suites/linear-read",
    "suites/mixsweep",
    "suites/qdsweep",
    "suites/response",
    "suites/scale",
    "suites/seq",
    "suites/short-stroke",
    "suites/snia-iops",
    "suites/snia-latency",
    "suites/snia-throughput",
    "suites/streams",
    "suites/sustained-write",
    "suites/sysbench-fileio",
    "suites/working-set",
    "suites/zones",
    "s3710-fio-lines",
];

/// The suites' names.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().filter_map(|(path, _)| name_of(path))
}

/// `bsweep` of `configs/suites/bsweep.yaml`.
fn name_of(path: &'static str) -> Option<&'static str> {
    path.strip_prefix("configs/suites/")?.strip_suffix(".yaml")
}

/// The path and the text of a suite.
#[must_use]
pub fn find(name: &str) -> Option<(&'static str, &'static str)> {
    FILES
        .iter()
        .copied()
        .find(|(path, _)| name_of(path) == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `best` of a latency is the smallest: of maxima it would be the mildest of the worst cases.
    #[test]
    fn no_suite_shows_the_smallest_maximum() {
        let lines = || FILES.iter().flat_map(|(_, text)| text.lines());
        let of_maxima = || lines().filter(|line| line.contains("of: max_ns"));
        assert!(of_maxima().count() > 0);
        assert!(of_maxima().all(|line| !line.contains("as: best")));
    }
}
