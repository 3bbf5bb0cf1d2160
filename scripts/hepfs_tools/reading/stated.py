#!/usr/bin/env python3
"""An attribute `_FillValue` means missing where it is a value of the data, in whatever way a table is kept.

    stated.py write FOLDER PANDAS     lh5.h5, compound.h5, types.h5 and pandas.h5 (a copy of PANDAS) with such attributes
    stated.py check FOLDER MOUNT      what pyarrow reads of the tables of a mount of FOLDER is what h5py reads, and missing there
    stated.py astropy READ MOUNT      what pyarrow reads of a mount of astropy.h5 is what astropy read (READ)
"""

import json
import shutil
import sys
from pathlib import Path

import h5py
import numpy as np
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

RECORD = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "<i2")])

TEXT = h5py.string_dtype()

# Values, and what is stated of them in another type, as h5py makes it of numbers and texts of Python.
TYPES = {
    "single": (np.array([1.5, -9999, 3, -9999.9], "<f4"), np.float64(-9999)),
    "rounded": (np.array([1, 1e20, 3, 1e20], "<f4"), np.float64(1e20)),
    "nan": (np.array([1, np.nan, 3, 4], "<f4"), np.float64(np.nan)),
    "short": (np.array([0, -1, 2, 3], ">i2"), np.int64(-1)),
    "swapped": (np.array([0, 1, 2, 3], "<f8"), np.array(2.0, ">f8")),
    "whole": (np.array([0, 1, 2, 3], "<i4"), np.float64(3)),
    "broken": (np.array([0, 1, 2, 3], "<i4"), np.float64(2.5)),
    "wide": (np.array([0, 7, 2, 3], "<i8"), np.int32(7)),
    "of_one": (np.array([0, 1, 2, 3], "<u1"), np.array([2], "<i8")),
    "two": (np.array([0, 1, 2, 3], "<i4"), np.array([1, 2], "<i4")),
    "word": (np.array([b"a", b"NA", b"c", b"NA "], "S4"), "NA"),
    "text": (np.array(["a", "NA", "", "b"], object), np.bytes_("NA")),
    "is": (np.array([True, False, True, False]), np.int64(1)),
}

# How often the values above stand there.
TIMES = 10


def write(folder, pandas):
    """The files."""
    folder = Path(folder)
    with h5py.File(folder / "lh5.h5", "w") as file:
        table = file.create_group("t")
        table.attrs["datatype"] = "table{a,pair,flag,l}"
        for name, data in {"a": np.arange(6, dtype="<i4"), "pair": np.arange(12, dtype="<f8").reshape(6, 2)}.items():
            made = table.create_dataset(name, data=data)
            made.attrs["datatype"] = "array<1>{real}" if data.ndim == 1 else "array_of_equalsized_arrays<1,1>{real}"
            made.attrs["_FillValue"] = data.dtype.type(3)
        flag = table.create_dataset("flag", data=np.array([0, 1, 0, 1, 0, 1], "u1"))
        flag.attrs.update({"datatype": "array<1>{bool}", "_FillValue": np.uint8(1)})
        # Of another type than the values.
        other = table.create_dataset("l", data=np.arange(6, dtype="<i8"))
        other.attrs.update({"datatype": "array<1>{real}", "_FillValue": np.float64(3)})
    with h5py.File(folder / "compound.h5", "w") as file:
        data = np.zeros(6, RECORD)
        data["a"], data["b"], data["c"] = np.arange(6), [0, np.nan, 2, 3, 4, 5], np.arange(6) % 2
        made = file.create_dataset("t", data=data)
        made.attrs["FIELD_0_ATTR__FillValue"] = np.int32(2)
        made.attrs["FIELD_1_ATTR__FillValue"] = np.float64(np.nan)
        made.attrs["FIELD_2_ATTR__FillValue"] = np.int32(1)
        # A masked table, as astropy writes it (`Table.write(…, serialize_meta=True)`).
        data = np.zeros(6, [("m", "<f8"), ("m.mask", "?"), ("n", "<i8"), ("other.mask", "?")])
        data["m"], data["m.mask"], data["n"], data["other.mask"] = np.arange(6), np.arange(6) % 2, np.arange(6), True
        file["astropy"] = data
        file["astropy.__table_column_meta__"] = np.array([b"datatype:"] * 6)
    with h5py.File(folder / "types.h5", "w") as file:
        for kind, said in {"hep001": {"CLASS": "COLUMN_TABLE"}, "shape": {}}.items():
            group = file.create_group(kind)
            group.attrs.update(said)
            for name, (values, stated) in TYPES.items():
                values = np.tile(values, TIMES)
                made = group.create_dataset(name, data=values, dtype=TEXT if values.dtype == object else None)
                made.attrs["_FillValue"] = stated
        data = np.zeros(4 * TIMES, [(name, TEXT if one.dtype == object else one.dtype) for name, (one, _) in TYPES.items()])
        for at, (name, (values, stated)) in enumerate(TYPES.items()):
            data[name] = np.tile(values, TIMES)
        made = file.create_dataset("compound", data=data)
        for at, (_, stated) in enumerate(TYPES.values()):
            made.attrs[f"FIELD_{at}_ATTR__FillValue"] = stated
        values, stated = TYPES["single"]
        file.create_dataset("alone", data=values.reshape(2, 2)).attrs["_FillValue"] = stated
    shutil.copy(pandas, folder / "pandas.h5")
    with h5py.File(folder / "pandas.h5", "r+") as file:
        block = file["fixed/numbers/block0_values"]
        block.attrs["_FillValue"] = block.dtype.type(block[0, 0])


