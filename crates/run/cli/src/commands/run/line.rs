//! A run from flags, without a plan. It also accepts fio's options and reports their meaning.

use clap::Args;
use plimsoll_import::fio_job::{size_bytes, time_ns};
use plimsoll_plan::{DurationNs, Plan, SizeBytes, SweepRequest, UnitError, sweep_plan};

use crate::commands::plan_changes::{Changes, plan_error};
use crate::error::CliError;

/// A run without a plan.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Runs without a plan")]
pub struct Line {
    /// Size of one transfer, such as 4KiB; with --bs, the size of a file as in fio.
    #[arg(long, value_name = "SIZE", conflicts_with = "plan")]
    size: Option<String>,
    /// Share of reads in percent; 100 by default.
    #[arg(long, value_name = "PERCENT", visible_alias = "rwmixread", conflicts_with = "plan")]
    reads: Option<f64>,
    /// Access pattern: random, sequential, zipf, hot-cold…
    #[arg(long, value_name = "PATTERN", conflicts_with = "plan")]
    pattern: Option<String>,
    /// Operations in flight per client; 4 by default.
    #[arg(long, value_name = "N", visible_alias = "iodepth", conflicts_with = "plan")]
    depth: Option<u32>,
    /// Clients; 1 by default.
    #[arg(long, value_name = "N", visible_alias = "numjobs", conflicts_with = "plan")]
    clients: Option<u32>,
    /// Files; 1 by default.
    #[arg(long, value_name = "N", conflicts_with = "plan")]
    files: Option<u32>,
    /// Size of a file; 1 GiB by default, and all of a device.
    #[arg(long, value_name = "SIZE", conflicts_with = "plan")]
    file_size: Option<SizeBytes>,
    /// Duration of the measurement, such as 60s; ten minutes by default.
    #[arg(long = "for", value_name = "TIME", conflicts_with = "plan")]
    measure: Option<DurationNs>,
    /// fio's option for --size; a bare k is 1024.
    #[arg(long, value_name = "SIZE", conflicts_with = "plan")]
    bs: Option<String>,
    /// fio's option for --pattern and --reads: read, write, rw, randread, randwrite, randrw.
    #[arg(long, value_name = "WORD", visible_alias = "readwrite",
          conflicts_with_all = ["plan", "pattern"])]
    rw: Option<String>,
    /// fio's option for --for; a bare number is in seconds.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["plan", "measure"])]
    runtime: Option<String>,
}

impl Line {
    /// Returns the operations in flight, if given.
    pub fn depth(&self) -> Option<u32> {
        self.depth
    }

    /// Returns the size of a file, if given.
    pub fn file_size(&self) -> Option<SizeBytes> {
        self.file_size
    }

    /// Returns the duration, if given.
    pub fn measure(&self) -> Option<DurationNs> {
        self.measure
    }

    /// Returns the plan, and the meaning of fio's options.
    ///
    /// # Errors
    /// No target, or invalid values.
    pub fn plan(&self, changes: &Changes) -> Result<(Plan, Vec<String>), CliError> {
        let mut meant = Vec::new();
        let (size, file_size) = self.sizes(&mut meant)?;
        let (pattern, reads) = self.mix(&mut meant)?;
        let measure = match &self.runtime {
            Some(text) => {
                let length = DurationNs(time_ns(text).ok_or_else(|| no(text, "runtime", "60"))?);
                meant.push(format!("--runtime {text}: measured for {length} (--for {length})"));
                length
            }
            None => self.measure.unwrap_or(DurationNs::s(600)),
        };
        let depth = self.depth.unwrap_or(4);
        let clients = self.clients.unwrap_or(1);
        let request = SweepRequest {
            name: format!("{pattern}-{size}-r{reads}"),
            made_by: "plimsoll run",
            targets: places(changes)?,
            sizes: vec![size],
            read_percents: vec![reads],
            patterns: vec![pattern.clone()],
            queue_depths: vec![depth],
            clients: Some(clients),
            files: self.files.unwrap_or(1),
            file_size,
            measure: Some(measure),
            ..SweepRequest::default()
        };
        let plan = sweep_plan(&request).map_err(|errors| plan_error(&errors))?;
        meant.push(format!(
            "{pattern} transfers of {}, {reads} % reads, {clients} client{} with {depth} outstanding each, for \
             {measure}",
            size.about(),
            if clients == 1 { "" } else { "s" },
        ));
        Ok((changes.set_in(&plan)?, meant))
    }

    /// Returns the sizes of a transfer and of a file.
    fn sizes(&self, meant: &mut Vec<String>) -> Result<(SizeBytes, Option<SizeBytes>), CliError> {
        let fio = |text: &str, word: &str| {
            size_bytes(text).map(SizeBytes).ok_or_else(|| no(text, word, "4k"))
        };
        let Some(bs) = &self.bs else {
            let size = self.size.as_deref().unwrap_or("4KiB");
            let size = size.parse().map_err(|error: UnitError| {
                CliError::usage(format!("--size {size}: {error}")).hint(error.help)
            })?;
            return Ok((size, self.file_size));
        };
        let size = fio(bs, "bs")?;
        meant.push(format!("--bs {bs}: transfers of {size} (--size {size})"));
        let file_size = match &self.size {
            Some(text) => {
                let bytes = fio(text, "size")?;
                meant.push(format!(
                    "--size {text} with --bs: a file of {bytes} (--file-size {bytes})"
                ));
                Some(bytes)
            }
            None => self.file_size,
        };
        Ok((size, file_size))
    }

    /// Returns pattern and share of reads.
    fn mix(&self, meant: &mut Vec<String>) -> Result<(String, f64), CliError> {
        let Some(rw) = &self.rw else {
            return Ok((
                self.pattern.clone().unwrap_or("random".into()),
                self.reads.unwrap_or(100.0),
            ));
        };
        let (word, random) = match rw.strip_prefix("rand") {
            Some(word) => (word, true),
            None => (rw.as_str(), false),
        };
        let reads = match word {
            "read" => 100.0,
            "write" => 0.0,
            "rw" | "readwrite" => self.reads.unwrap_or(50.0),
            _ => return Err(no(rw, "rw", "randread")),
        };
        if let Some(asked) = self.reads.filter(|asked| (asked - reads).abs() > 0.0) {
            return Err(CliError::usage(format!("--rw {rw} has {reads} % reads, not {asked}"))
                .hint("write --rw randrw or --rw rw for a mix"));
        }
        let pattern = if random { "random" } else { "sequential" };
        meant.push(format!(
            "--rw {rw}: {pattern}, {reads} % reads (--pattern {pattern} --reads {reads})"
        ));
        Ok((pattern.to_owned(), reads))
    }
}

fn no(text: &str, word: &str, such: &str) -> CliError {
    CliError::usage(format!("--{word} {text}: fio has no such value"))
        .hint(format!("for example --{word} {such}"))
}

/// Returns the named targets.
///
/// # Errors
/// No target, or several of a kind that allows one.
pub fn places(changes: &Changes) -> Result<Vec<String>, CliError> {
    if !changes.has_target() {
        return Err(CliError::usage("nothing to run")
            .hint("name a plan (`plimsoll plan list` lists the built-in ones)")
            .hint("or a target: plimsoll run --path /mnt/x --size 4KiB --reads 70 --depth 32 --for 60s"));
    }
    changes.places()
}
