//! Balance of bytes for targets that are served by a server on this host.

use plimsoll_evidence::environment::Device;
use plimsoll_evidence::observed::IoBytes;

use super::super::evidence;
use super::{BalanceResult, Scale, wire};
use crate::location;

impl Scale<'_> {
    /// Judges targets whose I/O goes to a server instead of a device. The bytes must also have
    /// crossed this host's network interfaces.
    pub(super) fn judge_server_target(&self) -> Option<BalanceResult> {
        match self.judge_servers()? {
            BalanceResult::Moved => {
                Some(self.judge_by_interfaces().unwrap_or(BalanceResult::Moved))
            }
            other => Some(other),
        }
    }

    /// Returns the number of bytes that the network interfaces counted, if this process is itself
    /// the client of its network target.
    pub(super) fn interface_bytes(&self) -> Option<u64> {
        let counted =
            wire::uses_own_client(self.bundle).then(|| wire::interface_bytes(self.bundle))?;
        counted.map(|counted| self.pick(counted))
    }

    fn judge_by_interfaces(&self) -> Option<BalanceResult> {
        let counted = self.interface_bytes()?;
        let least = wire::bytes_min(self.bundle, self.is_read)?;
        (counted < least).then(|| {
            let way = if self.is_read { "received" } else { "sent" };
            BalanceResult::Open(format!(
                "of {} {}, this host's network interfaces {way} only {}: it is unknown how the \
                 other bytes were transferred",
                self.size(self.requested),
                self.verb(),
                self.size(counted)
            ))
        })
    }

    /// Judges according to the number of bytes that servers on this host moved to or from storage.
    fn judge_servers(&self) -> Option<BalanceResult> {
        let servers = &self.bundle.observed.servers;
        if servers.is_empty() {
            return evidence::is_remote_target(self.bundle).then_some(BalanceResult::Moved);
        }
        let requested = self.size(self.requested);
        if let Some(server) = servers.iter().find(|server| server.local.is_none()) {
            let says = format!("it is unknown whether {} is on this host", server.serves);
            return Some(BalanceResult::Open(says));
        }
        if servers.iter().any(|server| server.local == Some(false) || server.relays) {
            // The I/O that a server on another host does is not visible on this host.
            return Some(self.judge_by_network_mounts().unwrap_or(BalanceResult::Moved));
        }
        let names: Vec<&str> =
            servers.iter().flat_map(|s| &s.processes).map(String::as_str).collect();
        let serves: Vec<&str> = servers.iter().map(|server| server.serves.as_str()).collect();
        let all: Option<Vec<IoBytes>> = servers.iter().map(|server| server.moved).collect();
        let disks = self.all_disks();
        let known =
            all.map(|all| self.pick(all.into_iter().fold(IoBytes::default(), IoBytes::plus)));
        let (moved, who) = match (known, disks) {
            // The kernel counts a server's writes when pages become dirty, so the disks must also
            // have written these bytes.
            (Some(own), Some(disks)) => (own.min(disks), names.join(", ")),
            (None, Some(disks)) if disks < self.least => {
                (disks, "all disks of this host".to_owned())
            }
            _ => {
                let says = format!(
                    "a server on this host provides {}, but it is not visible how many bytes the \
                     server moved",
                    serves.join(", ")
                );
                return Some(BalanceResult::Open(says));
            }
        };
        let beside = servers.iter().filter_map(|server| server.beside);
        let beside = self.pick(beside.fold(IoBytes::default(), IoBytes::plus));
        if moved < self.least && beside.min(disks.unwrap_or(0)).saturating_add(moved) >= self.least
        {
            return Some(BalanceResult::Open(format!(
                "{} moved {} to or from storage, and the processes connected to it through local \
                 sockets moved {}: it is unknown whether the server forwarded the requests to them",
                names.join(", "),
                self.size(moved),
                self.size(beside)
            )));
        }
        if moved >= self.least
            && let Some(server) = servers.iter().find(|server| server.others > 0)
        {
            return Some(BalanceResult::Open(format!(
                "{} moved {} to or from storage, but had other clients too ({}): it is unknown \
                 for which client it moved these bytes",
                names.join(", "),
                self.size(moved),
                server.others
            )));
        }
        Some(if moved >= self.least {
            BalanceResult::Moved
        } else {
            BalanceResult::Short(format!(
                "of {requested} {} through {}, its server on this host ({who}) moved only {} to \
                 or from storage: the server's own cache served the other bytes",
                self.verb(),
                serves.join(", "),
                self.size(moved)
            ))
        })
    }

    /// Returns the bytes that all disks of this host moved.
    fn all_disks(&self) -> Option<u64> {
        let elsewhere = self.bundle.observed.other_disks?;
        // The bytes of a network disk always cross the network, so the disk is not a disk of this
        // host.
        let near = |d: &Device| {
            location::locate(d, &self.bundle.environment) != location::Location::Network
        };
        let bottom = self.bundle.observed.devices.iter().filter(|device| {
            let is_disk = |d: &Device| d.below.is_empty() && d.kind == "disk" && near(d);
            self.find_device(&device.name).is_some_and(is_disk)
        });
        Some(self.pick(elsewhere.disks) + bottom.map(|device| self.totals(device)).sum::<u64>())
    }
}
