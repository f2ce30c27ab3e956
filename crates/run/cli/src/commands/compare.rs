//! `plimsoll compare`: compares experiments (`A B…`), the targets of a plan (`PLAN`), or results of
//! other tools (`BEFORE AFTER`).

mod gate_flags;
mod plan_flags;
mod targets;

use std::path::PathBuf;

use clap::Args;
use plimsoll_runner::compare::{Exemptions, compare_sides, compare_within, parse_side, sweeps};
use plimsoll_runner::custody::Reader;

use self::gate_flags::GateFlags;
use self::plan_flags::PlanFlags;
use super::plan::is_plan;
use super::sides::print_doubts;
use super::{bundle, compare_fleets, compare_reported, compare_sweeps, sides};
use crate::common::Globals;
use crate::{error::CliError, exit::Exit, keys::Sign};

/// Options of `compare`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll compare EXPERIMENT-A EXPERIMENT-B\n  plimsoll compare \
        old=12 new=last --factor mount-options\n  plimsoll compare before/ after/ --accept \
        kernel\n  plimsoll compare firmware/\n  plimsoll compare ext4-against-btrfs.toml \
        --dry-run\n  plimsoll compare oltp --target ext4=/mnt/a --target btrfs=/mnt/b --runs 4\n  \
        plimsoll compare --path /mnt/a --path /mnt/b --size 8KiB --reads 70 --for 1m\n  plimsoll \
        compare SWEEP-A SWEEP-B --html cells.html\n  plimsoll compare baseline/ new/ \
        --fail-if-worse 10%\n  plimsoll compare baseline/ new/ --fail-if-worse \
        rate=5%,read_p99=20% --junit gate.xml\n\nA side is an experiment or run from `plimsoll \
        runs`, or a directory with bundles; NAME=SIDE sets its name. If only one directory is \
        given, each of its subdirectories that contains runs is a side; if there are no such \
        subdirectories, the runs of each plan are a side. If a plan has several targets, its runs \
        alternate between them in random order. Two sweeps are compared cell by cell; a directory \
        with several sweeps of one plan is one side. For fleet runs, the totals of all hosts are \
        compared. Results of other tools (directories, files or archives) are compared workload \
        by workload; repeated results show how much a figure varies.\nExit code 3: the sides \
        differ in a condition that was not accepted, so there is no winner.\nExit codes with \
        --fail-if-worse: 1 if a figure is significantly worse by more than its allowance, 0 if \
        there is no such figure, 3 if there are too few runs to decide."
)]
pub struct Options {
    /// Sides to compare: experiments, runs or directories of bundles. Or one plan that has several
    /// targets. If neither is given, the load flags describe the load, and each --path or --target
    /// is a side of the comparison.
    #[arg(required_unless_present_any = ["target", "path"], value_name = "SIDE")]
    sides: Vec<String>,
    /// Accept a difference in this condition. Pass the name that the printed comparison shows, such
    /// as `kernel`; `plan` accepts all differences between the plans. May be given several times.
    #[arg(long, value_name = "DIFFERENCE")]
    accept: Vec<String>,
    /// Condition whose effect the comparison measures, such as `mount-options`. Pass the name that
    /// the printed comparison shows. A difference in this condition is accepted. May be given
    /// several times.
    #[arg(long, value_name = "DIFFERENCE")]
    factor: Vec<String>,
    /// Write the report as an HTML page to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    sign: Sign,
    #[command(flatten)]
    run: PlanFlags,
    #[command(flatten)]
    gate: GateFlags,
}

/// Compares the sides.
///
/// # Errors
/// A side of the comparison is missing, there are fewer than two sides, or the plan cannot be run.
pub fn carry_out(options: &Options, common: &Globals) -> Result<Exit, CliError> {
    match &options.sides[..] {
        [] => return targets::run_plan(None, options, common),
        [plan] if is_plan(plan) => return targets::run_plan(Some(plan), options, common),
        _ => {}
    }
    options.gate.check(None)?;
    if let Some(flag) = options.run.first_flag() {
        let says = format!("{flag} can be used only with a plan, and no side is a plan");
        return Err(CliError::usage(says).hint("to run a plan: plimsoll compare PLAN"));
    }
    let (compared, read) = match &options.sides[..] {
        [one] => compare_within(&bundle::find(one)?, accepted_of(options))?,
        several => {
            if let [a, b] = several {
                let (a, b) = (parse_side(a), parse_side(b));
                if compare_reported::is_foreign(a.1) && compare_reported::is_foreign(b.1) {
                    options.gate.refuse_for("results of other tools")?;
                    return compare_reported::carry_out([a, b], options.html.as_deref(), common);
                }
            }
            let given = sides::find(several)?;
            if let Some(compared) = compare_fleets::compare(&given, &accepted_of(options))? {
                return options.gate.show(&compared, options.html.as_deref(), common);
            }
            let accepted = [&options.accept[..], &options.factor[..]].concat();
            let reader = Reader::new();
            if let Some(compared) = sweeps::compare_sweep_sides(&reader, &given, &accepted)? {
                options.gate.refuse_for("sweeps")?;
                return compare_sweeps::show_comparison(&compared, options.html.as_deref(), common);
            }
            compare_sides(&reader, &given, accepted_of(options))?
        }
    };
    let exit = options.gate.show(&compared, options.html.as_deref(), common)?;
    print_doubts(&read, common)?;
    Ok(read.iter().fold(exit, |exit, side| side.apply_doubts(exit)))
}

fn accepted_of(options: &Options) -> Exemptions<'_> {
    Exemptions { accept: &options.accept, factors: &options.factor }
}
