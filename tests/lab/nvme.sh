#!/bin/bash
# Runs in the lab's guest of topology nvme-io: lanemark on NVMe namespaces by passthrough and by the block
# layer; leaves what came of it in the shared folder.
# usage: nvme.sh LANEMARK FOLDER TESTS, the last being the test program whose `inside` part belongs here.
set -u
lanemark=$1 out=$2 tests=$3

# shellcheck source=noted.sh
source "$(dirname "${BASH_SOURCE[0]}")/noted.sh"

# block SERIAL NSID: its block device; ng SERIAL NSID: its generic node.
block() {
    local disk
    for disk in /sys/block/nvme*; do
        if [[ ! ${disk##*/} =~ c[0-9]+n && $(<"$disk/nsid") == "$2" ]] && grep -qs "$1" "$disk/device/serial"; then
            echo "/dev/${disk##*/}"
            return
        fi
    done
    echo "no namespace $1 $2" >>"$out/setup.failed"
    echo /dev/no-disk
}
ng() { block "$@" | sed 's,nvme,ng,'; }
measure() { "$lanemark" run --progress none --format json --ramp_time 0s "$@"; }

part_tests() { note tests env RUST_BACKTRACE=0 "$tests" --test-threads=1 nvme::inside; }

part_runs() {
    local a
    a=$(ng LABIO0001 1)
    note read measure --device "$a" --rw randread --iodepth 32 --number_ios 500
    note by-block measure --backend uring-cmd --device "$(block LABIO0001 1)" --rw randread --number_ios 50
    note by-uring measure --device "$(block LABIO0001 1)" --rw randread --number_ios 200
    # Reads beside it, once it has begun.
    (
        until [[ -e $out/others.code ]] || grep -qs '"event":"progress"' "$out/others.err"; do sleep 0.2; done
        dd if="$(block LABIO0001 1)" of=/dev/null bs=4k count=40 iflag=direct status=none
    ) &
    local beside=$!
    note others timeout 120 "$lanemark" run --progress json --format json --device "$a" --rw randread --rate_iops 40 --runtime 4s
    wait "$beside"
    note probe measure --device "$a" --rw probe --iodepth 4 --number_ios 200
    note probe-read measure --device "$a" --rw probe-read --number_ios 200
    note probe-uring measure --device "$(block LABIO0001 1)" --rw probe --number_ios 200
    note mix measure --device "$a" --rw randrw --fsync 8 --iodepth 8 --number_ios 400 --allow-write "$a"
    note trim measure --device "$a" --rw randtrim --bs 64k --number_ios 50 --allow-write "$a"
    note zeroes measure --device "$a" --rw randwritezeroes --bs 64k --number_ios 50 --allow-write "$a"
    note zeroes-pi measure --device "$(ng LABIO0002 1)" --rw writezeroes --number_ios 50 --allow-write "$(ng LABIO0002 1)"
    note zeroes-large measure --device "$a" --rw writezeroes --bs 260k --number_ios 4 --allow-write "$a"
    note zeroes-uring measure --device "$(block LABIO0001 1)" --rw writezeroes --number_ios 4 --allow-write "$(block LABIO0001 1)"
    note largest measure --device "$a" --rw read --bs 128k --iodepth 4 --number_ios 100
    note too-large measure --device "$a" --rw read --bs 260k --number_ios 100
    note twice measure --backend uring-cmd --device "$a" --device "$(block LABIO0001 1)" --number_ios 10
    note pi measure --device "$(ng LABIO0002 1)" --rw randread --iodepth 4 --number_ios 200
    note separate measure --device "$(ng LABIO0002 2)" --number_ios 10
    note extended measure --device "$(ng LABIO0002 3)" --number_ios 10
    note error measure --device "$(ng LABIO0003 1)" --rw read --bs 4k --iodepth 8 --number_ios 512
    export XDG_STATE_HOME=/tmp/state
    note prepare-1 measure --device "$(ng LABIO0005 1)" --size 1M --prepare --allow-write "$(ng LABIO0005 1)" --number_ios 50
    note prepare-2 measure --device "$(ng LABIO0005 2)" --size 1M --prepare --allow-write "$(ng LABIO0005 2)" --number_ios 50
}

# claimed NAME BDF COMMAND...: with the controller out of the kernel's hands.
claimed() {
    local name=$1 bdf=$2 try
    shift 2
    note "$name-claim" "$lanemark" claim --format json "$bdf" --hugepages 300M
    "$@"
    note "$name-release" "$lanemark" release --format json "$bdf"
    for try in {1..50}; do
        [[ -z $(ls "/sys/bus/pci/devices/$bdf/nvme" 2>/dev/null) ]] || break
        sleep 0.2
    done
    sleep 1
}
# function_of SERIAL NSID: the PCI function behind a namespace.
function_of() { basename "$(readlink -f "/sys/class/block/$(basename "$(block "$@")")/device/device")"; }

stage() { note "$1" env RUST_BACKTRACE=0 "$tests" --test-threads=1 "nvme::across::$1"; }
part_across() {
    stage stage_1
    LANEMARK_BDF=$(function_of LABIO0001 1)
    export LANEMARK_BDF
    claimed across "$LANEMARK_BDF" stage stage_2
    unset LANEMARK_BDF
    stage stage_3
}

metadata() {
    local bdf=$1
    note spdk-pi measure --device "$bdf ns:1" --rw randrw --iodepth 4 --number_ios 200 --allow-write "$bdf ns:1"
    note spdk-pi-zeroes measure --device "$bdf ns:1" --rw writezeroes --number_ios 50 --allow-write "$bdf ns:1"
    note spdk-pi-read measure --device "$bdf ns:1" --rw read --number_ios 50
    note spdk-separate measure --device "$bdf ns:2" --rw randrw --iodepth 4 --number_ios 200 --allow-write "$bdf ns:2"
    note spdk-separate-large measure --device "$bdf ns:2" --rw read --bs 1M --iodepth 2 --number_ios 8
    note spdk-extended measure --device "$bdf ns:3" --number_ios 10
}
part_metadata() {
    local bdf
    bdf=$(function_of LABIO0002 1)
    claimed metadata "$bdf" metadata "$bdf"
}

# A namespace that shrinks under a run: of the kernel's own target, on a disk of scsi_debug. The last part: nvme-core
# stays in use.
part_shrunk() {
    local target=/sys/kernel/config/nvmet debug=/sys/bus/pseudo/drivers/scsi_debug space disk='' node try model
    must modprobe scsi_debug dev_size_mb=32 virtual_gb=1 sector_size=512 ndelay=20000
    must modprobe nvmet
    must modprobe nvme-loop
    mountpoint -q /sys/kernel/config || must mount -t configfs none /sys/kernel/config
    for try in {1..50}; do
        for model in /sys/block/*/device/model; do
            ! grep -qs '^scsi_debug' "$model" || disk=$(basename "$(dirname "$(dirname "$model")")")
        done
        [[ -z $disk ]] || break
        sleep 0.2
    done
    must mkdir "$target/subsystems/lab-shrunk" "$target/ports/1"
    space=$target/subsystems/lab-shrunk/namespaces/1
    must mkdir "$space"
    must eval "echo 1 >$target/subsystems/lab-shrunk/attr_allow_any_host"
    must eval "echo LABSHRUNK0001 >$target/subsystems/lab-shrunk/attr_serial"
    must eval "echo -n /dev/$disk >$space/device_path"
    must eval "echo 1 >$space/enable"
    must eval "echo loop >$target/ports/1/addr_trtype"
    must ln -s "$target/subsystems/lab-shrunk" "$target/ports/1/subsystems/lab-shrunk"
    must eval "printf 'transport=loop,nqn=lab-shrunk' >/dev/nvme-fabrics"
    for try in {1..50}; do
        ! grep -qs LABSHRUNK0001 /sys/block/nvme*/device/serial || break
        sleep 0.1
    done
    node=$(ng LABSHRUNK0001 1)
    measure --device "$node" --rw randread --size 64M --iodepth 4 --rate_iops 200 --runtime 8s >"$out/shrunk.out" 2>"$out/shrunk.err" &
    sleep 4
    must eval "echo 0 >$debug/virtual_gb"
    wait $!
    echo $? >"$out/shrunk.code"
}

part_guard() {
    local head generic
    head=$(block LABIO0004 1) generic=$(ng LABIO0004 1)
    must mkfs.ext4 -q "$head"
    must mount -o ro "$head" /mnt
    note mounted measure --device "$generic" --rw randwrite --number_ios 4 --allow-write "$generic" --overwrite ext4
    note mounted-read measure --device "$generic" --rw randread --number_ios 4
    must umount /mnt
    measure --device "$generic" --rw randwrite --runtime 6s --allow-write "$generic" --overwrite ext4 >"$out/holding.out" 2>"$out/holding.err" &
    sleep 3
    note held mount "$head" /mnt
    wait $!
    echo $? >"$out/holding.code"
    note serial measure --device "$(ng LABIO0005 1)" --rw randwrite --number_ios 4 --allow-write LABIO0005
    note by-path measure --device "$(ng LABIO0005 1)" --rw randwrite --number_ios 4 --allow-write "$(block LABIO0005 1)"
}

# removed NAME NODE COMMAND: what a removal in mid-run does, and how long the run goes on after it.
removed() {
    local started run
    note "$1" measure --device "$2" --rw randread --iodepth 16 --runtime 40s &
    run=$!
    sleep 5
    started=$(date +%s%N)
    must eval "$3"
    wait "$run"
    echo $((($(date +%s%N) - started) / 1000000)) >"$out/$1.ms"
}

part_removal() {
    local address driver=/sys/bus/pci/drivers/nvme
    address=$(basename "$(readlink -f "/sys/class/block/$(basename "$(block LABIO0003 1)")/device/device")")
    removed unbind "$(ng LABIO0003 1)" "echo $address >$driver/unbind"
    local paths
    paths=$(for one in /sys/class/nvme/nvme*; do grep -q LABIO0004 "$one/serial" && basename "$(readlink -f "$one/device")"; done)
    removed head "$(ng LABIO0004 1)" "for one in $(echo $paths); do echo 1 >/sys/bus/pci/devices/\$one/remove; done"
}

part_polled() {
    must modprobe -r nvme
    must modprobe nvme poll_queues=1
    local try a
    for try in {1..50}; do
        [[ $(ls /dev/ng* 2>/dev/null | wc -l) -ge 5 ]] && break
        sleep 0.2
    done
    sleep 1
    a=$(ng LABIO0001 1)
    note polled measure --device "$a" --rw randread --iodepth 8 --number_ios 300
    note polled-mix measure --device "$a" --rw randrw --fsync 4 --iodepth 4 --number_ios 200 --allow-write "$a"
    note polled-probe measure --device "$a" --rw probe --number_ios 50
}

for part in tests runs across metadata guard removal polled shrunk; do
    SECONDS=0
    "part_$part"
    echo "$part: $SECONDS s"
done
dmesg | tail -n 60 >"$out/dmesg"
