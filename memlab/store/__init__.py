"""What lies on disk: the schema, the store, and the vectors of it in memory."""

from memlab.store.encoding import AUTO, PassagePolicy
from memlab.store.filters import Filters
from memlab.store.logged import LoggedQuery
from memlab.store.maintenance import CheckReport, StoreStats
from memlab.store.querylog import QueryLog
from memlab.store.records import Memory
from memlab.store.remembering import BulkResult
from memlab.store.store import MemoryStore, Revision, StoredPassage

__all__ = [
    "AUTO",
    "BulkResult",
    "CheckReport",
    "Filters",
    "LoggedQuery",
    "Memory",
    "MemoryStore",
    "PassagePolicy",
    "QueryLog",
    "Revision",
    "StoreStats",
    "StoredPassage",
]
