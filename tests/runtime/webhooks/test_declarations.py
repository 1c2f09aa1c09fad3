"""Laws of declarations: a mistake is one sentence, before anything is served."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from tests.runtime.webhooks.sites import (
    GROUP,
    OldSite,
    Page,
    Site,
    down,
    local,
    operator,
    up,
)
from trimtab import Client, Config, Metadata, Operator, Refused, Resource, Review, Scope
from trimtab.client.credentials import Static, TlsMaterial
from trimtab.client.errors import TrimtabError
from trimtab.kinds import ConfigMap
from trimtab.runtime.manager import Manager, ManagerOptions
from trimtab.runtime.webhooks import WebhookOptions
from trimtab.runtime.webhooks.certificates import CryptographyMissing
from trimtab.runtime.webhooks.configurations import (
    Place,
    configuration,
    conversion,
)
from trimtab.runtime.webhooks.running import Unreached


class Third(Resource, group=GROUP, version="v3", kind="Site", storage=False):
    """A version that nothing leads to."""


class Fourth(Resource, group=GROUP, version="v4", kind="Site", storage=False):
    """Another one."""


def one(site: Page) -> None: ...
def other_kind(site: ConfigMap, review: Review[Any]) -> None: ...
def other_review(site: Page, review: Metadata) -> None: ...
def answers(site: Page, review: Review[Page]) -> Page: ...  # type: ignore[empty-body]
def nothing(site: Page, review: Review[Page]) -> None: ...
def fine(site: Resource, review: Review[Page]) -> None: ...
def loose(site, review): ...  # type: ignore[no-untyped-def]
async def waits(old: OldSite) -> Site: ...  # type: ignore[empty-body]
def turned(new: Site) -> OldSite: ...  # type: ignore[empty-body]


@pytest.mark.parametrize(
    ("declare", "said"),
    [
        (lambda app: app.validates(Page)(one), "must take two arguments, the object"),
        (lambda app: app.validates(Page)(3), "decorates a function, not 3"),
        (
            lambda app: app.validates(Page)(other_kind),
            "takes ConfigMap as site, and is called with Page",
        ),
        (
            lambda app: app.validates(Page)(other_review),
            "takes Metadata as review, and is called with Review",
        ),
        (lambda app: app.validates(Page)(answers), "returns nothing, not Page"),
        (lambda app: app.mutates(Page)(nothing), "returns Page or None, not NoneType"),
        (
            lambda app: app.mutates(Page, on=["DELETE"])(answers),
            "what is deleted cannot be changed",
        ),
        (lambda app: app.validates(Page, on=["PATCH"])(nothing), "on= takes CREATE"),
        (lambda app: app.validates(Page, timeout=60)(nothing), "1 to 30 seconds"),
        (lambda app: app.validates(Page, labels="a>1")(nothing), "cannot select by >"),
        (lambda app: app.validates(Page, name="A.b")(nothing), "name of a webhook"),
        (
            lambda app: app.validates(Page, failure_policy="Maybe")(nothing),
            "failure_policy is 'Fail' or 'Ignore'",
        ),
        (lambda app: app.converts(OldSite, Page)(up), "are two kinds, sites"),
        (lambda app: app.converts(OldSite, OldSite)(up), "are both v1"),
        (lambda app: app.converts(ConfigMap, Site)(up), "is no custom kind"),
        (lambda app: app.converts(OldSite, Site)(waits), "must be a plain function"),
        (
            lambda app: app.converts(OldSite, Site)(turned),
            "must make Site of OldSite, not OldSite of Site",
        ),
        (
            lambda app: app.converts(OldSite, Site)(up).back(up),
            "@up.back up must make OldSite of Site",
        ),
    ],
)
def test_a_mistake_is_found_where_it_is_made(
    declare: Callable[[Operator], Any], said: str
) -> None:
    app = Operator("pages")
    with pytest.raises((TypeError, ValueError)) as failed:
        declare(app)
    assert said in str(failed.value)
    assert len(str(failed.value).splitlines()) == 1


def test_what_the_annotations_do_not_say_is_not_judged() -> None:
    app = Operator("pages")
    app.validates(Page)(fine)
    app.validates(Page)(loose)
    app.mutates(Page)(loose)
    with pytest.raises(ValueError, match=r"There is a webhook loose\.pages"):
        app.validates(Page)(loose)
    app.converts(OldSite, Site)(up).back(down)
    with pytest.raises(ValueError, match="declare each way once"):
        app.converts(Site, OldSite)(down)


def manager(app: Operator, options: WebhookOptions | None) -> Manager:
    config = Config(
        server="http://127.0.0.1:1",
        tls=TlsMaterial(),
        credentials=Static({}),
        namespace="here",
        proxy=None,
        impersonate=None,
        source="the test",
    )
    client = Client(config)
    return Manager(
        app,
        client,
        connect=lambda: client,
        random=Random(1),
        now=lambda: datetime.now(UTC),
        options=ManagerOptions(port=None, webhooks=options),
    )


async def test_what_cannot_be_served_is_said_before_it_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = operator()
    with pytest.raises(Unreached, match="pages declares webhooks, and nothing says"):
        manager(app, None)
    half = operator()
    half.converts(OldSite, Site)(up)
    with pytest.raises(ValueError, match=r"and not back; decorate a .* @up\.back"):
        manager(half, local())
    halves = operator()
    halves.converts(OldSite, Site)(up).back(down)
    halves.converts(Third, Fourth)(loose_conversion).back(loose_conversion)
    with pytest.raises(ValueError, match="No way leads from OldSite to Third"):
        manager(halves, local())
    monkeypatch.setattr(
        "trimtab.runtime.webhooks.certificates.find_spec", lambda _: None
    )
    with pytest.raises(CryptographyMissing, match=r"install trimtab\[webhooks\]"):
        manager(app, local())
    # Certificates that somebody else makes need nobody to make them.
    manager(app, local(certificates="/certificates"))


def loose_conversion(obj):  # type: ignore[no-untyped-def]
    return obj


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "Say how the API server reaches the webhooks"),
        ({"service": "a", "url": "https://b"}, "Say how the API server reaches"),
        ({"url": "http://b"}, "write https://HOST:PORT"),
        ({"url": "https://b:x"}, "write https://HOST:PORT"),
        ({"service": "a/b"}, "without a namespace"),
        ({"service": "a:b"}, "NAME:PORT"),
        ({"service": "a", "lifetime": 10.0}, "a sixth of the lifetime"),
        ({"service": "a", "inject_from": "a/b"}, "give both"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError) as failed:
        WebhookOptions(**given)
    assert said in str(failed.value)


def test_the_way_to_the_webhooks_is_what_the_options_say() -> None:
    service = WebhookOptions(service="shop:8443")
    assert service.client_config("here", port=1) == {
        "service": {"namespace": "here", "name": "shop", "port": 8443}
    }
    assert "shop.here.svc" in service.names("here")
    url = WebhookOptions(url="https://[::1]:0/base/")
    assert url.client_config("here", port=9)["url"] == "https://[::1]:9/base"
    assert url.names("here") == ("::1",)


def test_configurations_are_made_from_the_declarations() -> None:
    app = operator()
    app.validates(ConfigMap, labels="a in (b)", namespaces_where="!c", timeout=3)(loose)
    app.converts(OldSite, Site)(up).back(down)
    client = {"service": {"namespace": "here", "name": "shop", "port": 443}}
    place = Place(operator="pages", namespace="here", client=client)
    made = configuration(app.webhooks, "validates", place, bundle=[b"ca"])
    assert made["metadata"]["name"] == "pages-here"
    (hook,) = made["webhooks"]
    assert hook["name"] == "loose.configmaps.core"
    assert hook["clientConfig"] == {
        "service": {**client["service"], "path": "/validates/loose.configmaps.core"},
        "caBundle": "Y2E=",
    }
    # Without the operator, it and the cluster itself could not be mended.
    assert hook["namespaceSelector"]["matchExpressions"] == [
        {"key": "c", "operator": "DoesNotExist"},
        {
            "key": "kubernetes.io/metadata.name",
            "operator": "NotIn",
            "values": ["kube-system", "here"],
        },
    ]
    told = (hook["failurePolicy"], hook["matchPolicy"], hook["sideEffects"])
    assert told == ("Fail", "Equivalent", "None")
    assert hook["timeoutSeconds"] == 3
    left = Place(
        operator="p", namespace="n", client={"url": "https://a"}, inject_from="n/c"
    )
    crd = conversion(Site, left)
    assert crd["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "n/c"}
    webhook = crd["spec"]["conversion"]["webhook"]
    assert webhook["clientConfig"] == {"url": "https://a/converts"}


def test_an_operator_may_have_webhooks_and_reconcile_nothing() -> None:
    app = Operator("pages")
    app.validates(Page)(fine)
    assert app.controllers() == ()
    assert app.kinds() == ()
    app.converts(OldSite, Site)(up).back(down)
    assert app.kinds() == (OldSite, Site)


def test_a_refusal_is_one_of_the_user() -> None:
    assert issubclass(Refused, TrimtabError)
    with pytest.raises(ValueError, match="cannot have the status 500"):
        Refused("no", status=500)


def test_declaring_webhooks_imports_no_server_and_no_certificates() -> None:
    code = (
        "import sys, trimtab, trimtab.runtime, trimtab.runtime.manager\n"
        "app = trimtab.Operator('a')\n"
        "class A(trimtab.Resource, group='example.com', version='v1'): pass\n"
        "app.validates(A, name='a')(lambda site, review: None)\n"
        "wrong = ('cryptography', 'aiohttp', 'trimtab.runtime.webhooks.serving')\n"
        "sys.exit(','.join(each for each in wrong if each in sys.modules) or 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_scope_of_namespaces_is_one_of_the_webhooks_too() -> None:
    app = operator()

    @app.reconciles(Page, scope=Scope(everything=True))
    async def pages(site: Page, ctx: Any) -> None: ...

    app.within(["a", "b"])
    place = Place(operator="p", namespace="n", client={"url": "https://a"})
    (hook,) = configuration(app.webhooks, "mutates", place)["webhooks"]
    assert hook["namespaceSelector"]["matchExpressions"][0]["values"] == ["a", "b"]
