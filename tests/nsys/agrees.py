#!/usr/bin/env python3
"""The same program under the real nsys 2022.4.2 and under rangescope.

Every range has equally many occurrences in both, and in each the median duration lies between those that the program itself
measured just inside and just outside of the NVTX calls, in the same run. nsys records, the
importer turns the stream into a report (nsys of Debian does not find it by itself), and the SQLite export is read here.
Usage: agrees.py BIN_DIR. The tools are looked for in $RANGESCOPE_TOOLS/bin; without them the test is skipped.
"""
import json
import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
import cases  # noqa: E402

BIN = sys.argv[1]
TOOLS = os.path.join(os.environ.get("RANGESCOPE_TOOLS", os.path.join(HERE, "..", "..", ".cache", "tools")), "bin")
PUSH_POP, START_END, DOMAIN = 59, 60, 75
KIND = {PUSH_POP: "push_pop", START_END: "start_end"}


def record(program, folder):
    """The SQLite file that nsys makes of one run of the program, and what the program printed."""
    base = os.path.join(folder, "report")
    environment = dict(os.environ, TMPDIR=folder)
    steps = [[f"{TOOLS}/nsys", "profile", "--trace=nvtx", "--sample=none", "--cpuctxsw=none", "-f", "true", "-o", base, program],
             [f"{TOOLS}/QdstrmImporter", "-i", base + ".qdstrm", "-o", base + ".nsys-rep"],
             [f"{TOOLS}/nsys", "export", "--type", "sqlite", "-f", "true", "-o", base + ".sqlite", base + ".nsys-rep"]]
    printed = ""
    for argv in steps:
        if argv[0].endswith("Importer") and os.path.exists(base + ".nsys-rep"):
            continue
        done = cases.past_deaths_of_nsys(lambda argv=argv: cases.run(argv, env=environment))
        if done.returncode:
            raise AssertionError(f"{argv}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        if argv[-1] == program:
            printed = done.stdout
    return base + ".sqlite", printed


def truth(printed):
    """{(domain, kind, path): (inside_ns, outside_ns)} of what the program printed."""
    rows = [line.split("\t") for line in printed.splitlines() if line.count("\t") == 4]
    return {(domain, kind, tuple(path.split(">"))): (int(inside), int(outside)) for domain, kind, path, inside, outside in rows}


def durations(database):
    """{(domain, kind, path): [duration in ns]} of an export; push/pop ranges nest per thread and domain."""
    with sqlite3.connect(database) as db:
        names = {0: ""}
        query = "select eventType, domainId, globalTid, start, end, coalesce(text, (select value from StringIds where id = textId)) from NVTX_EVENTS"
        rows = db.execute(query).fetchall()
    for kind, domain, _, _, _, text in rows:
        if kind == DOMAIN:
            names[domain] = text
    found, stacks = {}, {}
    ranges = [r for r in rows if r[0] in KIND]
    for kind, domain, thread, start, end, text in sorted(ranges, key=lambda r: (r[3], -r[4])):
        path = (text,)
        if kind == PUSH_POP:
            stack = stacks.setdefault((thread, domain), [])
            while stack and stack[-1][0] < end:
                stack.pop()
            path = (stack[-1][1] if stack else ()) + path
            stack.append((end, path))
        found.setdefault((names[domain], KIND[kind], path), []).append(end - start)
    return found


@unittest.skipUnless(os.path.exists(f"{TOOLS}/nsys"), f"no nsys in {TOOLS} (tests/tools/fetch.sh)")
class Agrees(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program = f"{BIN}/nsys_program"
        folder = tempfile.TemporaryDirectory(prefix="rangescope-nsys-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        database, printed = record(program, cls.folder)
        cls.nsys, cls.nsys_truth = durations(database), truth(printed)
        report, done = cases.profile(BIN, [program])
        if done.returncode:
            raise AssertionError(done.stderr)
        cls.ours, cls.our_truth = cases.aggregate(report), truth(done.stdout)

    def test_same_regions_and_occurrences(self):
        self.assertEqual({key: r["occurrences"] for key, r in self.ours.items()},
                         {key: len(times) for key, times in self.nsys.items()})
        self.assertEqual(len(self.nsys), 9)  # nobody saw nothing

    def test_median_durations(self):
        ours = {key: region["wall_ns"]["median"] for key, region in self.ours.items()}
        theirs = {key: statistics.median(times) for key, times in self.nsys.items()}
        for medians, measured in ((ours, self.our_truth), (theirs, self.nsys_truth)):
            self.assertEqual(set(medians), set(measured))
            for key, (inside, outside) in measured.items():
                with self.subTest(key=key, ours=medians is ours):
                    between_clocks = 500 + inside / 1000  # the conversion of the TSC
                    self.assertGreaterEqual(medians[key], inside - between_clocks)
                    self.assertLessEqual(medians[key], outside + between_clocks)

    def report(self, name, nsys):
        done = cases.run([f"{BIN}/rangescope", "report", os.path.join(self.folder, name), "-f", "json"],
                         env=dict(os.environ, RANGESCOPE_NSYS=nsys))
        return done, (cases.aggregate(json.loads(done.stdout)) if done.returncode == 0 else {})

    def test_streams_and_reports_are_read_through_nsys_once(self):
        for name in ("report.qdstrm", "report.nsys-rep"):
            with self.subTest(name=name):
                done, regions = self.report(name, f"{TOOLS}/nsys")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual({key: (r["occurrences"], r["wall_ns"]["inclusive"]) for key, r in regions.items()},
                                 {key: (len(times), sum(times)) for key, times in self.nsys.items()})
                kept = [e for e in os.scandir(self.folder) if e.name.startswith(name + ".rangescope-")]
                self.assertEqual([e.name.endswith(".sqlite") for e in kept], [True])
                self.assertEqual(kept[0].stat().st_mode & 0o777, 0o600)
                again, same = self.report(name, "/nowhere/nsys")  # not asked again
                self.assertEqual(again.returncode, 0, again.stderr)
                self.assertEqual(same, regions)

    def test_an_importer_without_its_libraries_says_which(self):
        """An installation of links to the real one, without two of the importer's libraries."""
        real = os.path.realpath(os.path.join(TOOLS, "..", "root/usr/lib/nsight-systems"))
        for folder in ("bin", "host-linux-x64"):
            os.makedirs(os.path.join(self.folder, "nsight", folder))
        with open(os.path.join(self.folder, "nsight/bin/nsys"), "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec "{real}/bin/nsys" "$@"\n')
        os.chmod(file.name, 0o755)
        left_out = {"libSshClient.so", "libLinuxPerf.so"}
        for entry in os.scandir(f"{real}/host-linux-x64"):
            at = os.path.join(self.folder, "nsight/host-linux-x64", entry.name)
            if entry.name == "QdstrmImporter":  # $ORIGIN is where the file lies
                shutil.copy(entry.path, at)
            elif entry.name not in left_out:
                os.symlink(entry.path, at)
        shutil.copyfile(os.path.join(self.folder, "report.qdstrm"), os.path.join(self.folder, "bare.qdstrm"))
        done, _ = self.report("bare.qdstrm", file.name)
        self.assertEqual(done.returncode, 69, done.stderr)
        for library in left_out:
            self.assertEqual(done.stderr.count(library + ","), 1, done.stderr)


if __name__ == "__main__":
    cases.main()
