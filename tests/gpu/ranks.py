#!/usr/bin/env python3
"""Ranks on two GPUs: payloads of NCCL, a straggler, FSDP, messages, bus bandwidth, what recording adds to a collective.

    ranks.py BIN_DIR [PYTHON with torch]

Prints a line for each check, `ok` or `FAIL` with the numbers; exit code 1 where one failed. Four minutes: pairs of runs with and without recording
are repeated until BUDGET seconds (210) are over, five times at most. PARTS names the parts to run. Where OUT is set, reports (JSON) and recordings
go to OUT/ranks.tar.xz."""
import collections
import json
import os
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback

BEGAN, BUDGET, OUT = time.monotonic(), float(os.environ.get("BUDGET", "210")), os.environ.get("OUT")
BIN, PYTHON = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else sys.executable
RANGESCOPE, PROGRAM = os.path.join(BIN, "rangescope"), os.path.join(os.path.dirname(os.path.abspath(__file__)), "ranks_program.py")
failed = []


def check(name, good, *numbers):
    print("ok  " if good else "FAIL", name, *numbers, flush=True)
    failed.extend([] if good else [name])


def run(*command):
    limit = max(20, min(90, 480 - (time.monotonic() - BEGAN)))  # of all: no run that hangs may take the others' time
    return subprocess.run(["timeout", "-k", "10", str(int(limit)), *command], cwd=folder, capture_output=True, text=True, check=False)


def torchrun(*command, name="torchrun ends well"):
    done = run(PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *command)
    if done.returncode != 0:
        print(done.stdout[-2000:], done.stderr[-3000:])
        check(name, False, done.returncode)
    return done.stdout


def profile(name, *command):
    return torchrun("--no-python", RANGESCOPE, "profile", "-q", "--runs", name, "--", PYTHON, PROGRAM, *command, name=f"profile {name}")


def report(name):
    done = run(RANGESCOPE, "report", name, "-f", "json")
    with open(os.path.join(folder, os.path.basename(name) + ".json"), "w", encoding="utf-8") as file:
        file.write(done.stdout)
    if done.returncode != 0:
        check(f"report {name}", False, done.stderr[-500:])
    return json.loads(done.stdout)


def query(name, sql):
    done = run(RANGESCOPE, "query", name, sql, "-f", "jsonl")
    if done.returncode != 0:
        check(f"query {name}", False, done.stderr[-500:])
    return [json.loads(line) for line in done.stdout.splitlines()]


def kernels_of(name, regions, kind):
    """Kernels of NCCL in ranges, by process in order: the recording's own rows, without what the report made of them."""
    rows = query(name, f"""SELECT DISTINCT k.id, k.pid, k.start_ns, k.end_ns, r.name FROM kernels k JOIN places p ON p.place = k.place
                           JOIN regions r ON r.id = p.region WHERE k.short_name LIKE 'nccl%{kind}%' AND r.name LIKE '{regions}'
                           ORDER BY k.pid, k.start_ns""")
    out = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        out[row["name"]][row["pid"]].append((row["start_ns"], row["end_ns"]))
    return out


def beside(name, regions, kind):
    """Share of those kernels' time beside other kernels of their process and device, by sweeping over the recording's rows."""
    compute = collections.defaultdict(list)
    for row in query(name, "SELECT pid, start_ns, end_ns FROM kernels WHERE short_name NOT LIKE 'nccl%' ORDER BY pid, start_ns"):
        spans = compute[row["pid"]]
        if spans and row["start_ns"] <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], row["end_ns"])
        else:
            spans.append([row["start_ns"], row["end_ns"]])
    both = whole = 0
    for by_pid in kernels_of(name, regions, kind).values():
        for pid, spans in by_pid.items():
            for start, end in spans:
                whole += end - start
                both += sum(max(0, min(end, b) - max(start, a)) for a, b in compute[pid])
    return both / whole if whole else None


def hidden(rows):
    whole = sum(rank["time_ns"] for row in rows for rank in row["by_rank"])
    return sum(rank["hidden_ns"] for row in rows for rank in row["by_rank"]) / whole if whole else None


def near(value, truth, tolerance):
    return value is not None and truth is not None and abs(value - truth) <= tolerance * abs(truth)


def times(text):
    """Nanoseconds a call of each round, by (how, bytes)."""
    found = re.findall(r"^RESULT (\w+) (\d+)((?: \d+)+)$", text, re.M)
    return {(how, int(size)): [int(each) for each in rounds.split()] for how, size, rounds in found}


def prepare():
    # A rank that is slow by a function: its name, and what the job saves without it.
    steps = {}
    for words in (("prepare",), ("prepare", "even")):
        took = [int(re.search(r"RESULT step_ns (\d+)", torchrun(PROGRAM, *words)).group(1)) for _ in range(3)]
        steps[words] = statistics.median(took)
    realised = 60 * (steps["prepare",] - steps["prepare", "even"])
    profile("prepare", "prepare")
    first = report("prepare")["verdict"][0]
    check("prepare: the function is named", first["path"].startswith("prepare (ranks_program.py:"), first["text"])
    check("prepare: its saving comes true", near(first["saves_ns"], realised, 0.1), first["saves_ns"], realised, steps)


