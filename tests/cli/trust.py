#!/usr/bin/env python3
"""What a run directory keeps from others: secrets, modes, files that are not ours. Usage: trust.py BIN_DIR"""
import csv
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import unittest
import xml.etree.ElementTree as xml

import commands
from commands import TOOL, VICTIM, cases

ZOO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "nsys", "zoo.sqlite")

SECRETS = [f"hush{i}hush" for i in range(1, 10)]


def files_below(folder):
    for at, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(at, name)


class Secrets(commands.InAFolder):
    def setUp(self):
        super().setUp()
        self.env["XDG_STATE_HOME"] = os.path.join(self.folder, "state")
        self.env["MY_TOKEN"] = SECRETS[7]

    def arguments(self):
        return ["exit", "0", f"--api-key={SECRETS[0]}", "--password", SECRETS[1], "-H", f"Authorization: Bearer {SECRETS[2]}",
                f"HF_TOKEN={SECRETS[3]}", f"postgres://u:p@{SECRETS[4]}@h/db", f"https://h/x?token={SECRETS[5]}&y=1",
                f"a=https://h/1,https://u:{SECRETS[6]}@h/2", SECRETS[7], "--Db-Passwd=" + SECRETS[8]]

    def kept(self, folder):
        """Which secrets stand in which files."""
        found = []
        for path in files_below(folder):
            with open(path, "rb") as file:
                data = file.read()
            found += [(secret, os.path.relpath(path, folder)) for secret in SECRETS if secret.encode() in data]
        return found

    def test_no_secret_reaches_a_run_or_anything_made_of_it(self):
        done = self.tool("profile", "+workload.env.APP_SECRET=" + SECRETS[8], "+workload.env.PLAIN=${env:MY_TOKEN}",
                         "--", VICTIM, *self.arguments())
        self.assertEqual(done.returncode, 0, done.stderr)
        run = self.runs()[-1]
        for form in ("json", "html", "md", "csv", "perfetto", "table"):
            self.assertEqual(self.tool("report", "latest", "-f", form, "-o", f"{run}/report.x.{form}").returncode, 0)
        self.assertEqual(self.tool("gate", "--save", "--dir", os.path.join(run, "baselines"), "latest").returncode, 0)
        self.assertEqual(self.kept(run), [])
        manifest = self.file("manifest.json")
        self.assertEqual(len(manifest["argv"]), 1 + len(self.arguments()))
        self.assertRegex(manifest["argv"][3], r"^--api-key=<redacted:[0-9a-f]{8}>$")
        for words in (["runs", "show"], ["runs", "list"], ["report", "latest"]):
            self.assertEqual([s for s in SECRETS if s in self.tool(*words).stdout], [], words)

    def test_a_folder_whose_name_is_a_secret(self):
        self.folder, before = os.path.join(self.folder, "job-" + SECRETS[7]), self.folder
        os.mkdir(self.folder)
        self.assertEqual(self.tool("profile", "-q", "--runs", os.path.join(before, "rangescope-runs"), "--", VICTIM, "exit", "0",
                                   f"--proxy=user:{SECRETS[0]}@host:3128", SAS_SIG=SECRETS[1], GITHUB_PAT=SECRETS[2], THE_BEARER=SECRETS[3],
                                   AWS_CREDS=SECRETS[4]).returncode, 0)
        self.folder = before
        run = self.runs()[-1]
        for form in ("json", "html", "md", "table"):
            self.assertEqual(self.tool("report", "latest", "-f", form, "-o", f"{run}/report.x.{form}").returncode, 0)
        self.assertEqual(self.kept(run), [])

    def test_runs_compare_by_a_key_of_this_user(self):
        for _ in range(2):
            self.assertEqual(self.tool("profile", "-q", "--", VICTIM, *self.arguments()).returncode, 0)
        first, second = (json.load(open(f"{run}/manifest.json", encoding="utf-8"))["argv"] for run in self.runs())
        self.assertEqual(first, second)
        key = os.path.join(self.env["XDG_STATE_HOME"], "rangescope", "redaction.key")
        self.assertEqual(stat.S_IMODE(os.stat(key).st_mode), 0o600)
        os.remove(key)
        self.assertEqual(self.tool("profile", "-q", "--", VICTIM, *self.arguments()).returncode, 0)
        self.assertNotEqual(self.file("manifest.json")["argv"], first)

    def test_record_args_keeps_arguments_and_no_variables(self):
        done = self.tool("profile", "-q", "--record-args", "+workload.env.APP_SECRET=variable-hush", "--", VICTIM, *self.arguments())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.file("manifest.json")["argv"][1:], self.arguments())
        for path in files_below(self.runs()[-1]):
            if os.path.basename(path) != "manifest.json":  # the command line of rangescope itself is arguments too
                with open(path, "rb") as file:
                    self.assertNotIn(b"variable-hush", file.read(), path)


