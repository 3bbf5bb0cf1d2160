"""Reads files that `hepfs serve` serves, and compares each with the mount of the same source.

    python -m hepfs_tools.reading.served MOUNT URL SECRET READER...

READER is a name of the tables below; without one, all of `READERS` read. Each reads the table that the mount has at
`my_table`, by the software's own way over a network. Exit status 1, with a line for each, where anything differs.
"""

import json
import os
import subprocess
import sys
import traceback
import urllib.parse
import urllib.request
from pathlib import Path

BUCKET = "hepfs"
KEY_ID = "hepfs"
TABLE = "my_table/table.parquet"
CSV = "my_table/table.csv"


class Served:
    """A server, and the mount that it is compared with; `pages` are of the origin that the server allows."""

    def __init__(self, mount, url, secret, pages=None):
        self.mount, self.url, self.secret, self.pages = Path(mount), url, secret, pages
        self.endpoint = url.split("://")[1]
        self.with_key = f"{url}/~{secret}"

    def native(self):
        """The table as pyarrow reads it from the mount."""
        import pyarrow.parquet

        return pyarrow.parquet.read_table(self.mount / TABLE)

    def pyarrow_store(self):
        """The file system of pyarrow over S3."""
        import pyarrow.fs

        return pyarrow.fs.S3FileSystem(
            access_key=KEY_ID,
            secret_key=self.secret,
            endpoint_override=self.endpoint,
            scheme="http",
            region="us-east-1",
        )

    def is_same(self, table):
        """Compares a table of pyarrow."""
        expected = self.native()
        assert table.cast(expected.schema).equals(expected), f"{table} instead of {expected}"

    def are_energies_over_100(self, table):
        """Compares a table of one column, whose rows an engine has chosen."""
        import pyarrow.compute

        energies = self.native().select(["energy"])
        expected = energies.filter(pyarrow.compute.greater(energies["energy"], 100))
        assert 0 < expected.num_rows < energies.num_rows, energies
        assert table.cast(expected.schema).equals(expected), f"{table} instead of {expected}"

    def is_same_size(self, name, size):
        """Compares the size in a list. Pages have the address of the server or the mount in them."""
        if name.endswith(".html"):
            return
        actual = os.path.getsize(self.mount / name)
        assert size == actual, f"{name}: {size} bytes instead of {actual}"

    def are_names(self, names):
        """Checks a list of all keys: in order, without selections, each a file, with the table among them."""
        assert TABLE in names, names
        assert names == sorted(names, key=str.encode), "keys out of order"
        assert not [name for name in names if "/where/" in name], "selections are listed"
        missing = [name for name in names if not (self.mount / name).is_file()]
        assert not missing, missing


def pyarrow_s3(served):
    import pyarrow.dataset
    import pyarrow.fs
    import pyarrow.parquet

    store = served.pyarrow_store()
    served.is_same(pyarrow.parquet.read_table(f"{BUCKET}/{TABLE}", filesystem=store))
    rows = pyarrow.dataset.dataset(f"{BUCKET}/{TABLE}", filesystem=store).count_rows()
    assert rows == served.native().num_rows
    found = store.get_file_info(pyarrow.fs.FileSelector(BUCKET, recursive=True))
    files = [one for one in found if one.is_file]
    served.are_names(sorted((one.path.split("/", 1)[1] for one in files), key=str.encode))
    for one in files:
        served.is_same_size(one.path.split("/", 1)[1], one.size)
    # Selections answer by name.
    chosen = "my_table/where/energy:gt:5/table.csv"
    with store.open_input_file(f"{BUCKET}/{chosen}") as file:
        assert file.read() == (served.mount / chosen).read_bytes()


def polars_s3(served):
    import polars

    options = {
        "aws_access_key_id": KEY_ID,
        "aws_secret_access_key": served.secret,
        "aws_endpoint_url": served.url,
        "aws_region": "us-east-1",
        "aws_allow_http": "true",
    }
    expected = polars.read_parquet(served.mount / TABLE)
    for name in (TABLE, "my_table/*.parquet"):
        frame = polars.scan_parquet(f"s3://{BUCKET}/{name}", storage_options=options).collect()
        assert frame.equals(expected), name


