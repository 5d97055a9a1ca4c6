# What the package offers: read by type checkers and editors, and by lazy_loader, which imports a name when it is used.

from .scoring import CostEstimate, TextWindow, estimate_cost, score_windows
from .settings import ApiSettings
from .store import AnswerStore, BudgetSpentError

__all__ = [
    "AnswerStore",
    "ApiSettings",
    "BudgetSpentError",
    "CostEstimate",
    "TextWindow",
    "estimate_cost",
    "score_windows",
]
