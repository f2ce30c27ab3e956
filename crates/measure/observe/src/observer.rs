//! Samples the underlying system during a run, and computes the totals of one phase.

use std::net::SocketAddr;
use std::path::PathBuf;

use plimsoll_evidence::environment::ObservationGap;
use plimsoll_evidence::observed::{
    ClockWatch, Cpu, DeviceTotals, Extents, FileSystem, NetworkMount, Observed, Raid,
};
use plimsoll_evidence::series::{Data, Row};
use plimsoll_sys::{clock, inject};

use crate::cpu::CpuReading;
use crate::device::{self, DeviceNumber};
use crate::files::BackingWatch;
use crate::host::HostReading;
use crate::kernel::KernelWatch;
use crate::kernel_log::KernelLog;
use crate::links::LinkWatch;
use crate::metrics::{Endpoint, Watch};
use crate::neighbours::NeighbourReading;
use crate::outside_devices::OutsideDevices;
use crate::pause_detector::PauseDetector;
use crate::process::ProcessReading;
use crate::servers::{ServerWatch, TargetAddresses};
use crate::sysfs::Sysfs;
use crate::workload::WorkloadWatch;
use crate::{LiveAccess, files, interposition, limits, mapped_files, mount, network, raid, stack};

/// Observer of the host, of this process and of the devices that store some paths.
pub struct Observer {
    paths: Vec<PathBuf>,
    /// All devices on which the paths are stored. The flag of a device is true if one of the paths
    /// is stored directly on it, without another device in between.
    devices: Vec<(DeviceNumber, bool)>,
    outside_devices: OutsideDevices,
    backing: Vec<stack::BackingFile>,
    sought: TargetAddresses,
    mount_points: Vec<String>,
    data: TargetFacts,
    metrics: Vec<Watch>,
    links: LinkWatch,
    workload: WorkloadWatch,
    /// Processes that do not count as neighbours, such as the processes of an observed command.
    mine: Vec<i32>,
    last: Reading,
    /// Values that were read by [`Observer::begin`]; `None` before this call.
    phase_start: Option<PhaseStart>,
    samples: Samples,
    /// Pause detector. It starts together with the observer, so that it also detects a pause at the
    /// start of the phase.
    pause_detector: Option<PauseDetector>,
}

/// Facts about the target's files at one time.
#[derive(Clone, Debug, Default)]
pub struct TargetFacts {
    extents: Option<Extents>,
    backing: Option<Extents>,
    file_systems: Vec<FileSystem>,
    unknown: Vec<ObservationGap>,
}

#[derive(Clone)]
struct Reading {
    at_ns: u64,
    devices: Vec<Option<DeviceTotals>>,
    cpu: Option<CpuReading>,
    host: HostReading,
}

/// Values that are read only at the start and at the end of a phase.
struct PhaseStart {
    reading: Reading,
    process: Option<ProcessReading>,
    /// Time at which the counters of this process, of the network mounts and of the kernel threads
    /// had been read.
    counted_from_ns: u64,
    neighbours: NeighbourReading,
    raids: Vec<Raid>,
    network: Vec<NetworkMount>,
    backing: BackingWatch,
    servers: ServerWatch,
    kernel: KernelWatch,
    log: KernelLog,
    from_ns: u64,
}

/// Mean, minimum and maximum of the samples so far.
#[derive(Clone, Debug, Default)]
struct Samples {
    weight_ns: f64,
    busy: f64,
    steal: f64,
    busiest: f64,
    busy_min: Option<f64>,
    busy_max: Option<f64>,
    steal_max: Option<f64>,
    frequency_hz: Option<(u64, u64)>,
    dirty_bytes_max: Option<u64>,
    clock: ClockWatch,
}

impl TargetFacts {
    /// Examines the files `target`, which are in the directories `paths`, and the file systems that
    /// contain them.
    pub fn examine(paths: &[PathBuf], target: &[PathBuf]) -> Self {
        let mut found = Self::default();
        found.extents = files::extents_of(target, &mut found.unknown);
        found.backing = files::extents_of(&files::backing_files(paths), &mut found.unknown);
        for path in paths {
            let on_it = target.iter().find(|file| file.starts_with(path) && *file != path);
            found.file_systems.push(files::file_system(path, on_it.map(PathBuf::as_path)));
        }
        found
    }

