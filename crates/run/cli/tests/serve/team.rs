//! A team's catalogue in a real PostgreSQL: many writers, a server that is killed during a write,
//! tables of the first version, and the messages if the catalogue cannot be used.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::postgres::{PASSWORD, Postgres};
use crate::support::{self, CommandOutput, Sandbox, SmallPlan, signal, wait_until};
use serde_json::{Value, json};

/// A user of the team, with the address of the catalogue.
struct Member {
    sandbox: Sandbox,
    address: String,
}

impl Member {
    fn of(postgres: &Postgres) -> Self {
        Self { sandbox: Sandbox::new(), address: postgres.address() }
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = self.sandbox.command(arguments);
        command.env("PLIMSOLL_CATALOGUE", &self.address).env("PGPASSWORD", PASSWORD);
        command
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        CommandOutput::from(self.command(arguments).output().unwrap())
    }

    /// Copies a bundle of an earlier version to the user's runs, once under each name.
    fn bundles(&self, names: impl Iterator<Item = String>) -> BTreeSet<String> {
        let runs = self.sandbox.path("share/plimsoll/runs");
        names.map(|name| bundle(&runs, name)).collect()
    }

    /// Returns the names of the runs in the list, including runs of other users.
    fn listed(&self) -> BTreeSet<String> {
        let runs = self.run(&["runs", "--json"]).expect(0).json();
        let names: Vec<String> = runs.as_array().unwrap().iter().map(name_of).collect();
        let once: BTreeSet<String> = names.iter().cloned().collect();
        assert_eq!(once.len(), names.len(), "none is there twice");
        once
    }
}

fn name_of(run: &Value) -> String {
    run["run_id"].as_str().unwrap().to_owned()
}

fn bundle(runs: &Path, name: String) -> String {
    let to = runs.join(&name);
    fs::create_dir_all(&to).unwrap();
    for entry in fs::read_dir(fixture()).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
    let mut run = support::json(&to.join("run.json"));
    if run["run_id"] != json!(name) {
        run["run_id"] = json!(name);
        fs::write(to.join("run.json"), run.to_string()).unwrap();
    }
    name
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/earlier/rules-9")
}

#[test]
fn a_run_of_one_host_is_listed_read_and_compared_on_another() {
    let postgres = Postgres::start();
    let (ann, ben) = (Member::of(&postgres), Member::of(&postgres));
    let mut plan = SmallPlan::on(&ann.sandbox.data());
    (plan.mailboxes, plan.measure) = (8, "1s".into());
    let ran = ann.run(&["run", &ann.sandbox.plan(&plan), "--quiet"]);
    ran.says("is in the team's catalogue postgres://ann@127.0.0.1");
    let name = name_of(&ann.run(&["runs", "--json"]).json()[0]);
    ann.run(&["runs", "tag", &name, "before"]).expect(0);
    ann.run(&["runs", "push"]).expect(0).says(&format!("put: {name}"));
    ann.run(&["runs", "push"]).expect(0).says("all runs are in the team's catalogue already");

    let listed = ben.run(&["runs", "--tag", "before"]).expect(0);
    listed.says(&name[..20]);
    listed.says("from ");
    let shown = ben.run(&["report", &name, "--json"]);
    assert_eq!(shown.json()["run_id"], json!(name));
    // The bundle is intact, but no ledger on this machine contains it.
    ben.run(&["verify", &name]).says("INTACT");
    ben.run(&[
        "compare",
        &format!("a={name}"),
        &format!("b={}", &name[..name.len() - 1]),
        "--json",
    ])
    .json();
    assert!(ben.sandbox.bundles().is_empty(), "those of others do not lie among one's own");

    // A run that was removed on its own machine stays in the team's catalogue.
    ann.run(&["runs", "rm", &name]).expect(0);
    assert_eq!(ann.run(&["report", &name, "--json"]).json()["run_id"], json!(name));

    // The run was modified in the team's catalogue.
    let changed =
        "UPDATE plimsoll.parts SET bytes = set_byte(bytes, 100, get_byte(bytes, 100) # 1)";
    postgres.sql("storage", changed);
    let carl = Member::of(&postgres);
    carl.run(&["report", &name]).expect(5).says("does not match its checksum");
    // A name in the catalogue is a path to another directory.
    let hostile = r#"INSERT INTO plimsoll.runs (origin, run_id, name, started, stamp, entry, change, archive_sha256)
        SELECT origin, '../../x', name, started, stamp, replace(entry, run_id, '../../x'), nextval('plimsoll.changes'), ''
        FROM plimsoll.runs"#;
    postgres.sql("storage", hostile);
    carl.run(&["runs"]).expect(0).says("1 runs of the team's catalogue are not listed");
}

