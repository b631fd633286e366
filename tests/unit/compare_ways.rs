//! Which controllers two sides pass: their differences by name.

use crate::guard_tree::fixture;
use lanemark::method::compare::confound::differing;
use lanemark::method::compare::ways::facts;

#[test]
fn the_controllers_of_two_ways_are_told_apart() {
    let tree = fixture("lab-default.tree");
    let side = |device: &str| facts(&tree.sysfs(), &[device.to_owned()]);
    let found = differing(&[side("/dev/sda"), side("/dev/sdc")]);
    let value = |name: &str| {
        let found = found.iter().find(|confounder| confounder.name == name);
        found
            .map(|confounder| confounder.values.clone())
            .unwrap_or_default()
    };
    let pair = |a: &str, b: &str| vec![Some(a.to_owned()), Some(b.to_owned())];
    assert_eq!(value("transport"), pair("sata", "sas"));
    assert_eq!(
        value("controller's PCI address"),
        pair("0000:00:1f.2", "0000:00:06.0")
    );
    let drivers = value("controller's driver");
    let starts = |side: usize, word: &str| {
        drivers[side]
            .as_ref()
            .is_some_and(|driver| driver.starts_with(word))
    };
    assert!(starts(0, "ahci") && starts(1, "mptsas"), "{drivers:?}");
    let ids = value("controller");
    assert!(
        ids[0].as_ref().is_some_and(|id| id.contains("8086:2922")),
        "{ids:?}"
    );
    assert!(
        ids[1].as_ref().is_some_and(|id| id.contains("1000:0054")),
        "{ids:?}"
    );
    assert!(
        differing(&[side("/dev/sdc"), side("/dev/sdd")]).is_empty(),
        "one HBA"
    );
    assert!(facts(&tree.sysfs(), &["sim".to_owned()]).is_empty());
}
