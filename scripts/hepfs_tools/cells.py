"""Values of NumPy and pandas as the fields that `NAME.expected.json` has of them, for the scripts that write fixtures."""

import datetime
import struct

import numpy as np
import pandas as pd

UNIT_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def instant(value, unit, zone=""):
    """A point in time as text, with a `Z` where it has a zone."""
    digits = UNIT_DIGITS[unit]
    seconds, rest = divmod(int(pd.Timestamp(value).as_unit(unit).asm8.astype("i8")), 10**digits)
    text = (datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)).isoformat()
    return text + (f".{rest:0{digits}}" if digits else "") + zone


def number(value, dtype):
    """A float by its bits."""
    return {f"f{8 * dtype.itemsize}": struct.pack(f">{'efd'[dtype.itemsize // 4]}", value).hex()}


def labelled(value, dtype):
    """A value of a data frame as the CSV field that shows it: NaN is missing, and named in a file of one column."""
    return {"missing": "NaN"} if dtype.kind == "f" and pd.isna(value) else cell(value, dtype)


def cell(value, dtype):
    """A value as the CSV field that shows it."""
    if isinstance(dtype, pd.CategoricalDtype):
        return None if pd.isna(value) else str(value)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return None if pd.isna(value) else instant(value, dtype.unit, "Z")
    if dtype.kind == "M":
        return None if pd.isna(value) else instant(value, np.datetime_data(dtype)[0])
    if dtype.kind == "m":
        unit = np.timedelta64(1, np.datetime_data(dtype)[0])
        return None if pd.isna(value) else str(int(pd.Timedelta(value) / unit))
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind in "iu":
        return str(value)
    if dtype.kind == "f":
        return number(value, dtype)
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return {"json": {"re": number(value.real, part), "im": number(value.imag, part)}}
    return None if pd.isna(value) else str(value)
