#!/usr/bin/env python3
"""One rangescope a rank under the real srun. munged, slurmctld and slurmd run in a folder of the test's own, and end with it.
Usage: slurm.py BIN_DIR"""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402

BIN = os.path.abspath(sys.argv[1])
RANGESCOPE, VICTIM = os.path.join(BIN, "rangescope"), os.path.join(BIN, "cli_victim")
os.environ["PATH"] += ":/usr/sbin"
LACKS = [p for p in ("munged", "slurmctld", "slurmd", "srun") if not shutil.which(p)]
WHY = f"there is no {LACKS[0]}: apt-get install slurmctld slurmd slurm-client munge" if LACKS else "slurmd wants root" if os.geteuid() else ""
CONF = """ClusterName=rangescope
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={port}
SlurmdPort={port2}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=none
SlurmUser=root
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES State=UP
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@unittest.skipIf(WHY, WHY)
class Slurm(unittest.TestCase):
    def start(self, *argv):
        with open(f"{self.folder}/{os.path.basename(argv[0])}.out", "w", encoding="utf-8") as out:
            process = subprocess.Popen(argv, env=self.environment, stdout=out, stderr=subprocess.STDOUT)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def setUp(self):
        if not os.path.isdir("/sys/fs/cgroup") or not os.listdir("/sys/fs/cgroup"):
            self.skipTest("no cgroup filesystem is mounted, which slurmd needs")
        self.folder = tempfile.mkdtemp(prefix="rangescope-slurm-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        for name in ("state", "spool"):
            os.mkdir(f"{self.folder}/{name}")
        with open(f"{self.folder}/munge.key", "wb") as f:
            f.write(os.urandom(1024))
        os.chmod(f"{self.folder}/munge.key", 0o400)
        os.chmod(self.folder, 0o755)
        host = socket.gethostname().split(".")[0]
        with open(f"{self.folder}/slurm.conf", "w", encoding="utf-8") as f:
            f.write(CONF.format(folder=self.folder, host=host, port=free_port(), port2=free_port()))
        self.environment = {**os.environ, "SLURM_CONF": f"{self.folder}/slurm.conf"}
        self.start("munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket", f"--key-file={self.folder}/munge.key",
                   f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/munge.seed", "--num-threads=1")
        self.wait_for(lambda: os.path.exists(f"{self.folder}/munge.socket"), "munged's socket")
        self.start("slurmctld", "-D", "-f", f"{self.folder}/slurm.conf")
        self.start("slurmd", "-D", "-f", f"{self.folder}/slurm.conf", "-N", host)
        self.wait_for(lambda: "idle" in subprocess.run(["sinfo", "-h", "-o", "%T"], env=self.environment, capture_output=True, text=True).stdout, "an idle node")

    def wait_for(self, ready, what):
        for _ in range(300):
            if ready():
                return
            time.sleep(0.4)
        logs = "\n".join(f"{n}: " + open(f"{self.folder}/{n}", errors="replace").read()[-1500:] for n in os.listdir(self.folder) if n.endswith((".log", ".out")))
        self.fail(f"{what} does not come\n{logs}")

    def test_a_step_is_a_job(self):
        done = subprocess.run(["srun", "-n", "4", "-O", RANGESCOPE, "profile", "--no-project", "-q", "--runs", "runs", "--", VICTIM, "children"],
                              cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        jobs = os.listdir(f"{self.folder}/runs")
        self.assertEqual(len(jobs), 1)
        self.assertRegex(jobs[0], r"^slurm-\d+\.0$")
        done = subprocess.run([RANGESCOPE, "report", f"runs/{jobs[0]}", "-f", "json"], cwd=self.folder, capture_output=True, text=True, timeout=600)
        report = json.loads(done.stdout)
        self.assertEqual([(r["rank"], r["local_rank"], r["world_size"], r["run"]) for r in report["ranks"]], [(n, n, 4, f"rank-{n}") for n in range(4)])
        self.assertEqual([l for l in report["losses"] if l["kind"].startswith("ranks")], [])
        self.assertTrue(any(n.startswith("no rank made an MPI call") for n in report["notes"]), report["notes"])

    def test_mpi_calls_of_a_step_with_pmix(self):
        """No launcher of Open MPI's there: PMIx tells that the program is one of MPI."""
        program = os.path.join(BIN, "mpi_program")
        if not os.path.exists(program):
            self.skipTest("built without MPI: apt-get install libopenmpi-dev")
        listed = subprocess.run(["srun", "--mpi=list"], env=self.environment, capture_output=True, text=True)
        if "pmix" not in listed.stdout + listed.stderr:
            self.skipTest("srun has no pmix: apt-get install slurm-wlm-basic-plugins")
        done = subprocess.run(["srun", "--mpi=pmix", "-n", "2", "-O", RANGESCOPE, "profile", "--no-project", "-q", "--cpu", "off", "--runs", "runs", "--", program],
                              cwd=self.folder, env={**self.environment, "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"},
                              capture_output=True, text=True, timeout=300)
        self.assertEqual((done.returncode, sorted(done.stdout.split("\n"))), (0, ["", "rank 0 of 2", "rank 1 of 2"]), done.stderr)
        job = os.listdir(f"{self.folder}/runs")[0]
        done = subprocess.run([RANGESCOPE, "report", f"runs/{job}", "-f", "json"], cwd=self.folder, capture_output=True, text=True, timeout=600)
        rows = {(c["operation"], c["bytes"], c["communicator"]): c["calls"] for c in json.loads(done.stdout)["collectives"]}
        self.assertEqual(rows["MPI_Allreduce", 8192, "0x1"], 10)


if __name__ == "__main__":
    cases.main()
