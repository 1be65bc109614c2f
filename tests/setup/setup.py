#!/usr/bin/env python3
"""An installed rangescope, as its user has it: below a prefix, in an environment of Python, beside its build.

Usage: setup.py BUILD_DIR SOURCE_DIR
"""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCE = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
sys.path.insert(0, str(SOURCE / "tests" / "tools"))
import cases  # noqa: E402

SCRIPT = 'import sys\nprint(sys.executable, *sys.argv[1:])\n'
RANGES = 'import rangescope\nfor i in range(3):\n    with rangescope.range("step"):\n        sum(range(10000))\n'


def wheel_builder():
    """packaging/build_wheel.py, which takes this build as it is."""
    sys.path.insert(0, str(SOURCE / "packaging"))
    spec = importlib.util.spec_from_file_location("build_wheel", SOURCE / "packaging/build_wheel.py")
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    builder.BUILD, builder.build = BUILD, lambda: None
    return builder


class InAFolder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rangescope-setup-"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "RANGESCOPE")}
        self.env.update(HOME=str(self.folder), PATH=os.defpath)

    def call(self, *words, code=0, cwd=None, **env):
        done = cases.run(list(map(str, words)), cwd=cwd or self.folder, env={**self.env, **env})
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        return done

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path


class Prefix(InAFolder):
    """`cmake --install`, which `./dev install` calls."""

    def setUp(self):
        super().setUp()
        self.prefix = self.folder / "prefix"
        self.installed = self.call("cmake", "--install", BUILD, "--prefix", self.prefix, PATH=os.environ["PATH"])
        self.tool = self.prefix / "bin/rangescope"

    def test_everything_is_there_and_found_from_anywhere(self):
        for place in ("lib/librangescope_inject.so", "lib/librangescope_mpi.so", "share/man/man1/rangescope-profile.1",
                      "share/bash-completion/completions/rangescope", "share/zsh/site-functions/_rangescope",
                      "share/rangescope/python/rangescope/__main__.py", "share/rangescope/conf"):
            self.assertTrue(next(self.prefix.glob(place.replace("lib/", "lib*/**/")), None), place)
        link = self.folder / "rangescope"
        link.symlink_to(self.tool)
        for tool, cwd in ((self.tool, "/"), (link, "/"), ("prefix/bin/rangescope", self.folder)):
            done = self.call(tool, "profile", "--runs", self.folder / "runs", "-o", "-", "--", "sh", "-c", "sleep 0.1", cwd=cwd)
            self.assertIn("program", done.stdout)
            self.assertIn("run kept in", done.stderr)

    def test_the_package_is_importable_and_finds_the_command(self):
        path = str(self.prefix / "share/rangescope/python")
        self.assertIn(f"  export PYTHONPATH={path}\n", self.installed.stdout + self.installed.stderr)
        found = self.call(sys.executable, "-c", "import rangescope; print(rangescope.command())", PYTHONPATH=path).stdout.strip()
        self.assertTrue(os.path.samefile(found, self.tool))
        self.call(sys.executable, "-m", "rangescope", "profile", "-q", "--runs", "runs", self.write("train.py", RANGES), PYTHONPATH=path)
        shown = self.call(self.tool, "report", "latest", "--runs", "runs").stdout
        self.assertRegex(shown, r"(?m)^step .* 3 ")

    def test_without_the_command_the_package_says_how_to_get_it(self):
        shutil.copytree(self.prefix / "share/rangescope/python", self.folder / "alone")
        self.call(sys.executable, "-c", "import rangescope", PYTHONPATH=str(self.folder / "alone"))
        done = self.call(sys.executable, "-m", "rangescope", "--version", code=69, PYTHONPATH=str(self.folder / "alone"))
        self.assertRegex(done.stderr, r"\Arangescope: error: the command rangescope was not found. Get it with `pip install")
        # Also right below the root of a file system, where few folders are above it.
        asked = "import rangescope.runs as runs; runs.__file__ = '/rangescope/runs.py'; runs.command()"
        done = self.call(sys.executable, "-c", asked, code=1, PYTHONPATH=str(self.folder / "alone"))
        self.assertIn("FileNotFoundError: the command rangescope was not found", done.stderr)


class Scripts(InAFolder):
    def test_a_script_that_is_no_program_is_run_by_python(self):
        tool = BUILD / "bin/rangescope"
        python3 = shutil.which("python3", path=os.defpath)
        if python3 is None:
            self.skipTest("python3 is not installed")
        self.write("train.py", SCRIPT)
        for before in ([], ["--"], ["--runs", "runs", "run.retries=0"]):
            done = self.call(tool, "profile", "-q", *before, "train.py", "--lr", "3")
            self.assertTrue(done.stdout.endswith(" --lr 3\n"), done.stdout)
        done = self.call(tool, "profile", "-q", "train.py", RANGESCOPE_PYTHON=sys.executable)
        self.assertEqual(done.stdout, f"{sys.executable}\n")
        done = self.call(tool, "profile", "-q", "none.py", code=66)
        self.assertIn("there is no program 'none.py'", done.stderr)


class Environment(InAFolder):
    """What `pip install .` installs."""

    def test_a_wheel_of_this_build_gives_command_and_package(self):
        wheel = wheel_builder().build_wheel(str(self.folder))
        made = subprocess.run([sys.executable, "-m", "venv", str(self.folder / "v")], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            self.skipTest("python3-venv is not installed")
        self.call("v/bin/pip", "install", "-q", "--no-index", wheel)
        self.assertRegex(self.call(self.folder / "v/bin/rangescope", "--version", cwd="/").stdout, r"\Arangescope \d")
        python = self.folder / "v/bin/python"
        self.call(python, "-m", "rangescope", "profile", "-q", "--runs", "runs", self.write("train.py", RANGES))
        asked = 'import rangescope; print(rangescope.load("latest", runs="runs").region("step").occurrences, rangescope.command())'
        occurrences, command = self.call(python, "-c", asked).stdout.split()
        self.assertEqual(occurrences, "3")
        self.assertTrue(os.path.samefile(command, self.folder / "v/bin/rangescope"))


class Demo(unittest.TestCase):
    def test_the_demo_builds_what_is_installed_and_ends_with_two_commands(self):
        """The script itself is run by `./dev bare demo`, which pastes these lines."""
        text = (SOURCE / "dev").read_text()
        demo = re.search(r"(?m)^cmd_demo\(\) \{\n((?:  .*\n)+)", text).group(1)
        self.assertIn("build release installed llm", demo)
        commands = re.findall(r"printf '  %q (\w+) .*\\n' \"\$bin/rangescope\"", demo)
        self.assertEqual(commands, ["report", "profile"])


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    cases.main()
