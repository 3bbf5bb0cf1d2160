"""What FUSE allows: files that are in memory already, behind the same adapter, in its various settings."""

import os
from pathlib import Path

import numpy as np

from hepfs_tools.benching.access import BLOCK, blocks, places
from hepfs_tools.benching.files import numbers
from hepfs_tools.benching.measure import Rounds, Table, Taken, Unmeasurable, cat, cores, progress, run, seconds

# Arguments of the null file system; a read-ahead that is set after the mount, in KiB.
SETTINGS = {
    "page cache": ([], None),
    "answers copied together first": (["--copied"], None),
    "read-ahead of 128 KiB, as an ordinary user has": ([], 128),
    "read-ahead of 4 MiB": ([], 4096),
    "requests of at most 128 KiB": (["--max-read", str(128 << 10)], None),
    "one session thread": (["--threads", "1"], None),
    "as many session threads as cores": (["--threads", str(cores())], None),
    f"{4 * cores()} session threads": (["--threads", str(4 * cores())], None),
    "`direct_io`": (["--direct-io"], None),
    "`direct_io`, requests of at most 128 KiB": (["--direct-io", "--max-read", str(128 << 10)], None),
    "`direct_io`, one session thread": (["--direct-io", "--threads", "1"], None),
}


def by_blocks(block):
    """A Python program that reads blocks."""

    def read(mountpoint):
        with open(mountpoint / "zeros", "rb", buffering=0) as file:
            return Taken(seconds(lambda: all(iter(lambda: file.read(block), b""))))

    return read


def by_mapping(mountpoint):
    """NumPy over a map of the file."""
    return Taken(seconds(lambda: np.memmap(mountpoint / "zeros", np.int64, "r").sum()))


def by_duckdb(mountpoint):
    """A sum over a Parquet file."""
    import duckdb

    with duckdb.connect() as connection:
        query = f"select sum(x) from read_parquet('{mountpoint / 'copy'}')"
        return Taken(seconds(lambda: connection.sql(query).fetchall()))


def again(mountpoint):
    """`cat` of what was read just before."""
    cat(mountpoint / "zeros")
    return cat(mountpoint / "zeros")


def at_random(mountpoint):
    """Blocks of 4 KiB, as `access` reads them."""
    with open(mountpoint / "zeros", "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        return blocks(lambda offset: os.pread(file.fileno(), BLOCK, offset), places(size))


READERS = {
    "`cat`": lambda mountpoint: cat(mountpoint / "zeros"),
    "again": again,
    "`wc -l`": lambda mountpoint: run(["wc", "-l", mountpoint / "zeros"]),
    "Python, 1 MiB": by_blocks(1 << 20),
    "Python, 128 KiB": by_blocks(128 << 10),
    "Python, 4 KiB": by_blocks(4 << 10),
    "NumPy map": by_mapping,
    "DuckDB": by_duckdb,
}


def set_read_ahead(path, kib):
    """Of the mount that a path is in; root alone may."""
    device = os.stat(path).st_dev
    setting = Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")
    try:
        setting.write_text(str(kib))
    except OSError as error:
        raise Unmeasurable(f"the read-ahead cannot be set: {error}") from None


def measured(programs, size, parquet, setting, read):
    """One reader of a new mount."""
    options, read_ahead = SETTINGS[setting]
    with programs.null(size, *options, copy=parquet) as (mountpoint, daemon):
        if read_ahead:
            set_read_ahead(mountpoint / "zeros", read_ahead)
        before = daemon.core_seconds()
        taken = read(mountpoint)
        taken.core_seconds += daemon.core_seconds() - before
    return taken


def bench(programs, folder, arguments):
    """The null file system, in GB/s."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = numbers("int64", arguments.rows)
    parquet = folder / "null.parquet"
    pq.write_table(pa.table({"x": data}), parquet, compression="none", use_dictionary=False, row_group_size=131_072)
    sizes = {reader: data.nbytes for reader in READERS} | {"DuckDB": parquet.stat().st_size}
    table = Table("null file system, GB/s", *READERS, "`cat`: core-s/GB", "random 4 KiB: p50, p99, ms")
    for setting in SETTINGS:
        progress(f"ceiling: {setting}")
        measures = {
            reader: lambda reader=reader: measured(
                programs, data.nbytes, parquet if reader == "DuckDB" else None, setting, READERS[reader]
            )
            for reader in READERS
        }
        measures["random"] = lambda: measured(programs, data.nbytes, None, setting, at_random)
        rounds = Rounds(arguments.repeats, measures)
        cells = [
            f"{rounds.median(reader, lambda taken, reader=reader: sizes[reader] / 1e9 / taken.seconds):.2f}" if rounds.has(reader) else "–"
            for reader in READERS
        ]
        if rounds.has("`cat`", "random"):
            cells.append(f"{rounds.median('`cat`', lambda taken: taken.core_seconds) / data.nbytes * 1e9:.2f}")
            cells.append(", ".join(f"{rounds.slowest('random', share) * 1e3:.2f}" for share in (0.5, 0.99)))
        table.row(setting, *cells)
        table.note(setting, rounds.failed)
    parquet.unlink()
    table.end()
