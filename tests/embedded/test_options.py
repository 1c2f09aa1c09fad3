"""Options of requests: what may be asked for, and in whose name it is refused.

Each law runs unchanged on the embedded server and on kube-apiserver.
"""

from __future__ import annotations

import pytest

from tests.embedded.asking import APPLY, JSON, MERGE, Asker
from tests.embedded.asking import ask as ask
from tests.embedded.objects import config_map, deployment

DRY = 'dryRun: Unsupported value: ["x"]: supported values: "All"'
VALIDATION = (
    'fieldValidation: Unsupported value: "y": supported values: "", "Ignore", '
    '"Strict", "Warn"'
)
LONG = "fieldManager: Too long: may not be more than 128 bytes"
FORCE = "force: Forbidden: may not be specified for non-apply patch"
MANAGER = "fieldManager: Required value: is required for apply patch"


@pytest.mark.parametrize(
    ("query", "problems"),
    [
        ({"dryRun": "x"}, [DRY]),
        ({"dryRun": ""}, [DRY.replace("x", "")]),
        ({"fieldValidation": "y"}, [VALIDATION]),
        ({"fieldValidation": "y", "dryRun": "x"}, [DRY, VALIDATION]),
        ({"dryRun": "x", "fieldManager": "a" * 129}, [LONG, DRY]),
    ],
)
@pytest.mark.parametrize(
    ("method", "media", "kind"),
    [
        ("POST", JSON, "CreateOptions"),
        ("PUT", JSON, "UpdateOptions"),
        ("PATCH", MERGE, "PatchOptions"),
    ],
)
async def test_bad_options_are_refused_all_at_once_in_the_name_of_the_verb(
    ask: Asker,
    method: str,
    media: str,
    kind: str,
    query: dict[str, str],
    problems: list[str],
) -> None:
    path = ask.path("configmaps") + ("" if method == "POST" else "/one")
    refused = await ask(method, path, config_map(), media=media, **query)
    listed = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    told = f'{kind}.meta.k8s.io "" is invalid: {listed}'
    assert refused.refusal == (422, "Invalid", told)


async def test_what_only_some_patches_may_say_comes_first(ask: Asker) -> None:
    path = f"{ask.path('configmaps')}/one"
    told = 'PatchOptions.meta.k8s.io "" is invalid: '
    refused = await ask("PATCH", path, {}, media=MERGE, force="true", dryRun="x")
    assert refused.refusal == (422, "Invalid", f"{told}[{FORCE}, {DRY}]")
    refused = await ask("PATCH", path, {}, media=APPLY, dryRun="x")
    assert refused.refusal == (422, "Invalid", f"{told}[{MANAGER}, {DRY}]")


async def test_options_come_before_bodies_and_objects(ask: Asker) -> None:
    path = f"{ask.path('deployments', group='apps')}/none/status"
    refused = await ask("PUT", path, deployment(), dryRun="x")
    told = f'UpdateOptions.meta.k8s.io "" is invalid: {DRY}'
    assert refused.refusal == (422, "Invalid", told)
    refused = await ask("POST", ask.path("configmaps"), b"{", dryRun="x")
    assert refused.refusal[2].startswith("CreateOptions")


def pod() -> dict[str, object]:
    spec = {"containers": [{"name": "main", "image": "x"}]}
    automount = {"automountServiceAccountToken": False}
    meta = {"name": "one"}
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
    return {**obj, "spec": {**spec, **automount}}


async def test_a_pod_that_never_ran_has_said_nothing(ask: Asker) -> None:
    path = ask.path("pods")
    await ask("POST", path, pod())
    log = await ask("GET", f"{path}/one/log")
    assert (log.status, log.body) == (204, b"")


POSITIVE = "Invalid value: {}: must be greater than {}0"


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ({"tailLines": "-1"}, f"tailLines: {POSITIVE.format(-1, 'or equal to ')}"),
        ({"sinceSeconds": "0"}, f"sinceSeconds: {POSITIVE.format(0, '')}"),
        ({"limitBytes": "0"}, f"limitBytes: {POSITIVE.format(0, '')}"),
        ({"stream": "Stdout"}, "stream: Forbidden: may not be specified"),
        (
            {"sinceSeconds": "0", "sinceTime": "2020-01-01T00:00:00Z"},
            (
                "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be "
                "specified"
            ),
        ),
    ],
)
async def test_options_of_a_log_are_checked(
    ask: Asker, query: dict[str, str], problem: str
) -> None:
    path = ask.path("pods")
    await ask("POST", path, pod())
    refused = await ask("GET", f"{path}/one/log", **query)
    told = f'PodLogOptions "one" is invalid: {problem}'
    assert refused.refusal == (422, "Invalid", told)


async def test_options_of_a_log_are_numbers_and_times(ask: Asker) -> None:
    path = ask.path("pods")
    await ask("POST", path, pod())
    refused = await ask("GET", f"{path}/one/log", tailLines="x")
    told = 'strconv.ParseInt: parsing "x": invalid syntax'
    assert refused.refusal == (400, "BadRequest", told)
    refused = await ask("GET", f"{path}/one/log", sinceTime="x")
    told = 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'
    assert refused.refusal == (400, "BadRequest", told)
