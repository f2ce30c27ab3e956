//! Runs streams of reads, writes and metadata operations on a modelled system, in virtual time.
//!
//! Each file is a virtual disk. Clients are distributed over the nodes that run load. Files are
//! placed as the plan requires, but their creation is not simulated. Reads of a sparse file, or of
//! a file that is only allocated, return zeroes.

use plimsoll_evidence::observed::AccessProfile;
use plimsoll_evidence::run::{End, EndKind, Instance, PhaseKind};
use plimsoll_observe::LiveAccess;
use plimsoll_plan::{CacheState, Layout, Matrix};
use plimsoll_record::drain;
use plimsoll_record::recording::Recording;
use plimsoll_record::replay;
use plimsoll_record::scribe::clip;
use plimsoll_workload::matrix::StreamConfig;
use plimsoll_workload::planned::PlannedError;
use plimsoll_workload::planned::streams::streams;
use plimsoll_workload::planned::trace;
use plimsoll_workload::step::FileSpec;

use super::clients::Clients;
use super::error::RunError;
use super::events::{self, Events};
use super::phases::{ActiveRun, Load, ModelRun, Watch, histogram_interval_ns, on_nodes};
use super::virtual_time::{Place, VirtualTime};
use crate::blocks::{Action, Request};
use crate::system::{Event, System};

/// Size of the reads that fill the caches before a run.
const WARMING_BYTES: u64 = 1 << 20;
/// Number of reads in flight while the caches are filled.
const WARMING_DEPTH: u64 = 32;

/// Runs a matrix and returns its evidence.
///
/// # Errors
/// [`RunError`] if numbers of the plan or model are not valid. All later errors are stored in the
/// recording.
pub fn run_matrix(run: ModelRun<'_>, matrix: &Matrix) -> Result<Recording, RunError> {
    let mut run = run;
    let mut configs = streams(matrix, run.seed, None)?;
    let mut about = None;
    if let Some(to_replay) = run.trace.take() {
        trace::lay(&mut configs, matrix, to_replay.trace, run.plan.phases.measure_ns)?;
        about = Some(to_replay.about);
    }
    let mut system = run.model.build(run.seed)?;
    let gates = events::gates(run.plan);
    let events = Events::new(run.plan, &gates, &mut system)?;
    let nodes = u32::from(system.compute_nodes());
    let most = configs.iter().map(|config| config.clients).max().unwrap_or(1);
    let parts = nodes.clamp(1, most.max(1));
    let mut clients = Vec::new();
    for part in 0..parts {
        clients.push(Clients::new(matrix, &configs, &gates, part, parts)?);
    }
    let mut running = ActiveRun::new(run, &mut system, events);
    describe(&mut running, matrix, &configs);
    lay_out(&mut running, &mut system, matrix, &configs);
    if let Some(why) = system.overfull() {
        return Err(RunError::TooLarge(why));
    }
    caches(&mut running, &mut system, &configs);
    if running.recording.is_well() {
        let warm_up = running.begin(&system, PhaseKind::WarmUp);
        let histograms_ns = histogram_interval_ns(running.run.plan);
        let place = placer(&configs);
        let time = VirtualTime::new(&mut system, on_nodes(clients), place, warm_up, histograms_ns);
        let watch = Watch { begins: Clients::measure_begins, live, access_profile };
        let load = Load::new(&mut running, time, None).watched(watch);
        let parts = load.drained_within(drain::IN_FLIGHT_NS).carry_out(warm_up, Clients::is_idle);
        running.explain_standstill(&system);
        let laid = configs.iter().find_map(|config| config.trace.as_ref());
        if let (Some(about), Some(laid)) = (about, laid) {
            let lags = parts.into_iter().next().map(|mut part| part.lags(system.now_ns()));
            replay::note(&mut running.recording, about, laid, lags);
        }
    }
    clip(&mut running.recording);
    Ok(running.recording)
}

/// Reads the request counts of a node's clients.
fn live(part: &Clients) -> LiveAccess {
    part.profiler().live()
}

/// Returns the combined access profile of the clients of all nodes.
fn access_profile(parts: &mut dyn Iterator<Item = &Clients>) -> AccessProfile {
    let Some(mut all) = parts.next().map(|part| part.profiler().clone()) else {
        return AccessProfile::default();
    };
    parts.for_each(|part| all.merge(part.profiler()));
    all.totals()
}

