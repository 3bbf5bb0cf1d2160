//! The sandbox of a worker: resource limits, Landlock, and a filter of system calls.
//!
//! The worker holds two descriptors, of its socket and of the source (none of an object), and needs nothing else.
//! Landlock forbids every path except those needed to follow other files or load plugins. The filter allows the few
//! calls that read a descriptor and manage memory, so even without Landlock a worker that neither follows nor loads can
//! open nothing. A forbidden call fails with `EPERM`, an ordinary error for libhdf5.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, make_bitflags, path_beneath_rules,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use crate::h5::protocol::{Hello, Sandbox};

/// Folders of libraries that a plugin itself may need.
const LIBRARY_FOLDERS: [&str; 6] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"];

/// Makes the kernel end the worker together with the daemon.
pub(super) fn die_with(parent: u32) -> io::Result<()> {
    // SAFETY: plain numbers.
    let orphan = unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 {
            return Err(io::Error::last_os_error());
        }
        // The daemon may have died before the call.
        libc::getppid() as u32 != parent
    };
    if orphan { Err(io::Error::other("the daemon is gone")) } else { Ok(()) }
}

/// Sets the resource limits.
pub(super) fn limit(hello: &Hello) -> io::Result<()> {
    let limits = [
        (libc::RLIMIT_AS, hello.memory),
        (libc::RLIMIT_CORE, 0),
        (libc::RLIMIT_FSIZE, if hello.write { libc::RLIM_INFINITY } else { 0 }),
        // Followed files stay open, and a virtual dataset may need many at once.
        (libc::RLIMIT_NOFILE, if hello.follow.is_some() { 2048 } else { 32 }),
    ];
    for (resource, value) in limits {
        let mut own = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a place for the answer.
        if unsafe { libc::getrlimit(resource, &mut own) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // A limit lowered before (`ulimit -v`) cannot be raised.
        let value = value.min(own.rlim_max);
        let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
        // SAFETY: a valid limit.
        if unsafe { libc::setrlimit(resource, &limit) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Closes the sandbox; the worker may write only to these descriptors. Parts that the kernel does not support are left
/// out and noted.
pub(super) fn enter(hello: &Hello, writable: Option<[RawFd; 2]>) -> io::Result<Sandbox> {
    // SAFETY: plain numbers.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut sandbox = Sandbox::default();
    match landlock(hello) {
        Ok(status) if status.ruleset != RulesetStatus::NotEnforced => sandbox.landlock = true,
        Ok(_) => sandbox.notes.push("this kernel has no Landlock".into()),
        Err(error) => sandbox.notes.push(format!("no Landlock: {error}")),
    }
    if hello.follow.is_some() && !sandbox.landlock {
        sandbox.notes.push("links to other files are not followed: nothing would confine them to their folder".into());
    }
    let follow = hello.follow.is_some() && sandbox.landlock;
    match seccomp(follow, hello.plugins.is_some(), writable) {
        Ok(()) => sandbox.seccomp = true,
        Err(error) => sandbox.notes.push(format!("no filter of system calls: {error}")),
    }
    Ok(sandbox)
}

fn landlock(hello: &Hello) -> Result<RestrictionStatus, RulesetError> {
    let path = |bytes| Path::new(OsStr::from_bytes(bytes));
    let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V6))?
        .handle_access(AccessNet::from_all(ABI::V6))?
        .scope(Scope::from_all(ABI::V6))?
        .create()?;
    if let Some(folder) = &hello.follow {
        rules = rules.add_rules(path_beneath_rules([path(folder)], read))?;
    }
    if let Some(plugins) = &hello.plugins {
        let folders = std::iter::once(path(plugins)).chain(LIBRARY_FOLDERS.map(Path::new));
        rules = rules.add_rules(path_beneath_rules(folders, read | AccessFs::Execute))?;
    }
    rules.restrict_self()
}

/// Calls that every worker needs.
const ALWAYS: &[i64] = &[
    // Open descriptors.
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_close,
    // Memory.
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_brk,
    libc::SYS_madvise,
    // Time, randomness, one thread.
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_restart_syscall,
    // Signals and exit.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Calls that open the paths allowed by Landlock.
const PATHS: &[i64] = &[
    libc::SYS_openat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_fcntl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
];

/// Calls by which libhdf5 checks whether it may open another file.
const FOLLOWING: &[i64] = &[
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
];

/// Calls in constructors of plugins and their libraries.
const PLUGINS: &[i64] = &[libc::SYS_uname, libc::SYS_sysinfo, libc::SYS_prlimit64, libc::SYS_getcwd];

/// Calls that change a file, each only for writable descriptors.
const WRITING: &[i64] = &[libc::SYS_pwrite64, libc::SYS_ftruncate, libc::SYS_fdatasync];

fn seccomp(follow: bool, plugins: bool, writable: Option<[RawFd; 2]>) -> Result<(), Box<dyn std::error::Error>> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ALWAYS.iter().map(|call| (*call, Vec::new())).collect();
    if follow || plugins {
        rules.extend(PATHS.iter().map(|call| (*call, Vec::new())));
    }
    if follow {
        rules.extend(FOLLOWING.iter().map(|call| (*call, Vec::new())));
    }
    if plugins {
        rules.extend(PLUGINS.iter().map(|call| (*call, Vec::new())));
    }
    // A plugin's code is mapped from its file. Written memory never becomes executable.
    let mut mapped = vec![lacks(2, libc::PROT_EXEC)?];
    if plugins {
        mapped.push(lacks(3, libc::MAP_ANONYMOUS)?);
    }
    rules.insert(libc::SYS_mmap, mapped);
    rules.insert(libc::SYS_mprotect, vec![lacks(2, libc::PROT_EXEC)?]);
    // `abort` sends a signal to its own thread; other processes get none. prlimit64 could set limits of others as well.
    let own = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, std::process::id() as u64)?;
    rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![own])?]);
    for call in writable.iter().flat_map(|_| WRITING) {
        let allowed = writable.iter().flatten().map(|descriptor| {
            // Descriptors are small numbers.
            let same = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, *descriptor as u64)?;
            SeccompRule::new(vec![same])
        });
        rules.insert(*call, allowed.collect::<Result<_, _>>()?);
    }
    if plugins {
        let self_only = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, 0)?;
        rules.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![self_only])?]);
    }
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Errno(libc::EPERM as u32),
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into()?,
    )?;
    let program: BpfProgram = filter.try_into()?;
    seccompiler::apply_filter(&program)?;
    Ok(())
}

