"""Search indexes with one thing wrong each: what was done to a right one, and what a reader must find.

A verdict is one of: `valid` (it may be used), `absent` (by its form and attributes it is no index that a reader knows
or may use), `stale` (its tokens are not those of the table), `broken` (its elements say what is not so). Where the
drafts leave room there are several.
"""

import numpy as np

from hepfs_tools.hep001.indexes import murmur3_x64_128
from hepfs_tools.hep001.write import boolean, token

from . import making

FAULTS = []


def fault(kind, column, verdict, rule, revisions="july"):
    """Registers a change of an index; the name of the function is that of the table."""

    def register(change):
        FAULTS.append((change.__name__, kind, column, verdict.split(), rule, revisions.split(), change))
        return change

    return register


def integer(value, width=8):
    """Bytes of an integer as columns here have them."""
    return np.void((value).to_bytes(width, "little", signed=True))


# Entry 2 of `i64` speaks of rows 32..48, entry 3 of a chunk of which all is missing.


@fault("CHUNK_MINMAX", "i64", "broken", "min is above the least value of a chunk", "july april")
def min_raised(index, source):
    index.data["min"][2] = index.data["max"][2]


@fault("CHUNK_MINMAX", "i64", "broken", "max is below the greatest value of a chunk", "july april may")
def max_lowered(index, source):
    index.data["max"][2] = index.data["min"][2]


@fault("CHUNK_MINMAX", "i64", "broken valid", "min is not the least value, but below it")
def min_lowered(index, source):
    index.data["min"][2] = integer(-30000)


@fault("CHUNK_MINMAX", "i64", "broken", "min is above max")
def min_above_max(index, source):
    least, greatest = bytes(index.data["min"][2]), bytes(index.data["max"][2])
    index.data["min"][2], index.data["max"][2] = np.void(greatest), np.void(least)


@fault("CHUNK_MINMAX", "f32", "broken", "min and max are NaN where values have an order")
def bounds_are_nan(index, source):
    nan = np.void(np.float32(np.nan).tobytes())
    index.data["min"][4] = index.data["max"][4] = nan


@fault(
    "CHUNK_MINMAX", "i64", "valid broken", "min and max of a chunk without values are not the fill: they mean nothing"
)
def placeholders_differ(index, source):
    index.data["min"][3], index.data["max"][3] = integer(1), integer(2)


@fault("CHUNK_MINMAX", "f32", "broken", "nan_count is less than the NaN of a chunk", "july april")
def nan_count_lower(index, source):
    index.data["nan_count"][4] = 0


@fault("CHUNK_MINMAX", "f32", "broken", "nan_count is more than the NaN of a chunk")
def nan_count_higher(index, source):
    index.data["nan_count"][4] = index.data["n"][4] - index.data["fill_count"][4]


@fault("CHUNK_MINMAX", "i64", "broken", "nan_count of integers is not 0")
def nan_count_of_integers(index, source):
    index.data["nan_count"][1] = 1


@fault("CHUNK_MINMAX", "i64", "broken", "fill_count is less than the missing values of a chunk", "july april")
def fill_count_lower(index, source):
    index.data["fill_count"][0] = 0


@fault("CHUNK_MINMAX", "i64", "broken", "fill_count says that all of a chunk is missing")
def fill_count_all(index, source):
    index.data["fill_count"][1] = index.data["n"][1]


@fault("CHUNK_MINMAX", "i64", "broken", "fill_count says that values are in a chunk that has none")
def fill_count_none(index, source):
    index.data["fill_count"][3] = 0


@fault("CHUNK_MINMAX", "i64", "broken", "n of a chunk in the middle is not the chunk's length", "july april")
def n_lower(index, source):
    index.data["n"][1] = 15


@fault("CHUNK_MINMAX", "i64", "broken", "n of the last chunk counts rows that the table does not have")
def n_of_last_higher(index, source):
    index.data["n"][-1] = 16


@fault("CHUNK_MINMAX", "i64", "broken", "n is greater than all there is")
def n_huge(index, source):
    index.data["n"][1] = 2**64 - 1


@fault("CHUNK_MINMAX", "i64", "absent", "fewer entries than chunks", "july april may")
def entries_too_few(index, source):
    index.data = index.data[:-1]


