//! `plimsoll compare A B…`: experiments side by side; `plimsoll compare PLAN`: the targets of a plan,
//! run in turns; `plimsoll compare BEFORE AFTER`: results that other tools made.

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll_judge::compare::{Comparison, Side, compare_for};
use plimsoll_plan::{Change, Plan, ready};
use plimsoll_report::comparison_document;
use plimsoll_runner::compare::{
    Given, Taken, compare_arms, compare_sides, holding_bundles, named, read_side, sweeps,
};
use toml::Value;

use super::after::After;
use super::chosen::Changes;
use super::sides::{exit_of, show, tell_custody};
use super::{bundle, compare_reported, compare_sweeps, sides};
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
    firmware/\n  plimsoll compare ext4-against-btrfs.toml --dry-run\n  plimsoll compare oltp --target \
    ext4=/mnt/a --target btrfs=/mnt/b --set repeat.runs=4\n  plimsoll compare SWEEP-A SWEEP-B --html \
    cells.html\n\nA side is an experiment or run as `plimsoll runs` lists it, or a directory that holds bundles; \
    NAME=SIDE names it. One directory is compared within itself: its directories of repeats, or its runs by \
    plan. A plan that names several targets is run: each target in turn, in random order. Two sweeps are \
    compared cell by cell; a directory with several sweeps of one plan is one side. Two \
    directories, files or archives of results that other tools made are compared by what was done in \
    them, with the scatter of their repeats.\nExit code 3: conditions \
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
    #[command(flatten)]
    ran: Ran,
    /// Write the report as a page to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    sign: Sign,
}

/// How a plan is run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Comparisons that are run from a plan")]
struct Ran {
    /// A target of the comparison in place of the plan's: NAME=DIR, NAME=/dev/…, NAME=nfs://host/export or
    /// NAME=model:MODEL. Given once for each side.
    #[arg(long, value_name = "NAME=PLACE")]
    target: Vec<String>,
    /// A field of the plan with another value, as in `repeat.runs=4`. May be given several times.
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// Run a plan although it asks for fewer runs a side than a difference can be told by.
    #[arg(long)]
    few: bool,
    /// Say what would be done, run by run, look at every place and server, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Go on where the comparison would measure for more than 30 days.
    #[arg(long)]
    yes: bool,
    /// Keep the data after the runs.
    #[arg(long)]
    keep: bool,
    /// A block device that the plan names and whose data may be overwritten, named in full.
    #[arg(long, value_name = "DEVICE")]
    destroy: Vec<PathBuf>,
    /// Directory to make the experiment of a plan in, instead of the catalogue's.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Ran {
    /// The first of these that was given.
    fn given(&self) -> Option<&'static str> {
        let given = [
            ("--target", !self.target.is_empty()),
            ("--set", !self.set.is_empty()),
            ("--few", self.few),
            ("--dry-run", self.dry_run),
            ("--yes", self.yes),
            ("--keep", self.keep),
            ("--destroy", !self.destroy.is_empty()),
            ("--out", self.out.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// The plan of this name, on the targets that were named.
    fn plan(&self, name: &str) -> Result<Plan, CliError> {
        let targets: Result<Vec<Value>, CliError> =
            self.target.iter().map(|given| target(given)).collect();
        let mut fields = Vec::new();
        match targets? {
            none if none.is_empty() => {}
            targets => fields.push(Change::set("target", Value::Array(targets))),
        }
        let changes = Changes { set: self.set.clone(), ..Changes::default() };
        changes.plan_with(name, fields)
    }
}

/// A target of a comparison, as a flag names it.
fn target(given: &str) -> Result<Value, CliError> {
    let Some((name, place)) = given
        .split_once('=')
        .filter(|(name, place)| !name.trim().is_empty() && !place.trim().is_empty())
    else {
        return Err(CliError::usage(format!("--target {given}: which name, and which place?"))
            .hint("write such as --target ext4=/mnt/a --target btrfs=/mnt/b"));
    };
    let text = |text: &str| Value::String(text.to_owned());
    let (kind, place) = match place.strip_prefix("model:") {
        Some(model) => ("model", text(model)),
        None if place.starts_with("nfs://") => ("nfs", Value::Array(vec![text(place)])),
        None if place.starts_with("/dev/") => ("device", text(place)),
        None => ("path", text(place)),
    };
    let fields = [("name".to_owned(), text(name)), (kind.to_owned(), place)];
    Ok(Value::Table(fields.into_iter().collect()))
}

/// Compares.
///
/// # Errors
/// A side that is not there, fewer than two of them, a plan that cannot be run.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    if let [plan] = &options.sides[..]
        && is_plan(plan)
    {
        return run_plan(plan, options, common);
    }
    if let Some(flag) = options.ran.given() {
        let says = format!("{flag} goes with a plan that is run, and no side here is one");
        return Err(CliError::usage(says).hint("plimsoll compare PLAN runs the targets of a plan"));
    }
    let (compared, read) = match &options.sides[..] {
        [one] => compare_within(one, options)?,
        several => {
            if let [a, b] = &several[..] {
                let (a, b) = (named(a), named(b));
                if compare_reported::is_elsewhere(a.1) && compare_reported::is_elsewhere(b.1) {
                    return compare_reported::carry_out([a, b], options.html.as_deref(), common);
                }
            }
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

/// Whether a name is that of a plan: a file, or one that is built in and hides no directory.
fn is_plan(name: &str) -> bool {
    let path = Path::new(name);
    path.is_file() || (ready(name).is_some() && !path.exists())
}

/// Runs the targets of a plan in turns.
fn run_plan(name: &str, options: &Options, common: &Common) -> Result<Exit, CliError> {
    let plan = options.ran.plan(name)?;
    if plan.resolve().targets.len() < 2 {
        let says = format!("{name} names one target: there is nothing to compare");
        return Err(CliError::usage(says)
            .hint("name the sides: --target ext4=/mnt/a --target btrfs=/mnt/b")
            .hint("or write several into the plan, each as [[target]] with a name"));
    }
    if !options.ran.few {
        super::arms::enough_runs(&plan)?;
    }
    let mut progress = StderrProgress::new(common.quiet);
    let interrupt = interrupt::flag_on_signal()?;
    let ran = &options.ran;
    let after = After {
        out: ran.out.clone(),
        destroy: ran.destroy.clone(),
        sign: options.sign.clone(),
        keep: ran.keep,
        dry_run: ran.dry_run,
        yes: ran.yes,
        ..After::default()
    };
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
