"""Random tables, and which of their rows satisfy random predicates: an account of its own of three-valued logic.

    python3 scripts/selection_fixtures.py [--seed N] [--queries N] FOLDER

Writes FOLDER/selections.h5 and FOLDER/selections.json: for each query its table, its expression, its path below `where/` where it
has one, and the rows that h5py and NumPy find (their number, the first of them, and the SHA-256 of all, a line each).
`tests/data/selections.*` are those of seed 1.
"""

import argparse
import hashlib
import json
import math
import pathlib
from fractions import Fraction
from urllib.parse import quote

import h5py
import numpy as np
from fixtures.write import BOOLEAN, april_table, column, strings

WORDS = ["", "a", "ab", "abc", "b", "é", "a,b", "x:y", "50%", "it's", 'say "hi"', "a/b+c"]
COLORS = h5py.enum_dtype({"red": 0, "green": 1, "blue, dark": 7}, "i2")
INTEGERS = ["i1", "<i2", ">i2", "u2", "<i4", ">u4", "<i8", ">i8", "<u8"]
FLOATS = ["f2", "<f4", ">f4", "<f8", ">f8"]

FALSE, UNKNOWN, TRUE = 0, 1, 2


class Column:
    """A column, as values and which of them are missing."""

    def __init__(self, name, kind, values, missing):
        self.name, self.kind = name, kind
        self.values, self.missing = values, np.asarray(missing, bool)


def chunked(rng, rows):
    """Options of a dataset with random chunks, or none."""
    if rng.random() < 0.2 or rows == 0:
        return {}
    chunk = int(rng.integers(1, rows + 1)) if rows < 5000 else int(rng.integers(1000, rows))
    return {"chunks": (chunk,), "compression": "gzip", "shuffle": True}


def integers(rng, table, name, rows):
    dtype = np.dtype(str(rng.choice(INTEGERS)))
    info = np.iinfo(dtype)
    pool = [info.min, info.max, 0, 5, 6, *(int(n) for n in rng.integers(0, 100, 6))]
    if dtype.itemsize == 8:
        pool += [2**53, 2**53 + 1, info.max - 1]
    values = np.array([pool[n] for n in rng.integers(0, len(pool), rows)], dtype)
    if rng.random() < 0.3:
        values = np.sort(values).astype(dtype)
    fill = pool[int(rng.integers(0, len(pool)))] if rng.random() < 0.6 else None
    column(table, name, values, dtype, fill=fill, **chunked(rng, rows))
    return Column(name, "integer", values, np.zeros(rows) if fill is None else values == fill)


def floats(rng, table, name, rows):
    dtype = np.dtype(str(rng.choice(FLOATS)))
    pool = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 0.1, 0.2, 5, 5.5, -5.5, np.finfo(dtype).max, np.finfo(dtype).tiny], dtype)
    values = pool[rng.integers(0, len(pool), rows)].astype(dtype)
    fill = rng.choice([None, np.nan, 5.0])
    column(table, name, values, dtype, fill=fill, **chunked(rng, rows))
    if fill is None:
        missing = np.zeros(rows)
    else:
        missing = np.isnan(values) if math.isnan(fill) else values == fill
    return Column(name, "float", values, missing)


