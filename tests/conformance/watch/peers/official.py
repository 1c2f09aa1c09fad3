"""The official client's SharedInformer, as its documentation uses it."""

# mypy: disable-error-code="import-not-found, no-untyped-call"

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
GROUP, VERSION, PLURAL = "conformance.example.com", "v1", "widgets"


def main() -> None:
    from common import Reporter
    from kubernetes import client, config
    from kubernetes.informer import SharedInformer

    config.load_kube_config()
    api = client.CustomObjectsApi()

    def widgets(**options: Any) -> object:
        """:rtype: object"""
        answer = api.list_cluster_custom_object(GROUP, VERSION, PLURAL, **options)
        if not isinstance(answer, dict):
            return answer
        # The informer reads attributes, this call answers with a dict.
        revision = answer["metadata"]["resourceVersion"]
        metadata = SimpleNamespace(resource_version=revision)
        return SimpleNamespace(items=answer["items"], metadata=metadata)

    # The only remedy that it has for a dead connection is to list now and then.
    period = max(1, round(float(os.environ["CONFORMANCE_IDLE"])))
    informer = SharedInformer(widgets, resync_period=period)

    def snapshot() -> dict[str, str]:
        found = (each["metadata"] for each in informer.cache.list())
        return {
            f"{each['namespace']}/{each['name']}": each["resourceVersion"]
            for each in found
        }

    reporter = Reporter(snapshot)

    def counts(counter: Any) -> Any:
        def handler(obj: Any) -> None:
            metadata = obj["metadata"]
            counter[f"{metadata['namespace']}/{metadata['name']}"] += 1

        return handler

    informer.add_event_handler("ADDED", counts(reporter.added))
    informer.add_event_handler("DELETED", counts(reporter.deleted))
    informer.start()
    reporter.serve()
    os._exit(0)


if __name__ == "__main__":
    main()
