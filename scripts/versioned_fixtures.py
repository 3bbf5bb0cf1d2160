#!/usr/bin/env python3
"""Writes `tests/data/versioned*.h5` with versioned-hdf5, and what it reads of them: `versioned*.expected.json`.

    python3 -m venv FOLDER && FOLDER/bin/pip install versioned-hdf5==2.6.0 pandas
    FOLDER/bin/python3 scripts/versioned_fixtures.py

In an environment of its own, since no test needs the library. The form is that of `make_fixtures.py`.
"""

import argparse
import datetime
import hashlib
import json
import shutil
import tempfile
from pathlib import Path

import h5py
import numpy as np
from versioned_hdf5 import VersionedHDF5File, delete_versions

from cells import DATA, cell, number

BELOW = "/_version_data/versions"
TEXT = h5py.string_dtype()
HISTORIES = 4


# ---------------------------------------------------------------------------------------------------------------------
# What is written


def time(day):
    """The time of a version."""
    return datetime.datetime(2026, 1, day, 12, 30, 15, 123456, tzinfo=datetime.timezone.utc)


def features(path):
    """A file with everything that the library can do."""
    rng = np.random.default_rng(11)
    with h5py.File(path, "w") as file:
        file["outside"] = np.arange(3.0)
        file["both"] = np.arange(2)
        file.create_group("notes").attrs["by"] = "hand"
        versions = VersionedHDF5File(file)
        at = np.arange(30)
        with versions.stage_version("first", timestamp=time(1)) as group:
            put = lambda name, data, **more: group.create_dataset(name, data=data, **more)  # noqa: E731
            for name in ("i1", "i4", "u8", "f2", "f8", ">i2", "?"):
                put(f"numbers/{name}", (at - (0 if name[0] == "u" else 3)).astype(name), chunks=(8,))
            texts = np.array([f"Grüße {one}" if one % 4 else "" for one in at], object)
            put("text/variable", texts, dtype=TEXT, chunks=(8,))
            put("text/numpy", np.array([f"n{one}" for one in at], np.dtypes.StringDType()), chunks=(8,))
            put("text/fixed", np.array([f"f{one}" for one in at], "S5"), chunks=(8,))
            put("filled/minus", at.astype("i4"), chunks=(8,), fillvalue=-1)
            put("filled/nan", at.astype("f8"), chunks=(8,), fillvalue=np.nan)
            put("packed/deflated", at, chunks=(8,), compression="gzip", shuffle=True)
            put("packed/lzf", at * 0.5, chunks=(8,), compression="lzf")
            put("image", rng.integers(0, 99, (7, 5)), chunks=(3, 2))
            put("cube", rng.standard_normal((5, 4, 3)), chunks=(2, 3, 2))
            put("whole_rows", rng.standard_normal((9, 2)), chunks=(4, 2))
            put("uneven/long", at, chunks=(8,))
            put("uneven/short", at[:5], chunks=(8,))
            put("nested/deep/er/x", at, chunks=(8,))
            put("records", np.array([(1, 2.5), (3, -0.0)], [("a", "i4"), ("b", "f8")]), chunks=(2,))
            put("both", at, chunks=(8,))
            put("empty/x", np.zeros(0), chunks=(8,))
            put("gone/x", at, chunks=(8,))
            group["numbers/f8"].attrs["units"] = "keV"
            group["numbers"].attrs["about"] = "numbers"
            group.attrs["message"] = "begun"
            group.attrs["run"] = 7
        with versions.stage_version("second", timestamp=time(2)) as group:
            group["numbers/f8"][:3] = [0.0, -0.0, np.nan]
            for name in group["numbers"]:
                group["numbers"][name].resize((41,))
            group["numbers/i4"][35] = 99
            group["text/variable"][3] = "changed"
            group["filled/minus"].resize((50,))
            group["filled/nan"].resize((50,))
            group["filled/nan"][1] = 7
            group["packed/deflated"][::3] = 5
            group["image"].resize((9, 8))
            group["image"][8, 7] = -5
            group["cube"][1:3, :, 2] = 0
            group["whole_rows"][2:6] = 1
            group["empty/x"].resize((3,))
            del group["gone"]
            group.create_dataset("made/sparse", shape=(1000,), dtype="f4", data=None, chunks=(8,), fillvalue=2.5)
            group["made/sparse"][500] = 1
            group.attrs["message"] = "grown"
        # A branch, which is not the current version afterwards.
        with versions.stage_version("branch", prev_version="first", timestamp=time(4), make_current=False) as group:
            group["numbers/i1"][:] = 1
            group["numbers/i1"].resize((30,))
            group.attrs["note"] = "aside"
        with versions.stage_version("shrunk", timestamp=time(3)) as group:
            for name in group["numbers"]:
                group["numbers"][name].resize((5,))
            group["image"].resize((2, 2))
        with versions.stage_version("dropped", timestamp=time(5)) as group:
            group["uneven/long"][0] = 1
        # Names to be escaped.
        for day, name in enumerate(("current", "table.csv", "..", "a%b", "last"), 6):
            with versions.stage_version(name, timestamp=time(day)) as group:
                group["numbers/i4"][0] = day
    delete_file_version(path, "dropped")


