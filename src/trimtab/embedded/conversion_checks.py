"""Conversion checks: how a CRD wants its objects converted from version to version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from trimtab.embedded import addresses, status
from trimtab.embedded.addresses import AddressError
from trimtab.embedded.builtin.validation import texts
from trimtab.embedded.status import FieldProblem

Plain = Mapping[str, Any]

_DOMAIN_FORM: Final = "; desired format: https://host[/path]"


def choice_problems(
    path: str, value: str, allowed: tuple[str, ...]
) -> Iterator[FieldProblem]:
    """What is wrong with a value that has to be one of a few."""
    if not value:
        yield status.required(path)
    elif value not in allowed:
        yield status.not_supported(path, value, allowed)


def conversion_problems(conversion: Plain) -> Iterator[FieldProblem]:
    """What is wrong with how a definition's versions are converted."""
    path = "spec.conversion"
    strategy = conversion.get("strategy") or ""
    yield from choice_problems(f"{path}.strategy", strategy, ("None", "Webhook"))
    webhook = conversion.get("webhook") or {}
    client, versions = (
        webhook.get("clientConfig"),
        webhook.get("conversionReviewVersions"),
    )
    if strategy == "Webhook":
        yield from _client_problems(client, f"{path}.webhookClientConfig")
        yield from _review_problems(versions or [], f"{path}.conversionReviewVersions")
        return
    detail = "should not be set when strategy is not set to Webhook"
    if client is not None:
        yield status.forbidden_value(f"{path}.webhookClientConfig", detail)
    if versions:
        yield status.forbidden_value(f"{path}.conversionReviewVersions", detail)


def _client_problems(client: Plain | None, path: str) -> Iterator[FieldProblem]:
    if client is None:
        yield status.required(path, "required when strategy is set to Webhook")
        return
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield status.required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url_problems(url, f"{path}.url")
    elif service is not None:
        yield from _service_problems(service, f"{path}.service")


def _url_problems(text: str, path: str) -> Iterator[FieldProblem]:
    try:
        url = addresses.url(text)
    except AddressError as error:
        yield status.required(path, f"url must be a valid URL: {error}{_DOMAIN_FORM}")
        return
    if url.scheme != "https":
        detail = f"'https' is the only allowed URL scheme{_DOMAIN_FORM}"
        yield status.invalid(path, url.scheme, detail)
    if not url.host:
        yield status.invalid(path, "", f"host must be specified{_DOMAIN_FORM}")
    for value, what in (
        (url.user, "user information is"),
        (url.fragment, "fragments are"),
        (url.query, "query parameters are"),
    ):
        if value:
            yield status.invalid(path, value, f"{what} not permitted in the URL")


def _service_problems(service: Plain, path: str) -> Iterator[FieldProblem]:
    # The real server takes the one for the other here, and so do its complaints.
    for field, given in (("name", "namespace"), ("namespace", "name")):
        if not service.get(given):
            yield status.required(f"{path}.{field}")
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        detail = "port is not valid: must be between 1 and 65535, inclusive"
        yield status.invalid(f"{path}.port", port, detail)
    given = service.get("path") or ""
    where = f"{path}.path"
    if given in ("", "/"):
        return
    if given == "//":
        yield status.invalid(where, given, "segment[0] may not be empty")
        return
    if not given.startswith("/"):
        yield status.invalid(where, given, "must start with a '/'")
    for index, step in enumerate(given[1:].removesuffix("/").split("/")):
        details = texts.subdomain(step) if step else ()
        if not step:
            yield status.invalid(where, given, f"segment[{index}] may not be empty")
        for detail in details:
            yield status.invalid(where, given, f"segment[{index}]: {detail}")


def _review_problems(versions: list[str], path: str) -> Iterator[FieldProblem]:
    if not versions:
        yield status.required(path)
        return
    seen = set()
    for index, version in enumerate(versions):
        if version in seen:
            yield status.invalid(f"{path}[{index}]", version, "duplicate version")
            continue
        seen.add(version)
        for detail in texts.label_1035(version):
            yield status.invalid(f"{path}[{index}]", version, detail)
    if not seen & {"v1", "v1beta1"}:
        detail = "must include at least one of v1, v1beta1"
        yield status.invalid(path, versions, detail)
