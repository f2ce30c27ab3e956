//! Which I/O is which: the classes of a run, put together as people think of them.

use hdrhistogram::Histogram;
use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::ClassTotals;
use plimsoll_judge::figures::{Sums, measured};
use plimsoll_plan::Workload;

/// What an I/O does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Read,
    Write,
    /// Makes earlier writes durable; it moves no bytes.
    Flush,
}

impl Operation {
    /// Of a class: flushes are recorded as writes of no bytes under a name that says so.
    pub fn of(class: &ClassTotals) -> Self {
        match class.is_read {
            true => Self::Read,
            false if class.size_bytes == 0 && flushes(&class.name) => Self::Flush,
            false => Self::Write,
        }
    }

    /// As the report names several of them.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
            Self::Flush => "flushes",
        }
    }

    /// As CSV names it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
        }
    }
}

/// Whether a class of this name makes earlier writes durable.
fn flushes(name: &str) -> bool {
    name.ends_with("flush") || name.ends_with(".sync")
}

/// Reads, writes or flushes of one group, over all instances or of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub group: String,
    pub operation: Operation,
    /// As the report names it: `database reads`.
    pub label: String,
    /// As CSV names it: `db_read`.
    pub key: String,
}

/// The order in which groups are shown.
const ORDER: [&str; 7] =
    ["transactional", "durable", "log", "maintenance", "replication", "upkeep", "phase"];

/// The kinds of I/O that occurred in the measured phase, in the order they are shown.
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

/// One kind of I/O.
pub(crate) fn kind(bundle: &Bundle, group: &str, operation: Operation) -> Kind {
    let verb = operation.plural();
    let mail = matches!(bundle.plan.workload, Workload::Mailbox(_));
    let label = match (group, mail) {
        ("transactional", true) => format!("database {verb}"),
        ("transactional", false) => verb.to_owned(),
        ("log", _) => format!("log {verb}"),
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
    /// Whether a class belongs to it.
    pub fn takes(&self, class: &ClassTotals) -> bool {
        class.group == self.group && Operation::of(class) == self.operation
    }

    /// The same colour in every chart.
    pub fn colour(&self) -> u8 {
        match (self.group.as_str(), self.operation) {
            ("transactional", Operation::Read) => 0,
            ("transactional", _) => 3,
            ("log", _) => 1,
            ("maintenance", _) => 2,
            ("replication", _) => 4,
            _ => 7,
        }
    }

    /// Totals of the measured phase, of one instance or of all.
    pub fn totals(&self, bundle: &Bundle, instance: Option<u32>) -> Totals {
        let mut totals = Totals::default();
        for class in &bundle.run.classes {
            if self.takes(class) && instance.is_none_or(|i| i == class.instance) {
                totals.add(class);
            }
        }
        totals
    }

    /// Latencies of the measured phase, merged: from the intended start, or service times.
    pub fn histogram(&self, bundle: &Bundle, service: bool) -> Option<Histogram<u64>> {
        let mut merged = plimsoll_evidence::latency::histogram();
        for class in bundle.run.classes.iter().filter(|class| self.takes(class)) {
            let tag = if service { format!("{}.service", class.name) } else { class.name.clone() };
            if let Some(histogram) = bundle.latency.get(&tag) {
                merged.add(histogram).ok()?;
            }
        }
        (!merged.is_empty()).then_some(merged)
    }
}

/// Totals of some classes over the measured phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub sums: Sums,
    pub latency_ns_max: u64,
    /// I/Os that have a service time.
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

    /// Per second of the measured phase; `None` where nothing was measured.
    pub fn rate_per_s(&self, bundle: &Bundle) -> Option<f64> {
        per_second(bundle, self.sums.count_within())
    }

    /// Mean latency; `None` without I/Os.
    pub fn latency_ns_avg(&self) -> Option<f64> {
        mean(self.sums.latency_ns, self.sums.count)
    }

    /// Mean service time; `None` without I/Os.
    pub fn service_ns_avg(&self) -> Option<f64> {
        mean(self.service_ns_sum, self.served)
    }

    /// Mean size; `None` without I/Os, and for flushes, which have none.
    pub fn size_bytes_avg(&self) -> Option<f64> {
        mean(self.sums.size_bytes, self.sums.count).filter(|size| *size > 0.0)
    }
}

/// A sum of the measured phase per second.
pub(crate) fn per_second(bundle: &Bundle, sum: u64) -> Option<f64> {
    measured(bundle).map(|phase| sum as f64 * 1e9 / phase.duration_ns as f64)
}

fn mean(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum as f64 / count as f64)
}
