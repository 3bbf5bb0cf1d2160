#!/usr/bin/env python3
"""Writes `pandasN.h5` and two more files of pandas N into `tests/data`, and what `read_hdf` gives of them.

    python3 -m venv FOLDER && FOLDER/bin/pip install pandas==3.1.1 tables==3.11.1     # and again with pandas==2.3.3
    FOLDER/bin/python3 scripts/pandas_fixtures.py

In environments of their own, since PyTables and h5py bring a libhdf5 each. The form is that of `make_fixtures.py`.
"""

import argparse
import datetime
import decimal
import io
import json
import warnings

import numpy as np
import pandas as pd
import tables as tb

from cells import DATA, instant, labelled, number
from reading.frames import described

MAJOR = int(pd.__version__.split(".")[0])


# ---------------------------------------------------------------------------------------------------------------------
# Frames


def every(rows):
    """A column of every type that the format `table` takes."""
    rng = np.random.default_rng(rows)
    times = pd.date_range("1969-12-30 23:59:58.25", periods=rows, freq="7h")
    words = np.array(["x", "", "Grüße", "nan ", "a,b", "long " * 5], object)
    frame = pd.DataFrame(
        {
            "b": rng.standard_normal(rows),
            "a": np.arange(rows, dtype="i8") - 2,
            "small": np.arange(rows, dtype="i2"),
            "unsigned": np.arange(rows, dtype="u4"),
            "single": rng.standard_normal(rows).astype("f4"),
            "flag": np.arange(rows) % 3 == 0,
            "other flag": np.arange(rows) % 2 == 0,
            "complex": rng.standard_normal(rows) + 1j,
            "time": times,
            "zoned": times.tz_localize("UTC").tz_convert("America/New_York"),
            "fixed offset": times.tz_localize(datetime.timezone(datetime.timedelta(hours=5, minutes=30))),
            "delta": pd.to_timedelta(np.arange(rows), unit="s"),
            "text": np.resize(words, rows),
            "kind": pd.Categorical(np.resize(["u", "v", "w", "v"], rows), ["w", "v", "u"], ordered=True),
            "number kind": pd.Categorical(np.resize([30, 10], rows)),
        }
    )
    if rows > 3:
        for name in ("b", "time", "zoned", "delta", "kind", "text"):
            frame.loc[2, name] = None
    return frame


def table_format(store):
    """Frames and series in the format `table`."""

    def put(name, value, **options):
        store.put(name, value, format="table", **options)

    for rows in (1, 7, 1003):
        put(f"every_{rows}", every(rows), data_columns=["a", "text"] if rows == 7 else None)
    # polars knows no zone like +05:30.
    put("for_readers", every(1000).drop(columns="fixed offset"))
    named = every(5)[["a", "text"]].rename_axis("row label")
    put("named", named)
    put("times_index", every(9)[["a"]].set_index(pd.date_range("2020-03-28", periods=9, tz="Europe/Berlin", name="at")))
    put("text_index", every(4)[["b"]].set_index(pd.Index(["p", "", "q", "r"], name="name")))
    put("float_index", every(4)[["b"]].set_index(pd.Index([0.5, -1.0, 2.0, 9.25])))
    put("levels", every(8).set_index(["a", "text"])[["b", "flag"]])
    duplicated = pd.DataFrame(np.arange(12).reshape(3, 4), columns=["x", "y", "x", "index"])
    put("duplicates", duplicated)
    put("numbers", pd.DataFrame(np.arange(6.0).reshape(2, 3), columns=[3, 1, 2]))
    columns = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", 1)])
    put("column_levels", pd.DataFrame(np.arange(6).reshape(2, 3), columns=columns))
    put("series", pd.Series([1.5, np.nan, 2.5], name="values of it"))
    put("nameless", pd.Series(["a", "b"], index=[10, 20]))
    put("some", pd.DataFrame({"y": [1.0]}))
    put("some/place/below", pd.DataFrame({"x": [1, 2]}))
    put("emptied", pd.DataFrame({"x": [1, 2], "t": ["a", "b"]}))
    store.remove("emptied", start=0, stop=2)
    spoiled = pd.DataFrame({"late": [1, 2], "early": [0.5, 1.5]})
    put("spoiled", spoiled)
    group = store.get_storer("spoiled").group
    group._v_attrs.non_index_axes = "no pickle of this"
    group._v_attrs.info = "nor of this"
    # What other programs put beside frames: attributes of any kind, arrays of PyTables.
    attributes = store.get_storer("named").group._v_attrs
    attributes.run = {"energy": 1.5, "names": ["a", None, ("b", 2**70)], 3: np.inf, "at": pd.Timestamp("2020-01-02")}
    attributes.unusual = [decimal.Decimal("1.5"), True]
    attributes.sentence = "ends in a dot."
    arrays = store._handle
    flags = np.array([[True, False, True], [False, False, True]])
    arrays.create_array("/arrays", "line", flags[0], createparents=True)
    arrays.create_carray("/arrays", "plane", obj=flags)
    arrays.create_earray("/arrays", "space", tb.BoolAtom(), (0, 1, 2)).append(flags.reshape(3, 1, 2))
    arrays.create_earray("/arrays", "times", tb.Time64Atom(), (0,)).append([0.5, -1.75])


