//! IOR: its table of iterations, as text (versions 3 and 4) or CSV.

use plimsoll_evidence::tool_result::{
    Aggregate, Durability, Figure, Formula, Kind, Operation, Outstanding, Part, Pattern, Setting,
    ToolResult,
};

use crate::number;
use crate::parts::{Columns, Digits, figure, source};

const MIB: f64 = 1024.0 * 1024.0;
const KIB: f64 = 1024.0;
const NS_PER_S: f64 = 1e9;
/// Maximum relative deviation of a rate from the value that follows from bytes, transfer size and
/// time. All of these are rounded.
const RATE_SLACK: f64 = 0.002;

/// Returns true if the text is IOR's output.
#[must_use]
pub fn is(text: &str) -> bool {
    text.lines().any(|line| header(line).is_some())
}

/// Returns the column names, and whether commas separate them.
fn header(line: &str) -> Option<(Vec<&str>, bool)> {
    let commas = line.starts_with("access,");
    let names = cells(line, commas);
    let known = names.len() > 6 && names[..2] == ["access", "bw(MiB/s)"];
    (known && names.contains(&"xfer(KiB)") && names.contains(&"total(s)"))
        .then_some((names, commas))
}

fn cells(line: &str, commas: bool) -> Vec<&str> {
    if commas {
        line.split(',').map(str::trim).collect()
    } else {
        line.split_whitespace().collect()
    }
}

/// Reads the output of one or several tests, and returns a result for each table.
///
/// # Errors
/// No table contains a row, because the run did not finish.
pub fn read(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut begins: Vec<usize> =
        (0..lines.len()).filter(|index| header(lines[*index]).is_some()).collect();
    begins.push(lines.len());
    let version = lines.iter().find_map(|line| line.strip_prefix("IOR-"));
    let version = version.and_then(|rest| rest.split(':').next()).map(str::to_owned);
    let mut all = Vec::new();
    let mut options_from = 0;
    for pair in begins.windows(2) {
        let mut reported = ToolResult::new(source("IOR", "IOR", file));
        reported.source.version.clone_from(&version);
        let test = Test { options: &lines[options_from..pair[0]], first_line: options_from + 1 };
        table(&mut reported, &test, &lines[..pair[1]], pair[0]);
        options_from = pair[0];
        if !reported.parts.is_empty() {
            reported.source.place = Some(format!("line {}", pair[0] + 1));
            all.push(reported);
        }
    }
    if let [only] = &mut all[..] {
        only.source.place = None;
    }
    if all.is_empty() {
        Err("its table contains no iteration: the run did not finish".into())
    } else {
        Ok(all)
    }
}

/// Text that precedes a table.
struct Test<'t> {
    options: &'t [&'t str],
    first_line: usize,
}

impl<'t> Test<'t> {
    fn option(&self, name: &str) -> Option<(&'t str, String)> {
        self.options.iter().enumerate().find_map(|(index, line)| {
            let (found, value) = line.split_once(':')?;
            let field = format!("line {} ({name})", self.first_line + index);
            (found.trim() == name).then_some((value.trim(), field))
        })
    }

    fn count(&self, name: &str) -> Option<Figure> {
        let (value, field) = self.option(name)?;
        figure(value, Digits::Exact, 1.0, field)
    }

    /// Parses a size. A size without a decimal point is exact.
    fn size(&self, name: &str) -> Option<Figure> {
        let (value, field) = self.option(name)?;
        let (digits, unit) = number::split_unit(value);
        let rounding = if digits.contains('.') { Digits::Rounded } else { Digits::Exact };
        figure(digits, rounding, number::unit(unit)?.factor, field)
    }

    fn setting(&self) -> Setting {
        let tasks = self.count("tasks");
        let is = |name: &str, word: &str| self.option(name).is_some_and(|(value, _)| value == word);
        // With a file API such as POSIX, each task has one transfer in flight.
        let one_each = is("api", "POSIX") || is("api", "MPIIO");
        Setting {
            outstanding: tasks
                .clone()
                .filter(|_| one_each)
                .map(|most| Outstanding { most, kept: false }),
            threads: tasks,
            pattern: self.option("ordering in a file").and_then(|(value, _)| match value {
                "random" => Some(Pattern::Random),
                "sequential" => Some(Pattern::Sequential),
                _ => None,
            }),
            working_set_bytes: self.size("aggregate filesize"),
            durability: self.durability(),
            target: self.option("test filename").map(|(value, _)| value.to_owned()),
            ..Setting::default()
        }
    }

