# Part of guest.sh: SCSI disks by commands (backend sg) and by the block layer, behind a SAS HBA, a MegaRAID, the
# chipset's SATA, and on the kernel's scsi_debug.

# generic DISK: its sg node.
generic() { echo "/dev/$(ls "/sys/block/$1/device/scsi_generic")"; }

debug=/sys/bus/pseudo/drivers/scsi_debug
# scsi_debug KEY=VALUE...: the driver anew; `disk` and `node` are its disk's.
scsi_debug() {
    local try model
    must chroot /proc/1/root /bin/rmmod scsi_debug
    must modprobe scsi_debug dev_size_mb=32 sector_size=512 "$@"
    for try in {1..50}; do
        for model in /sys/block/*/device/model; do
            grep -qs '^scsi_debug' "$model" || continue
            disk=$(basename "$(dirname "$(dirname "$model")")")
            [[ -e /dev/$disk && -d /sys/block/$disk/device/scsi_generic ]] || continue
            node=$(generic "$disk")
            return
        done
        sleep 0.2
    done
    echo 'no disk of scsi_debug' >>"$out/setup.failed"
    disk=no-disk node=/dev/no-disk
}

# set_debug NAME VALUE: a setting of the driver; busy while a command is on its way.
set_debug() {
    local try
    for try in {1..20}; do
        echo "$2" 2>/dev/null >"$debug/$1" && return
        sleep 0.1
    done
    echo "$1 cannot be $2" >>"$out/setup.failed"
}

# A job each: starting the program costs more than its steps.
sizes() {
    echo 'steps:'
    local size
    for size in 4k 260k 1M 4M; do
        echo "  - { name: $size, rw: read, bs: $size, iodepth: 4, number_ios: 12 }"
    done
    # An emulated MegaRAID fails what moves nothing.
    [[ $1 == LABRAID* ]] || echo '  - { name: probe, rw: probe, number_ios: 100 }'
}
repeats() {
    echo 'steps:'
    local try
    for try in {1..8}; do
        echo "  - { name: try $try, rw: randread, bs: 4k, number_ios: 20 }"
    done
}

part_sg() {
    local disk node how delay round
    note sg-inside env RUST_BACKTRACE=0 "$LANEMARK_TEST_PROGRAM" --test-threads=1 sg_inside
    repeats >/tmp/repeats.yaml

    for how in LABSAS0001 LABRAID0001 LABSATA0001; do
        node=$(generic "$(by_serial "$how")")
        sizes "$how" >/tmp/sizes.yaml
        note "sg-$how" measure /tmp/sizes.yaml --device "$node"
    done
    note sg-no-probe measure --device "$(generic "$(by_serial LABRAID0001)")" --rw probe
    disk=$(by_serial LABSAS0002)
    note sg-by-disk measure --backend sg --device "/dev/$disk" --rw randrw --bs 4k --iodepth 40 --fsync 16 --number_ios 400 --allow-write LABSAS0002
    note sg-trim measure --device "$(generic "$disk")" --rw randtrim --bs 64k --number_ios 20 --allow-write "/dev/$disk"
    note sg-zeroes measure --device "$(generic "$disk")" --rw randwritezeroes --bs 64k --number_ios 20 --allow-write "/dev/$disk"
    disk=$(by_serial LABSATA0001)
    note sg-no-zeroes measure --device "$(generic "$disk")" --rw writezeroes --number_ios 20 --allow-write "/dev/$disk"
    disk=$(by_serial LABSAS0002)
    must eval 'echo 1 >/sys/module/sg/parameters/allow_dio'
    note sg-direct measure --device "$(generic "$disk")" --rw randread --bs 16k --iodepth 8 --number_ios 200
    must eval 'echo 0 >/sys/module/sg/parameters/allow_dio'
    note sg-calibrate "$lanemark" calibrate --format json --device "$(generic "$disk")"

    # Medium errors at 10 blocks from 0x1234 on.
    scsi_debug opts=2 ndelay=20000
    note sg-medium measure --device "$node" --rw read --bs 512 --offset 2M --size 512k --iodepth 8 --number_ios 1024
    set_debug opts 0
    must mkfs.ext4 -q -F "/dev/$disk"
    must mount "/dev/$disk" /mnt
    note sg-mounted measure --device "$node" --rw randwrite --number_ios 4 --allow-write "$node" --overwrite ext4
    must umount /mnt

    # The truth is what lies between two delays. They take turns: an emulator that is short of its cores makes
    # everything late for seconds at a time, and one delay alone would be taken for longer than it is.
    scsi_debug ndelay=1000000
    for round in {1..4}; do
        for delay in 1 2; do
            set_debug ndelay "${delay}000000"
            note "sg-delay-$delay-$round" measure /tmp/repeats.yaml --device "$node"
            note "uring-delay-$delay-$round" measure /tmp/repeats.yaml --device "/dev/$disk"
        done
    done
    # A changed capacity is a unit attention for whoever comes next.
    set_debug virtual_gb 1
    note sg-attention measure --device "$node" --rw randread --number_ios 100
    # What lies past the new end of a disk that shrinks under a run.
    note sg-shrunk measure --device "$node" --rw randread --iodepth 4 --rate_iops 100 --runtime 8s &
    sleep 4
    set_debug virtual_gb 0
    wait $!
    removed uring "/dev/$disk" "echo offline >/sys/block/$disk/device/state"

    scsi_debug max_queue=4 ndelay=1000000
    note sg-depth measure --device "$node" --rw randread --iodepth 64 --number_ios 2000
    note sg-shared measure --device "$node" --rw randread --iodepth 32 --streams 2 --reactors 2 --number_ios 600
    removed sg "$node" "echo 1 >/sys/block/$disk/device/delete"
}

# sent: commands that the disk was sent so far.
sent() { printf '%d' "$(<"/sys/block/$disk/device/iorequest_cnt")"; }

# removed NAME DEVICE COMMAND: a run that loses its device by this command, once it is well on its way: more was
# sent than the samples for never-written blocks.
removed() {
    local started before try run
    before=$(sent)
    note "lost-$1" measure --device "$2" --rw randread --iodepth 8 --runtime 60s &
    run=$!
    for try in {1..150}; do
        (($(sent) - before < 1000)) || break
        sleep 0.2
    done
    must eval "$3"
    started=$(date +%s%N)
    wait "$run"
    echo $((($(date +%s%N) - started) / 1000000)) >"$out/lost-$1.ms"
}
