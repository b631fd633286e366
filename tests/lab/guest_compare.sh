#!/bin/bash
# Runs in the lab's guest (topology same-drive): one disk image behind three controllers, and one NVMe by every
# backend that lanemark has for it. Results go into the shared folder, where the test reads them.
# usage: guest_compare.sh LANEMARK FOLDER
set -u
lanemark=$1 out=$2

# shellcheck source=noted.sh
source "$(dirname "${BASH_SOURCE[0]}")/noted.sh"

# behind PART: the disk whose way through sysfs has this in it.
behind() {
    local disk
    for disk in /sys/block/sd*; do
        if [[ $(readlink -f "$disk") == *"$1"* ]]; then
            echo "/dev/${disk##*/}"
            return
        fi
    done
    echo "no disk behind $1" >>"$out/setup.failed"
    echo /dev/no-disk
}

# By count, not by time: on a busy host the emulator may stand still for longer than any short window.
cat >/tmp/job.yaml <<'END'
defaults: { bs: 4k, rw: randread, ramp_time: 0s }
steps:
  - { name: depth 1, iodepth: 1, number_ios: 50 }
  - { name: depth 16, iodepth: 16, number_ios: 160 }
END
compare() {
    "$lanemark" compare "$@" --job /tmp/job.yaml --cool-down 0s --progress none --format json
}

sas=$(behind 0000:00:06.0) raid=$(behind 0000:00:07.0) sata=$(behind /ata)
note sas-sata compare "$sata" "$sas" --rounds 3 --precision none
note raid-sata compare "$sata" "$raid" --rounds 3 --precision none
note sg-uring compare "$sas@uring" "$sas@sg" --rounds 3 --precision none

# NVMe: two backends of the kernel in turn; SPDK and the kernel in turn, the drive changing hands for every window.
note cmd-uring compare /dev/nvme0n1@uring /dev/ng0n1@uring-cmd --rounds 3 --precision none
echo 256 >/proc/sys/vm/nr_hugepages
note spdk-cmd compare --claim /dev/ng0n1@uring-cmd /dev/nvme0n1@spdk --rounds 3 --precision none
note spdk-uring compare --claim /dev/nvme0n1@uring /dev/nvme0n1@spdk --rounds 2
# It is the kernel's again, and nothing is remembered as claimed.
note after "$lanemark" devices --format json
cat /run/lanemark/* >"$out/claims" 2>/dev/null
basename "$(readlink -f /sys/block/nvme0n1/device/device/driver)" >"$out/driver"
