//! Reads tables that people wrote as CSV, TSV or Markdown. It recognises the usual names of columns
//! and units.
//!
//! A unit is in the heading (`BW (MB/s)`, `lat_us`) or in the cell (`25Gb/s`, `1.2M`). The
//! precision of a figure follows from its last non-zero digit. Values of missing columns, such as
//! the read percentage, pattern and depth, stay unknown.

use plimsoll_evidence::tool_result::{
    CounterReset, Figure, Kind, Latency, Operation, Outstanding, Part, Pattern, Percentile,
    Setting, Stage, ToolResult,
};

use crate::number::{self, Commas, Measure, Unit};
use crate::parts::source;

mod column;

use column::{Column, LatencyStatistic, Role, columns, is_unknown_latency};

/// Maximum relative deviation of a mean of samples from the mean of all operations. For example,
/// fio's `iops_mean` and `bw_mean` of a job differ by up to 5 % if the intervals contain few
/// operations.
const SAMPLED_SLACK: f64 = 0.05;

/// Maximum share of operations that the tool did not count because of a warm-up. It is used if a
/// row does not state the depth and the time. At the end of a warm-up, fio counts the bytes of
/// operations in flight, but not these operations.
const RAMP_SLACK: f64 = 0.005;

/// A Markdown table may be anywhere in a text, but a CSV file begins with its headings.
#[must_use]
pub fn is(text: &str) -> bool {
    let json = text.trim_start().starts_with(['{', '[']);
    !json && blocks(text).into_iter().any(|block| is_block(&block))
}

fn is_block(block: &Block) -> bool {
    is_result(&columns(&block.header)) && !over_time(&block.header)
}

/// Maximum size of an operation. A larger size is that of a file, a volume or a data set.
const SIZE_MAX: f64 = 1024.0 * 1024.0 * 1024.0;

/// Rows with times show the progress of a single run. They are not results.
fn over_time(header: &[String]) -> bool {
    let first = header.first().map(|name| name.to_lowercase()).unwrap_or_default();
    let word = first.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty());
    let times =
        ["time", "timestamp", "interval", "sec", "secs", "second", "seconds", "elapsed", "t"];
    // In elbencho's live statistics, a label precedes the time.
    let live = header.iter().any(|name| name.eq_ignore_ascii_case("RuntimeMS"));
    live || word.is_some_and(|word| times.contains(&word))
}

/// Returns true if a row contains enough figures for a result. It must contain a rate, bandwidth or
/// latency, and at least one other figure.
fn is_result(columns: &[Option<Column>]) -> bool {
    let roles = || columns.iter().flatten().map(|column| column.role);
    let figure = |role| matches!(role, Role::Rate | Role::Bandwidth | Role::Latency(_));
    let two = roles().filter(|role| !matches!(role, Role::Name | Role::Kind)).count() >= 2;
    roles().any(figure) && two
}

/// A table, which consists of a header and rows.
struct Block {
    /// Character that separates the cells.
    separator: char,
    header: Vec<String>,
    rows: Vec<(usize, Vec<String>)>,
    /// Lines with more cells than the header. The columns of these cells are unknown.
    skipped: Vec<usize>,
}

