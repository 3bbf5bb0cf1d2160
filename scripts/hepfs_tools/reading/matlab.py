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


# An array of structs: a field, and what it is in each struct. `None` is a value without elements.
STRUCTS = {
    "latency": ("double", [1.5, 2.5, None, 4.0]),
    "type": ("char", ["square", "", "rt", "Größe"]),
    "good": ("logical", [True, False, True, None]),
    "count": ("int32", [1, 2, 3, 4]),
    "mixed": (["double", "single", "double", "int8"], [1.5, 0.25, None, 3]),
}
# Fields that are left out, and why.
LEFT_OUT = {
    "waves": "cell 1 is no single number or text",
    "both": "Float64 beside LargeUtf8",
    "wide": "Float64 beside Int64",
    "nothing": "none of them has a value",
    "inner": "cell 0 leads to /#refs#/inner0",
}


def put_structs(file, name):
    """Every field is a dataset of references without a class, to what lies in `/#refs#`."""
    group = file.create_group(name)
    group.attrs["MATLAB_class"] = np.bytes_("struct")
    waves = ("double", [1.0, [1.0, 2.0], 3.0, 4.0])
    others = {
        "waves": waves,
        "both": (["double", "char", "double", "char"], [1.0, "a", 2.0, "b"]),
        "wide": (["double", "int64", "int64", "int64"], [0.5, 1, 2, 3]),
        "nothing": ("double", [None] * 4),
    }
    for field, (kinds, values) in (STRUCTS | others).items():
        kinds = [kinds] * 4 if isinstance(kinds, str) else kinds
        for at, (kind, value) in enumerate(zip(kinds, values)):
            place = f"#refs#/{name}{field}{at}"
            if value is None or value == "":
                put(file, place, kind, np.array([0, 0], "u8"), MATLAB_empty=np.uint8(1))
            elif kind == "char":
                put(file, place, kind, [units(value)], MATLAB_int_decode=np.int32(2))
            else:
                dtype = {"double": "f8", "single": "f4", "logical": "u1"}.get(kind, kind)
                put(file, place, kind, np.atleast_2d(np.array(value, dtype)))
        group.create_dataset(field, (4, 1), h5py.ref_dtype)[:, 0] = [file[f"#refs#/{name}{field}{at}"].ref for at in range(4)]
    for at in range(4):
        file.create_group(f"#refs#/inner{at}").attrs["MATLAB_class"] = np.bytes_("struct")
    group.create_dataset("inner", (4, 1), h5py.ref_dtype)[:, 0] = [file[f"#refs#/inner{at}"].ref for at in range(4)]
    names = [*STRUCTS, *LEFT_OUT]
    group.attrs.create("MATLAB_fields", np.array([np.array(list(one.encode()), "u1").view("S1") for one in names] + [0], object)[:-1], dtype=h5py.vlen_dtype("S1"))


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
        put_structs(file, "events")
        # Structs of matrices are a group, and so is an array without any.
        waves = file.create_group("waves")
        waves.attrs["MATLAB_class"] = np.bytes_("struct")
        waves.create_dataset("x", (2, 1), h5py.ref_dtype)[:, 0] = [file["#refs#/eventswaves1"].ref] * 2
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
    found = pq.read_table(mount / "events/table.parquet")
    assert found.to_pydict() == {field: values for field, (_, values) in STRUCTS.items()}, found.to_pydict()
    types = {"latency": "double", "good": "bool", "count": "int32", "mixed": "double"}
    assert {name: str(found.schema.field(name).type) for name in types} == types
    assert (mount / "events/table.csv").read_text().splitlines()[1:3] == ["1.5,square,true,1,1.5", "2.5,\"\",false,2,0.25"]
    assert pd.read_csv(mount / "events/where/type:eq:rt/table.csv")["count"].tolist() == [3]
    findings = json.loads((mount / "events/metadata.json").read_text())["findings"]
    assert {one["path"].removeprefix("/events/"): one["found"] for one in findings} == LEFT_OUT, findings
    assert {one["id"] for one in findings} == {"matlab/struct-field"}
    assert not (mount / "waves/table.parquet").exists()
    assert not (top / ".hepfs/errors").read_text()
    print("20 values, an array of structs")


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](*sys.argv[2:])
