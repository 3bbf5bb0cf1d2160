"""A column of every type of nested values: complex, compound, array, list, sequence. As in `columns`."""

import h5py
import numpy as np
import pyarrow as pa
from h5py import h5t

from hepfs_tools.hep001.write import BOOLEAN, token

from .columns import COLORS, FAR, TEXTS, complexes, enumeration, masked, nulls, objects, store, store_numpy

KIND = h5py.enum_dtype({"A": 1, "B": 2}, "i2")
COMPOUND = np.dtype(
    {
        "names": ["count", "energy", "flag", "kind", "text", "grid", "inner"],
        "formats": ["<i4", ">f8", BOOLEAN, KIND, h5py.string_dtype("utf-8", 6), ("<i2", (2, 2)), [("x", "f4"), ("n", "u1")]],
        "offsets": [0, 8, 16, 18, 20, 28, 36],
        "itemsize": 48,
    }
)


def compounds(fill=False):
    """A compound with padding, members of many types, a compound in it."""

    def write(group, name, rows, random, storage):
        data = np.zeros(rows, COMPOUND)
        data["count"] = random.integers(-(2**31) + 9, 2**31, rows)
        data["energy"] = random.standard_normal(rows)
        data["flag"] = random.integers(0, 2, rows)
        data["kind"] = random.integers(1, 4, rows)
        pool = np.array([b"", "ü".encode(), b"a,b", b"sixsix"], "S6")
        data["text"] = pool[random.integers(0, 4, rows)]
        data["grid"] = random.integers(-99, 99, (rows, 2, 2))
        data["inner"]["x"] = random.standard_normal(rows)
        data["inner"]["n"] = random.integers(0, 256, rows)
        missing, given = None, None
        if fill:
            given = np.zeros((), COMPOUND)
            given["count"], given["kind"] = -(2**31), 1
            missing = nulls(random, rows)
            data[missing] = given
        dataset_fill = None if given is None else given.tobytes()
        kind = h5t.py_create(COMPOUND, logical=True, aligned=False)
        store(group, name, kind, data.tobytes(), storage, dataset_fill)
        texts = pa.array([text.decode() for text in pool.tolist()])
        at = np.searchsorted(np.sort(pool), data["text"])
        texts = texts.take(pa.array(np.argsort(pool)[at]))
        inner = pa.StructArray.from_arrays(
            [pa.array(np.ascontiguousarray(data["inner"][part])) for part in ("x", "n")], ["x", "n"]
        )
        parts = {
            "count": pa.array(np.ascontiguousarray(data["count"])),
            "energy": pa.array(data["energy"].astype("f8")),
            "flag": pa.array(data["flag"] == 1),
            "kind": pa.array(["A", "B", "3"]).take(pa.array(data["kind"].astype("i4") - 1)),
            "text": texts,
            "grid": lists_of(lists_of(pa.array(data["grid"].ravel()), 2), 2),
            "inner": inner,
        }
        whole = pa.StructArray.from_arrays(list(parts.values()), list(parts))
        return whole if missing is None else masked(whole, missing)

    return write


def lists_of(values, length):
    """Lists of equal length."""
    return pa.ListArray.from_arrays(pa.array(np.arange(0, len(values) + 1, length), pa.int32()), values)


def arrays(kind, shape, fill=None):
    """Elements that are arrays."""

    def write(group, name, rows, random, storage):
        native = np.dtype(kind).newbyteorder("=")
        if native.kind == "S":
            flat = np.array([b"a", b"bcd", b"", "ü".encode()], kind)[random.integers(0, 4, (rows, *shape))]
        elif native.kind == "f":
            flat = random.standard_normal((rows, *shape)).astype(native)
        else:
            flat = random.integers(-99, 100, (rows, *shape)).astype(native)
        missing, given = None, None
        if fill is not None:
            missing = nulls(random, rows)
            flat[missing] = fill
            given = np.full(shape, fill, kind).tobytes()
        store(group, name, h5t.py_create(np.dtype((kind, shape)), logical=True), flat.astype(kind).tobytes(), storage, given)
        if native.kind == "S":
            values = pa.array([text.decode() for text in flat.ravel().tolist()], pa.string())
        else:
            values = pa.array(flat.ravel())
        for length in reversed(shape):
            values = lists_of(values, length)
        return values if missing is None else masked(values, missing)

    return write


