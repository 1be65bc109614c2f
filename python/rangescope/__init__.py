"""rangescope from Python: ranges for programs, and what a run of theirs cost.

    with rangescope.range("decode", payload=tokens): ...     # in the program (rangescope.ranges)

    run = rangescope.load("latest")                           # beside it: a script, a notebook, a test
    run = rangescope.profile(["./app", "--size", "10"], metrics="roofline")
    run.verdict[0].text
    run.region("decode > attention").wall_ns
    run.to_pandas().sort_values("wall_ns.exclusive")
    rangescope.compare("before", "after").changes

`%load_ext rangescope` gives IPython `%%rangescope`, `pytest -p rangescope.pytest_plugin --rangescope` measures tests.
A program that only has ranges imports nothing but rangescope.ranges.
"""
from __future__ import annotations

from .ranges import backend, failure, range, window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .arrow import ArrowTable
    from .runs import (CommandError, Comparison, Function, Gate, Kernel, Rank, Record, Region, ReportError, Run, Verdict, command,
                       compare, gate, load, profile, save_baseline)

__all__ = ["range", "window", "backend", "failure", "load", "profile", "compare", "gate", "save_baseline", "command", "Run", "Record", "Verdict",
           "Region", "Kernel", "Rank", "Function", "Comparison", "Gate", "CommandError", "ReportError", "ArrowTable"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import arrow, runs
    return getattr(arrow if name == "ArrowTable" else runs, name)


def load_ipython_extension(shell: Any) -> None:
    from .magic import register
    register(shell)