def delete_file_version(path, name):
    """Deletes a version, and the chunks that it alone has."""
    with h5py.File(path, "r+") as file:
        delete_versions(file, name)


def flat(path):
    """Columns beside each other, and nothing else."""
    with h5py.File(path, "w") as file:
        versions = VersionedHDF5File(file)
        for day in range(1, 5):
            with versions.stage_version(f"v{day}", timestamp=time(day)) as group:
                if day == 1:
                    group.create_dataset("x", data=np.arange(10.0), chunks=(4,))
                    group.create_dataset("y", data=np.arange(10), chunks=(4,))
                elif day == 4:
                    group.create_dataset("z", data=np.arange(12), chunks=(4,))
                    for name in ("x", "y"):
                        group[name].resize((12,))
                else:
                    group["x"][day] = -1.5


def names(path):
    """Names that `changed.txt` has to escape, or that would take its own."""
    with h5py.File(path, "w") as file:
        versions = VersionedHDF5File(file)
        for day, version in enumerate(("r0", "r1"), 1):
            with versions.stage_version(version, timestamp=time(day)) as group:
                for name in ("changed", "changed.txt/x", "line\nfeed", "../tab\tx"):
                    if day == 1:
                        group.create_dataset(name, data=np.arange(8).reshape(-1, 2), chunks=(2, 2))
                    else:
                        group[name][0, 0] = 9


def spoilt(path):
    """Elements that are not what the library hashed: one of each dataset but `whole`; its edges are clipped."""
    with h5py.File(path, "w") as file:
        versions = VersionedHDF5File(file)
        for day, extent in enumerate((5, 7), 1):
            with versions.stage_version(f"r{day}", timestamp=time(day)) as group:
                cube = np.arange(extent**3.0).reshape(extent, extent, extent)
                for name in ("whole", "cube", "packed"):
                    if day == 1:
                        more = {"compression": "gzip"} if name == "packed" else {}
                        group.create_dataset(name, data=cube, chunks=(2, 3, 4), **more)
                    else:
                        group[name].resize(cube.shape)
                        group[name][...] = cube
                if day == 1:
                    group.create_dataset("t/text", data=np.array(list("abcdefg"), object), dtype=TEXT, chunks=(3,))
                    group.create_dataset("t/x", data=np.arange(7, dtype=">i2"), chunks=(3,))
        for name, place in (("cube", (1, 2, 0)), ("packed", (1, 2, 0)), ("t/text", 4), ("t/x", 6)):
            raw = file[f"_version_data/{name}/raw_data"]
            raw[place] = "B" if name == "t/text" else 77