def texts(rng, table, name, rows):
    chosen = [WORDS[n] for n in rng.integers(0, len(WORDS), rows)]
    missing = np.zeros(rows)
    if rng.random() < 0.5:
        strings(table, name, chosen, **({"chunks": (max(rows // 3, 1),)} if rows else {}))
    else:
        data = np.array([text.encode() for text in chosen], "S12")
        column(table, name, data, h5py.string_dtype("utf-8", 12), **chunked(rng, rows))
    return Column(name, "text", np.array([text.encode() for text in chosen], object), missing)


def labels(rng, table, name, rows):
    codes = rng.integers(-2, len(WORDS) + 1, rows).astype("i1")
    data = column(table, name, codes, **chunked(rng, rows))
    names = table["CATEGORIES/words"] if "CATEGORIES" in table else strings(table.create_group("CATEGORIES"), "words", WORDS)
    data.attrs.create("CATEGORIES", names.ref, dtype=h5py.ref_dtype)
    missing = (codes < 0) | (codes >= len(WORDS))
    values = np.array([b"" if m else WORDS[c].encode() for c, m in zip(codes, missing)], object)
    return Column(name, "text", values, missing)


def colors(rng, table, name, rows):
    codes = rng.choice([0, 1, 7, 9], rows).astype("i2")
    column(table, name, codes, COLORS, **chunked(rng, rows))
    names = {0: b"red", 1: b"green", 7: b"blue, dark", 9: b"9"}
    return Column(name, "text", np.array([names[int(code)] for code in codes], object), np.zeros(rows))


def flags(rng, table, name, rows):
    stored = rng.choice([0, 1, 1, 3], rows).astype("i1")
    column(table, name, stored, BOOLEAN, **chunked(rng, rows))
    return Column(name, "boolean", stored == 1, stored > 1)


def make_table(rng, file, name, rows):
    table = april_table(file.create_group(name))
    column(table, "row", np.arange(rows), "<i8", **chunked(rng, rows))
    kinds = [integers, integers, floats, floats, texts, labels, colors, flags]
    if rows > 10_000:
        # Texts of so many rows would make a large file.
        kinds = [integers, integers, floats, labels, flags]
    names = ["i", "i 2", "f", "f%2", "text", "label", "color", "flag"]
    return [kind(rng, table, name, rows) for kind, name in zip(kinds, names)]


def literal(rng, chosen):
    """A value as text: mostly one that is there, or next to it."""
    if chosen.kind == "boolean":
        return str(rng.choice(["true", "false"]))
    if chosen.kind == "text":
        return str(rng.choice([*WORDS, "zz", "red", "green", "9"]))
    if rng.random() < 0.3 or len(chosen.values) == 0:
        pool = ["0", "-0.0", "5.5", "0.1", "1e3", "-1e400", "1e400", "nan", "inf", "-inf", "18446744073709551614.5", "9007199254740993"]
        return str(rng.choice(pool))
    value = chosen.values[int(rng.integers(0, len(chosen.values)))]
    if chosen.kind == "integer":
        return str(int(value)) + str(rng.choice(["", "", ".5", ".0"]))
    return repr(float(value)) if chosen.values.dtype.itemsize == 8 else str(value)


def order(chosen, text):
    """What values are compared with: exact for integers, the nearest of its width for floats."""
    if chosen.kind == "boolean":
        return text == "true"
    if chosen.kind == "text":
        return text.encode()
    if "nan" in text or "inf" in text or chosen.kind == "float" and math.isinf(float(text)):
        return float(text)
    if chosen.kind == "integer":
        return Fraction(text)
    with np.errstate(over="ignore"):
        return float(chosen.values.dtype.type(text))


def compare(chosen, operator, texts):
    """FALSE, UNKNOWN or TRUE of each row."""
    if operator in ("null", "valid"):
        return np.where(chosen.missing == (operator == "null"), TRUE, FALSE)
    uniques, which = np.unique(chosen.values, return_inverse=True)
    if chosen.kind == "float":
        uniques, which = chosen.values, np.arange(len(chosen.values))
    wanted = [order(chosen, text) for text in texts]

    def past_the_greatest(at):
        """A decimal that no float of the width reaches lies between the greatest and infinity."""
        plain = texts[at].lower()
        return chosen.kind == "float" and math.isinf(wanted[at]) and "inf" not in plain

    def less(value, at):
        if past_the_greatest(at):
            return wanted[at] > 0 and value != math.inf or wanted[at] < 0 and value == -math.inf
        return value < wanted[at]

    def equal(value, at):
        return not past_the_greatest(at) and value == wanted[at]

    def greater(value, at):
        if past_the_greatest(at):
            return wanted[at] < 0 and value != -math.inf or wanted[at] > 0 and value == math.inf
        return value > wanted[at]

    def holds(value):
        value = {"integer": int, "float": float, "text": bytes, "boolean": bool}[chosen.kind](value)
        if isinstance(value, float) and math.isnan(value):
            return operator == "ne"
        tests = {
            "eq": lambda: equal(value, 0),
            "ne": lambda: not equal(value, 0),
            "lt": lambda: less(value, 0),
            "le": lambda: less(value, 0) or equal(value, 0),
            "gt": lambda: greater(value, 0),
            "ge": lambda: greater(value, 0) or equal(value, 0),
            "between": lambda: (greater(value, 0) or equal(value, 0)) and (less(value, 1) or equal(value, 1)),
            "in": lambda: any(equal(value, at) for at in range(len(wanted))),
            "prefix": lambda: value.startswith(wanted[0]),
        }
        return tests[operator]()

    truth = np.array([TRUE if holds(value) else FALSE for value in uniques], int)
    truth = truth[which] if len(truth) else np.zeros(0, int)
    return np.where(chosen.missing, UNKNOWN, truth)


def condition(rng, columns):
    """A random condition: its truth, its text in an expression, its text in a path."""
    chosen = columns[int(rng.integers(0, len(columns)))]
    operators = ["eq", "ne", "lt", "le", "gt", "ge", "between", "in", "null", "valid"]
    operator = str(rng.choice(operators + ["prefix"] * (chosen.kind == "text")))
    if operator == "prefix":
        values = [str(rng.choice(["", "a", "ab", "it", "x"]))]
    else:
        count = {"null": 0, "valid": 0, "between": 2, "in": int(rng.integers(1, 13))}.get(operator, 1)
        values = [literal(rng, chosen) for _ in range(count)]

    def shown(text):
        return "'" + text.replace("'", "''") + "'" if chosen.kind == "text" else text

    name = "`" + chosen.name + "`"
    forms = {
        "null": lambda: f"{name} is null",
        "valid": lambda: f"{name} is not null",
        "between": lambda: f"{name} between {shown(values[0])} and {shown(values[1])}",
        "in": lambda: f"{name} in ({', '.join(map(shown, values))})",
        "prefix": lambda: f"{name} like {shown(values[0] + '%')}",
    }
    symbols = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
    expression = forms[operator]() if operator in forms else f"{name} {symbols[operator]} {shown(values[0])}"
    parts = [quote(chosen.name, safe=" "), operator]
    if values:
        parts.append(",".join(quote(value, safe=" '\"") for value in values))
    return compare(chosen, operator, values), expression, ":".join(parts)


def predicate(rng, columns, depth):
    """As `condition`, of several joined; no path where they are joined as no path can."""
    kind = rng.random()
    if depth == 0 or kind < 0.25:
        return condition(rng, columns)
    parts = [predicate(rng, columns, depth - 1) for _ in range(int(rng.integers(2, 4)))]
    if kind < 0.5:
        return np.minimum.reduce([p[0] for p in parts]), "(" + " and ".join(p[1] for p in parts) + ")", None
    if kind < 0.75:
        return np.maximum.reduce([p[0] for p in parts]), "(" + " or ".join(p[1] for p in parts) + ")", None
    return TRUE - parts[0][0], f"not {parts[0][1]}", None


def segments(rng, columns):
    """A predicate that both syntaxes have: alternatives in segments."""
    truth, expressions, path = None, [], []
    for _ in range(int(rng.integers(1, 4))):
        parts = [condition(rng, columns) for _ in range(int(rng.integers(1, 4)))]
        any_of = np.maximum.reduce([p[0] for p in parts])
        truth = any_of if truth is None else np.minimum(truth, any_of)
        expressions.append("(" + " or ".join(p[1] for p in parts) + ")")
        path.append("+".join(p[2] for p in parts))
    usable = all(len(part.encode()) <= 255 for part in path)
    return truth, " and ".join(expressions), "/".join(path) if usable else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--queries", type=int, default=12, help="of each table")
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    queries = []
    with h5py.File(arguments.folder / "selections.h5", "w") as file:
        for number, most in enumerate([0, 1, 100, 300, 2000, 70_000]):
            rows = most if most in (0, 1, 70_000) else int(rng.integers(most // 2, most))
            columns = make_table(rng, file, f"t{number}", rows)
            for at in range(arguments.queries if rows > 1 else 3):
                truth, expression, path = segments(rng, columns) if at % 2 else predicate(rng, columns, 3)
                found = np.flatnonzero(truth == TRUE)
                digest = hashlib.sha256("".join(f"{row}\n" for row in found).encode()).hexdigest()
                queries.append(
                    {
                        "table": f"t{number}",
                        "expression": expression,
                        "path": path,
                        "rows": len(found),
                        "first": found[:5].tolist(),
                        "sha256": digest,
                    }
                )
    with open(arguments.folder / "selections.json", "w") as out:
        json.dump(queries, out, indent=1, ensure_ascii=False)
        out.write("\n")


if __name__ == "__main__":
    main()
