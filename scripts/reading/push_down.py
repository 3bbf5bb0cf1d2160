"""A query that one row group in 64 can answer; its result must be right.

    python3 scripts/reading/push_down.py READER TABLE.parquet EXPECTED.arrow
"""

import sys

import numpy as np
import pyarrow as pa

# Rows of one row group, by the time they carry: ten units a row from this on.
START = 1_700_000_000_000
FIRST, LAST = START + 10 * 700_000, START + 10 * 701_000


def by_duckdb(path):
    import duckdb

    query = f"select count(*), sum(x) from read_parquet('{path}') where time between {FIRST} and {LAST}"
    return duckdb.sql(query).fetchall()[0]


def by_polars(path):
    import polars as pl

    rows = pl.scan_parquet(path).filter(pl.col("time").is_between(FIRST, LAST))
    return rows.select(pl.len(), pl.col("x").sum()).collect().row(0)


def by_pyarrow(path):
    import pyarrow.dataset as ds

    chosen = (ds.field("time") >= FIRST) & (ds.field("time") <= LAST)
    table = ds.dataset(path, format="parquet").to_table(columns=["x"], filter=chosen)
    return table.num_rows, np.asarray(table["x"]).sum()


def main():
    """One reader, one query."""
    reader, path, expected = sys.argv[1:]
    with pa.memory_map(expected) as source:
        table = pa.ipc.open_file(source).read_all()
    time, x = np.asarray(table["time"]), np.asarray(table["x"])
    meant = (time >= FIRST) & (time <= LAST)
    count, total = {"DuckDB": by_duckdb, "polars": by_polars, "pyarrow": by_pyarrow}[reader](path)
    print(f"{count} rows, sum {total}")
    if count != meant.sum() or not np.isclose(total, x[meant].sum()):
        sys.exit(f"{meant.sum()} rows, sum {x[meant].sum()} expected")


if __name__ == "__main__":
    main()
