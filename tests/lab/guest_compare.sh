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
  - { name: depth 1, iodepth: 1, number_ios: 150 }
  - { name: depth 16, iodepth: 16, number_ios: 600 }
END
compare() {
    "$lanemark" compare "$@" --job /tmp/job.yaml --cool-down 0s --progress none --format json
}

sas=$(behind 0000:00:06.0) raid=$(behind 0000:00:07.0) sata=$(behind /ata)
note sas-sata compare "$sata" "$sas" --rounds 6 --precision none
note raid-sata compare "$sata" "$raid" --rounds 3 --precision none
note few compare "$sata" "$sas" --rounds 2
note text "$lanemark" compare "$sata" "$sas" --number_ios 100 --rounds 3 --cool-down 0s --progress none
note sg-uring compare "$sas@uring" "$sas@sg" --rounds 3 --precision none

# NVMe: two backends of the kernel in turn; SPDK cannot hold the drive at the same time, so by saved records.
for backend in uring uring-cmd; do
    node=/dev/nvme0n1
    [[ $backend == uring ]] || node=/dev/ng0n1
    "$lanemark" run /tmp/job.yaml --device "$node" --backend "$backend" --randseed 5 --progress none --format json \
        -o "$out/$backend.json" 2>"$out/$backend.err" || echo "$backend: $(<"$out/$backend.err")" >>"$out/absent"
done
note cmd-uring compare /dev/nvme0n1@uring /dev/ng0n1@uring-cmd --rounds 3 --precision none
address=$(basename "$(readlink -f /sys/block/nvme0n1/device/device)")
echo 256 >/proc/sys/vm/nr_hugepages
modprobe vfio-pci
modprobe vfio_iommu_type1
"$lanemark" claim "$address" >"$out/claim.out" 2>"$out/spdk.err" &&
    "$lanemark" run /tmp/job.yaml --device "$address" --randseed 5 --progress none --format json \
        -o "$out/spdk.json" 2>"$out/spdk.err" || {
    echo "spdk: $(<"$out/spdk.err")" >>"$out/absent"
    rm -f "$out/spdk.json"
}
if [[ -e $out/spdk.json && -e $out/uring.json ]]; then
    note spdk-uring "$lanemark" compare "$out/uring.json" "$out/spdk.json" --format json
fi
