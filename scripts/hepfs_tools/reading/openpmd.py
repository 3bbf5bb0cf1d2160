#!/usr/bin/env python3
"""Particles of openPMD whose group is the only species (extension SpeciesType), laid out as Bmad writes them.

    openpmd.py write FOLDER          FOLDER/beam.h5
    openpmd.py check FOLDER MOUNT    its particles are one table, in SI units that the columns tell
"""

import json
import sys
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

COUNT, UNIT = 6, 5.344286e-28
VALUES = np.arange(COUNT) * 1.5


def write(folder):
    """The file."""
    momentum = {"unitSI": [UNIT], "unitDimension": [1.0, 1, -1, 0, 0, 0, 0], "unitSymbol": np.bytes_("eV/c")}
    length = {"unitSI": [1.0], "unitDimension": [1.0, 0, 0, 0, 0, 0, 0]}
    with h5py.File(Path(folder) / "beam.h5", "w") as file:
        file.attrs.update({"openPMD": np.bytes_("2.0.0"), "basePath": np.bytes_("/data/%T/"), "particlesPath": np.bytes_("particles/")})
        species = file.create_group("data/1/particles")
        species.attrs["speciesType"] = np.bytes_("electron")
        for record, attributes in {"momentum": momentum, "position": length}.items():
            for component in "xy":
                species[f"{record}/{component}"] = VALUES
                species[f"{record}/{component}"].attrs.update(attributes)
        species["time"] = VALUES
        constant = species.create_group("weight")
        constant.attrs.update({"value": [2.5], "shape": [COUNT], "unitSI": [1.0], "unitDimension": np.zeros(7)})
        # Another iteration has species of its own.
        file["data/2/particles/electrons/position/x"] = VALUES
        file["data/2/particles/electrons/position"].attrs.update(unitDimension=[1.0, 0, 0, 0, 0, 0, 0])


def check(folder, mount):
    """Both iterations."""
    del folder
    data = Path(mount) / "beam.h5/data"
    found = pd.read_parquet(data / "1/particles/table.parquet")
    scaled = VALUES * UNIT
    wanted = {"momentum_x": scaled, "momentum_y": scaled, "position_x": VALUES, "position_y": VALUES, "time": VALUES, "weight": np.full(COUNT, 2.5)}
    pd.testing.assert_frame_equal(found, pd.DataFrame(wanted), check_exact=True)
    for record in ("momentum", "position"):
        assert not (data / f"1/particles/{record}/table.parquet").exists(), record
    columns = json.loads((data / "1/particles/metadata.json").read_text())["columns"]
    units = {column["name"]: column.get("units") for column in columns}
    assert units == {"momentum_x": "m kg s^-1", "momentum_y": "m kg s^-1", "position_x": "m", "position_y": "m", "time": None, "weight": None}, units
    (column,) = json.loads((data / "2/particles/electrons/metadata.json").read_text())["columns"]
    assert column["units"] == "m"
    print("2 species")


if __name__ == "__main__":
    {"write": write, "check": check}[sys.argv[1]](*sys.argv[2:])
