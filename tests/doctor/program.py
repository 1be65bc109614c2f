#!/usr/bin/env python3
"""Programs that are broken in one way or several: the doctor names each cause, the decisive one first, and nothing else.

Usage: program.py BIN_DIR STANDIN_LIBCUDA STANDIN_LIBCUPTI. The printed commands are executed: rangescope's own always, those of
nsys with the real nsys of tests/tools/fetch.sh where it is there.
"""
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("tools", "standin"):
    sys.path.insert(0, os.path.join(HERE, "..", folder))
import cases  # noqa: E402
import terminal  # noqa: E402

BIN, LIBCUDA, LIBCUPTI = sys.argv[1:4]
STANDIN = os.path.join(HERE, "..", "standin")
TOOLS = os.path.join(os.environ.get("RANGESCOPE_TOOLS", os.path.join(HERE, "..", "..", ".cache", "tools")), "bin")
VICTIM = os.path.join(BIN, "doctor_victim")

# set-up: (scene, include, complaints in order)
BROKEN = {
    "a letter is wrong": ("healthy", "deocde/", ["fail program.unknown_range"]),
    "upper case": ("healthy", "DECODE/", ["fail program.unknown_range"]),
    "nothing like it": ("healthy", "attention/", ["fail program.unknown_range"]),
    "wrong domain": ("domain", "decode/", ["fail program.wrong_domain"]),
    "a domain that is not there": ("healthy", "LLM@decode/", ["fail program.wrong_domain"]),
    "start/end asked for as push/pop": ("start_end", "decode/", ["fail program.wrong_kind"]),
    "push/pop asked for as start/end": ("healthy", "decode,layer0", ["fail program.wrong_kind"] * 2),
    "wrong nesting": ("nested", "decode/layer0", ["fail program.wrong_nesting"]),
    "not at the bottom": ("nested", "[layer0", ["fail program.wrong_nesting"]),
    "NVTX compiled out": ("plain healthy", "decode/", ["fail program.no_nvtx"]),
    "no descriptor for the library": ("no_descriptors", "decode/", ["fail program.no_files"]),
    "no byte for the capture": ("no_bytes", "decode/", ["fail program.no_files"]),
    "NVTX without ranges": ("mark", "decode/", ["fail program.no_ranges", "warn program.no_cuda"]),
    "no CUDA at all": ("cpu", "decode/", ["warn program.no_cuda"]),
    "kernels by a worker thread": ("worker", "decode/", ["fail program.work_on_other_threads"]),
    "kernels by a child process": ("child_launches", "decode/", ["fail program.work_in_child_process"]),
    "ranges in a child process": ("child_range", "decode/", ["warn program.range_in_child_process"]),
    "nothing launched inside": ("empty", "decode/", ["fail program.no_work_inside"]),
    "CUDA starts inside": ("context_inside", "decode/", ["warn program.context_inside"]),
    "graphs inside": ("graphs", "decode/", ["warn program.graphs_inside"]),
    "mallocAsync inside": ("malloc_async", "decode/", ["warn program.async_allocation"]),
    "another refused call inside": ("kernel_attribute", "decode/", ["warn program.calls_inside"]),
    "two contexts": ("contexts", "decode/", ["warn program.several_contexts"]),
    "occurrences differ": ("differ", "decode/", ["warn program.occurrences_differ"]),
    "never closed": ("never_ends", "decode/", ["fail program.range_never_ends"]),
    "closed on another thread": ("popped_elsewhere", "decode/", ["fail program.popped_elsewhere"]),
    "exits with an error before it": ("exits_early", "decode/", ["fail program.failed", "fail program.not_reached"]),
    "returns before it": ("returns_early", "decode/", ["fail program.unknown_range"]),
    "crashes inside": ("crashes", "decode/", ["fail program.failed"]),
    # several at once
    "wrong domain and fails": ("domain_fails", "decode/", ["fail program.failed", "fail program.wrong_domain"]),
    "no CUDA and a typo": ("cpu", "deocde/", ["fail program.unknown_range", "warn program.no_cuda"]),
    "fails without CUDA": ("cpu_fails", "decode/", ["fail program.failed", "fail program.not_reached", "warn program.no_cuda"]),
}
HEALTHY = {
    "plain": ("healthy", "decode/"), "a layer": ("healthy", "decode/layer0"), "domain": ("domain", "LLM@decode/"), "either kind": ("start_end", "decode"),
    "start/end": ("start_end", "decode"), "registered": ("registered", "LLM@decode/"), "cudaMalloc inside": ("malloc", "decode/"),
    "warm-up differs": ("first_differs", "decode/"), "no synchronize": ("async", "decode/"), "threads with ranges of their own": ("pool", "decode/"),
}


