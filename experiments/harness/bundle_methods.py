"""A paragraph for the methods section, from the settings and results of one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from estimators.code_identity import package_version
from estimators.layout import HUMAN
from experiments.harness.figures import player_label
from experiments.harness.tables import cell_text

if TYPE_CHECKING:
    import xarray as xr

    from experiments.harness.result import ExperimentResult
    from inference.settings import Settings

__all__ = ["methods_paragraph", "results_sentences"]

# what a row of a table says first: column, ends of its interval, and its words
_QUANTITIES = (
    ("perplexity_median", "perplexity_posterior_lower", "perplexity_posterior_upper", "perplexity (posterior median)"),
    ("perplexity", "perplexity_lower", "perplexity_upper", "perplexity"),
    ("accuracy", "lower", "upper", "top-1 accuracy"),
    ("tvd", "", "", "total variation distance (TVD) to people"),
    ("loss_nats", "loss_lower_nats", "loss_upper_nats", "loss (nats)"),
    ("approximate_perplexity", "", "", "approximate perplexity"),
)
_MOST_ROWS = 12


def methods_paragraph(
    study: xr.Dataset, result: ExperimentResult, settings: Settings | None = None, *, experiment: str = ""
) -> str:
    """Say what was asked, of whom, how it was estimated, and what came out, in plain English."""
    given = {} if settings is None else settings.model_dump(mode="json")
    described = next((text for variable, text in _DATA.items() if variable in study), None)
    data = f"The study {study.attrs.get('name', '')!r} was read." if described is None else described(study)
    named = f" (experiment `{experiment}`)" if experiment else ""
    how = " ".join(
        [*_estimator(study, given), *_distance(result), *_rounding(given), *_posterior(result, given), *_seed(given)]
    )
    made = f"The analysis was made with Shannon game {package_version()}{named}."
    doubts = [f"- {text}" for text in result.warnings]
    parts = ["# Methods", f"{data} {how} {made}", "## Results", *results_sentences(result.table)]
    parts += ["## To be said with them", "\n".join(doubts)] if doubts else []
    return "\n\n".join(parts) + "\n"


def results_sentences(table: pd.DataFrame) -> list[str]:
    """Write one line a row on what the table is about; nothing where it is about none of the quantities known.

    Examples
    --------
    >>> table = pd.DataFrame({"player": ["human"], "perplexity": [9.61], "perplexity_lower": [7.91],
    ...                       "perplexity_upper": [11.67]})
    >>> results_sentences(table)
    ['- humans: perplexity 9.61 [7.91, 11.67]']
    """
    for value, low, high, words in _QUANTITIES:
        if value in table and table[value].notna().any():
            lines = []
            for row in table.to_dict("records")[:_MOST_ROWS]:
                ends = (
                    "" if low not in row or pd.isna(row[low]) else f" [{cell_text(row[low])}, {cell_text(row[high])}]"
                )
                ends += "" if row.get("converged", True) else " (did not converge)"
                if not pd.isna(row[value]):
                    lines.append(f"- {_row_name(row)}: {words} {cell_text(row[value])}{ends}")
            more = len(table) - _MOST_ROWS
            lines += [f"- and {more} rows more in tables/table.csv"] if more > 0 else []
            return ["\n".join(lines)]
    return [f"tables/table.csv has {len(table)} rows with {len(table.columns)} columns."]


def _row_name(row: Mapping[Any, Any]) -> str:
    if isinstance(row.get("what"), str) and row["what"]:
        return str(row["what"])
    name = str(row.get("player", row.get("name", "row")))
    rounding = row.get("rounding")
    how = "reports as given" if rounding == "none" else f"reports rounded to the grid {rounding!r}"
    label = "half of the people" if name == "half_of_people" else player_label(name)
    return f"{label}, {how}" if isinstance(rounding, str) and rounding else label


def _people(study: xr.Dataset) -> str:
    if "participant" not in study:
        return "People"
    n = len(np.unique(study["participant"].to_numpy().astype(str)))
    return f"{n:,} people" if n != 1 else "One person"


def _comparison(study: xr.Dataset) -> str:
    n_items = len(np.unique(study["response_item"].to_numpy()))
    models = [player_label(str(name)) for name in study["model"].to_numpy() if name != HUMAN]
    return (
        f"{_people(study)} gave {study.sizes['response']:,} answers to {n_items:,} contexts. In every answer they "
        "reported how probable the token of the text is, beside one token that the language model "
        f"{player_label(str(study.attrs.get('generator')))} drew in the same context. Language models compared: "
        f"{', '.join(models)}."
    )


def _cloze(study: xr.Dataset) -> str:
    count = study["response_count"].to_numpy().sum() if "response_count" in study else None
    n_answers = "answers" if count is None else f"{int(count):,} answers"
    models = study["model"].to_numpy().astype(str).tolist() if "model" in study else []
    compared = f" The same contexts were given to {', '.join(map(player_label, models))}." if models else ""
    return (
        f"{_people(study)} continued {study.sizes['item']:,} contexts by one word each, {n_answers} in all.{compared}"
    )


def _guesses(study: xr.Dataset) -> str:
    return (
        f"{_people(study)} guessed the next token at {study.sizes['item']:,} places of {study.sizes['document']:,} "
        f"documents, {study.sizes['response']:,} guesses in all."
    )


def _bets(study: xr.Dataset) -> str:
    return (
        f"{_people(study)} placed stakes on the next word at {study.sizes['item']:,} places, "
        f"{study.sizes['response']:,} answers that name {study.sizes['bet']:,} words. What they did not stake on a "
        "word was a stake on any other word."
    )


def _rankings(study: xr.Dataset) -> str:
    models = list(dict.fromkeys(study["model"].to_numpy().astype(str).tolist()))
    lengths = np.unique(study["context_length"].to_numpy()).tolist()
    return (
        f"{', '.join(map(player_label, models))} ranked the next tokens at {study.sizes['token']:,} places, after "
        f"{', '.join(f'{length:,}' for length in lengths)} tokens of context."
    )


def _documents(study: xr.Dataset) -> str:
    return f"{study.sizes.get('document', 0):,} documents were read."


_DATA: Mapping[str, Callable[[xr.Dataset], str]] = {
    "report": _comparison,
    "word_text": _cloze,
    "correct": _guesses,
    "bet_hit": _bets,
    "ranked_token": _rankings,
    "document": _documents,
}


def _estimator(study: xr.Dataset, given: Mapping[str, Any]) -> list[str]:
    own = given.get("estimator")
    if not isinstance(own, dict) or "report" not in study:
        return []
    bars = "items" if own.get("uncertainty") == "items" else "answers"
    if own.get("log_mean"):
        mean = f"a log-mean of our own ({own['log_mean']}) of the likelihood ratios of its answers"
    else:
        mean = (
            "ln of the mean likelihood ratio of its answers (equation 5 of Shlegeris et al. 2022, arXiv:2212.11281; "
            f"estimator {own.get('name')!r})"
        )
    return [
        f"The loss of a player minus that of the model that drew the tokens is the mean over contexts of {mean}; its "
        f"intervals are {own.get('n_se', 2):g} standard errors to both sides, from the spread of {bars}. Perplexity is "
        "exp(loss)."
    ]


def _distance(result: ExperimentResult) -> list[str]:
    if "tvd" not in result.table:
        return []
    return [
        "The distance between two distributions of next words is the total variation distance (TVD), half of the sum "
        "of the absolute differences of their probabilities, taken by context from shares of answers and averaged. "
        "Between small samples it is biased up; two random halves of the people who answered a context show how much."
    ]


def _rounding(given: Mapping[str, Any]) -> list[str]:
    own = given.get("rounding")
    name = own.get("name") if isinstance(own, dict) else own
    return [] if not name or name == "none" else [f"Language models' reports were rounded to the grid {name!r}, too."]


def _posterior(result: ExperimentResult, given: Mapping[str, Any]) -> list[str]:
    sampler, gate = given.get("sampler"), given.get("gate")
    if not isinstance(sampler, dict) or "converged" not in result.table:
        return []
    limits = gate if isinstance(gate, dict) else {}
    accepted = (
        f" A posterior counts as converged with R-hat up to {limits.get('r_hat')}, effective sample sizes of "
        f"{limits.get('ess_bulk')} (bulk) and {limits.get('ess_tail')} (tail), and at most {limits.get('divergent')} "
        "divergent transitions"
        if limits
        else " Convergence was checked"
    )
    flags = result.table["converged"].dropna()
    method = "Hamiltonian Monte Carlo" if sampler.get("name") == "hmc" else f"NUTS ({sampler.get('name')})"
    said = f"; {int(flags.astype(bool).sum())} of {len(flags)} did."
    drawn = (
        f"Posteriors were drawn by {method}: {sampler.get('chains')} chains of {sampler.get('draws'):,} draws "
        f"after {sampler.get('tune'):,} of warm-up"
    )
    return [
        f"{drawn}. Intervals hold {given.get('interval', 0.9):.0%} of the posterior, with equal tails.{accepted}{said}"
    ]


def _seed(given: Mapping[str, Any]) -> list[str]:
    return [f"The seed of the random numbers was {given['seed']}."] if "seed" in given else []
