"""The language-model engine: exact probabilities of a causal language model, in large batches, on CPU or GPU.

What lives here: loading a model that a config names (``settings``, ``loading``), one forward pass for many contexts
(``batching``, ``forward``), and what is asked of it (``next_token``, ``scoring``, ``windows``, ``words``,
``word_samples``, ``continuations``, ``top1``; ``prompting`` and ``generation`` for what it answers in text). What was
computed is stored by ``inference.store``.
What does not: estimates from the numbers, files of studies, figures.

Importing this package or one of its modules loads neither torch nor transformers (extra ``lm``), which functions
import. In the examples, the folder ``tiny`` holds a model in the Hub's layout.
"""

from models.lazy import public_names

__getattr__, __dir__ = public_names(__name__, __file__, "lm")