def fixed_format(store):
    """Frames and series in the format `fixed`."""

    def put(name, value):
        # Of pandas 2 each pickle takes a chunk of 1 MiB.
        if MAJOR > 2 or name in ("every_7", "objects") or "text" not in map(str, getattr(value, "columns", ["text"])):
            store.put(f"fixed/{name}", value, format="fixed")

    for rows in (1, 7, 1003):
        put(f"every_{rows}", every(rows).drop(columns=["kind", "number kind"]))
    put("named", every(5)[["a", "text"]].rename_axis("row label"))
    put("times_index", every(9)[["a"]].set_index(pd.date_range("2020-03-28", periods=9, tz="Europe/Berlin", name="at")))
    put("text_index", every(4)[["b"]].set_index(pd.Index(["p", "", "q", "r"], name="name")))
    put("float_index", every(4)[["b"]].set_index(pd.Index([0.5, -1.0, 2.0, 9.25])))
    put("levels", every(8)[["a", "text", "b", "flag"]].fillna({"text": "x"}).set_index(["a", "text"]))
    put("numbers", pd.DataFrame(np.arange(6.0).reshape(2, 3), columns=[3, 1, 2]))
    columns = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "z")])
    put("column_levels", pd.DataFrame(np.arange(6).reshape(2, 3), columns=columns))
    put("series", pd.Series([1.5, np.nan, 2.5], name="values of it"))
    put("nameless", pd.Series(["a", "b", None], index=[10, 20, 30]))
    day = datetime.date(2020, 2, 29)
    objects = {
        "texts": ["a", "", None, "a", "\U0001f600"],
        "dates": [day, None, datetime.date(1969, 12, 31), day, day],
        "flags": [True, None, False, True, True],
        "integers": [1, 2**40, None, -5, 0],
        "floats": [1, 0.5, None, float("inf"), -0.0],
        "mixed": [1, "a", None, True, 'quo"te'],
        "nothing": [None] * 5,
    }
    if MAJOR > 2:
        # What `numpy.random.choice` gives, one by one.
        objects["numpy_texts"] = [np.str_("a"), None, np.str_("Grüße"), "a", np.str_("")]
        objects["numpy_numbers"] = [np.int64(-3), None, np.float32(0.1), 2, np.float64("nan")]
        moment = datetime.datetime(1969, 12, 31, 23, 59, 59, 5)
        objects["times"] = [datetime.datetime(9999, 12, 31), None, moment, datetime.datetime(1, 1, 1, 12), moment]
        stamps = [pd.Timestamp("2020-01-01 00:00:00.000000007"), pd.NaT, pd.Timestamp(0), pd.Timestamp(-1), None]
        objects["stamps"] = [None if pd.isna(stamp) else stamp.as_unit("ns") for stamp in stamps]
        there = [stamp.tz_localize("Asia/Kolkata") for stamp in stamps[:3]]
        zoned = [there[0].as_unit("us"), None, pd.Timestamp(0, tz="UTC").as_unit("us"), pd.NaT, there[2].as_unit("s")]
        objects["zoned"] = zoned
        objects["zoned_stamps"] = [None if pd.isna(stamp) else stamp.as_unit("ns") for stamp in zoned]
        objects["moments"] = [moment, "a", pd.Timestamp(-1).as_unit("ns"), there[0].as_unit("us"), day]
        objects["wide"] = [2**63 + 5, None, 7, -(3**45), 2**53 + 1]
        objects["long"] = [2**53 + 1, 2**63 - 1, None, -(2**63), 0]
        objects["long_or_float"] = [2**53 + 1, 0.5, None, 7, -1e300]
        objects["infinite"] = ["a", float("inf"), float("-inf"), 1.5, None]
        objects["decimals"] = [decimal.Decimal(text) for text in ("-1.50", "NaN", "1E+40", "0", "-1.50")]
        objects["numpy_flags"] = [np.bool_(True), None, False, np.bool_(False), np.bool_(True)]
    put("objects", pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in objects.items()}))
    put("no_rows", pd.DataFrame({"a": np.array([], "i8"), "b": np.array([], "f4")}))
    if MAJOR > 2:
        kinds = {"i": "i4", "t": "M8[s]", "d": "m8[ms]", "o": object}
        put("no_rows_of_kinds", pd.DataFrame({name: pd.Series([], dtype=kind) for name, kind in kinds.items()}))
    put("no_columns", pd.DataFrame(index=[1, 2, 3]))
    put("nothing", pd.DataFrame())
    put("empty_series", pd.Series([], dtype="f8"))


