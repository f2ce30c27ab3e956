//! The mail store on real files: layout on disk, creation, load, close and verification.
//!
//! | file | contents |
//! |---|---|
//! | `home` | directories, lock, files |
//! | `manifest` | `store.json` |
//! | `generation_map` | generation maps that survive a kill |
//! | `settings` | the store that a manifest describes |
//! | `run` | the phases of a run, one after the other |
//! | `load` | warm-up, measurement and close |
//! | `caches` | cold, warm-metadata, warm |
//! | `check` | `plimsoll verify` |
//! | `place` | file and byte of a finding |
//! | `probe` | bytes written in a short time |
//! | `witness` | external record of acknowledged commits |

mod caches;
mod check;
mod generation_map;
mod home;
mod load;
mod manifest;
mod place;
mod probe;
mod profiled;
mod run;
mod running;
mod settings;
mod witness;

pub use check::{StoreCheck, check_store, is_mail_store};
pub use generation_map::MappedGenerationMap;
pub use home::Home;
pub use manifest::{Manifest, Position, StoreState};
pub use probe::written_bytes;
pub use run::run;
pub use running::MailRun;
pub use witness::{CommitWitness, Witnessed, read_commits};