def pandas_http(served):
    import pandas

    expected = pandas.read_csv(served.mount / CSV)
    assert pandas.read_csv(f"{served.with_key}/{CSV}").equals(expected)
    headers = {"Authorization": f"Bearer {served.secret}"}
    assert pandas.read_csv(f"{served.url}/{CSV}", storage_options=headers).equals(expected)


def pandas_s3fs(served):
    import dask.dataframe
    import pandas
    import s3fs

    options = {
        "key": KEY_ID,
        "secret": served.secret,
        "client_kwargs": {"endpoint_url": served.url, "region_name": "us-east-1"},
    }
    expected = pandas.read_parquet(served.mount / TABLE)
    assert pandas.read_parquet(f"s3://{BUCKET}/{TABLE}", storage_options=options).equals(expected)
    frame = dask.dataframe.read_parquet(f"s3://{BUCKET}/{TABLE}", storage_options=options, columns=["energy"])
    assert frame.compute()["energy"].equals(expected["energy"])
    served.are_names([name.split("/", 1)[1] for name in s3fs.S3FileSystem(**options).find(BUCKET)])


def fsspec_http(served):
    import fsspec

    store = fsspec.filesystem("http")
    names = {name.rsplit(f"{served.secret}/", 1)[1] for name in store.ls(f"{served.with_key}/my_table/", detail=False)}
    expected = {
        f"my_table/{entry.name}" + ("/" if entry.is_dir() else "") for entry in (served.mount / "my_table").iterdir()
    }
    assert names == expected, names ^ expected
    with store.open(f"{served.with_key}/{TABLE}") as file:
        file.seek(-8, 2)
        assert file.read() == (served.mount / TABLE).read_bytes()[-8:]


def fsspec_webhdfs(served):
    from fsspec.implementations.webhdfs import WebHDFS

    host, port = served.endpoint.split(":")
    store = WebHDFS(host, int(port))
    root = f"/~{served.secret}"
    info = store.info(f"{root}/{TABLE}")
    served.is_same_size(TABLE, info["size"])
    listed = {one["name"].rsplit("/", 1)[1]: one for one in store.ls(f"{root}/my_table", detail=True)}
    assert listed["columns"]["type"] == "directory" and listed["table.parquet"]["type"] == "file", listed
    assert "where" not in listed
    with store.open(f"{root}/{TABLE}") as file:
        assert file.read() == (served.mount / TABLE).read_bytes()


def boto(served):
    import boto3
    import botocore.config

    config = botocore.config.Config(s3={"addressing_style": "path"}, signature_version="s3v4")
    store = boto3.client(
        "s3",
        endpoint_url=served.url,
        aws_access_key_id=KEY_ID,
        aws_secret_access_key=served.secret,
        region_name="us-east-1",
        config=config,
    )
    assert [bucket["Name"] for bucket in store.list_buckets()["Buckets"]] == [BUCKET]
    store.head_bucket(Bucket=BUCKET)
    store.get_bucket_location(Bucket=BUCKET)
    every = []
    for version in ("list_objects", "list_objects_v2"):
        pages = store.get_paginator(version).paginate(Bucket=BUCKET, PaginationConfig={"PageSize": 7})
        every.append([one["Key"] for page in pages for one in page.get("Contents", [])])
    assert every[0] == every[1], every
    served.are_names(every[0])
    pages = store.get_paginator("list_objects_v2").paginate(
        Bucket=BUCKET, Delimiter="/", Prefix="my_table/", PaginationConfig={"PageSize": 2}
    )
    groups = [one["Prefix"] for page in pages for one in page.get("CommonPrefixes", [])]
    assert groups == ["my_table/columns/"], groups
    after = store.list_objects_v2(Bucket=BUCKET, StartAfter=TABLE)
    assert [one["Key"] for one in after.get("Contents", [])] == [name for name in every[0] if name > TABLE]
    tag = store.head_object(Bucket=BUCKET, Key=TABLE)["ETag"]
    body = store.get_object(Bucket=BUCKET, Key=TABLE, IfMatch=tag, Range="bytes=-8")["Body"].read()
    assert body == (served.mount / TABLE).read_bytes()[-8:]
    for call, status in (
        (lambda: store.head_object(Bucket=BUCKET, Key="my_table"), 404),
        (lambda: store.get_object(Bucket=BUCKET, Key=TABLE, IfMatch='"other"'), 412),
        (lambda: store.put_object(Bucket=BUCKET, Key="a", Body=b"a"), 405),
        (lambda: store.delete_object(Bucket=BUCKET, Key=TABLE), 405),
        (lambda: store.head_bucket(Bucket="other"), 404),
    ):
        try:
            call()
        except botocore.exceptions.ClientError as error:
            assert error.response["ResponseMetadata"]["HTTPStatusCode"] == status, error
        else:
            raise AssertionError(f"no {status}")
    key = "my_table/where/energy:gt:5/table.csv"
    address = store.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": key}, ExpiresIn=60)
    with urllib.request.urlopen(address) as answer:
        assert answer.read() == (served.mount / key).read_bytes()


