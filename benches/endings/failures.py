"""What fails beneath a run and within it: disks, servers, panics and hangs."""

import os
import shutil
import socket
import subprocess
import sys
import time

from case import BOUND_S, Skipped, fill, tool, wait_for, write
from rows import KILL, STOP, TERM, freeze, row

HERE = os.path.dirname(os.path.abspath(__file__))

# Disks that are full, gone or broken.


@row("no room for the data: refused before anything is made", 2, bundle="none")
def no_room(case):
    _, mount = case.file_system(64)
    case.start("run", case.matrix(f'path = "{mount}"', file_size="100MiB"), "-q")


@row("the disk fills up while the data is made", 5)
def fills_up(case):
    _, mount = case.file_system(512)
    case.start("run", case.mailbox(f'path = "{mount}"', mailbox_size="16MiB"), "-q")
    case.wait_file("the first database", os.path.join(mount, "plimsoll-small", "db00.edb"))
    case.cause()
    fill(mount)


@row("the disk of the bundle fills up in mid-run", (0, 3), bound_s=20)
def bundle_full(case):
    out = case.memory("out", "16m")
    case.start("run", case.matrix(measure="4s"), "-q", "--out", out)
    case.wait_load()
    fill(out)
    case.cause()


@row("the bundle's reserve is taken and its disk full: it goes elsewhere, named", (0, 3), bound_s=20)
def bundle_elsewhere(case):
    out = case.memory("out", "16m")
    case.start("run", case.matrix(measure="4s"), "-q", "--out", out)
    case.wait_load()
    for name in os.listdir(out):
        os.truncate(os.path.join(out, name, ".reserve"), 0)
    fill(out)
    case.cause()
    case.after = lambda: [] if "instead" in case.said() else ["it does not say where the bundle is"]


@row("no room for the bundle: not begun", 5, bundle="none")
def bundle_no_room(case):
    out = case.memory("out", "1m")
    case.start("run", case.mailbox(), "-q", "--out", out)


@row("the bundle's directory vanishes in mid-run: it goes elsewhere, named", (0, 3), bound_s=20)
def bundle_gone(case):
    out = case.path("out")
    os.makedirs(out)
    case.start("run", case.matrix(measure="4s"), "-q", "--out", out)
    case.wait_load()
    shutil.rmtree(out)
    case.cause()
    case.after = lambda: [] if "instead" in case.said() else ["it does not say where the bundle is"]


@row("the ledger's disk is full before the run: not begun", 5, bundle="none")
def ledger_full(case):
    state = case.memory("state/plimsoll", "64k")
    fill(state)
    case.start("run", case.matrix(), "-q")


@row("the ledger's disk fills up in mid-run: its end is entered", (0, 3), bound_s=20)
def ledger_fills(case):
    state = case.memory("state/plimsoll", "4m")
    case.start("run", case.matrix(measure="4s"), "-q")
    case.wait_load()
    fill(state)
    case.cause()
    case.after = lambda: [] if '"completed"' in case.run_beside("runs", "--json").stdout else ["no end in the ledger"]


@row("the ledger vanishes in mid-run: nothing vouches for the bundle", (0, 3, 5), bundle="not confirmed", bound_s=20)
def ledger_gone(case):
    case.start("run", case.matrix(measure="4s"), "-q")
    case.wait_load()
    shutil.rmtree(case.path("state"))
    case.cause()


def data_gone(case, kind):
    case.start("run", getattr(case, kind)(measure="4s"), "-q")
    case.wait_load()
    shutil.rmtree(os.path.join(case.data, "plimsoll-small"))
    case.cause()


row("a matrix's data is deleted by somebody else in mid-run", 5, bound_s=20)(lambda c: data_gone(c, "matrix"))
row("a mail store's data is deleted by somebody else in mid-run", 5, bound_s=20)(lambda c: data_gone(c, "mailbox"))


def unmounted(case, kind, how):
    _, mount = case.file_system(256, "noatime,errors=continue")
    case.start("run", getattr(case, kind)(f'path = "{mount}"'), "-q")
    case.wait_load(mount)
    case.cause()
    if how == "remount":
        tool("mount", "-o", "remount,abort", mount)
    else:
        tool("xfs_io", "-x", "-c", "shutdown", mount)


for kind, name in (("matrix", "a matrix"), ("mailbox", "a mail store")):
    row(f"{name}'s file system turns read-only in mid-run", 5, data=("named",))(
        lambda c, k=kind: unmounted(c, k, "remount")
    )
    row(f"{name}'s file system answers every I/O with EIO in mid-run", 5, data=("named",))(
        lambda c, k=kind: unmounted(c, k, "shutdown")
    )


