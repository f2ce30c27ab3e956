//! `[fleet]`.

use std::collections::BTreeMap;

use super::target::small;
use crate::overlay::Change;
use crate::raw::{FleetHostRaw, FleetRaw};
use crate::read::list::OneOrMore;
use crate::read::value::Name;
use crate::read::{Cx, Position};
use crate::resolved::{Carries, HostChange, OnLostHost, Placement};

/// Maximum number of agents. A larger number is probably a typing error.
const AGENTS_MAX: u64 = 100_000;

pub(super) fn fleet(raw: &FleetRaw, cx: &mut Cx) -> Placement {
    let names = |given: &Option<crate::read::Located<OneOrMore<Name>>>| -> Vec<String> {
        let items = given.as_ref().map_or(&[][..], |given| given.value.items.as_slice());
        items.iter().map(|(name, _)| name.0.trim().to_owned()).collect()
    };
    let agents = raw.agents.as_ref().map(|given| small(given.value.0, AGENTS_MAX, &given.at, cx));
    let placement = Placement {
        agents,
        names: names(&raw.names),
        labels: names(&raw.labels),
        carries: raw.carries.as_ref().map_or(Carries::Whole, |given| given.value),
        on_lost_host: raw.on_lost_host.as_ref().map_or(OnLostHost::Continue, |given| given.value),
        hosts: Vec::new(),
    };
    if let (Some(count), Some(given)) = (agents, &raw.names)
        && placement.names.len() != count as usize
    {
        let says = format!("lists {} agents, but `agents` is {count}", placement.names.len());
        cx.fail(&given.at, says, "remove one of the two fields");
    }
    if let Some(given) = raw.carries.as_ref().filter(|given| given.value == Carries::Share) {
        check_shares(raw, &given.at, &placement, cx);
    }
    let hosts = raw.host.as_ref().map_or(&[][..], |given| given.value.items.as_slice());
    let hosts = hosts.iter().filter_map(|(host, at)| changes(host, at, cx)).collect();
    Placement { hosts, ..placement }
}

/// Checks that the plan assigns the shares to agents by `names`. The assignment must not depend on
/// which agents are connected.
fn check_shares(raw: &FleetRaw, at: &Position, placement: &Placement, cx: &mut Cx) {
    let mut names = placement.names.clone();
    names.sort();
    names.dedup();
    if names.len() < 2 || names.len() < placement.names.len() {
        let help = "set names = [\"node1\", \"node2\"]: shares are assigned in this order";
        cx.fail(
            at,
            "requires a list `names` that contains the agent of each share exactly once",
            help,
        );
    }
    if let Some(host) = &raw.host {
        let help = "remove this section, or set carries = \"whole\"";
        cx.fail(
            &host.at,
            "changes fields on some hosts, but carries = \"share\" requires the same plan on all \
             hosts",
            help,
        );
    }
}

