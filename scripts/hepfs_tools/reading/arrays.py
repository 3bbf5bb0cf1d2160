"""Datasets that are tables by themselves, through other software: each must read what h5py stored, missing as null.

    python3 -m hepfs_tools.reading.arrays FILE.h5 MOUNT

`FILE.h5` is `tests/data/arrays.h5`, mounted at MOUNT. Prints what differs, and fails if something does.
"""

import sys
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from hepfs_tools.hep001 import oracle
from hepfs_tools.reading import check, parquet, text, values  # noqa: F401
from hepfs_tools.reading.reader import READERS

VIEWS = {
    "csv": ("pyarrow csv", "DuckDB csv", "polars csv", "pandas csv"),
    "parquet": ("pyarrow", "DuckDB", "pandas", "polars"),
    "arrow": ("pyarrow memory map", "DuckDB Arrow", "polars Arrow", "pandas Arrow"),
}

# Of the group `ranks`, each with rank 1, 2 and 3; all of `missing` and of `layouts`.
NAMES = ("i8", "u16_be", "u64", "i64_be", "f16", "f32_be", "f64", "complex", "boolean", "color", "fixed", "text")
RECORDS = ("packed", "nested", "texts", "lists")


def duckdb_arrow(path, columns):
    """DuckDB, which has no reader of Arrow files of its own, over pyarrow's."""
    import duckdb

    found = ds.dataset(path, format="ipc")  # noqa: F841, DuckDB finds it by its name
    with duckdb.connect() as connection:
        return connection.sql(f"select {parquet.quoted(columns)} from found").to_arrow_table()


# ---------------------------------------------------------------------------------------------------------------------
# What h5py reads


def kind_of(dtype):
    """The Arrow type of an element."""
    if h5py.check_string_dtype(dtype) or h5py.check_enum_dtype(dtype) or dtype.kind == "S":
        return pa.string()
    if dtype.subdtype:
        kind = kind_of(dtype.subdtype[0])
        for _ in dtype.shape:
            kind = pa.list_(kind)
        return kind
    if h5py.check_vlen_dtype(dtype):
        return pa.list_(kind_of(h5py.check_vlen_dtype(dtype)))
    if dtype.names:
        return pa.struct([(name, kind_of(dtype[name])) for name in dtype.names])
    if dtype.kind == "c":
        part = pa.from_numpy_dtype(f"f{dtype.itemsize // 2}")
        return pa.struct([("re", part), ("im", part)])
    return pa.float32() if dtype == np.float16 else pa.from_numpy_dtype(dtype.newbyteorder("="))


def shown(dtype, value):
    """An element as Python data."""
    members = h5py.check_enum_dtype(dtype)
    if members:
        return {code: name for name, code in members.items()}.get(int(value), str(int(value)))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if dtype.subdtype:
        return value.tolist()
    if h5py.check_vlen_dtype(dtype):
        return value.tolist()
    if dtype.names:
        return {name: shown(dtype[name], value[name]) for name in dtype.names}
    if dtype.kind == "c":
        return {"re": float(value.real), "im": float(value.imag)}
    return value.item()


def missing_in(dataset, elements):
    """Which elements equal the attribute `_FillValue`, where that is one number, or has the dataset's own type."""
    nothing = np.zeros(elements.shape, bool)
    dtype = dataset.dtype
    if "_FillValue" not in dataset.attrs or dtype.names or dtype.kind == "b":
        return nothing
    attribute = h5py.h5a.open(dataset.id, b"_FillValue")
    fill = np.asarray(dataset.attrs["_FillValue"]).ravel() if attribute.get_space().get_simple_extent_npoints() else []
    if len(fill) != 1:
        return nothing
    are_numbers = dtype.kind in "iuf" and isinstance(fill[0], np.number)
    if not are_numbers and not attribute.get_type().equal(dataset.id.get_type()):
        return nothing
    fill = fill[0].encode() if isinstance(fill[0], str) else fill[0]
    if dtype.kind == "f" and np.isnan(fill):
        return np.isnan(elements)
    return elements == fill


def expected(dataset):
    """What lies along the first axis as an Arrow array, and the columns of CSV by name; `None` for no CSV."""
    elements, dtype = dataset[...], dataset.dtype
    kind = kind_of(dtype)
    missing = missing_in(dataset, elements)

    def nested(elements, missing):
        if elements.ndim > 1:
            return [nested(*both) for both in zip(elements, missing)]
        return [None if gone else shown(dtype, value) for value, gone in zip(elements, missing)]

    rows = nested(elements, missing)
    whole = kind
    for _ in dataset.shape[1:]:
        whole = pa.list_(whole)
    array = pa.array(rows, whole)
    name = dataset.name.rsplit("/", 1)[1]
    if dtype.names and dataset.ndim == 1:
        fields = {field: array.field(field) for field in dtype.names}
        return fields, fields
    if dataset.ndim > 2:
        return {name: array}, None
    if dataset.ndim == 1:
        return {name: array}, {name: array}
    places = {str(at): pa.array([row[at] for row in rows], kind) for at in range(dataset.shape[1])}
    return {name: array}, places


# ---------------------------------------------------------------------------------------------------------------------
# What others read


def differences(reader, view, path, columns, dtype):
    """What a reader finds otherwise in a file, in words."""
    read = duckdb_arrow if reader == "DuckDB Arrow" else READERS[reader].read
    try:
        table = read(path, list(columns))
    except Exception as error:
        yield f"{reader}: {path}: {values.first_line(error)}"
        return
    for name, wanted in columns.items():
        try:
            got = table[name]
            if view == "csv":
                if READERS[reader].blind or len(columns) == 1:
                    got, wanted = check.empty_as_missing(got), check.empty_as_missing(wanted)
                got = values.parsed(got, wanted, "half floats" if dtype == np.float16 else "")
            what = values.difference(got, wanted)
        except Exception as error:
            what = values.first_line(error)
        if what:
            yield f"{reader}: {path}: {name}: {what}"


def datasets(file):
    """The datasets to read: of rank 1 to 3, with elements."""
    for name in (*NAMES, *RECORDS):
        yield from (file[f"ranks/{name}_{rank}"] for rank in (1, 2, 3))
    for group in (file["missing"], file["missing/ignored"], file["layouts"]):
        for dataset in group.values():
            if isinstance(dataset, h5py.Dataset) and dataset.ndim and dataset.dtype.kind != "V":
                yield dataset


def main():
    """All of them."""
    source, mount = map(Path, sys.argv[1:])
    wrong, files = [], 0
    with oracle.open_file(source) as file:
        for dataset in datasets(file):
            whole, split = expected(dataset)
            for view, readers in VIEWS.items():
                columns = split if view == "csv" else whole
                if columns is None:
                    continue
                # A compound of rank 1 is a table with a directory.
                stem = f"{dataset.name[1:]}/table" if dataset.dtype.names and dataset.ndim == 1 else dataset.name[1:]
                path = mount / f"{stem}.{view}"
                for reader in readers:
                    files += 1
                    wrong += differences(reader, view, path, columns, dataset.dtype)
    print("\n".join(wrong))
    print(f"{files} files read, {len(wrong)} columns wrong")
    sys.exit(bool(wrong) or files < 500)


if __name__ == "__main__":
    main()
