"""Alternating pairs of lanemark and spdk_nvme_perf on one nvmf_tgt. Started by scripts/bench/spdk."""

import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

PAIRS, SECONDS, PREFIX = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
NQN = "nqn.2026-01.io.lanemark:bench-"
HUGEPAGES_COUNT = 768
TARGET_CPU, INITIATOR_CPU = 0, 1
CASES = [("vfio-user null, depth 128", "VFIOUSER", "null", 128),
         ("vfio-user malloc, depth 128", "VFIOUSER", "malloc", 128),
         ("TCP null, depth 32", "TCP", "null", 32)]
ONLY = os.environ.get("ONLY", "")
LANEMARK = os.environ.get("LANEMARK", "target/release/lanemark")


def rpc(path, method, **params):
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(20)
        link.connect(path)
        request = {"jsonrpc": "2.0", "id": 1, "method": method}
        if params:
            request["params"] = params
        link.sendall(json.dumps(request).encode())
        answer = b""
        while True:
            answer += link.recv(65536)
            try:
                value = json.loads(answer)
                break
            except ValueError:
                continue
    if "error" in value:
        raise SystemExit(f"{method}: {value['error']}")
    return value["result"]


def start_target(folder):
    path = os.path.join(folder, "rpc.sock")
    with open(os.path.join(folder, "log"), "w") as log:
        target = subprocess.Popen(
            [f"{PREFIX}/bin/nvmf_tgt", "-m", hex(1 << TARGET_CPU), "-s", "512", "-g", "--disable-cpumask-locks",
             "--env-context", "--in-memory", "-r", path], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    for _ in range(200):
        try:
            rpc(path, "spdk_get_version")
            break
        except OSError:
            time.sleep(0.1)
    return target, path


def set_up(folder, path):
    rpc(path, "bdev_null_create", name="null", num_blocks=1 << 28, block_size=4096)
    rpc(path, "bdev_malloc_create", name="malloc", num_blocks=16384, block_size=4096)
    rpc(path, "bdev_null_create", name="under", num_blocks=1 << 20, block_size=4096)
    rpc(path, "bdev_delay_create", name="silent", base_bdev_name="under", avg_read_latency=SECONDS * 2_000_000,
        p99_read_latency=SECONDS * 2_000_000, avg_write_latency=0, p99_write_latency=0)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    rpc(path, "nvmf_create_transport", trtype="VFIOUSER")
    rpc(path, "nvmf_create_transport", trtype="TCP")
    ids = {}
    for bdev in ("null", "malloc", "silent"):
        nqn, where = NQN + bdev, os.path.join(folder, bdev)
        os.mkdir(where)
        rpc(path, "nvmf_create_subsystem", nqn=nqn, allow_any_host=True, serial_number=bdev, model_number="bench")
        rpc(path, "nvmf_subsystem_add_ns", nqn=nqn, namespace={"nsid": 1, "bdev_name": bdev})
        rpc(path, "nvmf_subsystem_add_listener", nqn=nqn,
            listen_address={"trtype": "VFIOUSER", "traddr": where, "trsvcid": "0"})
        rpc(path, "nvmf_subsystem_add_listener", nqn=nqn,
            listen_address={"trtype": "TCP", "adrfam": "IPv4", "traddr": "127.0.0.1", "trsvcid": str(port)})
        ids["VFIOUSER", bdev] = f"trtype:VFIOUSER traddr:{where} subnqn:{nqn}"
        ids["TCP", bdev] = f"trtype:TCP adrfam:IPv4 traddr:127.0.0.1 trsvcid:{port} subnqn:{nqn}"
    return ids


def lanemark(device, depth, seconds=SECONDS):
    done = subprocess.run(
        [LANEMARK, "run", "--device", device, "--rw", "randread", "--bs", "4k", "--iodepth", str(depth), "--runtime",
         f"{seconds}s", "--ramp_time", "1s", "--cpus", str(INITIATOR_CPU), "--format", "json", "--grace", "30s"],
        capture_output=True, text=True, timeout=120)
    step = json.loads(done.stdout)["steps"][0]
    reactor, window = step["reactors"][0], step["window_s"]
    return {"iops": step["read"]["iops"] if step["read"] else 0.0, "polls": reactor["polls_count"], "window": window,
            "busy": reactor["busy_ns_per_io"], "ratio": reactor["busy_ratio"], "ios": reactor["ios_count"]}


def perf(device, depth, seconds=SECONDS):
    # perf has no in-memory mode: it gets a hugetlbfs mount of its own, which vanishes with it.
    inner = (f"mount -t hugetlbfs none /mnt && exec {PREFIX}/bin/spdk_nvme_perf -g --transport-stats -q {depth} -o 4096 "
             f"-w randread -t {seconds} -a 1 -c {hex(1 << INITIATOR_CPU)} -r '{device}'")
    done = subprocess.run(["unshare", "-m", "sh", "-c", inner], capture_output=True, text=True, timeout=180)
    found = re.search(r"^Total\s*:\s+([\d.]+)", done.stdout, re.M)
    if not found:
        raise SystemExit(f"spdk_nvme_perf said:\n{done.stdout}{done.stderr}")
    polls, idle = (re.search(rf"{name}:\s+(\d+)", done.stdout) for name in ("polls", "idle_polls"))
    return {"iops": float(found[1]), "polls": int(polls[1]) if polls else None, "idle": int(idle[1]) if idle else None}


def interval(values):
    source = random.Random(1)
    medians = sorted(statistics.median(source.choices(values, k=len(values))) for _ in range(2000))
    return statistics.median(values), medians[50], medians[1949]


def case(name, ids, transport, bdev, depth):
    device, ratios, busy = ids[transport, bdev], [], []
    idle_ns = None
    silent = perf(ids[transport, "silent"], 1, SECONDS)
    if silent["polls"]:
        # It waits for its one slow I/O at the end: the run lasts as long as that takes, warm-up included.
        idle_ns = max(SECONDS * 2, SECONDS + 1) * 1e9 / silent["polls"]
    for number in range(PAIRS):
        first, second = (lanemark, perf) if number % 2 == 0 else (perf, lanemark)
        results = {first: first(device, depth), second: second(device, depth)}
        ours, theirs = results[lanemark], results[perf]
        ratios.append(ours["iops"] / theirs["iops"])
        line = f"{name} pair {number + 1}: lanemark {ours['iops']:,.0f}  perf {theirs['iops']:,.0f}  ratio {ratios[-1]:.4f}"
        if idle_ns and theirs["idle"] is not None and ours["busy"]:
            elapsed = (SECONDS + 1) * 1e9  # its statistics include the warm-up
            theirs_busy = (elapsed - theirs["idle"] * idle_ns) / (theirs["iops"] * (SECONDS + 1))
            busy.append(ours["busy"] / theirs_busy)
            line += f"  busy ns/IO {ours['busy']:.0f} against {theirs_busy:.0f}"
        print(line, flush=True)
    median, low, high = interval(ratios)
    text = f"{name}: median ratio of IOPS {median:.4f} (95 %: {low:.4f} to {high:.4f})"
    if busy:
        median, low, high = interval(busy)
        text += f", of busy ns per I/O {median:.3f} ({low:.3f} to {high:.3f})"
    print(text, flush=True)


def main():
    pages = "/proc/sys/vm/nr_hugepages"
    with open(pages) as file:
        before = int(file.read())
    if before < HUGEPAGES_COUNT:
        with open(pages, "w") as file:
            file.write(str(HUGEPAGES_COUNT))
    with tempfile.TemporaryDirectory() as folder:
        target, path = start_target(folder)
        try:
            ids = set_up(folder, path)
            for name, transport, bdev, depth in CASES:
                if ONLY in name:
                    case(name, ids, transport, bdev, depth)
        finally:
            target.kill()
            target.wait()
            if before < HUGEPAGES_COUNT:
                with open(pages, "w") as file:
                    file.write(str(before))


main()
