//! Determines the identity of a logical unit, so that the same unit is recognised on several hosts.
//!
//! Sources: kernel Documentation/ABI/stable/sysfs-block and ABI/testing/sysfs-bus-rbd. For SCSI,
//! `wwid` is the designator of page 0x83 (SPC-5, 7.7.6). For NVMe, it is the namespace's UUID,
//! NGUID or EUI-64 (NVM Express Base Specification 2.0, 4.5.1).

use std::path::Path;

use crate::sysfs::{DeviceNumber, Sysfs, text};

/// Prefixes of names that are globally unique. Vendor-defined names (`t10.`, serial numbers) are
/// not among them: the disks of many virtual machines can have the same vendor-defined name.
const UNIQUE: [&str; 3] = ["naa.", "eui.", "uuid."];
/// First digits of the EUI-64 that QEMU assigns to the first namespace in each virtual machine
/// (`hw/nvme/ns.c`, `NVME_EUI64_DEFAULT`).
const SAME_IN_EVERY_QEMU: &str = "eui.5254";

/// Returns the name of the logical unit to which the device at `path` belongs, and the number of
/// the partition. `None` if the name is not globally unique.
#[must_use]
pub fn unit_of(path: &Path) -> Option<String> {
    unit(&Sysfs::host(), DeviceNumber::of_path(path).ok()?)
}

fn unit(sysfs: &Sysfs, number: DeviceNumber) -> Option<String> {
    let directory = std::fs::canonicalize(sysfs.directory(number)).ok()?;
    let Some(partition) = text(&directory.join("partition")) else { return disk(&directory) };
    let start = text(&directory.join("start"))?;
    let unit = disk(directory.parent()?)?;
    Some(format!("{unit}, partition {partition} from sector {start} on"))
}

fn disk(directory: &Path) -> Option<String> {
    // A multipath device is a device mapper device. Its UUID contains the name of the logical unit.
    if let Some(uuid) = text(&directory.join("dm/uuid")) {
        return uuid.strip_prefix("mpath-3").map(|name| format!("naa.{name}"));
    }
    let rbd = ["cluster_fsid", "pool_id", "image_id"];
    let rbd = rbd.map(|name| text(&directory.join("device").join(name)).filter(|t| !t.is_empty()));
    if let [Some(cluster), Some(pool), Some(image)] = rbd {
        return Some(format!("rbd image {image} of pool {pool} in cluster {cluster}"));
    }
    let wwid = text(&directory.join("wwid")).or_else(|| text(&directory.join("device/wwid")))?;
    let value = UNIQUE.iter().find_map(|prefix| wwid.strip_prefix(prefix))?;
    let is_one = value.chars().any(|c| c != '0') && !wwid.starts_with(SAME_IN_EVERY_QEMU);
    is_one.then_some(wwid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)], devices: &[(&str, &str)]) -> (tempfile::TempDir, Sysfs) {
        let root = tempfile::tempdir().unwrap();
        for (path, value) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{value}\n")).unwrap();
        }
        std::fs::create_dir_all(root.path().join("dev/block")).unwrap();
        for (number, target) in devices {
            let link = root.path().join("dev/block").join(number);
            std::os::unix::fs::symlink(format!("../../{target}"), link).unwrap();
        }
        let sysfs = Sysfs::at(root.path());
        (root, sysfs)
    }

    #[test]
    fn identifies_a_unit_by_a_globally_unique_name() {
        let named = |files: &[(&str, &str)]| {
            let (_root, sysfs) = tree(files, &[("8:0", "devices/d")]);
            unit(&sysfs, DeviceNumber { major: 8, minor: 0 })
        };
        let san = "naa.600140500f1b2c3d4e5f60718293a4b5";
        assert_eq!(named(&[("devices/d/device/wwid", san)]).as_deref(), Some(san));
        let path = "mpath-3600140500f1b2c3d4e5f60718293a4b5";
        assert_eq!(named(&[("devices/d/dm/uuid", path)]).as_deref(), Some(san), "over its paths");
        assert_eq!(named(&[("devices/d/wwid", "uuid.1b9e")]).as_deref(), Some("uuid.1b9e"));
        let rbd = [
            ("devices/d/device/cluster_fsid", "f00"),
            ("devices/d/device/pool_id", "2"),
            ("devices/d/device/image_id", "10af"),
        ];
        assert_eq!(named(&rbd).as_deref(), Some("rbd image 10af of pool 2 in cluster f00"));
        for not_unique in [
            "t10.ATA     QEMU HARDDISK                           QM00001",
            "nvme.1b36-6e766d652d31-51454d55204e564d65204374726c-00000001",
            "eui.5254000000000001",
            "naa.0000000000000000",
            "",
        ] {
            assert_eq!(named(&[("devices/d/wwid", not_unique)]), None, "{not_unique}");
        }
        assert_eq!(named(&[("devices/d/dm/uuid", "LVM-abc")]), None, "clones have the same");
        assert_eq!(named(&[("devices/d/size", "8")]), None);
    }

    #[test]
    fn partitions_of_a_unit_differ() {
        let files = [
            ("devices/d/wwid", "naa.6001"),
            ("devices/d/d1/partition", "1"),
            ("devices/d/d1/start", "2048"),
            ("devices/d/d2/partition", "2"),
            ("devices/d/d2/start", "4096"),
        ];
        let devices = [("8:1", "devices/d/d1"), ("8:2", "devices/d/d2")];
        let (_root, sysfs) = tree(&files, &devices);
        let of = |minor| unit(&sysfs, DeviceNumber { major: 8, minor }).unwrap();
        assert_eq!(of(1), "naa.6001, partition 1 from sector 2048 on");
        assert_ne!(of(1), of(2));
    }
}
