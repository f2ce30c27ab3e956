//! Reads the counters of network interfaces and TCP in the network namespace of this process. The
//! sources are `/proc/net/dev`, `/proc/net/snmp` and `/proc/net/netstat` (kernel:
//! Documentation/networking/statistics.rst, snmp_counter.rst). Interface properties are from
//! `/sys/class/net` (Documentation/ABI/testing/sysfs-class-net).
//!
//! `/proc/net` shows the network namespace of the process. `/sys/class/net` shows the namespace in
//! which `/sys` was mounted; after `nsenter`, this is the namespace of the host. `/sys/class/net`
//! is used only if both directories list the same interfaces with the same counts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use plimsoll_evidence::observed::{Interface, LinkCounters, Links, Tcp};

use crate::sysfs::{self, Sysfs};

/// Maximum number of interfaces for which the series contains rows. A container host may have
/// hundreds of interfaces.
const SERIES_MAX: usize = 16;
const LOOPBACK: &str = "lo";

/// Values of the counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Reading {
    interfaces: BTreeMap<String, LinkCounters>,
    tcp: Option<Tcp>,
}

/// Properties of a network interface, read from `/sys`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct InterfaceProperties {
    hardware: bool,
    below: Vec<String>,
    speed_bits_per_s: Option<u64>,
    duplex: Option<String>,
    carrier_changes: Option<u64>,
}

/// Observes network interfaces and TCP.
#[derive(Clone, Debug, Default)]
pub struct LinkWatch {
    /// Counters and properties at the start of the phase; `None` if they are not readable.
    phase_start: Option<(Reading, BTreeMap<String, InterfaceProperties>)>,
    last: Option<Reading>,
    /// Properties of the interfaces, read before the phase.
    early_properties: Option<BTreeMap<String, InterfaceProperties>>,
    /// Interfaces that appeared, disappeared or were reset during the phase.
    discontinuous: BTreeSet<String>,
    from_ns: u64,
    /// Interfaces for which the series contains rows.
    series_names: BTreeSet<String>,
}

impl LinkWatch {
    /// Reads the properties in `/sys`. This is done before the phase, because some drivers and
    /// configuration tools make it slow.
    pub fn look(&mut self) {
        self.early_properties = Some(read_host_properties().unwrap_or_default());
    }

    /// Starts to count the totals. `since_start_ns` is the time since the start of the run.
    pub fn begin(&mut self, since_start_ns: impl Fn() -> u64) {
        let early_properties = self.early_properties.take();
        let traits = early_properties.unwrap_or_else(|| read_host_properties().unwrap_or_default());
        self.phase_start = Reading::now().map(|reading| (reading, traits));
        self.last = self.phase_start.as_ref().map(|(reading, _)| reading.clone());
        self.from_ns = since_start_ns();
        self.discontinuous.clear();
    }

    /// Reads the counters. For each counter, calls `gauge` with its increase and with its name in
    /// the series.
    pub fn sample(&mut self, gauge: impl FnMut(String, f64)) {
        self.follow(Reading::now(), gauge);
    }

    fn follow(&mut self, now: Option<Reading>, mut gauge: impl FnMut(String, f64)) {
        let last = std::mem::replace(&mut self.last, now);
        let Some((last, now)) = last.as_ref().zip(self.last.as_ref()) else { return };
        let known = last.interfaces.keys().chain(now.interfaces.keys());
        for name in known.collect::<BTreeSet<&String>>() {
            let rise = last.interfaces.get(name).zip(now.interfaces.get(name));
            let Some(rise) = rise.and_then(|(then, now)| risen(then, now)) else {
                self.discontinuous.insert(name.clone());
                continue;
            };
            if rise.received_bytes + rise.sent_bytes > 0 && self.series_names.len() < SERIES_MAX {
                self.series_names.insert(name.clone());
            }
            if self.series_names.contains(name) {
                gauge(format!("link.{name}.received_bytes"), rise.received_bytes as f64);
                gauge(format!("link.{name}.sent_bytes"), rise.sent_bytes as f64);
            }
        }
        if let Some(rise) = last.tcp.zip(now.tcp).and_then(|(then, now)| tcp_risen(&then, &now)) {
            gauge("tcp.sent_segments".into(), rise.sent_segments as f64);
            gauge("tcp.sent_again_segments".into(), rise.sent_again_segments as f64);
        }
    }

