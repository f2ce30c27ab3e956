//! Combines all results in the given files to a study.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_evidence::tool_result::{Figure, Latency, ToolResult};

use crate::detect::{Format, detect};
use crate::json::{self, JsonNode};
use crate::runs::read_each;
use crate::walk::{Visitor, sample, walk};
use crate::{
    ImportError, diskspd, elbencho, elbencho_live, fio, io500, ioping, ior, iozone, jetstress,
    kv_cache, mdtest, mlperf, pgbench_log, sysbench, table, terminal, text, unread, vdbench,
    vector_db, warp, warp_csv, warp_text, yabs,
};

/// Results in the given files, and statistics about these files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Study {
    /// Results, in the order of the files.
    pub results: Vec<ToolResult>,
    /// Files of a known format that cannot be read, each with the reason.
    pub unreadable: Vec<ImportError>,
    /// Number of files whose format is unknown.
    pub passed_over: usize,
    /// Number of files, such as logs, that are only a part of a result, but whose result is
    /// missing.
    pub logs_alone: usize,
    /// Number of files of each format that were read.
    pub read: BTreeMap<&'static str, usize>,
}

/// Parts of results that are in separate files.
#[derive(Default)]
struct Pieces {
    fio_logs: Vec<fio::log::Log>,
    io500_ranks: Vec<io500::Ranks>,
    mlperf_epochs: Vec<mlperf::Epochs>,
    mlperf_ranks: Vec<mlperf::Rank>,
    pgbench_logs: Vec<pgbench_log::Log>,
}

/// Reads all files in these paths.
///
/// # Errors
/// A path does not exist.
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

