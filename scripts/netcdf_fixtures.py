#!/usr/bin/env python3
"""Writes `tests/data/netcdf*.h5` with netCDF4 and xarray, and what xarray reads of them.

    python3 -m venv FOLDER && FOLDER/bin/pip install netCDF4==1.7.4 xarray==2026.4.0 h5py
    FOLDER/bin/python3 scripts/netcdf_fixtures.py [--only NAME …]

In an environment of its own, since its libraries are others than those of the tests. The form is that of
`make_fixtures.py`. Which tables there are is written here once more, by the names of dimensions that netCDF4 tells.
"""

import argparse
import hashlib
import json
import re
import warnings
from fractions import Fraction
from types import SimpleNamespace

import h5py
import netCDF4
import numpy as np
import xarray as xr

from cells import DATA, cell, number
from fixtures import instants

WORDS = ["bad", "good", "unknown", "probably_good", "lost"]
UNITS = ["days", "hours", "minutes", "seconds", "milliseconds"]
DEFAULTS = {"i2": -32767, "u2": 65535, "i4": -2147483647, "u4": 4294967295, "i8": -9223372036854775806}
DEFAULTS |= {"u8": 18446744073709551614, "f4": 9.969209968386869e36, "f8": 9.969209968386869e36}


# ---------------------------------------------------------------------------------------------------------------------
# What is written


def put(group, name, dtype, dimensions, values=None, fill_value=None, **attributes):
    """A variable, its values as they are stored."""
    small = small_chunks(group, (dimensions,) if isinstance(dimensions, str) else dimensions)
    made = group.createVariable(name, dtype, dimensions, fill_value=fill_value, **small)
    made.set_auto_maskandscale(False)
    made.set_auto_chartostring(False)
    made.setncatts(attributes)
    if values is not None:
        made[: len(values)] = values
    return made


def small_chunks(group, dimensions):
    """Chunks of few rows where there are any: those of the library have a megabyte."""
    found = [owner(group, one).dimensions[one] for one in dimensions]
    if not any(one.isunlimited() for one in found):
        return {}
    return {"chunksizes": [8 if one.isunlimited() else len(one) for one in found]}


def characters(texts, width):
    """Texts as characters, filled up with NUL."""
    return np.array([text.encode() for text in texts], f"S{width}").reshape(-1, 1).view("S1").reshape(len(texts), width)


def station(group):
    """Variables of every kind on one dimension without limit: a table by itself."""
    count = 9
    rng = np.random.default_rng(1)
    group.createDimension("obs", None)
    for name, size in (("strlen", 6), ("nv", 2)):
        group.createDimension(name, size)
    at = np.arange(count)
    put(group, "obs", "i4", "obs", at * 10, long_name="number of the observation")
    days = np.array([0, 0.25, 1 / 3, 7.000000001, -1.5, 20000.7, 1e-9, np.nan, 99.999999999])
    put(group, "time", "f8", "obs", days, units="days since 2001-01-01 12:00:00")
    put(group, "when", "i4", "obs", at * 3600, fill_value=7200, units="seconds since 1970-01-01", calendar="standard")
    put(group, "packed_time", "i2", "obs", at * 7, fill_value=14, units="hours since 2020-02-29", scale_factor=0.25)
    put(group, "bad_time", "i4", "obs", at, units="days since 2000-01-01", calendar="noleap")
    packed = rng.integers(-500, 500, count).astype("i2")
    packed[[2, 5]] = [-32768, -999]
    packing = {"scale_factor": 0.01, "add_offset": 273.15}
    put(group, "temperature", "i2", "obs", packed, fill_value=-32768, missing_value=np.int16(-999), units="K", **packing)
    single = {"scale_factor": np.float32(0.1), "add_offset": np.float32(-5)}
    put(group, "single", "i2", "obs", packed, fill_value=-32768, **single)
    put(group, "scaled", "u1", "obs", at.astype("u1"), fill_value=255, scale_factor=np.float32(0.3))
    put(group, "shifted", "i4", "obs", at * 100000, add_offset=np.float32(0.5))
    put(group, "unsigned", "i1", "obs", (at * 30).astype("u1").view("i1"), fill_value=-1, _Unsigned="true")
    unsigned = (at * 31).astype("u1").view("i1")
    put(group, "unsigned_packed", "i1", "obs", unsigned, fill_value=-8, _Unsigned="true", scale_factor=2.0)
    put(group, "level", "f4", "obs", np.where(at == 3, 1e20, at / 3), missing_value=np.array([1e20, 2.0]))
    put(group, "depth", "f8", "obs", np.where(at == 4, np.nan, at / 7), fill_value=np.nan)
    put(group, "plain", "f8", "obs", np.where(at == 4, np.nan, at / 7))
    put(group, "count", "i4", "obs", np.where(at == 6, DEFAULTS["i4"], at))
    put(group, "bytes", "i1", "obs", at.astype("i1") - 127)
    flags = {"flag_values": np.array([0, 1, 9], "i1"), "flag_meanings": "bad good unknown"}
    put(group, "quality", "i1", "obs", np.array([0, 1, 9, 1, 5, -5, 0, 7, 1], "i1"), -5, missing_value=np.int8(7), **flags)
    masks = {"flag_masks": np.array([1, 2, 4], "i2"), "flag_meanings": "a b c"}
    put(group, "masks", "i2", "obs", at, **masks)
    put(group, "name", "S1", ("obs", "strlen"), characters(["one", "", "sixsix", "Grü", "t  ", "x", "y", "z", "w"], 6))
    put(group, "mode", "S1", "obs", np.array(list("RADRADRAD"), "S1"))
    group.createVariable("label", str, "obs")[:] = np.array([f"label {one}" for one in at], object)
    put(group, "bounds", "i2", ("obs", "nv"), np.c_[at, at + 1], fill_value=3, scale_factor=0.5)
    put(group, "interval", "f4", ("obs", "nv"), np.c_[at, at + 0.5])
    put(group, "crs", "i4", (), None, grid_mapping_name="latitude_longitude")
    put(group, "level_of_all", "i2", (), None, scale_factor=0.1)[:] = 25


