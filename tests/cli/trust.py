#!/usr/bin/env python3
"""What a run directory keeps from others: secrets, modes, files that are not ours. Usage: trust.py BIN_DIR"""
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import unittest

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
        done = self.tool("profile", "++workload.env.APP_SECRET=" + SECRETS[8], "++workload.env.PLAIN=${env:MY_TOKEN}",
                         "--", VICTIM, *self.arguments())
        self.assertEqual(done.returncode, 0, done.stderr)
        run = self.runs()[-1]
        for form in ("json", "html", "md", "csv", "perfetto", "table"):
            self.assertEqual(self.tool("report", "latest", "-f", form, "-o", f"{run}/report.x.{form}").returncode, 0)
        self.assertEqual(self.tool("baseline", "save", "--dir", os.path.join(run, "baselines"), "latest").returncode, 0)
        self.assertEqual(self.kept(run), [])
        manifest = self.file("manifest.json")
        self.assertEqual(len(manifest["argv"]), 1 + len(self.arguments()))
        self.assertRegex(manifest["argv"][3], r"^--api-key=<redacted:[0-9a-f]{8}>$")
        for words in (["runs", "show"], ["runs", "list"], ["report", "latest"]):
            self.assertEqual([s for s in SECRETS if s in self.tool(*words).stdout], [], words)

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
        done = self.tool("profile", "-q", "--record-args", "++workload.env.APP_SECRET=variable-hush", "--", VICTIM, *self.arguments())
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
                           "insert into META_DATA_CAPTURE(name) values('x')"), (0, 65)),
                (self.made("trigger.sqlite", "create table out(a)", "insert into StringIds values(99998, 'PATH=' || x'00' || 'A=b')",
                           "create trigger t after update on StringIds begin insert into out "
                           "with recursive c(x) as (select 1 union all select x + 1 from c) select x from c; end"), (0, 65))):
            for words in (["report", path], ["query", path, "select count(*) from ranges"], ["import", path]):
                done = subprocess.run([TOOL, *words], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=60, check=False)
                self.assertIn(done.returncode, codes, (words, done.stderr))


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
