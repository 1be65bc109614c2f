#!/usr/bin/env python3
"""jupyter: the notebook of docs/notebooks, run by Jupyter, and %%rangescope in it. Usage: jupyter.py BIN ROOT"""
import json
import os
import sys
import tempfile
import unittest

from package import ROOT, cases, need

NOTEBOOK = f"{ROOT}/docs/notebooks/first-run.ipynb"


def execute(notebook, folder, *options):
    path = os.path.join(folder, "run.ipynb")
    with open(path, "w") as f:
        json.dump(notebook, f)
    done = cases.run([sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--inplace", "--ExecutePreprocessor.timeout=200", *options, path],
                     cwd=folder, env={**os.environ, "HOME": folder, "JUPYTER_PLATFORM_DIRS": "0"})
    with open(path) as f:
        return done, [cell for cell in json.load(f)["cells"] if cell["cell_type"] == "code"]


class Notebook(unittest.TestCase):
    def setUp(self):
        need(self, "nbconvert", "ipykernel", "pandas", "matplotlib")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_the_notebook_of_the_manual(self):
        with open(NOTEBOOK) as f:
            notebook = json.load(f)
        self.assertFalse([cell for cell in notebook["cells"] if cell.get("outputs")], "it is kept without its outputs")
        done, cells = execute(notebook, self.folder.name)
        self.assertEqual(done.returncode, 0, done.stderr)
        magic = next(cell for cell in cells if "%%rangescope" in "".join(cell["source"]))
        kinds = {kind for output in magic["outputs"] for kind in output.get("data", {})}
        self.assertEqual(kinds, {"text/html", "text/plain"})
        page = "".join(next(output for output in magic["outputs"] if "data" in output)["data"]["text/html"])
        self.assertIn("step &gt; compute", page)
        self.assertNotIn("<script", page)
        self.assertIn("image/png", {kind for cell in cells for output in cell["outputs"] for kind in output.get("data", {})})

    def test_a_cell_that_fails(self):
        cell = lambda text: {"cell_type": "code", "source": text, "metadata": {}, "outputs": [], "execution_count": None}
        done, cells = execute({"cells": [cell("%load_ext rangescope"), cell("%%rangescope\nprint('begun')\nraise ValueError('mine')"),
                                         cell("print(_.exit_code)"), cell("%%rangescope --no-such-option\n1")],
                               "metadata": {"kernelspec": {"name": "python3", "display_name": "", "language": "python"}}, "nbformat": 4, "nbformat_minor": 4},
                              self.folder.name, "--allow-errors")
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.dumps(cells[1]["outputs"])
        self.assertIn("begun", said)
        self.assertIn("ValueError: mine", said)
        self.assertEqual("".join(cells[2]["outputs"][0]["text"]), "1\n")
        self.assertIn("unknown option '--no-such-option'", "".join(cells[3]["outputs"][0]["text"]))
        self.assertEqual(cells[3]["outputs"][1]["ename"], "CommandError")


if __name__ == "__main__":
    cases.main()
