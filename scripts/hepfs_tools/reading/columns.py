"""A column of every type of flat values: how h5py stores it, and what a reader must find.

A column is a function of (group, name, rows, random numbers) that writes the dataset and gives the expected values as
an Arrow array. These come from the NumPy array that was stored alone; nothing of hepfs takes part. Types of the
expected arrays: enumerations and categories are their texts, opaque and odd numbers bytes as stored.
"""

import struct

import h5py
import numpy as np
import pyarrow as pa
from h5py import h5d, h5p, h5s, h5t

from hepfs_tools.hep001 import libhdf5
from hepfs_tools.hep001.write import BOOLEAN, integer_type

# Storage of the columns, in turn: contiguous (None), or rows of a chunk. 10,000 divides neither a page nor a row group.
LAYOUTS = (
    None,
    {"chunk": 10_000, "gzip": True},
    {"chunk": 65_536, "gzip": True},
    {"chunk": 4096},
    {"chunk": 131_072, "gzip": True},
)
NULLS = 0.1
TEXTS = [
    "plain", "", "Grüße", "日本", 'quo"te', "com,ma", "line\nfeed", "carriage\rreturn", "\\", " padded", "NULL", "NaN",
    "null", "0", "true", "NA", "1.50", "2020-01-02", "'", "𝄞", "tab\tbed", "x" * 20,
]  # fmt: skip
BROKEN = [b"\xff\xfe", b"ok\xc3", b"\xe2\x82(", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"a\x80b", b"fine"]


def text_of(stored):
    """Stored bytes as a reader sees them."""
    return stored.split(b"\0")[0].decode("utf-8", "replace")


class Storage:
    """Where columns of one file go: hands out the layouts in turn."""

    def __init__(self):
        self.count = 0

    def next(self):
        self.count += 1
        return LAYOUTS[self.count % len(LAYOUTS)]


def store(group, name, type_id, data, storage, fill=None):
    """A column of any datatype from its stored bytes."""
    count = len(data) // type_id.get_size()
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_obj_track_times(False)
    if fill is not None:
        libhdf5.set_fill(plist, type_id, fill)
    layout = storage.next()
    space = h5s.create_simple((count,))
    if layout:
        plist.set_chunk((layout["chunk"],))
        if layout.get("gzip"):
            plist.set_shuffle()
            plist.set_deflate(1)
        space = h5s.create_simple((count,), (h5s.UNLIMITED,))
    dataset = h5d.create(group.id, name.encode(), type_id, space, plist)
    if count:
        libhdf5.write_elements(dataset, type_id, data)
    return h5py.Dataset(dataset)


def store_numpy(group, name, array, storage, dtype=None, fill=None):
    """A column from a NumPy array; `dtype` may be one that only h5py knows."""
    type_id = h5t.py_create(np.dtype(dtype or array.dtype), logical=True)
    if fill is not None:
        fill = np.array(fill, array.dtype).tobytes()
    return store(group, name, type_id, np.ascontiguousarray(array).tobytes(), storage, fill)


def store_objects(group, name, values, storage, dtype, fill=None):
    """A column of what h5py keeps as Python objects: strings, sequences, references of variable length."""
    layout = storage.next()
    options = {"chunks": (layout["chunk"],), "maxshape": (None,)} if layout else {}
    if layout and layout.get("gzip"):
        options["compression"] = 1
    dataset = group.create_dataset(name, (len(values),), dtype, fillvalue=fill, track_times=False, **options)
    if len(values):
        dataset[...] = values
    return dataset


def nulls(random, rows):
    """Which rows are missing: the first now and then, a tenth of the others."""
    return random.random(rows) < NULLS


