//! Determines the identity of a block device: its attachment, driver and vendor. The sources are
//! its position in sysfs and the attributes of its controller. Names and models are reported
//! unchanged.

use std::path::{Path, PathBuf};

use plimsoll_evidence::environment::Transport;

use crate::sysfs::{Sysfs, names_in, text};

/// How a device is attached to the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) transport: Option<Transport>,
    pub(super) driver: Option<String>,
    pub(super) address: Option<String>,
}

/// Directory of a disk in sysfs, with links resolved.
struct Place<'s> {
    sysfs: &'s Sysfs,
    name: &'s str,
    path: PathBuf,
    parts: Vec<String>,
}

/// Drivers of RAID controllers that have their own cache (source: drivers/scsi).
const RAID_DRIVERS: [&str; 12] = [
    "megaraid_sas",
    "megaraid",
    "mpi3mr",
    "hpsa",
    "cciss",
    "smartpqi",
    "aacraid",
    "arcmsr",
    "3w-9xxx",
    "3w-sas",
    "ips",
    "esas2r",
];
/// Drivers of iSCSI, both in software and for adapters.
const ISCSI_DRIVERS: [&str; 7] =
    ["iscsi_tcp", "ib_iser", "iser", "qla4xxx", "bnx2i", "be2iscsi", "cxgb4i"];
/// Drivers of Fibre Channel adapters, including FCoE.
const FC_DRIVERS: [&str; 11] = [
    "qla2xxx", "lpfc", "fnic", "bfa", "qedf", "bnx2fc", "fcoe", "zfcp", "csiostor", "efct", "libfc",
];
/// Name prefixes of devices that are not hardware, each with the transport of the device.
const BY_NAME: [(&str, Transport); 11] = [
    ("zram", Transport::Zram),
    ("ram", Transport::Ram),
    ("pmem", Transport::Pmem),
    ("nullb", Transport::Test),
    ("nbd", Transport::Nbd),
    ("rbd", Transport::Rbd),
    ("ublkb", Transport::Ublk),
    ("zd", Transport::Zvol),
    ("xvd", Transport::Xen),
    ("dasd", Transport::Partitioned),
    ("mmcblk", Transport::Mmc),
];

/// Identifies a physical device.
pub(super) fn of(sysfs: &Sysfs, directory: &Path, name: &str) -> Identity {
    let Ok(path) = directory.canonicalize() else { return Identity::default() };
    let parts = path.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    let place = Place { sysfs, name, parts: parts.collect(), path };
    place.nvme().or_else(|| place.scsi()).unwrap_or_else(|| place.other())
}

/// Returns true if `name` consists of the prefix, a number or letter, and possibly a suffix, for
/// example `zram0`, `pmem0s` or `xvda`.
fn is_named(name: &str, prefix: &str) -> bool {
    let lettered = matches!(prefix, "xvd" | "dasd");
    let fits = |c: char| if lettered { c.is_ascii_lowercase() } else { c.is_ascii_digit() };
    name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(fits))
}

