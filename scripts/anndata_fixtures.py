#!/usr/bin/env python3
"""Writes `tests/data/anndata*.h5` and `mudata.h5` with anndata and mudata, and what these read of them.

    python3 -m venv FOLDER && FOLDER/bin/pip install anndata==0.12.19 mudata==0.3.10 awkward==2.14.0
    FOLDER/bin/python3 scripts/anndata_fixtures.py [--only NAME …]

In an environment of its own, since it needs older libraries than the tests do. The form is that of `make_fixtures.py`.
`anndata_runs.h5` is long, and nothing is expected of it here: `tests/tables/anndata.rs` knows its matrix by heart.
"""

import argparse
import hashlib
import json
import tempfile
import warnings
from pathlib import Path

import anndata
import awkward as ak
import h5py
import mudata
import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.lib import recfunctions as rfn

from cells import DATA, cell, labelled, number

# Labels of a category in a file of version 0.6.
STAGES = ["early", "Grüße", "late"]


# ---------------------------------------------------------------------------------------------------------------------
# What is written


def observations(rows, labels):
    """A data frame with a column of every kind."""
    rng = np.random.default_rng(rows)
    at = np.arange(rows)
    words = np.array(["T cell", "B cell", "Grüße", "", "a,b"], object)
    frame = pd.DataFrame(
        {
            "reads": at.astype("i8") - 3,
            "batch": at.astype("i1"),
            "umi": at.astype("u2"),
            "score": rng.standard_normal(rows),
            "half": rng.standard_normal(rows).astype("f2"),
            "single": rng.standard_normal(rows).astype("f4"),
            "doublet": at % 3 == 0,
            "note": [f"note {one}" for one in at],
            "cell_type": pd.Categorical(np.resize(words, rows)),
            "stage": pd.Categorical(np.resize(["b", "a", "c"], rows), ["c", "b", "a"], ordered=True),
            "cluster": pd.Categorical(np.resize([30, 10, 20], rows)),
            "cut": pd.Categorical(np.resize([0.5, 1.5], rows)),
            "unknown": pd.Categorical([None] * rows),
            "partly": pd.Categorical([None if one % 2 else "x" for one in at]),
            "count": pd.array([None if one % 4 == 1 else int(one) for one in at], dtype="Int32"),
            "passed": pd.array([None if one % 3 == 1 else bool(one % 2) for one in at], dtype="boolean"),
            "alias": pd.array([None if one % 5 == 2 else f"alias {one}" for one in at], dtype="string"),
            "a/b": at * 0.5,
            "many": pd.Categorical([f"group {one % 200}" for one in at]),
        },
        index=pd.Index(labels, name="barcode"),
    )
    return frame


NAMES = ["x", "a/b", "Größe", "with space", "index", "table.csv", "%41", "a,b", "-", 'q"', "n_counts", "é", "row"]
WORDS = np.array(["T cell", "B cell", "Grüße", "", "a,b", "nan", "NA", "line\nfeed", 'q"uo,te'], object)


def random_column(rng, rows):
    """A column of a kind at random, some of its values missing where it can have such."""
    holes = rng.random(rows) < 0.2

    def category():
        labels = rng.permutation(WORDS)[: rng.integers(1, len(WORDS) + 1)]
        if rng.random() < 0.3:
            labels = rng.permutation(([3, 1, 2], [0.5, -1.5, 9.0], [True, False])[rng.integers(3)])
        if rng.random() < 0.2:
            labels = np.array([f"label {at}" for at in range(300)], object)
        codes = rng.integers(0, len(labels), rows)
        codes[holes if rng.random() < 0.5 else slice(0)] = -1
        return pd.Categorical.from_codes(codes, labels, ordered=bool(rng.random() < 0.3))

    kinds = [
        lambda: rng.integers(-100, 100, rows).astype(rng.choice(["i1", "i2", "i4", "i8"])),
        lambda: rng.integers(0, 200, rows).astype(rng.choice(["u1", "u2", "u4", "u8"])),
        lambda: rng.standard_normal(rows).astype(rng.choice(["f2", "f4", "f8"])),
        lambda: np.where(holes, np.nan, rng.standard_normal(rows)),
        lambda: rng.random(rows) < 0.5,
        lambda: np.array([f"{WORDS[at % len(WORDS)]} {at}" for at in range(rows)], object),
        lambda: rng.choice(WORDS, rows),
        category,
        lambda: pd.Categorical([None] * rows),
        lambda: pd.arrays.IntegerArray(rng.integers(0, 100, rows).astype(rng.choice(["i1", "u4", "i8"])), holes),
        lambda: pd.arrays.BooleanArray(rng.random(rows) < 0.5, holes),
        lambda: pd.array(np.where(holes, None, rng.choice(WORDS, rows)), dtype="string"),
    ]
    return kinds[rng.integers(len(kinds))]()


