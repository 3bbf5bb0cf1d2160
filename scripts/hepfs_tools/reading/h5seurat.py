#!/usr/bin/env python3
"""Data frames of h5Seurat, laid out as SeuratDisk's `WriteH5Group.R` and `Convert.R` write them, as pandas, pyarrow and
h5py read them from a mount.

    h5seurat.py write FOLDER          FOLDER/cells.h5seurat, FOLDER/converted.h5seurat
    h5seurat.py check FOLDER MOUNT    factors, logicals, row names and the order of columns are R's
"""

import json
import os
import sys
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pyarrow.parquet as pq

NA = -(2**31)
CELLS = [f"cell-{at}" for at in range(6)]
TEXT = h5py.string_dtype()
LEVELS = ["B cell", "T cell", "Grüße"]
# Numbers of levels as R keeps them, from 1; and what they stand for.
NUMBERS = [2, 1, NA, 3, 2, 1]
KINDS = ["T cell", "B cell", None, "Grüße", "T cell", "B cell"]


def factor(group, name, levels, numbers):
    """WriteH5Group of a factor."""
    group.create_dataset(f"{name}/values", data=np.array(numbers, "i4"), maxshape=(None,))
    group.create_dataset(f"{name}/levels", data=levels, dtype=TEXT, maxshape=(None,))


def texts(group, name, values):
    """WriteH5Group of characters."""
    group.create_dataset(name, data=values, dtype=TEXT)


def listed(group, name, values):
    """An attribute of texts."""
    group.attrs.create(name, np.array(values, object), dtype=TEXT)


def begun(file):
    """What every file has."""
    file.attrs.update({"active.assay": "RNA", "project": "P", "version": "3.1.5.9900"})
    texts(file, "cell.names", CELLS)
    factor(file, "active.ident", ["P"], [1] * len(CELLS))


def write(folder):
    """Both files."""
    with h5py.File(Path(folder) / "cells.h5seurat", "w") as file:
        begun(file)
        data = file.create_group("meta.data")
        factor(data, "kind", LEVELS, NUMBERS)
        data["nCount"] = np.array([5.0, np.nan, 7, 8, 9, 10])
        data["n"] = np.array([1, NA, 3, 4, 5, 6], "i4")
        data["doublet"] = np.array([0, 1, 2, 1, 0, 0], "i4")
        data["passed"] = np.array([1, 1, 2, 1, 0, 0], "i4")
        data["passed"].attrs["s3class"] = "logical"
        texts(data, "note", [f"note {at}" for at in range(6)])
        # What no list names comes last; what is no column is left out.
        data["unlisted"] = np.arange(6, dtype="i4")
        data["matrix"] = np.zeros((6, 2))
        data["strange/values"] = np.arange(6)
        factor(data, "short", ["x"], [1, 1])
        texts(data, "_index", CELLS)
        listed(data, "colnames", ["note", "kind", "n", "doublet", "passed", "nCount", "gone", "matrix", "strange", "short"])
        listed(data, "logicals", ["doublet"])
        data.attrs["_index"] = "_index"
        features = file.create_group("assays/RNA")
        texts(features, "features", ["g1", "g2"])
        # No attribute need say that this is a data frame.
        factor(features, "meta.features/biotype", ["coding", "other"], [2, 1])
        features["meta.features/mean"] = np.array([0.5, 1.5])
        # What contradicts itself costs its column.
        odd = file.create_group("misc/odd")
        listed(odd, "colnames", ["far", "truth", "floats", "twice"])
        listed(odd, "logicals", ["truth"])
        factor(odd, "far", ["x", "y"], [2, 9, -1])
        odd["truth"] = np.array([0, 7, 1], "i4")
        factor(odd, "twice", ["x", "x"], [1, 2, 0])
        odd["floats/values"], odd["floats/levels"] = np.arange(3.0), np.array([b"x"])
        # A list that is no data frame.
        file["misc/settings/values"] = np.arange(3)
        file["misc/settings/levels"] = np.arange(3)
    with h5py.File(Path(folder) / "converted.h5seurat", "w") as file:
        begun(file)
        # Copied from AnnData 0.7 with its attributes; the row names are cell.names now.
        data = file.create_group("meta.data")
        data.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.1.0", "_index": "index"})
        listed(data, "column-order", ["kind", "n"])
        listed(data, "colnames", ["kind", "n"])
        data["n"] = np.arange(6)
        texts(data, "__categories/kind", LEVELS)
        # Codes and one: 0 where there is none.
        factor(data, "kind", LEVELS, [2, 1, 0, 3, 2, 1])


