"""``+exp=tvd``: how far models' next words are from people's, beside what people's own samples differ (table 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from omegaconf import DictConfig

from estimators.errors import InputError
from experiments.cloze.settings import ORACLE, chosen_models, clean_words, colours, label, mode_of, require_scipy, whole
from experiments.cloze.tvd.results import GOLD, PlayerTvd, model_tvd, oracle_tvd
from experiments.harness.figures import STYLE, new_figure
from experiments.harness.outputs import ExperimentResult
from experiments.harness.settings import rng_for, rows_of, tail_probability

if TYPE_CHECKING:
    from experiments.cloze.tvd.posterior import BayesianTvd

__all__ = ["run"]

_GRID = np.linspace(0, 1, 201)
_ECE_NAMES = {"corpus": "word of the text", "human": "people's majority", "oracle1": "majority of oracle 1"}


def run(cfg: DictConfig, study: xr.Dataset) -> ExperimentResult:
    """Compare every model with people, as the paper's code did (``mode=legacy``) or as one should (``mode=clean``)."""
    require_scipy()
    mode = mode_of(cfg)
    tail_probability(cfg)
    players = _players(cfg, study)
    if mode == "legacy":
        from experiments.papers.tvd_legacy import run_legacy  # noqa: PLC0415 - only here

        return run_legacy(cfg, study, players)
    bayes = _bayes(cfg, study, players)
    columns = bayes.columns if bayes else {}
    table = pd.DataFrame([{**player.row, **columns.get(player.player, {})} for player in players])
    figures = {"tvd": distributions(players, cfg), "calibration": reliability(players)}
    return ExperimentResult(
        table=table,
        dataset=_dataset(study, players),
        figures=figures,
        summary=summary(table, study, players),
        warnings=bayes.warnings if bayes else (),
        gate_failed=bayes is not None and bayes.gate_failed,
        posteriors=bayes.posteriors if bayes else {},
    )


def _players(cfg: DictConfig, study: xr.Dataset) -> list[PlayerTvd]:
    models = chosen_models(cfg, study, needed=False)
    words = clean_words(cfg, study, models)
    usable = int((words.answers().totals > 1).sum())
    if usable < 2:
        raise InputError(
            f"has {usable} contexts with two answers or more once blank answers and junk are out; distances between "
            "people need at least 2",
            source=f"cloze study {study.attrs.get('name')!r}",
        )
    n_splits, n_bins = whole(cfg, "n_splits"), whole(cfg, "n_bins")
    settings = {"n_splits": n_splits, "n_bins": n_bins}
    found = [oracle_tvd(study, words, rng=rng_for(cfg, "oracles"), **settings)]
    found += [model_tvd(study, words, name, rng=rng_for(cfg, f"oracles {name}"), **settings) for name in models]
    return found


def _bayes(cfg: DictConfig, study: xr.Dataset, players: list[PlayerTvd]) -> BayesianTvd | None:
    """Bayesian TVD on a random part of each player's contexts, if asked for."""
    n_contexts = whole(cfg, "bayes.n_contexts", optional=True)
    if not n_contexts:
        return None
    from experiments.cloze.tvd.posterior import bayesian_tvd  # noqa: PLC0415

    return bayesian_tvd(cfg, study, players, n_contexts)


def _dataset(study: xr.Dataset, players: list[PlayerTvd]) -> xr.Dataset:
    n = study.sizes["item"]
    names = ("raw", "baseline", "corrected", "to_oracle", "between_oracles", "entropy", "divergence")
    stacked = {name: np.full((len(players), n), np.nan) for name in names}
    for row, player in enumerate(players):
        for name in names:
            stacked[name][row, player.items] = getattr(player, name)
    units = {"entropy": "nats", "divergence": "nats"}
    renamed = {"raw": "tvd", "baseline": "tvd_baseline", "corrected": "tvd_corrected", "to_oracle": "tvd_to_oracle"}
    return xr.Dataset(
        {
            renamed.get(name, name): (("player", "item"), values, {"units": units.get(name, "1")})
            for name, values in stacked.items()
        }
        | {"word_num": ("item", study["word_num"].to_numpy())},
        coords={
            "player": [player.player for player in players],
            "item": study["item"].to_numpy(),
            "text_id": ("item", study["text_id"].to_numpy().astype(str)),
        },
    )


