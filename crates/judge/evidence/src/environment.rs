//! `environment.json`: the state of the host. A value that could not be read is absent, never zero.

use serde::{Deserialize, Serialize};

/// The host: its CPU, kernel and memory, and the file systems and devices that the target uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Host name.
    pub host: Option<String>,
    /// Kernel release, such as `6.1.0-13-amd64`.
    pub kernel: Option<String>,
    /// Name of the Linux distribution.
    pub distribution: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Number of CPUs that the process may use, according to its affinity mask.
    pub cpus: Option<u32>,
    /// Total memory of the host in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory that was available when the run started, in bytes.
    pub memory_available_bytes: Option<u64>,
    /// Kernel clock source, such as `tsc`.
    pub clock_source: Option<String>,
    /// True if the process has root privileges.
    pub privileged: bool,
    /// Name of the hypervisor or container; `None` if none is visible.
    pub virtualisation: Option<String>,
    /// File systems of the target. There is one entry for each directory, file or device in the
    /// plan.
    pub mounts: Vec<Mount>,
    /// Underlying file systems. Below an overlay, this is the file system of its upper directory.
    /// Below a loop device, it is the file system of its backing file. The path of the entry is the
    /// path of this directory or file.
    #[serde(default)]
    pub below: Vec<Mount>,
    /// Block devices that the target uses, down to the physical disks.
    pub devices: Vec<Device>,
    /// Score for the speed of a single core. It is measured at the start of the run, and serves to
    /// compare hosts.
    pub cpu_score: Option<f64>,
    /// Limits of the load generator on this host ([`Calibration`]); `None` if the host was not
    /// calibrated.
    pub calibration: Option<Calibration>,
    /// Facts that could not be read. Each entry also states how the fact can be made readable.
    pub unknown: Vec<ObservationGap>,
}

/// The file system that contains a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mount {
    /// Path as written in the plan.
    pub path: String,
    /// Type of the file system, such as `ext4`.
    pub file_system: Option<String>,
    /// Mount point.
    pub mount_point: Option<String>,
    /// The mounted device, or the address and export of a server.
    pub source: Option<String>,
    /// Mount options.
    pub options: Option<String>,
    /// Total size of the file system in bytes.
    pub size_bytes: Option<u64>,
    /// Free bytes that this user could use when the run started.
    pub free_bytes: Option<u64>,
    /// Names of all devices that the file system uses, directly or indirectly. The names are those
    /// in [`Device::name`].
    pub devices: Vec<String>,
    /// Names of the devices that the file system uses directly.
    #[serde(default)]
    pub on: Vec<String>,
}

/// How a block device is attached to the host, according to sysfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// NVMe drive on this host's PCI bus.
    NvmePcie,
    /// NVMe over TCP.
    NvmeTcp,
    /// NVMe over RDMA.
    NvmeRdma,
    /// NVMe over Fibre Channel.
    NvmeFc,
    /// NVMe target that is implemented by this host's own kernel.
    NvmeLoop,
    /// SATA or PATA.
    Sata,
    /// SAS through a host bus adapter that passes disks through.
    Sas,
    /// Parallel SCSI.
    ParallelScsi,
    /// Volume of a RAID controller.
    RaidController,
    /// USB or FireWire.
    Usb,
    /// SD card, eMMC or UFS.
    Mmc,
    /// virtio-blk or virtio-scsi: a virtual disk that a hypervisor provides.
    Virtio,
    /// Paravirtual disk of Xen.
    Xen,
    /// Paravirtual SCSI disk of Hyper-V.
    HyperV,
    /// Paravirtual SCSI disk of VMware.
    VmwarePvscsi,
    /// Virtual disk of a logical partition on a Power system or a mainframe.
    Partitioned,
    /// iSCSI or iSER.
    Iscsi,
    /// SCSI over Fibre Channel or FCoE.
    FibreChannel,
    /// SCSI over RDMA.
    Srp,
    /// ATA over Ethernet.
    Aoe,
    /// Block device of Ceph (RBD).
    Rbd,
    /// Network block device (NBD).
    Nbd,
    /// ublk: a block device that a process on this host serves.
    Ublk,
    /// SCSI target that is implemented by this host's own kernel.
    ScsiLoopback,
    /// zram: a device that stores its data in compressed memory.
    Zram,
    /// RAM disk.
    Ram,
    /// Persistent memory, or memory that the kernel reserves as persistent memory.
    Pmem,
    /// Test device that discards data or stores it in memory (`null_blk`, `scsi_debug`).
    Test,
    /// Volume that ZFS provides.
    Zvol,
    /// Another transport, or an unknown transport.
    #[serde(other)]
    Other,
}

