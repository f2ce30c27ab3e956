//! Stations: queues and servers for I/Os, with their accounting.
//!
//! Disciplines: first come first served with `c` servers and a background class that yields to the
//! foreground; service in random order; processor sharing; a disk that selects the nearest of its
//! queued commands; a gate with tokens; a token bucket; and a pure delay. Each station integrates
//! its number of customers over time. Independently, it adds up the sojourn times of the customers.
//! By Little's law (J. D. C. Little, "A proof for the queuing formula L = λW", Operations Research
//! 9(3), 1961) the integral and the sum must be equal over any window, if a customer counts only
//! for its time inside the window. [`StationStats::little_error`] is the relative difference. A run
//! asserts that this difference is below 0.1 %.

use super::hdd::Arm;
use crate::core::rng::Stream;
use std::collections::{BTreeMap, VecDeque};

/// Value for "no token", which marks the end of a queue.
pub(crate) const NONE: u32 = u32::MAX;

/// Order of service of a station.
#[derive(Clone, Debug)]
pub enum Order {
    /// First come first served. Background work is served if no foreground work waits. While
    /// foreground work waits, one background visit is served after every `background_every`
    /// foreground services.
    Fcfs {
        /// Number of foreground services after which one waiting background visit is served. If the
        /// number is 0, background work always waits for foreground work.
        background_every: u32,
    },
    /// Serves the oldest waiting token in most cases, and a random waiting token in a share of the
    /// cases. With a share of 1, tokens are served in random order. A small share models a
    /// scheduler that approximately preserves the order.
    Disordered {
        /// Share of the services in which the token is chosen at random.
        random_share: f64,
    },
    /// Serves all customers at the same time. Each customer gets an equal share of the servers, but
    /// at most one server.
    ProcessorSharing,
    /// A disk arm with command queueing; see [`Arm`].
    Disk(Box<Arm>),
    /// A gate with a fixed number of tokens. Customers acquire tokens and return them later. They
    /// wait in order of arrival, or are admitted in random order.
    Gate {
        tokens: u64,
        /// True if waiting customers are admitted in random order.
        random: bool,
    },
    /// Doors, each of which opens once. A token waits at a closed door until the door opens, and
    /// passes an open door. Door numbers are small. [`Sim::close`](crate::core::Sim::close) closes
    /// a door.
    Doors,
    /// A token bucket, whose tokens accumulate at a rate: the generic cell rate algorithm (ITU-T
    /// I.371).
    Bucket {
        /// Number of tokens that accumulate in a second.
        rate_per_s: f64,
        /// Maximum number of tokens that the bucket stores.
        burst: f64,
    },
    /// A delay without a queue: the service of every customer starts immediately, and takes as long
    /// as the demand of the visit.
    Delay,
}

/// Counters of a station since the start of the measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationStats {
    /// Number of visits that started. It equals the number of customers that arrived.
    pub arrivals: u64,
    /// Number of visits that ended. It equals the number of customers that left.
    pub departures: u64,
    /// Number of departures of background work. `departures` includes them.
    pub background_departures: u64,
    /// Number of busy servers, integrated over time. For a bucket: time in which the tokens of the
    /// visits that ended accumulate.
    pub busy_ns: u64,
    /// Number of customers that wait or are served, integrated over time.
    pub area_ns: u64,
    /// Total time that all customers spent at the station, computed from their time stamps.
    pub sojourn_ns: u64,
    /// Sum of the service times of all visits that ended.
    pub service_ns: u64,
    /// Highest number of customers that were at the station at the same time.
    pub customers_max: u32,
}

impl StationStats {
    /// Returns the relative difference between two numbers: the number of customers integrated over
    /// time, and the sum of the customers' sojourn times. By Little's law, the difference is 0.
    pub fn little_error(&self) -> f64 {
        let (area, sojourn) = (self.area_ns as f64, self.sojourn_ns as f64);
        if area == sojourn { 0.0 } else { (area - sojourn).abs() / area.max(sojourn) }
    }

    /// Returns the increase of the counters since an earlier reading of the counters of the same
    /// station.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            arrivals: self.arrivals - earlier.arrivals,
            departures: self.departures - earlier.departures,
            background_departures: self.background_departures - earlier.background_departures,
            busy_ns: self.busy_ns - earlier.busy_ns,
            area_ns: self.area_ns - earlier.area_ns,
            sojourn_ns: self.sojourn_ns - earlier.sojourn_ns,
            service_ns: self.service_ns - earlier.service_ns,
            customers_max: self.customers_max,
        }
    }
}

/// A station: servers, a queue and their accounting.
#[derive(Clone, Debug)]
pub(crate) struct Station {
    pub(crate) servers: u32,
    pub(crate) busy: u32,
    pub(crate) customers: u32,
    pub(crate) discipline: Discipline,
    pub(crate) foreground: Fifo,
    pub(crate) background: Fifo,
    pub(crate) since_background: u32,
    /// Factor by which service times are multiplied. It is 1, or a higher value while an event
    /// slows the station down.
    stretch: f64,
    last_ns: u64,
    window_ns: u64,
    pub(crate) stats: StationStats,
}

/// State of a station. Which variant a station needs depends on its [`Order`] of service.
#[derive(Clone, Debug)]
pub(crate) enum Discipline {
    Fcfs { background_every: u32 },
    Disordered { waiting: VecDeque<u32>, random_share: f64, stream: Stream },
    Sharing(Sharing),
    Disk(Box<Arm>),
    Gate { free: u64, waiting: VecDeque<(u32, u64)>, random: Option<Stream> },
    Doors { doors: Vec<Door> },
    Bucket { ns_per_token: f64, burst_ns: f64, theoretical_ns: f64 },
    Delay,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Door {
    pub(crate) is_closed: bool,
    /// Queue of tokens that wait for service.
    pub(crate) waiting: Vec<u32>,
}

/// A queue of tokens. It is a linked list, whose links are stored in the tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fifo {
    pub(crate) head: u32,
    pub(crate) tail: u32,
}

