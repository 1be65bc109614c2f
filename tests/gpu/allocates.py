"""Calls that allocate, free, record events and wait for them: against what allocates.cu did, and what recording them costs.

Half a minute.
"""
import json
import os
import re
import sqlite3
import unittest

import cost
import gpu

MIB = 1 << 20
ROUNDS = int(os.environ.get("ROUNDS", "3"))
IN_RANGE = """select operation, kind, bytes, count(*) from memory_events m where exists (select 1 from ranges r where r.name = ? and r.tid = m.tid and
              m.at_ns between r.start_ns and r.end_ns) group by 1, 2, 3"""


class Allocates(unittest.TestCase):
    def check(self, name, **environment):
        run = gpu.Run(f"allocates-{name}", [], [gpu.program("allocates")], env=environment)
        self.assertEqual(run.code, 0, run.err[-600:])
        truth = json.loads(run.out.strip().splitlines()[-1])
        database = f"{gpu.OUT}/allocates-{name}.sqlite"
        if os.path.exists(database):
            os.remove(database)
        made = gpu.Done([f"{gpu.BUILD}/bin/rangescope", "export", run.folder, "--to", "sqlite", "-o", database])
        self.assertEqual(made.code, 0, made.err)
        db = sqlite3.connect(database)

        def rows(sql, *values):
            return db.execute(sql, values).fetchall()

        def inside(range_name):
            return {(operation, kind, size): calls for operation, kind, size, calls in rows(IN_RANGE, range_name)}

        self.assertEqual(rows("select kind, detail from losses where severity <> 'info'"), [])
        self.assertEqual(rows("select count(*) from kernels where launch is not null"), [(truth["kernels"],)])
        steps, setup = truth["steps"], {("allocate", "device", 16 * MIB): 1, ("allocate", "pinned", MIB): 1, ("allocate", "managed", 4 * MIB): 1,
                                        ("allocate", "device", truth["pitched_bytes"]): 1, ("allocate", "pinned", 16384): 1}
        if truth["physical"]:
            setup.update({("allocate", "device", 2 * MIB): 1, ("free", "device", 2 * MIB): 1})
        self.assertEqual(inside("setup"), setup)
        self.assertEqual(inside("step"), {(operation, "device", size * MIB): steps for operation in ("allocate", "free") for size in (8, 2, 1)})
        self.assertEqual(inside("too much"), {("failed allocation", "device", 1 << 50): truth["failed"]})
        self.assertEqual(rows("select count(distinct pool), count(*) from memory_events where bytes = ? and pool is not null", MIB), [(1, 2 * steps)])
        used = {"allocate": 1, "free": -1, "failed allocation": 0}
        kept = sum(used[operation] * size for operation, size in rows("select operation, bytes from memory_events where kind <> 'pinned'"))
        self.assertEqual(kept, truth["kept_bytes"])
        self.assertEqual(sum(used[operation] * size for operation, size in rows("select operation, bytes from memory_events where kind = 'pinned'")), 0)
        self.assertEqual(dict(rows("select operation, count(*) from event_calls group by 1")), {"record": steps, "stream wait": steps, "synchronize": steps})
        self.assertEqual(rows("select distinct e.stream from event_calls e where operation = 'stream wait'"), rows("select distinct stream from kernels"))
        self.assertEqual(rows("select distinct e.stream from event_calls e where operation = 'record'"),
                         rows("select distinct stream from copies where kind = 1"))
        self.assertEqual(rows("select kind, source, destination, count(*) from copies group by 1, 2, 3 order by 1"),
                         [(1, "pinned", "device", steps), (2, "device", "pinned", 1)])

    def test_launches_by_records(self):
        gpu.time_left(10)
        self.check("records")

    def test_launches_by_callback(self):
        gpu.time_left(10)
        self.check("callback", RANGESCOPE_LAUNCH_RECORDS="callback")

    def test_cost(self):
        """Figures: a call alone, with the library but without details, and with them."""
        gpu.time_left(10 * ROUNDS)
        command, best = [gpu.program("allocates"), "cost"], {}
        ways = {"nothing": lambda: gpu.Done(command),
                "without details": lambda: gpu.Done(command, env=cost.traced("CUDA_INJECTION64_PATH", RANGESCOPE_CALL_DETAILS="off")),
                "recorded": lambda: gpu.Done(command, env=cost.traced("CUDA_INJECTION64_PATH"))}
        for _ in range(ROUNDS):
            for way, run in ways.items():
                done = run()
                self.assertEqual(done.code, 0, f"{way}: {done.err[-300:]}")
                for call, figure in re.findall(r"(\w+) ([0-9.]+) us", done.out):
                    best[call, way] = min(best.get((call, way), 1e9), float(figure))
        for (call, way), figure in best.items():
            gpu.figure(f"{call}, {way}", figure, "us a call", f"+{figure - best[call, 'nothing']:.3f}")