@fault("CHUNK_MINMAX", "i64", "valid", "entries behind the last chunk: residue, which July has readers ignore")
def entries_behind(index, source):
    index.data = np.concatenate([index.data, index.data[:2]])


@fault("CHUNK_MINMAX", "i64", "valid absent", "more entries than chunks, which April does not have", "april")
def entries_too_many(index, source):
    index.data = np.concatenate([index.data, index.data[:2]])


@fault("CHUNK_MINMAX", "i64", "broken", "two entries changed places")
def entries_swapped(index, source):
    index.data[[0, 3]] = index.data[[3, 0]]


@fault("CHUNK_MINMAX", "i64", "absent", "no entries at all")
def entries_none(index, source):
    index.data = index.data[:0]


@fault("CHUNK_MINMAX", "i64", "absent", "chunk_shape is not the column's chunk", "april may")
def chunk_shape_other(index, source):
    index.attributes["chunk_shape"] = np.array([32], "u8")


@fault("CHUNK_MINMAX", "i64", "absent", "chunk_shape is 0", "april")
def chunk_shape_zero(index, source):
    index.attributes["chunk_shape"] = np.array([0], "u8")


@fault("CHUNK_MINMAX", "i64", "valid absent", "no chunk_shape", "april")
def chunk_shape_none(index, source):
    index.attributes["chunk_shape"] = None


@fault("CHUNK_MINMAX", "i64", "absent", "min and max have another type than the column")
def bounds_of_other_type(index, source):
    fields = [("min", "<i4"), ("max", "<i4"), ("nan_count", "<u8"), ("fill_count", "<u8"), ("n", "<u8")]
    data = np.zeros(len(index.data), fields)
    for name in ("min", "max"):
        data[name] = [int.from_bytes(bytes(value), "little", signed=True) & 0x7FFFFFFF for value in index.data[name]]
    for name in ("nan_count", "fill_count", "n"):
        data[name] = index.data[name]
    index.data = data


@fault("CHUNK_MINMAX", "i64", "absent", "a field is missing")
def field_missing(index, source):
    index.data = renamed(index.data, ["min", "max", "nan_count", "n"], ["min", "max", "nan_count", "n"])


@fault("CHUNK_MINMAX", "i64", "absent", "fields have other names")
def fields_renamed(index, source):
    index.data = renamed(index.data, list(index.data.dtype.names), ["least", "greatest", "nans", "fills", "rows"])


@fault("CHUNK_MINMAX", "i64", "valid absent", "fields are declared in another order")
def fields_in_other_order(index, source):
    order = ["n", "max", "min", "fill_count", "nan_count"]
    index.data = renamed(index.data, order, order)


def renamed(data, fields, names):
    """Some fields of entries, under other names."""
    out = np.zeros(len(data), [(name, data.dtype[field]) for field, name in zip(fields, names)])
    for field, name in zip(fields, names):
        out[name] = data[field]
    return out


@fault("CHUNK_MINMAX", "i64", "absent", "no compound")
def no_compound(index, source):
    index.data = np.arange(7, dtype="<i8")


@fault("CHUNK_MINMAX", "i64", "absent", "two dimensions")
def minmax_of_two_dimensions(index, source):
    index.data = index.data.reshape(1, -1)


@fault("SORTED_ROWS", "f32", "broken", "a row number is past the last row", "july april")
def row_out_of_range(index, source):
    index.data[10] = 100


@fault("SORTED_ROWS", "f32", "broken", "a row number is past every row")
def row_huge(index, source):
    index.data[0] = 2**64 - 1


@fault("SORTED_ROWS", "f32", "broken", "a row stands there twice, another not at all", "july april may")
def row_twice(index, source):
    index.data[10] = index.data[11]


@fault("SORTED_ROWS", "f32", "broken", "two rows changed places", "july april")
def rows_swapped(index, source):
    index.data[[10, 20]] = index.data[[20, 10]]


@fault("SORTED_ROWS", "u8", "broken", "rows of equal values are not in the order of their numbers")
def ties_in_other_order(index, source):
    placed = [int(row) for row in index.data[: -int(index.attributes["fill_tail_length"])]]
    at = next(at for at in range(len(placed) - 1) if source.keys[placed[at]] == source.keys[placed[at + 1]])
    index.data[[at, at + 1]] = index.data[[at + 1, at]]