impl Block {
    /// Adds empty cells to short rows, because many programs omit empty cells at the end. Also
    /// removes empty cells after the last heading.
    fn of(separator: char, header: Vec<String>, all: Vec<(usize, Vec<String>)>) -> Self {
        let (mut rows, mut skipped) = (Vec::new(), Vec::new());
        for (line, mut cells) in all {
            if cells.iter().skip(header.len()).all(String::is_empty) {
                cells.resize(header.len(), String::new());
                rows.push((line, cells));
            } else {
                skipped.push(line);
            }
        }
        Self { separator, header, rows, skipped }
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let markdown = markdown(text);
    if markdown.is_empty() { separated(text).into_iter().collect() } else { markdown }
}

/// Parses a table whose cells are between bars, and whose header is followed by a line of dashes.
fn markdown(text: &str) -> Vec<Block> {
    let cells = |line: &str| -> Option<Vec<String>> {
        let line = line.trim();
        let inner = line.strip_prefix('|').unwrap_or(line);
        let inner = inner.strip_suffix('|').unwrap_or(inner);
        line.contains('|').then(|| inner.split('|').map(plain).collect())
    };
    let dashes = |line: &str| {
        line.contains('-') && line.contains('|') && line.chars().all(|c| "|-: \t+".contains(c))
    };
    let lines: Vec<&str> = text.lines().collect();
    let headings = (1..lines.len()).filter(|index| dashes(lines[*index]));
    let headings = headings.filter_map(|index| Some((index, cells(lines[index - 1])?)));
    // Lines of dashes may also separate the rows of a table.
    let (results, others): (Vec<_>, Vec<_>) =
        headings.partition(|(_, header)| is_result(&columns(header)));
    let ends = results.iter().skip(1).map(|(index, _)| index - 1).chain([lines.len()]);
    let ends: Vec<usize> = ends.collect();
    let mut blocks: Vec<Block> =
        others.into_iter().map(|(_, header)| Block::of('|', header, Vec::new())).collect();
    for ((index, header), end) in results.into_iter().zip(ends) {
        let below = (index + 1..end).map_while(|at| Some((at + 1, cells(lines[at])?)));
        blocks.push(Block::of('|', header, below.collect()));
    }
    blocks
}

/// Removes emphasis from a cell.
fn plain(cell: &str) -> String {
    cell.trim().trim_matches(['*', '`', '"']).trim().to_owned()
}

/// Parses a table whose cells are separated by commas, semicolons or tabs.
fn separated(text: &str) -> Option<Block> {
    let skipped = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let before = text.lines().take_while(skipped).count();
    let first = text.lines().nth(before)?;
    let count = |separator: char| first.matches(separator).count();
    let separator = ['\t', ';', ','].into_iter().max_by_key(|separator| count(*separator))?;
    if count(separator) == 0 {
        return None;
    }
    let start = text.split_inclusive('\n').take(before).map(str::len).sum::<usize>();
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator as u8)
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes().get(start..)?);
    let mut records = reader.records().filter_map(Result::ok);
    let cells = |record: &csv::StringRecord| record.iter().map(plain).collect::<Vec<String>>();
    let header = cells(&records.next()?);
    let rows = records.map(|record| {
        let line = record.position().map_or(0, csv::Position::line) as usize + before;
        (line, cells(&record))
    });
    Some(Block::of(separator, header, rows.collect()))
}

/// Reads all tables of a text, and returns a result for each row.
///
/// # Errors
/// No row contains a figure, or the numbers are ambiguous.
pub fn read(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    let (mut all, mut remarks, mut zeroes) = (Vec::new(), Vec::new(), false);
    for block in blocks(text) {
        let columns = columns(&block.header);
        if !is_result(&columns) || over_time(&block.header) {
            continue;
        }
        if let [first, ..] = block.skipped[..] {
            remarks.push(format!(
                "{} rows with more cells than the heading were skipped (first: line {first})",
                block.skipped.len()
            ));
        }
        let unknown: Vec<String> = block
            .header
            .iter()
            .filter(|h| is_unknown_latency(h))
            .map(|h| format!("{h:?}"))
            .collect();
        if !unknown.is_empty() {
            remarks.push(format!(
                "these columns were ignored, because their kind of latency is unknown: {}",
                unknown.join(", ")
            ));
        }
        let commas = commas(&block, &columns)?;
        for (line, cells) in &block.rows {
            let mut figures = columns.iter().zip(cells).filter_map(|(column, cell)| {
                let column = column.as_ref()?;
                let counts = matches!(column.role, Role::Rate | Role::Bandwidth);
                value(column, cell, *line, commas).filter(|_| counts)
            });
            zeroes |= figures.any(|figure| figure.value == 0.0);
            all.extend(row(&columns, cells, *line, commas, file));
        }
    }
    if let Some(first) = all.first_mut() {
        first.remarks.append(&mut remarks);
        return Ok(all);
    }
    let reason = match zeroes {
        true => "all rates in its table are zero, so nothing was measured",
        false => "no row of its table contains a figure",
    };
    Err([&[reason.to_owned()], &remarks[..]].concat().join("; "))
}

