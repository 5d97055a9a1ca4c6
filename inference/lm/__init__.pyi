# What the package offers: read by type checkers and editors, and by lazy_loader, which imports a name when it is used.

from .continuations import continuation_log_probs
from .decoding import Decoding
from .engine import Engine, open_engine
from .generation import Generated, generate
from .language_model import LanguageModel, encode
from .loading import load_language_model
from .next_token import next_token_distributions
from .scoring import score_documents
from .settings import ModelSettings
from .word_samples import SampledWords, sample_words
from .words import word_log_probs

__all__ = [
    "Decoding",
    "Engine",
    "Generated",
    "LanguageModel",
    "ModelSettings",
    "SampledWords",
    "continuation_log_probs",
    "encode",
    "generate",
    "load_language_model",
    "next_token_distributions",
    "open_engine",
    "sample_words",
    "score_documents",
    "word_log_probs",
]
