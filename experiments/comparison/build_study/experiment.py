"""``+exp=build_study``: from documents and language models to a comparison study.

Contexts are cut out of the documents, the generator draws candidates for each, and every model says how probable it
finds the true next token and the candidates. All of it goes through the store: what is there is not computed again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pydantic import Field

from shannon_game.estimators.comparison import rounding_scheme, validate_comparison_study
from shannon_game.estimators.documents import clustered_mean
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import add_note
from shannon_game.estimators.messages import Set
from shannon_game.experiments.comparison.build_study import scores as asked
from shannon_game.experiments.comparison.build_study.scores import ModelScores
from shannon_game.experiments.comparison.estimates import EstimateRow, EstimateSettings, estimate, estimate_row
from shannon_game.experiments.comparison.perplexity import perplexity_figure
from shannon_game.experiments.documents.contexts import Cut, Start, cut_contexts
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import new_figure, player_colours, player_label
from shannon_game.experiments.harness.language_models import GeneratedSettings, chosen_generator, open_work
from shannon_game.experiments.harness.marks import light_grid, titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.questions import listed
from shannon_game.experiments.harness.result import ExperimentResult, experiment, loader
from shannon_game.experiments.harness.settings import Seeded, rng_for
from shannon_game.experiments.studies.comparison.file import save_comparison_study
from shannon_game.experiments.studies.comparison.lm_game_write import write_lm_game
from shannon_game.experiments.studies.documents.texts import texts
from shannon_game.experiments.studies.parsing import objects
from shannon_game.inference.lm.language_model import LanguageModel, encode, token_strings
from shannon_game.inference.lm.loading import load_language_model
from shannon_game.inference.lm.stored import Work
from shannon_game.inference.lm.vocabulary import vocabulary
from shannon_game.inference.progress import counted
from shannon_game.inference.settings import Count, UserPath, one_or_more
from shannon_game.inference.store.keys import result_key

Layouts = Annotated[tuple[Literal["netcdf", "lm_game"], ...], one_or_more]
_ITEM_SET = "built"
_STRINGS = ("context", "target_token", "candidate_token", "token")
# how U+FFFD is written in UTF-8: where a character was lost before the text was read
_DAMAGE = "\ufffd".encode()


class BuiltSettings(Seeded, GeneratedSettings):
    """How a comparison study is built; the generator draws the candidates."""

    n_contexts: Count = 300
    """Questions."""
    min_context_tokens: Annotated[int, Field(ge=0)] = 1
    """Fewest tokens (of the generator) before the cut."""
    max_context_tokens: Count = 120
    """Most tokens before the cut."""
    start: Start = "document"
    """document: contexts are beginnings of documents; anywhere: the tokens before a cut anywhere in a document;
    regions: those before each region of interest of the texts (study.regions), however many there are."""
    n_candidates: Count = 100
    """Tokens drawn from the generator for every context."""
    skip_damaged: bool = True
    """Leave out places where a character of the text was lost before it was read (U+FFFD)."""
    kl: bool = True
    """Exact KL(model || generator) for models that share the generator's tokenizer: one more pass of both."""
    reference: bool = False
    """Keep the generator's whole distributions (contexts x vocabulary x 4 bytes)."""
    inexact: Literal["error", "drop"] = "error"
    """Contexts that a model with another tokenizer cannot be asked exactly: error, or drop (counted)."""
    items_per_batch: Count = 32
    """Most contexts of a batch: what a killed run loses."""


class BuiltRow(EstimateRow):
    """One model of the study as a player, with what it says of whole vocabularies."""

    true_loss_se_nats: float = column.detail("standard error of true_loss_nats over documents", unit="nats")
    top1_accuracy: float = column.estimate("share of items whose true token is the most probable")
    entropy_nats: float = column.estimate("mean entropy of the next token", unit="nats")
    exact_kl_nats: float = column.detail("KL(player, generator) over the whole vocabulary", unit="nats")
    asked_by: str = column.detail("how the model was asked about the generator's tokens")


class BuildStudySettings(BuiltSettings):
    layouts: Layouts = ("netcdf", "lm_game")
    """Files written: netcdf (study.nc), lm_game (a folder of JSON files in the public layout of the game)."""


