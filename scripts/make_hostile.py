#!/usr/bin/env python3
"""Writes `tests/data/hostile/*`: small files that are wrong, huge, or out to hurt.

    scripts/make_hostile.py [--only NAME …]

Each has to end in a clear message or a finding, with bounded time and memory, while the rest of the file still works.
What each holds is in `tests/data/README.md`. Nothing here reads or writes outside the folder; the paths that some files
name (`/etc/passwd`) are only names.
"""

import argparse
import os
import pickle
import re
import struct
import zlib
from pathlib import Path

import h5py
import hdf5plugin  # noqa: F401  (registers zstd)
import numpy as np
from fixtures import libhdf5, oracle
from fixtures.layouts import low_level, plain_plist, virtual
from fixtures.write import (
    BOOLEAN,
    april_table,
    column,
    describe,
    july_table,
    leaf,
    list_level,
    nested,
    raw_column,
    refs,
    string_values,
    strings,
    token,
)
from h5py import h5d, h5g, h5s, h5t
from spoiling.checksums import checked, sealed

DATA = Path(__file__).resolve().parent.parent / "tests" / "data"
HOSTILE = DATA / "hostile"
GIB = 1 << 30
ZSTD = 32015


# ---------------------------------------------------------------------------------------------------------------------
# Not quite files


def seed_bytes():
    """A good file to spoil."""
    return (DATA / "seed_11_3.h5").read_bytes()


def not_hdf5(path):
    """Text under the name of an HDF5 file."""
    path.write_text("This is not an HDF5 file.\n" * 40)


def empty(path):
    """No byte at all."""
    path.write_bytes(b"")


def signature_only(path):
    """The eight bytes of the signature and no more."""
    path.write_bytes(b"\x89HDF\r\n\x1a\n")


