//! Reports the counters of a running group, together with their names.

use super::database::Database;
use super::page::Damage;

/// Names of the counters of damaged pages, in the order of [`Damage::ALL`].
const DAMAGE_NAMES: [&str; Damage::ALL.len()] = [
    "checksum_errors_corrupt",
    "checksum_errors_torn",
    "checksum_errors_lost",
    "checksum_errors_stale",
    "checksum_errors_misdirected",
    "checksum_errors_unwritten",
];

/// Calls a function for each counter of a database. The arguments are the name of the counter, the
/// id of the database, and the value of the counter since the start.
pub(crate) fn report(d: &Database, each: &mut dyn FnMut(&'static str, u32, u64)) {
    let (c, log) = (&d.counts, &d.log.counts);
    let logged = d.log.append_lsn().saturating_sub(d.start_lsn);
    let all = [
        ("operations_insert", c.inserts),
        ("operations_delete", c.deletes),
        ("operations_replace", c.replaces),
        ("operations_read", c.reads),
        ("operations_without_record", c.absent),
        ("inserts_balanced_by_delete", c.balanced),
        ("pages_added", c.pages_added),
        ("pages_used", u64::from(d.state.pages_used)),
        ("commits_durable", c.commits_durable),
        ("commits_lazy", c.commits_lazy),
        ("cache_hits", c.cache_hits),
        ("cache_misses", c.cache_misses),
        ("cache_pages_dirty", u64::from(d.cache.dirty_count())),
        ("page_fault_stalls", c.page_fault_stalls),
        ("log_stalls", c.log_stalls),
        ("database_reads", c.database_reads),
        ("database_writes", c.database_writes),
        ("database_pages_written", c.pages_written),
        ("database_pages_coalesced", c.pages_written - c.database_writes),
        ("database_flushes", c.database_flushes),
        ("log_bytes", logged),
        ("log_record_bytes", log.record_bytes),
        ("log_writes", log.writes),
        ("log_write_bytes", log.write_bytes),
        ("log_writes_sequential", log.sequential_writes),
        ("log_flushes", log.flushes),
        ("maintenance_reads", c.maintenance_reads),
        ("maintenance_bytes", c.maintenance_bytes),
        ("maintenance_pages_skipped", c.maintenance_pages_skipped),
        ("replication_reads", c.replication_reads),
        ("replication_skipped_bytes", c.replication_skipped_bytes),
    ];
    for (name, value) in all {
        each(name, d.id, value);
    }
    for (name, value) in DAMAGE_NAMES.into_iter().zip(c.damage) {
        each(name, d.id, value);
    }
}
