"""Images, through Pillow: each `.png` has the pixels that h5py reads, whole or from its end.

    python3 -m hepfs_tools.reading.images write FILE.h5
    python3 -m hepfs_tools.reading.images read FILE.h5 MOUNT

`write` writes images of every kind of the HDF5 Image and Palette Specification, and arrays of numbers. `read` prints
what differs in a mount of that file, and fails if something does.
"""

import io
import os
import sys
from pathlib import Path

import h5py
import numpy as np
from PIL import Image

MISSING = -9999


def write(path):
    """Writes the file."""
    random = np.random.default_rng(20)
    y, x = np.mgrid[:300, :500]
    grey = ((x * 3 + y * 2) % 256).astype("u1")
    colours = random.integers(0, 256, (40, 70, 3)).astype("u1")
    waves = np.sin(x / 30) * np.cos(y / 20)
    waves[10:20, 10:30] = np.nan
    with h5py.File(path, "w") as file:

        def image(name, pixels, subclass, **attributes):
            dataset = file.create_dataset(name, data=pixels, chunks=True, compression="gzip")
            marks = {"CLASS": b"IMAGE", "IMAGE_VERSION": b"1.2", "IMAGE_SUBCLASS": subclass}
            for key, value in (marks | attributes).items():
                dataset.attrs[key] = np.bytes_(value) if isinstance(value, bytes) else value
            return dataset

        image("grey8", grey, b"IMAGE_GRAYSCALE")
        image("white", grey, b"IMAGE_GRAYSCALE", IMAGE_WHITE_IS_ZERO=np.uint8(1))
        image("grey16", (x * 131 + y).astype("<u2"), b"IMAGE_GRAYSCALE")
        image("grey16_be", (x * 131 + y).astype(">u2"), b"IMAGE_GRAYSCALE")
        image("dot", grey[:1, :1], b"IMAGE_GRAYSCALE")
        for mode, axes in (("PIXEL", (0, 1, 2)), ("LINE", (0, 2, 1)), ("PLANE", (2, 0, 1))):
            pixels = colours.transpose(axes).copy()
            image(mode.lower(), pixels, b"IMAGE_TRUECOLOR", INTERLACE_MODE=f"INTERLACE_{mode}".encode())
        palette = file.create_dataset("palette", data=random.integers(0, 256, (200, 3)).astype("u1"))
        palette.attrs["CLASS"] = np.bytes_("PALETTE")
        indexed = image("indexed", grey % 200, b"IMAGE_INDEXED")
        indexed.attrs.create("PALETTE", [palette.ref], dtype=h5py.ref_dtype)
        lost = image("lost", grey[:4, :4], b"IMAGE_INDEXED")
        lost.attrs.create("PALETTE", [file.create_group("no_palette").ref], dtype=h5py.ref_dtype)
        # Not marked.
        file.create_dataset("frames", data=(random.random((8, 64, 48)) * 65535).astype("u2"), chunks=(1, 16, 48))
        file.create_dataset("rgb", data=colours)
        file.create_dataset("floats", data=waves, chunks=(64, 64), compression="gzip")
        file.create_dataset("halves", data=waves.astype(">f2"))
        stored = np.where(np.isnan(waves), MISSING, waves * 1000).astype("i4")
        file.create_dataset("integers", data=stored).attrs["_FillValue"] = np.int32(MISSING)
        file.create_dataset("powers", data=np.exp(random.normal(0, 4, (70, 90))))
        file.create_dataset("few", data=np.ones((15, 90)))
        file.create_dataset("long", data=np.ones((40000, 16), "u1"))
        file["texts"] = np.full((20, 20), b"text")
        # Names: a group gives way to a file that a dataset has, or might have, and to the page.
        for name in ("floats.png", "texts.png", "texts.html", "index.html"):
            file.create_group(name)
        file["index"] = np.arange(3)


def scaled(name, image, stored):
    """Why shades of grey are not those of the numbers."""
    shades = np.array(image)
    numbers = np.where(stored == MISSING, np.nan, stored.astype(float))
    if image.mode != "L" or image.info.get("transparency") != 0:
        return f"{image.mode} {image.info}"
    if not ((shades == 0) == np.isnan(numbers)).all():
        return "what is missing differs"
    words = image.text["Description"].split()
    least, greatest = float(words[5]), float(words[7])
    if name == "powers":
        assert "logarithm," in words
        numbers, least, greatest = np.log(numbers), np.log(least), np.log(greatest)
    with np.errstate(invalid="ignore"):
        wanted = 1 + 254 * np.clip((numbers - least) / (greatest - least), 0, 1)
    if np.nanmax(np.abs(wanted - shades)[shades > 0]) > 0.51:
        return "shades differ"
    low, high = np.nanquantile(numbers, [0.005, 0.995])
    if abs(low - least) > 0.02 * (high - low) or abs(high - greatest) > 0.02 * (high - low):
        return f"the window is {least} to {greatest}, not {low} to {high}"
    return None


def read(path, mount):
    """What differs."""
    shown = {path.stem for path in mount.glob("*.png") if path.is_file()}
    with h5py.File(path) as file:
        names = set(file) - {"few", "long", "texts", "palette", "no_palette", "index"}
        names = {name for name in names if "." not in name}
        if shown != names:
            yield f"images {sorted(shown)}, not {sorted(names)}"
        wanted = {"%66loats.png", "%74exts.png", "%74exts.html", "%69ndex.html", "index.csv"}
        if not wanted <= set(os.listdir(mount)):
            yield f"no {wanted - set(os.listdir(mount))}"
        for name in sorted(shown & names - {"lost"}):
            place, stored = mount / f"{name}.png", file[name][()]
            with open(place, "rb") as opened:
                # The checksum of all pixels, before any was read.
                opened.seek(-40, os.SEEK_END)
                tail = opened.read()
                opened.seek(0)
                data = opened.read()
            if len(data) != place.stat().st_size or data[-40:] != tail:
                yield f"{name}: {len(data)} bytes, {place.stat().st_size} by stat; or another end"
            image = Image.open(io.BytesIO(data))
            image.load()
            if name in ("floats", "halves", "integers", "powers"):
                if why := scaled(name, image, stored):
                    yield f"{name}: {why}"
                continue
            if name in ("line", "plane"):
                stored = file["pixel"][()]
            elif name == "white":
                stored = 255 - stored
            elif name == "frames":
                stored = stored.reshape(-1, stored.shape[-1])
            elif name == "indexed":
                image, stored = image.convert("RGB"), file["palette"][()][stored]
            if not np.array_equal(np.array(image), stored):
                yield f"{name}: pixels differ"
    try:
        (mount / "lost.png").read_bytes()
        yield "an image of a palette that is none can be read"
    except OSError:
        if "PALETTE" not in (mount / ".hepfs/errors").read_text():
            yield "no error says that the palette is none"


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2])
    else:
        differences = list(read(Path(sys.argv[2]), Path(sys.argv[3])))
        sys.exit("\n".join(differences) or None)
