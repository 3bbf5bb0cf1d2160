"""Writes the files of tests/engine/h5_worker.rs: python3 scripts/h5_fixtures.py tests/data

The expected values in that test are what h5py shows of the same files.
"""

import os
import shutil
import sys

import h5py
import numpy as np
from h5py import h5d, h5p, h5r, h5s, h5t

folder = sys.argv[1]


def path(name):
    name = os.path.join(folder, name)
    if os.path.exists(name):
        os.remove(name)
    return name


def basic(f):
    """One object of each kind, by name order."""
    a = f.create_dataset("chunked", data=np.arange(35, dtype="<i4").reshape(5, 7), chunks=(2, 3), compression="gzip")
    a.attrs["units"] = "GeV"
    a.attrs["limits"] = np.array([1.5, -2.5])
    a.attrs["fixed"] = np.bytes_(b"abc")
    a.attrs["null"] = h5py.Empty("f8")
    f.create_dataset("contiguous", data=np.arange(6, dtype=">f8"))
    f.create_dataset("unallocated", shape=(4,), dtype="<u2")
    f.create_dataset("filled", shape=(4,), dtype="<i2", fillvalue=-7)
    strings = f.create_dataset("strings", data=["", "é", "long " * 3], dtype=h5py.string_dtype())
    strings.attrs["names"] = np.array(["x", "yy"], dtype=h5py.string_dtype())
    space = h5s.create_simple((3,))
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_layout(h5d.COMPACT)
    compact = h5d.create(f.id, b"compact", h5t.STD_I16LE, space, dcpl)
    compact.write(h5s.ALL, h5s.ALL, np.array([1, 2, 3], "<i2"))
    f.create_dataset("scalar", data=np.float32(0.5))
    f.create_dataset("empty", data=h5py.Empty("i8"))
    f.create_group("group").attrs["TYPE"] = "x"
    f["committed"] = np.dtype("<i8")
    f["hard"] = f["contiguous"]
    f["soft"] = h5py.SoftLink("/group/../contiguous")  # ".." is a name in HDF5
    f["soft ok"] = h5py.SoftLink("./contiguous")
    f["soft chain"] = h5py.SoftLink("/soft ok")
    f["loop a"] = h5py.SoftLink("/loop b")
    f["loop b"] = h5py.SoftLink("/loop a")
    f["external"] = h5py.ExternalLink("h5_linked.h5", "/there")
    f["through external"] = h5py.SoftLink("/group/ext/there")
    f["group/ext"] = h5py.ExternalLink("h5_linked.h5", "/")
    f[b"bytes \xff"] = np.int8(1)


with h5py.File(path("h5_basic.h5"), "w") as f:
    basic(f)
with h5py.File(path("h5_user_block.h5"), "w", userblock_size=1024) as f:
    basic(f)
with h5py.File(path("h5_latest.h5"), "w", libver="latest") as f:
    basic(f)
with h5py.File(path("h5_linked.h5"), "w") as f:
    f["there"] = np.arange(3, dtype="<i4")
    f["back"] = h5py.ExternalLink("h5_basic.h5", "/contiguous")

fcpl = h5p.create(h5p.FILE_CREATE)
fcpl.set_sizes(4, 4)
with h5py.File(h5py.h5f.create(path("h5_narrow.h5").encode(), h5py.h5f.ACC_TRUNC, fcpl=fcpl)) as f:
    basic(f)

with h5py.File(path("h5_ordered.h5"), "w", track_order=True) as f:
    for name in "zebra", "apple", "mango":
        f.create_group(name)
        f.attrs[name] = 1

with h5py.File(path("h5_types.h5"), "w") as f:
    vlen = h5py.vlen_dtype(np.dtype("<i2"))
    text = h5py.string_dtype()
    compound = np.dtype([("a", "<i4"), ("text", text), ("b", ">f4"), ("list", vlen), ("c", "u1", (2, 3))])
    d = f.create_dataset("compound", shape=(2,), dtype=compound, chunks=(2,))
    for i, row in enumerate([(1, "one", 1.5, np.array([1, 2, 3]), np.arange(6).reshape(2, 3)),
                             (2, "", -2.5, np.array([], "<i2"), np.ones((2, 3)))]):
        d[i] = np.array(row, dtype=compound)
    padded = h5t.create(h5t.COMPOUND, 24)
    padded.insert(b"x", 4, h5t.STD_I32LE)
    padded.insert(b"y", 16, h5t.IEEE_F64LE)
    h5d.create(f.id, b"padded", padded, h5s.create_simple((2,)))
    f.create_dataset("enum", data=np.array([-1, 7], "<i2"),
                     dtype=h5py.enum_dtype({"NO": -1, "YES": 7}, basetype="<i2"))
    f.create_dataset("bool", data=np.array([True, False]))
    f.create_dataset("opaque", data=np.array([b"abc", b"de"], dtype="V3"))
    h5d.create(f.id, b"bits", h5t.STD_B16BE, h5s.create_simple((2,)))
    f.create_dataset("complex", data=np.array([1 + 2j]))
    f.create_dataset("half", data=np.array([0.5], "<f2"))
    f.create_dataset("fixed", data=np.array([b"ab", b"c"], "S4"))
    lists = f.create_dataset("lists", shape=(3,), dtype=vlen)
    lists[0] = [1, 2]
    lists[2] = [3]
    nested = h5t.vlen_create(h5t.vlen_create(h5t.STD_I8LE))
    h5d.create(f.id, b"nested", nested, h5s.create_simple((1,)))
    odd = h5t.IEEE_F32LE.copy()
    odd.set_fields(15, 7, 8, 0, 7)
    odd.set_size(2)
    odd.set_ebias(127)
    h5d.create(f.id, b"bfloat16", odd, h5s.create_simple((1,)))
    f.create_dataset("filled text", shape=(2,), dtype=text, fillvalue="none")

