"""Statistics learnt in passing, in the footers of Parquet files, against what h5py reads.

    python3 -m hepfs_tools.reading.learnt write FILE.h5           prints the names of columns, one a line
    python3 -m hepfs_tools.reading.learnt check FILE.h5 FOLDER [--unknown NAME …]

Every `FOLDER/NAME.parquet` must state for each row group what NumPy finds among the values that h5py reads: missing
values, the least, the greatest. Those of the columns named as unknown must state nothing.
"""

import argparse
import sys
from pathlib import Path

import h5py
import numpy as np
import pyarrow.parquet as pq

from hepfs_tools.hep001 import write

# Three row groups of Parquet, the last one short; no multiple of a chunk.
ROWS = 300_001
CHUNK = 10_007
LABELS = ["photon", "electron", "", "muon", "Łódź"]
# Codes of an enumeration; others have no name.
MEMBERS = {"up": 0, "down": 1, "strange": 2, "charm": -1, "Łódź": 7}


def filtered(table, name, data, fill=None, **options):
    """A column in chunks that go through filters."""
    return table.create_dataset(name, data=data, fillvalue=fill, chunks=(CHUNK,), compression=1, **options)


def texts(table, name, texts, width, padding, fill=None):
    """A column of strings filled up in one of the ways of HDF5, which turns NumPy's into them."""
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(width)
    kind.set_strpad(padding)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((CHUNK,))
    plist.set_deflate(1)
    if fill is not None:
        plist.set_fill_value(np.array(fill, f"S{width}"))
    dataset = h5py.h5d.create(table.id, name.encode(), kind, h5py.h5s.create_simple((ROWS,)), plist)
    # libhdf5 ends a text with NUL where there is no room for it.
    shorter = width - (padding == h5py.h5t.STR_NULLTERM)
    data = np.array([text.encode()[:shorter] for text in texts], f"S{width}")
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, data)


