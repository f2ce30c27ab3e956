//! Computes the space that a plan requires, without any I/O.

use super::{ResolvedPlan, Target, TargetKind, Workload};

/// Space that a plan requires in one directory, device or export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryNeed {
    /// Directory, device or export, as named in the plan.
    pub directory: String,
    /// Required space in bytes, including growth reserve and logs.
    pub bytes: u64,
}

impl ResolvedPlan {
    /// Returns the space that the plan requires in each directory of one target, in the order of
    /// the plan.
    ///
    /// If the plan lists a directory twice, the result contains the directory once, with the sum of
    /// the two spaces. A model, `null`, and a device that is used completely require no space.
    #[must_use]
    pub fn required_bytes(&self, target: &Target) -> Vec<DirectoryNeed> {
        let mut needs = SpaceNeeds::default();
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

/// Returns the directory of the database or client with this index. Directories are assigned in
/// turn.
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
struct SpaceNeeds(Vec<DirectoryNeed>);

impl SpaceNeeds {
    fn add(&mut self, directory: Option<&String>, bytes: u64) {
        let Some(directory) = directory else { return };
        match self.0.iter_mut().find(|need| need.directory == *directory) {
            Some(need) => need.bytes = need.bytes.saturating_add(bytes),
            None => self.0.push(DirectoryNeed { directory: directory.clone(), bytes }),
        }
    }
}
