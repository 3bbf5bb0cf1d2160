"""Names, sizes and the first byte."""

import os
import statistics
import subprocess

from hepfs_tools.benching.files import LAYOUTS, numbers, write_column, write_wide
from hepfs_tools.benching.measure import comparison, progress, seconds


def stat_all(programs, path):
    """`stat` of every file of a new mount."""
    with programs.mounted(path) as (mountpoint, _):

        def walk():
            for directory, _, names in os.walk(mountpoint / "t"):
                for name in names:
                    os.stat(os.path.join(directory, name))

        return seconds(walk)


def first_byte(programs, path, mountpoint):
    """From `hepfs mount` to the first byte of a column."""

    def work():
        subprocess.run([programs.hepfs, "mount", "--cache-folder", "none", path, mountpoint], check=True)
        with open(mountpoint / "t/columns/x.raw", "rb", buffering=0) as file:
            file.read(1)

    mountpoint.mkdir(exist_ok=True)
    try:
        return seconds(work)
    finally:
        subprocess.run([programs.hepfs, "umount", mountpoint], check=False)


def bench(programs, folder, arguments):
    """`stat` of every file of a table of 1,000 columns × 10^9 rows, and from mount to the first byte."""
    progress("wide")
    table = comparison()
    path = folder / "wide.h5"
    write_wide(path, 1000, 10**9)
    taken = statistics.median(stat_all(programs, path) for _ in range(arguments.repeats))
    table.row("`stat` of every file, 1,000 columns × 10^9 rows, s", f"{taken:.2f}", "", "", "< 1")
    path.unlink()

    path = folder / "first.h5"
    write_column(path, LAYOUTS["shuffle, gzip 4"], numbers("int64", min(arguments.rows, 10_000_000)))
    taken = statistics.median(first_byte(programs, path, folder / "mnt") for _ in range(arguments.repeats))
    table.row("mount to first byte, s", f"{taken:.3f}", "", "", "< 0.3")
    path.unlink()
    table.end()
