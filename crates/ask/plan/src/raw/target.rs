//! `[target]`.

use crate::read::list::{List, OneOrMore, Settings};
use crate::read::section::section;
use crate::read::value::{Count, Integer, Name};
use crate::units::DurationNs;

section! {
    /// System under test. The section contains exactly one of `databases` (with `logs`), `path`,
    /// `device`, `nfs`, `s3`, `model` and `null`. To compare several systems, use `[[target]]`
    /// sections with names.
    TargetRaw {
        /// Name of the target in a comparison.
        name: Name | "`target`; required if there are several targets";
        /// Directories to which Plimsoll assigns the databases of a mail store in turn.
        databases: List<Name> | "none";
        /// Directories to which Plimsoll assigns the logs of a mail store in turn.
        logs: List<Name> | "the directories of the databases";
        /// Directory in which Plimsoll creates its files.
        path: Name | "none";
        /// Absolute path of a block device.
        device: Name | "none";
        /// NFS exports, as `nfs://host[:port]/export`. Plimsoll accesses them without a mount.
        nfs: OneOrMore<Name> | "none";
        /// Number of TCP connections of each client (only with `nfs`).
        connections: Count = 1;
        /// User ID in each call (only with `nfs`).
        uid: Integer<0> = 0;
        /// Group ID in each call (only with `nfs`).
        gid: Integer<0> = 0;
        /// S3 bucket and prefix: `s3://bucket/prefix`. Plimsoll reads the credentials from the
        /// environment.
        s3: Name | "none";
        /// URL of the object store, as `https://host:port` or `http://host:port` (only with `s3`).
        /// The environment variable `AWS_CA_BUNDLE` can name a file with trusted certificates,
        /// which replace the certificate authorities of this host.
        endpoint: Name | "required with s3";
        /// Region in the signature of each request (only with `s3`).
        region: Name = "us-east-1";
        /// Name of a shipped [model](models.md), or path of a model file. A model runs in virtual
        /// time.
        model: Name | "none";
        /// Parameters that override those in the model file (only with `model`).
        set: Settings = "{}";
        /// True if every operation completes immediately, without I/O. Such a run measures the load
        /// generator itself.
        null: bool = false;
        /// Maximum time without any response from the target. If an outage is longer, the run
        /// fails.
        outage_max: DurationNs | "the length of `phases.measure`, but at least 30 s and at most 10 min";
    }
}
