"""Reads HEP001 tables with h5py and libhdf5 alone: the independent truth beside which hepfs is held.

`describe(path)` gives what `tests/data/NAME.expected.json` holds; its form is documented in `fixtures/hep001.py`.
Nothing here is fast; everything is decoded value by value from the stored bytes.
"""

import ctypes
import hashlib
import math
import struct
from collections import Counter
from fractions import Fraction

import h5py
import numpy as np
from h5py import h5d, h5t

from . import instants, libhdf5

REFERENCE_ATTRIBUTES = {
    "labels": ("_indexes", "INDEX_LIST"),
    "labelled": ("_columns_list", "COLUMN_LIST"),
    "categories": ("CATEGORIES", "_categories"),
}
RESERVED_IN_TABLE = ("CATEGORIES", "SEARCH_INDEXES", "_search_indexes")
FLOATS = {"<f2", ">f2", "<f4", ">f4", "<f8", ">f8"}


# ---------------------------------------------------------------------------------------------------------------------
# Values: stored bytes to cells


def text(data):
    """Bytes as text; what is not UTF-8 becomes U+FFFD."""
    return data.decode("utf-8", "replace")


def byte_order(type_id):
    """'little' or 'big'."""
    return "big" if type_id.get_order() == h5t.ORDER_BE else "little"


def integer_value(type_id, data):
    """The number in the significant bits of an integer or bitfield."""
    precision, offset = libhdf5.significant_bits(type_id)
    bits = int.from_bytes(data, byte_order(type_id)) >> offset & (1 << precision) - 1
    signed = type_id.get_class() == h5t.INTEGER and type_id.get_sign() == h5t.SGN_2
    return bits - (1 << precision) if signed and bits >> (precision - 1) else bits


def ieee_float(type_id):
    """'<f4' and the like for IEEE binary16, 32 and 64; `None` for any other floating-point type."""
    layout = {2: (15, 10, 5, 0, 10), 4: (31, 23, 8, 0, 23), 8: (63, 52, 11, 0, 52)}.get(type_id.get_size())
    standard = {2: 15, 4: 127, 8: 1023}.get(type_id.get_size())
    if layout is None or type_id.get_fields() != layout or type_id.get_ebias() != standard:
        return None
    if type_id.get_order() not in (h5t.ORDER_LE, h5t.ORDER_BE) or type_id.get_offset() != 0:
        return None
    return (">" if type_id.get_order() == h5t.ORDER_BE else "<") + f"f{type_id.get_size()}"


def long_double(type_id, data):
    """The float64 nearest to a number of x87 or binary128, by Python's fractions; `None` of any other type."""
    fraction, sign = {(79, 64, 15, 0, 64): (63, 79), (127, 112, 15, 0, 112): (112, 127)}.get(type_id.get_fields(), (0, 0))
    if not sign:
        return None
    bits = int.from_bytes(data, byte_order(type_id))
    exponent, below = bits >> sign - 15 & 0x7FFF, bits & (1 << fraction) - 1
    leading = bits >> 63 & 1 if fraction == 63 else exponent > 0
    negative = -1.0 if bits >> sign & 1 else 1.0
    if exponent == 0x7FFF:
        return math.nan if below else math.copysign(math.inf, negative)
    number = Fraction(below | leading << fraction) * Fraction(2) ** (max(exponent, 1) - 16383 - fraction)
    try:
        return math.copysign(float(number), negative)
    except OverflowError:
        return math.copysign(math.inf, negative)


def float_value(type_id, data):
    """The bit pattern of an IEEE float, most significant digit first, of a long double that of the nearest float64; other
    floats as stored bytes."""
    nearest = long_double(type_id, data)
    if nearest is not None:
        return {"f64": struct.pack(">d", nearest).hex()}
    if ieee_float(type_id) is None:
        return data.hex()
    return {f"f{8 * len(data)}": (data[::-1] if byte_order(type_id) == "little" else data).hex()}


def fixed_string(type_id, data):
    """A fixed-length string without its padding."""
    if type_id.get_strpad() == h5t.STR_NULLTERM:
        return data.split(b"\0", 1)[0]
    return data.rstrip(b" " if type_id.get_strpad() == h5t.STR_SPACEPAD else b"\0")


def variable_string(data):
    """A `char *`; a null pointer is the empty string."""
    pointer = struct.unpack("=Q", data)[0]
    return ctypes.string_at(pointer) if pointer else b""


def string_bytes(type_id, data):
    """A string as it is stored, without its padding."""
    return variable_string(data) if type_id.is_variable_str() else fixed_string(type_id, data)


def members(type_id):
    """Names and values of an enumeration."""
    base = type_id.get_super()
    return {
        text(type_id.get_member_name(i)): integer_value(base, libhdf5.enum_member(type_id, i))
        for i in range(type_id.get_nmembers())
    }


