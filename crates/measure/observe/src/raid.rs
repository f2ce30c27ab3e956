//! Reads the state of software RAIDs that store the target: `/sys/block/NAME/md` (kernel:
//! Documentation/admin-guide/md.rst).

use std::fs;

use plimsoll_evidence::observed::Raid;

use crate::device::DeviceNumber;

/// Returns the software RAIDs among these devices, with their state.
pub fn find(devices: impl Iterator<Item = DeviceNumber>) -> Vec<Raid> {
    devices.filter_map(|number| read(&number.name()?)).collect()
}

fn read(name: &str) -> Option<Raid> {
    let directory = format!("/sys/class/block/{name}/md");
    fs::metadata(&directory).ok()?;
    let text = |file: &str| {
        let text = fs::read_to_string(format!("{directory}/{file}")).ok()?;
        Some(text.trim().to_owned())
    };
    Some(Raid {
        name: name.to_owned(),
        level: text("level"),
        degraded: text("degraded").and_then(|text| text.parse().ok()),
        sync_action: text("sync_action"),
    })
}

/// For each RAID, compares its states at two readings and returns the worse state.
pub fn worse(before: &[Raid], after: &[Raid]) -> Vec<Raid> {
    after
        .iter()
        .map(|now| {
            let then = before.iter().find(|raid| raid.name == now.name);
            let busy = |raid: &Raid| raid.sync_action.as_deref().is_some_and(|a| a != "idle");
            let bad = |raid: &Raid| raid.degraded.unwrap_or(0) > 0 || busy(raid);
            match then {
                Some(then) if bad(then) && !bad(now) => then.clone(),
                _ => now.clone(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raid(degraded: u64, action: &str) -> Raid {
        Raid {
            name: "md0".into(),
            degraded: Some(degraded),
            sync_action: Some(action.into()),
            ..Raid::default()
        }
    }

    #[test]
    fn returns_the_worse_reading() {
        let idle = [raid(0, "idle")];
        assert_eq!(worse(&[raid(0, "check")], &idle), [raid(0, "check")]);
        assert_eq!(worse(&idle, &[raid(1, "idle")]), [raid(1, "idle")]);
        assert_eq!(worse(&idle, &idle), idle);
    }

    #[test]
    fn a_disk_is_not_a_raid() {
        assert_eq!(read("loop0"), None);
        assert_eq!(read("../nonsense"), None);
    }
}
