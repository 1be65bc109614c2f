#!/usr/bin/env python3
"""The command line as a user meets it: exit codes, streams, signals, run directories. Usage: commands.py BIN_DIR"""
import csv
import glob
import io
import json
import os
import pty
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402

BIN = os.path.abspath(sys.argv[1])
TOOL = f"{BIN}/rangescope"
VICTIM = f"{BIN}/cli_victim"


class InAFolder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rangescope-cli-")
        self.env = {k: v for k, v in os.environ.items() if not k.endswith("_INJECTION64_PATH")}

    def tearDown(self):
        shutil.rmtree(self.folder)

    def tool(self, *words, **env):
        return cases.run([TOOL, *words], cwd=self.folder, env={**self.env, **env})

    def runs(self):
        """Every run directory, by its start: names end in a process id, which says nothing within a second."""
        root = os.path.join(self.folder, "rangescope-runs")

        def start(run):
            with open(os.path.join(run, "manifest.json"), encoding="utf-8") as manifest:
                return json.load(manifest)["start_unix_ns"]
        runs = [os.path.join(root, n) for n in os.listdir(root)] if os.path.isdir(root) else []
        return sorted(runs, key=lambda run: start(run) if os.path.exists(os.path.join(run, "manifest.json")) else 0)

    def file(self, name):
        with open(os.path.join(self.runs()[-1], name), encoding="utf-8") as f:
            return json.load(f)