    /// Derives the durability from the options. `-e` flushes once at the end, and `-Y` after each
    /// write.
    fn durability(&self) -> Option<Durability> {
        let (command, _) = self.option("Command line")?;
        let given = |letter: char| {
            let mut words = command.split_whitespace().filter(|word| !word.starts_with("--"));
            words.any(|word| word.strip_prefix('-').is_some_and(|rest| rest.starts_with(letter)))
        };
        match (given('Y'), given('e')) {
            (true, _) => Some(Durability::EachWrite),
            (_, true) => Some(Durability::AtEnd),
            _ => None,
        }
    }

    /// Returns the bytes of an iteration. They are unknown if a deadline may have shortened the
    /// iteration. For reads, they are also unknown if a deadline may have shortened the writes of
    /// the same data.
    fn bytes(&self) -> Option<Figure> {
        let (command, _) = self.option("Command line").unwrap_or_default();
        let cut = self.option("stonewallingTime").is_some()
            || command.to_ascii_lowercase().contains("stonewall");
        self.size("aggregate filesize").filter(|_| !cut)
    }
}

fn table(reported: &mut ToolResult, test: &Test<'_>, lines: &[&str], at: usize) {
    let Some((names, commas)) = header(lines[at]) else { return };
    let setting = test.setting();
    let mut counted: Option<Figure> = None;
    for (index, line) in lines.iter().enumerate().skip(at + 1) {
        // The rows of the summary begin in the same way as the rows of iterations, but their
        // columns differ.
        if line.starts_with("Summary of all tests") {
            summary(reported, lines, index + 1);
            break;
        }
        counted = bytes_moved(line, index).or(counted);
        let row = cells(line, commas);
        let kind = match row.first() {
            Some(&"read") => Kind::Read,
            Some(&"write") => Kind::Write,
            _ => continue,
        };
        // In some versions CSV rows have an extra field.
        if row.len() < names.len() {
            continue;
        }
        let columns = Columns::of(&names, row, index + 1);
        let rounded = |name: &str, unit| columns.figure(name, Digits::Rounded, unit);
        let Some(bandwidth) = rounded("bw(MiB/s)", MIB) else { continue };
        let mut operation = Operation::of(kind.clone());
        operation.bandwidth_per_s.push(bandwidth.clone());
        operation.bytes.extend(counted.take().or_else(|| test.bytes()));
        operation.size_bytes = columns.figure("xfer(KiB)", Digits::Rounded, KIB);
        let window_ns = rounded("total(s)", NS_PER_S).filter(|window| window.least > 0.0);
        let iteration = columns.text("iter").unwrap_or("0");
        let name = format!("{}, iteration {iteration}", kind_word(&kind));
        let transfers_ns = rounded("wr/rd(s)", NS_PER_S);
        let made = window_ns.as_ref().zip(transfers_ns).zip(operation.size_bytes.as_ref());
        let rate = rounded("IOPS", 1.0);
        if let (Some(total), Some(made)) =
            (rate, made.and_then(|((window, took), size)| rate_of(&bandwidth, window, &took, size)))
        {
            let what = format!("transfers per second of {name}");
            let (formula, of) = (Formula::Sum, vec![made]);
            reported.combined.push(Aggregate { what, formula, total, of, slack: RATE_SLACK });
        }
        reported.parts.push(Part {
            name,
            setting: setting.clone(),
            window_ns,
            operations: vec![operation],
            ..Part::default()
        });
    }
    for (label, kind) in [("Max Write:", Kind::Write), ("Max Read:", Kind::Read)] {
        let found = lines.iter().enumerate().skip(at).find_map(|(index, line)| {
            let digits = line.strip_prefix(label)?.split_whitespace().next()?;
            figure(digits, Digits::Rounded, MIB, format!("line {} ({label})", index + 1))
        });
        let of = |part: &Part| part.operations.iter().find(|op| op.kind == kind).cloned();
        let of = reported.parts.iter().filter_map(of).flat_map(|op| op.bandwidth_per_s).collect();
        if let Some(total) = found {
            let what = format!("the largest {} bandwidth", kind_word(&kind));
            reported.combined.push(Aggregate {
                what,
                formula: Formula::Max,
                total,
                of,
                slack: 0.0,
            });
        }
    }
    if names.iter().any(|name| name.starts_with("Latency")) && !reported.parts.is_empty() {
        reported.remarks.push(
            "IOR prints only the mean latency of the fastest task, so Plimsoll does not use this \
             latency"
                .into(),
        );
    }
}

