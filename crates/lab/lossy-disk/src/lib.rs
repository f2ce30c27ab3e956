//! A disk with a volatile write cache that loses writes on command. It is used to test durability
//! tests. It either performs flushes correctly, or falsely reports flushes as done in one of
//! several ways.
//!
//! - [`disk`]: the disk itself, without I/O: cache, media and false reports.
//! - [`mount`]: the disk as a FUSE file system. If `cut` is written to the file `control`, the
//!   power of the disk is cut; `restore` turns the power on again.
//! - [`faults`]: errors, short transfers and delays of single operations.
//!
//! ```console
//! $ cargo run -p plimsoll-lossy-disk -- /mnt/lossy drop-cache
//! ```

pub mod disk;
pub mod faults;
pub mod mount;
mod random;
