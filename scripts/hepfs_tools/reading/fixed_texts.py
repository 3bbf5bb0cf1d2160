"""Texts of fixed width through other software: each must read what Python makes of the bytes, UTF-8 or not.

    python3 -m hepfs_tools.reading.fixed_texts write FILE.h5
    python3 -m hepfs_tools.reading.fixed_texts check FILE.h5 MOUNT

A Parquet page has room for texts as they are stored, and is compressed where bytes that are no UTF-8 make them longer.
The size that `stat` shows before a byte was read must be the one that is there afterwards, and little more than that of
the texts. Prints what differs, and fails if something does.
"""

import os
import sys
from pathlib import Path

import duckdb
import h5py
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 140_000


def any_bytes(width, rows):
    """At random; the last byte is none that is cut off."""
    cells = np.random.default_rng(width).integers(0, 256, (rows, width), "u1")
    cells[:, -1] |= 1
    return cells


def spread(width, rows, pattern):
    """A pattern of bytes, a turn further in each row."""
    cells = np.resize(np.frombuffer(pattern, "u1"), (rows, width)).copy()
    return cells


def late(width, rows):
    """ASCII, and bytes that are no UTF-8 in a thousand rows of a page behind."""
    cells = spread(width, rows, b"abcd efg")
    cells[100_000:101_000] = 0xFF
    return cells


def columns(rows=ROWS):
    """Name and cells of each."""
    found = {
        "plain": spread(16, rows, b"some words of text "),
        "bad": spread(16, rows, b"\xff"),
        "every": spread(16, rows, b"a\xe9b\xfc"),
        "short": any_bytes(1, rows),
        "odd": any_bytes(7, rows),
        "any": any_bytes(16, rows),
        "wide": any_bytes(90, rows),
        "umlauts": spread(16, rows, "Grüße, Wörter ✓ 😀".encode()),
        "cut": spread(7, rows, "😀é".encode()[:-1]),
    }
    if rows > 101_000:
        found["late"] = late(16, rows)
    return {name: np.ascontiguousarray(cells).view(f"S{cells.shape[1]}").ravel() for name, cells in found.items()}


def write(path):
    with h5py.File(path, "w") as file:
        for name, rows in (("t", ROWS), ("few", 3), ("none", 0)):
            fields = columns(rows)
            table = np.zeros(rows, [(field, cells.dtype) for field, cells in fields.items()] + [("pair", "S5", (2,))])
            for field, cells in fields.items():
                table[field] = cells
            table["pair"] = any_bytes(10, rows).view("S5")
            file.create_dataset(name, data=table, chunks=(max(rows // 9, 1),), maxshape=(None,))


def shown(cells):
    return [cell.decode("utf-8", "replace") for cell in cells.tolist()]


def check(path, mount):
    failures = []
    for name in ("t", "few", "none"):
        view = Path(mount) / name / "table.parquet"
        size = os.stat(view).st_size
        with h5py.File(path) as file:
            table = file[name][:]
        due = {field: shown(table[field]) for field in table.dtype.names if field != "pair"}
        frames = {
            "pyarrow": pq.read_table(view),
            "pyarrow, one by one": pq.read_table(view, pre_buffer=False, use_threads=False),
            "duckdb": duckdb.sql(f"select * from read_parquet('{view}')").arrow().read_all(),
            "polars": pl.read_parquet(view).to_arrow(),
            "polars, mapped": pl.scan_parquet(view).collect().to_arrow(),
        }
        for reader, frame in frames.items():
            for field, values in due.items():
                if frame[field].cast(pa.string()).to_pylist() != values:
                    failures.append(f"{name}/{field} by {reader}")
            pairs = [[cell.decode("utf-8", "replace") for cell in pair] for pair in table["pair"].tolist()]
            if frame["pair"].to_pylist() != pairs:
                failures.append(f"{name}/pair by {reader}")
        if os.stat(view).st_size != size or len(view.read_bytes()) != size:
            failures.append(f"{name}: the size was {size}")
        stored = table.nbytes
        if name == "t" and size > stored * 1.3:
            failures.append(f"{name}: {size} bytes for {stored}")
    print(*failures, sep="\n")
    return bool(failures)


if __name__ == "__main__":
    sys.exit({"write": write, "check": check}[sys.argv[1]](*sys.argv[2:]))