def masked(values, fill):
    """Values with None where they are missing."""
    is_missing = np.isnan(values) if fill != fill else values == fill
    return [None if missing else value for value, missing in zip(values.tolist(), is_missing.tolist())]


def of_types():
    """What NumPy finds equal is missing; in booleans nothing is."""
    columns = {}
    for name, (values, stated) in TYPES.items():
        if values.dtype == object or values.dtype.kind == "S":
            texts = [one.decode() if isinstance(one, bytes) else one for one in values.tolist()]
            column = [None if one == "NA" else one for one in texts]
        elif values.dtype == bool or np.size(stated) != 1:
            column = values.tolist()
        else:
            column = masked(values, np.ravel(stated)[0])
        columns[name] = column * TIMES
    return columns


def check(folder, mount):
    """All of them."""
    folder, mount = Path(folder), Path(mount)
    expected = {f"types.h5/{kind}": of_types() for kind in ["hep001", "shape", "compound"]}
    with h5py.File(folder / "lh5.h5") as file:
        table = file["t"]
        expected["lh5.h5/t"] = {
            "a": masked(table["a"][:], 3),
            "pair": [masked(pair, 3) for pair in table["pair"][:]],
            "flag": [bool(value) for value in table["flag"][:]],
            "l": masked(table["l"][:], 3),
        }
    with h5py.File(folder / "compound.h5") as file:
        data = file["t"][:]
        expected["compound.h5/t"] = {
            "a": masked(data["a"], 2),
            "b": masked(data["b"], np.nan),
            "c": masked(data["c"], 1),
        }
        expected["compound.h5/astropy"] = {
            "m": [0, None, 2, None, 4, None],
            "n": list(range(6)),
            "other.mask": [True] * 6,
        }
    with h5py.File(folder / "pandas.h5") as file:
        frame = file["fixed/numbers"]
        values, names = frame["block0_values"][:], [str(name) for name in frame["block0_items"][:]]
        columns = {name: values[:, at] for at, name in enumerate(names)}
        # NaN is missing in a frame, whatever else is.
        fill = values[0, 0]
        of_column = lambda values: [None if value == fill or value != value else value for value in values.tolist()]
        expected["pandas.h5/fixed/numbers"] = {name: of_column(values) for name, values in columns.items()}
    for path, columns in expected.items():
        table = pq.read_table(mount / path / "table.parquet")
        for name, values in columns.items():
            found = table[name].to_pylist()
            # NaN is no number that equals another.
            assert found == values or repr(found) == repr(values), f"{path}: {name}: {found}, not {values}"
    alone = [json.loads(line) for line in (mount / "types.h5/alone.ndjson").read_text().splitlines()]
    assert [one for row in alone for one in row][:3] == [1.5, None, 3], alone
    assert not (mount / "compound.h5/table.parquet").exists(), "the description of a table is no column beside it"
    missing = sum(str(columns).count("None") for columns in expected.values())
    print(f"{missing} missing values")


def astropy(read, mount):
    """Masked values, arrays among them, units and descriptions."""
    for name, columns in json.loads(Path(read).read_text()).items():
        table = Path(mount) / name
        known = {one["name"]: one for one in json.loads((table / "metadata.json").read_text())["columns"]}
        for of_all in [pq.read_table(table / "table.parquet"), ipc.open_file(table / "table.arrow").read_all()]:
            assert not [one for one in of_all.column_names if one.endswith(".mask")], of_all.column_names
            for column, said in columns.items():
                found = of_all[column].to_pylist()
                assert found == said["values"], f"{name}/{column}: {found}, not {said['values']}"
        rows = [json.loads(line) for line in (table / "table.ndjson").read_text().splitlines()]
        for column, said in columns.items():
            assert [row[column] for row in rows] == said["values"], f"{name}/{column} of table.ndjson"
            told = {key: known[column].get({"unit": "units"}.get(key, key)) for key in ["unit", "description"]}
            assert told == {key: said[key] for key in told}, f"{name}/{column}: {told}"
    masks = (Path(mount) / "t/columns/v.mask.ndjson").read_text().splitlines()
    assert json.loads(masks[0]) == {"v.mask": [True, False, False]}, masks


if __name__ == "__main__":
    {"write": write, "check": check, "astropy": astropy}[sys.argv[1]](*sys.argv[2:])
