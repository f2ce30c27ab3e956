//! The load that produced a table.

use plimsoll_model::fit::{Row, Table as Measured};
use plimsoll_model::stats::quantile;

use super::blocks::{Operations, Parameter};

/// Start value of a limit, relative to the highest rate of the table.
const LIMIT_START: f64 = 0.98;

/// The load that produced a table. In each row, every client keeps the stated number of operations
/// in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Load {
    pub(super) clients: u32,
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) durable_writes: bool,
    pub(super) several_sizes: bool,
    /// Highest rates in the table.
    pub(super) ops_per_s_max: f64,
    pub(super) bytes_per_s_max: f64,
    /// Lowest mean latency of the rows.
    pub(super) latency_us_min: f64,
}

impl Load {
    /// If rows do not state their clients, the number of clients follows from Little's law: rate x
    /// mean latency is the number of operations in flight. `None` without usable rows.
    pub(super) fn of(table: &Measured) -> Option<Self> {
        let clients_of = |row: &Row| {
            let in_flight = row.ops_per_s * row.latency_ms * 1e-3;
            row.clients.map_or(in_flight / f64::from(row.depth.unwrap_or(1)), f64::from)
        };
        let mut clients: Vec<f64> = table.matrix().map(clients_of).collect();
        let clients = quantile(&mut clients, 0.5)?;
        let size = table.matrix().next().map(|row| row.io_bytes);
        let max = |rate: fn(&Row) -> f64| table.matrix().map(rate).fold(0.0, f64::max);
        Some(Self {
            ops_per_s_max: max(|row| row.ops_per_s),
            bytes_per_s_max: max(|row| row.ops_per_s * row.io_bytes.unwrap_or(0) as f64),
            latency_us_min: table
                .matrix()
                .map(|row| row.latency_ms * 1e3)
                .fold(f64::INFINITY, f64::min),
            clients: (clients + 0.5).clamp(1.0, 1e6) as u32,
            reads: table.matrix().any(|row| row.read_share != Some(0.0)),
            writes: table.matrix().any(|row| row.read_share != Some(1.0)),
            several_sizes: table.matrix().any(|row| Some(row.io_bytes) != size),
            durable_writes: table.matrix().any(|row| row.durable && row.read_share != Some(1.0)),
        })
    }

    /// Returns the start values of a search. The start value of a limit must be low enough to have
    /// an effect. Otherwise small changes of the limit would change nothing, and the search could
    /// not improve it. Half of the lowest latency is attributed to the drive, and a quarter to the
    /// path in each direction.
    pub(super) fn start_of(self, parameter: &Parameter) -> f64 {
        let (low, high) = parameter.bounds;
        let value = match parameter.field {
            "baseline_ops_per_s" => LIMIT_START * self.ops_per_s_max,
            field if field.ends_with("bytes_per_s") => LIMIT_START * self.bytes_per_s_max,
            "read_us" | "write_us" | "durable_us" => self.latency_us_min / 2.0,
            "latency_us" => self.latency_us_min / 4.0,
            _ => libm::sqrt(low * high),
        };
        value.clamp(low, high)
    }

    pub(super) fn has(self, operations: Operations) -> bool {
        match operations {
            Operations::All => true,
            Operations::Reads => self.reads,
            Operations::Writes => self.writes,
            Operations::DurableWrites => self.durable_writes,
        }
    }
}