def straggle():
    # One rangescope a rank: one job, its collectives with payloads, the straggler by name.
    profile("straggle", "straggle")
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
    mine, truth = hidden([c for c in rows if c["path"][:1] == ["step"]]), beside("straggle", "step", "AllReduce")
    check("as a sweep over the kernels gives it", near(mine, truth, 0.01), mine, truth)
    check("paces of the GPUs", all(r["work"]["kernel_pace"] and 0.97 < r["work"]["kernel_pace"] < 1.03 for r in job["ranks"]), [r["work"]["kernel_pace"] for r in job["ranks"]])
    check("no other reason is named", not {v["kind"] for v in job["verdict"]} & {"slow_gpu", "slow_host", "uneven_work", "slow_link"}, [v["text"] for v in job["verdict"]])
    sampled("straggle", job)
    print(run(RANGESCOPE, "report", "straggle", "--width", "160").stdout[:3000])


def sampled(name, job):
    # Each rank samples the GPU of its own, and that one alone.
    check("each rank samples its GPU", not [l for l in job["losses"] if l["kind"] == "not_sampled"], [l["detail"][:90] for l in job["losses"] if l["kind"] == "not_sampled"])
    for rank in job["ranks"]:
        own = [s for s in report(os.path.join(name, job["run"]["id"], rank["run"])).get("sampled") or [] if s["source"].startswith("CUPTI")]
        check(f"    rank {rank['rank']}", len(own) == 1 and own[0]["busy_ns"] > 0, [(s["uuid"], s["busy_ns"]) for s in own])


