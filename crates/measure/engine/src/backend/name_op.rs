//! Operations that move no data.

use plimsoll_workload::matrix::MetadataKind;

/// Operation on names or attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameOp {
    /// Kind of operation.
    pub kind: MetadataKind,
    /// Number of the client in the stream.
    pub client: u32,
    pub share: u32,
    /// Number of the data file in the file table.
    pub file: u32,
    /// Number of the small file.
    pub name: u64,
    /// Number of the small file after a rename.
    pub new_name: u64,
}
