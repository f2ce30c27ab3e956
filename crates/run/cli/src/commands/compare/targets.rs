//! `plimsoll compare PLAN`: runs the targets of a plan and compares them.

use plimsoll_judge::compare::Comparison;

use super::{Options, accepted_of};
use crate::commands::arms;
use crate::commands::load_flags::LoadPlan;
use crate::common::{Globals, check_output};
use crate::{error::CliError, exit::Exit, interrupt};

/// Runs a plan alternately on its targets and compares the results.
///
/// # Errors
/// The plan has one target or too few runs, or a target cannot be used.
pub fn run_plan(name: Option<&str>, options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let LoadPlan { plan, meanings } = options.run.plan(name)?;
    let name = plan.name();
    if plan.resolve().targets.len() < 2 {
        let says = format!("{name} has only one target, so there is nothing to compare");
        return Err(CliError::usage(says)
            .hint("pass the sides: --target ext4=/mnt/a --target btrfs=/mnt/b")
            .hint("or add several targets to the plan, each as [[target]] with a name"));
    }
    options.gate.check(Some(plan.resolve().targets.len()))?;
    let (html, junit) = (&options.html, &options.gate.junit);
    let files = [("--html", html), ("--junit", junit), ("--markdown", &options.gate.markdown)];
    for (option, path) in files {
        path.as_ref().map_or(Ok(()), |path| check_output(option, path))?;
    }
    if !options.run.few {
        arms::enough_runs(&plan)?;
    }
    let mut progress = options.run.metrics.progress(plan.name(), common)?;
    meanings.iter().for_each(|says| progress.say(says));
    let interrupt = interrupt::flag_on_signal()?;
    let after = options.run.run_options(&options.sign);
    let accepted = accepted_of(options);
    let show = |compared: &Comparison| options.gate.show(compared, options.html.as_deref(), common);
    let earlier = options.run.earlier();
    arms::run_arms_for(&plan, &after, accepted, earlier, &show, common, &mut progress, &interrupt)
}