def over():
    # One rangescope over torchrun gives the same ranks.
    done = run(RANGESCOPE, "profile", "-q", "--runs", "over", "--", PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", PROGRAM, "straggle")
    job = report(os.path.join("over", os.listdir(os.path.join(folder, "over"))[0]))
    check("one over torchrun", done.returncode == 0 and [r["rank"] for r in job["ranks"]] == [0, 1], done.returncode)


def messages():
    # Messages, grouped and alone, and a rank with more to do.
    profile("messages", "messages")
    job = report("messages")
    pairs = {(m["path"][-1], m["from"], m["to"]): m for m in job["messages"] if m["path"]}
    check("both directions of the exchange are matched", all(pairs.get(("exchange", a, 1 - a), {}).get("calls") == 20 for a in (0, 1)), {k: m["calls"] for k, m in pairs.items()})
    check("with their bytes", all(m["bytes"] == m["calls"] * (16 << 20) for k, m in pairs.items() if k[0] in ("exchange", "pass")), {k: m["bytes"] for k, m in pairs.items()})
    one = pairs.get(("pass", 1, 0), {})
    check("rank 1 is a late sender", one.get("late_senders") == 20 and one.get("late_sender_ns", 0) > 20 * 3e6, one)
    check("bandwidth of messages", all(m["bytes_per_s"] and 1e9 < m["bytes_per_s"] < 1e12 for k, m in pairs.items() if k[0] in ("exchange", "pass")), {k: m["bytes_per_s"] for k, m in pairs.items()})
    verdict = next((v for v in job["verdict"] if v["kind"] == "uneven_work"), None)
    check("rank 0 has more to do", verdict is not None and verdict["evidence"]["rank"] == 0, [v["text"] for v in job["verdict"]])


def fsdp():
    # Gathers and scatters of fully_shard, beside what the program counted.
    text = profile("fsdp", "fsdp")
    truth = {(where, function): (int(calls), int(size)) for where, function, calls, size in re.findall(r"^FSDP (\w+) (\w+) (\d+) (\d+)$", text, re.M)}
    steps, weights = truth.pop(("weights", "all"))
    job = report("fsdp")
    rows = [c for c in job["collectives"] if c["library"] == "NCCL" and c["path"][:1] == ["step"]]
    for (where, function), (calls, size) in truth.items():
        kind = {"all_gather_into_tensor": "AllGather", "reduce_scatter_tensor": "ReduceScatter"}[function]
        mine = [c for c in rows if c["operation"] == kind and where in c["path"]]
        got = sum(c["calls"] for c in mine), sum(c["calls"] * c["bytes"] for c in mine)
        check(f"FSDP: {kind} of {where}: calls and bytes", got == (calls, size), got, (calls, size))
    scattered = sum(c["calls"] * c["bytes"] for c in rows if c["operation"] == "ReduceScatter")
    check("a step scatters half of the gradients", scattered == steps * weights * 4 // 2, scattered / steps, weights * 2)
    check("all have a communicator and two ranks", rows and all(c["communicator"] and c["ranks"] == 2 for c in rows), {c["communicator"] for c in rows})
    for kind in ("AllGather", "ReduceScatter"):
        mine, swept = hidden([c for c in rows if c["operation"] == kind]), beside("fsdp", "step", kind)
        check(f"{kind} hidden under compute, beside a sweep over the kernels", near(mine, swept, 0.01), mine, swept)
    check("nothing is lost", not [l for l in job["losses"] if "coll" in l["kind"] or "message" in l["kind"]], job["losses"])
    print("    ", [v["text"] for v in job["verdict"]][:4])


def bandwidth():
    # Bus bandwidth by the report, by the formula on the recording's own kernels, and on the program's own times of the same calls.
    taken = times(profile("bandwidth", "bandwidth"))
    rows = {row["path"][-1]: row for row in report("bandwidth")["collectives"] if row["operation"] == "AllReduce" and row["path"]}
    for region, by_pid in kernels_of("bandwidth", "queued %", "AllReduce").items():
        size = int(region.split()[1])
        mean = statistics.mean(taken["queued", size])
        calls = list(zip(*by_pid.values(), strict=True))
        shortest = statistics.mean(min(end - start for start, end in call) for call in calls)
        whole = lambda ns: size / ns * 2 * (2 - 1) / 2  # GB/s
        mine = (rows[region]["busbw_bytes_per_s"] or 0) / 1e9
        check(f"busbw of {size} bytes by the recorded kernels", len(by_pid) == 2 and rows[region]["calls"] == len(calls) and near(mine, whole(shortest), 0.001),
              f"{mine:.2f} {whole(shortest):.2f} GB/s of {len(calls)} calls")
        turns = len(calls) // 7
        spans = list(by_pid.values())[0]
        period = statistics.mean((spans[i + turns - 1][0] - spans[i][0]) / (turns - 1) for i in range(0, len(spans), turns))
        check(f"    from call to call, as the events say", near(period, mean, 0.02), f"{period:.0f} {mean:.0f} ns")
        check(f"    and by nccl-tests' formula on the events", size < 64 << 20 or near(mine, whole(mean), 0.02),
              f"{whole(mean):.2f} GB/s: {mine / whole(mean) - 1:+.1%} (gaps between kernels are in the events alone)")


def floor():
    """tests/gpu/floor.cpp as a library: the least that records of kernels cost; None where it cannot be built."""
    here, path = os.path.dirname(PROGRAM), os.path.join(folder, "libfloor.so")
    include = os.environ.get("CUPTI_INCLUDE", "/usr/local/cuda/extras/CUPTI/include")  # where it is not beside CUDA's
    done = run("g++", "-O2", "-std=c++17", "-shared", "-fPIC", f"-I{include}", "-I/usr/local/cuda/include", f"{here}/floor.cpp", "-o", path, "-ldl")
    return path if done.returncode == 0 else None


def added():
    # What recording adds to a call, beside a bare client of CUPTI: runs in turns, the median of the rounds of all.
    library = floor()
    ways = {"bare": lambda: torchrun(PROGRAM, "added"), "recorded": lambda: profile(f"added-{len(os.listdir(folder))}", "added")}
    if library:
        ways["floor"] = lambda: torchrun("--no-python", "env", f"CUDA_INJECTION64_PATH={library}", PYTHON, PROGRAM, "added")
    taken = {way: collections.defaultdict(list) for way in ways}
    for turn in range(5):
        if turn >= 2 and time.monotonic() - BEGAN > BUDGET:
            break
        for way in ways if turn % 2 == 0 else reversed(ways):
            for key, rounds in times(ways[way]()).items():
                taken[way][key].extend(rounds)
    for how, size in sorted(taken["bare"]):
        middle = {way: statistics.median(taken[way][how, size]) for way in ways}
        least = {way: min(taken[way][how, size]) for way in ways}
        more = ", ".join(f"{way} {middle[way] / middle['bare'] - 1:+.2%} (best {least[way] / least['bare'] - 1:+.2%})" for way in ways if way != "bare")
        # How fast a program calls is its CPU's: that moves by tens of percent from run to run.
        check(f"{size} bytes, {how}: below 1 % added", how == "called" or middle["recorded"] <= 1.01 * middle["bare"],
              f"{middle['bare']:.0f} ns a call bare: {more}; {len(taken['bare'][how, size])} rounds")


with tempfile.TemporaryDirectory(prefix="rangescope-ranks-") as folder:
    subprocess.run([PYTHON, "-c", "import torch; print(torch.__version__, torch.cuda.nccl.version(), torch.cuda.get_device_name(0), torch.cuda.device_count())"], check=False)
    for part in (straggle, prepare, over, messages, fsdp, bandwidth, added):
        if part.__name__ not in os.environ.get("PARTS", part.__name__).split():
            continue
        print(f"== {part.__name__} at {time.monotonic() - BEGAN:.0f} s", flush=True)
        try:
            part()
        except Exception:  # the other parts still say theirs
            traceback.print_exc(limit=3, file=sys.stdout)
            check(part.__name__, False, "did not come to its end")
    if OUT:
        with tarfile.open(os.path.join(OUT, "ranks.tar.xz"), "w:xz") as archive:
            for name in sorted(os.listdir(folder)):
                if name.endswith(".json") or name in ("straggle", "messages", "fsdp"):
                    archive.add(os.path.join(folder, name), name)
    print(f"== {len(failed)} failed, {time.monotonic() - BEGAN:.0f} s")
sys.exit(1 if failed else 0)
