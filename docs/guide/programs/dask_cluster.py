"""Counts the rows of a table and sums a column on a Dask cluster, each worker by a mount of its own.

On each worker, and once for this program, with the same directory everywhere:

    hepfs run --learnt F --formats parquet --at /mnt/run run.h5 -- dask worker tcp://HOST:8786 --nthreads 1
    hepfs run --learnt F --formats parquet --at /mnt/run run.h5 -- \
        python3 dask_cluster.py tcp://HOST:8786 /mnt/run/run_042 energy

`hepfs prepare run.h5 --export F` writes F.
"""

import sys

import dask
import dask.dataframe
from distributed import Client
from fsspec.implementations.arrow import ArrowFSWrapper
from pyarrow.fs import LocalFileSystem

scheduler, table, column = sys.argv[1:]
with Client(scheduler):
    # Without `split_row_groups` a file of less than 256 MB is one task. Without pyarrow's file system, Python's buffers
    # go on into the next row group, which another worker reads.
    how = {"split_row_groups": True, "filesystem": ArrowFSWrapper(LocalFileSystem())}
    # Workers keep what they have read: else each question shares the table out anew, and others decode what one had.
    values = dask.dataframe.read_parquet(table, columns=[column], **how)[column].persist()
    count, least, greatest, total = dask.compute(values.size, values.min(), values.max(), values.sum())
    print(f"{count} rows; {column} from {least} to {greatest}, in all {total}")