/// Reads the summary of all iterations (`PrintLongSummaryOneOperation` in ior-output.c). If it has
/// several rows for one kind of operation, they are of several tests, and are not used.
fn summary(reported: &mut ToolResult, lines: &[&str], at: usize) {
    let Some(names) = lines.get(at).map(|line| cells(line, false)) else { return };
    let rows = || lines.iter().enumerate().skip(at + 1);
    for kind in [Kind::Write, Kind::Read] {
        let is_kind = |line: &str| line.split_whitespace().next() == Some(kind_word(&kind));
        let mut of_kind = rows().filter(|(_, line)| is_kind(line));
        let (Some((index, line)), None) = (of_kind.next(), of_kind.next()) else { continue };
        let columns = Columns::of(&names, cells(line, false), index + 1);
        let parts: Vec<&Part> =
            reported.parts.iter().filter(|part| part.operations[0].kind == kind).collect();
        let repetitions = columns.figure("reps", Digits::Exact, 1.0);
        if repetitions.is_none_or(|repetitions| repetitions.value != parts.len() as f64) {
            continue;
        }
        let rates = |part: &&Part| part.operations[0].bandwidth_per_s.first().cloned();
        let times = |part: &&Part| part.window_ns.clone();
        let rates: Vec<Figure> = parts.iter().filter_map(rates).collect();
        let times: Vec<Figure> = parts.iter().filter_map(times).collect();
        for (name, formula, unit, of) in [
            ("Max(MiB)", Formula::Max, MIB, &rates),
            ("Min(MiB)", Formula::Between, MIB, &rates),
            ("Mean(MiB)", Formula::Mean, MIB, &rates),
            ("Mean(s)", Formula::Mean, NS_PER_S, &times),
        ] {
            let total = columns.figure(name, Digits::Rounded, unit);
            if let Some(total) = total.filter(|_| of.len() == parts.len()) {
                let what = format!("{name} of {} in the summary", kind_word(&kind));
                let of = of.clone();
                reported.combined.push(Aggregate { what, formula, total, of, slack: 0.0 });
            }
        }
    }
}

/// Returns the number of bytes that IOR moved. IOR prints this number only if it differs from the
/// total size of the requested files.
fn bytes_moved(line: &str, index: usize) -> Option<Figure> {
    let digits = line.split_once("Using actual aggregate bytes moved = ")?.1;
    let field = format!("line {} (actual aggregate bytes moved)", index + 1);
    figure(digits.trim().trim_end_matches('.'), Digits::Exact, 1.0, field)
}

fn kind_word(kind: &Kind) -> &'static str {
    if *kind == Kind::Read { "read" } else { "write" }
}

