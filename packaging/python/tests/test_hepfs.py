"""The module against a real program, with what h5py reads as the expected values.

`scripts/check/python-module` runs this; it wants `hepfs` on PATH, h5py, NumPy, pandas, polars and DuckDB.
"""

import gc
import http.server
import io
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
import unittest.mock
import warnings
from pathlib import Path

import duckdb
import h5py
import numpy as np
import pandas as pd
import polars as pl

import hepfs

DATA = Path(__file__).parents[3] / "tests" / "data"
SEED = DATA / "seed_11_1.h5"
TABLE = "my_table"


def stored(name):
    """A column as h5py reads it."""
    with h5py.File(SEED) as file:
        return file[TABLE][name][:]


def mounts():
    """The mount points of hepfs."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return {line.split()[4] for line in lines if " fuse.hepfs " in line}


def daemons(path):
    """The processes that serve a mount point, or one below a folder."""
    found = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"\0mount\0" in (said := line.read_bytes()) and os.fsencode(path) in said.split(b"\0")[-2]:
                found.append(int(line.parent.name))
        except OSError:
            pass
    return found


def until(holds):
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hepfs test '\" ")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        # All mount points of this test, those of other processes of it too, are below.
        (self.folder / "tmp").mkdir()
        self.addCleanup(setattr, tempfile, "tempdir", tempfile.tempdir)
        tempfile.tempdir = str(self.folder / "tmp")
        os.environ.update(TMPDIR=tempfile.tempdir, XDG_CACHE_HOME=str(self.folder), XDG_STATE_HOME=str(self.folder))
        self.addCleanup(self.is_clean)

    def is_clean(self):
        """Nothing is left: no mount, no folder of one, and in a moment no process."""
        left = [path for path in mounts() if path.startswith(str(self.folder).replace(" ", "\\040"))]
        for path in left:
            subprocess.run(["hepfs", "umount", "--lazy", path.replace("\\040", " ")], check=False)
        self.assertEqual(left, [])
        self.assertEqual(os.listdir(tempfile.tempdir), [])
        until(lambda: not daemons(self.folder))

    def odd(self):
        """A copy under a name with spaces, quotes, a colon."""
        path = self.folder / 'it\'s run "7": a.h5'
        shutil.copy(SEED, path)
        return path

    def python(self, code, **options):
        """Starts another Python."""
        command = [sys.executable, "-c", textwrap.dedent(code), str(SEED)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True, **options)


class Mount(Case):
    def test_readers_find_what_is_stored(self):
        energy, identifiers = stored("energy"), stored("row_id")
        with hepfs.mount(self.odd()) as path:
            self.assertIsInstance(path, Path)
            parquet = path / TABLE / "table.parquet"
            of_pandas = pd.read_parquet(parquet)
            of_polars = pl.read_parquet(parquet)
            quoted = str(parquet).replace("'", "''")
            of_duckdb = duckdb.sql(f"select row_id, energy from '{quoted}'").fetchnumpy()
            npy = np.load(path / TABLE / "columns" / "energy.npy")
        np.testing.assert_array_equal(of_pandas.energy, energy)
        np.testing.assert_array_equal(of_pandas.index, identifiers)
        np.testing.assert_array_equal(of_polars["energy"], energy)
        np.testing.assert_array_equal(of_polars["row_id"], identifiers)
        np.testing.assert_array_equal(of_duckdb["energy"], energy)
        np.testing.assert_array_equal(of_duckdb["row_id"], identifiers)
        np.testing.assert_array_equal(npy, energy)

    def test_options_and_several_sources(self):
        at = self.folder / "new"
        with hepfs.mount(SEED, self.odd(), at=at, formats=["parquet", "csv"], cache_size="64M", grids=True) as path:
            self.assertEqual(path, at)
            self.assertEqual(len(pd.read_parquet(path / ".datasets" / TABLE)), 1000)
            names = {file.suffix for file in (path / SEED.name / TABLE).glob("table.*")}
            self.assertEqual(names, {".parquet", ".csv"})
        self.assertFalse(at.exists())

    def test_a_folder_that_was_there_stays(self):
        at = self.folder / "mnt"
        at.mkdir()
        there = os.getcwd()
        os.chdir(self.folder)
        try:
            with hepfs.mount(SEED, at="mnt", csv_null="-1", allow_other=False, log_file=None) as path:
                os.chdir("/")
                self.assertTrue((path / TABLE).is_dir())
        finally:
            os.chdir(there)
        self.assertEqual(os.listdir(at), [])
        self.assertNotIn(str(at), mounts())

    def test_an_exception_unmounts(self):
        with self.assertRaises(ZeroDivisionError), hepfs.mount(SEED) as path:
            self.assertTrue((path / TABLE).is_dir())
            1 / 0  # noqa: B018
        self.assertFalse(path.exists())
        until(lambda: not daemons(path))

    def test_close_ends_it_once(self):
        mounted = hepfs.mount(SEED)
        mounted.close()
        self.assertFalse(mounted.path.exists())
        mounted.close()

    def test_the_last_reference_unmounts(self):
        path = hepfs.mount(SEED).path
        gc.collect()
        self.assertFalse(path.exists())

    def test_python_that_ends_unmounts(self):
        code = """
            import hepfs, sys
            mounted = hepfs.mount(sys.argv[1])
            print(len(list(mounted.path.iterdir())))
        """
        out, said = self.python(code).communicate(timeout=30)
        self.assertGreater(int(out), 0, said)
        self.assertEqual(said, "")

    def test_a_fork_leaves_the_mount_alone(self):
        code = """
            import hepfs, os, sys
            with hepfs.mount(sys.argv[1]) as path:
                if os.fork() == 0:
                    sys.exit()
                os.wait()
                print((path / "my_table").is_dir())
        """
        out, said = self.python(code).communicate(timeout=30)
        self.assertEqual((out, said), ("True\n", ""))

    def test_interrupts_unmount(self):
        code = """
            import hepfs, sys, time
            try:
                with hepfs.mount(sys.argv[1]):
                    print("mounted", flush=True)
                    time.sleep(60)
            except KeyboardInterrupt:
                print("interrupted")
        """
        # At the start, while it mounts, within the block, twice: by a terminal, which tells the whole group, or by a
        # notebook, which tells Python alone.
        for tell in (os.killpg, os.kill):
            for delay, times in ((0.1, 1), (0.15, 1), (0.2, 1), (0.3, 2), (None, 1), (None, 2)):
                process = self.python(code)
                process.stdout.readline() if delay is None else time.sleep(delay)
                for _ in range(times):
                    tell(process.pid, signal.SIGINT)
                    time.sleep(0.01)
                process.communicate(timeout=30)
                self.is_clean()

    def test_open_files_outlive_a_mount(self):
        with self.assertWarnsRegex(ResourceWarning, "stays readable") as caught, hepfs.mount(SEED) as path:
            mapped = np.load(path / TABLE / "columns" / "energy.npy", mmap_mode="r")
        self.assertEqual(caught.filename, __file__)
        self.assertFalse(path.exists())
        np.testing.assert_array_equal(mapped, stored("energy"))
        self.assertTrue(daemons(path))
        del mapped
        gc.collect()
        until(lambda: not daemons(path))

    def test_a_view_of_duckdb_keeps_no_mount(self):
        connection = duckdb.connect()
        self.addCleanup(connection.close)
        with warnings.catch_warnings(), hepfs.mount(SEED, at=self.folder / "mnt") as path:
            warnings.simplefilter("error")
            parquet = str(path / TABLE / "table.parquet").replace("'", "''")
            connection.execute(f"create view rows as from '{parquet}'")
            self.assertEqual(connection.execute("select count(*) from rows").fetchall(), [(500,)])

    def test_who_unmounts_first_is_no_matter(self):
        with hepfs.mount(SEED) as path:
            subprocess.run(["hepfs", "umount", path], check=True)
        with hepfs.mount(SEED) as path:
            os.kill(daemons(path)[0], signal.SIGKILL)

    def test_a_mount_that_answers_stays_and_a_killed_one_makes_way(self):
        with hepfs.mount(SEED) as path:
            with self.assertRaisesRegex(hepfs.Error, "mounted here already"):
                hepfs.mount(SEED, at=path)
            self.assertTrue((path / TABLE).is_dir())
            os.kill(daemons(path)[0], signal.SIGKILL)
            until(lambda: not daemons(path))
            with self.assertWarnsRegex(UserWarning, "unmounted a hepfs that was killed"), hepfs.mount(SEED, at=path):
                self.assertTrue((path / TABLE).is_dir())

    def test_threads_mount_side_by_side(self):
        found = []

        def read():
            with hepfs.mount(SEED) as path:
                found.append(len(pl.read_parquet(path / TABLE / "table.parquet")))

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [500] * 4)

    def test_remarks_are_warnings(self):
        with (
            self.assertWarnsRegex(UserWarning, "^/.*missing.h5") as caught,
            hepfs.mount(SEED, self.folder / "missing.h5"),
        ):
            pass
        self.assertEqual(caught.filename, __file__)

    def test_without_fuse_the_error_says_what_else_there_is(self):
        code = """
            import hepfs, sys
            try:
                hepfs.mount(sys.argv[1], "it's.h5")
            except hepfs.MountError as error:
                print(error.exit_code, error)
            print(len(hepfs.cat(sys.argv[1], "my_table/columns/energy.npy")))
        """
        # In there, /dev/fuse is another device.
        hidden = [
            "unshare",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            'mount --bind /dev/null /dev/fuse && exec "$@"',
            "sh",
        ]
        if subprocess.run([*hidden, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no namespace can be made here")
        command = [*hidden, sys.executable, "-W", "ignore", "-c", textwrap.dedent(code), str(SEED)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        message, size = done.stdout.splitlines()
        self.assertRegex(message, "^1 cannot mount on .*needs no mount")
        self.assertIn(f"`hepfs run {SEED} 'it'\"'\"'s.h5' -- python ...`", message)
        self.assertGreater(int(size), 500 * 4)

    def test_other_failures_are_none_of_the_mount(self):
        with self.assertRaisesRegex(hepfs.Error, "No such file") as caught:
            hepfs.mount(self.folder / "missing.h5")
        self.assertNotIsInstance(caught.exception, hepfs.MountError)
        self.assertEqual(caught.exception.exit_code, 1)
        with self.assertRaisesRegex(hepfs.Error, "--no-such-option") as caught:
            hepfs.mount(SEED, no_such_option=7)
        self.assertEqual(caught.exception.exit_code, 2)
        copied = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((str(copied), copied.exit_code), (str(caught.exception), 2))


class Commands(Case):
    def test_export(self):
        energy = stored("energy")
        to = self.folder / "part's.parquet"
        self.assertEqual(hepfs.export(self.odd(), TABLE, "energy > 5", to=to), to)
        np.testing.assert_array_equal(pd.read_parquet(to).energy, energy[energy > 5])
        self.assertEqual(hepfs.export(str(SEED), TABLE, None, str(to)), to)
        np.testing.assert_array_equal(pl.read_parquet(to)["energy"], energy)
        hepfs.export(SEED, TABLE, to=to.with_suffix(".csv"), columns=["row_id", "energy"], limit=2, no_header=True)
        expected = "".join(f"{row},{value!s}\n" for row, value in zip(stored("row_id")[:2], energy[:2]))
        self.assertEqual(to.with_suffix(".csv").read_text().replace("\r", ""), expected)

    def test_export_of_several_sources(self):
        sources = [self.odd(), SEED]
        to = hepfs.export(sources, TABLE, "energy > 5", to=self.folder / "all.parquet")
        rows = pd.read_parquet(to)
        self.assertEqual(set(rows.file), {source.name for source in sources})
        self.assertEqual(len(rows), 2 * (stored("energy") > 5).sum())

    def test_an_export_that_fails_leaves_nothing(self):
        with self.assertRaisesRegex(hepfs.Error, "enrgy.*energy") as caught:
            hepfs.export(SEED, TABLE, "enrgy > 5", to=self.folder / "part.parquet")
        self.assertEqual(caught.exception.exit_code, 1)
        self.assertFalse((self.folder / "part.parquet").exists())
        with self.assertRaises(TypeError):
            hepfs.export(SEED, TABLE)

    def test_query(self):
        energy = stored("energy")
        rows = pl.read_ipc(io.BytesIO(hepfs.query(SEED, TABLE, "order by energy desc limit 3")))
        np.testing.assert_array_equal(rows["energy"], np.sort(energy)[:-4:-1])
        csv = hepfs.query([SEED, self.odd()], TABLE, "energy > 5", "csv", columns=["energy"])
        self.assertEqual(len(csv.splitlines()), 1 + 2 * (energy > 5).sum())

    def test_cat_and_info(self):
        npy = hepfs.cat(self.odd(), f"{TABLE}/columns/energy.npy")
        np.testing.assert_array_equal(np.load(io.BytesIO(npy)), stored("energy"))
        self.assertEqual(
            hepfs.cat(SEED, f"{TABLE}/columns/energy.raw", offset=4, length=8), stored("energy")[1:3].tobytes()
        )
        described = hepfs.info(self.odd(), TABLE)
        self.assertEqual(described["rows"], 500)
        shown = json.loads(hepfs.cat(SEED, "metadata.json"))
        self.assertEqual(hepfs.info(SEED)["members"], shown["members"])


class Program(Case):
    def found(self, *places, path=""):
        """What a copy of the module finds, with fake programs."""
        prefix = self.folder / "prefix"
        site = prefix / "lib" / "python3" / "site-packages"
        shutil.copytree(Path(hepfs.__file__).parent, site / "hepfs", dirs_exist_ok=True)
        for place in places:
            fake = prefix / place / "hepfs"
            fake.parent.mkdir(parents=True, exist_ok=True)
            fake.write_text('#!/bin/sh\necho "$0 $*"\nexit 3\n')
            fake.chmod(0o755)
        environment = {**os.environ, "PYTHONPATH": str(site), "PATH": str(prefix / path)}
        code = "import hepfs; print(hepfs.program())"
        out, said = self.python(code, env=environment, cwd=self.folder).communicate(timeout=30)
        return os.path.relpath(out.strip(), prefix) if out else said

    def test_it_is_the_one_beside_the_module(self):
        self.assertRegex(self.found(), "hepfs.Error: .*pip install hepfs")
        self.assertEqual(self.found("path", path="path"), "path/hepfs")
        self.assertEqual(self.found("bin", "path", path="path"), "bin/hepfs")
        self.assertEqual(
            self.found("lib/python3/site-packages/bin", "path", path="path"), "lib/python3/site-packages/bin/hepfs"
        )

    def test_the_module_runs_as_the_program(self):
        own = [sys.executable, "-m", "hepfs"]
        done = subprocess.run([*own, "ls", SEED], capture_output=True, text=True, check=True)
        self.assertIn(f"{TABLE}/", done.stdout)
        self.assertEqual(subprocess.run([*own, "no-such"], capture_output=True, check=False).returncode, 2)


class Ranges(http.server.BaseHTTPRequestHandler):
    """Answers ranges of a file, to those who know the secret."""

    protocol_version = "HTTP/1.1"
    secret = "sig=q7Zk0mVbT3xW%3D&expires=2026-11-28T14:00:00Z"

    def do_GET(self):
        content = SEED.read_bytes()
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        part = content[first : last + 1] if self.path == f"/run.h5?{self.secret}" else b""
        self.send_response(206 if part else 403)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_):
        pass


class Addresses(Case):
    def setUp(self):
        super().setUp()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ranges)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.shown = f"http://127.0.0.1:{server.server_address[1]}/run.h5"
        self.whole = f"{self.shown}?{Ranges.secret}"

    def test_a_signed_address_has_tables_and_shows_no_secret(self):
        seen = []
        # The arguments of all processes, each time that one is started.
        popen = subprocess.Popen

        def noted(arguments, **more):
            seen.append(repr(arguments))
            return popen(arguments, **more)

        with unittest.mock.patch.object(subprocess, "Popen", noted):
            rows = pl.read_ipc(io.BytesIO(hepfs.query(self.whole, TABLE, "energy > 5")))
            csv = hepfs.cat(self.whole, f"{TABLE}/columns/energy.csv")
            described = hepfs.info(self.whole, TABLE)
            to = hepfs.export([self.whole], TABLE, to=self.folder / "part.parquet")
            with hepfs.mount(self.whole) as path:
                npy = np.load(path / TABLE / "columns" / "energy.npy")
                said = [line.read_text() for line in (path / ".hepfs").iterdir() if line.name != "requests"]
                seen += [Path("/proc/mounts").read_text(), *said]
                seen += [Path(f"/proc/{one}/cmdline").read_text() for one in daemons(path)]
            with self.assertRaises(hepfs.Error) as missing:
                hepfs.cat(self.whole, "none")
        energy = stored("energy")
        np.testing.assert_array_equal(rows["energy"], energy[energy > 5])
        np.testing.assert_array_equal(pd.read_csv(io.BytesIO(csv))["energy"].astype(energy.dtype), energy)
        np.testing.assert_array_equal(npy, energy)
        np.testing.assert_array_equal(pd.read_parquet(to)["energy"], energy)
        self.assertEqual(described, {**hepfs.info(SEED, TABLE), "source": self.shown})
        seen = "".join([*seen, str(missing.exception)])
        self.assertIn(self.shown, seen)
        self.assertNotIn("q7Zk0mVbT3xW", seen)

    def test_what_is_shown_of_an_address(self):
        for text, shown in [
            ("https://me:pass@h:8/a@b.h5?x=1@2", "https://h:8/a@b.h5"),
            ("http://h?x", "http://h"),
            ("https://h/a.h5", "https://h/a.h5"),
            ("s3://bucket/a?b.h5", "s3://bucket/a?b.h5"),
            ("energy > 5", "energy > 5"),
        ]:
            self.assertEqual(hepfs._shown(text), shown)


if __name__ == "__main__":
    warnings.simplefilter("default")
    unittest.main()
