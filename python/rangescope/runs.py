"""Runs, as rangescope's reports have them (docs/formats/report-json.md), and the command for what the command decides.

Nothing is computed here: a number is one of report.json, of `rangescope compare` or of `rangescope gate`. Python 3.9 and later;
pandas, pyarrow and matplotlib are imported where they are asked for.
"""
from __future__ import annotations

import difflib
import functools
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar, Union, overload

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

SCHEMA = "rangescope.report/1"
MOST_BYTES = 256 << 20  # of a report.json
PATIENCE = 10.0  # seconds that rangescope has to end the program when it is interrupted
TIMEOUT: Optional[float] = None  # seconds that the command may take where it reads; None: as long as it does
T = TypeVar("T")
Where = Union[str, "os.PathLike[str]", "Run"]


class ReportError(ValueError):
    """A report that is none, or has something else where a value should be."""


class CommandError(RuntimeError):
    """The command rangescope failed: `code` is its exit code, `message` what it said."""

    def __init__(self, words: Sequence[str], code: int, message: str) -> None:
        super().__init__(f"rangescope {words[0]}: exit code {code}" + (f": {message.strip()}" if message.strip() else ""))
        self.code, self.message = code, message


# ---- The command -----------------------------------------------------------------------------------------------------
def command() -> str:
    """The path of the command: $RANGESCOPE, the one that this package came with, or the first in PATH."""
    above = Path(__file__).resolve().parents
    # PREFIX/share/rangescope/python/rangescope, PREFIX/lib/python3/dist-packages/rangescope; a checkout
    beside = [above[up] / place for up, place in ((4, "bin/rangescope"), (2, "build/release/bin/rangescope")) if up < len(above)]
    places = [os.environ.get("RANGESCOPE"), *beside, shutil.which("rangescope")]
    for place in places:
        if place and os.path.isfile(place) and os.access(place, os.X_OK):
            return str(place)
    raise FileNotFoundError("the command rangescope was not found. Get it with `pip install rangescope-*.whl` or, in a checkout, `./dev install`; "
                            "if you have it, put it into PATH, or its path into the variable RANGESCOPE")


def call(*words: str, accept: Sequence[int] = (0,), **options: Any) -> "subprocess.CompletedProcess[str]":
    """Runs the command; CommandError where its exit code is not one of `accept`. Its output is text and kept."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": TIMEOUT, **options}
    done = subprocess.run([command(), *words], text=True, errors="backslashreplace", check=False, **options)
    if done.returncode not in accept:
        raise CommandError(words, done.returncode, done.stderr or "")
    return done


def _parsed(text: Union[str, bytes], where: str) -> Any:
    try:
        return json.loads(text if isinstance(text, str) else text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ReportError(f"{where}: {error}") from error


def _stored(runs: Optional[str]) -> list[str]:
    return ["--runs", runs] if runs else []


def word_of(what: Where) -> str:
    """What names a run on a command line; never an option."""
    said = what.source if isinstance(what, Run) else os.fspath(what)
    if not said or "\0" in said:
        raise ValueError(f"{said!r} names no run")
    return os.path.join(".", said) if said.startswith("-") else said


# ---- Records ---------------------------------------------------------------------------------------------------------
def look_up(data: Any, path: str) -> Any:
    """`a.b.c` within nested objects; names of metrics may hold dots themselves. None where there is nothing."""
    while path and isinstance(data, Mapping):
        if path in data:
            return data[path]
        key, _, path = path.partition(".")
        data = data.get(key)
    return None


class Value(Generic[T]):
    """An attribute of a record: the value at a path of its JSON, and of the right type, or ReportError."""

    def __init__(self, path: str, kind: Any) -> None:
        self.path, self.kind = path, kind

    @overload
    def __get__(self, record: None, owner: type) -> "Value[T]": ...
    @overload
    def __get__(self, record: "Record", owner: type) -> T: ...

    def __get__(self, record: Optional["Record"], owner: type) -> Any:
        if record is None:
            return self
        value = look_up(record.data, self.path)
        if value is None and self.kind in (str, bool, int):
            value = self.kind()
        elif value is not None and (not isinstance(value, self.kind) or (isinstance(value, bool) and self.kind is not bool)):
            raise ReportError(f"{type(record).__name__.lower()}: {self.path} is {type(value).__name__} in this report")
        return value


NUMBER = (int, float)


def _number(path: str) -> Value[Optional[float]]:
    return Value(path, NUMBER)


def _text(path: str) -> Value[str]:
    return Value(path, str)


def _count(path: str) -> Value[int]:
    return Value(path, int)


def _as_html(write: Callable[[Any], str], what: Any) -> str:
    """The page of a run or a comparison; a value of another type than the page shows is the report's mistake."""
    try:
        return write(what)
    except ReportError:
        raise
    except (TypeError, ValueError, AttributeError, KeyError, IndexError) as error:
        raise ReportError(f"a value of this report has another type: {error}") from error


