//! Modified bundles; the modifications range from crude to careful.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use serde_json::Value;

use crate::case::{Case, CaseResult};
use crate::forger::{Forger, Original};
use crate::support;
use crate::support::draw::Draw;
use crate::truth::Truth;
use crate::wrong::Wrong;

/// Kinds of modification, each with a function that modifies a bundle.
const CHANGES: [(&str, fn(&Forger, &mut Draw) -> String); 6] = [
    ("evidence: a byte", |forger, draw| {
        let path = any_file(forger, draw);
        let mut bytes = fs::read(&path).unwrap();
        let at = draw.below(bytes.len());
        bytes[at] ^= 1 + draw.below(255) as u8;
        fs::write(&path, bytes).unwrap();
        format!("byte {at} of {}", path.display())
    }),
    ("evidence: a line", |forger, draw| {
        let path =
            forger.at(draw.one_of(&["series.csv", "run.json", "observed.json", "resolved.toml"]));
        let text = fs::read_to_string(&path).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        let at = draw.below(lines.len());
        let line = lines.remove(at);
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        format!("{line:?} taken out of {}", path.display())
    }),
    ("evidence: cut short", |forger, draw| {
        let path = any_file(forger, draw);
        let bytes = fs::read(&path).unwrap();
        let left = draw.below(bytes.len());
        fs::write(&path, &bytes[..left]).unwrap();
        format!("{} cut to {left} bytes", path.display())
    }),
    ("evidence: a figure, sealed again", |forger, draw| {
        let says = any_figure(forger, draw);
        forger.seal();
        says
    }),
    ("evidence: a figure, sealed and derived again", |forger, draw| {
        let says = any_figure(forger, draw);
        forger.seal();
        forger.derive();
        says
    }),
    ("evidence: counts, made to fit everywhere", |forger, draw| {
        let factor = draw.one_of(&[2, 5, 20]);
        let fields: &[&str] = draw.one_of(&[
            &["count"][..],
            &["count", "size_bytes"],
            &["count", "size_bytes", "latency_ns_sum", "service_ns_sum"],
            &["size_bytes"],
            &["latency_ns_sum", "latency_ns_max"],
        ]);
        forger.json("run.json", |run| {
            let classes = run["classes"].as_array_mut().unwrap();
            for class in classes.iter_mut().filter(|class| class["group"] == "transactional") {
                for field in fields {
                    class[*field] = (class[*field].as_u64().unwrap() * factor).into();
                }
            }
        });
        forger.whole();
        format!("{fields:?} times {factor}")
    }),
];

/// Returns a random case with a modified bundle.
pub fn case(seed: u64, draw: &mut Draw) -> Case {
    let (class, change) = draw.one_of(&CHANGES);
    let run = move |seed: u64| {
        static ORIGINAL: OnceLock<Original> = OnceLock::new();
        let forger = ORIGINAL.get_or_init(Original::make).copy();
        let text = change(&forger, &mut Draw::of(seed ^ 0x0065_7669));
        let let_pass = forger.let_pass().into_iter();
        let found = let_pass.map(|by| (Wrong::Missed, format!("{text}: {by}"))).collect();
        CaseResult::of(&Truth::default(), None, found, &text).named("noticed")
    };
    Case { seed, class, carry_out: Box::new(run) }
}

fn any_file(forger: &Forger, draw: &mut Draw) -> PathBuf {
    let mut names = support::names(&forger.first);
    names.retain(|name| fs::metadata(forger.at(name)).is_ok_and(|about| about.len() > 0));
    forger.at(&names[draw.below(names.len())])
}

/// Changes one number in the evidence. Returns a description of the change.
fn any_figure(forger: &Forger, draw: &mut Draw) -> String {
    let name = draw.one_of(&["run.json", "run.json", "observed.json", "environment.json"]);
    let mut says = String::new();
    forger.json(name, |value| {
        let mut places = Vec::new();
        numbers(value, String::new(), &mut places);
        let place = places[draw.below(places.len())].clone();
        let number = value.pointer_mut(&place).unwrap();
        let before = number.clone();
        *number = match number.as_u64() {
            Some(whole) => (whole.saturating_mul(2) + 1).into(),
            None => (number.as_f64().unwrap() * 2.0 + 1.0).into(),
        };
        says = format!("{name} {place}: {number} and not {before}");
    });
    says
}

/// Adds the JSON pointers of all numbers in `value` to `places`.
fn numbers(value: &Value, at: String, places: &mut Vec<String>) {
    match value {
        Value::Number(_) => places.push(at),
        Value::Array(values) => {
            let each = values.iter().enumerate();
            each.for_each(|(index, value)| numbers(value, format!("{at}/{index}"), places));
        }
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            let name = name.replace('~', "~0").replace('/', "~1");
            numbers(value, format!("{at}/{name}"), places);
        }),
        _ => {}
    }
}