    /// Returns the totals since the start of the phase; `None` if the counters are not readable.
    pub fn end(&mut self, since_start_ns: impl Fn() -> u64) -> Option<Links> {
        let traits = read_host_properties();
        self.follow(Reading::now(), |_, _| ());
        let namespace = fs::read_link("/proc/self/ns/net").ok();
        let namespace = namespace.map(|link| link.to_string_lossy().into_owned());
        let links = self.total(traits)?;
        Some(Links { namespace, to_ns: since_start_ns(), ..links })
    }

    fn total(&mut self, traits: Option<BTreeMap<String, InterfaceProperties>>) -> Option<Links> {
        let ((phase_start, traits_before), now) = (self.phase_start.take()?, self.last.as_ref()?);
        let interface = |name: &String| {
            let rise = phase_start.interfaces.get(name).zip(now.interfaces.get(name));
            let rise = rise.and_then(|(then, now)| risen(then, now));
            let own = traits.as_ref().and_then(|traits| traits.get(name));
            let changes = |traits: Option<&InterfaceProperties>| {
                traits.and_then(|traits| traits.carrier_changes)
            };
            Interface {
                name: name.clone(),
                loopback: name == LOOPBACK,
                hardware: own.map(|own| own.hardware),
                below: own.map(|own| own.below.clone()),
                speed_bits_per_s: own.and_then(|own| own.speed_bits_per_s),
                duplex: own.and_then(|own| own.duplex.clone()),
                carrier_changes: changes(own)
                    .zip(changes(traits_before.get(name)))
                    .and_then(|(now, then)| now.checked_sub(then)),
                counters: rise.filter(|_| !self.discontinuous.contains(name)),
            }
        };
        let names =
            phase_start.interfaces.keys().chain(now.interfaces.keys()).chain(&self.discontinuous);
        let names: BTreeSet<&String> = names.collect();
        let mut interfaces: Vec<Interface> = names.into_iter().map(interface).collect();
        interfaces.retain(|one| {
            let idle = one.counters == Some(LinkCounters::default());
            !idle || one.loopback || one.hardware == Some(true)
        });
        let tcp = phase_start.tcp.zip(now.tcp).and_then(|(then, now)| tcp_risen(&then, &now));
        Some(Links { from_ns: self.from_ns, interfaces, tcp, ..Links::default() })
    }
}

impl Reading {
    fn now() -> Option<Self> {
        let text = |name: &str| fs::read_to_string(Path::new("/proc/net").join(name)).ok();
        let interfaces = interfaces(&text("dev")?)?;
        let tcp = text("snmp").and_then(|snmp| tcp(&snmp, text("netstat").as_deref()));
        Some(Self { interfaces, tcp })
    }
}

/// Parses `/proc/net/dev`. After two header lines, each line contains `name:` and sixteen counters.
/// `None` if the text has any other format.
fn interfaces(text: &str) -> Option<BTreeMap<String, LinkCounters>> {
    let one = |line: &str| {
        // The name of an interface can contain any character except space, slash and colon (the
        // kernel's dev_valid_name).
        let (name, numbers) = line.split_once(':')?;
        let numbers: Vec<u64> =
            numbers.split_ascii_whitespace().map(|n| n.parse().ok()).collect::<Option<_>>()?;
        let [
            rx,
            rx_packets,
            rx_errors,
            rx_drops,
            _,
            _,
            _,
            _,
            tx,
            tx_packets,
            tx_errors,
            tx_drops,
            ..,
        ] = numbers[..]
        else {
            return None;
        };
        let counters = LinkCounters {
            received_bytes: rx,
            received_packets: rx_packets,
            received_errors: rx_errors,
            received_drops: rx_drops,
            sent_bytes: tx,
            sent_packets: tx_packets,
            sent_errors: tx_errors,
            sent_drops: tx_drops,
        };
        Some((name.trim().to_owned(), counters))
    };
    text.lines().skip(2).map(one).collect()
}

