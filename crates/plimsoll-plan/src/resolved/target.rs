//! The systems under test.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A system under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Its name in a comparison; `target` when there is only one and it has none.
    pub name: String,
    /// How long it is waited for while it answers nothing, in nanoseconds, where the plan states it:
    /// [`Target::outage_max_ns`] gives what holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage_max_ns: Option<u64>,
    /// What it is.
    #[serde(flatten)]
    pub kind: TargetKind,
}

/// How long storage that answers nothing is waited for, where the plan does not say, in ns: as long as it
/// is measured, within these bounds. A controller's failover takes up to some minutes, which only a long
/// measurement can show.
const OUTAGE_NS: (u64, u64) = (30_000_000_000, 600_000_000_000);

/// What a target is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TargetKind {
    /// Directories of a mail store; databases and logs are dealt to them in turn.
    Directories {
        /// Directories of databases.
        databases: Vec<String>,
        /// Directories of logs.
        logs: Vec<String>,
    },
    /// A directory in which files are made.
    Path {
        /// The directory.
        path: String,
    },
    /// A block device.
    Device {
        /// Its full name, such as `/dev/nvme0n1`.
        device: String,
    },
    /// NFS exports, driven without a mount.
    Nfs {
        /// `nfs://host[:port]/export`, one share each.
        exports: Vec<String>,
        /// Connections per client.
        connections: u32,
        /// User id sent with each call.
        uid: u32,
        /// Group id sent with each call.
        gid: u32,
    },
    /// A bucket of an S3-compatible object store. Credentials come from the environment.
    S3 {
        /// `s3://bucket/prefix`.
        url: String,
        /// Where the store answers, such as `http://127.0.0.1:9000`.
        endpoint: String,
        /// Region in the signature.
        region: String,
    },
    /// A storage system in virtual time.
    Model {
        /// Name of a shipped model, or path of a model file.
        model: String,
        /// Parameters that differ from the model file: dotted name and TOML value.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        set: BTreeMap<String, String>,
    },
    /// Nothing: every operation completes at once.
    Null,
}

impl Target {
    /// How long it is waited for while it answers nothing, in a plan that measures for `measure_ns`: what
    /// the plan states, or as long as it measures, from 30 s to 10 minutes.
    #[must_use]
    pub fn outage_max_ns(&self, measure_ns: u64) -> u64 {
        self.outage_max_ns.unwrap_or_else(|| measure_ns.clamp(OUTAGE_NS.0, OUTAGE_NS.1))
    }

    /// `directories`, `path`, `device`, `nfs`, `s3`, `model` or `null`.
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

    /// Where it is, as people name it: directories, device, exports, address; `model single-hdd`; empty for nothing.
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

    /// Directories that a mail store's databases are dealt to in turn; empty where there are none.
    #[must_use]
    pub fn database_directories(&self) -> &[String] {
        match &self.kind {
            TargetKind::Directories { databases, .. } => databases,
            TargetKind::Path { path } => std::slice::from_ref(path),
            _ => &[],
        }
    }

    /// Directories that a mail store's logs are dealt to in turn; empty where there are none.
    #[must_use]
    pub fn log_directories(&self) -> &[String] {
        match &self.kind {
            TargetKind::Directories { logs, .. } => logs,
            TargetKind::Path { path } => std::slice::from_ref(path),
            _ => &[],
        }
    }

    /// Independent places that files are dealt to in turn: directories or exports, at least 1.
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
