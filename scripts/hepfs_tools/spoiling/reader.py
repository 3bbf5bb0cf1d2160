"""Goes through a mount as a curious program does: names, sizes, attributes, the beginning and the end of each file.

Run by itself (`reader.py MOUNT SECONDS`): it may hang, be killed, or meet a daemon that died. After so many seconds it
begins with no other file, so one that takes much longer took long itself.
"""

import errno
import os
import random
import stat
import sys
import time

MOST_NAMES, MOST_DEPTH, MOST_FILES = 120, 12, 600
HEAD, TAIL = 64 << 10, 4 << 10
# A file of which an open measures more than this takes a pass that nobody waits for here.
LONGEST_PASS = 1 << 28
MEASURED = (".csv", ".ndjson", ".txt", ".arrow")
EXPECTED = {errno.EIO, errno.ESTALE, errno.EINTR, errno.ENOENT, errno.ENODATA, errno.ERANGE, errno.EOVERFLOW}
# Paths of selections below each other get long.
EXPECTED |= {errno.ENAMETOOLONG}


class Reader:
    def __init__(self, seconds):
        self.left, self.wrong, self.end = MOST_FILES, set(), time.monotonic() + seconds

    def failed(self, what, path, error):
        if error.errno not in EXPECTED:
            self.wrong.add(f"{what} {path}: {errno.errorcode.get(error.errno, error.errno)}")

    def attributes(self, path):
        try:
            for name in os.listxattr(path, follow_symlinks=False)[:20]:
                os.getxattr(path, name, follow_symlinks=False)
        except OSError as error:
            self.failed("xattr", path, error)

    def file(self, path):
        try:
            size = os.stat(path).st_size
            if path.endswith(MEASURED) and size > LONGEST_PASS:
                return
            with open(path, "rb", buffering=0) as file:
                file.read(HEAD)
                size = os.fstat(file.fileno()).st_size
                if size > HEAD:
                    file.seek(size - TAIL)
                    file.read(TAIL)
        except OSError as error:
            self.failed("read", path, error)

    def selection(self, table):
        """Selections by the first column that can be asked: sensible, nested, and nonsense."""
        try:
            columns = sorted(os.listdir(f"{table}/columns"))
            names = [name for name in columns if name.endswith(".parquet")]
            # Looking for rows takes a pass as well.
            if names and os.stat(f"{table}/columns/{names[0]}").st_size <= LONGEST_PASS:
                column = names[0].removesuffix(".parquet")
                further = f"/where/{column}:valid"
                for condition in ("valid", "ge:0", "ge:0" + 3 * further, "eq:" + 200 * "x", "valid" + 70 * further):
                    self.file(f"{table}/where/{column}:{condition}/head.csv")
        except OSError as error:
            self.failed("where", table, error)

    def directory(self, path, depth):
        try:
            with os.scandir(path) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            return self.failed("list", path, error)
        self.attributes(path)
        for entry in entries[:MOST_NAMES]:
            if self.left <= 0 or time.monotonic() > self.end:
                return None
            self.left -= 1
            try:
                mode = entry.stat(follow_symlinks=False).st_mode
            except OSError as error:
                self.failed("stat", entry.path, error)
                continue
            if stat.S_ISDIR(mode):
                if entry.name == "where":
                    self.selection(path)
                elif depth < MOST_DEPTH:
                    self.directory(entry.path, depth + 1)
            elif stat.S_ISREG(mode):
                if random.random() < 0.3:
                    self.attributes(entry.path)
                self.file(entry.path)
        return None


def main():
    random.seed(0)
    reader = Reader(float(sys.argv[2]))
    reader.directory(sys.argv[1], 0)
    for wrong in sorted(reader.wrong)[:20]:
        print(wrong)
    sys.exit(1 if reader.wrong else 0)


if __name__ == "__main__":
    main()
