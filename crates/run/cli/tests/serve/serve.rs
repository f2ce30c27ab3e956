//! Tests of the real program `plimsoll serve` over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::server::{Server, quoted};
use crate::support::{self, Sandbox, SmallPlan};
use serde_json::Value;

/// A name that a page would execute as code if it were not escaped.
const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>";

/// Performs two small runs of a plan that contains hostile texts.
fn runs(sandbox: &Sandbox) -> Vec<String> {
    let mut plan = SmallPlan::on(&sandbox.data());
    (plan.mailboxes, plan.measure) = (8, "1s".into());
    let path = sandbox.plan(&plan);
    let text = std::fs::read_to_string(&path).unwrap();
    let described = format!("version = 1\ndescription = {HOSTILE:?}\n# {HOSTILE}");
    std::fs::write(&path, text.replacen("version = 1", &described, 1)).unwrap();
    for _ in 0..2 {
        sandbox.run(&["run", &path, "-q"]);
    }
    sandbox.run(&["runs", "tag", "last", HOSTILE]).expect(0);
    sandbox.run(&["runs", "note", "last", HOSTILE]).expect(0);
    let listed = sandbox.run(&["runs", "--json"]).expect(0).json();
    let ids = listed.as_array().unwrap().iter();
    ids.map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
}

/// Checks that no hostile name became markup on the page.
#[track_caller]
fn harmless(page: &str) {
    let lower = page.to_lowercase();
    assert!(!lower.contains("<script>alert") && !lower.contains("<img src=x"), "{page:.3000}");
}

#[test]
fn people_look_at_runs_compare_them_and_note_something() {
    let sandbox = Sandbox::new();
    let ids = runs(&sandbox);
    let server = Server::start(&sandbox, &[]);
    let (first, second) = (&ids[0], &ids[1]);
    let pages = [
        ("/".to_owned(), "Latest verdicts"),
        ("/".to_owned(), "Trend per plan"),
        ("/runs".to_owned(), first.as_str()),
        (format!("/runs/{first}"), "Evidence (tar.gz)"),
        (format!("/runs/{second}"), "&lt;script&gt;alert(1)"),
        ("/compare".to_owned(), second.as_str()),
        (format!("/compare?run={first}&run={second}"), "Side by side"),
        (format!("/compare?run={first}&run={second}"), "<dt>host</dt>"),
        (format!("/compare?run={first}&run={second}"), "<dt>plan</dt><dd>small</dd>"),
        ("/audit".to_owned(), "Paste the output of fio"),
    ];
    for (path, says) in &pages {
        let answer = server.get(path).expect(200);
        assert!(answer.head.to_lowercase().contains("content-security-policy"), "{path}");
        assert!(answer.text().contains(says), "{path}: no {says}\n{:.3000}", answer.text());
        harmless(&answer.text());
    }
    // The page contains the same report as the output of `plimsoll report`.
    let report = server.get(&format!("/runs/{first}")).text();
    let written = sandbox.run(&["report", first, "--format", "html"]).stdout;
    let main = |page: &str| {
        let from = page.find("<section class=\"verdict").unwrap();
        page[from..page.find("</main>").unwrap()].to_owned()
    };
    assert_eq!(main(&report), main(&written));
    // The API returns JSON for programs.
    let listed = server.get("/api/runs?plan=sma&limit=1").expect(200).json();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["run_id"].as_str(), Some(second.as_str()));
    let verdict = server.get("/api/runs/last").expect(200).json();
    assert_eq!(verdict, sandbox.run(&["report", "last", "--json"]).json());
    let compared = server.get(&format!("/api/compare?run={first}&run={second}")).expect(200);
    assert_eq!(compared.json()["names"].as_array().unwrap().len(), 2);
    let metrics = server.get("/metrics").expect(200).text();
    assert!(metrics.contains("plimsoll_last_run_iops_per_s{plan=\"small\",verdict="), "{metrics}");
    let archive = server.get(&format!("/runs/{first}/evidence")).expect(200);
    assert_eq!(archive.body[..2], [0x1f, 0x8b], "gzip");
    let taken = sandbox.path("taken.tar.gz");
    std::fs::write(&taken, &archive.body).unwrap();
    let there = Sandbox::new();
    there.run(&["runs", "import", taken.to_str().unwrap()]).expect(0).says(first);
    // The user adds tags and a note.
    let noted = server.post(&format!("/runs/{first}/labels"), &[("tags", "a, b"), ("note", "c")]);
    noted.expect(303);
    let shown = sandbox.run(&["runs", "tag", first]).expect(0);
    shown.says("tags: a, b");
    assert!(server.get("/runs?tag=b").text().contains(first));
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_outside_the_catalogue_is_read() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    assert!(server.get("/").expect(200).text().contains("There are no runs yet"));
    let outside = sandbox.path("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("run.json"), "{}").unwrap();
    let path = outside.display().to_string();
    let long = "x".repeat(5_000);
    for (path, status) in [
        (format!("/runs/{}", quoted(&path)), 404),
        ("/runs/..%2F..%2Fetc".to_owned(), 404),
        ("/runs/%00".to_owned(), 404),
        ("/runs/last".to_owned(), 404),
        (format!("/runs/{long}"), 404),
        ("/api/runs/nothing".to_owned(), 404),
        (format!("/compare?run={}&run=b", quoted(&path)), 404),
        ("/compare?run=1&run=2&run=3&run=4&run=5&run=6&run=7".to_owned(), 400),
        ("/runs?verdict=great".to_owned(), 400),
        ("/runs?since=yesterday".to_owned(), 400),
        ("/runs?rate-min=fast".to_owned(), 400),
        ("/api/runs?read-latency-max=20".to_owned(), 400),
        ("/runs?target=%25&rate-min=1/s&read-latency-max=20ms".to_owned(), 200),
        ("/runs?limit=-1".to_owned(), 400),
        ("/runs?plan=%3Cscript%3Ealert(1)%3C/script%3E".to_owned(), 200),
        ("/no/such/page".to_owned(), 404),
        ("/api/compare".to_owned(), 400),
    ] {
        let answer = server.get(&path).expect(status);
        harmless(&answer.text());
        if path.starts_with("/api/") {
            assert_eq!(answer.json()["error"]["status"], status);
        }
    }
    server.ask("POST", "/runs/x/labels", "", "note=x").expect(403);
    server.ask("DELETE", "/runs/x", "", "").expect(405);
    // The request is rejected because of its declared length, before its body is read.
    let large = format!(
        "POST /api/audit HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-CSRF-Token: \
         {}\r\nContent-Length: {}\r\n\r\n",
        server.csrf(),
        (16 << 20) + 1
    );
    server.raw(&large).expect(413);
    server.raw("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").expect(421);
    // The server continues to respond.
    server.get("/").expect(200);
}

