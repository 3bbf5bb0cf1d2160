"""Whether a reader found what it should have: arrays of any Arrow type against the expected ones."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def plain(array):
    """One chunk, without dictionaries and views at the top."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.dictionary_decode()
        return plain(array)
    if kind == pa.string_view():
        return array.cast(pa.large_string())
    if kind == pa.binary_view():
        return array.cast(pa.large_binary())
    return array


def is_list(kind):
    """Lists of any make."""
    makes = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_list_view)
    return any(make(kind) for make in makes) or pa.types.is_large_list_view(kind)


def difference(got, expected, place=""):
    """What differs first, in words; `None` where nothing does. NaNs are equal, zeros have a sign."""
    got, expected = plain(got), plain(expected)
    if len(got) != len(expected):
        return f"{place}{len(got)} values instead of {len(expected)}"
    if pa.types.is_null(got.type):
        got = pa.nulls(len(got), expected.type)
    there, wanted = (np.asarray(pc.is_valid(array)) for array in (got, expected))
    if not np.array_equal(there, wanted):
        row = int(np.flatnonzero(there != wanted)[0])
        count = int((there != wanted).sum())
        what = "missing" if wanted[row] else f"{shortened(got[row])}, and not missing"
        return f"{place}row {row} is {what} ({count} rows)"
    # Some readers have no type without values.
    if pa.types.is_null(expected.type):
        return None
    if pa.types.is_struct(expected.type):
        return struct_difference(got, expected, there, place)
    if expected.null_count:
        got, expected = got.drop_null(), expected.drop_null()
    if is_list(expected.type):
        return list_difference(got, expected, place)
    return leaf_difference(got, expected, place)


def struct_difference(got, expected, there, place):
    """Members by name, in the rows that are there."""
    if not pa.types.is_struct(got.type):
        return f"{place}{got.type} instead of {expected.type}"
    names = [field.name for field in got.type]
    for field in expected.type:
        if field.name not in names:
            return f"{place}no member {field.name}"
        # Not all kinds of structs can be filtered, but all kinds of members.
        members = (plain(array.field(field.name)) for array in (got, expected))
        members = members if there.all() else (member.filter(pa.array(there)) for member in members)
        found = difference(*members, f"{place}{field.name}: ")
        if found:
            return found
    return None


def list_difference(got, expected, place):
    """Lengths, then all elements in a row."""
    if not is_list(got.type):
        return f"{place}{got.type} instead of {expected.type}"
    lengths, wanted = (np.asarray(pc.list_value_length(array)) for array in (got, expected))
    if not np.array_equal(lengths, wanted):
        row = int(np.flatnonzero(lengths != wanted)[0])
        return f"{place}row {row} has {lengths[row]} elements instead of {wanted[row]}"
    return difference(got.flatten(), expected.flatten(), f"{place}elements: ")


def leaf_difference(got, expected, place):
    """Values without parts, none of them missing."""
    try:
        got = converted(got, expected.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        return f"{place}{got.type} instead of {expected.type}: {first_line(error)}"
    if pa.types.is_floating(expected.type):
        a, b = np.asarray(got), np.asarray(expected)
        same = (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)
    else:
        if got.equals(expected):
            return None
        same = np.asarray(pc.equal(got, expected))
    if same.all():
        return None
    row = int(np.flatnonzero(~same)[0])
    return f"{place}row {row} is {shortened(got[row])} instead of {shortened(expected[row])} ({(~same).sum()} rows)"


def converted(array, kind):
    """The same values in another type, where it holds them; text is parsed."""
    if array.type == kind:
        return array
    if pa.types.is_binary(kind) and pa.types.is_fixed_size_binary(array.type):
        return array.cast(kind)
    if pa.types.is_floating(array.type) and pa.types.is_integer(kind):
        # Readers without missing integers use floats; these hold not all integers.
        return array.cast(kind, safe=True)
    return array.cast(kind)


def shortened(value):
    """A value for a message."""
    text = repr(value.as_py() if isinstance(value, pa.Scalar) else value)
    return text if len(text) < 60 else f"{text[:50]}… ({len(text)} characters)"


def first_line(error):
    """The start of an error's message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200] if lines else ''}"


# ---------------------------------------------------------------------------------------------------------------------
# Text


def parsed(texts, expected, group):
    """Values of the expected type from cells of CSV or JSON; those that have a type already are left alone."""
    kind = expected.type
    texts = plain(texts)
    if group != "half floats" and not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        return texts
    texts = texts.cast(pa.string())
    if pa.types.is_null(kind):
        return texts
    if pa.types.is_binary(kind):
        return pa.array([None if text is None else bytes.fromhex(text) for text in texts.to_pylist()], kind)
    if pa.types.is_struct(kind) or is_list(kind):
        values = [None if text is None else from_json(json.loads(text), kind) for text in texts.to_pylist()]
        return pa.array(values, kind)
    if group == "half floats":
        with np.errstate(over="ignore"):
            halves = np.asarray(texts.cast(pa.float64()).fill_null(0)).astype("f2").astype("f4")
        return pa.array(halves, mask=np.asarray(pc.is_null(texts)))
    return texts.cast(kind)


def from_json(value, kind):
    """Python values of an Arrow type from those of JSON."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: from_json(value[field.name], field.type) for field in kind}
    if is_list(kind):
        return [from_json(element, kind.value_type) for element in value]
    if pa.types.is_floating(kind):
        return float(np.float32(value)) if kind == pa.float32() else float(value)
    if pa.types.is_binary(kind):
        return bytes.fromhex(value)
    return value
