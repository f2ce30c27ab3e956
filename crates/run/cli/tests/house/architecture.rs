//! Checks the crate graph that cargo reports. The diagram in `ARCHITECTURE.md` must be current. No
//! crate may depend on a crate in a higher layer or in another component. No crate on the data path
//! may use an asynchronous runtime.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The page that contains the diagram.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../ARCHITECTURE.md");
const BEGIN: &str = "<!-- crates: begin -->";
const END: &str = "<!-- crates: end -->";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// Crates that all other crates may use.
    Shared,
    /// Crates that turn a plan into evidence.
    Measure,
    /// Crates that turn evidence into a report.
    Judge,
    /// Crates that connect the other components.
    Join,
}

/// All crates with their components, grouped by layer; the lowest layer is first. A crate may only
/// depend on crates in lower layers.
const FLOORS: &[&[(&str, Room)]] = &[
    &[
        ("plimsoll-lossy-disk", Room::Join),
        ("plimsoll-plan", Room::Shared),
        ("plimsoll-sys", Room::Measure),
        ("plimsoll-nfs", Room::Measure),
        ("plimsoll-s3", Room::Measure),
    ],
    &[("plimsoll-evidence", Room::Shared), ("plimsoll-workload", Room::Measure)],
    &[
        ("plimsoll-catalogue", Room::Join),
        ("plimsoll-import", Room::Judge),
        ("plimsoll-judge", Room::Judge),
        ("plimsoll-observe", Room::Measure),
        ("plimsoll-record", Room::Measure),
    ],
    &[
        ("plimsoll-engine", Room::Measure),
        ("plimsoll-model", Room::Measure),
        ("plimsoll-report", Room::Judge),
    ],
    &[("plimsoll-model-serve", Room::Join), ("plimsoll-runner", Room::Join)],
    &[
        ("plimsoll-experiments", Room::Join),
        ("plimsoll-fitting", Room::Join),
        ("plimsoll-fleet", Room::Join),
        ("plimsoll-live", Room::Join),
    ],
    &[("plimsoll-serve", Room::Join)],
    &[("plimsoll", Room::Join)],
];

/// Runtimes whose threads and timers would affect the figures.
const RUNTIMES: [&str; 6] =
    ["tokio", "async-std", "smol", "mio", "futures-executor", "async-executor"];

type Arrows = BTreeMap<String, BTreeSet<String>>;

struct Crates {
    /// Dependencies between the crates of the workspace; dependencies of tests are not included.
    arrows: Arrows,
    /// For each crate, the names of all packages in its build on this platform.
    built_with: Arrows,
}

pub fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} is a text in {value}"))
}

pub fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("{key} is a list in {value}"))
}

/// Returns cargo's metadata. This may fetch crates that no build has needed yet.
pub fn metadata() -> Value {
    let libc = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    let platform = format!("{}-unknown-linux-{libc}", std::env::consts::ARCH);
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--filter-platform"])
        .arg(&platform)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn crates() -> Crates {
    let metadata = metadata();
    let names: BTreeMap<&str, &str> = list(&metadata, "packages")
        .iter()
        .map(|package| (text(package, "id"), text(package, "name")))
        .collect();
    let mut needs: Arrows = BTreeMap::new();
    for node in list(&metadata["resolve"], "nodes") {
        let normal = list(node, "deps").iter().filter(|dependency| {
            list(dependency, "dep_kinds").iter().any(|kind| kind["kind"].is_null())
        });
        let normal = normal.map(|dependency| names[text(dependency, "pkg")].to_owned());
        needs.entry(names[text(node, "id")].to_owned()).or_default().extend(normal);
    }
    let members: BTreeSet<&str> = list(&metadata, "workspace_members")
        .iter()
        .map(|id| names[id.as_str().expect("an id")])
        .collect();
    let own = |name: &&str| {
        let to = needs[*name].iter().filter(|to| members.contains(to.as_str())).cloned();
        ((*name).to_owned(), to.collect())
    };
    Crates {
        arrows: members.iter().map(own).collect(),
        built_with: members
            .iter()
            .map(|name| ((*name).to_owned(), reached(&needs, name)))
            .collect(),
    }
}

/// Returns all crates on which a crate depends, directly or indirectly.
fn reached(arrows: &Arrows, from: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(name) = open.pop() {
        for to in arrows.get(&name).into_iter().flatten() {
            if seen.insert(to.clone()) {
                open.push(to.clone());
            }
        }
    }
    seen
}

fn place(name: &str) -> Option<(usize, Room)> {
    let find = |(floor, crates): (usize, &&[(&str, Room)])| {
        crates.iter().find(|(known, _)| *known == name).map(|(_, room)| (floor, *room))
    };
    FLOORS.iter().enumerate().find_map(find)
}

/// Returns the dependencies on crates in the same or a higher layer, or in another component.
fn wrong(arrows: &Arrows) -> Vec<String> {
    let mut wrong = Vec::new();
    for (from, all) in arrows {
        let Some((floor, room)) = place(from) else {
            wrong.push(format!("{from} has no place in FLOORS"));
            continue;
        };
        for to in all {
            match place(to) {
                Some((below, _)) if below >= floor => {
                    wrong.push(format!("{from} depends on {to}, which is not below it"));
                }
                Some((_, other))
                    if other != room && other != Room::Shared && room != Room::Join =>
                {
                    wrong.push(format!("{from} ({room:?}) depends on {to} ({other:?})"));
                }
                _ => {}
            }
        }
    }
    wrong
}

/// Returns the diagram of the crates and their dependencies. A dependency is omitted if a longer
/// path leads to the same crate.
fn picture(arrows: &Arrows) -> String {
    let mut lines = vec!["```mermaid".to_owned(), "flowchart TD".to_owned()];
    for (from, all) in arrows {
        let further: BTreeSet<String> = all.iter().flat_map(|to| reached(arrows, to)).collect();
        for to in all.difference(&further) {
            lines.push(format!("    {from} --> {to}"));
        }
    }
    lines.push("```".to_owned());
    lines.join("\n")
}

/// Limit for the lines of code of a command file. Comments (which are also the help texts), empty
/// lines and tests do not count. A command file only parses arguments, calls other code and prints.
const COMMAND_LINES_MAX: usize = 105;

/// Command files that may exceed this limit, with their own limit and the reason.
const LONGER_COMMANDS: &[(&str, usize, &str)] = &[
    (
        "plan_changes.rs",
        125,
        "the flags that name paths and change fields, and the plan that results",
    ),
    (
        "load_flags.rs",
        285,
        "the flags of a load in four commands, in Plimsoll's words and in fio's",
    ),
    ("compare/plan_flags.rs", 135, "the flags of a comparison that is run, and its plan"),
    ("k8s.rs", 140, "the flags of the generator, and the plan on the volume"),
];

/// Adds each file in a source directory to `all`, with its relative path and the number of its lines
/// of code.
fn lengths(directory: &Path, below: &str, all: &mut BTreeMap<String, usize>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        if path.is_dir() {
            lengths(&path, &format!("{below}{name}/"), all);
        } else {
            let text = fs::read_to_string(&path).expect("a source");
            let before_tests = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
            let code =
                before_tests.map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("//"));
            let lines = code.count();
            all.insert(format!("{below}{name}"), lines);
        }
    }
}

