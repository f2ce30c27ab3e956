//! Finds the servers of a target that is not a device. A server is the process at the other end of
//! a connection or a FUSE mount, if this process is on the same host. The storage I/O of a server
//! is read from the counters of the server's process. If a server only relays requests, the search
//! continues with the next server.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use plimsoll_evidence::observed::{IoBytes, Server};
use procfs::net::{TcpNetEntry, TcpState};
use procfs::process::{FDTarget, Process, all_processes};

use crate::local;

/// Maximum number of servers in a chain. Each server in a chain relays requests to the next.
const CHAIN_MAX: usize = 16;

/// The end of a TCP connection on this host, or a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    local: SocketAddr,
    /// Remote address; `None` for a listening socket.
    remote: Option<SocketAddr>,
    inode: u64,
}

/// Processes and connections of this host, in all network namespaces that have visible processes.
#[derive(Clone, Debug, Default)]
struct HostSnapshot {
    rows: Vec<Row>,
    /// Processes that have a socket open. The key is the inode of the socket.
    owners: BTreeMap<u64, Vec<i32>>,
    children: BTreeMap<i32, Vec<i32>>,
    /// Processes that serve FUSE. Each entry also contains the connection number, if the kernel
    /// reports this number (Linux 6.16).
    fuse: Vec<(i32, Option<u32>)>,
    /// True if the files of a process could not be listed.
    hidden: bool,
    /// Peer of each local socket.
    peers: BTreeMap<u64, u64>,
}

/// A server of the target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct DetectedServer {
    serves: String,
    local: Option<bool>,
    processes: BTreeSet<i32>,
    relays: bool,
    /// True if the server's processes are visible.
    is_visible: bool,
    /// Number of connections from other clients than this process.
    others: u64,
    /// Processes at the other ends of the server's local sockets.
    beside: BTreeSet<i32>,
}

/// Properties of the target that identify its servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetAddresses {
    /// Addresses to which this process connects.
    pub addresses: Vec<SocketAddr>,
    /// FUSE connections of the target's file systems.
    pub fuse_connections: Vec<u32>,
    /// Addresses to which the kernel connects for NFS mounts and network disks.
    pub kernel_addresses: Vec<IpAddr>,
    /// True if the target is on a network block device. The kernel does not report the address of
    /// its server.
    pub nbd: bool,
}

/// Observes the servers during a phase.
#[derive(Clone, Debug, Default)]
pub struct ServerWatch {
    found: Vec<DetectedServer>,
    before: BTreeMap<i32, IoBytes>,
}

impl ServerWatch {
    /// Finds the servers.
    #[must_use]
    pub fn begin(sought: &TargetAddresses) -> Self {
        if sought == &TargetAddresses::default() {
            return Self::default();
        }
        let world = HostSnapshot::look();
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let mut rows = world.rows_of(&[own]);
        rows.retain(|row| {
            row.remote.is_some_and(|remote| sought.addresses.contains(&plain(remote)))
        });
        let mut found = world.of_connections(&rows);
        for address in &sought.addresses {
            // If there is no connection, only the address can identify the server.
            if !rows.iter().any(|row| row.remote == Some(plain(*address))) {
                let local = address.ip().to_canonical().is_loopback().then_some(true);
                found.push(DetectedServer {
                    serves: address.to_string(),
                    local,
                    ..DetectedServer::default()
                });
            }
        }
        found.extend(sought.fuse_connections.iter().map(|connection| world.of_fuse(*connection)));
        let mut held = world.rows_of_kernel();
        held.retain(|row| {
            row.remote.is_some_and(|to| sought.kernel_addresses.contains(&plain(to).ip()))
        });
        found.extend(world.of_connections(&held));
        // A process such as iscsid may have opened the connection for the kernel. Then only the
        // address can identify the server.
        let by_address = sought.kernel_addresses.iter().filter(|address| {
            !held.iter().any(|row| row.remote.is_some_and(|to| plain(to).ip() == **address))
        });
        found.extend(by_address.filter_map(|address| world.of_address(*address)));
        if sought.nbd {
            // The kernel does not report which of its connections belongs to this mount, so a
            // server is recognised by its process name.
            let near = world.of_connections(&world.rows_of_kernel());
            let serves = |found: &DetectedServer| {
                found.processes.iter().any(|pid| named(*pid).contains("nbd"))
            };
            found.extend(near.into_iter().filter(serves));
        }
        let before = found.iter().flat_map(DetectedServer::all).filter_map(moved).collect();
        Self { found, before }
    }

