"""One pooled, bounded session to one API server: verbs, watches, errors, deadlines."""

from trimtab.client.budget import budget as budget
from trimtab.client.budget import remaining as remaining
from trimtab.client.calls import Options as Options
from trimtab.client.calls import Statistics as Statistics
from trimtab.client.client import Client as Client
from trimtab.client.config import Config as Config
from trimtab.client.config import Impersonation as Impersonation
from trimtab.client.config import load as load
from trimtab.client.errors import *  # noqa: F403
from trimtab.client.guard import Guard as Guard
from trimtab.client.guard import guarded as guarded
from trimtab.client.listing import Listing as Listing
from trimtab.client.ratelimit import RateLimit as RateLimit
from trimtab.client.retry import RetryPolicy as RetryPolicy
from trimtab.client.watch import Bookmark as Bookmark
from trimtab.client.watch import Watch as Watch
from trimtab.client.watch import WatchEvent as WatchEvent
