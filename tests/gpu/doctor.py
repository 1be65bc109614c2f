"""rangescope doctor on real programs: what it says, and whether each command that it prints captures something."""
import glob
import json
import os
import tempfile
import unittest

import gpu

ALL = {"ranges", "counters", "nsys", "nsys gated", "ncu range", "ncu app-range", "ncu kernel"}


def captured(name, folder):
    """What a printed command has left: a sentence, or "" for nothing."""
    if name.startswith("nsys"):
        return ", ".join(os.path.basename(f) for f in glob.glob(folder + "/rangescope-doctor/nsys/nsys*.*") if os.path.getsize(f))
    if name.startswith("ncu"):
        files = glob.glob(folder + f"/rangescope-doctor/ncu/{name[4:]}.ncu-rep*")
        report = gpu.Done(["rangescope", "report", *files[:1], "-f", "json"]) if files else None
        return f"{len(json.loads(report.out)['regions'])} regions" if report and report.code == 0 else ""
    files = sorted(glob.glob(folder + "/rangescope-runs/*/report.json"))
    if not files:
        return ""
    with open(files[-1], encoding="utf-8") as f:
        top = [r for r in json.load(f)["regions"] if r["process"] is None and r["occurrences"] > 0]
    values = [m for r in top[:1] for m in r["metrics"].values() if m["value"] is not None]
    return f"{len(top)} regions, {len(values)} metrics" if top and (name != "counters" or values) else ""


class Doctor(unittest.TestCase):
    def look(self, include, program, expected, commands=(), **env):
        """The complaints are those expected; the ways named in `commands` work and capture something."""
        gpu.time_left(30)
        with tempfile.TemporaryDirectory() as folder:
            done = gpu.Done(["rangescope", "doctor", "--json", "--include", include, "--for", "60s", "--", *program], cwd=folder, env=env)
            answer = json.loads(done.out)
            self.assertEqual([f["id"] for f in answer["findings"] if f["verdict"] in ("warn", "fail")], expected)
            for way in answer["ways"]:
                if way["name"] in commands:
                    with self.subTest(way["name"]):
                        gpu.time_left(30)
                        self.assertTrue(way["works"], way["reason"])
                        ran = gpu.Done(["bash", "-c", way["command"]], limit=60, cwd=folder, env=env)
                        self.assertTrue(captured(way["name"], folder), f"{way['command']}: exit code {ran.code}: {(ran.out + ran.err)[-300:]}")

    def zoo(self, include, expected, commands=(), *words):
        self.look(include, [gpu.program("zoo"), *words], expected, commands)

    def test_all_ways(self):
        self.zoo("decode/", [], ALL)

    def test_graphs(self):
        self.zoo("graph_replay/", ["program.graphs_inside"], {"counters", "ncu app-range", "ncu kernel"})

    def test_other_threads(self):
        self.zoo("main_thread/", ["program.work_on_other_threads"], {"ncu kernel"})

    def test_allocation(self):
        self.zoo("alloc_async_inside/", ["program.async_allocation"], {"ncu app-range", "ncu kernel"}, "risky")
        self.zoo("alloc_inside/", [], {"ncu range"}, "risky")

    def test_asynchronous(self):
        self.zoo("async/", [], {"ncu range"})

    def test_names(self):
        self.zoo("decode_all/", ["program.wrong_domain"])
        self.zoo("deocde/", ["program.unknown_range"])
        self.zoo("empty/", ["program.no_work_inside"])

    def test_pytorch(self):
        work = [gpu.need("PyTorch", gpu.python()), f"{gpu.HERE}/work.py"]
        self.look("decode/", work, ["program.calls_inside"], {"ranges", "counters", "ncu kernel"}, LAYERS="2", TOK="40", PL="64")
