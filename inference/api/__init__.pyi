# What the package offers: read by type checkers and editors, and by lazy_loader, which imports a name when it is used.

from .ledger import BudgetSpentError, Ledger
from .scoring import CostEstimate, estimate_cost, score_windows
from .settings import ApiSettings
from .store import AnswerStore
from .windows import TextWindow

__all__ = [
    "AnswerStore",
    "ApiSettings",
    "BudgetSpentError",
    "CostEstimate",
    "Ledger",
    "TextWindow",
    "estimate_cost",
    "score_windows",
]
