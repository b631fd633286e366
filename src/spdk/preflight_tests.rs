//! Preflight on hand-made machines.
#![allow(clippy::unwrap_used)]

use super::*;
use std::fs;
use std::os::unix::fs::symlink;

const BDF: Bdf = Bdf {
    domain: 0,
    bus: 1,
    device: 0,
    function: 0,
};

struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn sysfs(&self) -> Sysfs {
        Sysfs::at(self.0.path())
    }
    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fn link(&self, path: &str, target: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }
    fn pages(&self, node: u32, total: u64, free: u64) {
        let folder = format!("sys/devices/system/node/node{node}/hugepages/hugepages-2048kB");
        self.write(&format!("{folder}/nr_hugepages"), &total.to_string());
        self.write(&format!("{folder}/free_hugepages"), &free.to_string());
    }
}

#[test]
fn hugepages_are_counted_per_node_and_the_lack_is_a_number() {
    let machine = Machine::new();
    assert_eq!(
        check_hugepages(&machine.sysfs(), 0)
            .unwrap_err()
            .to_string(),
        "no free hugepages: 32 MiB needed, none reserved; reserve 16 more: sysctl vm.nr_hugepages=16"
    );
    machine.pages(0, 64, 4);
    machine.pages(1, 64, 6);
    assert_eq!(hugepages(&machine.sysfs()).len(), 2);
    assert_eq!(
        check_hugepages(&machine.sysfs(), 0)
            .unwrap_err()
            .to_string(),
        "no free hugepages: 32 MiB needed, 8 of 128 MiB free on node 0, 12 of 128 MiB free on node 1; \
         reserve 6 more: sysctl vm.nr_hugepages=134"
    );
    machine.pages(1, 64, 12);
    assert_eq!(check_hugepages(&machine.sysfs(), 0), Ok(()));
    assert!(matches!(
        check_hugepages(&machine.sysfs(), u64::MAX),
        Err(PreflightError::Hugepages { .. })
    ));
}

#[test]
fn a_pci_device_is_looked_at_from_outside_in() {
    let machine = Machine::new();
    let device = "sys/bus/pci/devices/0000:01:00.0";
    assert_eq!(
        check_pci(&machine.sysfs(), BDF),
        Err(PreflightError::NoDevice { bdf: BDF })
    );
    machine.write(&format!("{device}/class"), "0x010802");
    assert_eq!(
        check_pci(&machine.sysfs(), BDF),
        Err(PreflightError::NoDriver { bdf: BDF })
    );
    machine.link(&format!("{device}/driver"), "../../drivers/nvme");
    assert_eq!(
        check_pci(&machine.sysfs(), BDF),
        Err(PreflightError::KernelDriver {
            bdf: BDF,
            driver: "nvme".into()
        })
    );
    fs::remove_file(machine.0.path().join(device).join("driver")).unwrap();
    machine.link(&format!("{device}/driver"), "../../drivers/vfio-pci");
    assert_eq!(check_pci(&machine.sysfs(), BDF), Ok(()));
    assert_eq!(nvme_controllers(&machine.sysfs()), [BDF]);
    machine.write("sys/bus/pci/devices/0000:02:00.0/class", "0x010601\n");
    machine.write("sys/bus/pci/devices/garbled/class", "0x010802\n");
    assert_eq!(nvme_controllers(&machine.sysfs()), [BDF]);
}

#[test]
fn without_an_iommu_only_root_may() {
    let machine = Machine::new();
    let driver = "sys/bus/pci/devices/0000:01:00.0/driver";
    machine.link(driver, "../../drivers/uio_pci_generic");
    let refused = Err(PreflightError::NeedsRoot {
        bdf: BDF,
        driver: "uio_pci_generic".into(),
    });
    assert_eq!(
        check_pci(&machine.sysfs(), BDF),
        refused,
        "no word of rights"
    );
    machine.write("proc/self/status", "CapEff:\t0000000000000000\n");
    assert_eq!(check_pci(&machine.sysfs(), BDF), refused);
    machine.write("proc/self/status", "CapEff:\t0000000000200000\n");
    assert_eq!(check_pci(&machine.sysfs(), BDF), Ok(()));
}

