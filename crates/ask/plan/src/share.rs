//! Divides a plan among the hosts of a fleet. The share of a host consists of a part of the
//! target's directories or exports, a part of the load, and a part of the requirement.
//!
//! Host `i` of `n` uses the directories or exports `i`, `i + n` and so on. Databases and clients
//! are assigned to these directories or exports in turn. Each database or client thereby uses the
//! same directory or export as in a run on a single host. This is possible only if every number is
//! a multiple of `n`; other numbers are rejected.

use toml::{Table, Value};

use crate::plan::Plan;
use crate::resolved::{
    Arrival, Mailbox, Matrix, Requirement, ResolvedPlan, Stream, Target, TargetKind, Workload,
};
use crate::units::{BytesPerS, SizeBytes};

/// Identifies the share of a host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// Index of the host, from 0.
    pub(crate) at: usize,
    /// Number of hosts.
    pub(crate) of: usize,
}

impl Share {
    /// Returns the text of the plan for this share.
    pub(crate) fn text(self, plan: &Plan) -> Result<String, String> {
        let whole = plan.resolve();
        // The text is valid TOML, because it was parsed before.
        let mut table: Table = plan.text().parse().unwrap_or_default();
        self.targets(&mut table, &whole)?;
        let workload = table.get_mut("workload").and_then(Value::as_table_mut);
        match (&whole.workload, workload) {
            (Workload::Mailbox(store), Some(workload)) => self.store(workload, store)?,
            (Workload::Matrix(matrix), Some(workload)) => self.streams(workload, matrix)?,
            (_, None) => {}
        }
        if let (Some(required), Some(Value::Table(table))) =
            (&whole.requirement, table.get_mut("requirement"))
        {
            self.requirement(table, required);
        }
        Ok(table.to_string())
    }

    fn targets(self, table: &mut Table, whole: &ResolvedPlan) -> Result<(), String> {
        let tables = tables(table.get_mut("target"));
        for (table, target) in tables.into_iter().zip(&whole.targets) {
            self.target(table, target)?;
        }
        Ok(())
    }

    fn target(self, table: &mut Table, target: &Target) -> Result<(), String> {
        match &target.kind {
            TargetKind::Directories { databases, logs } => {
                table.insert(
                    "databases".to_owned(),
                    self.deal(databases, "directories of databases")?,
                );
                if table.contains_key("logs") {
                    table.insert("logs".to_owned(), self.deal(logs, "directories of logs")?);
                }
            }
            TargetKind::Nfs { exports, .. } => {
                table.insert("nfs".to_owned(), self.deal(exports, "exports")?);
            }
            _ => {
                return Err(format!(
                    "the target ({}) cannot be divided among hosts: use a list of `databases` or \
                     `nfs` exports",
                    target.kind_word()
                ));
            }
        }
        Ok(())
    }

    /// Returns every `of`-th directory or export. The first has the index `at`.
    fn deal(self, places: &[String], what: &str) -> Result<Value, String> {
        self.even(places.len() as u64, what)?;
        let own = places.iter().skip(self.at).step_by(self.of);
        Ok(Value::Array(own.map(|place| Value::String(place.clone())).collect()))
    }

    fn store(self, workload: &mut Table, store: &Mailbox) -> Result<(), String> {
        let databases = self.even(u64::from(store.databases), "databases")?;
        let mailboxes = self.even(store.mailboxes, "mailboxes")?;
        let Some(table) = workload.get_mut("mailbox").and_then(Value::as_table_mut) else {
            return Ok(());
        };
        if table.contains_key("bias") {
            return Err(
                "`bias` sets different weights for databases, so the hosts cannot have equal shares"
                    .to_owned(),
            );
        }
        if store.threads_auto {
            return Err(
                "threads = \"auto\" is only possible if each host runs the whole plan: set the \
                 number of threads"
                    .to_owned(),
            );
        }
        set(table, "mailboxes", count(mailboxes));
        if table.contains_key("databases") {
            set(table, "databases", count(databases));
        }
        if table.contains_key("threads") {
            set(table, "threads", count(self.even(u64::from(store.threads), "threads")?));
        }
        if table.contains_key("cache") {
            let bytes = self.even(store.cache_bytes, "bytes of cache")?;
            set(table, "cache", text(SizeBytes(bytes)));
        }
        Ok(())
    }

