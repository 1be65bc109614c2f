#!/usr/bin/env python3
"""MPI programs under the real mpirun: one job, collectives joined, ranks that die. Usage: mpi.py BIN_DIR SOURCE_DIR"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402
import json_schema  # noqa: E402
import perfetto_reader  # noqa: E402

BIN, SOURCE = os.path.abspath(sys.argv[1]), sys.argv[2]
RANGESCOPE, PROGRAM = os.path.join(BIN, "rangescope"), os.path.join(BIN, "mpi_program")
MPIRUN = shutil.which("mpirun")
WHY = "there is no mpirun: apt-get install openmpi-bin" if not MPIRUN else "built without MPI: apt-get install libopenmpi-dev" if not os.path.exists(PROGRAM) else ""
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
               "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}


@unittest.skipIf(WHY, WHY)
class Mpi(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.mkdtemp(prefix="rangescope-mpi-")
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        cls.recordings = {}

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rangescope-mpi-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def recorded(self, *kind):
        """(folder of the job, what mpirun printed) of four ranks under rangescope: recorded once, for all that only read it."""
        if kind not in self.recordings:
            runs = os.path.join(self.shared, "-".join(kind) or "steps")
            with open(runs + ".meeting", "wb") as meeting:
                meeting.truncate(4096)
            done = self.mpirun(4, "env", "MEETING=" + meeting.name, RANGESCOPE, "profile", "-q", "--runs", runs, "--", PROGRAM, *kind)
            job, = os.listdir(runs)
            self.recordings[kind] = os.path.join(runs, job), done.stdout
        return self.recordings[kind]

    def run_here(self, *argv, code=0):
        done = subprocess.run(argv, cwd=self.folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=500)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def mpirun(self, ranks, *argv, code=0):
        return self.run_here(MPIRUN, "--oversubscribe", "-n", str(ranks), *argv, code=code)

    def report(self, name="job"):
        report = json.loads(self.run_here(RANGESCOPE, "report", name, "-f", "json").stdout)
        with open(f"{SOURCE}/docs/formats/report.schema.json", encoding="utf-8") as f:
            self.assertEqual(json_schema.errors(report, json.load(f)), [])
        return report

    def check_collectives(self, report, ranks):
        self.assertEqual([r["rank"] for r in report["ranks"]], list(range(ranks)))
        rows = {(c["operation"], c["bytes"], c["communicator"]): c for c in report["collectives"]}
        by_kind = {}
        for (operation, size, communicator), row in rows.items():
            by_kind.setdefault((operation, size), []).append(row)
            self.assertEqual(row["library"], "MPI")
            self.assertGreater(row["transfer_ns"], 0)
            self.assertAlmostEqual(row["wait_ns"], sum(r["wait_ns"] for r in row["by_rank"]), delta=1)
            self.assertEqual(sum(r["last"] for r in row["by_rank"]), row["calls"])
        everyone, halves = by_kind[("MPI_Allreduce", 8192)], by_kind[("MPI_Allreduce", 2048)]
        self.assertEqual([(r["ranks"], r["calls"], r["path"], r["communicator"]) for r in everyone], [(ranks, 10, ["step", "reduce"], "0x1")])
        self.assertEqual(sorted((r["calls"], tuple(x["rank"] for x in r["by_rank"])) for r in halves),
                         [(10, tuple(range(0, ranks, 2))), (10, tuple(range(1, ranks, 2)))])
        self.assertEqual(len({r["communicator"] for r in halves}), 2)
        self.assertEqual(len(by_kind[("MPI_Allgather", 64)]), 2)  # on the halves themselves, not on their copies
        self.assertFalse({r["communicator"] for r in by_kind[("MPI_Allgather", 64)]} & {r["communicator"] for r in halves})
        mean = everyone[0]["transfer_ns"] / 10  # nccl-tests: 2 (n - 1) / n * bytes / time
        self.assertAlmostEqual(everyone[0]["busbw_bytes_per_s"], 2 * (ranks - 1) / ranks * 8192 / mean * 1e9, delta=1)
        self.assertEqual(by_kind[("MPI_Barrier", 0)][0]["busbw_bytes_per_s"], None)
        straggle = next(r for r in report["regions"] if r["path"][-1:] == ["straggle"] and r["process"] is None)
        self.assertEqual((straggle["ranks"]["count"], straggle["ranks"]["slowest"]), (1, ranks - 1))

    def test_one_rangescope_a_rank(self):
        plain = self.mpirun(4, PROGRAM)
        job, printed = self.recorded()
        self.assertEqual(sorted(printed.splitlines()), sorted(plain.stdout.splitlines()))
        self.check_collectives(self.report(os.path.dirname(job)), 4)

    def test_the_straggler_is_the_first_line(self):
        """Before the calls in which the others wait for it. What a range of the program spends outside those calls may be anything."""
        job, _ = self.recorded("late")
        report = self.report(job)
        verdict = report["verdict"]
        self.assertEqual((verdict[0]["kind"], verdict[0]["evidence"]["rank"]), ("straggler", 3))
        for line in verdict[1:]:
            region = report["regions"][line["region"]] if line["region"] is not None else None
            if line["kind"] != "hot_region" or region is None or region["domain"] != "MPI":
                continue
            if region["communication"]["wait_ns"] >= 0.9 * region["communication"]["time_ns"]:
                self.assertIn("waiting for ranks that arrive later", line["text"])

    def test_what_the_straggler_does_is_named(self):
        """Of a job without ranges: the function, with its file and line."""
        self.mpirun(3, RANGESCOPE, "profile", "-q", "--runs", "job", "--", f"{BIN}/mpi_uneven")
        first = self.report()["verdict"][0]
        self.assertEqual((first["kind"], first["evidence"]["rank"]), ("straggler", 2))
        function = r"sum_of_inverses \(mpi_uneven.c:6\)"
        self.assertRegex(first["text"], rf"; {function} takes [\d.]+ m?s more of its CPU time than of the others'")
        self.assertRegex(first["path"], rf"^{function}$")
        self.assertGreater(first["evidence"]["function_excess_ns"], 0)

    def test_where_the_time_of_each_rank_went(self):
        """The last rank, for which the others wait, has most outside MPI; all that is in MPI is the time of its calls."""
        job, _ = self.recorded()
        report = self.report(job)
        times = {r["rank"]: r["time"] for r in report["ranks"]}
        calls = [r for r in report["regions"] if r["domain"] == "MPI" and r["process"] is None]
        self.assertEqual({r["parent"] for r in calls}, {None})
        self.assertAlmostEqual(sum(time["mpi_ns"] for time in times.values()), sum(r["ranks"]["mean_ns"] * r["ranks"]["count"] for r in calls), delta=10)
        for rank, time in times.items():
            process, = (p for p in report["processes"] if p["rank"] == rank)
            self.assertAlmostEqual(time["outside_ns"] + time["mpi_ns"], process["end_ns"] - process["start_ns"], delta=1)
            waits = sum(r["wait_ns"] for c in report["collectives"] for r in c["by_rank"] if r["rank"] == rank)
            self.assertAlmostEqual(time["wait_ns"], waits, delta=1)
        self.assertEqual(min(times, key=lambda rank: times[rank]["wait_ns"]), 3)
        table = self.run_here(RANGESCOPE, "report", job, "--width", "120").stdout
        self.assertRegex(table, r"\nrank +outside MPI +MPI +waiting in it +host\n(rank \d .*\n){4}")

    def test_cpu_time_and_memory_are_those_of_all_ranks(self):
        recorded, _ = self.recorded()
        job = "job/" + os.path.basename(recorded)
        shutil.copytree(recorded, f"{self.folder}/{job}", symlinks=True)
        manifests = [f"{self.folder}/{job}/rank-{rank}/manifest.json" for rank in range(4)]
        usages = []
        for path in manifests:
            with open(path, encoding="utf-8") as f:
                usages.append(json.load(f)["usage"])
        for form in ("--captures", "--digests"):
            usage = json.loads(self.run_here(RANGESCOPE, "report", job, form, "-f", "json").stdout)["run"]["usage"]
            for key in ("user_ns", "system_ns"):
                self.assertAlmostEqual(usage[key], sum(one[key] for one in usages), delta=1)
            self.assertEqual(usage["peak_rss_bytes"], max(one["peak_rss_bytes"] for one in usages))
        one = json.loads(self.run_here(RANGESCOPE, "report", job, "--rank", "2", "-f", "json").stdout)["run"]["usage"]
        self.assertAlmostEqual(one["user_ns"], usages[2]["user_ns"], delta=1)
        with open(manifests[1], encoding="utf-8") as f:
            manifest = json.load(f)
        del manifest["usage"]  # of a rank that was killed nobody knows it
        with open(manifests[1], "w", encoding="utf-8") as f:
            json.dump(manifest, f)
        self.assertNotIn("usage", self.report(job)["run"])

    def test_calls_answer_as_they_do_bare(self):
        """Ignored arguments that are garbage, and wrong calls: no error, and no call of an error handler, that is not the program's own."""
        program = os.path.join(BIN, "mpi_errors")
        plain = self.mpirun(4, program)
        self.assertEqual(len(plain.stdout.splitlines()), 452)
        done = self.mpirun(4, RANGESCOPE, "profile", "-q", "--runs", "job", "--", program)
        self.assertEqual(sorted(done.stdout.splitlines()), sorted(plain.stdout.splitlines()))
        calls = {(c["operation"], c["bytes"]): c["calls"] for c in self.report()["collectives"] if c["communicator"] == "0x1"}
        for name in ("Gather", "Gatherv", "Scatter", "Scatterv", "Allgather"):  # the root's too, which are in place
            self.assertEqual(calls["MPI_" + name, 16], 1)
        self.assertEqual(calls["MPI_Allgatherv", 16], 2)

    def test_one_rangescope_over_mpirun(self):
        self.run_here(RANGESCOPE, "profile", "-q", "--runs", "job", "--", MPIRUN, "--oversubscribe", "-n", "4", PROGRAM)
        self.check_collectives(self.report("job/" + os.listdir(f"{self.folder}/job")[0]), 4)

    def test_a_chosen_rank_has_its_own_cpu_samples_where_all_were_sampled_together(self):
        self.run_here(RANGESCOPE, "profile", "-q", "--runs", "job", "--", MPIRUN, "--oversubscribe", "-n", "3", f"{BIN}/mpi_uneven")
        run = "job/" + os.listdir(f"{self.folder}/job")[0]

        def summed_ns(*options):
            report = json.loads(self.run_here(RANGESCOPE, "report", run, *options, "-f", "json").stdout)
            own = report["cpu_outside"].get("own_functions", [])
            return sum(function["cpu_ns"] for function in own if function["function"] == "sum_of_inverses")

        by_rank = [summed_ns("--rank", str(rank)) for rank in range(3)]
        self.assertAlmostEqual(sum(by_rank), summed_ns(), delta=1)  # sums of doubles, in another order
        self.assertGreater(by_rank[2], 10 * max(by_rank[:2]))  # 610 calls, and 10 of each of the others

    def test_digests(self):
        """The report of merged digests, by one process and by eight, and of the captures."""
        recorded, _ = self.recorded()
        job = "job/" + os.path.basename(recorded)
        shutil.copytree(recorded, f"{self.folder}/{job}", symlinks=True)  # to be damaged
        for rank in range(4):
            run = f"{self.folder}/{job}/rank-{rank}"
            self.assertLess(os.path.getsize(f"{run}/digest.rsd"), 20_000)
            with open(f"{run}/manifest.json", encoding="utf-8") as f:
                self.assertIn("digest.rsd", json.load(f)["files"])
        captures = self.report(job)
        digests = json.loads(self.run_here(RANGESCOPE, "report", job, "--digests", "-f", "json").stdout)
        self.check_collectives(digests, 4)
        self.assertEqual(digests["collectives"], captures["collectives"])
        self.assertGreater(captures["ranks"][0]["work"]["cpu_ranges"], 0)
        self.assertEqual(digests["ranks"], captures["ranks"])
        regions = {(r["domain"], *r["path"]): r for r in captures["regions"] if r["process"] is None}
        self.assertEqual([(r["domain"], *r["path"]) for r in digests["regions"]], list(regions))
        for found in digests["regions"]:
            exact = regions[(found["domain"], *found["path"])]
            self.assertEqual(found.get("ranks"), exact.get("ranks"))
            self.assertEqual(found.get("communication"), exact.get("communication"))
            for key in ("occurrences", "unclosed", "threads", "processes"):
                self.assertEqual(found[key], exact[key])
            for key, value in exact["wall_ns"].items():
                if key in ("median", "p95"):
                    self.assertLessEqual(abs(found["wall_ns"][key] - value), value / 64)
                else:
                    self.assertAlmostEqual(found["wall_ns"][key], value, delta=1e-6 * abs(value))
        for form in ("table", "json", "csv"):
            one = self.run_here(RANGESCOPE, "report", job, "--digests", "-f", form, "--color", "never", "--width", "120").stdout
            for processes in (1, 3, 8):
                many = self.mpirun(processes, RANGESCOPE + "-mpi", "report", job, "-f", form, "--color", "never", "--width", "120").stdout
                self.assertEqual(many, one)
        for rule in ("--work", "--tokens", "--flops"):  # of single occurrences, which digests do not hold
            told = self.run_here(RANGESCOPE, "report", job, "--digests", rule, "step=1 batch" if rule == "--work" else "step=1", code=64)
            self.assertIn("digests cannot answer this", told.stderr)
        # The merged digest as a file: of any number of processes the same, written once, and what `report` reads.
        files = []
        for processes in (1, 3, 8):
            file = f"{self.folder}/{processes}.rsd"
            many = self.mpirun(processes, RANGESCOPE + "-mpi", "report", job, "--merged", file, "-f", "csv", "--color", "never", "--width", "120").stdout
            self.assertEqual(many, one)
            with open(file, "rb") as f:
                files.append(f.read())
        self.assertEqual(files, [files[0]] * 3)
        read = self.run_here(RANGESCOPE, "report", job, "--merged", file, "-f", "csv", "--color", "never", "--width", "120").stdout
        self.assertEqual(read, one)
        self.assertEqual(self.mpirun(2, RANGESCOPE + "-mpi", "report", job, "--merged", file, "-f", "csv", "--color", "never", "--width", "120").stdout, one)
        with open(file, "rb") as f:
            self.assertEqual(f.read(), files[0])
        refused = self.run_here(RANGESCOPE, "report", f"{job}/rank-0", "--merged", file, code=64)
        self.assertIn("no job was named", refused.stderr)
        self.assertIn("captures of all ranks", self.run_here(RANGESCOPE, "report", job, "--merged", file, "--per-rank", code=64).stderr)
        with open(file, "wb") as f:
            f.write(files[0][:-20])
        self.assertIn("damaged", self.run_here(RANGESCOPE, "report", job, "--merged", file, code=65).stderr)
        self.assertIn("captures of all ranks", self.mpirun(3, RANGESCOPE + "-mpi", "report", job, "--per-rank", code=None).stderr)
        self.assertIn("there is no run", self.mpirun(3, RANGESCOPE + "-mpi", "report", "nothing", code=None).stderr)

        # A digest that is damaged or missing: the capture is read. Neither: the rank is lost.
        with open(f"{self.folder}/{job}/rank-1/digest.rsd", "r+b") as f:
            f.seek(100)
            f.write(b"damage")
        os.remove(f"{self.folder}/{job}/rank-2/digest.rsd")
        again = json.loads(self.run_here(RANGESCOPE, "report", job, "--digests", "-f", "json").stdout)
        self.assertEqual(again["regions"], digests["regions"])
        self.assertEqual(again["collectives"], digests["collectives"])
        self.assertTrue(any("rank 1: its capture was read: the digest is damaged" in note for note in again["notes"]))
        shutil.rmtree(f"{self.folder}/{job}/rank-2/native")
        lost = json.loads(self.run_here(RANGESCOPE, "report", job, "--digests", "-f", "json").stdout)
        self.assertEqual([r["rank"] for r in lost["ranks"]], [0, 1, 3])
        self.assertIn("ranks_unreadable", [l["kind"] for l in lost["losses"]])

    def test_digests_of_messages(self):
        for kind in ("messages", "requests", "persistent"):
            job, _ = self.recorded(kind)
            captures, digests = (json.loads(self.run_here(RANGESCOPE, "report", job, form, "-f", "json").stdout) for form in ("--captures", "--digests"))
            with self.subTest(kind=kind):
                self.assertGreater(len(captures["messages"]), 0)
                self.assertEqual(digests["messages"], captures["messages"])
                communication = lambda report: [(r["path"], r.get("communication")) for r in report["regions"] if r["process"] is None]
                self.assertEqual(communication(digests), communication(captures))

    def test_sixteen_ranks(self):
        self.mpirun(16, RANGESCOPE, "profile", "-q", "--runs", "job", "--", PROGRAM)
        report = self.report()
        self.assertEqual(len(report["ranks"]), 16)
        self.assertEqual(max(c["ranks"] for c in report["collectives"]), 16)

    def test_one_rank_of_four_is_killed(self):
        done = self.mpirun(4, RANGESCOPE, "profile", "-q", "--runs", "job", "--", PROGRAM, "die", code=None)
        self.assertNotEqual(done.returncode, 0)
        report = self.report()
        losses = {l["kind"]: l["detail"] for l in report["losses"]}
        self.assertIn("rank 2 (", losses["ranks_ended"])
        self.assertNotIn("ranks_missing", losses)
        self.assertIn(2, [r["rank"] for r in report["ranks"]])
        step = next(r for r in report["regions"] if r["path"] == ["step"] and r["process"] is None)
        self.assertGreaterEqual(step["occurrences"], 4 * 4)

    def test_a_rank_that_hangs_is_named(self):
        for limit in ("3s", "20s", "200s"):  # ranks that were not there yet, on a busy machine, get longer
            shutil.rmtree(f"{self.folder}/job", ignore_errors=True)
            self.mpirun(3, RANGESCOPE, "profile", "-q", "--timeout", limit, "--runs", "job", "--", PROGRAM, "hang", code=None)
            if self.ranks_in_a_call() == 2:
                break
        for source in ("--captures", "--digests"):
            with self.subTest(source=source):
                report = json.loads(self.run_here(RANGESCOPE, "report", "job", source, "-f", "json").stdout)
                losses = {l["kind"]: l["detail"] for l in report["losses"]}
                self.assertEqual(losses["collectives_unjoined"],
                                 "rank 1 never reached call 3 (MPI_Allreduce) in `step > reduce`, with ranks 0, 2 in it when recording ended")
                self.assertIn("(time limit)", losses["ranks_ended"])  # mpirun ends the others when one rank has
                first = report["verdict"][0]
                self.assertEqual((first["kind"], first["evidence"]["rank"], first["evidence"]["call"]), ("hung", 1, 3))
                self.assertRegex(first["text"], r"^rank 1 never reached call 3 \(MPI_Allreduce\) in `step > reduce`: the others waited [\d.]+ m?s$")

    def ranks_in_a_call(self):
        """How many began an MPI_Allreduce and did not end it."""
        done = self.run_here(RANGESCOPE, "report", "job", "--captures", "-f", "json", code=None)
        regions = json.loads(done.stdout)["regions"] if done.returncode == 0 else []
        return sum(r["unclosed"] for r in regions if r["path"][-1].startswith("MPI_Allreduce") and r["process"] is None)

    def test_one_report_of_the_job_at_the_end(self):
        done = self.mpirun(4, RANGESCOPE, "profile", "--runs", "job", "--", PROGRAM)
        told = done.stdout + done.stderr
        self.assertEqual((told.count("run kept in"), told.count("\nrange "), told.count("\ncollective ")), (1, 1, 1), told)
        self.assertRegex(told, r"rangescope report job/openmpi-\d+\n")
        self.assertEqual(sorted(l for l in told.splitlines() if l.startswith("rank ") and " of " in l), [f"rank {r} of 4" for r in range(4)])
        self.assertNotIn("\x1b", told)
        asked = self.mpirun(2, RANGESCOPE, "profile", "--runs", "json", "-f", "json", "--", PROGRAM)
        self.assertEqual([r["rank"] for r in json.loads(asked.stdout)["ranks"]], [0, 1])

    def test_what_mpirun_hands_on_has_no_colours(self):
        job, _ = self.recorded()
        told = self.mpirun(2, "env", "TERM=xterm", RANGESCOPE + "-mpi", "report", job).stdout
        self.assertIn("step", told)
        self.assertNotIn("\x1b", told)

    def test_ranks_that_run_bare_or_were_never_started_by_rangescope(self):
        profile = [RANGESCOPE, "profile", "-q", "--runs", "job"]
        self.mpirun(2, *profile, "--", PROGRAM, ":", "-n", "1", PROGRAM)
        report = self.report()
        self.assertEqual([r["rank"] for r in report["ranks"]], [0, 1])
        self.assertIn("no run of rank 2 of 3", [l["detail"] for l in report["losses"]])
        shutil.rmtree(f"{self.folder}/job")
        self.mpirun(4, *profile, "--ranks", "0,2-3", "--", PROGRAM)
        report = self.report()
        self.assertEqual([r["rank"] for r in report["ranks"]], [0, 2, 3])
        self.assertNotIn("ranks_missing", [l["kind"] for l in report["losses"]])

    def test_messages_have_both_ends(self):
        report = self.report(self.recorded("messages")[0])
        self.assertEqual([l for l in report["losses"] if l["kind"].startswith(("messages", "collectives"))], [])
        pairs = {(m["path"][-1], m["from"], m["to"], m["communicator"] == "0x1"): m for m in report["messages"]}
        expected = {("ring", r, (r + 1) % 4, True): 5 for r in range(4)}
        expected.update({("ask", r, 0, True): 5 for r in range(1, 4)})
        expected.update({("ask", 0, r, False): 5 for r in range(1, 4)})  # of the communicator that counts backwards
        expected.update({("pass", 1, 0, True): 5, ("pass", 0, 1, True): 5})
        self.assertEqual({k: m["calls"] for k, m in pairs.items()}, expected)
        self.assertEqual({m["bytes"] for k, m in pairs.items() if k[0] == "ring"}, {5 * 262144})
        self.assertEqual({m["bytes"] for k, m in pairs.items() if k[0] == "ask"}, {5 * 4})
        # Rank 1 slept 20 ms before each of its five sends, and as long before the receives, while rank 0 waited.
        self.assertEqual(pairs[("pass", 1, 0, True)]["late_senders"], 5)
        self.assertGreater(pairs[("pass", 1, 0, True)]["late_sender_ns"], 5 * 20e6)
        self.assertEqual(pairs[("pass", 0, 1, True)]["late_receivers"], 5)  # 256 KiB do not go before there is a receive
        self.assertGreater(pairs[("pass", 0, 1, True)]["late_receiver_ns"], 5 * 20e6)
        for m in pairs.values():
            self.assertAlmostEqual(m["bytes_per_s"], m["bytes"] / m["transfer_ns"] * 1e9, delta=1)
        for region in report["regions"]:
            if of := region.get("communication"):
                self.assertAlmostEqual(of["time_ns"], of["transfer_ns"] + of["wait_ns"] + of["overlap_ns"], delta=1)
                self.assertAlmostEqual(of["wait_ns"], sum(c["ns"] for c in of["held_up_by"]), delta=1)
        whole = next(r for r in report["regions"] if r["path"] == ["pass"] and r["process"] is None)["communication"]
        self.assertEqual(whole["held_up_by"][0]["rank"], 1)

    def test_messages_that_are_begun_and_completed_later(self):
        report = self.report(self.recorded("requests")[0])
        self.assertEqual([l for l in report["losses"] if l["kind"].startswith(("messages", "collectives"))], [])
        pairs = {(m["path"][-1], m["from"], m["to"]): m for m in report["messages"]}
        expected = {("halo", r, (r + 1) % 4): (5, 5 * 262144) for r in range(4)}
        expected.update({("any", r, 0): (5, 5 * r) for r in range(1, 4)})
        expected[("poll", 1, 0)] = (5, 5 * 512)
        expected.update({("many", r, (r + 1) % 4): (60, 5 * 64 * 78) for r in range(4)})
        self.assertEqual({k: (m["calls"], m["bytes"]) for k, m in pairs.items()}, expected)
        # Rank 2 stands in MPI_Waitall until rank 1 sends; rank 0, whose 256 KiB go when there is a receive, until it receives.
        self.assertEqual(pairs[("halo", 1, 2)]["late_senders"], 5)
        self.assertGreater(pairs[("halo", 1, 2)]["late_sender_ns"], 5 * 20e6)
        self.assertEqual(pairs[("halo", 0, 1)]["late_receivers"], 5)
        self.assertGreater(pairs[("halo", 0, 1)]["late_receiver_ns"], 5 * 20e6)
        self.assertGreater(pairs[("halo", 1, 2)]["bytes_per_s"], 0)
        self.assertIsNone(pairs[("poll", 1, 0)]["bytes_per_s"])  # a test does not say when the message came
        self.assertTrue(all(pairs[("many", r, (r + 1) % 4)]["bytes_per_s"] is None for r in range(4)))
        waits = next(r for r in report["regions"] if r["path"] == ["halo"] and r["process"] is None)["communication"]
        self.assertEqual(waits["held_up_by"][0]["rank"], 1)
        self.assertGreater(waits["wait_ns"], 2 * 5 * 20e6)
        tests = [r for r in report["regions"] if r["path"][-1] == "MPI_Test" and r["process"] is None]
        self.assertEqual([r["occurrences"] for r in tests], [5])  # those that completed something

    def test_messages_that_are_started_again_and_again(self):
        report = self.report(self.recorded("persistent")[0])
        self.assertEqual([l for l in report["losses"] if l["kind"].startswith(("messages", "collectives"))], [])
        pairs = {(m["path"][-1], m["from"], m["to"]): m for m in report["messages"]}
        self.assertEqual({k: (m["calls"], m["bytes"]) for k, m in pairs.items()}, {("started", r, (r + 1) % 4): (6, 6000) for r in range(4)})
        # Rank 2 is in MPI_Waitall or MPI_Wait.
        self.assertEqual(pairs[("started", 1, 2)]["late_senders"], 6)
        self.assertGreater(pairs[("started", 1, 2)]["late_sender_ns"], 6 * 20e6)
        begun = [r for r in report["regions"] if r["path"][-1].startswith("MPI_Start (") and r["process"] is None]
        self.assertEqual(sum(r["occurrences"] for r in begun), 4 * 6 * 2)
        once = [r for r in report["regions"] if r["path"][-1] == "MPI_Wait" and r["process"] is None]
        self.assertEqual([r["occurrences"] for r in once], [4 * 3 * 2])

    def test_two_hosts_whose_clocks_differ(self):
        """Two processes, one with UTC 5 s ahead and a monotonic clock 40 ppm too fast. Each marks moments with the kernel's own clock."""
        shim = next(os.path.join(folder, name) for folder in (os.path.join(os.path.dirname(BIN), "lib"), BIN) for name in ("libwrong_clock.so",)
                    if os.path.exists(os.path.join(folder, name)))
        profile = [RANGESCOPE, "profile", "-q", "--cpu", "off", "--runs", "job", "--", PROGRAM, "moments"]
        self.mpirun(1, *profile, ":", "-n", "1", "env", f"LD_PRELOAD={shim}", "WRONG_NS=5000000000", "WRONG_PPM=40", "WRONG_HOST=another", *profile)
        report = self.report()
        self.assertEqual(len({r["host"] for r in report["ranks"]}), 2)
        self.assertTrue(any("aligned by the ends of collectives" in note for note in report["notes"]), report["notes"])
        # About -5 s; a process that lost the core while it read its two clocks is off by that too. What counts are the moments.
        self.assertTrue(report["ranks"][1]["clock_offset_ns"] < 0 and "clock_offset_ns" not in report["ranks"][0], report["ranks"])
        self.run_here(RANGESCOPE, "report", "job", "-f", "perfetto", "-o", "job.pftrace")
        with open(f"{self.folder}/job.pftrace", "rb") as f:
            trace = perfetto_reader.Trace(f.read())
        wrong = {}
        for moment in trace.slices:
            if moment["name"] == "moment":
                wrong.setdefault(trace.pid_of(moment), []).append(moment["start"] - int(moment["args"]["payload"]))
        one, other = wrong.values()
        zero = sorted(one)[len(one) // 2]  # begin of the trace
        apart = sorted(abs(x - zero) for x in other)
        print(f"p50 {apart[len(apart) // 2] / 1e3:.1f} us, p95 {apart[len(apart) * 95 // 100] / 1e3:.1f} us; {report['notes']}")
        self.assertEqual(len(apart), 500)
        # On an idle machine 20 us at p95; ends of barriers scatter more where other programs want the cores, and the note tells.
        value, unit = re.search(r"agree within ([0-9.]+) (ns|us|ms)", " ".join(report["notes"])).groups()
        self.assertLess(apart[len(apart) // 2], max(100_000, float(value) * {"ns": 1, "us": 1e3, "ms": 1e6}[unit]))

    def test_without_the_layer(self):
        self.mpirun(2, RANGESCOPE, "profile", "-q", "--no-mpi", "--runs", "job", "--", PROGRAM)
        report = self.report()
        self.assertEqual(report["collectives"], [])
        self.assertTrue(any(n.startswith("no rank made an MPI call") for n in report["notes"]), report["notes"])

    def test_the_layer_in_a_program_without_mpi(self):
        library = os.path.join(os.path.dirname(BIN), "lib", "librangescope_mpi.so")
        for more in ({}, {"LD_BIND_NOW": "1"}):
            done = subprocess.run(["echo", "as it is"], env={**os.environ, "LD_PRELOAD": library, **more}, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "as it is\n", ""))


if __name__ == "__main__":
    cases.main()