/// Determines whether commas separate thousands or decimals. All numbers of a table must be valid
/// in the same convention.
fn commas(block: &Block, columns: &[Option<Column>]) -> Result<Commas, String> {
    let cells = block.rows.iter().flat_map(|(_, cells)| cells.iter().zip(columns));
    let numeric = cells.filter(|(cell, column)| {
        let role = column.as_ref().map(|column| column.role);
        let is = matches!(role, Some(Role::Rate | Role::Bandwidth | Role::Latency(_)));
        is && cell.starts_with(|c: char| c.is_ascii_digit()) && cell.contains([',', '.'])
    });
    let numbers: Vec<&str> = numeric.map(|(cell, _)| number::split_unit(cell).0).collect();
    let valid = |commas: Commas| numbers.iter().all(|digits| parse(digits, commas).is_some());
    let of = |mark: char| numbers.iter().find(|digits| digits.contains(mark));
    // `1.500;6,144` may be 1.5 and 6144, or 1500 and 6.144. If semicolons separate the cells, a
    // comma may be a decimal separator.
    let undecided = of(',').filter(|_| of('.').is_some() || block.separator == ';');
    let swapped = numbers.iter().all(|digits| number::with_swapped_marks(digits).is_some());
    match (valid(Commas::Thousands), valid(Commas::Decimal)) {
        (true, _) => match undecided.filter(|_| swapped) {
            Some(digits) => Err(format!(
                "its numbers are ambiguous: in {digits}, the comma may separate thousands or \
                 decimals; use a decimal point and no separator for thousands"
            )),
            None => Ok(Commas::Thousands),
        },
        (false, true) => Ok(Commas::Decimal),
        _ => Err("its numbers are ambiguous: commas separate thousands in some numbers and \
            decimals in other numbers"
            .into()),
    }
}

/// Parses the number of a cell.
fn parse(digits: &str, commas: Commas) -> Option<number::Number> {
    match commas {
        Commas::Thousands => number::plain(digits).or_else(|| number::grouped(digits, commas)),
        Commas::Decimal => number::grouped(digits, commas).or_else(|| {
            // In a table with decimal commas, a point is a thousands separator, or its meaning is
            // ambiguous.
            number::plain(digits).filter(|_| !digits.contains('.'))
        }),
    }
}

/// Returns the unit in a heading or cell. Lower-case `mb/s` may mean bits or bytes, so the unit
/// includes both.
fn unit_of(name: &str) -> Option<Unit> {
    let unit = number::unit(name)?;
    let bits = unit.measure == Measure::BytesPerS && name.ends_with("b/s");
    let small = bits && name.chars().all(|c| !c.is_uppercase());
    Some(if small { Unit { factor: unit.factor * 8.0, ..unit } } else { unit })
}

/// Converts the value of a cell to base units. A unit in the cell overrides the unit in the
/// heading.
fn value(column: &Column, cell: &str, line: usize, commas: Commas) -> Option<Figure> {
    let (digits, name) = number::split_unit(cell);
    let parsed = number::rounded_by_people(parse(digits, commas)?);
    // Sizes and settings are exact, so they have no rounding error.
    let measured =
        matches!(column.role, Role::Rate | Role::Bandwidth | Role::Latency(_) | Role::Duration);
    let parsed = number::Number { step: if measured { parsed.step } else { 0.0 }, ..parsed };
    let field = format!("line {line} ({})", column.heading);
    let (required, bare) = match column.role {
        Role::Latency(_) => (Measure::Time, None),
        Role::Duration => (Measure::Time, number::unit("s")),
        Role::Bandwidth => (Measure::BytesPerS, None),
        Role::Size => (Measure::Bytes, number::unit("B")),
        Role::ReadPercent => (Measure::Percent, number::unit("%")),
        _ => (Measure::Count, number::unit("ops")),
    };
    let own = if name.is_empty() { None } else { Some(own_unit(name, required)?) };
    let mut unit = own.or(column.unit).or(bare)?;
    // `Bandwidth (MB)` means MB per second.
    if required == Measure::BytesPerS && unit.measure == Measure::Bytes {
        unit.measure = Measure::BytesPerS;
    }
    let figure = (unit.measure == required).then(|| number::figure(parsed, unit, field))?;
    Some(if column.sampled { figure.widened(SAMPLED_SLACK) } else { figure })
}

