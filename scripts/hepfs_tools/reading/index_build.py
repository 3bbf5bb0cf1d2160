#!/usr/bin/env python3
"""Files for `hepfs index build`, and what a dying writer leaves of them.

    index_build.py make FOLDER            writes FOLDER/*.h5, each with a table `run`
    index_build.py crash HEPFS FOLDER     kills `hepfs index build` and `drop` at every write, on files in FOLDER
    index_build.py crash-long HEPFS FOLDER    the same with more indexes

After each death h5py must open the file, reach every object by its name and read every column as it was, and every
index that a reader may use must be right (check_indexes.py). The next command must then do its work. HEPFS must be a
program that can be told to die (a debug build).
"""

import contextlib
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np

from . import check_indexes

COLUMNS = ["ts", "energy", "nan_fill", "code", "big", "name", "long_name", "hit", "kind", "opaque", "run", "half"]


def table(path, rows=1000, nrows=None, july=True, libver=None, attributes=0, more=0, track=False):
    """A table with a column of each kind of type that an index may be of."""
    rng = np.random.default_rng(1)
    with h5py.File(path, "w", libver=libver, track_order=track) as file:
        group = file.create_group("run", track_order=track)
        for name, value in (("CLASS", "COLUMN_TABLE"), ("VERSION", "1.0")):
            group.attrs.create(name, np.bytes_(value), dtype=f"S{len(value) + 1}")
        if july:
            group.attrs["NROWS"] = np.uint64(rows if nrows is None else nrows)

        def column(name, data, fill=None, chunk=100, **options):
            layout = {} if chunk is None else dict(chunks=(chunk,), maxshape=(None,), compression="gzip")
            dataset = group.create_dataset(name, data=data, fillvalue=fill, **layout, **options)
            for number in range(attributes):
                dataset.attrs[f"a{number}"] = number

        column("ts", np.sort(rng.integers(0, 10**9, rows)).astype("i8"), np.iinfo("i8").min + 1)
        energy = rng.normal(size=rows).astype("f4")
        energy[::17], energy[::13], energy[5:7] = np.nan, 9.96921e36, (-0.0, 0.0)
        energy[200:300] = np.nan
        column("energy", energy, np.float32(9.96921e36))
        values = rng.normal(size=rows)
        values[::17] = np.nan
        column("nan_fill", values, np.nan)
        column("code", rng.integers(0, 5, rows).astype("i1"), np.int8(-127))
        column("big", rng.integers(-500, 500, rows).astype(">i2"), np.int16(-32767))
        names = np.array([f"s{row % 300}".encode() for row in range(rows)], "S6")
        names[3] = b""
        column("name", names, b"")
        long_names = np.array([f"v{row % 77}" for row in range(rows)], object)
        column("long_name", long_names, "", chunk=150, dtype=h5py.string_dtype())
        boolean = h5py.enum_dtype({"FALSE": 0, "TRUE": 1}, basetype="i1")
        column("hit", rng.integers(0, 2, rows).astype("i1"), chunk=512, dtype=boolean)
        kinds = h5py.enum_dtype({"A": 0, "B": 1, "C": 7, "MISSING": 9}, basetype="u2")
        column("kind", np.array([0, 1, 7, 9], "u2")[rng.integers(0, 4, rows)], 9, chunk=33, dtype=kinds)
        column("opaque", rng.integers(0, 9, rows).astype("u4").view("V4"), chunk=70)
        column("run", rng.integers(0, 200, rows).astype("u4"), chunk=None)
        column("half", rng.normal(size=rows).astype("f2"))
        for number in range(more):
            column(f"more{number}", np.zeros(rows, "u1"))
        if july:
            # Tells hepfs to go on storing references as h5py reads them.
            group.attrs.create("INDEX_COLUMNS", [group["ts"].ref], dtype=h5py.ref_dtype)


