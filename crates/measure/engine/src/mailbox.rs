//! The mail store on real files: its layout on disk, and how it is created, loaded, closed and
//! verified.
//!
//! | file | contents |
//! |---|---|
//! | `store_directories` | directories, lock and files of a mail store |
//! | `manifest` | `store.json` |
//! | `generation_map` | generation maps, which survive if the process is killed |
//! | `settings` | opens the mail store that a manifest describes |
//! | `run` | the phases of a run, one after the other |
//! | `load` | warm-up, measurement and close |
//! | `caches` | planned state of the caches: cold, warm-metadata or warm |
//! | `check` | `plimsoll verify` |
//! | `locator` | file and byte offset of a damaged part |
//! | `probe` | measures how many bytes can be written in a short time |
//! | `witness` | record of acknowledged commits outside the store |

mod caches;
mod check;
mod generation_map;
mod load;
mod locator;
mod manifest;
pub(crate) mod probe;
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
