//! Sibling modules of a crate form no import cycle, except the cycles listed here with a reason.
//! The test reads the sources: `use` declarations, paths that begin with `crate`, `super` or
//! `self`, and re-exports followed to their origin. It does not see dependencies through method
//! calls or macros.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Crate, parent module, modules of the cycle, and the reason to keep it.
const KNOWN: &[(&str, &str, &[&str], &str)] = &[
    (
        "plimsoll-engine",
        ".",
        &["mailbox", "matrix", "work_dir"],
        "what may be removed is what the manifests of mail stores and data sets list, and both lie in what `work_dir` \
         finds and locks",
    ),
    (
        "plimsoll-model",
        "core",
        &["sim", "trace"],
        "halves of one type: its events, and what is traced of them",
    ),
    (
        "plimsoll-nfs",
        ".",
        &["client", "connections"],
        "halves of one type: its calls, and the connections that carry them",
    ),
    (
        "plimsoll-observe",
        ".",
        &["mount", "stack"],
        "a file system rests on devices, and a loop device on a file of another file system",
    ),
    (
        "plimsoll-plan",
        ".",
        &["raw", "read"],
        "an unknown field is looked for among the fields of the other sections",
    ),
    (
        "plimsoll-runner",
        ".",
        &["custody", "experiment"],
        "the seal of an experiment is held against its runs as they were loaded, and whoever loads them asks for that",
    ),
    (
        "plimsoll-workload",
        ".",
        &["content", "stamp"],
        "a stamp is a part of its block's content, and is checked by making that content again",
    ),
    (
        "plimsoll-workload",
        "mailbox",
        &["database", "maintenance", "replication"],
        "parts of one type: a database, its maintenance and its replication",
    ),
];

const CRATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

type Module = Vec<String>;

#[test]
fn no_circle_between_modules_but_those_that_are_listed() {
    let mut found = BTreeSet::new();
    let list = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let rooms = list(Path::new(CRATES)).map(|room| room.path());
    for entry in rooms.flat_map(|room| list(&room).collect::<Vec<_>>()) {
        let name = match entry.file_name().to_string_lossy() {
            name if name == "cli" => "plimsoll".to_owned(),
            name => format!("plimsoll-{name}"),
        };
        let mut files = BTreeMap::new();
        collect(&entry.path().join("src"), &[], &mut files);
        for (parent, circle) in circles(&files) {
            found.insert(format!("{name} {parent}: {}", circle.join(", ")));
        }
    }
    let known: BTreeSet<String> = KNOWN
        .iter()
        .map(|(name, parent, circle, _)| format!("{name} {parent}: {}", circle.join(", ")))
        .collect();
    let new: Vec<&String> = found.difference(&known).collect();
    let gone: Vec<&String> = known.difference(&found).collect();
    assert!(new.is_empty(), "put what both need below both: {new:#?}");
    assert!(gone.is_empty(), "opened, so that KNOWN has them no longer: {gone:#?}");
    assert!(KNOWN.iter().all(|(.., reason)| reason.len() > 20), "each has a reason");
}

#[test]
fn a_circle_is_found_through_a_group_and_a_re_export_and_not_in_tests() {
    let crate_of = |files: &[(&str, &str)]| -> Vec<(String, Vec<String>)> {
        let module = |path: &str| -> Module {
            path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        circles(&files.iter().map(|(m, text)| (module(m), (*text).to_owned())).collect())
    };
    let both = |a: &str, b: &str| crate_of(&[("", "mod a; mod b;"), ("a", a), ("b", b)]);
    let circle = vec![(".".to_owned(), vec!["a".to_owned(), "b".to_owned()])];
    assert_eq!(both("use crate::{b::B, c};", "fn f(x: super::a::A) {}"), circle);
    assert_eq!(
        both("use crate::b::B;", "// use crate::a::A;\nconst S: &str = \"crate::a::A\";"),
        []
    );
    assert_eq!(both("use crate::b::B;", "#[cfg(test)]\nmod tests { use crate::a::A; }"), []);
    assert_eq!(both("use crate::b::B;", "#[cfg(test)]\nuse crate::a::A;\nfn f() {}"), []);
    let through = [
        ("", "mod a; mod b; pub use a::deep::Thing;"),
        ("a", "mod deep;"),
        ("a::deep", "use crate::b::B; pub struct Thing;"),
        ("b", "use crate::Thing;"),
    ];
    assert_eq!(crate_of(&through), circle);
}

/// The sources of a crate by module, without its tests.
fn collect(directory: &Path, module: &[String], files: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut inner = module.to_vec();
        if !matches!(name.as_str(), "mod" | "lib" | "main") {
            inner.push(name);
        }
        if path.is_dir() {
            collect(&path, &inner, files);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            files.insert(inner, fs::read_to_string(&path).expect("a source"));
        }
    }
}

