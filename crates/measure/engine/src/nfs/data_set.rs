//! The directory that the run created on each export, with its files and their content before the
//! load.
//!
//! ```text
//! EXPORT/plimsoll-NAME/plimsoll.json     owner of the directory
//! EXPORT/plimsoll-NAME/s000/f00000 …     data files of a share
//! EXPORT/plimsoll-NAME/s000/small/m…     its small files, for operations on names
//! ```
//!
//! The shares of all streams are numbered consecutively, in the order of the streams in the plan.
//!
//! If a directory has the name that the run would use but contains no manifest, the directory does
//! not belong to Plimsoll and the run rejects it. The run creates files with a guarded CREATE. It
//! therefore never opens an existing file for writing.

use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;

use nfs3_types::nfs3::{ftype3, nfsstat3};
use plimsoll_nfs::mount::{Export, mount};
use plimsoll_nfs::setup::{SetupError, mode, size};
use plimsoll_nfs::{
    CallError, Client, Config, CreateHow, Handle, Monotonic, NfsUrl, ObjectId, Op, Procedure,
};
use plimsoll_sys::SysError;
use plimsoll_workload::matrix::{FileSet, name_text};

use super::{Calls, failed};
use crate::{EngineError, stop_request};

/// Permissions of data files. SETATTR operations set the same permissions again.
pub(super) const MODE: u32 = 0o644;
/// Name of the file that contains the name of a directory's owner.
const MANIFEST: &str = "plimsoll.json";
/// Maximum size of a transfer before the load starts, in bytes.
const BLOCK_BYTES: u32 = 256 * 1024;

/// Parameters of a data set: the exports of a run, and the files to create on them.
#[derive(Clone, Debug)]
pub struct NfsDataSetRequest<'a> {
    /// Name of the plan.
    pub name: &'a str,
    /// URLs of the exports, `nfs://…`. Share `s` of a stream is on export `s mod exports`.
    pub exports: &'a [String],
    /// User id with which calls are made if the URL contains no user id.
    pub uid: u32,
    /// Group id with which calls are made if the URL contains no group id.
    pub gid: u32,
    /// Numbers and sizes of each stream's files. The numbers of a stream's shares follow the
    /// numbers of the previous stream's shares.
    pub files: &'a [FileSet],
    /// First XID that the client uses. It is different for each client of a run.
    pub xid_seed: u32,
    /// Time limit for a call in ns. If the server sends no reply in this time, the call fails.
    pub outage_max_ns: u64,
}

/// NFS file handles of the files and directories in a share.
#[derive(Clone, Debug)]
pub struct Share {
    /// Export on which the share is stored.
    pub export: Export,
    /// Handle of the directory that contains the data files.
    pub data: Handle,
    /// Handle of the directory that contains the small files.
    pub small: Handle,
    pub files: Vec<Handle>,
}

/// Name of a data file. It is built without a memory allocation.
#[derive(Clone, Copy)]
pub(crate) struct DataName([u8; 11]);

impl DataName {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for DataName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{}", char::from(*byte)))
    }
}

/// Returns the name of the file that has this number in a share. The name consists of `f` and ten
/// digits.
pub(crate) fn data_name(number: u32) -> DataName {
    let mut name = [b'0'; 11];
    name[0] = b'f';
    let mut rest = number;
    for digit in name[1..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    DataName(name)
}

/// An export. Its directories are referenced by their ids in the NFS client that prepares the data.
struct MountedExport {
    url: String,
    export: Export,
    root: ObjectId,
    own: ObjectId,
}

/// A share. Its directories and files are referenced by their ids in the NFS client that prepares
/// the data.
struct OwnShare {
    /// Index of the export on which the share is stored.
    export: usize,
    data: ObjectId,
    small: ObjectId,
    files: Vec<ObjectId>,
    file_size_bytes: u64,
}

/// Directories and files that a run created on its exports.
pub struct NfsDataSet {
    pub(super) client: Client<Monotonic>,
    exports: Vec<MountedExport>,
    own_name: String,
    /// Shares of all streams. The streams are in the order of the plan.
    shares: Vec<OwnShare>,
    /// Counters of this client's calls when they were last reported.
    reported_calls: Calls,
    /// True if the data of an earlier run was removed before this data is created.
    pub replaced: bool,
}

impl fmt::Debug for NfsDataSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NfsDataSet({} on {} exports)", self.own_name, self.exports.len())
    }
}

