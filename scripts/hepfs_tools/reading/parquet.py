"""Readers of Parquet and Arrow: each takes a path and names of columns and gives an Arrow table."""

from .reader import reader

# ---------------------------------------------------------------------------------------------------------------------
# Parquet


@reader("pyarrow", "parquet", module="pyarrow")
def pyarrow_table(path, columns):
    import pyarrow.parquet as pq

    return pq.read_table(path, columns=columns)


@reader("pyarrow in batches", "parquet", module="pyarrow")
def pyarrow_batches(path, columns):
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path, buffer_size=8192, pre_buffer=False)
    batches = list(file.iter_batches(batch_size=7777, columns=columns))
    return pa.Table.from_batches(batches) if batches else file.read(columns=columns)


@reader("pyarrow dataset", "parquet", module="pyarrow")
def pyarrow_dataset(path, columns):
    import pyarrow.dataset as ds

    return ds.dataset(path, format="parquet").to_table(columns=columns)


@reader("DuckDB", "parquet", module="duckdb")
def duckdb_parquet(path, columns):
    return duckdb_query(f"select {quoted(columns)} from read_parquet('{path}')")


def duckdb_query(query):
    """A query's result."""
    import duckdb

    with duckdb.connect() as connection:
        return connection.sql(query).to_arrow_table()


def quoted(columns):
    """Names in SQL."""
    return ", ".join(f'"{name}"' for name in columns)


@reader("polars", "parquet", module="polars")
def polars_parquet(path, columns):
    import polars as pl

    return pl.scan_parquet(path).select(columns).collect(engine="streaming").to_arrow()


@reader("polars in memory", "parquet", module="polars")
def polars_parquet_in_memory(path, columns):
    import polars as pl

    return pl.scan_parquet(path).select(columns).collect(engine="in-memory").to_arrow()


@reader("pandas", "parquet", module="pandas")
def pandas_parquet(path, columns):
    import pandas as pd
    import pyarrow as pa

    frame = pd.read_parquet(path, columns=columns, engine="pyarrow", dtype_backend="pyarrow")
    return pa.Table.from_pandas(frame, preserve_index=False)


STRUCTS = "reads the members of a compound as columns, but not by the compound's name"
DEEP = "gives nothing for lists of lists"
TEXTS_OF_LISTS = "gives nothing for lists of texts without a dictionary"


@reader(
    "fastparquet",
    "parquet",
    module="fastparquet",
    nan_is_missing=True,
    limits={
        "complex": STRUCTS,
        "compounds": STRUCTS,
        "lists of lists": DEEP,
        "matrix_be": DEEP,
        "wide_array_null": DEEP,
        "array_text": TEXTS_OF_LISTS,
        "list_enum32": TEXTS_OF_LISTS,
        "list_text": TEXTS_OF_LISTS,
        "list_text_null": TEXTS_OF_LISTS,
        "sequence_text": TEXTS_OF_LISTS,
        "bytes": "drops the zeros at the end of binary values, which NumPy takes for padding",
    },
)
def fastparquet_parquet(path, columns):
    import fastparquet
    import pyarrow as pa

    frame = fastparquet.ParquetFile(str(path)).to_pandas(columns=columns, index=False)
    return pa.Table.from_pandas(frame, preserve_index=False)


@reader("DataFusion", "parquet", module="datafusion")
def datafusion_parquet(path, columns):
    import datafusion

    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    context.register_parquet("t", str(path))
    return context.sql(f"select {quoted(columns)} from t").to_arrow_table()


NO_MISSING_LISTS = "has no missing lists and compounds, only empty ones"


@reader(
    "ClickHouse",
    "parquet",
    module="chdb",
    limits={
        name: NO_MISSING_LISTS
        for name in (
            "compound_null",
            "array_null",
            "wide_array_null",
            "list_null",
            "list_of_null",
            "list_text_null",
            "list_list_null",
        )
    },
)
def clickhouse_parquet(path, columns):
    import chdb
    import pyarrow as pa

    settings = "output_format_arrow_string_as_string=0, max_threads=1, input_format_parquet_preserve_order=1"
    result = chdb.query(f"select {quoted(columns)} from file('{path}', 'Parquet') settings {settings}", "Arrow")
    return pa.ipc.open_file(pa.py_buffer(result.bytes())).read_all()


def spark(vectorized):
    """The session; its reader by columns or by rows."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "6g",
        "spark.driver.maxResultSize": "4g",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "OFF",
        "spark.sql.files.maxPartitionBytes": "100g",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.conf.set("spark.sql.parquet.enableVectorizedReader", str(vectorized).lower())
    return session


@reader("Spark", "parquet", module="pyspark", program="java")
def spark_parquet(path, columns):
    return spark(True).read.parquet(str(path)).select(*columns).toArrow()


@reader("Spark by rows", "parquet", module="pyspark", program="java")
def spark_rows_parquet(path, columns):
    return spark(False).read.parquet(str(path)).select(*columns).toArrow()


# ---------------------------------------------------------------------------------------------------------------------
# Arrow


@reader("pyarrow memory map", "arrow", module="pyarrow")
def pyarrow_arrow(path, columns):
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
    table.validate(full=True)
    return table.select(columns)


@reader("pyarrow dataset of Arrow", "arrow", module="pyarrow")
def pyarrow_arrow_dataset(path, columns):
    import pyarrow.dataset as ds

    return ds.dataset(path, format="ipc").to_table(columns=columns)


@reader(
    "pyarrow filter of Arrow",
    "arrow",
    module="pyarrow",
    limits={
        name: "filters no string views"
        for name in (
            "enum32",
            "enum32_be_null",
            "enum32_unnamed",
            "enum32_unnamed_null",
            "fixed",
            "fixed_null",
            "fixed_empty_null",
            "fixed_invalid",
            "one_byte",
            "wide_fixed",
            # Of tables that pandas and PyTables wrote.
            "text",
            "wide",
            # A string of fixed length is among the members.
            "compound",
            "compound_null",
        )
    },
)
def pyarrow_arrow_filter(path, columns):
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all().select(columns)
    return table.filter(pa.array([True] * table.num_rows, pa.bool_()))


@reader("polars Arrow", "arrow", module="polars")
def polars_arrow(path, columns):
    import polars as pl

    return pl.scan_ipc(path).select(columns).collect().to_arrow()


@reader("pandas Arrow", "arrow", module="pandas")
def pandas_arrow(path, columns):
    import pandas as pd
    import pyarrow as pa

    frame = pd.read_feather(path, columns=columns, dtype_backend="pyarrow")
    return pa.Table.from_pandas(frame, preserve_index=False)
