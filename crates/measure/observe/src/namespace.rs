//! Detects containers. From inside a container, only a part of the host is visible.
//!
//! The initial namespaces of a kernel have fixed inode numbers (`include/linux/proc_ns.h`:
//! `PROC_PID_INIT_INO`, `PROC_USER_INIT_INO`).

use std::path::Path;

const FIRST_PID: &str = "pid:[4026531836]";
const FIRST_USER: &str = "user:[4026531837]";

/// Returns true if processes of the host may be missing in `/proc` because this process is in the
/// PID namespace of a container. Also returns true if `/proc` is not readable.
pub(crate) fn hides_processes() -> bool {
    !is(Path::new("/proc/self/ns/pid"), FIRST_PID)
}

/// Returns true if user 0 of this process is the root user of the host. In a user namespace
/// (`unshare -Ur`, rootless containers), the privileges of user 0 apply only inside the namespace.
/// If `/proc` is not readable, returns true if this process has user id 0.
pub(crate) fn has_root() -> bool {
    let user = Path::new("/proc/self/ns/user");
    rustix::process::geteuid().is_root() && (!user.is_symlink() || is(user, FIRST_USER))
}

fn is(path: &Path, first: &str) -> bool {
    std::fs::read_link(path).is_ok_and(|target| target == Path::new(first))
}
