//! Signed order to run a plan. It is valid only for the named agents, for a single use, and for a
//! short time.
//!
//! Somebody who only has access to the broker must not be able to write to a disk. An agent accepts
//! an order only if it is signed by a key that the agent's operator trusts, has not expired, and
//! was not accepted before.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use plimsoll_evidence::run::{ExperimentKind, Membership};
use plimsoll_evidence::signature::{self, Signer};
use plimsoll_plan::{Plan, PlanErrors, ResolvedPlan, VariedValues};
use plimsoll_runner::error::RunnerError;
use plimsoll_runner::fleet::parse_plan;
use serde::{Deserialize, Serialize};

/// Version of the order format.
const VERSION: u32 = 1;
/// Time for which an order is valid.
pub const VALID_NS: u64 = 60_000_000_000;
/// Maximum accepted difference between the clocks of two hosts.
const CLOCK_SKEW_MAX_NS: u64 = 10_000_000_000;
/// Remedy for an order whose time does not agree with the agent's clock.
pub(crate) const SYNCHRONISE: &str = "synchronise the clocks of the two hosts";

/// An order to run a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    pub order_version: u32,
    /// Id of the fleet run.
    pub run_id: String,
    /// Random number that identifies the order.
    pub nonce: String,
    /// Time of issue in nanoseconds since 1970.
    pub issued_unix_ns: u64,
    /// Time of expiry in nanoseconds since 1970.
    pub expires_unix_ns: u64,
    pub agents: Vec<String>,
    /// File name of the plan.
    pub plan_name: String,
    /// Text of the plan. It is the same for every host.
    pub plan_text: String,
    /// Text of the fio job that the plan refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_text: Option<String>,
    /// Part of the plan that is run: a point of a sweep, a step of a search, or a target. `None`
    /// for the whole plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_text: Option<String>,
    /// Membership of the run in an experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<Membership>,
    /// True if the hosts must retain the data for the next run of the experiment.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_data: bool,
    /// True if the agents must only remove retained data and run nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_releases: bool,
    /// True if the agents must only report whether they would accept the plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_asks: bool,
}

/// A signed order, in the form that is sent. The signature covers the exact bytes of the text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SignedOrder {
    /// The order as JSON.
    pub order: String,
    /// Signature in the format of minisign; empty if the order is not signed.
    pub signature: String,
}

impl Order {
    /// Creates an order for these agents.
    ///
    /// # Errors
    /// No random bytes are available.
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

    /// Sets the time of issue, so that the time for which the order is valid starts again.
    pub fn issue(&mut self, now_unix_ns: u64) {
        self.issued_unix_ns = now_unix_ns;
        self.expires_unix_ns = now_unix_ns.saturating_add(VALID_NS);
    }

    /// Parses the plan, with `{host}` replaced by the name of the host.
    ///
    /// # Errors
    /// The plan is not valid.
    pub fn plan_of(&self, host: &str) -> Result<Plan, PlanErrors> {
        let text = self.plan_text.replace("{host}", host);
        parse_plan(&text, &self.plan_name, self.job_text.as_deref())
    }

    /// Resolves the plan for a host. Returns the part of the plan in the order, which must belong
    /// to the plan. Without a part in the order, returns the host's whole plan `own`.
    ///
    /// # Errors
    /// The reason why the part does not belong to the plan, or not to this host's version of the
    /// plan.
    pub fn part_of(&self, plan: &Plan, own: &Plan, host: &str) -> Result<ResolvedPlan, String> {
        let plan = plan.without_host_changes().map_err(|errors| errors.to_string())?;
        let part = match &self.resolved_text {
            None => plan.resolve(),
            Some(text) => {
                ResolvedPlan::from_toml(&text.replace("{host}", host)).map_err(|error| {
                    format!("the order contains a resolved plan that is not valid: {error}")
                })?
            }
        };
        plan.part_of_host(&part, &own.resolve(), variation(self.experiment.as_ref()))
    }

