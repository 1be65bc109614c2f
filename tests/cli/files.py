"""What tests of input files share: files of other tools, and a folder to put copies and broken ones in."""
import json
import os

import commands

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")
ZOO = os.path.join(GOLDEN, "nsys", "zoo.sqlite")
NODES = os.path.join(GOLDEN, "nsys", "zoo_graphnode.sqlite")  # with the kernels of graphs
NESTED = os.path.join(GOLDEN, "ncu", "k_nested.ncu-repz")
DECODE = os.path.join(GOLDEN, "ncu", "k_decode.ncu-repz")


class Files(commands.InAFolder):
    def report(self, *words, **env):
        done = self.tool("report", *words, "-f", "json", **env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return self.path(name)
