#!/usr/bin/env python3
"""Writes `tests/data/*.h5` and, beside each, `NAME.expected.json` with what h5py reads from it.

    scripts/make_fixtures.py [--only NAME …] [--expect-only]

`--expect-only` leaves the `.h5` files as they are and writes what is expected of them anew.

Needs h5py (HDF5 ≥ 2.0), numpy, hdf5plugin. The output is the same at each run, but for `h5col*.h5` and `paged.h5`:
these differ in time stamps and are left alone unless named. The former need the package `h5col` (HDFGroup/h5col, `pip
install` it from its repository). Nothing of hepfs takes part: the expected values are decoded from the stored bytes by
`fixtures/oracle.py` and, where h5py knows the type, compared with h5py's own reading before they are written; those of
the files of h5col with what h5col reads.

NAME.expected.json:

    {"tables": {"/path/of/table": {
        "rows": 5,                                  rows of `table.*`
        "row_labels": [{"name": "id"}],             row-label columns, outermost first
        "columns": [{                               in logical order, row labels first (DESIGN §1)
            "name": "energy",                       link name; "name_hex" where it is not UTF-8
            "stem": "energy",                       name of the files in `columns/` before the suffix; "stem_hex" where
                                                    not UTF-8; absent where it is cut and hashed (over 240 bytes)
            "rows": 5,                              rows of this column's own files
            "in_table": true,                       false: another length, left out of `table.*`
            "csv": [CELL, …],                       one for each row, before CSV quoting
            "npy_dtype": "'<f4'",                   `descr` of the `.npy` header as Python text; null: no `.npy`
            "npy_shape": [5],
            "raw_sha256": "…",                      SHA-256 of the stored bytes of the rows shown: the `.raw` file and
                                                    the data of the `.npy`; null: there is no fixed-width `.raw`
            "unreadable": true                      a column that is present but cannot be read; then no "csv"
        }],
        "whole": {"npy_dtype": …, "npy_shape": …, "raw_sha256": …}    of `table.npy` and `table.raw`, where the table is
                                                    one dataset of compounds; absent of other tables
     }},
     "arrays": {"/path/of/dataset": {                datasets that are no columns: each is a table by itself
        "shape": [2, 3],                            null: a null dataspace
        "npy_dtype": …, "npy_shape": …, "raw_sha256": …,    as above
        "files": [".csv", …],                       suffixes of its files. ".raw" is there also for strings of variable
                                                    length, up to rank 1
        "columns": [{"name": "0", "csv": [CELL, …]}, …],    the CSV file: one column named after the link, one for each
                                                    place of a row; the NDJSON file
                                                    of rank 1 has the same
        "rows": [CELL, …],                          lines of `.txt` (rank 1, scalars but strings) and of `.ndjson`
                                                    (rank 2, scalar strings); `value` of a scalar in `metadata.json`
        "text_hex": "…",                            bytes of the `.txt` of a scalar string; absent where it is missing
        "pixmap_sha256": "…"                        of the `.pgm` or `.ppm`
        "json_lines": true                          its `.txt` is a JSON object a line, in which nothing more is escaped
     }},
     "links": {"/path/of/link": ["/path", …]}}      soft links that are no columns: the hard-linked paths of the group,
                                                    column or array behind each; none where there is nothing to show.
                                                    Absent where there is no link

In a table's columns the values that equal an explicit fill value are missing. In arrays those are missing that equal an
attribute `_FillValue` that is one value which the dataset can have; not in compounds and booleans.

A key that is absent (`npy_dtype`, `raw_sha256`) is not settled and not to be tested. `"shape": null` is a null
dataspace. Paths are HDF5 paths (bytes that are not UTF-8 as \\xNN); only hard links are followed and every group is
listed once, under the path that a depth-first walk in link order meets first: a reader that shows it elsewhere has a
symbolic link there.

CELL is
    null                     a missing value
    "text"                   exactly this text: integers in decimal, `true`/`false`, names of enumeration members,
                             labels, strings, hexadecimal (lower case, stored byte order) of opaque, time, odd floats,
                             integers of more than 8 bytes, instants in ISO 8601 (`fixtures/instants.py`)
    {"missing": "NaN"}       NaN that is missing: null, but `NaN` in files of one column as text
    {"f32": "3dcccccd"}      a float by its bits, most significant digit first (also "f16", "f64"): parse and compare
                             bits; any NaN is as good as any other, its text is `NaN`
    {"json": VALUE}          JSON text that parses to VALUE: complex numbers {"re", "im"}, compounds, arrays, sequences,
                             lists. Inside VALUE floats are {"f32": …} as above (NaN and infinities: the strings "NaN",
                             "Infinity", "-Infinity"), references {"path": …}, missing leaves and strings null
    {"reference": {"path": "/x"}}   a reference: "path" is exact; selections come as "boxes": [[first corner, last
                             corner], …] (inclusive) or "points": [[…], …] or "all": true, "kind" for `H5T_STD_REF`
"""

import argparse
import json
from pathlib import Path

import h5py
from fixtures import april, arrays, check, compound, july, layouts, links, oracle, times, types

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
FAMILIES = (april, july, types, links, layouts, arrays, compound, times)


def recipes():
    """File name → function that writes it."""
    return {name: recipe for family in FAMILIES for name, recipe in family.FILES.items()}


def build(path, recipe):
    """Writes one file. A recipe takes an open file, or a path where it has options of its own."""
    path.unlink(missing_ok=True)
    if getattr(recipe, "takes_path", False):
        recipe(path)
        return
    with h5py.File(path, "w", libver=getattr(recipe, "libver", "earliest")) as file:
        recipe(file)


def expect(path, by_h5col=False):
    """Writes the expected values beside a file."""
    expected = oracle.describe(path)
    check.against_h5py(path, expected)
    if by_h5col:
        check.against_h5col(path, expected)
    text = json.dumps(expected, indent=None, separators=(",", ":"), ensure_ascii=True)
    path.with_suffix(".expected.json").write_text(text + "\n")


def main():
    """Builds all fixtures, or those named."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", help="names of fixtures, without .h5")
    parser.add_argument("--expect-only", action="store_true", help="write no .h5 file, only what is expected of each")
    arguments = parser.parse_args()
    DATA.mkdir(parents=True, exist_ok=True)
    for name, recipe in recipes().items():
        if arguments.only and name not in arguments.only:
            continue
        path = DATA / f"{name}.h5"
        if getattr(recipe, "varies", False) and not arguments.only and path.exists():
            continue
        if not arguments.expect_only:
            build(path, recipe)
        if not getattr(recipe, "no_truth", False):
            expect(path, getattr(recipe, "by_h5col", False))
        print(f"{name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
