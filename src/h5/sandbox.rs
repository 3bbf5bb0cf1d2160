//! The walls around a worker.

use std::io;

use super::protocol::{Hello, Sandbox};

/// Ends the worker with the daemon.
pub(super) fn die_with(parent: u32) -> io::Result<()> {
    // SAFETY: plain numbers.
    let orphan = unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 {
            return Err(io::Error::last_os_error());
        }
        // It may have died before we asked.
        libc::getppid() as u32 != parent
    };
    if orphan { Err(io::Error::other("the daemon is gone")) } else { Ok(()) }
}

/// Sets the resource limits.
pub(super) fn limit(hello: &Hello) -> io::Result<()> {
    let limits = [
        (libc::RLIMIT_AS, hello.memory),
        (libc::RLIMIT_CORE, 0),
        (libc::RLIMIT_FSIZE, 0),
        (libc::RLIMIT_NOFILE, if hello.follow.is_some() { 256 } else { 32 }),
    ];
    for (resource, value) in limits {
        let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
        // SAFETY: a valid limit.
        if unsafe { libc::setrlimit(resource, &limit) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Closes the sandbox.
pub(super) fn enter(_: &Hello) -> io::Result<Sandbox> {
    Ok(Sandbox::default())
}

/// Tries what should be forbidden.
pub(super) fn probe() -> Vec<(String, bool)> {
    vec![("open /etc/passwd".into(), std::fs::File::open("/etc/passwd").is_ok())]
}
