#!/usr/bin/env python3
"""Writes `tests/data/search_indexes_pytables*.h5`: tables with search indexes of PyTables, right ones and such that lie, and
beside each file the verdict on each index and the rows that expressions find, as PyTables and NumPy have them.

    python3 -m venv FOLDER && FOLDER/bin/pip install tables==3.11.1 h5py==3.16.0 pandas==3.1.1
    FOLDER/bin/python3 scripts/pytables_index_fixtures.py

The form is that of `search_index_fixtures.py`. What PyTables itself would never write is done to the file with h5py, in a
process of its own, since both bring a libhdf5.
"""

import hashlib
import json
import multiprocessing
import warnings
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
SIZES = (2048, 1024, 512, 64)
# Blocks of 65,536 rows are what a selection asks about.
LARGE = (65_536, 32_768, 16_384, 1024)
ROWS = 2500
TEXTS = ["", "a", "ab", "Grz", "b ", "Grüße", "zz", "long text"]
TIMES = [0.0, -1.75, -0.000001, 1e-6, 1577934245.123456, 2.0**31 - 1, -(2.0**31)]


def values_of(kind, count, rng):
    """Values of a column, with edges among them."""
    if kind == "text":
        words = TEXTS + [f"word {at}" for at in range(300)]
        return np.array([word.encode() for word in words], "S9")[rng.integers(0, len(words), count)]
    if kind == "bool":
        return rng.random(count) < 0.3
    if kind == "time64":
        micros = rng.integers(-(10**15), 10**15, count)
        values = 1e-6 * np.fmod(micros, 10**6) + np.trunc(micros / 10**6)
        values[:: count // 50 + 1] = np.resize(TIMES, len(values[:: count // 50 + 1]))
        return values
    if kind == "time32":
        return rng.integers(-1000, 1000, count).astype("i4")
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        values = np.round(rng.standard_normal(count) * 50, 1).astype(dtype)
        edges = np.array([np.nan, 0.0, -0.0, np.inf, -np.inf], dtype)
        values[:: count // 60 + 1] = np.resize(edges, len(values[:: count // 60 + 1]))
        return values
    limits = np.iinfo(dtype)
    values = rng.integers(max(limits.min, -500), min(limits.max, 500), count).astype(dtype)
    values[:2] = limits.min, limits.max
    return values


def expressions(values, kind):
    """Expressions about `v`, and which rows they match, by NumPy."""
    if kind == "text":
        texts = values.astype("S")
        picked = [b"a", b"word 100", b"word 2", b"none"]
        quoted = [f"'{text.decode()}'" for text in picked]
        matches = [texts == text for text in picked]
        told = [(f"v = {one}", found) for one, found in zip(quoted, matches)]
        told.append(("v between 'a' and 'b'", (texts >= b"a") & (texts <= b"b")))
        told.append(("v < 'ab'", texts < b"ab"))
        told.append(("v >= 'word 250'", texts >= b"word 250"))
        told.append(("v like 'word 1%'", np.char.startswith(texts, b"word 1")))
        told.append((f"v in ({quoted[0]}, {quoted[1]})", matches[0] | matches[1]))
        told.append((f"v != {quoted[1]}", ~matches[1]))
        return told
    if kind == "bool":
        return [("v", values), ("not v", ~values), ("v = false", ~values), ("v is null", values & False)]
    exact = np.round(values * 1e6).astype("i8") if kind == "time64" else values
    present = np.sort(exact[np.isfinite(exact)]) if exact.dtype.kind == "f" else np.sort(exact)
    low, high = (present[int(len(present) * at)] for at in (0.4, 0.45))
    text = repr if exact.dtype.kind == "f" else str
    if unit := {"time64": "us", "time32": "s"}.get(kind):
        # No bare number is compared with times.
        text = lambda value: f"'{np.datetime64(value, unit)}'"
    low_text, high_text, zero = (text(value.item()) for value in (low, high, present.dtype.type(0)))
    told = [
        (f"v between {low_text} and {high_text}", (exact >= low) & (exact <= high)),
        (f"v = {low_text}", exact == low),
        (f"v in ({low_text}, {high_text})", (exact == low) | (exact == high)),
        (f"v < {low_text}", exact < low),
        (f"v <= {high_text}", exact <= high),
        (f"v > {high_text}", exact > high),
        (f"v >= {low_text} and v < {high_text}", (exact >= low) & (exact < high)),
        # NaN is a value that is not equal, and no number is beyond it.
        (f"v != {low_text}", exact != low),
        (f"v = {zero if unit else 0}", exact == 0),
        ("v is null", np.zeros(len(exact), bool)),
    ]
    return told


def answer(expression, matches):
    """What is expected of an expression."""
    rows = np.flatnonzero(matches)
    if len(rows) <= 20:
        return {"expression": expression, "rows": rows.tolist()}
    text = "".join(f"{row}\n" for row in rows)
    return {"expression": expression, "count": len(rows), "sha256": hashlib.sha256(text.encode()).hexdigest()}


class Writer:
    """A file, and what is expected of it."""

    def __init__(self, file, tables):
        self.file, self.tb, self.told, self.columns = file, tables, [], {}
        self.rng = np.random.default_rng(15)

    def column(self, kind):
        """The description of a column."""
        tb = self.tb
        special = {"text": tb.StringCol(9), "bool": tb.BoolCol(), "time64": tb.Time64Col(), "time32": tb.Time32Col()}
        return special.get(kind) or tb.Col.from_sctype(np.dtype(kind).type)

    def table(self, name, kind, values, nested=False):
        """A table of row numbers and values."""
        tb = self.tb
        description = {"row": tb.Int64Col(pos=0)}
        column = self.column(kind)
        if nested:
            inner = {"v": column, "w": tb.Int8Col()}
            description["nest"] = type("nest", (tb.IsDescription,), {**inner, "_v_pos": 1})
        else:
            description["v"] = column
        table = self.file.create_table(
            "/", name, description, chunkshape=64, expectedrows=len(values), track_times=False,
            filters=tb.Filters(5, "zlib", shuffle=True),
        )
        rows = np.zeros(len(values), table.dtype)
        rows["row"] = np.arange(len(values))
        target = rows["nest"] if nested else rows
        target["v"] = values
        table.append(rows)
        table.flush()
        return table

    def indexed(self, name, kind, values, verdict, how=None, rule="", nested=False, large=False, csi=None):
        """A table with an index, and what is said of it; `how` is what PyTables is told."""
        table = self.table(name, kind, values, nested)
        column = table.cols.nest.v if nested else table.cols.v
        sizes = LARGE if large else SIZES
        how = how or {"optlevel": 9, "kind": "full"}
        column.create_index(_blocksizes=sizes, filters=self.tb.Filters(5, "zlib", shuffle=True), **how)
        self.file.flush()
        if csi is not None and bool(column.index.is_csi) != csi:
            raise ValueError(f"{name}: is_csi is {column.index.is_csi}")
        self.tell(name, kind, values, {"v": (how["kind"], verdict)}, rule, nested)
        return table

    def tell(self, name, kind, values, indexes, rule="", nested=False):
        """What is expected of a table."""
        told = expressions(values, kind)
        if not nested and kind not in ("bool", "text"):
            self.agree(name, kind, told)
        key = f"{name}: {kind}"
        renamed = [(text.replace("v ", "nest.v ") if nested else text, found) for text, found in told]
        self.columns[key] = [answer(text, found) for text, found in renamed]
        verdicts = {index: {"kind": kind, "verdict": [verdict]} for index, (kind, verdict) in indexes.items()}
        self.told.append({"table": name, "column": key, "rule": rule or "everything is right", "indexes": verdicts})

    def agree(self, name, kind, told):
        """PyTables finds the same rows by its own index."""
        table = self.file.get_node(f"/{name}")
        # With NaN in slices that are not in order as a whole, PyTables loses rows.
        if kind.startswith("time") or np.isnan(table.col("v")).any() and not name.startswith("csi"):
            return
        between = told[0][0].split()
        low, high = (np.dtype(kind).type(float(between[at]) if kind[0] == "f" else int(between[at])) for at in (2, 4))
        found = np.sort(table.get_where_list("(v >= low) & (v <= high)", {"low": low, "high": high}))
        if not np.array_equal(found, np.flatnonzero(told[0][1])):
            raise ValueError(f"{name}: PyTables finds other rows than NumPy")


def right(writer):
    """Indexes that are right."""
    rng = writer.rng
    kinds = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float32", "float64"]
    for kind in [*kinds, "text", "bool", "time64", "time32"]:
        values = values_of(kind, ROWS, rng)
        writer.indexed(f"csi_{kind}", kind, values, "valid")
        # Slices are in order by themselves.
        writer.indexed(f"full_{kind}", kind, values, "valid", {"optlevel": 0, "kind": "full"})
    values = values_of("int32", ROWS, rng)
    for level, kind in [(0, "ultralight"), (6, "ultralight"), (0, "light"), (0, "medium")]:
        writer.indexed(f"{kind}_{level}", "int32", values, "valid", {"optlevel": level, "kind": kind})
    for level, kind in [(6, "light"), (3, "medium"), (6, "medium"), (9, "medium")]:
        writer.indexed(f"{kind}_{level}", "int32", values, "unused", {"optlevel": level, "kind": kind})
    for count in (6, 511, 512, 513):
        writer.indexed(f"rows_{count}", "float64", values_of("float64", count, rng), "valid")
    writer.indexed("nested", "float64", values_of("float64", ROWS, rng), "valid", nested=True)
    writer.indexed("nested_text", "text", values_of("text", ROWS, rng), "valid", nested=True)
    writer.indexed("equal", "int64", np.full(ROWS, 7), "valid")
    writer.indexed("one", "int64", np.array([7]), "valid")
    # Ordered as C does, where a text ends at a NUL.
    values = values_of("text", ROWS, rng)
    values[::40] = b"a\0b"
    writer.indexed("csi_nul", "text", values, "unverifiable")
    # Appended with its index, which PyTables makes anew.
    table = writer.table("appended", "int64", values_of("int64", ROWS, rng))
    table.cols.v.create_index(9, "full", _blocksizes=SIZES)
    more = table[:700]
    more["row"] = np.arange(ROWS, ROWS + 700)
    table.append(more)
    table.flush()
    table.flush_rows_to_index()
    writer.tell("appended", "int64", table.col("v"), {"v": ("full", "valid")})
    # Of more than one block of rows, in an order by which bounds tell something.
    clustered = np.sort(rng.integers(0, 50_000, 150_000)).astype("i4") // 10
    floats = clustered.astype("f8")
    floats[3::5000] = np.nan
    for kind in ("ultralight", "light", "medium"):
        writer.indexed(f"large_{kind}", "int32", clustered, "valid", {"optlevel": 0, "kind": kind}, large=True)
    writer.indexed("large_nan", "float64", floats, "valid", {"optlevel": 0, "kind": "light"}, large=True)


def frames(path, told, columns):
    """Frames of pandas, whose columns are fields of one table, and some of whose values are missing."""
    import pandas as pd

    rng = np.random.default_rng(16)
    every = {"kind": "full", "optlevel": 9}
    texts = pd.Series(np.array([*"abcdef", None, "nan?", ""], object)[rng.integers(0, 9, ROWS)])
    moments = pd.Series(rng.integers(-(10**9), 10**9, ROWS).astype("M8[s]").astype("M8[ns]"))
    moments[::17] = pd.NaT
    labels = pd.date_range("2020-01-01", periods=ROWS, freq="h").to_numpy().copy()
    rng.shuffle(labels)
    at = pd.Timestamp("1985-01-01")
    early, late = (pd.Timestamp(f"2020-01-{day}") for day in ("10", "12"))
    matches = {
        "frame_text": (texts, [("v = 'c'", texts == "c"), ("v <= 'b'", texts <= "b"), ("v >= 'f'", texts >= "f")]),
        "frame_time": (moments, [("v < '1985-01-01'", moments < at), ("v >= '1985-01-01'", moments >= at)]),
        "frame_medium": (moments, [("v < '1985-01-01'", moments < at)]),
        "frame_category": (texts.astype("category"), [("v = 'c'", texts == "c")]),
    }
    # NaN is missing: no comparison selects it, nor what negates one.
    numbers = pd.Series(np.round(rng.standard_normal(ROWS) * 50, 1))
    numbers[::11] = np.nan
    gone = numbers.isna()
    matches["frame_float"] = numbers, [
        ("v > 20", numbers > 20), ("v <= -20.5", numbers <= -20.5), ("not v > 20", numbers <= 20), ("v is null", gone),
        ("v is nan", gone), ("v is not null", ~gone), ("v != 0.5", ~gone & (numbers != 0.5)),
    ]  # fmt: skip
    with pd.HDFStore(path, "a", complevel=5, complib="zlib") as store:
        for name, (values, asked) in matches.items():
            frame = pd.DataFrame({"row": np.arange(ROWS), "v": values.to_numpy() if name != "frame_category" else values})
            frame.index = labels
            store.append(name, frame, data_columns=["row", "v"], index=name == "frame_medium")
            if name != "frame_medium":
                store.create_table_index(name, **every)
            inside = (frame.index >= early) & (frame.index < late)
            asked = [*asked, ("`index` >= '2020-01-10' and `index` < '2020-01-12'", inside)]
            columns[f"{name}: frame"] = [answer(text, np.asarray(found, bool)) for text, found in asked]
            verdict = "unused" if name == "frame_medium" else "valid"
            kind = "medium" if name == "frame_medium" else "full"
            verdicts = {index: (kind, verdict) for index in ("index", "row", "v")}
            if name == "frame_category":
                verdicts["v"] = ("full", "unused")
            indexes = {index: {"kind": kind, "verdict": [said]} for index, (kind, said) in verdicts.items()}
            told.append({"table": name, "column": f"{name}: frame", "rule": "a frame", "indexes": indexes})


def wrong(writer):
    """Indexes that PyTables itself knows to be stale; and those that h5py makes wrong in `spoil`."""
    rng, file = writer.rng, writer.file
    for name in ("stale_append", "stale_update", "stale_remove"):
        table = writer.table(name, "int64", values_of("int64", ROWS, rng))
        table.cols.v.create_index(9, "full", _blocksizes=SIZES)
        table.autoindex = False
        if name == "stale_append":
            more = table[:700]
            more["row"] = np.arange(ROWS, ROWS + 700)
            table.append(more)
        elif name == "stale_update":
            table.modify_column(10, 20, column=np.arange(1000, 1010), colname="v")
        else:
            table.remove_rows(10, 100)
            table.modify_column(0, len(table), column=np.arange(len(table)), colname="row")
        table.flush()
        writer.tell(name, "int64", table.col("v"), {"v": ("full", "stale")}, "the table changed without its index")
    for name, (kind, verdict, _) in SPOILT.items():
        is_bounds = name.startswith("bounds")
        how = {"optlevel": 0, "kind": "light"} if is_bounds else None
        writer.indexed(name, kind, values_of(kind, ROWS, rng), verdict, how, name.replace("_", " "))
    file.flush()


# ---------------------------------------------------------------------------------------------------------------------
# What is done to a file with h5py: the table, its index


def put(dataset, where, value):
    """An assignment."""
    dataset[where] = value


def append(table, _):
    """Rows that the index has not."""
    table.resize((ROWS + 3,))
    table["row", ROWS:] = np.arange(ROWS, ROWS + 3)


def twice(_, index):
    """A row that stands there twice, with its own value."""
    index["indices"][0, 1] = index["indices"][0, 0]
    index["sorted"][0, 1] = index["sorted"][0, 0]


def swap(_, index):
    """Two values that changed places, with their rows."""
    for name in ("sorted", "indices"):
        row = index[name][1]
        row[[3, 400]] = row[[400, 3]]
        index[name][1] = row


def replace(index, name, **options):
    """Another dataset under a name."""
    attributes = dict(index[name].attrs)
    del index[name]
    index.create_dataset(name, **options).attrs.update(attributes)


def change(table, _):
    """A value that changed."""
    rows = table[5:6]
    rows["v"] += 1
    table[5:6] = rows


# What is checked of bounds, and of values in order. Kind of values, verdict, what is done.
SPOILT = {
    "h5py_changed": ("int64", "broken", change),
    "h5py_appended": ("int64", "stale", append),
    "dirty": ("int64", "stale", lambda table, index: put(index.attrs, "DIRTY", np.int32(1))),
    "twice": ("int64", "broken", twice),
    "past_the_end": ("int64", "broken", lambda table, index: put(index["indices"], (0, 7), ROWS)),
    "far_past_the_end": ("int64", "broken", lambda table, index: put(index["indicesLR"], 3, 2**64 - 1)),
    "another_value": ("int64", "broken", lambda table, index: put(index["sorted"], (1, 9), 10**6)),
    "another_value_behind": ("float64", "broken", lambda table, index: put(index["sortedLR"], 9, 1e6)),
    "another_text": ("text", "broken", lambda table, index: put(index["sorted"], (1, 9), b"other")),
    "not_in_order": ("int64", "broken", swap),
    "slicesize_0": ("int64", "absent", lambda table, index: put(index.attrs, "slicesize", np.uint32(0))),
    "slicesize_other": ("int64", "absent", lambda table, index: put(index.attrs, "slicesize", np.uint32(513))),
    "no_slicesize": ("int64", "absent", lambda table, index: index.attrs.__delitem__("slicesize")),
    "nelements_negative": (
        "int64", "absent", lambda table, index: put(index["indicesLR"].attrs, "nelements", np.int64(-1)),
    ),
    "nelements_many": (
        "int64", "absent", lambda table, index: put(index["indicesLR"].attrs, "nelements", np.uint64(2**63)),
    ),
    "nelements_few": (
        "int64", "stale", lambda table, index: put(index["indicesLR"].attrs, "nelements", np.int64(3)),
    ),
    "reduction_0": ("int64", "absent", lambda table, index: put(index.attrs, "reduction", np.int64(0))),
    "reduction_2": ("int64", "absent", lambda table, index: put(index.attrs, "reduction", np.int64(2))),
    "version_1": ("int64", "unused", lambda table, index: put(index.attrs, "VERSION", np.bytes_("1.0"))),
    "no_sorted": ("int64", "absent", lambda table, index: index.__delitem__("sorted")),
    "no_rest": ("int64", "absent", lambda table, index: index.__delitem__("sortedLR")),
    "rank_1": ("int64", "absent", lambda table, index: replace(index, "indices", data=np.arange(2048, dtype="u8"))),
    "rank_0": ("int64", "absent", lambda table, index: replace(index, "indices", data=np.uint64(1))),
    "signed": ("int64", "absent", lambda table, index: replace(index, "indices", data=np.zeros((4, 512), "i8"))),
    "short_rest": ("int64", "absent", lambda table, index: replace(index, "sortedLR", data=np.zeros(3, "i8"))),
    "other_type": ("int64", "absent", lambda table, index: replace(index, "sorted", data=np.zeros((4, 512), "f8"))),
    "other_shape": ("int64", "absent", lambda table, index: replace(index, "sorted", data=np.zeros((4, 500), "i8"))),
    "zeros": ("int64", "broken", lambda table, index: replace(index, "sorted", shape=(4, 512), dtype="i8")),
    "bounds_wide": ("int32", "broken", lambda table, index: put(index["ranges"], (1, 0), -(10**9))),
    "bounds_narrow": ("int32", "broken", lambda table, index: put(index["ranges"], (2, 1), 0)),
    "bounds_shape": ("int32", "absent", lambda table, index: replace(index, "ranges", data=np.zeros((3, 2), "i4"))),
    "bounds_type": ("int32", "absent", lambda table, index: replace(index, "ranges", data=np.zeros((4, 2), "f4"))),
    "bounds_changed": ("int32", "broken", lambda table, index: put(table, 600, (600, 10**8))),
    "bounds_dirty": ("int32", "stale", lambda table, index: put(index.attrs, "DIRTY", np.int32(1))),
}


def spoil(path):
    """Does it, and tells what is found then."""
    import h5py

    expected = json.loads(path.with_suffix(".json").read_text())
    keys = {told["table"]: told["column"] for told in expected["tables"]}
    with h5py.File(path, "r+") as file:
        for name, (_, _, change_it) in SPOILT.items():
            change_it(file[name], file[f"_i_{name}/v"])
        # Texts, which h5py cuts at a NUL, were left as they are.
        for name, (kind, _, _) in SPOILT.items():
            if kind != "text":
                expected["columns"][keys[name]] = [answer(*one) for one in expressions(file[name]["v"], kind)]
    path.with_suffix(".json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")


def write(name, fill):
    """A file, and what is expected of it."""
    import tables as tb

    warnings.simplefilter("ignore", tb.NaturalNameWarning)
    path = DATA / f"{name}.h5"
    path.unlink(missing_ok=True)
    with tb.open_file(path, "w") as file:
        writer = Writer(file, tb)
        fill(writer)
    if fill is right:
        frames(path, writer.told, writer.columns)
    expected = {"tables": writer.told, "columns": writer.columns}
    path.with_suffix(".json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")
    print(f"{name}: {path.stat().st_size} bytes, {len(writer.told)} tables")


def main():
    """Both files."""
    write("search_indexes_pytables", right)
    write("search_indexes_pytables_broken", wrong)
    path = DATA / "search_indexes_pytables_broken.h5"
    process = multiprocessing.get_context("spawn").Process(target=spoil, args=(path,))
    process.start()
    process.join()
    if process.exitcode != 0:
        raise SystemExit("h5py failed")


if __name__ == "__main__":
    main()
