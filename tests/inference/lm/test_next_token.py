"""Next-token distributions against the reference, and draws against the exact distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from shannon_game.estimators.errors import InputError
from shannon_game.inference.lm.next_token import kl_divergences, next_token_distributions
from tests.inference.lm import tiny_models
from tests.oracles import language_model as reference

pytestmark = pytest.mark.torch

LETTERS = ["a", "b", "c", "d", "e", "f", "g", "Ġ", ".", ","]


@pytest.fixture(scope="module")
def asked(model_of):
    """Contexts with everything asked, and their exact distributions."""
    model = model_of("llama")
    contexts = tiny_models.contexts(40, model.vocab_size)
    contexts[3] = []
    rng = np.random.default_rng(1)
    targets = rng.integers(0, model.vocab_size, size=len(contexts)).tolist()
    probed = rng.integers(0, model.vocab_size, size=(len(contexts), 5)).tolist()
    found = next_token_distributions(
        model, contexts, targets=targets, probed=probed, top_k=7, n_candidates=30, seed=4, whole=True
    )
    return model, contexts, targets, probed, found, reference.next_token(model, contexts)


def test_everything_is_what_the_whole_distribution_says(asked):
    _, contexts, targets, probed, found, exact = asked
    rows = np.arange(len(contexts))
    np.testing.assert_allclose(found["logprob"], exact, atol=1e-4, rtol=0)
    np.testing.assert_allclose(np.exp(found["logprob"].values.astype(float)).sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(found["entropy_nats"], -(np.exp(exact) * exact).sum(axis=1), atol=1e-4)
    np.testing.assert_allclose(found["target_logprob"], exact[rows, targets], atol=1e-4, rtol=0)
    np.testing.assert_allclose(found["probed_logprob"], exact[rows[:, None], probed], atol=1e-4, rtol=0)
    assert found["best_token"].values.tolist() == exact.argmax(axis=1).tolist()
    ranks = 1 + (exact > exact[rows, targets][:, None]).sum(axis=1)
    assert found["target_rank"].values.tolist() == ranks.tolist()
    best = np.argsort(-exact, axis=1, kind="stable")[:, :7]
    assert found["top_token"].values.tolist() == best.tolist()
    np.testing.assert_allclose(found["top_logprob"], np.take_along_axis(exact, best, axis=1), atol=1e-4, rtol=0)
    drawn = found["candidate_token"].values
    np.testing.assert_allclose(found["candidate_logprob"], np.take_along_axis(exact, drawn, axis=1), atol=1e-4, rtol=0)


@pytest.mark.parametrize("tokens_per_batch", [1, 60, 4096])
def test_results_do_not_depend_on_batches_order_or_company(tokens_per_batch, asked, model_of):
    _, contexts, targets, _, found, _ = asked
    other = model_of("llama", tokens_per_batch=tokens_per_batch, logits_mib=1 if tokens_per_batch == 60 else 128)
    order = np.random.default_rng(tokens_per_batch).permutation(len(contexts))[: len(contexts) // 2]
    again = next_token_distributions(
        other, [contexts[i] for i in order], targets=[targets[i] for i in order], n_candidates=30, seed=4
    )
    for name in ("target_logprob", "entropy_nats"):
        np.testing.assert_allclose(again[name], found[name].values[order], atol=1e-4, rtol=0)
    # a draw next to an edge of the cumulative distribution may fall on its other side: about 1 in 10,000
    same = again["candidate_token"].values == found["candidate_token"].values[order]
    assert same.mean() > 0.999


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory):
    """A model that sees only the last token: contexts that end alike have one distribution and draws of their own."""
    model = tiny_models.load(
        tiny_models.save(tmp_path_factory.mktemp("forgetful"), "llama", tiny_models.by_hand(LETTERS), seed=3),
        bos=tiny_models.END,
    )
    for layer in model.module.model.layers:
        layer.self_attn.o_proj.weight.zero_()
    size = model.vocab_size
    contexts = [[i, j, k, 5] for i in range(size) for j in range(size) for k in range(size)]
    p = np.exp(reference.next_token(model, [[5]])[0])
    assert 1 / (p**2).sum() > 2, "draws from one token show nothing"
    return model, contexts, p


def chi_square(counts, expected):
    """P value, cells with fewer than five expected together."""
    few = expected < 5
    if few.any():
        counts = np.append(counts[~few], counts[few].sum())
        expected = np.append(expected[~few], expected[few].sum())
    return stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue


def test_candidates_follow_the_distribution(forgetful):
    model, contexts, p = forgetful
    drawn = next_token_distributions(model, contexts, n_candidates=20, seed=1)["candidate_token"].values
    assert chi_square(np.bincount(drawn.ravel(), minlength=len(p)), p * drawn.size) > 1e-3
    # independent of one another: pairs of neighbours in a row follow the product
    pairs = np.bincount(drawn[:, 0] * len(p) + drawn[:, 1], minlength=len(p) ** 2)
    assert chi_square(pairs, np.outer(p, p).ravel() * len(drawn)) > 1e-3


def test_candidates_without_replacement_follow_the_closed_form(forgetful):
    model, contexts, p = forgetful
    found = next_token_distributions(model, contexts, n_candidates=2, replace=False, seed=2)
    first, second = found["candidate_token"].values.T
    assert (first != second).all()
    # the first is a draw; the second a draw from the others
    ordered = np.outer(p / (1 - p), p)
    np.fill_diagonal(ordered, 0)
    pairs = np.bincount(first * len(p) + second, minlength=len(p) ** 2)
    assert chi_square(pairs, ordered.ravel() * len(first)) > 1e-3
    # first-order inclusion: either
    inclusion = p + ordered.sum(axis=0)
    standard_error = np.sqrt(inclusion * (1 - inclusion) / len(first))
    shares = np.bincount(first, minlength=len(p)) + np.bincount(second, minlength=len(p))
    assert (np.abs(shares / len(first) - inclusion) <= 4 * standard_error + 1e-12).all()


def test_divergences_are_sums_over_the_vocabulary(model_of):
    plain, hot = model_of("gpt2"), model_of("gpt2", temperature=2.0)
    contexts = tiny_models.contexts(4, plain.vocab_size)
    q, g = (next_token_distributions(model, contexts, whole=True)["logprob"].values for model in (hot, plain))
    np.testing.assert_allclose(kl_divergences(hot, plain, contexts), (np.exp(q) * (q - g)).sum(axis=1), rtol=1e-4)
    assert (kl_divergences(plain, plain, contexts) == 0).all()
    with pytest.raises(InputError, match="different tokenizers"):
        kl_divergences(plain, model_of("llama"), contexts)


def test_temperature_divides_the_logits(model_of):
    plain, hot = model_of("gpt2"), model_of("gpt2", temperature=2.0)
    contexts = tiny_models.contexts(5, plain.vocab_size)
    found = next_token_distributions(hot, contexts, whole=True)["logprob"].values
    halves = reference.next_token(plain, contexts) / 2
    np.testing.assert_allclose(found, halves - np.logaddexp.reduce(halves, axis=1)[:, None], atol=1e-4, rtol=0)
    assert plain.identity != hot.identity
