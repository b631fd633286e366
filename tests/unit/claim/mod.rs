//! Claims and their undoing, on the captured lab with a played kernel.

mod auto;
mod played;
mod refusals;
mod renamed;

use lanemark::session::claim::{ClaimError, Claimer, State, StateError, Store};
use lanemark::sysfs::Sysfs;
use lanemark::sysfs::bind::BindError;
use lanemark::units::Bytes;
use played::{Killed, NVME_A, NVME_B, Played, bdf, claimer, lab};
use std::cell::RefCell;
use std::os::unix::fs::PermissionsExt;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::time::Duration;

const STATE_FILE: &str = "run/lanemark/claims.json";

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn nodes(root: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(root.join("dev"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("nvme") || name.starts_with("ng"))
        .collect();
    names.sort();
    names
}

#[test]
fn a_claim_goes_to_vfio_and_comes_back_to_where_it_was() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let before = nodes(&kernel.root);
    let claimer = claimer(&sysfs, &kernel, &tree);
    let moved = claimer.claim(&[bdf(NVME_A)], None).unwrap();
    assert_eq!(kernel.driver(NVME_A).as_deref(), Some("vfio-pci"));
    assert_eq!(kernel.driver(NVME_B).as_deref(), Some("nvme"));
    assert!(moved[0].changed);
    assert!(
        moved[0].nodes.contains(&"/dev/nvme0n1".to_owned()),
        "{moved:?}"
    );
    assert_eq!(
        moved[0].notes,
        ["loaded module vfio_pci", "loaded module vfio_iommu_type1"]
    );
    let file = kernel.root.join(STATE_FILE);
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    let path = Path::new("/dev/ng0n2");
    let known = State::peek(&sysfs).by_former_path(path);
    assert_eq!(known, Some((bdf(NVME_A), Some(2))));

    let writes = kernel.log.borrow().len();
    let again = claimer.claim(&[bdf(NVME_A)], None).unwrap();
    assert!(!again[0].changed && kernel.log.borrow().len() == writes);

    let back = claimer.release(Some(&[bdf(NVME_A)])).unwrap();
    assert_eq!(kernel.driver(NVME_A).as_deref(), Some("nvme"));
    assert_eq!(kernel.reserved(NVME_A), "");
    assert_eq!(nodes(&kernel.root), before);
    assert_eq!(back[0].nodes, ["/dev/nvme0n1", "/dev/nvme0n2"]);
    assert_eq!(State::peek(&sysfs).claims, []);

    let writes = kernel.log.borrow().len();
    let again = claimer.release(Some(&[bdf(NVME_A)])).unwrap();
    assert!(!again[0].changed && kernel.log.borrow().len() == writes);
    assert_eq!(claimer.release(None).unwrap(), []);
}

#[test]
fn without_an_iommu_it_is_uio_and_that_is_said() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    std::fs::remove_file(kernel.device(NVME_A).join("iommu_group")).unwrap();
    let claimer = claimer(&sysfs, &kernel, &tree);
    let moved = claimer.claim(&[bdf(NVME_A)], None).unwrap();
    assert_eq!(kernel.driver(NVME_A).as_deref(), Some("uio_pci_generic"));
    assert!(moved[0].notes[0].contains("no IOMMU"), "{moved:?}");
    claimer.release(None).unwrap();
    assert_eq!(kernel.driver(NVME_A).as_deref(), Some("nvme"));
}

/// Runs what is killed before its `at`th write; whether it was.
fn killed(kernel: &Played, at: usize, work: impl FnOnce()) -> bool {
    kernel.log.borrow_mut().clear();
    kernel.killed_at.set(at);
    let ended = std::panic::catch_unwind(AssertUnwindSafe(work));
    kernel.killed_at.set(usize::MAX);
    match ended {
        Ok(()) => false,
        Err(cause) if cause.is::<Killed>() => true,
        Err(cause) => std::panic::resume_unwind(cause),
    }
}

#[test]
fn whoever_is_killed_at_any_point_is_cleaned_up_after() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let before = nodes(&kernel.root);
    let claimer = claimer(&sysfs, &kernel, &tree);
    let is_as_before = || {
        assert_eq!(kernel.driver(NVME_A).as_deref(), Some("nvme"));
        assert!(matches!(kernel.reserved(NVME_A).as_str(), "" | "(null)"));
        assert_eq!(nodes(&kernel.root), before);
        assert_eq!(State::peek(&sysfs).claims, []);
    };
    let mut claims_killed = 0;
    while killed(&kernel, claims_killed + 1, || {
        claimer.claim(&[bdf(NVME_A)], Some(1)).unwrap();
    }) {
        claims_killed += 1;
        claimer.release(None).unwrap();
        is_as_before();
    }
    assert_eq!(claims_killed, 3, "override, unbind, probe");
    let mut releases_killed = 0;
    while killed(&kernel, releases_killed + 1, || {
        claimer.release(None).unwrap();
    }) {
        releases_killed += 1;
        claimer.release(None).unwrap();
        is_as_before();
        claimer.claim(&[bdf(NVME_A)], None).unwrap();
    }
    assert_eq!(releases_killed, 4, "override, unbind, probe, override");
    is_as_before();
}