    /// Returns facts that state that the files could not be examined. `why` is the reason.
    pub fn unknown(why: String) -> Self {
        let gap = ObservationGap {
            what: "holes, extents and file systems of the target's files".to_owned(),
            why,
            remedy: "a file system that responds".to_owned(),
        };
        Self { unknown: vec![gap], ..Self::default() }
    }
}

impl Observer {
    /// Starts observing the storage that contains `paths`. `now_ns` is the time since the start of
    /// the run.
    pub fn new(paths: Vec<PathBuf>, now_ns: u64) -> Self {
        let mut devices: Vec<(DeviceNumber, bool)> = Vec::new();
        let (mut backing, mut sought) = (Vec::new(), TargetAddresses::default());
        for path in &paths {
            let stack = stack::read(path);
            sought.kernel_addresses.extend(stack.kernel_addresses());
            sought.nbd |= stack.has_nbd();
            for layer in stack.layers {
                match devices.iter_mut().find(|(known, _)| *known == layer.number) {
                    Some((_, top)) => *top |= layer.top,
                    None => devices.push((layer.number, layer.top)),
                }
            }
            let fresh = |file: &stack::BackingFile| {
                !backing.iter().any(|known: &stack::BackingFile| known.device == file.device)
            };
            let fresh: Vec<_> = stack.backing.into_iter().filter(fresh).collect();
            backing.extend(fresh);
            sought.fuse_connections.extend(stack.fuse_connections);
        }
        sought.fuse_connections.sort_unstable();
        sought.fuse_connections.dedup();
        let numbers: Vec<DeviceNumber> = devices.iter().map(|(number, _)| *number).collect();
        let outside_devices = OutsideDevices::of(&Sysfs::host(), &numbers);
        let mount_points = paths.iter().filter_map(|path| mount::describe(path).mount_point);
        let mount_points = mount_points.collect();
        let last = Reading::now(&devices, now_ns);
        Self {
            paths,
            devices,
            outside_devices,
            backing,
            sought,
            mount_points,
            data: TargetFacts::default(),
            metrics: Vec::new(),
            links: LinkWatch::default(),
            workload: WorkloadWatch::default(),
            mine: Vec::new(),
            last,
            phase_start: None,
            samples: Samples::default(),
            pause_detector: PauseDetector::begin(now_ns),
        }
    }

    /// Returns the observed directories and devices.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Sets the facts about the target's files.
    pub fn use_target_facts(&mut self, facts: TargetFacts) {
        self.data = facts;
    }

    /// From now on, also polls the statistics of a storage system.
    pub fn watch_metrics(&mut self, endpoints: Vec<Endpoint>) {
        self.metrics = endpoints.into_iter().map(Watch::new).collect();
    }

    /// From now on, also samples the access profilers of the load's threads.
    pub fn watch_workload(&mut self, threads: Vec<LiveAccess>) {
        self.workload = WorkloadWatch::of(threads, self.last.at_ns);
    }

    /// Sets the addresses of those servers of the target to which this process itself connects.
    pub fn watch_servers(&mut self, addresses: Vec<SocketAddr>) {
        self.sought.addresses = addresses;
    }

    /// Sets the processes that do not count as neighbours.
    pub fn exclude_neighbours(&mut self, processes: Vec<i32>) {
        self.mine = processes;
    }

