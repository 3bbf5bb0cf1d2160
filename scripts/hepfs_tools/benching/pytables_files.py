#!/usr/bin/env python3
"""Writes tables of PyTables to measure with: 25 fields, 201 bytes a row, once for each kind of filter.

    python3 -m hepfs_tools.benching.pytables_files FOLDER [--rows N] [--filters none zlib blosc] [--index]

`FOLDER/none.h5`, `zlib.h5` (5, shuffle), `blosc.h5` (blosc:lz4 5, shuffle), each with a table `/t`: `x`, float64 at random in
0..1000; `f1` … `f16`, float64 with two decimals; `i0` (100 values) … `i3`, int32; `s0` (50 values) … `s2`, 16-byte strings; `ok`, a
bool. `--index` adds a completely sorted index of `x`. A file that is there with as many rows is left as it is (an index is added).
"""

import argparse
from pathlib import Path

import numpy as np
import tables as tb

FIELDS = (
    [("x", "<f8")]
    + [(f"f{at}", "<f8") for at in range(1, 17)]
    + [(f"i{at}", "<i4") for at in range(4)]
    + [(f"s{at}", "S16") for at in range(3)]
    + [("ok", "?")]
)
FILTERS = {
    "none": None,
    "zlib": tb.Filters(5, "zlib", shuffle=True),
    "blosc": tb.Filters(5, "blosc:lz4", shuffle=True),
}
AT_ONCE = 500_000


def some_rows(count, start):
    """Rows from a place on: the same whatever the filter."""
    random = np.random.default_rng(start + 1)
    rows = np.zeros(count, FIELDS)
    rows["x"] = random.random(count) * 1000
    for at in range(1, 17):
        rows[f"f{at}"] = np.round(random.standard_normal(count, "f4") * 100 * at, 2)
    rows["i0"] = random.integers(0, 100, count)
    rows["i1"] = np.arange(start, start + count)
    rows["i2"] = random.integers(0, 1000, count)
    rows["i3"] = random.integers(-(2**31), 2**31, count)
    for at, values in enumerate((50, 5_000, 500_000)):
        words = np.array([f"{'abc'[at]} word {word}" for word in range(values)], "S16")
        rows[f"s{at}"] = words[random.integers(0, values, count)]
    rows["ok"] = random.integers(0, 3, count) > 0
    return rows


def has(path, rows):
    """Whether a file has a whole table."""
    if not path.exists():
        return False
    try:
        with tb.open_file(path) as file:
            return file.root.t.nrows == rows
    except (OSError, tb.HDF5ExtError, tb.NoSuchNodeError):
        return False


def main():
    """The files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--filters", nargs="+", choices=list(FILTERS), default=list(FILTERS))
    parser.add_argument("--index", action="store_true")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in arguments.filters if not has(arguments.folder / f"{name}.h5", arguments.rows)]
    files = [tb.open_file(arguments.folder / f"{name}.h5", "w") for name in wanted]
    kind = np.dtype(FIELDS)
    options = {"expectedrows": arguments.rows}
    tables = [file.create_table("/", "t", kind, filters=FILTERS[name], **options) for file, name in zip(files, wanted)]
    for start in range(0, arguments.rows if tables else 0, AT_ONCE):
        rows = some_rows(min(AT_ONCE, arguments.rows - start), start)
        for table in tables:
            table.append(rows)
    for file in files:
        file.close()
    for name in arguments.filters:
        path = arguments.folder / f"{name}.h5"
        with tb.open_file(path, "a") as file:
            column = file.root.t.cols.x
            if arguments.index and not column.is_indexed:
                column.create_csindex()
            print(f"{path}: {path.stat().st_size} bytes, chunks of {file.root.t.chunkshape[0]} rows")


if __name__ == "__main__":
    main()
