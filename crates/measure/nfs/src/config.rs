//! Configuration of a client.

/// Configuration of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Most operations outstanding over all connections; at most 60,000.
    pub depth_max: u32,
    /// Largest READ or WRITE, in bytes. Also bounds what is accepted from a server.
    pub size_bytes_max: u32,
    /// Without a reply for this long a call is sent again on its connection; after twice as long the
    /// connection is replaced. The default is what Linux uses for NFS over TCP (`timeo=600`).
    pub retransmit_after_ns: u64,
    /// Time limit of a call without a reply, and therefore the longest outage that a client
    /// survives.
    pub give_up_after_ns: u64,
    /// How long after NFS3ERR_JUKEBOX the call is made again.
    pub jukebox_retry_ns: u64,
    /// Most bytes of acknowledged unstable writes kept for sending again. When it is full, the client
    /// commits by itself.
    pub retain_bytes: usize,
    /// Keep a latency histogram per procedure (a driver with its own recorder needs none).
    pub histograms: bool,
    /// 0, the default: replies are taken as they come. Otherwise, with 16 or more operations outstanding, the
    /// client looks for replies only every so-many-th of the mean latency, and at least every
    /// millisecond. That spares the wake-up for each single reply, and adds to the latencies: with 16 a
    /// completion is seen at most 6 % of the mean latency late, 3 % on average.
    /// [`Stats`](crate::Stats) says how often and how long was paused.
    pub reap_pause_divisor: u32,
    /// Where XIDs start. Different clients of one server should differ.
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
