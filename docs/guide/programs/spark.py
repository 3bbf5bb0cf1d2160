"""Counts the rows of a table and sums a column on a Spark cluster, each worker by a mount of its own.

On each worker, and once for this program, with the same directory everywhere:

    hepfs run --learnt F --formats parquet --at /mnt/run run.h5 -- \
        spark-class org.apache.spark.deploy.worker.Worker spark://HOST:7077
    hepfs run --learnt F --formats parquet --at /mnt/run run.h5 -- \
        python3 spark.py spark://HOST:7077 /mnt/run/run_042 energy

`hepfs prepare run.h5 --export F` writes F.
"""

import sys

from pyspark.sql import SparkSession, functions

master, table, column = sys.argv[1:]
spark = SparkSession.builder.master(master).appName("hepfs").getOrCreate()
# Workers keep what they have read: else each question shares the table out anew, and others decode what one had.
rows = spark.read.parquet(table).select(column).cache()
count = rows.count()
least, greatest, total = rows.agg(functions.min(column), functions.max(column), functions.sum(column)).first()
print(f"{count} rows; {column} from {least} to {greatest}, in all {total}")
spark.stop()
