"""Asks a cluster the questions of `check cluster`, as the driver's program.

    python -m hepfs_tools.reading.cluster_jobs ENGINE ADDRESS WORKERS MOUNT kept|anew

Prints seconds and answers as a line of JSON, and ends with its standard input, so that its mount can be looked at
before. `kept`: workers keep what they have read, for all questions. `anew`: each question reads.

The questions: rows, sums of all columns without NaN, how many are NaN, rows and a sum where `c0` lies between, rows and
sums for each remainder of `c4`, rows and letters of the texts.
"""

import json
import sys
import time
from pathlib import Path

FILES = {"t": "t/table.parquet", "words": "words/table.parquet"}
GROUPS = 7


def between(rows):
    """The bounds of the filter. `c0` runs from 0 to about the number of rows."""
    return rows * 3 // 10, rows * 4 // 10


def by_pyarrow(folder):
    """The answers from files of native Parquet, which have the names of the tables."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table, words = (pq.read_table(folder / f"{name}.parquet") for name in FILES)
    nan = pc.is_nan(table["c1"])
    table = table.set_column(1, "c1", pc.if_else(nan, 0.0, table["c1"]))
    least, most = between(table.num_rows)
    chosen = table.filter(pc.and_(pc.greater_equal(table["c0"], least), pc.less(table["c0"], most)))
    # pyarrow has no remainder.
    keys = pc.subtract(table["c4"], pc.multiply(pc.divide(table["c4"], GROUPS), GROUPS))
    groups = pa.table({"key": keys, "value": table["c3"]}).group_by("key")
    counted = groups.aggregate([("value", "count"), ("value", "sum")]).select(["key", "value_count", "value_sum"])
    return {
        "rows": table.num_rows,
        "sums": [pc.sum(column).as_py() for column in table.columns],
        "nan": pc.sum(nan).as_py(),
        "filtered": [chosen.num_rows, pc.sum(chosen["c2"]).as_py()],
        "groups": sorted(list(row.values()) for row in counted.to_pylist()),
        "words": [words.num_rows, pc.sum(pc.utf8_length(words["text"])).as_py()],
    }


def by_spark(address, workers, mount, is_kept):
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as of

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "1g",
        "spark.cores.max": workers,
        # All workers are there before the first split is given out.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
        "spark.sql.files.maxPartitionBytes": "24m",
        "spark.sql.shuffle.partitions": "4",
    }
    builder = SparkSession.builder.master(address)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    # Starts Java's side of the executors, so that the time is that of the questions.
    spark.range(1000).agg(of.sum("id")).collect()
    began = time.perf_counter()
    table, words = (spark.read.parquet(f"{mount}/{name}") for name in FILES)
    if is_kept:
        table.cache()
    number = of.coalesce(of.nanvl(of.col("c1"), of.lit(0.0)), of.lit(0.0))
    sums = [of.sum(number if name == "c1" else of.col(name)) for name in table.columns]
    rows, nan, *sums = table.agg(of.count("*"), of.sum(of.isnan("c1").cast("long")), *sums).first()
    least, most = between(rows)
    chosen = table.filter((of.col("c0") >= least) & (of.col("c0") < most))
    filtered = list(chosen.agg(of.count("*"), of.sum("c2")).first())
    groups = table.groupBy((of.col("c4") % GROUPS).alias("key")).agg(of.count("*"), of.sum("c3")).collect()
    texts = list(words.agg(of.count("*"), of.sum(of.length("text"))).first())
    seconds = time.perf_counter() - began
    answers = {"rows": rows, "sums": sums, "nan": nan, "filtered": filtered, "words": texts}
    return seconds, answers | {"groups": sorted(list(group) for group in groups)}


def by_dask(address, workers, mount, is_kept, filesystem="arrow"):
    import dask
    import dask.dataframe
    from distributed import Client
    from fsspec.implementations.arrow import ArrowFSWrapper
    from pyarrow.fs import LocalFileSystem

    def plain(value):
        return value.item() if hasattr(value, "item") else value

    client = Client(address)
    client.wait_for_workers(workers, timeout=300)
    # Workers load their libraries now, so that the time is that of the questions.
    client.run(lambda: __import__("dask.dataframe"))
    # By itself Dask reads through Python's buffered files, which go on for a buffer behind each row group.
    how = {"split_row_groups": True}
    if filesystem == "arrow":
        how["filesystem"] = ArrowFSWrapper(LocalFileSystem())
    began = time.perf_counter()
    table, words = (dask.dataframe.read_parquet(f"{mount}/{name}", **how) for name in FILES)
    if is_kept:
        table = table.persist()
    rows, sums, nan = dask.compute(table.c0.size, table.sum(), table.c1.isna().sum())
    least, most = between(int(rows))
    chosen = table[(table.c0 >= least) & (table.c0 < most)].c2
    filtered = dask.compute(chosen.size, chosen.sum())
    keyed = table[["c3"]].assign(key=table.c4 % GROUPS).groupby("key").c3
    counts, totals = dask.compute(keyed.size(), keyed.sum())
    texts = dask.compute(words.text.size, words.text.str.len().sum())
    seconds = time.perf_counter() - began
    return seconds, {
        "rows": plain(rows),
        "sums": [plain(total) for total in sums],
        "nan": plain(nan),
        "filtered": [plain(value) for value in filtered],
        "groups": sorted([plain(key), plain(counts[key]), plain(totals[key])] for key in counts.index),
        "words": [plain(value) for value in texts],
    }


def by_dask_and_fsspec(address, workers, mount, is_kept):
    return by_dask(address, workers, mount, is_kept, "fsspec")


ENGINES = {"spark": by_spark, "dask": by_dask, "dask-fsspec": by_dask_and_fsspec}


def main(engine, address, workers, mount, kept):
    seconds, answers = ENGINES[engine](address, int(workers), Path(mount), kept == "kept")
    print(json.dumps({"seconds": seconds, "answers": answers}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
