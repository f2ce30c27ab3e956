//! Protection of `plimsoll serve` against untrusted clients, and of its pages against untrusted
//! contents.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use crate::support::server::{Server, quoted};
use crate::support::{self, Sandbox, SmallPlan, tool};
use serde_json::Value;

/// Number of open connections that the server permits for all clients without a token. The same
/// number is permitted for clients with a token.
const CONNECTIONS: usize = 256;
/// A text that a page would execute as code if it were not escaped. It contains a part for each
/// context: between tags, in an attribute, in a script, in a chart.
const HOSTILE: &str =
    "</title></script></svg></style><script>alert(1)</script>\"'><img src=x onerror=alert(2)><!--";

/// An open connection on which the server has answered one request.
fn kept(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    ask(&mut stream, server);
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

fn ask(stream: &mut TcpStream, server: &Server) {
    write!(stream, "GET /assets/style.css HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).unwrap();
}

#[test]
fn connections_end_at_256_and_the_oldest_make_room() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let mut all: Vec<TcpStream> = (0..CONNECTIONS + 64).map(|_| kept(&server)).collect();
    let mut first = [0; 12];
    let is_open = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        loop {
            // The rest of the response to the first request arrives before the connection ends.
            match stream.read(&mut first) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => {
                    return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                }
            }
        }
    };
    let open = all.iter_mut().map(is_open).collect::<Vec<bool>>();
    assert_eq!(open.iter().filter(|open| **open).count(), CONNECTIONS, "{open:?}");
    assert!(open[64..].iter().all(|open| *open), "{open:?}");
    server.get("/").expect(200);
}

#[test]
fn whoever_sends_no_whole_head_or_nothing_more_is_let_go_of() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let mut half = TcpStream::connect(&server.address).unwrap();
    write!(half, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Half:").unwrap();
    let mut silent = TcpStream::connect(&server.address).unwrap();
    let mut idle = kept(&server);
    // An oversized head is rejected immediately, and an incomplete body after 30 s.
    let mut long = TcpStream::connect(&server.address).unwrap();
    let _ =
        write!(long, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: {}\r\n", "x".repeat(80 << 10));
    for stream in [&mut long, &mut half, &mut silent, &mut idle] {
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let mut rest = Vec::new();
        // The connection may be closed in any way, but it must not occupy a slot any longer.
        if let Err(error) = stream.read_to_end(&mut rest) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
        assert!(!rest.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&rest));
    }
    server.get("/").expect(200);
}

/// Fields of a bundle that must not change, because they contain names of other files or words from
/// a fixed list.
const FIXED: &[&str] = &[
    "transport",
    "write_cache",
    "kind",
    "run_id",
    "driver",
    "tier",
    "plan_sha256",
    "signed_by",
    "name",
    "group",
    "class",
    "role",
    "previous_sha256",
    "first_sha256",
    "line_sha256",
];

/// Inserts hostile texts into each text field of a bundle file.
fn poisoned(value: &mut Value, field: &str) {
    match value {
        Value::String(text) if !FIXED.contains(&field) => text.push_str(HOSTILE),
        Value::Array(all) => all.iter_mut().for_each(|one| poisoned(one, field)),
        Value::Object(all) => all.iter_mut().for_each(|(name, one)| poisoned(one, name)),
        _ => {}
    }
}

/// Seals the current bundle.
fn seal(bundle: &Path) {
    let sums = std::fs::read_to_string(bundle.join("SHA256SUMS")).unwrap();
    let names: Vec<&str> =
        sums.lines().filter_map(|line| line.split_once("  ")).map(|(_, n)| n).collect();
    let script = format!("cd \"$0\" && sha256sum {} > sums && mv sums SHA256SUMS", names.join(" "));
    tool("sh", &["-c", &script, bundle.to_str().unwrap()]);
}

/// An archive of a run from another machine, with hostile text in every field.
fn archive(sandbox: &Sandbox) -> std::path::PathBuf {
    let there = Sandbox::new();
    let mut plan = SmallPlan::on(&there.data());
    (plan.mailboxes, plan.measure) = (8, "1s".into());
    plan.name = "<b>&amp;'\\\"".into();
    let path = there.plan(&plan);
    let text = std::fs::read_to_string(&path).unwrap();
    let described =
        format!("version = 1\ndescription = {HOSTILE:?}\nowner = {HOSTILE:?}\n# {HOSTILE}");
    std::fs::write(&path, text.replacen("version = 1", &described, 1)).unwrap();
    there.run(&["run", &path, "-q"]);
    let bundle = there.bundle();
    for name in ["environment.json", "observed.json", "run.json"] {
        let file = bundle.join(name);
        let mut value: Value =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        poisoned(&mut value, "");
        if name == "run.json" {
            value["end"]["says"] = HOSTILE.into();
            value["phases"][0]["note"] = HOSTILE.into();
        }
        std::fs::write(&file, value.to_string()).unwrap();
    }
    seal(&bundle);
    let archive = sandbox.path("hostile.tar.gz");
    let (above, name) = (bundle.parent().unwrap(), bundle.file_name().unwrap());
    let at = archive.to_str().unwrap();
    tool("tar", &["czf", at, "-C", above.to_str().unwrap(), name.to_str().unwrap()]);
    archive
}

