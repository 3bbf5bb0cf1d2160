"""Search indexes as the drafts of HEP001 word them, built the slow and obvious way, and the attributes that tie them to
columns."""

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from hepfs_tools.hep001 import libhdf5
from hepfs_tools.hep001.indexes import april_hashes, bloom, murmur3_x64_128
from hepfs_tools.hep001.write import april_table, boolean, july_table, token

from .sources import MISSING, NAN, link, numbered

GENERATION = 7
K, BITS = 3, 256
SEED = 0xC0FFEE
KINDS = ["CHUNK_MINMAX", "SORTED_ROWS", "BITMAP", "CHUNK_BLOOM"]

# The readings of the April text on the seeds of its two hashes.
READINGS = {
    "low_high": april_hashes,
    "low_low": lambda data: (murmur3_x64_128(data, 0)[0], murmur3_x64_128(data, 0x9E3779B9)[0]),
    "one_hash": lambda data: murmur3_x64_128(data, 0),
}


class Revision:
    """How a draft spells things: April's, the capitals between the drafts, July's."""

    def __init__(self, name, group, forward, back, values, reading="low_high"):
        self.name, self.group, self.forward, self.back, self.values = name, group, forward, back, values
        self.reading = reading
        self.is_july = back is None


APRIL = Revision("april", "_search_indexes", "_search_indexes", "_columns_list", "_values")
MAY = Revision("may", "SEARCH_INDEXES", "SEARCH_INDEX_LIST", "COLUMN_LIST", "VALUES")
JULY = Revision("july", "SEARCH_INDEXES", "SEARCH_INDEX_LIST", None, "VALUES")


class Index:
    """A search index that can still be broken before it is written."""

    def __init__(self, kind, data, attributes, values=None):
        self.kind, self.data, self.attributes, self.values = kind, data, attributes, values


def in_order(source, rows):
    """Rows that have a place in the order, in that order, and the tails: missing, NaN."""
    keys = source.keys
    placed = sorted((row for row in rows if keys[row] not in (MISSING, NAN)), key=lambda row: (keys[row], row))
    return placed, [row for row in rows if keys[row] == MISSING], [row for row in rows if keys[row] == NAN]


def minmax(source, revision):
    """A CHUNK_MINMAX index."""
    entries = []
    for chunk in source.chunks():
        placed, missing, nans = in_order(source, chunk)
        nothing = source.fill or bytes(source.dtype.itemsize)
        least, greatest = (source.stored[placed[0]], source.stored[placed[-1]]) if placed else (nothing, nothing)
        gone = len(nans) if source.nan_is_missing else len(missing)
        entries.append((least, greatest, len(nans), gone, len(chunk)))
    counts = [("nan_count", "<u8"), ("fill_count", "<u8"), ("n", "<u8")]
    data = np.array(entries, [("min", source.dtype), ("max", source.dtype), *counts])
    return Index("CHUNK_MINMAX", data, chunk_shape(source, revision))


def chunk_shape(source, revision):
    """The attribute that the April draft has."""
    return {} if revision.is_july else {"chunk_shape": np.array([source.chunk or len(source.keys)], "u8")}


def sorted_rows(source, revision):
    """A SORTED_ROWS index."""
    del revision
    placed, missing, nans = in_order(source, range(len(source.keys)))
    attributes = {
        "nan_tail_length": np.uint64(len(nans)),
        "fill_tail_length": np.uint64(len(missing)),
        "ordered": boolean(True),
    }
    return Index("SORTED_ROWS", np.array(placed + missing + nans, "<u8"), attributes)