@row("a device loses its end in mid-run: reads fail", 5)
def device_cut(case):
    image = case.path("device.image")
    device = case.loop_device(64, image)
    plan = case.matrix(f'device = "{device}"', file_size="64MiB", workload="reads = 100\nqueue_depth = 4")
    case.start("run", plan, "-q", "--destroy", device)
    case.wait_bundle(after=4)
    case.cause()
    os.truncate(image, 0)


def frozen(case, kind, more, *signals):
    _, mount = case.file_system()
    case.start("run", getattr(case, kind)(f'path = "{mount}"\n{more}'), "-q")
    case.wait_load(mount)
    case.cause()
    freeze(case, mount)
    if signals:
        time.sleep(0.5)
        case.signal(*signals)


for kind, name in (("matrix", "a matrix"), ("mailbox", "a mail store")):
    row(f"SIGTERM while {name}'s file system is frozen", 130, data=("named",))(
        lambda c, k=kind: frozen(c, k, 'outage_max = "10min"', TERM)
    )
row("a matrix's file system is frozen: ends after outage_max (3 s)", 5, data=("named",), bound_s=3 + BOUND_S)(
    lambda c: frozen(c, "matrix", 'outage_max = "3s"')
)
row("a mail store's file system is frozen, and still reads: ends after 3 min", 5, data=("named",), bound_s=180 + BOUND_S)(
    lambda c: frozen(c, "mailbox", 'outage_max = "3s"')
)


# A disk behind FUSE, whose server can be stopped and killed.


def disk_behind_a_server(case, more=""):
    shown, socket_path = case.path("disk"), case.path("disk.socket")
    write(shown, "")
    for name in ("nbdkit", "nbdfuse"):
        if not shutil.which(name):
            raise Skipped(f"{name} is not installed")
    server = case.process("nbdkit", "-f", "-U", socket_path, "memory", "64M", stderr=subprocess.DEVNULL)
    wait_for("nbdkit", lambda: os.path.exists(socket_path), 10)
    case.process("nbdfuse", shown, f"nbd+unix:///?socket={socket_path}", stderr=subprocess.DEVNULL)
    case.undo.append(lambda: subprocess.run(["umount", "-l", shown], capture_output=True, check=False))
    wait_for("the disk", lambda: os.stat(shown).st_size == 64 << 20, 10)
    device = case.loop_device(64, shown)
    load = "reads = 100\nqueue_depth = 4"
    plan = case.matrix(f'device = "{device}"\n{more}', file_size="64MiB", workload=load)
    case.start("run", plan, "-q", "--destroy", device)
    case.wait_bundle(after=5)
    return server


@row("a network disk's server is killed in mid-run", 5)
def disk_server_killed(case):
    server = disk_behind_a_server(case, 'outage_max = "3s"')
    case.cause()
    server.kill()


@row("a network disk's server falls silent: ends after outage_max (3 s)", 5, bound_s=3 + BOUND_S)
def disk_server_silent(case):
    server = disk_behind_a_server(case, 'outage_max = "3s"')
    case.cause()
    server.send_signal(STOP)


@row("SIGTERM while a network disk's server is silent", 130)
def disk_server_silent_ended(case):
    server = disk_behind_a_server(case, 'outage_max = "10min"')
    server.send_signal(STOP)
    time.sleep(0.5)
    case.signal(TERM)


# NFS, S3 and metrics.


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def on_nfs(case, more):
    port = free_port()
    server = case.process(
        case.binary, "model", "serve", "zfs-flash", "--nfs", str(port), stdout=subprocess.DEVNULL, env=case.env
    )
    wait_for("the server", lambda: listens(port), 20)
    case.url = f"nfs://127.0.0.1/model?nfsport={port}&mountport={port}"
    case.start("run", case.matrix(f'nfs = ["{case.url}"]\n{more}'), "-q")
    case.wait_bundle(after=4)
    return server


