#!/usr/bin/env python3
"""`rangescope attach`: processes that run already. Usage: attach.py BIN_DIR VICTIM SOURCE_DIR [LIBCUPTI CUDA_VICTIM]

$RANGESCOPE_ATTACHES: how often to attach to the program that checks itself, and $RANGESCOPE_ATTACH_KILLS how often
rangescope is killed at a random moment of it.
"""
import contextlib
import http.client
import json
import os
import random
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

BIN, VICTIM, SOURCE = (os.path.abspath(path) for path in sys.argv[1:4])
TOOL = f"{BIN}/rangescope"
HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
ANSWER = sum(row * row % 7 for row in range(20_000))


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
                asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
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
        for _ in range(6):  # threads that could wait are kept from it where the machine is busy
            done = self.tool("attach", pid, *words)
            if "no thread waited in a system call" not in done.stderr:
                break
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def attach_until(self, text, *words):
        """On a busy machine a window may hold few samples, or none that came in time to read Python's functions."""
        for _ in range(6):
            done = self.attach(*words)
            if text in " ".join(done.stdout.split()):
                break
        return done

    def report(self, *words):
        report = json.loads(self.tool("report", *(words or ["latest"]), "-f", "json").stdout)
        with open(f"{SOURCE}/docs/formats/report.schema.json", encoding="utf-8") as f:
            self.assertEqual(json_schema.errors(report, json.load(f)), [])
        return report

    def kept(self):
        runs = f"{self.folder}/rangescope-runs"
        return max((os.path.join(runs, name) for name in os.listdir(runs) if name[0].isdigit()), key=os.path.getmtime)

    def test_the_first_line_names_the_hot_function_of_a_server_under_load(self):
        server, port = self.server()
        load = Load(port)
        try:
            time.sleep(0.5)
            done = self.attach_until("server.py:render_page", server.pid, "--for", "3s")
            self.attach(server.pid, "--for", "1s")
        finally:
            load.end()
        self.assertEqual(load.errors, [])
        self.assertGreater(load.answers, 100)
        first = " ".join(done.stdout.split("\n1. ")[1].split("   try:")[0].split())
        self.assertIn("server.py:render_page", first)
        self.assertIn(f"s of process {server.pid}", done.stdout)
        report = self.report()
        self.assertEqual(report["run"]["attached"]["pid"], server.pid)
        self.assertGreater(report["run"]["attached"]["after_ns"], 5e8)
        self.assertIsNone(report["run"]["exit_code"])
        self.assertEqual([process["pid"] for process in report["processes"]], [server.pid])
        self.assertAlmostEqual(report["run"]["duration_ns"] / 1e9, 1, delta=0.5)
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
        for _ in range(100):
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        load = Load(port)
        try:
            time.sleep(0.5)
            done = self.attach_until("shop.py:render_page", master.pid, "--tree", "--for", "2s")
        finally:
            load.end()
        self.assertEqual(load.errors, [])
        self.assertGreater(load.answers, 50)
        first = " ".join(done.stdout.split("\n1. ")[1].split("   try:")[0].split())
        self.assertIn("shop.py:render_page", first)
        self.assertEqual(len(self.report()["processes"]), 3)
        master.terminate()
        self.assertEqual(master.wait(timeout=30), 0)

    def test_a_signal_ends_the_window_early(self):
        server, _ = self.server()
        tool = self.start(TOOL, "attach", server.pid, cwd=self.folder, env=self.env, stderr=subprocess.PIPE)
        self.assertIn("attached to process", tool.stderr.readline())
        time.sleep(0.5)
        tool.send_signal(signal.SIGINT)
        out, told = tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, 0, told)
        self.assertIn("SIGINT ended the window", told)
        self.assertIn("\nprogram ", out)
        self.assertLess(self.report()["run"]["duration_ns"], 30e9)
        self.assertIsNone(server.poll())

    def test_a_process_that_ends_meanwhile_is_reported_on(self):
        busy = self.start(PYTHON, "-c", "import time\nprint(1, flush=True)\nend = time.time() + 2\n"
                          "def spin():\n while time.time() < end: pass\nspin()\nraise SystemExit(3)")
        busy.stdout.readline()
        done = self.attach(busy.pid, "--for", "60s")
        self.assertIn("ended before the window did", done.stderr)
        self.assertIn("spin", done.stdout)
        self.assertLess(self.report()["run"]["duration_ns"], 30e9)

    def test_waits_of_threads_that_slept_before_are_whole(self):
        sleeper = self.start("sleep", "60")
        time.sleep(0.2)
        self.attach(sleeper.pid, "--for", "500ms")
        region = self.report()["regions"][0]
        self.assertEqual(region["cpu"]["samples"], 0)
        waiting = {part["name"]: part["ns"] for part in region["cpu"]["parts"]}
        self.assertAlmostEqual(waiting.get("sleep", 0) / region["wall_ns"]["inclusive"], 1, delta=0.05, msg=waiting)

    def test_children_are_its_tree(self):
        spin = "import time\nend = time.time() + 60\ndef hot():\n while time.time() < end: pass\nhot()"
        shell = self.start("sh", "-c", '"$0" -c "$1" & echo $!; wait', PYTHON, spin)
        child = int(shell.stdout.readline())
        time.sleep(0.3)
        try:
            alone = self.attach(shell.pid, "--for", "500ms")
            self.assertNotIn("hot (<string>", alone.stdout)
            self.assertEqual([process["pid"] for process in self.report()["processes"]], [shell.pid])
            tree = self.attach_until("hot (<string>", shell.pid, "--tree", "--for", "1s")
            self.assertIn("hot (<string>", tree.stdout)
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
        time.sleep(0.1)
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
        sleeper = self.start("sleep", "60")
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
        sleeper = self.start("sleep", "60")
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
        sleeper = self.start("sleep", "60")
        command = [sys.executable, f"{SOURCE}/tests/cpu/forbid.py", TOOL, "attach", sleeper.pid, "--for", "1s"]
        done = cases.run([*command, "--cpu", "199Hz"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("seccomp", done.stderr)
        self.assertFalse(os.path.exists(f"{self.folder}/rangescope-runs"))
        done = cases.run(command, cwd=self.folder, env=self.env)  # /proc is read instead
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(9\d\.\d|100\.0) % waiting: sleep")
        self.assertIn("cpu_polled", done.stdout)

    def left(self, pid):
        """What of ours could be left in a process: threads, descriptors, files that are mapped from the run."""
        with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
            mapped = [line for line in file if self.folder in line]
        return len(os.listdir(f"/proc/{pid}/task")), len(os.listdir(f"/proc/{pid}/fd")), mapped

    @unittest.skipUnless(sys.argv[4:], "built without CUPTI's headers")
    def test_work_of_the_gpu_is_that_of_the_window(self):
        self.env["RANGESCOPE_CUPTI"] = sys.argv[4]
        program = self.start(sys.argv[5], "steps", "30000")  # of one to three kernels of 10 us
        time.sleep(0.5)
        before = self.left(program.pid)
        cpu = self.attach(program.pid, "--gpu", "off", "--for", "300ms")
        self.assertNotIn("uses CUDA", cpu.stderr)
        self.assertIn("uses CUDA: --gpu on records its GPU work too", self.attach(program.pid, "--for", "100ms").stderr)
        self.assertNotIn("librangescope_inject", open(f"/proc/{program.pid}/maps", encoding="utf-8").read())
        kernels = []
        for how in (("auto",), ("auto",), ("on", "--cpu", "off")):  # from the second time on the library is there already
            self.attach(program.pid, "--gpu", *how, "--for", "1s")
            report = self.report()
            program_region, = report["regions"]
            kernels.append(program_region["gpu"]["kernels"])
            self.assertAlmostEqual(program_region["gpu"]["kernel_ns"], 10_000 * kernels[-1], delta=40_000)
            device, = report["devices"]  # its context was made before: CUPTI does not tell of it
            self.assertNotIn("", (device["name"], device["uuid"] or ""))
            self.assertGreater(device["sm_count"], 0)
            self.assertEqual([process["pid"] for process in report["processes"]], [program.pid])
            self.assertAlmostEqual(report["run"]["duration_ns"] / 1e9, 1, delta=0.5)
            # At the window's edge the kernels of one step can be without the launch that was before it.
            edge = [loss["count"] for loss in report["losses"] if loss["kind"] == "kernel_without_launch"]
            self.assertLessEqual(sum(edge), 3)
            self.assertEqual([loss for loss in report["losses"] if not loss["kind"].startswith(("cpu_", "kernel_without"))], [])
            self.assertGreater(program_region["gpu"]["syncs"], 0)  # calls are recorded
            self.assertEqual(program_region.get("cpu") is None, "off" in how)
            self.assertEqual(self.left(program.pid), before)
            self.assertEqual([name for name in os.listdir(f"{self.kept()}/native") if name.startswith("attached")], [])
        self.assertGreater(min(kernels), 50, cpu.stderr)
        killed = self.start(TOOL, "attach", program.pid, "--gpu", "auto", cwd=self.folder, env=self.env, stderr=subprocess.PIPE)
        self.assertIn("attached to process", killed.stderr.readline())
        self.assertGreater(self.left(program.pid)[0], before[0])
        killed.kill()
        killed.wait()
        for _ in range(100):
            if self.left(program.pid) == before:
                break
            time.sleep(0.05)
        self.assertEqual(self.left(program.pid), before)
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
                done = self.attach_until("serve (<string>", process.pid, "--for", "1s")
                self.assertIn("serve (<string>", done.stdout)
                if cupti:
                    self.attach(process.pid, "--gpu", "on", "--for", "1s")
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
        try:
            time.sleep(0.3)
            self.attach(shell.pid, "--rank", "1", "--gpu", "on", "--for", "500ms")
            report = self.report()
            self.assertEqual([process["pid"] for process in report["processes"]], [children[1]])
            self.assertIn("standin", report["processes"][0]["name"])
            self.assertGreater(report["regions"][0]["gpu"]["kernels"], 10)
            done = self.tool("attach", shell.pid, "--rank", "7", "--for", "500ms")
            self.assertEqual(done.returncode, 66, done.stderr)
            self.assertIn("is rank 7", done.stderr)
            self.assertIn("Ranks of these processes: 0, 1", done.stderr)
            tool = self.start(TOOL, "attach", shell.pid, "--tree", "--gpu", "auto", cwd=self.folder, env=self.env, stderr=subprocess.PIPE)
            self.assertIn("attached to process", tool.stderr.readline())
            shell.stdin.write("\n")  # a child that begins in the window
            shell.stdin.flush()
            children.append(int(shell.stdout.readline()))
            for _ in range(600):
                captures = sorted(name for name in os.listdir(f"{self.kept()}/native") if name.endswith(".gpu"))
                if len(captures) == 3:
                    break
                time.sleep(0.05)
            time.sleep(0.5)
            tool.send_signal(signal.SIGINT)
            _, told = tool.communicate(timeout=60)
            self.assertEqual(tool.returncode, 0, told)
            self.assertEqual(captures, sorted(f"{child}.gpu" for child in children))
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
        sleeper = self.start("sleep", "60")  # longer than what may begin anew, and no other thread
        done = cases.run([TOOL, "attach", sleeper.pid, "--gpu", "on", "--for", "1s"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("no thread waited in a system call that can be restarted", done.stderr)
        sleeper.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        done = cases.run([TOOL, "attach", sleeper.pid, "--gpu", "on", "--for", "1s"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("it is stopped", done.stderr)
        recorded = self.start(TOOL, "profile", "-q", "--", "sleep", "60", cwd=self.folder, env=self.env)
        for _ in range(200):
            children = cases.run(["pgrep", "-P", recorded.pid, "-x", "sleep"]).stdout.split()
            if children:
                break
            time.sleep(0.05)
        done = cases.run([TOOL, "attach", children[0], "--gpu", "on", "--for", "1s"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("rangescope profile already records it", done.stderr)
        os.kill(int(children[0]), signal.SIGKILL)

    @unittest.skipUnless(sys.argv[4:], "built without CUPTI's headers")
    def test_a_program_that_checks_itself_is_whole_with_the_library_in_it(self):
        self.env["RANGESCOPE_CUPTI"] = sys.argv[4]
        self.is_left_whole("--gpu", "on")
        victim = self.start(VICTIM, "held")
        self.assertEqual(victim.stdout.readline(), "ready\n")
        for _ in range(5):
            self.attach(victim.pid, "--gpu", "on", "-q", "--for", "20ms", "-o", f"{self.folder}/r.txt")
        out, _ = victim.communicate(timeout=60)
        self.assertEqual((victim.returncode, out[:3]), (0, "ok "))

    def test_a_program_that_checks_itself_is_left_whole(self):
        self.is_left_whole()

    def is_left_whole(self, *words):
        victim = self.start(VICTIM)
        self.assertEqual(victim.stdout.readline(), "ready\n")
        for _ in range(int(os.environ.get("RANGESCOPE_ATTACHES", "20"))):
            self.attach(victim.pid, *words, "-q", "--for", "20ms", "-o", f"{self.folder}/r.txt")
            shutil.rmtree(f"{self.folder}/rangescope-runs")
        for _ in range(int(os.environ.get("RANGESCOPE_ATTACH_KILLS", "40"))):
            tool = subprocess.Popen([TOOL, "attach", str(victim.pid), *words, "--for", "200ms"], cwd=self.folder, env=self.env,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(random.uniform(0, 0.5))
            tool.kill()
            tool.wait()
            with open(f"/proc/{victim.pid}/status", encoding="utf-8") as file:
                status = file.read()
            self.assertIn("TracerPid:\t0", status)
            self.assertNotIn("State:\tT", status)
        out, _ = victim.communicate(timeout=60)
        self.assertEqual(victim.returncode, 0, out)
        self.assertTrue(out.startswith("ok"), out)


if __name__ == "__main__":
    cases.main()
