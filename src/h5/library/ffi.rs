//! The C functions of libhdf5 that the worker calls.
//!
//! They are declared here, not taken from `hdf5-metno-sys` (which builds and links the library), for two reasons. Its
//! declarations return Rust enums for numbers out of the file (link classes, layouts), where an unknown number would be
//! undefined behaviour. Its virtual-file-driver and link-class structures are those of older versions. These are
//! checked against the headers of HDF5 2.2.0.

use std::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};

// Only for linking the static library.
use hdf5_metno_sys as _;

pub type Hid = i64;
pub type Herr = c_int;
pub type Htri = c_int;

pub const DEFAULT: Hid = 0;
/// `H5S_ALL`.
pub const ALL: Hid = 0;
/// `HADDR_UNDEF`.
pub const ADDRESS_UNDEFINED: u64 = u64::MAX;
/// `H5S_UNLIMITED`.
pub const UNLIMITED: u64 = u64::MAX;
/// `H5S_MAX_RANK`.
pub const MAX_RANK: usize = 32;

// H5I_type_t
pub const I_GROUP: c_int = 2;
pub const I_DATATYPE: c_int = 3;
pub const I_DATASET: c_int = 5;

// H5_index_t and H5_iter_order_t
pub const INDEX_NAME: c_int = 0;
pub const INDEX_CREATION: c_int = 1;
pub const ITER_INCREASING: c_int = 0;
pub const ITER_NATIVE: c_int = 2;

// H5L_type_t
pub const L_HARD: c_int = 0;
pub const L_SOFT: c_int = 1;
pub const L_EXTERNAL: c_int = 64;

// H5P: link creation order flags
pub const CREATION_ORDER_TRACKED: c_uint = 1;
pub const CREATION_ORDER_INDEXED: c_uint = 2;

// H5S_class_t
pub const S_NULL: c_int = 2;
pub const SELECT_SET: c_int = 0;

// H5S_sel_type
pub const SELECTION_HYPERSLABS: c_int = 2;
pub const SELECTION_ALL: c_int = 3;

// H5D_layout_t
pub const LAYOUT_COMPACT: c_int = 0;
pub const LAYOUT_CONTIGUOUS: c_int = 1;
pub const LAYOUT_CHUNKED: c_int = 2;
pub const LAYOUT_VIRTUAL: c_int = 3;

// H5D_chunk_index_t
pub const CHUNK_INDEX_TREE: c_int = 0;
pub const CHUNK_INDEX_TREE_2: c_int = 5;
pub const CHUNK_INDEX_EXTENSIBLE_ARRAY: c_int = 4;

// H5D_fill_value_t
pub const FILL_UNDEFINED: c_int = 0;
pub const FILL_DEFAULT: c_int = 1;
pub const FILL_USER: c_int = 2;

/// `H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS`.
pub const DONT_FILTER_PARTIAL_CHUNKS: c_uint = 2;
/// `H5Z_FLAG_OPTIONAL`.
pub const FILTER_OPTIONAL: c_uint = 1;

// H5T_class_t
pub const T_INTEGER: c_int = 0;
pub const T_FLOAT: c_int = 1;
pub const T_TIME: c_int = 2;
pub const T_STRING: c_int = 3;
pub const T_BITFIELD: c_int = 4;
pub const T_OPAQUE: c_int = 5;
pub const T_COMPOUND: c_int = 6;
pub const T_REFERENCE: c_int = 7;
pub const T_ENUM: c_int = 8;
pub const T_SEQUENCE: c_int = 9;
pub const T_ARRAY: c_int = 10;
pub const T_COMPLEX: c_int = 11;

// H5R_type_t
pub const R_OBJECT1: c_int = 0;
pub const R_REGION1: c_int = 1;
pub const R_OBJECT2: c_int = 2;
pub const R_REGION2: c_int = 3;
pub const R_ATTRIBUTE: c_int = 4;

