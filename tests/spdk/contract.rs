//! The spdk backend keeps the queue contract, over TCP and vfio-user, on bdevs that keep what is written.

use crate::spdk_target::target;
use lanemark::backend::contract::{Contract, contract};
use lanemark::backend::spdk::SpdkDevice;
use lanemark::sysfs::Sysfs;

const NQN: &str = "nqn.2026-01.io.lanemark:contract";

fn open(id: &str) -> Vec<SpdkDevice> {
    // DPDK pins the thread that starts it; ours must be as free afterwards as before.
    let cpus = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let mut lines = status.lines().map(str::to_owned);
        lines.find(|line| line.starts_with("Cpus_allowed_list:"))
    };
    let before = cpus();
    let devices = SpdkDevice::open_all(&Sysfs::host(), &[id]).unwrap();
    assert!(before.is_some());
    assert_eq!(cpus(), before);
    devices
}

fn keep(device: &SpdkDevice) {
    let rules = Contract {
        first_lba: 8,
        blocks: 1000,
        writes: true,
        keeps_data: true,
        ios_count: 20_000,
    };
    contract(device, &rules, &mut |_| ());
}

#[test]
fn tcp_keeps_the_contract() {
    let Some(target) = target() else { return };
    target.malloc("m0", 4096, 4096);
    target.subsystem(NQN, &[(1, "m0")]);
    let devices = open(&target.tcp(NQN));
    keep(&devices[0]);
}

#[test]
fn vfio_user_keeps_the_contract_with_512_byte_blocks() {
    let Some(target) = target() else { return };
    target.malloc("m0", 4096, 512);
    target.subsystem(NQN, &[(1, "m0")]);
    let devices = open(&target.vfio_user(NQN));
    keep(&devices[0]);
}