    /// Returns the servers with their I/O since the start of the phase.
    #[must_use]
    pub fn end(&self) -> Vec<Server> {
        let after: BTreeMap<i32, IoBytes> =
            self.found.iter().flat_map(DetectedServer::all).filter_map(moved).collect();
        let world =
            self.found.iter().any(|found| found.local == Some(true)).then(HostSnapshot::look);
        let others = |found: &DetectedServer| {
            let world = world.as_ref()?;
            let own = i32::try_from(std::process::id()).unwrap_or(0);
            let now = world.of_connections(&world.rows_of(&[own]));
            now.into_iter().find(|now| now.serves == found.serves).map(|now| now.others)
        };
        let rise = |pid: &i32| Some(after.get(pid)?.minus(*self.before.get(pid)?));
        self.found
            .iter()
            .map(|found| {
                let all: Option<Vec<IoBytes>> = found.processes.iter().map(rise).collect();
                // If the counters of some processes cannot be read, the sum over the other
                // processes is a lower bound.
                let beside = found.beside.iter().filter_map(rise);
                let beside = beside.fold(IoBytes::default(), IoBytes::plus);
                let sum = all.map(|all| all.into_iter().fold(IoBytes::default(), IoBytes::plus));
                Server {
                    serves: found.serves.clone(),
                    local: found.local,
                    processes: found.processes.iter().map(|pid| named(*pid)).collect(),
                    moved: sum.filter(|_| found.is_visible),
                    relays: found.relays,
                    beside: (!found.beside.is_empty()).then_some(beside),
                    others: found.others.max(others(found).unwrap_or(0)),
                }
            })
            .collect()
    }
}

/// Returns the I/O that a process has done since the process started.
fn moved(pid: i32) -> Option<(i32, IoBytes)> {
    let io = Process::new(pid).ok()?.io().ok()?;
    Some((pid, IoBytes { read_bytes: io.read_bytes, written_bytes: io.write_bytes }))
}

fn named(pid: i32) -> String {
    let name = Process::new(pid).and_then(|process| process.stat()).map(|stat| stat.comm);
    name.map_or_else(|_| format!("process {pid}"), |name| format!("{name} ({pid})"))
}

/// Converts an IPv4-mapped IPv6 address to IPv4.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

impl DetectedServer {
    /// Returns all processes whose counters are read during the run.
    fn all(&self) -> impl Iterator<Item = i32> {
        self.processes.iter().chain(&self.beside).copied()
    }
}

impl HostSnapshot {
    fn look() -> Self {
        let mut world = Self { peers: local::peers(), ..Self::default() };
        let mut spaces = BTreeSet::new();
        for process in all_processes().into_iter().flatten().flatten() {
            let Ok(stat) = process.stat() else { continue };
            world.children.entry(stat.ppid).or_default().push(process.pid);
            let space = fs::read_link(format!("/proc/{}/ns/net", process.pid)).ok();
            // If the namespace of another process is not readable, only the connections in
            // Plimsoll's own namespace are listed.
            let own = process.pid as u32 == std::process::id();
            if (own || space.is_some()) && spaces.insert(space) {
                let (four, six) = (process.tcp(), process.tcp6());
                let rows = four.into_iter().flatten().chain(six.into_iter().flatten());
                world.rows.extend(rows.filter_map(Row::of));
            }
            world.read_files(&process);
        }
        world
    }

    fn read_files(&mut self, process: &Process) {
        let Ok(files) = process.fd() else {
            self.hidden = true;
            return;
        };
        for file in files.flatten() {
            match file.target {
                FDTarget::Socket(inode) => {
                    self.owners.entry(inode).or_default().push(process.pid);
                }
                FDTarget::Path(path) if path == Path::new("/dev/fuse") => {
                    self.fuse.push((process.pid, fuse_connection(process.pid, file.fd)));
                }
                _ => {}
            }
        }
    }

    /// Returns the connections that these processes have open.
    fn rows_of(&self, pids: &[i32]) -> Vec<Row> {
        let held = |row: &&Row| {
            let owners = self.owners.get(&row.inode);
            owners.is_some_and(|owners| owners.iter().any(|pid| pids.contains(pid)))
        };
        self.rows.iter().filter(|row| row.remote.is_some()).filter(held).copied().collect()
    }

