"""Certificates on request: who asks, who decides, who signs, and who gets in by it.

Each law runs unchanged on the embedded server and on kube-apiserver. There,
kube-controller-manager signs, so that one runs too.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from tests.embedded.asking import APPLY, MERGE
from tests.embedded.people import (
    RBAC,
    WHO,
    Person,
    admin,
    jane,
    name,
    peopled,
    reference,
    rule,
    settled,
    user,
)
from trimtab.client import load
from trimtab.client.http import HttpTransport
from trimtab.testing import Cluster, eventually

__all__ = ["admin", "jane", "peopled"]
pytestmark = pytest.mark.cluster("embedded", "real")

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
GROUP = "certificates.k8s.io"
CLIENT = "kubernetes.io/kube-apiserver-client"
KEY = ec.generate_private_key(ec.SECP256R1())
Plain = dict[str, Any]


def request(common_name: str, *groups: str) -> str:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in groups]
    subject = x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    made = builder.sign(KEY, hashes.SHA256())
    return base64.b64encode(made.public_bytes(Encoding.PEM)).decode()


def asked(
    text: str, signer: str = CLIENT, *, usages: tuple[str, ...] = ("client auth",)
) -> Plain:
    spec = {"request": text, "signerName": signer, "usages": list(usages)}
    return {"metadata": {"name": name()}, "spec": spec}


def decided(type: str) -> Plain:
    return {"type": type, "status": "True", "reason": "Tests", "message": "so it is"}


async def approve(person: Person, called: str, type: str = "Approved") -> Any:
    body = {"status": {"conditions": [decided(type)]}}
    return await person("PATCH", f"{REQUESTS}/{called}/approval", body, media=MERGE)


async def state(admin: Person, called: str) -> Plain:
    found: Plain = (await admin("GET", f"{REQUESTS}/{called}")).obj["status"]
    return found


async def may(admin: Person, rules: list[Plain]) -> None:
    """Let Jane do what rules say."""
    role = (await admin.make(f"{RBAC}/clusterroles", rules=rules)).meta["name"]
    reference_to = reference("ClusterRole", role)
    await admin.make(
        f"{RBAC}/clusterrolebindings", roleRef=reference_to, subjects=[user("jane")]
    )
    await settled(admin)


async def test_who_asks_is_written_down_by_the_server(
    admin: Person, jane: Person
) -> None:
    await may(admin, [rule("create", "certificatesigningrequests", group=GROUP)])
    body = asked(request("whoever"), "example.com/mine")
    body["spec"] |= {"username": "somebody", "groups": ["else"], "uid": "7"}
    made = await jane("POST", REQUESTS, body)
    assert made.status == 201, made.body
    spec = made.obj["spec"]
    assert spec["username"] == "jane"
    assert spec["groups"] == ["crew", "system:authenticated"]
    assert spec["uid"] != "7"
    assert made.obj["status"] == {}


async def test_an_approved_request_gets_a_certificate_that_lets_its_owner_in(
    admin: Person, peopled: Cluster, tmp_path: Path
) -> None:
    body = asked(request("newcomer", "guests", "friends"))
    called = (await admin("POST", REQUESTS, body)).meta["name"]
    assert await state(admin, called) == {}
    approved = await approve(admin, called)
    assert approved.status == 200, approved.body
    [condition] = approved.obj["status"]["conditions"]
    assert condition["lastUpdateTime"] == condition["lastTransitionTime"]

    async def certificate() -> Any:
        return (await state(admin, called)).get("certificate")

    found = await eventually(certificate, within=30)
    config = yaml.safe_load(peopled.kubeconfig.read_text())
    key = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    person = {
        "client-certificate-data": found,
        "client-key-data": base64.b64encode(key).decode(),
    }
    config["users"] = [
        {"name": each["name"], "user": person} for each in config["users"]
    ]
    path = tmp_path / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    transport = HttpTransport(load(kubeconfig=path))
    try:
        told = await Person(transport)("POST", f"{WHO}/selfsubjectreviews", {})
    finally:
        await transport.close()
    info = told.obj["status"]["userInfo"]
    assert info["username"] == "newcomer"
    assert info["groups"] == ["guests", "friends", "system:authenticated"]
    assert [*info["extra"]] == ["authentication.kubernetes.io/credential-id"]


async def test_a_certificate_is_for_what_was_asked_and_as_long(admin: Person) -> None:
    body = asked(request("short"), usages=("digital signature", "client auth"))
    body["spec"]["expirationSeconds"] = 3600
    called = (await admin("POST", REQUESTS, body)).meta["name"]
    await approve(admin, called)

    async def certificate() -> Any:
        return (await state(admin, called)).get("certificate")

    text = base64.b64decode(await eventually(certificate, within=30))
    found = x509.load_pem_x509_certificate(text)
    lifetime = found.not_valid_after_utc - found.not_valid_before_utc
    assert lifetime.total_seconds() == 3600 + 300
    usage = found.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert usage.value.digital_signature
    assert not usage.value.key_encipherment
    purposes = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [each._name for each in purposes] == ["clientAuth"]
    basic = found.extensions.get_extension_for_class(x509.BasicConstraints)
    assert not basic.value.ca


async def test_a_denied_request_gets_nothing_and_stays_denied(admin: Person) -> None:
    called = (await admin("POST", REQUESTS, asked(request("no")))).meta["name"]
    assert (await approve(admin, called, "Denied")).status == 200
    refused = await approve(admin, called)
    assert refused.status == 422
    assert ("FieldValueForbidden", "status.conditions") in [
        each[:2] for each in refused.causes
    ]
    assert "certificate" not in await state(admin, called)


async def test_a_signer_says_what_it_does_not_sign(admin: Person) -> None:
    body = asked(request("server"), usages=("server auth", "client auth"))
    called = (await admin("POST", REQUESTS, body)).meta["name"]
    await approve(admin, called)

    async def failure() -> Any:
        said = (await state(admin, called)).get("conditions") or ()
        return next((each for each in said if each["type"] == "Failed"), None)

    found = await eventually(failure, within=30)
    assert found["reason"] == "SignerValidationFailure"
    assert found["message"] == "invalid usage for client certificate: server auth"


async def test_nobody_becomes_a_master_by_a_certificate(admin: Person) -> None:
    body = asked(request("root", "system:masters"))
    refused = await admin("POST", REQUESTS, body)
    assert refused.refusal == (
        403,
        "Forbidden",
        (
            f'certificatesigningrequests.{GROUP} "{body["metadata"]["name"]}" is '
            f"forbidden: use of {CLIENT} signer with system:masters group is not "
            "allowed"
        ),
    )


@pytest.mark.parametrize(
    ("part", "verb"), [("approval", "approve"), ("status", "sign")]
)
async def test_who_decides_must_be_allowed_to_for_that_signer(
    admin: Person, jane: Person, part: str, verb: str
) -> None:
    await may(
        admin,
        [
            rule("get", "certificatesigningrequests", group=GROUP),
            rule("update patch", f"certificatesigningrequests/{part}", group=GROUP),
        ],
    )
    signer = f"{verb}.example.com/mine"
    called = (await admin("POST", REQUESTS, asked(request("x"), signer))).meta["name"]
    type = "Approved" if verb == "approve" else "Failed"
    body = {"status": {"conditions": [decided(type)]}}
    path = f"{REQUESTS}/{called}/{part}"
    refused = await jane("PATCH", path, body, media=MERGE)
    assert refused.refusal == (
        403,
        "Forbidden",
        (
            f'certificatesigningrequests.{GROUP} "{called}" is forbidden: user not '
            f'permitted to {verb} requests with signerName "{signer}"'
        ),
    )
    whole = [f"{verb}.example.com/*"]
    await may(admin, [rule(verb, "signers", group=GROUP, resourceNames=whole)])
    allowed = await jane("PATCH", path, body, media=MERGE)
    assert allowed.status == 200, allowed.body


async def test_what_was_asked_for_does_not_change(admin: Person) -> None:
    made = (await admin("POST", REQUESTS, asked(request("x"), "example.com/x"))).obj
    path = f"{REQUESTS}/{made['metadata']['name']}"
    change = {"spec": {"usages": ["any"]}, "metadata": {"labels": {"a": "b"}}}
    changed = await admin("PATCH", path, change, media=MERGE)
    assert changed.obj["spec"] == made["spec"]
    assert changed.meta["labels"] == {"a": "b"}


async def test_an_apply_of_a_request_owns_what_it_may_set(admin: Person) -> None:
    called = name()
    body = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "CertificateSigningRequest",
        **asked(request("applied"), "example.com/x"),
    }
    body["metadata"] = {"name": called, "labels": {"a": "b"}}
    path = f"{REQUESTS}/{called}"
    made = await admin("PATCH", path, body, media=APPLY, fieldManager="me")
    assert made.status == 201, made.body
    owned = [each.get("fieldsV1") for each in made.meta["managedFields"]]
    assert owned == [{"f:metadata": {"f:labels": {"f:a": {}}}}]


async def test_kubectl_decides_and_lists(admin: Person, peopled: Cluster) -> None:
    names = []
    for verb in ("approve", "deny"):
        body = asked(request("x"), "example.com/x")
        names.append((await admin("POST", REQUESTS, body)).meta["name"])
        told = await peopled.kubectl("certificate", verb, names[-1])
        done = "approved" if verb == "approve" else "denied"
        assert told.strip() == (
            f"certificatesigningrequest.certificates.k8s.io/{names[-1]} {done}"
        )
    table = await peopled.kubectl(
        "get", "csr", "--field-selector=spec.signerName=example.com/x"
    )
    rows = {line.split()[0]: line.split() for line in table.splitlines()}
    assert rows["NAME"][1:] == [
        *("AGE", "SIGNERNAME", "REQUESTOR", "REQUESTEDDURATION", "CONDITION")
    ]
    assert [rows[each][-1] for each in names] == ["Approved", "Denied"]
