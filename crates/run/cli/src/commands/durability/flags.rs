//! The flags of `durability`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::target_flags::TargetFlags;

/// Options of `durability`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  plimsoll durability --path /mnt/db --witness /mnt/other/w --kind power \\
      --cut 'ipmitool -H bmc power off' --restore './power-on-and-mount'
  plimsoll durability --device /dev/sdx --destroy /dev/sdx --witness /net/host/w --cut-by-hand
  plimsoll durability --device /dev/sdx --witness /net/host/w --cut-by-hand --resume
  plimsoll durability --nfs nfs://server/export --witness w --kind process \\
      --cut 'ssh server kill-nfs' --restore 'ssh server start-nfs'
  plimsoll durability --s3 s3://bucket --endpoint https://store:9000 --witness w --kind machine \\
      --cut 'ssh bmc reset-node-3' --restore './wait-for-node-3'

The witness must be outside the target, and must not lose power. PASS requires --cuts cuts without a
loss. Exit code 4: an acknowledged write is lost or damaged. 3: too few cuts count. See
docs/durability.md.")]
pub struct Options {
    /// Plan whose target is tested, instead of --path, --device, --nfs or --s3.
    #[arg(conflicts_with_all = ["path", "device", "nfs", "s3"])]
    pub(super) plan: Option<String>,
    #[command(flatten)]
    pub(super) target: TargetFlags,
    /// Directory for the witness and the evidence, outside the target.
    #[arg(long, value_name = "DIR")]
    pub(super) witness: PathBuf,
    /// Command that cuts the target off.
    #[arg(
        long,
        value_name = "CMD",
        required_unless_present = "cut_by_hand",
        conflicts_with = "cut_by_hand"
    )]
    pub(super) cut: Option<String>,
    /// Command that brings the target back.
    #[arg(long, value_name = "CMD", requires = "cut")]
    pub(super) restore: Option<String>,
    /// Ask the user to cut the target off. If this host loses power too, repeat with --resume.
    #[arg(long)]
    pub(super) cut_by_hand: bool,
    /// The cut lets the target acknowledge writes and drops them, as dm-flakey does: count no
    /// acknowledgement from the start of the cut command on.
    #[arg(long, requires = "cut")]
    pub(super) cut_drops_writes: bool,
    /// Number of cuts. 59 without a loss show a loss probability of at most 5 % (95 %).
    #[arg(long, value_name = "N", default_value_t = 59)]
    pub(super) cuts: u64,
    /// Number of cuts, given as the loss probability to exclude: `--bound 1%` is 299 cuts.
    #[arg(long, value_name = "SHARE", conflicts_with = "cuts")]
    pub(super) bound: Option<String>,
    /// How a write becomes durable. Default: `fdatasync`; `dsync` for objects.
    #[arg(long, value_name = "HOW")]
    pub(super) sync: Option<SyncWord>,
    /// Write with O_DIRECT.
    #[arg(long)]
    pub(super) direct: bool,
    /// What the cut interrupts. It decides what the result means.
    #[arg(long, value_name = "KIND", default_value = "unstated")]
    pub(super) kind: KindWord,
    /// Bytes under test.
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub(super) size: String,
    /// Writing threads.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(super) threads: u32,
    /// Mean duration of the load before a cut.
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub(super) load: String,
    /// Time limit of each command, and of the target's return.
    #[arg(long, value_name = "TIME", default_value = "5m")]
    pub(super) timeout: String,
    /// Seed of addresses and cut times.
    #[arg(long, value_name = "NUMBER")]
    pub(super) seed: Option<u64>,
    /// Keep the data on the target.
    #[arg(long)]
    pub(super) keep: bool,
    /// Continue a test whose host lost power, with the same options.
    #[arg(long)]
    pub(super) resume: bool,
}

/// Words of `--sync`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum SyncWord {
    Fsync,
    Fdatasync,
    Dsync,
    DirectOnly,
}

/// Words of `--kind`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum KindWord {
    Power,
    Machine,
    Process,
    Simulated,
    Unstated,
}
