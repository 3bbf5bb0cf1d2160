"""Columns to build search indexes of: what is stored, how values are ordered, and what they hash as."""

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from hepfs_tools.hep001 import libhdf5
from hepfs_tools.hep001.types import fixed_type
from hepfs_tools.hep001.write import BOOLEAN, column, refs, strings
from hepfs_tools.selecting import truth

ROWS, CHUNK = 100, 16
FILL = 9.969209968386869e36
NULLABLE = {"low": 0, "high": 1, "MISSING": 9}
LABELS = ["electron", "muon", "", "tau, heavy"]
MISSING, NAN = "missing", "NaN"


class Source:
    """A column: its stored elements; each row's place in the order (or missing, or NaN); what is asked of it.

    `april_minmax` says whether the April draft has a CHUNK_MINMAX of such a column: it speaks of numbers.
    """

    def __init__(self, name, type_id, stored, fill, keys, asked, chunk=CHUNK, april_minmax=True, nan_is_missing=False):
        self.name, self.type_id, self.stored, self.fill, self.keys = name, type_id, stored, fill, keys
        self.asked, self.chunk, self.april_minmax = asked, chunk, april_minmax
        # Then it counts as both.
        self.nan_is_missing = nan_is_missing
        self.categories = None

    @property
    def dtype(self):
        """Of elements, as bytes."""
        return np.dtype(f"V{self.type_id.get_size()}")

    def chunks(self):
        """Rows of each chunk; a contiguous column is one."""
        length = self.chunk or max(len(self.keys), 1)
        return [range(start, min(start + length, len(self.keys))) for start in range(0, len(self.keys), length)]

    def canonical(self, row):
        """The bytes that Bloom filters hold for a row; none for what is missing and for NaN."""
        key = self.keys[row]
        if key in (MISSING, NAN):
            return None
        if isinstance(key, bytes):
            return key
        if isinstance(key, float):
            return np.array(key + 0.0, f"<f{self.type_id.get_size()}").tobytes()
        return (key % (1 << 64)).to_bytes(8, "little")[: self.type_id.get_size()]

    def write(self, group, name="v", reserve=0):
        """The column, with rows in store behind its own that hold what no index speaks of."""
        plist = h5p.create(h5p.DATASET_CREATE)
        plist.set_obj_track_times(False)
        if self.fill is not None:
            libhdf5.set_fill(plist, self.type_id, self.fill)
        if self.chunk:
            plist.set_chunk((self.chunk,))
            if len(self.keys) > 1000:
                plist.set_shuffle()
                plist.set_deflate(9)
        stored = [*self.stored, *[self.stored[0]] * reserve] if reserve else self.stored
        dataset = h5d.create(group.id, name.encode(), self.type_id, h5s.create_simple((len(stored),)), plist)
        libhdf5.write_elements(dataset, self.type_id, b"".join(stored))
        made = h5py.Dataset(dataset)
        if self.categories:
            under = group.require_group("CATEGORIES")
            made.attrs.create("CATEGORIES", strings(under, "labels", self.categories).ref, dtype=h5py.ref_dtype)
        return made


def asked_of(kind, values, missing, width=None):
    """A column as `selecting` asks it: each row is a value of its own."""
    return truth.Column("v", kind, values, missing, np.arange(len(values)), width)


def numbers(name, dtype, values, fill=None, chunk=CHUNK):
    """A column of numbers; a value of `None` is missing."""
    kind = np.dtype(dtype)
    is_float = kind.kind == "f"
    stored = np.array([fill if value is None else value for value in values], kind)
    plain = [float(value) if is_float else int(value) for value in stored]
    gone = [fill is not None and (value == fill or fill != fill and value != value) for value in plain]
    keys = [NAN if value != value else MISSING if lost else value for value, lost in zip(plain, gone)]
    asked = asked_of("float" if is_float else "integer", plain, gone, kind.itemsize)
    # A scalar of NumPy has the machine's byte order; a slice keeps the column's.
    elements = [stored[at : at + 1].tobytes() for at in range(len(stored))]
    stored_fill = None if fill is None else np.array([fill], kind).tobytes()
    return Source(name, h5t.py_create(kind), elements, stored_fill, keys, asked, chunk, nan_is_missing=fill != fill)


def codes(name, type_id, values, fill, shown, width=1, kind="text"):
    """A column of codes that stand for something: `shown` of a code, `None` where it is missing."""
    stored = [code.to_bytes(width, "little", signed=True) for code in values]
    keys = [MISSING if shown(code) is None else code for code in values]
    asked = [b"" if shown(code) is None else shown(code) for code in values]
    if kind == "boolean":
        asked = [bool(value) for value in asked]
    column = asked_of(kind, asked, [shown(code) is None for code in values])
    stored_fill = None if fill is None else fill.to_bytes(width, "little", signed=True)
    return Source(name, type_id, stored, stored_fill, keys, column, april_minmax=False)


def label_of(code):
    """The label of a category."""
    return LABELS[code].encode() if 0 <= code < len(LABELS) else None