/// Returns the unit of a cell. In a column of sizes, `4k` is a size; in other columns, `k` is a
/// thousand.
fn own_unit(name: &str, required: Measure) -> Option<Unit> {
    let short = matches!(name, "k" | "K" | "m" | "M" | "g" | "G");
    match required {
        Measure::Bytes if short => number::unit(&format!("{name}iB")),
        _ => unit_of(name),
    }
}

fn row(
    columns: &[Option<Column>],
    cells: &[String],
    line: usize,
    commas: Commas,
    file: &str,
) -> Option<ToolResult> {
    let known =
        || columns.iter().zip(cells).filter_map(|(column, cell)| Some((column.as_ref()?, cell)));
    let first = |role: Role| {
        let mut all = known().filter(|(column, _)| column.role == role);
        all.find_map(|(column, cell)| value(column, cell, line, commas))
    };
    let words = |role: Role| {
        known().find(|(column, _)| column.role == role).map(|(_, cell)| cell.to_lowercase())
    };
    let read_percent = first(Role::ReadPercent).filter(|share| share.value <= 100.0);
    let whole = kind_of(read_percent.as_ref(), words(Role::Kind).as_deref());
    let issuers = |role: Role| {
        let all = known().filter(|(column, _)| column.role == role);
        let all = all.filter_map(|(column, cell)| value(column, cell, line, commas));
        let counts: Vec<f64> =
            all.map(|figure| figure.value).filter(|count| *count > 0.0).collect();
        (!counts.is_empty()).then(|| counts.iter().product::<f64>())
    };
    let (total, of_each) =
        depth(columns, first(Role::Depth), issuers(Role::Threads), issuers(Role::Targets));
    let window_ns = first(Role::Duration).filter(|time| time.value > 0.0);
    let limits_ramp = total.is_some() && window_ns.is_some();
    // If several columns state different sizes, it is unknown which is that of the operations.
    let size_of = |kind: &Option<Kind>| {
        let alike = |c: &Column| c.role == Role::Size && (c.kind.is_none() || c.kind == *kind);
        let sizes = known().filter(|(column, _)| alike(column));
        let sizes: Vec<Figure> =
            sizes.filter_map(|(c, cell)| value(c, cell, line, commas)).collect();
        let size = sizes.first()?;
        let same = sizes.iter().all(|other| other.most >= size.least && other.least <= size.most);
        let size = size.clone();
        let size = if limits_ramp { size } else { size.widened(RAMP_SLACK) };
        (same && size.value > 0.0 && size.value <= SIZE_MAX).then_some(size)
    };
    let mut operations: Vec<Operation> = Vec::new();
    for kind in [None, Some(Kind::Read), Some(Kind::Write)] {
        let of = || known().filter(|(column, _)| column.kind == kind);
        let mut operation = Operation::of(kind.clone().unwrap_or_else(|| whole.clone()));
        let mut latency = Latency { stage: Stage::Unstated, ..Latency::default() };
        for (column, cell) in of() {
            let Some(figure) = value(column, cell, line, commas).filter(|f| f.value > 0.0) else {
                continue;
            };
            match column.role {
                Role::Rate => operation.rate_per_s.push(figure),
                Role::Bandwidth => operation.bandwidth_per_s.push(figure),
                Role::Latency(which) => put(&mut latency, which, figure),
                _ => {}
            }
        }
        if latency != (Latency { stage: Stage::Unstated, ..Latency::default() }) {
            operation.latencies.push(latency);
        }
        if operation != Operation::of(operation.kind.clone()) {
            operation.size_bytes = size_of(&kind);
            operations.push(operation);
        }
    }
    // If the rates of reads and writes sum to less than the total, the total may include metadata
    // operations, which transfer no data.
    let parts: Vec<&Figure> =
        operations.iter().skip(1).filter_map(|operation| operation.rate_per_s.first()).collect();
    let parts_most = (!parts.is_empty()).then(|| parts.iter().map(|rate| rate.most).sum::<f64>());
    if let Some(first) = operations.first_mut().filter(|first| first.kind == Kind::All)
        && let Some((total, parts_most)) = first.rate_per_s.first().zip(parts_most)
        && total.least > parts_most
    {
        first.size_bytes = None;
    }
    if operations.is_empty() {
        return None;
    }
    let mut reported = ToolResult::new(source("", "table", file));
    let name = words(Role::Name).filter(|name| !name.is_empty());
    reported.source.place = Some(match name {
        Some(name) => format!("line {line} ({name})"),
        None => format!("line {line}"),
    });
    let setting = Setting {
        outstanding: total.map(|most| Outstanding { most, kept: false }),
        outstanding_of_each: of_each,
        read_percent,
        pattern: pattern(words(Role::Pattern).or_else(|| words(Role::Kind)).as_deref()),
        counter_reset: if limits_ramp { CounterReset::Unknown } else { CounterReset::Never },
        ..Setting::default()
    };
    reported.parts.push(Part { setting, window_ns, operations, ..Part::default() });
    Some(reported)
}

