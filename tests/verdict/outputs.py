"""The verdict stands in every output, and metrics of ncu in query and CSV, with ranges and without.

Usage: outputs.py BIN_DIR SOURCE_DIR
"""
import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest

BIN, SOURCE = sys.argv[1], sys.argv[2]
sys.path.insert(0, os.path.join(SOURCE, "tests", "tools"))
import cases  # noqa: E402

TOOL = os.path.join(BIN, "rangescope")
GOLDEN = os.path.join(SOURCE, "tests", "golden")
RECORDING = os.path.join(GOLDEN, "nsys", "work.sqlite")


def tool(*words):
    done = subprocess.run([TOOL, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode(errors="replace"))
    return done.stdout.decode(errors="replace")


def query(file, sql):
    return [json.loads(line) for line in tool("query", file, sql, "-f", "jsonl").splitlines()]


class Verdict(unittest.TestCase):
    def setUp(self):
        self.lines = json.loads(tool("report", RECORDING, "-f", "json"))["verdict"]
        self.assertGreaterEqual(len(self.lines), 3)

    def test_documents(self):
        for form in ("table", "md", "html", "perfetto", "jsonl"):
            text = tool("report", RECORDING, "-f", form, *(("--width", "0") if form == "table" else ()))
            for line in self.lines:
                self.assertIn(line["text"], text, form)

    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(tool("report", RECORDING, "-f", "csv"))))
        said = {text for row in rows for text in row["verdict"].split("; ") + [row["verdict"]]}
        for line in self.lines:
            self.assertTrue(any(line["text"] in text for text in said), line)
        decode = next(row for row in rows if row["path"] == "decode")
        self.assertIn(next(line["text"] for line in self.lines if line["path"] == "decode"), decode["verdict"])

    def test_sqlite(self):
        for row, line in zip(query(RECORDING, "select kind, severity, path, text, saves_ns, next from verdict"), self.lines, strict=True):
            self.assertEqual(row, {key: line[key] for key in row})
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "x.sqlite")
            tool("export", RECORDING, "--to", "sqlite", "-o", file)
            self.assertEqual(tool("export", RECORDING, "--to", "csv", "--table", "verdict").count("\n"), 1 + len(self.lines))
            self.assertGreater(os.path.getsize(file), 4096)


class Ncu(unittest.TestCase):
    """Two kernels with the roofline's sections: as ncu wrote them, and without the columns that hold NVTX ranges."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.with_ranges = os.path.join(GOLDEN, "ncu", "k_roof.ncu-repz")
        text = cases.run(["zstdcat", os.path.join(GOLDEN, "ncu", "k_roof_raw_base.csv.zst")]).stdout
        self.table = list(csv.reader(io.StringIO(text)))
        keep = [i for i, head in enumerate(self.table[0]) if "Range:PL_Type" not in head]
        self.assertEqual(len(self.table[0]) - len(keep), 2)
        self.without_ranges = os.path.join(self.folder.name, "plain.csv")
        with open(self.without_ranges, "w", encoding="utf-8") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([row[i] for i in keep] for row in self.table)

    def value(self, kernel, metric):
        column = self.table[0].index(metric)
        name = self.table[0].index("Kernel Name")
        return float(next(row[column] for row in self.table[2:] if row[name].startswith(kernel)).replace(",", ""))

    def test_query(self):
        sql = "select distinct kernel, value from metrics where name = 'dram__bytes.sum.per_second' and kernel is not null and region is {} null"
        for file, none in ((self.with_ranges, "not"), (self.without_ranges, "")):
            got = {row["kernel"].split("(")[0]: row["value"] for row in query(file, sql.format(none))}
            for kernel in ("gemm_like", "softmax_like"):
                want = self.value(kernel, "dram__bytes.sum.per_second")
                self.assertAlmostEqual(got[kernel], want, delta=1e-6 * want, msg=file)

    def test_csv_and_table(self):
        for file in (self.with_ranges, self.without_ranges):
            heads = next(csv.reader(io.StringIO(tool("report", file, "-f", "csv"))))
            self.assertTrue("metrics.dram__bytes.sum.per_second" in heads, file)
            table = tool("report", file, "--width", "200")
            self.assertRegex(table, r"(?m)^gemm_like .* 1\.659 TFLOP/s .* latency$")
            self.assertRegex(table, r"(?m)^1\. warning: gemm_like: .*latency-bound")


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    cases.main()