pub(crate) fn has_status(error: &SetupError, status: nfsstat3) -> bool {
    matches!(error, SetupError::Call { error: CallError::Status(found), .. } if *found == status)
}

impl NfsDataSet {
    /// Removes the files of an earlier run whose plan has the same name. Creates the directories
    /// and the empty files.
    ///
    /// # Errors
    /// Fails if an export can't be mounted, or if it is full or read-only. Also fails if it
    /// contains a file or directory of this name that Plimsoll did not create.
    pub fn create(request: &NfsDataSetRequest<'_>) -> Result<Self, EngineError> {
        let config = Config {
            depth_max: 64,
            size_bytes_max: BLOCK_BYTES,
            give_up_after_ns: request.outage_max_ns,
            histograms: false,
            xid_seed: request.xid_seed,
            ..Config::default()
        };
        let mut client = Client::new(config, Monotonic).map_err(|error| {
            let source = SysError::new("epoll_create1", error.raw_os_error());
            EngineError::system("creating an NFS client", source)
        })?;
        client.fail_calls_when(stop_request::has_timed_out);
        let mut data_set = Self {
            client,
            exports: Vec::new(),
            own_name: format!("plimsoll-{}", request.name),
            shares: Vec::new(),
            reported_calls: Calls::default(),
            replaced: false,
        };
        let exports = request.exports.len();
        for (number, url) in request.exports.iter().enumerate() {
            let bytes = |set: &FileSet| {
                let here = (number..set.shares as usize).step_by(exports).count() as u64;
                here * u64::from(set.files_per_share) * set.file_size_bytes
            };
            data_set.mount_export(request, url, request.files.iter().map(bytes).sum())?;
        }
        for set in request.files {
            for share in 0..set.shares {
                data_set.make_share(share as usize % exports.max(1), set)?;
            }
        }
        Ok(data_set)
    }

    /// Mounts an export and creates the directory of the run on it.
    fn mount_export(
        &mut self,
        request: &NfsDataSetRequest<'_>,
        text: &str,
        needed_bytes: u64,
    ) -> Result<(), EngineError> {
        let url = NfsUrl::parse(text).map_err(|error| EngineError::Config(error.to_string()))?;
        let url = NfsUrl {
            uid: url.uid.or(Some(request.uid)),
            gid: url.gid.or(Some(request.gid)),
            ..url
        };
        let doing = |what: &str| format!("{what} {text}");
        let export = mount(&url).map_err(|error| failed(doing("mounting"), &error))?;
        let server = self
            .client
            .add_server(&export.server(1))
            .map_err(|error| failed(doing("connecting to"), &error))?;
        let root = self.client.register(server, export.root);
        let setup = |error: SetupError| failed(doing("preparing"), &error);
        self.clear_old(root, text)?;
        let space = self.client.fs_stat(root).map_err(setup)?;
        if space.abytes < needed_bytes {
            return Err(EngineError::TooSmall {
                path: text.into(),
                needed_bytes,
                free_bytes: space.abytes,
            });
        }
        let own = self.client.make_dirs(root, self.own_name.as_bytes()).map_err(setup)?;
        let manifest = self.client.create_file(own, MANIFEST.as_bytes()).map_err(setup)?;
        let text_of = format!("{{\"plimsoll\": 1, \"plan\": {:?}}}\n", request.name);
        let bytes = text_of.as_bytes();
        self.client
            .fill_file(manifest, bytes.len() as u64, BLOCK_BYTES, &mut |offset, block| {
                let from = offset as usize;
                block.copy_from_slice(&bytes[from..from + block.len()]);
            })
            .map_err(setup)?;
        self.exports.push(MountedExport { url: text.to_owned(), export, root, own });
        Ok(())
    }

