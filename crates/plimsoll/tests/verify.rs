//! `plimsoll verify`: names what is damaged, page by page.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use support::{Sandbox, SmallPlan};

const PAGE: u64 = 32 << 10;

/// A store that a run kept, with the path of its first database.
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
    // Pages as they are early in the load.
    let manifest = sandbox.data().join("plimsoll-small/store.json");
    support::wait_until("the load", || {
        std::fs::read_to_string(&manifest).is_ok_and(|text| text.contains("in-use"))
    });
    let early: Vec<Vec<u8>> = (0..200).map(|page| read_page(&database, page)).collect();
    child.wait().unwrap();
    let store = sandbox.data().display().to_string();
    sandbox.run(&["verify", &store, "-q"]).expect(0);
    // The header holds the generation; take the page that was written most since.
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
    // The trailer of the first sector holds the low 16 bits of the generation.
    u32::from(u16::from_le_bytes([bytes[508], bytes[509]]))
}

#[test]
fn a_seal_is_checked_too() {
    let sandbox = Sandbox::new();
    kept(&sandbox);
    let bundle = sandbox.bundle();
    let path = bundle.to_str().unwrap();
    sandbox.run(&["verify", path]).expect(0).says("as its run left it");
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