def offsets_of(sizes):
    """Where lists of these sizes begin, and where the last ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype("u8")


def level(group, name, rows, random, storage, nullable, class_name="LIST_COLUMN", longest=4):
    """The offsets and the mask of a list level: its group, Arrow offsets, the mask, the number of elements."""
    inner = group.create_group(name)
    inner.attrs["CLASS"] = token(class_name, len(class_name) + 1)
    if class_name == "LIST_COLUMN":
        inner.attrs["KIND"] = token("OFFSETS", 8)
    sizes = random.integers(0, longest + 1, rows)
    missing = None
    if nullable:
        missing = nulls(random, rows)
        sizes[missing] = 0
        store_numpy(inner, "MASK", (~missing).astype("i1"), storage, dtype=BOOLEAN)
    offsets = offsets_of(sizes)
    store_numpy(inner, "OFFSETS", offsets, storage)
    return inner, pa.array(offsets, pa.int64()).cast(pa.int32()), missing, int(offsets[-1])


def list_array(offsets, values, missing):
    """An Arrow list."""
    return pa.ListArray.from_arrays(offsets, values, mask=None if missing is None else pa.array(missing))


def lists(values, nullable=False):
    """A list column; `values` writes its elements as a column would be written."""

    def write(group, name, rows, random, storage, class_name="LIST_COLUMN"):
        inner, offsets, missing, count = level(group, name, rows, random, storage, nullable, class_name)
        return list_array(offsets, values(inner, "VALUES", count, random, storage), missing)

    return write


def numbers(kind, fill=None):
    """Elements that are numbers."""

    def write(group, name, rows, random, storage):
        data = random.integers(-1000, 1000, rows).astype(np.dtype(kind).newbyteorder("="))
        if data.dtype.kind == "f":
            data = data / np.array(8, data.dtype)
        missing = None
        if fill is not None:
            missing = nulls(random, rows)
            data[missing] = fill
            missing |= data == fill
        store_numpy(group, name, data.astype(kind), storage, fill=fill)
        return pa.array(data, mask=missing)

    return write


def characters(nullable):
    """Elements that are strings, kept as lists of bytes."""

    def write(group, name, rows, random, storage):
        inner = group.create_group(name)
        inner.attrs["CLASS"] = token("STRING_VALUES", 14)
        stored = [text.encode() for text in TEXTS]
        at = random.integers(0, len(stored), rows)
        missing = nulls(random, rows) if nullable else np.zeros(rows, bool)
        texts = [b"" if gone else stored[i] for i, gone in zip(at.tolist(), missing.tolist())]
        store_numpy(inner, "OFFSETS", offsets_of([len(text) for text in texts]), storage)
        if nullable:
            store_numpy(inner, "MASK", (~missing).astype("i1"), storage, dtype=BOOLEAN)
        store_numpy(inner, "CHARS", np.frombuffer(b"".join(texts), "u1"), storage)
        return pa.array(objects(TEXTS)[at], pa.string(), mask=missing)

    return write


def pointers(buffer, at):
    """Addresses within a NumPy array; `at` counts its elements."""
    return (buffer.ctypes.data + at.astype("u8") * buffer.itemsize).astype("u8")


def store_sequences(group, name, kind, elements, offsets, storage):
    """A column of `hvl_t` over the rows of a flat array."""
    descriptors = np.empty((len(offsets) - 1, 2), "u8")
    descriptors[:, 0] = np.diff(offsets)
    descriptors[:, 1] = pointers(elements, offsets[:-1])
    store(group, name, h5t.vlen_create(kind), descriptors.tobytes(), storage)


def sequences(kind):
    """Variable-length sequences of numbers."""

    def write(group, name, rows, random, storage):
        offsets = offsets_of(random.integers(0, 5, rows))
        data = random.integers(-1000, 1000, int(offsets[-1])).astype(np.dtype(kind).newbyteorder("="))
        store_sequences(group, name, h5t.py_create(np.dtype(kind)), data.astype(kind), offsets, storage)
        return list_array(pa.array(offsets, pa.int64()).cast(pa.int32()), pa.array(data), None)

    return write


def sequences_of_strings():
    """Variable-length sequences of variable-length strings."""

    def write(group, name, rows, random, storage):
        stored = [text.encode() + b"\0" for text in TEXTS]
        characters_of = np.frombuffer(b"".join(stored), "u1")
        starts = offsets_of([len(text) for text in stored])[:-1]
        offsets = offsets_of(random.integers(0, 4, rows))
        at = random.integers(0, len(stored), int(offsets[-1]))
        elements = pointers(characters_of, starts[at])
        kind = h5t.py_create(h5py.string_dtype(), logical=True)
        store_sequences(group, name, kind, elements, offsets, storage)
        values = pa.array(objects(TEXTS)[at], pa.string())
        return list_array(pa.array(offsets, pa.int64()).cast(pa.int32()), values, None)

    return write


def nested_columns():
    """Name → (group of types, function that writes it)."""
    columns = {}

    def add(group, name, write):
        columns[name] = (group, write)

    add("complex", "c64", complexes("<c8"))
    add("complex", "c64_null", complexes("<c8", complex(7, 7)))
    add("complex", "c128_be", complexes(">c16"))
    add("complex", "c128_null", complexes("<c16", complex(-1, -1)))
    add("compounds", "compound", compounds())
    add("compounds", "compound_null", compounds(fill=True))
    add("arrays", "array", arrays("<f4", (3,)))
    add("arrays", "array_null", arrays("<i2", (4,), -1000))
    add("arrays", "matrix_be", arrays(">i4", (2, 3)))
    add("arrays", "array_text", arrays("S3", (2,)))
    add("lists", "list", lists(numbers("<i4")))
    add("lists", "list_null", lists(numbers("<i4"), nullable=True))
    add("lists", "list_of_null", lists(numbers(">f8", -5.0), nullable=True))
    add("lists", "list_small", lists(numbers("<i1", -128)))
    add("lists", "list_text", lists(characters(nullable=False)))
    add("lists", "list_text_null", lists(characters(nullable=True), nullable=True))
    add("lists", "list_enum8", lists(enumeration("<i1", COLORS, [])))
    add("lists", "list_enum8_null", lists(enumeration("<i1", COLORS, [5, -128], 7), nullable=True))
    add("lists", "list_enum32", lists(enumeration("<i4", FAR, [-5])))
    add("lists of lists", "list_list", lists(lists(numbers("<i2"))))
    add("lists of lists", "list_list_null", lists(lists(numbers("<f4", -5.0), nullable=True), nullable=True))
    add("sequences", "sequence", sequences("<i4"))
    add("sequences", "sequence_be", sequences(">f8"))
    add("sequences", "sequence_text", sequences_of_strings())
    return columns
