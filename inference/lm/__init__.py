"""The language-model engine: exact probabilities of a causal language model, in large batches, on CPU or GPU.

What lives here: loading a model that a config names (``settings``, ``loading``), one forward pass for many contexts
(``batching``, ``forward``), what is asked of it (``next_token``, ``scoring``, ``words``, ``player``), and the store of
what was computed (``store``).
What does not: estimates from the numbers, files of studies, figures.

Importing this package pulls in neither torch nor transformers (extra ``lm``).
"""
