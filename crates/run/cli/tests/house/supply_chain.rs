//! Checks the contents of a build: licences, the duplicate crates and sources that `deny.toml`
//! allows, and `unsafe` code. Each exception states its reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::architecture::{list, metadata, text};

const DENY: &str = include_str!("../../../../../deny.toml");
const CRATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn rules() -> toml::Table {
    DENY.parse().expect("deny.toml is TOML")
}

/// Returns true if a licence expression can be satisfied with allowed licences.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    plain.split(" AND ").all(|part| part.split(" OR ").any(|one| allowed.contains(one.trim())))
}

/// Returns the packages that the build on this platform contains.
fn packages(metadata: &Value) -> Vec<&Value> {
    let built: BTreeSet<&str> =
        list(&metadata["resolve"], "nodes").iter().map(|node| text(node, "id")).collect();
    let all = list(metadata, "packages").iter();
    all.filter(|package| built.contains(text(package, "id"))).collect()
}

#[test]
fn licences_duplicates_and_sources_are_those_of_deny_toml() {
    let rules = rules();
    let name = |one: &toml::Value| {
        let word = one.as_str().or_else(|| one.get("crate")?.as_str());
        word.expect("a word, or a table with a crate").to_owned()
    };
    let words = |value: &toml::Value| -> BTreeSet<String> {
        value.as_array().expect("a list").iter().map(name).collect()
    };
    let allowed = words(&rules["licenses"]["allow"]);
    let metadata = metadata();
    let mut versions: BTreeMap<&str, usize> = BTreeMap::new();
    for package in packages(&metadata) {
        let name = text(package, "name");
        let licence = package["license"].as_str().unwrap_or("none");
        assert!(is_allowed(licence, &allowed), "{name} has the licence {licence}");
        if let Some(source) = package["source"].as_str() {
            assert!(
                source.starts_with("registry+https://github.com/rust-lang/crates.io-index"),
                "{name}: {source}"
            );
        }
        *versions.entry(name).or_default() += 1;
    }
    assert!(versions.len() > 200, "{}", versions.len());
    let twice: BTreeSet<String> =
        versions.iter().filter(|(_, n)| **n > 1).map(|(name, _)| (*name).to_owned()).collect();
    let skipped = words(&rules["bans"]["skip"]);
    let new: Vec<_> = twice.difference(&skipped).collect();
    assert!(
        new.is_empty(),
        "new duplicates: {new:?}; remove one version, or list them in deny.toml"
    );
}

#[test]
fn a_licence_that_is_not_allowed_is_found() {
    let allowed: BTreeSet<String> = ["MIT", "ISC"].map(str::to_owned).into();
    for good in ["MIT", "GPL-3.0 OR MIT", "MIT/Apache-2.0", "(MIT OR X) AND ISC"] {
        assert!(is_allowed(good, &allowed), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "none", ""] {
        assert!(!is_allowed(bad, &allowed), "{bad}");
    }
}

fn sources(directory: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push(path);
        }
    }
}

/// Returns true if a line of code begins an unsafe item. Text in quotes and comments is not code.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let unquoted: String = code.split('"').step_by(2).collect();
    let mut words = unquoted.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| word == "unsafe")
}

/// Returns the numbers of lines with unsafe code, if none of the eight lines before them states a
/// reason.
fn without_reason(text: &str) -> Vec<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let has_reason = |at: usize| {
        let before = &lines[at.saturating_sub(8)..=at];
        before.iter().any(|line| line.contains("SAFETY:") || line.contains("# Safety"))
    };
    (0..lines.len())
        .filter(|at| is_unsafe(lines[*at]) && !has_reason(*at))
        .map(|at| at + 1)
        .collect()
}

#[test]
fn unsafe_code_is_in_one_crate_and_each_piece_has_a_reason() {
    let mut files = Vec::new();
    sources(Path::new(CRATES), &mut files);
    let mut pieces = 0;
    for path in files {
        let source = fs::read_to_string(&path).expect("a source");
        let count = source.lines().filter(|line| is_unsafe(line)).count();
        if count == 0 {
            continue;
        }
        pieces += count;
        let is_sys = path.strip_prefix(CRATES).is_ok_and(|below| below.starts_with("measure/sys"));
        // The content policy for the page's scripts contains this word in a string of several
        // lines.
        let is_text = path.ends_with("serve/src/routes.rs");
        assert!(is_sys || is_text, "{}: unsafe code belongs in plimsoll-sys", path.display());
        let without = if is_text { Vec::new() } else { without_reason(&source) };
        assert!(
            without.is_empty(),
            "{}: no SAFETY comment before lines {without:?}",
            path.display()
        );
    }
    assert!(pieces > 50, "{pieces}");
}

#[test]
fn unsafe_code_without_a_reason_is_found() {
    assert_eq!(without_reason("fn f() {\n    unsafe { g() }\n}\n"), [2]);
    assert!(without_reason("// SAFETY: g is pure.\nunsafe { g() }\n").is_empty());
    assert!(without_reason("// unsafe\nlet s = \"unsafe\";\nlet unsafe_one = 1;\n").is_empty());
}