def cube(group):
    """Grids, tables of two dimensions, one of which nobody labels, and variables shorter than the longest."""
    for name, size in (("time", None), ("lat", 3), ("lon", 4), ("profile", None), ("nv", 2)):
        group.createDimension(name, size)
    put(group, "time", "i4", "time", np.arange(5), units="days since 1999-12-31")
    put(group, "lat", "f4", "lat", np.array([-1, 0, 1]))
    put(group, "lon", "f4", "lon", np.arange(4) * 0.5)
    put(group, "time_bounds", "f8", ("time", "nv"), np.c_[np.arange(5), np.arange(5) + 1.0])
    rain = np.arange(60).reshape(5, 3, 4)
    put(group, "rain", "i2", ("time", "lat", "lon"), rain, fill_value=7, scale_factor=0.1, add_offset=1.0)
    put(group, "mask", "i2", ("lat", "lon"), np.arange(12).reshape(3, 4), fill_value=7, scale_factor=0.1)
    put(group, "mean", "f8", "time", np.arange(5) / 9)
    put(group, "late", "f4", "time", np.arange(3) / 9)
    put(group, "late_names", str, "time", np.array(["a", "b"], object))
    put(group, "profile_id", "i4", "profile", np.arange(6))
    put(group, "late_pair", "i2", ("profile", "nv"), np.arange(8).reshape(4, 2), fill_value=3)
    put(group, "profile_late", "i1", "profile", np.arange(2))
    below = group.createGroup("below")
    put(below, "anomaly", "f8", "time", np.arange(5) * 1.5)
    put(below, "other", "i8", "time", np.arange(5))
    put(below, "profile_only", "f8", "profile", np.arange(6))
    # It hides the variable of its name in the group above.
    nested = group.createGroup("nested")
    put(nested, "time", "f8", "time", np.arange(5) + 0.25, units="days since 1999-12-31")
    put(nested, "gain", "f4", "time", np.arange(5) / 8)
    more = below.createGroup("more")
    put(more, "only", "f8", "profile", np.arange(6))


def scalars(path):
    """Scalars of which some stand for other numbers, a plain one first; texts and characters of which one is missing."""
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("t", 3)
        for name, dtype, values, attributes in (
            ("word", str, ["a", "miss", ""], {"missing_value": "miss"}),
            ("letter", "S1", [b"a", b"N", b"c"], {"_FillValue": b"N"}),
        ):
            made = file.createVariable(name, dtype, ("t",), fill_value=attributes.pop("_FillValue", None))
            made.setncatts(attributes)
            made[:] = np.array(values, object if dtype is str else "S1")
        for name, dtype, value, attributes in (
            ("crs", "i4", 0, {}),
            ("packed", "i2", 7, {"scale_factor": 0.5}),
            ("unsigned", "i1", -1, {"_Unsigned": "true"}),
            ("lost", "f4", -1.0, {"missing_value": np.float32(-1)}),
            ("plain", "i8", 3, {"long_name": "a count"}),
            ("is_on", "i1", 1, {"dtype": "bool"}),
        ):
            made = put(file, name, dtype, ())
            made.setncatts(attributes)
            made[...] = value


