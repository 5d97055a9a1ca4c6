# What the package offers: read by type checkers and editors, and by lazy_loader, which imports a name when it is used.

from .chat import ChatAnswer, ChatQuestion, ask_questions
from .scoring import CostEstimate, TextWindow, estimate_cost, score_windows
from .settings import ApiSettings
from .store import AnswerStore, BudgetSpentError, Ledger

__all__ = [
    "AnswerStore",
    "ApiSettings",
    "BudgetSpentError",
    "ChatAnswer",
    "ChatQuestion",
    "CostEstimate",
    "Ledger",
    "TextWindow",
    "ask_questions",
    "estimate_cost",
    "score_windows",
]
