//! Tests block devices of other kinds of hosts, from copies of their sysfs trees. A fixture names
//! directories in brackets, followed by their files (`name = text`) and links (`name -> target`).
//! This module adds the links that the kernel creates for numbers and names.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use plimsoll_evidence::environment::{Device, Transport};
use plimsoll_observe::completion::{self, Completion};
use plimsoll_observe::device::DeviceNumber;
use plimsoll_observe::stack;
use plimsoll_observe::sysfs::Sysfs;

struct Host {
    root: tempfile::TempDir,
}

impl Host {
    fn new(name: &str) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/hosts/{name}.txt"));
        let host = Self { root: tempfile::tempdir().unwrap() };
        let mut directory = PathBuf::new();
        for line in fs::read_to_string(file).unwrap().lines().map(str::trim) {
            if let Some(path) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                directory = host.root.path().join(path);
                fs::create_dir_all(&directory).unwrap();
            } else if let Some((name, target)) = line.split_once(" -> ") {
                let link = directory.join(name);
                fs::create_dir_all(link.parent().unwrap()).unwrap();
                symlink(target, link).unwrap();
            } else if let Some((name, value)) = line.split_once(" =") {
                let file = directory.join(name);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, format!("{}\n", value.trim())).unwrap();
                if name == "dev" {
                    host.link(&directory, value.trim());
                }
            }
        }
        host
    }

    /// Creates the kernel's two links to a device, by number and by name.
    fn link(&self, directory: &Path, number: &str) {
        let relative = directory.strip_prefix(self.root.path()).unwrap();
        let name = directory.file_name().unwrap();
        for place in [Path::new("dev/block").join(number), Path::new("class/block").join(name)] {
            let link = self.root.path().join(&place);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(Path::new("../..").join(relative), link).unwrap();
        }
    }

    /// Returns `name` and all devices below it.
    fn beneath(&self, name: &str) -> Vec<Device> {
        let sysfs = Sysfs::at(self.root.path());
        let number: DeviceNumber = sysfs.number(name).unwrap();
        stack::of_tree(&sysfs, number).into_iter().map(|layer| layer.device).collect()
    }

    /// Returns the description of a device that has no other devices below it.
    fn disk(&self, name: &str) -> Device {
        let mut devices = self.beneath(name);
        assert_eq!(devices.len(), 1, "{devices:?}");
        devices.remove(0)
    }
}

impl Host {
    /// Returns the completion path of a disk. `/proc` contains these interrupts and affinities.
    fn completion(&self, name: &str, interrupts: &str, goes_to: &[(u32, &str)]) -> Completion {
        let proc = self.root.path().join("proc");
        fs::create_dir_all(&proc).unwrap();
        fs::write(proc.join("interrupts"), interrupts).unwrap();
        for (number, cpus) in goes_to {
            let directory = proc.join(format!("irq/{number}"));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("effective_affinity_list"), format!("{cpus}\n")).unwrap();
        }
        let sysfs = Sysfs::at(self.root.path());
        completion::of(&sysfs, &proc, sysfs.number(name).unwrap()).unwrap()
    }
}

#[test]
fn reads_queues_and_interrupts_of_a_disk() {
    let interrupts = "      CPU0  CPU1\n 35:  0  0  PCI-MSIX  0-edge  virtio2-config\n \
        36:  0  68001  PCI-MSIX  1-edge  virtio2-req.0\n";
    let kvm = Host::new("kvm").completion("vda", interrupts, &[(35, "0"), (36, "1")]);
    assert_eq!((kvm.device.as_str(), kvm.queues), ("vda", vec![vec![0, 1]]));
    let lines: Vec<_> = kvm.lines.iter().map(|l| (l.number, l.name.as_str(), &l.cpus)).collect();
    assert_eq!(lines, [(35, "virtio2-config", &vec![0]), (36, "virtio2-req.0", &vec![1])]);
    assert_eq!(kvm.lines[1].taken.get(&1), Some(&68001));
    // A partition has the interrupts of its disk. Interrupts of a bridge above the disk do not
    // count.
    let nvme = Host::new("nvme").completion("nvme0n1p2", "", &[(41, "0"), (42, "1")]);
    assert_eq!((nvme.device.as_str(), nvme.queues), ("nvme0n1", vec![vec![0], vec![1]]));
    assert_eq!(nvme.lines.iter().map(|l| l.number).collect::<Vec<_>>(), [40, 41, 42]);
    assert_eq!((&nvme.lines[2].cpus, nvme.local_cpus), (&vec![1], vec![1]));
    // A disk of an NVMe subsystem has the interrupts of its controller.
    let ports = Host::new("nvme-two-ports").completion("nvme0n1", "", &[]);
    assert_eq!(ports.lines.iter().map(|l| l.number).collect::<Vec<_>>(), [50]);
    // Devices without interrupts have no completion path.
    let memory = Host::new("memory").completion("ram0", "", &[]);
    assert!(memory.queues.is_empty() && memory.lines.is_empty());
}

fn names(devices: &[Device]) -> Vec<&str> {
    devices.iter().map(|device| device.name.as_str()).collect()
}

