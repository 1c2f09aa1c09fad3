"""What the server does by itself, some of it only after a while."""

from __future__ import annotations

import base64
from datetime import timedelta
from random import Random
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from tests.embedded.apis import Clock, api_on, asked, settle
from tests.embedded.asking import MERGE
from trimtab.embedded.api import Api
from trimtab.embedded.certificates import Authority
from trimtab.embedded.store import Store
from trimtab.embedded.tokens import Tokens

Plain = dict[str, Any]
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
SERVICES = "/api/v1/namespaces/default/services"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec"


def precedence(api: Api, name: str) -> int | None:
    found = asked(api, "GET", f"{FLOW}/flowschemas/{name}")
    if found.status == 404:
        return None
    assert isinstance(found.obj["spec"]["matchingPrecedence"], int)
    return found.obj["spec"]["matchingPrecedence"]


def test_what_is_the_servers_own_in_flow_control_comes_back_after_a_while() -> None:
    clock = Clock()
    api = api_on(Store(None), clock=clock)
    probes, nodes = f"{FLOW}/flowschemas/probes", f"{FLOW}/flowschemas/system-nodes"
    assert asked(api, "DELETE", probes).status == 200
    asked(api, "PATCH", nodes, {"spec": {"matchingPrecedence": 7}}, media=MERGE)
    mine = {"metadata": {"annotations": {AUTOUPDATE: "false"}}}
    other = f"{FLOW}/flowschemas/service-accounts"
    body = {**mine, "spec": {"matchingPrecedence": 8}}
    asked(api, "PATCH", other, body, media=MERGE)
    api.maintain()
    names = ("probes", "system-nodes", "service-accounts")
    assert [precedence(api, each) for each in names] == [None, 7, 8]
    clock.now += timedelta(seconds=61)
    api.maintain()
    assert [precedence(api, each) for each in names] == [2, 500, 8]


def test_an_address_that_is_deleted_under_its_service_is_made_again() -> None:
    api = api_on(Store(None))
    body = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    address = asked(api, "POST", SERVICES, body).obj["spec"]["clusterIP"]
    settle(api)
    path = f"{ADDRESSES}/{address}"
    uid = asked(api, "GET", path).meta["uid"]
    assert asked(api, "DELETE", path).status == 200
    settle(api)
    assert asked(api, "GET", path).meta["uid"] != uid


def test_ranges_are_found_again_after_a_restart() -> None:
    store = Store(None)
    api = api_on(store)
    spec = {"cidrs": ["10.77.0.0/24"]}
    ranges = "/apis/networking.k8s.io/v1/servicecidrs"
    asked(api, "POST", ranges, {"metadata": {"name": "more"}, "spec": spec})
    settle(api)
    api = api_on(store, random=Random(2))
    inside = {"ports": [{"port": 80}], "clusterIP": "10.77.0.9"}
    made = asked(api, "POST", SERVICES, {"metadata": {"name": "s"}, "spec": inside})
    assert made.status == 201, made.body


def kubelet_request(name: str) -> Plain:
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    key = ec.generate_private_key(ec.SECP256R1())
    text = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    spec = {
        "request": base64.b64encode(text).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
        "usages": ["digital signature", "client auth"],
    }
    return {"metadata": {"name": "node"}, "spec": spec}


def test_a_kubelet_that_may_have_a_certificate_gets_it_without_a_person() -> None:
    clock = Clock()
    authority = Authority.make("tests", now=clock())
    api = Api(
        Store(None), now=clock, random=Random(1), tokens=Tokens(), issue=authority.issue
    )
    made = asked(api, "POST", REQUESTS, kubelet_request("system:node:one"))
    assert made.status == 201, made.body
    settle(api)
    state = asked(api, "GET", f"{REQUESTS}/node").obj["status"]
    [condition] = state["conditions"]
    assert condition["reason"] == "AutoApproved"
    found = x509.load_pem_x509_certificate(base64.b64decode(state["certificate"]))
    assert found.subject.rfc4514_string() == "CN=system:node:one,O=system:nodes"
    assert found.not_valid_after_utc - clock() == timedelta(days=365, minutes=-5)


def test_without_an_authority_nothing_is_signed() -> None:
    api = api_on(Store(None))
    assert (
        asked(api, "POST", REQUESTS, kubelet_request("system:node:one")).status == 201
    )
    settle(api)
    assert asked(api, "GET", f"{REQUESTS}/node").obj["status"] == {}


def test_what_every_namespace_has_comes_back() -> None:
    api = api_on(Store(None))
    place = "/api/v1/namespaces/default"
    trust, account = (
        f"{place}/configmaps/kube-root-ca.crt",
        f"{place}/serviceaccounts/default",
    )
    before = asked(api, "GET", trust).obj
    assert asked(api, "DELETE", trust).status == 200
    assert asked(api, "DELETE", account).status == 200
    settle(api)
    assert asked(api, "GET", account).status == 200
    again = asked(api, "GET", trust).obj
    assert again["data"] == before["data"]
    assert again["metadata"]["uid"] != before["metadata"]["uid"]
    asked(api, "PATCH", trust, {"data": {"ca.crt": "mine"}}, media=MERGE)
    settle(api)
    assert asked(api, "GET", trust).obj["data"] == before["data"]
