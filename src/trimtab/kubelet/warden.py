"""The warden: a small process that starts every container's process and reaps them.

It is a program of its own, run by path, and imports nothing of Trimtab: it forks
quickly, and it lives exactly as long as the kubelet holds the other end of its socket.
When that end closes, however the kubelet ended, it kills all that it started and goes.

Orders come as packets. A spawn's order is JSON in the first descriptor that comes with
the packet; the next three are the process's own input, output and error. What happened
goes back as JSON: ``{"id", "pid"}`` or ``{"id", "error"}``, later ``{"id", "exit"}``.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import sys
import termios
from collections.abc import Callable
from typing import Any

PACKET = 1 << 16
NEW_MOUNTS, NEW_NAMES, NEW_USER = 0x20000, 0x4000000, 0x10000000
BIND, RECURSIVE, REMOUNT, READ_ONLY, MOVE = 0x1000, 0x4000, 0x20, 0x1, 0x2000
PRIVATE = 1 << 18
NO_SUID, NO_DEVICES = 0x2, 0x4
DETACH = 2
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
BECOME_SUBREAPER = 36
FAILED = 127
MARK = b"TRIMTAB_POD_UID="

libc = ctypes.CDLL(None, use_errno=True)

Order = dict[str, Any]


def checked(result: int, what: str) -> None:
    """Raise what a system call left in errno."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def mount(source: str, target: str, flags: int, kind: str = "", data: str = "") -> None:
    result = libc.mount(
        source.encode(),
        target.encode(),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        data.encode() or None,
    )
    checked(result, f"mount {target}")


class Warden:
    """The processes that it started, and the socket that it is told by."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._alive: dict[int, int] = {}
        """The id of each order by the process that it became."""
        self._pids: dict[int, int] = {}

    def run(self) -> None:
        """Do what is ordered until nobody is there to order it."""
        awake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # the kubelet decides, not a terminal
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(awake, select.POLLIN)
        while True:
            ready = dict(poll.poll())
            if awake in ready:
                os.read(awake, PACKET)
                self._reap()
            if self._control.fileno() in ready and not self._obey():
                break
        self._end_all()

    def _obey(self) -> bool:
        try:
            packet, descriptors, _, _ = socket.recv_fds(self._control, PACKET, 4)
        except ConnectionError:
            return False
        if not packet:
            return False
        order = json.loads(packet)
        if order["do"] == "spawn":
            self._spawn(order["id"], descriptors)
        elif order["do"] == "signal":
            self._signal(order)
        elif order["do"] == "sweep":
            self._tell({"id": order["id"], "swept": sweep(order["pod"])})
        return True

    def _tell(self, fact: Order) -> None:
        with contextlib.suppress(OSError):
            self._control.send(json.dumps(fact).encode())

    def _spawn(self, number: int, descriptors: list[int]) -> None:
        try:
            with open(descriptors[0], "rb") as content:
                content.seek(0)
                order = json.load(content)
            pid = started(order, descriptors[1:])
        except (OSError, ValueError) as error:
            self._tell({"id": number, "error": str(error)})
        else:
            self._alive[pid] = number
            self._pids[number] = pid
            self._tell({"id": number, "pid": pid})
        finally:
            for each in descriptors[1:]:
                os.close(each)

    def _signal(self, order: Order) -> None:
        pid = self._pids.get(order["id"])
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if order["group"]:
                os.killpg(pid, order["signal"])
            else:
                os.kill(pid, order["signal"])

    def _reap(self) -> None:
        while True:
            try:
                # Not reaped yet: while it is a zombie, its group's number is taken.
                options = os.WEXITED | os.WNOHANG | os.WNOWAIT
                found = os.waitid(os.P_ALL, 0, options)
            except ChildProcessError:
                return
            if found is None:
                return
            pid = found.si_pid
            number = self._alive.pop(pid, None)
            if number is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            if number is not None:
                del self._pids[number]
                exit_code = os.waitstatus_to_exitcode(status)
                self._tell({"id": number, "exit": exit_code})

    def _end_all(self) -> None:
        """Nobody is left to tell: end every process, and those that slipped away."""
        for pid in self._alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        # Each that ends may leave us children of its own, so look until there are none.
        while found := children():
            for pid in found:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            for pid in found:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)


def children() -> list[int]:
    """The processes whose parent is this one: also those that were orphaned."""
    ours = os.getpid()
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError):
            with open(f"/proc/{name}/stat", "rb") as stat:
                after_name = stat.read().rpartition(b")")[2].split()
            if int(after_name[1]) == ours:
                found.append(int(name))
    return found


def remove_groups(base: str) -> None:
    """Remove the cgroups in a folder, and it; nobody is in them any more."""
    with contextlib.suppress(OSError):
        for each in os.scandir(base):
            if each.is_dir():
                os.rmdir(each.path)
        os.rmdir(base)


def sweep(pod: str) -> int:
    """Kill whatever carries a pod's mark in its environment; how many that were."""
    mark = MARK + pod.encode() + b"\0"
    count = 0
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as environment:
                if mark not in environment.read():
                    continue
            os.kill(int(name), signal.SIGKILL)
            count += 1
        except (OSError, ValueError):
            continue
    return count


