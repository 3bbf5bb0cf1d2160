//! Preconditions of a mount without rights.

use rustix::system::uname;

use super::checks::{check_device, helper};
use super::locks::{APPARMOR, CLONE, FIRST_LINUX, MAX_MOUNT_NAMESPACES, MAX_NAMESPACES, has_filter, is_old, setting};

/// One precondition of a mount.
pub struct Precondition {
    /// Its name.
    pub name: String,
    /// Whether it holds.
    pub holds: bool,
}

/// The preconditions of a mount without rights, as far as they can be read off this system.
pub fn preconditions() -> Vec<Precondition> {
    let release = uname().release().to_string_lossy().into_owned();
    let mut list = vec![
        Precondition {
            name: format!("Linux {}.{} or later: {release}", FIRST_LINUX.0, FIRST_LINUX.1),
            holds: !is_old(&release),
        },
        Precondition { name: "/dev/fuse can be opened".to_owned(), holds: check_device().is_ok() },
    ];
    // Of the first settings, 0 forbids namespaces; of the last one, it allows them.
    let settings = [(MAX_NAMESPACES, true), (MAX_MOUNT_NAMESPACES, true), (CLONE, true), (APPARMOR, false)];
    list.extend(settings.into_iter().filter_map(|(name, wants_positive)| {
        let value = setting(name)?;
        Some(Precondition { name: format!("{name} allows namespaces: {value}"), holds: (value > 0) == wants_positive })
    }));
    list.push(Precondition { name: "system calls are not filtered (seccomp)".to_owned(), holds: !has_filter() });
    list.push(Precondition { name: "fusermount3, the other way to mount".to_owned(), holds: helper().is_some() });
    list
}
