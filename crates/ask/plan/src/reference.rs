//! Reference of all plan fields, generated from the tables of the reader, so that both always
//! agree. `docs/plan.md` contains this text plus the options of a fio job.

use std::fmt::Write as _;

use crate::raw::{SECTIONS, SectionDoc, latency_fields};
use crate::read::section::FieldDoc;
use crate::resolved::LatencyClass;

const HEAD: &str = "\
# The plan: every field

<!-- Made by `cargo run -p plimsoll-import --example plan_reference > docs/plan.md`; a test compares. -->

A plan is a TOML file. This page has three complete plans (`plimsoll plan list` has more), then all
fields. An omitted field has its default. The resolved plan in every bundle lists all fields. An
unknown field is an error.

**Is this directory fast enough for a database?** `plimsoll run database.toml` answers PASS or FAIL.

```toml
name = \"database\"

[requirement]                     # without it the run is measured, not judged
iops = 5000
read_latency_p99 = \"10ms\"

[target]
path = \"/mnt/db\"

[workload.matrix]                 # 8 KiB, 70 % reads, random, 16 clients with 2 operations each
sizes = \"8KiB\"
reads = 70
clients = 16
queue_depth = 2
files = 8
file_size = \"16GiB\"             # together more than the memory of host and storage system

[phases]
warm_up = \"1m\"
measure = \"30m\"
```

**A log beside the data, on NFS.** Each `[[workload.matrix]]` is a stream; all run at the same time.

```toml
name = \"commits\"

[requirement]
sync_latency_p99 = \"10ms\"

[target]
nfs = \"nfs://10.0.0.5/export\"

[[workload.matrix]]
name = \"reads\"
sizes = \"8KiB\"
clients = 8
file_size = \"4GiB\"

[[workload.matrix]]
name = \"log\"
sizes = \"8KiB\"
reads = 0
patterns = \"sequential\"
sync = \"fdatasync\"
queue_depth = 1
file_size = \"1GiB\"
```

**Which of two file systems is faster?** `plimsoll compare filesystems.toml` runs both in turns.

```toml
name = \"filesystems\"

[[target]]
name = \"ext4\"
path = \"/mnt/ext4\"

[[target]]
name = \"xfs\"
path = \"/mnt/xfs\"

[workload.matrix]
sizes = \"4KiB\"
reads = 50
queue_depth = 8
file_size = \"8GiB\"

[repeat]
runs = 4                          # fewer cannot distinguish a difference from noise
```

Values:

- **Sizes**: `\"4KiB\"`, `\"1.5GiB\"` (KiB, MiB, GiB, TiB: powers of 1024), `\"20GB\"` (kB, MB, GB, TB:
  powers of 1000), `\"512B\"`. A bare `k` is ambiguous, and an error.
- **Durations**: `\"20ms\"`, `\"1.5s\"`, `\"2h\"` (ns, us, ms, s, m or min, h), one number each.
- **Rates** per second: `500` or `\"500/s\"` operations, `\"10MiB/s\"`.
- **Shares**: `0.7` or `\"70%\"`. **Percentages**: `70` or `\"70%\"`. **Booleans**: `true` or `false`.

A field without a default is optional, and unset. The mail store is modelled on the database of
Jetstress. The source of a default is in italics, such as the Jetstress 2013 configuration;
*unconfirmed* means that no source states the default: the choice is ours.
";

const LATENCY: &str = "\
Latency limits are fields of `[requirement]` too, each a duration: `CLASS_latency_STATISTIC`, such as
`db_read_latency_avg = \"20ms\"`. Statistics are `avg`, `max` (the largest of the means of intervals of
`latency_max_of`), `p50`, `p90`, `p95`, `p99`, `p999` and `p9999`. A mail store has [default
limits](mailbox.md#the-figures): a strict set up to 6 hours of measuring (with `until-steady`, of
`measure_max`), a lenient set beyond. A limit in the plan overrides the default.

| fields | latency of | workload |
|---|---|---|
";

/// Returns the reference as Markdown, without the options of a fio job.
#[must_use]
pub fn reference_markdown() -> String {
    let mut text = HEAD.to_owned();
    for section in SECTIONS {
        write_section(section, &mut text);
        if section.name == "requirement" {
            write_latencies(&mut text);
        }
    }
    text
}

/// Reference entry of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldReference {
    /// Meaning of the field.
    pub meaning: &'static str,
    /// Accepted values.
    pub value: String,
    /// Default.
    pub default: String,
}