class Record:
    """A row of the report: `data` is its JSON, `record["wall_ns.inclusive"]` a value of it, `None` what is absent."""

    def __init__(self, data: Any, where: str = "") -> None:
        if not isinstance(data, Mapping):
            raise ReportError(f"a {type(self).__name__.lower()} of this report is no object")
        self.data: Mapping[str, Any] = data
        self.where = where  #: the range of a function

    def __getitem__(self, path: str) -> Any:
        return look_up(self.data, path)

    @classmethod
    def fields(cls) -> list[str]:
        return [name for of in reversed(cls.__mro__) for name, value in vars(of).items() if isinstance(value, (Value, property))]

    def row(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.fields()}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.row().items() if value is not None)})"


class Verdict(Record):
    """What costs the run its time; at most `saves_ns` would be saved."""
    kind, severity, path, text = _text("kind"), _text("severity"), _text("path"), _text("text")
    saves_ns, saves_share = _number("saves_ns"), _number("saves_share")
    saves_low_ns, saves_high_ns = _number("saves_low_ns"), _number("saves_high_ns")
    cure: Value[Optional[str]] = Value("cure", (str,))
    advice: Value[Optional[str]] = Value("advice", (str,))
    next: Value[Optional[str]] = Value("next", (str,))


class Function(Record):
    """A function in the call chains of a range's threads: nanoseconds of CPU time, estimated from samples."""
    name = _text("name")
    file: Value[Optional[str]] = Value("file", (str,))
    line: Value[Optional[int]] = Value("line", (int,))
    hot_line: Value[Optional[int]] = Value("hot_line", (int,))
    python: Value[bool] = Value("python", bool)
    self_ns, total_ns = _number("self_ns"), _number("total_ns")

    @property
    def region(self) -> str:
        """The path of its range; "" outside every range."""
        return self.where


class Kernel(Record):
    """A kernel over the whole run."""
    name, label, calls = _text("name"), _text("label"), _count("calls")
    total_ns, median_ns, share = _number("total_ns"), _number("duration_ns.median"), _number("share")


class Rank(Record):
    """A process of a parallel job; the paces are time for the same work, beside the median of the other ranks."""
    rank, pid = _count("rank"), _count("pid")
    host: Value[Optional[str]] = Value("host", (str,))
    kernel_ns, kernel_pace, cpu_pace = _number("work.kernel_ns"), _number("work.kernel_pace"), _number("work.cpu_pace")


class Region(Record):
    """A range path of the run with its numbers; `wall_ns` is inclusive, `self_ns` without the ranges inside."""
    domain, kind = _text("domain"), _text("kind")
    process: Value[Optional[int]] = Value("process", (int,))
    thread: Value[Optional[int]] = Value("thread", (int,))
    occurrences: Value[Optional[int]] = Value("occurrences", (int,))  # None of regions that come from CPU samples
    wall_ns, self_ns = _number("wall_ns.inclusive"), _number("wall_ns.exclusive")
    median_ns, p95_ns, share = _number("wall_ns.median"), _number("wall_ns.p95"), _number("wall_ns.share")
    gpu_busy_ns, kernel_ns = _number("gpu.busy_ns"), _number("gpu.kernel_ns")

    @property
    def path(self) -> str:
        """As in the tables, and in a verdict: names from the outermost range to this one, "LLM@decode > attention" in a domain LLM."""
        return path_text(self.data)

    @property
    def bound(self) -> Optional[str]:
        """What limits it, where counters say so: "memory", "compute: tensor" ..."""
        kind = self["bound.kind"]
        return kind if isinstance(kind, str) else None

    def metric(self, name: str) -> Optional[float]:
        """A metric's value for one occurrence; None where it could not be measured."""
        value = look_up(self["metrics"], f"{name}.value")
        return value if isinstance(value, NUMBER) else None

    @property
    def functions(self) -> list[Function]:
        return [Function(each, self.path) for each in objects(self.data, "cpu.functions")]

    @classmethod
    def fields(cls) -> list[str]:
        return ["path", *(name for name in super().fields() if name not in ("path", "functions"))]


