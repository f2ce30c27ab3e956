//! Repeats calls that signals interrupt (`EINTR`) a limited number of times. The standard library
//! repeats them without a limit, but a file system in user space may interrupt every call.

use std::fs::File;
use std::io::{self, Read, Write};

/// Maximum number of attempts for a call that is interrupted, or whose operation fails with
/// `EAGAIN`. After the last attempt, this error is returned.
pub(crate) const TRIES_MAX: u16 = 1000;

/// Repeats a call that was interrupted, up to 1,000 times.
///
/// # Errors
/// The error of the last attempt, which may be an interruption.
pub fn retry<T, E>(
    is_interruption: impl Fn(&E) -> bool,
    mut call: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    for _ in 1..TRIES_MAX {
        match call() {
            Err(error) if is_interruption(&error) => {}
            other => return other,
        }
    }
    call()
}

fn retry_io<T>(call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    retry(|error: &io::Error| error.kind() == io::ErrorKind::Interrupted, call)
}

/// Writes all bytes to a file.
///
/// # Errors
/// The `errno` of `write`; `EINTR` after 1,000 interruptions in succession.
pub fn write_all(mut file: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match retry_io(|| file.write(bytes))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            written => bytes = &bytes[written..],
        }
    }
    Ok(())
}

/// Reads a file to its end, but at most `bytes_max` bytes.
///
/// # Errors
/// The `errno` of `read`; `EINTR` after 1,000 interruptions in succession.
pub fn read_to_end(mut file: &File, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut part = [0; 1 << 16];
    while bytes.len() < bytes_max {
        let part_bytes = part.len().min(bytes_max - bytes.len());
        match retry_io(|| file.read(&mut part[..part_bytes]))? {
            0 => break,
            read => bytes.extend_from_slice(&part[..read]),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Seek;

    use super::*;

    #[test]
    fn a_call_is_repeated_until_it_is_not_interrupted_and_not_forever() {
        let interrupted_times = |times: u32| {
            let mut calls = 0;
            let result = retry(
                |errno| *errno == libc::EINTR,
                || {
                    calls += 1;
                    if calls <= times { Err(libc::EINTR) } else { Ok(calls) }
                },
            );
            (result, calls)
        };
        assert_eq!(interrupted_times(0), (Ok(1), 1));
        assert_eq!(interrupted_times(999), (Ok(1000), 1000));
        assert_eq!(interrupted_times(u32::MAX), (Err(libc::EINTR), 1000));
        let mut calls = 0;
        let failed: Result<(), _> = retry(
            |errno| *errno == libc::EINTR,
            || {
                calls += 1;
                Err(libc::EIO)
            },
        );
        assert_eq!((failed, calls), (Err(libc::EIO), 1));
    }

    #[test]
    fn writes_all_bytes_and_reads_up_to_the_end_or_the_maximum() {
        let file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..200_000u32).map(|n| n as u8).collect();
        write_all(&file, &bytes).unwrap();
        for (bytes_max, expected) in [(usize::MAX, 200_000), (70_000, 70_000), (0, 0)] {
            (&file).rewind().unwrap();
            assert_eq!(read_to_end(&file, bytes_max).unwrap(), &bytes[..expected]);
        }
        let full = File::options().write(true).open("/dev/full").unwrap();
        assert_eq!(write_all(&full, b"x").unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    }
}
