//! Reads block traces, which contain every I/O operation of an application or a host.
//!
//! | format | recognised by | times |
//! |---|---|---|
//! | blkparse text | `8,0 3 11 0.009507758 697 Q W 223490 + 8 [x]` | seconds with nine digits |
//! | fio iolog, version 2 | `fio version 2 iolog` | none but `wait` lines, microseconds |
//! | fio iolog, version 3 | `fio version 3 iolog` | microseconds from the beginning |
//! | MSR Cambridge CSV | seven fields, the fourth `Read` or `Write` | Windows file times, 100 ns |
//! | Alibaba block-trace CSV | five fields, the second `R` or `W` | microseconds |
//! | Tencent block-trace CSV | five numbers, the first a time, the fourth 0 or 1 | seconds |
//! | SPC CSV | five fields, the fourth `R` or `W` | seconds with decimals |
//! | SYSTOR '17 CSV | six fields, the third `R` or `W` | seconds with nine digits |
//!
//! The format is detected from the content. A trace is read line by line, so its size does not
//! matter. Gzip files are decompressed while they are read. Operations other than reads, writes and
//! flushes, such as discards and zone operations, are counted by name and skipped. Invalid lines
//! are counted as unreadable, and never cause a panic.

mod alibaba;
mod blkparse;
mod fields;
mod iolog;
mod lines;
mod msr;
mod spc;
mod systor;
mod tencent;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};

use crate::ImportError;
use lines::Lines;

/// Number of bytes from which the format is detected.
const HEAD_BYTES: usize = 64 << 10;
/// Magic number of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Magic number of zstd.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Number of lines from which the format is detected.
const HEAD_LINES: usize = 200;
/// Maximum number of different devices or files in a trace.
const VOLUMES_MAX: usize = 1 << 16;
/// Maximum transfer size. The kernel's block layer never issues larger transfers.
const SIZE_BYTES_MAX: u64 = 16 << 20;
/// Maximum offset. No device is larger.
const OFFSET_BYTES_MAX: u64 = 1 << 60;
/// Maximum share of unreadable lines. If more lines are unreadable, the file does not have the
/// detected format.
const UNREADABLE_SHARE_MAX: f64 = 0.05;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Output of blkparse.
    Blkparse,
    /// fio's `write_iolog`, version 2.
    IologV2,
    /// fio's `write_iolog`, version 3.
    IologV3,
    /// Traces of Microsoft Research Cambridge.
    Msr,
    /// Block traces of Alibaba.
    Alibaba,
    /// Block traces of Tencent.
    Tencent,
    /// Traces in the format of the Storage Performance Council.
    Spc,
    /// Traces of virtual desktops, from SYSTOR '17.
    Systor,
}

impl Format {
    pub const ALL: [Self; 8] = [
        Self::Blkparse,
        Self::IologV2,
        Self::IologV3,
        Self::Msr,
        Self::Alibaba,
        Self::Tencent,
        Self::Spc,
        Self::Systor,
    ];

    /// Returns the name of the format that users see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blkparse => "blkparse text",
            Self::IologV2 => "fio iolog version 2",
            Self::IologV3 => "fio iolog version 3",
            Self::Msr => "MSR Cambridge CSV",
            Self::Alibaba => "Alibaba block-trace CSV",
            Self::Tencent => "Tencent block-trace CSV",
            Self::Spc => "SPC CSV",
            Self::Systor => "SYSTOR '17 CSV",
        }
    }
}

/// Stage of an operation in blkparse output. The output has an event for each stage. The events of
/// only one stage represent the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The request was queued. At this stage, it is still the request of the application, which is
    /// merged or split later.
    Queued,
    /// The request was issued to the device.
    Issued,
    Completed,
}

impl Stage {
    /// Returns the letter in blkparse's output.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Queued => 'Q',
            Self::Issued => 'D',
            Self::Completed => 'C',
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Read,
    Write,
    /// Write whose data is on stable storage when it completes (FUA).
    WriteDurable,
    /// Flush of written data to stable storage (`fsync`).
    Sync,
    /// Flush of written data and only the metadata that is required to read it (`fdatasync`, or a
    /// flush of the device).
    DataSync,
}

impl Operation {
    /// Returns true if the operation transfers data. A flush transfers no data.
    #[must_use]
    pub const fn moves(self) -> bool {
        !matches!(self, Self::Sync | Self::DataSync)
    }
}

