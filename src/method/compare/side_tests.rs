//! Sides that are opened again for their windows.
#![allow(clippy::unwrap_used)]
use super::*;
use crate::backend::{Device, NullDevice};
use crate::reactor::Control;
use crate::session::Silent;
use crate::sys::clock::MachineClock;
use crate::sys::cpu::AllowedCpus;
use crate::sysfs::Sysfs;
use crate::units::Bytes;
use std::path::Path;
use std::sync::Arc;

const FILE_BYTES: usize = 1 << 20;

#[test]
fn a_name_that_leads_elsewhere_now_is_refused() {
    let facts = |identity: &str, bytes| DeviceFacts {
        identity: Some(identity.to_owned()),
        ..NullDevice::new("/dev/nvme0n1", Bytes(bytes))
            .facts()
            .clone()
    };
    let planned = [facts("S1 ns:1", 1 << 30)];
    assert!(still_the_same(&planned, &planned).is_ok());
    for other in [facts("S1 ns:2", 1 << 30), facts("S1 ns:1", 1 << 20)] {
        let error = still_the_same(&planned, &[other]).unwrap_err();
        assert!(matches!(error, SessionError::Unclear { .. }), "{error}");
    }
}

fn session() -> Session {
    let sysfs = Sysfs::host();
    Session {
        allowed: AllowedCpus::at_start().unwrap(),
        clock: MachineClock::new(&sysfs),
        control: Arc::new(Control::default()),
        tool_cost_ns: None,
        sysfs,
    }
}

/// A side that writes to this file, not open.
fn writing(session: &Session, path: &Path) -> Side {
    let name = path.display().to_string();
    let job = "steps: [{ rw: randwrite, bs: 4k, runtime: 1s }]";
    let job = Job::from_yaml(job, "job.yaml").unwrap();
    let spec = SideSpec {
        label: "A",
        devices: vec![name.clone()],
        backend: BackendChoice::Uring,
    };
    let leave = Leave {
        consent: Consent {
            allow_write: vec![name],
            ..Consent::default()
        },
        ..Leave::default()
    };
    let opened = open_side(session, &job, spec, &leave, 1, &mut Silent);
    let mut side = opened.unwrap();
    side.opened = None;
    side
}

#[test]
fn what_comes_back_as_another_is_judged_anew_and_written_only_after_that() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    std::fs::write(&path, vec![0_u8; FILE_BYTES]).unwrap();
    let session = session();
    let side = writing(&session, &path);
    let again = |is_handed| reopen(&side, &session, is_handed, &mut Silent);
    assert!(again(false).is_ok());
    // Another file by the same name: as a disk that the kernel got back.
    let other = folder.path().join("other");
    std::fs::write(&other, vec![0_u8; FILE_BYTES]).unwrap();
    std::fs::rename(&other, &path).unwrap();
    let error = again(false).unwrap_err();
    assert!(matches!(error, SessionError::Guard(_)), "{error}");
    assert!(again(true).is_ok());
    // Somebody made swap space of it meanwhile.
    let mut content = vec![0_u8; FILE_BYTES];
    content[4086..4096].copy_from_slice(b"SWAPSPACE2");
    std::fs::write(&path, content).unwrap();
    let error = again(true).unwrap_err();
    assert!(matches!(error, SessionError::Guard(_)), "{error}");
    assert!(error.to_string().contains("swap"), "{error}");
}