def is_boolean(type_id):
    """The HEP001 boolean: one byte, exactly FALSE = 0 and TRUE = 1."""
    return type_id.get_size() == 1 and members(type_id) == {"FALSE": 0, "TRUE": 1}


def enum_value(type_id, data):
    """A boolean, a member's name, or the number; an invalid boolean is `None`."""
    code = integer_value(type_id.get_super(), data)
    if is_boolean(type_id):
        return {0: False, 1: True}.get(code)
    names = {value: name for name, value in members(type_id).items()}
    return names.get(code, code)


def compound_fields(type_id):
    """`(name, offset, type)` of each field."""
    return [
        (type_id.get_member_name(i).decode(), type_id.get_member_offset(i), type_id.get_member_type(i))
        for i in range(type_id.get_nmembers())
    ]


def complex_part(type_id):
    """Type of the two parts if this is a complex number: native, or h5py's compound of `r` and `i`."""
    if type_id.get_class() == h5t.COMPLEX:
        return type_id.get_super()
    if type_id.get_class() != h5t.COMPOUND:
        return None
    fields = compound_fields(type_id)
    if [name for name, _, _ in fields] != ["r", "i"] or fields[0][2] != fields[1][2]:
        return None
    part = fields[0][2]
    packed = [offset for _, offset, _ in fields] == [0, part.get_size()] and type_id.get_size() == 2 * part.get_size()
    return part if packed and part.get_class() == h5t.FLOAT and ieee_float(part) else None


def region_value(path, space):
    """A selection: path, and boxes (inclusive corners) or points."""
    if space.get_select_type() == h5py.h5s.SEL_POINTS:
        return {"path": path, "points": [[int(x) for x in p] for p in space.get_select_elem_pointlist()]}
    if space.get_select_type() == h5py.h5s.SEL_HYPERSLABS:
        blocks = space.get_select_hyper_blocklist()
        return {"path": path, "boxes": [[[int(x) for x in corner] for corner in block] for block in blocks]}
    return {"path": path, "all": space.get_select_type() == h5py.h5s.SEL_ALL}


def reference_value(type_id, data, file_id):
    """`{"path": …}` (with the selection), or `None` for null and dangling references."""
    # Under a sequence, libhdf5 does not find them equal.
    if type_id.equal(h5t.STD_REF_OBJ) or len(data) == 8:
        path = libhdf5.old_reference_path(file_id, 0, data)
        return path and {"path": path}
    if type_id.equal(h5t.STD_REF_DSETREG) or len(data) == 12:
        path = libhdf5.old_reference_path(file_id, 1, data)
        return path and region_value(path, libhdf5.old_region(file_id, data))
    target = libhdf5.std_reference_target(data)
    if target and target[0] == "region2":
        return region_value(target[1], libhdf5.std_region(data))
    return target and {"path": target[1], "kind": target[0]}


def array_value(type_id, data, file_id):
    """Nested lists of an array type."""
    base = type_id.get_super()
    size = base.get_size()
    flat = [value(base, data[i : i + size], file_id) for i in range(0, len(data), size)]
    for extent in reversed(type_id.get_array_dims()[1:]):
        flat = [flat[i : i + extent] for i in range(0, len(flat), extent)]
    return flat


def sequence_value(type_id, data, file_id):
    """The list behind an `hvl_t`."""
    length, pointer = struct.unpack("=QQ", data)
    base = type_id.get_super()
    size = base.get_size()
    elements = ctypes.string_at(pointer, length * size) if length else b""
    return [value(base, elements[i * size : (i + 1) * size], file_id) for i in range(length)]


def value(type_id, data, file_id):
    """One element as JSON data (floats and references as small objects: see `fixtures/hep001.py`)."""
    kind = type_id.get_class()
    part = complex_part(type_id)
    if part is not None:
        half = part.get_size()
        return {"re": value(part, data[:half], file_id), "im": value(part, data[half:], file_id)}
    if kind in (h5t.INTEGER, h5t.BITFIELD):
        return integer_value(type_id, data) if type_id.get_size() <= 8 else data.hex()
    if kind == h5t.FLOAT:
        return float_value(type_id, data)
    if kind == h5t.STRING:
        return text(string_bytes(type_id, data))
    if kind == h5t.ENUM:
        return enum_value(type_id, data)
    if kind == h5t.COMPOUND:
        return {
            name: value(field, data[offset : offset + field.get_size()], file_id)
            for name, offset, field in compound_fields(type_id)
        }
    if kind == h5t.ARRAY:
        return array_value(type_id, data, file_id)
    if kind == h5t.VLEN:
        return sequence_value(type_id, data, file_id)
    if kind == h5t.REFERENCE:
        return reference_value(type_id, data, file_id)
    return data.hex()  # opaque, time


