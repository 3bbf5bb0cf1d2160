"""Writes the files that readers are held against, and what they must find.

    python3 -m hepfs_tools.reading.fixture FOLDER

`rows_N.h5` has the tables `flat` and `nested` of N rows, with a column of every type; `big.h5` has values and
dictionaries larger than a page; `pandas3.h5` and `pytables.h5` are those of `tests/data`; `clustered.h5` has a column
that rises over 64 row groups; `nulls_N.trv` are Trevni files, whose only table is called `table` here, with columns of
the type `null`. Beside each file lies `NAME.TABLE.arrow` with the expected values, computed by NumPy from what was given to h5py; the group of types of a
column is in its field's metadata. The same bytes at each run. A folder that is complete is left alone.
"""

import json
import shutil
import sys
import zlib
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa

from hepfs_tools import DATA, trevni_writer
from hepfs_tools.hep001.write import describe, july_table
from hepfs_tools.reading import columns, nested

PAGE, ROW_GROUP = 65_536, 131_072
SMALL_ROWS = 1000
ROWS = (0, 1, SMALL_ROWS, PAGE - 1, PAGE + 1, ROW_GROUP - 1, ROW_GROUP + 1)
# Counts for a column of each way of storing, not of each type.
THIN_ROWS = (PAGE, ROW_GROUP, 300_001)
THIN = "i8 i32 i32_null_pages f64_nan bool bool_null enum8_unnamed category_null fixed_null variable_null list_null".split()
CLUSTERED_GROUPS = 64
CLUSTERED_ROWS = CLUSTERED_GROUPS * ROW_GROUP


def write_table(file, name, rows, definitions):
    """A table; the expected values."""
    table = july_table(file.create_group(name), rows, list(definitions))
    storage = columns.Storage()
    fields, arrays = [], []
    for column, (group, write) in definitions.items():
        random = np.random.default_rng([zlib.crc32(column.encode()), rows])
        values = write(table, column, rows, random, storage)
        fields.append(pa.field(column, values.type, metadata={"group": group}))
        arrays.append(values)
    describe(table[next(iter(definitions))], units="MeV", description="Äpfel, “first”.")
    return pa.table(arrays, schema=pa.schema(fields))