def history(path, seed):
    """Random edits of a few datasets, in versions that need not follow each other."""
    rng = np.random.default_rng(seed)
    draw = lambda low, high: int(rng.integers(low, high))  # noqa: E731
    # What is made again must be as it was.
    made = {}
    for name in ("t/a", "t/b", "t/s", "grid", "cube", "alone"):
        rank = {"grid": 2, "cube": 3}.get(name, 1)
        made[name] = {"chunks": tuple(draw(1, 9 if rank == 1 else 5) for _ in range(rank))}
        made[name] |= {"dtype": TEXT} if name == "t/s" else {"fillvalue": draw(-1, 2)}
        made[name] |= {"compression": "gzip"} if rng.random() < 0.3 else {}
    with h5py.File(path, "w") as file:
        versions = VersionedHDF5File(file)
        names = []
        for step in range(draw(2, 12)):
            before = str(rng.choice(names)) if names and rng.random() < 0.3 else None
            with versions.stage_version(f"s{step}", prev_version=before, timestamp=time(1 + step)) as group:
                for _ in range(draw(1, 6)):
                    edit(rng, draw, group, made)
            names.append(f"s{step}")


def edit(rng, draw, group, made):
    """One random edit."""
    name = str(rng.choice(list(made)))
    rank = len(made[name]["chunks"])
    text = name == "t/s"
    fill = lambda shape: (  # noqa: E731
        np.array([f"{draw(0, 50)}" for _ in range(int(np.prod(shape)))], object).reshape(shape)
        if text
        else rng.integers(-3, 4, shape).astype("f8" if name == "t/a" else "i4")
    )
    if name not in group:
        shape = tuple(draw(0, 30 if rank == 1 else 9) for _ in range(rank))
        group.create_dataset(name, data=fill(shape), **made[name])
        return
    what = draw(0, 10)
    dataset = group[name]
    if what == 0:
        del group[name]
    elif what < 4:
        dataset.resize(tuple(max(0, extent + draw(-6, 10)) for extent in dataset.shape))
    elif min(dataset.shape) > 0:
        box = [sorted((draw(0, extent + 1), draw(0, extent + 1))) for extent in dataset.shape]
        place = tuple(slice(*ends) for ends in box)
        dataset[place] = fill(tuple(high - low for low, high in box))


# ---------------------------------------------------------------------------------------------------------------------
# What is expected


def is_text(dtype):
    """Whether strings are of variable length."""
    return dtype.kind in "OT"


def cells(values):
    """The CSV fields of an array of rank 1."""
    if is_text(values.dtype):
        return [one.decode() if isinstance(one, bytes) else str(one) for one in values]
    if values.dtype.kind == "S":
        return [one.decode() for one in values]
    return [cell(one, values.dtype) for one in values]


def plain(value, dtype):
    """What lies in an array, as JSON."""
    if isinstance(value, np.ndarray):
        return [plain(one, dtype) for one in value]
    return number(value, dtype) if dtype.kind == "f" else value.item()


def stored(values):
    """The entries about bytes as stored."""
    if is_text(values.dtype):
        return {"npy_dtype": None, "npy_shape": None}
    return {
        "npy_dtype": repr(values.dtype.str),
        "npy_shape": list(values.shape),
        "raw_sha256": hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest(),
    }


def read(path):
    """All datasets of all versions by path, as the library gives them, and the groups that have some."""
    found, groups = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.h5"
        shutil.copy(path, copy)
        # Opened for reading alone, it gives what h5py makes of the virtual datasets.
        with h5py.File(copy, "r+") as file:
            versions = VersionedHDF5File(file)
            for name in versions.versions:
                version = versions[name]
                groups[f"{BELOW}/{name}"] = []
                visit(version, f"{BELOW}/{name}", found, groups)
    return found, groups


def visit(group, path, found, groups):
    """What is below a group. (Looked up one by one: the library's own walk gives groups alone.)"""
    for name in group:
        below = f"{path}/{name}"
        groups[path].append(below)
        if hasattr(group[name], "shape"):
            found[below] = np.asarray(group[name][()])
        else:
            groups[below] = []
            visit(group[name], below, found, groups)