# Those of which every character is one byte, and characters of the others.
LETTERS = ["latin-1", "cp1252", "ISO-8859-7", "iso8859_9", "latin9", "cp1251", "koi8-r", "mac_roman", "cp866", "tis_620"]
WORDS = {
    "gbk": "中文·—",
    "euc_kr": "한국어",
    "cp932": "日本ア～－①",
    "shift_jis": "日本ア〜‖−¢£¬",
    "euc_jp": "日本ア〜‖−¢£¬",
    "utf-16": "aĀ中\U0001f600",
    "utf-16-le": "aĀ中\U0001f600",
    "utf-16-be": "aĀ中\U0001f600",
}


def encoded(encoding):
    """A frame of texts that an encoding has, of which one is missing."""
    each = [bytes([byte]).decode(encoding, "ignore") for byte in range(1, 256)] if encoding in LETTERS else []
    texts = [*filter(None, each), *WORDS.get(encoding, ""), WORDS.get(encoding, "a b") * 3, ""]
    frame = pd.DataFrame({"t": [*texts, None], "n": range(len(texts) + 1)})
    if encoding in ("latin-1", "gbk"):
        frame["kind"] = pd.Categorical(frame["t"].where(frame["n"] % 2 == 0, frame["t"].iloc[-3]))
    return frame.set_index(pd.Index([*texts, "a"], name="label"))


def encodings(path):
    """A file of texts in many encodings; what is expected of it."""
    found = {}
    with pd.HDFStore(path, "w", complevel=1, complib="zlib") as store:
        for encoding in [*LETTERS, *WORDS]:
            key, frame = "/" + encoding.replace("-", "_"), encoded(encoding)
            store.put(key, frame, format="table", encoding=encoding, index=False)
            # What pandas writes in units of two bytes it does not read.
            found[key] = describe(frame if "16" in encoding else store[key])
            store.put(f"/fixed{key}", frame[["n"]], format="fixed", encoding=encoding)
            found[f"/fixed{key}"] = describe(frame[["n"]] if "16" in encoding else store[f"/fixed{key}"])
        store.put("/unknown", pd.DataFrame({"t": ["a", "é"]}), format="table", encoding="cp437", index=False)
        # Its e with an accent is no UTF-8.
        found["/unknown"] = describe(pd.DataFrame({"t": ["a", "\ufffd"]}))
    return found


