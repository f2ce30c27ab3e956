//! The load of a matrix run. This module distributes clients over threads and records the results.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plimsoll_evidence::observed::AccessProfile;
use plimsoll_evidence::run::PhaseKind;
use plimsoll_observe::AccessProfiler;
use plimsoll_record::{drain, scribe};
use plimsoll_workload::matrix::{StreamConfig, stream_classes};
use plimsoll_workload::planned::StreamPace;
use plimsoll_workload::planned::pace::Pace;

use super::coordinator::LoadCoordinator;
use super::replay;
use super::run_state::MatrixRunState;
use crate::EngineError;
use crate::backend::BackendConfig;
use crate::issue;
use crate::stream::matrix::{MatrixSource, WriteContent};
use crate::stream::run::{Group, RunConfig, Target, run_with_events};

/// How long before a scheduled start a thread stops sleeping and polls the clock.
const SPIN_NS: u64 = 50_000;
/// If a load has more clients than this number, the clients have no histograms of their own.
const CLIENTS_APART_MAX: u32 = 64;

impl MatrixRunState<'_> {
    /// Distributes the clients of all streams over threads.
    pub(super) fn groups(
        &self,
        configs: &[StreamConfig],
    ) -> Result<Vec<Group<MatrixSource>>, EngineError> {
        let threads = self.threads();
        let mut parts: Vec<(usize, Box<[u32]>)> = Vec::new();
        for (number, config) in configs.iter().enumerate() {
            if let Some(remote) = &self.matrix.data_set.remote {
                // All clients of a share are driven by one thread.
                let shares = remote.shares(number);
                let of = threads.min(shares).min(config.clients).max(1);
                let mine =
                    |part: u32| (0..config.clients).filter(|c| c % shares % of == part).collect();
                parts.extend((0..of).map(|part| (number, mine(part))));
                continue;
            }
            let of = threads.min(config.clients).max(1);
            let bound =
                |part: u32| (u64::from(config.clients) * u64::from(part) / u64::from(of)) as u32;
            parts.extend((0..of).map(|part| (number, (bound(part)..bound(part + 1)).collect())));
        }
        let writes = self.matrix.matrix.writes();
        let sizes = file_sizes(configs);
        let places = self.placements(parts.len());
        let mut groups = Vec::new();
        for ((at, (number, clients)), place) in parts.into_iter().enumerate().zip(places) {
            let (stream, config) = (&self.matrix.matrix.streams[number], &configs[number]);
            let size_bytes_max = config.size_bytes_max();
            let read = |path: &Path| fs::read_to_string(path);
            let pace = StreamPace::new(stream, size_bytes_max, config.seed, read)?
                .replaying(config.trace.as_ref());
            let spin_ns = if pace.is_open() { SPIN_NS } else { 0 };
            let (pace, cap) = pace.group(&clients);
            let places = match &pace {
                Pace::Open { places, .. } => *places,
                _ => stream.queue_depth.max(1).saturating_mul(clients.len() as u32),
            };
            let pace = match self.matrix.gates.get(number).cloned().flatten() {
                Some(gate) => Pace::Gated { gate, pace: Box::new(pace) },
                None => pace,
            };
            let count = clients.len() as u32;
            let before = configs[..number].iter();
            let first_class: usize = before.map(|config| config.classes().len()).sum();
            let content = self.write_content(stream, config)?;
            let target = match &self.matrix.data_set.remote {
                Some(remote) => {
                    let shares = remote.shares(number);
                    remote.target(number, |share| clients.iter().any(|c| c % shares == share))
                }
                None => self.local_target(stream, configs, number, writes),
            };
            let source = MatrixSource::new(config.clone(), clients, content, places)
                .map_err(|error| EngineError::Config(error.to_string()))?;
            groups.push(Group {
                name: format!("{}-{at}", stream.name),
                place,
                target,
                source: source.with_first_class(first_class as u16).with_profiler(
                    AccessProfiler::new(&sizes, count as usize, config.seed ^ at as u64),
                ),
                clients: count,
                pace,
                cap,
                size_bytes_max,
                operations_max: u64::MAX,
                spin_ns,
            });
        }
        Ok(groups)
    }

    /// Returns the files on this host that a stream uses. If the stream has metadata operations,
    /// also returns the directories and files for these operations.
    fn local_target(
        &self,
        stream: &plimsoll_plan::Stream,
        configs: &[StreamConfig],
        number: usize,
        writes: bool,
    ) -> Target {
        match self.target(issue::direct(stream.direct), writes) {
            Target::Files(files) => {
                let has_names = stream.metadata_percent > 0.0;
                let names = || self.matrix.data_set.names(self.matrix.matrix, configs, number);
                let names = has_names.then(names).flatten();
                let flushes = configs[number].sync.kind.flushes();
                Target::Files(BackendConfig { names, flushes, ..files })
            }
            other => other,
        }
    }

    fn write_content(
        &self,
        stream: &plimsoll_plan::Stream,
        config: &StreamConfig,
    ) -> Result<WriteContent, EngineError> {
        let data_set = &self.matrix.data_set;
        if data_set.is_null {
            return Ok(WriteContent::Buffers);
        }
        let Some(file) = data_set.files().get(config.files.first_file as usize) else {
            return Ok(WriteContent::Buffers);
        };
        let content = data_set.content(file)?;
        Ok(match &data_set.generations {
            Some(generations) => WriteContent::Tracked {
                content,
                generations: Arc::clone(generations),
                verify_reads: stream.verify_reads,
                sample: data_set.sample.clone(),
            },
            None => match &data_set.sample {
                Some(sample) if content.has_stamps() => {
                    WriteContent::Sampled { content, sample: Arc::clone(sample) }
                }
                _ => WriteContent::Made(content),
            },
        })
    }

    pub(super) fn load(
        &mut self,
        configs: &[StreamConfig],
        groups: Vec<Group<MatrixSource>>,
    ) -> Result<(), EngineError> {
        let plan = self.matrix.plan;
        let engine = &mut self.recording.engine;
        engine.threads = groups.len() as u32;
        let data_set = &self.matrix.data_set;
        let is_local = !data_set.is_null && data_set.remote.is_none();
        engine.polling = is_local.then(|| issue::polling(&plan.engine, groups.len()));
        let spin_ns = engine.polling.as_ref().map_or(0, |polling| polling.longest_ns);
        engine.sessions = self.matrix.matrix.outstanding().try_into().unwrap_or(u32::MAX);
        let open = |stream: &plimsoll_plan::Stream| stream.arrival.is_open();
        engine.closed_loop = !self.matrix.matrix.streams.iter().all(open);
        let classes = stream_classes(configs);
        let names = classes.iter().map(|class| class.name.clone()).collect();
        let (warm_up_ns, measure_ns) = (plan.phases.warm_up_ns, plan.phases.measure_ns);
        let clients: u32 = configs.iter().map(|config| config.clients).sum();
        let config = RunConfig {
            per_client: clients <= CLIENTS_APART_MAX,
            backlog_ns: match configs.iter().any(|config| config.trace.is_some()) {
                true => plimsoll_record::replay::BACKLOG_NS,
                false => drain::BACKLOG_NS,
            },
            spin_ns,
            carry_on: plan.allows_errors(),
            ..self.run_config(names, warm_up_ns, measure_ns)
        };
        let stop = AtomicBool::new(false);
        let (sizes_bytes, conditioned_bytes) = (self.sizes_bytes(), self.conditioned_bytes());
        self.matrix.end_condition.begin(PhaseKind::Measure, &sizes_bytes, conditioned_bytes);
        let mut coordinator = LoadCoordinator::new(self, classes, &config, &stop);
        let profilers = groups.iter().filter_map(|group| group.source.profiler());
        coordinator.watch_workload(profilers.map(AccessProfiler::live).collect());
        let outcome =
            run_with_events(&config, groups, &stop, &mut |event| coordinator.handle_event(event));
        let (report, sources) = match outcome {
            Ok(ended) => ended,
            Err(error) => {
                coordinator.abort();
                return Err(error);
            }
        };
        let access_profile = access_profile_of(&sources);
        coordinator.may_end |= replay::is_complete(&sources, &report);
        coordinator.end(&report);
        self.note_replay(configs, &report);
        let classes = stream_classes(configs);
        for (source, group) in sources.iter().zip(&report.collected.groups) {
            let Some(source) = source else { continue };
            let first_class = source.first_class();
            scribe::clients(&mut self.recording, &classes, source.clients(), first_class, group);
            let checks = source.checks();
            self.note_checked(&checks);
            self.note_damage(checks.counts.damaged(), checks.first_finding);
        }
        self.note_report(&report, config.carry_on);
        self.recording.observed.workload = access_profile;
        self.note_generator(&report);
        if report.measured_ns() < measure_ns {
            self.note_interrupt();
        }
        Ok(())
    }
}

/// Merges the access profiles that the threads recorded.
fn access_profile_of(sources: &[Option<MatrixSource>]) -> AccessProfile {
    let mut profilers = sources.iter().flatten().filter_map(MatrixSource::profiler);
    let Some(mut all) = profilers.next().cloned() else { return AccessProfile::default() };
    profilers.for_each(|profiler| all.merge(profiler));
    all.totals()
}

/// Returns the sizes of all files, in the order of the file table.
fn file_sizes(configs: &[StreamConfig]) -> Vec<u64> {
    let mut sizes = Vec::new();
    for config in configs {
        let files = &config.files;
        let end = files.first_file as usize + files.files() as usize;
        sizes.resize(sizes.len().max(end), 0);
        sizes[files.first_file as usize..end].fill(files.file_size_bytes);
    }
    sizes
}
