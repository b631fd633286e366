//! What the scripts in the lab's guest want of this library: this binary runs there too.

use lanemark::backend::spdk::SpdkDevice;
use lanemark::backend::{Batch, Device, Queue, QueueSpec, Sink, Wait};
use lanemark::request::{Io, Op, Slot, Status};
use lanemark::sysfs::Sysfs;
use std::io::Write;
use std::time::Duration;

const CHUNK_BYTES: u32 = 64 << 10;
const DUMP_BYTES: u64 = 2 << 20;

/// Takes the bytes of one read.
struct Take(Option<(Status, Vec<u8>)>);

impl Sink for Take {
    fn complete(&mut self, _slot: Slot, status: Status, buffer: &mut [u8]) -> Option<Io> {
        self.0 = Some((status, buffer.to_vec()));
        None
    }
}

/// Reads the first 2 MiB of the namespace that `LANEMARK_DUMP` names through SPDK into `LANEMARK_DUMP_TO`. Does
/// nothing where it is not asked to.
#[test]
fn dump_a_namespace() {
    let (Ok(name), Ok(to)) = (
        std::env::var("LANEMARK_DUMP"),
        std::env::var("LANEMARK_DUMP_TO"),
    ) else {
        return;
    };
    let devices = SpdkDevice::open_all(&Sysfs::host(), &[&name]).unwrap();
    let block_bytes = devices[0].facts().logical_block.bytes();
    let spec = QueueSpec {
        reactor_index: 0,
        reactors_count: 1,
        slots_count: 1,
        slot_bytes: CHUNK_BYTES,
        batch: Batch {
            submit: 1,
            complete_min: 1,
            complete_max: 1,
        },
        writes: false,
    };
    let mut queue = devices[0].open_queue(spec).unwrap();
    let mut file = std::fs::File::create(to).unwrap();
    for at in (0..DUMP_BYTES).step_by(CHUNK_BYTES as usize) {
        let io = Io {
            lba: at / u64::from(block_bytes),
            blocks: CHUNK_BYTES / block_bytes,
            op: Op::Read,
        };
        queue.submit(Slot(0), io).unwrap();
        let mut take = Take(None);
        while take.0.is_none() {
            queue.poll(&mut take, Wait::Never).unwrap();
        }
        let (status, bytes) = take.0.unwrap();
        assert_eq!(status, Status::Ok);
        file.write_all(&bytes[..CHUNK_BYTES as usize]).unwrap();
    }
    queue.close(Duration::from_secs(1));
}
