//! Flags that describe a load. They mean the same in `run`, `sweep`, `tune` and `compare`. fio's
//! option names also work; the command then prints Plimsoll's names for them.

use clap::Args;
use plimsoll_import::fio_job::{size_bytes, time_ns};
use plimsoll_plan::{
    DurationNs, Plan, SizeBytes, SweepRequest, UnitError, sizes_from_text, sweep_plan,
};

use super::plan_changes::{Changes, plan_error};
use crate::error::CliError;

/// Description of a load.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Load without a plan (--for and --runs also work with a plan)")]
pub struct LoadFlags {
    /// Size of a transfer, such as 4KiB. If --bs is also given, --size is the size of a file, as in
    /// fio. A sweep accepts lists and ranges: 4KiB,64KiB or 4KiB..128KiB.
    #[arg(long, value_name = "SIZE", visible_alias = "sizes")]
    size: Option<String>,
    /// Share of reads in percent. Default: 100. A sweep accepts lists.
    #[arg(long, value_name = "PERCENT", visible_alias = "rwmixread", value_delimiter = ',')]
    reads: Vec<f64>,
    /// Access pattern: random, sequential, zipf, hot-cold… A sweep accepts lists.
    #[arg(long, value_name = "PATTERN", visible_alias = "patterns", value_delimiter = ',')]
    pattern: Vec<String>,
    /// Operations in flight per client. Default: 4. A sweep accepts lists.
    #[arg(long, value_name = "N", visible_aliases = ["iodepth", "queue-depths"],
          value_delimiter = ',')]
    depth: Vec<u32>,
    /// Number of clients. Default: one client, or one client per NFS export.
    #[arg(long, value_name = "N", visible_alias = "numjobs")]
    clients: Option<u32>,
    /// Number of files per directory or NFS export. Default: 1 file.
    #[arg(long, value_name = "N", visible_alias = "nrfiles")]
    files: Option<u32>,
    /// Size of a file. Default: 1 GiB, or the whole device. In a sweep without --quick, all files
    /// together are twice as large as this host's memory, but use at most a third of the free
    /// space.
    #[arg(long, value_name = "SIZE")]
    file_size: Option<SizeBytes>,
    /// Duration of each measurement, such as 60s. Default: ten minutes.
    #[arg(long = "for", value_name = "TIME", visible_alias = "measure")]
    measure: Option<DurationNs>,
    /// Number of runs on each target.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// How writes become durable: none, fsync, fdatasync, dsync or file-sync.
    #[arg(long, value_name = "HOW")]
    sync: Option<String>,
    /// fio's name for --size. The suffix k means 1024.
    #[arg(long, value_name = "SIZE")]
    bs: Option<String>,
    /// fio's name for --pattern and --reads together: read, write, rw, randread, randwrite, randrw.
    #[arg(long, value_name = "WORD", visible_alias = "readwrite", conflicts_with = "pattern")]
    rw: Option<String>,
    /// fio's name for --for. A number without a unit is in seconds.
    #[arg(long, value_name = "TIME", conflicts_with = "measure")]
    runtime: Option<String>,
    /// fio's name for --sync fsync. N is the number of writes between two fsync calls.
    #[arg(long, value_name = "N", conflicts_with_all = ["sync", "fdatasync"])]
    fsync: Option<u32>,
    /// fio's name for --sync fdatasync. N is the number of writes between two fdatasync calls.
    #[arg(long, value_name = "N", conflicts_with = "sync")]
    fdatasync: Option<u32>,
}

/// Plan that is built from flags.
pub struct LoadPlan {
    /// The plan.
    pub plan: Plan,
    /// Messages: Plimsoll's names for the given fio options, and a description of the load.
    pub meanings: Vec<String>,
}

impl LoadFlags {
    /// Returns the number of operations in flight if the flag was given.
    ///
    /// # Errors
    /// The flag has several values.
    pub fn one_depth(&self) -> Result<Option<u32>, CliError> {
        one("depth", &self.depth)
    }

    /// Returns the size of a file if the flag was given.
    pub fn file_size(&self) -> Option<SizeBytes> {
        self.file_size
    }

