//! The disk as a FUSE file system. Names and sizes are durable immediately; only data is cached.
//! Reads and writes bypass the kernel's page cache.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs,
    ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use crate::disk::{Behaviour, LossyDisk};
use crate::faults::{Fault, FaultSchedule, Operation};

/// Name of the control file, in the root.
pub const CONTROL: &str = "control";
const CONTROL_NODE: u64 = 2;
/// Open flag (on x86-64 and ARM) that makes each write to a file durable. `O_SYNC` includes this
/// flag.
const O_DSYNC: i32 = 0o10_000;
/// Address space of a file on the disk.
const FILE_BITS: u32 = 40;
/// Time for which the kernel may cache names and attributes. With this value, it requests them
/// again at each use.
const TTL: Duration = Duration::ZERO;

struct Node {
    kind: FileType,
    size: u64,
    mode: u16,
    parent: u64,
    name: OsString,
}

struct State {
    nodes: BTreeMap<u64, Node>,
    next: u64,
    disk: LossyDisk,
    faults: Option<FaultSchedule>,
    /// Reply handles of operations that receive no reply. When such a handle is dropped, it sends
    /// an error.
    unanswered: Vec<Box<dyn Any + Send>>,
}

/// A mounted disk. It is unmounted when dropped.
pub struct LossyMount {
    state: Arc<Mutex<State>>,
    _session: BackgroundSession,
}

struct LossyFs(Arc<Mutex<State>>);

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LossyMount {
    /// Mounts an empty disk on an existing directory.
    ///
    /// # Errors
    /// The system does not permit the mount.
    pub fn new(directory: &Path, behaviour: Behaviour, seed: u64) -> io::Result<Self> {
        Self::of_disk(directory, LossyDisk::new(behaviour, seed))
    }

    /// Mounts a disk on an existing directory.
    ///
    /// # Errors
    /// The system does not permit the mount.
    pub fn of_disk(directory: &Path, disk: LossyDisk) -> io::Result<Self> {
        let node = |kind, mode, parent, name: &str| Node {
            kind,
            size: 0,
            mode,
            parent,
            name: OsString::from(name),
        };
        let nodes = BTreeMap::from([
            (INodeNo::ROOT.0, node(FileType::Directory, 0o755, 0, "")),
            (CONTROL_NODE, node(FileType::RegularFile, 0o600, INodeNo::ROOT.0, CONTROL)),
        ]);
        let state =
            State { nodes, next: CONTROL_NODE + 1, disk, faults: None, unanswered: Vec::new() };
        let state = Arc::new(Mutex::new(state));
        let mut config = Config::default();
        config.mount_options =
            vec![MountOption::FSName("lossy".to_owned()), MountOption::DefaultPermissions];
        let session = fuser::spawn_mount(LossyFs(Arc::clone(&state)), directory, &config)?;
        Ok(Self { state, _session: session })
    }

    /// Returns the number of power cuts after which flushed data was not intact.
    #[must_use]
    pub fn lies(&self) -> u64 {
        lock(&self.state).disk.lies()
    }

    /// Makes the disk lose power after this number of writes and flushes.
    pub fn cut_after(&self, operations: u64) {
        lock(&self.state).disk.cut_after(operations);
    }

    /// Starts a schedule of faults; `None` ends the faults. Returns the previous schedule.
    pub fn set_faults(&self, faults: Option<FaultSchedule>) -> Option<FaultSchedule> {
        std::mem::replace(&mut lock(&self.state).faults, faults)
    }

    /// Ends all operations that received no reply with an error.
    pub fn fail_unanswered(&self) {
        let unanswered = std::mem::take(&mut lock(&self.state).unanswered);
        drop(unanswered);
    }
}

impl Drop for LossyMount {
    fn drop(&mut self) {
        // While an operation waits for a reply, the disk could not be unmounted.
        self.fail_unanswered();
    }
}

/// Effect that the fault schedule has on an operation.
enum Admission {
    Whole,
    Short,
    Failed(Errno),
    Unanswered,
}

