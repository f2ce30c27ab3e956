//! The catalogue: which runs there are on this machine, what they gave, and what people noted of them.
//!
//! Bundles and ledger are the truth. The index is a SQLite file that is made from them and kept up to date each
//! time it is opened ([`index`]): whoever removes it loses nothing. Tags and notes are not evidence, so that no
//! seal covers them, and lie in a file beside the bundle ([`labels`]). A team's catalogue ([`team`]) holds runs of many
//! hosts with their bundles.
//!
//! # Where to change what
//!
//! - run lookup and filters: `entry.rs`, `lookup.rs`, `index.rs`; list display:
//!   `plimsoll-report/src/runs.rs`
//! - a team's catalogue: `team/client.rs` (transfer), `team.rs` (transaction), `team/connection.rs`
//!   (connection and timeouts), `team/schema.rs` (each table change is a further migration;
//!   `plimsoll/tests/team.rs` starts from the first), other users' runs `index/mirror.rs`

mod archive;
mod date;
mod entry;
mod error;
mod index;
mod labels;
mod lookup;
mod scan;
mod team;

pub use archive::{export, import};
pub use date::unix_ns_of;
pub use entry::{Entry, ExperimentEntry};
pub use error::CatalogueError;
pub use index::{Catalogue, Filter};
pub use labels::{Labels, labels_path};
pub use lookup::Lookup;
pub use scan::Roots;
pub use team::{Address, SyncReport, Team, TeamClient};