    /// Returns the connections that belong to the kernel: no process has them open. Returns an
    /// empty list if some processes are not visible.
    fn rows_of_kernel(&self) -> Vec<Row> {
        let held = |row: &&Row| self.owners.contains_key(&row.inode);
        let rows = self.rows.iter().filter(|row| row.remote.is_some() && row.inode != 0);
        if self.hidden { Vec::new() } else { rows.filter(|row| !held(row)).copied().collect() }
    }

    /// Returns the servers at the other ends of these connections, one server per address.
    fn of_connections(&self, rows: &[Row]) -> Vec<DetectedServer> {
        let mut found: BTreeMap<String, DetectedServer> = BTreeMap::new();
        for row in rows {
            let Some(remote) = row.remote else { continue };
            let one = self.of_connection(row, remote);
            let known = found.entry(one.serves.clone()).or_insert_with(|| one.clone());
            known.processes.extend(one.processes);
            known.relays |= one.relays;
            known.is_visible &= one.is_visible;
            known.beside.extend(one.beside);
            known.others = known.others.max(one.others);
        }
        found.into_values().collect()
    }

    fn of_address(&self, address: IpAddr) -> Option<DetectedServer> {
        let is_own = |row: &Row| row.remote.is_some() && plain(row.local).ip() == address;
        let near = address.is_loopback() || self.rows.iter().any(is_own);
        let serves = address.to_string();
        near.then(|| DetectedServer { serves, local: Some(true), ..DetectedServer::default() })
    }

    fn of_connection(&self, row: &Row, remote: SocketAddr) -> DetectedServer {
        let mut found = DetectedServer { serves: remote.to_string(), ..DetectedServer::default() };
        // At the other end of a local connection, the remote address of the socket is the address
        // of this end. This is true even if the address of the server was translated.
        let ends: Vec<&Row> = self
            .rows
            .iter()
            .filter(|other| other.remote == Some(row.local) && other.inode != row.inode)
            .collect();
        let near = !ends.is_empty() || remote.ip().is_loopback() || remote.ip() == row.local.ip();
        found.local = Some(near);
        if !near {
            return found;
        }
        let holders = ends.iter().filter_map(|end| self.owners.get(&end.inode)).flatten();
        found.processes = holders.copied().collect();
        // A process that listens may pass its connections to kernel threads.
        found.is_visible = !found.processes.is_empty();
        self.follow(&mut found);
        found.others = self.others(&found, row, remote);
        found
    }

    /// Counts the connections that other processes have to the same server. Connections of this
    /// process and of the server itself do not count.
    fn others(&self, found: &DetectedServer, row: &Row, remote: SocketAddr) -> u64 {
        let own = self.owners.get(&row.inode).map_or(&[][..], Vec::as_slice);
        let is_own = |end: SocketAddr| {
            let held =
                self.rows.iter().filter(|other| other.remote.is_some() && other.local == end);
            let mut owners = held.filter_map(|other| self.owners.get(&other.inode)).flatten();
            owners.any(|pid| own.contains(pid) || found.processes.contains(pid))
        };
        let served = self.rows.iter().filter(|other| other.local.port() == remote.port());
        let served = served.filter(|other| {
            let owners = self.owners.get(&other.inode);
            owners.is_some_and(|owners| owners.iter().any(|pid| found.processes.contains(pid)))
        });
        served.filter_map(|other| other.remote).filter(|end| !is_own(*end)).count() as u64
    }

    fn of_fuse(&self, connection: u32) -> DetectedServer {
        let exact = self.fuse.iter().filter(|(_, number)| *number == Some(connection));
        let mut processes: BTreeSet<i32> = exact.map(|(pid, _)| *pid).collect();
        if processes.is_empty() {
            // Older kernels do not report the connection, so any FUSE server may be the server.
            let any = self.fuse.iter().filter(|(_, number)| number.is_none());
            processes = any.map(|(pid, _)| *pid).collect();
        }
        let mut found = DetectedServer {
            serves: format!("FUSE connection {connection}"),
            local: Some(true),
            is_visible: !processes.is_empty(),
            processes,
            relays: false,
            others: 0,
            beside: BTreeSet::new(),
        };
        self.follow(&mut found);
        found
    }

