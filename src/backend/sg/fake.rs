//! A SCSI disk in memory, behind the seam where the kernel's sg driver would be.

use crate::errno::Errno;
use crate::proto::scsi::opcode;
use crate::sys::buffers::Arena;
use crate::sys::sg::{
    COMMANDS_PER_FILE, Command, CommandFile, CommandNode, Done, InLane, NodeLimits, Payload,
    PollSlot,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How one command to a block goes wrong.
#[derive(Clone, Copy)]
pub(super) enum Fault {
    Sense { key: u8, asc: u8 },
    Short { residual_bytes: u32 },
    Host(u8),
}

/// What the disk is and what happened to it.
pub(super) struct Disk {
    pub(super) block_bytes: usize,
    pub(super) data: Vec<u8>,
    /// Told instead of its true size by READ CAPACITY (16).
    pub(super) told_blocks: Option<u64>,
    /// Knows READ CAPACITY (16), VPD pages and the like.
    pub(super) is_modern: bool,
    /// Codes of the log pages that it says it has.
    pub(super) logs: [u8; 5],
    pub(super) has_unmap: bool,
    pub(super) max_unmap_blocks: u32,
    /// Told as the most blocks of a WRITE SAME; 0: nothing is told.
    pub(super) max_same_blocks: u32,
    /// Says that it deallocates by WRITE SAME.
    pub(super) trims_by_same: bool,
    pub(super) vendor: [u8; 8],
    pub(super) write_protected: bool,
    pub(super) max_sectors_bytes: u32,
    pub(super) elements_count: u32,
    pub(super) attentions: Vec<u8>,
    /// Key and code with which TEST UNIT READY fails.
    pub(super) not_ready: Option<(u8, u8)>,
    pub(super) faults: HashMap<u64, Fault>,
    /// Answers to ATA commands by their code; a SAS disk has none.
    pub(super) ata: HashMap<u8, Vec<u8>>,
    /// A command ends only in so many looks after it was sent.
    pub(super) looks: u32,
    /// The last one sent ends first.
    pub(super) last_first: bool,
    /// The next command is refused by the kernel.
    pub(super) refuse: Option<Errno>,
    /// CDBs in the order in which they were sent.
    pub(super) sent: Vec<Vec<u8>>,
    pub(super) direct_count: u32,
    pub(super) in_flight: u32,
    pub(super) most_in_flight: u32,
    pub(super) files_count: u32,
    pub(super) reserve_bytes: u32,
}

#[derive(Clone)]
pub(super) struct FakeNode(Arc<Mutex<Disk>>);

impl FakeNode {
    pub(super) fn new(block_bytes: usize, blocks: usize) -> Self {
        let data = (0..block_bytes * blocks).map(|at| (at / block_bytes * 7 + at) as u8);
        Self(Arc::new(Mutex::new(Disk {
            block_bytes,
            data: data.collect(),
            told_blocks: None,
            is_modern: true,
            logs: [0x00, 0x02, 0x03, 0x0d, 0x2f],
            has_unmap: true,
            max_unmap_blocks: 16,
            max_same_blocks: 64,
            trims_by_same: false,
            vendor: *b"FAKE    ",
            write_protected: false,
            max_sectors_bytes: 1 << 20,
            elements_count: 128,
            attentions: Vec::new(),
            not_ready: None,
            faults: HashMap::new(),
            ata: HashMap::new(),
            looks: 0,
            last_first: false,
            refuse: None,
            sent: Vec::new(),
            direct_count: 0,
            in_flight: 0,
            most_in_flight: 0,
            files_count: 0,
            reserve_bytes: 0,
        })))
    }

    /// From now on commands end so many looks after they were sent, in this order.
    pub(super) fn slow(&self, looks: u32, last_first: bool) {
        let mut disk = self.disk();
        (disk.looks, disk.last_first, disk.most_in_flight) = (looks, last_first, 0);
    }

    pub(super) fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CommandNode for FakeNode {
    type File = FakeFile;

    fn open(&self, reserve_bytes: u32) -> Result<FakeFile, Errno> {
        let mut disk = self.disk();
        disk.files_count += 1;
        disk.reserve_bytes = reserve_bytes;
        drop(disk);
        Ok(FakeFile {
            node: self.clone(),
            flying: Vec::new(),
        })
    }

    fn limits(&self) -> Result<NodeLimits, Errno> {
        let disk = self.disk();
        Ok(NodeLimits {
            max_sectors_bytes: disk.max_sectors_bytes,
            elements_count: disk.elements_count,
            version: 30_536,
        })
    }
}

/// A command on its way, with the data it brings.
struct Flying {
    place: u8,
    command: Command,
    data: Vec<u8>,
    looks: u32,
}

pub(super) struct FakeFile {
    node: FakeNode,
    flying: Vec<Flying>,
}

impl CommandFile for FakeFile {
    fn send(
        &mut self,
        place: u8,
        command: &Command,
        buffers: &mut Arena,
        _lane: InLane,
    ) -> Result<(), Errno> {
        let mut disk = self.node.disk();
        if let Some(errno) = disk.refuse {
            return Err(errno);
        }
        assert!(self.flying.len() < COMMANDS_PER_FILE, "EDOM");
        assert!(self.flying.iter().all(|other| other.place != place));
        let limit = disk.max_sectors_bytes;
        if command.payload.length_bytes() > limit {
            return Err(Errno(libc::EINVAL));
        }
        let data = match command.payload {
            Payload::Write {
                offset_bytes,
                length_bytes,
            } => part(buffers, command.slot, offset_bytes, length_bytes).to_vec(),
            Payload::List(list) => list.to_vec(),
            Payload::None | Payload::Read { .. } => Vec::new(),
        };
        disk.sent.push(command.cdb.as_bytes().to_vec());
        disk.direct_count += u32::from(command.direct);
        disk.in_flight += 1;
        disk.most_in_flight = disk.most_in_flight.max(disk.in_flight);
        let looks = disk.looks;
        self.flying.push(Flying {
            place,
            command: *command,
            data,
            looks,
        });
        Ok(())
    }

    fn reap(&mut self, buffers: &mut Arena, _lane: InLane) -> Result<Option<Done>, Errno> {
        let mut disk = self.node.disk();
        let is_ripe = |flying: &Flying| flying.looks == 0;
        let found = if disk.last_first {
            self.flying.iter().rposition(is_ripe)
        } else {
            self.flying.iter().position(is_ripe)
        };
        let Some(index) = found else {
            self.flying.iter_mut().for_each(|flying| flying.looks -= 1);
            return Ok(None);
        };
        let flying = self.flying.remove(index);
        disk.in_flight -= 1;
        let mut done = Done {
            place: flying.place,
            status: 0,
            host: 0,
            driver: 0,
            residual_bytes: 0,
            sense: None,
            was_direct: flying.command.direct,
        };
        match disk.answer(flying.command.cdb.as_bytes(), &flying.data) {
            Ok(answer) => {
                if let Payload::Read {
                    offset_bytes,
                    length_bytes,
                } = flying.command.payload
                {
                    let room = part(buffers, flying.command.slot, offset_bytes, length_bytes);
                    let length = answer.len().min(room.len());
                    room[..length].copy_from_slice(&answer[..length]);
                    done.residual_bytes = length_bytes - length as u32;
                }
            }
            Err(Fault::Sense { key, asc }) => {
                (done.status, done.driver) = (2, 8);
                let mut bytes = [0xf0, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, asc, 0, 0, 0, 0, 0];
                let lba = place_of(flying.command.cdb.as_bytes()).0 as u32;
                bytes[3..7].copy_from_slice(&lba.to_be_bytes());
                done.sense = crate::proto::scsi::Sense::decode(&bytes);
            }
            Err(Fault::Short { residual_bytes }) => done.residual_bytes = residual_bytes,
            Err(Fault::Host(host)) => done.host = host,
        }
        Ok(Some(done))
    }

    fn look(files: &mut [Self], ready: &mut [PollSlot], _timeout_ms: u32) -> Result<(), Errno> {
        for (file, slot) in files.iter_mut().zip(ready) {
            let ripe = file.flying.iter().any(|flying| flying.looks == 0);
            if !ripe {
                file.flying.iter_mut().for_each(|flying| flying.looks -= 1);
            }
            slot.mark(ripe);
        }
        Ok(())
    }
}

fn part(buffers: &mut Arena, slot: u32, offset_bytes: u32, length_bytes: u32) -> &mut [u8] {
    let end = (offset_bytes + length_bytes) as usize;
    &mut buffers.slot(slot as usize)[offset_bytes as usize..end]
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// First block and number of blocks of a READ or WRITE.
pub(super) fn place_of(cdb: &[u8]) -> (u64, u64) {
    match cdb.len() {
        10 => (number(&cdb[2..6]), number(&cdb[7..9])),
        16 => (number(&cdb[2..10]), number(&cdb[10..14])),
        _ => (0, 0),
    }
}

impl Disk {
    fn blocks(&self) -> u64 {
        (self.data.len() / self.block_bytes) as u64
    }

    /// Log pages: 38 °C of at most 65, a failure foreseen at 39 °C, 300 corrected and 2 uncorrected reads.
    fn log(&self, code: u8) -> Option<Vec<u8>> {
        if !self.is_modern {
            return None;
        }
        Some(match code {
            0x00 => [&[0, 0, 0, 5], &self.logs[..]].concat(),
            0x0d => vec![0x0d, 0, 0, 12, 0, 0, 1, 2, 0, 38, 0, 1, 1, 2, 0, 65],
            0x2f => vec![0x2f, 0, 0, 7, 0, 0, 3, 3, 0x5d, 0x10, 39],
            0x03 => vec![3, 0, 0, 11, 0, 3, 0, 2, 1, 44, 0, 6, 0, 1, 2],
            // Garbled: it says that it is the page of reads.
            0x02 => vec![3, 0, 0, 5, 0, 6, 0, 1, 9],
            _ => return None,
        })
    }

    fn answer(&mut self, cdb: &[u8], data: &[u8]) -> Result<Vec<u8>, Fault> {
        let unknown = Fault::Sense { key: 5, asc: 0x20 };
        if cdb[0] != opcode::INQUIRY
            && let Some(asc) = self.attentions.pop()
        {
            return Err(Fault::Sense { key: 6, asc });
        }
        if let (opcode::TEST_UNIT_READY, Some((key, asc))) = (cdb[0], self.not_ready) {
            return Err(Fault::Sense { key, asc });
        }
        match cdb[0] {
            opcode::TEST_UNIT_READY
            | opcode::SYNCHRONIZE_CACHE_10
            | opcode::SYNCHRONIZE_CACHE_16 => Ok(Vec::new()),
            opcode::INQUIRY if cdb[1] == 1 => self.page(cdb[2]).ok_or(unknown),
            opcode::INQUIRY => {
                let version = if self.is_modern { 6 } else { 3 };
                let mut answer = vec![0, 0, version, 2, 31, 0, 0, 2];
                answer.extend(self.vendor);
                answer.extend(b"DISK IN MEMORY  0007");
                Ok(answer)
            }
            opcode::READ_CAPACITY_10 => {
                let last = self.told_blocks.unwrap_or(self.blocks()) - 1;
                let last = u32::try_from(last).unwrap_or(u32::MAX);
                Ok([last.to_be_bytes(), (self.block_bytes as u32).to_be_bytes()].concat())
            }
            opcode::SERVICE_ACTION_IN_16 if self.is_modern => {
                let last = self.told_blocks.unwrap_or(self.blocks()) - 1;
                let mut answer = vec![0; 32];
                answer[..8].copy_from_slice(&last.to_be_bytes());
                answer[8..12].copy_from_slice(&(self.block_bytes as u32).to_be_bytes());
                answer[13] = 3;
                Ok(answer)
            }
            opcode::MODE_SENSE_6 => {
                let wp = if self.write_protected { 0x80 } else { 0 };
                let mut answer = vec![23, 0, wp, 0, 0x08, 0x12, 0x04];
                answer.resize(24, 0);
                Ok(answer)
            }
            opcode::LOG_SENSE => self.log(cdb[2] & 0x3f).ok_or(unknown),
            opcode::UNMAP => self.unmap(data),
            opcode::WRITE_SAME_16 => self.write_same(cdb, data),
            opcode::ATA_PASS_THROUGH_16 => self.ata.get(&cdb[14]).cloned().ok_or(unknown),
            opcode::READ_10 | opcode::READ_16 | opcode::WRITE_10 | opcode::WRITE_16 => {
                self.transfer(cdb, data)
            }
            _ => Err(unknown),
        }
    }

    fn transfer(&mut self, cdb: &[u8], data: &[u8]) -> Result<Vec<u8>, Fault> {
        let (lba, blocks) = place_of(cdb);
        if lba + blocks > self.blocks() {
            return Err(Fault::Sense { key: 5, asc: 0x21 });
        }
        let fault = (lba..lba + blocks).find_map(|block| self.faults.get(&block).copied());
        let recovered = matches!(fault, Some(Fault::Sense { key: 1, .. }));
        if let Some(fault) = fault.filter(|_| !recovered) {
            return Err(fault);
        }
        let range = lba as usize * self.block_bytes..(lba + blocks) as usize * self.block_bytes;
        if matches!(cdb[0], opcode::WRITE_10 | opcode::WRITE_16) {
            self.data[range].copy_from_slice(data);
            return Ok(Vec::new());
        }
        match fault {
            // It succeeds: but this file has no way to move data and tell of it, so only that is told.
            Some(fault) => Err(fault),
            None => Ok(self.data[range].to_vec()),
        }
    }

    fn unmap(&mut self, list: &[u8]) -> Result<Vec<u8>, Fault> {
        assert_eq!((number(&list[..2]), number(&list[2..4])), (22, 16));
        let (lba, blocks) = (
            number(&list[8..16]) as usize,
            number(&list[16..20]) as usize,
        );
        assert!(self.has_unmap && blocks <= self.max_unmap_blocks as usize);
        self.data[lba * self.block_bytes..(lba + blocks) * self.block_bytes].fill(0);
        Ok(Vec::new())
    }

    fn write_same(&mut self, cdb: &[u8], block: &[u8]) -> Result<Vec<u8>, Fault> {
        let (lba, blocks) = place_of(cdb);
        assert_eq!(block.len(), self.block_bytes);
        let most = u64::from(self.max_same_blocks);
        assert!((1..=most).contains(&blocks), "{blocks} blocks");
        let at = lba as usize * self.block_bytes;
        self.data[at..at + blocks as usize * self.block_bytes]
            .chunks_mut(self.block_bytes)
            .for_each(|each| each.copy_from_slice(block));
        Ok(Vec::new())
    }

    fn page(&self, code: u8) -> Option<Vec<u8>> {
        let body: Vec<u8> = match code {
            _ if !self.is_modern => return None,
            0x00 => vec![0x00, 0x80, 0x83, 0xb0, 0xb1, 0xb2],
            0x80 => b"  FAKE0001".to_vec(),
            // The vendor's own name comes first, as behind the translation of SATA.
            0x83 => [
                &[2, 1, 0, 4][..],
                b"FAKE",
                &[1, 3, 0, 8, 0x50, 0, 0xc5, 0, 0, 0, 0, 9],
            ]
            .concat(),
            0xb0 => {
                let mut body = vec![0; 60];
                body[16..20].copy_from_slice(&self.max_unmap_blocks.to_be_bytes());
                body[36..40].copy_from_slice(&self.max_same_blocks.to_be_bytes());
                body
            }
            0xb1 => vec![0x29, 0x04],
            0xb2 => vec![
                0,
                u8::from(self.has_unmap) << 7 | u8::from(self.trims_by_same) << 6,
            ],
            _ => return None,
        };
        Some([&[0, code, 0, body.len() as u8][..], &body].concat())
    }
}
