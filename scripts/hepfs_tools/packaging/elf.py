"""Facts of a program that its packages depend on, by `readelf`."""

import re
import subprocess


def readelf(program, *options):
    environment = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        ["readelf", "--wide", *options, str(program)], check=True, stdout=subprocess.PIPE, text=True, env=environment
    ).stdout


def machine(program):
    """The architecture, in the words of Rust."""
    named = re.search(r"Machine:\s+(.*)", readelf(program, "--file-header"))[1]
    return {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}[named]


def glibc(program):
    """The version of the GNU C Library that the program needs, as a pair of numbers."""
    needed = re.findall(r"\bGLIBC_(\d+)\.(\d+)", readelf(program, "--version-info"))
    return max((int(major), int(minor)) for major, minor in needed)


def libraries(program):
    """Shared libraries that the program names."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", readelf(program, "--dynamic"))


def exports(program, symbol):
    """Whether a library that the program loads finds this symbol in it."""
    lines = (line.split() for line in readelf(program, "--dyn-syms").splitlines())
    return any(line[7:8] == [symbol] and line[6] != "UND" for line in lines)