    /// Adds processes that a server started, and processes to which a server relays requests.
    fn follow(&self, found: &mut DetectedServer) {
        self.follow_connections(found);
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let held = |inode: &&u64| {
            let owners = self.owners.get(inode);
            owners.is_some_and(|owners| owners.iter().any(|pid| found.processes.contains(pid)))
        };
        let far = self.peers.keys().filter(held).filter_map(|inode| self.peers.get(inode));
        let near = far.filter_map(|inode| self.owners.get(inode)).flatten().copied();
        let beside = near.filter(|pid| *pid != own && !found.processes.contains(pid));
        let beside: BTreeSet<i32> = beside.collect();
        found.beside.extend(beside);
    }

    fn follow_connections(&self, found: &mut DetectedServer) {
        let mut fresh: Vec<i32> = found.processes.iter().copied().collect();
        for _ in 0..CHAIN_MAX {
            let mut next = Vec::new();
            for pid in fresh {
                next.extend(self.children.get(&pid).into_iter().flatten().copied());
                for row in self.outward(pid) {
                    let Some(remote) = row.remote else { continue };
                    let ends = self.rows.iter().filter(|other| {
                        other.remote == Some(row.local) && other.inode != row.inode
                    });
                    let holders: Vec<i32> = ends
                        .filter_map(|end| self.owners.get(&end.inode))
                        .flatten()
                        .copied()
                        .collect();
                    let near = remote.ip().is_loopback() || remote.ip() == row.local.ip();
                    if holders.is_empty() {
                        // The other end is on another host, or its process is not visible.
                        found.relays |= !near;
                        found.is_visible &= !near;
                    }
                    next.extend(holders);
                }
            }
            let own = i32::try_from(std::process::id()).unwrap_or(0);
            next.retain(|pid| *pid != own && found.processes.insert(*pid));
            if next.is_empty() {
                return;
            }
            fresh = next;
        }
    }

    /// Returns the connections that a process has opened to other addresses.
    fn outward(&self, pid: i32) -> Vec<Row> {
        let listens: BTreeSet<u16> = self
            .rows
            .iter()
            .filter(|row| row.remote.is_none())
            .map(|row| row.local.port())
            .collect();
        let mut rows = self.rows_of(&[pid]);
        rows.retain(|row| !listens.contains(&row.local.port()));
        rows
    }
}

impl Row {
    fn of(entry: TcpNetEntry) -> Option<Self> {
        let remote = match entry.state {
            TcpState::Listen => None,
            TcpState::Established => Some(plain(entry.remote_address)),
            _ => return None,
        };
        Some(Self { local: plain(entry.local_address), remote, inode: entry.inode })
    }
}

