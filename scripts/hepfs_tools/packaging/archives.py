"""Archives whose bytes follow from their content and one date: `.tar.xz`, `.deb`, wheels."""

import base64
import hashlib
import io
import lzma
import tarfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True)
class File:
    """Content and permissions of a file of a package."""

    content: bytes
    mode: int = 0o644


@dataclass(frozen=True)
class Link:
    """A symbolic link of a package."""

    target: str


@dataclass(frozen=True)
class Writer:
    """Writes archives with one date, well packed or fast."""

    date: int
    fast: bool = False

    def tar_xz(self, entries, top=""):
        """A tar archive of paths and their entries, with the folders that they need, below `top`."""
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as archive:
            parents = {parent for path in entries for parent in PurePosixPath(path).parents if parent.name}
            for path in sorted({*map(str, parents), *entries}):
                entry = entries.get(path)
                info = tarfile.TarInfo(top + path)
                info.mtime, info.uname, info.gname, info.mode = self.date, "root", "root", 0o755
                content = b""
                match entry:
                    case None:
                        info.type = tarfile.DIRTYPE
                    case Link(target):
                        info.type, info.linkname, info.mode = tarfile.SYMTYPE, target, 0o777
                    case File(content, mode):
                        info.size, info.mode = len(content), mode
                archive.addfile(info, io.BytesIO(content))
        preset = 0 if self.fast else 9 | lzma.PRESET_EXTREME
        return lzma.compress(made.getvalue(), preset=preset)

    def deb(self, control, data):
        """A Debian package of the files of its control archive and of its data."""
        members = {
            "debian-binary": b"2.0\n",
            "control.tar.xz": self.tar_xz(control, "./"),
            "data.tar.xz": self.tar_xz(data, "./"),
        }
        made = b"!<arch>\n"
        for name, content in members.items():
            made += f"{name:<16}{self.date:<12}{0:<6}{0:<6}{0o100644:<8o}{len(content):<10}`\n".encode()
            made += content + b"\n" * (len(content) % 2)
        return made

    def wheel(self, entries, information):
        """A wheel of paths and files; `information` is its folder `.dist-info`, where the record of all goes."""
        record = []
        for path, file in entries.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(file.content).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(file.content)}\n")
        name = f"{information}/RECORD"
        entries = {**entries, name: File("".join([*record, f"{name},,\n"]).encode())}
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as archive:
            for path, file in entries.items():
                # A zip archive knows no date before 1980.
                info = zipfile.ZipInfo(path, time.gmtime(max(self.date, 315532800))[:6])
                info.external_attr, info.create_system = (0o100000 | file.mode) << 16, 3
                archive.writestr(info, file.content, zipfile.ZIP_DEFLATED, 1 if self.fast else 9)
        return made.getvalue()
