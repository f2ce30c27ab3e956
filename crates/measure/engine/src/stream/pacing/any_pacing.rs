//! Pacing of a kind that is chosen when the program runs. With this type, the driver is compiled
//! only once for all kinds. The kind never changes while the driver runs, so the branch on it costs
//! almost nothing.

use plimsoll_workload::planned::pace::{CAP_CREDIT_NS, CapTurns, Pace, StartTimes};

use super::{BatchBarrier, ClosedLoop, Gated, OpenLoop, Pacing, RateCap, Start, ThinkTimeLoop};

/// Pacing of any kind. See the module documentation.
pub enum AnyPacing {
    Closed(ClosedLoop),
    /// Closed loop in which each client issues whole batches.
    Barrier(BatchBarrier),
    /// Closed loop in which clients wait for a think time.
    Thinking(ThinkTimeLoop),
    Open(OpenLoop<StartTimes>),
    /// Closed loop whose rate is limited.
    Capped(Box<RateCap<AnyPacing, StartTimes>>),
    /// Pacing of any other kind. It starts when the gate of its stream opens.
    Gated(Box<Gated<AnyPacing>>),
}

impl AnyPacing {
    /// Creates the pacing for `clients` clients, which start at `start_ns`. A rate cap applies to
    /// closed loops only, because an open loop has its own schedule.
    #[must_use]
    pub fn new(pace: Pace, cap: Option<CapTurns>, clients: u32, start_ns: u64) -> Self {
        let each = |depth: u32| vec![depth; clients as usize];
        let closed = match pace {
            Pace::Closed { depth } => Self::Closed(ClosedLoop::new(&each(depth), start_ns)),
            Pace::Barrier { depth, think_ns } => {
                Self::Barrier(BatchBarrier::new(&each(depth), think_ns, start_ns))
            }
            Pace::Thinking { depth, think_ns } => {
                let think_ns = vec![think_ns; clients as usize];
                Self::Thinking(ThinkTimeLoop::new(&each(depth), &think_ns, start_ns))
            }
            Pace::Open { arrivals, places } => {
                return Self::Open(OpenLoop::new(arrivals, places, start_ns));
            }
            Pace::Gated { gate, pace } => {
                let inner = Self::new(*pace, cap, clients, 0);
                return Self::Gated(Box::new(Gated::new(gate, inner, start_ns)));
            }
        };
        match cap {
            None => closed,
            Some(CapTurns(turns)) => {
                Self::Capped(Box::new(RateCap::new(closed, turns, start_ns, CAP_CREDIT_NS)))
            }
        }
    }
}

impl Pacing for AnyPacing {
    fn is_scheduled(&self) -> bool {
        match self {
            Self::Closed(closed) => closed.is_scheduled(),
            Self::Barrier(barrier) => barrier.is_scheduled(),
            Self::Thinking(thinking) => thinking.is_scheduled(),
            Self::Open(open) => open.is_scheduled(),
            Self::Capped(capped) => capped.is_scheduled(),
            Self::Gated(gated) => gated.is_scheduled(),
        }
    }

    #[inline(always)]
    fn next(&mut self, now_ns: u64) -> Option<Start> {
        match self {
            Self::Closed(closed) => closed.next(now_ns),
            Self::Barrier(barrier) => barrier.next(now_ns),
            Self::Thinking(thinking) => thinking.next(now_ns),
            Self::Open(open) => open.next(now_ns),
            Self::Capped(capped) => capped.next(now_ns),
            Self::Gated(gated) => gated.next(now_ns),
        }
    }

    #[inline(always)]
    fn due_ns(&self) -> Option<u64> {
        match self {
            Self::Closed(closed) => closed.due_ns(),
            Self::Barrier(barrier) => barrier.due_ns(),
            Self::Thinking(thinking) => thinking.due_ns(),
            Self::Open(open) => open.due_ns(),
            Self::Capped(capped) => capped.due_ns(),
            Self::Gated(gated) => gated.due_ns(),
        }
    }

    fn prepare(&mut self) {
        match self {
            Self::Closed(closed) => closed.prepare(),
            Self::Barrier(barrier) => barrier.prepare(),
            Self::Thinking(thinking) => thinking.prepare(),
            Self::Open(open) => open.prepare(),
            Self::Capped(capped) => capped.prepare(),
            Self::Gated(gated) => gated.prepare(),
        }
    }

    #[inline(always)]
    fn completed(&mut self, place: u32, now_ns: u64) {
        match self {
            Self::Closed(closed) => closed.completed(place, now_ns),
            Self::Barrier(barrier) => barrier.completed(place, now_ns),
            Self::Thinking(thinking) => thinking.completed(place, now_ns),
            Self::Open(open) => open.completed(place, now_ns),
            Self::Capped(capped) => capped.completed(place, now_ns),
            Self::Gated(gated) => gated.completed(place, now_ns),
        }
    }

    fn retire(&mut self, start: Start) {
        match self {
            Self::Closed(closed) => closed.retire(start),
            Self::Barrier(barrier) => barrier.retire(start),
            Self::Thinking(thinking) => thinking.retire(start),
            Self::Open(open) => open.retire(start),
            Self::Capped(capped) => capped.retire(start),
            Self::Gated(gated) => gated.retire(start),
        }
    }

    fn stop(&mut self, stop_ns: u64) {
        match self {
            Self::Closed(closed) => closed.stop(stop_ns),
            Self::Barrier(barrier) => barrier.stop(stop_ns),
            Self::Thinking(thinking) => thinking.stop(stop_ns),
            Self::Open(open) => open.stop(stop_ns),
            Self::Capped(capped) => capped.stop(stop_ns),
            Self::Gated(gated) => gated.stop(stop_ns),
        }
    }

    fn never_started(&mut self, each: &mut dyn FnMut(u32, u64)) {
        match self {
            Self::Closed(closed) => closed.never_started(each),
            Self::Barrier(barrier) => barrier.never_started(each),
            Self::Thinking(thinking) => thinking.never_started(each),
            Self::Open(open) => open.never_started(each),
            Self::Capped(capped) => capped.never_started(each),
            Self::Gated(gated) => gated.never_started(each),
        }
    }
}
