//! Determines the available memory.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

/// Mount point of control groups; if it is missing, no group limits memory.
const GROUPS: &str = "/sys/fs/cgroup";

/// Bytes of memory available to this process: those of the machine, or fewer if its control groups or its limit on
/// address space (`ulimit -v`) say so; 4 GiB if nothing is known.
pub fn machine_memory() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|rest| rest.trim().strip_suffix("kB")).and_then(|kib| kib.trim().parse::<u64>().ok());
    let machine = kib.map_or(4 << 30, |kib| kib.saturating_mul(1024));
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let address_space = getrlimit(Resource::As).current;
    [group_limit(Path::new(GROUPS), &own), address_space].into_iter().flatten().fold(machine, u64::min)
}

/// The smallest memory limit of the control groups in `own` (`/proc/self/cgroup`), of both versions, and of their
/// ancestors; `None`: no limit. In a container the names may be those outside: the topmost existing group is then its
/// own.
fn group_limit(mounted: &Path, own: &str) -> Option<u64> {
    let limits = own.lines().filter_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        let group = Path::new(group.trim_start_matches('/'));
        let (top, file) = match controllers {
            "" => (mounted.to_owned(), "memory.max"),
            list if list.split(',').any(|one| one == "memory") => (mounted.join("memory"), "memory.limit_in_bytes"),
            _ => return None,
        };
        // "No limit" is written as "max", or as a number beyond all memory.
        let limits = group.ancestors().map(|group| fs::read_to_string(top.join(group).join(file)));
        limits.filter_map(|limit| limit.ok()?.trim().parse::<u64>().ok()).min()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_all_groups_counts() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("a/memory.max", "536870912\n");
        write("a/b/memory.max", "max\n");
        write("memory/c/memory.limit_in_bytes", "9223372036854771712\n");
        write("memory/memory.limit_in_bytes", "1000000\n");
        let limit = |own| group_limit(folder.path(), own);
        assert_eq!(limit("0::/a/b\n"), Some(536_870_912));
        assert_eq!(limit("0::/\n"), None);
        assert_eq!(limit("5:cpu,memory:/c\n0::/a/b\n"), Some(1_000_000));
        assert_eq!(limit("4:memory:/elsewhere/c\n3:cpu:/a\n"), Some(1_000_000));
        assert_eq!(limit(""), None);
    }
}