def on_s3(case, more):
    port = free_port()
    script = os.path.join(HERE, "servers.py")
    server = case.process(sys.executable, script, "s3", str(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for("the server", lambda: listens(port), 20)
    case.url = "s3://load/unit"
    target = f's3 = "{case.url}"\nendpoint = "http://127.0.0.1:{port}"\n{more}'
    load = 'reads = 50\nqueue_depth = 2\nclients = 2\nfile_size = "1MiB"'
    plan = case.matrix(target, workload=load.replace('\nfile_size = "1MiB"', ""), file_size="1MiB")
    case.start("run", plan, "-q")
    case.wait_bundle(after=4)
    return server


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def measured(case):
    counted = sum(found.get("count", 0) for found in case.run_json().get("classes", []))
    return [] if counted > 0 else ["what was measured is not in the bundle"]


def server_ends(case, on, how, more, *signals):
    server = on(case, more)
    case.cause()
    server.send_signal(how)
    if signals:
        time.sleep(0.5)
        case.signal(*signals)
    case.after = lambda: measured(case)


for on, name in ((on_nfs, "NFS"), (on_s3, "S3")):
    row(f"the {name} server is gone for good: ends after outage_max (3 s)", 5, data=("named",), bound_s=3 + BOUND_S)(
        lambda c, o=on: server_ends(c, o, KILL, 'outage_max = "3s"')
    )
    row(f"the {name} server falls silent: ends after outage_max (3 s)", 5, data=("named",), bound_s=3 + BOUND_S)(
        lambda c, o=on: server_ends(c, o, STOP, 'outage_max = "3s"')
    )
    row(f"SIGTERM while the {name} server is silent", 130, data=("named",))(
        lambda c, o=on: server_ends(c, o, STOP, 'outage_max = "10min"', TERM)
    )
    row(f"SIGTERM twice while the {name} server is gone", 130, data=("named",))(
        lambda c, o=on: server_ends(c, o, KILL, 'outage_max = "10min"', TERM, TERM)
    )


def dripping(case, measure):
    port = free_port()
    case.process(sys.executable, os.path.join(HERE, "servers.py"), "metrics", str(port), stdout=subprocess.DEVNULL)
    wait_for("the server", lambda: listens(port), 20)
    watch = f'[[observe.metrics]]\nurl = "http://127.0.0.1:{port}/"\ninterval = "100ms"\nnames = {{ data_reduction = "x" }}'
    case.start("run", case.matrix(measure=measure, more=watch), "-q")


row("a metrics server that drips: the run ends when its time is up", (0, 3), bound_s=20)(lambda c: dripping(c, "1s"))


@row("SIGTERM while a metrics server drips", 130)
def dripping_ended(case):
    dripping(case, "1h")
    case.wait_load()
    case.signal(TERM)


# Panics and hangs of each thread, in builds that can inject them.


def injected(case, fault, kind, *signals):
    case.env["PLIMSOLL_INJECT"] = fault
    watch = '[[observe.metrics]]\nurl = "http://127.0.0.1:9/"\ninterval = "50ms"\nnames = { data_reduction = "x" }'
    ends = "500ms" if fault.endswith(("bundle", "removal", "judge")) else "1h"
    case.start("run", getattr(case, kind)(measure=ends, more=watch if fault.endswith("metrics") else ""), "-q")
    if signals:
        # A thread that hangs before the measured phase never reaches it.
        case.wait_load(phase="warms up")
        case.signal(*signals)
    del case.env["PLIMSOLL_INJECT"]


for place, kind, bundle, data in (
    ("begin", "matrix", "none", ("removed",)),
    ("step-thread", "mailbox", "whole", ("removed",)),
    ("load-thread", "mailbox", "whole", ("removed",)),
    ("step-conductor", "mailbox", "whole", ("removed",)),
    ("pass-thread", "matrix", "whole", ("removed",)),
    ("stream-thread", "matrix", "whole", ("removed",)),
    ("stream-conductor", "matrix", "whole", ("removed",)),
    ("observer", "mailbox", "whole", ("removed",)),
    ("metrics", "matrix", "whole", ("removed",)),
    ("bundle", "matrix", "begun", ("removed",)),
    ("judge", "matrix", "whole", ("removed",)),
    ("removal", "matrix", "whole", ("named",)),
):
    row(f"a panic at {place}", 70, bundle=bundle, data=data, bound_s=2 * BOUND_S, debug=True)(
        lambda c, p=place, k=kind: injected(c, f"panic:{p}", k)
    )
for place, kind in (("load-thread", "mailbox"), ("stream-thread", "matrix")):
    row(f"SIGTERM while the thread at {place} hangs", (130, 5), data=("named", "removed"), debug=True)(
        lambda c, p=place, k=kind: injected(c, f"hang:{p}", k, TERM)
    )


@row("SIGTERM three times while the conducting thread hangs (at observer)", 130, bundle="begun", data=("left",), debug=True)
def conductor_hangs(case):
    injected(case, "hang:observer", "matrix", TERM, TERM, TERM)
