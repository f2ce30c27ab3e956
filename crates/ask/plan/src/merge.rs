//! Merges two plans. The arms of an experiment are created in this way.

use toml::{Table, Value};

use crate::error::{PlanError, PlanErrors};

/// Fields that determine the kind of a target. If a change sets one of these fields, it replaces
/// the whole target.
pub(crate) const TARGET_KINDS: [&str; 7] =
    ["databases", "path", "device", "nfs", "s3", "model", "null"];
/// Fields that determine the kind of a workload.
const WORKLOAD_KINDS: [&str; 3] = ["mailbox", "matrix", "fio"];

/// Returns the plan's text with the fields in `changes` applied to it.
///
/// Tables are merged field by field; other values are replaced. If `changes` contains a target or
/// workload of a different kind, the whole table of the plan is replaced. The resulting text has no
/// comments.
///
/// # Errors
/// One of the two texts is not TOML. Other faults are detected later, when the result is parsed as
/// a plan.
pub fn merge_plans(base: (&str, &str), changes: (&str, &str)) -> Result<String, PlanErrors> {
    let mut merged = table(base)?;
    merge(&mut merged, table(changes)?, "");
    toml::to_string(&merged).map_err(|e| fault(base, &(0..0), e.to_string()))
}

fn table((text, name): (&str, &str)) -> Result<Table, PlanErrors> {
    text.parse().map_err(|e: toml::de::Error| {
        fault((text, name), &e.span().unwrap_or(0..0), e.message().to_owned())
    })
}

fn fault((text, name): (&str, &str), span: &std::ops::Range<usize>, message: String) -> PlanErrors {
    let message = format!("is not TOML: {}", crate::display_text::one_line(&message));
    let help = "correct the syntax here (https://toml.io)".to_owned();
    let error = PlanError::new(text, span, String::new(), message, help);
    PlanErrors { source_name: name.to_owned(), errors: vec![error] }
}

/// The recursion is bounded, because the TOML parser limits nesting.
fn merge(base: &mut Table, changes: Table, at: &str) {
    for (name, change) in changes {
        let kinds: &[&str] = match (at, name.as_str()) {
            ("", "target") => &TARGET_KINDS,
            ("", "workload") => &WORKLOAD_KINDS,
            _ => &[],
        };
        match (base.get_mut(&name), change) {
            (Some(Value::Table(old)), Value::Table(new)) => {
                let is_other = |kind: &&str| new.contains_key(*kind) && !old.contains_key(*kind);
                if kinds.iter().any(is_other) {
                    *old = new;
                } else {
                    merge(old, new, &name);
                }
            }
            (_, change) => {
                base.insert(name, change);
            }
        }
    }
}