#[test]
fn a_pasted_result_is_judged_and_nothing_of_it_is_kept() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let file =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../judge/import/tests/results/randread.json");
    let result = std::fs::read_to_string(file).unwrap();
    let page = server.post("/audit", &[("result", &result)]).expect(200).text();
    assert!(page.contains("section class=\"verdict"), "{page:.3000}");
    let token = format!("X-CSRF-Token: {}\r\n", server.csrf());
    let json = server.ask("POST", "/api/audit", &token, &result).expect(200).json();
    let reported = sandbox.run(&["audit", file, "--json"]).json();
    for field in ["verdict", "tier", "claims"] {
        assert_eq!(json[field], reported[field], "{field}");
    }
    let found = |json: &Value| -> Vec<(Value, Value)> {
        let findings = json["findings"].as_array().unwrap().iter();
        findings.map(|one| (one["rule"].clone(), one["outcome"].clone())).collect()
    };
    assert_eq!(found(&json), found(&reported));
    let nonsense = server.post("/audit", &[("result", HOSTILE)]).expect(200).text();
    assert!(nonsense.contains("role=\"alert\""), "{nonsense:.3000}");
    harmless(&nonsense);
    server.ask("POST", "/api/audit", &token, "nonsense").expect(400);
    let said = server.post("/audit", &[("result", "x"), ("drives", "many")]).expect(200).text();
    assert!(said.contains("drives: enter a whole number"), "{said:.3000}");
    assert_eq!(sandbox.bundles(), Vec::<std::path::PathBuf>::new());
    assert!(!holds(sandbox.root.path(), "fio version"), "it was written somewhere");
}

/// Returns true if any file in a directory tree contains the text.
fn holds(directory: &Path, text: &str) -> bool {
    std::fs::read_dir(directory).unwrap().flatten().any(|entry| {
        let path = entry.path();
        match path.is_dir() {
            true => holds(&path, text),
            false => String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(text),
        }
    })
}

#[test]
fn others_need_a_token_and_it_has_to_be_kept_from_them() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    let refused = sandbox.run(&["serve", "--listen", "0.0.0.0:0"]).expect(2);
    refused.says("--token-file");
    let file = sandbox.path("tokens");
    std::fs::write(&file, "view 0123456789abcdef\nrun fedcba9876543210\n").unwrap();
    let name = file.to_str().unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    sandbox.run(&["serve", "--listen", "0", "--token-file", name]).expect(2).says("chmod 600");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let server = Server::start(&sandbox, &["--token-file", name]);
    server.get("/").expect(303);
    server.get("/api/runs").expect(401);
    let bearer = |token: &str| format!("Authorization: Bearer {token}\r\n");
    server.ask("GET", "/api/runs", &bearer("0123456789abcdef"), "").expect(200);
    server.ask("GET", "/api/runs", &bearer("0123456789abcdeX"), "").expect(401);
    server.ask("POST", "/runs/x/labels", &bearer("0123456789abcdef"), "").expect(403);
    server.ask("POST", "/runs/x/labels", &bearer("fedcba9876543210"), "").expect(404);
}

/// A private key and a certificate for this host.
fn certificate(sandbox: &Sandbox) -> [String; 2] {
    let [certificate, key] =
        ["page.pem", "page.key"].map(|name| sandbox.path(name).display().to_string());
    let subject = ["-subj", "/CN=page", "-addext", "subjectAltName=IP:127.0.0.1"];
    let output = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ])
        .args(subject)
        .args(["-keyout", &key, "-out", &certificate])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    [certificate, key]
}

/// Returns the response over TLS; the client checks the certificate.
fn over_tls(server: &Server, authority: &str, request: &str) -> String {
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-verify_return_error", "-CAfile", authority])
        .args(["-connect", &server.address])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    client.stdin.as_mut().unwrap().write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    client.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    client.wait().unwrap();
    text
}