/// A read, write or flush in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time of the request, on the trace's clock.
    pub at_ns: u64,
    /// Index of the device or file in [`TraceStatistics::volumes`].
    pub volume: u16,
    /// Offset of the first byte. It is 0 for a flush.
    pub offset_bytes: u64,
    /// Number of bytes. It is 0 only for a flush.
    pub size_bytes: u32,
    pub operation: Operation,
}

/// A device or file in a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Name of the device or file in the trace.
    pub name: String,
    /// Number of reads and writes on this device or file.
    pub operations: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceStatistics {
    pub format: Format,
    /// Stage of blkparse output whose events represent the operations.
    pub stage: Option<Stage>,
    /// SHA-256 of the file.
    pub sha256: String,
    /// File size in bytes.
    pub file_bytes: u64,
    pub lines: u64,
    /// Number of lines that do not match the format.
    pub unreadable: u64,
    /// Devices or files, in order of their first appearance.
    pub volumes: Vec<Volume>,
    pub flushes: u64,
    /// Number of skipped operations, by name.
    pub left_out: BTreeMap<String, u64>,
    /// True if the trace has request times.
    pub timed: bool,
}

/// Content of a line.
enum Line {
    /// A read or write, whose volume number is not yet set. If `flush_before` is true, a flush of
    /// earlier writes precedes it.
    Moves {
        at_ns: u64,
        offset_bytes: u64,
        size_bytes: u64,
        operation: Operation,
        flush_before: bool,
    },
    /// A flush of the volume.
    Flushes { at_ns: u64, operation: Operation },
    /// Skipped operation.
    Left(&'static str),
    /// The line is ignored, because it is a header, a summary, or an event of another stage.
    Nothing,
    /// The line does not match the format.
    Unreadable,
}

/// Parser for the lines of a format.
trait Form {
    /// Parses a line. Sets `volume`, which is initially empty, to the name of the device or file.
    fn line(&mut self, line: &str, volume: &mut String) -> Line;
}

/// Reads a trace, and calls `each` for every read, write and flush. The order is that of the file,
/// in which times may decrease. Stops when `each` returns false.
///
/// # Errors
/// The file cannot be read, has no known trace format, or contains no read or write.
pub fn read(
    path: &Path,
    each: &mut dyn FnMut(&Record) -> bool,
) -> Result<TraceStatistics, ImportError> {
    let wrong = |says: String| ImportError { file: path.display().to_string(), says };
    let unread = |error: std::io::Error| wrong(format!("cannot be read: {error}"));
    let file = File::open(path).map_err(unread)?;
    if !file.metadata().map_err(unread)?.is_file() {
        return Err(wrong("is not a regular file".to_owned()));
    }
    let hashed = HashingReader { file, digest: Sha256::new(), bytes: 0 };
    let mut raw = BufReader::with_capacity(1 << 20, hashed);
    let is_gzip = std::io::BufRead::fill_buf(&mut raw).map_err(unread)?.starts_with(&GZIP);
    let (mut account, raw) = if is_gzip {
        let mut unpacked = BufReader::with_capacity(1 << 20, MultiGzDecoder::new(raw));
        let account = parse(&mut unpacked, each).map_err(wrong)?;
        (account, unpacked.into_inner().into_inner())
    } else {
        let account = parse(&mut raw, each).map_err(wrong)?;
        (account, raw)
    };
    // The remaining bytes are also hashed, because the digest is that of the whole file.
    let mut raw = raw;
    std::io::copy(&mut raw, &mut std::io::sink()).map_err(unread)?;
    let HashingReader { digest, bytes, .. } = raw.into_inner();
    account.sha256 = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    account.file_bytes = bytes;
    let lines = account.lines.max(1) as f64;
    if account.unreadable as f64 > lines * UNREADABLE_SHARE_MAX {
        let (unreadable, lines) = (account.unreadable, account.lines);
        let form = account.format.name();
        return Err(wrong(format!(
            "begins like {form}, but {unreadable} of its {lines} lines do not have this format"
        )));
    }
    if account.volumes.iter().all(|volume| volume.operations == 0) {
        return Err(wrong(format!("contains no read or write ({})", account.format.name())));
    }
    Ok(account)
}

/// Detects the format of a trace. For blkparse output, also detects the stage whose events
/// represent the operations.
#[must_use]
pub fn detect(head: &[u8]) -> Option<(Format, Option<Stage>)> {
    let text = String::from_utf8_lossy(head);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    match lines.clone().next()? {
        "fio version 2 iolog" => return Some((Format::IologV2, None)),
        "fio version 3 iolog" => return Some((Format::IologV3, None)),
        _ => {}
    }
    let mut stage = None;
    for line in lines.by_ref().take(HEAD_LINES) {
        if let Some(found) = blkparse::stage(line) {
            stage = Some(stage.map_or(found, |known: Stage| known.min(found)));
        } else if stage.is_none()
            && let Some(format) = table_format(line)
        {
            return Some((format, None));
        }
    }
    stage.map(|stage| (Format::Blkparse, Some(stage)))
}

/// Detects the format of a trace in which each operation is a line of comma-separated fields.
fn table_format(line: &str) -> Option<Format> {
    let formats: [(fn(&str) -> bool, Format); 5] = [
        (msr::is_line, Format::Msr),
        (alibaba::is_line, Format::Alibaba),
        (spc::is_line, Format::Spc),
        (systor::is_line, Format::Systor),
        (tencent::is_line, Format::Tencent),
    ];
    formats.iter().find(|(is, _)| is(line)).map(|(_, format)| *format)
}

/// For a file that cannot be read as a trace, returns the reason and a hint. `head` is the start of
/// the file.
#[must_use]
pub fn refusal(head: &[u8]) -> String {
    if head.starts_with(&ZSTD) {
        return "has no known trace format: it is compressed with zstd; unpack it (zstd -d FILE)"
            .to_owned();
    }
    let text = String::from_utf8_lossy(head);
    if text.contains('\u{fffd}') || head.contains(&0) {
        return "has no known trace format: it is binary; for a blktrace, use the text output of \
                blkparse -i DEVICE; for a trace in the format vscsi (CloudPhysics) or oracleGeneral \
                (libCacheSim), print its records as device_id,opcode,offset,length,timestamp, where \
                opcode is R or W, offset and length are in bytes, and timestamp is in microseconds"
            .to_owned();
    }
    let known: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
    format!("has no known trace format; the known formats are {}", known.join(", "))
}

/// Returns true if the start of a file shows that it is a trace. The file may be gzipped.
#[must_use]
pub fn opens(head: &[u8]) -> bool {
    if !head.starts_with(&GZIP) {
        return detect(head).is_some();
    }
    let mut unpacked = Vec::new();
    // Reading the truncated input ends in an error, but the data before its end is available.
    let _ = MultiGzDecoder::new(head).take(HEAD_BYTES as u64).read_to_end(&mut unpacked);
    detect(&unpacked).is_some()
}

fn parse<R: Read>(
    source: &mut BufReader<R>,
    each: &mut dyn FnMut(&Record) -> bool,
) -> Result<TraceStatistics, String> {
    let mut head = vec![0; HEAD_BYTES];
    let mut filled = 0;
    while filled < head.len() {
        match source.read(&mut head[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("cannot be read: {error}")),
        }
    }
    head.truncate(filled);
    let whole = head.iter().rposition(|byte| *byte == b'\n').map_or(head.len(), |at| at + 1);
    let Some((format, stage)) = detect(&head[..whole]) else {
        return Err(refusal(&head));
    };
    let mut reading = Reading::new(format, stage);
    match (format, stage) {
        (Format::Blkparse, stage) => {
            let mut form = blkparse::Blkparse::new(stage.unwrap_or(Stage::Queued));
            reading.all(&head, source, &mut form, each)?;
        }
        (Format::IologV2, _) => reading.all(&head, source, &mut iolog::V2::default(), each)?,
        (Format::IologV3, _) => reading.all(&head, source, &mut iolog::V3, each)?,
        (Format::Msr, _) => reading.all(&head, source, &mut msr::Msr, each)?,
        (Format::Alibaba, _) => reading.all(&head, source, &mut alibaba::Alibaba, each)?,
        (Format::Tencent, _) => reading.all(&head, source, &mut tencent::Tencent, each)?,
        (Format::Spc, _) => reading.all(&head, source, &mut spc::Spc, each)?,
        (Format::Systor, _) => reading.all(&head, source, &mut systor::Systor, each)?,
    }
    Ok(reading.account)
}

/// State of reading a trace.
struct Reading {
    account: TraceStatistics,
    numbers: BTreeMap<String, u16>,
    /// Name and number of the previous line's volume. They are kept because consecutive lines
    /// usually have the same volume.
    last: (String, u16),
    first_ns: Option<u64>,
}

impl Reading {
    fn new(format: Format, stage: Option<Stage>) -> Self {
        let account = TraceStatistics {
            format,
            stage,
            sha256: String::new(),
            file_bytes: 0,
            lines: 0,
            unreadable: 0,
            volumes: Vec::new(),
            flushes: 0,
            left_out: BTreeMap::new(),
            timed: false,
        };
        Self { account, numbers: BTreeMap::new(), last: (String::new(), 0), first_ns: None }
    }

