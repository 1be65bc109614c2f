#!/usr/bin/env python3
"""openmetrics: `profile --openmetrics` scraped by the real Prometheus, with the panels of docs/grafana; and by those who are none.
Usage: openmetrics.py BIN_DIR ROOT"""
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases

BIN, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
# Ends when the file `end` is there; a step takes so many seconds or more. Names: a quote, a backslash, a line's end; and 300 of them.
PROGRAM = r"""
import os, sys, time
sys.path.insert(0, sys.argv[1])
import rangescope
step = 0
while not os.path.exists("end"):
    with rangescope.range("step"), rangescope.range('in"ner\\\n\x1b[31m'):
        time.sleep(float(sys.argv[2]))
    with rangescope.range(f"made up {step % 300}"):
        step += 1
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Served(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        with open(f"{self.folder.name}/program.py", "w") as f:
            f.write(PROGRAM)

    def start(self, step_s=0.002):
        self.log = open(f"{self.folder.name}/log", "w+")
        self.addCleanup(self.log.close)
        process = subprocess.Popen([f"{BIN}/rangescope", "profile", "--watch-every", "300ms", "--openmetrics", "127.0.0.1:0", "--",
                                    sys.executable, "program.py", f"{ROOT}/python", str(step_s)], cwd=self.folder.name, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log)
        self.addCleanup(self.end, process)
        return process, self.until(lambda: re.search(r"serving http://(\S+)/metrics", self.said())).group(1)

    def end(self, process):
        open(f"{self.folder.name}/end", "w").close()
        return process.wait(cases.PATIENCE_S)

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def until(self, condition):
        def answer():
            try:
                return condition()
            except (urllib.error.URLError, ConnectionError):
                return None
        return cases.until(answer, self.said()[-2000:])

    def prometheus(self):
        """Its port. Started again where somebody else took that meanwhile."""
        while True:
            port = free_port()
            with open(f"{self.folder.name}/prometheus.log", "w") as log:
                server = subprocess.Popen(["prometheus", "--config.file=prometheus.yml", f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.path=data"],
                                          cwd=self.folder.name, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            self.addCleanup(server.wait)
            self.addCleanup(server.terminate)
            if self.until(lambda: server.poll() is not None or self.get(f"http://127.0.0.1:{port}/-/ready")) is not True:
                return port
            self.assertIn("address already in use", cases.contents(f"{self.folder.name}/prometheus.log"))

    def get(self, url):
        with urllib.request.urlopen(url, timeout=cases.PATIENCE_S) as reply:
            return reply.headers, reply.read().decode()

    def test_prometheus_scrapes_it(self):
        if not shutil.which("prometheus"):
            self.skipTest("prometheus is not installed (Debian's prometheus)")
        process, at = self.start(step_s=0.02)
        with open(f"{self.folder.name}/prometheus.yml", "w") as f:
            f.write(f"scrape_configs:\n- job_name: training\n  scrape_interval: 300ms\n  static_configs:\n  - targets: ['{at}']\n")
        port = self.prometheus()

        def ask(query):
            reply = json.loads(self.get(f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query}))[1])
            self.assertEqual(reply["status"], "success")
            return reply["data"]["result"]

        value = lambda query: float(ask(query)[0]["value"][1])
        self.until(lambda: ask('rangescope_occurrences{path="step"}'))
        first = value('rangescope_occurrences{path="step"}')
        self.until(lambda: value('rangescope_occurrences{path="step"}') > first + 10)
        self.assertEqual(value('up{job="training"}'), 1)
        self.assertGreaterEqual(value('rangescope_wall_median_seconds{path="step"}'), 0.02)
        lengths = 'rangescope_wall_duration_seconds_bucket{path="step",le="%s"}'
        self.assertEqual((value(lengths % "0.001"), value(lengths % "0.01")), (0, 0), "each step sleeps for 20 ms")
        self.assertGreater(value(lengths % "100.0"), 10)
        self.assertGreater(value('histogram_quantile(0.5, rangescope_wall_duration_seconds_bucket{path="step"})'), 0.01)
        self.assertGreaterEqual(value('rangescope_wall_duration_seconds_sum{path="step"} / rangescope_wall_duration_seconds_count{path="step"}'), 0.02)
        inner = next(one["metric"]["path"] for one in ask("rangescope_wall_inclusive_seconds") if one["metric"]["path"].startswith("step > "))
        self.assertEqual(inner, 'step > in"ner\\\\n\\x1b[31m')
        with open(f"{ROOT}/docs/grafana/rangescope.json") as f:
            dashboard = json.load(f)
        answered = set()
        for panel in dashboard["panels"]:
            query = panel["targets"][0]["expr"].replace("$__rate_interval", "10s").replace("$path", ".*").replace("$job", "training")
            if ask(query):
                answered.add(panel["id"])
        self.assertLessEqual({1, 2, 3, 4}, answered, "the panels of time; the others are of GPUs, energy and ranks")
        self.assertEqual(self.end(process), 0)

    def test_series_are_bounded(self):
        _, at = self.start()
        self.until(lambda: re.search(r"rangescope_regions 30\d", self.get(f"http://{at}/metrics")[1]))
        headers, page = self.get(f"http://{at}/metrics")
        self.assertEqual(headers["Content-Type"], "application/openmetrics-text; version=1.0.0; charset=utf-8")
        self.assertTrue(page.endswith("# EOF\n"))
        self.assertEqual(page.count("\nrangescope_occurrences{"), 200)
        self.assertIn('rangescope_occurrences{path="step",', page, "the largest stay")
        self.assertEqual(page.count('le="+Inf"'), 50)
        of_step = re.findall(r'^rangescope_wall_duration_seconds_bucket\{path="step",.*,le="([^"]+)"\} (\d+)$', page, re.M)
        self.assertEqual(len(of_step), 22)
        self.assertEqual([int(count) for _, count in of_step], sorted(int(count) for _, count in of_step), "bins add up")
        count = re.search(r'^rangescope_wall_duration_seconds_count\{path="step",.*\} (\d+)$', page, re.M).group(1)
        self.assertEqual(of_step[-1], ("+Inf", count))
        self.assertEqual(count, re.search(r'^rangescope_occurrences\{path="step",.*\} (\d+)$', page, re.M).group(1))

    def test_the_panels_are_of_families_that_are_written(self):
        """Those of GPUs and ranks too: of a recording that has them."""
        written = subprocess.run([f"{BIN}/rangescope", "report", f"{ROOT}/tests/golden/nsys/zoo.sqlite", "-f", "openmetrics"], capture_output=True, text=True).stdout
        known = set(re.findall(r"^# TYPE (\S+)", written, re.M)) | {"rangescope_metric", "rangescope_ranks_imbalance_ratio"}
        with open(f"{ROOT}/docs/grafana/rangescope.json") as f:
            used = set(re.findall(r"rangescope_\w+", f.read()))
        self.assertEqual(used - known, set())

    def test_who_is_no_prometheus(self):
        process, at = self.start()
        host, port = at.rsplit(":", 1)

        def say(data, wait=True):
            with socket.create_connection((host, int(port)), timeout=cases.PATIENCE_S) as connection:
                connection.sendall(data)
                return connection.recv(100).decode(errors="replace").split("\r\n")[0] if wait else ""

        for request, status in ((b"GET / HTTP/1.1\r\n\r\n", "404"), (b"GET /../metrics HTTP/1.1\r\n\r\n", "404"), (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
                                (b"\xff\xfe\x00\r\n\r\n", "400"), (b"GET /metrics\r\n\r\n", "400"), (b"GET /metrics HTTP/1.1 x\r\n\r\n", "400"),
                                (b"\r\n\r\n", "400"), (b"A" * 20000, "431"), (b"GET /metrics?x=" + b"A" * 7000 + b" HTTP/1.0\r\n\r\n", "200")):
            self.assertIn(f"HTTP/1.1 {status}", say(request), request[:40])
        idle = [socket.create_connection((host, int(port)), timeout=cases.PATIENCE_S) for _ in range(40)]  # say nothing, and then go
        say(b"GET /metrics HT", wait=False)
        for each in idle:
            each.close()
        self.until(lambda: self.get(f"http://{at}/metrics")[1].endswith("# EOF\n"))
        self.assertEqual(self.end(process), 0)
        with self.assertRaises(OSError):
            socket.create_connection((host, int(port)), timeout=cases.PATIENCE_S)

    def test_a_thousand_who_hold_on_and_those_who_drip(self):
        """A scrape is answered meanwhile; what the server keeps open is bounded, and so is what it remembers."""
        process, at = self.start()
        host, port = at.rsplit(":", 1)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limit)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1] if limit[1] != resource.RLIM_INFINITY else 4096, limit[1]))
        memory = lambda: int(re.search(r"VmRSS:\s+(\d+) kB", open(f"/proc/{process.pid}/status").read())[1])
        self.until(lambda: self.get(f"http://{at}/metrics")[1].endswith("# EOF\n"))
        before, held = memory(), []
        for i in range(1000):
            held.append(socket.socket())
            self.addCleanup(held[-1].close)
            held[-1].setblocking(False)
            held[-1].connect_ex((host, int(port)))
            if i % 100 == 99:
                self.assertLess(len(os.listdir(f"/proc/{process.pid}/fd")), 100)
        for byte in b"GET /metrics HTTP":
            for each in held:
                try:
                    each.send(bytes([byte]))
                except OSError:
                    pass  # dropped for one that came later, or not taken yet
            self.assertLess(len(os.listdir(f"/proc/{process.pid}/fd")), 100)
        self.until(lambda: self.get(f"http://{at}/metrics")[1].endswith("# EOF\n"))
        self.assertLess(memory() - before, 64 << 10)
        self.assertEqual(self.end(process), 0)

    def test_addresses(self):
        tool = lambda address: cases.run([f"{BIN}/rangescope", "profile", "--runs", self.folder.name, "--openmetrics", address, "--", "true"])
        for address in ("", "x", ":1", "localhost:9400", "example.com:80", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:-1", "1.2.3:x", "\x1b[31m:1"):
            done = tool(address)
            if address:
                self.assertEqual(done.returncode, 64, f"{address!r}: {done.stderr}")
            self.assertNotIn("\x1b", done.stderr)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            done = tool(f"127.0.0.1:{taken.getsockname()[1]}")
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn("cannot listen there", done.stderr)
        self.assertIn("serving http://127.0.0.1:", tool("0").stderr, "a port alone is of this machine")


if __name__ == "__main__":
    cases.main()
