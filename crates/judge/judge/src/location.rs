//! Location of a device: this host, a hypervisor, a network, or memory. A device counts as this
//! host's own disk only if the evidence proves this. Without such proof, its location is unknown.

use std::net::{IpAddr, SocketAddr};

use plimsoll_evidence::Bundle;
use plimsoll_evidence::environment::{Device, Environment, Mount, Transport};

/// File systems whose data is in memory (tmpfs accepts `O_DIRECT` since Linux 6.6).
const MEMORY_FILE_SYSTEMS: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];
/// Models of PCI controllers whose disks are remote. Examples are cloud volumes, which also exist
/// on machines without a hypervisor, and network cards that present themselves as a disk
/// controller.
const REMOTE_MODELS: [&str; 8] = [
    "Amazon Elastic Block Store",
    "nvme_card-pd",
    "PersistentDisk",
    "MSFT NVMe Accelerator",
    "Alibaba Cloud Elastic Block",
    "BlueField",
    "SNAP Controller",
    "Oracle Cloud",
];
/// Model names of virtual disks, as the disks report them.
const VIRTUAL_MODELS: [&str; 7] =
    ["QEMU", "VBOX", "VMware", "Virtual Disk", "Virtual disk", "nvme_card", "MSFT NVMe"];
/// Vendors of disks, as SAS and SATA disks report them. An array that is attached with SAS reports
/// a different vendor name.
const DISK_MAKERS: [&str; 18] = [
    "ATA", "SEAGATE", "TOSHIBA", "HGST", "HITACHI", "WDC", "WD", "SAMSUNG", "INTEL", "MICRON",
    "KIOXIA", "SANDISK", "FUJITSU", "IBM-ESXS", "LENOVO-X", "SMRTSTOR", "SOLIDIGM", "CRUCIAL",
];

/// Location of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// A disk of this host, directly attached.
    Own,
    /// Volume of this host's RAID controller; I/O goes through the controller's cache.
    Controller,
    /// Disk provided by a hypervisor.
    Virtual,
    /// Storage on another machine.
    Network,
    /// Location not known.
    Unknown,
    /// Device in memory.
    Memory,
}

impl Location {
    /// Returns a description that follows the device's name in a sentence.
    #[must_use]
    pub fn says(self) -> &'static str {
        match self {
            Self::Own => "is this host's own disk",
            Self::Controller => {
                "is a RAID controller's volume, and the controller may have a cache"
            }
            Self::Virtual => "is a virtual disk, and the hypervisor may cache it",
            Self::Network => "is on a network or an array, which may have a cache",
            Self::Unknown => "may be storage outside this host",
            Self::Memory => "is memory",
        }
    }
}

/// Returns the location of `device`. A device has a location only if it has no underlying device.
#[must_use]
pub fn locate(device: &Device, environment: &Environment) -> Location {
    use Transport as T;
    let model = device.model.as_deref().unwrap_or_default();
    let is_any = |names: &[&str]| names.iter().any(|name| model.contains(name));
    let near = || match environment.virtualisation {
        _ if is_any(&REMOTE_MODELS) => Location::Network,
        Some(_) => Location::Virtual,
        None if is_any(&VIRTUAL_MODELS) => Location::Virtual,
        None => Location::Own,
    };
    if device.kind != "disk" {
        // A device-mapper target without an underlying device does not use storage.
        let rests = !device.below.is_empty() || matches!(device.kind.as_str(), "drbd" | "loop");
        return if rests { Location::Unknown } else { Location::Memory };
    }
    match device.transport {
        // The bundle is from a version that did not record transports.
        None if is_memory_by_name(&device.name) => Location::Memory,
        None if environment.virtualisation.is_some() => Location::Virtual,
        None => Location::Unknown,
        Some(T::Zram | T::Ram | T::Pmem | T::Test) => Location::Memory,
        Some(T::NvmePcie | T::Usb | T::Mmc | T::ParallelScsi) => near(),
        Some(T::Sata | T::Sas) => {
            let maker = device.vendor.as_deref().unwrap_or_default().to_uppercase();
            let made =
                DISK_MAKERS.iter().any(|name| maker.split_whitespace().next() == Some(*name));
            let is_disk = made || near() != Location::Own;
            if is_disk { near() } else { Location::Unknown }
        }
        Some(T::RaidController) if environment.virtualisation.is_none() => Location::Controller,
        Some(
            T::Virtio | T::Xen | T::HyperV | T::VmwarePvscsi | T::Partitioned | T::RaidController,
        ) => Location::Virtual,
        Some(
            T::NvmeTcp
            | T::NvmeRdma
            | T::NvmeFc
            | T::Iscsi
            | T::FibreChannel
            | T::Srp
            | T::Aoe
            | T::Rbd
            | T::Nbd,
        ) => Location::Network,
        Some(T::NvmeLoop | T::ScsiLoopback | T::Ublk | T::Zvol | T::Other) => Location::Unknown,
    }
}

