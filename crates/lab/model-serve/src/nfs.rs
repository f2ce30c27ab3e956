//! The file system that the NFS server serves. Each call changes the tree immediately, but its
//! reply is sent at the time that the model computes.
//!
//! Every write is stable when its reply is sent, because a model completes writes when they are
//! durable. COMMIT therefore changes nothing, but the model performs a flush for it.

use std::sync::{PoisonError, RwLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use nfs3_server::vfs::{
    DirEntryPlus, FileHandleU64, NextResult, NfsFileSystem, NfsReadFileSystem, ReadDirPlusIterator,
};
use nfs3_types::nfs3::{
    createverf3, fattr3, filename3, ftype3, nfspath3, nfsstat3, nfstime3, sattr3, set_mode3,
    set_size3, specdata3, stable_how,
};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::pacer::QueuedRequest;
use crate::tree::{Facts, ROOT, Tree, TreeError};
use plimsoll_model::blocks::{Action, Request};

/// Files whose access times a model determines.
pub(super) struct ModelFiles {
    tree: RwLock<Tree>,
    asks: UnboundedSender<QueuedRequest>,
    nodes: u16,
    /// End of the last transfer of each file, to recognise sequential transfers. The index is the
    /// file number modulo the array's size.
    ends: Vec<std::sync::atomic::AtomicU64>,
}

/// Maximum size of a READ in bytes, which the server reports as `rtmax`.
const READ_BYTES_MAX: u32 = 1 << 20;

/// Number of files whose last transfers are stored separately.
const ENDS: usize = 4096;

fn status(error: TreeError) -> nfsstat3 {
    match error {
        TreeError::NotFound => nfsstat3::NFS3ERR_NOENT,
        TreeError::Exists => nfsstat3::NFS3ERR_EXIST,
        TreeError::NotDirectory => nfsstat3::NFS3ERR_NOTDIR,
        TreeError::IsDirectory => nfsstat3::NFS3ERR_INVAL,
        TreeError::NotEmpty => nfsstat3::NFS3ERR_NOTEMPTY,
        TreeError::NoSpace => nfsstat3::NFS3ERR_NOSPC,
        TreeError::BadName => nfsstat3::NFS3ERR_INVAL,
    }
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn attributes(facts: Facts) -> fattr3 {
    let time = nfstime3 {
        seconds: (facts.changed_ns / 1_000_000_000) as u32,
        nseconds: (facts.changed_ns % 1_000_000_000) as u32,
    };
    fattr3 {
        type_: if facts.is_directory { ftype3::NF3DIR } else { ftype3::NF3REG },
        mode: facts.mode,
        nlink: 1,
        uid: 0,
        gid: 0,
        size: facts.size_bytes,
        used: facts.used_bytes,
        rdev: specdata3::default(),
        fsid: 0,
        fileid: facts.id,
        atime: time,
        mtime: time,
        ctime: time,
    }
}

impl ModelFiles {
    pub(super) fn new(tree: Tree, asks: UnboundedSender<QueuedRequest>, nodes: u16) -> Self {
        let ends = (0..ENDS).map(|_| std::sync::atomic::AtomicU64::new(u64::MAX)).collect();
        Self { tree: RwLock::new(tree), asks, nodes: nodes.max(1), ends }
    }

    /// Calls a function that reads the tree.
    fn look<T>(&self, of: impl FnOnce(&Tree) -> Result<T, TreeError>) -> Result<T, nfsstat3> {
        of(&self.tree.read().unwrap_or_else(PoisonError::into_inner)).map_err(status)
    }

    /// Calls a function that changes the tree.
    fn change<T>(
        &self,
        of: impl FnOnce(&mut Tree, u64) -> Result<T, TreeError>,
    ) -> Result<T, nfsstat3> {
        let mut tree = self.tree.write().unwrap_or_else(PoisonError::into_inner);
        of(&mut tree, now_ns()).map_err(status)
    }

    /// Waits until the model has completed the request that arrived at `arrived`.
    async fn wait(
        &self,
        arrived: Instant,
        action: Action,
        file: u64,
        offset: u64,
        size: u64,
    ) -> Result<(), nfsstat3> {
        use std::sync::atomic::Ordering::Relaxed;
        let mut request = Request::new(action, (file & 0xff_ffff) as u32, offset, size);
        request.node = (file % u64::from(self.nodes)) as u16;
        request.client = request.node.into();
        if size > 0 {
            let end = self.ends[file as usize % ENDS].swap(offset + size, Relaxed);
            request.sequential = end == offset;
        }
        let (done, waiting) = oneshot::channel();
        let requested = self.asks.send(QueuedRequest { request, arrived, done });
        // This fails only if the server has ended, because the pacer ends with it.
        requested.map_err(|_| nfsstat3::NFS3ERR_JUKEBOX)?;
        waiting.await.map_err(|_| nfsstat3::NFS3ERR_JUKEBOX)
    }

    async fn metadata(&self, file: u64) -> Result<(), nfsstat3> {
        self.wait(Instant::now(), Action::Meta, file, 0, 0).await
    }

    fn facts(&self, id: u64) -> Result<fattr3, nfsstat3> {
        self.look(|tree| tree.facts(id)).map(attributes)
    }
}

pub(super) struct Listing {
    entries: std::vec::IntoIter<(Vec<u8>, Facts)>,
}

impl ReadDirPlusIterator<FileHandleU64> for Listing {
    async fn next(&mut self) -> NextResult<DirEntryPlus<FileHandleU64>> {
        match self.entries.next() {
            None => NextResult::Eof,
            Some((name, facts)) => NextResult::Ok(DirEntryPlus {
                fileid: facts.id,
                name: name.into(),
                cookie: facts.id,
                name_attributes: Some(attributes(facts)),
                name_handle: Some(FileHandleU64::new(facts.id)),
            }),
        }
    }
}

impl NfsReadFileSystem for ModelFiles {
    type Handle = FileHandleU64;

    fn root_dir(&self) -> FileHandleU64 {
        FileHandleU64::new(ROOT)
    }

    async fn lookup(
        &self,
        dirid: &FileHandleU64,
        filename: &filename3<'_>,
    ) -> Result<FileHandleU64, nfsstat3> {
        let found = self.look(|tree| tree.find(dirid.as_u64(), filename.0.as_ref()));
        self.metadata(dirid.as_u64()).await?;
        found.map(FileHandleU64::new)
    }

    /// Every absolute path refers to the only export, so that clients can mount it by any name.
    async fn lookup_by_path(&self, path: &str) -> Result<FileHandleU64, nfsstat3> {
        let mut at = ROOT;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            match self.look(|tree| tree.find(at, name.as_bytes())) {
                Ok(next) => at = next,
                Err(_) if at == ROOT => return Ok(self.root_dir()),
                Err(error) => return Err(error),
            }
        }
        Ok(FileHandleU64::new(at))
    }

    // The server library requests attributes for every reply, so a client's own request for
    // attributes cannot be recognised. The model performs no operation for attributes. Otherwise
    // most calls would count twice.
    async fn getattr(&self, id: &FileHandleU64) -> Result<fattr3, nfsstat3> {
        self.facts(id.as_u64())
    }

    async fn read(
        &self,
        id: &FileHandleU64,
        offset: u64,
        count: u32,
    ) -> Result<(Vec<u8>, bool), nfsstat3> {
        let arrived = Instant::now();
        let read = self.look(|tree| tree.read(id.as_u64(), offset, count.min(READ_BYTES_MAX)))?;
        self.wait(arrived, Action::Read, id.as_u64(), offset, read.0.len() as u64).await?;
        Ok(read)
    }

    async fn readdirplus(
        &self,
        dirid: &FileHandleU64,
        cookie: u64,
    ) -> Result<impl ReadDirPlusIterator<FileHandleU64>, nfsstat3> {
        let entries: Vec<(Vec<u8>, Facts)> = self.look(|tree| {
            let names = tree.list(dirid.as_u64(), cookie)?;
            names.into_iter().map(|(name, id)| Ok((name, tree.facts(id)?))).collect()
        })?;
        self.metadata(dirid.as_u64()).await?;
        Ok(Listing { entries: entries.into_iter() })
    }

    async fn readlink(&self, _id: &FileHandleU64) -> Result<nfspath3<'_>, nfsstat3> {
        Err(nfsstat3::NFS3ERR_INVAL)
    }
}

