//! Blocking steps before and after a run. They look up paths, and create, fill, list and remove
//! directories and files. Each step is a sequence of calls on an otherwise idle client.

use nfs3_types::nfs3::{
    FSINFO3resok, FSSTAT3resok, Nfs3Option, PATHCONF3resok, fattr3, nfsstat3, sattr3,
};
use thiserror::Error;

use crate::client::{Client, Clock, PollError, Timeout};
use crate::error::{CallError, SubmitError};
use crate::handle::{Handle, ObjectId};
use crate::op::{Completion, CreateHow, Op, Procedure, Stability};
use crate::reply::{DirList, check_status};
use crate::xdr::Reader;

pub use crate::reply::{DirEnd, DirEntry};

/// Size that each READDIR or READDIRPLUS requests, in bytes.
const DIR_BYTES: u32 = 32 * 1024;
/// Maximum number of outstanding WRITEs while a file is filled.
const FILL_DEPTH: usize = 16;
/// Maximum depth of a directory tree that these steps can remove.
const TREE_DEPTH_MAX: u32 = 64;

/// Reason why a step failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SetupError {
    /// A call failed.
    #[error("{} of `{name}`: {error}", procedure.name())]
    Call {
        /// Procedure that failed.
        procedure: Procedure,
        /// Name of the object of the call.
        name: String,
        /// Reason.
        error: CallError,
    },
    /// A call could not be submitted.
    #[error("{} of `{name}`: {error}", procedure.name())]
    Submit {
        /// Procedure that could not be submitted.
        procedure: Procedure,
        /// Name of the object of the call.
        name: String,
        /// Reason.
        error: SubmitError,
    },
    /// Waiting failed.
    #[error(transparent)]
    Poll(#[from] PollError),
    /// Operations are outstanding, but these steps require an idle client.
    #[error("{0} operations are outstanding; set-up steps require an idle client")]
    Busy(u32),
    /// The server created an object but did not return its handle, and a LOOKUP does not find it.
    #[error("the server returned no file handle for `{name}`")]
    NoHandle {
        /// The object.
        name: String,
    },
    /// A name is invalid.
    #[error("`{name}` is not a valid name of a file or directory")]
    Name {
        /// Invalid name.
        name: String,
    },
    /// A directory tree is too deep to be removed.
    #[error("`{name}` is more than {TREE_DEPTH_MAX} directories deep")]
    TooDeep {
        /// Path of the directory at which the limit was reached.
        name: String,
    },
}

/// Returns attributes for SETATTR that set only the permission bits.
#[must_use]
pub fn mode(bits: u32) -> sattr3 {
    sattr3 { mode: Nfs3Option::Some(bits), ..sattr3::default() }
}

/// Returns attributes for SETATTR that set only the size.
#[must_use]
pub fn size(size_bytes: u64) -> sattr3 {
    sattr3 { size: Nfs3Option::Some(size_bytes), ..sattr3::default() }
}

/// Entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The name.
    pub name: Vec<u8>,
    /// File handle, if the caller requested it and the server returned it.
    pub handle: Option<Handle>,
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

impl<C: Clock> Client<C> {
    /// Executes a call. The results can be read until the next call.
    ///
    /// # Errors
    /// Returns a [`SetupError`], whose `name` describes the object of the call.
    pub fn call(&mut self, op: &Op<'_>, name: &[u8]) -> Result<Completion, SetupError> {
        let outstanding = self.core().outstanding();
        if outstanding > 0 {
            return Err(SetupError::Busy(outstanding));
        }
        let procedure = op.procedure();
        let refused = |error| SetupError::Submit { procedure, name: text(name), error };
        self.core_mut().submit_kept(0, op, true).map_err(refused)?;
        let mut out = Vec::with_capacity(1);
        while out.is_empty() {
            self.poll(&mut [], Timeout::Completion, &mut out)?;
        }
        match out.pop() {
            Some(Completion { result: Err(error), .. }) => {
                Err(SetupError::Call { procedure, name: text(name), error })
            }
            Some(completion) => Ok(completion),
            None => Err(SetupError::Busy(self.core().outstanding())),
        }
    }

    /// Checks the status of the last [`Client::call`], and decodes the results that follow it with
    /// `read`.
    fn results<T>(
        &self,
        procedure: Procedure,
        name: &[u8],
        read: impl FnOnce(&mut Reader<'_>) -> Result<T, CallError>,
    ) -> Result<T, SetupError> {
        let mut reader = Reader::new(&self.core().kept);
        check_status(&mut reader)
            .and_then(|()| read(&mut reader))
            .map_err(|error| SetupError::Call { procedure, name: text(name), error })
    }

    /// Returns the attributes of an object.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn attributes(&mut self, object: ObjectId) -> Result<fattr3, SetupError> {
        self.call(&Op::GetAttr { object }, b"handle")?;
        self.results(Procedure::GetAttr, b"handle", |reader| Ok(reader.fixed("attributes")?))
    }

