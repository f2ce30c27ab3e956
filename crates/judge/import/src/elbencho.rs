//! elbencho (S. Breuner): CSV (`--csvfile`) and JSON (`--jsonfile`), which contain a row or object
//! for each phase.
//!
//! Both formats contain two sets of figures. The first set covers the time until the first thread
//! ended, the second set the time until the last thread ended. Rates are truncated to whole
//! numbers. Latencies are in whole microseconds, and include all operations until the last thread
//! ended.

use std::collections::BTreeSet;

use plimsoll_evidence::tool_result::{
    Bin, Durability, Figure, Kind, Latency, Operation, Outstanding, Part, Pattern, Setting, Stage,
    ToolResult,
};

use crate::json::{self, JsonNode};
use crate::parts::{Columns, Digits, figure, latency, source, unix_s};

const MIB: f64 = 1024.0 * 1024.0;
const NS_PER_MS: f64 = 1e6;
const NS_PER_US: f64 = 1e3;
/// Line after each phase of the terminal table.
const END: &str = "---";

/// Returns true if the text is elbencho's CSV.
#[must_use]
pub fn is_csv(text: &str) -> bool {
    text.lines().any(|line| line.contains(",operation,time ms [first],time ms [last],"))
}

/// Returns true if the text is elbencho's JSON, which has one object in each line.
#[must_use]
pub fn is_json(text: &str) -> bool {
    text.contains("\"phase_type\"") && text.contains("\"last_done\"") && text.contains("\"config\"")
}

/// Reads all rows of a CSV file. A later row may be preceded by another header.
///
/// # Errors
/// The file contains no rows.
pub fn read_csv(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    let mut header: Vec<&str> = Vec::new();
    let mut all = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let cells: Vec<&str> = line.split(',').collect();
        if cells.contains(&"time ms [last]") {
            header = cells;
            continue;
        }
        if header.is_empty() {
            return Err(format!("line {} precedes the header", index + 1));
        }
        if cells.len() != header.len() {
            let (is, should) = (cells.len(), header.len());
            return Err(format!(
                "line {} contains {is} cells, but the header contains {should}",
                index + 1
            ));
        }
        let row = Columns::of(&header, cells, index + 1);
        let mut reported = of_row(&row, file);
        reported.source.place = Some(format!("line {}", index + 1));
        all.push(reported);
    }
    if all.is_empty() { Err("it contains a header but no rows".into()) } else { Ok(all) }
}

/// Returns true if the text is elbencho's terminal table.
#[must_use]
pub fn is_text(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("OPERATION") && line.contains("FIRST DONE"))
        && (text.contains("Elapsed ms") || text.contains("Elapsed time"))
}

