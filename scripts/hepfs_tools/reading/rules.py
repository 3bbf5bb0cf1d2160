"""Small files that each break one rule of HEP001 in one way, and as many that break none, by h5py.

    python3 -m hepfs_tools.reading.rules write FOLDER            the files, and expected.json: which rules each breaks
    python3 -m hepfs_tools.reading.rules judge FOLDER H5COL      the July files once more, and what h5col says of each

H5COL is the folder of the package h5col (HDFGroup/h5col, `src`; and of pydantic, behind a colon), whose
`validate(deep=True)` is a second judge. It reads no references of H5T_STD_REF, so its files have H5T_STD_REF_OBJ.
"""

import json
import sys
from pathlib import Path

import h5py
import numpy as np
from h5py import h5a, h5p, h5s, h5t

from hepfs_tools.hep001.indexes import (
    add_bitmap,
    add_bloom,
    add_minmax,
    add_sorted_rows,
    april_hashes,
    chunks_of,
    link_both_ways,
    murmur3_x64_128,
    stamp,
)
from hepfs_tools.hep001.july import std_reference_attribute
from hepfs_tools.hep001.write import (
    BOOLEAN,
    april_table,
    boolean,
    column,
    fixed,
    fixed_list,
    leaf,
    list_level,
    nested,
    refs,
    string_values,
    strings,
    token,
)

ROWS, EXTENT, CHUNK = 100, 128, 32
CASES = []
REFERENCES = {"kind": "standard"}


def case(*expected, base="july", name=None):
    """A function that breaks the rules `expected` in a fresh good table; without any, the file stays good."""

    def add(function):
        CASES.append((name or function.__name__, base, expected, function))
        return function

    return add


# ---------------------------------------------------------------------------------------------------------------------
# Good tables


def terminated(obj, name, text, size=None):
    """A scalar, null-terminated ASCII string, which h5py's high-level interface cannot write."""
    if name in obj.attrs:
        del obj.attrs[name]
    kind = h5t.C_S1.copy()
    kind.set_size(size or len(text) + 1)
    kind.set_strpad(h5t.STR_NULLTERM)
    attribute = h5a.create(obj.id, name.encode(), kind, h5s.create(h5s.SCALAR))
    attribute.write(np.array(text.encode(), f"S{size or len(text) + 1}"), kind)


def reference(obj, name, *targets, scalar=False):
    """References of H5T_STD_REF, or of the kind that h5py writes."""
    if name in obj.attrs:
        del obj.attrs[name]
    if REFERENCES["kind"] == "object":
        obj.attrs.create(name, targets[0].ref if scalar else refs(*targets), dtype=h5py.ref_dtype)
        return
    std_reference_attribute(obj, name, *(target.name for target in targets), scalar=scalar)


def level(group, name, entries, write_values, **options):
    """A list column whose tokens are null-terminated."""
    made = list_level(group, name, entries, write_values, **options)
    fix_tokens(made)
    return made


def fix_tokens(group):
    for name in ("CLASS", "KIND"):
        if name in group.attrs:
            terminated(group, name, group.attrs[name].decode())
    for child in group.values():
        if isinstance(child, h5py.Group):
            fix_tokens(child)


def july(file):
    """A table of July with something of everything but search indexes."""
    table = file.create_group("t")
    terminated(table, "CLASS", "COLUMN_TABLE")
    terminated(table, "VERSION", "1.0")
    table.attrs["NROWS"] = np.uint64(ROWS)
    rows = np.arange(EXTENT)
    column(table, "id", rows, "u8", fill=2**64 - 1, chunk=CHUNK)
    x = column(table, "x", rows / 4, "f8", fill=9.969209968386869e36, chunk=CHUNK)
    x.attrs["valid_min"], x.attrs["valid_max"] = np.float64(0), np.float64(1000)
    x.attrs["units"] = fixed("m")
    column(table, "n", rows % 7, "i4", fill=-2147483647, chunk=CHUNK)
    column(table, "flag", rows % 2, BOOLEAN, chunk=CHUNK)
    kind = h5py.enum_dtype({"LOW": 0, "HIGH": 1, "MISSING": 2}, "i1")
    column(table, "level", rows % 3, kind, fill=2, chunk=CHUNK)
    column(table, "name", [b"n%d" % row for row in rows], "S8", fill=b"", chunk=CHUNK)
    codes = column(table, "label", rows % 3, "i1", fill=-127, chunk=CHUNK)
    labels = table.create_group("CATEGORIES").create_dataset("labels", data=np.array([b"a", b"b", b"c"], "S1"))
    labels.attrs["ordered"] = boolean(False)
    reference(codes, "CATEGORIES", labels, scalar=True)
    reference(table, "INDEX_COLUMNS", table["id"])
    table.attrs["_index"] = fixed("id")
    lists = [[row, row + 1][: row % 3] for row in range(ROWS)]
    level(table, "list", lists, leaf("i2", fill=-32767))
    level(table, "deep", [[one, []] for one in lists], nested(leaf("i4", fill=-1), nullable=True), nullable=True)
    level(table, "words", [["a", "ü" * row][: row % 3] for row in range(ROWS)], string_values(nullable=True))
    order = ["id", "x", "n", "flag", "level", "name", "label", "list", "deep", "words"]
    table.attrs["column-order"] = fixed_list(order)
    return table


