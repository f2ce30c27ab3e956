//! Finds the files of a study. These are single files, and the files in directories and archives
//! (tar, tar.gz, zip, gzip).
//!
//! Archives are never unpacked to disk. A file is read completely only if its first and last bytes
//! may be those of a result. A directory of results may also contain the files that the benchmark
//! wrote, which can have any size.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use crate::{ImportError, text};

/// Number of bytes from which text and binary data are distinguished, and the first part of a
/// [`sample`].
const HEAD_BYTES: usize = 64 << 10;
/// Number of bytes in the second part of a [`sample`]. sysbench, pgbench, ioping, fio and others
/// print their report last, often after a line of progress for each second.
const TAIL_BYTES: usize = 1 << 20;
/// Maximum size of a result. It is large, because a log may have a line for every operation.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// Maximum total size of the files in an archive. This limit protects against archive bombs.
const ARCHIVE_BYTES_MAX: u64 = 16 << 30;
/// Maximum nesting depth of archives.
const NESTING_MAX: usize = 3;
/// Maximum nesting depth of directories.
const DEPTH_MAX: usize = 64;

/// Receiver of the files that the walk finds.
pub trait Visitor {
    /// Returns true if the file with this [`sample`] must be read completely.
    fn wants(&mut self, path: &str, sample: &[u8]) -> bool;
    /// Receives the content of a file.
    fn take(&mut self, path: &str, bytes: &[u8]);
    /// Receives the reason why a file could not be read.
    fn failed(&mut self, path: &str, says: String);
}

/// Visits `root` or the files in it, in the order of their names. If `root` is a file, paths are
/// relative to its parent directory. If it is a directory, they are relative to `root`.
///
/// # Errors
/// The root does not exist.
pub fn walk(root: &Path, visitor: &mut dyn Visitor) -> Result<(), ImportError> {
    let wrong = |error: std::io::Error| ImportError {
        file: root.display().to_string(),
        says: format!("cannot be read: {error}"),
    };
    let about = std::fs::metadata(root).map_err(wrong)?;
    if about.is_dir() {
        std::fs::read_dir(root).map_err(wrong)?;
        directory(root, "", 0, visitor);
        return Ok(());
    }
    if !about.is_file() {
        return Err(ImportError {
            file: root.display().to_string(),
            says: "is neither a file nor a directory".into(),
        });
    }
    let name = root.file_name().unwrap_or(root.as_os_str()).to_string_lossy().into_owned();
    file(root, &name, visitor);
    Ok(())
}

fn directory(path: &Path, relative: &str, depth: usize, visitor: &mut dyn Visitor) {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => return visitor.failed(relative, format!("cannot be read: {error}")),
    };
    if depth > DEPTH_MAX {
        return visitor.failed(relative, format!("is nested in more than {DEPTH_MAX} directories"));
    }
    let mut entries: Vec<_> = entries.filter_map(Result::ok).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let below = if relative.is_empty() { name.clone() } else { format!("{relative}/{name}") };
        // Links are not followed, because they may form cycles or refer to files outside the study.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => directory(&entry.path(), &below, depth + 1, visitor),
            Ok(kind) if kind.is_file() => file(&entry.path(), &below, visitor),
            Ok(_) => {}
            Err(error) => visitor.failed(&below, format!("cannot be read: {error}")),
        }
    }
}

fn file(path: &Path, relative: &str, visitor: &mut dyn Visitor) {
    let opened = File::open(path).and_then(|file| {
        let length = file.metadata()?.len();
        Ok((file, length))
    });
    let result = match opened {
        Ok((file, length)) => read(&mut Source::File(file), length, relative, 0, visitor),
        Err(error) => Err(error.to_string()),
    };
    if let Err(says) = result {
        visitor.failed(relative, format!("cannot be read: {says}"));
    }
}

/// Returns the bytes from which the format of a file is detected: its first and last lines, or all
/// of them if it is short.
#[must_use]
pub fn sample(bytes: &[u8]) -> Cow<'_, [u8]> {
    if bytes.len() <= HEAD_BYTES + TAIL_BYTES {
        return Cow::Borrowed(bytes);
    }
    Cow::Owned(join(&bytes[..HEAD_BYTES], &bytes[bytes.len() - TAIL_BYTES..]))
}

