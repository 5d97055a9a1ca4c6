"""The comparison game: which of two tokens was next, and how sure is the player.

One of them is the token of the text, the other one of the candidates that the generator drew. The player says how
probable it is that token A is the one, by eleven values or on a slider in log-odds, and earns the score of
:mod:`shannon_game.estimators.comparison.score`. A report on the slider is stored as a box of the rounding scheme
``slider``, and as the probability that this box has there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shannon_game.estimators.comparison import optimal_report, round_reports, rounding_scheme, score
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Ask
from shannon_game.experiments.collect.games.protocol import CHECK, Content, FormError, Game, QuestionRow, Reading, Steps
from shannon_game.experiments.collect.games.texts import item_places, marked_cuts, texts_of

if TYPE_CHECKING:
    import xarray as xr

    from shannon_game.experiments.collect.settings import CollectSettings

PERCENTS = (99, 90, 80, 70, 60, 50, 40, 30, 20, 10, 1)
"""Probabilities that token A is the one, as they can be given by eleven values."""
SLIDER = "slider"
"""Name of the rounding scheme; content and view of a question that is answered on it have it as ``scale``."""

_BOXES = rounding_scheme(SLIDER).values
_HALF = len(_BOXES) // 2
STEP_NATS = float(np.log(_BOXES[-1] / _BOXES[0]) / _HALF)
"""Log-odds between two places of the slider."""
_AT_THE_END = 5  # boxes from an end that are the end to an attention check


class Comparison(Game):
    """Which of two tokens came next."""

    name = "comparison"
    columns = ("candidate", "candidate_position", "target_side", "percent_a", "box_a", "report")
    field = "report"
    kind = "comparison"
    earns = "points"
    goes_on = False
    shows_signs = True

    def rows(self, content: Content, layout: Content, value: Content, _steps: Steps, /) -> list[dict[str, Any]]:
        """Make a row with what was shown and reported; an attention check has no target."""
        shown = content["candidates"][layout["candidate"]]
        known = "report" in value or "percent_target" in value
        row = {"candidate": shown["token"], "candidate_position": shown["position"]}
        row |= {"target_side": layout["target_side"], "percent_a": value.get("percent_a"), "box_a": value.get("box_a")}
        return [row | {"report": report_of(value) if known else None}]

    def given(self, value: Content, /) -> str:
        """The box or the percentage that was chosen."""
        return str(value["box_a" if "box_a" in value else "percent_a"])

    def questions(self, study: xr.Dataset, settings: CollectSettings, /) -> list[QuestionRow]:
        """Make a question of every selected item of a comparison study; its candidates keep their positions."""
        source = f"study {study.attrs.get('name')!r}"
        if "candidate_token" not in study:
            problem = f"has no candidates, which the comparison game needs; {Ask('build_study')} draws some"
            raise InputError(problem, source=source, field="game")
        models = study["model"].values.tolist()
        places = list(item_places(study))
        drawn = study["candidate_source"].values if "candidate_source" in study else None
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
                **places[at].content,
                "target_logprob": {model: float(of_target[which, at]) for which, model in enumerate(models)},
                "generator": study.attrs["generator"],
                "candidates": candidates[: settings.candidates],
                **({"scale": SLIDER} if settings.scale == SLIDER else {}),
            }
            if candidates:
                rows.append(replace(places[at], content=content))
        if not rows:
            raise InputError("has no item with a candidate", source=source, field="candidate_token")
        return marked_cuts(rows, texts_of(study))

    def practised(self, content: Content, other: str, settings: CollectSettings, /) -> Content:
        """Set the right token beside one that does not fit; points as if a model gave the right one 10%."""
        own, drawn, none = f" {content['target']}", {"token": f" {other}", "position": 0}, float(np.log(0.01))
        its: dict[str, Any] = {"target": own, "generator": "", "target_logprob": {"": float(np.log(0.1))}}
        its |= {"candidates": [{**drawn, "logprob": {"": none}}]}
        return {**content, **its, **({"scale": SLIDER} if settings.scale == SLIDER else {})}

    def attention_check(self, content: Content, number: int, /) -> Content:
        """Ask for one end of the scale, in words; of the slider for the side."""
        ends = ("A", "B") if content.get("scale") == SLIDER else (PERCENTS[0], PERCENTS[-1])
        return {**content, CHECK: ends[number % 2]}

    def layout(self, content: Content, n_served: int, rng: np.random.Generator, /) -> dict[str, Any]:
        """Take the candidates one after the other, and each side for one of two players in a row.

        Candidates are independent draws, so that the first ones are too; nobody can know the side, because which of the
        two comes first is random.
        """
        first = int(rng.integers(2))
        return {"candidate": n_served % len(content["candidates"]), "target_side": "AB"[(first + n_served) % 2]}

    def automatic(self, content: Content, layout: Content, /) -> Reading | None:
        """Answer 50% where both options are the same string."""
        if CHECK in content or _candidate(content, layout)["token"] != content["target"]:
            return None
        if content.get("scale") == SLIDER:
            return Reading({"box_a": _HALF, "box_target": _HALF, "report": 0.5}, score=0.0)
        return Reading({"percent_a": 50, "percent_target": 50}, score=0.0)

    def view(self, content: Content, layout: Content, _steps: Steps, /) -> dict[str, Any]:
        """Context, the two options by side, the values that can be given."""
        options = _options(content, layout)
        return {
            "context": content["context"],
            "a": options["A"],
            "b": options["B"],
            "percents": list(PERCENTS),
            "scale": content.get("scale"),
            "most": _HALF,
            "step_nats": STEP_NATS,
            "check": content.get(CHECK),
        }

    def read(self, content: Content, layout: Content, _steps: Steps, form: Mapping[str, str], /) -> Reading:
        """Read ``report``: one of the percentages, or steps of the slider from the middle towards B.

        A page without a script sends what was typed for a slider as ``percent``.
        """
        given, on_slider = form.get("report", ""), content.get("scale") == SLIDER
        if on_slider and not given:
            given = _steps_of(form.get("percent", "").strip())
        if not given:
            raise FormError("error.no_choice")
        if on_slider:
            if not re.fullmatch(r"-?[0-9]{1,3}", given, re.ASCII) or abs(int(given)) > _HALF:
                raise FormError("error.unknown_choice")
            box_a = _HALF - int(given)
            value: dict[str, Any] = {"box_a": box_a}
            passed = min(box_a, 2 * _HALF - box_a) < _AT_THE_END and (box_a > _HALF) == (content.get(CHECK) == "A")
        else:
            if given not in map(str, PERCENTS):
                raise FormError("error.unknown_choice")
            value = {"percent_a": int(given)}
            passed = int(given) == content.get(CHECK)
        if CHECK in content:
            return Reading(value, correct=passed)
        is_a = layout["target_side"] == "A"
        if on_slider:
            box = box_a if is_a else 2 * _HALF - box_a
            value |= {"box_target": box, "report": _BOXES[box]}
        else:
            value |= {"percent_target": int(given) if is_a else 100 - int(given)}
        report = report_of(value)
        points = float(score(report, content["target_logprob"][content["generator"]]))
        return Reading(value, correct=None if report == 0.5 else report > 0.5, score=points)

    def feedback(self, content: Content, layout: Content, _steps: Steps, value: Content, /) -> dict[str, Any]:
        """The right side, the score with its factors, and what every model of the study would have given and earned."""
        options, candidate, is_a = _options(content, layout), _candidate(content, layout), layout["target_side"] == "A"
        of_generator = content["target_logprob"][content["generator"]]

        def shown(report: float) -> dict[str, float]:
            of_target = round(100 * report, 2)
            return {
                "percent_a": of_target if is_a else round(100 - of_target, 2),
                "score": float(score(report, of_generator)),
            }

        models = []
        for name, of_target in content["target_logprob"].items():
            best = float(optimal_report(of_target, candidate["logprob"][name]))
            rounded = round_reports([best], rounding_scheme(content.get("scale", "interface")))
            models.append({"name": name, **shown(float(rounded[0]))})
        report = report_of(value)
        return {
            "a": options["A"],
            "b": options["B"],
            "target_side": layout["target_side"],
            **shown(report),
            "percent_target": round(100 * report, 2),
            "generator_probability": float(np.exp(of_generator)),
            "models": models,
        }


def report_of(value: Content) -> float:
    """Probability that was given to the target, in an answer as it is stored."""
    return float(value["report"] if "report" in value else value["percent_target"] / 100)


def _steps_of(percent: str) -> str:
    """Steps of the slider that are nearest, in log-odds, to a probability of A that was typed in percent."""
    if not percent:
        return ""
    if not re.fullmatch(r"[0-9]{1,3}([.,][0-9]{1,9})?", percent, re.ASCII) or float(percent.replace(",", ".")) > 100:
        raise FormError("error.percent")
    share = float(percent.replace(",", ".")) / 100
    with np.errstate(divide="ignore"):
        steps = (np.log1p(-share) - np.log(share)) / STEP_NATS
    return str(round(float(np.clip(steps, -_HALF, _HALF))))


def _candidate(content: Content, layout: Content) -> dict[str, Any]:
    candidate: dict[str, Any] = content["candidates"][layout["candidate"]]
    return candidate


def _options(content: Content, layout: Content) -> dict[str, str]:
    target, other = content["target"], _candidate(content, layout)["token"]
    return {"A": target, "B": other} if layout["target_side"] == "A" else {"A": other, "B": target}
