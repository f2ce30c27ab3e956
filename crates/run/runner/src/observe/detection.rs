//! Detects files and results of an observed command that the user did not name.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::{Command, IoBytes, OpenedFile};
use plimsoll_evidence::tool_result::ToolResult;
use plimsoll_import::detect::detect;
use plimsoll_import::walk::read_sample;
use plimsoll_judge::conservation::{Audit, DeclaredFacts, audit};
use plimsoll_report::Style;
use plimsoll_report::number::{Letters, Unit};
use plimsoll_report::reported::figures_text;

/// Maximum size of a result file. Larger files are assumed to be data.
const RESULT_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of listed files and results.
const LISTED_MAX: usize = 5;
/// Resolution of file times, which is the kernel's timer tick.
const TICK: std::time::Duration = std::time::Duration::from_millis(20);

/// A result of the command that was detected, with its audit.
pub struct DetectedResult {
    file: PathBuf,
    result: ToolResult,
    audit: Audit,
}

/// Returns the words of the command line that are names of new result files in a known format.
pub fn find_results(
    command: &[String],
    since: SystemTime,
    named: Option<&Path>,
) -> Vec<DetectedResult> {
    let separators =
        |c: char| c.is_whitespace() || matches!(c, '=' | '>' | '<' | '|' | ';' | '&' | '"' | '\'');
    let words =
        command.iter().flat_map(|argument| argument.split(separators).chain([argument.as_str()]));
    let mut files: Vec<PathBuf> = Vec::new();
    for file in words.filter(|word| !word.is_empty()).map(PathBuf::from) {
        let is_new = !files.contains(&file) && named != Some(file.as_path());
        if is_new && is_result(&file, since) {
            files.push(file);
        }
    }
    let read = |file: PathBuf| {
        let results =
            plimsoll_import::read(&[file.as_path()]).map(|study| study.results).unwrap_or_default();
        results.into_iter().map(move |result| {
            let audit = audit(&result, &DeclaredFacts::default());
            DetectedResult { file: file.clone(), result, audit }
        })
    };
    files.into_iter().flat_map(read).collect()
}

fn is_result(file: &Path, since: SystemTime) -> bool {
    let Ok(metadata) = std::fs::metadata(file) else { return false };
    let written = metadata.modified().is_ok_and(|at| at + TICK >= since);
    if !metadata.is_file() || !written || metadata.len() > RESULT_BYTES_MAX {
        return false;
    }
    read_sample(file).is_ok_and(|sample| detect(&sample).is_some())
}

/// Describes the command's processes, I/O and files, and the detected results.
pub fn format(
    evidence: &Bundle,
    paths: &[PathBuf],
    results: &[DetectedResult],
    style: &Style,
) -> String {
    let mut text = String::new();
    if let Some(command) = &evidence.observed.command {
        text.push_str("\nThe command\n");
        for line in lines(command, paths) {
            text.push_str(&format!("  {line}\n"));
        }
    }
    for DetectedResult { file, result, audit } in results.iter().take(LISTED_MAX) {
        text.push_str(&format!(
            "\n{} ({}), a result file that the command line names\n",
            file.display(),
            result.source.format
        ));
        text.push_str(&figures_text(audit, style));
    }
    text
}

fn lines(command: &Command, paths: &[PathBuf]) -> Vec<String> {
    let size = |bytes: u64| Unit::Size.show(bytes as f64, Letters::Ascii);
    let mut lines = Vec::new();
    let moved = command.moved.map_or(
        "amount unknown".to_owned(),
        |IoBytes { read_bytes, written_bytes }| {
            format!("{} read and {} written", size(read_bytes), size(written_bytes))
        },
    );
    lines.push(format!("processes: {}; I/O to storage: {moved}", command.processes_seen));
    for file in command.files.iter().take(LISTED_MAX) {
        lines.push(describe_file(file));
    }
    let more = (command.files_seen as usize).saturating_sub(LISTED_MAX);
    if more > 0 {
        lines.push(format!("and {more} more files"));
    }
    if command.files.is_empty() {
        lines.push(
            "the command opened no block device and no file of 1 MiB or more: if a server process \
             performs the I/O, specify the server's data with --path"
                .into(),
        );
    }
    let canonical: Vec<PathBuf> =
        paths.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone())).collect();
    let outside =
        |file: &&OpenedFile| !canonical.iter().any(|path| Path::new(&file.path).starts_with(path));
    // The loader reads programs and shared libraries of the command, which are not its data.
    let is_data = |file: &&OpenedFile| file.written || !is_program(Path::new(&file.path));
    if let Some(file) = command.files.iter().filter(is_data).find(outside) {
        let place =
            if file.device { Some(Path::new(&file.path)) } else { Path::new(&file.path).parent() };
        let place = place.unwrap_or(Path::new("/")).display();
        lines.push(format!(
            "{} is not in any directory given with --path: add --path {place}",
            file.path
        ));
    }
    lines
}

/// Returns true if the file is an executable or a shared library (ELF).
fn is_program(path: &Path) -> bool {
    let mut magic = [0; 4];
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    is_file
        && std::fs::File::open(path).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok())
        && magic == *b"\x7fELF"
}

fn describe_file(file: &OpenedFile) -> String {
    let mut words = Vec::new();
    words.extend(file.size_bytes.map(|size| Unit::Size.show(size as f64, Letters::Ascii)));
    words.push(match (file.read, file.written) {
        (true, true) => "read and written".to_owned(),
        (false, true) => "written".to_owned(),
        _ => "read".to_owned(),
    });
    words.extend((file.direct == Some(true)).then(|| "direct".to_owned()));
    words.extend(file.file_system.clone());
    if !file.on.is_empty() {
        words.push(format!("on {}", file.on.join(", ")));
    }
    format!("{} ({})", file.path, words.join(", "))
}

/// Returns true if a detected result is impossible.
pub fn is_impossible(results: &[DetectedResult]) -> bool {
    use plimsoll_judge::conservation::Credibility;
    results.iter().any(|detected| detected.audit.verdict == Credibility::Impossible)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The loader opens a library of the command, and the command itself opens its data.
    #[test]
    fn a_library_is_no_data_outside_the_directories() {
        let library = std::env::current_exe().unwrap().display().to_string();
        let read = |path: &str| OpenedFile { path: path.into(), read: true, ..Default::default() };
        let mut command = Command { files: vec![read(&library)], ..Command::default() };
        let text = |command: &Command| lines(command, &["/srv/x".into()]).join("\n");
        assert!(!text(&command).contains("add --path"), "{}", text(&command));
        command.files.push(read("/srv/y/data"));
        assert!(text(&command).contains("/srv/y/data is not in any directory"));
        command.files.truncate(1);
        command.files[0].written = true;
        assert!(text(&command).contains("add --path"), "{}", text(&command));
    }
}
