//! What the allocator keeps of memory that was freed.

/// Bytes of an allocation that has pages of its own, which go back to the system when it ends. Decoded chunks of a few
/// hundred kilobytes are among them: between blocks that stay, what they leave is not given back.
#[cfg(target_env = "gnu")]
const OWN_PAGES: libc::c_int = 128 << 10;

/// Has large allocations given back to the system as soon as they end, for whoever wants little memory rather than
/// little time: threads keep what they freed, some 15 MB each. To be called before threads are started.
pub fn keep_little() {
    #[cfg(target_env = "gnu")]
    for parameter in [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD] {
        // SAFETY: sets a number of the allocator.
        unsafe { libc::mallopt(parameter, OWN_PAGES) };
    }
}