// H5F_ACC_*
pub const ACC_RDONLY: c_uint = 0;
pub const ACC_RDWR: c_uint = 1;
/// Any flag that asks for more than reading: RDWR, TRUNC, EXCL, CREAT, SWMR_WRITE.
pub const ACC_WRITING: c_uint = 0x01 | 0x02 | 0x04 | 0x10 | 0x20;
pub const ACC_SWMR_READ: c_uint = 0x40;

// H5FD_FEAT_*
pub const FEATURE_ACCUMULATE_METADATA_READ: c_ulong = 0x04;
pub const FEATURE_DATA_SIEVE: c_ulong = 0x08;
pub const FEATURE_SWMR_IO: c_ulong = 0x1000;
pub const FEATURE_DEFAULT_COMPATIBLE: c_ulong = 0x8000;

/// `H5O_token_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectToken(pub [u8; 16]);

/// `H5O_info2_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ObjectInfo {
    pub file_number: c_ulong,
    pub token: ObjectToken,
    pub kind: c_int,
    pub references: c_uint,
    pub times: [i64; 4],
    pub attributes: u64,
}

/// `H5O_INFO_BASIC`.
pub const INFO_BASIC: c_uint = 1;

/// `H5L_info2_t`; `value` is the token of a hard link, else the size of the link's value in the first eight bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LinkInfo {
    pub kind: c_int,
    pub creation_valid: bool,
    pub creation: i64,
    pub charset: c_int,
    pub value: LinkValue,
}

/// The union in `H5L_info2_t`.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct LinkValue(pub [u8; 16]);

/// `H5AC_cache_config_t`, which `H5Pget_mdc_config` fills in.
#[repr(C)]
pub struct MetadataCache {
    version: c_int,
    reports: [bool; 3],
    trace_file: [c_char; 1025],
    evictions: bool,
    pub set_initial_size: bool,
    pub initial_size: usize,
    min_clean_fraction: f64,
    pub max_size: usize,
    pub min_size: usize,
    epoch_length: c_long,
    increment_mode: c_int,
    lower_hit_rate: f64,
    increment: f64,
    apply_max_increment: bool,
    max_increment: usize,
    flash_mode: c_int,
    flash_multiple: f64,
    flash_threshold: f64,
    decrement_mode: c_int,
    upper_hit_rate: f64,
    decrement: f64,
    apply_max_decrement: bool,
    max_decrement: usize,
    epochs_before_eviction: c_int,
    apply_empty_reserve: bool,
    empty_reserve: f64,
    dirty_bytes: usize,
    write_strategy: c_int,
}

impl Default for MetadataCache {
    fn default() -> Self {
        // SAFETY: numbers and truth values alone, all of which may be zero.
        Self { version: 1, ..unsafe { std::mem::zeroed() } }
    }
}

/// `H5G_info_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct GroupInfo {
    pub storage: c_int,
    pub links: u64,
    pub most_creation: i64,
    pub mounted: bool,
}

/// `H5F_info2_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct FileInfo2 {
    pub superblock_version: c_uint,
    pub superblock_size: u64,
    pub superblock_extension_size: u64,
    pub free_version: c_uint,
    pub free_meta: u64,
    pub free_total: u64,
    pub shared_version: c_uint,
    pub shared_header: u64,
    pub shared_messages: [u64; 2],
}

/// `H5E_error2_t`.
#[repr(C)]
pub struct ErrorEntry {
    pub class: Hid,
    pub major: Hid,
    pub minor: Hid,
    pub line: c_uint,
    pub function: *const c_char,
    pub file: *const c_char,
    pub description: *const c_char,
}

/// `hvl_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Vlen {
    pub length: usize,
    pub pointer: *const u8,
}

/// `H5R_ref_t`.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct Reference(pub [u8; 64]);

/// `H5L_class_t`, version 1.
#[repr(C)]
pub struct LinkClass {
    pub version: c_int,
    pub kind: c_int,
    pub comment: *const c_char,
    pub create: Option<unsafe extern "C" fn()>,
    pub rename: Option<unsafe extern "C" fn()>,
    pub copy: Option<unsafe extern "C" fn()>,
    pub traverse: Option<unsafe extern "C" fn(*const c_char, Hid, *const c_void, usize, Hid, Hid) -> Hid>,
    pub delete: Option<unsafe extern "C" fn()>,
    pub query: Option<unsafe extern "C" fn(*const c_char, *const c_void, usize, *mut c_void, usize) -> isize>,
}

