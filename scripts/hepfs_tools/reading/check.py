"""Holds one reader against the expected values, through a mount of the folder of fixtures.

    python3 -m hepfs_tools.reading.check --reader NAME --fixtures FOLDER --mount FOLDER [--rows N …] [--out FILE]

Writes a JSON line for each column that is not as it should be, and fails if there is one. A limit of a reader (in its
definition, with the reason) that does not show is as wrong as a difference.
"""

import argparse
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hepfs_tools.reading import commands, json_lines, numpy_map, parquet, programs, text, values  # noqa: F401
from hepfs_tools.reading.reader import READERS

# Views whose readers give texts.
TEXTS = ("csv", "ndjson", "txt")

# Views that keep NaN where it is missing; so do files of one column as CSV.
KEEP_NAN = ("arrow", "npy", "txt")

# JSON in text is compared value by value in Python, which takes its time.
MOST_JSON_ROWS = 2000


def tables(fixtures, wanted):
    """(file's name, table, expected values), small ones first."""
    found = []
    for path in sorted(fixtures.glob("*.arrow")):
        file, table = path.stem.split(".")
        if file != "clustered" and (not wanted or file.removeprefix("rows_") in wanted):
            found.append((file, table, path))
    found.sort(key=lambda entry: entry[2].stat().st_size)
    for file, table, path in found:
        with pa.memory_map(str(path)) as source:
            yield file, table, pa.ipc.open_file(source).read_all()


def write_native(path, expected, view):
    """The same values in a file that pyarrow wrote: what a reader gets wrong there is no fault of hepfs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if view == "parquet":
        pq.write_table(expected, path, compression="none", data_page_version="1.0")
    elif view == "arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, expected.schema) as writer:
            writer.write_table(expected)
    else:
        sys.exit(f"there is no native file for .{view}")


def nan_as_missing(array):
    """What a reader sees that keeps missing floats as NaN."""
    array = values.plain(array)
    if not pa.types.is_floating(array.type):
        return array
    return pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)


def empty_as_missing(array):
    """What a reader sees that cannot tell the empty string from a missing one."""
    array = values.plain(array)
    if pa.types.is_large_string(array.type):
        array = array.cast(pa.string())
    if not pa.types.is_string(array.type):
        return array
    return pc.if_else(pc.equal(array, ""), pa.scalar(None, pa.string()), array)


class Check:
    """One reader; what it found."""

    def __init__(self, reader, mount):
        self.reader, self.mount, self.results = reader, mount, []

    def column(self, place, field, expected, read, blind=False):
        """One column that was read, or the error instead of it."""
        group = field.metadata[b"group"].decode()
        status, detail = "ok", ""
        if b"nan" in field.metadata and (blind or self.reader.view in KEEP_NAN):
            expected = pc.fill_null(expected, float("nan"))
        try:
            got = read()
            if blind or self.reader.blind:
                got, expected = empty_as_missing(got), empty_as_missing(expected)
            if self.reader.nan_is_missing:
                expected = nan_as_missing(expected)
            if self.reader.view in TEXTS:
                got = values.parsed(got, expected, group)
            detail = values.difference(got, expected)
            status = "differs" if detail else "ok"
        except Exception as error:
            status, detail = "fails", values.first_line(error)
        self.record(place, field.name, group, status, detail)

    def record(self, place, column, group, status, detail):
        """One result: `ok`, `differs` or `fails`."""
        self.results.append({"place": place, "column": column, "group": group, "status": status, "detail": detail})

    def whole(self, place, path, expected):
        """All columns in one go; where that fails, each alone, to see which."""
        fields = {field.name: field for field in expected.schema}
        try:
            table = self.reader.read(path, list(fields))
        except Exception as error:
            print(f"{self.reader.name}: {place}: at once: {values.first_line(error)}", file=sys.stderr)
            for name, field in fields.items():
                self.column(place, field, expected[name], lambda name=name: self.reader.read(path, [name])[name])
            return
        for name, field in fields.items():
            self.column(place, field, expected[name], lambda name=name: table[name])

    def alone(self, place, folder, expected):
        """Each column's own file."""
        for field in expected.schema:
            path = folder / f"{field.name}.{self.reader.view}"
            name = field.name
            # In a CSV file of one column missing is `""` as well.
            blind = self.reader.view == "csv"
            self.column(f"{place} alone", field, expected[name], lambda: self.reader.read(path, [name])[name], blind)

    def run(self, fixtures, rows, native=False):
        """All tables."""
        if self.reader.check:
            self.reader.check(self, fixtures)
            return
        by_text = self.reader.view in TEXTS
        for file, table, expected in tables(fixtures, rows):
            if by_text and table == "nested" and expected.num_rows > MOST_JSON_ROWS:
                continue
            if expected.num_rows > self.reader.most_rows * (100 if table == "thin" else 1):
                continue
            place = f"{file}/{table}"
            if place in self.reader.without:
                continue
            # A Trevni file is one table.
            folder = self.mount / f"{file}.trv" if table == "table" else self.mount / f"{file}.h5" / table
            if native:
                write_native(folder / f"table.{self.reader.view}", expected, self.reader.view)
            self.whole(place, folder / f"table.{self.reader.view}", expected)
            if expected.num_rows == 1000 and self.reader.alone and not native:
                self.alone(place, folder / "columns", expected)

    def unexpected(self):
        """Differences that are no limits, and limits that do not show."""
        wrong = []
        shown = set()
        for result in self.results:
            reason = self.reader.limit(result["column"], result["group"])
            if result["status"] == "ok":
                continue
            if reason:
                shown.add(result["column"] if result["column"] in self.reader.limits else result["group"])
            else:
                wrong.append(result)
        met = {key for result in self.results for key in (result["column"], result["group"])}
        for key in self.reader.limits:
            if key in met and key not in shown:
                wrong.append({"limit": key, "detail": "this limit does not show: take it out of the list"})
        return wrong


def main():
    """One reader, all it can read."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--reader", required=True)
    parser.add_argument("--fixtures", type=Path, required=True)
    parser.add_argument("--mount", type=Path, required=True)
    parser.add_argument("--rows", nargs="*", default=[])
    parser.add_argument("--native", action="store_true", help="write the files by pyarrow below --mount, a plain folder")
    parser.add_argument("--out", type=Path, help="where all results go, as JSON")
    arguments = parser.parse_args()
    reader = READERS[arguments.reader]
    if reader.missing():
        sys.exit(f"{reader.name} is not installed: {reader.missing()}")
    check = Check(reader, arguments.mount)
    check.run(arguments.fixtures, arguments.rows, arguments.native)
    if arguments.out:
        arguments.out.write_text(json.dumps({"version": reader.version(), "results": check.results}))
    wrong = check.unexpected()
    for result in wrong[:60]:
        print(json.dumps(result, ensure_ascii=False))
    right = sum(result["status"] == "ok" for result in check.results)
    print(f"{reader.name} {reader.version()}: {right} of {len(check.results)} columns equal, {len(wrong)} wrong")
    if not check.results:
        sys.exit("nothing was read")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