#[test]
fn others_reach_the_page_over_tls_with_a_token() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    let file = sandbox.path("tokens");
    std::fs::write(&file, "view 0123456789abcdef\nrun fedcba9876543210 ann\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let tokens = ["--token-file", file.to_str().unwrap()];
    let plain = ["serve", "--listen", "0.0.0.0:0", tokens[0], tokens[1]];
    sandbox.run(&plain).expect(2).says("--tls-cert");
    let [certificate, key] = certificate(&sandbox);
    let other = sandbox.path("nothing.pem");
    std::fs::write(&other, "nothing").unwrap();
    let other = other.display().to_string();
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o600)).unwrap();
    for (certificate, key, says) in [
        (&certificate, &other, "nothing.pem: the file contains no private key"),
        (&key, &key, "page.key: the file contains no certificate"),
    ] {
        let tls = ["serve", "--listen", "0", "--tls-cert", certificate, "--tls-key", key];
        sandbox.run(&tls).expect(5).says(says);
    }
    let tls = ["--tls-cert", certificate.as_str(), "--tls-key", key.as_str()];
    let server = Server::start(&sandbox, &[&tls[..], &tokens[..]].concat());
    let ask = |method: &str, path: &str, headers: &str, body: &str| {
        let length = body.len();
        over_tls(
            &server,
            &certificate,
            &format!(
                "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: \
                 close\r\n{headers}Content-Length: {length}\r\n\r\n{body}",
                server.address
            ),
        )
    };
    let answer = ask("GET", "/api/runs", "Authorization: Bearer 0123456789abcdef\r\n", "");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let page = ask("GET", "/login", "", "");
    let csrf = page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let log_in = |token: &str| ask("POST", "/login", form, &format!("csrf={csrf}&token={token}"));
    let wrong = log_in("wrong-0123456789abcdef");
    assert!(wrong.starts_with("HTTP/1.1 401"), "{wrong}");
    let let_in = log_in("fedcba9876543210");
    assert!(let_in.starts_with("HTTP/1.1 303"), "{let_in}");
    assert!(let_in.contains("HttpOnly; SameSite=Strict; Secure"), "{let_in}");
    let cookie = let_in.split("set-cookie: ").nth(1).unwrap().split(';').next().unwrap();
    let shown = ask("GET", "/", &format!("Cookie: {cookie}\r\n"), "");
    assert!(shown.starts_with("HTTP/1.1 200"), "{shown}");
    // A client without TLS gets no response, but the server continues to work.
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    assert!(!String::from_utf8_lossy(&bytes).contains("HTTP/1.1"), "{bytes:?}");
    assert!(ask("GET", "/login", "", "").starts_with("HTTP/1.1 200"));
}

/// Returns a plan for `/api/runs` that uses this directory and measures for this time.
fn plan_on(directory: &Path, measure: &str) -> String {
    let mut plan = SmallPlan::on(directory);
    (plan.mailboxes, plan.measure) = (8, measure.into());
    plan.text()
}

#[test]
fn a_run_is_started_followed_and_stopped_from_the_page_and_one_goes_on_at_a_time() {
    let sandbox = Sandbox::new();
    let allowed = sandbox.data();
    let server = Server::start(&sandbox, &["--allow-path", allowed.to_str().unwrap()]);
    server.get("/live").expect(200);
    server.get("/api/live").expect(404);
    server.send("/api/live/stop", "").expect(409);
    let plan = plan_on(&allowed, "600s");
    let checked = server.send("/api/plans/check", &plan).expect(200).json();
    assert_eq!(checked["can_start"], true, "{checked:#}");
    let takes = checked["takes"].to_string();
    assert!(takes.contains("takes 10 min") && takes.contains("needed"), "{takes}");
    assert!(sandbox.bundles().is_empty(), "to ask makes nothing");
    server.send("/api/runs", &plan).expect(200);
    let second = server.send("/api/runs", &plan).expect(409).json();
    let says = second["error"]["message"].as_str().unwrap();
    assert!(says.contains("one run at a time"), "{says}");
    // Percentiles are available a second after the measurement starts.
    support::wait_until("percentiles", || {
        let live = server.live();
        assert_eq!(live["failed"], Value::Null, "{live:#}");
        let classes = live["classes"].as_object().unwrap();
        let is_told = |class: &Value| class["latency_ns_p99"].as_u64().is_some_and(|ns| ns > 0);
        let counted = live["classes"]["db0.read"]["count"].as_u64().is_some_and(|count| count > 0);
        let has_left = live["phase"]["left_ns"].as_u64().is_some_and(|ns| ns > 0);
        let reported = classes.values().any(is_told);
        live["phase"]["kind"] == "measure" && reported && counted && has_left
    });
    // Viewers receive the contents of the page.
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET /api/live/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "event: now"));
    assert!(lines.any(|line| line == "event: charts"));
    // At most a hundred viewers can be connected. A further viewer gets a message, and can still
    // load the page.
    let more: Vec<TcpStream> = (1..100)
        .map(|_| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            write!(stream, "GET /api/live/events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            let mut first = [0; 12];
            stream.read_exact(&mut first).unwrap();
            assert_eq!(&first, b"HTTP/1.1 200");
            stream
        })
        .collect();
    server.get("/api/live/events").expect(429);
    drop(more);
    // Viewers without scripts see the same contents.
    let page = server.get("/live").expect(200).text();
    for says in ["db0.read", "<dt>left</dt>", "http-equiv=\"refresh\"", "live-heat"] {
        assert!(page.contains(says), "{says}\n{page:.3000}");
    }
    let overview = server.get("/").expect(200).text();
    assert!(
        overview.contains("In progress") && !overview.contains("Interrupted"),
        "{overview:.2000}"
    );
    server.send("/api/live/stop", "").expect(200);
    // The server also sends the end of the run, together with the path of the report.
    let end = lines.skip_while(|line| line != "event: end").nth(1).unwrap();
    let path = end.strip_prefix("data: ").unwrap();
    assert_eq!(server.live()["is_under_way"], false);
    assert_eq!(server.live()["ended"][0]["verdict"], "INCONCLUSIVE");
    let report = server.get(path).expect(200).text();
    assert!(report.contains("INCONCLUSIVE"), "{report:.2000}");
    sandbox.run(&["verify", "last"]).expect(0);
    // The run is recorded like a run that was started on the command line, and the next run may
    // start.
    sandbox.run(&["runs"]).expect(0).says("small");
    server.send("/api/runs", &plan_on(&allowed, "1s")).expect(200);
    support::wait_until("its end", || server.live()["is_under_way"] == false);
    assert_eq!(sandbox.bundles().len(), 2);
}