fn lacks(argument: u8, flag: i32) -> Result<SeccompRule, seccompiler::BackendError> {
    let lacks = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(flag as u64), 0)?;
    SeccompRule::new(vec![lacks])
}

/// Tries forbidden actions; returns each, and whether it succeeded.
pub(super) fn probe() -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut attempt = |what: &str, worked: bool| found.push((what.to_owned(), worked));
    attempt("read a file", std::fs::read("/etc/passwd").is_ok());
    attempt("list a folder", std::fs::read_dir("/").is_ok());
    attempt("write a file", std::fs::write("/tmp/hepfs-probe", b"").is_ok());
    attempt("open a socket", std::net::UdpSocket::bind("127.0.0.1:0").is_ok());
    attempt("start a program", std::process::Command::new("/bin/true").spawn().is_ok());
    attempt("start a thread", std::thread::Builder::new().spawn(|| ()).is_ok());
    // SAFETY: calls without memory of ours; the signal 0 only tests permission.
    unsafe {
        attempt("signal the daemon", libc::kill(libc::getppid(), 0) == 0);
        attempt("trace the daemon", libc::syscall(libc::SYS_ptrace, 16, libc::getppid(), 0, 0) == 0);
        let (protection, flags) = (libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let executable = libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0);
        attempt("map executable memory", executable != libc::MAP_FAILED);
    }
    found
}
