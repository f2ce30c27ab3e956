//! The mail store on real files: layout on disk, creation, load, close and verification.
//!
//! | file | contents |
//! |---|---|
//! | `store_directories` | directories, lock and files of a store |
//! | `manifest` | `store.json` |
//! | `generation_map` | generation maps that survive a kill |
//! | `settings` | opens the store that a manifest describes |
//! | `run` | the phases of a run, one after the other |
//! | `load` | warm-up, measurement and close |
//! | `caches` | state of the caches: cold, warm-metadata or warm |
//! | `check` | `plimsoll verify` |
//! | `locator` | file and byte of a finding |
//! | `probe` | number of bytes that can be written in a short time |
//! | `witness` | external record of acknowledged commits |

mod caches;
mod check;
mod generation_map;
mod load;
mod locator;
mod manifest;
mod probe;
mod profiled_group;
mod run;
mod run_state;
mod settings;
mod store_directories;
mod witness;

pub use check::{StoreCheck, check_store, is_mail_store};
pub use generation_map::MappedGenerationMap;
pub use manifest::{Manifest, Position, StoreState};
pub use probe::written_bytes;
pub use run::run;
pub use run_state::MailRun;
pub use store_directories::StoreDirectories;
pub use witness::{CommitWitness, WitnessedCommits, read_commits};