def texts(name, values, padding, filler, fill, size=6):
    """A column of strings of fixed length."""
    keys = [MISSING if value == fill else value for value in values]
    column = asked_of("text", values, [value == fill for value in values])
    stored = [value.ljust(size, filler) for value in values]
    stored_fill = None if fill is None else fill.ljust(size, filler)
    return Source(name, fixed_type(size, padding, "utf8"), stored, stored_fill, keys, column, april_minmax=False)


def opaque(name, values, fill):
    """A column of bytes."""
    type_id = h5t.create(h5t.OPAQUE, 4)
    type_id.set_tag(b"")
    keys = [MISSING if value == fill else value for value in values]
    column = asked_of("bytes", values, [value == fill for value in values])
    return Source(name, type_id, values, fill, keys, column, april_minmax=False)


def every_type():
    """A column of each type that can have an index, 100 rows each."""
    rows = range(ROWS)
    third = range(3 * CHUNK, 4 * CHUNK)
    floats = {3: np.nan, 4: None, 5: -0.0, 6: 0.0, 7: np.inf, 8: -np.inf}
    some = [floats.get(row, np.nan if row % 10 == 3 else None if row % 9 == 4 else row * 0.375 - 5) for row in rows]
    # A chunk of which nothing has an order.
    some = [(np.nan if row % 2 else None) if row in third else value for row, value in zip(rows, some)]
    no_fill = [np.nan if value is None else value for value in some]
    words = [b"", b"a", b"ab", b"abc", "é".encode(), b"zebra", b"a b", b"50%"]
    label = codes(
        "label",
        h5t.STD_I8LE.copy(),
        [-1 if row % 7 == 2 else [0, 1, 1, 2, 3][row * row % 5] for row in rows],
        -1,
        label_of,
    )
    odd = codes("odd_label", h5t.STD_I8LE.copy(), [row * row % 5 for row in rows], -1, label_of)
    # The code 4 has no label: a value to the index, missing to who asks.
    odd.keys = [element[0] for element in odd.stored]
    label.categories = odd.categories = LABELS
    enumeration = h5t.py_create(h5py.enum_dtype(NULLABLE, "i1"), logical=True)
    names = {0: b"low", 1: b"high", 5: b"5"}
    found = [
        numbers(
            "i64",
            "<i8",
            [None if row in third or row % 13 == 5 else (row * 37 % 41) * 1000 - 20000 for row in rows],
            -(2**63) + 1,
        ),
        numbers("u8", "u1", [None if row % 11 == 3 else row * 7 % 9 + row // CHUNK * 20 for row in rows], 255),
        numbers("u64be", ">u8", [2**63 + row * 3 % 50 - (row == 20) * 2**63 for row in rows], 2**64 - 1),
        numbers("i16", "<i2", [row * 11 % 50 - 25 for row in rows]),
        numbers("f32", "<f4", some, float(np.float32(FILL))),
        numbers("f64nan", "<f8", some, np.nan),
        numbers("f16", ">f2", no_fill),
        numbers("flat", "<i4", [None if row % 17 == 0 else row * 5 % 23 for row in rows], -1, chunk=None),
        label,
        odd,
        codes("kind", enumeration, [[0, 1, 9, 5][row * row % 4 if row % 6 else 3] for row in rows], 9, names.get),
        codes(
            "flag",
            h5t.py_create(BOOLEAN, logical=True),
            [int(row % 3 == 0) for row in rows],
            None,
            lambda code: code == 1,
            kind="boolean",
        ),
        texts("word", [words[row * 3 % 8] for row in rows], 1, b"\0", b""),
        texts("spaced", [words[row * 3 % 8].rstrip(b" ") for row in rows], 2, b" ", None),
        opaque("opaque", [bytes([row % 5 * 60, 0, 0, row % 3]) for row in rows], b"\0\0\0\0"),
    ]
    return {source.name: source for source in found}


def long_column():
    """Two hundred thousand numbers, nearly in order: what skipping is for."""
    rows = np.arange(200_000)
    return numbers("long", "<i8", (rows * 10 + rows % 3 * 7).tolist(), -1, chunk=4096)


def few_values():
    """Three hundred thousand and one small numbers: in turn, in a stretch, rarely, in the last row alone."""
    rows = np.arange(300_001)
    values = rows % 3 // 2
    values[100_000:150_000:2] = 2
    values[np.random.default_rng(5).integers(0, len(rows), 40)] = 3
    values[-1] = 4
    values[::1001] = -1
    return numbers("few", "i1", values.tolist(), -1, chunk=3 << 16)


def one_value():
    """As many rows that have the only value or none."""
    rows = np.arange(300_001)
    return numbers("one", "i1", np.where(rows % 5 > rows // 1000 % 5, 7, -1).tolist(), -1, chunk=3 << 16)


def numbered(group, rows):
    """The number of each row, which queries give back."""
    options = {"compression": "gzip", "shuffle": True, "chunk": 1 << 14} if rows > 1000 else {}
    return column(group, "row", np.arange(rows), "<u4", fill=2**32 - 1, **options)


def link(obj, name, *targets):
    """An attribute of object references."""
    obj.attrs[name] = refs(*targets)
