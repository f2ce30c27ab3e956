//! Smallest set of permissions with which each user of the NATS server can work.
//!
//! The subjects that an agent may use end with its name. An agent can therefore neither send orders
//! nor start phases. The subject of a JetStream request contains the stream, the consumer and its
//! filter, so the server can restrict an agent to its own consumer (nats-server 2.9 and later
//! reject a consumer whose filter differs from the subject). Each user receives responses on a
//! prefix that no other user can read.

use crate::broker::{CARDS, Role, STREAM, bucket};

/// Permissions of one user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// Subjects for publishing.
    pub publish: Vec<String>,
    /// Subjects for subscribing.
    pub subscribe: Vec<String>,
}

#[must_use]
pub fn agent(name: &str) -> Permissions {
    let own = format!("agent-{name}");
    let go = format!("go-{name}");
    let objects = format!("OBJ_{}", bucket(name));
    let publish = [
        // Messages and card.
        format!("plimsoll.told.*.{name}"),
        format!("plimsoll.live.*.{name}"),
        format!("$KV.{CARDS}.{name}"),
        // An agent asks whether another agent with its name runs.
        format!("plimsoll.clock.{name}"),
        format!("$JS.API.STREAM.INFO.KV_{CARDS}"),
        format!("$JS.API.DIRECT.GET.KV_{CARDS}.$KV.{CARDS}.{name}"),
        // Orders.
        format!("$JS.API.STREAM.INFO.{STREAM}"),
        format!("$JS.API.CONSUMER.INFO.{STREAM}.{own}"),
        format!("$JS.API.CONSUMER.CREATE.{STREAM}.{own}.plimsoll.order.{name}"),
        format!("$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{own}"),
        format!("$JS.ACK.{STREAM}.{own}.>"),
        // Messages of the coordinator.
        format!("$JS.API.CONSUMER.DELETE.{STREAM}.{go}"),
        format!("$JS.API.CONSUMER.CREATE.{STREAM}.{go}.plimsoll.go.*.{name}"),
        format!("$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{go}"),
        // Evidence.
        format!("$O.{}.>", bucket(name)),
        format!("$JS.API.STREAM.INFO.{objects}"),
        format!("$JS.API.STREAM.MSG.GET.{objects}"),
        format!("$JS.API.STREAM.PURGE.{objects}"),
        format!("$JS.API.DIRECT.GET.{objects}.>"),
    ];
    let subscribe = [format!("plimsoll.clock.{name}"), format!("{}.>", Role::Agent(name).inbox())];
    Permissions { publish: publish.to_vec(), subscribe: subscribe.to_vec() }
}

#[must_use]
pub fn coordinator() -> Permissions {
    let publish = [
        "plimsoll.order.>".to_owned(),
        "plimsoll.go.>".to_owned(),
        "plimsoll.clock.*".to_owned(),
        "$KV.plimsoll-drained.>".to_owned(),
        "$O.>".to_owned(),
        "$JS.API.>".to_owned(),
        "$JS.ACK.>".to_owned(),
        "$JS.FC.>".to_owned(),
    ];
    let subscribe = ["plimsoll.live.>".to_owned(), format!("{}.>", Role::Coordinator.inbox())];
    Permissions { publish: publish.to_vec(), subscribe: subscribe.to_vec() }
}

impl Permissions {
    /// Formats the permissions for the server's configuration. They also permit responses to
    /// requests.
    #[must_use]
    pub fn text(&self, indent: &str) -> String {
        let list = |subjects: &[String]| {
            let lines = subjects.iter().map(|subject| format!("{indent}    {subject:?}\n"));
            format!("{{ allow: [\n{}{indent}  ] }}", lines.collect::<String>())
        };
        format!(
            "{{\n{indent}  publish: {}\n{indent}  subscribe: {}\n{indent}  allow_responses: true\n{indent}}}",
            list(&self.publish),
            list(&self.subscribe)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_permissions_of_an_agent_contain_its_name() {
        let all = agent("node1");
        for subject in all.publish.iter().chain(&all.subscribe) {
            let info = ["$JS.API.STREAM.INFO.plimsoll", "$JS.API.STREAM.INFO.KV_plimsoll-agents"];
            assert!(subject.contains("node1") || info.contains(&subject.as_str()), "{subject}");
        }
        let of_orders = |subject: &&String| subject.starts_with("plimsoll.order");
        assert!(!all.publish.iter().any(|subject| of_orders(&subject)));
        // In front of the agent's name, only the run id may be a wildcard.
        let wild = all.publish.iter().filter(|subject| subject.contains('*'));
        let runs = ["told.*.node1", "live.*.node1", "go.*.node1"];
        assert!(wild.clone().all(|subject| runs.iter().any(|run| subject.ends_with(run))));
        assert_eq!(wild.count(), 3);
    }
}
