"""The comparison game: which of two tokens was next, and how sure is the player.

One of them is the token of the text, the other one of the candidates that the generator drew. The player says how
probable it is that token A is the one, by eleven values, and earns the score of
:mod:`shannon_game.estimators.comparison.score`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from shannon_game.estimators.comparison import optimal_report, round_reports, rounding_scheme, score
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_labels
from shannon_game.experiments.collect.games.protocol import CHECK, Content, FormError, QuestionRow, Reading, Steps
from shannon_game.experiments.collect.games.texts import marked_cuts, texts_of

if TYPE_CHECKING:
    import xarray as xr

    from shannon_game.experiments.collect.settings import CollectSettings

__all__ = ["PERCENTS", "attention_check", "automatic", "feedback", "layout", "questions", "read", "view"]

PERCENTS = (99, 90, 80, 70, 60, 50, 40, 30, 20, 10, 1)
"""Probabilities that token A is the one, as they can be given."""


def questions(study: xr.Dataset, settings: CollectSettings) -> list[QuestionRow]:
    """Make a question of every selected item of a comparison study; its candidates keep their positions.

    Examples
    --------
    >>> from shannon_game.estimators.comparison.examples import comparison_study
    >>> from shannon_game.experiments.collect.settings import CollectSettings
    >>> row = questions(comparison_study(), CollectSettings())[0]
    >>> row.content["target"], row.content["candidates"][1]["token"]
    (',', 'crock')
    """
    source = f"study {study.attrs.get('name')!r}"
    if "candidate_token" not in study:
        problem = "has no candidates, which the comparison game needs; +exp=build_study draws some"
        raise InputError(problem, source=source, field="game")
    models = study["model"].values.tolist()
    names = item_labels(study).astype(str).tolist()
    documents = study["document"].values.tolist() if "document" in study else [""] * len(names)
    positions = study["target_position"].values.tolist() if "target_position" in study else list(range(len(names)))
    drawn = study["candidate_source"].values if "candidate_source" in study else None
    contexts, targets = study["context"].values.tolist(), study["target_token"].values.tolist()
    of_target, of_candidates = study["target_logprob"].values, study["candidate_logprob"].values
    rows = []
    for at in np.flatnonzero(study["selected"].values).tolist():
        candidates = [
            {
                "token": token,
                "position": place,
                "logprob": {model: float(of_candidates[which, at, place]) for which, model in enumerate(models)},
                # free answers and draws of other proposals are told apart when the answers are loaded
                **({} if drawn is None else {"source": str(drawn[at, place])}),
            }
            for place, token in enumerate(study["candidate_token"].values[at].tolist())
            if drawn is None or drawn[at, place] != "padding"
        ]
        content = {
            "context": contexts[at],
            "target": targets[at],
            "target_logprob": {model: float(of_target[which, at]) for which, model in enumerate(models)},
            "generator": study.attrs["generator"],
            "candidates": candidates[: settings.candidates],
        }
        if candidates:
            rows.append(QuestionRow(names[at], content, str(documents[at]), int(positions[at])))
    if not rows:
        raise InputError("has no item with a candidate", source=source, field="candidate_token")
    return marked_cuts(rows, texts_of(study))


def attention_check(content: Content, number: int) -> Content:
    """Ask for one end of the scale, in words.

    Examples
    --------
    >>> attention_check({"context": "Call me", "target": " Ishmael"}, 0)["check"]
    99
    """
    return {**content, CHECK: PERCENTS[0] if number % 2 == 0 else PERCENTS[-1]}


def layout(content: Content, n_served: int, rng: np.random.Generator) -> dict[str, Any]:
    """Take the candidates one after the other, and each side for one of two players in a row.

    Candidates are independent draws, so that the first ones are too; nobody can know the side, because which of the
    two comes first is random.

    Examples
    --------
    >>> import numpy as np
    >>> content = {"candidates": [{"token": " a"}, {"token": " b"}]}
    >>> [layout(content, n, np.random.default_rng(0)) for n in (0, 1)]
    [{'candidate': 0, 'target_side': 'B'}, {'candidate': 1, 'target_side': 'A'}]
    """
    first = int(rng.integers(2))
    return {"candidate": n_served % len(content["candidates"]), "target_side": "AB"[(first + n_served) % 2]}


def automatic(content: Content, layout: Content) -> Reading | None:
    """Answer 50% where both options are the same string.

    Examples
    --------
    >>> content = {"target": " a", "candidates": [{"token": " a"}, {"token": " b"}]}
    >>> automatic(content, {"candidate": 0, "target_side": "A"}).value
    {'percent_a': 50, 'percent_target': 50}
    >>> automatic(content, {"candidate": 1, "target_side": "A"}) is None
    True
    """
    if CHECK in content or _candidate(content, layout)["token"] != content["target"]:
        return None
    return Reading({"percent_a": 50, "percent_target": 50}, score=0.0)


def view(content: Content, layout: Content, steps: Steps) -> dict[str, Any]:
    """Context, the two options by side, the values that can be given.

    Examples
    --------
    >>> content = {"context": "Call me", "target": " Ishmael", "candidates": [{"token": " a"}]}
    >>> seen = view(content, {"candidate": 0, "target_side": "B"}, [])
    >>> seen["a"], seen["b"]
    (' a', ' Ishmael')
    """
    del steps
    options = _options(content, layout)
    return {
        "context": content["context"],
        "a": options["A"],
        "b": options["B"],
        "percents": list(PERCENTS),
        "check": content.get(CHECK),
    }


def read(content: Content, layout: Content, steps: Steps, form: Mapping[str, str]) -> Reading:
    """Read ``report``, one of the percentages.

    Examples
    --------
    >>> import math
    >>> candidate = {"token": " a", "logprob": {"lm": math.log(0.1)}}
    >>> content = {"target": " b", "generator": "lm", "target_logprob": {"lm": math.log(0.2)}}
    >>> content |= {"candidates": [candidate]}
    >>> reading = read(content, {"candidate": 0, "target_side": "B"}, [], {"report": "10"})
    >>> reading.value, round(reading.score, 1), reading.correct
    ({'percent_a': 10, 'percent_target': 90}, 117.6, True)
    """
    del steps
    given = form.get("report", "")
    if not given:
        raise FormError("error.no_choice")
    if given not in map(str, PERCENTS):
        raise FormError("error.unknown_choice")
    percent = int(given)
    if CHECK in content:
        return Reading({"percent_a": percent}, correct=percent == content[CHECK])
    of_target = percent if layout["target_side"] == "A" else 100 - percent
    points = float(score(of_target / 100, content["target_logprob"][content["generator"]]))
    correct = None if of_target == 50 else of_target > 50
    return Reading({"percent_a": percent, "percent_target": of_target}, correct=correct, score=points)


def feedback(content: Content, layout: Content, steps: Steps, value: Content) -> dict[str, Any]:
    """The right side, the score with its factors, and what every model of the study would have given and earned.

    Examples
    --------
    >>> import math
    >>> candidate = {"token": " a", "logprob": {"lm": math.log(0.1)}}
    >>> content = {"target": " b", "generator": "lm", "target_logprob": {"lm": math.log(0.3)}}
    >>> content |= {"candidates": [candidate]}
    >>> value = {"percent_a": 10, "percent_target": 90}
    >>> shown = feedback(content, {"candidate": 0, "target_side": "B"}, [], value)
    >>> shown["target_side"], round(shown["generator_probability"], 2), shown["models"][0]["percent_a"]
    ('B', 0.3, 20)
    """
    del steps
    options, candidate = _options(content, layout), _candidate(content, layout)
    of_generator = content["target_logprob"][content["generator"]]
    models = []
    for name, of_target in content["target_logprob"].items():
        report = float(optimal_report(of_target, candidate["logprob"][name]))
        rounded = float(round_reports([report], rounding_scheme("interface"))[0])
        percent = round(100 * rounded)
        percent_a = percent if layout["target_side"] == "A" else 100 - percent
        models.append({"name": name, "percent_a": percent_a, "score": float(score(percent / 100, of_generator))})
    return {
        "a": options["A"],
        "b": options["B"],
        "target_side": layout["target_side"],
        "percent_a": value["percent_a"],
        "percent_target": value["percent_target"],
        "generator_probability": float(np.exp(of_generator)),
        "score": float(score(value["percent_target"] / 100, of_generator)),
        "models": models,
    }


def _candidate(content: Content, layout: Content) -> dict[str, Any]:
    candidate: dict[str, Any] = content["candidates"][layout["candidate"]]
    return candidate


def _options(content: Content, layout: Content) -> dict[str, str]:
    target, other = content["target"], _candidate(content, layout)["token"]
    return {"A": target, "B": other} if layout["target_side"] == "A" else {"A": other, "B": target}
