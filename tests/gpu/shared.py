"""CUPTI beside PyTorch's own profiler in the program, which begins after us or before us.

After us it is refused: docs/manual/gpu.md. The figures tell; no case asks for its kernels then."""
import json
import subprocess
import unittest

import gpu

STEPS = 5  # that torch.profiler records, of four kernels each


class Shared(unittest.TestCase):
    def setUp(self):
        self.command = [gpu.need("PyTorch", gpu.python()), f"{gpu.HERE}/shared_program.py"]

    def answer(self, done):
        self.assertEqual(done.code, 0, done.err)
        return json.loads(done.out.splitlines()[-1])

    def test_their_profiler_begins_while_ours_records(self):
        alone = self.answer(gpu.Done([*self.command, "10", str(STEPS)]))
        run = gpu.Run("shared", ["--include", "step/"], [*self.command, "10", str(STEPS)])
        beside = self.answer(run)
        rows = gpu.regions(run.report)["step"]
        losses = [(loss["kind"], loss.get("detail", "")[:160]) for loss in run.report["losses"]]
        gpu.figure("torch.profiler's kernels, alone", alone["seen"], f"of {4 * STEPS}")
        gpu.figure("torch.profiler's kernels, under rangescope", beside["seen"], f"of {4 * STEPS}", run.err[-400:] if beside["seen"] != alone["seen"] else "")
        gpu.figure("rangescope's kernels below step", rows["gpu"]["kernels"], f"of {4 * (20 + STEPS)}", f"losses {losses}")
        self.assertTrue(beside["right"])
        self.assertEqual(beside["steps"], alone["steps"])
        told = [loss for loss in run.report["losses"] if "rofiler" in json.dumps(loss) or "CUPTI" in json.dumps(loss)]
        self.assertTrue(rows["gpu"]["kernels"] == 4 * (20 + STEPS) or told, losses)

    def test_ours_begins_while_theirs_records(self):
        program = subprocess.Popen([*self.command, "10", str(STEPS), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=gpu.OUT)
        try:
            self.assertEqual(program.stdout.readline().strip(), "inside")
            done = gpu.Done([f"{gpu.BUILD}/bin/rangescope", "attach", str(program.pid), "--for", "1s", "--gpu", "on", f"--runs={gpu.OUT}/runs"])
            gpu.figure("attach beside torch.profiler: exit code", done.code, "", (done.err + done.out)[-500:])
            program.stdin.write("\n")
            program.stdin.close()
            seen = json.loads(program.stdout.readline())
            gpu.figure("torch.profiler's kernels after it", seen["seen"], f"of {4 * STEPS}")
            self.assertEqual(program.wait(timeout=60), 0)
            self.assertTrue(seen["right"])
            self.assertEqual(seen["seen"], 4 * STEPS)
        finally:
            program.kill()
            program.wait()