#[test]
fn where_one_cannot_be_moved_the_others_go_back() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    kernel.load_by_hand();
    let claimer = claimer(&sysfs, &kernel, &tree);
    // Neither driver takes it: it cannot even go back.
    *kernel.stubborn.borrow_mut() = Some(NVME_B.to_owned());
    let error = claimer
        .claim(&[bdf(NVME_A), bdf(NVME_B)], None)
        .unwrap_err();
    assert!(matches!(&error, ClaimError::Bind { left, .. } if left.contains(NVME_B)));
    assert_eq!(error.exit_code(), 1);
    assert_eq!(kernel.driver(NVME_A).as_deref(), Some("nvme"));
    let state = State::peek(&sysfs);
    assert!(state.of(bdf(NVME_A)).is_none() && state.of(bdf(NVME_B)).is_some());
    *kernel.stubborn.borrow_mut() = None;
    claimer.release(None).unwrap();
    assert_eq!(kernel.driver(NVME_B).as_deref(), Some("nvme"));
}

/// Where an unbinding that hangs will end nobody knows: it stays remembered until it is over.
#[test]
fn a_driver_that_does_not_let_go_is_given_up_and_not_forgotten() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let claimer = claimer(&sysfs, &kernel, &tree);
    *kernel.stuck.borrow_mut() = Some(NVME_B.to_owned());
    let is_stuck = |error: &ClaimError| {
        let ClaimError::Bind { error, left } = error else {
            return false;
        };
        matches!(error, BindError::Stuck { .. }) && left.contains("still remembered")
    };
    let error = claimer
        .claim(&[bdf(NVME_A), bdf(NVME_B)], None)
        .unwrap_err();
    assert!(is_stuck(&error), "{error}");
    assert_eq!(kernel.driver(NVME_A).as_deref(), Some("nvme"), "given back");
    let error = claimer.release(None).unwrap_err();
    assert!(is_stuck(&error), "{error}");
    let state = State::peek(&sysfs);
    assert!(state.of(bdf(NVME_A)).is_none() && state.of(bdf(NVME_B)).is_some());
    *kernel.stuck.borrow_mut() = None;
    // The kernel has done it after all.
    kernel.unbind(NVME_B);
    let back = claimer.release(None).unwrap();
    assert!(back[0].changed);
    assert_eq!(kernel.driver(NVME_B).as_deref(), Some("nvme"));
    assert!(matches!(kernel.reserved(NVME_B).as_str(), "" | "(null)"));
}

#[test]
fn a_claim_after_one_that_hung_still_knows_where_the_device_came_from() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let before = nodes(&kernel.root);
    let claimer = claimer(&sysfs, &kernel, &tree);
    *kernel.stuck.borrow_mut() = Some(NVME_A.to_owned());
    claimer.claim(&[bdf(NVME_A)], None).unwrap_err();
    let first = State::peek(&sysfs).of(bdf(NVME_A)).cloned().unwrap();
    let error = claimer.claim(&[bdf(NVME_A)], None).unwrap_err();
    assert_eq!(error.exit_code(), 3, "still held: {error}");
    assert_eq!(State::peek(&sysfs).claims, std::slice::from_ref(&first));
    // The kernel has done it after all, and nobody has looked for another driver.
    *kernel.stuck.borrow_mut() = None;
    kernel.unbind(NVME_A);
    let (shown, gone) = (kernel.device(NVME_A).join("nvme"), kernel.root.join("nvme"));
    std::fs::rename(&shown, &gone).unwrap();
    assert_eq!(kernel.driver(NVME_A), None);
    claimer.claim(&[bdf(NVME_A)], None).unwrap();
    assert_eq!(kernel.driver(NVME_A).as_deref(), Some("vfio-pci"));
    let state = State::peek(&sysfs);
    assert_eq!(state.claims, [first]);
    let known = state.by_former_path(Path::new("/dev/nvme0n2"));
    assert_eq!(known, Some((bdf(NVME_A), Some(2))));
    std::fs::rename(gone, shown).unwrap();
    claimer.release(None).unwrap();
    assert_eq!(kernel.driver(NVME_A).as_deref(), Some("nvme"));
    assert!(matches!(kernel.reserved(NVME_A).as_str(), "" | "(null)"));
    assert_eq!(nodes(&kernel.root), before);
}

