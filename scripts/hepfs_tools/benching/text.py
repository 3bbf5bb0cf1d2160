"""A column as text, beside pandas and pyarrow."""

import h5py

from hepfs_tools.benching.files import LAYOUTS, numbers, warm, write_column
from hepfs_tools.benching.measure import comparison, pairs, progress, seconds


def bench(programs, folder, arguments):
    """`cat columns/x.csv` of int64 beside pandas and pyarrow, from HDF5 to bytes each."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.csv

    progress("csv")
    table = comparison()
    path = folder / "csv.h5"
    write_column(path, LAYOUTS["shuffle, zstd 3"], numbers("int64", arguments.rows))
    warm(path)

    def ours():
        return programs.read_mounted(path, "t/columns/x.csv").seconds

    def by_pandas():
        # A tenth of the rows, times ten: pandas takes minutes for all.
        rows = max(arguments.rows // 10, 1)

        def work():
            with h5py.File(path) as file:
                pd.DataFrame({"x": file["t/x"][:rows]}).to_csv("/dev/null", index=False)

        return seconds(work) * arguments.rows / rows

    def by_pyarrow():
        def work():
            with h5py.File(path) as file:
                pyarrow.csv.write_csv(pa.table({"x": file["t/x"][:]}), "/dev/null")

        return seconds(work)

    for name, peer, wanted in (("pandas to_csv", by_pandas, "≥ 3"), ("pyarrow write_csv", by_pyarrow, "≥ 1")):
        mine, theirs, ratio = pairs(arguments.repeats, ours, peer)
        million = arguments.rows / 1e6
        what = "`cat x.csv`, int64, million rows/s"
        table.row(what, f"{million / mine:.1f}", f"{name} {million / theirs:.1f}", f"{ratio:.2f}", wanted)
    path.unlink()
    table.end()
