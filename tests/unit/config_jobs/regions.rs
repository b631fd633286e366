//! Where streams go: offsets, sizes, stripes, in blocks of any size and number.

use super::support::{device, disk, disk_4kn, plan_on, refused_on, step, step_on};
use lanemark::units::Bytes;
use lanemark::workload::Region;

#[test]
fn counted_sequential_streams_get_stripes_and_random_ones_share() {
    let stripes = step("rw: read, bs: 64k, streams: 3, size: 1000M");
    let regions: Vec<Region> = stripes.streams.iter().map(|stream| stream.region).collect();
    // 16000 requests of 128 blocks: 5333 each, the last one takes the odd one.
    assert_eq!(
        regions[0],
        Region {
            first_lba: 0,
            blocks: 5333 * 128
        }
    );
    assert_eq!(regions[1].first_lba, 5333 * 128);
    assert_eq!(
        regions[2],
        Region {
            first_lba: 2 * 5333 * 128,
            blocks: 5334 * 128
        }
    );
    let shared = step("rw: randread, streams: 3, size: 1000M");
    assert!(
        shared
            .streams
            .iter()
            .all(|stream| stream.region == shared.streams[0].region)
    );
    let seeds: std::collections::BTreeSet<u64> =
        shared.streams.iter().map(|stream| stream.seed).collect();
    assert_eq!(seeds.len(), 3);
    let by_reactors = step("rw: write, reactors: 4");
    assert_eq!(by_reactors.streams.len(), 4);
    assert_eq!(
        by_reactors.streams[1].region.first_lba,
        by_reactors.streams[0].region.blocks
    );
}

#[test]
fn listed_streams_keep_the_regions_they_name() {
    let yaml = "
steps:
  - streams:
      - { rw: read, bs: 64k, offset: 0%, size: 25% }
      - { rw: read, bs: 64k, offset: 25%, size: 25% }
      - { rw: read, bs: 64k }
";
    let plan = plan_on(yaml, &[disk()]).unwrap();
    let quarter = (1_u64 << 31) / 4;
    let region = |first_lba, blocks| Region { first_lba, blocks };
    let regions: Vec<Region> = plan.steps[0]
        .streams
        .iter()
        .map(|stream| stream.region)
        .collect();
    assert_eq!(
        regions,
        [
            region(0, quarter),
            region(quarter, quarter),
            region(0, 4 * quarter)
        ]
    );
}

#[test]
fn listed_streams_that_read_the_same_blocks_are_noted() {
    let notes = |yaml: &str| plan_on(yaml, &[disk(), disk_4kn()]).unwrap().notes;
    let same = notes("steps: [{ streams: [{ rw: read }, { rw: read }, { rw: randread }] }]\n");
    assert_eq!(same.len(), 1);
    assert_eq!(same[0].kind, "streams-overlap");
    let apart = "steps: [{ streams: [{ rw: read }, { rw: read, offset: 50% }] }]\n";
    assert_eq!(notes(apart), []);
}

#[test]
fn percentages_round_down_to_requests_and_bytes_are_never_rounded() {
    let odd = [device("odd", 512, 1_000_003 * 512)];
    let step = step_on("rw: read, bs: 64k, offset: 33.3%, size: 10%", &odd);
    // 333,000.999 blocks and 100,000.3 blocks, down to multiples of 128.
    assert_eq!(
        step.streams[0].region,
        Region {
            first_lba: 332_928,
            blocks: 99_968
        }
    );
    let all = step_on("rw: read, bs: 64k, size: 100%", &odd);
    assert_eq!(all.streams[0].region.blocks, 1_000_003);
    let aligned = step_on("bs: 512, blockalign: 4k, offset: 50%", &odd);
    assert_eq!(aligned.streams[0].region.first_lba, 500_000);
}

#[test]
fn nothing_is_cut_to_32_bits() {
    // 2^64 - 512 bytes in blocks of 512: 2^55 - 1 blocks.
    let huge = [device("huge", 512, u64::MAX - 511)];
    let step = step_on("rw: randread, offset: 50%", &huge);
    let region = step.streams[0].region;
    assert_eq!(region.first_lba + region.blocks, (1 << 55) - 1);
    assert!(region.first_lba > 1 << 53);
    let trim = step_on("rw: trim, bs: 2199023255040", &huge);
    assert_eq!(trim.streams[0].sizes[0].blocks, u32::MAX);
    // Nothing that a buffer would have to hold.
    assert_eq!(trim.streams[0].buffer_blocks(), 1);
    let zeroes = step_on("rw: randwritezeroes, bs: 2199023255040", &huge);
    assert_eq!(zeroes.streams[0].buffer_blocks(), 1);
    let mut limited = huge.clone();
    limited[0].write_zeroes = Ok(Some(Bytes(64 << 10)));
    step_on("rw: writezeroes, bs: 64k", &limited);
    let why = refused_on("rw: writezeroes, bs: 128k", &limited).to_string();
    assert!(
        why.contains("larger than one command can be, which is 64 KiB"),
        "{why}"
    );
    // A limit of transfers is none of zeros.
    limited[0].max_command = Some(Bytes(4096));
    step_on("rw: writezeroes, bs: 64k", &limited);
    let far = device("far", 512, 8 << 40);
    let step = step_on("rw: read, offset: 0x60000000000, size: 1T", &[far]);
    assert_eq!(
        step.streams[0].region,
        Region {
            first_lba: 3 << 32,
            blocks: 1 << 31
        }
    );
    let quota = step_on("rw: read, passes: 1000000", &[device("t", 512, 1 << 42)]);
    assert_eq!(quota.streams[0].quota.blocks, Some((1 << 33) * 1_000_000));
}

#[test]
fn blocks_that_are_no_power_of_two_are_counted_exactly() {
    let fat = device("fat", 520, 520 * 10_000);
    let step = step_on("bs: 4160, offset: 5200", &[fat]);
    assert_eq!(step.streams[0].sizes[0].blocks, 8);
    assert_eq!(
        step.streams[0].region,
        Region {
            first_lba: 10,
            blocks: 9990
        }
    );
}

#[test]
fn a_pass_is_the_whole_requests_of_the_region() {
    let odd = device("odd", 512, 1001 * 512);
    let step = step_on("rw: read, bs: 4k, passes: 2", &[odd]);
    assert_eq!(step.streams[0].quota.blocks, Some(2 * 1000));
}