/// Reads a single text that is not in a file. `name` identifies the text in messages.
pub fn read_text(name: &str, text: &str) -> Study {
    let mut reader = Reader { named: true, ..Reader::default() };
    let bytes = text.as_bytes();
    if reader.wants(name, &sample(bytes)) {
        reader.take(name, bytes);
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    study: Study,
    pieces: Pieces,
    /// True while a file is read that the user named. Such a file must be a result.
    named: bool,
    prefix: String,
}

impl Visitor for Reader {
    fn wants(&mut self, path: &str, sample: &[u8]) -> bool {
        let required = detect(sample).is_some();
        if !required && self.named && !path.contains('/') {
            let reason = unread::refusal(sample).unwrap_or_else(|| "its format is unknown".into());
            self.failed(path, reason);
        } else if !required {
            // A directory of results may also contain jobs, traces, programs and web pages.
            let program = text::decode(sample).is_some_and(|text| is_program(path, &text));
            let result =
                path.ends_with(".csv.zst") || !program && unread::looks_like_result(sample);
            match unread::refusal(sample).filter(|_| result) {
                Some(reason) => self.failed(path, reason),
                None => self.study.passed_over += 1,
            }
        }
        required
    }

    fn take(&mut self, path: &str, bytes: &[u8]) {
        let sample = sample(bytes);
        let (Some(format), Some(text)) = (detect(&sample), text::decode(bytes)) else {
            self.failed(path, "only a part of it is text".into());
            return;
        };
        let file = format!("{}{path}", self.prefix);
        if self.take_fences(&text, &file) {
            return;
        }
        match self.parse(format, &text, &file) {
            Ok(()) => *self.study.read.entry(format.word()).or_default() += 1,
            // Many files contain a line that looks like a heading. Only a file that the user named
            // must be a table.
            Err(_)
                if format == Format::Table
                    && !self.named
                    && !unread::looks_like_result(&sample) =>
            {
                self.study.passed_over += 1;
            }
            // The source code of a parser contains the same names as a result.
            Err(_) if !self.named && is_program(path, &text) => self.study.passed_over += 1,
            Err(says) => {
                // The CSV of another tool may begin like a table.
                let tool = unread::known_tool(&text).filter(|_| format == Format::Table);
                self.study.unreadable.push(ImportError { file, says: tool.unwrap_or(says) });
            }
        }
    }

    fn failed(&mut self, path: &str, says: String) {
        self.study.unreadable.push(ImportError { file: format!("{}{path}", self.prefix), says });
    }
}

/// Returns the fenced blocks of a Markdown text, each with the number of its first line. Empty
/// lines precede the text of a block, so that line numbers are those of the file.
fn fences(text: &str) -> Vec<(usize, String)> {
    let (mut blocks, mut open) = (Vec::new(), None::<(usize, String)>);
    for (index, line) in text.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```");
        match (&mut open, is_fence) {
            (Some(_), true) => blocks.extend(open.take()),
            (Some((_, block)), false) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, true) => open = Some((index + 2, "\n".repeat(index + 1))),
            (None, false) => {}
        }
    }
    // A fence without an end is not a block, because the text is cut off, or the fence is a line of
    // a log.
    blocks
}

/// Removes latencies whose mean and maximum are zero, because the tool did not measure them.
fn drop_unmeasured(result: &mut ToolResult) {
    let zero = |figure: &Option<Figure>| figure.as_ref().is_none_or(|figure| figure.value <= 0.0);
    let printed = |latency: &Latency| latency.mean_ns.is_some() || latency.max_ns.is_some();
    let measured =
        |latency: &Latency| !printed(latency) || !zero(&latency.mean_ns) || !zero(&latency.max_ns);
    let mut dropped = 0;
    for operation in result.parts.iter_mut().flat_map(|part| &mut part.operations) {
        let before = operation.latencies.len();
        // For a direction without operations, the tool prints zeroes everywhere.
        let idle = operation.is_idle();
        operation.latencies.retain(|latency| {
            let some = latency.percentiles.iter().any(|percentile| percentile.ns.value > 0.0);
            measured(latency) || some || !latency.bins.is_empty()
        });
        dropped += if idle { 0 } else { before - operation.latencies.len() };
    }
    if dropped > 0 {
        result.remarks.push(
            "the tool prints a latency of zero, because it did not measure the latency".into(),
        );
    }
}

/// Returns true if the first line or the name of a file shows that it is source code or a web page.
fn is_program(path: &str, text: &str) -> bool {
    const ENDINGS: [&str; 28] = [
        "awk", "bash", "bat", "c", "cc", "cpp", "cs", "go", "h", "hpp", "in", "ipynb", "j2",
        "java", "js", "lua", "md", "php", "pl", "ps1", "py", "rb", "rs", "rst", "sh", "t", "ts",
        "yml",
    ];
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    text.starts_with("#!") || ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str()))
}

impl Reader {
    fn parse(&mut self, format: Format, text: &str, file: &str) -> Result<(), String> {
        let results = &mut self.study.results;
        match format {
            Format::FioTerse => results.push(fio::terse::read(text, file)?),
            Format::FioText => results.extend(fio::text::read_all(text, file)?),
            Format::DiskspdXml => results.extend(diskspd::read_xml(text, file)?),
            Format::DiskspdText => results.extend(diskspd::read_text(text, file)?),
            Format::ElbenchoCsv => results.extend(elbencho::read_csv(text, file)?),
            Format::ElbenchoLive => results.extend(elbencho_live::read(text, file)?),
            Format::Yabs => results.extend(yabs::read(text, file)?),
            Format::ElbenchoText => results.extend(elbencho::read_text(text, file)?),
            Format::Ioping => results.extend(ioping::read(text, file)?),
            Format::Iozone => results.extend(iozone::read(text, file)?),
            Format::ElbenchoJson => results.extend(elbencho::read_json(text, file)?),
            Format::Ior => results.extend(ior::read(text, file)?),
            Format::Io500Result => {
                let begins = |line: &str| line == "[run]";
                results.extend(read_each(text, begins, |text| io500::read_result(text, file))?);
            }
            Format::Io500Summary => {
                let begins = |line: &str| line.starts_with("IO500 version ");
                results.extend(read_each(text, begins, |text| io500::read_summary(text, file))?);
            }
            Format::Io500Ranks => self.pieces.io500_ranks.push(io500::read_ranks(text, file)?),
            Format::VdbenchFlat => results.extend(vdbench::read_flat(text, file)?),
            Format::VdbenchSummary => results.extend(vdbench::read_summary(text, file)?),
            Format::Jetstress => results.push(jetstress::read(text, file)?),
            Format::JetstressXml => results.push(jetstress::read_xml(text, file)?),
            Format::Sysbench => results.extend(sysbench::read(text, file)?),
            Format::Pgbench => results.extend(terminal::read_pgbench(text, file)?),
            Format::PgbenchLog => self.pieces.pgbench_logs.push(pgbench_log::read(text, file)?),
            Format::Mdtest => results.extend(mdtest::read_all(text, file)?),
            Format::WarpText => results.extend(warp_text::read(text, file)?),
            Format::WarpSegments => results.push(warp_csv::read_segments(text, file)?),
            Format::WarpOperations => results.push(warp_csv::read_operations(text, file)?),
            Format::Dd => results.extend(terminal::read_dd(text, file)?),
            Format::Kubestr => results.push(terminal::read_kubestr(text, file)?),
            Format::Table => results.extend(table::read(text, file)?),
            Format::FioLog => self.pieces.fio_logs.push(fio::log::read(text, file)),
            Format::FioJson
            | Format::MlperfSummary
            | Format::MlperfEpochs
            | Format::MlperfRank
            | Format::MlperfReport
            | Format::KvCache
            | Format::KvCacheRun
            | Format::VectorDb
            | Format::Warp => self.parse_json(format, text, file)?,
        }
        Ok(())
    }

    /// Reads each fenced block of a Markdown text if the block has a known format. Returns false if
    /// no block has a known format.
    fn take_fences(&mut self, text: &str, file: &str) -> bool {
        let mut any = false;
        for (line, block) in fences(text) {
            let Some(format) = detect(block.as_bytes()).filter(|f| *f != Format::Table) else {
                continue;
            };
            let before = self.study.results.len();
            match self.parse(format, &block, file) {
                Ok(()) => *self.study.read.entry(format.word()).or_default() += 1,
                // Documents in a directory of results may contain examples of results.
                Err(_) if !self.named => continue,
                Err(says) => {
                    let says = format!("the block in line {line}: {says}");
                    self.study.unreadable.push(ImportError { file: file.to_owned(), says });
                }
            }
            for result in &mut self.study.results[before..] {
                let inside = result.source.place.take().map(|place| format!(", {place}"));
                let place = format!("block in line {line}{}", inside.unwrap_or_default());
                result.source.place = Some(place);
            }
            any = true;
        }
        any
    }

    fn parse_json(&mut self, format: Format, text: &str, file: &str) -> Result<(), String> {
        if format == Format::FioJson {
            self.study.results.extend(fio::json::read_all(text, file)?);
            return Ok(());
        }
        let (json, range) = json::first_object(text).map_err(|error| error.to_string())?;
        let root = JsonNode::root(&json);
        let mut reported = match format {
            Format::MlperfSummary if mlperf::is_summary(&root) => mlperf::read_summary(&root, file),
            Format::MlperfReport if mlperf::is_report(&root) => mlperf::read_report(&root, file),
            Format::VectorDb if vector_db::is(&root) => vector_db::read(&root, file),
            Format::Warp if warp::is(&root) => warp::read(&root, file),
            Format::KvCache if kv_cache::is(&root) => kv_cache::read(&root, file),
            Format::KvCacheRun if kv_cache::is_run_summary(&root) => {
                kv_cache::read_run_summary(&root, file)
            }
            Format::MlperfEpochs if mlperf::is_epochs(&root) => {
                self.pieces.mlperf_epochs.push(mlperf::read_epochs(&root, file));
                return Ok(());
            }
            Format::MlperfRank if mlperf::is_rank(&root) => {
                self.pieces.mlperf_ranks.push(mlperf::read_rank(&root, file));
                return Ok(());
            }
            _ => {
                return Err(format!(
                    "it begins like {} but is not valid in this format",
                    format.word()
                ));
            }
        };
        if !text[..range.start].trim().is_empty() {
            let lines = text[..range.start].lines().count();
            reported.remarks.push(format!("{lines} lines of other text precede the JSON"));
        }
        let lines = text[range.end..].lines().filter(|line| !line.trim().is_empty()).count();
        if lines > 0 {
            reported.remarks.push(format!("{lines} lines of other text follow the JSON"));
        }
        self.study.results.push(reported);
        Ok(())
    }

    fn finish(mut self) -> Study {
        let left = fio::log::attach(&mut self.study.results, self.pieces.fio_logs);
        let Pieces { io500_ranks, mlperf_epochs, mlperf_ranks, pgbench_logs, .. } = self.pieces;
        let results = &mut self.study.results;
        results.iter_mut().for_each(drop_unmeasured);
        let alone = mlperf::attach(results, mlperf_epochs, &mlperf_ranks);
        io500::attach(results, io500_ranks);
        pgbench_log::attach(results, pgbench_logs);
        self.study.logs_alone = left.len() + alone;
        self.study.results.sort_by(|a, b| {
            (&a.source.file, &a.source.place).cmp(&(&b.source.file, &b.source.place))
        });
        self.study
    }
}
