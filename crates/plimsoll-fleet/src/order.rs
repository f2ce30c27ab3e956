//! A plan on its way to the agents: signed, for some hosts, once, and not for long.
//!
//! Reaching the broker must not be enough to write to a disk: an agent takes an order only where a key that its operator
//! named signed it, its time is not over, and it did not take it before.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use plimsoll_evidence::run::{ExperimentKind, Membership};
use plimsoll_evidence::signature::{self, Signer};
use plimsoll_plan::{Plan, PlanErrors, ResolvedPlan, Turned};
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::fleet::plan_given;
use serde::{Deserialize, Serialize};

/// The version of orders.
const VERSION: u32 = 1;
/// How long an order can be taken.
pub const VALID_NS: u64 = 60_000_000_000;
/// Clocks of hosts may differ by so much.
const CLOCK_SKEW_MAX_NS: u64 = 10_000_000_000;

/// An order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// [`VERSION`].
    pub order_version: u32,
    /// The fleet's run.
    pub run_id: String,
    /// What no other order has.
    pub nonce: String,
    /// When it was made, nanoseconds since 1970.
    pub issued_unix_ns: u64,
    /// When it ends to hold.
    pub expires_unix_ns: u64,
    /// The agents that it is for.
    pub agents: Vec<String>,
    /// What the plan's file is called.
    pub plan_name: String,
    /// The plan, as every host gets it.
    pub plan_text: String,
    /// The fio job that the plan names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_text: Option<String>,
    /// What of the plan is run, where that is not all: a point of a sweep, a step of a search, a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_text: Option<String>,
    /// The run's place in an experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Membership>,
    /// Whether the data stays for the next run of the experiment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_data: bool,
    /// Whether nothing is run, and data that stayed is removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_releases: bool,
    /// Whether it is only asked who would take the plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_asks: bool,
}

/// An order as it is sent: signed is the text to the byte.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SignedOrder {
    /// The order as JSON.
    pub order: String,
    /// Its signature as minisign writes it; empty where it was not signed.
    pub signature: String,
}

impl Order {
    /// A new one for these agents.
    ///
    /// # Errors
    /// No randomness to be had.
    pub fn new(
        run_id: &str,
        agents: Vec<String>,
        plan: &Plan,
        now_unix_ns: u64,
    ) -> Result<Self, RunnerError> {
        Ok(Self {
            order_version: VERSION,
            run_id: run_id.to_owned(),
            nonce: nonce()?,
            issued_unix_ns: now_unix_ns,
            expires_unix_ns: now_unix_ns.saturating_add(VALID_NS),
            agents,
            plan_name: plan.source_name().to_owned(),
            plan_text: plan.text().to_owned(),
            job_text: plan.job().map(str::to_owned),
            resolved_text: None,
            experiment: None,
            keeps_data: false,
            only_releases: false,
            only_asks: false,
        })
    }

    /// Has it hold from now on.
    pub fn issue(&mut self, now_unix_ns: u64) {
        self.issued_unix_ns = now_unix_ns;
        self.expires_unix_ns = now_unix_ns.saturating_add(VALID_NS);
    }

    /// The plan with `host` for its name in it.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn plan_of(&self, host: &str) -> Result<Plan, PlanErrors> {
        let text = self.plan_text.replace("{host}", host);
        plan_given(&text, &self.plan_name, self.job_text.as_deref())
    }

    /// What of the plan a host carries: all of its `own`, or the part that the order names, which the plan has to give.
    ///
    /// # Errors
    /// A sentence why that is no part of the plan, or none of the host's own.
    pub fn part_of(&self, plan: &Plan, own: &Plan, host: &str) -> Result<ResolvedPlan, String> {
        let plan = plan.on_any_host().map_err(|errors| errors.to_string())?;
        let part = match &self.resolved_text {
            None => plan.resolve(),
            Some(text) => ResolvedPlan::from_toml(&text.replace("{host}", host))
                .map_err(|error| format!("the resolved plan in the order is not valid: {error}"))?,
        };
        plan.part_on(&part, &own.resolve(), variation(self.experiment.as_ref()))
    }

    /// Signs it.
    ///
    /// # Errors
    /// As [`Signer::sign`].
    pub fn sign(&self, signer: &Signer) -> Result<SignedOrder, RunnerError> {
        let order = serde_json::to_string(self).map_err(|error| {
            RunnerError::usage(format!("cannot encode the order as JSON: {error}"))
        })?;
        let signature = signer.sign(order.as_bytes(), &comment(&self.run_id))?;
        Ok(SignedOrder { order, signature })
    }
}

/// What an experiment turns in a run of it.
pub(crate) fn variation(experiment: Option<&Membership>) -> Turned {
    let Some(place) = experiment else { return Turned::default() };
    let is_step = place.kind == ExperimentKind::Tune;
    let load = place.arm.rsplit(' ').next().and_then(|load| load.parse().ok());
    Turned { is_swept: place.kind == ExperimentKind::Sweep, load: load.filter(|_| is_step) }
}

/// What nobody guesses: 128 random bits.
///
/// # Errors
/// No randomness to be had.
pub(crate) fn nonce() -> Result<String, RunnerError> {
    let mut random = [0u8; 16];
    let read = fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random));
    read.map_err(|error| RunnerError::environment(format!("cannot read /dev/urandom: {error}")))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn comment(run_id: &str) -> String {
    format!("order of {run_id}")
}

