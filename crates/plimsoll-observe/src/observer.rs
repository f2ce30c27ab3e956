//! Samples the system beneath while a run goes on, and totals it for one phase.

use std::path::PathBuf;

use plimsoll_evidence::environment::Unknown;
use plimsoll_evidence::observed::{Cpu, DeviceTotals, Observed};
use plimsoll_evidence::series::{Data, Row};

use crate::cpu::CpuReading;
use crate::device::{self, DeviceNumber};
use crate::mount;
use crate::process::ProcessReading;

/// Watches the devices beneath some paths, the host's CPU and this process.
pub struct Observer {
    paths: Vec<PathBuf>,
    /// Each device once; true where a named path lies on it directly.
    devices: Vec<(DeviceNumber, bool)>,
    last: Reading,
    /// The reading at [`Observer::begin`], while a phase is totalled.
    begun: Option<Reading>,
    cpu: CpuSamples,
}

#[derive(Clone)]
struct Reading {
    at_ns: u64,
    devices: Vec<Option<DeviceTotals>>,
    cpu: Option<CpuReading>,
    process: Option<ProcessReading>,
}

/// Running mean and extremes of the CPU shares.
#[derive(Clone, Copy, Debug, Default)]
struct CpuSamples {
    weight_ns: f64,
    busy: f64,
    steal: f64,
    busiest: f64,
    busy_min: Option<f64>,
    busy_max: Option<f64>,
    steal_max: Option<f64>,
}

impl Observer {
    /// Starts to watch what lies beneath `paths`. `now_ns` is the time since the run's start.
    pub fn new(paths: Vec<PathBuf>, now_ns: u64) -> Self {
        let mut devices: Vec<(DeviceNumber, bool)> = Vec::new();
        for path in &paths {
            for (depth, number) in mount::device_numbers(path).into_iter().enumerate() {
                match devices.iter_mut().find(|(known, _)| *known == number) {
                    Some((_, top)) => *top |= depth == 0,
                    None => devices.push((number, depth == 0)),
                }
            }
        }
        let last = Reading::now(&devices, now_ns);
        Self { paths, devices, last, begun: None, cpu: CpuSamples::default() }
    }

    /// Begins to total: the measured phase starts.
    pub fn begin(&mut self, now_ns: u64) {
        self.last = Reading::now(&self.devices, now_ns);
        self.begun = Some(self.last.clone());
        self.cpu = CpuSamples::default();
    }

    /// Reads all counters and appends one row for each that moved on from the last reading.
    pub fn sample(&mut self, now_ns: u64, phase: u32, rows: &mut Vec<Row>) {
        let now = Reading::now(&self.devices, now_ns);
        let (start_ns, duration_ns) = (self.last.at_ns, now_ns.saturating_sub(self.last.at_ns));
        if duration_ns == 0 {
            return;
        }
        let mut gauge = |name: String, value: f64| {
            rows.push(Row { phase, start_ns, duration_ns, name, data: Data::Gauge(value) });
        };
        if let (Some(cpu), Some(before)) = (&now.cpu, &self.last.cpu)
            && let Some(share) = cpu.since(before)
        {
            gauge("cpu.busy_share".into(), share.busy);
            gauge("cpu.steal_share".into(), share.steal);
            gauge("cpu.busiest_share".into(), share.busiest);
            self.cpu.add(share, duration_ns as f64);
        }
        for (after, before) in now.devices.iter().zip(&self.last.devices) {
            let (Some(after), Some(before)) = (after, before) else { continue };
            let moved = device::difference(before, after);
            let name = &moved.name;
            gauge(format!("device.{name}.reads"), moved.reads as f64);
            gauge(format!("device.{name}.read_bytes"), moved.read_bytes as f64);
            gauge(format!("device.{name}.writes"), moved.writes as f64);
            gauge(format!("device.{name}.written_bytes"), moved.written_bytes as f64);
            gauge(format!("device.{name}.busy_share"), moved.busy_ns as f64 / duration_ns as f64);
        }
        self.last = now;
    }

