"""Random predicates: their truth, as text of an expression, and as a path where one can say the same."""

from fractions import Fraction
from urllib.parse import quote

import numpy as np

from . import truth
from .columns import WORDS

SYMBOLS = {"eq": ["=", "=="], "ne": ["<>", "!="], "lt": ["<"], "le": ["<="], "gt": [">"], "ge": [">="]}
NUMBERS = [
    "0", "-0.0", "5.5", ".5", "5.", "007", "0.1", "1e3", "15000e-3", "1E+2", "-1e400", "1e400", "1e-400", "inf", "-inf",
    "127.5", "-128.00000000000000000001", "255", "256", "65504", "65519.999", "65520", "65520.0001", "3.4028235e38", "3.4028235677973366e38",
    "9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
    "18446744073709551614.5", "18446744073709551615", "18446744073709551616", "1e30", "123456789012345678901234567890123",
]  # fmt: skip


def decimal(exact):
    """A number as the decimal that is exactly it; its denominator is a power of two."""
    shift = exact.denominator.bit_length() - 1
    digits = str(abs(exact.numerator) * 5**shift).rjust(shift + 1, "0")
    whole, part = (digits[:-shift], "." + digits[-shift:]) if shift else (digits, "")
    return "-" * (exact < 0) + whole + part


def near(rng, column, value):
    """A number at a value of the column or next to it, as text."""
    exact = Fraction(value)
    if column.kind == "integer":
        return decimal(exact) + str(rng.choice(["", "", "", ".5", ".0", ".00000000000000000001", "e0"]))
    kind = f"f{column.width}"
    stored = np.array(value, kind)
    how = rng.random()
    if how < 0.5:
        # As views show it.
        return repr(float(value)) if column.width == 8 else str(stored)
    if how < 0.7 or abs(exact) > 10**40 or exact != 0 and abs(exact) < Fraction(1, 10**9):
        return repr(float(value))
    if how < 0.8:
        return decimal(exact)
    # Halfway to the next number of the type, or a hair beside that.
    with np.errstate(over="ignore"):
        beside = float(np.nextafter(stored, np.array(np.inf, kind)))
    if not np.isfinite(beside):
        return decimal(exact)
    halfway = decimal((exact + Fraction(beside)) / 2)
    halfway += "" if "." in halfway else "."
    return halfway + str(rng.choice(["", "0" * 30 + "1", "0" * 5 + "1"]))


def literal(rng, column):
    """A value as text: mostly one that is there, or next to it."""
    if column.kind == "boolean":
        return str(rng.choice(["true", "false"]))
    there = column.values[int(rng.integers(0, len(column.values)))] if len(column.values) else None
    if column.kind == "bytes":
        return (
            there.hex()
            if there is not None and rng.random() < 0.7
            else str(rng.choice(["", "00", "ff00ff", "FFFFFFFF"]))
        )
    if column.kind == "text":
        is_shown = there is not None and rng.random() < 0.7 and b"\0" not in there
        return there.decode() if is_shown else str(rng.choice([*WORDS, "zz", "red", "green", "9", "�"]))
    if there is None or rng.random() < 0.3 or isinstance(there, float) and not np.isfinite(there):
        return str(rng.choice(NUMBERS))
    return near(rng, column, there)


def any_case(rng, word):
    """A keyword in one of its cases."""
    return str(rng.choice([word, word, word.upper(), word.title()]))


def quoted(text, mark):
    """Between quotation marks."""
    return mark + text.replace(mark, mark * 2) + mark


def shown(rng, column, text):
    """A value as it stands in an expression."""
    if column.kind in ("text", "bytes"):
        return quoted(text, str(rng.choice(["'", '"'])))
    sign = "+" if rng.random() < 0.1 and text[0].isdigit() else ""
    return sign + any_case(rng, text) if column.kind == "boolean" or text[-1].isalpha() else sign + text


def condition(rng, columns):
    """A random condition: its truth, its text in an expression, its text in a path."""
    column = columns[int(rng.integers(0, len(columns)))]
    operators = ["eq", "ne", "lt", "le", "gt", "ge", "between", "in", "null", "valid"]
    operator = str(rng.choice(operators + ["prefix"] * (column.kind == "text") + ["nan"] * (column.kind == "float")))
    if operator == "prefix":
        values = [str(rng.choice(["", "a", "ab", "it", "x", "é", "�"]))]
    else:
        count = {"null": 0, "valid": 0, "nan": 0, "between": 2, "in": int(rng.integers(1, 13))}.get(operator, 1)
        values = [literal(rng, column) for _ in range(count)]
    known = truth.condition(column, operator, values)
    parts = [quote(column.name, safe=" "), operator]
    if values:
        parts.append(",".join(quote(value, safe=" '\"") for value in values))
    return known, in_expression(rng, column, operator, values), ":".join(parts)


def in_expression(rng, column, operator, values):
    """A condition as text; some are negated twice, which changes nothing."""
    name = (
        column.name
        if column.name.isalpha() and rng.random() < 0.5
        else quoted(column.name, str(rng.choice(["`", '"'])))
    )

    def word(text):
        return " ".join(any_case(rng, part) for part in text.split())

    texts = [shown(rng, column, value) for value in values]
    twice = rng.random() < 0.2
    no = word("not") + " " if twice else ""
    forms = {
        "null": lambda: f"{name} {word('is not null' if twice else 'is null')}",
        "valid": lambda: f"{name} {word('is null' if twice else 'is not null')}",
        "nan": lambda: f"{name} {word('is not nan' if twice else 'is nan')}",
        "between": lambda: f"{name} {no}{word('between')} {texts[0]} {word('and')} {texts[1]}",
        "in": lambda: f"{name} {no}{word('in')} ({', '.join(texts)})",
        "prefix": lambda: f"{name} {no}{word('like')} {quoted(values[0] + '%', chr(39))}",
    }
    if operator in forms:
        return f"{word('not')} {forms[operator]()}" if twice else forms[operator]()
    if operator == "eq" and column.kind == "text" and not set(values[0]) & {"%", "_"} and rng.random() < 0.2:
        return f"{name} {word('like')} {quoted(values[0], chr(39))}"
    return f"{name}{rng.choice(['', ' '])}{rng.choice(SYMBOLS[operator])} {texts[0]}"


def predicate(rng, columns, depth):
    """As `condition`, of several joined; no path where they are joined as no path can."""
    kind = rng.random()
    if depth == 0 or kind < 0.25:
        return condition(rng, columns)
    parts = [predicate(rng, columns, depth - 1) for _ in range(int(rng.integers(2, 4)))]
    known, texts = [part[0] for part in parts], [part[1] for part in parts]
    if kind < 0.5:
        return truth.all_of(known), "(" + f" {any_case(rng, 'and')} ".join(texts) + ")", None
    if kind < 0.75:
        return truth.any_of(known), "(" + f" {any_case(rng, 'or')} ".join(texts) + ")", None
    return truth.opposite(known[0]), f"{any_case(rng, 'not')} ({texts[0]})", None


def segments(rng, columns):
    """A predicate that both grammars have: alternatives in segments."""
    known, expressions, path = [], [], []
    for _ in range(int(rng.integers(1, 4))):
        parts = [condition(rng, columns) for _ in range(int(rng.integers(1, 4)))]
        known.append(truth.any_of([part[0] for part in parts]))
        expressions.append("(" + " or ".join(part[1] for part in parts) + ")")
        path.append("+".join(part[2] for part in parts))
    usable = all(len(part.encode()) <= 255 for part in path)
    return truth.all_of(known), " and ".join(expressions), "/".join(path) if usable else None