/// Reads the terminal table. Returns a result for each phase that transferred data or created
/// files.
///
/// # Errors
/// The text contains no phase with results.
pub fn read_text(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    let mut all: Vec<ToolResult> = Vec::new();
    let mut command: Option<&str> = None;
    // A line of dashes ends a phase. If another phase begins before this line, or a phase contains a
    // figure twice, several programs wrote to the text at the same time. Until all their phases
    // have ended, it is unknown to which program a line belongs.
    let divided = text.lines().any(|line| line.trim() == END);
    let (mut open, mut unended, mut mixed, mut seen) = (false, 0usize, false, Vec::new());
    let mut left_aside = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("OPERATION") {
            (open, unended, mixed) = (false, 0, false);
        }
        if divided && line.trim() == END {
            if mixed {
                left_aside.insert(all.len());
            }
            unended = unended.saturating_sub(1);
            (open, mixed) = (false, mixed && unended > 0);
            continue;
        }
        let place = |name: &str| format!("line {} ({name})", index + 1);
        if line.starts_with("elbencho ")
            || line.contains("$ elbencho ")
            || line.contains("# elbencho ")
        {
            command = Some(line);
        }
        let Some((names, values)) = line.split_once(':') else { continue };
        let new = names.starts_with(|c: char| c.is_ascii_uppercase());
        let (phase, name) = match names.trim().split_once(' ').filter(|_| new) {
            Some((phase, name)) => (Some(phase), name.trim()),
            None => (None, names.trim()),
        };
        if let Some(phase) = phase.filter(|_| name.starts_with("Elapsed")) {
            let mut reported = ToolResult::new(source("elbencho", "elbencho text", file));
            reported.source.place = Some(format!("line {}", index + 1));
            if divided && unended > 0 {
                left_aside.insert(all.len());
                mixed = true;
            }
            (open, unended) = (divided, unended + 1);
            seen.clear();
            let last = values.split_whitespace().last();
            let window = last
                .filter(|_| name == "Elapsed ms")
                .and_then(|ms| figure(ms, Digits::Cut, NS_PER_MS, place("Elapsed ms")))
                .or_else(|| last.and_then(|text| duration(text, &place("Elapsed time"))));
            let setting = command.map(setting_of_command).unwrap_or_default();
            let operations = vec![Operation::of(kind(phase))];
            let name = phase.to_owned();
            let window_ns = window.filter(|w| w.value > 0.0);
            reported.parts.push(Part { name, window_ns, setting, operations, ..Part::default() });
            all.push(reported);
            continue;
        }
        if divided && !open {
            continue;
        }
        if divided && is_figure(name) && seen.contains(&name) {
            mixed = true;
        }
        seen.push(name);
        let operation = all.last_mut().and_then(|r| r.parts.first_mut()?.operations.first_mut());
        let Some(operation) = operation else { continue };
        text_line(operation, name, values, &place(name));
    }
    let mut number = 0;
    all.retain(|reported| {
        number += 1;
        let told = |o: &Operation| !o.rate_per_s.is_empty() || !o.bytes.is_empty();
        !left_aside.contains(&number) && reported.operations().any(|(_, o)| told(o))
    });
    if let Some(first) = all.first_mut().filter(|_| !left_aside.is_empty()) {
        first.remarks.push(format!(
            "{} phases were skipped because several programs wrote to the file at the same time",
            left_aside.len()
        ));
    }
    if all.is_empty() { Err("it contains no elbencho phase with figures".into()) } else { Ok(all) }
}

/// Returns true if elbencho prints a line with this name at most once in a phase.
fn is_figure(name: &str) -> bool {
    matches!(name, "IOPS" | "IO lat us" | "IO latency")
        || name.starts_with("Total ")
        || ["/s", " total"].iter().any(|end| name.ends_with(end))
}

/// Parses a time such as `5m0s` or `1h2m3s`, truncated to its last unit.
fn duration(text: &str, place: &str) -> Option<Figure> {
    let (mut total_ns, mut step_ns, mut digits) = (0.0, 0.0, String::new());
    let mut units = String::new();
    for c in text.chars().chain(['0']) {
        if c.is_ascii_digit() || c == '.' {
            if !units.is_empty() {
                step_ns = match units.as_str() {
                    "h" => 3600e9,
                    "m" => 60e9,
                    "s" => 1e9,
                    "ms" => NS_PER_MS,
                    _ => return None,
                };
                total_ns += digits.parse::<f64>().ok()? * step_ns;
                (digits, units) = (String::new(), String::new());
            }
            digits.push(c);
        } else {
            units.push(c);
        }
    }
    (step_ns > 0.0).then(|| Figure::truncated(total_ns, step_ns, place))
}

/// Reads a line of a phase. The last column contains the value for the time until the last thread
/// ended.
fn text_line(operation: &mut Operation, name: &str, values: &str, place: &str) {
    let cut = |unit| figure(values.split_whitespace().last()?, Digits::Cut, unit, place);
    match name {
        "IOPS" if operation.kind.moves_data() => operation.rate_per_s.extend(cut(1.0)),
        "Throughput MiB/s" => operation.bandwidth_per_s.extend(cut(MIB)),
        "Total MiB" => operation.bytes.extend(cut(MIB)),
        "IO lat us" | "IO latency" => {
            let of = |key: &str| {
                let words = values.split(|c: char| c.is_whitespace() || c == '[' || c == ']');
                let value =
                    words.filter_map(|word| word.split_once('=')).find(|(k, _)| *k == key)?.1;
                let (digits, unit) = match crate::number::split_unit(value) {
                    (digits, "") => (digits, NS_PER_US),
                    (digits, unit) => (digits, crate::number::unit(unit)?.factor),
                };
                figure(digits, Digits::Either, unit, format!("{place} {key}"))
            };
            operation.latencies.extend(latency(Stage::Total, |l| {
                (l.min_ns, l.mean_ns, l.max_ns) = (of("min"), of("avg"), of("max"));
            }));
        }
        _ if name.starts_with("Total ") && !operation.kind.moves_data() => {
            operation.count.extend(cut(1.0));
        }
        _ if name.ends_with("/s") && !operation.kind.moves_data() => {
            operation.rate_per_s.extend(cut(1.0));
        }
        _ => {}
    }
}

