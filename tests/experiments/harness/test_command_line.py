"""The words of the command line: what Hydra's grammar refuses and the user may mean, and what is wrong."""

from __future__ import annotations

import pytest

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.command_line import readable
from tests.experiments.command import config

NAMES = [
    "Antwort (getippt)", "RT (ms)", "a, b", "50%", "Wer? Du!", "don't know", "x\\", "Maß: cm", "a = b", "choice (1)",
    "p<.05", "tab\there", "n [1]", "c}", "#1",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_a_column_arrives_as_it_is_written(name: str) -> None:
    override = readable(f"study.columns.response={name}", multirun=False)
    assert config("study=cloze_table", override).study.columns.response == name


@pytest.mark.parametrize("name", ["Prüfling", "'Prüfling'"])
def test_letters_of_every_language_stand_in_a_mapping(name: str) -> None:
    override = readable(f"study.columns={{participant: {name}, report: 'Antwort (getippt)'}}", multirun=False)
    columns = config("study=comparison_table", override).study.columns
    assert (columns.participant, columns.report) == ("Prüfling", "Antwort (getippt)")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("perplexity", r"command line, perplexity: is no setting; \+exp=perplexity asks for an experiment"),
        ("perplexty", "command line: unknown experiment or command 'perplexty'; did you mean 'perplexity'"),
        ("docter", "did you mean 'doctor'"),
        ("players=[a", r"command line, players=\[a: cannot be read; write setting=value, a list as \[a,b\]"),
        ("players='a", "cannot be read"),
        ("my key=3", "command line, my key=3: cannot be read"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as error:
        readable(text, multirun=False)
    assert "hydra.cc" not in str(error.value)