@fault("SORTED_ROWS", "f32", "broken", "NaN stand before the missing values")
def tails_in_other_order(index, source):
    nans, fills = int(index.attributes["nan_tail_length"]), int(index.attributes["fill_tail_length"])
    body = index.data[: -nans - fills]
    index.data = np.concatenate([body, index.data[-nans:], index.data[-nans - fills : -nans]])


@fault("SORTED_ROWS", "f32", "broken", "the NaN tail is not in the order of row numbers")
def nan_tail_in_other_order(index, source):
    index.data[[-1, -2]] = index.data[[-2, -1]]


@fault("SORTED_ROWS", "f32", "broken", "nan_tail_length is too small", "july april")
def nan_tail_too_short(index, source):
    index.attributes["nan_tail_length"] -= np.uint64(1)


@fault("SORTED_ROWS", "f32", "broken", "nan_tail_length is too large")
def nan_tail_too_long(index, source):
    index.attributes["nan_tail_length"] += np.uint64(2)


@fault("SORTED_ROWS", "f32", "broken", "fill_tail_length is too small")
def fill_tail_too_short(index, source):
    index.attributes["fill_tail_length"] -= np.uint64(1)


@fault("SORTED_ROWS", "i64", "broken", "fill_tail_length is too large: values count as missing", "july april")
def fill_tail_too_long(index, source):
    index.attributes["fill_tail_length"] += np.uint64(3)


@fault("SORTED_ROWS", "f32", "absent", "tails are longer than the permutation")
def tails_huge(index, source):
    index.attributes["nan_tail_length"] = np.uint64(2**63)
    index.attributes["fill_tail_length"] = np.uint64(2**63)


@fault("SORTED_ROWS", "f32", "absent", "no tail lengths")
def tails_not_told(index, source):
    index.attributes["nan_tail_length"] = index.attributes["fill_tail_length"] = None


@fault("SORTED_ROWS", "f32", "absent", "fewer elements than rows", "july april")
def permutation_too_short(index, source):
    index.data = index.data[:-1]


@fault("SORTED_ROWS", "f32", "valid", "elements behind the last row: residue, which July has readers ignore")
def permutation_with_residue(index, source):
    index.data = np.concatenate([index.data, np.arange(5, dtype="<u8")])


@fault("SORTED_ROWS", "f32", "valid absent", "row numbers are signed")
def permutation_signed(index, source):
    index.data = index.data.astype("<i4")


@fault("SORTED_ROWS", "f32", "valid", "row numbers of one byte are wide enough")
def permutation_narrow(index, source):
    index.data = index.data.astype("u1")


@fault("SORTED_ROWS", "f32", "absent", "row numbers are floats")
def permutation_of_floats(index, source):
    index.data = index.data.astype("<f8")


@fault("SORTED_ROWS", "f32", "absent", "`ordered` is false, which is reserved")
def permutation_not_ordered(index, source):
    index.attributes["ordered"] = boolean(False)


@fault("SORTED_ROWS", "f32", "broken", "the order is the opposite")
def permutation_reversed(index, source):
    placed = len(index.data) - int(index.attributes["nan_tail_length"]) - int(index.attributes["fill_tail_length"])
    index.data[:placed] = index.data[:placed][::-1]


@fault("SORTED_ROWS", "word", "broken", "strings are ordered by their length first")
def strings_by_length(index, source):
    placed = len(index.data) - int(index.attributes["fill_tail_length"])
    rows = sorted(
        (int(row) for row in index.data[:placed]), key=lambda row: (len(source.keys[row]), source.keys[row], row)
    )
    index.data[:placed] = rows[::-1]


@fault("BITMAP", "u8", "broken", "a bit is cleared", "july april may")
def bit_cleared(index, source):
    index.data[0][first_byte(index)] = 0


@fault("BITMAP", "u8", "broken", "a bit is set for a row of another value", "july april")
def bit_set(index, source):
    index.data[0] |= 1 << 4


