//! A flash drive with internal structure: a port, a write buffer and dies. Garbage collection is
//! included as a cost.
//!
//! - A command first uses the port, for a fixed controller time and the transfer. A read then reads
//!   its pages from their dies (sensing, then the channel). A hash determines the die of each page.
//!   A write completes when its bytes are in the buffer. The pages are programmed in the background
//!   on one die after the other. Writes wait while the buffer is full.
//! - Garbage collection amplifies random writes. If pages are overwritten uniformly and the oldest
//!   block is always collected first, the factor is `a / (a + W(-a e^-a))`, where `a` is the
//!   physical capacity divided by the used capacity, and `W` is Lambert's function (P. Desnoyers,
//!   "Analytic modeling of SSD write performance", SYSTOR 2012). Moved pages are read and
//!   programmed; erasures are spread over the pages of a block. Sequential overwriting is not
//!   amplified. If `capacity_bytes` is given, the used capacity is the number of bytes placed and
//!   written so far. Otherwise it is `filled_share` of the capacity.
//! - Some drives write the first `burst_bytes` at a higher rate (single-bit mode), and free this
//!   space while their dies have no other work, in `burst_recovery_s` or as fast as the dies program.

use super::context::{Block, Blocks, Builder, Context, SteadyWrites};
use super::inside::Source;
use super::keys::Bits;
use super::request::{ANY_DEVICE, Action, Request, scatter};
use crate::core::rng::Stream;
use crate::core::{Order, StationId};
use crate::spec::{ModelError, Reader};

#[derive(Clone)]
struct Device {
    port: StationId,
    buffer: StationId,
    dies: Vec<StationId>,
    next_die: usize,
    burst_used: f64,
    /// Time at which the dies have finished their work, if the work is spread evenly. Afterwards, the
    /// drive is idle.
    busy_until_ns: f64,
}

#[derive(Clone)]
struct Ssd {
    devices: Vec<Device>,
    stripe_bytes: u64,
    page_bytes: u64,
    controller_ns: f64,
    port_ns_per_byte: f64,
    sense_ns: f64,
    channel_ns: f64,
    /// Time for which a die is busy when the host writes one page. It includes the time for garbage
    /// collection.
    program_random_ns: f64,
    flash: Flash,
    fill: Option<Fill>,
    program_sequential_ns: f64,
    program_burst_ns: f64,
    burst_bytes: f64,
    burst_drain_per_ns: f64,
    flush_ns: f64,
    buffer_bytes: u64,
    variation: f64,
    stream: Stream,
}

/// The times for which a die is busy with one page, and the spare capacity of the drive.
#[derive(Clone, Copy)]
struct Flash {
    sense_ns: f64,
    program_ns: f64,
    erase_ns: f64,
    spare_share: f64,
}

impl Flash {
    /// Returns the time for which a die is busy when the host writes a page and the share `filled`
    /// of the capacity is in use.
    fn page_ns(&self, filled: f64) -> f64 {
        let factor = write_amplification((1.0 + self.spare_share) / filled.clamp(0.01, 1.0));
        self.amplified_ns(factor)
    }

    fn amplified_ns(&self, factor: f64) -> f64 {
        factor * (self.program_ns + self.erase_ns) + (factor - 1.0) * self.sense_ns
    }
}

/// Fill level of the drives.
#[derive(Clone)]
struct Fill {
    known: Bits,
    capacity_bytes: f64,
    /// Number of stripes that were in use when the page cost was last computed.
    seen: u64,
}

/// Returns the write amplification of uniform random overwriting, if the physical capacity is
/// `ratio` times the used capacity; see the module documentation. It is infinite for a ratio of 1.
pub fn write_amplification(ratio: f64) -> f64 {
    if ratio <= 1.0 {
        return f64::INFINITY;
    }
    // The share v of valid pages in the oldest block satisfies v = exp(-a (1 - v)), so it is -W(-a
    // e^-a) / a. The loop starts from 0 and iterates this equation. Convergence is linear with rate
    // a v < 1.
    let mut valid: f64 = 0.0;
    for _ in 0..10_000 {
        let next = libm::exp(-ratio * (1.0 - valid));
        if (next - valid).abs() < 1e-12 {
            break;
        }
        valid = next;
    }
    1.0 / (1.0 - valid)
}

