"""Writes the files of tests/engine/store.rs and what h5py reads of them: python3 scripts/store_fixtures.py tests/data

Needs h5py, hdf5plugin, blosc2 and versioned-hdf5. store_expected.json holds the elements of every dataset as h5py shows
them: bytes as hexadecimal digits where they are of fixed size, texts and lists otherwise.
"""

import json
import os
import shutil
import sys

import blosc2
import h5py
import hdf5plugin
import numpy as np
from fixtures import libhdf5, pipelines
from fixtures.write import integer_type
from h5py import h5d, h5f, h5p, h5s, h5t, h5z
from versioned_hdf5 import VersionedHDF5File

folder = sys.argv[1]
expected = {}


def create(name, **options):
    path = os.path.join(folder, name)
    if os.path.exists(path):
        os.remove(path)
    return h5py.File(path, "w", **options)


def plain(value):
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def record(path):
    # A copy, open for writing: libhdf5 puts a fill value of variable length into the file before it can read it.
    shutil.copy(path, path + ".copy")
    with h5py.File(path + ".copy", "r+") as f:
        datasets = expected[os.path.basename(path)] = {}

        def visit(name, dataset):
            if not isinstance(dataset, h5py.Dataset) or "/" in name or name in ("external", "elsewhere", "zfp"):
                return
            if h5py.check_vlen_dtype(dataset.dtype) or h5py.check_string_dtype(dataset.dtype):
                datasets[name] = [plain(value) for value in dataset[...]]
            elif dataset.dtype.hasobject:
                datasets[name] = [[plain(field) for field in row] for row in dataset[...].tolist()]
            else:
                datasets[name] = np.asarray(dataset[...]).tobytes().hex()

        f.visititems(visit)
    os.remove(path + ".copy")


def record_stored(path):
    """As `record`, for datatypes that NumPy has not, none of them with parts of variable length."""
    with h5py.File(path) as f:
        expected[os.path.basename(path)] = {name: pipelines.elements(made.id).hex() for name, made in f.items()}


