#!/usr/bin/env python3
"""`rangescope attach`: processes that run already. Usage: attach.py BIN_DIR VICTIM SOURCE_DIR [LIBCUPTI CUDA_VICTIM]

$RANGESCOPE_ATTACHES: how often to attach to the program that checks itself, and $RANGESCOPE_ATTACH_KILLS how often
rangescope is killed at a random moment of it.

No window ends by the clock where its content matters: it ends by SIGINT, once the program has used so much CPU time in it (`spends`).
"""
import contextlib
import http.client
import json
import os
import random
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
from cases import contents, spends  # noqa: E402

BIN, VICTIM, SOURCE = (os.path.abspath(path) for path in sys.argv[1:4])
TOOL = f"{BIN}/rangescope"
HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
ANSWER = sum(row * row % 7 for row in range(20_000))


def waits(pid):
    """Waits until it sleeps, in the program that was asked for and not on the way there."""
    sleeps = {"x86_64": ("35", "230"), "aarch64": ("101", "115")}[os.uname().machine]
    cases.until(lambda: contents(f"/proc/{pid}/syscall").split()[0] in sleeps, f"sleep of process {pid}")


class Load:
    """Two clients that ask a server without pause; every answer must be whole."""

    def __init__(self, port):
        self.port, self.over, self.answers, self.errors = port, threading.Event(), 0, []
        self.threads = [threading.Thread(target=self.work) for _ in range(2)]
        for thread in self.threads:
            thread.start()

    def work(self):
        while not self.over.is_set():
            try:
                asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=cases.PATIENCE_S)
                asked.request("GET", "/")
                answer = json.loads(asked.getresponse().read())
                if answer != {"answer": ANSWER}:
                    raise ValueError(answer)
                asked.close()
                self.answers += 1
            except Exception as error:  # pylint: disable=broad-except
                self.errors.append(repr(error))

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


