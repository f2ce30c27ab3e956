//! Reads I/O errors from the kernel log (`/dev/kmsg`; Documentation/ABI/testing/dev-kmsg). Reading
//! the log requires root, unless the kernel shows its log to all users.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// Maximum size of a record (kernel/printk, `PRINTK_MESSAGE_MAX`).
const RECORD_BYTES_MAX: usize = 8 << 10;

/// Reads kernel log records that are new since it was opened.
#[derive(Debug, Default)]
pub struct KernelLog {
    log: Option<File>,
}

impl KernelLog {
    /// Opens the log and starts at its end.
    #[must_use]
    pub fn begin() -> Self {
        let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
        let mut options = std::fs::OpenOptions::new();
        let log = options.read(true).custom_flags(flags).open("/dev/kmsg").ok();
        let log = log.and_then(|mut log| log.seek(SeekFrom::End(0)).ok().map(|_| log));
        Self { log }
    }

    /// Returns the number of I/O errors of each block device since the log was opened; `None` if
    /// the log cannot be read. If there are many errors in a short time, the kernel omits some of
    /// them.
    pub fn errors(&mut self) -> Option<BTreeMap<String, u64>> {
        let log = self.log.as_mut()?;
        let (mut errors, mut record) = (BTreeMap::new(), [0; RECORD_BYTES_MAX]);
        loop {
            match log.read(&mut record) {
                Ok(0) => break,
                Ok(length) => {
                    let text = String::from_utf8_lossy(&record[..length]);
                    if let Some(device) = device_of(&text) {
                        *errors.entry(device.to_owned()).or_insert(0) += 1;
                    }
                }
                // Some records were overwritten before this reader read them.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(_) => return None,
            }
        }
        Some(errors)
    }
}

/// Returns the device of an I/O error record (block/blk-core.c, `blk_print_req_error`; fs/buffer.c,
/// `buffer_io_error`).
fn device_of(record: &str) -> Option<&str> {
    let says = record.split_once(';')?.1;
    let after = [" error, dev ", "Buffer I/O error on dev "]
        .iter()
        .find_map(|words| says.split_once(words).map(|(_, after)| after))?;
    after.split([',', ' ', '\n']).next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognises_io_errors_among_other_records() {
        let of = |text: &str| device_of(text).map(str::to_owned);
        let request = "3,950,8233,-;I/O error, dev loop0, sector 1024 op 0x0:(READ) flags 0x0\n";
        assert_eq!(of(request).as_deref(), Some("loop0"));
        let medium = "2,951,8233,-;critical medium error, dev sda, sector 8 op 0x0:(READ)\n";
        assert_eq!(of(medium).as_deref(), Some("sda"));
        let buffer = "3,952,8233,-;Buffer I/O error on dev dm-0, logical block 5, async page read";
        assert_eq!(of(buffer).as_deref(), Some("dm-0"));
        assert_eq!(of("6,953,8233,-;EXT4-fs (loop0): mounted filesystem"), None);
        assert_eq!(of("no record"), None);
    }

    #[test]
    fn counts_no_errors_in_an_unchanged_log() {
        if let Some(errors) = KernelLog::begin().errors() {
            assert!(errors.values().all(|count| *count > 0));
        }
    }
}
