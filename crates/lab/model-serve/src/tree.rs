//! Directories and files in memory. A file is stored in pieces. A piece is allocated when it is
//! first written. Pieces that were not written read as zeros and use no memory.

use std::collections::{BTreeMap, HashMap};

const PIECE_BYTES: u64 = 64 << 10;
pub const ROOT: u64 = 1;
/// Maximum length of a name (as in most file systems).
const NAME_BYTES_MAX: usize = 255;

/// Reason for a failed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// No such file.
    #[error("no such file")]
    NotFound,
    #[error("the name is taken")]
    Exists,
    #[error("no directory")]
    NotDirectory,
    #[error("a directory")]
    IsDirectory,
    /// The directory is not empty.
    #[error("not empty")]
    NotEmpty,
    /// The memory for data is used up.
    #[error("the memory for data is used up")]
    NoSpace,
    /// The name is too long, empty, or contains a slash.
    #[error("not a valid file name")]
    BadName,
}

#[derive(Debug)]
enum Kind {
    Directory(BTreeMap<Vec<u8>, u64>),
    File { size_bytes: u64, pieces: HashMap<u64, Box<[u8]>> },
}

/// A file or directory.
#[derive(Debug)]
struct Node {
    kind: Kind,
    mode: u32,
    parent: u64,
    changed_ns: u64,
    verifier: Option<[u8; 8]>,
}

/// Attributes of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Inode number.
    pub id: u64,
    pub is_directory: bool,
    pub size_bytes: u64,
    /// Number of bytes of memory that the object uses.
    pub used_bytes: u64,
    /// Permissions.
    pub mode: u32,
    /// Time of the last change, in nanoseconds since 1970.
    pub changed_ns: u64,
    /// Verifier of an exclusive creation.
    pub verifier: Option<[u8; 8]>,
}

/// All files and directories. Callers pass the current time.
#[derive(Debug)]
pub struct Tree {
    nodes: HashMap<u64, Node>,
    next: u64,
    memory_bytes: u64,
    used_bytes: u64,
}

impl Tree {
    /// Creates an empty directory with a limit on the bytes of data.
    pub fn new(memory_bytes: u64) -> Self {
        let root = Node {
            kind: Kind::Directory(BTreeMap::new()),
            mode: 0o777,
            parent: ROOT,
            changed_ns: 0,
            verifier: None,
        };
        Self { nodes: HashMap::from([(ROOT, root)]), next: ROOT + 1, memory_bytes, used_bytes: 0 }
    }

    fn entries(&self, directory: u64) -> Result<&BTreeMap<Vec<u8>, u64>, TreeError> {
        match &self.nodes.get(&directory).ok_or(TreeError::NotFound)?.kind {
            Kind::Directory(entries) => Ok(entries),
            Kind::File { .. } => Err(TreeError::NotDirectory),
        }
    }

    fn entries_mut(
        &mut self,
        directory: u64,
        now_ns: u64,
    ) -> Result<&mut BTreeMap<Vec<u8>, u64>, TreeError> {
        let node = self.nodes.get_mut(&directory).ok_or(TreeError::NotFound)?;
        node.changed_ns = now_ns;
        match &mut node.kind {
            Kind::Directory(entries) => Ok(entries),
            Kind::File { .. } => Err(TreeError::NotDirectory),
        }
    }

    /// Returns the attributes of a file or directory.
    ///
    /// # Errors
    /// The file does not exist.
    pub fn facts(&self, id: u64) -> Result<Facts, TreeError> {
        let node = self.nodes.get(&id).ok_or(TreeError::NotFound)?;
        let (is_directory, size_bytes, used_bytes) = match &node.kind {
            Kind::Directory(entries) => (true, 64 * entries.len() as u64, 0),
            Kind::File { size_bytes, pieces } => {
                (false, *size_bytes, pieces.len() as u64 * PIECE_BYTES)
            }
        };
        let Node { mode, changed_ns, verifier, .. } = *node;
        Ok(Facts { id, is_directory, size_bytes, used_bytes, mode, changed_ns, verifier })
    }

    /// Returns the entry of this name.
    ///
    /// # Errors
    /// `directory` is not a directory, or it has no entry with this name.
    pub fn find(&self, directory: u64, name: &[u8]) -> Result<u64, TreeError> {
        let entries = self.entries(directory)?;
        match name {
            b"." => Ok(directory),
            b".." => Ok(self.nodes[&directory].parent),
            _ => entries.get(name).copied().ok_or(TreeError::NotFound),
        }
    }

    /// Returns names and inode numbers of a directory's entries, in a fixed order. Starts after the
    /// inode number `after`.
    ///
    /// # Errors
    /// The object is not a directory.
    pub fn list(&self, directory: u64, after: u64) -> Result<Vec<(Vec<u8>, u64)>, TreeError> {
        let mut all: Vec<_> =
            self.entries(directory)?.iter().map(|(name, id)| (name.clone(), *id)).collect();
        // The entries are sorted by inode number, which never changes, so that a listing can be
        // resumed.
        all.sort_by_key(|(_, id)| *id);
        Ok(all.into_iter().filter(|(_, id)| *id > after).collect())
    }

