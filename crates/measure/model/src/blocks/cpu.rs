//! A pool of processor cores, and the software layers that run on it.
//!
//! The pool is one multi-server queue: operating systems distribute runnable threads over the
//! cores, so the cores behave like the servers of one queue. A `path` is a software layer that
//! every request passes. The layer uses CPU time for each operation and for each byte, then passes
//! the request to the next block. A layer may also delay writes without using CPU time
//! (`write_wait_us`: interrupts, polls and handshakes between a guest and its host). Checksums,
//! parity, compression and replication in other blocks use CPU time of the same pool.

use super::context::{Block, BlockRef, Blocks, Builder, Context, order_word};
use super::request::{Action, Request};
use crate::core::rng::Stream;
use crate::core::{Order, StationId};
use crate::spec::{ModelError, Reader};

#[derive(Clone)]
struct Cpu {
    pool: StationId,
    variation: f64,
    speed: f64,
    stream: Stream,
}

pub(super) fn make_cpu(
    reader: &Reader<'_>,
    builder: &mut Builder<'_>,
) -> Result<Box<dyn Block>, ModelError> {
    let cores = reader.count("cores", 1, 4096, "the number of cores that serve I/O")? as u32;
    Ok(Box::new(Cpu {
        pool: builder.station("", cores, order_word(reader)?),
        variation: reader.number_or("variation_ratio", 0.5, 0.0, 10.0)?,
        speed: reader.number_or("speed_ratio", 1.0, 0.01, 100.0)?,
        stream: builder.stream(),
    }))
}

impl Block for Cpu {
    fn route(&mut self, _request: &Request, _cx: &mut Context<'_>) {}

    fn charge(&mut self, amount: u64, _out: bool, cx: &mut Context<'_>) {
        let demand_ns = self.stream.duration_ns(amount as f64 / self.speed, self.variation);
        cx.program.visit(self.pool, demand_ns);
    }
}

#[derive(Clone)]
struct Path {
    below: Option<BlockRef>,
    cpu: BlockRef,
    wait: Option<(StationId, u64)>,
    read_ns: f64,
    write_ns: f64,
    meta_ns: f64,
    read_ns_per_byte: f64,
    write_ns_per_byte: f64,
}

pub(super) fn make_path(
    reader: &Reader<'_>,
    builder: &mut Builder<'_>,
) -> Result<Box<dyn Block>, ModelError> {
    let below = reader.block_or_none("below")?;
    let cpu = reader.block("cpu", "the pool of cores that does the work")?;
    let read_us = reader.number_or("read_us", 0.0, 0.0, 1e6)?;
    let wait_ns = (1e3 * reader.number_or("write_wait_us", 0.0, 0.0, 1e6)?) as u64;
    Ok(Box::new(Path {
        below: builder.find_or_none(below),
        cpu: builder.find(cpu),
        wait: (wait_ns > 0).then(|| (builder.station("wait", 1, Order::Delay), wait_ns)),
        read_ns: 1e3 * read_us,
        write_ns: 1e3 * reader.number_or("write_us", read_us, 0.0, 1e6)?,
        meta_ns: 1e3 * reader.number_or("meta_us", read_us, 0.0, 1e6)?,
        read_ns_per_byte: reader.number_or("read_ns_per_byte", 0.0, 0.0, 1e3)?,
        write_ns_per_byte: reader.number_or("write_ns_per_byte", 0.0, 0.0, 1e3)?,
    }))
}

impl Block for Path {
    fn route(&mut self, request: &Request, cx: &mut Context<'_>) {
        let bytes = request.size_bytes as f64;
        let work_ns = match request.action {
            Action::Read => self.read_ns + bytes * self.read_ns_per_byte,
            Action::Write => self.write_ns + bytes * self.write_ns_per_byte,
            Action::Flush | Action::Meta => self.meta_ns,
        };
        cx.charge(self.cpu, request.node, work_ns as u64, false);
        if let (Action::Write, Some((station, wait_ns))) = (request.action, self.wait) {
            cx.program.visit(station, wait_ns);
        }
        match (request.action, self.below) {
            (Action::Meta, _) | (_, None) => {}
            (_, Some(below)) => cx.route(below, request),
        }
    }

    fn hint(&self, request: &Request, blocks: &Blocks) {
        if let Some(below) = self.below {
            blocks.hint(below, request);
        }
    }

    fn lay(&mut self, request: &Request, cx: &mut Context<'_>) {
        if let Some(below) = self.below {
            cx.lay(below, request);
        }
    }

    fn capacity_bytes(&self, node: u16, blocks: &Blocks) -> Option<f64> {
        blocks.capacity_bytes(self.below?, node)
    }
}