    /// Returns the duration given with --for.
    pub fn measure(&self) -> Option<DurationNs> {
        self.measure
    }

    /// Returns the changes to a plan: those in `changes`, and those that --for and --runs request.
    ///
    /// # Errors
    /// A flag describes a load, but the plan already does so.
    pub fn changes_of_plan(&self, changes: &Changes) -> Result<Changes, CliError> {
        let text = |given: Option<&String>| given.cloned();
        let first = |given: Option<String>| given.unwrap_or_default();
        let given = [
            ("--size", "sizes", text(self.size.as_ref())),
            ("--bs", "sizes", text(self.bs.as_ref())),
            ("--reads", "reads", self.reads.first().map(f64::to_string)),
            ("--pattern", "patterns", text(self.pattern.first())),
            ("--rw", "reads", self.rw.as_ref().map(|_| "70".to_owned())),
            ("--depth", "queue_depth", self.depth.first().map(u32::to_string)),
            ("--clients", "clients", self.clients.map(|n| n.to_string())),
            ("--files", "files", self.files.map(|n| n.to_string())),
            ("--file-size", "file_size", self.file_size.map(|size| size.to_string())),
            ("--sync", "sync", text(self.sync.as_ref())),
            ("--fsync", "sync", self.fsync.map(|_| "fsync".to_owned())),
            ("--fdatasync", "sync", self.fdatasync.map(|_| "fdatasync".to_owned())),
        ];
        if let Some((flag, field, value)) = given.into_iter().find(|(_, _, value)| value.is_some())
        {
            let says = format!("{flag} describes a load, but the plan already contains a load");
            return Err(CliError::usage(says).hint(format!(
                "change the field of the plan: --set workload.matrix.{field}={}",
                first(value)
            )));
        }
        let mut all = Vec::new();
        let length = self.length(&mut Vec::new())?;
        all.extend(length.map(|length| format!("phases.measure={length}")));
        all.extend(self.runs.map(|runs| format!("repeat.runs={runs}")));
        all.extend(changes.set.iter().cloned());
        Ok(Changes { set: all, ..changes.clone() })
    }

    /// Reads the plan with this name, and applies the changes from the command line.
    ///
    /// # Errors
    /// The plan is invalid, or a flag describes a load.
    pub fn named_plan(&self, name: &str, changes: &Changes) -> Result<LoadPlan, CliError> {
        let plan = self.changes_of_plan(changes)?.plan(name)?;
        Ok(LoadPlan { plan, meanings: Vec::new() })
    }

    /// Rejects --runs for a command that measures each load once.
    ///
    /// # Errors
    /// More than one run was requested. The hint shows how to repeat the measurement.
    pub fn refuse_runs(&self, command: &str, unit: &str, hint: &str) -> Result<(), CliError> {
        match self.runs {
            Some(runs) if runs > 1 => {
                let says = format!("--runs {runs}: `plimsoll {command}` measures each {unit} once");
                Err(CliError::usage(says).hint(hint))
            }
            _ => Ok(()),
        }
    }

    /// Returns the plan for one load.
    ///
    /// # Errors
    /// There is no target, a flag has several values, or a value is invalid.
    pub fn plan(&self, command: &'static str, changes: &Changes) -> Result<LoadPlan, CliError> {
        let targets = targets(command, changes)?;
        let mut meanings = Vec::new();
        let (sizes, file_size) = self.sizes(&mut meanings)?;
        let sizes = sizes.unwrap_or_else(|| vec![SizeBytes::kib(4)]);
        let (pattern, reads) = self.mix(&mut meanings)?;
        let size = one("size", &sizes)?.unwrap_or(SizeBytes::kib(4));
        let pattern = one("pattern", &pattern)?.unwrap_or_else(|| "random".to_owned());
        let reads = one("reads", &reads)?.unwrap_or(100.0);
        let depth = self.one_depth()?.unwrap_or(4);
        let clients = self.clients.unwrap_or(1);
        let length = self.length(&mut meanings)?.unwrap_or(DurationNs::s(600));
        let request = SweepRequest {
            name: format!("{pattern}-{size}-r{reads}"),
            made_by: command,
            targets,
            sizes: vec![size],
            read_percents: vec![reads],
            patterns: vec![pattern.clone()],
            queue_depths: vec![depth],
            clients: Some(clients),
            files: self.files.unwrap_or(1),
            file_size,
            measure: Some(length),
            ..SweepRequest::default()
        };
        meanings.push(format!(
            "{pattern} transfers of {}, {reads} % reads, {clients} client{} with {depth} operations \
             in flight each, for {length}",
            size.about(),
            if clients == 1 { "" } else { "s" },
        ));
        Ok(LoadPlan { plan: self.applied(&request, changes)?, meanings })
    }