def bitmap(source, revision):
    """A BITMAP index."""
    placed, _, _ = in_order(source, range(len(source.keys)))
    keys = list(dict.fromkeys(source.keys[row] for row in placed))
    bits = [np.packbits([known == key for known in source.keys], bitorder="little") for key in keys]
    of_key = {source.keys[row]: source.stored[row] for row in reversed(placed)}
    # No NaN can be listed: equality does not find it.
    is_all = NAN not in source.keys or source.nan_is_missing
    attributes = {"ordered": boolean(False)} | ({"exhaustive": boolean(is_all)} if revision.is_july else {})
    width = (len(source.keys) + 7) // 8
    data = np.array(bits, "u1").reshape(len(keys), width)
    return Index("BITMAP", data, attributes, np.array([of_key[key] for key in keys], source.dtype))


def chunk_bloom(source, revision, hashes=None, canonical=None):
    """A CHUNK_BLOOM index."""
    canonical = canonical or source.canonical
    known = [[canonical(row) for row in chunk] for chunk in source.chunks()]
    known = [sorted({data for data in chunk if data is not None}) for chunk in known]
    if revision.is_july:
        hashes = hashes or (lambda data: murmur3_x64_128(data, SEED))
        own = {"hash_family": token("murmur3_x64_128_double"), "seed": np.uint32(SEED)}
    else:
        hashes = hashes or READINGS[revision.reading]
        own = {"hash_family": token("murmur3_128_double")} | chunk_shape(source, revision)
    return Index("CHUNK_BLOOM", bloom(known, BITS, K, hashes), {"k": np.uint16(K), "m_bits": np.uint64(BITS)} | own)


MAKERS = {"CHUNK_MINMAX": minmax, "SORTED_ROWS": sorted_rows, "BITMAP": bitmap, "CHUNK_BLOOM": chunk_bloom}


def make(kind, source, revision):
    """A right index of a kind."""
    return MAKERS[kind](source, revision)


def typed(group, name, data, source, chunk=None):
    """Writes elements whose bytes have the column's type, here or as fields of a compound; long ones in chunks."""
    if data.dtype.fields:
        kind = h5t.create(h5t.COMPOUND, data.dtype.itemsize)
        for field, (of_field, offset) in data.dtype.fields.items():
            kind.insert(field.encode(), offset, source.type_id if of_field.kind == "V" else h5t.py_create(of_field))
    else:
        kind = source.type_id if data.dtype.kind == "V" else h5t.py_create(data.dtype)
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_obj_track_times(False)
    if data.nbytes > 10_000:
        plist.set_chunk(chunk or tuple(min(length, 1 << 16) for length in data.shape))
        plist.set_shuffle()
        plist.set_deflate(9)
    dataset = h5d.create(group.id, name.encode(), kind, h5s.create_simple(data.shape), plist)
    libhdf5.write_elements(dataset, kind, data.tobytes())
    return h5py.Dataset(dataset)


def write_index(group, name, index, source, revision, chunk=None):
    """The dataset of an index, with what accompanies it and its attributes."""
    dataset = typed(group, name, index.data, source, chunk)
    tokens = {"SOURCE_GENERATION": np.uint64(GENERATION), "SOURCE_NROWS": np.uint64(len(source.keys))}
    given = {"KIND": token(index.kind)} | (tokens if revision.is_july else {}) | index.attributes
    for key, value in given.items():
        if value is not None:
            dataset.attrs[key] = value
    if index.values is not None:
        values = typed(group, f"{name}__values", index.values, source)
        dataset.attrs.create(revision.values, values.ref, dtype=h5py.ref_dtype)
    return dataset


def start(parent, name, source, revision, reserve=0):
    """A table of a column, and the group of its indexes."""
    group = parent.create_group(name)
    rows = len(source.keys)
    if revision.is_july:
        july_table(group, rows)
        group.attrs["GENERATION"] = np.uint64(GENERATION)
    else:
        april_table(group)
    numbered(group, rows + reserve)
    return group, source.write(group, reserve=reserve), group.create_group(revision.group)


def join(column, revision, datasets):
    """The links between a column and its indexes."""
    link(column, revision.forward, *datasets)
    if revision.back:
        for dataset in datasets:
            link(dataset, revision.back, column)
