//! Load of another process on the same disk.

use std::path::Path;
use std::process::Command;

use super::tool;

/// Load of another process: it reads and writes the disk of `path` without the page cache until
/// this value is dropped.
pub struct Neighbour {
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Neighbour {
    pub fn on(path: &Path) -> Self {
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (seen, file) = (stop.clone(), path.join("neighbour"));
        let file = file.display().to_string();
        let make = ["if=/dev/urandom", "bs=1M", "count=64", "conv=fsync"];
        tool("dd", &[&make[..], &[&format!("of={file}")]].concat());
        let thread = std::thread::spawn(move || {
            use std::sync::atomic::Ordering;
            while !seen.load(Ordering::Relaxed) {
                // The load uses separate processes, so that it is not counted as I/O of the test.
                let read = [&format!("if={file}"), "of=/dev/null", "bs=1M", "iflag=direct"];
                let write =
                    ["if=/dev/zero", &format!("of={file}"), "bs=1M", "count=64", "oflag=direct"];
                for arguments in [&read[..], &write[..]] {
                    let _ = Command::new("dd").args(arguments).arg("conv=notrunc").output();
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}
