//! A disk with a volatile write cache that loses writes on command, to test durability tests. It is
//! honest, or it reports one of several kinds of flushes that did not happen.
//!
//! - [`disk`]: the disk, without I/O: cache, media, false reports.
//! - [`mount`]: the disk as a FUSE file system. If `cut` is written to its file `control`, its
//!   power is cut; `restore` turns the power on again.
//! - [`faults`]: errors, short transfers and delays of single operations.
//!
//! ```console
//! $ cargo run -p plimsoll-lossy-disk -- /mnt/lossy drop-cache
//! ```

pub mod disk;
pub mod faults;
pub mod mount;
mod random;
