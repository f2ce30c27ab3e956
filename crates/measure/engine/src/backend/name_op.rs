//! Metadata operations, which transfer no data.

use plimsoll_workload::matrix::MetadataKind;

/// Operation on the name or the attributes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameOp {
    pub kind: MetadataKind,
    /// Number of the client within its stream.
    pub client: u32,
    pub share: u32,
    /// Index of the data file in the file table.
    pub file: u32,
    /// Number of the small file on which the operation works.
    pub name: u64,
    /// New number of the small file, if the operation is a rename.
    pub new_name: u64,
}
