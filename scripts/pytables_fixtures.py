#!/usr/bin/env python3
"""Writes `tests/data/pytables.h5` with PyTables, and what `table[:]` gives of it: `pytables.expected.json`; and
`pytables_said.h5`, tables that say odd things of themselves.

    python3 -m venv FOLDER && FOLDER/bin/pip install tables==3.11.1
    FOLDER/bin/python3 scripts/pytables_fixtures.py

In an environment of its own, since PyTables and h5py bring a libhdf5 each. The form is that of `make_fixtures.py`, with
`numbers` beside `csv` of times: what PyTables gives. What is stored of times is not told.
"""

import argparse
import datetime
import hashlib
import json
import struct
import warnings
from pathlib import Path

import numpy as np
import tables as tb

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
COLORS = tb.Enum({"red": 7, "green": -3, "blue": 100})
WIDE = tb.Enum({"a": 60_000, "b": 1})
TEXTS = [b"", b"a", b"a\0b", b"x ", "Grüße".encode(), b"\xff\xfe", b"exactly8"]
TIMES = [0.0, 1577934245.123456, -1.75, -0.000001, 1e-6, 2**31 - 1.0, -(2.0**31), 0.9999999, 123.5]


class Every(tb.IsDescription):
    """A column of every type, declared in another order than it is stored."""

    text = tb.StringCol(8, pos=0)
    flag = tb.BoolCol(pos=1)
    i8 = tb.Int8Col(pos=2, dflt=-1)
    i16 = tb.Int16Col(pos=3)
    i32 = tb.Int32Col(pos=4)
    i64 = tb.Int64Col(pos=5)
    u8 = tb.UInt8Col(pos=6)
    u16 = tb.UInt16Col(pos=7)
    u32 = tb.UInt32Col(pos=8)
    u64 = tb.UInt64Col(pos=9, dflt=5)
    f16 = tb.Float16Col(pos=10)
    f32 = tb.Float32Col(pos=11)
    f64 = tb.Float64Col(pos=12, dflt=np.nan)
    c64 = tb.ComplexCol(8, pos=13)
    c128 = tb.ComplexCol(16, pos=14)
    day = tb.Time32Col(pos=15)
    time = tb.Time64Col(pos=16)
    color = tb.EnumCol(COLORS, "red", base="int8", pos=17)
    wide = tb.EnumCol(WIDE, "b", base="uint16", pos=18)
    grid = tb.Int16Col((2, 3), pos=19)
    words = tb.StringCol(3, (2,), pos=20)
    flags = tb.BoolCol((3,), pos=21)
    times = tb.Time64Col((2,), pos=22)

    class nest(tb.IsDescription):
        """A column of columns."""

        _v_pos = 23
        x = tb.Float32Col(pos=0)
        seen = tb.BoolCol(pos=1)
        at = tb.Time64Col(pos=2)

        class deep(tb.IsDescription):
            """And one in it."""

            _v_pos = 3
            name = tb.StringCol(4, pos=0)
            pair = tb.Int32Col((2,), pos=1)


class Few(tb.IsDescription):
    """What many rows have."""

    n = tb.Int64Col(pos=0, dflt=-1)
    x = tb.Float64Col(pos=1)
    s = tb.StringCol(4, pos=2)
    ok = tb.BoolCol(pos=3)


# ---------------------------------------------------------------------------------------------------------------------
# The file


def rows_of(table, count, rng):
    """Rows of the dtype of a table: edges first, then anything."""
    data = np.zeros(count, table.dtype)
    fill(data, table.description, rng)
    return data


def fill(data, description, rng):
    """Fills an array column by column."""
    count = len(data)
    for name in description._v_names:
        column = description._v_colobjects[name]
        if isinstance(column, tb.Description):
            fill(data[name], column, rng)
            continue
        kind, shape = column.kind, data[name].shape
        size = int(np.prod(shape))
        if kind == "string":
            values = np.resize(np.array(TEXTS, f"S{column.itemsize}"), size)
        elif kind == "bool":
            values = rng.integers(0, 2, size).astype(bool)
        elif kind == "time" and column.itemsize == 8:
            values = np.resize(TIMES, size)
        elif kind == "enum":
            values = np.resize([value for _, value in column.enum], size)
        elif kind in ("int", "uint", "time"):
            limits = np.iinfo(data[name].dtype)
            values = np.resize(np.array([0, 1, limits.min, limits.max, 5], data[name].dtype), size)
        else:
            values = np.resize(np.array([0.0, -0.0, 0.1, np.nan, np.inf, -1.5], data[name].dtype), size)
        data[name] = values.reshape(shape)
    return count


