#!/usr/bin/env python3
"""Writes tables with search indexes of HEP001, right ones and broken ones, and what is to be found in them.

    scripts/search_index_fixtures.py [--h5col] FOLDER

Writes FOLDER/search_indexes.h5 (all right: each kind over each type in each draft), search_indexes_broken.h5 (one thing
wrong in each table), search_indexes_bitmaps.h5 (a BITMAP of a long column in chunks of several forms) and with
`--h5col` search_indexes_h5col.h5 (by the reference producer, the package `h5col` of HDFGroup/h5col, which answers the
queries as well; its files differ in time stamps). Beside each lies NAME.json:

    {"columns": {"i64": [{"expression": "v = 5", "path": "v:eq:5", "rows": [3, 9]}, …]},
     "tables": [{"table": "july/i64", "column": "i64", "rule": "what is wrong", "indexes": {
         "index": {"kind": "CHUNK_MINMAX", "verdict": ["valid"]}}}]}

Tables of one column hold the same rows, so that the same queries have the same answers; `rows` is what the column `row`
gives. The rows of long tables come as {"count", "sha256"}, of a line for each row. A verdict is one of those in the
list: `valid`, `absent`, `stale`, `broken` (scripts/searching/faults.py). Nothing of hepfs takes part.
"""

import argparse
import hashlib
import json
import pathlib

import h5py
import numpy as np
from searching import making
from searching.faults import FAULTS
from searching.linking import LINKS
from searching.making import APRIL, JULY, KINDS, MAY, READINGS, Revision
from searching.sources import ROWS, every_type, few_values, long_column, one_value
from selecting import predicates, truth

REVISIONS = {"april": APRIL, "may": MAY, "july": JULY}


def queries_of(source, count=8):
    """What is asked of a column: for each of some values, and at random."""
    rng = np.random.default_rng(len(source.keys))
    column = source.asked
    asked = [(truth.condition(column, operator, []), text, f"v:{operator}") for operator, text in PRESENCE.items()]
    for operator, symbol, rows in telling(source):
        for row in rows:
            text = written(column, column.values[row])
            shown = predicates.quoted(text, "'") if column.kind in ("text", "bytes") else text
            path = f"v:{operator}:{predicates.quote(text, safe=' ')}"
            asked.append((truth.condition(column, operator, [text]), f"v {symbol} {shown}", path))
    for text in TRAPS.get(source.name, []):
        asked.append((truth.condition(column, "eq", [text]), f"v = '{text}'", f"v:eq:{predicates.quote(text)}"))
    asked += [predicates.condition(rng, [column]) for _ in range(count)]
    answers = {
        expression: {"expression": expression, "path": path} | answer(truth.rows_of(known))
        for known, expression, path in asked
    }
    return list(answers.values())


