//! Exports a run or experiment to one file, and imports it again. The file is a compressed tar
//! archive of the run's directory and labels.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::error::CatalogueError;
use crate::labels::{SUFFIX, labels_path};
use crate::scan::FLEET;

/// Maximum unpacked size. A bundle has a few megabytes and an experiment has hundreds of bundles,
/// so `export` cannot have written an archive that is larger than this.
const UNPACKED_BYTES_MAX: u64 = 64 << 30;
/// Number of bytes by which each file counts as larger than it is, because millions of empty files
/// also fill a disk.
const FILE_BYTES: u64 = 4096;
/// Maximum depth of a path. The deepest path has these parts: published experiment, search, run,
/// hosts of a fleet, host, bundle, file.
const DEPTH_MAX: usize = 7;

/// Writes the archive of a bundle or experiment. Does not replace an existing file.
///
/// # Errors
/// The directory cannot be read, or the file cannot be written or exists.
pub fn export(directory: &Path, to: &Path) -> Result<(), CatalogueError> {
    let io = |error| CatalogueError::io("write", to, error);
    let file = File::options().write(true).create_new(true).open(to).map_err(io)?;
    let packed = pack(directory, file);
    if packed.is_err() {
        // After an error, the incomplete archive is removed.
        let _ = fs::remove_file(to);
    }
    packed.map_err(io)
}

fn pack(directory: &Path, file: File) -> io::Result<()> {
    let name = directory.canonicalize()?;
    let name = Path::new(name.file_name().ok_or(io::ErrorKind::InvalidInput)?).to_path_buf();
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::default()));
    archive.follow_symlinks(false);
    archive.append_dir_all(&name, directory)?;
    let labels = labels_path(directory);
    if labels.is_file() {
        archive.append_path_with_name(&labels, labels_path(&name))?;
    }
    archive.into_inner()?.finish()?.sync_all()
}

/// Unpacks an archive and returns the directory of the bundle or experiment. Accepts only regular
/// files that are all in one directory tree, and does not replace existing files.
///
/// # Errors
/// The archive contains other entries, the name already exists, or the directory cannot be written.
pub fn import(archive: &Path, into: &Path) -> Result<PathBuf, CatalogueError> {
    import_at_most(archive, into, UNPACKED_BYTES_MAX)
}

/// Like [`import`], with a limit on the unpacked size.
///
/// # Errors
/// The errors of [`import`], or the archive is larger than the limit.
pub fn import_at_most(
    archive: &Path,
    into: &Path,
    bytes_max: u64,
) -> Result<PathBuf, CatalogueError> {
    let io = |error| CatalogueError::io("read", archive, error);
    let file = File::open(archive).map_err(io)?;
    fs::create_dir_all(into).map_err(|error| CatalogueError::io("create", into, error))?;
    let half = into.join(format!(".import-{}", std::process::id()));
    fs::create_dir(&half).map_err(|error| CatalogueError::io("create", &half, error))?;
    let placed = unpack(archive, file, &half, bytes_max).and_then(|name| place(&half, into, &name));
    // After a successful import, this temporary directory is empty.
    let _ = fs::remove_dir_all(&half);
    placed
}

fn unpack(
    archive: &Path,
    file: File,
    half: &Path,
    bytes_max: u64,
) -> Result<String, CatalogueError> {
    let wrong = |reason: String| CatalogueError::Archive { path: archive.to_path_buf(), reason };
    // If a file is not an archive, or is incomplete, the decoder reports this as a read error.
    let io = |error: io::Error| match error.kind() {
        io::ErrorKind::InvalidInput
        | io::ErrorKind::InvalidData
        | io::ErrorKind::UnexpectedEof
        | io::ErrorKind::Other => wrong(error.to_string()),
        _ => CatalogueError::io("read", archive, error),
    };
    let mut name: Option<String> = None;
    let mut left = bytes_max;
    let mut packed = tar::Archive::new(GzDecoder::new(io::BufReader::new(file)));
    for entry in packed.entries().map_err(io)? {
        let mut entry = entry.map_err(io)?;
        let path = entry.path().map_err(io)?.into_owned();
        let parts =
            parts(&path).ok_or_else(|| wrong(format!("unexpected path {}", path.display())))?;
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            continue;
        }
        if !kind.is_file() {
            return Err(wrong(format!("{} is not a regular file", path.display())));
        }
        let first = parts[0].strip_suffix(SUFFIX).filter(|_| parts.len() == 1);
        let first = first.unwrap_or(&parts[0]).to_owned();
        if name.get_or_insert_with(|| first.clone()) != &first {
            return Err(wrong("it contains more than one run or experiment".to_owned()));
        }
        let to = half.join(&path);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)
                .map_err(|error| CatalogueError::io("create", parent, error))?;
        }
        let write = |error| CatalogueError::io("write", &to, error);
        let mut out = File::options().write(true).create_new(true).open(&to).map_err(write)?;
        let bytes = io::copy(&mut (&mut entry).take(left + 1), &mut out).map_err(io)?;
        left = left
            .checked_sub(bytes.saturating_add(FILE_BYTES))
            .ok_or_else(|| wrong(format!("it unpacks to more than {} MiB", bytes_max >> 20)))?;
        out.flush().map_err(write)?;
    }
    let name = name.ok_or_else(|| wrong("it is empty".to_owned()))?;
    let known = ["run.json", "experiment.json", FLEET]
        .iter()
        .any(|file| half.join(&name).join(file).is_file());
    if known {
        Ok(name)
    } else {
        Err(wrong("it does not contain a run or an experiment".to_owned()))
    }
}

