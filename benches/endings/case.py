"""One way for a run to end: a place of its own, plans, processes, and what is left in the end."""

import glob
import json
import os
import shutil
import signal
import subprocess
import time

# Maximum time from the cause to the end of a run.
BOUND_S = 10.0
# A row is abandoned this long after its limit.
PATIENCE_S = 60.0


class Skipped(Exception):
    """What the row needs is not on this machine."""


def tool(*command):
    """Runs a tool that has to succeed; gives what it printed."""
    try:
        ran = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        raise Skipped(f"{command[0]} is not installed") from None
    if ran.returncode != 0:
        raise Skipped(f"{' '.join(command)}: {ran.stderr.strip()}")
    return ran.stdout.strip()


def wait_for(what, holds, seconds=60.0):
    """Waits until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise RuntimeError(f"{what} did not come about")
        time.sleep(0.01)


class Case:
    """A sandbox for one row, undone in the end."""

    def __init__(self, binary, root):
        self.binary, self.root = binary, root
        self.undo = []
        self.child = None
        self.out_fd = self.err_fd = None
        os.makedirs(self.path("data"))
        self.data = self.path("data")
        self.watched = [self.data]
        self.url = None
        # Releases a thread that the kernel does not interrupt.
        self.held_by = self.before_release = None
        self.env = {
            **os.environ,
            "XDG_STATE_HOME": self.path("state"),
            "XDG_DATA_HOME": self.path("share"),
            "XDG_CACHE_HOME": self.path("cache"),
            "PLIMSOLL_CALIBRATE": "never",
            "AWS_ACCESS_KEY_ID": "plimsoll",
            "AWS_SECRET_ACCESS_KEY": "load line",
        }

    def path(self, *names):
        return os.path.join(self.root, *names)

    def close(self):
        """Ends and undoes all that the row made."""
        if self.child and self.child.poll() is None:
            self.child.send_signal(signal.SIGCONT)
            self.child.kill()
        for undo in reversed(self.undo):
            try:
                undo()
            except (OSError, Skipped, subprocess.SubprocessError):
                pass
        if self.child:
            try:
                self.child.wait(10)
            except subprocess.TimeoutExpired:
                pass
        shutil.rmtree(self.root, ignore_errors=True)

    # Plans.

    def matrix(self, target=None, measure="1h", warm_up="100ms", file_size="8MiB", workload="", phases="", more=""):
        """A matrix of a few mebibytes."""
        target = target or f'path = "{self.data}"'
        load = workload or "reads = 50\nqueue_depth = 2\nclients = 2"
        return self.plan(
            f'[target]\n{target}\n[workload.matrix]\nsizes = "4KiB"\nfile_size = "{file_size}"\n{load}\n'
            f'[phases]\nwarm_up = "{warm_up}"\nmeasure = "{measure}"\n{phases}\n'
            f'[evidence]\nmin_measure = "100ms"\ninterval = "100ms"\n{more}\n'
        )

    def mailbox(self, target=None, measure="1h", warm_up="200ms", mailbox_size="2MiB", phases="", more=""):
        """A mail store of three databases."""
        target = target or f'path = "{self.data}"'
        return self.plan(
            f'[target]\n{target}\n[workload.mailbox]\nmailboxes = 16\niops_per_mailbox = 0.2\n'
            f'mailbox_size = "{mailbox_size}"\ndatabases = 3\nthreads = 4\ncache = "8MiB"\n'
            f'checkpoint_depth = "2MiB"\n[phases]\nwarm_up = "{warm_up}"\nmeasure = "{measure}"\n{phases}\n'
            f'[evidence]\nmin_measure = "1s"\ninterval = "100ms"\n{more}\n'
        )

    def plan(self, text):
        path = self.path("plan.toml")
        with open(path, "w") as file:
            file.write('version = 1\nname = "small"\ndemonstration = true\n' + text)
        return path

    # Processes.

    def start(self, *arguments, before=None, stdout=None, stderr=None, shell=None):
        """Starts the binary; `shell` wraps it, as in 'ulimit -f 0; exec "$@"'."""
        command = [self.binary, *arguments]
        if shell:
            command = ["sh", "-c", shell, "sh", *command]
        out = stdout if stdout is not None else open(self.path("stdout"), "wb")
        err = stderr if stderr is not None else open(self.path("stderr"), "wb")
        self.child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=self.env, cwd=self.root, preexec_fn=before
        )
        self.cause()
        return self.child

    def process(self, *command, **more):
        """Starts something else, which ends with the row."""
        try:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, **more)
        except FileNotFoundError:
            raise Skipped(f"{command[0]} is not installed") from None

        def end():
            child.send_signal(signal.SIGCONT)
            child.kill()
            child.wait(10)

        self.undo.append(end)
        return child

    def run_beside(self, *arguments):
        """Runs the binary to its end, in the same place."""
        command = [self.binary, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=self.env, cwd=self.root, timeout=120)

    def signal(self, *signals):
        """Sends signals; the last is the cause of the end."""
        for index, number in enumerate(signals):
            if index:
                time.sleep(0.2)
            self.cause()
            self.child.send_signal(number)

    def cause(self):
        """From now on the time to the end counts."""
        self.since = time.monotonic()

    def alive(self, what="the run"):
        if self.child.poll() is not None:
            raise RuntimeError(f"{what} ended early with {self.child.returncode}: {self.said()}")

    # Phases.

    def wait_load(self, place=None, after=1.0, phase="measures"):
        """Waits until the load measures or, as asked, warms up, and so many seconds."""
        directory = os.path.join(place or self.data, "plimsoll-small")
        names = [os.path.join(directory, name) for name in ("data.json", "store.json")]

        def begun():
            self.alive()
            for name in names:
                try:
                    with open(name) as file:
                        if "in-use" in file.read():
                            return True
                except OSError:
                    pass
            return False

        wait_for("the load", begun)
        if phase:
            wait_for(f"the phase, {phase}", lambda: self.alive() or self.is_in(phase))
        time.sleep(after)
        self.alive()

    def is_in(self, phase):
        """Whether it measures, by the thread that watches over that, or drives a load before it."""
        names = set()
        for task in glob.glob(f"/proc/{self.child.pid}/task/*/comm"):
            try:
                with open(task) as file:
                    names.add(file.read().strip())
            except OSError:
                pass
        drives = any(name.startswith(("matrix-", "group-", "pool-")) for name in names)
        return "pulse" in names if phase == "measures" else drives and "pulse" not in names

    def wait_file(self, what, *names):
        def is_there():
            self.alive()
            return any(os.path.exists(name) for name in names)

        wait_for(what, is_there)

    def wait_bundle(self, after=0.0):
        """Waits until the run has begun its bundle."""

        def begun():
            self.alive()
            return bool(self.bundles())

        wait_for("the bundle", begun)
        time.sleep(after)
        self.alive()

    # Places that can fail.

    def file_system(self, size_mib=256, options="noatime"):
        """An ext4 on a loop device; its mount becomes the data's place."""
        image, mount = self.path("image"), self.path("mount")
        device = self.loop_device(size_mib, image)
        tool("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", device)
        os.makedirs(mount)
        tool("mount", "-o", options, device, mount)
        self.undo.append(lambda: tool("umount", "-l", mount))
        self.data, self.watched = mount, [mount]
        return device, mount

    def loop_device(self, size_mib, image, direct="on"):
        if not os.path.exists(image):
            tool("fallocate", "-l", f"{size_mib}MiB", image)
        device = tool("losetup", "-f", "--show", f"--direct-io={direct}", image)
        self.undo.append(lambda: tool("losetup", "-d", device))
        return device

    def memory(self, name, size):
        """A file system in memory."""
        mount = self.path(name)
        os.makedirs(mount, exist_ok=True)
        tool("mount", "-t", "tmpfs", "-o", f"size={size}", "none", mount)
        self.undo.append(lambda: tool("umount", "-l", mount))
        return mount

    def group(self, controller, settings):
        """Puts the run into a control group of its own; `settings` gives the files of version 1 and 2."""
        old, new = f"/sys/fs/cgroup/{controller}", "/sys/fs/cgroup"
        is_old = os.path.isdir(old)
        group = os.path.join(old if is_old else new, f"plimsoll-endings-{os.getpid()}-{self.child.pid}")
        try:
            os.mkdir(group)
            self.undo.append(lambda: wait_for("an empty group", lambda: not os.rmdir(group), 5))
            for name, value in settings[0 if is_old else 1]:
                write(os.path.join(group, name), value)
            write(os.path.join(group, "cgroup.procs"), str(self.child.pid))
        except OSError as error:
            raise Skipped(f"no control group for {controller}: {error}") from None
        return group, is_old

    # Remaining files and processes.

    def bundles(self):
        runs = self.path("share", "plimsoll", "runs")
        found = [os.path.join(runs, name) for name in sorted(os.listdir(runs))] if os.path.isdir(runs) else []
        out = self.path("out")
        if os.path.isdir(out):
            found += [os.path.join(out, name) for name in sorted(os.listdir(out)) if name != "ballast"]
        return [path for path in found if os.path.isdir(path)]

    def said(self):
        text = ""
        for name in ("stdout", "stderr"):
            if os.path.exists(self.path(name)):
                with open(self.path(name), errors="replace") as file:
                    text += file.read()
        return text

    def ended(self, bound_s):
        """Waits for the end: exit code and seconds since the cause."""
        patience_s = bound_s + PATIENCE_S
        if self.held_by:
            # Releases the thread in the kernel only after the run has printed and written everything.
            wait_for("the report", lambda: "report:" in self.said(), patience_s)
            seconds = time.monotonic() - self.since
            self.before_release = (self.bundle_state(), self.data_state())
            self.held_by()
            return self.child.wait(patience_s), seconds
        try:
            code = self.child.wait(patience_s)
        except subprocess.TimeoutExpired:
            return None, time.monotonic() - self.since
        return code, time.monotonic() - self.since

    def bundle_state(self):
        """Whether each bundle can be verified and judged; `none`, `whole`, `begun` or what is wrong."""
        states = set()
        for bundle in self.bundles():
            if not os.path.exists(os.path.join(bundle, "SHA256SUMS")):
                states.add("begun")
                continue
            verified = self.run_beside("verify", bundle)
            judged = self.run_beside("judge", bundle, "-q").returncode
            doubt = [line.strip() for line in verified.stdout.splitlines() if "contradicts" in line]
            if verified.returncode == 0 and judged != 2 and (judged != 70 or self.child.returncode == 70):
                states.add("whole")
            elif verified.returncode == 3 and not doubt:
                states.add("not confirmed")
            else:
                states.add(f"verify {verified.returncode}, judge {judged} {' '.join(doubt)}")
        return " and ".join(sorted(states)) or "none"

    def data_state(self):
        """Whether the data was removed, is named where it lies, or is only left."""
        if self.url:
            return "named" if self.url in "".join(self.said().split()) else "not named"
        left = []
        for place in self.watched:
            left += [n for n in os.listdir(place) if n not in ("lost+found", "ballast")] if os.path.isdir(place) else []
        if not left:
            return "removed"
        said = "".join(self.said().split())
        return "named" if all("".join(name.split()) in said for name in left if name != ".plimsoll.lock") else "left"

    def run_json(self):
        for bundle in self.bundles():
            try:
                with open(os.path.join(bundle, "run.json")) as file:
                    return json.load(file)
            except OSError:
                pass
        return {}


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def fill(directory):
    """Fills a file system to its last byte; gives the file that does."""
    path = os.path.join(directory, "ballast")
    with open(path, "wb", buffering=0) as file:
        for size in (1 << 20, 4096):
            try:
                while file.write(b"\7" * size) == size:
                    pass
            except OSError:
                pass
    return path