impl NfsFileSystem for ModelFiles {
    async fn setattr(&self, id: &FileHandleU64, setattr: sattr3) -> Result<fattr3, nfsstat3> {
        let size = match setattr.size {
            set_size3::Some(size) => Some(size),
            set_size3::None => None,
        };
        let mode = match setattr.mode {
            set_mode3::Some(mode) => Some(mode),
            set_mode3::None => None,
        };
        self.change(|tree, now_ns| tree.set(id.as_u64(), size, mode, now_ns))?;
        self.metadata(id.as_u64()).await?;
        self.facts(id.as_u64())
    }

    async fn write(
        &self,
        id: &FileHandleU64,
        offset: u64,
        data: &[u8],
        _stable: stable_how,
    ) -> Result<(fattr3, stable_how), nfsstat3> {
        let arrived = Instant::now();
        self.change(|tree, now_ns| tree.write(id.as_u64(), offset, data, now_ns))?;
        self.wait(arrived, Action::Write, id.as_u64(), offset, data.len() as u64).await?;
        Ok((self.facts(id.as_u64())?, stable_how::FILE_SYNC))
    }

    async fn create(
        &self,
        dirid: &FileHandleU64,
        filename: &filename3<'_>,
        attr: sattr3,
    ) -> Result<(FileHandleU64, fattr3), nfsstat3> {
        let name: &[u8] = filename.0.as_ref();
        let id = self.change(|tree, now_ns| {
            match tree.make(dirid.as_u64(), name, false, None, now_ns) {
                // If an unchecked creation names an existing file, it opens this file.
                Err(TreeError::Exists) => tree.find(dirid.as_u64(), name),
                other => other,
            }
        })?;
        if let set_size3::Some(size) = attr.size {
            self.change(|tree, now_ns| tree.set(id, Some(size), None, now_ns))?;
        }
        self.metadata(id).await?;
        Ok((FileHandleU64::new(id), self.facts(id)?))
    }