def cell(type_id, decoded):
    """A decoded value as the CSV field that shows it."""
    if decoded is None:
        return None
    if isinstance(decoded, bool):
        return "true" if decoded else "false"
    if isinstance(decoded, int):
        return str(decoded)
    if isinstance(decoded, dict) and type_id.get_class() == h5t.FLOAT:
        return decoded
    if type_id.get_class() == h5t.REFERENCE:
        return {"reference": decoded}
    return {"json": decoded} if isinstance(decoded, (dict, list)) else decoded


# ---------------------------------------------------------------------------------------------------------------------
# Datasets


def time_scale(dataset):
    """Seconds of a unit and of the epoch where the integers of a line or a scalar stand for instants."""
    if dataset.id.get_type().get_class() != h5t.INTEGER or dataset.ndim > 1:
        return None
    if any(name in dataset.attrs for name in ("scale_factor", "add_offset")):
        return None
    return instants.scale(string_attribute(dataset, "units"), string_attribute(dataset, "calendar"))


def shown_cells(dataset, values):
    """Decoded values as CSV fields."""
    scale, type_id = time_scale(dataset), dataset.id.get_type()
    if scale is None:
        return [cell(type_id, v) for v in values]
    return [None if v is None else instants.text(v, *scale) for v in values]


def explicit_fill(dataset):
    """The fill value as raw bytes where the producer set one."""
    plist = dataset.id.get_create_plist()
    if plist.fill_value_defined() != h5d.FILL_VALUE_USER_DEFINED:
        return None
    return libhdf5.read_fill(plist, dataset.id.get_type())


def is_nan(type_id, data):
    """Whether an element is an IEEE NaN."""
    kind = ieee_float(type_id) if type_id.get_class() == h5t.FLOAT else None
    return kind is not None and bool(np.isnan(np.frombuffer(data, kind)[0]))


def missing_test(type_id, fill, file_id):
    """The canonical test of HEP001: `isnan(fill) ? isnan(v) : v == fill`."""
    if fill is None:
        return lambda data: False
    if is_nan(type_id, fill):
        return lambda data: is_nan(type_id, data)
    kind = ieee_float(type_id) if type_id.get_class() == h5t.FLOAT else None
    if kind is not None:
        # As numbers: -0 equals 0.
        return lambda data: bool(np.frombuffer(data, kind)[0] == np.frombuffer(fill, kind)[0])
    wanted = value(type_id, fill, file_id)
    return lambda data: value(type_id, data, file_id) == wanted


def elements(dataset, count=None):
    """The stored elements, one `bytes` each; only the first `count`."""
    type_id = dataset.id.get_type()
    size, total = type_id.get_size(), dataset.size
    data = libhdf5.read_elements(dataset.id, type_id, total)
    return [data[i * size : (i + 1) * size] for i in range(total if count is None else min(count, total))]


def decoded(dataset, count=None):
    """Values, `None` for missing ones."""
    type_id, file_id = dataset.id.get_type(), dataset.file.id
    missing = missing_test(type_id, explicit_fill(dataset), file_id)
    return [None if missing(e) else value(type_id, e, file_id) for e in elements(dataset, count)]


def declared_fill(dataset):
    """The attribute `_FillValue` as raw bytes, where it is one value that the dataset can have.

    Booleans have none, nor have compounds, except those that are complex numbers.
    """
    type_id = dataset.id.get_type()
    is_flag = type_id.get_class() == h5t.ENUM and is_boolean(type_id)
    if is_record(type_id) or is_flag or "_FillValue" not in dataset.attrs:
        return None
    attribute = h5py.h5a.open(dataset.id, b"_FillValue")
    space = attribute.get_space()
    is_one = space.get_simple_extent_type() != h5py.h5s.NULL and space.get_simple_extent_npoints() == 1
    if not is_one:
        return None
    if attribute.get_type().equal(type_id):
        return libhdf5.read_attribute(attribute, type_id, 1)
    stated = np.ravel(dataset.attrs["_FillValue"])[0]
    if not isinstance(stated, np.number) or dataset.dtype.kind not in "iuf":
        return None
    own = stated.astype(dataset.dtype)
    return own.tobytes() if own == stated or (own != own and stated != stated) else None


def is_fixed(type_id):
    """Whether an element holds all its bytes itself."""
    kind = type_id.get_class()
    if kind == h5t.STRING:
        return not type_id.is_variable_str()
    if kind == h5t.COMPOUND:
        return all(is_fixed(field) for _, _, field in compound_fields(type_id))
    if kind == h5t.ARRAY:
        return is_fixed(type_id.get_super())
    return kind != h5t.VLEN


def has_reference(type_id):
    """Whether there is a reference in a type."""
    kind = type_id.get_class()
    if kind == h5t.COMPOUND:
        return any(has_reference(field) for _, _, field in compound_fields(type_id))
    return kind == h5t.REFERENCE or (kind in (h5t.ARRAY, h5t.VLEN) and has_reference(type_id.get_super()))