/// `H5FD_t`: the public head of an open file of a driver.
#[repr(C)]
pub struct DriverFile {
    pub driver: Hid,
    pub class: *const DriverClass,
    pub serial: c_ulong,
    pub access_flags: c_uint,
    pub feature_flags: c_ulong,
    pub max_address: u64,
    pub base_address: u64,
    pub threshold: u64,
    pub alignment: u64,
    pub paged: bool,
}

/// A callback that the driver lacks.
pub type AbsentCallback = Option<unsafe extern "C" fn()>;

/// `H5FD_class_t`, version 1.
#[repr(C)]
pub struct DriverClass {
    pub version: c_uint,
    pub value: c_int,
    pub name: *const c_char,
    pub max_address: u64,
    pub close_degree: c_int,
    pub terminate: AbsentCallback,
    pub superblock_size: AbsentCallback,
    pub superblock_encode: AbsentCallback,
    pub superblock_decode: AbsentCallback,
    pub fapl_size: usize,
    pub fapl_get: AbsentCallback,
    pub fapl_copy: AbsentCallback,
    pub fapl_free: AbsentCallback,
    pub dxpl_size: usize,
    pub dxpl_copy: AbsentCallback,
    pub dxpl_free: AbsentCallback,
    pub open: Option<unsafe extern "C" fn(*const c_char, c_uint, Hid, u64) -> *mut DriverFile>,
    pub close: Option<unsafe extern "C" fn(*mut DriverFile) -> Herr>,
    pub compare: Option<unsafe extern "C" fn(*const DriverFile, *const DriverFile) -> c_int>,
    pub query: Option<unsafe extern "C" fn(*const DriverFile, *mut c_ulong) -> Herr>,
    pub type_map: AbsentCallback,
    pub alloc: AbsentCallback,
    pub free: Option<unsafe extern "C" fn(*mut DriverFile, c_int, Hid, u64, u64) -> Herr>,
    pub get_eoa: Option<unsafe extern "C" fn(*const DriverFile, c_int) -> u64>,
    pub set_eoa: Option<unsafe extern "C" fn(*mut DriverFile, c_int, u64) -> Herr>,
    pub get_eof: Option<unsafe extern "C" fn(*const DriverFile, c_int) -> u64>,
    pub handle: AbsentCallback,
    pub read: Option<unsafe extern "C" fn(*mut DriverFile, c_int, Hid, u64, usize, *mut c_void) -> Herr>,
    pub write: Option<unsafe extern "C" fn(*mut DriverFile, c_int, Hid, u64, usize, *const c_void) -> Herr>,
    pub read_vector: AbsentCallback,
    pub write_vector: AbsentCallback,
    pub read_selection: AbsentCallback,
    pub write_selection: AbsentCallback,
    pub flush: AbsentCallback,
    pub truncate: Option<unsafe extern "C" fn(*mut DriverFile, Hid, bool) -> Herr>,
    pub lock: Option<unsafe extern "C" fn(*mut DriverFile, bool) -> Herr>,
    pub unlock: Option<unsafe extern "C" fn(*mut DriverFile) -> Herr>,
    pub delete: AbsentCallback,
    pub control: AbsentCallback,
    pub free_lists: [c_int; 7],
}

// SAFETY: a class is constant data; its pointers lead to constants and functions.
unsafe impl Sync for DriverClass {}
// SAFETY: as above.
unsafe impl Sync for LinkClass {}

