//! Converts the options of a fio job to a description of the load that is the same for all tools.

use std::collections::BTreeMap;

use plimsoll_evidence::tool_result::{
    CounterReset, Durability, Figure, Kind, MediaClass, Operation, Outstanding, Pattern, Setting,
};

use crate::fio_job::values;

/// Options of one job, including the global options.
#[derive(Clone, Debug, Default)]
pub struct Options {
    stated: BTreeMap<String, (String, String)>,
    /// Options that precede `kb_base`. `kb_base` applies only to later options, except in a job
    /// file, where fio moves it to the front.
    before_kb_base: Vec<String>,
    /// Queue depth that fio prints after the run (`latency_depth`).
    pub final_depth: Option<Figure>,
}

/// Engines that run one operation at a time and ignore the requested depth (fio's manual, "I/O
/// engine").
const SYNCHRONOUS: [&str; 10] = [
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "mmap",
    "splice",
    "ftruncate",
    "falloc",
    "filecreate",
];

/// Engines that transfer no data. They only use the processor, or create, look up or change files.
/// fio nevertheless counts the size of a file as transferred bytes.
pub const METADATA: [&str; 9] = [
    "cpuio",
    "filestat",
    "filecreate",
    "filedelete",
    "dirstat",
    "dircreate",
    "dirdelete",
    "falloc",
    "ftruncate",
];

/// Devices that discard written data, or return generated data.
const DEVICES_WITHOUT_STORAGE: [&str; 5] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Prefixes of paths that are in memory on every Linux system. They belong to tmpfs, RAM disks and
/// test devices.
const MEMORY_PATHS: [&str; 6] =
    ["/dev/shm/", "/run/shm/", "/dev/ram", "/dev/zram", "/dev/pmem", "/dev/nullb"];

/// Options because of which a job may have fewer operations in flight than its depth.
const PACED: [&str; 19] = [
    "end_fsync",
    "fsync_on_close",
    "verify",
    "rate",
    "rate_iops",
    "rate_process",
    "thinktime",
    "latency_target",
    "iodepth_batch",
    "iodepth_batch_submit",
    "iodepth_batch_complete",
    "iodepth_batch_complete_min",
    "iodepth_low",
    "io_submit_mode",
    "max_latency",
    "flow",
    "serialize_overlap",
    "read_iolog",
    "replay_time_scale",
];

impl Options {
    /// Adds an option and its location in the file. A later option replaces an earlier option of
    /// the same name.
    pub fn set(&mut self, name: &str, value: &str, field: &str) {
        let name = match name {
            "readwrite" => "rw",
            "blocksize" => "bs",
            "startdelay" => "start_delay",
            other => other,
        };
        // If a job contains both options of a pair, fio uses the later option.
        let pairs = [("rwmixread", "rwmixwrite"), ("direct", "buffered")];
        for (one, other) in pairs {
            if name == one {
                self.stated.remove(other);
            } else if name == other {
                self.stated.remove(one);
            }
        }
        match name {
            "kb_base" => self.before_kb_base = self.stated.keys().cloned().collect(),
            _ => self.before_kb_base.retain(|before| before != name),
        }
        self.stated.insert(name.to_owned(), (value.to_owned(), field.to_owned()));
    }

