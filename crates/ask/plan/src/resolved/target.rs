//! Systems under test.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// System under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Name in a comparison; `target` if the only target has no name.
    pub name: String,
    /// Outage timeout in nanoseconds if the plan sets it. [`Target::outage_max_ns`] returns the
    /// timeout that applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage_max_ns: Option<u64>,
    /// Kind of the target.
    #[serde(flatten)]
    pub kind: TargetKind,
}

/// Bounds of the default outage timeout, in ns. The default equals the measuring time if that is
/// within these bounds. A controller failover may take several minutes, which only a long
/// measurement can show.
const OUTAGE_NS: (u64, u64) = (30_000_000_000, 600_000_000_000);

/// Kind of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TargetKind {
    /// Directories of a mail store, which are assigned to databases and logs in turn.
    Directories {
        /// Directories for databases.
        databases: Vec<String>,
        /// Directories for logs.
        logs: Vec<String>,
    },
    /// Directory for files.
    Path {
        /// The directory.
        path: String,
    },
    /// Block device.
    Device {
        /// Full path, such as `/dev/nvme0n1`.
        device: String,
    },
    /// NFS exports, accessed without a mount.
    Nfs {
        /// URLs `nfs://host[:port]/export`. Each export is one share.
        exports: Vec<String>,
        /// Connections per client.
        connections: u32,
        /// User id that each call contains.
        uid: u32,
        /// Group id that each call contains.
        gid: u32,
    },
    /// Bucket of an S3-compatible object store. Credentials are read from the environment.
    S3 {
        /// URL `s3://bucket/prefix`.
        url: String,
        /// URL of the store, such as `http://127.0.0.1:9000`.
        endpoint: String,
        /// Region that requests are signed for.
        region: String,
    },
    /// Model of a storage system in virtual time.
    Model {
        /// Name of a shipped model, or path of a model file.
        model: String,
        /// Parameters that override those in the model file: dotted names and TOML values.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        set: BTreeMap<String, String>,
    },
    /// No storage: every operation completes immediately.
    Null,
}

impl Target {
    /// Returns the outage timeout of a plan that measures for `measure_ns`. This is the timeout in
    /// the plan, or otherwise the measuring time, but at least 30 s and at most 10 min.
    #[must_use]
    pub fn outage_max_ns(&self, measure_ns: u64) -> u64 {
        self.outage_max_ns.unwrap_or_else(|| measure_ns.clamp(OUTAGE_NS.0, OUTAGE_NS.1))
    }

    /// Returns `directories`, `path`, `device`, `nfs`, `s3`, `model` or `null`.
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

    /// Returns the locations as text for users: directories, device, exports or address; `model
    /// single-hdd` for a model; empty for null.
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

    /// Returns the directories for the databases of a mail store, which are assigned in turn; may
    /// be empty.
    #[must_use]
    pub fn database_directories(&self) -> &[String] {
        match &self.kind {
            TargetKind::Directories { databases, .. } => databases,
            TargetKind::Path { path } => std::slice::from_ref(path),
            _ => &[],
        }
    }

    /// Returns the directories for the logs of a mail store, which are assigned in turn; may be
    /// empty.
    #[must_use]
    pub fn log_directories(&self) -> &[String] {
        match &self.kind {
            TargetKind::Directories { logs, .. } => logs,
            TargetKind::Path { path } => std::slice::from_ref(path),
            _ => &[],
        }
    }

    /// Returns the number of independent shares (directories or exports) that the files are
    /// distributed over; at least 1.
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