pub type LinkCallback = unsafe extern "C" fn(Hid, *const c_char, *const LinkInfo, *mut c_void) -> Herr;
pub type AttributeCallback = unsafe extern "C" fn(Hid, *const c_char, *const c_void, *mut c_void) -> Herr;
pub type ChunkCallback = unsafe extern "C" fn(*const u64, c_uint, u64, u64, *mut c_void) -> c_int;
pub type ErrorCallback = unsafe extern "C" fn(c_uint, *const ErrorEntry, *mut c_void) -> Herr;

unsafe extern "C" {
    pub static H5P_CLS_FILE_ACCESS_ID_g: Hid;
    pub static H5T_STD_REF_OBJ_g: Hid;
    pub static H5T_STD_REF_DSETREG_g: Hid;

    pub fn H5open() -> Herr;
    pub fn H5dont_atexit() -> Herr;
    pub fn H5free_memory(memory: *mut c_void) -> Herr;

    pub fn H5Eset_auto2(stack: Hid, function: *const c_void, data: *mut c_void) -> Herr;
    pub fn H5Ewalk2(stack: Hid, direction: c_int, function: ErrorCallback, data: *mut c_void) -> Herr;
    pub fn H5Eclear2(stack: Hid) -> Herr;

    pub fn H5Idec_ref(id: Hid) -> c_int;
    pub fn H5Iget_type(id: Hid) -> c_int;
    pub fn H5Iget_file_id(id: Hid) -> Hid;

    pub fn H5FDregister(class: *const DriverClass) -> Hid;
    pub fn H5Fopen(name: *const c_char, flags: c_uint, fapl: Hid) -> Hid;
    pub fn H5Fget_create_plist(file: Hid) -> Hid;
    pub fn H5Fget_info2(object: Hid, info: *mut FileInfo2) -> Herr;
    pub fn H5Fget_mdc_image_info(file: Hid, address: *mut u64, size: *mut u64) -> Herr;
    pub fn H5Fget_mdc_config(file: Hid, config: *mut MetadataCache) -> Herr;
    pub fn H5Fset_mdc_config(file: Hid, config: *const MetadataCache) -> Herr;

    pub fn H5Pcreate(class: Hid) -> Hid;
    pub fn H5Pset_driver(fapl: Hid, driver: Hid, info: *const c_void) -> Herr;
    pub fn H5Pset_file_locking(fapl: Hid, locking: bool, ignore_when_disabled: bool) -> Herr;
    pub fn H5Pset_cache(fapl: Hid, unused: c_int, slots: usize, bytes: usize, preemption: f64) -> Herr;
    pub fn H5Pget_mdc_config(fapl: Hid, config: *mut MetadataCache) -> Herr;
    pub fn H5Pset_mdc_config(fapl: Hid, config: *const MetadataCache) -> Herr;
    pub fn H5Pget_userblock(fcpl: Hid, size: *mut u64) -> Herr;
    pub fn H5Pget_sizes(fcpl: Hid, address: *mut usize, length: *mut usize) -> Herr;
    pub fn H5Pget_link_creation_order(gcpl: Hid, flags: *mut c_uint) -> Herr;
    pub fn H5Pget_layout(dcpl: Hid) -> c_int;
    pub fn H5Pget_chunk(dcpl: Hid, rank: c_int, dims: *mut u64) -> c_int;
    pub fn H5Pget_chunk_opts(dcpl: Hid, options: *mut c_uint) -> Herr;
    pub fn H5Pget_nfilters(dcpl: Hid) -> c_int;
    pub fn H5Pget_filter2(
        dcpl: Hid,
        index: c_uint,
        flags: *mut c_uint,
        count: *mut usize,
        values: *mut c_uint,
        name_size: usize,
        name: *mut c_char,
        config: *mut c_uint,
    ) -> c_int;
    pub fn H5Pfill_value_defined(dcpl: Hid, status: *mut c_int) -> Herr;
    pub fn H5Pget_fill_value(dcpl: Hid, datatype: Hid, value: *mut c_void) -> Herr;
    pub fn H5Pget_virtual_count(dcpl: Hid, count: *mut usize) -> Herr;
    pub fn H5Pget_virtual_filename(dcpl: Hid, index: usize, name: *mut c_char, size: usize) -> isize;
    pub fn H5Pget_virtual_dsetname(dcpl: Hid, index: usize, name: *mut c_char, size: usize) -> isize;
    pub fn H5Pget_virtual_vspace(dcpl: Hid, index: usize) -> Hid;
    pub fn H5Pget_virtual_srcspace(dcpl: Hid, index: usize) -> Hid;
    pub fn H5Pget_external_count(dcpl: Hid) -> c_int;
    pub fn H5Pget_external(
        dcpl: Hid,
        index: c_uint,
        name_size: usize,
        name: *mut c_char,
        offset: *mut i64,
        size: *mut u64,
    ) -> Herr;

    pub fn H5PLset_loading_state(mask: c_uint) -> Herr;
    pub fn H5PLsize(count: *mut c_uint) -> Herr;
    pub fn H5PLremove(index: c_uint) -> Herr;
    pub fn H5PLappend(path: *const c_char) -> Herr;

    pub fn H5Zfilter_avail(filter: c_int) -> Htri;

    pub fn H5Oopen_by_token(location: Hid, token: ObjectToken) -> Hid;
    pub fn H5Oget_info3(object: Hid, info: *mut ObjectInfo, fields: c_uint) -> Herr;
    pub fn H5Gget_create_plist(group: Hid) -> Hid;
    pub fn H5Gget_info(group: Hid, info: *mut GroupInfo) -> Herr;

    pub fn H5Lregister(class: *const LinkClass) -> Herr;
    pub fn H5Literate2(
        group: Hid,
        index: c_int,
        order: c_int,
        position: *mut u64,
        function: LinkCallback,
        data: *mut c_void,
    ) -> Herr;
    pub fn H5Lget_info2(location: Hid, name: *const c_char, info: *mut LinkInfo, lapl: Hid) -> Herr;
    pub fn H5Lget_val(location: Hid, name: *const c_char, buffer: *mut c_void, size: usize, lapl: Hid) -> Herr;
    pub fn H5Lunpack_elink_val(
        value: *const c_void,
        size: usize,
        flags: *mut c_uint,
        file: *mut *const c_char,
        path: *mut *const c_char,
    ) -> Herr;

    pub fn H5Aiterate2(
        location: Hid,
        index: c_int,
        order: c_int,
        position: *mut u64,
        function: AttributeCallback,
        data: *mut c_void,
    ) -> Herr;
    pub fn H5Aexists(object: Hid, name: *const c_char) -> Htri;
    pub fn H5Aopen(object: Hid, name: *const c_char, aapl: Hid) -> Hid;
    pub fn H5Aget_type(attribute: Hid) -> Hid;
    pub fn H5Aget_space(attribute: Hid) -> Hid;
    pub fn H5Aread(attribute: Hid, datatype: Hid, buffer: *mut c_void) -> Herr;

    pub fn H5Dget_type(dataset: Hid) -> Hid;
    pub fn H5Dget_space(dataset: Hid) -> Hid;
    pub fn H5Dget_create_plist(dataset: Hid) -> Hid;
    pub fn H5Dget_offset(dataset: Hid) -> u64;
    pub fn H5Dget_chunk_index_type(dataset: Hid, kind: *mut c_int) -> Herr;
    pub fn H5Dget_chunk_storage_size(dataset: Hid, offset: *const u64, bytes: *mut u64) -> Herr;
    pub fn H5Dchunk_iter(dataset: Hid, dxpl: Hid, function: ChunkCallback, data: *mut c_void) -> Herr;
    pub fn H5Dread(
        dataset: Hid,
        datatype: Hid,
        memory_space: Hid,
        file_space: Hid,
        dxpl: Hid,
        buffer: *mut c_void,
    ) -> Herr;

    pub fn H5Screate_simple(rank: c_int, dims: *const u64, max: *const u64) -> Hid;
    pub fn H5Sget_simple_extent_type(space: Hid) -> c_int;
    pub fn H5Sget_simple_extent_ndims(space: Hid) -> c_int;
    pub fn H5Sget_simple_extent_dims(space: Hid, dims: *mut u64, max: *mut u64) -> c_int;
    pub fn H5Sselect_hyperslab(
        space: Hid,
        operation: c_int,
        start: *const u64,
        stride: *const u64,
        count: *const u64,
        block: *const u64,
    ) -> Herr;
    pub fn H5Sget_select_type(space: Hid) -> c_int;
    pub fn H5Sis_regular_hyperslab(space: Hid) -> Htri;
    pub fn H5Sget_regular_hyperslab(
        space: Hid,
        start: *mut u64,
        stride: *mut u64,
        count: *mut u64,
        block: *mut u64,
    ) -> Herr;
    pub fn H5Sencode2(space: Hid, buffer: *mut c_void, size: *mut usize, fapl: Hid) -> Herr;

    pub fn H5Tget_class(datatype: Hid) -> c_int;
    pub fn H5Tget_size(datatype: Hid) -> usize;
    pub fn H5Tget_order(datatype: Hid) -> c_int;
    pub fn H5Tget_sign(datatype: Hid) -> c_int;
    pub fn H5Tget_precision(datatype: Hid) -> usize;
    pub fn H5Tget_offset(datatype: Hid) -> c_int;
    pub fn H5Tget_fields(
        datatype: Hid,
        sign: *mut usize,
        exponent_position: *mut usize,
        exponent_size: *mut usize,
        mantissa_position: *mut usize,
        mantissa_size: *mut usize,
    ) -> Herr;
    pub fn H5Tget_ebias(datatype: Hid) -> usize;
    pub fn H5Tget_norm(datatype: Hid) -> c_int;
    pub fn H5Tis_variable_str(datatype: Hid) -> Htri;
    pub fn H5Tget_strpad(datatype: Hid) -> c_int;
    pub fn H5Tget_cset(datatype: Hid) -> c_int;
    pub fn H5Tget_tag(datatype: Hid) -> *mut c_char;
    pub fn H5Tget_nmembers(datatype: Hid) -> c_int;
    pub fn H5Tget_member_name(datatype: Hid, index: c_uint) -> *mut c_char;
    pub fn H5Tget_member_offset(datatype: Hid, index: c_uint) -> usize;
    pub fn H5Tget_member_type(datatype: Hid, index: c_uint) -> Hid;
    pub fn H5Tget_member_value(datatype: Hid, index: c_uint, value: *mut c_void) -> Herr;
    pub fn H5Tget_super(datatype: Hid) -> Hid;
    pub fn H5Tget_array_ndims(datatype: Hid) -> c_int;
    pub fn H5Tget_array_dims2(datatype: Hid, dims: *mut u64) -> c_int;
    pub fn H5Tequal(a: Hid, b: Hid) -> Htri;
    pub fn H5Treclaim(datatype: Hid, space: Hid, dxpl: Hid, buffer: *mut c_void) -> Herr;

    pub fn H5Rdereference2(object: Hid, oapl: Hid, kind: c_int, reference: *const c_void) -> Hid;
    pub fn H5Rget_type(reference: *const Reference) -> c_int;
    pub fn H5Ropen_object(reference: *mut Reference, rapl: Hid, oapl: Hid) -> Hid;
    pub fn H5Ropen_region(reference: *mut Reference, rapl: Hid, oapl: Hid) -> Hid;
    pub fn H5Rget_attr_name(reference: *const Reference, name: *mut c_char, size: usize) -> isize;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes from a C program over the same headers (x86-64 and aarch64 Linux agree).
    #[test]
    fn layouts_are_those_of_c() {
        assert_eq!(size_of::<ObjectInfo>(), 72);
        assert_eq!(size_of::<LinkInfo>(), 40);
        assert_eq!(size_of::<FileInfo2>(), 80);
        assert_eq!(size_of::<DriverFile>(), 80);
        assert_eq!(size_of::<DriverClass>(), 336);
        assert_eq!(size_of::<LinkClass>(), 64);
        assert_eq!(size_of::<ErrorEntry>(), 56);
    }
}
