//! Settings of the memory allocator, and the libc that it belongs to.

#[cfg(target_env = "gnu")]
use crate::store::cores;

/// An allocation of at least this many bytes gets pages of its own, which return to the system when it is freed.
/// Decoded chunks of a few hundred kilobytes are among them: within the heap, the gaps that they leave between lasting
/// blocks would never be returned.
#[cfg(target_env = "gnu")]
const OWN_PAGES: libc::c_int = 128 << 10;

/// Makes the allocator return large allocations to the system as soon as they are freed, trading time for memory:
/// otherwise each thread keeps some 15 MB. Call it before threads start.
pub fn keep_little() {
    #[cfg(target_env = "gnu")]
    for parameter in [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD] {
        set(parameter, OWN_PAGES);
    }
}

/// Lets threads share as many heaps as there are cores, so that one uses the memory that another has freed. With a heap
/// for each thread, a sixth of the memory of a table of many files would lie in gaps. Call it before threads start.
pub fn share_heaps() {
    #[cfg(target_env = "gnu")]
    set(libc::M_ARENA_MAX, libc::c_int::try_from(cores()).unwrap_or(libc::c_int::MAX));
}

#[cfg(target_env = "gnu")]
fn set(parameter: libc::c_int, value: libc::c_int) {
    // SAFETY: sets a parameter of the allocator.
    unsafe { libc::mallopt(parameter, value) };
}

/// Names the libc, with its version at run time where it tells one.
pub fn libc() -> String {
    // SAFETY: the function takes nothing, and returns a string that lives as long as the program.
    #[cfg(target_env = "gnu")]
    let name = format!("glibc {}", unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) }.to_string_lossy());
    #[cfg(not(target_env = "gnu"))]
    let name = "musl".to_owned();
    name
}
