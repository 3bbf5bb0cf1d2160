#!/usr/bin/env python3
"""Writes `tests/data/shapes*.h5`: groups that have the shape of a table, nearly have it, or do harm. Needs h5py."""

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
    # The first two episodes end at once; units of the last are others.
    for number, (rows, units) in enumerate(((1, "V"), (7, "V"), (20, "V"), (20, "V"), (20, "mV"))):
        run = file.create_group(f"uneven/run_{number}")
        run["action"] = np.full((rows, 7), number, "f4")
        run["reward"] = np.full(rows, number, "f4")
        run["reward"].attrs["units"] = units
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
    # More lines than the spectra have axes: these are columns, and the wavelengths are what a spectrum's elements are.
    swath = file.create_group("swath")
    for at, name in enumerate(("time", "lat", "lon")):
        swath[name] = np.arange(6.0) + 10 * at
    swath["spectrum"] = np.arange(24).reshape(6, 4)
    swath["wavelength"] = np.arange(4.0)
    settings = file.create_group("settings")
    for number in range(20):
        settings[f"s{number}"] = number
    settings["energies"], settings["protons"] = np.arange(7.0), np.arange(7)
    empty = file.create_group("empty")
    for name in ("a", "b"):
        empty.create_dataset(name, (0,), "f8", maxshape=(None,), chunks=(4,))
    empty["events"] = np.arange(1)
    # The axes of a plot whose data is elsewhere.
    plot = file.create_group("plot")
    plot.attrs["NX_class"], plot.attrs["signal"], plot.attrs["axes"] = "NXdata", "data", ["x", "y"]
    plot["x"], plot["y"] = np.arange(6.0), np.arange(6.0)
    # Of one length, and not of one thing.
    for group, members in {
        "compressed": {"names": np.arange(6), "owners": np.arange(6), "owners_indptr": np.arange(7)},
        "corners": {name: np.arange(3.0) for name in ("dimension", "lower", "upper", "width")},
        "files": {name: np.array([b"p.txt", b"q.txt"]) for name in ("inputs", "outputs")},
        "characters": {"state": np.array(list("STRING"), "S1"), "value": np.array(list("coords"), "S1")},
        "types": {"int32": np.arange(5), "float64": np.arange(5.0), "Dataset 3": np.arange(5)},
        "tagged": {f"tag{number}": np.array([b"p", b"q", b"r", b"s"]) for number in range(3)},
        "coefficients": {f"camera{number}": np.arange(4.0) for number in range(4)},
        "mostly": {"a": np.arange(5), "b": np.arange(5.0), "other": np.arange(7.0)},
        "columns": {"first": np.zeros((2, 1)), **{name: np.zeros((2, 1)) for name in ("second", "third", "fourth")}},
    }.items():
        for name, data in members.items():
            file[f"{group}/{name}"] = data
    # Items of a list, a matrix with names, vectors in space, vectors in a record, and what serves the group around it.
    for number in range(4):
        file[f"series/sample_{number + 8}"] = np.arange(6) * number
        file[f"replicates/bs{number + 8}"] = np.arange(6.0) * number
    matrix = file.create_group("matrix")
    matrix["model"], matrix["segment"] = np.array([b"a", b"b", b"c", b"d"]), np.array([b"p", b"q", b"r", b"s", b"t"])
    matrix["score"], matrix["trial"] = np.zeros((4, 5)), np.zeros((4, 5), "i1")
    for name in ("position", "velocity", "momentum", "spin"):
        file[f"vectors/{name}"] = np.arange(3.0)
    axes = file.create_group("axes")
    axes["name"], axes["unit"] = np.array([b"time", b"distance"]), np.array([b"s", b"m"])
    axes["size"], axes["file"] = np.array([11380, 51]), np.array([b"p.dat", b"q.dat"])
    for name in ("gain", "offset", "rate", "sensor", "version"):
        axes[name] = 1
    for name in ("insertion", "removal"):
        file[f"edges/indexes/{name}"] = np.arange(6)
    # Most members have 20 rows, and more lines have nine.
    chain = file.create_group("chain")
    chain["trajectory"], chain["plaquette"], chain["accepted"] = np.arange(20), np.zeros((20, 2)), np.ones((20, 2))
    chain["step"], chain["delta"] = np.arange(9), np.arange(9.0)
    # No line, but one axis that is longer than all others: these are rows, if arrays are of several kinds, or small.
    hits = file.create_group("hits")
    hits["position"], hits["adc"] = np.arange(18.0).reshape(6, 3), np.arange(12).reshape(6, 2)
    hits["none"] = np.zeros((0, 4))
    for name in ("mean", "error"):
        file[f"fields/{name}"] = np.zeros((40, 19))
    for number in range(2):
        file[f"chains/chain_{number}"] = np.zeros((6, 3))
    # Images, and what they show.
    letters = file.create_group("letters")
    letters["shows"] = np.array(list("eafg"), "S1")
    letters["image"] = np.arange(4 * 1600, dtype="u2").reshape(4, 40, 40)
    # Two vectors in space label no axis of the positions.
    atoms = file.create_group("atoms")
    atoms["number"], atoms["energy"] = np.arange(20), np.arange(20.0)
    atoms["position"], atoms["cell"], atoms["pbc"] = np.arange(60.0).reshape(20, 3), np.ones(3), np.ones(3, "i1")
    # Texts label no axis: sites are rows, though the profile lies along them.
    sites = file.create_group("sites")
    sites["hour"] = np.array([b"00:00", b"01:00", b"02:00", b"03:00", b"04:00", b"05:00"])
    sites["profile"], sites["cost"], sites["mean"] = np.zeros((6, 4)), np.arange(4.0), np.arange(4.0) * 2
    sites["name"] = np.array([b"a", b"b", b"c", b"d"])
    sites["open"], sites["state"] = np.ones(4, "?"), np.zeros(4, "i1")
    few = file.create_group("few")
    few["a"], few["b"] = np.arange(3), np.arange(3)
    # Extents whose products and sizes overflow.
    huge = file.create_group("huge")
    for name, shape in (("a", (1 << 62,)), ("b", (1 << 62,)), ("c", (1 << 62, 2)), ("d", (1 << 61, 1))):
        huge.create_dataset(name, shape, "u1", chunks=(1,) * len(shape), maxshape=(None, *shape[1:]))
    wide = file.create_group("wide")
    for name, shape in (("a", (9,)), ("b", (9, 1 << 58)), ("c", (9, 1 << 30, 1 << 28)), ("d", (9,))):
        wide.create_dataset(name, shape, "u1", chunks=(1,) * len(shape))


def write_compounds(file):
    """Compounds of one length: tables of their own, and structs of one table."""
    for name in ("bars", "rods"):
        file[f"kinds/{name}"] = np.zeros(5, [(name, "<i4"), ("force", "<f8")])
    for name in ("score", "test"):
        file[f"ranks/{name}"] = np.zeros(5, [("left", "<i4"), ("right", "<f8")])


if __name__ == "__main__":
    for name, writer in (("shapes.h5", write), ("shapes_compounds.h5", write_compounds)):
        with h5py.File(DATA / name, "w") as output:
            writer(output)
        print((DATA / name).stat().st_size, "bytes")
