"""Whole columns as stored, from the first byte to the last: h5py, h5dump, hepfs without FUSE and through a mount."""

import os

import h5py
import hdf5plugin
import numpy as np

from hepfs_tools.benching.files import LAYOUTS, NUMBERS, STRING_LAYOUTS, numbers, strings, warm, write_column
from hepfs_tools.benching.measure import (
    Rounds,
    Table,
    Taken,
    Unmeasurable,
    against,
    below,
    cores,
    progress,
    run,
    seconds,
)

RAW = "t/columns/x.raw"
# Of what the machine can give.
SHARE = 0.85
# Over the size of the cache, in MB.
MEMORY = 200


def by_h5py(path, buffer):
    """h5py's read into a buffer that was touched before; of variable strings, into objects."""
    with h5py.File(path) as file:
        if buffer is None:
            return Taken(seconds(lambda: file["t/x"][:]))
        return Taken(seconds(lambda: file["t/x"].read_direct(buffer)))


def by_h5dump(path):
    """`h5dump -b` to nowhere."""
    environment = {**os.environ, "HDF5_PLUGIN_PATH": hdf5plugin.PLUGINS_PATH}
    try:
        return run(["h5dump", "-d", "/t/x", "-b", "NATIVE", "-o", "/dev/null", path], env=environment)
    except FileNotFoundError:
        raise Unmeasurable("not installed (Debian: hdf5-tools)") from None


def measure(programs, path, buffer, size, arguments):
    """All of them in turn."""
    return Rounds(
        arguments.repeats,
        {
            "h5py": lambda: by_h5py(path, buffer),
            "h5dump": lambda: by_h5dump(path),
            "engine, one core": lambda: programs.read_engine(path, RAW, "one"),
            "engine": lambda: programs.read_engine(path, RAW, "all"),
            "mount": lambda: programs.read_mounted(path, RAW),
            "direct_io": lambda: programs.read_mounted(path, RAW, "--direct-io"),
            "null file system": lambda: programs.read_null(size),
        },
    )


def of_the_machine(rounds):
    """The mount's share of what the cores could give if decoding and FUSE were all there is to do."""

    def share(mount, engine, null):
        return (engine.core_seconds + null.core_seconds) / cores() / mount.seconds

    return rounds.together(("mount", "engine", "null file system"), share)


def row(table, name, layout, gigabytes, rounds):
    """The row of one file."""

    def rate(who):
        return f"{rounds.median(who, lambda taken: gigabytes / taken.seconds):.2f}" if rounds.has(who) else "–"

    def ratio(who, wanted=None):
        return against(rounds.ratio(who, "h5py"), wanted) if rounds.has(who, "h5py") else "–"

    def core_seconds(who):
        if not rounds.has(who):
            return "–"
        shown = f"{rounds.median(who, lambda taken: taken.core_seconds) / gigabytes:.2f}"
        # Whose time is not in what the daemon took.
        return f"{shown} and a worker's" if rounds.taken[who][0].through_worker else shown

    memory = share = "–"
    if rounds.has("mount"):
        limit = min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4, 1 << 30)
        memory = below(rounds.median("mount", lambda taken: taken.memory) / 1e6, limit / 1e6 + MEMORY, 0)
    whole = rounds.has("mount", "engine", "null file system")
    if whole and not rounds.taken["engine"][0].through_worker:
        share = against(of_the_machine(rounds), None if layout.is_plain else SHARE)
    if whole and layout.is_plain:
        share += f"; {against(rounds.ratio('mount', 'null file system'), SHARE)} of null"
    table.row(
        name, rate("h5py"), rate("h5dump"), rate("engine, one core"), ratio("engine, one core"),
        rate("engine"), ratio("engine", layout.engine), rate("mount"), ratio("mount", layout.mount), share,
        rate("direct_io"), ratio("direct_io"), rate("null file system"),
        core_seconds("engine"), core_seconds("null file system"), core_seconds("mount"), memory,
    )


def files(arguments):
    """Name, layout, what is written, h5py's buffer, bytes of `.raw`."""
    for kind in NUMBERS:
        data = numbers(kind, arguments.rows)
        for name, layout in LAYOUTS.items():
            yield f"{kind}, {name}", layout, data, data.copy(), data.nbytes
    # A tenth: h5py takes a minute for all, to write and to read.
    data = strings(max(arguments.rows // 10, 1))
    for name, layout in STRING_LAYOUTS.items():
        if layout.variable:
            # A NUL ends each.
            yield name, layout, data, None, int(np.strings.str_len(data).sum()) + len(data)
        else:
            yield name, layout, data, data.copy(), data.nbytes


def bench(programs, folder, arguments):
    """`cat columns/x.raw` and the same bytes without FUSE, beside h5py and h5dump."""
    table = Table(
        "GB/s (÷ h5py)", "h5py", "h5dump -b", "engine, 1 core", "÷", "engine, all", "÷", "mount", "÷", "of the machine",
        "`--direct-io`", "÷", "null file system", "core-s/GB: engine", "FUSE", "mount", "memory, MB",
    )
    path = folder / "whole.h5"
    for name, layout, data, buffer, size in files(arguments):
        if not arguments.matches(name):
            continue
        progress(f"whole: {name}")
        try:
            write_column(path, layout, data)
            warm(path)
            rounds = measure(programs, path, buffer, size, arguments)
            row(table, name, layout, size / 1e9, rounds)
            table.note(name, rounds.failed)
        except Unmeasurable as error:
            table.row(name)
            table.note(name, {"nothing measured": error})
        path.unlink(missing_ok=True)
    table.end()
