#!/usr/bin/env python3
"""Valid ranges of netCDF: `hepfs check` tells what NumPy finds outside of them, and ranges that are none.

    netcdf_ranges.py HEPFS FOLDER    writes FOLDER/ranges.h5 and checks it
"""

import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np

X = np.arange(-3, 7)
# Variables: what is stored, attributes, the rule that is broken, and which rows break it.
VARIABLES = {
    "good": (X.astype("i2"), {"valid_min": np.int16(-3), "valid_max": np.int16(6)}, None, None),
    "above": (X.astype("i2"), {"valid_max": np.int16(3)}, "exceeded", X > 3),
    "below": (X.astype("f8"), {"valid_min": np.float64(-0.5)}, "exceeded", X < -0.5),
    "unsigned": (X.astype("u1"), {"valid_range": np.array([4, 255], "u1")}, "exceeded", X.astype("u1") < 4),
    "packed": (
        X.astype("i2"),
        {"scale_factor": np.float32(0.1), "add_offset": np.float32(7), "valid_range": np.array([-1, 4], "i2")},
        "exceeded",
        (X < -1) | (X > 4),
    ),
    "falling": (X.astype("i4"), {"scale_factor": -0.3, "valid_range": np.array([-1, 4], "i4")}, "exceeded", (X < -1) | (X > 4)),
    "shown": (X.astype("i2"), {"scale_factor": 0.5, "valid_max": np.float64(1.5)}, "exceeded", X * 0.5 > 1.5),
    "single": (np.float32([0.1, 0.2]).repeat(5), {"valid_range": np.array([0.1, 0.2], "f8")}, None, None),
    "missing": (X.astype("i4"), {"_FillValue": np.int32(6), "valid_max": np.int32(5)}, None, None),
    "order": (X.astype("i4"), {"valid_range": np.array([4, 1], "i4")}, "", None),
    "three": (X.astype("i4"), {"valid_range": np.array([1, 2, 3], "i4")}, "", None),
    "text": (X.astype("i4"), {"valid_min": "low"}, "", None),
    "nan": (X.astype("f4"), {"valid_max": np.float32("nan")}, "", None),
    "twice": (X.astype("i4"), {"valid_range": np.array([-9, 9], "i4"), "valid_min": np.int32(-9)}, "twice", None),
    "inside": (X.astype("i4"), {"_FillValue": np.int32(3), "valid_range": np.array([-9, 9], "i4")}, "fill", None),
}


def main(hepfs, folder):
    """All variables."""
    source = Path(folder) / "ranges.h5"
    with h5py.File(source, "w") as file:
        file["x"] = np.arange(len(X), dtype="f8")
        file["x"].make_scale("x")
        for name, (data, attributes, _, _) in VARIABLES.items():
            file[name] = data
            file[name].dims[0].attach_scale(file["x"])
            file[name].attrs.update(attributes)
        file["counts"] = np.ones(len(X), "i4")
        file["counts"].dims[0].attach_scale(file["x"])
        file["counts"].attrs["sample_dimension"] = "obs"
    line = [hepfs, "check", "--json", "--cache-folder", "none", source]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1, done
    expected = [("/counts", "netcdf/ragged", None, None)]
    for name, (_, _, rule, rows) in VARIABLES.items():
        if rule is not None:
            count, first = (None, None) if rows is None else (int(rows.sum()), int(rows.argmax()))
            expected.append((f"/{name}", "-".join(filter(None, ["netcdf/valid-range", rule])), count, first))
    told = [json.loads(line) for line in done.stdout.splitlines()]
    told = [(one["path"], one["id"], one.get("rows"), one.get("first_row")) for one in told]
    assert sorted(told, key=str) == sorted(expected, key=str), set(told) ^ set(expected)
    print(f"{len(told)} findings")


if __name__ == "__main__":
    main(*sys.argv[1:])
