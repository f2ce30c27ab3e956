//! What a run leaves and who is told meanwhile, as options of the commands that run.

use std::path::PathBuf;

use clap::Args;
use plimsoll_report::text::Style;
use plimsoll_runner::repeat::RepeatedRuns;

use super::load_hosts::LoadHosts;
use crate::error::CliError;
use crate::keys::Sign;
use crate::metrics::Metrics;

/// How much of a container's termination message Kubernetes keeps.
const TERMINATION_MESSAGE_BYTES: usize = 4096;

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
    /// Write the verdict and its reasons to this file too, in at most 4 KiB: a container's termination message.
    #[arg(long, value_name = "FILE")]
    pub verdict_to: Option<PathBuf>,
    /// Say what would be done, look at every place and server, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Go on where a plan would measure for more than 30 days.
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub sign: Sign,
    #[command(flatten)]
    pub metrics: Metrics,
    /// Who carries it out: flags of the commands that fleets are for.
    #[arg(skip)]
    pub hosts: LoadHosts,
}

impl After {
    /// Refuses what a fleet does not do: said, not passed over.
    ///
    /// # Errors
    /// Such an option.
    pub fn refuse_with_fleet(&self) -> Result<(), CliError> {
        let asked = [
            ("--keep", self.keep),
            ("--witness", self.witness.is_some()),
            ("--destroy", !self.destroy.is_empty()),
        ];
        match asked.into_iter().find(|(_, asked)| self.hosts.is_asked_for() && *asked) {
            Some((option, _)) => Err(CliError::usage(format!("{option} does not go with --fleet"))
                .hint("take it away, or run the plan on one host")),
            None => Ok(()),
        }
    }

    /// Writes the beginning of what is shown, cut between lines, where it is asked for.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write_verdict(&self, repeated: &RepeatedRuns) -> Result<(), CliError> {
        let Some(file) = &self.verdict_to else { return Ok(()) };
        let style = Style { colour: false, width: 80, ..Style::default() };
        let text = match (&repeated.finished[..], &repeated.experiment) {
            ([only], None) => plimsoll_report::text(&only.evidence, &only.verdict, &style),
            _ => plimsoll_report::experiment(&repeated.summary(), &style),
        };
        let mut kept = String::new();
        for line in text.split_inclusive('\n') {
            if kept.len() + line.len() > TERMINATION_MESSAGE_BYTES {
                break;
            }
            kept.push_str(line);
        }
        std::fs::write(file, kept).map_err(|error| {
            CliError::environment(format!("--verdict-to {}: {error}", file.display()))
                .hint("the verdict is in the bundle: `plimsoll judge RUN` shows it")
        })
    }
}