class BuiltTextsSettings(BuiltSettings):
    path: UserPath
    """Texts: a folder of .txt files, one .txt file, or JSON lines."""


@experiment(BuildStudySettings, row=BuiltRow)
def build_study(study: xr.Dataset, settings: BuildStudySettings) -> ExperimentResult:
    """Build a comparison study from documents and language models.

    A row per model; ``files["study.nc"]`` is the study, which :func:`comparison_file` reads.
    """
    work = open_work(settings)
    return _result(settings, *_built(study, settings, work), work)


@loader(BuiltTextsSettings)
def built(settings: BuiltTextsSettings) -> xr.Dataset:
    """Build the study of :func:`build_study` from texts when it is asked for, so that generators can be swept.

    What models say comes from the store where it is there: a second job computes none of it again.
    """
    return _built(texts(path=settings.path), settings, open_work(settings))[0]


def _built(study: xr.Dataset, settings: BuiltSettings, work: Work) -> tuple[xr.Dataset, dict[str, ModelScores]]:
    chosen = chosen_generator(settings)
    models = {chosen.name: chosen, **settings.models}
    generator = load_language_model(chosen)
    cuts, n_damaged = _cuts(settings, study, generator)
    mine = work.mine([result_key(cut.context, cut.target) for cut in cuts])
    if not mine.size:
        raise InputError(f"holds none of the {len(cuts)} contexts; take fewer shards", field="shard")
    cuts = [cuts[i] for i in mine]
    candidates, own = asked.draw_candidates(
        work, generator, cuts, n_candidates=settings.n_candidates, seed=settings.seed
    )
    scores = {generator.name: own}
    kl: dict[str, NDArray[np.float64] | None] = {}
    for name, its in models.items():
        model = generator if name == generator.name else load_language_model(its)
        if model is not generator:
            scores[name] = asked.score_tokens(work, model, generator, cuts, candidates)
        kl[name] = asked.divergences(work, model, generator, cuts) if settings.kl else None
    reference = asked.reference_distributions(work, generator, cuts) if settings.reference else None
    built = _dataset(study, generator, cuts, candidates, scores)
    if all(values is not None for values in kl.values()):
        built["kl_nats"] = (("model", "item"), np.stack(list(kl.values())), {"units": "nats"})  # type: ignore[arg-type]
    if reference is not None:
        built["reference_logprob"] = (("item", "token"), reference, {"units": "nats"})
        built = built.assign_coords(token=objects(token_strings(generator, range(generator.vocab_size))))
    built.attrs["seed"] = settings.seed
    built = _exact_only(built, scores, settings.inexact)
    if n_damaged:
        text = "places left out because a character was lost in the text before them, or in the next token (U+FFFD)"
        add_note(built, text, count=n_damaged)
    validate_comparison_study(built)
    return built, scores


def _region_cuts(settings: BuiltSettings, study: xr.Dataset, generator: LanguageModel) -> list[Cut]:
    """Cut before the first token of each region; the space before it is the token's."""
    source = f"study {study.attrs.get('name')!r}"
    if "region_start" not in study:
        raise InputError(f"has no regions; {Set('study.regions')} marks them", source=source, field="start")
    at, starts, stops = (study[f"region_{name}"].to_numpy().tolist() for name in ("document", "start", "stop"))
    texts = [study["text"].to_numpy()[document] for document in at]
    befores = [text[:start].rstrip(" ") for text, start in zip(texts, starts, strict=True)]
    before = encode(generator, befores, source=source)
    whole = encode(generator, [text[:stop] for text, stop in zip(texts, stops, strict=True)], source=source)
    for document, one, all_ in zip(at, before, whole, strict=True):
        if list(all_[: len(one)]) != list(one) or len(all_) == len(one):
            name = study["document"].to_numpy()[document]
            problem = "has a region that begins inside a token of the generator; begin it with a word"
            raise InputError(problem, source=source, field=f"text {name}")
    longest = settings.max_context_tokens
    return [
        Cut(document, len(one), tuple(one[-longest:]), all_[len(one)])
        for document, one, all_ in zip(at, before, whole, strict=True)
    ]


