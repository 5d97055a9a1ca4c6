"""A comparison study of a collection: candidates from the questions, reports, and free answers on the same contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import xarray as xr

from shannon_game.estimators.comparison import validate_comparison_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import item_labels
from shannon_game.experiments.collect.games.cloze import JOINER, same_word
from shannon_game.experiments.studies.collected.answers import SOURCE, Collected, response_variables
from shannon_game.experiments.studies.comparison.file import comparison_file
from shannon_game.experiments.studies.comparison.table import comparison_study
from shannon_game.experiments.studies.comparison.table_columns import CANDIDATE, TARGET
from shannon_game.experiments.studies.parsing import Note
from shannon_game.inference.settings import UserPath
from shannon_game.inference.text.reading import BLANKS

_UNKNOWN = -1e4
"""ln p of what was answered, for models whose whole distribution the study does not hold."""


def collected_comparisons(found: Collected, served: UserPath | None) -> xr.Dataset:
    """Make a comparison study of what a database holds."""
    answered = set() if found.free_answers is None else {_place(text) for text in found.free_answers["context"]}
    # what was set aside for the training of one game was asked in the other one
    questions = [*found.questions, *(each for each in found.aside if _place(each["context"]) in answered)]
    free, lost = _free_answers(found.free_answers, questions)
    whole = None if served is None else comparison_file(path=served)
    if free is not None and whole is not None and "reference_logprob" in whole:
        questions = _with_answers(questions, free, whole)
    pairs = candidate_rows(questions)
    answers = pd.DataFrame(
        {
            "item": found.answers["item"],
            "draw": found.answers["candidate_position"].astype(int),
            "participant": found.answers["participant"],
            "report": found.answers["report"].astype(float),
        }
    )
    generator = found.questions[0]["generator"]
    study = comparison_study(answers, pairs, generator=generator, free_answers=free, name=found.name)
    unknown = (study["candidate_logprob"] == _UNKNOWN) & (study["model"] != generator)
    study["candidate_logprob"] = study["candidate_logprob"].where(~unknown)
    side = found.answers["target_side"].to_numpy(dtype=object)
    study = study.assign(response_variables(found.answers) | {"target_side": ("response", side)})
    if lost:
        found.notes.append(Note("answers of the cloze game on contexts that no comparison has, not used here", lost))
    return validate_comparison_study(study if whole is None else _with_served(study, whole, f"{SOURCE}, {served}"))


def candidate_rows(questions: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Make a table of the candidates of questions, as a table of one's own has them."""
    rows = []
    for question in questions:
        of_item = {"item": question["item"], "context": question["context"], "target": question["target"]}
        of_item |= {TARGET + model: value for model, value in question["target_logprob"].items()}
        for candidate in question["candidates"]:
            row = of_item | {"draw": candidate["position"], "candidate": candidate["token"]}
            row |= {CANDIDATE + model: value for model, value in candidate["logprob"].items()}
            rows.append(row | ({"source": candidate["source"]} if "source" in candidate else {}))
    return pd.DataFrame(rows)


def _free_answers(
    typed: pd.DataFrame | None, questions: Sequence[Mapping[str, Any]]
) -> tuple[pd.DataFrame | None, int]:
    """Words of the cloze game on contexts of comparisons, as the comparisons write them; and how many are on others."""
    if typed is None or typed.empty:
        return None, 0
    at = {(question["document"], _place(question["context"])): question for question in questions}
    rows = []
    for document, context, participant, word in zip(
        typed["document"], typed["context"], typed["participant"], typed["word"], strict=True
    ):
        question = at.get((document, _place(context)))
        if question is not None:
            token = read_token(word, question)
            rows.append({"item": question["item"], "participant": participant, "answer": token, "batch": 1})
    lost = len(typed) - len(rows)
    return (pd.DataFrame(rows) if rows else None), lost


def _place(context: str) -> str:
    return context.rstrip(" ")


def read_token(word: str, question: Mapping[str, Any]) -> str:
    """Find the token that a typed word is: the target, or a candidate, whose letters it has; else the word itself.

    A line break may be typed as the sign that pages show for it, and a joiner before what no blank begins.
    """
    typed = word.strip()
    if typed.startswith(JOINER):
        return typed[1:].translate(BLANKS)
    tokens = [question["target"], *(candidate["token"] for candidate in question["candidates"])]
    blanks = typed.translate(BLANKS)
    # a word as it was typed first, then in other letter case; a token without a blank before it begins no word
    written = [token for token in tokens if token == f" {blanks}"]
    written += [token for token in tokens if token.startswith(" ") and same_word(typed, token)]
    written += [token for token in tokens if token == blanks]
    return str(written[0]) if written else f" {typed}"


def _with_answers(questions: Sequence[dict[str, Any]], free: pd.DataFrame, served: xr.Dataset) -> list[dict[str, Any]]:
    generator = served.attrs["generator"]
    place = {token: at for at, token in enumerate(served["token"].to_numpy().tolist())}
    row = {name: at for at, name in enumerate(item_labels(served).astype(str).tolist())}
    logprob, by_item = served["reference_logprob"].to_numpy(), free.groupby("item")["answer"].unique()
    found = []
    for question in questions:
        known = [{"source": "generator"} | candidate for candidate in question["candidates"]]
        tokens = {question["target"], *(candidate["token"] for candidate in known)}
        for token in by_item.get(question["item"], ()):
            if token not in tokens and token in place and question["item"] in row:
                own = float(min(logprob[row[question["item"]], place[token]], 0.0))
                others = dict.fromkeys(question["target_logprob"], _UNKNOWN)
                known.append(
                    {"position": len(known), "token": token, "logprob": others | {generator: own}, "source": "answer"}
                )
        found.append(question | {"candidates": known})
    return found


def _with_served(study: xr.Dataset, served: xr.Dataset, source: str) -> xr.Dataset:
    """Add what the study that was served says of items, candidates and tokens, and the database does not hold."""
    names = item_labels(served).astype(str).tolist()
    wanted = item_labels(study).astype(str).tolist()
    missing = [name for name in wanted if name not in set(names)]
    if missing:
        problem = f"has no item {missing[0]!r} ({len(missing)} such), which was asked; is it the study that was served?"
        raise InputError(problem, source=source, field="served")
    own = served.isel(item=[names.index(name) for name in wanted])
    if own["target_token"].to_numpy().tolist() != study["target_token"].to_numpy().tolist():
        raise InputError("has other targets than were asked", source=source, field="served")
    of_candidates = own["candidate_token"].to_numpy().tolist() == study["candidate_token"].to_numpy().tolist()
    # a simulation's participants are others than those who played what it was served as
    allowed = {"item", "model", "token"} | ({"candidate"} if of_candidates else set())
    more = {
        name: (variable.dims, variable.to_numpy(), variable.attrs)
        for name, variable in own.data_vars.items()
        if name not in study and name != "item_id" and set(variable.dims) <= allowed
    }
    study = study.assign(more)
    if "token" in own.coords and "token" in study.dims:
        study = study.assign_coords(token=own["token"].values)
    return study.assign_attrs({name: own.attrs[name] for name in ("truth", "settings") if name in own.attrs})
