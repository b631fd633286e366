//! What a namespace is sent for an I/O, and how it is known that it is gone.

use super::find::Found;
use crate::backend::ring_queue::{Fate, Rules};
use crate::backend::{DeviceFacts, Gone, QueueSpec};
use crate::errno::Errno;
use crate::request::{Io, Op, Status};
use crate::sys::nvme::{NvmeRequest, Passthrough};
use crate::sysfs::nvme_controller::{Controller, is_shown};
use crate::sysfs::{DevNum, Sysfs};

/// Status Code Type "path related": the host's driver gave up on the controller (Base, "Status Code – Path
/// Related Status").
const PATH_RELATED: u8 = 3;
/// Generic status "invalid namespace or format": the namespace was deleted or detached.
const INVALID_NAMESPACE: Status = Status::Nvme { sct: 0, sc: 0x0b };

/// What may be sent.
#[derive(Debug)]
pub struct NvmeRules {
    block_bytes: u64,
    slot_bytes: u32,
    max_command_bytes: u64,
    writes: bool,
    trim: bool,
    /// Most bytes of a Write Zeroes; 0 where there is none.
    zeroes_bytes: u64,
    probe: bool,
    /// The generic node, to be asked whether it is still there.
    generic: String,
    dev: DevNum,
    /// Whether the kernel showed controllers for it when it was opened.
    had_controllers: bool,
    sysfs: Sysfs,
}

impl NvmeRules {
    pub(super) fn new(
        facts: &DeviceFacts,
        found: &Found,
        spec: QueueSpec,
        writes: bool,
        sysfs: &Sysfs,
    ) -> Self {
        Self {
            block_bytes: u64::from(facts.logical_block.bytes()),
            slot_bytes: spec.slot_bytes,
            max_command_bytes: facts.max_command.map_or(u64::MAX, |bytes| bytes.0),
            writes,
            trim: facts.trim.is_ok(),
            zeroes_bytes: (facts.write_zeroes.as_ref())
                .map_or(0, |most| most.map_or(u64::MAX, |bytes| bytes.0)),
            probe: facts.probe.is_ok(),
            generic: found.generic.clone(),
            dev: found.dev,
            had_controllers: !found.controllers.is_empty(),
            sysfs: sysfs.clone(),
        }
    }

    /// Whether the kernel has taken the node away, or is about to: no controller leads to it any more.
    fn is_removed(&self) -> bool {
        if !is_shown(&self.sysfs, self.dev) {
            return true;
        }
        let found = Controller::of_generic(&self.sysfs, &self.generic);
        self.had_controllers && found.is_ok_and(|found| found.iter().all(Controller::is_lost))
    }
}

impl Rules for NvmeRules {
    type Kind = Passthrough;

    /// EPERM for a change on a queue that was opened without writes, EOPNOTSUPP for what the controller
    /// does not have, EINVAL for nothing, or more than a slot or a command holds.
    #[inline]
    fn request(&self, io: Io) -> Result<NvmeRequest, Errno> {
        if !self.writes && !matches!(io.op, Op::Read | Op::Probe) {
            return Err(Errno(libc::EPERM));
        }
        let Io { lba, blocks, op } = io;
        if matches!(op, Op::Read | Op::Write) {
            let bytes = u64::from(blocks) * self.block_bytes;
            if bytes == 0 || bytes > u64::from(self.slot_bytes) || bytes > self.max_command_bytes {
                return Err(Errno(libc::EINVAL));
            }
        }
        match op {
            Op::Read => Ok(NvmeRequest::Read { lba, blocks }),
            Op::Write => Ok(NvmeRequest::Write { lba, blocks }),
            Op::Trim if self.trim => Ok(NvmeRequest::Deallocate { lba, blocks }),
            Op::WriteZeroes if self.zeroes_bytes > 0 => {
                let bytes = u64::from(blocks) * self.block_bytes;
                if bytes == 0 || bytes > self.zeroes_bytes {
                    return Err(Errno(libc::EINVAL));
                }
                Ok(NvmeRequest::WriteZeroes { lba, blocks })
            }
            Op::Probe if self.probe => Ok(NvmeRequest::Probe),
            Op::Flush => Ok(NvmeRequest::Flush),
            Op::Trim | Op::WriteZeroes | Op::Probe => Err(Errno(libc::EOPNOTSUPP)),
        }
    }

