#!/bin/bash
# ext4 against Btrfs on two loop devices, three fresh runs each, in one command with one report.
# Needs root, e2fsprogs, btrfs-progs and 3.5 GiB below DIR.
# usage: benches/file-systems.sh [DIR [PLIMSOLL]]
set -euo pipefail
dir=$(mktemp -d "${1:-/var/tmp}/plimsoll-file-systems.XXXXXX")
plimsoll=${2:-plimsoll}
devices=()
clean_up() {
    for fs in ext4 btrfs; do umount "$dir/$fs" 2>/dev/null || true; done
    for device in "${devices[@]}"; do losetup -d "$device"; done
    rm -f "$dir"/*.image
    rmdir "$dir/ext4" "$dir/btrfs"
}
trap clean_up EXIT
for fs in ext4 btrfs; do
    mkdir "$dir/$fs"
    # Written in full, so that the first write to a block is not an allocation below the loop device.
    dd if=/dev/urandom of="$dir/$fs.image" bs=1M count=1536 status=none
    device=$(losetup --find --show --direct-io=on "$dir/$fs.image")
    devices+=("$device")
    "mkfs.$fs" -q "$device"
    mount -o noatime "$device" "$dir/$fs"
done
cat > "$dir/plan.toml" <<PLAN
version = 1
name = "ext4-against-btrfs"
description = "A small mail store on ext4 and on Btrfs, each on a loop device of its own."
demonstration = true
[[target]]
name = "ext4"
path = "$dir/ext4"
[[target]]
name = "btrfs"
path = "$dir/btrfs"
[workload.mailbox]
mailboxes = 50
mailbox_size = "4MiB"
databases = 2
threads = 8
cache = "32MiB"
checkpoint_depth = "8MiB"
[phases]
warm_up = "5s"
measure = "20s"
[evidence]
min_measure = "10s"
interval = "500ms"
[repeat]
runs = 3
PLAN
"$plimsoll" compare "$dir/plan.toml" --out "$dir"
