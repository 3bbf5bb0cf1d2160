"""Writes a large table of HEP001, for checks that count chunks."""

import h5py
import numpy as np

GZIP = {"compression": "gzip", "compression_opts": 1, "shuffle": True}


def columns(rows, count):
    """Walks with steps of 0 to 2: integers, floats, and one column of floats with NaN. Sums of floats are exact."""
    rng = np.random.default_rng(1)
    for at in range(count):
        walk = np.cumsum(rng.integers(0, 3, rows)).astype("f8" if at % 2 else "i8")
        if at == 1:
            walk[::1000] = np.nan
        yield f"c{at}", walk


def add(file, name, columns, chunk):
    """A table in an open file; `columns` are names and values."""
    table = file.create_group(name)
    table.attrs.update({"CLASS": np.bytes_("COLUMN_TABLE"), "VERSION": np.bytes_("1.0")})
    for name, values in columns:
        table.create_dataset(name, data=values, chunks=(chunk,), **GZIP)


def write(path, rows, count, chunk):
    """A file with one table, `t`."""
    with h5py.File(path, "w") as file:
        add(file, "t", columns(rows, count), chunk)