    /// Starts to count the totals of the measured phase. All I/O since the last sample, including
    /// the I/O of the load, still belongs to the previous phase. `before` contains the number and
    /// the rows of that phase. `clock` returns the time since the start of the run. `from_ns` is
    /// the start of the phase on the same clock. The counters may be read somewhat later than
    /// `from_ns`.
    pub fn begin(
        &mut self,
        from_ns: u64,
        clock: impl Fn() -> u64,
        before: Option<(u32, &mut Vec<Row>)>,
    ) {
        // Slow sources are read first, so that the device counters are read as close as possible to
        // the start of the phase.
        let (backing, servers) =
            (BackingWatch::begin(&self.backing), ServerWatch::begin(&self.sought));
        self.links.look();
        if let Some((phase, rows)) = before {
            // The workload is not sampled here, because its threads may already count operations of
            // the new phase.
            self.counters(clock(), phase, rows);
        }
        let now_ns = clock();
        self.last = Reading::now(&self.devices, now_ns);
        let process = ProcessReading::now();
        let network = network::read(&self.mount_points);
        let kernel = KernelWatch::begin(now_ns);
        // On a busy host, each reading may take milliseconds. During this time, the load is already
        // running.
        let counted_from_ns = clock();
        self.outside_devices.begin();
        self.links.begin(&clock);
        self.metrics.iter_mut().for_each(Watch::begin);
        self.workload.begin(now_ns);
        self.phase_start = Some(PhaseStart {
            reading: self.last.clone(),
            process,
            counted_from_ns,
            neighbours: NeighbourReading::now(&self.mine),
            raids: raid::find(self.devices.iter().map(|(number, _)| *number)),
            network,
            backing,
            servers,
            kernel,
            log: KernelLog::begin(),
            from_ns,
        });
        self.samples = Samples::default();
    }

    /// Reads all counters. For each counter that has increased, appends a row.
    pub fn sample(&mut self, now_ns: u64, phase: u32, rows: &mut Vec<Row>) {
        inject::point("observer");
        self.counters(now_ns, phase, rows);
        self.workload.sample(now_ns, phase, rows);
        if let Some(phase_start) = &mut self.phase_start {
            phase_start.kernel.sample(now_ns);
        }
    }

    /// Appends rows for the counters of the devices, the host and the metrics. A row contains the
    /// increase since the last reading.
    fn counters(&mut self, now_ns: u64, phase: u32, rows: &mut Vec<Row>) {
        self.outside_devices.sample();
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
            self.samples.add(share, duration_ns as f64);
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
        let pressure = now.host.pressure_since(&self.last.host);
        if let Some(share) = pressure.io_some_share {
            gauge("pressure.io_some_share".into(), share);
        }
        if let Some(bytes) = now.host.dirty_bytes {
            gauge("memory.dirty_bytes".into(), bytes as f64);
        }
        for (name, value) in self.metrics.iter().flat_map(Watch::values) {
            gauge(format!("metrics.{name}"), value);
        }
        self.links.sample(gauge);
        self.samples.host(&now.host, &self.last.host);
        self.last = now;
    }

    /// Returns the totals since [`Observer::begin`]. The totals are empty if `begin` was not
    /// called.
    pub fn end(&mut self, now_ns: u64) -> Observed {
        let called_ns = clock::monotonic_ns();
        let mut observed = Observed::default();
        let Some(mut phase_start) = self.phase_start.take() else { return observed };
        // The totals use the reading of the last row, which the caller has just requested. On a
        // busy host, a new reading could contain megabytes of later I/O, so the totals would exceed
        // the sum of the rows.
        let now = match self.last.at_ns > phase_start.reading.at_ns {
            true => self.last.clone(),
            false => {
                self.outside_devices.sample();
                Reading::now(&self.devices, now_ns)
            }
        };
        observed.counted_from_ns = Some(phase_start.counted_from_ns);
        observed.kernel = phase_start.kernel.end();
        self.end_links(now_ns, called_ns, &mut observed);
        observed.other_disks = Some(self.outside_devices.other_disks());
        self.samples.host(&now.host, &self.last.host);
        self.end_devices(&phase_start.reading, &now, &mut observed);
        observed.cpu = self.samples.totals();
        observed.cpu.throttled_ns = now.host.throttled_since(&phase_start.reading.host);
        if let (Some(after), Some(before)) = (ProcessReading::now(), &phase_start.process) {
            observed.generator = after.since(before);
            let time_ns = now_ns.saturating_sub(phase_start.reading.at_ns).max(1) as f64;
            // CPU time is counted in ticks, so it may exceed the elapsed time by one tick.
            let share = |ns: u64| (ns as f64 / time_ns).min(1.0);
            observed.generator.busiest_thread_share =
                after.busiest_thread_ns_since(before).map(share);
        }
        observed.memory = now.host.memory_since(&phase_start.reading.host);
        observed.memory.dirty_bytes_max = self.samples.dirty_bytes_max;
        observed.pressure = now.host.pressure_since(&phase_start.reading.host);
        observed.clock = self.samples.clock.clone();
        now.host.record_elapsed(&phase_start.reading.host, &mut observed.clock);
        let numbers: Vec<DeviceNumber> = self.devices.iter().map(|(number, _)| *number).collect();
        observed.interposition = interposition::detect(&numbers);
        observed.mapped = mapped_files::read("self");
        observed.limits = Some(limits::read());
        if let Some(pauses) = self.pause_detector.take().and_then(PauseDetector::end) {
            pauses.since(phase_start.from_ns).note(&mut observed.clock);
        }
        self.end_neighbours(&phase_start, &mut observed);
        observed.device_errors = phase_start.log.errors().map(|mut errors| {
            errors.retain(|name, _| observed.devices.iter().any(|device| device.name == *name));
            errors
        });
        let raids = raid::find(self.devices.iter().map(|(number, _)| *number));
        observed.raids = raid::worse(&phase_start.raids, &raids);
        let mounts = network::read(&self.mount_points);
        observed.network_mounts = network::difference(&phase_start.network, &mounts);
        observed.backing_files = phase_start.backing.end();
        observed.servers = phase_start.servers.end();
        for watch in &mut self.metrics {
            watch.end(&mut observed.sources, &mut observed.unknown);
        }
        let TargetFacts { extents, backing, file_systems, unknown } = self.data.clone();
        (observed.extents, observed.backing) = (extents, backing);
        observed.file_systems = file_systems;
        observed.unknown.extend(unknown);
        observed
    }

