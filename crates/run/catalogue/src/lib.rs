//! The catalogue. It lists the runs on this machine with their results, and with the tags and notes
//! that users added.
//!
//! All data comes from the bundles and the ledger. The index ([`index`]) is an SQLite file that is
//! built from them and updated each time it is opened. Deleting it loses no data. Tags and notes
//! are not evidence: no seal includes them, and they are stored in a file next to the bundle
//! ([`labels`]). A team's catalogue ([`team`]) stores the runs of many hosts with their bundles.
//!
//! # Where to change what
//!
//! - run lookup and filters: `entry.rs`, `lookup.rs`, `index.rs`; list display:
//!   `judge/report/src/runs.rs`
//! - a team's catalogue: `team/client.rs` (transfer), `team.rs` (transactions),
//!   `team/connection.rs` (connection and timeouts), `index/mirror.rs` (other users' runs),
//!   `team/schema.rs` (tables). Each change of a table is a new migration;
//!   `run/cli/tests/serve/team.rs` runs all migrations from the first.

mod archive;
mod date;
mod entry;
mod error;
pub mod fleet_runs;
mod index;
mod labels;
mod lookup;
mod scan;
mod team;
mod verification;

pub use archive::{export, import, import_at_most};
pub use date::unix_ns_of;
pub use entry::{Entry, ExperimentEntry};
pub use error::CatalogueError;
pub use index::{Catalogue, Filter};
pub use labels::{Labels, labels_path};
pub use lookup::Lookup;
pub use scan::Roots;
pub use team::{Address, SyncReport, Team, TeamClient};
pub use verification::UNVERIFIED;
