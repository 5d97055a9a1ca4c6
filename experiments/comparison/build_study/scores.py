"""What language models say about the contexts of a study that is built, through the store.

Every result belongs to a context and the tokens asked about; neither order nor batches matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.documents.contexts import Cut
from shannon_game.inference.lm.language_model import LanguageModel, model_record
from shannon_game.inference.lm.next_token import kl_divergences, next_token_distributions
from shannon_game.inference.lm.stored import Work, batches_by_length
from shannon_game.inference.lm.translation import shares_tokenizer, translate
from shannon_game.inference.store.keys import operation_key, result_key

_Compute = Callable[[list[list[int]]], dict[str, NDArray[Any]]]
_WHOLE_BYTES = 1 << 32
_OF_TARGET = ("target_logprob", "target_rank", "entropy_nats")


@dataclass(frozen=True, eq=False)
class ModelScores:
    """What one model says of each context: of the true next token, then the candidates; NaN and 0 where not exact."""

    logprob: NDArray[np.float64]
    rank: NDArray[np.int64]
    entropy: NDArray[np.float64]
    problems: Sequence[str]
    """Why a context cannot be asked of the model exactly, "" where it can."""
    by_id: bool
    """The model shares the generator's tokenizer; otherwise it was asked about strings."""

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Which contexts were asked exactly, shape (context,)."""
        return np.array([not problem for problem in self.problems], dtype=bool)


def draw_candidates(
    work: Work, generator: LanguageModel, cuts: Sequence[Cut], *, n_candidates: int, seed: int
) -> tuple[NDArray[np.int64], ModelScores]:
    """Draw candidates of every context, and take from the same pass what the generator says about them."""

    def compute(batch: list[Cut]) -> dict[str, NDArray[Any]]:
        found = next_token_distributions(
            generator,
            [cut.context for cut in batch],
            targets=[cut.target for cut in batch],
            n_candidates=n_candidates,
            seed=seed,
        )
        return {name: found[name].to_numpy() for name in ("candidate_token", "candidate_logprob", *_OF_TARGET)}

    drawn = {"n_candidates": n_candidates, "seed": seed}
    found = work.compute(
        f"candidates of {generator.name}",
        operation_key("candidates", model=generator.identity, parameters=drawn, compute=compute),
        cuts,
        [result_key(cut.context, cut.target) for cut in cuts],
        compute,
        batches=batches_by_length(lambda cut: len(cut.context), n_items=work.items_per_batch),
        provenance=model_record(generator),
    )
    logprob = np.column_stack([found["target_logprob"], found["candidate_logprob"]]).astype(np.float64)
    scores = ModelScores(
        logprob, found["target_rank"], found["entropy_nats"].astype(np.float64), [""] * len(cuts), by_id=True
    )
    return found["candidate_token"], scores


def score_tokens(
    work: Work, model: LanguageModel, generator: LanguageModel, cuts: Sequence[Cut], candidates: NDArray[np.int64]
) -> ModelScores:
    """Ask a model about the true next tokens and the candidates."""
    wanted = np.column_stack([[cut.target for cut in cuts], candidates]).astype(np.int64)
    contexts: list[list[int]] = [list(cut.context) for cut in cuts]
    problems = [""] * len(cuts)
    by_id = shares_tokenizer(model, generator)
    if not by_id:
        translation = translate(model, generator, contexts, wanted)
        contexts, wanted, problems = translation.contexts, translation.tokens, translation.problems
    which = [position for position, problem in enumerate(problems) if not problem]
    n = len(cuts)
    scores = ModelScores(
        np.full(wanted.shape, np.nan), np.zeros(n, dtype=np.int64), np.full(n, np.nan), problems, by_id
    )
    if which:
        found = _probe(work, model, [contexts[i] for i in which], wanted[which])
        scores.logprob[which] = found["probed_logprob"]
        scores.rank[which] = found["target_rank"]
        scores.entropy[which] = found["entropy_nats"]
    return scores


def _probe(
    work: Work, model: LanguageModel, contexts: list[list[int]], wanted: NDArray[np.int64]
) -> Mapping[str, NDArray[Any]]:
    def compute(batch: list[tuple[list[int], NDArray[np.int64]]]) -> dict[str, NDArray[Any]]:
        found = next_token_distributions(
            model,
            [context for context, _ in batch],
            targets=[int(tokens[0]) for _, tokens in batch],
            probed=[tokens.tolist() for _, tokens in batch],
        )
        return {name: found[name].to_numpy() for name in ("probed_logprob", "target_rank", "entropy_nats")}

    return work.compute(
        f"log-probabilities of {model.name}",
        operation_key("probes", model=model.identity, parameters={}, compute=compute),
        list(zip(contexts, wanted, strict=True)),
        [result_key(context, tokens) for context, tokens in zip(contexts, wanted, strict=True)],
        compute,
        batches=batches_by_length(lambda item: len(item[0]), n_items=work.items_per_batch),
        provenance=model_record(model),
    )


def _of_contexts(
    work: Work, what: str, of: tuple[str, Any], cuts: Sequence[Cut], *, compute: _Compute, provenance: Mapping[str, Any]
) -> Any:
    contexts = [list(cut.context) for cut in cuts]
    (values,) = work.compute(
        what,
        operation_key(of[0], model=of[1], parameters={}, compute=compute),
        contexts,
        [result_key(context) for context in contexts],
        compute,
        batches=batches_by_length(len, n_items=work.items_per_batch),
        provenance=provenance,
    ).values()
    return values


def divergences(
    work: Work, model: LanguageModel, generator: LanguageModel, cuts: Sequence[Cut]
) -> NDArray[np.float64] | None:
    """Compute KL(model || generator) after every context; None for models of another tokenizer."""
    if model is generator:
        return np.zeros(len(cuts))
    if not shares_tokenizer(model, generator):
        return None

    def compute(batch: list[list[int]]) -> dict[str, NDArray[Any]]:
        return {"kl_nats": kl_divergences(model, generator, batch)}

    both = {"model": model.identity, "generator": generator.identity}
    records = {"model": model_record(model), "generator": model_record(generator)}
    values: NDArray[np.float64] = _of_contexts(
        work, f"KL({model.name} || {generator.name})", ("kl", both), cuts, compute=compute, provenance=records
    )
    return values


def reference_distributions(work: Work, generator: LanguageModel, cuts: Sequence[Cut]) -> NDArray[np.float32]:
    """Compute the generator's whole distribution after every context."""
    size = 4 * len(cuts) * generator.vocab_size
    if size > _WHOLE_BYTES:
        raise InputError(
            f"is true, and the whole distributions of {len(cuts)} contexts take {size / 2**30:.1f} GiB; take fewer "
            "contexts",
            field="reference",
        )

    def compute(batch: list[list[int]]) -> dict[str, NDArray[Any]]:
        return {"logprob": next_token_distributions(generator, batch, whole=True)["logprob"].to_numpy()}

    of, record = ("distribution", generator.identity), model_record(generator)
    values: NDArray[np.float32] = _of_contexts(
        work, f"distributions of {generator.name}", of, cuts, compute=compute, provenance=record
    )
    return values