def random_frame(rng, rows, by_text):
    """A data frame of columns at random, with row labels of text or, as `uns` may have, of integers."""
    names = [NAMES[at] for at in rng.permutation(len(NAMES))[: rng.integers(0, 9)]]
    labels = np.array([f"{'GATTACA'[at % 7 :]}-{at}" for at in range(rows)], object)
    index = pd.Index(labels if by_text else rng.permutation(rows), name=(None, "barcode", "cell id")[rng.integers(3)])
    return pd.DataFrame({name: random_column(rng, rows) for name in names}, index=index)


def random_awkward(rng, rows):
    """An awkward array of any form but those with unions."""
    kinds = ["list", "record", "option", "number", "text", "bool"]

    def form(depth):
        kind = str(rng.choice(kinds if depth < 4 else kinds[3:]))
        below = {"list": 1, "option": 1, "record": int(rng.integers(1, 4))}.get(kind, 0)
        return kind, [form(depth + 1) for _ in range(below)]

    def value(kind, below):
        if kind == "list":
            return [value(*below[0]) for _ in range(int(rng.integers(0, 4)))]
        if kind == "record":
            return {f"field {at}": value(*one) for at, one in enumerate(below)}
        if kind == "option":
            return None if rng.random() < 0.3 else value(*below[0])
        if kind == "text":
            return str(rng.choice(["", "a", "Gr\u00fc\u00dfe", "longer than a view has room for"]))
        return bool(rng.integers(2)) if kind == "bool" else float(rng.standard_normal())

    chosen = form(0)
    return ak.from_iter([value(*chosen) for _ in range(rows)])


def random_matrix(rng, rows, columns):
    """A sparse matrix along either axis: entries in any order, some twice, some of them zeros."""
    major, minor, kind = (rows, columns, sp.csr_matrix) if rng.random() < 0.5 else (columns, rows, sp.csc_matrix)
    lengths = rng.integers(0, rng.choice([1, 2, 9]) + 1, major) if minor else np.zeros(major, "i8")
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(rng.choice(["i4", "i8"]))
    indices = rng.integers(0, max(minor, 1), indptr[-1]).astype(indptr.dtype)
    data = rng.integers(0, 5, indptr[-1]).astype(rng.choice(["f4", "f8", "i4", "i8", "u2", "?"]))
    return kind((data, indices, indptr), shape=(rows, columns))


def whole(rows, columns):
    """A file with everything in it."""
    rng = np.random.default_rng(5)
    matrix = sp.random(rows, columns, density=0.2, format="csr", dtype="f4", random_state=rng)
    adata = anndata.AnnData(
        X=matrix,
        obs=observations(rows, [f"cell-{at}" for at in range(rows)]),
        var=pd.DataFrame({"chromosome": np.resize(["1", "2", "X"], columns)}, index=[f"gene{at}" for at in range(columns)]),
    )
    adata.raw = adata.copy()
    adata = adata[:, : columns - 1].copy()
    adata.layers["counts"] = (adata.X * 10).astype("i4").tocsc()
    adata.layers["dense"] = adata.X.toarray()
    adata.obsp["neighbours"] = sp.random(rows, rows, density=0.05, format="csr", random_state=rng)
    adata.varp["links"] = sp.eye(columns - 1, format="csc", dtype="i8")
    adata.obsm["X_pca"] = rng.standard_normal((rows, 3))
    adata.obsm["X_umap"] = rng.standard_normal((rows, 2)).astype("f4")
    adata.obsm["frame"] = pd.DataFrame({"p": np.arange(rows), "q": np.arange(rows) * 0.25}, index=adata.obs_names)
    adata.varm["loadings"] = rng.standard_normal((columns - 1, 2))
    adata.uns["ranking"] = pd.DataFrame({"gene": ["x", "y", "x"], "p": [0.5, 0.25, np.nan]}, index=[5, 6, 9])
    adata.uns["nested"] = {"deep": {"empty": pd.DataFrame(index=["only", "labels"])}}
    return adata


