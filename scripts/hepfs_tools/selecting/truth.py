"""Which values satisfy a condition: SQL's three-valued logic over exact numbers.

Numbers lie on one line: `(-2, 0)` is minus infinity, `(0, Fraction)` a finite number, `(1, 0)` what is past the
greatest number of a float type and short of infinity, `(2, 0)` infinity. NaN is no place on it: `None`.
"""

import math
from fractions import Fraction

import numpy as np

FALSE, UNKNOWN, TRUE = 0, 1, 2

# Bits of the fraction and exponent of the smallest normal number, by bytes.
FLOATS = {2: (10, -14), 4: (23, -126), 8: (52, -1022)}


class Column:
    """A column: distinct values, which of them are missing, and which of them stands in each row.

    `kind` is integer, float, text, bytes or boolean; `width` the bytes of a float.
    """

    def __init__(self, name, kind, values, missing, rows, width=None):
        self.name, self.kind, self.width = name, kind, width
        self.values, self.missing, self.rows = values, missing, rows


def place(value):
    """Where a stored number lies."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, float) and math.isinf(value):
        return (2, 0) if value > 0 else (-2, 0)
    return (0, Fraction(value))


def nearest(exact, width):
    """The nearest number of a float type, ties to even; past the greatest one there is none."""
    if exact == 0:
        return (0, exact)
    bits, smallest = FLOATS[width]
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, smallest) - bits)
    rounded = round(exact / quantum) * quantum
    if abs(rounded) >= Fraction(2) ** (2 - smallest):
        return (1, 0) if exact > 0 else (-1, 0)
    return (0, rounded)


def order(column, text):
    """What the values of a column are compared with."""
    if column.kind == "boolean":
        return text == "true"
    if column.kind == "text":
        return text.encode()
    if column.kind == "bytes":
        return bytes.fromhex(text)
    plain = text.lower()
    if plain.endswith(("nan", "inf")):
        return place(float(text))
    exact = Fraction(text)
    return nearest(exact, column.width) if column.kind == "float" else (0, exact)


def holds(operator, value, wanted):
    """Whether a value that is not missing satisfies a comparison; NaN is `None` on either side."""
    tests = {
        "eq": lambda a, b: a == b,
        "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b,
        "gt": lambda a, b: a > b,
        "ge": lambda a, b: a >= b,
        "prefix": lambda a, b: a.startswith(b),
    }

    def test(name, other):
        return value is not None and other is not None and tests[name](value, other)

    if operator == "ne":
        return not test("eq", wanted[0])
    if operator == "between":
        return test("ge", wanted[0]) and test("le", wanted[1])
    if operator == "in":
        return any(test("eq", other) for other in wanted)
    return test(operator, wanted[0])


def condition(column, operator, texts):
    """FALSE, UNKNOWN or TRUE of each row.

    What is stored as NaN is NaN, also where that counts as missing.
    """
    if operator in ("null", "valid"):
        truth = [TRUE if missing == (operator == "null") else FALSE for missing in column.missing]
    elif operator == "nan":
        is_nan = [isinstance(value, float) and math.isnan(value) for value in column.values]
        truth = [TRUE if nan else UNKNOWN if gone else FALSE for nan, gone in zip(is_nan, column.missing)]
    else:
        wanted = [order(column, text) for text in texts]
        values = map(place, column.values) if column.kind in ("integer", "float") else column.values
        truth = [TRUE if holds(operator, value, wanted) else FALSE for value in values]
        truth = [UNKNOWN if missing else known for known, missing in zip(truth, column.missing)]
    return np.array(truth, "i1")[column.rows]


def all_of(parts):
    """What `and` says."""
    return np.minimum.reduce(parts)


def any_of(parts):
    """What `or` says."""
    return np.maximum.reduce(parts)


def opposite(truth):
    """What `not` says."""
    return TRUE - truth


def rows_of(truth):
    """The rows that a predicate selects."""
    return np.flatnonzero(truth == TRUE)
