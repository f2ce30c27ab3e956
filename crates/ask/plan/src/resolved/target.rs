//! The systems under test.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A system under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Name of the target in a comparison. It is `target` if the plan has one target without a
    /// name.
    pub name: String,
    /// Outage timeout in nanoseconds; `None` if the plan does not set it. [`Target::outage_max_ns`]
    /// returns the timeout that applies to a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage_max_ns: Option<u64>,
    /// Kind of the target.
    #[serde(flatten)]
    pub kind: TargetKind,
}

/// Bounds of the default outage timeout, in ns. Between these bounds, the default equals the
/// measuring time. A controller failover may take several minutes, so a long measurement must wait
/// longer than a short measurement.
const OUTAGE_NS: (u64, u64) = (30_000_000_000, 600_000_000_000);

/// Kind of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TargetKind {
    /// Directories of a mail store. The databases and logs are distributed over these directories
    /// in turn.
    Directories {
        /// Directories for databases.
        databases: Vec<String>,
        /// Directories for logs.
        logs: Vec<String>,
    },
    /// Directory in which Plimsoll creates its files.
    Path {
        /// The directory.
        path: String,
    },
    /// Block device.
    Device {
        /// Absolute path of the device, such as `/dev/nvme0n1`.
        device: String,
    },
    /// NFS exports. Plimsoll accesses them without a mount.
    Nfs {
        /// URLs of the exports, as `nfs://host[:port]/export`. Each export is one share.
        exports: Vec<String>,
        /// Number of TCP connections of each client.
        connections: u32,
        /// User id that Plimsoll sends in each call.
        uid: u32,
        /// Group id that Plimsoll sends in each call.
        gid: u32,
    },
    /// Bucket of an S3-compatible object store. Plimsoll reads the credentials from the
    /// environment.
    S3 {
        /// URL `s3://bucket/prefix`.
        url: String,
        /// URL of the store, such as `http://127.0.0.1:9000`.
        endpoint: String,
        /// Region in the signature of each request.
        region: String,
    },
    /// Model of a storage system, which runs in virtual time.
    Model {
        /// Name of a shipped model, or the path of a model file.
        model: String,
        /// Parameter values that override the values in the model file. The keys are dotted names;
        /// the values are TOML values.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        set: BTreeMap<String, String>,
    },
    /// No storage: every operation completes immediately.
    Null,
}

impl Target {
    /// Returns the outage timeout for a measured phase of `measure_ns`. If the plan sets no
    /// timeout, the timeout is the measuring time, but at least 30 s and at most 10 min.
    #[must_use]
    pub fn outage_max_ns(&self, measure_ns: u64) -> u64 {
        self.outage_max_ns.unwrap_or_else(|| measure_ns.clamp(OUTAGE_NS.0, OUTAGE_NS.1))
    }

    /// Returns the word for the kind of the target: `directories`, `path`, `device`, `nfs`, `s3`,
    /// `model` or `null`.
    #[must_use]
    pub fn kind_word(&self) -> &'static str {
        match self.kind {
            TargetKind::Directories { .. } => "directories",
            TargetKind::Path { .. } => "path",
            TargetKind::Device { .. } => "device",
            TargetKind::Nfs { .. } => "nfs",
            TargetKind::S3 { .. } => "s3",
            TargetKind::Model { .. } => "model",
            TargetKind::Null => "null",
        }
    }

    /// Returns the locations of the target as a text for users. Locations are directories, a
    /// device, exports or an address. For a model, the text is, for example, `model single-hdd`.
    /// For `null`, it is empty.
    #[must_use]
    pub fn places(&self) -> Vec<String> {
        match &self.kind {
            TargetKind::Directories { databases, logs } => {
                let mut places = databases.clone();
                places.extend(logs.iter().filter(|log| !databases.contains(log)).cloned());
                places
            }
            TargetKind::Path { path } => vec![path.clone()],
            TargetKind::Device { device } => vec![device.clone()],
            TargetKind::Nfs { exports, .. } => exports.clone(),
            TargetKind::S3 { url, endpoint, .. } => vec![format!("{url} at {endpoint}")],
            TargetKind::Model { model, .. } => vec![format!("model {model}")],
            TargetKind::Null => Vec::new(),
        }
    }

    /// Returns the directories for the databases of a mail store. The databases are distributed
    /// over these directories in turn. The list is empty if the target has no such directories.
    #[must_use]
    pub fn database_directories(&self) -> &[String] {
        match &self.kind {
            TargetKind::Directories { databases, .. } => databases,
            TargetKind::Path { path } => std::slice::from_ref(path),
            _ => &[],
        }
    }

    /// Returns the directories for the logs of a mail store. The list may be empty. The logs are
    /// distributed over them in turn.
    #[must_use]
    pub fn log_directories(&self) -> &[String] {
        match &self.kind {
            TargetKind::Directories { logs, .. } => logs,
            TargetKind::Path { path } => std::slice::from_ref(path),
            _ => &[],
        }
    }

    /// Returns the number of shares (directories or exports) over which the files are distributed.
    /// The number is at least 1.
    #[must_use]
    pub fn share_count(&self) -> u32 {
        let count = match &self.kind {
            TargetKind::Directories { databases, .. } => databases.len(),
            TargetKind::Nfs { exports, .. } => exports.len(),
            _ => 1,
        };
        u32::try_from(count.max(1)).unwrap_or(u32::MAX)
    }
}
