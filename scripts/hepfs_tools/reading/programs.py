"""Programs that read CSV and are no Python packages: sqlite3, R, LibreOffice. As in `text`: all values as text."""

import csv
import subprocess
import tempfile
from pathlib import Path

import pyarrow as pa

from .reader import reader


def must(command, given=None):
    """A program that must succeed; its output."""
    done = subprocess.run(command, input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace").strip().splitlines()[-1:] or done.returncode)
    return done.stdout


def from_csv(path, columns, missing=""):
    """A table of texts that a program wrote as CSV again."""
    csv.field_size_limit(1 << 24)
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        # A program may leave out the header of nothing.
        header = next(rows, [])
        by_name = dict(zip(header, zip(*rows)))
    texts = {name: [None if text == missing else text for text in by_name.get(name, ())] for name in columns}
    return pa.table({name: pa.array(texts[name], pa.string()) for name in columns})


@reader(
    "sqlite3 .import", "csv", program="sqlite3", version_of=("sqlite3", "--version"), most_rows=2000, blind=True
)
def sqlite(path, columns):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.csv"
        quoted = ", ".join(f'"{name}"' for name in columns)
        script = f".mode csv\n.import '{path}' t\n.headers on\n.output '{out}'\nselect {quoted} from t;\n"
        must(["sqlite3", "-batch", ":memory:"], script.encode())
        return from_csv(out, columns)


# An empty line would be no row for who reads it again.
R_WRITE = "write.csv(t, args[2], row.names = FALSE, na = '\"\"', fileEncoding = 'UTF-8')"


def by_r(path, columns, reading):
    """R reads, and writes what it found."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.csv"
        script = f"args <- commandArgs(TRUE); {reading}; {R_WRITE}"
        must(["Rscript", "--vanilla", "-e", script, str(path), str(out)])
        return from_csv(out, columns)


CARRIAGE = "takes a carriage return within quotes for a line feed"


@reader(
    "R read.csv",
    "csv",
    program="Rscript",
    version_of=("R", "--version"),
    most_rows=2000,
    # Its time grows with the square of a cell's length: 75 s of processor time for five cells of a megabyte.
    without=("big/huge",),
    blind=True,
    limits={"strings": CARRIAGE},
)
def r_read_csv(path, columns):
    reading = "t <- read.csv(args[1], colClasses = 'character', na.strings = '', check.names = FALSE, encoding = 'UTF-8', "
    reading += "blank.lines.skip = FALSE)"
    return by_r(path, columns, reading)


DOUBLED = "leaves quotes within quotes doubled; in files of one column, takes commas within quotes for separators"
WITH_QUOTES = (
    "strings",
    "enumerations",
    "categories",
    "complex",
    "compounds",
    "arrays",
    "lists",
    "lists of lists",
    "sequences",
)


@reader(
    "R fread",
    "csv",
    program="Rscript",
    version_of=("Rscript", "-e", "cat('data.table', as.character(packageVersion('data.table')))"),
    most_rows=2000,
    blind=True,
    limits={name: DOUBLED for name in (*WITH_QUOTES, "nothing_list")},
)
def r_fread(path, columns):
    reading = "library(data.table); t <- fread(args[1], colClasses = 'character', na.strings = '', encoding = 'UTF-8', "
    reading += "sep = ',', strip.white = FALSE)"
    return by_r(path, columns, reading)


@reader(
    "LibreOffice", "csv", program="soffice", version_of=("soffice", "--version"), most_rows=2000, blind=True, alone=False,
    limits={"strings": "takes a carriage return within a cell for a line feed, and drops tabs"},
)
def libreoffice(path, columns):
    with tempfile.TemporaryDirectory() as folder:
        width = len(next(csv.reader(open(path, newline="", encoding="utf-8"))))
        # Separator, quote, UTF-8, first line, every column as text.
        formats = "/".join(f"{column}/2" for column in range(1, width + 1))
        command = ["soffice", f"-env:UserInstallation=file://{folder}/profile", "--headless"]
        to_sheet = [f"--infilter=CSV:44,34,76,1,{formats}", "--convert-to", "ods", "--outdir", folder, str(path)]
        must([*command, *to_sheet])
        sheet = Path(folder) / f"{Path(path).stem}.ods"
        must([*command, "--convert-to", "csv:Text - txt - csv (StarCalc):44,34,76,1", "--outdir", folder, str(sheet)])
        return from_csv(sheet.with_suffix(".csv"), columns)
