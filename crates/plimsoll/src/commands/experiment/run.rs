//! `plimsoll experiment run NAME`: all arms, on a model or for real, and their story.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::Args;
use plimsoll_evidence::run::{ExperimentKind, Membership};
use plimsoll_judge::VerdictKind;
use plimsoll_judge::story::{Ending, Given, Role, Story};
use plimsoll_report::story_document;

use super::pool::{Job, Shared, run_all};
use super::tell::{self, Ran, Telling};
use crate::arguments::Common;
use crate::commands::{arms, bundle};
use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment::{Experiment, bundles_in};
use crate::interrupt;
use crate::places::Places;
use crate::progress::StderrProgress;
use crate::published::{Definition, Files, On, Overrides, PlannedArm, given};

/// Options of `experiment run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll experiment run e1\n  plimsoll experiment run e1 --arm 3 --arm 6 \
    --set phases.measure='\"10m\"'\n  plimsoll experiment run e1 --published more.csv\n  plimsoll experiment \
    run e3 --on real --path a=/mnt/ext4 --path b=/mnt/btrfs\n\nExit codes: 0 as published, caught, or \
    nothing was published to hold it against; 1 not as\npublished; 3 runs are missing, or INVALID where \
    they should not be; 130 interrupted (--resume)."
)]
pub struct Options {
    /// Name of an experiment, or a directory with an experiment.toml.
    experiment: String,
    /// Where its arms run.
    #[arg(long, value_enum, default_value = "model")]
    on: On,
    /// Where a place of the real arms is: a directory, a device or an NFS export.
    #[arg(long, value_name = "PLACE=PATH")]
    path: Vec<String>,
    /// A field of every arm's plan that differs, as in a plan: phases.measure='"60s"'.
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// Only this arm; may be given several times.
    #[arg(long, value_name = "ARM")]
    arm: Vec<String>,
    /// Runs of each arm, instead of as many as the experiment says.
    #[arg(long, value_name = "N")]
    repeats: Option<u32>,
    /// Further published figures, in the form of published.csv, that the model never knew.
    #[arg(long, value_name = "FILE")]
    published: Option<PathBuf>,
    /// Go on with an experiment that was interrupted: its directory, or its name in the catalogue.
    #[arg(long, value_name = "EXPERIMENT")]
    resume: Option<String>,
    /// A block device whose data may be overwritten, named in full.
    #[arg(long, value_name = "DEVICE")]
    destroy: Vec<PathBuf>,
    /// Directory to make the experiment in, instead of the catalogue's.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs and tells.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let definition = Definition::read(Files::find(&options.experiment)?)?;
    let planned = definition.arms(options.on, &overrides(options)?)?;
    let given = published(&definition, options)?;
    let telling =
        Telling { definition: &definition, on: options.on, arms: &planned, given: &given };
    let progress = StderrProgress::new(common.quiet);
    let interrupt = interrupt::flag_on_signal()?;
    let places = Places::from_environment()?;
    let (mut experiment, mut ran) = begin(options, &telling, &places)?;
    let jobs = jobs(&telling, &experiment, &ran);
    let workers = match options.on {
        On::Model => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        // Arms on real storage would disturb each other.
        On::Real => 1,
    };
    progress.say(&format!(
        "{}: {} runs of {} arms",
        definition.text.title,
        jobs.len(),
        planned.len()
    ));
    let directory = experiment.directory().to_path_buf();
    let shared = Shared {
        bundles: &directory,
        places: &places,
        interrupt: &interrupt,
        destroy: &options.destroy,
        workers,
        quiet: common.quiet || options.on == On::Model,
    };
    let total = jobs.len();
    let mut done = 0;
    let mut worst = Vec::new();
    run_all(&jobs, &shared, |arm, finished| {
        done += 1;
        experiment.note(&finished.evidence);
        progress.say(&format!(
            "{done:>3} of {total}: arm {}, {}",
            planned[arm].name,
            told(&finished)
        ));
        worst.push(finished.exit());
        let number = finished.evidence.run.experiment.as_ref().map_or(0, |place| place.number);
        ran.push(Ran { arm, number, evidence: finished.evidence, verdict: finished.verdict });
        write(&telling, &experiment, &ran)
    })?;
    let story = write(&telling, &experiment, &ran).and_then(|()| Ok(telling.tell(&ran)))?;
    tell::show(&story, &telling.around(&ran), common)?;
    if !common.json {
        bundle::print(&format!("\nreport: {}\n", experiment.report().display()))?;
    }
    if interrupt.load(Ordering::Relaxed) {
        progress.say(&format!("to go on: --resume {}", directory.display()));
        return Ok(Exit::Interrupted);
    }
    let broke = |exit: &&Exit| matches!(exit, Exit::Defect | Exit::Corruption | Exit::Environment);
    Ok(worst.iter().find(broke).copied().unwrap_or_else(|| exit_of(&story)))
}

