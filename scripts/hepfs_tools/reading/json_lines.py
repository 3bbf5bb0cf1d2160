"""Readers of newline-delimited JSON. Values as text as in `text`, nested ones as JSON; or of types, where the reader
infers them."""

import json

import pyarrow as pa

from .reader import reader


def text_of(value):
    """A cell as CSV has it."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def strict(text):
    """JSON has no such number, though Python takes it for one."""
    raise ValueError(f"{text} is no JSON")


@reader("Python json", "ndjson", program="python3", version_of=("python3", "--version"), most_rows=2000)
def python_json(path, columns):
    with open(path, encoding="utf-8", newline="\n") as file:
        rows = [json.loads(line, parse_constant=strict) for line in file]
    return pa.table({name: pa.array([text_of(row[name]) for row in rows], pa.string()) for name in columns})


@reader("DuckDB json", "ndjson", module="duckdb", most_rows=2000)
def duckdb_json(path, columns):
    from .parquet import duckdb_query, quoted

    types = ", ".join(f"\"{name}\": 'VARCHAR'" for name in columns)
    options = f"format='newline_delimited', maximum_object_size=20000000, columns={{{types}}}"
    return duckdb_query(f"select {quoted(columns)} from read_json('{path}', {options})")


@reader("polars json", "ndjson", module="polars", most_rows=2000)
def polars_json(path, columns):
    import polars as pl

    with open(path, "rb") as file:
        # Types cannot be inferred from nothing.
        schema = None if file.read(1) else dict.fromkeys(columns, pl.String)
    frame = pl.scan_ndjson(path, schema=schema, infer_schema_length=None).select(columns).collect()
    # Integers past 2^63 become a type that Arrow does not have.
    return frame.with_columns(pl.selectors.by_dtype(pl.Int128).cast(pl.String)).to_arrow()
