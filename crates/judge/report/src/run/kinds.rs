//! Kinds of I/O. A kind combines several classes of a run for reports.

use hdrhistogram::Histogram;
use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::ClassTotals;
use plimsoll_judge::figures::{Sums, measured};
use plimsoll_plan::Workload;

/// Operation of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Read,
    Write,
    /// A flush, which makes earlier writes durable and transfers no data.
    Flush,
}

impl Operation {
    /// Returns the operation of a class. Flushes are recorded as writes of 0 bytes, and their class
    /// has a special name.
    pub fn of(class: &ClassTotals) -> Self {
        match class.is_read {
            true => Self::Read,
            false if class.size_bytes == 0 && flushes(&class.name) => Self::Flush,
            false => Self::Write,
        }
    }

    /// Returns the name that reports use, in the plural.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
            Self::Flush => "flushes",
        }
    }

    /// Returns the name that CSV keys use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
        }
    }
}

/// Returns true if operations of the class with this name make earlier writes durable.
fn flushes(name: &str) -> bool {
    name.ends_with("flush") || name.ends_with(".sync")
}

/// The reads, writes or flushes of a group of classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub group: String,
    pub operation: Operation,
    /// Display name: `database reads`.
    pub label: String,
    /// CSV name: `db_read`.
    pub key: String,
}

/// Order in which reports list the groups.
const ORDER: [&str; 8] = [
    "transactional",
    "durable",
    "first_byte",
    "log",
    "maintenance",
    "replication",
    "upkeep",
    "phase",
];

/// Returns the kinds of I/O in the measured phase, in display order.
pub(crate) fn kinds(bundle: &Bundle) -> Vec<Kind> {
    let mut seen: Vec<(usize, Operation, String)> = Vec::new();
    for class in bundle.run.classes.iter().filter(|class| class.count > 0) {
        let place = ORDER.iter().position(|group| *group == class.group).unwrap_or(ORDER.len());
        let entry = (place, Operation::of(class), class.group.clone());
        if !seen.contains(&entry) {
            seen.push(entry);
        }
    }
    seen.sort();
    seen.into_iter().map(|(_, operation, group)| kind(bundle, &group, operation)).collect()
}

/// Returns a kind of I/O.
pub(crate) fn kind(bundle: &Bundle, group: &str, operation: Operation) -> Kind {
    let verb = operation.plural();
    let mail = matches!(bundle.plan.workload, Workload::Mailbox(_));
    let label = match (group, mail) {
        ("transactional", true) => format!("database {verb}"),
        ("transactional", false) => verb.to_owned(),
        ("log", _) => format!("log {verb}"),
        ("durable", true) => format!("durable log {verb}"),
        ("first_byte", _) => "first bytes".to_owned(),
        ("maintenance", _) => format!("maintenance {verb}"),
        ("replication", _) => format!("log replication {verb}"),
        ("upkeep", _) => format!("upkeep {verb}"),
        (other, _) => format!("{other} {verb}"),
    };
    let short = match (group, mail) {
        ("transactional", true) => "db_",
        ("transactional", false) => "",
        (other, _) => other,
    };
    let gap = if short.is_empty() || short.ends_with('_') { "" } else { "_" };
    let key = format!("{short}{gap}{}", operation.word());
    Kind { group: group.to_owned(), operation, label, key }
}

impl Kind {
    /// Returns true if limits apply to this kind of I/O. They apply to the I/O of the workload
    /// itself, and to the log of a mail store.
    pub fn is_judged(&self) -> bool {
        matches!(self.group.as_str(), "transactional" | "durable" | "first_byte" | "log")
    }

    /// Returns true if a class belongs to this kind.
    pub fn includes(&self, class: &ClassTotals) -> bool {
        class.group == self.group && Operation::of(class) == self.operation
    }

    /// Returns the colour of this kind, which is the same in every chart.
    pub fn colour(&self) -> u8 {
        match (self.group.as_str(), self.operation) {
            ("transactional", Operation::Read) => 0,
            ("transactional", _) => 3,
            ("log" | "durable" | "first_byte", _) => 1,
            ("maintenance", _) => 2,
            ("replication", _) => 4,
            _ => 7,
        }
    }

    /// Returns totals of the measured phase, for one instance or for all instances.
    pub fn totals(&self, bundle: &Bundle, instance: Option<u32>) -> Totals {
        let mut totals = Totals::default();
        for class in &bundle.run.classes {
            if self.includes(class) && instance.is_none_or(|i| i == class.instance) {
                totals.add(class);
            }
        }
        totals
    }

    /// Returns a merged histogram of the measured phase: latencies from the intended start, or
    /// service times.
    pub fn histogram(&self, bundle: &Bundle, service: bool) -> Option<Histogram<u64>> {
        let mut merged = plimsoll_evidence::latency::histogram();
        for class in bundle.run.classes.iter().filter(|class| self.includes(class)) {
            let tag = if service { format!("{}.service", class.name) } else { class.name.clone() };
            if let Some(histogram) = bundle.latency.get(&tag) {
                merged.add(histogram).ok()?;
            }
        }
        (!merged.is_empty()).then_some(merged)
    }
}

/// Totals of a group of classes over the measured phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub sums: Sums,
    pub latency_ns_max: u64,
    /// Number of I/Os with a measured service time.
    pub served: u64,
    pub service_ns_sum: u64,
    pub service_ns_max: u64,
}

impl Totals {
    pub fn add(&mut self, class: &ClassTotals) {
        self.sums.count += class.count;
        self.sums.latency_ns = self.sums.latency_ns.saturating_add(class.latency_ns_sum);
        self.sums.size_bytes += class.size_bytes;
        self.sums.drained += class.drained;
        self.sums.drained_bytes += class.drained_bytes;
        self.latency_ns_max = self.latency_ns_max.max(class.latency_ns_max);
        self.served += class.served();
        self.service_ns_sum = self.service_ns_sum.saturating_add(class.service_ns_sum);
        self.service_ns_max = self.service_ns_max.max(class.service_ns_max);
    }

    /// Returns the rate; `None` if the run has no measured phase.
    pub fn rate_per_s(&self, bundle: &Bundle) -> Option<f64> {
        per_second(bundle, self.sums.count_within())
    }

    /// Returns the mean latency; `None` if there are no I/Os or their latency was not measured.
    pub fn latency_ns_avg(&self) -> Option<f64> {
        mean(self.sums.latency_ns, self.sums.count).filter(|ns| *ns > 0.0)
    }

    /// Returns the mean service time; `None` if no I/O has a measured service time.
    pub fn service_ns_avg(&self) -> Option<f64> {
        mean(self.service_ns_sum, self.served)
    }

    /// Returns the mean size; `None` if there are no I/Os or they are flushes.
    pub fn size_bytes_avg(&self) -> Option<f64> {
        mean(self.sums.size_bytes, self.sums.count).filter(|size| *size > 0.0)
    }
}

/// Divides a total by the duration of the measured phase.
pub(crate) fn per_second(bundle: &Bundle, sum: u64) -> Option<f64> {
    measured(bundle).map(|phase| sum as f64 * 1e9 / phase.duration_ns as f64)
}

fn mean(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum as f64 / count as f64)
}
