#!/bin/bash
# Parts of guest.sh that claim: sourced by it.
# shellcheck shell=bash disable=SC2154

# address DISK: the PCI function of a namespace.
address() { basename "$(readlink -f "/sys/block/$1/device/device")"; }

driver() {
    local link
    link=$(readlink "/sys/bus/pci/devices/$1/driver")
    echo "${link##*/}"
}

# until_there FILE: waits for it, some seconds.
until_there() {
    local try
    for try in {1..600}; do
        [[ ! -e $1 ]] || return 0
        sleep 0.1
    done
    echo "$1 did not come" >>"$out/setup.failed"
}
# until_gone FILE: likewise.
until_gone() {
    local try
    for try in {1..600}; do
        [[ -e $1 ]] || return 0
        sleep 0.1
    done
    echo "$1 did not go" >>"$out/setup.failed"
}
# until_running NAME: waits until the run that `note` started shows progress.
until_running() {
    local try
    for try in {1..1200}; do
        ! grep -qs '"measure"' "$out/$1.err" || return 0
        sleep 0.1
    done
    echo "$1 did not come to its window" >>"$out/setup.failed"
}

# huge_pages COUNT: so many of them, whatever the parts before have left.
huge_pages() { must eval "echo $1 >/proc/sys/vm/nr_hugepages"; }

claim() { "$lanemark" claim --format json "$@"; }
release() { "$lanemark" release --format json "$@"; }
# long NAME ARGUMENT...: a run in the background that tells its progress.
long() {
    local name=$1
    shift
    doing "$name $EPOCHREALTIME"
    "$lanemark" run --progress json --format json --ramp_time 0s "$@" >"$out/$name.out" 2>"$out/$name.err" &
    long_pid=$!
    until_running "$name"
}
# ended NAME: its exit code, and how long it took from now.
ended() {
    local began=${EPOCHREALTIME/./} code
    doing "$1 ends $began"
    wait "$long_pid"
    code=$?
    echo $code >"$out/$1.code"
    echo $(((${EPOCHREALTIME/./} - began) / 1000)) >"$out/$1.ms"
}

# What a claim must not change: both ends of the disks, and how often they were written. Sets `state`; hashed only
# where something was written since (Documentation/block/stat.rst: the fifth field counts writes).
ends() {
    local disk fields written=''
    for disk in "$@"; do
        read -r -a fields <"/sys/block/$disk/stat"
        written+="$disk ${fields[4]} "
    done
    [[ $state != *" $written" ]] || return
    state="$(for disk in "$@"; do
        head -c 64K "/dev/$disk"
        tail -c 64K "/dev/$disk"
    done | sha256sum) $written"
}
state=''

# hands_off NAME COMMAND...: `note`, after which both disks must be as before. File systems and arrays may write
# by themselves in that moment: a tool that writes would do so in each of the tries.
hands_off() {
    local name=$1 try before
    for try in 1 2 3; do
        sync
        ends "$one" "$two"
        before=$state
        note "$@"
        ends "$one" "$two"
        [[ $before != "$state" ]] || return 0
    done
    echo "$name: written" >>"$out/written"
}
# no_claim NAME FUNCTION COMMAND...: must be refused and change nothing.
no_claim() {
    local name=danger-$1 bdf=$2 before
    shift 2
    before=$(driver "$bdf")
    if [[ $before == vfio-pci ]]; then note "$name" "$@"; else hands_off "$name" "$@"; fi
    echo "$name" >>"$out/dangers"
    [[ $before == "$(driver "$bdf")" ]] || echo "$name: moved to $(driver "$bdf")" >>"$out/written"
    if [[ $before != vfio-pci ]] && grep -qs '"bdf"' /run/lanemark/claims.json; then
        echo "$name: claimed" >>"$out/written"
        release --all >/dev/null 2>&1
    fi
}
# no_write NAME DEVICE ARGUMENT...: a write that must be refused.
no_write() {
    local name=danger-$1 device=$2
    shift 2
    hands_off "$name" measure --device "$device" --rw randwrite --number_ios 4 --allow-write "$device" "$@"
    echo "$name" >>"$out/dangers"
}
# fine NAME COMMAND...: must go.
fine() {
    local name=fine-$1
    shift
    note "$name" "$@"
    echo "$name" >>"$out/harmless"
}