    /// A removed namespace is told in many ways: ENODEV; EINVAL from a multipath head without a path; EINTR
    /// for commands that were cancelled; "path related" statuses from the driver. All but the first mean
    /// other things too, and so the kernel is asked whether it still shows the node.
    #[cold]
    fn fate(&self, status: Status) -> Fate {
        if status.is_gone() || status == INVALID_NAMESPACE {
            return Fate::Gone(Gone(status));
        }
        let may_be = match status {
            Status::Errno(errno) => matches!(
                errno,
                Errno(libc::EINTR | libc::EINVAL | libc::EIO | libc::EAGAIN)
            ),
            Status::Nvme { sct, .. } => sct == PATH_RELATED,
            _ => false,
        };
        match may_be {
            false => Fate::Here,
            true if self.is_removed() => Fate::Gone(Gone(Status::Errno(Errno(libc::ENODEV)))),
            true => Fate::MayBeGone,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn rules(root: &std::path::Path, writes: bool) -> NvmeRules {
        NvmeRules {
            block_bytes: 512,
            slot_bytes: 1 << 20,
            max_command_bytes: 128 << 10,
            writes,
            trim: false,
            zeroes_bytes: 0,
            probe: true,
            generic: "ng0n1".to_owned(),
            dev: DevNum {
                major: 243,
                minor: 0,
            },
            had_controllers: false,
            sysfs: Sysfs::at(root),
        }
    }

    #[test]
    fn limits_and_consent_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (reading, writing) = (rules(dir.path(), false), rules(dir.path(), true));
        let io = |op, blocks| Io { lba: 7, blocks, op };
        let errno = |code| Err(Errno(code));
        assert_eq!(
            reading.request(io(Op::Read, 256)),
            Ok(NvmeRequest::Read {
                lba: 7,
                blocks: 256
            })
        );
        assert_eq!(reading.request(io(Op::Read, 257)), errno(libc::EINVAL));
        assert_eq!(reading.request(io(Op::Read, 0)), errno(libc::EINVAL));
        for op in [Op::Write, Op::Trim, Op::WriteZeroes, Op::Flush] {
            assert_eq!(reading.request(io(op, 1)), errno(libc::EPERM), "{op:?}");
        }
        assert_eq!(reading.request(Io::PROBE), Ok(NvmeRequest::Probe));
        assert_eq!(writing.request(Io::FLUSH), Ok(NvmeRequest::Flush));
        assert_eq!(writing.request(io(Op::Trim, 1)), errno(libc::EOPNOTSUPP));
        let zeroes = |rules: &NvmeRules, blocks| rules.request(io(Op::WriteZeroes, blocks));
        assert_eq!(zeroes(&writing, 1), errno(libc::EOPNOTSUPP));
        let able = NvmeRules {
            zeroes_bytes: 4096,
            ..writing
        };
        let eight = NvmeRequest::WriteZeroes { lba: 7, blocks: 8 };
        assert_eq!(zeroes(&able, 8), Ok(eight));
        assert_eq!(zeroes(&able, 9), errno(libc::EINVAL));
        assert_eq!(zeroes(&able, 0), errno(libc::EINVAL));
    }

    #[test]
    fn a_failure_is_the_end_only_where_the_node_is_no_longer_shown() {
        let dir = tempfile::tempdir().unwrap();
        let rules = rules(dir.path(), false);
        let link = dir.path().join("sys/dev/char/243:0");
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::fs::write(&link, "").unwrap();
        let gone = Fate::Gone(Gone(Status::Errno(Errno(libc::ENODEV))));
        let doubtful = [
            Status::Errno(Errno(libc::EINTR)),
            Status::Errno(Errno(libc::EINVAL)),
            Status::Nvme { sct: 3, sc: 0x71 },
        ];
        for status in doubtful {
            assert_eq!(rules.fate(status), Fate::MayBeGone, "{status:?}");
        }
        std::fs::remove_file(&link).unwrap();
        for status in doubtful {
            assert_eq!(rules.fate(status), gone, "{status:?}");
        }
        std::fs::write(&link, "").unwrap();
        let mut head = rules;
        let path = dir.path().join("sys/subsys/nvme1");
        std::fs::create_dir_all(&path).unwrap();
        std::fs::create_dir_all(dir.path().join("sys/subsys/ng0n1")).unwrap();
        std::fs::create_dir_all(dir.path().join("sys/class/nvme-generic")).unwrap();
        let class = dir.path().join("sys/class/nvme-generic/ng0n1");
        std::os::unix::fs::symlink(dir.path().join("sys/subsys/ng0n1"), class).unwrap();
        head.had_controllers = true;
        for (state, ends) in [
            ("live", Fate::MayBeGone),
            ("connecting", Fate::MayBeGone),
            ("deleting", gone),
        ] {
            std::fs::write(path.join("state"), state).unwrap();
            assert_eq!(head.fate(doubtful[1]), ends, "{state}");
        }
        std::fs::remove_dir_all(&path).unwrap();
        assert_eq!(head.fate(doubtful[1]), gone, "a head without a path");
        let rules = head;
        let unread = Status::Nvme { sct: 2, sc: 0x81 };
        assert_eq!(rules.fate(unread), Fate::Here, "a medium error is no end");
        assert_eq!(rules.fate(Status::Errno(Errno(libc::ENODEV))), gone);
    }
}
