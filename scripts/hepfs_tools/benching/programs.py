"""The programs under test: built where no path is given, started, and what they took once they ended."""

import json
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from hepfs_tools import ROOT
from hepfs_tools.benching.measure import Taken, Unmeasurable, cat


def add_arguments(parser):
    """The arguments of everything that starts programs."""
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where test files go; some GB are needed")
    parser.add_argument("--hepfs", help="the program, built for release where not given")
    parser.add_argument("--plugins", help="a folder of HDF5 filter plugins, given to `hepfs mount`")


class Daemon:
    """A process that serves a mount, with the workers it has now."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def pids(self):
        """Its own and those of its workers."""
        children = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return {self.process.pid, *(int(child) for file in children for child in file.read_text().split())}

    def memory(self):
        """Peak resident bytes."""
        lines = (line for pid in self.pids() for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))

    def core_seconds(self):
        """Processor time up to now."""
        # The clock of another process, as clock_getcpuclockid(3) composes it: in nanoseconds, with threads that ended.
        return sum(time.clock_gettime(~pid << 3 | 2) for pid in self.pids())


class Programs:
    """The programs under test."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder

    @cached_property
    def hepfs(self):
        """The program."""
        return self.arguments.hepfs or build(["build", "--release"], "bin", "hepfs")

    @cached_property
    def nullfs(self):
        """The null file system."""
        return self.arguments.nullfs or build(["bench", "--no-run", "--bench", "nullfs"], "bench", "nullfs")

    @cached_property
    def engine(self):
        """Reads without FUSE."""
        return self.arguments.engine or build(["bench", "--no-run", "--bench", "engine"], "bench", "engine")

    @contextmanager
    def mounted(self, path, *options, cache="none"):
        """A mount; gives the mount point and the daemon."""
        mountpoint = self.folder / "mnt"
        plugins = ["--plugins", self.arguments.plugins] if self.arguments.plugins else []
        command = [self.hepfs, "mount", "--foreground", "--cache-folder", cache, *plugins, *options, path, mountpoint]
        with self.served(command, mountpoint, ".hepfs") as daemon:
            yield mountpoint, daemon

    @contextmanager
    def null(self, size, *options, copy=None):
        """The null file system; gives the mount point and the daemon."""
        mountpoint = self.folder / "null"
        command = [self.nullfs, *options, mountpoint, str(size), *([copy] if copy else [])]
        with self.served(command, mountpoint, "zeros") as daemon:
            yield mountpoint, daemon

    @contextmanager
    def served(self, command, mountpoint, known):
        """A daemon from its mount to its end."""
        mountpoint.mkdir(exist_ok=True)
        daemon = Daemon(command)
        try:
            for _ in range(1000):
                if (mountpoint / known).exists():
                    break
                if daemon.process.poll() is not None:
                    raise Unmeasurable(f"{Path(command[0]).name} ended before it had mounted")
                time.sleep(0.01)
            else:
                raise Unmeasurable("the mount did not answer within 10 s")
            yield daemon
        finally:
            if daemon.process.returncode is None:
                # It ends the mounts of the null file system as well.
                subprocess.run([self.hepfs, "umount", "--lazy", mountpoint], check=False)
                daemon.process.wait(20)

    @contextmanager
    def shown(self, path, name, *options):
        """A file of a new mount, and the daemon; where it is not shown or cannot be read, the mount says why."""
        with self.mounted(path, *options) as (mountpoint, daemon):
            try:
                yield mountpoint / name, daemon
            except (OSError, Unmeasurable) as error:
                raise Unmeasurable(why(mountpoint, error)) from None

    def read_mounted(self, path, name, *options):
        """`cat` of a file of a new mount, with the core-seconds and the memory of both."""
        with self.shown(path, name, *options) as (file, daemon):
            taken = cat_served(file, daemon)
            taken.memory = daemon.memory()
        return taken

    def read_null(self, size):
        """`cat` of the null file system, with the core-seconds of both."""
        with self.null(size) as (mountpoint, daemon):
            return cat_served(mountpoint / "zeros", daemon)

    def read_engine(self, path, name, cores):
        """The same bytes without FUSE, on "one" or on "all" cores."""
        plugins = [self.arguments.plugins] if self.arguments.plugins else []
        command = [self.engine, "--plain", path, name, cores, *plugins]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise Unmeasurable((done.stderr.strip().splitlines() or ["no word"])[-1].removeprefix("engine: "))
        told = json.loads(done.stdout)
        return Taken(told["seconds"], told["core_seconds"], through_worker=told["worker_bytes"] > 0)


def cat_served(file, daemon):
    """`cat` of a file, with the core-seconds of its daemon meanwhile."""
    before = daemon.core_seconds()
    taken = cat(file)
    taken.core_seconds += daemon.core_seconds() - before
    return taken


def why(mountpoint, error):
    """What a mount tells of a column that could not be read."""
    columns = json.loads((mountpoint / "t/metadata.json").read_text()).get("columns", [])
    told = [column["error"] for column in columns if "error" in column]
    told += (mountpoint / ".hepfs/errors").read_text().splitlines()[-1:]
    return told[0] if told else str(error)


def build(command, kind, name):
    """Builds a program; its path."""
    command = ["cargo", *command, "--message-format=json", "--quiet"]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in output.splitlines():
        message = json.loads(line)
        target = message.get("target", {})
        if message.get("executable") and target.get("name") == name and kind in target.get("kind", []):
            return message["executable"]
    sys.exit(f"cargo built no {name}")