    fn streams(self, workload: &mut Table, matrix: &Matrix) -> Result<(), String> {
        let tables = tables(workload.get_mut("matrix"));
        if tables.len() != matrix.streams.len() {
            return Err(
                "only a mail store or a [workload.matrix] can be divided among hosts, not a job or \
                 a trace"
                    .to_owned(),
            );
        }
        for (table, stream) in tables.into_iter().zip(&matrix.streams) {
            self.stream(table, stream)?;
        }
        Ok(())
    }

    fn stream(self, table: &mut Table, stream: &Stream) -> Result<(), String> {
        let clients = self.even(u64::from(stream.clients), "clients")?;
        if table.contains_key("clients") {
            set(table, "clients", count(clients));
        }
        let shares = self.even(u64::from(stream.files.shares), "shares of files")?;
        if table.contains_key("shares") {
            set(table, "shares", count(shares));
        }
        if let Some(bytes) =
            stream.files.working_set_bytes.filter(|_| table.contains_key("working_set"))
        {
            let bytes = self.even(bytes, "bytes of working set")?;
            set(table, "working_set", text(SizeBytes(bytes)));
        }
        let rate = match &stream.arrival {
            Arrival::Closed { rate_cap_per_s } => *rate_cap_per_s,
            Arrival::Constant { rate_per_s, .. }
            | Arrival::Poisson { rate_per_s, .. }
            | Arrival::Bursts { rate_per_s, .. } => Some(*rate_per_s),
            Arrival::Recorded { .. } => {
                return Err("operations at recorded times cannot be divided among hosts".to_owned());
            }
        };
        if let Some(rate) = rate {
            set(table, "rate", self.part(rate));
        }
        Ok(())
    }

    /// Divides the required rates by the number of hosts. Latency limits stay unchanged.
    fn requirement(self, table: &mut Table, required: &Requirement) {
        let of = self.of as u64;
        if let Some(rate) = required.iops_per_s.filter(|_| table.contains_key("iops")) {
            set(table, "iops", self.part(rate));
        }
        if let Some(rate) = required.metadata_ops_per_s {
            set(table, "metadata_ops", self.part(rate));
        }
        if let Some(bytes) = required.bandwidth_bytes_per_s {
            set(table, "bandwidth", text(BytesPerS(bytes.div_ceil(of))));
        }
        if let Some(bytes) = required.capacity_bytes {
            set(table, "capacity", text(SizeBytes(bytes.div_ceil(of))));
        }
        if let Some(stalls) = required.page_fault_stalls_max_per_s {
            set(table, "page_fault_stalls_max", self.part(stalls));
        }
    }

    fn part(self, rate: f64) -> Value {
        Value::Float(rate / self.of as f64)
    }

    /// Divides a number by the number of hosts. Returns an error if the result is not a whole
    /// number.
    fn even(self, all: u64, what: &str) -> Result<u64, String> {
        let of = self.of as u64;
        if all == 0 || !all.is_multiple_of(of) {
            return Err(format!(
                "{all} {what} cannot be divided equally among {of} hosts: use a multiple of {of}"
            ));
        }
        Ok(all / of)
    }
}

/// Returns the table. If the value is a list, returns all tables in the list.
fn tables(value: Option<&mut Value>) -> Vec<&mut Table> {
    match value {
        Some(Value::Table(one)) => vec![one],
        Some(Value::Array(several)) => several.iter_mut().filter_map(Value::as_table_mut).collect(),
        _ => Vec::new(),
    }
}

fn set(table: &mut Table, field: &str, value: Value) {
    table.insert(field.to_owned(), value);
}

fn count(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn text(value: impl std::fmt::Display) -> Value {
    Value::String(value.to_string())
}

#[cfg(test)]
mod tests;
