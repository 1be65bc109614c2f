#!/usr/bin/env python3
"""Small inputs that were once read wrong, and what is right of each. Usage: readers.py BIN_DIR SOURCE_DIR"""
import gzip
import json
import os
import shutil
import sqlite3
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402

TOOL, SOURCE = f"{os.path.abspath(sys.argv[1])}/rangescope", os.path.abspath(sys.argv[2])
INPUTS, GOLDEN = f"{SOURCE}/tests/readers/inputs", f"{SOURCE}/tests/golden"


def paths(report):
    return {(region["domain"], *region["path"]): region["occurrences"] for region in report["regions"]}


def losses(report, kind):
    return [loss for loss in report["losses"] if loss["kind"] == kind]


class Readers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rangescope-readers-")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def run_report(self, *files, form="json"):
        return cases.run([TOOL, "report", *files, "-f", form], cwd=self.folder)

    def report(self, *files):
        done = self.run_report(*(file if os.path.isabs(file) else f"{INPUTS}/{file}" for file in files))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    # Names of C++ have colons: in every table of nsys they are names.

    def test_scoped_names_in_sums(self):
        report = self.report("A_nvtx_sum_scoped_names.csv")
        self.assertEqual(paths(report), {("", "step"): 2, ("", "Cache::run"): 2})
        self.assertEqual(losses(report, "domain_guessed"), [])

    def test_sums_change_nothing_of_a_trace(self):
        trace = self.report("B_nvtx_pushpop_trace.csv")
        both = self.report("B_nvtx_pushpop_trace.csv", "B_nvtx_sum.csv")
        self.assertEqual(paths(trace), {("", "step"): 2, ("", "step", "Cache::run"): 2})
        self.assertEqual(both["regions"], trace["regions"])
        self.assertEqual(losses(both, "domain_guessed"), [])

    def test_domains_in_sums_are_split(self):
        head = "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Style,Range\n"
        row = "50.0,600,2,300.0,300.0,290,310,14.1,PushPop,{}\n"
        every = self.report(self.write("a_nvtx_sum.csv", head + row.format(":Cache::run") + row.format("LLM:decode")))
        self.assertEqual(paths(every), {("", "Cache::run"): 2, ("LLM", "decode"): 2})
        self.assertEqual(losses(every, "domain_guessed"), [])
        mixed = self.report(self.write("b_nvtx_sum.csv", head + row.format("step") + row.format("LLM:decode")))
        self.assertEqual(paths(mixed), {("", "step"): 2, ("LLM", "decode"): 2})
        self.assertEqual(losses(mixed, "domain_guessed")[0]["count"], 1)

    # A file of ncu adds counters; what the timeline shows stays.

    def test_counters_do_not_hide_the_timeline(self):
        report = self.report("O_cuda_gpu_trace.csv", "O_ncu.csv")
        first = report["verdict"][0]
        self.assertEqual(first["kind"], "copies")
        self.assertEqual(first["saves_ns"], 10_000_000)
        kernels = [kernel for kernel in report["kernel_counters"] if kernel["metrics"]]
        self.assertEqual(len(kernels), 1)

    def test_savings_are_of_what_is_named(self):
        done = self.run_report(f"{INPUTS}/O_cuda_gpu_trace.csv", form="table")
        self.assertIn("59.2 % of the run", done.stdout)  # 10 of 16.9 ms
        alone = self.run_report(f"{INPUTS}/O_ncu.csv", form="table")
        self.assertIn(" of the kernel time)", alone.stdout)
        self.assertNotIn("of the run)", alone.stdout)

    def test_copies_that_overlap_count_once(self):
        report = self.report("E_cuda_gpu_trace.csv")
        copies = [verdict for verdict in report["verdict"] if verdict["kind"] == "copies"]
        self.assertEqual([verdict["saves_ns"] for verdict in copies], [10_000_000])

    def test_what_overlaps_is_busy_once(self):
        for name, kernels, kernel_ns, busy_ns, share in (("two_streams.json", 20, 2_000_000, 1_000_000, "gemm: 50 % of all kernel time, 100.0 % of the run"),
                                                         ("pdl_overlap.json", 20, 1_000_000, 810_000, "k0: 50 % of all kernel time, 50 % of the run"),
                                                         ("gpu_annotation.json", 1, 200_000, 200_000, None)):
            report = self.report(name)
            gpu = report["regions"][0]["gpu"]
            self.assertEqual((gpu["kernels"], gpu["kernel_ns"], gpu["busy_ns"]), (kernels, kernel_ns, busy_ns), name)
            if share:
                self.assertIn(share, [f"{line['path']}: {line['text'].split(':')[0]}" for line in report["verdict"]], name)
            self.assertLessEqual(sum(line["saves_ns"] or 0 for line in report["verdict"]), 1_000_000, name)

    # Captures of one run: the time between them was not recorded.

    def capture_of_zoo(self, name, after_s):
        path = f"{self.folder}/{name}"
        shutil.copy(f"{GOLDEN}/nsys/zoo.sqlite", path)
        with sqlite3.connect(path) as database:
            database.execute("update TARGET_INFO_SESSION_START_TIME set utcEpochNs = utcEpochNs + ?",
                             (after_s * 1_000_000_000,))
        database.close()
        return path

    def test_time_between_captures_is_in_no_share(self):
        first = f"{GOLDEN}/nsys/zoo.sqlite"
        alone = self.report(first)
        second, third = self.capture_of_zoo("zoo.2.sqlite", 100), self.capture_of_zoo("zoo.10.sqlite", 200)
        report = self.report(first, third, second)  # as a shell lists them
        self.assertEqual(report["run"]["duration_ns"], 3 * alone["run"]["duration_ns"])
        self.assertEqual([window["after_ns"] for window in report["run"]["windows"]],
                         [0, 100_000_000_000, 200_000_000_000])
        self.assertEqual(report["total"]["busy_ns"], 3 * alone["total"]["busy_ns"])
        self.assertEqual(report["outside"]["wall_ns"], 3 * alone["outside"]["wall_ns"])
        self.assertEqual(len(losses(report, "not_recorded")), 2)
        self.assertEqual([verdict["kind"] for verdict in report["verdict"]],
                         [verdict["kind"] for verdict in alone["verdict"]])

    def test_time_between_runs_is_in_no_share(self):
        first = f"{GOLDEN}/nsys/zoo.sqlite"
        second = self.capture_of_zoo("other.sqlite", 5)
        with sqlite3.connect(second) as database:
            database.execute("update PROCESSES set name = './other'")
        database.close()
        alone, both = self.report(first), self.report(first, second)
        self.assertEqual(both["run"]["duration_ns"], 2 * alone["run"]["duration_ns"])
        self.assertEqual(both["outside"]["wall_ns"], 2 * alone["outside"]["wall_ns"])
        self.assertEqual(len(losses(both, "not_recorded")), 1)

    # The same recording, twice.

    def check_once(self, first, second):
        one, two = self.report(first), self.report(first, second)
        self.assertEqual(two["regions"], one["regions"])
        self.assertEqual(two["kernels"], one["kernels"])
        self.assertEqual(two["kernel_counters"], one["kernel_counters"])
        named = [note for note in two["notes"] if "same recording as" in note]
        self.assertEqual(len(named), 1, two["notes"])
        self.assertIn(os.path.basename(second), named[0])

    def test_one_file_twice(self):
        self.check_once(f"{GOLDEN}/nsys/zoo.sqlite", f"{GOLDEN}/nsys/zoo.sqlite")

    def test_a_copy(self):
        shutil.copy(f"{INPUTS}/badesc.pt.trace.json", f"{self.folder}/copy.json")
        self.check_once(f"{INPUTS}/badesc.pt.trace.json", f"{self.folder}/copy.json")

    def test_a_packed_copy(self):
        trace = f"{GOLDEN}/kineto/step.json.gz"
        with gzip.open(trace) as packed, open(f"{self.folder}/plain.json", "wb") as plain:
            plain.write(packed.read())
        self.check_once(trace, f"{self.folder}/plain.json")

    def test_results_of_ncu_twice(self):
        shutil.copy(f"{INPUTS}/O_ncu.csv", f"{self.folder}/again.csv")
        self.check_once(f"{INPUTS}/O_ncu.csv", f"{self.folder}/again.csv")

    def test_two_recordings_stay_two(self):
        two = self.report(f"{GOLDEN}/nsys/zoo.sqlite", f"{GOLDEN}/nsys/work.sqlite")
        self.assertEqual([note for note in two["notes"] if "same recording" in note], [])

    # Calls that touch lie next to each other.

    def test_touching_calls(self):
        report = self.report("G_cuda_calls.pt.trace.json")
        calls = {row["name"]: (row["calls"], row["exclusive_cpu_ns"]) for row in report["operators"]}
        self.assertEqual(calls["cudaFuncSetAttribute"], (3, 1000))
        self.assertEqual(calls["cudaLaunchKernel"], (1, 2000))
        self.assertEqual(calls["aten::mm"], (1, 17000))

    def test_touching_waits(self):
        head = "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name\n"
        rows = "".join(f"{start},{length},cudaDeviceSynchronize,0,{number},10,10,20,app\n"
                       for number, (start, length) in enumerate([(1000, 1000), (2000, 0), (2000, 1000)], 1))
        gpu = "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Device,Ctx,Strm,Name\n"
        gpu += "1500,100,9,1,1,1,32,1,1,GPU (0),1,7,k()\n"
        report = self.report(self.write("r_cuda_api_trace.csv", head + rows), self.write("r_cuda_gpu_trace.csv", gpu))
        self.assertEqual(report["total"]["syncs"], 3)

    # What cannot be, and what is not there.

    def test_impossible_times(self):
        report = self.report("impossible.json")
        self.assertEqual([(kernel["name"], kernel["calls"], kernel["total_ns"]) for kernel in report["kernels"]],
                         [("good", 10, 400_000)])
        self.assertEqual(report["total"]["kernels"], 10)
        found = losses(report, "impossible_time")
        self.assertEqual([loss["count"] for loss in found], [1, 1, 1])

    def test_impossible_times_of_tables(self):
        calls = "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid,T-Pri,Thread Name\n"
        work = "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Device,Ctx,Strm,Name\n"
        for number in range(1, 11):
            calls += f"{number}0000000,5000,cudaLaunchKernel,0,{number},10,10,20,app\n"
            start, length = (1000, 30_500_000) if number == 3 else (number * 10_000_000 + 8000, 40_000)
            work += f"{start},{length},{number},1,1,1,32,1,1,GPU (0),1,7,k()\n"
        report = self.report(self.write("r_cuda_api_trace.csv", calls), self.write("r_cuda_gpu_trace.csv", work))
        self.assertEqual([(kernel["calls"], kernel["total_ns"]) for kernel in report["kernels"]], [(9, 360_000)])
        self.assertEqual(report["run"]["duration_ns"], 90_048_000)
        self.assertEqual([loss["count"] for loss in losses(report, "impossible_time")], [1])

    def test_launches_without_kernels(self):
        for file, launches in (("no_kernels.json", 50), ("nokernels.pt.trace.json", 12)):
            report = self.report(file)
            self.assertEqual(losses(report, "launches_without_work")[0]["count"], launches)
            works = [work for work in [report["total"], *(region["gpu"] for region in report["regions"])] if work]
            self.assertEqual([work["kernel_ns"] for work in works], [None] * len(works))
            self.assertEqual([work["kernels"] for work in works], [None] * len(works))

    def test_a_renamed_table(self):
        path = f"{self.folder}/renamed.sqlite"
        shutil.copy(f"{GOLDEN}/nsys/zoo.sqlite", path)
        with sqlite3.connect(path) as database:
            database.execute("alter table NVTX_EVENTS rename to NVTX_EVENTS_V2")
            database.execute("alter table CUPTI_ACTIVITY_KIND_KERNEL rename to CUPTI_ACTIVITY_KIND_KERNEL9")
        database.close()
        report = self.report(path)
        named = " ".join(loss["detail"] for loss in losses(report, "unknown_table"))
        self.assertIn("NVTX_EVENTS_V2", named)
        self.assertIn("CUPTI_ACTIVITY_KIND_KERNEL9", named)
        self.assertIsNone(report["total"]["kernel_ns"])

    # Tables that other output cuts in two.

    def test_rows_behind_an_unexpected_line(self):
        with open(f"{INPUTS}/B_nvtx_pushpop_trace.csv", encoding="utf-8") as file:
            lines = file.readlines()
        cut = lines[:3] + ["step 3: loss 0.25\n", "\n"] + lines[3:]
        report = self.report(self.write("r_nvtx_pushpop_trace.csv", "".join(cut)))
        self.assertEqual(paths(report), {("", "step"): 2, ("", "step", "Cache::run"): 2})

    def test_only_bad_rows(self):
        with open(f"{INPUTS}/B_nvtx_pushpop_trace.csv", encoding="utf-8") as file:
            head = file.readline()
        done = self.run_report(self.write("r_nvtx_pushpop_trace.csv", head + "x,1,y,z,1,name,p,q,0,1,1,,:1,n\n"))
        self.assertEqual(done.returncode, 65, done.stdout)
        self.assertIn("no row fits its header: 1 row, the first in line 2", done.stderr)

    # Pops that are missing.

    def test_a_range_that_is_never_popped(self):
        ranges = "Start (ns),End (ns),Duration (ns),DurChild (ns),DurNonChild (ns),Name,PID,TID,Lvl,NumChild,RangeId,ParentId,RangeStack,NameTree\n"
        kernels = ("API Start (ns),API Dur (ns),Queue Start (ns),Queue Dur (ns),Kernel Start (ns),Kernel Dur (ns),Total Dur (ns),PID,TID,DevId,"
                   "API Function,GridXYZ,BlockXYZ,Kernel Name\n")
        for number in range(300):
            start = 1_000_000 + 100_000 * number
            ranges += f"{start},31000000,{31_000_000 - start},0,0,step,10,10,{number},1,{number + 1},,:{number + 1},step\n"
            kernels += f"{start + 10000},5000,,,{start + 20000},50000,60000,10,10,0,cudaLaunchKernel,1 1 1,32 1 1,k(float*)\n"
        report = self.report(self.write("r_nvtx_pushpop_trace.csv", ranges), self.write("r_cuda_kern_exec_trace.csv", kernels))
        self.assertEqual([(region["path"], region["occurrences"], region["unclosed"]) for region in report["regions"]],
                         [(["step"], 299, 1)])
        self.assertEqual(report["regions"][0]["gpu"]["kernels"], 300)
        self.assertEqual(report["regions"][0]["wall_ns"]["max"], 100_000)
        self.assertEqual([loss["count"] for loss in losses(report, "unbalanced_ranges")], [299])

    # Names.

    def test_printed_names_can_be_selected(self):
        names = ["a/b", "a > b", "user@host", "std::pair<int, char>::push(int&&, char const*)", " lead and trail ", "a,b;c", "decode/",
                 "<script>alert(1)</script>", "=cmd|' /C calc'!A0", "../../etc/passwd", "latin1 \udce9t", "layer_3", "layer_30"]
        path = f"{self.folder}/names.sqlite"
        shutil.copy(f"{GOLDEN}/nsys/cpu.sqlite", path)
        with sqlite3.connect(path) as database:
            cursor = database.execute("select * from NVTX_EVENTS where eventType = 59 limit 1")
            row = dict(zip([column[0] for column in cursor.description], cursor.fetchone()))
            database.execute("delete from NVTX_EVENTS where eventType in (59, 60)")
            places = ", ".join("cast(? as text)" if column == "text" else "?" for column in row)
            for number, name in enumerate(names):
                start = row["start"] + 10_000 * number
                event = {**row, "start": start, "end": start + 5000, "textId": None, "text": os.fsencode(name)}
                database.execute(f"insert into NVTX_EVENTS ({', '.join(row)}) values ({places})", list(event.values()))
        database.close()
        shown = [region["path"] for region in self.report(path)["regions"]]
        self.assertEqual(len(shown), len(names))
        for region in shown:
            done = cases.run([TOOL, "report", path, f"--include={region[-1]}", "-f", "json"], cwd=self.folder)
            self.assertEqual(done.returncode, 0, f"{region}: {done.stderr}")
            self.assertEqual([found["path"] for found in json.loads(done.stdout)["regions"]], [region])

    def test_a_bad_escape(self):
        report = self.report("badesc.pt.trace.json")
        self.assertIn("C:\\Users\\x", [region["path"][-1] for region in report["regions"]])
        self.assertIn("C:\\Users\\x", [row["name"] for row in report["operators"]])


if __name__ == "__main__":
    cases.main()
