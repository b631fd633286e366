#!/bin/bash
# Runs in the lab's guest: makes devices, holders and failures of every kind, runs lanemark on them and
# leaves what came of it in the shared folder, where the test reads it.
# usage: guest.sh LANEMARK FOLDER PART...
set -u
lanemark=$1 out=$2 tests=$LANEMARK_TEST_PROGRAM
shift 2

# shellcheck source=noted.sh
source "$(dirname "${BASH_SOURCE[0]}")/noted.sh"

# Names differ from boot to boot: disks by what the topology calls them.
by_serial() {
    local disk
    for disk in /sys/block/*; do
        if grep -qs "$1" "$disk/serial" "$disk/device/serial" "$disk/device/vpd_pg80"; then
            basename "$disk"
            return
        fi
    done
    echo "no disk $1" >>"$out/setup.failed"
    echo no-disk
}
# namespace SERIAL NSID: its block device.
namespace() {
    local disk
    for disk in /sys/block/nvme*n*; do
        if grep -qs "$1" "$disk/device/serial" && [[ $(<"$disk/nsid") == "$2" ]]; then
            basename "$disk"
            return
        fi
    done
    echo "no namespace $1 $2" >>"$out/setup.failed"
    echo no-disk
}

measure() { "$lanemark" run --progress none --format json --ramp_time 0s "$@"; }

# writes DISK: requests and sectors it has written (Documentation/block/stat.rst).
writes() { awk '{print $5, $7}' "/sys/block/$1/stat"; }

# A write must be refused and leave the disk alone. Arrays and journals may write by themselves in that
# moment: a tool that writes would do so in each of the tries.
refused() {
    local name=$1 disk=$2 device=$3 try before
    shift 3
    for try in 1 2 3; do
        sync
        before=$(writes "$disk")
        note "$name" measure --device "$device" --rw randwrite --number_ios 4 --allow-write "$device" "$@"
        if [[ $(<"$out/$name.code") != 3 || $before == "$(writes "$disk")" ]]; then
            break
        fi
    done
    [[ $before == "$(writes "$disk")" ]] || echo "$name: written" >>"$out/written"
}
runs() {
    local name=$1 device=$2
    shift 2
    note "$name" measure --device "$device" --rw randwrite --number_ios 4 --allow-write "$device" "$@"
}

part_devices() {
    note devices "$lanemark" devices --format json
    note devices-one "$lanemark" devices 0000:04:00.0
    note devices-table "$lanemark" devices
    note lspci lspci -D -vv
    note capture scripts/capture-sysfs -o "$out/captured.tree"
}

# null_blk NAME KEY=VALUE...: a device of the null driver.
null_blk() {
    local at=/sys/kernel/config/nullb/$1 pair
    shift
    must mkdir "$at"
    for pair in size=256 blocksize=4096 irqmode=2 "$@"; do
        must eval "echo ${pair#*=} >$at/${pair%%=*}"
    done
    must eval "echo 1 >$at/power"
}

# completion_nsec is the truth: what lies between two delays is what lanemark must show.
part_delay() {
    mountpoint -q /sys/kernel/config || must mount -t configfs none /sys/kernel/config
    # Polled requests end at once, whatever completion_nsec says.
    null_blk nullb_d1 poll_queues=0 completion_nsec=1000000
    null_blk nullb_d2 poll_queues=0 completion_nsec=2000000
    local try
    for try in {1..5}; do
        note "delay-1-$try" measure --device /dev/nullb_d1 --rw randread --runtime 1s
        note "delay-2-$try" measure --device /dev/nullb_d2 --rw randread --runtime 1s
    done
}

# Interrupts of NVMe queues other than the admin queue so far, on all CPUs.
interrupts() { awk '/nvme[0-9]+q[1-9]/ {for (i = 2; i <= 3; i++) sum += $i} END {print sum + 0}' /proc/interrupts; }

# counted NAME COMMAND...: `note`, and the interrupts that came meanwhile.
counted() {
    local before
    before=$(interrupts)
    note "$@"
    echo $(($(interrupts) - before)) >"$out/$1.interrupts"
}

part_poll() {
    mountpoint -q /sys/kernel/config || must mount -t configfs none /sys/kernel/config
    null_blk nullb_p poll_queues=1 submit_queues=2 irqmode=0
    note poll-null measure --device /dev/nullb_p --rw randread --iodepth 8 --runtime 1s
    note poll-null-write measure --device /dev/nullb_p --rw randwrite --iodepth 8 --number_ios 2000 --allow-write /dev/nullb_p
    counted poll-none measure --device "/dev/$(namespace LABNVME0001 1)" --rw randread --iodepth 8 --runtime 1s
    must modprobe -r nvme
    must modprobe nvme poll_queues=1
    local try
    for try in {1..50}; do
        [[ -e /dev/nvme0n1 && -e /dev/nvme1n1 ]] && break
        sleep 0.2
    done
    sleep 1
    counted poll-nvme measure --device "/dev/$(namespace LABNVME0001 1)" --rw randread --iodepth 8 --runtime 1s
    note poll-nvme-4kn measure --device "/dev/$(namespace LABNVME0001 2)" --rw randread --iodepth 1 --number_ios 200
}

part_lvm() {
    local disk volume quiet='backup{backup=0 archive=0} activation{udev_sync=0 udev_rules=0} devices{use_devicesfile=0}'
    disk=$(namespace LABNVME0001 1)
    must pvcreate -q --config "$quiet" "/dev/$disk"
    must vgcreate -q --config "$quiet" labgroup "/dev/$disk"
    must lvcreate -q --config "$quiet" -Wn -Zn -L 64M -n labvolume labgroup
    volume=/dev/mapper/labgroup-labvolume
    refused lvm-active "$disk" "/dev/$disk"
    refused lvm-active-overwrite "$disk" "/dev/$disk" --overwrite lvm
    must mkswap -q "$volume"
    must swapon "$volume"
    refused lvm-swap "$disk" "$volume" --overwrite swap
    must swapoff "$volume"
    runs lvm-volume-free "$volume" --overwrite swap
    must vgchange -q --config "$quiet" -an labgroup
    refused lvm-idle "$disk" "/dev/$disk"
    refused lvm-idle-other "$disk" "/dev/$disk" --overwrite ext4 --overwrite md
    note lvm-read measure --device "/dev/$disk" --rw randread --number_ios 4
    runs lvm-idle-named "/dev/$disk" --overwrite lvm
}

part_md() {
    local first second
    first=$(by_serial LABSAS0001) second=$(by_serial LABSAS0002)
    must mdadm --create /dev/md127 --run --assume-clean --level=1 --raid-devices=2 --size=65536 --metadata=1.2 "/dev/$first" "/dev/$second"
    must eval 'echo 0 >/sys/block/md127/md/safe_mode_delay'
    sleep 1
    refused md-first "$first" "/dev/$first"
    refused md-second-overwrite "$second" "/dev/$second" --overwrite md
    must mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 /dev/md127
    must mount -o noatime /dev/md127 /mnt
    refused md-mounted "$first" /dev/md127 --overwrite ext4
    must umount /mnt
    runs md-free /dev/md127 --overwrite ext4
    must mdadm --stop /dev/md127
    refused md-stopped "$first" "/dev/$first"
    # A member on a partition: the whole disk is as little free as the partition.
    must eval 'echo start=2048,size=65536 | sfdisk -q --no-reread "/dev/'"$second"'"'
    must mdadm --create /dev/md127 --run --assume-clean --level=1 --raid-devices=2 --metadata=1.2 "/dev/${second}1" missing
    sleep 1
    refused md-part-disk "$second" "/dev/$second" --overwrite mbr --overwrite md
    refused md-part-other "$second" "/dev/${second}1" --overwrite md
    must mdadm --stop /dev/md127
}

part_crypt() {
    local disk
    disk=$(by_serial LABVIRTIO0001)
    echo secret >/tmp/key
    must cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "/dev/$disk" /tmp/key
    must cryptsetup open --key-file /tmp/key "/dev/$disk" labcrypt
    refused crypt-open "$disk" "/dev/$disk"
    refused crypt-open-overwrite "$disk" "/dev/$disk" --overwrite luks2
    runs crypt-inside /dev/mapper/labcrypt
    must cryptsetup close labcrypt
    refused crypt-closed "$disk" "/dev/$disk"
}

# shellcheck source=claims.sh
source "$(dirname "${BASH_SOURCE[0]}")/claims.sh"

# shellcheck source=sg.sh
source "$(dirname "${BASH_SOURCE[0]}")/sg.sh"

for part in "$@"; do
    SECONDS=0
    "part_$part"
    echo "$part: $SECONDS s"
done