class Growing:
    """A group whose datasets are chunked and unlimited."""

    def __init__(self, group):
        self.group = group

    def create_dataset(self, name, data, **_):
        data = np.asarray(data)
        return self.group.create_dataset(name, data=data, chunks=True, maxshape=(None,) * data.ndim)

    def __setitem__(self, name, data):
        self.create_dataset(name, data)

    def __getitem__(self, name):
        return self.group[name]


def indexed(file):
    """A table of July with search indexes of every kind."""
    table = july(file)
    table.attrs["GENERATION"] = np.uint64(3)
    group = Growing(table.create_group("SEARCH_INDEXES"))
    n, x = table["n"][:ROWS], table["x"][:ROWS]
    minmax = add_minmax(group, "n_minmax", n, CHUNK, fill=-2147483647)
    order = add_sorted_rows(group, "x_sorted", x)
    bitmap = add_bitmap(group, "n_bitmap", n, list(range(7)), reference="VALUES", beside="_values")
    reference(bitmap, "VALUES", group["n_bitmap_values"], scalar=True)
    bitmap.attrs["exhaustive"] = boolean(True)
    chunks = [[value.tobytes() for value in chunk] for chunk in chunks_of(n, CHUNK)]
    bloom = add_bloom(group, "n_bloom", chunks, 512, 3, lambda data: murmur3_x64_128(data, 7), "murmur3_x64_128_double")
    bloom.attrs["seed"] = np.uint32(7)
    stamp(3, ROWS, minmax, order, bitmap, bloom)
    reference(table["n"], "SEARCH_INDEX_LIST", minmax, bitmap, bloom)
    reference(table["x"], "SEARCH_INDEX_LIST", order)
    return table


def april(file):
    """A table of April with row labels, categories and search indexes."""
    table = april_table(file.create_group("t"), ["x", "n", "label"], _index="id")
    rows = np.arange(ROWS)
    x = column(table, "x", rows / 4, "f8", chunk=CHUNK)
    n = column(table, "n", rows % 7, "i4", fill=-1, chunk=CHUNK)
    n.attrs["description"] = fixed("Missing is -1.")
    label = column(table, "label", rows % 4 - 1, "i1")
    ids = column(table, "id", rows, "u8")
    labels = strings(table, "labels", ["a", "b", "c"])
    labels.attrs["encoding-type"] = fixed("categorical")
    labels.attrs["ordered"] = boolean(False)
    label.attrs.create("_categories", labels.ref, dtype=h5py.ref_dtype)
    for labelled in (x, n, label):
        labelled.attrs["_indexes"] = refs(ids)
    ids.attrs["_columns_list"] = refs(x, n, label)
    group = table.create_group("_search_indexes")
    minmax = add_minmax(group, "n__chunk_minmax", n[:], CHUNK, fill=-1)
    minmax.attrs["chunk_shape"] = np.array([CHUNK], "u8")
    order = add_sorted_rows(group, "x__sorted_rows", x[:])
    bitmap = add_bitmap(group, "n__bitmap", n[:], list(range(7)))
    chunks = [[value.tobytes() for value in chunk] for chunk in chunks_of(n[:], CHUNK)]
    bloom = add_bloom(group, "n__chunk_bloom", chunks, 512, 3, april_hashes, "murmur3_128_double")
    bloom.attrs["chunk_shape"] = np.array([CHUNK], "u8")
    link_both_ways(n, minmax, bitmap, bloom)
    link_both_ways(x, order)
    return table


BASES = {"july": july, "indexed": indexed, "april": april, "none": lambda file: file}


def renew(table, name, data, dtype=None, fill=None, **options):
    """A column once more, with other values or of another type; its attributes stay."""
    attributes = {key: table[name].attrs[key] for key in table[name].attrs if key != "CATEGORIES"}
    attributes = {key: fixed(value.decode()) if isinstance(value, bytes) else value for key, value in attributes.items()}
    del table[name]
    made = column(table, name, data, dtype, fill=fill, chunk=CHUNK, **options)
    for key, value in attributes.items():
        made.attrs[key] = value
    return made


def undefined(table, name):
    """The values of a column in a dataset without a fill value that was set."""
    data = table[name][:]
    del table[name]
    table.create_dataset(name, data=data, chunks=(CHUNK,), maxshape=(None,))


# ---------------------------------------------------------------------------------------------------------------------
# Good files


@case()
def good_july(table):
    pass


@case(base="indexed")
def good_indexed(table):
    pass


@case(base="april")
def good_april(table):
    pass


@case()
def good_empty(table):
    for name in list(table):
        del table[name]
    for name in ("INDEX_COLUMNS", "_index", "column-order"):
        del table.attrs[name]
    table.attrs["NROWS"] = np.uint64(0)


@case()
def good_reserved_rows(table):
    """What lies behind NROWS means nothing."""
    table["flag"].id.write(h5s.ALL, h5s.ALL, np.r_[np.zeros(ROWS), np.full(EXTENT - ROWS, 9)].astype("i1"), h5t.STD_I8LE)
    table["x"][ROWS:] = 5000
    table["label"][ROWS:] = 77


