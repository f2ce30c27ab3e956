//! Network interfaces during the measurement: traffic, speed and errors.

use plimsoll_evidence::Bundle;
use plimsoll_evidence::observed::{Interface, LinkCounters, Links};

use crate::number::{Letters, Unit};
use crate::table::{Cell, Column, Table};

/// Returns the table of one host; empty if no interface was observed or there was no traffic.
pub(super) fn table(bundle: &Bundle) -> Table {
    let mut table =
        Table::new("Network interfaces, according to the kernel's counters", columns().into());
    let Some(links) = &bundle.observed.links else { return table };
    table.rows = links.interfaces.iter().filter(|one| is_shown(one)).map(row).collect();
    table.note = note(links);
    table
}

/// Returns the table of several hosts.
pub(crate) fn table_of_hosts<'a>(hosts: impl Iterator<Item = (&'a str, &'a Bundle)>) -> Table {
    let mut all = vec![Column::words("host", "host")];
    all.extend(columns());
    let mut table = Table::new("Network interfaces of each host", all);
    for (name, bundle) in hosts {
        let interfaces = bundle.observed.links.iter().flat_map(|links| &links.interfaces);
        for one in interfaces.filter(|one| is_shown(one)) {
            let mut cells = vec![Cell::text(name)];
            cells.extend(row(one));
            table.rows.push(cells);
        }
    }
    table.note = PROGRAMS.to_owned();
    table
}

const PROGRAMS: &str = "The counts include traffic of other programs. Bytes that pass through \
                        several interfaces are counted at each of them.";

fn columns() -> [Column; 7] {
    [
        Column::words("interface", "interface"),
        Column::words("speed", "speed"),
        Column::of(Unit::Size, "received", "received_bytes"),
        Column::of(Unit::Size, "sent", "sent_bytes"),
        Column::of(Unit::Count, "errors", "errors").rank(1),
        Column::of(Unit::Count, "drops", "drops").rank(1),
        Column::words("on", "below").rank(2),
    ]
}

/// Returns true if the table shows the interface. Interfaces without traffic are omitted.
fn is_shown(one: &Interface) -> bool {
    one.counters.is_none_or(|counters| counters.received_bytes > 0 || counters.sent_bytes > 0)
}

fn row(one: &Interface) -> Vec<Cell> {
    let unit = |unit, of: fn(&LinkCounters) -> u64| {
        Cell::observed(unit, one.counters.as_ref().map(|counters| of(counters) as f64))
    };
    let speed = one.speed_bits_per_s.map(|speed| match (one.duplex.as_deref(), one.hardware) {
        (Some("half"), _) => format!("{}, half duplex", bits(speed)),
        (_, Some(true)) => bits(speed),
        // Virtual drivers report a fixed speed.
        _ => format!("{} nominal", bits(speed)),
    });
    let below = one.below.as_ref().map(|below| below.join(", "));
    let words = |text: Option<String>| text.map_or(Cell::unknown(), Cell::text);
    vec![
        Cell::text(one.name.as_str()),
        if one.loopback { Cell::text("") } else { words(speed) },
        unit(Unit::Size, |c| c.received_bytes),
        unit(Unit::Size, |c| c.sent_bytes),
        unit(Unit::Count, |c| c.received_errors.saturating_add(c.sent_errors)),
        unit(Unit::Count, |c| c.received_drops.saturating_add(c.sent_drops)),
        words(below),
    ]
}

fn bits(bits_per_s: u64) -> String {
    match bits_per_s {
        bits if bits >= 1_000_000_000 => format!("{} Gb/s", bits as f64 / 1e9),
        bits => format!("{} Mb/s", bits as f64 / 1e6),
    }
}

fn note(links: &Links) -> String {
    let Some(tcp) = links.tcp else { return PROGRAMS.to_owned() };
    let show = |count: u64| Unit::Count.show(count as f64, Letters::Unicode);
    format!(
        "{PROGRAMS} TCP sent {} segments, {} of them retransmitted.",
        show(tcp.sent_segments),
        show(tcp.sent_again_segments)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_told_in_the_unit_of_links() {
        assert_eq!(
            (bits(100_000_000), bits(2_500_000_000)),
            ("100 Mb/s".into(), "2.5 Gb/s".into())
        );
    }

    #[test]
    fn an_interface_that_moved_nothing_is_left_out_and_an_unknown_one_is_not() {
        let with = |counters| Interface { counters, ..Interface::default() };
        assert!(is_shown(&with(None)) && !is_shown(&with(Some(LinkCounters::default()))));
        let cells = row(&with(None));
        assert!(cells[2] == Cell::unknown() && cells[1] == Cell::unknown());
    }

    #[test]
    fn what_a_virtual_interface_says_of_its_speed_is_nominal() {
        let speed = |hardware, duplex: &str| {
            let (speed_bits_per_s, duplex) = (Some(10_000_000_000), Some(duplex.to_owned()));
            row(&Interface { hardware, speed_bits_per_s, duplex, ..Interface::default() })[1]
                .clone()
        };
        assert_eq!(speed(Some(true), "full"), Cell::text("10 Gb/s"));
        assert_eq!(speed(Some(false), "full"), Cell::text("10 Gb/s nominal"));
        assert_eq!(speed(Some(true), "half"), Cell::text("10 Gb/s, half duplex"));
    }
}
