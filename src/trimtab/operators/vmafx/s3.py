"""S3: ``s3://BUCKET/KEY`` as an address that any HTTP client may read, signed by us.

The signature (AWS Signature Version 4) is in the query, so nothing else of a request
has to know of it. It is made anew for each request: none outlives a long clip.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlsplit

import msgspec

from trimtab.operators.vmafx.problems import ToolFailed

SCHEME = "s3://"
# The names that every tool for S3 knows, in the environment or as files of a folder.
KEY_ID = "AWS_ACCESS_KEY_ID"
SECRET = "AWS_SECRET_ACCESS_KEY"
TOKEN = "AWS_SESSION_TOKEN"
REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
FOLDER = "VMAFX_S3_KEYS"

_ALGORITHM = "AWS4-HMAC-SHA256"
_SECONDS = 900
_UNRESERVED = "-_.~"


class Keys(msgspec.Struct, frozen=True):
    """Who signs; shown nowhere."""

    id: str
    secret: str
    token: str = ""

    def __repr__(self) -> str:
        return "Keys(…)"


class S3:
    """Where objects are, and who may read them.

    ``environment`` names the keys, the region and, for another server than Amazon's,
    its address. ``VMAFX_S3_KEYS`` names a folder with files of the same names, as a
    Secret is mounted: it is read for each signature, because keys are renewed in place.
    """

    def __init__(
        self, environment: Mapping[str, str], *, now: Callable[[], datetime]
    ) -> None:
        self._environment = environment
        self._now = now

    def presigned(self, address: str) -> str:
        """An ``s3://`` address as one of HTTP, good for a quarter of an hour.

        Errors: :class:`ToolFailed` where there are no keys.
        """
        keys = Keys(self._one(KEY_ID), self._one(SECRET), self._one(TOKEN))
        if not keys.id or not keys.secret:
            raise ToolFailed(
                f"{address} cannot be read: {KEY_ID} and {SECRET} are not set here."
            )
        region = self._one(*REGIONS) or "us-east-1"
        found = located(address, region=region, endpoint=self._one(*ENDPOINTS))
        return presigned(found, keys=keys, region=region, now=self._now())

    def _one(self, *names: str) -> str:
        folder = self._environment.get(FOLDER)
        for name in names:
            if folder and (file := Path(folder) / name).is_file():
                return file.read_text().strip()
            if value := self._environment.get(name):
                return value
        return ""


def parts(address: str) -> tuple[str, str]:
    """The bucket and the key of an address; a key may have any character in it."""
    bucket, _, key = address[len(SCHEME) :].partition("/")
    return bucket, key


def located(address: str, *, region: str, endpoint: str = "") -> str:
    """Where an object is, by HTTP."""
    bucket, key = parts(address)
    path = quote(key, safe="/" + _UNRESERVED)
    if endpoint:
        return f"{endpoint.rstrip('/')}/{bucket}/{path}"
    host = f"s3.{region}.amazonaws.com"
    if "." in bucket:  # no certificate is for it
        return f"https://{host}/{bucket}/{path}"
    return f"https://{bucket}.{host}/{path}"


def presigned(
    url: str, *, keys: Keys, region: str, now: datetime, seconds: int = _SECONDS
) -> str:
    """The URL with a signature for a GET of it, and for nothing else.

    Assumptions: its path is quoted, and it has no query.
    """
    when = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    scope = f"{when[:8]}/{region}/s3/aws4_request"
    query = {
        "X-Amz-Algorithm": _ALGORITHM,
        "X-Amz-Credential": f"{keys.id}/{scope}",
        "X-Amz-Date": when,
        "X-Amz-Expires": str(seconds),
        "X-Amz-SignedHeaders": "host",
    }
    if keys.token:
        query["X-Amz-Security-Token"] = keys.token
    signed = "&".join(
        f"{name}={quote(value, safe=_UNRESERVED)}"
        for name, value in sorted(query.items())
    )
    where = urlsplit(url)
    usual = {"http": ":80", "https": ":443"}[where.scheme]
    # The headers end with an empty line; what is sent is not part of the signature.
    asked = (
        "GET",
        where.path,
        signed,
        f"host:{where.netloc.removesuffix(usual)}",
        "",
        "host",
    )
    request = "\n".join((*asked, "UNSIGNED-PAYLOAD"))
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join((_ALGORITHM, when, scope, digest))
    signature = _mac(_key(keys, scope), text).hex()
    return f"{url}?{signed}&X-Amz-Signature={signature}"


def _key(keys: Keys, scope: str) -> bytes:
    """The key for one day, region and service."""
    key = b"AWS4" + keys.secret.encode()
    for part in scope.split("/"):
        key = _mac(key, part)
    return key


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
