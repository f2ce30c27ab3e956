//! `[target]`.

use crate::read::list::{List, OneOrMore, Settings};
use crate::read::section::section;
use crate::read::value::{Count, Integer, Name};
use crate::units::DurationNs;

section! {
    /// System under test: exactly one of `databases` (with `logs`), `path`, `device`, `nfs`, `s3`,
    /// `model` and `null`. Plimsoll writes to nothing else. Use `[[target]]` sections with names to
    /// compare several systems.
    TargetRaw {
        /// Name in a comparison.
        name: Name | "`target`; required if there are several targets";
        /// Directories for the databases of a mail store, which are assigned in turn.
        databases: List<Name> | "none";
        /// Directories for the logs of a mail store, assigned to the databases in turn.
        logs: List<Name> | "the directories of the databases";
        /// Directory that the files are created in.
        path: Name | "none";
        /// Full path of a block device.
        device: Name | "none";
        /// NFS exports, accessed without a mount: `nfs://host[:port]/export`.
        nfs: OneOrMore<Name> | "none";
        /// TCP connections per client (`nfs`).
        connections: Count = 1;
        /// User id that each call contains (`nfs`).
        uid: Integer<0> = 0;
        /// Group id that each call contains (`nfs`).
        gid: Integer<0> = 0;
        /// Bucket: `s3://bucket/prefix`. Credentials are read from the environment.
        s3: Name | "none";
        /// URL of the object store (`s3`): `https://host:port` or `http://host:port`.
        /// `AWS_CA_BUNDLE` is a file of trusted certificates; without it, this host's certificate
        /// authorities are trusted.
        endpoint: Name | "required with s3";
        /// Region that requests are signed for (`s3`).
        region: Name = "us-east-1";
        /// Model of a storage system in virtual time: name of a shipped model, or path of a model
        /// file.
        model: Name | "none";
        /// Parameters that override those in the model file (`model`).
        set: Settings = "{}";
        /// True if every operation completes immediately. This measures the load generator itself.
        null: bool = false;
        /// Time without any response, for example from a dead server or hung device, after which
        /// the run fails.
        outage_max: DurationNs | "the length of `phases.measure`, but at least 30 s and at most 10 min";
    }
}
