//! `plimsoll experiment run NAME`: all arms, on a model or for real, and their story.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::Args;
use plimsoll_evidence::run::{ExperimentKind, Membership};
use plimsoll_judge::VerdictKind;
use plimsoll_judge::story::{Ending, Fitted, Given, Role, SearchStory, Story};
use plimsoll_model::fit::Table as Measured;
use plimsoll_report::story_document;
use plimsoll_runner::arms;
use plimsoll_sys::clock;

use super::pool::{Done, Job, Shared, Work, run_all};
use super::tell::{self, Ran, Telling};
use crate::arguments::Common;
use crate::commands::bundle;
use crate::custody::Reader;
use crate::error::CliError;
use crate::exit::Exit;
use crate::experiment::Experiment;
use crate::interrupt;
use crate::keys::{self, Sign};
use crate::places::Places;
use crate::progress::StderrProgress;
use crate::published::{Definition, Files, On, Overrides, PlannedArm, given, given_of};
use crate::session::Finished;

/// Options of `experiment run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  plimsoll experiment run e1\n  plimsoll experiment run e1 --arm 3 --arm 6 \
    --set phases.measure='\"10m\"'\n  plimsoll experiment run e1 --published more.csv\n  plimsoll experiment \
    run e3 --on real --path a=/mnt/ext4 --path b=/mnt/btrfs\n  plimsoll experiment run e6 --table \
    raidz1=raidz1-random.csv\n\nExit codes: 0 FITTED, PREDICTED, \
    CAUGHT, or nothing was published to hold it against;\n1 MISSED; 3 runs are missing, or INVALID where \
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
    /// A further published table of an arm that sweeps, in the columns of `model fit`, that the model never
    /// knew.
    #[arg(long, value_name = "ARM=FILE")]
    table: Vec<String>,
    /// Go on with an experiment that was interrupted: its directory, or its name in the catalogue.
    #[arg(long, value_name = "EXPERIMENT")]
    resume: Option<String>,
    /// A block device whose data may be overwritten, named in full.
    #[arg(long, value_name = "DEVICE")]
    destroy: Vec<PathBuf>,
    /// Directory to make the experiment in, instead of the catalogue's.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    sign: Sign,
}

/// Runs and tells.
pub fn carry_out(options: &Options, common: &Common) -> Result<Exit, CliError> {
    let definition = Definition::read(Files::find(&options.experiment)?)?;
    let progress = StderrProgress::new(common.quiet);
    let mut overrides = overrides(options)?;
    // What is wrong with an arm, a table or a place is said before anything is fitted or run.
    let given = published(&definition, &definition.arms(options.on, &overrides)?, options)?;
    are_there(&overrides)?;
    let fitted = fit(&definition, options.on, &progress)?;
    overrides.fitted = fitted.iter().map(|one| (one.path.clone(), one.value)).collect();
    let planned = definition.arms(options.on, &overrides)?;
    let searches = definition.searches(options.on, &overrides)?;
    let telling = Telling {
        definition: &definition,
        on: options.on,
        arms: &planned,
        given: &given,
        fitted: &fitted,
        searches: &searches,
    };
    let interrupt = interrupt::flag_on_signal()?;
    let places = keys::places(&options.sign)?;
    let (experiment, ran) = begin(options, &telling, &places)?;
    let directory = experiment.directory().to_path_buf();
    let shared = Shared {
        bundles: &directory,
        places: &places,
        interrupt: &interrupt,
        destroy: &options.destroy,
        workers: match options.on {
            On::Model => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            // Arms on real storage would disturb each other.
            On::Real => 1,
        },
        quiet: common.quiet || options.on == On::Model,
    };
    let mut under_way = UnderWay::new(&telling, experiment, ran, progress);
    // What was measured before an arm that cannot be is kept, and told by `runs show`.
    under_way.run(&shared).map_err(|error| {
        error.hint(format!("to go on once that is mended: --resume {}", directory.display()))
    })?;
    let story = under_way.write()?;
    tell::show(&story, &telling.around(&under_way.ran), common)?;
    if !common.json {
        bundle::print(&format!("\nreport: {}\n", under_way.experiment.report().display()))?;
    }
    if interrupt.load(Ordering::Relaxed) {
        under_way.progress.say(&format!("to go on: --resume {}", directory.display()));
        return Ok(Exit::Interrupted);
    }
    let broke = |exit: &&Exit| matches!(exit, Exit::Defect | Exit::Corruption | Exit::Environment);
    Ok(under_way.exits.iter().find(broke).copied().unwrap_or_else(|| exit_of(&story)))
}

