//! XFS frees the space of removed files in the background. Needs root.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::support::{CommandOutput, LoopFs, Sandbox, wait_until};

/// Number of pairs of blocks in the removed files. Each block is a separate extent, so the removal
/// takes seconds.
const EXTENTS: u64 = 40_000;
const BLOCK: usize = 4096;
/// Minimum free space of the empty file system.
const FREE_MIB: u64 = 360;

/// Fills most of a file system with two files whose blocks alternate on the device.
fn fill(mount: &Path) {
    let files = ["one", "two"].map(|name| File::create(mount.join(name)).unwrap());
    let block = vec![1; BLOCK];
    for number in 0..EXTENTS {
        for file in &files {
            file.write_all_at(&block, number * 2 * BLOCK as u64).unwrap();
        }
    }
    files.iter().for_each(|file| file.sync_all().unwrap());
}

fn free_mib(mount: &Path) -> u64 {
    let statistics = rustix::fs::statvfs(mount).unwrap();
    (statistics.f_bavail * statistics.f_frsize) >> 20
}

/// Removes the files, and immediately runs a plan that needs their space. Returns its result, and
/// the free space before and after it.
fn remove_and(sandbox: &Sandbox, fs: &LoopFs, more: &[&str]) -> (CommandOutput, u64) {
    // All space that the previous round used is free again.
    wait_until("free space", || free_mib(&fs.mount) >= FREE_MIB);
    fill(&fs.mount);
    for name in ["one", "two"] {
        std::fs::remove_file(fs.mount.join(name)).unwrap();
    }
    let free_mib = free_mib(&fs.mount);
    let ran = sandbox.run(&[&["run", "plan.toml", "--json", "-q"], more].concat());
    (ran, free_mib)
}

#[test]
fn a_dry_run_and_a_run_wait_for_space_that_xfs_frees_late() {
    let sandbox = Sandbox::new();
    let fs = LoopFs::new(sandbox.root.path(), "xfs", 480, "noatime,allocsize=4k");
    let plan = |size: &str| {
        let text = format!(
            "version = 1\nname = \"late\"\n[target]\npath = {:?}\n[workload.matrix]\n\
             file_size = \"{size}\"\nreads = 100\n[phases]\nwarm_up = \"200ms\"\nmeasure = \"1s\"\n\
             [evidence]\nmin_measure = \"1s\"\ninterval = \"100ms\"\n",
            fs.mount.display().to_string()
        );
        std::fs::write(sandbox.path("plan.toml"), text).unwrap();
    };
    plan("300MiB");
    for more in [&["--dry-run"][..], &[]] {
        let (ran, free_mib) = remove_and(&sandbox, &fs, more);
        assert!(free_mib < 300, "{more:?}: {free_mib} MiB were free at once, which tests nothing");
        match more.is_empty() {
            true => ran.measured_on_this_host(),
            false => ran.expect(0),
        };
    }
    // Both commands reject data that does not fit, after all space has been freed.
    plan("700MiB");
    for more in [&["--dry-run"][..], &[]] {
        sandbox.run(&[&["run", "plan.toml"], more].concat()).expect(2).says("needs 700 MiB");
    }
}