    /// Returns the plan of a sweep. The flags replace the values of `request`.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn sweep_plan(
        &self,
        request: SweepRequest,
        changes: &Changes,
    ) -> Result<LoadPlan, CliError> {
        let mut meanings = Vec::new();
        let (sizes, file_size) = self.sizes(&mut meanings)?;
        let (patterns, reads) = self.mix(&mut meanings)?;
        let some_or = |given: Vec<u32>, default| if given.is_empty() { default } else { given };
        let request = SweepRequest {
            sizes: sizes.unwrap_or(request.sizes),
            read_percents: if reads.is_empty() { request.read_percents } else { reads },
            patterns: if patterns.is_empty() { request.patterns } else { patterns },
            queue_depths: some_or(self.depth.clone(), request.queue_depths),
            clients: self.clients.or(request.clients),
            files: self.files.unwrap_or(request.files),
            file_size: file_size.or(request.file_size),
            measure: self.length(&mut meanings)?.or(request.measure),
            ..request
        };
        Ok(LoadPlan { plan: self.applied(&request, changes)?, meanings })
    }

    /// Returns a copy of the flags in which `runs` is the default for --runs.
    pub fn with_default_runs(&self, runs: u32) -> Self {
        Self { runs: self.runs.or(Some(runs)), ..self.clone() }
    }

    /// Returns the number of files if the flag was given.
    pub fn files(&self) -> Option<u32> {
        self.files
    }

    /// Applies the sync method, the number of runs and the field changes from the command line to a
    /// plan.
    fn applied(&self, request: &SweepRequest, changes: &Changes) -> Result<Plan, CliError> {
        let plan = sweep_plan(request).map_err(|errors| plan_error(&errors))?;
        let mut set = Vec::new();
        let sync = match (&self.sync, self.fsync, self.fdatasync) {
            (Some(sync), _, _) => Some((sync.as_str(), None)),
            (None, Some(every), _) => Some(("fsync", Some(every))),
            (None, None, Some(every)) => Some(("fdatasync", Some(every))),
            (None, None, None) => None,
        };
        if let Some((sync, every)) = sync {
            set.push(format!("workload.matrix.sync={sync}"));
            set.extend(every.map(|every| format!("workload.matrix.sync_every={every}")));
        }
        set.extend(self.runs.map(|runs| format!("repeat.runs={runs}")));
        set.extend(changes.set.iter().cloned());
        Changes { set, ..changes.clone() }.set_in(&plan)
    }

    /// Returns the duration of a measurement if the flag was given.
    fn length(&self, meanings: &mut Vec<String>) -> Result<Option<DurationNs>, CliError> {
        let Some(text) = &self.runtime else { return Ok(self.measure) };
        let length = DurationNs(time_ns(text).ok_or_else(|| not_fio(text, "runtime", "60"))?);
        meanings.push(format!("--runtime {text}: measures for {length} (--for {length})"));
        Ok(Some(length))
    }

    /// Returns the sizes of transfers and the size of a file, if these flags were given.
    fn sizes(
        &self,
        meanings: &mut Vec<String>,
    ) -> Result<(Option<Vec<SizeBytes>>, Option<SizeBytes>), CliError> {
        let fio = |text: &str, word: &str| {
            size_bytes(text).map(SizeBytes).ok_or_else(|| not_fio(text, word, "4k"))
        };
        let Some(bs) = &self.bs else {
            let Some(text) = &self.size else { return Ok((None, self.file_size)) };
            return Ok((Some(sizes(text)?), self.file_size));
        };
        let size = fio(bs, "bs")?;
        meanings.push(format!("--bs {bs}: transfers of {size} (--size {size})"));
        let file_size = match &self.size {
            Some(text) => {
                let bytes = fio(text, "size")?;
                meanings.push(format!(
                    "--size {text} with --bs: a file of {bytes} (--file-size {bytes})"
                ));
                Some(bytes)
            }
            None => self.file_size,
        };
        Ok((Some(vec![size]), file_size))
    }

    /// Returns the patterns and the shares of reads. They are empty if the flags were not given.
    fn mix(&self, meanings: &mut Vec<String>) -> Result<(Vec<String>, Vec<f64>), CliError> {
        let Some(rw) = &self.rw else { return Ok((self.pattern.clone(), self.reads.clone())) };
        let (word, random) = match rw.strip_prefix("rand") {
            Some(word) => (word, true),
            None => (rw.as_str(), false),
        };
        let reads = match word {
            "read" => vec![100.0],
            "write" => vec![0.0],
            "rw" | "readwrite" if self.reads.is_empty() => vec![50.0],
            "rw" | "readwrite" => self.reads.clone(),
            _ => return Err(not_fio(rw, "rw", "randread")),
        };
        if let Some(given) = self.reads.iter().find(|given| !reads.contains(given)) {
            return Err(CliError::usage(format!(
                "--rw {rw} means {} % reads, not {given} %",
                reads[0]
            ))
            .hint("use --rw randrw or --rw rw for a mix of reads and writes"));
        }
        let pattern = if random { "random" } else { "sequential" };
        let shown: Vec<String> = reads.iter().map(f64::to_string).collect();
        let shown = shown.join(",");
        meanings.push(format!(
            "--rw {rw}: {pattern}, {shown} % reads (--pattern {pattern} --reads {shown})"
        ));
        Ok((vec![pattern.to_owned()], reads))
    }
}

