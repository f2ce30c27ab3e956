//! Converts the mail store of a plan to a configuration.

use plimsoll_plan as plan;

use super::PlannedError;
use crate::mailbox::{DatabaseConfig, MailboxConfig, Mix, Pace};

/// A share in percent is multiplied by this factor and rounded to a whole number. Shares are
/// therefore exact to a hundredth of a percent.
const MIX_SCALE: f64 = 100.0;
/// The weight of a database (bias) is multiplied by this factor and rounded to a whole number.
/// Weights are therefore exact to a thousandth.
const BIAS_SCALE: f64 = 1000.0;

/// Creates the configuration of the mail store. The databases are assigned to the first
/// `database_directories` directories in rotation. The logs are assigned to the other directories
/// in rotation.
///
/// # Errors
/// Fails if a number in the plan is too large for a mail store.
pub fn config(
    mailbox: &plan::Mailbox,
    seed: u64,
    store_id: u64,
    database_directories: u32,
    directories: u32,
) -> Result<MailboxConfig, PlannedError> {
    let logs = directories.saturating_sub(database_directories).max(1);
    let pages = |bytes: u64| {
        u32::try_from(bytes / mailbox.page_size_bytes.max(1)).map_err(|_| {
            PlannedError::Numbers(
                "a database has more than 2^32 pages: use more databases in the plan".into(),
            )
        })
    };
    let bytes = |what: &str, value: u64| {
        u32::try_from(value)
            .map_err(|_| PlannedError::Numbers(format!("{what} of {value} bytes is too large")))
    };
    let mut databases = Vec::new();
    for id in 0..mailbox.databases {
        let directory = id % database_directories.max(1);
        let log_directory = database_directories + id % logs;
        let bias = mailbox.bias.get(id as usize).copied().unwrap_or(1.0);
        databases.push(DatabaseConfig {
            pages_max: pages(mailbox.database_capacity_bytes)?,
            bias: (bias * BIAS_SCALE).round() as u32,
            ..DatabaseConfig::new(
                id,
                directory,
                log_directory,
                pages(mailbox.database_initial_bytes)?,
            )
        });
    }
    let share = |percent: f64| (percent * MIX_SCALE).round() as u32;
    let mix = &mailbox.mix;
    let defaults = MailboxConfig::new(store_id, seed, databases, mailbox.threads);
    Ok(MailboxConfig {
        page_bytes: bytes("page_size", mailbox.page_size_bytes)?,
        record_bytes: bytes("record_size", mailbox.record_size_bytes)?,
        mix: Mix {
            insert: share(mix.insert_percent),
            delete: share(mix.delete_percent),
            replace: share(mix.replace_percent),
            read: share(mix.read_percent),
        },
        initial_fill: mailbox.initial_fill,
        lazy_commit_share: mailbox.lazy_commit_share,
        lazy_flush_ns: mailbox.lazy_flush_ns,
        cache_free_share: mailbox.cache_free_share,
        cache_low_share: mailbox.cache_low_share.unwrap_or(mailbox.cache_free_share),
        writes_in_flight: mailbox.writes_in_flight,
        log_writes_in_flight: mailbox.log_writes_in_flight,
        cache_bytes: mailbox.cache_bytes,
        coalesce_bytes: bytes("coalesce_max", mailbox.coalesce_max_bytes)?,
        checkpoint_depth_bytes: mailbox.checkpoint_depth_bytes,
        checkpoint_step_bytes: mailbox.checkpoint_step_bytes,
        log_file_bytes: bytes("log_file_size", mailbox.log_file_size_bytes)?,
        log_files: mailbox.log_files,
        log_buffer_bytes: bytes("log_buffer", mailbox.log_buffer_bytes)?,
        durability: mailbox.durability,
        maintenance_bytes: match mailbox.maintenance {
            Some(m) => bytes("maintenance_read", m.read_bytes)?,
            None => defaults.maintenance_bytes,
        },
        maintenance_interval_ns: mailbox.maintenance.map_or(0, |m| m.interval_ns),
        copies: mailbox.copies,
        replication_bytes: bytes("replication_read", mailbox.replication_read_bytes)?,
        pace: match mailbox.pace {
            plan::Pace::Free => Pace::Free { think_ns: mailbox.think_time_ns },
            plan::Pace::Target => Pace::Target { rate_ios_per_s: mailbox.target_iops_per_s },
        },
        compressibility: mailbox.compressibility,
        ..defaults
    })
}
