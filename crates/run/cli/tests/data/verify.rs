//! Tests of `plimsoll verify`, which reports damage page by page.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::support::{self, LoopFs, Sandbox, SmallPlan};

const PAGE: u64 = 32 << 10;

/// A store that a run kept because of `--keep`, with the path of its first database.
fn kept(sandbox: &Sandbox) -> PathBuf {
    let plan = sandbox.plan(&SmallPlan::on(&sandbox.data()));
    let ran = sandbox.run(&["run", &plan, "--keep", "-q"]);
    assert!([0, 1, 3].contains(&ran.code), "{}{}", ran.stdout, ran.stderr);
    sandbox.data().join("plimsoll-small/db00.edb")
}

fn read_page(path: &PathBuf, page: u64) -> Vec<u8> {
    let mut bytes = vec![0; PAGE as usize];
    std::fs::File::open(path).unwrap().read_exact_at(&mut bytes, page * PAGE).unwrap();
    bytes
}

fn write_page(path: &PathBuf, page: u64, bytes: &[u8]) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.write_all_at(bytes, page * PAGE).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn each_kind_of_damage_is_named_with_database_and_page() {
    let sandbox = Sandbox::new();
    let database = kept(&sandbox);
    let store = sandbox.data().display().to_string();
    sandbox.run(&["verify", &store, "-q"]).expect(0).says("INTACT");

    let good = read_page(&database, 5);
    let mut flipped = good.clone();
    flipped[10_000] ^= 0x10;
    write_page(&database, 5, &flipped);
    let ran = sandbox.run(&["verify", &store, "-q"]).expect(4);
    ran.says("database 0, page 5: corrupt");
    let json = sandbox.run(&["verify", &store, "-q", "--json"]).expect(4).json();
    assert_eq!(json["intact"], false);
    assert_eq!(json["damage"][0]["target"], "db0");
    assert_eq!(json["damage"][0]["page"], 5);
    assert_eq!(json["damage"][0]["kind"], "corrupt");
    write_page(&database, 5, &good);

    let (left, right) = (read_page(&database, 8), read_page(&database, 9));
    write_page(&database, 8, &right);
    write_page(&database, 9, &left);
    let ran = sandbox.run(&["verify", &store, "-q"]).expect(4);
    ran.says("database 0, page 8: misdirected");
    ran.says("database 0, page 9: misdirected");
    write_page(&database, 8, &left);
    write_page(&database, 9, &right);

    write_page(&database, 3, &vec![0; PAGE as usize]);
    sandbox.run(&["verify", &store, "-q"]).expect(4).says("database 0, page 3: unwritten");
}

#[test]
fn an_older_version_of_a_page_is_stale_and_not_corrupt() {
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    plan.databases = 1;
    plan.measure = "6s".into();
    let path = sandbox.plan(&plan);
    let mut child = sandbox.start(&["run", &path, "--keep", "-q"]);
    let database = sandbox.data().join("plimsoll-small/db00.edb");
    // Contents of the pages early in the load.
    let manifest = sandbox.data().join("plimsoll-small/store.json");
    support::wait_until("the load", || {
        std::fs::read_to_string(&manifest).is_ok_and(|text| text.contains("in-use"))
    });
    let early: Vec<Vec<u8>> = (0..200).map(|page| read_page(&database, page)).collect();
    child.wait().unwrap();
    let store = sandbox.data().display().to_string();
    sandbox.run(&["verify", &store, "-q"]).expect(0);
    // The header contains the generation. Choose the page that was written last.
    let generation = |bytes: &[u8]| plimsoll_generation(bytes);
    let (page, _) = early
        .iter()
        .enumerate()
        .map(|(page, old)| {
            let now = read_page(&database, page as u64);
            (page, generation(&now).saturating_sub(generation(old)))
        })
        .max_by_key(|(_, newer)| *newer)
        .filter(|(_, newer)| *newer >= 2)
        .expect("a page that was written twice since");
    write_page(&database, page as u64, &early[page]);
    let ran = sandbox.run(&["verify", &store, "-q"]).expect(4);
    ran.says(&format!("database 0, page {page}: stale"));
    assert!(!ran.stdout.contains("corrupt"), "{}", ran.stdout);
}

