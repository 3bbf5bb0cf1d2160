#!/usr/bin/env python3
"""Booleans and enumerations of LH5 outside of tables, laid out as legend-lh5io and Julia write them, as h5py, NumPy,
pandas and pyarrow read them from a mount.

    lh5_values.py write FOLDER          FOLDER/values.lh5
    lh5_values.py check FOLDER MOUNT    truth and names, and in `.npy` what is stored
"""

import sys
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pyarrow.feather as feather
import pyarrow.parquet as pq

KIND = "enum{gamma=1,muon=-2}"
# Name, `datatype`, what is stored, what it stands for. A code without a name is shown as its number.
TRUTH = [0, 7, 1]
CODES = [1, -2, 7]
VALUES = [
    ("flags", "array<1>{bool}", np.array(TRUTH, "u1"), [False, True, True]),
    ("signed", "array<1>{bool}", np.array([0, -1, 1], "i1"), [False, True, True]),
    ("kinds", f"array<1>{{{KIND}}}", np.array(CODES, "i2"), ["gamma", "muon", "7"]),
    ("wide", f"array<1>{{{KIND}}}", np.array(CODES, ">i8"), ["gamma", "muon", "7"]),
    ("nested/flags", "array<1>{bool}", np.array(TRUTH, "u1"), [False, True, True]),
    ("lists/flattened_data", "array<1>{bool}", np.array(TRUTH, "u1"), [False, True, True]),
]
GRIDS = [
    ("grid", "array<2>{bool}", np.array([TRUTH, TRUTH[::-1]], "u1"), [[False, True, True], [True, True, False]]),
    ("pairs", f"array_of_equalsized_arrays<1,1>{{{KIND}}}", np.array([CODES], "i4"), [["gamma", "muon", "7"]]),
]
SCALARS = [
    ("flag", "bool", np.uint8(2), "true"),
    ("stored", "bool", np.bool_(False), "false"),
    ("kind", KIND, np.int32(-2), "muon"),
]
# No booleans, whatever they say: shown as they are stored.
OTHERS = [("floats", "array<1>{bool}", np.array([0.5, 1])), ("numbers", "array<1>{real}", np.array([0, 1], "u1"))]


def write(folder):
    """The file."""
    with h5py.File(Path(folder) / "values.lh5", "w") as file:
        file.attrs["datatype"] = "struct{flags,kinds}"
        file.create_group("nested").attrs["datatype"] = "struct{flags}"
        file.create_group("lists").attrs["datatype"] = "array<1>{array<1>{bool}}"
        file["lists/cumulative_length"] = np.array([1, 1, 3], "u4")
        for name, datatype, stored, *_ in VALUES + GRIDS + SCALARS + OTHERS:
            file[name] = stored
            file[name].attrs["datatype"] = datatype


def _text(value):
    return str(value).lower() if isinstance(value, bool) else value


def check(folder, mount):
    """All values."""
    top = Path(mount)
    mount = top / "values.lh5"
    with h5py.File(Path(folder) / "values.lh5") as file:
        for name, _, stored, wanted in VALUES:
            last = name.rpartition("/")[2]
            assert pq.read_table(mount / f"{name}.parquet")[last].to_pylist() == wanted, name
            assert feather.read_table(mount / f"{name}.arrow")[last].to_pylist() == wanted, name
            assert pd.read_csv(mount / f"{name}.csv")[last].tolist() == wanted, name
            assert (mount / f"{name}.txt").read_text().split() == [_text(one) for one in wanted], name
        for name, _, stored, wanted in GRIDS:
            assert pq.read_table(mount / f"{name}.parquet")[name].to_pylist() == wanted, name
            texts = [[_text(one) for one in row] for row in wanted]
            assert pd.read_csv(mount / f"{name}.csv", dtype=str).values.tolist() == texts, name
        for name, _, stored, wanted in SCALARS:
            assert (mount / f"{name}.txt").read_text() == f"{wanted}\n", name
        for name, _, stored in OTHERS:
            assert pd.read_csv(mount / f"{name}.csv")[name].tolist() == stored.tolist(), name
        for name, _, stored, *_ in VALUES + GRIDS + SCALARS + OTHERS:
            found = np.load(mount / f"{name}.npy")
            assert found.dtype == file[name].dtype and found.tobytes() == file[name][()].tobytes(), (name, found.dtype)
    assert not (top / ".hepfs/errors").read_text()
    print(f"{len(VALUES + GRIDS + SCALARS + OTHERS)} values")


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](*sys.argv[2:])
