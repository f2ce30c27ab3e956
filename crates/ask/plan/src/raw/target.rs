//! `[target]`.

use crate::read::list::{List, OneOrMore, Settings};
use crate::read::section::section;
use crate::read::value::{Count, Integer, Name};
use crate::units::DurationNs;

section! {
    /// System under test. The section contains exactly one of `databases` (with `logs`), `path`,
    /// `device`, `nfs`, `s3`, `model` and `null`. Plimsoll writes its load only to this target. To
    /// compare several systems, use `[[target]]` sections with names.
    TargetRaw {
        /// Name of the target in a comparison.
        name: Name | "`target`; required if there are several targets";
        /// Directories for the databases of a mail store. Plimsoll assigns the databases to these
        /// directories in turn.
        databases: List<Name> | "none";
        /// Directories for the logs of a mail store. Plimsoll assigns the logs to these directories
        /// in turn.
        logs: List<Name> | "the directories of the databases";
        /// Directory in which Plimsoll creates its files.
        path: Name | "none";
        /// Absolute path of a block device.
        device: Name | "none";
        /// NFS exports, as `nfs://host[:port]/export`. Plimsoll accesses them without a mount.
        nfs: OneOrMore<Name> | "none";
        /// Number of TCP connections of each client (only with `nfs`).
        connections: Count = 1;
        /// User ID that Plimsoll sends in each call (only with `nfs`).
        uid: Integer<0> = 0;
        /// Group ID that Plimsoll sends in each call (only with `nfs`).
        gid: Integer<0> = 0;
        /// S3 bucket and prefix: `s3://bucket/prefix`. Plimsoll reads the credentials from the
        /// environment.
        s3: Name | "none";
        /// URL of the object store, as `https://host:port` or `http://host:port` (only with `s3`).
        /// The environment variable `AWS_CA_BUNDLE` can name a file with trusted certificates. If
        /// the variable is not set, Plimsoll trusts the certificate authorities of this host.
        endpoint: Name | "required with s3";
        /// Region in the signature of each request (only with `s3`).
        region: Name = "us-east-1";
        /// Model of a storage system, which runs in virtual time. The value is the name of a
        /// shipped model, or the path of a model file.
        model: Name | "none";
        /// Parameter values that override the values in the model file (only with `model`).
        set: Settings = "{}";
        /// True if every operation completes immediately, without I/O. Such a run measures the load
        /// generator itself.
        null: bool = false;
        /// Maximum time without any response from the target, for example because a server has died
        /// or a device hangs. If an outage is longer, the run fails.
        outage_max: DurationNs | "the length of `phases.measure`, but at least 30 s and at most 10 min";
    }
}
