"""The experimenter's own files: the consent text, the questions before and after the game."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.games.protocol import FormError
from shannon_game.experiments.collect.strings import Strings
from shannon_game.experiments.harness.yaml_text import parse_yaml
from shannon_game.inference.settings import Settings, Text, settings_from

if TYPE_CHECKING:
    from shannon_game.experiments.collect.settings import CollectSettings

_LONGEST = 2000

Words = Text | dict[str, Text]
"""A text, or one by language."""


class SurveyQuestion(Settings):
    """One question of a survey."""

    name: Text
    """In the export."""
    text: Words
    """What is asked; a text, or one by language."""
    kind: Literal["choice", "number", "line", "text"] = "choice"
    """choice of options, a number, one line, or several lines."""
    options: tuple[Words, ...] = ()
    """Of a choice; what is stored is the option in the first language."""
    required: bool = True
    """Whether it has to be answered."""
    lowest: float | None = None
    """Of a number."""
    highest: float | None = None
    """Of a number."""


# questions in their order
Survey = tuple[SurveyQuestion, ...]


def in_language(words: str | Mapping[str, str], language: str) -> str:
    """Take the text of a language; the first one where it has none."""
    return words if isinstance(words, str) else words.get(language, next(iter(words.values())))


def consent_texts(settings: CollectSettings) -> dict[str, list[str]]:
    """Read what people agree to in each language: the text, and what the settings add to it."""
    path, strings = settings.consent, Strings(settings.languages)
    first, *others = [each for each in settings.languages if not _in_language(path, each).is_file()] or [""]
    if others:
        problem = (
            f"names {first} and {others[0]}, and {path} is one text for both; write {_in_language(path, others[0])}"
        )
        raise InputError(problem, field="languages")
    return {language: consent_paragraphs(settings, strings, language) for language in settings.languages}


def _in_language(path: Path, language: str) -> Path:
    return path.with_suffix(f".{language}{path.suffix}")


def consent_paragraphs(settings: CollectSettings, strings: Strings, language: str) -> list[str]:
    """Read ``consent.de.md``, else ``consent.md``; say when a visit ends early and what goes."""
    path = settings.consent
    own = _in_language(path, language)
    text = _read(own if own.is_file() else path, "consent")
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
    if not paragraphs:
        raise InputError("is empty, should say what people agree to", source=path, field="consent")
    asked = [
        in_language(question.text, language)
        for path, field in ((settings.before, "before"), (settings.after, "after"))
        for question in read_survey(path, field)
    ]
    if asked:
        paragraphs.append(strings.say(language, "consent.surveys", questions=" · ".join(asked)))
    if settings.comprehension and settings.comprehension_tries is not None:
        paragraphs.append(strings.say(language, "consent.rules", n=settings.comprehension_tries))
    if settings.screen_out_after is not None:
        paragraphs.append(strings.say(language, "consent.screened", n=settings.screen_out_after))
    if settings.retention_days is not None:
        paragraphs.append(strings.say(language, "consent.retention", n=f"{settings.retention_days:g}"))
    return paragraphs


def text_version(paragraphs: Sequence[str]) -> str:
    """Hash of a text, as a visit keeps it."""
    return hashlib.sha256("\n\n".join(paragraphs).encode()).hexdigest()[:12]


def rules_questions(strings: Strings, language: str, game: str) -> list[tuple[str, list[str], int]]:
    """Questions on the rules of a game, with their options and the number of the right one: the one with a star."""
    found = []
    for line in strings.say(language, f"rules.{game}").splitlines():
        asked, *options = (part.strip() for part in line.split("|"))
        [right] = (at for at, option in enumerate(options) if option.startswith("*"))
        found.append((asked, [option.removeprefix("*") for option in options], right))
    return found


def right_answers(game: str) -> dict[str, str]:
    """Fields of the form with the questions on the rules, answered right; the same in every language."""
    asked = rules_questions(Strings(("en",)), "en", game)
    return {f"rule-{at}": str(right) for at, (*_, right) in enumerate(asked)}


def read_survey(path: Path | None, field: str) -> Survey:
    """Read the questions of a YAML file, a list of mappings; none without a file."""
    if path is None:
        return ()
    content = parse_yaml(_read(path, field), path, field)
    if not isinstance(content, list) or not all(isinstance(each, dict) for each in content):
        raise InputError("should be a list of questions, each with name and text", source=path, field=field)
    survey = tuple(
        settings_from(SurveyQuestion, _tuples(each), prefix=f"{field}[{at}].") for at, each in enumerate(content)
    )
    names = [question.name for question in survey]
    for question in survey:
        if names.count(question.name) > 1:
            raise InputError(f"{question.name!r} is there twice", source=path, field="name")
        if (question.kind == "choice") != bool(question.options):
            problem = f"of {question.name!r} should be there if its kind is choice, and only then"
            raise InputError(problem, source=path, field="options")
    return survey


def read_answers(survey: Survey, form: Mapping[str, str]) -> dict[str, str]:
    """Read the answers to a survey from fields ``q-NAME``; a choice is the number of its option."""
    return {question.name: _answer(question, form.get(f"q-{question.name}", "").strip()) for question in survey}


def _answer(question: SurveyQuestion, given: str) -> str:
    if not given:
        if question.required:
            raise FormError("error.survey_missing")
        return ""
    if "\x00" in given or len(given) > _LONGEST:
        raise FormError("error.survey_wrong")
    if question.kind == "choice":
        if not given.isdecimal() or int(given) >= len(question.options):
            raise FormError("error.survey_wrong")
        words = question.options[int(given)]
        return in_language(words, "")
    if question.kind == "number":
        try:
            number = float(given)
        except ValueError:
            raise FormError("error.survey_number") from None
        low, high = question.lowest, question.highest
        if not (math.isfinite(number) and (low is None or number >= low) and (high is None or number <= high)):
            raise FormError("error.survey_number")
    return given


def _read(path: Path, field: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", source=path, field=field) from error


def _tuples(node: Mapping[str, Any]) -> dict[str, Any]:
    """YAML has lists where settings have tuples."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in node.items()}
