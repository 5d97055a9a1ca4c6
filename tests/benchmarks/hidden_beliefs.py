"""Comparison studies of people whose belief is not of the model's form, with known truth.

Three kinds, each a function of the number of the study, which draws other people and other items: `simulated` has free
answers, reports and whole distributions; `fresh_items` has reports on questions of the comparison game that its people
were not asked; `live_items` has reports on draws of a live model. Contexts and targets are those of the game's
documents, and the generator is SmolLM2. What takes minutes is kept in one file.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from shannon_game import lm_game
from shannon_game.estimators.comparison import (
    ParticipantPopulation,
    QuestionDesign,
    rounding_scheme,
    simulate_designed_study,
    two_alternative_report,
    validate_comparison_study,
)
from shannon_game.estimators.comparison.rounding import round_reports
from shannon_game.estimators.comparison.simulation.participants import draw_participants, reports_of
from shannon_game.estimators.comparison.simulation.players import mixed, sample_rows
from shannon_game.experiments.studies.documents.lm_game_documents import LmGameDocumentsSettings, lm_game_documents
from shannon_game.inference.lm import ModelSettings, encode, load_language_model, next_token_distributions

Array = NDArray[Any]
Truth = dict[str, Any]

N_CONTEXTS, N_ITEMS, N_PEOPLE, SHORT, LONGEST = 600, 120, 30, 8, 61
UNIGRAMS, N_PEAKS, N_CANDIDATES = 0.4, 5, 400
BELIEFS = (
    *("hot", "cold", "unigrams", "noisy", "shallow", "sharpened", "peaks", "milder", "short"),
    "mixtures",
    # invented after the model was fixed
    *("confused", "blind"),
)
PATTERN, SMALL = ((40, 19), (80, 11)), ((10, 6), (10, 7))
"""Items and people of the two sets of the public study, and of one of 12 people and 20 questions."""
FRESH = (10040, 10999)
"""Questions of the public study that nobody was asked."""
SAME_AS_ANOTHER = (10345,)
GENERATOR = "smollm2"


def beliefs(folder: Path, kept: Path) -> dict[str, Array]:
    """What every belief is made of: log-probabilities (context, vocab), numbers of unigrams, and the targets."""
    if kept.exists():
        return dict(np.load(kept, allow_pickle=False))
    settings = ModelSettings(name="g", source="smollm2", bos="<|endoftext|>")
    generator = load_language_model(settings)
    texts = lm_game_documents(LmGameDocumentsSettings(root=folder))["text"].to_numpy().tolist()
    documents = [ids for ids in encode(generator, texts) if len(ids) >= LONGEST]
    rng = np.random.default_rng(7)
    pieces = _pieces(documents, rng)
    ends = rng.integers(25, LONGEST, N_CONTEXTS).tolist()
    contexts = [ids[:end] for ids, end in zip(pieces, ends, strict=True)]
    found: dict[str, Any] = {
        "target": np.array([ids[end] for ids, end in zip(pieces, ends, strict=True)]),
        "count": np.bincount(np.concatenate(documents), minlength=generator.vocab_size) + 0.05,
    }
    for name, layers in (("g", None), ("shallow", 29), ("28 blocks", 28)):
        model = load_language_model(settings.model_copy(update={"name": name, "n_layers": layers}))
        found[name] = _whole(model, contexts)
    found["short"] = _whole(generator, [ids[-SHORT:] for ids in contexts])
    np.savez(kept, **found)
    return found


def _pieces(documents: list[list[int]], rng: np.random.Generator) -> list[list[int]]:
    """Begin with the beginning of every document, in random order; go on with further pieces of the long ones."""
    pieces: list[list[int]] = []
    start = 0
    while len(pieces) < N_CONTEXTS:
        left = [ids[start : start + LONGEST] for ids in documents if len(ids) >= start + LONGEST]
        pieces += [left[at] for at in rng.permutation(len(left))]
        start += 4 * LONGEST
    return pieces[:N_CONTEXTS]


def _whole(model: Any, contexts: list[list[int]]) -> Array:
    return next_token_distributions(model, contexts, whole=True)["logprob"].to_numpy().astype(np.float32)


def normalised(logit: Array) -> Array:
    """Log-probabilities in double precision."""
    logit = logit.astype(float)
    logit -= logit.max(axis=-1, keepdims=True)
    logit -= np.log(np.exp(logit).sum(axis=-1, keepdims=True))
    return logit


def logprob(found: dict[str, Array], belief: str, contexts: Array) -> Array:
    """Log-probabilities of a belief, (context, vocab); of `mixtures`, those of the components before that."""
    if belief in ("g", "shallow", "short"):
        return normalised(found[belief][contexts])
    g = normalised(found["g"][contexts])
    unigrams = np.broadcast_to(np.log(found["count"] / found["count"].sum()), g.shape)
    tilted = _mixture((1 - UNIGRAMS, g), (UNIGRAMS, unigrams))
    if belief == "sharpened":
        return _mixture((0.7, normalised(g / 0.6)), (0.3, normalised(g / 2.5)))
    if belief == "peaks":
        return _with_peaks(0.5, tilted, found["count"], contexts)
    if belief == "milder":
        return _with_peaks(0.1, _mixture((8 / 9, g), (1 / 9, unigrams)), found["count"], contexts)
    if belief == "noisy":
        noise = np.stack([_rng(7, int(at), 1).laplace(0, 0.8, g.shape[1]) for at in contexts])
        return normalised(0.5 * (normalised(found["28 blocks"][contexts]) + g) + noise)
    if belief == "confused":
        return _mixture((0.85, g), (0.15, normalised(found["g"][(contexts + 1) % N_CONTEXTS])))
    if belief == "blind":
        unseen = np.stack([_rng(7, int(at), 4).random(g.shape[1]) < 1 / 3 for at in contexts])
        return normalised(g - 3 * unseen)
    if belief == "mixtures":
        return np.stack([normalised(g / 1.5), normalised(found["short"][contexts]), unigrams])
    return {"hot": lambda: normalised(g / 2), "cold": lambda: normalised(g / 0.7), "unigrams": lambda: tilted}[belief]()


def _mixture(*parts: tuple[float, Array]) -> Array:
    return normalised(mixed(np.stack([part for _, part in parts]), np.array([weight for weight, _ in parts])))


def _with_peaks(weight: float, rest: Array, count: Array, contexts: Array) -> Array:
    """Give some tokens, drawn from the unigrams, `weight` in all."""
    found = np.exp(rest) * (1 - weight)
    for row, at in enumerate(contexts):
        rng = _rng(7, int(at), 2)
        token = rng.choice(count.size, N_PEAKS, replace=False, p=count / count.sum())
        found[row, token] += weight * rng.dirichlet(np.ones(N_PEAKS))
    return normalised(np.log(found))


def _rng(study: int, *key: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(study, spawn_key=key))


def people_of(k0: float) -> ParticipantPopulation:
    """People whose slopes have the median `k0`."""
    return ParticipantPopulation(slope_median=k0)


def simulated(
    found: dict[str, Array], belief: str, k0: float, study: int, scale: str = "slider"
) -> tuple[xr.Dataset, Truth]:
    """A study with free answers, and its truth: gaps of the shared belief, of people one by one, and k0."""
    rng = _rng(study, 3, BELIEFS.index(belief), round(1000 * k0))
    contexts = np.sort(rng.choice(N_CONTEXTS, N_ITEMS, replace=False))
    seed = int(rng.integers(2**31))
    weights = rng.dirichlet(np.ones(3), N_PEOPLE) if belief == "mixtures" else None
    made = simulate_designed_study(
        logprob(found, "g", contexts),
        logprob(found, belief, contexts),
        found["target"][contexts],
        QuestionDesign(scale=scale, n_participants=N_PEOPLE),
        people_of(k0),
        seed=seed,
        belief_weights=weights,
    )
    g, shared = made["target_logprob"].to_numpy()[0], made["human_target_logprob"].to_numpy()
    loss = made["human_mean_loss_nats"].to_numpy() if "human_mean_loss_nats" in made else -shared
    slope = made["true_slope"].to_numpy()[~made["true_bot"].to_numpy()]
    truth = {**_gaps(g, shared), "people_gap_nats": float((g + loss).mean()), "k0": float(np.exp(np.log(slope).mean()))}
    return made, truth


def fresh_items(
    folder: Path, study: int, player: str, rounded: bool = False, *, people: bool = False
) -> tuple[xr.Dataset, Truth]:
    """Questions that nobody was asked, answered by a language model, or by people who believe what it believes."""
    public = _public(folder)
    rng = _rng(study, 4, int(people))
    positions = rng.permutation(np.flatnonzero(~np.isin(public["item"], SAME_AS_ANOTHER)))[:N_ITEMS]
    items = public.isel(item=positions)
    return _asked(items, player, rng, rounded=rounded, people=people)


@cache
def _public(folder: Path) -> xr.Dataset:
    read = lm_game(root=folder, answers=False, sets={"fresh": FRESH}, reference=FRESH)
    kept = [name for name, variable in read.variables.items() if "response" not in variable.dims]
    return read[kept]


def live_items(
    found: dict[str, Array],
    belief: str,
    study: int,
    people: bool = False,
    rounded: bool = False,
    pattern: tuple[tuple[int, int], ...] = PATTERN,
) -> tuple[xr.Dataset, Truth]:
    """Contexts with draws of SmolLM2, answered by a belief, or by people who share it; no other token is known."""
    rng = _rng(study, 5, BELIEFS.index(belief), int(people))
    n_items = sum(n for n, _ in pattern)
    contexts, target = rng.choice(N_CONTEXTS, n_items, replace=False), found["target"]
    both = np.stack([logprob(found, name, contexts) for name in ("g", belief)])
    token = sample_rows(both[0], 1.0, rng.random((n_items, N_CANDIDATES)))
    row = np.arange(n_items)
    items = xr.Dataset(
        {
            "context": ("item", np.array([f"context {at}" for at in contexts], dtype=object)),
            "target_token": ("item", _names(target[contexts])),
            "candidate_token": (("item", "candidate"), _names(token)),
            "target_logprob": (("model", "item"), both[:, row, target[contexts]]),
            "candidate_logprob": (("model", "item", "candidate"), both[:, row[:, None], token]),
            "selected": ("item", np.ones(n_items, dtype=bool)),
            "in_reference": ("item", np.ones(n_items, dtype=bool)),
        },
        coords={"item": contexts, "model": np.array([GENERATOR, belief], dtype=object)},
        attrs={"name": "live", "generator": GENERATOR},
    )
    return _asked(items, belief, rng, rounded=rounded, people=people, pattern=pattern)


def _names(token: Array) -> Array:
    return np.array([f" t{x}" for x in token.ravel()], dtype=object).reshape(token.shape)


def _asked(
    items: xr.Dataset,
    player: str,
    rng: np.random.Generator,
    *,
    rounded: bool,
    people: bool,
    pattern: tuple[tuple[int, int], ...] = PATTERN,
) -> tuple[xr.Dataset, Truth]:
    """Ask items as the public study did: each participant one candidate index, on all items of one set or of both."""
    scale = rounding_scheme("interface" if rounded or people else "none")
    n_asked = np.array([n for _, n in pattern])
    group = np.repeat(np.arange(len(pattern)), n_asked)
    person = np.arange(group.size)
    person[-1] = 0  # one participant is in both sets
    index = rng.permutation(items.sizes["candidate"])[: group.size]
    item_group = np.repeat(np.arange(len(pattern)), [n for n, _ in pattern])
    turn, item = np.nonzero(group[:, None] == item_group)
    candidate, who = index[turn], person[turn]
    target, drawn = items["target_logprob"].sel(model=player), items["candidate_logprob"].sel(model=player)
    y, x = target.to_numpy()[item], drawn.to_numpy()[item, candidate]
    same = items["candidate_token"].to_numpy()[item, candidate] == items["target_token"].to_numpy()[item]
    truth: Truth = _gaps(items["target_logprob"].sel(model=items.attrs["generator"]).to_numpy(), target.to_numpy())
    if people:
        who_reports = draw_participants(people_of(1.0), int(person.max()) + 1, int(rng.integers(2**31)))
        truth["k0"] = float(np.exp(np.log(who_reports.slope).mean()))
        report = reports_of(who_reports, who, y - x, scale, rng)
    else:
        report = round_reports(np.clip(two_alternative_report(y, x), 1e-300, np.nextafter(1, 0)), scale)
    made = items.assign(
        item_set=("item", np.array(["set 1", "set 2"], dtype=object)[item_group]),
        participant=("response", np.array([f"p{one:03d}" for one in who], dtype=object)),
        response_item=("response", items["item"].to_numpy()[item]),
        response_candidate=("response", candidate),
        report=("response", np.where(same, 0.5, report)),
        automatic=("response", same),
        human_target_logprob=("item", np.minimum(target.to_numpy(), 0)),
        human_candidate_logprob=(("item", "candidate"), np.minimum(drawn.to_numpy(), 0)),
    )
    return validate_comparison_study(made), truth


def _gaps(g: Array, belief: Array) -> Truth:
    return {"item_gap_nats": g - belief, "gap_nats": float((g - belief).mean())}