def old(group):
    """Data frames as version 0.7 wrote them, and one of a producer that marks it by its lists alone."""
    text = h5py.string_dtype()
    obs = group.create_group("obs")
    obs.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.1.0", "_index": "index"})
    obs.attrs["column-order"] = np.array(["louvain", "n"], object)
    obs.create_dataset("index", data=["c1", "c2", "c3"], dtype=text)
    obs.create_dataset("n", data=np.array([4, 5, 6]))
    codes = obs.create_dataset("louvain", data=np.array([1, -1, 0], "i1"))
    labels = obs.create_dataset("__categories/louvain", data=["zero", "one"], dtype=text)
    labels.attrs["ordered"] = False
    codes.attrs["categories"] = labels.ref
    plain = group.create_group("unmarked")
    plain.attrs["_index"] = "name"
    plain.attrs["column-order"] = ["v"]
    plain.create_dataset("name", data=["r1", "r2"], dtype=text)
    plain.create_dataset("v", data=[1.5, -0.0])
    matrix = group.create_group("graph")
    matrix.attrs.update({"h5sparse_format": b"csr", "h5sparse_shape": np.array([5, 3])})
    matrix.create_dataset("indptr", data=np.array([0, 1, 1, 3, 3, 4], "i4"))
    matrix.create_dataset("indices", data=np.array([1, 0, 2, 0], "u8"))
    matrix.create_dataset("data", data=np.array([1, 2, 3, 4], ">i2"))


# ---------------------------------------------------------------------------------------------------------------------
# What is expected


def cells(values):
    """The CSV fields of a series."""
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        inner = dtype.categories.dtype
        return [None if pd.isna(one) else cell(one, inner) for one in values]
    if isinstance(dtype, (pd.Int32Dtype, pd.Int64Dtype)):
        return [None if pd.isna(one) else str(one) for one in values]
    if isinstance(dtype, pd.BooleanDtype):
        return [None if pd.isna(one) else ("true" if one else "false") for one in values]
    if isinstance(dtype, pd.StringDtype):
        return [None if pd.isna(one) else str(one) for one in values]
    return [labelled(one, dtype) for one in values]


def stored(values):
    """`whole`: rows as they are stored."""
    return {
        "npy_dtype": repr(np.lib.format.dtype_to_descr(values.dtype)),
        "npy_shape": list(values.shape),
        "raw_sha256": hashlib.sha256(values.tobytes()).hexdigest(),
    }


def described(names, columns, labels):
    """An entry of `tables`."""
    rows = len(columns[0]) if columns else 0
    shown = [{"name": name, "rows": rows, "in_table": True, "csv": csv} for name, csv in zip(names, columns)]
    return {"rows": rows, "row_labels": [{"name": name} for name in labels], "columns": shown}


def frame(value):
    """That of a data frame."""
    label = value.index.name or "_index"
    index = cells(pd.Series(value.index))
    return described([label, *value.columns], [index, *[cells(value[name]) for name in value.columns]], [label])


def sparse(matrix, rows=None, columns=None):
    """That of a sparse matrix, whose axes have these names."""
    entries = matrix.tocoo()
    names = ["row", "column", "value"]
    found = [list(map(str, entries.row)), list(map(str, entries.col)), [cell(one, matrix.dtype) for one in entries.data]]
    for name, labels, codes in [("row_name", rows, entries.row), ("column_name", columns, entries.col)]:
        if labels is not None:
            names.append(name)
            found.append([str(labels[code]) for code in codes])
    return described(names, found, [])


def nested(value):
    """A value in a list or a record."""
    if isinstance(value, tuple):
        value = dict(zip(map(str, range(len(value))), value))
    if isinstance(value, dict):
        return {name: nested(one) for name, one in value.items()}
    if isinstance(value, list):
        return [nested(one) for one in value]
    return number(value, np.dtype("f8")) if isinstance(value, float) else value


def loose(value):
    """The CSV field of a value of plain Python."""
    if value is None or isinstance(value, str):
        return value
    return {"json": nested(value)} if isinstance(value, (dict, list, tuple, float)) else json.dumps(value)


