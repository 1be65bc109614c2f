#!/usr/bin/env python3
"""Files of other tools as a user meets them: import, query, export, --split-regions, and inputs that cannot be read.

Usage: inputs.py BIN_DIR. The inputs are those of tests/golden.
"""
import contextlib
import csv
import hashlib
import io
import json
import os
import re
import shutil
import sqlite3
import struct
import subprocess

from commands import TOOL, VICTIM, cases
from files import DECODE, GOLDEN, NESTED, NODES, ZOO, Files

with open(os.path.join(GOLDEN, "nsys", "zoo_truth.json"), encoding="utf-8") as f:
    TRUTH = json.load(f)


def golden_bytes(path):
    with open(path, "rb") as file:
        return file.read()


class Import(Files):
    def test_a_run_of_foreign_files_reports_what_the_files_report(self):
        mine = shutil.copy(ZOO, self.path("mine.sqlite"))
        os.chmod(mine, 0o444)
        done = self.tool("runs", "import", mine, NESTED)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        plain, imported = self.report(mine, NESTED), self.report("latest")
        self.assertEqual(imported["regions"], plain["regions"])
        self.assertEqual(imported["kernels"], plain["kernels"])
        self.assertEqual(imported["run"]["command"], [])
        self.assertEqual(imported["run"]["start_unix_ns"], plain["run"]["start_unix_ns"])  # not when it was imported
        files = self.file("import.json")["files"]
        self.assertEqual([(f["file"], f["format"], f["redacted"]) for f in files],
                         [("nsys/mine.sqlite", "nsys-sqlite", True), ("ncu/k_nested.ncu-repz", "ncu-report", False)])
        self.assertEqual(files[0]["from"], mine)
        self.assertEqual(files[0]["sha256"], hashlib.sha256(golden_bytes(ZOO)).hexdigest())
        self.assertEqual(golden_bytes(mine), golden_bytes(ZOO))  # the given file is left as it was
        self.assertEqual(files[1]["bytes"], os.path.getsize(NESTED))
        self.assertIn("2025.3.1", files[1]["tool"])
        self.assertEqual(self.tool("runs", "verify").returncode, 0)
        self.assertIn("(runs import", self.tool("runs", "list").stdout)
        self.assertIn("mine.sqlite", self.tool("runs", "show").stdout)
        self.assertIn("no runs", self.tool("runs", "stats").stderr)  # nothing was run

    def test_files_of_one_name_stay_apart(self):
        os.mkdir(self.path("rank1"))
        twin = shutil.copy(ZOO, self.path("rank1/zoo.sqlite"))
        with sqlite3.connect(twin) as database:  # a copy would count once
            database.execute("update TARGET_INFO_SESSION_START_TIME set utcEpochNs = utcEpochNs + 1000")
        database.close()
        self.assertEqual(self.tool("runs", "import", ZOO, twin).returncode, 0)
        self.assertEqual([f["file"] for f in self.file("import.json")["files"]], ["nsys/zoo.sqlite", "nsys/zoo-2.sqlite"])
        decode = cases.aggregate(self.report("latest"))[("", "push_pop", ("decode",))]
        self.assertEqual(decode["occurrences"], 2 * TRUTH["decode"]["occurrences"])

    def test_a_trace_of_another_tool(self):
        done = self.tool("runs", "import", os.path.join(GOLDEN, "kineto", "step.json.gz"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([f["file"] for f in self.file("import.json")["files"]], ["other/step.json.gz"])
        self.assertTrue(self.report("latest")["regions"])

    def test_a_native_capture(self):
        self.assertEqual(self.tool("profile", "-q", "--", VICTIM).returncode, 0)
        native = os.path.join(self.runs()[-1], "native")
        self.assertEqual(self.tool("runs", "import", "--runs", "imported", native).returncode, 0)
        again = self.report("latest", "--root", "imported")
        self.assertEqual(cases.aggregate(again)[("", "push_pop", ("step",))]["occurrences"], 4)

    def test_a_report_of_nsys_comes_with_its_export(self):
        nsys = self.write("nsys", b"#!/bin/sh\nif [ \"$1\" = --version ]; then echo NVIDIA Nsight Systems version 2025.3.1.90; exit; fi\n"
                                  b"for a; do case $a in --output=*) cp '" + os.fsencode(ZOO) + b"' \"${a#--output=}\";; esac; done\n")
        os.chmod(nsys, 0o755)
        rep = self.write("x.nsys-rep", b"NVIDIA Tegra Profiler Report 2024@6@2@225-246")
        done = self.tool("runs", "import", "--nsys", nsys, rep)
        self.assertEqual(done.returncode, 0, done.stderr)
        entry = self.file("import.json")["files"][0]
        self.assertEqual((entry["file"], entry["original"]), ("nsys/x.sqlite", "nsys/x.nsys-rep"))
        os.remove(nsys)  # the run stands by itself
        for name in os.listdir(self.folder):
            if ".rangescope-" in name:
                os.remove(self.path(name))
        self.assertEqual(len(self.report("latest")["regions"]), len(self.report(ZOO)["regions"]))
        self.assertEqual(self.tool("runs", "verify").returncode, 0)

    def test_environments_are_not_kept(self):
        secret = shutil.copy(ZOO, self.path("secret.sqlite"))
        with sqlite3.connect(secret) as db:
            db.execute("create table if not exists META_DATA_CAPTURE(name text, value text)")
            db.execute("insert into META_DATA_CAPTURE values('PROCESS_0:ENVIRONMENT_VARIABLE', 'API_TOKEN=\"hush-hush\"')")
            db.execute("insert into StringIds values(99999, ?)", ("PATH=/bin\0API_TOKEN=hush-hush\0HOME=/\0A=b",))
        self.assertEqual(self.tool("runs", "import", secret).returncode, 0)
        self.assertNotIn(b"hush-hush", golden_bytes(os.path.join(self.runs()[-1], "nsys", "secret.sqlite")))

    def test_what_cannot_be_read_leaves_no_run(self):
        noise = self.write("noise.bin", b"\x00\x01\x02 noise")
        for words, code in (([ZOO, noise], 65), (["/nowhere/x.sqlite"], 66), ([ZOO, ZOO], 64)):
            done = self.tool("runs", "import", *words)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(self.runs(), [])


class FilesWithoutAnything(Files):
    def test_the_hint_is_of_the_tool_that_wrote_it(self):
        for tables, words in ((("StringIds(id integer, value text)", "CUPTI_ACTIVITY_KIND_RUNTIME(start int, end int, globalTid int, correlationId int, nameId int)"),
                               "--trace=cuda,nvtx"),):
            path = self.path("empty.sqlite")
            with sqlite3.connect(path) as db:
                for table in tables:
                    db.execute(f"create table {table}")
            done = self.tool("report", path)
            self.assertEqual(done.returncode, 80, done.stderr)
            self.assertIn("holds no range, kernel or result", done.stderr)
            self.assertIn(words, done.stderr)
            os.remove(path)

    def test_nsys_own_reason_comes_before_what_it_always_says(self):
        path = self.path("empty.sqlite")
        with sqlite3.connect(path) as db:
            db.execute("create table StringIds(id integer, value text)")
            db.execute("create table CUPTI_ACTIVITY_KIND_RUNTIME(start int, end int, globalTid int, correlationId int, nameId int)")
            db.execute("create table DIAGNOSTIC_EVENT(severity int, text text)")
            db.executemany("insert into DIAGNOSTIC_EVENT values(2, ?)", [
                ("Not all NVTX events might have been collected.",), ("No NVTX events collected. Does the process use NVTX?",),
                ("Not all CUDA events might have been collected.",), ("No CUDA events collected. Does the process use CUDA?",)])
        done = self.tool("report", path)
        self.assertEqual(done.returncode, 80, done.stderr)
        self.assertIn("hint: Nsight Systems said: No CUDA events collected. Does the process use CUDA?", done.stderr)


    def test_cpu_samples_alone_and_cuda_calls_alone_are_reports(self):
        calls = ("CUPTI_ACTIVITY_KIND_RUNTIME(start int, end int, globalTid int, correlationId int, nameId int)",
                 [(1000, 3000, 0x1000064000065, 1, 1), (4000, 4500, 0x1000064000065, 2, 2)])
        sampled = ("COMPOSITE_EVENTS(id int, start int, globalTid int)", [(i, 1000000 * i, 0x1000064000065) for i in range(1, 9)])
        chains = ("SAMPLING_CALLCHAINS(id int, symbol int, module int, stackDepth int)", [(i, 3, 4, 0) for i in range(1, 9)])
        for tables, words in (([calls], ("cudaLaunchKernel", "cudaMalloc")), ([sampled, chains], ("spin",))):
            path = self.path("alone.sqlite")
            with sqlite3.connect(path) as db:
                db.execute("create table StringIds(id integer, value text)")
                db.executemany("insert into StringIds values(?, ?)", [(1, "cudaLaunchKernel_v7000"), (2, "cudaMalloc_v3020"), (3, "spin"), (4, "/bin/app")])
                for table, rows in tables:
                    db.execute("create table " + table)
                    db.executemany(f"insert into {table.split('(')[0]} values({', '.join('?' * len(rows[0]))})", rows)
            done = self.tool("report", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            for word in words:
                self.assertIn(word, done.stdout)
            os.remove(path)


class RunsOfSeveralTools(Files):
    """A run directory as the pipeline leaves it: all of its captures are one report."""

    def setUp(self):
        super().setUp()
        self.assertEqual(self.tool("profile", "-q", "--", VICTIM).returncode, 0)
        self.run_dir = self.runs()[-1]
        for tool, source in (("nsys", ZOO), ("ncu", NESTED)):
            os.mkdir(os.path.join(self.run_dir, tool))
            shutil.copy(source, os.path.join(self.run_dir, tool))

    def test_gpu_work_of_nsys_and_results_of_ncu(self):
        report = self.report("latest")
        regions = cases.aggregate(report)
        self.assertEqual(regions[("", "push_pop", ("decode",))]["gpu"]["kernels"], TRUTH["decode"]["kernels"])
        self.assertIn("dram__bytes.sum", regions[("", "push_pop", ("prefill", "layer1"))]["metrics"])
        # Times are of one run of the program, not of two added up.
        self.assertNotIn(("", "push_pop", ("step",)), regions)
        self.assertTrue(any("native" in note and "nsys/zoo.sqlite" in note for note in report["notes"]), report["notes"])
        step = cases.aggregate(self.report(os.path.join(self.run_dir, "native")))
        self.assertIn(("", "push_pop", ("step",)), step)

    def test_a_damaged_capture_is_a_loss(self):
        with open(os.path.join(self.run_dir, "ncu", "k_nested.ncu-repz"), "r+b") as file:
            file.truncate(100)
        report = self.report("latest")
        self.assertIn("unreadable_capture", [loss["kind"] for loss in report["losses"]])
        self.assertEqual(self.tool("report", "latest", "--strict").returncode, 83)


class Names(Files):
    """Names that carry a number for each instance: --fold-names and report.fold_names."""

    def torch(self):
        """The recording as emit_nvtx would have named its ranges."""
        named = shutil.copy(ZOO, self.path("torch.sqlite"))
        os.chmod(named, 0o644)
        with sqlite3.connect(named) as db:
            db.execute("update NVTX_EVENTS set text = text || ', seq = 7, op_id = ' || rowid || ', sizes = [[4, 8], []], "
                       "input_op_ids = [(3,0), (0,-1)]' where text is not null and eventType = 59")
        return named

    def test_traces_of_several_ranks_join_their_collectives(self):
        def comms(rank, at, name, elements, kernel_us, correlation):
            common = {"ph": "X", "pid": 100 + rank, "tid": 7}
            return [dict(common, cat="cpu_op", name="record_param_comms", ts=at + .5, dur=40, args={
                        "Collective name": name, "In msg nelems": elements, "Out msg nelems": elements, "dtype": "Float",
                        "Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}),
                    dict(common, cat="cuda_runtime", name="cudaLaunchKernelExC", ts=at + 10, dur=5, args={"correlation": correlation}),
                    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "pid": 0, "tid": 40, "ts": at + 20,
                     "dur": kernel_us, "args": {"device": 0, "context": 1, "stream": 40, "correlation": correlation}}]
        for rank, kernel_us in ((0, 300), (1, 100)):
            events = [{"ph": "X", "cat": "user_annotation", "name": "step", "pid": 100 + rank, "tid": 7, "ts": 900, "dur": 2000}]
            self.write(f"rank{rank}.json", json.dumps({
                "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}, "baseTimeNanoseconds": 1790857026000000000,
                "traceEvents": events + comms(rank, 1000 + rank, "allreduce", 1024, kernel_us, 5)}).encode())
        report = self.report("rank0.json", "rank1.json")
        self.assertEqual([process["rank"] for process in report["processes"]], [0, 1])
        [step] = [r for r in report["regions"] if r["path"] == ["step"] and r["process_index"] is None and r["thread"] is None]
        self.assertEqual((step["occurrences"], step["gpu"]["kernel_ns"]), (2, 400_000))
        [call] = report["collectives"]
        self.assertEqual((call["operation"], call["bytes"], call["ranks"], call["calls"]), ("AllReduce", 4096, 2, 1))
        # The last to come waits for nobody: its 100 us are the transfer, what rank 0 took longer is waiting.
        self.assertEqual((call["transfer_ns"], call["wait_ns"]), (100_000, 200_000))
        self.assertEqual(call["path"], ["step", "record_param_comms"])
        files = ("rank0.json", "rank1.json")
        self.assertEqual([process["rank"] for process in self.report(*files, "--rank", "1")["processes"]], [1])
        self.assertEqual(self.tool("report", *files, "--rank", "7").returncode, 80)
        self.assertEqual(self.tool("report", ZOO, "--rank", "0").returncode, 64)  # which does not say

    def test_operators_of_pytorch_are_regions_of_their_names(self):
        named = self.torch()
        plain, folded = self.report(ZOO, NESTED), self.report(named, NESTED)  # results of ncu are joined by folded paths
        self.assertEqual(folded["regions"], plain["regions"])
        self.assertEqual(folded["losses"], plain["losses"])
        self.assertEqual([n for n in plain["notes"] if "folded" in n], [])
        notes = [n for n in folded["notes"] if "folded" in n]
        self.assertEqual(len(notes), 1, folded["notes"])
        self.assertRegex(notes[0], r"torch.sqlite: \d+ range names were folded to \d+ .*--fold-names off keeps them")
        # Results whose ranges have numbers of another run.
        rows = "".join(f'"{i}","7","a","h","7 ""<default domain>:prefill, op_id = {9 - i}:none:none:none:none:none:none"" '
                       f'""<default domain>:layer1, seq = {i}, op_id = {50 + i}:none:none:none:none:none:none"" ",'
                       f'"gemm_like(const float *, const float *, float *, int)","1","7","s","dram__bytes.sum","byte","{i}00"\n'
                       for i in (1, 2))
        results = self.write("torch.csv", (
            '"ID","Process ID","Process Name","Host Name","thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",'
            '"Kernel Name","Context","Stream","Section Name","Metric Name","Metric Unit","Metric Value"\n' + rows).encode())
        joined = self.report(named, results)
        self.assertEqual([loss["kind"] for loss in joined["losses"]], [loss["kind"] for loss in self.report(ZOO)["losses"]])
        layer = cases.aggregate(joined)[("", "push_pop", ("prefill", "layer1"))]
        self.assertEqual(layer["occurrences"], 2)
        self.assertEqual([k["metrics"]["dram__bytes.sum"]["max"] for k in layer["kernels"]], [200])
        off = self.report(named, "--fold-names", "off")
        self.assertGreater(len(off["regions"]), len(plain["regions"]))
        self.assertFalse(any("folded" in n for n in off["notes"]))
        compared = json.loads(self.tool("compare", ZOO, named, "-f", "json").stdout)
        self.assertEqual(compared["missing"], [])
        self.assertEqual(len(cases.compared_ranges(compared)), len(self.report(ZOO)["regions"]))

    def test_what_a_run_was_told_its_reports_do(self):
        def paths(*words):
            return {tuple(r["path"]): r["occurrences"] for r in self.report("latest", *words)["regions"]}

        numbered = ("--", VICTIM, "numbered", "25")
        self.assertEqual(self.tool("profile", "-q", *numbered).returncode, 0)
        self.assertEqual(paths()[("iter 7",)], 1)
        self.assertRegex(self.tool("report", "latest").stdout, r"(?m)^iter # x25 ")  # one row, and 25 regions
        self.assertEqual(paths("--fold-names", "numbers")[("iter #",)], 25)
        self.assertEqual(paths("--fold-names", "numbers", "--exclude", "iter 0")[("iter #",)], 24)

        self.assertEqual(self.tool("profile", "-q", "report.fold_names=numbers", *numbered).returncode, 0)
        with open(os.path.join(self.runs()[-1], "report.json"), encoding="utf-8") as file:
            self.assertIn(["iter #"], [r["path"] for r in json.load(file)["regions"]])
        self.assertEqual(paths()[("iter #",)], 25)
        self.assertEqual(paths("--fold-names", "auto")[("iter 7",)], 1)
        self.assertEqual(self.tool("profile", "-q", "--fold-names", "off", *numbered).returncode, 0)
        self.assertEqual([n for n in self.report("latest")["notes"] if "--fold-names" in n], [])  # asked for: no hint
        self.assertEqual(self.tool("report", "latest", "--fold-names", "some").returncode, 64)


class Ask(Files):
    def test_query_agrees_with_the_truth(self):
        done = self.tool("query", NODES, "select path, occurrences, gpu_kernels from regions where pid is null and domain = '' "
                                       "and kind = 'push/pop' order by 1", "-f", "csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {r["path"]: (int(r["occurrences"]), int(r["gpu_kernels"])) for r in csv.DictReader(io.StringIO(done.stdout))}
        for path, truth in TRUTH.items():
            if path != "(none)":
                self.assertEqual(rows[path], (truth["occurrences"], truth["kernels"]), path)
        count = self.tool("query", ZOO, "select count(*) as n from kernels", "-f", "jsonl")
        self.assertEqual(json.loads(count.stdout), {"n": 51})
        self.assertRegex(self.tool("query", ZOO, "select 1 as one").stdout, r"one\s+1")

    def test_query_ends_in_time(self):
        for sql in ("with recursive t(n) as (select 1 union all select n + 1 from t) select count(*) from t",
                    "with recursive t(n) as (select 1 union all select n + 1 from t) select n from t where n < 0",
                    "select replace(hex(zeroblob(5000000)), '0', 'a') like '%' || replace(hex(zeroblob(12000)), '0', 'a') || 'b%'"):
            done = subprocess.run([TOOL, "query", ZOO, sql, "--timeout", "300ms"], capture_output=True, text=True, timeout=600)
            self.assertEqual(done.returncode, 65, done.stderr)
            self.assertIn("longer than it may", done.stderr)

    def test_query_says_what_is_wrong(self):
        for sql in ("selct 1", "select nothing from regions", "", "select 1; select 2", "delete from regions"):
            done = self.tool("query", ZOO, sql)
            self.assertEqual(done.returncode, 64, (sql, done.stdout, done.stderr))
            self.assertIn("hint", done.stderr)
        before = golden_bytes(ZOO)
        self.tool("query", ZOO, "delete from regions")
        self.assertEqual(golden_bytes(ZOO), before)

    def test_export_writes_the_same_three_times(self):
        out = self.path("out.sqlite")
        self.assertEqual(self.tool("export", ZOO, NESTED, "--to", "sqlite", "-o", out).returncode, 0)
        with sqlite3.connect(out) as db:
            tables = [r[0] for r in db.execute("select name from sqlite_master where type = 'table'")]
            for table in tables:
                names = [r[1] for r in db.execute(f"pragma table_info({table})")]
                rows = db.execute(f"select * from {table}").fetchall()
                done = self.tool("export", ZOO, NESTED, "--to", "csv", "--table", table)
                self.assertEqual(done.returncode, 0, (table, done.stderr))
                text = list(csv.reader(io.StringIO(done.stdout, newline="")))
                self.assertEqual((text[0], len(text) - 1), (names, len(rows)), table)
                for row, cells in zip(rows, text[1:]):
                    for value, cell in zip(row, cells):
                        if isinstance(value, int):
                            self.assertEqual(int(cell), value)
                        elif isinstance(value, float):
                            self.assertAlmostEqual(float(cell), value, delta=abs(value) * 1e-12)
                lines = self.tool("export", ZOO, NESTED, "--to", "jsonl", "--table", table, "-o", self.path("out.jsonl"))
                self.assertEqual((lines.returncode, lines.stdout), (0, ""), lines.stderr)
                with open(self.path("out.jsonl"), encoding="utf-8") as file:
                    objects = [json.loads(line) for line in file]
                self.assertEqual([list(o.values()) for o in objects], [list(row) for row in rows], table)
        self.assertGreaterEqual(len(tables), 9)

    def test_the_ending_of_an_exported_file_says_the_format(self):
        for name, form in (("a.sqlite", "sqlite"), ("a.db", "sqlite"), ("a.csv", "csv"), ("a.jsonl", "jsonl")):
            for file, options in ((self.path(name), []), (self.path("named"), ["-f", form])):
                done = self.tool("export", ZOO, *options, "-o", file)
                self.assertEqual((done.returncode, done.stdout), (0, ""), (name, done.stderr))
            self.assertEqual(golden_bytes(self.path(name)), golden_bytes(self.path("named")), name)
            os.unlink(self.path("named"))
        for options, hint in (([], "-o run.sqlite"), (["-o", self.path("a.xyz")], ".sqlite"), (["-o", self.path("folder")], "-f csv"),
                              (["-o", self.path("a.parquet"), "-f", "xml"], "one of sqlite")):
            done = self.tool("export", ZOO, *options)
            self.assertEqual(done.returncode, 64, (options, done.stderr))
            self.assertRegex(done.stderr, r"hint: [^\n]*" + re.escape(hint), options)

    def test_export_refuses_what_would_lose_data(self):
        mine = shutil.copy(ZOO, self.path("mine.sqlite"))
        self.assertEqual(self.tool("export", mine, "--to", "sqlite", "-o", mine).returncode, 64)
        self.assertEqual(golden_bytes(mine), golden_bytes(ZOO))
        self.assertEqual(self.tool("export", mine, "--to", "sqlite").returncode, 64)
        self.assertEqual(self.tool("export", mine, "--to", "csv", "-o", "/dev/full").returncode, 64)  # no plain file
        self.assertEqual(self.tool("export", mine, "--to", "xml").returncode, 64)


class TraceTables(Files):
    STATS = os.path.join(GOLDEN, "nsys", "stats", "2023.4.4")

    def test_regions_are_those_of_the_sqlite_export(self):
        tables = [os.path.join(self.STATS, name) for name in sorted(os.listdir(self.STATS)) if name.startswith("zoo_")]
        self.assertEqual(len(tables), 5)
        whole, read = self.report(ZOO), self.report(*tables)
        self.assertTrue(any(loss["kind"] == "graph_work_missing" for loss in read["losses"]), read["losses"])

        def regions(report):
            of = {(r["domain"], *r["path"]): r for r in report["regions"]}
            for region in of.values():
                for key in ("id", "parent", "samples"):
                    region.pop(key, None)
                region["wall_ns"].pop("share", None)  # of a recording whose length no table has
            of.pop(("", "graph_replay"))  # recorded as whole graphs, which no table has
            of["", "copies"]["gpu"].pop("copy_bytes"), of["", "copies"]["gpu"].pop("copies_by_kind", None)  # printed in MB
            return of

        self.assertEqual(regions(read), regions(whole))

    def gpu_of_decode(self, *inputs):
        return cases.aggregate(self.report(*inputs))["", "push_pop", ("decode",)]["gpu"]

    def test_what_no_table_has_is_absent(self):
        ranges, launches = (os.path.join(self.STATS, "zoo_" + name) for name in ("nvtx_pushpop_trace.csv", "cuda_kern_exec_trace.csv"))
        gpu = self.gpu_of_decode(ranges, launches)
        self.assertEqual((gpu["kernels"], gpu["busy_ns"], gpu["copies"], gpu["syncs"]), (24, None, None, None))
        whole = self.gpu_of_decode(ZOO)
        self.assertEqual(gpu["kernel_ns"], whole["kernel_ns"])
        spans = self.gpu_of_decode(ranges, os.path.join(self.STATS, "zoo_nvtx_gpu_proj_trace.csv"))
        self.assertEqual((spans["span_ns"], spans["kernels"]), (whole["span_ns"], None))

    def test_tables_beside_what_they_were_made_of_count_once(self):
        mine = shutil.copy(ZOO, self.path("zoo.sqlite"))
        tables = [shutil.copy(os.path.join(self.STATS, "zoo_" + name), self.folder)
                  for name in ("nvtx_pushpop_trace.csv", "cuda_kern_exec_trace.csv")]
        both = self.report(*tables, mine)
        self.assertEqual(both["regions"], self.report(mine)["regions"])
        self.assertEqual(sum("zoo.sqlite, which is already read" in note for note in both["notes"]), 1, both["notes"])

    def test_an_import_of_tables_is_one_session(self):
        ranges, launches = (os.path.join(self.STATS, "mp_" + name) for name in ("nvtx_pushpop_trace.csv", "cuda_kern_exec_trace.csv"))
        done = self.tool("runs", "import", ranges, launches)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.report("latest")["regions"], self.report(ranges, launches)["regions"])


class SplitRegions(Files):
    def test_a_folder_for_each_region(self):
        done = self.tool("report", DECODE, "--split-regions", "out", "-f", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        regions = cases.aggregate(json.loads(done.stdout))
        seen = {}
        for name in [e.name for e in os.scandir(self.path("out")) if e.is_dir()]:
            folder = os.path.join(self.folder, "out", name)
            self.assertEqual(sorted(os.listdir(folder)), ["metrics.csv", "report.json", "sections.txt"])
            with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
                top = json.load(file)["regions"][0]
            with open(os.path.join(folder, "metrics.csv"), newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            with open(os.path.join(folder, "sections.txt"), encoding="utf-8") as file:
                text = file.read()
            seen[(top["domain"], top["kind"], tuple(top["path"]))] = (top, rows, text)
        self.assertEqual(set(seen), set(regions))
        for key, (top, rows, text) in seen.items():
            for name, metric in regions[key]["metrics"].items():
                self.assertEqual(top["metrics"][name], metric, (key, name))
        _, rows, text = seen[("", "push_pop", ("decode", "layer0"))]
        self.assertEqual(len({r["result"] for r in rows if r["result"]}), 12)  # kernels of decode > layer0 in zoo_truth.json
        self.assertEqual(len(re.findall(r"(?m)^  gpu__time_duration\.sum +\d+ ns$", text)), 12)
        times = [float(r["value"]) for r in rows if r["metric"] == "gpu__time_duration.sum" and r["result"]]
        page = subprocess.run(["zstdcat", DECODE.replace(".ncu-repz", "_raw_base.csv.zst")], check=True, capture_output=True, text=True).stdout  # as ncu printed it
        head, _, *body = csv.reader(io.StringIO(page))
        stack = next(i for i, name in enumerate(head) if "Push/Pop_Range" in name)
        in_layer = [row for row in body if ":decode:" in row[stack] and ":layer0:" in row[stack]]
        self.assertEqual(times, [float(row[head.index("gpu__time_duration.sum")].replace(",", "")) for row in in_layer])

    def test_names_that_a_file_cannot_have_do_not_collide(self):
        done = self.tool("report", ZOO, "--split-regions", "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = self.report(ZOO)
        names = [e.name for e in os.scandir(self.path("out")) if e.is_dir()]
        self.assertEqual(len(names), len(report["regions"]))
        with open(os.path.join(self.folder, "out", "report.json"), encoding="utf-8") as file:
            listed = {tuple(r["path"]): r for r in json.load(file)["regions"] if r["path"]}
        self.assertEqual(sorted(r["folder"] for r in listed.values()), sorted(set(names) & {r["folder"] for r in listed.values()}))
        self.assertEqual(listed[("A", "A::A1")]["alias"], "A__A1")
        self.assertTrue(all(name.isascii() and "/" not in name for name in names), names)
        paths = []
        for name in names:
            with open(os.path.join(self.folder, "out", name, "report.json"), encoding="utf-8") as file:
                paths.append(json.load(file)["regions"][0]["path"])
        self.assertIn(["a/b [x], y@z"], paths)
        self.assertIn(["\u5c64"], paths)

    def test_a_folder_that_cannot_be_made(self):
        done = self.tool("report", ZOO, "--split-regions", "/proc/nowhere")
        self.assertEqual(done.returncode, 74, done.stderr)


def sqlite_of(statements, path):
    with sqlite3.connect(path) as db:
        for statement in statements:
            db.execute(statement)


class Hostile(Files):
    def refused(self, path, code, *says):
        done = self.tool("report", path)
        self.assertEqual(done.returncode, code, (path, done.returncode, done.stdout[:300], done.stderr))
        self.assertIn(os.path.basename(path), done.stderr)
        self.assertIn("hint:", done.stderr)
        self.assertLess(len(done.stderr), 1500)
        for text in says:
            self.assertIn(text, done.stderr)

    def test_files_that_are_something_else(self):
        zoo = golden_bytes(ZOO)
        utf16 = "\"ID\",\"Process ID\",\"Process Name\"\n".encode("utf-16")
        for name, data, says in (("empty.sqlite", b"", "empty"), ("one.ncu-rep", b"N", "no reader"),
                                 ("x.sqlite.gz", b"\x1f\x8b\x08\0\0\0\0\0", "gunzip"), ("k.ncu-rep.xz", b"\xfd7zXZ\0\0\4", "unxz"),
                                 ("powershell.csv", utf16, "iconv"), ("report.json", b'{"schema": "rangescope.report/1"}', "JSON"),
                                 ("page.html", b"<!doctype html>", "HTML"), ("mesh.nvr", b"NVR\0" + b"\xff" * 60, "Nsight Compute"),
                                 ("source.csv", b'"Kernel Name","gemm"\n"#","Address","Source"\n', "source page"),
                                 ("details.txt", b"==PROF== Connected\n[4700] zoo@127.0.0.1\n  gemm(int) (1, 1, 1)x(1, 1, 1)\n", "--csv"),
                                 ("stats.txt", b" Start (ns)   Duration (ns)   CorrId  \n ----------  --------\n", "--format csv"),
                                 ("averages.txt", b"   Name    Self CPU %      Self CPU    # of Calls  \n", "export_chrome_trace"),
                                 ("x.h5", b"\x89HDF\r\n\x1a\n", "--type sqlite"), ("t.parquet", b"PAR1\x15\4", "--type sqlite"),
                                 ("x.json", b'{"data":["a"]}', "--type sqlite"), ("x.txt", b'data: "mm"\n', "--type sqlite"),
                                 ("x.arrow", b"\xff\xff\xff\xff\xc0\1\0\0(ns)\0", "--type sqlite"),
                                 ("list.json", b'[\n  {\n    "Start (ns)": 1', "--format csv"), ("bare.csv", b"Processing [x] with [y]...\n1,2,3\n", "--format csv"),
                                 ("vulkan.csv", b"Start (ns),Duration (ns),Name,Event Class\n1,2,a,b\n", "nvtx_pushpop_trace"),
                                 ("failed.csv", b"==ERROR== Failed to load report file 'x'.\nmore\n", "Failed to load report file 'x'.\n"),
                                 ("program.py", b"import torch\n", "no reader"), ("zeros", bytes(5000), "no reader"),
                                 ("cut.sqlite", zoo[:15], "no reader")):
            self.refused(self.write(name, data), 65, says)

    def test_things_that_are_no_files(self):
        os.mkdir(self.path("folder"))
        self.refused(self.path("folder"), 65)
        os.mkfifo(self.path("pipe"))
        self.refused(self.path("pipe"), 66)
        os.symlink(self.path("loop"), self.path("loop"))
        self.refused(self.path("loop"), 66)
        self.refused(self.path("nowhere.sqlite"), 66)
        self.refused("/dev/zero", 66)

    def give_the_kernel_log_a_line(self):
        """/proc/kmsg gives what it has once: whoever reads it a second time waits."""
        with contextlib.suppress(OSError), open("/dev/kmsg", "w", encoding="utf-8") as log:
            log.write("rangescope: a line for tests/cli/inputs.py\n")

    def test_nothing_waits_for_what_never_ends(self):
        """Whatever reads a file or walks a folder refuses a link to a pipe, or to what looks like a file and is none."""
        os.mkfifo(self.path("pipe"))
        self.assertEqual(self.tool("profile", "-q", "run.dir=" + self.path("run"), "--", VICTIM).returncode, 0)
        for target in [self.path("pipe")] + ["/proc/kmsg"] * (os.geteuid() == 0):
            for name in ("one", "one.nsys-rep", "one.csv"):
                os.symlink(target, self.path(name))
                for words in (["report"], ["runs", "import"], ["query"], ["export", "--to", "csv"], ["compare", ZOO], ["gate", ZOO, "--baseline"],
                              ["report", ZOO, "--flops"]):
                    file = "auto=" * (words[-1] == "--flops") + self.path(name)
                    if target == "/proc/kmsg":
                        self.give_the_kernel_log_a_line()
                    done = self.tool(*words, file, *(["select 1"] if words[0] == "query" else []))
                    self.assertIn(done.returncode, (65, 66, 77), (words, target, done.stderr))
                    self.assertIn(self.path(name), done.stderr, (words, target))
                os.remove(self.path(name))
            for name in ("config.yaml", "manifest.json", "import.json", "native/9.0.rstrace", "native/9.gpu", "nsys/x.sqlite"):
                copy = self.path("copy")
                shutil.copytree(self.path("run"), copy)
                file = os.path.join(copy, name)
                os.makedirs(os.path.dirname(file), exist_ok=True)
                if os.path.exists(file):
                    os.remove(file)
                os.symlink(target, file)
                for words in (["report", copy], ["compare", self.path("run"), copy], ["runs", "import", os.path.join(copy, "native")]):
                    self.assertNotEqual(self.tool(*words).returncode, 70, (words, name, target))
                shutil.rmtree(copy)

    def test_databases_that_are_not_of_nsys(self):
        sqlite_of(["create table songs(name)", "insert into songs values('x')"], self.path("songs.db"))
        self.refused(self.path("songs.db"), 65, "tables of nsys")
        sqlite_of(["create table NVTX_EVENTS(a)"], self.path("wrong.db"))
        self.refused(self.path("wrong.db"), 65, "NVTX_EVENTS")
        sqlite_of(["create view NVTX_EVENTS as select 1 as start"], self.path("view.db"))
        self.assertIn(self.tool("report", self.path("view.db")).returncode, (65, 80))
        sqlite_of(["create table t(a)", "drop table t"], self.path("none.db"))
        self.refused(self.path("none.db"), 65)

    def test_databases_that_are_damaged(self):
        zoo = golden_bytes(ZOO)
        self.refused(self.write("magic.sqlite", b"SQLite format 3\0" + os.urandom(4000)), 65)
        for size in (100, 101, 512, 1024, 4096, 4097, len(zoo) // 3, len(zoo) - 1):
            done = self.tool("report", self.write("cut.sqlite", zoo[:size]))
            self.assertIn(done.returncode, (0, 65), (size, done.stderr))
            if done.returncode:
                self.assertIn("cut.sqlite", done.stderr)
        for page_size in (0, 3, 511, 65535):
            changed = zoo[:16] + struct.pack(">H", page_size) + zoo[18:]
            self.refused(self.write("pages.sqlite", changed), 65)
        large = zoo[:28] + struct.pack(">I", 0xffffffff) + zoo[32:]  # more pages than there are
        done = self.tool("report", self.write("large.sqlite", large))
        self.assertIn(done.returncode, (0, 65), done.stderr)

    def test_reports_of_ncu_that_lie(self):
        zstd = b"\x28\xb5\x2f\xfd"
        self.refused(self.write("garbage.ncu-repz", zstd + os.urandom(300)), 65, "zstd")
        self.refused(self.write("claims.ncu-repz", zstd + b"\xe0" + struct.pack("<Q", 1 << 60) + b"\x01\x00\x00"), 65)
        header = b"\x08\x07"
        whole = b"NVR\0" + struct.pack("<I", len(header)) + header
        for name, data in (("nothing", whole), ("huge_block", whole + struct.pack("<I", 0xffffffff)),
                           ("huge_payload", whole + struct.pack("<I", 11) + b"\x10\x01\x28" + b"\xff" * 7 + b"\x01"),
                           ("many_results", whole + struct.pack("<I", 8) + b"\x10\xff\xff\xff\xff\x0f\x28\x00"),
                           ("huge_header", b"NVR\0" + struct.pack("<I", 0xfffffff0) + header)):
            done = self.tool("report", self.write(name + ".ncu-rep", data))
            self.assertIn(done.returncode, (65, 80), (name, done.stderr))
            self.assertIn(name, done.stderr)
        packed = golden_bytes(NESTED)
        for size in (5, 100, len(packed) // 2, len(packed) - 1):
            done = self.tool("report", self.write("cut.ncu-repz", packed[:size]))
            self.assertIn(done.returncode, (0, 65), (size, done.stderr))

    def test_tables_that_hold_nothing_or_too_much(self):
        head = b'"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Section Name","Metric Name","Metric Unit","Metric Value"\n'
        self.refused(self.write("empty.csv", head), 80, "no results")
        self.refused(self.write("torn.csv", head + b'"0","1","a'), 80)
        row = b'"0","7","a","h","k","1","7","s","dram__bytes.sum","byte","%s"\n'
        self.refused(self.write("ambiguous.csv", head + row % b"1,234"), 65, "--number-format")
        long = head + row % (b"9" * 5_000_000)
        self.assertIn(self.tool("report", self.write("long.csv", long)).returncode, (0, 65, 80))
        self.assertIn(self.tool("report", self.write("quotes.csv", head + b'"' * 2_000_001)).returncode, (65, 80))
        nsys = b"Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
        self.assertIn(self.tool("report", self.write("header.csv", nsys)).returncode, (65, 80))

    def test_content_decides_and_not_the_name(self):
        for source, name in ((ZOO, "trace.ncu-rep"), (NESTED, "report.csv"), (ZOO, "no-name")):
            self.report(shutil.copy(source, self.path(name)))


class NamedByAnOption(Files):
    """A file that an option names: missing, or there and unreadable (also by root)."""

    def test_missing(self):
        for words, code in ((("profile", "--phases", "none", "--", "true"), 64), (("config", "--config", "none"), 66)):
            done = self.tool(*words)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn("there is no file", done.stderr)

    def test_unreadable(self):
        os.symlink("loop", self.path("loop"))
        for words, code, why in ((("profile", "--phases", ".", "--", "true"), 64, "Is a directory"),
                                 (("config", "--config", "loop"), 66, "Too many levels of symbolic links")):
            done = self.tool(*words)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(why, done.stderr)
            self.assertNotIn("no file", done.stderr)


class OtherProfilers(Files):
    """What else people have: each file through the command, with the numbers that its own tool gives."""

    def test_the_profiler_before_kineto(self):
        trace = os.path.join(GOLDEN, "kineto", "legacy.json")  # PyTorch 1.13, use_kineto=False
        with open(os.path.join(GOLDEN, "kineto", "legacy_averages.json"), encoding="utf-8") as file:
            rows = json.load(file)
        found = {row["name"]: (row["calls"], row["cpu_ns"] / 1e3, row["exclusive_cpu_ns"] / 1e3) for row in self.report(trace)["operators"]}
        self.assertEqual(set(found), {name for name, *_ in rows})
        for name, calls, cpu, own in rows:
            self.assertEqual(found[name][:2], (calls, cpu), name)
            self.assertAlmostEqual(found[name][2], own, delta=2, msg=name)  # whole microseconds: what has no length lies inside or beside

    def test_each_has_its_kernels(self):
        corpus = os.path.join(GOLDEN, "..", "fuzz", "corpus", "others")
        for path, region, kernel, total in (
                ("nested.hatchet", "layer", "matmul_kernel", 12_000), ("results.json", "step", "vector_add(float*, int)", 400_000),
                ("results.stats.csv", None, "void gemm<float, 4>(float const*, float*)", 423_139_695),
                ("rocpd.db", "step", "vector_add(float*, int)", 400_000), ("rpd.db", "step", "vector_add(float*, int)", 400_000),
                ("rocprof.db", "step", "vector_add(float*, int)", 400_000), ("step.xplane.pb", "train.py:12 step", "loop_fusion", 5_000)):
            found = self.report(os.path.join(corpus, path))
            self.assertEqual({row["name"]: row["total_ns"] for row in found["kernels"]}[kernel], total, path)
            names = [each["path"][-1] for each in found["regions"]]
            self.assertEqual(region in names, region is not None, (path, names))
            if region:
                work = next(each for each in found["regions"] if each["path"][-1] == region)["gpu"]
                self.assertGreater(work["kernel_ns"], 0, path)


if __name__ == "__main__":
    cases.main()