def labels(path):
    """A file of frames whose labels are no texts, or count time; what is expected of it."""
    days = pd.to_datetime(["2020-01-01 00:00", "2021-06-30 12:00", None])
    zoned, deltas = days.tz_localize("Europe/Berlin"), pd.to_timedelta([1, 90, None], unit="s")
    wide = {f"t{at}": pd.Categorical(["a", "b", None]) if at % 10 == 9 else zoned for at in range(60)}
    kinds = {"day": days, "zoned": zoned, "delta": deltas, "number": [3, 1, None]}
    of_kinds = pd.DataFrame({name: pd.Categorical(values) for name, values in kinds.items()})
    pairs = [[days[0], days[1]], ["AAPL", "MSFT"]]
    dated = pd.MultiIndex.from_product(pairs, names=["date", "ticker"])
    counted = pd.MultiIndex.from_product([deltas[:2], days[:2]], names=[0, "at"])
    four = {"a": [1, 2, 3, 4]}
    frames = {
        "dated": pd.DataFrame(four, index=dated),
        "counted": pd.DataFrame(four, index=counted),
        "numbered": pd.Series([1.5, 2.5], index=pd.Index([7, 8], name=3), name=0),
        "half": pd.Series([1.5], name=0.5),
        "by_day": pd.DataFrame([[1, 2]], columns=[datetime.date(2020, 1, 1), datetime.date(1969, 12, 31)]),
        "mixed": pd.DataFrame([[1, 2.5, 3]], columns=["a", 1, "1 2"]),
        "by_missing": pd.DataFrame([[1, 2]], columns=days[1:]),
        "by_missing_zoned": pd.DataFrame([[1, 2]], columns=zoned[1:]),
        "by_missing_pair": pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_arrays([days[1:], ["a", None]])),
        "by_zone": pd.DataFrame([[1, 2]], columns=zoned[:2]),
        "by_offset": pd.DataFrame([[1, 2]], columns=days[:2].tz_localize("-05:30")),
        "by_delta": pd.DataFrame([[1, 2]], columns=pd.to_timedelta(["-1 s", "1 days 00:00:00.25"])),
        "by_kind": pd.DataFrame([[1, 2]], columns=pd.CategoricalIndex(["hi", "lo"], ["lo", "hi"])),
        "indexed": pd.DataFrame({"index": [1, 2], "x": [0.5, 1.5]}, index=[7, 9]),
        "index_series": pd.Series([1, 2], index=[7, 9], name="index"),
        "by_dateutil": pd.DataFrame({"at": pd.date_range("2020", periods=2, tz="dateutil/Europe/Paris")}),
        "by_other": pd.DataFrame([[1, 2, 3, 4, 5]], columns=[np.str_("s"), b"b", pd.Interval(0, 1), np.int64(5), "c"]),
        "by_day_and_delta": pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_product([days[1:2], deltas[:2]])),
    }
    kinds = {"i": "i4", "f": "f4", "g": "f8", "b": "bool", "u": "u2", "t": "M8[s]", "d": "m8[ms]"}
    some = pd.DataFrame({name: np.array([1]).astype(kind) for name, kind in kinds.items()} | {"s": ["x"], "z": zoned[:1]})
    some = some.set_index(pd.Index(days[:1], name="at"))
    for name, index in (("dated", None), ("numbered", "i"), ("named", "s"), ("zoned", "z"), ("levels", ["i", "s"])):
        frames[f"no_rows_{name}"] = (some if index is None else some.set_index(index)).iloc[:0]
    frames["no_rows_series"] = some["f"].iloc[:0]
    frames["empty_texts"] = pd.DataFrame({"x": [1, 2, 3]}, index=["nan", "", "Q"])
    found = {}
    with pd.HDFStore(path, "w", complevel=1, complib="zlib") as store:
        store.put("/wide", pd.DataFrame(wide), format="table", data_columns=True, index=False)
        store.put("/of_kinds", of_kinds, format="table")
        no_kinds = pd.DataFrame({"kind": pd.Categorical([None, None], categories=[]), "n": [1, 2]})
        store.put("/no_kinds", no_kinds, format="table")
        blank = pd.DataFrame({"t": ["a", "", None, "nan"]})
        store.put("/blank", blank, format="table", nan_rep="")
        for key, frame in frames.items():
            if key != "by_other":
                store.put(f"/fixed/{key}", frame, format="fixed")
            if key in ("dated", "empty_texts") or key.startswith("by_"):
                store.put(f"/rows/{key}", frame, format="table")
        along = pd.DataFrame({"a": [1.5, 2.5], "b": [3.5, None]}, index=["r", "s"])
        store.append("/along_text", along.rename_axis("name", axis=1), axes=["columns"])
        store.append("/along_days", along.set_axis(days[:2], axis=1), axes=["columns"])
        for key in [key for key in store.keys() if "/meta/" not in key]:
            frame = store[key]
            if key.startswith("/along"):  # its columns are stored as rows
                frame = frame.T
            if isinstance(frame, pd.DataFrame):
                for name, values in frame.items():
                    # Times in place of their codes.
                    if isinstance(values.dtype, pd.CategoricalDtype) and values.cat.categories.dtype.kind in "mM":
                        frame[name] = values.astype(values.cat.categories.dtype)
            found[key] = describe(frame)
    return found


# ---------------------------------------------------------------------------------------------------------------------
# What is expected


