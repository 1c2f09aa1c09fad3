"""The page on webhooks says what is so: its operator does what it shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from trimtab import Metadata
from trimtab.cli.loading import module_in
from trimtab.client.errors import Forbidden
from trimtab.testing import Cluster, eventually
from trimtab.testing.operating import running

PAGE = Path(__file__).resolve().parents[3] / "docs" / "webhooks.md"


async def test_the_operator_of_the_page_does_what_the_page_shows(
    cluster: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PAGE.read_text()
    (source,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    file = tmp_path / "hooked_websites.py"
    # A group of its own: another test's websites have a version less.
    file.write_text(source.replace('"example.com"', '"page.example.com"'))
    monkeypatch.syspath_prepend(tmp_path)
    page: Any = module_in(file)

    def site(name: str, **spec: Any) -> Any:
        metadata = Metadata(name=name)
        return page.Website(metadata=metadata, spec=page.WebsiteSpec(**spec))

    async with running(page.app, cluster, namespace) as run:

        async def asked() -> bool:
            made = await run.client.create(site("a"), dry_run=True)
            return bool(made.spec.address == "a.example.com:80")

        await eventually(asked)
        said = "40 are too many; 20 at most"
        with pytest.raises(Forbidden, match=said):
            await run.client.create(site("a", replicas=40))
        assert said in " ".join(text.split())
        await run.client.create(site("a"))
        old = await run.client.get(page.OldWebsite, "a")
        assert (old.spec.host, old.spec.port) == ("a.example.com", "80")
        await run.client.delete(page.Website, "a")
