#!/bin/bash
# A real S3 server for tests and benches: s3s-fs on 127.0.0.1, which stores objects as files.
#
#   s3.sh start DIR PORT   starts a server with the bucket `load`, DIR/load
#   s3.sh kill  DIR        kills the server, like a crash
#   s3.sh again DIR        starts the server again on the same port
#
# install.sh installs s3s-fs. PLIMSOLL_S3S_FS names another program. Keys: `plimsoll`, `load line`.
# The script stops the process by the id in DIR/pid.
set -euo pipefail
cmd=$1
dir=$(realpath -m "$2")

program() {
  local built
  built=$(dirname "$(realpath "$0")")/../../../../../target/tools/bin/s3s-fs
  if [ -n "${PLIMSOLL_S3S_FS:-}" ]; then echo "$PLIMSOLL_S3S_FS"
  elif [ -x "$built" ]; then echo "$built"
  else echo s3s-fs; fi
}

runs() { grep -qa -- "$dir" "/proc/$(cat "$dir/pid")/cmdline" 2>/dev/null; }

case $cmd in
  start)
    mkdir -p "$dir/load"
    echo "$3" > "$dir/port"
    ;;&
  start|again)
    port=$(cat "$dir/port")
    RUST_LOG=off setsid "$(program)" --host 127.0.0.1 --port "$port" --access-key plimsoll \
      --secret-key 'load line' "$dir" > /dev/null 2>&1 < /dev/null &
    echo $! > "$dir/pid"
    for _ in $(seq 100); do
      if (: > "/dev/tcp/127.0.0.1/$port") 2>/dev/null; then exit 0; fi
      sleep 0.05
    done
    echo "s3.sh: s3s-fs did not listen on 127.0.0.1:$port" >&2
    exit 1
    ;;
  kill)
    if runs; then kill -9 "$(cat "$dir/pid")"; fi
    for _ in $(seq 1000); do runs || exit 0; sleep 0.01; done
    echo "s3.sh: the server did not end" >&2
    exit 1
    ;;
  *)
    echo "s3.sh: unknown command $cmd" >&2
    exit 2
    ;;
esac