#[test]
fn a_sweep_is_started_from_the_page_and_its_points_have_one_report() {
    let sandbox = Sandbox::new();
    let allowed = sandbox.data();
    let server = Server::start(&sandbox, &["--allow-path", allowed.to_str().unwrap()]);
    let plan = format!(
        "version = 1\nname = \"depths\"\ndemonstration = true\n[target]\npath = \
         {:?}\n[workload.matrix]\nfile_size = \"4MiB\"\nqueue_depth = [1, 2, 4]\n[phases]\nmeasure \
         = \"1s\"\n[evidence]\nmin_measure = \"1s\"\ninterval = \"100ms\"\n",
        allowed.display().to_string()
    );
    let takes = server.send("/api/plans/check", &plan).expect(200).json()["takes"].to_string();
    assert!(takes.contains("3 points"), "{takes}");
    server.send("/api/runs", &plan).expect(200);
    support::wait_until("its end", || server.live()["is_under_way"] == false);
    let live = server.live();
    assert_eq!(live["failed"], Value::Null, "{live:#}");
    assert_eq!(live["ended"].as_array().unwrap().len(), 3, "{live:#}");
    let report = server.get(&format!("/runs/{}", live["together"].as_str().unwrap())).expect(200);
    assert!(report.text().contains("queue depth") || report.text().contains("depth"), "a sweep's");
    let reported = server.get("/api/runs").expect(200).json();
    assert!(reported.as_array().unwrap().iter().all(|run| run["experiment"] == live["together"]));
    let left: Vec<_> = std::fs::read_dir(&allowed).unwrap().flatten().collect();
    assert!(left.is_empty(), "its data is removed: {left:?}");
}

/// Returns a job with one stage for each section, on a directory. Each stage has the given
/// duration.
fn job_on(directory: &str, runtime: &str, sections: &[&str]) -> String {
    let global =
        format!("[global]\ndirectory={directory}\nsize=1m\nruntime={runtime}\nramp_time=1ms\n");
    let section = |name: &&str| format!("[{name}]\nstonewall\nrw=randrw\nbs=4k\n");
    global + &sections.iter().map(section).collect::<String>()
}

/// Waits for the end of a run and returns its state.
fn ended(server: &Server) -> Value {
    support::wait_until("its end", || server.live()["is_under_way"] == false);
    server.live()
}

#[test]
fn the_stages_of_a_fio_job_run_one_after_the_other_and_have_one_report() {
    let sandbox = Sandbox::new();
    let allowed = sandbox.data();
    let place = allowed.to_str().unwrap();
    let server = Server::start(&sandbox, &["--allow-path", place]);
    let job = job_on(place, "300ms", &["fill", HOSTILE]);
    let form = [("kind", "fio"), ("name", HOSTILE), ("job", job.as_str())];
    let checked = server.post("/api/plans/check", &form).expect(200).json();
    assert_eq!(checked["can_start"], true, "{checked:#}");
    assert!(checked["takes"].to_string().contains("2 stages, one after the other"), "{checked:#}");
    assert!(checked["notes"].to_string().contains("buffers"), "{checked:#}");
    assert_eq!(checked["stages"].as_array().unwrap().len(), 2, "{checked:#}");
    assert_eq!(checked["stages"][0]["name"], "1-fill", "{checked:#}");
    // The form is sent without a script.
    let page = server.post("/start", &[&form[..], &[("do", "check")]].concat()).expect(200).text();
    assert!(page.contains("stage 2 of 2"), "{page}");
    harmless(&page);
    server.post("/start", &[&form[..], &[("do", "start")]].concat()).expect(303);
    server.post("/api/runs", &form).expect(409);
    harmless(&server.get("/live").expect(200).text());
    let live = ended(&server);
    assert_eq!(live["failed"], Value::Null, "{live:#}");
    assert_eq!(live["ended"].as_array().unwrap().len(), 2, "{live:#}");
    assert!(live["part"].as_str().unwrap().starts_with("stage 2 of 2: 2-"), "{live:#}");
    let together = live["together"].as_str().unwrap();
    let report = server.get(&format!("/runs/{}", quoted(together))).expect(200).text();
    assert!(report.contains("2 stages ran one after the other"), "{report:.3000}");
    harmless(&report);
    let reported = server.get(&format!("/api/runs/{}", quoted(together))).expect(200).json();
    assert_eq!(reported["planned"].as_array().unwrap().len(), 2, "{reported:#}");
    assert_eq!(reported["stages"][0]["name"], "1-fill", "{reported:#}");
    sandbox.run(&["verify", together]).expect(0);
    let left: Vec<_> = std::fs::read_dir(&allowed).unwrap().flatten().collect();
    assert!(left.is_empty(), "its data is removed: {left:?}");
    // A single stage is an ordinary run. The path in the form replaces the path in the job.
    let one = "[only]\nsize=1m\nruntime=300ms\nramp_time=1ms\nrw=randread\ndirectory=/etc\n";
    let form = [("kind", "fio"), ("name", "one"), ("job", one), ("place", place)];
    server.post("/api/runs", &form).expect(200);
    let live = ended(&server);
    assert_eq!((&live["plan"], &live["together"]), (&"one".into(), &Value::Null), "{live:#}");
    assert_eq!(live["ended"].as_array().unwrap().len(), 1, "{live:#}");
}

