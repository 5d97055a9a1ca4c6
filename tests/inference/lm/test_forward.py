"""Token trees, batches, running out of memory; what kind of model takes what."""

from __future__ import annotations

import itertools
import logging

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shannon_game.inference.lm import rows
from shannon_game.inference.lm.forward import plant_trees, reduce_last, with_bos
from shannon_game.inference.lm.rows import cut_batches, run_batches
from tests.inference.lm import tiny_models
from tests.oracles import language_model as reference

pytestmark = pytest.mark.torch

FAMILIES = {
    # family: (logits are the output embedding times a state, continuations share a pass)
    "gpt2": (True, True),
    "llama": (True, True),
    "gpt_neox": (True, True),
    "opt": (True, True),
    "gemma2": (False, True),
    "bloom": (True, False),
    "mistral": (True, False),
    "gpt_neo": (True, False),
    "mamba": (True, False),
}


def after(model, sequences, *, branching=True):
    """Log-probabilities after each sequence, and how often each came."""
    found = np.full((len(sequences), model.vocab_size), np.nan)
    times = np.zeros(len(sequences), dtype=int)

    def keep(at, log_probs):
        found[at] = log_probs.numpy()
        times[at] += 1

    reduce_last(model, sequences, keep, branching=branching)
    return found, times


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_gives_what_one_context_at_a_time_gives(family, model_of):
    model = model_of(family)
    assert (model.split_head, model.tree_attention) == FAMILIES[family]
    # longer than the attention of mistral and gpt_neo reaches back
    sequences = [
        started for c in tiny_models.contexts(24, model.vocab_size, longest=60) for started in with_bos(model, [c])
    ]
    exact = np.stack([reference.log_probs(model, tokens)[-1] for tokens in sequences])
    assert np.ptp(exact) > 3, "a distribution near the uniform one would hide mistakes"
    for branching in (True, False):
        found, times = after(model, sequences, branching=branching)
        np.testing.assert_allclose(found, exact, atol=1e-4, rtol=0)
        assert (times == 1).all()


sequences_of_few_tokens = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), min_size=1, max_size=25)


@given(sequences=sequences_of_few_tokens, branching=st.booleans(), largest=st.sampled_from([1, 5, 1000]))
@settings(max_examples=100)
def test_every_sequence_is_a_path_of_its_tree(sequences, branching, largest):
    trees, place = plant_trees(sequences, branching=branching, largest=largest)
    for index, sequence in enumerate(sequences):
        tree, path = trees[place.tree[index]], place.path[index]
        assert tree.tokens[path].tolist() == sequence
        assert tree.parents[path].tolist() == [-1, *path[:-1]]
        assert tree.depths()[path].tolist() == list(range(len(path)))
        # a node sees its ancestors and itself, and nothing else
        assert np.flatnonzero(tree.ancestors()[path[-1]]).tolist() == path.tolist()
    assert all((tree.parents < np.arange(len(tree.parents))).all() for tree in trees)
    if branching:
        assert all(len(tree.tokens) <= max(largest, *map(len, sequences)) for tree in trees)
    else:
        assert all(tree.is_chain for tree in trees)
    assert sum(len(tree.tokens) for tree in trees) <= sum(map(len, sequences))


def test_prefixes_of_a_passage_cost_the_passage_alone():
    passage = list(range(50))
    trees, _ = plant_trees([passage[:n] for n in range(1, 51)], branching=False)
    assert [len(tree.tokens) for tree in trees] == [50]
    continuations = [[*passage, word] for word in range(100, 120)]
    trees, _ = plant_trees(continuations, branching=True)
    assert [len(tree.tokens) for tree in trees] == [50 + 20]


def sizes_seen(model, monkeypatch, *, most=None):
    """Record the tokens of every forward pass; refuse those above ``most`` as a full GPU does."""
    seen, refused = [], []
    base = model.module.base_model
    forward = base.forward

    def recording(*args, **kwargs):
        size = kwargs["input_ids"].numel()
        if most is not None and size > most:
            refused.append(size)
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate too much")
        seen.append(size)
        return forward(*args, **kwargs)

    monkeypatch.setattr(base, "forward", recording)
    return seen, refused


