//! Computes from the plan when the operations of a stream start.

use std::path::Path;
use std::sync::Arc;

use plimsoll_plan::{Arrival, Stream};
use plimsoll_sys::SysError;

use super::PlannedError;
use super::gate::StreamGate;
use crate::arrival::{Rate, Recording, Schedule, Warp};
use crate::trace::Replay;

/// Times at which operations start, in nanoseconds since the start of the phase. The times are in
/// ascending order.
pub type StartTimes = Box<dyn Iterator<Item = u64> + Send>;

/// Determines when the clients of a group start operations.
pub enum Pace {
    /// Each client always has `depth` operations in flight.
    Closed {
        /// Number of operations that each client has in flight.
        depth: u32,
    },
    /// Each client issues batches. It starts the `depth` operations of a batch at the same time,
    /// when all operations of the previous batch have completed and the pause after it has passed.
    Barrier {
        /// Number of operations in each batch.
        depth: u32,
        /// Length of the pause after each batch, in ns.
        think_ns: u64,
    },
    /// Each client always has `depth` operations in flight, except for a pause after each
    /// completion.
    Thinking {
        /// Maximum number of operations that each client has in flight.
        depth: u32,
        /// Length of the pause after each completion, in ns.
        think_ns: u64,
    },
    /// Operations start at their scheduled times, even if earlier operations have not completed.
    Open {
        /// For each client: the times at which its operations start.
        arrivals: Vec<StartTimes>,
        /// Maximum number of operations that all clients together have in flight.
        places: u32,
    },
    /// Operations start according to another pace, but only while a gate is open. The gate
    /// determines when the stream starts and ends.
    Gated {
        gate: Arc<StreamGate>,
        /// Pace that applies while the gate is open.
        pace: Box<Pace>,
    },
}

impl std::fmt::Debug for Pace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed { depth } => write!(f, "Closed({depth})"),
            Self::Barrier { depth, think_ns } => write!(f, "Barrier({depth}, {think_ns} ns)"),
            Self::Thinking { depth, think_ns } => write!(f, "Thinking({depth}, {think_ns} ns)"),
            Self::Open { places, .. } => write!(f, "Open({places})"),
            Self::Gated { pace, .. } => write!(f, "Gated({pace:?})"),
        }
    }
}

/// Times at which a rate cap permits the start of one operation each.
pub struct CapTurns(pub StartTimes);

impl std::fmt::Debug for CapTurns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CapTurns")
    }
}

/// After a stall, a rate cap catches up on its schedule. This is the maximum duration of the
/// schedule that it catches up on.
pub const CAP_CREDIT_NS: u64 = 100_000_000;
/// Maximum total size of the buffers for one group of clients in an open loop.
const OPEN_ARENA_BYTES: u64 = 64 << 20;
/// Maximum number of operations that one thread of an open loop has in flight.
const OPEN_PLACES_MAX: u64 = 1024;

/// Determines when the operations of a stream start. Each stream has one pace.
/// [`StreamPace::group`] returns the part of the pace for the clients of one thread.
#[derive(Debug)]
pub struct StreamPace {
    schedule: Option<Schedule>,
    open: bool,
    batch: bool,
    think_ns: u64,
    depth: u32,
    clients: u32,
    size_bytes_max: u32,
    seed: u64,
    replay: Option<Arc<Replay>>,
}

impl StreamPace {
    /// Creates the pace for a stream of a plan. `size_bytes_max` is the size of the stream's
    /// largest operation. `read` returns the text of a file of recorded arrivals.
    ///
    /// # Errors
    /// Fails if a rate is invalid, or if the recording cannot be read.
    pub fn new(
        stream: &Stream,
        size_bytes_max: u32,
        seed: u64,
        read: impl FnOnce(&Path) -> std::io::Result<String>,
    ) -> Result<Self, PlannedError> {
        let rate = |per_s: f64| {
            Rate::per_s(per_s)
                .map_err(|error| PlannedError::Numbers(format!("stream {}: {error}", stream.name)))
        };
        let ramp = |ramp_ns: u64| if ramp_ns > 0 { Warp::Ramp { ramp_ns } } else { Warp::None };
        let schedule = match &stream.arrival {
            Arrival::Closed { rate_cap_per_s: None } => None,
            Arrival::Closed { rate_cap_per_s: Some(cap) } => {
                Some(Schedule::Constant { rate: rate(*cap)?, warp: Warp::None })
            }
            Arrival::Constant { rate_per_s, ramp_ns } => {
                Some(Schedule::Constant { rate: rate(*rate_per_s)?, warp: ramp(*ramp_ns) })
            }
            Arrival::Poisson { rate_per_s, ramp_ns } => {
                Some(Schedule::Poisson { rate: rate(*rate_per_s)?, warp: ramp(*ramp_ns) })
            }
            Arrival::Bursts { rate_per_s, on_ns, off_ns } => {
                let warp = Warp::Bursts { on_ns: *on_ns, off_ns: *off_ns };
                Some(Schedule::Poisson { rate: rate(*rate_per_s)?, warp })
            }
            // The trace determines when operations start ([`replayed`]).
            Arrival::Recorded { .. } if stream.trace.is_some() => None,
            Arrival::Recorded { file } => {
                Some(Schedule::Recorded(recording(Path::new(file), read)?))
            }
        };
        Ok(Self {
            schedule,
            open: stream.arrival.is_open(),
            batch: stream.batch,
            think_ns: stream.think_time_ns,
            depth: stream.queue_depth,
            clients: stream.clients,
            size_bytes_max,
            seed,
            replay: None,
        })
    }

