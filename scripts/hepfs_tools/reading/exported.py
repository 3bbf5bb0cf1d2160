#!/usr/bin/env python3
"""What other software finds in files that `hepfs export` writes: units and descriptions, partitions.

    exported.py notes SOURCE GROUP FILE...     metadata of fields are the attributes that h5py finds in a table of HEP001
    exported.py write SOURCE                   a table `t` of texts, numbers and booleans to be parted
    exported.py partitions SOURCE FOLDER BY    FOLDER is that table, parted by columns (BY: a,b)
"""

import sys
from pathlib import Path

import duckdb
import h5py
import numpy as np
import polars
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet

from hepfs_tools.hep001.write import BOOLEAN, april_table, column, strings

NOTES = ("units", "units_vocabulary", "description")
TEXTS = ["a b", "ü/%", "x=y", "%5F_HIVE_DEFAULT_PARTITION__", "..", "+", "NULL", "7", "", "long " * 16, "n/a"]
# Rows of several row groups of a mount, in no order.
ROWS = 300_001


def text(value):
    """An attribute as text."""
    return value.decode() if isinstance(value, bytes) else str(value)


def notes(source, group, *files):
    """Units and descriptions of all columns, in each of the files."""
    found = 0
    with h5py.File(source) as file:
        table = file[group]
        for path in files:
            read = pa.feather.read_table if path.endswith(".arrow") else pa.parquet.read_table
            for field in read(path).schema:
                expected = {key: text(table[field.name].attrs[key]) for key in NOTES if key in table[field.name].attrs}
                if "units_vocabulary" in table.attrs:
                    expected.setdefault("units_vocabulary", text(table.attrs["units_vocabulary"]))
                expected = {f"h5col.{key}": value for key, value in expected.items()}
                metadata = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
                assert metadata == expected, f"{path}: {field.name}: {metadata}, not {expected}"
                found += len(expected)
    assert found, "there is nothing to compare"
    print(f"{found} notes in {len(files)} files")


def values():
    """Columns of the table: name, values with None where they are missing."""
    random = np.random.default_rng(18)
    text = random.choice(len(TEXTS), ROWS)
    few = random.integers(-2, 3, ROWS)
    return {
        "text": [None if at == len(TEXTS) - 1 else TEXTS[at] for at in text],
        "few": [None if value == 2 else int(value) for value in few],
        "flag": [bool(value) for value in random.integers(0, 2, ROWS)],
        "many": [int(value) for value in random.integers(0, 1000, ROWS)],
        "row": list(range(ROWS)),
        "x": random.normal(size=ROWS).tolist(),
        "note": [f"row {row % 1000}" for row in range(ROWS)],
    }


def write(source):
    """The table."""
    made = values()
    with h5py.File(source, "w") as file:
        table = april_table(file.create_group("t"), list(made))
        strings(table, "text", [TEXTS[-1] if value is None else value for value in made["text"]], fillvalue=TEXTS[-1])
        column(table, "few", [99 if value is None else value for value in made["few"]], "i2", fill=99, chunk=10_000)
        column(table, "flag", np.array(made["flag"], "i1"), BOOLEAN)
        column(table, "many", made["many"], "i4", chunk=50_000)
        column(table, "row", made["row"], "i8", chunk=50_000)
        column(table, "x", made["x"], "f8")
        strings(table, "note", made["note"])


def partitions(source, folder, by):
    """Each row is there once, with its values, whoever reads."""
    folder, by, expected = Path(folder), by.split(","), values()
    with h5py.File(source) as file:
        assert file["t/row"][:].tolist() == expected["row"]
    paths = sorted(folder.rglob("*"))
    files = [path for path in paths if path.is_file()]
    keys = set(zip(*(expected[name] for name in by)))
    assert all(path.name == "part-0.parquet" for path in files) and len(files) == len(keys), files[:10]
    for path in files:
        one = pa.parquet.ParquetFile(path)
        assert not set(by) & set(one.schema_arrow.names)
        rows = one.read(["row"])["row"].to_pylist()
        assert rows == sorted(rows), f"{path}: rows are not in the order of the file"
    types = {"text": pa.string(), "few": pa.int16(), "flag": pa.bool_(), "many": pa.int32()}
    hive = pa.dataset.partitioning(pa.schema([(name, types[name]) for name in by]), flavor="hive")
    read = pa.dataset.dataset(folder, partitioning=hive).to_table().sort_by("row")
    for name in expected:
        assert read[name].to_pylist() == expected[name], f"pyarrow: {name}"
    sql = {"text": "VARCHAR", "few": "SMALLINT", "flag": "BOOLEAN", "many": "INTEGER"}
    types = ", ".join(f"'{name}': {sql[name]}" for name in by)
    scan = f"read_parquet('{folder}/**/*.parquet', hive_partitioning = true, hive_types = {{{types}}})"
    columns = duckdb.sql(f"select {', '.join(expected)} from {scan} order by row").fetchnumpy()
    for name in expected:
        found = [None if missing else value for value, missing in zip(*unmasked(columns[name]))]
        assert found == expected[name], f"DuckDB: {name}"
    if not {"text", "few"} & set(by):
        frame = polars.scan_parquet(folder, hive_partitioning=True).collect().sort("row")
        assert frame["x"].to_list() == expected["x"], "polars: x"
    print(f"{len(files)} partitions by {', '.join(by)}")


def unmasked(array):
    """Values, and whether each is missing."""
    return np.ma.getdata(array).tolist(), np.ma.getmaskarray(array)


if __name__ == "__main__":
    {"notes": notes, "write": write, "partitions": partitions}[sys.argv[1]](*sys.argv[2:])