class DoctorCase(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="rangescope-doctor-test-")
        self.addCleanup(self.temporary.cleanup)
        self.folder = os.path.realpath(self.temporary.name)
        self.env = dict(os.environ, STANDIN_CUDA=LIBCUDA, RANGESCOPE_CUPTI=LIBCUPTI, XDG_CACHE_HOME=os.path.join(self.folder, "cache"),
                        HOME=self.folder, TMPDIR=self.folder, PATH=BIN + ":" + os.environ["PATH"])
        for name in ("RANGESCOPE_NCU", "RANGESCOPE_NSYS"):
            self.env.pop(name, None)

    def program(self, scene):
        return [VICTIM + "_plain", *scene.split()[1:]] if scene.startswith("plain ") else [VICTIM, scene]

    def doctor(self, scene, include=None, *options, env=None):
        """The answer as JSON; self.done is the process."""
        words = ["--include", include] if include else []
        argv = [f"{BIN}/rangescope", "doctor", "--json", *words, *options, "--", *(self.program(scene) if isinstance(scene, str) else scene)]
        self.done = cases.run(argv, cwd=self.folder, env=dict(self.env, **(env or {})))
        self.assertTrue(self.done.stdout.startswith("{"), self.done.stdout + self.done.stderr)
        return json.loads(self.done.stdout)

    @staticmethod
    def complaints(answer):
        return [f["verdict"] + " " + f["id"] for f in answer["findings"] if f["verdict"] in ("warn", "fail")]

    def shell(self, command, **env):
        with subprocess.Popen(["bash", "-c", command], cwd=self.folder, env=dict(self.env, **env), stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
            try:
                out, err = process.communicate(timeout=300)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                raise
        return subprocess.CompletedProcess(command, process.returncode, out, err)


class Broken(DoctorCase):
    def check(self, scene, include, expected):
        answer = self.doctor(scene, include)
        self.assertEqual(self.complaints(answer), expected, json.dumps(answer["findings"], indent=1))
        for finding in answer["findings"]:
            if finding["verdict"] in ("warn", "fail"):
                self.assertTrue(finding["hint"] and finding["why"] and finding["found"] and finding["question"], finding)
            else:
                self.assertFalse(finding["hint"], finding)
        failed = any(line.startswith("fail") for line in expected)
        self.assertEqual(self.done.returncode != 0, failed, self.done.stderr)
        if not failed:
            return
        # A corrected command that is printed runs as it stands, and finds the range.
        for finding in answer["findings"]:
            for command in finding["commands"]:
                done = self.shell(command + " > out.txt 2> err.txt")
                report = json.loads(self.text("rangescope-runs"))
                self.assertTrue([r for r in report["regions"] if r["occurrences"] > 0], (command, done))

    def text(self, root):
        runs = sorted(os.listdir(os.path.join(self.folder, root)))
        with open(os.path.join(self.folder, root, runs[-1], "report.json")) as f:
            return f.read()


for title, case in BROKEN.items():
    def one(self, case=case):
        self.check(*case)
    setattr(Broken, "test_" + re.sub(r"\W+", "_", title), one)


class Healthy(DoctorCase):
    def test_no_complaint(self):
        for title, (scene, include) in HEALTHY.items():
            with self.subTest(title):
                answer = self.doctor(scene, include)
                self.assertEqual(self.complaints(answer), [], json.dumps(answer, indent=1))
                self.assertEqual(self.done.returncode, 0)
                self.assertEqual(answer["verdict"], "ok")

    def test_a_missing_synchronize_is_no_cause(self):
        answer = self.doctor("async", "decode/")
        told = [f for f in answer["findings"] if f["id"] == "program.work_ends_later"]
        self.assertEqual([f["verdict"] for f in told], ["ok"])
        self.assertEqual(answer["ranges"][0]["gpu"]["late_occurrences"], 4)
        self.assertEqual(answer["ranges"][0]["gpu"]["kernels"], 4)

    def test_facts(self):
        decode = self.doctor("healthy", "decode/")["ranges"][0]
        self.assertEqual((decode["occurrences"], decode["threads"], decode["registered"], decode["gpu"]["kernels"]), (6, 1, 0, 24))
        self.assertEqual((decode["gpu"]["kernel_sequences"], decode["gpu"]["contexts"]), (1, 1))
        layer = self.doctor("healthy", "layer0/")["ranges"][0]
        self.assertEqual((layer["occurrences"], layer["nested"], layer["gpu"]["kernels"]), (6, 6, 12))
        self.assertEqual(self.doctor("malloc", "decode/")["ranges"][0]["gpu"]["calls"], {"cuMemAlloc_v2": 4})
        self.assertEqual(self.doctor("malloc_async", "decode/")["ranges"][0]["gpu"]["calls"], {"cuMemAllocAsync": 4})
        answer = self.doctor("registered", "LLM@decode/")
        self.assertEqual(answer["ranges"][0]["registered"], 4)
        self.assertNotIn("program.unregistered", [f["id"] for f in answer["findings"]])
        self.assertIn("ok program.unregistered", [f["verdict"] + " " + f["id"] for f in self.doctor("healthy", "decode/")["findings"]])
        self.assertEqual(self.doctor("healthy", "deocde/")["ranges"][0]["nearest"][0], "decode/")

    def test_the_text_says_the_same(self):
        done = cases.run([f"{BIN}/rangescope", "doctor", "--include", "decode/", "--", VICTIM, "graphs"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warn: program.graphs_inside: decode/: cuGraphLaunch (4 times)", done.stdout)
        self.assertRegex(done.stdout, r"no   ncu range: .*cuGraphLaunch \(4 times; CUDA graphs\)")
        self.assertIn("yes  ncu app-range", done.stdout)
        self.assertIn("$ rangescope profile --include decode/ -- ", done.stdout)


class Looks(DoctorCase):
    def test_stops_when_it_knows_and_leaves_nobody(self):
        child = os.path.join(self.folder, "child")
        # Nobody waits for an hour here: it ends when it knows.
        answer = self.doctor("serves", "decode/", "--for", "1h", env={"VICTIM_CHILD": child})
        self.assertTrue(answer["program"]["all_known"])
        self.assertEqual(self.complaints(answer), [])
        self.assertGreaterEqual(answer["ranges"][0]["occurrences"], 20)
        with open(child) as f:
            pid = int(f.read())
        self.assertTrue(terminal.soon(lambda: terminal.state(pid) == ""), "the program's child is still there")

    def test_a_look_that_is_too_short(self):
        answer = self.doctor("slow", "decode/", "--for", "1s")
        self.assertEqual(self.complaints(answer), ["fail program.not_reached", "warn program.no_cuda"])
        self.assertIn("--for", answer["findings"][0]["hint"])

    def test_what_cannot_be_started(self):
        answer = self.doctor(["./no-such-program"], "decode/")
        self.assertEqual(self.complaints(answer), ["fail program.not_started"])
        self.assertEqual(self.done.returncode, 66)
        answer = self.doctor("healthy", "decode/", env={"NVTX_INJECTION64_PATH": "/opt/other/libTool.so"})
        self.assertEqual(self.complaints(answer), ["fail program.other_injection"])
        self.assertIn("libTool.so", answer["findings"][0]["found"])

    def test_cupti_is_held(self):
        answer = self.doctor("healthy", "decode/", env={"STANDIN_FAULT": "subscriber_taken"})
        self.assertEqual(self.complaints(answer), ["warn program.gpu_not_recorded"])
        self.assertIn("CUPTI for Kineto", answer["findings"][0]["found"])

    def test_a_wrong_expression_is_refused(self):
        done = cases.run([f"{BIN}/rangescope", "doctor", "--include", "A@B@C/", "--", VICTIM], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 64, done.stderr)

    def test_without_expressions_the_ranges_are_listed(self):
        done = cases.run([f"{BIN}/rangescope", "doctor", "--", VICTIM, "nested"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("decode > step > layer0: 4 instances, 8 kernels", done.stdout)


class NotRecorded(DoctorCase):
    """Programs with ranges that no library can record: `doctor`, `profile` and `report` name the one reason."""

    def check(self, reason, command, detail, *, env=None):
        answer = self.doctor(command, env=env)
        self.assertEqual([c for c in self.complaints(answer) if c.startswith("fail")], ["fail program." + reason], answer["findings"])
        self.assertRegex(answer["findings"][0]["found"], detail)
        done = cases.run([f"{BIN}/rangescope", "profile", "--", *command], cwd=self.folder, env={**self.env, **(env or {})})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr + done.stdout, "no ranges: the program is one region. " + detail)
        self.assertIn(reason, self.losses("rangescope-runs"))

    def losses(self, root):
        runs = sorted(os.listdir(os.path.join(self.folder, root)))
        with open(os.path.join(self.folder, root, runs[-1], "report.json")) as f:
            return {loss["kind"]: loss["detail"] for loss in json.load(f)["losses"]}

    def test_a_cleared_environment(self):
        self.check("cleared_environment", ["env", "-i", VICTIM, "cpu_slow"], r"doctor_victim \(process \d+\) started without NVTX_INJECTION64_PATH")

    def test_another_library_named_by_a_script(self):
        self.check("replaced_injection", ["env", "NVTX_INJECTION64_PATH=/opt/tool/libtool.so", VICTIM, "cpu_slow"],
                   r"doctor_victim \(process \d+\) had NVTX_INJECTION64_PATH=/opt/tool/libtool.so")

    def test_another_library_named_by_the_program(self):
        self.check("replaced_injection", [VICTIM, "sets_injection"], r"doctor_victim \(process \d+\) had NVTX_INJECTION64_PATH=/usr/lib/libother_tool.so")

    def test_nvtx_2(self):
        self.check("nvtx_2_program", [os.path.join(BIN, "doctor_nvtx_2")], r"doctor_nvtx_2 \(process \d+\) calls NVTX 2")

    def test_a_static_program(self):
        self.check("static_program", [os.path.join(BIN, "doctor_static")], r"doctor_static \(process \d+\) is linked statically")

    def test_a_hidden_folder(self):
        hide = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', self.folder]
        if cases.run([*hide, "true"]).returncode != 0:
            self.skipTest("no mount namespaces here")
        self.check("hidden_run_folder", [*hide, VICTIM, "cpu_slow"], r"doctor_victim \(process \d+\) does not see ")

    def test_another_user_and_its_cure(self):
        become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if cases.run([*become, f"{BIN}/rangescope", "--version"]).returncode != 0:
            self.skipTest("not root, or the build cannot be read by others")
        os.chmod(self.folder, 0o755)
        self.check("other_user", [*become, VICTIM, "cpu_slow"], r"doctor_victim \(process \d+\) ran as user 65534")
        theirs = os.path.join(self.folder, "theirs")
        os.mkdir(theirs)
        os.chown(theirs, 65534, 65534)
        done = cases.run([*become, f"{BIN}/rangescope", "profile", "--runs", theirs, "--", VICTIM, "cpu_slow"], cwd=theirs,
                         env=dict(self.env, HOME=theirs, TMPDIR=theirs, XDG_CACHE_HOME=theirs))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^decode ")

    def test_a_child_is_named_where_its_parent_has_ranges(self):
        done = cases.run([f"{BIN}/rangescope", "profile", "--", VICTIM, "child_cleared"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^parent ")
        self.assertRegex(self.losses("rangescope-runs")["cleared_environment"], r"doctor_victim \(process \d+\) started without")

    def test_programs_without_ranges_are_no_loss(self):
        done = cases.run([f"{BIN}/rangescope", "profile", "--", "env", "-i", "sleep", "0.3"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("cleared_environment", self.losses("rangescope-runs"))


class Ways(DoctorCase):
    def ways(self, scene, include="decode/", **env):
        return {w["name"]: w for w in self.doctor(scene, include, env=env)["ways"]}

    def test_what_can_work(self):
        for scene, can in (("healthy", {"ranges", "nsys", "nsys gated", "ncu range", "ncu app-range", "ncu kernel"}),
                           ("graphs", {"ranges", "nsys", "nsys gated", "ncu app-range", "ncu kernel"}),
                           ("malloc_async", {"ranges", "nsys", "nsys gated", "ncu app-range", "ncu kernel"}),
                           ("contexts", {"ranges", "nsys", "nsys gated", "ncu app-range", "ncu kernel"}),
                           ("cpu", {"ranges", "nsys", "nsys gated"}), ("empty", {"ranges", "nsys", "nsys gated"}),
                           ("worker", {"ranges", "nsys", "nsys gated"})):
            with self.subTest(scene):
                ways = self.ways(scene)
                self.assertEqual({name for name, way in ways.items() if way["works"]} - {"counters"}, can)
                self.assertTrue(all(way["reason"] for way in ways.values()))
                self.assertTrue(all(bool(way["command"]) == way["works"] for way in ways.values()))

    def test_commands_are_those_of_the_tools_here(self):
        ways = self.ways("worker", RANGESCOPE_NCU=os.path.join(STANDIN, "ncu"), RANGESCOPE_NSYS=os.path.join(STANDIN, "nsys"))
        self.assertIn("--nvtx-push-pop-scope process", ways["ncu kernel"]["command"])
        self.assertIn("--replay-mode app-range", ways["ncu app-range"]["command"])
        plan = os.path.join(self.folder, "plan.json")
        with open(plan, "w") as f:
            json.dump({"kernel": "k_decode"}, f)
        done = self.shell(ways["ncu kernel"]["command"], STANDIN_PLAN=plan)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "rangescope-doctor", "ncu", "kernel.ncu-rep")))

    def test_ours_runs_as_it_stands(self):
        done = self.shell(self.ways("healthy")["ranges"]["command"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("decode", done.stdout + done.stderr)

    @unittest.skipUnless(os.path.exists(f"{TOOLS}/nsys"), f"no nsys in {TOOLS} (tests/tools/fetch.sh)")
    def test_commands_of_the_real_nsys(self):
        ways = self.ways("cpu_slow", RANGESCOPE_NSYS=f"{TOOLS}/nsys")
        self.assertEqual(self.recorded(ways["nsys"]["command"], tries=3), {"decode"})
        # Without the variable that the gated command sets, nsys records nothing of an unregistered string.
        gated = ways["nsys gated"]["command"]
        without = re.sub(r" --env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0", "", gated.replace("env NSYS_NVTX_PROFILER_REGISTER_ONLY=0 ", ""))
        self.assertNotIn("REGISTER_ONLY", without)
        for command, names in ((gated, {"decode"}), (without, set())):
            shutil.rmtree(os.path.join(self.folder, "rangescope-doctor"))
            self.assertEqual(self.recorded(command, tries=3 if names else 1), names)

    def recorded(self, command, tries=1):
        """Names of the ranges in what nsys left, of the first of `tries` runs that left some: on a busy machine nsys may drop all."""
        for _ in range(tries):
            if names := self.recorded_once(command):
                break
        return names

    def recorded_once(self, command):
        done = self.shell(command)
        base = os.path.join(self.folder, "rangescope-doctor", "nsys", "nsys")
        if not os.path.exists(base + ".nsys-rep"):
            if not os.path.exists(base + ".qdstrm"):
                return set()
            cases.run([f"{TOOLS}/QdstrmImporter", "-i", base + ".qdstrm", "-o", base + ".nsys-rep"], env=self.env)
        self.assertTrue(os.path.exists(base + ".nsys-rep"), done.stdout + done.stderr)
        cases.run([f"{TOOLS}/nsys", "export", "--type", "sqlite", "-f", "true", "-o", base + ".sqlite", base + ".nsys-rep"], env=self.env)
        with sqlite3.connect(base + ".sqlite") as db:
            if not db.execute("select 1 from sqlite_master where name='NVTX_EVENTS'").fetchone():
                return set()
            return {r[0] for r in db.execute("select coalesce(text, (select value from StringIds where id = textId)) from NVTX_EVENTS where eventType = 59")}


class Profile(DoctorCase):
    """The same diagnosis after a capture of profile that is empty or partial."""

    def profile(self, scene, *words, env=None):
        argv = [f"{BIN}/rangescope", "profile", "--no-project", *words, "--", *self.program(scene)]
        self.done = cases.run(argv, cwd=self.folder, env=dict(self.env, **(env or {})))
        root = os.path.join(self.folder, "rangescope-runs")
        run = max((os.path.join(root, name) for name in os.listdir(root)), key=os.path.getmtime)  # names end in a process id
        out = []
        for name in ("status.json", "report.json"):
            if os.path.exists(os.path.join(run, name)):
                with open(os.path.join(run, name)) as f:
                    out.append([f["verdict"] + " " + f["id"] for f in json.load(f)["findings"]])
            else:
                out.append(None)
        return out

    def test_native(self):
        for scene, include, expected in (("healthy", "deocde/", ["fail program.unknown_range"]), ("domain", "decode/", ["fail program.wrong_domain"]),
                                         ("plain healthy", "decode/", ["fail program.no_nvtx"]),
                                         ("mark", "decode/", ["fail program.no_ranges", "warn program.no_cuda"])):
            with self.subTest(scene):
                status, report = self.profile(scene, "--include", include)
                self.assertEqual((status, report), (expected, expected))
                self.assertEqual(self.done.returncode, 80, self.done.stderr)
                self.assertIn(expected[0].replace("fail ", "fail: "), self.done.stderr)

    def test_runs_show_says_it_too(self):
        self.profile("domain", "--include", "decode/")
        shown = cases.run([f"{BIN}/rangescope", "runs", "show", "latest"], cwd=self.folder, env=self.env)
        self.assertRegex(shown.stdout, r"(?m)^fail +program.wrong_domain: .*Write LLM@decode/$")

    def test_native_partial(self):
        status, report = self.profile("healthy", "--include", "decode/", "--include", "prefil/")
        self.assertEqual((status, report), (["fail program.unknown_range"],) * 2)
        self.assertEqual(self.done.returncode, 0, self.done.stderr)

    def test_healthy_has_none(self):
        self.assertEqual(self.profile("healthy", "--include", "decode/"), [[], []])
        self.assertEqual(self.profile("cpu"), [[], []])

    def test_nsys_whose_range_never_opened(self):
        env = {"RANGESCOPE_NSYS": os.path.join(STANDIN, "nsys"), "STANDIN_NSYS": "never"}
        for scene, capture, expected in (("healthy", "deocde", ["fail program.unknown_range", "fail nsys.never_started"]),
                                         ("domain", "decode", ["fail program.wrong_domain", "fail nsys.never_started"]),
                                         ("healthy", "decode", ["fail nsys.never_started"])):  # we set what unregistered strings need
            with self.subTest(capture):
                status, report = self.profile(scene, "--nsys", "+pipeline.nsys.gating_nvtx=true", "+pipeline.nsys.nvtx_capture=" + capture, env=env)
                self.assertEqual((status, report), (expected, expected))

    def test_ncu(self):
        env = {"RANGESCOPE_NCU": os.path.join(STANDIN, "ncu"), "STANDIN_PLAN": os.path.join(self.folder, "plan.json")}
        for recording, scene, include, first in (("k_miss", "healthy", "deocde/", "fail program.unknown_range"),
                                                 ("k_miss", "cpu", "decode/", "fail program.no_cuda"),
                                                 ("k_miss", "worker", "decode/", "fail program.work_on_other_threads"),
                                                 ("badmetric", "healthy", "decode/", "fail ncu.unknown_metric")):
            with self.subTest(first):
                for file in os.listdir(self.folder):
                    if file.startswith("plan.json"):
                        os.remove(os.path.join(self.folder, file))
                with open(env["STANDIN_PLAN"], "w") as f:
                    json.dump({"kernel": recording}, f)
                status, _ = self.profile(scene, "pipeline.ncu.enable=true", "pipeline.native.enable=false", "pipeline.ncu.ncu_cli.replay_mode=kernel",
                                         "pipeline.ncu.ncu_cli.nvtx.include=" + include, env=env)
                self.assertEqual(status[0], first, self.done.stderr)


class Init(DoctorCase):
    def init(self, scene, *words):
        self.done = cases.run([f"{BIN}/rangescope", "config", "init", *words, "--", *self.program(scene)], cwd=self.folder, env=self.env)
        path = os.path.join(self.folder, "rangescope.yaml")
        return open(path).read() if os.path.exists(path) else None

    def config(self, *words):
        done = cases.run([f"{BIN}/rangescope", "config", *words], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_file_that_profile_takes(self):
        text = self.init("healthy")
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        self.assertIn("'decode/'  # 6 times", text)
        self.assertIn("24 kernels", text)
        self.assertIn("rangescope.yaml", self.config("validate"))
        self.assertIn("decode/", self.config("show", "ranges"))
        done = cases.run([f"{BIN}/rangescope", "profile"], cwd=self.folder, env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.init("healthy"), text)
        self.assertEqual(self.done.returncode, 64)
        self.init("registered", "--force")
        self.assertIn("LLM@decode/", self.config("show", "ranges"))

    def test_groups_fit_the_occurrences(self):
        for scene, room in (("often", 57), ("healthy", 3)):  # three occurrences go to the timeline
            with self.subTest(scene):
                text = self.init(scene, "--force")
                chosen = re.search(r"metrics: \[(.*)\]", text)
                groups = chosen.group(1).split(", ") if chosen else []
                if groups:
                    self.assertLessEqual(self.passes(",".join(groups)), room)
                for group in ("quick", "speed_of_light", "tensor", "memory", "occupancy", "flops", "stalls"):
                    if group not in groups:
                        more = self.passes(",".join([*groups, group]))
                        self.assertTrue(more is None or more > room, (group, more))
                self.assertTrue(groups or scene == "healthy", text)

    def passes(self, groups):
        done = cases.run([f"{BIN}/rangescope", "metrics", "plan", "--metrics", groups, "--chip", "GH100", "-f", "json"], cwd=self.folder, env=self.env)
        return json.loads(done.stdout)["passes"] if done.returncode == 0 else None

    def test_what_is_worth_measuring(self):
        text = self.init("numbered")
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        shown = self.config("show", "ranges.include")
        self.assertIn("regex:^step [0-9]+$/", shown)
        self.assertNotIn("'main/'", shown)
        self.assertIn("it''s \"quoted\": #1'  # 6 times", text)
        answer = self.doctor("numbered", "regex:^step [0-9]+$/")
        self.assertEqual((answer["ranges"][0]["occurrences"], self.complaints(answer)), (8, []))

    def test_rare_ranges_get_no_counters(self):
        text = self.init("never_ends")
        self.assertIsNone(text)
        self.assertEqual(self.done.returncode, 80)
        self.assertIn("program.range_never_ends", self.done.stderr)

    def test_nothing_to_write(self):
        self.assertIsNone(self.init("plain healthy"))
        self.assertEqual(self.done.returncode, 80)
        self.assertIn("program.no_nvtx", self.done.stderr)


if __name__ == "__main__":
    cases.main()
