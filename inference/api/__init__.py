"""Any OpenAI-compatible endpoint as a language model that ranks tokens.

What lives here: settings, one call and how its answer is read, the store of paid answers and the budget, the client
with its retries, and the scoring of windows of text into a ranking study. ``docs/endpoints.md`` says what is promised.
What does not: local models (``inference.lm``), scores (``estimators``).

The key is read from an environment variable when a client is made; it is in no log, error, store or output.
"""

from models.lazy import public_names

__getattr__, __dir__ = public_names(__name__, __file__, "api")
