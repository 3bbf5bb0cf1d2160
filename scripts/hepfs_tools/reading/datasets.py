"""Many files as one table: what readers find in `.datasets` is what h5py stored, with the file's path in each row.

    python3 -m hepfs_tools.reading.datasets write FOLDER
    python3 -m hepfs_tools.reading.datasets check FOLDER MOUNT

`check` also runs Dask and Spark where they are installed. Fails if a reader finds anything else.
"""

import sys
from pathlib import Path

import h5py
import numpy as np

ROWS = 3000
# The path of each file, and what is unlike the others in it.
FILES = {
    "a.h5": {},
    "b.h5": {"number": "i4", "label": "variable"},
    "c=d%41#.h5": {"missing": True, "order": ("x", "label", "id", "number")},
    "sub/e é.h5": {"number": "u4", "label": "enum"},
    "extra.h5": {"extra": True},
    "lacks.h5": {"lacks": "label"},
    "text.h5": {"number": "S4"},
}
LEFT_OUT = {"text.h5"}
LABELS = ("electron", "muon", "")


def write(folder):
    for seed, (name, unlike) in enumerate(FILES.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with h5py.File(path, "w") as file:
            write_table(file.create_group("run/events"), seed, unlike)
            file["x"] = np.arange(4.0) + seed


def write_table(group, seed, unlike):
    random = np.random.default_rng(seed)
    group.attrs["CLASS"], group.attrs["VERSION"] = np.bytes_("COLUMN_TABLE"), np.bytes_("1.0")
    labels = random.integers(0, len(LABELS), ROWS)
    texts = np.array([label.encode() for label in LABELS])[labels]
    kind = h5py.enum_dtype({label or "none": code for code, label in enumerate(LABELS)}, basetype="u1")
    columns = {
        "id": np.arange(ROWS, dtype="u8") + (seed << 40),
        "number": random.integers(0, 1000, ROWS).astype(unlike.get("number", "i8")),
        "x": random.random(ROWS).astype("f4"),
        "label": labels.astype(kind) if unlike.get("label") == "enum" else texts,
    }
    columns.pop(unlike.get("lacks"), None)
    if unlike.get("extra"):
        columns["extra"] = labels
    for name in unlike.get("order", columns):
        options = {"data": columns[name], "chunks": (700,), "compression": "gzip"}
        if name == "x" and unlike.get("missing"):
            columns[name][:5] = -1
            options["fillvalue"] = np.float32(-1)
        if name == "label" and unlike.get("label") == "variable":
            options |= {"data": [text.decode() for text in texts], "dtype": h5py.string_dtype()}
        group.create_dataset(name, **options)


def stored(folder):
    """The rows of all files that can be one table."""
    rows = []
    for name, unlike in FILES.items():
        if name in LEFT_OUT:
            continue
        with h5py.File(folder / name) as file:
            table = file["run/events"]
            names = [column for column in ("id", "number", "x", "label") if column in table]
            columns = {column: table[column][:].tolist() for column in names}
            if unlike.get("missing"):
                columns["x"] = [None if value == -1 else value for value in columns["x"]]
            if unlike.get("lacks") == "label":
                columns["label"] = [None] * ROWS
            elif unlike.get("label") == "enum":
                names = {code: text for text, code in h5py.check_enum_dtype(table["label"].dtype).items()}
                columns["label"] = [names[code] for code in columns["label"]]
            else:
                columns["label"] = [text.decode() for text in columns["label"]]
        # The path as the mount shows it, where `%` is `%25`.
        shown = name.replace("%", "%25")
        rows += [(shown, *row) for row in zip(*columns.values(), strict=True)]
    return sorted(rows)


def in_order(rows):
    """Rows as tuples of file, id, number, x, label; NaN is how some say that nothing is there."""
    there = lambda value: None if value is None or value != value else value
    return sorted((file, i, n, there(x), there(label)) for file, i, n, x, label in rows)


COLUMNS = ["file", "id", "number", "x", "label"]


def by_pyarrow(path):
    import pyarrow.dataset as ds

    dataset = ds.dataset(path, partitioning="hive")
    assert [str(dataset.schema.field(name).type) for name in COLUMNS] == ["string", "uint64", "int64", "float", "string"]
    parts = [fragment.physical_schema.remove_metadata() for fragment in dataset.get_fragments()]
    assert all(part == parts[0] for part in parts), parts
    return dataset.to_table(columns=COLUMNS).to_pandas().itertuples(index=False, name=None)


def by_duckdb(path):
    import duckdb

    asked = f"read_parquet('{path}/*/*.parquet', hive_partitioning = true)"
    return duckdb.sql(f"select {', '.join(COLUMNS)} from {asked}").fetchall()


def by_polars(path):
    import polars as pl

    return pl.scan_parquet(path, hive_partitioning=True).select(COLUMNS).collect().iter_rows()


def by_pandas(path):
    import pandas as pd

    return pd.read_parquet(path)[COLUMNS].astype({"file": str}).itertuples(index=False, name=None)


def by_dask(path):
    import dask.dataframe as dd

    return dd.read_parquet(path)[COLUMNS].compute().astype({"file": str}).itertuples(index=False, name=None)


def by_spark(path):
    from pyspark.sql import SparkSession

    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.log.level": "OFF"}
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    rows = builder.getOrCreate().read.parquet(path).select(COLUMNS).collect()
    return [(file, int(i), n, x, label) for file, i, n, x, label in rows]


READERS = {"pyarrow": by_pyarrow, "DuckDB": by_duckdb, "polars": by_polars, "pandas": by_pandas}
OTHERS = {"Dask": by_dask, "Spark": by_spark}


def check(folder, mount):
    expected, wrong = stored(folder), False
    assert len(expected) == ROWS * (len(FILES) - len(LEFT_OUT))
    for name, read in (READERS | OTHERS).items():
        try:
            found = in_order(read(f"{mount}/.datasets/run/events"))
        except ModuleNotFoundError:
            assert name in OTHERS
            continue
        if found != expected:
            differ = [pair for pair in zip(found, expected, strict=False) if pair[0] != pair[1]]
            print(f"{name}: {len(found)} rows, and not {len(expected)}; {differ[:3]}")
            wrong = True
        else:
            print(f"{name}: {len(found)} rows of {len(FILES) - len(LEFT_OUT)} files")
    import duckdb

    # What stands beside it is as it was.
    count = duckdb.sql(f"select count(*) from read_parquet('{mount}/**/table.parquet', union_by_name = true)")
    beside = ROWS * len(FILES)
    wrong |= count.fetchall() != [(beside,)]
    # A dataset is a table of its own.
    total = duckdb.sql(f"select count(*), count(distinct file), sum(x) from '{mount}/.datasets/x/**/*.parquet'")
    wrong |= total.fetchall() != [(4 * len(FILES), len(FILES), sum(4 * seed + 6 for seed in range(len(FILES))))]
    return wrong


if __name__ == "__main__":
    order, folder, *rest = sys.argv[1:]
    if order == "write":
        write(Path(folder))
    else:
        sys.exit(check(Path(folder), *rest))