# Claimed, run through SPDK, given back; data of both ways.
part_claim() {
    local disk bdf
    disk=$(namespace LABNVME0001 1)
    bdf=$(address "$disk")
    # Its claims reserve what they need.
    huge_pages 0
    # Written through the kernel, read through SPDK.
    note data-uring measure --device "/dev/$disk" --rw write --bs 64k --number_ios 32 --allow-write "/dev/$disk"
    must dd if="/dev/$disk" of="$out/data-uring.bin" bs=1M count=2 iflag=direct status=none
    note claim-dry claim "$bdf" --hugepages 300M --dry-run
    note claim claim "$bdf" --hugepages 300M
    note claim-again claim "$bdf" --hugepages 300M
    ls /dev >"$out/claim.dev"
    cp /run/lanemark/claims.json "$out/claims.json"
    stat -c '%a %u' /run/lanemark /run/lanemark/claims.json >"$out/claims.stat"
    note dump-spdk env LANEMARK_DUMP="$bdf ns:1" LANEMARK_DUMP_TO="$out/data-spdk.bin" "$tests" dump_a_namespace --nocapture
    # The former node names the device still.
    fine run-former measure --device "/dev/$disk" --rw randread --iodepth 8 --runtime 1s
    fine run-bdf measure --device "$bdf ns:2" --rw randread --iodepth 8 --runtime 1s
    note claim-devices "$lanemark" devices --format json
    # Written through SPDK, read through the kernel.
    note data-write measure --device "$bdf ns:1" --rw write --bs 64k --number_ios 32 --allow-write "/dev/$disk"
    note dump-spdk-2 env LANEMARK_DUMP="$bdf ns:1" LANEMARK_DUMP_TO="$out/data-spdk-2.bin" "$tests" dump_a_namespace --nocapture
    part_claim_second "$bdf"
    note release release "$bdf"
    note release-again release "$bdf"
    # The kernel looks for namespaces at several at once, and numbers them as they are found.
    disk=$(namespace LABNVME0001 1)
    must dd if="/dev/$disk" of="$out/data-kernel-2.bin" bs=1M count=2 iflag=direct status=none
    fine run-kernel measure --device "$bdf ns:1" --rw randread --number_ios 64
}

# A second process on a device that one drives; then what a claimed device must be spared.
part_claim_second() {
    local bdf=$1
    long second-first --device "$bdf ns:1" --rw randread --iodepth 4 --runtime 200s
    note second-run measure --device "$bdf ns:1" --rw randread --number_ios 4
    no_claim second-claim "$bdf" measure --device "$bdf ns:1" --claim --rw randread --number_ios 4
    no_claim release-driven "$bdf" release "$bdf"
    kill -INT "$long_pid"
    ended second-first
}

# Runs that claim by themselves: given back however they end.
part_lease() {
    local disk bdf
    disk=$(namespace LABNVME0001 1)
    bdf=$(address "$disk")
    huge_pages 200
    fine lease measure --claim --device "/dev/$disk" --rw randread --iodepth 8 --runtime 1s
    driver "$bdf" >"$out/lease.driver"
    # A refusal in mid-way, a signal, a killed child: each time it must be back.
    note lease-bad measure --claim --device "$bdf ns:7" --rw randread
    driver "$bdf" >"$out/lease-bad.driver"
    long lease-int --claim --device "$bdf ns:1" --rw randread --runtime 60s
    kill -INT "$long_pid"
    ended lease-int
    driver "$bdf" >"$out/lease-int.driver"
    long lease-killed --claim --device "$bdf ns:1" --rw randread --runtime 60s
    kill -KILL "$(cat "/proc/$long_pid/task/$long_pid/children")"
    ended lease-killed
    driver "$bdf" >"$out/lease-killed.driver"
    # SIGKILL of everything: `release` recovers.
    long lease-gone --claim --device "$bdf ns:1" --rw randread --runtime 60s
    kill -KILL "$(cat "/proc/$long_pid/task/$long_pid/children")" "$long_pid"
    wait "$long_pid"
    sleep 1
    driver "$bdf" >"$out/lease-gone.driver"
    note recovered release --all
    driver "$bdf" >"$out/recovered.driver"
    until_there "/dev/$disk"
}