pub(super) fn make(
    reader: &Reader<'_>,
    builder: &mut Builder<'_>,
) -> Result<Box<dyn Block>, ModelError> {
    let count = reader.count_or("count", 1, 1, 100_000)?;
    let dies =
        reader.count_or("channels", 8, 1, 1024)? * reader.count_or("dies_per_channel", 4, 1, 64)?;
    let page_bytes = reader.count_or("page_bytes", 16_384, 512, 1 << 20)?;
    let sense_ns = 1e3 * reader.number_or("sense_us", 60.0, 0.0, 1e5)?;
    let program_ns = 1e3 * reader.number_or("program_us", 800.0, 0.0, 1e6)?;
    let erase_ns = 1e6 * reader.number_or("erase_ms", 5.0, 0.0, 1e3)?;
    let block_pages = reader.number_or("pages_per_block", 512.0, 1.0, 1e6)?;
    let flash = Flash {
        sense_ns,
        program_ns,
        erase_ns: erase_ns / block_pages,
        spare_share: reader.number_or("spare_share", 0.28, 0.01, 10.0)?,
    };
    let filled = reader.number_or("filled_share", 1.0, 0.01, 1.0)?;
    let fill = match reader.has("capacity_bytes") {
        true => Some(Fill {
            known: Bits::default(),
            capacity_bytes: count as f64 * reader.number("capacity_bytes", 1e6, 1e18, "")?,
            seen: 0,
        }),
        false => None,
    };
    let channel = reader.number_or("channel_bytes_per_s", 4e8, 1e6, 1e12)?;
    let port = reader.number("port_bytes_per_s", 1e6, 1e12, "the rate of the drive's port")?;
    let buffer_bytes = reader.count_or("buffer_bytes", 8 << 20, 65_536, 1 << 40)?;
    let idle_ns = 1e9 * reader.number_or("burst_recovery_s", 60.0, 0.001, 1e6)?;
    let burst_bytes = reader.number_or("burst_bytes", 0.0, 0.0, 1e15)?;
    let devices = (0..count)
        .map(|d| Device {
            port: builder.station(&format!("{d}.port"), 1, Order::Fcfs { background_every: 4 }),
            buffer: builder.station(
                &format!("{d}.buffer"),
                1,
                Order::Gate { tokens: buffer_bytes, random: false },
            ),
            dies: (0..dies)
                .map(|die| {
                    let order = Order::Fcfs { background_every: 0 };
                    builder.station(&format!("{d}.die{die}"), 1, order)
                })
                .collect(),
            next_die: 0,
            burst_used: 0.0,
            busy_until_ns: 0.0,
        })
        .collect();
    Ok(Box::new(Ssd {
        devices,
        stripe_bytes: reader.count_or("stripe_bytes", 1 << 20, 4096, 1 << 40)?,
        page_bytes,
        controller_ns: 1e3 * reader.number_or("controller_us", 5.0, 0.0, 1e5)?,
        port_ns_per_byte: 1e9 / port,
        sense_ns,
        channel_ns: page_bytes as f64 * 1e9 / channel,
        program_random_ns: flash.page_ns(if fill.is_some() { 0.01 } else { filled }),
        program_sequential_ns: flash.amplified_ns(1.0),
        flash,
        fill,
        program_burst_ns: 1e3 * reader.number_or("burst_program_us", program_ns / 4e3, 0.0, 1e6)?,
        burst_bytes,
        burst_drain_per_ns: burst_bytes / idle_ns,
        flush_ns: 1e3 * reader.number_or("flush_us", 0.0, 0.0, 1e6)?,
        buffer_bytes,
        variation: reader.number_or("variation_ratio", 0.2, 0.0, 10.0)?,
        stream: builder.stream(),
    }))
}

impl Ssd {
    fn read(&mut self, request: &Request, device: usize, bytes: u64, cx: &mut Context<'_>) {
        cx.serve(Source::Ssd);
        let first = request.offset_bytes / self.page_bytes;
        let end = (request.offset_bytes + bytes.max(1)).div_ceil(self.page_bytes);
        // If several pages of a command are on the same die, the die reads one page after the
        // other. The program therefore needs only one branch for each die.
        let dies = self.devices[device].dies.len() as u64;
        let branches = (end - first).min(dies);
        let per_branch = (end - first) as f64 / branches as f64;
        let mean_ns = per_branch * (self.sense_ns + self.channel_ns);
        if self.burst_bytes > 0.0 {
            self.free_burst_area(device, cx.sim.now_ns());
            self.devices[device].busy_until_ns += mean_ns * branches as f64 / dies as f64;
        }
        cx.program.fork();
        for page in first..first + branches {
            let die = (scatter(request.key(page)) >> 20) % dies;
            cx.program.branch();
            let demand_ns = self.stream.duration_ns(mean_ns, self.variation);
            cx.program.visit(self.devices[device].dies[die as usize], demand_ns);
            cx.program.end_branch();
        }
        cx.program.join(usize::MAX);
    }