/// Returns the total number of operations in flight, and the number for each issuer. At most one of
/// them is known. A queue depth applies to each issuer, as in the options of most tools. If the
/// number of issuers is known, the total is at most the product. If a row has the number of jobs but
/// not of hosts, other hosts may have run the same jobs.
fn depth(
    columns: &[Option<Column>],
    depth: Option<Figure>,
    threads: Option<f64>,
    targets: Option<f64>,
) -> (Option<Figure>, Option<Figure>) {
    let Some(depth) = depth.filter(|depth| depth.value > 0.0) else { return (None, None) };
    let headings = |role: Role| columns.iter().flatten().filter(move |column| column.role == role);
    let heading = headings(Role::Depth).next().map(|column| column.heading.to_lowercase());
    let heading = heading.unwrap_or_default();
    let whole = ["outstanding", "total", "flight"].iter().any(|word| heading.contains(word));
    if heading.contains("per ") {
        return match targets {
            Some(targets) => (Some(depth.scaled(targets * threads.unwrap_or(1.0))), None),
            None => (None, Some(depth.scaled(threads.unwrap_or(1.0)))),
        };
    }
    let all_hosts = headings(Role::Threads).any(|column| column::counts_all(&column.heading));
    match threads {
        _ if whole => (Some(depth), None),
        Some(threads) if all_hosts => (Some(depth.scaled(threads)), None),
        _ => (None, Some(depth.scaled(threads.unwrap_or(1.0)))),
    }
}

fn put(latency: &mut Latency, which: LatencyStatistic, figure: Figure) {
    let place = match which {
        LatencyStatistic::Mean => &mut latency.mean_ns,
        LatencyStatistic::Min => &mut latency.min_ns,
        LatencyStatistic::Max => &mut latency.max_ns,
        LatencyStatistic::Stddev => &mut latency.stddev_ns,
        LatencyStatistic::At(quantile) => {
            latency.percentiles.push(Percentile { quantile, ns: figure });
            return;
        }
    };
    *place = Some(figure);
}

/// Returns reads or writes, if the read percentage or a word in the row shows the kind of
/// operation.
fn kind_of(read_percent: Option<&Figure>, word: Option<&str>) -> Kind {
    match (read_percent.map(|share| share.value), word) {
        (Some(100.0), _) => Kind::Read,
        (Some(0.0), _) => Kind::Write,
        (None, Some(word)) => match (word.contains("read"), word.contains("write")) {
            (true, false) if !word.contains("rw") => Kind::Read,
            (false, true) if !word.contains("rw") => Kind::Write,
            _ => Kind::All,
        },
        _ => Kind::All,
    }
}

fn pattern(word: Option<&str>) -> Option<Pattern> {
    let word = word?;
    match (word.contains("rand"), word.contains("seq")) {
        (true, false) => Some(Pattern::Random),
        (false, true) => Some(Pattern::Sequential),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
