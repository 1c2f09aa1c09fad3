"""Certificate signing requests: what is asked for, and what was decided about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded import pem
from trimtab.embedded.builtin.internal import difference
from trimtab.embedded.builtin.validation import meta, texts
from trimtab.embedded.builtin.validation.problems import Found
from trimtab.embedded.status import quoted

JSON = Mapping[str, Any]

GROUP: Final = "certificates.k8s.io"
_USAGES: Final = (
    *("any", "cert sign", "client auth", "code signing", "content commitment"),
    *("crl sign", "data encipherment", "decipher only", "digital signature"),
    *("email protection", "encipher only", "ipsec end system", "ipsec tunnel"),
    *("ipsec user", "key agreement", "key encipherment", "microsoft sgc"),
    *("netscape sgc", "ocsp signing", "s/mime", "server auth", "signing"),
    "timestamping",
)
_LEGACY: Final = "kubernetes.io/legacy-unknown"
_DECIDED: Final = ("Approved", "Denied")
_FINAL: Final = (*_DECIDED, "Failed")
_SHORTEST: Final = 600
_PATH: Final = "status.conditions"


def create(found: Found, obj: JSON) -> None:
    _request(found, obj, None)


def update(found: Found, obj: JSON, old: JSON) -> None:
    _update(found, obj, old, approve=False, sign=False)


def status_update(found: Found, obj: JSON, old: JSON) -> None:
    _update(found, obj, old, approve=False, sign=True)


def approval_update(found: Found, obj: JSON, old: JSON) -> None:
    _update(found, obj, old, approve=True, sign=False)


def _any_name(name: str) -> texts.Problems:
    return ()


def _request(found: Found, obj: JSON, old: JSON | None) -> None:
    spec = obj["spec"]
    meta.created(found, obj["metadata"], namespaced=False, name=_any_name)
    _signed(found, spec["request"])
    usages = spec.get("usages") or []
    before = old["spec"].get("usages") or [] if old is not None else []
    if not usages:
        found.required("spec.usages")
    if {*before} <= {*_USAGES}:
        for index, usage in enumerate(usages):
            found.one_of(f"spec.usages[{index}]", usage, _USAGES)
    if len({*before}) == len(before):
        for index, usage in enumerate(usages):
            if usage in usages[:index]:
                found.duplicate(f"spec.usages[{index}]", usage)
    _signer(found, spec["signerName"], old)
    seconds = spec.get("expirationSeconds", _SHORTEST)
    if seconds < _SHORTEST:
        detail = "may not specify a duration less than 600 seconds (10 minutes)"
        found.invalid("spec.expirationSeconds", seconds, detail)
    _conditions(found, _said(obj), _said(old))
    _certificate(found, obj, old)


def _signed(found: Found, request: str | None) -> None:
    try:
        parsed = pem.signing_request(pem.decoded(request or ""))
        if not parsed.is_signature_valid:
            raise ValueError("x509: signature is not valid")
    except ValueError as error:
        found.invalid("spec.request", request or None, str(error))


def _signer(found: Found, name: str, old: JSON | None) -> None:
    path = "spec.signerName"
    known = old is not None and old["spec"].get("signerName") == _LEGACY
    if name == _LEGACY and not known:
        detail = "the legacy signerName is not allowed via this API version"
        found.invalid(path, name, detail)
    else:
        signer_name(found, name, path)


def signer_name(found: Found, name: str, path: str) -> None:
    """A domain, and what it calls the signer."""
    if not name:
        found.required(path)
        return
    domain, slash, rest = name.partition("/")
    if not slash or "/" in rest:
        found.invalid(
            path,
            name,
            "must be a fully qualified domain and path of the form "
            "'example.com/signer-name'",
        )
        return
    if len(domain) > 253:
        found.too_long(path, 253)
    _labels(found, domain, path, texts.label)
    if "." not in domain:
        detail = "should be a domain with at least two segments separated by dots"
        found.invalid(path, domain, detail)
    _labels(found, rest, path, texts.subdomain)
    if len(name) > 571:
        found.too_long(path, 571)


def _labels(found: Found, given: str, path: str, check: texts.NameCheck) -> None:
    for each in given.split("."):
        if problems := check(each):
            told = (f"validating label {quoted(each)}: {text}" for text in problems)
            found.each(path, given, tuple(told))
            return


def _said(obj: JSON | None) -> list[JSON]:
    return ((obj or {}).get("status") or {}).get("conditions") or []


def _conditions(found: Found, given: list[JSON], before: list[JSON]) -> None:
    """What is decided; what was wrong before is let be."""
    known = [each["type"] for each in before]
    seen: set[str] = set()
    for index, each in enumerate(given):
        kind, value, where = each["type"], each["status"], f"{_PATH}[{index}]"
        if not kind and "" not in known:
            found.required(f"{where}.type")
        allowed = ("True",) if kind in _FINAL else ("False", "True", "Unknown")
        found.choice(f"{where}.status", value, allowed)
        if kind in _DECIDED and not {*_DECIDED} <= {*known}:
            other = _DECIDED[kind == _DECIDED[0]]
            if other in seen:
                detail = "Approved and Denied conditions are mutually exclusive"
                found.invalid(_PATH, kind, detail)
        if kind in seen and len({*known}) == len(known):
            found.duplicate(f"{where}.type", kind)
        seen.add(kind)


def _certificate(found: Found, obj: JSON, old: JSON | None) -> None:
    given, before = _issued(obj), _issued(old)
    if old is not None and (given == before or _certificate_problem(before)):
        return
    if problem := _certificate_problem(given):
        found.invalid("status.certificate", "<certificate data>", problem)


def _issued(obj: JSON | None) -> str:
    return ((obj or {}).get("status") or {}).get("certificate") or ""


def _certificate_problem(value: str) -> str:
    if not value:
        return ""
    try:
        pem.check_certificates(pem.decoded(value))
    except ValueError as error:
        return str(error)
    return ""


def _update(found: Found, obj: JSON, old: JSON, *, approve: bool, sign: bool) -> None:
    _request(found, obj, old)
    for kind in _FINAL:
        if len(_of(obj, kind)) < len(_of(old, kind)):
            detail = f'updates may not remove a condition of type "{kind}"'
            found.forbidden(_PATH, detail)
    for kind in () if approve else _DECIDED:
        _undecided(found, kind, _of(obj, kind), _of(old, kind))
    given, before = _issued(obj), _issued(old)
    if given != before and not sign:
        detail = "updates may not set certificate content"
        found.forbidden("status.certificate", detail)
    elif given != before and before:
        detail = "updates may not modify existing certificate content"
        found.forbidden("status.certificate", detail)
    meta.updated(found, obj["metadata"], old["metadata"])


def _of(obj: JSON, kind: str) -> list[JSON]:
    return [each for each in _said(obj) if each["type"] == kind]


def _undecided(found: Found, kind: str, new: list[JSON], old: list[JSON]) -> None:
    """Only an approval decides."""
    if len(new) > len(old):
        detail = f'updates may not add a condition of type "{kind}"'
        found.forbidden(_PATH, detail)
    elif len(new) == len(old) and new != old:
        shape = "certificates.CertificateSigningRequestCondition"
        shown = difference(shape, old[0], new[0])
        detail = f'updates may not modify a condition of type "{kind}"\n{shown}'
        found.forbidden(_PATH, detail)
