#!/usr/bin/env python3
"""The table of several frames beside each other has the types of each of them.

    siblings.py write FOLDER PANDAS   runs.h5: PANDAS, a file of fixtures, with a frame of every type twice, as runs/run_0 and runs/run_1
    siblings.py check FOLDER MOUNT    pyarrow and pandas read of tables/ALL what they read of both frames, durations as h5py has them
"""

import shutil
import sys
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

FRAME = "fixed/every_1003"


def write(folder, fixtures):
    """The file."""
    path = Path(folder) / "runs.h5"
    shutil.copy(fixtures, path)
    with h5py.File(path, "r+") as file:
        for name in ["run_0", "run_1"]:
            file.copy(FRAME, file.require_group("runs"), name=name)


def durations(path):
    """The durations of the frame by their names, as h5py has them."""
    with h5py.File(path) as file:
        frame = file[FRAME]
        for name, block in frame.items():
            if b"timedelta" in bytes(block.attrs.get("value_type", b"")):
                unit = bytes(block.attrs["value_type"]).decode().removeprefix("timedelta64")[1:-1] or "ns"
                items = frame[name.replace("values", "items")][:].ravel()
                for at, item in enumerate(items):
                    yield item.decode() if isinstance(item, bytes) else str(item), block[:][:, at].view(f"m8[{unit}]")


def check(folder, mount):
    """All of them."""
    runs, file = Path(mount) / "runs.h5/runs", Path(folder) / "runs.h5"
    all_of, one = runs / "tables/ALL", runs / "run_0"
    for read in [pq.read_table, lambda path: ipc.open_file(path).read_all()]:
        suffix = "parquet" if read is pq.read_table else "arrow"
        of_all, of_one = read(all_of / f"table.{suffix}"), read(one / f"table.{suffix}")
        for field in of_one.schema:
            known = of_all.schema.field(field.name).type
            # Labels of several sets are texts.
            expected = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
            assert known == expected, f"{suffix}: {field.name}: {known}, not {field.type}"
            if pa.types.is_duration(known) or pa.types.is_integer(known):
                values = of_one[field.name].to_pylist()
                assert of_all[field.name].to_pylist() == values * 2, field.name
    count, frame = 0, pd.read_parquet(all_of / "table.parquet")
    for name, stored in durations(file):
        assert frame[name].dtype == stored.dtype, f"{name}: {frame[name].dtype}"
        np.testing.assert_array_equal(frame[name].to_numpy(), np.tile(stored, 2))
        count += 1
    assert count > 0
    print(f"{count} durations in {len(frame)} rows")


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](*sys.argv[2:])