impl Transport {
    /// Returns the name of the transport, as reports show it.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::NvmePcie => "NVMe on PCI",
            Self::NvmeTcp => "NVMe over TCP",
            Self::NvmeRdma => "NVMe over RDMA",
            Self::NvmeFc => "NVMe over Fibre Channel",
            Self::NvmeLoop => "NVMe of this host's kernel",
            Self::Sata => "SATA",
            Self::Sas => "SAS",
            Self::ParallelScsi => "parallel SCSI",
            Self::RaidController => "RAID controller",
            Self::Usb => "USB",
            Self::Mmc => "MMC",
            Self::Virtio => "virtio",
            Self::Xen => "Xen",
            Self::HyperV => "Hyper-V",
            Self::VmwarePvscsi => "VMware PVSCSI",
            Self::Partitioned => "of a partition",
            Self::Iscsi => "iSCSI",
            Self::FibreChannel => "Fibre Channel",
            Self::Srp => "SCSI over RDMA",
            Self::Aoe => "ATA over Ethernet",
            Self::Rbd => "Ceph",
            Self::Nbd => "network block device",
            Self::Ublk => "a process of this host",
            Self::ScsiLoopback => "SCSI of this host's kernel",
            Self::Zram => "compressed memory",
            Self::Ram => "memory",
            Self::Pmem => "persistent memory",
            Self::Test => "for tests",
            Self::Zvol => "a ZFS volume",
            Self::Other => "not known",
        }
    }
}

/// Block device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Kernel name of the device, such as `nvme0n1`.
    pub name: String,
    /// Type of the device: `disk`, `partition`, `loop`, `dm`, `md`, `bcache`, `drbd`.
    pub kind: String,
    /// How the device is attached to the host; `None` if this is unknown, or if the device consists
    /// of other devices.
    #[serde(default)]
    pub transport: Option<Transport>,
    /// Vendor string of the device.
    #[serde(default)]
    pub vendor: Option<String>,
    /// Driver of the controller, such as `megaraid_sas`.
    #[serde(default)]
    pub driver: Option<String>,
    /// For a network device, the name or address of its target.
    #[serde(default)]
    pub address: Option<String>,
    /// How the device combines its underlying devices: the RAID level, or the identifier of the
    /// device mapper (such as `LVM-…` or `CRYPT-…`).
    #[serde(default)]
    pub mapping: Option<String>,
    /// True if this is a loop device that accesses its backing file with direct I/O. `None` for
    /// other devices.
    #[serde(default)]
    pub direct_io: Option<bool>,
    /// Model string.
    pub model: Option<String>,
    /// Size of the device in bytes.
    pub size_bytes: Option<u64>,
    /// The kernel's rotational flag. Virtual disks often report it wrongly.
    pub rotational: Option<bool>,
    /// Mode of the write cache: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// True if the device supports forced unit access (FUA). A write with FUA bypasses the device's
    /// cache without a flush, so the kernel counts no flush for this write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced_writes: Option<bool>,
    /// Active I/O scheduler.
    pub scheduler: Option<String>,
    /// Logical block size in bytes.
    pub logical_block_bytes: Option<u64>,
    /// Physical block size in bytes.
    pub physical_block_bytes: Option<u64>,
    /// Names of the underlying devices. For a loop device, the path of the backing file.
    pub below: Vec<String>,
}

/// Limits of the load generator on this host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Time when the host was calibrated, in nanoseconds since 1970.
    #[serde(default)]
    pub taken_unix_ns: Option<u64>,
    /// Duration of an empty system call, in picoseconds.
    #[serde(default)]
    pub system_call_ps: Option<u64>,
    /// Names of the CPU instructions that compute content and checksums.
    #[serde(default)]
    pub instructions: Option<String>,
    /// Operations per second that a single thread performs on the null target.
    pub null_rate_ops_per_s: Option<f64>,
    /// Operations per second of a single io_uring instance. The operations are writes of 4 KiB to
    /// `/dev/null` at queue depth 32.
    pub ring_rate_ops_per_s: Option<f64>,
    /// Rate at which memory is copied, in bytes per second.
    pub memory_bytes_per_s: Option<f64>,
    /// Rate at which checksums are computed, in bytes per second.
    pub checksum_bytes_per_s: Option<f64>,
    /// Rate at which block content is generated, in bytes per second.
    pub content_bytes_per_s: Option<f64>,
}

/// A fact that could not be observed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservationGap {
    /// The fact.
    pub what: String,
    /// Reason.
    pub why: String,
    /// Privilege, package or setting with which the fact could be observed.
    #[serde(rename = "would_show")]
    pub remedy: String,
}

impl ObservationGap {
    /// If the internal work of the storage was not observed, the field `what` begins with this
    /// text. Bundles contain the text, so it must never change.
    const STORAGE: &str = "what the storage";

    /// Creates the gap for a storage system whose internal work was not observed. `action`
    /// completes the clause "what the storage …", for example by "moved".
    #[must_use]
    pub fn of_storage(action: &str, why: String, remedy: &str) -> Self {
        Self { what: format!("{} {action}", Self::STORAGE), why, remedy: remedy.to_owned() }
    }

    /// Returns true if the gap concerns the internal work of the storage.
    #[must_use]
    pub fn is_of_storage(&self) -> bool {
        self.what.starts_with(Self::STORAGE)
    }
}