def matrices(label, index, arrays):
    """That of `obsm` or `varm`."""

    def rows(array):
        if isinstance(array, ak.Array):
            return [loose(one) for one in array.to_list()]
        if isinstance(array, pd.DataFrame):
            return [{"json": nested(one)} for one in array.to_dict("records")]
        return [{"json": [number(one, row.dtype) for one in row]} for row in array]

    return described([label, *arrays], [list(index), *map(rows, arrays.values())], [label])


def expected(adata):
    """All tables of the file, by path."""
    obs, var, raw = adata.obs_names, adata.var_names, adata.raw
    arrays = {name: adata.obsm[name] for name in ("X_pca", "X_umap", "frame")}
    return {
        "/obs": frame(adata.obs),
        "/var": frame(adata.var),
        "/raw/var": frame(raw.var),
        "/X": sparse(adata.X, obs, var),
        "/raw/X": sparse(raw.X, obs, raw.var_names),
        "/layers/counts": sparse(adata.layers["counts"], obs, var),
        "/obsp/neighbours": sparse(adata.obsp["neighbours"], obs, obs),
        "/varp/links": sparse(adata.varp["links"], var, var),
        "/obsm": matrices("barcode", obs, arrays),
        "/obsm/frame": frame(adata.obsm["frame"]),
        "/varm": matrices("_index", var, {"loadings": np.asarray(adata.varm["loadings"])}),
        "/uns/ranking": frame(adata.uns["ranking"]),
        "/uns/nested/deep/empty": frame(adata.uns["nested"]["deep"]["empty"]),
        "/uns/old/obs": frame(
            pd.DataFrame(
                {"louvain": pd.Categorical(["one", None, "zero"]), "n": [4, 5, 6]},
                index=pd.Index(["c1", "c2", "c3"], name="index"),
            )
        ),
        "/uns/old/unmarked": frame(pd.DataFrame({"v": [1.5, -0.0]}, index=pd.Index(["r1", "r2"], name="name"))),
        "/uns/old/graph": sparse(sp.csr_matrix(([1, 2, 3, 4], [1, 0, 2, 0], [0, 1, 1, 3, 3, 4]), shape=(5, 3))),
    }


def everything(path):
    """A file of version 0.12 with all there is, and elements of versions before it."""
    adata = whole(230, 12)
    adata.write_h5ad(path, compression="gzip")
    with h5py.File(path, "r+") as file:
        old(file["uns"].create_group("old"))
    # Read by the library, but for what is not of its time.
    with h5py.File(path) as file:
        parts = {name: anndata.io.read_elem(file[name]) for name in file if name != "uns"}
        parts["uns"] = {name: anndata.io.read_elem(file["uns"][name]) for name in ("ranking", "nested")}
    return expected(anndata.AnnData(**parts))


def records(rows, columns):
    """Rows of a compound, as version 0.6 makes them of a data frame: labels first, strings of one length."""
    made = np.empty(rows, [(name, values.dtype) for name, values in columns.items()])
    for name, values in columns.items():
        made[name] = values
    return made


