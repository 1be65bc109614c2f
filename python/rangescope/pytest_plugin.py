"""A plugin of pytest: `--rangescope` measures tests that are marked `rangescope` and holds them against their baselines.

    @pytest.mark.rangescope(regions=["decode"], options=["--max-regression", "10%"])
    def test_decode(): ...

A marked test runs as a pytest of its own under `rangescope profile --repeat N`, its body within the range "test". It fails where it
itself fails, and where `rangescope gate` does. Without --rangescope it is a test like any other.
"""
from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from . import range as measured_range
from .runs import CommandError, ReportError, excerpt, gate, look_up, objects, profile, save_baseline

CHILD = "RANGESCOPE_PYTEST"
RANGE = "test"
MOST_SHOWN = 64 << 10  # bytes of what a failing test printed


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rangescope")
    group.addoption("--rangescope", action="store_true", help="measure tests marked rangescope, and fail as `rangescope gate` does")
    group.addoption("--rangescope-save", action="store_true", help="measure them, and keep what is measured as their baselines")
    group.addoption("--rangescope-repeat", metavar="N", default="5", help="runs of each test, or auto (5)")
    group.addoption("--rangescope-dir", metavar="DIR", default="rangescope-baselines", help="folder of the baselines")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "rangescope(regions=[], options=[]): measured under --rangescope; regions that are held against "
                            "the baseline beside the test itself, and options of `rangescope gate`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get(CHILD) or not (config.getoption("--rangescope") or config.getoption("--rangescope-save")):
        return
    for index, item in enumerate(items):
        marker = item.get_closest_marker("rangescope")
        if marker and item.parent:
            # No fixture is set up here: the test runs elsewhere.
            items[index] = Measured.from_parent(item.parent, name=item.name, of=item, marker=marker)


def pytest_pyfunc_call(pyfuncitem: Any) -> Generator[None, None, None]:
    if os.environ.get(CHILD) and pyfuncitem.get_closest_marker("rangescope"):
        with measured_range(RANGE):
            yield
    else:
        yield


pytest.hookimpl(hookwrapper=True)(pytest_pyfunc_call)


class Failed(Exception):
    """A test that fails by what was measured, or could not be measured."""


class Measured(pytest.Item):
    def __init__(self, *, of: pytest.Item, marker: pytest.Mark, **more: Any) -> None:
        super().__init__(**more)
        self.of, self.marker = of, marker
        self.own_markers = list(of.own_markers)
        self.keywords.update(of.keywords)

    @property
    def baseline(self) -> str:
        readable = re.sub(r"[^A-Za-z0-9_]+", "-", self.nodeid)[-60:].strip("-")
        return f"{readable}-{hashlib.sha256(self.nodeid.encode()).hexdigest()[:8]}"

    def runtest(self) -> None:
        config = self.config
        words = [sys.executable, "-m", "pytest", "-q", "-p", "rangescope.pytest_plugin", "-p", "no:cacheprovider",
                 f"--rootdir={config.rootpath}", *(["-c", str(config.inipath)] if config.inipath else []),
                 str(self.of.path) + self.nodeid[self.nodeid.find("::"):]]
        package = str(Path(__file__).resolve().parents[1])
        environment = {**os.environ, CHILD: "1", "PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))}
        folder = str(config.getoption("--rangescope-dir"))
        with tempfile.TemporaryDirectory(prefix="rangescope-pytest-") as runs:
            printed = Path(runs, "printed")
            try:
                with printed.open("wb") as out:
                    run = profile(words, "--repeat", str(config.getoption("--rangescope-repeat")), runs=runs, env=environment,
                                  stdout=out, stderr=subprocess.STDOUT)
                if run.exit_code != 0:
                    raise Failed(f"the test fails under rangescope\n{excerpt(printed, MOST_SHOWN)}")
                if config.getoption("--rangescope-save"):
                    said = "baseline kept in " + save_baseline(run, self.baseline, ["--dir", folder])
                else:
                    regions = [word for name in (RANGE, *self.marker.kwargs.get("regions", ())) for word in ("--region", name)]
                    result = gate(run, self.baseline, ["--dir", folder, *regions, *self.marker.kwargs.get("options", ())])
                    said = result.text
                    if not result.passed:
                        raise Failed(f"{result.verdict}: {said}\n" + "\n".join(
                            f"{look_up(each, 'path')} {look_up(each, 'metric')}: {look_up(each, 'text')}"
                            for each in objects(result.data, "checks") if look_up(each, "verdict") != "passed"))
            except CommandError as error:
                hint = "\nmake its baseline first: pytest --rangescope-save" if "gate" in str(error) else ""
                shown = excerpt(printed, MOST_SHOWN) if printed.exists() else ""
                raise Failed(f"{error}{hint}\n{shown}".rstrip()) from None
            except (ReportError, OSError) as error:  # no command, or one that is no rangescope
                raise Failed(str(error)) from None
        self.user_properties.append(("rangescope", said))
        self.add_report_section("call", "rangescope", said)

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        return str(excinfo.value) if isinstance(excinfo.value, Failed) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> Any:
        return self.of.reportinfo()
