//! Report of iozone for one or many sizes (`iozone -a`), in KiB/s.

use plimsoll_evidence::tool_result::{Figure, Kind, Operation, Part, Pattern, Setting, ToolResult};

use crate::parts::{Digits, figure, source};

const KIB: f64 = 1024.0;
/// Columns that follow the file size and the record size, in the order of the report. Older
/// versions have fewer columns.
const TESTS: [(&str, Kind, Pattern); 13] = [
    ("write", Kind::Write, Pattern::Sequential),
    ("rewrite", Kind::Write, Pattern::Sequential),
    ("read", Kind::Read, Pattern::Sequential),
    ("reread", Kind::Read, Pattern::Sequential),
    ("random read", Kind::Read, Pattern::Random),
    ("random write", Kind::Write, Pattern::Random),
    ("backward read", Kind::Read, Pattern::Sequential),
    ("record rewrite", Kind::Write, Pattern::Sequential),
    ("stride read", Kind::Read, Pattern::Sequential),
    ("fwrite", Kind::Write, Pattern::Sequential),
    ("frewrite", Kind::Write, Pattern::Sequential),
    ("fread", Kind::Read, Pattern::Sequential),
    ("freread", Kind::Read, Pattern::Sequential),
];

/// Returns true if the text is an iozone report.
#[must_use]
pub fn is(text: &str) -> bool {
    (text.contains("Iozone:") || text.contains("iozone")) && text.lines().any(is_header)
}

fn is_header(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    matches!(&words[..], ["KB" | "kB", "reclen", "write", "rewrite", "read", "reread", ..])
}

/// Returns the words of a line, each with the positions of its first character and its end.
fn words(line: &str) -> Vec<(usize, usize, &str)> {
    let start = |word: &str| word.as_ptr() as usize - line.as_ptr() as usize;
    line.split_whitespace().map(|word| (start(word), start(word) + word.len(), word)).collect()
}

/// Returns the cells of a row in the order of the header. For a test that did not run (`-i 0 -i 2`),
/// iozone prints spaces, so a cell belongs to the heading above it. If the first cell does not end
/// below its heading, the text was reformatted, and only the order of the cells is known.
fn cells<'r>(header: &str, row: &'r str) -> Vec<&'r str> {
    let (header, row) = (words(header), words(row));
    let ends = [&header, &row].map(|words| words.first().map(|(_, end, _)| *end));
    if ends[0] != ends[1] || row.len() >= header.len() {
        return row.into_iter().map(|(.., word)| word).collect();
    }
    let mut cells = vec![""; header.len()];
    for (from, to, word) in row {
        // Numbers that are wider than their column shift the numbers after them.
        let distance = |(_, (start, end, _)): &(usize, &(usize, usize, &str))| {
            (start + end).abs_diff(from + to)
        };
        let nearest = header.iter().enumerate().min_by_key(distance);
        if let Some(cell) = nearest.and_then(|(at, _)| cells.get_mut(at)) {
            *cell = word;
        }
    }
    cells
}

