//! Creates the plan of a sweep from command-line flags, without a plan file.

use std::fmt::Write as _;

use crate::error::PlanErrors;
use crate::plan::Plan;
use crate::units::{DurationNs, SizeBytes};

/// Command-line flags of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepRequest {
    /// Name of the plan.
    pub name: String,
    /// Command to which the flags belong.
    pub made_by: &'static str,
    /// A directory, a device (`/dev/…`), `model:NAME`, `null`, or NFS exports (`nfs://…`). If there
    /// are several exports, each export is a share.
    pub targets: Vec<String>,
    /// Transfer sizes.
    pub sizes: Vec<SizeBytes>,
    /// Percentages of reads among reads and writes.
    pub read_percents: Vec<f64>,
    /// Names of access patterns, such as `random`.
    pub patterns: Vec<String>,
    /// Number of operations that each client keeps in flight.
    pub queue_depths: Vec<u32>,
    /// Percentage of metadata operations among all operations.
    pub metadata_percent: f64,
    /// Number of clients, or `None` for one client for each share.
    pub clients: Option<u32>,
    /// Number of files in each share.
    pub files: u32,
    /// File size. `None` means files of 1 GiB or, if the target is a device, the whole device.
    pub file_size: Option<SizeBytes>,
    /// Measuring time of each point. If it is `None`, each point is measured until its rate is
    /// steady.
    pub measure: Option<DurationNs>,
    /// True if each point is measured for only five seconds. This is too short for steady results.
    pub quick: bool,
}

impl Default for SweepRequest {
    /// Settings that produce the usual sizing table. They are transfer sizes from 4 KiB to 128 KiB,
    /// five percentages of reads, and random and sequential access. Each client keeps 4 operations
    /// in flight, and each point is measured for ten minutes.
    fn default() -> Self {
        Self {
            name: "sweep".to_owned(),
            made_by: "plimsoll sweep",
            targets: Vec::new(),
            sizes: (2..=7).map(|power| SizeBytes::kib(1 << power)).collect(),
            read_percents: vec![100.0, 75.0, 50.0, 25.0, 0.0],
            patterns: vec!["random".to_owned(), "sequential".to_owned()],
            queue_depths: vec![4],
            metadata_percent: 0.0,
            clients: None,
            files: 1,
            file_size: None,
            measure: Some(DurationNs::s(600)),
            quick: false,
        }
    }
}

const QUICK: DurationNs = DurationNs::s(5);

/// Returns the plan of the sweep.
///
/// # Errors
/// The resulting plan is not valid. The error lists all faults of the plan.
pub fn sweep_plan(request: &SweepRequest) -> Result<Plan, PlanErrors> {
    Plan::parse(&text(request), &request.name)
}

pub(crate) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn list<T>(values: &[T], show: impl Fn(&T) -> String) -> String {
    format!("[{}]", values.iter().map(show).collect::<Vec<_>>().join(", "))
}

/// Returns true if a target from the command line is a device. A path in `/dev/shm` is not a device
/// but a directory.
#[must_use]
pub fn is_device_path(place: &str) -> bool {
    place.starts_with("/dev/") && place != "/dev/shm" && !place.starts_with("/dev/shm/")
}

pub(crate) fn target(targets: &[String]) -> String {
    let first = targets.first().map_or("", String::as_str);
    if targets.iter().any(|t| t.starts_with("nfs://")) || targets.len() > 1 {
        return format!("nfs = {}", list(targets, |t| quoted(t)));
    }
    match (first, first.strip_prefix("model:")) {
        ("null", _) => "null = true".to_owned(),
        (_, Some(model)) => format!("model = {}", quoted(model)),
        (device, None) if is_device_path(device) => format!("device = {}", quoted(device)),
        (path, None) => format!("path = {}", quoted(path)),
    }
}

// The functions below ignore the results of writing to a string, because writing to a string cannot
// fail.
fn text(request: &SweepRequest) -> String {
    let mut text = format!("# Made by `{}` from its flags.\nversion = 1\n", request.made_by);
    let _ = writeln!(text, "name = {}\ndemonstration = {}", quoted(&request.name), request.quick);
    let _ = writeln!(text, "\n[target]\n{}\n\n[workload.matrix]", target(&request.targets));
    let _ = writeln!(text, "patterns = {}", list(&request.patterns, |p| quoted(p)));
    let _ = writeln!(text, "queue_depth = {:?}", request.queue_depths);
    let _ = writeln!(text, "sizes = {}", list(&request.sizes, |s| format!("\"{s}\"")));
    let _ = writeln!(text, "reads = {}", list(&request.read_percents, f64::to_string));
    let _ = writeln!(text, "metadata = {}", request.metadata_percent);
    let _ = writeln!(text, "files = {}", request.files);
    if let Some(clients) = request.clients {
        let _ = writeln!(text, "clients = {clients}");
    }
    if let Some(size) = request.file_size {
        let _ = writeln!(text, "file_size = \"{size}\"");
    }
    let measure = if request.quick { Some(QUICK) } else { request.measure };
    let _ = writeln!(text, "\n[phases]");
    if request.quick {
        let _ = writeln!(text, "warm_up = \"1s\"");
    }
    match measure {
        None => text.push_str("measure = \"until-steady\"\n"),
        Some(length) => {
            let _ = writeln!(text, "measure = \"{length}\"");
            // If the user requests a measuring time, this time is also the required minimum length
            // of the measured phase.
            let least = length.min(DurationNs::s(600));
            let _ = writeln!(text, "\n[evidence]\nmin_measure = \"{least}\"");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_in_memory_are_no_devices() {
        assert!(is_device_path("/dev/nvme0n1") && is_device_path("/dev/shmem0"));
        assert!(!is_device_path("/dev/shm") && !is_device_path("/dev/shm/a"));
        assert_eq!(target(&["/dev/shm/a".to_owned()]), "path = \"/dev/shm/a\"");
    }
}
