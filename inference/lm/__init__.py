"""Exact probabilities of a causal language model, in large batches, on CPU or GPU.

Input that cannot be right raises an ``InputError`` of one line. Functions that take ``progress`` call it with how many
contexts (or tokens) were done since the last call. Importing this package or its modules loads neither torch nor
transformers (extra ``lm``), which functions import. In the examples, the folder ``tiny`` holds a model in the Hub's
layout.
"""

from shannon_game.models.lazy import public_names

__getattr__, __dir__ = public_names(__name__, __file__, "lm")
