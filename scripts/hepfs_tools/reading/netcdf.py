#!/usr/bin/env python3
"""Tables of netCDF-4 as other software reads them from a mount, against what xarray made of the same files.

    netcdf.py MOUNT EXPECTED...    EXPECTED is FILE.expected.json of tests/data, whose values are xarray's; FILE.h5 is mounted
"""

import json
import struct
import sys
from pathlib import Path

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet


def duck(path):
    """A Parquet file as DuckDB reads it."""
    return duckdb.sql(f"select * from read_parquet('{path}')").to_arrow_table()


READERS = {
    "pyarrow": (".parquet", pyarrow.parquet.read_table),
    "pyarrow Arrow": (".arrow", pyarrow.feather.read_table),
    "DuckDB": (".parquet", duck),
    "polars": (".parquet", lambda path: polars.read_parquet(path).to_arrow()),
}


def is_same(found, expected):
    """Whether a value is the one expected, bit for bit where it is a float."""
    if expected is None or found is None:
        return expected is found
    if isinstance(expected, dict):
        if "json" in expected:
            return len(found) == len(expected["json"]) and all(map(is_same, found, expected["json"]))
        (kind, bits), = expected.items()
        number, = struct.unpack({"f64": ">d", "f32": ">f"}[kind], bytes.fromhex(bits))
        return found == number or found != found and number != number
    if isinstance(found, np.datetime64):
        return found == np.datetime64(expected.rstrip("Z"))
    if isinstance(found, bool):
        return str(found).lower() == expected
    return str(found) == str(expected)


def values(column):
    """The values of a column, instants exactly."""
    if pa.types.is_timestamp(column.type):
        # As numbers: pandas and datetime hold neither all years nor nanoseconds.
        counts = column.cast(pa.int64()).to_pylist()
        return [None if count is None else np.datetime64(count, column.type.unit) for count in counts]
    return column.to_pylist()


def main(mount, *expected):
    """All tables of all files, by all readers."""
    checked = 0
    for path in map(Path, expected):
        for name, table in json.loads(path.read_text())["tables"].items():
            at = Path(mount) / path.name.replace(".expected.json", ".h5") / name.strip("/")
            for reader, (suffix, read) in READERS.items():
                found = read(at / f"table{suffix}")
                columns = [column for column in table["columns"] if column["in_table"]]
                assert found.column_names == [column["name"] for column in columns], f"{at}: {found.column_names}"
                for column in columns:
                    of_reader = values(found[column["name"]])
                    wrong = [at for at, pair in enumerate(zip(of_reader, column["csv"])) if not is_same(*pair)]
                    right = not wrong and len(of_reader) == len(column["csv"])
                    row = wrong[0] if wrong else 0
                    assert right, f"{reader}: {at}: {column['name']}: row {row}: {of_reader[row]}, not {column['csv'][row]}"
                    checked += 1
    print(f"{checked} columns")


if __name__ == "__main__":
    main(*sys.argv[1:])
