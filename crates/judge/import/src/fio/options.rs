//! Load described by a fio job's options, in tool-independent terms.

use std::collections::BTreeMap;

use plimsoll_evidence::tool_result::{
    CounterReset, Durability, Figure, MediaClass, Outstanding, Pattern, Setting,
};

use crate::fio_job::values;

/// Options of one job, including the global ones.
#[derive(Clone, Debug, Default)]
pub struct Options {
    stated: BTreeMap<String, (String, String)>,
}

/// Engines that run one operation at a time, whatever the requested depth (fio's manual, "I/O
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

/// Options with which a job does not always keep its full depth in flight.
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
    /// Adds an option with its location. A later option replaces an earlier option of the same
    /// name.
    pub fn set(&mut self, name: &str, value: &str, field: &str) {
        let name = match name {
            "readwrite" => "rw",
            "blocksize" => "bs",
            "startdelay" => "start_delay",
            other => other,
        };
        // Of such a pair, fio uses the later option.
        let pairs = [("rwmixread", "rwmixwrite"), ("direct", "buffered")];
        for (one, other) in pairs {
            if name == one {
                self.stated.remove(other);
            } else if name == other {
                self.stated.remove(one);
            }
        }
        self.stated.insert(name.to_owned(), (value.to_owned(), field.to_owned()));
    }

    /// Returns the value of an option; empty if it was given without a value.
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

    /// Parses a size as fio does: unless `kb_base` is 1000, `4k` is 4096 and `4kib` is 4000.
    fn bytes(&self, name: &str) -> Option<Figure> {
        let (value, field) = self.stated.get(name)?;
        Some(Figure::exact(self.size_of(value)?, field))
    }

    fn size_of(&self, text: &str) -> Option<f64> {
        let kb_base = if self.get("kb_base") == Some("1000") { 1000 } else { 1024 };
        values::size(text, kb_base).map(|bytes| bytes as f64)
    }

    /// Parses a time as fio does: seconds without a unit.
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
        let mixed = ["bsrange", "blocksize_range", "bssplit", "bs_unaligned", "verify", "zonemode"];
        if mixed.iter().any(|name| self.on(name) == Some(true)) {
            return None;
        }
        let (value, field) = self.stated.get("bs")?;
        let sizes: Vec<&str> = value.split(',').collect();
        // If there are fewer than three sizes, the last size is also the size of the other
        // directions.
        let text = sizes.get(direction).or(sizes.last()).filter(|text| !text.is_empty())?;
        let bytes = self.size_of(text).filter(|bytes| *bytes > 0.0)?;
        Some(Figure::exact(bytes, field))
    }

    /// Returns the stated number of clones.
    #[must_use]
    pub fn clones(&self) -> Option<Figure> {
        self.whole("numjobs")
    }

    /// Returns the maximum operations in flight of one clone.
    fn depth(&self) -> Option<Figure> {
        let engine = self.get("ioengine")?;
        if SYNCHRONOUS.contains(&engine) {
            let field = self.stated.get("ioengine").map_or("ioengine", |(_, field)| field);
            return Some(Figure::exact(1.0, field));
        }
        match self.stated.get("iodepth") {
            Some(_) => self.whole("iodepth"),
            // fio's default depth is 1. It is stated implicitly if the engine is stated.
            None => Some(Figure::exact(1.0, "iodepth")),
        }
    }

    /// Returns the setting of a part with `clones` jobs, or with an unknown number.
    #[must_use]
    pub fn setting(&self, clones: Option<f64>) -> Setting {
        let rw = self.get("rw");
        let paced = PACED.iter().any(|name| self.on(name) == Some(true));
        let outstanding = self
            .depth()
            .zip(clones)
            .map(|(depth, clones)| Outstanding { most: depth.scaled(clones), kept: !paced });
        let is_poisson = self.get("rate_process") == Some("poisson");
        let target = self.get("filename").or_else(|| self.get("directory"));
        Setting {
            outstanding_of_each: None,
            outstanding,
            threads: clones.map(|count| Figure::exact(count, "numjobs")),
            read_percent: self.read_percent(),
            pattern: rw.map(|rw| {
                let random = rw.contains("rand");
                if random { Pattern::Random } else { Pattern::Sequential }
            }),
            working_set_bytes: self.working_set(clones),
            direct: self.direct(),
            durability: self.durability(),
            // Poisson arrivals have the rate as their mean, not as a limit.
            rate_limit_per_s: self
                .whole("rate_iops")
                .filter(|_| !is_poisson)
                .map(|f| f.scaled(clones.unwrap_or(1.0))),
            bandwidth_limit_per_s: self
                .bytes("rate")
                .filter(|_| !is_poisson)
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
            performs_nothing: self.get("ioengine") == Some("null"),
        }
    }

    /// `ramp_time` resets the counters at its end, and `latency_target` does at each step of its
    /// search.
    fn counter_reset(&self) -> CounterReset {
        let resets = ["ramp_time", "ramp_size", "latency_target"];
        match resets.iter().any(|name| self.on(name) == Some(true)) {
            true => CounterReset::Stated,
            false => CounterReset::Never,
        }
    }

    /// True if reads that verify run between the writes (`verify_backlog`).
    #[must_use]
    pub fn verifies_meanwhile(&self) -> bool {
        self.on("verify_backlog") == Some(true)
    }

    /// True unless the stated engine bypasses the block devices of this host (`rbd`, `nfs`,
    /// `http`).
    #[must_use]
    pub fn uses_host_devices(&self) -> bool {
        let local = ["libaio", "io_uring", "posixaio"];
        self.get("ioengine").is_none_or(|name| SYNCHRONOUS.contains(&name) || local.contains(&name))
    }

    /// True if the job starts together with the jobs of the previous reporting group.
    #[must_use]
    pub fn joins_previous_group(&self) -> bool {
        let waits = ["stonewall", "wait_for_previous"].iter().any(|n| self.on(n) == Some(true));
        self.on("new_group") == Some(true) && !waits
    }

    /// True if no option is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stated.is_empty()
    }

    fn read_percent(&self) -> Option<Figure> {
        let (rw, field) = self.stated.get("rw")?;
        let rw = rw.split(':').next().unwrap_or(rw);
        match rw {
            "read" | "randread" => Some(Figure::exact(100.0, field)),
            "write" | "randwrite" | "trim" | "randtrim" => Some(Figure::exact(0.0, field)),
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
        // Clones share a named file. If only a directory is named, each job has its own file.
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
        // An absent option is significant only if options are listed at all.
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

/// Returns the media class from a device name. An NVMe namespace is flash on PCIe. Other names are
/// ambiguous: `sda` may be a disk, an SSD or an array volume.
fn media_of(target: &str) -> Option<MediaClass> {
    let nvme = target.split(':').all(|path| path.starts_with("/dev/nvme"));
    nvme.then_some(MediaClass::Nvme)
}

fn drives_of(target: &str, field: &str) -> Option<Figure> {
    media_of(target)?;
    Some(Figure::exact(target.split(':').count() as f64, field))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn options(list: &[(&str, &str)]) -> Options {
        let mut options = Options::default();
        for (name, value) in list {
            options.set(name, value, name);
        }
        options
    }

    #[test]
    fn sizes_are_read_as_fio_reads_them() {
        let of = |text: &str| options(&[("bs", text)]).transfer_bytes(0).map(|f| f.value);
        assert_eq!(of("4k"), Some(4096.0));
        assert_eq!(of("4KB"), Some(4096.0));
        assert_eq!((of("4kib"), of("4ki")), (Some(4000.0), Some(4096.0)));
        assert_eq!(of("1M"), Some(1048576.0));
        assert_eq!(of("512"), Some(512.0));
        assert_eq!(of("x"), None);
        let two = options(&[("bs", "4k,8k")]);
        assert_eq!(two.transfer_bytes(1).unwrap().value, 8192.0);
        assert_eq!(two.transfer_bytes(2).unwrap().value, 8192.0);
        assert_eq!(options(&[("bs", "4k"), ("bssplit", "4k/50:8k/50")]).transfer_bytes(0), None);
    }

    #[test]
    fn depth_applies_to_asynchronous_engines() {
        let most = |list: &[(&str, &str)]| {
            let setting = options(list).setting(Some(4.0));
            setting.outstanding.map(|o| (o.most.value, o.kept))
        };
        assert_eq!(most(&[("ioengine", "libaio"), ("iodepth", "32")]), Some((128.0, true)));
        assert_eq!(most(&[("ioengine", "psync"), ("iodepth", "32")]), Some((4.0, true)));
        assert_eq!(most(&[("ioengine", "libaio"), ("rate_iops", "100")]), Some((4.0, false)));
        assert_eq!(most(&[("iodepth", "32")]), None);
    }

    #[test]
    fn missing_options_stay_unknown() {
        let setting = Options::default().setting(None);
        assert_eq!(setting, Setting::default());
        let setting =
            options(&[("rw", "randrw"), ("rwmixread", "70"), ("fsync", "1")]).setting(None);
        assert_eq!(setting.read_percent.unwrap().value, 70.0);
        assert_eq!(setting.durability, Some(Durability::Flushed));
        assert_eq!(setting.direct, None);
    }
}