def telling(source):
    """Operators and the rows whose values show that an index is wrong: least and greatest of chunks, all of a chunk."""
    bounds = []
    for chunk in source.chunks()[:: max(len(source.chunks()) // 7, 1)]:
        placed, _, _ = making.in_order(source, chunk)
        bounds += [row for row in (placed[:1] + placed[-1:]) if not source.asked.missing[row]]
    # Nothing is compared with NaN.
    is_nan = [value != value for value in source.asked.values]
    first = [row for row in source.chunks()[0][:16] if not source.asked.missing[row] and not is_nan[row]]
    yield "eq", "=", [*first, *bounds]
    yield "ge", ">=", bounds[:6]
    yield "lt", "<", bounds[1::4]


# Codes where names are asked for, and other ways to write one that is shown as its number.
TRAPS = {"kind": ["0", "1", "9", "05", "+5", "5.0"], "label": ["0", "1", "-1"]}
PRESENCE = {"null": "v is null", "valid": "v is not null"}


def written(column, value):
    """A value of a column as text."""
    if column.kind == "boolean":
        return str(value).lower()
    if column.kind == "float":
        return repr(value)
    return {"text": bytes.decode, "bytes": bytes.hex, "integer": str}[column.kind](value)


def answer(rows):
    """The rows of an answer, or of a long one their number and hash."""
    if len(rows) <= ROWS:
        return {"rows": rows.tolist()}
    return {"count": len(rows), "sha256": hashlib.sha256("".join(f"{row}\n" for row in rows).encode()).hexdigest()}


def add_table(file, place, source, revision, kinds, tables, reserve=0):
    """A table with a right index of each kind."""
    parent = file.require_group(place.split("/")[0])
    group, column, under = making.start(parent, place.split("/")[1], source, revision, reserve)
    del group
    made = {
        kind: making.write_index(under, kind.lower(), making.make(kind, source, revision), source, revision)
        for kind in kinds
    }
    making.join(column, revision, made.values())
    indexes = {dataset.name.rsplit("/", 1)[-1]: {"kind": kind, "verdict": ["valid"]} for kind, dataset in made.items()}
    tables.append({"table": place, "column": source.name, "rule": "everything is right", "indexes": indexes})


def right(path):
    """Each kind over each type in each draft."""
    sources, tables = every_type(), []
    with h5py.File(path, "w", libver="latest") as file:
        for name, revision in REVISIONS.items():
            for source in sources.values():
                kinds = KINDS if revision.is_july or source.april_minmax else KINDS[1:]
                add_table(file, f"{name}/{source.name}", source, revision, kinds, tables)
        for reading in READINGS:
            of_reading = Revision("april", APRIL.group, APRIL.forward, APRIL.back, APRIL.values, reading)
            for source in (sources["i64"], sources["f32"]):
                add_table(file, f"{reading}/{source.name}", source, of_reading, KINDS[3:], tables)
        add_table(file, "reserve/f32", sources["f32"], JULY, KINDS, tables, reserve=37)
        sources["long"] = long_column()
        for name in ("april", "july"):
            add_table(file, f"{name}/long", sources["long"], REVISIONS[name], ["CHUNK_MINMAX", "SORTED_ROWS"], tables)
        # A label without a code is missing to who asks and a value to the index: a careful reader may refuse it.
        for table in tables:
            if table["column"] == "odd_label":
                table["rule"] = "codes without a label are in the index"
                for index in table["indexes"].values():
                    index["verdict"] = ["valid", "broken"]
    return {"columns": {name: queries_of(source) for name, source in sources.items()}, "tables": tables}


def broken(path):
    """One thing wrong in each table."""
    sources, tables = every_type(), []
    used = {}
    with h5py.File(path, "w", libver="latest") as file:
        for name, kind, column, verdict, rule, revisions, change in FAULTS:
            for revision in map(REVISIONS.get, revisions):
                source = used.setdefault(column, sources[column])
                group, dataset, under = making.start(file.require_group(revision.name), name, source, revision)
                del group
                index = making.make(kind, source, revision)
                change(index, source)
                making.join(dataset, revision, [making.write_index(under, "index", index, source, revision)])
                found = {"index": {"kind": index.attributes.get("KIND", index.kind), "verdict": verdict}}
                tables.append({"table": f"{revision.name}/{name}", "column": column, "rule": rule, "indexes": found})
        for name, column, revision, rule, verdicts, build in LINKS:
            source = used.setdefault(column, sources[column])
            reserve = 20 if name == "rows_in_reserve" else 0
            group, dataset, under = making.start(file.require_group("links"), name, source, revision, reserve)
            build(group, dataset, under, source)
            found = {index: {"verdict": verdict} for index, verdict in verdicts.items()}
            tables.append({"table": f"links/{name}", "column": column, "rule": rule, "indexes": found})
    return {"columns": {name: queries_of(source) for name, source in used.items()}, "tables": tables}


# Shapes of chunks of bits, in bytes: a block of 65,536 rows, two, three, a half; of two bitmaps; all of them.
CHUNKS = {"few": [(1, 8192), (1, 16384), (1, 24576), (1, 4096), (2, 16384), (1, 37501), (5, 37501)], "one": [(1, 16384)]}
ASKED = {
    "few": ["= 0", "= 1", "= 2", "= 3", "= 4", "= 5", "!= 0", "< 2", "in (2, 3)", "is null", "is not null"],
    "one": ["= 7", "< 7", "is null", "is not null"],
}
NAMES = {"=": "eq", "!=": "ne", "<": "lt", "in": "in"} | {text.removeprefix("v "): name for name, text in PRESENCE.items()}


def bitmaps(path):
    """A BITMAP in chunks of several forms."""
    columns, tables = {}, []
    with h5py.File(path, "w", libver="latest") as file:
        for source in (few_values(), one_value()):
            index = making.make("BITMAP", source, JULY)
            for chunk in CHUNKS[source.name]:
                name = f"{source.name}_{chunk[0]}x{chunk[1]}"
                _, column, under = making.start(file.require_group("july"), name, source, JULY)
                making.join(column, JULY, [making.write_index(under, "bitmap", index, source, JULY, chunk)])
                found = {"bitmap": {"kind": "BITMAP", "verdict": ["valid"]}}
                tables.append({"table": f"july/{name}", "column": source.name, "rule": "everything is right", "indexes": found})
            columns[source.name] = [told_of(source, text) for text in ASKED[source.name]]
    return {"columns": columns, "tables": tables}


def told_of(source, text):
    """A query by the end of its expression."""
    symbol, _, rest = (text, "", "") if text.startswith("is") else text.partition(" ")
    values = rest.strip("()").split(", ") if rest else []
    rows = truth.rows_of(truth.condition(source.asked, NAMES[symbol], values))
    path = ":".join(["v", NAMES[symbol], *([",".join(values)] if values else [])])
    return {"expression": f"v {text}", "path": path} | answer(rows)


def write(path, made):
    """The JSON beside a file."""
    lines = [
        f"  {json.dumps(name)}: [\n" + ",\n".join("   " + json.dumps(query) for query in queries) + "]"
        for name, queries in made["columns"].items()
    ]
    tables = ",\n".join("  " + json.dumps(table) for table in made["tables"])
    text = '{"columns": {\n' + ",\n".join(lines) + '},\n "tables": [\n' + tables + "]}\n"
    json.loads(text)
    path.with_suffix(".json").write_text(text)
    print(f"{path.name}: {path.stat().st_size} bytes, {len(made['tables'])} tables")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--h5col", action="store_true", help="also the file that h5col writes")
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    recipes = {"search_indexes": right, "search_indexes_broken": broken, "search_indexes_bitmaps": bitmaps}
    if arguments.h5col:
        from searching.by_h5col import by_h5col

        recipes["search_indexes_h5col"] = by_h5col
    for name, recipe in recipes.items():
        path = arguments.folder / f"{name}.h5"
        write(path, recipe(path))


if __name__ == "__main__":
    main()