/// The tokens of a source, without comments, strings and characters.
fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or(' ');
    let (mut i, mut all) = (0, Vec::new());
    while i < chars.len() {
        let c = chars[i];
        if c == '/' && at(i + 1) == '/' {
            while i < chars.len() && chars[i] != '\n' {
                i += 1;
            }
        } else if c == '"'
            || (c == 'r' && matches!(at(i + 1), '"' | '#') && raw(&chars, i).is_some())
        {
            i = raw(&chars, i).unwrap_or_else(|| quoted(&chars, i));
        } else if c == '\'' && (at(i + 1) == '\\' || at(i + 2) == '\'') {
            // A character; a lifetime has no second quote.
            i += if at(i + 1) == '\\' { 3 } else { 2 };
            while i < chars.len() && chars[i] != '\'' && at(i - 1) != '\'' {
                i += 1;
            }
            i += 1;
        } else if c.is_alphanumeric() || c == '_' {
            let start = i;
            while i < chars.len() && (chars[i].is_alphanumeric() || chars[i] == '_') {
                i += 1;
            }
            all.push(chars[start..i].iter().collect());
        } else {
            if c == ':' && at(i + 1) == ':' {
                all.push("::".to_owned());
                i += 1;
            } else if !c.is_whitespace() {
                all.push(c.to_string());
            }
            i += 1;
        }
    }
    all
}

fn quoted(chars: &[char], start: usize) -> usize {
    let mut i = start + 1;
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    i + 1
}

/// The end of the raw string that begins here, if any.
fn raw(chars: &[char], start: usize) -> Option<usize> {
    if chars[start] != 'r' {
        return None;
    }
    let hashes = chars[start + 1..].iter().take_while(|c| **c == '#').count();
    let mut i = start + 1 + hashes;
    if chars.get(i) != Some(&'"') {
        return None;
    }
    loop {
        i += 1;
        let end = i + 1 + hashes;
        match chars.get(i)? {
            '"' if end <= chars.len() && chars[i + 1..end].iter().all(|c| *c == '#') => {
                return Some(end);
            }
            _ => {}
        }
    }
}

/// The source without test-only items, and the names of test-only modules.
fn without_tests(all: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut kept, mut tests, mut i) = (Vec::new(), Vec::new(), 0);
    let marks = ["#", "[", "cfg", "(", "test", ")", "]"];
    while i < all.len() {
        if !all[i..].iter().zip(marks).all(|(a, b)| a == b) || all.len() - i < marks.len() {
            kept.push(all[i].clone());
            i += 1;
            continue;
        }
        i += marks.len();
        let mut depth = 0;
        while let Some(token) = all.get(i) {
            if token == "mod" && depth == 0 && all.get(i + 2).is_some_and(|t| t == ";") {
                tests.push(all[i + 1].clone());
            }
            match token.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            i += 1;
            if depth == 0 && matches!(token.as_str(), "}" | ";") {
                break;
            }
        }
    }
    (kept, tests)
}

/// Paths of `use` declarations, re-exported paths, and paths in other code.
#[derive(Default)]
struct Paths {
    all: Vec<Module>,
    exported: Vec<(String, Module)>,
}

fn paths(tokens: &[String]) -> Paths {
    let mut paths = Paths::default();
    let mut i = 0;
    while i < tokens.len() {
        let token = tokens[i].as_str();
        if token == "use" {
            let end = tokens[i..].iter().position(|t| t == ";").map_or(tokens.len(), |n| i + n);
            let mut used = Vec::new();
            tree(&tokens[i + 1..end], &[], &mut used);
            if i > 0 && matches!(tokens[i - 1].as_str(), "pub" | ")") {
                paths.exported.extend(used.iter().cloned());
            }
            paths.all.extend(used.into_iter().map(|(_, path)| path));
            i = end;
        } else if matches!(token, "crate" | "super" | "self") {
            let mut path = vec![token.to_owned()];
            while tokens.get(i + 1).is_some_and(|t| t == "::") && word(tokens.get(i + 2)) {
                path.push(tokens[i + 2].clone());
                i += 2;
            }
            paths.all.push(path);
        }
        i += 1;
    }
    paths
}