def objects(values):
    """An object array of exactly these elements, however long each is."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


# ---------------------------------------------------------------------------------------------------------------------
# Numbers


def wider(bits):
    """The next Arrow width."""
    return next(width for width in (8, 16, 32, 64) if width >= bits)


def integers(kind, fill=None, pattern="tenth"):
    """Integers over their whole range, edges first."""

    def write(group, name, rows, random, storage):
        info = np.iinfo(kind)
        data = random.integers(info.min, info.max, rows, dtype=np.dtype(kind).newbyteorder("="), endpoint=True)
        edges = np.array([info.max, 0, info.min, 1, 7], data.dtype)
        data[: len(edges)] = edges[:rows]
        missing = None
        if fill is not None:
            data[data == fill] = 5
            missing = patterned(pattern, random, rows)
            data[missing] = fill
        store_numpy(group, name, data.astype(kind), storage, fill=fill)
        return pa.array(data, mask=missing)

    return write


def patterned(pattern, random, rows):
    """Rows that are missing, by the name of a pattern."""
    if pattern == "none":
        return np.zeros(rows, bool)
    if pattern == "all":
        return np.ones(rows, bool)
    missing = nulls(random, rows)
    if pattern == "pages":
        # Whole pages of both kinds, whatever their length.
        missing[70_000:135_000] = True
        missing[135_000:200_000] = False
    return missing


def odd_integers(size, signed, order, fill=None):
    """Integers of widths that NumPy does not know."""

    def write(group, name, rows, random, storage):
        low = -(1 << (8 * size - 1)) if signed else 0
        words = random.integers(0, 1 << (8 * size), rows, dtype="i8") + low
        missing = None
        if fill is not None:
            words[words == fill] = 5
            missing = nulls(random, rows)
            words[missing] = fill
        by_size = words.astype("<i8").view("u1").reshape(rows, 8)[:, :size]
        if order == "big":
            by_size = by_size[:, ::-1]
        given = None if fill is None else fill.to_bytes(size, order, signed=signed)
        store(group, name, integer_type(size, signed, order), by_size.tobytes(), storage, given)
        return pa.array(words.astype(f"{'i' if signed else 'u'}{wider(8 * size) // 8}"), mask=missing)

    return write


FLOAT_EDGES = [0.1, float("nan"), -0.0, float("inf"), float("-inf"), 1.0, 65504.0, 1e-7]


def floats(kind, fill=None):
    """Floats of any size, and what is special among them."""

    def write(group, name, rows, random, storage):
        native = np.dtype(kind).newbyteorder("=")
        data = (random.standard_normal(rows) * 10.0 ** random.integers(-4, 4, rows)).astype(native)
        edges = np.array(FLOAT_EDGES, native)
        at = random.integers(0, max(rows, 1), min(rows, 500))
        data[at] = edges[np.arange(len(at)) % len(edges)]
        data[: len(edges)] = edges[:rows]
        missing = None
        if fill is not None:
            data[nulls(random, rows)] = fill
            missing = np.isnan(data) if np.isnan(fill) else data == np.array(fill, native)
        store_numpy(group, name, data.astype(kind), storage, fill=fill)
        return pa.array(data.astype("f4") if native.itemsize == 2 else data, mask=missing)

    return write


def complexes(kind, fill=None):
    """h5py's complex numbers."""

    def write(group, name, rows, random, storage):
        part = np.dtype({8: "f4", 16: "f8"}[np.dtype(kind).itemsize])
        data = (random.standard_normal(rows) + 1j * random.standard_normal(rows)).astype(np.dtype(kind).newbyteorder("="))
        data[:2] = [complex(-0.0, 0.1), complex(float("nan"), float("inf"))][:rows]
        missing = None
        if fill is not None:
            missing = nulls(random, rows)
            data[missing] = fill
        store_numpy(group, name, data.astype(kind), storage, fill=None if fill is None else np.array(fill).astype(kind))
        parts = [pa.array(np.ascontiguousarray(p), pa.from_numpy_dtype(part)) for p in (data.real, data.imag)]
        return pa.StructArray.from_arrays(parts, ["re", "im"], mask=None if missing is None else pa.array(missing))

    return write


# ---------------------------------------------------------------------------------------------------------------------
# Codes


def booleans(invalid=False):
    """Booleans; those that are neither 0 nor 1 are missing."""

    def write(group, name, rows, random, storage):
        data = random.integers(0, 2, rows).astype("i1")
        if invalid:
            data[nulls(random, rows)] = 2
        store(group, name, h5t.py_create(BOOLEAN, logical=True), data.tobytes(), storage)
        return pa.array(data == 1, mask=data > 1)

    return write


