//! Checks a plan or a fio job from a form, or a plan from its text. Returns its errors, whether it
//! may be started on this server, and its expected cost.

mod check;
mod goal;
mod job;
mod model_limits;
mod on_hosts;

use plimsoll_plan::{Change, gallery_plan, overlay};
use plimsoll_runner::allow::Allow;
use toml::Value as Toml;

use crate::response::Problem;

pub use check::{PlanCheck, check};
pub use goal::RunGoal;
pub use on_hosts::check as check_on_hosts;

/// File name of the plan that messages show.
const NAME: &str = "plan.toml";
/// Maximum length of a plan.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Format of a form field's value in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueFormat {
    /// Always quoted.
    Text,
    /// Numbers, `true` and `false` remain unchanged. All other values are put in quotes.
    Value,
    /// Like [`ValueFormat::Value`], but a value with commas becomes a list.
    Values,
}

/// A field of a plan's form.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Path of the field in the plan.
    pub name: &'static str,
    /// Label of the field on the page.
    pub label: &'static str,
    /// Initial value of the field on the page.
    pub initial: &'static str,
    pub format: ValueFormat,
}

const fn field(
    name: &'static str,
    label: &'static str,
    initial: &'static str,
    format: ValueFormat,
) -> Field {
    Field { name, label, initial, format }
}

use ValueFormat::{Text, Value, Values};

/// Fields that every form has.
pub const COMMON: &[Field] = &[
    field("phases.warm_up", "Warm-up", "10s", Value),
    field("phases.measure", "Measure", "60s", Value),
    field("evidence.min_measure", "Minimum duration of the measurement", "30s", Value),
    field("repeat.runs", "Runs", "", Value),
];

/// Fields of the form for a mail store.
pub const MAILBOX: &[Field] = &[
    field("workload.mailbox.mailboxes", "Mailboxes", "100", Value),
    field("workload.mailbox.mailbox_size", "Mailbox size", "16MiB", Value),
    field("workload.mailbox.iops_per_mailbox", "I/Os per second per mailbox", "0.2", Value),
    field("workload.mailbox.databases", "Databases", "2", Value),
    field("workload.mailbox.threads", "Sessions", "", Value),
    field("workload.mailbox.pace", "Pace", "", Text),
    field("requirement.iops", "Required I/Os per second", "", Value),
    field("phases.verify", "Verify data after the run", "", Value),
];

pub const MATRIX: &[Field] = &[
    field("workload.matrix.sizes", "Block size", "4KiB", Value),
    field("workload.matrix.reads", "Reads", "70%", Value),
    field("workload.matrix.patterns", "Pattern", "random", Text),
    field("workload.matrix.queue_depth", "Queue depth", "8", Value),
    field("workload.matrix.clients", "Clients", "", Value),
    field("workload.matrix.files", "Files", "", Value),
    field("workload.matrix.file_size", "File size", "256MiB", Value),
    field("workload.matrix.rate", "Operations per second", "", Value),
    field("workload.matrix.sync", "Durable writes", "", Text),
    field("requirement.iops", "Required operations per second", "", Value),
    field("requirement.latency_p99", "Required latency, p99", "", Value),
];

/// Target kinds in menu order: field name, label and example.
pub const TARGET_KINDS: [(&str, &str, &str); 4] = [
    ("path", "directory", "/mnt/test"),
    ("device", "block device", "/dev/nvme0n1"),
    ("nfs", "NFS export", "nfs://host/export"),
    ("model", "model, in virtual time", "single-hdd"),
];

/// Returns the fields of a form: `mailbox`, `matrix`, `text`, `fio`, or the name of a plan in the
/// gallery. Returns `None` for any other form.
pub fn fields(kind: &str) -> Option<Vec<Field>> {
    let own: &[Field] = match kind {
        "mailbox" => MAILBOX,
        "matrix" => MATRIX,
        "text" | "fio" => return Some(Vec::new()),
        _ => {
            gallery_plan(kind)?;
            // The initial values are empty: if a field is left empty, the plan's value is used.
            return Some(COMMON.iter().map(|one| Field { initial: "", ..*one }).collect());
        }
    };
    Some(own.iter().chain(COMMON).copied().collect())
}

