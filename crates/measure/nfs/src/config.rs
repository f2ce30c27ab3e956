//! Configuration of a client.

/// Configuration of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum number of outstanding operations on all connections together; at most 60,000.
    pub depth_max: u32,
    /// Maximum size of a READ or WRITE, in bytes. It also limits the replies that the client
    /// accepts.
    pub size_bytes_max: u32,
    /// If a call has no reply after this time, the client sends it again on the same connection.
    /// After twice this time, the client replaces the connection. The default is that of Linux for
    /// NFS over TCP (`timeo=600`).
    pub retransmit_after_ns: u64,
    /// Time after which a call without a reply fails. It is therefore the longest outage that a
    /// client survives.
    pub give_up_after_ns: u64,
    /// Pause before a call is sent again after NFS3ERR_JUKEBOX.
    pub jukebox_retry_ns: u64,
    /// Maximum amount of acknowledged unstable writes of which the client keeps a copy, in bytes.
    /// It sends them again if the server loses them. When this space is full, the client itself
    /// sends a COMMIT.
    pub retain_bytes: usize,
    /// True to record a latency histogram per procedure. A driver that records latencies itself
    /// does not need them.
    pub histograms: bool,
    /// 0, the default: the client checks for replies continuously. Otherwise, with 16 or more
    /// operations outstanding, it checks only once per this fraction of the mean latency, and at
    /// least every millisecond. That saves one wake-up per reply, but increases the latencies. With
    /// 16, the client sees a completion at most 6 % of the mean latency too late, and 3 % on
    /// average. [`Stats`](crate::Stats) has the number of the pauses and their sum.
    pub reap_pause_divisor: u32,
    /// First XID. Different clients of one server should use different values.
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
