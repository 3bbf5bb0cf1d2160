"""Random columns of every type that can be asked, in random storage, as HDF5 stores them and as exact values."""

import dataclasses
import math

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t, h5z

from hepfs_tools.hep001 import libhdf5
from hepfs_tools.hep001.types import fixed_type
from hepfs_tools.hep001.write import BOOLEAN, april_table, column, integer_type, july_table, refs, strings

from .truth import Column

WORDS = ["", "a", "ab", "abc", "b", "é", "a,b", "x:y", "50%", "it's", 'say "hi"', "a/b+c"]
# What is no UTF-8 is shown, and compared, as U+FFFD.
BROKEN = [b"\xff", b"ab\xc3", b"\xe2\x82b"]
PADDINGS = [(0, b"\0"), (1, b"\0"), (2, b" ")]
NULLABLE = {"FALSE": 0, "TRUE": 1, "MISSING": 2}
COLORS = {"red": 0, "green": 1, "blue, dark": 7, "12": 3}
ZSTD, LZ4 = 32015, 32004


@dataclasses.dataclass
class Stored:
    """A column as it lies in the file, for who builds search indexes of it."""

    name: str
    type_id: h5t.TypeID
    # What elements are ordered by: integers (codes), floats or bytes; and the bytes of one in the file.
    keys: list
    encode: object
    fill: object
    # Keys that are no value, whatever the fill is.
    void: tuple
    # Which of the keys stands in each row; rows of a chunk, if there are chunks.
    at: np.ndarray
    chunk: int | None


