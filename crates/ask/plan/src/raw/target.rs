//! `[target]`.

use crate::read::list::{List, OneOrMore, Settings};
use crate::read::section::section;
use crate::read::value::{Count, Integer, Name};
use crate::units::DurationNs;

section! {
    /// System under test: exactly one of `databases` (with `logs`), `path`, `device`, `nfs`, `s3`,
    /// `model` and `null`. Plimsoll never writes to anything else. Use `[[target]]` sections with
    /// names to compare several.
    TargetRaw {
        /// Name in a comparison.
        name: Name | "`target`; required with several";
        /// Directories for a mail store's databases, assigned in turn.
        databases: List<Name> | "none";
        /// Directories for its logs, assigned to the databases in turn.
        logs: List<Name> | "the directories of the databases";
        /// Directory for the files.
        path: Name | "none";
        /// Full path of a block device.
        device: Name | "none";
        /// NFS exports, accessed without a mount: `nfs://host[:port]/export`.
        nfs: OneOrMore<Name> | "none";
        /// Connections per client (`nfs`).
        connections: Count = 1;
        /// User id in each call (`nfs`).
        uid: Integer<0> = 0;
        /// Group id in each call (`nfs`).
        gid: Integer<0> = 0;
        /// Bucket: `s3://bucket/prefix`. Credentials are read from the environment.
        s3: Name | "none";
        /// URL of the object store (`s3`): `https://host:port` or `http://host:port`. `AWS_CA_BUNDLE`
        /// names a file of trusted certificates; without it, this host's authorities are trusted.
        endpoint: Name | "required with s3";
        /// Region in the signature (`s3`).
        region: Name = "us-east-1";
        /// Model of a storage system in virtual time: name of a shipped model, or path of a file.
        model: Name | "none";
        /// Parameters that override the model file (`model`).
        set: Settings = "{}";
        /// True if every operation completes at once, which measures the load generator.
        null: bool = false;
        /// Time without any response (dead server, hung device) after which the run fails.
        outage_max: DurationNs | "as long as `phases.measure`, from 30 s to 10 min";
    }
}