def test_memory_is_bounded_by_the_budget_whatever_the_input(model_of, monkeypatch):
    model = model_of("llama", tokens_per_batch=64, logits_mib=1)
    for n in (40, 400):
        seen, _ = sizes_seen(model, monkeypatch)
        sequences = with_bos(model, tiny_models.contexts(n, model.vocab_size, longest=30, seed=n))
        after(model, sequences, branching=False)
        assert max(seen) <= 64
        assert len(seen) > n / 40
        monkeypatch.undo()


@pytest.mark.parametrize("branching", [True, False])
def test_a_batch_that_does_not_fit_is_halved_and_those_after_it_stay_small(branching, model_of, monkeypatch, caplog):
    model = model_of("gpt2", tokens_per_batch=512)
    sequences = with_bos(model, tiny_models.contexts(60, model.vocab_size, longest=30))
    reference, _ = after(model, sequences, branching=branching)
    seen, refused = sizes_seen(model, monkeypatch, most=100)
    with caplog.at_level(logging.WARNING, logger="shannon_game.inference.lm.rows"):
        found, times = after(model, sequences, branching=branching)
    assert (times == 1).all()
    np.testing.assert_allclose(found, reference, atol=1e-4, rtol=0)
    assert max(seen) <= 100
    # chains and trees each learn it once: 512 to 256 to 128 to 64
    assert 1 <= len(refused) <= 8
    assert "did not fit in memory" in caplog.text
    # nor is it learnt anew for each part of a corpus
    refused.clear()
    after(model, sequences, branching=branching)
    assert not refused


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_product_with_a_head_in_16_bits_is_not_rounded(dtype, model_of, monkeypatch):
    monkeypatch.setattr(rows, "_HEAD_ROWS", 100)
    model = model_of("llama", dtype=dtype)
    state = torch.randn(7, 32, generator=torch.Generator().manual_seed(0)).to(model.module.dtype)
    found = np.zeros((7, model.vocab_size))

    def keep(at, log_probs):
        found[at] = log_probs.numpy()

    with torch.inference_mode():
        rows.reduce_rows(model, np.arange(7), state, keep)
        exact = torch.log_softmax(state.double() @ model.module.get_output_embeddings().weight.double().T, dim=-1)
    # a product in 16 bits is off by a hundredth
    np.testing.assert_allclose(found, exact, atol=1e-5)


@pytest.mark.parametrize(
    "message", ["MPS backend out of memory (MPS allocated: 9 GB)", "DefaultCPUAllocator: can't allocate memory: you"]
)
def test_other_allocators_run_out_of_memory_as_well(message):
    def compute(batch):
        if len(batch) > 1:
            raise RuntimeError(message)
        return batch * 10

    done = {int(batch[0]): int(result[0]) for batch, result in run_batches([3, 9, 1, 4], 100, compute)}
    assert done == {i: 10 * i for i in range(4)}


@given(
    lengths=st.lists(st.integers(0, 50), max_size=40),
    budget=st.integers(1, 200),
    tokens_per_pass=st.sampled_from([0, 1, 20]),
)
@settings(max_examples=100)
def test_batches_hold_every_sequence_once_within_the_budget(lengths, budget, tokens_per_pass):
    batches = [batch for batch, _ in run_batches(lengths, budget, lambda batch: None, tokens_per_pass=tokens_per_pass)]
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= budget


@given(lengths=st.lists(st.integers(1, 30), min_size=1, max_size=9), budget=st.integers(1, 90), each=st.integers(1, 40))
@settings(max_examples=100)
def test_no_other_cut_costs_less(lengths, budget, each):
    lengths = np.array(sorted(lengths, reverse=True))

    def cost(sizes):
        ends = np.cumsum(sizes)
        pairs = [(size, int(lengths[end - size])) for size, end in zip(sizes, ends, strict=True)]
        if any(size > 1 and size * longest > budget for size, longest in pairs):
            return np.inf
        return sum(size * longest + each for size, longest in pairs)

    # every place between two neighbours is a cut or none
    inner = itertools.product([False, True], repeat=len(lengths) - 1)
    cuts = [[0, *(i + 1 for i, cut in enumerate(its) if cut), len(lengths)] for its in inner]
    assert cost(cut_batches(lengths, budget, each)) == min(cost(np.diff(cut).tolist()) for cut in cuts)