/// Checks that no hostile text became markup: it contains no tag, and does not end an attribute
/// early.
#[track_caller]
fn harmless(path: &str, page: &str) {
    let lower = page.to_lowercase();
    for tag in
        ["</title></script>", "<script>alert", "<img src=x", "</style><", "\"'><", "<b>&amp;"]
    {
        assert!(!lower.contains(tag), "{path}: {tag}\n{page:.3000}");
    }
}

#[test]
fn hostile_bundles_names_tags_and_comments_are_text_on_every_page() {
    let sandbox = Sandbox::new();
    let archive = archive(&sandbox);
    let imported = sandbox.run(&["runs", "import", archive.to_str().unwrap()]);
    assert!([0, 3].contains(&imported.code), "{}{}", imported.stdout, imported.stderr);
    // A second run of the same plan, so that the page shows a trend and a comparison.
    let mut plan = SmallPlan::on(&sandbox.data());
    (plan.mailboxes, plan.measure) = (8, "1s".into());
    plan.name = "<b>&amp;'\\\"".into();
    let path = sandbox.plan(&plan);
    (0..2).for_each(|_| drop(sandbox.run(&["run", &path, "-q"])));
    let listed = sandbox.run(&["runs", "--json"]).expect(0).json();
    let ids: Vec<&str> =
        listed.as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 3, "{listed:#}");
    for id in &ids {
        sandbox.run(&["runs", "tag", id, HOSTILE]).expect(0);
        sandbox.run(&["runs", "note", id, HOSTILE]).expect(0);
    }
    let server = Server::start(&sandbox, &[]);
    let word = quoted(HOSTILE);
    let compared: String = ids.iter().map(|id| format!("run={}&", quoted(id))).collect();
    let mut paths = vec![
        "/".to_owned(),
        "/runs".to_owned(),
        "/models".to_owned(),
        "/live".to_owned(),
        "/start".to_owned(),
        "/audit".to_owned(),
        "/compare".to_owned(),
        format!("/compare?{compared}"),
        format!("/compare?{compared}accept={word}"),
        format!("/compare?run={word}&run=last"),
        format!("/start?kind={word}"),
        format!("/start?kind=text&plan={word}"),
        "/start?kind=fio".to_owned(),
        format!("/models/{word}"),
        format!("/live?process={word}"),
        format!("/{word}"),
    ];
    for name in [
        "plan",
        "tag",
        "target",
        "rate-min",
        "read-latency-max",
        "since",
        "until",
        "verdict",
        "limit",
    ] {
        paths.push(format!("/runs?{name}={word}"));
    }
    paths.extend(ids.iter().map(|id| format!("/runs/{}", quoted(id))));
    let mut shown = 0;
    for path in &paths {
        let answer = server.get(path);
        assert!(answer.status < 500, "{path}: {}", answer.text());
        let page = answer.text();
        harmless(path, &page);
        shown += page.matches("&lt;script&gt;alert(1)").count();
    }
    // The pages show the hostile text as plain text: in plan, host, devices and tags.
    assert!(shown > 30, "{shown}");
    // The sections, options and values of this job contain the hostile text.
    let job = format!(
        "[global]\ndirectory=/mnt\nsize=1m\nruntime=1\n[{HOSTILE}]\nrw=read\n{HOSTILE}={HOSTILE}\n[{HOSTILE}]\nstonewall\nrw=write\ndirectory=/{HOSTILE}\n"
    );
    let forms = [
        ("/audit", vec![("result", HOSTILE), ("drives", HOSTILE)]),
        (
            "/start",
            vec![("kind", "mailbox"), ("name", HOSTILE), ("place", HOSTILE), ("more", HOSTILE)],
        ),
        ("/start", vec![("kind", "text"), ("plan", HOSTILE)]),
        ("/start", vec![("kind", "fio"), ("job", HOSTILE), ("name", HOSTILE), ("place", HOSTILE)]),
        ("/start", vec![("kind", "fio"), ("job", &job), ("name", HOSTILE), ("find", HOSTILE)]),
        ("/start", vec![("kind", "fio"), ("job", &job), ("name", HOSTILE)]),
        ("/models/single-hdd", vec![("mailboxes", HOSTILE), ("mailbox_size", HOSTILE)]),
    ];
    for (path, fields) in &forms {
        let answer = server.post(path, fields);
        assert!(answer.status < 500, "{path}: {}", answer.text());
        harmless(path, &answer.text());
    }
    // For a run in progress, the pages show the hostile text as plain text, too.
    let long = sandbox.path("long.toml");
    std::fs::write(
        &long,
        std::fs::read_to_string(&path).unwrap().replace("measure = \"1s\"", "measure = \"600s\""),
    )
    .unwrap();
    let mut run = sandbox.start(&["run", long.to_str().unwrap(), "-q"]);
    let at = format!("/live?process={}", run.id());
    support::wait_until("a run", || server.get(&at).status == 200);
    for path in [at.as_str(), "/live", "/"] {
        harmless(path, &server.get(path).expect(200).text());
    }
    support::signal(&run, "-INT");
    run.wait().unwrap();
}