class Attach(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """The library's loader looks for ten seconds for a thread that it may use; what finds none runs next to the other cases."""
        cls.never_free = [subprocess.Popen(["sleep", "10000"])]  # longer than what may begin anew, and no other thread
        if sys.argv[4:]:
            waits(cls.never_free[0].pid)
            cls.never_free.append(subprocess.Popen([TOOL, "attach", str(cls.never_free[0].pid), "--gpu", "on", "--for", "1s"], cwd="/",
                                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))

    @classmethod
    def tearDownClass(cls):
        for process in cls.never_free:
            process.kill()
            process.communicate()

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rangescope-attach-")
        self.env = {**os.environ, "XDG_CACHE_HOME": f"{self.folder}/cache"}
        self.started = []

    def tearDown(self):
        for process in self.started:
            process.kill()
            process.communicate()
        shutil.rmtree(self.folder)

    def start(self, *argv, **options):
        process = subprocess.Popen([str(word) for word in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
        self.started.append(process)
        return process

    def server(self):
        process = self.start(PYTHON, f"{HERE}/server.py")
        return process, int(process.stdout.readline())

    def tool(self, *words):
        done = cases.run([TOOL, *words], cwd=self.folder, env=self.env)
        if done.returncode in (69, 77) and "perf_event" in done.stderr:
            self.skipTest(done.stderr.strip())
        return done

    def attach(self, pid, *words):
        done = self.tool("attach", pid, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def open_window(self, pid, *words):
        """A window that is open until close_window."""
        tool = self.start(TOOL, "attach", pid, "--for", "10h", *words, cwd=self.folder, env=self.env, stderr=subprocess.PIPE)
        told = ""
        while "attached to process" not in told:
            line = tool.stderr.readline()
            self.assertTrue(line, told)
            told += line
        return tool

    def close_window(self, tool):
        """What it printed, and what it told."""
        tool.send_signal(signal.SIGINT)
        out, told = tool.communicate(timeout=cases.PATIENCE_S)
        self.assertEqual(tool.returncode, 0, told)
        self.assertIn("SIGINT ended the window", told)
        return out, told

    def attach_while(self, happens, pid, *words):
        """What a window printed that was open until `happens` came back."""
        tool = self.open_window(pid, *words)
        happens()
        return self.close_window(tool)[0]

    def assert_hottest(self, function, out):
        """Its Python function that has most samples; in the first line where the machine let it run."""
        python = [f for f in self.report()["regions"][0]["cpu"]["functions"] if f["python"]]
        self.assertEqual(f"{os.path.basename(python[0]['file'])}:{python[0]['name']}", function)
        first = " ".join(out.split("\n1. ")[1].split("   try:")[0].split())
        if "waiting for a CPU" not in first:
            file, name = function.split(":")
            self.assertRegex(first, rf"{file}:{name}|{name} \({file}:\d+\)")

    def report(self, *words):
        report = json.loads(self.tool("report", *(words or ["latest"]), "-f", "json").stdout)
        with open(f"{SOURCE}/docs/formats/report.schema.json", encoding="utf-8") as f:
            self.assertEqual(json_schema.errors(report, json.load(f)), [])
        return report

    def kept(self):
        return cases.newest_run(f"{self.folder}/rangescope-runs")

    def test_the_first_line_names_the_hot_function_of_a_server_under_load(self):
        server, port = self.server()
        load = Load(port)
        try:
            spends(0.5, server.pid)
            out = self.attach_while(lambda: spends(1, server.pid), server.pid)
            self.assert_hottest("server.py:render_page", out)
            self.attach(server.pid, "--for", "300ms")
        finally:
            load.end()
        self.assertEqual(load.errors, [])
        self.assertGreater(load.answers, 100)
        self.assertIn(f"s of process {server.pid}", out)
        report = self.report()
        self.assertEqual(report["run"]["attached"]["pid"], server.pid)
        self.assertGreater(report["run"]["attached"]["after_ns"], 5e8)  # which it had spent
        self.assertIsNone(report["run"]["exit_code"])
        self.assertEqual([process["pid"] for process in report["processes"]], [server.pid])
        self.assertGreaterEqual(report["run"]["duration_ns"], 3e8)
        self.assertEqual(report["regions"][0]["wall_ns"]["inclusive"], report["run"]["duration_ns"])
        with open(f"{self.kept()}/manifest.json", encoding="utf-8") as file:
            manifest = json.load(file)
        self.assertEqual(manifest["argv"], [PYTHON, f"{HERE}/server.py"])
        self.assertIsNone(manifest["exit"])
        runs = sorted(name for name in os.listdir(f"{self.folder}/rangescope-runs") if name[0].isdigit())
        compared = self.tool("compare", *runs)
        self.assertEqual(compared.returncode, 0, compared.stderr)
        self.assertEqual(self.tool("runs", "verify", runs[0]).returncode, 0)

    def test_the_workers_of_gunicorn_under_load(self):
        if cases.run([PYTHON, "-c", "import gunicorn"]).returncode:
            self.skipTest("gunicorn is not installed")
        with open(f"{self.folder}/shop.py", "w", encoding="utf-8") as file:
            file.write("import json\n"
                       "def price_of(row): return row * row % 7\n"
                       "def render_page(rows):\n total = 0\n for row in range(rows): total += row * row % 7\n return total\n"
                       "def app(environ, start_response):\n"
                       " body = json.dumps({'answer': render_page(20_000)}).encode()\n"
                       " start_response('200 OK', [('Content-Length', str(len(body)))])\n return [body]\n")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        master = self.start(PYTHON, "-m", "gunicorn", "-w", "2", "-b", f"127.0.0.1:{port}", "--log-level", "error", "shop:app",
                            cwd=self.folder)

        def answers():
            with socket.socket() as client:
                return client.connect_ex(("127.0.0.1", port)) == 0

        def workers():
            return [int(pid) for pid in contents(f"/proc/{master.pid}/task/{master.pid}/children").split()]

        cases.until(answers)
        cases.until(lambda: len(workers()) == 2)
        load = Load(port)
        try:
            spends(0.2, *workers())
            out = self.attach_while(lambda: spends(0.5, *workers()), master.pid, "--tree")
        finally:
            load.end()
        self.assertEqual(load.errors, [])
        self.assertGreater(load.answers, 50)
        self.assert_hottest("shop.py:render_page", out)
        self.assertEqual(len(self.report()["processes"]), 3)
        master.terminate()
        self.assertEqual(master.wait(timeout=cases.PATIENCE_S), 0)

    def test_a_signal_ends_the_window_early(self):
        server, _ = self.server()
        out, _ = self.close_window(self.open_window(server.pid))
        self.assertIn("\nprogram ", out)
        self.assertLess(self.report()["run"]["duration_ns"], 36_000e9)
        self.assertIsNone(server.poll())

    def test_a_process_that_ends_meanwhile_is_reported_on(self):
        busy = self.start(PYTHON, "-c", "import sys, threading\nover = threading.Event()\n"
                          "threading.Thread(target=lambda: (sys.stdin.read(), over.set())).start()\nprint(1, flush=True)\n"
                          "def spin():\n while not over.is_set(): pass\nspin()\nraise SystemExit(3)")
        busy.stdout.readline()
        tool = self.open_window(busy.pid)
        spends(0.3, busy.pid)
        busy.stdin.close()
        busy.stdin = None
        out, told = tool.communicate(timeout=cases.PATIENCE_S)
        self.assertEqual(tool.returncode, 0, told)
        self.assertIn("ended before the window did", told)
        self.assertIn("spin", out)
        self.assertLess(self.report()["run"]["duration_ns"], 36_000e9)

    def test_waits_of_threads_that_slept_before_are_whole(self):
        sleeper = self.start("sleep", "10000")
        waits(sleeper.pid)
        self.attach(sleeper.pid, "--for", "200ms")
        region = self.report()["regions"][0]
        self.assertEqual(region["cpu"]["samples"], 0)
        waiting = {part["name"]: part["ns"] for part in region["cpu"]["parts"]}
        self.assertEqual(waiting, {"sleep": region["wall_ns"]["inclusive"]})

    def test_its_secrets_are_redacted(self):
        secret = "correct-horse-battery"  # a word like others: only its own environment says what it is
        script = os.path.join(self.folder, secret, "app.py")
        os.mkdir(os.path.dirname(script))
        with open(script, "w", encoding="utf-8") as file:
            file.write("def spin():\n while True: pass\nprint('up', flush=True)\nspin()\n")
        process = self.start(PYTHON, script, secret, env={**os.environ, "SERVICE_TOKEN": secret})
        self.assertEqual(process.stdout.readline(), "up\n")
        done = self.tool("attach", str(process.pid), "--for", "500ms", "--runs", "runs")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(secret, done.stdout + done.stderr)
        self.assertIn("<redacted:", done.stderr)
        self.assertIn("spin (app.py:1)", done.stdout)
        for options in ([], ["-f", "json"]):
            dumped = self.tool("attach", str(process.pid), "--dump", *options)
            self.assertIn("spin", dumped.stdout, dumped.stderr)
            self.assertNotIn(secret, dumped.stdout + dumped.stderr)
        for folder, _, files in os.walk(f"{self.folder}/runs"):
            for name in files:
                with open(os.path.join(folder, name), "rb") as file:
                    self.assertNotIn(secret.encode(), file.read(), name)

    def test_a_process_whose_first_thread_has_ended(self):
        program = self.start(f"{BIN}/attach_corners", "first")
        self.assertEqual(program.stdout.readline(), "ready\n")
        cases.until(lambda: ") Z " in contents(f"/proc/{program.pid}/stat"))
        self.attach_while(lambda: spends(0.5, program.pid), program.pid)
        hottest = self.report()["regions"][0]["cpu"]["functions"][0]
        self.assertIn("goes_on", hottest["name"])
        self.assertIn("goes_on", self.attach(program.pid, "--dump").stdout)
        if sys.argv[4:]:
            self.env["RANGESCOPE_CUPTI"] = sys.argv[4]
            self.attach_while(lambda: spends(0.05, program.pid), program.pid, "--gpu", "on")
            self.assertIn("librangescope_inject", contents(f"/proc/{program.pid}/task/{os.listdir(f'/proc/{program.pid}/task')[-1]}/maps"))
        out, _ = program.communicate(timeout=cases.PATIENCE_S)
        self.assertEqual((program.returncode, out), (0, "ok\n"))

    def test_children_are_its_tree(self):
        spin = "def hot():\n while True: pass\nhot()"
        shell = self.start("sh", "-c", '"$0" -c "$1" & echo $!; wait', PYTHON, spin)
        child = int(shell.stdout.readline())
        try:
            spends(0.2, child)
            alone = self.attach_while(lambda: spends(0.1, child), shell.pid)
            self.assertNotIn("hot (<string>", alone)
            self.assertEqual([process["pid"] for process in self.report()["processes"]], [shell.pid])
            tree = self.attach_while(lambda: spends(0.3, child), shell.pid, "--tree")
            self.assertIn("hot (<string>", tree)
            self.assertEqual(sorted(process["pid"] for process in self.report()["processes"]), sorted([shell.pid, child]))
        finally:
            os.kill(child, signal.SIGKILL)

    def refused(self, pid, code, text, user=None):
        before = ["setpriv", f"--reuid={user}", "--clear-groups"] if user else []
        done = cases.run([*before, TOOL, "attach", pid, "--for", "1s"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(text, done.stderr)
        self.assertEqual(os.path.exists(f"{self.folder}/rangescope-runs"), False)

    def test_refusals_by_name(self):
        gone = self.start("true")
        gone.wait()
        self.refused(gone.pid, 66, f"there is no process {gone.pid}")
        self.refused("abc", 64, "is not a process id")
        self.refused("0", 64, "is not a process id")
        zombie = subprocess.Popen([PYTHON, "-c", "import os, sys\npid = os.fork()\nif pid == 0: os._exit(0)\n"
                                   "print(pid, flush=True)\nsys.stdin.read()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.started.append(zombie)
        pid = int(zombie.stdout.readline())
        cases.until(lambda: ") Z " in contents(f"/proc/{pid}/stat"))
        self.refused(pid, 66, "a zombie")
        victim = self.start(VICTIM)
        victim.stdout.readline()
        thread = next(int(tid) for tid in os.listdir(f"/proc/{victim.pid}/task") if int(tid) != victim.pid)
        self.refused(thread, 64, f"is a thread of process {victim.pid}")
        if os.path.exists("/proc/2/stat"):
            with open("/proc/2/stat", encoding="utf-8") as file:
                if "(kthreadd)" in file.read():
                    self.refused(2, 64, "thread of the kernel")

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "only root can be two users")
    def test_another_users_process_is_refused(self):
        os.chmod(self.folder, 0o777)
        sleeper = self.start("sleep", "10000")
        self.refused(sleeper.pid, 77, "belongs to another user (root)", user=65534)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "root may look at every process")
    def test_a_process_that_closed_itself_is_refused(self):
        os.chmod(self.folder, 0o777)
        closed = self.start("setpriv", "--reuid=65534", "--clear-groups", PYTHON, "-c", "import ctypes, sys\n"
                            "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\nprint(1, flush=True)\nsys.stdin.read()")
        closed.stdout.readline()
        self.refused(closed.pid, 77, "cannot be inspected", user=65534)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("strace") and shutil.which("unshare"), "only root can stand in for Yama")
    def test_yamas_refusal_is_named(self):
        """A kernel without Yama: its file is mounted, and the open that it refuses is refused by strace."""
        sleeper = self.start("sleep", "10000")
        os.makedirs(f"{self.folder}/kernel/yama", exist_ok=True)
        for name, text in (("perf_event_paranoid", "2\n"), ("perf_event_mlock_kb", "516\n"), ("yama/ptrace_scope", "1\n")):
            with open(f"{self.folder}/kernel/{name}", "w", encoding="utf-8") as file:
                file.write(text)
        done = cases.run(["unshare", "-m", "sh", "-c", 'mount --bind "$0" /proc/sys/kernel && exec "$@"', f"{self.folder}/kernel",
                          "strace", "-f", "-o", "/dev/null", "-P", f"/proc/{sleeper.pid}/mem", "-e", "inject=openat:error=EPERM",
                          TOOL, "attach", sleeper.pid, "--for", "200ms"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: kernel.yama.ptrace_scope is 1, so its memory cannot be read", done.stderr)
        self.assertIn("Python functions are missing", done.stderr)

    def test_what_forbids_sampling_is_named(self):
        sleeper = self.start("sleep", "10000")
        waits(sleeper.pid)
        command = [sys.executable, f"{SOURCE}/tests/cpu/forbid.py", TOOL, "attach", sleeper.pid, "--for", "300ms"]
        done = cases.run([*command, "--cpu", "199Hz"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("seccomp", done.stderr)
        self.assertFalse(os.path.exists(f"{self.folder}/rangescope-runs"))
        done = cases.run(command, cwd=self.folder, env=self.env)  # /proc is read instead
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("% waiting: sleep", done.stdout)
        region = self.report()["regions"][0]
        self.assertEqual(region["cpu"]["samples"], 0)
        self.assertGreater(region["cpu"]["split"]["waiting"], 0.9 * region["wall_ns"]["inclusive"])
        self.assertIn("cpu_polled", done.stdout)

    def left(self, pid):
        """What of ours could be left in a process: threads, descriptors, files that are mapped from the run."""
        with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
            mapped = [line for line in file if self.folder in line]
        return len(os.listdir(f"/proc/{pid}/task")), len(os.listdir(f"/proc/{pid}/fd")), mapped

    @unittest.skipUnless(sys.argv[4:], "built without CUPTI's headers")
    def test_work_of_the_gpu_is_that_of_the_window(self):
        self.env["RANGESCOPE_CUPTI"] = sys.argv[4]
        program = self.start(sys.argv[5], "steps", "3000000")  # of one to three kernels of 10 us
        cases.until(lambda: "libcuda" in contents(f"/proc/{program.pid}/maps"))
        spends(0.02, program.pid)
        before = self.left(program.pid)
        cpu = self.attach(program.pid, "--gpu", "off", "--for", "100ms")
        self.assertNotIn("uses CUDA", cpu.stderr)
        self.assertIn("uses CUDA: --gpu on records its GPU work too", self.attach(program.pid, "--for", "100ms").stderr)
        self.assertNotIn("librangescope_inject", contents(f"/proc/{program.pid}/maps"))
        kernels = []
        for how in (("auto",), ("auto",), ("on", "--cpu", "off")):  # from the second time on the library is there already
            self.attach_while(lambda: spends(0.05, program.pid), program.pid, "--gpu", *how)
            report = self.report()
            program_region, = report["regions"]
            kernels.append(program_region["gpu"]["kernels"])
            self.assertAlmostEqual(program_region["gpu"]["kernel_ns"], 10_000 * kernels[-1], delta=40_000)
            device, = report["devices"]  # its context was made before: CUPTI does not tell of it
            self.assertNotIn("", (device["name"], device["uuid"] or ""))
            self.assertGreater(device["sm_count"], 0)
            self.assertEqual([process["pid"] for process in report["processes"]], [program.pid])
            # At the window's edge the kernels of one step can be without the launch that was before it.
            edge = [loss["count"] for loss in report["losses"] if loss["kind"] == "kernel_without_launch"]
            self.assertLessEqual(sum(edge), 3)
            self.assertEqual([loss for loss in report["losses"] if not loss["kind"].startswith(("cpu_", "kernel_without"))], [])
            self.assertGreater(program_region["gpu"]["syncs"], 0)  # calls are recorded
            self.assertEqual(program_region.get("cpu") is None, "off" in how)
            self.assertEqual(self.left(program.pid), before)
            self.assertEqual([name for name in os.listdir(f"{self.kept()}/native") if name.startswith("attached")], [])
        self.assertGreater(min(kernels), 50, cpu.stderr)
        killed = self.open_window(program.pid, "--gpu", "auto")
        self.assertGreater(self.left(program.pid)[0], before[0])
        killed.kill()
        killed.wait()
        cases.until(lambda: self.left(program.pid) == before)
        self.assertIsNone(program.poll())

    def test_functions_and_modules_of_the_newest_pythons(self):
        cupti = "".join(sys.argv[4:5])  # else built without its headers
        self.env.update(RANGESCOPE_CUPTI=cupti, RANGESCOPE_MODULES="64")
        spin = "def serve(): sum(range(100))\nprint(1, flush=True)\nwhile True: serve()"
        program = (f"import sys, time\nsys.path.insert(0, {SOURCE + '/tests/modules'!r})\nimport program\n"
                   "x, _ = program.start()\nmodel = program.Model()\n"
                   "def serve():\n until = time.time() + 0.01\n while time.time() < until: sum(range(100))\n model(x)\n time.sleep(0.002)\n"
                   "print(1, flush=True)\nwhile True: serve()")
        for version, python in cases.newest_pythons(self).items():
            with self.subTest(version):
                env = {**os.environ, "SMALL": f"{SOURCE}/tests/modules/small", "STANDIN_CUDA": f"{os.path.dirname(cupti)}/../cuda/libcuda.so.1"}
                process = self.start(python, "-c", program if cupti else spin, env=env)
                process.stdout.readline()
                self.assertIn("serve (<string>", self.attach_while(lambda: spends(0.3, process.pid), process.pid))
                if cupti:
                    self.attach_while(lambda: spends(0.3, process.pid), process.pid, "--gpu", "on")
                    regions = {tuple(region["path"]): region for region in self.report()["regions"]}
                    mlp = regions["Model", "model (Decoder)", "model.layers.2 (Layer)", "model.layers.2.mlp (Mlp)"]
                    self.assertGreater(mlp["gpu"]["kernels"], 10)
                    self.assertAlmostEqual(regions["Model",]["gpu"]["kernels"], 18 * mlp["occurrences"], delta=18)
                self.assertIsNone(process.poll())

    @unittest.skipUnless(sys.argv[4:], "built without CUPTI's headers")
    def test_work_of_the_gpu_of_children_and_of_a_rank(self):
        self.env["RANGESCOPE_CUPTI"] = sys.argv[4]
        shell = self.start("sh", "-c", 'RANK=0 "$0" steps 3000000 >/dev/null & echo $!; RANK=1 "$0" steps 3000000 >/dev/null & echo $!; '
                           'read line; RANK=2 "$0" steps 3000000 >/dev/null & echo $!; wait', sys.argv[5])
        children = [int(shell.stdout.readline()) for _ in range(2)]

        def launch(*pids):
            for pid in pids:
                cases.until(lambda pid=pid: "libcuda" in contents(f"/proc/{pid}/maps"))
            spends(0.02, *pids)

        def captures():
            return sorted(name for name in os.listdir(f"{self.kept()}/native") if name.endswith(".gpu"))

        try:
            launch(*children)
            self.attach_while(lambda: launch(children[1]), shell.pid, "--rank", "1", "--gpu", "on")
            report = self.report()
            self.assertEqual([process["pid"] for process in report["processes"]], [children[1]])
            self.assertIn("standin", report["processes"][0]["name"])
            self.assertGreater(report["regions"][0]["gpu"]["kernels"], 10)
            done = self.tool("attach", shell.pid, "--rank", "7", "--for", "500ms")
            self.assertEqual(done.returncode, 66, done.stderr)
            self.assertIn("is rank 7", done.stderr)
            self.assertIn("Ranks of these processes: 0, 1", done.stderr)
            tool = self.open_window(shell.pid, "--tree", "--gpu", "auto")
            shell.stdin.write("\n")  # a child that begins in the window
            shell.stdin.flush()
            children.append(int(shell.stdout.readline()))
            cases.until(lambda: len(captures()) == 3)
            launch(*children)
            self.assertEqual(captures(), sorted(f"{child}.gpu" for child in children))
            self.close_window(tool)
            report = self.report()
            self.assertEqual(sorted(process["pid"] for process in report["processes"]), sorted([shell.pid, *children]))
            self.assertEqual(len({process["name"] for process in report["processes"]}), 2, report["processes"])  # sh, and its children
            self.assertEqual(len({device["process"] for device in report["devices"]}), 3, report["devices"])
            self.assertGreater(sum(region["gpu"]["exclusive_kernels"] for region in report["regions"] if region["gpu"]), 30)
            self.assertEqual([loss for loss in report["losses"] if loss["kind"] == "gpu_unavailable"], [])
        finally:
            for child in children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)

    @unittest.skipUnless(sys.argv[4:], "built without CUPTI's headers")
    def test_refusals_to_be_loaded_by_name(self):
        sleeper = self.start("sleep", "10000")
        waits(sleeper.pid)
        sleeper.send_signal(signal.SIGSTOP)
        cases.until(lambda: ") T " in contents(f"/proc/{sleeper.pid}/stat"))
        done = cases.run([TOOL, "attach", sleeper.pid, "--gpu", "on", "--for", "1s"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("it is stopped", done.stderr)
        recorded = self.start(TOOL, "profile", "-q", "--", "sleep", "10000", cwd=self.folder, env=self.env)
        child = cases.until(lambda: cases.run(["pgrep", "-P", recorded.pid, "-x", "sleep"]).stdout.split())[0]
        done = cases.run([TOOL, "attach", child, "--gpu", "on", "--for", "1s"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("rangescope profile already records it", done.stderr)
        os.kill(int(child), signal.SIGKILL)
        _, told = self.never_free[1].communicate(timeout=cases.PATIENCE_S)
        self.assertEqual(self.never_free[1].returncode, 77, told)
        self.assertIn("no thread waited in a system call that can be restarted", told)

    @unittest.skipUnless(sys.argv[4:] and os.geteuid() == 0 and shutil.which("setpriv"), "only root can be two users; CUPTI's headers")
    def test_root_records_another_users_gpu_work_or_loads_nothing(self):
        self.env["RANGESCOPE_CUPTI"] = sys.argv[4]
        program = self.start("setpriv", "--reuid=65534", "--clear-groups", sys.argv[5], "steps", "3000000")
        cases.until(lambda: "libcuda" in contents(f"/proc/{program.pid}/maps"))
        done = self.tool("attach", program.pid, "--gpu", "on", "--for", "100ms")
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("cannot get to this folder", done.stderr)
        self.assertNotIn("librangescope_inject", contents(f"/proc/{program.pid}/maps"))
        os.chmod(self.folder, 0o711)  # as the hint says: in a folder that every user can enter
        shutil.rmtree(f"{self.folder}/rangescope-runs")
        self.attach_while(lambda: spends(0.05, program.pid), program.pid, "--gpu", "on")
        self.assertGreater(self.report()["regions"][0]["gpu"]["kernels"], 0)
        run, = os.listdir(f"{self.folder}/rangescope-runs")
        self.assertEqual(os.stat(f"{self.folder}/rangescope-runs/{run}").st_mode & 0o777, 0o700)

    @unittest.skipUnless(sys.argv[4:], "built without CUPTI's headers")
    def test_threads_without_room_or_in_an_allocator_are_let_be(self):
        self.env["RANGESCOPE_CUPTI"] = sys.argv[4]
        programs = {mode: self.start(f"{sys.argv[1]}/attach_corners", mode) for mode in ("coroutine", "deep", "allocator")}
        tools = {}
        for mode, program in programs.items():
            self.assertEqual(program.stdout.readline(), "ready\n")
            tools[mode] = self.start(TOOL, "attach", program.pid, "--gpu", "on", "--for", "1s", cwd=self.folder, env=self.env, stderr=subprocess.PIPE)
        for mode, tool in tools.items():
            with self.subTest(mode):
                _, told = tool.communicate(timeout=cases.PATIENCE_S)
                self.assertEqual(tool.returncode, 77, told)
                self.assertIn("no thread waited in a system call that can be restarted", told)
                out, _ = programs[mode].communicate(timeout=cases.PATIENCE_S)
                self.assertEqual((programs[mode].returncode, out), (0, "ok\n"))

    @unittest.skipUnless(sys.argv[4:], "built without CUPTI's headers")
    def test_a_program_that_checks_itself_is_whole_with_the_library_in_it(self):
        self.env["RANGESCOPE_CUPTI"] = sys.argv[4]
        self.is_left_whole("--gpu", "on")
        victim = self.start(VICTIM, "held")
        self.assertEqual(victim.stdout.readline(), "ready\n")
        for _ in range(5):
            self.attach(victim.pid, "--gpu", "on", "-q", "--for", "20ms", "-o", f"{self.folder}/r.txt")
        out, _ = victim.communicate(timeout=cases.PATIENCE_S)
        self.assertEqual((victim.returncode, out[:3]), (0, "ok "))

    def test_a_program_that_checks_itself_is_left_whole(self):
        self.is_left_whole()

    def is_left_whole(self, *words):
        victim = self.start(VICTIM)
        self.assertEqual(victim.stdout.readline(), "ready\n")
        took = []
        for _ in range(int(os.environ.get("RANGESCOPE_ATTACHES", "20"))):
            begun = time.monotonic()
            self.attach(victim.pid, *words, "-q", "--for", "20ms", "-o", f"{self.folder}/r.txt")
            took.append(time.monotonic() - begun)
            shutil.rmtree(f"{self.folder}/rangescope-runs")
        for _ in range(int(os.environ.get("RANGESCOPE_ATTACH_KILLS", "40"))):
            tool = subprocess.Popen([TOOL, "attach", str(victim.pid), *words, "--for", "20ms"], cwd=self.folder, env=self.env,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(random.uniform(0, min(took)))  # on the way, also where the machine is slow
            tool.kill()
            tool.wait()
            status = contents(f"/proc/{victim.pid}/status")
            self.assertIn("TracerPid:\t0", status)
            self.assertNotIn("State:\tT", status)
        out, _ = victim.communicate(timeout=cases.PATIENCE_S)
        self.assertEqual(victim.returncode, 0, out)
        self.assertTrue(out.startswith("ok"), out)


if __name__ == "__main__":
    cases.main()
