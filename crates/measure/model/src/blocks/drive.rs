//! A drive without internal structure. It executes a few commands in parallel. Each command takes a
//! fixed time plus a time for each byte. Either the commands share the drive's rate equally, or the
//! drive transfers the data of one command at a time, at the full rate.
//!
//! This block is for flash devices whose internals are unknown or do not matter. The times are
//! those of a sustained random load, including write amplification. Reads and writes use the same
//! lanes. The additional time of durable writes is spent in a separate queue: durable writes wait
//! for one another, but other operations do not wait for durable writes. See `ssd` for a device
//! with channels, dies and a flash translation layer.

use super::context::{Block, Builder, Context, order_word};
use super::inside::Source;
use super::request::{ANY_DEVICE, Action, Request, scatter};
use crate::core::StationId;
use crate::core::rng::Stream;
use crate::spec::{ModelError, Reader};

#[derive(Clone)]
struct Drive {
    devices: Vec<StationId>,
    /// For each device: the station of its link, which executes one transfer at a time. The list is
    /// empty if each lane has its own part of the rate.
    links: Vec<StationId>,
    /// For each device: the station of its durable writes. The list is empty if durable writes need
    /// no additional time.
    durable: Vec<StationId>,
    read_ns: f64,
    write_ns: f64,
    read_ns_per_byte: f64,
    write_ns_per_byte: f64,
    flush_ns: f64,
    /// Additional time of a durable write; 0 if the drive's buffer survives a power loss.
    durable_ns: f64,
    variation: f64,
    unit_bytes: u64,
    media: Source,
    stream: Stream,
}

pub(super) fn make(
    reader: &Reader<'_>,
    builder: &mut Builder<'_>,
) -> Result<Box<dyn Block>, ModelError> {
    let count = reader.count_or("count", 1, 1, 100_000)?;
    let lanes = reader.count_or("lanes", 1, 1, 4096)?;
    let order = order_word(reader)?;
    let rate = |field: &str| reader.number(field, 1.0, 1e12, "the sustained rate of one drive");
    let (read, write) = (rate("read_bytes_per_s")?, rate("write_bytes_per_s")?);
    let has_link = reader.word("transfers", &[("lanes", false), ("link", true)])?;
    // The drive reaches its rate either with all lanes together, or with the link alone.
    let per_byte = |rate: f64| 1e9 * if has_link { 1.0 } else { lanes as f64 } / rate;
    let devices =
        (0..count).map(|d| builder.station(&format!("{d}"), lanes as u32, order.clone())).collect();
    let links = if has_link { count } else { 0 };
    let links =
        (0..links).map(|d| builder.station(&format!("{d}.link"), 1, order.clone())).collect();
    let durable_ns = 1e3 * reader.number_or("durable_us", 0.0, 0.0, 1e7)?;
    let queues = if durable_ns > 0.0 { count } else { 0 };
    let durable =
        (0..queues).map(|d| builder.station(&format!("{d}.durable"), 1, order.clone())).collect();
    Ok(Box::new(Drive {
        devices,
        links,
        durable,
        read_ns: 1e3 * reader.number_or("read_us", 0.0, 0.0, 1e6)?,
        write_ns: 1e3 * reader.number_or("write_us", 0.0, 0.0, 1e6)?,
        read_ns_per_byte: per_byte(read),
        write_ns_per_byte: per_byte(write),
        flush_ns: 1e3 * reader.number_or("flush_us", 0.0, 0.0, 1e7)?,
        durable_ns,
        variation: reader.number_or("variation_ratio", 0.3, 0.0, 10.0)?,
        unit_bytes: reader.count_or("stripe_bytes", 1 << 20, 512, 1 << 40)?,
        media: reader.word("media", &[("ssd", Source::Ssd), ("hdd", Source::Hdd)])?,
        stream: builder.stream(),
    }))
}

