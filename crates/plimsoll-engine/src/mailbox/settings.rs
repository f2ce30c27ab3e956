//! The plan's numbers as the mail store wants them.

use std::path::Path;

use plimsoll_plan as plan;
use plimsoll_workload::mailbox::{
    DatabaseConfig, DatabaseState, Durability, GenerationMap, MailboxConfig, Mix, Pace, Store,
};

use super::manifest::{Manifest, Position, StoreState};
use super::marks::{KeptMarks, MappedMarks, Trust};
use crate::EngineError;

/// Shares of a mix are given to a hundredth of a percent.
const MIX_SCALE: f64 = 100.0;
/// Weights of a bias are given to a thousandth.
const BIAS_SCALE: f64 = 1000.0;

/// The store's configuration. Databases are dealt to `database_directories` in turn, logs to the
/// `log_directories` that follow them.
pub fn config(
    mailbox: &plan::Mailbox,
    seed: u64,
    store_id: u64,
    database_directories: u32,
    directories: u32,
) -> Result<MailboxConfig, EngineError> {
    let logs = directories.saturating_sub(database_directories).max(1);
    let pages = |bytes: u64| {
        u32::try_from(bytes / mailbox.page_size_bytes.max(1)).map_err(|_| {
            EngineError::Config("a database has more than 2^32 pages: plan more databases".into())
        })
    };
    let bytes = |what: &str, value: u64| {
        u32::try_from(value)
            .map_err(|_| EngineError::Config(format!("{what} of {value} bytes is too large")))
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
        writes_in_flight: mailbox.writes_in_flight,
        log_writes_in_flight: mailbox.log_writes_in_flight,
        cache_bytes: mailbox.cache_bytes,
        coalesce_bytes: bytes("coalesce_max", mailbox.coalesce_max_bytes)?,
        checkpoint_depth_bytes: mailbox.checkpoint_depth_bytes,
        checkpoint_step_bytes: mailbox.checkpoint_step_bytes,
        log_file_bytes: bytes("log_file_size", mailbox.log_file_size_bytes)?,
        log_files: mailbox.log_files,
        log_buffer_bytes: bytes("log_buffer", mailbox.log_buffer_bytes)?,
        durability: match mailbox.durability {
            plan::Durability::Dsync => Durability::DSync,
            plan::Durability::Fdatasync => Durability::Fdatasync,
        },
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

/// The configuration that a manifest describes.
pub fn of_manifest(manifest: &Manifest) -> Result<MailboxConfig, EngineError> {
    config(
        &manifest.mailbox,
        manifest.seed,
        manifest.store_id,
        manifest.database_directories,
        manifest.directories.len() as u32,
    )
}

/// The store that a manifest describes, with its generation maps, to be worked on.
pub fn store(manifest: &Manifest) -> Result<Store, EngineError> {
    store_with(manifest, |id, pages, _| {
        let marks = MappedMarks::open(Path::new(&manifest.marks), id, pages);
        let marks = marks.map_err(|error| EngineError::system("mapping the generations", error))?;
        Ok(Box::new(marks))
    })
}

/// The same to be read alone. `in_place`: it lies where it was made.
pub fn store_to_check(manifest: &Manifest, in_place: bool) -> Result<Store, EngineError> {
    store_with(manifest, |id, pages, position| {
        let trust = match position {
            Some(position) if manifest.state == StoreState::Clean => {
                Trust::ClosedAt(position.next_lsn)
            }
            _ if in_place && manifest.is_of_this_boot() => Trust::SameBoot,
            _ => Trust::Never,
        };
        Ok(Box::new(KeptMarks::read(Path::new(&manifest.marks), id, pages, trust)))
    })
}

fn store_with(
    manifest: &Manifest,
    marks: impl Fn(u32, u32, Option<&Position>) -> Result<Box<dyn GenerationMap>, EngineError>,
) -> Result<Store, EngineError> {
    let config = of_manifest(manifest)?;
    // Before anything is allocated by its numbers.
    config.validate().map_err(|error| EngineError::Config(error.to_string()))?;
    let mut states = Vec::new();
    for database in &config.databases {
        let position = manifest.positions.iter().find(|position| position.id == database.id);
        let marks = marks(database.id, database.pages_max, position)?;
        let mut state = DatabaseState::new(database.clone(), marks);
        if let Some(position) = position {
            state.pages_used = position.pages_used;
            state.log = position.log();
        }
        states.push(state);
    }
    Store::new(config, states).map_err(|error| EngineError::Config(error.to_string()))
}

/// Where each database stands.
pub fn positions(store: &Store) -> Vec<Position> {
    let position =
        |state: &DatabaseState| Position::new(state.config.id, state.pages_used, state.log);
    store.databases().iter().map(position).collect()
}
