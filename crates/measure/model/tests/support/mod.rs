//! Small versions of the shipped models, and a load to run on them.
// Each test file uses only a part of this module. An invalid model makes the test fail.
#![allow(dead_code, clippy::unwrap_used)]

use plimsoll_model::blocks::{Source, Tally};
use plimsoll_model::run::{Limits, MatrixLoad, Pattern, RunResult, simulate};
use plimsoll_model::spec::Spec;
use plimsoll_model::system::System;

/// Results of a run, and the state of the system after the run.
pub struct Run {
    pub measured: RunResult,
    pub system: System,
}

/// Returns a shipped model with changed fields.
pub fn model(name: &str, changes: &[(&str, &str)]) -> Spec {
    let mut spec = Spec::load(name).unwrap();
    for (path, value) in changes {
        spec.assign(path, value).unwrap();
    }
    spec
}

/// Returns a load of 32 KiB I/Os at random addresses, in a closed loop.
pub fn load(clients: u32, read_share: f64, file_bytes: u64) -> MatrixLoad {
    MatrixLoad {
        clients,
        depth: 1,
        barrier: false,
        think_ns: 0,
        arrivals_per_s: None,
        io_bytes: 32_768,
        read_share,
        metadata_share: 0.0,
        durable: false,
        pattern: Pattern::Uniform,
        density: 0.05,
        files: 4,
        file_bytes,
    }
}

/// Runs a load and asserts Little's law at every station.
pub fn run(spec: Spec, load: &MatrixLoad, warm_up_ops: u64, measure_ops: u64) -> Run {
    run_on(System::build(spec, 1).unwrap(), load, warm_up_ops, measure_ops)
}

/// Runs a load on a system that may already contain data.
pub fn run_on(mut system: System, load: &MatrixLoad, warm_up_ops: u64, measure_ops: u64) -> Run {
    let measured = simulate(&mut system, load, Limits { warm_up_ops, measure_ops }, 1);
    let worst = measured.little_error_max;
    assert!(worst < 1e-3, "Little's law is off by {worst}");
    Run { measured, system }
}

impl Run {
    pub fn rate(&self) -> f64 {
        self.measured.ops_per_s
    }

    /// Returns the mean latency of a class in milliseconds.
    pub fn ms(&self, class: &str) -> f64 {
        self.measured.latency_ns_mean(|c| c.name == class) * 1e-6
    }

    fn share(
        &self,
        of: impl Fn(&plimsoll_model::blocks::NodeCounters) -> [Tally; 5],
        at: Source,
    ) -> f64 {
        let sums = self.measured.inside.iter().fold((0, 0), |(part, all), inside| {
            let tallies = of(inside);
            let sum: u64 = tallies.iter().map(|t| t.ios).sum();
            (part + tallies[at as usize].ios, all + sum)
        });
        sums.0 as f64 / sums.1.max(1) as f64
    }

    /// Returns the share of the reads that `source` served.
    pub fn reads_from(&self, source: Source) -> f64 {
        self.share(|inside| inside.reads, source)
    }

    /// Returns the share of the writes that went to `place`.
    pub fn writes_to(&self, place: Source) -> f64 {
        self.share(|inside| inside.writes, place)
    }

    /// Returns the share of the reads whose data came from another node.
    pub fn remote(&self) -> f64 {
        let sums = self.measured.inside.iter().fold((0, 0), |(part, all), inside| {
            (part + inside.remote_reads.ios, all + inside.reads_all().ios)
        });
        sums.0 as f64 / sums.1.max(1) as f64
    }

    /// Returns the sum of a block's reading over all nodes.
    pub fn reading(&self, block: &str, reading: &str) -> f64 {
        let mut sum = 0.0;
        self.system.readings(&mut |b, _, r, value| {
            if b == block && r == reading {
                sum += value;
            }
        });
        sum
    }

    /// Returns the mean utilisation of the stations whose names contain a word.
    pub fn busy(&self, word: &str) -> f64 {
        let stations: Vec<f64> = self
            .measured
            .stations
            .iter()
            .filter(|s| s.queues && s.name.contains(word))
            .map(|s| s.utilisation)
            .collect();
        stations.iter().sum::<f64>() / stations.len().max(1) as f64
    }

    /// Returns the visits to the stations whose names contain a word.
    pub fn visits(&self, word: &str) -> u64 {
        let all = self.measured.stations.iter().filter(|s| s.name.contains(word));
        all.map(|s| s.stats.departures).sum()
    }
}
