#!/usr/bin/env python3
"""NaN in data frames: a missing value to whoever reads a mount, as it is to pandas.

    missing_nan.py write FOLDER                          a frame of AnnData, the same as a plain group, in two files each
    missing_nan.py check FOLDER MOUNT HEPFS              what pandas and DuckDB say of `to_parquet`, held against all else
    missing_nan.py kinds FOLDER NULL VALUE               the same files mounted with `--nan null` and `--nan value`
    missing_nan.py pages FILE                            frames of many pages, stored in every way
    missing_nan.py read FILE MOUNT                       the same, read whole and in parts
    missing_nan.py frames EXPECTED MOUNT                 the columns of frames that EXPECTED says are missing somewhere
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.feather
import pyarrow.parquet as pq

ROWS, GONE = 20_000, 2_858
QUESTIONS = """
    select count(*) filter (price > 118), avg(price), max(price), count(price), count(*) filter (price is null),
           (select list(price) from (select price from {0} where price is not null order by price desc limit 2))
    from {0}
"""


def frame(seed):
    """Rows of which some have no price, and some no weight."""
    rng = np.random.default_rng(seed)
    prices = np.round(rng.normal(100, 6, ROWS), 2)
    prices[rng.choice(ROWS, GONE, replace=False)] = np.nan
    weights = rng.random(ROWS).astype("f4")
    weights[::7] = np.nan
    return pd.DataFrame({"price": prices, "weight": weights, "n": np.arange(ROWS)}, [f"row {at}" for at in range(ROWS)])


def write(folder):
    """Two files of each kind."""
    for seed, name in enumerate(["a", "b"]):
        value = frame(seed)
        with h5py.File(f"{folder}/{name}.h5ad", "w") as file:
            obs = file.create_group("obs")
            obs.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"})
            obs.attrs["column-order"] = np.array(list(value.columns), object)
            obs.create_dataset("_index", data=list(value.index), dtype=h5py.string_dtype())
            obs["_index"].attrs.update({"encoding-type": "string-array", "encoding-version": "0.2.0"})
            for column in value.columns:
                stored = obs.create_dataset(column, data=value[column], chunks=(3000,), compression="gzip")
                stored.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
            plain = file.create_group("plain")
            for column in value.columns:
                plain[column] = value[column]
    # As versions before 0.7 wrote a frame.
    value = frame(2)
    old = np.empty(ROWS, [("index", "S9"), ("price", "f8"), ("weight", ">f4")])
    old["index"], old["price"], old["weight"] = list(value.index), value.price, value.weight
    with h5py.File(f"{folder}/old.h5ad", "w") as file:
        file["var"] = old


def same(found, wanted):
    """Whether answers are equal, but for the last bits of an average."""
    return all(
        np.allclose(one, other, rtol=1e-12) if isinstance(other, (float, list)) else one == other
        for one, other in zip(found, wanted, strict=True)
    )


def answers(source):
    """Of a table that DuckDB reads."""
    return duckdb.sql(QUESTIONS.format(source)).fetchall()[0]


def of_polars(table):
    """The same by polars."""
    price = pl.col("price")
    return table.select(
        (price > 118).sum().alias("above"),
        price.mean().alias("mean"),
        price.max().alias("max"),
        price.count().alias("count"),
        price.is_null().sum().alias("nulls"),
        price.top_k(2).implode().alias("top"),
    ).row(0)


def check(folder, mount, hepfs):
    """Every way to ask has one answer."""
    value = frame(0)
    with tempfile.TemporaryDirectory() as scratch:
        value.to_parquet(f"{scratch}/pandas.parquet")
        wanted = answers(f"'{scratch}/pandas.parquet'")
        assert (wanted[3], wanted[4]) == (ROWS - GONE, GONE)
        obs, source = f"{mount}/a.h5ad/obs", f"{folder}/a.h5ad:obs"

        def run(*arguments):
            done = subprocess.run([hepfs, *arguments], capture_output=True, text=True)
            assert done.returncode == 0, (arguments, done.stderr)
            return done.stdout

        run("export", source, "-o", f"{scratch}/export.parquet")
        run("export", source, "-o", f"{scratch}/export.arrow")
        run("query", source, "n >= 0", "-o", f"{scratch}/query.parquet")
        for name in (f"{obs}/table.parquet", f"{obs}/columns/price.parquet", f"{scratch}/export.parquet",
                     f"{scratch}/query.parquet", f"{obs}/where/n:ge:0/table.parquet"):  # fmt: skip
            assert same(answers(f"'{name}'"), wanted), name
            assert same(of_polars(pl.read_parquet(name)), wanted), name
        for name in (f"{obs}/table.csv", f"{obs}/table.ndjson"):
            assert same(answers(f"'{name}'"), wanted), name
        assert same(of_polars(pl.read_ipc(f"{scratch}/export.arrow")), wanted)
        both = pd.concat([value, frame(1)]).to_parquet(f"{scratch}/both.parquet")  # noqa: F841
        assert same(answers(f"'{mount}/.datasets/obs/**/*.parquet'"), answers(f"'{scratch}/both.parquet'"))

        # By expressions and paths.
        count = {"price > 118": wanted[0], "price is null": GONE, "price is not null": ROWS - GONE,
                 "price is nan": GONE, "isnan(price)": GONE, "not price is nan": ROWS - GONE, "price is not nan": ROWS - GONE,
                 "not price > 118": ROWS - GONE - wanted[0], "price != 100": int((value.price.dropna() != 100).sum())}  # fmt: skip
        for expression, rows in count.items():
            assert len(run("query", source, expression).splitlines()) == rows + 1, expression
        for path, rows in {"price:nan": GONE, "price:null": GONE, "price:gt:118": wanted[0]}.items():
            assert pq.read_metadata(f"{obs}/where/{path}/table.parquet").num_rows == rows, path
        for order in ("asc", "desc"):
            found = run("query", source, f"order by price {order}", "--columns", "price").splitlines()[1:]
            ordered = value.price.sort_values(ascending=order == "asc")
            assert [float(one) if one != '""' else None for one in found] == [None if p != p else p for p in ordered]
        refused = subprocess.run([hepfs, "query", source, "price > nan"], capture_output=True, text=True)
        assert refused.returncode == 1 and "is nan" in refused.stderr, refused

        # No line is lost of one column, and nothing is changed of what is stored.
        assert len(np.loadtxt(f"{obs}/columns/price.txt")) == ROWS
        assert np.array_equal(np.loadtxt(f"{obs}/columns/price.csv", skiprows=1), value.price, equal_nan=True)
        assert pl.read_csv(f"{obs}/columns/price.csv").height == ROWS
        assert np.array_equal(np.load(f"{obs}/columns/price.npy"), value.price, equal_nan=True)
        # Arrow files of a mount have NaN, which pandas takes for missing.
        feather = pyarrow.feather.read_table(f"{obs}/table.arrow")
        assert feather["price"].null_count == 0
        for name, read in (("table.parquet", pd.read_parquet), ("table.arrow", pd.read_feather)):
            pd.testing.assert_frame_equal(read(f"{obs}/{name}"), value, check_names=False, obj=name)

        old = pq.read_table(f"{mount}/old.h5ad/var/table.parquet")
        assert [old[name].null_count for name in old.column_names] == [0, GONE, len(range(0, ROWS, 7))], old
        assert not np.isnan(old["weight"].drop_null().to_numpy()).any()

        run("convert", source, f"{scratch}/converted.h5:/obs")
        with h5py.File(f"{scratch}/converted.h5") as converted, h5py.File(f"{folder}/a.h5ad") as stored:
            for column in ("price", "weight"):
                assert np.array_equal(converted["obs"][column], stored["obs"][column], equal_nan=True), column
                assert np.isnan(converted["obs"][column].fillvalue), column
        # Values, then NaN, then missing ones, whichever way.
        mixed = pa_mixed()
        pq.write_table(mixed, f"{scratch}/mixed.parquet")
        for by, wanted in (("x", [1.0, 2.0, "NaN", None]), ("x:desc", [2.0, 1.0, "NaN", None])):
            sorted_by = f"{scratch}/{by[-1]}.h5"
            run("import", f"{scratch}/mixed.parquet", f"{sorted_by}:/t", "--sort-by", by)
            lines = run("query", f"{sorted_by}:t", "i >= 0", "--format", "ndjson").splitlines()
            found = [json.loads(line)["x"] for line in lines]
            assert found == wanted, (by, found)


def pa_mixed():
    """A value, NaN and a missing one are three things to Arrow."""
    return pyarrow.table({"i": [0, 1, 2, 3], "x": pyarrow.array([np.nan, 2.0, None, 1.0], from_pandas=False)})


def kinds(folder, null, value):
    """`--nan null` is missing in every table, `--nan value` in none."""
    wanted = frame(0)
    # Columns of plain groups are datasets by themselves.
    for table, alone in (("obs", "columns/price"), ("plain", "price")):
        for mount, nulls in ((null, GONE), (value, 0)):
            place = f"{mount}/a.h5ad/{table}"
            columns = [
                pq.read_table(f"{place}/table.parquet")["price"].combine_chunks(),
                pyarrow.feather.read_table(f"{place}/table.arrow")["price"].combine_chunks(),
                pq.read_table(f"{place}/{alone}.parquet")["price"].combine_chunks(),
            ]
            for column in columns:
                assert column.null_count == nulls, (place, column.null_count)
                assert np.array_equal(column.to_numpy(zero_copy_only=False), wanted.price, equal_nan=True), place
            found = pq.read_metadata(f"{place}/where/price:null/table.parquet").num_rows
            assert found == nulls, (place, found)
            assert pq.read_metadata(f"{place}/where/price:nan/table.parquet").num_rows == GONE, place
            lines = Path(f"{place}/{alone}.txt").read_text().splitlines()
            assert len(lines) == ROWS and lines.count("NaN") == GONE, place


LONG = 300_000


def columns_of_pages():
    """Columns of several pages: NaN is nowhere, in one row, in the last one, in all of a stretch, all over."""
    rng = np.random.default_rng(5)
    none = rng.normal(size=LONG)
    columns = {name: none + at for at, name in enumerate(["none", "one", "last", "stretch", "all_over", "narrow"])}
    columns["one"][70_000] = columns["last"][-1] = columns["all_over"][::3] = np.nan
    columns["stretch"][100_000:250_000] = np.nan
    columns["narrow"] = columns["narrow"].astype("f4")
    columns["narrow"][200_000] = np.nan
    return columns


def pages(path):
    """Contiguous, in large and small chunks, with and without a filter, and as a compound."""
    columns = columns_of_pages()
    ways = {
        "contiguous": {},
        "small": {"chunks": (2000,)},
        "large": {"chunks": (50_000,)},
        "small_gzip": {"chunks": (3001,), "compression": "gzip"},
        "large_gzip": {"chunks": (50_000,), "compression": "gzip"},
    }
    with h5py.File(path, "w") as file:
        for way, options in ways.items():
            frame = file.create_group(way)
            frame.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"})
            frame.attrs["column-order"] = np.array(list(columns), object)
            for name, values in {"_index": np.arange(LONG), **columns}.items():
                stored = frame.create_dataset(name, data=values, **options)
                stored.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
        # As versions before 0.7 wrote a frame.
        var = np.empty(LONG, [("index", "S7"), *((name, values.dtype) for name, values in columns.items())])
        var["index"] = np.arange(LONG)
        for name, values in columns.items():
            var[name] = values
        file["var"] = var


def read(path, mount):
    """Three readers find pandas' missing values; parts of a file are those of the whole."""
    wanted = pd.DataFrame(columns_of_pages())
    with h5py.File(path) as file:
        frames = list(file)
    assert len(frames) == 6
    rng = np.random.default_rng(6)
    for name in frames:
        table = f"{mount}/{name}/table.parquet"
        found = pq.read_table(table, columns=list(wanted))
        for column, values in wanted.items():
            assert found[column].null_count == values.isna().sum(), (name, column)
        pd.testing.assert_frame_equal(found.to_pandas(), wanted, obj=name)
        assert pl.read_parquet(table, columns=list(wanted)).equals(pl.from_pandas(wanted, nan_to_null=True)), name
        for column in wanted:
            one = f"{mount}/{name}/columns/{column}.parquet"
            row = duckdb.sql(f"select count({column}), sum({column}) from '{one}'").fetchall()[0]
            assert row[0] == wanted[column].count() and np.isclose(row[1], wanted[column].sum(), rtol=1e-6), (name, column)
        whole = Path(table).read_bytes()
        with open(table, "rb") as file:
            for start, length in zip(rng.integers(0, len(whole), 200), rng.integers(1, 200_000, 200), strict=True):
                assert os.pread(file.fileno(), int(length), int(start)) == whole[start : start + length], (name, start)


def frames(expected, mount):
    """Each column of floats has as many nulls as pandas finds missing, and no NaN beside them."""
    checked = 0
    for path, table in json.loads(Path(expected).read_text())["tables"].items():
        for column in table["columns"]:
            gone = sum(1 for cell in column.get("csv", []) if isinstance(cell, dict) and "missing" in cell)
            if gone:
                read = pq.read_table(f"{mount}{path}/table.parquet", columns=[column["name"]])[column["name"]]
                assert read.null_count == gone, (path, column["name"], read.null_count, gone)
                assert not np.isnan(read.drop_null().to_numpy()).any(), path
                checked += 1
    assert checked > 10, checked


if __name__ == "__main__":
    {"write": write, "check": check, "kinds": kinds, "pages": pages, "read": read, "frames": frames}[sys.argv[1]](*sys.argv[2:])
