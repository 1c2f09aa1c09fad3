"""A watch-fed, scoped, compact view of objects: stores, indexes, informers."""

from trimtab.cache.accounting import Accountant as Accountant
from trimtab.cache.accounting import AccountantStatistics as AccountantStatistics
from trimtab.cache.cache import Cache as Cache
from trimtab.cache.cache import CacheStatistics as CacheStatistics
from trimtab.cache.changes import Change as Change
from trimtab.cache.changes import Key as Key
from trimtab.cache.changes import Predicate as Predicate
from trimtab.cache.changes import differences as differences
from trimtab.cache.indexes import Index as Index
from trimtab.cache.indexes import field as field
from trimtab.cache.indexes import label as label
from trimtab.cache.indexes import owner as owner
from trimtab.cache.informer import Informer as Informer
from trimtab.cache.informer import InformerStatistics as InformerStatistics
from trimtab.cache.keeping import Form as Form
from trimtab.cache.keeping import Keep as Keep
from trimtab.cache.options import FeedOptions as FeedOptions
from trimtab.cache.relist import Relist as Relist
from trimtab.cache.scope import Scope as Scope
from trimtab.cache.store import Store as Store
from trimtab.cache.store import StoreStatistics as StoreStatistics