/// The free parameters of a model, fitted before its arms run.
fn fit(
    definition: &Definition,
    on: On,
    progress: &StderrProgress,
) -> Result<Vec<Fitted>, CliError> {
    let Some(asked) = definition.text.fit.as_ref().filter(|_| on == On::Model) else {
        return Ok(Vec::new());
    };
    progress.say(&format!("fitting {} to the published table of {}", asked.model, asked.arm));
    definition.fit()
}

/// How often the story is written while runs end, at most: telling it takes as long as a short run.
const WRITTEN_EVERY_NS: u64 = 2_000_000_000;

/// An experiment under way: its runs and searches so far.
struct UnderWay<'a> {
    telling: &'a Telling<'a>,
    experiment: Experiment,
    ran: Vec<Ran>,
    searched: Vec<SearchStory>,
    exits: Vec<Exit>,
    progress: StderrProgress,
    written_ns: u64,
}

impl<'a> UnderWay<'a> {
    fn new(
        telling: &'a Telling<'a>,
        experiment: Experiment,
        ran: Vec<Ran>,
        progress: StderrProgress,
    ) -> Self {
        let searched = tell::searched_in(experiment.directory(), telling.searches);
        let (exits, written_ns) = (Vec::new(), clock::monotonic_ns());
        Self { telling, experiment, ran, searched, exits, progress, written_ns }
    }

    /// The runs and searches that are missing.
    fn run(&mut self, shared: &Shared<'_>) -> Result<(), CliError> {
        let jobs = jobs(self.telling, &self.experiment, &self.ran);
        let (total, arms) = (jobs.len(), self.telling.arms);
        let title = &self.telling.definition.text.title;
        self.progress.say(&format!("{title}: {total} runs of {} arms", arms.len()));
        let missing = |one: &&PlannedArm| !self.searched.iter().any(|s| s.name == one.name);
        let searches: Vec<&PlannedArm> = self.telling.searches.iter().filter(missing).collect();
        for search in &searches {
            self.progress.say(&format!("search {}: {}", search.name, search.of.title));
        }
        let searches = searches.into_iter().map(Work::Search);
        let work: Vec<Work<'_>> = jobs.into_iter().map(Work::Run).chain(searches).collect();
        let mut done = 0;
        run_all(&work, shared, |ended| {
            match ended {
                Done::Run(arm, finished) => {
                    done += 1;
                    let says = format!("{done:>3} of {total}: arm {}", arms[arm].name);
                    self.progress.say(&format!("{says}, {}", told(&finished)));
                    self.take(arm, *finished);
                }
                Done::Search(found) => {
                    if let Some(search) = found {
                        self.progress.say(&format!("search {} has ended", search.name));
                        self.searched.push(*search);
                    }
                }
            }
            if clock::monotonic_ns().saturating_sub(self.written_ns) >= WRITTEN_EVERY_NS {
                self.write()?;
            }
            Ok(())
        })
        .inspect_err(|_| drop(self.write()))
    }

    fn take(&mut self, arm: usize, finished: Finished) {
        self.experiment.note(&finished.evidence);
        self.exits.push(finished.exit());
        let number = finished.evidence.run.experiment.as_ref().map_or(0, |place| place.number);
        let Finished { evidence, verdict, .. } = finished;
        self.ran.push(Ran { arm, number, evidence, verdict });
    }