def coded(path):
    """Times that xarray writes, and numbers whose attributes are of another sign or type than they are."""
    stamps = np.array(["2020-01-01T00:00:00.5", "NaT", "2020-03-01"], "M8[ns]")
    spans = np.array([1, "NaT", 3], "m8[ns]")
    xr.Dataset({"at": ("x", stamps), "span": ("x", spans)}).to_netcdf(path, group="nat")
    days = xr.date_range("2000-02-27", periods=3, calendar="noleap", use_cftime=True)
    xr.Dataset({"v": ("time", [1.0, 2.0, 3.0])}, {"time": days}).to_netcdf(path, group="noleap", mode="a")
    with netCDF4.Dataset(path, "a") as file:
        group = file.createGroup("flags")
        group.createDimension("x", 3)
        for name, dtype, values, flags, attributes in (
            ("unsigned", "i1", [0, 1, -56], np.array([0, 1, 200], "u1"), {"_Unsigned": "true"}),
            ("wide", "i1", [0, 1, -56], np.array([0, 1, 300], "i2"), {}),
            ("twice", "i1", [0, 1, 2], np.array([0, 1, 1], "i1"), {}),
        ):
            put(group, name, dtype, "x", values, flag_values=flags, flag_meanings="clear cloud unknown", **attributes)
        group = file.createGroup("ranges")
        group.createDimension("x", 4)
        goes = {"_Unsigned": "true", "valid_range": np.array([0, -6], "i2"), "scale_factor": np.float32(0.0025)}
        goes["add_offset"] = np.float32(190)
        put(group, "packed", "i2", "x", [0, 30000, -6, -1], fill_value=-1, **goes)
        put(group, "bytes", "i1", "x", [0, 1, 2, -3], _Unsigned="true", valid_range=np.array([0, 100], "i1"))
        put(group, "days", "f8", "x", [0.5, 1, 2, -1], units="days since 2000-01-01", valid_min=0.0)
        group = file.createGroup("scalars")
        for name, dtype, value, attributes in (
            ("float_days", "f8", 1.5, {"units": "days since 2000-01-01"}),
            ("days", "i4", 3, {"units": "days since 2000-01-01"}),
            ("unwritten", "i4", -2147483647, {}),
        ):
            made = put(group, name, dtype, ())
            made.setncatts(attributes)
            made[...] = value


def unmarked(path):
    """A file without `_NCProperties`: a scalar that counts time, one that is packed, and characters on one dimension."""
    with netCDF4.Dataset(path, "w") as file:
        for name, size in (("t", 3), ("string_length", 8)):
            file.createDimension(name, size)
        put(file, "value", "f8", "t", [1.0, 2.0, 3.0])
        put(file, "flag", "S1", "t", np.array([b"a", b"b", b"c"]))
        put(file, "start", "S1", "string_length", characters(["2011-05"], 8)[0])
        for name, dtype, value, attributes in (
            ("time", "i4", 31, {"units": "days since 2011-05-20"}),
            ("packed", "i2", 7, {"scale_factor": 0.5}),
        ):
            made = put(file, name, dtype, ())
            made.setncatts(attributes)
            made[...] = value
    with h5py.File(path, "r+") as file:
        del file.attrs["_NCProperties"]


def by_xarray(path):
    """What xarray writes by itself."""
    count = 6
    times = np.array(["2000-01-01", "2000-01-02", "NaT", "2000-01-04", "2000-02-29T12", "2001-01-01"], "M8[ns]")
    variables = {
        "flag": ("x", np.arange(count) % 2 == 0),
        "value": ("x", np.array([0.5, np.nan, 1.5, -2.0, 3.25, 100.0])),
        "when": ("x", times),
        "text": ("x", np.array(["a", "", "b c", "Grüße", "d", "e"])),
        "fixed": ("x", np.array([b"ab", b"c", b"", b"d", b"ef", b"g"])),
        "number": ("x", np.arange(count, dtype="u2")),
    }
    dataset = xr.Dataset(variables, {"x": np.arange(count) * 0.1})
    packing = {"dtype": "i2", "scale_factor": 0.25, "add_offset": 1.0, "_FillValue": -32767}
    dataset.to_netcdf(path, group="xarray", mode="a", engine="netcdf4", encoding={"value": packing})


