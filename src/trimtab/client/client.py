"""The client: every verb of the Kubernetes API, by class or by discovered kind.

One client is one pooled session to one API server: make it once and hand it on. By
class (``client.get(Pod, "web")``) objects come back typed; by what
:meth:`Client.discover` found they are plain dicts.
"""

from __future__ import annotations

from trimtab.client.reads import Reads
from trimtab.client.subresources import Subresources
from trimtab.client.writes import Writes


class Client(Reads, Writes, Subresources):
    """Close it, or use it as ``async with Client(config) as client``."""