impl LossyFs {
    /// Determines the fault of an operation. If it is a delay, waits until the delay is over.
    fn admit(&self, operation: Operation) -> Admission {
        let fault = lock(&self.0).faults.as_mut().and_then(|faults| faults.next(operation));
        match fault {
            None => Admission::Whole,
            Some(Fault::Short) => Admission::Short,
            Some(Fault::Error(_, errno)) => Admission::Failed(errno),
            Some(Fault::Never) => Admission::Unanswered,
            Some(Fault::Delay(time)) => {
                std::thread::sleep(time);
                Admission::Whole
            }
        }
    }
}

/// Applies the fault of an operation. Returns from the calling function if the operation fails or
/// receives no reply. Otherwise, the value is true if the transfer is short.
macro_rules! admit {
    ($fs:ident, $operation:ident, $reply:ident) => {
        match $fs.admit(Operation::$operation) {
            Admission::Whole => false,
            Admission::Short => true,
            Admission::Failed(errno) => return $reply.error(errno),
            Admission::Unanswered => {
                lock(&$fs.0).unanswered.push(Box::new($reply));
                return;
            }
        }
    };
}

impl State {
    fn child(&self, parent: u64, name: &OsStr) -> Option<u64> {
        let mut all = self.nodes.iter();
        all.find(|(_, node)| node.parent == parent && node.name == name).map(|(ino, _)| *ino)
    }