/// Reads the [`sample`] of a file.
///
/// # Errors
/// The file cannot be read.
pub fn read_sample(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut source = Source::File(File::open(path)?);
    let mut bytes = Vec::new();
    source.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(source.sample(&mut bytes)?.into_owned())
}

/// Joins the start and the end of a text without their incomplete lines. In UTF-16, the line feed
/// is two bytes. If the cut is between them, the join contains both.
fn join(head: &[u8], tail: &[u8]) -> Vec<u8> {
    let end = head.iter().rposition(|byte| *byte == b'\n').map_or(head.len(), |at| at + 1);
    let start = tail.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    [&head[..end], &tail[start..]].concat()
}

/// Content of a file. Only in a file on disk can the end be read without the bytes before it.
enum Source<'s> {
    File(File),
    Stream(&'s mut dyn Read),
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Stream(stream) => stream.read(buffer),
        }
    }
}

impl Source<'_> {
    /// Returns the sample of a file of which `bytes` are the first [`HEAD_BYTES`]. If they are
    /// text, it may append further bytes to them. The sample of binary data is its start.
    fn sample<'b>(&mut self, bytes: &'b mut Vec<u8>) -> std::io::Result<Cow<'b, [u8]>> {
        if bytes.len() < HEAD_BYTES || text::decode(bytes).is_none() {
            return Ok(Cow::Borrowed(bytes));
        }
        let most = match self {
            Self::Stream(_) => FILE_BYTES_MAX + 1,
            Self::File(file) if file.metadata()?.len() > (HEAD_BYTES + TAIL_BYTES) as u64 => {
                let mut tail = Vec::with_capacity(TAIL_BYTES);
                file.seek(SeekFrom::End(-(TAIL_BYTES as i64)))?;
                file.by_ref().take(TAIL_BYTES as u64).read_to_end(&mut tail)?;
                file.seek(SeekFrom::Start(HEAD_BYTES as u64))?;
                return Ok(Cow::Owned(join(bytes, &tail)));
            }
            Self::File(_) => (HEAD_BYTES + TAIL_BYTES) as u64,
        };
        self.take(most - bytes.len() as u64).read_to_end(bytes)?;
        Ok(sample(bytes))
    }
}

/// Reads the sample of a file. Reads the remaining bytes only if the visitor requests them, or if
/// the file is an archive.
fn read(
    source: &mut Source<'_>,
    length: u64,
    path: &str,
    nesting: usize,
    visitor: &mut dyn Visitor,
) -> Result<(), String> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES.min(length as usize) + 1);
    let io = |error: std::io::Error| error.to_string();
    source.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut bytes).map_err(io)?;
    let archive = Archive::of(&bytes);
    if archive.is_none() {
        let sample = source.sample(&mut bytes).map_err(io)?;
        if !visitor.wants(path, &sample) {
            return Ok(());
        }
    }
    if archive.is_some() && nesting >= NESTING_MAX {
        return Err(format!("archives are nested more than {NESTING_MAX} levels deep"));
    }
    let most = (FILE_BYTES_MAX + 1).saturating_sub(bytes.len() as u64);
    source.take(most).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is larger than {} GiB", FILE_BYTES_MAX >> 30));
    }
    match archive {
        None => visitor.take(path, &bytes),
        Some(Archive::Tar) => tar(&mut bytes.as_slice(), path, nesting, visitor)?,
        Some(Archive::Zip) => zip(&bytes, path, nesting, visitor)?,
        Some(Archive::Gzip) => gzip(&bytes, path, nesting, visitor)?,
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Archive {
    Tar,
    Zip,
    Gzip,
}

impl Archive {
    /// Detects the archive format by its magic number (POSIX.1-1988 ustar, APPNOTE 4.3.7, RFC
    /// 1952).
    fn of(head: &[u8]) -> Option<Self> {
        if head.starts_with(&[0x1f, 0x8b, 8]) {
            return Some(Self::Gzip);
        }
        if head.starts_with(b"PK\x03\x04") {
            return Some(Self::Zip);
        }
        (head.get(257..262) == Some(b"ustar".as_slice())).then_some(Self::Tar)
    }
}

fn tar(
    bytes: &mut dyn Read,
    path: &str,
    nesting: usize,
    visitor: &mut dyn Visitor,
) -> Result<(), String> {
    let mut archive = ::tar::Archive::new(bytes);
    let mut total = 0u64;
    for entry in archive.entries().map_err(|error| error.to_string())? {
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(error) => return Err(format!("the archive is broken: {error}")),
        };
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let length = entry.size();
        total = total.saturating_add(length);
        if total > ARCHIVE_BYTES_MAX {
            return Err(format!("its unpacked size is more than {} GiB", ARCHIVE_BYTES_MAX >> 30));
        }
        let below = format!("{path}/{}", name.trim_start_matches("./"));
        if let Err(says) =
            read(&mut Source::Stream(&mut entry), length, &below, nesting + 1, visitor)
        {
            visitor.failed(&below, format!("cannot be read: {says}"));
        }
    }
    Ok(())
}

