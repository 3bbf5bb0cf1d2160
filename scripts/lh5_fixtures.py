#!/usr/bin/env python3
"""Writes `tests/data/lh5.h5` with legend-lh5io, and what it reads of it: `lh5.expected.json`.

    python3 -m venv FOLDER && FOLDER/bin/pip install legend-pydataobj==2.0.3 legend-lh5io==0.3.0 pandas
    FOLDER/bin/python3 scripts/lh5_fixtures.py

In an environment of its own, since its libraries are many. The form is that of `make_fixtures.py`.
"""

import argparse
import json

import h5py
import lh5
import numpy as np
from lgdo import Array, ArrayOfEqualSizedArrays, Histogram, Table, VectorOfVectors, WaveformTable
from lh5.compression import RadwareSigcompress, ULEB128ZigZagDiff

from cells import DATA, cell, number

PATH = DATA / "lh5.h5"
ROWS = 60


# ---------------------------------------------------------------------------------------------------------------------
# What is written


def traces(seed, length, dtype="u2"):
    """Waveforms: noise, a step and a decay, as a detector gives them."""
    rng = np.random.default_rng(seed)
    at = np.arange(length)
    step = np.where(at > length // 3, np.exp(-(at - length / 3) / 500), 0)
    values = 15_000 + rng.integers(100, 9000, (ROWS, 1)) * step + rng.normal(0, 12, (ROWS, length))
    return values.astype(dtype)


def vectors(seed):
    """Lists of different lengths, the first ones empty."""
    rng = np.random.default_rng(seed)
    return [list(map(int, rng.integers(-9, 9, size))) for size in np.r_[0, 0, rng.integers(0, 6, ROWS - 2)]]


def columns():
    """A column of every kind."""
    at = np.arange(ROWS)
    rng = np.random.default_rng(3)
    nested = VectorOfVectors([[[1], [2, 3]], [], [[4]], [[], [5]]] * (ROWS // 4), dtype="i4")
    waveform = {"t0": 0, "t0_units": "ns", "dt": 16, "dt_units": "ns"}
    short = WaveformTable(values=ArrayOfEqualSizedArrays(nda=traces(1, 64)), **waveform)
    packed = WaveformTable(values=ArrayOfEqualSizedArrays(nda=traces(2, 300)), **waveform)
    packed.values.attrs["compression"] = RadwareSigcompress(codec_shift=-32768)
    differences = WaveformTable(values=ArrayOfEqualSizedArrays(nda=traces(4, 200, "i4")), **waveform)
    differences.values.attrs["compression"] = ULEB128ZigZagDiff()
    return {
        "energy": Array(rng.normal(1000, 50, ROWS), attrs={"units": "keV"}),
        "channel": Array(at.astype("u4")),
        "fine": Array(rng.normal(0, 1, ROWS).astype("f4")),
        "is_valid": Array(at % 3 == 0),
        "hits": VectorOfVectors(vectors(7), dtype="i8"),
        "deep": nested,
        "pair": ArrayOfEqualSizedArrays(nda=rng.integers(0, 99, (ROWS, 2))),
        "waveform": short,
        "waveform_packed": packed,
        "waveform_differences": differences,
        "position": Table({"x": Array(at * 0.5), "more": Table({"y": Array(at.astype("i2"))})}),
    }


def histograms():
    """Of one axis and of two, of even bins and of others."""
    rng = np.random.default_rng(5)
    even = [Histogram.Axis(None, -1.0, 2.0, 0.3, True, {"units": "keV"}), Histogram.Axis(None, 0.0, 0.7, 0.1, False)]
    uneven = [Histogram.Axis(np.array([0.0, 1.0, 10.0, 100.5]), None, None, None, True)]
    return {
        "spectrum": Histogram(rng.integers(0, 99, (10, 7)).astype("f4"), even),
        "uneven": Histogram(rng.normal(5, 1, 3), uneven, isdensity=True),
    }


def others(file):
    """What the library does not write, and others do."""
    text = h5py.string_dtype("ascii")

    def put(where, name, datatype, data, **attributes):
        made = where.create_dataset(name, data=data)
        made.attrs.create("datatype", datatype, dtype=text)
        for key, value in attributes.items():
            made.attrs[key] = value
        return made

    odd = file.create_group("odd")
    odd.attrs["datatype"] = np.bytes_("table{late, kind, flag,  old, cube, packets}  ")
    put(odd, "late", "array<1>{string}", np.array([b"b", b"", b"a b"], "S4"))
    put(odd, "kind", "array<1>{enum{gamma=1,muon=-2}}", np.array([1, -2, 1], "i2"))
    put(odd, "flag", "array<1>{bool}", np.array([0, 7, 1], "u1"))
    put(odd, "old", "array<1,1>{real}", np.arange(6.0).reshape(3, 2))
    put(odd, "cube", "array_of_equalsized_arrays<1,2>{real}", np.arange(18, dtype="i2").reshape(3, 2, 3))
    # Worked by hand in the specification.
    content = [bytes.fromhex(one) for one in ("c801020300cf01", "d00f8001ff01", "")]
    encoded = odd.create_group("packets")
    encoded.attrs.update({"datatype": "array<1>{encoded_array<1>{real}}", "codec": "uleb128-zigzag-diff"})
    put(encoded, "decoded_size", "array<1>{real}", np.array([5, 3, 0], "u4"))
    data = encoded.create_group("encoded_data")
    data.attrs["datatype"] = "array<1>{array<1>{real}}"
    put(data, "cumulative_length", "array<1>{real}", np.cumsum([len(one) for one in content]).astype("u4"))
    put(data, "flattened_data", "array<1>{real}", np.frombuffer(b"".join(content), "u1"))
    # As Julia writes them: from 1 on, dimensions in reverse, edges without a step.
    julia = file.create_group("julia")
    julia.attrs["datatype"] = "struct{binning,weights,isdensity}"
    put(julia, "weights", "array<2>{real}", np.arange(6, dtype="i4").reshape(2, 3))
    put(julia, "isdensity", "bool", False)
    for axis, edges in ((1, {"first": 0, "last": 3}), (2, {"first": 0.0, "last": 1.0, "length": 3})):
        where = julia.create_group(f"binning/axis_{axis}")
        put(where, "closedleft", "bool", True)
        for name, value in edges.items():
            put(where, f"binedges/{name}", "real", value)
    scalars = file.create_group("scalars")
    scalars.attrs["datatype"] = "struct{version}"
    put(scalars, "version", "real", 7)


# ---------------------------------------------------------------------------------------------------------------------
# What is expected


def plain(value, dtype):
    """A value in a list, as JSON."""
    if isinstance(value, (list, np.ndarray)):
        return [plain(one, dtype) for one in value]
    return number(value, dtype) if dtype.kind == "f" else value.item() if hasattr(value, "item") else value


def cells(column):
    """The CSV fields of a column."""
    if isinstance(column, Table):
        names = list(column.keys())
        fields = [jsons(column[name]) for name in names]
        return [{"json": dict(zip(names, row))} for row in zip(*fields)]
    if isinstance(column, Array) and column.nda.ndim == 1:
        return [cell(one, column.nda.dtype) for one in column.nda]
    return [{"json": one} for one in jsons(column)]


def jsons(column):
    """The values of a column as JSON."""
    if isinstance(column, Table):
        names = list(column.keys())
        return [dict(zip(names, row)) for row in zip(*[jsons(column[name]) for name in names])]
    if isinstance(column, VectorOfVectors):
        dtype = column.flattened_data.dtype if hasattr(column.flattened_data, "dtype") else np.dtype("i4")
        return [plain(row, dtype) for row in column.view_as("ak").to_list()]
    return [plain(row, column.nda.dtype) for row in column.nda]


def described(table):
    """An entry of `tables`."""
    columns = [{"name": name, "rows": len(table), "in_table": True, "csv": cells(table[name])} for name in table.keys()]
    return {"rows": len(table), "row_labels": [], "columns": columns}


def bins(histogram):
    """A histogram as a table: a row for each bin."""
    edges = [axis.edges for axis in histogram.binning]
    at = np.indices(histogram.weights.nda.shape).reshape(len(edges), -1)
    columns = {}
    for number, (edge, places) in enumerate(zip(edges, at)):
        columns |= {f"axis_{number}_low": edge[places], f"axis_{number}_high": edge[places + 1]}
    columns["weight"] = histogram.weights.nda.ravel()
    return described(Table({name: Array(values) for name, values in columns.items()}))


def main():
    """The file and what is expected of it."""
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    PATH.unlink(missing_ok=True)
    lh5.write(Table(columns()), "raw", str(PATH), group="ch1", wo_mode="overwrite_file")
    for name, histogram in histograms().items():
        lh5.write(histogram, name, str(PATH), group="hist", wo_mode="append")
    with h5py.File(PATH, "r+") as file:
        others(file)
    paths = ["", "/waveform", "/waveform_packed", "/waveform_differences", "/position", "/position/more"]
    with h5py.File(PATH) as file:
        listed = {path: file[f"ch1/raw{path}"].attrs["datatype"].split("{", 1)[1][:-1].split(",") for path in paths}
    raw = lh5.read("ch1/raw", str(PATH))
    found = {}
    for path in paths:
        table = raw
        for part in path.split("/")[1:]:
            table = table[part]
        found[f"/ch1/raw{path}"] = described(Table({name: table[name] for name in listed[path]}))
    for name in histograms():
        found[f"/hist/{name}"] = bins(lh5.read(f"hist/{name}", str(PATH)))
    julia = Table({
        "axis_1_low": Array(np.array([0.0, 1, 2, 0, 1, 2])),
        "axis_1_high": Array(np.array([1.0, 2, 3, 1, 2, 3])),
        "axis_2_low": Array(np.array([0, 0, 0, 0.5, 0.5, 0.5])),
        "axis_2_high": Array(np.array([0.5, 0.5, 0.5, 1, 1, 1])),
        "weight": Array(np.arange(6, dtype="i4")),
    })
    found["/julia"] = described(julia)
    text = lambda *values: {"rows": 3, "in_table": True, "csv": list(values)}  # noqa: E731
    pairs = [{"json": [number(one, np.dtype("f8")) for one in row]} for row in np.arange(6.0).reshape(3, 2)]
    found["/odd"] = {
        "rows": 3,
        "row_labels": [],
        "columns": [
            {"name": "late"} | text("b", "", "a b"),
            {"name": "kind"} | text("gamma", "muon", "gamma"),
            {"name": "flag"} | text("false", "true", "true"),
            {"name": "old"} | text(*pairs),
            {"name": "cube"} | text(*[{"json": one} for one in np.arange(18).reshape(3, 2, 3).tolist()]),
            {"name": "packets"} | text(*[{"json": one} for one in ([100, 101, 99, 99, -5], [1000, 1064, 936], [])]),
        ],
    }
    text = json.dumps({"tables": found, "arrays": {}}, separators=(",", ":"), ensure_ascii=True)
    PATH.with_suffix(".expected.json").write_text(text + "\n")
    print(f"{PATH.stem}: {PATH.stat().st_size} bytes, {len(found)} tables")


if __name__ == "__main__":
    main()
