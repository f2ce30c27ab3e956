//! `plimsoll compare A B…`: experiments side by side; `plimsoll compare PLAN`: the targets of a plan,
//! run in turns; `plimsoll compare BEFORE AFTER`: results that other tools made.

mod ran;

use std::path::PathBuf;

use clap::Args;
use plimsoll_report::comparison_document;
use plimsoll_runner::compare::{
    AcceptedDifferences, compare_sides, compare_within, parse_side, sweeps,
};
use plimsoll_runner::custody::Reader;

use self::ran::Ran;
use super::plan::is_plan;
use super::sides::{exit_of, show, tell_custody};
use super::{bundle, compare_fleets, compare_reported, compare_sweeps, sides};
use crate::common::Common;
use crate::{error::CliError, exit::Exit, interrupt, keys::Sign};

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
    compared cell by cell; a directory with several sweeps of one plan is one side. Runs of fleets are \
    compared by what all hosts carried together. Two \
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
        [one] => compare_within(&bundle::find(one)?, taken_of(options))?,
        several => {
            if let [a, b] = several {
                let (a, b) = (parse_side(a), parse_side(b));
                if compare_reported::is_elsewhere(a.1) && compare_reported::is_elsewhere(b.1) {
                    return compare_reported::carry_out([a, b], options.html.as_deref(), common);
                }
            }
            let given = sides::given(several)?;
            if let Some(compared) = compare_fleets::compare_fleet_sides(&given, &taken_of(options))?
            {
                return compare_fleets::told(&compared, options.html.as_deref(), common);
            }
            let taken = [&options.accept[..], &options.factor[..]].concat();
            let reader = Reader::new();
            if let Some(compared) = sweeps::compare_sweep_sides(&reader, &given, &taken)? {
                return compare_sweeps::told(&compared, options.html.as_deref(), common);
            }
            compare_sides(&reader, &given, taken_of(options))?
        }
    };
    if let Some(path) = &options.html {
        super::audit::write(path, &bundle::document_html(&comparison_document(&compared))?)?;
    }
    show(&compared, common)?;
    tell_custody(&read, common)?;
    Ok(read.iter().fold(exit_of(&compared), |exit, side| side.apply_doubts(exit)))
}

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
    let mut progress = options.ran.metrics.progress(plan.name(), common)?;
    let interrupt = interrupt::flag_on_signal()?;
    let after = options.ran.after(&options.sign);
    let taken = taken_of(options);
    super::arms::run_arms_for(&plan, &after, taken, common, &mut progress, &interrupt)
}

fn taken_of(options: &Options) -> AcceptedDifferences<'_> {
    AcceptedDifferences { accept: &options.accept, factors: &options.factor }
}