def partial_unfiltered(f, name, data, chunk):
    """Edge chunks stored without filters (H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS), which h5py has no option for."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_chunk(chunk)
    dcpl.set_deflate(4)
    # H5Pset_chunk_opts is not wrapped: the flag is kept in the file by libhdf5 itself, called through ctypes.
    import ctypes

    for line in open("/proc/self/maps"):
        if "libhdf5-" in line or "libhdf5." in line:
            library = ctypes.CDLL(line.split()[-1])
            break
    library.H5Pset_chunk_opts.argtypes = [ctypes.c_int64, ctypes.c_uint]
    assert library.H5Pset_chunk_opts(dcpl.id, 2) >= 0
    space = h5s.create_simple(data.shape)
    h5d.create(f.id, name.encode(), h5t.py_create(data.dtype), space, dcpl).write(h5s.ALL, h5s.ALL, data)


rng = np.random.default_rng(2)
line = np.cumsum(rng.integers(-3, 9, 500))

with create("store_layouts.h5", libver="v110", userblock_size=512) as f:
    f.create_dataset("contiguous", data=line.astype(">i4"))
    f.create_dataset("unallocated", shape=(7,), dtype="<u2")
    f.create_dataset("unallocated_filled", shape=(7,), dtype="<u2", fillvalue=513)
    f.create_dataset("chunked", data=line.astype("<i8"), chunks=(64,))
    f.create_dataset("cube", data=rng.integers(0, 99, (5, 6, 7)).astype("<i2"), chunks=(2, 4, 3), compression="gzip")
    f.create_dataset("cube_plain", data=rng.integers(0, 99, (5, 6, 7)).astype("<i2"), chunks=(2, 4, 3))
    f.create_dataset("rows", data=rng.integers(0, 99, (50, 3)).astype("<f4"), chunks=(8, 3), compression="gzip")
    f.create_dataset("scalar", data=np.float64(2.5))
    f.create_dataset("overhang", data=np.arange(5, dtype="<i4"), chunks=(64,), maxshape=(None,), compression="gzip")
    holes = f.create_dataset("holes", shape=(100,), dtype="<i4", chunks=(16,), compression="gzip", fillvalue=-9)
    holes[20:30] = 5
    holes[99] = 6
    partial_unfiltered(f, "partial_unfiltered", line.astype("<i4").reshape(20, 25), (8, 8))
    space = h5s.create_simple((3,))
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_layout(h5d.COMPACT)
    h5d.create(f.id, b"compact", h5t.STD_I16LE, space, dcpl).write(h5s.ALL, h5s.ALL, np.array([1, 2, 3], "<i2"))
    layout = h5py.VirtualLayout(shape=(2, 250), dtype="<i8")
    source = h5py.VirtualSource(".", "chunked", shape=(500,))
    layout[0] = source[:250]
    layout[1] = source[250:]
    f.create_virtual_dataset("virtual", layout, fillvalue=0)
    elsewhere = h5py.VirtualLayout(shape=(4,), dtype="<i8")
    elsewhere[:] = h5py.VirtualSource("other.h5", "d", shape=(4,))
    f.create_virtual_dataset("elsewhere", elsewhere)
    f.create_dataset("external", shape=(4,), dtype="u1", external=[("store_raw.bin", 0, 4)])
record(os.path.join(folder, "store_layouts.h5"))

with create("store_filters.h5") as f:
    data = line.astype("<i4")
    noise = rng.integers(0, 256, 500).astype("u1")

    def filtered(name, data=data, chunks=(96,), **options):
        f.create_dataset(name, data=data, chunks=chunks, **options)

    filtered("gzip", compression="gzip", compression_opts=9)
    filtered("shuffle", shuffle=True)
    filtered("shuffle_gzip", shuffle=True, compression="gzip")
    filtered("fletcher32", fletcher32=True)
    filtered("fletcher32_odd", noise[:99], chunks=(33,), fletcher32=True)
    filtered("shuffle_gzip_fletcher32", shuffle=True, compression="gzip", fletcher32=True)
    filtered("lzf", compression="lzf")
    filtered("lzf_noise", noise, chunks=(500,), compression="lzf")
    filtered("shuffle_lzf", shuffle=True, compression="lzf")
    filtered("zstd", **hdf5plugin.Zstd())
    filtered("shuffle_zstd", shuffle=True, **hdf5plugin.Zstd())
    filtered("lz4", **hdf5plugin.LZ4())
    filtered("lz4_blocks", **hdf5plugin.LZ4(nbytes=100))
    filtered("lz4_noise", noise, chunks=(500,), **hdf5plugin.LZ4())
    filtered("scaleoffset", scaleoffset=0)
    filtered("scaleoffset_square", data[:323].reshape(17, 19), chunks=(5, 6), scaleoffset=0)
    filtered("zfp", data.astype("<f4"), **hdf5plugin.Zfp(reversible=True))
    # A chunk written around its filters: shuffle masked off, deflate on.
    import zlib

    d = f.create_dataset("masked", shape=(10,), dtype="<i4", chunks=(5,), shuffle=True, compression="gzip")
    d[:] = np.arange(10)
    d.id.write_direct_chunk((5,), zlib.compress(np.arange(50, 55, dtype="<i4").tobytes()), filter_mask=1)
    d.id.write_direct_chunk((0,), np.arange(90, 95, dtype="<i4").tobytes(), filter_mask=3)
record(os.path.join(folder, "store_filters.h5"))


def stored(f, name, kind, data, chunk, *filters, fill=None):
    """A dataset of the elements `data` as they are stored, behind filters given as `(number, values)`."""
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_obj_track_times(False)
    dcpl.set_chunk((chunk,))
    if fill is not None:
        dcpl.set_fill_value(np.array(fill))
    for number, values in filters:
        dcpl.set_filter(number, h5z.FLAG_OPTIONAL, values)
    space = h5s.create_simple((len(data) // kind.get_size(),))
    libhdf5.write_elements(h5d.create(f.id, name.encode(), kind, space, dcpl), kind, data)


NN, EC = h5z.SZIP_NN_OPTION_MASK, h5z.SZIP_EC_OPTION_MASK
with create("store_packed.h5", libver="latest") as f:
    # Pixels of every number of bits that libhdf5 writes, both orders and codings, scanlines that are no whole blocks,
    # runs of blocks of zeros within and up to the end of a segment.
    for i, bits in enumerate([*range(1, 25), 32, 64]):
        size = next(size for size in (1, 2, 4, 8) if bits <= 8 * size)
        numbers = np.abs(rng.normal(size=150) * 2.0 ** (bits / 2)).astype("u8")
        numbers[40:90] = 0
        numbers = np.minimum(numbers, (1 << bits) - 1).astype(f"{'<>'[i % 2]}u{size}")
        kind = integer_type(size, False, ("little", "big")[i % 2], bits)
        filters = (4, ((NN, NN, EC)[i % 3], (8, 10, 32, 2)[i % 4]))
        stored(f, f"szip_{bits}", kind, numbers.tobytes(), (60, 150, 49)[i % 3], filters)
    sparse = np.zeros(5000, "u1")
    sparse[::700] = 9
    for name, coding in (("nn", NN), ("ec", EC)):
        stored(f, f"szip_sparse_{name}", h5t.STD_U8LE, sparse.tobytes(), 2500, (4, (coding, 2)))
        stored(f, f"szip_floats_{name}", h5t.IEEE_F64BE, np.linspace(1, 2, 80).astype(">f8").tobytes(), 40, (4, (coding, 16)))
    # Of these libaec loses every fourth byte on writing, and ends within a sample.
    stored(f, "szip_3_bytes", integer_type(3, False, "big"), bytes(range(30)), 10, (4, (NN, 4)))

    for order in "<>":
        for letter in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"):
            kind, is_float = np.dtype(order + letter), letter[0] == "f"
            numbers = (np.arange(60) % 23 * (0.25 if is_float else 1) + 30).astype(kind)
            name = f"scaleoffset_{'le' if order == '<' else 'be'}_{letter}"
            filters = (6, (0, 2) if is_float else (2, 0))
            stored(f, name, h5t.py_create(kind), numbers.tobytes(), 25, filters)
            stored(f, f"{name}_filled", h5t.py_create(kind), numbers.tobytes(), 25, filters, fill=kind.type(31))
            # Nothing is packed where the numbers take all bits.
            noise = np.linspace(-3e38, 3e38, 20) if is_float else np.frombuffer(rng.bytes(20 * kind.itemsize), kind)
            stored(f, f"{name}_noise", h5t.py_create(kind), noise.astype(kind).tobytes(), 20, filters)
    stored(f, "scaleoffset_constant", h5t.STD_I32LE, np.full(20, -5, "<i4").tobytes(), 20, (6, (2, 0)))
    stored(f, "scaleoffset_all_bits", h5t.STD_I32LE, np.arange(20, dtype="<i4").tobytes(), 20, (6, (2, 32)))
    stored(f, "scaleoffset_tens", h5t.IEEE_F64LE, (np.arange(20.0) * 1000).tobytes(), 20, (6, (0, 2**32 - 2)))

    # Some of each sixteen bytes, and more parameters than libhdf5 tells: these go through the worker.
    stored(f, "nbit_long_double", h5t.NATIVE_LDOUBLE, np.linspace(-2, 2, 20).astype("g").tobytes(), 20, (5, ()))
    kind = h5t.create(h5t.COMPOUND, 2 * 70)
    for i in range(70):
        kind.insert(f"m{i}".encode(), 2 * i, integer_type(2, False, "little", 9 + i % 7, i % 2))
    stored(f, "nbit_many_members", kind, rng.integers(0, 512, 700, "<u2").tobytes(), 5, (5, ()))
record_stored(os.path.join(folder, "store_packed.h5"))

# What scripts/pipelines makes at length.
with create("store_pipelines.h5", libver="latest") as f:
    for i in range(80):
        pipelines.dataset(f, f"d{i}", np.random.default_rng([2, i]))
record_stored(os.path.join(folder, "store_pipelines.h5"))


def variable(f):
    texts = ["", "a", "é" * 3, "x" * 5000, "end"] + [f"row {i}" for i in range(120)]
    text = h5py.string_dtype()
    f.create_dataset("strings", data=texts, dtype=text)
    f.create_dataset("strings_chunked", data=texts, dtype=text, chunks=(16,), compression="gzip", shuffle=True)
    holes = f.create_dataset("strings_holes", shape=(40,), dtype=text, chunks=(8,), fillvalue="none")
    holes[10] = "here"
    ragged = f.create_dataset("ragged", shape=(30,), dtype=h5py.vlen_dtype("<f8"), chunks=(7,))
    for i in range(30):
        ragged[i] = np.arange(i % 5) + i
    pair = np.dtype([("id", "<i4"), ("name", text), ("more", text)])
    rows = np.array([(i, f"n{i}", "m" * i) for i in range(12)], dtype=pair)
    f.create_dataset("pairs", data=rows, chunks=(5,))
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_layout(h5d.COMPACT)
    d = h5d.create(f.id, b"strings_compact", h5t.py_create(text, logical=True), h5s.create_simple((3,)), dcpl)
    h5py.Dataset(d)[...] = ["one", "", "three"]
    nested = h5py.vlen_dtype(text)
    lists = [["a", "bc"], [], ["déf"] * 3, ["", "x" * 300]] * 5
    chunked = f.create_dataset("nested", shape=(20,), dtype=nested, chunks=(6,), compression="gzip")
    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_layout(h5d.COMPACT)
    d = h5d.create(f.id, b"nested_compact", h5t.py_create(nested, logical=True), h5s.create_simple((20,)), dcpl)
    for i, texts in enumerate(lists):
        for dataset in (chunked, h5py.Dataset(d)):
            dataset[i] = np.array(texts, dtype=object)


for name, sizes in (("store_variable.h5", None), ("store_variable_narrow.h5", (4, 4))):
    path = os.path.join(folder, name)
    if sizes:
        if os.path.exists(path):
            os.remove(path)
        fcpl = h5p.create(h5p.FILE_CREATE)
        fcpl.set_sizes(*sizes)
        fcpl.set_userblock(1024)
        f = h5py.File(h5py.h5f.create(path.encode(), h5py.h5f.ACC_TRUNC, fcpl=fcpl))
    else:
        f = create(name)
    with f:
        variable(f)
    record(path)

def compressors(f):
    """Bitshuffle, Blosc and Blosc2 in every way that chunks of a few hundred elements show."""
    rng = np.random.default_rng(5)
    data = np.cumsum(rng.integers(-3, 9, 500)).astype("<i4")
    noise = rng.integers(0, 256, 500).astype("u1")
    odd = np.frombuffer(np.repeat(rng.integers(0, 9, 70), 50).astype("u1").tobytes(), "V7")

    def filtered(name, option, data=data, chunks=(250,), **more):
        f.create_dataset(name, data=data, chunks=chunks, **option, **more)

    filtered("bzip2", hdf5plugin.BZip2())
    filtered("bzip2_noise", hdf5plugin.BZip2(blocksize=1), noise)
    for compressor in ("none", "lz4", "zstd"):
        filtered(f"bitshuffle_{compressor}", hdf5plugin.Bitshuffle(cname=compressor))
        filtered(f"bitshuffle_{compressor}_blocks", hdf5plugin.Bitshuffle(nelems=24, cname=compressor))
        filtered(f"bitshuffle_{compressor}_odd", hdf5plugin.Bitshuffle(nelems=64, cname=compressor), odd)
    filtered("bitshuffle_noise", hdf5plugin.Bitshuffle(cname="lz4"), noise, fletcher32=True)
    for compressor in ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"):
        for i, order in enumerate(("plain", "bytes", "bits")):
            filtered(f"blosc_{compressor}_{order}", hdf5plugin.Blosc(cname=compressor, clevel=3 * i + 1, shuffle=i))
    filtered("blosc_copied", hdf5plugin.Blosc(clevel=0))
    filtered("blosc_noise", hdf5plugin.Blosc(), noise)
    filtered("blosc_odd", hdf5plugin.Blosc(cname="blosclz"), odd)
    filtered("blosc_odd_bits", hdf5plugin.Blosc(shuffle=hdf5plugin.Blosc.BITSHUFFLE), odd)
    filtered("shuffle_blosc", hdf5plugin.Blosc(shuffle=0), shuffle=True)
    # Read from the environment by the compressor: 540 bytes are 135 elements, split, and a shorter block at the end.
    os.environ["BLOSC_BLOCKSIZE"] = "540"
    filtered("blosc_blocks", hdf5plugin.Blosc(cname="lz4"))
    filtered("blosc_blocks_fletcher32", hdf5plugin.Blosc(cname="zstd", shuffle=2), fletcher32=True)
    del os.environ["BLOSC_BLOCKSIZE"]
    masked = f.create_dataset("blosc_masked", shape=(500,), dtype="<i4", chunks=(250,), **hdf5plugin.Blosc())
    masked[:] = data
    masked.id.write_direct_chunk((250,), data[:250].tobytes(), filter_mask=1)

    def blosc2_options(block=0, compressor="lz4", filters=1, level=5):
        """Bytes of a block stand where hdf5plugin has no option for them."""
        codes = {"blosclz": 0, "lz4": 1, "lz4hc": 2, "zlib": 4, "zstd": 5}
        return {"compression": 32026, "compression_opts": (0, block, 0, 0, level, filters, codes[compressor])}

    for compressor in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        for i, order in enumerate(("plain", "bytes", "bits", "delta")):
            filtered(f"blosc2_{compressor}_{order}", blosc2_options(540, compressor, i, 2 * i + 1))
    filtered("blosc2_copied", blosc2_options(level=0))
    filtered("blosc2_noise", blosc2_options(), noise)
    filtered("blosc2_zeros", blosc2_options(), data * 0)
    filtered("blosc2_same", blosc2_options(), data * 0 + 0x01020304)
    filtered("blosc2_runs", blosc2_options(540), np.repeat(np.arange(4, dtype="<i4") * 0x00070000, 125))
    filtered("blosc2_odd", blosc2_options(70), odd)
    filtered("blosc2_odd_bits", blosc2_options(filters=2), odd)
    filtered("blosc2_fletcher32", blosc2_options(filters=2), fletcher32=True)
    square, cube = data[:460].reshape(23, 20), data[:468].reshape(13, 6, 6)
    filtered("blosc2_square", blosc2_options(128), square, (11, 7))
    filtered("blosc2_square_delta", blosc2_options(64, filters=3), square, (23, 20))
    filtered("blosc2_square_zeros", blosc2_options(128), square * 0, (11, 7))
    filtered("blosc2_square_copied", blosc2_options(128, level=0), square, (11, 7))
    filtered("blosc2_cube", blosc2_options(160, "zstd"), cube, (13, 5, 3))
    filtered("blosc2_cube_rows", blosc2_options(288), cube, (13, 6, 6))
    filtered("blosc2_square_fletcher32", blosc2_options(128), square, (11, 7), fletcher32=True)

    # Frames by Blosc2 itself, of kinds that its HDF5 filter reads and does not write.
    def frames(name, dtype, *chunks):
        d = f.create_dataset(name, shape=(100 * len(chunks),), dtype=dtype, chunks=(100,), **blosc2_options())
        for i, chunk in enumerate(chunks):
            d.id.write_direct_chunk((100 * i,), chunk.to_cframe())

    def special(dtype, kind, **more):
        size = np.dtype(dtype).itemsize
        chunk = blosc2.SChunk(chunksize=100 * size, cparams={"typesize": size})
        chunk.fill_special(100, kind, **more)
        return chunk

    for dtype in ("<f4", "<f8"):
        constant = special(dtype, blosc2.SpecialValue.VALUE, value=np.dtype(dtype).type(2.5))
        special_values = [special(dtype, getattr(blosc2.SpecialValue, kind)) for kind in ("NAN", "ZERO")]
        frames(f"blosc2_special_{dtype[1:]}", dtype, *special_values, constant)

    def piped(*filters, meta=(0, 0)):
        meta = [*meta, 0][: len(filters)]
        cparams = {"typesize": 4, "filters": list(filters), "filters_meta": meta, "blocksize": 160}
        return blosc2.SChunk(chunksize=400, data=np.sqrt(np.arange(100, dtype="<f4")), cparams=cparams)

    kind = blosc2.Filter
    frames(
        "blosc2_pipelines",
        "<f4",
        piped(kind.TRUNC_PREC, kind.NOFILTER, kind.SHUFFLE, meta=(9, 0)),
        # Of three filters at once Blosc2 3.3 does not give back what was put in.
        piped(kind.DELTA, kind.SHUFFLE),
        piped(kind.SHUFFLE, kind.DELTA),
        piped(kind.SHUFFLE, kind.BITSHUFFLE, meta=(2, 0)),
    )


with create("store_codecs.h5") as f:
    compressors(f)
record(os.path.join(folder, "store_codecs.h5"))


def virtual(f, name, shape, dtype, mappings, fill=None, maximum=None):
    """A virtual dataset of mappings `(selection, source, extent of the source, selection in it[, its file])`, each
    selection a `(start, count, stride, block)` or None for everything."""

    def space(shape, selection, maximum=None):
        space = h5s.create_simple(shape, maximum)
        if selection is not None:
            space.select_hyperslab(*selection)
        return space

    dcpl = h5p.create(h5p.DATASET_CREATE)
    dcpl.set_layout(h5d.VIRTUAL)
    if fill is not None:
        dcpl.set_fill_value(np.array(fill, dtype))
    for to, source, extent, selection, *file in mappings:
        unlimited = maximum and selection and selection[1][0] == h5s.UNLIMITED
        from_space = space(extent, selection, maximum if unlimited else None)
        dcpl.set_virtual(space(shape, to, maximum), (file or ["."])[0].encode(), source.encode(), from_space)
    kind = h5t.py_create(np.dtype(dtype), logical=True)
    return h5py.Dataset(h5d.create(f.id, name.encode(), kind, h5s.create_simple(shape, maximum), dcpl))


def box(start, block):
    return start, (1,) * len(start), (1,) * len(start), block


def virtuals(f, rng):
    """Virtual datasets of all kinds: `v_` that are ranges of others, `w_` that libhdf5 alone reads."""
    f.create_dataset("raw", data=line.astype("<i8"), chunks=(20,), shuffle=True, compression="gzip")
    f.create_dataset("whole", data=line.astype("<i8"))
    holes = f.create_dataset("holes", shape=(100,), dtype="<i8", chunks=(16,), compression="gzip", fillvalue=-9)
    holes[20:30] = 5
    f.create_dataset("rows", data=rng.integers(0, 99, (50, 3)).astype("<i8"), chunks=(8, 3), compression="gzip")
    f.create_dataset("narrow", data=line[:100].astype("<i4"))
    shrunk = f.create_dataset("shrunk", data=line[:100].astype("<i8"), chunks=(20,), maxshape=(None,))
    f.create_dataset("grown/0", data=line[:10].astype("<i8"))
    f.create_dataset("grown/1", data=line[10:20].astype("<i8"))
    f["soft"] = h5py.SoftLink("/grown/1")

    def chunks(order, size=20, extent=500, source="raw"):
        return [(box((i * size,), (size,)), source, (extent,), box((j * size,), (size,))) for i, j in enumerate(order)]

    def line_of(name, mappings, length=500, **options):
        virtual(f, name, (length,), "<i8", mappings, **options)

    line_of("v_chunks", chunks(range(25)))
    line_of("v_permuted", chunks(rng.permutation(25)))
    line_of("v_repeated", chunks([3, 3, 3, 4, 5, 3, 3]), 140)
    line_of("v_gaps", chunks(range(25))[2::3], fill=77)
    line_of("v_gaps_zero", chunks(range(25))[:20:7])
    line_of("v_nothing", [], 30, fill=4)
    line_of("v_two_sources", chunks([1, 2]) + [(box((40,), (100,)), "/holes", (100,), None)], 150, fill=6)
    line_of("v_everything", [(None, "whole", (500,), None)])
    line_of("v_soft", [(box((5,), (10,)), "soft", (10,), None)], 20)
    line_of("v_blocks", [(((0,), (3,), (20,), (20,)), "raw", (500,), ((40,), (6,), (10,), (10,)))], 60)
    own = os.path.basename(f.filename)
    line_of("v_own_name", [(box((0,), (500,)), "raw", (500,), None, own)])
    virtual(f, "v_rows", (30, 3), "<i8", [(box((5, 0), (20, 3)), "rows", (50, 3), box((7, 0), (20, 3)))], fill=1)
    virtual(f, "v_square", (2, 250), "<i8", [(box((1, 0), (1, 250)), "raw", (500,), box((9,), (250,)))], fill=1)
    virtual(f, "v_flat", (60,), "<i8", [(box((0,), (60,)), "rows", (50, 3), box((1, 0), (20, 3)))])
    # What only libhdf5 reads.
    line_of("w_overlap", [*chunks(range(3)), (box((10,), (20,)), "raw", (500,), box((400,), (20,)))], 60)
    line_of("w_converted", [(box((0,), (100,)), "narrow", (100,), None)], 100)
    line_of("w_strided", [(((1,), (50,), (2,), (1,)), "raw", (500,), box((0,), (50,)))], 101, fill=3)
    line_of("w_own_name", [(((0,), (50,), (2,), (1,)), "raw", (500,), box((0,), (50,)), own)], 100)
    line_of("w_missing", [(box((0,), (10,)), "nothing", (10,), None)], 20, fill=8)
    line_of("w_shrunk", [(box((0,), (100,)), "shrunk", (100,), box((0,), (100,)))], 100, fill=8)
    line_of("w_nested", [(box((0,), (100,)), "v_chunks", (500,), box((0,), (100,)))], 100)
    virtual(f, "w_columns", (50, 2), "<i8", [(None, "rows", (50, 3), box((0, 0), (50, 2)))])
    endless = (h5s.UNLIMITED,)
    line_of("w_numbered", [(((0,), endless, (10,), (10,)), "grown/%b", (10,), None)], 20, maximum=endless)
    shrunk.resize((60,))


# Mappings, selections, headers and fill values are stored otherwise by each version of the library.
for name, seed, options in [
    ("store_virtual.h5", rng, {"libver": "v110"}),
    ("store_virtual_earliest.h5", 8, {"libver": "earliest"}),
    ("store_virtual_v112.h5", 12, {"libver": "v112", "track_order": True}),
    ("store_virtual_latest.h5", 20, {"libver": "latest", "userblock_size": 512}),
]:
    with create(name, **options) as f:
        virtuals(f, np.random.default_rng(seed))
    record(os.path.join(folder, name))



def mapped(f, first, second, texts):
    """A virtual dataset of two runs of `raw`, and texts."""
    if "virtual" in f:
        del f["virtual"]
    mappings = [(box((10 * at,), (10,)), "raw", (100,), box((start,), (10,))) for at, start in enumerate((first, second))]
    virtual(f, "virtual", (20,), "<i8", mappings, fill=-first)
    f["texts"][...] = texts


# What was at the places of metadata before stays there: libhdf5 has all that is new in an image of its cache.
with create("store_image.h5", libver="latest") as f:
    f.create_dataset("raw", data=line[:100].astype("<i8"), chunks=(20,), compression="gzip")
    f.create_dataset("texts", (20,), h5py.string_dtype(), chunks=(8,), compression="gzip")
    mapped(f, 0, 50, [f"old {at}" for at in range(20)])
fapl = h5p.create(h5p.FILE_ACCESS)
fapl.set_fclose_degree(h5f.CLOSE_STRONG)
fapl.set_libver_bounds(h5f.LIBVER_LATEST, h5f.LIBVER_LATEST)
libhdf5.leave_cache_image(fapl)
path = os.path.join(folder, "store_image.h5")
with h5py.File(h5f.open(path.encode(), h5f.ACC_RDWR, fapl)) as f:
    mapped(f, 30, 70, [f"new {at}" for at in range(20)])
record(path)

# As Versioned HDF5 stores columns: each version of one is virtual, over the chunks of all versions in `raw_data`.
with create("store_versioned.h5") as f:
    versions = VersionedHDF5File(f)
    with versions.stage_version("first") as group:
        group.create_dataset("x", data=line.astype("<i8"), chunks=(50,), compression="gzip", shuffle=True)
        group.create_dataset("m", data=line.astype("<f4").reshape(100, 5), chunks=(30, 5), compression="gzip")
        group.create_dataset("s", data=np.array([f"text {i}" for i in range(40)], object), chunks=(16,))
    with versions.stage_version("second") as group:
        group["x"][120] = -5
        group["x"].resize((530,))
        group["m"][99] = 1
        group["s"][3] = "new"
    for version in ("first", "second"):
        for name in "xms":
            f[f"{name}_{version}"] = f[f"_version_data/versions/{version}/{name}"]
record(os.path.join(folder, "store_versioned.h5"))

# Long enough to be read ahead; the test knows its values.
with create("store_long.h5") as f:
    values = (np.arange(49_152, dtype="<u4") * 7) % 10_007
    f.create_dataset("long", data=values, chunks=(4096,), shuffle=True, compression="gzip")

# Read in turn, each read ahead; the test knows their values.
with create("store_turn.h5") as f:
    for i in range(8):
        f.create_dataset(f"{i}", data=(np.arange(1 << 20) % 251).astype("u1"), chunks=(8192,), compression="gzip")

# Chunks of 16 MiB, of which a reader may want the beginning alone; the test knows their values.
with create("store_large.h5") as f:
    values = (np.arange(1 << 24) % 251).astype("u1")
    filters = {
        "gzip": {"compression": "gzip", "compression_opts": 9},
        "zstd": hdf5plugin.Zstd(clevel=19),
        "lz4": hdf5plugin.LZ4(nbytes=1 << 20),
        "shuffle_gzip": {"shuffle": True, "compression": "gzip", "compression_opts": 9},
    }
    for name, options in filters.items():
        data = values.view("<i8") if name == "shuffle_gzip" else values
        f.create_dataset(name, data=data, chunks=data.shape, **options)

with open(os.path.join(folder, "store_raw.bin"), "wb") as f:
    f.write(b"\1\2\3\4")
with open(os.path.join(folder, "store_expected.json"), "w") as f:
    # One line for each dataset.
    files = []
    for name, datasets in expected.items():
        lines = [f"  {json.dumps(path)}: {json.dumps(value)}" for path, value in datasets.items()]
        files.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    f.write("{\n" + ",\n".join(files) + "\n}\n")
