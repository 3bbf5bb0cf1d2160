#!/usr/bin/env python3
"""Categories of files that `hepfs export` writes, and of queries, against those of pandas.

    categories.py order HEPFS FOLDER             of a file that is written into FOLDER: whole, in parts, in any codec
    categories.py frames HEPFS FOLDER EXPECTED   of fixtures, by what `scripts/fixtures/pandas.py` found in them
"""

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import h5py
import numpy as np
import pandas as pd
import polars as pl

from hepfs_tools import DATA
from hepfs_tools.reading.frames import described

ROWS = 300_007
# What pandas keeps and a mount does not, by file, table and column.
OTHERWISE = {
    ("pandas3.h5", "/emptied", "t"): "objects without a value are texts",
    ("pandas3.h5", "/fixed/no_rows_of_kinds", "o"): "objects without a value are texts",
    ("pandas3.h5", "/fixed/objects", "nothing"): "objects without a value are texts",
    ("pandas3.h5", "/fixed/objects", "dates"): "dates are instants",
    ("pandas3.h5", "/fixed/objects", "numpy_flags"): "booleans of NumPy are booleans",
    ("pandas3_encodings.h5", "/unknown", "t"): "an encoding that is not known",
}
problems = []


def expect(what, found, wanted):
    """Notes what differs."""
    if found != wanted:
        problems.append(f"{what}: {found!r}, expected {wanted!r}"[:600])


def hepfs(program, *arguments):
    """What the program says."""
    return subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def frame():
    """Categories whose order is not that of their bytes, nor of appearance, of which some do not occur."""
    rng, row = np.random.default_rng(41), np.arange(ROWS)
    size = np.where(row < 140_000, row // 70_000 * 2, rng.integers(0, 3, ROWS))
    many = [f"label {at * 7919 % 9973}" for at in range(9973)]
    columns = {
        "size": pd.Categorical.from_codes(size + 1, ["never", "low", "mid", "high", "top"], ordered=True),
        "colour": pd.Categorical.from_codes(rng.choice([2, 0, 3, -1], ROWS), ["red", "never", "blue", "Grün", ""]),
        "one": pd.Categorical.from_codes(np.zeros(ROWS, int), ["x"], ordered=True),
        "none": pd.Categorical.from_codes(np.full(ROWS, -1), ["b", "a"]),
        "many": pd.Categorical.from_codes(rng.integers(0, 9900, ROWS), many, ordered=True),
        "runs": pd.Categorical.from_codes(row // 1000 % 7, list("gfedcba")),
        "part": pd.Categorical.from_codes(rng.integers(0, 3, ROWS), ["p", "q", "r", "never"]),
        "x": row.astype("i4"),
    }
    return pd.DataFrame(columns)


def write(path, rows):
    """The frame as anndata stores `obs`."""
    with h5py.File(path, "w") as file:
        obs = file.create_group("obs")
        obs.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "_index"})
        obs.attrs["column-order"] = list(rows)
        obs["_index"] = [f"r{at}" for at in range(len(rows))]
        for name, values in rows.items():
            if not isinstance(values.dtype, pd.CategoricalDtype):
                obs.create_dataset(name, data=values.to_numpy(), chunks=(20_000,), compression="gzip")
                continue
            group = obs.create_group(name)
            group.attrs.update({"encoding-type": "categorical", "encoding-version": "0.2.0"})
            group.attrs["ordered"] = values.cat.ordered
            group["categories"] = values.cat.categories.to_list()
            group.create_dataset("codes", data=values.cat.codes.to_numpy(), chunks=(20_000,), compression="gzip")


def same(what, found, wanted):
    """Types, categories in their order, and values."""
    for name in wanted:
        if isinstance(wanted[name].dtype, pd.CategoricalDtype):
            dtype = found[name].dtype
            if not isinstance(dtype, pd.CategoricalDtype):
                problems.append(f"{what} {name}: {dtype}")
                continue
            expect(f"{what} {name}", (list(dtype.categories), dtype.ordered),
                   (list(wanted[name].cat.categories), wanted[name].cat.ordered))
            values = np.array_equal(found[name].cat.codes, wanted[name].cat.codes)
        else:
            values = np.array_equal(found[name], wanted[name])
        expect(f"{what} {name}: values are equal", values, True)


def exports(program, folder, rows):
    """Files to keep, by three readers."""
    place, out = f"{folder}/t.h5ad:obs", folder / "out.parquet"
    for codec in ("zstd:3", "snappy", "none"):
        hepfs(program, "export", "--cache-folder=none", place, "--compression", codec, "-o", out)
        same(codec, pd.read_parquet(out), rows)
    found = pl.read_parquet(out)
    for name in ("size", "colour", "many", "runs", "none"):
        texts = rows[name].astype(object).where(rows[name].notna(), None).tolist()
        expect(f"polars {name}", found[name].cast(pl.String).to_list(), texts)
        counts = duckdb.sql(f"select {name}, count(*) from '{out}' where {name} is not null group by 1").fetchall()
        expect(f"DuckDB {name}", dict(counts), {key: n for key, n in rows[name].value_counts().items() if n})
    # What readers leave out by the bounds of row groups and pages is none of what is asked for.
    for label in ("low", "mid", "high", "top"):
        [(count,)] = duckdb.sql(f"select count(*) from '{out}' where size = '{label}'").fetchall()
        expect(f"DuckDB size = {label}", count, int((rows["size"] == label).sum()))
        expect(f"pyarrow size = {label}", len(pd.read_parquet(out, filters=[("size", "==", label)])), count)
    # Few rows, as few row groups: the type and the labels are the same.
    hepfs(program, "export", "--cache-folder=none", place, "x < 5", "-o", out)
    same("five rows", pd.read_parquet(out), rows[:5])
    hepfs(program, "export", "--cache-folder=none", place, "--partition-by", "part", "-o", folder / "parts")
    for label, part in rows.groupby("part", observed=True):
        found = pd.read_parquet(folder / "parts" / f"part={label}" / "part-0.parquet")
        same(f"part {label}", found, part.drop(columns="part"))


