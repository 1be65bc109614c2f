#!/usr/bin/env python3
"""CPU sampling by the command line, against what programs know of themselves. Usage: cpu.py BIN_DIR SHARES CLIENT SOURCE_DIR PMU

SHARES (shares.cpp) and python_shares.py spend CPU time in known functions under known ranges and print how much by their
own CPU clocks. A range has a sample for each period of its CPU time, never more, and fewer only where the host took the
core meanwhile (`assert_sampled`); every sample names a function that runs in its range. Neither depends on how busy the
machine is. Skipped where the system allows no perf_event_open.
"""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402
import json_schema  # noqa: E402
from profiled import BIN, SHARES, CLIENT, SOURCE, PMU, TOOL, HERE, line_of, kernel_allowed, stolen_s, Profiled  # noqa: E402


class Native(Profiled):
    FUNCTION_OF = {"a": "red(double)", "b": "green(double)", "c": "blue(double)"}

    def check_shares(self, program):
        report, truth = self.profile(program, "shares", "1000")
        self.assert_adds_up(report)
        for name in "abc":  # each in ten stretches
            self.assert_sampled(self.region(report, "work", name)["cpu"]["samples"], truth[name], 10)
        return report, self.region(report, "work")

    def check_all_in(self, function, *path, others=()):
        """All samples of a region are in its function, but for those of the range itself and of what it calls at its begin and end."""
        inside = outside = 0
        for chain, count in self.chains():
            if chain[:len(path)] == list(path):
                self.assertFalse(set(chain) & set(others), chain)
                inside += count * (function in chain)
                outside += count * (function not in chain)
        self.assertGreater(inside, 20 * outside, function)
        return inside

    def test_functions_of_a_native_program(self):
        report, work = self.check_shares(SHARES)
        counts = {}
        for name, function in self.FUNCTION_OF.items():
            others = {*self.FUNCTION_OF.values()} - {function}
            counts[function] = self.check_all_in(function, "work", name, others=others)
        self.check_all_in("main", "work")  # chains reach the begin without frame pointers
        named = {f["name"]: f for f in work["cpu"]["callers"]}
        blue = [f for f in work["cpu"]["callers"] if "blue" in f["name"]]
        self.assertEqual(named["inner_blue(double)"]["total_ns"], named["blue(double)"]["total_ns"], blue)
        self.assertTrue(named["inner_blue(double)"]["file"].endswith("shares.cpp"))
        for function, text in {"red(double)": "SPEND(1.0 / i)", "inner_blue(double)": "SPEND(static_cast<double>(i % 7))"}.items():
            self.assertEqual(named[function].get("hot_line"), line_of("shares.cpp", text))
        native = next(part for part in work["cpu"]["parts"] if part["kind"] == "native")
        self.assertEqual(native["name"], os.path.basename(SHARES))

        # The same in every form.
        text = self.report_as("--cpu", "work")
        self.assertIn("green(double)", text)
        self.assertIn("native code", text)
        self.assertEqual(sum(count for chain, count in self.chains() if chain[0] == "work"), work["cpu"]["samples"])
        scope = json.loads(self.report_as("-f", "speedscope"))
        profile = scope["profiles"][0]
        self.assertEqual(len(profile["samples"]), len(profile["weights"]))
        self.assertEqual(sum(profile["weights"]), profile["endValue"])
        self.assertLess(max(max(s) for s in profile["samples"] if s), len(scope["shared"]["frames"]))
        rows = cases.run([TOOL, "query", "latest", "-f", "csv", "select f.name, count(*) n from cpu_samples s join frames f "
                          "on f.id = s.frame group by 1 order by n desc limit 1"], cwd=self.folder, env=self.env)
        self.assertIn("green(double)", rows.stdout + rows.stderr)
        self.assertRegex(" ".join(v["text"] for v in report["verdict"]), r"CPU: .*\d %|self time \(.*\): .*\d %")

    def test_functions_of_a_stripped_program(self):
        stripped = f"{self.folder}/stripped"
        subprocess.run(["strip", "-o", stripped, SHARES], check=True)
        report, work = self.check_shares(stripped)
        found = []
        for name in "abc":  # each range spends its time in one function
            functions = self.region(report, "work", name)["cpu"]["functions"]
            found.append(max((f for f in functions if f["name"].startswith("stripped+0x")), key=lambda f: f["self_ns"])["name"])
        self.assertEqual(len(set(found)), 3, found)  # by where functions begin
        for name, function in zip("abc", found):
            self.check_all_in(function, "work", name, others={*found} - {function})

    def test_as_perf_record(self):
        """Both have a sample for each period that a function ran, and name the same functions."""
        perf = shutil.which("perf")
        if perf is None:
            self.skipTest("linux-perf is not installed")
        data = f"{self.folder}/perf.data"
        before_s = stolen_s()
        done = subprocess.run([perf, "record", "-q", "-e", "cpu-clock", "-c", str(10**9 // 999), "-o", data, SHARES, "shares", "1000"],
                              capture_output=True, text=True, timeout=cases.PATIENCE_S)
        if done.returncode != 0:
            self.skipTest(done.stderr.strip())
        theirs_stolen_s, their_truth = stolen_s() - before_s, json.loads(done.stdout)
        listed = subprocess.run([perf, "report", "-i", data, "--stdio", "-F", "sample,symbol", "--percent-limit", "1"],
                                capture_output=True, text=True, timeout=cases.PATIENCE_S).stdout
        theirs = {name: int(count) for count, name in re.findall(r"(\d+)\s+\[\.\]\s+(\w+)", listed)}
        report, _ = self.check_shares(SHARES)
        self.stolen_s = theirs_stolen_s
        for name, function in self.FUNCTION_OF.items():
            short = function.split("(")[0]
            self.assertIn(short, theirs, listed)
            # What a function asks of the kernel is the kernel's for perf.
            self.assertLessEqual(theirs[short], 1.02 * their_truth[name] + 22, listed)
            self.check_all_in(function, "work", name)

    def test_functions_of_the_kernel(self):
        with open("/proc/kallsyms", encoding="utf-8") as f:
            names = {line.split()[2] for line in f if int(line.split()[0], 16) > 0} if kernel_allowed() else set()
        report, truth = self.profile(SHARES, "kernel", "500")
        self.assert_adds_up(report)
        work = self.region(report, "work")["cpu"]
        inside = [f for f in work["callers"] if f["module"] == "[kernel]"]
        if not names:
            self.assertLessEqual({f["name"] for f in inside}, {"[kernel]"})
            return
        kernel = next(part["ns"] for part in work["parts"] if part["name"] == "[kernel]")
        self.assertGreater(kernel, 0.8 * truth["work"] * 1e6 - 1e9 * self.stolen_s)
        self.assertLessEqual({f["name"] for f in inside}, names)
        read = next(f for f in inside if "read" in f["name"])  # all but the entry, where virtual machines get late interrupts
        self.assertGreater(read["total_ns"], 0.7 * truth["work"] * 1e6 - 1e9 * self.stolen_s, inside)

    def test_deep_stacks_are_whole(self):
        self.profile(SHARES, "deep", "500")
        deepest = max((line for line in self.report_as("-f", "collapsed").splitlines()), key=lambda line: int(line.rsplit(" ", 1)[1]))
        self.assertEqual(deepest.count("deep(int, double)"), 61)
        self.assertNotIn("(cut)", deepest)
        self.check_all_in("deep(int, double)", "work")

    def woken(self, *command):
        """How often each thread of a sampler of 999 Hz came to a core by itself, and how many seconds that took."""
        began = time.monotonic()
        process = subprocess.Popen([TOOL, "profile", "--no-project", "--sample", "off", "--cpu", "999Hz", "-o", "report.txt", "--", *command],
                                   cwd=self.folder, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times = {}
        while process.poll() is None:
            for tid in os.listdir(f"/proc/{process.pid}/task"):
                try:
                    with open(f"/proc/{process.pid}/task/{tid}/status", encoding="ascii") as f:
                        times[tid] = int(re.search(r"\nvoluntary_ctxt_switches:\s+(\d+)", f.read())[1])
                except OSError:
                    pass  # it has ended
            time.sleep(0.02)
        self.assertEqual(process.returncode, 0)
        del times[str(process.pid)]
        return times, time.monotonic() - began

    @unittest.skipUnless(kernel_allowed(), "threads that left are looked for in /proc, often")
    def test_samples_wake_only_who_reads_python(self):
        """Waking us costs a program more than the sample: without Python the sampler comes by itself, each 4 ms."""
        times, seconds = self.woken(SHARES, "shares", "1500")
        self.assertLess(max(times.values()), 2 * 250 * seconds, times)  # 999 more a second where each sample wakes us

    def test_a_large_frame_is_inside_the_copy(self):
        report, _ = self.profile(SHARES, "wide", "500")
        cut = [loss["detail"] for loss in report["losses"] if loss["kind"] == "cpu_chains_cut" and "32768 bytes" in loss["detail"]]
        if cut:
            self.skipTest(f"the kernel gives programs of this user too little room for copies of 64 KiB: {cut[0]}")
        lines = [line for line in self.report_as("-f", "collapsed").splitlines() if ";red(double)" in line]
        self.assertGreater(len(lines), 0)
        for line in lines:
            self.assertIn(";main;", line)
            self.assertNotIn("(cut)", line)

    def test_a_larger_frame_is_read_in_the_program(self):
        self.profile(SHARES, "wider", "500")
        whole = sum(count for chain, count in self.chains() if "red(double)" in chain and "main" in chain and "(cut)" not in chain)
        self.assertGreater(whole, 0)  # on a busy machine many are read too late

    def test_frames_whose_registers_lie_elsewhere(self):
        for mode, between in {"aligned": ["moving(double)", "aligned(double)"], "signal": ["raising(double)", "handler(int)"]}.items():
            with self.subTest(mode):
                report, _ = self.profile(SHARES, mode, "500")
                lines = [line for line in self.report_as("-f", "collapsed").splitlines() if ";red(double)" in line]
                self.assertGreater(len(lines), 0)
                for line in lines:
                    self.assertNotIn("(cut)", line)
                    for function in ["main", *between]:
                        self.assertIn(f"{function};", line)

    def test_waits_are_named_by_their_system_call(self):
        report, truth = self.profile(SHARES, "waits", "500")
        self.assert_adds_up(report)
        for name, kind in {"sleeps": "sleep", "locks": "lock", "reads": "I/O"}.items():
            region = self.region(report, "work", name)
            split = region["cpu"]["split"]
            self.assert_waits(region, truth[name] * 1e6)
            kinds = {part["name"] for part in region["cpu"]["parts"] if part["kind"] == "waiting"}
            self.assertLessEqual(kinds, {kind, "other", "preempted"})  # other: over before it was looked at
            self.assertIn(kind, kinds, region["cpu"]["parts"])
        runs = self.region(report, "work", "runs")
        self.assertAlmostEqual(runs["cpu"]["split"]["native"] / 1e6, truth["runs"], delta=0.05 * truth["runs"] + 1e3 * self.stolen_s)

    def test_short_waits_are_named_by_the_registers(self):
        if not kernel_allowed():
            self.skipTest("perf_event_paranoid gives no registers of threads that go to sleep")
        report, _ = self.profile(SHARES, "short", "60", rate="199Hz")
        self.assert_adds_up(report)
        for name, kind in {"naps": "sleep", "raw": "sleep", "polls": "I/O", "reads": "I/O", "syncs": "I/O"}.items():
            waiting = self.waiting(report, name)
            # The number of syscall()'s call is learned while one lasts, which a busy machine lets us see late: `other` until then.
            self.assertGreater(waiting.get(kind, 0), 0 if name == "raw" else 0.95, (name, waiting))
            self.assertLessEqual(set(waiting), {kind, "other"} if name == "raw" else set(waiting), (name, waiting))

    def test_who_has_a_lock(self):
        report, _ = self.profile(SHARES, "held", "500", rate="999Hz")
        wants = self.region(report, "wants")["cpu"]
        self.assertEqual([(h["kind"], h["range"]) for h in wants["holders"]], [("lock", "keeps")])
        self.assertIn("red(double)", wants["holders"][0]["doing"])
        self.assertGreater(wants["holders"][0]["ns"], 0.8 * wants["split"]["waiting"])
        self.assertTrue(any("waits for a lock" in v["text"] and "in keeps" in v["text"] for v in report["verdict"]), report["verdict"])

    def test_short_waits_for_a_lock_have_their_place(self):
        if not kernel_allowed():
            self.skipTest("perf_event_paranoid gives no registers of threads that go to sleep")
        report, truth = self.profile(SHARES, "short_locks", "400", rate="199Hz")
        rows = [wait for wait in report["waits"] if wait["kind"] == "lock" and wait["place"] and not wait["idle"]]  # idle: the join at the end
        locks = sum(wait["total_ns"] for wait in rows)
        self.assertGreater(locks / 1e6, 0.75 * truth["short locks"], report["waits"])
        self.assertLess(locks / 1e6, 1.1 * truth["short locks"] + 1e3 * self.stolen_s, report["waits"])

    def test_a_pool_works_for_who_uses_it(self):
        program = f"{BIN}/cpu_pool"
        if not os.path.exists(program):
            self.skipTest("built without OpenMP")
        report, _ = self.profile(program, "800", rate="999Hz", env={"OMP_WAIT_POLICY": "passive"})
        little, much = (self.region(report, name)["cpu"] for name in ("little", "much"))
        for work, ms in ((little, 80), (much, 800)):  # two workers beside the thread itself
            self.assertAlmostEqual(work["pool"]["ns"] / 1e6, 1.25 * ms, delta=0.12 * ms + 1e3 * self.stolen_s)
            self.assertIn("spend", {f["name"] for f in work["functions"]})
        self.assertNotIn("pool", self.region(report, "alone")["cpu"])
        slowest = much["holders"][0]
        self.assertEqual((slowest["kind"], slowest["doing"]), ("pool", "spend"))
        locks = sum(part["ns"] for part in much["parts"] if (part["kind"], part["name"]) == ("waiting", "lock"))
        self.assertGreater(slowest["ns"], 0.9 * locks)
        if locks > 0.2 * self.region(report, "much")["wall_ns"]["inclusive"]:  # it ran mostly, and did not wait for a core
            self.assertTrue(any("of its pool" in v["text"] for v in report["verdict"]), report["verdict"])

    def test_switches_that_come_too_fast_are_thinned(self):
        report, truth = self.profile(SHARES, "pingpong", "1000", rate="199Hz")
        self.assert_adds_up(report)
        thinned = [loss for loss in report["losses"] if loss["kind"] == "cpu_switches_thinned"]
        if not thinned:
            self.skipTest("this machine is too busy for so many switches")
        pings = self.region(report, "pings")
        wall = pings["wall_ns"]["inclusive"]
        self.assertAlmostEqual(pings["cpu"]["split"]["waiting"] / wall, 1 - truth["pings cpu"] / truth["pings"], delta=0.15 + 1e9 * self.stolen_s / wall)
        if kernel_allowed():
            self.assertGreater(self.waiting(report, "pings").get("I/O", 0), 0.9)

    def test_code_without_tables_or_frame_pointer(self):
        self.profile(SHARES, "made", "500")
        lines = [line for line in self.report_as("-f", "collapsed").splitlines() if ";green(double)" in line]
        self.assertGreater(len(lines), 0)
        for line in lines:
            self.assertIn(";main;", line)
            self.assertNotIn("(cut)", line)

    def test_a_thousand_threads(self):
        report, truth = self.profile(SHARES, "threads", "2000", rate="1999Hz")
        self.assert_adds_up(report)
        thread = self.region(report, "thread")
        self.assertEqual((thread["occurrences"], thread["threads"]), (1000, 1000))
        self.assertGreater(thread["cpu"]["samples"], 500)
        shares = self.totals(thread)
        self.assertGreater(min(shares["red(double)"], shares["green(double)"]), 0.2)

    def test_children_by_fork_and_exec(self):
        report, _ = self.profile(SHARES, "fork", "1000")
        self.assert_adds_up(report)
        for path, function, stretches in ((("parent",), "red(double)", 1), (("child",), "green(double)", 1), (("work", "b"), "green(double)", 10)):
            self.assert_sampled(self.region(report, *path)["cpu"]["samples"], 250, stretches)
            self.check_all_in(function, *path)

    def test_a_killed_program(self):
        report, _ = self.profile(SHARES, "killed", "500", expect=-9)
        self.assert_sampled(sum(count for chain, count in self.chains() if "red(double)" in chain), 500)
        work = self.region(report, "work")  # never ended
        self.assertEqual((work["occurrences"], work["unclosed"]), (0, 1))
        self.assert_sampled(work["cpu"]["samples"], 500)
        self.assertIn("1 that never ended", self.report_as("--cpu", "work"))

    def test_off_and_wrong_words(self):
        cases.run([TOOL, "profile", "--no-project", "--cpu", "off", "-o", "report.txt", "--", SHARES, "shares", "100"], cwd=self.folder, env=self.env)
        self.assertFalse(os.path.exists(f"{self.run_folder()}/native/cpu"))
        done = cases.run([TOOL, "report", "latest", "--cpu", "work"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 80)
        self.assertIn("--cpu", done.stderr)
        done = cases.run([TOOL, "profile", "--cpu", "fast", "--", SHARES], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 64)

    def test_compare_names_the_function_that_takes_longer(self):
        runs, kernel = [], {"[kernel]"}  # the kernel's part follows the machine
        for mode in ("shares", "slower"):
            report, _ = self.profile(SHARES, mode, "1000")
            runs.append(self.run_folder())
            work = self.region(report, "work")["cpu"]
            kernel |= {f["name"] for f in work["functions"] + work["callers"] if f["module"] == "[kernel]"}
        done = cases.run([TOOL, "compare", *runs, "-f", "json"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        with open(f"{SOURCE}/docs/formats/compare.schema.json", encoding="utf-8") as f:
            self.assertEqual(json_schema.errors(result, json.load(f)), [])
        functions = next(r for r in result["regions"] if r["path"] == ["work"])["functions"]
        stand = {f["name"].split("(")[0]: f["self_ns"] for f in functions if f["self_ns"]["changes"][0]["standing"] == "more"}
        self.assertEqual(set(stand) - kernel, {"inner_blue"}, functions)
        change = stand["inner_blue"]["changes"][0]
        self.assertTrue(change["low"] <= 2 <= change["high"], change)
        for form, mark in {"table": "functions of work", "md": "## functions of work", "html": "<h2>functions of work"}.items():
            shown = cases.run([TOOL, "compare", *runs, "--cpu", "work", "-f", form], cwd=self.folder, env=self.env)
            self.assertIn(mark, shown.stdout, shown.stderr)
            self.assertIn("inner_blue(double)", shown.stdout.replace("\\", ""))
        # Chains of both sides, as difffolded.pl prints them.
        done = cases.run([TOOL, "compare", *runs, "-f", "collapsed"], cwd=self.folder, env=self.env)
        lines = [re.fullmatch(r"(\S.*) (\d+) (\d+)", line).groups() for line in done.stdout.splitlines()]
        before, after = (sum(int(line[n]) for line in lines if ";inner_blue(double)" in line[0]) for n in (1, 2))
        self.assertTrue(1.5 < after / before < 2.7, (before, after))
        self.assertTrue(all(line[0].startswith("work;") for line in lines), lines[:3])
        for line in self.report_as("-f", "collapsed").splitlines():  # the last run is side B
            if line.startswith("work;c;") and "inner_blue" in line:
                self.assertLessEqual(int(line.rsplit(" ", 1)[1]), after)
        page = cases.run([TOOL, "compare", *runs, "--cpu", "work", "-f", "html"], cwd=self.folder, env=self.env).stdout
        flame = json.loads(re.search(r'id="flame-data">(.*?)</script>', page, re.S).group(1))
        nodes = [flame["nodes"][i:i + 4] for i in range(0, len(flame["nodes"]), 4)]
        blue, sums = set(), [0, 0]
        for number, (back, name, *samples) in enumerate(nodes):  # with what it calls
            if flame["names"][name][0].startswith("inner_blue") or (back and number - back in blue):
                blue.add(number)
                sums = [total + own for total, own in zip(sums, samples)]
        self.assertEqual(sums, [before, after])
        done = cases.run([TOOL, "compare", *(f"{run}/report.json" for run in runs), "-f", "collapsed"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 80, done.stderr)
        done = cases.run([TOOL, "compare", *runs, "--cpu", "nothing"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 80)
        self.assertIn("nothing", done.stderr)

    def test_says_what_forbids_it(self):
        """Under a seccomp filter that refuses perf_event_open: --cpu fails, without it the report and the doctor say why."""
        if os.uname().machine not in ("x86_64", "aarch64"):
            self.skipTest("the filter is written for x86_64 and aarch64")
        forbid = [sys.executable, f"{HERE}/forbid.py", TOOL]
        done = cases.run([*forbid, "profile", "--no-project", "--cpu", "199Hz", "--", SHARES, "shares", "100"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertRegex(done.stderr, "seccomp filter forbids perf_event_open|perf_event_paranoid is")
        done = cases.run([*forbid, "profile", "--no-project", "--sample", "off", "-o", "report.txt", "--", SHARES, "shares", "100"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(f"{self.run_folder()}/report.json", encoding="utf-8") as f:
            losses = {loss["kind"]: loss for loss in json.load(f)["losses"]}
        self.assertIn("perf_event_open", losses["cpu_polled"]["detail"])
        done = cases.run([*forbid, "doctor", "--json"], cwd=self.folder, env=self.env)
        found = {f["id"]: f for f in json.loads(done.stdout)["findings"]}
        self.assertEqual(found["machine.cpu_not_sampled"]["verdict"], "warn")
        self.assertTrue(found["machine.cpu_not_sampled"]["hint"])

    def test_a_pid_namespace(self):
        """A container numbers its processes itself; seen from outside, and from within."""
        if os.geteuid() != 0 or not shutil.which("unshare"):
            self.skipTest("a PID namespace takes root and unshare")
        inner = ["unshare", "--pid", "--fork", "--mount-proc"]
        if subprocess.run([*inner, "true"], capture_output=True).returncode != 0:
            self.skipTest("no PID namespace can be made here")
        report, _ = self.profile(*inner, SHARES, "shares", "300")
        self.assert_adds_up(report)
        self.check_all_in("green(double)", "work", "b")
        done = cases.run([*inner, TOOL, "profile", "--no-project", "--sample", "off", "--cpu", "999Hz", "-o", "within.txt", "--", SHARES, "shares", "300"],
                         cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_all_in("red(double)", "work", "a")

    def test_nothing_of_the_stack_is_kept(self):
        """A word that stands only in the program's memory is nowhere in the run."""
        secret = "correct-horse-battery-staple"
        self.profile("/bin/sh", "-c", f'exec env SECRET_WORD={secret} "$0" shares 300', SHARES)
        for folder, _, files in os.walk(f"{self.run_folder()}/native/cpu"):
            for name in files:
                unpacked = subprocess.run(["zstd", "-dcf", os.path.join(folder, name)], capture_output=True).stdout
                with open(os.path.join(folder, name), "rb") as f:
                    self.assertNotIn(secret.encode(), f.read() + unpacked)


class Counters(Profiled):
    """--cpu-counters: events of the kernel for real, those of a processor by a stand-in for the system call."""

    @staticmethod
    def losses(report):
        return {loss["kind"]: loss for loss in report["losses"]}

    def test_what_the_operating_system_counts(self):
        report, truth = self.profile(SHARES, "faults", "20000", options=("--cpu-counters", "software"))
        self.assertGreaterEqual(truth["touches faults"], 20000)
        everything = kernel_allowed()  # an ordinary user's events end where the kernel begins
        for name in ("touches", "sleeps", "runs"):
            metrics = self.region(report, "work", name)["metrics"]
            faults = metrics["cpu_page_faults"]
            self.assertEqual((faults["source"], faults["unit"]), ("CPU events", "count"))
            self.assertEqual((faults["min"], faults["max"]), (faults["value"], faults["value"]))
            # Opening and closing a range may touch a page, or wait, outside what the program counts.
            self.assertAlmostEqual(faults["value"], truth[f"{name} faults"], delta=5, msg=name)
            if everything:
                self.assertAlmostEqual(metrics["cpu_context_switches"]["value"], truth[f"{name} switches"], delta=5, msg=name)
            else:
                self.assertNotIn("cpu_context_switches", metrics)
        whole = self.region(report, "work")
        self.assertGreaterEqual(whole["metrics"]["cpu_page_faults"]["value"], truth["touches faults"])
        counters = {c["name"]: c for c in whole["cpu"]["counters"]}
        self.assertEqual(counters["page-faults"]["count"], counters["page-faults"]["records"])
        self.assertEqual(counters["page-faults"]["deviation"], 0)
        if everything:
            self.assertNotIn("cpu_not_counted", self.losses(report))
        else:
            self.assertRegex(self.losses(report)["cpu_not_counted"]["detail"], "context-switches, cpu-migrations: .*paranoid")

        # The same in every form.
        text = self.report_as("--cpu", "touches")
        self.assertRegex(text, r"page faults +20,?0\d\d")
        self.assertIn("page faults", self.report_as())
        self.assertIn("page faults", self.report_as("-f", "md"))
        self.assertIn("cpu_page_faults", self.report_as("-f", "html"))
        rows = self.report_as("-f", "csv", "--columns", "metrics.cpu_page_faults")
        self.assertIn("metrics.cpu_page_faults", rows)
        self.assertRegex(rows, r"touches.*,20\d\d\d")
        done = cases.run([TOOL, "query", "latest", "-f", "csv", "select counter, sum(events) n from cpu_counts group by 1 order by n desc limit 1"],
                         cwd=self.folder, env=self.env)
        self.assertRegex(done.stdout, r"page-faults,2\d{4}", done.stderr)

    def test_a_processor_with_counters(self):
        report, truth = self.profile(SHARES, "shares", "3000", options=("--cpu-counters", "clock,branch,cache"), env={"LD_PRELOAD": PMU})
        work = self.region(report, "work")
        for name, value in {"cpu_ipc": 2, "cpu_hz": 1e9, "cpu_branch_miss_rate": 1, "cpu_cycles": sum(truth.values()) * 1e6}.items():
            metric = work["metrics"][name]
            self.assertLessEqual(metric["min"], value * 1.02, (name, metric))
            self.assertGreaterEqual(metric["max"], value * 0.98, (name, metric))
            self.assertLess(metric["max"] - metric["min"], 0.4 * value, (name, metric))
            self.assertTrue(metric["source"].startswith("CPU events, sampled"), metric)
            self.assertGreater(metric["rounds"], 100)
        cycles = {name: {c["name"]: c for c in self.region(report, "work", name)["cpu"]["counters"]}["instructions"]["count"] for name in "abc"}
        for name in "abc":
            self.assertAlmostEqual(cycles[name] / sum(cycles.values()), truth[name] / sum(truth.values()), delta=0.03)
        self.assertNotIn("cpu_llc_mpki", work["metrics"])
        losses = self.losses(report)
        self.assertEqual(losses["cpu_not_counted"]["count"], 2)
        self.assertIn("cache-references, cache-misses", losses["cpu_not_counted"]["detail"])
        self.assertIn("branches 50", losses["cpu_counters_shared"]["detail"])

    def test_a_machine_without_says_so_once(self):
        report, _ = self.profile(SHARES, "shares", "300", options=("--cpu-counters", "clock,branch"))
        missing = [loss for loss in report["losses"] if loss["kind"] == "cpu_not_counted"]
        work = self.region(report, "work")
        if not missing:  # a machine with counters
            self.assertTrue(0.02 < work["metrics"]["cpu_ipc"]["value"] < 20, work["metrics"])
            return
        self.assertEqual(len(missing), 1)
        self.assertIn("cycles", missing[0]["detail"])
        self.assertFalse([name for name in work["metrics"] if name.startswith("cpu_")])
        self.assertEqual(work["cpu"].get("counters", []), [])
        self.assertGreater(work["cpu"]["samples"], 0)

    def test_wrong_words(self):
        for words, code, text in ((("--cpu-counters", "clok"), 64, "clock"), (("--cpu", "off", "--cpu-counters", "clock"), 64, "--cpu off")):
            done = cases.run([TOOL, "profile", "--no-project", *words, "--", SHARES, "shares", "10"], cwd=self.folder, env=self.env)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(text, done.stderr)
        self.assertFalse(os.path.exists(f"{self.folder}/rangescope-runs"))


class Python(Profiled):
    """Every CPython that this machine has."""

    def check_python(self, interpreter):
        report, truth = self.profile(interpreter, f"{HERE}/python_shares.py", "1000", CLIENT)
        self.assert_adds_up(report)
        work = self.region(report, "work")
        for name in ("a", "b", "c"):  # each in ten stretches
            self.assert_sampled(self.region(report, "work", name)["cpu"]["samples"], truth[name], 10)
        # Of all chains, since the report's list of functions ends with the fiftieth. Python's frames are read some
        # microseconds after the sample. On a busy machine some are read too late and have none; and where a range has
        # just ended some name the function that has begun since.
        function_of = {"a": "red", "b": "green", "c": "blue"}
        seen, wrong, all_samples, lost = collections.Counter(), 0, 0, 0
        for chain, count in self.chains():
            if chain[0] != "work":
                continue
            lost += count if re.search(r";python3\.\d+\+0x[0-9a-f]+;<module>", ";".join(chain)) else 0
            all_samples += count
            for function, begin in set(re.findall(r";(?:\w+\.)?(red|green|blue) \(python_shares\.py:(\d+)\)", ";".join(chain))):
                self.assertGreater(int(begin), 0)
                right = function == function_of.get(chain[1])
                seen[function] += count if right else 0
                wrong += 0 if right else count
        self.assertGreater(min(seen[function] for function in function_of.values()), 10, seen)
        self.assertLessEqual(wrong, 30, seen)  # as many as ranges end
        self.assertLess(lost / all_samples, 0.01)  # the interpreter's loop is found, all of it, in stripped files too
        listed = [f for f in work["cpu"]["callers"] if f["python"]]
        self.assertTrue(any(f["file"].endswith("python_shares.py") and f["line"] > 0 for f in listed), listed)
        self.assertGreater(work["cpu"]["split"]["python"], 0.5 * (work["cpu"]["split"]["python"] + work["cpu"]["split"]["native"]))
        nap = self.region(report, "nap")
        self.assert_waits(nap, nap["wall_ns"]["inclusive"])
        self.assertIn(("waiting", "sleep"), [(part["kind"], part["name"]) for part in nap["cpu"]["parts"]])

    def check_functions_and_modules(self, interpreter):
        chosen = ("--functions", "first tokens=python_regions.*prefill", "--functions", "python_regions.Engine.*")
        command = (interpreter, f"{HERE}/python_regions.py", "800", CLIENT)
        env = {"PYTHONPATH": f"{SOURCE}/tests/modules/small", "PYTHONDONTWRITEBYTECODE": "1"}
        report, truth = self.profile(*command, options=chosen, env=env)
        self.assert_adds_up(report)
        self.assertEqual([loss["kind"] for loss in report["losses"] if loss["kind"] == "sampled_regions"], ["sampled_regions"])
        once = ("step", "Engine.decode", "Engine.forward_once")
        ms = {name: self.region(report, *path)["cpu"]["samples"] for name, path in {
            "prefill": ("first tokens",), "attention": (*once, "Model", "Attention"), "mlp": (*once, "Model", "Mlp")}.items()}
        # One each millisecond, or it is among the losses of a busy machine.
        missing = sum(loss["count"] for loss in report["losses"] if loss["kind"] in ("python_late", "cpu_samples_lost"))
        # A reader that waits for a core finds the next module in place of the one that was sampled, and these change 400 times.
        together = {"prefill": ("prefill",), "model": ("attention", "mlp")}
        for names in together.values():
            samples, true = sum(ms[name] for name in names), sum(truth[name] for name in names)
            self.assertLess(samples, 1.05 * true + 5, (ms, truth))
            self.assertGreater(samples + missing, 0.95 * true - 5, (ms, truth, report["losses"], self.stolen_s))
        self.assertGreater(ms["attention"] + missing, 0.5 * truth["attention"], (ms, truth))
        self.assertGreater(ms["mlp"] + missing, 0.5 * truth["mlp"], (ms, truth))
        idle = self.region(report, "Engine.idle")
        self.assert_waits(idle, 1e6 * truth["idle"])
        for region in report["regions"]:
            of_python = region["path"] not in (["step"],)
            self.assertEqual((region.get("module", False), region.get("sampled", False)), (of_python, of_python), region["path"])
            self.assertEqual(region["wall_ns"]["median"] is None, of_python)
        self.assertRegex(self.report_as(), r"Engine\.idle .* - +~\d+(\.\d+)? m?s ")
        compared = cases.run([TOOL, "compare", self.run_folder(), self.run_folder()], cwd=self.folder)
        self.assertIn("Engine", compared.stdout, compared.stderr)
        self.assertNotRegex(compared.stdout, r"Engine.*\bnew\b")
        report, _ = self.profile(*command, options=("--modules", "off", *chosen), env=env)
        self.assertEqual({tuple(r["path"]) for r in report["regions"]}, {("step",)})

    def check_calls(self, interpreter):
        report, _ = self.profile(interpreter, f"{HERE}/python_calls.py", "500", CLIENT)
        chains = collections.Counter()
        for line in self.report_as("-f", "collapsed").splitlines():
            chain, count = line.rsplit(" ", 1)
            chains[chain] += int(count)
        has = lambda name, chain: re.search(rf";(?:\w+\.)*{name} \(python_calls\.py:", chain)
        # Who called a generator is known, or nothing of the chain is.
        inner = {chain: count for chain, count in chains.items() if chain.startswith("generators;") and (has("inner", chain) or has("middle", chain))}
        self.assertGreater(sum(inner.values()), 100)
        lost = sum(count for chain, count in inner.items() if not has("consume", chain))
        self.assertLess(lost, 0.01 * sum(inner.values()), chains.most_common(12))
        found = sum(count for chain, count in inner.items() if has("inner", chain) and has("middle", chain))
        self.assertGreater(found, 10, chains.most_common(12))  # more where samples are read sooner: 15 to 70 %
        # Python's frames are not called by code that they call.
        burning = [chain for chain in chains if chain.startswith("made;") and has("burn", chain)]
        self.assertTrue(burning)
        for chain in burning:
            self.assertNotRegex(chain.split(" (python_calls.py")[0], r"\(JIT\)|anon|(?<!\+)0x", chain)
        if not interpreter.endswith(("3.9.18/bin/python3", "3.10.13/bin/python3")):
            work = {f["name"].split(".")[-1]: f for f in self.region(report, "generators")["cpu"]["functions"] if f["python"]}
            self.assertEqual(work["inner"].get("hot_line"), line_of("python_calls.py", "number * number"))

    def test_short_work_before_a_wait(self):
        """Its frames are read when the thread waits in another function; the sample's registers tell which one ran."""
        one_core = ("taskset", "-c", str(min(os.sched_getaffinity(0))))  # the sampler wakes on another one, which takes longer
        _, truth = self.profile(*one_core, "/usr/bin/python3", f"{HERE}/python_bursts.py", "1500", CLIENT)
        samples = collections.Counter()
        for chain, count in self.chains():
            functions = [function.split(" ")[0] for function in chain if " (python_bursts.py" in function]
            if "bursts" in functions:
                samples[functions[-1]] += count
        if samples.total() >= 300:  # else too few came in time, on a busy machine
            self.assertGreater(samples["work"] / samples.total(), truth["work"] / truth["all"] - 0.15, samples)

    def test_the_gil_and_sleep(self):
        report, truth = self.profile(sys.executable, f"{HERE}/python_gil.py", "2000", CLIENT)
        self.assert_adds_up(report)
        for name, times in truth.items():
            region = self.region(report, name)
            self.assert_waits(region, times["wall"] - times["cpu"])
        self.assert_sampled(self.region(report, "holds")["cpu"]["samples"], truth["holds"]["cpu"] / 1e6)
        self.assert_sampled(self.region(report, "dozes")["cpu"]["samples"], truth["dozes"]["cpu"] / 1e6, 300)
        kinds = {name: [p["name"] for p in self.region(report, name)["cpu"]["parts"] if p["kind"] == "waiting"] for name in truth}
        self.assertIn("GIL", kinds["wants"])
        wants = self.region(report, "wants")["cpu"]
        self.assertEqual(wants["holders"][0]["kind"], "GIL")
        self.assertEqual(wants["holders"][0]["range"], "holds")
        self.assertIn("hold", wants["holders"][0]["doing"])
        self.assertIn("sleep", kinds["dozes"])
        held = self.region(report, "holds")["cpu"]["split"]
        self.assertGreater(held["python"], 0.9 * (held["python"] + held["native"]))

    def profile_as_ordinary_user(self, *command, rate="999Hz"):
        """Neither root nor a capability. The report."""
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("changing the user takes root and setpriv")
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
        os.chmod(self.folder, 0o777)
        place = f"{self.folder}/user"
        os.mkdir(place)
        os.chown(place, 65534, 65534)
        if subprocess.run([*nobody, "test", "-r", TOOL, "-a", "-r", f"{HERE}/python_shares.py"]).returncode != 0:
            self.skipTest("the build cannot be read by an ordinary user")
        env = {**self.env, "HOME": place, "XDG_CACHE_HOME": f"{place}/cache"}
        done = cases.run([*nobody, TOOL, "profile", "--no-project", "--sample", "off", "--cpu", rate, "-o", "report.txt", "--", *command],
                         cwd=place, env=env)
        if done.returncode == 77:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.folder = place
        with open(f"{self.run_folder()}/report.json", encoding="utf-8") as f:
            report = json.load(f)
        self.assert_adds_up(report)
        return report

    def test_an_ordinary_user(self):
        """Native chains and Python functions all the same."""
        report = self.profile_as_ordinary_user("/usr/bin/python3", f"{HERE}/python_shares.py", "1000", CLIENT)
        work = self.region(report, "work")
        self.assertGreater(work["cpu"]["samples"], 100)
        named = {f["name"] for f in work["cpu"]["callers"] if f["python"] and f["file"].endswith("python_shares.py")}
        # How many are read in time depends on how busy the machine is; that some are does not.
        self.assertTrue(named & {"red", "green", "Deep.blue", "blue"}, work["cpu"]["callers"][:8])

    def test_waits_of_an_ordinary_user(self):
        """/proc is asked while they last, which a busy machine lets us do late: then a wait is `other`, but never of another kind."""
        for mode, kinds in (("short", {"naps": "sleep", "polls": "I/O", "reads": "I/O"}),
                            ("brief", {"naps": "sleep", "epolls": "I/O", "conditions": "lock"})):
            report = self.profile_as_ordinary_user(SHARES, mode, "60", rate="199Hz")
            for name, kind in kinds.items():
                waiting = self.waiting(report, name)
                self.assertGreater(waiting.get(kind, 0), 0, (name, waiting))
                self.assertLessEqual(set(waiting), {kind, "other"}, name)


for version, path in cases.pythons()[0].items():
    setattr(Python, "test_" + version.replace(".", "_"), lambda self, path=path: self.check_python(path))
    if path == "/usr/bin/python3" or path.startswith(cases.FETCHED):
        setattr(Python, "test_functions_and_modules_of_" + version.replace(".", "_"), lambda self, path=path: self.check_functions_and_modules(path))
    setattr(Python, "test_calls_of_" + version.replace(".", "_"), lambda self, path=path: self.check_calls(path))

if __name__ == "__main__":
    cases.main()
