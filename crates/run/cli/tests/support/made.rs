//! Storage that a test creates from mounts, loop devices and memory.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{tool, wait_until};

/// Mounts and loop devices of a test. They are removed in reverse order when this value is dropped.
///
/// `PLIMSOLL_MADE_JOURNAL` sets a directory. Each test writes a file there with the commands that
/// remove its resources, so that they can be cleaned up after the test was killed. The file is
/// removed when the commands have run.
#[derive(Default)]
pub struct TestResource {
    undo: Vec<Vec<String>>,
    journal: Option<PathBuf>,
}

impl TestResource {
    /// Adds a command that removes a resource.
    pub fn undo(&mut self, command: &[&str]) {
        self.undo.push(command.iter().map(|word| (*word).to_owned()).collect());
        self.undo_after_a_kill(command);
    }

    /// Adds a removal command that is only needed after the test was killed.
    pub fn undo_after_a_kill(&mut self, command: &[&str]) {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let Some(directory) = std::env::var_os("PLIMSOLL_MADE_JOURNAL") else { return };
        let own = || {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            Path::new(&directory).join(format!("{}-{number}", std::process::id()))
        };
        let journal = self.journal.get_or_insert_with(own);
        let quoted = |word: &&str| format!("'{}'", word.replace('\'', "'\\''"));
        let line = command.iter().map(quoted).collect::<Vec<_>>().join(" ");
        let journal = std::fs::OpenOptions::new().append(true).create(true).open(journal);
        writeln!(journal.unwrap(), "{line}").unwrap();
    }

    pub fn mount(&mut self, arguments: &[&str], at: &Path) {
        std::fs::create_dir_all(at).unwrap();
        let at = at.to_str().unwrap();
        tool("mount", &[arguments, &[at]].concat());
        self.undo(&["umount", "-l", at]);
    }

    /// Creates a loop device on a file of `size_mib` MiB whose space is reserved.
    pub fn loop_on(&mut self, file: &Path, size_mib: u64, direct: bool) -> String {
        let file = file.to_str().unwrap();
        tool("fallocate", &["-l", &format!("{size_mib}MiB"), file]);
        let direct = format!("--direct-io={}", if direct { "on" } else { "off" });
        let device = tool("losetup", &["-f", "--show", &direct, file]);
        self.undo(&["losetup", "-d", &device]);
        device
    }

    /// Creates and mounts a file system on a device.
    pub fn file_system(&mut self, device: &str, kind: &str, options: &str, at: &Path) {
        match kind {
            "ext4" => {
                let lazy = "lazy_itable_init=0,lazy_journal_init=0";
                tool("mkfs.ext4", &["-q", "-E", lazy, device])
            }
            other => tool(&format!("mkfs.{other}"), &["-q", device]),
        };
        self.mount(&["-o", options, device], at);
    }
}

impl Drop for TestResource {
    fn drop(&mut self) {
        for command in self.undo.iter().rev() {
            let _ = Command::new(&command[0]).args(&command[1..]).output();
        }
        if let Some(journal) = &self.journal {
            let _ = std::fs::remove_file(journal);
        }
    }
}

pub fn overlay(made: &mut TestResource, upper: &Path, lower: &Path, at: &Path) {
    let (data, work) = (upper.join("data"), upper.join("work"));
    for directory in [&data, &work, &lower.to_path_buf()] {
        std::fs::create_dir_all(directory).unwrap();
    }
    let [lower, data, work] = [lower, &data, &work].map(Path::display);
    let options = format!("lowerdir={lower},upperdir={data},workdir={work}");
    made.mount(&["-t", "overlay", "-o", &options, "overlay"], at);
}

/// Creates an ext4 file system on a loop device for `image`. Its journal is on a loop device for a
/// file in `directory`.
pub fn journal_in(made: &mut TestResource, directory: &Path, image: &Path, at: &Path) {
    let journal = made.loop_on(&directory.join("journal"), 64, true);
    let device = made.loop_on(image, 256, true);
    tool("mkfs.ext4", &["-q", "-b", "4096", "-O", "journal_dev", &journal]);
    tool("mkfs.ext4", &["-q", "-b", "4096", "-J", &format!("device={journal}"), &device]);
    made.mount(&[&device], at);
}

/// Creates a device of compressed memory. If the kernel does not support this, prints a note and
/// returns `None`.
pub fn zram(made: &mut TestResource, size: &str) -> Option<String> {
    let control = PathBuf::from("/sys/class/zram-control");
    let Ok(number) = std::fs::read_to_string(control.join("hot_add")) else {
        eprintln!("not tested here: this kernel has no zram");
        return None;
    };
    let number = number.trim();
    let block = format!("/sys/block/zram{number}");
    let remove =
        format!("echo 1 > {block}/reset; echo {number} > /sys/class/zram-control/hot_remove");
    made.undo(&["sh", "-c", &remove]);
    std::fs::write(format!("{block}/disksize"), size).unwrap();
    let device = format!("/dev/zram{number}");
    wait_until("the device", || Path::new(&device).exists());
    Some(device)
}
