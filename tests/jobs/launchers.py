#!/usr/bin/env python3
"""One rangescope a rank becomes one job, by the environment that launchers set. Usage: launchers.py BIN_DIR"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402

BIN = os.path.abspath(sys.argv[1])
RANGESCOPE, VICTIM = os.path.join(BIN, "rangescope"), os.path.join(BIN, "cli_victim")
SAID = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_", "OMPI_", "PMIX_", "PMI_", "SLURM_")
BARE = {k: v for k, v in os.environ.items() if not k.startswith(SAID)}


def openmpi(rank, world, job="77", uri="77.0;tcp://10.0.0.1:4000"):
    return {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(world), "OMPI_COMM_WORLD_LOCAL_RANK": str(rank % 2),
            "OMPI_MCA_ess_base_jobid": job, "OMPI_MCA_orte_hnp_uri": uri}


def torchrun(rank, world, restart="0", agent="/tmp/torchelastic_a/none_b"):
    return {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_WORLD_SIZE": str(world), "LOCAL_RANK": str(rank), "MASTER_ADDR": "localhost",
            "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": restart,
            "TORCHELASTIC_ERROR_FILE": f"{agent}/attempt_{restart}/{rank}/error.json"}


def slurm(rank, world, step="0"):
    return {"SLURM_JOB_ID": "1234", "SLURM_STEP_ID": step, "SLURM_PROCID": str(rank), "SLURM_LOCALID": "0", "SLURM_STEP_NUM_TASKS": str(world)}


class Launchers(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="rangescope-jobs-")
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)

    def profile(self, environment, *options, program=(VICTIM, "children"), code=0):
        done = subprocess.run([RANGESCOPE, "profile", "--no-project", "-q", "--runs", self.root, *options, "--", *program], env={**BARE, **environment},
                              cwd=self.root, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def report(self, *arguments, code=0):
        done = subprocess.run([RANGESCOPE, "report", "--runs", self.root, *arguments], env=BARE, cwd=self.root, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def json(self, *arguments):
        return json.loads(self.report(*arguments, "-f", "json").stdout)

    def kept(self):
        return sorted(os.path.relpath(os.path.join(self.root, job, run), self.root) for job in os.listdir(self.root)
                      for run in os.listdir(os.path.join(self.root, job)) if os.path.isdir(os.path.join(self.root, job, run)))

    def test_ranks_join_by_the_launchers_identity(self):
        for rank in range(3):
            self.profile(openmpi(rank, 3))
        self.assertEqual(self.kept(), [f"openmpi-77/rank-{r}" for r in range(3)])
        with open(os.path.join(self.root, "openmpi-77", "job.json"), encoding="utf-8") as f:
            job = json.load(f)
        self.assertEqual((job["launcher"], job["world_size"], job["profiled"]), ("openmpi", 3, None))
        report = self.json("openmpi-77")
        self.assertEqual([(r["rank"], r["local_rank"], r["world_size"], r["run"]) for r in report["ranks"]],
                         [(0, 0, 3, "rank-0"), (1, 1, 3, "rank-1"), (2, 0, 3, "rank-2")])
        self.assertTrue(all(r["host"] == os.uname().nodename and r["pid"] > 0 for r in report["ranks"]))
        self.assertEqual([l for l in report["losses"] if l["kind"].startswith("ranks")], [])
        whole = next(r for r in report["regions"] if r["process"] is None and r["parent"] is None)
        mine = [r for r in report["regions"] if r["process"] is not None and r["path"] == whole["path"]]
        rank_of = [p["rank"] for p in report["processes"]]
        over, sums = whole["ranks"], [sum(r["wall_ns"]["inclusive"] for r in mine if rank_of[r["process_index"]] == n) for n in range(3)]
        self.assertEqual(over["count"], 3)
        self.assertAlmostEqual(over["mean_ns"], sum(sums) / 3, delta=1)
        self.assertEqual((over["min_ns"], over["max_ns"]), (min(sums), max(sums)))
        self.assertAlmostEqual(over["imbalance"], max(sums) / (sum(sums) / 3) - 1, places=9)
        self.assertEqual(over["slowest"], sums.index(max(sums)))
        self.assertAlmostEqual(over["stddev_ns"], (sum((s - sum(sums) / 3) ** 2 for s in sums) / 2) ** 0.5, delta=1)

    def test_the_job_is_found_as_latest_by_path_and_by_its_folder(self):
        for rank in range(2):
            self.profile(openmpi(rank, 2))
        for name in ("latest", "openmpi", os.path.join(self.root, "openmpi-77"), self.root):
            self.assertEqual(len(self.json(name)["ranks"]), 2, name)
        commands = [one["next"] for one in self.json("latest")["verdict"] if one["next"].startswith("rangescope report")]
        self.assertTrue(commands and all("openmpi-77 " in command for command in commands), commands)
        self.profile({})
        self.assertNotIn("ranks", self.json("latest"))

    def test_ranks_that_never_started_are_named(self):
        for rank in (0, 3):
            self.profile(openmpi(rank, 5))
        losses = {l["kind"]: l for l in self.json("openmpi-77")["losses"]}
        self.assertEqual((losses["ranks_missing"]["count"], losses["ranks_missing"]["detail"]), (3, "no run of ranks 1-2, 4 of 5"))
        self.report("openmpi-77", "--strict", code=83)

    def test_a_rank_that_died_is_named(self):
        self.profile(openmpi(0, 2))
        self.profile(openmpi(1, 2), program=("sh", "-c", f"{VICTIM} children; kill -KILL $$"), code=-signal.SIGKILL)
        losses = {l["kind"]: l["detail"] for l in self.json("openmpi-77")["losses"]}
        self.assertIn("rank 1 (SIGKILL", losses["ranks_ended"])

    def test_another_start_is_another_job(self):
        for uri in ("77.0;tcp://10.0.0.1:4000", "77.0;tcp://10.0.0.1:4001"):
            for rank in range(2):
                self.profile(openmpi(rank, 2, uri=uri))
        self.assertEqual(self.kept(), [f"openmpi-77{s}/rank-{r}" for s in (".2", "") for r in range(2)])

    def test_torchrun_and_its_restarts(self):
        for restart, agent in (("0", "/tmp/torchelastic_a/none_b"), ("1", "/tmp/torchelastic_a/none_b"), ("0", "/tmp/torchelastic_c/none_d")):
            for rank in range(2):
                self.profile(torchrun(rank, 2, restart, agent))
        self.assertEqual(self.kept(), [f"torchrun-29500{s}/rank-{r}" for s in (".2", ".3", "") for r in range(2)])

    def test_a_step_of_slurm_and_no_batch_script(self):
        for rank in range(2):
            self.profile(slurm(rank, 2))
        self.profile({"SLURM_JOB_ID": "1234", "SLURM_PROCID": "0", "SLURM_NTASKS": "8"})
        self.assertEqual([k for k in self.kept() if "rank" in k], ["slurm-1234.0/rank-0", "slurm-1234.0/rank-1"])

    def test_a_name_for_the_job(self):
        for rank in range(2):
            self.profile({"RANK": str(rank), "WORLD_SIZE": "2"}, "--job", "night run")
        self.assertEqual(len(self.json("night_run")["ranks"]), 2)

    def test_the_only_process_is_no_job(self):
        self.profile(openmpi(0, 1))
        self.assertEqual(len([n for n in os.listdir(self.root) if n.startswith("openmpi")]), 0)

    def test_many_ranks_at_once(self):
        running = [subprocess.Popen([RANGESCOPE, "profile", "--no-project", "-q", "--runs", self.root, "--", VICTIM, "children"],
                                    env={**BARE, **openmpi(rank, 6)}, cwd=self.root, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for rank in range(6)]
        for each in running:
            _, said = each.communicate(timeout=300)
            self.assertEqual(each.returncode, 0, said)
        self.assertEqual(self.kept(), [f"openmpi-77/rank-{r}" for r in range(6)])

    def test_some_ranks_are_profiled_and_the_others_run_bare(self):
        for rank in range(4):
            done = self.profile(openmpi(rank, 4), "--ranks", "0,2-3", program=("sh", "-c", f"echo ${{RANGESCOPE_DIR:-bare}}; {VICTIM} children; exit 3"), code=3)
            self.assertEqual("bare" in done.stdout, rank == 1)
        report = self.json("openmpi-77")
        self.assertEqual([r["rank"] for r in report["ranks"]], [0, 2, 3])
        self.assertNotIn("ranks_missing", [l["kind"] for l in report["losses"]])
        self.profile(openmpi(0, 4), "--ranks", "0,x", code=64)

    def test_one_rangescope_over_all_ranks(self):
        script = "; ".join(f"RANK={r} WORLD_SIZE=3 LOCAL_RANK={r} {VICTIM} children" for r in range(3))
        self.profile({}, program=("sh", "-c", script))
        self.assertEqual([r["rank"] for r in self.json("latest")["ranks"]], [0, 1, 2])
        self.assertEqual([r["rank"] for r in self.json("latest", "--rank", "1")["ranks"]], [1])
        self.profile({}, "--ranks", "0,2", program=("sh", "-c", script))
        self.assertEqual([r["rank"] for r in self.json("latest")["ranks"]], [0, 2])

    def test_one_rank_and_each_rank(self):
        for rank in range(2):
            self.profile(openmpi(rank, 2))
        self.assertEqual([r["rank"] for r in self.json("openmpi-77", "--rank", "1")["ranks"]], [1])
        table = self.report("openmpi-77", "--width", "200").stdout
        self.assertIn("slowest", table)
        self.assertNotIn("rank 1 (process", table)
        self.assertIn("rank 1 (process", self.report("openmpi-77", "--per-rank").stdout)
        self.report("openmpi-77", "--rank", "9", code=80)
        self.report("openmpi-77", "--rank", "one", code=64)

    def prune(self, *options, code=0):
        done = subprocess.run([RANGESCOPE, "runs", "prune", "--runs", self.root, *options], env=BARE, cwd=self.root, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_a_job_is_pruned_as_a_whole(self):
        for uri in ("77.0;tcp://10.0.0.1:4000", "77.0;tcp://10.0.0.1:4001"):
            for rank in range(2):
                self.profile(openmpi(rank, 2, uri=uri))
        self.profile({})
        self.assertIn("1 job,", self.prune("--keep", "2", "--dry-run").stderr)
        self.assertEqual(len(os.listdir(self.root)), 3)
        self.prune("--keep", "2", "--yes")
        self.assertEqual([n for n in os.listdir(self.root) if n.startswith("openmpi")], ["openmpi-77.2"])
        self.prune("--older-than", "1d", "--yes")
        self.assertEqual(len(os.listdir(self.root)), 2)
        self.prune("--keep", "0", "--yes")
        self.assertEqual(os.listdir(self.root), [])

    def test_what_of_a_job_must_stay(self):
        job = os.path.join(self.root, "openmpi-77")
        for rank in range(2):
            self.profile(openmpi(rank, 2))
        notes = os.path.join(job, "notes.txt")
        with open(notes, "w", encoding="utf-8") as f:
            f.write("mine")
        self.prune("--keep", "0", "--yes")
        self.assertEqual(len(os.listdir(job)), 5)
        os.remove(notes)
        os.symlink("/etc", os.path.join(job, "rank-9"))
        self.prune("--keep", "0", "--yes")
        self.assertEqual(len(os.listdir(job)), 5)
        os.remove(os.path.join(job, "rank-9"))
        running = subprocess.Popen([RANGESCOPE, "profile", "--no-project", "-q", "--runs", self.root, "--", "cat"], env={**BARE, **openmpi(2, 3)}, cwd=self.root,
                                   stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.exists(os.path.join(job, "rank-2", "status.json")):
            self.assertIsNone(running.poll())
        self.prune("--keep", "0", "--yes")
        self.assertTrue(os.path.isdir(os.path.join(job, "rank-0")))
        running.communicate(timeout=600)
        self.prune("--keep", "0", "--yes")
        self.assertFalse(os.path.exists(job))

    def test_damage_is_told(self):
        for rank in range(2):
            self.profile(openmpi(rank, 2))
        with open(os.path.join(self.root, "openmpi-77", "job.json"), "w", encoding="utf-8") as f:
            f.write('{"schema": "rangescope.job/1", "world_size": "many", "profiled": [-1, "x"], "key": []}')
        self.assertEqual(len(self.json(os.path.join(self.root, "openmpi-77"))["ranks"]), 2)
        for name in os.listdir(os.path.join(self.root, "openmpi-77", "rank-1", "native")):
            if os.path.isdir(os.path.join(self.root, "openmpi-77", "rank-1", "native", name)):
                continue  # samples of the CPU
            with open(os.path.join(self.root, "openmpi-77", "rank-1", "native", name), "w", encoding="utf-8") as f:
                f.write("no capture")
        self.assertEqual([r["rank"] for r in self.json("openmpi-77")["ranks"]], [0])


if __name__ == "__main__":
    cases.main()
