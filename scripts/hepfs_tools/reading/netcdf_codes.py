#!/usr/bin/env python3
"""Packed numbers of netCDF that Parquet has by a dictionary of all their codes: readers find what NumPy computes.

    netcdf_codes.py HEPFS FOLDER    writes FOLDER/codes.h5, mounts it and reads it
"""

import math
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import fastparquet
import h5py
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

# One row group of 8 rows for each of 65,536 codes, and a short one behind it.
ROWS = 8 * 65_536 + 4_321
# Variables: type as stored, attributes, and the width of an index if there is a dictionary.
VARIABLES = {
    "double": ("<i2", {"scale_factor": 0.01, "add_offset": 273.15, "_FillValue": np.int16(-32768)}, 2),
    "required": ("<i2", {"scale_factor": 0.1}, 2),
    "single": ("<i2", {"scale_factor": np.float32(0.1), "add_offset": np.float32(-3), "missing_value": np.int16(7)}, 2),
    "falling": (">i2", {"scale_factor": -2.5, "_FillValue": np.int16(0)}, 2),
    "unsigned": ("<i2", {"scale_factor": 0.5, "_Unsigned": "true", "_FillValue": np.int16(-1)}, 2),
    "u2": ("<u2", {"add_offset": 1.5, "_FillValue": np.uint16(65535)}, 2),
    "byte": ("i1", {"scale_factor": np.float32(0.25), "_FillValue": np.int8(-128)}, 1),
    "u1": ("u1", {"scale_factor": 3.0, "missing_value": np.array([3, 4], "u1")}, 1),
    "long": ("<i4", {"scale_factor": 0.5, "_FillValue": np.int32(5)}, None),
    "infinite": ("<i2", {"scale_factor": 1e307}, None),
    "whole": ("<i2", {"_FillValue": np.int16(9)}, None),
}


def write(path):
    """What is stored, of each variable."""
    random = np.random.default_rng(3)
    stored = {}
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(ROWS, dtype="f8")
        file["x"].make_scale("x")
        for name, (kind, attributes, _) in VARIABLES.items():
            bounds = np.iinfo(np.dtype(kind).str if name != "long" else "i2")
            values = random.integers(bounds.min, bounds.max, ROWS, endpoint=True).astype(kind)
            # All codes are there, and a stretch without a missing one, and one of nothing else.
            values[: bounds.max - bounds.min + 1] = np.arange(bounds.min, bounds.max + 1)
            missing = np.ravel([attributes.get("_FillValue", attributes.get("missing_value", []))])
            if len(missing):
                values[400_000:400_500] = missing[0]
            options = {"chunks": (1 << 16,), "compression": 1, "shuffle": True} if name != "required" else {}
            file.create_dataset(name, data=values, **options)
            file[name].dims[0].attach_scale(file["x"])
            file[name].attrs.update(attributes)
            stored[name] = values
    return stored


def expected(name, stored):
    """The numbers that stored ones stand for, and which are missing."""
    attributes = VARIABLES[name][1]
    missing = np.isin(stored, attributes.get("_FillValue", attributes.get("missing_value", [])))
    if "_Unsigned" in attributes:
        stored = stored.view("<u2")
    scale, offset = attributes.get("scale_factor"), attributes.get("add_offset")
    if scale is None and offset is None:
        return stored, missing
    single = stored.dtype.itemsize <= 2 and isinstance(scale, np.float32)
    numbers = stored.astype("f4" if single else "f8")
    if scale is not None:
        with np.errstate(over="ignore"):
            numbers = numbers * numbers.dtype.type(scale)
    return (numbers if offset is None else numbers + numbers.dtype.type(offset)), missing


def same(name, reader, found, missing_found, numbers, missing):
    """Bit for bit."""
    assert (missing_found == missing).all(), (reader, name, np.flatnonzero(missing_found != missing)[:5])
    found, numbers = found[~missing], numbers[~missing]
    with np.errstate(invalid="ignore"):
        same = (found == numbers) & (np.signbit(found) == np.signbit(numbers)) if found.dtype.kind == "f" else found == numbers
    assert same.all(), (reader, name, np.flatnonzero(~same)[:5])