def summary(table: pd.DataFrame, study: xr.Dataset, players: list[PlayerTvd]) -> str:
    """Say what the numbers mean, and show the contexts at both ends."""
    human = table[table["player"] == ORACLE].iloc[0]
    lines = [
        f"- **{label(row.player)}** ({row.n_contexts:,} contexts): TVD to people {row.tvd:.3f} "
        f"(s.e. {row.se_tvd:.3f} over texts); samples of these sizes from one distribution would differ by "
        f"{row.tvd_baseline:.3f}; to half of the people {row.tvd_to_oracle:.3f}, where the other half is at "
        f"{row.tvd_between_oracles:.3f}."
        for row in rows_of(table)
        if row.player != ORACLE
    ]
    text = (
        f"Two halves of the people who saw a context (about {human['n_answers']:.0f} answers each) differ by "
        f"{human['tvd']:.4f} on average (standard deviation over {len(players[0].split_means)} independent splits of "
        f"the mean {human['sd_between_oracles']:.4f}): TVD between small samples is biased up, and this is its floor, "
        "not zero. `tvd_corrected` takes the same-size baseline out, (TVD - baseline) / (1 - baseline): it is zero for "
        "one distribution and one for disjoint samples, and too low in between.\n\n" + "\n".join(lines)
    )
    return text + examples(study, players)


def examples(study: xr.Dataset, players: list[PlayerTvd]) -> str:
    """Table of the contexts where each model is nearest to people and farthest from them."""
    rows = []
    for player in players:
        if player.player == ORACLE:
            continue
        order = np.argsort(player.raw, kind="stable")
        for where, position in (("nearest", order[0]), ("farthest", order[-1])):
            item = int(player.items[position])
            context = str(study["context"].to_numpy()[item])[-60:].replace("|", "/")
            target = str(study["target_word"].to_numpy()[item])
            numbers = f"{player.raw[position]:.3f} | {player.between_oracles[position]:.3f}"
            rows.append(f"| {label(player.player)} | {where} | {numbers} | ...{context} | {target} |")
    if not rows:
        return ""
    head = [
        "| model | context | TVD | between oracles | text | word of the text |",
        "| --- | --- | ---: | ---: | --- | --- |",
    ]
    return "\n\n" + "\n".join([*head, *rows])


def distributions(players: list[PlayerTvd], cfg: DictConfig, *, title: str = "") -> Figure:
    """Densities over contexts of the TVD to one oracle, with means (figure 2)."""
    shown = [player for player in players if len(player.items) > 1]
    palette = colours([player.player for player in shown])
    with mpl.rc_context(STYLE):
        fig = new_figure(6.8, 0.75 + 0.62 * len(shown))
        axes = fig.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
        for ax, player in zip(axes, shown, strict=True):
            values = player.to_oracle
            density = kernel_density(values, _GRID)
            ax.fill_between(_GRID, density, color=palette[player.player], alpha=0.3, linewidth=0)
            ax.plot(_GRID, density, color=palette[player.player])
            ax.axvline(values.mean(), color=palette[player.player], linestyle="--", linewidth=1)
            ax.set_yticks([])
            ax.spines["left"].set_visible(False)
            ax.set_ylim(0, None)
            ax.set_xlim(0, 1)
            ax.text(
                1.01, 0.35, f"{label(player.player)}\nmean {values.mean():.2f}, {len(values):,} contexts",
                transform=ax.transAxes, fontsize=8, va="center", color=palette[player.player],
            )  # fmt: skip
        axes[-1].set_xlabel("TVD to one half of the people (oracle 1), density over contexts; dashed: mean")
        axes[0].set_title(title or f"Distance to people, {cfg.study.name} ({mode_of(cfg)})")
    return fig


def kernel_density(values: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Gaussian kernel density on [0, 1], reflected at both ends so that no mass is lost there."""
    spread = min(values.std(ddof=1), (np.quantile(values, 0.75) - np.quantile(values, 0.25)) / 1.349)
    width = max(0.9 * spread * len(values) ** -0.2, 0.01)
    reflected = np.concatenate([values, -values, 2 - values])
    kernels = np.exp(-0.5 * ((grid[:, None] - reflected) / width) ** 2)
    return np.asarray(kernels.sum(axis=1) / (len(values) * width * np.sqrt(2 * np.pi)))


def reliability(players: list[PlayerTvd]) -> Figure:
    """Reliability diagrams of the most probable word, one panel a gold label."""
    palette = colours([player.player for player in players])
    with mpl.rc_context(STYLE):
        fig = new_figure(8.4, 3.5)
        axes = fig.subplots(1, len(GOLD), sharey=True)
        for ax, gold in zip(axes, GOLD, strict=True):
            ax.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle="--")
            shown = []
            for player in players:
                one = player.calibration.get((gold, "fixed"))
                if one is None:
                    continue
                shown.append(one)
                full = one.count >= 5
                ax.plot(
                    one.confidence[full], one.accuracy[full], marker="o", markersize=3.5,
                    color=palette[player.player], label=label(player.player),
                )  # fmt: skip
            if not any((one.count >= 5).any() for one in shown):
                ax.text(0.5, 0.85, "no bin holds\n5 contexts", ha="center", va="center", color="0.4")
            ax.set_xlim(0, 1)
            ax.set_ylim(0, 1)
            ax.set_aspect("equal")
            ax.set_title(f"gold: {_ECE_NAMES[gold]}")
            ax.set_xlabel("confidence of the top word")
        axes[0].set_ylabel("share correct")
        handles, labels = axes[0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside lower center", ncols=4)
    return fig