def npy_dtype(type_id):
    """NumPy's type for the stored bytes, `None` where there is none."""
    kind, size = type_id.get_class(), type_id.get_size()
    order = "|" if size == 1 else (">" if kind != h5t.COMPOUND and byte_order_or_none(type_id) == "big" else "<")
    part = complex_part(type_id)
    if part is not None:
        floats = ieee_float(part)
        return np.dtype(f"{floats[0]}c{size}") if floats and floats[1:] in ("f4", "f8") else None
    if kind == h5t.INTEGER:
        sign = "i" if type_id.get_sign() == h5t.SGN_2 else "u"
        return np.dtype(f"{order}{sign}{size}") if size in (1, 2, 4, 8) else np.dtype(f"|V{size}")
    if kind == h5t.BITFIELD:
        return np.dtype(f"{order}u{size}") if size in (1, 2, 4, 8) else np.dtype(f"|V{size}")
    if kind == h5t.FLOAT:
        return np.dtype(ieee_float(type_id) or f"|V{size}")
    if kind == h5t.STRING:
        return None if type_id.is_variable_str() else np.dtype(f"|S{size}")
    if kind == h5t.ENUM:
        return np.dtype("?") if is_boolean(type_id) else npy_dtype(type_id.get_super())
    if kind in (h5t.OPAQUE, h5t.TIME):
        return np.dtype(f"|V{size}")
    if kind == h5t.ARRAY:
        base = npy_dtype(type_id.get_super())
        return base and np.dtype((base, type_id.get_array_dims()))
    if kind == h5t.COMPOUND:
        return compound_dtype(type_id)
    return None


def byte_order_or_none(type_id):
    """Byte order where the type has one."""
    return byte_order(type_id) if hasattr(type_id, "get_order") else None


def compound_dtype(type_id):
    """Structured type with the file's offsets."""
    fields = compound_fields(type_id)
    dtypes = [npy_dtype(field) for _, _, field in fields]
    if any(dtype is None for dtype in dtypes):
        return None
    names, offsets = [f[0] for f in fields], [f[1] for f in fields]
    return np.dtype({"names": names, "formats": dtypes, "offsets": offsets, "itemsize": type_id.get_size()})


def unsettled(type_id):
    """What the `.npy` shows is not settled: integers and bitfields with unused bits, complex numbers of halves."""
    kind = type_id.get_class()
    if complex_part(type_id) is not None:
        return npy_dtype(type_id) is None
    if kind not in (h5t.INTEGER, h5t.BITFIELD):
        return False
    return libhdf5.significant_bits(type_id) != (8 * type_id.get_size(), 0)


def stored(dataset, count=None):
    """`npy_dtype`, `npy_shape` and `raw_sha256` of a dataset with elements of fixed size."""
    outer = dataset.shape if count is None else (min(count, dataset.shape[0]), *dataset.shape[1:])
    return stored_as(dataset.id.get_type(), elements(dataset, count), outer)


def stored_as(type_id, cells, outer):
    """The same of elements of a type, `bytes` each, in an array of this shape."""
    if not is_fixed(type_id):
        return {"npy_dtype": None, "raw_sha256": None}
    if has_reference(type_id):
        if not type_id.equal(h5t.STD_REF_OBJ):
            return {}
        return {"npy_dtype": None, "raw_sha256": digest(b"".join(cells))}
    answer = {"raw_sha256": digest(b"".join(cells))}
    if unsettled(type_id):
        return answer
    dtype = npy_dtype(type_id)
    if dtype is None or (type_id.get_class() == h5t.INTEGER and type_id.get_size() in (3, 5, 6, 7)):
        return answer | {"npy_dtype": None}
    base, inner = without_subarrays(dtype)
    if descr(base) is None:
        return answer
    return answer | {"npy_dtype": descr(base), "npy_shape": [int(n) for n in (*outer, *inner)]}


def without_subarrays(dtype):
    """The innermost element of array types, and the extents around it."""
    if dtype.subdtype is None:
        return dtype, ()
    base, shape = without_subarrays(dtype.subdtype[0])
    return base, dtype.shape + shape


def descr(dtype):
    """What NumPy writes as `descr` into the header of a `.npy`, as Python text; `None` where it refuses."""
    try:
        return repr(np.lib.format.dtype_to_descr(dtype))
    except ValueError:
        return None  # fields out of order


def digest(data):
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


# ---------------------------------------------------------------------------------------------------------------------
# Datasets that are no columns: each is a table by itself

# Longer rows are no columns of CSV; those of rank 3 and more with more bytes than this are no lists.
MOST_PLACES = 16_384
MOST_NESTED = 1 << 20


