#!/usr/bin/env python3
"""Sparse matrices of BIOM and of MATLAB, written from dense ones, as pyarrow reads them from a mount.

    triples.py write FOLDER          FOLDER/counts.h5 (BIOM), FOLDER/sparse.h5 (MATLAB)
    triples.py check FOLDER MOUNT    what tables say of each matrix makes the dense one again
"""

import sys
from pathlib import Path

import h5py
import numpy as np
import pyarrow.parquet as pq


def dense():
    """A matrix of 7 observations in 5 samples, some of them without any."""
    random = np.random.default_rng(17)
    matrix = np.where(random.random((7, 5)) < 0.4, random.integers(1, 100, (7, 5)), 0).astype("f8")
    matrix[3], matrix[:, 1] = 0, 0
    return matrix


def compressed(matrix):
    """Values, numbers along the other axis, pointers along the first one."""
    rows = [np.flatnonzero(row) for row in matrix]
    values = np.concatenate([row[at] for row, at in zip(matrix, rows)])
    return values, np.concatenate(rows), np.cumsum([0] + [len(row) for row in rows])


def sparse(group, names, matrix, types):
    """The parts of a matrix, compressed along its first axis."""
    for name, part, dtype in zip(names, compressed(matrix), types):
        group.create_dataset(name, data=part, dtype=dtype)


def write(folder):
    """The files."""
    folder, matrix = Path(folder), dense()
    with h5py.File(folder / "counts.h5", "w") as file:
        file.attrs.update({"format-url": "http://biom-format.org", "format-version": np.array([2, 1])})
        for axis, by_axis in {"observation": matrix, "sample": matrix.T}.items():
            group = file.create_group(axis)
            group.create_dataset("ids", data=[f"{axis} {at}" for at in range(len(by_axis))], dtype=h5py.string_dtype())
            sparse(group.create_group("matrix"), ["data", "indices", "indptr"], by_axis, ["f8", "i4", "i4"])
    with h5py.File(folder / "sparse.h5", "w") as file:
        for name, of, dtype in (("logical", "logical", "u1"), ("m", "double", "f8"), ("damaged", "double", "f8")):
            group = file.create_group(name)
            group.attrs.update({"MATLAB_class": np.bytes_(of), "MATLAB_sparse": np.uint64(7)})
            sparse(group, ["data", "ir", "jc"], matrix.T > 0 if of == "logical" else matrix.T, [dtype, "u8", "u8"])
        group["jc"][1] = 100
        empty = file.create_group("empty")
        empty.attrs.update({"MATLAB_class": np.bytes_("double"), "MATLAB_sparse": np.uint64(7)})
        empty["jc"] = np.zeros(6, "u8")


def check(folder, mount):
    """All tables."""
    del folder
    mount, matrix = Path(mount), dense()
    number = lambda text: int(text.split()[1])
    for path in ("counts.h5/observation/matrix", "counts.h5/sample/matrix", "sparse.h5/m"):
        table = pq.read_table(mount / path / "table.parquet")
        names = ["column", "row"] if "sparse" in path else ["observation", "sample"]
        first, second = (table[name].to_pylist() for name in (names[::-1] if "sparse" in path else names))
        if isinstance(first[0], str):
            first, second = list(map(number, first)), list(map(number, second))
        found = np.zeros_like(matrix)
        found[first, second] = table["value"].to_numpy()
        assert (found == matrix).all(), f"{path}: {found}"
        values = compressed(matrix if "observation" in path else matrix.T)[0]
        assert (table["value"].to_numpy() == values).all(), f"{path}: not in the order in which it is stored"
    logical = pq.read_table(mount / "sparse.h5/logical/table.parquet")
    assert logical["value"].to_pylist() == [True] * np.count_nonzero(matrix)
    assert not (mount / "sparse.h5/empty/table.parquet").exists()
    assert (mount / "sparse.h5/damaged/table.csv").exists()
    print("4 matrices")


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](*sys.argv[2:])
