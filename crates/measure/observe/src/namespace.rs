//! Detection of containers, which see only a part of the host.
//!
//! The initial namespaces of a kernel have fixed inode numbers (`include/linux/proc_ns.h`:
//! `PROC_PID_INIT_INO`, `PROC_USER_INIT_INO`).

use std::path::Path;

const FIRST_PID: &str = "pid:[4026531836]";
const FIRST_USER: &str = "user:[4026531837]";

/// True if `/proc` may lack processes of the host, because this is a container's PID namespace. If
/// `/proc` is not readable, all processes are hidden.
pub(crate) fn hides_processes() -> bool {
    !is(Path::new("/proc/self/ns/pid"), FIRST_PID)
}

/// True if user 0 is the host's root. In a user namespace (`unshare -Ur`, rootless containers) its
/// privileges end at the namespace. If `/proc` is not readable, the user id decides.
pub(crate) fn has_root() -> bool {
    let user = Path::new("/proc/self/ns/user");
    rustix::process::geteuid().is_root() && (!user.is_symlink() || is(user, FIRST_USER))
}

fn is(path: &Path, first: &str) -> bool {
    std::fs::read_link(path).is_ok_and(|target| target == Path::new(first))
}
