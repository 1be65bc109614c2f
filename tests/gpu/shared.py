"""CUPTI beside PyTorch's own profiler in the program, which begins after us or before us."""
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
        """It records as without us, and our timeline ends there; with RANGESCOPE_GIVE_WAY=off it is the other way round."""
        alone = self.answer(gpu.Done([*self.command, "10", str(STEPS)]))
        self.assertEqual(alone["seen"], 4 * STEPS)
        for way, theirs, ours in (("on", 4 * STEPS, 40), ("off", 0, 4 * (20 + STEPS))):
            run = gpu.Run(f"shared-{way}", ["--include", "step/"], [*self.command, "10", str(STEPS)], env={"RANGESCOPE_GIVE_WAY": way})
            program = self.answer(run)
            row = gpu.regions(run.report)["step"]
            told = [loss["detail"] for loss in run.report["losses"] if loss["kind"] == "cupti_let_go"]
            gpu.figure(f"give way {way}: kernels of torch.profiler, of rangescope", program["seen"], f"of {4 * STEPS}",
                       f"{row['gpu']['kernels']} of {4 * (20 + STEPS)} {told}")
            self.assertEqual([program["seen"], row["gpu"]["kernels"], program["right"], program["steps"]], [theirs, ours, True, alone["steps"]])
            self.assertEqual(len(told), 1 if way == "on" else 0)

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
