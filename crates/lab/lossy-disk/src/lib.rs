//! A disk with a volatile write cache that loses writes on command, to test durability tests. It
//! is honest, or it tells one of several lies about flushed writes.
//!
//! - [`disk`]: the disk, without I/O: cache, media, lies.
//! - [`mount`]: the disk as a FUSE file system. Writing `cut` to the file `control` in it cuts its
//!   power, and writing `restore` brings it back.
//!
//! ```console
//! $ cargo run -p plimsoll-lossy-disk -- /mnt/lossy drop-cache
//! ```

pub mod disk;
pub mod mount;