#[test]
fn a_command_parses_calls_and_prints() {
    let mut all = BTreeMap::new();
    let commands = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands");
    lengths(Path::new(commands), "", &mut all);
    assert!(all.contains_key("run.rs") && all.contains_key("run/stages.rs"), "{all:?}");
    for (file, lines) in &all {
        let longer = LONGER_COMMANDS.iter().find(|(name, ..)| name == file);
        let most = longer.map_or(COMMAND_LINES_MAX, |(_, most, _)| *most);
        assert!(
            *lines <= most,
            "commands/{file} has {lines} lines of code; the limit is {most}: move the work to \
             plimsoll-runner and the rendering to plimsoll-report"
        );
    }
    for (file, _, why) in LONGER_COMMANDS {
        let lines = all.get(*file).copied().unwrap_or(0);
        assert!(lines > COMMAND_LINES_MAX, "{file} no longer exceeds the limit ({why})");
    }
}

#[test]
fn the_picture_is_that_of_today() {
    let page = fs::read_to_string(PAGE).expect("ARCHITECTURE.md");
    let (before, rest) = page.split_once(BEGIN).expect("the mark where the picture begins");
    let (drawn, after) = rest.split_once(END).expect("the mark where it ends");
    let today = picture(&crates().arrows);
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        fs::write(PAGE, format!("{before}{BEGIN}\n{today}\n{END}{after}")).expect("written");
        return;
    }
    assert_eq!(
        drawn.trim(),
        today,
        "run: PLIMSOLL_BLESS=1 cargo test -p plimsoll --test house architecture::"
    );
}

#[test]
fn arrows_go_down_and_stay_in_their_room() {
    let arrows = crates().arrows;
    assert_eq!(wrong(&arrows), Vec::<String>::new());
    let known: usize = FLOORS.iter().map(|crates| crates.len()).sum();
    assert_eq!(known, arrows.len(), "FLOORS names a crate that is gone");
}

#[test]
fn an_arrow_up_or_into_another_room_is_found() {
    let arrows = |from: &str, to: &str| -> Arrows {
        [(from.to_owned(), [to.to_owned()].into())].into_iter().collect()
    };
    assert!(wrong(&arrows("plimsoll-model", "plimsoll-record")).is_empty());
    assert_eq!(wrong(&arrows("plimsoll-record", "plimsoll-engine")).len(), 1, "up");
    assert_eq!(wrong(&arrows("plimsoll-model", "plimsoll-engine")).len(), 1, "along");
    assert_eq!(wrong(&arrows("plimsoll-report", "plimsoll-observe")).len(), 1, "another room");
    assert_eq!(wrong(&arrows("plimsoll-unheard-of", "plimsoll-plan")).len(), 1, "no place");
}

#[test]
fn nothing_on_the_data_path_knows_an_asynchronous_runtime() {
    let built_with = crates().built_with;
    let runtimes = |name: &str| -> Vec<&str> {
        RUNTIMES.into_iter().filter(|runtime| built_with[name].contains(*runtime)).collect()
    };
    for (name, room) in FLOORS.iter().copied().flatten() {
        if *room == Room::Measure {
            assert_eq!(runtimes(name), Vec::<&str>::new(), "{name}");
        }
    }
    // One crate does depend on a runtime, which proves that the check works.
    assert!(!runtimes("plimsoll-model-serve").is_empty());
}
