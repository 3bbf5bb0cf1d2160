"""The checksums of newer HDF5 structures (Jenkins' lookup3), so that damage gets past them."""

import struct

SIGNATURES = (
    b"OHDR", b"OCHK", b"TREE", b"SNOD", b"HEAP", b"GCOL", b"FRHP", b"FHDB", b"FHIB", b"FSHD", b"FSSE", b"BTHD", b"BTIN",
    b"BTLF", b"FAHD", b"FADB", b"EAHD", b"EAIB", b"EASB", b"EADB", b"SMTB", b"SMLI",
)  # fmt: skip
MASK = 0xFFFFFFFF


def rotate(value, count):
    return (value << count | value >> (32 - count)) & MASK


def mix(a, b, c):
    for count in (4, 6, 8, 16, 19, 4):
        a, b, c = b, (c + b) & MASK, (a - c) & MASK ^ rotate(c, count)
    return a, b, c


def final(a, b, c):
    for count in (14, 11, 25, 16, 4, 14, 24):
        a, b, c = b, ((c ^ b) - rotate(b, count)) & MASK, a
    return b


def lookup3(data):
    """The checksum of some bytes."""
    a = b = c = (0xDEADBEEF + len(data)) & MASK
    at = 0
    while len(data) - at > 12:
        x, y, z = struct.unpack_from("<3I", data, at)
        a, b, c = mix((a + x) & MASK, (b + y) & MASK, (c + z) & MASK)
        at += 12
    rest = data[at:]
    if not rest:
        return c
    x, y, z = struct.unpack("<3I", rest.ljust(12, b"\0"))
    return final((a + x) & MASK, (b + y) & MASK, (c + z) & MASK)


def structures(data):
    """Where structures begin that have a signature."""
    found = []
    for signature in SIGNATURES:
        at = data.find(signature)
        while at >= 0:
            found.append(at)
            at = data.find(signature, at + 4)
    return sorted(found)


def checked(data, most=40, longest=700):
    """Start and end of structures with a checksum, as far as they are short: the checksum lies at the end."""
    spans = []
    for start in structures(data):
        if data[start : start + 4] in (b"TREE", b"SNOD", b"HEAP", b"GCOL"):
            continue
        for end in range(start + 8, min(start + longest, len(data) - 4)):
            if lookup3(data[start:end]) == int.from_bytes(data[end : end + 4], "little"):
                spans.append((start, end))
                break
        if len(spans) >= most:
            break
    return spans


def sealed(data, spans):
    """A spoilt file whose checksums are right again."""
    for start, end in spans:
        if end + 4 <= len(data):
            data[end : end + 4] = lookup3(bytes(data[start:end])).to_bytes(4, "little")
    return data
