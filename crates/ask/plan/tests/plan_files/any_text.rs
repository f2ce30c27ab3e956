//! No text makes the reader panic, and every message can be displayed.

use plimsoll_plan::{Plan, ResolvedPlan};
use proptest::prelude::*;

const PLAN: &str = include_str!("../../../../../plans/exchange-1000-heavy.toml");

fn read(text: &str) {
    match Plan::parse(text, "any.toml") {
        Ok(plan) => {
            let resolved = plan.resolve();
            let written = resolved.to_toml().expect("writable");
            assert_eq!(ResolvedPlan::from_toml(&written).expect("readable"), resolved);
            assert!(plan.check().is_ok());
        }
        Err(errors) => {
            assert!(!errors.errors.is_empty());
            assert!(!errors.to_string().is_empty());
            for error in &errors.errors {
                assert!(error.line >= 1 && error.column >= 1, "{error:?}");
                assert!(!error.message.is_empty() && !error.help.is_empty(), "{error:?}");
            }
        }
    }
}

/// Returns a value of a random type, which is usually wrong for the field.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| format!("{n:?}").replace("inf", "1e400").to_lowercase()),
        "[0-9]{1,19}(KiB|MiB|GiB|TiB|kB|TB|B|ms|s|h|%|/s|GiB/s|k)?"
            .prop_map(|t| format!("\"{t}\"")),
        "(auto|cold|warm|target|zipf|poisson|until-steady|off|dsync)"
            .prop_map(|t| format!("\"{t}\"")),
        Just("true".to_owned()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just("[[1], {a = 1}]".to_owned()),
        Just("1979-05-27T07:32:00Z".to_owned()),
        prop::collection::vec("\"[a-z0-9/]{0,9}\"", 0..4)
            .prop_map(|v| format!("[{}]", v.join(","))),
        prop::collection::vec(0u64..100, 1..4).prop_map(|v| format!("{v:?}")),
    ]
}

/// Returns each field of the plan reference with its section.
fn fields() -> Vec<(String, String)> {
    let mut section = String::new();
    let mut fields = Vec::new();
    for line in plimsoll_plan::reference_markdown().lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title.trim_matches(['`', '[', ']']).to_owned();
        } else if let Some(rest) = line.strip_prefix("- `")
            && let Some((name, _)) = rest.split_once('`')
            && !name.ends_with('*')
        {
            fields.push((section.clone(), name.to_owned()));
        }
    }
    assert!(fields.len() > 100, "{}", fields.len());
    fields
}

fn plan_of_random_fields() -> impl Strategy<Value = String> {
    let fields = fields();
    let line = (0..fields.len(), value()).prop_map(move |(i, v)| (fields[i].clone(), v));
    (prop::collection::vec(line, 0..12), 0..4u8).prop_map(|(lines, kind)| {
        let mut text = String::new();
        for ((section, name), value) in &lines {
            if section == "Top of the plan" {
                text.push_str(&format!("{name} = {value}\n"));
            } else {
                text.push_str(&format!("{section}.{name} = {value}\n"));
            }
        }
        text.push_str(match kind {
            0 => "[workload.mailbox]\nmailboxes = 50\nmailbox_size = \"10MiB\"\n",
            1 => "target.path = \"/x\"\nworkload.matrix.files = 3\n",
            2 => "target.device = \"/dev/sdb\"\nworkload.matrix.clients = 3\n",
            _ => "",
        });
        text
    })
}

/// These inputs of the fuzz target `hostile_input` took minutes: they contain thousands of errors
/// in one line, or in many lines.
#[test]
fn thousands_of_errors_take_no_longer_than_one() {
    let in_one_line = format!("target.databases = [\"/a\"{}]\n", "\"/mnt/db2\"".repeat(60_000));
    let in_many_lines = "word\n".repeat(150_000);
    let of_fields = (0..2_000).map(|n| format!("field{n} = 1\n")).collect::<String>();
    for (text, count) in [(in_one_line, 1), (in_many_lines, 100), (of_fields, 100)] {
        let start = std::time::Instant::now();
        let errors = Plan::parse(&text, "any.toml").expect_err("errors");
        assert_eq!(errors.errors.len(), count);
        let took = start.elapsed();
        assert!(took.as_secs() < 20, "{took:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes);
        read(&text);
    }

    #[test]
    fn any_characters(text in "\\PC{0,200}") {
        read(&text);
    }

    #[test]
    fn a_plan_with_a_piece_replaced(start in 0..PLAN.len(), length in 0usize..80, piece in "\\PC{0,20}|[\\[\\]{}=\"'\n.0-9a-z]{0,20}") {
        let end = (start + length).min(PLAN.len());
        if let (Some(before), Some(after)) = (PLAN.get(..start), PLAN.get(end..)) {
            read(&format!("{before}{piece}{after}"));
        }
    }

    #[test]
    fn known_fields_with_any_values(text in plan_of_random_fields()) {
        read(&text);
    }
}

#[test]
fn deep_nesting_is_an_error() {
    read(&"[".repeat(100_000));
    read(&format!("a = {}", "[".repeat(100_000)));
    read(&format!("{} = 1", vec!["a"; 50_000].join(".")));
    read(&format!("target.set.{} = 1", vec!["a"; 50_000].join(".")));
}

#[test]
fn a_file_too_large_is_an_error() {
    let errors = Plan::parse(&"#\n".repeat(600_000), "big.toml").expect_err("too large");
    assert!(errors.to_string().contains("too large for a plan"), "{errors}");
}