    fn write(&mut self, request: &Request, device: usize, bytes: u64, cx: &mut Context<'_>) {
        cx.land(Source::Ssd);
        let held = bytes.min(self.buffer_bytes);
        cx.program.take(self.devices[device].buffer, held);
        let program_ns = self.program_ns(request, device, bytes, cx.sim.now_ns());
        self.devices[device].busy_until_ns += bytes as f64 / self.page_bytes as f64 * program_ns
            / self.devices[device].dies.len() as f64;
        let pages = (bytes as f64 / self.page_bytes as f64).max(0.05);
        let dies = self.devices[device].dies.len();
        let branches = (pages.ceil() as usize).clamp(1, dies);
        let mean_ns = pages / branches as f64 * (program_ns + self.channel_ns);
        cx.program.fork();
        cx.program.branch();
        let was = cx.program.set_background(true);
        cx.program.fork();
        for _ in 0..branches {
            let at = &mut self.devices[device];
            let die = at.dies[at.next_die];
            at.next_die = (at.next_die + 1) % dies;
            cx.program.branch();
            cx.program.visit(die, self.stream.duration_ns(mean_ns, self.variation));
            cx.program.end_branch();
        }
        cx.program.join(usize::MAX);
        cx.program.give(self.devices[device].buffer, held);
        cx.program.set_background(was);
        cx.program.end_branch();
        cx.program.detach();
    }

    /// Frees the space of the burst area that the drive has moved since its dies became idle.
    fn free_burst_area(&mut self, device: usize, now_ns: u64) {
        let at = &mut self.devices[device];
        let idle_ns = (now_ns as f64 - at.busy_until_ns).max(0.0);
        // The moved pages are programmed, so they leave no faster than the dies can program.
        let dies = at.dies.len() as f64;
        let program_per_ns = dies * self.page_bytes as f64 / self.program_random_ns;
        let moved = idle_ns * self.burst_drain_per_ns.min(program_per_ns);
        at.burst_used = (at.burst_used - moved).max(0.0);
        at.busy_until_ns = at.busy_until_ns.max(now_ns as f64);
    }

    /// Records that a range is in use, and updates the time that a page takes.
    fn fill(&mut self, request: &Request) {
        let Some(fill) = &mut self.fill else { return };
        for unit in request.units(self.stripe_bytes) {
            fill.known.set(request.file, unit);
        }
        // If the filled share grows by one percent, the write amplification changes by at most a
        // few percent.
        let count = fill.known.count();
        if count * 100 > fill.seen * 101 {
            fill.seen = count;
            let used = count as f64 * self.stripe_bytes as f64 * request.stored_share;
            self.program_random_ns = self.flash.page_ns(used / fill.capacity_bytes);
        }
    }

    /// Returns the time for which a die is busy with a written page. The time is short while space
    /// is left in the burst area.
    fn program_ns(&mut self, request: &Request, device: usize, bytes: u64, now_ns: u64) -> f64 {
        if self.burst_bytes > 0.0 {
            self.free_burst_area(device, now_ns);
            let at = &mut self.devices[device];
            if at.burst_used + bytes as f64 <= self.burst_bytes {
                at.burst_used += bytes as f64;
                return self.program_burst_ns;
            }
        }
        if request.sequential { self.program_sequential_ns } else { self.program_random_ns }
    }
}

impl Block for Ssd {
    fn route(&mut self, request: &Request, cx: &mut Context<'_>) {
        let bytes = (request.size_bytes as f64 * request.stored_share) as u64;
        let device = match request.device {
            ANY_DEVICE => scatter(request.key(request.offset_bytes / self.stripe_bytes)) as usize,
            device => device as usize,
        } % self.devices.len();
        let port_ns = self.controller_ns + bytes as f64 * self.port_ns_per_byte;
        let port = self.devices[device].port;
        if let Some(loss) = cx.station_loss(port) {
            return cx.refuse_lost(loss);
        }
        match request.action {
            Action::Read => {
                self.read(request, device, bytes, cx);
                cx.program.visit(port, port_ns as u64);
            }
            Action::Write => {
                self.fill(request);
                cx.program.visit(port, port_ns as u64);
                self.write(request, device, bytes, cx);
                if request.durable {
                    cx.program.visit(port, self.flush_ns as u64);
                }
            }
            Action::Flush => cx.program.visit(port, (self.controller_ns + self.flush_ns) as u64),
            Action::Meta => {}
        }
    }

    fn lay(&mut self, request: &Request, _cx: &mut Context<'_>) {
        self.fill(request);
    }