@case()
def good_recommended_fill(table):
    """The recommended fill value is right whatever lies beyond it."""
    table["n"][:2] = -2147483648, 5


@case()
def good_full_domain(table):
    """Where values reach both ends of their type nothing stands for missing ones."""
    undefined(table, "n")
    table["n"][:2] = -(2**31), 2**31 - 1


@case()
def good_missing(table):
    """The recommended fill values, in data."""
    table["x"][3] = 9.969209968386869e36
    table["n"][3] = -2147483647
    table["label"][3] = -127
    table["name"][3] = b""


@case()
def good_nan_fill(table):
    renew(table, "x", np.where(np.arange(EXTENT) % 5 == 0, np.nan, np.arange(EXTENT)), "f8", fill=np.nan)


@case()
def good_big_endian(table):
    del table.attrs["NROWS"]
    table.attrs.create("NROWS", ROWS, dtype=">u8")
    renew(table, "n", np.arange(EXTENT) % 7, ">i4", fill=-2147483647)


@case()
def good_shared_categories(table):
    other = column(table, "again", np.arange(EXTENT) % 3, "u1", fill=255, chunk=CHUNK)
    reference(other, "CATEGORIES", table["CATEGORIES/labels"], scalar=True)
    order = [*(name.decode() for name in table.attrs["column-order"]), "again"]
    table.attrs["column-order"] = fixed_list(order)


@case("hep001/index-stale", base="indexed")
def good_stale(table):
    """A stale index is no fault: it is a note."""
    table["SEARCH_INDEXES/n_minmax"].attrs["SOURCE_GENERATION"] = np.uint64(2)


@case("hep001/index-kind-unknown", base="indexed")
def good_unknown_kind(table):
    """Unknown kinds are ignored: a note."""
    index = table["SEARCH_INDEXES"].create_dataset("tree", data=np.arange(3))
    index.attrs["KIND"] = token("KDTREE")
    stamp(3, ROWS, index)


@case(base="april")
def good_april_categories_in_order(table):
    table.attrs["column-order"] = fixed_list(["x", "n", "label", "labels"])


@case(base="april")
def good_april_group(table):
    table.create_group("provenance")["when"] = 3


# ---------------------------------------------------------------------------------------------------------------------
# The table group


@case("hep001/class-nearly", base="none")
def class_lower(file):
    file.create_group("t").attrs["CLASS"] = token("column_table")


@case("hep001/class-nearly", base="none")
def class_spaces(file):
    file.create_group("t").attrs["CLASS"] = token("COLUMN_TABLE ")


@case("hep001/class-storage")
def class_variable(table):
    table.attrs["CLASS"] = "COLUMN_TABLE"


@case("hep001/class-storage")
def class_short(table):
    table.attrs["CLASS"] = token("COLUMN_TABLE")


@case("hep001/class-storage")
def class_long(table):
    terminated(table, "CLASS", "COLUMN_TABLE", 20)


@case("hep001/class-storage")
def class_utf8(table):
    table.attrs["CLASS"] = fixed("COLUMN_TABLE")


@case("hep001/class-storage")
def class_array(table):
    table.attrs["CLASS"] = np.array([b"COLUMN_TABLE"], "S13")


@case("hep001/token-padding")
def class_padded(table):
    table.attrs["CLASS"] = token("COLUMN_TABLE", 13)


@case("hep001/class-storage", base="april")
def april_class_variable(table):
    table.attrs["CLASS"] = "COLUMN_TABLE"


@case("hep001/version-missing")
def version_missing(table):
    del table.attrs["VERSION"]


@case("hep001/version-form")
def version_words(table):
    terminated(table, "VERSION", "one")


@case("hep001/version-major")
def version_future(table):
    terminated(table, "VERSION", "2.0")


@case("hep001/version-storage")
def version_variable(table):
    table.attrs["VERSION"] = "1.0"


@case("hep001/version-storage")
def version_number(table):
    table.attrs["VERSION"] = np.float64(1.0)


@case("hep001/nrows-missing")
def nrows_missing(table):
    del table.attrs["NROWS"]


@case("hep001/nrows-type")
def nrows_signed(table):
    table.attrs["NROWS"] = np.int64(ROWS)


@case("hep001/nrows-type")
def nrows_narrow(table):
    table.attrs["NROWS"] = np.uint32(ROWS)


@case("hep001/nrows-type")
def nrows_array(table):
    table.attrs["NROWS"] = np.array([ROWS], "u8")


@case("hep001/nrows-type")
def nrows_text(table):
    table.attrs["NROWS"] = fixed(str(ROWS))


@case("hep001/drafts-mixed")
def drafts_mixed(table):
    table["x"].attrs["_indexes"] = refs(table["id"])


@case("hep001/attribute-storage")
def title_variable(table):
    table.attrs["TITLE"] = "A title"


@case("hep001/attribute-storage")
def units_variable(table):
    table["x"].attrs["units"] = "m"


