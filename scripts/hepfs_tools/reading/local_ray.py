"""Starts Ray on this computer."""

import os
import tempfile
from contextlib import contextmanager


@contextmanager
def started():
    """Ray with two workers, which ends with the block and leaves no file."""
    # By default, 32 processes read footers, each of which takes seconds to start.
    os.environ.setdefault("RAY_DATA_PARQUET_FOOTER_NUM_ACTORS", "1")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")
    import ray

    with tempfile.TemporaryDirectory() as folder:
        options = {"num_cpus": 2, "include_dashboard": False, "log_to_driver": False, "object_store_memory": 2 << 30}
        ray.init(**options, _temp_dir=folder)
        try:
            yield ray
        finally:
            ray.shutdown()


def parts(dataset):
    """The parts of a dataset that have rows, as tables of pyarrow."""
    batches = dataset.iter_batches(batch_format="pyarrow", batch_size=None)
    return [part for part in batches if part.num_rows]
