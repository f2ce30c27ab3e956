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

The witness must be outside the target, and must not lose power. The verdict is PASS if at least as
many cuts as required (--cuts) are valid, and no cut loses a write. Exit code 4: a write is lost or damaged;
3: too few cuts are valid. See docs/durability.md.")]
pub struct Options {
    /// Plan whose target is tested, instead of --path, --device, --nfs or --s3. Options of this
    /// command override its [durability] section.
    #[arg(conflicts_with_all = ["path", "device", "nfs", "s3"])]
    pub(super) plan: Option<String>,
    #[command(flatten)]
    pub(super) target: TargetFlags,
    /// Directory for the witness and the evidence, outside the target: on this host, or on another
    /// host that `ssh HOST plimsoll` can reach without a password.
    #[arg(
        long,
        value_name = "[HOST:]DIR",
        required_unless_present_any = ["plan", "serve_witness"]
    )]
    pub(super) witness: Option<String>,
    /// Command that interrupts the target: cuts its power, resets it, or kills its process.
    #[arg(
        long,
        value_name = "CMD",
        required_unless_present_any = ["cut_by_hand", "plan", "serve_witness"],
        conflicts_with = "cut_by_hand"
    )]
    pub(super) cut: Option<String>,
    /// Command that makes the target available again.
    #[arg(long, value_name = "CMD", conflicts_with = "cut_by_hand")]
    pub(super) restore: Option<String>,
    /// Ask the operator to interrupt the target, instead of running a command. If this host also
    /// loses power, continue with --resume.
    #[arg(long)]
    pub(super) cut_by_hand: bool,
    /// Ignore acknowledgements that arrive after the start of the --cut command. Required if the
    /// target acknowledges writes after its interruption but drops them, as dm-flakey does.
    #[arg(long, conflicts_with = "cut_by_hand")]
    pub(super) cut_drops_writes: bool,
    /// Number of cuts (interruptions of the target; default: 59). If none of 59 cuts loses a write,
    /// the probability that a cut loses a write is at most 5 % (with 95 % confidence).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) cuts: Option<u64>,
    /// Test until a PASS shows that an interruption of the target (a cut) loses a write with at
    /// most this probability. It determines the number of cuts: `--bound 1%` requires 299 cuts.
    #[arg(long, value_name = "SHARE", conflicts_with = "cuts")]
    pub(super) bound: Option<String>,
    /// How each write is made durable. Default: `fdatasync`, or `dsync` for S3 objects.
    #[arg(long, value_name = "HOW", value_parser = PossibleValuesParser::new(SyncMethod::WORDS))]
    pub(super) sync: Option<String>,
    /// Write with O_DIRECT.
    #[arg(long)]
    pub(super) direct: bool,
    /// The part of the system that the test interrupts. It determines what a PASS proves. Default:
    /// `unstated`.
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(CutKind::WORDS))]
    pub(super) kind: Option<String>,
    /// Amount of data under test. Default: 64MiB.
    #[arg(long, value_name = "SIZE")]
    pub(super) size: Option<String>,
    /// Number of writing threads. Default: 4.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(super) threads: Option<u32>,
    /// Mean duration of the load before each interruption of the target. Default: 2s.
    #[arg(long, value_name = "TIME")]
    pub(super) load: Option<String>,
    /// Time limit for each command, and for the target to become available again. Default: 5m.
    #[arg(long, value_name = "TIME")]
    pub(super) timeout: Option<String>,
    /// Seed for the random addresses of the writes and the random times at which the target is
    /// interrupted.
    #[arg(long, value_name = "NUMBER")]
    pub(super) seed: Option<u64>,
    /// Keep the data on the target after the test.
    #[arg(long)]
    pub(super) keep: bool,
    /// Continue a test after the host lost power. Pass the same options as before.
    #[arg(long)]
    pub(super) resume: bool,
    /// Serve this directory as the witness of a test on another host, over standard input and
    /// output. `--witness HOST:DIR` starts this command.
    #[arg(long, value_name = "DIR", exclusive = true)]
    pub(super) serve_witness: Option<PathBuf>,
}
