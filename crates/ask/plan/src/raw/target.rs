//! `[target]`.

use crate::read::list::{List, OneOrMore, Settings};
use crate::read::section::section;
use crate::read::value::{Count, Integer, Name};
use crate::units::DurationNs;

section! {
    /// System under test. The section contains exactly one of `databases` (with `logs`), `path`,
    /// `device`, `nfs`, `s3`, `model` and `null`. Plimsoll writes its load only to this target. Use
    /// named `[[target]]` sections to compare several systems.
    TargetRaw {
        /// Name of the target in a comparison.
        name: Name | "`target`; required if there are several targets";
        /// Directories for the databases of a mail store. The databases are distributed over them
        /// in turn.
        databases: List<Name> | "none";
        /// Directories for the logs of a mail store. The logs are distributed over them in turn.
        logs: List<Name> | "the directories of the databases";
        /// Directory in which Plimsoll creates its files.
        path: Name | "none";
        /// Absolute path of a block device.
        device: Name | "none";
        /// NFS exports, as `nfs://host[:port]/export`. Plimsoll accesses them without a mount.
        nfs: OneOrMore<Name> | "none";
        /// Number of TCP connections of each client (`nfs`).
        connections: Count = 1;
        /// User id that Plimsoll sends in each call (`nfs`).
        uid: Integer<0> = 0;
        /// Group id that Plimsoll sends in each call (`nfs`).
        gid: Integer<0> = 0;
        /// S3 bucket and prefix: `s3://bucket/prefix`. Plimsoll reads the credentials from the
        /// environment.
        s3: Name | "none";
        /// URL of the object store (`s3`): `https://host:port` or `http://host:port`. The
        /// environment variable `AWS_CA_BUNDLE` can name a file with trusted certificates. Without
        /// it, Plimsoll trusts the certificate authorities of this host.
        endpoint: Name | "required with s3";
        /// Region in the signature of each request (`s3`).
        region: Name = "us-east-1";
        /// Model of a storage system, which runs in virtual time. The value is the name of a
        /// shipped model, or the path of a model file.
        model: Name | "none";
        /// Parameters of the model whose values override those in the model file (`model`).
        set: Settings = "{}";
        /// True if every operation completes immediately, without I/O. Such a run measures the load
        /// generator itself.
        null: bool = false;
        /// Maximum time without any response from the target, for example if a server died or a
        /// device hangs. After this time, the run fails.
        outage_max: DurationNs | "the length of `phases.measure`, but at least 30 s and at most 10 min";
    }
}
