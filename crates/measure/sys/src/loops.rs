//! Identifies the backing file of a loop device.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::SysError;

/// `LOOP_GET_STATUS64` (include/uapi/linux/loop.h).
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;

/// State of a loop device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Device number of the backing file's file system, as in `stat`.
    pub device: u64,
    /// Inode of the backing file.
    pub inode: u64,
    /// Offset in the backing file at which the device starts.
    pub offset_bytes: u64,
}

/// `struct loop_info64` of `linux/loop.h`.
#[repr(C)]
struct Info {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// Reads the state of the device at `path`, which the process must be permitted to open.
///
/// # Errors
/// The `errno` of `open` or of the call: `ENXIO` if no file is attached, `ENOTTY` if `path` is not
/// a loop device.
pub fn status(path: &Path) -> Result<Status, SysError> {
    let file = File::open(path).map_err(|error| SysError::from_io("open", &error).at(path))?;
    let mut info = Info {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: 0,
        file_name: [0; 64],
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
    // SAFETY: the call fills a structure with the kernel's layout, which outlives it.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) };
    if answer != 0 {
        return Err(SysError::last("ioctl(LOOP_GET_STATUS64)").at(path));
    }
    Ok(Status { device: info.device, inode: info.inode, offset_bytes: info.offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_a_file_that_is_not_a_loop_device() {
        assert_eq!(status(Path::new("/dev/null")).unwrap_err().errno, libc::ENOTTY);
        assert_eq!(size_of::<Info>(), 232, "as the kernel's");
    }
}
