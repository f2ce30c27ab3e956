//! A second stream that runs at the same time as the first, with its own mix, order, flushes and
//! page-cache use.

use std::fmt::Write;

use crate::support::draw::Draw;

/// Size of the second stream's files in MiB. On a device, it is the size of the stream's region.
const FILE_MIB: u64 = 24;

/// A random stream whose operations all reach the storage.
pub struct SecondStream {
    reads: u64,
    io_kib: u64,
    depth: u64,
    pattern: &'static str,
    sync: &'static str,
    sync_every: u64,
    /// True if the stream uses the page cache. It then only issues flushed writes, because reads
    /// and unflushed writes would not reach the storage.
    buffered: bool,
    /// Rate of an open loop; `None` for a closed loop.
    rate_ops_per_s: Option<u64>,
}

impl SecondStream {
    pub fn drawn(draw: &mut Draw, is_device: bool) -> Self {
        let mut stream = Self {
            reads: draw.one_of(&[0, 0, 30, 70, 100]),
            io_kib: draw.one_of(&[4, 4, 16, 64]),
            depth: draw.one_of(&[1, 4, 8]),
            pattern: draw.one_of(&["random", "random", "sequential", "permutation"]),
            sync: draw.one_of(&["none", "none", "fdatasync", "fsync", "dsync"]),
            sync_every: draw.one_of(&[1, 1, 4]),
            buffered: draw.once_in(4),
            rate_ops_per_s: draw.one_of(&[None, None, None, Some(20)]),
        };
        stream.buffered &= stream.reads == 0 && stream.sync != "none" && !is_device;
        if stream.reads == 100 || matches!(stream.sync, "none" | "dsync") {
            stream.sync_every = 1;
        }
        stream
    }

    /// Returns the `[[workload.matrix]]` sections of both streams. `first` contains the lines of
    /// the first stream.
    pub fn beside(&self, first: &str, is_device: bool) -> String {
        let Self { reads, io_kib, depth, pattern, sync, sync_every, .. } = self;
        let direct = if self.buffered { "off" } else { "required" };
        let part = |number: u64| match is_device {
            true => format!("offset = \"{}MiB\"\nworking_set = \"{FILE_MIB}MiB\"\n", number * 32),
            false => String::new(),
        };
        let mut text = format!(
            "[[workload.matrix]]\nname = \"first\"\n{first}{}[[workload.matrix]]\nname = \
             \"second\"\nsizes = \"{io_kib}KiB\"\nreads = {reads}\nqueue_depth = {depth}\npatterns \
             = {pattern:?}\nsync = {sync:?}\ndirect = {direct:?}\n{}",
            part(0),
            part(1),
        );
        if *sync_every > 1 {
            writeln!(text, "sync_every = {sync_every}").unwrap();
        }
        if let Some(rate) = self.rate_ops_per_s {
            writeln!(text, "arrival = \"poisson\"\nrate = {rate}").unwrap();
        }
        if !is_device {
            writeln!(text, "file_size = \"{FILE_MIB}MiB\"").unwrap();
        }
        text
    }
}