    /// Signs the order.
    ///
    /// # Errors
    /// The errors of [`Signer::sign`].
    pub fn sign(&self, signer: &Signer) -> Result<SignedOrder, RunnerError> {
        let order = serde_json::to_string(self).map_err(|error| {
            RunnerError::usage(format!("cannot encode the order as JSON: {error}"))
        })?;
        let signature = signer.sign(order.as_bytes(), &comment(&self.run_id))?;
        Ok(SignedOrder { order, signature })
    }
}

/// Returns which parameters the experiment varies in this run.
pub(crate) fn variation(experiment: Option<&Membership>) -> VariedValues {
    let Some(place) = experiment else { return VariedValues::default() };
    let is_step = place.kind == ExperimentKind::Tune;
    let load = place.arm.rsplit(' ').next().and_then(|load| load.parse().ok());
    VariedValues { is_swept: place.kind == ExperimentKind::Sweep, load: load.filter(|_| is_step) }
}

/// Returns 128 random bits, in hexadecimal.
///
/// # Errors
/// No random bytes are available.
pub(crate) fn nonce() -> Result<String, RunnerError> {
    let mut random = [0u8; 16];
    let read = fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random));
    read.map_err(|error| RunnerError::environment(format!("cannot read /dev/urandom: {error}")))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn comment(run_id: &str) -> String {
    format!("order of {run_id}")
}

/// Verifies that an order for `agent` is signed with one of the keys `trusted` and is currently
/// valid.
///
/// # Errors
/// The reason for refusing the order.
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
    let order: Order = serde_json::from_str(&signed.order).map_err(|error| {
        format!("the signed text is not an order in this version's format: {error}")
    })?;
    if order.order_version != VERSION || signed_comment != comment(&order.run_id) {
        return Err("the signed text is not an order in this version's format".to_owned());
    }
    if !order.agents.iter().any(|name| name == agent) {
        return Err(format!("the plan is for {}, not for {agent}", order.agents.join(", ")));
    }
    let valid_ns = order.expires_unix_ns.saturating_sub(order.issued_unix_ns);
    if now_unix_ns > order.expires_unix_ns || valid_ns > VALID_NS {
        // The agent cannot distinguish an old order from a clock that is ahead.
        return Err(format!(
            "the order has expired: by this host's clock, it was signed {} s ago, and an order is \
             valid for {} s. If it was sent just now, {SYNCHRONISE}",
            now_unix_ns.saturating_sub(order.issued_unix_ns) / 1_000_000_000,
            VALID_NS / 1_000_000_000,
        ));
    }
    if order.issued_unix_ns > now_unix_ns.saturating_add(CLOCK_SKEW_MAX_NS) {
        return Err(format!("the order's signing time is in the future: {SYNCHRONISE}"));
    }
    Ok(order)
}

/// File with the orders that agents have accepted. It is kept when an agent restarts.
#[derive(Clone, Debug)]
pub struct OrderLog {
    path: PathBuf,
}

impl OrderLog {
    #[must_use]
    pub fn open(path: PathBuf) -> Self {
        Self { path }
    }

    /// Records on disk that `agent` accepts an order. Called before any part of the order is
    /// executed.
    ///
    /// # Errors
    /// The reason for refusing the order: it was accepted before, or it cannot be recorded.
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
    fn an_order_needs_a_trusted_key_the_right_agent_and_a_valid_time() {
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
        refused(&signed, "a", NOW + 2 * VALID_NS, "120 s ago");
        refused(&signed, "a", NOW + 2 * VALID_NS, SYNCHRONISE);
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
        // The same key also signs other texts, such as evidence, which must not be accepted as
        // orders.
        let seal = own.sign(signed.order.as_bytes(), "seal of run").unwrap();
        refused(&SignedOrder { signature: seal, ..signed }, "a", NOW, "not an order");
    }

    #[test]
    fn an_order_is_accepted_once_even_after_a_restart() {
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
