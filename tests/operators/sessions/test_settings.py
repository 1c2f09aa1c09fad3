"""Settings from the environment, and profiles from a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.operators.sessions.samples import session
from trimtab.operators.sessions.profiles import Profile, Registry
from trimtab.operators.sessions.settings import Limits, Settings, from_environment

VERTEX = {
    "USE_VERTEX": "1",
    "CLOUD_ML_REGION": "global",
    "ANTHROPIC_VERTEX_PROJECT_ID": "numbers",
    "GOOGLE_APPLICATION_CREDENTIALS": "/app/vertex/key.json",
}


def test_an_empty_environment_is_the_default_of_everything() -> None:
    assert from_environment({}) == Settings()
    assert from_environment(dict.fromkeys(VERTEX, "")) == Settings()


def test_the_environment_says_what_the_platforms_manifests_say() -> None:
    made = from_environment(
        {
            **VERTEX,
            "NAMESPACE": "ambient",
            "BACKEND_NAMESPACE": "web",
            "AMBIENT_CODE_RUNNER_IMAGE": "runner:1",
            "STATE_SYNC_IMAGE": "sync:1",
            "IMAGE_PULL_POLICY": "IfNotPresent",
            "S3_ENDPOINT": "http://store:9000",
            "S3_BUCKET": "state",
            "POD_FSGROUP": "0",
            "LANGFUSE_ENABLED": "true",
            "MLFLOW_TRACING_ENABLED": "True",
            "DEFAULT_INACTIVITY_TIMEOUT": "0",
            "MAX_CONCURRENT_RECONCILES": "20",
        }
    )
    assert made.backend_api_url == (
        "http://backend-service.web.svc.cluster.local:8080/api"
    )
    assert made.fs_group == 0
    assert made.limits.inactivity == 0
    assert made.concurrency == 20
    assert made.vertex is not None
    assert made.vertex.project == "numbers"
    assert made.copied == (
        "ambient-vertex",
        "ambient-admin-langfuse-secret",
        "ambient-admin-mlflow-observability-secret",
        "minio-credentials",
    )


def test_google_sends_people_back_to_the_backend_unless_somebody_says_where() -> None:
    public = {"BACKEND_PUBLIC_URL": "https://example.com/"}
    assert from_environment({}).google_redirect == ""
    assert from_environment(public).google_redirect == (
        "https://example.com/oauth2callback"
    )
    said = {**public, "GOOGLE_OAUTH_REDIRECT_URI": "https://example.com/back"}
    assert from_environment(said).google_redirect == "https://example.com/back"


def test_the_backend_is_beside_the_operator_unless_somebody_says_otherwise() -> None:
    assert from_environment({"NAMESPACE": "ambient"}).backend == "ambient"


@pytest.mark.parametrize("name", sorted(VERTEX.keys() - {"USE_VERTEX"}))
def test_vertex_without_one_of_its_three_variables_does_not_start(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        from_environment({**VERTEX, name: ""})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("POD_FSGROUP", "many"),
        ("POD_FSGROUP", "-1"),
        ("MAX_CONCURRENT_RECONCILES", "0"),
        ("DEFAULT_INACTIVITY_TIMEOUT", "1.5"),
        ("START_DEADLINE", "nan"),
        ("IMAGE_PULL_POLICY", "Sometimes"),
    ],
)
def test_what_is_said_wrong_names_the_variable(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=name):
        from_environment({name: said})


def test_pauses_between_runners_double_up_to_a_limit() -> None:
    limits = Limits(backoff=5.0, backoff_limit=30.0)
    pauses = [limits.pause(lost) for lost in (1, 2, 3, 4, 5, 10_000)]
    assert pauses == [5.0, 10.0, 20.0, 30.0, 30.0, 30.0]


def registry(folder: Path, profiles: Any) -> tuple[Registry, Path]:
    file = folder / "agent-registry.json"
    file.write_text(profiles if isinstance(profiles, str) else json.dumps(profiles))
    models = folder / "models.json"
    settings = Settings(registry_path=str(file), models_path=str(models))
    return Registry(settings), file


def test_what_a_profile_does_not_say_is_as_usual(tmp_path: Path) -> None:
    found, _ = registry(tmp_path, [{"id": "small", "container": {"port": 9000}}])
    profile = found.profile("small")
    assert profile.container.port == 9000
    assert profile == msgspec.structs.replace(
        Profile(id="small"), container=profile.container
    )
    assert found.ports() == (8001, 9000)


def test_a_runner_type_that_nobody_knows_is_the_usual_runner(tmp_path: Path) -> None:
    found, _ = registry(tmp_path, [])
    asked = session({"environmentVariables": {"RUNNER_TYPE": "strange"}})
    assert found.of(asked) == Profile(id="strange")
    assert found.of(session()).id == "claude-agent-sdk"


def test_a_registry_is_read_again_when_it_changes(tmp_path: Path) -> None:
    found, file = registry(tmp_path, [{"id": "a", "framework": "one"}])
    assert found.profile("a").framework == "one"
    file.write_text(json.dumps([{"id": "a", "framework": "second"}]))
    assert found.profile("a").framework == "second"


@pytest.mark.parametrize("broken", ["[{", '{"id": 1}', "[" + " " * (1 << 20) + "]"])
def test_a_broken_registry_leaves_what_was_read_before(
    tmp_path: Path, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    found, file = registry(tmp_path, [{"id": "a", "framework": "one"}])
    assert found.profile("a").framework == "one"
    file.write_text(broken)
    assert found.profile("a").framework == "one"
    assert found.profile("a").framework == "one"
    assert len(caplog.records) == 1  # said once, not at every look
    os.unlink(file)
    assert found.profile("a").framework == "one"


def test_vertex_calls_a_model_what_the_manifest_says(tmp_path: Path) -> None:
    found, _ = registry(tmp_path, [])
    models = [
        {"id": "big", "vertexId": "big@1", "available": True},
        {"id": "old", "vertexId": "old@1", "available": False},
    ]
    (tmp_path / "models.json").write_text(json.dumps({"models": models}))
    assert found.vertex_id("big") == "big@1"
    assert found.vertex_id("old") == found.vertex_id("none") == ""