class Table:
    """A table that is being written: its rows, and those that its columns have in store behind them."""

    def __init__(self, rng, group, rows):
        self.rng, self.group, self.rows = rng, group, rows
        self.extent = rows + int(rng.integers(1, 20)) if rows and rng.random() < 0.4 else rows
        self.is_july = self.extent > rows or rng.random() < 0.5
        july_table(group, rows) if self.is_july else april_table(group)
        self.categories = None
        self.stored, self.columns = [], []

    def chance(self, share):
        """Whether something of this probability happens."""
        return self.rng.random() < share

    def one_of(self, values):
        """One of some values."""
        return values[int(self.rng.integers(0, len(values)))]

    def places(self, count):
        """Which of `count` values stands in each row: anywhere, in order, or in runs."""
        how = self.rng.random()
        if how < 0.3 and self.extent:
            runs = self.rng.integers(0, count, self.extent // 50 + 1)
            return np.repeat(runs, 50)[: self.extent]
        at = self.rng.integers(0, count, self.extent)
        return np.sort(at) if how < 0.5 else at

    def layout(self, type_id, fill):
        """How a dataset is stored: contiguous, compact or in chunks through filters."""
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_obj_track_times(False)
        if fill is not None:
            libhdf5.set_fill(plist, type_id, fill)
        if self.extent == 0 or self.chance(0.15):
            return plist
        if self.extent * type_id.get_size() < 4000 and self.chance(0.1):
            plist.set_layout(h5d.COMPACT)
            return plist
        # Few chunks where there are many rows: each takes room in the file.
        least = 1 if self.extent < 200 else self.extent // 20
        plist.set_chunk((int(self.rng.integers(least, self.extent + 1)),))
        filters = self.one_of(
            [(), ("deflate",), ("shuffle", "deflate"), ("zstd", "fletcher"), ("shuffle", "lz4"), ("zstd",)]
        )
        if self.extent > 10_000:
            filters = ("shuffle", "deflate")
        for name in filters:
            self.add_filter(plist, name)
        return plist

    def add_filter(self, plist, name):
        """Appends a filter to those of a dataset."""
        steps = {
            "deflate": lambda: plist.set_deflate(4),
            "shuffle": plist.set_shuffle,
            "fletcher": plist.set_fletcher32,
            "zstd": lambda: plist.set_filter(ZSTD, h5z.FLAG_MANDATORY, (3,)),
            "lz4": lambda: plist.set_filter(LZ4, h5z.FLAG_MANDATORY, (0,)),
        }
        steps[name]()

    def store(self, name, type_id, keys, encode, fill=None, void=()):
        """Writes a column of some keys, whose bytes `encode` knows; which of them stand in its rows."""
        at = self.places(len(keys))
        data = np.array([encode(key) for key in keys], f"V{type_id.get_size()}")[at].tobytes()
        plist = self.layout(type_id, None if fill is None else encode(fill))
        dataset = h5d.create(self.group.id, name.encode(), type_id, h5s.create_simple((self.extent,)), plist)
        libhdf5.write_elements(dataset, type_id, data)
        chunk = plist.get_chunk()[0] if plist.get_layout() == h5d.CHUNKED else None
        self.stored.append(Stored(name, type_id, keys, encode, fill, void, at[: self.rows], chunk))
        return at[: self.rows]


def integers(table, name):
    """Integers of 1 to 8 bytes, of both byte orders, some with bits to spare; bitfields."""
    rng, size, signed = table.rng, int(table.rng.integers(1, 9)), bool(table.chance(0.5))
    bits, offset = 8 * size, 0
    if table.chance(0.15) and size > 1:
        # HDF5 refuses types that a smaller power of two of bytes would hold.
        bits = int(rng.integers(8 * (1 << (size - 1).bit_length() - 1) + 1, 8 * size))
        offset = int(rng.integers(0, 8 * size - bits + 1))
    order = table.one_of(["little", "big"])
    if table.chance(0.1):
        size, signed, bits, offset, order = 2, False, 16, 0, "little"
        type_id = h5t.STD_B16LE.copy()
    else:
        type_id = integer_type(size, signed, order, bits, offset)
    least, greatest = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    pool = {least, greatest, 0, 5, 6, greatest - 1, 2**53, 2**53 + 1, -1, *(int(n) for n in rng.integers(-100, 100, 6))}
    pool = sorted(value for value in pool if least <= value <= greatest)
    fill = table.one_of(pool) if table.chance(0.6) else None

    def encode(value):
        return ((value & (1 << bits) - 1) << offset).to_bytes(size, order)

    at = table.store(name, type_id, pool, encode, fill)
    return Column(name, "integer", pool, [value == fill for value in pool], at)


def floats(table, name):
    """Floats of all widths and byte orders."""
    width = table.one_of([2, 4, 8])
    dtype = np.dtype(f"{table.one_of('<>')}f{width}")
    info = np.finfo(dtype)
    some = [
        np.nan,
        np.inf,
        -np.inf,
        0.0,
        -0.0,
        0.1,
        0.2,
        5,
        5.5,
        -5.5,
        info.max,
        -info.max,
        info.tiny,
        info.smallest_subnormal,
    ]
    with np.errstate(over="ignore"):
        pool = np.array([*some, *table.rng.normal(0, 100, 4)], dtype)
    fill = table.one_of([None, np.nan, 5.0, 0.0, -0.0, float(pool[-1])])
    values = [float(value) for value in pool]
    at = table.store(name, h5t.py_create(dtype), values, lambda value: np.array(value, dtype).tobytes(), fill)

    def is_missing(value):
        return fill is not None and (math.isnan(value) if math.isnan(fill) else value == fill)

    return Column(name, "float", values, [is_missing(value) for value in values], at, width)


def fixed_texts(table, name):
    """Strings of fixed length, of all paddings."""
    padding, filler = table.one_of(PADDINGS)
    pool = [word.encode() for word in WORDS] + BROKEN
    # The fill is held against the bytes, padding aside.
    fill = table.one_of([None, None, b"", b"ab", BROKEN[0]])
    kind = fixed_type(12, padding, table.one_of(["ascii", "utf8"]))
    at = table.store(name, kind, pool, lambda text: text.ljust(12, filler), fill)
    values = [text.decode(errors="replace").encode() for text in pool]
    return Column(name, "text", values, [text == fill for text in pool], at)


def texts(table, name):
    """Strings of variable length, or now and then of fixed."""
    if table.chance(0.5) or table.rows > 10_000:
        return fixed_texts(table, name)
    fill = table.one_of([None, "", "ab"])
    at = table.places(len(WORDS))
    options = {"chunks": (max(table.extent // 3, 1),)} if table.extent and table.chance(0.7) else {}
    strings(table.group, name, [WORDS[n] for n in at], fillvalue=fill, **options)
    return Column(name, "text", [word.encode() for word in WORDS], [word == fill for word in WORDS], at[: table.rows])


def labels(table, name):
    """Categories by code: of texts or of numbers, with codes that have none."""
    kind = table.one_of(["text", "text", "integer"])
    known = [word.encode() for word in WORDS] if kind == "text" else [3, -1, 2**40, 3]
    signed, size = table.chance(0.6), table.one_of([1, 2])
    fill = table.one_of([None, None, len(known) if signed else 255, 1])
    codes = sorted({*range(len(known) + 2), *([-1, -2] if signed else [255])})

    def encode(code):
        return code.to_bytes(size, "little", signed=signed)

    at = table.store(name, integer_type(size, signed, "little"), codes, encode, fill)
    if table.categories is None:
        table.categories = table.group.require_group("CATEGORIES")
    # The name of the column's own labels: a column may be a dictionary of numbers.
    names = name + " labels"
    made = strings(table.categories, names, WORDS) if kind == "text" else column(table.categories, names, known, "i8")
    table.group[name].attrs.create("CATEGORIES", made.ref, dtype=h5py.ref_dtype)
    is_label = [0 <= code < len(known) for code in codes]
    values = [known[code] if good else known[0] for code, good in zip(codes, is_label)]
    missing = [not good or code == fill for code, good in zip(codes, is_label)]
    return Column(name, kind, values, missing, at)


def enumeration(table, name, members, codes, fill):
    """An enumeration, compared by the names of its members."""
    base = np.dtype(table.one_of(["i1", "<i2", ">i2", "u1", "<u4", ">i8"]))
    type_id = h5t.py_create(h5py.enum_dtype(members, base), logical=True)
    at = table.store(name, type_id, codes, lambda code: np.array(code, base).tobytes(), fill)
    names = {code: member for member, code in members.items()}
    values = [names.get(code, str(code)).encode() for code in codes]
    return Column(name, "text", values, [code == fill for code in codes], at)


def colors(table, name):
    """An enumeration, some of whose codes have no name."""
    return enumeration(table, name, COLORS, [0, 1, 3, 7, 9, 12], table.one_of([None, 7, 9]))


def flags(table, name):
    """Booleans, or nullable ones."""
    if table.chance(0.3):
        return enumeration(table, name, NULLABLE, [0, 1, 2], 2)
    base = table.one_of(["i1", "u1"])
    kind = BOOLEAN if base == "i1" else h5py.enum_dtype({"FALSE": 0, "TRUE": 1}, "u1")
    at = table.store(name, h5t.py_create(kind, logical=True), [0, 1, 1, 3], lambda code: bytes([code]), void=(3,))
    return Column(name, "boolean", [False, True, True, False], [False, False, False, True], at)


def opaque(table, name):
    """Bytes, asked for in hexadecimal."""
    type_id = h5t.create(h5t.OPAQUE, 4)
    type_id.set_tag(b"tag")
    pool = [b"\0\0\0\0", b"\0\0\0\1", b"abcd", b"\xff\xff\xff\xff", b"\x80\0\0\0"]
    fill = table.one_of([None, pool[0], pool[2]])
    at = table.store(name, type_id, pool, bytes, fill)
    return Column(name, "bytes", pool, [value == fill for value in pool], at)


KINDS = {
    "i": integers,
    "i 2": integers,
    "f": floats,
    "f%2": floats,
    "text": texts,
    "label": labels,
    "color": colors,
    "flag": flags,
    "opaque": opaque,
}


def make_table(rng, file, name, rows):
    """Writes a table. Its `columns` are all but `row`, the number of each row."""
    table = Table(rng, file.create_group(name), rows)
    numbers = np.arange(table.extent)
    options = {"chunks": (max(table.extent // 7, 1),), "compression": "gzip", "shuffle": True} if table.extent else {}
    row = column(table.group, "row", numbers, "<i8", **options)
    if table.chance(0.3):
        table.group.attrs["INDEX_COLUMNS"] = refs(row)
    # In a long table few columns, for the file's sake.
    names = list(KINDS) if rows <= 10_000 else ["i", "f", "label", "flag"]
    table.columns = [KINDS[name](table, name) for name in names]
    return table
