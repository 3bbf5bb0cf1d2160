"""NumPy, by mapping `.npy` and `.raw` into memory, against the stored bytes as the HDF5 library reads them."""

import h5py
import numpy as np

from hepfs_tools.hep001 import libhdf5

from .reader import checker


def check_maps(check, fixtures):
    """Every column of fixed width in every file."""
    for path in sorted(fixtures.glob("*.h5")):
        with h5py.File(path) as file:
            for name, table in file.items():
                if "column-order" in table.attrs:
                    check_table(check, path, name, table)


def check_table(check, path, name, table):
    """The columns of a table."""
    folder = check.mount / path.name / name / "columns"
    for column in table:
        dataset = table[column]
        npy, raw = folder / f"{column}.npy", folder / f"{column}.raw"
        if not isinstance(dataset, h5py.Dataset) or dataset.id.get_type().get_size() == 0:
            continue
        kind = dataset.id.get_type()
        if h5py.check_vlen_dtype(dtype_of(dataset)) or h5py.check_string_dtype(dtype_of(dataset)) == (None,):
            continue
        for mapped, read in ((npy, map_npy), (raw, map_raw)):
            if not mapped.exists():
                continue
            try:
                stored = libhdf5.read_elements(dataset.id, kind, len(dataset))
                detail = read(mapped, dataset, stored)
            except Exception as error:
                detail = f"{type(error).__name__}: {error}"
            check.record(f"{path.stem}/{name}", column, mapped.suffix, "differs" if detail else "ok", detail)


def dtype_of(dataset):
    """As h5py sees it, or bytes."""
    try:
        return dataset.dtype
    except TypeError:
        return np.dtype("V1")


def map_npy(path, dataset, stored):
    """What differs in the mapped array."""
    array = np.load(path, mmap_mode="r")
    if len(array) != len(dataset):
        return f"{len(array)} rows"
    if array.tobytes() != stored:
        return "bytes differ"
    dtype = dtype_of(dataset)
    if dtype.kind in "iufc" and dtype.metadata is None and dtype.itemsize == kind_size(dataset) and array.dtype != dtype:
        return f"{array.dtype} instead of {dtype}"
    return None


def kind_size(dataset):
    """Bytes of an element as stored; h5py reads odd floats as wider ones."""
    return dataset.id.get_type().get_size()


def map_raw(path, dataset, stored):
    """What differs in the mapped bytes."""
    if not len(dataset):
        return None if path.stat().st_size == 0 else "not empty"
    array = np.memmap(path, np.uint8, "r")
    return None if array.tobytes() == stored else "bytes differ"


checker("numpy mmap", "npy", module="numpy")(check_maps)
