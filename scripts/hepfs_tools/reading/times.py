"""Columns of times through other software: each must find the instants that NumPy makes of what h5py stored.

    python3 -m hepfs_tools.reading.times HEPFS FOLDER

Writes a file into FOLDER, mounts it with the program HEPFS there, twice: the second time with the bounds
of columns known. Prints what differs, and fails if something does.
"""

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from hepfs_tools import DATA
from hepfs_tools.hep001 import instants
from hepfs_tools.hep001.write import BOOLEAN, april_table, column, describe, strings

TIMES = DATA / "times.h5"
ROWS = 200_003
FILL = -(2**63)
COLUMNS = {
    "ns": ("<i8", "ns since 1970-01-01", 1_700_000_000_000_000_000, 86_400_000_123_457),
    "us": ("<i8", "microseconds since 1970-01-01 00:00:00 +0:00", 1_700_000_000_000_000, 60_000_007),
    "ms": (">i8", "ms since 2020-01-01T00:00:00.25Z", 0, 1001),
    "s": ("<i4", "seconds since 1970-01-01", 1_600_000_000, 977),
    "wide_s": ("<i8", "s since 1992-10-8 15:15:42.5 -6:00", -5_000, 311),
    "minutes": ("<u4", "minutes since 1900-01-01", 0, 13),
    "days": ("<i4", "days since 1858-11-17", 0, 1),
    "short": ("<i2", "hours since 2026-01-01", 0, 1),
}
# Dates as some instruments spell them.
SPELT = {"days": "days since 1858/11/17", "short": "hours since 20260101"}

problems = []


def expect(what, found, wanted):
    """Notes what differs."""
    # Not a time equals itself as an integer alone.
    both = [a.view("i8") if a.dtype.kind == "M" else a for a in map(np.asarray, (found, wanted))]
    if not np.array_equal(*both):
        problems.append(f"{what}: {found!r}, expected {wanted!r}"[:600])


def write(path):
    """A table of columns, every hundredth value of `ns` and `wide_s` missing; the stored integers."""
    stored = {}
    with h5py.File(path, "w") as file:
        table = april_table(file.create_group("t"))
        table.attrs["_index"] = np.bytes_("us")
        for name, (kind, units, first, step) in COLUMNS.items():
            values = first + np.arange(ROWS, dtype=object) % 30_000 * step + np.arange(ROWS, dtype=object) // 30_000
            if name in ("ns", "wide_s"):
                values[::100] = FILL
            fill = FILL if name in ("ns", "wide_s") else None
            values = values.astype(kind)
            made = column(table, name, values, kind, fill=fill, chunk=20_000, compression="gzip", shuffle=True)
            describe(made, units=SPELT.get(name, units))
            stored[name] = values
        for name, values in others().items():
            if values.dtype.kind == "O":
                strings(table, name, values.tolist())
            else:
                column(table, name, values, BOOLEAN if values.dtype == bool else None, chunk=20_000)
    return stored


def others():
    """Columns of other types, to ask of and to order by."""
    number = np.arange(ROWS)
    floats = (number * 7919 % 1009 / 8 - 50).astype("f4")
    floats[::97], floats[1::997], floats[2::997], floats[3::499] = np.nan, np.inf, -np.inf, -0.0
    words = np.array([f"w{at * 31 % 211}" * (at % 3) for at in range(ROWS)], object)
    position = np.zeros(ROWS, [("x", "<f4"), ("inner", [("n", "<i2")])])
    position["x"], position["inner"]["n"] = number % 1000 / 4, number % 77
    return {"x": number.astype("i4"), "f": floats, "word": words, "flag": number % 3 == 1, "position": position}