    /// Creates a file or directory.
    ///
    /// # Errors
    /// The name exists or is invalid.
    pub fn make(
        &mut self,
        directory: u64,
        name: &[u8],
        is_directory: bool,
        verifier: Option<[u8; 8]>,
        now_ns: u64,
    ) -> Result<u64, TreeError> {
        if name.is_empty()
            || name.len() > NAME_BYTES_MAX
            || name.contains(&b'/')
            || name == b"."
            || name == b".."
        {
            return Err(TreeError::BadName);
        }
        if self.entries(directory)?.contains_key(name) {
            return Err(TreeError::Exists);
        }
        let id = self.next;
        self.next += 1;
        self.entries_mut(directory, now_ns)?.insert(name.to_vec(), id);
        let (kind, mode) = if is_directory {
            (Kind::Directory(BTreeMap::new()), 0o777)
        } else {
            (Kind::File { size_bytes: 0, pieces: HashMap::new() }, 0o666)
        };
        self.nodes.insert(id, Node { kind, mode, parent: directory, changed_ns: now_ns, verifier });
        Ok(id)
    }

    /// Removes a file or an empty directory.
    ///
    /// # Errors
    /// The file does not exist, or it is a directory that is not empty.
    pub fn remove(&mut self, directory: u64, name: &[u8], now_ns: u64) -> Result<(), TreeError> {
        let id = *self.entries(directory)?.get(name).ok_or(TreeError::NotFound)?;
        if matches!(&self.nodes[&id].kind, Kind::Directory(entries) if !entries.is_empty()) {
            return Err(TreeError::NotEmpty);
        }
        self.entries_mut(directory, now_ns)?.remove(name);
        if let Some(Node { kind: Kind::File { pieces, .. }, .. }) = self.nodes.remove(&id) {
            self.used_bytes -= pieces.len() as u64 * PIECE_BYTES;
        }
        Ok(())
    }

    /// Renames a file or directory, and replaces an existing target.
    ///
    /// # Errors
    /// The file does not exist, or the target cannot be replaced.
    pub fn rename(
        &mut self,
        from: (u64, &[u8]),
        to: (u64, &[u8]),
        now_ns: u64,
    ) -> Result<(), TreeError> {
        let id = *self.entries(from.0)?.get(from.1).ok_or(TreeError::NotFound)?;
        match self.entries(to.0)?.get(to.1) {
            Some(same) if *same == id => return Ok(()),
            Some(_) => self.remove(to.0, to.1, now_ns)?,
            None => {}
        }
        self.entries_mut(from.0, now_ns)?.remove(from.1);
        self.entries_mut(to.0, now_ns)?.insert(to.1.to_vec(), id);
        if let Some(node) = self.nodes.get_mut(&id) {
            node.parent = to.0;
        }
        Ok(())
    }

    /// Returns up to `count` bytes of a file, and true if they reach the end of the file.
    ///
    /// # Errors
    /// The object is not a file.
    pub fn read(&self, id: u64, offset: u64, count: u32) -> Result<(Vec<u8>, bool), TreeError> {
        let Kind::File { size_bytes, pieces } =
            &self.nodes.get(&id).ok_or(TreeError::NotFound)?.kind
        else {
            return Err(TreeError::IsDirectory);
        };
        let end = offset.saturating_add(count.into()).min(*size_bytes);
        let mut bytes = vec![0; end.saturating_sub(offset) as usize];
        each_piece(offset, bytes.len() as u64, |piece, within, at, length| {
            if let Some(held) = pieces.get(&piece) {
                bytes[at..at + length].copy_from_slice(&held[within..within + length]);
            }
        });
        Ok((bytes, end >= *size_bytes))
    }

    /// Writes bytes, and extends the file if necessary.
    ///
    /// # Errors
    /// The object is not a file, or the memory is used up. In both cases nothing is written.
    pub fn write(
        &mut self,
        id: u64,
        offset: u64,
        data: &[u8],
        now_ns: u64,
    ) -> Result<(), TreeError> {
        let node = self.nodes.get_mut(&id).ok_or(TreeError::NotFound)?;
        let Kind::File { size_bytes, pieces } = &mut node.kind else {
            return Err(TreeError::IsDirectory);
        };
        let end = offset.checked_add(data.len() as u64).ok_or(TreeError::NoSpace)?;
        let mut fresh = 0;
        each_piece(offset, data.len() as u64, |piece, _, _, _| {
            fresh += if pieces.contains_key(&piece) { 0 } else { PIECE_BYTES };
        });
        if self.used_bytes + fresh > self.memory_bytes {
            return Err(TreeError::NoSpace);
        }
        self.used_bytes += fresh;
        each_piece(offset, data.len() as u64, |piece, within, at, length| {
            let held = pieces.entry(piece).or_insert_with(|| vec![0; PIECE_BYTES as usize].into());
            held[within..within + length].copy_from_slice(&data[at..at + length]);
        });
        *size_bytes = (*size_bytes).max(end);
        node.changed_ns = now_ns;
        Ok(())
    }

