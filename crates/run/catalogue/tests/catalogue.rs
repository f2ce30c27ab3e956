//! Tests the catalogue on bundles of earlier versions: lists, lookups, and rebuilding of the index.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_catalogue::{Catalogue, CatalogueError, Filter, Labels, Lookup, Roots, fleet_runs};
use plimsoll_evidence::ledger::{CachedLedger, DerivedHashes, Event, Ledger, Start};
use plimsoll_evidence::seal;
use serde_json::{Value, json};

struct Place {
    root: tempfile::TempDir,
    roots: Roots,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let roots = Roots {
            directories: vec![at("runs"), at("elsewhere")],
            ledger: at("state/ledger.jsonl"),
            index: at("cache/catalogue.sqlite3"),
            is_shared: false,
        };
        roots.directories.iter().for_each(|directory| fs::create_dir(directory).unwrap());
        fs::create_dir(at("state")).unwrap();
        Self { root, roots }
    }

    /// Copies a bundle of an earlier version under a new name. If `known` is true, records its run
    /// in the ledger.
    fn bundle(&self, within: &str, id: &str, plan: &str, second: u64, known: bool) -> PathBuf {
        let from =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/fixtures/earlier/rules-9");
        let to = self.root.path().join(within).join(id);
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
        let mut run: Value =
            serde_json::from_slice(&fs::read(to.join("run.json")).unwrap()).unwrap();
        run["run_id"] = json!(id);
        run["name"] = json!(plan);
        run["started_unix_ns"] = json!(second * 1_000_000_000);
        fs::write(to.join("run.json"), run.to_string()).unwrap();
        if known {
            let start = Start {
                run_id: id,
                name: plan,
                plan_sha256: "00",
                unix_ns: second * 1_000_000_000,
                experiment: None,
                question: None,
                known: &[],
            };
            Ledger::at(&self.roots.ledger).start(&start).unwrap();
        }
        to
    }

    /// Seals a bundle and records the end of its run.
    fn finish(&self, bundle: &Path) {
        let seal = seal::seal(bundle).unwrap();
        let id = bundle.file_name().unwrap().to_str().unwrap();
        let ledger = Ledger::at(&self.roots.ledger);
        ledger.end(id, 99, "completed", "PASS", &seal, Some(derived(bundle))).unwrap();
    }

    fn open(&self) -> Catalogue {
        Catalogue::open(&self.roots).unwrap()
    }

    fn ids(&self, filter: &Filter) -> Vec<String> {
        self.open().runs(filter).unwrap().into_iter().map(|run| run.run_id).collect()
    }
}

fn derived(bundle: &Path) -> DerivedHashes {
    let verdict = fs::read(bundle.join("verdict.json")).unwrap();
    // The fixtures have no report.
    DerivedHashes { verdict_sha256: seal::sha256_hex(&verdict), report_sha256: String::new() }
}