def describe_array(dataset, name):
    """One entry of `arrays`; `name` is the link's."""
    if dataset.shape is None:
        return {"shape": None, "files": []}
    if (string_attribute(dataset, "NAME") or "").startswith("This is a netCDF dimension but not a netCDF variable"):
        return {"shape": [int(n) for n in dataset.shape], "files": [], "npy_dtype": None, "raw_sha256": None}
    entry = {"shape": [int(n) for n in dataset.shape]} | stored(dataset)
    return entry | {"files": sorted(suffixes(dataset, entry))} | array_values(dataset, name) | pixmap(dataset)


def is_record_table(dataset):
    """Whether a dataset is a table by itself, with a column for each field."""
    return dataset.shape is not None and dataset.ndim == 1 and is_record(dataset.id.get_type())


def describe_records(dataset):
    """One entry of `tables`: a dataset of compounds."""
    cells, file_id = elements(dataset), dataset.file.id
    columns = []
    for name, offset, kind in compound_fields(dataset.id.get_type()):
        own = [cell_bytes[offset : offset + kind.get_size()] for cell_bytes in cells]
        stem = escaped(name.encode())
        entry = {"name": name, "rows": len(cells), "in_table": True} | ({} if stem is None else {"stem": stem.decode()})
        entry["csv"] = [cell(kind, value(kind, data, file_id)) for data in own]
        columns.append(entry | stored_as(kind, own, (len(own),)))
    return {"rows": len(cells), "row_labels": [], "columns": columns, "whole": stored(dataset)}


def is_record(type_id):
    """Whether an element is a compound, and no complex number."""
    return type_id.get_class() == h5t.COMPOUND and complex_part(type_id) is None


def suffixes(dataset, entry):
    """Names of the files of a dataset behind the dataset's own; `entry` has what `stored` says."""
    type_id, shape = dataset.id.get_type(), dataset.shape
    kind, row = type_id.get_class(), int(np.prod(shape[1:], dtype=object))
    is_text = kind == h5t.STRING
    files = {".npy"} if entry.get("npy_dtype") else set()
    if entry.get("raw_sha256") or (is_text and type_id.is_variable_str() and len(shape) < 2):
        files.add(".raw")
    if len(shape) == 0:
        return files | ({".txt", ".ndjson"} if is_text else {".txt"})
    if len(shape) == 1:
        return files | {".csv", ".txt", ".ndjson", ".parquet", ".arrow"}
    if row == 0:
        return files
    if len(shape) == 2:
        files |= {".ndjson", ".parquet", ".arrow"} | ({".csv"} if row <= MOST_PLACES else set())
    elif row * type_id.get_size() <= MOST_NESTED:
        files |= {".parquet", ".arrow"}
    if is_image(type_id, shape, string_attribute(dataset, "CLASS"), string_attribute(dataset, "INTERLACE_MODE")):
        files.add(".png")
    return files | {suffix for suffix, _, _, _ in [pixmap_form(dataset)] if suffix}


def is_image(type_id, shape, marked_as, interlace):
    """Whether a dataset has a `.png`: an image, or numbers of two or three dimensions whose sides make a picture."""
    if type_id.get_class() not in (h5t.INTEGER, h5t.FLOAT) or 0 in shape or npy_dtype(type_id) is None:
        return False
    if unsettled(type_id) or npy_dtype(type_id).kind not in "iuf":
        return False
    if npy_dtype(type_id).itemsize not in (1, 2, 4, 8):
        return False
    is_sample = npy_dtype(type_id).kind == "u" and npy_dtype(type_id).itemsize < 3
    marked = marked_as == "IMAGE"
    place = {"INTERLACE_LINE": 1, "INTERLACE_PLANE": 0}.get(interlace if marked else None, 2)
    if is_sample and len(shape) == 3 and shape[place] == 3:
        height, width = (extent for axis, extent in enumerate(shape) if axis != place)
    elif len(shape) == 2:
        height, width = shape
    elif len(shape) == 3 and not marked and 16 <= shape[1] <= 32_767:
        height, width = shape[0] * shape[1], shape[2]
    else:
        return False
    return marked or all(16 <= side <= 32_767 for side in (height, width))


def pixmap_form(dataset):
    """Suffix, magic number, height, width of an image; a suffix of `None` where it is none."""
    type_id, shape = dataset.id.get_type(), dataset.shape
    is_byte = type_id.get_class() == h5t.INTEGER and type_id.get_size() == 1 and type_id.get_sign() == h5t.SGN_NONE
    if is_byte and string_attribute(dataset, "CLASS") == "IMAGE" and dataset.size:
        if len(shape) == 2:
            return ".pgm", "P5", *shape
        if len(shape) == 3 and shape[2] == 3:
            return ".ppm", "P6", *shape[:2]
    return None, None, 0, 0


def pixmap(dataset):
    """`pixmap_sha256` of an image."""
    _, magic, height, width = pixmap_form(dataset)
    if magic is None:
        return {}
    return {"pixmap_sha256": digest(f"{magic}\n{width} {height}\n255\n".encode() + b"".join(elements(dataset)))}


