#![allow(clippy::unwrap_used)]
use super::*;

const STORE: &str = "[requirement]\ndb_read_latency_avg = \"20ms\"\nbandwidth = \
                     \"1MB/s\"\n[target]\ndatabases = [\"/d0\", \"/d1\", \"/d2\", \"/d3\"]\nlogs = \
                     [\"/l0\", \"/l1\"]\n[workload.mailbox]\nmailboxes = 800\nmailbox_size = \
                     \"16MiB\"\ndatabases = 8\nthreads = 16\ncache = \"1GiB\"\n";
const EXPORTS: &str = "[requirement]\niops = 1000\n[target]\nnfs = [\"nfs://f/a\", \"nfs://f/b\", \
                       \"nfs://f/c\", \"nfs://f/d\"]\n[[workload.matrix]]\nname = \
                       \"data\"\nfile_size = \"1GiB\"\nclients = 8\narrival = \"poisson\"\nrate = \
                       900\nworking_set = \"2GiB\"\n[[workload.matrix]]\nname = \"log\"\nfile_size \
                       = \"1MiB\"\nreads = 0\nrate = 100\n";

fn fleet(hosts: usize) -> String {
    let names: Vec<String> = (0..hosts).map(|at| format!("\"h{at}\"")).collect();
    format!("[fleet]\ncarries = \"share\"\nnames = [{}]\n", names.join(", "))
}

fn parse(text: &str) -> Plan {
    Plan::parse(text, "p.toml").unwrap_or_else(|errors| panic!("{errors}"))
}

