"""Programs that run beside a test and cannot outlive it.

The programs are children of a keeper process (`trimtab.testing.keeper`); this is the
test's end of it. Closing it and dying are the same thing to the keeper, so there is
one way down, and every test that ends well exercises it.
"""

import collections
import contextlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from trimtab.testing import keeper
from trimtab.testing.errors import ClusterError

LOG_LINES = 20
"""How much of a program's log an error shows."""

LINE_LENGTH = 300
"""Longer log lines are cut: kube-apiserver likes to print whole objects."""


CLOSE_WITHIN = 30.0
"""Seconds for the keeper to stop everything; past them it is killed itself."""


class Keeper:
    """A private folder, and named programs that run in it.

    Guarantees: `close` returns when no program runs and the folder is gone, and the
    same happens when this process ends without it. The folder has mode 0700.

    Assumptions: calls may come from any thread, one at a time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pids: dict[str, int] = {}
        # A session of its own, so that control-C in a terminal reaches the test run
        # only; no stderr, so that whoever reads the test's does not wait for us.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", keeper.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self.folder = Path(self._read()["folder"])
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def pids(self) -> dict[str, int]:
        """The process id of each program that was started and not stopped."""
        return dict(self._pids)

    def start(self, name: str, argv: list[str]) -> None:
        """Start a program; its output goes to `<name>.log` in the folder."""
        reply = self._ask({"do": "start", "name": name, "argv": argv})
        self._pids[name] = reply["pid"]

    def stop(self, name: str) -> None:
        """SIGTERM, then SIGKILL; returns when it is gone."""
        self._pids.pop(name)
        self._ask({"do": "stop", "name": name})

    def raise_if_ended(self) -> None:
        """Raise `ClusterError` with the end of its log if a program has ended."""
        for name, code in self._ask({"do": "codes"}).items():
            if code is not None:
                raise ClusterError(
                    f"{name} ended with code {code}; its log ends with:\n"
                    f"{self.log_tail(name)}"
                )

    def log_tail(self, name: str) -> str:
        """The last lines that a program wrote."""
        path = self.folder / f"{name}.log"
        with contextlib.suppress(FileNotFoundError), path.open(errors="replace") as log:
            last = collections.deque(log, maxlen=LOG_LINES)
            if last:
                return "\n".join(line.rstrip()[:LINE_LENGTH] for line in last)
        return "(it wrote nothing)"

    def close(self) -> None:
        """Stop everything and delete the folder; a second call does nothing."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(CLOSE_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._pids.clear()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        line = json.dumps(request).encode() + b"\n"
        with self._lock:
            try:
                self._process.stdin.write(line)
                self._process.stdin.flush()
            except (BrokenPipeError, ValueError):
                raise ClusterError(_GONE) from None
            reply = self._read()
        if "error" in reply:
            raise ClusterError(
                f"cannot {request['do']} {request.get('name')}: {reply['error']}"
            )
        return reply

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ClusterError(_GONE)
        reply: dict[str, Any] = json.loads(line)
        return reply


_GONE = (
    "the process that runs the test cluster has ended, and the cluster with it: "
    "something closed or killed it, so start a new one."
)
