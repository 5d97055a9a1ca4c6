"""``+exp=finetune``: models fine-tuned on people's answers, and their distance to people on texts held out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from shannon_game.estimators.cloze import paired_difference, study_words
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_labels
from shannon_game.estimators.messages import Set
from shannon_game.experiments.cloze.build_cloze.players import take_contexts
from shannon_game.experiments.cloze.finetune.examples import Fold, answer_counts, answer_examples, text_folds
from shannon_game.experiments.cloze.live_words import usable_contexts
from shannon_game.experiments.cloze.settings import ComparableSettings, groups_of
from shannon_game.experiments.cloze.tvd.exact import exact_tvd
from shannon_game.experiments.cloze.tvd.settings import TvdSettings
from shannon_game.experiments.harness import rows as column
from shannon_game.experiments.harness.figures import Series, forest, new_figure, player_label
from shannon_game.experiments.harness.language_models import SMOLLM2, LiveModels, StoreFolder, training_folder
from shannon_game.experiments.harness.loss_curves import curve_table, loss_curves_figure
from shannon_game.experiments.harness.marks import light_grid, mark, named, titled
from shannon_game.experiments.harness.plots import styled
from shannon_game.experiments.harness.questions import bullets
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import Seeded, rng_for
from shannon_game.inference.lm.answer_labels import answer_loss, collate_answers, set_trainable
from shannon_game.inference.lm.loading import load_language_model
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.lm.training import Examples, TrainedModel, train_model, training_key
from shannon_game.inference.lm.training_settings import TrainingSettings
from shannon_game.inference.settings import Count, Positive, Probability
from shannon_game.inference.store.keys import canonical_json

# held-out examples whose loss is computed while the model trains
_MOST_HELD_OUT = 8
_NOT_DECISIVE = ("store", "models", "labels", "fold", "n_bootstrap", "level", "max_forms")
_AS_BEFORE = ("bos", "temperature", "attention", "device", "tokens_per_batch", "logits_mib")

Label = Literal["majority", "sampled", "soft", "multi"]
Labels = Annotated[tuple[Label, ...], Field(min_length=1), BeforeValidator(lambda n: (n,) if isinstance(n, str) else n)]


class FineTuneRow(column.Row):
    """One model and one kind of label."""

    player: str = column.key("model", players=True)
    labels: str = column.key("what a context's label is", setting="experiment.labels")
    trainable: str = column.setting("which parameters train", setting="experiment.trainable")
    n_trained_parameters: int = column.context("numbers that train")
    n_parts: int = column.context("parts held out")
    n_training_texts: float = column.context("mean number of texts that train")
    n_steps: int = column.context("steps of the last part")
    n_held_out_texts: int = column.context("texts held out")
    n_held_out_contexts: int = column.context("contexts held out")
    tvd_before: float = column.beside("tvd_difference", "mean TVD to people before")
    tvd_after: float = column.beside("tvd_difference", "mean TVD to people after")
    tvd_difference: float = column.headline("change of the TVD to people", interval="tvd_difference_{}")
    p_tvd_falls: float = column.detail("share of bootstrap samples in which it falls")
    share_of_contexts_nearer: float = column.estimate("share of the contexts that are nearer to people after")


class FineTuneSettings(Seeded, ComparableSettings, StoreFolder, TrainingSettings):
    models: LiveModels = Field(default_factory=lambda: {"smollm2": SMOLLM2})
    """Language models that are fine-tuned, each by itself; on the command line model=[smollm2,...]."""
    labels: Labels = ("soft",)
    """What a context's label is, one model for each. majority: the word that most people gave; sampled: one person's
    answer, at random; soft: people's shares; multi: every word that anybody gave, each as much as any other."""
    trainable: Literal["all", "last_blocks", "last_norms"] = "all"
    """Which parameters train: all; the last blocks and the last norm; the layer norms of these alone, as in appendix F
    of the paper on the Provo answers."""
    n_last_blocks: Count = 2
    """Blocks that count as the last ones."""
    n_texts: Count | None = None
    """Texts at random, or the first ones in order; null takes all."""
    n_folds: Annotated[int, Field(ge=2)] = 4
    """Parts into which texts are cut at random; each is held out once while the others train."""
    in_order: bool = False
    """Cut texts in the order of the study, as appendix F of the paper on the Provo answers does."""
    n_validation_texts: Annotated[int, Field(ge=0)] = 0
    """Texts that neither train nor are held out: their loss is computed while the model trains. In order, the last."""
    fold: Count | None = None
    """Hold out this part alone, 1 being the first; null: one after another, which trains n_folds models a label."""
    contexts_together: Count = 16
    """Neighbouring contexts of a text that make one example: they share its passes."""
    max_forms: Count = 6
    """Most strings that count as one of people's words, each looked up."""
    n_bootstrap: Annotated[int, Field(ge=100)] = 10_000
    """Bootstrap samples of texts."""
    level: Probability = 0.9
    """Of the intervals."""
    batch_size: Count = 1
    """Examples of one pass, on every device."""
    learning_rate: Positive = 3e-5
    """The highest of the schedule."""
    schedule: Literal["linear", "cosine", "constant_with_warmup"] = "linear"
    """How the learning rate falls after the first steps: to zero, or not at all."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    """Of AdamW; biases and layer norms have none."""
    log_every: Count = 5
    """Steps between two points of the loss curve."""


@experiment(FineTuneSettings, row=FineTuneRow)
def finetune(study: xr.Dataset, settings: FineTuneSettings) -> ExperimentResult:
    """Fine-tune models on people's answers, and compare their distance to people before and after on other texts.

    A row per model and kind of label, with the change of the TVD and its interval over held-out texts. Its
    ``tables`` have the loss curves (``curves``) and a row per held-out context (``items``).
    """
    if not settings.models:
        raise InputError(f"names no model; add {Set('model', ['smollm2'])}", field=Set("model"))
    rules = settings.words.of(study)
    words = study_words(study, human=rules, model=rules, corpus=rules, models=[])
    cut: dict[str, Any] = {
        name: getattr(settings, name) for name in ("n_folds", "n_texts", "in_order", "n_validation_texts")
    }
    folds = text_folds(study, usable_contexts(study, words), rng=rng_for(settings.seed, "folds"), **cut)
    if settings.fold is not None:
        if settings.fold > len(folds):
            raise InputError(f"is {settings.fold}, but there are {len(folds)} parts", field="fold")
        folds = [folds[settings.fold - 1]]
    counts = answer_counts(study, rules)
    n_texts = [len(set(groups_of(study, fold.training).tolist())) for fold in folds]
    rows: list[dict[str, Any]] = []
    runs: dict[str, TrainedModel] = {}
    parts: list[pd.DataFrame] = []
    for name, chosen in settings.models.items():
        for labels in settings.labels:
            found = []
            for fold in folds:
                run, n_trained = _fine_tuned(study, settings, chosen, counts=counts, fold=fold, labels=labels)
                runs[f"{name}, {labels}, part {fold.number}"] = run
                its = _distances(study, settings, chosen, fold.held_out, run)
                found.append(its.assign(player=name, labels=labels, part=fold.number))
            table = pd.concat(found, ignore_index=True)
            parts.append(table)
            rows.append(_row(table, settings, n_texts, n_trained, run))
    table, items = FineTuneRow.table(rows), pd.concat(parts, ignore_index=True)
    curves = curve_table(runs)
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset.from_dataframe(items.rename_axis("row")),
        tables={"curves": curves, "items": items},
        figures={
            "finetune": finetune_figure(table, items, settings.level),
            "loss_curves": loss_curves_figure(curves, "context"),
        },
        text=_summary(table, settings, runs),
        warnings=_warnings(settings, folds),
    )


def _fine_tuned(
    study: xr.Dataset,
    settings: FineTuneSettings,
    chosen: ModelSettings,
    *,
    counts: list[dict[str, float]],
    fold: Fold,
    labels: str,
) -> tuple[TrainedModel, int]:
    """Train one model on the texts of the other parts; give it, and the numbers that train."""
    model = load_language_model(chosen.changed(dtype="float32", device="cpu" if settings.device == "cpu" else "auto"))
    if not model.tree_attention:
        raise InputError(
            "does not take a mask and positions as they are (ALiBi, windows of attention, or none), so that its "
            "contexts and words cannot share a pass; take a model of another family",
            source=f"model {model.name!r}",
        )
    n_trained = set_trainable(model.module, settings.trainable, n_last_blocks=settings.n_last_blocks)
    examples, held_out = (
        answer_examples(
            *(model, study, counts, items, labels),
            together=settings.contexts_together,
            rng=rng_for(settings.seed, f"answers {purpose} {fold.number}"),
        )
        for purpose, items in (("training", fold.training), ("held out", fold.validation))
    )
    # of every part of the held-out texts some
    few = held_out[:: -(-len(held_out) // _MOST_HELD_OUT)]
    key = training_key(
        settings=settings.model_dump(mode="json", exclude=set(_NOT_DECISIVE)),
        model=model.identity,
        examples=_digest(examples),
        held_out=_digest(few),
    )
    run = train_model(
        model.module.train,
        model.tokenizer,
        Examples(examples, collate_answers, answer_loss),
        settings,
        training_folder(settings, key),
        seed=settings.seed,
        held_out=few,
        what=f"fine-tuning {model.name} on {labels} labels, part {fold.number}",
    )
    return run, n_trained


def _digest(examples: list[list[Any]]) -> str:
    plain = [[[one.tokens, one.words, one.shares] for one in group] for group in examples]
    return hashlib.sha256(canonical_json(plain).encode()).hexdigest()


def _distances(
    study: xr.Dataset, settings: FineTuneSettings, chosen: ModelSettings, items: NDArray[np.intp], run: TrainedModel
) -> pd.DataFrame:
    before = chosen.changed(name="before", dtype="float32")
    # a model of which blocks were left out is saved without them
    kept = {name: getattr(chosen, name) for name in _AS_BEFORE}
    after = ModelSettings(name="after", source="folder", path=str(run.folder), **kept)
    same = {name: getattr(settings, name) for name in ("store", "words", "max_forms", "seed")}
    asked = TvdSettings(models={"before": before, "after": after}, n_splits=1, **same)
    found = exact_tvd(take_contexts(study, items), asked).dataset
    return pd.DataFrame(
        {
            "item": item_labels(study)[items],
            "text_id": groups_of(study, items).astype(str),
            "tvd_before": found["tvd"].sel(player="before").to_numpy(),
            "tvd_after": found["tvd"].sel(player="after").to_numpy(),
        }
    )


def _row(
    table: pd.DataFrame, settings: FineTuneSettings, n_training_texts: list[int], n_trained: int, run: TrainedModel
) -> dict[str, Any]:
    how: dict[str, Any] = {"seed": settings.seed, "n_bootstrap": settings.n_bootstrap, "level": settings.level}
    change = paired_difference(table["tvd_before"], table["tvd_after"], table["text_id"], **how)
    row: dict[str, Any] = {"player": table["player"].iloc[0], "labels": table["labels"].iloc[0]}
    row |= {"trainable": settings.trainable, "n_trained_parameters": n_trained, "n_parts": len(n_training_texts)}
    row |= {"n_training_texts": float(np.mean(n_training_texts)), "n_steps": run.n_steps}
    row |= {"n_held_out_texts": change.n_groups, "n_held_out_contexts": change.n_contexts}
    row |= {"tvd_before": change.before, "tvd_after": change.after, "tvd_difference": change.difference}
    row |= {"tvd_difference_lower": change.lower, "tvd_difference_upper": change.upper, "p_tvd_falls": change.p_falls}
    return row | {"share_of_contexts_nearer": float((table["tvd_after"] < table["tvd_before"]).mean())}


def _warnings(settings: FineTuneSettings, folds: list[Fold]) -> tuple[str, ...]:
    part = f"this is part {folds[0].number} of {settings.n_folds} alone, and other texts held out give other changes"
    return (
        ()
        if len(folds) == settings.n_folds
        else (f"{part}; leave out {Set('experiment.fold')} to hold out every text once",)
    )


@styled
def finetune_figure(table: pd.DataFrame, items: pd.DataFrame, level: float = 0.9) -> Figure:
    """Draw the change of every held-out context, and its mean with an interval, a row per model and kind of label."""
    label = table["player"].map(player_label) + (", " + table["labels"] if len(table) > 1 else "")
    rows = table.assign(label=label, colour="0")
    fig = new_figure(4.5, 1.7 + 0.7 * len(rows))
    axes = fig.add_subplot()
    mean = Series("tvd_difference", "tvd_difference_lower", "tvd_difference_upper", size=6, linewidth=2.4)
    heights, rng = forest(axes, rows, [mean]), np.random.default_rng(0)
    changes = items.assign(change=items["tvd_after"] - items["tvd_before"]).groupby(["player", "labels"], sort=False)
    for height, (_, own) in zip(heights, changes, strict=True):
        axes.scatter(own["change"], height + rng.uniform(-0.38, 0.38, len(own)), s=9, color="#0072B2", alpha=0.45)
    axes.axvline(0, color="0.4", linewidth=0.8)
    light_grid(axes, "x")
    axes.set_xlabel("change of the TVD (left of 0: nearer)")
    dots = mark("a held-out context", "#0072B2", "o")
    named(fig, [dots, mark(f"mean, {level:.0%} interval over texts", "0", "o", line="-")])
    titled(fig, "Does training on people's answers bring models nearer?")
    return fig


def _summary(table: pd.DataFrame, settings: FineTuneSettings, runs: Mapping[str, TrainedModel]) -> str:
    line = (
        "**Training on people's answers changes the TVD of {label} to people by {tvd_difference:+.4f} "
        "[{tvd_difference_lower:+.4f}, {tvd_difference_upper:+.4f}]**. It goes from {tvd_before:.4f} to "
        "{tvd_after:.4f} ({labels} labels), on {n_held_out_contexts:,} contexts of {n_held_out_texts} texts held out; "
        "{share_of_contexts_nearer:.0%} of the contexts are nearer."
    )
    first = next(iter(runs.values()))
    n_now = sum(run.n_steps_now for run in runs.values())
    return (
        f"{bullets(table.assign(label=table['player'].map(player_label)), line)}\n\nTrained on people's answers in the "
        f"other texts: {settings.trainable} parameters, {first.n_steps:,} steps each, {n_now:,} steps in this run, in "
        f"{first.precision} on {first.device}. {settings.level:.0%} intervals are of a bootstrap over texts held out; "
        "another order of examples or another cut of the texts would add to them."
    )
