#!/usr/bin/env python3
"""mcp: `rangescope mcp` through the official client (npm's @modelcontextprotocol/sdk), and against messages that no client sends.

Usage: mcp.py BIN ROOT. The client is in $RANGESCOPE_MCP_SDK, else ROOT/.cache/mcp (`./dev test` fetches it)."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from package import COMMAND, PROGRAM, PYTHON, ROOT, cases, golden

SDK = os.environ.get("RANGESCOPE_MCP_SDK") or f"{ROOT}/.cache/mcp"
READING = ["list_runs", "verdict", "regions", "kernels", "functions", "compare", "explain_command", "query"]
MOST = 60_000  # characters of an answer


class Base(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.runs = f"{cls.folder.name}/runs"
        for compute_ns in ("5000000", "45000000"):
            program = [*PYTHON, "-c", PROGRAM.replace("5000000", compute_ns)]
            cases.run([COMMAND, "profile", "-q", "--runs", cls.runs, "--", *program])
        cls.before, cls.after = sorted(os.listdir(cls.runs), key=lambda name: os.path.getmtime(f"{cls.runs}/{name}"))


class Client(Base):
    def ask(self, *steps, options=()):
        if not shutil.which("node") or not os.path.isdir(f"{SDK}/node_modules"):
            self.skipTest("node, or npm's @modelcontextprotocol/sdk (./dev test fetches it), is not at hand")
        done = subprocess.run(["node", f"{ROOT}/tests/python/client.mjs", SDK, COMMAND, "mcp", "--runs", self.runs, *options],
                              input=json.dumps(steps), capture_output=True, text=True, timeout=600, cwd=self.folder.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def tool(self, name, **arguments):
        said, = self.ask({"tool": name, "arguments": arguments})
        self.assertNotIn("isError", said, said)
        self.assertEqual(json.loads(said["content"][0]["text"]), said["structuredContent"])
        self.assertLess(len(json.dumps(said["structuredContent"])), MOST)
        return said["structuredContent"]

    def test_introduction(self):
        server, tools, pong, resources = self.ask({"list": "server"}, {"list": "tools"}, {"list": "ping"}, {"list": "resources"})
        self.assertEqual((server["name"], server["version"]), ("rangescope", cases.run([COMMAND, "--version"]).stdout.split()[1]))
        self.assertEqual([tool["name"] for tool in tools["tools"]], READING)
        self.assertTrue(all(tool["annotations"]["readOnlyHint"] and tool["description"] for tool in tools["tools"]))
        self.assertEqual(pong, {})
        self.assertEqual([resource["name"] for resource in resources["resources"]], [self.after, self.before])
        page, = self.ask({"resource": resources["resources"][0]["uri"]})
        self.assertIn("step", page["contents"][0]["text"])

    def test_what_they_say_is_the_report(self):
        report = json.loads(cases.run([COMMAND, "report", self.after, "--runs", self.runs, "-f", "json"]).stdout)
        self.assertEqual([run["run"] for run in self.tool("list_runs")["rows"]], [self.after, self.before])
        verdict = self.tool("verdict")
        self.assertEqual([each["text"] for each in verdict["rows"]], [each["text"] for each in report["verdict"]])
        self.assertEqual((verdict["rests_on"]["run"], verdict["rests_on"]["sources"]), (self.after, report["run"]["sources"]))
        regions = self.tool("regions", sort="wall_ns.median", contains="step > ", limit=1)
        largest = max((each for each in report["regions"] if each["process"] is None and len(each["path"]) > 1), key=lambda each: each["wall_ns"]["median"])
        self.assertEqual((regions["shown"], regions["total"], regions["rows"][0]["wall_ns.median"]), (1, 2, largest["wall_ns"]["median"]))
        changed = {each["path"]: each for each in self.tool("compare", before=self.before, after=self.after)["rows"]}
        self.assertEqual(changed["step > compute"]["ratio"], 9)

    def test_recordings(self):
        kernels = self.tool("kernels", run=golden("nsys/zoo.sqlite"), limit=3, offset=1)
        self.assertEqual((kernels["shown"], kernels["offset"]), (3, 1))
        functions = self.tool("functions", run=golden("native-cpu/python"), contains="red")
        self.assertTrue(all("red" in row["name"] and row["self_ns"] >= 0 for row in functions["rows"]))
        rows = self.tool("query", run=golden("nsys/zoo.sqlite"), sql="select name, count(*) as n from kernels group by 1 order by 2 desc", limit=2)
        self.assertEqual((rows["shown"], rows["more_rows"], list(rows["rows"][0])), (2, True, ["name", "n"]))
        explained = self.tool("explain_command", command="ncu --nvtx-include 'layer*/' ./app")
        self.assertIn("command.no_nvtx", json.dumps(explained))

    def test_programs_run_only_where_they_may(self):
        argv = ["sh", "-c", "echo said; exit 3"]
        refused, = self.ask({"tool": "profile", "arguments": {"argv": argv}})
        self.assertTrue(refused["isError"])
        self.assertIn("--allow-run", refused["content"][0]["text"])
        tools, ran = self.ask({"list": "tools"}, {"tool": "profile", "arguments": {"argv": argv}}, options=["--allow-run"])
        self.assertEqual([tool["name"] for tool in tools["tools"]], [*READING, "profile"])
        self.assertEqual((ran["structuredContent"]["exit_code"], ran["structuredContent"]["output_end"]), (3, ["said"]))
        shutil.rmtree(ran["structuredContent"]["rests_on"]["report"])

    def test_what_is_refused(self):
        cases_ = [("verdict", {"run": "--help"}, "must not begin"), ("verdict", {"run": "no-such-run"}, "exit code 66"),
                  ("verdict", {"run": "postgresql://evil/db"}, "on this machine"), ("compare", {"before": "x", "after": "http://h/"}, "on this machine"),
                  ("verdict", {"run": 5}, "must be a text"), ("verdict", {"run": "a\0b"}, "NUL"), ("regions", {"limit": -1}, "whole number"),
                  ("regions", {"limit": 10**9}, "whole number"), ("regions", {"limit": True}, "whole number"), ("regions", {"sort": "nothing"}, "no value"),
                  ("regions", {"to": "/etc/passwd"}, "no argument"), ("functions", {"region": "nothing"}, "no region"), ("explain_command", {}, "must be a text"),
                  ("query", {"sql": "--format"}, "must not begin"), ("query", {"sql": "attach database '/etc/passwd' as x"}, "not a SELECT"),
                  ("query", {"sql": "delete from regions"}, "not a SELECT"), ("query", {"sql": "select * from regions where nosuch"}, "no such column"),
                  ("query", {"sql": "select load_extension('x')"}, "exit code"), ("query", {"sql": "select readfile('/etc/passwd')"}, "exit code"),
                  ("verdict", {"run": "/etc/passwd"}, "exit code"), ("verdict", {"run": "\ud800"}, "surrogate")]
        for (name, given, why), said in zip(cases_, self.ask(*({"tool": name, "arguments": given} for name, given, _ in cases_))):
            self.assertTrue(said.get("isError"), f"{name} {given}: {said}")
            self.assertIn(why, said["content"][0]["text"])
        unknown, outside = self.ask({"tool": "shell", "arguments": {}}, {"resource": "rangescope://runs/../../etc"})
        self.assertIn("no tool", unknown["thrown"])
        self.assertIn("no such resource", outside["thrown"])

    def test_a_hostile_report(self):
        evil = "\x1b]0;owned\x07\u202e" + "x" * 20000
        region = {"id": 0, "parent": None, "depth": 0, "path": [evil], "domain": "", "kind": evil, "process": None, "thread": None, "occurrences": 1,
                  "wall_ns": {"exclusive": 1}, "metrics": {}}
        nested = []
        for _ in range(200):
            nested = [nested]
        report = {"schema": "rangescope.report/1", "run": {"id": evil, "command": [evil] * 1000, "sources": nested}, "regions": [region] * 300, "kernels": 5,
                  "measures": {"wall_ns.exclusive": {}}, "losses": [{"kind": evil, "count": 1}] * 10000,
                  "verdict": [{"text": evil, "evidence": {f"{i}{evil}": nested for i in range(50)}}] * 10}
        path = f"{self.folder.name}/hostile.json"
        with open(path, "w") as f:
            json.dump(report, f)
        for name in ("verdict", "regions"):
            self.assertNotRegex(json.dumps(self.tool(name, run=path)), r"(?<!\\)\\u(001b|202e)")
        wrong, = self.ask({"tool": "kernels", "arguments": {"run": path}})
        self.assertIn("kernels of this report is no list", wrong["content"][0]["text"])


class Wire(Base):
    """What no client of the SDK sends."""

    def say(self, *lines):
        done = subprocess.run([COMMAND, "mcp", "--runs", self.runs], input=b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines),
                              capture_output=True, timeout=600, cwd=self.folder.name)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return [json.loads(line) for line in done.stdout.splitlines()]

    PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
    PONG = {"jsonrpc": "2.0", "id": 7, "result": {}}

    def test_malformed(self):
        for line, code in ((b"\xff\xfe\n", -32700), (b"{\n", -32700), (b"[" * 100000 + b"\n", -32700), (b"5\n", -32600), (b"[]\n", -32600), (b"null\n", -32600),
                           ({"id": 1, "method": "ping"}, -32600), ({"jsonrpc": "2.0", "id": {}, "method": "ping"}, -32600),
                           ({"jsonrpc": "2.0", "id": 1, "method": 5}, -32600), ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, -32600),
                           ({"jsonrpc": "2.0", "id": 1, "method": "\x1b[31m"}, -32601), ({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}, -32602),
                           ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": []}}, -32602),
                           ({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": ["x"]}}, -32602),
                           (b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * 5_000_000 + b'"}\n', -32600)):
            first, then = self.say(line, self.PING)
            self.assertEqual((first["error"]["code"], then), (code, self.PONG), str(line)[:80])
            self.assertNotIn("\x1b", first["error"]["message"])

    def test_notifications_and_the_end(self):
        said = self.say({"jsonrpc": "2.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "id": 1, "result": {}}, b"\n", b"  \n", self.PING, b'{"jsonrpc"')
        self.assertEqual([each.get("id") for each in said], [7, None])
        self.assertEqual(self.say(), [])

    def test_versions(self):
        for asked, given in (("2024-11-05", "2024-11-05"), ("2099-01-01", "2025-06-18"), (None, "2025-06-18"), ([], "2025-06-18")):
            said, = self.say({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": asked}})
            self.assertEqual(said["result"]["protocolVersion"], given)

    def test_modules_that_lie_in_the_way_are_not_run(self):
        for name in ("json.py", "rangescope.py", "sitecustomize.py", "argparse.py"):
            with open(f"{self.folder.name}/{name}", "w") as f:
                f.write("raise SystemExit('run from the current folder')")
        os.environ["PYTHONPATH"], kept = self.folder.name, os.environ["PYTHONPATH"]
        self.addCleanup(os.environ.__setitem__, "PYTHONPATH", kept)
        self.assertEqual(self.say(self.PING), [self.PONG])

    def test_without_python(self):
        done = cases.run([COMMAND, "mcp"], env={**os.environ, "PATH": self.folder.name})
        self.assertEqual(done.returncode, 69)
        self.assertIn("cannot run python3", done.stderr)


if __name__ == "__main__":
    cases.main()
