"""The ways for a run to end, each with what benches/endings/README.md says of it: signals, stops, outputs, limits. What
fails beneath and within is in failures.py."""

import os
import signal
import time
from dataclasses import dataclass

from case import BOUND_S, Skipped, tool, wait_for, write

INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
STOP, CONT, KILL = signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL


@dataclass
class Row:
    """A way to end, and what is documented of it."""

    way: str
    act: object
    codes: tuple
    bundle: str = "whole"
    data: tuple = ("removed",)
    bound_s: float = BOUND_S
    # Faults that only builds with debug assertions can inject.
    debug: bool = False


ROWS = []


def row(way, codes, **more):
    """Adds a row whose cause is what the function does."""

    def add(act):
        ROWS.append(Row(way, act, codes if isinstance(codes, tuple) else (codes,), **more))
        return act

    return add


# Signals in each phase.


def measuring(case, kind, *signals):
    case.start("run", getattr(case, kind)(), "-q")
    case.wait_load()
    case.signal(*signals)


def warming_up(case, kind, *signals):
    case.start("run", getattr(case, kind)(warm_up="1h"), "-q")
    case.wait_load(phase="warms up")
    case.signal(*signals)


def preparing(case, kind, *signals):
    if kind == "matrix":
        case.start("run", case.matrix(file_size="8GiB"), "-q")
        case.wait_bundle(after=0.5)
    else:
        case.start("run", case.mailbox(mailbox_size="256MiB"), "-q")
        case.wait_file("the first database", case.path("data", "plimsoll-small", "db00.edb"))
        time.sleep(0.5)
    case.signal(*signals)


for kind, name in (("matrix", "a matrix"), ("mailbox", "a mail store")):
    for phase, act in (("prepares", preparing), ("warms up", warming_up), ("measures", measuring)):
        for number, word in ((INT, "SIGINT"), (TERM, "SIGTERM"), (HUP, "SIGHUP")):
            row(f"{word} while {name} {phase}", 130)(lambda c, a=act, k=kind, n=number: a(c, k, n))
    row(f"SIGTERM twice while {name} measures", 130, data=("removed", "named"))(
        lambda c, k=kind: measuring(c, k, TERM, TERM)
    )
    row(f"SIGINT three times while {name} prepares", 130, bundle="begun", data=("left",))(
        lambda c, k=kind: at_once(c, k)
    )
    row(f"kill -9 while {name} measures; the next run replaces the data", -9, bundle="begun", data=("left",))(
        lambda c, k=kind: killed(c, k)
    )


def at_once(case, kind):
    """Three signals before anything can end in order; some of them may come as one."""
    preparing(case, kind, INT)
    for _ in range(200):
        if case.child.poll() is not None:
            break
        case.child.send_signal(INT)
        time.sleep(0.005)
    # A run that ended normally by then is also right.
    case.may_end_in_order = True


def killed(case, kind):
    measuring(case, kind, KILL)

    def again():
        plan = getattr(case, kind)(measure="1s")
        ran = case.run_beside("run", plan, "-q", "--out", case.root)
        problems = [] if ran.returncode in (0, 3) else [f"the next run ended with {ran.returncode}: {ran.stderr}"]
        left = [name for name in os.listdir(case.data) if name.startswith("plimsoll-")]
        return problems + ([f"the next run left {left}"] if left else [])

    case.after = again


@row("SIGTERM while a matrix verifies its data", 130)
def verifying(case):
    case.start("run", case.matrix(measure="500ms", file_size="1GiB", phases="verify = true"))
    case.wait_load(after=0)
    wait_for("the verification", lambda: case.alive() or not case.is_in("measures"))
    time.sleep(0.5)
    case.alive()
    case.signal(TERM)


def freeze(case, mount):
    tool("fsfreeze", "-f", mount)
    case.undo.append(lambda: tool("fsfreeze", "-u", mount))
    # A process cannot end while its thread waits for a frozen file system.
    case.held_by = lambda: tool("fsfreeze", "-u", mount)


def few_operations(case, device, each_s, direction):
    numbers = tool("lsblk", "-dno", "MAJ:MIN", device)
    key = {"read": "riops", "write": "wiops"}[direction]
    old = [(f"blkio.throttle.{direction}_iops_device", f"{numbers} {each_s}")]
    case.group("blkio", (old, [("io.max", f"{numbers} {key}={each_s}")]))