def started(order: Order, descriptors: list[int]) -> int:
    """Fork a process that becomes what the order says; an error if it could not."""
    report, write = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            become(order, descriptors)
        except BaseException as error:
            os.write(write, str(error).encode(errors="replace")[:4000])
        finally:
            os._exit(FAILED)
    os.close(write)
    try:
        failure = os.read(report, 4096)
    finally:
        os.close(report)
    if failure:
        os.waitpid(pid, 0)
        raise OSError(failure.decode(errors="replace"))
    return pid


def become(order: Order, descriptors: list[int]) -> None:
    """Turn this process, just forked, into a container's."""
    os.setsid()
    for path in order["cgroups"]:
        with open(path, "w") as members:
            members.write("0")
    if order["join"]:
        join(order["join"])
    elif order["mounts"] or order["hostname"]:
        enclose(order)
    for number, each in enumerate(descriptors):
        os.dup2(each, number)
    if order["tty"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.set_wakeup_fd(-1)
    # Whoever reads /proc knows it by this mark as soon as it has a program of its own.
    for ignored in range(1, signal.NSIG):
        with contextlib.suppress(OSError, ValueError):
            signal.signal(ignored, signal.SIG_DFL)
    os.umask(0o022)
    go_to(order["cwd"])
    become_user(order)
    argv = order["argv"]
    try:
        os.execvpe(argv[0], argv, order["env"])
    except OSError as error:
        why = os.strerror(error.errno or 0).lower()
        raise OSError(f'exec: "{argv[0]}": {why}') from error


def go_to(folder: str) -> None:
    """Work in a folder. One that a mount hides was entered before that was made."""
    try:
        os.chdir(folder)
    except FileNotFoundError:
        if os.getcwd() != folder:
            raise


def become_user(order: Order) -> None:
    user, group = order["user"], order["group"]
    if group is not None and group != os.getegid():
        os.setgroups([])
        os.setgid(group)
    if user is not None and user != os.geteuid():
        os.setuid(user)


def join(pid: int) -> None:
    """Enter the mounts and the host name of another process."""
    own, theirs = os.getuid(), f"/proc/{pid}/ns/"
    for kind, flag in (("user", NEW_USER), ("mnt", NEW_MOUNTS), ("uts", NEW_NAMES)):
        if os.readlink(f"{theirs}{kind}") == os.readlink(f"/proc/self/ns/{kind}"):
            continue
        with open(f"{theirs}{kind}") as namespace:
            checked(libc.setns(namespace.fileno(), flag), f"enter {kind} of {own}")
    with contextlib.suppress(OSError):
        os.chdir(f"/proc/{pid}/cwd")


def enclose(order: Order) -> None:
    """Give this process mounts of its own, and make those of the order in them."""
    enter_namespaces()
    host = order["hostname"].encode()
    if host:
        checked(libc.sethostname(host, len(host)), "set the host name")
    mount("none", "/", RECURSIVE | PRIVATE)
    folder, staging = os.path.split(order["staging"])
    early, late = in_turn(order["mounts"], folder)
    for each in early:
        place_if_needed(each, order["staging"])
    if not late:
        return
    with contextlib.suppress(OSError):
        os.chdir(order["cwd"])
    staging = os.path.join(held(folder), staging)
    for each in [{**each, "source": held(each["source"])} for each in late]:
        place_if_needed(each, staging)


def in_turn(mounts: list[Order], folder: str) -> tuple[list[Order], list[Order]]:
    """Mounts that hide nothing which others need; and those that do, and theirs.

    A volume at ``/tmp`` hides a pod's folder that is somewhere below.
    """
    needed = [folder, *(each["source"] for each in mounts if each["source"])]
    hiding = {
        each["target"]
        for each in mounts
        if any(is_below(path, each["target"]) for path in needed)
    }
    late = [each for each in mounts if any(is_below(each["target"], t) for t in hiding)]
    return [each for each in mounts if each not in late], late


def is_below(path: str, folder: str) -> bool:
    outer = os.path.realpath(folder).rstrip("/")
    return f"{os.path.realpath(path)}/".startswith(f"{outer}/")


def held(path: str) -> str:
    """A name for a file or folder, also when something is mounted over it."""
    return f"/proc/self/fd/{os.open(path, os.O_PATH)}" if path else ""


def place_if_needed(wanted: Order, staging: str) -> None:
    try:
        place(wanted, staging)
    except OSError:
        if not wanted.get("optional"):
            raise


def enter_namespaces() -> None:
    user, group = os.getuid(), os.getgid()
    if libc.unshare(NEW_MOUNTS | NEW_NAMES) == 0:
        return
    checked(libc.unshare(NEW_USER | NEW_MOUNTS | NEW_NAMES), "new namespaces")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def place(wanted: Order, staging: str) -> None:
    """Bind a file or folder where the order wants it, also where nothing is."""
    source, target = wanted["source"], wanted["target"]
    if wanted.get("tmpfs"):
        ready(target, staging, folder=True)
        size = f"size={wanted['tmpfs']}" if wanted["tmpfs"] != "0" else ""
        return mount("tmpfs", target, NO_SUID | NO_DEVICES, "tmpfs", size)
    ready(target, staging, folder=os.path.isdir(source))
    mount(source, target, BIND | RECURSIVE)
    if wanted.get("readonly"):
        mount("none", target, BIND | REMOUNT | READ_ONLY | kept_flags(target))
    return None


def kept_flags(path: str) -> int:
    """Flags that a remount in a user namespace may not drop."""
    return os.statvfs(path).f_flag & 0x40E


def ready(target: str, staging: str, *, folder: bool) -> None:
    """See that there is something to mount on, without leaving it on the machine."""
    if os.path.exists(target):
        return
    parent = os.path.dirname(target.rstrip("/"))
    existing, missing = os.path.realpath(parent), []
    while not os.path.exists(existing):
        missing.append(os.path.basename(existing))
        existing = os.path.dirname(existing)
    if existing == "/dev":
        open(target, "a").close()
        return
    if not is_ours(existing):
        cover(existing, staging)
    os.makedirs(os.path.realpath(parent), exist_ok=True)
    if folder:
        os.mkdir(target)
    else:
        open(target, "a").close()


def is_ours(path: str) -> bool:
    """Whether a folder was covered before, so that what is made in it is private."""
    return os.path.exists(os.path.join(path, COVERED))


COVERED = ".trimtab-private"


def cover(path: str, staging: str) -> None:
    """Replace a folder by a private one that shows all that was in it."""
    os.makedirs(staging, exist_ok=True)
    mount("tmpfs", staging, NO_SUID | NO_DEVICES, "tmpfs", "mode=755")
    with os.scandir(path) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                show(entry, os.path.join(staging, entry.name))
    open(os.path.join(staging, COVERED), "w").close()
    if path != "/":
        return mount(staging, path, MOVE)
    os.chdir(staging)
    number = PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(f"mounts below / are not known on {os.uname().machine}")
    checked(libc.syscall(number, b".", b"."), "change the root")
    checked(libc.umount2(b".", DETACH), "leave the old root")
    os.chdir("/")
    return None


def show(entry: os.DirEntry[str], target: str) -> None:
    if entry.is_symlink():
        os.symlink(os.readlink(entry.path), target)
        return
    if entry.is_dir():
        os.mkdir(target)
    else:
        open(target, "w").close()
    mount(entry.path, target, BIND | RECURSIVE)


def can_mount(staging: str) -> bool:
    """Whether this system lets us have mounts of our own; tried in a child."""

    def attempt() -> None:
        enter_namespaces()
        mount("none", "/", RECURSIVE | PRIVATE)
        mount("tmpfs", staging, NO_SUID | NO_DEVICES, "tmpfs")

    return succeeds(attempt)


def succeeds(attempt: Callable[[], None]) -> bool:
    pid = os.fork()
    if pid == 0:
        try:
            attempt()
            os._exit(0)
        except BaseException:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    staging = sys.argv[2]
    libc.prctl(BECOME_SUBREAPER, 1, 0, 0, 0)
    os.makedirs(staging, exist_ok=True)
    facts = {"mounts": can_mount(staging), "pid": os.getpid()}
    control.send(json.dumps(facts).encode())
    Warden(control).run()
    for base in sys.argv[3:]:
        remove_groups(base)


if __name__ == "__main__":
    main()