def written(path):
    """Writes the file; the names of its columns."""
    random = np.random.default_rng(7)
    numbers = random.integers(-1000, 1000, ROWS) + np.arange(ROWS) // 7
    floats = random.normal(size=ROWS)
    with h5py.File(path, "w") as file:
        table = write.july_table(file.create_group("t"), ROWS)
        filtered(table, "i8", numbers % 251 - 125, dtype="i1", shuffle=True)
        filtered(table, "u8", numbers % 251, dtype="u1")
        filtered(table, "i32_be", numbers, dtype=">i4", shuffle=True)
        filtered(table, "i64", numbers << 20, dtype="<i8", shuffle=True)
        filtered(table, "i64_null", numbers, fill=int(numbers[5]), dtype="<i8")
        filtered(table, "u64", numbers.astype("u8") << np.uint64(40), dtype="<u8")
        filtered(table, "f32", floats, dtype="<f4")
        filtered(table, "f64_be_null", np.where(numbers % 3 == 0, np.nan, floats), fill=np.nan, dtype=">f8")
        filtered(table, "nan", np.where(numbers % 1001 == 0, np.nan, floats), dtype="<f8")
        filtered(table, "zeros", np.where(np.arange(ROWS) < ROWS // 2, -0.0, 0.0), dtype="<f8")
        filtered(table, "all_null", np.full(ROWS, 9), fill=9, dtype="<i4")
        filtered(table, "boolean", numbers % 2, dtype=write.BOOLEAN)
        labels = write.strings(table.create_group("CATEGORIES"), "labels", LABELS)
        for name, codes in [("category", numbers % 5), ("category_null", numbers % 6 - 1)]:
            write.describe(filtered(table, name, codes, dtype="i1"), CATEGORIES=write.refs(labels))
        write.describe(filtered(table, "category_wide", numbers % 2 + 3, dtype="<u4"), CATEGORIES=write.refs(labels))
        # Chunks that were never written, and one that its filter passed by.
        holes = table.create_dataset("holes", (ROWS,), "<i4", chunks=(CHUNK,), compression=1, fillvalue=-7)
        holes[3 * CHUNK : 5 * CHUNK] = numbers[: 2 * CHUNK]
        holes.id.write_direct_chunk((7 * CHUNK,), np.arange(CHUNK, dtype="<i4").tobytes(), filter_mask=1)
        filtered(table, "text", np.char.mod("%d", numbers).astype("S8"))
        words = np.char.mod("%d", numbers)
        pad, term, space = h5py.h5t.STR_NULLPAD, h5py.h5t.STR_NULLTERM, h5py.h5t.STR_SPACEPAD
        texts(table, "text_null", words, 8, pad, fill=words[5].encode())
        texts(table, "text_alike", np.char.add("event_0000_", words), 24, pad)
        texts(table, "text_16", np.char.add("run_", words), 16, term)
        texts(table, "text_terminated", words, 12, term, fill=words[9].encode())
        texts(table, "text_spaces", words, 16, space, fill=words[7].encode())
        # Of which some are cut within a character.
        texts(table, "text_accents", np.char.add("Łódź é", words), 12, pad)
        for name, kind, fill in [("enumeration", "i1", None), ("enumeration_null", ">i4", 2)]:
            filtered(table, name, numbers % 4 - 1, fill=fill, dtype=h5py.enum_dtype(MEMBERS, kind))
        filtered(table, "enumeration_unnamed", numbers % 100, dtype=h5py.enum_dtype(MEMBERS, "i2"))
        table.create_dataset("plain", data=numbers, dtype="<i8")
        return [name for name, member in table.items() if isinstance(member, h5py.Dataset)]


def expected(dataset):
    """Values of a column and which of them are missing."""
    values = dataset[()]
    if "CATEGORIES" in dataset.attrs:
        missing = (values < 0) | (values >= len(LABELS))
        return np.array(LABELS, object)[np.where(missing, 0, values)], missing
    plist = dataset.id.get_create_plist()
    missing = np.zeros(len(values), bool)
    if plist.fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED:
        fill = dataset.fillvalue
        missing = np.isnan(values) if fill != fill else values == fill
    if values.dtype.kind == "S":
        values = np.array([value.decode(errors="replace") for value in values], object)
    elif members := h5py.check_enum_dtype(dataset.dtype):
        # A boolean is none of these to h5py.
        names = {code: name for name, code in members.items()}
        values = np.array([names.get(code, str(code)) for code in values.tolist()], object)
    return values, missing


def stated(chunk):
    """What the footer says of a column chunk: missing values, bounds; `None` for nothing."""
    known = chunk.statistics
    if known is None or not (known.has_null_count or known.has_min_max):
        return None
    return known.null_count, (known.min, known.max) if known.has_min_max else None


def exactly(bound):
    """So that -0.0 is not 0.0."""
    return repr(float(bound)) if isinstance(bound, float | np.floating) else bound


def differences(dataset, path, is_unknown):
    """What is wrong with the statistics of a column."""
    footer = pq.ParquetFile(path).metadata
    groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
    found = [stated(group.column(0)) for group in groups]
    if is_unknown:
        return [f"{found} where nothing is known"] if any(found) else []
    values, missing = expected(dataset)
    ends = np.cumsum([group.num_rows for group in groups])
    parts = list(zip(np.split(values, ends[:-1]), np.split(missing, ends[:-1]), strict=True))
    present = [values[~missing] for values, missing in parts]
    # One NaN among the values, and none has bounds.
    is_bounded = not any(part.dtype.kind == "f" and np.isnan(part).any() for part in present)
    wrong = [] if len(groups) > 1 else ["one row group"]
    for at, (part, (_, missing)) in enumerate(zip(present, parts, strict=True)):
        bounds = (part.min(), part.max()) if is_bounded and len(part) else None
        if bounds and part.dtype.kind == "f":
            # What Parquet asks of writers.
            bounds = (bounds[0] if bounds[0] else -0.0, bounds[1] if bounds[1] else 0.0)
        due = (int(missing.sum()), bounds)
        shown = found[at] and (found[at][0], found[at][1] and tuple(map(exactly, found[at][1])))
        if shown != (due[0], bounds and tuple(map(exactly, bounds))):
            wrong.append(f"row group {at}: {found[at]} where {due} is due")
    return wrong


def main():
    """Writes or checks."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["write", "check"])
    parser.add_argument("file", type=Path)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--unknown", nargs="*", default=[])
    arguments = parser.parse_args()
    if arguments.what == "write":
        print("\n".join(written(arguments.file)))
        return
    wrong = []
    with h5py.File(arguments.file) as file:
        for name, dataset in file["t"].items():
            if isinstance(dataset, h5py.Dataset):
                path = arguments.folder / f"{name}.parquet"
                wrong += [f"{name}: {what}" for what in differences(dataset, path, name in arguments.unknown)]
    print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
