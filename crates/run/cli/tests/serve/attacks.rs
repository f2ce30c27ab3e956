//! Attacks on the web page by clients without a token, and by users of this host.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::server::Server;
use crate::support::{Sandbox, SmallPlan, wait_until};

const LOOKS: &str = "looks-0123456789abcdef";
const RUNS: &str = "runs-0123456789abcdef";

fn tokens(sandbox: &Sandbox) -> String {
    let file = sandbox.path("tokens");
    fs::write(&file, format!("view {LOOKS}\nrun {RUNS} ann\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file.display().to_string()
}

fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

fn edit(path: &std::path::Path, change: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    change(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

/// A forged verdict appears in no list: if a bundle is edited, lists show the verdict in the
/// ledger.
#[test]
fn a_forged_verdict_is_in_no_list() {
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    (plan.mailboxes, plan.measure) = (8, "1s".into());
    sandbox.run(&["run", &sandbox.plan(&plan), "-q"]);
    let listed = || sandbox.run(&["runs", "--json"]).expect(0).json()[0].clone();
    let honest = listed();
    let own = honest["verdict"].as_str().unwrap().to_owned();
    let forged = if own == "PASS" { "FAIL" } else { "PASS" };
    let bundle = sandbox.bundle();
    edit(&bundle.join("verdict.json"), |verdict| {
        verdict["verdict"] = json!(forged);
        verdict["achieved_iops_per_s"] = json!(98_765.0);
    });
    let server = Server::start(&sandbox, &[]);
    let shown = |path: &str| server.get(path).expect(200).text();
    let lists = [
        sandbox.run(&["runs"]).expect(0).stdout,
        sandbox.run(&["runs", "--json"]).expect(0).stdout,
        shown("/runs"),
        shown("/"),
        shown("/api/runs"),
        shown("/metrics"),
    ];
    for list in &lists {
        assert!(!list.contains("98765") && !list.contains("98,765"), "{list}");
        let said = list.replace("INCONCLUSIVE", "").replace("option value=\"", "");
        assert!(
            !said.contains(&format!(">{forged}<")) && !said.contains(&format!(" {forged} ")),
            "{list}"
        );
    }
    assert_eq!(listed()["verdict"], own.as_str());
    assert!(lists[0].contains("differs from the ledger"), "{}", lists[0]);
    let count = format!("plimsoll_runs{{verdict=\"{}\"}} 1", own.to_lowercase());
    assert!(lists[5].contains(&count), "{}", lists[5]);
    // Lists show the verdict that a bundle from another machine states, and that it is the bundle's
    // own statement.
    drop(server);
    edit(&bundle.join("verdict.json"), |verdict| verdict["verdict"] = json!(forged));
    let there = Sandbox::new();
    let archive = there.path("run.tar.gz").display().to_string();
    sandbox.run(&["runs", "export", "last", &archive]).expect(0);
    let imported = there.path("share/plimsoll/imported");
    if there.run(&["runs", "import", &archive]).code != 0 {
        // The import rejects the changed file, but a user can still unpack it.
        fs::create_dir_all(&imported).unwrap();
        let unpacked = std::process::Command::new("tar");
        let mut unpacked = unpacked;
        assert!(
            unpacked.arg("-xzf").arg(&archive).arg("-C").arg(&imported).status().unwrap().success()
        );
    }
    let all = there.run(&["runs", "--json"]).expect(0).json();
    assert_eq!(all[0]["verdict"], "UNVERIFIED", "{all:#}");
    there.run(&["runs"]).expect(0).says(&format!("UNVERIFIED ({forged})"));
    let metrics = Server::start(&there, &[]).get("/metrics").expect(200).text();
    assert!(metrics.contains("plimsoll_runs{verdict=\"unverified\"} 1"), "{metrics}");
    assert!(!metrics.contains("plimsoll_last_run_iops_per_s{"), "{metrics}");
}

/// Idle connections do not block the page. In an earlier version, 300 idle connections made the
/// page time out for everybody.
#[test]
fn idle_connections_do_not_shut_the_page() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &["--token-file", &tokens(&sandbox)]);
    let mut kept = TcpStream::connect(&server.address).unwrap();
    let ask = format!("GET /api/session HTTP/1.1\r\nHost: localhost\r\n{}\r\n", bearer(LOOKS));
    let answer = |stream: &mut TcpStream| {
        stream.write_all(ask.as_bytes()).unwrap();
        let mut bytes = [0; 12];
        stream.read_exact(&mut bytes).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let mut rest = vec![0; 64 << 10];
        let _ = stream.read(&mut rest).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    assert_eq!(answer(&mut kept), "HTTP/1.1 200");
    let mut attackers = Vec::new();
    for number in 0..300 {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        // Half of the connections send an incomplete head.
        if number % 2 == 0 {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n").unwrap();
        }
        attackers.push(stream);
    }
    for _ in 0..5 {
        let began = Instant::now();
        server.ask("GET", "/api/runs", &bearer(LOOKS), "").expect(200);
        server.get("/login").expect(200);
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    }
    assert_eq!(answer(&mut kept), "HTTP/1.1 200", "a connection with a token is kept");
    // The server closes the connections of the attackers within seconds.
    let began = Instant::now();
    for stream in &mut attackers {
        stream.set_read_timeout(Some(Duration::from_secs(15))).unwrap();
        let mut byte = [0];
        let closed = stream.read(&mut byte).map_or(true, |length| length == 0);
        assert!(closed);
    }
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

/// Sends a request from another address of the loopback network. Returns the response.
fn ask_from(server: &Server, address: Ipv4Addr, request: &str) -> String {
    let to: SocketAddr = server.address.parse().unwrap();
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::STREAM,
        None,
    );
    let socket = socket.unwrap();
    rustix::net::bind(&socket, &SocketAddrV4::new(address, 0)).unwrap();
    rustix::net::connect(&socket, &to).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn wrong_tokens_lock_out_only_their_own_address_and_are_logged() {
    let sandbox = Sandbox::new();
    let file = tokens(&sandbox);
    let log = sandbox.path("log");
    let mut command = sandbox.command(&["serve", "--listen", "0", "--json", "--token-file", &file]);
    command.stdout(Stdio::piped()).stderr(fs::File::create(&log).unwrap());
    let server = Server::of(command.spawn().unwrap());
    let wrong = bearer("wrong-0123456789abcdef");
    let codes: Vec<u16> =
        (0..25).map(|_| server.ask("GET", "/api/runs", &wrong, "").status).collect();
    assert_eq!((codes[0], codes[24]), (401, 429), "{codes:?}");
    // A valid token still works from that address. Wrong tokens from other addresses are counted
    // separately.
    server.ask("GET", "/api/runs", &bearer(LOOKS), "").expect(200);
    let head = "HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    let other = Ipv4Addr::new(127, 0, 0, 2);
    let answer = ask_from(&server, other, &format!("GET /api/runs {head}{wrong}\r\n"));
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let page = ask_from(&server, other, &format!("GET /login {head}\r\n"));
    let csrf = page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let body = format!("csrf={csrf}&token={RUNS}");
    let form = format!(
        "POST /login {head}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = ask_from(&server, other, &form);
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    // The log contains each login with its address, and each change with its user.
    server.ask("POST", "/api/live/stop", &bearer(RUNS), "").expect(409);
    let said = || fs::read_to_string(&log).unwrap();
    wait_until("the log", || said().contains("ann at 127.0.0.2: logged in (run)"));
    let said = said();
    assert!(said.contains("anonymous at 127.0.0.1: wrong token (1 in the last minute)"), "{said}");
    assert_eq!(said.matches("anonymous at 127.0.0.1: wrong token").count(), 20, "{said}");
    assert!(!said.contains(RUNS) && !said.contains("wrong-0123456789abcdef"), "{said}");
}

/// The server may run as root, so a rejection must not reveal which paths exist.
#[test]
fn a_refusal_does_not_tell_whether_a_path_exists() {
    let sandbox = Sandbox::new();
    let (inside, outside) = (sandbox.data(), sandbox.path("outside"));
    fs::create_dir(&outside).unwrap();
    fs::create_dir(outside.join("there")).unwrap();
    fs::write(outside.join("file"), "").unwrap();
    std::os::unix::fs::symlink(outside.join("there"), outside.join("link")).unwrap();
    let server = Server::start(&sandbox, &["--allow-path", inside.to_str().unwrap()]);
    let refused = |target: String, path: &str| {
        let plan = format!(
            "version = 1\nname = \"p\"\n[target]\n{target}\n[workload.matrix]\nfile_size = \
                                   \"4MiB\"\n[phases]\nmeasure = \"60s\"\n[evidence]\nmin_measure = \
                                   \"10s\"\n"
        );
        let checked = server.send("/api/plans/check", &plan).expect(200).json();
        assert_eq!(checked["can_start"], false, "{checked:#}");
        let refused = checked["refused"].as_str();
        refused.unwrap_or_else(|| panic!("{checked:#}")).replace(path, "PATH")
    };
    let path = |name: &str| {
        let path = outside.join(name).display().to_string();
        refused(format!("path = {path:?}"), &path)
    };
    let said = path("there");
    for name in
        ["missing", "missing/deep", "file", "file/deep", "link", "link/deep", "there/../there"]
    {
        assert_eq!(path(name), said, "{name}");
    }
    let device = |path: &str| refused(format!("device = {path:?}"), path);
    assert_eq!(device("/dev/null"), device("/dev/missing"));
}

#[test]
fn secrets_that_other_users_can_read_are_rejected() {
    let sandbox = Sandbox::new();
    let key = sandbox.path("key");
    sandbox.run(&["ledger", "key", key.to_str().unwrap()]).expect(0);
    let plan = sandbox.plan(&SmallPlan::on(&sandbox.data()));
    let serve_tokens = tokens(&sandbox);
    let of: [(&str, Vec<&str>); 2] = [
        (&serve_tokens, vec!["serve", "--listen", "0", "--token-file", &serve_tokens]),
        (key.to_str().unwrap(), vec!["run", &plan, "--sign", key.to_str().unwrap()]),
    ];
    for (file, command) in of {
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
        let refused = sandbox.run(&command);
        assert_eq!(refused.code, 2, "{}{}", refused.stdout, refused.stderr);
        refused.says(&format!("chmod 600 {file}"));
    }
}

/// Returns all files in a directory tree that contain a text.
fn files_with(directory: &std::path::Path, text: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(files_with(&path, text));
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap_or_default();
            if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
                found.push(path);
            }
        }
    }
    found
}

/// Planted secrets must not appear in any bundle, log, page, process list or request line.
#[test]
fn planted_secrets_are_found_nowhere() {
    const KEY_PASSWORD: &str = "PLANTED-key-password";
    const S3_SECRET: &str = "PLANTED-s3-secret";
    const PG_PASSWORD: &str = "PLANTED-pg-password";
    const METRICS_PASSWORD: &str = "PLANTED-metrics-password";
    let secrets = [KEY_PASSWORD, S3_SECRET, PG_PASSWORD, METRICS_PASSWORD, LOOKS, RUNS];
    let sandbox = Sandbox::new();
    let with_secrets = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        command.env("PLIMSOLL_KEY_PASSWORD", KEY_PASSWORD).env("PGPASSWORD", PG_PASSWORD);
        command.env("AWS_ACCESS_KEY_ID", "AKID").env("AWS_SECRET_ACCESS_KEY", S3_SECRET);
        command
    };
    let key = sandbox.path("key").display().to_string();
    sandbox.run(&["ledger", "key", &key]).expect(0);
    let file = tokens(&sandbox);
    let log = sandbox.path("serve-log");
    let mut command = with_secrets(&["serve", "--listen", "0", "--json", "--token-file", &file]);
    command.stdout(Stdio::piped()).stderr(fs::File::create(&log).unwrap());
    let server = Server::of(command.spawn().unwrap());

    // The environment of this run contains every secret.
    let mut plan = SmallPlan::on(&sandbox.data());
    (plan.mailboxes, plan.measure) = (8, "2s".into());
    let plan = sandbox.plan(&plan);
    let mut command = with_secrets(&["run", &plan, "--sign", &key, "--metrics", "0"]);
    command.stdout(fs::File::create(sandbox.path("run-out")).unwrap());
    command.stderr(fs::File::create(sandbox.path("run-log")).unwrap());
    let mut run = command.spawn().unwrap();
    wait_until("its end", || {
        for process in [run.id(), server.child.id()] {
            let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).into_owned();
            assert!(!secrets.iter().any(|secret| line.contains(secret)), "{line}");
        }
        run.try_wait().unwrap().is_some()
    });

    // A password in a plan is rejected, and the message does not contain it.
    let metrics = sandbox.path("metrics.toml");
    let text = fs::read_to_string(&plan).unwrap();
    let endpoint = format!(
        "[observe.metrics]\nurl = \"http://ann:{METRICS_PASSWORD}@127.0.0.1:1/m\"\nnames = {{ \
         \"read_source.cache\" = \"hits\" }}\n"
    );
    fs::write(&metrics, format!("{text}\n{endpoint}")).unwrap();
    let refused = sandbox.run(&["run", metrics.to_str().unwrap()]).expect(2);
    refused.says("contains a user or password");
    assert!(!refused.stderr.contains(METRICS_PASSWORD), "{}", refused.stderr);
    fs::remove_file(&metrics).unwrap();
    let store = sandbox.path("store.toml");
    let target =
        format!("s3 = \"s3://b/p\"\nendpoint = \"http://ann:{METRICS_PASSWORD}@127.0.0.1:1\"");
    let text =
        format!("version = 1\n[target]\n{target}\n[workload.matrix]\nfile_size = \"4MiB\"\n");
    fs::write(&store, text).unwrap();
    let refused = sandbox.run(&["run", store.to_str().unwrap()]).expect(2);
    refused.says("contains a user or password");
    assert!(!refused.stderr.contains(METRICS_PASSWORD), "{}", refused.stderr);
    fs::remove_file(&store).unwrap();
    let team = format!("postgres://ann:{PG_PASSWORD}@127.0.0.1:1/x");
    let refused = sandbox.run(&["runs", "--catalogue", &team]).expect(2);
    refused.says("can see a password on the command line");
    assert!(!refused.stderr.contains(PG_PASSWORD), "{}", refused.stderr);

    // The store receives the signature in a header.
    let store = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", store.local_addr().unwrap());
    let (pass, seen) = std::sync::mpsc::channel();
    // The store rejects every request until the test ends.
    std::thread::spawn(move || {
        for stream in store.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = vec![0; 16 << 10];
            let length = stream.read(&mut bytes).unwrap_or(0);
            let refused = b"HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(refused);
            let _ = pass.send(String::from_utf8_lossy(&bytes[..length]).into_owned());
        }
    });
    let text = format!(
        "version = 1\nname = \"objects\"\n[target]\ns3 = \"s3://bucket/p\"\nendpoint = \
         \"{endpoint}\"\n[workload.matrix]\nfile_size = \"1MiB\"\nfiles = 2\n[phases]\nmeasure = \
         \"1s\"\n[evidence]\nmin_measure = \"1s\"\n"
    );
    let objects = sandbox.path("objects.toml");
    fs::write(&objects, text).unwrap();
    let output = with_secrets(&["run", objects.to_str().unwrap()]).output().unwrap();
    fs::write(sandbox.path("objects-log"), [output.stdout, output.stderr].concat()).unwrap();
    let head = seen.recv_timeout(Duration::from_secs(60)).unwrap();
    let line = head.lines().next().unwrap();
    assert!(!line.contains("Signature") && !line.contains("AKID"), "{head}");
    assert!(head.contains("Authorization: AWS4-HMAC-SHA256 Credential=AKID/"), "{head}");
    assert!(!secrets.iter().any(|secret| head.contains(secret)), "{head}");

    let pages = ["/", "/runs", "/runs/last", "/live", "/metrics", "/api/runs", "/api/runs/last"];
    let pages = pages.map(|path| server.ask("GET", path, &bearer(LOOKS), "").text());
    fs::write(sandbox.path("pages"), pages.concat()).unwrap();
    assert!(!sandbox.bundles().is_empty());
    for secret in secrets {
        let found = files_with(&sandbox.path(""), secret);
        let allowed = [sandbox.path("tokens")];
        assert!(found.iter().all(|path| allowed.contains(path)), "{secret}: {found:?}");
    }
}