    /// Totals since [`Observer::begin`]. Without one, nothing is known.
    pub fn end(&mut self, now_ns: u64) -> Observed {
        let mut observed = Observed::default();
        let Some(begun) = self.begun.take() else { return observed };
        let now = Reading::now(&self.devices, now_ns);
        for (index, (number, top)) in self.devices.iter().enumerate() {
            match (&begun.devices[index], &now.devices[index]) {
                (Some(before), Some(after)) => {
                    let mut totals = device::difference(before, after);
                    totals.top = *top;
                    observed.devices.push(totals);
                }
                _ => observed.unknown.push(Unknown {
                    what: format!("counters of block device {}:{}", number.major, number.minor),
                    why: "its stat file in /sys cannot be read".into(),
                    would_show: "a mounted /sys".into(),
                }),
            }
        }
        for path in &self.paths {
            if mount::device_numbers(path).is_empty() {
                observed.unknown.push(Unknown {
                    what: format!("what the storage beneath {} did", path.display()),
                    why: "it lies on no local block device".into(),
                    would_show: "the storage system's own counters".into(),
                });
            }
        }
        observed.cpu = self.cpu.totals();
        if let (Some(after), Some(before)) = (&now.process, &begun.process) {
            observed.generator = after.since(before);
        }
        observed
    }
}

impl Reading {
    fn now(devices: &[(DeviceNumber, bool)], at_ns: u64) -> Self {
        Self {
            at_ns,
            devices: devices.iter().map(|(number, _)| number.counters()).collect(),
            cpu: CpuReading::now(),
            process: ProcessReading::now(),
        }
    }
}

impl CpuSamples {
    fn add(&mut self, share: crate::cpu::CpuShare, weight_ns: f64) {
        self.weight_ns += weight_ns;
        self.busy += share.busy * weight_ns;
        self.steal += share.steal * weight_ns;
        self.busiest += share.busiest * weight_ns;
        let least = |a: Option<f64>, b: f64| Some(a.map_or(b, |a| a.min(b)));
        let most = |a: Option<f64>, b: f64| Some(a.map_or(b, |a| a.max(b)));
        self.busy_min = least(self.busy_min, share.busy);
        self.busy_max = most(self.busy_max, share.busy);
        self.steal_max = most(self.steal_max, share.steal);
    }

    fn totals(self) -> Cpu {
        let mean = |sum: f64| (self.weight_ns > 0.0).then(|| sum / self.weight_ns);
        Cpu {
            busy_avg: mean(self.busy),
            busy_min: self.busy_min,
            busy_max: self.busy_max,
            steal_avg: mean(self.steal),
            steal_max: self.steal_max,
            busiest_cpu_avg: mean(self.busiest),
            ..Cpu::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn writes_to_a_file_show_at_its_device_and_at_the_process() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut observer = Observer::new(vec![directory.path().to_path_buf()], 0);
        observer.begin(0);
        let mut file = std::fs::File::create(directory.path().join("data")).unwrap();
        file.write_all(&vec![7u8; 4 << 20]).unwrap();
        file.sync_all().unwrap();
        let mut rows = Vec::new();
        observer.sample(1_000_000_000, 0, &mut rows);
        let observed = observer.end(1_000_000_000);
        assert!(observed.generator.storage_written_bytes.is_none_or(|b| b >= 4 << 20));
        if let Some(device) = observed.devices.iter().find(|d| d.top) {
            assert!(device.written_bytes >= 4 << 20, "{device:?}");
            assert!(rows.iter().any(|row| row.name.ends_with(".written_bytes")));
        } else {
            assert!(!observed.unknown.is_empty());
        }
    }

    #[test]
    fn without_a_beginning_nothing_is_known() {
        let mut observer = Observer::new(Vec::new(), 0);
        assert_eq!(observer.end(5), Observed::default());
    }
}