def write(path):
    """The file."""
    rng = np.random.default_rng(5)
    filters = {
        "none": None,
        "zlib": tb.Filters(5, "zlib", shuffle=True),
        "blosc": tb.Filters(5, "blosc:lz4", shuffle=True),
        "blosc2": tb.Filters(5, "blosc2:zstd", shuffle=True),
        "bzip2": tb.Filters(1, "bzip2", fletcher32=True),
    }
    with tb.open_file(path, "w", title="Everything") as file:
        every = file.create_table("/", "every", Every, "A title", chunkshape=16, track_times=False)
        every.append(rows_of(every, 12, rng))
        every.cols.i32.attrs["units"] = "GeV"
        every.cols.i32.attrs["description"] = "an energy"
        every.attrs["run"] = 42
        file.create_table("/", "empty", Every, chunkshape=16, track_times=False)
        big = file.create_table("/", "big", Every, byteorder="big", chunkshape=4, track_times=False)
        big.append(rows_of(big, 9, rng))
        group = file.create_group("/", "deep", "A group")
        for name, one in filters.items():
            table = file.create_table(group, name, Few, filters=one, chunkshape=100, track_times=False)
            table.append(rows_of(table, 1003, rng))
        # What is true may be any byte.
        flags = np.dtype([("flag", "?"), ("flags", "?", (2,))])
        odd = file.create_table("/", "odd", flags, chunkshape=4, track_times=False)
        odd.append(np.frombuffer(bytes([0, 1, 2, 255, 0, 3, 7, 1, 0]), odd.dtype))
        indexed = file.create_table("/", "indexed", Few, chunkshape=64, track_times=False)
        indexed.append(rows_of(indexed, 3000, rng)[:5])
        sizes = (2048, 1024, 512, 64)
        indexed.cols.n.create_index(9, "full", _blocksizes=sizes)
        indexed.cols.s.create_index(0, "light", _blocksizes=sizes)
        file.create_carray("/", "carray", obj=np.arange(6).reshape(2, 3))
        file.create_earray("/", "earray", atom=tb.Float32Atom(), shape=(0, 2)).append(np.ones((2, 2), "f4"))
        lists = file.create_vlarray("/", "vlarray", tb.Int32Atom())
        for count in range(3):
            lists.append(list(range(count)))


# ---------------------------------------------------------------------------------------------------------------------
# What is expected


def float_cell(value, dtype):
    """A float by its bits."""
    return {f"f{8 * dtype.itemsize}": struct.pack(f">{'efd'[dtype.itemsize // 4]}", value).hex()}


def inner(value, description):
    """A value inside a struct or an array, as JSON data."""
    if isinstance(description, tb.Description):
        return {name: inner(value[name], description._v_colobjects[name]) for name in description._v_names}
    if isinstance(value, np.ndarray) and value.shape:
        return [inner(one, description) for one in value]
    if description.kind == "enum":
        return description.enum(int(value))
    if isinstance(value, (bytes, np.bytes_)):
        return value.decode("utf-8", "replace")
    dtype = value.dtype
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return {"re": float_cell(value.real, part), "im": float_cell(value.imag, part)}
    return float_cell(value, dtype) if dtype.kind == "f" else value.item()


def cell(value, description):
    """A value as the CSV field that shows it."""
    shown = inner(value, description)
    if isinstance(shown, (list, dict)) and not (isinstance(shown, dict) and len(shown) == 1 and "f" in next(iter(shown))):
        return {"json": shown}
    if isinstance(shown, bool):
        return "true" if shown else "false"
    return str(shown) if isinstance(shown, int) else shown