    /// Tells what there is so far, and writes it.
    fn write(&mut self) -> Result<Story, CliError> {
        let story = self.telling.tell(&self.ran, &self.searched);
        let around = self.telling.around(&self.ran);
        let page = bundle::document_html(&story_document(&story, &around))?;
        self.experiment.write(&story, &page)?;
        self.written_ns = clock::monotonic_ns();
        Ok(story)
    }
}

/// What a story ends with.
fn exit_of(story: &Story) -> Exit {
    let invalid = |kind: &VerdictKind| *kind == VerdictKind::Invalid;
    match story.ending {
        Ending::Fitted | Ending::Predicted | Ending::Caught => Exit::Ok,
        Ending::Missed => Exit::Fail,
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
    let (repeats, arms) = (options.repeats, options.arm.clone());
    Ok(Overrides { set, places, repeats, arms, ..Overrides::default() })
}

/// Places that are paths of this host: a later arm's would be missed after the runs of those before.
fn are_there(overrides: &Overrides) -> Result<(), CliError> {
    for (place, path) in overrides.places.iter().filter(|(_, path)| !path.contains("://")) {
        std::fs::metadata(path).map_err(|error| {
            CliError::usage(format!("place {place}: {path}: {error}"))
                .hint("check the path, and that the file system is mounted")
        })?;
    }
    Ok(())
}

/// The experiment's published figures, and those that the operator brings along.
fn published(
    definition: &Definition,
    planned: &[PlannedArm],
    options: &Options,
) -> Result<Vec<Given>, CliError> {
    let mut all = definition.given.clone();
    all.extend(definition.given_by_tables(planned));
    let mut kept = Vec::new();
    for text in &options.table {
        let Some((arm, path)) = text.split_once('=') else {
            return Err(CliError::usage(format!("\"{text}\" is not ARM=FILE")));
        };
        let points: Vec<&PlannedArm> = planned.iter().filter(|one| one.of.name == arm).collect();
        if points.is_empty() {
            return Err(CliError::usage(format!("there is no arm {arm}")));
        }
        let wrong = |error: &dyn std::fmt::Display| CliError::usage(format!("{path}: {error}"));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let measured = Measured::parse(&text).map_err(|error| wrong(&error))?;
        kept.extend(given_of(&measured, &points, Role::Kept, path));
    }
    if let Some(path) = &options.published {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| CliError::usage(format!("cannot read {name}: {error}")))?;
        kept.extend(given(&name, &text, Role::Kept)?);
    }
    for one in kept {
        all.retain(|known| (&known.arm, &known.figure) != (&one.arm, &one.figure));
        all.push(one);
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
        let bundles = &places.bundles(options.out.as_deref())?;
        let experiment = Experiment::begin(ExperimentKind::Published, name, bundles, places)?;
        tell::write_files(telling.definition, experiment.directory())?;
        let story = telling.tell(&[], &[]);
        let page = bundle::document_html(&story_document(&story, &telling.around(&[])))?;
        experiment.write(&story, &page)?;
        return Ok((experiment, Vec::new()));
    };
    let directory = bundle::find(resumed)?;
    let files = tell::of_directory(&directory)?;
    if files != telling.definition.files {
        let says = format!("{} is not of this experiment as it is now", directory.display());
        return Err(CliError::usage(says).hint("run it anew, or name the directory of its files"));
    }
    let mut experiment = Experiment::resume(ExperimentKind::Published, name, &directory, places)?;
    // An experiment that was interrupted before its first run has no bundle yet.
    let together = Reader::new().load_any(&directory)?;
    let mut ran = tell::of_bundles(telling.arms, &together.runs);
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

fn told(finished: &Finished) -> String {
    let rate = finished.verdict.achieved_iops_per_s;
    let rate = rate.map_or("nothing measured".to_owned(), |rate| format!("{rate:.0} I/Os/s"));
    format!("{rate}, {}", finished.verdict.verdict)
}
