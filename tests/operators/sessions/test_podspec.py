"""The pod of a session and its Service."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.sessions.samples import (
    UID,
    client_in,
    container,
    made,
    project,
    session,
    variables,
)
from trimtab.api.codec import convert
from trimtab.client import Client
from trimtab.kinds import Namespace, WholePod
from trimtab.operators.sessions import podspec
from trimtab.operators.sessions.environment import LONGEST, Facts
from trimtab.operators.sessions.kinds import SPEC_HASH
from trimtab.operators.sessions.profiles import Profile
from trimtab.operators.sessions.settings import Settings, Vertex
from trimtab.testing import Cluster

VERTEX = Vertex(region="global", project="numbers", credentials="/app/vertex/key.json")
EVERYTHING = Facts(
    resume=True,
    storage="shared",
    trusted_bundle=True,
    vertex_id="big@1",
    secrets=frozenset(
        {
            "ambient-runner-secrets",
            "ambient-non-vertex-integrations",
            "ambient-vertex",
            "ambient-admin-langfuse-secret",
            "ambient-admin-mlflow-observability-secret",
            "minio-credentials",
            "google-workflow-app-secret",
        }
    ),
)
FULL = {
    "repos": [{"url": "https://example.com/a.git", "branch": "dev"}],
    "initialPrompt": "Mend the tests.",
    "userContext": {"userId": "u1", "displayName": "Ada"},
    "llmSettings": {"model": "big", "temperature": 0.1, "maxTokens": 10},
    "timeout": 60,
    "environmentVariables": {"B": "2", "A": "1"},
    "mcpServers": {"custom": {"web": {"url": "https://example.com"}}},
    "activeWorkflow": {"gitUrl": "https://example.com/w.git", "path": "flows"},
}


def test_the_pod_is_named_labelled_and_owned_as_other_programs_expect() -> None:
    metadata = made()["metadata"]
    assert metadata["name"] == "fix-tests-runner"
    assert metadata["labels"] == {
        "agentic-session": "fix-tests",
        "app": "ambient-code-runner",
    }
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("AgenticSession", UID)
    assert owner["controller"] is True
    assert "blockOwnerDeletion" not in owner


def test_the_service_belongs_to_the_pod_and_finds_it() -> None:
    service = podspec.service(session(), pod_uid="p1", profile=Profile())
    assert service["metadata"]["name"] == "session-fix-tests"
    assert service["metadata"]["ownerReferences"][0]["uid"] == "p1"
    assert service["spec"]["selector"] == made()["metadata"]["labels"]
    (port,) = service["spec"]["ports"]
    assert (port["name"], port["port"]) == ("agui", 8001)


def test_the_runner_is_told_everything_that_it_was_told_before() -> None:
    told = variables(
        made(session(FULL), facts=EVERYTHING, project=project(mcpServers={}))
    )
    assert told["AGENTIC_SESSION_NAME"] == told["SESSION_ID"] == "fix-tests"
    assert told["AGENTIC_SESSION_NAMESPACE"] == told["PROJECT_NAME"] == "team"
    assert told["WORKSPACE_PATH"] == "/workspace"
    assert told["AGUI_PORT"] == "8001"
    assert told["INITIAL_PROMPT"] == "Mend the tests."
    assert told["LLM_TEMPERATURE"] == "0.10"
    assert told["LLM_MAX_TOKENS"] == "10"
    assert told["TIMEOUT"] == "60"
    assert told["USER_ID"] == "u1"
    assert told["USER_NAME"] == "Ada"
    assert told["LLM_MODEL_VERTEX_ID"] == "big@1"
    assert told["ACTIVE_WORKFLOW_BRANCH"] == "main"
    assert told["ACTIVE_WORKFLOW_PATH"] == "flows"
    assert json.loads(told["REPOS_JSON"]) == [
        {"url": "https://example.com/a.git", "branch": "dev", "autoPush": False}
    ]
    servers = json.loads(told["CUSTOM_MCP_SERVERS"])
    assert servers["custom"] == {"web": {"url": "https://example.com"}}
    assert "PROJECT_MCP_SERVERS" not in told
    assert told["USE_VERTEX"] == told["CLAUDE_CODE_USE_VERTEX"] == "0"
    assert told["IS_RESUME"] == "true"
    assert (told["A"], told["B"]) == ("1", "2")


def test_env_order_is_the_same_every_time() -> None:
    names = [f"V{i}" for i in range(50)]
    hashes = set()
    for seed in range(5):
        random.Random(seed).shuffle(names)
        spec = {"environmentVariables": dict.fromkeys(names, "x")}
        hashes.add(json.dumps(made(session(spec))))
    assert len(hashes) == 1


def test_the_hash_differs_where_the_spec_does_and_only_there() -> None:
    def hashed(spec: dict[str, Any]) -> str:
        found: str = made(session(spec))["metadata"]["annotations"][SPEC_HASH]
        return found

    assert hashed({"timeout": 1}) == hashed({"timeout": 1})
    assert hashed({"timeout": 1}) != hashed({"timeout": 2})


def test_no_secret_is_in_a_pod_spec_but_by_name() -> None:
    settings = Settings(s3_endpoint="http://store", s3_bucket="state", google=True)
    pod = made(session(FULL), settings=settings, facts=EVERYTHING)
    told = variables(pod)
    assert "secretKeyRef" in told["AGUI_TOKEN"]
    assert "secretKeyRef" in told["GOOGLE_OAUTH_CLIENT_SECRET"]
    assert "secretKeyRef" in told["LANGFUSE_SECRET_KEY"]
    for name in ("init-hydrate", "state-sync"):
        told = variables(pod, name)
        assert told["S3_BUCKET"] == "state"
        for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            assert told[key]["secretKeyRef"]["name"] == "minio-credentials"


def test_a_projects_own_bucket_is_used_by_reference() -> None:
    told = variables(made(facts=Facts(storage="custom")), "state-sync")
    for key in ("S3_ENDPOINT", "S3_BUCKET", "AWS_SECRET_ACCESS_KEY"):
        reference = told[key]["secretKeyRef"]
        assert reference["name"] == "ambient-non-vertex-integrations"


def test_without_a_bucket_the_scripts_are_told_so() -> None:
    told = variables(made(), "init-hydrate")
    assert told["S3_ENDPOINT"] == told["AWS_ACCESS_KEY_ID"] == ""


@given(st.text(alphabet="$(){}AGUI_TOKEN x", max_size=40))
def test_a_prompt_is_told_as_it_is_and_never_becomes_a_variable(prompt: str) -> None:
    told = variables(made(session({"initialPrompt": prompt})))["INITIAL_PROMPT"]
    # The rule of Kubernetes: $$ is a dollar, and $(NAME) after one dollar a variable.
    assert "$(" not in told.replace("$$", "")
    assert told.replace("$$", "$") == prompt


def test_users_replace_variables_but_neither_secrets_nor_the_way_to_vertex() -> None:
    said = {
        "LLM_MODEL": "mine",
        "AGUI_TOKEN": "known",
        "USE_VERTEX": "1",
        "SESSION_NAME": "another",
        "BOT_TOKEN": "stolen",
    }
    pod = made(session({"environmentVariables": said}))
    told = variables(pod)
    assert told["LLM_MODEL"] == "mine"
    assert told["USE_VERTEX"] == "0"
    assert "secretKeyRef" in told["AGUI_TOKEN"]
    seeding = variables(pod, "init-hydrate")
    assert seeding["SESSION_NAME"] == "fix-tests"
    assert "secretKeyRef" in seeding["BOT_TOKEN"]


def test_no_variable_is_named_twice() -> None:
    profile = convert(
        Profile, {"container": {"env": {"RUNNER_TYPE": "a", "LLM_MODEL": "b"}}}
    )
    said = {"RUNNER_TYPE": "c", "LLM_MODEL": "d", "TIMEOUT": "1"}
    pod = made(session({"environmentVariables": said}), profile=profile)
    for each in (*pod["spec"]["containers"], *pod["spec"]["initContainers"]):
        names = [variable["name"] for variable in each["env"]]
        assert len(names) == len(set(names))
    assert variables(pod)["RUNNER_TYPE"] == "c"


def test_a_first_start_is_no_resume_and_a_forced_prompt_is_none_either() -> None:
    again = Facts(resume=True)
    assert "IS_RESUME" not in variables(made())
    assert variables(made(facts=again))["IS_RESUME"] == "true"
    forced = session(annotations={"ambient-code.io/force-execute-prompt": "true"})
    assert "IS_RESUME" not in variables(made(forced, facts=again))


def test_a_session_is_not_its_own_parent() -> None:
    key = "vteam.ambient-code/parent-session-id"
    told = variables(made(session(annotations={key: "older"})))
    assert told["PARENT_SESSION_ID"] == "older"
    told = variables(made(session(annotations={key: "fix-tests"})))
    assert "PARENT_SESSION_ID" not in told


def test_vertex_mounts_its_key_and_needs_no_runner_secrets() -> None:
    pod = made(settings=Settings(vertex=VERTEX), facts=EVERYTHING)
    told = variables(pod)
    assert told["USE_VERTEX"] == told["CLAUDE_CODE_USE_VERTEX"] == "1"
    assert told["GCE_METADATA_HOST"] == "metadata.invalid"
    names = [each["secretRef"]["name"] for each in container(pod)["envFrom"]]
    assert names == ["ambient-non-vertex-integrations"]
    mounts = {each["mountPath"] for each in container(pod)["volumeMounts"]}
    assert "/app/vertex" in mounts


def test_the_token_of_the_server_is_a_file_so_that_it_can_be_replaced() -> None:
    pod = made()
    assert "BOT_TOKEN" not in variables(pod)
    (volume,) = (v for v in pod["spec"]["volumes"] if v["name"] == "runner-token")
    assert volume["secret"]["secretName"] == "ambient-runner-token-fix-tests"
    assert volume["secret"]["items"] == [{"key": "k8s-token", "path": "bot-token"}]


def test_a_profile_without_state_has_no_helpers_and_no_workspace() -> None:
    seed = {"cloneRepos": False, "hydrateState": False}
    profile = convert(Profile, {"sandbox": {"persistence": "none", "seed": seed}})
    pod = made(profile=profile)
    assert pod["spec"]["initContainers"] == []
    assert [each["name"] for each in pod["spec"]["containers"]] == [
        "ambient-code-runner"
    ]
    assert [each["name"] for each in pod["spec"]["volumes"]] == ["runner-token"]


def test_a_typo_in_a_profile_stops_no_project() -> None:
    resources = {"limits": {"cpu": "4", "memory": "lots"}}
    profile = convert(
        Profile,
        {
            "container": {"resources": resources},
            "sandbox": {"workspaceSize": "ten"},
        },
    )
    pod = made(profile=profile)
    assert container(pod)["resources"]["limits"] == {"cpu": "4", "memory": "8Gi"}
    assert pod["spec"]["volumes"][0]["emptyDir"] == {"sizeLimit": "10Gi"}


def test_every_container_is_restricted() -> None:
    pod = made(facts=EVERYTHING)
    assert pod["spec"]["securityContext"] == {
        "seccompProfile": {"type": "RuntimeDefault"},
        "runAsNonRoot": True,
    }
    for each in (*pod["spec"]["containers"], *pod["spec"]["initContainers"]):
        assert each["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
    assert pod["spec"]["automountServiceAccountToken"] is False


def test_a_prompt_of_a_megabyte_is_refused_in_a_sentence() -> None:
    long = session({"initialPrompt": "x" * (1 << 20)})
    refused = podspec.problem(long, project=None)
    assert refused is not None
    assert "spec.initialPrompt has 1048590 bytes" in refused
    assert len(refused) < 1024
    fits = session({"initialPrompt": "x" * (LONGEST - len("INITIAL_PROMPT"))})
    assert podspec.problem(fits, project=None) is None


@pytest.mark.parametrize(
    "said",
    [
        {"A=B": "1"},
        {"": "1"},
        {"A\n": "1"},
        {"RUNNER_STATE_DIR": "../etc"},
        {"RUNNER_STATE_DIR": "/etc"},
        {f"V{i}": "x" * 100_000 for i in range(6)},
    ],
)
def test_variables_that_no_container_could_have_are_refused(
    said: dict[str, str],
) -> None:
    asked = session({"environmentVariables": said})
    assert podspec.problem(asked, project=None)


def test_what_is_wrong_with_a_name_is_found_with_the_rest() -> None:
    assert "64 characters" in (
        podspec.problem(session(name="s" * 64), project=None) or ""
    )


async def test_a_server_takes_the_pod_in_a_restricted_namespace(
    cluster: Cluster, namespace: str
) -> None:
    async with client_in(cluster, namespace) as client:
        await _taken(client, namespace)


async def _taken(client: Client, namespace: str) -> None:
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    await client.patch(Namespace, namespace, {"metadata": {"labels": level}})
    settings = Settings(
        vertex=VERTEX, s3_endpoint="http://store", s3_bucket="b", fs_group=1000
    )
    pod = made(session(FULL), settings=settings, facts=EVERYTHING)
    pod["metadata"]["namespace"] = namespace
    answer = await client.create(pod, dry_run=True)
    sent, kept = pod["spec"], convert(WholePod, answer).spec
    assert [each.name for each in kept.containers] == [
        each["name"] for each in sent["containers"]
    ]
    service = podspec.service(session(), pod_uid="p1", profile=Profile())
    service["metadata"]["namespace"] = namespace
    await client.create(service, dry_run=True)


def test_a_full_pod_reads_back_as_a_pod() -> None:
    convert(WholePod, made(session(FULL), facts=EVERYTHING))
