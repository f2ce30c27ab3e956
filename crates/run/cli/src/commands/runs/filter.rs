//! Filter for the list of runs.

use clap::Args;
use plimsoll_catalogue::{Filter, unix_ns_of};
use plimsoll_plan::{DurationNs, OpsPerS, UnitError};

/// Filter for the list of runs.
#[derive(Debug, Default, Args)]
pub struct RunFilter {
    /// List only runs with this verdict: pass, fail, invalid, inconclusive, measured, or unverified
    /// (this machine's ledger does not confirm the run).
    #[arg(long, value_parser = ["pass", "fail", "invalid", "inconclusive", "measured", "unverified"], ignore_case = true)]
    verdict: Option<String>,
    /// List only runs of plans whose names contain this text.
    #[arg(long)]
    plan: Option<String>,
    /// List only runs whose target has this text in its path, file system or device. Examples:
    /// /mnt/test, xfs, nvme0n1.
    #[arg(long, value_name = "TEXT")]
    target: Option<String>,
    /// List only runs that achieved at least this rate, such as 5000/s.
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate_min: Option<OpsPerS>,
    /// List only runs with at most this mean read latency, such as 20ms.
    #[arg(long, value_name = "TIME")]
    read_latency_max: Option<DurationNs>,
    /// List only runs with this tag.
    #[arg(long)]
    tag: Option<String>,
    /// List only runs that started on this day (UTC) or later, such as 2026-11-23.
    #[arg(long, value_name = "DAY", value_parser = day)]
    since: Option<u64>,
    /// List only runs that started before this day (UTC).
    #[arg(long, value_name = "DAY", value_parser = day)]
    until: Option<u64>,
    /// List only the latest runs, up to this number. Default: 50, or all with --json.
    #[arg(long, value_name = "RUNS", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
}

impl RunFilter {
    /// Converts the flags to the catalogue's filter.
    pub fn filter(&self) -> Filter {
        Filter {
            verdict: self.verdict.clone(),
            plan: self.plan.clone(),
            target: self.target.clone(),
            rate_min_per_s: self.rate_min.map(|rate| rate.0),
            read_latency_max_ns: self.read_latency_max.map(|longest| longest.0),
            tag: self.tag.clone(),
            since_unix_ns: self.since,
            until_unix_ns: self.until,
            with_bundle: false,
            is_open: false,
            limit: self.limit,
        }
    }
}

fn day(text: &str) -> Result<u64, String> {
    unix_ns_of(text).ok_or_else(|| "use a day such as 2026-11-23".to_owned())
}

fn rate(text: &str) -> Result<OpsPerS, String> {
    text.parse().map_err(|error: UnitError| format!("{}: {}", error.message, error.help))
}