    /// Removes the files of an earlier run. Fails if the directory contains other files.
    fn clear_old(&mut self, root: ObjectId, url: &str) -> Result<(), EngineError> {
        let name = self.own_name.clone();
        let setup = |error: SetupError| failed(format!("reading {name} on {url}"), &error);
        let old = match self.client.lookup(root, self.own_name.as_bytes()) {
            Ok(old) => old,
            Err(error) if has_status(&error, nfsstat3::NFS3ERR_NOENT) => return Ok(()),
            Err(error) => return Err(setup(error)),
        };
        let is_dir = self.client.attributes(old).map_err(setup)?.type_ == ftype3::NF3DIR;
        let ours = match self.client.lookup(old, MANIFEST.as_bytes()) {
            Ok(_) => true,
            Err(error) if has_status(&error, nfsstat3::NFS3ERR_NOENT) => false,
            Err(_) if !is_dir => false,
            Err(error) => return Err(setup(error)),
        };
        if !ours {
            let path = format!("{url}: {}", self.own_name);
            let source = SysError::new("create", libc::EEXIST).at(path.as_ref());
            return Err(EngineError::system("creating the run's directory", source));
        }
        self.client.remove_tree(root, self.own_name.as_bytes()).map_err(setup)?;
        self.replaced = true;
        Ok(())
    }

    fn make_share(&mut self, export: usize, set: &FileSet) -> Result<(), EngineError> {
        let Some(MountedExport { own, url, .. }) = self.exports.get(export) else {
            return Err(EngineError::Config("the target has no export".to_owned()));
        };
        let setup = |error: SetupError| failed(format!("creating files on {url}"), &error);
        check_stop()?;
        let name = format!("s{:03}", self.shares.len());
        let data = self.client.make_dirs(*own, name.as_bytes()).map_err(setup)?;
        let small = self.client.make_dirs(data, b"small").map_err(setup)?;
        let mut files = Vec::with_capacity(set.files_per_share as usize);
        for file in 0..set.files_per_share {
            check_stop()?;
            files.push(
                create_guarded(&mut self.client, data, data_name(file).as_bytes())
                    .map_err(setup)?,
            );
        }
        let file_size_bytes = set.file_size_bytes;
        self.shares.push(OwnShare { export, data, small, files, file_size_bytes });
        Ok(())
    }

    /// Creates the small files that must exist when the clients of a stream start. Removes all
    /// other small files. `shares` contains the numbers of the stream's shares.
    ///
    /// # Errors
    /// Fails if a call fails.
    pub fn reset_small(
        &mut self,
        shares: Range<usize>,
        clients: u32,
        names_per_client: u32,
    ) -> Result<(), EngineError> {
        let setup = |error: SetupError| failed("creating small files", &error);
        let of = shares.len().max(1);
        let small = self.shares.get(shares).unwrap_or_default().iter().map(|share| share.small);
        for (share, small) in small.enumerate() {
            for found in self.client.list(small, false).map_err(setup)? {
                let name = &found.name;
                self.client.call(&Op::Remove { dir: small, name }, name).map_err(setup)?;
            }
            for client in (share as u32..clients).step_by(of) {
                check_stop()?;
                for number in 0..names_per_client {
                    let name = name_text(client, number.into());
                    create_guarded(&mut self.client, small, name.as_bytes()).map_err(setup)?;
                }
            }
        }
        Ok(())
    }

    /// Sets the size of every data file without writing data.
    ///
    /// # Errors
    /// Fails if a call fails.
    pub fn truncate(&mut self) -> Result<(), EngineError> {
        for share in &self.shares {
            let change = size(share.file_size_bytes);
            for file in &share.files {
                self.client
                    .call(&Op::SetAttr { object: *file, change: &change }, b"file")
                    .map_err(|error| failed("setting the size of the data files", &error))?;
            }
        }
        Ok(())
    }

