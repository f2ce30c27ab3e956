//! fio engines with an equivalent besides those for local files: an NFS client, an S3 client and
//! metadata engines.

/// Metadata engines and their equivalent metadata operations.
const ON_NAMES: [(&str, &str); 2] = [("filecreate", "create"), ("filestat", "getattr")];
/// Metadata engines without an equivalent, and the reason.
const NO_EQUAL: [(&str, &str); 5] = [
    (
        "filedelete",
        "files must exist before they are removed: use metadata_mix with create and remove",
    ),
    ("filerename", "use metadata_mix with rename"),
    ("dircreate", "directories are not created while measuring; use metadata_mix with create"),
    ("dirstat", "attributes of files are read, not of directories; use metadata_mix with getattr"),
    ("dirdelete", "directories are not removed while measuring; use metadata_mix with remove"),
];

/// True if this module has an equivalent of the engine.
pub(super) fn is_known(engine: &str) -> bool {
    matches!(engine, "nfs" | "http") || metadata_operation(engine).is_some()
}

/// True if such an engine has one operation at a time.
pub(super) fn is_one_by_one(engine: &str) -> bool {
    engine == "http" || metadata_operation(engine).is_some()
}

pub(super) fn metadata_operation(engine: &str) -> Option<&'static str> {
    ON_NAMES.iter().find(|(name, _)| *name == engine).map(|(_, operation)| *operation)
}

/// Returns the reason why a metadata engine has no equivalent.
pub(super) fn missing_equivalent_reason(engine: &str) -> Option<&'static str> {
    NO_EQUAL.iter().find(|(name, _)| *name == engine).map(|(_, why)| *why)
}
