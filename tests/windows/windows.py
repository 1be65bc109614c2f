#!/usr/bin/env python3
"""Windows: --after, --for, --stopped and `rangescope ctl`. Usage: windows.py BIN_DIR SOURCE_DIR [LIBCUPTI VICTIM]"""
import glob
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402
import json_schema  # noqa: E402

BIN, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])
TOOL = f"{BIN}/rangescope"
PYTHON = sys.executable

# Steps of 10 ms with a range of 5 ms inside, in a range that never ends before the program does. The file `steps` says
# how many it has taken, and in the end it says how many there were, the longest one with what was before it, and all
# time between them, in ns. It ends by 3 when its standard input does.
STEPS = """
import os, sys, threading, time
import rangescope
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
progress = os.open("steps", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
os.pwrite(progress, b"%9d" % 0, 0)
print("ready", flush=True)
steps = longest = between = 0
with rangescope.range("main"):
    last = time.monotonic_ns()
    while not over.is_set():
        begun = time.monotonic_ns()
        with rangescope.range("step"):
            with rangescope.range("inner"):
                time.sleep(0.005)
            time.sleep(0.005)
            steps += 1
            os.pwrite(progress, b"%9d" % steps, 0)
            inside = time.monotonic_ns()
        now = time.monotonic_ns()
        longest, between, last = max(longest, now - last), between + (begun - last) + (now - inside), now
print("steps", steps, longest, between, flush=True)
sys.exit(3)
"""

# Each request is a range; children of a fork serve too.
SERVER = """
import http.server, os
import rangescope
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        with rangescope.range("request"):
            with rangescope.range("render"):
                body = str(sum(row * row % 7 for row in range(3000))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
"""
ANSWER = str(sum(row * row % 7 for row in range(3000)))