/// Returns a counter of a protocol. One line contains the names, and the next line with the same
/// prefix contains the values.
fn counter(text: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'));
    let at = lines.next()?.split_ascii_whitespace().position(|title| title == name)?;
    lines.next()?.split_ascii_whitespace().nth(at)?.parse().ok()
}

fn tcp(snmp: &str, netstat: Option<&str>) -> Option<Tcp> {
    Some(Tcp {
        received_segments: counter(snmp, "Tcp", "InSegs")?,
        sent_segments: counter(snmp, "Tcp", "OutSegs")?,
        sent_again_segments: counter(snmp, "Tcp", "RetransSegs")?,
        early_segments: netstat.and_then(|text| counter(text, "TcpExt", "TCPOFOQueue")),
    })
}

/// Returns the increase of the counters between two readings; `None` if a counter was reset.
fn risen(then: &LinkCounters, now: &LinkCounters) -> Option<LinkCounters> {
    let rise = |of: fn(&LinkCounters) -> u64| of(now).checked_sub(of(then));
    Some(LinkCounters {
        received_bytes: rise(|c| c.received_bytes)?,
        received_packets: rise(|c| c.received_packets)?,
        received_errors: rise(|c| c.received_errors)?,
        received_drops: rise(|c| c.received_drops)?,
        sent_bytes: rise(|c| c.sent_bytes)?,
        sent_packets: rise(|c| c.sent_packets)?,
        sent_errors: rise(|c| c.sent_errors)?,
        sent_drops: rise(|c| c.sent_drops)?,
    })
}

fn tcp_risen(then: &Tcp, now: &Tcp) -> Option<Tcp> {
    let rise = |of: fn(&Tcp) -> u64| of(now).checked_sub(of(then));
    let early = now.early_segments.zip(then.early_segments);
    Some(Tcp {
        received_segments: rise(|tcp| tcp.received_segments)?,
        sent_segments: rise(|tcp| tcp.sent_segments)?,
        sent_again_segments: rise(|tcp| tcp.sent_again_segments)?,
        early_segments: early.and_then(|(now, then)| now.checked_sub(then)),
    })
}

fn read_host_properties() -> Option<BTreeMap<String, InterfaceProperties>> {
    let before = Reading::now()?;
    let (traits, received) = read_properties(&Sysfs::host());
    is_same(&before, &received, &Reading::now()?).then_some(traits)
}

/// `/sys` was read between two readings of the counters. Returns true if it showed the same
/// interfaces as both readings.
fn is_same(before: &Reading, received: &BTreeMap<String, u64>, after: &Reading) -> bool {
    before.interfaces.keys().eq(received.keys())
        && received.iter().all(|(name, bytes)| {
            let of = |reading: &Reading| Some(reading.interfaces.get(name)?.received_bytes);
            of(before).zip(of(after)).is_some_and(|(least, most)| (least..=most).contains(bytes))
        })
}