/// Returns the settings that the command line states: threads, queue depth, pattern and use of the
/// page cache.
fn setting_of_command(command: &str) -> Setting {
    let words: Vec<&str> = command.split_whitespace().collect();
    let has = |any: &[&str]| words.iter().any(|word| any.contains(word));
    let value = |any: &[&str]| {
        let at = words.iter().position(|word| any.contains(word))?;
        figure(words.get(at + 1)?, Digits::Exact, 1.0, any[0])
    };
    // By default, each host runs one thread that has one operation in flight.
    let one = |name: &str| Figure::exact(1.0, name);
    let alone = !has(&["--hosts", "--hostsfile"]);
    let threads = value(&["-t", "--threads"]).unwrap_or_else(|| one("-t"));
    let depth = value(&["--iodepth"]).unwrap_or_else(|| one("--iodepth"));
    Setting {
        outstanding: alone.then(|| Outstanding { most: depth.scaled(threads.value), kept: false }),
        direct: Some(has(&["--direct"])),
        pattern: Some(if has(&["--rand"]) { Pattern::Random } else { Pattern::Sequential }),
        ..Setting::default()
    }
}

/// Returns the kind of operation of a phase: `WRITE`, `READ`, `RMFILES`, `MKDIRS`, `STAT`,
/// `PUTOBJ`…
fn kind(phase: &str) -> Kind {
    match phase.to_ascii_uppercase().as_str() {
        "READ" | "HOSTREAD" | "GETOBJ" => Kind::Read,
        "WRITE" | "PUTOBJ" => Kind::Write,
        other => Kind::Name(other.to_ascii_lowercase()),
    }
}

fn of_row(row: &Columns<'_>, file: &str) -> ToolResult {
    let mut reported = ToolResult::new(source("elbencho", "elbencho CSV", file));
    reported.source.version = row.text("version").map(str::to_owned);
    reported.source.taken_unix_s = row.text("ISO date").and_then(unix_s);
    for name in
        ["label", "path type", "hosts", "threads", "IO depth", "direct IO", "random", "command"]
    {
        if let Some(value) = row.text(name) {
            reported.options.insert(name.to_owned(), value.to_owned());
        }
    }
    let exact = |name: &str| row.figure(name, Digits::Exact, 1.0);
    let on = |name: &str| row.text(name).map(|text| text == "1");
    let phase = row.text("operation").unwrap_or_default();
    let mix = row.text("rwmix read IOPS [last]").is_some();
    let mut part = Part {
        name: phase.to_owned(),
        window_ns: row.figure("time ms [last]", Digits::Cut, NS_PER_MS),
        start_unix_s: reported.source.taken_unix_s,
        setting: setting(
            exact("hosts"),
            exact("threads"),
            exact("IO depth"),
            on("direct IO"),
            on("random"),
            row.text("command"),
        ),
        ..Part::default()
    };
    let kind = kind(phase);
    let prefixes: &[(&str, Kind)] =
        if mix { &[("", Kind::Write), ("rwmix read ", Kind::Read)] } else { &[("", kind.clone())] };
    for (prefix, kind) in prefixes {
        let cut = |name: &str, unit| row.figure(&format!("{prefix}{name}"), Digits::Cut, unit);
        let mut operation = Operation::of(kind.clone());
        let block = exact("block size").filter(|size| size.value > 0.0);
        let io = cut("IOPS [last]", 1.0).is_some();
        if io && kind.moves_data() {
            operation.rate_per_s.extend(cut("IOPS [last]", 1.0));
            operation.size_bytes = block;
        } else {
            operation.rate_per_s.extend(cut("entries/s [last]", 1.0));
            operation.count.extend(row.figure(
                &format!("{prefix}entries [last]"),
                Digits::Exact,
                1.0,
            ));
        }
        operation.bandwidth_per_s.extend(cut("MiB/s [last]", MIB));
        operation.bytes.extend(cut("MiB [last]", MIB));
        let word = if io && kind.moves_data() { "IO" } else { "Ent" };
        let us = |end: &str| cut(&format!("{word} lat us [{end}]"), NS_PER_US);
        operation.latencies.extend(latency(Stage::Total, |l| {
            (l.min_ns, l.mean_ns, l.max_ns) = (us("min"), us("avg"), us("max"));
        }));
        whole_files(&mut operation, row.text("file size"));
        part.operations.push(operation);
    }
    reported.parts.push(part);
    reported
}