#[test]
fn a_fio_job_is_refused_that_works_elsewhere_or_reads_files_and_says_what_to_do() {
    let sandbox = Sandbox::new();
    let (inside, outside) = (sandbox.data(), sandbox.path("outside"));
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, inside.join("way")).unwrap();
    let place = inside.to_str().unwrap();
    let server = Server::start(&sandbox, &["--allow-path", place]);
    let way = inside.join("way").display().to_string();
    let second_leads_out =
        job_on(place, "1s", &["a"]) + &format!("[b]\nstonewall\nrw=write\ndirectory={way}\n");
    let stages: Vec<String> = (0..101).map(|n| format!("s{n}")).collect();
    let stages: Vec<&str> = stages.iter().map(String::as_str).collect();
    let long = "x".repeat(180);
    for (job, says) in [
        (job_on("data", "1s", &["a"]), "is not an absolute path"),
        ("[a]\nrw=read\nsize=1m\nruntime=1\n".to_owned(), "has no target"),
        (job_on("/", "1s", &["a", "b"]), "not in any --allow-path"),
        (second_leads_out, "stage 2-b: "),
        (
            "[a]\nrw=read\nsize=1m\nruntime=1\nfilename=/dev/null\n".to_owned(),
            "it is not listed in any --allow-device",
        ),
        (job_on(place, "400h", &["a", "b"]), "33 days"),
        (job_on(place, "1s", &stages), "starts at most 100"),
        (job_on(place, "1s", &[&long, "b"]), "at most 160 are allowed"),
        (format!("#{}", "x".repeat(1 << 20)), "accepts at most 65536"),
        (" ".to_owned(), "the job is empty"),
    ] {
        let form = [("kind", "fio"), ("job", job.as_str())];
        let checked = server.post("/api/plans/check", &form).expect(200).json();
        assert_eq!(checked["can_start"], false, "{says}");
        let refused = checked["refused"].to_string();
        assert!(refused.contains(says), "{says}: {refused}");
        let refused = server.post("/api/runs", &form).expect(403).text();
        assert!(refused.contains(says), "{says}: {refused}");
    }
    for (line, says) in [
        ("include /etc/passwd", "includes another file"),
        ("read_iolog=/etc/passwd", "replays a trace"),
        ("size=${HOME}", "uses an environment variable"),
        ("ioengine=external:/tmp/x.so", "is omitted: the engine external"),
    ] {
        let job = format!("[a]\ndirectory={place}\nsize=1m\nruntime=1\nrw=read\n{line}\n");
        let form = [("kind", "fio"), ("job", job.as_str())];
        let checked = server.post("/api/plans/check", &form).expect(200).json();
        let problems = checked["problems"].to_string();
        assert!(problems.contains(says), "{says}: {problems}");
        server.post("/api/runs", &form).expect(400);
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert!(sandbox.bundles().is_empty());
}

