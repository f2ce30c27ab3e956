//! One file per command.

pub mod arms;
pub mod audit;
pub mod bundle;
pub mod calibrate;
pub mod clean;
pub mod compare;
pub mod compare_sweeps;
pub mod completions;
pub mod experiment;
pub mod judge;
pub mod ledger;
pub mod man;
pub mod model;
pub mod observe;
pub mod plan;
pub mod quickstart;
pub mod report;
pub mod run;
pub mod runs;
pub mod sweep;
pub mod tune;
pub mod verify;
pub mod verify_evidence;

use crate::arguments::{Arguments, Command};
use crate::error::CliError;
use crate::exit::Exit;

/// Carries a command out.
///
/// # Errors
/// What the operator is told, with the exit code.
pub fn dispatch(arguments: Arguments) -> Result<Exit, CliError> {
    let common = &arguments.common;
    match arguments.command {
        Command::Quickstart(options) => quickstart::carry_out(&options, common),
        Command::Run(options) => run::carry_out(&options, common),
        Command::Tune(options) => tune::carry_out(&options, common),
        Command::Compare(options) => compare::carry_out(&options, common),
        Command::Sweep(options) => sweep::carry_out(&options, common),
        Command::Audit(options) => audit::carry_out(&options, common),
        Command::Observe(options) => observe::carry_out(&options, common),
        Command::Judge(options) => judge::carry_out(&options, common),
        Command::Calibrate(options) => calibrate::carry_out(&options, common),
        Command::Experiment(options) => experiment::carry_out(&options, common),
        Command::Clean(options) => clean::carry_out(&options, common),
        Command::Verify(options) => verify::carry_out(&options, common),
        Command::Model(options) => model::carry_out(&options, common),
        Command::Plan(options) => plan::carry_out(&options, common),
        Command::Runs(options) => runs::carry_out(&options, common),
        Command::Ledger(options) => ledger::carry_out(&options, common),
        Command::Report(options) => report::carry_out(&options, common),
        Command::Completions(options) => completions::carry_out(&options),
        Command::Man => man::carry_out(),
    }
}
