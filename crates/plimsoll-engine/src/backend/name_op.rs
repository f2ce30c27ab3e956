//! Operations that move no data.

use plimsoll_workload::matrix::MetadataKind;

/// An operation on names or attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameOp {
    /// What it does.
    pub kind: MetadataKind,
    /// The client, by its number in the stream.
    pub client: u32,
    /// The share.
    pub share: u32,
    /// The data file, by its number in the file table.
    pub file: u32,
    /// Number of the small file.
    pub name: u64,
    /// Its number after a rename.
    pub new_name: u64,
}