def enumeration(base, names, others, fill=None):
    """An enumeration; codes without a name are numbers."""

    def write(group, name, rows, random, storage):
        pool = np.array([*names.values(), *others])
        data = random.choice(pool, rows)
        missing = None
        if fill is not None:
            data[nulls(random, rows)] = fill
            missing = data == fill
        kind = h5t.enum_create(h5t.py_create(np.dtype(base)))
        for text, code in names.items():
            libhdf5.enum_insert(kind, text, np.array(code, base).tobytes())
        given = None if fill is None else np.array(fill, base).tobytes()
        store(group, name, kind, data.astype(base).tobytes(), storage, given)
        texts = {code: text for text, code in names.items()}
        found, at = np.unique(data, return_inverse=True)
        labels = objects([texts.get(code, str(code)) for code in found.tolist()])
        return pa.array(labels[at] if rows else [], pa.string(), mask=missing)

    return write


def categories(kind, labels, fill=None, missing=None, out_of_range=False):
    """A category: codes, and a dataset of labels that other columns may share."""

    def write(group, name, rows, random, storage):
        shared = group.require_group("CATEGORIES")
        values = pa.array(labels)
        stored = f"of_{name}"
        if isinstance(labels[0], str):
            shared.create_dataset(stored, data=objects(labels), dtype=h5py.string_dtype(), track_times=False)
        else:
            kind_of_labels = "i4" if isinstance(labels[0], int) else "f4"
            shared.create_dataset(stored, data=np.array(labels, kind_of_labels), track_times=False)
            values = values.cast(pa.int32() if kind_of_labels == "i4" else pa.float32())
        codes = random.integers(0, len(labels), rows)
        if missing is not None:
            codes[nulls(random, rows)] = missing
        if out_of_range:
            codes[nulls(random, rows)] = len(labels) + 3
        stored_codes = codes.astype(kind)
        # Those past 127 turn negative in 8 bits.
        codes = stored_codes.astype("i8")
        dataset = store_numpy(group, name, stored_codes, storage, fill=fill)
        dataset.attrs.create("CATEGORIES", shared[stored].ref, dtype=h5py.ref_dtype)
        absent = (codes < 0) | (codes >= len(labels))
        if fill is not None:
            absent |= codes == fill
        return values.take(pa.array(codes, pa.int64(), mask=absent))

    return write


# ---------------------------------------------------------------------------------------------------------------------
# Strings and bytes


def chosen(pool, random, rows, first=0):
    """Elements of a pool by chance, beginning with a given one."""
    at = random.integers(0, len(pool), rows)
    at[:1] = first
    return at


def fixed_strings(pool, size, fill=None):
    """Strings of a fixed length, padded with NUL."""

    def write(group, name, rows, random, storage):
        stored = [text.encode() if isinstance(text, str) else text for text in pool]
        at = chosen(stored, random, rows)
        data = np.array(stored, f"S{size}")[at]
        missing = None
        if fill is not None:
            data[nulls(random, rows)] = fill
            missing = data == fill
        kind = h5t.py_create(np.dtype(h5py.string_dtype("utf-8", size)), logical=True)
        store(group, name, kind, data.tobytes(), storage, None if fill is None else fill.ljust(size, b"\0"))
        found, back = np.unique(data, return_inverse=True)
        texts = objects([text_of(bytes(value)) for value in found])
        return pa.array(texts[back] if rows else [], pa.string(), mask=missing)

    return write


def variable_strings(pool, fill=None):
    """Strings of any length."""

    def write(group, name, rows, random, storage):
        stored = [text.encode() if isinstance(text, str) else text for text in pool]
        texts = objects([text_of(value) for value in stored])
        at = chosen(stored, random, rows)
        missing = None
        if fill is not None:
            stored.append(fill.encode())
            at[nulls(random, rows)] = len(stored) - 1
            texts = objects([*texts, None])
            missing = np.array([value == fill.encode() for value in stored])[at]
        store_objects(group, name, objects(stored)[at], storage, h5py.string_dtype(), fill)
        return pa.array(texts[at], pa.string(), mask=missing)

    return write


