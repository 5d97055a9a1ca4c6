"""``+exp=finetune``: models fine-tuned on people's answers, and their distance to people on texts held out."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from shannon_game.estimators.cloze import paired_difference, study_words
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_labels
from shannon_game.experiments.cloze.build_cloze.assemble import take_contexts
from shannon_game.experiments.cloze.finetune.examples import Fold, answer_counts, answer_examples, text_folds
from shannon_game.experiments.cloze.finetune.results import finetune_figure, summary
from shannon_game.experiments.cloze.finetune.settings import FineTuneSettings
from shannon_game.experiments.cloze.live_words import usable_contexts
from shannon_game.experiments.cloze.settings import groups_of
from shannon_game.experiments.cloze.tvd.exact import exact_tvd
from shannon_game.experiments.cloze.tvd.settings import TvdSettings
from shannon_game.experiments.harness.language_models import training_folder
from shannon_game.experiments.harness.loss_curves import curve_table, loss_curves_figure
from shannon_game.experiments.harness.result import ExperimentResult, experiment
from shannon_game.experiments.harness.settings import rng_for
from shannon_game.inference.lm.answer_labels import answer_loss, collate_answers, set_trainable
from shannon_game.inference.lm.language_model import LanguageModel
from shannon_game.inference.lm.loading import load_language_model
from shannon_game.inference.lm.settings import ModelSettings
from shannon_game.inference.lm.training import Examples, TrainedModel, train_model, training_key
from shannon_game.inference.store.keys import canonical_json

Floats = NDArray[np.float64]

_NOT_DECISIVE = ("store", "models", "labels", "fold", "n_bootstrap", "level", "max_forms")


@experiment(FineTuneSettings)
def finetune(study: xr.Dataset, settings: FineTuneSettings) -> ExperimentResult:
    """Fine-tune models on people's answers, and compare their distance to people before and after on other texts.

    Parameters
    ----------
    study : xarray.Dataset
        A cloze study with the text of every context.

    Returns
    -------
    ExperimentResult
        A row a model and kind of label, with the change of the TVD and its interval over held-out texts. Its
        ``tables`` have the loss curves (``curves``) and a row a held-out context (``items``).

    Raises
    ------
    InputError
        If a model cannot be fine-tuned, there are too few texts, or a setting does not fit.

    Examples
    --------
    >>> from shannon_game import finetune, provo
    >>> finetune(provo(root="FOLDER"), n_texts=8, fold=1).table  # doctest: +SKIP
    """
    if not settings.models:
        raise InputError("names no model; add model=[smollm2]", source="settings", field="model")
    rules = settings.words.of(study)
    words = study_words(study, human=rules, model=rules, corpus=rules, models=[])
    folds = text_folds(
        study,
        usable_contexts(study, words),
        n_folds=settings.n_folds,
        n_texts=settings.n_texts,
        rng=rng_for(settings.seed, "folds"),
    )
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
    table, items = pd.DataFrame(rows), pd.concat(parts, ignore_index=True)
    curves = curve_table(runs)
    return ExperimentResult(
        table=table,
        dataset=xr.Dataset.from_dataframe(items.rename_axis("row")),
        tables={"curves": curves, "items": items},
        figures={"finetune": finetune_figure(table), "loss_curves": loss_curves_figure(curves, "context")},
        text=summary(table, settings, runs),
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
        for purpose, items in (("training", fold.training), ("held out", fold.held_out))
    )
    # of every part of the held-out texts some
    few = held_out[:: -(-len(held_out) // settings.n_held_out_examples)]
    key = training_key(
        settings=settings.model_dump(mode="json", exclude=set(_NOT_DECISIVE)),
        model=model.identity,
        examples=_digest(examples),
        held_out=_digest(few),
    )
    run = train_model(
        lambda: _in_training(model),
        model.tokenizer,
        Examples(examples, collate_answers, answer_loss),
        settings,
        training_folder(settings, key),
        seed=settings.seed,
        held_out=few,
        what=f"fine-tuning {model.name} on {labels} labels, part {fold.number}",
    )
    return run, n_trained


def _in_training(model: LanguageModel) -> Any:
    return model.module.train()


def _digest(examples: list[list[Any]]) -> str:
    plain = [[[one.tokens, one.words, one.shares] for one in group] for group in examples]
    return hashlib.sha256(canonical_json(plain).encode()).hexdigest()


def _distances(
    study: xr.Dataset, settings: FineTuneSettings, chosen: ModelSettings, items: NDArray[np.intp], run: TrainedModel
) -> pd.DataFrame:
    """TVD to people in every held-out context, before and after."""
    before = chosen.changed(name="before", dtype="float32")
    # a model of which blocks were left out is saved without them
    after = ModelSettings(
        name="after",
        source="folder",
        path=str(run.folder),
        bos=chosen.bos,
        temperature=chosen.temperature,
        attention=chosen.attention,
        device=chosen.device,
        tokens_per_batch=chosen.tokens_per_batch,
        logits_mib=chosen.logits_mib,
    )
    asked = TvdSettings(
        models={"before": before, "after": after},
        store=settings.store,
        words=settings.words,
        max_forms=settings.max_forms,
        n_splits=1,
        seed=settings.seed,
    )
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
    change = paired_difference(
        table["tvd_before"],
        table["tvd_after"],
        table["text_id"],
        seed=settings.seed,
        n_bootstrap=settings.n_bootstrap,
        level=settings.level,
    )
    return {
        "player": table["player"].iloc[0],
        "labels": table["labels"].iloc[0],
        "trainable": settings.trainable,
        "n_trained_parameters": n_trained,
        "n_parts": len(n_training_texts),
        "n_training_texts": float(np.mean(n_training_texts)),
        "n_steps": run.n_steps,
        "n_held_out_texts": change.n_groups,
        "n_held_out_contexts": change.n_contexts,
        "tvd_before": change.before,
        "tvd_after": change.after,
        "tvd_difference": change.difference,
        "tvd_difference_lower": change.lower,
        "tvd_difference_upper": change.upper,
        "p_tvd_falls": change.p_falls,
        "share_of_contexts_nearer": float((table["tvd_after"] < table["tvd_before"]).mean()),
    }


def _warnings(settings: FineTuneSettings, folds: list[Fold]) -> tuple[str, ...]:
    if len(folds) == settings.n_folds:
        return ()
    return (
        f"this is part {folds[0].number} of {settings.n_folds} alone: other texts held out give other changes; without "
        "experiment.fold every text is held out once",
    )