def make(folder):
    folder.mkdir(parents=True, exist_ok=True)
    table(folder / "old.h5")
    table(folder / "latest.h5", libver="latest")
    table(folder / "tail.h5", nrows=901)
    table(folder / "empty.h5", nrows=0)
    table(folder / "april.h5", july=False)
    table(folder / "many.h5", more=60)
    table(folder / "attributes.h5", libver="latest", attributes=9, track=True)


def state(path):
    """Every column as it is read, every object having been reached by name."""
    columns = {}
    with h5py.File(path) as file:

        def visit(group):
            for name in group:
                member = group[name]
                list(member.attrs)
                if isinstance(member, h5py.Group):
                    visit(member)
                    continue
                values = member[()]
                if "search_indexes" not in member.name.lower():
                    columns[member.name] = values.tobytes() if values.dtype.kind != "O" else tuple(values)

        visit(file)
        file.visititems(lambda name, member: None)
    return columns


def index(hepfs, path, command, *arguments, die_at=None):
    environment = {name: value for name, value in os.environ.items() if name != "HEPFS_REHEARSED_DEATH"}
    if die_at is not None:
        environment["HEPFS_REHEARSED_DEATH"] = str(die_at)
    line = [hepfs, "index", command, f"{path}:run", *arguments, "--cache-folder", "none"]
    return subprocess.run(line, env=environment, capture_output=True, text=True)


def usable(path):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        check_indexes.main(path, "run")
    return said.getvalue()


def crash(hepfs, start, work, command, *arguments):
    """Kills the command at each of its writes; answers how many there are."""
    journal = Path(f"{work}.hepfs-journal")
    before = state(start)
    for die_at in range(1, 1000):
        shutil.copy(start, work)
        journal.unlink(missing_ok=True)
        outcome = index(hepfs, work, command, *arguments, die_at=die_at)
        at = f"{start.stem}: {command} {' '.join(arguments)}, death at write {die_at}"
        try:
            assert state(work) == before, "columns differ"
            usable(work)
            if outcome.returncode == 0:
                return die_at - 1
            again = index(hepfs, work, command, *arguments)
            assert again.returncode == 0 or "no such search index" in again.stderr, again.stderr
            assert state(work) == before, "columns differ after the next command"
            usable(work)
            assert not journal.exists(), "the journal stays"
        except (Exception, SystemExit) as error:
            raise SystemExit(f"{at}: {error!r}") from error
    raise SystemExit("it never ends")


SORTED = ("build", "--column", "code", "--kind", "sorted")
BLOOM = ("build", "--column", "ts", "--kind", "bloom")
MINMAX = ("build", "--column", "big", "--kind", "minmax")
DROP = ("drop", "--column", "name", "--kind", "bitmap")

# What is tried on each file beside its first index, and what takes too long at every change.
SHORT = {"old": (), "latest": (SORTED, DROP), "april": (DROP,), "attributes": (), "many": (BLOOM,)}
LONG = dict.fromkeys(("latest", "april", "many"), (SORTED, BLOOM, MINMAX, DROP)) | {"old": (), "attributes": ()}


def crashes(hepfs, folder, commands):
    work = folder / "work.h5"
    for name, later in commands.items():
        table_options = dict(old={}, latest=dict(libver="latest"), april=dict(july=False), many=dict(more=60))
        table_options["attributes"] = dict(libver="latest", attributes=9, track=True)
        start = folder / f"{name}-start.h5"
        table(start, rows=300, **{"libver": None, **table_options[name]})
        writes = crash(hepfs, start, work, "build", "--column", "long_name", "--kind", "bitmap")
        assert writes > 5, "this program cannot be told to die"
        print(f"{name}: first index, {writes} writes")
        if not later:
            continue
        made = index(hepfs, start, "build", "--column", "ts,energy,code,big,name", "--kind", "minmax,bitmap")
        assert made.returncode == 0, made.stderr
        for command in later:
            print(f"{name}: {' '.join(command)}, {crash(hepfs, start, work, *command)} writes")


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]))
    else:
        crashes(sys.argv[2], Path(sys.argv[3]), LONG if sys.argv[1] == "crash-long" else SHORT)
