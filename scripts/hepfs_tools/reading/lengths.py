"""Texts and lists whose lengths hepfs finds without their values, through other software: each must read what h5py stored.

    python3 -m hepfs_tools.reading.lengths write FILE.h5
    python3 -m hepfs_tools.reading.lengths check FILE.h5 MOUNT

The sizes that `stat` shows before a file is opened must be those it has then. Prints what differs, and fails if
something does.
"""

import os
import sys
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

from hepfs_tools.hep001.write import july_table, leaf, list_level, string_values

ROWS = 300_000
CLAIMED = 2**40
# Rows that no sample meets.
HIDDEN = range(140_000, 140_400)


def texts():
    return [b"row %d " % i * (i % 5) for i in range(ROWS)]


def often():
    """Bytes that are no UTF-8 in every tenth row."""
    return [b"K\xf6ln \xff\xff\xff\xff" if i % 10 == 0 else b"row %d" % i for i in range(ROWS)]


def late():
    """In a few rows beside each other, and many of them."""
    return [b"\xff" * 100 if i in HIDDEN else b"row %d" % i for i in range(ROWS)]


def lists():
    return [None if i % 11 == 0 else [float(k) for k in range(i % 4)] for i in range(ROWS)]


def words():
    return [["w%d" % (i % 7)] * (i % 3) for i in range(ROWS)]


def write(path):
    with h5py.File(path, "w", libver="earliest") as file:
        table = july_table(file.create_group("t"), ROWS)
        chunked = dict(chunks=(10_000,), compression="gzip", compression_opts=1, dtype=h5py.string_dtype())
        for name, values in (("texts", texts()), ("often", often()), ("late", late())):
            table.create_dataset(name, data=np.array(values, object), **chunked)
        partly = table.create_dataset("partly", (ROWS,), h5py.string_dtype(), chunks=(1000,))
        partly[100_000:101_000] = partly[250_500:250_600] = "stored"
        list_level(table, "lists", lists(), leaf("f4"), nullable=True)
        list_level(table, "words", words(), string_values())
        # Descriptors that lead to texts with a NUL in them, which h5py cannot write as such.
        bytes_of = np.empty(ROWS, object)
        bytes_of[:] = [np.frombuffer(b"before\0behind" if i % 3 else b"all", "u1") for i in range(ROWS)]
        file.create_dataset("bytes", data=bytes_of, dtype=h5py.vlen_dtype("u1"))
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        kind = h5py.h5t.py_create(h5py.string_dtype(), logical=True)
        h5py.h5d.create(file.id, b"nuls", kind, h5py.h5s.create_simple((ROWS,)), plist)
        file.create_dataset("none", (CLAIMED,), h5py.string_dtype(), chunks=(1 << 20,))
        claimed = july_table(file.create_group("claimed"), CLAIMED)
        level = list_level(claimed, "lists", [[1.0]], leaf("f4"))
        del level["OFFSETS"]
        level.create_dataset("OFFSETS", (CLAIMED + 1,), "u8", chunks=(1 << 20,))
        places = [file[name].id.get_offset() for name in ("bytes", "nuls")]
    with open(path, "r+b") as file:
        file.seek(places[0])
        descriptors = file.read(16 * ROWS)
        file.seek(places[1])
        file.write(descriptors)


def expected(path):
    """What h5py finds in each file, by the path without suffix."""

    def shown(values):
        return pa.array([text.decode("utf-8", "replace") for text in values], pa.string())

    with h5py.File(path) as file:
        found = {f"t/columns/{name}": shown(file["t"][name][()]) for name in ("texts", "often", "late", "partly")}
        found["nuls"] = shown(file["nuls"][()])
    chosen = [i for i, text in enumerate(texts()) if text.startswith(b"row 1")]
    found["t/columns/lists"] = pa.array(lists(), pa.list_(pa.float32()))
    found["t/columns/words"] = pa.array(words(), pa.list_(pa.string()))
    # The rows that were chosen, of columns of every kind.
    for name in ("texts", "often", "words", "lists"):
        found[f"t/where/texts:prefix:row 1/columns/{name}"] = found[f"t/columns/{name}"].take(pa.array(chosen))
    return found


def duckdb_of(path):
    import duckdb

    with duckdb.connect() as connection:
        return connection.sql(f"select * from read_parquet('{path}')").to_arrow_table()


def fastparquet_of(path):
    import fastparquet

    return pa.Table.from_pandas(fastparquet.ParquetFile(path).to_pandas(), preserve_index=False)


PARQUET = {
    "pyarrow": pq.read_table,
    "DuckDB": duckdb_of,
    "polars": lambda path: pl.read_parquet(path).to_arrow(),
    "pandas": lambda path: pa.Table.from_pandas(pd.read_parquet(path), preserve_index=False),
    "fastparquet": fastparquet_of,
}
ARROW = {
    "pyarrow": lambda path: feather.read_table(path, memory_map=False),
    "pyarrow map": lambda path: feather.read_table(path, memory_map=True),
    "polars": lambda path: pl.read_ipc(path).to_arrow(),
}


def compared(found, due):
    """Values in the type that is due."""
    found = found.column(0).combine_chunks()
    return found.cast(due.type) if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks).cast(due.type)


def check(path, mount):
    wrong = []
    for name, due in expected(path).items():
        for suffix, readers in (("parquet", PARQUET), ("arrow", ARROW)):
            file = f"{mount}/{name}.{suffix}"
            before = os.stat(file).st_size
            failures = 0
            for reader, read in readers.items():
                if reader == "fastparquet" and name.endswith(("lists", "words")):
                    continue  # It has no lists of strings, and none that are missing.
                while True:
                    try:
                        found = compared(read(file), due)
                        break
                    except Exception as error:
                        failures += 1
                        # What no sample met is an error once, and laid out anew.
                        if not name.endswith("late") or failures > 3:
                            wrong.append(f"{file}: {reader}: {error!r}")
                            found = due
                            break
                if not found.equals(due):
                    wrong.append(f"{file}: {reader} finds other values")
            if name.endswith("late"):
                if failures == 0:
                    wrong.append(f"{file}: a sample has met what should be hidden from it")
            elif os.stat(file).st_size != before:
                wrong.append(f"{file}: {before} bytes at first, {os.stat(file).st_size} then")
    # Rows that are only claimed: the footers are there, and the last rows.
    for name in ("none", "claimed/columns/lists"):
        metadata = pq.ParquetFile(f"{mount}/{name}.parquet")
        if metadata.metadata.num_rows != CLAIMED:
            wrong.append(f"{name}.parquet has {metadata.metadata.num_rows} rows")
        with pa.OSFile(f"{mount}/{name}.arrow") as source, pa.ipc.open_file(source) as reader:
            if reader.num_record_batches < 1:
                wrong.append(f"{name}.arrow has no batches")
    print("\n".join(wrong))
    return not wrong


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]))
    elif not check(sys.argv[2], sys.argv[3]):
        sys.exit(1)