@fault("BITMAP", "u8", "broken", "a bit is set for a row whose value is missing")
def bit_of_missing(index, source):
    row = source.keys.index("missing")
    index.data[0][row // 8] |= 1 << (row % 8)


def first_byte(index):
    """The first byte of the first value's bits with something in it."""
    return int(np.flatnonzero(index.data[0])[0])


@fault("BITMAP", "u8", "valid", "padding bits behind the last row are set, which readers ignore")
def padding_set(index, source):
    index.data[:, -1] |= 0xF0


@fault("BITMAP", "u8", "broken", "bits of two values changed places")
def values_swapped(index, source):
    index.data[[0, 1]] = index.data[[1, 0]]


@fault("BITMAP", "u8", "broken", "`exhaustive`, but a value is not there")
def value_not_there(index, source):
    index.data, index.values = index.data[1:], index.values[1:]


@fault("BITMAP", "f32", "broken valid", "`exhaustive`, but NaN are values that nothing lists")
def exhaustive_with_nan(index, source):
    index.attributes["exhaustive"] = boolean(True)


@fault("BITMAP", "u8", "valid", "a value is not there, and `exhaustive` is false")
def not_exhaustive(index, source):
    index.data, index.values = index.data[1:], index.values[1:]
    index.attributes["exhaustive"] = boolean(False)


@fault("BITMAP", "u8", "valid", "a value is not there, and nothing says that all are", "july april may")
def not_said_to_be_exhaustive(index, source):
    index.data, index.values = index.data[1:], index.values[1:]
    index.attributes["exhaustive"] = None


@fault("BITMAP", "u8", "absent", "fewer values than rows of bits", "july april")
def values_too_few(index, source):
    index.values = index.values[:-1]


@fault("BITMAP", "u8", "absent", "more values than rows of bits")
def values_too_many(index, source):
    index.values = np.concatenate([index.values, index.values[:1]])


@fault("BITMAP", "u8", "broken valid", "a value stands there twice, either time with its bits")
def value_twice(index, source):
    index.data = np.concatenate([index.data, index.data[:1]])
    index.values = np.concatenate([index.values, index.values[:1]])


@fault("BITMAP", "u8", "broken", "a value stands there twice, the second time without bits")
def value_twice_without_bits(index, source):
    index.data = np.concatenate([np.zeros_like(index.data[:1]), index.data])
    index.values = np.concatenate([index.values[:1], index.values])


@fault("BITMAP", "u8", "absent", "values have another type than the column")
def values_of_other_type(index, source):
    index.values = np.array([value[0] for value in map(bytes, index.values)], "<i4")


@fault("BITMAP", "u8", "absent", "too few bytes for the rows")
def bits_too_few(index, source):
    index.data = index.data[:, :-1]


@fault("BITMAP", "u8", "absent", "bits are no bytes")
def bits_of_words(index, source):
    index.data = index.data.astype("<u2")


@fault("BITMAP", "u8", "broken", "bit 0 is the most significant")
def bits_in_other_order(index, source):
    index.data = np.packbits(np.unpackbits(index.data, axis=1, bitorder="little"), axis=1, bitorder="big")


@fault("BITMAP", "u8", "absent", "one dimension")
def bits_of_one_dimension(index, source):
    index.data = index.data.reshape(-1)


@fault("BITMAP", "u8", "absent", "no reference to the values")
def values_not_told(index, source):
    index.values = None


@fault("CHUNK_BLOOM", "i64", "broken", "bits are cleared", "july")
def bloom_cleared(index, source):
    index.data[1] = 0


@fault("CHUNK_BLOOM", "i64", "broken absent", "bits are cleared; no reading of the seeds fits", "april may")
def bloom_fits_no_reading(index, source):
    index.data[1] = 0


@fault("CHUNK_BLOOM", "i64", "broken", "a single bit is cleared", "july")
def bloom_bit_cleared(index, source):
    byte = int(np.flatnonzero(index.data[0])[0])
    index.data[0][byte] &= index.data[0][byte] - 1


@fault("CHUNK_BLOOM", "i64", "valid", "all bits are set: no value is ruled out", "july")
def bloom_full(index, source):
    index.data[:] = 0xFF


@fault("CHUNK_BLOOM", "i64", "valid", "k is less than what was used", "july")
def bloom_k_lower(index, source):
    index.attributes["k"] = np.uint16(making.K - 1)


@fault("CHUNK_BLOOM", "i64", "broken", "k is more than what was used", "july")
def bloom_k_higher(index, source):
    index.attributes["k"] = np.uint16(making.K + 2)


@fault("CHUNK_BLOOM", "i64", "valid absent", "k is 0", "july")
def bloom_k_zero(index, source):
    index.attributes["k"] = np.uint16(0)


@fault("CHUNK_BLOOM", "i64", "absent", "no k", "july")
def bloom_k_not_told(index, source):
    index.attributes["k"] = None


@fault("CHUNK_BLOOM", "i64", "absent", "m_bits is not 8 × the bytes of a filter", "july april")
def bloom_bits_other(index, source):
    index.attributes["m_bits"] = np.uint64(making.BITS - 8)


@fault("CHUNK_BLOOM", "i64", "absent", "m_bits is 0", "july")
def bloom_bits_zero(index, source):
    index.attributes["m_bits"] = np.uint64(0)
    index.data = index.data[:, :0]


@fault("CHUNK_BLOOM", "i64", "absent", "hash_family is unknown", "july april")
def bloom_family_unknown(index, source):
    index.attributes["hash_family"] = token("xxh3_128_double")


@fault("CHUNK_BLOOM", "i64", "broken", "seed is another", "july")
def bloom_seed_other(index, source):
    index.attributes["seed"] = np.uint32(5)


@fault("CHUNK_BLOOM", "i64", "absent", "fewer filters than chunks", "july")
def bloom_too_short(index, source):
    index.data = index.data[:-1]


@fault("CHUNK_BLOOM", "i64", "broken", "filters of two chunks changed places", "july")
def bloom_swapped(index, source):
    index.data[[0, 1]] = index.data[[1, 0]]


@fault("CHUNK_BLOOM", "i64", "absent", "chunk_shape is not the column's chunk", "april")
def bloom_chunk_shape_other(index, source):
    index.attributes["chunk_shape"] = np.array([50], "u8")


@fault("CHUNK_BLOOM", "f32", "broken", "zero was hashed as negative zero", "july")
def bloom_negative_zero(index, source):
    def canonical(row):
        return np.float32(-0.0).tobytes() if source.keys[row] == 0.0 else source.canonical(row)

    index.data = remade(index, source, canonical)


@fault("CHUNK_BLOOM", "u64be", "broken", "big-endian values were hashed as they are stored", "july")
def bloom_big_endian(index, source):
    index.data = remade(index, source, lambda row: source.stored[row])


@fault("CHUNK_BLOOM", "spaced", "broken", "strings were hashed with their padding", "july")
def bloom_padding(index, source):
    index.data = remade(index, source, lambda row: source.stored[row])


@fault("CHUNK_BLOOM", "f32", "valid", "NaN and missing values were put in as well: more bits than needed", "july")
def bloom_of_nan(index, source):
    index.data = remade(index, source, lambda row: source.canonical(row) or source.stored[row])


def remade(index, source, canonical):
    """Filters over other bytes."""
    return making.chunk_bloom(source, making.JULY, lambda data: murmur3_x64_128(data, making.SEED), canonical).data


@fault("CHUNK_MINMAX", "i64", "stale", "SOURCE_GENERATION is not the table's GENERATION")
def token_generation(index, source):
    index.attributes["SOURCE_GENERATION"] = np.uint64(making.GENERATION - 1)


@fault("SORTED_ROWS", "i64", "stale", "SOURCE_NROWS is not the table's NROWS")
def token_rows(index, source):
    index.attributes["SOURCE_NROWS"] = np.uint64(99)


@fault("BITMAP", "u8", "stale", "tokens are old, and bits are cleared")
def token_old_and_wrong(index, source):
    index.attributes["SOURCE_GENERATION"] = np.uint64(2)
    index.data[:] = 0


@fault("CHUNK_BLOOM", "i64", "stale absent", "no SOURCE_GENERATION")
def token_missing(index, source):
    index.attributes["SOURCE_GENERATION"] = None


@fault("SORTED_ROWS", "f32", "stale absent", "SOURCE_NROWS is signed")
def token_signed(index, source):
    index.attributes["SOURCE_NROWS"] = np.int64(100)


@fault("CHUNK_MINMAX", "i64", "unused", "a kind that no draft knows", "july april")
def kind_unknown(index, source):
    index.kind = "ZONE_MAP"


@fault("CHUNK_MINMAX", "i64", "absent", "no kind", "july april")
def kind_missing(index, source):
    index.attributes["KIND"] = None


@fault("SORTED_ROWS", "f32", "absent", "an index of another kind under this name", "july")
def kind_of_another(index, source):
    index.kind = "CHUNK_MINMAX"
