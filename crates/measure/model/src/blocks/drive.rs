//! A drive known from the outside: a few commands at once, each with a fixed cost and a cost per
//! byte.
//!
//! For flash devices whose internals are unknown or do not matter: the costs are those of a
//! sustained random load, including write amplification. Reads and writes share the drive's time.
//! See `ssd` for a device with channels, dies and a flash translation layer.

use super::context::{Block, Builder, Context, order_word};
use super::inside::Source;
use super::request::{ANY_DEVICE, Action, Request, scatter};
use crate::core::StationId;
use crate::core::rng::Stream;
use crate::spec::{ModelError, Reader};

#[derive(Clone)]
struct Drive {
    devices: Vec<StationId>,
    read_ns: f64,
    write_ns: f64,
    read_ns_per_byte: f64,
    write_ns_per_byte: f64,
    flush_ns: f64,
    /// Time that a durable write needs in addition: 0 if the buffer survives a power loss.
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
    let rate = |field: &str| reader.number(field, 1.0, 1e12, "sustained rate of one drive");
    let (read, write) = (rate("read_bytes_per_s")?, rate("write_bytes_per_s")?);
    // All lanes together reach the rate.
    let per_byte = |rate: f64| 1e9 * lanes as f64 / rate;
    let devices =
        (0..count).map(|d| builder.station(&format!("{d}"), lanes as u32, order.clone())).collect();
    Ok(Box::new(Drive {
        devices,
        read_ns: 1e3 * reader.number_or("read_us", 0.0, 0.0, 1e6)?,
        write_ns: 1e3 * reader.number_or("write_us", 0.0, 0.0, 1e6)?,
        read_ns_per_byte: per_byte(read),
        write_ns_per_byte: per_byte(write),
        flush_ns: 1e3 * reader.number_or("flush_us", 0.0, 0.0, 1e7)?,
        durable_ns: 1e3 * reader.number_or("durable_us", 0.0, 0.0, 1e7)?,
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
        let mean_ns = match request.action {
            Action::Read => {
                cx.serve(self.media);
                request.share * self.read_ns + bytes * self.read_ns_per_byte
            }
            Action::Write => {
                cx.land(self.media);
                request.share * self.write_ns + bytes * self.write_ns_per_byte
            }
            Action::Flush => self.flush_ns,
            Action::Meta => 0.0,
        };
        if mean_ns <= 0.0 {
            return;
        }
        let station = self.devices[device];
        cx.program.visit(station, self.stream.duration_ns(mean_ns, self.variation));
        if request.durable && request.action == Action::Write && self.durable_ns > 0.0 {
            cx.program.visit(station, self.stream.duration_ns(self.durable_ns, self.variation));
        }
    }
}
