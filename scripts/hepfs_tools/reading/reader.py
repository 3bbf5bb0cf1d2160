"""What a reader is, and the list of them."""

import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from typing import Callable

READERS = {}

# How Debian calls what holds a program.
PACKAGES = {"java": "default-jre-headless", "Rscript": "r-base-core", "soffice": "libreoffice-calc"}


@dataclass
class Reader:
    """A piece of other software with one way of using it."""

    name: str
    view: str
    """Suffix of the files it reads."""
    read: Callable | None
    """(path, names of columns) → Arrow table; of text views, every value as text."""
    module: str = ""
    """The Python package it comes in, if any."""
    program: str = ""
    """The program it is or needs, if any."""
    version_of: tuple = ()
    """A command that prints the version."""
    check: Callable | None = None
    """What it does instead of reading tables: (its `check.Check`, folder of fixtures)."""
    most_rows: int = 1 << 62
    """Longer tables take it too long; a hundred times as many where there are few columns."""
    without: tuple = ()
    """Tables that it takes hours to read, as `file/table`."""
    alone: bool = True
    """Whether it reads the files of single columns as well."""
    blind: bool = False
    """It takes the empty string for a missing one, and has no way to tell them apart."""
    nan_is_missing: bool = False
    """It keeps a missing float as NaN, and so has no way to tell them apart."""
    limits: dict = field(default_factory=dict)
    """Group of types, or name of a column → why this reader does not give the values back as they are."""

    def missing(self):
        """How to install what is missing; nothing where all is there."""
        if self.module and not importlib.util.find_spec(self.module):
            return f"{self.module}, which the extra `engines` of scripts/pyproject.toml brings"
        if self.program and not shutil.which(self.program):
            return f"apt install {PACKAGES.get(self.program, self.program)}"
        return ""

    def version(self):
        """As the software tells it."""
        if self.version_of:
            done = subprocess.run(self.version_of, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            # Up to the number: dates and names of builds may follow.
            found = re.match(r".*?\d[\w.]*", done.stdout.strip())
            return found.group() if found else "?"
        return importlib.metadata.version(self.module)

    def limit(self, column, group):
        """Why a column is not expected to be right."""
        return self.limits.get(column) or self.limits.get(group)


def reader(name, view, limits=None, **about):
    """Puts a function into the list of readers."""

    def register(read):
        READERS[name] = Reader(name, view, read, limits=limits or {}, **about)
        return read

    return register


def checker(name, view, **about):
    """Puts a function that does its own comparing into the list of readers."""

    def register(check):
        READERS[name] = Reader(name, view, None, check=check, **about)
        return check

    return register