def compounds(path):
    """A file as version 0.6 wrote it: compounds, whose labels are in `uns`."""
    rows, genes = 40, 7
    at = np.arange(rows)
    encoded = lambda texts: np.array([text.encode() for text in texts])  # noqa: E731
    matrix = sp.random(rows, genes, density=0.3, format="csr", dtype="f4", random_state=np.random.default_rng(1))
    obs = records(
        rows,
        {
            "index": encoded(f"cell {one}" for one in at),
            "n_counts": at.astype("f4") * 1.5,
            "stage": (at % 4 - 1).astype("i1"),
            "only": np.zeros(rows, "i1"),
            "kind": (at % 5).astype("i1"),
            "cluster": (at % 3).astype("i2"),
            "note": encoded("note" if one % 2 else "longer note" for one in at),
        },
    )
    gene = np.arange(genes)
    names = encoded(f"gene{one}" for one in gene)
    var = records(genes, {"index": names, "n_cells": gene * 2, "kind": (gene % 2).astype("i1")})
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs.update({"h5sparse_format": b"csr", "h5sparse_shape": np.array(matrix.shape)})
        for name in ("data", "indices", "indptr"):
            group.create_dataset(name, data=getattr(matrix, name), maxshape=(None,))
        file.create_dataset("obs", data=obs)
        file.create_dataset("var", data=var)
        file.create_dataset("raw.X", data=matrix.toarray())
        file.create_dataset("raw.var", data=records(genes, {"index": names, "more": gene * 0.5}))
        pca = np.random.default_rng(2).standard_normal((rows, 3)).astype("f4")
        embedded = np.empty(rows, [("X_pca", "f4", (3,))])
        embedded["X_pca"] = pca
        file.create_dataset("obsm", data=embedded)
        loadings = np.empty(genes, [("PCs", "f8", (2,)), ("rank", "i4")])
        loadings["PCs"], loadings["rank"] = np.random.default_rng(3).standard_normal((genes, 2)), gene[::-1]
        file.create_dataset("varm", data=loadings)
        file.create_dataset("raw.varm", data=rfn.repack_fields(loadings[["PCs"]]))
        uns = file.create_group("uns")
        uns.create_dataset("stage_categories", data=STAGES, dtype=h5py.string_dtype())
        # A single category is no array.
        uns.create_dataset("only_categories", data="alone", dtype=h5py.string_dtype())
        # Of `var` alone: `obs` has codes beyond them.
        uns.create_dataset("kind_categories", data=np.array([b"coding", b"other"]))
        # Of nothing: there is no such column.
        uns.create_dataset("gone_categories", data=np.array([b"x"]))
    read = anndata.read_h5ad(path)
    raw = anndata.AnnData(X=read.raw.X, var=read.raw.var)
    assert list(read.obs["stage"].cat.categories) == STAGES and read.var["kind"].dtype == "category"
    assert read.obs["kind"].dtype == "int8"
    # A field of one number a row is a column of numbers; anndata makes it a matrix of one column.
    varm = matrices("index", read.var_names, {"PCs": read.varm["PCs"]})
    rank = [str(one) for one in np.asarray(read.varm["rank"]).ravel()]
    varm["columns"].append({"name": "rank", "rows": genes, "in_table": True, "csv": rank})
    found = {
        "/obs": frame(read.obs.rename_axis("index")),
        "/var": frame(read.var.rename_axis("index")),
        "/raw.var": frame(raw.var.rename_axis("index")),
        "/X": sparse(read.X, read.obs_names, read.var_names),
        "/obsm": matrices("index", read.obs_names, {"X_pca": read.obsm["X_pca"]}),
        "/varm": varm,
        "/raw.varm": matrices("index", read.raw.var_names, {"PCs": np.asarray(read.raw.varm["PCs"])}),
    }
    with h5py.File(path) as file:
        for name in ("obs", "var", "raw.var", "obsm", "varm", "raw.varm"):
            found[f"/{name}"]["whole"] = stored(file[name][:])
    return found