/// Returns the components of a path; `None` if the path is absolute, contains `..`, or has more
/// than `DEPTH_MAX` components.
fn parts(path: &Path) -> Option<Vec<String>> {
    let part = |component: Component<'_>| match component {
        Component::Normal(part) => part.to_str().map(str::to_owned),
        _ => None,
    };
    let parts: Option<Vec<String>> = path.components().map(part).collect();
    parts.filter(|parts| (1..=DEPTH_MAX).contains(&parts.len()))
}

fn place(half: &Path, into: &Path, name: &str) -> Result<PathBuf, CatalogueError> {
    let to = into.join(name);
    if to.exists() {
        return Err(CatalogueError::Name(format!("{} already exists", to.display())));
    }
    let labels = half.join(format!("{name}{SUFFIX}"));
    let moved = |from: &Path, to: &Path| {
        fs::rename(from, to).map_err(|error| CatalogueError::io("create", to, error))
    };
    moved(&half.join(name), &to)?;
    if labels.is_file() {
        moved(&labels, &labels_path(&to))?;
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Labels;

    fn packed(root: &Path, entries: &[(&str, tar::EntryType)]) -> PathBuf {
        let path = root.join("archive.tar.gz");
        let mut archive =
            tar::Builder::new(GzEncoder::new(File::create(&path).unwrap(), Compression::fast()));
        for (name, kind) in entries {
            let mut header = tar::Header::new_gnu();
            // The test sets the name directly, because the library refuses to write some of these
            // paths.
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(*kind);
            header.set_size(0);
            header.set_cksum();
            archive.append(&header, io::empty()).unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap();
        path
    }

    #[test]
    fn import_restores_an_export_with_its_labels() {
        let root = tempfile::tempdir().unwrap();
        let run = root.path().join("here/run-1");
        fs::create_dir_all(&run).unwrap();
        fs::write(run.join("run.json"), "{}").unwrap();
        let labels = Labels { note: "odd".to_owned(), ..Labels::default() };
        labels.write(&run).unwrap();
        let archive = root.path().join("run-1.tar.gz");
        export(&run, &archive).unwrap();
        assert!(export(&run, &archive).is_err(), "nothing is replaced");
        let there = root.path().join("there");
        let came = import(&archive, &there).unwrap();
        assert_eq!(came, there.join("run-1"));
        assert_eq!(fs::read_to_string(came.join("run.json")).unwrap(), "{}");
        assert_eq!(Labels::of(&came).unwrap(), labels);
        assert!(import(&archive, &there).unwrap_err().to_string().contains("already"));
        assert_eq!(fs::read_dir(&there).unwrap().count(), 2, "nothing half is left");
    }

    #[test]
    fn a_rejected_archive_leaves_no_files() {
        use tar::EntryType as T;
        let root = tempfile::tempdir().unwrap();
        let into = root.path().join("into");
        let wrong: [&[(&str, T)]; 6] = [
            &[("../run.json", T::Regular)],
            &[("/run/run.json", T::Regular)],
            &[("run/run.json", T::Symlink)],
            &[("a/run.json", T::Regular), ("b/run.json", T::Regular)],
            &[("run/other.json", T::Regular)],
            &[],
        ];
        for entries in wrong {
            let archive = packed(root.path(), entries);
            assert!(import(&archive, &into).is_err(), "{entries:?}");
            assert_eq!(fs::read_dir(&into).unwrap().count(), 0, "{entries:?}");
        }
        assert!(!root.path().join("run.json").exists());
    }

    #[test]
    fn a_file_that_is_not_a_whole_archive_is_rejected() {
        let root = tempfile::tempdir().unwrap();
        let into = root.path().join("into");
        let whole = packed(root.path(), &[("run/run.json", tar::EntryType::Regular)]);
        let bytes = fs::read(&whole).unwrap();
        let file = root.path().join("other");
        for text in [&b"root:x:0:0\n"[..], &bytes[..bytes.len() / 2], b""] {
            fs::write(&file, text).unwrap();
            let error = import(&file, &into).unwrap_err();
            assert!(matches!(error, CatalogueError::Archive { .. }), "{error}");
        }
        let error = import(&root.path().join("nowhere"), &into).unwrap_err();
        assert!(matches!(error, CatalogueError::Io { .. }), "{error}");
    }
}