/// For each interface, returns its properties and the number of received bytes.
fn read_properties(
    sysfs: &Sysfs,
) -> (BTreeMap<String, InterfaceProperties>, BTreeMap<String, u64>) {
    let place = sysfs.place("class/net");
    let (mut traits, mut received) = (BTreeMap::new(), BTreeMap::new());
    for name in sysfs::names_in(&place) {
        let directory = place.join(&name);
        let number = |file: &str| sysfs::text(&directory.join(file))?.parse::<u64>().ok();
        // Some entries are not interfaces, for example the file `bonding_masters`.
        let Some(bytes) = number("statistics/rx_bytes") else { continue };
        received.insert(name.clone(), bytes);
        let mut below: Vec<String> = sysfs::names_in(&directory)
            .iter()
            .filter_map(|entry| entry.strip_prefix("lower_").map(str::to_owned))
            .collect();
        below.sort();
        // The speed is in Mb/s. If the speed is unknown, the file contains -1, which older kernels
        // print as an unsigned number.
        let speed = number("speed").filter(|speed| (1..u64::from(u32::MAX)).contains(speed));
        let duplex = sysfs::text(&directory.join("duplex"));
        traits.insert(
            name,
            InterfaceProperties {
                hardware: directory.join("device").exists(),
                below,
                speed_bits_per_s: speed.map(|speed| speed * 1_000_000),
                duplex: duplex.filter(|duplex| ["full", "half"].contains(&duplex.as_str())),
                carrier_changes: number("carrier_changes"),
            },
        );
    }
    (traits, received)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const DEV: &str = "Inter-|   Receive   |  Transmit\n face |bytes packets errs\n\
        \u{20}   lo: 500 5 0 0 0 0 0 0 500 5 0 0 0 0 0 0\n\
        eth0.5:1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0\n";
    const SNMP: &str = "Tcp: RtoAlgorithm MaxConn InSegs OutSegs RetransSegs\nTcp: 1 -1 70 80 9\n";
    const NETSTAT: &str = "TcpExt: SyncookiesSent TCPOFOQueue\nTcpExt: 0 4\nIpExt: A\nIpExt: 1\n";

    fn reading(text: &str) -> Reading {
        let tcp = tcp(SNMP, Some(NETSTAT));
        Reading { interfaces: interfaces(text).unwrap(), tcp }
    }

    fn watch(phase_start: &str) -> LinkWatch {
        let phase_start = reading(phase_start);
        let last = Some(phase_start.clone());
        LinkWatch {
            phase_start: Some((phase_start, BTreeMap::new())),
            last,
            ..LinkWatch::default()
        }
    }

    #[test]
    fn counters_are_read_by_their_names() {
        let reading = reading(DEV);
        let vlan = reading.interfaces["eth0.5"];
        assert_eq!((vlan.received_bytes, vlan.received_errors, vlan.received_drops), (1000, 1, 2));
        assert_eq!((vlan.sent_bytes, vlan.sent_packets), (2000, 20));
        assert_eq!((vlan.sent_errors, vlan.sent_drops), (3, 4));
        let tcp = reading.tcp.unwrap();
        assert_eq!((tcp.received_segments, tcp.sent_segments), (70, 80));
        assert_eq!((tcp.sent_again_segments, tcp.early_segments), (9, Some(4)));
    }

    #[test]
    fn missing_or_invalid_counters_are_unknown() {
        assert_eq!(interfaces("a\nb\neth0: 1 2 3\n"), None);
        assert_eq!(interfaces("a\nb\neth0: x 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"), None);
        assert_eq!(tcp("Tcp: InSegs OutSegs\nTcp: 1 2\n", None), None);
        assert_eq!(tcp(SNMP, None).unwrap().early_segments, None);
        assert_eq!(tcp(SNMP, Some("TcpExt: TCPOFOQueue\n")).unwrap().early_segments, None);
    }

    #[test]
    fn an_increase_has_rows_and_a_total() {
        let mut watch = watch(DEV);
        let mut rows = BTreeMap::new();
        let more = reading(&DEV.replace("1000 10", "1800 12"));
        watch.follow(Some(more), |name, value| rows.extend([(name, value)]));
        assert_eq!(rows.get("link.eth0.5.received_bytes"), Some(&800.0));
        assert_eq!(rows.get("link.lo.sent_bytes"), None, "it moved nothing yet");
        let links = watch.total(None).unwrap();
        let names: Vec<&str> = links.interfaces.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["eth0.5", "lo"]);
        let vlan = &links.interfaces[0];
        assert_eq!(vlan.counters.unwrap().received_bytes, 800);
        assert_eq!((vlan.hardware, &vlan.below, vlan.speed_bits_per_s), (None, &None, None));
        assert_eq!(links.tcp.unwrap(), Tcp { early_segments: Some(0), ..Tcp::default() });
    }

    #[test]
    fn an_interface_that_appeared_vanished_or_was_reset_is_unknown() {
        let without = DEV.split("eth0").next().unwrap();
        let back = &DEV.replace("1000 10", "900 10");
        let more = &DEV.replace("1000 10", "5000 10");
        for (phase_start, between, ended) in [
            (DEV, without, DEV),
            (DEV, without, without),
            (without, DEV, more),
            (DEV, back.as_str(), more),
        ] {
            let mut watch = watch(phase_start);
            watch.follow(Some(reading(between)), |_, _| ());
            watch.follow(Some(reading(ended)), |_, _| ());
            let links = watch.total(None).unwrap();
            let one = links.interfaces.iter().find(|one| one.name == "eth0.5").unwrap();
            assert_eq!(one.counters, None, "{between} {ended}");
        }
        let mut blind = watch(DEV);
        blind.follow(None, |_, _| ());
        assert_eq!(blind.total(None), None);
    }

    #[test]
    fn uses_sysfs_only_if_it_shows_the_same_interfaces() {
        let root = tempfile::tempdir().unwrap();
        let net = root.path().join("class/net");
        let interface = |name: &str, files: &[(&str, &str)]| {
            let directory = net.join(name);
            fs::create_dir_all(directory.join("statistics")).unwrap();
            for (file, text) in files {
                fs::write(directory.join(file), text).unwrap();
            }
        };
        interface("lo", &[("statistics/rx_bytes", "500\n")]);
        interface(
            "eth0.5",
            &[
                ("statistics/rx_bytes", "1000\n"),
                ("speed", "10000\n"),
                ("duplex", "full\n"),
                ("carrier_changes", "3\n"),
                ("lower_eth0", ""),
            ],
        );
        fs::write(net.join("bonding_masters"), "bond0\n").unwrap();
        let (reported, received) = read_properties(&Sysfs::at(root.path()));
        let vlan = &reported["eth0.5"];
        assert_eq!((vlan.hardware, vlan.speed_bits_per_s), (false, Some(10_000_000_000)));
        assert_eq!((vlan.duplex.as_deref(), vlan.carrier_changes), (Some("full"), Some(3)));
        assert_eq!(vlan.below, ["eth0"]);
        let (same, later) = (reading(DEV), reading(&DEV.replace("1000 10", "1800 12")));
        assert!(is_same(&same, &received, &later));
        assert!(!is_same(&later, &received, &later), "another namespace's counts");
        assert!(!is_same(&Reading::default(), &received, &later));
        interface("eth0.5", &[("speed", "-1\n"), ("duplex", "unknown\n"), ("device", "")]);
        let vlan = &read_properties(&Sysfs::at(root.path())).0["eth0.5"];
        assert_eq!((vlan.hardware, vlan.speed_bits_per_s, &vlan.duplex), (true, None, &None));
        interface("eth0.5", &[("speed", "4294967295\n")]);
        assert_eq!(read_properties(&Sysfs::at(root.path())).0["eth0.5"].speed_bits_per_s, None);
    }

    #[test]
    fn counts_loopback_traffic() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut watch = LinkWatch::default();
        watch.begin(|| 7);
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let sends = std::thread::spawn(move || near.write_all(&[7; 1 << 20]).unwrap());
        let mut came = Vec::new();
        far.read_to_end(&mut came).unwrap();
        sends.join().unwrap();
        let links = watch.end(|| 9).unwrap();
        let loopback = links.interfaces.iter().find(|one| one.loopback).unwrap();
        assert!(loopback.counters.unwrap().received_bytes >= 1 << 20, "{links:?}");
        assert!(links.tcp.unwrap().sent_segments > 0 && links.namespace.is_some());
        assert_eq!((links.from_ns, links.to_ns), (7, 9));
        assert_eq!(watch.end(|| 9), None, "without a beginning nothing is known");
    }
}
