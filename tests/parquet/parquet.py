#!/usr/bin/env python3
"""parquet: what `export --to parquet` writes, read by DuckDB's library and compared with the SQLite view of the same recording;
`query` over it and over a job, also with hostile SQL and files. Usage: parquet.py BIN_DIR ROOT"""
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

for folder in ("tools", "jobs"):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", folder))
import cases
import duckdb
import simulate

BIN, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
LIBRARY = next((p for p in (os.environ.get("RANGESCOPE_DUCKDB", ""), f"{BIN}/../lib/libduckdb.so", f"{ROOT}/.cache/duckdb/libduckdb.so")
                if p and os.path.exists(p)), None)
RECORDINGS = ["nsys/work.sqlite", "nsys/zoo.sqlite", "nsys/mp.sqlite", "native-gpu/zoo", "native-gpu/graph", "native/v1_zoo_0.rstrace", "kineto/step.json.gz"]
NULL = "__HIVE_DEFAULT_PARTITION__"


def golden(name):
    return os.path.join(ROOT, "tests", "golden", name)


@unittest.skipUnless(LIBRARY, "no DuckDB (./dev duckdb)")
class Parquet(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rangescope-parquet-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.out = os.path.join(self.folder, "out")

    def tool(self, *words, code=0, env=None):
        done = subprocess.run([f"{BIN}/rangescope", *words], env={**os.environ, "RANGESCOPE_DUCKDB": LIBRARY, **(env or {})}, cwd=self.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def export(self, path, **more):
        return self.tool("export", path, "--to", "parquet", self.out, **more)

    def rows(self, sql, where=None, **more):
        return [json.loads(line) for line in self.tool("query", where or self.out, sql, "-f", "jsonl", **more).stdout.splitlines()]

    def duck(self):
        reader = duckdb.DuckDB(LIBRARY)
        self.addCleanup(reader.close)
        return reader

    def test_equals_the_sqlite_view(self):
        """Every cell of every table, and its type."""
        types = {"INTEGER": "BIGINT", "REAL": "DOUBLE", "TEXT": "VARCHAR"}
        seen = 0
        for name in RECORDINGS:
            with self.subTest(name):
                shutil.rmtree(self.out, ignore_errors=True)
                self.export(golden(name))
                base = os.path.join(self.folder, "view.sqlite")
                self.tool("export", golden(name), "--to", "sqlite", "-o", base)
                view, reader = sqlite3.connect(base), self.duck()
                view.text_factory = bytes
                for table, in view.execute("select name from sqlite_master where type = 'table'").fetchall():
                    table = table.decode()
                    columns = [(c[1].decode(), types[c[2].decode().upper()]) for c in view.execute(f"pragma table_info({table})")]
                    files = [os.path.join(at, f) for at, _, names in os.walk(os.path.join(self.out, table)) for f in names]
                    self.assertEqual([os.path.basename(f) for f in files], [table + ".parquet"])
                    self.assertIn(f"/rank={NULL}/", files[0])
                    got = reader.query(f"describe select * from read_parquet('{files[0]}', hive_partitioning = false)")
                    self.assertEqual([row[:2] for row in got], columns)
                    codec = reader.query(f"select distinct compression from parquet_metadata('{files[0]}')")
                    self.assertIn(codec, ([("ZSTD",)], []))
                    expect = view.execute(f"select * from {table}").fetchall()
                    read = reader.query(f"select * from read_parquet('{files[0]}', hive_partitioning = false)")
                    self.assertEqual(len(read), len(expect))
                    for a, b in zip(read, expect):
                        for (column, kind), x, y in zip(columns, a, b):
                            if x is None or y is None:
                                self.assertEqual((x, y), (None, None), (table, column))
                            elif kind == "VARCHAR":
                                self.assertEqual(x.encode(), y, (table, column))
                            else:
                                self.assertEqual(float(x) if kind == "DOUBLE" else int(x), y, (table, column))
                            seen += 1
                view.close()
        self.assertGreater(seen, 10000)

    def test_places_add_up_to_the_report(self):
        """Kernel time by region out of single kernels is what the report says, inclusive and exclusive."""
        for name in ["nsys/work.sqlite", "nsys/zoo.sqlite", "native-gpu/zoo", "native-gpu/graph", "native-gpu/several"]:
            with self.subTest(name):
                shutil.rmtree(self.out, ignore_errors=True)
                self.export(golden(name))
                got = self.rows("""select r.id, any_value(r.gpu_kernel_ns) as inclusive, any_value(r.gpu_exclusive_kernel_ns) as exclusive,
                    coalesce(sum(k.ns), 0) as a, coalesce(sum(k.ns) filter (p.innermost = 1), 0) as b, coalesce(sum(k.calls), 0) as calls,
                    any_value(r.gpu_kernels) as kernels
                    from regions r left join places p on p.region = r.id left join
                      (select place, sum(duration_ns) as ns, count(*) as calls from kernels group by place) k on k.place = p.place
                    group by r.id""")
                self.assertGreater(sum(row["kernels"] or 0 for row in got), 0)
                for row in got:
                    self.assertEqual((row["a"], row["b"], row["calls"]), (row["inclusive"], row["exclusive"], row["kernels"]), row)

    def test_a_folder_holds_many_runs_and_a_run_is_replaced(self):
        for name in ("nsys/work.sqlite", "nsys/zoo.sqlite", "nsys/work.sqlite"):
            self.export(golden(name))
        got = self.rows("select job, rank, count(*) as n from kernels group by all order by job")
        expect = [self.rows("select count(*) as n from kernels", golden(f"nsys/{n}.sqlite"))[0]["n"] for n in ("work", "zoo")]
        self.assertEqual([(row["job"], row["rank"], row["n"]) for row in got], [("work.sqlite", None, expect[0]), ("zoo.sqlite", None, expect[1])])
        left = [f for at, _, names in os.walk(self.out) for f in names if not f.endswith(".parquet")]
        self.assertEqual(left, ["_rangescope.json"])

    def test_folders_of_others_are_refused(self):
        os.mkdir(self.out)
        self.export(golden("nsys/work.sqlite"))  # an empty one is fine
        other = os.path.join(self.folder, "other")
        os.mkdir(other)
        with open(os.path.join(other, "thesis.tex"), "w", encoding="utf-8") as f:
            f.write("years")
        os.symlink(self.out, os.path.join(self.folder, "link"))
        for to, what in [(other, "not empty"), (os.path.join(other, "thesis.tex"), "is not one"), (os.path.join(self.folder, "link"), "is not one"),
                         (os.path.join(self.folder, "a/b"), "does not exist")]:
            done = self.tool("export", golden("nsys/work.sqlite"), "--to", "parquet", "-o", to, code=74 if "exist" in what else 64)
            self.assertIn(what, done.stderr)
        self.assertEqual(os.listdir(other), ["thesis.tex"])
        self.assertIn("Name one", self.tool("export", golden("nsys/work.sqlite"), "--to", "parquet", code=64).stderr)

    def test_without_duckdb(self):
        nowhere = {"RANGESCOPE_DUCKDB": "/nowhere/libduckdb.so"}
        self.assertIn("RANGESCOPE_DUCKDB", self.export(golden("nsys/work.sqlite"), code=69, env=nowhere).stderr)
        self.assertFalse(os.path.exists(self.out))
        self.export(golden("nsys/work.sqlite"))
        self.assertIn("hint", self.tool("query", self.out, "select 1", code=69, env=nowhere).stderr)
        zlib = next((p for p in ("/lib/x86_64-linux-gnu/libz.so.1", "/usr/lib/x86_64-linux-gnu/libz.so.1") if os.path.exists(p)), None)
        if zlib:
            self.assertIn("lacks duckdb_", self.tool("query", self.out, "select 1", code=69, env={"RANGESCOPE_DUCKDB": zlib}).stderr)

    def test_which_engine_answers(self):
        self.assertIn("SQLite answers", self.tool("query", golden("nsys/work.sqlite"), "select 1").stderr)
        self.export(golden("nsys/work.sqlite"))
        self.assertRegex(self.tool("query", self.out, "select 1").stderr, r"DuckDB v1\.\d+\.\d+ answers")

    def job(self, ranks=3):
        for rank in range(ranks):
            env = {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": str(ranks), "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
                   "OMPI_MCA_ess_base_jobid": "77", "OMPI_MCA_orte_hnp_uri": "77.0;tcp://10.0.0.1:4000"}
            self.tool("profile", "--no-project", "-q", "--", f"{BIN}/cli_victim", "children", env=env)

    def test_ranks_of_two_hosts_on_one_clock(self):
        """Two hosts 300 us apart: moments that were one are one after `run` is added, as exported and as asked of the job."""
        ranks = [simulate.Rank(0, "a"), simulate.Rank(1, "b", lambda ns: ns + 300_000)]
        for n in range(50):
            end = n * 1_000_000 + 400_000
            for r in ranks:
                r.range("ncclAllReduce", end - 100_000 * (1 + r.rank), end, simulate.NCCL, simulate.COLLECTIVE, (7, 4096))
                r.range("moment", end + 1000, end + 1010)
        job = os.path.join(self.folder, "two")
        simulate.job(job, ranks)
        sql = """with clock as (select job, rank, sum(value::bigint) as add_ns from run where key in ('utc_ns', 'clock_offset_ns') group by all)
            select r.rank, r.start_ns as own_ns, (r.start_ns + c.add_ns)::bigint as at_ns from ranges r
            join clock c on c.job = r.job and c.rank is not distinct from r.rank where r.name = 'moment' order by all"""
        self.tool("export", job, "--to", "parquet", self.out)
        for where in (self.out, job):
            rows = self.rows(sql, where)
            one, other = ([row for row in rows if row["rank"] == rank] for rank in (0, 1))
            self.assertEqual((len(one), len(other)), (50, 50))
            self.assertEqual({b["own_ns"] - a["own_ns"] for a, b in zip(one, other)}, {300_000})
            self.assertLessEqual(max(abs(b["at_ns"] - a["at_ns"]) for a, b in zip(one, other)), 1)
            self.assertEqual(one[0]["at_ns"], 1_700_000_000 * 10**9 + 401_000)

    def test_a_job_by_rank(self):
        self.job()
        sql = ("select rank, path, occurrences, wall_ns_inclusive as ns from regions where pid is null order by rank, id")
        asked = self.rows(sql, "openmpi-77", env={})
        self.assertEqual(sorted({row["rank"] for row in asked}), [0, 1, 2])
        self.tool("export", "openmpi-77", "--to", "parquet", self.out)
        self.assertEqual(sorted(os.listdir(f"{self.out}/regions/job=openmpi-77")), ["rank=0", "rank=1", "rank=2"])
        self.assertEqual(self.rows(sql), asked)
        for rank in range(3):
            base = os.path.join(self.folder, f"{rank}.sqlite")
            self.tool("export", f"rangescope-runs/openmpi-77/rank-{rank}", "--to", "sqlite", "-o", base)
            view = sqlite3.connect(base)
            expect = view.execute("select path, occurrences, wall_ns_inclusive from regions where pid is null order by id").fetchall()
            view.close()
            self.assertEqual([(row["path"], row["occurrences"], row["ns"]) for row in asked if row["rank"] == rank], expect)
        shutil.rmtree(f"{self.folder}/rangescope-runs/openmpi-77/rank-1/native")
        self.assertIn("rank-1 is left out", self.tool("query", "openmpi-77", "select count(*) from regions").stderr)

    def test_one_recording_of_several_ranks(self):
        """As of torchrun under one rangescope: a partition for each rank, which together hold what the recording holds."""
        ranks = " & ".join(f"RANK={r} WORLD_SIZE=2 LOCAL_RANK={r} TORCHELASTIC_RUN_ID=x {BIN}/cli_victim children" for r in range(2))
        self.tool("profile", "--no-project", "-q", "--", "sh", "-c", f"{ranks} & wait")
        self.tool("export", "latest", "--to", "parquet", self.out)
        got = self.rows("select rank, sum(occurrences)::bigint as n from regions where pid is null group by rank order by rank")
        self.assertEqual([row["rank"] for row in got], [0, 1])
        whole = self.rows("select sum(occurrences) as n from regions where pid is null", "latest")[0]["n"]
        self.assertEqual(sum(row["n"] for row in got), whole)
        self.assertEqual(got[0]["n"], got[1]["n"])

    def test_files_of_ranks_stay_apart(self):
        """Traces of PyTorch, a file a rank: each rank has its own rows, once."""
        files = []
        for rank, dur in ((0, 300), (1, 100)):
            events = [{"ph": "X", "cat": "user_annotation", "name": "step", "pid": 100 + rank, "tid": 7, "ts": 900, "dur": 2000},
                      {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 40, "ts": 1020, "dur": dur,
                       "args": {"device": 0, "context": 1, "stream": 40, "correlation": 5}}]
            files.append(os.path.join(self.folder, f"rank{rank}.json"))
            with open(files[-1], "w", encoding="utf-8") as f:
                json.dump({"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2},
                           "baseTimeNanoseconds": 1790857026000000000, "traceEvents": events}, f)
        self.tool("export", *files, "--to", "parquet", self.out)
        self.assertEqual(self.rows("select rank, duration_ns from kernels order by rank"),
                         [{"rank": 0, "duration_ns": 300_000}, {"rank": 1, "duration_ns": 100_000}])

    def test_hostile_sql(self):
        """Nothing but the tables is read, nothing is written, no setting changes, and an endless query ends."""
        self.export(golden("nsys/work.sqlite"))
        secret = os.path.join(self.folder, "secret.csv")
        with open(secret, "w", encoding="utf-8") as f:
            f.write("a\nhunter2\n")
        kernels = f"{self.out}/kernels/job=work.sqlite/rank={NULL}/kernels.parquet"
        with open(kernels, "rb") as f:
            before = f.read()
        for sql in [f"select * from read_csv('{secret}')", f"select * from '{secret}'", f"select * from read_text('{secret}')",
                    f"select * from glob('{self.folder}/*')", f"copy (select 1) to '{self.folder}/new.csv'", f"copy (select 1) to '{kernels}'",
                    "set threads = 1", "set enable_external_access = true", "reset lock_configuration", f"attach '{self.folder}/x.db'",
                    "install httpfs", "load httpfs", "select * from 'https://example.org/x.parquet'", "create table t as select 1",
                    "drop view kernels", "select 1; drop view kernels", "checkpoint", "call pragma_version(); select 1", "", "select [1, 2] as l",
                    f"export database '{self.folder}/db'", "select * from read_parquet('/proc/self/environ')", "prepare p as select 1"]:
            done = self.tool("query", self.out, sql, code=64)
            self.assertNotIn("hunter2", done.stdout + done.stderr)
        endless = "with recursive t(n) as (select 1 union all select n + 1 from t) select count(*) from t"
        self.assertIn("longer than it may", self.tool("query", self.out, endless, "--timeout", "300ms", code=65).stderr)
        deaf = "select levenshtein(repeat('a', 3000000), repeat('b', 3000000))"  # inside a function nothing is asked
        self.assertIn("longer than it may", self.tool("query", self.out, deaf, "--timeout", "300ms", code=65).stderr)
        with open(kernels, "rb") as f:
            self.assertEqual(f.read(), before)
        self.assertEqual(sorted(os.listdir(self.folder)), ["out", "secret.csv"])

    def test_hostile_files(self):
        self.export(golden("nsys/work.sqlite"))
        kernels = f"{self.out}/kernels/job=work.sqlite/rank={NULL}/kernels.parquet"
        with open(kernels, "rb") as f:
            whole = f.read()
        outside = os.path.join(self.folder, "outside.parquet")
        shutil.copy(f"{self.out}/regions/job=work.sqlite/rank={NULL}/regions.parquet", outside)
        os.remove(kernels)
        os.symlink(outside, kernels)  # links are none of ours
        self.assertIn("kernels", self.tool("query", self.out, "select count(*) from kernels", code=64).stderr)
        os.remove(kernels)
        for damage in (b"", b"PAR1", whole[:len(whole) // 2], whole[:-40] + bytes(36) + b"PAR1", whole[:-8] + b"\xff\xff\xff\x7fPAR1",
                       whole[:100] + bytes(200) + whole[300:]):
            with open(kernels, "wb") as f:
                f.write(damage)
            done = subprocess.run([f"{BIN}/rangescope", "query", self.out, "select sum(duration_ns), max(name) from kernels"], capture_output=True, text=True,
                                  env={**os.environ, "RANGESCOPE_DUCKDB": LIBRARY}, timeout=600)
            self.assertIn(done.returncode, (0, 64, 65), done.stderr)
            if damage != whole[:100] + bytes(200) + whole[300:]:
                self.assertEqual(done.returncode, 65, done.stderr)

    def test_names_that_need_escaping(self):
        """Paths and runs that hold what SQL, globs or Hive would read."""
        odd = os.path.join(self.folder, "it's [a] *?= 50%.sqlite")
        shutil.copy(golden("nsys/work.sqlite"), odd)
        self.out = os.path.join(self.folder, "o'u[t] {x}*")
        self.export(odd)
        got = self.rows("select job, count(*) as n from kernels group by job")
        self.assertEqual([row["job"] for row in got], [os.path.basename(odd)])
        self.assertGreater(got[0]["n"], 0)


if __name__ == "__main__":
    cases.main()
