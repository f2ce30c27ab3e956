//! Fuzz test of the API of `plimsoll serve`: a small seeded generator creates requests from the
//! API's own description. No response may be a 5xx. The description must contain every status, and
//! every body must match its schema.
//!
//! `PLIMSOLL_FUZZ_SEED` selects other requests, and `PLIMSOLL_FUZZ_REQUESTS` sets the number of
//! requests.

use std::collections::BTreeMap;

use crate::support::server::{Answer, Server, quoted};
use crate::support::{Sandbox, SmallPlan};
use serde_json::{Value, json};

/// Default number of requests.
const REQUESTS: u64 = 1_500;
/// Maximum length of a request head.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Values for text parameters.
const TEXTS: [&str; 20] = [
    "",
    " ",
    "last",
    "1",
    "-1",
    "99999999999999999999",
    "1e309",
    "NaN",
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(2)>",
    "../../../etc/passwd",
    "/etc/passwd",
    "a\0b",
    "\u{202e}\u{feff}ü€😀",
    "%00%ff%2e%2e",
    "' OR 1=1 --",
    "{{ 7 * 7 }}{% include 'layout.html' %}",
    "2026-02-30",
    "2026-11-23",
    "x\r\nSet-Cookie: plimsoll=1",
];

/// Pseudo-random numbers that only depend on the seed (xorshift64*, Vigna 2016).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// Generates text: a known problematic text, several of these joined, or random bytes.
    fn text(&mut self) -> String {
        match self.below(6) {
            0 => self.of(&TEXTS).repeat(1 + self.below(400)),
            1 => (0..self.below(40))
                .map(|_| char::from_u32(self.next() as u32 % 0x300).unwrap())
                .collect(),
            _ => (*self.of(&TEXTS)).to_owned(),
        }
    }

    /// Generates a value that matches a schema, or a value that does not.
    fn value(&mut self, schema: &Value) -> String {
        if self.one_in(4) {
            return self.text();
        }
        if let Some(words) = schema["enum"].as_array() {
            return self.of(words).as_str().unwrap().to_owned();
        }
        match schema["type"].as_str() {
            Some("integer" | "number") => {
                let edges = ["minimum", "maximum"].map(|edge| schema[edge].as_i64().unwrap_or(0));
                let near = *self.of(&edges) + self.below(3) as i64 - 1;
                near.to_string()
            }
            Some("boolean") => (*self.of(&["true", "false"])).to_owned(),
            _ if schema["format"] == "date" => "2026-11-23".to_owned(),
            _ => self.text(),
        }
    }

    /// Returns the text with some bytes changed, omitted or repeated.
    fn spoilt(&mut self, text: &str) -> String {
        let mut chars: Vec<char> = text.chars().collect();
        for _ in 0..1 + self.below(4) {
            let at = self.below(chars.len().max(1));
            match self.below(4) {
                0 if at < chars.len() => drop(chars.remove(at)),
                1 => chars.truncate(at),
                2 => chars
                    .splice(at.min(chars.len())..at.min(chars.len()), self.text().chars())
                    .for_each(drop),
                _ if at < chars.len() => chars[at] = *self.of(&['"', '[', '9', '\0', '=', 'é']),
                _ => {}
            }
        }
        chars.into_iter().collect()
    }
}

/// An operation in the API's description.
struct Operation {
    path: String,
    method: String,
    about: Value,
}

fn operations(described: &Value) -> Vec<Operation> {
    let paths = described["paths"].as_object().unwrap();
    let of = |(path, methods): (&String, &Value)| {
        let methods = methods.as_object().unwrap().clone();
        let path = path.clone();
        let one = move |(method, about)| Operation { path: path.clone(), method, about };
        methods.into_iter().map(one).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of).collect()
}

/// A request with its body.
#[derive(Debug)]
struct Request {
    method: String,
    path: String,
    headers: String,
    body: String,
}

/// Generator of requests.
struct Maker<'a> {
    chance: Chance,
    names: Vec<String>,
    bodies: Vec<String>,
    csrf: &'a str,
}

impl Maker<'_> {
    fn request(&mut self, operation: &Operation) -> Request {
        let mut path = operation.path.clone();
        let mut query: Vec<String> = Vec::new();
        for parameter in operation.about["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap();
            let value = match parameter["in"].as_str() {
                Some("path") => match self.chance.one_in(3) {
                    true => self.chance.text(),
                    false => self.chance.of(&self.names).clone(),
                },
                _ if name == "run" => self.chance.of(&self.names).clone(),
                _ => self.chance.value(&parameter["schema"]),
            };
            if parameter["in"] == "path" {
                path = path.replace(&format!("{{{name}}}"), &quoted(&value));
            } else if parameter["in"] == "query" {
                // The parameter is absent, present once, or repeated.
                (0..self.chance.below(3))
                    .for_each(|_| query.push(format!("{name}={}", quoted(&value))));
            }
        }
        if self.chance.one_in(8) {
            let (name, value) = (self.chance.text(), self.chance.text());
            query.push(format!("{}={}", quoted(&name), quoted(&value)));
        }
        if !query.is_empty() {
            path = format!("{path}?{}", query.join("&"));
        }
        let mut headers = String::new();
        if !self.chance.one_in(10) {
            headers.push_str(&format!("X-CSRF-Token: {}\r\n", self.csrf));
        }
        let kinds = ["text/plain", "application/json", "application/x-www-form-urlencoded", "x"];
        headers.push_str(&format!("Content-Type: {}\r\n", self.chance.of(&kinds)));
        let body = match operation.method.as_str() {
            "get" => String::new(),
            _ => match self.chance.below(4) {
                0 => self.chance.text(),
                1 => self.chance.of(&self.bodies).clone(),
                _ => {
                    let body = self.chance.of(&self.bodies).clone();
                    self.chance.spoilt(&body)
                }
            },
        };
        Request { method: operation.method.to_uppercase(), path, headers, body }
    }
}

