//! `plimsoll compare`: compares experiments (`A B…`), the targets of a plan (`PLAN`), or results of
//! other tools (`BEFORE AFTER`).

mod plan_flags;

use std::path::PathBuf;

use clap::Args;
use plimsoll_report::comparison_document;
use plimsoll_runner::compare::{Exemptions, compare_sides, compare_within, parse_side, sweeps};
use plimsoll_runner::custody::Reader;

use self::plan_flags::PlanFlags;
use super::plan::is_plan;
use super::sides::{exit_of, print_doubts, show};
use super::{bundle, compare_fleets, compare_reported, compare_sweeps, sides};
use crate::common::Globals;
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
    /// Accept that this condition differs, by its name in the comparison: `kernel`, or `plan` for
    /// all differences of the plans. May be given several times.
    #[arg(long, value_name = "DIFFERENCE")]
    accept: Vec<String>,
    /// Factor under comparison, by its name in the comparison: `mount-options`. Its difference does
    /// not count as unlike. May be given several times.
    #[arg(long, value_name = "DIFFERENCE")]
    factor: Vec<String>,
    #[command(flatten)]
    run: PlanFlags,
    /// Write the report as an HTML page to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    sign: Sign,
}

/// Compares the sides.
///
/// # Errors
/// A missing side, fewer than two sides, or a plan that cannot be run.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    if let [plan] = &options.sides[..]
        && is_plan(plan)
    {
        return run_plan(plan, options, common);
    }
    if let Some(flag) = options.run.first_flag() {
        let says = format!("{flag} can be used only with a plan, and no side is a plan");
        return Err(CliError::usage(says).hint("plimsoll compare PLAN runs the targets of a plan"));
    }
    let (compared, read) = match &options.sides[..] {
        [one] => compare_within(&bundle::find(one)?, accepted_of(options))?,
        several => {
            if let [a, b] = several {
                let (a, b) = (parse_side(a), parse_side(b));
                if compare_reported::is_foreign(a.1) && compare_reported::is_foreign(b.1) {
                    return compare_reported::carry_out([a, b], options.html.as_deref(), common);
                }
            }
            let given = sides::find(several)?;
            if let Some(compared) = compare_fleets::compare(&given, &accepted_of(options))? {
                return compare_fleets::show_comparison(&compared, options.html.as_deref(), common);
            }
            let accepted = [&options.accept[..], &options.factor[..]].concat();
            let reader = Reader::new();
            if let Some(compared) = sweeps::compare_sweep_sides(&reader, &given, &accepted)? {
                return compare_sweeps::show_comparison(&compared, options.html.as_deref(), common);
            }
            compare_sides(&reader, &given, accepted_of(options))?
        }
    };
    if let Some(path) = &options.html {
        super::audit::write(path, &bundle::document_html(&comparison_document(&compared))?)?;
    }
    show(&compared, common)?;
    print_doubts(&read, common)?;
    Ok(read.iter().fold(exit_of(&compared), |exit, side| side.apply_doubts(exit)))
}

fn run_plan(name: &str, options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let plan = options.run.plan(name)?;
    if plan.resolve().targets.len() < 2 {
        let says = format!("{name} has one target: nothing to compare");
        return Err(CliError::usage(says)
            .hint("name the sides: --target ext4=/mnt/a --target btrfs=/mnt/b")
            .hint("or add several to the plan, each as [[target]] with a name"));
    }
    if !options.run.few {
        super::arms::enough_runs(&plan)?;
    }
    let mut progress = options.run.metrics.progress(plan.name(), common)?;
    let interrupt = interrupt::flag_on_signal()?;
    let after = options.run.run_options(&options.sign);
    let accepted = accepted_of(options);
    super::arms::run_arms_for(&plan, &after, accepted, common, &mut progress, &interrupt)
}

fn accepted_of(options: &Options) -> Exemptions<'_> {
    Exemptions { accept: &options.accept, factors: &options.factor }
}
