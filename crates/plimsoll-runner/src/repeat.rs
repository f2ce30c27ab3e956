//! A plan's runs, as often as it says, one after the other; on models side by side.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};

use plimsoll_evidence::run::{EndKind, ExperimentKind, Membership, Phase, PhaseKind};
use plimsoll_judge::experiment;
use plimsoll_record::progress::{Progress, Watcher};

use crate::asked::{Asked, Request};
use crate::error::RunnerError;
use crate::exit::Exit;
use crate::experiment::Experiment;
use crate::finished::{Finished, worst};
use crate::kept_data::DataSlot;
use crate::listener::Listener;
use crate::modelled;
use crate::render;
use crate::session::run_once;

/// Runs of one plan that have ended.
pub struct Repeated {
    /// In their order.
    pub finished: Vec<Finished>,
    /// What they are of, where the plan asks for several.
    pub experiment: Option<Experiment>,
    /// Where data that runs hand on to each other was kept in the end.
    pub(crate) handed_on: Vec<String>,
}

impl Repeated {
    /// The runs taken together.
    pub fn together(&self) -> experiment::Experiment {
        together(&self.finished)
    }

    /// Where the data was kept.
    pub fn kept(&self) -> impl Iterator<Item = &String> {
        self.finished.last().into_iter().flat_map(|last| &last.kept).chain(&self.handed_on)
    }

    /// The exit code of all of them.
    pub fn exit(&self) -> Exit {
        worst(&self.finished)
    }
}

/// Carries a plan's runs out. What ends early ends them all.
///
/// # Errors
/// A target that cannot be used, a bundle that cannot be written.
pub fn carry_out(asked: &Asked<'_>, listener: &mut dyn Listener) -> Result<Repeated, RunnerError> {
    let (resolved, bundles) = (asked.resolved, asked.bundles);
    let runs = resolved.repeat.runs.max(1);
    let mut experiment = (runs > 1)
        .then(|| Experiment::begin(ExperimentKind::Repeat, &resolved.name, bundles, asked.places))
        .transpose()?;
    if let (Some(of), Some(_)) = (&mut experiment, modelled::named(resolved)) {
        let finished = on_model(asked, runs, of, listener)?;
        return Ok(Repeated { finished, experiment, handed_on: Vec::new() });
    }
    let hands_on = runs > 1 && !resolved.repeat.fresh;
    let data = if hands_on { DataSlot::handed_on() } else { DataSlot::fresh() };
    let mut finished: Vec<Finished> = Vec::new();
    for run in 1..=runs {
        if runs > 1 {
            listener.part(&format!("run {run} of {runs}"));
        }
        let place = experiment.as_ref().map(|experiment| experiment.next(""));
        let bundles = experiment.as_ref().map_or(bundles, Experiment::directory);
        let request = asked.request(bundles, place, &data);
        let one = match asked.driver.run_once(&request, listener) {
            Ok(one) => one,
            Err(error) => {
                data.finish(asked.keep)?;
                return Err(error);
            }
        };
        listener.finished(&one);
        let completed = one.evidence.run.end.kind == EndKind::Completed;
        finished.push(one);
        if let Some(experiment) = &mut experiment {
            note(experiment, &finished)?;
        }
        if asked.interrupt.load(Ordering::Relaxed) || !completed {
            break;
        }
    }
    let handed_on = data.finish(asked.keep)?;
    if runs > 1 {
        asked.driver.release(listener)?;
    }
    Ok(Repeated { finished, experiment, handed_on })
}

impl<'a> Asked<'a> {
    /// One run of it, whose bundle is made in a directory of its own.
    pub(crate) fn request(
        self,
        bundles: &'a Path,
        experiment: Option<Membership>,
        data: &'a DataSlot,
    ) -> Request<'a> {
        Request { asked: Self { bundles, ..self }, experiment, data }
    }
}

/// Runs with seeds of their own, as many at a time as there are cores. A model keeps no data.
fn on_model(
    asked: &Asked<'_>,
    runs: u32,
    experiment: &mut Experiment,
    listener: &mut dyn Listener,
) -> Result<Vec<Finished>, RunnerError> {
    let data = DataSlot::fresh();
    let places: Vec<Membership> =
        (1..=runs).map(|number| Membership { number, ..experiment.next("") }).collect();
    let directory = experiment.directory().to_path_buf();
    let request = asked.request(&directory, None, &data);
    let mut finished = Vec::new();
    for one in side_by_side(&request, places, listener) {
        let one = one?;
        listener.finished(&one);
        finished.push(one);
        note(experiment, &finished)?;
    }
    Ok(finished)
}

/// Hears warnings alone, which somebody else passes on.
struct Warnings(Sender<String>);

impl Watcher for Warnings {
    fn begin(&mut self, _kind: PhaseKind) {}
    fn progress(&mut self, _kind: PhaseKind, _progress: &Progress) {}
    fn end(&mut self, _phase: &Phase) {}
}

impl Listener for Warnings {
    fn say(&mut self, _text: &str) {}

    fn warn(&mut self, text: &str) {
        // Nobody is there to hear it any more.
        let _ = self.0.send(text.to_owned());
    }
}

/// Runs a plan once for each place in an experiment, as many at a time as there are cores. The order of
/// the results is that of the places.
fn side_by_side(
    request: &Request<'_>,
    places: Vec<Membership>,
    progress: &mut dyn Listener,
) -> Vec<Result<Finished, RunnerError>> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    progress.say(&format!("{} runs with seeds of their own, {cores} at a time", places.len()));
    let asked = Asked { keep: false, witness: None, destroy: &[], ..request.asked };
    let (warnings, told) = channel();
    let one = |place: Membership, warnings: Sender<String>| {
        let data = DataSlot::fresh();
        let request = Request { asked, experiment: Some(place), data: &data };
        run_once(&request, &mut Warnings(warnings))
    };
    let mut finished = Vec::new();
    for batch in places.chunks(cores) {
        let batch = batch.to_vec();
        finished.extend(std::thread::scope(|scope| {
            let started: Vec<_> = batch
                .into_iter()
                .map(|place| {
                    let warnings = warnings.clone();
                    scope.spawn(move || one(place, warnings))
                })
                .collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            started.into_iter().map(join).collect::<Vec<_>>()
        }));
        told.try_iter().for_each(|text| progress.warn(&text));
    }
    finished
}

fn together(finished: &[Finished]) -> experiment::Experiment {
    let runs: Vec<_> = finished.iter().map(|f| (&f.evidence, &f.verdict)).collect();
    experiment::summarise(&runs)
}

/// Enters the latest run in its experiment, and writes what the runs say so far.
fn note(experiment: &mut Experiment, finished: &[Finished]) -> Result<(), RunnerError> {
    let Some(latest) = finished.last() else { return Ok(()) };
    experiment.note(&latest.evidence);
    let together = together(finished);
    let document = plimsoll_report::experiment_document(&together);
    experiment.write(&together, &render::document_html(&document)?)
}
