//! Opens the mail store that a manifest describes.

use std::path::Path;

use plimsoll_workload::mailbox::{DatabaseState, GenerationMap, MailboxConfig, Store};
use plimsoll_workload::planned;

use super::generation_map::{MappedGenerationMap, StoredGenerationMap, Trust};
use super::manifest::{Manifest, Position, StoreState};
use crate::EngineError;

/// Returns the store configuration that a manifest describes.
pub fn config_of(manifest: &Manifest) -> Result<MailboxConfig, EngineError> {
    let config = planned::store::config(
        &manifest.mailbox,
        manifest.seed,
        manifest.store_id,
        manifest.database_directories,
        manifest.directories.len() as u32,
    )?;
    Ok(config)
}

/// Opens the mail store that a manifest describes for reading and writing. Also opens its
/// generation maps.
pub fn open_store(manifest: &Manifest) -> Result<Store, EngineError> {
    open_store_with(manifest, |id, pages, _| {
        let map = MappedGenerationMap::open(Path::new(&manifest.generation_maps), id, pages);
        let map = map.map_err(|error| EngineError::system("mapping the generations", error))?;
        Ok(Box::new(map))
    })
}

/// Opens the mail store that a manifest describes for reading only. `in_place` is true if the store
/// is still in its original place.
pub fn open_store_read_only(manifest: &Manifest, in_place: bool) -> Result<Store, EngineError> {
    open_store_with(manifest, |id, pages, position| {
        let trust = match position {
            Some(position) if manifest.state == StoreState::Clean => {
                Trust::ClosedAt(position.next_lsn)
            }
            _ if in_place && manifest.is_of_this_boot() => Trust::SameBoot,
            _ => Trust::Never,
        };
        Ok(Box::new(StoredGenerationMap::read(
            Path::new(&manifest.generation_maps),
            id,
            pages,
            trust,
        )))
    })
}

fn open_store_with(
    manifest: &Manifest,
    map: impl Fn(u32, u32, Option<&Position>) -> Result<Box<dyn GenerationMap>, EngineError>,
) -> Result<Store, EngineError> {
    let config = config_of(manifest)?;
    // The sizes of allocations are computed from these numbers, so the numbers are validated first.
    config.validate().map_err(|error| EngineError::Config(error.to_string()))?;
    let mut states = Vec::new();
    for database in &config.databases {
        let position = manifest.positions.iter().find(|position| position.id == database.id);
        let map = map(database.id, database.pages_max, position)?;
        let mut state = DatabaseState::new(database.clone(), map);
        if let Some(position) = position {
            state.pages_used = position.pages_used;
            state.log = position.log();
        }
        states.push(state);
    }
    Store::new(config, states).map_err(|error| EngineError::Config(error.to_string()))
}

/// Returns the log position and the page count of each database.
pub fn positions(store: &Store) -> Vec<Position> {
    let position =
        |state: &DatabaseState| Position::new(state.config.id, state.pages_used, state.log);
    store.databases().iter().map(position).collect()
}