    fn end_devices(&self, phase_start: &Reading, now: &Reading, observed: &mut Observed) {
        for (index, (number, top)) in self.devices.iter().enumerate() {
            match (&phase_start.devices[index], &now.devices[index]) {
                (Some(before), Some(after)) => {
                    let mut totals = device::difference(before, after);
                    totals.top = *top;
                    self.outside_devices.note(*number, &mut totals);
                    observed.devices.push(totals);
                }
                _ => observed.unknown.push(ObservationGap {
                    what: format!("counters of block device {}:{}", number.major, number.minor),
                    why: "its stat file in /sys cannot be read".into(),
                    remedy: "a mounted /sys".into(),
                }),
            }
        }
        observed.unknown.extend(self.paths.iter().filter_map(|path| mount::explain_unseen(path)));
    }

    fn end_links(&mut self, now_ns: u64, called_ns: u64, observed: &mut Observed) {
        let at_ns = || now_ns + clock::monotonic_ns().saturating_sub(called_ns);
        observed.links = self.links.end(at_ns);
        if observed.links.is_none() {
            observed.unknown.push(ObservationGap {
                what: "traffic of network interfaces".into(),
                why: "/proc/net/dev cannot be read".into(),
                remedy: "a mounted /proc".into(),
            });
        }
    }

    fn end_neighbours(&self, phase_start: &PhaseStart, observed: &mut Observed) {
        observed.neighbours = NeighbourReading::now(&self.mine).since(&phase_start.neighbours);
        if observed.neighbours.unreadable > 0 {
            let unseen = match observed.neighbours.unreadable {
                1 => "storage I/O of another process".to_owned(),
                many => format!("storage I/O of {many} other processes"),
            };
            observed.unknown.push(ObservationGap {
                what: unseen,
                why: "their /proc/PID/io files belong to other users".into(),
                remedy: "root, or CAP_SYS_PTRACE".into(),
            });
        }
        if observed.neighbours.outside_unseen {
            observed.unknown.push(ObservationGap {
                what: "storage I/O of processes outside this container".into(),
                why: "they are invisible in its PID namespace".into(),
                remedy: "a run in the host's PID namespace (podman and docker: --pid=host)".into(),
            });
        }
    }
}

impl Reading {
    fn now(devices: &[(DeviceNumber, bool)], at_ns: u64) -> Self {
        Self {
            at_ns,
            devices: devices.iter().map(|(number, _)| number.counters()).collect(),
            cpu: CpuReading::now(),
            host: HostReading::now(),
        }
    }
}

impl Samples {
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

    fn host(&mut self, now: &HostReading, before: &HostReading) {
        now.record_clock_step(before, &mut self.clock);
        self.dirty_bytes_max = self.dirty_bytes_max.max(now.dirty_bytes);
        if let Some(hz) = now.frequency_hz {
            let (least, most) = self.frequency_hz.unwrap_or((hz, hz));
            self.frequency_hz = Some((least.min(hz), most.max(hz)));
        }
    }

