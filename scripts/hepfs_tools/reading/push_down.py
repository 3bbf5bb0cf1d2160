"""A query that one row group in 64 can answer; its result must be right.

    python3 -m hepfs_tools.reading.push_down READER TABLE.parquet EXPECTED.arrow
"""

import sys

import numpy as np
import pyarrow as pa

# Rows of one row group, by the time they carry: ten units a row from this on.
START = 1_700_000_000_000
FIRST, LAST = START + 10 * 700_000, START + 10 * 701_000

# Each reader takes a path and a condition: a column with one value, or with the least and the largest.


def sql(column, *values):
    """A condition in SQL."""
    return f"{column} = {values[0]!r}" if len(values) == 1 else f"{column} between {values[0]!r} and {values[1]!r}"


def by_duckdb(path, *condition):
    import duckdb

    query = f"select count(*), sum(x) from read_parquet('{path}') where {sql(*condition)}"
    return duckdb.sql(query).fetchall()[0]


def by_polars(path, column, *values):
    import polars as pl

    asked = pl.col(column)
    rows = pl.scan_parquet(path).filter(asked == values[0] if len(values) == 1 else asked.is_between(*values))
    return rows.select(pl.len(), pl.col("x").sum()).collect().row(0)


def by_pyarrow(path, column, *values):
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    asked = ds.field(column)
    chosen = asked == values[0] if len(values) == 1 else (asked >= values[0]) & (asked <= values[1])
    table = ds.dataset(path, format="parquet").to_table(columns=["x"], filter=chosen)
    return table.num_rows, pc.sum(table["x"]).as_py()


def by_datafusion(path, *condition):
    import datafusion

    context = datafusion.SessionContext()
    context.register_parquet("t", str(path))
    (batch,) = context.sql(f"select count(*), sum(x) from t where {sql(*condition)}").collect()
    return tuple(column[0].as_py() for column in batch)


def spark():
    """The session, in a Java process of its own."""
    from pyspark.sql import SparkSession

    settings = {"spark.ui.enabled": "false", "spark.driver.memory": "2g", "spark.log.level": "OFF"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def by_spark(path, *condition):
    rows = spark().read.parquet(str(path)).where(sql(*condition))
    return tuple(rows.selectExpr("count(*)", "sum(x)").collect()[0])


READERS = {"DuckDB": by_duckdb, "polars": by_polars, "pyarrow": by_pyarrow, "DataFusion": by_datafusion, "Spark": by_spark}


def main():
    """One reader, one query."""
    reader, path, expected = sys.argv[1:]
    with pa.memory_map(expected) as source:
        table = pa.ipc.open_file(source).read_all()
    time, x = np.asarray(table["time"]), np.asarray(table["x"])
    meant = (time >= FIRST) & (time <= LAST)
    count, total = READERS[reader](path, "time", FIRST, LAST)
    print(f"{count} rows, sum {total}")
    if count != meant.sum() or not np.isclose(total, x[meant].sum()):
        sys.exit(f"{meant.sum()} rows, sum {x[meant].sum()} expected")


if __name__ == "__main__":
    main()