#[test]
fn a_stage_whose_directory_became_a_link_meanwhile_is_not_begun() {
    let sandbox = Sandbox::new();
    let (inside, outside) = (sandbox.data(), sandbox.path("outside"));
    let second = inside.join("second");
    std::fs::create_dir(&outside).unwrap();
    std::fs::create_dir(&second).unwrap();
    let server = Server::start(&sandbox, &["--allow-path", inside.to_str().unwrap()]);
    let job = job_on(inside.to_str().unwrap(), "1500ms", &["a"])
        + &job_on(second.to_str().unwrap(), "300ms", &["b"]);
    server.post("/api/runs", &[("kind", "fio"), ("job", &job)]).expect(200);
    support::wait_until("the first stage", || {
        server.live()["part"].as_str().is_some_and(|part| part.starts_with("stage 1"))
    });
    std::fs::remove_dir(&second).unwrap();
    std::os::unix::fs::symlink(&outside, &second).unwrap();
    let live = ended(&server);
    assert_eq!(live["ended"].as_array().unwrap().len(), 1, "{live:#}");
    let says = live["failed"]["says"].as_str().unwrap();
    assert!(says.contains("not in any --allow-path"), "{says}");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_job_that_is_stopped_begins_no_further_stage() {
    let sandbox = Sandbox::new();
    let allowed = sandbox.data();
    let place = allowed.to_str().unwrap();
    let mut server = Server::start(&sandbox, &["--allow-path", place]);
    let job = job_on(place, "600s", &["a", "b"]);
    let form = [("kind", "fio"), ("name", "j"), ("job", job.as_str())];
    server.post("/api/runs", &form).expect(200);
    support::wait_until("the measurement", || server.live()["phase"]["kind"] == "measure");
    server.send("/api/live/stop", "").expect(200);
    let live = ended(&server);
    assert_eq!(live["ended"].as_array().unwrap().len(), 1, "{live:#}");
    let reported = server.get(&format!("/api/runs/{}", live["together"].as_str().unwrap()));
    let reported = reported.expect(200).json();
    assert_eq!(
        reported["planned"].as_array().unwrap().len(),
        2,
        "it says what was not run: {reported:#}"
    );
    assert_eq!(reported["stages"].as_array().unwrap().len(), 1, "{reported:#}");
    // If a server ends between two stages, the evidence of the earlier stages is complete.
    server.post("/api/runs", &form).expect(200);
    support::wait_until("the measurement", || server.live()["phase"]["kind"] == "measure");
    support::signal(&server.child, "-TERM");
    server.child.wait().unwrap();
    let listed = sandbox.run(&["runs", "--json"]).expect(0).json();
    let ends: Vec<&Value> = listed.as_array().unwrap().iter().map(|run| &run["end"]).collect();
    assert_eq!(ends, ["interrupted", "interrupted"], "{listed:#}");
    let left: Vec<_> = std::fs::read_dir(&allowed).unwrap().flatten().collect();
    assert!(left.is_empty(), "its data is removed: {left:?}");
}

/// A plan on the null target, with a number of clients that a search can change.
const ON_NOTHING: &str = "version = 1\nname = \"nothing\"\ndemonstration = true\n[target]\nnull = \
                          true\n[workload.matrix]\nfile_size = \"1MiB\"\n[phases]\nwarm_up = \
                          \"1ms\"\nmeasure = \"240ms\"\n[evidence]\nmin_measure = \
                          \"100ms\"\ninterval = \"10ms\"\n";

#[test]
fn a_load_line_is_searched_for_from_the_page_and_has_its_report() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let form = [("kind", "text"), ("plan", ON_NOTHING), ("find", "load-line")];
    let checked = server.post("/api/plans/check", &form).expect(200).json();
    assert_eq!(checked["can_start"], true, "{checked:#}");
    let takes = checked["takes"].to_string();
    assert!(takes.contains("queue depth from 1 to 1024: at most 16 steps"), "{takes}");
    assert!(takes.contains("(16 steps of 241 ms)"), "{takes}");
    let same = server.send("/api/plans/check?find=load-line", ON_NOTHING).expect(200).json();
    assert_eq!(checked["refused"], same["refused"]);
    server.post("/start", &[&form[..], &[("do", "start")]].concat()).expect(303);
    let live = ended(&server);
    assert_eq!(live["failed"], Value::Null, "{live:#}");
    assert!(live["part"].as_str().unwrap().starts_with("step "), "{live:#}");
    assert!(live["ended"].as_array().unwrap().len() > 1, "{live:#}");
    let together = live["together"].as_str().unwrap();
    let report = server.get(&format!("/runs/{together}")).expect(200).text();
    assert!(report.to_lowercase().contains("load line"), "{report:.3000}");
    let reported = server.get(&format!("/api/runs/{together}")).expect(200).json();
    assert_eq!(reported["knob"], "queue-depth", "{reported:#}");
    sandbox.run(&["verify", together]).expect(0);
    // Plans that cannot have a load line are rejected with the reason. Unknown words are rejected,
    // too.
    let lists = ON_NOTHING.replace("file_size", "queue_depth = [1, 2]\nfile_size");
    let short = ON_NOTHING.replace("240ms", "150ms");
    for (plan, says) in [(&lists, "each point of a sweep"), (&short, "whether the rate is steady")]
    {
        let refused = server.send("/api/runs?find=load-line", plan).expect(400).text();
        assert!(refused.contains(says), "{refused}");
    }
    server.send("/api/runs?find=everything", ON_NOTHING).expect(400);
    let page = server.post("/start", &[("kind", "text"), ("plan", ON_NOTHING), ("find", HOSTILE)]);
    harmless(&page.expect(200).text());
    let job = job_on("/x", "1s", &["a", "b"]);
    let form = [("kind", "fio"), ("job", job.as_str()), ("find", "load-line")];
    let refused = server.post("/api/runs", &form).expect(403).text();
    assert!(refused.contains("a different load line"), "{refused}");
}

/// Returns a plan for a small mail store on a model. `target` contains further lines of the target
/// section.
fn on_a_model(model: &str, target: &str) -> String {
    format!(
        "version = 1\nname = \"modelled\"\ndemonstration = true\n[target]\nmodel = \
         {model:?}\n{target}[workload.mailbox]\nmailboxes = 8\nmailbox_size = \"16MiB\"\ndatabases \
         = 2\nthreads = 4\n[phases]\nwarm_up = \"1s\"\nmeasure = \"20s\"\n[evidence]\nmin_measure = \
         \"10s\"\ninterval = \"1s\"\n"
    )
}

#[test]
fn a_plan_runs_on_a_model_without_a_place_and_within_bounds() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let plan = on_a_model("single-hdd", "[target.set]\n\"hdd.rotation_rpm\" = 15000\n");
    let checked = server.send("/api/plans/check", &plan).expect(200).json();
    assert_eq!(checked["can_start"], true, "{checked:#}");
    let takes = checked["takes"].to_string();
    assert!(takes.contains("of virtual time") && takes.contains("after 15 minutes"), "{takes}");
    server.send("/api/runs", &plan).expect(200);
    let live = ended(&server);
    assert_eq!(live["failed"], Value::Null, "{live:#}");
    assert!(live["classes"]["db0.read"]["count"].as_u64().is_some_and(|n| n > 0), "{live:#}");
    let run = live["ended"][0]["run_id"].as_str().unwrap();
    let report = server.get(&format!("/runs/{run}")).expect(200).text();
    assert!(report.contains("single-hdd"), "{report:.3000}");
    // The form contains a fio job with a load line; the target is the selected model.
    let job = "[a]\nrw=randread\nsize=64m\nruntime=2\nramp_time=1\n[b]\nstonewall\nrw=write\nbs=64k\nsize=64m\nruntime=2\nramp_time=1\n";
    let model = [("place_kind", "model"), ("place", "single-hdd")];
    let form = [&[("kind", "fio"), ("job", job)], &model[..]].concat();
    server.post("/api/runs", &form).expect(200);
    let live = ended(&server);
    assert_eq!((&live["failed"], live["ended"].as_array().unwrap().len()), (&Value::Null, 2));
    let mine = sandbox.path("mine.toml");
    std::fs::write(&mine, "secret").unwrap();
    let set = |line: &str| on_a_model("single-hdd", &format!("[target.set]\n{line}\n"));
    let with = |from: &str, to: &str| on_a_model("single-hdd", "").replace(from, to);
    let long = with("20s", "800h").replace("val = \"1s\"", "val = \"15s\"");
    let long = long.replace("databases = 2", "databases = 1");
    for (plan, says) in [
        (on_a_model(mine.to_str().unwrap(), ""), "does not read model files of this host"),
        (on_a_model("/etc/passwd", ""), "does not read model files of this host"),
        (set("\"hdd.rotation_rpm\" = 1e9"), "is not between"),
        (set("\"cache.unit_bytes\" = 1"), "cannot be changed here"),
        (with("16MiB", "1TiB"), "at most 4 TiB"),
        (with("databases = 2", "databases = 257"), "at most 256"),
        (with("threads = 4", "threads = 4\ncache = \"1TiB\""), "at most 64 GiB"),
        (with("\"1s\"\n", "\"10ms\"\n").replace("20s", "20h"), "at most 2000000"),
        (with("\"1s\"\n", "\"2m\"\n").replace("20s", "2h"), "at most 15 s"),
        (long, "33 days"),
    ] {
        let status = if says == "33 days" { 400 } else { 403 };
        let refused = server.send("/api/runs", &plan).expect(status);
        let refused = refused.text();
        assert!(refused.contains(says), "{says}: {refused}\n{plan}");
        assert!(!refused.contains("secret"), "{refused}");
    }
    assert_eq!(sandbox.bundles().len(), 2);
}

