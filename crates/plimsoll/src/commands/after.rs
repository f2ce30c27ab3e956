//! What a run leaves, as options of the commands that run.

use std::path::PathBuf;

use clap::Args;

use crate::keys::Sign;

/// What becomes of the data and the evidence.
#[derive(Clone, Debug, Default, Args)]
pub struct After {
    /// Keep the data after the run: `plimsoll verify` can check it.
    #[arg(long)]
    pub keep: bool,
    /// Write each durable commit that is acknowledged to this file or pipe, for tests of durability:
    /// `plimsoll verify --witness` then asks after each.
    #[arg(long, value_name = "FILE")]
    pub witness: Option<PathBuf>,
    /// A block device whose data may be overwritten, named in full: `--destroy /dev/sdx`.
    #[arg(long, value_name = "DEVICE")]
    pub destroy: Vec<PathBuf>,
    /// Directory to make the bundle in, instead of the catalogue's.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub sign: Sign,
}
