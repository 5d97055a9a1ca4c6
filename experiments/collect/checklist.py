"""``shannon-game doctor plan.yaml``: what is missing before a study of people is launched."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path

from sqlalchemy import func, select

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.admin_pages import PASSWORD
from shannon_game.experiments.collect.database import existing_database
from shannon_game.experiments.collect.demo import DEMO, collect_demo
from shannon_game.experiments.collect.games.practice import practice_rows
from shannon_game.experiments.collect.games.registry import GAMES, chosen_contexts
from shannon_game.experiments.collect.parts import deck_of, refuse_short_visits
from shannon_game.experiments.collect.settings import CollectSettings
from shannon_game.experiments.collect.surveys import consent_texts
from shannon_game.experiments.collect.tables import Answer, Session
from shannon_game.experiments.harness.findings import Finding

_LONGER = 1.25
_ADDRESSES: Mapping[str, str] = {
    "return_url": "where the last page leads",
    "full_url": "where people go for whom there is no place",
    "declined_url": "where people go who do not agree",
    "screened_url": "where people go who failed the checks",
}


def study_findings(plan: Path) -> Iterator[Finding]:
    """Look at everything that a launch cannot mend any more."""
    settings = CollectSettings(plan=plan)
    yield from _questions(settings)
    yield from _texts(settings)
    yield from _recruiter(settings)
    pay, minutes = settings.pay, settings.pay.planned_minutes
    known = (
        f"{pay.an_hour(minutes):.2f} {pay.currency} per hour of {minutes:g} planned minutes" if minutes else "unknown"
    )
    lacking = "" if pay.base and minutes else "nobody knows what an hour pays"
    yield Finding("pay", known, lacking, lacking and "set pay.base and pay.planned_minutes")
    closed = "" if settings.https else "cookies travel without TLS"
    yield Finding("https", str(settings.https).lower(), closed, closed and "set https: true, behind a proxy with TLS")
    no_login = "" if len(os.environ.get(PASSWORD, "")) >= 8 else "nobody can open /admin"
    yield Finding("experimenter's page", no_login or "has a password", no_login, no_login and f"set {PASSWORD}")
    kept = "" if settings.retention_days else "recruiter's ids are kept for ever"
    yield Finding("retention", kept or f"{settings.retention_days:g} days", kept, kept and "set retention_days")
    yield from _tried(settings)


def _questions(settings: CollectSettings) -> Iterator[Finding]:
    asked = ", ".join(f"{block.n_questions} of {block.game}" for blocks in settings.visits() for block in blocks)
    try:
        study = chosen_contexts(settings.study_of(collect_demo()), settings)
        refuse_short_visits(settings, deck_of(study, settings))
    except InputError as problem:
        yield Finding("questions", asked, str(problem), "change the plan or the study")
        return
    demo = "the demonstration's texts are served" if study.attrs["name"] == DEMO else ""
    yield Finding("questions", f"{asked}, on {study.attrs['name']}", demo, demo and "name the study: served")
    if settings.n_sessions is None:
        yield Finding("people", "any number", "no quota ends the study", "set n_sessions")
    checks = {game: settings.n_checks(game) for game in settings.game}
    none = "" if any(checks.values()) else "no question checks that people read"
    yield Finding("attention checks", f"{sum(checks.values())} a visit", none, none and "set attention_share: 0.05")
    for game in settings.game:
        own = practice_rows(game, GAMES[game], settings) or not settings.block(game).training_rounds
        if not own and not settings.goes_on(game):
            yield Finding(f"practice of {game}", "takes contexts of the study: there are no texts in its language")


def _texts(settings: CollectSettings) -> Iterator[Finding]:
    demo = settings.consent == CollectSettings.model_fields["consent"].default
    try:
        texts = consent_texts(settings)
    except InputError as wrong:
        yield Finding("consent", ", ".join(settings.languages), str(wrong), "write the text of each language")
        return
    for language, paragraphs in texts.items():
        unfilled = sum(text.count("[[") for text in paragraphs)
        problem = "is the demonstration's" if demo else f"{unfilled} gaps in [[...]]" if unfilled else ""
        words = sum(len(text.split()) for text in paragraphs)
        yield Finding(f"consent, {language}", f"{words} words", problem, problem and f"fill in {settings.consent}")


def _recruiter(settings: CollectSettings) -> Iterator[Finding]:
    recruiter = settings.recruiter
    for name, meaning in _ADDRESSES.items():
        address = getattr(recruiter, name)
        lacking = "" if address or recruiter.platform == "mturk" else f"is missing: {meaning}"
        if address and name == "return_url" and "{code}" not in address and not recruiter.completion_code:
            lacking = "has no {code}"
        yield Finding(f"recruiter.{name}", address or "none", lacking, lacking and f"set recruiter.{name}")
    anybody = "" if recruiter.required else "people without the recruiter's id are let in"
    yield Finding("recruiter.required", str(recruiter.required).lower(), anybody, anybody and "set it to true")


def _tried(settings: CollectSettings) -> Iterator[Finding]:
    """Say what a pilot in the database took; read it whole, as a backup is read."""
    cure = "play it with experiment.pilot=true, from the recruiter's link to the code; then make a backup"
    try:
        with existing_database(settings.url) as database, database.read() as transaction:
            done = select(Session.started_at, Session.ended_at).where(Session.state == "done", Session.pilot)
            rows = [(row.ended_at - row.started_at) / 60 for row in transaction.execute(done) if row.started_at]
            n_answers = transaction.scalar(select(func.count(Answer.id)))
    except InputError as wrong:
        yield Finding("pilot", "none", f"the database {wrong.problem}", cure)
        return
    yield Finding("database", f"{n_answers:,} answers, read to the end")
    planned = settings.pay.planned_minutes
    median = statistics.median(rows) if rows else None
    late = median is not None and planned is not None and median > _LONGER * planned
    problem = f"takes longer than the {planned:g} planned minutes" if late else "" if rows else "no complete visit"
    shown = "none" if median is None else f"{len(rows)} visits, half of them in {median:.1f} minutes or less"
    yield Finding("pilot", shown, problem, problem and ("plan more minutes" if late else cure))
