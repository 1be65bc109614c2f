"""Hardware counters beside what the source says and what ncu measured on the same program in the same minutes."""
import csv
import statistics
import unittest

import gpu

# Counts, bytes, FLOPs, rates, shares: one pass would not do.
EXACT = ["sm__inst_executed.sum", "sm__ops_path_tensor_src_bf16_dst_fp32.sum",
         "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"]
SASS = ["sm__sass_thread_inst_executed_op_ffma_pred_on.sum"]  # ncu counts it in kernel replay only: it patches the code
CLOSE = ["dram__bytes.sum", "lts__t_bytes.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed",
         "dram__throughput.avg.pct_of_peak_sustained_elapsed"]
METRICS = EXACT + SASS + CLOSE + ["gpu__time_duration.sum"]


def base(name):
    """A kernel's name without return type, template arguments and parameters."""
    text, depth = "", 0
    for c in name.replace("(anonymous namespace)", ""):
        depth += (c == "<") - (c == ">")
        if c == "(" and depth == 0:
            break
        if depth == 0 and c != ">":
            text += c
    return text.strip().split(" ")[-1].split("::")[-1]


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def ncu_results(metrics, options, command):
    """ncu's raw page: [(names of the ranges, kernel, {metric: value})]."""
    log = f"{gpu.OUT}/ncu.csv"
    done = gpu.Done([gpu.need("ncu", gpu.ncu()), "--csv", "--page", "raw", "--print-units", "base", "--log-file", log,
                     "--nvtx", "--clock-control", "none", "--metrics", ",".join(metrics), *options, *command], limit=150)
    with open(log, encoding="utf-8", errors="replace") as f:
        rows = list(csv.reader(line for line in f if line.startswith('"')))
    if len(rows) < 3:
        raise AssertionError(f"ncu gave nothing, exit code {done.code}: {done.err[-300:]}")
    cells = [dict(zip(rows[0], row)) for row in rows[2:]]
    return [(" ".join(text for key, text in row.items() if "Push/Pop" in key), row.get("Kernel Name", ""),
             {key: number(text) for key, text in row.items() if "__" in key and number(text) is not None}) for row in cells]


class Truth(unittest.TestCase):
    def test_bytes_and_flops_of_the_source(self):
        run = gpu.Run("counted-range", ["--metrics", ",".join(METRICS), "--include", "copy/", "--include", "fma/"],
                      [gpu.program("counted")])
        self.assertEqual(run.code, 0, run.err)
        found = gpu.regions(run.report)
        self.assertEqual(gpu.value(found["fma"], SASS[0]), 2**29)
        copied = gpu.value(found["copy"], CLOSE[0])
        gpu.figure("DRAM bytes of the copy, of what it moves", copied / 2**29, "ratio")
        self.assertAlmostEqual(copied / 2**29, 1, delta=0.02)

    def test_seldom_ranges_by_relaunch(self):
        options = ["--metrics", ",".join(METRICS), "--passes", "relaunch", "--rounds", "1", "--include", "seldom/"]
        run = gpu.Run("counted-relaunch", options, [gpu.program("counted"), "20"])
        self.assertEqual(run.code, 0, run.err)
        self.assertEqual(gpu.value(gpu.regions(run.report)["seldom"], SASS[0]), 2**29)

    def test_several_configurations(self):
        # DRAM and FLOPs of the context, PCIe of the device: what CUPTI cannot count together.
        metrics = ["pcie__read_bytes.sum", "pcie__write_bytes.sum", CLOSE[0], SASS[0]]
        options = ["--metrics", ",".join(metrics), "--rounds", "2", "--include", "copy/", "--include", "fma/"]
        run = gpu.Run("counted-configurations", options, [gpu.program("counted"), "4000"])  # only the first round is waited for
        self.assertEqual(run.code, 0, run.err)
        found = gpu.regions(run.report)
        told = [loss["detail"] for loss in run.report["losses"] if loss["kind"] in ("gpu_partial", "counters_incomplete")]
        self.assertEqual(gpu.value(found["fma"], SASS[0]), 2**29, told)
        self.assertAlmostEqual(gpu.value(found["copy"], CLOSE[0]) / 2**29, 1, delta=0.05, msg=told)
        for metric in metrics[:2]:
            self.assertIsNotNone(gpu.value(found["copy"], metric), told)
            gpu.figure(f"copy: {metric}", gpu.value(found["copy"], metric), "byte")
        self.assertEqual(found["copy"]["metrics"][CLOSE[0]]["rounds"], 2, told)

    def test_nvlink_is_counted_or_named(self):
        options = ["--metrics", f"nvlink,{CLOSE[0]}", "--rounds", "1", "--include", "copy/"]
        run = gpu.Run("counted-nvlink", options, [gpu.program("counted"), "60"])
        self.assertEqual(run.code, 0, run.err)
        copy = gpu.regions(run.report)["copy"]
        self.assertAlmostEqual(gpu.value(copy, CLOSE[0]) / 2**29, 1, delta=0.05)
        told = [loss["detail"] for loss in run.report["losses"] if "(of nvlink)" in loss["detail"]]
        print(f"    nvlink: {told or copy['metrics'].get('nvlink_rx_bytes')}", flush=True)
        self.assertTrue(told or gpu.value(copy, "nvlink_rx_bytes") is not None)

    def test_by_payload(self):
        options = ["--metrics", CLOSE[0], "--bucket-by", "payload", "--rounds", "1", "--include", "sized/"]
        run = gpu.Run("counted-sized", options, [gpu.program("counted"), "120"])
        self.assertEqual(run.code, 0, run.err)
        sizes = {size: gpu.value(region, CLOSE[0]) for path, region in gpu.regions(run.report).items() if path.startswith("sized")
                 for size in (16, 32, 64) if str(size) in path}
        self.assertEqual(sorted(sizes), [16, 32, 64])
        for size, moved in sizes.items():
            self.assertAlmostEqual(moved / (size * 2**20 * 8), 1, delta=0.1, msg=f"{size} Mi floats")


