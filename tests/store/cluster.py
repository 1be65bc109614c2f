"""A PostgreSQL cluster in a folder of its own, on a unix socket there, as a user who is not root; stopped and removed at the end.
With `tls` on a port of 127.0.0.1 too, with a certificate that it signed itself: server.crt."""
import glob
import os
import shutil
import socket
import subprocess
import tempfile

PROGRAMS = next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)), None)
NOBODY = 65534


class Cluster:
    def __init__(self, tls=False):
        self.folder = tempfile.mkdtemp(prefix="rangescope-pg-", dir="/tmp")  # the path of a socket has 107 bytes at most
        self.user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
        if self.user:
            os.chown(self.folder, NOBODY, NOBODY)
        os.chmod(self.folder, 0o755)
        self.data = os.path.join(self.folder, "data")
        try:
            with open(os.path.join(self.folder, "password"), "w", encoding="utf-8") as f:
                f.write("correct horse\n")
            os.chmod(f.name, 0o644)
            self.run("initdb", "-D", self.data, "-U", "owner", "--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={f.name}", "--no-sync", "-E", "UTF8")
            with open(os.path.join(self.data, "pg_hba.conf"), "w", encoding="utf-8") as f:
                f.write("local secret all scram-sha-256\nlocal all all trust\n")
            options = self.tls() if tls else ""
            options += f"-c listen_addresses='' -c unix_socket_directories={self.folder} -c fsync=off -c log_statement=all -c max_connections=40"
            options = options.replace("-c listen_addresses='' ", "") if tls else options
            self.run("pg_ctl", "-D", self.data, "-l", os.path.join(self.folder, "log"), "-w", "-t", "60", "-o", options, "start")
        except BaseException:
            self.stop()
            raise

    def tls(self):
        self.certificate("server")
        with open(os.path.join(self.data, "pg_hba.conf"), "a", encoding="utf-8") as f:
            f.write("hostssl all all 127.0.0.1/32 trust\n")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        return (f"-c listen_addresses=127.0.0.1 -c port={self.port} -c ssl=on -c ssl_cert_file={self.folder}/server.crt "
                f"-c ssl_key_file={self.folder}/server.key -c log_connections=on ")

    def certificate(self, name):
        subprocess.run([*self.user, "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-keyout", f"{name}.key", "-out", f"{name}.crt"], check=True, cwd=self.folder, capture_output=True,
                       timeout=600, env={**os.environ, "RANDFILE": "/dev/null", "HOME": self.folder})
        return os.path.join(self.folder, f"{name}.crt")

    def run(self, program, *words):
        subprocess.run([*self.user, os.path.join(PROGRAMS, program), *words], check=True, cwd=self.folder, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=600)

    def sql(self, database, text, user="owner"):
        """Rows as lists of text."""
        done = subprocess.run([os.path.join(PROGRAMS, "psql"), "-X", "-At", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-U", user, "-d", database, "-c", text],
                              check=True, capture_output=True, text=True, timeout=600)
        return [line.split("\t") for line in done.stdout.splitlines()]

    def url(self, database, user="owner"):
        return f"postgresql://{user}@/{database}?host={self.folder}"

    def stop(self):
        if os.path.exists(os.path.join(self.data, "postmaster.pid")):
            self.run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)