    /// Returns the value of an option. It is empty if the option has no value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.stated.get(name).map(|(value, _)| value.as_str())
    }

    #[must_use]
    pub fn all(&self) -> BTreeMap<String, String> {
        self.stated.iter().map(|(name, (value, _))| (name.clone(), value.clone())).collect()
    }

    fn on(&self, name: &str) -> Option<bool> {
        self.get(name).map(|value| value != "0" && value != "none")
    }

    fn whole(&self, name: &str) -> Option<Figure> {
        let (value, field) = self.stated.get(name)?;
        let number: f64 = value.trim().parse().ok()?;
        Some(Figure::exact(number, field))
    }

    /// Parses a size as fio does. Unless `kb_base` is 1000, `4k` is 4096 and `4kib` is 4000.
    fn bytes(&self, name: &str) -> Option<Figure> {
        let (value, field) = self.stated.get(name)?;
        Some(Figure::exact(self.size_of(name, value)?, field))
    }

    fn size_of(&self, name: &str, text: &str) -> Option<f64> {
        let applies = !self.before_kb_base.iter().any(|before| before == name);
        let kb_base = if applies && self.get("kb_base") == Some("1000") { 1000 } else { 1024 };
        values::size(text, kb_base).map(|bytes| bytes as f64)
    }

    /// Parses a time as fio does. A number without a unit is in seconds.
    fn time_ns(&self, name: &str) -> Option<Figure> {
        let (value, field) = self.stated.get(name)?;
        let text = value.trim().to_ascii_lowercase();
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let factor = match &text[digits.len()..] {
            "" | "s" => 1e9,
            "ms" | "msec" => 1e6,
            "us" | "usec" => 1e3,
            "m" => 60e9,
            "h" => 3600e9,
            "d" => 86_400e9,
            _ => return None,
        };
        Some(Figure::exact(digits.parse::<f64>().ok()? * factor, field))
    }

    /// Returns the transfer size of reads (0), writes (1) or trims (2), if it is constant.
    #[must_use]
    pub fn transfer_bytes(&self, direction: usize) -> Option<Figure> {
        let mixed = [
            "bsrange",
            "blocksize_range",
            "bssplit",
            "bs_unaligned",
            "bs_is_seq_rand",
            "read_iolog",
            "zonemode",
        ];
        if mixed.iter().any(|name| self.on(name) == Some(true)) {
            return None;
        }
        let (value, field) = self.stated.get("bs")?;
        let sizes: Vec<&str> = value.split(',').collect();
        // Verification reads have the size of the writes.
        let differ = sizes.iter().any(|size| Some(size) != sizes.first());
        if differ && self.on("verify") == Some(true) {
            return None;
        }
        // If there are fewer than three sizes, the last size applies to the remaining directions.
        let text = sizes.get(direction).or(sizes.last()).filter(|text| !text.is_empty())?;
        let bytes = self.size_of("bs", text).filter(|bytes| *bytes > 0.0)?;
        Some(Figure::exact(bytes, field))
    }

    /// Returns the transfer size of a kind of operation, if it is constant.
    #[must_use]
    pub fn size_of_kind(&self, kind: &Kind) -> Option<Figure> {
        match kind {
            Kind::Read => self.transfer_bytes(0),
            Kind::Write => self.transfer_bytes(1),
            Kind::All => {
                let sizes = [0, 1].map(|direction| self.transfer_bytes(direction));
                let [Some(read), Some(write)] = sizes else { return None };
                (read.value == write.value).then_some(read)
            }
            _ => None,
        }
    }

    /// Returns the options that are the same in all these sections. If the depths differ, the depth
    /// is unknown.
    #[must_use]
    pub fn shared(sections: &[&Self]) -> Self {
        let Some((first, rest)) = sections.split_first() else { return Self::default() };
        let mut shared = (*first).clone();
        let same = |name: &str, value: &str| rest.iter().all(|of| of.get(name) == Some(value));
        shared.stated.retain(|name, (value, _)| same(name, value));
        if sections.iter().any(|of| of.get("iodepth") != shared.get("iodepth")) {
            shared.set("iodepth", "", "iodepth");
        }
        shared
    }

    /// Returns the number of clones according to the options.
    #[must_use]
    pub fn clones(&self) -> Option<Figure> {
        self.whole("numjobs")
    }

    /// Returns true if the engine performs one operation at a time, in the issuing thread.
    #[must_use]
    pub fn is_synchronous(&self) -> bool {
        self.get("ioengine").is_some_and(|engine| SYNCHRONOUS.contains(&engine))
    }

    /// Returns the maximum number of operations that a clone has in flight.
    #[must_use]
    pub fn depth(&self) -> Option<Figure> {
        let engine = self.get("ioengine")?;
        // With `offload`, other threads perform the operations. Their number is `iodepth`.
        let offloads = self.get("io_submit_mode") == Some("offload");
        if self.is_synchronous() && !offloads {
            let field = self.stated.get("ioengine").map_or("ioengine", |(_, field)| field);
            return Some(Figure::exact(1.0, field));
        }
        let stated = match self.stated.get("iodepth") {
            Some(_) => self.whole("iodepth"),
            // fio's default depth is 1. This code assumes the default only if the options state the
            // engine.
            None => Some(Figure::exact(1.0, "iodepth")),
        }?;
        if !engine.starts_with("io_uring") {
            return Some(stated);
        }
        // fio rounds the size of the ring, and thereby the depth, up to a power of two.
        let ring = (stated.value.max(1.0) as u64).checked_next_power_of_two()? as f64;
        let is_possible = |depth: &&Figure| (stated.value..=ring).contains(&depth.value);
        let printed = self.final_depth.as_ref().filter(is_possible).cloned();
        Some(printed.unwrap_or_else(|| Figure::exact(ring, stated.field)))
    }

    /// Returns the setting of an entry that combines several sections. Of these, the options of
    /// only one section are known.
    #[must_use]
    pub fn setting_of_group(&self, threads: Option<f64>) -> Setting {
        let of_one = self.setting(None);
        Setting {
            threads: threads.map(|count| Figure::exact(count, "job_runtime")),
            counter_reset: CounterReset::Unknown,
            target: of_one.target,
            data_zero: of_one.data_zero,
            no_storage: of_one.no_storage,
            ..Setting::default()
        }
    }

    /// Returns the setting of a part that consists of `clones` jobs. `None` means that this number
    /// is unknown.
    #[must_use]
    pub fn setting(&self, clones: Option<f64>) -> Setting {
        let rw = self.get("rw");
        // fio needs more time for its own work than these engines need to copy memory.
        let copies = ["mmap", "libpmem", "dev-dax"];
        let copies = self.get("ioengine").is_some_and(|engine| copies.contains(&engine));
        let paced = copies || PACED.iter().any(|name| self.on(name) == Some(true));
        let outstanding = self
            .depth()
            .zip(clones)
            .map(|(depth, clones)| Outstanding { most: depth.scaled(clones), kept: !paced });
        let read_percent = self.read_percent();
        let mixes = read_percent.as_ref().is_some_and(|p| p.value > 0.0 && p.value < 100.0);
        // With Poisson arrivals, the rate is a mean and not a limit. It does not apply to
        // verification reads. A mixed job counts these together with the other reads.
        let is_limited = self.get("rate_process") != Some("poisson")
            && !(mixes && self.on("verify") == Some(true));
        let target = self.get("filename").or_else(|| self.get("directory"));
        Setting {
            outstanding_of_each: None,
            outstanding,
            threads: clones.map(|count| Figure::exact(count, "numjobs")),
            read_percent,
            pattern: rw.map(|rw| {
                let random = rw.contains("rand");
                if random { Pattern::Random } else { Pattern::Sequential }
            }),
            working_set_bytes: self.working_set(clones),
            direct: self.direct(),
            durability: self.durability(),
            rate_limit_per_s: self
                .whole("rate_iops")
                .filter(|_| is_limited)
                .map(|f| f.scaled(clones.unwrap_or(1.0))),
            bandwidth_limit_per_s: self
                .bytes("rate")
                .filter(|_| is_limited)
                .map(|f| f.scaled(clones.unwrap_or(1.0))),
            duration_ns: self.time_ns("runtime").or_else(|| self.time_ns("timeout")),
            warm_up_ns: self.time_ns("ramp_time").filter(|time| time.value > 0.0),
            counter_reset: self.counter_reset(),
            target: target.map(str::to_owned),
            media: target.and_then(media_of),
            drives: target.and_then(|target| drives_of(target, "filename")),
            memory_bytes: None,
            data_repeats: self.data_repeats(),
            data_zero: self.on("zero_buffers"),
            no_storage: self.no_storage(),
        }
    }

    /// fio resets its counters at the end of `ramp_time`, and after each step of the search for
    /// `latency_target`.
    fn counter_reset(&self) -> CounterReset {
        let resets = ["ramp_time", "ramp_size", "latency_target"];
        match resets.iter().any(|name| self.on(name) == Some(true)) {
            true => CounterReset::Stated,
            false => CounterReset::Never,
        }
    }

    /// Returns true if verification reads run between the writes (`verify_backlog`).
    #[must_use]
    pub fn verifies_meanwhile(&self) -> bool {
        self.on("verify_backlog") == Some(true)
    }

    /// Corrects figures that the engine distorts.
    pub fn correct(&self, operation: &mut Operation) {
        let engine = self.get("ioengine").unwrap_or_default();
        // If a read at the end of a file moves no data, fio counts an operation, but no short one
        // (`io_completed` in io_u.c). Synchronous engines end with an error instead.
        if matches!(operation.kind, Kind::Read | Kind::All)
            && !self.is_synchronous()
            && let Some(count) = operation.count.first()
        {
            let short = operation.short.get_or_insert_with(|| Figure::exact(0.0, &count.field));
            short.most = short.most.max(count.value);
        }
        if !operation.kind.moves_data() {
            return;
        }
        if METADATA.contains(&engine) {
            operation.kind = Kind::Name(engine.to_owned());
            operation.bytes.clear();
            operation.bandwidth_per_s.clear();
            (operation.bandwidth_sampled, operation.size_bytes) = (None, None);
        }
        // vsync combines operations into one transfer. fio counts neither the bytes nor the
        // latencies of the last such operations.
        if let ("vsync", Some(size)) = (engine, &mut operation.size_bytes) {
            let depth = self.whole("iodepth").map_or(1.0, |depth| depth.value);
            let count = operation.count.first().map_or(depth, |count| count.value.max(depth));
            size.least *= 1.0 - depth / count;
            operation.count.iter_mut().for_each(|f| f.least = (f.least - depth).max(0.0));
        }
    }

    /// If the job used no storage, returns the reason. Otherwise returns `None`.
    fn no_storage(&self) -> Option<String> {
        match self.get("ioengine") {
            Some("null") => {
                return Some("the engine null completes operations without performing them".into());
            }
            Some("cpuio") => return Some("the engine cpuio performs no I/O".into()),
            _ => {}
        }
        let home = self.get("directory").unwrap_or_default();
        let names = self.get("filename").unwrap_or_default().split(':');
        let mut paths = names.map(|name| match name.starts_with('/') {
            true => name.to_owned(),
            false => format!("{home}/{name}"),
        });
        paths.find_map(|path| {
            let begins = |start: &&str| path.starts_with(*start);
            let what = if DEVICES_WITHOUT_STORAGE.contains(&path.as_str()) {
                "a device without storage"
            } else if MEMORY_PATHS.iter().any(begins) {
                "in memory"
            } else {
                return None;
            };
            Some(format!("{path} is {what}"))
        })
    }

    /// Returns false if the stated engine bypasses the block devices of this host (`rbd`, `nfs`,
    /// `http`).
    #[must_use]
    pub fn uses_host_devices(&self) -> bool {
        let local = ["libaio", "io_uring", "posixaio"];
        self.get("ioengine").is_none_or(|name| SYNCHRONOUS.contains(&name) || local.contains(&name))
    }

    /// Returns true if the job starts at the same time as the jobs of the previous reporting group.
    #[must_use]
    pub fn joins_previous_group(&self) -> bool {
        let waits = ["stonewall", "wait_for_previous"].iter().any(|n| self.on(n) == Some(true));
        self.on("new_group") == Some(true) && !waits
    }

    /// Returns true if the job may have started after the other jobs of its group.
    #[must_use]
    pub fn starts_late(&self) -> bool {
        self.get("wait_for").is_some() || self.get("start_delay").is_some_and(|delay| delay != "0")
    }

    /// Returns true if the result states no options.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stated.is_empty()
    }

    fn read_percent(&self) -> Option<Figure> {
        let (rw, field) = self.stated.get("rw")?;
        let rw = rw.split(':').next().unwrap_or(rw);
        match rw {
            "read" | "randread" => Some(Figure::exact(100.0, field)),
            "write" | "randwrite" => Some(Figure::exact(0.0, field)),
            "rw" | "readwrite" | "randrw" => {
                let stated = self.whole("rwmixread");
                let of_writes =
                    || self.whole("rwmixwrite").map(|f| Figure::exact(100.0 - f.value, f.field));
                stated.or_else(of_writes).or_else(|| Some(Figure::exact(50.0, field)))
            }
            _ => None,
        }
    }

    fn direct(&self) -> Option<bool> {
        self.on("direct").or_else(|| self.on("buffered").map(|buffered| !buffered))
    }

    fn working_set(&self, clones: Option<f64>) -> Option<Figure> {
        let size = self.bytes("size").filter(|size| size.value > 0.0)?;
        // If the options contain a file name, the clones share this file. If they contain only a
        // directory, each clone has its own file.
        let shared = self.get("filename").is_some();
        Some(if shared { size } else { size.scaled(clones?) })
    }

    fn durability(&self) -> Option<Durability> {
        let each = self.get("sync").is_some_and(|value| !matches!(value, "0" | "none"));
        if each {
            return Some(Durability::EachWrite);
        }
        let count = |name: &str| self.whole(name).is_some_and(|every| every.value > 0.0);
        if count("fsync") || count("fdatasync") || self.on("sync_file_range") == Some(true) {
            return Some(Durability::Flushed);
        }
        let at_end = ["end_fsync", "fsync_on_close"].iter().any(|name| self.on(name) == Some(true));
        if at_end {
            return Some(Durability::AtEnd);
        }
        // If the result lists options, an absent option has its default. If it lists no options,
        // nothing is known.
        (!self.stated.is_empty()).then_some(Durability::Nothing)
    }

    fn data_repeats(&self) -> Option<bool> {
        let fresh = ["refill_buffers", "verify", "scramble_buffers"];
        if self.stated.is_empty() {
            return None;
        }
        Some(!fresh[..2].iter().any(|name| self.on(name) == Some(true)))
    }
}

/// Returns the kind of media from a device name. An NVMe namespace is flash on PCIe. Other names
/// are ambiguous: `sda` may be a disk, an SSD or a volume of an array.
fn media_of(target: &str) -> Option<MediaClass> {
    let nvme = target.split(':').all(|path| path.starts_with("/dev/nvme"));
    nvme.then_some(MediaClass::Nvme)
}

fn drives_of(target: &str, field: &str) -> Option<Figure> {
    media_of(target)?;
    Some(Figure::exact(target.split(':').count() as f64, field))
}

#[cfg(test)]
mod tests;
