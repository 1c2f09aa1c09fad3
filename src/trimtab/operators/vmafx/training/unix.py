"""The trainer's Unix socket: samples from programs of this user on this machine.

Lines come in, and a line goes back for each, in order; many may be on their way. A lock
file beside the socket belongs to whoever serves it. A socket that was left behind is
removed only if nobody answers there and it is the same file before and after.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import socket
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

from trimtab.client.errors import ConfigError
from trimtab.operators.vmafx.training.intake import Intake
from trimtab.operators.vmafx.training.samples import LONGEST_LINE, lines, refused

CONNECTIONS: Final = 64
IDLE: Final = 600.0
_WRITE: Final = 10.0
_PIECE: Final = 64 * 1024
_PAUSE: Final = 1.0

logger = logging.getLogger("trimtab.operators.vmafx.training")


@asynccontextmanager
async def serving(path: Path, intake: Intake) -> AsyncIterator[None]:
    """Serve a socket for as long as the block runs.

    Guarantees: only this user can connect (mode 0600). When the block has been left, no
    connection is left, and the socket is gone unless somebody else put another there.

    Errors: :class:`ConfigError` if another program serves it, or something else is
    there.
    """
    with _locked(path), _listening(path) as listener:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(_accept(listener, intake))
            try:
                yield
            finally:
                task.cancel()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file; it stays there, because removing it would be a race."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path.with_name(f"{path.name}.lock"), flags, 0o600)
    except OSError as error:
        raise _unusable(path, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise ConfigError(
            f"Another trainer serves {path}: stop it, or name another socket."
        ) from None
    finally:
        os.close(descriptor)


@contextmanager
def _listening(path: Path) -> Iterator[socket.socket]:
    _clear(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with listener:
        listener.setblocking(False)
        # With the right mode from the first moment: afterwards would be too late.
        mask = os.umask(0o177)
        try:
            listener.bind(str(path))
        except OSError as error:
            raise _unusable(path, error) from error
        finally:
            os.umask(mask)
        made = os.lstat(path)
        listener.listen(CONNECTIONS)
        try:
            yield listener
        finally:
            with suppress(FileNotFoundError):
                if _same(os.lstat(path), made):
                    os.unlink(path)


def _clear(path: Path) -> None:
    """Remove a socket that a trainer left which was killed."""
    try:
        before = os.lstat(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unusable(path, error) from error
    if not stat.S_ISSOCK(before.st_mode) or before.st_uid != os.geteuid():
        raise ConfigError(f"{path} is no socket of ours: remove it, or name another.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            pass
        except OSError as error:
            raise _unusable(path, error) from error
        else:
            raise ConfigError(f"Another program serves {path}: name another socket.")
    if not _same(os.lstat(path), before):
        raise ConfigError(f"{path} was replaced just now: is another trainer starting?")
    os.unlink(path)


def _same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def _unusable(path: Path, error: OSError) -> ConfigError:
    why = (error.strerror or str(error)).lower()
    return ConfigError(f"The socket {path} cannot be served: {why}.")


async def _accept(listener: socket.socket, intake: Intake) -> None:
    loop = asyncio.get_running_loop()
    open_now: set[socket.socket] = set()
    async with asyncio.TaskGroup() as group:
        while True:
            try:
                made, _ = await loop.sock_accept(listener)
            except OSError as error:
                logger.warning("A connection could not be accepted: %s.", error)
                await asyncio.sleep(_PAUSE)
                continue
            if len(open_now) >= CONNECTIONS:
                made.close()
                continue
            open_now.add(made)
            group.create_task(_serve(made, intake, open_now))


async def _serve(
    made: socket.socket, intake: Intake, open_now: set[socket.socket]
) -> None:
    try:
        with made:
            made.setblocking(False)
            await _converse(made, intake)
    finally:
        open_now.discard(made)


async def _converse(made: socket.socket, intake: Intake) -> None:
    """Answer one connection until it ends, or is silent for too long."""
    loop = asyncio.get_running_loop()
    rest = b""
    with suppress(OSError, TimeoutError):
        while True:
            async with asyncio.timeout(IDLE):
                piece = await loop.sock_recv(made, _PIECE)
            if not piece:
                return
            *whole, rest = (rest + piece).split(b"\n")
            answer = lines(await intake.offer([each for each in whole if each.strip()]))
            if too_long := len(rest) > LONGEST_LINE:
                answer += lines([refused(f"A line has at most {LONGEST_LINE} bytes.")])
            async with asyncio.timeout(_WRITE):
                await loop.sock_sendall(made, answer)
            if too_long:
                return