    fn all<R: Read>(
        &mut self,
        head: &[u8],
        source: &mut BufReader<R>,
        form: &mut dyn Form,
        each: &mut dyn FnMut(&Record) -> bool,
    ) -> Result<(), String> {
        let mut lines = Lines::new(head.chain(source));
        let mut volume = String::new();
        while let Some(line) =
            lines.next_line().map_err(|error| format!("cannot be read: {error}"))?
        {
            self.account.lines += 1;
            let Some(line) = line else {
                self.account.unreadable += 1;
                continue;
            };
            volume.clear();
            match form.line(line, &mut volume) {
                Line::Nothing => {}
                Line::Unreadable => self.account.unreadable += 1,
                Line::Left(what) => self.leave(what),
                Line::Flushes { at_ns, operation } => {
                    if let Some(record) = self.flush(&volume, at_ns, operation)
                        && !each(&record)
                    {
                        return Ok(());
                    }
                }
                Line::Moves { at_ns, offset_bytes, size_bytes, operation, flush_before } => {
                    let flush =
                        flush_before.then(|| self.flush(&volume, at_ns, Operation::DataSync));
                    let moves = self.record(&volume, at_ns, offset_bytes, size_bytes, operation);
                    if flush.flatten().into_iter().chain(moves).any(|record| !each(&record)) {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    fn leave(&mut self, what: &str) {
        match self.account.left_out.get_mut(what) {
            Some(count) => *count += 1,
            None => drop(self.account.left_out.insert(what.to_owned(), 1)),
        }
    }

    fn flush(&mut self, name: &str, at_ns: u64, operation: Operation) -> Option<Record> {
        let Some(volume) = self.volume(name) else {
            self.leave("operations on a device after the first 65,536 devices");
            return None;
        };
        self.account.flushes += 1;
        Some(Record { at_ns, volume, offset_bytes: 0, size_bytes: 0, operation })
    }

    fn record(
        &mut self,
        name: &str,
        at_ns: u64,
        offset_bytes: u64,
        size_bytes: u64,
        operation: Operation,
    ) -> Option<Record> {
        if size_bytes == 0 {
            self.leave("operations with a size of zero");
            return None;
        }
        let size = u32::try_from(size_bytes).ok().filter(|_| size_bytes <= SIZE_BYTES_MAX);
        let Some(size_bytes) = size else {
            self.leave("operations larger than 16 MiB");
            return None;
        };
        if offset_bytes > OFFSET_BYTES_MAX {
            self.leave("operations at an offset larger than any device");
            return None;
        }
        let Some(volume) = self.volume(name) else {
            self.leave("operations on a device after the first 65,536 devices");
            return None;
        };
        self.account.volumes[usize::from(volume)].operations += 1;
        match self.first_ns {
            None => self.first_ns = Some(at_ns),
            Some(first_ns) => self.account.timed |= first_ns != at_ns,
        }
        Some(Record { at_ns, volume, offset_bytes, size_bytes, operation })
    }

    fn volume(&mut self, name: &str) -> Option<u16> {
        if !self.account.volumes.is_empty() && self.last.0 == name {
            return Some(self.last.1);
        }
        let number = match self.numbers.get(name) {
            Some(number) => *number,
            None if self.account.volumes.len() >= VOLUMES_MAX => return None,
            None => {
                let number = self.account.volumes.len() as u16;
                self.numbers.insert(name.to_owned(), number);
                self.account.volumes.push(Volume { name: name.to_owned(), operations: 0 });
                number
            }
        };
        self.last = (name.to_owned(), number);
        Some(number)
    }
}

/// Reader that computes the hash of all bytes that it reads.
struct HashingReader {
    file: File,
    digest: Sha256,
    bytes: u64,
}

impl Read for HashingReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.digest.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
