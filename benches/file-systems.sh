#!/bin/bash
# Compares file systems, each on its own loop device: ext4, XFS, Btrfs, and Btrfs without checksums
# (nodatasum). Four alternating fresh runs each, in one command with one report.
# Needs root, e2fsprogs, xfsprogs, btrfs-progs and 1.5 GiB below DIR for each.
# usage: benches/file-systems.sh [DIR [PLIMSOLL [FILE_SYSTEM...]]]
set -euo pipefail
dir=$(mktemp -d "${1:-/var/tmp}/plimsoll-file-systems.XXXXXX")
plimsoll=${2:-plimsoll}
systems=("${@:3}")
[ ${#systems[@]} -gt 0 ] || systems=(ext4 xfs btrfs btrfs-nodatasum)
devices=()
clean_up() {
    for fs in "${systems[@]}"; do umount "$dir/$fs" 2>/dev/null || true; done
    for device in "${devices[@]}"; do losetup -d "$device"; done
    rm -f "$dir"/*.image
    for fs in "${systems[@]}"; do rmdir "$dir/$fs" 2>/dev/null || true; done
}
trap clean_up EXIT
targets=
for fs in "${systems[@]}"; do
    mkdir "$dir/$fs"
    # Written completely, so that the first write to a block allocates nothing below the loop device.
    dd if=/dev/urandom of="$dir/$fs.image" bs=1M count=1536 status=none
    device=$(losetup --find --show --direct-io=on "$dir/$fs.image")
    devices+=("$device")
    case $fs in
    *-nodatasum) options=noatime,nodatasum ;;
    *) options=noatime ;;
    esac
    "mkfs.${fs%%-*}" -q "$device"
    mount -o "$options" "$device" "$dir/$fs"
    targets+="[[target]]
name = \"$fs\"
path = \"$dir/$fs\"
"
done
cat > "$dir/plan.toml" <<PLAN
version = 1
name = "file-systems"
description = "A small mail store on ${systems[*]}, each on a loop device of its own."
demonstration = true
$targets
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
runs = 4
PLAN
"$plimsoll" compare "$dir/plan.toml" --out "$dir"