/// Checks the plan that results from a submitted form.
///
/// # Errors
/// The kind is unknown, or the changes are invalid.
pub fn check_form(
    given: &dyn Fn(&str) -> Option<String>,
    allow: &Allow,
) -> Result<PlanCheck, Problem> {
    let goal = RunGoal::parse(given("find").as_deref())?;
    if given("kind").as_deref() == Some("fio") {
        let name = given("name").unwrap_or_default();
        let text = given("job").unwrap_or_default().replace("\r\n", "\n");
        let place = given("place").map(|place| {
            let place = Toml::String(place.trim().to_owned());
            Change::set(&format!("target.{}", target_kind(given)), place)
        });
        return Ok(job::check(&name, &text, place.as_ref(), goal, allow));
    }
    Ok(check(&text(given)?, goal, allow))
}

/// Returns the kind of target that the user chose.
fn target_kind(given: &dyn Fn(&str) -> Option<String>) -> String {
    let chosen =
        given("place_kind").filter(|kind| TARGET_KINDS.iter().any(|(of, _, _)| of == kind));
    chosen.unwrap_or_else(|| "path".to_owned())
}

/// Returns the plan text for a form.
///
/// # Errors
/// The kind is unknown, or the changes are invalid.
pub fn text(given: &dyn Fn(&str) -> Option<String>) -> Result<String, Problem> {
    let kind = given("kind").unwrap_or_default();
    let wrong = || Problem::bad_request("there is no such form");
    let fields = fields(&kind).ok_or_else(wrong)?;
    if kind == "text" {
        let text = given("plan").unwrap_or_default();
        if text.len() > TEXT_BYTES_MAX {
            return Err(Problem::bad_request("a plan has at most 1 MiB"));
        }
        return Ok(text.replace("\r\n", "\n"));
    }
    let place_kind = target_kind(given);
    // A plan may have several NFS exports, so a list is accepted.
    let format = if place_kind == "nfs" { Values } else { Text };
    let place =
        given("place").map(|place| (format!("target.{place_kind}"), literal(format, place.trim())));
    let name = given("name").map(|name| ("name".to_owned(), toml_string(&name)));
    let written = fields.iter().filter_map(|field| {
        Some((field.name.to_owned(), literal(field.format, given(field.name)?.trim())))
    });
    let all = name.into_iter().chain(place).chain(written);
    let base = match gallery_plan(&kind) {
        Some(plan) => {
            let changes: Vec<String> =
                all.map(|(field, value)| format!("{field}={value}")).collect();
            apply_changes(plan.text, &changes)?
        }
        None => sections(all),
    };
    let more = given("more").unwrap_or_default();
    let more: Vec<String> =
        more.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    if more.is_empty() { Ok(base) } else { apply_changes(&base, &more) }
}

fn apply_changes(text: &str, changes: &[String]) -> Result<String, Problem> {
    let changes = changes.iter().map(|one| Change::parse(one)).collect::<Result<Vec<_>, _>>();
    let changes = changes.map_err(Problem::bad_request)?;
    overlay(text, NAME, &changes).map_err(|errors| Problem::bad_request(errors.to_string()))
}

/// Returns the fields and their values as TOML. Each section appears once, in the order of the
/// fields.
fn sections(fields: impl Iterator<Item = (String, String)>) -> String {
    let mut sections: Vec<(String, Vec<String>)> =
        vec![(String::new(), vec!["version = 1".to_owned()])];
    for (field, value) in fields {
        let (section, name) = field.rsplit_once('.').unwrap_or(("", &field));
        let line = format!("{name} = {value}");
        match sections.iter_mut().find(|(known, _)| known == section) {
            Some((_, lines)) => lines.push(line),
            None => sections.push((section.to_owned(), vec![line])),
        }
    }
    let text = sections.into_iter().map(|(section, lines)| {
        let head = if section.is_empty() { String::new() } else { format!("[{section}]\n") };
        format!("{head}{}\n", lines.join("\n"))
    });
    text.collect::<Vec<_>>().join("\n")
}

fn literal(format: ValueFormat, text: &str) -> String {
    let bare = text.parse::<f64>().is_ok_and(f64::is_finite) || ["true", "false"].contains(&text);
    match format {
        Text => toml_string(text),
        Values if text.contains(',') => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            format!("[{}]", parts.map(|part| literal(Value, part)).collect::<Vec<_>>().join(", "))
        }
        // Accepts a number only if Rust and TOML use the same format for it.
        Value | Values
            if bare && text.starts_with(|c: char| c.is_ascii_digit()) && !text.ends_with('.') =>
        {
            text.to_owned()
        }
        Value | Values if ["true", "false"].contains(&text) => text.to_owned(),
        Value | Values => toml_string(text),
    }
}

