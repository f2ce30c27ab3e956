//! The flags of `durability`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use plimsoll_plan::{CutKind, SyncMethod};

use super::target_flags::TargetFlags;

/// Options of `durability`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  plimsoll durability --path /mnt/db --witness /mnt/other/w --kind power \\
      --cut 'ipmitool -H bmc power off' --restore './power-on-and-mount'
  plimsoll durability --device /dev/sdx --destroy /dev/sdx --witness node4:w --cut-by-hand
  plimsoll durability --device /dev/sdx --witness node4:w --cut-by-hand --resume
  plimsoll durability --nfs nfs://server/export --witness w --kind process \\
      --cut 'ssh server kill-nfs' --restore 'ssh server start-nfs'
  plimsoll durability --s3 s3://bucket --endpoint https://store:9000 --witness w --kind machine \\
      --cut 'ssh bmc reset-node-3' --restore './wait-for-node-3'

The witness must be outside the target, and must not lose power. PASS requires --cuts cuts without a
loss. Exit code 4: an acknowledged write is lost or damaged. 3: too few cuts count. See
docs/durability.md.")]
pub struct Options {
    /// Plan whose target is tested, instead of --path, --device, --nfs or --s3. The options below
    /// replace the settings of its [durability].
    #[arg(conflicts_with_all = ["path", "device", "nfs", "s3"])]
    pub(super) plan: Option<String>,
    #[command(flatten)]
    pub(super) target: TargetFlags,
    /// Directory for the witness and the evidence, outside the target: of this host, or of another
    /// one that `ssh HOST plimsoll` reaches without a password.
    #[arg(
        long,
        value_name = "[HOST:]DIR",
        required_unless_present_any = ["plan", "serve_witness"]
    )]
    pub(super) witness: Option<String>,
    /// Command that cuts the target off.
    #[arg(
        long,
        value_name = "CMD",
        required_unless_present_any = ["cut_by_hand", "plan", "serve_witness"],
        conflicts_with = "cut_by_hand"
    )]
    pub(super) cut: Option<String>,
    /// Command that brings the target back.
    #[arg(long, value_name = "CMD", conflicts_with = "cut_by_hand")]
    pub(super) restore: Option<String>,
    /// Ask the user to cut the target off. If this host loses power too, repeat with --resume.
    #[arg(long)]
    pub(super) cut_by_hand: bool,
    /// The cut lets the target acknowledge writes and drops them, as dm-flakey does: count no
    /// acknowledgement from the start of the cut command on.
    #[arg(long, conflicts_with = "cut_by_hand")]
    pub(super) cut_drops_writes: bool,
    /// Number of cuts. 59, the default, without a loss show a loss probability of at most 5 %
    /// (95 %).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) cuts: Option<u64>,
    /// Number of cuts, given as the loss probability to exclude: `--bound 1%` is 299 cuts.
    #[arg(long, value_name = "SHARE", conflicts_with = "cuts")]
    pub(super) bound: Option<String>,
    /// How a write becomes durable. Default: `fdatasync`; `dsync` for objects.
    #[arg(long, value_name = "HOW", value_parser = PossibleValuesParser::new(SyncMethod::WORDS))]
    pub(super) sync: Option<String>,
    /// Write with O_DIRECT.
    #[arg(long)]
    pub(super) direct: bool,
    /// Part of the system that the cut interrupts. The meaning of the result depends on it. Default:
    /// `unstated`.
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(CutKind::WORDS))]
    pub(super) kind: Option<String>,
    /// Bytes under test. Default: 64MiB.
    #[arg(long, value_name = "SIZE")]
    pub(super) size: Option<String>,
    /// Writing threads. Default: 4.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(super) threads: Option<u32>,
    /// Mean duration of the load before a cut. Default: 2s.
    #[arg(long, value_name = "TIME")]
    pub(super) load: Option<String>,
    /// Time limit of each command, and of the target's return. Default: 5m.
    #[arg(long, value_name = "TIME")]
    pub(super) timeout: Option<String>,
    /// Seed of addresses and cut times.
    #[arg(long, value_name = "NUMBER")]
    pub(super) seed: Option<u64>,
    /// Keep the data on the target.
    #[arg(long)]
    pub(super) keep: bool,
    /// Continue a test whose host lost power, with the same options.
    #[arg(long)]
    pub(super) resume: bool,
    /// Serve this directory as the witness of a test on another host, over standard input and output.
    /// `--witness HOST:DIR` runs it.
    #[arg(long, value_name = "DIR", exclusive = true)]
    pub(super) serve_witness: Option<PathBuf>,
}
