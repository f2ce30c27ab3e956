//! `environment.json`: state of the host. Values that could not be read are absent, never zero.

use serde::{Deserialize, Serialize};

/// Host, CPU, kernel, memory, and the file systems and devices that the target uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Host name.
    pub host: Option<String>,
    /// Kernel release, such as `6.1.0-13-amd64`.
    pub kernel: Option<String>,
    /// Name of the distribution.
    pub distribution: Option<String>,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Number of CPUs that the process may use, from its affinity mask.
    pub cpus: Option<u32>,
    /// Memory of the host in bytes.
    pub memory_bytes: Option<u64>,
    /// Available memory when the run started.
    pub memory_available_bytes: Option<u64>,
    /// Kernel clock source, such as `tsc`.
    pub clock_source: Option<String>,
    /// True if the process has root privileges.
    pub privileged: bool,
    /// Name of the hypervisor or container, if one is visible.
    pub virtualisation: Option<String>,
    /// File systems of the target, with one entry for each directory, file or device in the plan.
    pub mounts: Vec<Mount>,
    /// Underlying file systems. For an overlay, this is the file system of its upper directory; for
    /// a loop device, that of its backing file. The path of the entry is this directory or file.
    #[serde(default)]
    pub below: Vec<Mount>,
    /// Block devices that the target uses, down to the physical disks.
    pub devices: Vec<Device>,
    /// Speed of a single core, measured at the start as a score, for comparing hosts.
    pub cpu_score: Option<f64>,
    /// Limits of the load generator on this host ([`Calibration`]); `None` if the host was not
    /// calibrated.
    pub calibration: Option<Calibration>,
    /// Facts that could not be read, each with a way to make it readable.
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
    /// The mounted device, or the export of a server.
    pub source: Option<String>,
    /// Mount options.
    pub options: Option<String>,
    /// Total size of the file system in bytes.
    pub size_bytes: Option<u64>,
    /// Free bytes that this user could use when the run started.
    pub free_bytes: Option<u64>,
    /// Names of all devices that the file system uses, directly or indirectly, as in
    /// [`Device::name`].
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
    /// NVMe target in this host's own kernel.
    NvmeLoop,
    /// SATA or PATA.
    Sata,
    /// SAS, with a host bus adapter that passes disks through.
    Sas,
    /// Parallel SCSI.
    ParallelScsi,
    /// Volume of a RAID controller.
    RaidController,
    /// USB or FireWire.
    Usb,
    /// SD card, eMMC or UFS.
    Mmc,
    /// virtio-blk or virtio-scsi, provided by a hypervisor.
    Virtio,
    /// Xen's paravirtual disk.
    Xen,
    /// Hyper-V's paravirtual SCSI.
    HyperV,
    /// VMware's paravirtual SCSI.
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
    /// Ceph's block device.
    Rbd,
    /// Network block device.
    Nbd,
    /// ublk: a process on this host serves the device.
    Ublk,
    /// SCSI target in this host's own kernel.
    ScsiLoopback,
    /// zram: compressed memory.
    Zram,
    /// RAM disk.
    Ram,
    /// Persistent memory, or memory that the kernel reserves as persistent memory.
    Pmem,
    /// Test device that discards data or keeps it in memory (`null_blk`, `scsi_debug`).
    Test,
    /// Volume that a file system provides (ZFS).
    Zvol,
    /// Another transport, or an unknown one.
    #[serde(other)]
    Other,
}

impl Transport {
    /// Returns the name that is shown to users.
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
    /// Kernel name, such as `nvme0n1`.
    pub name: String,
    /// `disk`, `partition`, `loop`, `dm`, `md`, `bcache`, `drbd`.
    pub kind: String,
    /// How the device is attached; `None` if this is unknown, or if the device consists of other
    /// devices.
    #[serde(default)]
    pub transport: Option<Transport>,
    /// Vendor string of the device.
    #[serde(default)]
    pub vendor: Option<String>,
    /// Driver of the controller, such as `megaraid_sas`.
    #[serde(default)]
    pub driver: Option<String>,
    /// Name or address of the target, if this is a network device.
    #[serde(default)]
    pub address: Option<String>,
    /// How the device combines its underlying devices: the RAID level, or the device mapper's
    /// identifier (such as `LVM-…`, `CRYPT-…`).
    #[serde(default)]
    pub mapping: Option<String>,
    /// True if this is a loop device that accesses its backing file with direct I/O. `None` for
    /// other devices.
    #[serde(default)]
    pub direct_io: Option<bool>,
    /// Model string.
    pub model: Option<String>,
    /// Size in bytes.
    pub size_bytes: Option<u64>,
    /// The kernel's rotational flag. Virtual disks often report it wrongly.
    pub rotational: Option<bool>,
    /// Mode of the write cache: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// True if the device supports forced unit access (FUA). Writes with FUA bypass the device's
    /// cache without a flush, so the kernel counts no flush for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced_writes: Option<bool>,
    /// Active I/O scheduler.
    pub scheduler: Option<String>,
    /// Logical block size in bytes.
    pub logical_block_bytes: Option<u64>,
    /// Physical block size in bytes.
    pub physical_block_bytes: Option<u64>,
    /// Underlying devices, or the backing file of a loop device.
    pub below: Vec<String>,
}

/// Limits of the load generator on this host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Time of the calibration, in nanoseconds since 1970.
    #[serde(default)]
    pub taken_unix_ns: Option<u64>,
    /// Duration of an empty system call, in picoseconds.
    #[serde(default)]
    pub system_call_ps: Option<u64>,
    /// CPU instructions that compute content and checksums.
    #[serde(default)]
    pub instructions: Option<String>,
    /// Operations per second that a single thread performs on the null target.
    pub null_rate_ops_per_s: Option<f64>,
    /// Operations per second that a single io_uring instance performs: writes of 4 KiB to
    /// `/dev/null` at queue depth 32.
    pub ring_rate_ops_per_s: Option<f64>,
    /// Memory copy rate, in bytes per second.
    pub memory_bytes_per_s: Option<f64>,
    /// Checksum rate, in bytes per second.
    pub checksum_bytes_per_s: Option<f64>,
    /// Content generation rate, in bytes per second.
    pub content_bytes_per_s: Option<f64>,
}

/// A fact that could not be observed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservationGap {
    /// The fact.
    pub what: String,
    /// Reason.
    pub why: String,
    /// Privilege, package or setting that would make the fact observable.
    #[serde(rename = "would_show")]
    pub remedy: String,
}

impl ObservationGap {
    /// The field `what` begins with this text if the storage's internal work was not observed.
    /// Bundles contain the text, so it must never change.
    const STORAGE: &str = "what the storage";

    /// Creates the gap for a storage system whose internal work was not observed. `action`
    /// completes the clause "what the storage …", for example with "moved".
    #[must_use]
    pub fn of_storage(action: &str, why: String, remedy: &str) -> Self {
        Self { what: format!("{} {action}", Self::STORAGE), why, remedy: remedy.to_owned() }
    }

    /// Returns true if the gap is about the storage's internal work.
    #[must_use]
    pub fn is_of_storage(&self) -> bool {
        self.what.starts_with(Self::STORAGE)
    }
}
