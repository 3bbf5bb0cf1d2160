"""Readers of CSV. Each gives every value as text, missing ones as nulls; `values.parsed` makes values of it."""

import csv
import io

import pyarrow as pa

from .reader import reader


def cells(text):
    """Rows of RFC 4180 with LF: text, or `None` for an empty field without quotes. Anything else is an error."""
    position, row = 0, []
    while position < len(text):
        if text[position] == '"':
            end = position + 1
            while True:
                end = text.index('"', end)
                if text[end + 1 : end + 2] != '"':
                    break
                end += 2
            row.append(text[position + 1 : end].replace('""', '"'))
            position = end + 1
        else:
            end = position
            while text[end] not in ",\n":
                if text[end] in '"\r':
                    raise ValueError(f"{text[end]!r} in a field without quotes at {end}")
                end += 1
            row.append(text[position:end] or None)
            position = end
        if text[position] == "\n":
            yield row
            row = []
        elif text[position] != ",":
            raise ValueError(f"{text[position]!r} behind a field at {position}")
        position += 1


@reader("RFC 4180", "csv", module="h5py", most_rows=2000)
def by_the_book(path, columns):
    """By the letter of the promise: no reader of others, but what all of them rely on."""
    rows = cells(path.read_bytes().decode("utf-8"))
    header = next(rows)
    by_name = dict(zip(header, zip(*rows))) or {}
    return pa.table({name: pa.array(by_name.get(name, ()), pa.string()) for name in columns})


@reader("Python csv", "csv", program="python3", version_of=("python3", "--version"), most_rows=2000, blind=True)
def python_csv(path, columns):
    csv.field_size_limit(1 << 24)
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        header = next(rows)
        by_name = dict(zip(header, zip(*rows)))
    return pa.table({name: pa.array([cell or None for cell in by_name.get(name, ())], pa.string()) for name in columns})


@reader("pyarrow csv", "csv", module="pyarrow", most_rows=2000)
def pyarrow_csv(path, columns):
    import pyarrow.csv as pc

    with open(path, encoding="utf-8", newline="") as file:
        header = next(csv.reader(io.StringIO(file.readline())))
    return pc.read_csv(
        path,
        # A row must fit into a block.
        read_options=pc.ReadOptions(block_size=1 << 25),
        parse_options=pc.ParseOptions(newlines_in_values=True),
        convert_options=pc.ConvertOptions(
            column_types={name: pa.string() for name in header},
            include_columns=columns,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


@reader("DuckDB csv", "csv", module="duckdb", most_rows=2000)
def duckdb_csv(path, columns):
    from .parquet import duckdb_query, quoted

    options = "all_varchar=true, header=true, delim=',', quote='\"', escape='\"', allow_quoted_nulls=false, "
    options += "max_line_size=20000000, parallel=false"
    return duckdb_query(f"select {quoted(columns)} from read_csv('{path}', {options})")


@reader("polars csv", "csv", module="polars", most_rows=2000)
def polars_csv(path, columns):
    import polars as pl

    return pl.scan_csv(path, infer_schema=False).select(columns).collect().to_arrow()


@reader("pandas csv", "csv", module="pandas", most_rows=2000, blind=True)
def pandas_csv(path, columns):
    import pandas as pd

    frame = pd.read_csv(path, usecols=columns, dtype=str, na_values=[""], keep_default_na=False)
    return pa.table({name: pa.array(frame[name], pa.string(), from_pandas=True) for name in columns})
