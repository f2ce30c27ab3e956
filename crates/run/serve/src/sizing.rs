//! Parses a sizing request for a shipped model, with limits on memory and processor time. For
//! larger requests, use `plimsoll model size`.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use plimsoll_fitting::sizing::Question;
use plimsoll_model::run::ConfiguredModel;
use plimsoll_model::size::{MailLoad, SizeRequest};
use plimsoll_model::spec::{Fact, Field, Spec, shipped};
use plimsoll_plan::{DurationNs, SizeBytes};
use plimsoll_runner::model_run::model_error;

use crate::response::Problem;

/// Maximum amount of data in a model. For each TiB of data, the model's tables take about 400 MB at
/// each size that is tried.
pub const DATA_BYTES_MAX: u64 = 4 << 40;
/// Largest value of a field at which a sizing request tries the model.
pub const SIZE_MAX: u64 = 64;
const DATABASES_MAX: u64 = 2_000;
/// I/Os per second.
pub const RATE_PER_S_MAX: f64 = 1e6;
/// Factor by which a field may be increased or decreased.
const CHANGE_MAX: f64 = 16.0;
/// Maximum number of fields that are shown.
const FIELDS_MAX: usize = 24;
/// Suffixes of fields that may be changed, which are counts, times and rates. Fields for units and
/// extents must not be changed, because the size of the model's tables depends on them.
const ENDINGS: [&str; 13] = [
    "nodes",
    ".count",
    ".groups",
    ".cores",
    ".lanes",
    "_us",
    "_ms_mean",
    "_rpm",
    "_bytes_per_s",
    "_ops_per_s",
    ".capacity_bytes",
    ".data_ratio",
    ".queue_depth",
];

/// Returns a shipped model by name.
///
/// # Errors
/// The model is unknown.
pub fn load_spec(name: &str) -> Result<Spec, Problem> {
    if !shipped().iter().any(|model| model.name == name) {
        return Err(Problem::not_found(format!("there is no model {name}"))
            .hint("see /models for the models that are shipped with the program"));
    }
    Ok(Spec::load(name).map_err(|error| model_error(&error))?)
}

/// Returns the fields of a model that may be changed. Fields that are design choices of the
/// modelled system come first.
pub fn fields(spec: &Spec) -> Vec<(String, Fact)> {
    let facts = spec.facts().into_iter();
    let changeable = |path: &str| {
        !path.starts_with("load.") && ENDINGS.iter().any(|ending| path.ends_with(ending))
    };
    let mut all: Vec<(String, Fact)> = facts
        .filter(|(path, _)| changeable(path))
        .map(|(path, fact)| (path, fact.clone()))
        .collect();
    let rank = |path: &str| ENDINGS.iter().position(|ending| path.ends_with(ending));
    all.sort_by_key(|(path, _)| rank(path));
    all.truncate(FIELDS_MAX);
    all
}

/// Checks that the page permits this value for a field of a model.
///
/// # Errors
/// The field or the value is not permitted.
pub fn check_change(spec: &Spec, path: &str, value: &str) -> Result<(), Problem> {
    let fields = fields(spec);
    let Some((_, fact)) = fields.iter().find(|(known, _)| known == path) else {
        let says = format!(
            "cannot change {path}: the model {} has no such field, or it cannot be changed here",
            spec.name
        );
        return Err(
            Problem::bad_request(says).hint("see /models/NAME for the fields that can be changed")
        );
    };
    check_near(path, number(path, value)?, fact.value)
}

fn check_near(path: &str, number: f64, own: f64) -> Result<(), Problem> {
    match own {
        0.0 => check_range(path, number, 0.0, CHANGE_MAX),
        own => check_range(path, number, own / CHANGE_MAX, own * CHANGE_MAX),
    }
}

/// Returns the fields for which a size can be searched. These are the fields that the model lists,
/// or all its counts if it lists none.
pub fn searchable_fields(spec: &Spec) -> Vec<String> {
    let named = spec.size.as_ref().and_then(|table| table.fields.get("fields"));
    if let Some(Field::List(fields)) = named {
        return fields.clone();
    }
    let counted = |path: &str| [".count", ".groups"].iter().any(|ending| path.ends_with(ending));
    let facts = spec.facts().into_iter().map(|(path, _)| path);
    let found: Vec<String> = facts.filter(|path| counted(path)).collect();
    if found.is_empty() { vec!["model.nodes".to_owned()] } else { found }
}

/// Parses the form.
///
/// # Errors
/// A value is invalid, or exceeds the limits of this server.
pub fn question<'a>(
    name: &'a str,
    given: &dyn Fn(&str) -> Option<String>,
) -> Result<Question<'a>, Problem> {
    let spec = load_spec(name)?;
    let mut set = BTreeMap::new();
    for (path, fact) in fields(&spec) {
        let Some(value) = given(&path) else { continue };
        let number = number(&path, &value)?;
        if number == fact.value {
            continue;
        }
        check_near(&path, number, fact.value)?;
        set.insert(path, number.to_string());
    }
    let known = searchable_fields(&spec);
    let field = given("field").or_else(|| known.first().cloned()).unwrap_or_default();
    if !known.contains(&field) {
        return Err(Problem::bad_request(format!(
            "field: the possible values are {}",
            known.join(", ")
        )));
    }
    let modelled = ConfiguredModel::load(name, &set).map_err(|error| model_error(&error))?;
    let own = modelled.spec().value(&field).unwrap_or(1.0).max(1.0);
    let size = |which: &str, default: f64| -> Result<u64, Problem> {
        let size = given(which).map_or(Ok(default), |value| number(which, &value))?;
        check_range(which, size, 1.0, SIZE_MAX as f64)?;
        Ok(size as u64)
    };
    let low = size("from", own.min(SIZE_MAX as f64))?;
    let high = size("to", low as f64)?;
    if high < low {
        return Err(Problem::bad_request(format!("to: {high} is smaller than {low}")));
    }
    let request = SizeRequest {
        load: load(given)?,
        field: Some(field),
        range: (low, high),
        ..limits(given)?
    };
    let failed_nodes =
        given("failed_nodes").map_or(Ok(0.0), |value| number("failed_nodes", &value))?;
    check_range("failed_nodes", failed_nodes, 0.0, 8.0)?;
    Ok(Question { model: name, set, failed_nodes: Some(failed_nodes as u64), request })
}

