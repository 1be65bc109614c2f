#!/usr/bin/env python3
"""The program's end, its signals, its group and its parent are those it would have without rangescope, whatever happens to rangescope.

Usage: ends.py BIN_DIR
"""
import glob
import json
import os
import pty
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tools"))
import cases  # noqa: E402

BIN = os.path.abspath(sys.argv[1])
RANGESCOPE = os.path.join(BIN, "rangescope")
PROFILE = [[RANGESCOPE, "profile", "-q", "--no-project", *words, "--"] for words in ([], ["--timeout", "1000s"])]
VICTIM = os.path.join(BIN, "victim")


PRELOADED = os.path.join(BIN, "..", "lib")
PATIENCE_S = 300  # for what comes at once on an idle machine


def wait_until(condition, what):
    """For an event, however slow the machine is."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what} does not come")
        time.sleep(0.01)


def soon(path):
    """A file that a program leaves when it is ready."""
    wait_until(lambda: os.path.exists(path), path)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def runs(pid):
    """It is there, and waits for nobody to bury it."""
    try:
        return read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Ends(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rangescope-ends-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def end_pids(self):
        with open(os.path.join(self.folder, "pids")) as f:
            for pid in f.read().split():
                os.kill(int(pid), signal.SIGKILL)

    def plain(self, script):
        """A script without rangescope."""
        return subprocess.run(["sh", "-c", script], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              text=True, timeout=PATIENCE_S)

    def profile(self, script, prefix="", output="rangescope-runs", options=(), env=None):
        """A script under rangescope, which a shell starts after the prefix."""
        line = f'{prefix} exec "$@"'
        profile = [RANGESCOPE, "profile", "--no-project", "--runs", output, *options, "--"]
        return subprocess.run(["sh", "-c", line, "sh", *profile, "sh", "-c", script], cwd=self.folder,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=PATIENCE_S, env={**os.environ, **(env or {})})

    def status(self, root=None):
        root = root or os.path.join(self.folder, "rangescope-runs")
        # By time: of one second, names are in the order of their processes' ids.
        with open(max(glob.glob(os.path.join(root, "*", "status.json")), key=lambda path: os.stat(path).st_mtime_ns)) as f:
            return json.load(f)

    def test_few_descriptors(self):
        script = f"{VICTIM} leaf; exit 3"
        done = self.profile(script, "ulimit -n 4;")
        self.assertEqual((done.returncode, done.stdout), (3, self.plain(script).stdout), done.stderr)
        self.assertIn("leaf", done.stderr)  # what was captured is reported
        self.assertEqual(self.status()["program"], "exit code 3")
        for most in range(12, 17):  # what is left for samplers, and then for the program's end
            root = os.path.join(self.folder, str(most))
            self.profile("sleep 0.1", f"ulimit -n {most};", root)
            run, = glob.glob(os.path.join(root, "*"))
            for launched in glob.glob(os.path.join(run, "native", "launched")):  # where its begin could be written
                with open(launched) as f:
                    self.assertIn("end_ns ", f.read(), most)

    def test_reader_without_memory(self):
        """The program takes our memory away: its exit code is passed on, and the status is written."""
        take = "import resource, sys; resource.prlimit(int(sys.argv[1]), getattr(resource, 'RLIMIT_' + sys.argv[2]), (int(sys.argv[3]),) * 2)"
        failed = 0
        for limit, code in (("AS 1000", 7), ("AS 40000000", 0), ("AS 40000000", 7), ("DATA 1000", 7), ("DATA 1000000", 7), ("DATA 20000000", 0),
                            ("DATA 20000000", 7), ("DATA 40000000", 7)):
            with self.subTest(limit=limit, code=code):
                done = self.profile(f'{VICTIM} unique; {sys.executable} -c "{take}" $PPID {limit}; exit {code}')
                status = self.status()
                self.assertEqual((status["state"], status["program"]), ("done", f"exit code {code}"), done.stderr)
                self.assertEqual((done.returncode, status["exit_code"]), (code or status["exit_code"],) * 2, done.stderr)
                self.assertNotIn("terminate called", done.stderr)
                failed += "memory" in status["message"]
        self.assertGreater(failed, 3)

    def test_little_memory_from_the_start(self):
        """A program that was started ends with its own exit code; else rangescope says why, and is not ended by a signal."""
        started = failed = 0
        for megabytes in (20, 40, 60, 80, 100, 120, 140, 160, 180, 200, 240):
            with self.subTest(megabytes):
                ran = os.path.join(self.folder, "ran")
                if os.path.exists(ran):
                    os.remove(ran)
                done = subprocess.run(["sh", "-c", f'ulimit -v {megabytes * 1024}; exec "$@"', "sh", RANGESCOPE, "profile", "--no-project", "--runs",
                                       "runs", "--", "sh", "-c", f"{VICTIM} unique; echo >ran; exit 7"], cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE_S)
                if os.path.exists(ran):
                    started += 1
                    self.assertEqual(done.returncode, 7, done.stderr)
                    status = self.status(os.path.join(self.folder, "runs"))
                    self.assertEqual((status["state"], status["program"]), ("done", "exit code 7"), done.stderr)
                else:
                    failed += 1
                    self.assertGreater(done.returncode, 0, done.stderr)
                    self.assertNotEqual(done.stderr, "")
        self.assertGreater(started, 0)
        self.assertGreater(failed, 0)

    def test_reader_that_is_killed(self):
        """What reads is ended by somebody: by the kernel where memory runs out, by a signal on a file that was made for it."""
        preloaded = os.path.join(PRELOADED, "libended_reader.so")
        for fatal, code in ((signal.SIGKILL, 0), (signal.SIGKILL, 7), (signal.SIGSEGV, 7), (signal.SIGTERM, 0)):
            # The sampler of the GPU is a process of rangescope, too.
            done = self.profile(f"{VICTIM} unique; exit {code}", options=["--sample", "off"],
                                env={"LD_PRELOAD": preloaded, "READER_SIGNAL": str(int(fatal))})
            status = self.status()
            self.assertEqual((status["state"], status["program"]), ("done", f"exit code {code}"), done.stderr)
            self.assertIn(fatal.name, status["message"])
            stopped = fatal == signal.SIGTERM
            self.assertEqual(status["outcome"], "interrupted" if stopped else "error")
            self.assertEqual(status["exit_code"], code or (128 + fatal if stopped else 70))
            self.assertEqual(done.returncode, code or (-fatal if stopped else 70))

    def test_a_reader_that_leaves(self):
        """`| head`: the program's exit code, and a whole run."""
        for form, code in (("json", 0), ("html", 7), ("table", 0)):
            with self.subTest(form):
                # Of standard output, or of standard error, where the table is.
                line = f'"$@" {"2>&1 >/dev/null" if form == "table" else "2>/dev/null"} | head -c 30 >/dev/null; echo ${{PIPESTATUS[0]}}'
                done = subprocess.run(["bash", "-c", line, "bash", RANGESCOPE, "profile", "--no-project", "-f", form, "--all", "--", "sh", "-c",
                                       f"{VICTIM} unique 20000; exit {code}"], cwd=self.folder, stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S)
                self.assertEqual(done.stdout, f"{code}\n")
                status = self.status()
                self.assertEqual((status["exit_code"], status["outcome"]), (code, "program_failed" if code else "ok"), status["message"])

    def test_small_stacks(self):
        """Smaller than what rangescope needs itself; the program's limit stays its own."""
        done = self.profile(f"ulimit -s; {VICTIM} leaf; exit 3", "ulimit -s 64;")
        self.assertEqual((done.returncode, done.stdout), (3, "64\n"), done.stderr)
        self.assertIn("leaf", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root can drop its rights")
    def test_no_further_process(self):
        """The program starts all the same, in rangescope's place."""
        os.chmod(self.folder, 0o777)
        # Another user, who may read where root's files lie.
        other = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search",
                 "prlimit", "--nproc=1", "--"]
        done = subprocess.run([*other, RANGESCOPE, "profile", "--no-project", "--runs", "runs", "--", "sh", "-c", "echo ran; exit 3"], cwd=self.folder,
                              capture_output=True, text=True, timeout=PATIENCE_S, env={**os.environ, "HOME": self.folder})
        self.assertEqual((done.returncode, done.stdout), (3, "ran\n"), done.stderr)
        self.assertIn("ulimit -u", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root can take /proc away")
    def test_without_proc(self):
        gone = subprocess.run(["unshare", "-m", "sh", "-c", "umount -l /proc"], capture_output=True, text=True)
        if gone.returncode != 0:
            self.skipTest("no mount namespace here: " + gone.stderr)
        done = subprocess.run(["unshare", "-m", "sh", "-c", 'umount -l /proc; exec "$@"', "sh", RANGESCOPE, "profile", "--no-project", "--runs",
                               "runs", "--", "sh", "-c", "echo ran; exit 3"], cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual((done.returncode, done.stdout), (3, "ran\n"), done.stderr)

    def test_limit_on_file_size(self):
        done = self.profile(f"{VICTIM} unique; exit 5", "ulimit -f 60;")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("file_size_limit", done.stderr)
        self.assertIn("report.json", self.status()["message"])
        # The program has the signal's default action, as without us.
        done = self.profile("exec head -c 100000 /dev/zero >large", "ulimit -f 60;")
        self.assertEqual(done.returncode, -signal.SIGXFSZ, done.stderr)

    def test_limits_too_low_for_a_recording_do_not_stop_the_program(self):
        for blocks in (0, 1, 8):
            with self.subTest(file_blocks=blocks):
                done = self.limited(f"ulimit -f {blocks}", "echo ran; exit 5")
                self.assertEqual((done.returncode, done.stdout), (5, "ran\n"), done.stderr)
        done = self.limited("ulimit -f 1", "exec head -c 100000 /dev/zero >large")
        self.assertEqual(done.returncode, -signal.SIGXFSZ, done.stderr)
        self.assertIn("the program runs without a recording", done.stderr)
        done = self.limited("ulimit -n 4", "echo ran; exit 5")
        self.assertEqual((done.returncode, done.stdout), (5, "ran\n"), done.stderr)

    def limited(self, limit, program):
        return subprocess.run(["sh", "-c", f'{limit}; exec "$0" profile --no-project -- sh -c "$1"', RANGESCOPE, program],
                              cwd=self.folder, capture_output=True, text=True, timeout=120)

    def test_deleted_run(self):
        done = self.profile(f"{VICTIM} leaf; rm -rf rangescope-runs; exit 5")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("the program removed the run directory", done.stderr)
        good = self.profile(f"{VICTIM} leaf; rm -rf rangescope-runs")
        self.assertEqual(good.returncode, 74, good.stderr)
        for untrue in ("run kept", "no_nvtx"):  # of a folder that is gone, and of a program that did use NVTX
            self.assertNotIn(untrue, done.stderr)

    def test_a_process_that_stays(self):
        """A daemon keeps its capture, of 4 GiB of zeros for the most part: nobody waits until they are hashed."""
        self.addCleanup(self.end_pids)
        begun = 'head -qc 100000 "$RANGESCOPE_DIR"/*.rstrace | grep -aq layer'
        done = self.profile(f"{os.path.join(BIN, 'cli_victim')} sleep 100000 >/dev/null 2>&1 & echo $! >>pids; "
                            f"until {begun}; do sleep 0.05; done; exit 5")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("process_running (1)", done.stderr)
        manifest, = glob.glob(os.path.join(self.folder, "rangescope-runs", "*", "manifest.json"))
        self.assertFalse([name for name in json.loads(read(manifest))["files"] if name.endswith(".rstrace")])

    @unittest.skipUnless(os.geteuid() == 0, "only root may mount a small file system")
    def test_full_disk(self):
        disk = os.path.join(self.folder, "disk")
        os.mkdir(disk)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "small", disk], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("mounting is not allowed here")
        self.addCleanup(subprocess.run, ["umount", "-l", disk])
        for script, code in ((f"{VICTIM} many 1000; {{ cat /dev/zero >disk/filler; }} 2>/dev/null; exit 3", 3),
                             (f"{VICTIM} many 1000; {{ cat /dev/zero >disk/filler; }} 2>/dev/null; kill -SEGV $$", -signal.SIGSEGV)):
            with self.subTest(code):
                done = subprocess.run([RANGESCOPE, "profile", "--no-project", "--runs", disk, "--", "sh", "-c", script], cwd=self.folder,
                                      stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn("step", done.stderr)  # what was captured is reported
                status = self.status(disk)
                self.assertEqual(status["state"], "done")
                self.assertIn("No space left", status["message"])
                for name in os.listdir(disk):
                    path = os.path.join(disk, name)
                    shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)

    def test_group_and_session(self):
        """In a script the program is in the script's group and may begin a session."""
        show = "import os; print(os.getpgrp() == int(os.environ['SCRIPT']), os.getpgrp() == os.getpid()); os.setsid(); print('session')"
        script = f'export SCRIPT=$$; "$@" {sys.executable} -c "{show}"'
        for before in ([], *PROFILE):
            done = subprocess.run(["sh", "-c", script, "sh", *before], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  stdin=subprocess.DEVNULL, start_new_session=True, timeout=PATIENCE_S)
            self.assertEqual(done.stdout, "True False\nsession\n", done.stderr)

    def test_a_signal_to_the_group_comes_once(self):
        count = ("import os, signal, sys\ncame, over = [], []\n"
                 "signal.signal(signal.SIGTERM, lambda *a: (came.append(1), open('came', 'w').close()))\n"
                 "signal.signal(signal.SIGPWR, lambda *a: over.append(1))\n"
                 "open('ready.new', 'w').write(f'{os.getpid()} {os.getppid()}'); os.rename('ready.new', 'ready')\n"
                 "while not over: signal.sigtimedwait([], 0.05)\n"  # pause() misses one that comes just before it
                 "print(len(came))\n")
        script = 'trap "" TERM; "$@"; exit 0'
        for before in ([], *PROFILE):
            ready, came = (os.path.join(self.folder, name) for name in ("ready", "came"))
            for path in (ready, came):
                if os.path.exists(path):
                    os.remove(path)
            running = subprocess.Popen(["sh", "-c", script, "sh", *before, sys.executable, "-c", count], cwd=self.folder, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, start_new_session=True)
            soon(ready)
            program, parent = map(int, read(ready).split())
            os.killpg(running.pid, signal.SIGTERM)
            soon(came)
            # The end comes behind all that rangescope would pass on: a signal to it alone, of a larger number.
            os.kill(parent if before else program, signal.SIGPWR)
            out, err = running.communicate(timeout=PATIENCE_S)
            self.assertEqual(out, "1\n", err)

    def test_signals_that_end(self):
        """What would end rangescope goes on to the program, which ends by it; nobody is left behind."""
        names = ["ALRM", "XCPU", "PROF", "VTALRM", "IO", "PIPE", "PWR", "STKFLT", "XFSZ", "USR1", "HUP", "SEGV", "ABRT", "RTMIN", "RTMAX"]
        for name in names:
            with self.subTest(name):
                number = getattr(signal, "SIG" + name)
                pid_file = os.path.join(self.folder, "pid")
                if os.path.exists(pid_file):
                    os.remove(pid_file)
                running = subprocess.Popen([RANGESCOPE, "profile", "-q", "--no-project", "--", "sh", "-c", "echo $$ >pid.new; mv pid.new pid; exec sleep 6000"],
                                           cwd=self.folder, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True,
                                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
                soon(pid_file)
                pid = int(read(pid_file))
                wait_until(lambda: read(f"/proc/{pid}/comm") == "sleep\n", "sleep instead of sh")
                running.send_signal(number)
                self.assertEqual(running.wait(PATIENCE_S), -number)
                self.assertFalse(os.path.exists(f"/proc/{pid}"))
                self.assertEqual(self.status()["exit_code"], 128 + number)

    def test_ctrl_c_while_the_program_is_started(self):
        """A session leader cannot leave its group: what the terminal sends to that before the program is in it is the program's as well."""
        with open(os.path.join(self.folder, "late"), "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\necho started\nexec sleep 6000\n")
        os.chmod(os.path.join(self.folder, "late"), 0o755)
        pid, terminal = pty.fork()  # a session of its own, whose terminal this is
        if pid == 0:
            os.chdir(self.folder)
            os.environ["LD_PRELOAD"] = os.path.join(PRELOADED, "liblate_spawn.so")
            os.execv(RANGESCOPE, [RANGESCOPE, "profile", "-q", "--no-project", "--", "./late"])
        soon(os.path.join(self.folder, "spawning"))
        os.write(terminal, b"\x03")
        wait_until(lambda: os.waitpid(pid, os.WNOHANG)[0] != 0, "its end")
        os.close(terminal)
        self.assertEqual(self.status()["outcome"], "interrupted")

    def test_the_time_limit_ends_all(self):
        """Without a group of their own: children in the background and in sessions of their own end with the program."""
        script = ("sleep 6000 & echo $! >>pids; setsid sleep 6000 & echo $! >>pids; "
                  "(trap '' TERM; sleep 6000) & echo $! >>pids; echo $$ >>pids; wait")
        for limit in ("1s", "10s", "100s"):  # what has not started all of them, on a busy machine, gets longer
            done = subprocess.run([*PROFILE[0][:-1], "--timeout", limit, "--", "sh", "-c", script], cwd=self.folder,
                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
            self.assertIn("--timeout", done.stderr)
            path = os.path.join(self.folder, "pids")
            pids = read(path).split() if os.path.exists(path) else []
            self.assertEqual([pid for pid in pids if runs(pid)], [])
            if len(pids) == 4:
                return
            if pids:
                os.remove(path)
        self.fail(f"the program started {len(pids)} of 4 processes")

    def test_orphans_have_the_parent_they_would_have(self):
        orphan = ('echo >began; until now=$(cut -d" " -f4 /proc/$$/stat); [ "$now" != "$PPID" ]; do sleep 0.01; done; '
                  'echo $now >parent.new; mv parent.new parent')
        script = (f"rm -f began parent; (sh -c '{orphan}' & until [ -e began ]; do sleep 0.01; done); "
                  "until [ -e parent ]; do sleep 0.01; done; cat parent")
        plain, done = self.plain(script), self.profile(script)
        self.assertEqual(done.stdout, plain.stdout, done.stderr)


if __name__ == "__main__":
    cases.main()