/// Returns the only value of a flag; `None` if the flag was not given.
fn one<T: Clone>(flag: &str, values: &[T]) -> Result<Option<T>, CliError> {
    match values {
        [] => Ok(None),
        [only] => Ok(Some(only.clone())),
        _ => {
            Err(CliError::usage(format!("--{flag} has several values, but a run can use only one"))
                .hint("to measure each combination, use `plimsoll sweep` with the same flags"))
        }
    }
}

/// Parses sizes and ranges that are separated by commas. In a range, the sizes double.
fn sizes(given: &str) -> Result<Vec<SizeBytes>, CliError> {
    let mut all = Vec::new();
    for part in given.split(',') {
        let sizes = sizes_from_text(part.trim()).map_err(|error: UnitError| {
            CliError::usage(format!("--size {part}: {error}")).hint(error.help)
        })?;
        all.extend(sizes);
    }
    Ok(all)
}

fn not_fio(text: &str, word: &str, such: &str) -> CliError {
    if word == "rw" && text.contains("trim") {
        return CliError::usage(format!(
            "--rw {text}: Plimsoll reads and writes, but does not discard blocks (trim)"
        ))
        .hint(format!("use for example --rw {such}"));
    }
    let error = CliError::usage(format!("--{word} {text} is not a valid value in fio"))
        .hint(format!("use for example --{word} {such}"));
    if word == "bs" && text.contains(',') {
        return error.hint("to list sizes in a sweep, use --size 4KiB,64KiB");
    }
    error
}

/// Returns the targets on the command line.
///
/// # Errors
/// There is no target, or there are more targets than this kind allows.
pub fn targets(command: &str, changes: &Changes) -> Result<Vec<String>, CliError> {
    if !changes.has_target() {
        let verb = command.trim_start_matches("plimsoll ");
        return Err(CliError::usage(format!("nothing to {verb}"))
            .hint("pass a plan (`plimsoll plan list` lists the built-in plans)")
            .hint(format!(
                "or a target: {command} --path /mnt/x --size 4KiB --reads 70 --depth 32 --for 60s"
            )));
    }
    changes.places()
}