    async fn create_exclusive(
        &self,
        dirid: &FileHandleU64,
        filename: &filename3<'_>,
        createverf: createverf3,
    ) -> Result<FileHandleU64, nfsstat3> {
        let name: &[u8] = filename.0.as_ref();
        let id = self.change(|tree, now_ns| {
            let verifier = Some(createverf.0);
            match tree.make(dirid.as_u64(), name, false, verifier, now_ns) {
                Err(TreeError::Exists) => {
                    let found = tree.find(dirid.as_u64(), name)?;
                    // This is a retransmission of the same call (RFC 1813 section 3.3.8).
                    let same = tree.facts(found)?.verifier == verifier;
                    if same { Ok(found) } else { Err(TreeError::Exists) }
                }
                other => other,
            }
        })?;
        self.metadata(id).await?;
        Ok(FileHandleU64::new(id))
    }

    async fn mkdir(
        &self,
        dirid: &FileHandleU64,
        dirname: &filename3<'_>,
    ) -> Result<(FileHandleU64, fattr3), nfsstat3> {
        let name: &[u8] = dirname.0.as_ref();
        let made = |tree: &mut Tree, now| tree.make(dirid.as_u64(), name, true, None, now);
        let id = self.change(made)?;
        self.metadata(id).await?;
        Ok((FileHandleU64::new(id), self.facts(id)?))
    }

    async fn remove(
        &self,
        dirid: &FileHandleU64,
        filename: &filename3<'_>,
    ) -> Result<(), nfsstat3> {
        let name: &[u8] = filename.0.as_ref();
        self.change(|tree, now_ns| tree.remove(dirid.as_u64(), name, now_ns))?;
        self.metadata(dirid.as_u64()).await
    }

    async fn rename<'a>(
        &self,
        from_dirid: &FileHandleU64,
        from_filename: &filename3<'a>,
        to_dirid: &FileHandleU64,
        to_filename: &filename3<'a>,
    ) -> Result<(), nfsstat3> {
        let (from, to): (&[u8], &[u8]) = (from_filename.0.as_ref(), to_filename.0.as_ref());
        self.change(|tree, now_ns| {
            tree.rename((from_dirid.as_u64(), from), (to_dirid.as_u64(), to), now_ns)
        })?;
        self.metadata(from_dirid.as_u64()).await
    }

    async fn symlink<'a>(
        &self,
        _dirid: &FileHandleU64,
        _linkname: &filename3<'a>,
        _symlink: &nfspath3<'a>,
        _attr: &sattr3,
    ) -> Result<(FileHandleU64, fattr3), nfsstat3> {
        Err(nfsstat3::NFS3ERR_NOTSUPP)
    }

    async fn commit(&self, id: &FileHandleU64, _offset: u64, _count: u32) -> Result<(), nfsstat3> {
        self.wait(Instant::now(), Action::Flush, id.as_u64(), 0, 0).await
    }
}