fn plimsoll_generation(bytes: &[u8]) -> u32 {
    // The trailer of the first sector contains the low 16 bits of the generation.
    u32::from(u16::from_le_bytes([bytes[508], bytes[509]]))
}

#[test]
fn a_seal_is_checked_too() {
    let sandbox = Sandbox::new();
    kept(&sandbox);
    let bundle = sandbox.bundle();
    let path = bundle.to_str().unwrap();
    sandbox.run(&["verify", path]).expect(0).says("unchanged since its run");
    let run = bundle.join("run.json");
    let text = std::fs::read_to_string(&run).unwrap();
    std::fs::write(&run, text.replace("\"errors\": 0", "\"errors\":  0")).unwrap();
    sandbox.run(&["verify", path]).expect(3).says("run.json was changed");
    sandbox.run(&["judge", path]).expect(3).says("run.json was changed");
}

#[test]
fn where_there_is_no_store_it_says_so() {
    let sandbox = Sandbox::new();
    let data = sandbox.data().display().to_string();
    sandbox.run(&["verify", &data]).expect(2).says("there is no mail store at");
    sandbox.run(&["verify", "/no/such/place"]).expect(2).says("/no/such/place");
}

/// Copies a store with its manifest, like a backup.
fn copied(sandbox: &Sandbox, to: &str) -> PathBuf {
    let to = sandbox.path(to);
    std::fs::create_dir(&to).unwrap();
    let from = sandbox.data().join("plimsoll-small");
    support::tool("cp", &["-a", from.to_str().unwrap(), to.to_str().unwrap()]);
    to
}