def opaque(kind, fill=None, narrow=None):
    """Elements that are bytes: opaque, times, floats and integers of other kinds."""

    def write(group, name, rows, random, storage):
        size = kind().get_size()
        data = random.integers(0, 256, (rows, size), dtype="u1")
        if narrow:
            data[:, narrow:] = 0
        missing = None
        if fill is not None:
            data[nulls(random, rows)] = list(fill)
            missing = (data == np.array(list(fill), "u1")).all(axis=1)
        store(group, name, kind(), data.tobytes(), storage, fill)
        values = pa.FixedSizeBinaryArray.from_buffers(pa.binary(size), rows, [None, pa.py_buffer(data.tobytes())])
        values = values.cast(pa.binary())
        return values if missing is None else masked(values, missing)

    return write


def masked(values, missing):
    """The same with nulls."""
    return values.take(pa.array(np.arange(len(values)), mask=missing))


def opaque_type(size):
    """An opaque type with a tag."""
    kind = h5t.create(h5t.OPAQUE, size)
    kind.set_tag(b"a tag")
    return kind


def bfloat16():
    """The upper half of a float32."""
    kind = h5t.IEEE_F32LE.copy()
    kind.set_fields(15, 7, 8, 0, 7)
    kind.set_ebias(127)
    kind.set_precision(16)
    kind.set_size(2)
    return kind


def bits(kind, fill=None):
    """Bitfields are unsigned numbers."""

    def write(group, name, rows, random, storage):
        size = kind.get_size()
        native = f"u{size}"
        data = random.integers(0, np.iinfo(native).max, rows, dtype=native, endpoint=True)
        missing = None
        if fill is not None:
            data[nulls(random, rows)] = fill
            missing = data == fill
        order = "<" if kind.get_order() == h5t.ORDER_LE else ">"
        given = None if fill is None else struct.pack(f"{order}{'?BH?I???Q'[size]}", fill)
        store(group, name, kind.copy(), data.astype(f"{order}{native}").tobytes(), storage, given)
        return pa.array(data, mask=missing)

    return write


def references(with_nulls):
    """References to objects: their paths."""

    def write(group, name, rows, random, storage):
        file = group.file
        targets = [file.require_group("things"), file.require_group("things/within"), group]
        # As the HDF5 library stores them: the address of the object's header.
        stored = [struct.pack("<Q", h5py.h5o.get_info(target.id).addr) for target in targets]
        paths = [target.name for target in targets]
        at = chosen(stored, random, rows)
        if with_nulls:
            at[nulls(random, rows)] = len(stored)
            stored.append(bytes(8))
            paths.append(None)
        data = np.frombuffer(b"".join(stored), "<u8")[at]
        store(group, name, h5t.STD_REF_OBJ.copy(), data.tobytes(), storage)
        return pa.array(objects(paths)[at], pa.string())

    return write


COLORS = {"RED": -3, "GREEN": 7, 'BLUE, "sky"': 100}
FAR = {"NEAR": -300, "Ä": 7, "far": 70_000}
SITES = ["Köln", "a,b", "", "Łódź", 'q"', "plain"]