def whole(path):
    with netCDF4.Dataset(path, "w") as file:
        station(file.createGroup("station"))
        cube(file.createGroup("cube"))
    by_xarray(path)


TYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]


def random_variable(rng, group, name, dimensions, shape):
    """A variable of random type, values and attributes."""
    dtype = np.dtype(str(rng.choice(TYPES)))
    size = int(np.prod(shape))
    if dtype.kind == "f":
        values = rng.normal(0, 100, size).astype(dtype)
        values[rng.random(size) < 0.1] = np.nan
    else:
        limits = np.iinfo(dtype)
        small = rng.integers(0, 120, size).astype(dtype)
        values = np.where(rng.random() < 0.5, small, rng.integers(limits.min, limits.max, size, dtype, endpoint=True))
        values = values.astype(dtype)
    attributes, fill = {}, None
    is_short_time = False
    if rng.random() < 0.25 and len(shape) == 1:
        unit = str(rng.choice(UNITS))
        date = str(rng.choice(["1970-01-01", "2001-2-28 12:30:15.5", "1858-11-17 00:00:00 UTC", "2000-01-01T06:00:00+02:00"]))
        calendar = rng.choice(["standard", "gregorian", "proleptic_gregorian", "noleap", "360_day", "julian", ""])
        attributes |= {"units": f"{unit} since {date}"} | ({"calendar": str(calendar)} if calendar else {})
        # Of those whose instants are few of the 584 years that 64 bits of nanoseconds hold.
        values = (rng.integers(0, 120, size) if dtype.kind in "iu" else rng.normal(0, 3000, size)).astype(dtype)
        is_short_time = True
    if rng.random() < 0.5 and size:
        fill = values[rng.integers(size)] if dtype.kind != "f" or rng.random() < 0.7 else dtype.type(np.nan)
    if rng.random() < 0.2:
        attributes["missing_value"] = rng.choice(values, 3) if rng.random() < 0.5 and size else values.dtype.type(7)
    kinds = [np.float32, np.float64]
    if rng.random() < 0.5 and not (is_short_time and dtype.kind == "f"):
        kind = kinds[rng.integers(2)]
        pick = rng.integers(3)
        # A float32 scale alone, of integers of four bytes and more, is a double here: xarray loses digits.
        if pick == 0 and dtype.itemsize > 2 and dtype.kind != "f" or dtype == "f8":
            kind = np.float64
        if dtype.itemsize == 8:
            kind = np.float64
        attributes |= {"scale_factor": kind(rng.choice([0.01, 0.1, 0.5, 2.0, -0.25]))} if pick != 1 else {}
        attributes |= {"add_offset": kind(rng.choice([273.15, -1.0, 0.1]))} if pick != 0 else {}
        # xarray computes in the stored type where NaN is a missing value, whatever that of the scale.
        if fill is not None and dtype.kind == "f" and np.isnan(fill):
            fill = None
        if dtype.kind == "f" and np.isnan(attributes.get("missing_value", 0)).any():
            del attributes["missing_value"]
    elif dtype.kind == "i" and rng.random() < 0.3 and not is_short_time:
        attributes["_Unsigned"] = "true"
    elif dtype.kind in "iu" and rng.random() < 0.3 and not is_short_time and size:
        some = np.unique(values)[: len(WORDS)]
        attributes |= {"flag_values": some, "flag_meanings": " ".join(WORDS[: len(some)])}
    zlib = {"zlib": True, "shuffle": bool(rng.random() < 0.5)} if rng.random() < 0.5 else {}
    dimensions = [dimensions] if isinstance(dimensions, str) else dimensions
    zlib |= small_chunks(group, dimensions)
    made = group.createVariable(name, dtype, dimensions, fill_value=fill, **zlib)
    made.set_auto_maskandscale(False)
    made.setncatts(attributes)
    made[: shape[0]] = values.reshape(shape)


