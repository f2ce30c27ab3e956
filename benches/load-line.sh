#!/bin/bash
# The load line of a volume with a known limit: a loop device whose reads per second the kernel limits
# (cgroup v1 blkio or v2 io.max). `plimsoll tune` must find that limit within 5 %, in at most 16 steps,
# with reads of 4 KiB that may take 20 ms on average.
# Needs root, e2fsprogs and 200 MiB below DIR.
# usage: benches/load-line.sh [DIR [PLIMSOLL [READS_PER_S]]]
set -euo pipefail
dir=$(mktemp -d "${1:-/var/tmp}/plimsoll-load-line.XXXXXX")
plimsoll=${2:-plimsoll}
cap=${3:-500}
device=
group=
clean_up() {
    umount "$dir/mount" 2>/dev/null || true
    [ -z "$device" ] || losetup -d "$device"
    [ -z "$group" ] || rmdir "$group"
    rm -rf "$dir"
}
trap clean_up EXIT
mkdir "$dir/mount"
dd if=/dev/urandom of="$dir/image" bs=1M count=160 status=none
device=$(losetup --find --show --direct-io=on "$dir/image")
mkfs.ext4 -q "$device"
mount -o noatime "$device" "$dir/mount"
number=$(lsblk -dno MAJ:MIN "$device" | tr -d ' ')
if [ -d /sys/fs/cgroup/blkio ]; then
    group=/sys/fs/cgroup/blkio/plimsoll-load-line.$$
    mkdir "$group"
    echo "$number $cap" > "$group/blkio.throttle.read_iops_device"
else
    group=/sys/fs/cgroup/plimsoll-load-line.$$
    echo +io > /sys/fs/cgroup/cgroup.subtree_control
    mkdir "$group"
    echo "$number riops=$cap" > "$group/io.max"
fi
cat > "$dir/plan.toml" <<PLAN
version = 1
name = "capped-volume"
description = "A volume that the kernel caps at $cap reads per second."
demonstration = true
[requirement]
iops = $((cap / 2))
read_latency_avg = "20ms"
[target]
path = "$dir/mount"
[workload.matrix]
sizes = "4KiB"
reads = 100
file_size = "96MiB"
clients = 1
[phases]
warm_up = "1s"
measure = "6s"
verify = false
[evidence]
min_measure = "5s"
interval = "200ms"
PLAN
(
    echo "$BASHPID" > "$group/cgroup.procs"
    PLIMSOLL_CALIBRATE=never exec "$plimsoll" tune "$dir/plan.toml" --out "$dir/out" --json
) > "$dir/tuning.json"
line=$(sed -n '/"load_line": {/,/}/s/.*"rate_per_s": \([0-9.]*\).*/\1/p' "$dir/tuning.json")
steps=$(grep -c '"run_id"' "$dir/tuning.json")
grep -E '"(load|rate_per_s|within|steady)":' "$dir/tuning.json" | paste -sd' ' | sed 's/"load"/\n&/g'
echo
awk -v line="$line" -v cap="$cap" -v steps="$steps" 'BEGIN {
    off = (line / cap - 1) * 100
    printf "cap %d/s, load line %.1f/s: %+.1f %% off, in %d steps\n", cap, line, off, steps
    exit !(off < 5 && off > -5 && steps <= 16)
}'