def untagged(path):
    """A file as version 0.7 wrote it, below another: dictionaries say nothing of themselves, nor does the root."""
    rng = np.random.default_rng(4)

    def tagged(group, name, kind, **attributes):
        made = group.create_group(name)
        made.attrs.update({"encoding-type": kind, "encoding-version": "0.1.0"} | attributes)
        return made

    def frame_of(group, name, prefix, count):
        made = tagged(group, name, "dataframe", _index="_index")
        made.attrs["column-order"] = np.array(["n"], object)
        made.create_dataset("_index", data=[f"{prefix}{at}" for at in range(count)], dtype=h5py.string_dtype())
        made["n"] = np.arange(count) * 2
        return made

    def whole_of(group, cells, genes, more):
        group.create_dataset("X", data=rng.standard_normal((cells, genes)).astype("f4"))
        frame_of(group, "obs", "cell", cells)
        frame_of(group, "var", "gene", genes)
        group["obsm/X_pca"] = rng.standard_normal((cells, 3)).astype("f4")
        group["obsm/X_umap"] = rng.standard_normal((cells, 2))
        group["varm/PCs"] = rng.standard_normal((genes, 3))
        raw = tagged(group, "raw", "raw")
        raw.create_dataset("X", data=rng.standard_normal((cells, more)).astype("f4"))
        frame_of(raw, "var", "any gene", more)
        raw["varm/PCs"] = rng.standard_normal((more, 2))

    with h5py.File(path, "w") as file:
        whole_of(file, 12, 5, 7)
        # Those of a file of MuData of that time.
        for name, cells in (("rna", 9), ("prot", 8)):
            whole_of(file.create_group(f"mod/{name}"), cells, 4, 6)
        # Beside no data frame they are arrays of a user.
        file["uns/mine/obsm/a"] = np.arange(6).reshape(3, 2)
        file["uns/mine/obs/b"] = np.arange(3)
    found = {}
    with h5py.File(path) as file, tempfile.TemporaryDirectory() as folder:
        for base in ("", "/mod/rna", "/mod/prot"):
            # anndata reads the root of a file.
            alone = Path(folder) / "alone.h5ad"
            with h5py.File(alone, "w") as part:
                for name in ("X", "obs", "var", "obsm", "varm", "raw"):
                    file.copy(f"{base}/{name}", part, name)
            read = anndata.read_h5ad(alone)
            found[f"{base}/obs"], found[f"{base}/var"] = frame(read.obs), frame(read.var)
            found[f"{base}/obsm"] = matrices("_index", read.obs_names, {name: read.obsm[name] for name in read.obsm})
            found[f"{base}/varm"] = matrices("_index", read.var_names, {"PCs": np.asarray(read.varm["PCs"])})
            found[f"{base}/raw/var"] = frame(read.raw.var)
            found[f"{base}/raw/varm"] = matrices("_index", read.raw.var_names, {"PCs": np.asarray(read.raw.varm["PCs"])})
    return found


def modalities(path):
    """A file of two modalities."""
    rng = np.random.default_rng(9)

    def modality(rows, columns, prefix):
        matrix = sp.random(rows, columns, density=0.3, format="csr", dtype="f4", random_state=rng)
        obs = pd.DataFrame(
            {"batch": pd.Categorical(np.resize(["a", "b"], rows)), "depth": np.arange(rows)},
            index=[f"cell{at}" for at in range(rows)],
        )
        adata = anndata.AnnData(matrix, obs, pd.DataFrame(index=[f"{prefix}{at}" for at in range(columns)]))
        adata.obsm["X_pca"] = rng.standard_normal((rows, 2))
        return adata

    mdata = mudata.MuData({"rna": modality(20, 6, "gene"), "prot": modality(15, 4, "protein")})
    mdata.obs["quality"] = pd.array([None if at % 4 == 1 else at for at in range(mdata.n_obs)], dtype="Int64")
    mdata.write_h5mu(path)
    read = mudata.read_h5mu(path)
    with h5py.File(path) as file:
        # As they are: mudata adds columns of the modalities when it reads.
        found = {f"/{name}": frame(anndata.io.read_elem(file[name])) for name in ("obs", "var")}
    for name, adata in read.mod.items():
        obs, var = adata.obs_names, adata.var_names
        found[f"/mod/{name}/obs"] = frame(adata.obs)
        found[f"/mod/{name}/var"] = frame(adata.var)
        found[f"/mod/{name}/X"] = sparse(adata.X, obs, var)
        found[f"/mod/{name}/obsm"] = matrices("_index", obs, {"X_pca": adata.obsm["X_pca"]})
    return found


