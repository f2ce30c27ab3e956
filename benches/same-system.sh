#!/bin/bash
# Compares a system with itself: how often does Plimsoll report a difference that does not exist? Each
# comparison alternates two targets that are the same directory, with four runs of half a second each.
# At 95 % confidence, one in twenty differs by chance; more than 6 of 40 has a probability of 1.4 %,
# and is a failure. Undecided comparisons are listed with the rules that failed in their runs. As root
# it uses ext4 on its own loop device, whose counters no other process changes. Otherwise it uses DIR,
# where other I/O on the disk makes runs INVALID.
# usage: benches/same-system.sh [DIR [PLIMSOLL [COMPARISONS]]]
set -euo pipefail
dir=$(mktemp -d "${1:-/var/tmp}/plimsoll-same-system.XXXXXX")
plimsoll=${2:-plimsoll}
comparisons=${3:-40}
device=
clean_up() {
    if [ -n "$device" ]; then
        umount "$dir/data" 2>/dev/null || true
        losetup -d "$device"
    fi
    rm -rf "$dir"
}
trap clean_up EXIT
mkdir "$dir/data"
if [ "$(id -u)" = 0 ]; then
    dd if=/dev/urandom of="$dir/image" bs=1M count=256 status=none
    device=$(losetup --find --show --direct-io=on "$dir/image")
    mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$device"
    mount -o noatime "$device" "$dir/data"
fi
export PLIMSOLL_CALIBRATE=never
differ=0 alike=0 undecided=0
for number in $(seq "$comparisons"); do
    cat > "$dir/plan.toml" <<PLAN
version = 1
name = "same-system"
seed = $number
demonstration = true
[[target]]
name = "a"
path = "$dir/data"
[[target]]
name = "b"
path = "$dir/data"
[workload.matrix]
sizes = "16KiB"
reads = 70
file_size = "16MiB"
queue_depth = 4
[phases]
warm_up = "100ms"
measure = "500ms"
verify = false
[evidence]
min_measure = "500ms"
interval = "20ms"
[repeat]
runs = 4
PLAN
    # Exit code 3: conditions differ, for example because other I/O made a run INVALID.
    result=$("$plimsoll" compare "$dir/plan.toml" --out "$dir/out" --quiet --json || true)
    outcome=$(sed -n 's/^  "outcome": "\(.*\)",$/\1/p' <<< "$result")
    reason=$(sed -n 's/^  "reason": "\(.*\)",$/\1/p' <<< "$result")
    case $outcome in
    differ) differ=$((differ + 1)) ;;
    not-told-apart) alike=$((alike + 1)) ;;
    *)
        undecided=$((undecided + 1))
        # The line before an outcome names its rule.
        failed=$(grep -rhB1 '"outcome": "fail"' --include=verdict.json "$dir/out" |
            sed -n 's/^ *"rule": "\(.*\)",$/\1/p' | sort | uniq -c | tr -s ' \n' ' ' || true)
        reason="$reason Failed rules:${failed:- none}"
        ;;
    esac
    echo "$number: $outcome: $reason"
    rm -rf "$dir/out"
done
decided=$((differ + alike))
echo "$comparisons comparisons of a system with itself: $decided decided, $undecided not"
echo "of those decided, $differ declare a difference"
[ "$differ" -le $((comparisons * 6 / 40 > 1 ? comparisons * 6 / 40 : 1)) ]