#[test]
fn what_two_write_while_the_server_is_killed_is_there_once_and_whole() {
    let mut postgres = Postgres::start();
    let writers = [Member::of(&postgres), Member::of(&postgres)];
    let mut all = BTreeSet::new();
    for (number, writer) in writers.iter().enumerate() {
        let names = (0..60).map(|run| format!("20261101-{number}-run-{run:03}"));
        all.extend(writer.bundles(names));
    }
    // One of the two users writes from two processes at the same time.
    let pushing: Vec<std::process::Child> = [&writers[0], &writers[1], &writers[1]]
        .iter()
        .map(|writer| {
            let mut push = writer.command(&["runs", "push"]);
            push.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let count = "SELECT count(*) FROM plimsoll.runs";
    wait_until("some are there", || {
        let made = postgres.sql("storage", "SELECT to_regclass('plimsoll.runs') IS NOT NULL");
        made == "t" && postgres.sql("storage", count).parse::<u32>().unwrap() > 10
    });
    postgres.kill();
    postgres.start_again();
    for push in pushing {
        CommandOutput::from(push.wait_with_output().unwrap()).expect(0);
    }
    assert_eq!(postgres.sql("storage", count), "120");
    let whole = "SELECT count(*) FROM plimsoll.runs WHERE archive_sha256 = (SELECT
        encode(sha256(string_agg(bytes, ''::bytea ORDER BY number)), 'hex') FROM plimsoll.parts WHERE run = id)";
    assert_eq!(postgres.sql("storage", whole), "120");
    let reader = Member::of(&postgres);
    assert_eq!(reader.listed(), all);
    for writer in &writers {
        assert_eq!(writer.listed(), all);
        writer
            .run(&["runs", "push"])
            .expect(0)
            .says("all runs are in the team's catalogue already");
    }
    // Without its local index, the list is the same.
    fs::remove_file(reader.sandbox.path("cache/plimsoll/catalogue.sqlite3")).unwrap();
    assert_eq!(reader.listed(), all);
}

/// Loads a page over a new connection.
fn page(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let ask = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(ask.as_bytes()).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn the_page_of_one_shows_the_runs_of_another_and_says_as_of_when() {
    let mut postgres = Postgres::start();
    let (ann, ben) = (Member::of(&postgres), Member::of(&postgres));
    // The file has its original name, so its seal is valid.
    let sealed = support::json(&fixture().join("run.json"));
    let name = ann.bundles([name_of(&sealed)].into_iter()).pop_first().unwrap();
    let own = ben.bundles(["20261101-of-ben-1".to_owned()].into_iter()).pop_first().unwrap();
    let mut serve = ben.command(&["serve", "--listen", "0"]);
    let mut serving = serve.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(serving.stdout.take().unwrap()).read_line(&mut said).unwrap();
    let address = said.trim().rsplit_once("://").unwrap().1.trim_end_matches('/').to_owned();
    // `serve` copies this user's runs to the catalogue without a message, and shows later runs of
    // other users.
    wait_until("its own run is there", || ann.listed().contains(&own));
    ann.run(&["runs", "push"]).expect(0);
    wait_until("it is listed", || page(&address, "/runs").contains(&name));
    let shown = page(&address, &format!("/runs/{name}"));
    assert!(shown.starts_with("HTTP/1.1 200") && shown.contains(&name), "{shown:.400}");
    assert!(!page(&address, "/runs").contains("were last updated at"));
    // A hanging server accepts connections and never responds.
    postgres.signal("-STOP");
    let as_of = || page(&address, "/runs").contains("Runs of other users were last updated at");
    wait_until("it says so of one that hangs", as_of);
    assert!(page(&address, "/runs").contains("no answer for 10 s"));
    let runs = ann.run(&["runs"]).expect(0);
    runs.says("runs of other users may be missing or outdated");
    runs.says("no answer for 10 s");
    postgres.signal("-CONT");
    wait_until("it is read again", || !as_of());
    postgres.kill();
    wait_until("it says so", || {
        page(&address, "/runs").contains("Runs of other users were last updated at")
    });
    assert!(page(&address, "/runs").contains(&name), "what came is listed all the same");
    assert!(!page(&address, "/runs").contains(PASSWORD));
    signal(&serving, "-TERM");
    assert!(serving.wait().unwrap().success());
}

#[test]
fn tables_of_the_first_version_become_these_by_whoever_comes_first() {
    let postgres = Postgres::start();
    let ann = Member::of(&postgres);
    ann.bundles(["20261101-old-1".to_owned()].into_iter());
    // A run in the format of the first version: it lacks the columns that were added later.
    ann.run(&["runs", "push"]).expect(0);
    let kept = "SELECT encode(bytes, 'hex') FROM plimsoll.parts";
    let row = "SELECT entry FROM plimsoll.runs";
    let (bytes, entry) = (postgres.sql("storage", kept), postgres.sql("storage", row));
    let identity = fs::read_to_string(ann.sandbox.path("state/plimsoll/origin")).unwrap();
    let first = fs::read_to_string(
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/team-tables-1.sql"),
    );
    postgres.sql("storage", "DROP SCHEMA plimsoll CASCADE");
    postgres.sql("storage", &first.unwrap());
    let entry = entry.replace('\'', "''");
    postgres.sql(
        "storage",
        &format!(
            "INSERT INTO plimsoll.runs (origin, run_id, name, started, stamp, entry) VALUES
            ('{identity}', '20261101-old-1', 'old', 1, 'then', '{entry}');
         INSERT INTO plimsoll.parts SELECT id, 0, decode('{bytes}', 'hex') FROM plimsoll.runs"
        ),
    );
    // All users connect at the same time, and one of them migrates the tables.
    let readers: Vec<Member> = (0..4).map(|_| Member::of(&postgres)).collect();
    let requested: Vec<std::process::Child> = readers
        .iter()
        .map(|reader| {
            let mut command = reader.command(&["runs", "--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for requested in requested {
        let listed = CommandOutput::from(requested.wait_with_output().unwrap()).expect(0).json();
        assert_eq!(listed[0]["run_id"], json!("20261101-old-1"));
    }
    assert_eq!(postgres.sql("storage", "SELECT version FROM plimsoll.about"), "2");
    readers[0].run(&["report", "20261101-old-1", "--json"]).json();
    // Tables of a later version are not changed.
    postgres.sql("storage", "UPDATE plimsoll.about SET version = 99");
    readers[0].run(&["runs"]).expect(0).says("its tables have version 99");
}

#[test]
fn a_catalogue_that_cannot_be_used_is_named_without_its_password_and_costs_no_run() {
    let mut postgres = Postgres::start();
    let ann = Member::of(&postgres);
    let with = |address: String, password: &str| {
        let mut command = ann.sandbox.command(&["runs"]);
        command.env("PLIMSOLL_CATALOGUE", address).env("PGPASSWORD", password);
        CommandOutput::from(command.output().unwrap())
    };
    with(postgres.address(), "wrong").expect(0).says("password authentication failed for user");
    let own = postgres.address().replace("ann@", "ann:wr0ng@");
    let refused = with(own, PASSWORD).expect(0);
    refused.says("runs of other users may be missing");
    assert!(!refused.stderr.contains("wr0ng"), "{}", refused.stderr);
    let nothing = with("postgres://ann:wr0ng@127.0.0.1:x/y".to_owned(), "").expect(2);
    assert!(!nothing.stderr.contains("wr0ng"), "{}", nothing.stderr);
    with(postgres.address().replace("/storage", "/other"), PASSWORD)
        .expect(0)
        .says("does not exist");
    with("mysql://db/x".to_owned(), "").expect(2).says("postgres://user@host/database");
    // TLS is tested with the certificate authority to which the address refers, and with an unknown
    // authority.
    let secured = format!("{}?sslmode=require", postgres.address());
    with(secured.clone(), PASSWORD).expect(0).says("certificate");
    let named = format!("{secured}&sslrootcert={}", postgres.certificate().display());
    with(named, PASSWORD).expect(0);

    postgres.kill();
    let mut plan = SmallPlan::on(&ann.sandbox.data());
    (plan.mailboxes, plan.measure) = (8, "1s".into());
    let ran = ann.run(&["run", &ann.sandbox.plan(&plan), "--json", "--quiet"]);
    assert!([0, 1, 3].contains(&ran.code), "the run's own: {}\n{}", ran.code, ran.stderr);
    ran.says("the evidence is on this host; copy it later with `plimsoll runs push`");
    // The runs of this host are listed anyway.
    let listed = ann.run(&["runs"]).expect(0);
    listed.says("small");
    listed.says("runs of other users may be missing or outdated");
    postgres.start_again();
    ann.run(&["runs", "push"]).expect(0).says("put: ");
    assert_eq!(Member::of(&postgres).listed().len(), 1);
    ann.sandbox.run(&["runs", "push"]).expect(2).says("PLIMSOLL_CATALOGUE");
}
