#!/usr/bin/env python3
"""Writes `tests/data/{nwb,tenx*,loom,nexus,h5md,openpmd,matlab,hdfeos}.h5`, and what other software reads of them: `NAME.expected.json`.

    python3 -m venv FOLDER && FOLDER/bin/pip install pynwb==4.2.0 scanpy loompy pyh5md openpmd-api hdf5storage mat73 h5py numpy pandas
    FOLDER/bin/python3 scripts/families_fixtures.py [--only NAME …]

In an environment of its own, since its libraries are many. The form is that of `make_fixtures.py`. NWB is written by
pynwb and expected as `to_dataframe` and `get_data_in_units` give it, Loom by loompy. What Cell Ranger writes, and NeXus,
h5py writes as these do; a matrix is expected as `scanpy.read_10x_h5` reads it.
"""

import argparse
import json
import warnings
from datetime import datetime, timezone

import h5py
import numpy as np

from cells import DATA, cell, number


# ---------------------------------------------------------------------------------------------------------------------
# What is expected


def plain(value):
    """A value in a list, as JSON."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(one) for one in value]
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (bool, np.bool_, str)):
        return value if isinstance(value, str) else bool(value)
    value = np.asarray(value)
    return number(value, value.dtype) if value.dtype.kind == "f" else value.item()


def field(value):
    """A value as the CSV field that shows it; `None` is missing."""
    if value is None:
        return None
    if isinstance(value, dict) and set(value) == {"reference"}:
        return value
    if isinstance(value, (list, tuple, np.ndarray, dict)) and np.ndim(value) != 0 or isinstance(value, dict):
        return {"json": plain(value)}
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, str):
        return value
    value = np.asarray(value)
    return cell(value.item() if value.dtype.kind in "iub" else value, value.dtype)


def table(columns, labels=(), rows=None, **others):
    """An entry of `tables`; of `others` the columns that are as long as they like."""
    rows = len(next(iter(columns.values()))) if rows is None else rows
    found = [{"name": name, "rows": rows, "in_table": True, "csv": [field(one) for one in values]}
             for name, values in columns.items()]
    return {"rows": rows, "row_labels": [{"name": label} for label in labels], "columns": found}


def write(name, tables):
    """What is expected of a file."""
    path = DATA / f"{name}.h5"
    text = json.dumps({"tables": tables, "arrays": {}}, separators=(",", ":"), ensure_ascii=True)
    path.with_suffix(".expected.json").write_text(text + "\n")
    print(f"{name}: {path.stat().st_size} bytes, {len(tables)} tables")


# ---------------------------------------------------------------------------------------------------------------------
# NWB


def electrodes(nwb):
    """Electrodes of two groups."""
    device = nwb.create_device("probe")
    groups = [nwb.create_electrode_group(name, "a shank", "CA1", device) for name in ("shank0", "shank1")]
    nwb.add_electrode_column("label", "what it is called")
    for at in range(6):
        place = {"x": at * 0.5, "y": -1.0 * at, "z": 0.1}
        nwb.add_electrode(group=groups[at % 2], location=f"CA{at % 3}", label=f"µ{at}", **place)


def units(nwb):
    """Ragged columns of every depth; one of them is as long as the table by chance."""
    rng = np.random.default_rng(3)
    nwb.add_unit_column("quality", "0..1")
    nwb.add_unit_column("chance", "as many as units", index=True)
    for at in range(5):
        count = [0, 3, 270, 1, 0][at]
        waveforms = rng.normal(0, 1, (2 * at, 3)).astype("f4")
        nwb.add_unit(
            id=10 + at,
            spike_times=np.sort(rng.uniform(0, 9, count)),
            obs_intervals=np.arange(4.0).reshape(2, 2) + at if at else np.zeros((1, 2)),
            electrodes=[at, 0][: at % 3],
            waveforms=[waveforms[: at], waveforms[at:]] if at else [waveforms[:0]],
            waveform_mean=rng.normal(0, 1, 3),
            quality=at / 4,
            chance=[[], [7, 8], [9], [1], [2]][at],
        )


def trials(nwb, speed):
    """Flags, texts, and references to parts of series."""
    nwb.add_trial_column("correct", "answer was right")
    nwb.add_trial_column("stim", "name of the stimulus")
    for at in range(4):
        nwb.add_trial(
            start_time=at * 1.5, stop_time=at * 1.5 + 1, correct=at % 2 == 0, stim=["a", "", "ü", "d\n"][at],
            tags=["x", "y"][: 1 + at % 2], timeseries=[speed] * (1 + at % 2),
        )


def tables_of_hdmf(nwb):
    """Labels of codes, vectors, regions without lists, tables in a table, no row, no column."""
    from hdmf.common import AlignedDynamicTable, DynamicTable

    module = nwb.create_processing_module("all", "more tables")
    kinds = DynamicTable(name="kinds", description="every kind of column", id=[0, 1, 4, 9])
    kinds.add_column("kind", "labels", enum=["gamma", "muon", "ü"], data=np.array([2, 0, 0, 1], "u1"))
    kinds.add_column("vector", "three numbers", data=np.arange(12, dtype="i2").reshape(4, 3))
    kinds.add_column("cube", "two by two", data=np.arange(16, dtype="f4").reshape(4, 2, 2))
    kinds.add_column("row_of", "an electrode", table=nwb.electrodes, data=[3, 1, 1, 0])
    kinds.add_column("texts", "lists of text", data=[["a", "b"], [], ["c"], []], index=True)
    module.add(kinds)
    module.add(DynamicTable(name="nothing", description="no column"))
    empty = DynamicTable(name="no_rows", description="no row")
    empty.add_column("x", "of float", data=np.zeros(0))
    module.add(empty)
    within = DynamicTable(name="within", description="a category", id=[0, 1, 5])
    within.add_column("y", "numbers", data=[1.5, 2.5, float("nan")])
    within.add_column("words", "lists of text", data=[["a", "b"], [], ["ü"]], index=True)
    within.add_column("kind", "labels", enum=["gamma", "muon"], data=np.array([1, 0, 1], "u1"))
    within.add_column("pair", "two numbers", data=np.arange(6, dtype="i2").reshape(3, 2))
    other = DynamicTable(name="other", description="another category", id=[7, 8, 9])
    other.add_column("good", "flags", data=[True, False, True])
    aligned = AlignedDynamicTable(name="aligned", description="of two", category_tables=[within, other], id=[5, 6, 7])
    aligned.add_column("x", "numbers", data=[7, 8, 9])
    module.add(aligned)


def series(nwb):
    """Clocks of both kinds, units of every kind."""
    from pynwb import TimeSeries
    from pynwb.behavior import SpatialSeries
    from pynwb.ecephys import ElectricalSeries

    rng = np.random.default_rng(5)
    speed = TimeSeries(name="speed", data=rng.normal(0, 1, 20), unit="m/s", timestamps=np.sort(rng.uniform(0, 9, 20)))
    nwb.add_acquisition(speed)
    counts = rng.integers(-2000, 2000, (15, 3)).astype("i2")
    region = nwb.create_electrode_table_region([0, 2, 4], "three of them")
    nwb.add_acquisition(ElectricalSeries(
        name="raw", data=counts, electrodes=region, rate=30_000.0, starting_time=0.25, conversion=1.95e-7, offset=1e-6,
        channel_conversion=[1.0, 2.0, 0.5],
    ))
    nwb.add_acquisition(TimeSeries(name="lux", data=counts[:, 0], unit="lx", rate=7.0, conversion=0.1, offset=-3.0))
    nwb.add_acquisition(SpatialSeries(name="place", data=rng.normal(0, 1, (20, 2)), timestamps=speed, reference_frame="box"))
    nwb.add_acquisition(TimeSeries(name="movie", data=np.zeros((4, 2, 2), "u1"), unit="n.a.", rate=10.0))
    nwb.add_acquisition(TimeSeries(name="texts", data=["a", "b"], unit="n.a.", rate=10.0))
    return speed


def frame(read, file, path):
    """A table as hdmf reads it; what it makes objects of, as h5py reads it."""
    from hdmf.common import AlignedDynamicTable

    columns, categories = {}, {}
    if isinstance(read, AlignedDynamicTable):
        whole = read.to_dataframe()
        shown = whole[read.name]
        for name in read.categories:
            # Of a category all columns are one here, in the order of its own: its row labels first.
            categories[name] = [dict(zip(whole[name].columns, row)) for row in whole[name].itertuples(index=False)]
    else:
        shown = read.to_dataframe(index=True) if len(read.columns) else {}
    columns["id"] = read.id[:]
    for name in read.colnames:
        stored = file[f"{path}/{name}"]
        if h5py.check_ref_dtype(stored.dtype):
            columns[name] = [{"reference": {"path": file[one].name}} for one in stored[:]]
        elif stored.dtype.kind == "V":
            ends = file[f"{path}/{name}_index"][:]
            parts = [stored[start:end] for start, end in zip(np.r_[0, ends[:-1]], ends)]
            one = lambda row: {key: {"path": file[row[key]].name} if key == "timeseries" else row[key].item()  # noqa: E731
                               for key in stored.dtype.names}
            columns[name] = [[one(row) for row in part] for part in parts]
        elif "elements" in stored.attrs:
            columns[name] = list(read.to_dataframe()[name])
        else:
            columns[name] = list(shown[name])
    return table(columns | categories, ["id"])


def nwb():
    """The file that pynwb writes."""
    import pynwb

    path = DATA / "nwb.h5"
    path.unlink(missing_ok=True)
    moment = datetime(2026, 1, 2, tzinfo=timezone.utc)
    written = pynwb.NWBFile("a session", "0", moment, file_create_date=moment)
    electrodes(written)
    speed = series(written)
    units(written)
    trials(written, speed)
    tables_of_hdmf(written)
    with pynwb.NWBHDF5IO(str(path), "w") as io:
        io.write(written, cache_spec=False)
    with pynwb.NWBHDF5IO(str(path), "r") as io, h5py.File(path) as file:
        read = io.read()
        found = {
            "/general/extracellular_ephys/electrodes": read.electrodes,
            "/units": read.units,
            "/intervals/trials": read.trials,
        }
        module = read.processing["all"]
        found |= {f"/processing/all/{name}": module[name] for name in ("kinds", "nothing", "no_rows", "aligned")}
        found |= {f"/processing/all/aligned/{name}": module["aligned"].get_category(name) for name in ("within", "other")}
        tables = {path: frame(one, file, path) for path, one in found.items()}
        for name in ("speed", "raw", "lux", "place", "texts"):
            one = read.acquisition[name]
            values = one.data[:] if name == "texts" else one.get_data_in_units()
            clock = one.timestamps
            clock = clock[:] if clock is not None else one.get_timestamps()
            tables[f"/acquisition/{name}"] = table({"timestamp": clock, "data": list(values)})
        write("nwb", tables)


# ---------------------------------------------------------------------------------------------------------------------
# 10x Genomics


def counts(rng, barcodes, features):
    """A matrix as it is stored: values, features, pointers of barcodes, some of which have none."""
    lengths = rng.integers(0, features, barcodes) * (rng.random(barcodes) < 0.7)
    indices = np.concatenate([np.sort(rng.choice(features, length, replace=False)) for length in lengths])
    return rng.integers(1, 99, len(indices)).astype("i4"), indices.astype("i8"), np.r_[0, np.cumsum(lengths)].astype("i8")


def packed(group, name, data):
    """A dataset as Cell Ranger packs it."""
    group.create_dataset(name, data=data, chunks=(80_000,), maxshape=(None,), compression="gzip", shuffle=True)


def names(what, count, width):
    """Texts of one width, NUL padded."""
    return np.array([f"{what}{at}-1" for at in range(count)], f"S{width}")


def matrix_of(group, rng, barcodes, features):
    """The members of a matrix of any version."""
    data, indices, indptr = counts(rng, barcodes, features)
    for name, values in {"data": data, "indices": indices, "indptr": indptr,
                         "shape": np.array([features, barcodes], "i4"), "barcodes": names("ACGT", barcodes, 18)}.items():
        packed(group, name, values)


def features_of(group, count):
    """The group of features of version 3."""
    for name, values in {"id": names("ENSG", count, 15), "name": names("gene", count, 12),
                         "feature_type": np.array([b"Gene Expression", b"Antibody Capture"] * count, "S16")[:count],
                         "genome": np.array([b"GRCh38"] * count)}.items():
        packed(group, name, values)
    group["_all_tag_keys"] = np.array([b"genome"])


def triples(read, ids):
    """A matrix as scanpy reads it, in the order stored: barcode after barcode."""
    stored = read.X.tocoo()
    order = np.lexsort((stored.col, stored.row))
    row, column, data = stored.row[order], stored.col[order], stored.data[order]
    values = {"barcode": np.asarray(read.obs_names)[row], "feature": np.asarray(ids)[column], "value": data.astype("i4")}
    return table(values)


def tenx():
    """A matrix of version 3, as `filtered_feature_bc_matrix.h5` has it."""
    import scanpy

    path = DATA / "tenx.h5"
    with h5py.File(path, "w") as file:
        file.attrs.update({"filetype": "matrix", "version": 2})
        group = file.create_group("matrix")
        matrix_of(group, np.random.default_rng(1), 12, 30)
        features_of(group.create_group("features"), 30)
        group["filtered_barcodes"] = np.arange(12) % 3 == 0
    read = scanpy.read_10x_h5(path, gex_only=False)
    # A table as long as `id`: four columns.
    features = {"id": read.var["gene_ids"], "name": read.var_names, "feature_type": read.var["feature_types"],
                "genome": read.var["genome"]}
    with h5py.File(path) as file:
        flags = file["matrix/filtered_barcodes"][:]
    write("tenx", {
        "/matrix/features": table(features, ["id"]),
        "/matrix/tables/barcodes": table({"barcode": read.obs_names, "filtered_barcodes": flags}, ["barcode"]),
        "/matrix/tables/matrix": triples(read, read.var["gene_ids"]),
    })


def tenx_v2():
    """Two genomes, as versions before 3 have them."""
    import scanpy

    path = DATA / "tenx_v2.h5"
    with h5py.File(path, "w") as file:
        for seed, genome in enumerate(("hg19", "mm10")):
            group = file.create_group(genome)
            matrix_of(group, np.random.default_rng(seed), 5, 9)
            packed(group, "genes", names("ENSG", 9, 15))
            packed(group, "gene_names", names("gene", 9, 12))
    tables = {}
    for genome in ("hg19", "mm10"):
        read = scanpy.read_10x_h5(path, genome=genome)
        tables[f"/{genome}/tables/barcodes"] = table({"barcode": read.obs_names}, ["barcode"])
        tables[f"/{genome}/tables/genes"] = table({"id": read.var["gene_ids"], "name": read.var_names}, ["id"])
        tables[f"/{genome}/tables/matrix"] = triples(read, read.var["gene_ids"])
    write("tenx_v2", tables)


def tenx_molecules():
    """`molecule_info.h5` of version 3; expected as h5py reads it."""
    path, rng, count = DATA / "tenx_molecules.h5", np.random.default_rng(4), 40
    with h5py.File(path, "w") as file:
        file.attrs["filetype"] = "molecule"
        columns = {"barcode_idx": np.sort(rng.integers(0, 6, count)).astype("u8"),
                   "feature_idx": rng.integers(0, 9, count).astype("u4"),
                   "umi": rng.integers(0, 1 << 24, count).astype("u4"), "count": rng.integers(1, 9, count).astype("u4"),
                   "gem_group": np.ones(count, "u2"), "library_idx": np.zeros(count, "u2")}
        for name, values in (columns | {"barcodes": names("ACGT", 6, 16)}).items():
            packed(file, name, values)
        features_of(file.create_group("features"), 9)
        file["metrics_json"] = b"{}"
        barcodes, ids = file["barcodes"][:], file["features/id"][:]
    columns |= {"barcode": barcodes[columns["barcode_idx"]], "feature": ids[columns["feature_idx"]]}
    write("tenx_molecules", {"/": table(columns)})


# ---------------------------------------------------------------------------------------------------------------------
# Loom


def loom():
    """A file of loompy."""
    import loompy

    path = DATA / "loom.h5"
    path.unlink(missing_ok=True)
    rng = np.random.default_rng(6)
    rows = {"Accession": np.array([f"ENSG{at}" for at in range(8)]), "Gene": np.array([f"gene{at}" for at in range(8)]),
            "Loadings": rng.normal(0, 1, (8, 3)), "Chosen": (np.arange(8) % 2).astype("i4")}
    columns = {"CellID": np.array([f"cell {at}" for at in range(5)]), "Age": rng.normal(9, 1, 5),
               "Class": np.array(["a", "b", "c", "", "a"])}
    loompy.create(str(path), rng.integers(0, 9, (8, 5)).astype("f4"), rows, columns)
    with loompy.connect(str(path)) as ds:
        from scipy.sparse import coo_matrix

        ds.col_graphs["KNN"] = coo_matrix((rng.random(6), (rng.integers(0, 5, 6), np.arange(6) % 5)), shape=(5, 5))
    with loompy.connect(str(path), "r", validate=False) as ds:
        rows = {name: list(ds.ra[name]) for name in ["Gene", *sorted(set(ds.ra.keys()) - {"Gene"})]}
        columns = {name: list(ds.ca[name]) for name in ["CellID", *sorted(set(ds.ca.keys()) - {"CellID"})]}
        graph = ds.col_graphs["KNN"]
        edges = {"a": graph.row.astype("i8"), "b": graph.col.astype("i8"), "w": graph.data}
    with h5py.File(path) as file:
        edges = {name: values.astype(file[f"col_graphs/KNN/{name}"].dtype) for name, values in edges.items()}
    write("loom", {"/row_attrs": table(rows, ["Gene"]), "/col_attrs": table(columns, ["CellID"]),
                   "/col_graphs/KNN": table(edges)})


# ---------------------------------------------------------------------------------------------------------------------
# NeXus


def nexus():
    """Plots of three generations of the standard, logs, events; expected as h5py reads their members."""
    path, rng = DATA / "nexus.h5", np.random.default_rng(7)

    def group(where, name, kind, **attributes):
        made = where.create_group(name)
        made.attrs.update({"NX_class": kind} | attributes)
        return made

    with h5py.File(path, "w") as file:
        entry = group(file, "entry", "NXentry")
        scan = group(entry, "scan", "NXdata", signal="counts", axes="two_theta", auxiliary_signals=["monitor"],
                     temperature_indices=0)
        scan["counts"] = rng.integers(0, 999, 11)
        scan["counts"].attrs["long_name"] = "counted photons"
        scan["counts_errors"] = np.sqrt(scan["counts"][:])
        scan["two_theta"] = np.linspace(10, 20, 11)
        scan["two_theta"].attrs["units"] = "deg"
        scan["monitor"], scan["temperature"] = rng.normal(9, 1, 11), rng.normal(300, 1, 11)
        scan["title"] = "a scan"
        histogram = group(entry, "histogram", "NXdata", signal="counts", axes=np.array(["energy"], "S6"))
        histogram["counts"], histogram["energy"], histogram["errors"] = np.arange(5), np.arange(6.0), np.ones(5)
        detector = group(entry, "detector", "NXdetector")
        detector["counts"], detector["x"] = np.arange(4), np.arange(4) * 0.5
        detector["counts"].attrs.update({"signal": 1, "axes": "[x]"})
        old = group(entry, "old", "NXdata")
        old["counts"], old["x"] = h5py.SoftLink("/entry/detector/counts"), detector["x"]
        older = group(entry, "older", ["NXdata"])
        older["y"], older["x"] = np.arange(3.0), np.arange(3)
        older["y"].attrs["signal"], older["x"].attrs["axis"] = "1", 1
        image = group(entry, "image", "NXdata", signal="data", axes=["y", "x"])
        image["data"], image["y"], image["x"] = np.zeros((3, 4)), np.arange(3), np.arange(4)
        alone = group(entry, "alone", "NXdata", signal="data")
        alone["data"] = np.arange(3)
        log = group(entry, "log", "NXlog")
        log["time"], log["value"] = np.arange(4) * 0.5, rng.normal(0, 1, 4)
        log["time"].attrs.update({"units": "s", "start": "2020-01-01T00:00:00Z"})
        log["average_value"] = 3.0
        fast = group(entry, "fast", "NXlog")
        fast["time"], fast["value"] = np.arange(3) * 1_500_000_000, np.arange(6).reshape(3, 2)
        fast["time"].attrs.update({"units": "ns", "start": "2020-01-01T00:00:00+01:00"})
        events = group(entry, "events", "NXevent_data")
        events["event_id"], events["event_time_offset"] = rng.integers(0, 99, 20).astype("u4"), rng.random(20)
        events["event_time_zero"], events["event_index"] = np.arange(3) * 0.1, np.array([0, 4, 11], "u8")
        values = lambda where, *members: {name: entry[where][name][()] for name in members}  # noqa: E731
        fast_values = values("fast", "time", "value")
        fast_values["time"] = [f"2019-12-31T23:00:0{text}Z" for text in ("0.000000000", "1.500000000", "3.000000000")]
        tables = {
            "scan": values("scan", "two_theta", "temperature", "counts", "counts_errors", "monitor"),
            "histogram": values("histogram", "counts", "errors"),
            "old": values("old", "x", "counts"),
            "older": values("older", "x", "y"),
            "log": values("log", "time", "value"),
            "fast": fast_values,
            "events": values("events", "event_id", "event_time_offset"),
            "events/tables/pulses": values("events", "event_time_zero", "event_index"),
        }
    write("nexus", {f"/entry/{name}": table(columns) for name, columns in tables.items()})


# ---------------------------------------------------------------------------------------------------------------------
# Simulations


def h5md():
    """A trajectory of pyh5md: elements with a clock of their own, with a step alone, with none; expected as it reads."""
    import pyh5md

    path, rng = DATA / "h5md.h5", np.random.default_rng(8)
    path.unlink(missing_ok=True)
    with pyh5md.File(str(path), "w", creator="hepfs", author="nobody") as file:
        atoms = file.particles_group("all")
        atoms.create_box(dimension=3, boundary=["periodic"] * 3, store="fixed", data=np.ones(3))
        place = pyh5md.element(atoms, "position", store="time", shape=(5, 3), dtype="f8", time=True)
        speed = pyh5md.element(atoms, "velocity", store="linear", shape=(5, 3), dtype="f4", step=10, time=0.5,
                               step_offset=20, time_offset=-1.0)
        energy = pyh5md.element(file.require_group("observables"), "energy", store="linear", shape=(), dtype="f8", step=2)
        pyh5md.element(atoms, "mass", store="fixed", data=np.ones(5))
        for frame in range(5):
            place.append(rng.normal(0, 1, (5, 3)), frame * 3, frame * 0.1)
            speed.append(rng.normal(0, 1, (5, 3)))
            energy.append(frame * 1.5)
    frames = np.arange(5)
    with h5py.File(path) as file:
        place, speed = file["particles/all/position"], file["particles/all/velocity"]
        tables = {
            "/particles/all/position": {name: list(place[name][:]) for name in ("step", "time", "value")},
            "/particles/all/velocity": {"step": frames * 10 + 20, "time": frames * 0.5 - 1.0, "value": list(speed["value"][:])},
            "/observables/energy": {"step": frames * 2, "value": file["observables/energy/value"][:]},
        }
    write("h5md", {path: table(columns) for path, columns in tables.items()})


def openpmd():
    """Particles of openPMD-api: components that are stored, and constants, in other units than SI."""
    import openpmd_api

    path, rng, count = DATA / "openpmd.h5", np.random.default_rng(9), 30
    path.unlink(missing_ok=True)
    series = openpmd_api.Series(str(path), openpmd_api.Access.create)
    for at in (100, 200):
        species = series.iterations[at].particles["electrons"]
        stored = {("position", "x"): (rng.normal(0, 1, count), 1e-6), ("position", "y"): (rng.normal(0, 1, count), 1.0),
                  ("weighting", None): (rng.random(count).astype("f4"), 2.0), ("id", None): (np.arange(count, dtype="u8"), 1.0)}
        for (record, component), (values, unit) in stored.items():
            one = species[record][component or openpmd_api.Mesh_Record_Component.SCALAR]
            one.reset_dataset(openpmd_api.Dataset(values.dtype, values.shape))
            one.store_chunk(values)
            one.unit_SI = unit
        for record, component, value in (("positionOffset", "x", 0.0), ("charge", None, -1.0), ("positionOffset", "y", 2.5)):
            one = species[record][component or openpmd_api.Mesh_Record_Component.SCALAR]
            one.reset_dataset(openpmd_api.Dataset(np.dtype("f8"), [count]))
            one.make_constant(value)
            one.unit_SI = 1.602e-19 if record == "charge" else 1.0
        series.flush()
    series.close()
    series, tables = openpmd_api.Series(str(path), openpmd_api.Access.read_only), {}
    for at in (100, 200):
        species, columns = series.iterations[at].particles["electrons"], {}
        for record in sorted(species):
            for component in sorted(species[record]):
                one = species[record][component]
                values = one.load_chunk()
                series.flush()
                scalar = component == openpmd_api.Mesh_Record_Component.SCALAR
                values = values if one.unit_SI == 1.0 else values.astype("f8") * one.unit_SI
                columns[record if scalar else f"{record}_{component}"] = values
        tables[f"/data/{at}/particles/electrons"] = table(columns)
    write("openpmd", tables)


def matlab():
    """Structs as MATLAB 7.3 keeps them, written by hdf5storage; expected as mat73 reads them."""
    import hdf5storage
    import mat73

    path, rng, count = DATA / "matlab.h5", np.random.default_rng(10), 7
    path.unlink(missing_ok=True)
    cells = np.array(["a", "", "µm", "long text", "a", "b", "\U0001f600"], object)
    run = {"time": np.arange(count) * 0.5, "count": rng.integers(-9, 9, count).astype("i2"), "good": np.arange(count) % 2 == 0,
           "label": cells, "title": "a run"}
    other = {"x": np.arange(3.0), "y": np.arange(4.0)}
    hdf5storage.savemat(str(path), {"run": run, "other": other}, oned_as="column", store_python_metadata=False, appendmat=False)
    read = mat73.loadmat(str(path))["run"]
    with h5py.File(path) as file:
        order = ["".join(part.astype(str)) for part in file["run"].attrs.get("MATLAB_fields", [])] or list(file["run"])
        dtypes = {name: file[f"run/{name}"].dtype for name in ("time", "count")}
    columns = {name: read[name] for name in order if name != "title"}
    columns = {name: np.asarray(one, dtypes[name]) if name in dtypes else one for name, one in columns.items()}
    columns["label"] = [one[0] if isinstance(one, list) and len(one) == 1 else one if isinstance(one, str) else ""
                        for one in columns["label"]]
    write("matlab", {"/run": table(columns)})


# ---------------------------------------------------------------------------------------------------------------------
# HDF-EOS5


def described(swaths):
    """The text of a file, as the HDF-EOS5 library writes it: swaths are {name: {field: (kind, dimensions)}}."""
    lines = ["GROUP=SwathStructure"]
    for number, (name, fields) in enumerate(swaths.items(), 1):
        lines += [f"\tGROUP=SWATH_{number}", f'\t\tSwathName="{name}"', "\t\tGROUP=Dimension", "\t\tEND_GROUP=Dimension"]
        for kind in ("Geo", "Data", "Profile"):
            lines.append(f"\t\tGROUP={kind}Field")
            of_kind = [(field, dimensions) for field, (its, dimensions) in fields.items() if its == kind]
            for at, (field, dimensions) in enumerate(of_kind, 1):
                listed = ",".join(f'"{one}"' for one in dimensions)
                lines += [f"\t\t\tOBJECT={kind}Field_{at}", f'\t\t\t\t{kind}FieldName="{field}"',
                          "\t\t\t\tDataType=H5T_NATIVE_FLOAT", f"\t\t\t\tDimList=({listed})",
                          f"\t\t\t\tMaxdimList=({listed})", f"\t\t\tEND_OBJECT={kind}Field_{at}"]
            lines.append(f"\t\tEND_GROUP={kind}Field")
        lines.append(f"\tEND_GROUP=SWATH_{number}")
    lines.append("END_GROUP=SwathStructure")
    for kind in ("Grid", "Point", "Za"):
        lines += [f"GROUP={kind}Structure", f"END_GROUP={kind}Structure"]
    return "\n".join(lines) + "\nEND\n"


def hdfeos():
    """Profiles along a track, and an image; expected as h5py reads the fields."""
    path, rng = DATA / "hdfeos.h5", np.random.default_rng(11)
    times, levels = 6, 5
    fields = {
        "Time": ("Geo", ["nTimes"], 5e8 + np.arange(times)), "Latitude": ("Geo", ["nTimes"], rng.normal(0, 30, times).astype("f4")),
        "Pressure": ("Geo", ["nLevels"], np.geomspace(1000, 1, levels).astype("f4")),
        "Ozone": ("Data", ["nTimes", "nLevels"], rng.random((times, levels)).astype("f4")),
        "Quality": ("Data", ["nTimes"], np.array([1, -9999, 3, 4, 5, 6], "i4")),
        # As long, and on another dimension.
        "Other": ("Data", ["nOthers"], np.arange(times)), "Image": ("Data", ["nTimes", "nWide"], np.zeros((times, 70), "u1")),
        "Cube": ("Data", ["nTimes", "nLevels", "n"], np.zeros((times, levels, 2))),
        "Profile": ("Profile", ["nTimes"], np.zeros(times)),
    }
    image = {"Latitude": ("Geo", ["y", "x"], np.zeros((3, 4))), "Radiance": ("Data", ["y", "x"], np.zeros((3, 4)))}
    swaths = {"O3 Profile": fields, "image": image}
    groups = {"Geo": "Geolocation Fields", "Data": "Data Fields", "Profile": "Profile Fields"}
    with h5py.File(path, "w") as file:
        for swath, members in swaths.items():
            for name, (kind, _, values) in members.items():
                file[f"HDFEOS/SWATHS/{swath}/{groups[kind]}/{name}"] = values
        profile = file["HDFEOS/SWATHS/O3 Profile"]
        profile["Data Fields/Quality"].attrs.update({"_FillValue": np.array([-9999], "i4"), "Title": np.bytes_("how good")})
        profile["Geolocation Fields/Time"].attrs["Units"] = np.bytes_("s")
        text = described({swath: {name: of[:2] for name, of in members.items()} for swath, members in swaths.items()})
        file.create_dataset("HDFEOS INFORMATION/StructMetadata.0", data=np.array(text.encode(), "S32000"))
    shown = {name: list(fields[name][2]) for name in ("Time", "Latitude", "Ozone", "Quality")}
    shown["Quality"] = [None if one == -9999 else one for one in shown["Quality"]]
    write("hdfeos", {"/HDFEOS/SWATHS/O3 Profile": table(shown)})


ALL = {"hdfeos": hdfeos, "matlab": matlab, "h5md": h5md, "openpmd": openpmd, "nwb": nwb, "tenx": tenx, "tenx_v2": tenx_v2, "tenx_molecules": tenx_molecules, "loom": loom, "nexus": nexus}


def main():
    """All files, or those named."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", default=list(ALL), choices=ALL)
    warnings.simplefilter("ignore")
    for name in parser.parse_args().only:
        ALL[name]()


if __name__ == "__main__":
    main()
