#!/usr/bin/env python3
"""Grids of netCDF-4 as tables: written by h5py, read by pandas, pyarrow and DuckDB from a mount with `--grids`.

    netcdf_grids.py HEPFS FOLDER

Expected is what xarray's `to_dataframe()` makes of such a file (`scripts/check/grids` holds random ones against xarray
itself): a row for each place, the labels of all dimensions, outermost first.
"""

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import h5py
import numpy as np
import pandas as pd
import pyarrow.parquet as pq

TIMES, LATITUDES, LONGITUDES = 5, 40, 720


def variable(file, name, data, dimensions, **attributes):
    """A variable on dimensions, each with the scale of its name."""
    made = file.create_dataset(name, data=data, chunks=tuple(max(1, one // 2) for one in data.shape), compression="gzip")
    for axis, dimension in enumerate(dimensions):
        made.dims[axis].attach_scale(file[dimension])
    made.attrs.update(attributes)


def write(path):
    """The file; and its variables as they are read."""
    rng, shape = np.random.default_rng(3), (TIMES, LATITUDES, LONGITUDES)
    packed = rng.integers(-300, 300, shape).astype("i2")
    packed[rng.random(shape) < 0.01] = -999
    read = {
        "rain": np.where(packed == -999, np.nan, packed * 0.5 + 10),
        "wind": rng.normal(size=shape).astype("f4"),
        "short": rng.normal(size=(TIMES - 2, LATITUDES, LONGITUDES)),
        "elevation": rng.normal(size=shape[1:]),
        "by_name": rng.integers(0, 9, (3, TIMES)),
    }
    with h5py.File(path, "w") as file:
        file["time"] = np.arange(TIMES, dtype="i4") * 6
        file["time"].attrs["units"] = "hours since 2020-02-28"
        file["lat"], file["lon"] = np.linspace(80, -80, LATITUDES), np.arange(LONGITUDES, dtype="f4") / 2
        file["name"] = np.array([b"Oslo", b"Rome", b"Oslo"])
        file["bare"] = np.zeros(2, ">f4")
        for name in ("time", "lat", "lon", "name"):
            file[name].make_scale(name)
        file["bare"].make_scale("This is a netCDF dimension but not a netCDF variable.         2")
        grid = ("time", "lat", "lon")
        variable(file, "rain", packed, grid, scale_factor=0.5, add_offset=10.0, _FillValue=np.int16(-999), coordinates="elevation")
        variable(file, "wind", read["wind"], grid)
        variable(file, "elevation", read["elevation"], grid[1:])
        variable(file, "by_name", read["by_name"], ("name", "time"))
        variable(file, "pairs", np.arange(2 * LATITUDES).reshape(LATITUDES, 2), ("lat", "bare"))
        made = file.create_dataset("short", data=read["short"], maxshape=(None, *shape[1:]), chunks=(1, *shape[1:]))
        for axis, dimension in enumerate(grid):
            made.dims[axis].attach_scale(file[dimension])
    return read


def attach(made, *scales):
    """The same variable on these dimensions."""
    for axis, scale in enumerate(scales):
        made.dims[axis].attach_scale(scale)
    return made


def write_odd(path):
    """Variables that end early, coordinates that are no column, and a vector that two formats read."""
    with h5py.File(path, "w") as file:
        for name, data in {"time": np.zeros(5), "lat": [1.0, 2.0], "ens": np.arange(4), "one": [0.0], "long": np.arange(5000.0)}.items():
            file[name] = data
            file[name].make_scale("This is a netCDF dimension but not a netCDF variable.         5" if name == "time" else name)
        time, lat, ens, one, long = (file[name] for name in ("time", "lat", "ens", "one", "long"))
        attach(file.create_dataset("w", data=np.arange(5.0)), time)
        attach(file.create_dataset("q", data=np.arange(6.0).reshape(3, 2), maxshape=(None, 2)), time, lat)
        attach(file.create_dataset("a", data=np.zeros((2, 1)), maxshape=(2, None)), lat, ens)
        attach(file.create_dataset("b", data=np.arange(8).reshape(2, 4)), lat, ens).attrs["coordinates"] = "words"
        attach(file.create_dataset("words", data=np.full((2, 4, 3), b"x")), lat, ens, file.create_dataset("letters", data=np.zeros(3)))
        file["letters"].make_scale("letters")
        vector = attach(file.create_dataset("vector", data=np.arange(5000.0)[None]), one, long)
        vector.attrs.update({"MATLAB_class": np.bytes_("double"), "scale_factor": -2.0})


def check_odd(hepfs, folder, options):
    """All of these."""
    path, mount = Path(folder) / "odd.nc", Path(folder) / "mnt"
    write_odd(path)
    subprocess.run([hepfs, "mount", "--grids", *options, path, mount], check=True)
    try:
        values = pd.read_parquet(mount / "tables/time,lat/table.parquet")["q"]
        assert len(values) == 10 and values[:6].tolist() == list(range(6)) and values[6:].isna().all(), values
        values = pd.read_parquet(mount / "tables/lat,ens/table.parquet")
        assert list(values) == ["b"] and values["b"].tolist() == list(range(8)), values
        # What is learnt of one reading says nothing of the other.
        assert pd.read_csv(mount / "vector.csv")["vector"].sum() == np.arange(5000).sum()
        rows = pd.read_csv(mount / "tables/one,long/where/vector:lt:-100/table.csv")
        assert rows["vector"].tolist() == [-2.0 * at for at in range(51, 5000)], rows
        assert not (mount / ".hepfs/errors").read_text()
    finally:
        subprocess.run([hepfs, "umount", mount], check=True)
    checked = subprocess.run([hepfs, "check", "--grids", *options, path], capture_output=True, text=True)
    assert checked.returncode == 0 and "extents [2, 1], not [2, 4]" in checked.stdout, checked


def main(hepfs, folder):
    """Everything."""
    path, mount = Path(folder) / "grids.nc", Path(folder) / "mnt"
    read = write(path)
    mount.mkdir()
    options = ["--cache-folder", Path(folder) / "cache"]
    subprocess.run([hepfs, "mount", *options, path, mount], check=True)
    assert not [one for one in os.listdir(mount / "tables") if "," in one], "without the option"
    subprocess.run([hepfs, "umount", mount], check=True)
    subprocess.run([hepfs, "mount", "--grids", *options, path, mount], check=True)
    try:
        assert sorted(os.listdir(mount / "tables")) == ["index.html", "lat", "metadata.json", "name,time", "time,lat,lon"], os.listdir(mount / "tables")
        with h5py.File(path) as file:
            lat, lon = file["lat"][:], file["lon"][:]
        times = pd.Timestamp("2020-02-28", tz="UTC") + pd.to_timedelta(np.arange(TIMES) * 6, unit="h")
        index = pd.MultiIndex.from_product([times, lat, lon], names=["time", "lat", "lon"])
        short = np.full((TIMES, LATITUDES, LONGITUDES), np.nan)
        short[: TIMES - 2] = read["short"]
        columns = {"elevation": np.tile(read["elevation"].ravel(), TIMES), "rain": read["rain"].ravel(), "short": short.ravel(), "wind": read["wind"].ravel()}
        wanted = pd.DataFrame(columns, index)
        of_grid = mount / "tables/time,lat,lon"
        for found in (pd.read_parquet(of_grid / "table.parquet"), pd.read_feather(of_grid / "table.arrow")):
            pd.testing.assert_frame_equal(found, wanted, check_index_type=False, check_column_type=False, check_freq=False)
            assert [level.dtype.kind for level in found.index.levels] == ["M", "f", "f"]
        pd.testing.assert_frame_equal(pd.read_csv(of_grid / "head.csv")[["rain", "wind"]].astype("f4"), wanted[["rain", "wind"]].head(1000).reset_index(drop=True).astype("f4"))
        names = pd.read_parquet(mount / "tables/name,time/table.parquet")
        assert names.index.get_level_values(0).tolist() == ["Oslo"] * TIMES + ["Rome"] * TIMES + ["Oslo"] * TIMES
        assert names["by_name"].tolist() == read["by_name"].ravel().tolist()
        # Coordinates are known before any is computed: who asks for one time reads the row groups that have it.
        footer = pq.ParquetFile(of_grid / "table.parquet").metadata
        bounds = [footer.row_group(0).column(at).statistics for at in range(3)]
        rows = footer.row_group(0).num_rows
        assert all(bounds) and (bounds[0].min, bounds[0].max) == (times[0], times[(rows - 1) // (LATITUDES * LONGITUDES)]), bounds
        mean = duckdb.sql(f"select avg(rain) from '{of_grid}/table.parquet' where lat = {lat[3]} and lon between 10 and 20").fetchall()[0][0]
        assert np.isclose(mean, np.nanmean(read["rain"][:, 3, (lon >= 10) & (lon <= 20)]))
        where = of_grid / f"where/lat:eq:{lat[3]}/time:eq:{times[1]:%Y-%m-%dT%H%%3A%M%%3A%SZ}/columns/wind.npy"
        assert (np.load(where) == read["wind"][1, 3]).all()
        assert (np.load(of_grid / "columns/wind.npy") == read["wind"].ravel()).all()
        assert not (mount / ".hepfs/errors").read_text()
    finally:
        subprocess.run([hepfs, "umount", mount], check=True)
    check_odd(hepfs, folder, options)
    print("5 grids")


if __name__ == "__main__":
    main(*sys.argv[1:])