/// Reads an order for `agent`, where one of `trusted` signed it and it holds now.
///
/// # Errors
/// A sentence that says why it is refused.
pub fn verify(
    signed: &SignedOrder,
    trusted: &[String],
    agent: &str,
    now_unix_ns: u64,
) -> Result<Order, String> {
    if signed.signature.is_empty() {
        return Err("the plan is not signed".to_owned());
    }
    let check_key =
        |key: &String| signature::check(key, signed.order.as_bytes(), &signed.signature);
    let Some(signed_comment) = trusted.iter().find_map(|key| check_key(key).ok()) else {
        return Err("the plan was not signed with a key that this agent trusts".to_owned());
    };
    let order: Order = serde_json::from_str(&signed.order)
        .map_err(|error| format!("the signed text is not an order of this version: {error}"))?;
    if order.order_version != VERSION || signed_comment != comment(&order.run_id) {
        return Err("the signed text is not an order of this version".to_owned());
    }
    if !order.agents.iter().any(|name| name == agent) {
        return Err(format!("the plan is for {}, not for {agent}", order.agents.join(", ")));
    }
    let valid_ns = order.expires_unix_ns.saturating_sub(order.issued_unix_ns);
    if now_unix_ns > order.expires_unix_ns || valid_ns > VALID_NS {
        return Err("the order has expired".to_owned());
    }
    if order.issued_unix_ns > now_unix_ns.saturating_add(CLOCK_SKEW_MAX_NS) {
        return Err(
            "the order was signed in the future: synchronise the clocks of both hosts".to_owned()
        );
    }
    Ok(order)
}

/// The orders that an agent took, in a file that outlives it.
#[derive(Clone, Debug)]
pub struct OrderLog {
    path: PathBuf,
}

impl OrderLog {
    /// Those in this file.
    #[must_use]
    pub fn open(path: PathBuf) -> Self {
        Self { path }
    }

    /// Notes an order as taken by `agent`, on the disk, before anything of it is carried out.
    ///
    /// # Errors
    /// A sentence that says why it is refused: it was taken before, or cannot record.
    pub fn record(&self, order: &Order, agent: &str) -> Result<(), String> {
        let failed = |error: std::io::Error| {
            format!("cannot record the order in {}: {error}", self.path.display())
        };
        let known = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(failed(error)),
        };
        let entry = format!("{} {agent}", order.nonce);
        if known.lines().any(|line| line == entry) {
            return Err("the order was replayed: this agent has accepted it before".to_owned());
        }
        if let Some(parent) = self.path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        append(&self.path, &entry).map_err(failed)
    }
}

fn append(path: &Path, entry: &str) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(format!("{entry}\n").as_bytes())?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plimsoll_evidence::signature::make_keys;

    use super::*;

    const NOW: u64 = 1_800_000_000_000_000_000;

    fn signer(directory: &Path, name: &str) -> Signer {
        let path = directory.join(name);
        make_keys(&path, None).unwrap();
        Signer::read(&path, || None).unwrap()
    }

    fn order() -> Order {
        let text = "version = 1\n[target]\nnull = true\n[workload.matrix]\n";
        let plan = Plan::parse(text, "p.toml").unwrap();
        Order::new("run", vec!["a".into(), "b".into()], &plan, NOW).unwrap()
    }

    #[test]
    fn an_order_is_taken_of_a_trusted_key_by_those_it_is_for_and_while_it_holds() {
        let directory = tempfile::tempdir().unwrap();
        let (own, foreign) = (signer(directory.path(), "own"), signer(directory.path(), "foreign"));
        let trusted = [own.public().to_owned()];
        let order = order();
        let signed = order.sign(&own).unwrap();
        assert_eq!(verify(&signed, &trusted, "a", NOW + 1).unwrap(), order);
        let refused = |signed: &SignedOrder, agent: &str, now, message: &str| {
            let error = verify(signed, &trusted, agent, now).unwrap_err();
            assert!(error.contains(message), "{error}");
        };
        refused(&signed, "c", NOW, "not for c");
        refused(&signed, "a", NOW + VALID_NS + 1, "has expired");
        refused(&signed, "a", NOW - CLOCK_SKEW_MAX_NS - 1, "in the future");
        refused(&order.sign(&foreign).unwrap(), "a", NOW, "with a key that this agent trusts");
        let unsigned = SignedOrder { signature: String::new(), ..signed.clone() };
        refused(&unsigned, "a", NOW, "not signed");
        let changed = signed.order.replace("version = 1", "version = 2");
        refused(
            &SignedOrder { order: changed, ..signed.clone() },
            "a",
            NOW,
            "with a key that this agent trusts",
        );
        let for_ever = Order { expires_unix_ns: u64::MAX, ..order.clone() };
        refused(&for_ever.sign(&own).unwrap(), "a", NOW, "has expired");
        // What the same key signed for another end is no order: evidence, for one.
        let seal = own.sign(signed.order.as_bytes(), "seal of run").unwrap();
        refused(&SignedOrder { signature: seal, ..signed }, "a", NOW, "not an order");
    }

    #[test]
    fn an_order_is_taken_once_also_by_an_agent_that_was_started_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state/taken");
        let order = order();
        OrderLog::open(path.clone()).record(&order, "a").unwrap();
        let again = OrderLog::open(path.clone()).record(&order, "a").unwrap_err();
        assert!(again.contains("replayed"), "{again}");
        OrderLog::open(path).record(&order, "b").unwrap();
        let nowhere = OrderLog::open("/proc/nowhere/taken".into()).record(&order, "a").unwrap_err();
        assert!(nowhere.contains("cannot record"), "{nowhere}");
    }
}
