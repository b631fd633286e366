//! Names after a release: the kernel may number what comes back otherwise.

use super::played::{NVME_A, NVME_B, Played, bdf, claimer, lab};
use lanemark::session::claim::{Claimer, Moved, Renamed};

fn lines(moved: &[Moved]) -> Vec<String> {
    let renamed = moved.iter().flat_map(|one| &one.renamed);
    renamed.filter_map(Renamed::line).collect()
}

fn dangers(moved: &[Moved]) -> Vec<String> {
    let renamed = moved.iter().flat_map(|one| &one.renamed);
    renamed.filter_map(Renamed::danger).collect()
}

const BOTH: [&str; 2] = [NVME_A, NVME_B];

fn swapped(kernel: &Played, claimer: &Claimer<'_>) {
    claimer.claim(&BOTH.map(bdf), None).unwrap();
    kernel.renumber(NVME_A, '0', '1');
    kernel.renumber(NVME_B, '1', '0');
}

#[test]
fn devices_that_come_back_with_their_names_swapped_are_told_and_warned_of() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let claimer = claimer(&sysfs, &kernel, &tree);
    swapped(&kernel, &claimer);
    let moved = claimer.release(None).unwrap();
    let renamed = [
        "/dev/nvme0n1 is /dev/nvme1n1 now",
        "/dev/nvme0n2 is /dev/nvme1n2 now",
        "/dev/nvme1n1 is /dev/nvme0n1 now",
    ];
    assert_eq!(lines(&moved), renamed);
    // Each old name that leads elsewhere; that of the second namespace leads nowhere. The first to come back sees
    // what has taken its name later.
    let warned = dangers(&moved);
    assert_eq!(warned.len(), 2, "{warned:?}");
    assert_eq!(
        warned[0],
        "/dev/nvme0n1 is another device now: QEMU NVMe Ctrl IGDFKDD5751 namespace 1 at 0000:04:00.0; what it was \
         before the claim is /dev/nvme1n1"
    );
    assert!(warned[1].contains(NVME_A), "{warned:?}");
}

#[test]
fn what_was_left_by_a_process_is_told_by_its_new_names_too() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let claimer = claimer(&sysfs, &kernel, &tree);
    claimer.claim(&BOTH.map(bdf), Some(71)).unwrap();
    kernel.renumber(NVME_A, '0', '1');
    kernel.renumber(NVME_B, '1', '0');
    let moved = claimer.release_of(71).unwrap();
    assert_eq!((lines(&moved).len(), dangers(&moved).len()), (3, 2));
}

#[test]
fn only_one_given_back_takes_the_name_of_one_that_is_still_claimed() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let claimer = claimer(&sysfs, &kernel, &tree);
    swapped(&kernel, &claimer);
    let moved = claimer.release(Some(&[bdf(NVME_B)])).unwrap();
    assert_eq!(lines(&moved), ["/dev/nvme1n1 is /dev/nvme0n1 now"]);
    assert_eq!(dangers(&moved), [""; 0]);
    let moved = claimer.release(Some(&[bdf(NVME_A)])).unwrap();
    assert_eq!((lines(&moved).len(), dangers(&moved).len()), (2, 1));
}

#[test]
fn another_drive_in_the_same_place_is_not_taken_for_the_one_before() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let claimer = claimer(&sysfs, &kernel, &tree);
    claimer.claim(&[bdf(NVME_B)], None).unwrap();
    let serial = kernel.device(NVME_B).join("nvme/nvme1/serial");
    std::fs::write(serial, "ANOTHER\n").unwrap();
    let moved = claimer.release(None).unwrap();
    assert_eq!(lines(&moved), [""; 0]);
    let warned = dangers(&moved);
    assert!(
        warned[0].contains("ANOTHER") && warned[0].ends_with("has not come back"),
        "{warned:?}"
    );
}

#[test]
fn names_that_are_as_before_are_not_spoken_of() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let claimer = claimer(&sysfs, &kernel, &tree);
    claimer.claim(&BOTH.map(bdf), None).unwrap();
    let moved = claimer.release(None).unwrap();
    assert!(moved.iter().all(|one| one.renamed.is_empty()), "{moved:?}");
}