impl Fifo {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE };
}

/// Processor sharing in virtual work. Every customer in service gains work at the same rate.
/// Customers therefore depart in the order of (work at arrival + demand), which is known at
/// arrival. Later arrivals change only the times of the departures.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sharing {
    work_ns: f64,
    last_ns: u64,
    leaving: BTreeMap<(u64, u64), u32>,
    arrivals: u64,
    pub(crate) version: u32,
}

impl Sharing {
    fn rate(&self, servers: u32) -> f64 {
        let n = self.leaving.len() as f64;
        if n <= f64::from(servers) { 1.0 } else { f64::from(servers) / n }
    }

    fn advance(&mut self, now_ns: u64, servers: u32) {
        self.work_ns += (now_ns - self.last_ns) as f64 * self.rate(servers);
        self.last_ns = now_ns;
    }

    pub(crate) fn enter(&mut self, now_ns: u64, servers: u32, token: u32, demand_ns: u64) {
        self.advance(now_ns, servers);
        // Work never exceeds 2^53 ns (104 days), so the sum is exact to a fraction of a nanosecond.
        // The bits of positive floats have the same order as the floats.
        let finish = self.work_ns + demand_ns as f64;
        self.leaving.insert((finish.to_bits(), self.arrivals), token);
        self.arrivals += 1;
        self.version = self.version.wrapping_add(1);
    }

    pub(crate) fn leave(&mut self, now_ns: u64, servers: u32) -> Option<u32> {
        self.advance(now_ns, servers);
        self.version = self.version.wrapping_add(1);
        self.leaving.pop_first().map(|(_, token)| token)
    }

    pub(crate) fn next_ns(&self, servers: u32) -> Option<u64> {
        let (&(bits, _), _) = self.leaving.first_key_value()?;
        let left = (f64::from_bits(bits) - self.work_ns).max(0.0);
        Some(self.last_ns + libm::ceil(left / self.rate(servers)) as u64)
    }
}

impl Station {
    pub(crate) fn new(servers: u32, order: Order, seed: u64, name: &str) -> Self {
        let discipline = match order {
            Order::Fcfs { background_every } => Discipline::Fcfs { background_every },
            Order::Disordered { random_share } => Discipline::Disordered {
                waiting: VecDeque::new(),
                random_share,
                stream: Stream::new(seed, name),
            },
            Order::ProcessorSharing => Discipline::Sharing(Sharing::default()),
            Order::Disk(arm) => Discipline::Disk(arm),
            Order::Gate { tokens, random } => Discipline::Gate {
                free: tokens,
                waiting: VecDeque::new(),
                random: random.then(|| Stream::new(seed, name)),
            },
            Order::Doors => Discipline::Doors { doors: Vec::new() },
            Order::Bucket { rate_per_s, burst } => Discipline::Bucket {
                ns_per_token: 1e9 / rate_per_s,
                burst_ns: burst * 1e9 / rate_per_s,
                theoretical_ns: 0.0,
            },
            Order::Delay => Discipline::Delay,
        };
        Self {
            servers: servers.max(1),
            busy: 0,
            customers: 0,
            discipline,
            foreground: Fifo::EMPTY,
            background: Fifo::EMPTY,
            since_background: 0,
            stretch: 1.0,
            last_ns: 0,
            window_ns: 0,
            stats: StationStats::default(),
        }
    }

    /// Sets the speed of the station as a share of its normal speed. The new speed applies to
    /// services that start later.
    pub(crate) fn set_speed(&mut self, speed: f64) {
        self.stretch = 1.0 / speed;
    }

    /// Returns the time of a service that starts now.
    #[inline(always)]
    pub(crate) fn service_ns(&self, demand_ns: u64) -> u64 {
        if self.stretch == 1.0 { demand_ns } else { (demand_ns as f64 * self.stretch) as u64 }
    }

    /// Updates the integrals to `now_ns`. Called before every change of `customers` or `busy`.
    #[inline]
    pub(crate) fn account(&mut self, now_ns: u64) {
        let elapsed = now_ns - self.last_ns;
        self.stats.area_ns += u64::from(self.customers) * elapsed;
        self.stats.busy_ns += u64::from(self.busy) * elapsed;
        self.last_ns = now_ns;
    }

    #[inline]
    pub(crate) fn count_arrival(&mut self) {
        self.customers += 1;
        self.stats.arrivals += 1;
        self.stats.customers_max = self.stats.customers_max.max(self.customers);
    }

    #[inline]
    pub(crate) fn count_departure(&mut self, now_ns: u64, enter_ns: u64, start_ns: u64, bg: bool) {
        self.customers -= 1;
        self.stats.departures += 1;
        self.stats.background_departures += u64::from(bg);
        self.stats.sojourn_ns += now_ns - enter_ns.max(self.window_ns);
        self.stats.service_ns += now_ns - start_ns;
    }

    /// For a customer that is still present at the end of the window, adds the time that the
    /// customer spent inside the window.
    pub(crate) fn count_resident(&mut self, now_ns: u64, enter_ns: u64) {
        self.stats.sojourn_ns += now_ns - enter_ns.max(self.window_ns);
    }

    /// Starts a new measured window. Customers stay at the station; counters are reset to 0.
    pub(crate) fn open_window(&mut self, now_ns: u64) {
        self.account(now_ns);
        self.window_ns = now_ns;
        self.stats = StationStats { customers_max: self.customers, ..StationStats::default() };
    }
}
