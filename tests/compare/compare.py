#!/usr/bin/env python3
"""compare, baseline, gate and profile --repeat as a user meets them. Usage: compare.py BIN_DIR SOURCE_DIR"""
import csv
import io
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402
import json_schema  # noqa: E402

BIN, SOURCE = os.path.abspath(sys.argv[1]), sys.argv[2]
TOOL, STEADY, VICTIM = f"{BIN}/rangescope", f"{BIN}/compare_steady", f"{BIN}/cli_victim"
REPEATS = 4  # as few as can be significant; the program has a clock of its own


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


class Compare(unittest.TestCase):
    schema = load(f"{SOURCE}/docs/formats/compare.schema.json")

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="rangescope-compare-")
        cls.env = {k: v for k, v in os.environ.items() if not k.endswith("_INJECTION64_PATH")}
        for name, slow in (("same1", 0), ("same2", 0), ("slow", 2000)):
            done = cls.tool("profile", "-q", "--repeat", REPEATS, "--runs", name, "--", STEADY, 20, slow)
            assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    @classmethod
    def tool(cls, *words):
        return cases.run([TOOL, *words], cwd=cls.folder, env=cls.env)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def json(self, *words):
        done = self.tool("compare", "-f", "json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual(json_schema.errors(result, self.schema), [])
        return result

    def test_a_series_is_one_run(self):
        runs = os.listdir(self.path("same1"))
        self.assertEqual(len(runs), 1)
        run = self.path("same1", runs[0])
        self.assertEqual(sorted(os.listdir(f"{run}/repeats")), [f"{number:03}" for number in range(1, REPEATS + 1)])
        self.assertEqual(load(f"{run}/status.json")["outcome"], "ok")
        self.assertEqual(self.tool("runs", "verify", run).returncode, 0)
        shown = self.tool("report", run)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, r"(?m)^step .*% +20 ")
        self.assertIn("of median duration", shown.stderr)

    def test_as_many_runs_as_it_takes(self):
        done = self.tool("profile", "-q", "--repeat", "auto", "--runs", "auto", "--", STEADY, 20, 0)
        self.assertEqual(done.returncode, 0, done.stderr)
        runs = os.listdir(os.path.join(self.path("auto"), os.listdir(self.path("auto"))[0], "repeats"))
        self.assertTrue(5 <= len(runs) <= 30, runs)
        self.assertEqual(self.tool("profile", "--repeat", "often", "--", STEADY).returncode, 64)

    def test_a_series_ends_at_the_first_failure(self):
        done = self.tool("profile", "-q", "--repeat", 3, "--runs", "failed", "--", VICTIM, "exit", "7")
        self.assertEqual(done.returncode, 7)
        run = self.path("failed", os.listdir(self.path("failed"))[0])
        self.assertEqual(os.listdir(f"{run}/repeats"), ["001"])
        status = load(f"{run}/status.json")
        self.assertEqual((status["outcome"], status["exit_code"]), ("program_failed", 7))
        self.assertIn("repetition 1 of 3", status["message"])

    def test_a_later_failure_is_told_and_leaves_the_others(self):
        count = self.path("count")
        fails_thirdly = f'echo >> {count}; {STEADY} 20 0; [ $(wc -l < {count}) != 3 ] || exit 7'
        done = self.tool("profile", "--repeat", 5, "--runs", "third", "--", "sh", "-c", fails_thirdly)
        self.assertEqual(done.returncode, 7)
        self.assertRegex(done.stderr, "warning: repetition 3 of 5: the program ended by exit code 7; "
                                      "the report is of repetition 00[123]")
        status = load(self.path("third", os.listdir(self.path("third"))[0], "status.json"))
        self.assertEqual(status["exit_code"], 7)
        self.assertEqual([loss for loss in status["losses"] if loss["kind"] == "stage_empty"], [])

    def test_the_region_that_changed_comes_first(self):
        result = self.json("same1", "slow", "--metric", "wall_ns.min")
        self.assertEqual(result["noise"], "runs")
        self.assertEqual([side["runs"] for side in result["sides"]], [REPEATS, REPEATS])
        regions = {tuple(r["path"]): r["values"]["wall_ns.min"]["changes"][0] for r in result["regions"]}
        self.assertEqual(len(regions), 6)
        mlp = regions["step", "mlp"]
        self.assertEqual(mlp["standing"], "more")
        self.assertEqual(mlp["ratio"], 21)
        self.assertIn(("step", "mlp"), [tuple(r["path"]) for r in result["regions"][:2]])
        self.assertEqual([d["what"] for d in result["environment"]], ["arguments"])
        first = self.tool("compare", "same1", "slow").stdout.splitlines()
        self.assertRegex(first[0], r"is slower: wall_ns\.m(in|edian) from .* to .* \(.*\)\.")
        self.assertRegex(first[3], r"^different arguments: A '?20")

    def test_several_sides_single_runs_and_report_files(self):
        report = self.path("slow", os.listdir(self.path("slow"))[0], "repeats", "001", "report.json")
        single = os.path.join("same1", os.listdir(self.path("same1"))[0], "repeats", "001")
        result = self.json(single, os.path.relpath(report, self.folder), "same2", "--include", "step",
                           "--metric", "wall_ns.min")
        self.assertEqual(result["noise"], "occurrences")
        self.assertEqual(len(result["sides"]), 3)
        self.assertTrue(any("--repeat" in note for note in result["notes"]))
        mlp = next(r for r in result["regions"] if r["path"] == ["step", "mlp"])
        self.assertEqual(len(mlp["values"]["wall_ns.min"]["changes"]), 2)
        self.assertEqual(mlp["values"]["wall_ns.min"]["changes"][0]["standing"], "more")

    def test_what_is_read_is_what_the_reports_say(self):
        run = self.path("same1", os.listdir(self.path("same1"))[0], "repeats")
        want = sorted(next(r for r in load(f"{run}/00{i}/report.json")["regions"] if r["path"] == ["step", "mlp"])
                      ["wall_ns"]["inclusive"] / 20 for i in range(1, REPEATS + 1))
        result = self.json("same1", "slow", "--metric", "wall_ns.inclusive", "--region", "mlp")
        self.assertEqual(len(result["regions"]), 1)
        value = result["regions"][0]["values"]["wall_ns.inclusive"]
        self.assertTrue(value["per_occurrence"])
        self.assertAlmostEqual(value["values"][0], statistics.median(want), places=3)

    def test_all_formats_and_hostile_names(self):
        report = load(self.path("same1", os.listdir(self.path("same1"))[0], "repeats", "001", "report.json"))
        for region in report["regions"]:
            region["path"] = [name.replace("mlp", "<script>alert(1)</script>|\"x\",`y`") for name in region["path"]]
        with open(self.path("hostile.json"), "w", encoding="utf-8") as f:
            json.dump(report, f)
        texts = {}
        for form in ("table", "csv", "md", "html"):
            done = self.tool("compare", "hostile.json", "hostile.json", "-f", form, "-o", f"out.{form}")
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(self.path(f"out.{form}"), encoding="utf-8", newline="") as f:
                texts[form] = f.read()
            self.assertIn("alert(1)", texts[form])
        self.assertNotIn("<script>alert", texts["html"])
        self.assertIn("&lt;script&gt;alert(1)&lt;/script&gt;", texts["html"])
        self.assertNotIn("<script>", texts["md"])
        rows = list(csv.DictReader(io.StringIO(texts["csv"], newline="")))
        self.assertIn("step > <script>alert(1)</script>|\"x\",`y`", [row["path"] for row in rows])
        self.assertTrue(all(row["standing"] in ("noise", "untested") and float(row["ratio"]) == 1 for row in rows))

    def test_renames_are_offered_and_applied(self):
        report = load(self.path("same1", os.listdir(self.path("same1"))[0], "repeats", "001", "report.json"))
        for region in report["regions"]:
            region["path"] = [name.replace("mlp", "ffn") for name in region["path"]]
        os.makedirs(self.path("renamed"), exist_ok=True)
        with open(self.path("renamed", "report.json"), "w", encoding="utf-8") as f:
            json.dump(report, f)
        result = self.json("same1", "renamed")
        self.assertEqual([(o["from"], o["to"]) for o in result["renames"]], [("step > mlp", "step > ffn")])
        self.assertEqual(len(cases.compared_ranges(result)), 5)
        result = self.json("same1", "renamed", "--rename", "mlp=ffn")
        self.assertEqual((len(cases.compared_ranges(result)), result["renames"], result["missing"]), (6, [], []))

    def test_predicted_and_realised(self):
        """A recording whose fix was measured (tests/golden/savings/README.md), and the same with the time that came of it."""
        done = self.tool("report", f"{SOURCE}/tests/golden/savings/gelu", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        before = json.loads(done.stdout)
        loop = next(r for r in before["regions"] if r["path"] == ["loop"])
        now = loop["wall_ns"]["inclusive"]
        line = {"kind": "cure", "severity": "warning", "path": "loop > step", "region": loop["id"], "process": None,
                "text": "GELU by hand: one kernel does it", "advice": "F.gelu", "saves_ns": 0.896 * now, "saves_low_ns": 0.85 * now,
                "saves_high_ns": 0.91 * now, "saves_share": 0.5, "cure": "gelu_by_hand", "evidence": {}, "next": None,
                "after": {"path": "loop", "region": loop["id"], "before_ns": now, "after_ns": 0.104 * now, "at_most": False}}
        before["verdict"] = [line]
        after = json.loads(done.stdout)
        for region in after["regions"]:
            for key, value in region["wall_ns"].items():
                if isinstance(value, (int, float)):
                    region["wall_ns"][key] = value * 3.83 / 40.17
        after["verdict"] = []
        for name, report in (("before.json", before), ("after.json", after)):
            with open(self.path(name), "w", encoding="utf-8") as file:
                json.dump(report, file)
        result = self.json("before.json", "after.json")
        prediction, = result["predictions"]
        self.assertEqual((prediction["cure"], prediction["path"], prediction["side"]), ("gelu_by_hand", "loop", 1))
        self.assertAlmostEqual(prediction["predicted_ns"] / now, 0.104)
        self.assertAlmostEqual(prediction["predicted_low_ns"] / now, 0.09)
        self.assertAlmostEqual(prediction["realised_ns"] / now, 3.83 / 40.17)
        saved = self.tool("gate", "--save", "--name", "before", "before.json")  # a baseline keeps what was predicted
        self.assertEqual(saved.returncode, 0, saved.stderr)
        self.assertEqual([p["predicted_ns"] for p in self.json(saved.stdout.strip(), "after.json")["predictions"]], [prediction["predicted_ns"]])
        for form in ("table", "md"):
            shown = self.tool("compare", "before.json", "after.json", "-f", form).stdout
            self.assertRegex(shown, r"loop\S*: predicted 4\.\d+ ± 1\.\d+ ms instead of \d\d\.\d+ ms, realised 3\.\d+ ms: GELU by hand")

    def test_the_whole_run_is_a_row_like_any_other(self):
        result = self.json("same1", "slow", "--region", "whole run")
        self.assertEqual([(r["path"], r["whole_run"]) for r in result["regions"]], [(["whole run"], True)])
        runs = self.path("same1", os.listdir(self.path("same1"))[0], "repeats")
        took = [load(f"{runs}/00{i}/report.json")["run"]["duration_ns"] for i in range(1, REPEATS + 1)]
        self.assertAlmostEqual(result["regions"][0]["values"]["wall_ns.median"]["values"][0], statistics.median(took), places=3)
        self.assertIn("outside ranges", self.tool("compare", "same1", "slow", "--include", "outside ranges").stdout)

    def test_compare_and_gate_find_the_same(self):
        result = self.json("same1", "slow")
        found = {(" > ".join(r["path"]), tag) for r in result["regions"] for tag, value in r["values"].items()
                 if value["changes"][0]["standing"] == "more"}
        self.tool("gate", "-b", "same1", "slow", "--max-regression", "0.0001%", "--json", "agree.json")
        gate = load(self.path("agree.json"))
        self.assertEqual(json_schema.errors(gate, self.schema), [])
        regressed = {(c["path"], c["metric"]) for c in gate["checks"] if c["verdict"] == "regressed" and "function" not in c}
        self.assertEqual(regressed, found)
        self.assertIn(("step > mlp", "wall_ns.median"), found)
        self.assertEqual(gate["comparison"]["text"], result["text"])

    def test_a_shell_around_the_command_is_no_other_program(self):
        done = self.tool("profile", "-q", "--runs", "shell", "--", "bash", "-c", f"exec '{STEADY}' 20 0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([d["what"] for d in self.json("same1", "shell")["environment"]], [])
        done = self.tool("profile", "-q", "--runs", "shell2", "--", "bash", "-c", f"'{STEADY}' 20 0; true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("program", [d["what"] for d in self.json("same1", "shell2")["environment"]])

    def baseline(self, name, change):
        """That of same1, after `change(run, its number, its regions by path)`."""
        saved = self.tool("gate", "--save", "--name", name, "same1")
        self.assertEqual(saved.returncode, 0, saved.stderr)
        path = self.path(saved.stdout.strip())
        kept = load(path)
        for number, run in enumerate(kept["runs"]):
            change(run, number, {tuple(r["path"]): r for r in run["regions"]})
        with open(path, "w", encoding="utf-8") as f:
            json.dump(kept, f)
        return path

    def test_strict_misses_the_largest_range(self):
        def add(run, _, regions):
            largest = json.loads(json.dumps(regions["step",]))
            largest["path"] = ["epoch"]
            largest["values"]["wall_ns.inclusive"] *= 2
            run["regions"].append(largest)
        gone = self.baseline("gone", add)
        only = ("--metric", "wall_ns.median", "--max-regression", "900%")
        done = self.tool("gate", "-b", gone, "same1", *only)
        self.assertNotIn("largest", done.stderr)
        done = self.tool("gate", "-b", gone, "same1", "--strict", *only)
        self.assertEqual(done.returncode, 82, done.stdout)
        self.assertIn("the largest range of the baseline is gone: epoch", done.stderr)
        done = self.tool("gate", "-b", gone, "same1", "--strict", "--include", "step")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_an_undecided_gate_names_the_command_that_decides(self):
        """A single run does not show how much the whole run varies."""
        folder = self.path("same1", os.listdir(self.path("same1"))[0], "repeats")
        done = self.tool("gate", "-b", f"{folder}/001", f"{folder}/002", "--strict", "--region", "whole run")
        self.assertEqual(done.returncode, 82, done.stdout + done.stderr)
        self.assertIn(f"hint: Repeat both sides: rangescope profile --repeat 5 -- {STEADY} 20 0\n", done.stderr)

    def test_the_gate_says_its_rule_where_it_fails_what_is_below_the_limit(self):
        def noisy(factors):
            def change(_, number, regions):
                regions["step", "mlp"]["values"]["wall_ns.median"] = 200_000 * factors[number]
            return change
        before = self.baseline("before", noisy((1, 1.002, 0.998, 1.001)))
        after = self.baseline("after", noisy((1.035, 1.04, 1.042, 1.054)))
        done = self.tool("gate", "-b", before, after, "--region", "mlp", "--metric", "wall_ns.median")
        self.assertEqual(done.returncode, 81, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"1 value below 5 % failed, too: an increase that is statistically significant")
        wide = self.baseline("wide", noisy((0.9, 1.2, 1, 1.1)))
        done = self.tool("gate", "-b", before, wide, "--region", "mlp", "--metric", "wall_ns.median")
        runs = re.search(r"about (\d+) runs per side decide \(profile --repeat (\d+)\)", done.stdout)
        self.assertEqual(runs[1], runs[2], done.stdout)

    def test_measured_in_turns(self):
        done = self.tool("compare", "--measure", 4, "--runs", "turns", "-f", "json", "--", STEADY, 20, 0, "::", STEADY, 20, 2000)
        self.assertEqual(done.returncode, 0, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual(json_schema.errors(result, self.schema), [])
        self.assertTrue(result["in_turns"])
        self.assertEqual([(side["runs"], side["command"]) for side in result["sides"]],
                         [(4, [STEADY, "20", "0"]), (4, [STEADY, "20", "2000"])])
        self.assertRegex(result["text"], r"^(B is \d+\.\d\d ± \d+\.\d\d times (slower|faster)|A and B take the same time.*); mlp x 2\d")
        started = sorted((load(f"{side['label']}/{run}/report.json")["run"]["start_unix_ns"], side["label"][-1])
                         for side in ({"label": self.path(s["label"])} for s in result["sides"]) for run in os.listdir(side["label"])
                         if run[0].isdigit())
        self.assertEqual("".join(letter for _, letter in started), "ABBAABBA")
        self.assertFalse([note for note in result["notes"] if "moved alike" in note])
        again = self.json(*[side["label"] for side in result["sides"]])
        self.assertFalse(again["in_turns"])
        for words, code, text in (((STEADY, 20), 64, "two commands"), ((STEADY, 20, "::"), 64, "two commands"),
                                  ((VICTIM, "::", VICTIM, "exit", "7"), 82, "the program failed (exit code 7)")):
            done = self.tool("compare", "--measure", 2, "--runs", "turns", "--", *words)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(text, done.stderr)

    def test_refused_with_82(self):
        done = self.tool("profile", "-q", "--runs", "other", "--", VICTIM)
        self.assertEqual(done.returncode, 0, done.stderr)
        for words, text in ((("same1", "other", "--include", "mlp"), "no region is on all sides"),
                            (("same1", "slow", "--metric", "gpu.busy_ns"), "no region has 'gpu.busy_ns' on all sides")):
            done = self.tool("compare", *words)
            self.assertEqual(done.returncode, 82, done.stderr)
            self.assertIn(text, done.stderr)
        self.assertEqual(self.tool("compare", "same1").returncode, 64)
        self.assertEqual(self.tool("compare", "same1", "nowhere").returncode, 66)
        done = self.tool("compare", "same1", "slow", "--metric", "wall_ns.medain")
        self.assertEqual(done.returncode, 64)
        self.assertIn("wall_ns.median", done.stderr)

    def test_baseline_and_gate(self):
        saved = self.tool("gate", "--save", "--name", "main", "same1")
        self.assertEqual(saved.returncode, 0, saved.stderr)
        path = self.path(saved.stdout.strip())
        self.assertLess(os.path.getsize(path), 40000)
        machine = load(path)["machine"]
        self.assertEqual(os.path.basename(path), f"main.{machine}.json")
        self.assertRegex(self.tool("gate", "--list").stdout, rf"(?m)^main +{machine} +{REPEATS} +6 ")

        # Read back, the baseline is the runs that it was made of.
        result = self.json("same1", saved.stdout.strip())
        self.assertTrue(all(v["changes"][0]["ratio"] == 1 for r in result["regions"] for v in r["values"].values()))

        self.assertEqual(self.tool("gate", "-b", "main", "--max-regression", "5%", "--include", "step", "same2").returncode, 0)
        done = self.tool("gate", "-b", "main", "--max-regression", "50%", "--json", "gate.json", "--junit", "gate.xml",
                         "--markdown", "gate.md", "slow", "--region", "mlp", "--metric", "wall_ns.min")
        self.assertEqual(done.returncode, 81, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^regressed +step > mlp ")
        gate = load(self.path("gate.json"))
        self.assertEqual(json_schema.errors(gate, self.schema), [])
        self.assertEqual([(c["verdict"], c["path"], c["metric"]) for c in gate["checks"]],
                         [("regressed", "step > mlp", "wall_ns.min")])
        suite = xml.parse(self.path("gate.xml")).getroot().find("testsuite")
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("1", "1"))
        self.assertEqual(suite.find("testcase").get("classname"), "step > mlp")
        with open(self.path("gate.md"), encoding="utf-8") as f:
            self.assertIn("1 of 1 value regressed", f.read())

        # Less than before is no regression.
        self.assertEqual(self.tool("gate", "-b", "slow", "--max-regression", "50%", "same1", "--region", "mlp").returncode, 0)

    def test_the_gate_of_continuous_integration(self):
        """.ci/gate as action.yml calls it: the program's code where it fails, else the gate's, with a summary."""
        self.assertEqual(self.tool("gate", "--save", "--name", "ci", "same1").returncode, 0)

        def gate(command, limits):
            env = {**self.env, "RANGESCOPE": TOOL, "GATE_COMMAND": command, "GATE_BASELINE": "ci", "GATE_LIMITS": limits,
                   "GATE_REPEAT": str(REPEATS), "GITHUB_STEP_SUMMARY": self.path("summary.md")}
            return cases.run([f"{SOURCE}/.ci/gate"], cwd=self.folder, env=env)

        # The program has a clock of its own, but not for its start and end.
        done = gate(f"{STEADY} 20 0", "--max-regression 5% --include step")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(self.path("summary.md"), encoding="utf-8") as f:
            self.assertIn("✅ rangescope: no regression", f.read())
        done = gate(f"{STEADY} 20 2000", "--max-regression 50% --region mlp --metric wall_ns.min")
        self.assertEqual(done.returncode, 81, done.stdout + done.stderr)
        with open(self.path("summary.md"), encoding="utf-8") as f:
            self.assertIn("❌ rangescope: 1 of 1 value regressed", f.read())
        self.assertEqual(xml.parse(self.path("gate.junit.xml")).getroot().get("failures"), "1")
        # Every line of the limits counts, and what is written replaces what stood there.
        with open(self.path("elsewhere.md"), "w", encoding="utf-8") as f:
            f.write("not ours")
        os.remove(self.path("gate.md"))
        os.symlink("elsewhere.md", self.path("gate.md"))
        self.assertEqual(gate(f"{STEADY} 20 2000", "--max-regression 50%\n--region mlp\n--metric wall_ns.min").returncode, 81)
        self.assertEqual(gate("exit 7", "").returncode, 7)
        self.assertFalse(os.path.exists(self.path("gate.md")))
        with open(self.path("elsewhere.md"), encoding="utf-8") as f:
            self.assertEqual(f.read(), "not ours")
        with open(f"{SOURCE}/action.yml", encoding="utf-8") as f:
            action = f.read()
        with open(f"{SOURCE}/.ci/gate", encoding="utf-8") as f:
            script = f.read()
        inputs = set(re.findall(r"(?m)^  (\w+):\n    description", action))
        given = dict(re.findall(r"(?m)^        (\w+): \$\{\{ inputs\.(\w+) \}\}", action))
        self.assertEqual(set(given.values()), inputs)
        for name in given:
            self.assertIn("${" + name, script)
        self.assertIn('run: \'"$GITHUB_ACTION_PATH/.ci/gate"\'', action)

    def test_the_gate_refuses_with_82(self):
        self.tool("gate", "--save", "--name", "elsewhere", "same1", "--dir", "others")
        path = self.path("others", os.listdir(self.path("others"))[0])
        baseline = load(path)
        baseline["machine"] = "nvidia-h100"
        for run in baseline["runs"]:
            run["run"]["environment"]["cpu"] = "another"
        with open(path, "w", encoding="utf-8") as f:
            json.dump(baseline, f)
        done = self.tool("gate", "-b", "elsewhere", "--dir", "others", "same2")
        self.assertEqual(done.returncode, 82)
        self.assertIn("only of nvidia-h100", done.stderr)
        self.assertEqual(self.tool("gate", "-b", path, "same2").returncode, 82)
        self.assertEqual(self.tool("gate", "-b", path, "--any-machine", "--max-regression", "5%", "--include", "step", "same2").returncode, 0)
        done = self.tool("gate", "-b", "nothing", "same2")
        self.assertEqual(done.returncode, 66, done.stderr)
        self.tool("profile", "-q", "--runs", "failed2", "--", VICTIM, "exit", "3")
        self.tool("profile", "-q", "--runs", "good2", "--", VICTIM)
        done = self.tool("gate", "-b", "good2", "failed2")
        self.assertEqual(done.returncode, 82)
        self.assertIn("the program failed", done.stderr)
        # Four occurrences a run and one run a side: nothing can be judged.
        done = self.tool("gate", "-b", "good2", "good2")
        self.assertEqual(done.returncode, 82)
        self.assertIn("no value could be judged", done.stderr)
        for limit in ("5", "0%", "x"):
            self.assertEqual(self.tool("gate", "-b", "good2", "--max-regression", limit, "good2").returncode, 64)


if __name__ == "__main__":
    cases.main()
