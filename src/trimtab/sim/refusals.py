"""Refusals: what a simulation does not have, and says so by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

from trimtab.client.errors import TrimtabError
from trimtab.sim.hosts import HOST


class Refused(TrimtabError):
    """The code asked for something that a simulation does not have."""


def refused(name: str) -> Refused:
    """The refusal of something, noted against the host that asked."""
    host = HOST.get()
    if host is not None:
        host.refused.append(name)
    return Refused(
        f"{name} does not exist in a simulation: reach the world through the client, "
        "or give the scenario a stand-in for what it talks to."
    )


def refusing(name: str) -> Callable[..., NoReturn]:
    def refuse(self: object, *args: Any, **more: Any) -> NoReturn:
        raise refused(f"loop.{name}")

    return refuse


REFUSED: Final = (
    "add_reader add_signal_handler add_writer connect_accepted_socket"
    " connect_read_pipe connect_write_pipe create_connection create_datagram_endpoint"
    " create_server create_unix_connection create_unix_server getaddrinfo getnameinfo"
    " remove_reader remove_signal_handler remove_writer sendfile sock_accept"
    " sock_connect sock_recv sock_recv_into sock_recvfrom sock_recvfrom_into"
    " sock_sendall sock_sendfile sock_sendto start_tls subprocess_exec"
    " subprocess_shell"
).split()