def flat_columns():
    """Name → (group of types, function that writes it)."""
    columns = {}

    def add(group, name, write):
        columns[name] = (group, write)

    for size in (1, 2, 4, 8):
        for sign in "iu":
            for order in "<>" if size > 1 else "<":
                end = "_be" if order == ">" else ""
                kind = f"{order}{sign}{size}"
                fill = int(np.iinfo(kind).max if sign == "u" else np.iinfo(kind).min + 1)
                add("integers", f"{sign}{8 * size}{end}", integers(kind))
                add("integers", f"{sign}{8 * size}{end}_null", integers(kind, fill))
    for pattern in ("none", "all", "pages"):
        add("integers", f"i32_null_{pattern}", integers("<i4", -1, pattern))
        add("integers", f"i8_null_{pattern}", integers("<i1", -1, pattern))
    add("odd integers", "i24", odd_integers(3, True, "little"))
    add("odd integers", "i24_be_null", odd_integers(3, True, "big", -5))
    add("odd integers", "u40", odd_integers(5, False, "little"))
    add("odd integers", "u56_be_null", odd_integers(7, False, "big", 3))
    for size in (2, 4, 8):
        for order in "<>":
            end = "_be" if order == ">" else ""
            kind = f"{order}f{size}"
            group = "half floats" if size == 2 else "floats"
            add(group, f"f{8 * size}{end}", floats(kind))
            add(group, f"f{8 * size}{end}_null", floats(kind, 60000.0))
            add(group, f"f{8 * size}{end}_nan", floats(kind, float("nan")))
    add("booleans", "bool", booleans())
    add("booleans", "bool_null", booleans(invalid=True))
    add("enumerations", "enum8", enumeration("<i1", COLORS, []))
    add("enumerations", "enum8_null", enumeration("<i1", COLORS, [], 7))
    add("enumerations", "enum8_unnamed", enumeration("<i1", COLORS, [5, -128]))
    add("enumerations", "enum8_unnamed_null", enumeration("<u1", {"A": 1, "B": 2}, [5, 200], 255))
    add("enumerations", "enum32", enumeration("<i4", FAR, []))
    add("enumerations", "enum32_be_null", enumeration(">i4", FAR, [], 7))
    add("enumerations", "enum32_unnamed", enumeration("<i4", FAR, [-5, 2**31 - 1]))
    add("enumerations", "enum32_unnamed_null", enumeration("<i4", FAR, [-5, 2**31 - 1], -1))
    add("categories", "category", categories("i1", SITES))
    add("categories", "category_null", categories("i1", SITES, fill=-127, missing=-127))
    add("categories", "category_minus", categories("<i2", SITES, missing=-1))
    add("categories", "category_bad", categories("u1", SITES, out_of_range=True))
    add("categories", "category_fill_label", categories("u1", SITES, fill=2))
    add("categories", "category_narrow", categories("i1", [f"name {i:03}" for i in range(200)]))
    add("categories", "category_300", categories("<u2", [f"name {i:03}" for i in range(300)], fill=9999, missing=9999))
    add("categories", "category_be", categories(">i4", SITES, missing=-1))
    add("categories", "category_integers", categories("i1", [10, -20, 30], missing=-1))
    add("categories", "category_floats", categories("i1", [0.5, 1.5, float("nan")]))
    add("strings", "fixed", fixed_strings(TEXTS, 24))
    add("strings", "fixed_null", fixed_strings(TEXTS, 24, b"n/a"))
    add("strings", "fixed_empty_null", fixed_strings(TEXTS, 24, b""))
    add("strings", "fixed_invalid", fixed_strings(BROKEN, 4))
    add("strings", "one_byte", fixed_strings(["a", "b", ""], 1))
    add("strings", "variable", variable_strings(TEXTS))
    add("strings", "variable_null", variable_strings(TEXTS, "n/a"))
    add("strings", "variable_empty_null", variable_strings(TEXTS, ""))
    add("strings", "variable_invalid", variable_strings(BROKEN))
    add("bytes", "opaque", opaque(lambda: opaque_type(5)))
    add("bytes", "opaque_null", opaque(lambda: opaque_type(2), b"\0\xff"))
    add("bytes", "i128", opaque(lambda: integer_type(16, True, "little")))
    add("bytes", "bfloat16", opaque(bfloat16))
    add("bytes", "bfloat16_null", opaque(bfloat16, b"\x80\x7f"))
    add("bytes", "time", opaque(lambda: h5t.UNIX_D32LE.copy()))
    for width in (8, 16, 32, 64):
        add("bitfields", f"bits{width}", bits(getattr(h5t, f"STD_B{width}LE")))
        add("bitfields", f"bits{width}_be_null", bits(getattr(h5t, f"STD_B{width}BE"), 3))
    add("references", "reference", references(with_nulls=False))
    add("references", "reference_null", references(with_nulls=True))
    return columns