    fn attributes(&self, ino: u64) -> Result<FileAttr, Errno> {
        let node = self.nodes.get(&ino).ok_or(Errno::ENOENT)?;
        Ok(FileAttr {
            ino: INodeNo(ino),
            size: node.size,
            blocks: node.size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: node.kind,
            perm: node.mode,
            nlink: if node.kind == FileType::Directory { 2 } else { 1 },
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn make(
        &mut self,
        parent: u64,
        name: &OsStr,
        kind: FileType,
        mode: u32,
    ) -> Result<FileAttr, Errno> {
        if self.child(parent, name).is_some() {
            return Err(Errno::EEXIST);
        }
        let ino = self.next;
        self.next += 1;
        let mode = (mode & 0o777) as u16;
        self.nodes.insert(ino, Node { kind, size: 0, mode, parent, name: name.to_owned() });
        self.attributes(ino)
    }

    fn remove(&mut self, parent: u64, name: &OsStr) -> Result<(), Errno> {
        let ino = self.child(parent, name).ok_or(Errno::ENOENT)?;
        if self.nodes.values().any(|node| node.parent == ino) {
            return Err(Errno::ENOTEMPTY);
        }
        self.nodes.remove(&ino);
        Ok(())
    }

    fn rename(&mut self, from: (u64, &OsStr), to: (u64, &OsStr)) -> Result<(), Errno> {
        let ino = self.child(from.0, from.1).ok_or(Errno::ENOENT)?;
        if let Some(old) = self.child(to.0, to.1).filter(|old| *old != ino) {
            self.nodes.remove(&old);
        }
        let node = self.nodes.get_mut(&ino).ok_or(Errno::ENOENT)?;
        (node.parent, node.name) = (to.0, to.1.to_owned());
        Ok(())
    }

    fn read(&self, ino: u64, offset: u64, size: u32) -> Result<Vec<u8>, Errno> {
        let length = self.nodes.get(&ino).ok_or(Errno::ENOENT)?.size;
        let size = u64::from(size).min(length.saturating_sub(offset));
        let mut bytes = vec![0; size as usize];
        self.disk.read((ino << FILE_BITS) + offset, &mut bytes).map_err(|_| Errno::EIO)?;
        Ok(bytes)
    }

    fn write(&mut self, ino: u64, offset: u64, bytes: &[u8]) -> Result<u32, Errno> {
        if ino == CONTROL_NODE {
            match bytes.trim_ascii() {
                b"cut" => self.disk.cut(),
                b"restore" => self.disk.restore(),
                _ => return Err(Errno::EINVAL),
            }
            return Ok(bytes.len() as u32);
        }
        let end = offset.checked_add(bytes.len() as u64).filter(|end| *end < 1 << FILE_BITS);
        let end = end.ok_or(Errno::EFBIG)?;
        let node = self.nodes.get_mut(&ino).ok_or(Errno::ENOENT)?;
        self.disk.write((ino << FILE_BITS) + offset, bytes).map_err(|_| Errno::EIO)?;
        node.size = node.size.max(end);
        Ok(bytes.len() as u32)
    }

    fn flush(&mut self) -> Result<(), Errno> {
        self.disk.flush().map_err(|_| Errno::EIO)
    }
}

/// Sends a result or an error with the method of the reply that corresponds to it.
macro_rules! send {
    ($reply:ident, $result:expr, $value:ident => $send:expr) => {
        match $result {
            Ok($value) => $send,
            Err(errno) => $reply.error(errno),
        }
    };
}

impl Filesystem for LossyFs {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        admit!(self, Name, reply);
        let state = lock(&self.0);
        let found = state.child(parent.0, name).ok_or(Errno::ENOENT);
        let found = found.and_then(|ino| state.attributes(ino));
        send!(reply, found, attr => reply.entry(&TTL, &attr, Generation(0)));
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        admit!(self, Name, reply);
        let found = lock(&self.0).attributes(ino.0);
        send!(reply, found, attr => reply.attr(&TTL, &attr));
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        admit!(self, Name, reply);
        let mut state = lock(&self.0);
        if let (Some(size), Some(node)) = (size, state.nodes.get_mut(&ino.0)) {
            node.size = size;
        }
        send!(reply, state.attributes(ino.0), attr => reply.attr(&TTL, &attr));
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        admit!(self, Name, reply);
        let made = lock(&self.0).make(parent.0, name, FileType::Directory, mode);
        send!(reply, made, attr => reply.entry(&TTL, &attr, Generation(0)));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        admit!(self, Name, reply);
        send!(reply, lock(&self.0).remove(parent.0, name), _done => reply.ok());
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        admit!(self, Name, reply);
        send!(reply, lock(&self.0).remove(parent.0, name), _done => reply.ok());
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        admit!(self, Name, reply);
        let renamed = lock(&self.0).rename((parent.0, name), (newparent.0, newname));
        send!(reply, renamed, _done => reply.ok());
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        admit!(self, Name, reply);
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        admit!(self, Name, reply);
        let made = lock(&self.0).make(parent.0, name, FileType::RegularFile, mode);
        let direct = FopenFlags::FOPEN_DIRECT_IO;
        send!(reply, made, attr => reply.created(&TTL, &attr, Generation(0), FileHandle(0), direct));
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let is_short = admit!(self, Read, reply);
        let size = if is_short { size / 2 } else { size };
        send!(reply, lock(&self.0).read(ino.0, offset, size), bytes => reply.data(&bytes));
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let is_short = admit!(self, Write, reply);
        let mut state = lock(&self.0);
        let data = if is_short { &data[..data.len() / 2] } else { data };
        let mut written = state.write(ino.0, offset, data);
        // The kernel does not flush such a write, so the file system must flush it.
        if flags.0 & O_DSYNC != 0 {
            written = written.and_then(|size| state.flush().map(|()| size));
        }
        send!(reply, written, size => reply.written(size));
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Called when a file is closed. This does not flush the disk.
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        admit!(self, Flush, reply);
        send!(reply, lock(&self.0).flush(), _done => reply.ok());
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        admit!(self, Flush, reply);
        send!(reply, lock(&self.0).flush(), _done => reply.ok());
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        admit!(self, Name, reply);
        let state = lock(&self.0);
        let own = [(ino.0, FileType::Directory, OsString::from("."))];
        let below = state.nodes.iter().filter(|(_, node)| node.parent == ino.0);
        let below = below.map(|(ino, node)| (*ino, node.kind, node.name.clone()));
        for (at, (ino, kind, name)) in
            own.into_iter().chain(below).enumerate().skip(offset as usize)
        {
            if reply.add(INodeNo(ino), (at + 1) as u64, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = 1 << 28;
        reply.statfs(blocks, blocks, blocks, 1 << 20, 1 << 20, 4096, 255, 4096);
    }
}