def read(path):
    """Columns by each reader: numbers, with anything where they are missing, and which are."""
    table = pq.read_table(path)
    for name in VARIABLES:
        column = table[name].combine_chunks()
        fill = pa.scalar(0, column.type)
        yield "pyarrow", name, column.fill_null(fill).to_numpy(), column.is_null().to_numpy(zero_copy_only=False)
    rows = duckdb.sql(f"select * from read_parquet('{path}')").fetchnumpy()
    for name in VARIABLES:
        column = np.ma.asarray(rows[name])
        yield "DuckDB", name, column.data, np.ma.getmaskarray(column)
    rows = pl.read_parquet(path)
    for name in VARIABLES:
        column = rows[name]
        yield "Polars", name, column.fill_null(0).to_numpy(), column.is_null().to_numpy()
    # Of integers that may be missing it finds a type that they do not fit.
    names = [name for name in VARIABLES if name != "whole"]
    rows = fastparquet.ParquetFile(str(path)).to_pandas(names)
    for name in names:
        column = rows[name]
        missing = column.isna().to_numpy()
        yield "fastparquet", name, column.fillna(0).to_numpy(), missing


def encodings(path):
    """The dictionary is there where it should be; row groups are as long as it wants them."""
    metadata = pq.ParquetFile(path).metadata
    assert [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)] == [8 * 65_536, 4_321]
    group = metadata.row_group(0)
    chunks = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    for name, (_, _, width) in VARIABLES.items():
        assert chunks[name].has_dictionary_page == (width is not None), name
        if width is not None:
            cell = 4 if chunks[name].physical_type == "FLOAT" else 8
            most = (1 << 8 * width) * cell + group.num_rows * (width + 0.2)
            assert chunks[name].total_compressed_size < most, (name, chunks[name].total_compressed_size, most)


def statistics(path, stored):
    """What is known of the values once they were read."""
    metadata = pq.ParquetFile(path).metadata
    names = [metadata.row_group(0).column(at).path_in_schema for at in range(metadata.num_columns)]
    for name, values in stored.items():
        numbers, missing = expected(name, values)
        start = 0
        for at in range(metadata.num_row_groups):
            group = metadata.row_group(at)
            part = slice(start, start + group.num_rows)
            start += group.num_rows
            known = group.column(names.index(name)).statistics
            here = numbers[part][~missing[part]]
            assert known is not None and known.null_count == missing[part].sum(), (name, known)
            assert (known.min, known.max) == (here.min(), here.max()), (name, known, here.min(), here.max())


def selected(path, numbers, missing):
    """Engines find rows by their values."""
    bound = float(np.median(numbers))
    asked = f"select count(*), sum(double) from read_parquet('{path}') where double > {bound!r}"
    count, total = duckdb.sql(asked).fetchall()[0]
    wanted = numbers[~missing & (numbers > bound)]
    assert count == len(wanted) and math.isclose(total, wanted.sum(), rel_tol=1e-12), (count, len(wanted))


def main(hepfs, folder):
    """All of it."""
    source, mountpoint = Path(folder) / "codes.h5", Path(folder) / "mnt"
    mountpoint.mkdir()
    stored = write(source)
    # Of a file that was written just now nothing is kept.
    time.sleep(3)
    for round in range(2):
        subprocess.run([hepfs, "mount", "--cache-folder", Path(folder) / "cache", source, mountpoint], check=True)
        try:
            path = mountpoint / "table.parquet"
            encodings(path)
            for reader, name, found, missing_found in read(path):
                same(name, reader, found, missing_found, *expected(name, stored[name]))
            selected(path, *expected("double", stored["double"]))
            # A file of a column, and rows that were chosen.
            numbers, missing = expected("single", stored["single"])
            column = pq.read_table(mountpoint / "columns/single.parquet")["single"].combine_chunks()
            same("single", "columns/", column.fill_null(0).to_numpy(), np.array(column.is_null()), numbers, missing)
            if round == 1:
                statistics(path, stored)
        finally:
            subprocess.run([hepfs, "umount", "--lazy", mountpoint], check=False)
    print(f"{len(VARIABLES)} variables of {ROWS} rows")


if __name__ == "__main__":
    main(*sys.argv[1:])
