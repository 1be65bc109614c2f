#!/usr/bin/env python3
"""first: what a new user sees of a program without ranges. Usage: first.py BIN_DIR"""
import glob
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402
import perfetto_reader  # noqa: E402

TOOL = os.path.join(sys.argv[1], "rangescope")
PYTHON = os.path.realpath(sys.executable)
BUSY = "print(sum(i * i for i in range(3_000_000)))"
SUM = str(sum(i * i for i in range(3_000_000))) + "\n"


def perf_works():
    """Whether the kernel lets us sample: without it a program that loads nothing of ours shows nothing."""
    with tempfile.TemporaryDirectory() as folder:
        done = cases.run([TOOL, "profile", "-q", "--cpu", "199Hz", f"run.dir={folder}/run", "--", "true"])
    return done.returncode not in (69, 77)


PERF = perf_works()
FORBID = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cpu", "forbid.py")]
# In a program: goes on once the thread of ours that looks at it, which sleeps between two looks, has slept thrice.
LOOKED_AGAIN = f"""
import glob, os, re
def sleeps():
  return {{path: int(re.search(r"voluntary_ctxt_switches:.(\\d+)", open(path).read())[1]) for path in glob.glob(f"/proc/{{os.getppid()}}/task/*/status")}}
before, deadline = sleeps(), time.monotonic() + {cases.PATIENCE_S}
while max(count - before.get(path, count) for path, count in sleeps().items()) < 3 and time.monotonic() < deadline:
  time.sleep(0.01)
"""


