"""Programs that work on lines and bytes: a command must do the same in the mount as on real files of the same names."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from .reader import checker

# What runs in the folder of a mounted file, and in a real folder of the same names.
COMMANDS = {
    "awk": [
        "awk '{ if ($1 > most) most = $1; n += length($1) } END { print NR, most, n }' a/columns/count.txt",
        "awk -F, 'NR > 1 && $2 != \"\" { n++; sum += $1 } END { printf \"%d %.0f\\n\", n, sum }' a/table.csv",
    ],
    "sort": [
        "sort -n a/columns/count.txt",
        "sort a/columns/name.txt | uniq -c | sort -rn",
        "sort -t, -k2,2n -k1,1r b/table.csv",
        "sort -z a/columns/name.raw",
        "sort -m a/columns/id.txt b/columns/id.txt",
    ],
    "cut": ["cut -d, -f1,2 a/table.csv", "cut -c1-5 a/columns/name.txt"],
    "join": ["join -t, <(tail -n +2 a/table.csv) <(tail -n +2 b/table.csv)"],
    "paste": ["paste -d, a/columns/id.txt a/columns/count.txt"],
    "comm": ["comm -12 a/columns/id.txt b/columns/id.txt"],
    "head": ["head -n 7 a/table.csv", "head -c 100000 a/table.csv", "head -n -149990 a/columns/name.txt", "cat a/head.csv"],
    "tail": ["tail -n 7 a/table.csv", "tail -c 1000 a/table.csv", "tail -n +149990 a/columns/kind.csv", "tac b/columns/id.txt"],
    # `wc` aligns its numbers by the sizes that `stat` gives, which are bounds until it opens the files.
    "wc": ["wc a/table.csv a/columns/*.txt | tr -s ' ' | sed 's/^ //'", "wc -c < a/table.csv", "wc -L a/columns/name.txt"],
    "grep": ["grep -c Gr a/columns/name.txt", "grep -n 'tau, heavy' a/table.csv | tail -n 3"],
    "dd": ["dd if=a/table.csv bs=1000 skip=123 count=77 status=none", "od -A d -t d8 -j 80000 -N 800 a/columns/id.raw"],
    "split": [
        'split -l 40000 a/table.csv "$OUT/part." && cd "$OUT" && sha256sum part.*',
        'split -n 7 a/columns/count.txt "$OUT/piece." && cd "$OUT" && sha256sum piece.*',
        'split -C 1M a/table.csv "$OUT/size." && cd "$OUT" && sha256sum size.*',
    ],
    "cp": [
        'cp a/table.csv a/columns/name.raw "$OUT" && cd "$OUT" && sha256sum *',
        'cp -r b "$OUT/copied" && cd "$OUT/copied" && sha256sum table.csv columns/id.txt columns/rank.csv',
        'cp --sparse=always a/columns/id.raw "$OUT/sparse" && sha256sum < "$OUT/sparse"',
    ],
    "tar": [
        'tar cf "$OUT/all.tar" a b && mkdir "$OUT/x" && tar xf "$OUT/all.tar" -C "$OUT/x" && cd "$OUT/x" && '
        "sha256sum a/table.csv a/columns/*.txt a/columns/*.csv b/table.csv a/columns/id.raw",
        "tar c a/table.csv a/columns/id.txt | tar x -O | sha256sum",
    ],
    "rsync": [
        'rsync -a a b "$OUT/y" && cd "$OUT/y" && sha256sum a/table.csv a/columns/*.txt a/columns/*.csv b/table.csv',
        # Nothing to do the second time: sizes and times are those that were copied.
        'rsync -a b "$OUT/z" && rsync -ai b "$OUT/z" && cd "$OUT/z" && sha256sum b/table.csv',
        'rsync -ac --whole-file a/table.csv "$OUT/w" && rsync -aci a/table.csv "$OUT/w" && sha256sum < "$OUT/w"',
    ],
    "gzip": ["gzip -c a/table.csv | gunzip | sha256sum"],
    "cmp": ['cmp a/table.csv "$REAL/a/table.csv" && diff -q a/columns/name.txt "$REAL/a/columns/name.txt" && echo same'],
    "mmap": ["python3 -c \"import mmap; f = open('a/table.csv'); print(mmap.mmap(f.fileno(), 0, prot=1)[-50:])\""],
    "less": ["LESSOPEN= less -f a/table.csv | tail -n 2"],
}


def outcome(command, folder, real):
    """What a command prints in a folder, and how it ends; what it writes goes to $OUT, which is empty."""
    out = Path(tempfile.mkdtemp())
    environment = {**os.environ, "LC_ALL": "C", "OUT": str(out), "REAL": str(real)}
    try:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment, capture_output=True, timeout=120
        )
    finally:
        shutil.rmtree(out, ignore_errors=True)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def check_commands(check, fixtures):
    """Every command, in the mount first."""
    real, mounted = fixtures / "plain", check.mount / "plain.h5"
    for program, commands in COMMANDS.items():
        if not shutil.which(program if program != "mmap" else "python3"):
            # Not all machines have them all; those that must be there are named in `scripts/setup`.
            if program not in ("less", "gzip"):
                check.record("plain", program, program, "fails", "not installed")
            continue
        for command in commands:
            code, output, errors = outcome(command, mounted, real)
            wanted = outcome(command, real, real)
            if (code, output) == wanted[:2] and code == 0:
                check.record("plain", command, program, "ok", "")
                continue
            detail = f"ends with {code}: {errors.strip()[-300:]}"
            if code == 0:
                pairs = zip(output.splitlines(), wanted[1].splitlines())
                first = next((pair for pair in pairs if pair[0] != pair[1]), (len(output), len(wanted[1])))
                detail = f"{first[0]!r} instead of {first[1]!r}"
            check.record("plain", command, program, "differs", detail)


checker("coreutils", "txt", program="sort", version_of=("sort", "--version"))(check_commands)