def duckdb_over(endpoint, secret):
    """A connection of DuckDB that knows a server of S3, by its extension for networks."""
    import duckdb
    import duckdb_extension_httpfs

    folder = Path(duckdb_extension_httpfs.__file__).parent
    extension = next(folder.rglob("httpfs.duckdb_extension"))
    base = duckdb.connect(config={"allow_unsigned_extensions": True})
    base.execute(f"load '{extension}'")
    base.execute(
        f"create secret (type s3, key_id '{KEY_ID}', secret '{secret}', endpoint '{endpoint}', "
        "url_style 'path', use_ssl false, region 'us-east-1')"
    )
    return base


def duckdb_httpfs(served):
    base = duckdb_over(served.endpoint, served.secret)
    expected = base.execute(f"select * from '{served.mount / TABLE}'").fetchall()
    for name in (f"s3://{BUCKET}/{TABLE}", f"s3://{BUCKET}/*/table.parquet", f"{served.with_key}/{TABLE}"):
        assert base.execute(f"select * from '{name}'").fetchall() == expected, name
    csv = base.execute(f"select * from '{served.mount / CSV}'").fetchall()
    assert base.execute(f"select * from 's3://{BUCKET}/{CSV}'").fetchall() == csv
    chosen = "my_table/where/energy:gt:5/table.csv"
    count = base.execute(f"select count(*) from read_csv('{served.mount / chosen}')").fetchall()
    assert base.execute(f"select count(*) from read_csv('s3://{BUCKET}/{chosen}')").fetchall() == count


def duckdb_wasm(served):
    import duckdb
    import pyarrow.ipc

    assert served.pages, "a page has an origin that the server allows: `cargo xtask check serve duckdb-wasm`"

    def ask(package, name, *host):
        file, requests = served.pages.ask(package, f"select * from '{served.with_key}/{name}'", *host)
        of_file = [one for one in requests if one["url"].endswith(name) and one["method"] == "GET"]
        return pyarrow.ipc.open_file(file).read_all(), of_file

    table, requests = ask("duckdb-wasm-with-parquet", TABLE)
    served.is_same(table)
    assert requests and all(one["range"] and one["status"] == 206 for one in requests), requests
    table, _ = ask("duckdb-wasm-latest", CSV)
    expected = duckdb.sql(f"select * from '{served.mount / CSV}'").fetch_arrow_table()
    assert table.cast(expected.schema).equals(expected), f"{table} instead of {expected}"
    # By another name, the same pages are of another origin.
    try:
        ask("duckdb-wasm-with-parquet", TABLE, "localhost")
    except RuntimeError as error:
        assert "NetworkError" in str(error), error
    else:
        raise AssertionError("a page of another origin reads")