    /// Returns the limits of the file system, which include the preferred and maximum transfer
    /// sizes.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn fs_info(&mut self, object: ObjectId) -> Result<FSINFO3resok, SetupError> {
        self.call(&Op::FsInfo { object }, b"root")?;
        self.results(Procedure::FsInfo, b"root", |reader| Ok(reader.fixed("fsinfo")?))
    }

    /// Returns the total and free space of the file system.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn fs_stat(&mut self, object: ObjectId) -> Result<FSSTAT3resok, SetupError> {
        self.call(&Op::FsStat { object }, b"root")?;
        self.results(Procedure::FsStat, b"root", |reader| Ok(reader.fixed("fsstat")?))
    }

    /// Returns the limits on names and links.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn path_conf(&mut self, object: ObjectId) -> Result<PATHCONF3resok, SetupError> {
        self.call(&Op::PathConf { object }, b"root")?;
        self.results(Procedure::PathConf, b"root", |reader| Ok(reader.fixed("pathconf")?))
    }

    /// Adds an entry to the handle table. The entry belongs to the server of `near`, and its handle
    /// is not yet known.
    fn reserve(&mut self, near: ObjectId) -> Result<ObjectId, SetupError> {
        let object = self.core().objects.get(near.0 as usize);
        let server = object.map(|object| object.server).ok_or(SetupError::Submit {
            procedure: Procedure::Lookup,
            name: "directory".into(),
            error: SubmitError::NoHandle,
        })?;
        Ok(self.register(server, Handle::EMPTY))
    }

    /// Looks up a name in a directory.
    ///
    /// # Errors
    /// Returns a [`SetupError`]. It contains NFS3ERR_NOENT if the name does not exist.
    pub fn lookup(&mut self, dir: ObjectId, name: &[u8]) -> Result<ObjectId, SetupError> {
        let into = self.reserve(dir)?;
        self.call(&Op::Lookup { dir, name, into: Some(into) }, name)?;
        Ok(into)
    }

    /// Looks up a path, which consists of names separated by `/`. The path starts at `dir`; an
    /// empty path refers to `dir` itself.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn lookup_path(&mut self, dir: ObjectId, path: &[u8]) -> Result<ObjectId, SetupError> {
        let mut at = dir;
        for name in components(path)? {
            at = self.lookup(at, name)?;
        }
        Ok(at)
    }

    /// Looks up a path, and creates missing directories, as `mkdir -p` does.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn make_dirs(&mut self, dir: ObjectId, path: &[u8]) -> Result<ObjectId, SetupError> {
        let mut at = dir;
        for name in components(path)? {
            let into = self.reserve(at)?;
            let make = Op::MakeDir { dir: at, name, attributes: &mode(0o755), into: Some(into) };
            match self.call(&make, name) {
                Ok(_) if !self.core().handle(into).is_empty() => at = into,
                Ok(_) => at = self.lookup(at, name)?,
                Err(SetupError::Call {
                    error: CallError::Status(nfsstat3::NFS3ERR_EXIST), ..
                }) => at = self.lookup(at, name)?,
                Err(error) => return Err(error),
            }
        }
        Ok(at)
    }

    /// Creates a file, or opens an existing file without changing it.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn create_file(&mut self, dir: ObjectId, name: &[u8]) -> Result<ObjectId, SetupError> {
        let into = self.reserve(dir)?;
        let attributes = mode(0o644);
        let how = CreateHow::Unchecked(&attributes);
        self.call(&Op::Create { dir, name, how, into: Some(into) }, name)?;
        if self.core().handle(into).is_empty() {
            return self.lookup(dir, name).map_err(|_| SetupError::NoHandle { name: text(name) });
        }
        Ok(into)
    }

    /// Writes `size_bytes` to a file in blocks of `block_bytes`, and commits them. Several WRITEs
    /// are outstanding at a time. `content` fills the block at the given offset.
    ///
    /// # Errors
    /// Returns a [`SetupError`] at the first failure.
    pub fn fill_file(
        &mut self,
        file: ObjectId,
        size_bytes: u64,
        block_bytes: u32,
        content: &mut dyn FnMut(u64, &mut [u8]),
    ) -> Result<(), SetupError> {
        let outstanding = self.core().outstanding();
        if outstanding > 0 {
            return Err(SetupError::Busy(outstanding));
        }
        let block = block_bytes as usize;
        let mut arena = vec![0u8; block * FILL_DEPTH];
        let depth = FILL_DEPTH.min(self.core().config.depth_max as usize);
        let mut free: Vec<usize> = (0..depth).collect();
        let (mut next, mut out) = (0, Vec::with_capacity(depth));
        let procedure = Procedure::Write;
        let name = || format!("file {}", file.0);
        while next < size_bytes || free.len() < depth {
            while next < size_bytes
                && let Some(place) = free.pop()
            {
                let size = u64::from(block_bytes).min(size_bytes - next) as u32;
                let start = place * block;
                content(next, &mut arena[start..start + size as usize]);
                let op = Op::Write {
                    file,
                    offset_bytes: next,
                    size_bytes: size,
                    buffer_offset_bytes: start as u64,
                    stability: Stability::Unstable,
                };
                self.submit(place as u64, &op).map_err(|error| SetupError::Submit {
                    procedure,
                    name: name(),
                    error,
                })?;
                next += u64::from(size);
            }
            self.poll(&mut arena, Timeout::Completion, &mut out)?;
            for completion in out.drain(..) {
                if let Err(error) = completion.result {
                    self.settle(&mut arena)?;
                    return Err(SetupError::Call { procedure, name: name(), error });
                }
                free.push(completion.token as usize);
            }
        }
        let commit = Op::Commit { file, offset_bytes: 0, size_bytes: 0 };
        self.call(&commit, name().as_bytes()).map(|_| ())
    }

    /// Waits until no operation is outstanding.
    fn settle(&mut self, arena: &mut [u8]) -> Result<(), PollError> {
        let mut out = Vec::new();
        while self.core().outstanding() > 0 {
            self.poll(arena, Timeout::Completion, &mut out)?;
            out.clear();
        }
        Ok(())
    }

    /// Lists a directory, without `.` and `..`. With `plus`, the entries also contain the handles
    /// that the server returns.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn list(&mut self, dir: ObjectId, plus: bool) -> Result<Vec<DirectoryEntry>, SetupError> {
        let mut names = Vec::new();
        let (mut cookie, mut verifier) = (0, [0; 8]);
        loop {
            let size_bytes = DIR_BYTES;
            let op = if plus {
                Op::ReadDirPlus { dir, cookie, verifier, size_bytes }
            } else {
                Op::ReadDir { dir, cookie, verifier, size_bytes }
            };
            self.call(&op, b"directory")?;
            let before = cookie;
            let end = self.results(op.procedure(), b"directory", |reader| {
                Ok(DirList::new(*reader, plus)?.walk(|entry| {
                    cookie = entry.cookie;
                    if entry.name != b"." && entry.name != b".." {
                        names.push(DirectoryEntry {
                            name: entry.name.to_vec(),
                            handle: entry.handle,
                        });
                    }
                })?)
            })?;
            // Without this check, a server that repeats the same cookie would cause an endless
            // loop.
            if end.eof || end.entries == 0 || cookie == before {
                return Ok(names);
            }
            verifier = end.verifier;
        }
    }

    /// Removes a file, or a directory with its contents. A missing path is not an error.
    ///
    /// # Errors
    /// [`SetupError`].
    pub fn remove_tree(&mut self, dir: ObjectId, name: &[u8]) -> Result<(), SetupError> {
        self.remove_below(dir, name, 0)
    }

    fn remove_below(&mut self, dir: ObjectId, name: &[u8], depth: u32) -> Result<(), SetupError> {
        use nfs3_types::nfs3::ftype3;
        if depth > TREE_DEPTH_MAX {
            return Err(SetupError::TooDeep { name: text(name) });
        }
        let object = match self.lookup(dir, name) {
            Ok(object) => object,
            Err(SetupError::Call { error: CallError::Status(nfsstat3::NFS3ERR_NOENT), .. }) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if self.attributes(object)?.type_ != ftype3::NF3DIR {
            return self.call(&Op::Remove { dir, name }, name).map(|_| ());
        }
        for inner in self.list(object, false)? {
            self.remove_below(object, &inner.name, depth + 1)?;
        }
        self.call(&Op::RemoveDir { dir, name }, name).map(|_| ())
    }
}

/// Splits a path into its names.
fn components(path: &[u8]) -> Result<Vec<&[u8]>, SetupError> {
    let names: Vec<&[u8]> =
        path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
    match names.iter().find(|name| name.len() > 255 || **name == b".." || **name == b".") {
        Some(name) => Err(SetupError::Name { name: text(name) }),
        None => Ok(names),
    }
}