    /// Returns the file handles of all shares.
    #[must_use]
    pub fn shares(&self) -> Vec<Share> {
        let handle = |object: &ObjectId| self.client.core().handle(*object);
        let share = |share: &OwnShare| {
            Some(Share {
                export: self.exports.get(share.export)?.export.clone(),
                data: handle(&share.data),
                small: handle(&share.small),
                files: share.files.iter().map(handle).collect(),
            })
        };
        // Each share is on an existing export, so no share is omitted.
        self.shares.iter().filter_map(share).collect()
    }

    /// Returns the name of a data file, which is used in messages. It contains the export, the
    /// share and the file.
    #[must_use]
    pub fn name_of(&self, file: u32) -> String {
        let mut within = file as usize;
        for (number, share) in self.shares.iter().enumerate() {
            if within < share.files.len() {
                let url = self.exports.get(share.export).map_or("", |export| export.url.as_str());
                let name = data_name(within as u32);
                return format!("{url} {}/s{number:03}/{name}", self.own_name);
            }
            within -= share.files.len();
        }
        format!("{} file {file}", self.own_name)
    }

    /// Returns the addresses of the servers. Each address is listed once.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let mut all: Vec<SocketAddr> =
            self.exports.iter().map(|export| export.export.nfs).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns the locations of the data. There is one directory for each export.
    #[must_use]
    pub fn directories(&self) -> Vec<String> {
        self.exports.iter().map(|export| format!("{} {}", export.url, self.own_name)).collect()
    }

    /// Returns the counters of the calls that this client made since the previous call of this
    /// method.
    #[must_use]
    pub fn calls(&mut self) -> Calls {
        let mut counted = Calls::default();
        counted.count(self.client.core().stats());
        let mut calls = counted.clone().since(&self.reported_calls);
        self.reported_calls = counted;
        for event in self.client.stats_mut().take_events() {
            calls.note(&event);
        }
        calls
    }

    /// Removes everything that the run created. If a server does not respond for `timeout_ns`, the
    /// removal ends.
    ///
    /// # Errors
    /// Fails if a call fails, or if the operator's request to stop shortened the wait for a server.
    pub fn remove(mut self, timeout_ns: u64) -> Result<(), EngineError> {
        self.client.give_up_after(timeout_ns);
        for export in &self.exports {
            self.client
                .remove_tree(export.root, self.own_name.as_bytes())
                .map_err(|error| failed(format!("removing data from {}", export.url), &error))?;
        }
        Ok(())
    }
}

/// Fails after the operator has requested a stop.
///
/// # Errors
/// [`EngineError::Stopped`] if the operator has requested a stop.
fn check_stop() -> Result<(), EngineError> {
    if stop_request::is_requested() { Err(EngineError::Stopped) } else { Ok(()) }
}

/// Creates a file. Fails if it exists.
fn create_guarded(
    client: &mut Client<Monotonic>,
    dir: ObjectId,
    name: &[u8],
) -> Result<ObjectId, SetupError> {
    let attributes = mode(MODE);
    let into = client.register(server_of(client, dir)?, Handle::EMPTY);
    let how = CreateHow::Guarded(&attributes);
    client.call(&Op::Create { dir, name, how, into: Some(into) }, name)?;
    if client.core().handle(into).is_empty() { client.lookup(dir, name) } else { Ok(into) }
}

fn server_of(
    client: &Client<Monotonic>,
    object: ObjectId,
) -> Result<plimsoll_nfs::ServerId, SetupError> {
    client.core().server_of(object).ok_or(SetupError::Submit {
        procedure: Procedure::Create,
        name: "directory".to_owned(),
        error: plimsoll_nfs::SubmitError::NoHandle,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_files_have_names_of_one_length() {
        assert_eq!(data_name(0).to_string(), "f0000000000");
        assert_eq!(data_name(u32::MAX).to_string(), "f4294967295");
    }
}
