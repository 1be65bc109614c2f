#!/usr/bin/env python3
"""exporters: timelines and metrics for other programs, read back by readers of their own and compared with the JSON report
and with nsys's own tables. Usage: exporters.py BIN_DIR ROOT"""
import collections
import csv
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases
import perfetto_reader

BIN, ROOT = sys.argv[1], sys.argv[2]


def golden(name):
    return os.path.join(ROOT, "tests", "golden", *name.split("/"))


def report(path, form, expect=0):
    with tempfile.TemporaryDirectory() as folder:
        to = os.path.join(folder, "out")
        done = subprocess.run([os.path.join(BIN, "rangescope"), "report", path, "-f", form, "-o", to], capture_output=True, text=True)
        if done.returncode != expect:
            raise AssertionError(f"exit {done.returncode}: {done.stderr}")
        if expect:
            return done.stderr
        with open(to, "rb") as f:
            return f.read()


def truth(sqlite):
    """Kernels, copies, launches and ranges as nsys's own tables have them."""
    db = sqlite3.connect(f"file:{sqlite}?mode=ro", uri=True)
    kernels = db.execute("select k.start, k.end, s.value from CUPTI_ACTIVITY_KIND_KERNEL k join StringIds s on s.id = k.demangledName").fetchall()
    ranges = db.execute("select e.start, e.end, coalesce(e.text, s.value) from NVTX_EVENTS e left join StringIds s on s.id = e.textId "
                        "where e.eventType in (59, 60) and e.end is not null").fetchall()
    tables = {name for name, in db.execute("select name from sqlite_master")}
    copies = db.execute("select count(*) from CUPTI_ACTIVITY_KIND_MEMCPY").fetchone()[0] if "CUPTI_ACTIVITY_KIND_MEMCPY" in tables else 0
    linked = db.execute("select count(*) from CUPTI_ACTIVITY_KIND_KERNEL k join CUPTI_ACTIVITY_KIND_RUNTIME r on "
                        "r.correlationId = k.correlationId and r.globalTid / 16777216 = k.globalPid / 16777216").fetchone()[0]
    db.close()
    return kernels, ranges, copies, linked


class Perfetto(unittest.TestCase):
    def check(self, name):
        path = golden(name)
        trace = perfetto_reader.Trace(report(path, "perfetto"))
        kernels, ranges, copies, linked = truth(path)
        by_category = {}
        for one in trace.slices:
            by_category.setdefault(one["category"], []).append(one)
        got = sorted((s["start"], s["end"], s["name"]) for s in by_category["kernel"])
        self.assertEqual(got, sorted(kernels))
        got = sorted((s["start"], s["end"], s["name"]) for s in by_category["nvtx"] if "never_closed" not in s["args"])
        self.assertEqual(got, sorted(ranges))
        self.assertEqual(len(by_category.get("memcpy", [])), copies)
        # Flows: each kernel's ends in a call that began before it, on a thread of its process.
        calls = {flow: one for one in trace.slices + trace.instants for flow in one["flows_out"]}
        flowing = [(s, calls[s["flows_in"][0]]) for s in by_category["kernel"] if s["flows_in"]]
        self.assertEqual(len(flowing), linked)
        for kernel, call in flowing:
            self.assertLessEqual(call["start"], kernel["start"])
            self.assertIn("tid", self.top(trace, call["track"]))

    def top(self, trace, track):
        while "tid" not in trace.tracks[track] and trace.tracks[track]["parent"] in trace.tracks:
            track = trace.tracks[track]["parent"]
        return trace.tracks[track]

    def test_zoo(self):
        self.check("nsys/zoo.sqlite")

    def test_pytorch(self):
        self.check("nsys/work.sqlite")

    def test_several_processes(self):
        self.check("nsys/mp.sqlite")

    def test_payloads_of_a_native_capture(self):
        trace = perfetto_reader.Trace(report(golden("native/v1_zoo_0.rstrace"), "perfetto"))
        args = {s["name"]: s["args"] for s in trace.slices + trace.instants}
        self.assertEqual(args["attrs"]["category"], "compute")
        self.assertIn("payload", args["attrs"])
        self.assertEqual(args["decode_all"]["domain"], "LLM")
        self.assertIn("done", [mark["name"] for mark in trace.instants])
        self.assertIn(1, trace.clocks)  # UTC is known

    def test_cpu_samples_and_waits(self):
        """Call chains against those of -f collapsed, waits against the table of `query`."""
        path = golden("native-cpu/python")
        trace = perfetto_reader.Trace(report(path, "perfetto"))
        chains = collections.Counter()
        for sample in trace.cpu_samples:
            chains[";".join(name.replace(";", ":") for name, _ in sample["chain"]) or "(unknown)"] += 1
        ranges = {"work", "a", "b", "c", "nap"}  # collapsed chains stand below their ranges
        want = collections.Counter()
        for line in report(path, "collapsed").decode().splitlines():
            chain, count = line.rsplit(" ", 1)
            frames = chain.split(";")
            while frames and frames[0] in ranges:
                frames.pop(0)
            want[";".join(frames) or "(unknown)"] += int(count)
        self.assertEqual(chains, want)
        self.assertTrue(any(("red (app.py:15)", "python") in sample["chain"] for sample in trace.cpu_samples))
        threads = {(track["pid"], track["tid"]) for track in trace.tracks.values() if "tid" in track}
        self.assertEqual({(sample["pid"], sample["tid"]) for sample in trace.cpu_samples} - threads, set())
        waits = [s for s in trace.slices if s["category"] == "cpu_wait"]
        done = subprocess.run([os.path.join(BIN, "rangescope"), "query", path, "-f", "csv", "select * from cpu_waits"], capture_output=True, text=True, check=True)
        rows = list(csv.DictReader(done.stdout.splitlines()))
        names = {"sleep": "waiting: sleep", "lock": "waiting: lock", "I/O": "waiting: I/O", "other": "waiting", "preempted": "preempted"}
        self.assertEqual(sorted((s["start"], s["end"], s["name"]) for s in waits),
                         sorted((int(r["start_ns"]), int(r["end_ns"]), names[r["kind"]]) for r in rows))
        nap = max(waits, key=lambda s: s["end"] - s["start"])
        self.assertEqual((nap["name"], trace.tracks[nap["track"]]["name"]), ("waiting: sleep", "off the CPU"))
        self.assertIn("tid", self.top(trace, nap["track"]))

    def test_nothing_to_show_is_said(self):
        self.assertIn("no timeline", report(golden("ncu/k_roof.ncu-repz"), "perfetto", expect=80))