/// Returns the number of transfers per second, computed from only the transfer time. The time for
/// the bandwidth also includes opening and closing.
fn rate_of(bandwidth: &Figure, window: &Figure, took: &Figure, size: &Figure) -> Option<Figure> {
    let known = took.least > 0.0 && size.least > 0.0;
    known.then(|| Figure {
        value: bandwidth.value * window.value / took.value / size.value,
        least: bandwidth.least * window.least / took.most / size.most,
        most: bandwidth.most * window.most / took.least / size.least,
        field: format!("{} × total(s) / wr/rd(s) / xfer(KiB)", bandwidth.field),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TEXT: &str = "IOR-4.0.0: MPI Coordinated Test of Parallel I/O\nCommand line        : ior -a POSIX -t 1m -b 16m -s \
        16 -F -e\n\nOptions: \napi                 : POSIX\nordering in a file  : sequential\nnodes               : 2\ntasks    \
                   : 4\nxfersize            : 1 MiB\nblocksize           : 16 MiB\naggregate filesize  : 1 GiB\n\nResults: \n\
        \naccess    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   \
        iter\n------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   \
        ----\nwrite     1023.98    1282.02    0.003117   16384      1024.00    0.000123   0.798736   0.201100   1.00       0  \
        \nwrite     512.01     513.06     0.007790   16384      1024.00    0.000121   2.00       0.004000   2.00       1   \
        \nread      4100.00    4112.45    0.000970   16384      1024.00    0.000110   0.249000   0.000140   0.249756   0   \
        \nMax Write: 1023.98 MiB/sec (1073.72 MB/sec)\nMax Read:  4100.00 MiB/sec (4299.16 MB/sec)\n";

    #[test]
    fn checks_the_maximum_against_the_iterations() {
        assert!(is(TEXT));
        let all = read(TEXT, "x").unwrap();
        let [reported] = &all[..] else { panic!("{}", all.len()) };
        assert_eq!(reported.source.version.as_deref(), Some("4.0.0"));
        assert_eq!(reported.parts.len(), 3);
        let part = &reported.parts[0];
        assert_eq!(part.name, "write, iteration 0");
        assert_eq!(part.window_ns.as_ref().unwrap().value, 1e9);
        assert_eq!(part.setting.durability, Some(Durability::AtEnd));
        assert_eq!(part.setting.pattern, Some(Pattern::Sequential));
        assert_eq!(part.setting.outstanding.as_ref().unwrap().most.value, 4.0);
        let operation = &part.operations[0];
        assert_eq!(operation.bytes[0].value, 1024.0 * MIB);
        assert_eq!(operation.size_bytes.as_ref().unwrap().value, MIB);
        assert!(operation.rate_per_s.is_empty(), "it is by another time than the bandwidth");
        let greatest = reported.combined.iter().find(|c| c.formula == Formula::Max).unwrap();
        assert_eq!(greatest.of.len(), 2);
        let rate = &reported.combined[0];
        assert!(rate.of[0].least <= 1282.02 && 1282.02 <= rate.of[0].most, "{rate:?}");
    }

    #[test]
    fn bytes_are_unknown_where_a_deadline_may_have_ended_it() {
        let text = TEXT.replace("\n\nResults", "\nstonewallingTime    : 30\n\nResults");
        let all = read(&text, "x").unwrap();
        assert!(all[0].parts[0].operations[0].bytes.is_empty());
    }

    #[test]
    fn reads_after_a_deadline_are_not_whole_files() {
        let text = TEXT.replace("-F -e", "-F -e -r -O stoneWallingStatusFile=s");
        assert!(read(&text, "x").unwrap()[0].parts[0].operations[0].bytes.is_empty());
    }

    #[test]
    fn uses_counted_bytes_and_ignores_the_summary() {
        let told = "WARNING: Expected aggregate file size       = 1073741824.\nWARNING: Using actual aggregate bytes \
            moved = 536870912.\nwrite     512.01";
        let summary = "Max Read:  4100.00 MiB/sec (4299.16 MB/sec)\n\nSummary of all tests:\nOperation   Max(MiB)   \
            Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  Mean(OPs)     StdDev    Mean(s) Stonewall(s)\nwrite  \
            1023.98  512.01  767.99  255.98  1023.98  512.01  767.99  255.98  1.50 NA NA\n";
        let text = TEXT.replacen("write     512.01", told, 1);
        let end = text.find("Max Read:").unwrap();
        let all = read(&format!("{}{summary}", &text[..end]), "x").unwrap();
        let [reported] = &all[..] else { panic!("{}", all.len()) };
        assert_eq!(reported.parts.len(), 3, "the summary's row is none of them");
        let bytes = |part: usize| reported.parts[part].operations[0].bytes[0].value;
        assert_eq!((bytes(0), bytes(1), bytes(2)), (1024.0 * MIB, 512.0 * MIB, 1024.0 * MIB));
    }

    #[test]
    fn the_summary_agrees_with_the_iterations() {
        use plimsoll_judge::conservation::{DeclaredFacts, audit};
        let summary = "\nSummary of all tests:\nOperation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev   Max(OPs)   Min(OPs)  \
            Mean(OPs)     StdDev    Mean(s) Stonewall(s) Stonewall(MiB) Test# #Tasks tPN reps\nwrite        1023.98     512.01     \
            768.00     255.98    1023.98     512.01     768.00     255.98    1.50002         NA            NA     0      4   2    \
            2\n";
        let audited = |summary: &str| {
            let reported = read(&format!("{TEXT}{summary}"), "x").unwrap().remove(0);
            audit(&reported, &DeclaredFacts::default()).findings.len()
        };
        assert_eq!(audited(summary), 0);
        for (from, to) in [
            ("  1023.98     512.01     768", "  2023.98     512.01     768"),
            ("1023.98     512.01     768.00 ", "1023.98     112.01     768.00 "),
            ("512.01     768.00 ", "512.01     968.00 "),
            ("1.50002", "0.50002"),
        ] {
            assert!(summary.contains(from), "{from}");
            assert_eq!(audited(&summary.replacen(from, to, 1)), 1, "{to}");
        }
        // Without a row for each repetition, the summary describes other iterations.
        let other = summary.replace("1.50002", "0.50002").replace("2    2\n", "2    3\n");
        assert_eq!(audited(&other), 0);
    }

    #[test]
    fn a_csv_is_the_same_table() {
        let text = "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter\nwrite,1024.00,1026.05,0.003891,16384,1024,0.0001,0.998,0.0004,1.00,4,0\n";
        assert!(is(text));
        let all = read(text, "x").unwrap();
        assert_eq!(all[0].parts[0].operations[0].bandwidth_per_s[0].value, 1024.0 * MIB);
        assert!(all[0].parts[0].setting.threads.is_none(), "its options are not in the file");
    }

    #[test]
    fn a_run_that_did_not_finish_is_not_a_result() {
        let cut = &TEXT[..TEXT.find("write     1023").unwrap()];
        assert!(is(cut));
        assert!(read(cut, "x").is_err());
        assert!(!is("access to bw(MiB/s) is denied"));
    }
}
