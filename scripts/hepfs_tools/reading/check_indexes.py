#!/usr/bin/env python3
"""Holds every search index of a HEP001 table against its column, by the letter of the specification.

    check_indexes.py FILE TABLE [KIND COLUMN]...

Independent of hepfs: h5py reads, numpy computes, mmh3 hashes. Prints a line for each index that a reader may use; each
KIND and COLUMN given must be among them. An index that is wrong is an error, one that its tokens disable is not listed.
"""

import math
import sys

import h5py
import numpy as np

SPELLINGS = {
    "group": ("SEARCH_INDEXES", "_search_indexes"),
    "list": ("SEARCH_INDEX_LIST", "_search_indexes"),
    "back": ("COLUMN_LIST", "_columns_list"),
    "values": ("VALUES", "_values"),
}


def references(obj, name):
    """The objects that an attribute refers to. h5py cannot read H5T_STD_REF."""
    return [obj.file[target] for target in np.atleast_1d(obj.attrs[name])]


def any_of(attributes, key):
    return next((name for name in SPELLINGS[key] if name in attributes), None)


def column_values(column, rows):
    """Values, whether each is missing, whether each is NaN."""
    datatype = column.id.get_type()
    fill = column.fillvalue if column.id.get_create_plist().fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED else None
    if isinstance(datatype, h5py.h5t.TypeStringID):
        values = column[:rows]
        if datatype.is_variable_str():
            values = [v.encode() if isinstance(v, str) else v for v in values]
            fill = None if fill is None else (fill.encode() if isinstance(fill, str) else fill or b"")
        else:
            pad = b" " if datatype.get_strpad() == h5py.h5t.STR_SPACEPAD else b"\0"
            values = [bytes(v).rstrip(pad) for v in values]
            fill = None if fill is None else bytes(fill).rstrip(pad)
        missing = np.array([fill is not None and v == fill for v in values], bool)
        return values, missing, np.zeros(len(values), bool)
    if isinstance(datatype, h5py.h5t.TypeOpaqueID):
        values = [v.tobytes() for v in column[:rows]]
        missing = np.array([fill is not None and v == np.asarray(fill).tobytes() for v in values], bool)
        return values, missing, np.zeros(len(values), bool)
    values = np.empty(rows, column.dtype)
    if rows:
        column.read_direct(values, np.s_[:rows], np.s_[:rows])
    nan = np.isnan(values) if values.dtype.kind == "f" else np.zeros(rows, bool)
    is_boolean = isinstance(datatype, h5py.h5t.TypeEnumID) and datatype.get_nmembers() == 2
    if fill is None or is_boolean:
        missing = np.zeros(rows, bool)
    else:
        fill = np.asarray(fill, column.dtype)
        missing = np.isnan(values) if values.dtype.kind == "f" and np.isnan(fill) else values == fill
    return values, missing, nan


def canonical(value):
    if isinstance(value, bytes):
        return value
    value = np.asarray(value)
    if value.dtype.kind == "f":
        value = value + value.dtype.type(0)
    return value.astype(value.dtype.newbyteorder("<")).tobytes()


def check(condition, index, what):
    if not condition:
        raise SystemExit(f"{index.name}: {what}")


def chunk_of(column, rows):
    return column.chunks[0] if column.chunks else max(rows, 1)


def check_minmax(index, column, rows, data):
    values, missing, nan = data
    chunk = chunk_of(column, rows)
    check(index.shape == (math.ceil(rows / chunk),), index, f"shape {index.shape}")
    names = index.dtype.names
    check(names == ("min", "max", "nan_count", "fill_count", "n"), index, f"fields {names}")
    datatype = index.id.get_type()
    for field in (0, 1):
        check(datatype.get_member_type(field).equal(column.id.get_type()), index, "bounds of another type")
    entries = index[()]
    for number, entry in enumerate(entries):
        at = np.s_[number * chunk : min((number + 1) * chunk, rows)]
        usable = [v for v, m, n in zip(values[at], missing[at], nan[at]) if not m and not n]
        found = (int(entry["nan_count"]), int(entry["fill_count"]), int(entry["n"]))
        length = len(missing[at])
        check(found == (int(nan[at].sum()), int(missing[at].sum()), length), index, f"counts {found} of chunk {number}")
        bounds = [entry[name] for name in ("min", "max")]
        if isinstance(values, list):
            bounds = [b.tobytes() if isinstance(b, np.void) else b.encode() if isinstance(b, str) else bytes(b) for b in bounds]
            if not isinstance(column.id.get_type(), h5py.h5t.TypeOpaqueID):
                bounds = [b.rstrip(b"\0") for b in bounds]
        if usable:
            expected = [min(usable), max(usable)]
            check(all(b == e for b, e in zip(bounds, expected)), index, f"bounds {bounds} of chunk {number}, not {expected}")


