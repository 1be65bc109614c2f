"""One pipeline run in a folder of its own, and what it left."""
import json
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tools"))
import cases  # noqa: E402

BIN = sys.argv[1]
LLM = [os.path.join(BIN, "llm"), "--layers", "1", "--tokens", "2", "--requests", "1"]


class PipelineCase(unittest.TestCase):
    tools = {}

    @classmethod
    def setUpClass(cls):
        # What rangescope asked nsys and ncu about themselves is the same in each case.
        folder = tempfile.TemporaryDirectory(prefix="rangescope-cache-")
        cls.addClassCleanup(folder.cleanup)
        cls.cache = folder.name

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = os.path.realpath(self.temporary.name)

    def environment(self, **more):
        """Of a rangescope with the tools of the class."""
        own = {k: v for k, v in os.environ.items() if not k.startswith("RANGESCOPE__")}
        return {**own, **self.tools, "XDG_CACHE_HOME": self.cache, **more}

    def profile(self, *words, program=None, plan=None, env=None, command="profile"):
        """The finished rangescope; the run directory is self.run_dir, stages are self.stages."""
        environment = self.environment(**(env or {}))
        if plan is not None:
            path = os.path.join(self.folder, "plan.json")
            with open(path, "w") as f:
                json.dump(plan, f)
            environment["STANDIN_PLAN"] = path
        argv = [os.path.join(BIN, "rangescope"), command, "--no-project", *words]
        if command == "profile":
            argv += ["--", *(program or LLM)]
        root = os.path.join(self.folder, "rangescope-runs")
        before = set(os.listdir(root)) if os.path.isdir(root) else set()
        done = cases.run(argv, cwd=self.folder, env=environment)
        made = sorted(set(os.listdir(root)) - before) if os.path.isdir(root) else []  # two of one second are not in order
        self.run_dir = os.path.join(root, made[0]) if made else None
        self.stages = self.json("stages.json")["stages"] if self.run_dir and self.has("stages.json") else []
        return done

    def json(self, name):
        with open(os.path.join(self.run_dir, name)) as f:
            return json.load(f)

    def text(self, name):
        with open(os.path.join(self.run_dir, name), errors="replace") as f:
            return f.read()

    def has(self, name):
        return os.path.exists(os.path.join(self.run_dir, name))

    def steps(self, stage="ncu"):
        return [(s["step"], s["outcome"], s["why"]) for s in self.stages if s["stage"] == stage]

    def calls(self):
        with open(os.path.join(self.folder, "plan.json.calls")) as f:
            return [json.loads(line) for line in f]