/// The link to a driver is there while that one starts, and goes where it fails.
#[test]
fn a_driver_that_fails_while_it_is_waited_for_is_not_taken_for_bound() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let before = nodes(&kernel.root);
    let claimer = claimer(&sysfs, &kernel, &tree);
    claimer.claim(&[bdf(NVME_A)], None).unwrap();
    // Killed once the driver was asked to start.
    assert!(killed(&kernel, 4, || {
        claimer.release(None).unwrap();
    }));
    assert_eq!(kernel.driver(NVME_A).as_deref(), Some("nvme"));
    *kernel.failing.borrow_mut() = Some(NVME_A.to_owned());
    let back = claimer.release(None).unwrap();
    assert_eq!(*kernel.failing.borrow(), None, "it has failed");
    assert!(back[0].changed, "{back:?}");
    assert_eq!(kernel.driver(NVME_A).as_deref(), Some("nvme"));
    assert!(matches!(kernel.reserved(NVME_A).as_str(), "" | "(null)"));
    assert_eq!(nodes(&kernel.root), before);
    assert_eq!(State::peek(&sysfs).claims, []);
}

/// It fails again and again: then it is not forgotten.
#[test]
fn a_driver_that_fails_for_good_leaves_the_device_remembered() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let claimer = claimer(&sysfs, &kernel, &tree);
    claimer.claim(&[bdf(NVME_A)], None).unwrap();
    assert!(killed(&kernel, 4, || {
        claimer.release(None).unwrap();
    }));
    *kernel.failing.borrow_mut() = Some(NVME_A.to_owned());
    *kernel.stubborn.borrow_mut() = Some(NVME_A.to_owned());
    let error = claimer.release(None).unwrap_err();
    assert!(
        matches!(
            &error,
            ClaimError::Bind {
                error: BindError::NotBound { .. },
                ..
            }
        ),
        "{error}"
    );
    *kernel.stubborn.borrow_mut() = None;
    claimer.release(None).unwrap();
    assert_eq!(kernel.driver(NVME_A).as_deref(), Some("nvme"));
}

#[test]
fn what_a_process_has_left_is_given_back_and_nothing_of_others() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let claimer = claimer(&sysfs, &kernel, &tree);
    // Neither process is there any more.
    claimer.claim(&[bdf(NVME_A)], Some(71)).unwrap();
    claimer.claim(&[bdf(NVME_B)], Some(72)).unwrap();
    assert_eq!(claimer.release_of(70).unwrap(), []);
    let back = claimer.release_of(72).unwrap();
    assert_eq!(back.len(), 1);
    assert_eq!(kernel.driver(NVME_A).as_deref(), Some("vfio-pci"));
    assert_eq!(kernel.driver(NVME_B).as_deref(), Some("nvme"));

    // One that cannot be given back does not hold up the next.
    claimer.claim(&[bdf(NVME_B)], Some(71)).unwrap();
    *kernel.stubborn.borrow_mut() = Some(NVME_A.to_owned());
    let error = claimer.release_of(71).unwrap_err();
    assert!(matches!(error, ClaimError::Bind { .. }), "{error}");
    assert_eq!(kernel.driver(NVME_B).as_deref(), Some("nvme"));
    let state = State::peek(&sysfs);
    assert!(state.of(bdf(NVME_A)).is_some() && state.of(bdf(NVME_B)).is_none());
    *kernel.stubborn.borrow_mut() = None;
    claimer.release_of(71).unwrap();
    assert_eq!(kernel.driver(NVME_A).as_deref(), Some("nvme"));
}

#[test]
fn what_somebody_has_moved_meanwhile_is_left_to_him() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let claimer = claimer(&sysfs, &kernel, &tree);
    claimer.claim(&[bdf(NVME_A)], None).unwrap();
    let device = kernel.device(NVME_A);
    std::fs::remove_file(device.join("driver")).unwrap();
    std::os::unix::fs::symlink("../bus/pci/drivers/other", device.join("driver")).unwrap();
    let back = claimer.release(None).unwrap();
    assert!(!back[0].changed && back[0].notes[0].contains("on other already"));
    assert_eq!(kernel.driver(NVME_A).as_deref(), Some("other"));
    assert_eq!(kernel.reserved(NVME_A), "");
    assert_eq!(State::peek(&sysfs).claims, []);
}