#[test]
fn nothing_is_started_that_is_not_allowed() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    let (inside, outside) = (sandbox.data(), sandbox.path("outside"));
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, inside.join("way")).unwrap();
    let without = Server::start(&sandbox, &[]);
    let refused = without.send("/api/runs", &plan_on(&inside, "1s")).expect(403).text();
    assert!(refused.contains("no --allow-path was given"), "{refused}");
    assert!(without.get("/start").expect(200).text().contains("does not start plans that write"));
    drop(without);
    let file = sandbox.path("tokens");
    std::fs::write(&file, "view 0123456789abcdef\nrun fedcba9876543210\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let options =
        ["--allow-path", inside.to_str().unwrap(), "--token-file", file.to_str().unwrap()];
    let server = Server::start(&sandbox, &options);
    let send = |token: &str, plan: &str| {
        let headers = format!("Authorization: Bearer {token}\r\nContent-Type: text/plain\r\n");
        server.ask("POST", "/api/runs", &headers, plan)
    };
    send("0123456789abcdef", &plan_on(&inside, "1s")).expect(403);
    // A run on a model needs no allowed path, but the user needs the role `run`.
    send("0123456789abcdef", &on_a_model("single-hdd", "")).expect(403);
    for (place, status) in [(outside.clone(), 403), (inside.join("way"), 403), ("/".into(), 403)] {
        let refused = send("fedcba9876543210", &plan_on(&place, "1s")).expect(status).text();
        assert!(refused.contains("not in any --allow-path"), "{refused}");
    }
    for target in ["device = \"/dev/null\"", "nfs = \"nfs://h/e\""] {
        let load = "[workload.matrix]\nfile_size = \"1MiB\"\n[phases]\nmeasure = \"10m\"\n";
        send("fedcba9876543210", &format!("[target]\n{target}\n{load}")).expect(403);
    }
    let touched = outside.join("touched");
    let event = format!("[[event]]\nname = \"e\"\nat = \"1ms\"\nrun = [\"touch\", {touched:?}]\n");
    let plan = format!("{}{event}", plan_on(&inside, "1s"));
    let refused = send("fedcba9876543210", &plan).expect(403).json();
    assert!(refused["error"]["message"].as_str().unwrap().contains("event \"e\""), "{refused}");
    // A token that may only read cannot answer a prompt.
    server.ask("POST", "/api/mark", "Authorization: Bearer 0123456789abcdef\r\n", "").expect(403);
    send("fedcba9876543210", HOSTILE).expect(400);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert!(sandbox.bundles().is_empty());
}

#[test]
fn a_run_that_was_killed_is_not_shown_as_one_that_runs() {
    let sandbox = Sandbox::new();
    let plan = sandbox.path("long.toml");
    std::fs::write(&plan, plan_on(&sandbox.data(), "600s")).unwrap();
    let mut run = sandbox.start(&["run", plan.to_str().unwrap(), "-q"]);
    let server = Server::start(&sandbox, &[]);
    support::wait_until("the run", || {
        server.get("/api/runs").expect(200).json()[0]["is_under_way"] == true
    });
    assert!(server.get("/").text().contains("In progress"));
    run.kill().unwrap();
    run.wait().unwrap();
    let page = server.get("/").expect(200).text();
    assert!(page.contains("Interrupted") && !page.contains("In progress"), "{page:.3000}");
    sandbox.run(&["runs"]).expect(0).says("did not finish");
}

