//! `plimsoll compare PLAN`: runs the targets of a plan and compares them.

use plimsoll_judge::compare::Comparison;

use super::{Options, accepted_of};
use crate::commands::arms;
use crate::commands::load_flags::LoadPlan;
use crate::common::Globals;
use crate::{error::CliError, exit::Exit, interrupt};

/// Runs the targets of a plan in turns and compares them.
///
/// # Errors
/// A plan with one target, too few runs, or a target that cannot be used.
pub fn run_plan(name: Option<&str>, options: &Options, common: &Globals) -> Result<Exit, CliError> {
    let LoadPlan { plan, meanings } = options.run.plan(name)?;
    let name = plan.name();
    if plan.resolve().targets.len() < 2 {
        let says = format!("{name} has one target: nothing to compare");
        return Err(CliError::usage(says)
            .hint("name the sides: --target ext4=/mnt/a --target btrfs=/mnt/b")
            .hint("or add several to the plan, each as [[target]] with a name"));
    }
    options.gate.check(Some(plan.resolve().targets.len()))?;
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