def random_group(rng, group, above=(), level=0):
    """Dimensions and variables on them."""
    lengths = dict(above)
    for number in range(int(rng.integers(1, 4))):
        name, size = f"d{level}{number}", int(rng.integers(1, 30))
        group.createDimension(name, size if rng.random() < 0.5 else None)
        lengths[name] = size
        if rng.random() < 0.5:
            random_variable(rng, group, name, name, (size,))
    for number in range(int(rng.integers(1, 10))):
        rank = int(rng.choice([1, 1, 1, 2, 3]))
        dimensions = [str(one) for one in rng.choice(list(lengths), min(rank, len(lengths)), replace=False)]
        shape = tuple(lengths[one] for one in dimensions)
        if rng.random() < 0.1:
            texts = ["".join(rng.choice(list("abc é"), rng.integers(0, 5))) for _ in range(shape[0])]
            small = small_chunks(group, dimensions[:1])
            group.createVariable(f"v{number}", str, dimensions[:1], **small)[:] = np.array(texts, object)
        else:
            random_variable(rng, group, f"v{number}", dimensions, shape)
    if above and sum(lengths.values()) % 3 == 0:
        # It hides what labels the dimension in a group above.
        name = next(iter(above))
        random_variable(np.random.default_rng(lengths[name]), group, name, name, (lengths[name],))
    if level < 2 and rng.random() < 0.6:
        random_group(rng, group.createGroup("below"), lengths, level + 1)


def random_file(path, seeds):
    with netCDF4.Dataset(path, "w") as file:
        for seed in seeds:
            random_group(np.random.default_rng(seed), file.createGroup(f"seed{seed}"))


# ---------------------------------------------------------------------------------------------------------------------
# What is expected


def missing_values(variable):
    """Stored values that stand for missing ones: those of the attributes, else what netCDF fills with."""
    found = [one for name in ("_FillValue", "missing_value") for one in np.ravel(variable.attrs.get(name, []))]
    dtype = variable.dtype
    if not found and dtype.kind in "iuf" and dtype.itemsize > 1:
        found = [np.array(DEFAULTS[dtype.str[1:]]).astype(dtype)]
    return found


def is_missing(values, variable):
    """Where stored values are missing."""
    missing = np.zeros(values.shape, bool)
    for one in missing_values(variable):
        stated = np.asarray(one)
        one = stated.astype(values.dtype) if stated.dtype.kind in "iuf" else one
        # As xarray has it: what is no value of the data, 1e20 of float64 for float32, equals none.
        if values.dtype.kind == "f" and one != stated and not np.isnan(stated):
            continue
        missing |= (values == one) | (np.isnan(values) & np.isnan(one) if values.dtype.kind == "f" else False)
    return missing


def is_packed(attributes):
    return "scale_factor" in attributes or "add_offset" in attributes


def times_of(raw, decoded, missing, attributes):
    """Instants as text; `None` where numbers are shown."""
    scale = instants.scale(attributes.get("units"), attributes.get("calendar"))
    if scale is None or raw.ndim > 1:
        return None
    unit, start = scale
    if raw.dtype.kind in "iu" and not is_packed(attributes):
        return [None if gone else instants.text(int(one), unit, start) for one, gone in zip(raw, missing)]
    if start % Fraction(1, 10**6):
        return None
    # Whole microseconds, halves to even; and xarray's, which may be rounded otherwise.
    texts = []
    for one, gone in zip(decoded.astype("f8"), missing):
        exact = None if gone or np.isnan(one) else round((Fraction(float(one)) * unit + start) * 10**6)
        texts.append(None if exact is None else instants.text(exact, Fraction(1, 10**6), Fraction(0)))
        if exact is not None:
            by_xarray = xr.coding.times.decode_cf_datetime(
                np.array([one]), attributes["units"], attributes.get("calendar") or "standard"
            )
            other = int(np.datetime64(by_xarray[0], "ns").astype(int))
            assert abs(other - exact * 1000) <= 1000 + abs(exact) * 4e-13, (other, exact, attributes)
    return texts