def expected(path):
    """The tables and arrays of all versions."""
    found, groups = read(path)
    tables, arrays = {}, {}
    is_column = lambda below: below in found and found[below].ndim == 1 and not found[below].dtype.names  # noqa: E731
    for group, members in groups.items():
        lengths = {found[below].shape if is_column(below) else None for below in members}
        if len(lengths) == 1 and lengths != {None}:
            columns = [column(below.rsplit("/", 1)[1], found[below]) for below in sorted(members)]
            tables[group] = {"rows": len(found[members[0]]), "row_labels": [], "columns": columns}
            continue
        for below in members:
            if below in found and found[below].dtype.names:
                tables[below] = records(found[below])
            elif below in found:
                arrays[below] = array(below, found[below])
    return {"tables": tables, "arrays": arrays}


def column(name, values):
    """A column of a table."""
    return {"name": name, "rows": len(values), "in_table": True, "csv": cells(values)} | stored(values)


def records(values):
    """An array of records is a table by itself."""
    columns = [column(name, values[name]) for name in values.dtype.names]
    whole = stored(values) | {"npy_dtype": str(values.dtype.descr)}
    return {"rows": len(values), "row_labels": [], "columns": columns, "whole": whole}


def array(path, values):
    """A dataset by itself."""
    files = [".arrow", ".csv", ".ndjson", ".npy", ".parquet", ".raw"]
    name = path.rsplit("/", 1)[1]
    if 0 in values.shape[1:]:
        more = {"files": [".npy", ".raw"]}
    elif values.ndim == 1:
        listed = cells(values)
        if is_text(values.dtype):
            files.remove(".npy")
        more = {"files": [*files, ".txt"], "columns": [{"name": name, "csv": listed}], "rows": listed}
    elif values.ndim == 2:
        listed = [{"json": plain(row, values.dtype)} for row in values]
        columns = [{"name": str(at), "csv": cells(values[:, at])} for at in range(values.shape[1])]
        more = {"files": files, "columns": columns, "rows": listed}
    else:
        more = {"files": [".arrow", ".npy", ".parquet", ".raw"]}
    return {"shape": list(values.shape)} | stored(values) | more


def changes(path):
    """What `git diff --name-status` would say of each version and the one before it, by the values of datasets."""
    found, _ = read(path)
    told = {}
    with h5py.File(path, "r") as file:
        for name, version in file[BELOW].items():
            if name != "__first_version__":
                values = lambda of: {  # noqa: E731
                    below.removeprefix(f"{BELOW}/{of}/"): (found[below].shape, cells_or_bytes(found[below]))
                    for below in found
                    if below.startswith(f"{BELOW}/{of}/")
                }
                now, before = values(name), values(version.attrs["prev_version"])
                letter = lambda at: "A" if at not in before else "D" if at not in now else "M"  # noqa: E731
                others = [at for at in sorted(now.keys() | before.keys()) if now.get(at) != before.get(at)]
                told[name] = "".join(f"{letter(at)}\t{at}\n" for at in others)
    return told


def cells_or_bytes(values):
    """What tells arrays of one shape apart."""
    return cells(values.ravel()) if is_text(values.dtype) else (str(values.dtype), values.tobytes())


def write(path):
    """What is expected of a file, beside it."""
    found = expected(path)
    text = json.dumps(found, separators=(",", ":"), ensure_ascii=True)
    path.with_suffix(".expected.json").write_text(text + "\n")
    print(f"{path.stem}: {path.stat().st_size} bytes, {len(found['tables'])} tables, {len(found['arrays'])} arrays")


def main():
    """The files and what is expected of them."""
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    recipes = {"versioned": features, "versioned_flat": flat}
    recipes |= {f"versioned_history{seed}": lambda path, seed=seed: history(path, seed) for seed in range(HISTORIES)}
    for name, recipe in recipes.items():
        path = DATA / f"{name}.h5"
        path.unlink(missing_ok=True)
        recipe(path)
        write(path)
    names(DATA / "versioned_names.h5")
    spoilt(DATA / "versioned_spoilt.h5")
    told = {name: changes(DATA / f"{name}.h5") for name in [*recipes, "versioned_names"]}
    (DATA / "versioned_changes.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
