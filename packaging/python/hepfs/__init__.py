"""Reads tables of HDF5 files as ordinary files, by the program `hepfs`.

    with hepfs.mount("run.h5") as path:
        frame = polars.read_parquet(path / "run_042" / "table.parquet")

    hepfs.export("run.h5", "run_042", "energy > 5", to="part.parquet")

Each function runs a command of the program. Further keyword arguments are the options of that command, which
`hepfs COMMAND --help` lists: `cache_size="1G"` is `--cache-size=1G`, `grids=True` is `--grids`, and a list is joined by
commas. `None` and `False` leave an option out. A remark of the program is a Python warning.

A source may be the address of an object in a store. The user and the query of one, such as a signature, are secrets: no
argument of a process, no message and no name has them.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import warnings
import weakref
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Union, overload

__all__ = ["Error", "MountError", "cat", "export", "info", "mount", "program", "query"]

StrPath = Union[str, os.PathLike[str]]
Sources = Union[StrPath, Iterable[StrPath]]
# A source or expression, or a source and a path in it.
Operand = Union[StrPath, "tuple[StrPath, str]"]
Option = Union[None, bool, int, float, str, os.PathLike[str], Iterable[str]]


class Error(Exception):
    """The program failed; the message is its own.

    `exit_code` is the program's: 1 failed, 2 wrong arguments, 127 not found; negative: ended by that signal.
    """

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class MountError(Error):
    """The system refuses to mount. All functions but `mount` work there."""


def program() -> str:
    """Finds the program `hepfs`: the one installed together with this module, else the first on `PATH`.

    Raises `Error` where there is none.
    """
    site = Path(__file__).parents[1]
    folders = [site / "bin"]  # of `pip install --target`
    if site.parent.parent.name.startswith("lib"):  # PREFIX/lib/pythonX.Y/site-packages
        folders.append(site.parent.parent.parent / "bin")
    folders.append(Path(sys.prefix) / "bin")  # of an installation that refers to a checkout
    beside = os.pathsep.join(map(str, folders))
    found = shutil.which("hepfs", path=beside) or shutil.which("hepfs")
    if found is None:
        raise Error("the program `hepfs` is neither beside this module nor on PATH: `pip install hepfs` brings it", 127)
    return found


class mount:
    """Mounts files or folders for a `with` block, which gets the path of the mount point.

    The mount point is a fresh folder, or `at`, which may exist. In the end the mount is gone, and so is a folder made
    for it: also after an exception or Ctrl-C, when the object is collected, and when Python exits. Only a killed Python
    leaves the mount behind; `hepfs umount` ends it. Outside of a `with` block, use `path` and `close()`.

    Raises `MountError` where the system refuses to mount, and `Error` where no source can be opened.
    """

    path: Path

    def __init__(self, *sources: StrPath, at: StrPath | None = None, **options: Option) -> None:
        fresh = os.path.join(tempfile.gettempdir(), f"hepfs-{os.urandom(4).hex()}")
        self.path = Path(os.path.abspath(fresh if at is None else at))
        # To look at the folder itself would fail on a mount that was left behind.
        is_made = self.path.name not in os.listdir(self.path.parent)
        self._unmount = partial(_unmount, self.path, is_made, os.getpid())
        self._end = weakref.finalize(self, self._unmount)
        try:
            if is_made:
                self.path.mkdir(0o700)
            _run("mount", options, *sources, self.path)
        except Error as error:
            # Another program mounted here.
            self._end.detach()
            if is_made:
                self.path.rmdir()
            # The program says so where the system refuses.
            if "needs no mount" not in str(error):
                raise
            run = f"hepfs run {shlex.join(_shown(os.fspath(source)) for source in sources)} -- python ..."
            advice = f"`{run}` needs no right to mount, only /dev/fuse: $HEPFS_MOUNT is the path there"
            raise MountError(f"{error}. {advice}", error.exit_code) from None
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Path:
        return self.path

    def close(self, *_: object) -> None:
        """Unmounts, unless that is done.

        A mount in use is detached, with a `ResourceWarning`: its open files and memory maps stay readable until they
        are closed.
        """
        if self._end.alive:
            self._unmount()
            self._end.detach()

    __exit__ = close


def _unmount(path: Path, is_made: bool, owner: int) -> None:
    """Unmounts, and removes a folder that was made for it. In a fork of the owner it does nothing."""
    if os.getpid() != owner:
        return
    problem = None
    try:
        _detach(path)
    except BaseException as error:  # noqa: BLE001
        problem = error
        _detach(path, lazy=True)
    if is_made:
        with contextlib.suppress(FileNotFoundError):
            path.rmdir()
    if problem and not isinstance(problem, Error):
        raise problem
    if "in use" in str(problem):
        said = f"{path}: detached while in use; what is open stays readable until it is closed"
        warnings.warn(said, ResourceWarning, stacklevel=3)


def _detach(path: Path, **options: Option) -> None:
    """Unmounts, unless that has been done."""
    try:
        _run("umount", options, path)
    except Error as error:
        if not re.search("nothing is mounted|No such file", str(error)):
            raise


@overload
def export(source: Sources, table: str, expression: str | None, to: StrPath, **options: Option) -> Path: ...
@overload
def export(source: Sources, table: str, expression: str | None = None, *, to: StrPath, **options: Option) -> Path: ...
def export(
    source: Sources, table: str, expression: str | None = None, to: StrPath | None = None, **options: Option
) -> Path:
    """Writes the rows of a table that satisfy an expression, or all, to the file `to`, whose suffix names the format.

    Of several sources it writes their tables as one, with the name of the file in a column `file`. Returns `to`.
    Raises `Error`.
    """
    if to is None:
        raise TypeError("export() wants the file to write: to=...")
    more, operands = _table(source, table)
    # A path of `-` would be standard output.
    more["output"] = os.path.join(".", to)
    _run("export", {**more, **options}, *operands, *([] if expression is None else [expression]))
    return Path(to)


def query(source: Sources, table: str, expression: str, format: str = "arrow", **options: Option) -> bytes:
    """Returns the rows of a table that satisfy an expression, as the bytes of a file in Arrow or another format.

    Raises `Error`.
    """
    more, operands = _table(source, table)
    return _run("query", {**more, "format": format, **options}, *operands, expression)


def cat(source: StrPath, path: str, **options: Option) -> bytes:
    """Returns the bytes of the file that a mount of the source would show at this path.

    Raises `Error`.
    """
    return _run("cat", options, (source, path))


def info(source: StrPath, path: str = "", **options: Option) -> dict[str, Any]:
    """Describes a group, a table or an array of a file as `metadata.json` of a mount does.

    Raises `Error`.
    """
    described: dict[str, Any] = json.loads(_run("info", {"json": True, **options}, (source, path)))
    return described


def _table(source: Sources, table: str) -> tuple[dict[str, Option], list[Operand]]:
    """The options and operands that name a table of one source or of several."""
    if isinstance(source, (str, os.PathLike)):
        return {}, [(source, table)]
    return {"table": table}, list(source)


def _shown(text: str) -> str:
    """An address without user and query; any other text as it is."""
    parts = re.match(r"(https?://)(?:[^/?]*@)?([^?]*)", text)
    return parts[1] + parts[2] if parts else text


def _run(command: str, options: Mapping[str, Option], *operands: Operand) -> bytes:
    """Runs a command of the program to its end; what it wrote. Raises `Error`."""
    arguments = [program(), command]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is None or value is False:
            continue
        if value is True:
            arguments.append(flag)
        elif isinstance(value, os.PathLike):
            arguments.append(f"{flag}={os.fspath(value)}")
        elif isinstance(value, Iterable) and not isinstance(value, str):
            arguments.append(f"{flag}={','.join(value)}")
        else:
            arguments.append(f"{flag}={value}")
    arguments.append("--")
    whole = []
    for operand in operands:
        source, *path = operand if isinstance(operand, tuple) else (operand,)
        text = os.fspath(source)
        shown = _shown(text)
        if shown != text:
            whole.append(text)
        arguments.append(":".join([shown, *path]))
    # All users may read arguments.
    secrets = {"HEPFS_ADDRESSES": "\n".join([*whole, os.environ.get("HEPFS_ADDRESSES", "")])} if whole else {}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        arguments, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env={**os.environ, **secrets}
    ) as process:
        try:
            output, said = process.communicate()
        except BaseException:
            # Ctrl-C: the program leaves no half-written file behind.
            process.terminate()
            process.wait()
            raise
    lines = said.decode(errors="replace").strip().splitlines()
    # Long work tells how far it is.
    lines = [re.sub("^hepfs: (warning: )?", "", line) for line in lines if not re.match(r"hepfs: \d+ %: ", line)]
    if process.returncode:
        ended = f"hepfs {command} ended with {process.returncode}"
        raise Error("\n".join(lines) or ended, process.returncode)
    for line in lines:
        warnings.warn(line, stacklevel=3)
    return output