def values_of(raw, decoded, attributes, inner=False):
    """The values of a variable as CSV fields, by what is stored and what xarray makes of it."""
    if raw.dtype.kind in "OSUT":
        texts = [one.decode() if isinstance(one, bytes) else str(one) for one in decoded.values.ravel()]
        # Characters are filled up with blanks as well.
        return [one.rstrip(" ") for one in texts] if raw.dtype == "S1" else texts
    stored = raw.values.ravel()
    missing = is_missing(stored, raw)
    shown = decoded.values.ravel()
    if shown.dtype.kind == "b":
        return ["true" if one else "false" for one in shown]
    if "flag_values" in attributes and "flag_masks" not in attributes and not is_packed(attributes):
        names = dict(zip(np.ravel(attributes["flag_values"]).tolist(), attributes["flag_meanings"].split()))
        return [None if gone else names.get(int(one), str(one)) for one, gone in zip(stored, missing)]
    texts = times_of(raw.values, shown, missing, attributes) if raw.ndim == 1 else None
    if texts is not None:
        return texts
    if not is_packed(attributes) and stored.dtype.kind in "iu":
        if attributes.get("_Unsigned") == "true":
            stored = stored.view(stored.dtype.str.replace("i", "u"))
        # What xarray tells as floating-point numbers, since it has no other missing ones.
        assert np.allclose(np.where(missing, 0, stored).astype("f8"), np.where(missing, 0, shown.astype("f8")))
        return [None if gone else str(one) for one, gone in zip(stored, missing)]
    return [None if gone else number(one, shown.dtype) for one, gone in zip(shown, missing)]


def json_of(field):
    """A field in a list."""
    if isinstance(field, str):
        return int(field) if re.fullmatch(r"-?\d+", field) else {"true": True, "false": False}.get(field, field)
    return field


def fields_of(name, raw, decoded):
    """The CSV fields of a variable along its first axis."""
    attributes = raw.attrs
    fields = values_of(raw, decoded, attributes)
    shape = decoded.shape
    if len(shape) < 2:
        return fields
    per_row = int(np.prod(shape[1:]))
    rows = [[json_of(one) for one in fields[at * per_row : (at + 1) * per_row]] for at in range(shape[0])]
    return [{"json": row} for row in rows]


def stored_of(dataset):
    """What its files of elements as stored hold."""
    if dataset.dtype.kind == "O":
        return {"npy_dtype": None, "raw_sha256": None}
    values = dataset[()]
    return {
        "npy_dtype": repr(np.lib.format.dtype_to_descr(dataset.dtype)),
        "npy_shape": list(np.shape(values)),
        "raw_sha256": hashlib.sha256(np.asarray(values).tobytes()).hexdigest(),
    }


class Group:
    """What netCDF4 tells of a group. It is closed before others open the file: libnetcdf may crash otherwise."""

    def __init__(self, group, parent=None):
        self.path, self.parent = group.path, parent
        self.dimensions = set(group.dimensions)
        self.variables = {
            name: SimpleNamespace(dimensions=one.dimensions, shape=one.shape, ndim=one.ndim, dtype=one.dtype)
            for name, one in group.variables.items()
        }
        self.groups = {name: Group(below, self) for name, below in group.groups.items()}


def tree(path):
    with netCDF4.Dataset(path) as file:
        return Group(file)


def read(path, where, **options):
    """A group as xarray reads it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xr.open_dataset(path, group=where, decode_timedelta=False, engine="netcdf4", **options) as opened:
            return opened.load()


def as_stored(path, where):
    """The same without what attributes say."""
    return read(path, where, decode_cf=False)


def as_numbers(path, where):
    """The same with times as numbers."""
    return read(path, where, decode_times=False, decode_coords=False)


def owner(group, name):
    """The group that a dimension belongs to."""
    while name not in group.dimensions:
        group = group.parent
    return group


def is_label(group, name):
    """Whether a dimension has a variable of its name."""
    found = owner(group, name).variables.get(name)
    return found is not None and found.dimensions[:1] == (name,)


def home_of_label(group, name):
    """The group of the variable that labels a dimension, if there is one: a group's own hides those above."""
    own = group.variables.get(name)
    if own is not None and own.dimensions == (name,):
        return group
    return owner(group, name) if is_label(group, name) else None


def tables_of(group):
    """The tables of a group: by dimension the names of its columns; and whether the group is the one table."""
    tables, others = {}, 0
    for name, variable in group.variables.items():
        dimensions, shape = variable.dimensions, variable.shape
        is_text = variable.dtype == "S1"
        match len(dimensions):
            case 0:
                continue
            case 1:
                ok = True
            case 2 if is_text:
                ok = True
            case 2:
                ok = shape[1] <= 64 and not is_label(group, dimensions[1]) and dimensions[0] != dimensions[1]
            case _:
                ok = False
        if ok:
            tables.setdefault(dimensions[0], []).append(name)
        else:
            others += 1
    full = {dimension: names for dimension, names in tables.items() if names != [dimension]}
    is_one = len(full) == 1 and len(tables) == 1 and not others
    return full, is_one


