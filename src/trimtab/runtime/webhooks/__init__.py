"""Webhooks: an operator's say in what is admitted, changed and converted.

Only what declarations need is imported here; a process that serves no webhook loads no
server, no TLS and no certificates for it.
"""

from trimtab.runtime.webhooks.options import WebhookOptions as WebhookOptions
from trimtab.runtime.webhooks.review import Refused as Refused
from trimtab.runtime.webhooks.review import Review as Review
