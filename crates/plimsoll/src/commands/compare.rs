//! `plimsoll compare A B…`: experiments side by side; `plimsoll compare PLAN`: the targets of a plan,
//! run in turns.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_judge::compare::{Comparison, Side, compare_for};
use plimsoll_judge::stats::welch::RUNS_MIN;
use plimsoll_report::comparison_document;
use plimsoll_runner::compare::{
    Given, Taken, compare_arms, compare_sides, holding_bundles, read_side, sweeps,
};

use super::after::After;
use super::sides::{exit_of, show, tell_custody};
use super::{bundle, compare_sweeps, sides};
use crate::common::Common;
use crate::custody::{Reader, Together};
use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment::FILE;
use crate::interrupt;
use crate::keys::Sign;
use crate::progress::StderrProgress;

/// Options of `compare`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll compare EXPERIMENT-A EXPERIMENT-B\n  plimsoll compare old=12 \
    new=last --factor mount-options\n  plimsoll compare before/ after/ --accept kernel\n  plimsoll compare \
    firmware/\n  plimsoll compare ext4-against-btrfs.toml\n  plimsoll compare SWEEP-A SWEEP-B --html \
    cells.html\n\nA side is an experiment or run as `plimsoll runs` lists it, or a directory that holds bundles; \
    NAME=SIDE names it. One directory is compared within itself: its directories of repeats, or its runs by \
    plan. A plan that names several targets is run: each target in turn, in random order. Two sweeps are \
    compared cell by cell; a directory with several sweeps of one plan is one side.\nExit code 3: conditions \
    differ that were not accepted, so no winner is called."
)]
pub struct Options {
    /// Experiments, runs or directories of bundles; or one plan with several targets.
    #[arg(required = true, value_name = "SIDE")]
    sides: Vec<String>,
    /// Accept that this condition differs, as the comparison names it: `kernel`, or `plan` for all
    /// differences of the plans. May be given several times.
    #[arg(long, value_name = "DIFFERENCE")]
    accept: Vec<String>,
    /// What is asked about, as the comparison names it: `mount-options`. Only other differences are unlike
    /// conditions then. May be given several times.
    #[arg(long, value_name = "DIFFERENCE")]
    factor: Vec<String>,
    /// Run a plan although it asks for fewer runs a side than a difference can be told by.
    #[arg(long)]
    few: bool,
    /// Write the report as a page to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// A block device that the plan names and whose data may be overwritten, named in full.
    #[arg(long, value_name = "DEVICE")]
    destroy: Vec<PathBuf>,
    /// Directory to make the experiment of a plan in, instead of the catalogue's.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    sign: Sign,
}

/// Compares.
///
/// # Errors
/// A side that is not there, fewer than two of them, a plan that cannot be run.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let (compared, read) = match &options.sides[..] {
        [plan] if Path::new(plan).is_file() => return run_plan(Path::new(plan), options, common),
        [one] => compare_within(one, options)?,
        several => {
            let given = sides::given(several)?;
            let taken = [&options.accept[..], &options.factor[..]].concat();
            if let Some(compared) = sweeps::compare_given(&given, &taken)? {
                return compare_sweeps::told(&compared, options.html.as_deref(), common);
            }
            compare_sides(&given, taken_of(options))?
        }
    };
    if let Some(path) = &options.html {
        let page = bundle::document_html(&comparison_document(&compared))?;
        std::fs::write(path, page).map_err(|error| {
            CliError::environment(format!("cannot write {}: {error}", path.display()))
        })?;
    }
    show(&compared, common)?;
    tell_custody(&read, common)?;
    Ok(read.iter().fold(exit_of(&compared), |exit, side| side.weigh(exit)))
}

/// Runs the targets of a plan in turns.
fn run_plan(path: &Path, options: &Options, common: &Common) -> Result<Exit, CliError> {
    let plan = super::plan::load(path)?;
    if plan.resolve().targets.len() < 2 {
        let says = format!("{} names one target: there is nothing to compare", path.display());
        return Err(CliError::usage(says).hint("name several, each as [[target]] with a name"));
    }
    let runs = plan.resolve().repeat.runs as usize;
    if runs < RUNS_MIN && !options.few {
        let says = format!(
            "{} runs each target {}: no difference can be told from noise by fewer than {RUNS_MIN} runs of each",
            path.display(),
            if runs == 1 { "once".to_owned() } else { format!("{runs} times") }
        );
        return Err(CliError::usage(says)
            .hint(format!("set `[repeat] runs = {RUNS_MIN}`, or more"))
            .hint("--few runs it all the same: verdicts against a requirement need no more"));
    }
    let mut progress = StderrProgress::new(common.quiet);
    let interrupt = interrupt::flag_on_signal()?;
    let (out, destroy) = (options.out.clone(), options.destroy.clone());
    let sign = options.sign.clone();
    let after = After { out, destroy, sign, ..After::default() };
    let taken = taken_of(options);
    super::arms::run_arms_for(&plan, &after, taken, common, &mut progress, &interrupt)
}

fn taken_of(options: &Options) -> Taken<'_> {
    Taken { accept: &options.accept, factors: &options.factor }
}

/// A side that lies in the directory that was named: called by its own name.
fn within_one(directory: PathBuf) -> Given {
    let called = directory.display().to_string();
    let name = directory.file_name().map(|name| name.to_string_lossy().into_owned());
    Given { name, called, directory }
}

/// One experiment or directory: its arms, its directories of repeats, or its runs by plan.
fn compare_within(
    called: &str,
    options: &Options,
) -> Result<(Comparison, Vec<Together>), CliError> {
    let directory = bundle::find(called)?;
    let taken = taken_of(options);
    if !directory.join(FILE).is_file() && !directory.join("run.json").is_file() {
        let mut within = holding_bundles(&directory);
        if within.len() > 1 {
            within.sort();
            let given: Vec<Given> = within.into_iter().map(within_one).collect();
            return compare_sides(&given, taken);
        }
    }
    let together = read_side(&Reader::new(), &directory)?;
    let judged = together.judged();
    let mut plans: Vec<&str> = Vec::new();
    for (bundle, _) in &judged {
        if !plans.contains(&bundle.run.name.as_str()) {
            plans.push(&bundle.run.name);
        }
    }
    let has_arms = judged.iter().any(|(bundle, _)| bundle.run.experiment.is_some());
    let compared = if plans.len() > 1 && !has_arms {
        let side = |plan: &&str| {
            let of = judged.iter().filter(|(bundle, _)| bundle.run.name == **plan);
            Side { name: (*plan).to_owned(), runs: of.copied().collect() }
        };
        let sides: Vec<Side<'_>> = plans.iter().map(side).collect();
        compare_for(&sides, taken.accept, taken.factors)
    } else {
        compare_arms(&directory, &judged, taken)?
    };
    Ok((compared, vec![together]))
}