class Pprof(unittest.TestCase):
    """Opened by the real `go tool pprof`."""

    def raw(self, path):
        if not shutil.which("go"):
            self.skipTest("go is not installed (Debian's golang-go)")
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/p.pb.gz", "wb") as f:
                f.write(report(path, "pprof"))
            done = subprocess.run(["go", "tool", "pprof", "-raw", f"{folder}/p.pb.gz"], capture_output=True, text=True, cwd=folder,
                                  env={**os.environ, "HOME": folder, "PPROF_TMPDIR": folder})
        self.assertEqual(done.returncode, 0, done.stderr)
        head, _, rest = done.stdout.partition("Samples:\n")
        types, *lines = rest.partition("Locations\n")[0].splitlines()
        kinds = [each.split("/")[0].replace("[dflt]", "") for each in types.split()]
        found = []
        for line in lines:
            values, _, stack = line.partition(":")
            found.append((tuple(reversed(stack.split())), dict(zip(kinds, map(int, values.split())))))
        return kinds, found, head

    def sums(self, found, kind):
        return sum(values[kind] for _, values in found)

    def test_ranges_and_kernels(self):
        path = golden("nsys/zoo.sqlite")
        kinds, found, head = self.raw(path)
        whole = json.loads(report(path, "json"))
        self.assertEqual(kinds, ["wall", "gpu", "copied"])
        self.assertEqual(self.sums(found, "gpu"), whole["total"]["kernel_ns"])
        self.assertEqual(self.sums(found, "copied"), whole["total"]["copy_bytes"])
        own = [r["wall_ns"]["exclusive"] for r in whole["regions"] if (r["process"], r["domain"], r["kind"]) == (None, "", "push_pop")]
        self.assertEqual(sorted(v["wall"] for _, v in found if v["wall"]), sorted([round(ns) for ns in own if ns] + [round(whole["outside"]["wall_ns"])]))
        self.assertIn("left out, since they overlap: push_pop ranges of domain LLM", head)

    def test_a_tree_of_names(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/p.pb.gz", "wb") as f:
                f.write(report(golden("nsys/zoo.sqlite"), "pprof"))
            if not shutil.which("go"):
                self.skipTest("go is not installed (Debian's golang-go)")
            done = subprocess.run(["go", "tool", "pprof", "-traces", "-sample_index=gpu", f"{folder}/p.pb.gz"], capture_output=True, text=True,
                                  cwd=folder, env={**os.environ, "HOME": folder, "PPROF_TMPDIR": folder})
        traces = [[line.split(None, 1)[1] if line[:11].strip() else line.strip() for line in block.splitlines() if line.strip()]
                  for block in re.split(r"^-+\+-+$", done.stdout, flags=re.M)[1:]]
        self.assertIn(["softmax_like(float *, int)", "layer0", "decode"], [[name.strip() for name in trace] for trace in traces])

    def test_functions(self):
        path = golden("native-cpu/python")
        kinds, found, _ = self.raw(path)
        self.assertEqual(kinds, ["wall", "cpu"])
        samples = sum(int(line.rsplit(" ", 1)[1]) for line in report(path, "collapsed").decode().splitlines())
        whole = json.loads(report(path, "json"))
        interval = next(r["cpu"]["interval_ns"] for r in whole["regions"] if r.get("cpu"))
        self.assertEqual(self.sums(found, "cpu"), samples * interval)


class Annotations(unittest.TestCase):
    """Read back as GitHub's runner reads commands (::NAME KEY=VALUE,...::TEXT), and as VS Code's matcher $gcc reads lines."""
    COMMAND = re.compile(r"^::([a-z]+) ([^:]*)::(.*)$")
    GCC = re.compile(r"^(.*?):(\d+):(\d*):?\s+(?:fatal\s+)?(warning|error):\s+(.*)$")

    def decoded(self, text):
        for code, char in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
            text = text.replace(code, char)
        return text

    def test_the_hottest_functions(self):
        path = golden("native-cpu/python")
        whole = json.loads(report(path, "json"))
        known = {}
        works = [region["cpu"] for region in whole["regions"] if region["process"] is None and region.get("cpu")]
        works.append(whole["cpu_outside"])
        hot_line = {(each["name"], each["file"]): each["hot_line"] for work in works for each in work["functions"] if "hot_line" in each}
        for work in works:
            for own in work["own_functions"]:
                line = hot_line.get((own["function"], own["file"])) or own["line"]
                if not own["file"] or not line:
                    continue
                key = (os.path.normpath(own["file"]), line, own["function"])
                known[key] = max(known.get(key, 0), own["cpu_ns"])
        want = [key for key in sorted(known, key=lambda key: -known[key]) if known[key] > 0][:10]
        got = []
        for line in report(path, "annotations").decode().splitlines():
            name, properties, text = self.COMMAND.match(line).groups()
            given = {key: self.decoded(value) for key, value in (each.split("=", 1) for each in properties.split(","))}
            self.assertEqual((name, given["title"]), ("warning", "rangescope"))
            got.append((given["file"], int(given["line"]), self.decoded(text)))
        self.assertEqual([(file, line, text[:len(function) + 1]) for (file, line, text), (_, _, function) in zip(got, want)],
                         [(file, line, function + ":") for file, line, function in want])
        self.assertEqual(len(got), len(want))
        self.assertIn(", most in work > a", next(text for _, _, text in got if text.startswith("red:")))
        lines = [self.GCC.match(line).groups() for line in report(path, "problems").decode().splitlines()]
        self.assertEqual([(file, int(line), text) for file, line, _, _, text in lines], got)

    def test_files_of_the_folder_are_named_from_there(self):
        """And are all that is listed: libraries with debug information are not of the repository."""
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(f"{folder}/src")
            with open(f"{folder}/src/a,b.py", "w") as f:
                f.write("def hot(n):\n    while n:\n        n -= 1\nhot(20000000)\n")
            tool = lambda *words: subprocess.run([os.path.join(os.path.abspath(BIN), "rangescope"), *words], cwd=folder, capture_output=True, text=True)
            done = tool("profile", "-q", "--no-project", "--cpu", "--", sys.executable, "src/a,b.py")
            if done.returncode == 77:
                self.skipTest(done.stderr.strip())
            said = tool("report", "latest", "-f", "annotations").stdout
            self.assertRegex(said, r"\A::warning file=src/a%2Cb\.py,line=\d,title=rangescope::hot: ")
            self.assertEqual({line.split(",")[0] for line in said.splitlines()}, {"::warning file=src/a%2Cb.py"})

    def test_without_samples(self):
        self.assertIn("no functions with source lines", report(golden("nsys/zoo.sqlite"), "annotations", expect=80))


class OpenMetrics(unittest.TestCase):
    LINE = re.compile(r'([a-z_0-9]+)\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*)\} (\S+)')

    def test_agrees_with_json(self):
        path = golden("nsys/zoo.sqlite")
        text = report(path, "openmetrics").decode()
        self.assertTrue(text.endswith("# EOF\n"))
        regions = json.loads(report(path, "json"))["regions"]
        seen, families, values = set(), [], {}
        for line in text.splitlines()[:-1]:
            if line.startswith("#"):
                family = line.split()[2]
                if line.startswith("# TYPE"):
                    self.assertNotIn(family, families)
                    families.append(family)
                continue
            match = self.LINE.fullmatch(line)
            self.assertTrue(match, line)
            self.assertEqual(match.group(1), families[-1])
            self.assertNotIn(match.group(1, 2), seen)
            seen.add(match.group(1, 2))
            labels = dict(re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', match.group(2)))
            if match.group(1) == "rangescope_wall_inclusive_seconds":
                values[labels["path"], labels["domain"], labels["kind"], labels["process"]] = float(match.group(3))
        want = {(" > ".join(r["path"]), r["domain"], r["kind"], str(r["process"] or "")): r["wall_ns"]["inclusive"] / 1e9 for r in regions}
        self.assertEqual(values.keys(), want.keys())
        for key, value in want.items():
            self.assertAlmostEqual(values[key], value, places=9)


class JsonLines(unittest.TestCase):
    def test_lines_are_the_report(self):
        path = golden("nsys/zoo.sqlite")
        lines = [json.loads(line) for line in report(path, "jsonl").decode().splitlines()]
        whole = json.loads(report(path, "json"))
        self.assertEqual([line["region"] for line in lines if line["type"] == "region"], whole["regions"])
        self.assertEqual([line["kernels"][0] for line in lines if line["type"] == "kernel"], whole["kernels"])
        self.assertEqual(lines[0]["run"], whole["run"])


if __name__ == "__main__":
    cases.main()
