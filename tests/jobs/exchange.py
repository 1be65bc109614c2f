#!/usr/bin/env python3
"""Messages of MPI held against what the library was asked to send (mpi_counter.c): C and Fortran, Open MPI and MPICH.
Usage: exchange.py BIN_DIR. MPICH is looked for in $RANGESCOPE_MPICH (a folder with usr/ in it), else in /usr."""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402

BIN, HERE = os.path.abspath(sys.argv[1]), os.path.dirname(os.path.abspath(__file__))
RANGESCOPE, PROGRAM = os.path.join(BIN, "rangescope"), os.path.join(BIN, "mpi_exchange")
NVTX = os.path.join(HERE, "..", "..", "third_party", "nvtx3", "include")
MPIRUN = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
WHY = "there is no mpirun: apt-get install openmpi-bin" if not MPIRUN else "built without MPI: apt-get install libopenmpi-dev" if not os.path.exists(PROGRAM) else ""
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
               "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_osc": "pt2pt"}


class Counted(unittest.TestCase):
    environment, launch = ENVIRONMENT, [MPIRUN, "--oversubscribe"]

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rangescope-exchange-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def call(self, *argv, **more):
        done = subprocess.run(argv, cwd=self.folder, env={**self.environment, **more}, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def check(self, counter, ranks, *program, job="job"):
        counts, runs = f"{self.folder}/counts-{job}", f"{self.folder}/runs"
        os.mkdir(counts)
        done = self.call(*self.launch, "-n", str(ranks), RANGESCOPE, "profile", "-q", "--cpu", "off", "--mpi", "--runs", runs, "--job", job, "--", *program,
                         LD_PRELOAD=counter, MPI_COUNTS=counts)
        self.assertEqual(done.stdout.count("done"), ranks, done.stdout)  # lines of two processes may run together
        truth = []
        for rank in range(ranks):
            with open(f"{counts}/{rank}", encoding="utf-8") as f:
                truth.append({name: int(count) for name, count in (line.split() for line in f)})
        report = json.loads(self.call(RANGESCOPE, "report", f"{runs}/{job}", "--captures", "-f", "json").stdout)
        self.assertEqual([l for l in report["losses"] if l["kind"].startswith(("messages", "collectives"))], [])
        self.assertEqual(sum(m["calls"] for m in report["messages"]), sum(t["messages"] for t in truth))
        self.assertEqual(sum(m["bytes"] for m in report["messages"]), sum(t["bytes"] for t in truth))
        told, called = {}, {}
        for row in report["collectives"]:
            name = row["operation"]
            told[name] = told.get(name, 0) + row["calls"] * row["ranks"]
            told[f"{name}_bytes"] = told.get(f"{name}_bytes", 0) + (row["bytes"] or 0) * row["calls"] * row["ranks"]
        for name in truth[0]:
            if name.startswith("MPI_"):
                called[name] = sum(t.get(name, 0) for t in truth)
        self.assertEqual({name: told.get(name, 0) for name in called}, called)
        return report


def compiled(test, *argv):
    subprocess.run(argv, cwd=test.folder, check=True, capture_output=True, text=True, timeout=300)


@unittest.skipIf(WHY, WHY)
class OpenMpi(Counted):
    COUNTER = next(iter(glob.glob(f"{os.path.dirname(BIN)}/lib/libmpi_counter.so") + glob.glob(f"{BIN}/libmpi_counter.so")), "")

    def test_every_message_has_both_ends(self):
        for seed in range(1, 7):
            with self.subTest(seed=seed):
                self.check(self.COUNTER, 2 + seed % 4, PROGRAM, str(seed), job=f"job{seed}")

    def test_threads(self):
        self.check(self.COUNTER, 3, PROGRAM, "1", "4")

    def test_fortran(self):
        compiler = shutil.which("mpifort.openmpi") or shutil.which("mpifort")
        if not compiler:
            self.skipTest("there is no mpifort: apt-get install libopenmpi-dev gfortran")
        for name in ("mpi_f08", "mpi_mpif"):
            with self.subTest(name=name):
                compiled(self, compiler, f"{HERE}/{name}.f90", "-ffree-line-length-none", "-o", name)
                report = self.check(self.COUNTER, 4, f"{self.folder}/{name}", job=name)
                self.assertIn("MPI_Put", {r["path"][-1] for r in report["regions"]})
                self.assertEqual(sum(c["calls"] for c in report["collectives"] if c["operation"] == "MPI_Win_fence"), 2)

    def test_a_library_that_only_a_plugin_has(self):
        """As Python's mpi4py: the program has no MPI, and what it opens with RTLD_LOCAL has."""
        with open(f"{self.folder}/main.c", "w", encoding="utf-8") as f:
            f.write('#include <dlfcn.h>\nint main(int n, char** v) { (void)n; return ((int (*)(void))dlsym(dlopen(v[1], RTLD_NOW | RTLD_LOCAL), "plugin"))(); }\n')
        with open(f"{self.folder}/plugin.c", "w", encoding="utf-8") as f:
            f.write('#include <mpi.h>\n#include <stdio.h>\nint plugin(void) { int rank, sum; MPI_Init(0, 0); MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n'
                    'MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); MPI_Finalize(); puts(sum == 1 ? "done" : "wrong"); return 0; }\n')
        compiled(self, "cc", "main.c", "-o", "main", "-ldl")
        compiled(self, shutil.which("mpicc.openmpi") or "mpicc", "-shared", "-fPIC", "plugin.c", "-o", "libplugin.so")
        done = self.call(*self.launch, "-n", "2", RANGESCOPE, "profile", "-q", "--runs", "job", "--", f"{self.folder}/main", f"{self.folder}/libplugin.so")
        self.assertEqual(done.stdout.count("done"), 2, done.stdout)
        report = json.loads(self.call(RANGESCOPE, "report", "job", "-f", "json").stdout)
        self.assertEqual([(c["operation"], c["calls"], c["bytes"]) for c in report["collectives"]], [("MPI_Allreduce", 1, 4)])


ROOT = os.environ.get("RANGESCOPE_MPICH", "").rstrip("/") + "/usr"
LIBRARIES, HEADERS = f"{ROOT}/lib/x86_64-linux-gnu", f"{ROOT}/include/x86_64-linux-gnu/mpich"
NO_MPICH = WHY or ("" if os.path.exists(f"{ROOT}/bin/mpiexec.hydra") and os.path.exists(HEADERS) else "there is no MPICH: apt-get install mpich libmpich-dev")


@unittest.skipIf(NO_MPICH, NO_MPICH)
class Mpich(Counted):
    environment = {**ENVIRONMENT, "LD_LIBRARY_PATH": LIBRARIES}
    launch = [f"{ROOT}/bin/mpiexec.hydra"]

    def setUp(self):
        super().setUp()
        compiled(self, "gcc", "-w", "-shared", "-fPIC", "-I", HEADERS, f"{HERE}/mpi_counter.c", "-o", "counter.so", "-ldl")
        self.counter = f"{self.folder}/counter.so"

    def test_every_message_has_both_ends(self):
        compiled(self, "gcc", "-w", "-I", HEADERS, "-I", NVTX, f"{HERE}/mpi_exchange.c", "-o", "exchange", "-L", LIBRARIES, "-lmpich", "-lpthread", "-ldl")
        for seed in range(1, 4):
            with self.subTest(seed=seed):
                self.check(self.counter, 4, f"{self.folder}/exchange", str(seed), job=f"job{seed}")

    def test_fortran(self):
        for name in ("mpi_f08", "mpi_mpif"):
            with self.subTest(name=name):
                compiled(self, "gfortran", "-w", "-fallow-argument-mismatch", "-ffree-line-length-none", "-I", HEADERS, "-I",
                         f"{LIBRARIES}/fortran/gfortran-mod-15/mpich", f"{HERE}/{name}.f90", "-o", name, "-L", LIBRARIES, "-lmpichfort", "-lmpich")
                self.check(self.counter, 4, f"{self.folder}/{name}", job=name)


if __name__ == "__main__":
    cases.main()