@row("SIGTERM while a matrix waits for operations in flight at its end", 130, data=("removed", "named"))
def draining(case):
    device, mount = case.file_system()
    load = "reads = 100\nqueue_depth = 32"
    case.start("run", case.matrix(f'path = "{mount}"', measure="2s", workload=load), "-q")
    case.wait_load(after=0)
    few_operations(case, device, 1, "read")
    time.sleep(4)
    case.alive()
    case.signal(TERM)


@row("SIGTERM while a mail store is closed", 130, data=("removed", "named"))
def closing(case):
    device, mount = case.file_system()
    case.start("run", case.mailbox(f'path = "{mount}"', measure="1s"), "-q")
    case.wait_load(after=0.5)
    few_operations(case, device, 20, "write")
    time.sleep(2.5)
    case.alive()
    case.signal(TERM)


def removing(case, *signals):
    case.env["PLIMSOLL_INJECT"] = "hang:removal"
    case.start("run", case.matrix(measure="500ms"), "-q")
    del case.env["PLIMSOLL_INJECT"]
    case.wait_load(after=0)
    wait_for("the removal", lambda: case.alive() or not case.is_in("measures"))
    time.sleep(2)
    case.alive()
    case.signal(*signals)


row("SIGTERM while a complete run's removal of its data hangs: it is given 20 s", 5, data=("named",), bound_s=20 + BOUND_S, debug=True)(
    lambda c: removing(c, TERM)
)
row("SIGTERM twice while a complete run's removal of its data hangs", 5, data=("named",), debug=True)(
    lambda c: removing(c, TERM, TERM)
)


@row("SIGINT during `calibrate`, without a run", -2, bundle="none")
def calibrating(case):
    case.start("calibrate")
    time.sleep(1.5)
    case.alive()
    case.signal(INT)


@row("SIGINT while a run calibrates before it begins", 130)
def calibrating_run(case):
    del case.env["PLIMSOLL_CALIBRATE"]
    case.start("run", case.matrix(), "-q")
    time.sleep(1.5)
    case.alive()
    case.signal(INT)


@row("SIGHUP under nohup: the run continues", (0, 3), bound_s=20)
def under_nohup(case):
    case.start("run", case.matrix(measure="4s"), "-q", before=lambda: signal.signal(HUP, signal.SIG_IGN))
    case.wait_load()
    case.signal(HUP)


@row("SIGTERM while observe watches a command: the command gets it", 130)
def observing(case):
    got = case.path("got")
    work = f"trap 'echo got > {got}; exit 0' TERM; touch {case.path('ready')}; while :; do sleep 0.1; done"
    case.start("observe", "--path", ".", "-q", "--", "sh", "-c", work)
    case.wait_file("the command", case.path("ready"))
    case.signal(TERM)
    case.after = lambda: [] if os.path.exists(got) else ["the command did not get the signal"]


@row("SIGTERM twice while observe watches a command that ignores it", 130)
def observing_deaf(case):
    work = f"trap '' TERM; touch {case.path('ready')}; while :; do sleep 0.1; done"
    case.start("observe", "--path", ".", "-q", "--", "sh", "-c", work)
    case.wait_file("the command", case.path("ready"))
    case.signal(TERM, TERM)


# Stopped and continued processes.


def says_stopped(case):
    clock = {}
    for bundle in case.bundles():
        judged = case.run_beside("judge", bundle, "--json", "-q")
        clock = judged.stdout
    return [] if '"was-stopped"' in clock and "stood still" in clock else ["the verdict does not say that it was stopped"]


@row("SIGSTOP, SIGTERM, and SIGCONT after 3 s", 130)
def stopped_and_ended(case):
    measuring(case, "matrix", STOP)
    case.signal(TERM)
    time.sleep(3)
    case.signal(CONT)


@row("SIGSTOP for 3 s in the measured phase: the verdict says so", (0, 3), bound_s=20)
def stopped(case):
    case.start("run", case.matrix(measure="6s"), "-q")
    case.wait_load()
    case.signal(STOP)
    time.sleep(3)
    case.signal(CONT)
    case.after = lambda: says_stopped(case)


@row("a frozen control group for 3 s in the measured phase: the verdict says so", (0, 3), bound_s=20)
def frozen_group(case):
    case.start("run", case.matrix(measure="6s"), "-q")
    case.wait_load()
    group, is_old = case.group("freezer", ([], []))
    state = os.path.join(group, "freezer.state" if is_old else "cgroup.freeze")
    write(state, "FROZEN" if is_old else "1")
    time.sleep(3)
    write(state, "THAWED" if is_old else "0")
    case.cause()
    case.after = lambda: says_stopped(case)