@case("hep001/attribute-storage")
def order_variable(table):
    names = [name.decode() for name in table.attrs["column-order"]]
    table.attrs.create("column-order", names, dtype=h5py.string_dtype())


@case("hep001/stranger")
def stranger_group(table):
    table.create_group("provenance")


@case("hep001/stranger")
def stranger_link(table):
    table["nowhere"] = h5py.SoftLink("/nothing")


@case("hep001/stranger")
def stranger_soft_column(table):
    table.file.move("t/n", "n")
    table["n"] = h5py.SoftLink("/n")


@case("hep001/stranger")
def stranger_type(table):
    table["type"] = np.dtype("i4")


@case("hep001/column-rank")
def column_matrix(table):
    table["image"] = np.zeros((ROWS, 3))


@case("hep001/column-rank", base="april")
def april_column_scalar(table):
    table["scalar"] = 3


@case("hep001/extent-below-nrows")
def column_short(table):
    table["n"].resize((50,))


@case("hep001/extents-differ")
def column_long(table):
    table["n"].resize((200,))


@case("hep001/extents-differ", base="april")
def april_column_short(table):
    data = table["label"][:50]
    keep = {name: table["label"].attrs[name] for name in table["label"].attrs}
    del table["label"]
    made = column(table, "label", data, "i1")
    made.attrs.create("_categories", keep["_categories"], dtype=h5py.ref_dtype)
    made.attrs["_indexes"] = refs(table["id"])
    table["id"].attrs["_columns_list"] = refs(table["x"], table["n"], made)


# ---------------------------------------------------------------------------------------------------------------------
# Order and labels


@case("hep001/column-order-missing")
def order_missing(table):
    del table.attrs["column-order"]


@case("hep001/column-order-type", "hep001/attribute-storage")
def order_numbers(table):
    table.attrs["column-order"] = np.arange(3)


@case("hep001/column-order-lacks")
def order_lacks(table):
    table.attrs["column-order"] = table.attrs["column-order"][:-1]


@case("hep001/column-order-lacks")
def order_lacks_list(table):
    names = [name.decode() for name in table.attrs["column-order"] if name != b"list"]
    table.attrs["column-order"] = fixed_list(names)


@case("hep001/column-order-twice")
def order_twice(table):
    names = [name.decode() for name in table.attrs["column-order"]]
    table.attrs["column-order"] = fixed_list([*names, "x"])


@case("hep001/column-order-stranger")
def order_stranger(table):
    names = [name.decode() for name in table.attrs["column-order"]]
    table.attrs["column-order"] = fixed_list([*names, "nothing"])


@case("hep001/column-order-stranger")
def order_categories(table):
    names = [name.decode() for name in table.attrs["column-order"]]
    table.attrs["column-order"] = fixed_list([*names, "labels"])


@case("hep001/index-columns-type", "hep001/index-unknown")
def labels_names(table):
    table.attrs["INDEX_COLUMNS"] = fixed_list(["id"])
    table.attrs["_index"] = fixed("nothing")


@case("hep001/index-columns-target")
def labels_elsewhere(table):
    del table.attrs["_index"]
    reference(table, "INDEX_COLUMNS", table["CATEGORIES/labels"])


@case("hep001/index-columns-target")
def labels_list(table):
    del table.attrs["_index"]
    reference(table, "INDEX_COLUMNS", table["list"])


@case("hep001/index-columns-target", "hep001/reference-old")
def labels_null(table):
    del table.attrs["_index"]
    table.attrs["INDEX_COLUMNS"] = refs(None)


@case("hep001/index-differs")
def labels_differ(table):
    table.attrs["_index"] = fixed("x")


@case("hep001/index-unknown")
def label_unknown(table):
    del table.attrs["INDEX_COLUMNS"]
    table.attrs["_index"] = fixed("nothing")


@case("hep001/index-link", base="april")
def april_label_one_way(table):
    del table["x"].attrs["_indexes"]


@case("hep001/index-link", base="april")
def april_label_other_way(table):
    table["id"].attrs["_columns_list"] = refs(table["x"], table["n"])


@case("hep001/reference-old")
def references_old(table):
    table.attrs["INDEX_COLUMNS"] = refs(table["id"])


@case("hep001/reference-type")
def search_list_numbers(table):
    table["x"].attrs["SEARCH_INDEX_LIST"] = np.arange(2)


@case("hep001/reference-lost", "hep001/reference-old")
def search_list_null(table):
    table["x"].attrs["SEARCH_INDEX_LIST"] = refs(None)


# ---------------------------------------------------------------------------------------------------------------------
# Columns


def add_column(table, name, data, dtype, fill, **options):
    made = column(table, name, data, dtype, fill=fill, chunk=CHUNK, **options)
    names = [one.decode() for one in table.attrs["column-order"]]
    table.attrs["column-order"] = fixed_list([*names, name])
    return made


for reserved in ("NROWS", "OFFSETS", "MASK", "CLASS", "valid_min", "GENERATION"):

    @case("hep001/name-reserved", name=f"name_{reserved}")
    def name_reserved(table, reserved=reserved):
        add_column(table, reserved, np.arange(EXTENT), "i4", -1)


