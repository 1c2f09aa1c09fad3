"""Queues, controllers and their manager: what turns handlers into an operator."""

from trimtab.runtime.backoff import Backoff as Backoff
from trimtab.runtime.backoff import Breaker as Breaker
from trimtab.runtime.blocking import BlockingContext as BlockingContext
from trimtab.runtime.context import Context as Context
from trimtab.runtime.context import Ended as Ended
from trimtab.runtime.definitions import By as By
from trimtab.runtime.definitions import Owned as Owned
from trimtab.runtime.definitions import Watched as Watched
from trimtab.runtime.fence import NotLeader as NotLeader
from trimtab.runtime.lanes import Entry as Entry
from trimtab.runtime.operator import Operator as Operator
from trimtab.runtime.queue import Priority as Priority
from trimtab.runtime.queue import Queue as Queue
from trimtab.runtime.queue import QueueStatistics as QueueStatistics
from trimtab.runtime.reconcile import Cause as Cause
from trimtab.runtime.reconcile import Request as Request
from trimtab.runtime.reconcile import Result as Result
from trimtab.runtime.reconcile import Retry as Retry
from trimtab.runtime.reconcile import Terminal as Terminal
from trimtab.runtime.webhooks import Refused as Refused
from trimtab.runtime.webhooks import Review as Review
from trimtab.runtime.webhooks import WebhookOptions as WebhookOptions
from trimtab.runtime.workqueue import QueueClosed as QueueClosed
from trimtab.runtime.workqueue import WorkQueue as WorkQueue