    fn totals(&self) -> Cpu {
        let mean = |sum: f64| (self.weight_ns > 0.0).then(|| sum / self.weight_ns);
        Cpu {
            busy_avg: mean(self.busy),
            busy_min: self.busy_min,
            busy_max: self.busy_max,
            steal_avg: mean(self.steal),
            steal_max: self.steal_max,
            busiest_cpu_avg: mean(self.busiest),
            frequency_hz_min: self.frequency_hz.map(|(least, _)| least),
            frequency_hz_max: self.frequency_hz.map(|(_, most)| most),
            throttled_ns: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn counts_file_writes_at_the_device_and_the_process() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut observer = Observer::new(vec![directory.path().to_path_buf()], 0);
        observer.begin(0, || 0, None);
        let path = directory.path().join("data");
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(&vec![7u8; 4 << 20]).unwrap();
        file.sync_all().unwrap();
        observer.use_target_facts(TargetFacts::examine(observer.paths(), &[path]));
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
        assert!(observed.extents.is_some_and(|e| e.size_bytes == 4 << 20 && e.hole_bytes == 0));
        assert_eq!(observed.file_systems.len(), 1);
        assert!(observed.memory.cached_bytes_after.is_some());
        assert_eq!(observed.clock.source_changed, None);
    }

    /// While the counters are read for the first time, the load may transfer many bytes. These
    /// bytes must not be counted.
    #[test]
    fn counters_count_from_the_end_of_their_first_reading() {
        let mut observer = Observer::new(Vec::new(), 0);
        let now_ns = std::cell::Cell::new(0);
        let clock = || {
            now_ns.set(now_ns.get() + 10);
            now_ns.get()
        };
        observer.begin(0, clock, None);
        let read_ns = observer.phase_start.as_ref().unwrap().reading.at_ns;
        let counted_from_ns = observer.end(1_000).counted_from_ns.unwrap();
        assert!(counted_from_ns > read_ns, "{counted_from_ns} {read_ns}");
    }

    #[test]
    fn totals_equal_the_sum_of_the_rows() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let mut observer = Observer::new(vec![directory.path().to_path_buf()], 0);
        observer.begin(0, || 0, None);
        let write = |name: &str| {
            let mut file = std::fs::File::create(directory.path().join(name)).unwrap();
            file.write_all(&vec![7u8; 4 << 20]).unwrap();
            file.sync_all().unwrap();
        };
        write("before");
        let mut rows = Vec::new();
        observer.sample(1_000_000_000, 0, &mut rows);
        write("after");
        let observed = observer.end(1_000_000_000);
        assert!(!observed.devices.is_empty() || !observed.unknown.is_empty());
        for device in &observed.devices {
            let name = format!("device.{}.written_bytes", device.name);
            let row = rows.iter().find(|row| row.name == name).unwrap();
            assert_eq!(row.data, Data::Gauge(device.written_bytes as f64), "{name}");
        }
    }

    #[test]
    fn the_series_has_no_gap_between_phases() {
        let mut observer = Observer::new(Vec::new(), 0);
        let mut rows = Vec::new();
        observer.sample(1_000_000_000, 1, &mut rows);
        let clock = std::cell::Cell::new(1_900_000_000);
        let reported = || clock.replace(clock.get() + 40_000_000);
        observer.begin(1_900_000_000, reported, Some((1, &mut rows)));
        observer.sample(3_000_000_000, 2, &mut rows);
        let gauge = |row: &&Row| row.name == "memory.dirty_bytes";
        let spans: Vec<(u32, u64, u64)> = rows
            .iter()
            .filter(gauge)
            .map(|row| (row.phase, row.start_ns, row.start_ns + row.duration_ns))
            .collect();
        // The last two readings are only microseconds apart.
        assert_eq!(
            spans,
            [
                (1, 0, 1_000_000_000),
                (1, 1_000_000_000, 1_900_000_000),
                (2, 1_940_000_000, 3_000_000_000)
            ]
        );
    }

    #[test]
    fn without_a_start_all_totals_are_unknown() {
        let mut observer = Observer::new(Vec::new(), 0);
        assert_eq!(observer.end(5), Observed::default());
    }
}