@case("hep001/name-underscore")
def name_underscore(table):
    add_column(table, "_hidden", np.arange(EXTENT), "i4", -1)


@case("hep001/type-variable")
def type_variable(table):
    made = table.create_dataset("text", data=["a"] * EXTENT, dtype=h5py.string_dtype(), fillvalue="")
    assert made.fillvalue == b""
    names = [one.decode() for one in table.attrs["column-order"]]
    table.attrs["column-order"] = fixed_list([*names, "text"])


@case("hep001/type-nested")
def type_nested(table):
    dtype = np.dtype([("a", "i4"), ("b", "f8", 3)])
    add_column(table, "pair", np.zeros(EXTENT, dtype), dtype, np.array((-1, [9, 9, 9]), dtype))


@case("hep001/fill-missing")
def fill_missing(table):
    undefined(table, "n")


@case("hep001/fill-missing")
def fill_missing_text(table):
    undefined(table, "name")


@case("hep001/fill-valid")
def fill_valid(table):
    renew(table, "x", np.arange(EXTENT), "f8", fill=500)


@case("hep001/fill-valid")
def fill_valid_edge(table):
    renew(table, "x", np.arange(EXTENT), "f8", fill=1000)


@case("hep001/fill-among-values")
def fill_among(table):
    renew(table, "n", np.arange(EXTENT) - 20, "i4", fill=0)


@case("hep001/fill-member")
def fill_member(table):
    kind = h5py.enum_dtype({"LOW": 0, "HIGH": 1, "MISSING": 2}, "i1")
    renew(table, "level", np.arange(EXTENT) % 2, kind, fill=0)


@case("hep001/fill-unnamed")
def fill_unnamed(table):
    kind = h5py.enum_dtype({"LOW": 0, "HIGH": 1, "UNKNOWN": 2}, "i1")
    renew(table, "level", np.arange(EXTENT) % 3, kind, fill=-1)


@case("hep001/valid-range-type")
def valid_narrow(table):
    table["x"].attrs["valid_min"] = np.float32(0)


@case("hep001/valid-range-type")
def valid_text(table):
    table["x"].attrs["valid_max"] = fixed("1000")


@case("hep001/valid-range-type")
def valid_array(table):
    table["x"].attrs["valid_max"] = np.array([1000.0])


@case("hep001/valid-range-order", "hep001/valid-range-exceeded")
def valid_order(table):
    table["x"].attrs["valid_min"] = np.float64(2000)


@case("hep001/valid-range-order", "hep001/fill-missing", "hep001/valid-range-exceeded")
def valid_order_without_fill(table):
    undefined(table, "n")
    table["n"].attrs["valid_min"], table["n"].attrs["valid_max"] = np.int32(7), np.int32(0)


@case("hep001/valid-range-exceeded")
def valid_above(table):
    table["x"][50] = 1000.5


@case("hep001/valid-range-exceeded")
def valid_below(table):
    table["x"][:7] = -1


@case("hep001/mask-reserved")
def mask(table):
    reference(table["x"], "MASK", table["flag"], scalar=True)


@case("hep001/boolean-type")
def boolean_unsigned(table):
    renew(table, "flag", np.arange(EXTENT) % 2, h5py.enum_dtype({"FALSE": 0, "TRUE": 1}, "u1"))


@case("hep001/boolean-fill")
def boolean_fill(table):
    renew(table, "flag", np.arange(EXTENT) % 2, BOOLEAN, fill=0)


@case("hep001/boolean-value")
def boolean_value(table):
    data = np.arange(EXTENT, dtype="i1") % 2
    data[[9, 50]] = 2, -1
    table["flag"].id.write(h5s.ALL, h5s.ALL, data, h5t.STD_I8LE)


@case("hep001/code-name")
def code_unnamed(table):
    data = np.arange(EXTENT, dtype="i1") % 3
    data[70] = 9
    table["level"].id.write(h5s.ALL, h5s.ALL, data, h5t.STD_I8LE)


@case("hep001/text-utf8")
def text_latin(table):
    table["name"][5] = b"K\xf6ln"


# ---------------------------------------------------------------------------------------------------------------------
# Categories


@case("hep001/category-column")
def category_floats(table):
    codes = renew(table, "label", np.arange(EXTENT) % 3, "f4", fill=-1)
    reference(codes, "CATEGORIES", table["CATEGORIES/labels"], scalar=True)


@case("hep001/category-column", "hep001/category-orphan", "hep001/reference-old")
def category_null(table):
    table["label"].attrs.create("CATEGORIES", h5py.Reference(), dtype=h5py.ref_dtype)


@case("hep001/category-range")
def category_above(table):
    table["label"][[9, 60]] = 3, 100


@case("hep001/category-fill")
def category_fill(table):
    codes = renew(table, "label", np.arange(EXTENT) % 3, "i1", fill=2)
    reference(codes, "CATEGORIES", table["CATEGORIES/labels"], scalar=True)


@case("hep001/category-place")
def category_outside(table):
    table.file["labels"] = np.array([b"a", b"b", b"c"])
    del table["CATEGORIES/labels"]
    reference(table["label"], "CATEGORIES", table.file["labels"], scalar=True)


