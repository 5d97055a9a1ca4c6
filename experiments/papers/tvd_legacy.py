"""``+exp=tvd mode=legacy``: every number of the paper's code, beside the clean one and the paper's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr
from omegaconf import DictConfig

from experiments.cloze.settings import ORACLE
from experiments.cloze.tvd.results import PlayerTvd
from experiments.harness.outputs import ExperimentResult
from experiments.harness.tables import markdown_table
from experiments.papers.provo_legacy import LegacyResults, legacy_results, published_table, stored_comparison

__all__ = ["run_legacy"]


def run_legacy(cfg: DictConfig, study: xr.Dataset, clean: list[PlayerTvd]) -> ExperimentResult:
    """Table of published, legacy and clean values; the stored lists compared element by element."""
    from experiments.cloze.tvd.experiment import distributions  # noqa: PLC0415 - it imports this module

    results = legacy_results(study)
    table = legacy_table(results, clean)
    lists = stored_comparison(study, results)
    off = lists[lists["largest_difference"] > 1e-6]
    warnings = tuple(f"stored list {name} differs by more than 1e-6" for name in off["list"])
    text = (
        f"{len(table)} published numbers. `legacy` repeats the paper's code, `clean` treats the words of both sides "
        "alike, drops what is no word, and splits people at random for every context by itself. "
        f"{len(lists)} stored lists were computed again from the public samples, {int(lists['n_compared'].sum()):,} "
        f"values; the largest difference is {lists['largest_difference'].max():.1e} (single precision).\n\n"
        + markdown_table(lists)
        + "\n\nStored only, as their samples are not public (appendix D compares tokens in place of words):\n\n"
        + markdown_table(stored_only(study, results))
    )
    shown = [replace(player, to_oracle=_legacy_values(results, player)) for player in clean]
    shown = [player for player in shown if len(player.to_oracle)]
    figure = distributions([replace(player, items=np.arange(len(player.to_oracle))) for player in shown], cfg)
    dataset = xr.Dataset(
        {"value": ("quantity", table["legacy"].to_numpy())}, coords={"quantity": table["quantity"].to_list()}
    )

    def write_lists(folder: Path) -> None:
        folder.mkdir()
        lists.to_csv(folder / "stored_lists.csv", index=False, lineterminator="\n")

    return ExperimentResult(table, dataset, {"tvd": figure}, text, warnings, files={"tables": write_lists})


_LISTS = {
    ORACLE: "TVD_oracle/tvd_oracle2_oracle1",
    "gpt2": "TVD_gpt2/tvd_gpt2_oracle",
    "gpt2-ft": "TVD_GPT2_FT/tvd_gpt2_oracle_fine_tuned",
    "gpt2-t0.5": "TVD_GPT2_temp/tvd_bloom_oracle",
    "bloom": "TVD_Bloom/tvd_bloom_oracle",
    "chatgpt": "TVD_chatgpt/temp_1/tvd_chatgpt_oracle",
    "chatgpt-2": "TVD_chatgpt/temp_2/tvd_chatgpt_oracle",
    "chatgpt-diverse": "TVD_chatgpt/diverse/tvd_chatgpt_oracle",
}


def _legacy_values(results: LegacyResults, player: PlayerTvd) -> np.ndarray:
    values = results.lists.get(_LISTS.get(player.player, ""), np.array([]))
    return values[~np.isnan(values)]


def stored_only(study: xr.Dataset, results: LegacyResults) -> pd.DataFrame:
    """Means of the stored lists that no public sample gives again; of the improved ones only those of share 0."""
    values, which = study["result_value"].to_numpy(), study["result_list"].to_numpy()
    rows = []
    for code, name in enumerate(study["result_name"].to_numpy().tolist()):
        computed = results.lists.get(name)
        improved = name.startswith("cal_metrics_improved_model") and "/0/" not in name
        if improved or (computed is not None and not np.isnan(computed).all()):
            continue
        mine = values[which == code]
        rows.append({"list": name, "n_stored": len(mine), "mean": float(mine.mean())})
    return pd.DataFrame(rows, columns=["list", "n_stored", "mean"])


def legacy_table(results: LegacyResults, clean: list[PlayerTvd]) -> pd.DataFrame:
    """``quantity``, ``legacy``, ``published_legacy``, ``difference``, ``paper``, ``clean``, ``note``."""
    published = published_table().set_index("quantity")
    known = {player.player: player for player in clean}
    quantities = [*published.index, *(name for name in results.numbers if name not in published.index)]
    rows = []
    for name in quantities:
        legacy = results.numbers.get(name, np.nan)
        stated = published.loc[name] if name in published.index else None
        rows.append(
            {
                "quantity": name,
                "legacy": legacy,
                "published_legacy": np.nan if stated is None else stated["legacy"],
                "difference": np.nan if stated is None else legacy - stated["legacy"],
                "paper": np.nan if stated is None else stated["paper"],
                "clean": _clean_value(name, known),
                "note": "" if stated is None else stated["note"],
            }
        )
    return pd.DataFrame(rows)


def _clean_value(name: str, players: dict[str, PlayerTvd]) -> float:
    kind, _, rest = name.partition("/")
    player, _, what = rest.partition("/")
    if kind == "tvd" and player == "oracle2-oracle1" and ORACLE in players:
        oracle = players[ORACLE]
        return float(oracle.split_means.std(ddof=1) if what.endswith("sd") else oracle.split_means.mean())
    if player not in players:
        return float("nan")
    row = players[player].row
    if kind == "tvd":
        return float("nan") if what else float(row["tvd"])
    return float(row[f"ece_{what}_fixed"])
