"""Daily files of which some differ: what readers find in `.datasets`, and what commands make of it, is what pandas
makes of the same frames by `concat`.

    python3 -m hepfs_tools.reading.daily write FOLDER
    python3 -m hepfs_tools.reading.daily check FOLDER MOUNT
    python3 -m hepfs_tools.reading.daily parquet FOLDER TABLE FILE
    python3 -m hepfs_tools.reading.daily csv FOLDER TABLE QUERY FILE

Of 30 files one has a column less, one has one more, one has other numbers and a finer unit of time, one has texts for
numbers, and one is cut short. Fails if anything else is found.
"""

import sys
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

ROWS = 40
LESS, MORE, OTHER, TEXT, BAD = "day_05.h5", "day_10.h5", "day_15.h5", "day_20.h5", "day_25.h5"
NAMES = [f"day_{day:02}.h5" for day in range(1, 31)]
CITIES = np.array([b"Berlin", b"Rome", b""])
# Where each table lies in a mount: a group of datasets shows what lies in it beside itself.
TABLES = {"sales": "sales/%2F", "ticks": "ticks", "log": "log/%2F"}


def tables(name):
    """The columns of each table of a file, as they are stored."""
    seed = NAMES.index(name)
    random = np.random.default_rng(seed)
    sales = {
        "id": np.arange(ROWS) + seed * ROWS,
        "price": random.integers(0, 400, ROWS) / 2.0,
        "count": random.integers(0, 9, ROWS).astype("i4"),
        "city": CITIES[random.integers(0, 3, ROWS)],
    }
    ticks = {"at": np.arange(ROWS, dtype="u4") + seed, "value": random.random(ROWS).astype("f4")}
    when = 1_577_836_800_000 + 500 * np.arange(ROWS) + seed
    log = {"when": when, "level": random.random(ROWS), "value": np.arange(ROWS)}
    if name == LESS:
        del sales["city"], ticks["value"]
    if name == MORE:
        sales["note"] = np.array([f"note {row}" for row in range(ROWS)], dtype=object)
        ticks["more"] = np.arange(ROWS, dtype="i2")
    if name == OTHER:
        sales["count"] = sales["count"] + 0.5
        # Every other one is no float64.
        ticks["value"] = (1 << 53) + np.arange(ROWS, dtype="i8")
        log["when"] = log["when"] * 1000 + 7
    if name == TEXT:
        sales["id"] = np.char.mod("%d", sales["id"]).astype("S8")
    return {"sales": sales, "ticks": ticks, "log": log}


def write(folder):
    for name in NAMES:
        with h5py.File(folder / name, "w") as file:
            for table, columns in tables(name).items():
                if table == "ticks":
                    rows = np.empty(ROWS, dtype=[(column, values.dtype) for column, values in columns.items()])
                    for column, values in columns.items():
                        rows[column] = values
                    file["ticks"] = rows
                    continue
                for column, values in columns.items():
                    texts = {"dtype": h5py.string_dtype()} if values.dtype == object else {}
                    file.create_dataset(f"{table}/{column}", data=values, **texts)
            unit = "microseconds" if name == OTHER else "milliseconds"
            file["log/when"].attrs["units"] = f"{unit} since 1970-01-01"
    whole = (folder / BAD).read_bytes()
    (folder / BAD).write_bytes(whole[: len(whole) // 2])


def expected(table):
    """The frames of all files that can be one, by `pandas.concat`; the columns of most files come first."""
    frames = []
    for name in NAMES:
        if name == BAD or (name == TEXT and table == "sales"):
            continue
        frame = pd.DataFrame(tables(name)[table])
        if "city" in frame:
            frame["city"] = frame["city"].str.decode("ascii")
        if "when" in frame:
            frame["when"] = pd.to_datetime(frame["when"], unit="us" if name == OTHER else "ms", utc=True)
            frame["when"] = frame["when"].astype("datetime64[us, UTC]")
        frames.append(frame.assign(file=name))
    # Members of a group come in the order of their names.
    usual = sorted(tables(NAMES[0])[table], key=lambda name: name if table != "ticks" else "")
    everything = pd.concat(frames, ignore_index=True)
    others = [column for column in everything if column not in usual and column != "file"]
    return everything[[*usual, *others, "file"]]


def rows_of(frame):
    """Rows as tuples, whatever stands for a missing value."""
    if "when" in frame:
        frame = frame.assign(when=pd.to_datetime(frame["when"], utc=True).astype("datetime64[us, UTC]").astype("int64"))
    rows = frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None)
    return sorted(rows, key=lambda row: [(value is None, str(value)) for value in row])


def compare(what, found, frame):
    assert list(found.columns) == list(frame.columns), (what, list(found.columns), list(frame.columns))
    pairs = [pair for pair in zip(rows_of(found), rows_of(frame), strict=True) if pair[0] != pair[1]]
    assert not pairs, (what, len(pairs), pairs[:3])
    print(f"{what}: {len(frame)} rows")


def by_pyarrow(path, columns):
    import pyarrow.dataset as ds

    dataset = ds.dataset(path, partitioning="hive")
    parts = [fragment.physical_schema.remove_metadata() for fragment in dataset.get_fragments()]
    assert all(part == parts[0] for part in parts), parts
    return dataset.to_table(columns=columns).to_pandas()


def by_duckdb(path, columns):
    import duckdb

    names = ", ".join(f'"{column}"' for column in columns)
    return duckdb.sql(f"select {names} from read_parquet('{path}/*/*.parquet', hive_partitioning = true)").df()


def by_polars(path, columns):
    import polars as pl

    return pl.scan_parquet(path, hive_partitioning=True).select(columns).collect().to_pandas()


def by_pandas(path, columns):
    return pd.read_parquet(path)[columns].astype({"file": str})


def check(folder, mount):
    for table, place in TABLES.items():
        frame = expected(table)
        for read in (by_pyarrow, by_duckdb, by_polars, by_pandas):
            compare(f"{table}, {read.__name__}", read(f"{mount}/.datasets/{place}", list(frame.columns)), frame)


def main(order, folder, *rest):
    match order, rest:
        case "write", ():
            write(Path(folder))
        case "check", (mount,):
            check(folder, mount)
        case "parquet", (table, path):
            compare(path, pd.read_parquet(path), expected(table))
        case "csv", (table, query, path):
            frame = expected(table).query(query)
            found = pd.read_csv(path, keep_default_na=False, na_values={c: [""] for c in frame if c != "city"})
            # An empty text stands in quotes; the reader makes no difference.
            frame = frame.assign(city=frame["city"].fillna("")) if "city" in frame else frame
            compare(path, found, frame)


if __name__ == "__main__":
    main(*sys.argv[1:])