fn shorten(path: &std::path::Path, bytes: u64) {
    std::fs::File::options().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

#[test]
fn a_copy_is_read_itself_and_never_the_store_that_it_was_made_from() {
    let sandbox = Sandbox::new();
    kept(&sandbox);
    let copy = copied(&sandbox, "restored");
    let path = copy.to_str().unwrap();
    // The store was closed cleanly, and its maps were written then. They can therefore prove the
    // content of the copy.
    sandbox.run(&["verify", path, "-q"]).expect(0).says("INTACT");
    let own = copy.join("plimsoll-small");
    std::fs::remove_file(own.join("db01.edb")).unwrap();
    let first = own.join("db00.edb");
    std::fs::write(&first, vec![0; std::fs::metadata(&first).unwrap().len() as usize]).unwrap();
    let ran = sandbox.run(&["verify", path, "-q"]).expect(4);
    ran.says(&format!("database 1: missing ({})", own.join("db01.edb").display()));
    ran.says("database 0, page 0: unwritten");
    ran.says(&format!("({} at byte 0)", first.display()));
    let original = sandbox.data().display().to_string();
    sandbox.run(&["verify", &original, "-q"]).expect(0).says("INTACT");
}

#[test]
fn files_that_are_missing_or_end_early_are_damage() {
    let sandbox = Sandbox::new();
    let database = kept(&sandbox);
    let store = sandbox.data().display().to_string();
    let own = sandbox.data().join("plimsoll-small");
    let whole = std::fs::read(&database).unwrap();
    shorten(&database, 5 * PAGE + 100);
    let ran = sandbox.run(&["verify", &store, "-q"]).expect(4);
    ran.says(&format!("truncated: {} of {} bytes", 5 * PAGE + 100, whole.len()));
    ran.says(database.to_str().unwrap());
    std::fs::write(&database, &whole).unwrap();
    let log = own.join("db01-log/0002.log");
    let bytes = std::fs::read(&log).unwrap();
    shorten(&log, 4096);
    let found = sandbox.run(&["verify", &store, "-q", "--json"]).expect(4).json();
    assert_eq!(found["damage"][0]["kind"], "truncated");
    assert_eq!(found["damage"][0]["target"], "db1");
    std::fs::remove_file(&log).unwrap();
    let ran = sandbox.run(&["verify", &store, "-q"]).expect(4);
    ran.says(&format!("database 1: missing ({})", log.display()));
    std::fs::write(&log, bytes).unwrap();
    sandbox.run(&["verify", &store, "-q"]).expect(0).says("INTACT");
    // All data of the store is missing.
    std::fs::remove_file(&database).unwrap();
    std::fs::remove_dir_all(own.join("db01-log")).unwrap();
    sandbox.run(&["verify", &store, "-q"]).expect(4);
}

#[test]
fn a_log_block_that_is_not_the_one_acknowledged_is_named() {
    let sandbox = Sandbox::new();
    kept(&sandbox);
    let store = sandbox.data().display().to_string();
    let log = sandbox.data().join("plimsoll-small/db00-log/0001.log");
    let file = std::fs::File::options().read(true).write(true).open(&log).unwrap();
    let mut block = vec![0; 4096];
    file.read_exact_at(&mut block, 8 * 4096).unwrap();
    block[2000] ^= 1;
    file.write_all_at(&block, 8 * 4096).unwrap();
    let ran = sandbox.run(&["verify", &store, "-q"]).expect(4);
    ran.says("corrupt: the log block's checksum is wrong");
    ran.says(&format!("({} at byte {})", log.display(), 8 * 4096));
}

#[test]
fn a_store_on_a_file_system_that_is_mounted_read_only_is_checked() {
    let sandbox = Sandbox::new();
    let fs = LoopFs::new(sandbox.root.path(), "ext4", 256, "noatime");
    let plan = sandbox.plan(&SmallPlan::on(&fs.mount));
    sandbox.run(&["run", &plan, "--keep", "-q"]);
    let mount = fs.mount.to_str().unwrap();
    support::tool("mount", &["-o", "remount,ro", mount]);
    sandbox.run(&["verify", mount, "-q"]).expect(0).says("INTACT");
}

/// Changes the store's manifest.
fn changed(manifest: &std::path::Path, change: impl Fn(&mut serde_json::Value)) {
    let mut value = support::json(manifest);
    change(&mut value);
    std::fs::write(manifest, value.to_string()).unwrap();
}

#[test]
fn a_hostile_manifest_creates_and_grows_nothing() {
    let sandbox = Sandbox::new();
    let database = kept(&sandbox);
    let own = database.parent().unwrap().to_path_buf();
    let victim = sandbox.path("victim");
    std::fs::create_dir(&victim).unwrap();
    std::fs::write(victim.join("db00.durable"), "mine").unwrap();
    let store = sandbox.data().display().to_string();
    let manifest = own.join("store.json");
    let good = std::fs::read(&manifest).unwrap();
    let victim_text = victim.display().to_string();
    // Maps in another user's directory are neither created nor extended. Without maps, nothing is
    // reported as damaged.
    changed(&manifest, |m| m["marks"] = victim_text.as_str().into());
    sandbox
        .run(&["verify", &store, "-q"])
        .expect(3)
        .says("are possibly not the latest acknowledged version");
    assert_eq!(support::names(&victim), ["db00.durable"]);
    assert_eq!(std::fs::read(victim.join("db00.durable")).unwrap(), b"mine");
    let refused: [&dyn Fn(&mut serde_json::Value); 6] = [
        &|m: &mut serde_json::Value| m["mailbox"]["databases"] = 4_000_000_000u64.into(),
        &|m: &mut serde_json::Value| m["mailbox"]["log_files"] = 4_000_000_000u64.into(),
        &|m: &mut serde_json::Value| m["mailbox"]["page_size_bytes"] = 0.into(),
        &|m: &mut serde_json::Value| {
            m["mailbox"]["database_capacity_bytes"] = (u64::MAX / 2).into()
        },
        &|m: &mut serde_json::Value| m["database_directories"] = 9.into(),
        &|m: &mut serde_json::Value| m["directories"] = serde_json::json!([]),
    ];
    for change in refused {
        std::fs::write(&manifest, &good).unwrap();
        changed(&manifest, change);
        sandbox.run(&["verify", &store, "-q"]).expect(2);
    }
    std::fs::remove_file(&manifest).unwrap();
    support::tool("mkfifo", &[manifest.to_str().unwrap()]);
    sandbox.run(&["verify", &store, "-q"]).expect(2).says("a pipe");
    std::fs::remove_file(&manifest).unwrap();
    std::fs::write(&manifest, &good).unwrap();
    // The database is a symbolic link to a file outside the store.
    std::fs::rename(&database, victim.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(victim.join("elsewhere"), &database).unwrap();
    sandbox.run(&["verify", &store, "-q"]).expect(2).says("it is a link");
}

#[test]
fn a_copy_of_one_of_several_parts_is_refused() {
    let sandbox = Sandbox::new();
    let (left, right) = (sandbox.path("left"), sandbox.path("right"));
    for directory in [&left, &right] {
        std::fs::create_dir(directory).unwrap();
    }
    let mut plan = SmallPlan::on(&left);
    plan.target = format!("databases = [{left:?}]\nlogs = [{right:?}]");
    sandbox.run(&["run", &sandbox.plan(&plan), "--keep", "-q"]);
    sandbox.run(&["verify", left.to_str().unwrap(), "-q"]).expect(0);
    sandbox.run(&["verify", right.to_str().unwrap(), "-q"]).expect(0);
    let part = sandbox.path("part");
    std::fs::create_dir(&part).unwrap();
    let from = left.join("plimsoll-small");
    support::tool("cp", &["-a", from.to_str().unwrap(), part.to_str().unwrap()]);
    let ran = sandbox.run(&["verify", part.to_str().unwrap(), "-q"]).expect(2);
    ran.says("is a copy of one part of a mail store whose 2 parts are at");
}

/// A store whose run was killed is verified as after a crash of the host: the boot id differs, and
/// the generation maps are older because the kernel wrote back only a part of them.
#[test]
fn maps_that_are_older_than_the_data_accuse_no_page() {
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    plan.measure = "60s".into();
    let mut child = sandbox.start(&["run", &sandbox.plan(&plan), "--keep", "-q"]);
    let manifest = sandbox.data().join("plimsoll-small/store.json");
    support::wait_until("the load", || {
        std::fs::read_to_string(&manifest).is_ok_and(|text| text.contains("in-use"))
    });
    let marks = PathBuf::from(support::json(&manifest)["marks"].as_str().unwrap());
    let early: Vec<_> = ["generations", "durable"]
        .iter()
        .flat_map(|kind| (0..2).map(move |id| format!("db{id:02}.{kind}")))
        .map(|name| (marks.join(&name), std::fs::read(marks.join(&name)).unwrap()))
        .collect();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    child.kill().unwrap();
    child.wait().unwrap();
    let store = sandbox.data().display().to_string();
    let trusted = sandbox.run(&["verify", &store, "-q", "--json"]).expect(0).json();
    assert_eq!(trusted["pages_unknown"], 0);
    changed(&manifest, |m| m["boot_id"] = "another".into());
    for (path, bytes) in &early {
        std::fs::write(path, bytes).unwrap();
    }
    let ran = sandbox.run(&["verify", &store, "-q"]).expect(3);
    ran.says("are possibly not the latest acknowledged version");
    let found = sandbox.run(&["verify", &store, "-q", "--json"]).expect(3).json();
    assert_eq!(
        (&found["intact"], found["damage_count"].as_u64()),
        (&serde_json::Value::Null, Some(0))
    );
    let count = |name: &str| found[name].as_u64().unwrap();
    assert!(count("pages_unknown") > 0 && count("pages_proved_by_log") > 0, "{found}");
    assert_eq!(count("pages_checked"), count("pages_unknown") + count("pages_proved_by_log"));
    assert_eq!(found["pages_proved_by_log"], trusted["pages_proved_by_log"]);
    // Real damage is still reported.
    write_page(&sandbox.data().join("plimsoll-small/db01.edb"), 0, &vec![7; PAGE as usize]);
    let ran = sandbox.run(&["verify", &store, "-q"]);
    assert!([3, 4].contains(&ran.code), "the log may make page 0 again: {}", ran.stdout);
    std::fs::remove_dir_all(sandbox.data().join("plimsoll-small/db00-log")).unwrap();
    sandbox.run(&["verify", &store, "-q"]).expect(4).says("missing");
}
