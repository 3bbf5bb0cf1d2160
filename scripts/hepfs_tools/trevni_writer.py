"""Writes Trevni files (Apache Avro's column files), from the description of the format alone: no other code of it.

A column is a `Column`: its name, type, whether it is an array, the column that it is a child of, and of each row of the
table the entries that it has there: one value of a plain column, a list of an array; of a child as many as its parent
has values in the row. `write` cuts each into blocks of its own.
"""

import bz2
import struct
import zlib
from dataclasses import dataclass, field

import pyarrow as pa

WIDTHS = {"fixed32": "<i", "fixed64": "<q", "float": "<f", "double": "<d"}


def varint(number):
    """Seven bits a byte, the lowest first."""
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def long(value):
    """A zigzag varint."""
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def text(value):
    """A length and the bytes."""
    data = value.encode() if isinstance(value, str) else bytes(value)
    return long(len(data)) + data


def metadata(pairs):
    """Pairs of keys and values."""
    return long(len(pairs)) + b"".join(text(key) + text(value) for key, value in pairs.items())


@dataclass
class Column:
    name: str
    type: str
    rows: list
    is_array: bool = False
    parent: str | None = None
    codec: str | None = None
    checksum: str | None = None
    has_values: bool = False
    # Rows of each block; all in one, where there is none.
    blocks: list | None = None
    # Runs of at least so many lengths are written as such.
    runs: int = 2
    # Bytes of a checksum; Apache writes them in this order.
    order: str = "big"
    more: dict = field(default_factory=dict)

    def metadata(self):
        """What the header says of it."""
        said = {"trevni.name": self.name, "trevni.type": self.type}
        if self.codec is not None:
            said["trevni.codec"] = self.codec
        if self.checksum is not None:
            said["trevni.checksum"] = self.checksum
        if self.has_values:
            said["trevni.values"] = b""
        if self.is_array:
            said["trevni.array"] = b""
        if self.parent is not None:
            said["trevni.parent"] = self.parent
        return said | self.more

    def value(self, value):
        """A value, which is no boolean."""
        match self.type:
            case "null":
                return b""
            case "int" | "long":
                return long(value)
            case "string" | "bytes":
                return text(value)
            case fixed:
                return struct.pack(WIDTHS[fixed], value)

    def values(self, values):
        """Values back to back; booleans begin and end a byte."""
        if self.type != "boolean":
            return b"".join(map(self.value, values))
        bits = sum(bool(value) << at for at, value in enumerate(values))
        return bits.to_bytes((len(values) + 7) // 8, "little")

    def first(self, rows):
        """The first value of a block, in its descriptor."""
        if self.type == "boolean":
            return bytes([bool(rows[0])])
        return self.value(rows[0])

    def entries(self, rows):
        """The entries of some rows."""
        return [entry for row in rows for entry in row] if self.parent is not None else rows

    def block(self, rows):
        """A block before the codec."""
        entries = self.entries(rows)
        if not self.is_array:
            return self.values(entries)
        out, at = [], 0
        while at < len(entries):
            length, run = len(entries[at]), 1
            while length < 2 and at + run < len(entries) and len(entries[at + run]) == length:
                run += 1
            if length < 2 and run >= max(self.runs, 2):
                out.append(long(-(2 * run - 3) if length == 0 else -(2 * run - 2)))
            else:
                run = 1
                out.append(long(length))
            out += [self.values(entry) for entry in entries[at : at + run]]
            at += run
        return b"".join(out)


def packed(codec, data):
    """Bytes behind a codec."""
    match codec:
        case "null":
            return data
        case "deflate":
            squeezer = zlib.compressobj(6, zlib.DEFLATED, -15)
            return squeezer.compress(data) + squeezer.flush()
        case "snappy":
            return pa.Codec("snappy").compress(data, asbytes=True)
        case "bzip2":
            return bz2.compress(data, 1)


def body(column, codec, checksum):
    """All blocks of a column, their descriptors before them."""
    counts = column.blocks if column.blocks is not None else [len(column.rows)] if column.rows else []
    descriptors, data, at = [], [], 0
    for count in counts:
        rows = column.rows[at : at + count]
        at += count
        block = column.block(rows)
        stored = packed(codec, block)
        first = column.first(rows) if column.has_values else b""
        descriptors.append(struct.pack("<III", count, len(block), len(stored)) + first)
        data.append(stored)
        if checksum != "null":
            data.append(zlib.crc32(block).to_bytes(4, column.order))
    assert at == len(column.rows)
    return struct.pack("<I", len(counts)) + b"".join(descriptors) + b"".join(data)


def trevni(columns, said=None, rows=None, version=2):
    """A whole file; `said` is its metadata."""
    said = said or {}
    rows = len(columns[0].rows) if rows is None else rows
    own = lambda of, key: of or said.get(key) or "null"  # noqa: E731
    bodies = [
        body(column, own(column.codec, "trevni.codec"), own(column.checksum, "trevni.checksum")) for column in columns
    ]
    header = b"Trv" + bytes([version]) + struct.pack("<QI", rows, len(columns)) + metadata(said)
    header += b"".join(metadata(column.metadata()) for column in columns)
    at, starts = len(header) + 8 * len(columns), []
    for one in bodies:
        starts.append(at)
        at += len(one)
    return header + struct.pack(f"<{len(starts)}Q", *starts) + b"".join(bodies)


@dataclass
class Field:
    """A column and those below it, for records in lists: `value` of an entry is one value, or of an array a list of
    (own value, entries of the children by name)."""

    name: str
    type: str
    is_array: bool = False
    children: list = field(default_factory=list)


def flattened(field, rows, parent=None, **settings):
    """The columns of a field, parents first; `rows` are the entries in each row."""
    entries = lambda row: row if parent is not None else [row]  # noqa: E731
    of_entry = (lambda entry: [own for own, _ in entry]) if field.is_array else lambda entry: entry
    own = [[of_entry(entry) for entry in entries(row)] for row in rows]
    own = own if parent is not None else [row[0] for row in own]
    columns = [Column(field.name, field.type, own, field.is_array, parent, **settings)]
    for child in field.children:
        below = [[values[child.name] for entry in entries(row) for _, values in entry] for row in rows]
        columns += flattened(child, below, field.name, **settings)
    return columns


def plain(value, _):
    """A value as a reader should have it; bytes are shown in hexadecimal."""
    return value.hex() if isinstance(value, bytes) else value


def shown(field, entry, plain=plain):
    """An entry as a reader should have it: records with the own value first, unless there is none to show."""
    if not field.is_array:
        return plain(entry, field.type)
    if not field.children:
        return [plain(own, field.type) for own, _ in entry]
    of_own = lambda own: {} if field.type == "null" else {field.name: plain(own, field.type)}  # noqa: E731
    return [
        of_own(own) | {child.name: shown(child, values[child.name], plain) for child in field.children}
        for own, values in entry
    ]


SIMPLE = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


def is_simple(schema):
    """Whether values of an Avro type lie in one column."""
    return schema in SIMPLE if isinstance(schema, str) else isinstance(schema, dict) and schema["type"] in (
        *SIMPLE,
        "enum",
        "fixed",
    )


def column_type(schema):
    """The type of that column."""
    name = schema if isinstance(schema, str) else schema["type"]
    return {"enum": "int", "fixed": "bytes"}.get(name, name)


def stored(schema, value):
    """A simple value in its column."""
    is_enum = isinstance(schema, dict) and schema["type"] == "enum"
    return schema["symbols"].index(value) if is_enum else value


def branch(schema):
    """The name of a branch of a union."""
    return schema if isinstance(schema, str) else schema.get("name", schema["type"])


def shredded(schema, path, rows, parent=None):
    """The columns of an Avro type; `rows` are its values in each row, of which there is one without a parent. A value
    of a union is a pair of the branch and the value, or None."""
    own = lambda rows: rows if parent is not None else [row[0] for row in rows]  # noqa: E731

    def array(path, element, lists):
        if is_simple(element):
            values = [[[stored(element, one) for one in entry] for entry in row] for row in lists]
            return [Column(path, column_type(element), own(values), True, parent)]
        nulls = [[[None] * len(entry) for entry in row] for row in lists]
        below = [[one for entry in row for one in entry] for row in lists]
        return [Column(path, "null", own(nulls), True, parent), *shredded(element, path, below, path)]

    if is_simple(schema):
        return [Column(path, column_type(schema), own([[stored(schema, one) for one in row] for row in rows]), parent=parent)]
    if isinstance(schema, list):
        columns = []
        for one in schema:
            if one != "null":
                chosen = lambda value, name=branch(one): [value[1]] if value and value[0] == name else []  # noqa: E731
                columns += array(f"{path}/{branch(one)}", one, [[chosen(value) for value in row] for row in rows])
        return columns
    match schema["type"]:
        case "record":
            return [
                column
                for field in schema["fields"]
                for column in shredded(
                    field["type"],
                    f"{path}#{field['name']}" if path else field["name"],
                    [[value[field["name"]] for value in row] for row in rows],
                    parent,
                )
            ]
        case "array":
            return array(f"{path}[]", schema["items"], rows)
        case "map":
            path += ">"
            nulls = [[[None] * len(value) for value in row] for row in rows]
            keys = [[key for value in row for key in value] for row in rows]
            values = [[one for value in row for one in value.values()] for row in rows]
            return [
                Column(path, "null", own(nulls), True, parent),
                Column(f"{path}key", "string", keys, parent=path),
                *shredded(schema["values"], f"{path}value", values, path),
            ]


def shown_of_avro(schema, value, plain=plain, is_column=False):
    """A value of an Avro type as a reader should have it."""
    if is_simple(schema):
        return plain(value, schema)
    if isinstance(schema, list):
        branches = [one for one in schema if one != "null"]
        fields = {}
        for one in branches:
            is_it = value is not None and value[0] == branch(one)
            found = shown_of_avro(one, value[1], plain) if is_it else None
            is_bare = is_simple(one) or is_column and len(branches) == 1
            fields[branch(one)] = found if is_bare else [found] * is_it
        return fields if len(branches) > 1 else fields[branch(branches[0])]
    match schema["type"]:
        case "record":
            return {one["name"]: shown_of_avro(one["type"], value[one["name"]], plain) for one in schema["fields"]}
        case "array":
            return [shown_of_avro(schema["items"], one, plain) for one in value]
        case "map":
            values = schema["values"]
            return [{"key": key, "value": shown_of_avro(values, one, plain)} for key, one in value.items()]


def alone(way, entries):
    """One column below others by itself: `way` leads to it from its root."""
    field, *rest = way
    if not rest:
        return shown(Field(field.name, field.type, field.is_array), entries)
    return [alone(rest, values[rest[0].name]) for _, values in entries]
