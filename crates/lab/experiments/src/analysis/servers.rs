//! Figures of each server, for runs with several servers.

use std::collections::BTreeMap;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::run::Instance;
use plimsoll_judge::figures::{NS_PER_S, Pick, Sums, measured};
use serde::{Deserialize, Serialize};

/// One server: a node of a model, or a directory that contains databases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Server {
    pub name: String,
    pub databases: u32,
    /// Transactional I/Os per second.
    pub rate_per_s: f64,
    /// Mean latency of database reads.
    pub read_latency_ns_avg: Option<u64>,
    /// Mean latency of database writes.
    pub write_latency_ns_avg: Option<u64>,
    /// Mean latency of log writes.
    pub log_latency_ns_avg: Option<u64>,
}

/// Returns the server of a database: the node `node1` for `virtual disk 2 of node1`, otherwise the
/// directory of the database's file.
fn server_of(instance: &Instance) -> String {
    match instance.path.rsplit_once(" of ") {
        Some((_, node)) => node.to_owned(),
        None => {
            let parts: Vec<&str> = instance.path.rsplitn(3, '/').collect();
            parts.last().filter(|_| parts.len() == 3).unwrap_or(&"").to_string()
        }
    }
}

/// Returns the servers of a mail store's run. The list is empty if there is only one server.
pub(super) fn servers(bundle: &Bundle) -> Vec<Server> {
    let Some(measure) = measured(bundle) else { return Vec::new() };
    let seconds = measure.duration_ns as f64 / NS_PER_S;
    let mut of: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (index, instance) in (0u32..).zip(&bundle.run.instances) {
        let number = instance.name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse();
        of.entry(server_of(instance)).or_default().push(number.unwrap_or(index));
    }
    if of.len() < 2 || bundle.plan.workload.mailbox().is_none() {
        return Vec::new();
    }
    let sums = |databases: &[u32], pick: fn(Option<u32>) -> Pick| {
        databases.iter().fold(Sums::default(), |all, &database| {
            let one = plimsoll_judge::figures::totals(bundle, pick(Some(database)));
            Sums {
                count: all.count + one.count,
                latency_ns: all.latency_ns.saturating_add(one.latency_ns),
                size_bytes: all.size_bytes + one.size_bytes,
                drained: all.drained + one.drained,
                drained_bytes: all.drained_bytes + one.drained_bytes,
            }
        })
    };
    of.into_iter()
        .map(|(name, databases)| {
            let reads = sums(&databases, Pick::DatabaseReads);
            let writes = sums(&databases, Pick::DatabaseWrites);
            let within = reads.count_within() + writes.count_within();
            Server {
                name,
                databases: databases.len() as u32,
                rate_per_s: within as f64 / seconds,
                read_latency_ns_avg: reads.mean_ns(),
                write_latency_ns_avg: writes.mean_ns(),
                log_latency_ns_avg: sums(&databases, Pick::LogWrites).mean_ns(),
            }
        })
        .collect()
}
