#!/usr/bin/env python3
"""store: runs in a real PostgreSQL: pushed, listed, compared, gated, and a region's history. Usage: store.py BIN_DIR ROOT"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases
import cluster

BIN, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
WORK, ZOO = (os.path.join(ROOT, "tests", "golden", "nsys", f"{name}.sqlite") for name in ("work", "zoo"))


@unittest.skipUnless(cluster.PROGRAMS, "no PostgreSQL (apt-get install postgresql)")
class Store(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cluster.Cluster()
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rangescope-store-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.database = re.sub(r"\W", "_", self.id().rpartition(".")[2].lower())[:60]
        self.server.sql("postgres", f"create database {self.database}")
        self.url = self.server.url(self.database)

    def command(self, words, env=None):
        return dict(args=[f"{BIN}/rangescope", *words], env={**os.environ, **(env or {})}, cwd=self.folder, stdin=subprocess.DEVNULL)

    def tool(self, *words, code=0, env=None):
        done = subprocess.run(**self.command(words, env), capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def sql(self, text):
        return self.server.sql(self.database, text)

    def run_at(self, commit, began, faster=1.0):
        """A report of a run at a commit, as report.json has it; its times are scaled."""
        path = os.path.join(self.folder, f"{commit}.json")
        self.tool("report", WORK, "-f", "json", "-o", path)
        with open(path, encoding="utf-8") as f:
            report = json.load(f)
        report["run"].update(id=f"run-{commit}", start_unix_ns=began, environment={"git.commit": commit * 5, "git.dirty": "false"},
                             command=["./app", "--api-key=hunter2hunter2", "--size", "4"])
        for region in report["regions"]:
            for key, value in region["wall_ns"].items():
                if isinstance(value, (int, float)):
                    region["wall_ns"][key] = value * faster
            region["samples"] = [[s[0], s[1] * faster, *s[2:]] for s in region.get("samples", [])]
        with open(path, "w", encoding="utf-8") as f:
            json.dump(report, f)
        return path, report

    def test_what_was_pushed_comes_back(self):
        """A comparison with the store says what a comparison with the file says, to the digit."""
        for path in (WORK, ZOO):
            self.tool("runs", "push", self.url, path)
        self.assertEqual([row[0] for row in self.sql("select name from rangescope.pushes order by id")], ["work.sqlite", "zoo.sqlite"])
        for path in (WORK, ZOO):
            stored = json.loads(self.tool("compare", f"{self.url}#{os.path.basename(path)}", WORK, "--json").stdout)
            file = json.loads(self.tool("compare", path, WORK, "--json").stdout)
            stored, file = (json.loads(json.dumps(one["regions"]).replace(one["sides"][0]["label"], "LABEL")) for one in (stored, file))
            self.assertEqual(stored, file)
            self.assertTrue(stored)
        rows_of_run = "jsonb_exists_any(g.rest, array['whole_run', 'outside_ranges'])"
        digest, report = self.sql("select count(*), sum(occurrences) from rangescope.regions g join rangescope.runs r on r.id = g.run "
                                  f"join rangescope.pushes p on p.id = r.push where p.name = 'work.sqlite' and not {rows_of_run}")[0], json.loads(self.tool("report", WORK, "-f", "json").stdout)
        regions = [r for r in report["regions"] if r["process"] is None]
        self.assertEqual((int(digest[0]), int(digest[1])), (len(regions), sum(r["occurrences"] for r in regions)))
        verdicts = self.sql("select v.kind, v.severity, v.path from rangescope.verdicts v join rangescope.runs r on r.id = v.run join rangescope.pushes p "
                            "on p.id = r.push where p.name = 'work.sqlite' order by v.ordinal")
        self.assertEqual(verdicts, [[v["kind"], v["severity"], v["path"]] for v in report["verdict"]])
        median = self.sql("select distinct value from rangescope.history where tag = 'wall_ns.median' and name = 'work.sqlite' "
                          "and path not in ('{whole run}', '{outside ranges}') order by 1")
        self.assertEqual([float(row[0]) for row in median], sorted({r["wall_ns"]["median"] for r in regions}))
        took = self.sql("select value from rangescope.history where tag = 'wall_ns.median' and name = 'work.sqlite' and path = '{whole run}'")
        self.assertEqual([float(row[0]) for row in took], [report["run"]["duration_ns"]])

    def test_pushed_again_it_is_replaced(self):
        for _ in range(2):
            self.tool("runs", "push", self.url, WORK)
        self.tool("runs", "push", self.url, WORK, "--name", "main")
        self.assertEqual(self.sql("select name, (select count(*) from rangescope.runs) from rangescope.pushes"), [["main", "1"]])

    def test_eight_at_once(self):
        """Into an empty database, so that all make the schema; four of them push one and the same run."""
        reports = [self.run_at(f"{n}{n}{n}{n}{n}{n}{n}{n}", 10**18 + n)[0] for n in range(1, 5)]
        pushes = [subprocess.Popen(**self.command(["runs", "push", self.url, path]), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                  for path in [*reports, WORK, WORK, WORK, WORK]]
        for push in pushes:
            said = push.communicate(timeout=600)[0]
            self.assertEqual(push.returncode, 0, said)
        counts = self.sql("select p.name, count(distinct r.id), count(*) from rangescope.pushes p join rangescope.runs r on r.push = p.id "
                          "join rangescope.regions g on g.run = r.id group by p.id")
        self.assertEqual(len(counts), 5)
        self.assertEqual({(row[1], row[2]) for row in counts}, {("1", counts[0][2])})

    def test_migrations(self):
        """A schema of the first version is brought up to date with what is in it; one of the future is left alone."""
        self.tool("runs", "push", self.url, WORK)
        newest = int(self.sql("select max(version) from rangescope.migrations")[0][0])
        before = self.sql("select count(*), sum(occurrences) from rangescope.regions")
        self.sql(f"alter table rangescope.runs drop column judged; drop view rangescope.history; drop index rangescope.regions_by_name; "
                 f"delete from rangescope.migrations where version > {newest - 3}")
        self.assertIn("older rangescope", self.tool("runs", "list", "--from", self.url, code=66).stderr)
        self.tool("runs", "push", self.url, ZOO)
        self.assertEqual(int(self.sql("select max(version) from rangescope.migrations")[0][0]), newest)
        self.assertEqual(self.sql("select count(*), sum(occurrences) from rangescope.regions g join rangescope.runs r on r.id = g.run "
                                  "join rangescope.pushes p on p.id = r.push where p.name = 'work.sqlite'"), before)
        self.assertNotEqual(self.sql("select count(*) from rangescope.history"), [["0"]])
        self.sql(f"insert into rangescope.migrations (version) values ({newest + 1})")
        for words in (["push", self.url, WORK], ["list", "--from", self.url]):
            self.assertIn("newer rangescope", self.tool("runs", *words, code=65).stderr)

    def test_a_failed_push_leaves_nothing(self):
        self.tool("runs", "push", self.url, WORK)
        self.sql("create function rangescope.refuse() returns trigger language plpgsql as $$ begin raise 'no room'; end $$; "
                 "create trigger refuse before insert on rangescope.kernels execute function rangescope.refuse()")
        self.assertIn("no room", self.tool("runs", "push", self.url, ZOO, code=65).stderr)
        self.assertEqual(self.sql("select name from rangescope.pushes"), [["work.sqlite"]])

    def test_history_and_gate(self):
        commits = [("aaaaaaaa", 1.0), ("bbbbbbbb", 1.0), ("cccccccc", 2.0)]
        paths = {}
        for n, (commit, faster) in enumerate(commits):
            paths[commit], report = self.run_at(commit, 1700000000 * 10**9 + n * 86400 * 10**9, faster)
            self.tool("runs", "push", self.url, paths[commit])
        region = max((r for r in report["regions"] if r["process"] is None), key=lambda r: r["wall_ns"]["inclusive"])
        path = " > ".join(region["path"])
        said = json.loads(self.tool("runs", "history", path, "--from", self.url, "-f", "json").stdout)
        self.assertEqual((said["region"], said["metric"], said["unit"]), (path, "wall_ns.median", "ns"))
        self.assertEqual([p["commit"] for p in said["points"]], [c * 5 for c, _ in commits])
        base = region["wall_ns"]["median"] / 2
        for point, (_, faster) in zip(said["points"], commits):
            self.assertAlmostEqual(point["values"][0], base * faster, delta=1e-6 * base)
        sums = json.loads(self.tool("runs", "history", path, "--from", self.url, "--metric", "wall_ns.inclusive", "-f", "json").stdout)
        self.assertAlmostEqual(sums["points"][2]["values"][0], region["wall_ns"]["inclusive"] / region["occurrences"], delta=1)
        table = self.tool("runs", "history", path, "--from", self.url).stdout
        self.assertRegex(table, r"run-cccccccc +cccccccccc .*\+100\.0 %")
        self.tool("runs", "history", path, "--from", self.url, "-f", "html", "-o", "h.html")
        with open(os.path.join(self.folder, "h.html"), encoding="utf-8") as f:
            page = f.read()
        svg = xml.etree.ElementTree.fromstring(page[page.index("<svg"):page.index("</svg>") + 6])
        circles = [e for e in svg.iter() if e.tag == "circle"]
        self.assertEqual(len(circles), 3)
        heights = [float(c.get("cy")) for c in circles]
        self.assertEqual(heights[0], heights[1])
        self.assertLess(heights[2], heights[0])
        self.assertIn("hint", self.tool("runs", "history", "nowhere", "--from", self.url, code=66).stderr)
        self.assertIn("--metric", self.tool("runs", "history", path, "--from", self.url, "--metric", "wall_ns.medain", code=64).stderr)
        # the newest other push of such a machine; a commit; a name
        self.tool("gate", "--baseline", self.url, paths["bbbbbbbb"], code=0)
        self.assertIn("#run-bbbbbbbb", self.tool("gate", "--baseline", self.url, paths["cccccccc"], code=81).stdout)
        self.tool("gate", "--baseline", f"{self.url}#aaaaaaaaa", paths["cccccccc"], code=81)
        self.tool("gate", "--baseline", f"{self.url}#run-aaaaaaaa", paths["bbbbbbbb"], code=0)
        self.assertIn("no run or commit", self.tool("gate", "--baseline", f"{self.url}#dddd", paths["bbbbbbbb"], code=66).stderr)
        listed = json.loads(self.tool("runs", "list", "--from", self.url, "--json").stdout)
        self.assertEqual([one["name"] for one in listed], [f"run-{c}" for c, _ in commits])
        self.assertRegex(self.tool("runs", "list", "--from", self.url).stdout, "run-aaaaaaaa +2023-11-14 22:13 +aaaaaaaaaa")

    def test_secrets_stay_out(self):
        """A password in an address is refused and not repeated; those of ~/.pgpass and PGPASSWORD work; what is pushed holds none."""
        wrong = self.server.url(self.database).replace("owner@", "owner:xyzzyplugh@")
        queried = self.server.url(self.database) + "&password=xyzzyplugh"
        torn = [f"postgresql://owner:{secret}@localhost:1/x" for secret in ("xyzzy#plugh", "xyzzy/plugh", "12/plugh", "12#plugh", "xyzzy?plugh", "xyzzy@plugh")]
        for url in (wrong, queried, *torn, "postgresql://owner:xyzzy", "postgresql://localhost:xyzzy/x"):
            for words in (["runs", "push", url, WORK], ["runs", "list", "--from", url], ["compare", url, WORK], ["gate", "--baseline", url, WORK]):
                done = self.tool(*words, code=64)
                self.assertNotRegex(done.stdout + done.stderr, "xyzzy|plugh")
        path, _ = self.run_at("eeeeeeee", 10**18)
        self.tool("runs", "push", self.url, path)
        dump = self.sql("select p::text || r::text from rangescope.pushes p join rangescope.runs r on r.push = p.id")[0][0]
        self.assertIn("redacted", dump)
        self.assertNotIn("hunter2", dump)
        if not self.server.sql("postgres", "select 1 from pg_database where datname = 'secret'"):
            self.server.sql("postgres", "create database secret")
        secret = self.server.url("secret")
        done = self.tool("runs", "push", secret, WORK, code=77, env={"PGPASSFILE": "/nowhere"})
        self.assertIn(".pgpass", done.stderr)
        self.tool("runs", "push", secret, WORK, code=77, env={"PGPASSWORD": "wrong"})
        self.tool("runs", "push", secret, WORK, env={"PGPASSWORD": "correct horse"})
        passfile = os.path.join(self.folder, "pgpass")
        with open(passfile, "w", encoding="utf-8") as f:
            f.write("*:*:secret:owner:correct horse\n")
        os.chmod(passfile, 0o600)
        self.tool("runs", "list", "--from", secret, env={"PGPASSFILE": passfile})
        service = os.path.join(self.folder, "service")
        with open(service, "w", encoding="utf-8") as f:
            f.write(f"[team]\nhost={self.server.folder}\ndbname={self.database}\nuser=owner\n")
        self.assertIn("run-eeeeeeee", self.tool("runs", "list", "--from", "postgresql:///?service=team", env={"PGSERVICEFILE": service}).stdout)

    def test_tls_is_asked_for(self):
        """Settings of TLS reach libpq: a server without it is refused."""
        done = self.tool("runs", "list", "--from", "postgresql://owner@localhost:1/x?sslmode=verify-full&sslrootcert=/nowhere/ca.pem", code=66)
        self.assertIn("no connection", done.stderr)
        self.assertIn("sslmode", self.tool("runs", "list", "--from", "postgresql://owner@localhost:1/x?sslmode=perhaps", code=66).stderr)

    def test_tls(self):
        """A server that signed its certificate itself: taken unverified, or by its CA; no other CA will do."""
        server = cluster.Cluster(tls=True)
        self.addCleanup(server.stop)
        url = f"postgresql://owner@127.0.0.1:{server.port}/postgres?sslmode="
        trusted, foreign = os.path.join(server.folder, "server.crt"), server.certificate("foreign")
        self.tool("runs", "push", url + "require", WORK)
        with open(os.path.join(server.folder, "log"), encoding="utf-8", errors="replace") as f:
            self.assertRegex(f.read(), "connection authorized.*application_name=rangescope SSL enabled")
        for mode in ("verify-ca", "verify-full"):
            self.assertIn("work.sqlite", self.tool("runs", "list", "--from", f"{url}{mode}&sslrootcert={trusted}").stdout)
            said = self.tool("runs", "list", "--from", f"{url}{mode}&sslrootcert={foreign}", code=66).stderr
            self.assertIn("certificate verify failed", said)
            self.assertRegex(said, r"hint: .*sslrootcert")
            self.assertIn(f"127.0.0.1:{server.port}", said)
        self.assertIn("work.sqlite", self.tool("runs", "list", "--from", f"{url}verify-full", env={"PGSSLROOTCERT": trusted}).stdout)
        self.assertIn("no encryption", self.tool("runs", "list", "--from", url + "disable", code=66).stderr)

    def test_verdicts_are_kept_and_compared(self):
        paths = {}
        for n, (commit, kinds) in enumerate((("aaaaaaaa", ("waits_for_cpu", "warm_up")), ("bbbbbbbb", ("warm_up", "slow_gpu")))):
            paths[commit], report = self.run_at(commit, 1700000000 * 10**9 + n * 10**9)
            report["verdict"] = [{"kind": kind, "severity": "warning", "path": "step", "text": f"it is {kind}", "saves_ns": 5, "next": "look --password=hunter2hunter2"} for kind in kinds]
            with open(paths[commit], "w", encoding="utf-8") as f:
                json.dump(report, f)
        self.tool("runs", "push", self.url, paths["aaaaaaaa"])
        self.assertNotIn("hunter2", self.sql("select string_agg(v::text, ' ') from rangescope.verdicts v")[0][0])
        self.tool("gate", "--save", "--name", "main", paths["aaaaaaaa"])
        saved = os.path.join(self.folder, "rangescope-baselines", os.listdir(os.path.join(self.folder, "rangescope-baselines"))[0])
        expected = ["new in the verdict of {}: slow_gpu of 'step': it is slow_gpu", "no longer in the verdict of {}: waits_for_cpu of 'step': it is waits_for_cpu"]
        for before in (self.url, saved, paths["aaaaaaaa"]):
            comparison = json.loads(self.tool("compare", before, paths["bbbbbbbb"], "-f", "json").stdout)
            label = comparison["sides"][1]["label"]
            self.assertEqual([note for note in comparison["notes"] if "verdict" in note], [text.format(label) for text in expected])
        self.assertIn("new in the verdict of", self.tool("gate", "--baseline", saved, paths["bbbbbbbb"]).stdout)
        # A baseline of before keeps none: nothing is said of what it had.
        with open(saved, encoding="utf-8") as f:
            old = json.load(f)
        del old["runs"][0]["verdict"]
        with open(saved, "w", encoding="utf-8") as f:
            json.dump(old, f)
        self.assertNotIn("the verdict", self.tool("compare", saved, paths["bbbbbbbb"]).stdout)
        self.tool("runs", "push", self.url, saved, "--name", "old")
        self.assertNotIn("the verdict", self.tool("compare", f"{self.url}#old", paths["bbbbbbbb"]).stdout)

    def test_names_are_data(self):
        """Quotes, SQL, NUL and bytes that are no text, in names of runs and ranges."""
        path, report = self.run_at("ffffffff", 10**18)
        odd = ["'; drop table rangescope.runs; --", "a\u0000b", "{\"x\":1}", "$1", "\\u0000", "tab\there"]
        for region, name in zip([r for r in report["regions"] if r["parent"] is None and r["process"] is None], odd):
            region["path"][-1] = name
        first = next(r for r in report["regions"] if r["process"] is None)
        rest = [dict(first, path=[name], id=1000 + n) for n, name in enumerate(odd)]
        report["regions"] = [*report["regions"], *rest]
        report["kernels"] = [{"name": name, "calls": 1, "total_ns": 1.5} for name in odd]
        with open(path, "w", encoding="utf-8") as f:
            json.dump(report, f)
        self.tool("runs", "push", self.url, path, "--name", "it's; -- $1 \"x\"")
        names = {json.loads(row[0]) for row in self.sql("select to_json(path[1])::text from rangescope.regions")}
        self.assertTrue({odd[0], "a\\x00b", odd[2], odd[3], odd[4], odd[5]} <= names, names)
        listed = json.loads(self.tool("runs", "list", "--from", self.url, "--json").stdout)
        self.assertEqual(listed[0]["name"], "it's; -- $1 \"x\"")
        self.tool("compare", f"{self.url}#it's; -- $1 \"x\"", path)

    def hostile(self, *statements):
        """As a role that may create in `public`, and in the database, and nothing else."""
        self.server.sql("postgres", "do $$ begin create role mallory login; exception when duplicate_object then null; end $$")
        self.sql(f"grant create on schema public to mallory; grant create on database {self.database} to mallory")
        for text in statements:
            self.server.sql(self.database, text, "mallory")

    def superusers(self):
        return [row[0] for row in self.sql("select rolname from pg_roles where rolsuper")]

    # What a call or an operator of the store would mean, were schemas other than pg_catalog looked at: nearer to its arguments.
    NEARER = [("array_length(text[],integer)", "integer"), ("to_jsonb(text[])", "jsonb"), ("hashtextextended(text,integer)", "bigint"),
              ("hashtextextended(text,bigint)", "bigint"), ("to_regclass(text)", "regclass"), ("to_timestamp(double precision)", "timestamptz"),
              ("starts_with(text,text)", "boolean"), ("length(text)", "integer"), ("jsonb_array_elements_text(jsonb)", "setof text"),
              ("coalesced(text)", "text")]

    def test_functions_of_others_are_not_called(self):
        """A role that may create in `public` gains nothing from what others do with the store."""
        body = "begin execute 'alter role mallory superuser'; return null; end"
        functions = [f"create or replace function public.{name} returns {returns} language plpgsql as $f$ "
                     + (body.replace("return null", "return") if "setof" in returns else body) + " $f$" for name, returns in self.NEARER]
        operators = [f"create function public.seized({left}, {right}) returns text language plpgsql as $f$ {body} $f$; "
                     f"create operator public.{sign} (leftarg = {left}, rightarg = {right}, function = public.seized)"
                     for left, right, sign in (("jsonb", "text", "->>"), ("jsonb", "integer", "->>"), ("text", "text", "="), ("bigint", "bigint", "="))]
        self.hostile(*functions, *operators)
        self.sql(f"alter database {self.database} set search_path = public, pg_catalog; alter role owner set search_path = public, pg_catalog")
        self.addCleanup(self.sql, "alter role owner reset search_path")
        self.tool("runs", "push", self.url, WORK)
        self.tool("runs", "list", "--from", self.url)
        self.tool("compare", self.url, WORK)
        with open(self.tool("report", WORK, "-f", "json", "-o", "work.json") and os.path.join(self.folder, "work.json"), encoding="utf-8") as f:
            region = next(r for r in json.load(f)["regions"] if r["process"] is None)
        self.tool("runs", "history", " > ".join(region["path"]), "--from", self.url)
        self.tool("runs", "history", "nowhere", "--from", self.url, code=66)
        self.assertEqual(self.superusers(), ["owner"])

    def test_a_schema_of_others_is_refused(self):
        """Who makes the schema first could put triggers on its tables, which run as whoever writes to them."""
        self.hostile("create schema rangescope", "create table rangescope.migrations (version integer primary key, applied timestamptz default now())",
                     "create function public.seize() returns trigger language plpgsql as $f$ begin execute 'alter role mallory superuser'; return new; end $f$",
                     "create trigger seize before insert on rangescope.migrations for each row execute function public.seize()",
                     "grant all on schema rangescope to public; grant all on rangescope.migrations to public")
        for words in (["push", self.url, WORK], ["list", "--from", self.url], ["history", "x", "--from", self.url]):
            self.assertIn("mallory", self.tool("runs", *words, code=77).stderr)
        self.sql("alter schema rangescope owner to owner")
        self.assertIn("mallory", self.tool("runs", "push", self.url, WORK, code=77).stderr)
        self.assertEqual(self.superusers(), ["owner"])

    def test_whose_schema_is_used(self):
        """That of the database's owner, and of a role that the user is a member of."""
        self.server.sql("postgres", "create role team; create role ann login in role team; create role ben login in role team")
        self.server.sql("postgres", f"alter database {self.database} owner to ann")
        ann, ben = (self.server.url(self.database, user) for user in ("ann", "ben"))
        self.tool("runs", "push", ann, WORK)
        self.sql("grant usage on schema rangescope to ben; grant all on all tables in schema rangescope to ben")
        self.tool("runs", "push", ben, ZOO)
        self.assertIn("ann", self.tool("runs", "list", "--from", self.url, code=77).stderr)  # a superuser lends no rights
        self.server.sql("postgres", f"alter database {self.database} owner to owner")
        self.tool("runs", "list", "--from", ben, code=77)
        self.sql("reassign owned by ann to team")
        self.tool("runs", "list", "--from", ben)

    def test_a_trigger_that_skips_rows(self):
        self.tool("runs", "push", self.url, WORK)
        self.sql("create function rangescope.skip() returns trigger language plpgsql as $$ begin return null; end $$")
        for table in ("pushes", "runs"):
            self.sql(f"create trigger skip before insert or update on rangescope.{table} for each row execute function rangescope.skip()")
            self.assertIn("0 rows, not one", self.tool("runs", "push", self.url, ZOO, code=65).stderr)
            self.sql(f"drop trigger skip on rangescope.{table}")
        self.sql("delete from rangescope.runs")
        self.assertIn("holds no run", self.tool("compare", self.url, WORK, code=65).stderr)

    def test_nobody_there(self):
        self.assertIn("no connection", self.tool("runs", "list", "--from", f"postgresql:///x?host={self.folder}", code=66).stderr)
        self.assertIn("holds no runs", self.tool("runs", "list", "--from", self.url, code=66).stderr)
        self.assertIn("libpq cannot read", self.tool("runs", "list", "--from", "postgresql://[", code=64).stderr)


if __name__ == "__main__":
    cases.main()
