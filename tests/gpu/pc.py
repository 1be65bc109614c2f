"""Why kernels wait, by samples of the program counter, beside what the source says and what ncu samples."""
import re
import unittest

import counters
import gpu

KNOWN = {"chase": "long scoreboard", "banks": "short scoreboard", "chain": "wait", "uneven": "barrier", "sleeping": "sleeping"}
READY = ("issued", "not selected")  # no waits


def lines():
    """{kernel: the line where it waits}"""
    with open(f"{gpu.HERE}/stalls.cu", encoding="utf-8") as f:
        return {m.group(1): i for i, line in enumerate(f, 1) if (m := re.search(r"// WAITS (\w+)$", line))}


def top(reasons):
    """The most frequent wait of [{reason, share}]."""
    return next((each["reason"] for each in reasons if each["reason"] not in READY), None)


class Stalls(unittest.TestCase):
    def sampled(self, steps="40"):
        run = gpu.Run("pc", ["--pc", "on", "--include", "step/"], [gpu.program("stalls"), steps])
        self.assertEqual(run.code, 0, run.err)
        return run

    def test_known_waits_and_their_lines(self):
        run = self.sampled()
        told = [loss for loss in run.report["losses"] if loss["kind"].startswith(("pc_", "gpu_partial"))]
        found = {row["short_name"]: row.get("stalls") for row in run.report["kernels"]}
        where = lines()
        for kernel, reason in KNOWN.items():
            with self.subTest(kernel):
                self.assertIsNotNone(found[kernel], told)
                self.assertEqual(top(found[kernel]["reasons"]), reason)
        right = [kernel for kernel, line in where.items() if found.get(kernel) and found[kernel]["lines"][0]["line"] == line]
        gpu.figure("lines of code where kernels wait, right", len(right), f"of {len(where)}", str(sorted(set(where) - set(right))))
        self.assertGreaterEqual(len(right), 9, {kernel: found[kernel]["lines"][:2] for kernel in set(where) - set(right)})
        for path, region in gpu.regions(run.report).items():  # each in its own range, and only there
            name = path.split(" > ")[-1]
            rows = {row["short_name"] for row in region["gpu"]["top_kernels"] if "stalls" in row}
            if name in where:
                self.assertEqual(rows, {name})
        self.assertIn("stalls", [verdict["kind"] for verdict in run.report["verdict"]])

    def test_the_same_as_ncu(self):
        found = {row["short_name"]: row["stalls"]["reasons"] for row in self.sampled().report["kernels"] if "stalls" in row}
        results = counters.ncu_results([], ["--section", "SourceCounters"], [gpu.program("stalls"), "1"])
        prefix = "smsp__pcsamp_warps_issue_stalled_"
        same, differ = 0, {}
        for _, kernel, values in results:
            stalls = {key[len(prefix):].replace("_", " "): value for key, value in values.items()
                      if key.startswith(prefix) and "not_issued" not in key}
            stalls = {key: value for key, value in stalls.items() if key not in ("selected", "not selected")}
            name = counters.base(kernel)
            if name not in found or not stalls:
                continue
            most = max(stalls, key=stalls.get)
            same += most == top(found[name])
            if most != top(found[name]):
                differ[name] = (most, top(found[name]))
        gpu.figure("most frequent wait, the same as ncu's", same, f"of {len(results)}", str(differ))
        self.assertGreaterEqual(same, 9, differ)

    def test_kernels_of_graphs(self):
        run = gpu.Run("pc-graph", ["--pc", "on", "--skip-first", "0", "--trace-first", "0", "--include", "graph_replay/"], [gpu.program("zoo")])
        self.assertEqual(run.code, 0, run.err)
        rows = gpu.regions(run.report)["graph_replay"]["gpu"]["top_kernels"]
        self.assertTrue(all("stalls" in row for row in rows), [loss for loss in run.report["losses"] if loss["kind"].startswith("pc_")])

    def test_pytorch(self):
        script = [gpu.need("PyTorch", gpu.python()), f"{gpu.HERE}/work.py"]
        env = {"TOK": "40", "REPEAT": "1"}
        off = gpu.Run("pc-torch-off", ["--include", "decode/"], script, env=env)
        run = gpu.Run("pc-torch", ["--pc", "on", "--include", "decode/"], script, env=env)
        self.assertEqual([off.code, run.code], [0, 0], run.err)
        rows = [row["stalls"] for row in run.report["kernels"] if "stalls" in row]
        self.assertTrue(rows, run.report["losses"])
        steps = [gpu.regions(each.report)["decode"]["wall_ns"] for each in (off, run)]
        gpu.figure("decode step sampled", steps[1]["max"] / 1e6, "ms", f"{steps[0]['median'] / 1e6:.2f} ms as it is")
        gpu.figure("decode step beside, median", steps[1]["median"] / steps[0]["median"], "x")
        gpu.figure("the whole program", run.seconds / off.seconds, "x", f"{off.seconds:.1f} s")

    def test_cost(self):
        off = gpu.Run("pc-off", ["--include", "step/"], [gpu.program("stalls"), "400"])
        on = self.sampled("400")
        seconds = [float(re.search(r"([0-9.]+) s", each.out).group(1)) for each in (off, on)]
        gpu.figure("400 steps of 10 kernels, 2 sampled", seconds[1] / seconds[0], "x", f"{seconds[0]:.2f} s")