/// Returns true if the driver of a device with this name keeps data in memory. Needed for bundles
/// that record only the name of a device.
fn is_memory_by_name(name: &str) -> bool {
    ["zram", "ram", "pmem"].iter().any(|stem| {
        name.strip_prefix(stem).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// Returns the devices without an underlying device, with their locations.
pub(crate) fn disks(bundle: &Bundle) -> Vec<(&Device, Location)> {
    let environment = &bundle.environment;
    let leaves = environment.devices.iter().filter(|device| {
        // A bundle may contain the name of an underlying disk without its description.
        device.below.is_empty()
    });
    leaves.map(|device| (device, locate(device, environment))).collect()
}

/// Returns the disk that is farthest from this host, with its location; `None` if no disk is known.
pub(crate) fn farthest(bundle: &Bundle) -> Option<(&Device, Location)> {
    disks(bundle).into_iter().max_by_key(|(_, place)| *place)
}

/// Returns a device of this host whose underlying storage is hidden, or whose driver is unknown.
pub(crate) fn undetermined(bundle: &Bundle) -> Option<&Device> {
    use Transport::{NvmeLoop, Other, ScsiLoopback, Ublk, Zvol};
    let is_veiled = |device: &&Device| {
        matches!(device.transport, Some(NvmeLoop | Other | ScsiLoopback | Ublk | Zvol))
            || is_served_here(bundle, device)
    };
    disks(bundle).into_iter().map(|(device, _)| device).find(is_veiled)
}

/// Returns true if the address of a network disk is an address of this host.
fn is_served_here(bundle: &Bundle, device: &Device) -> bool {
    let Some(address) = device.address.as_deref() else { return false };
    let at = address.split([';', ',', ' ']).filter_map(|word| word.strip_prefix("traddr="));
    let at: Vec<IpAddr> = at.filter_map(|word| word.parse().ok()).collect();
    let own = bundle.observed.servers.iter().filter(|server| server.local == Some(true));
    // Parses an address. If it comes from a connection, it includes a port, which is removed.
    let ip = |text: &str| {
        let with_port = text.parse::<SocketAddr>().map(|address| address.ip().to_canonical());
        with_port.or_else(|_| text.parse::<IpAddr>()).ok()
    };
    own.filter_map(|server| ip(&server.serves)).any(|ip| at.contains(&ip))
}

/// Describes the in-memory file system or memory device that contains the target. `None` if the
/// target is not known to be in memory.
pub(crate) fn memory(bundle: &Bundle) -> Option<String> {
    let environment = &bundle.environment;
    // The device node is on devtmpfs, but the data of the device is not.
    let is_device = bundle.plan.targets.iter().any(|target| target.kind_word() == "device");
    let kinds = environment.mounts.iter().filter_map(|mount| {
        let kind = mount.file_system.as_deref()?;
        (!(is_device && kind == "devtmpfs")).then_some((kind, mount))
    });
    let below = environment.below.iter().filter_map(|m| Some((m.file_system.as_deref()?, m)));
    let describe = |(kind, mount): (&str, &Mount)| match mount.mount_point.as_deref() {
        Some(point) => format!("{kind} at {point}"),
        None => kind.to_owned(),
    };
    let file_system = kinds.chain(below).find(|(kind, _)| MEMORY_FILE_SYSTEMS.contains(kind));
    let device = || {
        let found = disks(bundle).into_iter().find(|(_, place)| *place == Location::Memory);
        found.map(|(device, _)| match device.kind.as_str() {
            "disk" => device.name.clone(),
            kind => format!("{}, a {kind} device without an underlying device", device.name),
        })
    };
    file_system.map(describe).or_else(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(transport: Transport, vendor: &str, model: &str) -> Device {
        Device {
            name: "x".into(),
            kind: "disk".into(),
            transport: Some(transport),
            vendor: Some(vendor.into()),
            model: Some(model.into()),
            ..Device::default()
        }
    }

    fn place(transport: Transport, vendor: &str, model: &str, guest: bool) -> Location {
        let virtualisation = guest.then(|| "KVM".to_owned());
        let environment = Environment { virtualisation, ..Environment::default() };
        locate(&disk(transport, vendor, model), &environment)
    }

    #[test]
    fn a_disk_is_this_hosts_own_only_where_that_is_shown() {
        use Transport as T;
        for (transport, vendor, model, expected) in [
            (T::NvmePcie, "", "SAMSUNG MZQL23T8HCLS-00A07", Location::Own),
            (T::Sata, "ATA", "INTEL SSDSC2KB48", Location::Own),
            (T::Sas, "SEAGATE", "ST1200MM0099", Location::Own),
            (T::Sas, "DELL", "MD32xx", Location::Unknown),
            (T::RaidController, "DELL", "PERC H740P Mini", Location::Controller),
            (T::Usb, "SanDisk", "Extreme", Location::Own),
            (T::NvmePcie, "", "Amazon Elastic Block Store", Location::Network),
            (T::NvmePcie, "", "QEMU NVMe Ctrl", Location::Virtual),
            (T::NvmeTcp, "", "Linux", Location::Network),
            (T::Iscsi, "NETAPP", "LUN C-Mode", Location::Network),
            (T::FibreChannel, "DGC", "VRAID", Location::Network),
            (T::Rbd, "", "", Location::Network),
            (T::Nbd, "", "", Location::Network),
            (T::Virtio, "", "", Location::Virtual),
            (T::VmwarePvscsi, "VMware", "Virtual disk", Location::Virtual),
            (T::HyperV, "Msft", "Virtual Disk", Location::Virtual),
            (T::Zram, "", "", Location::Memory),
            (T::Pmem, "", "", Location::Memory),
            (T::Test, "Linux", "scsi_debug", Location::Memory),
            (T::ScsiLoopback, "LIO-ORG", "ramdisk", Location::Unknown),
            (T::Ublk, "", "", Location::Unknown),
            (T::Other, "", "", Location::Unknown),
        ] {
            assert_eq!(place(transport, vendor, model, false), expected, "{transport:?} {model}");
        }
    }

    #[test]
    fn in_a_guest_no_disk_is_its_own() {
        use Transport as T;
        for transport in [T::NvmePcie, T::Sata, T::Virtio, T::RaidController] {
            assert_eq!(place(transport, "ATA", "x", true), Location::Virtual);
        }
        assert_eq!(place(T::NvmePcie, "", "Amazon Elastic Block Store", true), Location::Network);
        assert_eq!(place(T::Ram, "", "", true), Location::Memory);
    }

    #[test]
    fn what_an_old_bundle_does_not_tell_is_unknown() {
        let environment = Environment::default();
        let mut device = disk(Transport::Other, "", "");
        device.transport = None;
        assert_eq!(locate(&device, &environment), Location::Unknown);
        device.name = "zram0".into();
        assert_eq!(locate(&device, &environment), Location::Memory);
        device.name = "ramses".into();
        assert_eq!(locate(&device, &environment), Location::Unknown);
    }

    #[test]
    fn a_mapping_of_nothing_is_memory() {
        let environment = Environment::default();
        let mut device = disk(Transport::Other, "", "");
        (device.kind, device.transport) = ("dm".into(), None);
        assert_eq!(locate(&device, &environment), Location::Memory);
    }
}
