//! `[target]`.

use crate::read::list::{List, OneOrMore, Settings};
use crate::read::section::section;
use crate::read::value::{Count, Name, Whole};
use crate::units::DurationNs;

section! {
    /// The system under test: exactly one of `databases` (with `logs`), `path`, `device`, `nfs`, `s3`,
    /// `model` and `null`. Nothing else is ever written to.
    TargetRaw {
        /// Its name in a comparison.
        name: Name | "`target`; required with several";
        /// Directories of a mail store's databases, dealt to them in turn.
        databases: List<Name> | "none";
        /// Directories of its logs, dealt to the databases in turn.
        logs: List<Name> | "the directories of the databases";
        /// A directory in which files are made.
        path: Name | "none";
        /// A block device, by its full name.
        device: Name | "none";
        /// NFS exports, driven without a mount: `nfs://host[:port]/export`.
        nfs: OneOrMore<Name> | "none";
        /// Connections per client (`nfs`).
        connections: Count = 1;
        /// User id sent with each call (`nfs`).
        uid: Whole<0> = 0;
        /// Group id sent with each call (`nfs`).
        gid: Whole<0> = 0;
        /// A bucket: `s3://bucket/prefix`. Credentials come from the environment.
        s3: Name | "none";
        /// Where the object store answers (`s3`): `https://host:port` or `http://host:port`. The certificate is
        /// held against the file in `AWS_CA_BUNDLE`, or else against the authorities of this host.
        endpoint: Name | "required with s3";
        /// Region in the signature (`s3`).
        region: Name = "us-east-1";
        /// A storage system in virtual time: the name of a shipped model, or the path of a file.
        model: Name | "none";
        /// Parameters that differ from the model file (`model`).
        set: Settings = "{}";
        /// Every operation completes at once: shows the load generator's own limit.
        null: bool = false;
        /// How long storage that answers nothing is waited for before the run ends as failed: a server
        /// that is gone, a device that hangs.
        outage_max: DurationNs | "as long as `phases.measure`, from 30 s to 10 min";
    }
}
