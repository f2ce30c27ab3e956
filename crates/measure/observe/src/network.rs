//! Reads the counters of NFS mounts (`/proc/self/mountstats`): the I/O of programs, and the I/O
//! over the network. The `bytes:` line has eight counters in the order of `struct nfs_iostats`
//! (include/linux/nfs_iostat.h): normal read and written, direct read and written, server read and
//! written, pages read and written.

use std::fs;

use plimsoll_evidence::observed::NetworkMount;

/// Reads the counters of the NFS mounts that are mounted at these paths.
pub fn read(mount_points: &[String]) -> Vec<NetworkMount> {
    let Ok(text) = fs::read_to_string("/proc/self/mountstats") else { return Vec::new() };
    let mut mounts = parse(&text);
    mounts.retain(|mount| mount_points.contains(&mount.mount_point));
    mounts
}

fn parse(text: &str) -> Vec<NetworkMount> {
    let mut mounts: Vec<NetworkMount> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("device ") {
            inside = false;
            if let Some((source, rest)) = rest.split_once(" mounted on ")
                && let Some((point, kind)) = rest.split_once(" with fstype ")
                && kind.starts_with("nfs")
            {
                inside = true;
                mounts.push(NetworkMount {
                    mount_point: point.to_owned(),
                    source: source.to_owned(),
                    ..NetworkMount::default()
                });
            }
            continue;
        }
        let (true, Some(mount)) = (inside, mounts.last_mut()) else { continue };
        let line = line.trim();
        if let Some(numbers) = line.strip_prefix("bytes:") {
            let all: Vec<u64> =
                numbers.split_ascii_whitespace().filter_map(|n| n.parse().ok()).collect();
            let at = |index: usize| all.get(index).copied().unwrap_or(0);
            mount.cached_read_bytes = at(0);
            mount.direct_read_bytes = at(2);
            mount.written_bytes = at(1) + at(3);
            (mount.server_read_bytes, mount.server_written_bytes) = (at(4), at(5));
        } else if let Some((name, numbers)) = line.split_once(": ")
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
        {
            // The name of an operation is followed by the number of its calls, the number of its
            // transmissions and other counters. The number of transmissions minus the number of
            // calls is the number of retransmissions.
            let mut numbers = numbers.split_ascii_whitespace().map(|n| n.parse::<u64>());
            if let (Some(Ok(calls)), Some(Ok(sent))) = (numbers.next(), numbers.next()) {
                mount.retransmissions += sent.saturating_sub(calls);
            }
        }
    }
    mounts
}

/// Returns the increase of the counters between two readings.
pub fn difference(before: &[NetworkMount], after: &[NetworkMount]) -> Vec<NetworkMount> {
    after
        .iter()
        .filter_map(|now| {
            let then = before.iter().find(|mount| mount.mount_point == now.mount_point)?;
            Some(NetworkMount {
                mount_point: now.mount_point.clone(),
                source: now.source.clone(),
                cached_read_bytes: now.cached_read_bytes.saturating_sub(then.cached_read_bytes),
                direct_read_bytes: now.direct_read_bytes.saturating_sub(then.direct_read_bytes),
                written_bytes: now.written_bytes.saturating_sub(then.written_bytes),
                server_read_bytes: now.server_read_bytes.saturating_sub(then.server_read_bytes),
                server_written_bytes: now
                    .server_written_bytes
                    .saturating_sub(then.server_written_bytes),
                retransmissions: now.retransmissions.saturating_sub(then.retransmissions),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "device /dev/sda mounted on / with fstype ext4\n\
        device filer:/export mounted on /mnt/nfs with fstype nfs statvers=1.1\n\
        \topts:\trw,vers=3\n\tbytes:\t100 200 300 400 350 600 7 8\n\
        \tper-op statistics\n\t        NULL: 1 1 0 44 24 0 0 0 0\n\t        READ: 10 12 0 1 2 3 4 5 0\n";

    #[test]
    fn reads_the_network_io_of_an_nfs_mount() {
        let mounts = parse(TEXT);
        assert_eq!(mounts.len(), 1);
        let mount = &mounts[0];
        assert_eq!(
            (mount.mount_point.as_str(), mount.source.as_str()),
            ("/mnt/nfs", "filer:/export")
        );
        assert_eq!((mount.cached_read_bytes, mount.direct_read_bytes), (100, 300));
        assert_eq!((mount.written_bytes, mount.server_read_bytes), (600, 350));
        assert_eq!((mount.server_written_bytes, mount.retransmissions), (600, 2));
        let moved = difference(&mounts, &mounts);
        assert_eq!(moved[0].server_read_bytes, 0);
    }

    #[test]
    fn ignores_invalid_text() {
        assert!(parse("device x\nbytes: 1\n").is_empty());
        assert!(
            parse("device a mounted on b with fstype nfs\n\tbytes: x\n")[0].server_read_bytes == 0
        );
    }
}
