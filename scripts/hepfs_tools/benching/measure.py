"""Times, rounds of them, and the table they go into."""

import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field


class Unmeasurable(Exception):
    """Something cannot be measured; says why."""


@dataclass
class Taken:
    """What one run took."""

    seconds: float
    core_seconds: float = 0.0
    memory: int = 0
    latencies: list = field(default_factory=list)
    through_worker: bool = False


def seconds(function):
    """Wall time of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def cores():
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0))


def run(command, **settings):
    """A program from start to end, its output thrown away."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **settings)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    taken = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Unmeasurable((said.strip().splitlines() or [f"status {process.returncode}"])[0])
    return Taken(taken, usage.ru_utime + usage.ru_stime)


def cat(path):
    """What `cat FILE` takes."""
    return run(["cat", path])


class Rounds:
    """Measures in turn, several times over, so that what is compared was taken under the same load."""

    def __init__(self, repeats, measures):
        self.taken = {name: [] for name in measures}
        self.failed = {}
        for _ in range(repeats):
            for name, measure in measures.items():
                if name in self.failed:
                    continue
                try:
                    self.taken[name].append(measure())
                except Unmeasurable as error:
                    self.failed[name] = str(error)
                    self.taken[name] = []

    def has(self, *names):
        """Whether all of these could be measured."""
        return all(self.taken.get(name) for name in names)

    def median(self, name, figure):
        """Median of a figure over the rounds."""
        return statistics.median(figure(taken) for taken in self.taken[name])

    def together(self, names, figure):
        """Median of a figure of several runs of the same round."""
        return statistics.median(figure(*of_round) for of_round in zip(*(self.taken[name] for name in names)))

    def ratio(self, ours, peer):
        """How many times as fast as a peer, round by round."""
        return self.together((ours, peer), lambda ours, peer: peer.seconds / ours.seconds)

    def slowest(self, name, share):
        """The latency that this share of all does not pass."""
        latencies = sorted(latency for taken in self.taken[name] for latency in taken.latencies)
        return latencies[min(int(len(latencies) * share), len(latencies) - 1)]


def pairs(repeats, ours, peer):
    """Medians of the seconds of both, and of the ratio peer/ours pair by pair."""
    rounds = Rounds(repeats, {"ours": lambda: Taken(ours()), "peer": lambda: Taken(peer())})
    if rounds.failed:
        raise Unmeasurable(*rounds.failed.values())
    return *(rounds.median(name, lambda taken: taken.seconds) for name in ("ours", "peer")), rounds.ratio("ours", "peer")


class Table:
    """A Markdown table, printed row by row, with notes below it."""

    def __init__(self, *columns):
        self.columns = len(columns)
        self.notes = []
        self.print(columns)
        self.print(["---"] * self.columns)

    def print(self, cells):
        """One line."""
        print("| " + " | ".join(cells) + " |", flush=True)

    def row(self, *cells):
        """One row; what is left out at its end stays empty."""
        self.print([*cells, *[""] * (self.columns - len(cells))])

    def note(self, what, failed):
        """Why something of a row is missing."""
        for reason in dict.fromkeys(failed.values()):
            names = ", ".join(name for name, its in failed.items() if its == reason)
            self.notes.append(f"- {what}: {names}: {reason}")

    def end(self):
        """Prints the notes."""
        print("".join(f"\n{note}" for note in self.notes) + "\n" * bool(self.notes), flush=True)


def comparison():
    """The table of those who compare one figure with one peer."""
    return Table("what", "hepfs", "peer", "ratio", "wanted")


def against(figure, wanted, digits=2):
    """A figure with what is wanted of it at least; bold where it falls short."""
    if wanted is None:
        return f"{figure:.{digits}f}"
    shown = f"{figure:.{digits}f}" if figure >= wanted else f"**{figure:.{digits}f}**"
    return f"{shown} (≥ {wanted:g})"


def below(figure, most, digits=2):
    """A figure with what it may be at most; bold where it is more."""
    shown = f"{figure:.{digits}f}" if figure < most else f"**{figure:.{digits}f}**"
    return f"{shown} (< {most:.4g})"


def progress(text):
    """Prints a line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)