class BesideNcu(unittest.TestCase):
    def kernels_agree(self, ours, theirs, path, title, within=1e-6):
        """Kernels of one instance by position and name: their counts are equal (`within`: where the data may differ)."""
        mine = {k["ordinal"]: k for k in gpu.regions(ours.report)[path]["kernels"]}
        ratios, partners = {}, 0
        for ordinal, (_, name, values) in enumerate(theirs):
            if ordinal not in mine or base(mine[ordinal]["name"]) != base(name):
                continue
            partners += 1
            for metric, wanted in values.items():
                got = gpu.value(mine[ordinal], metric)
                if got is not None and (metric in EXACT + SASS or wanted):
                    ratios.setdefault(metric, []).append(got / wanted if wanted else 1.0 if got == 0 else float("inf"))
        self.assertGreater(partners, 0, "no kernel has a partner")
        for metric, found in sorted(ratios.items()):
            gpu.figure(f"{title}: {metric}", statistics.median(found), "of ncu's", f"n {len(found)}, {min(found):.3f} .. {max(found):.3f}")
        for metric in EXACT[:2] + SASS:
            for ratio in ratios.get(metric, []):
                self.assertAlmostEqual(ratio, 1, delta=within, msg=metric)

    def test_kernels_of_counted(self):
        ours = gpu.Run("counted-kernel", ["--metrics", ",".join(METRICS), "--per", "kernel", "--rounds", "1", "--include", "layers/",
                                          "--include", "copy/", "--include", "fma/"], [gpu.program("counted")])
        self.assertEqual(ours.code, 0, ours.err)
        rows = ncu_results(METRICS, ["--nvtx-include", "copy/", "--nvtx-include", "fma/", "--nvtx-include", "layers/", "--launch-count", "18"],
                           [gpu.program("counted"), "2"])
        for path in ("copy", "fma", "layers"):
            self.kernels_agree(ours, [row for row in rows if path in row[0]], path, f"counted {path}")

    def test_ranges_of_counted(self):
        metrics = [m for m in METRICS if m not in SASS]
        ours = gpu.Run("counted-ranges", ["--metrics", ",".join(metrics), "--include", "copy/", "--include", "fma/"], [gpu.program("counted")])
        for path in ("copy", "fma"):
            try:
                rows = ncu_results(metrics, ["--replay-mode", "app-range", "--nvtx-include", f"{path}/"], [gpu.program("counted"), "2"])
            except AssertionError as refused:
                self.skipTest(str(refused))
            region = gpu.regions(ours.report)[path]
            theirs = statistics.median(values[CLOSE[0]] for _, _, values in rows)
            if theirs > 1e6:
                self.assertAlmostEqual(gpu.value(region, CLOSE[0]) / theirs, 1, delta=0.05, msg=path)

    def test_kernels_of_a_pytorch_decoder(self):
        gpu.time_left(120)
        work = [gpu.need("PyTorch", gpu.python()), f"{gpu.HERE}/work.py"]
        ours = gpu.Run("work-kernel", ["--metrics", ",".join(METRICS), "--per", "kernel", "--rounds", "1", "--include", "decode/"], work)
        self.assertEqual(ours.code, 0, ours.err)
        gpu.figure("counters of every kernel of a decode step: whole command", ours.seconds, "s")
        rows = ncu_results(METRICS, ["--nvtx-include", "decode/", "--launch-count", "30"], ["env", "WARM=0", "TOK=2", *work])
        self.kernels_agree(ours, rows, "decode", "PyTorch decode", within=2e-3)
