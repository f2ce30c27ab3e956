#!/bin/bash
# A real NFS server for tests and benches: NFS-Ganesha (user space) on 127.0.0.1, NFSv3 over TCP.
#
#   ganesha.sh start DIR NFS_PORT MOUNT_PORT EXPORTS   exports DIR/export1 … DIR/exportN as /export1 … /exportN
#   ganesha.sh kill  DIR                               kills the server only, like a crash
#   ganesha.sh again DIR                               start the server again with the same ports and exports
#   ganesha.sh stop  DIR                               stop server and rpcbind; keep the exported files
#
# Needs root and the Debian packages nfs-ganesha, nfs-ganesha-vfs, rpcbind. DIR must be on a file
# system with file handles (ext4, XFS, tmpfs; not overlayfs).
#
# Ganesha refuses to serve version 3 without a portmapper, which it reaches through the socket
# /run/rpcbind.sock. Both run in their own mount namespace with an empty /run, so that they change
# nothing of this host and several servers can run at once. rpcbind also has an empty network
# namespace, so that it opens no port. The script stops processes by the ids in DIR/*.pid.
set -euo pipefail
CMD=$1
DIR=$(realpath -m "$2")

fail() { echo "ganesha.sh: $*" >&2; exit 1; }

alive() { [ -f "$1" ] && [ -d "/proc/$(cat "$1")" ] && ! grep -q '^State:.Z' "/proc/$(cat "$1")/status"; }

end() { # PIDFILE SIGNAL: end it and wait until it has gone
  local file=$1 pid
  [ -f "$file" ] || return 0
  pid=$(cat "$file")
  kill "-$2" "$pid" 2>/dev/null || true
  for _ in $(seq 100); do alive "$file" || break; sleep 0.1; done
  if alive "$file"; then kill -9 "$pid" 2>/dev/null || true; fi
  for _ in $(seq 50); do alive "$file" || break; sleep 0.1; done
  rm -f "$file"
}

listening() { # PORT on 127.0.0.1, plain or mapped into IPv6 (/proc has it in hexadecimal; 0A is LISTEN)
  grep -qi "0100007F:$(printf %04X "$1") [0-9A-F:]* 0A " /proc/net/tcp /proc/net/tcp6
}

wait_listening() {
  for _ in $(seq 150); do
    if listening "$1" && listening "$2"; then return 0; fi
    alive "$DIR/ganesha.pid" || break
    sleep 0.1
  done
  tail -5 "$DIR/ganesha.log" >&2 || true
  fail "the server did not listen on 127.0.0.1:$1 and :$2"
}

start_server() {
  # shellcheck disable=SC1091
  . "$DIR/ports"
  setsid nsenter --mount="/proc/$(cat "$DIR/rpcbind.pid")/ns/mnt" sh -c '
    echo $$ > "$1/ganesha.pid"
    ulimit -n "$(ulimit -Hn)"
    exec ganesha.nfsd -F -f "$1/ganesha.conf" -L "$1/ganesha.log" -p /run/ganesha.pid -N NIV_EVENT
  ' sh "$DIR" > "$DIR/ganesha.out" 2>&1 < /dev/null &
  for _ in $(seq 50); do [ -s "$DIR/ganesha.pid" ] && break; sleep 0.1; done
  wait_listening "$NFS_PORT" "$MOUNT_PORT"
}

write_conf() { # NFS_PORT MOUNT_PORT EXPORTS
  local i
  {
    echo "NFS_CORE_PARAM { NFS_Port = $1; MNT_Port = $2; Bind_addr = 127.0.0.1; Protocols = 3;"
    echo "  Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; mount_path_pseudo = true; }"
    echo "NFSV4 { Graceless = true; RecoveryBackend = fs; }"
    echo "NFS_KRB5 { Active_krb5 = false; }"
    echo "LOG { Default_Log_Level = EVENT; }"
    for i in $(seq "$3"); do
      mkdir -p "$DIR/export$i"
      echo "EXPORT { Export_Id = $i; Path = $DIR/export$i; Pseudo = /export$i; Access_Type = RW;"
      echo "  Squash = No_Root_Squash; Protocols = 3; Transports = TCP; SecType = sys;"
      echo "  FSAL { Name = VFS; } }"
    done
  } > "$DIR/ganesha.conf"
}

case $CMD in
  start)
    [ "$(id -u)" = 0 ] || fail "needs root (mount and network namespaces, file handles)"
    for p in ganesha.nfsd rpcbind unshare nsenter; do
      command -v $p > /dev/null || PATH=$PATH:/usr/sbin:/sbin command -v $p > /dev/null ||
        fail "$p is missing: apt-get install nfs-ganesha nfs-ganesha-vfs rpcbind util-linux"
    done
    mkdir -p "$DIR"
    for f in ganesha rpcbind; do if alive "$DIR/$f.pid"; then fail "$DIR/$f.pid is running"; fi; done
    rm -f "$DIR"/*.pid
    printf 'NFS_PORT=%s\nMOUNT_PORT=%s\n' "$3" "$4" > "$DIR/ports"
    write_conf "$3" "$4" "$5"
    setsid unshare --mount --propagation private sh -c '
      mount -t tmpfs -o mode=755 tmpfs /run && mkdir -p /run/rpcbind /run/ganesha &&
      { chown _rpc /run/rpcbind || true; } && mkdir -p /var/lib/nfs/ganesha &&
      mount -t tmpfs tmpfs /var/lib/nfs/ganesha && echo $$ > "$1/rpcbind.pid" &&
      exec unshare --net sh -c "ip link set lo up 2>/dev/null; exec rpcbind -f -w"
    ' sh "$DIR" > "$DIR/rpcbind.out" 2>&1 < /dev/null &
    for _ in $(seq 100); do
      if [ -s "$DIR/rpcbind.pid" ] && [ -S "/proc/$(cat "$DIR/rpcbind.pid")/root/run/rpcbind.sock" ]; then break; fi
      sleep 0.1
    done
    alive "$DIR/rpcbind.pid" || fail "rpcbind did not start: $(cat "$DIR/rpcbind.out")"
    start_server;;
  kill)  end "$DIR/ganesha.pid" KILL;;
  again) start_server;;
  stop)  end "$DIR/ganesha.pid" TERM; end "$DIR/rpcbind.pid" TERM;;
  *) fail "unknown command $CMD";;
esac