impl Place<'_> {
    /// Returns the first component of a path that consists of the prefix and a number.
    fn part(&self, prefix: &str) -> Option<&str> {
        self.parts.iter().map(String::as_str).find(|part| is_named(part, prefix))
    }

    fn has(&self, text: &str) -> bool {
        self.parts.iter().any(|part| part.contains(text))
    }

    fn class(&self, class: &str, name: &str, file: &str) -> Option<String> {
        text(&self.sysfs.place(&format!("class/{class}/{name}/{file}")))
    }

    /// Identifies an NVMe namespace. A namespace belongs to a controller, or to a subsystem that
    /// has several controllers.
    fn nvme(&self) -> Option<Identity> {
        let above = self.path.parent()?;
        let above_name = above.file_name()?.to_string_lossy().into_owned();
        let controllers: Vec<PathBuf> = if is_named(&above_name, "nvme-subsys") {
            let is_controller = |name: &String| {
                is_named(name, "nvme") && above.join(name).join("transport").exists()
            };
            names_in(above).into_iter().filter(is_controller).map(|name| above.join(name)).collect()
        } else if is_named(&above_name, "nvme") {
            vec![above.to_path_buf()]
        } else {
            return None;
        };
        let transport = |controller: &PathBuf| {
            Some(match text(&controller.join("transport"))?.as_str() {
                "pcie" | "apple-nvme" => Transport::NvmePcie,
                "tcp" => Transport::NvmeTcp,
                "rdma" => Transport::NvmeRdma,
                "fc" => Transport::NvmeFc,
                "loop" => Transport::NvmeLoop,
                _ => Transport::Other,
            })
        };
        // If at least one path to a device is a network path, the device is a network device.
        let transports: Vec<Option<Transport>> = controllers.iter().map(transport).collect();
        let of_all = match transports.iter().all(Option::is_some) {
            true => transports.into_iter().flatten().max(),
            false => None,
        };
        let far = of_all != Some(Transport::NvmePcie);
        let addresses =
            controllers.iter().filter_map(|controller| text(&controller.join("address")));
        let addresses: Vec<String> = addresses.collect();
        Some(Identity {
            transport: of_all,
            driver: Some("nvme".to_owned()),
            address: (far && !addresses.is_empty()).then(|| addresses.join("; ")),
        })
    }

    fn scsi(&self) -> Option<Identity> {
        let host = self.part("host")?;
        let driver = self.class("scsi_host", host, "proc_name").filter(|name| name != "<NULL>");
        let by_driver = driver.as_deref().and_then(by_driver);
        let by_path = || {
            if let Some(session) = self.part("session") {
                return Some((Transport::Iscsi, self.iscsi_target(session)));
            }
            if let Some(port) = self.part("rport-") {
                let is_srp = self.class("srp_host", host, "device").is_some();
                let port_name = self.class("fc_remote_ports", port, "port_name");
                let transport = if is_srp { Transport::Srp } else { Transport::FibreChannel };
                return Some((transport, port_name));
            }
            let near = if self.part("usb").is_some() {
                Transport::Usb
            } else if self.part("virtio").is_some() {
                Transport::Virtio
            } else if self.has("VMBUS") || self.has("vmbus") {
                Transport::HyperV
            } else if self.part("ata").is_some() {
                Transport::Sata
            } else if self.part("end_device-").is_some() {
                Transport::Sas
            } else {
                return None;
            };
            Some((near, None))
        };
        // The driver shows whether a device is a volume of a RAID controller or a disk. The path
        // shows whether a disk is remote or local.
        let network = by_path().filter(|(transport, _)| {
            matches!(transport, Transport::Iscsi | Transport::FibreChannel | Transport::Srp)
        });
        let (transport, address) = match (network, by_driver) {
            (Some(found), _) => found,
            (None, Some(transport)) => (transport, None),
            (None, None) => by_path().unwrap_or((Transport::Other, None)),
        };
        Some(Identity { transport: Some(transport), driver, address })
    }

    /// Returns the target name with the portal address of the session.
    fn iscsi_target(&self, session: &str) -> Option<String> {
        let name = self.class("iscsi_session", session, "targetname");
        let connection = format!("connection{}:0", session.trim_start_matches("session"));
        let of = |file| self.class("iscsi_connection", &connection, file);
        let portal = of("address").or_else(|| of("persistent_address"));
        match (name, portal) {
            (Some(name), Some(portal)) => Some(format!("{name} traddr={portal}")),
            (name, _) => name,
        }
    }

    fn other(&self) -> Identity {
        let by_name = BY_NAME.iter().find(|(prefix, _)| is_named(self.name, prefix));
        let transport = match by_name {
            Some((_, transport)) => *transport,
            None if self.name.starts_with("etherd!") => Transport::Aoe,
            None if self.part("virtio").is_some() => Transport::Virtio,
            None if self.part("vbd-").is_some() => Transport::Xen,
            None if self.part("mmc").is_some() => Transport::Mmc,
            None if self.name.starts_with("cciss!") => Transport::RaidController,
            None if self.path.join("device/pool").exists() => Transport::Rbd,
            None => Transport::Other,
        };
        let read = |file: &str| text(&self.path.join(file)).filter(|text| !text.is_empty());
        let address = match transport {
            Transport::Rbd => read("device/pool")
                .zip(read("device/name"))
                .map(|(pool, image)| format!("{pool}/{image}")),
            Transport::Nbd => read("backend"),
            _ => None,
        };
        Identity { transport: Some(transport), driver: None, address }
    }
}

fn by_driver(driver: &str) -> Option<Transport> {
    Some(match driver {
        _ if RAID_DRIVERS.contains(&driver) => Transport::RaidController,
        _ if ISCSI_DRIVERS.contains(&driver) => Transport::Iscsi,
        _ if FC_DRIVERS.contains(&driver) => Transport::FibreChannel,
        "ib_srp" | "srp" => Transport::Srp,
        "vmw_pvscsi" => Transport::VmwarePvscsi,
        "virtio_scsi" => Transport::Virtio,
        "storvsc" | "hv_storvsc" | "storvsc_host_t" => Transport::HyperV,
        "xen-pvscsi" | "xen-scsi" => Transport::Xen,
        "ibmvscsi" | "ibmvfc" | "ibmvscsic" => Transport::Partitioned,
        "scsi_debug" => Transport::Test,
        "tcm_loopback" | "vhost-scsi" | "loopback" => Transport::ScsiLoopback,
        "aic7xxx" | "aic79xx" | "sym53c8xx" | "mptspi" => Transport::ParallelScsi,
        "usb-storage" | "uas" | "sbp2" | "firewire_sbp2" => Transport::Usb,
        "ufshcd" => Transport::Mmc,
        "ahci" | "ata_piix" => Transport::Sata,
        _ => return None,
    })
}
