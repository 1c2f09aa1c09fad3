"""Ports: who listens on a port of this machine, for people who find it taken."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
LISTENING = "0A"
ANYWHERE = ("00000000", "0" * 32)
MARK = b"TRIMTAB_POD_UID="


def holder_of(port: int, address: str) -> str:
    """Who listens on a port of an address, or of all addresses; empty if nobody."""
    packed = struct.unpack("=I", socket.inet_aton(address))[0]
    wanted = (*ANYWHERE, f"{packed:08X}")
    for place, inode in _listeners(port):
        if place in wanted:
            return _described(inode)
    return ""


def holds_everywhere(port: int) -> bool:
    """Whether somebody listens on a port of all addresses."""
    return any(place in ANYWHERE for place, _ in _listeners(port))


def _listeners(port: int) -> Iterator[tuple[str, str]]:
    for table in TABLES:
        with suppress(OSError), open(table) as lines:
            next(lines, "")
            for line in lines:
                words = line.split()
                place, _, number = words[1].partition(":")
                if words[3] == LISTENING and int(number, 16) == port:
                    yield place, words[9]


def _described(inode: str) -> str:
    """The process behind a socket, and its pod if it has one."""
    pid = _owner(inode)
    with suppress(OSError):
        return _process(pid)
    return "another process"


def _owner(inode: str) -> str:
    """The process that has a socket; empty if that cannot be seen."""
    link = f"socket:[{inode}]"
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with suppress(OSError):
            for number in os.listdir(f"/proc/{name}/fd"):
                if os.readlink(f"/proc/{name}/fd/{number}") == link:
                    return name
    return ""


def _process(pid: str) -> str:
    with open(f"/proc/{pid}/environ", "rb") as file:
        variables = file.read().split(b"\0")
    with open(f"/proc/{pid}/comm") as file:
        name = file.read().strip()
    known = dict(each.partition(b"=")[::2] for each in variables)
    host = known.get(b"HOSTNAME", b"").decode(errors="replace")
    if any(each.startswith(MARK) for each in variables):
        return f"the pod {host} (process {pid}, {name})"
    return f"process {pid} ({name})"


def belongs(port: int, address: str, uid: str) -> bool:
    """Whether a process of a pod listens on a port of exactly this address."""
    packed = struct.unpack("=I", socket.inet_aton(address))[0]
    mark = MARK + uid.encode()
    for place, inode in _listeners(port):
        if place == f"{packed:08X}":
            pid = _owner(inode)
            with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
                return mark in file.read().split(b"\0")
    return False