def _cuts(settings: BuiltSettings, study: xr.Dataset, generator: LanguageModel) -> tuple[list[Cut], int]:
    if settings.start == "regions":
        return _region_cuts(settings, study, generator), 0
    documents = encode(generator, study["text"].to_numpy().tolist(), source=f"study {study.attrs.get('name')!r}")
    token_bytes = vocabulary(generator).token_bytes
    damaged = [_damaged([token_bytes[token] for token in tokens]) for tokens in documents]

    def is_whole(cut: Cut) -> bool:
        return not damaged[cut.document][cut.position - len(cut.context) : cut.position + 1].any()

    return cut_contexts(
        documents,
        n=settings.n_contexts,
        # a model without a BOS token has nothing to say before the first token
        shortest=max(settings.min_context_tokens, int(generator.bos_id is None)),
        longest=settings.max_context_tokens,
        start=settings.start,
        rng=rng_for(settings.seed, "contexts"),
        is_usable=is_whole if settings.skip_damaged else None,
    )


def _damaged(tokens: Sequence[bytes]) -> NDArray[np.bool_]:
    """Which tokens hold some of a U+FFFD of the text."""
    damaged = np.zeros(len(tokens), dtype=bool)
    ends = np.cumsum([len(token) for token in tokens])
    for found in re.finditer(re.escape(_DAMAGE), b"".join(tokens)):
        first, last = np.searchsorted(ends, [found.start(), found.end() - 1], side="right")
        damaged[first : last + 1] = True
    return damaged


def _exact_only(built: xr.Dataset, scores: Mapping[str, ModelScores], on_inexact: str) -> xr.Dataset:
    keep = np.logical_and.reduce([its.exact for its in scores.values()])
    inexact = {name: np.flatnonzero(~its.exact) for name, its in scores.items() if not its.exact.all()}
    for name, which in inexact.items():
        if on_inexact == "drop" and keep.any():
            continue
        dropping = (
            "" if on_inexact == "drop" else f", or {Set('experiment.inexact', 'drop')} to leave those contexts out"
        )
        raise InputError(
            f"{name!r} has another tokenizer than the generator, and {len(which)} of the {len(keep)} contexts cannot "
            f"be asked of it exactly, such as context {which[0]}: {scores[name].problems[which[0]]}; leave the model "
            f"out{dropping}",
            field="model",
        )
    kept = built.isel(item=np.flatnonzero(keep))
    for name, which in inexact.items():
        text = f"contexts left out because {name} cannot be asked about all their tokens exactly"
        add_note(kept, text, count=len(which), level="warning")
    return kept


def _dataset(
    study: xr.Dataset,
    generator: LanguageModel,
    cuts: Sequence[Cut],
    candidates: NDArray[np.int64],
    scores: Mapping[str, ModelScores],
) -> xr.Dataset:
    nats = {"units": "nats"}
    target = [cut.target for cut in cuts]
    logprob, rank, entropy = (
        np.stack([getattr(its, name) for its in scores.values()]) for name in ("logprob", "rank", "entropy")
    )
    names = study["document"].to_numpy()
    n_items = len(cuts)
    drawn = objects(token_strings(generator, candidates.ravel().tolist())).reshape(candidates.shape)
    return xr.Dataset(
        {
            "context": ("item", objects([_decoded(generator, cut.context) for cut in cuts])),
            "target_token": ("item", objects(token_strings(generator, target))),
            "candidate_token": (("item", "candidate"), drawn),
            "target_logprob": (("model", "item"), logprob[:, :, 0], nats),
            "candidate_logprob": (("model", "item", "candidate"), logprob[:, :, 1:], nats),
            "item_set": ("item", objects([_ITEM_SET] * n_items)),
            "selected": ("item", np.ones(n_items, dtype=bool)),
            "in_reference": ("item", np.ones(n_items, dtype=bool)),
            "participant": ("response", np.array([], dtype="U1")),
            "response_item": ("response", np.zeros(0, dtype=np.int64)),
            "response_candidate": ("response", np.zeros(0, dtype=np.int64)),
            "report": ("response", np.zeros(0)),
            "automatic": ("response", np.zeros(0, dtype=bool)),
            "document": ("item", objects([names[cut.document] for cut in cuts])),
            "target_position": ("item", np.array([cut.position for cut in cuts], dtype=np.int64)),
            "target_id": ("item", np.array(target, dtype=np.int64)),
            "candidate_id": (("item", "candidate"), candidates),
            "target_rank": (("model", "item"), rank),
            "entropy_nats": (("model", "item"), entropy, nats),
        },
        coords={"item": np.arange(n_items), "model": list(scores)},
        attrs={
            "name": f"{study.attrs.get('name', 'documents')} by {generator.name}",
            "generator": generator.name,
            "data_sha256": str(study.attrs.get("data_sha256", "")),
            "notes": study.attrs.get("notes", "[]"),
        },
    )


