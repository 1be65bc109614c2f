"""A CUDA program where CUDA does not start: the first line says so, with the error. Usage: no_gpu.py BIN_DIR STANDIN_CUDA

The program is the workload that nvcc built. The driver without devices is the stand-in of tests/cupti.
"""
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402

BIN_DIR, STANDIN = sys.argv[1:3]
PROGRAM = f"{BIN_DIR}/llm_cuda"


class NoGpu(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rangescope-test-")

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def first_lines(self, *command, **env):
        """The first line of the verdict, of the run and of its report later, unwrapped; and the JSON report."""
        tool = f"{BIN_DIR}/rangescope"
        options = {"cwd": self.folder, "env": {**os.environ, "COLUMNS": "400", **env}}
        done = cases.run([tool, "profile", "--", *command], **options)
        later = cases.run([tool, "report", "latest"], **options)
        report = cases.json.loads(cases.run([tool, "report", "latest", "-f", "json"], **options).stdout)
        lines = [next(line for line in text.splitlines() if line.startswith("1. ")) for text in (done.stderr, later.stdout)]
        self.assertEqual(lines[0], lines[1])
        return lines[0], report

    def check(self, line, report, error):
        self.assertRegex(line, r"^1\. error: no GPU was used: llm_cuda uses CUDA, but ")
        self.assertIn(error, line)
        self.assertEqual(report["verdict"][0]["kind"], "cuda_failed")
        self.assertEqual([loss["kind"] for loss in report["losses"]].count("cuda_failed"), 1)

    def test_without_a_gpu(self):
        """Where there is one, it is hidden from the program."""
        error = "error 35, cudaErrorInsufficientDriver"
        if os.path.exists("/dev/nvidiactl"):
            error = "cuInit fails here with error 100"
        line, report = self.first_lines(PROGRAM, CUDA_VISIBLE_DEVICES="-1")
        self.check(line, report, error)

    def test_a_driver_without_devices(self):
        line, report = self.first_lines(PROGRAM, LD_LIBRARY_PATH=os.path.dirname(STANDIN), STANDIN_INIT_ERROR="100")
        self.check(line, report, "cuInit fails here with error 100, CUDA_ERROR_NO_DEVICE, no CUDA-capable device is detected")

    def test_programs_without_gpu_code_are_not_concerned(self):
        done = cases.run([f"{BIN_DIR}/rangescope", "profile", "--", "sh", "-c", "exit 3"], cwd=self.folder)
        self.assertEqual(done.returncode, 3)
        self.assertNotIn("CUDA", done.stderr)


cases.main()