QUESTIONS = {
    "size > 'low'": (lambda t: t["size"] > "low", "size:gt:low"),
    "size >= 'high'": (lambda t: t["size"] >= "high", "size:ge:high"),
    "size < 'mid'": (lambda t: t["size"] < "mid", "size:lt:mid"),
    "size <= 'never'": (lambda t: t["size"] <= "never", "size:le:never"),
    "size > 'top'": (lambda t: t["size"] > "top", "size:gt:top"),
    "size between 'low' and 'mid'": (lambda t: (t["size"] >= "low") & (t["size"] <= "mid"), "size:between:low,mid"),
    "size between 'mid' and 'low'": (lambda t: t["x"] < 0, "size:between:mid,low"),
    "not size > 'mid' and x > 100000": (lambda t: (t["size"] <= "mid") & (t["x"] > 100_000), None),
    "size = 'mid'": (lambda t: t["size"] == "mid", "size:eq:mid"),
    "size != 'nothing'": (lambda t: t["size"] != "nothing", "size:ne:nothing"),
    "many > 'label 7919'": (lambda t: t["many"] > "label 7919", "many:gt:label 7919"),
    # Without an order of theirs, by bytes.
    "colour > 'blue'": (lambda t: t["colour"].astype(object) > "blue", "colour:gt:blue"),
}


def queries(program, folder, mount, rows):
    """Which rows are found, and their order."""
    place = f"{folder}/t.h5ad:obs"
    for cache in (["--cache-folder=none"], ["--cache-folder", folder / "cache"]):
        if cache[0] == "--cache-folder":
            hepfs(program, "prepare", "--stats", *cache, folder / "t.h5ad")
        for question, (holds, _) in QUESTIONS.items():
            found = hepfs(program, "query", *cache, place, question, "--columns", "x").split()[1:]
            expect(question, list(map(int, found)), rows["x"][holds(rows)].tolist())
    # Search indexes know no such order.
    hepfs(program, "convert", "--memory=256M", place, folder / "c.h5")
    kinds = ["--kind", "minmax,bitmap,bloom,sorted"]
    hepfs(program, "index", "build", f"{folder}/c.h5:obs", "--column", "size", *kinds)
    for question, (holds, _) in QUESTIONS.items():
        line = ["--cache-folder=none", "--indexes=trust", f"{folder}/c.h5:obs", question, "--columns", "x"]
        found = hepfs(program, "query", *line).split()[1:]
        expect(f"{question} by indexes", list(map(int, found)), rows["x"][holds(rows)].tolist())
    hepfs(program, "mount", "--cache-folder", folder / "cache", folder / "t.h5ad", mount)
    try:
        for holds, path in QUESTIONS.values():
            if path:
                found = (mount / "obs" / "where" / path / "columns" / "x.txt").read_text().split()
                expect(path, list(map(int, found)), rows["x"][holds(rows)].tolist())
        same("mount", pd.read_parquet(mount / "obs" / "table.parquet"), rows)
        same("five rows of a mount", pd.read_parquet(mount / "obs" / "where" / "x:lt:5" / "table.parquet"), rows[:5])
        expect("a label that is none", (mount / "obs" / "where" / "size:gt:huge").exists(), False)
        said = (mount / ".hepfs" / "errors").read_text()
        hint = '"huge" is none of the categories, in their order "never" < "low" < "mid" < "high" < "top"'
        expect(f"{hint} in {said}", hint in said, True)
    finally:
        subprocess.run([program, "umount", "--lazy", mount], check=False)
    for order, columns, descending in [
        ("size, x", ["size", "x"], [False, False]),
        ("size desc, many, x", ["size", "many", "x"], [True, False, False]),
    ]:
        found = hepfs(program, "query", "--cache-folder=none", place, f"x < 160000 order by {order}", "--columns=x")
        wanted = rows[rows["x"] < 160_000].sort_values(columns, ascending=[not d for d in descending])
        expect(f"order by {order}", list(map(int, found.split()[1:])), wanted["x"].tolist())


def frames(program, folder, expected):
    """Every column that pandas itself keeps in Parquet."""
    out, columns = folder / "out.parquet", 0
    for file, tables in json.loads(Path(expected).read_text()).items():
        for key, wanted in tables.items():
            hepfs(program, "export", "--cache-folder=none", f"{DATA / file}:{key[1:]}", "-o", out)
            found = pd.read_parquet(out)
            for at, column in wanted.items():
                is_same = described(found.iloc[:, int(at)]) == column["is"]
                name = column["name"]
                expect(f"{file}{key} {name} is the same", is_same, (file, key, name) not in OTHERWISE)
                columns += 1
    expect("columns", columns > 150, True)


def main(what, program, folder, *more):
    """Prints what differs, and fails if something does."""
    folder = Path(folder)
    if what == "frames":
        frames(program, folder, *more)
    else:
        rows, mount = frame(), folder / "mnt"
        mount.mkdir()
        write(folder / "t.h5ad", rows)
        exports(program, folder, rows)
        queries(program, folder, mount, rows)
    print("\n".join(problems))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main(*sys.argv[1:])