with h5py.File(path("h5_references.h5"), "w") as f:
    target = f.create_dataset("g/target", data=np.arange(100).reshape(10, 10))
    f["also"] = target
    objects = f.create_dataset("objects", shape=(4,), dtype=h5py.ref_dtype)
    objects[0] = target.ref
    objects[1] = f["g"].ref
    objects[3] = f.ref
    regions = f.create_dataset("regions", shape=(4,), dtype=h5py.regionref_dtype)
    regions[0] = target.regionref[0:10, 3:7]
    regions[1] = target.regionref[...]
    regions[3] = target.regionref[::5, 0:2]
    f.attrs["object"] = target.ref
    f.attrs["objects"] = np.array([f["g"].ref, target.ref], dtype=h5py.ref_dtype)
    f.attrs["region"] = target.regionref[0:1, 0:1]
    f.create_dataset("not", data=[1])

with h5py.File(path("h5_elsewhere.h5"), "w") as f:
    f.create_dataset("passwd", shape=(16,), dtype="u1", external=[("/etc/passwd", 0, 16)])
    f.create_dataset("raw", shape=(4,), dtype="u1", external=[("h5_raw.bin", 0, 4)])
    layout = h5py.VirtualLayout((3,), "<i4")
    layout[:] = h5py.VirtualSource("h5_linked.h5", "there", (3,))
    f.create_virtual_dataset("virtual", layout, fillvalue=-1)
    f["own"] = np.arange(3, dtype="<i4")
    layout = h5py.VirtualLayout((3,), "<i4")
    layout[:] = h5py.VirtualSource(".", "own", (3,))
    f.create_virtual_dataset("virtual own", layout, fillvalue=-1)
    layout = h5py.VirtualLayout((3,), "<i4")
    layout[:] = h5py.VirtualSource(".", "virtual", (3,))
    f.create_virtual_dataset("virtual hidden", layout, fillvalue=-1)
    f["outside"] = h5py.ExternalLink("../data.h5", "/x")
    f["passwd link"] = h5py.ExternalLink("/etc/passwd", "/")
    f["linked"] = h5py.ExternalLink("h5_linked.h5", "/there")
    f["soft"] = h5py.SoftLink("/linked")
    layout = h5py.VirtualLayout((3,), "<i4")
    layout[:] = h5py.VirtualSource("hostile/../h5_linked.h5", "there", (3,))
    f.create_virtual_dataset("virtual dots", layout, fillvalue=-1)
    for name, source in {"virtual linked": "linked", "virtual soft": "soft", "virtual outside": "outside"}.items():
        layout = h5py.VirtualLayout((3,), "<i4")
        layout[:] = h5py.VirtualSource(".", source, (3,))
        f.create_virtual_dataset(name, layout, fillvalue=-1)
with open(path("h5_raw.bin"), "wb") as f:
    f.write(b"\x01\x02\x03\x04")

with h5py.File(path("h5_many.h5"), "w", libver="latest") as f:
    d = f.create_dataset("d", shape=(300, 300), chunks=(10, 10), dtype="u1")
    d[0, 0] = 1
    d[299, 299] = 2
    d[100:110, :] = 3

# Copies of files while a writer has them open: in SWMR mode, and not.
with h5py.File(path("h5_writer.tmp"), "w", libver="latest") as f:
    d = f.create_dataset("d", data=np.arange(3, dtype="<i4"), maxshape=(None,), chunks=(2,))
    f.flush()
    shutil.copy(f.filename, path("h5_marked.h5"))
    f.swmr_mode = True
    d.flush()
    shutil.copy(f.filename, path("h5_swmr.h5"))
os.remove(os.path.join(folder, "h5_writer.tmp"))

# One object's header is damaged.
with h5py.File(path("h5_damaged.h5"), "w") as f:
    f["good"] = np.arange(3, dtype="<i4")
    f["group/bad"] = np.arange(3, dtype="<i4")
    bad = h5py.h5o.get_info(f["group/bad"].id).addr
    f["zzz"] = np.int8(1)
with open(os.path.join(folder, "h5_damaged.h5"), "r+b") as f:
    f.seek(bad)
    f.write(b"\xff")  # the version of the object's header

# Files in several: of the family driver, in both formats, and of the split driver.
os.makedirs(os.path.join(folder, "members"), exist_ok=True)
MEMBERS = [("old-%d.h5", "family", {"memb_size": 1024}), ("new%03d.h5", "family", {"memb_size": 1024}), ("pair", "split", {})]
for name, driver, size in MEMBERS:
    with h5py.File(path(f"members/{name}"), "w", driver=driver, libver="latest" if "new" in name else None, **size) as f:
        f["t/x"] = np.arange(300, dtype="<i4")
        f["t/y"] = np.arange(300, dtype="<f4")
