"""Search indexes of random columns: right ones, or with some bytes changed."""

import numpy as np
from h5py import h5t

from hepfs_tools.hep001.write import boolean

from . import making
from .making import APRIL, JULY, KINDS, MAY, READINGS, Revision
from .sources import MISSING, NAN, Source


def source_of(stored):
    """A column of `selecting` as one to build indexes of."""
    fill = stored.fill
    is_nan = [key != key for key in stored.keys]
    lost = [fill is not None and key == fill or key in stored.void for key in stored.keys]
    keys = [NAN if nan else MISSING if gone else key for key, nan, gone in zip(stored.keys, is_nan, lost)]
    elements = [stored.encode(key) for key in stored.keys]
    return Source(
        stored.name,
        stored.type_id,
        [elements[at] for at in stored.at],
        None if fill is None else stored.encode(fill),
        [keys[at] for at in stored.at],
        None,
        stored.chunk,
        nan_is_missing=fill is not None and fill != fill,
    )


def revision_of(table):
    """A draft that the table may follow."""
    if table.is_july:
        return JULY
    chosen = table.one_of([APRIL, MAY])
    reading = table.one_of(list(READINGS))
    return Revision(chosen.name, chosen.group, chosen.forward, chosen.back, chosen.values, reading)


def add_indexes(rng, table, share_changed):
    """Gives columns of a table indexes, of which a share is changed at random."""
    table.rng, kept = rng, table.rng
    revision = revision_of(table)
    under = table.group.require_group(revision.group)
    if revision.is_july:
        table.group.attrs["GENERATION"] = np.uint64(making.GENERATION)
    for stored in table.stored:
        # Indexes have the order of stored bytes, queries that of what is shown: the two differ for other texts.
        if share_changed == 0 and is_string(stored) and not all(map(is_text, stored.keys)):
            continue
        source = source_of(stored)
        made = []
        for kind in KINDS:
            if not table.chance(0.6):
                continue
            index = making.make(kind, source, revision)
            if kind == "BITMAP" and table.chance(0.4):
                leave_out(index, int(rng.integers(1, 4)))
            if table.chance(share_changed):
                change(rng, index)
            made.append(making.write_index(under, f"{stored.name}__{kind}", index, source, revision))
        making.join(table.group[stored.name], revision, made)
    table.rng = kept


def is_string(stored):
    """Whether a column is one of strings."""
    return stored.type_id.get_class() == h5t.STRING


def is_text(key):
    """Whether bytes are UTF-8."""
    try:
        return key.decode() is not None
    except UnicodeDecodeError:
        return False


def leave_out(index, count):
    """Some values have no bits."""
    index.data, index.values = index.data[count:], index.values[count:]
    if "exhaustive" in index.attributes:
        index.attributes["exhaustive"] = boolean(False)


def change(rng, index):
    """Changes some bytes of the elements, or a number among the attributes."""
    numbers = [name for name, value in index.attributes.items() if isinstance(value, np.integer) and name != "m_bits"]
    if numbers and rng.random() < 0.2:
        name = numbers[int(rng.integers(0, len(numbers)))]
        index.attributes[name] += type(index.attributes[name])(1)
        return
    changed = bytearray(index.data.tobytes())
    for _ in range(int(rng.integers(1, 4)) if changed else 0):
        changed[int(rng.integers(0, len(changed)))] ^= 1 << int(rng.integers(0, 8))
    index.data = np.frombuffer(bytes(changed), index.data.dtype).reshape(index.data.shape)
