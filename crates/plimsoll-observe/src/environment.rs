//! The host as it is: what `environment.json` holds.

use std::fs;
use std::path::Path;

use plimsoll_evidence::environment::{Environment, Unknown};
use procfs::{CpuInfo, Current, Meminfo};

use crate::{device, mount, namespace};

/// Describes the host and what lies beneath `paths` (directories, files or devices of the target).
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
        environment.unknown.extend(mount::unseen(path).map(|unseen| Unknown {
            what: format!("block devices beneath {}", path.display()),
            ..unseen
        }));
        for number in mount::device_numbers(path) {
            for (_, device) in device::stack(number) {
                if !environment.devices.iter().any(|known| known.name == device.name) {
                    environment.devices.push(device);
                }
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

fn virtualisation() -> Option<String> {
    if let Some(product) = first_line("/sys/class/dmi/id/product_name") {
        return Some(product);
    }
    let flags = fs::read_to_string("/proc/cpuinfo").ok()?;
    flags.contains(" hypervisor").then(|| "a hypervisor (name not shown)".to_owned())
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
    fn what_lies_on_no_device_is_said_to_be_unknown() {
        let environment = collect(&[Path::new("/proc")]);
        assert_eq!(environment.unknown.len(), 1);
    }
}
