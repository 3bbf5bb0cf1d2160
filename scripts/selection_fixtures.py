"""Random tables, and which of their rows satisfy random predicates: an account of its own of three-valued logic.

    python3 scripts/selection_fixtures.py [--seed N] [--queries N] FOLDER

Writes FOLDER/selections.h5 and FOLDER/selections.json: for each query its table, its expression, its path below
`where/` where it has one, and the rows that satisfy it in exact arithmetic (their number, the first of them, and the
SHA-256 of all, a line each). `tests/data/selections.*` are those of seed 6. `scripts/check-selections` asks hepfs
itself, for as long as one likes.
"""

import argparse
import hashlib
import json
import pathlib

import h5py
import hdf5plugin  # noqa: F401  (registers filters)
import numpy as np
from selecting import truth
from selecting.columns import make_table
from selecting.predicates import predicate, segments

LONG = 70_000


def write(path, seed, queries, sizes=(0, 1, 100, 300, 2000, LONG), finish=None):
    """Writes tables of about these sizes; what was asked of them, and the rows that satisfy it.

    `finish` is called with each table once its columns are there.
    """
    rng = np.random.default_rng(seed)
    asked = []
    with h5py.File(path, "w", libver=str(rng.choice(["earliest", "v110", "latest"]))) as file:
        for number, most in enumerate(sizes):
            rows = most if most in (0, 1, LONG) else int(rng.integers(most // 2, most))
            table = make_table(rng, file, f"t{number}", rows)
            if finish:
                finish(table)
            columns = table.columns
            for at in range(queries if rows > 1 else 3):
                known, expression, where = segments(rng, columns) if at % 2 else predicate(rng, columns, 3)
                asked.append((f"t{number}", expression, where, truth.rows_of(known)))
    return asked


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--queries", type=int, default=12, help="of each table")
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    queries = []
    for table, expression, path, found in write(arguments.folder / "selections.h5", arguments.seed, arguments.queries):
        digest = hashlib.sha256("".join(f"{row}\n" for row in found).encode()).hexdigest()
        first = found[:5].tolist()
        queries.append(
            {
                "table": table,
                "expression": expression,
                "path": path,
                "rows": len(found),
                "first": first,
                "sha256": digest,
            }
        )
    with open(arguments.folder / "selections.json", "w") as out:
        json.dump(queries, out, indent=1, ensure_ascii=False)
        out.write("\n")


if __name__ == "__main__":
    main()