def stored_rows(dataset, rows):
    """The same of a column of the table, up to its rows."""
    told = stored_of(dataset)
    if told["raw_sha256"] is None or dataset.shape[0] == rows:
        # One value a row, of several elements.
        if told["npy_dtype"] and dataset.ndim > 1:
            told.pop("npy_shape"), told.pop("npy_dtype")
        return told
    return {"raw_sha256": None} if dataset.dtype.kind == "O" else {}


def describe_group(path, group, file, expected):
    where = group.path
    raw, plain = as_stored(path, where), as_numbers(path, where)
    tables, is_one = tables_of(group)
    joined = f"{where.rstrip('/')}/"

    def fields(name, home):
        if home.path == where:
            return fields_of(name, raw[name], plain[name])
        return fields_of(name, as_stored(path, home.path)[name], as_numbers(path, home.path)[name])

    for dimension, names in tables.items():
        home = home_of_label(group, dimension)
        label = [dimension] if home else []
        lengths = {}
        for name in names:
            lengths[name] = file[f"{joined}{link(file, where, name)}"].shape[0]
        if label:
            lengths[dimension] = file[f"{home.path.rstrip('/')}/{dimension}"].shape[0]
        rows = max(lengths.values())
        columns = []
        for name in label + [name for name in names if name not in label]:
            at = home if name in label else group
            dataset = file[f"{at.path.rstrip('/')}/{link(file, at.path, name)}"]
            csv = fields(name, at)[: lengths[name]]
            csv += [None] * (rows - len(csv))
            told = {"name": name, "stem": name, "rows": rows, "in_table": True, "csv": csv}
            columns.append(told | stored_rows(dataset, rows))
        shown = where if is_one else f"{joined}tables/{dimension}"
        labels = [{"name": name} for name in label]
        expected["tables"][shown] = {"rows": rows, "row_labels": labels, "columns": columns}
    if not is_one:
        for name, variable in group.variables.items():
            if variable.ndim in (1, 2) and not (variable.dtype == "S1" and variable.ndim == 1):
                stored = file[f"{joined}{link(file, where, name)}"]
                expected["arrays"][f"{joined}{link(file, where, name)}"] = describe_array(
                    name, raw[name], plain[name], stored
                )
    for below in group.groups.values():
        describe_group(path, below, file, expected)


def link(file, where, name):
    """The name of a variable's link."""
    odd = f"_nc4_non_coord_{name}"
    return odd if odd in file[where] else name


def describe_array(name, raw, decoded, stored):
    """An entry of `arrays`; what was not written of a variable of netCDF is no element of its dataset."""
    fields = fields_of(name, raw, decoded)[: stored.shape[0]]
    is_line = decoded.ndim == 1
    files = [".npy", ".raw", ".csv", ".ndjson", ".parquet", ".arrow"] + ([".txt"] if is_line else [])
    if stored.dtype.kind == "O":
        files.remove(".npy")
    told = {"shape": list(stored.shape), "files": files, "rows": fields} | stored_of(stored)
    if is_line:
        told["columns"] = [{"name": name, "csv": fields}]
    else:
        rows = [field["json"] for field in fields]
        text = lambda one: str(one) if isinstance(one, int) else one
        told["columns"] = [{"csv": [text(row[at]) for row in rows]} for at in range(stored.shape[1])]
    return told


def describe(path):
    """What is expected of a file."""
    expected = {"tables": {}, "arrays": {}, "links": {}}
    group = tree(path)
    with h5py.File(path) as file:
        describe_group(str(path), group, file, expected)
    return expected


FILES = {
    "netcdf_scalars": scalars,
    "netcdf_coded": coded,
    "netcdf_unmarked": unmarked,
    "netcdf": whole,
    "netcdf_random": lambda path: random_file(path, range(1, 9)),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(FILES))
    for name in parser.parse_args().only:
        path = DATA / f"{name}.h5"
        path.unlink(missing_ok=True)
        FILES[name](path)
        if name in ("netcdf_scalars", "netcdf_coded", "netcdf_unmarked"):
            # The tests say what xarray reads of them.
            continue
        expected = json.dumps(describe(path), separators=(",", ":"))
        path.with_suffix(".expected.json").write_text(expected + "\n")


if __name__ == "__main__":
    main()
