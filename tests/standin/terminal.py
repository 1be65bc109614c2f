"""A small job-control shell on a terminal of its own: what Ctrl-C, Ctrl-Z and fg do to a program, without a real shell."""
import fcntl
import os
import pty
import select
import signal
import sys
import time

PATIENCE_S = 300  # for what comes at once on an idle machine


def _shell(argv, cwd, environment, says, told):
    """The session leader: one foreground job; says "stopped" and "ended STATUS", is told "fg"."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpgrp())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.chdir(cwd)
        os.execve(argv[0], argv, environment)
    try:
        os.setpgid(job, job)
    except OSError:
        pass
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            os.tcsetpgrp(0, os.getpgrp())
            os.write(says, b"stopped\n")
            os.read(told, 16)
            os.tcsetpgrp(0, job)
            os.killpg(job, signal.SIGCONT)
            continue
        os.write(says, f"ended {os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)


class Terminal:
    def __init__(self, argv, cwd, environment):
        heard, says = os.pipe()
        told, tells = os.pipe()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                _shell(argv, cwd, environment, says, told)
            except BaseException as error:  # never back into the test
                os.write(says, f"broken {error}\n".encode())
            os._exit(1)
        for fd in (says, told):
            os.close(fd)
        self.heard, self.tells, self.shown = heard, tells, b""
        fcntl.fcntl(heard, fcntl.F_SETFL, os.O_NONBLOCK)

    def press(self, key):
        os.write(self.master, key)

    def fg(self):
        os.write(self.tells, b"fg\n")

    def wait_for(self, word, seconds=PATIENCE_S):
        """The shell's next report, which must begin with word; what the terminal shows is kept in self.shown."""
        until = time.monotonic() + seconds
        line = b""
        while not line.endswith(b"\n"):
            if time.monotonic() > until:
                raise AssertionError(f"no '{word}' within {seconds} s; shown: {self.shown.decode(errors='replace')}")
            ready, _, _ = select.select([self.master, self.heard], [], [], 0.1)
            if self.master in ready:
                try:
                    self.shown += os.read(self.master, 65536)
                except OSError:
                    time.sleep(0.02)  # nobody holds the other side any more
            if self.heard in ready:
                line += os.read(self.heard, 1)
        text = line.decode().strip()
        if not text.startswith(word):
            raise AssertionError(f"'{text}' instead of '{word}'; shown: {self.shown.decode(errors='replace')}")
        return text

    def close(self):
        for fd in (self.master, self.heard, self.tells):
            os.close(fd)
        os.waitpid(self.pid, 0)


def state(pid):
    """The letter of /proc (T is stopped), "" for a process that is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            letter = f.read().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return ""
    return "" if letter in "ZX" else letter


def name_of(pid):
    """Of the program that a process runs."""
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return ""


def soon(condition, seconds=PATIENCE_S):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


if __name__ == "__main__":
    sys.exit("a module of signals.py")