impl Block for Drive {
    fn route(&mut self, request: &Request, cx: &mut Context<'_>) {
        let bytes = request.size_bytes as f64 * request.stored_share;
        let device = if request.device == ANY_DEVICE {
            scatter(request.key(request.first_unit(self.unit_bytes))) as usize
        } else {
            request.device as usize
        };
        let device = device % self.devices.len();
        if let Some(loss) = cx.station_loss(self.devices[device]) {
            return cx.refuse_lost(loss);
        }
        let (fixed_ns, transfer_ns) = match request.action {
            Action::Read => {
                cx.serve(self.media);
                (request.share * self.read_ns, bytes * self.read_ns_per_byte)
            }
            Action::Write => {
                cx.land(self.media);
                (request.share * self.write_ns, bytes * self.write_ns_per_byte)
            }
            Action::Flush => (self.flush_ns, 0.0),
            Action::Meta => (0.0, 0.0),
        };
        if fixed_ns + transfer_ns <= 0.0 {
            return;
        }
        let station = self.devices[device];
        match self.links.get(device) {
            Some(link) => {
                cx.program.visit(station, self.stream.duration_ns(fixed_ns, self.variation));
                cx.program.visit(*link, transfer_ns as u64);
            }
            None => {
                let mean_ns = fixed_ns + transfer_ns;
                cx.program.visit(station, self.stream.duration_ns(mean_ns, self.variation));
            }
        }
        let is_durable = request.durable && request.action == Action::Write;
        if let Some(queue) = self.durable.get(device).filter(|_| is_durable) {
            cx.program.visit(*queue, self.stream.duration_ns(self.durable_ns, self.variation));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::blocks::{Action, Request};
    use crate::core::NS_PER_S;
    use crate::system::{Event, System};

    #[test]
    fn transfers_follow_one_another_on_a_link() {
        // Returns the times in microseconds at which two 64 KiB reads complete, at 1 GiB/s.
        let ends = |transfers: &str| {
            let text = format!(
                "[model]\nname = \"t\"\nentry = \"drive\"\n[block.drive]\nkind = \"drive\"\nfrom = \
                 \"chosen\"\nlanes = 2\nread_us = 100\nvariation_ratio = 0\nread_bytes_per_s = \
                 1073741824\nwrite_bytes_per_s = 1e12\n{transfers}"
            );
            let mut system = System::parse("t", &text, 1).unwrap();
            for tag in 0..2 {
                system.submit(tag, 0, &Request::new(Action::Read, 0, 0, 65_536));
            }
            let mut ends = Vec::new();
            while let Some(Event::Done { .. }) = system.next() {
                ends.push(system.now_ns() / 1000);
            }
            ends
        };
        assert_eq!(ends(""), [222, 222]);
        assert_eq!(ends("transfers = \"link\"\n"), [161, 222]);
    }

    #[test]
    fn durable_writes_wait_for_one_another_and_not_for_reads() {
        let text = "[model]\nname = \"t\"\nentry = \"drive\"\n[block.drive]\nkind = \"drive\"\nfrom \
                    = \"chosen\"\nread_us = 100\nwrite_us = 100\ndurable_us = 900\nvariation_ratio \
                    = 0\nread_bytes_per_s = 1e12\nwrite_bytes_per_s = 1e12\n";
        // Returns the rate of durable writes (tags 0 and 1) and the rate of reads (tag 2), in
        // operations per second.
        let rates = |tags: std::ops::Range<u64>| {
            let mut system = System::parse("t", text, 1).unwrap();
            let request = |tag: u64| match tag {
                2 => Request::new(Action::Read, 0, 0, 512),
                _ => Request { durable: true, ..Request::new(Action::Write, 0, 0, 512) },
            };
            tags.for_each(|tag| system.submit(tag, 0, &request(tag)));
            let mut ended = [0u64; 2];
            while let Some(Event::Done { tag, .. }) = system.next() {
                if system.now_ns() > NS_PER_S {
                    break;
                }
                ended[usize::from(tag == 2)] += 1;
                system.submit(tag, 0, &request(tag));
            }
            ended
        };
        let (alone, beside) = (rates(0..2), rates(0..3));
        assert!(alone[0].abs_diff(1111) <= 5, "one in 900 us: {alone:?}");
        assert!(beside[0].abs_diff(1111) <= 10, "{beside:?}");
        // Each durable write occupies the drive for 100 us. The remaining time is for reads.
        assert!(beside[1].abs_diff(10_000 - 1111) <= 50, "{beside:?}");
    }
}
