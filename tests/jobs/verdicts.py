#!/usr/bin/env python3
"""Simulated jobs of which everything is known (simulate.py), through the real readers: why ranks differ, and where the time of
communication goes. Usage: verdicts.py BIN_DIR SOURCE_DIR"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
sys.dont_write_bytecode = True
import cases  # noqa: E402
import json_schema  # noqa: E402
import perfetto_reader  # noqa: E402
import simulate  # noqa: E402

BIN, SOURCE = os.path.abspath(sys.argv[1]), sys.argv[2]
RANGESCOPE = os.path.join(BIN, "rangescope")
SEEDS = range(20)
REASONS = {"slow_gpu", "slow_host", "uneven_work", "slow_link", "straggler"}


class Verdicts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rangescope-simulated-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def report(self, name, schema=False, *more):
        done = subprocess.run([RANGESCOPE, "report", f"{self.folder}/{name}", "-f", "json", *more], cwd=self.folder, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        if schema:
            with open(f"{SOURCE}/docs/formats/report.schema.json", encoding="utf-8") as f:
                self.assertEqual(json_schema.errors(report, json.load(f)), [])
        return report

    def check_named(self, fault, also=()):
        kind = {"slow_pair": "slow_link"}.get(fault, fault)
        for seed in SEEDS:
            truth = simulate.simulate(f"{self.folder}/{seed}", seed, fault)
            report = self.report(seed, seed == 0)
            said = {v["kind"]: v for v in report["verdict"] if v["kind"] in REASONS}
            with self.subTest(seed=seed, truth=truth, said={k: v["text"] for k, v in said.items()}):
                self.assertIn(kind, said)
                if fault == "slow_host":
                    self.assertIn(f"host {truth} takes", said[fault]["text"])
                elif fault == "slow_pair":
                    self.assertEqual({said["slow_link"]["evidence"][k] for k in ("rank", "peer")}, truth)
                    self.assertRegex(said["slow_link"]["text"], r"^transfers between rank \d+ \(node\d\) and rank \d+ \(node\d\) move ")
                else:
                    self.assertEqual((said[fault]["evidence"]["rank"], said[fault]["evidence"].get("ranks", 1)), (truth, 1))
                self.assertGreater(said[kind]["saves_ns"], 0)
                self.assertLessEqual(set(said), {kind, *also})

    # Whoever is slow, or has more to do, comes late as well.
    def test_a_slow_gpu(self):
        self.check_named("slow_gpu", {"straggler"})

    def test_a_slow_host(self):
        self.check_named("slow_host", {"straggler"})

    def test_more_work(self):
        self.check_named("uneven_work", {"straggler"})

    def test_a_slow_link(self):
        self.check_named("slow_link", {"straggler"})

    def test_a_slow_link_between_two_ranks(self):
        self.check_named("slow_pair", {"straggler"})

    def test_kernels_beside_those_of_nccl_say_nothing_of_the_gpu(self):
        """Of rank 0 NCCL's kernels wait for rank 1, and take part of the GPU: what runs beside them is slower."""
        ranks = [simulate.Rank(r) for r in range(2)]
        for n in range(20):
            at = n * 20 * simulate.MS
            for r in ranks:
                waits = r.rank == 0
                r.range("step", at, at + 19 * simulate.MS)
                for k in range(4):  # the last two beside NCCL on rank 0
                    start, length = at + (1 + 3 * k) * simulate.MS, 2 * simulate.MS
                    r.kernel("_Z4gemmPf", 528, start - simulate.MS, start, start + round(length * (1.4 if waits and k > 1 else 1)))
                r.range("ncclAllReduce", at + 6 * simulate.MS, at + 6 * simulate.MS + 1000, simulate.NCCL, simulate.COLLECTIVE, (7, 1 << 26))
                r.kernel("ncclDevKernel_AllReduce", 16, at + 6 * simulate.MS + 500, at + (7 if waits else 16) * simulate.MS, at + 18 * simulate.MS, 1)
        simulate.job(f"{self.folder}/job", ranks)
        report = self.report("job")
        self.assertEqual([r["work"]["kernel_pace"] for r in report["ranks"]], [1, 1])
        self.assertNotIn("slow_gpu", [v["kind"] for v in report["verdict"]])

    def test_a_straggler(self):
        self.check_named("straggler")

    def test_a_range_of_one_rank_alone_has_no_ratio(self):
        truth = simulate.simulate(f"{self.folder}/alone", 4, "straggler", count=8, steps=20)
        found = next(v for v in self.report("alone")["verdict"] if v["kind"] == "straggler")
        self.assertRegex(found["text"], rf"\Aonly rank {truth} spends time here: [\d.]+ ms, the others 0 ns \(median\)\Z")

    def test_digests_say_the_same(self):
        """On one clock: captures of several hosts are brought to that of one, lengths too."""
        said = set()
        for fault in ("slow_gpu", "slow_host", "uneven_work", "slow_link", "slow_pair", "straggler", None):
            for seed in range(4):
                simulate.simulate(f"{self.folder}/{fault}{seed}", seed, fault, hosts=1 + (fault == "slow_host"))
                captures, digests = (self.report(f"{fault}{seed}", seed == 0, form) for form in ("--captures", "--digests"))
                of = lambda report: {v["kind"]: v["text"] for v in report["verdict"] if v["kind"] in REASONS}
                whole = lambda report: [r.get("communication") for r in report["regions"] if r["process"] is None]
                with self.subTest(fault=fault, seed=seed):
                    self.assertEqual(of(digests), of(captures))
                    if fault != "slow_host":
                        self.assertEqual(digests["messages"], captures["messages"])
                        self.assertEqual(whole(digests), whole(captures))
                said |= set(of(captures))
        self.assertEqual(said, REASONS)

    def test_nothing_is_said_of_even_jobs(self):
        for seed in SEEDS:
            simulate.simulate(f"{self.folder}/{seed}", 100 + seed)
            said = {v["kind"]: v["text"] for v in self.report(seed)["verdict"] if v["kind"] in REASONS}
            with self.subTest(seed=seed):
                self.assertEqual(said, {})

    def test_nothing_is_said_of_even_jobs_on_a_busy_machine(self):
        """A rank that loses its core once or twice holds the others up by some percent of the run, and is no straggler."""
        late = 0
        for seed in SEEDS:
            simulate.simulate(f"{self.folder}/{seed}", 100 + seed, lost=3)
            report = self.report(seed)
            said = {v["kind"]: v["text"] for v in report["verdict"] if v["kind"] in REASONS}
            load = next(r["ranks"] for r in report["regions"] if r["path"][-1] == "load" and r["process"] is None)
            late += load["max_ns"] - load["mean_ns"] > 0.01 * report["run"]["duration_ns"]
            with self.subTest(seed=seed):
                self.assertEqual(said, {})
        self.assertGreater(late, 3)

    def test_the_tables(self):
        simulate.simulate(f"{self.folder}/job", 3)
        table = lambda *more: subprocess.run([RANGESCOPE, "report", f"{self.folder}/job", *more], cwd=self.folder, capture_output=True, text=True, check=True).stdout
        text = table("--width", "250")
        # What makes communicators began first and stands below the steps; collectives and messages have tables of their own.
        places = [text.index(word) for word in ("\nstep ", "\n  optimizer", "NCCL@ncclCommInitRank", "\ncollective ", "\nAllReduce ", "\nmessages ", "\nrank ", "\nkernel ")]
        self.assertEqual(places, sorted(places), text)
        self.assertIn("## Collectives", table("-f", "md"))
        self.assertIn("| rank 0 to 1 | step |", table("-f", "md"))

    def test_the_parts_of_communication_by_brute_force(self):
        """Every nanosecond of every call: waiting first, then the transfer; hidden where a kernel of the rank runs too."""
        for seed in range(5):
            rnd = random.Random(seed)
            ranks = [simulate.Rank(r) for r in range(3)]
            truth, calls = {}, 12
            # The n-th call is in the n-th inner range, whose name is one of two; every second one is a reduction of another size.
            inner = [rnd.choice(("a", "b")) for _ in range(calls)]
            spans = []  # of each rank and call
            busy = []
            for r in ranks:
                r.range("step", 0, 100_000)
                mine, at = [], 1000
                for n in range(calls):
                    start = at + rnd.randrange(1, 3000)
                    length = rnd.randrange(200, 4000)
                    r.range(inner[n], at, at + 500)
                    r.range("ncclAllReduce", at + 10, at + 20, simulate.NCCL, simulate.COLLECTIVE, (7, 4096 * (1 + n % 2)))
                    r.kernel("ncclDevKernel_AllReduce", 16, at + 12, start, start + length, 1)
                    mine.append((start, start + length))
                    at += 7500
                spans.append(mine)
                kernels = set()
                for _ in range(25):
                    start, length = rnd.randrange(90_000), rnd.randrange(1, 2500)
                    r.kernel("_Z4gemmPf", 8, 5, start, start + length, 0)
                    kernels.update(range(start, start + length))
                busy.append(kernels)
            for n in range(calls):
                lengths = [spans[r][n][1] - spans[r][n][0] for r in range(3)]
                last = lengths.index(min(lengths))
                for r in range(3):
                    start, end = spans[r][n]
                    begins = start + lengths[r] - lengths[last]
                    for path in (("step",), ("step", inner[n])):
                        sums = truth.setdefault(path, {"transfer": 0, "wait": 0, "overlap": 0, "time": 0, "calls": 0, "causes": {}})
                        wait = sum(1 for ns in range(start, begins) if ns not in busy[r])
                        sums["wait"] += wait
                        sums["transfer"] += sum(1 for ns in range(begins, end) if ns not in busy[r])
                        sums["overlap"] += sum(1 for ns in range(start, end) if ns in busy[r])
                        sums["time"] += end - start
                        sums["calls"] += 1
                        if begins > start:
                            sums["causes"][last] = sums["causes"].get(last, 0) + wait
            simulate.job(f"{self.folder}/{seed}", ranks)
            report = self.report(seed)
            for path, sums in truth.items():
                got = next(r for r in report["regions"] if tuple(r["path"]) == path and r["process"] is None)["communication"]
                self.assertEqual([got[k] for k in ("calls", "time_ns", "transfer_ns", "wait_ns", "overlap_ns")],
                                 [sums[k] for k in ("calls", "time", "transfer", "wait", "overlap")], (seed, path))
                self.assertEqual({c["rank"]: c["ns"] for c in got["held_up_by"]}, sums["causes"])
            hidden = sum(sum(1 for ns in range(*spans[r][n]) if ns in busy[r]) for r in range(3) for n in range(calls))
            rows = report["collectives"]
            self.assertEqual(sum(rank["hidden_ns"] for row in rows for rank in row["by_rank"]), hidden)
            for row in rows:
                self.assertAlmostEqual(row["hidden_share"], sum(r["hidden_ns"] for r in row["by_rank"]) / sum(r["time_ns"] for r in row["by_rank"]))

    def test_clocks_of_hosts_are_brought_together(self):
        """Skew within 500 us and drift within 50 ppm: what is said of a moment is within 20 us of the truth (p95)."""
        for seed in range(5):
            rnd = random.Random(seed)
            skew, drift = rnd.uniform(-500e3, 500e3), rnd.uniform(-50e-6, 50e-6)
            ranks = [simulate.Rank(0, "a"), simulate.Rank(1, "b", lambda ns: ns + skew + drift * ns)]
            at, ends = 0, []
            for n in range(300):
                begins = [at + rnd.randrange(5_000_000) for _ in ranks]
                end = max(begins) + 200_000
                ends.append(end)
                for r in ranks:
                    left = end + round(abs(rnd.gauss(0, 10_000)))
                    r.range("ncclAllReduce", begins[r.rank], left, simulate.NCCL, simulate.COLLECTIVE, (7, 4096))
                    r.range("moment", end + 400_000, end + 400_010)
                at = end + 1_000_000
            simulate.job(f"{self.folder}/{seed}", ranks)
            done = subprocess.run([RANGESCOPE, "report", str(seed), "--runs", self.folder, "-f", "perfetto", "-o", f"{self.folder}/{seed}.pftrace"], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(f"{self.folder}/{seed}.pftrace", "rb") as f:
                trace = perfetto_reader.Trace(f.read())
            moments = {}
            for moment in trace.slices:
                if moment["name"] == "moment":
                    moments.setdefault(trace.pid_of(moment), []).append(moment["start"])
            a, b = (sorted(moments[pid]) for pid in sorted(moments))
            self.assertEqual((len(a), len(b)), (300, 300))
            wrong = sorted(abs(x - y) for x, y in zip(a, b))
            self.assertLess(wrong[285], 20_000, (skew, drift))


if __name__ == "__main__":
    cases.main()
