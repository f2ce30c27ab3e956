//! Space that a plan needs, by arithmetic alone.

use super::{ResolvedPlan, Target, TargetKind, Workload};

/// Bytes that a plan needs in one directory (or on one device or export).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryNeed {
    /// The directory, device or export as the plan names it.
    pub directory: String,
    /// Bytes, growth reserve and logs included.
    pub bytes: u64,
}

impl ResolvedPlan {
    /// Bytes needed per directory of one target, in the order in which the plan names them.
    ///
    /// Directories that are named twice appear once, with the sum. A device that is taken whole, a
    /// model and `null` need none.
    #[must_use]
    pub fn required_bytes(&self, target: &Target) -> Vec<DirectoryNeed> {
        let mut needs = Needs::default();
        match &self.workload {
            Workload::Mailbox(store) => {
                let databases = target.database_directories();
                let logs = target.log_directories();
                for i in 0..store.databases as usize {
                    needs.add(deal(databases, i), store.database_capacity_bytes);
                    needs.add(deal(logs, i), store.log_bytes_per_database());
                }
            }
            Workload::Matrix(matrix) => {
                let places = places(target);
                for files in matrix.streams.iter().map(|s| &s.files) {
                    let Some(size) = files.file_size_bytes else { continue };
                    let per_share = size.saturating_mul(u64::from(files.files_per_share));
                    for share in 0..files.shares as usize {
                        needs.add(deal(&places, share), per_share);
                    }
                }
            }
        }
        needs.0
    }
}

/// Things are dealt to places in turn.
fn deal(places: &[String], index: usize) -> Option<&String> {
    places.get(index % places.len().max(1))
}

fn places(target: &Target) -> Vec<String> {
    match &target.kind {
        TargetKind::Directories { databases, .. } => databases.clone(),
        TargetKind::Path { path } => vec![path.clone()],
        TargetKind::Device { device } => vec![device.clone()],
        TargetKind::Nfs { exports, .. } => exports.clone(),
        TargetKind::S3 { url, .. } => vec![url.clone()],
        TargetKind::Model { .. } | TargetKind::Null => Vec::new(),
    }
}

#[derive(Default)]
struct Needs(Vec<DirectoryNeed>);

impl Needs {
    fn add(&mut self, directory: Option<&String>, bytes: u64) {
        let Some(directory) = directory else { return };
        match self.0.iter_mut().find(|need| need.directory == *directory) {
            Some(need) => need.bytes = need.bytes.saturating_add(bytes),
            None => self.0.push(DirectoryNeed { directory: directory.clone(), bytes }),
        }
    }
}
