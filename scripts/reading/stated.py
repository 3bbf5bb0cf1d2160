#!/usr/bin/env python3
"""An attribute `_FillValue` of the values' own type means missing, in whatever way a table is kept.

    stated.py write FOLDER PANDAS     lh5.h5, compound.h5 and pandas.h5 (a copy of PANDAS) with such attributes
    stated.py check FOLDER MOUNT      what pyarrow reads of the tables of a mount of FOLDER is what h5py reads, and missing there
"""

import shutil
import sys
from pathlib import Path

import h5py
import numpy as np
import pyarrow.parquet as pq

RECORD = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "<i2")])


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
        # Of another type than the values: it means nothing.
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
    shutil.copy(pandas, folder / "pandas.h5")
    with h5py.File(folder / "pandas.h5", "r+") as file:
        block = file["fixed/numbers/block0_values"]
        block.attrs["_FillValue"] = block.dtype.type(block[0, 0])


def masked(values, fill):
    """Values with None where they are missing."""
    is_missing = np.isnan(values) if fill != fill else values == fill
    return [None if missing else value for value, missing in zip(values.tolist(), is_missing.tolist())]


def check(folder, mount):
    """All of them."""
    folder, mount = Path(folder), Path(mount)
    expected = {}
    with h5py.File(folder / "lh5.h5") as file:
        table = file["t"]
        expected["lh5.h5/t"] = {
            "a": masked(table["a"][:], 3),
            "pair": [masked(pair, 3) for pair in table["pair"][:]],
            "flag": [bool(value) for value in table["flag"][:]],
            "l": table["l"][:].tolist(),
        }
    with h5py.File(folder / "compound.h5") as file:
        data = file["t"][:]
        expected["compound.h5/t"] = {
            "a": masked(data["a"], 2),
            "b": masked(data["b"], np.nan),
            "c": data["c"].tolist(),
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
            assert found == values, f"{path}: {name}: {found}, not {values}"
    assert not (mount / "compound.h5/table.parquet").exists(), "the description of a table is no column beside it"
    missing = sum(str(columns).count("None") for columns in expected.values())
    print(f"{missing} missing values")


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](*sys.argv[2:])
