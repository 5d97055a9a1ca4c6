# What the package offers: read by type checkers and editors, and by lazy_loader, which imports a name when it is used.

from .decoding import Decoding
from .divergence import kl_divergences
from .language_model import LanguageModel, encode, model_record, token_strings
from .loading import load_language_model
from .next_token import next_token_distributions
from .scoring import score_documents
from .settings import ModelSettings
from .top1 import play_top1
from .windows import score_windows
from .word_samples import SampledWords, sample_words
from .words import word_log_probs

__all__ = [
    "Decoding",
    "LanguageModel",
    "ModelSettings",
    "SampledWords",
    "encode",
    "kl_divergences",
    "load_language_model",
    "model_record",
    "next_token_distributions",
    "play_top1",
    "sample_words",
    "score_documents",
    "score_windows",
    "token_strings",
    "word_log_probs",
]
