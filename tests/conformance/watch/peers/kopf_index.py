"""kopf's in-memory index, tuned for each scenario as its settings allow.

It tells nobody what goes, so it is looked at all the time: what was there a moment ago
and is not now counts as deleted.
"""

# mypy: disable-error-code="import-not-found, untyped-decorator"

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
GROUP, VERSION, PLURAL = "conformance.example.com", "v1", "widgets"


def main() -> None:
    import kopf
    from common import Reporter
    from kopf._core.engines.indexing import OperatorIndexers

    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.watching.inactivity_timeout = float(os.environ["CONFORMANCE_IDLE"])
    if os.environ["CONFORMANCE_WAY"] == "stream":
        settings.watching.initial_streaming = True
    else:
        settings.watching.chunk_size = 500
    indexers: Any = OperatorIndexers()  # whose keys have a type of their own

    @kopf.index(GROUP, VERSION, PLURAL, id="widgets")
    def widgets(**given: Any) -> Any:
        key = f"{given['namespace']}/{given['name']}"
        return {key: given["meta"]["resourceVersion"]}

    def snapshot() -> dict[str, str]:
        while True:
            try:
                index = indexers["widgets"].index
                return {key: next(iter(index[key])) for key in list(index)}
            except (KeyError, RuntimeError, StopIteration):
                if "widgets" not in indexers:
                    return {}  # it has not begun
                time.sleep(0.001)  # it is being written

    reporter = Reporter(snapshot)

    def look() -> None:
        while True:
            began = time.monotonic()
            reporter.sample()
            # A look at many objects is slow: it must not take their time from kopf.
            time.sleep(max(0.003, 20 * (time.monotonic() - began)))

    def serve() -> None:
        reporter.serve(sampled=True)
        os._exit(0)

    threading.Thread(target=look, daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()
    kopf.run(standalone=True, clusterwide=True, settings=settings, indexers=indexers)


if __name__ == "__main__":
    main()