    /// Sets the size or the permissions of a file.
    ///
    /// # Errors
    /// The file does not exist, or it is a directory.
    pub fn set(
        &mut self,
        id: u64,
        size: Option<u64>,
        mode: Option<u32>,
        now_ns: u64,
    ) -> Result<(), TreeError> {
        let node = self.nodes.get_mut(&id).ok_or(TreeError::NotFound)?;
        node.mode = mode.unwrap_or(node.mode);
        node.changed_ns = now_ns;
        let Some(size) = size else { return Ok(()) };
        let Kind::File { size_bytes, pieces } = &mut node.kind else {
            return Err(TreeError::IsDirectory);
        };
        if size < *size_bytes {
            let before = pieces.len();
            pieces.retain(|piece, _| piece * PIECE_BYTES < size);
            self.used_bytes -= (before - pieces.len()) as u64 * PIECE_BYTES;
            if let Some(last) = pieces.get_mut(&(size / PIECE_BYTES)) {
                last[(size % PIECE_BYTES) as usize..].fill(0);
            }
        }
        *size_bytes = size;
        Ok(())
    }

    /// Returns the total capacity for data and the free capacity, in bytes.
    pub fn space(&self) -> (u64, u64) {
        (self.memory_bytes, self.memory_bytes - self.used_bytes)
    }
}

/// Returns the pieces of a range. Each entry has the number of the piece, the offset in the piece,
/// the offset in the range, and the length.
fn each_piece(offset: u64, length: u64, mut each: impl FnMut(u64, usize, usize, usize)) {
    let mut done = 0;
    while done < length {
        let at = offset + done;
        let within = at % PIECE_BYTES;
        let part = (PIECE_BYTES - within).min(length - done);
        each(at / PIECE_BYTES, within as usize, done as usize, part as usize);
        done += part;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Writes and truncations must have the same result as on a vector.
        #[test]
        fn a_file_is_its_bytes(
            steps in proptest::collection::vec((0u64..300_000, 0usize..150_000, any::<u8>(), any::<bool>()), 1..12)
        ) {
            let mut tree = Tree::new(1 << 30);
            let id = tree.make(ROOT, b"f", false, None, 1).unwrap();
            let mut held: Vec<u8> = Vec::new();
            for (offset, length, fill, truncate) in steps {
                if truncate {
                    tree.set(id, Some(offset), None, 2).unwrap();
                    held.resize(offset as usize, 0);
                    continue;
                }
                let data = vec![fill; length];
                tree.write(id, offset, &data, 3).unwrap();
                let end = offset as usize + length;
                held.resize(held.len().max(end), 0);
                held[offset as usize..end].copy_from_slice(&data);
            }
            let (bytes, eof) = tree.read(id, 0, u32::MAX).unwrap();
            prop_assert!(eof && bytes == held);
            prop_assert_eq!(tree.facts(id).unwrap().size_bytes, held.len() as u64);
        }
    }

    #[test]
    fn names_come_and_go() {
        let mut tree = Tree::new(1 << 20);
        let d = tree.make(ROOT, b"d", true, None, 1).unwrap();
        let a = tree.make(d, b"a", false, None, 1).unwrap();
        assert_eq!(tree.make(d, b"a", false, None, 1), Err(TreeError::Exists));
        assert_eq!(tree.make(d, b"a/b", false, None, 1), Err(TreeError::BadName));
        assert_eq!(tree.remove(ROOT, b"d", 2), Err(TreeError::NotEmpty));
        tree.write(a, 0, &[1; 100_000], 2).unwrap();
        tree.rename((d, b"a"), (ROOT, b"b"), 3).unwrap();
        assert_eq!((tree.find(ROOT, b"b"), tree.find(d, b"a")), (Ok(a), Err(TreeError::NotFound)));
        assert_eq!(tree.find(d, b".."), Ok(ROOT));
        assert_eq!(tree.list(ROOT, 0).unwrap().len(), 2);
        assert_eq!(tree.list(ROOT, d).unwrap(), [(b"b".to_vec(), a)]);
        tree.remove(ROOT, b"b", 4).unwrap();
        assert_eq!(tree.space(), (1 << 20, 1 << 20));
    }

    #[test]
    fn what_does_not_fit_leaves_the_file_alone() {
        let mut tree = Tree::new(PIECE_BYTES);
        let id = tree.make(ROOT, b"f", false, None, 1).unwrap();
        tree.write(id, 0, &[1; 10], 1).unwrap();
        assert_eq!(tree.write(id, 5, &vec![2; PIECE_BYTES as usize], 1), Err(TreeError::NoSpace));
        assert_eq!(tree.read(id, 0, 100).unwrap(), (vec![1; 10], true));
    }
}