fn changes(raw: &FleetHostRaw, at: &Position, cx: &mut Cx) -> Option<HostChange> {
    let text = |name: &Option<crate::read::Located<Name>>| {
        name.as_ref().map(|given| given.value.0.trim().to_owned())
    };
    let (name, label) = (text(&raw.name), text(&raw.label));
    if name.is_some() == label.is_some() {
        cx.fail(
            at,
            "does not have exactly one of `name` and `label`",
            "set either the `name` of one agent, or a `label` that several agents have",
        );
    }
    let Some(set) = &raw.set else {
        cx.missing(
            &raw.at.unwritten("set"),
            "is missing",
            "list the fields, for example set = { \"target.path\" = \"/mnt/b\" }",
        );
        return None;
    };
    let mut fields = BTreeMap::new();
    for (field, value) in &set.value.0 {
        if let Err(says) = Change::parse(&format!("{field}={value}")) {
            cx.fail(&set.at, says, "use field names from docs/plan.md");
        } else if field == "version" || field.split('.').next() == Some("fleet") {
            let says = format!("`{field}` belongs to the plan, not to a host");
            cx.fail(&set.at, says, "remove this field from `set`");
        }
        fields.insert(field.clone(), value.clone());
    }
    Some(HostChange { name, label, set: fields })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::Plan;

    const PLAN: &str = "version = 1\nname = \"p\"\n[target]\npath = \
                        \"/mnt/a\"\n[workload.matrix]\nfile_size = \"1GiB\"\n[fleet]\nlabels = \
                        [\"rack=1\"]\nagents = 2\n[[fleet.host]]\nname = \"b\"\nset = { \
                        \"target.path\" = \"/mnt/b\", \"workload.matrix.queue_depth\" = 8 \
                        }\n[[fleet.host]]\nlabel = \"slow\"\nset = { \
                        \"workload.matrix.queue_depth\" = 1 }\n";

    fn wrong(from: &str, to: &str) -> String {
        assert!(PLAN.contains(from));
        Plan::parse(&PLAN.replace(from, to), "p.toml").unwrap_err().to_string()
    }

    #[test]
    fn a_host_runs_the_plan_with_its_own_fields_and_without_the_fleet() {
        let plan = Plan::parse(PLAN, "p.toml").unwrap();
        let placed = plan.resolve().fleet.unwrap();
        assert_eq!((placed.agents, placed.labels), (Some(2), vec!["rack=1".to_owned()]));
        let of = |name: &str, labels: &[&str]| {
            let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
            let own = plan.on_host(name, &labels).unwrap();
            assert!(own.resolve().fleet.is_none() && !own.text().contains("fleet"));
            let resolved = own.resolve();
            let depth = resolved.workload.matrix().unwrap().streams[0].queue_depth;
            (resolved.targets[0].database_directories().len(), resolved.to_toml().unwrap(), depth)
        };
        let (_, a, depth_a) = of("a", &["rack=1"]);
        let (_, b, depth_b) = of("b", &["rack=1"]);
        assert!(a.contains("/mnt/a") && b.contains("/mnt/b") && !b.contains("/mnt/a"));
        assert_eq!((depth_a, depth_b), (4, 8));
        assert_eq!(of("b", &["slow"]).2, 1, "the last counts");
        let plain = Plan::parse(PLAN.split("[fleet]").next().unwrap(), "p.toml").unwrap();
        let own = plain.on_host("b", &[]).unwrap().resolve();
        assert_eq!(own, crate::ResolvedPlan { seed: own.seed, ..plain.resolve() });
    }

    /// The storage system's counters include the I/O of all hosts. If a single host polled the
    /// counters, it would also count the I/O of the other hosts.
    #[test]
    fn only_the_coordinator_polls_the_storage_system() {
        let metrics = "[observe]\nmedia = \"hdd\"\n[observe.metrics]\nurl = \
                       \"http://h:1/m\"\n[observe.metrics.names]\n\"read_source.cache\" = \
                       \"hits\"\n";
        for text in
            [format!("{PLAN}{metrics}"), PLAN.replace("[fleet]", &format!("{metrics}[fleet]"))]
                .into_iter()
                .chain([format!("{}{metrics}", PLAN.split("[fleet]").next().unwrap())])
        {
            let plan = Plan::parse(&text, "p.toml").unwrap();
            assert_eq!(plan.resolve().observe.metrics.len(), 1);
            let own = plan.on_host("b", &[]).unwrap().resolve().observe;
            assert!(own.metrics.is_empty() && own.media.is_some());
        }
    }

    #[test]
    fn errors_of_a_fleet_name_their_field() {
        let says = [
            ("agents = 2", "agents = 0", "fleet.agents"),
            ("agents = 2", "agents = 2\nnames = [\"a\"]", "lists 1 agents"),
            ("name = \"b\"\n", "", "exactly one of `name` and `label`"),
            (
                "name = \"b\"\n",
                "name = \"b\"\nlabel = \"c\"\n",
                "exactly one of `name` and `label`",
            ),
            ("\"target.path\"", "\"fleet.agents\"", "belongs to the plan, not to a host"),
            (
                "label = \"slow\"\nset = { \"workload.matrix.queue_depth\" = 1 }",
                "label = \"slow\"",
                "fleet.host[1].set",
            ),
            ("agents = 2", "agent = 2", "fleet.agent"),
        ];
        for (from, to, expected) in says {
            let said = wrong(from, to);
            assert!(said.contains(expected), "{said}");
        }
        let plan = PLAN.replace("queue_depth\" = 8", "queue_depht\" = 8");
        let plan = Plan::parse(&plan, "p.toml").unwrap();
        assert!(plan.on_host("b", &[]).unwrap_err().to_string().contains("queue_depht"));
    }
}
