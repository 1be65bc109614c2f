#!/usr/bin/env python3
"""Ranks on two GPUs: payloads of NCCL, a straggler, bus bandwidth, what recording adds to a collective. Usage: ranks.py BIN_DIR [PYTHON]

Prints a line for each check, `ok` or `FAIL` with the numbers; exit code 1 where one failed."""
import json
import os
import subprocess
import sys
import tempfile

BIN, PYTHON = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else sys.executable
RANGESCOPE, PROGRAM = os.path.join(BIN, "rangescope"), os.path.join(os.path.dirname(os.path.abspath(__file__)), "ranks_program.py")
failed = []


def check(name, good, *numbers):
    print("ok  " if good else "FAIL", name, *numbers, flush=True)
    failed.extend([] if good else [name])


def torchrun(*command):
    done = subprocess.run([PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *command], cwd=folder, capture_output=True,
                          text=True, timeout=240)
    if done.returncode != 0:
        print(done.stdout[-2000:], done.stderr[-3000:])
    check("torchrun ends well", done.returncode == 0, done.returncode)
    return done.stdout


def report(name):
    done = subprocess.run([RANGESCOPE, "report", name, "-f", "json"], cwd=folder, capture_output=True, text=True, timeout=240)
    check("report", done.returncode == 0, done.stderr[-500:])
    return json.loads(done.stdout)


def times(text):
    return {int(line.split()[1]): float(line.split()[2]) for line in text.splitlines() if line.startswith("RESULT")}


with tempfile.TemporaryDirectory(prefix="rangescope-ranks-") as folder:
    # 1. One rangescope a rank: one job, its collectives with payloads, the straggler by name.
    torchrun("--no-python", RANGESCOPE, "profile", "-q", "--runs", "straggle", "--", PYTHON, PROGRAM, "straggle")
    job = report("straggle")
    check("two ranks", [r["rank"] for r in job["ranks"]] == [0, 1], [(r["rank"], r["local_rank"], r["device"]) for r in job["ranks"]])
    rows = [c for c in job["collectives"] if c["library"] == "NCCL" and c["operation"] == "AllReduce"]
    check("all_reduce has bytes", bool(rows) and all(c["bytes"] for c in rows), [(c["communicator"], c["bytes"], c["calls"]) for c in rows[:3]])
    check("and a communicator (NCCL 2.26)", bool(rows) and all(c["communicator"] for c in rows), [l for l in job["losses"] if "coll" in l["kind"]])
    verdict = next((v for v in job["verdict"] if v["kind"] == "straggler"), None)
    check("rank 1 is the straggler", verdict is not None and verdict["evidence"]["rank"] == 1, verdict and verdict["text"])
    check("because of straggle", verdict is not None and "straggle" in verdict["path"], verdict and verdict["path"])
    parts = [r["communication"] for r in job["regions"] if r.get("communication")]
    check("time in collectives = transfer + wait + overlap", parts and all(abs(p["time_ns"] - p["transfer_ns"] - p["wait_ns"] - p["overlap_ns"]) < 2 for p in parts), len(parts))
    backward = next((r["communication"] for r in job["regions"] if r["path"][-1:] == ["backward"] and r["process"] is None and r.get("communication")), None)
    check("collectives of the autograd thread stand in backward, held up by rank 1", backward and backward["held_up_by"] and backward["held_up_by"][0]["rank"] == 1, backward)
    check("share hidden under compute", any(c["hidden_share"] is not None and 0 < c["hidden_share"] < 1 for c in rows), [(c["bytes"], c["hidden_share"]) for c in rows[:4]])
    check("paces of the GPUs", all(r["work"]["kernel_pace"] and 0.9 < r["work"]["kernel_pace"] < 1.1 for r in job["ranks"]), [r["work"]["kernel_pace"] for r in job["ranks"]])
    check("no other reason is named", not {v["kind"] for v in job["verdict"]} & {"slow_gpu", "slow_host", "uneven_work", "slow_link"}, [v["text"] for v in job["verdict"]])
    print(subprocess.run([RANGESCOPE, "report", "straggle", "--width", "160"], cwd=folder, capture_output=True, text=True).stdout[:3000])

    # 2. One rangescope over torchrun gives the same ranks.
    done = subprocess.run([RANGESCOPE, "profile", "-q", "--runs", "over", "--", PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                           PROGRAM, "straggle"], cwd=folder, capture_output=True, text=True, timeout=240)
    over = report(os.path.join("over", os.listdir(os.path.join(folder, "over"))[0]))
    check("one over torchrun", done.returncode == 0 and [r["rank"] for r in over["ranks"]] == [0, 1], done.returncode)

    # 3. Messages, grouped and alone, and a rank with more to do.
    torchrun("--no-python", RANGESCOPE, "profile", "-q", "--runs", "messages", "--", PYTHON, PROGRAM, "messages")
    job = report("messages")
    pairs = {(m["path"][-1], m["from"], m["to"]): m for m in job["messages"] if m["path"]}
    check("both directions of the exchange are matched", all(pairs.get(("exchange", a, 1 - a), {}).get("calls") == 20 for a in (0, 1)), {k: m["calls"] for k, m in pairs.items()})
    check("with their bytes", all(m["bytes"] == m["calls"] * (16 << 20) for k, m in pairs.items() if k[0] in ("exchange", "pass")), {k: m["bytes"] for k, m in pairs.items()})
    one = pairs.get(("pass", 1, 0), {})
    check("rank 1 is a late sender", one.get("late_senders") == 20 and one.get("late_sender_ns", 0) > 20 * 3e6, one)
    check("bandwidth of messages", all(m["bytes_per_s"] and 1e9 < m["bytes_per_s"] < 1e12 for k, m in pairs.items() if k[0] in ("exchange", "pass")), {k: m["bytes_per_s"] for k, m in pairs.items()})
    verdict = next((v for v in job["verdict"] if v["kind"] == "uneven_work"), None)
    check("rank 0 has more to do", verdict is not None and verdict["evidence"]["rank"] == 0, [v["text"] for v in job["verdict"]])

    # 4. Bus bandwidth by the report and by the formula of nccl-tests on the program's own times.
    bare = times(torchrun(PROGRAM, "bandwidth"))
    profiled = times(torchrun("--no-python", RANGESCOPE, "profile", "-q", "--runs", "bandwidth", "--", PYTHON, PROGRAM, "bandwidth"))
    for row in report("bandwidth")["collectives"]:
        size = next((s for s in profiled if row["path"] == [f"size {s}"] and row["operation"] == "AllReduce"), None)
        if size is None:
            continue
        truth = size / (profiled[size] / 1e9) * 2 * (2 - 1) / 2
        if row["busbw_bytes_per_s"] is None:
            check(f"busbw of {size} bytes", False, "the report has none")
            continue
        ratio = row["busbw_bytes_per_s"] / truth  # gaps between kernels, about 5 us, are in the events alone
        check(f"busbw of {size} bytes", size < 512 << 20 or abs(ratio - 1) <= 0.02, f"report {row['busbw_bytes_per_s'] / 1e9:.2f} GB/s, events {truth / 1e9:.2f} GB/s, ratio {ratio:.3f}")
    for size in bare:  # one run each: noise is a percent or two
        print(f"     {size} bytes: {bare[size]:.0f} ns a call bare, {profiled[size]:.0f} ns profiled: {profiled[size] / bare[size] - 1:+.2%}")
sys.exit(1 if failed else 0)