impl ActiveRun<'_> {
    /// If virtual time did not advance, this is why the run ended.
    pub(super) fn explain_standstill(&mut self, system: &System) {
        if let Some(says) = system.standstill() {
            self.recording.end = End { kind: EndKind::Environment, says: says.to_owned() };
        }
    }
}

/// Checks the streams of a plan.
pub(super) fn check(matrix: &Matrix, seed: u64) -> Result<(), PlannedError> {
    Clients::new(matrix, &streams(matrix, seed, None)?, &[], 0, 1).map(|_| ())
}

fn describe(running: &mut ActiveRun<'_>, matrix: &Matrix, configs: &[StreamConfig]) {
    let engine = &mut running.recording.engine;
    engine.sessions = matrix.outstanding().try_into().unwrap_or(u32::MAX);
    engine.closed_loop = !matrix.streams.iter().all(|stream| stream.arrival.is_open());
    let path = format!("model {}", running.run.model.spec().name);
    let instance = |config: &StreamConfig| {
        let size_bytes = config.files.file_size_bytes * config.files.files();
        Instance {
            name: config.name.clone(),
            path: path.clone(),
            log_path: None,
            size_bytes_initial: size_bytes,
            size_bytes_final: size_bytes,
            allocated_bytes: size_bytes,
        }
    };
    running.recording.instances = configs.iter().map(instance).collect();
}

fn lay_out(
    running: &mut ActiveRun<'_>,
    system: &mut System,
    matrix: &Matrix,
    configs: &[StreamConfig],
) {
    let phase = running.begin(system, PhaseKind::Create);
    let nodes = system.compute_nodes();
    let mut written = 0;
    for (stream, config) in matrix.streams.iter().zip(configs) {
        for number in 0..config.files.files() {
            let disk = config.files.first_file + number as u32;
            if stream.layout != Layout::Written {
                system.leave_empty(disk);
                continue;
            }
            system.lay_file(disk, config.files.file_size_bytes, disk as u16 % nodes);
            written += config.files.file_size_bytes;
        }
    }
    running.recording.phases[phase as usize].written_bytes = written;
    let note = match matrix.streams.first().map_or(Layout::Written, |stream| stream.layout) {
        Layout::Written => "data placed directly, without simulated I/O".to_owned(),
        other => format!("files are {}: reads return zeros", other.word()),
    };
    running.finish(system, phase, true, &note);
}

/// Prepares the caches. A system starts with cold caches. If the plan requires warm caches, every
/// byte is read once.
fn caches(running: &mut ActiveRun<'_>, system: &mut System, configs: &[StreamConfig]) {
    let phase = running.begin(system, PhaseKind::Caches);
    if running.run.plan.phases.cache != CacheState::Warm {
        return running.finish(system, phase, true, "the model starts with empty caches");
    }
    let nodes = system.compute_nodes();
    let (mut in_flight, mut read) = (0, 0);
    let await_one = |system: &mut System, in_flight: &mut u64| {
        while let Some(event) = system.next() {
            if let Event::Done { .. } = event {
                *in_flight -= 1;
                return;
            }
        }
    };
    for config in configs {
        for number in 0..config.files.files() {
            let disk = config.files.first_file + number as u32;
            let mut at = 0;
            while at < config.files.file_size_bytes {
                let size = WARMING_BYTES.min(config.files.file_size_bytes - at);
                let mut request = Request::new(Action::Read, disk, at, size);
                (request.node, request.sequential) = (disk as u16 % nodes, true);
                system.submit(0, 6, &request);
                in_flight += 1;
                if in_flight >= WARMING_DEPTH {
                    await_one(system, &mut in_flight);
                }
                (at, read) = (at + size, read + size);
            }
        }
    }
    while in_flight > 0 {
        await_one(system, &mut in_flight);
    }
    running.recording.phases[phase as usize].read_bytes = read;
    running.finish(system, phase, true, "all data was read once");
}

/// File `n` is virtual disk `n`.
fn placer(configs: &[StreamConfig]) -> impl Fn(&FileSpec) -> Place + use<> {
    let names: Vec<(String, u32)> = configs
        .iter()
        .flat_map(|config| {
            (0..config.files.files()).map(|number| {
                (format!("{}-{number}", config.name), config.files.first_file + number as u32)
            })
        })
        .collect();
    let disks: std::collections::BTreeMap<String, u32> = names.into_iter().collect();
    move |file| Place { disk: disks.get(&file.name).copied().unwrap_or(0), base_bytes: 0 }
}