def place_names(dataset, width):
    """The columns of a CSV file of rank 2: labels of the scale of its second axis, where it has one for each place."""
    scales = list(dataset.dims[1].values())
    if scales and scales[0].shape == (width,):
        pure = "This is a netCDF dimension but not a netCDF variable"
        values = scales[0].asstr()[:] if h5py.check_string_dtype(scales[0].dtype) else scales[0][:]
        labels = [value if isinstance(value, str) else repr(value.item()) for value in values]
        if len(set(labels)) == width and not (string_attribute(scales[0], "NAME") or "").startswith(pure):
            return labels
    return [str(i) for i in range(width)]


def array_values(dataset, name):
    """`columns` of the CSV file, `rows` of text and JSON, `text_hex` of a scalar string: those that there are."""
    type_id, file_id, shape = dataset.id.get_type(), dataset.file.id, dataset.shape
    if len(shape) > 2 or (len(shape) == 2 and shape[1] == 0):
        return {}
    missing = missing_test(type_id, declared_fill(dataset), file_id)
    values = [None if missing(e) else value(type_id, e, file_id) for e in elements(dataset)]
    if len(shape) == 2:
        width = shape[1]
        entry = {"rows": [{"json": values[i : i + width]} for i in range(0, len(values), width)]}
        if width <= MOST_PLACES:
            cells = [cell(type_id, v) for v in values]
            names = place_names(dataset, width)
            entry["columns"] = [{"name": name, "csv": cells[i::width]} for i, name in enumerate(names)]
        return entry
    entry = {"rows": shown_cells(dataset, values)} | ({"json_lines": True} if is_record(type_id) else {})
    if len(shape) == 0:
        is_text = type_id.get_class() == h5t.STRING and values[0] is not None
        return entry | ({"text_hex": string_bytes(type_id, elements(dataset)[0]).hex()} if is_text else {})
    return entry | {"columns": [show(name) | {"csv": entry["rows"]}]}


# ---------------------------------------------------------------------------------------------------------------------
# Groups and tables


def address(obj):
    """The object's place in the file."""
    return h5py.h5o.get_info(obj.id).addr


def link_names(group):
    """Link names: creation order where tracked, else bytewise."""
    tracked = group.id.get_create_plist().get_link_creation_order() & h5py.h5p.CRT_ORDER_TRACKED
    names = []
    index = h5py.h5.INDEX_CRT_ORDER if tracked else h5py.h5.INDEX_NAME
    group.id.links.iterate(names.append, idx_type=index)
    names = list(names)
    return names if tracked else sorted(names)


def show(name):
    """A link name as JSON can hold it: text, or hexadecimal with the key suffix `_hex`."""
    try:
        return {"name": name.decode("utf-8")}
    except UnicodeDecodeError:
        return {"name_hex": name.hex()}


def child(group, name):
    """The object behind a link, `None` behind dangling and external ones."""
    if group.id.links.get_info(name).type == h5py.h5l.TYPE_EXTERNAL:
        return None
    try:
        identifier = h5py.h5o.open(group.id, name)
    except (KeyError, OSError, RuntimeError):  # the last: links in a circle
        return None
    if isinstance(identifier, h5py.h5g.GroupID):
        return h5py.Group(identifier)
    return h5py.Dataset(identifier) if isinstance(identifier, h5py.h5d.DatasetID) else None


def string_attribute(obj, name):
    """A scalar or one-element string attribute, however stored; `None` where absent or no string."""
    if name not in obj.attrs:
        return None
    attribute = h5py.h5a.open(obj.id, name.encode())
    type_id = attribute.get_type()
    space = attribute.get_space()
    if type_id.get_class() != h5t.STRING or space.get_simple_extent_npoints() != 1:
        return None
    return value(type_id, libhdf5.read_attribute(attribute, type_id, 1), None)


def string_list_attribute(obj, name):
    """All strings of an attribute."""
    if name not in obj.attrs:
        return []
    attribute = h5py.h5a.open(obj.id, name.encode())
    type_id = attribute.get_type()
    count, size = attribute.get_space().get_simple_extent_npoints(), type_id.get_size()
    data = libhdf5.read_attribute(attribute, type_id, count)
    return [value(type_id, data[i * size : (i + 1) * size], None) for i in range(count)]


def references(obj, names):
    """Addresses of what the first present of these attributes refers to; null and dangling ones are left out."""
    name = next((n for n in names if n in obj.attrs), None)
    if name is None:
        return []
    attribute = h5py.h5a.open(obj.id, name.encode())
    type_id = attribute.get_type()
    if type_id.get_class() != h5t.REFERENCE:
        return []
    count, size = attribute.get_space().get_simple_extent_npoints(), type_id.get_size()
    data = libhdf5.read_attribute(attribute, type_id, count)
    targets = (reference_value(type_id, data[i * size : (i + 1) * size], obj.file.id) for i in range(count))
    return [path_address(obj.file, target["path"]) for target in targets if target]