@case("hep001/category-content")
def category_group(table):
    table["CATEGORIES"].create_group("more")


@case("hep001/category-content")
def category_matrix(table):
    table["CATEGORIES"]["matrix"] = np.zeros((2, 2))


@case("hep001/category-orphan")
def category_orphan(table):
    table["CATEGORIES"]["unused"] = np.array([b"a"])


@case("hep001/category-ordered")
def category_ordered(table):
    table["CATEGORIES/labels"].attrs["ordered"] = np.int64(1)


@case("hep001/category-twice")
def category_twice(table):
    table["CATEGORIES/labels"][2] = b"a"


@case("hep001/category-encoding", base="april")
def april_category_encoding(table):
    del table["labels"].attrs["encoding-type"]


@case("hep001/category-ordered", base="april")
def april_category_ordered(table):
    del table["labels"].attrs["ordered"]


@case("hep001/category-place", base="april")
def april_category_place(table):
    group = table.parent.create_group("elsewhere")
    labels = strings(group, "labels", ["a", "b", "c"])
    labels.attrs["encoding-type"] = fixed("categorical")
    labels.attrs["ordered"] = boolean(False)
    del table["labels"]
    table["label"].attrs.create("_categories", labels.ref, dtype=h5py.ref_dtype)


# ---------------------------------------------------------------------------------------------------------------------
# List columns


@case("hep001/list-class")
def list_class(table):
    table["list"].attrs["CLASS"] = "LIST_COLUMN"


@case("hep001/list-kind")
def list_kind_variable(table):
    table["list"].attrs["KIND"] = "OFFSETS"


@case("hep001/list-kind")
def list_kind_missing(table):
    del table["list"].attrs["KIND"]


@case("hep001/list-kind-unknown")
def list_kind_unknown(table):
    terminated(table["list"], "KIND", "VIEWS")


@case("hep001/list-members")
def list_without_values(table):
    del table["list/VALUES"]


@case("hep001/list-members")
def list_offsets_floats(table):
    offsets = table["list/OFFSETS"][:]
    del table["list/OFFSETS"]
    table["list/OFFSETS"] = offsets.astype("f8")


@case("hep001/list-stranger")
def list_stranger(table):
    table["list/NOTES"] = np.arange(3)


@case("hep001/list-stranger")
def list_stranger_in_strings(table):
    table["words/VALUES/NOTES"] = np.arange(3)


def offsets_of(table, path, change):
    offsets = table[path][:]
    change(offsets)
    table[path][:] = offsets


@case("hep001/list-offsets-type")
def list_offsets_signed(table):
    offsets = table["list/OFFSETS"][:]
    del table["list/OFFSETS"]
    table["list/OFFSETS"] = offsets.astype("i8")


@case("hep001/list-offsets-first")
def list_first(table):
    offsets_of(table, "list/OFFSETS", lambda offsets: offsets.__setitem__(slice(0, 2), 1))
    table["list/OFFSETS"][1] = 1


@case("hep001/list-offsets-order")
def list_falling(table):
    offsets_of(table, "list/OFFSETS", lambda offsets: offsets.__setitem__(50, 0))


@case("hep001/list-offsets-order")
def list_beyond(table):
    offsets_of(table, "list/OFFSETS", lambda offsets: offsets.__setitem__(ROWS, 10_000))


@case("hep001/list-offsets-order")
def list_falling_below(table):
    offsets_of(table, "deep/VALUES/OFFSETS", lambda offsets: offsets.__setitem__(50, 0))


@case("hep001/list-offsets-order")
def list_falling_strings(table):
    offsets_of(table, "words/VALUES/OFFSETS", lambda offsets: offsets.__setitem__(50, 0))


@case("hep001/list-extent")
def list_short(table):
    offsets = table["list/OFFSETS"][:50]
    del table["list/OFFSETS"]
    table["list/OFFSETS"] = offsets


@case("hep001/list-extent")
def list_mask_short(table):
    del table["deep/MASK"]
    table["deep"].create_dataset("MASK", data=np.ones(50, "i1"), dtype=BOOLEAN)


@case("hep001/list-null")
def list_null(table):
    mask = table["deep/MASK"][:]
    mask[5] = 0
    table["deep/MASK"][:] = mask


@case("hep001/boolean-value")
def list_mask_value(table):
    data = np.ones(table["words/VALUES/MASK"].shape[0], "i1")
    data[7] = 5
    offsets = table["words/VALUES/OFFSETS"][:]
    table["words/VALUES/MASK"].id.write(h5s.ALL, h5s.ALL, data, h5t.STD_I8LE)
    shift = offsets[8] - offsets[7]
    offsets[8:] -= shift
    chars = table["words/VALUES/CHARS"][:]
    begin = int(offsets[7])
    del table["words/VALUES/CHARS"]
    table["words/VALUES/CHARS"] = np.delete(chars, slice(begin, begin + int(shift)))
    table["words/VALUES/OFFSETS"][:] = offsets


@case("hep001/text-utf8")
def list_text(table):
    chars = table["words/VALUES/CHARS"][:]
    chars[chars == ord("a")] = 0xFF
    table["words/VALUES/CHARS"][:] = chars