# What must not be claimed and not be written, with real users of the second namespace.
# dangers COMMAND: with the names of both namespaces and of their function.
dangers() {
    local one two bdf
    one=$(namespace LABNVME0001 1) two=$(namespace LABNVME0001 2)
    bdf=$(address "$one")
    "$1"
}
part_mounts() { dangers danger_mounts; }
part_holders() { dangers danger_holders; }
part_others() { dangers danger_others; }

danger_mounts() {
    local process
    # For the runs through SPDK at its end.
    huge_pages 200
    must mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "/dev/$two"
    must mount -o ro,noload "/dev/$two" /mnt
    no_claim mount-ro "$bdf" claim "$bdf"
    must umount /mnt
    must mount -o noatime "/dev/$two" /mnt
    no_claim mount "$bdf" claim "$bdf"
    fine read-mounted measure --device "/dev/$two" --rw randread --number_ios 4
    fine write-beside-mounted measure --device "/dev/$one" --rw randwrite --number_ios 4 --allow-write "/dev/$one"
    no_claim mount-by-other-namespace "$bdf" claim "/dev/$one"
    no_claim mount-by-generic "$bdf" claim "/dev/ng${one#nvme}"
    no_claim mount-run "$bdf" measure --claim --device "/dev/$one" --rw randread --number_ios 4
    no_claim mount-dry "$bdf" claim "$bdf" --dry-run
    no_write mount-write "/dev/$two" --overwrite ext4
    no_write mount-write-address "$bdf ns:2" --overwrite ext4
    must umount /mnt
    unshare -m --propagation private sh -c "mount -o ro,noload /dev/$two /mnt && echo ready >/tmp/ready && exec sleep 100" &
    process=$!
    until_there /tmp/ready
    no_claim namespace "$bdf" claim "$bdf"
    no_claim namespace-run "$bdf" measure --claim --device "$bdf ns:1" --rw randread --number_ios 4
    no_write namespace-write "/dev/$two" --overwrite ext4
    kill "$process"
    wait "$process" 2>/dev/null
    must mount -o ro,noload "/dev/$two" /mnt
    sleep 100 </mnt/lost+found &
    process=$!
    must umount -l /mnt
    no_claim lazy "$bdf" claim "$bdf"
    no_write lazy-write "/dev/$two" --overwrite ext4
    kill "$process"
    wait "$process" 2>/dev/null
    sleep 0.5
    # As if it were the root: what sees it from inside its own mount namespace.
    root_stand_in
    fine signature-claim claim "$bdf"
    no_claim claimed-signature "$bdf" measure --device "$bdf ns:2" --rw randwrite --number_ios 4 --allow-write "$bdf ns:2"
    no_claim claimed-other-signature "$bdf" measure --device "$bdf ns:2" --rw randwrite --number_ios 4 --allow-write "$bdf ns:2" --overwrite xfs
    no_claim claimed-no-consent "$bdf" measure --device "$bdf ns:1" --rw randwrite --number_ios 4
    no_claim claimed-other-consent "$bdf" measure --device "$bdf ns:1" --rw randwrite --number_ios 4 --allow-write "/dev/$two"
    fine signature-spdk-overwritten measure --device "$bdf ns:2" --rw randwrite --number_ios 4 --allow-write "/dev/$two" --overwrite ext4
    fine signature-release release "$bdf"
    one=$(namespace LABNVME0001 1) two=$(namespace LABNVME0001 2)
    must wipefs -q -a "/dev/$two"
}

