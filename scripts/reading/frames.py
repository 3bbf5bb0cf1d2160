#!/usr/bin/env python3
"""Frames of pandas, made again of their tables: names of columns and of row labels, and types, as `read_hdf` gives them.

    frames.py EXPECTED MOUNT     EXPECTED is written by `scripts/pandas_fixtures.py`
"""

import json
import sys
from pathlib import Path

import pandas as pd


def main(expected, mount):
    """Reads all of them, as Parquet and as Arrow."""
    frames = json.loads(Path(expected).read_text())
    for key, wanted in frames.items():
        for name, read in (("table.parquet", pd.read_parquet), ("table.arrow", pd.read_feather)):
            frame = read(f"{mount}{key}/{name}")
            types = [str(kind) for kind in [*frame.index.to_frame().dtypes, *frame.dtypes]]
            if name == "table.arrow" and "of" not in wanted:
                # Dictionaries are the only form that Arrow has for codes.
                types = [own if of_one == "category" else of_one for of_one, own in zip(types, wanted["types"])]
            if "of" in wanted:
                found = {"labels": list(frame.index.names), "of": {name: str(frame[name].dtype) for name in wanted["of"]}}
                assert found == wanted, f"{key}/{name}: {found}, not {wanted}"
                continue
            found = {
                "columns": [repr(name) for name in frame.columns],
                # `read_hdf` makes objects of some integers.
                "kind": "object" if wanted["kind"] == "object" else str(frame.columns.dtype),
                "names": list(frame.columns.names),
                "labels": list(frame.index.names),
                "types": types,
            }
            assert found == wanted, f"{key}/{name}: {found}, not {wanted}"
    print(f"{len(frames)} frames")


if __name__ == "__main__":
    main(*sys.argv[1:])