def path_address(file, path):
    """The place of the object at a path, which need not be UTF-8."""
    return h5py.h5o.get_info(h5py.h5o.open(file.id, path.encode("utf-8", "surrogateescape"))).addr


def is_table(group):
    """HEP001 §5.1."""
    return string_attribute(group, "CLASS") == "COLUMN_TABLE"


def major_version(group):
    """MAJOR of the table's VERSION, `None` where that is not a number."""
    major = (string_attribute(group, "VERSION") or "").partition(".")[0]
    return int(major) if major.isascii() and major.isdigit() else None


def children_of(group):
    """`(name, object)` of each member of a table that may be a column."""
    names = [n for n in link_names(group) if n.decode("utf-8", "replace") not in RESERVED_IN_TABLE]
    return [(n, child(group, n)) for n in names]


def servants_of(group):
    """Addresses of the label sets of a table's columns."""
    datasets = [c for _, c in children_of(group) if isinstance(c, h5py.Dataset) and c.shape is not None]
    return {a for c in datasets for a in references(c, REFERENCE_ATTRIBUTES["categories"])}


def column_children(group):
    """`(name, object)` of each column: rank-1 datasets and list groups that serve no other column."""
    servants = servants_of(group)
    return [
        (n, c)
        for n, c in children_of(group)
        if (isinstance(c, h5py.Group) and string_attribute(c, "CLASS") == "LIST_COLUMN")
        or (isinstance(c, h5py.Dataset) and c.shape is not None and c.ndim == 1 and address(c) not in servants)
    ]


def row_labels(group, columns):
    """Names of the row-label columns, outermost first (DESIGN §1)."""
    by_address = {}
    for name, column in columns:
        by_address.setdefault(address(column), name)
    if "INDEX_COLUMNS" in group.attrs:
        return [by_address[a] for a in references(group, ("INDEX_COLUMNS",)) if a in by_address]
    index = string_attribute(group, "_index")
    if index is not None and index.encode() in dict(columns):
        return [index.encode()]
    linked = next((r for _, c in columns if (r := references(c, REFERENCE_ATTRIBUTES["labels"]))), [])
    if linked:
        return [by_address[a] for a in linked if a in by_address]
    return [n for n, c in columns if any(a in c.attrs for a in REFERENCE_ATTRIBUTES["labelled"])]


def logical_order(group, columns):
    """Columns as DESIGN §1 orders them."""
    by_name = dict(columns)
    listed = [n.encode() for n in string_list_attribute(group, "column-order")]
    order = dict.fromkeys([*row_labels(group, columns), *listed, *by_name])
    return [(n, by_name[n]) for n in order if n in by_name]


def level_length(group):
    """Entries that an OFFSETS level holds."""
    return max(group["OFFSETS"].shape[0] - 1, 0)


def column_length(column):
    """Rows that a column holds, shown or not."""
    return level_length(column) if isinstance(column, h5py.Group) else column.shape[0]


def declared_rows(group):
    """NROWS where it is one integer that is not negative."""
    rows = np.asarray(group.attrs["NROWS"]) if "NROWS" in group.attrs else None
    if rows is None or rows.dtype.kind not in "iu" or rows.size != 1 or rows.item() < 0:
        return None
    return rows.item()


def row_count(group, columns):
    """NROWS, else the commonest length, ties to the first."""
    declared = declared_rows(group)
    if declared is not None:
        return declared
    lengths = [column_length(c) for _, c in columns]
    return Counter(lengths).most_common(1)[0][0] if lengths else 0


def list_values(group, count):
    """The first `count` entries of a list level as Python lists, strings, `None`."""
    offsets = [int(x) for x in group["OFFSETS"][: count + 1]]
    total = offsets[-1] if offsets else 0
    present = [bool(x) for x in group["MASK"][:count]] if "MASK" in group else [True] * count
    if string_attribute(group, "CLASS") == "STRING_VALUES":
        chars = group["CHARS"][:total].tobytes()
        entries = [text(chars[a:b]) for a, b in zip(offsets, offsets[1:])]
    else:
        values = group["VALUES"]
        flat = list_values(values, total) if isinstance(values, h5py.Group) else decoded(values, total)
        entries = [flat[a:b] for a, b in zip(offsets, offsets[1:])]
    return [entry if keep else None for entry, keep in zip(entries, present)]


def category_labels(column):
    """Labels of a categorical column, `None` where it is none or its reference dangles."""
    targets = references(column, REFERENCE_ATTRIBUTES["categories"])
    if column.id.get_type().get_class() != h5t.INTEGER or not targets:
        return None
    dataset = column.file[address_path(column.file, targets[0])]
    if not isinstance(dataset, h5py.Dataset) or dataset.ndim != 1:
        return None
    return [cell(dataset.id.get_type(), v) for v in decoded(dataset)]