fn word(token: Option<&String>) -> bool {
    token.is_some_and(|t| t.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// The paths of a `use` tree, with their local names.
fn tree(tokens: &[String], before: &[String], all: &mut Vec<(String, Module)>) {
    let (mut depth, mut start) = (0, 0);
    for end in 0..=tokens.len() {
        match tokens.get(end).map(String::as_str) {
            Some("{") => depth += 1,
            Some("}") => depth -= 1,
            Some(",") | None if depth == 0 => {
                one(&tokens[start..end], before, all);
                start = end + 1;
            }
            _ => {}
        }
    }
}

fn one(tokens: &[String], before: &[String], all: &mut Vec<(String, Module)>) {
    let mut path = before.to_vec();
    for (i, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "::" => {}
            "{" => return tree(&tokens[i + 1..tokens.len() - 1], &path, all),
            "as" => {
                let name = tokens.get(i + 1).cloned().unwrap_or_default();
                return all.push((name, path));
            }
            "self" if i > 0 || !before.is_empty() => {}
            _ => path.push(token.clone()),
        }
    }
    if let Some(name) = path.last().cloned() {
        all.push((name, path));
    }
}

/// Cycles among sibling modules: parent module and names.
fn circles(files: &BTreeMap<Module, String>) -> Vec<(String, Vec<String>)> {
    let mut sources = BTreeMap::new();
    let mut tests: BTreeSet<Module> = BTreeSet::new();
    for (module, text) in files {
        let (kept, of_tests) = without_tests(&tokens(text));
        tests.extend(of_tests.into_iter().map(|name| [&module[..], &[name]].concat()));
        sources.insert(module.clone(), paths(&kept));
    }
    sources.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
    let mut arrows: BTreeMap<Module, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (module, paths) in &sources {
        for path in &paths.all {
            let Some(to) = absolute(module, path, &sources).and_then(|p| resolve(p, &sources, 0))
            else {
                continue;
            };
            let common = module.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(a), Some(b)) = (module.get(common), to.get(common)) {
                let within = arrows.entry(module[..common].to_vec()).or_default();
                within.entry(a.clone()).or_default().insert(b.clone());
            }
        }
    }
    let mut found = Vec::new();
    for (parent, arrows) in &arrows {
        let reached: BTreeMap<&String, BTreeSet<&String>> =
            arrows.keys().map(|from| (from, reached(arrows, from))).collect();
        let mut done: BTreeSet<&String> = BTreeSet::new();
        for (from, to) in &reached {
            let back = |other: &&&String| reached.get(**other).is_some_and(|r| r.contains(from));
            let circle: Vec<String> = to.iter().filter(back).map(|m| (**m).clone()).collect();
            if to.contains(from) && done.insert(from) {
                done.extend(to.iter().filter(back));
                let parent = if parent.is_empty() { ".".to_owned() } else { parent.join("::") };
                found.push((parent, circle));
            }
        }
    }
    found
}

/// A path from the root of the crate; `None` for a path of another crate.
fn absolute(module: &Module, path: &Module, sources: &BTreeMap<Module, Paths>) -> Option<Module> {
    let first = path.first()?.as_str();
    let mut at = match first {
        "crate" => Vec::new(),
        _ => module.clone(),
    };
    let child = [&module[..], &path[..1]].concat();
    if !matches!(first, "crate" | "super" | "self") && !sources.contains_key(&child) {
        return None;
    }
    for part in path {
        match part.as_str() {
            "crate" | "self" => {}
            "super" => drop(at.pop()),
            name => at.push(name.to_owned()),
        }
    }
    Some(at)
}

/// The module a path refers to, with re-exports followed.
fn resolve(path: Module, sources: &BTreeMap<Module, Paths>, depth: usize) -> Option<Module> {
    let length = (0..=path.len()).rev().find(|n| sources.contains_key(&path[..*n]))?;
    let module = path[..length].to_vec();
    let name = path.get(length);
    let exported = sources[&module].exported.iter().find(|(as_name, _)| Some(as_name) == name);
    match exported.and_then(|(_, path)| absolute(&module, path, sources)) {
        Some(further) if depth < 5 && further != path => resolve(further, sources, depth + 1),
        _ => Some(module),
    }
}

fn reached<'a>(
    arrows: &'a BTreeMap<String, BTreeSet<String>>,
    from: &'a String,
) -> BTreeSet<&'a String> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(name) = open.pop() {
        for to in arrows.get(name).into_iter().flatten() {
            if seen.insert(to) {
                open.push(to);
            }
        }
    }
    seen
}