START_END = " [start/end]"


def path_text(data: Any) -> str:
    domain = look_up(data, "domain")
    return (f"{domain}@" if domain else "") + " > ".join(str(name) for name in objects(data, "path"))


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def objects(data: Any, path: str) -> Sequence[Any]:
    """The list at `path`; empty where there is none."""
    found = look_up(data, path)
    if found is None:
        return []
    if not isinstance(found, list):
        raise ReportError(f"{path} of this report is no list")
    return found


# ---- A run -----------------------------------------------------------------------------------------------------------
class Run:
    """A report, as `load` and `profile` give it. `report` is the whole JSON; `source` names it to the command."""

    def __init__(self, report: Any, source: str) -> None:
        if not isinstance(report, dict) or report.get("schema") != SCHEMA:
            raise ReportError(f"{source}: this is not a report of rangescope ({SCHEMA})")
        self.report: dict[str, Any] = report
        self.source = source
        self.output = ""  #: of `profile`, what was kept of the program's output (stdout=PIPE)

    @property
    def exit_code(self) -> Optional[int]:
        """The program's; None where a signal ended it, or nobody knows."""
        code = self["run.exit_code"]
        return code if isinstance(code, int) else None

    def __getitem__(self, path: str) -> Any:
        return look_up(self.report, path)

    def __repr__(self) -> str:
        first = f": {self.verdict[0].text!r}" if self.verdict else ""
        return f"<rangescope.Run {self['run.id']!r}, {len(self.regions)} regions{first}>"

    def _repr_html_(self) -> str:
        from .page import page
        return _as_html(page, self)

    @functools.cached_property
    def verdict(self) -> list[Verdict]:
        return [Verdict(each) for each in objects(self.report, "verdict")]

    @functools.cached_property
    def all_regions(self) -> list[Region]:
        """Those of each process and thread too."""
        return [Region(each) for each in objects(self.report, "regions")]

    @functools.cached_property
    def regions(self) -> list[Region]:
        """Over all processes, a parent before its children."""
        return [each for each in self.all_regions if each.process is None and each.thread is None]

    @functools.cached_property
    def kernels(self) -> list[Kernel]:
        return [Kernel(each) for each in objects(self.report, "kernels")]

    @functools.cached_property
    def ranks(self) -> list[Rank]:
        return [Rank(each) for each in objects(self.report, "ranks")]

    @functools.cached_property
    def functions(self) -> list[Function]:
        """Of each region, at most fifty by their own time, and those outside every range."""
        outside = [Function(each) for each in objects(self.report, "cpu_outside.functions")]
        return list(itertools.chain(*(region.functions for region in self.regions), outside))

    def region(self, path: str) -> Region:
        """The region of this path ("decode > attention", "LLM@decode", "request [start/end]"). KeyError with the nearest paths."""
        bare = path[:-len(START_END)] if path.endswith(START_END) else None  # as tables print start/end ranges
        for each in self.regions:
            if each.path == path or (each.path == bare and each.kind == "start_end"):
                return each
        near = difflib.get_close_matches(path, [each.path for each in self.regions])
        raise KeyError(f"there is no region {path!r}" + (f"; near it: {', '.join(map(repr, near))}" if near else ""))

    def rows(self, table: str = "regions") -> list[dict[str, Any]]:
        """A table as dictionaries with the same keys: "regions", "all_regions", "verdict", "kernels", "ranks", "functions".
        Regions have every measure by its path, as the columns of the CSV report, and every metric as `metrics.NAME`."""
        if table not in ("regions", "all_regions", "verdict", "kernels", "ranks", "functions"):
            raise ValueError(f"there is no table {table!r}")
        records: list[Record] = getattr(self, table)
        if not table.endswith("regions"):
            return [each.row() for each in records]
        measures = [name for name in mapping(self["measures"]) if name not in ("occurrences", "threads", "processes")]
        metrics = sorted({name for each in records for name in mapping(each["metrics"])})
        return [{**{key: getattr(each, key) for key in ("path", "domain", "kind", "process", "thread", "occurrences")},
                 **{name: each[name] for name in measures},
                 **{f"metrics.{name}": each.metric(name) for name in metrics if isinstance(each, Region)}} for each in records]

    def to_pandas(self, table: str = "regions") -> "pandas.DataFrame":
        import pandas
        frame = pandas.DataFrame.from_records(self.rows(table))
        return frame.astype({name: float for name in frame if len(frame) and frame[name].isna().all()})  # absent: NaN

    def to_arrow(self, table: str = "regions") -> Any:
        """A table for what reads Arrow: a pyarrow.Table where pyarrow (15 or later) is installed, else a rangescope.ArrowTable, which
        has the same interface for readers (`__arrow_c_stream__`: Polars, DuckDB, pandas 2.2)."""
        from .arrow import ArrowTable
        rows = ArrowTable(self.rows(table))
        try:
            import pyarrow
        except ImportError:
            return rows
        return pyarrow.table(rows)

    def plot(self, axes: Optional["Axes"] = None, top: int = 20) -> "Axes":
        """Bars of the regions that take most time of their own, with matplotlib."""
        from matplotlib import pyplot

        from .page import plain
        axes = axes or pyplot.gca()
        most = sorted((each for each in self.regions if each.self_ns), key=lambda each: each.self_ns or 0)[-top:]
        axes.barh([plain(each.path) for each in most], [(each.self_ns or 0) / 1e9 for each in most])
        axes.set_xlabel("self time (s)")
        return axes


