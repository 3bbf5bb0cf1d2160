#!/usr/bin/env python3
"""Writes `tests/data/shapes.h5`: groups that have the shape of a table, nearly have it, or do harm. Needs h5py."""

from pathlib import Path

import h5py
import numpy as np

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"


def write(file):
    """One group for each case, and a table that is declared."""
    file["record"] = np.array([(1, 2.5), (3, 4.5)], [("n", "<i4"), ("f", "<f8")])
    events = file.create_group("events")
    events["energy"] = np.arange(5, dtype="f4")
    events["energy"].attrs.create("_FillValue", 2, dtype="f4")
    events["counts"] = np.arange(20).reshape(5, 4)
    # Names that the table needs.
    events["table"] = np.arange(5) * 10
    events["head"] = np.arange(5) * 100
    events.create_group("where")
    events.create_group("tables")
    events["one"] = [7]
    events["scalar"] = 8
    events["images"] = np.zeros((5, 40, 40), "u1")
    # Another length beside them.
    events["time"] = np.arange(3)
    events["label"] = np.array([b"x", b"y", b"z"])
    for number, rows in ((0, 4), (2, 5), (10, 6)):
        demo = file.create_group(f"data/demo_{number}")
        demo["action"] = np.full((rows, 2), number, "f4")
        demo["reward"] = np.arange(rows) + 100 * number
    file["data/demo_7/action"] = np.zeros((4, 2), "f4")
    file["data/demo_7/reward"] = np.zeros(4, "f4")
    grid = file.create_group("grid")
    for name, data in (("x", np.arange(4.0)), ("x2", np.arange(4)), ("y", np.arange(6.0)), ("image", np.zeros((4, 6)))):
        grid[name] = data
    numbered = file.create_group("numbered")
    for number in range(3):
        numbered[str(number)] = np.arange(6) * number
    # One number for each column: these are axes.
    mesh = file.create_group("mesh")
    mesh["origin"] = np.zeros(3)
    for name in "xyz":
        mesh[name] = np.arange(6.0)
    # Columns of one element a row, beside a value in an array.
    tall = file.create_group("tall")
    tall["train"] = np.arange(6, dtype="u8").reshape(6, 1) + 10
    tall["name"] = np.array([[[b"abcdef"[at : at + 1]]] for at in range(6)])
    tall.create_dataset("gain", data=[[0.5], [9], [1.5], [9], [2.5], [3.5]], chunks=(4, 1), fillvalue=9)
    tall["version"] = [[3]]
    few = file.create_group("few")
    few["a"], few["b"] = np.arange(3), np.arange(3)
    # Extents whose products and sizes overflow.
    huge = file.create_group("huge")
    for name, shape in (("a", (1 << 62,)), ("b", (1 << 62,)), ("c", (1 << 62, 2)), ("d", (1 << 61, 1))):
        huge.create_dataset(name, shape, "u1", chunks=(1,) * len(shape), maxshape=(None, *shape[1:]))
    wide = file.create_group("wide")
    for name, shape in (("a", (9,)), ("b", (9, 1 << 58)), ("c", (9, 1 << 30, 1 << 28)), ("d", (9,))):
        wide.create_dataset(name, shape, "u1", chunks=(1,) * len(shape))


if __name__ == "__main__":
    with h5py.File(DATA / "shapes.h5", "w") as output:
        write(output)
    print((DATA / "shapes.h5").stat().st_size, "bytes")