def _decoded(model: LanguageModel, tokens: Sequence[int]) -> str:
    return str(model.tokenizer.decode(list(tokens), skip_special_tokens=False, clean_up_tokenization_spaces=False))


def _result(
    settings: BuildStudySettings, built: xr.Dataset, scores: Mapping[str, ModelScores], work: Work
) -> ExperimentResult:
    scheme = rounding_scheme("none")
    # the candidates are the generator's own, the estimator the plain one
    players = EstimateSettings()
    rows = []
    for player, its in scores.items():
        found = estimate(players, built, player, scheme)
        hits = built["target_rank"].sel(model=player).to_numpy() == 1
        loss = clustered_mean(-built["target_logprob"].sel(model=player).to_numpy(), built["document"].to_numpy())
        kl = float(built["kl_nats"].sel(model=player).mean()) if "kl_nats" in built else np.nan
        own = {"true_loss_se_nats": loss.se, "top1_accuracy": hits.mean(), "exact_kl_nats": kl}
        own |= {"entropy_nats": float(built["entropy_nats"].sel(model=player).mean())}
        own |= {"asked_by": "token id" if its.by_id else "token string"}
        rows.append(estimate_row(found, built.attrs["generator"], BuiltRow, **own))
    table = BuiltRow.table(rows)
    warnings: tuple[str, ...] = ()
    files: dict[str, Any] = {}
    if work.shard is None:
        writers = {"netcdf": ("study.nc", save_comparison_study), "lm_game": ("lm_game", write_lm_game)}
        files = {writers[layout][0]: partial(writers[layout][1], built) for layout in settings.layouts}
    else:
        warnings = (
            f"these are the contexts of shard {work.shard.index}/{work.shard.count} alone, and no study was written; "
            f"when all shards are done, the same without {Set('experiment.shard')} computes nothing and writes it",
        )
    return ExperimentResult(
        table=table,
        # the strings are in the study's own file, which holds those that netCDF cannot
        dataset=built.drop_vars([name for name in _STRINGS if name in built]),
        figures={"players": perplexity_figure(table, built.attrs["name"]), "target_logprob": surprisal_figure(built)},
        text=_summary(built, table, work),
        warnings=warnings,
        writers=files,
    )


@styled
def surprisal_figure(built: xr.Dataset) -> Figure:
    """Cumulative share of contexts by the surprisal of the true next token, one line per model."""
    fig = new_figure(4.5, 3.4)
    axes = fig.add_subplot()
    share = np.arange(1, built.sizes["item"] + 1) / built.sizes["item"]
    for model, colour in player_colours(built["model"].to_numpy().tolist()).items():
        surprisal = -built["target_logprob"].sel(model=model).to_numpy()
        label = f"{player_label(model)}, mean {surprisal.mean():.2f}"
        axes.step(np.sort(surprisal), share, where="post", color=colour, label=label)
    axes.set_xlim(left=0)
    axes.set(ylim=(0, 1), xlabel="surprisal, nats", ylabel="share of contexts")
    titled(fig, "How surprising is the true next token?", f"{built.sizes['item']:,} contexts")
    light_grid(axes, "both")
    axes.legend(loc="lower right")
    return fig


def _summary(built: xr.Dataset, table: pd.DataFrame, work: Work) -> str:
    n_documents = len(set(built["document"].to_numpy().tolist()))
    losses = listed(
        f"{loss:.3f} nats for {player}" for player, loss in zip(table["player"], table["true_loss_nats"], strict=True)
    )
    return (
        f"**The study has {counted(built.sizes['item'], 'context')} of {counted(n_documents, 'document')}, with "
        f"{built.sizes['candidate']} candidates each drawn from {built.attrs['generator']}.** The loss on the true "
        f"next token is {losses}. The table has perplexities as equation 5 estimates them from the candidates. "
        f"{work.said()}"
    )
