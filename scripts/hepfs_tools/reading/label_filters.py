"""Bloom filters of labels: what they rule out must not be there, and what readers then count is what h5py counts.

    python3 -m hepfs_tools.reading.label_filters write FILE
    python3 -m hepfs_tools.reading.label_filters check FILE TABLE.parquet (with|without)
"""

import importlib.util
import sys

import h5py
import numpy as np

ROWS, ROW_GROUP = 300_001, 131_072
LABELS = [f"kind {code:02}" for code in range(17)] + ["", "Zürich", "label, 'quoted'"]
# Codes of labels that no row has, that only rows of the second row group have, and only the last row.
NOWHERE, STRETCH, LAST = 7, 12, 18
ASKED = (LABELS[0], LABELS[NOWHERE], LABELS[STRETCH], *LABELS[17:], "same", "no label")
# Columns with filters, by the type of their codes; the labels of `twice` are not all different.
TYPES = {"byte": "i1", "wide": "<i2", "big": ">u4", "twice": "i1"}
FILTERED = ("byte", "wide", "big")


def write(path):
    """A table of codes at random, with missing ones and one that has no label."""
    random = np.random.default_rng(5)
    with h5py.File(path, "w") as file:
        table = file.create_group("t")
        table.attrs["CLASS"] = np.bytes_("COLUMN_TABLE")
        table.attrs["VERSION"] = np.bytes_("1.0")
        table.attrs["NROWS"] = np.uint64(ROWS)
        table["x"] = np.arange(ROWS, dtype="f8")
        for name, kind in TYPES.items():
            labels = LABELS if name in FILTERED else ["same", *LABELS[1:-1], "same"]
            stored = table.create_dataset(f"CATEGORIES/{name}s", data=labels, dtype=h5py.string_dtype())
            codes = random.choice([code for code in range(20) if code not in (NOWHERE, STRETCH, LAST)], ROWS)
            codes[150_000:150_010] = STRETCH
            codes[-1] = LAST
            missing = np.iinfo(np.dtype(kind)).max
            codes[random.random(ROWS) < 0.01], codes[77] = missing, 50
            options = {"chunks": (50_000,), "compression": 1, "fillvalue": missing}
            column = table.create_dataset(name, data=codes.astype(kind), **options)
            column.attrs.create("CATEGORIES", stored.ref, dtype=h5py.ref_dtype)


def counts_by_readers(path, name):
    """How often a label is found by asking for it, by reader."""
    import duckdb
    import polars as pl
    import pyarrow.dataset as ds

    sql = "select count(*) from {} where " + f'"{name}" = $label'
    yield "DuckDB", lambda label: duckdb.execute(sql.format(f"read_parquet('{path}')"), {"label": label}).fetchone()[0]
    rows = pl.scan_parquet(path)
    yield "polars", lambda label: rows.filter(pl.col(name).cast(pl.String) == label).select(pl.len()).collect().item()
    dataset = ds.dataset(path, format="parquet")
    yield "pyarrow", lambda label: dataset.count_rows(filter=ds.field(name) == label)
    if importlib.util.find_spec("datafusion"):
        import datafusion

        context = datafusion.SessionContext()
        context.register_parquet("t", path)
        escaped = lambda label: label.replace("'", "''")
        query = 'select count(*) from t where "{}" = \'{}\''
        yield "DataFusion", lambda label: context.sql(query.format(name, escaped(label))).collect()[0].column(0)[0].as_py()


def ruled_out(path, name, label):
    """For each row group, whether its filter says that the label is not there."""
    import duckdb

    probed = duckdb.execute("from parquet_bloom_probe($path, $name, $label)", {"path": path, "name": name, "label": label})
    return [row[-1] for row in sorted(probed.fetchall())]


def check(source, path, expected):
    """Filters, where they are expected, and the answers with them."""
    import pyarrow.parquet as pq

    metadata = pq.ParquetFile(path).metadata
    columns = {metadata.schema.column(at).path: at for at in range(metadata.num_columns)}
    groups = range(metadata.num_row_groups)
    with h5py.File(source) as file:
        codes = {name: file[f"t/{name}"][:] for name in TYPES}
        labels = {name: file[f"t/CATEGORIES/{name}s"].asstr()[:] for name in TYPES}
    seen = spared = 0
    for name, own in codes.items():
        offsets = [metadata.row_group(group).column(columns[name]).bloom_filter_offset for group in groups]
        is_filtered = expected == "with" and name in FILTERED
        if [offset is not None for offset in offsets] != [is_filtered] * len(groups):
            sys.exit(f"{name}: filters at {offsets}")
        if expected == "without":
            continue
        readers = list(counts_by_readers(path, name))
        for label in [*dict.fromkeys(labels[name]), "no label"]:
            is_there = np.isin(own, np.flatnonzero(labels[name] == label))
            if is_filtered:
                occurs = [is_there[start : start + ROW_GROUP].any() for start in range(0, ROWS, ROW_GROUP)]
                out = ruled_out(path, name, label)
                if any(there and absent for there, absent in zip(occurs, out, strict=True)):
                    sys.exit(f"{name}: {label!r} is in row groups {occurs}, ruled out in {out}")
                seen, spared = seen + len(occurs) - sum(occurs), spared + sum(out)
            # Engines take their time; labels of a kind behave alike.
            for reader, count in readers if label in ASKED else ():
                if count(label) != is_there.sum():
                    sys.exit(f"{reader}: {count(label)} rows of {name} are {label!r}, not {is_there.sum()}")
    # A Bloom filter of 1 % lets one label in a hundred pass that is not there.
    if expected == "with" and spared < 0.9 * seen:
        sys.exit(f"{spared} of {seen} labels that do not occur are ruled out")
    print(f"{spared} of {seen} ruled out")


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](*sys.argv[2:])
