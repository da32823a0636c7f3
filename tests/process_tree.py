"""What the tests of failures need to know about processes: a run under way, all that belongs to it, and what is left."""

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import harness


def wait_until(condition, timeout, what):
    """The first true value of condition(); fails when there is none in time."""
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited {timeout} s in vain for {what}")


def _stat(pid):
    """(parent, state, start time): what tells a process from a later one with its number. None: gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[1]), fields[0], fields[19]


def _arguments(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def descendants(pid):
    """Processes below `pid`, as (pid, start time)."""
    stats = {int(name): _stat(name) for name in os.listdir("/proc") if name.isdigit()}
    found, border = [], [pid]
    while border:
        parent = border.pop()
        for child, stat in stats.items():
            if stat and stat[0] == parent:
                found.append((child, stat[2]))
                border.append(child)
    return found


def is_alive(process):
    stat = _stat(process[0])
    return stat is not None and stat[2] == process[1] and stat[1] != "Z"


def cgroups_of(host_pid):
    """In all hierarchies; os.walk passes over what vanishes meanwhile."""
    name = f"funcpipe-{host_pid}"
    return [os.path.join(path, name) for path, folders, _ in os.walk("/sys/fs/cgroup") if name in folders]


def listening_ports(pid):
    """Of the TCP sockets that `pid` holds."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(descriptor)
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(line[1].split(":")[1], 16) for line in lines if line[3] == "0A" and line[9] in inodes}


def is_listened_to(port):
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(line[3] == "0A" and int(line[1].split(":")[1], 16) == port for line in lines)


class Run:
    """`funcpipe ARGUMENTS` under way. Its output goes to files, so that it never waits for a reader."""

    def __init__(self, *arguments, **options):
        self.output = tempfile.TemporaryFile("w+")
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [harness.FUNCPIPE, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.errors,
            env=harness.ENVIRONMENT, **options)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.output.close()
        self.errors.close()

    def stderr(self):
        return os.pread(self.errors.fileno(), 1 << 20, 0).decode()

    def stdout(self):
        return os.pread(self.output.fileno(), 1 << 20, 0).decode()

    def wait(self, timeout):
        """The exit code. `seconds` becomes how long it took."""
        begin = time.monotonic()
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout} s; it said: {self.stderr()}") from None
        self.seconds = time.monotonic() - begin
        return code

    def wait_for_stderr(self, text, timeout=30):
        def said():
            if text in self.stderr():
                return True
            if self.process.poll() is not None:
                raise AssertionError(f"ended with {self.process.returncode} before '{text}': {self.stderr()}")
            return False
        wait_until(said, timeout, f"'{text}'; stderr: {self.stderr()}")

    def children(self, command):
        """Pids of the processes `funcpipe COMMAND` below this one."""
        return [pid for pid, _ in descendants(self.pid) if _arguments(pid)[1:2] == [command]]

    def wait_for_host(self):
        return wait_until(lambda: self.children("host"), 20, "the host")[0]

    def signal(self, number=signal.SIGINT):
        self.process.send_signal(number)


class Belongings:
    """Processes, cgroups and ports of a run, noted while it is under way."""

    def __init__(self, run):
        self.processes = descendants(run.pid)
        self.hosts = run.children("host")
        self.ports = set().union(*(listening_ports(host) for host in self.hosts))

    def left(self):
        """What is still there, in words."""
        left = [f"process {pid}: {' '.join(_arguments(pid))}" for pid, start in self.processes if is_alive((pid, start))]
        left += [f"cgroup {path}" for host in self.hosts for path in cgroups_of(host)]
        return left + [f"port {port}" for port in self.ports if is_listened_to(port)]

    def check_gone(self, timeout=5):
        until = time.monotonic() + timeout
        while self.left() and time.monotonic() < until:
            time.sleep(0.02)
        if self.left():
            raise AssertionError(f"left behind after {timeout} s: {self.left()}")