#[test]
fn a_device_that_is_gone_is_forgotten() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let claimer = claimer(&sysfs, &kernel, &tree);
    claimer.claim(&[bdf(NVME_A)], None).unwrap();
    tree.remove("sys/bus/pci/devices/0000:01:00.0");
    let back = claimer.release(None).unwrap();
    assert!(back[0].notes[0].contains("not there any more"));
    assert_eq!(State::peek(&sysfs).claims, []);
}

#[test]
fn entries_of_another_boot_count_for_nothing() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    claimer(&sysfs, &kernel, &tree)
        .claim(&[bdf(NVME_A)], None)
        .unwrap();
    tree.file("proc/sys/kernel/random/boot_id", "the-next\n");
    assert_eq!(State::peek(&sysfs).claims, []);
    assert_eq!(Store::open(&sysfs, &|_| ()).unwrap().state.claims, []);
}

/// Whoever claims or gives back waits for another who does, and says so once.
#[test]
fn a_wait_for_another_is_told() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let heard = RefCell::new(Vec::new());
    let told = |text: &str| heard.borrow_mut().push(text.to_owned());
    let claimer = claimer(&sysfs, &kernel, &tree).telling(&told);
    for is_claim in [true, false] {
        let held = Store::open(&sysfs, &|_| ()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(1200));
                drop(held);
            });
            match is_claim {
                true => drop(claimer.claim(&[bdf(NVME_A)], None).unwrap()),
                false => drop(claimer.release(None).unwrap()),
            }
        });
        let told = heard.take();
        assert_eq!(told.len(), 1, "{told:?}");
        let limit = if is_claim {
            "for 60 s at most"
        } else {
            "for 1200 s at most"
        };
        assert!(told[0].ends_with(limit), "{told:?}");
    }
}

#[test]
fn a_state_that_others_may_change_or_that_is_garbled_is_not_used() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let claimer = claimer(&sysfs, &kernel, &tree);
    tree.file(STATE_FILE, "{}");
    let folder = kernel.root.join("run/lanemark");
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
    let error = claimer.claim(&[bdf(NVME_A)], None).unwrap_err();
    assert!(matches!(
        error,
        ClaimError::State(StateError::Garbled { .. })
    ));
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
    let error = claimer.claim(&[bdf(NVME_A)], None).unwrap_err();
    assert!(matches!(
        error,
        ClaimError::State(StateError::Unsafe { .. })
    ));
    std::fs::rename(&folder, kernel.root.join("run/elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", &folder).unwrap();
    let error = claimer.claim(&[bdf(NVME_A)], None).unwrap_err();
    assert!(matches!(
        error,
        ClaimError::State(StateError::Unsafe { .. })
    ));
    assert_eq!(*kernel.log.borrow(), Vec::<String>::new());
}

#[test]
fn huge_pages_are_reserved_once_and_given_back_with_the_last_claim() {
    let tree = lab();
    let (sysfs, kernel) = (tree.sysfs(), Played::on(&tree));
    let claimer: Claimer<'_> = claimer(&sysfs, &kernel, &tree);
    let wanted = [bdf(NVME_A)];
    let claims = claimer.plan(&wanted, false).unwrap();
    let pool = "sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";
    let count = |sysfs: &Sysfs| {
        let text = std::fs::read_to_string(sysfs.locate(&Path::new("/").join(pool))).unwrap();
        text.parse::<u64>().unwrap()
    };
    let planned = claimer.reserve(&claims, Bytes(512 << 20), true).unwrap();
    assert_eq!((planned[0].after_count, count(&sysfs)), (256, 0));
    claimer.reserve(&claims, Bytes(512 << 20), false).unwrap();
    let changed = claimer.reserve(&claims, Bytes(1 << 30), false).unwrap();
    assert_eq!(
        changed[0].to_string(),
        "node 0: huge pages of 2 MiB: 256 -> 512 (1 GiB)"
    );
    let again = claimer.reserve(&claims, Bytes(1 << 30), false).unwrap();
    assert_eq!(again[0].before_count, again[0].after_count);
    let error = claimer.reserve(&claims, Bytes(1 << 40), false).unwrap_err();
    assert!(matches!(&error, ClaimError::Huge(_)), "{error}");
    assert!(
        error
            .to_string()
            .contains("only 1000 of 524288 huge pages of 2 MiB")
    );
    assert_eq!(count(&sysfs), 512);
    claimer.claim(&wanted, None).unwrap();
    claimer.release(None).unwrap();
    assert_eq!(count(&sysfs), 0);
}