@case("hep001/list-variable")
def list_variable(table):
    count = table["list/VALUES"].shape[0]
    del table["list/VALUES"]
    table["list"].create_dataset("VALUES", data=["a"] * count, dtype=h5py.string_dtype())


@case("hep001/fill-valid")
def list_fill_valid(table):
    table["list/VALUES"].attrs["valid_min"] = np.int16(-32768)


@case("hep001/list-indexed", base="indexed")
def list_indexed(table):
    reference(table["list"], "SEARCH_INDEX_LIST", table["SEARCH_INDEXES/n_minmax"])
    del table["n"].attrs["SEARCH_INDEX_LIST"]
    for name in ("n_minmax", "n_bitmap", "n_bloom", "n_bitmap_values"):
        del table["SEARCH_INDEXES"][name]
    del table["list"].attrs["SEARCH_INDEX_LIST"]
    reference(table["list"], "SEARCH_INDEX_LIST")


# ---------------------------------------------------------------------------------------------------------------------
# Search indexes


@case("hep001/index-content", base="indexed")
def index_group(table):
    table["SEARCH_INDEXES"].create_group("more")


@case("hep001/index-place", base="indexed")
def index_elsewhere(table):
    reference(table["name"], "SEARCH_INDEX_LIST", table["CATEGORIES/labels"])


@case("hep001/index-kind", base="indexed")
def index_without_kind(table):
    table["SEARCH_INDEXES"]["unused"] = np.arange(3)


@case("hep001/index-kind", base="indexed")
def index_kind_missing(table):
    del table["SEARCH_INDEXES/n_minmax"].attrs["KIND"]


@case("hep001/index-kind-storage", base="indexed")
def index_kind_variable(table):
    table["SEARCH_INDEXES/n_minmax"].attrs["KIND"] = "CHUNK_MINMAX"


@case("hep001/index-column", base="indexed")
def index_of_two(table):
    index = table["SEARCH_INDEXES/n_minmax"]
    reference(table["id"], "SEARCH_INDEX_LIST", index)


@case("hep001/index-orphan", base="indexed")
def index_orphan(table):
    del table["x"].attrs["SEARCH_INDEX_LIST"]


@case("hep001/generation-missing", base="indexed")
def generation_missing(table):
    del table.attrs["GENERATION"]


@case("hep001/generation-missing", base="indexed")
def generation_signed(table):
    table.attrs["GENERATION"] = np.int64(3)


@case("hep001/index-tokens", base="indexed")
def tokens_missing(table):
    del table["SEARCH_INDEXES/n_minmax"].attrs["SOURCE_NROWS"]


@case("hep001/index-tokens", base="indexed")
def tokens_narrow(table):
    table["SEARCH_INDEXES/n_minmax"].attrs["SOURCE_GENERATION"] = np.uint32(3)


@case("hep001/minmax-min", base="indexed")
def minmax_wrong(table):
    index = table["SEARCH_INDEXES/n_minmax"]
    entries = index[:]
    entries["min"][1] = 5
    index[:] = entries


@case("hep001/minmax-n", base="indexed")
def minmax_n(table):
    index = table["SEARCH_INDEXES/n_minmax"]
    entries = index[:]
    entries["n"][3] = 32
    index[:] = entries


@case("hep001/sorted-order", base="indexed")
def sorted_wrong(table):
    index = table["SEARCH_INDEXES/x_sorted"]
    index[:2] = index[:2][::-1]


@case("hep001/sorted-ordered", base="indexed")
def sorted_ordered(table):
    table["SEARCH_INDEXES/x_sorted"].attrs["ordered"] = boolean(False)


@case("hep001/sorted-tails-missing", base="indexed")
def sorted_tails(table):
    del table["SEARCH_INDEXES/x_sorted"].attrs["nan_tail_length"]


@case("hep001/index-attribute", base="indexed")
def sorted_tails_signed(table):
    table["SEARCH_INDEXES/x_sorted"].attrs["nan_tail_length"] = np.int64(0)


@case("hep001/index-attribute", base="indexed")
def bloom_k_wide(table):
    table["SEARCH_INDEXES/n_bloom"].attrs["k"] = np.uint64(3)


@case("hep001/boolean-type", base="indexed")
def bitmap_exhaustive_number(table):
    table["SEARCH_INDEXES/n_bitmap"].attrs["exhaustive"] = np.int8(1)


@case("hep001/index-fixed", base="indexed")
def index_fixed(table):
    index = table["SEARCH_INDEXES/x_sorted"]
    data, attributes = index[:], {name: index.attrs[name] for name in index.attrs}
    del table["SEARCH_INDEXES/x_sorted"]
    made = table["SEARCH_INDEXES"].create_dataset("x_sorted", data=data)
    for name, value in attributes.items():
        made.attrs[name] = value
    reference(table["x"], "SEARCH_INDEX_LIST", made)


@case("hep001/generation-missing")
def generation_text(table):
    table.attrs["GENERATION"] = fixed("3")


@case("hep001/fill-undocumented", base="april")
def april_fill_undocumented(table):
    del table["n"].attrs["description"]


