#!/bin/bash
# Runs in the lab's guest, once for each of the smaller topologies, and leaves what came of it in the shared folder.
# usage: topologies.sh LANEMARK FOLDER
set -u
lanemark=$1 out=$2
# shellcheck source=guest.sh
source "$(dirname "${BASH_SOURCE[0]}")/guest.sh" "$lanemark" "$out"

# claimed FUNCTION...: claimed, run through SPDK, given back.
claimed() {
    note claim claim "$@" --hugepages 300M
    note run measure --device "$1 ns:1" --rw randread --iodepth 8 --runtime 1s
}

case $LANEMARK_IN_LAB in
    aw39)
        claimed "$(address "$(namespace LABNVME0001 1)")"
        note release release --all
        ;;
    noiommu)
        bdf=$(address "$(namespace LABNVME0001 1)")
        claimed "$bdf"
        long first --device "$bdf ns:1" --rw randread --iodepth 4 --runtime 200s
        note second measure --device "$bdf ns:1" --rw randread --number_ios 4
        note second-claim measure --claim --device "$bdf ns:1" --rw randread --number_ios 4
        note release-driven release "$bdf"
        kill -INT "$long_pid"
        ended first
        note release release --all
        ;;
    shared-group)
        one=$(address "$(namespace LABNVME0001 1)") two=$(address "$(namespace LABNVME0002 1)")
        note alone claim "$one"
        note alone-run measure --claim --device "$one" --rw randread --number_ios 4
        claimed "$one" "$two"
        note both measure --device "$one ns:1" --device "$two" --rw randread --iodepth 4 --runtime 1s
        note release release "$two" "$one"
        note release-nothing release --all
        driver "$one" >"$out/one.driver"
        driver "$two" >"$out/two.driver"
        ;;
    mdts3)
        disk=$(namespace LABNVME0001 1)
        bdf=$(address "$disk")
        note kernel measure --device "/dev/$disk" --rw read --bs 1m --number_ios 8
        claimed "$bdf"
        note split measure --device "$bdf" --rw read --bs 1m --number_ios 8
        note whole measure --device "$bdf" --rw read --bs 32k --number_ios 8
        note release release "$bdf"
        ;;
    many-disks)
        for try in {1..10}; do
            began=${EPOCHREALTIME/./}
            note devices "$lanemark" devices --format json
            took_ms=$(((${EPOCHREALTIME/./} - began) / 1000))
            echo $took_ms
            ((took_ms >= 2000)) || break
        done | sort -n | head -n 1 >"$out/devices.ms"
        disks=()
        for disk in /dev/sd[a-p]; do disks+=(--device "$disk"); done
        began=$(date +%s%N)
        note sixteen measure "${disks[@]}" --rw randread --iodepth 2 --runtime 1s
        echo $((($(date +%s%N) - began) / 1000000)) >"$out/sixteen.ms"
        ;;
    slow-link)
        # Read by `lanes.rs`.
        note lanes "$lanemark" lanes --format json
        note lspci lspci -vv -D
        note fast measure --device /dev/nvme0n1 --rw read --bs 1m --iodepth 16 --runtime 5s
        claimed "$(address "$(namespace LABNVME0001 1)")"
        note release release --all
        ;;
esac
