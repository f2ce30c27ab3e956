//! A study: all results of the files that were named, put together.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_evidence::reported::Reported;

use crate::detect::{Format, detect};
use crate::json::{self, At};
use crate::walk::{Visitor, walk};
use crate::{ImportError, fio, text};

/// What was found in the files that were named.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Study {
    /// Results, in the order of their files.
    pub results: Vec<Reported>,
    /// Files of a known form that cannot be read, and why.
    pub unreadable: Vec<ImportError>,
    /// Files of no known form.
    pub passed_over: usize,
    /// Logs that belong to no result.
    pub logs_alone: usize,
    /// Files that were read, by their form.
    pub read: BTreeMap<&'static str, usize>,
}

/// Parts of results that lie in files of their own.
#[derive(Default)]
struct Pieces {
    fio_logs: Vec<fio::log::Log>,
}

/// Reads everything below the paths.
///
/// # Errors
/// A path that is not there.
pub fn read(paths: &[&Path]) -> Result<Study, ImportError> {
    let mut reader = Reader::default();
    for path in paths {
        let alone = paths.len() == 1 && path.is_file();
        reader.named = path.is_file();
        reader.prefix = match path.is_file() || alone || paths.len() == 1 {
            true => String::new(),
            false => format!("{}/", path.file_name().unwrap_or_default().to_string_lossy()),
        };
        walk(path, &mut reader)?;
    }
    Ok(reader.finish())
}

#[derive(Default)]
struct Reader {
    study: Study,
    pieces: Pieces,
    /// True while a file is read that was named itself: then it has to be a result.
    named: bool,
    prefix: String,
}

impl Visitor for Reader {
    fn wants(&mut self, path: &str, head: &[u8]) -> bool {
        let wanted = detect(head).is_some();
        if !wanted && self.named && !path.contains('/') {
            self.failed(path, "it is of no known form".into());
        } else if !wanted {
            self.study.passed_over += 1;
        }
        wanted
    }

    fn take(&mut self, path: &str, bytes: &[u8]) {
        let head = &bytes[..bytes.len().min(crate::walk::HEAD_BYTES)];
        let (Some(format), Some(text)) = (detect(head), text::decode(bytes)) else {
            self.failed(path, "it is not text throughout".into());
            return;
        };
        let file = format!("{}{path}", self.prefix);
        match self.parse(format, &text, &file) {
            Ok(()) => *self.study.read.entry(format.word()).or_default() += 1,
            Err(says) => self.study.unreadable.push(ImportError { file, says }),
        }
    }

    fn failed(&mut self, path: &str, says: String) {
        self.study.unreadable.push(ImportError { file: format!("{}{path}", self.prefix), says });
    }
}

impl Reader {
    fn parse(&mut self, format: Format, text: &str, file: &str) -> Result<(), String> {
        match format {
            Format::FioJson => {
                let (json, range) = json::first_object(text).map_err(|error| error.to_string())?;
                let root = At::root(&json);
                if !fio::json::is(&root) {
                    return Err("it has a \"fio version\" and no jobs".into());
                }
                let mut reported = fio::json::read(&root, file);
                if !text[..range.start].trim().is_empty() {
                    let lines = text[..range.start].lines().count();
                    reported
                        .remarks
                        .push(format!("{lines} lines of other text stand before the JSON"));
                }
                self.study.results.push(reported);
            }
            Format::FioLog => self.pieces.fio_logs.push(fio::log::read(text, file)),
        }
        Ok(())
    }

    fn finish(mut self) -> Study {
        let left = fio::log::attach(&mut self.study.results, self.pieces.fio_logs);
        self.study.logs_alone = left.len();
        self.study.results.sort_by(|a, b| {
            (&a.source.file, &a.source.place).cmp(&(&b.source.file, &b.source.place))
        });
        self.study
    }
}
