"""`%%rangescope`: a cell of IPython as a program of its own, profiled. Options of `rangescope profile` stand behind it."""
from __future__ import annotations

import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

from .runs import Run, excerpt, profile


def rangescope(line: str, cell: str) -> Run:
    """%%rangescope [options of rangescope profile]: runs the cell as a Python program and gives its run.

    The cell sees nothing of the notebook's variables, and the notebook nothing of the cell's. What it prints is printed, of more than
    1 MiB the begin and the end."""
    packages = os.pathsep.join([str(Path(__file__).resolve().parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        options = shlex.split(line)
    except ValueError as error:
        raise ValueError(f"%%rangescope {line}: {error}") from None
    with tempfile.TemporaryDirectory(prefix="rangescope-cell-") as folder:
        program, said = Path(folder, "cell.py"), Path(folder, "said")
        program.write_text(cell, encoding="utf-8", errors="surrogatepass")
        with said.open("wb") as out:
            try:
                return profile([sys.executable, str(program)], *options, stdout=out, stderr=out,
                               env={**os.environ, "PYTHONPATH": packages})
            finally:
                print(excerpt(said), end="")


def register(shell: Any) -> None:
    shell.register_magic_function(rangescope, "cell")
