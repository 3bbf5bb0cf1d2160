"""Files to measure: HEP001 tables with one column `x`, in every layout."""

import os
from dataclasses import dataclass, field

import h5py
import hdf5plugin
import numpy as np

from hepfs_tools.benching.measure import Unmeasurable

CHUNK_BYTES = 1 << 20
STRING_WIDTH = 16


@dataclass(frozen=True)
class Layout:
    """How a column is stored, and the least ratio of its speed to h5py's; `None` where none is required."""

    options: dict = field(default_factory=dict)
    engine: float | None = None
    mount: float | None = None
    variable: bool = False

    @property
    def is_plain(self):
        """Whether the bytes lie in the file as they are read."""
        return not self.variable and self.options.keys() <= {"chunks"}


# `chunks`: True for 1 MiB, "auto" for h5py's own choice.
GZIP = {"shuffle": True, "compression": "gzip", "compression_opts": 4}
LAYOUTS = {
    "contiguous": Layout(engine=1.6),
    "chunked": Layout({"chunks": True}, engine=1.6),
    "shuffle, gzip 4": Layout({"chunks": True, **GZIP}, engine=6, mount=3),
    "shuffle, gzip 4, h5py's chunks": Layout({"chunks": "auto", **GZIP}, engine=4, mount=3),
    "shuffle, zstd 3": Layout({"chunks": True, "shuffle": True, **hdf5plugin.Zstd(clevel=3)}, engine=2.5, mount=1.5),
    "shuffle, lz4": Layout({"chunks": True, "shuffle": True, **hdf5plugin.LZ4()}, engine=1.8, mount=1.2),
    "blosc-lz4": Layout({"chunks": True, **hdf5plugin.Blosc("lz4", 5)}, engine=1.8, mount=1.2),
    "blosc2-zstd": Layout({"chunks": True, **hdf5plugin.Blosc2("zstd", 3)}, engine=1.8, mount=1.2),
    "bitshuffle-lz4": Layout({"chunks": True, **hdf5plugin.Bitshuffle()}, engine=1.8, mount=1.2),
    "shuffle, lzf": Layout({"chunks": True, "shuffle": True, "compression": "lzf"}, engine=2.5, mount=1.2),
    "szip": Layout({"chunks": True, "compression": "szip", "compression_opts": ("nn", 16)}, mount=1.2),
}
STRING_LAYOUTS = {
    "strings of 16 bytes": Layout({"chunks": True}, engine=1.6),
    "variable strings": Layout({"chunks": True}, mount=8, variable=True),
}
NUMBERS = ("int64", "float32")


def numbers(kind, rows):
    """Columns as detectors write them: rising time stamps with jitter, energies of limited precision."""
    random = np.random.default_rng(1)
    if kind == "int64":
        return np.cumsum(random.integers(0, 2000, rows, dtype=np.int64)) + 1_700_000_000_000_000_000
    return np.round(random.gamma(2.0, 8.0, rows) * 64).astype(np.float32) / np.float32(64)


def strings(rows):
    """Names of 4 to 15 bytes."""
    names = np.array([f"det{i}" + "x" * (i % 8) for i in range(1000)], f"S{STRING_WIDTH}")
    return names[np.random.default_rng(1).integers(0, len(names), rows)]


def write_table(path, **settings):
    """An empty table; gives the file and the table's group."""
    file = h5py.File(path, "w", **settings)
    table = file.create_group("t")
    table.attrs["CLASS"] = np.bytes_("COLUMN_TABLE")
    table.attrs["VERSION"] = np.bytes_("1.0")
    return file, table


def write_column(path, layout, data):
    """A table with the column `x`, brought to the disk, so that the page cache can let go of it."""
    options = dict(layout.options)
    if layout.variable:
        # Chunks hold 16 bytes for each; what those lead to lies elsewhere.
        data, options["dtype"] = data.astype(object), h5py.string_dtype()
    if options.get("chunks") is True:
        options["chunks"] = (min(len(data), CHUNK_BYTES // (16 if layout.variable else data.itemsize)),)
    elif options.get("chunks") == "auto":
        options["chunks"] = True
    file, table = write_table(path)
    with file:
        try:
            table.create_dataset("x", data=data, **options)
        except ValueError as error:
            raise Unmeasurable(f"h5py cannot write it: {error}") from None
    with open(path, "rb") as written:
        os.fsync(written)


def write_wide(path, columns, rows):
    """Many long columns, chunked and never written."""
    file, table = write_table(path, libver="latest")
    with file:
        for column in range(columns):
            table.create_dataset(f"c{column:04}", (rows,), "i8", chunks=(131072,))


def warm(*paths):
    """Brings files into the page cache."""
    for path in paths:
        with open(path, "rb") as file:
            while file.read(1 << 24):
                pass


def chill(path):
    """Has the page cache let go of a file."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
