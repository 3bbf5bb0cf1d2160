#!/usr/bin/env python3
"""Writes pickles and what Python reads in them: tests/data/pickles.json, for the tests of src/codec/pickle.

    scripts/make_pickles.py                                # the file of the tests; needs numpy, pandas and tables
    scripts/make_pickles.py --random 20000 --out all.json  # as many random values besides
    scripts/make_pickles.py --out all.json FILE.h5 ...     # the attributes and object arrays of HDF5 files besides
    HEPFS_PICKLES=all.json cargo test --lib codec::pickle  # holds the reader against such a file

What Python reads comes from its own `pickle` machine, in Python, where a class or function is a record of its name and
a call a record of itself: nothing of a file is executed. Each case is one of

    {"pickle": HEX, "value": VALUE}         what `attribute` reads
    {"pickle": HEX, "refused": true}        what it does not read
    {"array": HEX, "shape": [...], "cells": [VALUE, ...]}
    {"label": HEX, "text": TEXT}            Python's `str` of a label
    {"zone": HEX, "name": TEXT or null}     a time zone
    {"plain": HEX, "json": JSON}            an attribute, as `metadata.json` shows it

A VALUE is null, a bool, a text, {"i": decimal}, {"f": 8 bytes in hex}, {"b": hex}, {"l": list}, {"t": tuple},
{"d": [[key, value], ...]}, {"s": [module, name]}, {"c": [function, arguments]} or {"o": [object, state]}; in an array
also {"date": days since 1970}, {"time": microseconds since 1970}, {"nanoseconds": those since 1970},
{"zoned time": the same in UTC}, {"zoned nanoseconds": those}, {"decimal": digits} and {"x": name of the class}.
"""

import argparse
import collections
import datetime
import json
import pickle
import random
import struct
import tempfile
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent.parent
EPOCH = datetime.date(1970, 1, 1).toordinal()


class Inert:
    """A record of what Python would call, import or build."""

    def __init__(self, **parts):
        self.__dict__.update(parts)

    def __call__(self, *arguments):
        return Inert(function=self, arguments=arguments)

    def __setitem__(self, key, value):
        """What an object makes of items is known to its class."""

    def extend(self, items):
        """As above."""

    append = extend

    def __setstate__(self, state):
        before = Inert(**self.__dict__)
        self.__dict__.clear()
        self.__dict__.update(object=before, state=state)


class Machine(pickle._Unpickler):
    dispatch = dict(pickle._Unpickler.dispatch)

    def find_class(self, module, name):
        return Inert(module=module, name=name)

    def persistent_load(self, _):
        raise pickle.UnpicklingError("persistent")

    def get_extension(self, _):
        raise pickle.UnpicklingError("extension")

    def _decode_string(self, value):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.decode("latin1")

    def new_object(self):
        arguments = self.stack.pop()
        self.stack[-1] = self.stack[-1](*arguments)

    dispatch[pickle.NEWOBJ[0]] = new_object

    def _instantiate(self, of, arguments):
        self.append(of(*arguments))


def read(data):
    import io

    return Machine(io.BytesIO(data)).load()


class Unread(Exception):
    """What the reader of attributes does not read."""


def encoded(value, depth=0):
    if depth > 64:
        raise Unread
    inner = lambda values: [encoded(value, depth + 1) for value in values]
    match value:
        case None | bool():
            return value
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case int() if -(1 << 127) <= value < 1 << 127:
            return {"i": str(value)}
        case float():
            return {"f": struct.pack(">d", value).hex()}
        case bytes() | bytearray():
            return {"b": bytes(value).hex()}
        case list():
            return {"l": inner(value)}
        case tuple():
            return {"t": inner(value)}
        case dict():
            return {"d": [inner(entry) for entry in value.items()]}
        case Inert(function=function, arguments=arguments):
            return {"c": inner([function, arguments])}
        case Inert(object=below, state=state):
            return {"o": inner([below, state])}
        case Inert(module=module, name=name):
            return {"s": [module, name]}
    raise Unread


def attribute(data):
    try:
        return {"pickle": data.hex(), "value": encoded(read(data))}
    except Exception:  # Python's machine fails in many ways on text that is no pickle
        return {"pickle": data.hex(), "refused": True}


