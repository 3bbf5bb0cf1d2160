#!/usr/bin/env python3
"""Long doubles (x87, binary128), by themselves and as fields, columns and items, as NumPy, pandas, pyarrow, DuckDB and
polars read them from a mount.

    long_double.py write FOLDER          FOLDER/long.h5
    long_double.py check FOLDER MOUNT    the nearest float64, told in a note, and in `.npy` what is stored
"""

import json
import math
import sys
from fractions import Fraction
from pathlib import Path

import duckdb
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.feather as feather
import pyarrow.parquet as pq
from h5py import h5d, h5s, h5t

# On a machine whose long double is another one, these are bytes.
ONE = Fraction(1)
NUMBERS = [ONE, Fraction(-5, 2), Fraction(1, 10), Fraction(1, 3), ONE + Fraction(1, 1 << 53), ONE + Fraction(3, 1 << 53), Fraction(2) ** 2000, Fraction(1, 1 << 1100), Fraction(0)]


def encoded(number, digits):
    """A number of a 15-bit exponent and `digits` behind the point, rounded down: sign and exponent, mantissa."""
    if not number:
        return 0, 0
    sign, number = (1 << 15 if number < 0 else 0), abs(number)
    power = math.floor(math.log2(number.numerator) - math.log2(number.denominator))
    power += (number >= Fraction(2) ** (power + 1)) - (number < Fraction(2) ** power)
    return sign | power + 16383, math.floor(number / Fraction(2) ** power * (1 << digits))


def x87(number):
    """Its 16 bytes."""
    head, mantissa = encoded(number, 63)
    return (head << 64 | mantissa).to_bytes(16, "little")


def binary128(number):
    """Its 16 bytes, whose leading bit is left out."""
    head, mantissa = encoded(number, 112)
    return (head << 112 | mantissa & (1 << 112) - 1).to_bytes(16, "little")


def nearest(number):
    """By Python's fractions."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def quadruple():
    """The type of binary128."""
    kind = h5t.IEEE_F64LE.copy()
    kind.set_size(16)
    kind.set_precision(128)
    kind.set_fields(127, 112, 15, 0, 112)
    kind.set_ebias(16383)
    return kind


def written(file, name, kind, data, shape):
    """A dataset of these bytes."""
    space = h5s.create_simple(shape)
    made = h5d.create(file.id, name.encode(), kind, space)
    made.write(h5s.ALL, h5s.ALL, np.frombuffer(data, f"V{kind.get_size()}"), kind)


def write(folder):
    """The file."""
    count = len(NUMBERS)
    with h5py.File(Path(folder) / "long.h5", "w") as file:
        extended = b"".join(map(x87, NUMBERS))
        written(file, "extended", h5t.NATIVE_LDOUBLE.copy(), extended, (count,))
        written(file, "quadruple", quadruple(), b"".join(map(binary128, NUMBERS)), (count,))
        written(file, "grid", h5t.NATIVE_LDOUBLE.copy(), extended, (count // 3, 3))
        written(file, "exact", h5t.NATIVE_LDOUBLE.copy(), extended[:32], (2,))
        file["record"] = np.array([(at, np.longdouble(at) / 3) for at in range(3)], [("n", "i4"), ("x", np.longdouble)])
        file["pair"] = np.array([1, 2, 3], np.longdouble)
        file["pair"].attrs["_FillValue"] = np.longdouble(2)
        # By its shape a table, which counts its own column alone.
        for name in ("time", "energy", "exact"):
            file[f"guessed/{name}"] = np.arange(10, dtype=np.longdouble if name == "exact" else "f8")
        file["guessed/apart"] = np.arange(4, dtype=np.longdouble)


def check(folder, mount):
    """All values."""
    top = Path(mount)
    mount = top / "long.h5"
    wanted = [nearest(number) for number in NUMBERS]
    for name in ("extended", "quadruple"):
        path = mount / f"{name}.parquet"
        assert pq.read_table(path).schema.field(name).type == "double"
        assert pq.read_table(path)[name].to_pylist() == wanted, name
        assert feather.read_table(mount / f"{name}.arrow", memory_map=True)[name].to_pylist() == wanted, name
        assert pl.read_parquet(path)[name].to_list() == wanted, name
        assert [row[0] for row in duckdb.sql(f"select * from '{path}'").fetchall()] == wanted, name
        assert pd.read_csv(mount / f"{name}.csv")[name].tolist() == wanted, name
        assert list(map(float, (mount / f"{name}.txt").read_text().split())) == wanted, name
    found = duckdb.sql(f"select max(extended), count(*) filter (extended > 0.2) from '{mount}/extended.parquet'").fetchall()[0]
    assert found == (max(wanted), sum(one > 0.2 for one in wanted)), found
    stored = b"".join(map(x87, NUMBERS))
    assert np.load(mount / "extended.npy").tobytes() == (mount / "extended.raw").read_bytes() == stored
    with h5py.File(Path(folder) / "long.h5") as file:
        if h5t.NATIVE_LDOUBLE.get_fields() == (79, 64, 15, 0, 64):
            # The other implementation: the processor's own.
            with np.errstate(over="ignore"):
                assert file["extended"][:].astype("f8").tolist() == wanted
    assert pq.read_table(mount / "grid.parquet")["grid"].to_pylist() == np.array(wanted).reshape(-1, 3).tolist()
    assert pd.read_parquet(mount / "guessed/table.parquet")["exact"].tolist() == list(range(10))
    assert pq.read_table(mount / "pair.parquet")["pair"].to_pylist() == [1, None, 3]
    record = pd.read_parquet(mount / "record/table.parquet")
    assert record["x"].tolist() == [at / 3 for at in range(3)], record
    assert pd.read_csv(mount / "record/where/x:gt:0.5/table.csv")["n"].tolist() == [2]
    told = [json.loads(line) for line in (top / ".hepfs/findings").read_text().splitlines()]
    told = [line for line in told if line["id"] == "values/long-double"]
    # A third and two thirds; in datasets by themselves they are not counted.
    found = sorted((line["path"], line.get("rows", 0), line["severity"]) for line in told)
    alone = ["/exact", "/extended", "/grid", "/guessed/apart", "/pair", "/quadruple"]
    assert found == [(name, 0, "note") for name in alone] + [("/record", 2, "note")], told
    assert not (top / ".hepfs/errors").read_text()
    print("7 datasets")


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](*sys.argv[2:])