/// The server reads the catalogue when it starts, and reports a ledger that changed later. On every
/// request, it compares the ledger with its cached copy.
#[test]
fn the_catalogue_is_read_before_anybody_asks_and_a_ledger_that_is_changed_meanwhile_is_told() {
    let sandbox = Sandbox::new();
    let ids = runs(&sandbox);
    let index = sandbox.path("cache/plimsoll/catalogue.sqlite3");
    std::fs::remove_file(&index).unwrap();
    let server = Server::start(&sandbox, &[]);
    support::wait_until("the index", || index.is_file());
    let shown = |run: &str| server.get(&format!("/runs/{run}"));
    assert!(shown(&ids[0]).expect(200).text().contains("Evidence (tar.gz)"));
    let ledger = sandbox.path("state/plimsoll/ledger.jsonl");
    let text = std::fs::read_to_string(&ledger).unwrap();
    std::fs::write(&ledger, text.replacen("small", "smell", 1)).unwrap();
    support::wait_until("the ledger's defect", || {
        server.get("/runs").text().contains("the previous line was changed or removed")
    });
    assert_ne!(shown(&ids[1]).status, 200, "a report is drawn from it no more");
    std::fs::write(&ledger, &text).unwrap();
    support::wait_until("the ledger as it was", || server.get("/runs").status == 200);
    shown(&ids[1]).expect(200);
}

#[test]
fn a_model_is_changed_and_says_what_the_command_says() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &[]);
    let page = server.get("/models/single-hdd").expect(200).text();
    assert!(page.contains("hdd.rotation_rpm"), "{page:.3000}");
    server.get("/models/nothing").expect(404);
    let load = [("mailboxes", "100"), ("mailbox_size", "64MiB"), ("iops", "0.1"), ("to", "2")];
    let ask = |more: &[(&str, &str)]| {
        server.post("/api/models/single-hdd", &[&load[..], more].concat()).expect(200).json()
    };
    let own = ask(&[]);
    let size = ["model", "size", "single-hdd", "--mailboxes", "100", "--mailbox-size", "64MiB"];
    let with = ["--iops", "0.1", "--field", "hdd.count", "--from", "1", "--to", "2", "--json"];
    let none = ["--failed-nodes", "0"];
    let reported = sandbox.run(&[&size[..], &with, &none].concat()).json();
    assert_eq!(own, reported, "the page says what the command says");
    let faster = ask(&[("hdd.seek_ms_mean", "6")]);
    let reads = |reported: &Value| reported["tried"][0]["read_latency_ns"].as_f64().unwrap();
    assert!(reads(&faster) < reads(&own), "{faster:#} {own:#}");
    let shown = server.post("/models/single-hdd", &load).expect(200).text();
    assert!(shown.contains("MODELLED") && shown.contains("load line"), "{shown:.4000}");
    let refused = server.post("/models/single-hdd", &[("mailboxes", "1e12")]).expect(200).text();
    assert!(refused.contains("role=\"alert\""), "{refused:.3000}");
    assert!(sandbox.bundles().is_empty());
}

/// Returns the metric names in a text: `plimsoll_` and the following characters, without the
/// suffixes of summaries.
fn metric_names(text: &str) -> std::collections::BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let found = text.match_indices("plimsoll_").map(|(at, _)| {
        let name = &text[at..];
        name[..name.find(|c| !is_part(c)).unwrap_or(name.len())].to_owned()
    });
    found.collect()
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist() {
    let sandbox = Sandbox::new();
    let ids = runs(&sandbox);
    let allowed = sandbox.data();
    let server = Server::start(&sandbox, &["--allow-path", allowed.to_str().unwrap()]);
    server.send("/api/runs", &plan_on(&allowed, "600s")).expect(200);
    let metrics = || server.get("/metrics").expect(200).text();
    // For an interval in which no operation completed, there is neither a rate nor a latency.
    let mut given = std::collections::BTreeSet::new();
    support::wait_until("the run's own", || {
        given.extend(metric_names(&metrics()));
        ["plimsoll_live_latency_seconds", "plimsoll_live_operations_per_second"]
            .iter()
            .all(|name| given.contains(*name))
    });
    server.send("/api/live/stop", "").expect(200);
    support::wait_until("its end", || server.live()["is_under_way"] == false);
    // A finished run has no current rates.
    let ended = metrics();
    assert!(ended.contains("plimsoll_live_under_way{plan=\"small\"} 0"), "{ended}");
    assert!(!ended.contains("plimsoll_live_operations_per_second"), "{ended}");
    let plan = std::fs::read_to_string(sandbox.path("plan.toml")).unwrap();
    assert!(plan.contains("[requirement]"), "limits have metrics too");
    given.extend(metric_names(&sandbox.run(&["report", &ids[0], "--export", "prometheus"]).stdout));
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../README.md");
    assert!(std::fs::read_to_string(readme).unwrap().contains("contrib/grafana/plimsoll.json"));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../contrib/grafana/plimsoll.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut requested = metric_names(&dashboard["templating"].to_string());
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let names = metric_names(target["expr"].as_str().unwrap());
            assert!(!names.is_empty(), "{panel}");
            requested.extend(names);
        }
    }
    let unknown: Vec<&String> = requested.difference(&given).collect();
    assert!(unknown.is_empty(), "{unknown:?} are not among {given:?}");
}

#[test]
fn a_server_that_is_ended_ends_its_run_in_order() {
    let sandbox = Sandbox::new();
    let allowed = sandbox.data();
    let mut server = Server::start(&sandbox, &["--allow-path", allowed.to_str().unwrap()]);
    server.send("/api/runs", &plan_on(&allowed, "600s")).expect(200);
    support::wait_until("the measurement", || server.live()["phase"]["kind"] == "measure");
    support::signal(&server.child, "-TERM");
    assert!(server.child.wait().unwrap().code().is_some(), "it ended of itself");
    let listed = sandbox.run(&["runs", "--json"]).expect(0).json();
    assert_eq!(listed[0]["end"], "interrupted", "{listed:#}");
    assert_eq!(listed[0]["verdict"], "INCONCLUSIVE", "{listed:#}");
    let left: Vec<_> = std::fs::read_dir(&allowed).unwrap().flatten().collect();
    assert!(left.is_empty(), "its data is removed: {left:?}");
}