/// Returns the reference entry of a field by its full name, such as `phases.measure`; `None` if the
/// field does not exist.
#[must_use]
pub fn field_reference(name: &str) -> Option<FieldReference> {
    let (section, name) = name.rsplit_once('.').unwrap_or(("", name));
    let section = SECTIONS.iter().find(|known| known.name == section)?;
    let field = section.fields.iter().find(|known| known.name == name)?;
    let plain = |text: String| text.replace('`', "");
    let (value, default) = (plain((field.kind)()), plain(default(field)));
    Some(FieldReference { meaning: field.doc.trim(), value, default: default.replace('"', "") })
}

// Writing to a string cannot fail, so results are ignored below.

fn write_section(section: &SectionDoc, text: &mut String) {
    let title = match section.name {
        "" => "Top of the plan".to_owned(),
        name => format!("`[{name}]`"),
    };
    let _ = writeln!(text, "\n## {title}\n\n{}", section.doc.trim());
    let fields: Vec<&FieldDoc> =
        section.fields.iter().filter(|field| !has_own_section(section, field)).collect();
    if fields.is_empty() {
        return;
    }
    text.push('\n');
    for field in fields {
        let default = match default(field) {
            none if none == "none" => String::new(),
            required if required.starts_with("required") => format!("; {required}"),
            default => format!("; default {default}"),
        };
        let (kind, meaning) = (short_kind(&(field.kind)()), field.doc.trim());
        let mut item = format!("- `{}` ({kind}{default}): {meaning}", field.name);
        if let Some(source) = field.source {
            let _ = write!(item, " *{source}.*");
        }
        write_wrapped(&item, text);
    }
}