#[test]
fn recognises_the_transport_of_each_disk() {
    use Transport::*;
    for (host, name, transport) in [
        ("nvme", "nvme0n1", NvmePcie),
        ("sas-raid-controller", "sda", RaidController),
        ("sas-hba", "sdb", Sas),
        ("sata", "sda", Sata),
        ("iscsi", "sdc", Iscsi),
        ("fc-multipath", "sdb", FibreChannel),
        ("rbd", "rbd0", Rbd),
        ("nbd", "nbd0", Nbd),
        ("ec2-ebs", "nvme0n1", NvmePcie),
        ("xen", "xvda", Xen),
        ("azure", "sda", HyperV),
        ("vmware", "sda", VmwarePvscsi),
        ("kvm", "vda", Virtio),
        ("kvm", "sda", Virtio),
        ("nvme-of-multipath", "nvme0n1", NvmeTcp),
        ("nvme-two-ports", "nvme0n1", NvmePcie),
        ("memory", "ram0", Ram),
        ("memory", "zram1", Zram),
        ("memory", "pmem0", Pmem),
        ("memory", "pmem1s", Pmem),
        ("tests", "sdx", Test),
        ("tests", "nullb0", Test),
        ("tests", "fastdisk", Other),
        ("tests", "sdy", ScsiLoopback),
        ("tests", "ublkb0", Ublk),
        ("small", "sda", Usb),
        ("small", "mmcblk0", Mmc),
    ] {
        let device = Host::new(host).disk(name);
        assert_eq!(device.transport, Some(transport), "{host}: {device:?}");
        assert_eq!(device.kind, "disk", "{host}: {device:?}");
    }
}

#[test]
fn vendors_models_and_addresses_are_passed_on() {
    let of = |host, name| Host::new(host).disk(name);
    let ebs = of("ec2-ebs", "nvme0n1");
    assert_eq!(ebs.model.as_deref(), Some("Amazon Elastic Block Store"));
    let lun = of("iscsi", "sdc");
    assert_eq!((lun.vendor.as_deref(), lun.driver.as_deref()), (Some("NETAPP"), Some("iscsi_tcp")));
    assert_eq!(lun.address.as_deref(), Some("iqn.1992-08.com.netapp:sn.abc:vs.3 traddr=10.0.0.7"));
    assert_eq!(of("fc-multipath", "sdb").address.as_deref(), Some("0x500a098380000001"));
    assert_eq!(of("rbd", "rbd0").address.as_deref(), Some("volumes/db-01"));
    assert_eq!(of("nbd", "nbd0").address.as_deref(), Some("remote-a"));
    let far = of("nvme-of-multipath", "nvme0n1");
    assert!(far.address.unwrap().contains("traddr=10.0.0.2"));
    assert_eq!(of("nvme-two-ports", "nvme0n1").address, None);
    assert_eq!(of("sas-raid-controller", "sda").driver.as_deref(), Some("megaraid_sas"));
    assert_eq!(of("kvm", "vda").vendor, None, "a number of PCI is no vendor");
}

#[test]
fn stacks_are_followed_to_their_disks() {
    let of = |host, name| Host::new(host).beneath(name);
    assert_eq!(names(&of("nvme", "nvme0n1p2")), ["nvme0n1p2", "nvme0n1"]);
    let san = of("fc-multipath", "dm-1");
    assert_eq!(names(&san), ["dm-1", "dm-0", "sdb", "sdc"]);
    assert_eq!(san[1].mapping.as_deref(), Some("mpath-360060160a0b1c2d3"));
    let raid = of("md-raid1", "md0");
    assert_eq!(names(&raid), ["md0", "nvme0n1", "nvme1n1"]);
    assert_eq!((raid[0].kind.as_str(), raid[0].mapping.as_deref()), ("md", Some("raid1")));
    let crypt = of("lvm-on-luks", "dm-1");
    assert_eq!(names(&crypt), ["dm-1", "dm-0", "nvme0n1p2", "nvme0n1"]);
    assert!(crypt[1].mapping.as_deref().unwrap().starts_with("CRYPT-"));
    let cached = of("bcache", "bcache0");
    assert_eq!(names(&cached), ["bcache0", "nvme0n1p2", "sda", "nvme0n1"]);
    assert!(cached[0].mapping.as_deref().unwrap().contains("[writeback]"));
    let replicated = of("drbd", "drbd0");
    assert_eq!(names(&replicated), ["drbd0", "sda"]);
    assert_eq!(replicated[0].kind, "drbd");
}

#[test]
fn zram_swap_is_not_under_the_disk() {
    assert_eq!(names(&Host::new("zram-swap").beneath("nvme0n1p2")), ["nvme0n1p2", "nvme0n1"]);
}

#[test]
fn a_mapping_without_devices_has_no_underlying_ones() {
    let nothing = Host::new("dm-without-anything").disk("dm-0");
    assert_eq!((nothing.kind.as_str(), nothing.transport), ("dm", None));
    assert!(nothing.below.is_empty() && nothing.mapping.is_none());
}
