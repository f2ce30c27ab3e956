//! Devices that are mounted. Needs root.

use crate::support::{LoopFs, Sandbox};

/// The run and its dry run refuse the device in the same words, and name the mount point.
#[test]
fn a_mounted_device_is_refused_with_its_mount_point() {
    let sandbox = Sandbox::new();
    for kind in ["ext4", "btrfs"] {
        let root = sandbox.path(kind);
        std::fs::create_dir(&root).unwrap();
        let fs = LoopFs::new(&root, kind, 128, "noatime");
        let says = format!("{} is mounted at {}", fs.device, fs.mount.display());
        let load = ["run", "--device", &fs.device, "--size", "4KiB", "--for", "1s", "-q"];
        for more in [&["--dry-run"][..], &[], &["--destroy", &fs.device]] {
            let ran = sandbox.run(&[&load, more].concat()).expect(5);
            ran.says(&says);
            ran.says("unmount it");
        }
    }
}
