//! `check`: a row for the polled queues of each driver that could have them.

use crate::guard_tree::Tree;
use lanemark::session::preflight::{Check, State, preflight};

fn checked(tree: &Tree) -> Vec<Check> {
    let mut all = preflight(&tree.sysfs());
    all.retain(|check| check.name.ends_with(".poll_queues"));
    all
}

#[test]
fn polled_queues_are_named_for_each_driver_that_has_a_device_and_none() {
    let tree = Tree::new();
    assert_eq!(checked(&tree), [], "no such driver, no row");
    for (number, driver) in [(1, "nvme"), (2, "mpt3sas"), (3, "megaraid_sas")] {
        tree.file(
            &format!("sys/module/{driver}/parameters/poll_queues"),
            "0\n",
        );
        tree.folder(&format!("sys/bus/pci/drivers/{driver}/module"));
        assert_eq!(
            checked(&tree).len(),
            number - 1,
            "{driver} has no device yet"
        );
        tree.folder(&format!("sys/bus/pci/drivers/{driver}/0000:0{number}:00.0"));
        let row = checked(&tree).pop().unwrap();
        assert_eq!(
            (row.name, row.state),
            (&*format!("{driver}.poll_queues"), State::Warn)
        );
        assert!(
            row.found.contains(&format!("0000:0{number}:00.0")),
            "{row:?}"
        );
        assert!(
            row.remedy.contains(&format!("{driver}.poll_queues=2")),
            "{row:?}"
        );
    }
    let parameter = "sys/module/nvme/parameters/poll_queues";
    for (text, state, found) in [
        ("4\n", State::Ok, "4 (0000:01:00.0)"),
        ("many\n", State::Unknown, "`many`"),
    ] {
        tree.file(parameter, text);
        let row = checked(&tree).remove(0);
        assert_eq!(row.state, state, "{row:?}");
        assert!(row.found.contains(found), "{row:?}");
    }
    tree.remove(parameter);
    let row = checked(&tree).remove(0);
    assert!(
        row.state == State::Warn && row.found.contains("cannot poll"),
        "{row:?}"
    );
}