def object_cells(values):
    """The cells of a column of Python objects."""
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    present = [value for value in values if not pd.isna(value)]
    kinds = {type(value) for value in present}
    shown = {
        frozenset(): str,
        frozenset([str]): str,
        frozenset([bool]): lambda value: "true" if value else "false",
        frozenset([int]): str,
        frozenset([float]): lambda value: number(value, np.dtype("f8")),
        frozenset([int, float]): lambda value: number(float(value), np.dtype("f8")),
        frozenset([datetime.date]): lambda value: instant(value, "s"),
        frozenset([decimal.Decimal]): str,
    }.get(frozenset(kinds), lambda value: json.dumps(value, ensure_ascii=False, default=in_utc))
    if kinds == {int, float} and any(isinstance(one, int) and abs(one) > 1 << 53 for one in present):
        shown = json.dumps
    if kinds == {str, float}:
        shown = lambda value: json.dumps(str(value).replace("inf", "Infinity") if value in (np.inf, -np.inf) else value)
    if present and all(getattr(value, "tz", None) for value in present):
        unit = "ns" if all(value.unit == "ns" for value in present) else "us"
        shown = lambda value: instant(value, unit, "Z")
    return [None if pd.isna(value) else shown(value) for value in values]


def in_utc(value):
    """A point in time as pandas prints it, one with a zone in UTC."""
    return str(value.tz_convert("UTC") if getattr(value, "tz", None) else value)


def distinct(names):
    """Names, each with a number where it has been met before."""
    taken, met, shown = set(names), {}, []
    for name in names:
        count = met.get(name, 0)
        free = name
        while count and free in taken:
            free, count = f"{name}.{count}", count + 1
        met[name] = max(count, 1)
        taken.add(free)
        shown.append(free)
    return shown


def describe(value):
    """One entry of `tables`: row labels, then columns."""
    frame = value.to_frame("values" if value.name is None else value.name) if isinstance(value, pd.Series) else value
    index = frame.index
    levels = index.nlevels
    labels = [index.get_level_values(at) for at in range(levels)]
    names = [str(name) for name in frame.columns]
    nameless = "level_0" if "index" in names else "index"
    of_level = [nameless] if levels == 1 else [f"level_{at}" for at in range(levels)]
    label_names = [of_level[at] if label.name is None else str(label.name) for at, label in enumerate(labels)]
    shown = distinct(label_names + names)
    columns = []
    for at, name in enumerate(shown):
        values = labels[at] if at < levels else frame.iloc[:, at - levels]
        entry = {"name": name, "rows": len(frame), "in_table": True}
        is_object = values.dtype == object
        columns.append(entry | {"csv": object_cells(values) if is_object else [labelled(one, values.dtype) for one in values]})
    return {"rows": len(frame), "row_labels": [{"name": name} for name in shown[:levels]], "columns": columns}


def names(path):
    """A file of frames whose columns have names of all kinds; what is expected of it, and of frames made of it again."""
    days = pd.date_range("2020", periods=2, freq="D")
    pairs = pd.MultiIndex.from_product([["x", "y"], [1, 2]], names=["letter", None])
    two = [[1, 2], [3, 4]]
    instants = pd.date_range("2020", periods=2, freq="h", tz="Europe/Paris")
    frames = {
        "numbers": pd.DataFrame(two),
        "named": pd.DataFrame(two, columns=pd.Index(["a", "b"], name="of")),
        "floats": pd.DataFrame(two, columns=[0.5, 1.5]),
        "days": pd.DataFrame(two, columns=days),
        "zoned": pd.DataFrame(two, columns=instants.as_unit("ns")),
        "pairs": pd.DataFrame([[1, 2, 3, 4]] * 2, columns=pairs),
        "mixed_pairs": pd.DataFrame(two, columns=pd.MultiIndex.from_tuples([("a", "it's"), ("b", 1)])),
        "twice": pd.DataFrame(two, columns=["a", "a"]),
        "numbers_twice": pd.DataFrame(two, columns=[7, 7]),
        "labels": pd.DataFrame(two, index=pd.Index([3, 4], name="id")),
        "levels": pd.DataFrame(two, columns=[0, 1], index=pd.MultiIndex.from_product([["u"], [1, 2]], names=["k", None])),
        "deltas": pd.DataFrame({"d": pd.to_timedelta([1, None], "s")}, index=pd.to_timedelta([1, 2], "us")),
        "nanoseconds": pd.DataFrame({"t": instants.as_unit("ns")}, index=instants.as_unit("ns")),
    }
    halves = pd.DatetimeIndex(["2020-01-01", "2020-01-01T00:00:00.5"])
    # Names that pandas does not read back.
    texts = {
        "far": pd.DataFrame(two, columns=pd.DatetimeIndex(["1500-01-01", "3000-01-01"], dtype="M8[us]")),
        "fractions": pd.DataFrame(two, columns=halves.tz_localize("Europe/Paris")),
        "local": pd.DataFrame(two, columns=pd.DatetimeIndex(["1890-01-01", "2020-07-01"], tz="Europe/Paris")),
        "float_pairs": pd.DataFrame(two, columns=pd.MultiIndex.from_tuples([("a", 0.5), ("b", 1.5)], names=["f", "g"])),
    }
    found, shown = {}, {}
    with pd.HDFStore(path, "w", complevel=1, complib="zlib") as store:
        for name, frame in texts.items():
            for form in ("table", "fixed"):
                key = f"/{form}/{name}"
                store.put(key, frame, format=form)
                found[key] = describe(store[key])
                shown[key] = {"columns": [repr(str(name)) for name in store[key].columns], "names": [None]}
        for name, frame in frames.items():
            # The format `fixed` has no names twice.
            for form in ("table", "fixed") if frame.columns.is_unique else ("table",):
                key = f"/{form}/{name}"
                store.put(key, frame, format=form)
                frame = store[key]
                found[key] = describe(frame)
                shown[key] = {
                    "columns": [repr(name) for name in frame.columns],
                    "kind": str(frame.columns.dtype),
                    "names": list(frame.columns.names),
                    "labels": list(frame.index.names),
                    "types": [str(kind) for kind in [*frame.index.to_frame().dtypes, *frame.dtypes]],
                }
    path.with_suffix(".frames.json").write_text(json.dumps(shown, indent=1) + "\n")
    return found