@row("starved of its CPUs for 4 s in the measured phase: not called stopped", (0, 3), bound_s=20)
def starved(case):
    case.start("run", case.matrix(measure="7s"), "-q")
    case.wait_load()
    # All other processes have a higher priority.
    tool("chrt", "-a", "-i", "-p", "0", str(case.child.pid))
    hogs = [case.process("sh", "-c", "while :; do :; done") for _ in range(2 * os.cpu_count())]
    time.sleep(4)
    for hog in hogs:
        hog.kill()
    tool("chrt", "-a", "-o", "-p", "0", str(case.child.pid))
    case.cause()
    case.after = lambda: [] if says_stopped(case) else ["a busy host is called a stopped run"]


# Outputs.


def broken_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def full():
    return os.open("/dev/full", os.O_WRONLY)


def completes(case, **outputs):
    case.start("run", case.matrix(measure="1s"), "--json", **outputs)


row("stderr closed", (0, 3), bound_s=20)(lambda c: completes(c, shell='exec "$@" 2>&-'))
row("stderr full", (0, 3), bound_s=20)(lambda c: completes(c, stderr=full()))
row("stderr a broken pipe", (0, 3), bound_s=20)(lambda c: completes(c, stderr=broken_pipe()))
row("stdout and stderr closed", (0, 3), bound_s=20)(lambda c: completes(c, shell='exec "$@" >&- 2>&-'))
row("stdout full: 5 after the evidence is safe", 5, bound_s=20)(lambda c: completes(c, stdout=full()))
row("stdout a broken pipe: its reader has gone", (0, 3), bound_s=20)(lambda c: completes(c, stdout=broken_pipe()))


@row("SIGTERM while stdout and stderr are full pipes without a reader", (130, 5))
def unread(case):
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while os.write(writer, b"x" * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(writer, True)
    case.undo.append(lambda: os.close(reader))
    case.start("run", case.matrix(), stdout=writer, stderr=writer)
    case.wait_load()
    case.signal(TERM)


# Limits.

row("ulimit -f below the data", 2, bundle="none")(
    lambda c: c.start("run", c.matrix(), "-q", shell='ulimit -f 2048; exec "$@"')
)
row("ulimit -f 0", 2, bundle="none")(lambda c: c.start("run", c.matrix(), "-q", shell='ulimit -f 0; exec "$@"'))
row("ulimit -f 0 while calibrating", (2, 5), bundle="none")(
    lambda c: c.start("calibrate", shell='ulimit -f 0; exec "$@"')
)
row("ulimit -v below what calibrating needs", 2, bundle="none")(
    lambda c: c.start("calibrate", shell='ulimit -v 300000; exec "$@"')
)
row("ulimit -n below the files", 5)(
    lambda c: c.start("run", c.matrix(workload="files = 64"), "-q", shell='ulimit -n 24; exec "$@"')
)
row("a plan of more memory than the machine has", 2, bundle="none")(
    lambda c: c.start("run", c.matrix(workload="clients = 1000000"), "-q")
)


@row("a control group's memory below what the plan needs", 2, bundle="none")
def memory_group(case):
    plan = case.mailbox()
    with open(plan) as file:
        text = file.read().replace('cache = "8MiB"', 'cache = "512MiB"')
    write(plan, text)
    into = case.path("go")
    os.mkfifo(into)
    case.start("run", plan, "-q", shell=f'read go < {into}; exec "$@"')
    limit = str(256 << 20)
    case.group("memory", ([("memory.limit_in_bytes", limit)], [("memory.max", limit), ("memory.swap.max", "0")]))
    write(into, "go\n")
    case.cause()


@row("the kernel's OOM killer in a control group: as kill -9", -9, bundle="begun", data=("left",))
def out_of_memory(case):
    case.start("run", case.mailbox(), "-q")
    case.wait_load()
    limit = str(6 << 20)
    group, is_old = case.group("memory", ([], [("memory.swap.max", "0")]))
    # cgroup v1 does not move charged memory with a process: only later allocations count.
    write(os.path.join(group, "memory.limit_in_bytes" if is_old else "memory.max"), limit if not is_old else "4096")
    case.cause()
    end = time.monotonic() + 8
    while case.child.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    if case.child.poll() is None:
        raise Skipped("the kernel did not run out of the group's memory")