def awkward(path):
    """Awkward arrays of every form that is understood, and one of another."""
    rows = 5
    adata = anndata.AnnData(obs=pd.DataFrame(index=[f"cell{at}" for at in range(rows)]))
    records = [[{"x": 1, "y": [1.5]}], [], [{"x": 2, "y": []}], [{"x": 3, "y": [-0.0, 3.0]}, {"x": 4, "y": [5.0]}], []]
    arrays = {
        "bits": ak.Array([[True], [False, True], [], [], [True]]),
        "deep": ak.Array([[[1.5], []], [], [[2.0, 3.0]], [[4.0]], []]),
        "flat": ak.Array([1, 2, 3, 4, 5]),
        "masked": ak.mask(ak.Array([1, 2, 3, 4, 5]), [True, False, True, True, False]),
        "nothing": ak.Array([[], [None], [], None, [None, None]]),
        "numbers": ak.Array([[1, 2], [], [3], [4, 5, 6], [7]]),
        "optional records": ak.Array([[{"x": 1}, None], [], [{"x": None}], None, [None]]),
        "nameless field": ak.Array([{"": at, "b": f"w{at}"} for at in range(rows)]),
        "optional": ak.Array([[1, None], [], [3], None, [None, 7]]),
        "pairs": ak.from_numpy(np.arange(10).reshape(5, 2), regulararray=True),
        "record": ak.Array([{"a": at, "b": f"w{at}"} for at in range(rows)]),
        "records": ak.Array(records),
        "regular": ak.to_regular(ak.Array([[[1, 2], [3, 4]], [], [[5, 6]], [], [[7, 8]]]), axis=2),
        "sliced": ak.Array([[9], [1, 2], [], [3], [4, 5, 6], [7]])[1:],
        "text": ak.Array(["a", "", "Gr\u00fc\u00dfe", "d", None]),
        "tuples": ak.Array([(at, at * 0.5) for at in range(rows)]),
        "words": ak.Array([["a", "bb"], [], ["Gr\u00fc\u00dfe"], [""], ["x", None, "z"]]),
    }
    adata.obsm = arrays
    adata.uns["free"] = ak.Array([[1], [2, 3], []])
    adata.uns["mixed"] = ak.Array([1, "a", 2, 3, "b"])
    adata.write_h5ad(path)
    read = anndata.read_h5ad(path)
    shown = {name: read.obsm[name] for name in arrays}
    table = matrices("_index", read.obs_names, shown)
    table["columns"][1:] = sorted(table["columns"][1:], key=lambda column: column["name"])

    def alone(array):
        if array.layout.is_record:
            # A column without a name has a number.
            names = [name or ".0" for name in array.fields]
            return described(names, [[loose(one) for one in array[name].to_list()] for name in array.fields], [])
        return described(["value"], [[loose(one) for one in array.to_list()]], [])

    found = {"/obs": frame(read.obs), "/var": frame(read.var), "/obsm": table, "/uns/free": alone(read.uns["free"])}
    return found | {f"/obsm/{name}": alone(array) for name, array in shown.items()}


def runs(path):
    """A matrix of 299,500 entries, compressed along either axis: row n has 37 n mod 600, in its first columns."""
    rows, columns = 1000, 600
    lengths = np.arange(rows) * 37 % columns
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.concatenate([np.arange(length) for length in lengths])
    data = (np.repeat(np.arange(rows), lengths) + indices) % 7 + 1
    matrix = sp.csr_matrix((data.astype("i2"), indices.astype("i4"), indptr), shape=(rows, columns))
    names = lambda kind, count: pd.DataFrame(index=[f"{kind}{at}" for at in range(count)])  # noqa: E731
    adata = anndata.AnnData(matrix, names("cell", rows), names("gene", columns))
    adata.layers["by_gene"] = matrix.tocsc()
    adata.write_h5ad(path, compression="gzip")


def at_random(path):
    """Data frames and sparse matrices at random: a sample of what `check-anndata` makes."""
    rng = np.random.default_rng(16)
    frames = {f"frame {at}": random_frame(rng, rows, at % 2 == 0) for at, rows in enumerate((0, 1, 33) * 2)}
    sparse_ones = {f"matrix {at}": random_matrix(rng, at, 7) for at in (0, 3, 20, 21)}
    anndata.AnnData(uns=frames | sparse_ones).write_h5ad(path, compression="gzip")
    with h5py.File(path) as file:
        read = {name: anndata.io.read_elem(file["uns"][name]) for name in file["uns"]}
    shown = {f"/uns/{name}": (frame if name in frames else sparse)(one) for name, one in read.items()}
    return shown


FILES = {"anndata": everything, "anndata_06": compounds, "anndata_07": untagged, "anndata_awkward": awkward, "mudata": modalities, "anndata_random": at_random, "anndata_runs": runs}


def main():
    """The files, and what is expected of them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=FILES, default=list(FILES))
    warnings.simplefilter("ignore")
    anndata.settings.allow_write_nullable_strings = True
    for name in parser.parse_args().only:
        path = DATA / f"{name}.h5"
        found = FILES[name](path)
        if found is not None:
            text = json.dumps({"tables": found, "arrays": {}}, separators=(",", ":"), ensure_ascii=True)
            path.with_suffix(".expected.json").write_text(text + "\n")
        print(f"{name}: {path.stat().st_size} bytes, {len(found or ())} tables")


if __name__ == "__main__":
    main()
