//! Line reader for files of any size, which does not load the whole file.

use std::io::{BufRead, BufReader, Read};

/// Maximum length of a line.
const LINE_BYTES_MAX: usize = 16 << 10;

/// Iterator over lines.
pub(super) struct Lines<R> {
    source: BufReader<R>,
    line: Vec<u8>,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source: BufReader::with_capacity(256 << 10, source), line: Vec::new() }
    }

    /// Returns the next line without its line ending. The inner value is `None` if the line is too
    /// long or not UTF-8.
    pub(super) fn next_line(&mut self) -> std::io::Result<Option<Option<&str>>> {
        self.line.clear();
        let (mut any, mut too_long) = (false, false);
        loop {
            let buffer = match self.source.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                break;
            }
            any = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            if self.line.len() + part.len() > LINE_BYTES_MAX {
                too_long = true;
            } else {
                self.line.extend_from_slice(part);
            }
            let used = end.map_or(buffer.len(), |end| end + 1);
            self.source.consume(used);
            if end.is_some() {
                break;
            }
        }
        if !any {
            return Ok(None);
        }
        Ok(Some(if too_long { None } else { std::str::from_utf8(&self.line).ok() }))
    }
}