#[test]
fn the_buffers_of_a_run_are_held_against_free_hugepages() {
    let machine = Machine::new();
    machine.pages(0, 64, 8); // 16 MiB
    assert_eq!(check_io_hugepages(&machine.sysfs(), 16 << 20), Ok(()));
    // The heap may hold the last page.
    assert_eq!(check_io_hugepages(&machine.sysfs(), 18 << 20), Ok(()));
    assert_eq!(
        check_io_hugepages(&machine.sysfs(), 512 << 20)
            .unwrap_err()
            .to_string(),
        "no free hugepages: 512 MiB needed, 16 of 128 MiB free on node 0; \
         reserve 248 more: sysctl vm.nr_hugepages=312"
    );
}

#[test]
fn every_lack_is_one_line_with_a_remedy() {
    let lacks = [
        PreflightError::NoDevice { bdf: BDF },
        PreflightError::NoDriver { bdf: BDF },
        PreflightError::Busy {
            bdf: BDF,
            process: Some(7),
        },
        PreflightError::Permission {
            path: "/dev/vfio/7".into(),
        },
        PreflightError::Unregistered {
            transports: "TCP".into(),
        },
    ];
    for lack in lacks {
        let text = lack.to_string();
        assert_eq!(text, format!("{}; {}", lack.finding(), lack.remedy()));
        assert!(!text.contains('\n') && !lack.remedy().is_empty(), "{text}");
    }
}

#[test]
fn a_neighbour_in_the_group_on_a_kernel_driver_is_named() {
    let machine = Machine::new();
    let device = "sys/bus/pci/devices/0000:01:00.0";
    machine.link(&format!("{device}/driver"), "../../drivers/vfio-pci");
    machine.link(&format!("{device}/iommu_group"), "../../groups/7");
    let group = "sys/bus/pci/groups/7/devices";
    machine.link(
        &format!("{group}/0000:01:00.0/driver"),
        "../drivers/vfio-pci",
    );
    machine.link(
        &format!("{group}/0000:00:01.0/driver"),
        "../drivers/pcieport",
    );
    assert_eq!(check_pci(&machine.sysfs(), BDF), Ok(()));
    machine.link(&format!("{group}/0000:01:00.1/driver"), "../drivers/e1000e");
    let error = check_pci(&machine.sysfs(), BDF).unwrap_err();
    assert_eq!(
        error,
        PreflightError::Group {
            bdf: BDF,
            group: "7".into(),
            others: "0000:01:00.1 (e1000e)".into()
        }
    );
}

#[test]
fn locked_memory_counts_only_without_the_capability() {
    let machine = Machine::new();
    machine.write(
        "proc/self/limits",
        "Limit  Soft  Hard  Units\nMax locked memory         8388608   8388608   bytes\n",
    );
    machine.write("proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n");
    assert_eq!(
        check_memlock(&machine.sysfs(), 0),
        Err(PreflightError::Memlock {
            limit_mib: 8,
            needed_mib: 32
        })
    );
    machine.write("proc/self/status", "CapEff:\t0000000000004000\n");
    assert_eq!(check_memlock(&machine.sysfs(), 0), Ok(()));
    machine.write(
        "proc/self/limits",
        "Max locked memory         unlimited            unlimited            bytes\n",
    );
    machine.write("proc/self/status", "CapEff:\t0\n");
    assert_eq!(check_memlock(&machine.sysfs(), 1 << 40), Ok(()));
}

#[test]
fn only_an_iommu_too_narrow_to_place_memory_is_refused() {
    assert_eq!(check_iommu(None), Ok(()));
    assert_eq!(check_iommu(Some(39)), Ok(()));
    assert_eq!(
        check_iommu(Some(32)),
        Err(PreflightError::NarrowIommu {
            bits: 32,
            least: 38
        })
    );
}
