"""Ways to spoil a file. Each takes the bytes, what is known of the file and a source of chance."""

import random
import re
import struct

from .checksums import checked, sealed, structures

NEAR = 256
# What tables are recognised and described by: attributes, with their values behind them.
WORDS = (
    b"CLASS", b"VERSION", b"NROWS", b"column-order", b"_categories", b"COLUMN_TABLE", b"SORTED_ROWS", b"BITMAP",
    b"FIELD_", b"pandas_type", b"pandas_version", b"values_cols", b"_kind", b"axis0", b"block0", b"_i_table",
    b"encoding", b"units", b"ENUM", b"VALUES", b"OFFSETS", b"DIMENSION_LIST", b"_versioned",
)  # fmt: skip
MOST_WORDS = 400
NUMBERS = (0, 1, 2, 3, 7, 8, 127, 255, 256, 4095, 65535, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40,
           (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip


class Seed:
    """A file to spoil."""

    def __init__(self, path):
        self.path = path
        self.data = path.read_bytes()
        self.structures = structures(self.data)
        self.words = words(self.data)
        self._checked = None

    @property
    def checked(self):
        if self._checked is None:
            self._checked = checked(self.data)
        return self._checked

    def place(self, data, chance):
        """A place in a copy, most of them in what describes the file."""
        if self.structures and chance.random() < 0.8:
            place = chance.choice(self.structures) + chance.randrange(NEAR)
        elif chance.random() < 0.5:
            place = chance.randrange(4096)
        else:
            place = chance.randrange(len(data))
        return min(place, len(data) - 1)


def words(data):
    """Where words begin that mean something to a dialect."""
    found = [match.start() for match in re.finditer(b"|".join(map(re.escape, WORDS)), data)]
    return found[:: len(found) // MOST_WORDS + 1]


def flip_bytes(data, seed, chance):
    for _ in range(chance.randint(1, 6)):
        data[seed.place(data, chance)] = chance.randrange(256)


def flip_bits(data, seed, chance):
    for _ in range(chance.randint(1, 4)):
        data[seed.place(data, chance)] ^= 1 << chance.randrange(8)


def numbers(data, seed, chance):
    """A number where there may have been another."""
    for _ in range(chance.randint(1, 3)):
        width = chance.choice((1, 2, 4, 8))
        at = seed.place(data, chance) // width * width
        number = chance.choice((*NUMBERS, len(data), len(data) - 1, len(data) + 1, *seed.structures[:20]))
        data[at : at + width] = (number & ((1 << 8 * width) - 1)).to_bytes(width, "little")


def pointers(data, seed, chance):
    """What leads to one structure leads to another, or to the one it is in."""
    if len(seed.structures) < 2:
        return flip_bytes(data, seed, chance)
    for _ in range(chance.randint(1, 2)):
        old, new = chance.sample(seed.structures, 2)
        pattern = struct.pack("<Q", old)
        at = data.find(pattern, chance.randrange(len(data)))
        at = data.find(pattern) if at < 0 else at
        if at >= 0:
            data[at : at + 8] = struct.pack("<Q", new)
    return None


def meanings(data, seed, chance):
    """What stands about a word that dialects know: its letters, the type, extent and value of the attribute."""
    if not seed.words:
        return flip_bytes(data, seed, chance)
    for _ in range(chance.randint(1, 3)):
        at = max(chance.choice(seed.words) + chance.randrange(-16, 112), 0)
        width = chance.choice((1, 1, 2, 4, 8))
        number = chance.choice((*NUMBERS, chance.randrange(256), chance.randrange(256)))
        data[at : at + width] = (number & ((1 << 8 * width) - 1)).to_bytes(width, "little")[: max(len(data) - at, 0)]
    return None


def copies(data, seed, chance):
    """A piece of the file stands in another place as well."""
    length = chance.choice((8, 16, 64, 512))
    here, there = seed.place(data, chance), seed.place(data, chance)
    data[there : there + length] = data[here : here + length][: len(data) - there]


def zeros(data, seed, chance):
    at = seed.place(data, chance)
    length = min(chance.choice((8, 64, 512, 4096)), len(data) - at)
    data[at : at + length] = chance.choice((b"\0", b"\xff")) * length


def cut(data, _, chance):
    del data[chance.randrange(1, len(data) + 1) :]


WAYS = (flip_bytes, flip_bits, numbers, numbers, pointers, pointers, meanings, meanings, copies, zeros, cut)


def spoil(seed, number):
    """A spoilt copy, and how it was spoilt; the same number of chance spoils alike."""
    chance, data, ways = random.Random(number), bytearray(seed.data), []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        way = chance.choice(WAYS)
        way(data, seed, chance)
        ways.append(way.__name__)
    if chance.random() < 0.8:
        sealed(data, [(start, end) for start, end in seed.checked if data[start:end] != seed.data[start:end]])
    return bytes(data), "+".join(ways)