fn zip(bytes: &[u8], path: &str, nesting: usize, visitor: &mut dyn Visitor) -> Result<(), String> {
    let mut archive = ::zip::ZipArchive::new(Cursor::new(bytes))
        .map_err(|error| format!("the archive is broken: {error}"))?;
    let mut total = 0u64;
    for index in 0..archive.len() {
        let mut entry = match archive.by_index(index) {
            Ok(entry) if entry.is_file() => entry,
            Ok(_) => continue,
            Err(error) => {
                visitor
                    .failed(path, format!("entry {index} of the archive cannot be read: {error}"));
                continue;
            }
        };
        let name = String::from_utf8_lossy(entry.name_raw()).into_owned();
        let (below, length) = (format!("{path}/{name}"), entry.size());
        total = total.saturating_add(length);
        if total > ARCHIVE_BYTES_MAX {
            return Err(format!("its unpacked size is more than {} GiB", ARCHIVE_BYTES_MAX >> 30));
        }
        if let Err(says) =
            read(&mut Source::Stream(&mut entry), length, &below, nesting + 1, visitor)
        {
            visitor.failed(&below, format!("cannot be read: {says}"));
        }
    }
    Ok(())
}

/// A gzip file contains one file, or a tar archive.
fn gzip(bytes: &[u8], path: &str, nesting: usize, visitor: &mut dyn Visitor) -> Result<(), String> {
    let mut unpacked = flate2::read::MultiGzDecoder::new(bytes);
    let mut head = Vec::new();
    unpacked
        .by_ref()
        .take(HEAD_BYTES as u64)
        .read_to_end(&mut head)
        .map_err(|error| error.to_string())?;
    let mut whole = Cursor::new(head.clone()).chain(unpacked);
    if matches!(Archive::of(&head), Some(Archive::Tar)) {
        let mut whole = whole.take(ARCHIVE_BYTES_MAX);
        return tar(&mut whole, path, nesting, visitor);
    }
    let name = path.strip_suffix(".gz").unwrap_or(path);
    read(&mut Source::Stream(&mut whole), HEAD_BYTES as u64, name, nesting + 1, visitor)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use super::*;

    #[derive(Default)]
    struct Recorder {
        taken: Vec<(String, String)>,
        failed: Vec<String>,
    }

    impl Visitor for Recorder {
        fn wants(&mut self, _: &str, head: &[u8]) -> bool {
            !head.starts_with(b"no")
        }
        fn take(&mut self, path: &str, bytes: &[u8]) {
            self.taken.push((path.to_owned(), String::from_utf8_lossy(bytes).into_owned()));
        }
        fn failed(&mut self, path: &str, says: String) {
            self.failed.push(format!("{path}: {says}"));
        }
    }

    fn gz(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn tarred(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = ::tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            let mut header = ::tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, name, *bytes).unwrap();
        }
        builder.into_inner().unwrap()
    }

    #[test]
    fn reads_the_files_in_archives() {
        let home = tempfile::tempdir().unwrap();
        let inner = tarred(&[("a/one.json", b"one"), ("a/no.bin", b"no"), ("two.gz", &gz(b"two"))]);
        std::fs::write(home.path().join("study.tar.gz"), gz(&inner)).unwrap();
        std::fs::write(home.path().join("plain.tar"), &inner).unwrap();
        let mut zipped = ::zip::ZipWriter::new(Cursor::new(Vec::new()));
        zipped.start_file("z/three.txt", ::zip::write::SimpleFileOptions::default()).unwrap();
        zipped.write_all(b"three").unwrap();
        std::fs::write(home.path().join("x.zip"), zipped.finish().unwrap().into_inner()).unwrap();
        std::fs::write(home.path().join("b.txt"), "bare").unwrap();
        let mut seen = Recorder::default();
        walk(home.path(), &mut seen).unwrap();
        let expected = [
            ("b.txt", "bare"),
            ("plain.tar/a/one.json", "one"),
            ("plain.tar/two", "two"),
            ("study.tar.gz/a/one.json", "one"),
            ("study.tar.gz/two", "two"),
            ("x.zip/z/three.txt", "three"),
        ];
        let expected: Vec<_> = expected.map(|(a, b)| (a.to_owned(), b.to_owned())).into();
        assert_eq!(seen.taken, expected);
        assert!(seen.failed.is_empty());
    }

    #[test]
    fn the_sample_contains_the_last_lines_of_a_text() {
        let home = tempfile::tempdir().unwrap();
        let lines = "[ 1s ] tps: 9.9\n".repeat((HEAD_BYTES + TAIL_BYTES) / 8);
        let text = format!("start\n{lines}end\n");
        let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let utf16 = [[0xff, 0xfe].as_slice(), &utf16].concat();
        for bytes in [text.as_bytes(), &utf16] {
            let sampled = sample(bytes);
            assert!(sampled.len() < bytes.len());
            let sampled = text::decode(&sampled).unwrap();
            assert!(sampled.starts_with("start\n["));
            assert!(sampled.ends_with("9.9\nend\n"));
            assert!(sampled.lines().all(|line| text.contains(&format!("{line}\n"))));
        }
        std::fs::write(home.path().join("a.log"), &text).unwrap();
        assert_eq!(read_sample(&home.path().join("a.log")).unwrap(), *sample(text.as_bytes()));
        std::fs::write(home.path().join("b.log.gz"), gz(text.as_bytes())).unwrap();
        std::fs::write(home.path().join("c.tar"), tarred(&[("c.log", text.as_bytes())])).unwrap();
        #[derive(Default)]
        struct Reports(Vec<String>);
        impl Visitor for Reports {
            fn wants(&mut self, _: &str, sample: &[u8]) -> bool {
                sample.ends_with(b"end\n")
            }
            fn take(&mut self, path: &str, bytes: &[u8]) {
                self.0.push(format!("{path} {}", bytes.len()));
            }
            fn failed(&mut self, path: &str, says: String) {
                self.0.push(format!("{path}: {says}"));
            }
        }
        let mut seen = Reports::default();
        walk(home.path(), &mut seen).unwrap();
        let expected = ["a.log", "b.log", "c.tar/c.log"].map(|n| format!("{n} {}", text.len()));
        assert_eq!(seen.0, expected);
    }

    #[test]
    fn reports_broken_archives() {
        let home = tempfile::tempdir().unwrap();
        let whole = gz(&tarred(&[("a", &[7u8; 5000]), ("b", &[8u8; 5000])]));
        std::fs::write(home.path().join("cut.tgz"), &whole[..whole.len() - 20]).unwrap();
        std::fs::write(home.path().join("junk.zip"), b"PK\x03\x04 and nothing").unwrap();
        let mut nested = gz(b"core");
        for _ in 0..6 {
            nested = gz(&nested);
        }
        std::fs::write(home.path().join("deep.gz"), nested).unwrap();
        let mut seen = Recorder::default();
        walk(home.path(), &mut seen).unwrap();
        assert_eq!(seen.failed.len(), 3, "{seen:?}", seen = seen.failed);
        assert!(walk(&home.path().join("nowhere"), &mut seen).is_err());
    }
}