fn load(given: &dyn Fn(&str) -> Option<String>) -> Result<MailLoad, Problem> {
    let count =
        |name: &str, default: f64| given(name).map_or(Ok(default), |value| number(name, &value));
    let mailboxes = count("mailboxes", 1_000.0)?.trunc();
    let iops = count("iops", 0.2)?;
    let bytes = given("mailbox_size").unwrap_or_else(|| "1GiB".to_owned());
    let bytes = bytes
        .trim()
        .parse::<SizeBytes>()
        .map_err(|_| Problem::bad_request("mailbox_size: enter a size, for example 1GiB"))?;
    let databases = count("databases", (mailboxes / 250.0).ceil().max(1.0))?.trunc();
    check_range("databases", databases, 1.0, DATABASES_MAX as f64)?;
    let rate_ios_per_s = mailboxes * iops;
    check_range("I/Os per second", rate_ios_per_s, 0.001, RATE_PER_S_MAX)?;
    let data_bytes = mailboxes * bytes.0 as f64;
    if data_bytes > DATA_BYTES_MAX as f64 {
        return Err(Problem::bad_request(
            "the mailboxes contain more than 4 TiB of data, which is too much for a model on this \
             page",
        )
        .hint("`plimsoll model size` has no such limit"));
    }
    let databases = databases as u32;
    let database_bytes = (data_bytes / f64::from(databases)) as u64;
    check_range(
        "bytes of a database",
        database_bytes as f64,
        (1u64 << 20) as f64,
        DATA_BYTES_MAX as f64,
    )?;
    Ok(MailLoad { databases, database_bytes, rate_ios_per_s })
}

/// Returns a request with the latency limits from the form. Its other values are not used.
fn limits(given: &dyn Fn(&str) -> Option<String>) -> Result<SizeRequest, Problem> {
    let duration = |name: &str, default: &str| {
        let text = given(name).unwrap_or_else(|| default.to_owned());
        let wrong = |_| Problem::bad_request(format!("{name}: enter a duration, for example 20ms"));
        text.trim().parse::<DurationNs>().map(|duration| duration.0).map_err(wrong)
    };
    Ok(SizeRequest {
        load: MailLoad { databases: 1, database_bytes: 0, rate_ios_per_s: 0.0 },
        read_ns_max: duration("read_latency", "20ms")?,
        log_ns_max: duration("log_latency", "10ms")?,
        field: None,
        range: (1, 1),
        seed: 1,
    })
}

fn number(name: &str, text: &str) -> Result<f64, Problem> {
    let bare = text.trim().replace([',', '_'], "");
    let number = bare.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| Problem::bad_request(format!("{name}: enter a number")))
}

fn check_range(name: &str, number: f64, low: f64, high: f64) -> Result<(), Problem> {
    match (low..=high).contains(&number) {
        true => Ok(()),
        false => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            format!("{name}: {number} is not between {low} and {high}"),
        )
        .hint("`plimsoll model size` has no such limits")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_shipped_model_answers_the_first_question_and_none_that_would_take_the_host() {
        for model in shipped() {
            let spec = load_spec(model.name).unwrap();
            assert!(!fields(&spec).is_empty(), "{}", model.name);
            let first = |name: &str| match name {
                "mailboxes" => Some("100".to_owned()),
                "mailbox_size" => Some("64MiB".to_owned()),
                _ => None,
            };
            let question = question(model.name, &first).unwrap();
            let answer = question.answer().unwrap().as_json();
            assert_eq!(answer["tried"].as_array().unwrap().len(), 1, "{}", model.name);
        }
        for (name, value) in [
            ("mailboxes", "1e9"),
            ("mailboxes", "-1"),
            ("mailboxes", "nan"),
            ("mailbox_size", "9TiB"),
            ("databases", "1e6"),
            ("iops", "1e300"),
            ("from", "0"),
            ("to", "65"),
            ("hdd.count", "1000"),
            ("ssd.read_us", "0"),
            ("field", "cache.unit_bytes"),
            ("read_latency", "soon"),
            ("failed_nodes", "9"),
        ] {
            let hostile = |of: &str| (of == name).then(|| value.to_owned());
            let refused = question("adsf-hybrid", &hostile).map(|_| ()).unwrap_err();
            assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{name} = {value}");
        }
        // Fields that the form does not show cannot be changed.
        let unit = |of: &str| (of == "cache.unit_bytes").then(|| "1".to_owned());
        assert!(question("adsf-hybrid", &unit).unwrap().set.is_empty());
        assert!(question("../../etc/passwd", &unit).is_err());
    }
}