def check(folder, mount):
    """All tables."""
    top = Path(mount)
    cells = top / "cells.h5seurat"
    found = pd.read_parquet(cells / "meta.data/table.parquet")
    columns = ["note", "kind", "n", "doublet", "passed", "nCount", "unlisted"]
    assert found.index.tolist() == CELLS and found.index.name is None and found.columns.tolist() == columns, found
    assert [None if one is np.nan or pd.isna(one) else one for one in found["kind"]] == KINDS
    assert found["kind"].cat.categories.tolist() == LEVELS
    table = pq.read_table(cells / "meta.data/table.parquet").to_pydict()
    wanted = {
        "n": [1, None, 3, 4, 5, 6],
        "doublet": [False, True, None, True, False, False],
        "passed": [True, True, None, True, False, False],
        "nCount": [5, None, 7, 8, 9, 10],
        "note": [f"note {at}" for at in range(6)],
        "unlisted": list(range(6)),
    }
    for name, values in wanted.items():
        assert table[name] == values, (name, table[name])
    text = pd.read_csv(cells / "meta.data/table.csv", keep_default_na=False, dtype=str)
    assert text.columns.tolist() == ["_index", *columns]
    assert text["kind"].tolist() == [one or "" for one in KINDS]
    assert text["doublet"].tolist() == ["false", "true", "", "true", "false", "false"]
    kinds = pd.read_csv(cells / "meta.data/where/kind:eq:T cell/table.csv", dtype=str)
    assert kinds["_index"].tolist() == ["cell-0", "cell-4"], kinds
    # Stored bytes are R's.
    assert np.load(cells / "meta.data/columns/kind.npy").tolist() == NUMBERS
    assert np.load(cells / "meta.data/columns/doublet.npy").tolist() == [0, 1, 2, 1, 0, 0]
    said = json.loads((cells / "meta.data/metadata.json").read_text())
    assert said["dialect"] == "h5Seurat", said["dialect"]
    told = {(one["id"], one["path"], one["found"]) for one in said["findings"]}
    assert told == {
        ("h5seurat/column", "/meta.data/matrix", "a dataset of rank 2, not 1"),
        ("h5seurat/column", "/meta.data/strange", "a group without levels of rank 1"),
        ("h5seurat/column-missing", "/meta.data", "gone: there is no such member"),
        ("h5seurat/column-length", "/meta.data/short", "2 rows, the table has 6"),
    }, told
    assert (cells / "meta.data/columns/short.txt").read_text() == "x\nx\n"
    # What is no column is shown by itself, a factor nowhere else.
    beside = set(os.listdir(cells / "meta.data"))
    assert {"matrix.npy", "strange"} <= beside and not {"kind", "_index.npy"} & beside, beside
    features = pd.read_parquet(cells / "assays/RNA/meta.features/table.parquet")
    assert features.index.tolist() == ["g1", "g2"]
    assert features.astype({"biotype": str}).to_dict("list") == {"biotype": ["other", "coding"], "mean": [0.5, 1.5]}
    assert not (cells / "misc/settings/table.parquet").exists()
    assert (cells / "misc/odd/table.csv").read_text() == "far,truth,twice\ny,false,x\n,,x\n,true,\n"
    lines = [line for line in (top / ".hepfs/findings").read_text().splitlines() if "/misc/odd" in line]
    for path, rule in {"far": "values/category-range", "truth": "values/boolean", "floats": "h5seurat/column"}.items():
        assert any(f"/misc/odd/{path}" in line and rule in line for line in lines), (path, lines)
    converted = pd.read_parquet(top / "converted.h5seurat/meta.data/table.parquet")
    assert converted.index.tolist() == CELLS and converted.columns.tolist() == ["kind", "n"], converted
    assert [None if pd.isna(one) else one for one in converted["kind"]] == KINDS
    assert not json.loads((top / "converted.h5seurat/meta.data/metadata.json").read_text())["findings"]
    assert not (top / ".hepfs/errors").read_text()
    print("5 data frames")


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](*sys.argv[2:])
