#!/usr/bin/env python3
"""Writes `tests/data/trevni/*.trv` and, beside each, `NAME.expected.json` with the rows that were written.

    .tools/venv/bin/python3 scripts/trevni_fixtures.py

`digest.trv` is no work of this script: it is the worked example of the format's description, byte for byte, which
Apache's classes read. The writer is `trevni_writer.py`. An expected file has the rows of `table.ndjson`, and of
`columns/NAME.ndjson` of each column that is below another.
"""

import datetime
import json
from pathlib import Path

import trevni_writer as writer
from trevni_writer import Column, Field

DATA = Path(__file__).resolve().parent.parent / "tests" / "data" / "trevni"
ROWS = 120

VALUES = {
    "boolean": lambda at: at % 3 == 0,
    "int": lambda at: (-1) ** at * (at**3 % 2**31),
    "long": lambda at: (-1) ** at * at * 10**15,
    "fixed32": lambda at: 2**31 - 1 - at,
    "fixed64": lambda at: -(2**63) + at,
    "float": lambda at: at / 8,
    "double": lambda at: at / 1024 - 0.25,
    "string": lambda at: "größer "[: at % 8] + str(at) * (at % 3),
    "bytes": lambda at: bytes([at % 256]) * (at % 4),
}
CODECS = ("null", "deflate", "snappy", "bzip2")


def save(name, columns, rows, alone=None, said=None, version=2):
    """A file and what is expected of it."""
    (DATA / f"{name}.trv").write_bytes(writer.trevni(columns, said, version=version))
    expected = {"rows": rows, "columns": alone or {}}
    (DATA / f"{name}.expected.json").write_text(json.dumps(expected, ensure_ascii=False) + "\n")


def types():
    """Every type behind every codec, with and without checksums and first values, in blocks that do not line up."""
    columns, rows = [], [{} for _ in range(ROWS)]
    for kind, value in VALUES.items():
        values = [value(at) for at in range(ROWS)]
        for number, codec in enumerate(CODECS):
            name, size = f"{kind}_{codec}", 5 + 2 * len(columns)
            blocks = [size] * (ROWS // size) + [ROWS % size] * (ROWS % size > 0)
            checksum = ("crc32", "null", "crc-32", None)[(number + len(columns)) % 4]
            columns.append(
                Column(name, kind, values, codec=codec, checksum=checksum, blocks=blocks, has_values=number % 2 == 0)
            )
            for row, one in zip(rows, values):
                row[name] = writer.plain(one, kind)
    columns.append(Column("nothing", "null", [None] * ROWS))
    for row in rows:
        row["nothing"] = None
    save("types", columns, rows, said={"trevni.checksum": "crc32", "who": "a test", "odd": b"\xff\x00"})


def nested(name, version):
    """Arrays, and records in lists, three deep; of version 1 without runs of lengths."""
    deep = Field("event.hits.times", "double", True)
    channel, on = Field("event.hits.channel", "int"), Field("event.hits.on", "boolean")
    hits = Field("event.hits", "null", True, [channel, deep, on])
    event = Field("event", "string", True, [Field("event.energy", "float"), hits])
    lists = [Field("ids", "int", True), Field("flags", "boolean", True)]
    fields = [Field("n", "long"), *lists, event, Field("marks", "null", True)]

    def entry(field, at):
        if not field.is_array:
            return VALUES[field.type](at)
        count = (0, 0, 1, 3, 0, 1, 1, 1, 2)[at % 9]
        own = VALUES.get(field.type, lambda _: None)
        return [(own(at + i), {child.name: entry(child, at * 2 + i) for child in field.children}) for i in range(count)]

    entries = [{field.name: entry(field, at) for field in fields} for at in range(ROWS)]
    columns = [c for field in fields for c in writer.flattened(field, [one[field.name] for one in entries])]
    for number, column in enumerate(columns):
        size = 7 + 11 * number
        column.blocks = [size] * (ROWS // size) + [ROWS % size] * (ROWS % size > 0)
        column.codec = CODECS[number % 4]
        column.runs = 2 if version > 1 else 1 << 30
    rows = [{field.name: writer.shown(field, one[field.name]) for field in fields} for one in entries]
    alone = {}
    for way in ([event, hits, deep], [event, hits, channel], [event, hits, on], [event, event.children[0]]):
        alone[way[-1].name] = [writer.alone(way, one[event.name]) for one in entries]
    save(name, columns, rows, alone, version=version)


def empty():
    """No rows, and no columns."""
    columns = [Column("a", "int", []), Column("b", "string", [], True), Column("b.c", "long", [], parent="b")]
    save("no_rows", columns, [])
    (DATA / "no_columns.trv").write_bytes(writer.trevni([], rows=0))


AVRO = {
    "type": "record",
    "name": "Row",
    "namespace": "x.y",
    "fields": [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "color", "type": {"type": "enum", "name": "Color", "symbols": ["RED", "GREEN"]}},
        {"name": "note", "type": ["null", "string"]},
        {"name": "tags", "type": {"type": "map", "values": "int"}},
        {
            "name": "place",
            "type": {
                "type": "record",
                "name": "Place",
                "fields": [{"name": "x", "type": "double"}, {"name": "code", "type": ["null", "int"]}],
            },
        },
        {
            "name": "span",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "x.y.Span",
                    "fields": [{"name": "of", "type": "string"}, {"name": "length", "type": "long"}],
                },
            ],
        },
        {
            "name": "subs",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Sub",
                    "fields": [{"name": "n", "type": "int"}, {"name": "u", "type": ["null", "int", "string"]}],
                },
            },
        },
    ],
}


def avro():
    """A schema of Avro; its days and milliseconds as Python has them."""
    rows = [
        {
            "at": at * 86_400_000 * 300 + 7,
            "day": None if at == 1 else ("int", at * 100),
            "color": ["RED", "GREEN"][at % 2],
            "note": None if at % 2 else ("string", f"n{at}"),
            "tags": {"a": at, "b": -at} if at else {},
            "place": {"x": at / 2, "code": ("int", at) if at else None},
            "span": None if at == 1 else ("x.y.Span", {"of": f"s{at}", "length": at}),
            "subs": [{"n": i, "u": [None, ("int", i), ("string", "s")][i % 3]} for i in range(at + 1)],
        }
        for at in range(3)
    ]
    columns = writer.shredded(AVRO, "", [[row] for row in rows])
    shown = lambda one, row: writer.shown_of_avro(one["type"], row[one["name"]], is_column=True)  # noqa: E731
    expected = [{one["name"]: shown(one, row) for one in AVRO["fields"]} for row in rows]
    start = datetime.datetime(1970, 1, 1)
    for row in expected:
        at = start + datetime.timedelta(milliseconds=row["at"])
        row["at"] = at.isoformat(timespec="milliseconds") + "Z"
        if row["day"] is not None:
            row["day"] = (start + datetime.timedelta(days=row["day"])).isoformat() + "Z"
    save("avro", columns, expected, said={"avro.schema": json.dumps(AVRO)})


def main():
    DATA.mkdir(exist_ok=True)
    types()
    nested("nested", 2)
    nested("version_1", 1)
    avro()
    empty()


if __name__ == "__main__":
    main()
