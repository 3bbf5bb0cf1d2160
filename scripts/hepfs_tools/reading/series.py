"""Groups beside each other as one table: row groups do not cross groups, and readers skip by their names.

    python3 -m hepfs_tools.reading.series write FILE.h5
    python3 -m hepfs_tools.reading.series check FILE.h5 MOUNT
"""

import sys
from pathlib import Path

import h5py
import numpy as np
import pyarrow.parquet as pq

# Rows of each group: more than a row group has, none, very few, as many as a row group has.
BEAMS = (300_000, 0, 5, 200_000, 131_072, 70_000)

# Episodes too many and too short for row groups of their own.
EPISODES = [20 + number % 7 for number in range(300)]

MOST_ROWS = 131_072


def write(path):
    with h5py.File(path, "w") as file:
        for number, rows in enumerate(BEAMS):
            group = file.create_group(f"beams/gt{number}")
            height = np.arange(rows) % 1000 + number * 1e6
            texts = np.array([f"t{number}-{row % 17}" * (1 + row % 3) for row in range(rows)], object)
            for name, data, dtype in (("h", height, None), ("t", texts, h5py.string_dtype())):
                chunked = {"chunks": (10_000,), "maxshape": (None,), "compression": "gzip"}
                dataset = group.create_dataset(name, (rows,), dtype or data.dtype, **chunked)
                if rows:
                    dataset[:] = data
        for number, rows in enumerate(EPISODES):
            group = file.create_group(f"episodes/demo_{number}")
            group["action"] = np.full((rows, 7), number, "f4")
            group["reward"] = np.arange(rows) + 100 * number


def decoded(mount):
    """Bytes decoded so far."""
    lines = (mount / ".hepfs" / "stats").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("bytes_decoded ")))


def check_beams(file, mount):
    path = mount / "beams/tables/ALL/table.parquet"
    metadata = pq.read_metadata(path)
    expected = [
        (f"gt{number}", first, min(first + MOST_ROWS, rows))
        for number, rows in enumerate(BEAMS)
        for first in range(0, rows, MOST_ROWS)
    ]
    assert metadata.num_row_groups == len(expected), metadata
    for place, (name, first, end) in enumerate(expected):
        group = metadata.row_group(place)
        label, height = (group.column(column).statistics for column in (0, 1))
        assert (group.num_rows, label.min, label.max) == (end - first, name, name), (place, group, label)
        stored = file[f"beams/{name}/h"][first:end]
        assert (height.min, height.max, height.null_count) == (stored.min(), stored.max(), 0), (place, height)
    # First, since the lengths of texts are measured until they are known.
    texts = np.concatenate([file[f"beams/gt{number}/t"].asstr()[:] for number in range(len(BEAMS))])
    assert pq.read_table(path, columns=["t"])["t"].to_pylist() == texts.tolist()
    stored = np.concatenate([file[f"beams/gt{number}/h"][:] for number in range(len(BEAMS))])
    for name, reader in (("gt5", by_duckdb), ("gt3", by_pyarrow)):
        before = decoded(mount)
        assert reader(path, name) == (len(file[f"beams/{name}/h"]), file[f"beams/{name}/h"][:].sum()), reader
        took = decoded(mount) - before
        assert 0 < took <= file[f"beams/{name}/h"].nbytes, f"{reader.__name__}: {took} bytes decoded for {name}"
    assert np.array_equal(pq.read_table(path, columns=["h"])["h"].to_numpy(), stored)


def check_episodes(file, mount):
    """More groups than have row groups of their own: all of them take less than a MiB."""
    path = mount / "episodes/tables/ALL/table.parquet"
    metadata = pq.read_metadata(path)
    assert (metadata.num_row_groups, metadata.num_rows) == (1, sum(EPISODES)), metadata
    label = metadata.row_group(0).column(0).statistics
    assert label is None or not label.has_min_max or (label.min, label.max) == ("demo_0", "demo_99"), label
    count, rewards = by_duckdb(path, "demo_299", "reward")
    assert (count, rewards) == (EPISODES[299], file["episodes/demo_299/reward"][:].sum())


def by_duckdb(path, name, column="h"):
    import duckdb

    query = f"""select count(*), sum({column}) from '{path}' where "group" = '{name}'"""
    return duckdb.sql(query).fetchall()[0]


def by_pyarrow(path, name):
    table = pq.read_table(path, columns=["h"], filters=[("group", "=", name)])
    return table.num_rows, table["h"].to_numpy().sum()


def main():
    what, path = sys.argv[1], Path(sys.argv[2])
    if what == "write":
        write(path)
        return
    with h5py.File(path) as file:
        for check in (check_beams, check_episodes):
            check(file, Path(sys.argv[3]))


main()
