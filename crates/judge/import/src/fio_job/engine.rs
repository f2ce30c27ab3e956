//! fio engines that access servers or metadata instead of local files, and that Plimsoll can
//! replace. They are an NFS client, an S3 client and metadata engines.

/// Metadata engines, each with the metadata operation that replaces it.
const ON_NAMES: [(&str, &str); 2] = [("filecreate", "create"), ("filestat", "getattr")];
/// Metadata engines that cannot be converted, each with the reason.
const NO_EQUAL: [(&str, &str); 5] = [
    (
        "filedelete",
        "it removes files that must already exist; use metadata_mix with create and remove",
    ),
    ("filerename", "use metadata_mix with rename"),
    (
        "dircreate",
        "Plimsoll does not create directories during a measurement; use metadata_mix with create",
    ),
    (
        "dirstat",
        "Plimsoll reads attributes of files, but not of directories; use metadata_mix with getattr",
    ),
    (
        "dirdelete",
        "Plimsoll does not remove directories during a measurement; use metadata_mix with remove",
    ),
];

/// Returns true if Plimsoll can replace this engine.
pub(super) fn is_known(engine: &str) -> bool {
    matches!(engine, "nfs" | "http") || metadata_operation(engine).is_some()
}

/// Returns true if the engine is one of these and issues one operation at a time.
pub(super) fn is_one_by_one(engine: &str) -> bool {
    engine == "http" || metadata_operation(engine).is_some()
}

pub(super) fn metadata_operation(engine: &str) -> Option<&'static str> {
    ON_NAMES.iter().find(|(name, _)| *name == engine).map(|(_, operation)| *operation)
}

/// Returns the reason why a metadata engine cannot be converted.
pub(super) fn missing_equivalent_reason(engine: &str) -> Option<&'static str> {
    NO_EQUAL.iter().find(|(name, _)| *name == engine).map(|(_, why)| *why)
}
