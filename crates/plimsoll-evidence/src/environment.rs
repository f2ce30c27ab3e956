//! `environment.json`: the host as it was. What could not be read is absent, never zero.

use serde::{Deserialize, Serialize};

/// Host, CPU, kernel, memory, the file systems and devices behind the target.
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
    /// CPUs that the process may run on.
    pub cpus: Option<u32>,
    /// Memory of the host.
    pub memory_bytes: Option<u64>,
    /// Memory available when the run began.
    pub memory_available_bytes: Option<u64>,
    /// Kernel clock source, such as `tsc`.
    pub clock_source: Option<String>,
    /// True where the process has root's privileges.
    pub privileged: bool,
    /// Name of the hypervisor or container, where one shows.
    pub virtualisation: Option<String>,
    /// One for each directory, file or device that the plan names.
    pub mounts: Vec<Mount>,
    /// File systems that those of the target rest on: an overlay's upper directory, the one that holds
    /// the backing file of a loop device. Each names that directory or file as its path.
    #[serde(default)]
    pub below: Vec<Mount>,
    /// The block devices beneath, down to the disks.
    pub devices: Vec<Device>,
    /// Single-core score measured at the start: for comparisons between hosts.
    pub cpu_score: Option<f64>,
    /// This host's own ceilings ([`Calibration`]); `None` where it was not calibrated.
    pub calibration: Option<Calibration>,
    /// What could not be read, and what would show it.
    pub unknown: Vec<Unknown>,
}

/// The file system under a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mount {
    /// As the plan names it.
    pub path: String,
    /// Such as `ext4`.
    pub file_system: Option<String>,
    /// Where it is mounted.
    pub mount_point: Option<String>,
    /// Device or server that is mounted.
    pub source: Option<String>,
    /// Mount options.
    pub options: Option<String>,
    /// Size of the file system.
    pub size_bytes: Option<u64>,
    /// Free for this user when the run began.
    pub free_bytes: Option<u64>,
    /// Names of the devices that hold it, as in [`Device::name`].
    pub devices: Vec<String>,
    /// Names of those that it lies on directly.
    #[serde(default)]
    pub on: Vec<String>,
}

/// How a block device is attached, as sysfs shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// NVMe on this host's PCI bus.
    NvmePcie,
    /// NVMe over TCP.
    NvmeTcp,
    /// NVMe over RDMA.
    NvmeRdma,
    /// NVMe over Fibre Channel.
    NvmeFc,
    /// An NVMe target of this host's own kernel.
    NvmeLoop,
    /// SATA or PATA.
    Sata,
    /// SAS, on a host bus adapter that passes disks through.
    Sas,
    /// Parallel SCSI.
    ParallelScsi,
    /// A RAID controller's volume.
    RaidController,
    /// USB or FireWire.
    Usb,
    /// SD card, eMMC or UFS.
    Mmc,
    /// virtio-blk or virtio-scsi: given by a hypervisor.
    Virtio,
    /// Xen's paravirtual disk.
    Xen,
    /// Hyper-V's paravirtual SCSI.
    HyperV,
    /// VMware's paravirtual SCSI.
    VmwarePvscsi,
    /// Disks of a partition of a Power system or mainframe.
    Partitioned,
    /// iSCSI or iSER.
    Iscsi,
    /// Fibre Channel, FCoE included.
    FibreChannel,
    /// SCSI over RDMA.
    Srp,
    /// ATA over Ethernet.
    Aoe,
    /// Ceph's block device.
    Rbd,
    /// Network block device.
    Nbd,
    /// A process of this host serves it (ublk).
    Ublk,
    /// A SCSI target of this host's own kernel.
    ScsiLoopback,
    /// Compressed memory.
    Zram,
    /// A RAM disk.
    Ram,
    /// Persistent memory, or memory that was set aside for it.
    Pmem,
    /// A device that keeps nothing, or keeps it in memory, for tests (`null_blk`, `scsi_debug`).
    Test,
    /// A volume of a file system's own (ZFS).
    Zvol,
    /// None of these, or not told.
    #[serde(other)]
    Other,
}

impl Transport {
    /// As people read it.
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

/// A block device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Kernel name, such as `nvme0n1`.
    pub name: String,
    /// `disk`, `partition`, `loop`, `dm`, `md`, `bcache`, `drbd`.
    pub kind: String,
    /// How it is attached; `None` for those that rest on other devices, and where it is not told.
    #[serde(default)]
    pub transport: Option<Transport>,
    /// Vendor, as the device says.
    #[serde(default)]
    pub vendor: Option<String>,
    /// The driver of its controller, such as `megaraid_sas`.
    #[serde(default)]
    pub driver: Option<String>,
    /// Where a device of a network is: the target's name or address.
    #[serde(default)]
    pub address: Option<String>,
    /// What makes it of the devices below: a software RAID's level, a device mapper's identifier
    /// (such as `LVM-…`, `CRYPT-…`).
    #[serde(default)]
    pub mapping: Option<String>,
    /// Of a loop device: whether it reads and writes its backing file past the page cache.
    #[serde(default)]
    pub direct_io: Option<bool>,
    /// Model string.
    pub model: Option<String>,
    /// Size.
    pub size_bytes: Option<u64>,
    /// What the kernel believes; virtual disks lie here.
    pub rotational: Option<bool>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// Whether it takes writes that go past its cache (FUA): those need no flush, and none is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced_writes: Option<bool>,
    /// I/O scheduler in use.
    pub scheduler: Option<String>,
    /// Logical block size.
    pub logical_block_bytes: Option<u64>,
    /// Physical block size.
    pub physical_block_bytes: Option<u64>,
    /// The devices or backing file below it.
    pub below: Vec<String>,
}

/// Ceilings of the load generator on this host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// When it was measured, in nanoseconds since 1970.
    #[serde(default)]
    pub taken_unix_ns: Option<u64>,
    /// An empty system call, in picoseconds.
    #[serde(default)]
    pub system_call_ps: Option<u64>,
    /// Instructions that content and checks use.
    #[serde(default)]
    pub instructions: Option<String>,
    /// Operations per second of one thread on the null target.
    pub null_rate_ops_per_s: Option<f64>,
    /// Operations per second of one ring: writes of 4 KiB to `/dev/null` at depth 32.
    pub ring_rate_ops_per_s: Option<f64>,
    /// Copying memory.
    pub memory_bytes_per_s: Option<f64>,
    /// Checksums.
    pub checksum_bytes_per_s: Option<f64>,
    /// Generating content.
    pub content_bytes_per_s: Option<f64>,
}

/// Something that could not be observed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknown {
    /// What.
    pub what: String,
    /// Why not.
    pub why: String,
    /// Which privilege, package or setting would show it.
    pub would_show: String,
}