class First(unittest.TestCase):
    def setUp(self):
        if not PERF:
            self.skipTest("the kernel does not sample here (perf_event_open)")
        self.folder = tempfile.mkdtemp(prefix="rangescope-first-")

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def tool(self, *words, **env):
        return cases.run([TOOL, *words], cwd=self.folder, env={**os.environ, **env})

    def first_run(self, *command, code=0, out="", options=(), own="program"):
        """Profiles it; what every such run must say. The report. `own`: the function that the first line names, if enough samples have it."""
        done = self.tool("profile", *options, "--", *command)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, out)
        self.assertNotIn("nothing was captured", done.stderr)
        lines = done.stderr.splitlines()
        first = next((line for line in lines if line.startswith("1. ")), None)
        self.assertIsNotNone(first, done.stderr)
        self.assertRegex(first, rf"^1\. \w+: (program|{own}): ")
        self.assertRegex(done.stderr, r"(?m)^program +")
        self.assertEqual(len(re.findall(r"(?m)^note: no ranges: the program is one region", done.stderr)), 1, done.stderr)
        report = json.loads(self.tool("report", "latest", "-f", "json").stdout)
        self.assertEqual([region["path"] for region in report["regions"]], [["program"]])
        wall = report["regions"][0]["wall_ns"]["inclusive"]
        self.assertEqual(wall, report["run"]["duration_ns"])
        runs = os.path.join(self.folder, "rangescope-runs")
        run = max((os.path.join(runs, name) for name in os.listdir(runs)), key=os.path.getmtime)  # names end in a process id
        with open(os.path.join(run, "manifest.json"), encoding="utf-8") as file:
            shown = json.load(file)
        self.assertAlmostEqual((shown["end_unix_ns"] - shown["start_unix_ns"]) / 1e9, wall / 1e9, delta=0.001)
        table = self.tool("report", "latest").stdout
        header = re.search(r"(?m)^([\d.]+ \w+)", table).group(1)
        self.assertIn(header, re.search(r"(?m)^program .*", table).group(0))
        return report

    def functions(self, report):
        return [function["name"] for function in report["regions"][0]["cpu"]["functions"]]

    def test_python(self):
        # Four times as much as below: where an idle machine wakes the sampler late, few samples have Python's frames.
        report = self.first_run(PYTHON, "-c", "print(sum(i * i for i in range(12_000_000)) > 0)", out="True\n",
                                own=r"<module> \(<string>:1\)")
        cpu = report["regions"][0]["cpu"]
        self.assertIn("<genexpr>", [function["name"] for function in cpu["functions"] + cpu["callers"]])
        page = self.tool("report", "latest", "--cpu", "program")
        self.assertEqual(page.returncode, 0, page.stderr)
        header = re.search(r"(?m)^([\d.]+ \w+)", self.tool("report", "latest").stdout).group(1)
        self.assertTrue(page.stdout.startswith(f"program: {header} in "), page.stdout)
        typo = self.tool("report", "latest", "--cpu", "xyz")
        self.assertEqual(typo.returncode, 64)
        self.assertIn("program", typo.stderr)

    def test_python_that_calls_c(self):
        """Its own functions take no time, and are named by what they call."""
        with open(f"{self.folder}/app.py", "w", encoding="utf-8") as file:
            file.write("import zlib\ndef compress():\n    for i in range(100):\n        zlib.compress(b'0123456789' * 100000, 9)\ncompress()\n")
        self.first_run(PYTHON, "app.py", own=r"compress \(app\.py:2\)")
        table = self.tool("report", "latest").stdout
        self.assertRegex(table, r"\n\nfunction, with the libraries that it calls [^\n]*(?:\n[^\n]+)*\n *compress \(app\.py:2\)")

    def test_what_ends_at_once(self):
        self.first_run("true")
        self.first_run("true", options=("--cpu", "199Hz"))

    def test_start_up_and_waits_are_in_it(self):
        report = self.first_run("sleep", "0.5")
        region = report["regions"][0]
        self.assertGreaterEqual(region["wall_ns"]["inclusive"], 5e8)
        waiting = {part["name"]: part["ns"] for part in region["cpu"]["parts"] if part["kind"] == "waiting"}
        self.assertGreaterEqual(waiting.get("sleep", 0), 4e8)

    def test_a_program_that_fails_keeps_its_end(self):
        self.first_run("sh", "-c", "exit 3", code=3)
        self.first_run(PYTHON, "-c", "raise SystemExit(5)", code=5)
        self.first_run("sh", "-c", "kill -TERM $$", code=-signal.SIGTERM)

    def test_a_script_of_3000_commands_is_a_few_rows(self):
        script = "i=0; while [ $i -lt 3000 ]; do /bin/true; i=$((i+1)); done"
        report = self.first_run("sh", "-c", script)
        self.assertGreaterEqual(len(report["processes"]), 2900)
        table = self.tool("report", "latest").stdout
        rows = dict(re.findall(r"(?m)^( *\w+) +([\d,]+) +[\d.]+ \w+$", table.split("from start to exit")[1]))
        self.assertEqual(rows["sh"], "1")
        self.assertGreaterEqual(int(rows["  true"].replace(",", "")), 2900)

    def test_several_threads(self):
        threads = ("import threading, hashlib\n"
                   "work = lambda: hashlib.pbkdf2_hmac('sha256', b'a', b'b', 400_000)\n"
                   "all = [threading.Thread(target=work) for _ in range(3)]\n"
                   "[t.start() for t in all]; [t.join() for t in all]\n")
        region = self.first_run(PYTHON, "-c", threads, own=r"<lambda> \(<string>:2\)")["regions"][0]
        self.assertGreaterEqual(region["threads"], 4)
        self.assertGreater(region["cpu"]["split"]["native"], 0)

    def language(self, source, ending, *command):
        path = os.path.join(self.folder, "Program" + ending)
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        return [word.replace("SOURCE", path).replace("FOLDER", self.folder) for word in command]

    def test_what_others_wait_for(self):
        """Threads that share Python's GIL say so, though the first one only waits for them; a shell's wait for its child is that child's work."""
        source = "import threading\ndef spin():\n  for i in range(6000000): pass\n"
        source += "them = [threading.Thread(target=spin) for _ in range(3)]\nfor t in them: t.start()\nfor t in them: t.join()"
        report = self.first_run(PYTHON, "-c", source, own=r"spin \(<string>:2\)")
        parts = {part["name"]: part["ns"] for part in report["regions"][0]["cpu"]["parts"] if part["kind"] == "waiting"}
        self.assertGreater(parts["GIL"], 0.5 * parts["lock"])
        self.assertIn("waiting for the GIL", report["verdict"][0]["text"])
        self.assertIn("GIL", self.tool("query", "latest", "select kind from cpu_waits group by kind").stdout)
        self.assertEqual(self.tool("report", "latest", "-f", "perfetto", "-o", "gil.pftrace").returncode, 0)
        with open(os.path.join(self.folder, "gil.pftrace"), "rb") as file:
            self.assertIn(b"waiting: GIL", file.read())
        report = self.first_run("sh", "-c", "seq 1 1500000 | sort -R >/dev/null; true")
        parts = {part["name"]: part["ns"] for part in report["regions"][0]["cpu"]["parts"] if part["kind"] == "waiting"}
        self.assertLess(parts.get("child", 0), 0.05 * report["run"]["duration_ns"])  # while no child is there

    def polled(self, **options):
        """What the report says of the CPU where /proc is all there is, and the seconds of CPU time that spin() had by its own count.

        Which function had the time between two looks is a guess, the worse the later they come; how much time it was is counted.
        """
        source = ("import time\ndef spin():\n  for i in range(20000000): pass\nbegin = time.thread_time()\nspin()\n"
                  "print('spun', time.thread_time() - begin)\ntime.sleep(0.5)\n" + LOOKED_AGAIN +
                  "print('had', time.process_time())\n")
        done = subprocess.run([*FORBID, TOOL, "profile", "-q", "--", PYTHON, "-c", source], cwd=self.folder, capture_output=True, text=True,
                              timeout=cases.PATIENCE_S, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(self.tool("report", "latest", "-f", "json").stdout)
        self.assertIn("cpu_polled", [loss["kind"] for loss in report["losses"]])
        region = report["regions"][0]
        cpu = region["cpu"]
        spun, had = (float(re.search(rf"{word} ([\d.]+)", done.stdout)[1]) for word in ("spun", "had"))
        used = (cpu["split"]["python"] + cpu["split"]["native"]) / 1e9
        self.assertGreaterEqual(used, spun - 0.03)
        # It ends after it said so. And until its first wait was seen it counts as running, though it had to be started first.
        first_wait = int(self.tool("query", "latest", "-f", "csv", "select min(start_ns) from cpu_waits").stdout.split()[-1])
        launched, = glob.glob(os.path.join(self.folder, "rangescope-runs", "2*", "native", "launched"))
        begun = int(re.search(r"(?m)^start_ns (\d+)", cases.contents(launched))[1])
        self.assertLessEqual(used, had + 0.1 + (first_wait - begun) / 1e9)
        self.assertAlmostEqual(cpu["split"]["waiting"] / 1e9, region["wall_ns"]["inclusive"] / 1e9 - used, delta=0.001)
        self.assertEqual(cpu["functions"][0]["name"], "spin")
        self.assertLessEqual(cpu["functions"][0]["total_ns"] / 1e9, used)
        return spun, cpu

    def test_waits_for_a_core_are_no_work_where_the_kernel_gives_no_samples(self):
        core = {min(os.sched_getaffinity(0))}
        pinned = lambda: os.sched_setaffinity(0, core)
        others = [subprocess.Popen([PYTHON, "-c", "while True: pass"], preexec_fn=pinned) for _ in range(9)]
        try:
            spun, cpu = self.polled(preexec_fn=pinned)
        finally:
            for other in others:
                other.kill()
                other.wait()
        preempted = next(part["ns"] for part in cpu["parts"] if part["name"] == "preempted")
        self.assertGreater(preempted / 1e9, 2 * spun)

    def test_where_the_kernel_gives_no_samples(self):
        """As in a container: perf_event_open is refused. Functions of Python, waits and the time are told all the same."""
        _, cpu = self.polled()
        waits = {part["name"]: part["ns"] for part in cpu["parts"] if part["kind"] == "waiting"}
        self.assertGreater(waits["sleep"] / 1e9, 0.4)
        refused = subprocess.run([*FORBID, TOOL, "profile", "-q", "--cpu", "199Hz", "--", "true"], cwd=self.folder, capture_output=True, timeout=cases.PATIENCE_S)
        self.assertEqual(refused.returncode, 77)  # what was asked for

    def test_node(self):
        if not shutil.which("node"):
            self.skipTest("node is not installed")
        self.first_run("node", "-e", "let s = 0; for (let i = 0; i < 3e7; ++i) s += i % 7; console.log(s)", out="89999995\n")

    def test_java(self):
        if not shutil.which("javac"):
            self.skipTest("javac is not installed")
        source = "public class Program { public static void main(String[] a) { long s = 0; for (int i = 0; i < 100000000; ++i) s += i % 7; System.out.println(s); } }"
        made = cases.run(self.language(source, ".java", "javac", "-d", "FOLDER", "SOURCE"))
        if made.returncode != 0:
            self.skipTest("javac does not work here: " + made.stderr)
        self.first_run("java", "-cp", self.folder, "Program", out="299999995\n")

    def test_rust(self):
        if not shutil.which("rustc"):
            self.skipTest("rustc is not installed")
        source = "fn main() { let mut s = 0u64; for i in 0..50_000_000u64 { s = s.wrapping_mul(31) ^ i; } println!(\"{}\", s > 0); }"
        made = cases.run(self.language(source, ".rs", "rustc", "-g", "-o", "FOLDER/program", "SOURCE"))
        if made.returncode != 0:
            self.skipTest("rustc does not work here: " + made.stderr)
        report = self.first_run(os.path.join(self.folder, "program"), out="true\n", own=r"Program::main( \(Program\.rs:1\))?")
        self.assertTrue(any("main" in name for name in self.functions(report)), self.functions(report))

    def test_go(self):
        if not shutil.which("go"):
            self.skipTest("go is not installed")
        source = "package main\nimport \"fmt\"\nfunc main() { s := uint64(0); for i := uint64(0); i < 300000000; i++ { s = s*31 ^ i }; fmt.Println(s > 0) }"
        made = cases.run(self.language(source, ".go", "go", "build", "-o", "FOLDER/program", "SOURCE"), env={**os.environ, "HOME": self.folder})
        self.assertEqual(made.returncode, 0, made.stderr)
        self.first_run(os.path.join(self.folder, "program"), out="true\n", own=r"main\.main( \(Program\.go:3\))?")

    def test_musl(self):
        """It cannot load our library: that is said, and what to do; no advice to open ranges."""
        if not shutil.which("musl-gcc"):
            self.skipTest("musl-tools is not installed")
        source = "#include <time.h>\nint main(void) { clock_t e = clock() + CLOCKS_PER_SEC / 3; while (clock() < e) {} return 3; }"
        made = cases.run(self.language(source, ".c", "musl-gcc", "-o", "FOLDER/program", "SOURCE"))
        self.assertEqual(made.returncode, 0, made.stderr)
        report = self.first_run(os.path.join(self.folder, "program"), code=3)
        self.assertIn("musl_program", [loss["kind"] for loss in report["losses"]])
        table = self.tool("report", "latest").stdout
        self.assertIn("no ranges: the program is one region. It is linked to musl: link it to glibc", table)
        self.assertNotIn("open NVTX ranges", table)

    def test_tests_of_python(self):
        source = "import unittest\nclass T(unittest.TestCase):\n  def test_a(self): sum(range(10**7))\n"
        if cases.run([PYTHON, "-c", "import pytest"]).returncode == 0:
            self.language(source, "_test.py", "true")
            done = self.tool("profile", "--", PYTHON, "-m", "pytest", "-q", self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stderr, r"(?m)^1\. (\w+: )?(program|T\.test_a \(Program_test\.py:3\)): ")
        program, = self.language(source, ".py", "SOURCE")
        self.first_run(PYTHON, "-m", "unittest", "-q", os.path.basename(program)[:-3], options=("--runs", "rangescope-runs"),
                       own=r"T\.test_a \(Program\.py:3\)")

    def test_everything_else_works_on_such_a_run(self):
        for name in ("before", "after"):
            self.assertEqual(self.tool("profile", "-q", f"run.dir={name}", "--", PYTHON, "-c", BUSY).returncode, 0)
        compared = self.tool("compare", "before", "after")
        self.assertEqual(compared.returncode, 0, compared.stderr)
        self.assertRegex(compared.stdout, r"(?m)^program ")
        judged = self.tool("gate", "--baseline", "before", "after")
        self.assertIn(judged.returncode, (0, 81, 82), judged.stderr)  # two single runs on a machine that may be busy
        self.assertRegex(judged.stdout, r"(?m)^\w+ +program ")
        asked = self.tool("query", "after", "select path, occurrences from regions")
        self.assertIn("program", asked.stdout)
        for form in ("html", "csv", "md", "jsonl", "openmetrics", "collapsed", "speedscope", "pprof", "perfetto"):
            written = self.tool("report", "after", "-f", form, "-o", f"report.{form}")
            self.assertEqual(written.returncode, 0, form + written.stderr)
        with open(os.path.join(self.folder, "report.perfetto"), "rb") as f:
            trace = perfetto_reader.Trace(f.read())
        self.assertTrue(any(s["category"] == "process" and s["end"] > s["start"] for s in trace.slices))
        exported = self.tool("export", "after", "--to", "sqlite", "-o", "after.sqlite")
        self.assertEqual(exported.returncode, 0, exported.stderr)
        again = self.tool("report", "after.sqlite")
        self.assertEqual((again.returncode, again.stdout), (0, self.tool("report", "after").stdout))
        self.assertIn("after.sqlite is an export of run 'after'", again.stderr)
        shutil.copy(os.path.join(self.folder, "after.sqlite"), os.path.join(self.folder, "alone.sqlite"))
        os.rename(os.path.join(self.folder, "after"), os.path.join(self.folder, "moved"))
        refused = self.tool("report", "alone.sqlite")
        os.rename(os.path.join(self.folder, "moved"), os.path.join(self.folder, "after"))
        self.assertEqual(refused.returncode, 64)
        self.assertIn("this is an export of run 'after'", refused.stderr)
        self.assertIn("rangescope report after.", refused.stderr)
        self.assertEqual(self.tool("runs", "verify", "after").returncode, 0)

    def test_ranges_that_were_asked_for_and_never_came(self):
        done = self.tool("profile", "--include", "decode/", "--", "true")
        self.assertEqual(done.returncode, 80, done.stderr)
        self.assertIn("nothing was captured", done.stderr)
        failed = self.tool("profile", "--include", "decode/", "--", "false")
        self.assertEqual(failed.returncode, 1, failed.stderr)

    def test_nothing_could_be_seen(self):
        done = self.tool("profile", "--cpu", "off", "--", "true")
        self.assertEqual(done.returncode, 80, done.stderr)
        self.assertIn("no process loaded rangescope's library, and the CPU was not sampled", done.stderr)

    def test_the_terminal_is_the_programs(self):
        """While it runs nothing else is written to it: neither behind an unfinished line nor over a bar."""
        program = ("import sys, time\nsys.stdout.write('epoch 1 loss 0.1'); sys.stdout.flush(); time.sleep(1.2)\n"
                   "sys.stdout.write('\\rbar 50%'); sys.stdout.flush(); time.sleep(0.1)\nprint('\\nEND', flush=True)\n")
        master, slave = pty.openpty()
        process = subprocess.Popen([TOOL, "profile", "--", PYTHON, "-c", program], cwd=self.folder, stdin=slave, stdout=slave, stderr=slave,
                                   env={**os.environ, "TERM": "xterm"}, start_new_session=True)
        os.close(slave)
        seen = b""
        while select.select([master], [], [], cases.PATIENCE_S)[0]:
            try:
                some = os.read(master, 65536)
            except OSError:
                break
            if not some:
                break
            seen += some
        os.close(master)
        self.assertEqual(process.wait(cases.PATIENCE_S), 0)
        text = seen.decode(errors="replace")
        self.assertTrue(text.startswith("epoch 1 loss 0.1\rbar 50%\r\nEND\r\n"), repr(text[:200]))


cases.main()