def truth(name, values):
    """The instants as datetime64 in the unit that is shown, NaT where missing."""
    unit, start = instants.scale(COLUMNS[name][1], None)
    shown = instants.shown_in(unit, start)
    missing = values == FILL if name in ("ns", "wide_s") else np.zeros(len(values), bool)
    counts = [0 if gone else int((int(value) * unit + start) / shown) for value, gone in zip(values, missing)]
    made = np.array(counts, "i8").view(f"M8[{dict(zip(instants.DIGITS, ('s', 'ms', 'us', 'ns')))[shown]}]")
    made[missing] = np.datetime64("NaT")
    return made


def check(mount, stored, expected):
    """Every reader of every view."""
    table = mount / "t"
    parquet, arrow = pq.read_table(table / "table.parquet"), pyarrow.feather.read_table(table / "table.arrow")
    frame, polar = pd.read_parquet(table / "table.parquet"), pl.read_parquet(table / "table.parquet")
    text = pd.read_csv(table / "table.csv", parse_dates=list(COLUMNS))
    sniffed = pl.read_csv(table / "table.csv", try_parse_dates=True)
    connection = duckdb.connect()
    connection.sql("set timezone = 'UTC'")
    lines = connection.sql(f"select * from '{table}/table.csv'")
    types = dict(zip(lines.columns, map(str, lines.types)))
    for name, wanted in expected.items():
        unit = np.datetime_data(wanted.dtype)[0]
        in_parquet = "ms" if unit == "s" else unit
        zone = None if unit == "ns" else "UTC"
        expect(f"{name} parquet type", parquet[name].type == pa.timestamp(in_parquet, zone), True)
        expect(f"{name} arrow type", arrow[name].type == pa.timestamp(unit, "UTC"), True)
        for view, found in (("parquet", parquet[name]), ("arrow", arrow[name])):
            expect(f"{name} {view} nulls", found.is_null().to_numpy(), np.isnat(wanted))
            there = found.drop_null().cast(pa.int64()).to_numpy()
            as_shown = wanted[~np.isnat(wanted)].astype(f"M8[{in_parquet if view == 'parquet' else unit}]")
            expect(f"{name} {view}", there, as_shown.view("i8"))
        series = frame.index.to_series() if name == "us" else frame[name]
        expect(f"{name} pandas time zone", str(getattr(series.dtype, "tz", None)), "UTC")
        naive = series.dt.tz_localize(None).to_numpy()
        expect(f"{name} pandas", naive.astype("M8[ns]"), wanted.astype("M8[ns]"))
        by_text = text[name].dt.tz_localize(None).to_numpy()
        expect(f"{name} pandas csv", by_text.astype("M8[ns]"), wanted.astype("M8[ns]"))
        by_polars = polar[name].dt.replace_time_zone(None).to_numpy()
        expect(f"{name} polars", by_polars.astype("M8[ns]"), wanted.astype("M8[ns]"))
        expect(f"{name} polars csv type", isinstance(sniffed[name].dtype, pl.Datetime), True)
        parsed = sniffed[name].dt.replace_time_zone(None).to_numpy().astype("M8[us]")
        expect(f"{name} polars csv", parsed, wanted.astype("M8[us]"))
        expect(f"{name} DuckDB csv type", types[name].startswith("TIMESTAMP"), True)
        expect(f"{name} npy", np.load(table / "columns" / f"{name}.npy"), stored[name])
        years = wanted[~np.isnat(wanted)].astype("M8[Y]").astype(int) + 1970
        for suffix in ("parquet", "csv"):
            query = f"select year({name}) y, count(*) from '{table}/table.{suffix}' where y is not null group by y"
            query += " order by y"
            rows = connection.sql(query).fetchall()
            expect(f"{name} year() of {suffix}", rows, list(zip(*np.unique(years, return_counts=True))))
        middle = np.sort(wanted[~np.isnat(wanted)])[ROWS // 3]
        literal = str(middle if unit == "ns" else middle.astype("M8[us]"))
        query = f"select count(*) from '{table}/table.parquet' where {name} > '{literal}'"
        [(count,)] = connection.sql(query).fetchall()
        expect(f"{name} > {literal} in DuckDB", count, int((wanted > middle).sum()))
        path = table / "where" / f"{name}:gt:{str(middle).replace(':', '%3A')}" / "columns" / f"{name}.npy"
        expect(f"{path.parent.parent.name}", len(np.load(path)), int((wanted > middle).sum()))


QUERIES = {
    "s >= '2020-09-20' and s < '2020-09-21' order by x desc limit 10": None,
    "x between 20 and 900 order by ns, x": "x between 20 and 900 order by ns nulls last, x",
    "x < 2000 order by wide_s desc, minutes limit 50": "x < 2000 order by wide_s desc nulls last, minutes, x limit 50",
    "year(days) = 1900 order by x limit 7": None,
    "year(ns) in (2030, 2055) and ns < '2055-02-01T00:00:00.5' order by x": None,
    "not (short > '2026-02-01' or x > 5000) order by short desc, x limit 9": None,
    "ms between '2020-01-01T01:00:00.3' and '2020-01-01T01:00:10' order by x": None,
    "us > '2023-11-20T00:00:00' limit 11": "us > '2023-11-20T00:00:00' order by x limit 11",
    "order by us desc, x limit 3": "true order by us desc, x limit 3",
    "limit 0": "false",
    "f > 60 or f is null order by f, x limit 40": None,
    "order by f limit 3000": "true order by f, x limit 3000",
    # NaN comes behind all numbers in either direction; to DuckDB it is the greatest.
    "order by f desc, word, x limit 5000": "true order by isnan(f), f desc, word, x limit 5000",
    "flag and not (word like 'w1%') order by word desc, f, x limit 900": None,
    "not flag and x < 70 order by flag, x desc": None,
    "position.x > 249.5 and position.inner.n < 5 order by x": None,
    "x < 3000 order by position.inner.n desc, position.x, x": None,
    "order by word, x": "true order by word, x",
}


def queries(hepfs, source, expected):
    """The same of DuckDB over what NumPy has."""
    columns = {name: pa.array(wanted) for name, wanted in expected.items()}
    for name, values in others().items():
        if values.dtype.names:
            inner = pa.StructArray.from_arrays([values["inner"]["n"]], ["n"])
            values = pa.StructArray.from_arrays([pa.array(values["x"]), inner], ["x", "inner"])
        columns[name] = pa.array(values)
    rows = pa.table(columns)  # noqa: F841, DuckDB finds it by its name
    connection = duckdb.connect()
    for query, sql in QUERIES.items():
        line = [hepfs, "query", "--cache-folder=none", f"{source}:t", query, "--columns=x"]
        found = subprocess.run(line, check=True, capture_output=True, text=True).stdout.split()[1:]
        sql = sql or (f"true {query}" if query.startswith("order") else query)
        wanted = connection.sql(f"select x from rows where {sql}").fetchall()
        expect(query, list(map(int, found)), [x for (x,) in wanted])
        if sql != "false" and not wanted:
            problems.append(f"{query}: no rows")


def bounds(mount, expected):
    """Row groups tell the least and the greatest instant."""
    metadata = pq.ParquetFile(mount / "t" / "table.parquet").metadata
    for at in range(metadata.num_columns):
        name = metadata.schema.column(at).name
        if name not in expected:
            continue
        first = 0
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            part = expected[name][first : first + group.num_rows]
            first += group.num_rows
            part = part[~np.isnat(part)]
            statistics = group.column(at).statistics
            has = statistics is not None and statistics.has_min_max
            # A column that can hold what has no instant is told of as well: none does.
            expect(f"{name} bounds are known", has, True)
            if has:
                both = [bound.replace(tzinfo=None) for bound in (statistics.min, statistics.max)]
                wanted = np.array([part.min(), part.max()]).astype("M8[us]")
                expect(f"{name} bounds", np.array(both, "M8[us]"), wanted)


def iso(count, unit):
    """An instant of a unit as the expected values of fixtures have it."""
    digits = ("s", "ms", "us", "ns").index(unit) * 3
    return instants.text(count, next(step for step, known in instants.DIGITS.items() if known == digits), 0)


def ends(mount):
    """Every column of `tests/data/times.h5`: the ends of each type of integer."""
    table, found = mount / "t", 0
    tables = {"parquet": pq.read_table(table / "table.parquet")}
    tables["arrow"] = pyarrow.feather.read_table(table / "table.arrow")
    expected = json.loads(TIMES.with_suffix(".expected.json").read_text())
    for column in expected["tables"]["/t"]["columns"]:
        is_time = any(isinstance(cell, str) and cell.endswith("Z") for cell in column["csv"])
        for view, table in tables.items():
            values = table[column["name"]]
            expect(f"{column['name']} {view} is of times", pa.types.is_timestamp(values.type), is_time)
            if is_time:
                found += 1
                shown = [None if v is None else iso(v, values.type.unit) for v in values.cast(pa.int64()).to_pylist()]
                # Parquet has no seconds.
                is_longer = values.type.unit == "ms" and not any("." in cell for cell in column["csv"] if cell)
                wanted = [cell and f"{cell[:-1]}.000Z" if is_longer else cell for cell in column["csv"]]
                expect(f"{column['name']} {view}", [str(v) for v in shown], [str(v) for v in wanted])
    expect("columns of times", found > 60, True)


# What DuckDB has no form of for nanoseconds with a zone, and what it has one of.
LACKING = ["hour(t)", "year(t)", "extract(month from t)", "date_trunc('day', t)", "t - interval 1 hour", "epoch(t)"]
KNOWN = ["t > '2025-01-01'", "t::date", "strftime(t, '%H')", "epoch_ns(t)", "hour(t::timestamptz)"]


def zoned(folder):
    """Why nanoseconds have no zone in Parquet (docs/dev/readers.md): once DuckDB has these functions, they can have one."""
    times = pd.date_range("2024-12-31 22:30", periods=6, freq="30min", tz="UTC").tz_convert("Europe/Zurich")
    for unit in ("us", "ns"):
        path = folder / f"{unit}.parquet"
        pd.DataFrame({"t": times.as_unit(unit)}).to_parquet(path)
        for term in LACKING + KNOWN:
            try:
                duckdb.sql(f"select ({term})::varchar from '{path}'").fetchall()
                works = True
            except duckdb.Error:
                works = False
            expect(f"DuckDB has {term} of {unit}", works, unit == "us" or term in KNOWN)
        expect(f"polars has the hour of {unit}", pl.read_parquet(path)["t"].dt.hour().to_list(), [23, 0, 0, 1, 1, 2])


def main():
    """Both mounts."""
    hepfs, folder = sys.argv[1], Path(sys.argv[2])
    source, mount = folder / "times.h5", folder / "mnt"
    mount.mkdir()
    stored = write(source)
    expected = {name: truth(name, values) for name, values in stored.items()}
    subprocess.run([hepfs, "mount", "--cache-folder=none", TIMES, mount], check=True)
    try:
        ends(mount)
    finally:
        subprocess.run([hepfs, "umount", "--lazy", mount], check=False)
    queries(hepfs, source, expected)
    zoned(folder)
    for number in range(2):
        cache = ["--cache-folder", folder / "cache"]
        if number == 1:
            subprocess.run([hepfs, "prepare", "--stats", *cache, source], check=True, capture_output=True)
        subprocess.run([hepfs, "mount", *cache, source, mount], check=True)
        try:
            check(mount, stored, expected)
            if number == 1:
                bounds(mount, expected)
        finally:
            subprocess.run([hepfs, "umount", "--lazy", mount], check=False)
    print("\n".join(problems))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
