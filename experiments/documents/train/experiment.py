"""``+exp=train``: a small decoder trained from random weights on documents, its loss curves and perplexity."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.documents import ngram_overlap
from shannon_game.estimators.errors import InputError, unknown_choice
from shannon_game.estimators.messages import Set
from shannon_game.experiments.documents.surprisal import SurprisalRow, surprisal
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.language_models import StoreFolder, training_folder
from shannon_game.experiments.harness.loss_curves import curve_table, loss_curves_figure
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import Seeded, rng_for
from shannon_game.inference.lm import minimal_model
from shannon_game.inference.lm.minimal_model import ShapeSettings, token_blocks
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.lm.training import Examples, TrainedModel, train_model, training_key
from shannon_game.inference.lm.training_settings import TrainingSettings
from shannon_game.inference.settings import Count, Probability, Text


class TrainSettings(Seeded, StoreFolder, TrainingSettings):
    name: Text = "trained"
    """What tables and figures call the model."""
    shape: ShapeSettings = ShapeSettings()
    """The model and its tokenizer."""
    train_split: Text | None = None
    """Split of the study that is trained on, all others being held out; null: "train" where the study has one, else
    documents at random."""
    held_out: Probability = 0.1
    """Share of the documents that is held out where the study has no splits."""
    n_scored: Count | None = 200
    """Documents of each split, at random, that the trained model is scored on; null scores all."""
    ngram: Count = 13
    """Words of a sequence for which held-out documents are looked through: does it stand in training documents too?"""


class TrainRow(SurprisalRow):
    """One split under the trained model."""

    n_parameters: int = column.context("numbers of the model")
    n_steps: int = column.context("steps")
    n_train_tokens: int = column.context("tokens of the training documents")
    n_epochs: float = column.context("times that each of them was seen")
    ngram_overlap: float = column.beside("loss_nats", "share of the split's sequences of words in training documents")


_TRAIN, _HELD_OUT = "train", "held out"
# blocks of held-out text whose loss is computed while the model trains
_MOST_HELD_OUT = 64


@experiment(TrainSettings, row=TrainRow)
def train(study: xr.Dataset, settings: TrainSettings) -> ExperimentResult:
    """Train a small decoder on documents, and score it on those that were held out.

    A row per split. Its ``tables`` have the loss curves (``curves``) and the overlap of every held-out document with
    those of training (``overlap``); ``files["model"]`` is the model, which ``source="folder"`` loads.

    Examples
    --------
    >>> from shannon_game import texts, train
    >>> train(texts(path="FOLDER"), n_steps=100).table  # doctest: +SKIP
    """
    split = _splits(study, settings)
    texts = np.asarray(study["text"].to_numpy(), dtype=object)
    training, held_out = texts[split == _TRAIN].tolist(), texts[split != _TRAIN].tolist()
    tokenizer = minimal_model.make_tokenizer(settings.shape, training)
    blocks = token_blocks(tokenizer, training, block_tokens=settings.shape.context_tokens)
    held_out_blocks = _held_out_blocks(tokenizer, held_out, settings)
    key = training_key(
        settings=settings.model_dump(mode="json", exclude={"store", "name", "n_scored", "ngram"}),
        tokenizer=_digest([tokenizer.backend_tokenizer.to_str()]),
        training=_digest(training),
        held_out=_digest(held_out),
    )
    trained = train_model(
        lambda: minimal_model.make_model(settings.shape, tokenizer, seed=settings.seed),
        tokenizer,
        Examples(list(blocks), minimal_model.collate_blocks),
        settings,
        training_folder(settings, key),
        seed=settings.seed,
        held_out=held_out_blocks,
        what=f"training {settings.name}",
    )
    how: dict[str, Any] = {"bos": minimal_model.separator_of(tokenizer), "device": settings.device}
    model = ModelSettings(name=settings.name, source="folder", path=str(trained.folder), **how)
    kept: dict[str, Any] = {"store": settings.store, "window": settings.shape.context_tokens, "seed": settings.seed}
    kept["words"] = False
    scored = surprisal(_scored(study, split, settings), models={settings.name: model}, **kept)
    overlap = _overlap(study, split, training, settings)
    table = _table(scored.table, overlap, trained, settings, blocks)
    curves = curve_table({settings.name: trained})
    return ExperimentResult(
        table=table,
        dataset=scored.dataset,
        tables={"curves": curves, "overlap": overlap, **scored.tables},
        writers={"model": partial(shutil.copytree, trained.folder)},
        figures={"loss_curves": loss_curves_figure(curves, "token"), **scored.figures},
        text=_summary(table, trained, settings, len(blocks)),
        warnings=_warnings(table, settings),
    )


def _splits(study: xr.Dataset, settings: TrainSettings) -> NDArray[np.object_]:
    """Split of each document; that of training is called :data:`_TRAIN`."""
    found = study["split"].to_numpy().astype(str)
    names = list(dict.fromkeys(found.tolist()))
    chosen = settings.train_split
    if chosen is None and _TRAIN in names and len(names) > 1:
        chosen = _TRAIN
    if chosen is not None:
        if chosen not in names:
            raise unknown_choice("split", chosen, names, source=Set("experiment.train_split"))
        if len(names) == 1:
            raise InputError(f"is {chosen!r}, which holds every document; nothing is held out", field="train_split")
        return np.array([_TRAIN if name == chosen else name for name in found], dtype=object)
    n_there = len(found)
    n_held_out = round(settings.held_out * n_there)
    if not 0 < n_held_out < n_there:
        problem = f"is {settings.held_out}, which of {n_there} documents makes {n_held_out}; both parts need one"
        raise InputError(problem, field="held_out")
    split = np.full(n_there, _TRAIN, dtype=object)
    split[rng_for(settings.seed, "held out").permutation(n_there)[:n_held_out]] = _HELD_OUT
    return split


def _held_out_blocks(tokenizer: Any, texts: Sequence[str], settings: TrainSettings) -> list[NDArray[np.int32]]:
    try:
        blocks = token_blocks(tokenizer, texts, block_tokens=settings.shape.context_tokens)
    except InputError:
        # documents shorter than a block are scored all the same when the model is trained
        return []
    return list(blocks[:_MOST_HELD_OUT])


def _digest(texts: Sequence[str]) -> str:
    lines = (hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts)
    return hashlib.sha256(b"".join(lines)).hexdigest()


def _scored(study: xr.Dataset, split: NDArray[np.object_], settings: TrainSettings) -> xr.Dataset:
    chosen = []
    for name in dict.fromkeys(split.tolist()):
        there = np.flatnonzero(split == name)
        if settings.n_scored is not None and settings.n_scored < len(there):
            there = rng_for(settings.seed, f"scored {name}").choice(there, settings.n_scored, replace=False)
        chosen.append(there)
    kept = np.sort(np.concatenate(chosen))
    # tokens that the documents came with are another tokenizer's
    bare = study.drop_dims([name for name in ("position",) if name in study.dims])
    return bare.assign(split=("document", split)).isel(document=kept)


def _overlap(
    study: xr.Dataset, split: NDArray[np.object_], training: Sequence[str], settings: TrainSettings
) -> pd.DataFrame:
    held_out = np.flatnonzero(split != _TRAIN)
    found = ngram_overlap(study["text"].to_numpy()[held_out].tolist(), training, n=settings.ngram)
    counts = {"n_ngrams": found.n_ngrams, "n_shared": found.n_shared, "ngram_overlap": found.share}
    return pd.DataFrame({"document": study["document"].to_numpy()[held_out], "split": split[held_out], **counts})


def _table(
    scored: pd.DataFrame,
    overlap: pd.DataFrame,
    trained: TrainedModel,
    settings: TrainSettings,
    blocks: NDArray[np.int32],
) -> pd.DataFrame:
    sums = overlap.groupby("split")[["n_ngrams", "n_shared"]].sum()
    shares = (sums["n_shared"] / sums["n_ngrams"]).to_dict()
    n_seen = trained.n_steps * settings.batch_size * settings.n_accumulated
    rows = scored[scored["split"].isin([_TRAIN, *sums.index])]
    return rows.assign(
        n_parameters=_n_parameters(trained.folder),
        n_steps=trained.n_steps,
        n_train_tokens=int(blocks.size),
        n_epochs=n_seen / len(blocks),
        ngram_overlap=rows["split"].map(shares),
    )[[one.name for one in TrainRow.columns]].reset_index(drop=True)


def _n_parameters(folder: Path) -> int:
    from safetensors import safe_open  # noqa: PLC0415

    with safe_open(str(folder / "model.safetensors"), framework="np") as weights:
        return sum(int(np.prod(weights.get_slice(name).get_shape())) for name in weights.keys())  # noqa: SIM118


def _summary(table: pd.DataFrame, trained: TrainedModel, settings: TrainSettings, n_blocks: int) -> str:
    first = table.iloc[0]
    rows = "; ".join(
        f"{row['loss_nats']:.3f} nats per token on {row['split']} (perplexity {row['perplexity']:.1f})"
        for row in table.to_dict("records")
    )
    shape = settings.shape
    return (
        f"**The trained model loses {rows}.** A decoder of {shape.n_layers} blocks and width {shape.width}, "
        f"{first['n_parameters']:,} parameters, was trained for {trained.n_steps:,} steps ({trained.n_steps_now:,} of "
        f"them in this run) on {n_blocks:,} blocks of {shape.context_tokens} tokens, {first['n_epochs']:.2f} epochs, "
        f"in {trained.precision} on {trained.device}.\n\n`model/` plays wherever a language model does: "
        f"`{Set('model', ['local'])} {Set('models.local.path', 'FOLDER/model')}`."
    )


def _warnings(table: pd.DataFrame, settings: TrainSettings) -> tuple[str, ...]:
    high = table[table["ngram_overlap"] > 0.01]
    return tuple(
        f"{row['ngram_overlap']:.1%} of the sequences of {settings.ngram} words of split {row['split']!r} stand in the "
        "training documents too; its loss is not that of unseen text (overlap.csv)"
        for row in high.to_dict("records")
    )
