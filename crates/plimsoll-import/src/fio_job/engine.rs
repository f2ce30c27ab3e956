//! Which engines of fio have an equal here, beside those that read and write local files: an NFS client, an S3 client,
//! and operations on names.

/// Engines whose operations are on names, with the metadata operation that each is.
const ON_NAMES: [(&str, &str); 2] = [("filecreate", "create"), ("filestat", "getattr")];
/// Engines on names without an equal, and why.
const NO_EQUAL: [(&str, &str); 5] = [
    (
        "filedelete",
        "files have to be made before they are removed: a plan says metadata_mix with create and remove",
    ),
    ("filerename", "a plan says metadata_mix with rename"),
    ("dircreate", "directories are not made while measuring; a plan says metadata_mix with create"),
    (
        "dirstat",
        "attributes of files are read, not of directories; a plan says metadata_mix with getattr",
    ),
    (
        "dirdelete",
        "directories are not removed while measuring; a plan says metadata_mix with remove",
    ),
];

/// Whether an engine has an equal that this file knows.
pub(super) fn is_known(engine: &str) -> bool {
    matches!(engine, "nfs" | "http") || on_names(engine).is_some()
}

/// Whether such an engine has one operation at a time.
pub(super) fn is_one_by_one(engine: &str) -> bool {
    engine == "http" || on_names(engine).is_some()
}

/// The metadata operation of an engine on names.
pub(super) fn on_names(engine: &str) -> Option<&'static str> {
    ON_NAMES.iter().find(|(name, _)| *name == engine).map(|(_, operation)| *operation)
}

/// Why an engine on names has no equal.
pub(super) fn why_not(engine: &str) -> Option<&'static str> {
    NO_EQUAL.iter().find(|(name, _)| *name == engine).map(|(_, why)| *why)
}