    fn capacity_bytes(&self, _node: u16, _blocks: &Blocks) -> Option<f64> {
        self.fill.as_ref().map(|fill| fill.capacity_bytes)
    }

    fn settle(&mut self, _writes: &[SteadyWrites], _take: &mut dyn FnMut(StationId, u64)) {
        self.devices.iter_mut().for_each(|device| device.burst_used = self.burst_bytes);
    }

    fn readings(&self, each: &mut dyn FnMut(&'static str, f64)) {
        let used: f64 = self.devices.iter().map(|d| d.burst_used).sum();
        if self.burst_bytes > 0.0 {
            each("burst_used_share", used / (self.burst_bytes * self.devices.len() as f64));
        }
        each("write_amplification", self.program_random_ns / self.program_sequential_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::NS_PER_S;
    use crate::run::{Limits, MatrixLoad, Pattern, simulate};
    use crate::system::System;

    #[test]
    fn amplification_is_that_of_the_literature() {
        // Desnoyers, figure 3 (LRU cleaning), shows a write amplification of about 7.5 for a spare
        // factor of 0.07, and of about 2.3 for a spare factor of 0.28.
        assert!((write_amplification(1.07) - 7.8).abs() < 0.5, "{}", write_amplification(1.07));
        assert!((write_amplification(1.28) - 2.4).abs() < 0.2, "{}", write_amplification(1.28));
        assert!(write_amplification(3.0) < 1.07);
        assert_eq!(write_amplification(1.0), f64::INFINITY);
    }

    fn rate(extra: &str, read_share: f64, depth: u32, ops: u64) -> f64 {
        let text = format!(
            "[model]\nname = \"t\"\nentry = \"ssd\"\n[block.ssd]\nkind = \"ssd\"\nfrom = \
             \"chosen\"\nport_bytes_per_s = \"1.2 GB/s\"\n{extra}\n"
        );
        let mut system = System::parse("t", &text, 1).unwrap();
        let load = MatrixLoad {
            clients: 1,
            depth,
            barrier: false,
            think_ns: 0,
            arrivals_per_s: None,
            io_bytes: 16_384,
            read_share,
            metadata_share: 0.0,
            durable: false,
            pattern: Pattern::Uniform,
            density: 0.1,
            files: 1,
            file_bytes: 1 << 40,
        };
        let limits = Limits { warm_up_ops: ops / 4, measure_ops: ops };
        let measured = simulate(&mut system, &load, limits, 1);
        assert!(measured.little_error_max < 1e-3);
        measured.ops_per_s
    }

    #[test]
    fn reads_scale_with_depth_until_the_dies_are_busy() {
        let (one, many) = (rate("", 1.0, 1, 2_000), rate("", 1.0, 256, 40_000));
        // Without concurrency, a read takes 60 us (sensing) + 41 us (channel) + 18.7 us (port).
        assert!((one / 8_370.0 - 1.0).abs() < 0.05, "{one}");
        // The 32 dies can read up to 317,000 pages a second, but the port can transfer only 53,600
        // pages a second.
        assert!((many / 53_600.0 - 1.0).abs() < 0.03, "{many}");
    }

    #[test]
    fn sustained_random_writes_run_at_program_rate_over_amplification() {
        let got = rate("", 0.0, 64, 40_000);
        let factor = write_amplification(1.28);
        let page_ns = factor * (800e3 + 5e6 / 512.0) + (factor - 1.0) * 60e3 + 16_384.0 / 0.4;
        let expected = 32.0 * NS_PER_S as f64 / page_ns;
        assert!((got / expected - 1.0).abs() < 0.05, "{got} against {expected}");
        // A drive that is nearly empty moves hardly any pages.
        let empty = rate("filled_share = 0.1", 0.0, 64, 40_000);
        assert!(empty > 2.0 * got, "{empty} against {got}");
    }

    #[test]
    fn a_burst_area_is_not_freed_under_full_load() {
        // The area would be free again after 0.1 s without load.
        let burst = |recovery_s: f64| {
            format!(
                "burst_bytes = \"100 MB\"\nburst_program_us = 100\nburst_recovery_s = {recovery_s}"
            )
        };
        let [soon, never] = [0.1, 1e6].map(|s| rate(&burst(s), 0.0, 64, 60_000));
        assert!((soon / never - 1.0).abs() < 0.1, "{soon} and {never}");
    }

    #[test]
    fn a_burst_area_is_fast_until_it_is_full() {
        let burst = "burst_bytes = \"400 MB\"\nburst_program_us = 100";
        let short = rate(burst, 0.0, 64, 8_000);
        let long = rate(burst, 0.0, 64, 100_000);
        assert!(short > 3.0 * long, "{short} then {long}");
    }
}