class Windows(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rangescope-windows-")
        self.env = {**os.environ, "XDG_CACHE_HOME": f"{self.folder}/cache", "PYTHONPATH": f"{SOURCE}/python"}
        self.started = []

    def tearDown(self):
        for process in self.started:
            process.kill()
            process.communicate()
        shutil.rmtree(self.folder)

    def start(self, *argv):
        process = subprocess.Popen([str(word) for word in argv], cwd=self.folder, env=self.env, text=True, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.started.append(process)
        return process

    def profile(self, program, *options):
        """The tool, once the program has said its first line, and that line."""
        process = self.start(TOOL, "profile", *options, "--", PYTHON, "-c", program)
        return process, process.stdout.readline().strip()

    def tool(self, *words, code=0):
        done = cases.run([TOOL, *words], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def ctl(self, *words, code=0):
        return self.tool("ctl", "latest", *words, code=code)

    def program(self):
        return int(next(line.split()[1] for line in self.ctl("status").stdout.splitlines() if line.startswith("program")))

    def captures(self):
        found, = glob.glob(f"{self.folder}/rangescope-runs/*/native")
        return found

    def report(self, *words):
        report = json.loads(self.tool(*(words or ["report", "latest"]), "-f", "json").stdout)
        with open(f"{SOURCE}/docs/formats/report.schema.json", encoding="utf-8") as file:
            self.assertEqual(json_schema.errors(report, json.load(file)), [])
        return report

    def end(self, process, code=3):
        out, told = process.communicate(timeout=cases.PATIENCE_S)
        self.assertEqual(process.returncode, code, told)
        return out, told

    def regions(self, report):
        return {tuple(region["path"]): region for region in report["regions"] if region["process"] is None}

    def takes(self, count):
        """Waits until the program has taken so many steps from now on."""
        before = int(cases.contents(f"{self.folder}/steps"))
        cases.until(lambda: int(cases.contents(f"{self.folder}/steps")) >= before + count)

    def is_over(self, window):
        cases.until(lambda: self.ctl("status").stdout.splitlines()[:2] == ["dormant", f"window {window}"])

    def assert_full_of(self, step, duration_ns, out, edges=2):
        """A window is full of steps, but for one at each edge that is cut, and the time between them."""
        _, longest, between = map(int, out.split("steps ")[1].split()[:3])
        self.assertLessEqual(step["wall_ns"]["inclusive"], duration_ns)
        self.assertGreaterEqual(step["wall_ns"]["inclusive"], duration_ns - edges * longest - between)

    def test_a_window_by_time_holds_what_was_in_it(self):
        for after_s in (0.3, 1, 4, 16, 64):
            steps, _ = self.profile(STEPS, "--after", f"{after_s}s", "--for", "500ms")
            self.is_over(1)
            self.takes(1)
            rstrace = glob.glob(f"{self.captures()}/**/*.rstrace", recursive=True)
            out, told = self.end(steps)
            report = self.report() if rstrace else {"regions": []}
            regions = self.regions(report)
            if regions and ("main",) not in regions:
                break  # else a busy machine had not started Python yet when the window began
            shutil.rmtree(f"{self.folder}/rangescope-runs")
        self.assertEqual({os.path.basename(os.path.dirname(path)) for path in rstrace}, {"window-1"})
        self.assertIn("steps ", out)
        self.assertIn("window 1 is over; the program continues", told)
        window, = report["run"]["windows"]
        self.assertEqual(window["number"], 1)
        self.assertGreaterEqual(window["after_ns"], after_s * 1e9)
        self.assertGreaterEqual(window["duration_ns"], 500e6)
        self.assertEqual(report["run"]["duration_ns"], window["duration_ns"])
        self.assertEqual(set(regions), {("step",), ("step", "inner")})
        step = regions[("step",)]
        self.assert_full_of(step, window["duration_ns"], out)
        self.assertGreaterEqual(step["wall_ns"]["median"], 10e6)
        self.assertLess(step["occurrences"], int(out.split()[-3]))
        losses = {loss["kind"]: loss["count"] for loss in report["losses"]}
        self.assertLessEqual(losses.get("open_before", 0), 2)  # none where it began between two steps
        self.assertNotIn("unclosed_range", losses)

    def test_a_window_by_occurrences_holds_these(self):
        steps, _ = self.profile(STEPS, "--window", "step:30-49")
        self.is_over(1)
        out, _ = self.end(steps)
        report = self.report()
        window, = report["run"]["windows"]
        regions = self.regions(report)
        self.assertEqual(regions[("step",)]["occurrences"], 20)
        self.assertEqual(regions[("step", "inner")]["occurrences"], 20)
        self.assert_full_of(regions[("step",)], window["duration_ns"], out, edges=1)
        self.assertGreater(window["after_ns"], 0.29e9)
        self.assertNotIn("open_before", [loss["kind"] for loss in report["losses"]])

    def test_a_window_by_occurrences_may_last_to_the_end_or_never_come(self):
        steps, _ = self.profile(STEPS, "--window", "step:1-1000000")
        self.takes(5)
        out, _ = self.end(steps)
        self.assertEqual(self.regions(self.report())[("step",)]["occurrences"], int(out.split()[-3]))
        steps, _ = self.profile(STEPS, "--window", "nothing:5-6")
        _, told = self.end(steps)
        self.assertIn("the program ended before instance 5 of range nothing", told)
        steps, _ = self.profile(STEPS, "--window", "st*:1-2")
        self.assertIn("instance 1 of range st* (--window takes its own name, no pattern)", self.end(steps)[1])
        for wrong in ("step", "step:", ":1-2", "step:0-2", "step:3-2", "step:a-b", "step:-1", "x" * 300 + ":1"):
            self.assertIn("--window", self.tool("profile", "--window", wrong, "--", "true", code=64).stderr)
        self.tool("profile", "--window", "step:1", "--for", "1s", "--", "true", code=64)

    def test_control_opens_closes_reports_and_compares(self):
        steps, _ = self.profile(STEPS, "--stopped")
        self.assertEqual(self.ctl("status").stdout.splitlines()[:2], ["dormant", "window 0"])
        self.assertIn("no window has ended", self.ctl("report", code=80).stderr)
        self.assertIn("no window is open", self.ctl("stop", code=64).stderr)
        for _ in range(2):
            self.ctl("start")
            self.assertIn("is open already", self.ctl("start", code=64).stderr)
            self.takes(5)
            self.assertEqual(self.ctl("status").stdout.splitlines()[0], "recording")
            self.ctl("stop")
        second = self.report("ctl", self.program(), "report")  # while it runs
        self.assertEqual(second["run"]["windows"][0]["number"], 2)
        first = self.report("ctl", steps.pid, "report", "1")
        self.assertEqual(first["run"]["windows"][0]["number"], 1)
        self.assertIn("that window has not ended", self.ctl("report", "7", code=80).stderr)
        self.assertIsNone(steps.poll())
        windows = [f"{self.captures()}/window-{number}" for number in (1, 2)]
        self.assertIn("step > inner", self.tool("compare", *windows).stdout)
        self.end(steps)
        both = self.report()
        self.assertEqual([window["number"] for window in both["run"]["windows"]], [1, 2])
        lengths = [one["run"]["duration_ns"] for one in (first, second)]
        self.assertEqual(both["run"]["duration_ns"], sum(lengths))
        self.assertEqual(len(both["processes"]), 1)
        whole, parts = self.regions(both), [self.regions(one) for one in (first, second)]
        self.assertEqual(set(whole), {("step",), ("step", "inner")})
        for path, region in whole.items():
            self.assertEqual(region["occurrences"], sum(part[path]["occurrences"] for part in parts))
            self.assertEqual(region["wall_ns"]["inclusive"], sum(part[path]["wall_ns"]["inclusive"] for part in parts))
        self.assertIn("the program has ended", self.ctl("start", code=66).stderr)
        self.assertEqual(os.listdir(self.captures()).count("control.sock"), 0)

    def windows_in(self, folder):
        return sorted(int(name[7:]) for name in os.listdir(folder) if name.startswith("window-"))

    def test_a_flight_recorder_keeps_the_last_seconds(self):
        steps, _ = self.profile(STEPS, "--keep-last", "1s")  # in windows of half a second
        later = lambda than: cases.until(lambda: [number for number in self.windows_in(self.captures()) if number >= than])
        later(5)
        self.assertIn("ctl RUN mark NAME", self.ctl("stop", code=64).stderr)
        self.assertEqual(self.ctl("status").stdout.splitlines()[0], "recording")
        marked = self.ctl("mark", "here").stdout.strip()
        self.assertEqual(marked, f"{os.path.dirname(self.captures())}/marks/here")
        self.assertIn("a mark of that name exists", self.ctl("mark", "here", code=64).stderr)
        for wrong in ("../x", "a/b", ".."):
            self.assertIn("a plain word", self.ctl("mark", wrong, code=64).stderr)
        later(max(self.windows_in(self.captures())) + 4)
        self.assertIsNone(steps.poll())
        frozen = self.report("report", marked)  # while it runs
        first = frozen["run"]["windows"][0]
        self.assertGreater(first["number"], 1)
        self.assertGreaterEqual(frozen["run"]["duration_ns"], 1e9)
        self.assertLessEqual(len(frozen["run"]["windows"]), 4)
        self.assertEqual(set(self.regions(frozen)), {("main",), ("main", "step"), ("main", "step", "inner")})
        main = self.regions(frozen)[("main",)]
        self.assertEqual(main["occurrences"], 1)
        self.assertAlmostEqual(main["wall_ns"]["inclusive"] / frozen["run"]["duration_ns"], 1, delta=0.01)
        step, parts = self.regions(frozen)[("main", "step")], 0
        for number in self.windows_in(f"{marked}/native"):
            parts += self.regions(self.report("report", f"{marked}/native/window-{number}"))[("main", "step")]["occurrences"]
        edges = len(frozen["run"]["windows"]) - 1
        self.assertLessEqual(parts - step["occurrences"], edges)  # a step may have ended just there
        kept = self.windows_in(self.captures())
        self.assertLessEqual(len(kept), 4)
        steps.send_signal(signal.SIGTERM)
        self.end(steps, -signal.SIGTERM)
        last = self.report()
        self.assertGreater(last["run"]["windows"][0]["number"], frozen["run"]["windows"][-1]["number"])
        self.assertLessEqual(len(last["run"]["windows"]), 4)
        for report in (frozen, last):
            step = self.regions(report)[("main", "step")]
            self.assertGreaterEqual(step["occurrences"], 2)
            # Full of steps, but for the two at its edges: as long as the longest one and the shortest.
            self.assertGreaterEqual(step["wall_ns"]["inclusive"] + 2 * step["wall_ns"]["max"], 0.9 * report["run"]["duration_ns"])
        for run in (marked, os.path.dirname(self.captures())):  # what was open is cut, and proved
            self.assertEqual(self.tool("runs", "verify", run).stdout.count("still being written"), 0)
        for capture in glob.glob(f"{marked}/native/*/*.rstrace"):
            self.assertLess(os.path.getsize(capture), 1 << 30)
        self.assertIn("main > step", self.tool("compare", marked, os.path.dirname(self.captures())).stdout)

    def test_a_slow_range_and_a_crash_keep_them_too(self):
        few = ("import os, time\nimport rangescope\nprint('ready', flush=True)\n"
               "def step(seconds):\n with rangescope.range('step'): time.sleep(seconds)\n"
               "for _ in range({0}): step(0.002)\n")
        # The windows of these end. Then comes a slow one, and others until five more windows have ended: it is in none of the last ones.
        # (The median: on a busy machine one step of a hundred takes a tenth of a second.)
        slow = few.format(110) + ("def until(window):\n while windows() < window: step(0.002)\n"
                                  "windows = lambda: max(int(name[7:]) for name in os.listdir(os.environ['RANGESCOPE_DIR']) if name[:7] == 'window-')\n"
                                  "until(windows() + 2)\nstep(0.5)\nuntil(windows() + 5)\nos.abort()")
        steps, _ = self.profile(slow, "--keep-last", "1s", "--when", "step > p50 * 25")
        _, told = self.end(steps, -signal.SIGABRT)
        took = re.findall(r"--when: step took ([\d.]+) (ms|s)", told)
        self.assertTrue(took, told)
        self.assertGreaterEqual(max(float(time) * (1000 if unit == "s" else 1) for time, unit in took), 500, told)
        marks = glob.glob(f"{self.folder}/rangescope-runs/*/marks/*")  # a busy machine makes other steps slow too
        slowest = [self.regions(self.report("report", mark))[("step",)]["wall_ns"]["max"] for mark in marks]
        self.assertGreater(max(slowest), 100e6)  # the part of it that was still kept when it was noticed
        last = self.report()
        self.assertGreater(last["run"]["windows"][0]["number"], 1)
        self.assertLess(self.regions(last)[("step",)]["wall_ns"]["max"], max(slowest))
        self.assertNotIn("warning: --when", told)
        for condition, hint in (("outer > step > 1us", "name the range alone: step"), ("st* > 1us", "a name, not a pattern")):
            steps, _ = self.profile(few.format(10), "--keep-last", "1s", "--when", condition)
            _, told = self.end(steps, 0)
            self.assertRegex(told, f"warning: --when: no range '.*' ended while the program ran; .*{hint}")
        short = "import rangescope\nprint('ready', flush=True)\nwith rangescope.range('step'): pass"
        steps, _ = self.profile(short, "--keep-last", "10s", "--when", "step > 1s")  # it is in the last window alone
        _, told = self.end(steps, 0)
        self.assertNotIn("warning: --when", told)
        for wrong in ("step", "step > ", "> p99", "step > p0", "step > p100", "step > p99 * 0", "step > 3ms * 2", "step > x"):
            self.tool("profile", "--keep-last", "1s", "--when", wrong, "--", "true", code=64)
        self.tool("profile", "--when", "step > 1ms", "--", "true", code=64)
        self.tool("profile", "--keep-last", "1s", "--stopped", "--", "true", code=64)

    def test_a_python_program_opens_windows_itself(self):
        program = ("import time\nimport rangescope\n"
                   "def steps(count):\n for _ in range(count):\n  with rangescope.range('step'): time.sleep(0.002)\n"
                   "steps(20)\n"
                   "for count in (30, 40):\n with rangescope.window() as outer:\n  steps(count)\n"
                   "  with rangescope.window() as inner: steps(1)\n"
                   "  print(outer.opened, inner.opened)\n"
                   "steps(20)")
        done = self.tool("profile", "--stopped", "--", PYTHON, "-c", program)
        self.assertEqual(done.stdout, "True False\n" * 2)
        report = self.report()
        self.assertEqual(len(report["run"]["windows"]), 2)
        self.assertEqual(self.regions(report)[("step",)]["occurrences"], 72)
        for command in ([PYTHON, "-c", program], [TOOL, "profile", "-q", "--", PYTHON, "-c", program]):
            done = cases.run(command, cwd=self.folder, env=self.env)
            self.assertEqual((done.returncode, done.stdout), (0, "False False\n" * 2), done.stderr)

    def test_ranges_that_opened_before_the_window_are_counted(self):
        program = ("import rangescope\n"
                   "request, parse = rangescope.range('request'), rangescope.range('parse')\n"
                   "request.__enter__()\nparse.__enter__()\n"
                   "with rangescope.window():\n"
                   " with rangescope.range('step'): pass\n"
                   " parse.__exit__(None, None, None)\n request.__exit__(None, None, None)\n"
                   " with rangescope.range('step'): pass\n")
        self.tool("profile", "--stopped", "--", PYTHON, "-c", program)
        report = self.report()
        self.assertEqual({path: region["occurrences"] for path, region in self.regions(report).items()}, {("step",): 2})
        self.assertEqual([loss["count"] for loss in report["losses"] if loss["kind"] == "open_before"], [2])

    @unittest.skipUnless(sys.argv[3:], "built without CUPTI's headers")
    def test_work_of_the_gpu_is_that_of_the_windows(self):
        self.env["RANGESCOPE_CUPTI"] = sys.argv[3]
        self.env.update(STANDIN_CORRELATIONS="2500", STANDIN_CALLBACKS_OFTEN="1")
        steps = self.start(TOOL, "profile", "--stopped", "--", sys.argv[4], "steps", "12000")  # of one to three kernels of 10 us
        cases.until(lambda: glob.glob(f"{self.folder}/rangescope-runs/*/native/*.gpu"))
        program = self.program()
        for _ in range(2):
            self.ctl("start")
            cases.spends(0.04, program)
            self.ctl("stop")
        live = self.report("ctl", "latest", "report", "2")
        self.end(steps, 0)
        both, second = self.report(), self.report("report", f"{self.captures()}/window-2")
        self.assertEqual(self.regions(live)[("step",)]["gpu"]["kernels"], self.regions(second)[("step",)]["gpu"]["kernels"])
        self.assertEqual(len(both["devices"]), 1)
        for report in (second, both):
            step = self.regions(report)[("step",)]
            self.assertFalse(step["gpu"]["partial"])
            self.assertAlmostEqual(step["gpu"]["kernels"] / step["occurrences"], 2, delta=0.02)
            self.assertAlmostEqual(step["gpu"]["kernel_ns"], 10_000 * step["gpu"]["kernels"], delta=10_000)
            self.assertLess(step["occurrences"], 9000)
        self.assertGreater(self.regions(both)[("step",)]["gpu"]["kernels"], 1.2 * self.regions(second)[("step",)]["gpu"]["kernels"])

    @unittest.skipUnless(sys.argv[3:], "built without CUPTI's headers")
    def test_the_program_says_where_by_cuprofilerstart(self):
        """Thirty steps; started before 10 and again before 12, stopped before 20 and again before 25."""
        self.env["RANGESCOPE_CUPTI"] = sys.argv[3]
        self.tool("profile", "--capture-range", "cudaProfilerApi", "--", sys.argv[4], "profiled")
        report = self.report()
        step = self.regions(report)[("step",)]
        self.assertEqual((step["occurrences"], step["gpu"]["kernels"], step["gpu"]["partial"]), (10, 10, False))
        self.assertEqual(len(report["run"]["windows"]), 1)
        shutil.rmtree(f"{self.folder}/rangescope-runs")
        uncalled = self.tool("profile", "--capture-range", "cudaProfilerApi", "--", sys.argv[4], "steps", "10", code=80)
        self.assertIn("did not call cudaProfilerStart()", uncalled.stderr)

    def test_windows_of_an_h200(self):
        """tests/gpu/windows_program.py: each decode replays a graph of 32 kernels and launches one; four windows."""
        report = json.loads(self.tool("report", f"{SOURCE}/tests/golden/native-gpu/windows", "-f", "json").stdout)
        self.assertEqual([window["number"] for window in report["run"]["windows"]], [1, 2, 3, 4])
        decode = next(r for r in report["regions"] if r["path"] == ["decode"])
        self.assertEqual(decode["occurrences"], 475)
        self.assertAlmostEqual(decode["gpu"]["kernels"], 475 * 33, delta=4 * 33)
        lost = {loss["kind"]: loss["count"] for loss in report["losses"]}
        self.assertLess(lost["kernel_without_launch"], 4 * 33)  # of the tokens under way when a window began
        self.assertLessEqual(lost.get("gpu_work_without_call", 0), 32)  # each is lost in one window, not in all

    def test_a_server_under_load_survives_a_hundred_windows(self):
        tool, port = self.profile(SERVER, "--stopped")
        over, errors, answers = threading.Event(), [], [0, 0]

        def ask(client):
            asked = http.client.HTTPConnection("127.0.0.1", int(port), timeout=cases.PATIENCE_S)
            while not over.is_set():
                try:
                    asked.request("GET", "/")
                    answer = asked.getresponse().read().decode()
                    if answer != ANSWER:
                        raise ValueError(answer)
                    answers[client] += 1
                except Exception as error:  # pylint: disable=broad-except
                    errors.append(repr(error))
                    return

        clients = [threading.Thread(target=ask, args=(client,)) for client in range(2)]
        for client in clients:
            client.start()
        path = f"{self.captures()}/control.sock"
        try:
            for _ in range(100):
                for request in (b"start\n", b"stop\n"):
                    with socket.socket(socket.AF_UNIX) as control:
                        control.connect(path)
                        control.sendall(request)
                        self.assertEqual(control.recv(100)[:9], b"ok window", request)
                    before = list(answers)  # the second from now on was asked for after now
                    cases.until(lambda: errors or min(now - then for now, then in zip(answers, before)) >= 2)
            served = json.loads(self.ctl("report", "50", "-f", "json").stdout)
        finally:
            over.set()
            for client in clients:
                client.join()
        self.assertEqual(errors, [])
        self.assertGreaterEqual(min(answers), 400)
        self.assertEqual(served["run"]["windows"][0]["number"], 50)
        tool.send_signal(signal.SIGTERM)
        self.end(tool, -signal.SIGTERM)
        report = self.report()
        self.assertEqual([window["number"] for window in report["run"]["windows"]], list(range(1, 101)))
        self.assertEqual(len({process["pid"] for process in report["processes"]}), 1)
        regions = self.regions(report)
        self.assertLessEqual(set(regions), {("request",), ("request", "render"), ("render",)})
        self.assertGreaterEqual(regions[("request",)]["occurrences"], 200)

    def connect(self):
        client = socket.socket(socket.AF_UNIX)
        client.connect(f"{self.captures()}/control.sock")
        client.settimeout(cases.PATIENCE_S)
        return client

    def test_hostile_clients_hold_up_nobody(self):
        steps, _ = self.profile(STEPS, "--stopped")
        clients = []
        for number in range(1000):
            client = self.connect()
            clients.append(client)
            try:
                if number % 4 == 0:
                    client.send(b"sta")  # half a message, and no more
                elif number % 4 == 1:
                    client.send(os.urandom(64).replace(b"\n", b""))
                elif number % 4 == 2:
                    client.send(b"x" * 1_000)  # longer than a request may be
                # and some that say nothing
            except OSError:
                pass
        self.assertEqual(self.ctl("status").stdout.splitlines()[0], "dormant")  # while all of them hold on
        deaf = self.connect()
        deaf.send(b"status\n" * 1000)  # and never reads
        for request in (b"\n", b"START\n", b"start \n", b"start;rm\n", b"\0\n", b"stop\r\n", b"\xff\xfe\n", b"mark\n"):
            with self.connect() as client:
                client.send(request)
                self.assertTrue(client.recv(100).startswith(b"error "), request)
        self.ctl("start")
        for client in clients + [deaf]:
            client.close()
        self.takes(2)
        self.ctl("stop")
        self.end(steps)
        self.assertEqual([window["number"] for window in self.report()["run"]["windows"]], [1])

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "only root can be two users")
    def test_other_users_are_not_heard(self):
        steps, _ = self.profile(STEPS, "--stopped")
        path = f"{self.captures()}/control.sock"
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertEqual(os.stat(os.path.dirname(self.captures())).st_mode & 0o777, 0o700)
        for opened in (self.folder, f"{self.folder}/rangescope-runs", os.path.dirname(self.captures()), self.captures(), path):
            os.chmod(opened, 0o777)  # as if somebody had opened all doors
        ask = ("import socket, sys\nwith socket.socket(socket.AF_UNIX) as client:\n client.connect(sys.argv[1])\n"
               " try:\n  client.send(b'start\\n')\n  print(client.recv(100))\n except OSError: print(b'')")
        done = cases.run(["setpriv", "--reuid=65534", "--clear-groups", "/usr/bin/python3", "-c", ask, path], cwd="/")
        self.assertEqual((done.returncode, done.stdout), (0, "b''\n"), done.stderr)
        self.assertEqual(self.ctl("status").stdout.splitlines()[:2], ["dormant", "window 0"])
        self.end(steps)

    def test_the_client_trusts_nobody(self):
        steps, _ = self.profile(STEPS, "--stopped")
        self.assertIn("is not a window number", self.ctl("report", "4294967297", code=64).stderr)
        self.end(steps)
        path, run = f"{self.captures()}/control.sock", os.path.dirname(self.captures())
        answers = ("import os, socket, sys\nserver = socket.socket(socket.AF_UNIX)\nserver.bind(sys.argv[1])\nserver.listen(1)\nprint('listens', flush=True)\n"
                   "client, _ = server.accept()\nclient.recv(100)\nclient.sendall(b'ok \\x1b[31mred\\n')\n")

        def ask(*become, code):
            if os.path.lexists(path):
                os.remove(path)
            with subprocess.Popen([*become, "/usr/bin/python3", "-c", answers, path], stdout=subprocess.PIPE, text=True, cwd="/") as server:
                self.assertEqual(server.stdout.readline(), "listens\n")
                done = self.ctl("status", code=code)
                server.kill()
            return done
        self.assertEqual(ask(code=0).stdout, "\\x1b[31mred\n")
        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        for opened in (self.folder, f"{self.folder}/rangescope-runs", run, self.captures()):
            os.chmod(opened, 0o777)
        self.assertIn("another user's process answers", ask("setpriv", "--reuid=65534", "--clear-groups", code=77).stderr)
        os.chown(run, 65534, 65534)
        self.assertIn("the run belongs to another user", self.ctl("status", code=77).stderr)

    def test_a_page_that_is_cut_costs_the_recording_alone(self):
        steps, _ = self.profile(STEPS, "--stopped")
        self.ctl("start")
        self.takes(3)
        os.truncate(f"{self.captures()}/control", 0)
        self.takes(3)
        self.ctl("stop")
        self.end(steps)

    def test_a_killed_profiler_leaves_the_program_alone(self):
        steps, _ = self.profile(STEPS, "--stopped")
        self.ctl("start")
        self.takes(2)
        pid = self.program()
        steps.kill()
        steps.wait()
        self.assertIn("the program has ended", self.ctl("stop", code=66).stderr)
        self.takes(2)
        self.assertRegex(cases.contents(f"/proc/{pid}/status"), r"State:\s[RSD]")
        out, _ = steps.communicate(timeout=cases.PATIENCE_S)  # its standard input ends
        self.assertIn("steps ", out)

    def test_no_window_at_all(self):
        steps, _ = self.profile(STEPS, "--after", "1h")
        _, told = self.end(steps, 3)
        self.assertIn("ended before its first window", told)
        shutil.rmtree(f"{self.folder}/rangescope-runs")
        true = self.tool("profile", "--stopped", "--", "true", code=80)
        self.assertIn("no window was opened", true.stderr)

    def test_windows_that_begin_with_the_program_hold_its_first_ranges(self):
        for option in ("--for", "--keep-last"):
            for _ in range(10):
                self.tool("profile", option, "1h", "--", f"{BIN}/cli_victim")
                regions = self.regions(self.report())
                self.assertEqual({path: region["occurrences"] for path, region in regions.items()},
                                 {("step",): 4, ("step", "layer"): 4})

    def test_what_windows_cannot_hold_is_refused_by_name(self):
        for option in (["--repeat", "2"], ["--metrics", "roofline"], ["--cpu-counters", "software"], ["--nsys"]):
            done = self.tool("profile", "--for", "1s", *option, "--", "true", code=64)
            self.assertIn(option[0], done.stderr)
        self.assertFalse(os.path.exists(f"{self.folder}/rangescope-runs"))
        self.tool("profile", "--", "true", code=0)
        self.assertIn("records its program from start to end", self.ctl("start", code=66).stderr)
        self.assertIn("does not belong to a program under rangescope profile", self.tool("ctl", os.getpid(), "status", code=66).stderr)


if __name__ == "__main__":
    cases.main()