/// Returns a schema with the schemas that it refers to, at the location where validators expect
/// them.
fn whole(schema: &Value, described: &Value) -> Value {
    let mut whole = schema.clone();
    whole["components"] = described["components"].clone();
    whole
}

/// Checks that the description contains the status of a response, and that the body matches its
/// schema.
fn fits(operation: &Operation, described: &Value, answer: &Answer) -> Result<(), String> {
    let status = answer.status.to_string();
    if answer.status >= 500 {
        return Err(format!("{status}: {:.500}", answer.text()));
    }
    let mut response = &operation.about["responses"][&status];
    if let Some(name) = response["$ref"].as_str() {
        response = described.pointer(name.trim_start_matches('#')).unwrap();
    }
    if response.is_null() {
        return Err(format!("{status} is not described: {:.500}", answer.text()));
    }
    let Some(schema) = response["content"]["application/json"].get("schema") else { return Ok(()) };
    let reported: Value =
        serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
    let validator = jsonschema::validator_for(&whole(schema, described)).unwrap();
    validator
        .validate(&reported)
        .map_err(|error| format!("{status}: {error} at {}", error.instance_path()))
}

/// A fio job of two stages.
const JOB: &str =
    "[global]\ndirectory=/x\nsize=1m\nruntime=1\n[a]\nrw=write\n[b]\nstonewall\nrw=randread\n";

/// Returns request bodies. Each of them is valid for at least one route.
fn bodies(sandbox: &Sandbox) -> Vec<String> {
    let result =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../judge/import/tests/results/randread.json");
    let plan = SmallPlan::on(&sandbox.data()).text();
    let form = |fields: &[(&str, &str)]| -> String {
        let fields = fields.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        fields.collect::<Vec<_>>().join("&")
    };
    vec![
        plan,
        std::fs::read_to_string(result).unwrap(),
        form(&[("kind", "mailbox"), ("place", "/x"), ("workload.mailbox.mailboxes", "8")]),
        form(&[("kind", "matrix"), ("place_kind", "device"), ("more", "a=[1,{b=2}]")]),
        form(&[("kind", "fio"), ("name", "j"), ("job", JOB)]),
        form(&[("kind", "fio"), ("job", JOB), ("place", "/x"), ("find", "load-line")]),
        form(&[("kind", "matrix"), ("place", "/x"), ("find", "load-line")]),
        form(&[("mailboxes", "10"), ("mailbox_size", "64MiB"), ("iops", "0.1"), ("to", "2")]),
        json!({"jobs": [{"read": {"iops": 1e308, "lat_ns": null}}], "fio version": "fio-3"})
            .to_string(),
        "[".repeat(10_000),
    ]
}

#[test]
fn no_question_is_answered_by_what_the_description_does_not_name() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("PLIMSOLL_FUZZ_SEED").unwrap_or(20_261_123).max(1);
    let requests = number("PLIMSOLL_FUZZ_REQUESTS").unwrap_or(REQUESTS);
    let sandbox = Sandbox::new();
    let mut plan = SmallPlan::on(&sandbox.data());
    (plan.mailboxes, plan.measure) = (8, "1s".into());
    let path = sandbox.plan(&plan);
    (0..2).for_each(|_| drop(sandbox.run(&["run", &path, "-q"])));
    // No target is allowed, so no request can start a run.
    let server = Server::start(&sandbox, &[]);
    let described = server.get("/api/openapi.json").expect(200).json();
    let operations = operations(&described);
    assert!(operations.len() > 12, "{}", operations.len());
    let listed = server.get("/api/runs").expect(200).json();
    let mut names: Vec<String> =
        ["last", "small", "single-hdd", "nothing"].map(str::to_owned).into();
    let ids =
        listed.as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap().to_owned());
    names.extend(ids);
    let csrf = server.csrf();
    let bodies = bodies(&sandbox);
    let mut maker = Maker { chance: Chance(seed), names, bodies, csrf: &csrf };
    let mut answers: BTreeMap<String, BTreeMap<u16, u64>> = BTreeMap::new();
    for number in 0..requests {
        let operation = &operations[(number % operations.len() as u64) as usize];
        let request = maker.request(operation);
        let Request { method, path, headers, body } = &request;
        let answer = server.ask(method, path, headers, body);
        let at = format!("{method} {}", operation.path);
        *answers.entry(at).or_default().entry(answer.status).or_default() += 1;
        // An oversized head is rejected before routing.
        if [414, 431].contains(&answer.status) && path.len() > HEAD_BYTES_MAX / 2 {
            continue;
        }
        if let Err(says) = fits(operation, &described, &answer) {
            panic!(
                "seed {seed}, request {number}: {says}\n{method} {path:.1000}\n{headers}\n{body:.1000}"
            );
        }
    }
    println!("seed {seed}: {requests} requests, {answers:#?}");
    let requested = |status: u16| answers.values().filter(|of| of.contains_key(&status)).count();
    assert!(
        requested(200) > 8 && requested(400) > 5 && requested(404) > 2,
        "it reaches the routes: {answers:#?}"
    );
    assert_eq!(sandbox.bundles().len(), 2, "nothing was started");
    server.get("/").expect(200);
}
