//! Settings of the memory allocator, and the libc that it belongs to.

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
        // SAFETY: sets a parameter of the allocator.
        unsafe { libc::mallopt(parameter, OWN_PAGES) };
    }
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