@case("hep001/sorted-shape", base="indexed")
def sorted_short(table):
    index = table["SEARCH_INDEXES/x_sorted"]
    data, attributes = index[:50], {name: index.attrs[name] for name in index.attrs}
    del table["SEARCH_INDEXES/x_sorted"]
    made = Growing(table["SEARCH_INDEXES"]).create_dataset("x_sorted", data)
    for name, value in attributes.items():
        made.attrs[name] = value
    reference(table["x"], "SEARCH_INDEX_LIST", made)


@case("hep001/bitmap-bits", base="indexed")
def bitmap_wrong(table):
    table["SEARCH_INDEXES/n_bitmap"][0, 0] ^= 2


@case("hep001/bitmap-values", base="indexed")
def bitmap_values_gone(table):
    reference(table["SEARCH_INDEXES/n_bitmap"], "VALUES", table["n"], scalar=True)
    del table["SEARCH_INDEXES/n_bitmap_values"]


@case("hep001/bloom-values", base="indexed")
def bloom_wrong(table):
    table["SEARCH_INDEXES/n_bloom"][1] = 0


@case("hep001/bloom-hash-family", base="indexed")
def bloom_family(table):
    table["SEARCH_INDEXES/n_bloom"].attrs["hash_family"] = token("murmur3_x86")


@case("hep001/bloom-m-bits", base="indexed")
def bloom_bits(table):
    table["SEARCH_INDEXES/n_bloom"].attrs["m_bits"] = np.uint64(500)


@case("hep001/index-backlink", base="april")
def april_index_one_way(table):
    table["_search_indexes/x__sorted_rows"].attrs["_columns_list"] = refs(table["x"], table["n"])


@case("hep001/index-backlink", base="april")
def april_index_lists_no_column(table):
    del table["_search_indexes/x__sorted_rows"].attrs["_columns_list"]


@case("hep001/index-backlink", base="april")
def april_index_unlinked(table):
    kept = [one for one in table["x"].attrs["_search_indexes"] if "x__sorted" not in table.file[one].name]
    table["x"].attrs["_search_indexes"] = np.array(kept, dtype=h5py.ref_dtype)
    del table["_search_indexes/x__sorted_rows"].attrs["_columns_list"]


@case("hep001/index-chunk-shape", base="april")
def april_chunk_shape(table):
    table["_search_indexes/n__chunk_minmax"].attrs["chunk_shape"] = np.array([CHUNK // 2], "u8")


# ---------------------------------------------------------------------------------------------------------------------
# What cannot be read


@case("file/unreadable")
def damaged_chunk(table):
    made = add_column(table, "packed", np.arange(EXTENT), "i4", -1, compression="gzip")
    table.file.attrs["spoil"] = made.id.get_chunk_info(1).byte_offset


@case("file/unreadable")
def unknown_filter(table):
    plist = h5p.create(h5p.DATASET_CREATE)
    plist.set_chunk((CHUNK,))
    plist.set_fill_value(np.array(-1, "i4"))
    plist.set_filter(32_111, h5py.h5z.FLAG_OPTIONAL, (1,))
    space = h5s.create_simple((EXTENT,), (h5s.UNLIMITED,))
    dataset = h5py.h5d.create(table.id, b"odd", h5t.STD_I32LE, space, plist)
    for start in range(0, EXTENT, CHUNK):
        dataset.write_direct_chunk((start,), b"\1" * 100, 0)
    names = [one.decode() for one in table.attrs["column-order"]]
    table.attrs["column-order"] = fixed_list([*names, "odd"])


def write(folder):
    """Writes all files, and which rules each breaks."""
    folder = Path(folder)
    expected = {}
    for name, base, rules, function in CASES:
        path = folder / f"{name}.h5"
        with h5py.File(path, "w", libver=("v110", "v112") if base != "april" else None) as file:
            function(BASES[base](file))
            spoil = file.attrs.get("spoil")
        if spoil is not None:
            with open(path, "r+b") as raw:
                raw.seek(int(spoil))
                raw.write(b"spoilt!!")
        assert name not in expected, name
        expected[name] = {"draft": base, "rules": sorted(rules)}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1))
    print(f"{len(expected)} files")


def judge(folder, h5col):
    """What h5col says of the July files."""
    sys.path[:0] = h5col.split(":")
    from h5col import Table

    REFERENCES["kind"] = "object"
    write(folder)
    expected = json.loads((Path(folder) / "expected.json").read_text())
    told = missed = alarms = 0
    for name, case in expected.items():
        if case["draft"] not in ("july", "indexed"):
            continue
        try:
            with h5py.File(Path(folder) / f"{name}.h5") as file:
                Table.open(file["t"]).validate(deep=True)
            said = None
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        is_bad = bool(case["rules"]) and not name.startswith("good_")
        told += is_bad and said is not None
        missed += is_bad and said is None
        alarms += not is_bad and said is not None
        print(f"{name}: {', '.join(case['rules']) or 'good'}: {said or '-'}")
    print(f"h5col: {told} told, {missed} missed, {alarms} good files refused")


if __name__ == "__main__":
    {"write": write, "judge": judge}[sys.argv[1]](*sys.argv[2:])
