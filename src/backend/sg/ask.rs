//! What a SCSI device says of itself: one command at a time, before anything is measured.

use crate::errno::Errno;
use crate::proto::scsi::{
    CAPACITY_10_BYTES, CAPACITY_16_BYTES, Caching, Capacity, Cdb, Inquiry, Malformed, ModeHeader,
    Sense, SenseKey, Temperature, page, sam, vpd,
};
use crate::sys::sg::{Command, CommandFile, Payload};
use crate::sys::sg_lane::{Ended, NotSent, SgLane};
use crate::sysfs::Sysfs;
use std::time::{Duration, Instant};

/// A device that does not answer a question for so long is given up; the kernel aborts the command before.
const PATIENCE: Duration = Duration::from_secs(15);
const TIMEOUT_MS: u32 = 10_000;
const ANSWER_BYTES: u32 = 4096;
/// Devices of SPC-2 know only one byte of allocation length.
const SHORT_BYTES: u16 = 252;
/// Unit attentions can be stacked: each is told once. More than these are no start any more.
const MOST_ATTENTIONS: usize = 4;
/// SPC-3: from here on READ CAPACITY (16) may be asked first.
const SPC_3: u8 = 0x05;

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("the kernel refuses the command: {0}")]
    Kernel(Errno),
    #[error("{0}")]
    Sense(Sense),
    #[error("{0}")]
    Status(String),
    #[error("no answer within {} s", PATIENCE.as_secs())]
    Late,
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

/// What was learned.
#[derive(Debug, Clone)]
pub(super) struct Learned {
    pub(super) inquiry: Inquiry,
    pub(super) serial: Option<String>,
    pub(super) identities: Vec<String>,
    pub(super) capacity: Capacity,
    pub(super) limits: vpd::BlockLimits,
    pub(super) rotation: vpd::Rotation,
    pub(super) provisioning: Option<vpd::Provisioning>,
    pub(super) caching: Option<Caching>,
    pub(super) is_write_protected: bool,
    pub(super) celsius: Option<u8>,
    /// Whether TEST UNIT READY can be sent, or why not.
    pub(super) probe: Result<(), String>,
    /// Unit attentions that came first, in words; each question was asked again.
    pub(super) attentions: Vec<String>,
}

/// Asks, one command at a time.
pub(super) struct Asker<F> {
    lane: SgLane<F>,
    attentions: Vec<String>,
}

impl<F: CommandFile> Asker<F> {
    pub(super) fn new(sysfs: &Sysfs, file: F) -> Result<Self, Errno> {
        Ok(Self {
            lane: SgLane::new(sysfs, vec![file], 1, ANSWER_BYTES)?,
            attentions: Vec::new(),
        })
    }

    /// Sees to it that the device is ready; a unit attention is taken note of, and the question repeated. RAID
    /// controllers need not know the command: then it is no error, but it cannot be measured with either.
    fn ready(&mut self) -> Result<Result<(), String>, NoAnswer> {
        match self.ask(Cdb::test_unit_ready(), 0) {
            Ok(_) => Ok(Ok(())),
            Err(NoAnswer::Sense(sense))
                if !matches!(sense.key, SenseKey::NOT_READY | SenseKey::UNIT_ATTENTION) =>
            {
                Ok(Err(format!("it fails TEST UNIT READY: {sense}")))
            }
            Err(error) => Err(error),
        }
    }

    /// Asks everything.
    pub(super) fn learn(mut self) -> Result<Learned, (&'static str, NoAnswer)> {
        let inquiry = self.ask(Cdb::inquiry(SHORT_BYTES), SHORT_BYTES.into());
        let inquiry = inquiry
            .and_then(|data| Ok(Inquiry::decode(&data)?))
            .map_err(|error| ("INQUIRY", error))?;
        let probe = match inquiry.is_disk() {
            true => self.ready().map_err(|error| ("TEST UNIT READY", error))?,
            false => Ok(()),
        };
        let pages = self.vpd(vpd::page::SUPPORTED).unwrap_or_default();
        let pages = vpd::supported(&pages).to_vec();
        let mut page = |code| match pages.contains(&code) {
            true => self.vpd(code).ok(),
            false => None,
        };
        let serial = page(vpd::page::SERIAL).and_then(|page| vpd::serial(&page));
        let names = page(vpd::page::IDENTIFICATION).unwrap_or_default();
        let limits = page(vpd::page::LIMITS).and_then(|page| vpd::BlockLimits::decode(&page).ok());
        let turns = page(vpd::page::CHARACTERISTICS);
        let turns = turns.and_then(|page| vpd::Rotation::decode(&page).ok());
        let ways = page(vpd::page::PROVISIONING);
        let capacity = match inquiry.is_disk() {
            true => self.capacity(inquiry.version),
            false => Ok(Capacity::default()),
        };
        let capacity = capacity.map_err(|error| ("READ CAPACITY", error))?;
        let mode = self.mode().ok();
        Ok(Learned {
            inquiry,
            serial,
            identities: vpd::identities(&names),
            capacity,
            limits: limits.unwrap_or_default(),
            rotation: turns.unwrap_or(vpd::Rotation::NotReported),
            provisioning: ways.and_then(|page| vpd::Provisioning::decode(&page).ok()),
            is_write_protected: mode.is_some_and(|(header, _)| header.is_write_protected),
            caching: mode.and_then(|(_, caching)| caching),
            celsius: self.celsius(),
            probe,
            attentions: self.attentions,
        })
    }

