"""Snapshots and traces of tests/golden/memory: what the report says of memory is what the allocator itself counted.

Usage: recorded.py BIN_DIR SOURCE_DIR
"""
import csv
import io
import json
import lzma
import os
import pickle
import shutil
import sqlite3
import sys
import tempfile
import unittest

BIN, SOURCE = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.join(SOURCE, "tests", "tools"))
import cases  # noqa: E402
import json_schema  # noqa: E402

GOLDEN = os.path.join(SOURCE, "tests", "golden", "memory")
TOOL = os.path.join(BIN, "rangescope")
MODELS = ("gpt2", "llama", "resnet", "generate", "oom")
TRAINED = ("gpt2", "llama", "resnet")
GiB = 1 << 30


def truth(model, kind):
    return json.loads(cases.contents(os.path.join(GOLDEN, "truth.json")))[model][kind]


class Recorded(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="rangescope-memory-"))

    def snapshot(self, model):
        plain = os.path.join(GOLDEN, model + ".pickle")
        if os.path.exists(plain):
            return plain
        path = os.path.join(self.folder, model + ".pickle")
        with lzma.open(plain + ".xz") as packed, open(path, "wb") as file:
            file.write(packed.read())
        return path

    @staticmethod
    def trace(model):
        return os.path.join(GOLDEN, model + ".trace.json.gz")

    def output(self, path, *options, code=0):
        done = cases.run([TOOL, "report", path, *options], env={**os.environ, "COLUMNS": "160"})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def report(self, path):
        return json.loads(self.output(path, "-f", "json"))

    def memory(self, path):
        found = self.report(path)["memory"]
        self.assertEqual(len(found), 1, "one allocator of one GPU")
        return found[0]

    def uses(self, memory):
        return {part["use"]: part["bytes"] for part in memory["at_peak"]}

    def check_sums(self, memory):
        """Every byte of the peak is in one part, and its curve reaches the peak."""
        self.assertEqual(sum(part["bytes"] for part in memory["parts"]), memory["peak_bytes"])
        self.assertEqual(sum(part["bytes"] for part in memory["at_peak"]), memory["peak_bytes"])
        self.assertEqual(max(point["allocated_bytes"] for point in memory["points"]), memory["peak_bytes"])

    def test_snapshots_to_the_byte(self):
        for model in MODELS:
            with self.subTest(model=model):
                memory, counted = self.memory(self.snapshot(model)), truth(model, "snapshot")
                self.assertEqual(memory["peak_bytes"], counted["max_memory_allocated"])
                self.assertEqual(memory["end_bytes"], counted["memory_allocated"])
                self.assertEqual(memory["peak_reserved_bytes"], counted["max_memory_reserved"])
                self.assertEqual(memory["sizes"], "replayed")
                self.check_sums(memory)

    def test_traces_to_the_byte(self):
        for model in MODELS[:-1]:
            with self.subTest(model=model):
                memory, counted = self.memory(self.trace(model)), truth(model, "trace")
                self.assertEqual(memory["peak_bytes"], counted["max_memory_allocated"])
                self.assertEqual(memory["peak_reserved_bytes"], counted["max_memory_reserved"])
                self.check_sums(memory)

    def test_what_the_peak_of_a_training_step_consists_of(self):
        for model in TRAINED:
            with self.subTest(model=model):
                memory, counted = self.memory(self.snapshot(model)), truth(model, "snapshot")
                uses, parameters = self.uses(memory), counted["params"]
                # Rounded to blocks; buffers of batch norm are in use as long as parameters.
                self.assertAlmostEqual(uses["parameters"], parameters, delta=0.003 * parameters)
                # AdamW keeps two numbers a parameter; unsplit blocks make them a little larger.
                self.assertAlmostEqual(uses["optimizer state"], 2 * parameters, delta=0.1 * parameters)
                self.assertLessEqual(uses.get("gradients", 0), 1.1 * parameters)
                self.assertEqual(uses["cache"] // (1 << 20) // 32, 2, "workspaces of cuBLAS, 32 MiB each")
                self.assertGreaterEqual(memory["owned_share"], 0.95)

    def test_traces_name_whose_it_is(self):
        for model in MODELS[:-1]:
            with self.subTest(model=model):
                memory = self.memory(self.trace(model))
                self.assertGreaterEqual(memory["owned_share"], 0.95)
                uses = self.uses(memory)
                if model in TRAINED:
                    self.assertGreater(uses["activations"], 0.2 * memory["peak_bytes"])
                    owners = {part["owner"] for part in memory["parts"] if part["use"] == "optimizer state"}
                    self.assertEqual(owners, {"Optimizer.step#AdamW.step"})

    def test_out_of_memory(self):
        report = self.report(self.snapshot("oom"))
        failure, line = report["memory"][0]["out_of_memory"], report["verdict"][0]
        self.assertEqual(failure["asked_bytes"], 4 * GiB)
        self.assertEqual(failure["count"], 3)
        self.assertEqual(failure["in_use_bytes"], truth("oom", "snapshot")["max_memory_allocated"])
        self.assertEqual((line["kind"], line["severity"]), ("out_of_memory", "error"))
        self.assertIn("it asked for 4.000 GiB, 76.05 GiB were in use", line["text"])
        self.assertTrue(line["advice"])

    def test_modules_and_what_is_older(self):
        report = self.report(os.path.join(GOLDEN, "blocks.trace.json"))
        memory = report["memory"][0]
        MiB = 1 << 20
        self.assertEqual(memory["peak_bytes"], 600 * MiB)
        parts = {(part["owner"], part["bytes"] // MiB) for part in memory["parts"]}
        self.assertEqual(parts, {("Block_1", 300), ("Block_0", 100), ("before the recording", 200)})
        regions = {region["path"][-1]: region["memory"] for region in report["regions"]}
        self.assertEqual(regions["Block_1"]["peak_bytes"], 600 * MiB)
        self.assertEqual(regions["Block_0"]["allocated_bytes"], 100 * MiB)
        self.assertEqual(regions["Block_0"]["held_bytes"], 100 * MiB)

    def test_every_format_has_it(self):
        path = self.snapshot("gpt2")
        peak = truth("gpt2", "snapshot")["max_memory_allocated"]
        table = self.output(path, "--columns", "memory.peak_bytes,memory.allocated_bytes,memory.held_bytes")
        self.assertIn("peak memory", table)
        self.assertIn("peak 336.1 MiB", table)
        self.assertIn("optimizer state", self.output(path, "-f", "md"))
        rows = list(csv.DictReader(io.StringIO(self.output(path, "-f", "csv"))))
        self.assertTrue(any(float(row["memory.peak_bytes"] or 0) > 0 for row in rows), rows[:1])
        database = os.path.join(self.folder, "view.sqlite")
        done = cases.run([TOOL, "export", path, "--to", "sqlite", "-o", database])
        self.assertEqual(done.returncode, 0, done.stderr)
        with sqlite3.connect(database) as view:
            self.assertEqual(view.execute("select peak_bytes from memory").fetchall(), [(peak,)])
            self.assertEqual(view.execute("select sum(bytes) from memory_parts").fetchone(), (peak,))
            self.assertEqual(view.execute("select max(allocated_bytes) from memory_points").fetchone(), (peak,))
        trace = os.path.join(self.folder, "trace.pftrace")
        self.output(path, "-f", "perfetto", "-o", trace)
        with open(trace, "rb") as file:
            self.assertIn(b"GPU 0 PyTorch allocated", file.read())
        self.assertIn(str(peak), self.output(path, "-f", "html"))

    def test_a_snapshot_counts_once(self):
        path = self.snapshot("gpt2")
        copy = os.path.join(self.folder, "copy.pickle")
        shutil.copy(path, copy)
        alone = self.report(path)
        for second in (path, copy):
            both = cases.run([TOOL, "report", path, second, "-f", "json"])
            self.assertEqual(both.returncode, 0, both.stderr)
            report = json.loads(both.stdout)
            self.assertEqual(report["memory"], alone["memory"])
            self.assertEqual(report["regions"], alone["regions"])
            self.assertEqual(sum("was left out: it is the same recording as" in note for note in report["notes"]), 1)
        other = cases.run([TOOL, "report", path, self.snapshot("resnet"), "-f", "json"])
        self.assertEqual([memory["peak_bytes"] for memory in json.loads(other.stdout)["memory"]],
                         [truth(model, "snapshot")["max_memory_allocated"] for model in ("gpt2", "resnet")])

    def test_an_imported_snapshot_has_no_secret(self):
        """Only the texts with the token change: what Python reads of the copy is the snapshot with other paths."""
        with open(self.snapshot("oom"), "rb") as file:
            snapshot = pickle.load(file)
        token = "ghp_" + "9aZ" * 12
        for event in snapshot["device_traces"][0]:
            event["frames"] = [{"filename": f"/home/{token}/model.py", "line": 31, "name": "forward"}]
        path = os.path.join(self.folder, "secret.pickle")
        with open(path, "wb") as file:
            pickle.dump(snapshot, file)
        done = cases.run([TOOL, "runs", "import", path], cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        copies = []
        for folder, _, names in os.walk(os.path.join(self.folder, "rangescope-runs")):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    copy = file.read()
                self.assertFalse(token.encode() in copy, name)
                copies += [copy] if name == "secret.pickle" else []
        copy, = copies
        kept, = {frame["filename"] for event in pickle.loads(copy)["device_traces"][0] for frame in event["frames"]}
        self.assertRegex(kept, "^/home/<redacted:[0-9a-f]{8}>/model.py$")
        for event in snapshot["device_traces"][0]:
            event["frames"][0]["filename"] = kept
        self.assertEqual(pickle.loads(copy), snapshot)

    def test_memory_taken_from_cuda(self):
        """A recording of the stand-ins' program `allocates`: sums of its events, counted here from the SQL table."""
        path = os.path.join(SOURCE, "tests", "golden", "native-calls", "allocates")
        report = self.report(path)
        with open(os.path.join(SOURCE, "docs", "formats", "report.schema.json"), encoding="utf-8") as file:
            self.assertEqual(json_schema.errors(report, json.load(file)), [])
        database = os.path.join(self.folder, "allocates.sqlite")
        done = cases.run([TOOL, "export", path, "--to", "sqlite", "-o", database])
        self.assertEqual(done.returncode, 0, done.stderr)
        with sqlite3.connect(database) as view:
            events = view.execute("select operation, kind, bytes, at_ns, address, device from memory_events order by id").fetchall()
            calls = view.execute("select sum(end_ns - start_ns) from launches where id in (select launch from memory_events)").fetchone()[0]
        kept = {}
        for operation, kind, size, _, address, _ in events:
            if operation == "allocate":
                kept[address] = kind, size
            elif operation == "free":
                kept.pop(address)
        for memory in report["cuda_memory"]:
            of_kind = [event for event in events if event[1] == memory["kind"]]
            for operation, count in (("allocate", "allocations"), ("free", "frees"), ("failed allocation", "failures")):
                self.assertEqual(memory[count], sum(event[0] == operation for event in of_kind))
            self.assertEqual(memory["allocated_bytes"], sum(event[2] for event in of_kind if event[0] == "allocate"))
            self.assertEqual(memory["kept_bytes"], sum(size for kind, size in kept.values() if kind == memory["kind"]))
            self.assertEqual(memory["device"], of_kind[0][5])
        self.assertEqual({memory["kind"] for memory in report["cuda_memory"]}, {event[1] for event in events})
        self.assertEqual(sum(memory["call_ns"] for memory in report["cuda_memory"]), calls)
        MiB = 1 << 20
        peaks = {memory["kind"]: memory["peak_bytes"] for memory in report["cuda_memory"]}
        self.assertEqual(peaks, {"device": 3 * MiB, "managed": 8192, "pinned": 4096})
        step = next(region["cuda_memory"] for region in report["regions"] if region["path"][-1] == "step")
        self.assertEqual((step["allocations"], step["frees"], step["allocated_bytes"]), (4, 4, 2 * (2 * MiB + 512)))
        self.assertEqual(step["peak_bytes"], 3 * MiB + 8192)
        setup = next(region["cuda_memory"] for region in report["regions"] if region["path"][-1] == "setup")
        self.assertEqual(setup["kept_bytes"], MiB)
        shown = self.output(path, "--columns", "cuda_memory.allocations,cuda_memory.kept_bytes")
        self.assertRegex(shown, r"(?m)^device +GPU 0 +5\.001 MiB +5 +4 +1 +3\.000 MiB +1\.000 MiB in 1 ")
        self.assertRegex(shown, r"(?m)^setup .* 3 +1\.000 MiB$")
        grown = cases.run([TOOL, "gate", "--metric", "cuda_memory.peak_bytes", "-b", path, path])
        self.assertEqual(grown.returncode, 0, grown.stderr)

    def gate(self, baseline, now, *options):
        return cases.run([TOOL, "gate", "--metric", "memory.peak_bytes", "-b", baseline, now, *options], cwd=self.folder)

    def test_compare_shows_the_whole_and_each_range(self):
        before, after = self.snapshot("gpt2"), self.snapshot("llama")
        for options in ((), ("--metric", "memory.peak_bytes")):
            with self.subTest(options=options):
                done = cases.run([TOOL, "compare", before, after, *options, "-f", "json"])
                self.assertEqual(done.returncode, 0, done.stderr)
                compared = {region["path"][-1]: region["values"]["memory.peak_bytes"] for region in json.loads(done.stdout)["regions"]
                            if "outside_ranges" not in region}
                self.assertEqual(compared["whole run"]["values"],
                                 [truth(model, "snapshot")["max_memory_allocated"] for model in ("gpt2", "llama")])
                of_reports = [{region["path"][-1]: region["memory"]["peak_bytes"] for region in self.report(path)["regions"]}
                              for path in (before, after)]
                step = "Optimizer.step#AdamW.step"
                self.assertEqual(compared[step]["values"], [peaks[step] for peaks in of_reports])
                self.assertEqual([compared["whole run"]["changes"][0][key] for key in ("standing", "exact", "p")], ["more", True, None])
        shown = cases.run([TOOL, "compare", before, after], env={**os.environ, "COLUMNS": "160"}).stdout
        self.assertRegex(shown, r"(?m)^whole run +1 +336\.1 MiB +.* more$")
        self.assertEqual(shown.count("\nwhole run"), 2, "among the times and the memory")
        self.assertNotRegex(shown, r"(?m)^outside ranges.* MiB ", "it has no peak of its own")

    def test_gate_in_both_directions(self):
        small, large = self.snapshot("gpt2"), self.snapshot("resnet")
        grown = self.gate(small, large)
        self.assertEqual(grown.returncode, 81, grown.stdout + grown.stderr)
        self.assertRegex(grown.stdout, r"(?m)^regressed +whole run +")
        self.assertEqual(self.gate(large, small).returncode, 0)
        self.assertEqual(self.gate(small, small, "--strict").returncode, 0)
        self.assertEqual(self.gate(small, large, "--max-regression", "1000%").returncode, 0)
        # The same from a saved baseline and from a report.
        saved = cases.run([TOOL, "gate", "--save", "--name", "small", small], cwd=self.folder)
        self.assertEqual(saved.returncode, 0, saved.stderr)
        report = os.path.join(self.folder, "large.json")
        self.output(large, "-f", "json", "-o", report)
        again = self.gate("small", report)
        self.assertEqual((again.returncode, again.stdout.splitlines()[3:]), (81, grown.stdout.splitlines()[3:]))
        # Ranges alone: what an instance needed.
        self.assertEqual(self.gate(small, large, "--region", "Optimizer.step#AdamW.step").returncode, 81)
        other = os.path.join(SOURCE, "tests", "golden", "native-gpu", "zoo")
        refused = self.gate(other, small)
        self.assertEqual(refused.returncode, 82, refused.stdout)
        self.assertIn("no region has 'memory.peak_bytes' on all sides", refused.stderr)

    def test_a_pickle_that_runs_code_is_refused(self):
        class Call:
            def __reduce__(self):
                return (os.system, ("touch " + os.path.join(folder, "was-run"),))

        folder = self.folder
        for protocol in (2, 3, 4, 5):
            with self.subTest(protocol=protocol):
                path = os.path.join(folder, f"hostile{protocol}.pickle")
                with open(path, "wb") as file:
                    pickle.dump({"segments": [Call()], "device_traces": []}, file, protocol)
                message = self.output(path, "-f", "json", code=65)
                self.assertRegex(message, "the opcode (GLOBAL|STACK_GLOBAL), which runs code: refused")
                self.assertRegex(message, "byte [0-9]+")
        self.assertFalse(os.path.exists(os.path.join(folder, "was-run")))

    def test_frames_are_owners(self):
        """The same events with Python stacks, as `stacks="python"` records them: the program's own line is the owner."""
        with open(self.snapshot("oom"), "rb") as file:
            snapshot = pickle.load(file)
        library = {"filename": "/usr/lib/python3/dist-packages/torch/nn/functional.py", "line": 9, "name": "linear"}
        program = {"filename": "/home/user/model.py", "line": 31, "name": "forward"}
        for event in snapshot["device_traces"][0]:
            event["frames"] = [library, program] if event["size"] >= GiB else []
        path = os.path.join(self.folder, "frames.pickle")
        with open(path, "wb") as file:
            pickle.dump(snapshot, file)
        report = self.report(path)
        self.assertEqual(report["memory"][0]["parts"][0]["owner"], "forward (model.py:31)")
        self.assertGreaterEqual(report["memory"][0]["owned_share"], 0.95)
        self.assertEqual(report["verdict"][0]["path"], "forward (model.py:31)")


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    cases.main()