/// The last block is shorter if the file size is not a multiple of the block size.
fn whole_files(operation: &mut Operation, file_size: Option<&str>) {
    let Some(size) = operation.size_bytes.as_ref() else { return };
    let file: Option<f64> = file_size.and_then(|text| text.parse().ok());
    if file.is_some_and(|file| file % size.value != 0.0) {
        operation.size_bytes = None;
    }
}

fn setting(
    hosts: Option<Figure>,
    threads: Option<Figure>,
    depth: Option<Figure>,
    direct: Option<bool>,
    random: Option<bool>,
    command: Option<&str>,
) -> Setting {
    // The number of threads applies to each host, and the depth to each thread.
    let threads = hosts.zip(threads).map(|(hosts, threads)| threads.scaled(hosts.value.max(1.0)));
    let most = threads.clone().zip(depth).map(|(threads, depth)| depth.scaled(threads.value));
    let paced = command
        .is_some_and(|command| command.contains("--limit") || command.contains("--rwmixthr"));
    let synced = command.map(|command| {
        if command.contains("--sync") { Durability::AtEnd } else { Durability::Nothing }
    });
    Setting {
        outstanding: most.map(|most| Outstanding { most, kept: !paced }),
        threads,
        direct,
        pattern: random.map(|random| if random { Pattern::Random } else { Pattern::Sequential }),
        durability: synced,
        ..Setting::default()
    }
}

/// Reads all objects of a JSON file.
///
/// # Errors
/// A line is not JSON.
pub fn read_json(text: &str, file: &str) -> Result<Vec<ToolResult>, String> {
    let mut all = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find('{') {
        let line = 1 + text[..from + at].matches('\n').count();
        let (json, length) = json::parse(&text[from + at..])
            .map_err(|error| format!("the object in line {line}: {}", error.says))?;
        from += at + length;
        let root = JsonNode::root(&json);
        if root.key("phase_type").exists() {
            let mut reported = of_object(&root, file);
            reported.source.place = Some(format!("line {line}"));
            all.push(reported);
        }
    }
    if all.is_empty() { Err("it contains no elbencho phase".into()) } else { Ok(all) }
}

fn of_object(root: &JsonNode<'_, '_>, file: &str) -> ToolResult {
    let config = root.key("config");
    let mut reported = ToolResult::new(source("elbencho", "elbencho JSON", file));
    reported.source.version = config.key("version").shown();
    reported.source.taken_unix_s = root.key("iso_start_date").text().and_then(unix_s);
    for (name, value) in config.entries() {
        reported.options.extend(value.shown().map(|value| (name.to_owned(), value)));
    }
    let on = |name: &str| config.key(name).shown().map(|text| text == "1" || text == "true");
    let last = root.key("last_done");
    let phase = root.key("phase_type").text().unwrap_or_default();
    let mut part = Part {
        name: phase.to_owned(),
        window_ns: last.key("elapsed_time_ms").truncated().map(|ms| ms.scaled(NS_PER_MS)),
        start_unix_s: reported.source.taken_unix_s,
        setting: setting(
            config.key("hosts").exact(),
            config.key("threads").exact(),
            config.key("io_depth").exact(),
            on("direct_io"),
            on("random_offsets"),
            config.key("command").text(),
        ),
        ..Part::default()
    };
    let mix = last.key("rwmix_read");
    let kind = if mix.exists() { Kind::Write } else { kind(phase) };
    let block = config.key("block_size").exact().filter(|size| size.value > 0.0);
    let file_size = config.key("file_size").shown();
    for (at, kind, below) in [(last.clone(), kind, ""), (mix, Kind::Read, "rwmix_read")] {
        if !at.exists() {
            continue;
        }
        let mut operation = Operation::of(kind.clone());
        let io = at.key("iops").exists() && kind.moves_data();
        operation.bytes.extend(at.key("bytes").exact());
        operation.bandwidth_per_s.extend(at.key("bytes/s").truncated());
        if io {
            operation.rate_per_s.extend(at.key("iops").truncated());
            operation.size_bytes = block.clone();
        } else {
            operation.count.extend(at.key("entries").exact());
            operation.rate_per_s.extend(at.key("entries/s").truncated());
        }
        let all = last.key("latency").key(if io { "IO" } else { "entries" });
        let stated = if below.is_empty() { all.clone() } else { all.key(below) };
        let bins =
            if below.is_empty() { all.key("histogram") } else { all.key("histogram").key(below) };
        operation.latencies.extend(of_latency(&stated, &bins));
        whole_files(&mut operation, file_size.as_deref());
        part.operations.push(operation);
    }
    reported.parts.push(part);
    reported
}