def save(path, expected):
    """Expected values as an Arrow file."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, expected.schema) as writer:
        writer.write_table(expected)


def write_rows(folder, rows):
    """A file with a column of every type, or of some."""
    tables = {"flat": columns.flat_columns(), "nested": nested.nested_columns()}
    if rows in THIN_ROWS:
        everything = tables["flat"] | tables["nested"]
        tables = {"thin": {name: everything[name] for name in THIN}}
    with h5py.File(folder / f"rows_{rows}.h5", "w") as file:
        for name, definitions in tables.items():
            save(folder / f"rows_{rows}.{name}.arrow", write_table(file, name, rows, definitions))


HUGE = ["", "x" * 1_200_000, "short", "ü" * 600_000, "y" * (1 << 20)]


def big_columns():
    """Values over a megabyte, and more labels than a dictionary in each row group is worth."""
    labels = [f"label {i:06}" for i in range(200_000)]
    return {
        "huge_text": ("strings", columns.variable_strings(HUGE)),
        "huge_text_null": ("strings", columns.variable_strings(HUGE, "n/a")),
        "many_labels": ("categories", columns.categories("<i4", labels, missing=-1)),
    }


def wide_columns():
    """Values of some kilobytes."""
    return {
        "wide_fixed": ("strings", columns.fixed_strings(["a" * 5000, "", "b"], 5000)),
        "opaque_300": ("bytes", columns.opaque(lambda: columns.opaque_type(300))),
        "wide_array": ("arrays", nested.arrays("<f4", (1000,))),
        "wide_array_null": ("arrays", nested.arrays("<i4", (300, 2), -1000)),
    }


def write_big(folder):
    """Few rows of large values."""
    with h5py.File(folder / "big.h5", "w") as file:
        save(folder / "big.huge.arrow", write_table(file, "huge", 30, big_columns()))
        save(folder / "big.wide.arrow", write_table(file, "wide", 500, wide_columns()))


def write_clustered(folder):
    """A column that rises, and others beside it."""
    rows = np.arange(CLUSTERED_ROWS)
    random = np.random.default_rng(4)
    names = [f"run {i:02}" for i in range(CLUSTERED_GROUPS)]
    values = {
        "time": 1_700_000_000_000 + rows * 10 + random.integers(0, 10, CLUSTERED_ROWS),
        "price": rows / 64.0,
        "x": random.standard_normal(CLUSTERED_ROWS),
    }
    run = rows // ROW_GROUP
    with h5py.File(folder / "clustered.h5", "w") as file:
        table = july_table(file.create_group("t"), CLUSTERED_ROWS, [*values, "run"])
        options = {"chunks": (ROW_GROUP // 4,), "compression": 1, "shuffle": True, "track_times": False}
        for name, data in values.items():
            table.create_dataset(name, data=data, **options)
        labels = table.create_group("CATEGORIES").create_dataset(
            "runs", data=columns.objects(names), dtype=h5py.string_dtype(), track_times=False
        )
        codes = table.create_dataset("run", data=run.astype("i1"), **options)
        codes.attrs.create("CATEGORIES", labels.ref, dtype=h5py.ref_dtype)
    expected = {**values, "run": pa.array(names).take(pa.array(run))}
    save(folder / "clustered.t.arrow", pa.table(expected))


NULL_ROWS = (0, SMALL_ROWS, ROW_GROUP + 1)


def write_nulls(folder, rows):
    """A Trevni file: nulls by themselves and in lists, beside numbers."""
    ids = list(range(rows))
    lists = [[None] * (row % 4) for row in ids]
    made = [trevni_writer.Column("id", "long", ids), trevni_writer.Column("nothing", "null", [None] * rows)]
    made.append(trevni_writer.Column("nothing_list", "null", lists, is_array=True))
    (folder / f"nulls_{rows}.trv").write_bytes(trevni_writer.trevni(made, rows=rows))
    fields = [("integers", "id", pa.array(ids, pa.int64())), ("nulls", "nothing", pa.nulls(rows))]
    fields.append(("nulls", "nothing_list", pa.array(lists, pa.large_list(pa.null()))))
    schema = pa.schema([pa.field(name, array.type, metadata={"group": group}) for group, name, array in fields])
    save(folder / f"nulls_{rows}.table.arrow", pa.table([array for _, _, array in fields], schema=schema))


PLAIN_ROWS = 150_000
KINDS = ["electron", "muon", "tau, heavy", 'q"uote']


def write_plain(folder):
    """Two tables for programs that work on lines, and beside them the same as real files, written by Python."""
    random = np.random.default_rng(8)
    ids = 1_000_000 + 3 * np.arange(PLAIN_ROWS)
    counts = random.integers(-(2**40), 2**40, PLAIN_ROWS)
    missing = random.random(PLAIN_ROWS) < 0.05
    kinds = random.integers(0, len(KINDS), PLAIN_ROWS)
    names = [f"name {i}" if i % 5 else "Grüße" for i in random.integers(0, 50_000, PLAIN_ROWS)]
    others = 1_000_000 + 2 * np.arange(PLAIN_ROWS // 2)
    with h5py.File(folder / "plain.h5", "w") as file:
        table = july_table(file.create_group("a"), PLAIN_ROWS, ["id", "count", "kind", "name"])
        options = {"chunks": (7000,), "compression": 1, "track_times": False}
        table.create_dataset("id", data=ids, **options)
        table.create_dataset("count", data=np.where(missing, -1, counts), fillvalue=-1, **options)
        labels = table.create_group("CATEGORIES").create_dataset(
            "kinds", data=columns.objects(KINDS), dtype=h5py.string_dtype(), track_times=False
        )
        dataset = table.create_dataset("kind", data=kinds.astype("i1"), **options)
        dataset.attrs.create("CATEGORIES", labels.ref, dtype=h5py.ref_dtype)
        table.create_dataset("name", data=columns.objects(names), dtype=h5py.string_dtype(), **options)
        table = july_table(file.create_group("b"), len(others), ["id", "rank"])
        table.create_dataset("id", data=others, **options)
        table.create_dataset("rank", data=np.arange(len(others), dtype="u4")[::-1], **options)
    count_texts = ["" if gone else str(count) for count, gone in zip(counts.tolist(), missing.tolist())]
    texts = {"id": list(map(str, ids.tolist())), "count": count_texts, "kind": [KINDS[i] for i in kinds], "name": names}
    write_real(folder / "plain" / "a", texts)
    (folder / "plain" / "a" / "columns" / "name.raw").write_bytes(b"".join(name.encode() + b"\0" for name in names))
    (folder / "plain" / "a" / "columns" / "id.raw").write_bytes(ids.astype("<i8").tobytes())
    ranks = [str(rank) for rank in reversed(range(len(others)))]
    write_real(folder / "plain" / "b", {"id": list(map(str, others.tolist())), "rank": ranks})


def write_real(folder, texts):
    """A table as real text files."""
    (folder / "columns").mkdir(parents=True)

    def field(text):
        return '"' + text.replace('"', '""') + '"' if '"' in text or "," in text else text

    for name, cells in texts.items():
        (folder / "columns" / f"{name}.txt").write_text("".join(f"{cell}\n" for cell in cells))
        alone = [field(cell) or '""' for cell in cells]
        (folder / "columns" / f"{name}.csv").write_text("\n".join([name, *alone, ""]))
    lines = [",".join(map(field, row)) + "\n" for row in zip(*texts.values())]
    header = ",".join(texts) + "\n"
    (folder / "table.csv").write_text(header + "".join(lines))
    (folder / "head.csv").write_text(header + "".join(lines[:1000]))


# Columns of tables that pandas and PyTables wrote, with their groups of types.
FOREIGN = {
    ("pandas3", "for_readers"): {
        "integers": {"a": "i8", "small": "i2", "unsigned": "u4"},
        "floats": {"b": "f8", "single": "f4"},
        "booleans": {"flag": "?", "other flag": "?"},
        "strings": {"text": "U"},
        "categories": {"kind": "U"},
    },
    ("pytables", "every"): {
        "integers": {f"{sign}{bits}": f"{sign}{bits // 8}" for sign in "iu" for bits in (8, 16, 32, 64)},
        "floats": {"f32": "f4", "f64": "f8"},
        "booleans": {"flag": "?"},
        "enumerations": {"color": "U", "wide": "U"},
    },
}


def foreign_values(cells, kind):
    """What is expected of a column, by the cells of `NAME.expected.json`."""
    if kind == "U":
        return pa.array(cells, pa.large_string())
    if kind == "?":
        return pa.array([cell == "true" for cell in cells])
    if kind[0] == "f":
        bits = lambda cell: bytes.fromhex(cell[f"f{8 * int(kind[1:])}"])  # noqa: E731
        numbers = [None if "missing" in cell else np.frombuffer(bits(cell), f">{kind}").astype(kind)[0] for cell in cells]
        return pa.array(numbers, pa.from_numpy_dtype(kind), from_pandas=False)
    return pa.array(np.array([int(cell) for cell in cells], kind))


def write_foreign(folder):
    """Tables that pandas and PyTables wrote; expected is what they read."""
    for (file, table), groups in FOREIGN.items():
        shutil.copyfile(DATA / f"{file}.h5", folder / f"{file}.h5")
        expected = json.loads((DATA / f"{file}.expected.json").read_text())["tables"][f"/{table}"]["columns"]
        cells = {column["name"]: column["csv"] for column in expected}
        fields, arrays = [], []
        for group, kinds in groups.items():
            for name, kind in kinds.items():
                arrays.append(foreign_values(cells[name], kind))
                # NaN that is missing is NaN all the same to some files: see `Check.column`.
                nan = {"nan": "missing"} if group == "floats" and arrays[-1].null_count else {}
                fields.append(pa.field(name, arrays[-1].type, metadata={"group": group} | nan))
        save(folder / f"{file}.{table}.arrow", pa.table(arrays, schema=pa.schema(fields)))


def write_all(folder):
    """Everything, unless it is there."""
    done = folder / "complete"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for count in (*ROWS, *THIN_ROWS):
        write_rows(folder, count)
    write_big(folder)
    write_clustered(folder)
    write_plain(folder)
    write_foreign(folder)
    for count in NULL_ROWS:
        write_nulls(folder, count)
    done.touch()


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