/// Writes a list item in lines of at most 100 columns.
fn write_wrapped(item: &str, text: &mut String) {
    let mut column = 0;
    for word in item.split(' ') {
        let width = word.chars().count();
        if column + 1 + width > 100 && word != "+" {
            text.push_str("\n  ");
            column = 2;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += width;
    }
    text.push('\n');
}

/// Returns true if a field is a table with a heading of its own in the reference.
fn has_own_section(section: &SectionDoc, field: &FieldDoc) -> bool {
    let full = [section.name, field.name].join(".");
    let has_heading = section.name == "requirement"
        || SECTIONS.iter().any(|known| known.name == full.trim_start_matches('.'));
    has_heading && (field.kind)().starts_with("table")
}

/// Returns the kind of value in the words that the list of values explains.
fn short_kind(kind: &str) -> String {
    kind.replace(" (`0.7` or `\"70%\"`)", "")
        .replace(" (`75` or `\"75%\"`)", "")
        .replace(" (`200` or `\"200/s\"`)", "")
        .replace(" (to one)", "")
        .replace("true or false", "boolean")
        .replace("whole number", "integer")
        .replace("list of: ", "list of ")
        .replace("\"` or `\"", "\"`, `\"")
}

fn default(field: &FieldDoc) -> String {
    match (field.default, field.computed) {
        (Some("{}"), _) if field.name == "set" => "none".to_owned(),
        (Some("{}"), _) => "as its fields".to_owned(),
        (Some(literal), _) if toml::de::DeValue::parse(literal).is_ok() => format!("`{literal}`"),
        (Some(text), _) => format!("`\"{text}\"`"),
        (None, Some(computed)) => computed.to_owned(),
        (None, None) => "none".to_owned(),
    }
}

fn write_latencies(text: &mut String) {
    let _ = write!(text, "\n{LATENCY}");
    for class in LatencyClass::ALL {
        let fields = latency_fields().into_iter().filter(|(c, _, _)| c == class);
        let name = fields.map(|(_, _, name)| name).next().unwrap_or_default();
        let stem = name.trim_end_matches("_avg");
        let (whose, workload) = match class {
            LatencyClass::DbRead => ("database reads", "mailbox"),
            LatencyClass::DbWrite => ("database writes", "mailbox"),
            LatencyClass::LogWrite => ("log writes", "mailbox"),
            LatencyClass::Read => ("reads", "matrix, fio"),
            LatencyClass::Write => ("writes, each up to the end of its flush", "matrix, fio"),
            LatencyClass::Sync => ("flushes (fsync, fdatasync)", "matrix, fio"),
            LatencyClass::FirstByte => {
                ("reads until the first byte of the object", "matrix, on S3")
            }
            LatencyClass::Metadata => ("metadata operations", "matrix, fio"),
            LatencyClass::All => ("all operations", "matrix, fio"),
        };
        let _ = writeln!(text, "| `{stem}_*` | {whose} | {workload} |");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;

    #[test]
    fn the_examples_are_complete_plans() {
        let head = reference_markdown();
        let blocks: Vec<&str> = head.split("```toml\n").skip(1).collect();
        assert_eq!(blocks.len(), 3);
        for block in blocks {
            let text = block.split("```").next().unwrap();
            let plan = Plan::parse(text, "example").unwrap_or_else(|error| panic!("{error}"));
            let name = text.lines().next().and_then(|line| line.split('"').nth(1));
            assert_eq!(Some(plan.name()), name);
        }
    }

    /// Returns a plan in which a field of `section` can be set.
    fn base(section: &str, field: &str) -> (String, &'static str) {
        let target = match (section, field) {
            ("target", "connections" | "uid" | "gid") => "nfs = \"nfs://host/export\"",
            ("target", "region") => "s3 = \"s3://bucket/x\"\nendpoint = \"http://host:9000\"",
            ("target", "set") => "model = \"single-hdd\"",
            _ => "path = \"/mnt/x\"",
        };
        let context = match field {
            "zipf_exponent" => "patterns = \"zipf\"\n",
            "hot_space" | "hot_access" => "patterns = \"hot-cold\"\n",
            "stride" => "patterns = \"strided\"\n",
            "normal_deviation" => "patterns = \"normal\"\n",
            "skip_density" => "patterns = \"skipping\"\n",
            "ramp" => "arrival = \"poisson\"\nrate = 10\n",
            "burst_on" | "burst_off" => "arrival = \"bursts\"\nrate = 10\n",
            "sync_every" => "sync = \"fsync\"\n",
            "metadata_mix" => "metadata = 5\n",
            "tree_fan_out" => "tree_levels = 1\n",
            _ if section == "workload.matrix.metadata_mix" => "metadata = 5\n",
            _ => "",
        };
        let matrix = format!("[workload.matrix]\nname = \"m\"\n{context}");
        let head = "claims = [\"media-read\"]\nlatency_avg = \"1s\"\nlatency_max = \"2s\"";
        let mailbox = "[workload.mailbox]\nmailboxes = 100\nmailbox_size = \"100MiB\"\n";
        let trace = "[workload.trace]\nfile = \"t\"\nsha256 = \"0\"\noperations = 9\nspan = \"20m\"\n\
                     reads = 50\nsize_mix = [{ size = \"4KiB\", share = 100 }]\nfile_size = \"1GiB\"\n";
        let (workload, requirement) = if section.starts_with("workload.mailbox") {
            (mailbox, "db_read_latency_max = \"1s\"")
        } else if section == "workload.trace" {
            (trace, head)
        } else {
            (matrix.as_str(), head)
        };
        let header = match section {
            "" => "",
            "requirement" => "[requirement]",
            "target" => "[target]",
            "workload.mailbox" => "[workload.mailbox]",
            "workload.matrix" => "[workload.matrix]",
            "workload.trace" => "[workload.trace]",
            "observe.metrics" => "[observe.metrics]",
            "event" => "[event]",
            "durability" => "[durability]",
            _ => "NEW",
        };
        let metrics = if section == "event" {
            "[event]\nname = \"e\"\nat = \"1m\"\nrun = [\"true\"]\n"
        } else if section == "durability" {
            "[durability]\n"
        } else if section != "observe.metrics" {
            ""
        } else {
            "[observe.metrics]\nurl = \"http://host/metrics\"\n\
                       names = { \"data_reduction\" = \"reduction\" }\n"
        };
        let text = format!(
            "name = \"p\"\n[requirement]\n{requirement}\n[target]\n{target}\n{workload}{metrics}"
        );
        (text, header)
    }

    #[test]
    fn stating_a_default_changes_nothing() {
        let mut tried = 0;
        for section in SECTIONS {
            for field in section.fields.iter().filter(|f| f.default.is_some()) {
                let literal = field.default.expect("filtered");
                let is_toml = toml::de::DeValue::parse(literal).is_ok();
                let value = if is_toml { literal.to_owned() } else { format!("\"{literal}\"") };
                let line = format!("{} = {value}\n", field.name);
                let (text, header) = base(section.name, field.name);
                let stated = match header {
                    "" => format!("{line}{text}"),
                    "NEW" => format!("{text}[{}]\n{line}", section.name),
                    header => text.replace(&format!("{header}\n"), &format!("{header}\n{line}")),
                };
                assert_ne!(stated, text);
                let resolve = |text: &str| {
                    Plan::parse(text, "p.toml").unwrap_or_else(|e| panic!("{text}\n{e}")).resolve()
                };
                assert_eq!(resolve(&stated), resolve(&text), "{}.{}", section.name, field.name);
                tried += 1;
            }
        }
        assert!(tried > 60, "{tried}");
    }
}
