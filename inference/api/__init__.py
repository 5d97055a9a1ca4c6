"""Any OpenAI-compatible endpoint as a language model that ranks tokens; ``docs/endpoints.md`` says what is promised.

The key is read from an environment variable when a client is made; it is in no log, error, store or output.
"""

from shannon_game.models.lazy import public_names

__getattr__, __dir__ = public_names(__name__, __file__, "api")