class Profile(InAFolder):
    def test_the_program_s_output_and_exit_code_pass_through(self):
        for code in (0, 1, 64, 80, 255):
            done = self.tool("profile", "--", VICTIM, "exit", str(code))
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(done.stdout, "to stdout\n")
            self.assertIn("to stderr\n", done.stderr)
        self.assertEqual(self.file("status.json")["outcome"], "program_failed")
        self.assertEqual(self.file("manifest.json")["exit"], {"code": 255})

    def test_the_table_goes_to_stderr_when_stdout_is_no_terminal(self):
        done = self.tool("profile", "--", VICTIM)
        self.assertRegex(done.stderr, r"(?m)^step .* %  +4 ")
        self.assertRegex(done.stderr, r"(?m)^  layer .*%  +4 ")
        self.assertNotIn("\x1b", done.stderr)
        self.assertNotIn("step", self.tool("profile", "-q", "--", VICTIM).stderr)
        self.assertRegex(self.tool("profile", "-q", "-o", "-", "--", VICTIM).stdout, r"(?m)^step .* %  +4 ")

    def test_on_a_terminal_the_table_is_on_stdout_and_coloured(self):
        for no_color in ("", "1"):
            parent, child = pty.openpty()
            process = subprocess.Popen([TOOL, "profile", "--", VICTIM], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=child,
                                       stderr=subprocess.DEVNULL, env={**self.env, "NO_COLOR": no_color, "TERM": "xterm"})
            os.close(child)
            text = b""
            while True:
                try:
                    piece = os.read(parent, 4096)
                except OSError:
                    break
                if not piece:
                    break
                text += piece
            os.close(parent)
            self.assertEqual(process.wait(), 0)
            self.assertIn(b"layer", text)
            self.assertEqual(b"\x1b[1m" in text, not no_color)

    def on_a_terminal(self, typed, *words):
        """(wait status, what the terminal showed) with the tool as leader of a session of its own."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execve(TOOL, [TOOL, *words], {**self.env, "TERM": "xterm"})
        shown, sent = b"", False
        while True:
            if not select.select([terminal], [], [], 300)[0]:
                os.kill(pid, signal.SIGKILL)
                break
            try:
                piece = os.read(terminal, 4096)
            except OSError:
                break
            shown += piece
            if not sent and b"ready" in shown:
                os.write(terminal, typed)
                sent = True
        os.close(terminal)
        return os.waitpid(pid, 0)[1], shown.decode(errors="replace")

    def test_the_terminal_is_the_program_s(self):
        script = f"echo ready; read line; echo got $line; {VICTIM} exit 3"
        for options in ([], ["--timeout", "1000s"]):
            status, shown = self.on_a_terminal(b"hello\n", "profile", *options, "--", "sh", "-c", script)
            self.assertEqual(os.waitstatus_to_exitcode(status), 3, shown)
            self.assertIn("got hello", shown)

    def test_control_c(self):
        for options in ([], ["--timeout", "1000s"]):
            status, shown = self.on_a_terminal(b"\x03", "profile", *options, "--", "sh", "-c", f"{VICTIM}; echo ready; exec sleep 6000")
            self.assertEqual(os.waitstatus_to_exitcode(status), -signal.SIGINT, shown)
            self.assertIn("layer", shown)

    def test_a_fatal_signal_passes_through(self):
        for what, number in (("segv", signal.SIGSEGV), ("kill", signal.SIGKILL)):
            done = self.tool("profile", "--", VICTIM, what)
            self.assertEqual(done.returncode, -number, done.stderr)
            self.assertRegex(done.stderr, r"(?m)^step .* %  +4 ")
            self.assertEqual(self.file("manifest.json")["exit"]["signal"], number)
            status = self.file("status.json")
            self.assertEqual((status["state"], status["outcome"], status["exit_code"]), ("done", "program_failed", 128 + number))

    def test_nothing_captured(self):
        for program in (["true"], [VICTIM, "none"]):  # ranges were asked for
            done = self.tool("profile", "--include", "step", "--", *program)
            self.assertEqual(done.returncode, 80, done.stderr)
            self.assertRegex(done.stderr, r"fail: program\.no_(nvtx|ranges): ")  # says why, and the last line does not again
            self.assertRegex(done.stderr, r"(?m): nothing was captured$")
            status = self.file("status.json")
            self.assertEqual(status["outcome"], "nothing_captured")
            self.assertIn("nothing was captured: ", status["message"])
        done = self.tool("profile", "--include", "step", "--", "sh", "-c", "exit 3")
        self.assertEqual(done.returncode, 3, done.stderr)
        status = self.file("status.json")
        self.assertEqual(status["message"].count("exit code 3"), 1, status["message"])
        self.assertEqual([loss["kind"] for loss in status["losses"]].count("stage_empty"), 1, status["losses"])

    def test_without_ncu_and_nsys_lines_are_judged_by_the_newest_known_version(self):
        bare = {"PATH": "/nonexistent", "RANGESCOPE_NCU": "", "RANGESCOPE_NSYS": "", "CUDA_HOME": "", "CUDA_PATH": ""}
        done = self.tool("doctor", "--json", "--explain", "ncu --set brief ./app", **bare)
        findings = {f["id"]: f for f in json.loads(done.stdout)["findings"]}
        if " was found here; " not in findings["command.version"]["found"]:
            self.skipTest("ncu is installed where every search looks")
        self.assertRegex(findings["command.version"]["found"], r"^no ncu was found here; checked against ncu 20\d\d\.\d\.\d, the newest version that is known$")
        self.assertIn("brief", findings["command.unknown_set"]["found"])
        done = self.tool("profile", "--dry-run", "--no-native", "--ncu", "--set", "full", "--", VICTIM, **bare)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"no ncu was found here; the commands are for ncu 20\d\d\.")
        self.assertRegex(done.stdout, r"(?m)\bncu .*--set full\b")
        self.assertEqual(self.tool("profile", "--no-native", "--ncu", "--", VICTIM, **bare).returncode, 69)

    def test_a_repeated_include_takes_every_range_that_was_named(self):
        done = self.tool("profile", "--include", "iter 0", "--include", "iter 2", "--include", "ghost", "--", VICTIM, "numbered", "4")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(re.findall(r"(?m)^(step|iter \d) ", done.stderr), ["iter 0", "iter 2"])
        self.assertIn("'ghost' matched no range", done.stderr)
        done = self.tool("report", "latest", "--include", "step", "--include", "ghost", "--exclude", "layer", "--exclude", "none")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^step ")
        self.assertNotIn("layer ", done.stdout)
        for name in ("ghost", "none"):
            self.assertIn(f"'{name}' matched no range", done.stdout + done.stderr)

    def test_a_filter_that_matches_nothing_names_the_nearest(self):
        self.tool("profile", "-q", "--", VICTIM)
        self.assertIn("--include step --include layer.", self.tool("report", "--include", "step,layer").stderr)
        done = self.tool("profile", "--include", "stp", "--", VICTIM)
        self.assertEqual(done.returncode, 80, done.stderr)
        self.assertIn("step", done.stderr)

    def test_terminated_in_the_middle(self):
        process = subprocess.Popen([TOOL, "profile", "--", VICTIM, "sleep", "6000"], cwd=self.folder, env=self.env, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "to stdout\n")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=600)
        self.assertEqual(process.returncode, -signal.SIGTERM, err)
        self.assertRegex(err, r"(?m)^step .* %  +4 ")
        self.assertEqual(self.file("status.json")["state"], "done")

    def test_killed_in_the_middle(self):
        process = subprocess.Popen([TOOL, "profile", "--", VICTIM, "sleep", "6000"], cwd=self.folder, env=self.env, text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.assertEqual(process.stdout.readline(), "to stdout\n")
        capture = os.listdir(os.path.join(self.runs()[-1], "native"))
        self.assertRegex(self.tool("runs", "list").stdout, "running")
        process.kill()
        process.wait()
        for name in (each for each in capture if each.endswith(".rstrace")):  # the program lives on, as without rangescope
            os.kill(int(name.split(".")[0]), signal.SIGKILL)
        self.assertIn("interrupted", self.tool("runs", "list").stdout)
        done = self.tool("report", "latest")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^step .* %  +4 ")
        self.assertEqual(self.tool("runs", "verify").returncode, 65)
        process.stdout.close()

    def test_time_limit(self):
        for limit in ("1s", "10s", "100s"):  # a program that has not come to its sleep, on a busy machine, gets longer
            done = self.tool("profile", "--timeout", limit, "--", "sh", "-c", f"{VICTIM} sleep 100000; true")
            if "to stdout" in done.stdout:
                break
        self.assertEqual(done.returncode, -signal.SIGTERM, done.stderr)
        self.assertEqual(self.file("status.json")["outcome"], "timed_out")
        self.assertRegex(done.stderr, r"(?m)^step .* %  +4 ")

    def test_dry_run_prints_what_would_run_and_it_runs(self):
        done = self.tool("profile", "--dry-run", "--", VICTIM, "exit", "3", "a b")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.runs(), [])
        self.assertIn("NVTX_INJECTION64_PATH=", done.stdout)
        self.assertTrue(done.stdout.endswith("cli_victim exit 3 'a b'\n"), done.stdout)
        run = cases.run(["sh", "-c", done.stdout], env=self.env)
        self.assertEqual((run.returncode, run.stdout), (3, "to stdout\n"))

    def test_another_injection_library_is_refused_by_name(self):
        done = self.tool("profile", "--", VICTIM, NVTX_INJECTION64_PATH="/opt/other/libtool.so")
        self.assertEqual(done.returncode, 64)
        self.assertIn("/opt/other/libtool.so", done.stderr)
        self.assertIn("--chain-injection", done.stderr)

    def test_what_cannot_be_run(self):
        for words, code in ((["nowhere-to-be-found"], 66), (["/nowhere/program"], 66), (["/etc/passwd"], 77), ([], 64)):
            done = self.tool("profile", "--", *words)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertNotIn("Traceback", done.stderr)
        for word, why in ((self.folder, "it is a folder"), (VICTIM + " exit", "separate words")):
            self.assertIn(why, self.tool("profile", "--", word).stderr)


    def test_runs_of_one_second_do_not_collide(self):
        started = [subprocess.Popen([TOOL, "profile", "-q", "--", VICTIM], cwd=self.folder, env=self.env, stdout=subprocess.DEVNULL)
                   for _ in range(4)]
        self.assertEqual([p.wait() for p in started], [0] * 4)
        self.assertEqual(len(self.runs()), 4)

    def test_formats_and_files(self):
        done = self.tool("profile", "-f", "csv", "-o", "out.csv", "--", VICTIM)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.folder, "out.csv"), newline="", encoding="utf-8") as f:
            rows = [row for row in csv.DictReader(f) if row["kind"] != "verdict"]
        self.assertEqual([(r["path"], r["occurrences"]) for r in rows], [("step", "4"), ("step > layer", "4")])

    def test_a_format_that_was_asked_for_has_standard_output(self):
        for words in (["-f", "json"], ["--json"], ["--json", "-q"]):
            done = self.tool("profile", *words, VICTIM, "exit", "3")
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertEqual(json.loads(done.stdout)["run"]["exit_code"], 3)
            self.assertIn("to stdout\n", done.stderr)
        self.assertTrue(self.tool("profile", "-f", "html", VICTIM).stdout.startswith("<!doctype html>"))

    @unittest.skipIf(os.path.exists("/proc/driver/nvidia/gpus"), "there is a GPU")
    def test_metrics_without_a_gpu_leave_the_times(self):
        done = self.tool("profile", "--metrics", "roofline", VICTIM)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^step .* %  +4 ")
        self.assertIn("machine.no_counters", done.stderr)
        self.assertEqual([f["id"] for f in self.file("report.json")["findings"]], ["machine.no_counters"])
        self.assertNotEqual(self.tool("profile", "--strict", "--metrics", "roofline", VICTIM).returncode, 0)

    def test_a_run_that_is_kept_elsewhere_is_named(self):
        def kept(folder):
            done = cases.run([TOOL, "profile", "--no-project", "--", VICTIM], cwd=folder, env={**self.env, "XDG_STATE_HOME": self.folder})
            self.assertEqual(done.returncode, 0, done.stderr)
            return re.search(r"run kept in (\S+); see it again: rangescope report (\S+)", done.stderr).groups()
        self.assertEqual(kept(self.folder), ("rangescope-runs", "latest"))
        where, again = kept("/proc")  # no folder can be made there, not by root either
        self.assertEqual(where, again)
        self.assertEqual(os.path.dirname(where), f"{self.folder}/rangescope/runs")
        self.assertEqual(cases.run([TOOL, "report", again], cwd="/proc", env=self.env).returncode, 0)
        none = cases.run([TOOL, "report", "latest"], cwd="/proc", env={**self.env, "XDG_STATE_HOME": self.folder})
        self.assertEqual(none.returncode, 66)
        self.assertIn(f"--runs {os.path.dirname(where)}", none.stderr)

    def test_repetitions_have_a_mean_and_a_deviation(self):
        self.assertEqual(self.tool("profile", "-q", "--repeat", "3", VICTIM).returncode, 0)
        self.assertIn("+- runs", self.tool("report").stdout)
        report, run = json.loads(self.tool("report", "--json").stdout), self.runs()[-1]
        walls = []
        for n in ("001", "002", "003"):
            with open(os.path.join(run, "repeats", n, "report.json"), encoding="utf-8") as f:
                walls.append(json.load(f)["regions"][0]["wall_ns"]["inclusive"])
        metrics = report["regions"][0]["metrics"]
        self.assertAlmostEqual(metrics["repeat_wall_ns"]["value"], statistics.mean(walls), delta=1)
        self.assertAlmostEqual(metrics["repeat_stddev_ns"]["value"], statistics.stdev(walls), delta=1)

    def test_a_child_is_followed(self):
        done = self.tool("profile", "-f", "json", "-o", "-", "--", VICTIM, "children")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout[done.stdout.index("{"):])
        self.assertEqual(len(report["processes"]), 2)
        self.assertEqual(cases.aggregate(report)[("", "push_pop", ("step",))]["occurrences"], 8)

    def test_the_environment_keeps_its_secrets(self):
        self.tool("profile", "--", VICTIM, CUDA_API_TOKEN="hush-hush", MY_SECRET="hush-hush", CUDA_VISIBLE_DEVICES="5")
        for folder, _, names in os.walk(self.runs()[-1]):
            for name in names:
                with open(os.path.join(folder, name), "rb") as f:
                    self.assertNotIn(b"hush-hush", f.read(), name)
        self.assertEqual(self.file("env.json")["variables"]["CUDA_VISIBLE_DEVICES"], "5")


class Report(InAFolder):
    def test_formats(self):
        self.assertEqual(self.tool("profile", "--", VICTIM).returncode, 0)
        table = self.tool("report", "latest")
        self.assertRegex(table.stdout, r"(?m)^step .* %  +4 ")
        report = json.loads(self.tool("report", "latest", "-f", "json").stdout)
        self.assertEqual(report["run"]["command"], [VICTIM])
        self.assertEqual(report["run"]["exit_code"], 0)
        rows = list(csv.DictReader(io.StringIO(self.tool("report", "latest", "-f", "csv").stdout)))
        self.assertEqual(float(rows[0]["wall_ns.inclusive"]), report["regions"][0]["wall_ns"]["inclusive"])
        self.assertRegex(self.tool("report", "latest", "-f", "md").stdout, r"(?m)^\| step \|[^|]*\| 4 \|")
        for text in (table.stdout, self.tool("report", "latest", "-f", "md").stdout):  # the verdict comes before the table
            self.assertLess(text.index(report["verdict"][0]["text"][:20]), text.index("median"))
        self.assertEqual(report, {**json.load(open(os.path.join(self.runs()[-1], "report.json"), encoding="utf-8"))})

    def test_a_flat_list_has_what_takes_most_of_its_own_first(self):
        self.tool("profile", "-q", "--", VICTIM)
        report = json.loads(self.tool("report", "--json").stdout)
        by_own = sorted(report["regions"], key=lambda region: -region["wall_ns"]["exclusive"])
        shown = re.findall(r"(?m)^(\S.*?)  .*%", self.tool("report", "--flat").stdout.split("share  self time")[1])
        self.assertEqual(shown[:2], [" > ".join(region["path"]) for region in by_own[:2]])

    def test_ranks_name_processes(self):
        self.assertEqual(self.tool("profile", "--", VICTIM, RANK="3").returncode, 0)
        report = json.loads(self.tool("report", "latest", "-f", "json").stdout)
        self.assertEqual([process["rank"] for process in report["processes"]], [3])

    def test_options_of_the_table(self):
        self.tool("profile", "--", VICTIM)
        self.assertNotRegex(self.tool("report", "latest", "--depth", "1").stdout, r"(?m)^ +layer")
        self.assertIn("no room for", self.tool("report", "latest", COLUMNS="30").stdout)
        head = self.tool("report", "latest", "--columns", "occurrences,wall_ns.max").stdout
        self.assertRegex(head, r"(?m)^range +count +max$")
        wrong = self.tool("report", "latest", "--sort", "wall_ns.medain")
        self.assertEqual(wrong.returncode, 64)
        self.assertIn("wall_ns.median", wrong.stderr)
        for option in ("--depth", "--top", "--width", "--top-kernels"):
            self.assertEqual(self.tool("report", "latest", option, "-1").returncode, 64, option)

    def test_inputs_that_cannot_be_read(self):
        path = os.path.join(self.folder, "noise.bin")
        with open(path, "wb") as f:
            f.write(b"\x00\x01\x02 noise")
        self.assertEqual(self.tool("report", path).returncode, 65)
        self.assertEqual(self.tool("report", "/nowhere/x.sqlite").returncode, 66)
        self.assertEqual(self.tool("report", "latest").returncode, 66)
        for _ in range(2):
            self.tool("profile", "-q", "--", VICTIM)
        several = self.tool("report", "rangescope-runs")
        self.assertEqual(several.returncode, 64)
        self.assertIn(os.path.basename(self.runs()[-1]), several.stderr)

    def test_a_capture_that_is_gone_or_cut_is_a_loss(self):
        self.tool("profile", "-q", "--", VICTIM)
        kept = glob.glob(os.path.join(self.runs()[-1], "native", "*.rstrace"))[0]
        with open(kept, "rb") as f:
            whole = f.read()
        self.assertEqual(json.loads(self.tool("report", "latest", "--json").stdout)["losses"], [])
        os.truncate(kept, 4096)  # its header alone
        cut = json.loads(self.tool("report", "latest", "--json").stdout)["losses"]
        self.assertEqual([(loss["kind"], loss["count"]) for loss in cut], [("torn_tail", len(whole) - 4096)])
        os.remove(kept)
        gone = self.tool("report", "latest")
        self.assertIn("missing: native/" + os.path.basename(kept), gone.stdout + gone.stderr)
        with open(kept, "wb") as f:
            f.write(whole)
        self.assertEqual(json.loads(self.tool("report", "latest", "--json").stdout)["losses"], [])

    def test_a_working_directory_that_is_gone(self):
        for words in (["--run-dir", os.path.join(self.folder, "run")], ["--runs", os.path.join(self.folder, "runs")]):
            done = subprocess.run(["sh", "-c", 'mkdir x; cd x; rmdir ../x; exec "$@"', "sh", TOOL, "profile", *words, "--", VICTIM],
                                  cwd=self.folder, env=self.env, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("run kept in " + words[1], done.stderr)
        for words in (["report", "../run"], ["profile", "--dry-run", "--", VICTIM]):
            done = subprocess.run(["sh", "-c", 'mkdir x; cd x; rmdir ../x; exec "$@"', "sh", TOOL, *words],
                                  cwd=self.folder, env=self.env, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_full_disk_is_said(self):
        self.tool("profile", "--", VICTIM)
        with open("/dev/full", "w", encoding="utf-8") as full:
            for words in (["report", "latest", "-f", "json"], ["runs", "list"], ["config", "show"], ["help"]):
                done = subprocess.run([TOOL, *words], cwd=self.folder, env=self.env, stdout=full, stderr=subprocess.PIPE, check=False)
                self.assertEqual(done.returncode, 74, words)


class Runs(InAFolder):
    def test_list_show_verify_prune(self):
        for _ in range(3):
            self.tool("profile", "-q", "--", VICTIM)
        listed = self.tool("runs", "list").stdout
        self.assertEqual(len(re.findall(r" ok ", listed)), 3, listed)
        self.assertIn("exit code 0", self.tool("runs", "show").stdout)
        self.assertRegex(self.tool("runs", "stats").stdout, r"(?m)^native +rangescope \S+ +3 +0 +0 +0 +[0-9.]+ [mu]?s")
        self.assertEqual(self.tool("runs", "verify").returncode, 0)
        capture = os.path.join(self.runs()[-1], "native")
        with open(os.path.join(capture, next(name for name in os.listdir(capture) if name.endswith(".rstrace"))), "r+b") as f:
            f.seek(100)
            f.write(b"\xff")
        self.assertEqual(self.tool("runs", "verify").returncode, 65)
        os.mkdir(os.path.join(self.folder, "rangescope-runs", "mine"))
        refused = self.tool("runs", "prune", "--keep", "1")
        self.assertEqual(refused.returncode, 64)
        self.assertEqual(len(self.runs()), 4)
        done = self.tool("runs", "prune", "--keep", "1", "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.runs()), 2)
        self.assertTrue(os.path.isdir(os.path.join(self.folder, "rangescope-runs", "mine")))
        self.assertEqual(self.tool("runs", "prune").returncode, 64)
        self.assertEqual(self.tool("runs", "prune", "--keep", "-1").returncode, 64)


    def test_prune_goes_on_after_a_run_that_cannot_be_removed(self):
        for _ in range(3):
            self.tool("profile", "-q", "--", VICTIM)
        first, *others = self.runs()
        held = os.path.join(first, "mounted")
        os.mkdir(held)
        pruned = subprocess.run(["unshare", "--mount", "sh", "-c", f'mount --bind "$PWD" "{held}" && exec "$0" "$@"',
                                 TOOL, "runs", "prune", "--keep", "0", "--yes"],
                                cwd=self.folder, env=self.env, capture_output=True, text=True, check=False)
        if "unshare failed" in pruned.stderr:
            self.skipTest("mounts are not allowed here")
        self.assertEqual(pruned.returncode, 64, pruned.stderr)
        self.assertIn("another file system is mounted there", pruned.stderr)
        self.assertIn("deleted 2 of 3 runs", pruned.stderr)
        self.assertEqual(self.runs(), [first])
        self.assertTrue(os.path.exists(os.path.join(first, "report.json")))
        self.assertFalse(any(os.path.exists(run) for run in others))

    def test_prune_removes_paths_that_are_longer_than_the_kernel_takes(self):
        self.tool("profile", "-q", "--", VICTIM)
        run, = self.runs()
        folder = os.open(run, os.O_RDONLY)
        for _ in range(600):
            os.mkdir("a folder in a folder", dir_fd=folder)
            inner = os.open("a folder in a folder", os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = inner
        os.close(folder)
        pruned = self.tool("runs", "prune", "--keep", "0", "--yes")
        self.assertEqual(pruned.returncode, 0, pruned.stderr)
        self.assertFalse(os.path.exists(run))

    @unittest.skipUnless(shutil.which("zstd"), "zstd is not installed")
    def test_a_run_in_an_archive_of_tar_is_the_same_run_elsewhere(self):
        self.tool("profile", "-q", "--", VICTIM)
        run, = self.runs()
        before = self.tool("report", run, "-f", "csv")
        self.assertEqual(before.returncode, 0, before.stderr)
        name, there = os.path.basename(run), os.path.join(self.folder, "elsewhere")
        subprocess.run(["tar", "--zstd", "-cf", os.path.join(self.folder, "run.tar.zst"), name], cwd=os.path.dirname(run), check=True)
        shutil.rmtree(run)
        refused = self.tool("report", "run.tar.zst")
        self.assertEqual(refused.returncode, 65, refused.stderr)
        self.assertIn("tar --zstd -xf FILE", refused.stderr)
        os.mkdir(there)
        subprocess.run(["tar", "--zstd", "-xf", os.path.join(self.folder, "run.tar.zst")], cwd=there, check=True)
        self.assertEqual(self.tool("report", os.path.join(there, name), "-f", "csv").stdout, before.stdout)
        self.assertEqual(self.tool("report", "latest", "--runs", "elsewhere", "-f", "csv").stdout, before.stdout)
        self.assertEqual(self.tool("runs", "verify", os.path.join(there, name)).returncode, 0)
        self.assertEqual(self.tool("compare", os.path.join(there, name), os.path.join(there, name)).returncode, 0)


class Words(InAFolder):
    def test_unknown_names_get_the_nearest(self):
        for words, hint in ((["profil"], "'profile'"), (["report", "--formt", "csv", "x"], "'--format'"), (["runs", "lst"], "'list'"),
                            (["help", "reprt"], "'report'"), (["report", "x", "-f", "jsn"], "'json'"),
                            (["profile", "--domains", "nestd", "--", "true"], "'nested'")):
            done = self.tool(*words)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn("did you mean", done.stderr)
            self.assertIn(hint, done.stderr)

    def test_extra_words_are_refused(self):
        for words in (["--version", "please"], ["report", "latest", "--", "true"], ["runs", "show", "a", "b"],
                      ["config", "validate", "mine.yaml"], ["config", "groups", "ncu"], ["metrics", "list", "roofline"]):
            self.assertEqual(self.tool(*words).returncode, 64, words)

    def test_commands_that_moved_name_their_new_line(self):
        for word, line in (("watch", "profile --watch"), ("baseline", "gate --save"), ("import", "runs import"), ("init", "config init"),
                           ("plan", "metrics plan"), ("calibrate", "metrics calibrate"), ("version", "--version")):
            done = self.tool(word, "--help")
            self.assertEqual(done.returncode, 64, word)
            self.assertIn(f"hint: Write: rangescope {line}", done.stderr)
        self.assertRegex(self.tool("--version").stdout, r"\Arangescope \d")

    def test_commands_that_are_gone_name_what_to_use_instead(self):
        for words in (["ncu"], ["ncu", "run.ncu-rep", "--page", "raw", "--csv"], ["ncu", "--help"]):
            done = self.tool(*words)
            self.assertEqual((done.returncode, done.stdout), (64, ""), done.stderr)
            self.assertIn("there is no command 'ncu'\n", done.stderr)
            self.assertIn("hint: rangescope ncu was removed: use ncu --import FILE; rangescope report FILE shows its ranges\n", done.stderr)


    def test_a_folder_of_one_run_is_that_run(self):
        self.tool("profile", "-q", "--runs", "one", "--", VICTIM)
        self.assertRegex(self.tool("report", "one").stdout, r"(?m)^step ")
        self.assertRegex(self.tool("runs", "--runs", "one").stdout, r" ok +[\d.]+ KiB +\S*victim")
        self.tool("profile", "-q", "--runs", "one", "--", VICTIM)
        done = self.tool("report", "one")
        self.assertEqual(done.returncode, 64)
        self.assertIn("this is a folder of runs", done.stderr)

    def test_the_extension_of_a_comparison_is_its_format(self):
        for runs in ("a", "b"):
            self.tool("profile", "-q", "--runs", runs, "--", VICTIM)
        for name, begin in (("x.html", "<!DOCTYPE html>"), ("x.json", "{"), ("x.csv", '"'), ("x.md", "#"), ("x", "Nothing could")):
            done = self.tool("compare", "a", "b", "-o", name)
            self.assertRegex(done.stderr, rf"(?m)^rangescope: wrote {name} \([\d.]+ \w+\)$")
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                self.assertTrue(file.read().lstrip("# ").startswith(begin) or name in ("x.csv", "x.md"), name)
        for name, what in (("x.xyz", "no format has the file extension '.xyz'"), ("none/x.html", "its folder does not exist")):
            done = self.tool("compare", "--measure", "1", "-o", name, "--", "touch", "ran", "::", "touch", "ran")
            self.assertIn(what, done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "ran")))

    def test_dashes_among_the_arguments_of_the_program_are_its_own(self):
        echo = os.path.join(self.folder, "echo.sh")
        with open(echo, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho $*\n")
        os.chmod(echo, 0o755)
        for before in ([], ["--"], ["-q", "--"], ["run.retries=0"], ["--depth", "1"]):
            done = self.tool("profile", *before, echo, "-m", "tool", "--", "--lr", "3")
            self.assertEqual((done.returncode, done.stdout), (0, "-m tool -- --lr 3\n"), (before, done.stderr))
            self.assertEqual(self.file("manifest.json")["argv"], [echo, "-m", "tool", "--", "--lr", "3"])


    def test_what_is_required_is_shown_as_it_is_written(self):
        for command, line in (("compare", "rangescope compare [options] run..."), ("query", "rangescope query [options] input sql"),
                              ("runs import", "rangescope runs import [options] input")):
            done = self.tool(*command.split())
            self.assertEqual(done.returncode, 64)
            self.assertIn(f"hint: Write: {line}", done.stderr)

    def test_what_other_tools_call_our_commands(self):
        for word, ours in (("run", "profile"), ("diff", "compare"), ("stats", "report"), ("show", "report")):
            done = self.tool(word, "x")
            self.assertEqual(done.returncode, 64)
            self.assertIn(f"did you mean '{ours}'?", done.stderr)

    def test_the_program_needs_no_dashes_before_it(self):
        done = self.tool("profile", "--depth", "1", "run.retries=0", VICTIM, "exit", "3", "--depth")
        self.assertEqual((done.returncode, done.stdout), (3, "to stdout\n"), done.stderr)
        self.assertEqual(self.file("manifest.json")["argv"], [VICTIM, "exit", "3", "--depth"])
        done = self.tool("profile", "decode", "--", VICTIM)  # with -- a free word is a mistake
        self.assertEqual(done.returncode, 64)

    def test_the_newest_run_and_the_list_are_what_is_meant(self):
        self.tool("profile", "-q", VICTIM)
        self.assertEqual(self.tool("report").stdout, self.tool("report", "latest").stdout)
        self.assertEqual(self.tool("runs").stdout, self.tool("runs", "list").stdout)
        self.assertIn(VICTIM, self.tool("runs").stdout)

    def test_old_spellings_of_folders(self):
        self.tool("profile", "-q", "--root", "mine", VICTIM)
        self.tool("profile", "-q", "--runs", "mine", VICTIM)
        self.assertEqual(self.tool("report", "latest", "--runs", "mine", "--to", "x.json").returncode, 0)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "x.json")))
        new = self.tool("export", "latest", "--runs", "mine", "-f", "csv")
        self.assertEqual((new.returncode, new.stdout), (0, self.tool("export", "latest", "--runs", "mine", "--to", "csv").stdout))
        listed = self.tool("runs", "list", "--root", "mine").stdout
        self.assertEqual(listed, self.tool("runs", "--root", "mine").stdout)
        self.assertEqual(listed, self.tool("runs", "list", "--runs", "mine").stdout)
        self.assertEqual(len(listed.splitlines()), 3)

    def test_the_ending_of_a_file_says_the_format(self):
        self.tool("profile", "-q", VICTIM)
        for name, begins in (("a.json", "{"), ("a.html", "<!doctype html>"), ("a.csv", "id,"), ("a.md", "# "), ("a.txt", VICTIM)):
            self.assertEqual(self.tool("report", "-o", name).returncode, 0)
            with open(os.path.join(self.folder, name), encoding="utf-8") as f:
                self.assertTrue(f.read().startswith(begins), name)
        for name in ("a.foo", "a.json.gz"):
            unknown = self.tool("report", "-o", name)
            self.assertEqual(unknown.returncode, 64)
            self.assertIn("no format has the file extension", unknown.stderr)
            self.assertIn(".txt .json", unknown.stderr)
            self.assertFalse(os.path.exists(os.path.join(self.folder, name)))
        for name in ("a", "a.log", "a.v2", "./a"):
            self.assertEqual(self.tool("report", "-o", name).returncode, 0, name)
        self.assertEqual(self.tool("report", "-o", "a.perfetto").returncode, 0)
        with open(os.path.join(self.folder, "a.perfetto"), "rb") as f:
            self.assertEqual(f.read(1), b"\n")  # a packet
        self.tool("report", "-o", "b.html", "-f", "json")
        with open(os.path.join(self.folder, "b.html"), encoding="utf-8") as f:
            json.load(f)

    def test_standard_input(self):
        with open(f"{os.path.dirname(__file__)}/../golden/nsys/zoo.sqlite", "rb") as f:
            done = subprocess.run([TOOL, "report", "-", "--depth", "1"], stdin=f, capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("prefill", done.stdout)

    def test_help_of_profile_is_short_and_there_is_more(self):
        short, everything = self.tool("profile", "--help").stdout, self.tool("profile", "--help-all").stdout
        self.assertLessEqual(len(re.findall(r"(?m)^  (-|--)", short)), 20)
        self.assertIn("--help-all", short)
        self.assertIn("--cuda-graphs", everything)
        self.assertNotIn("--cuda-graphs", short)
        groups = re.findall(r"(?m)^(\w[\w ]*):$", everything)
        self.assertEqual(len(groups), len(set(groups)), "a group stands once")

    def test_help_is_data_and_complete(self):
        overview = self.tool("help")
        self.assertEqual(overview.returncode, 0)
        for command in re.findall(r"(?m)^  (\w[\w-]*) {2,}", overview.stdout):
            page = self.tool("help", command)
            self.assertEqual((page.returncode, page.stderr), (0, ""), command)
            self.assertIn("Usage: rangescope " + command, page.stdout)
            self.assertEqual(page.stdout, self.tool(command, "--help").stdout)
            self.assertIn(".SH OPTIONS", self.tool("help", "--man", command).stdout)
        self.assertRegex(self.tool("--version").stdout, r"\Arangescope \d+\.\d+\.\d+\n(commit [0-9a-f]{7,}, )?\w+ build, (CUPTI \d+\.\d+|without CUPTI's) headers.*\n\Z")
        version = json.loads(self.tool("--version", "--json").stdout)
        self.assertEqual((version["schema"], version["formats"]["report"]), ("rangescope.version/1", "rangescope.report/1"))
        self.assertTrue(self.tool("--version").stdout.startswith(version["tool"] + "\n"))
        self.assertEqual(self.tool().returncode, 64)

    def test_a_wrong_value_of_an_option_is_one_sentence(self):
        for option, value, what in (("--timeout", "-5", "is not a duration"), ("--every", "0", "is not a whole number from 1")):
            done = self.tool("profile", option, value, "--", VICTIM)
            self.assertEqual(done.returncode, 64)
            self.assertIn(f"rangescope: error: {option}: '{value}' {what}", done.stderr)

    def test_durations_and_json_are_the_same_everywhere(self):
        for words in (["profile", "--arm-wait", "soon"], ["profile", "--arm-wait", "61s"], ["profile", "--watch-every", "1x"], ["profile", "--watch-every", "1ms"], ["profile", "--timeout", "soon"]):
            self.assertIn(self.tool(*words, "--", VICTIM).returncode, (64, 78), words)
        for words in (["profile", "--watch-every", "200ms"], ["profile", "--metrics", "roofline", "--arm-wait", "50ms"], ["profile", "--metrics", "roofline", "--arm-wait", "0"], ["profile", "--timeout", "10"], ["profile", "--timeout", "10s"]):
            done = self.tool(*words, "--", VICTIM)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("run kept in", done.stderr)
        run = self.runs()[-1]
        listed = json.loads(self.tool("runs", "list", "--json").stdout)
        self.assertEqual(listed[-1], json.loads(self.tool("runs", "show", "--json").stdout))
        self.assertEqual((listed[-1]["run"], listed[-1]["exit_code"]), (os.path.basename(run), 0))
        self.assertEqual(json.loads(self.tool("runs", "--json").stdout), listed)
        self.assertIn("schema", json.loads(self.tool("compare", run, run, "--json").stdout))


if __name__ == "__main__":
    cases.main()