fn toml_string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.trim().chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_plan::{field_reference, gallery};

    use super::*;

    fn form<'a>(fields: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| fields.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn every_field_of_a_form_is_one_of_plans_and_every_first_form_reads_as_a_plan() {
        for field in MAILBOX.iter().chain(MATRIX).chain(COMMON) {
            let latency = field.name.starts_with("requirement.latency_");
            assert!(latency || field_reference(field.name).is_some(), "{}", field.name);
        }
        for kind in ["mailbox", "matrix"].into_iter().chain(gallery().iter().map(|one| one.name)) {
            let fields = fields(kind).unwrap();
            let first = |name: &str| match name {
                "kind" => Some(kind.to_owned()),
                "place" => Some("/nowhere/at \"all\"".to_owned()),
                name => {
                    let field = fields.iter().find(|field| field.name == name)?;
                    Some(field.initial.to_owned()).filter(|first| !first.is_empty())
                }
            };
            let text = text(&first).unwrap();
            let checked = check(&text, RunGoal::Runs, &Allow::default());
            if text.contains("first_byte_latency") {
                // The form has no field for buckets.
                assert_eq!(checked.problems[0].field, "requirement.first_byte_latency_p99");
                continue;
            }
            assert_eq!(checked.problems, Vec::new(), "{kind}: {text}");
            assert!(!checked.can_start && checked.takes.is_empty(), "{kind}");
            let refused = checked.refused.unwrap();
            let why = ["--allow-", "No such"];
            assert!(why.iter().any(|why| refused.contains(why)), "{kind}: {refused}");
        }
    }

    #[test]
    fn what_is_written_in_a_field_can_say_nothing_of_another() {
        let hostile = "x\"\nnull = true\n#";
        let fields = [("kind", "matrix"), ("place", hostile), ("workload.matrix.sizes", hostile)];
        let text = text(&form(&fields)).unwrap();
        let checked = check(&text, RunGoal::Runs, &Allow::default());
        assert!(!text.lines().any(|line| line.starts_with("null")), "{text}");
        assert!(checked.problems.iter().any(|p| p.field == "workload.matrix.sizes"), "{checked:?}");
    }

    #[test]
    fn only_what_is_allowed_and_one_run_can_start() {
        let root = tempfile::tempdir().unwrap();
        let allow = Allow::new(&[root.path().to_path_buf()], &[], &[]).unwrap();
        let place = root.path().display().to_string();
        let with = |more: &str| {
            let fields = [
                ("kind", "matrix"),
                ("place", place.as_str()),
                ("workload.matrix.file_size", "1MiB"),
                ("phases.measure", "30s"),
                ("evidence.min_measure", "30s"),
                ("more", more),
            ];
            check(&text(&form(&fields)).unwrap(), RunGoal::Runs, &allow)
        };
        let fine = with("");
        assert!(fine.can_start, "{fine:?}");
        assert!(fine.takes.iter().any(|line| line.starts_with("takes ")), "{:?}", fine.takes);
        assert!(fine.takes.iter().any(|line| line.contains("needed")), "{:?}", fine.takes);
        let sweep = with("workload.matrix.queue_depth=[1, 2]");
        assert!(sweep.can_start, "{sweep:?}");
        assert!(sweep.takes.iter().any(|line| line.contains("2 points")), "{:?}", sweep.takes);
        let sides = |second: &str, runs: u32| {
            let text = format!(
                "version = 1\n[[target]]\nname = \"a\"\npath = {place:?}\n[[target]]\nname = \"b\"\npath = {second:?}\n\
                 [workload.matrix]\nfile_size = \"1MiB\"\n[phases]\nmeasure = \"30s\"\n[evidence]\n\
                 min_measure = \"30s\"\n[repeat]\nruns = {runs}\n"
            );
            check(&text, RunGoal::Runs, &allow)
        };
        let below = root.path().join("b");
        std::fs::create_dir(&below).unwrap();
        let below = below.display().to_string();
        let both = sides(&below, 4);
        assert!(both.can_start && both.takes.iter().any(|l| l.contains("8 runs")), "{both:?}");
        assert!(sides(&below, 1).refused.unwrap().contains("at least 4 runs"));
        assert!(sides("/", 4).refused.unwrap().contains("not in any --allow-path"));
        let outside = with("target.path=/");
        assert!(outside.refused.unwrap().contains("not in any --allow-path"));
        let long = with("phases.measure=1000000h");
        assert!(long.refused.unwrap().contains("years"));
        assert!(text(&form(&[("kind", "nothing")])).is_err());
    }
}
