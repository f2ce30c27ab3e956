//! Describes the host in `environment.json`.

use std::fs;
use std::path::Path;

use plimsoll_evidence::environment::{Environment, ObservationGap};
use procfs::{CpuInfo, Current, Meminfo};

use crate::{mount, namespace, stack};

/// Describes the host, and the storage that contains `paths`. The paths are directories, files or
/// devices of the target.
pub fn collect(paths: &[&Path]) -> Environment {
    let memory = Meminfo::current().ok();
    let mut environment = Environment {
        host: Some(rustix::system::uname().nodename().to_string_lossy().into_owned()),
        kernel: Some(rustix::system::uname().release().to_string_lossy().into_owned()),
        distribution: distribution(),
        cpu_model: cpu_model(),
        cpus: std::thread::available_parallelism().ok().map(|n| n.get() as u32),
        memory_bytes: memory.as_ref().map(|m| m.mem_total),
        memory_available_bytes: memory.as_ref().and_then(|m| m.mem_available),
        clock_source: first_line(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
        privileged: namespace::has_root(),
        virtualisation: virtualisation(),
        ..Environment::default()
    };
    for path in paths {
        let described = mount::describe(path);
        environment.unknown.extend(mount::explain_unseen(path).map(|unseen| ObservationGap {
            what: format!("block devices of {}", path.display()),
            ..unseen
        }));
        let stack = stack::read(path);
        for device in stack.layers.into_iter().map(|layer| layer.device) {
            if !environment.devices.iter().any(|known| known.name == device.name) {
                environment.devices.push(device);
            }
        }
        for below in stack.below {
            if !environment.below.iter().any(|known| known.path == below.path) {
                environment.below.push(below);
            }
        }
        environment.mounts.push(described);
    }
    environment
}

fn first_line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.lines().next()?.trim().to_owned())
}

fn distribution() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim_matches('"').to_owned())
}

fn cpu_model() -> Option<String> {
    CpuInfo::current().ok()?.model_name(0).map(str::to_owned)
}

/// Names in firmware tables that show that the host is a virtual machine. They are needed because
/// some processors have no hypervisor flag.
const HYPERVISORS: [&str; 13] = [
    "QEMU",
    "KVM",
    "VMware",
    "VirtualBox",
    "innotek",
    "Virtual Machine",
    "Xen",
    "HVM domU",
    "Bochs",
    "Parallels",
    "Google Compute Engine",
    "OpenStack",
    "Amazon EC2",
];

fn virtualisation() -> Option<String> {
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flagged =
        flags.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor"));
    virtualised_by(
        flagged,
        first_line("/sys/class/dmi/id/sys_vendor").as_deref(),
        first_line("/sys/class/dmi/id/product_name").as_deref(),
    )
}

/// Returns the name of the hypervisor. The sources are the processor flag and the firmware tables.
/// On a physical machine, the tables contain the name of the manufacturer.
fn virtualised_by(flagged: bool, vendor: Option<&str>, product: Option<&str>) -> Option<String> {
    let is_metal = product.is_some_and(|product| product.contains(".metal"));
    let known = [vendor, product]
        .into_iter()
        .flatten()
        .any(|text| HYPERVISORS.iter().any(|name| text.contains(name)));
    if !flagged && (!known || is_metal) {
        return None;
    }
    let name = product.or(vendor).filter(|name| !name.is_empty());
    Some(name.unwrap_or("a hypervisor (name not shown)").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_on_this_host_is_described() {
        let directory = tempfile::tempdir().unwrap();
        let environment = collect(&[directory.path()]);
        assert!(environment.kernel.is_some() && environment.memory_bytes.is_some());
        assert_eq!(environment.mounts.len(), 1);
        let beneath = &environment.mounts[0].devices;
        assert!(beneath.iter().all(|name| environment.devices.iter().any(|d| &d.name == name)));
    }

    #[test]
    fn a_physical_machine_has_a_product_name_too() {
        let of = |flagged, vendor, product| virtualised_by(flagged, Some(vendor), Some(product));
        assert_eq!(of(false, "Dell Inc.", "PowerEdge R740"), None);
        assert_eq!(of(false, "Amazon EC2", "i3.metal"), None);
        assert_eq!(of(true, "Amazon EC2", "m5.large").as_deref(), Some("m5.large"));
        assert_eq!(
            of(false, "QEMU", "QEMU Virtual Machine").as_deref(),
            Some("QEMU Virtual Machine")
        );
        assert!(virtualised_by(true, None, None).is_some());
        assert_eq!(virtualised_by(false, None, None), None);
    }

    #[test]
    fn paths_without_a_device_are_reported_as_unknown() {
        let environment = collect(&[Path::new("/proc")]);
        assert_eq!(environment.unknown.len(), 1);
    }
}