# The file system is the root of the process that asks: it has been started inside of it.
root_stand_in() {
    local folder name words
    must mount -o noatime "/dev/$two" /mnt
    for folder in proc sys dev lib lib64 usr run tmp; do
        must mkdir -p "/mnt/$folder"
    done
    must umount /mnt
    cp "$lanemark" /tmp/lanemark-inside
    for name in root-claim root-write; do
        words="claim --format json $bdf"
        [[ $name == root-claim ]] ||
            words="run --progress none --device /dev/$two --rw randwrite --number_ios 4 --allow-write /dev/$two --overwrite ext4"
        no_claim "$name" "$bdf" unshare -m --propagation private bash -c "
            mount -o ro,noload /dev/$two /mnt || exit 9
            for folder in proc sys dev lib lib64 usr run tmp; do
                mount --rbind /\$folder /mnt/\$folder || exit 9
            done
            exec chroot /mnt /tmp/lanemark-inside $words"
    done
}

# held NAME: the disk under something, claimed and written.
held() {
    no_claim "$1-claim" "$bdf" claim "$bdf"
    no_write "$1-write" "/dev/$two" --overwrite "$2"
}

danger_holders() {
    local quiet='backup{backup=0 archive=0} activation{udev_sync=0 udev_rules=0} devices{use_devicesfile=0}'
    must mkswap -q "/dev/$two"
    must swapon "/dev/$two"
    held swap swap
    must swapoff "/dev/$two"
    must pvcreate -q -y --config "$quiet" "/dev/$two"
    must vgcreate -q --config "$quiet" labother "/dev/$two"
    must lvcreate -q --config "$quiet" -Wn -Zn -L 64M -n labheld labother
    held lvm lvm
    must vgchange -q --config "$quiet" -an labother
    no_write lvm-idle "/dev/$two"
    fine lvm-idle-claim claim "$bdf" --dry-run
    must wipefs -q -a "/dev/$two"
    must mdadm --create /dev/md126 --run --assume-clean --level=1 --raid-devices=2 --size=65536 --metadata=1.2 "/dev/$two" missing
    held md md
    must mdadm --stop /dev/md126
    must wipefs -q -a "/dev/$two"
    echo secret >/tmp/key
    must cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "/dev/$two" /tmp/key
    must cryptsetup open --key-file /tmp/key "/dev/$two" labheld
    held crypt luks2
    must cryptsetup close labheld
    must wipefs -q -a "/dev/$two"
    must dmsetup create lablinear --table "0 8192 linear /dev/$two 0"
    held linear mbr
    must dmsetup remove lablinear
    held_by_loop
    held_by_bcache
}

held_by_loop() {
    local loop
    must modprobe loop
    loop=$(losetup --find --show "/dev/$two")
    held loop mbr
    must mkfs.ext4 -q "$loop"
    must mount -o ro,noload "$loop" /mnt
    held loop-mounted ext4
    must umount /mnt
    must losetup -d "$loop"
    must wipefs -q -a "/dev/$two"
}

held_by_bcache() {
    local cache
    if ! modprobe bcache || ! command -v make-bcache >/dev/null; then
        echo "no bcache: $(command -v make-bcache)" >"$out/bcache.absent"
        return
    fi
    must make-bcache --wipe-bcache --block 4k -B "/dev/$two"
    must eval "echo /dev/$two >/sys/fs/bcache/register"
    cache=$(basename "$(echo "/sys/block/$two/holders"/bcache*)")
    held bcache bcache
    must eval "echo 1 >/sys/block/$cache/bcache/stop"
    until_gone "/sys/block/$two/holders/$cache"
    no_write bcache-stopped "/dev/$two"
    must wipefs -q -a "/dev/$two"
}

