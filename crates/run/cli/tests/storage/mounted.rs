//! Devices that are mounted. Needs root.

use crate::support::{LoopDevice, LoopFs, Sandbox};

/// The run and its dry run reject the device with the same message, which contains the mount point.
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
            ran.says("unmount the target");
        }
    }
}

/// The data on a device is never removed, so the run's output contains the name of the device.
#[test]
fn a_run_names_the_device_on_which_its_data_stays() {
    let sandbox = Sandbox::new();
    let device = LoopDevice::new(sandbox.root.path(), 16);
    let run = ["run", "--device", &device.name, "--size", "4KiB", "--for", "1s"];
    sandbox.run(&[&run[..], &["--keep", "--dry-run"]].concat()).expect(2).says("--keep");
    let ran = sandbox.run(&run);
    let destroy = format!("--destroy {}", device.name);
    ran.says(&format!("the data was kept in {}: the next run", device.name));
    ran.says(&destroy);
    sandbox.run(&run).expect(2).says("--destroy");
    sandbox.run(&["verify", &device.name]).expect(2).says("verify = true");
}