    /// If the stream replays a trace, uses the start times of the trace.
    #[must_use]
    pub fn replaying(self, replay: Option<&Arc<Replay>>) -> Self {
        Self { replay: replay.cloned(), ..self }
    }

    /// Returns true if operations start at scheduled times, even if earlier operations have not
    /// completed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Returns the pace and the rate cap of the clients whose numbers are in `clients`.
    #[must_use]
    pub fn group(&self, clients: &[u32]) -> (Pace, Option<CapTurns>) {
        let depth = self.depth.max(1);
        if let Some(replay) = &self.replay {
            return (replayed(replay, depth), None);
        }
        let part = |client: u32| -> Option<StartTimes> {
            let schedule = self.schedule.as_ref()?;
            let all = u64::from(self.clients.max(1));
            Some(Box::new(schedule.part(client.into(), all, self.seed)))
        };
        if self.open {
            let arrivals: Vec<StartTimes> = clients.iter().copied().filter_map(part).collect();
            let requested = u64::from(depth) * u64::from(clients.len() as u32);
            let fits = OPEN_ARENA_BYTES / u64::from(self.size_bytes_max.max(1));
            let places = fits.clamp(requested.min(OPEN_PLACES_MAX), OPEN_PLACES_MAX);
            return (Pace::Open { arrivals, places: places as u32 }, None);
        }
        let pace = if self.batch {
            // In fio, this is a pause after each `thinktime_blocks` operations, before which fio
            // waits for all operations in flight (backend.c, handle_thinktime).
            Pace::Barrier { depth, think_ns: self.think_ns }
        } else if self.think_ns > 0 {
            Pace::Thinking { depth, think_ns: self.think_ns }
        } else {
            Pace::Closed { depth }
        };
        let turns: Option<Vec<StartTimes>> = clients.iter().copied().map(part).collect();
        (pace, turns.map(|turns| CapTurns(merged(turns))))
    }
}

/// Returns the pace for replaying a trace. If the recorded times are used, operations start at
/// these times and at most `depth` of them are in flight. Otherwise, `depth` operations are always
/// in flight.
fn replayed(replay: &Arc<Replay>, depth: u32) -> Pace {
    if !replay.at_times() {
        return Pace::Closed { depth };
    }
    let (replay, mut next) = (Arc::clone(replay), 0);
    let turns: StartTimes = Box::new(std::iter::from_fn(move || {
        let event = replay.events().get(next)?;
        next += 1;
        Some(event.at_ns)
    }));
    Pace::Open { arrivals: vec![turns], places: depth }
}

/// Merges the start times of several clients. The result is in ascending order.
fn merged(turns: Vec<StartTimes>) -> StartTimes {
    let mut heads: Vec<_> = turns.into_iter().map(Iterator::peekable).collect();
    Box::new(std::iter::from_fn(move || {
        let next = heads
            .iter_mut()
            .enumerate()
            .filter_map(|(at, head)| head.peek().map(|turn| (*turn, at)))
            .min()?;
        heads[next.1].next()
    }))
}

fn recording(
    path: &Path,
    read: impl FnOnce(&Path) -> std::io::Result<String>,
) -> Result<Recording, PlannedError> {
    let text = read(path)
        .map_err(|error| PlannedError::Arrivals(SysError::from_io("read", &error).at(path)))?;
    Recording::parse(&text)
        .map_err(|error| PlannedError::Numbers(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_of_several_clients_come_in_order() {
        let turns: Vec<StartTimes> =
            vec![Box::new([1, 5, 9].into_iter()), Box::new([2, 3].into_iter())];
        assert_eq!(merged(turns).collect::<Vec<_>>(), [1, 2, 3, 5, 9]);
    }
}