/// Reads minimum, mean and maximum in us, and the histogram bins, which are named after their
/// bounds (`32-38.1`).
fn of_latency(at: &JsonNode<'_, '_>, bins: &JsonNode<'_, '_>) -> Option<Latency> {
    let us = |name: &str| at.key(name).truncated().map(|us| us.scaled(NS_PER_US));
    latency(Stage::Total, |l| {
        (l.min_ns, l.mean_ns, l.max_ns) = (us("min_us"), us("avg_us"), us("max_us"));
        for (name, count) in bins.entries() {
            let ends =
                name.split_once('-').map(|(from, to)| (from.parse::<f64>(), to.parse::<f64>()));
            if let (Some((Ok(from), Ok(to))), Some(count)) = (ends, count.number()) {
                l.bins.push(Bin { from_ns: from * NS_PER_US, to_ns: to * NS_PER_US, count });
            }
        }
        l.bins.sort_by(|a, b| a.from_ns.total_cmp(&b.from_ns));
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    // Modelled on `Statistics::printPhaseResultsToStringVec` of elbencho 3.0.
    const CSV: &str = "ISO date,label,path type,paths,hosts,threads,dirs,files,file size,block size,direct IO,random,\
        random aligned,IO depth,shared paths,truncate,operation,time ms [first],time ms [last],entries/s [first],\
        entries/s [last],IOPS [first],IOPS [last],MiB/s [first],MiB/s [last],CPU% [first],CPU% [last],entries \
        [first],entries [last],MiB [first],MiB [last],Ent lat us [min],Ent lat us [avg],Ent lat us [max],IO lat us \
        [min],IO lat us [avg],IO lat us [max],rwmix read IOPS [last],version,command\n\
        2024-01-01T10:00:00.000+0000,,file,1,2,8,,,1073741824,1048576,1,1,1,4,1,0,READ,9000,10000,,,820,819,820,819,5,\
        6,,,7380,8192,,,,100,78000,90000,,3.0-1,\"elbencho\" \"-r\"\n";

    #[test]
    fn lines_of_concurrent_programs_are_ignored() {
        let phase = |mib: &str| {
            format!(
                "WRITE     Elapsed ms       :      45264      45264\n          IOPS             :       7178       7178\n          \
                 Throughput MiB/s :         28         28\n{mib}"
            )
        };
        let total = "          Total MiB        :       1269       1269\n";
        let other = "          Total MiB        :       4955       4996\n";
        let header = "OPERATION RESULT TYPE        FIRST DONE  LAST DONE\n";
        let clean = phase(&format!("{total}---\n"));
        let read = |text: &str| read_text(&format!("{header}{text}"), "x").unwrap();
        assert_eq!(read(&format!("{clean}{clean}")).len(), 2);
        let begun = phase("");
        for mixed in [
            phase(&format!("{total}{other}---\n")),
            // Three programs, of which the first prints its last line in the phase of the third.
            format!("{begun}{clean}{}---\n", phase(&format!("{other}---\n"))),
        ] {
            let all = read(&format!("{clean}{mixed}{clean}{clean}"));
            assert_eq!(all.len(), 3, "{mixed}");
            assert!(all.iter().all(|r| r.parts[0].operations[0].bytes[0].value == 1269.0 * MIB));
        }
        // A run that was interrupted does not affect the next run.
        assert_eq!(read(&format!("{begun}{header}{clean}{clean}")).len(), 3);
    }

    #[test]
    fn a_row_is_a_phase() {
        assert!(is_csv(CSV));
        let reported = read_csv(CSV, "r.csv").unwrap().remove(0);
        let part = &reported.parts[0];
        assert_eq!(part.setting.outstanding.as_ref().unwrap().most.value, 64.0);
        let read = &part.operations[0];
        assert_eq!((read.kind.clone(), read.rate_per_s[0].value), (Kind::Read, 819.0));
        assert_eq!(read.bandwidth_per_s[0].value, 819.0 * MIB);
        assert_eq!(read.latencies[0].mean_ns.as_ref().unwrap().value, 78e6);
        assert_eq!(read.latencies[0].mean_ns.as_ref().unwrap().field, "line 2 (IO lat us [avg])");
        assert_eq!(part.setting.direct, Some(true));
        assert!(
            read_csv(&CSV.replace(",\"elbencho\" \"-r\"", ""), "r").unwrap_err().contains("line 2")
        );
    }

    #[test]
    fn the_table_on_a_terminal_is_read() {
        let text = "elbencho -w -t 56 -F -s 512g -b 16m --direct f0 f1\nOPERATION RESULT TYPE        FIRST DONE  LAST DONE\n\
            ========= ================   ==========  =========\nWRITE     Elapsed ms       :      99757     116077\n          \
            IOPS             :        571        564\n          Throughput MiB/s :       9136       9033\n          Total \
            MiB        :     911424    1048576\n          IO lat us        : [ min=900 avg=99000 max=400000 ]\n---\n\
            RMFILES   Elapsed ms       :          0          1\n---\n";
        assert!(is_text(text));
        let all = read_text(text, "x").unwrap();
        assert_eq!(all.len(), 1, "a phase without figures is none");
        let part = &all[0].parts[0];
        let write = &part.operations[0];
        assert_eq!((write.kind.clone(), write.rate_per_s[0].value), (Kind::Write, 564.0));
        assert_eq!(write.latencies[0].mean_ns.as_ref().unwrap().value, 99e6);
        assert_eq!(part.window_ns.as_ref().unwrap().value, 116_077e6);
        assert_eq!(part.setting.outstanding.as_ref().unwrap().most.value, 56.0);
        assert!(read_text("OPERATION RESULT TYPE  FIRST DONE\nElapsed ms\n", "x").is_err());
    }

    #[test]
    fn an_object_is_a_phase() {
        let text = r#"{"phase_type":"WRITE","iso_start_date":"2024-01-01T10:00:00.000+0000","config":{"hosts":"1",
            "threads":"2","file_size":"1048576","block_size":"4096","direct_io":"true","random_offsets":"false",
            "io_depth":"1","version":"3.0-1","command":"\"elbencho\""},"first_done":{"elapsed_time_ms":"900"},
            "last_done":{"elapsed_time_ms":"1000","iops":"512","bytes\/s":"2097152","bytes":"2097152","entries":"2",
            "latency":{"IO":{"min_us":"5","avg_us":"3900","max_us":"9000","histogram":{"4-4.75":"12","4096-4871":"500"}}}}}"#;
        assert!(is_json(text));
        let reported = read_json(text, "r.json").unwrap().remove(0);
        let write = &reported.parts[0].operations[0];
        assert_eq!((write.kind.clone(), write.bytes[0].value), (Kind::Write, 2_097_152.0));
        assert_eq!(write.latencies[0].bins[1].count, 500.0);
        assert_eq!(reported.parts[0].setting.durability, Some(Durability::Nothing));
        assert!(read_json(&text[..200], "r").is_err());
    }

    #[test]
    fn separates_or_skips_lines_of_several_programs() {
        let phase = "WRITE     Elapsed ms       :      45248      45248\n          IOPS             :        948        948\n\
            Total MiB        :        167        167\n";
        let head = "OPERATION RESULT TYPE        FIRST DONE  LAST DONE\n";
        let (begun, rest) = phase.split_once('\n').unwrap();
        let text = format!("{head}{phase}---\n\n{begun}\n{phase}---\n{rest}---\n{phase}---\n");
        let all = read_text(&text, "x").unwrap();
        let places: Vec<_> = all.iter().map(|r| r.source.place.as_deref().unwrap()).collect();
        assert_eq!(places, ["line 2", "line 15"]);
        assert!(all.iter().all(|r| r.parts[0].operations[0].rate_per_s.len() == 1));
        assert!(all[0].remarks[0].starts_with("2 phases"), "{:?}", all[0].remarks);
    }
}