def cell(value):
    match value:
        case None | bool() | str() | float():
            return encoded(value)
        case int() if -(1 << 127) <= value < 1 << 127:
            return encoded(value)
        case Inert(function=Inert(module="datetime", name="date"), arguments=(bytes() as data,)):
            return {"date": datetime.date(data).toordinal() - EPOCH}
        case Inert(function=Inert(module="datetime", name="datetime"), arguments=(bytes() as data,)):
            since = datetime.datetime(data) - datetime.datetime(1970, 1, 1)
            return {"time": str(since // datetime.timedelta(microseconds=1))}
        case Inert(function=Inert(module="decimal", name="Decimal"), arguments=(str() as digits,)):
            if len(digits) > 1000:
                return {"x": "Decimal"}
            return None if Decimal(digits).is_nan() else {"decimal": digits}
        case Inert(
            function=Inert(module="pandas._libs.tslibs.timestamps", name="_unpickle_timestamp"),
            arguments=(int(count), _, zone, 7 | 8 | 9 | 10 as unit),
        ) if unit == 10 or abs(count * 1000 ** (9 - unit)) < 1 << 63:
            zoned = "" if zone is None else "zoned "
            if unit == 10:
                return {f"{zoned}nanoseconds": str(count)}
            return {f"{zoned}time": str(count * 1000 ** (9 - unit))}
        case Inert(function=Inert(name="_nat_unpickle" | "__nat_unpickle")) | Inert(module=_, name="NA"):
            return None
        case Inert(
            function=Inert(module="numpy._core.multiarray" | "numpy.core.multiarray", name="scalar"),
            arguments=(Inert(object=Inert(arguments=(code, *_)), state=(_, "<" | "|", *_)), bytes() as data),
        ) if code[0] in "biufU" and code != "f16":
            is_text = code[0] == "U"
            return encoded(data.decode("utf-32-le") if is_text else np.frombuffer(data, code)[0].item())
        case Inert(function=Inert(name=name)) | Inert(object=Inert(function=Inert(name=name))) | Inert(name=name):
            return {"x": name}
        case frozenset():
            return {"x": "set"}
        case bytearray():
            return {"x": "bytes"}
    return {"x": type(value).__name__}


def array(data):
    _, shape, _, _, values = read(data).state
    return {"array": data.hex(), "shape": list(shape), "cells": [cell(value) for value in values]}


def of_file(path):
    """What PyTables has pickled in a file: attributes that look like it, and object arrays."""
    import h5py

    cases = []

    def visit(_, thing):
        for name in thing.attrs:
            attr = h5py.h5a.open(thing.id, name.encode())
            kind = attr.get_type()
            if kind.get_class() != h5py.h5t.STRING or kind.is_variable_str() or attr.shape not in [(), (1,)]:
                continue
            data = np.empty(attr.shape, attr.dtype)
            attr.read(data)
            data = data.tobytes().rstrip(b"\0")
            if kind.get_cset() == h5py.h5t.CSET_ASCII and data.endswith(b"."):
                cases.append(attribute(data))
        if isinstance(thing, h5py.Dataset) and thing.attrs.get("PSEUDOATOM") in [b"object", "object"]:
            cases.extend(array(row.tobytes()) for row in thing)

    with h5py.File(path) as file:
        visit("/", file)
        file.visititems(visit)
    return cases


def of_pandas():
    """Of files that pandas writes, in both formats."""
    import pandas as pd

    frames = {
        "plain": pd.DataFrame({"a": [1, 2], "b": ["x", "yä"], 3: [0.5, None], ("p", 1): [True, False]}),
        "zoned": pd.DataFrame({"t": pd.date_range("2020", periods=2, tz="Europe/Paris")}),
        "levels": pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")])),
        "twice": pd.DataFrame([["u", "v"]], columns=["same", "same"]),
        "labelled": pd.DataFrame({pd.Timestamp("2020-01-01"): [1, 2]}, index=["r", "s"]),
        "mixed": pd.DataFrame({"m": ["x", None, "x", "numpy", "|"], "n": ["a", "b", "c", "d", float("nan")]}),
    }
    odd = [pd.NA, pd.NaT, pd.Timestamp(0), np.float64(1), Decimal(2), [1], {"a": [None]}, ("x", 1), b"x", 1 << 200]
    odd += [None, "z"]
    odd += [np.random.default_rng(1).choice(["Grüße", "b", "😀"]), np.str_("ab"), np.str_(""), np.str_("b"), "b"]
    odd += [np.dtype(code).type(value) for code in ("i1", "i2", "i4", "i8") for value in (-128, 127)]
    odd += [np.dtype(code).type(200) for code in ("u1", "u2", "u4")] + [np.uint64((1 << 64) - 1), np.int64(-(1 << 63))]
    odd += [np.float16(0.1), np.float32(0.1), np.float64("nan"), np.float64(0.1), np.bool_(True), np.bool_(False)]
    odd += [np.datetime64("2020-01-01"), np.bytes_(b"x"), np.longdouble(1), np.complex128(1j)]
    instants = [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)]
    instants += [datetime.datetime(1969, 12, 31, 1, 2, 3, 4, fold=1), datetime.datetime(2020, 2, 29)]
    odd += [*instants, datetime.datetime(2020, 2, 29, tzinfo=datetime.timezone.utc)]
    odd += [pd.Timestamp("1969-12-31 23:59:59.5").as_unit(unit) for unit in ("s", "ms", "us", "ns")]
    odd += [pd.Timestamp("2020-07-01", tz="Europe/Paris"), pd.Timestamp.max.as_unit("ns")]
    odd += [pd.Timestamp("1969-12-31 23:59:59.5", tz="Asia/Kolkata").as_unit(unit) for unit in ("s", "us", "ns")]
    odd += [pd.Timestamp("2020-07-01", tz=datetime.timezone(datetime.timedelta(hours=-3)))]
    odd += [Decimal(text) for text in ("-1.50", "1E+40", "0E-7", "NaN", "-sNaN12", "-Infinity", "7" * 1001)]
    cases = [array(pickle.dumps(np.array([*odd, *odd], dtype=object), protocol)) for protocol in range(2, 6)]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, frame in frames.items():
            for layout in ["fixed", "table"]:
                path = Path(folder) / f"{name}_{layout}.h5"
                try:
                    frame.to_hdf(path, key="k", format=layout)
                except (TypeError, ValueError):  # pandas keeps no such frame in this format
                    continue
                cases.extend(of_file(path))
    return cases


class Thing:
    def __init__(self):
        self.state = [1, "x"]


def text(rng):
    letters = ["a", "é", "\\", "\n", "\\u0041", "'", '"', "\0", "\x1a", "\r", "語", "\U0001f600", "\x85", " ", "."]
    letters.append("\\\\")
    return "".join(rng.choices(letters, k=rng.choice([0, 1, 3, 8, 260] if rng.random() < 0.1 else [0, 1, 2, 5])))


def scalar(rng):
    return rng.choice(
        [
            lambda: None,
            lambda: rng.random() < 0.5,
            lambda: rng.randint(-300, 300),
            lambda: rng.randint(-(1 << 17), 1 << 17),
            lambda: rng.randint(-(1 << 40), 1 << 64),
            lambda: rng.randint(-(1 << 127), (1 << 127) - 1),
            lambda: rng.choice([float("nan"), float("inf"), -0.0, 1e300, rng.random(), rng.gauss(0, 1e9)]),
            lambda: text(rng),
            lambda: text(rng),
            lambda: rng.randbytes(rng.choice([0, 1, 4, 260]) if rng.random() < 0.1 else 3),
            lambda: datetime.date.fromordinal(rng.randint(1, 3652059)),
            lambda: datetime.timezone(datetime.timedelta(minutes=rng.randint(-800, 800))),
        ]
    )()


def nested(rng, seen, depth=0):
    """A random value; some of its parts are the same objects again."""
    if seen and rng.random() < 0.15:
        return rng.choice(seen)
    if depth > 5 or rng.random() < 0.35:
        value = scalar(rng)
    else:
        inner = lambda: nested(rng, seen, depth + 1)
        n = rng.choice([0, 1, 2, 3, 4, 6])
        match rng.randint(0, 3):
            case 0:
                value = [inner() for _ in range(n)]
            case 1:
                value = tuple(inner() for _ in range(n))
            case 2:
                value = {rng.choice([text(rng), rng.randint(0, 9), scalar(rng)]): inner() for _ in range(n)}
            case 3:
                value = Thing()
                value.state = inner()
    seen.append(value)
    return value


def of_random(count, seed=1):
    rng = random.Random(seed)
    cases = []
    while len(cases) < count:
        protocol = rng.randint(0, 5)
        cases.append(attribute(pickle.dumps(nested(rng, []), protocol)))
        if len(cases) % 10 == 0:
            rows, columns = rng.choice([0, 1, 2, 5, 40]), rng.choice([None, 1, 3])
            pool = [nested(rng, []) if rng.random() < 0.05 else scalar(rng) for _ in range(8)]
            pool += ["|", "numpy", "date", "datetime", "O8", "ndarray", {1, 2}, frozenset("a"), bytearray(b"x")]
            values = np.empty(rows * (columns or 1), object)
            values[:] = [rng.choice(pool) if rng.random() < 0.5 else scalar(rng) for _ in values]
            values = values if columns is None else values.reshape(rows, columns)
            if rng.random() < 0.3:
                values = np.asfortranarray(values)
            cases.append(array(pickle.dumps(values, rng.randint(3, 5))))
    return cases


def of_labels():
    import pandas as pd

    times = ["2020-01-01", "1969-12-31 23:59:59.5", "0004-02-29", "1970-01-01 00:00:00.000000001"]
    stamps = [pd.Timestamp(time) for time in times]
    plain = [None, pd.NaT, True, 7, -(1 << 70), "it's", ""]
    plain += [1.5, 1e16, 1e-5, 123456789.0, 0.0001, float("nan"), float("-inf"), -2.5e-300]
    plain += [datetime.date(2020, 2, 29), datetime.date(1, 1, 1)]
    plain += [pd.Timedelta(text) for text in ("0s", "-1s", "1 days 02:03:04.5", "-3 days", "1ns")]
    plain += [pd.Timedelta("90min").as_unit(unit) for unit in ("s", "ms", "us")]
    zoned = [pd.Timestamp("2020-07-01 12:30:00.25", tz=zone) for zone in ["Europe/Paris", "UTC", "-05:30"]]
    zoned += [pd.Timestamp("1899-12-31 23:59", tz="America/New_York"), pd.Timestamp(0, tz="Asia/Kolkata")]
    zoned += [stamp.as_unit("s") for stamp in zoned[:1]]
    tuples = [(), ("a",), ("it's", 'q"', "both'\"", "\\\n\t\x07ä"), (1, (2.0, None)), (stamps[0], "x")]
    tuples += [(datetime.date(2020, 2, 3), pd.Timedelta("1h")), (zoned[0], 1), (zoned[3], zoned[4])]
    scalars = [np.str_("ab"), np.str_(""), np.bool_(True), np.int8(-3), np.uint64((1 << 64) - 1), np.float64(0.1)]
    scalars += [np.float32(0.1), np.float32(1e20), np.float32(1024), np.float32("inf"), np.float64("nan")]
    other = [b"", b"it's \\ \"\xe9\n\x00", pd.Interval(0, 1), pd.Interval(-0.5, 1.5, "left")]
    other += [pd.Interval(*stamps[1::-1], "both"), pd.Interval(pd.Timedelta("1h"), pd.Timedelta("2h"), "neither")]
    other += [pd.Interval(*(pd.Timestamp(day, tz="Europe/Paris") for day in ("2020-01-01", "2020-07-01")))]
    tuples += [(b"x", 1), (other[3], 1), (other[4], "x"), (other[5],)]
    for label in [*stamps, *plain, *zoned, *scalars, *other, *tuples]:
        for protocol in (0, 2, 5):
            yield {"label": pickle.dumps(label, protocol).hex(), "text": str(label)}


def of_plain():
    """Arrays and scalars of NumPy, with what `tolist` gives of them; what is not shown has its class."""
    grid = np.arange(6, dtype="i2").reshape(2, 3)
    arrays = [np.array(["a", "bc", "ä", ""]), np.array("one"), np.array([]), np.array([], "U3"), np.zeros((2, 0))]
    arrays += [np.array([1.5, -2.0], "f4"), np.array([True, False]), grid, np.array([2**64 - 1], "u8")]
    arrays += [np.array([["a", None], [1, 2.5]], object), np.asfortranarray(grid[:1]), np.array(7, object)]
    values = [(one, one.tolist()) for one in arrays]
    shown = {"slope": 1.25, "ok": True, "labels": ["x", "y"], "n": 3, "nan": "NaN"}
    values += [({"slope": np.float64(1.25), "ok": np.bool_(True), "labels": np.array(["x", "y"]), "n": np.uint8(3),
                 "nan": np.float32("nan")}, shown)]
    unlike = [np.asfortranarray(grid), grid.astype(">i2"), np.zeros(2, [("a", "i4")]), np.zeros(2, "c16"),
              np.zeros(2, "M8[s]"), np.zeros((1,) * 9)]
    values += [(one, "<numpy.ndarray>") for one in unlike]
    for value, shown in values:
        for protocol in (0, 2, 4):
            yield {"plain": pickle.dumps(value, protocol).hex(), "json": shown}


def of_zones():
    import zoneinfo

    hours = lambda hours: datetime.timezone(datetime.timedelta(hours=hours))
    zones = [
        (zoneinfo.ZoneInfo("America/New_York"), "America/New_York"),
        (datetime.timezone.utc, "UTC"),
        (hours(5.5), "+05:30"),
        (hours(-3.5), "-03:30"),
        (datetime.timezone(datetime.timedelta(hours=-5), "EST"), "-05:00"),
        (datetime.timezone(datetime.timedelta(seconds=561)), None),
        ("Asia/Tokyo", "Asia/Tokyo"),
        ("dateutil/Europe/Paris", "Europe/Paris"),
        ("dateutil//usr/share/zoneinfo/Europe/Paris", "Europe/Paris"),
        (Thing(), None),
        (7, None),
    ]
    try:
        import dateutil.tz
        import pytz

        zones += [
            (pytz.timezone("America/New_York"), "America/New_York"),
            (pytz.UTC, "UTC"),
            (pytz.FixedOffset(-90), "-01:30"),
            (dateutil.tz.tzutc(), "UTC"),
            (dateutil.tz.tzoffset("X", 3600), "+01:00"),
        ]
    except ImportError:
        pass
    for zone, name in zones:
        for protocol in range(6):
            yield {"zone": pickle.dumps(zone, protocol).hex(), "name": name}


# Written by Python 2: `str` in protocols 0, 1 and 2, a numpy array of protocol 2, what old versions of pandas kept.
PYTHON_2 = [
    rb"(lp0" b"\n" rb"S'a\x41\n\\\'\101'" b"\n" rb"""p1
aS"it's"
aV\ud83d\ude00\u0041\\u0041
ag1
a.""",
    b"S'caf\xc3\xa9 \\xc3\\xa9'\n.",
    b"S'\\xe9'\n.",
    b"]q\x00(U\x01aq\x01T\x02\x00\x00\x00\xc3\xa9h\x01U\x01\xe9e.",
    b"I01\n.",
    b"L-12345678901234567890L\n.",
    b"F1e400\n.",
    b"(I1\nI2\n1N.rest",
    b"N2\x862\x86.",
    b"(lp0\n(g0\nlp1\n0g0\nI5\na00g1\n.",  # appended to after it was put into another list
    b"cm\nC\n(tRp0\n0(g0\n(dbg0\nt.",
    b"(itables.Leaf\nFilters\np1\n(dp2\nS'complib'\np3\nS'lzo'\np4\nsb.",
    b"(ctables.Leaf\nFilters\nK\x01o.",
]
ARRAY_2 = (
    b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85U\x01b\x87Rq\x03(K\x01K\x05\x85"
    b"cnumpy\ndtype\nq\x04U\x02O8K\x00K\x01\x87Rq\x05(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tb\x89]q\x06"
    b"(X\x02\x00\x00\x00\xc3\xa4q\x07U\x03abcq\x08h\x07cdatetime\ndate\nq\tU\x04\x07\xe4\x02\x03\x85Rq\nU\x01\xe9etb."
)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*")
    parser.add_argument("--random", type=int, default=70)
    parser.add_argument("--out", default=HERE / "tests/data/pickles.json")
    options = parser.parse_args()
    cases = [attribute(data) for data in PYTHON_2]
    kinds = [collections.OrderedDict(a=1, b=[2]), collections.defaultdict(int, x=1), collections.deque([1, "x"])]
    cases += [attribute(pickle.dumps([kind, "behind"], protocol)) for kind in kinds for protocol in range(6)]
    old = array(ARRAY_2)
    old["cells"][3] = {"date": datetime.date(2020, 2, 3).toordinal() - EPOCH}
    cases += [old, *of_labels(), *of_plain(), *of_zones(), *of_pandas(), *of_random(options.random)]
    for path in options.files:
        cases += of_file(path)
    unique = {json.dumps(case): None for case in cases}
    Path(options.out).write_text("[\n" + ",\n".join(unique) + "\n]\n")
    print(f"{len(unique)} cases in {options.out}")


if __name__ == "__main__":
    main()