def address_path(file, wanted):
    """A path to the object at an address."""
    found = []

    def look(name):
        if address(file[name]) == wanted:
            found.append(name)

    file.visit(look)
    return found[0]


def categorical_cells(column, labels, count):
    """Labels; `None` for the fill, for −1 and for codes out of range."""
    codes = decoded(column, count)
    return [labels[c] if c is not None and 0 <= c < len(labels) else None for c in codes]


def column_cells(column, count):
    """The CSV fields of a column."""
    if isinstance(column, h5py.Group):
        return [None if v is None else {"json": v} for v in list_values(column, count)]
    labels = category_labels(column)
    if labels is not None:
        return categorical_cells(column, labels, count)
    return shown_cells(column, decoded(column, count))


def escaped(name):
    """DESIGN's file-name rule for a name in `columns/`, `None` where a hash comes in (stems over 240 bytes)."""
    stem = b"".join(b"%%%02X" % b if b < 0x20 or b == 0x7F or b in b"/%" else bytes([b]) for b in name)
    return stem if len(stem) <= 240 else None


def rows_shown(group, column, rows):
    """`(rows, in_table)`: with NROWS what lies beyond is cut off; without, only columns of the common length belong."""
    length = column_length(column)
    in_table = length == rows if declared_rows(group) is None else length >= rows
    return (rows if in_table else length), in_table


def describe_column(name, column, shown, in_table):
    """One entry of `columns`."""
    stem = escaped(name)
    entry = show(name) | {"rows": shown, "in_table": in_table}
    if stem is not None:
        entry |= {key.replace("name", "stem"): text for key, text in show(stem).items()}
    if isinstance(column, h5py.Dataset):
        return entry | {"csv": column_cells(column, shown)} | stored(column, shown)
    if string_attribute(column, "KIND") != "OFFSETS":
        return entry | {"unreadable": True}
    return entry | {"csv": column_cells(column, shown), "npy_dtype": None, "raw_sha256": None}


def describe_table(group):
    """One entry of `tables`."""
    columns = column_children(group)
    rows = row_count(group, columns)
    entries = [describe_column(n, c, *rows_shown(group, c, rows)) for n, c in logical_order(group, columns)]
    return {"rows": rows, "row_labels": [show(n) for n in row_labels(group, columns)], "columns": entries}


class Found:
    """What is found in a file."""

    def __init__(self):
        self.tables, self.arrays = {}, {}
        self.links = {}
        """Soft links that are no columns: path → address of what they lead to, if anything."""
        self.places = {}
        """Address → paths of each group, column and array, by hard links."""

    def place(self, obj, path):
        """Something is here."""
        self.places.setdefault(address(obj), []).append(path)

    def targets(self):
        """Soft links → the paths of what they lead to; none where that is nothing, or serves a table."""
        return {link: self.places.get(target, []) for link, target in self.links.items()}


def walk(group, path, found):
    """Collects tables and other datasets below a group; each group once."""
    if address(group) in found.places:
        return
    found.place(group, path or "/")
    inside = is_table(group)
    columns = dict(column_children(group)) if inside else {}
    servants = servants_of(group) if inside else set()
    if inside:
        found.tables[path or "/"] = describe_table(group)
    for name in link_names(group):
        below = f"{path}/{name.decode('utf-8', 'backslashreplace')}"
        is_hard = group.id.links.get_info(name).type == h5py.h5l.TYPE_HARD
        if name in columns and is_hard:
            found.place(columns[name], below)
        if name in columns or (inside and name.decode("utf-8", "replace") in RESERVED_IN_TABLE):
            continue
        obj = child(group, name)
        if group.id.links.get_info(name).type == h5py.h5l.TYPE_SOFT:
            found.links[below] = obj and address(obj)
        elif is_hard and isinstance(obj, h5py.Group):
            walk(obj, below, found)
        elif is_hard and isinstance(obj, h5py.Dataset) and address(obj) not in servants:
            found.place(obj, below)
            if is_record_table(obj):
                found.tables[below] = describe_records(obj)
            else:
                found.arrays[below] = describe_array(obj, name)


def open_file(path):
    """Opens a file in memory, writable: libhdf5 reads an unwritten variable-length fill value only so."""
    return h5py.File(path, "r+", driver="core", backing_store=False)


def describe(path):
    """Everything in a file: `{"tables": {…}, "arrays": {…}}`, and `"links"` where there are soft ones."""
    found = Found()
    with open_file(path) as file:
        walk(file, "", found)
    links = {"links": found.targets()} if found.links else {}
    return {"tables": found.tables, "arrays": found.arrays} | links
