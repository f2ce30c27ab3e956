//! Sibling modules of a crate must not form an import cycle, except the cycles that are listed here
//! with a reason. The test reads the sources: `use` declarations, paths that begin with `crate`,
//! `super` or `self`, and re-exports, which are followed to their origin. It does not see
//! dependencies through method calls.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ImplItemFn, Item, ItemUse, Macro, Token, UseTree, Visibility};

/// Allowed cycles: the crate, the parent module, the modules of the cycle, and the reason.
const KNOWN: &[(&str, &str, &[&str], &str)] = &[
    (
        "plimsoll-engine",
        ".",
        &["mailbox", "matrix", "work_dir"],
        "`work_dir` removes the files that the manifests of mail stores and data sets list, and \
         both use the directory that it locks",
    ),
    (
        "plimsoll-model",
        "core",
        &["sim", "trace"],
        "halves of one type: its events, and their trace",
    ),
    (
        "plimsoll-nfs",
        ".",
        &["client", "connections"],
        "halves of one type: its calls and its connections",
    ),
    (
        "plimsoll-observe",
        ".",
        &["mount", "stack"],
        "a file system is on devices, and a loop device on a file of another file system",
    ),
    (
        "plimsoll-plan",
        ".",
        &["raw", "read"],
        "the message of an unknown field names other sections that have it",
    ),
    (
        "plimsoll-runner",
        ".",
        &["custody", "experiment"],
        "loading an experiment checks its seal against the runs that it loaded",
    ),
    (
        "plimsoll-workload",
        ".",
        &["content", "stamp"],
        "a stamp is part of its block, and checking it generates the block's content again",
    ),
    (
        "plimsoll-workload",
        "mailbox",
        &["database", "maintenance", "replication"],
        "parts of one type: a database, its maintenance, its replication",
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

/// Collects the sources of a crate by module, without its tests.
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

/// Paths in the code of a module, and the names of the module's test-only modules.
#[derive(Default)]
struct Paths {
    all: Vec<Module>,
    /// Local name and path of each `pub use`.
    exported: Vec<(String, Module)>,
    tests: Vec<String>,
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test_only(item_attributes(item)) {
            return visit::visit_item(self, item);
        }
        if let Item::Mod(module) = item {
            self.tests.push(module.ident.to_string());
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_test_only(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let mut used = Vec::new();
        flatten(&item.tree, &[], &mut used);
        self.all.extend(used.iter().map(|(_, path)| path.clone()));
        if !matches!(item.vis, Visibility::Inherited) {
            self.exported.extend(used);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Module = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if matches!(names[0].as_str(), "crate" | "super" | "self") {
            self.all.push(names);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        // Most macro arguments are expressions. Arguments that are not expressions are ignored.
        if let Ok(arguments) = call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated)
        {
            arguments.iter().for_each(|argument| Paths::visit_expr_in(self, argument));
        }
    }
}

impl Paths {
    fn of(text: &str) -> Self {
        let mut paths = Self::default();
        paths.visit_file(&syn::parse_file(text).expect("a source"));
        paths
    }

    /// Visits an expression whose lifetime is shorter than that of the file.
    fn visit_expr_in(&mut self, expression: &Expr) {
        let mut within = Self::default();
        within.visit_expr(expression);
        self.all.append(&mut within.all);
    }
}

fn item_attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

/// Collects the paths of a `use` tree, with their local names.
fn flatten(tree: &UseTree, before: &[String], all: &mut Vec<(String, Module)>) {
    let with = |name: &syn::Ident| match name.to_string() {
        name if name == "self" && !before.is_empty() => before.to_vec(),
        name => [before, &[name]].concat(),
    };
    match tree {
        UseTree::Path(path) => flatten(&path.tree, &with(&path.ident), all),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, all)),
        UseTree::Rename(name) => all.push((name.rename.to_string(), with(&name.ident))),
        UseTree::Name(name) => {
            let path = with(&name.ident);
            all.extend(path.last().cloned().map(|name| (name, path)));
        }
        UseTree::Glob(_) => all.extend(before.last().map(|name| (name.clone(), before.to_vec()))),
    }
}

/// Returns cycles among sibling modules: the parent module, and the names of the modules in the
/// cycle.
fn circles(files: &BTreeMap<Module, String>) -> Vec<(String, Vec<String>)> {
    let mut sources = BTreeMap::new();
    let mut tests: BTreeSet<Module> = BTreeSet::new();
    for (module, text) in files {
        let paths = Paths::of(text);
        tests.extend(
            paths.tests.iter().map(|name| [&module[..], std::slice::from_ref(name)].concat()),
        );
        sources.insert(module.clone(), paths);
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

/// Returns the path from the root of the crate; `None` for a path in another crate.
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

/// Returns the module to which a path refers. Re-exports are followed.
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