fn edit(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

/// Anyone who can write to a bundle can change its verdict, so lists show the verdict in the
/// ledger.
#[test]
fn verdicts_come_from_the_ledger() {
    let place = Place::new();
    let bundle = place.bundle("runs", "r1", "a", 10, true);
    place.finish(&bundle);
    let first = || place.open().runs(&Filter::default()).unwrap().remove(0);
    let honest = first();
    assert_eq!((honest.verdict_label().as_str(), &honest.doubt), ("MODELLED PASS", &None));
    let unchanged = fs::read(bundle.join("verdict.json")).unwrap();
    edit(&bundle.join("verdict.json"), |said| {
        said["verdict"] = json!("FAIL");
        said["achieved_iops_per_s"] = json!(1e9);
        said["reason"] = json!("it was measured");
    });
    let edited = first();
    assert_eq!(edited.verdict_label(), "MODELLED PASS", "the ledger's; run.json names the model");
    assert_eq!((edited.achieved_iops_per_s, edited.headroom), (None, None));
    assert!(edited.remarks().join("; ").contains("verdict.json differs from the ledger"));
    assert_eq!(edited.read_latency_ns_avg, honest.read_latency_ns_avg, "still sealed");
    // `plimsoll judge` rewrites the file and records its hash in the ledger.
    let verdict = "INCONCLUSIVE".to_owned();
    let judged = Event::Judged { verdict, derived: derived(&bundle) };
    Ledger::at(&place.roots.ledger).enter("r1", 11, judged).unwrap();
    let judged = first();
    assert_eq!((judged.verdict_label().as_str(), judged.doubt), ("MODELLED INCONCLUSIVE", None));
    assert_eq!(judged.achieved_iops_per_s, Some(1e9));
    // The ledger now has the hashes of two versions of the file. The first version is restored, and
    // is still accepted.
    fs::write(bundle.join("verdict.json"), unchanged).unwrap();
    assert_eq!(first().doubt, None);
    // Changes of the files that describe the host and the target are also detected.
    for name in ["environment.json", "resolved.toml"] {
        let (file, verdict) = (bundle.join(name), bundle.join("verdict.json"));
        let sealed = fs::read(&file).unwrap();
        fs::write(&file, [&sealed[..], b"\n"].concat()).unwrap();
        // The index reads a bundle again when its `verdict.json` is newer.
        fs::write(&verdict, fs::read(&verdict).unwrap()).unwrap();
        assert_eq!(first().verdict.as_deref(), Some("UNVERIFIED"), "{name}");
        fs::write(&file, sealed).unwrap();
        fs::write(&verdict, fs::read(&verdict).unwrap()).unwrap();
        assert_eq!(first().doubt, None);
    }
    edit(&bundle.join("run.json"), |run| run["started_unix_ns"] = json!(5));
    let edited = first();
    assert_eq!(edited.verdict.as_deref(), Some("UNVERIFIED"));
    assert_eq!((edited.read_latency_ns_avg, edited.measured_ns), (None, None));
    // A new seal does not help, because the ledger has the original seal.
    seal::seal(&bundle).unwrap();
    assert_eq!(first().verdict.as_deref(), Some("UNVERIFIED"));
    fs::remove_file(bundle.join(seal::FILE)).unwrap();
    assert_eq!(first().verdict.as_deref(), Some("UNVERIFIED"));
}

#[test]
fn a_run_that_the_ledger_lacks_is_unverified() {
    let place = Place::new();
    place.bundle("runs", "r1", "a", 10, false);
    let run = place.open().runs(&Filter::default()).unwrap().remove(0);
    assert_eq!(run.verdict_label(), "UNVERIFIED (MODELLED PASS)");
    let of = |verdict: &str| {
        place.ids(&Filter { verdict: Some(verdict.to_owned()), ..Filter::default() }).len()
    };
    assert_eq!((of("pass"), of("unverified")), (0, 1));
    // A second end of the same run in the ledger contradicts the first end.
    let second = place.bundle("runs", "r2", "b", 20, true);
    place.finish(&second);
    let ledger = Ledger::at(&place.roots.ledger);
    let seal = seal::sha256_hex(&fs::read(second.join(seal::FILE)).unwrap());
    assert_eq!(of("pass"), 1);
    ledger.end("r2", 21, "completed", "PASS", &seal, None).unwrap();
    assert_eq!(of("pass"), 0);
}

#[test]
fn a_run_without_a_bundle_states_why() {
    let place = Place::new();
    let why = |id: &str| match place.open().find(id).unwrap() {
        Lookup::Removed(entry) => (entry.missing_bundle(), entry.remarks().join("; ")),
        found => panic!("{found:?}"),
    };
    for (number, id) in ["refused", "ended", "fleet", "killed"].into_iter().enumerate() {
        fs::remove_dir_all(place.bundle("runs", id, id, number as u64, true)).unwrap();
    }
    let ledger = Ledger::at(&place.roots.ledger);
    ledger.end("refused", 99, "refused", "none", "", None).unwrap();
    ledger.end("ended", 99, "completed", "PASS", "", None).unwrap();
    let (refused, _) = why("refused");
    assert!(refused.contains("refused the plan") && !refused.contains("removed"), "{refused}");
    assert!(why("ended").0.ends_with("was removed"));
    assert!(why("killed").0.contains("did not finish"));
    // The coordinator of a fleet run writes the record and holds the lock.
    let state = place.roots.ledger.parent().unwrap();
    let (record, lock) =
        (fleet_runs::record_path(state, "fleet"), fleet_runs::lock_path(state, "fleet"));
    for file in [&record, &lock] {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }
    let held = fs::File::open(&lock).unwrap();
    held.try_lock().unwrap();
    let (missing, remarks) = why("fleet");
    assert!(missing.contains("it is running") && remarks.contains("running"), "{missing}");
    drop(held);
    for says in [why("fleet").0, why("fleet").1] {
        assert!(says.contains("`plimsoll run --resume fleet --fleet FLEET`"), "{says}");
    }
}

/// If a file is missing, the bundle is listed as damaged. An earlier version listed it as removed.
#[test]
fn a_damaged_bundle_is_called_damaged() {
    let place = Place::new();
    let bundle = place.bundle("runs", "r1", "a", 10, true);
    place.finish(&bundle);
    let damages: [&dyn Fn(); 2] = [&|| fs::write(bundle.join("run.json"), "{").unwrap(), &|| {
        fs::remove_file(bundle.join("run.json")).unwrap()
    }];
    for damage in damages {
        damage();
        let run = place.open().runs(&Filter::default()).unwrap().remove(0);
        let remarks = run.remarks().join("; ");
        assert!(remarks.contains("damaged") && !remarks.contains("removed"), "{remarks}");
        assert_eq!(place.open().find("r1").unwrap(), Lookup::Local(bundle.clone()));
    }
}

#[test]
fn runs_are_found_by_number_name_prefix_and_plan() {
    let place = Place::new();
    let first = place.bundle("runs", "20261101-a-1111", "a", 10, true);
    let second = place.bundle("elsewhere", "20261102-b-2222", "b", 20, true);
    let together = place.root.path().join("runs/20261103-c-3333");
    let third = place.bundle("runs/20261103-c-3333", "20261103-c-3333-01", "c", 30, true);
    fs::write(together.join("experiment.json"), "{}").unwrap();
    let catalogue = place.open();
    let at = |called: &str| catalogue.find(called).unwrap();
    for (called, directory) in [
        ("last", &third),
        ("1", &first),
        ("2", &second),
        ("20261102-b-2222", &second),
        ("20261101", &first),
        ("b", &second),
        ("20261103", &together),
        ("20261103-c-3333-01", &third),
    ] {
        assert_eq!(at(called), Lookup::Local(directory.clone()), "{called}");
    }
    assert_eq!(at("9"), Lookup::Missing);
    assert_eq!(at("2026110%"), Lookup::Missing, "a wildcard is a letter like any other");
    let several = catalogue.find("202611").unwrap_err();
    assert!(
        matches!(&several, CatalogueError::Name(says) if says.contains("20261102-b-2222")),
        "{several}"
    );
    fs::remove_dir_all(&first).unwrap();
    assert!(matches!(place.open().find("1").unwrap(), Lookup::Removed(entry) if entry.name == "a"));
}

#[test]
fn runs_are_filtered_by_verdict_plan_day_and_tag() {
    let place = Place::new();
    let first = place.bundle("runs", "r1", "mail_light", 10, true);
    let second = place.bundle("runs", "r2", "mailXheavy", 20, true);
    place.finish(&second);
    place.bundle("elsewhere", "r3", "database", 30, false);
    let labels = Labels { tags: ["before".to_owned()].into(), note: "old firmware".to_owned() };
    labels.write(&first).unwrap();
    let all = place.open().runs(&Filter::default()).unwrap();
    assert_eq!(all.iter().map(|run| run.position).collect::<Vec<_>>(), [Some(1), Some(2), None]);
    assert!(all[0].achieved_iops_per_s.is_some() && all[0].read_latency_ns_avg.is_some());
    let of = |filter: Filter| place.ids(&filter);
    assert_eq!(of(Filter { plan: Some("mail_".into()), ..Filter::default() }), ["r1"]);
    assert_eq!(of(Filter { verdict: Some("pass".into()), ..Filter::default() }), ["r2"]);
    assert!(of(Filter { verdict: Some("fail".into()), ..Filter::default() }).is_empty());
    assert_eq!(of(Filter { tag: Some("before".into()), ..Filter::default() }), ["r1"]);
    let since = Filter { since_unix_ns: Some(20_000_000_000), ..Filter::default() };
    assert_eq!(of(since), ["r2", "r3"]);
    let until = Filter { until_unix_ns: Some(20_000_000_000), ..Filter::default() };
    assert_eq!(of(until), ["r1"]);
    assert_eq!(of(Filter { limit: Some(2), ..Filter::default() }), ["r2", "r3"]);
}

#[test]
fn a_rebuilt_index_has_the_same_runs() {
    let place = Place::new();
    let first = place.bundle("runs", "r1", "a", 10, true);
    place.bundle("runs", "r2", "b", 20, true);
    let labels = Labels { tags: ["kept".to_owned()].into(), note: "a note".to_owned() };
    labels.write(&first).unwrap();
    let before = place.open().runs(&Filter::default()).unwrap();
    assert_eq!((before[0].tags.contains("kept"), before[0].note.as_str()), (true, "a note"));
    let index = &place.roots.index;
    fs::remove_file(index).unwrap();
    assert_eq!(place.open().runs(&Filter::default()).unwrap(), before);
    // The index file is replaced, first by text that is no database, and then by a damaged
    // database.
    fs::write(index, "no database at all, and long enough to be taken for a page of one").unwrap();
    assert_eq!(place.open().runs(&Filter::default()).unwrap(), before);
    let mut bytes = fs::read(index).unwrap();
    let at = bytes.len() / 2;
    bytes[4096..at.max(4097)].fill(0xff);
    fs::write(index, bytes).unwrap();
    assert_eq!(place.open().runs(&Filter::default()).unwrap(), before);
    // If the index file cannot be written, the index is kept in memory.
    fs::remove_file(index).unwrap();
    fs::create_dir(index).unwrap();
    fs::write(index.join("in the way"), "").unwrap();
    assert_eq!(place.open().runs(&Filter::default()).unwrap(), before);
}

#[test]
fn changes_on_disk_are_listed_at_once() {
    let place = Place::new();
    let first = place.bundle("runs", "r1", "a", 10, true);
    place.finish(&first);
    assert_eq!(place.ids(&Filter::default()), ["r1"]);
    place.bundle("runs", "r2", "b", 20, false);
    assert_eq!(place.ids(&Filter::default()), ["r1", "r2"]);
    edit(&first.join("verdict.json"), |said| said["reason"] = json!("another"));
    assert!(place.open().runs(&Filter::default()).unwrap()[0].doubt.is_some());
    Labels { note: "odd".to_owned(), ..Labels::default() }.write(&first).unwrap();
    assert_eq!(place.open().runs(&Filter::default()).unwrap()[0].note, "odd");
    fs::remove_dir_all(place.root.path().join("runs/r2")).unwrap();
    assert_eq!(place.ids(&Filter::default()), ["r1"]);
    // The bundle of the first run is removed, but the run is still in the ledger.
    fs::remove_dir_all(&first).unwrap();
    let left = place.open().runs(&Filter::default()).unwrap();
    assert_eq!((left.len(), &left[0].bundle), (1, &None));
    let there = Filter { with_bundle: true, ..Filter::default() };
    assert!(place.ids(&there).is_empty());
}

#[test]
fn the_catalogue_is_current_until_a_run_or_label_changes() {
    let place = Place::new();
    let first = place.bundle("runs", "r1", "mail", 1, true);
    // Waits until the catalogue is current. After a very recent change, the modification time of a
    // directory cannot show whether another change followed.
    let settled = || loop {
        let catalogue = place.open();
        if catalogue.is_current(&place.roots) {
            return catalogue;
        }
    };
    let changes: [&dyn Fn(); 4] = [
        &|| drop(place.bundle("elsewhere", "r2", "mail", 2, false)),
        &|| drop(place.bundle("runs", "r3", "mail", 3, true)),
        &|| Labels { note: "odd".to_owned(), ..Labels::default() }.write(&first).unwrap(),
        &|| fs::remove_dir_all(&first).unwrap(),
    ];
    for change in changes {
        let catalogue = settled();
        assert!(catalogue.is_current(&place.roots), "nothing has changed");
        change();
        assert!(!catalogue.is_current(&place.roots));
    }
    let moved = Roots { ledger: place.root.path().join("other"), ..place.roots.clone() };
    assert!(!settled().is_current(&moved));
}

/// A server caches the ledger. It must list the same runs as a process that reads the whole ledger.
#[test]
fn a_cached_ledger_gives_the_same_runs() {
    let place = Place::new();
    let (first, second) =
        (place.bundle("runs", "r1", "mail", 1, true), place.bundle("runs", "r2", "mail", 2, true));
    let kept = CachedLedger::new(Ledger::at(&place.roots.ledger));
    let ended = |run: &str| {
        Ledger::at(&place.roots.ledger).end(run, 9, "completed", "PASS", "seal", None).unwrap();
    };
    let changes: [&dyn Fn(); 5] = [
        &|| {},
        &|| drop(place.bundle("runs", "r3", "web", 3, true)),
        &|| fs::remove_dir_all(&first).unwrap(),
        &|| ended("r1"),
        &|| fs::remove_dir_all(&second).unwrap(),
    ];
    for change in changes {
        change();
        let again = Catalogue::open_with(&place.roots, &kept).unwrap();
        let anew = Roots { index: place.root.path().join("anew.sqlite3"), ..place.roots.clone() };
        let runs = again.runs(&Filter::default()).unwrap();
        assert_eq!(runs, Catalogue::open(&anew).unwrap().runs(&Filter::default()).unwrap());
        fs::remove_file(&anew.index).unwrap();
    }
    let text = fs::read_to_string(&place.roots.ledger).unwrap();
    fs::write(&place.roots.ledger, text.replacen("\"mail\"", "\"nail\"", 1)).unwrap();
    assert!(Catalogue::open_with(&place.roots, &kept).is_err(), "a line was changed");
}

/// The entry of a run without a bundle is built from the ledger, and changes when the ledger
/// changes.
#[test]
fn a_run_without_a_bundle_follows_the_ledger_and_is_indexed_once() {
    let place = Place::new();
    fs::remove_dir_all(place.bundle("runs", "r1", "mail", 1, true)).unwrap();
    let of = || place.open().runs(&Filter::default()).unwrap().remove(0);
    assert_eq!((of().name.as_str(), of().end), ("mail", None));
    Ledger::at(&place.roots.ledger).end("r1", 9, "failed", "INVALID", "seal", None).unwrap();
    assert_eq!((of().end.as_deref(), of().verdict.as_deref()), (Some("failed"), Some("INVALID")));
    let index = fs::read(&place.roots.index).unwrap();
    assert_eq!(of().name, "mail");
    assert!(fs::read(&place.roots.index).unwrap() == index, "nothing had to be written");
    // A new ledger has a run with the same id in the same line.
    fs::remove_dir_all(place.roots.ledger.parent().unwrap()).unwrap();
    let start = Start { run_id: "r1", name: "web", plan_sha256: "00", ..Start::default() };
    Ledger::at(&place.roots.ledger).start(&start).unwrap();
    assert_eq!((of().name.as_str(), of().end), ("web", None));
}

#[test]
fn processes_that_create_the_index_at_once_share_one() {
    use std::os::unix::fs::MetadataExt;
    let place = Place::new();
    for run in 0..20 {
        place.bundle("runs", &format!("r{run:02}"), "a", run, false);
    }
    let index = &place.roots.index;
    for _ in 0..10 {
        fs::remove_file(index).ok();
        let start = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            let open = || {
                start.wait();
                let catalogue = Catalogue::open(&place.roots).unwrap();
                // The inode shows that no process deleted an index that another process had opened.
                (
                    fs::metadata(index).unwrap().ino(),
                    catalogue.runs(&Filter::default()).unwrap().len(),
                )
            };
            let all: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            let all: Vec<_> = all.into_iter().map(|one| one.join().unwrap()).collect();
            assert!(all.iter().all(|one| *one == (all[0].0, 20)), "{all:?}");
        });
    }
}
