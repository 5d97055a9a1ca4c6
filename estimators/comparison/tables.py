"""One row per item, and one row per participant, of a comparison study: for regressions, with the owner's own ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shannon_game.estimators.arrays import DataFrame, Dataset
from shannon_game.estimators.comparison.gap import estimate_gap
from shannon_game.estimators.comparison.importance import drawn_responses
from shannon_game.estimators.comparison.perplexity import estimate_perplexity
from shannon_game.estimators.comparison.score import score
from shannon_game.estimators.comparison.study import COMPARISON
from shannon_game.estimators.comparison.study_sources import TARGET_POSITION, response_references
from shannon_game.estimators.comparison.terms import log_terms, player_names, response_pairs
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import HUMAN, item_labels, response_positions


def comparison_items(study: Dataset, players: Sequence[str] | None = None, **settings: Any) -> DataFrame:
    """Describe every item: how it was answered, how likely each language model finds the target, each player's gap.

    Parameters
    ----------
    players : sequence of str, optional
        All by default: ``human`` and the language models.
    **settings
        Of :func:`estimate_perplexity`: ``rounding``, ``estimator``, ``generator``, ``control_only``.

    Returns
    -------
    pandas.DataFrame
        One row per item, in the order of the study, those that nobody answered too. What is not known is NaN.

        - ``item``: the study's ``item_id``, else its label; ``context``, ``target``, ``item_set``.
        - ``n_responses``, ``n_participants``, ``mean_report`` (probability given to the target, without what the
          site answered by itself and without comparisons of two candidates).
        - ``surprisal_nats_NAME`` for each language model: -ln p(target | context).
        - ``gap_nats_NAME`` for each player: the item's loss gap to the generator, ln of the mean term of its responses;
          rough for one item, and too low with few responses.

    Examples
    --------
    >>> table = comparison.comparison_items(comparison.examples.comparison_study(), ["human"])
    >>> table.loc[:1, ["item", "n_responses", "mean_report", "surprisal_nats_lm-weak", "gap_nats_human"]].round(2)
       item  n_responses  mean_report  surprisal_nats_lm-weak  gap_nats_human
    0     0            5         0.20                    1.05            6.50
    1     1            5         0.99                    6.83           -1.53
    """
    import pandas as pd  # noqa: PLC0415 - half a second that importing estimators does not need

    study = COMPARISON.read(study)
    labels, n_items = item_labels(study), study.sizes["item"]
    position = response_positions(study)
    on_target = ~study["automatic"].to_numpy() & (response_references(study) == TARGET_POSITION)
    report = np.where(on_target, study["report"].to_numpy(), np.nan)
    answers = pd.DataFrame({"report": report, "participant": study["participant"].to_numpy()})
    by_item = answers.groupby(position).agg({"report": "mean", "participant": "nunique"}).reindex(range(n_items))
    columns: dict[str, Any] = {
        "item": labels,
        "context": study["context"].to_numpy(),
        "target": study["target_token"].to_numpy(),
        "item_set": study["item_set"].to_numpy(),
        "n_responses": np.bincount(position, minlength=n_items),
        "n_participants": by_item["participant"].fillna(0).astype(int).to_numpy(),
        "mean_report": by_item["report"].to_numpy(),
    }
    names = study["model"].to_numpy().tolist()
    columns |= {
        f"surprisal_nats_{name}": -row for name, row in zip(names, study["target_logprob"].to_numpy(), strict=True)
    }
    table = pd.DataFrame(columns)
    for player in player_names(study) if players is None else players:
        gap = estimate_perplexity(study, player, **settings).gap
        table[f"gap_nats_{player}"] = pd.Series(gap.item_gap_nats, gap.item).reindex(labels).to_numpy()
    return table


def comparison_participants(study: Dataset) -> DataFrame:
    """Describe every participant: how much they answered, how often they were right, their own gap.

    Returns
    -------
    pandas.DataFrame
        One row per participant, in the order of the study: ``participant``; ``n_responses``, ``n_items``;
        ``mean_report``, the mean probability given to the target; ``share_right``, the share of responses that favour
        it (one half counts half); ``mean_score``, points of the game (:func:`score`); ``gap_nats``, the loss gap to the
        generator of their responses alone. With one response per item ``gap_nats`` is the mean log term: it compares
        participants who answered alike, and is no loss. Pairs that the site answered by itself count in ``n_responses``
        and in the gap, as in every estimate, and in nothing else.

    Examples
    --------
    >>> table = comparison.comparison_participants(comparison.examples.comparison_study())
    >>> table[["participant", "n_responses", "share_right", "mean_score", "gap_nats"]].round(2).head(2)
      participant  n_responses  share_right  mean_score  gap_nats
    0        p000            6         0.75      -27.31     -1.63
    1        p001            6         0.75       21.67     -0.47
    """
    import pandas as pd  # noqa: PLC0415

    study, source = COMPARISON.read(study), COMPARISON.source(study)
    if not study.sizes["response"]:
        raise InputError("has no entry; nobody answered", source=source, field="response")
    study = drawn_responses(study)
    pairs = response_pairs(study)
    by_item = np.argsort(study["response_item"].to_numpy(), kind="stable")
    report = np.where(study["automatic"].to_numpy()[by_item], np.nan, pairs.report)
    right = np.where(report == 0.5, 0.5, np.where(np.isnan(report), np.nan, report > 0.5))
    table = pd.DataFrame(
        {
            "participant": pairs.participant,
            "item": pairs.item,
            "report": report,
            "right": right,
            "score": np.where(np.isnan(report), np.nan, score(pairs.report, pairs.control_logprob)),
            "term": log_terms(pairs, HUMAN),
        }
    )
    by = table.groupby("participant")
    found = by.agg(
        n_responses=("item", "size"),
        n_items=("item", "nunique"),
        mean_report=("report", "mean"),
        share_right=("right", "mean"),
        mean_score=("score", "mean"),
    )
    found["gap_nats"] = [estimate_gap(own["term"], own["item"]).gap_nats for _, own in by]
    # codes are given in the order of the items; rows stand in the order of the study
    names = list(dict.fromkeys(study["participant"].to_numpy()[by_item].tolist()))
    found.insert(0, "participant", names)
    order = pd.Index(dict.fromkeys(study["participant"].to_numpy().tolist()))
    ordered: DataFrame = found.set_index("participant").loc[order].rename_axis("participant").reset_index()
    return ordered