class Modes(commands.InAFolder):
    def modes(self, run):
        folders = {stat.S_IMODE(os.stat(at).st_mode) for at, _, _ in os.walk(run)}
        return folders, {stat.S_IMODE(os.stat(path).st_mode) for path in files_below(run)}

    def test_a_run_is_private_and_can_be_shared(self):
        for words, folders, files in (([], {0o700}, {0o600}), (["--share"], {0o755}, {0o644})):
            done = subprocess.run([TOOL, "profile", "-q", *words, "--", VICTIM], cwd=self.folder, env=self.env, umask=0o022,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.modes(self.runs()[-1]), (folders, files), words)

    def test_the_program_keeps_its_umask(self):
        done = subprocess.run([TOOL, "profile", "-q", "--", "sh", "-c", f"umask; {VICTIM}"], cwd=self.folder, env=self.env,
                              umask=0o013, capture_output=True, text=True, check=False)
        self.assertTrue(done.stdout.startswith("0013\n"), done.stdout)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root, to be another user too")
class SharedFolders(commands.InAFolder):
    """Who may rename things in a folder that several write to cannot lead what rangescope writes elsewhere."""
    NOBODY = "setpriv --reuid=65534 --regid=65534 --clear-groups"

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        self.team = os.path.join(self.folder, "team")
        os.mkdir(self.team)
        os.chmod(self.team, 0o777)
        # What is mine and nobody else's: named as a run's files are.
        self.mine = os.path.join(self.folder, "mine")
        os.makedirs(os.path.join(self.mine, "native"))
        for name in ("config.yaml", "report.json", "report.md", "status.json", "manifest.json", "cmd.txt", "native/x"):
            with open(os.path.join(self.mine, name), "w", encoding="utf-8") as file:
                file.write("mine\n")
            os.chmod(file.name, 0o640)
        os.chmod(self.mine, 0o711)
        self.before = self.state()

    def state(self):
        out = {}
        for at, _, names in os.walk(self.mine):
            out[at] = stat.S_IMODE(os.stat(at).st_mode)
            for name in names:
                path = os.path.join(at, name)
                with open(path, "rb") as file:
                    out[path] = (stat.S_IMODE(os.stat(path).st_mode), file.read())
        return out

    def as_nobody(self, script):
        subprocess.run([*self.NOBODY.split(), "sh", "-c", script], check=True, cwd=self.team)

    def test_a_run_that_is_swapped_for_a_link(self):
        for when in ("before", "after"):  # the program writes, or rangescope alone
            swap = f"{self.NOBODY} sh -c 'for run in {self.team}/2*; do mv \"$run\" \"$run.old\" && ln -s {self.mine} \"$run\"; done'"
            steps = [swap, f"{VICTIM} exit 0"] if when == "before" else [f"{VICTIM} exit 0", swap]
            done = self.tool("profile", "--runs", self.team, "--", "sh", "-c", "; ".join(steps))
            self.assertEqual(done.returncode, 74, done.stderr)
            self.assertIn("moved or replaced", done.stderr)
            after = self.state()
            for path in [p for p in after if p not in self.before]:  # what the program itself writes is new, and touches nothing
                self.assertIn("/native/", path)
                os.remove(path)
            self.assertEqual({p: after[p] for p in self.before}, self.before)
            old = [name for name in os.listdir(self.team) if name.endswith(".old")]
            self.assertEqual(len(old), 1)
            with open(os.path.join(self.team, old[0], "status.json"), encoding="utf-8") as file:
                self.assertEqual(json.load(file)["state"], "done")
            shutil.rmtree(os.path.join(self.team, old[0]))
            for name in os.listdir(self.team):
                os.remove(os.path.join(self.team, name))

    def test_a_job_that_somebody_made_first(self):
        """Its name is known before: another folder is taken."""
        job = {"schema": "rangescope.job/1", "name": "night", "launcher": "", "key": "night ", "world_size": 1, "profiled": None, "started_unix_ns": 1}
        self.as_nobody("mkdir night night/rank-7; chmod 777 night; cat >night/job.json <<'END'\n" + json.dumps(job) + "\nEND")
        swap = f"{self.NOBODY} sh -c 'mv night/rank-0 night/old && ln -s {self.mine} night/rank-0; mv night.2/rank-0 night.2/old; ln -s {self.mine} night.2/rank-0'"
        done = subprocess.run([TOOL, "profile", "-q", "--job", "night", "--runs", self.team, "--", "sh", "-c", f"cd {self.team}; {VICTIM} exit 0; {swap}; true"],
                              cwd=self.folder, env={**self.env, "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.state(), self.before)
        self.assertFalse(os.path.lexists(os.path.join(self.team, "night", "old")))
        self.assertTrue(os.path.isfile(os.path.join(self.team, "night.2", "rank-0", "report.json")))

    def test_a_folder_that_others_may_write_to(self):
        """A run's own folder is taken away from them; one of another user is refused."""
        named = os.path.join(self.folder, "named")
        os.mkdir(named)
        os.chmod(named, 0o777)
        self.assertEqual(self.tool("profile", "-q", "--run-dir", named, "--", VICTIM).returncode, 0)
        self.assertEqual(stat.S_IMODE(os.stat(named).st_mode) & 0o022, 0)
        theirs = os.path.join(self.team, "theirs")
        self.as_nobody("mkdir theirs; chmod 777 theirs")
        done = self.tool("profile", "-q", "--run-dir", theirs, "--", VICTIM)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertEqual(os.listdir(theirs), [])


class ForeignDatabases(commands.InAFolder):
    """A recording is a database of a stranger: what its schema would run does not run."""

    def made(self, name, *statements):
        path = os.path.join(self.folder, name)
        shutil.copy(ZOO, path)
        os.chmod(path, 0o600)
        with sqlite3.connect(path) as database:
            for statement in statements:
                database.execute(statement)
        return path

    def test_views_triggers_and_giants(self):
        endless = "with recursive c(x) as (select 1 union all select x + 1 from c) select x as start, x as end from c"
        for path, codes in (
                (self.made("view.sqlite", "drop table NVTX_EVENTS", f"create view NVTX_EVENTS as {endless}"), (0, 65, 80)),
                (self.made("kernels.sqlite", "drop table CUPTI_ACTIVITY_KIND_KERNEL",
                           f"create view CUPTI_ACTIVITY_KIND_KERNEL as {endless}"), (0, 65, 80)),
                (self.made("blob.sqlite", "insert into StringIds values(99999, zeroblob(400000000))"), (0, 65, 74)),
                (self.made("deep.sqlite", "create table deep(a check(" + "1+" * 900 + "1))"), (0, 65)),
                (self.made("generated.sqlite", "drop table if exists META_DATA_CAPTURE",
                           "create table META_DATA_CAPTURE(name text, value text as (hex(zeroblob(400000000))))",
                           "insert into META_DATA_CAPTURE(name) values('x')"), (0, 65, 74)),
                (self.made("trigger.sqlite", "create table out(a)", "insert into StringIds values(99998, 'PATH=' || x'00' || 'A=b')",
                           "create trigger t after update on StringIds begin insert into out "
                           "with recursive c(x) as (select 1 union all select x + 1 from c) select x from c; end"), (0, 65))):
            for words in (["report", path], ["query", path, "select count(*) from ranges"], ["runs", "import", path]):
                done = subprocess.run([TOOL, *words], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=600, check=False)
                self.assertIn(done.returncode, codes, (words, done.stderr))


class ProjectFiles(commands.InAFolder):
    """A rangescope.yaml that is found is not one that is trusted."""

    def setUp(self):
        super().setUp()
        self.env["XDG_STATE_HOME"] = os.path.join(self.folder, "state")
        self.project = os.path.join(self.folder, "rangescope.yaml")
        self.evil = os.path.join(self.folder, "evil.sh")
        with open(self.evil, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\ntouch '{self.folder}/pwned'\n")
        os.chmod(self.evil, 0o755)

    def put(self, text):
        with open(self.project, "w", encoding="utf-8") as file:
            file.write(text)

    def test_it_runs_nothing_until_it_is_trusted(self):
        for text in (f"pipeline:\n  nsys: {{enable: true, path: {self.evil}}}\n", f"workload:\n  command: [{self.evil}]\n",
                     f"workload:\n  env: {{LD_PRELOAD: {self.evil}}}\n", "run:\n  record_args: true\n", "run:\n  share: true\n",
                     "run:\n  timeout: 1ms\n", "workload:\n  warmup: 3\n", f"run:\n  root: {self.folder}/elsewhere\n"):
            self.put(text)
            program = ["--", VICTIM] if "command" not in text else []
            done = self.tool("profile", *program)
            self.assertEqual(done.returncode, 77, done.stderr)
            self.assertIn("rangescope.yaml:2:", done.stderr)
            self.assertIn("rangescope config trust", done.stderr)
            self.assertFalse(os.path.exists(os.path.join(self.folder, "pwned")))
            self.assertEqual(self.runs(), [])
        self.put(f"workload:\n  command: [{VICTIM}]\n")
        self.assertEqual(self.tool("config", "trust", "rangescope.yaml").returncode, 0)
        self.assertEqual(self.tool("profile", "-q").returncode, 0)
        self.put(f"workload:\n  command: [{self.evil}]\n")
        self.assertEqual(self.tool("profile", "-q").returncode, 77)
        self.assertEqual(self.tool("profile", "-q", "--no-project", "--", VICTIM).returncode, 0)

    def test_files_of_others_are_not_read(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to give a file away")
        self.put("report: {depth: 3}\n")
        self.assertEqual(self.tool("config", "show").returncode, 0)
        os.chown(self.project, 65534, 65534)
        done = self.tool("config", "show")
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn("another user", done.stderr)


class Outputs(commands.InAFolder):
    def setUp(self):
        super().setUp()
        self.assertEqual(self.tool("profile", "-q", "--", VICTIM).returncode, 0)
        self.run_dir = self.runs()[-1]
        shutil.copy(ZOO, os.path.join(self.folder, "zoo.sqlite"))
        self.assertEqual(self.tool("gate", "--save", "--name", "main", "latest").returncode, 0)
        folder = os.path.join(self.folder, "rangescope-baselines")
        self.baseline = os.path.join(folder, os.listdir(folder)[0])

    def snapshot(self):
        return {path: open(path, "rb").read() for path in files_below(self.folder) if os.path.isfile(path)}

    def test_an_output_destroys_no_input_and_nothing_but_plain_files(self):
        os.mkfifo(os.path.join(self.folder, "pipe"))
        os.mkdir(os.path.join(self.folder, "folder"))
        with open(os.path.join(self.folder, "kept.txt"), "w", encoding="utf-8") as file:
            file.write("kept")
        os.symlink("kept.txt", os.path.join(self.folder, "link"))
        os.symlink("nowhere", os.path.join(self.folder, "dangling"))
        os.symlink("kept.txt", os.path.join(self.folder, "link.json"))
        os.mkdir(os.path.join(self.folder, "folder.json"))
        shutil.copy(VICTIM, os.path.join(self.folder, "app"))
        os.remove(os.path.join(self.folder, "pipe"))
        before = self.snapshot()
        os.mkfifo(os.path.join(self.folder, "pipe"))
        capture = os.path.relpath(next(p for p in files_below(os.path.join(self.run_dir, "native"))), self.folder)
        targets = ["/dev/null", "pipe", "link", "dangling", "folder", "zoo.sqlite", capture, self.baseline,
                   os.path.join(self.run_dir, "manifest.json")]
        for target in targets:
            for words in (["report", "latest", "-o", target], ["report", "latest", "-f", "csv", "--to=" + target],
                          ["compare", "latest", "latest", "-f", "json", "-o", target],
                          ["export", "latest", "--to", "csv", "-o", target], ["export", "latest", "--to", "sqlite", "-o", target],
                          ["gate", "-b", "main", "--markdown", target], ["gate", "-b", "main", "--junit", target],
                          ["profile", "-q", "-o", target, "--", VICTIM],
                          ["config", "init", "--force", "--to", target, "--", VICTIM]):
                done = subprocess.run([TOOL, *words], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=600, check=False)
                self.assertIn(done.returncode, (64, 74), (words, done.stderr))
        for target in ("folder.json", "link.json"):
            done = self.tool("gate", "-b", "main", "--json=" + target)
            self.assertIn(done.returncode, (64, 74), done.stderr)
        done = self.tool("profile", "-q", "-o", "app", "--", "./app")
        self.assertEqual(done.returncode, 64, done.stderr)
        os.remove(os.path.join(self.folder, "pipe"))
        after = self.snapshot()
        self.assertEqual({p: after.get(p) for p in before}, before)

    def test_an_output_replaces_one_of_its_own(self):
        for words in (["report", "latest", "-f", "json", "-o", "x.json"], ["report", "latest", "-f", "csv", "-o", "x.csv"],
                      ["export", "latest", "--to", "sqlite", "-o", "x.sqlite"], ["export", "latest", "--to", "csv", "-o", "y.csv"],
                      ["report", "latest", "-f", "html", "-o", "x.html"], ["report", "latest", "-o", self.run_dir + "/report.md"]):
            for _ in range(2):
                done = self.tool(*words)
                self.assertEqual(done.returncode, 0, (words, done.stderr))
            self.assertEqual([n for n in os.listdir(self.folder) if ".part" in n or n.endswith("XXXXXX")], [])

    def test_two_watch_in_one_root_show_their_own_programs(self):
        def watch(*program):
            return subprocess.Popen([TOOL, "profile", "-f", "json", "--watch-every", "0.2", "-o", program[-1] + ".json", "--", *program],
                                    cwd=self.folder, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        both = [watch("sh", "-c", f"{VICTIM} exit 0; sleep 1; : {name}", name) for name in ("one", "two")]
        for process in both:
            self.assertEqual(process.wait(600), 0)
        for name in ("one", "two"):
            with open(os.path.join(self.folder, name + ".json"), encoding="utf-8") as file:
                self.assertEqual(json.load(file)["run"]["command"][-1], name)


class Cells(commands.InAFolder):
    def test_cells_that_a_spreadsheet_would_compute(self):
        database = os.path.join(self.folder, "f.sqlite")
        shutil.copy(ZOO, database)
        os.chmod(database, 0o600)
        evil = "=cmd|'/c calc'!A0"
        with sqlite3.connect(database) as db:
            db.execute("update NVTX_EVENTS set text = ? where text = 'decode'", (evil,))
        for words in (["report", database, "-f", "csv"], ["export", database, "--to", "csv", "--table", "regions"]):
            self.assertEqual(self.tool(*words, "-o", "guarded.csv").returncode, 0)
            self.assertEqual(self.tool(*words, "-o", "raw.csv", "--raw-cells").returncode, 0)
            plain = self.tool(*words).stdout
            with open(os.path.join(self.folder, "guarded.csv"), encoding="utf-8", newline="") as file:
                cells = [cell for row in csv.reader(file) for cell in row]
            self.assertIn("'" + evil, cells)
            self.assertNotIn(evil, cells)
            for path, own in (("raw.csv", None), (None, plain)):
                text = own if path is None else open(os.path.join(self.folder, path), encoding="utf-8", newline="").read()
                self.assertIn(evil, [cell for row in csv.reader(text.splitlines()) for cell in row], words)


    def test_names_that_xml_has_no_characters_for(self):
        """XML 1.0 has neither U+FFFE, U+FFFF nor control characters, in no way of writing them."""
        database = os.path.join(self.folder, "f.sqlite")
        shutil.copy(ZOO, database)
        os.chmod(database, 0o600)
        with sqlite3.connect(database) as db:
            db.execute("update NVTX_EVENTS set text = ? where text = 'decode'", ("a\ufffeb\uffffc\x01d\x1be]]>&lt;\"'\u00e9",))
        self.assertEqual(self.tool("gate", "--save", "--name", "main", database).returncode, 0)
        done = self.tool("gate", "-b", "main", "--max-regression", "50%", "--junit", "gate.xml", "--markdown", "gate.md", database)
        self.assertEqual(done.returncode, 82, done.stderr)  # one instance on a side: nothing to judge by
        names = [case.get("classname") for case in xml.parse(os.path.join(self.folder, "gate.xml")).getroot().iter("testcase")]
        shown = "a\\xef\\xbf\\xbeb\\xef\\xbf\\xbfc\\x01d\\x1be]]>&lt;\"'\u00e9"
        self.assertTrue(any(shown in name for name in names), names)


class Init(commands.InAFolder):
    def test_arguments_that_look_like_interpolation_stay_as_they_are(self):
        words = ["${x}", "${env:HOME}", "\\${y}", "a$b", "$", "${", "${${z}}", "{}", "*&!|>%@`", "- x: y #"]
        program = ["sh", "-c", f'printf "%s\\n" "$@" >arguments; exec {VICTIM} exit 0', "sh", *words]
        self.assertEqual(self.tool("config", "init", "--", *program).returncode, 0)
        os.remove(os.path.join(self.folder, "arguments"))
        done = self.tool("profile", "-q")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.folder, "arguments"), encoding="utf-8") as file:
            self.assertEqual(file.read().splitlines(), words)


class Git(commands.InAFolder):
    """What a repository's own configuration would start is not started."""

    def test_no_program_of_a_hostile_repository_runs(self):
        if not shutil.which("git"):
            self.skipTest("no git")
        git = ["git", "-c", "user.email=a@b", "-c", "user.name=a"]
        env = {**self.env, "GIT_CONFIG_GLOBAL": os.devnull, "HOME": self.folder}
        quiet = {"cwd": self.folder, "env": env, "check": True, "capture_output": True}
        with open(os.path.join(self.folder, "a.txt"), "w", encoding="utf-8") as file:
            file.write("a\n")
        subprocess.run([*git, "init", "-q"], **quiet)
        subprocess.run([*git, "add", "a.txt"], **quiet)
        subprocess.run([*git, "commit", "-q", "-m", "x"], **quiet)
        self.tool("profile", "-q", "--", VICTIM, **env)
        facts = self.file("env.json")["facts"]
        self.assertEqual(facts["git.dirty"], "false")
        evil = os.path.join(self.folder, "evil")
        with open(evil, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\ntouch '{self.folder}/pwned'\ncat\n")
        os.chmod(evil, 0o755)
        for settings in ({"core.fsmonitor": evil}, {"filter.x.clean": evil, "core.attributesFile": "attributes"},
                         {"remote.origin.promisor": "true", "remote.origin.uploadpack": evil}):
            for key, value in settings.items():
                subprocess.run([*git, "config", key, value], **quiet)
            with open(os.path.join(self.folder, "attributes"), "w", encoding="utf-8") as file:
                file.write("*.txt filter=x\n")
            os.utime(os.path.join(self.folder, "a.txt"))
            self.assertEqual(self.tool("profile", "-q", "--", VICTIM, **env).returncode, 0)
            self.assertFalse(os.path.exists(os.path.join(self.folder, "pwned")), settings)
            self.assertEqual(self.file("env.json")["facts"]["git.commit"], facts["git.commit"])
            self.assertNotIn("git.dirty", self.file("env.json")["facts"])
            for key in settings:
                subprocess.run([*git, "config", "--unset", key], **quiet)


if __name__ == "__main__":
    cases.main()