def truncated(path):
    """The first half of a good file."""
    data = seed_bytes()
    path.write_bytes(data[: len(data) // 2])


def truncated_end(path):
    """A good file without its last byte."""
    path.write_bytes(seed_bytes()[:-1])


def truncated_superblock(path):
    """Cut inside the superblock."""
    path.write_bytes(seed_bytes()[:40])


def zeroed_middle(path):
    """A good file with a run of zeros over group and object headers."""
    data = bytearray(seed_bytes())
    data[800:3000] = bytes(2200)
    path.write_bytes(data)


def superblock_nonsense(path):
    """A superblock of a version that does not exist."""
    data = bytearray(seed_bytes())
    data[8] = 77
    path.write_bytes(data)


# ---------------------------------------------------------------------------------------------------------------------
# Tables that break the rules


def good(group):
    """A table beside the bad ones, which must go on working."""
    column(april_table(group.create_group("good")), "x", [1, 2, 3], "i4")


def version_9(file):
    """A table of major version 9, others of odd versions."""
    good(file)
    for name, version in (
        ("nine", "9.0"),
        ("two", "2.0"),
        ("text", "one"),
        ("empty", ""),
        ("long", "1.0.0.0"),
        ("huge", "99999999999999999999.0"),
        ("minor", "1.99"),
        ("negative", "-1.0"),
    ):
        table = april_table(file.create_group(name))
        table.attrs["VERSION"] = np.array(version.encode(), f"S{max(len(version), 1)}")
        column(table, "x", [1], "i4")
    number = april_table(file.create_group("number"))
    number.attrs["VERSION"] = 1.0
    del april_table(file.create_group("absent")).attrs["VERSION"]


def unequal_columns(file):
    """Columns of lengths 0, 1, 5, 5, 7, and one of rank 2, one scalar, one without dataspace."""
    table = april_table(file.create_group("t"), ["a", "b", "c", "d", "e", "matrix", "scalar", "nothing"])
    for name, rows in zip("abcde", (5, 0, 7, 5, 1)):
        column(table, name, np.arange(rows), "i4")
    table["matrix"] = np.zeros((5, 2))
    table["scalar"] = 5.0
    table["nothing"] = h5py.Empty("f4")


def bad_nrows(file):
    """NROWS that is too large, of another type, no scalar."""
    values = {
        "larger": np.uint64(10),
        "largest": np.uint64(2**64 - 1),
        "negative": np.int64(-1),
        "float": np.float64(2.0),
        "text": token("3"),
        "vector": np.array([2, 3], "u8"),
        "one_element": np.array([2], "u8"),
        "null": h5py.Empty("u8"),
        "signed": np.int32(2),
    }
    for name, value in values.items():
        table = april_table(file.create_group(name))
        table.attrs["NROWS"] = value
        column(table, "x", [1, 2, 3], "i4")


def dangling_references(file):
    """References to nothing: null, to bytes that are no object, out of the file; link attributes of wrong types."""
    good(file)
    nowhere = struct.pack("<Q", 0x7FFFFFFF0000)
    nonsense = struct.pack("<Q", 123)
    for name, target in (("null", bytes(8)), ("outside", nowhere), ("nonsense", nonsense)):
        table = april_table(file.create_group(name), ["x"], _index="not there")
        x = column(table, "x", [0, 1, 0], "i1")
        write_reference(x, "_categories", target, scalar=True)
        for attribute in ("_indexes", "_search_indexes", "SEARCH_INDEX_LIST"):
            write_reference(x, attribute, target)
        write_reference(table, "INDEX_COLUMNS", target)
    wrong = april_table(file.create_group("wrong_types"), ["x"])
    x = column(wrong, "x", [0, 1, 0], "i1")
    x.attrs["_categories"] = "label_categories"
    x.attrs["_indexes"] = np.arange(3)
    wrong.attrs["INDEX_COLUMNS"] = refs(file["good"])
    wrong.attrs["_index"] = np.float64(1)
    wrong.attrs["column-order"] = np.arange(5)


def write_reference(obj, name, data, scalar=False):
    """An attribute holding an object reference with these bytes."""
    space = h5s.create(h5s.SCALAR) if scalar else h5s.create_simple((1,))
    attribute = h5py.h5a.create(obj.id, name.encode(), h5t.STD_REF_OBJ, space)
    libhdf5.write_attribute(attribute, h5t.STD_REF_OBJ, data)


def bad_categories(file):
    """Categories of rank 2, scalar, a group, the column itself, empty; codes that are no integers."""
    good(file)
    table = april_table(file.create_group("t"))
    table["matrix"] = np.zeros((2, 2))
    table["scalar"] = 1
    group = table.create_group("a_group")
    targets = {"rank_2": table["matrix"], "scalar_": table["scalar"], "group": group}
    for name, target in targets.items():
        codes = column(table, f"of_{name}", [0, 1, 5], "i1")
        codes.attrs.create("_categories", target.ref, dtype=h5py.ref_dtype)
    own = column(table, "of_itself", [0, 1, 2], "i1")
    own.attrs.create("_categories", own.ref, dtype=h5py.ref_dtype)
    first, second = column(table, "of_second", [0, 1, 2], "i1"), column(table, "of_first", [0, 1, 2], "i1")
    first.attrs.create("_categories", second.ref, dtype=h5py.ref_dtype)
    second.attrs.create("_categories", first.ref, dtype=h5py.ref_dtype)
    names = strings(table, "names", ["a", "b"])
    for name, data in (("floats", np.zeros(3)), ("texts", np.array([b"a", b"b", b"c"]))):
        column(table, name, data).attrs.create("_categories", names.ref, dtype=h5py.ref_dtype)
    array = column(table, "of_array_reference", [0, 1, 0], "i1")
    array.attrs["_categories"] = refs(names, names)


def hard_link_cycle(file):
    """A table inside which a group leads back to the root, and lists that contain themselves."""
    table = july_table(file.create_group("t"), 2)
    column(table, "x", [1, 2], "i4")
    table.create_group("sub")["up"] = file["/"]
    inner = list_level(table, "endless", [[[1]], [[2]]], nested(leaf("i4")))
    del inner["VALUES"]
    inner["VALUES"] = inner
    table["CATEGORIES"] = table
    table["SEARCH_INDEXES"] = file["/"]


def cycle_uncounted(path):
    """Groups that lead back to themselves, to each other and to the root, each with a link count of 1."""
    with h5py.File(path, "w", libver="earliest") as file:
        inner = file.create_group("a/b")
        inner["self"] = inner
        inner["above"] = file["a"]
        inner["root"] = file["/"]
        file["a/dataset"] = np.int32(7)
        addresses = [oracle.address(group) for group in (file["/"], file["a"], inner)]
    data = bytearray(path.read_bytes())
    for address in addresses:
        assert data[address] == 1  # object headers of version 1: version, reserved, messages (2), references (4)
        data[address + 4 : address + 8] = struct.pack("<I", 1)
    path.write_bytes(data)


cycle_uncounted.takes_path = True


def root_unlistable(path):
    """A file that opens, but the symbol table node of the root group is none."""
    with h5py.File(path, "w", libver="earliest") as file:
        file["dataset"] = np.int32(7)
    data = path.read_bytes()
    assert data.count(b"SNOD") == 1
    path.write_bytes(data.replace(b"SNOD", b"NODE"))


root_unlistable.takes_path = True


def newline_name(file):
    """A column, a table and an attribute with a newline in the name."""
    table = april_table(file.create_group("two\nlines"))
    column(table, "a\nb", [1, 2], "i4").attrs["key\nwith newline"] = "value\nwith newline"


def invalid_utf8(file):
    """Names, attribute names, values, labels, enumeration members, tags and titles that are not UTF-8."""
    table = april_table(h5py.Group(h5g.create(file.id, b"caf\xe9")))
    for name in (b"\xff", b"ok\xc3", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80"):
        dataset = raw_column(table, name, h5t.STD_I32LE.copy(), struct.pack("<2i", 1, 2))
    kind = h5t.C_S1.copy()
    kind.set_size(4)
    kind.set_cset(h5t.CSET_UTF8)
    for obj in (table, dataset):
        attribute = h5py.h5a.create(obj.id, b"n\xe4me", kind, h5s.create(h5s.SCALAR))
        libhdf5.write_attribute(attribute, kind, b"\xff\xfe\xfd\xfc")
    names = raw_column(table, b"labels\xe9", kind, b"\xe9\xff\xfe\xfdgood")
    codes = column(table, "codes", [0, 1], "i1")
    codes.attrs.create("_categories", names.ref, dtype=h5py.ref_dtype)
    enum = h5t.enum_create(h5t.STD_I8LE)
    enum.enum_insert(b"\xe4\xf6", 0)
    enum.enum_insert(b"\xfc", 1)
    raw_column(table, b"enum", enum, b"\x00\x01")
    opaque = h5t.create(h5t.OPAQUE, 2)
    opaque.set_tag(b"t\xe4g")
    raw_column(table, b"opaque", opaque, b"\x00\x01\x02\x03")


def terminal_escapes(file):
    """Escape sequences in names and attributes, which must not reach a terminal."""
    name = "\x1b]0;title\x07\x1b[2J\x1b[31mred\x9b5m\u202e"
    table = april_table(file.create_group(name), TITLE=name, description="line\r\x1b[Aover")
    table.attrs[name] = name
    describe(column(table, name, [1, 2], "i4"), units=name)
    strings(table, "text", [name, "=cmd|' /C calc'!A0"])


def bad_values(file):
    """Booleans other than 0 and 1, codes without a name, categories out of range, in columns and lists."""
    table = april_table(file.create_group("t"))
    column(table, "boolean", [0, 1, 2, 255 - 256], BOOLEAN)
    column(table, "unnamed", [1, 2, 3, -1], h5py.enum_dtype({"ONE": 1, "TWO": 2}, "i1"))
    names = strings(table, "names", ["a", "b"])
    column(table, "codes", [0, 1, 2, -2], "i1").attrs.create("_categories", names.ref, dtype=h5py.ref_dtype)
    column(table, "wide", [0, 2**63, 2**64 - 1, 1], "u8").attrs.create("_categories", names.ref, dtype=h5py.ref_dtype)
    list_level(table, "flags", [[0, 2], [1], [], [-1]], leaf(BOOLEAN))
    list_level(table, "mask", [[1], None, [2], [3]], leaf("i4"), nullable=True)
    table["mask/MASK"][:] = np.array([1, 0, 7, -1], "i1")


def bad_lists(file):
    """Offsets that go back, start late, lead past VALUES, are too few, of other types; members missing or odd."""
    table = july_table(file.create_group("t"), 3)
    column(table, "x", [1, 2, 3], "i4")
    offsets = {
        "backwards": [0, 3, 1, 4],
        "starts_late": [1, 2, 3, 4],
        "past_values": [0, 1, 2, 99],
        "far": [0, 1, 2**63, 2**64 - 1],
        "too_few": [0, 1],
        "none": [],
        "wraps": [0, 2**64 - 1, 1, 2],
    }
    for name, values in offsets.items():
        level = list_level(table, name, [[1], [2], [3, 4]], leaf("i4"))
        del level["OFFSETS"]
        level["OFFSETS"] = np.array(values, "u8")
    signed = list_level(table, "signed", [[1], [2], [3]], leaf("i4"))
    del signed["OFFSETS"]
    signed["OFFSETS"] = np.array([0, -1, 2, 3], "i8")
    floats = list_level(table, "floats", [[1], [2], [3]], leaf("i4"))
    del floats["OFFSETS"]
    floats["OFFSETS"] = np.array([0, 1, 2.5, 3])
    for name, member in (("no_offsets", "OFFSETS"), ("no_values", "VALUES")):
        del list_level(table, name, [[1], [2], [3]], leaf("i4"))[member]
    matrix = list_level(table, "matrix_values", [[1], [2], [3]], leaf("i4"))
    del matrix["VALUES"]
    matrix["VALUES"] = np.zeros((3, 2))
    short_mask = list_level(table, "short_mask", [[1], [2], [3]], leaf("i4"), nullable=True)
    del short_mask["MASK"]
    short_mask.create_dataset("MASK", data=np.array([1], "i1"), dtype=BOOLEAN)
    odd_class = list_level(table, "odd_class", [["a"], ["b"], ["c"]], string_values())
    odd_class["VALUES"].attrs["CLASS"] = token("SOMETHING")
    no_kind = list_level(table, "no_kind", [[1], [2], [3]], leaf("i4"))
    del no_kind.attrs["KIND"]
    null_with_values = list_level(table, "null_with_values", [[1], [2], [3]], leaf("i4"), nullable=True)
    null_with_values["MASK"][1] = 0
    broken = list_level(table, "broken_text", [["a"], ["b"], ["cde"]], string_values())
    broken["VALUES/OFFSETS"][...] = np.array([0, 2, 1, 1000], "u8")
    variable = list_level(table, "variable_leaf", [[1], [2], [3]], leaf("i4"))
    del variable["VALUES"]
    variable["VALUES"] = ["x", "y", "z"]


def bad_indexes(file):
    """Search indexes that lie, are of wrong shapes and types, of unknown kind, one-sided, cross-linked."""
    table = april_table(file.create_group("t"), ["x", "y"])
    x, y = column(table, "x", np.arange(100), "i4", chunk=10), column(table, "y", np.arange(100), "f4", chunk=10)
    group = table.create_group("_search_indexes")
    lying = np.zeros(10, [("min", "i4"), ("max", "i4"), ("nan_count", "u8"), ("fill_count", "u8"), ("n", "u8")])
    shapes = {
        "lying": (lying, "CHUNK_MINMAX"),
        "short": (lying[:2], "CHUNK_MINMAX"),
        "no_compound": (np.arange(10), "CHUNK_MINMAX"),
        "unknown": (lying, "ZONE_MAP"),
        "rows_out_of_range": (np.full(100, 2**63, "u8"), "SORTED_ROWS"),
        "bitmap_too_small": (np.zeros((2, 1), "u1"), "BITMAP"),
        "bloom_of_nothing": (np.zeros((10, 0), "u1"), "CHUNK_BLOOM"),
    }
    for name, (data, kind) in shapes.items():
        group[name] = data
        group[name].attrs["KIND"] = token(kind)
        group[name].attrs["_columns_list"] = refs(x)
    group["no_kind"] = lying
    group.create_group("a_group")
    x.attrs["_search_indexes"] = refs(*(group[name] for name in shapes), group["no_kind"], y)
    group["lying"].attrs["_columns_list"] = refs(x, y, x)


# ---------------------------------------------------------------------------------------------------------------------
# Too much


def rows_2_62(file):
    """2^62 rows of which none was ever written: chunked and contiguous, narrow, wide and of variable length."""
    table = april_table(file.create_group("t"))
    rows = 1 << 62
    kinds = {"u1": h5t.STD_U8LE, "i8": h5t.STD_I64LE, "f8": h5t.IEEE_F64BE}
    for name, kind in kinds.items():
        plist = plain_plist(set_chunk=((1 << 16,),))
        h5d.create(table.id, name.encode(), kind, h5s.create_simple((rows,)), plist)
    text = h5t.py_create(h5py.string_dtype(), logical=True)
    h5d.create(table.id, b"text", text, h5s.create_simple((rows,)), plain_plist(set_chunk=((1 << 16,),)))
    late = plain_plist(set_alloc_time=(h5d.ALLOC_TIME_LATE,))
    h5d.create(table.id, b"contiguous_u1", h5t.STD_U8LE, h5s.create_simple((rows,)), late)
    squares = plain_plist(set_chunk=((1 << 10, 1 << 10),))
    h5d.create(file.id, b"matrix", h5t.STD_I64LE, h5s.create_simple((1 << 31, 1 << 31)), squares)
    wide = h5t.C_S1.copy()
    wide.set_size((1 << 31) - 1)
    h5d.create(file.id, b"wide_elements", wide, h5s.create_simple((1 << 31,)), late)


def zeros_deflated(size):
    """A zlib stream that inflates to this many zeros."""
    compressor = zlib.compressobj(9)
    block = bytes(1 << 20)
    return b"".join(compressor.compress(block) for _ in range(size >> 20)) + compressor.flush()


def deflate_bomb(file):
    """One chunk of 1 GiB of zeros that takes 1 MiB; a small chunk whose stream inflates to far more than it may."""
    table = april_table(file.create_group("t"))
    bomb = low_level(table, "gigabyte", None, plain_plist(set_chunk=((GIB // 8,),), set_deflate=(9,)), GIB // 8)
    stream = zeros_deflated(GIB)
    bomb.id.write_direct_chunk((0,), stream, 0)
    overlong = low_level(table, "overlong", None, plain_plist(set_chunk=((1024,),), set_deflate=(9,)), GIB // 8)
    overlong.id.write_direct_chunk((0,), zeros_deflated(64 << 20), 0)
    twice = plain_plist(set_chunk=((1024,),), set_deflate=(9,))
    twice.set_deflate(9)
    nested_bomb = low_level(table, "deflated_twice", None, twice, 1024)
    nested_bomb.id.write_direct_chunk((0,), zlib.compress(stream, 9), 0)


def zstd_bomb(file):
    """The same with zstd: one chunk of 1 GiB, and frames that hold more than the chunk, once and nested."""
    frame = zstd_zeros()
    table = april_table(file.create_group("t"))
    pipeline = {"set_chunk": ((GIB // 8,),), "set_filter": (ZSTD, 0, (3,))}
    bomb = low_level(table, "gigabyte", None, plain_plist(**pipeline), GIB // 8)
    bomb.id.write_direct_chunk((0,), frame, 0)
    small = plain_plist(set_chunk=((1024,),), set_filter=(ZSTD, 0, (3,)))
    overlong = low_level(table, "overlong", None, small, 1024)
    overlong.id.write_direct_chunk((0,), frame, 0)
    liar = low_level(table, "lying_frame_size", None, small, 1024)
    liar.id.write_direct_chunk((0,), b"\x28\xb5\x2f\xfd\xe0" + struct.pack("<Q", 1 << 62) + frame[13:], 0)


def zstd_zeros():
    """A zstd frame of 1 GiB of zeros: a chain of run-length blocks of 128 KiB each, behind a header that says so."""
    header = b"\x28\xb5\x2f\xfd" + bytes([0b1100_0000, 0x58]) + struct.pack("<Q", GIB)  # window of 2 MiB
    blocks = GIB >> 17
    run = [
        ((1 << 17) << 3 | 1 << 1 | (1 if i == blocks - 1 else 0)).to_bytes(3, "little") + b"\0" for i in range(blocks)
    ]
    return header + b"".join(run)


def columns_5000(file):
    """5,000 columns of two rows, never written."""
    table = april_table(file.create_group("t"))
    space, plist = h5s.create_simple((2,)), plain_plist(set_alloc_time=(h5d.ALLOC_TIME_LATE,))
    for i in range(5000):
        h5d.create(table.id, b"c%04d" % i, h5t.STD_I32LE, space, plist)


columns_5000.libver = "latest"


def attribute_1mb(file):
    """Large attributes: 1 MiB of numbers, 256 KiB of text, a column order of 20,000 names."""
    table = april_table(file.create_group("t"), [f"name_{i:05}" for i in range(20_000)])
    column(table, "x", [1, 2], "i4").attrs["large"] = np.zeros(1 << 20, "u1")
    table.attrs["text"] = "é" * (1 << 17)


attribute_1mb.libver = "latest"


def deep_nesting(file):
    """Groups 1,000 deep, a list 60 deep, a datatype 40 deep."""
    group = file
    for _ in range(1000):
        group = group.create_group("g")
    column(april_table(group), "bottom", [1], "i4")
    values, write = [1], leaf("i4")
    for _ in range(60):
        values, write = [values], nested(write)
    list_level(july_table(file.create_group("lists"), 1), "deep", [values], write)
    kind = h5t.STD_I32LE.copy()
    for _ in range(40):
        outer = h5t.create(h5t.COMPOUND, kind.get_size() + 1)
        outer.insert(b"inner", 0, kind)
        outer.insert(b"x", kind.get_size(), h5t.STD_I8LE)
        kind = outer
    raw_column(april_table(file.create_group("types")), "deep", kind, bytes(kind.get_size()))


deep_nesting.libver = "latest"


def huge_chunks(file):
    """Chunks just under 4 GiB, never written; a chunk of 3 GiB of which 24 bytes are stored under a deflate stream."""
    table = april_table(file.create_group("t"))
    for name, rows in (("never_written", (1 << 29) - 1), ("written", 3 << 27)):
        dataset = low_level(table, name, None, plain_plist(set_chunk=((rows,),), set_deflate=(1,)), 1 << 30)
        if name == "written":
            dataset.id.write_direct_chunk((0,), zlib.compress(bytes(24)), 0)


# ---------------------------------------------------------------------------------------------------------------------
# Other files of the host


def external_passwd(file):
    """External raw storage that names `/etc/passwd`, a relative way up, and a device."""
    good(file)
    table = april_table(file.create_group("t"))
    for i, name in enumerate((b"/etc/passwd", b"../../../../../../../../etc/passwd", b"/dev/zero", b"%s/secret")):
        plist = plain_plist(set_external=(name, 0, 64))
        h5d.create(table.id, b"bytes_%d" % i, h5t.STD_U8LE, h5s.create_simple((64,)), plist)


def external_link(file):
    """External links to another file, to a device, to this file, upwards."""
    good(file)
    targets = {
        "fixture": "../links_target.h5",
        "device": "/dev/stdin",
        "passwd": "/etc/passwd",
        "here": "external_link.h5",
    }
    table = april_table(file.create_group("t"))
    column(table, "x", [1], "i4")
    for name, target in targets.items():
        file[name] = h5py.ExternalLink(target, "/remote")
        table[name] = h5py.ExternalLink(target, "/remote/r")


def external_cycle(file):
    """External links that lead back to the group they are in, and to the root above it."""
    group = file.create_group("a/b")
    group["itself"] = h5py.ExternalLink("external_cycle.h5", "/a/b")
    group["root"] = h5py.ExternalLink("external_cycle.h5", "/")
    file["a/dataset"] = np.int32(7)


def virtual_elsewhere(file):
    """Virtual datasets over other files, themselves, each other."""
    good(file)
    table = april_table(file.create_group("t"))
    whole = (0,), (1,), (4,)
    for name, target, dataset in (
        ("fixture", "../links_target.h5", "data"),
        ("passwd", "/etc/passwd", "x"),
        ("absent", "no_such_file.h5", "x"),
        ("itself", ".", "/t/itself"),
        ("one", ".", "/t/two"),
        ("two", ".", "/t/one"),
    ):
        virtual(table, name, (4,), "<f8", [(*whole, target, dataset, (4,))])


virtual_elsewhere.libver = "latest"


# ---------------------------------------------------------------------------------------------------------------------
# Damaged storage


def corrupt_chunks(path):
    """Flipped bytes in chunks: gzip, shuffle and gzip, fletcher32, zstd, lzf; one chunk of each, the others good."""
    options = {
        "gzip": {"compression": "gzip"},
        "shuffle_gzip": {"compression": "gzip", "shuffle": True},
        "fletcher32": {"fletcher32": True},
        "gzip_fletcher32": {"compression": "gzip", "fletcher32": True},
        "zstd": {"compression": hdf5plugin.Zstd()},
        "lz4": {"compression": hdf5plugin.LZ4()},
        "lzf": {"compression": "lzf"},
    }
    with h5py.File(path, "w", libver="earliest") as file:
        table = april_table(file.create_group("t"))
        column(table, "good", np.arange(300), "i8")
        for name, option in options.items():
            column(table, name, np.arange(300) ** 2, "i8", chunk=100, **option)
        places = {name: table[name].id.get_chunk_info(1) for name in options}
    flip(path, places.pop("zstd").byte_offset, 4)  # its frames carry no checksum: flipped data could pass unnoticed
    for place in places.values():
        flip(path, place.byte_offset + place.size // 2, min(20, place.size // 4))


def flip(path, offset, count):
    """Inverts bytes of a file."""
    with open(path, "r+b") as raw:
        raw.seek(offset)
        data = raw.read(count)
        raw.seek(offset)
        raw.write(bytes(b ^ 0xFF for b in data))


corrupt_chunks.takes_path = True


def chunk_map_nonsense(path):
    """Chunk addresses and sizes, and a contiguous address, past the end of the file; chunks that overlap a header."""
    names = ("past_end", "far", "at_zero", "size_huge", "size_zero")
    with h5py.File(path, "w", libver="earliest") as file:
        table = april_table(file.create_group("t"))
        column(table, "good", np.arange(300), "i8")
        for i, name in enumerate(names):
            column(table, name, np.arange(300) + i, "i8", chunk=100, compression="gzip")
        column(table, "contiguous", np.arange(300) + 77, "i8")
        places = {name: table[name].id.get_chunk_info(1).byte_offset for name in names}
        contiguous = table["contiguous"].id.get_offset()
    end = path.stat().st_size
    replace(path, places["past_end"], end - 3)
    replace(path, places["far"], 1 << 62)
    replace(path, places["at_zero"], 0)
    replace(path, contiguous, end + (1 << 40))
    patch_chunk_size(path, places["size_huge"], 0xFFFFFFF0)
    patch_chunk_size(path, places["size_zero"], 0)


def find(path, address):
    """The one place in a file that holds this address."""
    data, wanted = path.read_bytes(), struct.pack("<Q", address)
    if data.count(wanted) != 1:
        raise AssertionError(f"{data.count(wanted)} places hold {address}")
    return data.index(wanted)


def overwrite(path, offset, data):
    """Puts bytes into a file."""
    with open(path, "r+b") as raw:
        raw.seek(offset)
        raw.write(data)


def replace(path, address, new):
    """Gives something another address."""
    overwrite(path, find(path, address), struct.pack("<Q", new))


def patch_chunk_size(path, address, size):
    """The stored size in the B-tree key before a chunk's address: size, filter mask, two coordinates, address."""
    overwrite(path, find(path, address) - 24, struct.pack("<I", size))


chunk_map_nonsense.takes_path = True


def chunk_keys(data, node, rank=1):
    """Places of the keys of a node of a version 1 B-tree of chunks, the one behind the last child left out."""
    used = struct.unpack_from("<H", data, node + 6)[0]
    return [node + 24 + i * (8 + 8 * (rank + 1) + 8) for i in range(used)]


def leaves(data):
    """Nodes of B-trees of chunks that lie lowest, in their order."""
    at, found = data.find(b"TREE\x01\x00"), []
    while at >= 0:
        found.append(at)
        at = data.find(b"TREE\x01\x00", at + 1)
    return found


def chunk_index_damaged(path):
    """Columns of 40 numbers in chunks of 4, most of them deflated, whose chunk index lies: a position twice (so one is
    lost), a place out of order, a size of 0, a place past the end; and an array whose tree leads twice to a leaf."""
    names = ("sound", "twice", "twice_plain", "astray", "nothing", "nothing_plain", "beyond", "circle")
    with h5py.File(path, "w", libver="earliest") as file:
        table = april_table(file.create_group("t"))
        for name in names[:-1]:
            options = {} if name.endswith("plain") else {"compression": "gzip"}
            column(table, name, np.arange(1, 41, dtype="i4"), chunks=(4,), **options)
        file.create_dataset("circle", data=np.arange(1, 401, dtype="i4"), chunks=(4,), compression="gzip")
        datasets = {name: file[name] if name == "circle" else table[name] for name in names}
        first = {name: dataset.id.get_chunk_info(0).byte_offset for name, dataset in datasets.items()}
    data = path.read_bytes()
    nodes = {}
    for node in leaves(data):
        address = struct.unpack_from("<Q", data, chunk_keys(data, node)[0] + 24)[0]
        nodes.update({name: node for name in names if first[name] == address})
    keys = {name: chunk_keys(data, node) for name, node in nodes.items()}
    # A key is: size, mask, first element, zero; then the address.
    for name in ("twice", "twice_plain"):
        overwrite(path, keys[name][3] + 8, struct.pack("<Q", 2 * 4))
    overwrite(path, keys["astray"][3] + 8, struct.pack("<Q", 1000 * 4))
    for name in ("nothing", "nothing_plain"):
        overwrite(path, keys[name][3], struct.pack("<I", 0))
    overwrite(path, keys["beyond"][3] + 24, struct.pack("<Q", 1 << 40))
    # The second child of the root is the first leaf once more.
    place = data.index(struct.pack("<Q", nodes["circle"]), data.index(b"TREE\x01\x01"))
    overwrite(path, place + 32, struct.pack("<Q", nodes["circle"]))


chunk_index_damaged.takes_path = True


def chunk_keys_contradict(path):
    """A tree of chunks whose last key is zero: it lists the last chunk, and a search for that finds none. h5py reads it
    as if it was never written."""
    with h5py.File(path, "w", libver="earliest") as file:
        column(april_table(file.create_group("t")), "x", np.arange(1, 41, dtype="i4"), chunks=(4,))
    data = path.read_bytes()
    (node,) = leaves(data)
    keys = chunk_keys(data, node)
    overwrite(path, 2 * keys[-1] - keys[-2], bytes(24))
    with h5py.File(path, "r") as file:
        assert list(file["t/x"][:]) == [*range(1, 37), 0, 0, 0, 0]


chunk_keys_contradict.takes_path = True


class Indexes:
    """The chunk indexes of HDF5 1.10 in a file: entries are an address, where chunks are filtered a size and a mask, and
    in trees the place in the grid. Their checksums are made right again."""

    def __init__(self, path, datasets):
        self.path, self.data = path, bytearray(path.read_bytes())
        self.spans = checked(bytes(self.data), most=1000, longest=2100)
        self.entries = {}
        for name, chunks in datasets.items():
            places = self.entries[name] = []
            for address in chunks:
                # A place in a grid may look like an address: an entry follows on the two before it.
                before = places[-2:] if len(places) > 1 else [0, 0]
                places.append(self.place(address, 2 * before[1] - before[0]))

    def place(self, address, expected=0):
        """The one place in a structure that holds this address, beside those that tell of the structure they are in."""
        wanted, found = struct.pack("<Q", address), []
        for start, end in self.spans:
            at = self.data.find(wanted, start + 6, end)
            is_header = self.data[start : start + 4] in (b"FADB", b"EAIB", b"EADB", b"EASB") and at == start + 6
            if at >= 0 and not is_header:
                found.append(at)
        if expected and bytes(self.data[expected : expected + 8]) == wanted:
            return expected
        if len(found) != 1:
            raise AssertionError(f"{len(found)} places hold {address}")
        return found[0]

    def patch(self, place, layout, *values):
        """Puts numbers into the file."""
        struct.pack_into(layout, self.data, place, *values)

    def address(self, name, chunk, new):
        """Gives a chunk another address."""
        self.patch(self.entries[name][chunk], "<Q", new)

    def copy(self, name, chunk, other):
        """A chunk's entry is that of another one."""
        here, there, length = self.entries[name][chunk], self.entries[name][other], self.length(name)
        self.data[here : here + length] = self.data[there : there + length]

    def length(self, name):
        """Length of an entry."""
        return self.entries[name][-1] - self.entries[name][-2]

    def no_size(self, name, chunk):
        """A filtered chunk that takes no byte: between address and mask."""
        width = self.length(name) - 12 - (16 if name.startswith("tree") else 0)
        self.data[self.entries[name][chunk] + 8 : self.entries[name][chunk] + 8 + width] = bytes(width)

    def holder(self, name, chunk):
        """Where the structure begins that has a chunk's entry."""
        return max(start for start, _ in self.spans if start < self.entries[name][chunk])

    def write(self):
        self.path.write_bytes(sealed(self.data, self.spans))


def chunk_index_latest(path):
    """Columns and arrays of 40 numbers in chunks of 4 (those of nodes: 400) whose chunk index is of HDF5 1.10 and lies:
    fixed arrays, extensible arrays, trees of version 2 with a place twice, a size of 0, an address past the end, nodes
    past the end, that come twice, that lead to themselves. All checksums are right but that of a page."""
    common = ("sound", "twice", "twice_plain", "nothing", "beyond", "beyond_plain", "nowhere")
    damage = {
        "fixed": (*common, "claims"),
        "growing": (*common, "same"),
        "tree": (*common, "astray", "claims", "same", "itself"),
    }
    with h5py.File(path, "w", libver=("v110", "v110")) as file:
        table = april_table(file.create_group("t"))
        datasets = {}
        for kind, name in ((kind, f"{kind}_{what}") for kind in damage for what in damage[kind]):
            data = np.arange(1, 401 if name.endswith(("same", "itself")) else 41, dtype="i4")
            options = {} if name.endswith("plain") else {"compression": "gzip"}
            if kind == "tree":
                data, options = data.reshape(-1, 1), options | {"chunks": (4, 1), "maxshape": (None, None)}
            else:
                options |= {"chunks": (4,), "maxshape": (None,) if kind == "growing" else None}
            group = file if kind == "tree" or len(data) > 40 else table
            datasets[name] = group.create_dataset(name, data=data, **options)
        pages = {"data": (np.arange(1100) % 100).astype("i1"), "chunks": (1,)}
        last = file.create_dataset("fixed_page", **pages).id.get_chunk_info(1099).byte_offset
        chunks = {name: [info.byte_offset for info in stored_chunks(dataset)] for name, dataset in datasets.items()}
    indexes = Indexes(path, chunks)
    for kind in damage:
        for name in (f"{kind}_twice", f"{kind}_twice_plain"):
            # A tree lists positions, and has one twice; an array has an address for each.
            indexes.copy(name, 3, 2)
        indexes.no_size(f"{kind}_nothing", 3)
        for name in (f"{kind}_beyond", f"{kind}_beyond_plain"):
            indexes.address(name, 3, 1 << 40)
        # What leads to a block or leaf: the header, of the array that grows the index block.
        indexes.patch(indexes.place(indexes.holder(f"{kind}_nowhere", 9)), "<Q", 1 << 30)
    # A record of a tree ends with two places in the grid.
    indexes.patch(indexes.entries["tree_astray"][3] + indexes.length("tree_astray") - 16, "<Q", 1000)
    # Before the address of its block a fixed array says how many entries there are, a tree behind that of its root.
    indexes.patch(indexes.place(indexes.holder("fixed_claims", 0)) - 8, "<Q", 1 << 40)
    indexes.patch(indexes.place(indexes.holder("tree_claims", 0)) + 8, "<H", 60)
    # The second block of an array is the first one once more, the second leaf of a tree the first, or the root.
    blocks = sorted({indexes.holder("growing_same", chunk) for chunk in range(4, 100)})
    indexes.patch(indexes.place(blocks[1]), "<Q", blocks[0])
    for name in ("tree_same", "tree_itself"):
        first, second = indexes.holder(name, 0), indexes.holder(name, 99)
        place = indexes.place(second)
        root = max(start for start, _ in indexes.spans if start < place)
        indexes.patch(place, "<Q", first if name == "tree_same" else root)
    # The second page has a checksum of its own, which is not made right.
    indexes.patch(indexes.data.index(struct.pack("<QQ", last - 1, last)), "<Q", 0)
    indexes.write()


def stored_chunks(dataset):
    """Where the chunks of a dataset lie."""
    return [dataset.id.get_chunk_info(chunk) for chunk in range(dataset.id.get_num_chunks())]


chunk_index_latest.takes_path = True


def vlen_nowhere(path):
    """Descriptors of variable-length data that lead past the end, into nonsense, to no object, or claim 4 GiB."""
    with h5py.File(path, "w", libver="earliest") as file:
        table = april_table(file.create_group("t"))
        strings(table, "text", [f"value {i}" for i in range(8)])
        sequences = table.create_dataset("sequences", (8,), h5py.vlen_dtype("<i4"))
        for i in range(8):
            sequences[i] = np.arange(i + 1)
        places = {name: table[name].id.get_offset() for name in ("text", "sequences")}
    end = path.stat().st_size
    for place in places.values():
        length, address, index = struct.unpack("<IQI", path.read_bytes()[place : place + 16])
        bad = [
            (length, end + 100, index),
            (length, (1 << 64) - 1, index),
            (length, 8, index),
            (length, address, 9999),
            (0xFFFFFFFF, address, index),
            (length, 0, 0),
            (0, address, index),
        ]
        for i, descriptor in enumerate(bad):
            overwrite(path, place + 16 * i, struct.pack("<IQI", *descriptor))


vlen_nowhere.takes_path = True


def heap_loop(path):
    """A global heap collection with an object of size 0, on which a careless reader stands still, and one too long."""
    with h5py.File(path, "w", libver="earliest") as file:
        table = april_table(file.create_group("t"))
        strings(table, "text", [f"value {i}" for i in range(8)])
    data = path.read_bytes()
    heap = data.index(b"GCOL")
    first = heap + 16
    overwrite(path, first + 8, struct.pack("<Q", 0))
    overwrite(path, first + 16, bytes(8))
    overwrite(path, heap + 8, struct.pack("<Q", 1 << 50))


heap_loop.takes_path = True


def attribute_loop(path):
    """Two groups with a dataset each, at an attribute of which libhdf5 stands still: its text lies in a damaged heap.
    That of a third lies in another one."""
    with h5py.File(path, "w", libver="latest") as file:
        for name in ("first", "second", "third"):
            table = file.create_dataset(f"{name}/t", data=np.zeros(5, [("row", "i4"), ("x", "f8")]))
            table.attrs["CLASS"] = "TABLE" if name != "third" else "x" * 5000
            table.attrs["number"] = 7
    data = path.read_bytes()
    heap = data.index(b"GCOL")
    # The length of the first object of the collection: 5 bytes are 4 * 256 more.
    overwrite(path, heap + 16 + 9, b"\x04")


attribute_loop.takes_path = True


def broken_references(path):
    """References that lead nowhere, each among good ones in a compound, and 400 rows of random bytes.

    In row 0 and in the last all are good, in row 1 null; then one of three is broken in each row: see the list.
    """
    rows = 416
    with h5py.File(path, "w", libver=("v112", "latest")) as file:
        image = file.create_dataset("image", data=np.arange(60, dtype="u2").reshape(6, 10))
        image.attrs["units"] = "counts"
        table = april_table(file.create_group("t"))
        standard = h5t.TypeID(libhdf5.std_ref_type().value).copy()
        models = file.create_group("models")
        region = models.create_dataset(
            "region", data=[image.regionref[1 : 3 + i, 2:5] for i in range(4)], dtype=h5py.regionref_dtype
        )
        attribute = raw_column(models, "standard", standard, libhdf5.std_attribute_reference(file.id, "/image", "units"))
        kind = h5t.create(h5t.COMPOUND, 4 + 8 + 12 + libhdf5.STD_REF_SIZE)
        for name, offset, part in (
            (b"n", 0, h5t.STD_I32LE),
            (b"object", 4, h5t.STD_REF_OBJ),
            (b"region", 12, h5t.STD_REF_DSETREG),
            (b"standard", 24, standard),
        ):
            kind.insert(name, offset, part)
        early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        early.set_alloc_time(h5d.ALLOC_TIME_EARLY)
        early.set_fill_time(h5d.FILL_TIME_ALLOC)
        compound = h5d.create(table.id, b"compound", kind, h5s.create_simple((rows,)), early)
        sequence = table.create_dataset("sequence", (rows,), h5py.vlen_dtype(h5py.ref_dtype))
        marker = 0x1122334455667788
        sequence[0] = np.array([image.ref] * 3, h5py.ref_dtype)
        places = [compound.get_offset(), region.id.get_offset(), attribute.id.get_offset()]
        good_object = struct.pack("<Q", h5py.h5o.get_info(image.id).addr)
    data = path.read_bytes()
    good_regions = [data[places[1] + 12 * i :][:12] for i in range(4)]
    good_region, good_standard = good_regions[0], data[places[2] :][:18]
    heap, index = struct.unpack("<QI", good_region)
    descriptor = good_standard[2:]
    bad = [
        {"object": struct.pack("<Q", 123)},
        {"object": struct.pack("<Q", (1 << 64) - 1)},
        {"object": struct.pack("<Q", heap)},
        {"region": struct.pack("<QI", (1 << 64) - 9, 1)},
        {"region": struct.pack("<QI", heap, 9999)},
        {"region": struct.pack("<QI", 8, 1)},
        {"region": good_regions[1]},
        {"region": good_regions[2]},
        {"region": good_regions[3]},
        {"standard": b"\x09\x00" + descriptor},
        {"standard": b"\x04\x01" + descriptor},
        {"standard": b"\x04\x00" + b"\xff\xff\xff\xff" + descriptor[4:]},
        {"standard": b"\x02\x00" + b"\xc8" * 16},
    ]
    numbers = np.random.default_rng(5)
    for row in range(rows):
        if row == 1:
            parts = {"object": bytes(8), "region": bytes(12), "standard": bytes(18)}
        elif 15 <= row < rows - 1:
            parts = {"object": numbers.bytes(8), "region": numbers.bytes(12), "standard": numbers.bytes(18)}
        else:
            parts = {"object": good_object, "region": good_region, "standard": good_standard}
            parts |= bad[row - 2] if 2 <= row < 15 else {}
        data = struct.pack("<i", row) + parts["object"] + parts["region"] + parts["standard"]
        overwrite(path, places[0] + len(data) * row, data)
    # An unknown version, an unknown kind, more dimensions than there are.
    overwrite(path, heap_object(path, good_regions[1]) + 12, struct.pack("<I", 99))
    overwrite(path, heap_object(path, good_regions[2]) + 8, struct.pack("<I", 77))
    overwrite(path, heap_object(path, good_regions[3]) + 18, struct.pack("<I", 33))
    # Of three references in the sequence, the second to nowhere.
    data = path.read_bytes()
    overwrite(path, data.index(good_object * 3) + 8, struct.pack("<Q", marker))


def heap_object(path, reference):
    """Where the data of an object of the global heap begin."""
    data = path.read_bytes()
    address, wanted = struct.unpack("<QI", reference)
    at = address + 16
    while True:
        index, _, _, length = struct.unpack("<HHIQ", data[at : at + 16])
        if index == wanted:
            return at + 16
        at += 16 + (length + 7) // 8 * 8


broken_references.takes_path = True


def bad_compounds(path):
    """Fields beyond their element, on one another, of one name and of none; elements of 4 GiB."""
    kinds = ("beyond", "far", "overlap", "twice", "nameless")
    with h5py.File(path, "w", libver="earliest") as file:
        for kind in kinds:
            data = np.zeros(3, [(f"{kind}_1", "<i4"), (f"{kind}_2", "<i4")])
            data[f"{kind}_1"], data[f"{kind}_2"] = [1, 2, 3], [10, 20, 30]
            file.create_dataset(kind, data=data)
        wide = h5t.create(h5t.COMPOUND, 0xFFFF_FFF0)
        text = h5t.C_S1.copy()
        text.set_size(1 << 31)
        for name, offset, field in (("a", 8, h5t.STD_I32LE), ("text", 16, text), ("b", 0xFFFF_FFEC, h5t.STD_I32LE)):
            wide.insert(name.encode(), offset, field)
        h5d.create(file.id, b"wide", wide, h5s.create_simple((1000,)))
    content = path.read_bytes()
    # A field is its name, filled up to a multiple of 8 with NULs, and its offset.
    place = lambda name: name.ljust(len(name) // 8 * 8 + 8, b"\0")  # noqa: E731
    for name, offset in ((b"beyond_2", 5), (b"far_2", 0xFFFF_FFFF), (b"overlap_2", 2)):
        assert content.count(place(name)) == 1
        start = content.index(place(name)) + len(place(name))
        content = content[:start] + struct.pack("<I", offset) + content[start + 4 :]
    content = content.replace(place(b"twice_2"), place(b"twice_1")).replace(place(b"nameless_2"), bytes(16))
    path.write_bytes(content)


bad_compounds.takes_path = True


def fields_3000(file):
    """As many fields as an object header has room for."""
    file.create_dataset("many", data=np.ones(2, [(f"f{at}", "u1") for at in range(3000)]))


fields_3000.libver = "latest"


def bad_frames(file):
    """Groups that say they are of pandas: without anything in them, with pickles of something else, of 2^40 columns."""
    pickled = lambda text: np.array(text, f"S{len(text)}")  # noqa: E731

    def group(name, kind, **attributes):
        made = file.create_group(name)
        made.attrs["pandas_type"] = kind
        for key, value in attributes.items():
            made.attrs[key] = value
        return made

    def objects(where, name, content):
        values = where.create_dataset(name, (1,), h5py.vlen_dtype("u1"))
        values[0] = np.frombuffer(content, "u1")
        values.attrs["PSEUDOATOM"] = "object"

    for kind in ("frame_table", "series_table", "frame", "series"):
        group(f"nothing_{kind}", kind)
    half = group("half", "frame", nblocks=10**9, axis0_variety="regular", axis1_variety="regular")
    half["axis0"] = np.array([b"a", b"b", b"c"])
    half["axis1"] = np.arange(3)
    half["block0_items"] = np.array([b"a"])
    half["block0_values"] = np.arange(3.0).reshape(3, 1)
    half["block1_items"] = np.array([b"b"])
    half["block1_values"] = np.arange(5.0).reshape(5, 1)
    half["block2_items"] = np.array([b"c"])
    calls = b"\x80\x04cos\nsystem\n(S'touch /tmp/hepfs-was-here'\ntR."
    objects(half, "block2_values", calls)
    wide = group("wide", "frame", nblocks=1)
    wide["axis1"] = np.arange(1)
    wide.create_dataset("block0_values", (1, 1 << 40), "<f8", chunks=(1, 1 << 10), maxshape=(None, 1 << 40))
    levels = group("levels", "frame", axis1_variety="multi", axis1_nlevels=2**31 - 1, nblocks=0)
    levels["axis1_level0"] = np.arange(3)
    levels["axis1_label0"] = np.array([0, 1, 9])
    rows = np.zeros(2, [("index", "<i8"), ("values_block_0", "<f8", (2,)), ("x", "<i4")])
    loop = {"non_index_axes": b"(lp0\ng0\na.", "values_cols": b"(lp0\nVx\na(lp1\nag1\na.", "info": b"cos\nsystem\n."}
    loops = group("loops", "frame_table", **{key: pickled(value) for key, value in loop.items()}, levels=pickled(b"("))
    loops["table"] = rows
    loops["table"].attrs["values_block_0_kind"] = pickled(b"(lp0\nI1\na.")
    loops["table"].attrs["x_meta"] = "category"


def bad_pickles(file):
    """A frame of Python objects whose pickles claim, share, nest, loop and call; the last column is right."""

    class Made:
        """Pickled as a NumPy array of objects with this shape and these values, whatever they are."""

        def __init__(self, shape, values):
            self.state = (1, shape, np.dtype("O"), False, values)

        def __reduce__(self):
            return np.array([], object).__reduce__()[:2] + (self.state,)

    class Caller:
        """What would run a program, if anything did."""

        def __reduce__(self):
            return os.system, ("touch /tmp/hepfs-was-here",)

    rows, text = 3000, "long " * 200_000
    looped = []
    looped.append(looped)
    marked = pickle.dumps(Made((3,), ["MARKER"]), 2)
    marker = re.search(rb"X\x06\x00\x00\x00MARKER(q.)?", marked)[0]
    blocks = {
        "many": pickle.dumps(Made((1 << 40,), ["a"]), 2),
        "terabyte": marked.replace(marker, b"\x8d" + struct.pack("<Q", 1 << 40) + b"text"),
        "nested": marked.replace(marker, b"]" * 100_000 + b"a" * 99_999),
        "looped": pickle.dumps(Made((1,), looped), 2),
        "caller": pickle.dumps(Made((rows,), [Caller(), "b", None] * (rows // 3)), 2),
        "shared": pickle.dumps(Made((rows,), [text] * rows), 2),
        "right": pickle.dumps(Made((rows,), ["a", "b", None] * (rows // 3)), 2),
    }
    frame = file.create_group("frame")
    frame.attrs.update({"pandas_type": "frame", "nblocks": len(blocks), "axis0_variety": "regular"})
    frame["axis0"] = np.array([name.encode() for name in blocks])
    frame["axis1"] = np.arange(rows)
    for at, (name, content) in enumerate(blocks.items()):
        frame[f"block{at}_items"] = np.array([name.encode()])
        values = frame.create_dataset(f"block{at}_values", (1,), h5py.vlen_dtype("u1"))
        values[0] = np.frombuffer(content, "u1")
        values.attrs["PSEUDOATOM"] = "object"


def many_pickles(file):
    """A frame of eight pickles, each of which takes a third of a megabyte: half of that itself, half places in it."""
    rows, count = 20_000, 8
    frame = file.create_group("frame")
    frame.attrs.update({"pandas_type": "frame", "nblocks": count, "axis0_variety": "regular"})
    frame["axis0"] = np.array([f"c{at}".encode() for at in range(count)])
    frame["axis1"] = np.arange(rows)
    for at in range(count):
        frame[f"block{at}_items"] = np.array([f"c{at}".encode()])
        values = frame.create_dataset(f"block{at}_values", (1,), h5py.vlen_dtype("u1"))
        values[0] = np.frombuffer(pickle.dumps(np.array([at / 2] * rows, object), 4), "u1")
        values.attrs["PSEUDOATOM"] = "object"


def bad_anndata(file):
    """Data frames and sparse matrices that contradict themselves, labels that lead to themselves."""
    text = h5py.string_dtype()

    def frame(name, order, **attributes):
        made = file.create_group(name)
        made.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "index"} | attributes)
        if order is not None:
            made.attrs["column-order"] = np.array(order, object) if order else np.zeros(0)
        made.create_dataset("index", data=["r1", "r2", "r3"], dtype=text)
        return made

    def element(where, name, kind, **members):
        made = where.create_group(name)
        made.attrs["encoding-type"] = kind
        for key, values in members.items():
            made[key] = values

    odd = frame("odd", ["good", "long", "flat", "gone", "..", "a/b", "strange", "good"])
    odd["good"] = np.array([1, 2, 3])
    odd["long"] = np.arange(5)
    odd["flat"] = np.ones((3, 2))
    h5d.create(odd.id, b"..", h5t.STD_I32LE, h5s.create_simple((3,)))
    odd["a/b"] = np.array([0.5, 1.5, 2.5])
    element(odd, "strange", "awkward-array", data=np.arange(3))
    odd["unlisted"] = np.array([7, 8, 9])
    parts = frame("parts", ["short_mask", "integer_mask", "far", "of_codes", "no_codes", "own", "nowhere"])
    element(parts, "short_mask", "nullable-integer", values=np.array([1, 2, 3]), mask=np.array([True, False]))
    element(parts, "integer_mask", "nullable-boolean", values=np.array([True, False, True]), mask=np.array([0, 1, 0]))
    labels = np.array([b"a", b"b"])
    element(parts, "far", "categorical", codes=np.array([1, 9, -1], "i1"), categories=labels)
    element(parts, "of_codes", "categorical", codes=np.array([0, 0, 0], "i1"))
    element(parts["of_codes"], "categories", "categorical", codes=np.array([0], "i1"), categories=labels)
    element(parts, "no_codes", "categorical", categories=labels)
    parts["own"] = np.array([0, 1, 2], "i1")
    parts["own"].attrs["categories"] = parts["own"].ref
    parts["nowhere"] = np.array([0, 1, 2], "i1")
    parts["nowhere"].attrs["categories"] = h5py.Reference()
    twice = frame("twice", ["kind"])
    element(twice, "kind", "categorical", codes=np.array([0, 1, 2], "i1"), categories=np.array([b"x", b"x", b"z"]))
    # What stands beside a frame, and what is only called so.
    single = file.create_group("single")
    single.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
    file.move("twice", "single/obs")
    file["twice"] = single["obs"]
    for name, rows in (("single/obsm", 3), ("uns/obsm", 5)):
        made = file.create_group(name)
        made.attrs.update({"encoding-type": "dict", "encoding-version": "0.1.0"})
        made["narrow"] = np.zeros((3, 0))
        made["wide"] = np.arange(2.0 * rows).reshape(rows, 2)
    file["single/obsm/meta"] = frame("bare_labels", [])
    bare = frame("bare", None, **{"encoding-version": "9.9"})
    del bare.attrs["_index"]
    bare["n"] = np.array([4, 5, 6])

    def sparse(name, pointers, indices, shape=(3, 4)):
        made = file.create_group(name)
        made.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": shape})
        made["data"] = np.arange(1.0, 5.0)
        made["indices"] = np.array(indices)
        made["indptr"] = np.array(pointers)

    sparse("falls", [0, 3, 1, 4], [0, 1, 2, 3])
    sparse("beyond", [0, 1, 2, 9], [0, 1, 2, 3])
    sparse("negative", [0, -5, 2, 4], [0, 1, 2, 3])
    sparse("uneven", [0, 1, 2, 4], [0, 1, 2])
    sparse("many", [0, 1, 2, 4], [0, 1, 2, 3], shape=(2**63 - 1, 4))
    sparse("outside", [0, 1, 2, 4], [0, 99, -7, 3])
    # 2^45 pointers, of which the first and the last are stored, of one entry each.
    wide = file.create_group("wide")
    wide.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
    for name in ("wide/obs", "wide/var"):
        frame(name, [])
    made = file.create_group("wide/X")
    made.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [1 << 45, 3]})
    pointers = made.create_dataset(
        "indptr", ((1 << 45) + 1,), "i8", chunks=(1 << 16,), compression="gzip", fillvalue=1)
    pointers[0], pointers[1 << 45] = 0, 2
    made["data"], made["indices"] = np.array([2.5, 3.5]), np.array([1, 2])
    # A group of one name without an entry, and pointers of which only the ends are stored.
    sparse("empty", [0, 0, 0, 0], [])
    del file["empty/data"]
    file["empty/data"] = np.zeros(0)
    file.create_group("obsm")


def bad_anndata_06(file):
    """Compounds of matrices that do not fit their data frame, have none, or a field of the name of its labels."""
    frame = np.array([(b"r1", 1), (b"r2", 2), (b"r3", 3)], [("index", "S2"), ("n", "i4")])
    file["obs"], file["raw.var"] = frame, frame
    file["obsm"] = np.zeros(5, [("X_pca", "f4", (2,))])
    file["varm"] = np.zeros(2, [("PCs", "f4", (2,))])
    file["raw.varm"] = np.array([(7,), (8,), (9,)], [("index", "i4")])


def bad_families(file):
    """Tables of HDMF, 10x, Loom and NeXus that contradict themselves: ends that fall, indexes in a circle, references."""
    def dynamic(name, columns, rows=3):
        made = file.create_group(name)
        made.attrs["neurodata_type"] = "DynamicTable"
        made.attrs["colnames"] = np.array(columns, object) if columns else np.zeros(0)
        if rows:
            made["id"] = np.arange(rows)
        return made

    def index(where, name, ends, target):
        where[name] = ends
        where[name].attrs["neurodata_type"] = "VectorIndex"
        where[name].attrs["target"] = target

    lists = dynamic("lists", ["good", "falls", "past", "negative", "short", "few", "floats", "circle", "itself", "lost"])
    for name, ends in {"good": np.array([2, 2, 5], "u2"), "falls": np.array([3, 2, 5], "u1"),
                       "past": np.array([2, 3, 9], "u8"), "negative": np.array([-1, 2, 5], "i1"),
                       "short": np.array([1, 2, 4], "u4"), "few": np.array([2, 5], "u1"), "floats": np.array([1.0, 2, 5]),
                       "lost": np.array([1, 2, 5], "u1")}.items():
        lists[name] = np.arange(5)
        index(lists, f"{name}_index", ends, lists[name].ref)
    lists["lost_index"].attrs["target"] = h5py.Reference()
    for name in ("circle", "circle_index", "circle_index_index"):
        lists[name] = np.array([1, 2, 3], "u1")
    lists["circle_index"].attrs["target"] = lists["circle"].ref
    lists["circle_index_index"].attrs["target"] = lists["circle_index"].ref
    lists["circle"].attrs["target"] = lists["circle_index_index"].ref
    lists["itself"] = np.array([1, 2, 3], "u1")
    lists["itself"].attrs["target"] = lists["itself"].ref
    names = dynamic("names", ["b", "a", "b", "gone", "id", "scalar", "none", "group", "long"])
    for name, values in {"a": np.arange(3), "b": np.arange(3) * 0.5, "unlisted": np.arange(3), "long": np.arange(4),
                         "other": np.arange(7), "scalar": 5, "none": h5py.Empty("f8")}.items():
        names[name] = values
    names.create_group("group")
    regions = dynamic("regions", ["nowhere", "array", "table", "labels", "no_labels"])
    for name, target in {"nowhere": h5py.Reference(), "array": names["a"].ref, "table": names.ref}.items():
        regions[name] = np.array([0, 99, 2])
        regions[name].attrs.update({"neurodata_type": "DynamicTableRegion", "table": target})
    for name, target in {"labels": names["b"].ref, "no_labels": h5py.Reference()}.items():
        regions[name] = np.array([0, 9, 2], "u1")
        regions[name].attrs["elements"] = target
    wide = dynamic("wide", [f"{at:04x}" for at in range(300)], 2)
    wide["0007"] = np.arange(2)
    no_id = dynamic("no_id", ["a"], 0)
    no_id["a"] = np.arange(2)
    aligned = dynamic("aligned", ["a"])
    aligned["a"] = np.arange(3)
    aligned.attrs["categories"] = np.array(
        ["good", "gone", "a", "group", "good", "long", "lists", "itself", "nothing"], object)
    aligned["itself"] = aligned
    aligned["lists"] = lists
    aligned.create_group("group")
    for name, length in {"good": 3, "long": 4, "nothing": 0}.items():
        within = dynamic(f"aligned/{name}", ["b"] if length else [], length)
        if length:
            within["b"] = np.arange(length) * 0.5
    unlisted = dynamic("unlisted", [])
    unlisted.attrs["categories"] = np.array([1, 2])
    unread = dynamic("unread", ["a"])
    unread.attrs["colnames"] = np.array([1, 2])
    unread["a"] = np.arange(3)

    def series(name, data, clock, **attributes):
        made = file.create_group(name)
        made.attrs["neurodata_type"] = "TimeSeries"
        made["data"] = data
        made["data"].attrs.update(attributes)
        if isinstance(clock, dict):
            made["starting_time"] = 0.5
            made["starting_time"].attrs.update(clock)
        else:
            made["timestamps"] = clock

    series("still", np.arange(3), {"rate": 0.0})
    series("endless", np.arange(3), {"rate": np.nan}, conversion="ten")
    series("uneven", np.arange(3), np.arange(2.0), conversion=np.inf)
    series("wordy", np.array([b"a", b"b"]), {"rate": 2.0}, conversion=2.0)
    series("channels", np.ones((2, 3)), {"rate": 2.0}, conversion=2.0)
    file["channels/channel_conversion"] = np.ones(4)

    lists = {"good": ("a", "b"), "odd": ("a", "gone", "long", "a"), "lost": ("a",), "scalar": ()}
    text = "GROUP=SwathStructure\n"
    for swath, names in lists.items():
        fields = "".join(f'DataFieldName="{name}"\nDimList=("n")\n' for name in names)
        text += "" if swath == "lost" else f'SwathName="{swath}"\n{fields}'
        for name, length in {"a": 3, "b": 3, "long": 4}.items():
            file[f"HDFEOS/SWATHS/{swath}/Data Fields/{name}"] = np.arange(length)
    file["HDFEOS INFORMATION/StructMetadata.0"] = np.bytes_(text)

    def matrix(name, indptr, indices=(0, 1, 1), shape=(2, 3), ids=2):
        made = file.create_group(name)
        for key, values in {"data": np.arange(1, 4), "indices": np.array(indices), "indptr": np.array(indptr),
                            "shape": np.array(shape), "barcodes": np.array([b"x", b"y", b"z"])}.items():
            made[key] = values
        features = made.create_group("features")
        for key in ("id", "name", "feature_type")[: 3 if ids else 0]:
            features[key] = np.array([f"{key}{at}".encode() for at in range(ids)])

    matrix("tenx/good", [0, 1, 1, 3])
    matrix("tenx/falls", [0, 2, 1, 3])
    matrix("tenx/beyond", [0, 1, 1, 9])
    matrix("tenx/few", [0, 3])
    matrix("tenx/outside", [0, 1, 1, 3], indices=(0, 7, -1))
    matrix("tenx/uneven", [0, 1, 1, 3], indices=(0, 1))
    matrix("tenx/shape", [0, 1, 1, 3], shape=(2**62, -5))
    matrix("tenx/nameless", [0, 1, 1, 3], ids=0)
    file["matrix"] = np.zeros((3, 2))
    for group, name, values in (("row_attrs", "Gene", np.array([b"a", b"b", b"c"])), ("row_attrs", "long", np.arange(5)),
                                ("row_attrs", "one", 1), ("col_attrs", "cube", np.zeros((2, 2, 2))),
                                ("row_graphs/good", "a", np.arange(2)), ("row_graphs/good", "b", np.arange(2)),
                                ("row_graphs/good", "w", np.arange(2)), ("row_graphs/odd", "a", np.arange(2)),
                                ("row_graphs/odd", "b", np.arange(3)), ("row_graphs/odd", "w", np.arange(3))):
        file.require_group(group)[name] = values

    def nexus(name, kind, members, **attributes):
        made = file.create_group(f"entry/{name}")
        made.attrs.update({"NX_class": kind} | attributes)
        for key, values in members.items():
            made[key] = values

    nexus("gone", "NXdata", {"x": np.arange(3), "y": np.arange(3)}, signal="z")
    nexus("group", "NXdata", {"x": np.arange(3), "y/z": np.arange(3)}, signal="y")
    nexus("axes", "NXdata", {"x": np.arange(3), "y": np.arange(3)}, signal="y", axes=":::,[.", x_indices=[0, 1])
    nexus("log", "NXlog", {"time": np.arange(3), "value": np.arange(5)})
    file["entry/log/time"].attrs.update({"units": "fortnights", "start": "yesterday"})
    nexus("events", "NXevent_data", {"event_id": np.arange(3), "event_time_offset": np.arange(2.0),
                                     "event_time_zero": np.arange(2), "event_index": np.array([5, 1, 9])})
    nexus("number", np.int64(5), {"x": np.arange(3)})
    file.create_group("h5md")
    for name, step, time in (("short", np.arange(2), np.arange(3.0)), ("far", np.int64(2**52), b"now"), ("good", 5, 0.5)):
        element = file.create_group(f"particles/all/{name}")
        element["step"], element["time"], element["value"] = step, time, np.arange(3)
    wide = file.create_group("particles/all/wide")
    wide["step"] = np.arange(2)
    wide.create_dataset("value", (2, (1 << 17) + 1), "f8", chunks=(1, 1 << 16))
    file["particles/all/far"].create_dataset("offset", data=0)
    file["particles/all/far/step"].attrs["offset"] = np.nan
    chars = file.create_group("#refs#")
    for name, values in {"a": np.array([[97], [0xD800]], "u2"), "b": np.array([5.0]), "c": np.zeros((2, 2), "u2")}.items():
        chars[name] = values
        chars[name].attrs["MATLAB_class"] = "double" if name == "b" else "char"
    for struct, cells in (("good", "aa"), ("bad", "ab"), ("square", "ac"), ("gone", "a-")):
        made = file.create_group(f"matlab/{struct}")
        made.attrs["MATLAB_class"] = "struct"
        made["x"] = np.arange(2.0).reshape(1, 2)
        made["x"].attrs["MATLAB_class"] = "double"
        made.create_dataset("y", data=[[chars[one].ref if one != "-" else h5py.Reference() for one in cells]],
                            dtype=h5py.ref_dtype).attrs["MATLAB_class"] = "cell"
    for struct, shapes in (("lengths", [(1, 2), (1, 3)]), ("scalars", [(1, 1), (1, 1)]), ("squares", [(2, 2), (2, 2)])):
        made = file.create_group(f"matlab/{struct}")
        made.attrs["MATLAB_class"] = "struct"
        for name, shape in zip("xy", shapes):
            made[name] = np.ones(shape)
            made[name].attrs["MATLAB_class"] = "double"
    file.attrs["openPMD"] = "1.1.0"
    species = file.create_group("data/1/particles/e")
    species["id"], species["weighting"], species["cube"] = np.arange(3), np.arange(4), np.zeros((3, 2))
    for name, attributes in {"charge": {"value": 2.0, "shape": [3], "unitSI": 0.5}, "mass": {"value": "heavy", "shape": [3]},
                             "spin": {"value": 1, "shape": [2**62]}, "position/x": {}}.items():
        species.create_group(name).attrs.update(attributes)
    species["position/y"] = np.arange(3) * 0.5
    species["position/y"].attrs["unitSI"] = "one"
    species["amplitude"] = np.array([1j, 2, 3])
    species["amplitude"].attrs["unitSI"] = 2.0
    nexus("scaled", "NXlog", {"time": np.arange(3), "value": np.arange(3)})
    file["entry/scaled/time"].attrs.update({"units": "s", "start": "2020-01-01T00:00:00", "scaling_factor": 0.5})
    vaex = file.create_group("vaex")
    vaex.attrs["type"] = "table"
    for name, parts in {"vec": {"data": np.arange(6.0).reshape(3, 2)},
                        "month": {"data": np.array([0, 1, -(1 << 63)])},
                        "odd": {"data": np.array([[b"a", b"b"], [b"c", b"\xff"], [b"e", b"f"]])},
                        "few": {"data": np.arange(3), "mask": np.array([1, 0], "u1")}}.items():
        for part, values in parts.items():
            vaex[f"columns/{name}/{part}"] = values
    vaex["columns/month/data"].attrs["dtype"] = "datetime64[M]"
    many = dynamic("many", ["a"])
    many["a"] = np.array([0, 1, 2], "u1")
    many["a"].attrs["elements"] = file.create_dataset("labels_of_many", (1 << 32,), "S4", chunks=(1 << 16,)).ref


def bad_versions(file):
    """Versions that lead to each other, to nothing and to themselves; mappings beyond raw data, beside it, across it."""
    versions = file.create_group("_version_data/versions")
    versions.attrs.update({"current_version": "nowhere", "data_version": 2})
    raw = file.create_dataset("_version_data/t/x/raw_data", data=np.arange(12), chunks=(4,))
    file.create_dataset("_version_data/t/y/raw_data", data=np.arange(8), chunks=(4,))
    file["elsewhere"] = np.arange(100, 108)

    def version(name, before, time="2026-01-01 00:00:00.000000+0000"):
        made = versions.create_group(name)
        made.attrs.update({"prev_version": before, "committed": True, "timestamp": time})
        return made

    def mapped(group, name, *mappings, extent=8, source=raw.name):
        layout = h5py.VirtualLayout((extent,), "<i8")
        for at, first, count in mappings:
            shape = (1000,) if first > 12 else file[source].shape
            layout[at : at + count] = h5py.VirtualSource(".", source, shape)[first : first + count]
        group.create_virtual_dataset(name, layout, fillvalue=-7)

    version("__first_version__", "")
    good = version("good", "__first_version__")
    mapped(good, "t/x", (0, 8, 4), (4, 0, 4))
    mapped(good, "t/y", (0, 0, 8), source="/_version_data/t/y/raw_data")
    bad = version("bad", "good", "2026-01-02 00:00:00.000000+0000")
    mapped(bad, "t/x", (0, 4, 4))
    mapped(bad, "t/outside", (0, 0, 4), (4, 400, 4))
    mapped(bad, "t/across", (0, 2, 4), (4, 6, 4))
    mapped(bad, "t/beside", (0, 0, 8), source="/elsewhere")
    file["gone"] = np.arange(8)
    mapped(bad, "t/nothing", (0, 0, 8), source="/gone")
    del file["gone"]
    bad["t/plain"] = np.arange(8)
    # From here to everything above, and a way for each subset.
    bad["root"] = file["/"]
    bad["versions"] = versions
    bad["good"] = good
    for at in range(30):
        bad.create_group(f"many/{at}")
    for at in range(29):
        bad[f"many/{at}/a"] = bad[f"many/{at + 1}"]
        bad[f"many/{at}/b"] = bad[f"many/{at + 1}"]
    for name, before in [("a", "b"), ("b", "a"), ("behind", "a"), ("self", "self"), ("orphan", "nobody")]:
        version(name, before)
    for name in ("..", "current", "metadata.json", "\x1b[2J", "table.csv"):
        version(name, "good")
    version("timeless", "good", "yesterday")
    versions.create_group("half")
    versions.create_group("slash/ed")
    versions["data"] = np.arange(3)
    versions["soft"] = h5py.SoftLink("/_version_data/versions/good")
    versions["twin"] = good


bad_versions.libver = "latest"


def bad_netcdf(file):
    """Dimensions that lead anywhere, and attributes that make no numbers of what is stored."""
    references = h5py.vlen_dtype(h5py.ref_dtype)

    def put(where, name, data, *dimensions, **attributes):
        made = where.create_dataset(name, data=data)
        made.attrs.update(attributes)
        if dimensions:
            lists = np.empty(len(dimensions), object)
            lists[:] = [np.array(one, h5py.ref_dtype) for one in dimensions]
            made.attrs.create("DIMENSION_LIST", lists, dtype=references)
        return made

    def scale(where, name, data, pure=False):
        made = where.create_dataset(name, data=data)
        made.make_scale(f"This is a netCDF dimension but not a netCDF variable{len(data):10}" if pure else name)
        return made

    good = file.create_group("good")
    x = [scale(good, "x", np.arange(3, dtype="i4")).ref]
    put(good, "value", np.array([1, 2, 3], "i2"), x)
    put(good, "zero", np.array([1, 2, 3], "i2"), x, scale_factor=0.0, add_offset=1.0)
    put(good, "nan", np.array([1, 2, 3], "i2"), x, scale_factor=np.nan)
    put(good, "endless", np.array([1, 2, 3], "i2"), x, scale_factor=np.inf)
    put(good, "texts", np.array([1, 2, 3], "i2"), x, scale_factor="ten", add_offset=np.array([1.0, 2.0]))
    put(good, "fill", np.array([1, 2, 3], "u1"), x, _FillValue="none", missing_value=np.array([1000, -1]))
    put(good, "flags", np.array([1, 2, 3], "u1"), x, flag_values=np.array([1, 2]), flag_meanings="one")
    since = "days since 2000-01-01"
    put(good, "late", np.array([0, 5e6, 1e300]), x, units=since)
    put(good, "last", np.array([0, 5_000_000, 2**62], "i8"), x, units=since)
    put(good, "julian", np.array([0, 1, 2], "i4"), x, units=since, calendar="julian")
    put(good, "months", np.array([0, 1, 2], "i4"), x, units="months since 2000-01-01")
    put(good, "odd_bool", np.array([0, 1, 7], "i1"), x, dtype="bool")
    lost = file.create_group("lost")
    flat = lost.create_dataset("flat", data=np.zeros((2, 2)))
    flat.make_scale("flat")
    leads = {"group": lost.ref, "root": file.ref, "scale_of_2": flat.ref, "null": h5py.Reference()}
    leads["no_scale"] = put(lost, "plain", np.arange(3)).ref
    gone = lost.create_dataset("gone", data=np.arange(3))
    leads["gone"] = gone.ref
    for name, reference in leads.items():
        put(lost, f"to_{name}", np.arange(3), [reference])
    itself = put(lost, "itself", np.arange(3))
    lists = np.empty(1, object)
    lists[:] = [np.array([itself.ref], h5py.ref_dtype)]
    itself.attrs.create("DIMENSION_LIST", lists, dtype=references)
    put(lost, "fewer", np.zeros((3, 2, 2)), x)
    put(lost, "more", np.arange(3), x, x, x)
    lost.create_dataset("no_list", data=np.arange(3)).attrs["DIMENSION_LIST"] = "x"
    lost.create_dataset("numbers", data=np.arange(3)).attrs["DIMENSION_LIST"] = np.array([800, 1 << 60])
    del lost["gone"]
    short = file.create_group("short")
    y = [scale(short, "y", np.arange(5.0), pure=True).ref]
    for length in (4, 2):
        put(short, f"of_{length}", np.arange(length), y)
    short["table.csv"] = np.arange(2)
    stated = file.create_group("stated")
    stated.attrs["CLASS"] = "COLUMN_TABLE"
    stated.create_dataset("a", data=np.arange(3, dtype="i4")).attrs["_FillValue"] = np.int32(1)
    stated.create_dataset("other", data=np.arange(3, dtype="i4")).attrs["_FillValue"] = np.int64(1)
    both = file.create_group("both")
    z = [scale(both, "z", np.arange(2)).ref]
    put(both, "on_z", np.arange(2), z)
    put(both, "tables", np.arange(3), x)
    put(both, "elsewhere", np.arange(3), x)


def bad_lh5(file):
    """Tables of LEGEND that contradict themselves: lists whose ends fall, waveforms that are damaged, a table in itself."""

    def group(where, name, datatype, **attributes):
        made = where.create_group(name)
        made.attrs.update({"datatype": datatype} | attributes)
        return made

    def put(where, name, data, datatype="array<1>{real}"):
        where.create_dataset(name, data=data).attrs["datatype"] = datatype

    names = "good,gone,scalar,short,falls,beyond,itself,strange,wild,packed,huge,sizes"
    table = group(file, "table", f"table{{{names}}}")
    put(table, "good", np.array([1, 2, 3]))
    put(table, "scalar", 5, "real")
    put(table, "short", np.array([1, 2]))
    put(table, "unlisted", np.array([1, 2, 3]))
    for name, ends in (("falls", [2, 1, 3]), ("beyond", [1, 2, 9])):
        lists = group(table, name, "array<1>{array<1>{real}}")
        put(lists, "cumulative_length", np.array(ends))
        put(lists, "flattened_data", np.array([10, 20, 30]))
    table["itself"] = table
    put(table, "strange", np.array([1, 2, 3]), "array<1>{quaternion}")
    group(table, "wild", "array<1>{array<1>{real}}")

    def encoded(name, content, size, codec="radware_sigcompress", ends=None):
        waves = group(table, name, "array_of_encoded_equalsized_arrays<1,1>{real}", codec=codec, codec_shift=0.0)
        waves["decoded_size"] = size
        data = group(waves, "encoded_data", "array<1>{array<1>{real}}")
        put(data, "cumulative_length", np.cumsum([len(one) for one in content]) if ends is None else np.array(ends))
        put(data, "flattened_data", np.frombuffer(b"".join(content), "u1"))

    # Ten links on each level: 10^12 columns, if each were opened.
    laughs = None
    for level in range(12):
        links = [f"x{at}" for at in range(10)]
        above = group(file, f"laughs_{level}", f"table{{{','.join(links)}}}")
        for link in links:
            above[link] = np.array([1, 2, 3]) if laughs is None else laughs
            if laughs is None:
                above[link].attrs["datatype"] = "array<1>{real}"
        laughs = above
    good = bytes.fromhex("0003000300100001000000010002")
    encoded("packed", [good, b"\xff\xff" * 4, good[:-2]], np.int64(3))
    encoded("huge", [good] * 3, np.int64(1 << 40))
    encoded("sizes", [b"\x02\x02", b"\x80" * 9, b"\x02"], np.array([2, 3, 1 << 40]), "uleb128_zigzag_diff")
    # Of four rows, the second ends beyond: what lies between the first and the last is not read.
    table = group(file, "gap", "table{v,again,shifted}")
    encoded("again", [good] * 4, np.int64(3), ends=[14, 56, 28, 42])
    encoded("v", [good] * 4, np.int64(3), ends=[14, 1 << 31, 42, 56])
    encoded("shifted", [good] * 4, np.int64(3))
    table["shifted"].attrs["codec_shift"] = 2.0**33
    # What is no column, or has nothing to show, beside a column.
    holds = group(file, "holds", "table{a,struct,empty,narrow}")
    put(holds, "a", np.array([1, 2, 3]))
    put(group(holds, "struct", "struct{x}"), "x", np.arange(5))
    group(holds, "empty", "table{}")
    put(holds, "narrow", np.zeros((3, 0)), "array_of_equalsized_arrays<1,1>{real}")
    # More lists than columns of tables within a table.
    names = [f"v{at}" for at in range(1100)]
    wide = group(file, "wide", f"table{{{','.join(names)}}}")
    lists = group(wide, names[0], "array<1>{array<1>{real}}")
    put(lists, "cumulative_length", np.array([1, 3]))
    put(lists, "flattened_data", np.array([10, 20, 30]))
    for name in names[1:]:
        wide[name] = lists


MIB = 1 << 20
AMPLIFIED = 100_000


def amplified(path):
    """Rows by the hundred thousand that all lead to one heap object of 1 MiB, in every place for variable length."""
    text, sequence = h5py.string_dtype(), h5py.vlen_dtype("<i4")
    pair = np.dtype([("n", "<i4"), ("s", text), ("a", text, (4,))])
    with h5py.File(path, "w", libver="earliest") as file:
        file["object"] = np.array(["hepfs, \n" * (MIB // 8)], object)
        place = file["object"].id.get_offset()
    one = path.read_bytes()[place:][:16]
    items = struct.pack("<I", MIB // 4) + one[4:]
    with h5py.File(path, "r+", libver="earliest") as file:
        # What leads to an object of 1,000 descriptors.
        inner = file.create_dataset("inner", (1,), h5py.vlen_dtype("u1"))
        inner[0] = np.frombuffer(one * 1000, "u1")
        place = inner.id.get_offset()
    outer = struct.pack("<I", 1000) + path.read_bytes()[place:][4:16]
    with h5py.File(path, "r+", libver="earliest") as file:
        table = april_table(file.create_group("t"))
        amplify(table, "s", text, one)
        amplify(table, "q", sequence, items)
        column(table, "n", np.arange(AMPLIFIED) % 7, "i4", chunk=10_000)
        labels = april_table(file.create_group("labels"))
        amplify(labels, "names", text, one)
        column(labels, "c", np.arange(1000) % 3, "i4").attrs["CATEGORIES"] = labels["names"].ref
        lists = july_table(file.create_group("lists"), AMPLIFIED)
        for name, class_name, values in (("l", "LIST_COLUMN", "VALUES"), ("t", "STRING_VALUES", "CHARS")):
            level = lists.create_group(name)
            level.attrs["CLASS"] = token(class_name, len(class_name) + 1)
            if class_name == "LIST_COLUMN":
                level.attrs["KIND"] = token("OFFSETS", 8)
            # Every other list spans all values, those between go back.
            offsets = np.arange(AMPLIFIED + 1, dtype="u8") % 2 * MIB
            level.create_dataset("OFFSETS", data=offsets, compression="gzip")
            level.create_dataset(values, data=np.full(MIB, 97, "u1"), compression="gzip")
        amplify(file, "s", text, one)
        amplify(file, "matrix", text, one, (AMPLIFIED // 100, 100))
        amplify(file, "row", text, one, (1, 100))
        amplify(file, "pair", pair, struct.pack("<i", 7) + one * 5)
        amplify(file, "nested", h5py.vlen_dtype(text), outer)
        # Without a chunk: all fill.
        file.create_dataset("filled", (AMPLIFIED,), text, chunks=(1000,), fillvalue="filled " * (MIB // 8))
        scalar = h5t.array_create(h5t.py_create(text, logical=True), (1000,))
        early = plain_plist(set_layout=(h5d.CONTIGUOUS,), set_alloc_time=(h5d.ALLOC_TIME_EARLY,))
        scalar = h5d.create(file.id, b"scalar", scalar, h5s.create(h5s.SCALAR), early)
        place = scalar.get_offset()
        file["n"] = np.arange(3)
        file["n"].attrs.create("texts", np.array([f"attribute {i}" for i in range(2000)], object), dtype=text)
    overwrite(path, place, one * 1000)
    data = path.read_bytes()
    first = data.index(b"attribute 0") - 16
    heap = data.rindex(b"GCOL", 0, first)
    at = data.index(struct.pack("<IQ", 11, heap))
    overwrite(path, at, one * 2000)


amplified.takes_path = True


def amplify(group, name, kind, element, shape=(AMPLIFIED,)):
    """A dataset of one element over and over, in chunks that compress to nothing."""
    chunk = (-(-shape[0] // 10), *shape[1:])
    dataset = group.create_dataset(name, shape, kind, chunks=chunk, compression="gzip")
    stored = zlib.compress(element * int(np.prod(chunk)), 9)
    for row in range(0, shape[0], chunk[0]):
        dataset.id.write_direct_chunk((row,) + (0,) * (len(shape) - 1), stored)


def gigabyte_elements(file):
    """Arrays of 1,000 × 1,000 × 1,000 bytes as elements, made of fill alone."""
    kind = h5t.array_create(h5t.STD_I8LE, (1000, 1000, 1000))
    for name, layout in (
        (b"contiguous", plain_plist(set_layout=(h5d.CONTIGUOUS,))),
        (b"chunked", plain_plist(set_layout=(h5d.CHUNKED,), set_chunk=((1,),), set_deflate=(9,))),
    ):
        h5d.create(file.id, name, kind, h5s.create_simple((3,)), layout)
    h5d.create(file.id, b"scalar", kind, h5s.create(h5s.SCALAR), plain_plist(set_layout=(h5d.CONTIGUOUS,)))
    table = april_table(file.create_group("t"))
    h5d.create(table.id, b"x", kind, h5s.create_simple((3,)), plain_plist(set_layout=(h5d.CONTIGUOUS,)))
    column(table, "n", [1, 2, 3], "i4")


def shared_lists(path):
    """Lists of lists of six levels, of 500 items each, where all items of a level are one object: whoever follows each
    descriptor meets more than can be counted."""
    depth, count = 6, 500
    datatype = h5py.h5t.py_create(np.dtype("<i4"))
    for _ in range(depth):
        datatype = h5py.h5t.vlen_create(datatype)
    options = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    options.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    options.set_layout(h5py.h5d.CONTIGUOUS)
    with h5py.File(path, "w", libver="earliest") as file:
        file["good"] = np.arange(3)
        place = h5py.h5d.create(file.id, b"d", datatype, h5py.h5s.create_simple((1,)), options).get_offset()
    data = bytearray(path.read_bytes())
    data += bytes(-len(data) % 8)
    address = len(data)
    objects = [struct.pack("<IQI", count, address, level + 1) * count for level in range(1, depth)]
    objects.append(struct.pack("<i", 7) * count)
    body = b"".join(
        struct.pack("<HHIQ", at, 1, 0, len(one)) + one + bytes(-len(one) % 8) for at, one in enumerate(objects, 1)
    )
    data += b"GCOL\1\0\0\0" + struct.pack("<Q", 16 + len(body)) + body
    struct.pack_into("<IQI", data, place, count, address, 1)
    path.write_bytes(data)


shared_lists.takes_path = True


def rows_without_elements(file):
    """Tables of which a column has rows of no element, or of more than Arrow's arrays have, with a missing value."""
    for name, width in (("none", 0), ("many", 2**31 + 5)):
        table = file.create_group(name)
        table.attrs["datatype"] = "table{x,y}"
        x = table.create_dataset("x", (3, width), "f8", chunks=(1, 1024), maxshape=(None, None))
        x.attrs["datatype"], x.attrs["_FillValue"] = "array_of_equalsized_arrays<1,1>{real}", 1.5
        table["y"] = np.arange(3.0)
        table["y"].attrs["datatype"] = "array<1>{real}"


def one_name_twice(file):
    """Columns that call themselves alike: by an alias, as fields, as a record and its component."""
    table = file.create_group("vaex")
    table.attrs["type"] = "table"
    columns = table.create_group("columns")
    for at, name in enumerate("ab"):
        columns[f"{name}/data"] = np.arange(3) + 10 * at
        columns[name].attrs["alias"] = "x"
    file.attrs["openPMD"], file.attrs["particlesPath"] = "1.1.0", "particles/"
    species = file.create_group("data/0/particles/e")
    species["position/x"], species["position_x"] = np.arange(3), np.arange(3) + 10


def links_of_one_name(path):
    """A group of the old kind in which two links have one name: h5py finds the second by it."""
    with h5py.File(path, "w", libver="earliest") as file:
        for at, name in enumerate(("same", "samf", "samg")):
            file[f"g/{name}"] = np.arange(3) + 10 * at
    data = bytearray(path.read_bytes())
    at = data.index(b"samf\0")
    data[at : at + 4] = b"same"
    path.write_bytes(data)
    with h5py.File(path, "r") as file:
        assert list(file["g"]) == ["same", "same", "samg"] and list(file["g/same"]) == [10, 11, 12]


links_of_one_name.takes_path = True


def root_table(file):
    """A root that is a table, beside tables."""
    file["time"], file["energy"], file["hits"] = np.arange(20) / 8, np.arange(20) / 2, np.arange(20)
    for name, rows in (("alpha", 4), ("g/beta", 5)):
        file[name] = np.zeros(rows, [("k", "i4"), ("v", "f8")])


def computed_rows(file):
    """2^40 rows of which nothing is stored: constants, bins, rows of a sparse matrix, encoded lists, lists of nothing."""
    rows = 1 << 40

    def unwritten(group, name, kind, **attributes):
        dataset = group.create_dataset(name, (rows,), kind, chunks=(1 << 16,))
        dataset.attrs.update(attributes)

    file.attrs.update({"openPMD": "1.1.0", "basePath": "/data/%T/", "particlesPath": "particles/"})
    species = file.create_group("data/0/particles/e")
    for name in "ab":
        species.create_group(name).attrs.update({"value": 1.5, "unitSI": 1.0, "shape": np.array([rows], "u8")})
    histogram = file.create_group("histogram")
    histogram.attrs["datatype"] = "struct{binning,isdensity,weights}"
    axis = histogram.create_group("binning/axis_0")
    histogram["binning"].attrs["datatype"] = "struct{axis_0}"
    axis.attrs["datatype"] = "struct{binedges,closedleft}"
    axis["binedges/first"], axis["binedges/last"], axis["binedges/step"] = 0.0, float(rows), 1.0
    axis["binedges"].attrs["datatype"] = "struct{first,last,step}"
    axis["closedleft"], histogram["isdensity"] = True, False
    unwritten(histogram, "weights", "f8", datatype="array<1>{real}")
    sparse = file.create_group("X")
    sparse.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [2, 5]})
    unwritten(sparse, "data", "f8")
    unwritten(sparse, "indices", "i4")
    sparse["indptr"] = np.array([0, 5, rows])
    table = file.create_group("encoded")
    table.attrs["datatype"] = "table{v}"
    waveforms = table.create_group("v")
    waveforms.attrs["datatype"] = "array_of_encoded_equalsized_arrays<1,1>{real}"
    waveforms.attrs["codec"], waveforms["decoded_size"] = "uleb128_zigzag_diff", 0
    lists = waveforms.create_group("encoded_data")
    lists.attrs["datatype"] = "array<1>{array<1>{real}}"
    unwritten(lists, "cumulative_length", "u8", datatype="array<1>{real}")
    lists["flattened_data"] = np.zeros(3, "u1")
    cells = file.create_group("cells")
    cells.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
    frame = cells.create_group("obs")
    frame.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "i"})
    frame.attrs["column-order"] = np.array([], "S1")
    unwritten(frame, "i", "i8")
    lists = cells.create_group("obsm/lists")
    lists.attrs.update({"encoding-type": "awkward-array", "encoding-version": "0.1.0", "length": np.uint64(rows)})
    lists.attrs["form"] = '{"class":"RegularArray","size":0,"content":{"class":"EmptyArray"}}'


computed_rows.libver = "latest"


def much_by_links(file):
    """A frame of many columns that `obsm` has often, levels of pandas that are one, a text in many labels, cells in many columns."""
    cells = file.create_group("cells")
    cells.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})

    def frame(name, columns):
        made = cells.create_group(name)
        made.attrs.update({"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "i"})
        made.attrs["column-order"] = np.array(columns, "S8")
        made["i"] = np.arange(3)
        for column in columns:
            made[column] = made["i"]
        return made

    frame("obs", [])
    inner = frame("inner", [f"c{at}" for at in range(1500)])
    matrices = cells.create_group("obsm")
    matrices.attrs.update({"encoding-type": "dict", "encoding-version": "0.1.0"})
    for at in range(400):
        matrices[f"m{at:03}"] = inner
    levels = file.create_group("levels")
    levels.attrs.update({"pandas_type": "frame", "axis0_variety": "multi", "axis0_nlevels": 1000, "nblocks": 1})
    codes = levels.create_dataset("axis0_label0", data=np.zeros(90_000, "i1"), compression="gzip")
    names = levels.create_dataset("axis0_level0", data=np.zeros(90_000, "i8"), compression="gzip")
    for at in range(1, 1000):
        levels[f"axis0_label{at}"], levels[f"axis0_level{at}"] = codes, names
    levels["axis1"], levels["block0_values"] = np.arange(2), np.zeros((2, 2))
    texts = file.create_group("texts")
    texts.attrs.update({"pandas_type": "frame", "axis0_variety": "multi", "axis0_nlevels": 2, "nblocks": 1})
    for at in range(2):
        texts.create_dataset(f"axis0_label{at}", data=np.zeros(20_000, "i1"), compression="gzip")
        level = texts.create_dataset(f"axis0_level{at}", (1,), "S65536", chunks=(1,), compression="gzip")
        level[0] = b"x" * 65536
        level.attrs["kind"] = "string"
    texts["axis1"], texts["block0_values"] = np.arange(2), np.zeros((2, 2))
    letter = file.create_dataset("#refs#/a", data=np.array([[97]], "u2"))
    letter.attrs["MATLAB_class"] = np.bytes_("char")
    fields = file.create_group("struct")
    fields.attrs["MATLAB_class"] = np.bytes_("struct")
    fields.create_dataset("a", data=np.zeros((1, 60_000)), compression="gzip").attrs["MATLAB_class"] = np.bytes_("double")
    column = fields.create_dataset("f00", (1, 60_000), h5py.ref_dtype, chunks=(1, 60_000), compression="gzip")
    column[0] = [letter.ref] * 60_000
    column.attrs["MATLAB_class"] = np.bytes_("cell")
    for at in range(1, 40):
        fields[f"f{at:02}"] = column


def odd_parts(file):
    """Parts of tables that are rarely so: byte orders, ranks, lengths, names, values of one column of many families."""
    # Grids alone are no table.
    grids = file.create_group("grids")
    for name, count in (("time", 2), ("lat", 3), ("lon", 4)):
        grids[name] = np.arange(count)
        grids[name].make_scale(name)
    grids["rain"] = np.zeros((2, 3, 4))
    for axis, name in enumerate(("time", "lat", "lon")):
        grids["rain"].dims[axis].attach_scale(grids[name])
    # Times of either byte order, and what says that it is times and is none.
    file.create_group("vaex/columns")
    file["vaex"].attrs["type"] = "table"
    none = np.iinfo("i8").min
    for name, kind, values in (("big", ">i8", [none, 0]), ("little", "<i8", [none, 1]), ("short", "<i4", [0, 1])):
        data = file.create_dataset(f"vaex/columns/{name}/data", data=np.array(values, kind))
        data.attrs["dtype"] = "datetime64[s]"
    # Units of other storage than most.
    file.attrs["openPMD"], file.attrs["particlesPath"] = "1.1.0", "particles/"
    species = file.create_group("data/0/particles/e")
    for name, unit in (("big", np.array(2, ">f8")), ("text", "2"), ("two", np.array([2.0, 3.0]))):
        species[name] = np.arange(2.0)
        species[name].attrs["unitSI"] = unit
    # A distance of steps that is missing.
    file.create_group("h5md")
    file["observables/e/value"], file["observables/e/step"] = np.arange(3.0), np.int32(2)
    file["observables/e/step"].attrs["_FillValue"] = np.int32(2)
    # A text of variable length where others have 32,000 bytes.
    file["HDFEOS INFORMATION/StructMetadata.0"] = "x" * (1 << 17)
    file["HDFEOS/SWATHS/long/Data Fields/a"] = np.arange(3)
    file["HDFEOS/SWATHS/long/Data Fields/b"] = np.arange(3)
    # Numbers of samples of rank 2 and 3, in chunks; codes without a name, in a table in a table, and in lists.
    waves = file.create_group("waves")
    waves.attrs["datatype"] = "table{chunked,cube}"
    for name, shape in (("chunked", (3, 1)), ("cube", (3, 1, 2))):
        column = waves.create_group(name)
        column.attrs["datatype"] = "array_of_encoded_equalsized_arrays<1,1>{real}"
        column.attrs["codec"] = "uleb128_zigzag_diff"
        column.create_dataset("decoded_size", data=np.full(shape, 2), chunks=(2,) + shape[1:])
        data = column.create_group("encoded_data")
        data.attrs["datatype"] = "array<1>{array<1>{real}}"
        data["cumulative_length"], data["flattened_data"] = np.array([2, 4, 6]), np.full(6, 2, "u1")
    flags = file.create_group("flags")
    flags.attrs["datatype"] = "table{inner}"
    inner = flags.create_group("inner")
    inner.attrs["datatype"] = "table{flag,lists}"
    inner["flag"] = np.array([0, 1, 2], "u1")
    inner["flag"].attrs["datatype"] = "array<1>{enum{off=0,on=1}}"
    inner.create_group("lists").attrs["datatype"] = "array<1>{array<1>{enum{off=0,on=1}}}"
    inner["lists/cumulative_length"], inner["lists/flattened_data"] = np.array([1, 2, 4]), np.array([0, 1, 2, 3], "u1")
    inner["lists/flattened_data"].attrs["datatype"] = "array<1>{enum{off=0,on=1}}"
    # More axes than a histogram has.
    histogram = file.create_group("histogram")
    histogram.attrs["datatype"] = "struct{binning,isdensity,weights}"
    histogram["weights"], histogram["isdensity"] = np.arange(3.0), False
    for at in range(3):
        histogram[f"binning/axis_{at}/binedges"] = np.arange(4.0)
    # A graph of four datasets, beside which there are the parts of Loom.
    file["matrix"] = np.zeros((3, 2))
    file["row_attrs/Gene"], file["col_attrs/CellID"] = np.arange(3), np.arange(2)
    graph = file.create_group("col_graphs/KNN")
    for name in ("a", "b", "w", "more"):
        graph[name] = np.arange(4)
    graph["longer"] = np.arange(5)
    # Molecules, and a column by the name that a made one has.
    for name in ("barcode_idx", "feature_idx", "umi", "count", "barcode"):
        file[name] = np.array([0, 1, 1])
    file["barcodes"], file["features/id"] = np.array([b"x", b"y"]), np.array([b"g", b"h"])
    # Booleans that are none, in a sparse matrix.
    sparse = file.create_group("sparse")
    sparse.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [2, 2]})
    sparse["data"] = np.array([0, 1, 2], BOOLEAN)
    sparse["indices"], sparse["indptr"] = np.array([0, 1, 1]), np.array([0, 2, 3])
    # Texts of 4 GiB, of which there are none, and what stands for a missing one.
    tall = file.create_group("tall")
    tall.attrs.update({"pandas_type": "series", "encoding": "UTF-8"})
    tall["values"] = np.zeros(0)
    kind = h5t.C_S1.copy()
    kind.set_size((1 << 32) - 1)
    h5d.create(tall.id, b"index", kind, h5s.create_simple((0,)))
    tall["index"].attrs.update({"kind": "string", "nan_rep": "nan"})
    # A group of awkward arrays, and a member that none of them needs.
    awkward = file.create_group("awkward")
    awkward.attrs.update({"encoding-type": "awkward-array", "encoding-version": "0.1.0", "length": np.uint64(2)})
    one = '{"class":"NumpyArray","form_key":"%s"}'
    contents = ",".join(one % key for key in "ab")
    awkward.attrs["form"] = f'{{"class":"RecordArray","form_key":"n","fields":["a","b"],"contents":[{contents}]}}'
    awkward["a-data"], awkward["b-data"] = np.array([0, 2], BOOLEAN), np.array([0, 1], BOOLEAN)
    awkward["spare"] = np.arange(3)
    # Cells of texts in two columns, and one that is too long.
    for name, data in (("a", np.array([[97]], "u2")), ("long", np.zeros((1, (1 << 20) + 1), "u2"))):
        made = file.create_dataset(f"#refs#/{name}", data=data, chunks=data.shape, compression="gzip")
        made.attrs["MATLAB_class"] = np.bytes_("char")
    fields = file.create_group("struct")
    fields.attrs["MATLAB_class"] = np.bytes_("struct")
    fields["n"] = np.zeros((1, 2))
    fields["n"].attrs["MATLAB_class"] = np.bytes_("double")
    for name, cells in (("f", "aa"), ("g", "aa"), ("h", ["a", "long"])):
        fields.create_dataset(name, data=np.array([[file[f"#refs#/{cell}"].ref for cell in cells]], h5py.ref_dtype))
        fields[name].attrs["MATLAB_class"] = np.bytes_("cell")


RECIPES = [
    not_hdf5,
    empty,
    signature_only,
    truncated,
    truncated_end,
    truncated_superblock,
    zeroed_middle,
    superblock_nonsense,
    version_9,
    unequal_columns,
    bad_nrows,
    dangling_references,
    bad_categories,
    hard_link_cycle,
    cycle_uncounted,
    root_unlistable,
    newline_name,
    invalid_utf8,
    terminal_escapes,
    bad_values,
    bad_lists,
    bad_indexes,
    rows_2_62,
    deflate_bomb,
    zstd_bomb,
    columns_5000,
    attribute_1mb,
    deep_nesting,
    huge_chunks,
    external_passwd,
    external_link,
    external_cycle,
    virtual_elsewhere,
    corrupt_chunks,
    chunk_map_nonsense,
    chunk_index_damaged,
    chunk_index_latest,
    vlen_nowhere,
    heap_loop,
    attribute_loop,
    broken_references,
    bad_compounds,
    fields_3000,
    bad_frames,
    bad_pickles,
    bad_anndata,
    bad_anndata_06,
    bad_families,
    bad_lh5,
    bad_netcdf,
    bad_versions,
    amplified,
    gigabyte_elements,
    shared_lists,
    rows_without_elements,
    one_name_twice,
    links_of_one_name,
    chunk_keys_contradict,
    root_table,
    many_pickles,
    computed_rows,
    much_by_links,
    odd_parts,
]
NO_HDF5 = RECIPES[:8]


def build(recipe, path):
    """Writes one file."""
    path.unlink(missing_ok=True)
    if recipe in NO_HDF5 or getattr(recipe, "takes_path", False):
        recipe(path)
        return
    with h5py.File(path, "w", libver=getattr(recipe, "libver", "earliest")) as file:
        recipe(file)


def main():
    """Builds all files, or those named."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="*", help="names of files, without .h5")
    arguments = parser.parse_args()
    HOSTILE.mkdir(parents=True, exist_ok=True)
    for recipe in RECIPES:
        if arguments.only and recipe.__name__ not in arguments.only:
            continue
        path = HOSTILE / f"{recipe.__name__}.h5"
        build(recipe, path)
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