/// Reads the report, and returns a result for each row.
///
/// # Errors
/// The report contains no rows, or its figures are not amounts per second.
pub fn read(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    for other in
        ["Output is in Ops/sec", "Output is in operations per second", "Output is in microseconds"]
    {
        if text.contains(other) {
            return Err(format!(
                "{other:?}: Plimsoll reads only reports whose figures are amounts \
             per second"
            ));
        }
    }
    let version = text.lines().find_map(|line| line.trim().strip_prefix("Version $Revision: "));
    let version = version.and_then(|rest| rest.split_whitespace().next());
    let (mut all, mut header) = (Vec::new(), None);
    for (index, line) in text.lines().enumerate() {
        if is_header(line) {
            header = Some(line);
            continue;
        }
        let Some(header) = header else { continue };
        let cells = cells(header, line);
        let whole = |text: &&str| text.bytes().all(|b| b.is_ascii_digit());
        let known = cells.iter().filter(|cell| !cell.is_empty()).count();
        if known < 3 || cells.len() > TESTS.len() + 2 || !cells.iter().all(whole) {
            continue;
        }
        let take = |column: usize, name: &str| -> Option<Figure> {
            let field = format!("line {} ({name})", index + 1);
            figure(cells.get(column)?, Digits::Either, KIB, field)
        };
        let mut reported = ToolResult::new(source("iozone", "iozone", file));
        reported.source.version = version.map(str::to_owned);
        reported.source.place = Some(format!("line {}", index + 1));
        for (column, (name, kind, pattern)) in TESTS.iter().enumerate() {
            let Some(bandwidth) = take(column + 2, name).filter(|rate| rate.value > 0.0) else {
                continue;
            };
            let mut operation = Operation::of(kind.clone());
            operation.bandwidth_per_s.push(bandwidth);
            // Sizes are exact.
            let exact =
                |figure: Figure| Figure { least: figure.value, most: figure.value, ..figure };
            operation.size_bytes = take(1, "reclen").map(exact);
            let setting = Setting {
                pattern: Some(*pattern),
                working_set_bytes: take(0, "KB").map(exact),
                ..Setting::default()
            };
            let name = (*name).to_owned();
            reported.parts.push(Part {
                name,
                setting,
                operations: vec![operation],
                ..Part::default()
            });
        }
        if !reported.parts.is_empty() {
            all.push(reported);
        }
    }
    if all.is_empty() { Err("it contains no row with figures".into()) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rows_are_results_of_many_tests() {
        let text = "\tIozone: Performance Test of File I/O\n\t        Version $Revision: 3.489 $\n\tOutput is in kBytes/sec\n  \
            random    random     bkwd    record    stride\n  kB  reclen    write  rewrite    read    reread    read     \
            write     read   rewrite      read   fwrite frewrite    fread  freread\n  65536    4   500000   600000  900000 \
            1000000  800000  400000\n\niozone test complete.\n";
        assert!(is(text));
        let all = read(text, "x").unwrap();
        assert_eq!((all.len(), all[0].parts.len()), (1, 6));
        assert_eq!(all[0].source.version.as_deref(), Some("3.489"));
        let random = &all[0].parts[4];
        assert_eq!(
            (random.name.as_str(), random.setting.pattern),
            ("random read", Some(Pattern::Random))
        );
        assert_eq!(random.operations[0].bandwidth_per_s[0].value, 800_000.0 * 1024.0);
        assert!(read(&text.replace("kBytes/sec", "microseconds"), "x").is_err());
    }

    #[test]
    fn tests_that_did_not_run_leave_their_columns_empty() {
        // Printed by iozone 3.492 with `-i 0 -i 2`, and with wide numbers.
        let header = "              kB  reclen    write  rewrite    read    reread    read     write     read   \
                      rewrite      read   fwrite frewrite    fread  freread\n";
        let row = |row: &str| {
            let all = read(&format!("iozone\n{header}{row}\n"), "x").unwrap();
            let of = |part: &Part| (part.name.clone(), part.operations[0].bandwidth_per_s[0].value);
            all[0].parts.iter().map(of).map(|(n, b)| (n, b / KIB)).collect::<Vec<_>>()
        };
        let names = |row: Vec<(String, f64)>| row.into_iter().map(|(n, _)| n).collect::<Vec<_>>();
        let some =
            row("          102400    1024   385198   389054                     379221   387988");
        assert_eq!(some[2], ("random read".to_owned(), 379_221.0));
        assert_eq!(names(some), ["write", "rewrite", "random read", "random write"]);
        let wide =
            row("         1048576     512  5169375 17712220                    17541971 18989992");
        assert_eq!(names(wide), ["write", "rewrite", "random read", "random write"]);
        let reads = row("          102400    1024                    43361    42502");
        assert_eq!(names(reads), ["read", "reread"]);
    }
}
