//! Every built-in plan resolves, and its comment states the correct space and time.

use plimsoll_plan::{
    Change, Plan, ResolvedPlan, SizeBytes, gallery, gallery_plan, nearest_gallery_plan, overlay,
};

#[test]
fn every_plan_of_the_gallery_resolves_and_says_what_it_is_for() {
    assert!(gallery().len() >= 16);
    for ready in gallery() {
        let plan = Plan::parse(ready.text, ready.name).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(plan.name(), ready.name);
        let resolved = plan.resolve();
        assert!(!resolved.description.is_empty(), "{}", ready.name);
        assert!(resolved.requirement.is_some(), "{} can't pass", ready.name);
        for word in ["For whom", "Sources", "Needs", "Takes"] {
            assert!(!ready.says(word).is_empty(), "{} does not say `{word}`", ready.name);
        }
        let text = resolved.to_toml().expect("writable");
        assert_eq!(ResolvedPlan::from_toml(&text).expect("readable"), resolved, "{text}");
    }
}

#[test]
fn comments_state_the_actual_space_and_time() {
    for ready in gallery() {
        let resolved = Plan::parse(ready.text, ready.name).expect("in order").resolve();
        let needs = resolved.required_bytes(&resolved.targets[0]);
        let needed: u64 = needs.iter().map(|need| need.bytes).sum();
        assert_eq!(ready.says("Needs"), SizeBytes(needed).about(), "{}", ready.name);
        let minutes = resolved.measuring_ns().div_ceil(60_000_000_000);
        assert_eq!(ready.says("Takes"), format!("{minutes} min"), "{}", ready.name);
    }
}

#[test]
fn names_are_found_and_slips_are_guessed() {
    assert_eq!(gallery_plan("oltp").map(|plan| plan.name), Some("oltp"));
    assert_eq!(gallery_plan("oltp.toml"), None);
    assert_eq!(nearest_gallery_plan("exchange-1000-haevy"), Some("exchange-1000-heavy"));
    assert_eq!(nearest_gallery_plan("completely else"), None);
}

#[test]
fn names_that_people_type_find_a_plan() {
    let plan = |name: &str| gallery_plan(name).map(|plan| plan.name);
    for (typed, name) in [
        ("etcd", "container-volume"),
        ("postgres", "postgres"),
        ("postgresql", "postgres"),
        ("mysql", "mysql"),
        ("kafka", "kafka"),
        ("exchange", "exchange-1000-medium"),
        ("vdi", "vdi-steady"),
        ("ai-training", "ai-training-read"),
        ("ai-checkpoint", "ai-checkpoint"),
        ("ai-restore", "ai-restore"),
        ("kv-cache", "kv-cache"),
        ("s3", "s3-small-objects"),
        ("backup", "backup-target"),
    ] {
        assert_eq!(plan(typed), Some(name), "{typed}");
    }
    // Each alias names exactly one plan and differs from all plan names.
    let mut seen = std::collections::BTreeSet::new();
    let names = gallery().iter().flat_map(|plan| plan.aliases().chain([plan.name]));
    assert!(names.into_iter().all(|name| seen.insert(name)), "{seen:?}");
    assert!(seen.iter().all(|name| gallery_plan(name).is_some()));
    assert_eq!(nearest_gallery_plan("postgers"), Some("postgres"));
}

#[test]
fn a_plan_of_the_gallery_keeps_its_comments_when_fields_change() {
    let heavy = gallery_plan("exchange-1000-heavy").expect("it is there");
    let change = |text: &str| Change::parse(text).expect("a change");
    let changes = [change("target.path=/mnt/x"), change("phases.measure=10m")];
    let text = overlay(heavy.text, heavy.name, &changes).unwrap_or_else(|e| panic!("{e}"));
    assert!(text.starts_with("# A thousand heavy mailboxes"), "{text}");
    let plan = Plan::parse(&text, heavy.name).unwrap_or_else(|e| panic!("{e}")).resolve();
    assert_eq!(plan.targets[0].database_directories(), ["/mnt/x"]);
    assert_eq!(plan.phases.measure_ns, 600_000_000_000);
    let wrong = overlay(heavy.text, heavy.name, &[change("phases.measure=10")]).expect("TOML");
    let error = Plan::parse(&wrong, heavy.name).expect_err("no unit");
    assert!(error.to_string().contains("phases.measure"), "{error}");
    let unknown = overlay(heavy.text, heavy.name, &[change("phases.mesure=10m")]).expect("TOML");
    let error = Plan::parse(&unknown, heavy.name).expect_err("unknown");
    assert!(error.to_string().contains("measure"), "{error}");
}