danger_others() {
    local hba sata raid process
    # ZFS labels as its makers write them: an uberblock in the ring of the first label.
    printf '\x0c\xb1\xba\x00\x00\x00\x00\x00' >/tmp/uberblock
    must dd if=/tmp/uberblock of="/dev/$two" bs=4k seek=32 conv=notrunc,sync status=none oflag=direct
    no_write zfs "/dev/$two"
    no_write zfs-other "/dev/$two" --overwrite ext4
    fine zfs-claim claim "$bdf" --dry-run
    must dd if=/dev/zero of="/dev/$two" bs=4k seek=32 count=1 status=none oflag=direct
    sleep 100 <"/dev/$two" &
    process=$!
    sleep 0.3
    no_claim open "$bdf" claim "$bdf"
    kill "$process"
    wait "$process" 2>/dev/null
    sleep 100 <"/dev/ng${one#nvme}" &
    process=$!
    sleep 0.3
    no_claim open-generic "$bdf" claim "$bdf"
    kill "$process"
    wait "$process" 2>/dev/null
    no_claim blocked "$bdf" env PCI_BLOCKED="$bdf" "$lanemark" claim "$bdf"
    no_claim not-allowed "$bdf" env PCI_ALLOWED=0000:09:00.0 "$lanemark" claim "$bdf"
    fine allowed env PCI_ALLOWED="$bdf" "$lanemark" claim "$bdf" --dry-run
    for serial in LABSAS0001 LABRAID0001 LABSATA0001 LABVIRTIO0001; do
        hba=$(readlink -f "/sys/block/$(by_serial $serial)" | grep -oE '[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9]' | tail -n 1)
        no_claim "kind-$serial" "$hba" claim "$hba"
    done
    hands_off danger-no-consent measure --device "/dev/$one" --rw randwrite --number_ios 4
    echo danger-no-consent >>"$out/dangers"
    fine read measure --device "/dev/$two" --rw randread --number_ios 16
    fine read-by-address measure --device "$bdf ns:2" --rw randread --number_ios 16
    fine write measure --device "/dev/$two" --rw randwrite --number_ios 16 --allow-write "/dev/$two"
    fine both claim "$bdf" "$(address "$(namespace LABNVME0002 1)")" --dry-run
    fine claim-node claim "/dev/$two"
    fine release-node release "/dev/$two"
    fine release-nothing release --all
    fine devices "$lanemark" devices
    fine check "$lanemark" check
}

# Drivers taken away and devices taken out, in mid-run. The last part: what is taken out does not come back.
part_gone() {
    local disk bdf unbind
    disk=$(namespace LABNVME0002 1)
    bdf=$(address "$disk")
    huge_pages 200
    long unbind-uring --device "/dev/$disk" --rw randread --iodepth 16 --runtime 60s
    echo "$bdf" >/sys/bus/pci/drivers/nvme/unbind &
    unbind=$!
    ended unbind-uring
    wait "$unbind"
    must eval "echo $bdf >/sys/bus/pci/drivers/nvme/bind"
    until_there "/dev/$disk"
    sleep 1
    long unbind-spdk --claim --device "$bdf ns:1" --rw randread --iodepth 16 --runtime 60s
    echo "$bdf" >/sys/bus/pci/drivers/vfio-pci/unbind &
    unbind=$!
    ended unbind-spdk
    wait "$unbind"
    driver "$bdf" >"$out/unbind-spdk.driver"
    "$lanemark" release --all >/dev/null 2>&1
    until_there "/dev/$disk"
    sleep 1
    long unplug-uring --device "/dev/$disk" --rw randread --iodepth 16 --runtime 60s
    unplug nvme_b
    ended unplug-uring
    disk=$(namespace LABNVME0001 1)
    bdf=$(address "$disk")
    long unplug-spdk --claim --device "$bdf ns:1" --rw randread --iodepth 16 --runtime 60s
    unplug nvme_a
    ended unplug-spdk
    cat /run/lanemark/claims.json >"$out/unplug-spdk.claims" 2>/dev/null
    dmesg | tail -n 60 >"$out/gone.dmesg"
}