    fn vpd(&mut self, code: u8) -> Result<Vec<u8>, NoAnswer> {
        let asked = usize::from(SHORT_BYTES);
        let data = self.ask(Cdb::inquiry_vpd(code, SHORT_BYTES), SHORT_BYTES.into())?;
        let told = match data[..] {
            [_, _, high, low, ..] => 4 + usize::from(u16::from_be_bytes([high, low])),
            _ => 0,
        };
        if told <= asked {
            return Ok(data);
        }
        let bytes = told.min(ANSWER_BYTES as usize) as u16;
        self.ask(Cdb::inquiry_vpd(code, bytes), bytes.into())
    }

    /// The long form tells more; the short one is for devices that know no other.
    fn capacity(&mut self, version: u8) -> Result<Capacity, NoAnswer> {
        if version >= SPC_3
            && let Ok(capacity) = self.capacity_16()
        {
            return Ok(capacity);
        }
        let data = self.ask(Cdb::read_capacity_10(), CAPACITY_10_BYTES as u32)?;
        match Capacity::decode_10(&data)? {
            Some(capacity) => Ok(capacity),
            None => self.capacity_16(),
        }
    }

    fn capacity_16(&mut self) -> Result<Capacity, NoAnswer> {
        let bytes = CAPACITY_16_BYTES as u32;
        let data = self.ask(Cdb::read_capacity_16(bytes), bytes)?;
        Ok(Capacity::decode_16(&data)?)
    }

    /// The header, and the caching page where there is one.
    fn mode(&mut self) -> Result<(ModeHeader, Option<Caching>), NoAnswer> {
        const CACHING: u8 = 0x08;
        let short = Cdb::mode_sense_6(CACHING, SHORT_BYTES as u8);
        let (header, data) = match self.ask(short, SHORT_BYTES.into()) {
            Ok(data) => (ModeHeader::decode_6(&data)?, data),
            Err(_) => {
                let long = Cdb::mode_sense_10(CACHING, SHORT_BYTES);
                let data = self.ask(long, SHORT_BYTES.into())?;
                (ModeHeader::decode_10(&data)?, data)
            }
        };
        let page = data.get(header.page_at_bytes..).unwrap_or_default();
        Ok((header, Caching::decode(page).ok()))
    }

    fn celsius(&mut self) -> Option<u8> {
        let data = self.ask(
            Cdb::log_sense(page::TEMPERATURE, SHORT_BYTES),
            SHORT_BYTES.into(),
        );
        Temperature::decode(&data.ok()?).ok()?.celsius
    }

    /// One question; asked again after a unit attention, which is counted.
    pub(super) fn ask(&mut self, cdb: Cdb, bytes: u32) -> Result<Vec<u8>, NoAnswer> {
        loop {
            match self.once(cdb, bytes) {
                Err(NoAnswer::Sense(sense))
                    if sense.key == SenseKey::UNIT_ATTENTION
                        && self.attentions.len() < MOST_ATTENTIONS =>
                {
                    self.attentions.push(sense.to_string());
                }
                other => return other,
            }
        }
    }

    fn once(&mut self, cdb: Cdb, bytes: u32) -> Result<Vec<u8>, NoAnswer> {
        // The buffer is still the device's after a question that was never answered.
        if self.lane.in_flight() > 0 {
            return Err(NoAnswer::Late);
        }
        self.lane.buffer(0)[..bytes as usize].fill(0);
        let payload = match bytes {
            0 => Payload::None,
            length_bytes => Payload::Read {
                offset_bytes: 0,
                length_bytes,
            },
        };
        let command = Command {
            slot: 0,
            cdb,
            payload,
            timeout_ms: TIMEOUT_MS,
            direct: false,
        };
        match self.lane.send(&command) {
            Ok(()) => {}
            Err(NotSent::Errno(errno)) => return Err(NoAnswer::Kernel(errno)),
            Err(NotSent::Full) => return Err(NoAnswer::Late),
        }
        let ended = self.await_answer()?;
        let done = ended.done;
        let recovered = done
            .sense
            .is_some_and(|sense| sense.key == SenseKey::RECOVERED_ERROR);
        if done.status == sam::GOOD && done.host == 0 || recovered {
            let got = bytes.saturating_sub(done.residual_bytes);
            return Ok(self.lane.buffer(0)[..got as usize].to_vec());
        }
        Err(match done.sense {
            Some(sense) => NoAnswer::Sense(sense),
            None => NoAnswer::Status(match done.host {
                0 => crate::proto::scsi::in_words(done.status, 0, 0, 0),
                host => format!("host adapter: {}", crate::proto::scsi::host_name(host)),
            }),
        })
    }

    fn await_answer(&mut self) -> Result<Ended, NoAnswer> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            self.lane.look(100).map_err(NoAnswer::Kernel)?;
            if let Some(ended) = self.lane.reap().map_err(NoAnswer::Kernel)? {
                return Ok(ended);
            }
        }
        Err(NoAnswer::Late)
    }
}
