//! Settings of a system that keep users from namespaces, and from mounts in them.

use std::fmt;
use std::fs;
use std::io;

use rustix::system::uname;

/// The first Linux in which a user may mount FUSE in a namespace: its number, major and minor.
pub(super) const FIRST_LINUX: (u32, u32) = (4, 18);

pub(super) const MAX_NAMESPACES: &str = "user.max_user_namespaces";
pub(super) const MAX_MOUNT_NAMESPACES: &str = "user.max_mnt_namespaces";
pub(super) const CLONE: &str = "kernel.unprivileged_userns_clone";
pub(super) const APPARMOR: &str = "kernel.apparmor_restrict_unprivileged_userns";

/// Why the kernel refuses a namespace, or a mount in one. Its text says what allows it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Lock {
    /// The kernel's release, which is too old.
    Kernel(String),
    /// `user.max_user_namespaces` or `user.max_mnt_namespaces`, with its value: none or no more.
    MaxNamespaces(&'static str, u64),
    /// `kernel.unprivileged_userns_clone` is 0, a setting of Debian's kernels.
    Clone,
    /// `kernel.apparmor_restrict_unprivileged_userns` is 1, as on Ubuntu.
    AppArmor,
    /// The process is in a chroot.
    ChangedRoot,
    /// A filter of system calls, as containers have.
    Seccomp(io::Error),
    /// None of these.
    Other(io::Error),
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel(release) => {
                write!(f, "Linux {release} has no FUSE in user namespaces; {}.{} has", FIRST_LINUX.0, FIRST_LINUX.1)
            }
            Self::MaxNamespaces(name, 0) => {
                write!(f, "{name} is 0; as root, `sysctl {name}=15000` allows namespaces")
            }
            Self::MaxNamespaces(name, most) => write!(f, "there are {most} namespaces already ({name})"),
            Self::ChangedRoot => write!(f, "the root folder is no mount (chroot), so the kernel gives no namespace"),
            Self::Clone => write!(f, "{CLONE} is 0; as root, `sysctl {CLONE}=1` allows user namespaces"),
            Self::AppArmor => write!(
                f,
                "{APPARMOR} is 1; the .deb of hepfs brings a profile that allows user namespaces to /usr/bin/hepfs; \
                 or, as root, `sysctl {APPARMOR}=0` allows them to all"
            ),
            Self::Seccomp(error) => write!(
                f,
                "a filter of system calls (seccomp) refuses user namespaces ({error}); a container has none with \
                 `--security-opt seccomp=unconfined`"
            ),
            Self::Other(error) => write!(f, "the kernel refuses user namespaces, or a mount in one ({error})"),
        }
    }
}

/// The lock that this system is known to have, before anything is tried.
pub fn known_lock() -> Option<Lock> {
    let release = uname().release().to_string_lossy().into_owned();
    if is_old(&release) {
        return Some(Lock::Kernel(release));
    }
    if let Some(name) = [MAX_NAMESPACES, MAX_MOUNT_NAMESPACES].into_iter().find(|name| setting(name) == Some(0)) {
        return Some(Lock::MaxNamespaces(name, 0));
    }
    if let Some(0) = setting(CLONE) {
        return Some(Lock::Clone);
    }
    // A profile of its own lifts the restriction.
    let is_unconfined = fs::read_to_string("/proc/self/attr/current").is_ok_and(|name| name.trim() == "unconfined");
    (is_unconfined && setting(APPARMOR) == Some(1)).then_some(Lock::AppArmor)
}

/// The lock behind an error of the kernel.
pub fn lock_of(error: io::Error) -> Lock {
    if let Some(lock) = known_lock() {
        return lock;
    }
    match (error.raw_os_error(), setting(MAX_NAMESPACES)) {
        (Some(libc::ENOSPC), Some(most)) => Lock::MaxNamespaces(MAX_NAMESPACES, most),
        (Some(libc::EPERM | libc::EACCES | libc::ENOSYS), _) if has_filter() => Lock::Seccomp(error),
        _ => Lock::Other(error),
    }
}

pub(super) fn is_old(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < FIRST_LINUX
}

/// Reads a setting of the kernel. `None`: this kernel has no such setting.
pub(super) fn setting(name: &str) -> Option<u64> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Whether a filter of system calls binds this process.
pub(super) fn has_filter() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_before_4_18_are_old() {
        for old in ["3.10.0-1160.el7.x86_64", "4.17.19", "4.9.0-8-amd64"] {
            assert!(is_old(old), "{old}");
        }
        for new in ["4.18.0-553.el8_10.x86_64", "5.4.0", "6.18.2+", "10.0"] {
            assert!(!is_old(new), "{new}");
        }
    }

    #[test]
    fn a_lock_names_its_key() {
        let text = Lock::MaxNamespaces(MAX_NAMESPACES, 0).to_string();
        assert!(text.contains("sysctl user.max_user_namespaces=15000"), "{text}");
        let error = || io::Error::from_raw_os_error(libc::EPERM);
        assert!(Lock::Seccomp(error()).to_string().contains("seccomp=unconfined"));
        assert!(Lock::Other(error()).to_string().contains("Operation not permitted"));
    }
}
