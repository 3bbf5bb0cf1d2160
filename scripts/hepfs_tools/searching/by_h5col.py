"""A file by the reference producer with the indexes that it builds, and what it answers to queries of it."""

import functools
import operator

import h5col.indexes
import h5py
from h5col import ColumnSpec, FixedString, Table, bool_dtype, field

ROWS, CHUNK = 100, 16
KINDS = ["CHUNK_MINMAX", "SORTED_ROWS", "BITMAP"]
OPERATORS = {
    "=": ("eq", operator.eq),
    "<>": ("ne", operator.ne),
    "<": ("lt", operator.lt),
    "<=": ("le", operator.le),
    ">": ("gt", operator.gt),
    ">=": ("ge", operator.ge),
}


def columns():
    """Specifications of columns, their values, and values to ask for: those of floats are exactly what is stored."""
    rows = range(ROWS)
    floats = [None if row % 9 == 4 else float("nan") if row % 11 == 5 else (row * 7 % 40) / 8 - 1 for row in rows]
    floats[30:33] = [float("inf"), float("-inf"), -0.0]
    words = ["apple", "a", "", "é", "zebra", "pear"]
    return {
        "i64": (
            {"dtype": "i8"},
            [None if row % 13 == 5 else row * 37 % 41 * 1000 for row in rows],
            [0, 7000, 7001, 40000],
        ),
        "i16": ({"dtype": ">i2"}, [row * 11 % 50 - 25 for row in rows], [-25, 0, 24, 100000]),
        "u8": ({"dtype": "u1"}, [None if row % 7 == 0 else row * 3 % 9 for row in rows], [0, 5, 8, 255]),
        "u64": ({"dtype": "u8"}, [2**63 + row % 30 for row in rows], [2**63, 2**63 + 29, 0, 2**64 - 1]),
        "f32": ({"dtype": "f4"}, floats, [-1.0, 0.0, 2.5, 2.75, 3.8]),
        "f64": ({"dtype": "f8"}, floats, [-1.0, 0.0, 2.5, 2.75, 100.0]),
        "nan": (
            {"dtype": "f8", "fill_value": float("nan")},
            [None if row % 5 == 0 else row / 4 for row in rows],
            [0.25, 6.0, 6.1],
        ),
        "word": ({"dtype": FixedString(6)}, [words[row * row % 6] for row in rows], ["a", "pear", "b", "zzz"]),
        "flag": ({"dtype": bool_dtype()}, [row % 3 == 0 for row in rows], [True, False]),
        "kind": (
            {"categories": ["x", "y", "z"]},
            [None if row % 8 == 0 else "xyz"[row % 3] for row in rows],
            ["x", "y"],
        ),
    }


def shown(value):
    """A value as it stands in an expression, and in a path."""
    if isinstance(value, bool):
        return str(value).lower(), str(value).lower()
    return (f"'{value}'", value) if isinstance(value, str) else (repr(value), repr(value))


def asked(name, values):
    """Queries as text, as a path, and as h5col has them."""
    column = field("v")
    yield "v is null", "v:null", column.is_null()
    yield "v is not null", "v:valid", column.is_valid()
    # An order of categories is h5col's own: that of their codes.
    signs = ["=", "<>"] if name in ("kind", "flag") else OPERATORS
    for sign in signs:
        word, compare = OPERATORS[sign]
        for value in values:
            text, in_path = shown(value)
            yield f"v {sign} {text}", f"v:{word}:{in_path}", compare(column, value)
    some = [shown(value) for value in values]
    joined = ", ".join(text for text, _ in some)
    yield f"v in ({joined})", "v:in:" + ",".join(text for _, text in some), column.isin(values)
    first = functools.reduce(operator.or_, [column == value for value in values[:2]])
    text = " or ".join(f"v = {shown(value)[0]}" for value in values[:2])
    yield f"not ({text}) and row < 50", None, ~first & (field("row") < 50)


def write_table(file, place, spec, values, history):
    """A table of a column, with an index of each kind, as something happened to it."""
    specs = [ColumnSpec(name="row", dtype="u4", chunks=ROWS), ColumnSpec(name="v", chunks=CHUNK, **spec)]
    table = Table.create(file.create_group(place), specs)
    before = ROWS if history in ("fresh", "truncated") else 60
    table.append({"row": list(range(before)), "v": values[:before]})
    for kind in KINDS:
        table.build_index("v", kind, name=kind.lower())
    rest = {"row": list(range(before, ROWS)), "v": values[before:]}
    if history != "fresh" and history != "truncated":
        table.append(rest, maintain_indexes=history == "appended")
    if history == "truncated":
        table.truncate(70, maintain_indexes=True)
    table.validate(deep=True)
    return table


def by_h5col(path):
    """Writes the file; what was asked of it, and what h5col answers."""
    # Its chunks of indexes would make a file of 40 MB.
    h5col.indexes.INDEX_CHUNK_BYTES = 256
    queries, tables = {}, []
    with h5py.File(path, "w", libver="latest") as file:
        for name, (spec, values, some) in columns().items():
            for history in ("fresh", "appended", "forgotten", "truncated"):
                if history != "fresh" and name not in ("i64", "f32", "word", "kind"):
                    continue
                table = write_table(file, f"{history}/{name}", spec, values, history)
                # What a column holds differs only where rows were cut off.
                key = f"{name} of {table.nrows}"
                queries[key] = [
                    {"expression": text, "path": where, "rows": table.select(query).row_positions.tolist()}
                    for text, where, query in asked(name, some)
                ]
                verdict = ["stale" if history == "forgotten" else "valid"]
                indexes = {kind.lower(): {"kind": kind, "verdict": verdict} for kind in KINDS}
                rule = {"forgotten": "rows were appended, and the indexes left as they were"}.get(history, history)
                tables.append({"table": f"{history}/{name}", "column": key, "rule": rule, "indexes": indexes})
    return {"columns": queries, "tables": tables}
