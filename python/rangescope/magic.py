"""`%%rangescope`: a cell of IPython as a program of its own, profiled. Options of `rangescope profile` stand behind it."""
from __future__ import annotations

import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

from .runs import Run, profile


def rangescope(line: str, cell: str) -> Run:
    """%%rangescope [options of rangescope profile]: runs the cell as a Python program and gives its run.

    The cell sees nothing of the notebook's variables, and the notebook nothing of the cell's. What it prints is printed."""
    packages = os.pathsep.join([str(Path(__file__).resolve().parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryDirectory(prefix="rangescope-cell-") as folder:
        program, said = Path(folder, "cell.py"), Path(folder, "said")
        program.write_text(cell, encoding="utf-8")
        with said.open("wb") as out:
            try:
                return profile([sys.executable, str(program)], *shlex.split(line), stdout=out, stderr=out,
                               env={**os.environ, "PYTHONPATH": packages})
            finally:
                print(said.read_bytes().decode(errors="replace"), end="")


def register(shell: Any) -> None:
    shell.register_magic_function(rangescope, "cell")