def instant(value, description):
    """A time as text: of what PyTables stores, microseconds at most."""
    if description.itemsize == 4:
        moment = datetime.timedelta(seconds=int(value))
    else:
        moment = datetime.timedelta(microseconds=round(float(value) * 1e6))
    moment += datetime.datetime(1970, 1, 1)
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + (f".{moment.microsecond:06}Z" if description.itemsize == 8 else "Z")


def has_time(description):
    """Whether a column shows other bytes than are stored."""
    if isinstance(description, tb.Description):
        return any(has_time(description._v_colobjects[name]) for name in description._v_names)
    return description.kind == "time"


def stored(values, order):
    """`npy_dtype`, `npy_shape`, `raw_sha256` of values that are stored as they are but for the byte order."""
    values = np.ascontiguousarray(values)
    if values.dtype.names is None:
        values = values.astype(values.dtype.newbyteorder(order))
    else:
        values = values.astype(reordered(values.dtype, order))
    return {
        "npy_dtype": repr(np.lib.format.dtype_to_descr(values.dtype)),
        "npy_shape": list(values.shape),
        "raw_sha256": hashlib.sha256(values.tobytes()).hexdigest(),
    }


def reordered(dtype, order):
    """A structured dtype whose numbers have this byte order."""

    def one(kind):
        if kind.subdtype:
            return np.dtype((one(kind.subdtype[0]), kind.shape))
        return reordered(kind, order) if kind.names else kind.newbyteorder(order)

    return np.dtype([(name, one(dtype[name])) for name in dtype.names])


def describe(table):
    """One entry of `tables`."""
    data, description = table[:], table.description
    # PyTables says the order of what it reads.
    order = ">" if table.name == "big" else "<"
    columns = []
    for name in description._v_names:
        column = description._v_colobjects[name]
        entry = {"name": name, "stem": name, "rows": len(data), "in_table": True}
        entry["csv"] = [cell(value, column) for value in data[name]]
        if not isinstance(column, tb.Description) and column.kind == "time" and data[name].ndim == 1:
            # As `--times=numbers` shows them, and as times.
            entry["numbers"] = entry["csv"]
            entry["csv"] = [instant(value, column) for value in data[name]]
        columns.append(entry if has_time(column) else entry | stored(data[name], order))
    whole = {} if has_time(description) else stored(data, order)
    return {"rows": len(data), "row_labels": [], "columns": columns, "whole": whole}


def said(path):
    """A stated fill value beside an index, floats called as the parts of a complex number, pickled units."""
    with tb.open_file(path, "w") as file:
        stated = file.create_table("/", "stated", {"v": tb.Int32Col()}, track_times=False)
        stated.append([(row % 7 - 1,) for row in range(100)])
        stated.flush()
        stated.cols.v.create_csindex()
        stated.cols.v.attrs["_FillValue"] = np.int32(-1)
        table = file.create_table("/", "complex_like", np.dtype([("r", "f8"), ("i", "f8")]), track_times=False)
        table.append([(1.5, 2.5), (3.5, -4.5)])
        named = file.create_table("/", "named", np.dtype([("a", "i4"), ("b", "i4"), ("c", "i4")]), track_times=False)
        named.append([(1, 2, 3)])
        named.cols.a.attrs["units"], named.cols.b.attrs["units"] = None, ["m", "s"]
        named.cols.c.attrs["units"], named.cols.c.attrs["description"] = "GeV", {"x": 1}


def main():
    """The file and what is expected of it."""
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    warnings.simplefilter("ignore", tb.NaturalNameWarning)
    path = DATA / "pytables.h5"
    path.unlink(missing_ok=True)
    write(path)
    with tb.open_file(path) as file:
        found = {table._v_pathname: describe(table) for table in file.walk_nodes("/", "Table")}
    text = json.dumps({"tables": found, "arrays": {}}, separators=(",", ":"), ensure_ascii=True)
    path.with_suffix(".expected.json").write_text(text + "\n")
    print(f"pytables: {path.stat().st_size} bytes, {len(found)} tables")
    said(DATA / "pytables_said.h5")


if __name__ == "__main__":
    main()