def kept(paths):
    """By place, the columns of frames that pandas gives again of a Parquet file of its own, as `read_hdf` has them."""
    found = {}
    for path in paths:
        tables = found[path.name] = {}
        with pd.HDFStore(path, "r") as store:
            for key in sorted(store.keys()):
                if "/meta/" in key or "16" in key or key == "/spoiled":
                    continue
                try:
                    value = store[key]
                except tb.NoSuchNodeError:
                    continue  # half of a frame
                value = value.to_frame() if isinstance(value, pd.Series) else value
                columns = {}
                for at in range(value.shape[1] if not key.startswith("/along") else 0):
                    column = value.iloc[:, at].reset_index(drop=True)
                    single = column.to_frame("column")
                    try:
                        back = pd.read_parquet(io.BytesIO(single.to_parquet()))
                        pd.testing.assert_frame_equal(back, single)
                    except (AssertionError, ArithmeticError, NotImplementedError, TypeError, ValueError):
                        continue
                    columns[at] = {"name": str(value.columns[at]), "is": described(column)}
                tables[key] = columns
    return found


def main():
    """The file and what is expected of it."""
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    warnings.simplefilter("ignore")
    path = DATA / f"pandas{MAJOR}.h5"
    path.unlink(missing_ok=True)
    with pd.HDFStore(path, "w", complevel=1, complib="zlib") as store:
        table_format(store)
        fixed_format(store)
    with pd.HDFStore(path, "r") as store:
        frames = [key for key in store.keys() if "/meta/" not in key and key != "/spoiled"]
        found = {key: describe(store[key]) for key in frames}
        # What is left of a frame whose columns are told by their blocks alone.
        group = store.get_node("/spoiled")
        blocks = [group.table.attrs[f"{field}_kind"] for field in group._v_attrs.values_cols]
        frame = pd.DataFrame({"late": [1, 2], "early": [0.5, 1.5]})
        found["/spoiled"] = describe(frame[[name for block in blocks for name in block]])
    save(path, found)
    path = path.with_name(f"pandas{MAJOR}_encodings.h5")
    save(path, encodings(path))
    # Of pandas 2 each pickle takes a chunk of 1 MiB.
    if MAJOR > 2:
        for name, write in (("labels", labels), ("names", names)):
            path = path.with_name(f"pandas{MAJOR}_{name}.h5")
            save(path, write(path))
        save_kept()


def save_kept():
    """What is expected of the files of pandas 3 once they are exported."""
    shown = kept(sorted(DATA.glob("pandas3*.h5")))
    (DATA / "pandas3.frames.json").write_text(json.dumps(shown, indent=1, ensure_ascii=False) + "\n")


def save(path, found):
    """What is expected of a file, beside it."""
    text = json.dumps({"tables": found, "arrays": {}}, separators=(",", ":"), ensure_ascii=True)
    path.with_suffix(".expected.json").write_text(text + "\n")
    print(f"{path.stem}: {path.stat().st_size} bytes, {len(found)} tables")


if __name__ == "__main__":
    main()