/// What a story ends with.
fn exit_of(story: &Story) -> Exit {
    let invalid = |kind: &VerdictKind| *kind == VerdictKind::Invalid;
    match story.ending {
        Ending::AsPublished | Ending::Caught => Exit::Ok,
        Ending::NotAsPublished => Exit::Fail,
        Ending::CameThrough | Ending::Incomplete => Exit::NoVerdict,
        Ending::Told if story.arms.iter().any(|arm| arm.verdicts.iter().any(invalid)) => {
            Exit::NoVerdict
        }
        Ending::Told => Exit::Ok,
    }
}

fn overrides(options: &Options) -> Result<Overrides, CliError> {
    let pair = |text: &String, form: &str| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err(CliError::usage(format!("\"{text}\" is not {form}"))),
    };
    if options.on == On::Model && !options.path.is_empty() {
        return Err(CliError::usage("--path is for arms on real storage").hint("add --on real"));
    }
    let places =
        options.path.iter().map(|text| pair(text, "PLACE=PATH")).collect::<Result<_, _>>()?;
    let set = options.set.iter().map(|text| pair(text, "FIELD=VALUE")).collect::<Result<_, _>>()?;
    Ok(Overrides { set, places, repeats: options.repeats, arms: options.arm.clone() })
}

/// The experiment's published figures, and those that the operator brings along.
fn published(definition: &Definition, options: &Options) -> Result<Vec<Given>, CliError> {
    let mut all = definition.given.clone();
    if let Some(path) = &options.published {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| CliError::usage(format!("cannot read {name}: {error}")))?;
        for one in given(&name, &text, Role::Kept)? {
            all.retain(|known| (&known.arm, &known.figure) != (&one.arm, &one.figure));
            all.push(one);
        }
    }
    Ok(all)
}

/// A new experiment, or one that is gone on with and what it has.
fn begin(
    options: &Options,
    telling: &Telling<'_>,
    places: &Places,
) -> Result<(Experiment, Vec<Ran>), CliError> {
    let name = &telling.definition.files.name;
    let Some(resumed) = &options.resume else {
        let bundles = options.out.as_deref().unwrap_or(&places.runs);
        let experiment = Experiment::begin(ExperimentKind::Published, name, bundles)?;
        tell::write_files(telling.definition, experiment.directory())?;
        write(telling, &experiment, &[])?;
        return Ok((experiment, Vec::new()));
    };
    let directory = bundle::find(resumed)?;
    let files = tell::of_directory(&directory)?;
    if files != telling.definition.files {
        let says = format!("{} is not of this experiment as it is now", directory.display());
        return Err(CliError::usage(says).hint("run it anew, or name the directory of its files"));
    }
    let mut experiment = Experiment::resume(ExperimentKind::Published, name, &directory)?;
    // An experiment that was interrupted before its first run has no bundle yet.
    let mut ran = tell::of_bundles(telling.arms, bundles_in(&directory).unwrap_or_default());
    // A run of the same number and arm under another plan does not count.
    ran.retain(|one| one.evidence.plan == telling.arms[one.arm].resolved);
    ran.iter().for_each(|one| experiment.note(&one.evidence));
    Ok((experiment, ran))
}

/// The runs that are missing. Each has the number that it would have in the whole experiment, from which
/// its seed follows: leaving arms out changes nothing of the others.
fn jobs<'a>(telling: &Telling<'a>, experiment: &Experiment, ran: &[Ran]) -> Vec<Job<'a>> {
    let arms: &'a [PlannedArm] = telling.arms;
    let rounds = arms.iter().map(|arm| arm.repeats).max().unwrap_or(1);
    let seed = arms.first().map_or(0, |arm| arm.resolved.seed);
    let order = match telling.on {
        On::Model => (0..rounds).flat_map(|_| 0..arms.len()).collect(),
        On::Real => arms::order(arms.len(), rounds, seed),
    };
    let mut jobs = Vec::new();
    let mut counts = vec![0u32; arms.len()];
    for arm in order {
        let repeat = counts[arm];
        counts[arm] += 1;
        // The same number, and so the same seed, for all arms of a round: what differs between arms on a
        // model is then the setting and not the dice.
        let number = match telling.on {
            On::Model => repeat + 1,
            On::Real => jobs.len() as u32 + 1,
        };
        let done = ran.iter().filter(|one| one.arm == arm).count() as u32;
        let has = match telling.on {
            On::Model => ran.iter().any(|one| one.arm == arm && one.number == number),
            On::Real => repeat < done,
        };
        if repeat >= arms[arm].repeats || has {
            continue;
        }
        let place = Membership { number, ..experiment.next(&arms[arm].name) };
        jobs.push(Job { arm, plan: &arms[arm], place });
    }
    jobs
}

/// Writes what the runs so far say.
fn write(telling: &Telling<'_>, experiment: &Experiment, ran: &[Ran]) -> Result<(), CliError> {
    let story = telling.tell(ran);
    let page = bundle::document_html(&story_document(&story, &telling.around(ran)))?;
    experiment.write(&story, &page)
}

fn told(finished: &crate::session::Finished) -> String {
    let rate = finished.verdict.achieved_iops_per_s;
    let rate = rate.map_or("nothing measured".to_owned(), |rate| format!("{rate:.0} I/Os/s"));
    format!("{rate}, {}", finished.verdict.verdict)
}