/// Returns the whole plan and the share of each host.
fn shared(text: &str, hosts: usize) -> (ResolvedPlan, Vec<ResolvedPlan>) {
    let plan = parse(&format!("{text}{}", fleet(hosts)));
    let own = |at| plan.on_host(&format!("h{at}"), &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let all: Vec<ResolvedPlan> = (0..hosts).map(|at| own(at).resolve()).collect();
    assert!(all.iter().all(|own| own.fleet.is_none()));
    (plan.resolve(), all)
}

fn refused(text: &str, hosts: usize) -> String {
    let plan = parse(&format!("{text}{}", fleet(hosts)));
    plan.on_host("h0", &[]).unwrap_err().to_string()
}

fn sum(all: &[ResolvedPlan], of: impl Fn(&ResolvedPlan) -> f64) -> f64 {
    all.iter().map(of).sum()
}

#[test]
fn shares_of_a_mail_store_are_the_store() {
    for (hosts, text) in
        [(2, STORE.to_owned()), (4, STORE.replace("logs = [\"/l0\", \"/l1\"]\n", ""))]
    {
        let (whole, own) = shared(&text, hosts);
        let store = |plan: &ResolvedPlan| plan.workload.mailbox().unwrap().clone();
        let counts: [fn(&Mailbox) -> f64; 5] = [
            |store| store.mailboxes as f64,
            |store| f64::from(store.databases),
            |store| f64::from(store.threads),
            |store| store.target_iops_per_s,
            |store| store.cache_bytes as f64,
        ];
        for of in counts {
            assert_eq!(sum(&own, |plan| of(&store(plan))), of(&store(&whole)));
        }
        let required = |plan: &ResolvedPlan| plan.requirement.clone().unwrap();
        let sums: [fn(&Requirement) -> f64; 3] = [
            |required| required.iops_per_s.unwrap(),
            |required| required.page_fault_stalls_max_per_s.unwrap(),
            |required| required.bandwidth_bytes_per_s.unwrap() as f64,
        ];
        for of in sums {
            assert_eq!(sum(&own, |plan| of(&required(plan))), of(&required(&whole)));
        }
        assert!(own.iter().all(|plan| required(plan).limits == required(&whole).limits));
        // Each database stays in the directory that the whole plan assigns to its global number.
        let places = |plan: &ResolvedPlan| match plan.targets[0].kind.clone() {
            TargetKind::Directories { databases, logs } => (databases, logs),
            other => panic!("{other:?}"),
        };
        let at = |list: &[String], number: usize| list[number % list.len()].clone();
        let (databases, logs) = places(&whole);
        for number in 0..8 {
            let (own_databases, own_logs) = places(&own[number % hosts]);
            assert_eq!(at(&own_databases, number / hosts), at(&databases, number));
            assert_eq!(at(&own_logs, number / hosts), at(&logs, number));
        }
        assert!(
            own.iter()
                .all(|p| store(p).database_initial_bytes == store(&whole).database_initial_bytes)
        );
    }
}

#[test]
fn shares_of_streams_are_the_streams() {
    for hosts in [2, 4] {
        let (whole, own) = shared(EXPORTS, hosts);
        let matrix = |plan: &ResolvedPlan| plan.workload.matrix().unwrap().clone();
        for (at, stream) in matrix(&whole).streams.iter().enumerate() {
            let rate = |stream: &Stream| match stream.arrival {
                Arrival::Poisson { rate_per_s, .. } => rate_per_s,
                Arrival::Closed { rate_cap_per_s } => rate_cap_per_s.unwrap(),
                _ => 0.0,
            };
            let of = |plan: &ResolvedPlan| matrix(plan).streams[at].clone();
            assert_eq!(sum(&own, |plan| rate(&of(plan))), rate(stream));
            assert_eq!(sum(&own, |plan| f64::from(of(plan).clients)), f64::from(stream.clients));
            assert_eq!(
                sum(&own, |plan| of(plan).files.files() as f64),
                stream.files.files() as f64
            );
            let set = |stream: &Stream| stream.files.working_set_bytes.unwrap_or(0) as f64;
            assert_eq!(sum(&own, |plan| set(&of(plan))), set(stream));
        }
        let mut places: Vec<String> =
            own.iter().flat_map(|plan| plan.targets[0].places()).collect();
        places.sort();
        assert_eq!(places, whole.targets[0].places());
        let iops = |plan: &ResolvedPlan| plan.requirement.as_ref().unwrap().iops_per_s.unwrap();
        assert_eq!(sum(&own, iops), 1000.0);
    }
}

#[test]
fn rejects_numbers_that_do_not_divide_evenly() {
    for (text, hosts, says) in [
        (STORE.to_owned(), 4, "2 directories of logs"),
        (STORE.to_owned(), 3, "4 directories of databases"),
        (EXPORTS.to_owned(), 8, "4 exports cannot be divided equally among 8"),
        (STORE.replace("databases = 8", "databases = 7"), 2, "7 databases"),
        (STORE.replace("mailboxes = 800", "mailboxes = 801"), 2, "801 mailboxes"),
        (STORE.replace("threads = 16", "threads = 15"), 2, "15 threads"),
        (STORE.replace("threads = 16", "threads = \"auto\""), 2, "auto"),
        (EXPORTS.replace("clients = 8", "clients = 7"), 2, "7 clients"),
        (
            EXPORTS
                .replace(
                    "nfs = [\"nfs://f/a\", \"nfs://f/b\", \"nfs://f/c\", \"nfs://f/d\"]",
                    "path = \"/mnt/a\"",
                )
                .replace("working_set = \"2GiB\"\n", ""),
            2,
            "the target (path) cannot be divided among hosts",
        ),
    ] {
        let said = refused(&text, hosts);
        assert!(said.contains(says) && said.contains("fleet.carries"), "{said}");
    }
    let plan = parse(&format!("{STORE}{}", fleet(2)));
    assert!(plan.on_host("other", &[]).unwrap_err().to_string().contains("not in `names`"));
    let wrong = |fleet: &str| {
        Plan::parse(&format!("{STORE}[fleet]\n{fleet}"), "p").unwrap_err().to_string()
    };
    for fleet in ["agents = 2", "names = [\"a\"]", "names = [\"a\", \"b\", \"a\"]"] {
        let said = wrong(&format!("carries = \"share\"\n{fleet}\n"));
        assert!(said.contains("contains the agent of each share exactly once"), "{said}");
    }
    let both = "carries = \"share\"\nnames = [\"a\", \"b\"]\n[[fleet.host]]\nname = \"a\"\nset = { seed = 3 }\n";
    assert!(wrong(both).contains("requires the same plan on all hosts"));
    assert!(wrong("carries = \"part\"\n").contains("carries"));
}

#[test]
fn a_host_with_the_whole_plan_changes_only_the_seed() {
    let whole = parse(&format!("{STORE}[fleet]\nnames = [\"a\", \"b\"]\n"));
    assert!(!whole.resolve().to_toml().unwrap().contains("carries"));
    let own = whole.on_host("a", &[]).unwrap().resolve();
    assert_eq!(own, ResolvedPlan { seed: own.seed, ..parse(STORE).resolve() });
}