def check_sorted(index, column, rows, data):
    values, missing, nan = data
    check(index.shape == (rows,) and index.dtype.kind == "u", index, f"{index.shape} {index.dtype}")
    check(bool(index.attrs["ordered"]), index, "not ordered")
    tail_nan = nan
    tail_fill = missing & ~nan
    plain = np.flatnonzero(~tail_nan & ~tail_fill)
    if isinstance(values, list):
        order = sorted(plain, key=lambda row: (values[row], row))
    else:
        order = plain[np.argsort(values[plain], kind="stable")]
    expected = np.concatenate([np.asarray(order, "i8"), np.flatnonzero(tail_fill), np.flatnonzero(tail_nan)])
    check(np.array_equal(index[()].astype("i8"), expected), index, "another order")
    tails = (int(index.attrs["fill_tail_length"]), int(index.attrs["nan_tail_length"]))
    check(tails == (int(tail_fill.sum()), int(tail_nan.sum())), index, f"tails {tails}")


def check_bitmap(index, column, rows, data):
    values, missing, nan = data
    (accompanying,) = references(index, any_of(index.attrs, "values"))
    check("KIND" not in accompanying.attrs, accompanying, "has a KIND")
    check(accompanying.id.get_type().equal(column.id.get_type()), accompanying, "another type")
    listed = column_values(accompanying, accompanying.shape[0])[0]
    keys = [canonical(v) for v in listed]
    check(len(set(keys)) == len(keys), accompanying, "values twice")
    check(index.shape == (len(keys), math.ceil(rows / 8)) and index.dtype == "u1", index, f"{index.shape} {index.dtype}")
    usable = ~missing & ~nan
    own = [canonical(v) for v in values]
    check(bool(index.attrs["exhaustive"]) and {v for v, u in zip(own, usable) if u} == set(keys), index, "not exhaustive")
    bits = np.unpackbits(index[()], axis=1, bitorder="little") if rows else np.zeros((0, 0))
    check(not bits[:, rows:].any(), index, "padding bits are set")
    for key, row in zip(keys, bits):
        check(np.array_equal(row[:rows].astype(bool), np.array([v == key for v in own], bool) & usable), index, f"bits of {key}")


def check_bloom(index, column, rows, data):
    import mmh3

    values, missing, nan = data
    chunk = chunk_of(column, rows)
    k, m_bits = int(index.attrs["k"]), int(index.attrs["m_bits"])
    check(index.attrs["k"].dtype == "u2" and index.attrs["m_bits"].dtype == "u8", index, "types of k and m_bits")
    check(index.shape == (math.ceil(rows / chunk), m_bits // 8) and index.dtype == "u1", index, f"{index.shape} {index.dtype}")
    family = index.attrs["hash_family"].decode()
    if family == "murmur3_x64_128_double":
        check(index.attrs["seed"].dtype == "u4", index, "type of seed")
        seed = int(index.attrs["seed"])
        halves = lambda data: mmh3.hash64(data, seed, x64arch=True, signed=False)
    else:
        check(family == "murmur3_128_double", index, family)
        halves = lambda data: (
            mmh3.hash64(data, 0, x64arch=True, signed=False)[0],
            mmh3.hash64(data, 0x9E3779B9, x64arch=True, signed=False)[1],
        )
    for number, stored in enumerate(index[()]):
        expected = np.zeros(m_bits, "u1")
        for row in range(number * chunk, min((number + 1) * chunk, rows)):
            if not missing[row] and not nan[row]:
                a, b = halves(canonical(values[row]))
                for i in range(k):
                    expected[((a + i * b) & (2**64 - 1)) % m_bits] = 1
        check(np.array_equal(np.unpackbits(stored, bitorder="little"), expected), index, f"filter of chunk {number}")


CHECKS = {"CHUNK_MINMAX": check_minmax, "SORTED_ROWS": check_sorted, "BITMAP": check_bitmap, "CHUNK_BLOOM": check_bloom}


def usable(table, index, rows):
    """Whether a reader may use the index: it has the tokens of the table (July), its back reference is there (April)."""
    if "NROWS" not in table.attrs:
        return any_of(index.attrs, "back") is not None
    tokens = ("SOURCE_GENERATION", "SOURCE_NROWS")
    if "GENERATION" not in table.attrs or any(token not in index.attrs for token in tokens):
        return False
    return (index.attrs[tokens[0]], index.attrs[tokens[1]]) == (table.attrs["GENERATION"], np.uint64(rows))


def main(path, name, *wanted):
    found = set()
    with h5py.File(path) as file:
        table = file[name]
        columns = {key: value for key, value in table.items() if isinstance(value, h5py.Dataset) and value.ndim == 1}
        rows = int(table.attrs.get("NROWS", max(len(column) for column in columns.values())))
        for name, column in columns.items():
            listed = any_of(column.attrs, "list")
            if listed is None:
                continue
            data = column_values(column, rows)
            for index in references(column, listed):
                kind = index.attrs["KIND"].decode()
                check(any(index.name.startswith(f"{table.name}/{group}/") for group in SPELLINGS["group"]), index, "elsewhere")
                if not usable(table, index, rows):
                    continue
                if "NROWS" not in table.attrs:
                    check(references(index, any_of(index.attrs, "back")) == [column], index, "refers to another column")
                CHECKS[kind](index, column, rows, data)
                check((kind, name) not in found, index, "a second one of its kind")
                found.add((kind, name))
                print(kind, name)
    missing = set(zip(wanted[::2], wanted[1::2])) - found
    if missing:
        raise SystemExit(f"not there: {missing}")


if __name__ == "__main__":
    main(*sys.argv[1:])
