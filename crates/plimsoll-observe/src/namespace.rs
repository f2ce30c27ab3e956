//! Whether this process sees the host, or a container's part of it.
//!
//! The first namespaces of a kernel have fixed inode numbers (`include/linux/proc_ns.h`:
//! `PROC_PID_INIT_INO`, `PROC_USER_INIT_INO`).

use std::path::Path;

const FIRST_PID: &str = "pid:[4026531836]";
const FIRST_USER: &str = "user:[4026531837]";

/// Whether processes of the host may be missing from `/proc`: in a PID namespace of a container's own.
/// Where `/proc` does not tell, none of them shows either.
pub(crate) fn hides_processes() -> bool {
    !is(Path::new("/proc/self/ns/pid"), FIRST_PID)
}

/// Whether user 0 is the host's: in a user namespace (`unshare -Ur`, rootless containers) its
/// privileges end at the namespace. Where `/proc` does not tell, the number is believed.
pub(crate) fn has_root() -> bool {
    let user = Path::new("/proc/self/ns/user");
    rustix::process::geteuid().is_root() && (!user.is_symlink() || is(user, FIRST_USER))
}

fn is(path: &Path, first: &str) -> bool {
    std::fs::read_link(path).is_ok_and(|target| target == Path::new(first))
}