/// Returns the FUSE connection that an open file of `/dev/fuse` belongs to (Linux 6.16).
fn fuse_connection(pid: i32, fd: i32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("fuse_connection:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn row(local: &str, remote: &str, inode: u64) -> Row {
        let remote = (!remote.is_empty()).then(|| address(remote));
        Row { local: address(local), remote, inode }
    }

    /// Returns a host with three connections. The first is from a client (1) to a server (20) that
    /// has a child process (21). The second is from a client to a relay (30) of this server. The
    /// third is from a client to another host.
    fn world() -> HostSnapshot {
        HostSnapshot {
            rows: vec![
                row("127.0.0.1:5000", "127.0.0.1:9000", 1),
                row("127.0.0.1:9000", "127.0.0.1:5000", 2),
                row("0.0.0.0:9000", "0.0.0.0:0", 3),
                row("10.0.0.5:6000", "10.0.0.9:2049", 4),
                row("127.0.0.1:5001", "127.0.0.1:8000", 5),
                row("127.0.0.1:8000", "127.0.0.1:5001", 6),
                row("127.0.0.1:5002", "127.0.0.1:9000", 7),
                row("127.0.0.1:9000", "127.0.0.1:5002", 8),
            ]
            .into_iter()
            .map(|mut row| {
                row.remote = row.remote.filter(|remote| remote.port() != 0);
                row
            })
            .chain([row("0.0.0.0:8000", "", 9)])
            .collect(),
            owners: [(1, 1), (2, 20), (3, 20), (4, 1), (5, 1), (6, 30), (7, 30), (8, 20), (9, 30)]
                .map(|(inode, pid)| (inode, vec![pid]))
                .into(),
            children: [(20, vec![21])].into(),
            fuse: vec![(40, Some(39)), (41, Some(7))],
            hidden: false,
            peers: BTreeMap::new(),
        }
    }

    fn serves(world: &HostSnapshot, what: &str) -> DetectedServer {
        let found = world.of_connections(&world.rows_of(&[1]));
        found.into_iter().find(|found| found.serves == what).unwrap()
    }

    #[test]
    fn recognises_an_address_of_this_host() {
        let near = world().of_address("10.0.0.5".parse().unwrap()).unwrap();
        assert_eq!((near.local, near.is_visible, near.processes.len()), (Some(true), false, 0));
        assert_eq!(world().of_address("127.0.0.2".parse().unwrap()).unwrap().local, Some(true));
        assert_eq!(world().of_address("10.0.0.9".parse().unwrap()), None);
    }

    #[test]
    fn finds_a_local_server_with_its_children() {
        let found = serves(&world(), "127.0.0.1:9000");
        assert_eq!((found.local, found.relays, found.is_visible), (Some(true), false, true));
        assert_eq!(found.processes, [20, 21].into());
    }

    #[test]
    fn counts_other_clients_of_the_same_server() {
        let mut world = world();
        // The connection from the relay to the server belongs to another process, so it is counted.
        assert_eq!(serves(&world, "127.0.0.1:9000").others, 1);
        assert_eq!(serves(&world, "127.0.0.1:8000").others, 0);
        world.rows.push(row("127.0.0.1:5003", "127.0.0.1:9000", 10));
        world.rows.push(row("127.0.0.1:9000", "127.0.0.1:5003", 11));
        world.owners.extend([(10, vec![1]), (11, vec![20])]);
        assert_eq!(serves(&world, "127.0.0.1:9000").others, 1);
        world.owners.insert(10, vec![99]);
        assert_eq!(serves(&world, "127.0.0.1:9000").others, 2);
    }

    #[test]
    fn finds_servers_behind_a_local_socket() {
        let mut world = world();
        world.owners.extend([(50, vec![20]), (51, vec![60]), (52, vec![1]), (53, vec![20])]);
        world.peers = [(50, 51), (51, 50), (52, 53), (53, 52)].into();
        let found = serves(&world, "127.0.0.1:9000");
        assert_eq!((found.processes, found.beside), ([20, 21].into(), [1, 60].into()));
    }

    #[test]
    fn a_server_on_another_host_is_remote() {
        let found = serves(&world(), "10.0.0.9:2049");
        assert_eq!((found.local, found.processes.len()), (Some(false), 0));
    }

    #[test]
    fn follows_a_relay_to_its_server() {
        let found = serves(&world(), "127.0.0.1:8000");
        assert_eq!(found.processes, [20, 21, 30].into());
        assert!(!found.relays);
        let mut far = world();
        far.rows[6] = row("10.0.0.5:5002", "10.0.0.9:9000", 7);
        far.rows.remove(7);
        let found = serves(&far, "127.0.0.1:8000");
        assert_eq!((found.processes, found.relays), ([30].into(), true));
    }

    #[test]
    fn recognises_a_translated_local_address() {
        let mut world = world();
        world.rows[0] = row("10.0.0.5:5000", "10.0.0.77:9000", 1);
        world.rows[1] = row("172.17.0.2:9000", "10.0.0.5:5000", 2);
        let found = serves(&world, "10.0.0.77:9000");
        assert_eq!((found.local, found.processes), (Some(true), [20, 21].into()));
    }

    #[test]
    fn connections_without_a_process_are_the_kernels() {
        let mut world = world();
        assert!(world.rows_of_kernel().is_empty());
        world.owners.remove(&1);
        assert_eq!(world.rows_of_kernel().len(), 1);
        world.hidden = true;
        assert!(world.rows_of_kernel().is_empty());
    }

    #[test]
    fn a_fuse_connection_has_its_process() {
        assert_eq!(world().of_fuse(39).processes, [40].into());
        let mut silent = world();
        silent.fuse = vec![(40, None), (41, None)];
        assert_eq!(silent.of_fuse(39).processes, [40, 41].into());
        silent.fuse.clear();
        assert!(!silent.of_fuse(39).is_visible);
    }
}
