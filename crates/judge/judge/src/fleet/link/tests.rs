#![allow(clippy::unwrap_used)]
use super::*;
use crate::rules::fixtures::{self, SECOND_NS, SECONDS};

const GBIT: u64 = 1_000_000_000;

/// Creates a network interface that received data at this share of its speed.
fn card(name: &str, speed_bits_per_s: u64, share: f64) -> Interface {
    let received_bytes = (share * (speed_bits_per_s / 8 * SECONDS) as f64) as u64;
    Interface {
        name: name.into(),
        hardware: Some(true),
        below: Some(Vec::new()),
        speed_bits_per_s: Some(speed_bits_per_s),
        duplex: Some("full".into()),
        carrier_changes: Some(0),
        counters: Some(LinkCounters {
            received_bytes,
            received_packets: 1_000_000,
            sent_packets: 1_000_000,
            ..LinkCounters::default()
        }),
        ..Interface::default()
    }
}

fn over(interfaces: Vec<Interface>) -> Bundle {
    let mut bundle = fixtures::reads_with("path = \"/x\"", "nfs = [\"nfs://h/e\"]");
    let tcp = Tcp {
        received_segments: 1_000_000,
        sent_segments: 1_000_000,
        sent_again_segments: 0,
        early_segments: Some(0),
    };
    let (from_ns, to_ns) = (5 * SECOND_NS, (5 + SECONDS) * SECOND_NS);
    bundle.observed.links =
        Some(Links { from_ns, to_ns, interfaces, tcp: Some(tcp), namespace: None });
    bundle
}

fn changed(change: fn(&mut Links)) -> Bundle {
    let mut bundle = over(vec![card("eth0", 10 * GBIT, 0.05)]);
    change(bundle.observed.links.as_mut().unwrap());
    bundle
}

fn counters(links: &mut Links) -> &mut LinkCounters {
    links.interfaces[0].counters.as_mut().unwrap()
}

#[test]
fn each_way_in_which_a_link_holds_a_host_back_is_named_with_its_numbers() {
    let well = changed(|_| ());
    assert_eq!(causes(&well, &[&well, &well]), Vec::<String>::new());
    type Change = fn(&mut Links);
    let cases: [(&str, Change); 8] = [
        (
            "its link (eth0) has a speed of 1 Gb/s and was used to 97 % of it, while the links of \
             the other hosts have at least 10 Gb/s",
            |links| links.interfaces[0] = card("eth0", GBIT, 0.97),
        ),
        (
            "its link (eth0, 10 Gb/s) was used to 95 % of its speed, but the links of the other hosts at most to 5.0 %",
            |links| links.interfaces[0] = card("eth0", 10 * GBIT, 0.95),
        ),
        ("half duplex", |links| links.interfaces[0].duplex = Some("half".into())),
        ("went down or came up 4 times", |l| l.interfaces[0].carrier_changes = Some(4)),
        ("damaged packets: 3000 of 2000000 (0.15 %)", |l| counters(l).received_errors = 3_000),
        ("dropped packets: 3000 of 2000000", |l| counters(l).sent_drops = 3_000),
        (
            "retransmitted TCP segments: 20000 of 1000000 (2.00 %), but at most 0.00 % on the other hosts",
            |links| {
                links.tcp.as_mut().unwrap().sent_again_segments = 20_000;
            },
        ),
        ("TCP segments out of order", |links| {
            links.tcp.as_mut().unwrap().early_segments = Some(50_000);
        }),
    ];
    for (words, change) in cases {
        let found = causes(&changed(change), &[&well, &well]);
        assert_eq!(found.len(), 1, "{words}: {found:?}");
        assert!(found[0].contains(words), "{words}: {found:?}");
        assert!(causes(&changed(change), &[&changed(change)]).is_empty(), "all alike: {words}");
        assert!(causes(&changed(change), &[&fixtures::reads()]).is_empty(), "unknown: {words}");
    }
}

#[test]
fn a_handful_is_no_cause() {
    let well = changed(|_| ());
    // Three cases do not count as a cause: less than a thousandth of the segments was resent, few
    // segments were sent in total, or the host resent less than 1.5 times as many as another host.
    let few = changed(|links| links.tcp.as_mut().unwrap().sent_again_segments = 900);
    let seldom = changed(|links| {
        let tcp = links.tcp.as_mut().unwrap();
        (tcp.sent_segments, tcp.sent_again_segments) = (500, 50);
    });
    let much = changed(|links| links.tcp.as_mut().unwrap().sent_again_segments = 20_000);
    let more = changed(|links| links.tcp.as_mut().unwrap().sent_again_segments = 29_000);
    assert!(causes(&few, &[&well]).is_empty() && causes(&seldom, &[&well]).is_empty());
    assert!(causes(&more, &[&well, &much]).is_empty());
    assert_eq!(causes(&more, &[&well]).len(), 1);
}

#[test]
fn a_slower_link_that_is_hardly_used_is_no_cause() {
    let idle = over(vec![card("eth0", GBIT, 0.05)]);
    assert!(causes(&idle, &[&changed(|_| ())]).is_empty());
}

#[test]
fn a_bond_is_as_fast_as_its_links_together_and_as_full_as_the_fullest() {
    let bond = |share| {
        let top = Interface {
            hardware: Some(false),
            below: Some(vec!["eth0".into(), "eth1".into()]),
            ..card("bond0", 20 * GBIT, 0.5)
        };
        over(vec![top, card("eth0", 10 * GBIT, 0.2), card("eth1", 10 * GBIT, share)])
    };
    assert_eq!(links::speed(&bond(0.2)).unwrap().bits_per_s, 20 * GBIT);
    let found = causes(&bond(0.95), &[&bond(0.2)]);
    assert!(found[0].contains("its link (eth0, eth1, 20 Gb/s) was used to 95 %"), "{found:?}");
    let aside = over(vec![card("eth0", 10 * GBIT, 0.2), card("mgmt", GBIT / 10, 0.5)]);
    assert_eq!(
        links::speed(&aside).unwrap().bits_per_s,
        10 * GBIT,
        "an interface aside is no link of the load"
    );
}

#[test]
fn a_speed_that_is_no_hardwares_or_is_exceeded_is_not_believed() {
    let made_up = Interface { hardware: Some(false), ..card("veth", 10 * GBIT, 0.95) };
    assert_eq!(links::speed(&over(vec![made_up])), None);
    assert_eq!(links::speed(&over(vec![card("eth0", 10 * GBIT, 1.5)])), None);
    let unknown = Interface { speed_bits_per_s: None, ..card("eth0", 10 * GBIT, 0.5) };
    let found = over(vec![unknown, card("eth1", GBIT, 0.97)]);
    assert_eq!(links::speed(&found), None, "of one it is not known");
    assert!(says(&found).unwrap().starts_with("eth0 received 596.0 MiB/s"), "{:?}", says(&found));
    assert_eq!(says(&fixtures::reads()), None);
}
