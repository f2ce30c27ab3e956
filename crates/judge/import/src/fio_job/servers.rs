//! Converts jobs that access servers (NFS or S3), and jobs that measure metadata operations.

use super::place::{self, Place};
use super::setting::Setting;
use super::stream::Reader;

/// Metadata operations of a plan.
const OPERATIONS: [&str; 8] =
    ["getattr", "lookup", "access", "readdir", "create", "remove", "rename", "setattr"];
impl Reader<'_> {
    /// Returns the target of an NFS or S3 engine. If the job does not state the target, records an
    /// error and returns `None`.
    pub(super) fn servers(&mut self, engine: &str) -> Option<Place> {
        if engine == "nfs" {
            let url = self.text_of("nfs_url").map(|url| url.split('?').next().unwrap_or(url));
            let Some(url) = url.filter(|url| url.starts_with("nfs://")) else {
                self.reject("ioengine", "requires an export", "set nfs_url=nfs://host/export");
                return None;
            };
            return Some(Place::Nfs(url.trim_end_matches('/').to_owned()));
        }
        if self.text_of("http_mode") != Some("s3") {
            let why = "uses WebDAV or Swift, which Plimsoll does not support";
            self.reject("ioengine", why, "use http_mode=s3 if the store supports it");
            return None;
        }
        let names = self.text_of("filename").map(place::names).unwrap_or_default();
        let path = names.first().map(|name| name.trim_matches('/').to_owned());
        let Some(bucket) = path.as_deref().and_then(|path| path.split('/').next()) else {
            self.reject("ioengine", "requires a bucket", "use filename=/bucket/object");
            return None;
        };
        let scheme = match self.text_of("https") {
            None | Some("off" | "0") => "http",
            Some(_) => "https",
        };
        if self.text_of("https") == Some("insecure") {
            self.remark(
                "https",
                "accepts any certificate in fio; Plimsoll always checks the certificate",
            );
        }
        // The plan must not contain the key itself.
        for name in ["http_s3_key", "http_s3_keyid"] {
            if self.get(name).is_some() {
                let text = "is not converted; Plimsoll reads credentials from the environment";
                self.note(&format!("`{name}` {text}"));
            }
        }
        let host = self.text_of("http_host").unwrap_or("localhost");
        Some(Place::S3 {
            url: format!("s3://{bucket}/plimsoll"),
            endpoint: format!("{scheme}://{host}"),
            region: self.text_of("http_s3_region").map(str::to_owned),
        })
    }

    /// Sets the metadata operation that replaces a metadata engine.
    pub(super) fn names(&mut self, operation: &'static str) {
        let share = |word: &'static str| (word, if word == operation { 100.0 } else { 0.0 });
        self.set("metadata", 100_u64);
        self.set("metadata_mix", Setting::Shares(OPERATIONS.map(share).to_vec()));
        self.remark(
            "ioengine",
            "is converted to metadata operations; the plan repeats them for a certain time, but fio \
             runs one operation for each file",
        );
    }
}
