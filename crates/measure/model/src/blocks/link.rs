//! A network link: ports with a bandwidth in each direction, a cost for each message, and a
//! propagation delay.
//!
//! Each direction of each port is a first-come-first-served queue whose service time is the message
//! cost plus the bytes divided by the rate. Whole messages are stored and forwarded. A request
//! enters the node, and a reply leaves the node. Written data travels with the request, and read
//! data with the reply.

use super::context::{Block, BlockRef, Blocks, Builder, Context, order_word};
use super::request::{Action, Request};
use crate::core::{Order, StationId};
use crate::spec::{ModelError, Reader};

#[derive(Clone)]
struct Link {
    below: Option<BlockRef>,
    inward: Vec<StationId>,
    outward: Vec<StationId>,
    flight: StationId,
    flight_ns: u64,
    message_ns: f64,
    header_bytes: f64,
    rate_bytes_per_s: f64,
    next: usize,
}

pub(super) fn make(
    reader: &Reader<'_>,
    builder: &mut Builder<'_>,
) -> Result<Box<dyn Block>, ModelError> {
    let below = reader.block_or_none("below")?;
    let ports = reader.count_or("ports", 1, 1, 1024)?;
    let rate = reader.number("rate_bytes_per_s", 1.0, 1e13, "port bandwidth, each direction")?;
    let efficiency = reader.number_or("efficiency_ratio", 1.0, 0.01, 1.0)?;
    let order = order_word(reader)?;
    let mut directions = |word: &str| -> Vec<StationId> {
        (0..ports).map(|p| builder.station(&format!("{word}{p}"), 1, order.clone())).collect()
    };
    let (inward, outward) = (directions("in"), directions("out"));
    Ok(Box::new(Link {
        below: builder.find_or_none(below),
        inward,
        outward,
        flight: builder.station("flight", 1, Order::Delay),
        flight_ns: (1e3 * reader.number_or("latency_us", 0.0, 0.0, 1e7)?) as u64,
        message_ns: 1e3 * reader.number_or("message_us", 0.0, 0.0, 1e6)?,
        header_bytes: reader.number_or("header_bytes", 0.0, 0.0, 1e6)?,
        rate_bytes_per_s: rate * efficiency,
        next: 0,
    }))
}

impl Link {
    fn demand_ns(&self, bytes: u64) -> u64 {
        let transfer = (bytes as f64 + self.header_bytes) * 1e9 / self.rate_bytes_per_s;
        (self.message_ns + transfer + 0.5) as u64
    }

    fn fly(&self, cx: &mut Context<'_>) {
        if self.flight_ns > 0 {
            cx.program.visit(self.flight, self.flight_ns);
        }
    }
}

impl Block for Link {
    fn route(&mut self, request: &Request, cx: &mut Context<'_>) {
        let port = request.file as usize % self.inward.len();
        let (inward, outward) = match request.action {
            Action::Read => (0, request.size_bytes),
            Action::Write => (request.size_bytes, 0),
            Action::Flush | Action::Meta => (0, 0),
        };
        cx.program.visit(self.inward[port], self.demand_ns(inward));
        self.fly(cx);
        if let Some(below) = self.below {
            cx.route(below, request);
        }
        cx.program.visit(self.outward[port], self.demand_ns(outward));
        self.fly(cx);
    }

    fn lay(&mut self, request: &Request, cx: &mut Context<'_>) {
        if let Some(below) = self.below {
            cx.lay(below, request);
        }
    }

    fn capacity_bytes(&self, node: u16, blocks: &Blocks) -> Option<f64> {
        blocks.capacity_bytes(self.below?, node)
    }

    /// Sends bytes between nodes. Consecutive messages use the ports in turn, as with bonded links.
    fn charge(&mut self, amount: u64, out: bool, cx: &mut Context<'_>) {
        let port = self.next % self.inward.len();
        self.next = port + 1;
        let station = if out { self.outward[port] } else { self.inward[port] };
        cx.program.visit(station, self.demand_ns(amount));
        if out {
            self.fly(cx);
        }
    }
}
