//! Claims without a result file, such as figures from a slide or data sheet.

use clap::Args;
use plimsoll_evidence::tool_result::{
    Figure, Kind, Latency, Operation, Outstanding, Part, Pattern, Setting, Source, Stage,
    ToolResult,
};
use plimsoll_import::number::Measure;

use super::Options;
use super::declaration::figure;
use crate::error::CliError;

/// Claimed figures.
#[derive(Debug, Args)]
#[command(next_help_heading = "Claim without a result file")]
pub struct ClaimedFigures {
    /// Operations per second, such as 1e6, 1.5M or 250k.
    #[arg(long, value_name = "RATE", conflicts_with = "paths")]
    iops: Option<String>,
    /// Bytes per second, such as 4GB/s.
    #[arg(long, value_name = "RATE", conflicts_with = "paths")]
    bandwidth: Option<String>,
    /// Size of an operation, such as 4KiB.
    #[arg(long, value_name = "SIZE", conflicts_with = "paths")]
    size: Option<String>,
    /// Mean latency, such as 0.25ms.
    #[arg(long, value_name = "TIME", conflicts_with = "paths")]
    latency: Option<String>,
    /// Share of reads in percent.
    #[arg(long, value_name = "PERCENT", conflicts_with = "paths")]
    read_percent: Option<f64>,
    /// Access pattern: random or sequential.
    #[arg(long, value_name = "ORDER", conflicts_with = "paths")]
    pattern: Option<String>,
    /// Duration of the run, such as 60s.
    #[arg(long, value_name = "TIME", conflicts_with = "paths")]
    duration: Option<String>,
}

impl ClaimedFigures {
    /// Returns the claim as a result; `None` if no figure was given.
    pub fn result(&self, options: &Options) -> Result<Option<ToolResult>, CliError> {
        let any = [&self.iops, &self.bandwidth, &self.latency, &self.size, &self.duration];
        if any.iter().all(|figure| figure.is_none()) && self.read_percent.is_none() {
            return Ok(None);
        }
        let of = |text: &Option<String>, option, measure| {
            text.as_ref().map(|text| figure(text, option, measure)).transpose()
        };
        let mut operation = Operation::of(self.kind()?);
        operation.rate_per_s.extend(of(&self.iops, "--iops", Measure::Count)?);
        operation.bandwidth_per_s.extend(of(&self.bandwidth, "--bandwidth", Measure::BytesPerS)?);
        operation.size_bytes = of(&self.size, "--size", Measure::Bytes)?.map(|size| Figure {
            least: size.value,
            most: size.value,
            ..size
        });
        operation.latencies.extend(of(&self.latency, "--latency", Measure::Time)?.map(|mean| {
            Latency { stage: Stage::Unstated, mean_ns: Some(mean), ..Latency::default() }
        }));
        let depth = options
            .outstanding
            .map(|count| Outstanding { most: Figure::exact(count as f64, "--depth"), kept: false });
        let setting =
            Setting { outstanding: depth, pattern: self.pattern()?, ..Setting::default() };
        let part = Part {
            window_ns: of(&self.duration, "--duration", Measure::Time)?,
            setting,
            operations: vec![operation],
            ..Part::default()
        };
        let source =
            Source { format: "claim".into(), file: "the claim".into(), ..Source::default() };
        Ok(Some(ToolResult { parts: vec![part], ..ToolResult::new(source) }))
    }

    fn kind(&self) -> Result<Kind, CliError> {
        match self.read_percent {
            Some(share) if !(0.0..=100.0).contains(&share) => {
                Err(CliError::usage(format!("--read-percent {share} is not a percentage")))
            }
            Some(100.0) => Ok(Kind::Read),
            Some(0.0) => Ok(Kind::Write),
            _ => Ok(Kind::All),
        }
    }

    fn pattern(&self) -> Result<Option<Pattern>, CliError> {
        match self.pattern.as_deref() {
            None => Ok(None),
            Some("random") => Ok(Some(Pattern::Random)),
            Some("sequential") => Ok(Some(Pattern::Sequential)),
            Some(other) => Err(CliError::usage(format!("{other:?} is not a valid access pattern"))
                .hint("use random or sequential")),
        }
    }
}
