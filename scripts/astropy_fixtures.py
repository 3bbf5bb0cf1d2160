#!/usr/bin/env python3
"""Tables of astropy (astropy 8, h5py): masked columns, of arrays too, units and descriptions.

    astropy_fixtures.py [FOLDER]    writes tests/data/astropy.h5, and astropy.read.json: what `Table.read` gives of each table

Needs what no test does: `pip install astropy h5py pyyaml`.
"""

import json
import sys
from pathlib import Path

import h5py
import numpy as np
from astropy import units as u
from astropy.table import Column, MaskedColumn, QTable, Table
from astropy.time import Time
from astropy.utils.masked import Masked

ROWS = 4
DATA = Path(__file__).parent.parent / "tests/data"


def masked(values, mask, **said):
    return MaskedColumn(values, mask=np.reshape(mask, np.shape(values)), **said)


def table():
    """Every kind of column."""
    made = Table()
    made["a"] = masked(np.arange(4.0), [0, 1, 0, 0], unit="m", description="with: signs, {odd} 'text'\nin two lines")
    made["v"] = masked(np.arange(12, dtype="f4").reshape(4, 3), np.arange(12) % 5 == 0, unit="km / s")
    made["w"] = masked(np.arange(24).reshape(4, 2, 3), np.arange(24) % 7 == 0, description="of rank 3")
    made["s"] = masked(["x", "yy", "z", "no"], [0, 0, 1, 0], description=" ".join(f"word{at}" for at in range(40)))
    made["sv"] = masked(np.array(["a", "bb", "c", "d", "e", "f", "g", "h"]).reshape(4, 2), [0, 1, 0, 0, 1, 1, 0, 0])
    made["b"] = masked([True, False, True, False], [0, 0, 1, 0])
    made["bv"] = masked(np.tile([True, False], 4).reshape(4, 2), np.arange(8) % 3 == 0)
    made["n"] = Column([1, 2, 3, 4], unit="1e-3 Jy", format=".3f", meta={"deep": [1, {"unit": "lost"}], "text": "it's"})
    made["plain"] = np.arange(8).reshape(4, 2)
    made["NULL"] = Column([1, 2, 3, 4], unit="Angstrom", description="null")
    made["\u00e9"] = Column([1, 2, 3, 4], description="\u00c5ngstr\u00f6m, \\ and \"quotes\"")
    made.meta["datatype"] = [{"name": "n", "unit": "lost"}]
    return made


def quantities():
    """Masked quantities, which lie in the file as columns do, and times, which lie there as two numbers."""
    made = QTable()
    made["q"] = Masked(np.arange(4.0) * u.m, mask=[0, 1, 0, 0])
    made["qv"] = Masked(np.arange(8.0).reshape(4, 2) * u.s, mask=np.arange(8).reshape(4, 2) % 3 == 0)
    made["time"] = Time(np.arange(50000.0, 50004.0), format="mjd")
    return made


def read(path, name):
    """Columns of numbers and texts as `Table.read` gives them: units, descriptions, values with None for what is missing."""
    table, columns = Table.read(path, path=name), {}
    for column in table.itercols():
        if isinstance(column, Column):
            unit = None if column.unit is None else str(column.unit)
            # `tolist` of a column of texts forgets its mask.
            values = np.ma.getdata(column.data)
            values = np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values
            values = np.ma.masked_array(values, getattr(column, "mask", False)).tolist()
        elif isinstance(column, (u.Quantity, Masked)):
            unit = str(column.unit)
            mask, values = getattr(column, "mask", np.zeros(column.shape, bool)), np.asarray(column.unmasked.value)
            values = np.ma.masked_array(values, mask).tolist()
        else:
            continue
        columns[column.info.name] = {"unit": unit, "description": column.info.description, "values": values}
    return columns


def main(folder):
    path = folder / "astropy.h5"
    table().write(path, path="t", serialize_meta=True, overwrite=True)
    quantities().write(path, path="g/q", serialize_meta=True, append=True)
    with h5py.File(path, "r+") as file:
        # As astropy before 3.1 kept it.
        file["old"] = file["t"][:][["n", "NULL"]].copy()
        lines = ["datatype:", "- {name: n, unit: 0.001 Jy, datatype: int64, description: of old}", "- {name: 'NULL', datatype: int64}"]
        file["old"].attrs["__table_column_meta__"] = np.array([line.encode() for line in lines])
    said = {name: read(path, name) for name in ["t", "g/q", "old"]}
    (folder / "astropy.read.json").write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA)