def aws_cli(served):
    environment = dict(
        os.environ, AWS_ACCESS_KEY_ID=KEY_ID, AWS_SECRET_ACCESS_KEY=served.secret, AWS_DEFAULT_REGION="us-east-1"
    )
    program = [str(Path(sys.executable).parent / "aws"), "--endpoint-url", served.url, "s3"]
    listed = subprocess.run(
        [*program, "ls", "--recursive", f"s3://{BUCKET}"], env=environment, check=True, capture_output=True, text=True
    ).stdout
    served.are_names([line.split(maxsplit=3)[3] for line in listed.splitlines()])
    copied = subprocess.run(
        [*program, "cp", f"s3://{BUCKET}/{TABLE}", "-"], env=environment, check=True, capture_output=True
    ).stdout
    assert copied == (served.mount / TABLE).read_bytes()


def rclone(served):
    options = ["--s3-provider", "Other", "--s3-endpoint", served.url, "--s3-access-key-id", KEY_ID]
    program = [str(Path(sys.executable).parent / "rclone"), *options, "--s3-secret-access-key", served.secret]
    listed = subprocess.run([*program, "lsjson", "-R", f":s3:{BUCKET}"], check=True, capture_output=True).stdout
    files = [one for one in json.loads(listed) if not one["IsDir"]]
    served.are_names(sorted((one["Path"] for one in files), key=str.encode))
    for one in files:
        served.is_same_size(one["Path"], one["Size"])
    got = subprocess.run([*program, "cat", f":s3:{BUCKET}/{TABLE}"], check=True, capture_output=True).stdout
    assert got == (served.mount / TABLE).read_bytes()


def spark_webhdfs(served):
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    frame = spark.read.parquet(f"webhdfs://{served.endpoint}/~{served.secret}/{TABLE}")
    expected = served.native()
    assert frame.count() == expected.num_rows
    total = frame.selectExpr("sum(energy)").collect()[0][0]
    values = [value for value in expected["energy"].to_pylist() if value is not None]
    assert abs(total - sum(values)) <= 1e-9 * abs(total), (total, sum(values))


def daft_s3(served):
    import daft

    store = daft.io.S3Config(
        endpoint_url=served.url,
        key_id=KEY_ID,
        access_key=served.secret,
        region_name="us-east-1",
        use_ssl=False,
        force_virtual_addressing=False,
    )
    config = daft.io.IOConfig(s3=store)
    served.is_same(daft.read_parquet(os.fspath(served.mount / TABLE)).to_arrow())
    for name in (TABLE, "my_table/*.parquet"):
        served.is_same(daft.read_parquet(f"s3://{BUCKET}/{name}", io_config=config).to_arrow())
    chosen = daft.read_parquet(f"s3://{BUCKET}/{TABLE}", io_config=config).where(daft.col("energy") > 100)
    served.are_energies_over_100(chosen.select("energy").to_arrow())


def ray_s3(served):
    import pyarrow

    from hepfs_tools.reading import local_ray

    with local_ray.started() as ray:
        from ray.data.expressions import col

        for place, options in (
            (os.fspath(served.mount / TABLE), {}),
            (f"{BUCKET}/{TABLE}", {"filesystem": served.pyarrow_store()}),
        ):
            table = ray.data.read_parquet(place, **options)
            served.is_same(pyarrow.concat_tables(local_ray.parts(table)))
            chosen = local_ray.parts(table.filter(expr=col("energy") > 100).select_columns(["energy"]))
            served.are_energies_over_100(pyarrow.concat_tables(chosen))


READERS = {
    "pyarrow S3": pyarrow_s3,
    "polars S3": polars_s3,
    "pandas HTTP": pandas_http,
    "s3fs": pandas_s3fs,
    "fsspec HTTP": fsspec_http,
    "fsspec WebHDFS": fsspec_webhdfs,
    "boto3": boto,
    "DuckDB": duckdb_httpfs,
    "duckdb-wasm": duckdb_wasm,
    "aws": aws_cli,
    "rclone": rclone,
    "Spark WebHDFS": spark_webhdfs,
}
# Those that want the extra `distributed`.
DISTRIBUTED = {"daft": daft_s3, "ray": ray_s3}


def main(mount, url, secret, *names, pages=None):
    served = Served(mount, url, secret, pages)
    wrong = 0
    for name in names or READERS:
        try:
            (READERS | DISTRIBUTED)[name](served)
        except Exception:
            wrong += 1
            print(f"{name}: {traceback.format_exc()}")
        else:
            print(f"{name}: as from the mount")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
