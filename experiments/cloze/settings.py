"""What the experiments on cloze studies share: their settings, words in one coding, labels and colours, clustering."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from omegaconf import DictConfig, OmegaConf

from estimators.cloze.study import model_names
from estimators.cloze.study_words import StudyWords, study_words
from estimators.cloze.words import WordRules, word_rules
from estimators.errors import InputError, require_packages, unknown_choice

__all__ = [
    "ORACLE",
    "chosen_models",
    "clean_words",
    "cluster_se",
    "colours",
    "label",
    "mode_of",
    "number",
    "require_scipy",
    "whole",
    "wide_rules",
]

ORACLE = "oracle2"
"""Name of the second half of the human answers, as a player."""

_LABELS = {
    ORACLE: "humans (oracle 2)",
    "human": "humans",
    "gpt2": "GPT-2",
    "gpt2-ft": "GPT-2 fine-tuned",
    "gpt2-t0.5": "GPT-2, temperature 0.5",
    "bloom": "BLOOM-176B",
    "chatgpt": "ChatGPT",
    "chatgpt-2": "ChatGPT, second round",
    "chatgpt-diverse": "ChatGPT, asked for 40 words",
}
_COLOURS = {
    ORACLE: "#000000",
    "human": "#000000",
    "gpt2": "#0072B2",
    "gpt2-ft": "#56B4E9",
    "gpt2-t0.5": "#999999",
    "bloom": "#D55E00",
    "chatgpt": "#009E73",
    "chatgpt-2": "#CC79A7",
    "chatgpt-diverse": "#E69F00",
}
_FREE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def require_scipy() -> None:
    """Raise an :class:`InputError` that says what to install if SciPy is missing."""
    require_packages(("scipy",), "cloze", source="this experiment")


def mode_of(cfg: DictConfig) -> str:
    """``experiment.mode``: "clean" or "legacy"."""
    mode = cfg.experiment.mode
    if mode not in ("clean", "legacy"):
        raise unknown_choice("mode", mode, ("clean", "legacy"), source="experiment")
    return str(mode)


def number(cfg: DictConfig, key: str, *, lowest: float = 0.0, highest: float = np.inf) -> float:
    """Read a number from ``experiment.KEY``."""
    value = OmegaConf.select(cfg.experiment, key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not lowest <= value <= highest:
        raise InputError(f"is {value!r}, should be a number from {lowest} to {highest}", field=f"experiment.{key}")
    return float(value)


def whole(cfg: DictConfig, key: str, *, lowest: int = 1, optional: bool = False) -> int:
    """Read a whole number from ``experiment.KEY``; null is 0 where it is optional."""
    value = OmegaConf.select(cfg.experiment, key)
    if value is None and optional:
        return 0
    if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
        raise InputError(f"is {value!r}, should be a whole number, {lowest} or larger", field=f"experiment.{key}")
    return value


def chosen_models(cfg: DictConfig, study: xr.Dataset, *, needed: bool = True) -> list[str]:
    """Models of ``players=[...]``, by default all of the study.

    Raises
    ------
    InputError
        If one is not in the study, or one is needed and there is none.
    """
    valid = model_names(study)
    wanted = (
        valid
        if cfg.players is None
        else [str(name) for name in ([cfg.players] if isinstance(cfg.players, str) else cfg.players)]
    )
    for name in wanted:
        if name not in valid:
            raise unknown_choice("model", name, valid, source=f"players, study {study.attrs['name']!r}")
    if needed and not wanted:
        raise InputError(
            "has no model's words; this experiment compares people with models", source="settings", field="study"
        )
    return wanted


def wide_rules(cfg: DictConfig, study: xr.Dataset) -> WordRules:
    """Word rules of ``experiment.words``: those named there or the study's own, with the single rules given."""
    settings = OmegaConf.to_container(cfg.experiment.words, resolve=True)
    if not isinstance(settings, dict):
        raise InputError(f"is {settings!r}, should be {{rules: NAME, rule: value}}", field="experiment.words")
    # an experiment may also name its changes together
    flat = {**settings, **(settings.pop("changes", None) or {})}
    given = {str(key): value for key, value in flat.items() if value is not None and key != "changes"}
    name = given.pop("rules", study.attrs.get("word_rules", "clean"))
    return word_rules(str(name), given)


def clean_words(cfg: DictConfig, study: xr.Dataset, models: Sequence[str]) -> StudyWords:
    """Words of the study with one set of rules on all sides, a model's samples pooled by context."""
    rules = wide_rules(cfg, study)
    return study_words(study, human=rules, model=rules, corpus=rules, models=models)


def cluster_se(values: ArrayLike, groups: ArrayLike) -> float:
    """Standard error of a mean over contexts that come in groups (passages), which share their topic and readers.

    Linearised ratio estimator: sqrt(G / (G - 1) sum_g (sum_i (x_i - mean))^2) / n. NaN for a single group.
    """
    values = np.asarray(values, dtype=float)
    _, group = np.unique(np.asarray(groups), return_inverse=True)
    sums = np.bincount(group, weights=values - values.mean())
    n_groups = len(sums)
    if n_groups < 2:
        return float("nan")
    return float(np.sqrt(n_groups / (n_groups - 1) * np.sum(sums**2)) / len(values))


def label(player: str) -> str:
    """Name of a player as a reader of a paper expects it."""
    return _LABELS.get(player, player)


def colours(players: Sequence[str]) -> dict[str, str]:
    """Colour of every player, always the same for those that are known."""
    taken = {_COLOURS.get(name) for name in players}
    free = iter([colour for colour in _FREE if colour not in taken] * 50)
    return {name: _COLOURS.get(name) or next(free) for name in players}


def groups_of(study: xr.Dataset, items: NDArray[np.intp]) -> NDArray[np.object_]:
    """Text of each context."""
    return np.asarray(study["text_id"].to_numpy()[items], dtype=object)
