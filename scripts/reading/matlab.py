#!/usr/bin/env python3
"""Values of MATLAB 7.3 by themselves, written as MATLAB writes them, as h5py, pandas and pyarrow read them from a mount.

    matlab.py write FOLDER          FOLDER/values.mat
    matlab.py check FOLDER MOUNT    texts, booleans and values without elements are these
"""

import json
import os
import sys
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pyarrow.parquet as pq

TEXT = "Größe \U0001f600, 1\n"
LINES = ["ab ", "cde", "  f"]


def put(file, name, kind, values, **attributes):
    """A value: MATLAB's axes stand in the other order."""
    file[name] = np.ascontiguousarray(np.asarray(values).T)
    file[name].attrs.update({"MATLAB_class": np.bytes_(kind)} | attributes)


def units(text):
    """What MATLAB keeps of a text: UTF-16."""
    return np.frombuffer(text.encode("utf-16-le"), "u2")


def write(folder):
    """The file."""
    with h5py.File(Path(folder) / "values.mat", "w", userblock_size=512) as file:
        put(file, "row", "char", [units(TEXT)], MATLAB_int_decode=np.int32(2))
        put(file, "upright", "char", units("up")[:, None], MATLAB_int_decode=np.int32(2))
        put(file, "lines", "char", [units(line) for line in LINES], MATLAB_int_decode=np.int32(2))
        put(file, "cube", "char", np.zeros((2, 2, 2), "u2"), MATLAB_int_decode=np.int32(2))
        put(file, "long", "char", np.full((1, (1 << 16) + 1), 65, "u2"), MATLAB_int_decode=np.int32(2))
        put(file, "flags", "logical", np.array([[1, 0, 1]], "u1"), MATLAB_int_decode=np.int32(1))
        put(file, "flag", "logical", np.array([[1]], "u1"), MATLAB_int_decode=np.int32(1))
        for kind in ("char", "double", "logical", "struct", "cell"):
            put(file, f"empty_{kind}", kind, np.array([0, 7], "u8"), MATLAB_empty=np.uint8(1))
        put(file, "plain", "double", [[1.5, 2.5]])
        put(file, "column", "double", np.arange(20_000.0)[:, None])
        put(file, "number", "double", [[7.5]])
        pair = np.dtype([("real", "f8"), ("imag", "f8")])
        for name, values in {"complex_row": [1 + 2j, -3j], "complex_grid": [[1, 2j], [3, 4], [5j, 6]]}.items():
            made = np.atleast_2d(np.array(values, "c16"))
            put(file, name, "double", np.ascontiguousarray(made).view(pair).reshape(made.shape))
        for name, fields in {"table": {"a": np.arange(5.0), "b": np.arange(5.0) ** 2, "fs": 250.0}, "settings": {"a": [1, 2], "b": [3, 4], "fs": 1.0}}.items():
            file.create_group(name).attrs["MATLAB_class"] = np.bytes_("struct")
            for field, values in fields.items():
                put(file, f"{name}/{field}", "double", np.atleast_2d(np.array(values, "f8")))


def check(folder, mount):
    """All values."""
    top = Path(mount)
    mount = top / "values.mat"
    names = set(os.listdir(mount))
    files = lambda name: {one.removeprefix(name) for one in names if one.rpartition(".")[0] == name}
    assert (mount / "row.txt").read_text() == TEXT
    assert json.loads((mount / "row.ndjson").read_text()) == TEXT
    assert (mount / "upright.txt").read_text() == "up"
    assert files("row") == files("upright") == {".txt", ".ndjson"}, files("row")
    assert pq.read_table(mount / "lines.parquet")["lines"].to_pylist() == LINES
    assert (mount / "lines.txt").read_text().splitlines() == LINES
    assert pd.read_csv(mount / "lines.csv")["lines"].tolist() == LINES
    # Characters of three axes, and too many of them, are the numbers that are stored.
    with h5py.File(Path(folder) / "values.mat") as file:
        for name in ("cube", "long", "flags", "empty_double"):
            assert (np.load(mount / f"{name}.npy") == file[name][()]).all(), name
    assert pq.read_table(mount / "flags.parquet")["flags"].to_pylist() == [True, False, True]
    assert pd.read_csv(mount / "flag.csv")["flag"].tolist() == [True]
    assert (mount / "empty_char.txt").read_bytes() == b""
    for kind in ("double", "logical", "struct", "cell"):
        assert files(f"empty_{kind}") == {".npy", ".raw"}, (kind, files(f"empty_{kind}"))
    # Vectors are lines, whichever way they lie.
    for name, values in {"plain": [1.5, 2.5], "column": list(range(20_000)), "number": [7.5]}.items():
        assert pd.read_csv(mount / f"{name}.csv")[name].tolist() == pd.read_parquet(mount / f"{name}.parquet")[name].tolist() == values, name
        assert [float(one) for one in (mount / f"{name}.txt").read_text().split()] == values, name
    assert np.load(mount / "column.npy").shape == (1, 20_000)
    assert np.load(mount / "complex_row.npy").tolist() == [[1 + 2j], [-3j]]
    assert (np.load(mount / "complex_grid.npy").T == [[1, 2j], [3, 4], [5j, 6]]).all()
    assert pd.read_csv(mount / "complex_row.csv")["complex_row"].map(json.loads).tolist() == [{"re": 1, "im": 2}, {"re": 0, "im": -3}]
    assert pd.read_parquet(mount / "table/table.parquet").to_dict("list") == {"a": [0, 1, 2, 3, 4], "b": [0, 1, 4, 9, 16]}
    assert not (mount / "settings/table.parquet").exists()
    assert not (top / ".hepfs/errors").read_text()
    print("20 values")


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](*sys.argv[2:])