def load(what: Where = "latest", *options: str, runs: Optional[str] = None) -> Run:
    """A run: "latest", a run's name or directory, a job, a report.json, or a recording of nsys, ncu or PyTorch. `runs`: the folder
    of the runs. `options`: those of `rangescope report`, such as "--include", "decode"; then the recording is read anew."""
    path = Path(word_of(what))
    report = path / "report.json" if path.is_dir() else path
    if not options and report.is_file() and report.suffix == ".json":
        if report.stat().st_size > MOST_BYTES:
            raise ReportError(f"{report}: a report has at most {MOST_BYTES >> 20} MiB")
        data = _parsed(report.read_bytes(), str(report))
        if path.is_dir() or (isinstance(data, dict) and "schema" in data):
            return Run(data, str(path))
    return from_command(["report", *_stored(runs), *options, "-f", "json", word_of(what)], runs)


def from_command(words: Sequence[str], runs: Optional[str]) -> Run:
    data = _parsed(call(*words).stdout, f"rangescope {words[0]}")
    kept = os.path.join(runs or "rangescope-runs", str(look_up(data, "run.id")))
    return Run(data, kept if os.path.isdir(kept) else words[-1])


def profile(argv: Sequence[Union[str, "os.PathLike[str]"]], *options: str, metrics: Optional[str] = None, repeat: Optional[int] = None,
            runs: Optional[str] = None, **process: Any) -> Run:
    """Runs a program under `rangescope profile` and gives the run; the program's exit code is run["run.exit_code"].

    `options`: those of the command ("--cpu", "--include", "decode"). `process`: what subprocess.Popen takes (stdout=, env=, cwd=).
    CommandError where nothing was captured. When it is interrupted (KeyboardInterrupt), the program is, too, and has ended."""
    if "--" in options:
        raise ValueError("'--' is not an option of rangescope profile: the program is in argv")
    folder = os.path.abspath(os.path.join(runs or "rangescope-runs", f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{next(_numbers)}"))
    more = [*(["--metrics", metrics] if metrics else []), *(["--repeat", str(repeat)] if repeat else [])]
    words = ["profile", "-q", *more, *options, f"run.dir={folder}", "--", *(os.fspath(word) for word in argv)]
    code, output = _run([command(), *words], process)
    if not Path(folder, "report.json").is_file():
        raise CommandError(words, code, output)
    run = load(folder)
    run.output = output
    return run


def _run(words: Sequence[str], options: Mapping[str, Any]) -> tuple[int, str]:
    """The exit code, and what was kept of the output. subprocess.run kills rangescope when it is interrupted, and leaves the program."""
    with subprocess.Popen(words, **options) as process:
        try:
            kept = process.communicate()
        except BaseException:
            for end in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):  # the first two reach the program
                process.send_signal(end)
                try:
                    process.wait(PATIENCE)
                    break
                except subprocess.TimeoutExpired:
                    continue
            raise
    said = kept[0] or kept[1] or ""
    return process.returncode, said if isinstance(said, str) else said.decode(errors="replace")


def excerpt(path: Path, most: int = 1 << 20) -> str:
    """A text, of one that is longer than `most` bytes its begin and its end."""
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= most:
            return file.read().decode(errors="replace")
        begin = file.read(most // 2)
        file.seek(size - most // 2)
        left_out = f"\n[{size - 2 * (most // 2)} bytes are left out]\n".encode()
        return (begin + left_out + file.read()).decode(errors="replace")


_numbers = itertools.count(1)


# ---- What the command decides ----------------------------------------------------------------------------------------
class Comparison:
    """What `rangescope compare -f json` says (docs/formats/compare-json.md): `data`, and its changes one by one."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data

    @property
    def changes(self) -> list[dict[str, Any]]:
        """A row for each value of each region: path, metric, side, before, after, ratio, low, high, p and standing."""
        return [{"path": path_text(region), "metric": metric, "side": side, "before": value["values"][0],
                 "after": value["values"][side], **{key: change[key] for key in ("ratio", "low", "high", "p", "standing")}}
                for region in objects(self.data, "regions") for metric, value in region["values"].items()
                for side, change in enumerate(value["changes"], 1) if change is not None]

    def to_pandas(self) -> "pandas.DataFrame":
        import pandas
        return pandas.DataFrame.from_records(self.changes)

    def __repr__(self) -> str:
        found = [change["standing"] for change in self.changes]
        return f"<rangescope.Comparison: {found.count('more')} more, {found.count('less')} less, {len(found)} values>"

    def _repr_html_(self) -> str:
        from .page import changes
        return _as_html(changes, self)


class Gate:
    """What `rangescope gate` says: `verdict` ("passed", "regressed", "undecided"), `text`, `code`, and `data`, all of it."""

    def __init__(self, data: Mapping[str, Any], code: int) -> None:
        self.data, self.code = data, code
        self.verdict, self.text = str(look_up(data, "verdict")), str(look_up(data, "text"))

    @property
    def passed(self) -> bool:
        return self.code == 0

    def __repr__(self) -> str:
        return f"<rangescope.Gate {self.verdict}: {self.text!r}>"


def compare(first: Where, *others: Where, options: Sequence[str] = (), runs: Optional[str] = None) -> Comparison:
    """What changed from `first` to the others. `options`: those of `rangescope compare`, such as "--metric", "gpu.busy_ns"."""
    sides = [word_of(each) for each in (first, *others)]
    return Comparison(_parsed(call("compare", *_stored(runs), "--top", "0", *options, "-f", "json", *sides).stdout, "rangescope compare"))


def gate(run: Where = "latest", baseline: Where = "main", options: Sequence[str] = (), runs: Optional[str] = None) -> Gate:
    """Is `run` slower than `baseline`? `options`: those of `rangescope gate`, such as "--max-regression", "5%"."""
    done = call("gate", *_stored(runs), "-b", word_of(baseline), *options, "--json=-", word_of(run), accept=(0, 81, 82))
    if not done.stdout.startswith("{"):  # 82: another machine, or nothing in common
        raise CommandError(["gate"], done.returncode, done.stderr)
    return Gate(_parsed(done.stdout, "rangescope gate"), done.returncode)


def save_baseline(run: Where = "latest", name: str = "main", options: Sequence[str] = (), runs: Optional[str] = None) -> str:
    """Keeps the numbers of `run` as the baseline `name`; the path of its file."""
    return call("gate", *_stored(runs), "--save", "--name", name, *options, word_of(run)).stdout.strip()
