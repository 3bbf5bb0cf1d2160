"""Other ways of reading a column than once from front to back, beside h5py reading the same elements."""

import multiprocessing
import os
import random
import subprocess
import threading
import time

import h5py
import numpy as np

from hepfs_tools.benching.files import CHUNK_BYTES, LAYOUTS, chill, numbers, warm, write_column
from hepfs_tools.benching.measure import Rounds, Table, Taken, Unmeasurable, against, below, cat, progress, seconds
from hepfs_tools.benching.whole import RAW, by_h5py

KIND = np.dtype("int64")
BLOCK = 4096
# One block of 4 KiB in each of these is read.
STRIDE = 64 << 10
READERS = (2, 8)
# Seconds until a reader counts as failed.
PATIENCE = 120
MOST_RANDOM = 1000
# For random reads of what is not filtered, in ms.
PLAIN_P99 = 0.5
# For random reads in chunks of 1 MiB: times the decoding of one.
DECODED_P50 = 1.5


def places(size):
    """For random reads: a block of 4 KiB anywhere in each of the MiB of the column, which come in any order, so that no
    chunk of 1 MiB serves two of them."""
    dice = random.Random(1)
    pieces = dice.sample(range(size // CHUNK_BYTES), min(size // CHUNK_BYTES, MOST_RANDOM))
    return [piece * CHUNK_BYTES + dice.randrange(CHUNK_BYTES // BLOCK) * BLOCK for piece in pieces]


def blocks(read, offsets):
    """Reads blocks one after the other; how long each took."""
    latencies = []
    for offset in offsets:
        latencies.append(seconds(lambda: read(offset)))
    return Taken(sum(latencies), latencies=latencies)


def blocks_mounted(programs, path, offsets):
    """Blocks of a new mount."""
    with programs.shown(path, RAW) as (shown, _), open(shown, "rb", buffering=0) as file:
        return blocks(lambda offset: os.pread(file.fileno(), BLOCK, offset), offsets)


def blocks_h5py(path, offsets):
    """The same elements by h5py."""
    with h5py.File(path) as file:
        dataset = file["t/x"]
        count = BLOCK // KIND.itemsize
        return blocks(lambda offset: dataset[offset // KIND.itemsize : offset // KIND.itemsize + count], offsets)


def together_mounted(programs, path, readers):
    """Several `cat` of the same file of a new mount, begun at once."""
    with programs.shown(path, RAW) as (shown, _):
        start = time.perf_counter()
        nowhere = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        running = [subprocess.Popen(["cat", shown], **nowhere) for _ in range(readers)]
        if any([process.wait() for process in running]):
            raise Unmeasurable("`cat` failed")
        return Taken(time.perf_counter() - start)


def reader_h5py(path, rows, ready, done):
    """One of several processes."""
    buffer = np.ones(rows, KIND)
    with h5py.File(path) as file:
        ready.wait(PATIENCE)
        file["t/x"].read_direct(buffer)
    done.wait(PATIENCE)


def together_h5py(path, rows, readers):
    """Several processes with h5py, begun at once."""
    context = multiprocessing.get_context("fork")
    ready, done = context.Barrier(readers + 1), context.Barrier(readers + 1)
    processes = [context.Process(target=reader_h5py, args=(path, rows, ready, done)) for _ in range(readers)]
    for process in processes:
        process.start()
    try:
        ready.wait(PATIENCE)
        taken = Taken(seconds(lambda: done.wait(PATIENCE)))
    except threading.BrokenBarrierError:
        raise Unmeasurable("a reader failed") from None
    for process in processes:
        process.join()
    return taken


def second_pass(programs, path):
    """`cat` once more: the page cache has it."""
    with programs.shown(path, RAW) as (shown, _):
        cat(shown)
        return cat(shown)


def cold(path, read):
    """A read of a file of which nothing is in memory."""
    chill(path)
    return read()


def measure(programs, path, arguments):
    """All of them in turn, ours and theirs."""
    size = arguments.rows * KIND.itemsize
    # Ones, unlike zeros, touch their memory.
    buffer = np.ones(arguments.rows, KIND)
    at_random, strided = places(size), range(0, size - BLOCK + 1, STRIDE)
    measures = {
        "decoding": lambda: programs.read_engine(path, RAW, "one"),
        "random": lambda: blocks_mounted(programs, path, at_random),
        "random, h5py": lambda: blocks_h5py(path, at_random),
        "strided": lambda: blocks_mounted(programs, path, strided),
        "strided, h5py": lambda: blocks_h5py(path, strided),
        "second pass": lambda: second_pass(programs, path),
        "second pass, h5py": lambda: by_h5py(path, buffer),
    }
    for readers in READERS:
        measures[f"{readers} readers"] = lambda readers=readers: together_mounted(programs, path, readers)
        measures[f"{readers} readers, h5py"] = lambda readers=readers: together_h5py(path, arguments.rows, readers)
    # Last: what is read before it finds the file in memory.
    measures["cold disk"] = lambda: cold(path, lambda: programs.read_mounted(path, RAW))
    measures["cold disk, h5py"] = lambda: cold(path, lambda: by_h5py(path, buffer))
    return Rounds(arguments.repeats, measures)


def decoding_time(taken):
    """Of one core: what it waited for is left out, unless that was a worker's decoding."""
    return taken.seconds if taken.through_worker else taken.core_seconds


def row(table, name, layout, rounds, gigabytes):
    """The row of one file."""
    random_reads = ["–"] * 3
    if rounds.has("random", "random, h5py", "decoding"):
        p50, p99 = (rounds.slowest("random", share) * 1e3 for share in (0.5, 0.99))
        chunk = rounds.median("decoding", decoding_time) / gigabytes / 1e9 * CHUNK_BYTES * 1e3
        of_1_mib = layout.options.get("chunks") is True
        random_reads = [
            below(p50, DECODED_P50 * chunk) if of_1_mib and not layout.is_plain else f"{p50:.2f}",
            below(p99, PLAIN_P99) if layout.is_plain else f"{p99:.2f}",
            ", ".join(f"{rounds.slowest('random, h5py', share) * 1e3:.2f}" for share in (0.5, 0.99)),
        ]

    def beside(what, times=1):
        if not rounds.has(what, f"{what}, h5py"):
            return "–"
        rate = rounds.median(what, lambda taken: times * gigabytes / taken.seconds)
        return f"{rate:.2f} ({against(rounds.ratio(what, f'{what}, h5py'), None)})"

    strided = against(rounds.ratio("strided", "strided, h5py"), None) if rounds.has("strided", "strided, h5py") else "–"
    readers = [beside(f"{count} readers", count) for count in READERS]
    table.row(name, *random_reads, strided, *readers, beside("second pass"), beside("cold disk"))


def bench(programs, folder, arguments):
    """Random and strided reads, several readers, the page cache, a cold disk; int64."""
    table = Table(
        "int64", "random 4 KiB: p50, ms", "p99", "h5py: p50, p99", "4 KiB of each 64, ÷ h5py",
        *(f"{count} readers, GB/s (÷ h5py)" for count in READERS), "second pass, GB/s (÷ h5py)", "cold disk, GB/s (÷ h5py)",
    )
    path = folder / "access.h5"
    data = numbers(KIND.name, arguments.rows)
    for name, layout in LAYOUTS.items():
        if not arguments.matches(f"{KIND.name}, {name}"):
            continue
        progress(f"access: {name}")
        try:
            write_column(path, layout, data)
            warm(path)
            rounds = measure(programs, path, arguments)
            row(table, name, layout, rounds, data.nbytes / 1e9)
            table.note(name, rounds.failed)
        except Unmeasurable as error:
            table.row(name)
            table.note(name, {"nothing measured": error})
        path.unlink(missing_ok=True)
    table.end()
