//! Configuration of a client.

/// Configuration of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum total number of outstanding operations on all connections. The largest value is
    /// 60,000.
    pub depth_max: u32,
    /// Maximum size of a READ or WRITE, in bytes. The client rejects replies that are larger than
    /// this size requires.
    pub size_bytes_max: u32,
    /// If a call has no reply after this time, the client sends the call again on the same
    /// connection. After twice this time, the client replaces the connection. The default is the
    /// same as in Linux for NFS over TCP (`timeo=600`).
    pub retransmit_after_ns: u64,
    /// Time after which a call without a reply fails. An outage of the server that lasts longer
    /// therefore causes errors.
    pub give_up_after_ns: u64,
    /// Pause before a call is sent again after NFS3ERR_JUKEBOX.
    pub jukebox_retry_ns: u64,
    /// Size of the memory for copies of acknowledged unstable writes, in bytes. If the server loses
    /// such writes, the client sends them again. When this memory is full, the client sends a
    /// COMMIT of its own.
    pub retain_bytes: usize,
    /// True if the client records a latency histogram for each procedure. A driver that records
    /// latencies itself does not need these histograms.
    pub histograms: bool,
    /// The client can pause between two checks for replies; this number determines the length of
    /// the pause. With the default of 0, the client checks continuously. Otherwise, if at least 16
    /// operations are outstanding, it pauses for the mean latency divided by this number, but at
    /// most for a millisecond. This saves a wake-up for each reply, but increases the latencies. If
    /// the number is 16, the client detects a completion at most 6 % of the mean latency too late,
    /// and 3 % on average. [`Stats`](crate::Stats) contains the number of pauses and their total
    /// length.
    pub reap_pause_divisor: u32,
    /// Value from which the XIDs of calls start. Different clients of a server should use different
    /// values.
    pub xid_seed: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            depth_max: 256,
            size_bytes_max: 1 << 20,
            retransmit_after_ns: 60_000_000_000,
            give_up_after_ns: 600_000_000_000,
            jukebox_retry_ns: 1_000_000_000,
            retain_bytes: 64 << 20,
            histograms: true,
            reap_pause_divisor: 0,
            xid_seed: 1,
        }
    }
}
