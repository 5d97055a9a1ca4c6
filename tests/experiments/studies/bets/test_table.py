"""Bets from a plain table: what it gives, and every mistake by file, column and row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from shannon_game.estimators.bets import bet_losses
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.bets.table import bet_study, bet_table
from tests.experiments.studies.conftest import noted

TABLE = """\
participant,item,target,word,stake,rest,text,g_target,g_word
ann,q1,cat,cat,50,20,the,-1.5,-1.5
ann,q1,cat,dog,30,20,the,-1.5,-2
bo,q1,cat,Cat,60,40,the,-1.5,-3
ann,q2,NA,sat,10,90,a,-4,-1
cy,q2,NA,,,100,a,-4,
"""
MODELS = {"g": {"target": "g_target", "word": "g_word"}}


def write(folder: Path, text: str = TABLE, name: str = "bets.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_table(tmp_path: Path) -> None:
    study = bet_table(path=write(tmp_path), models=MODELS, columns={"context": "text"})
    assert study["item_id"].to_numpy().tolist() == ["q1", "q2"]
    assert study["target"].to_numpy().tolist() == ["cat", "NA"]
    assert study["context"].to_numpy().tolist() == ["the", "a"]
    assert study["participant"].to_numpy().tolist() == ["ann", "bo", "ann", "cy"]
    np.testing.assert_allclose(study["other_stake"], [0.2, 0.4, 0.9, 1])
    assert study["bet_word"].to_numpy().tolist() == ["cat", "dog", "Cat", "sat"]
    np.testing.assert_allclose(study["bet_stake"], [0.5, 0.3, 0.6, 0.1])
    assert study["bet_hit"].to_numpy().tolist() == [True, False, False, False]
    assert study["table_row"].to_numpy().tolist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(study["target_logprob"].sel(model="g"), [-1.5, -4])
    # the only model is the generator
    assert study.attrs["generator"] == "g"
    assert noted(study)["answers that name no word"] == 1
    losses = bet_losses(study)
    assert losses[0] == pytest.approx(-np.log(0.5))
    assert losses[1] == pytest.approx(-np.log(0.4) + 1.5 + np.log(1 - np.exp(-3)))
    # nothing named: the whole loss is the generator's
    assert losses[3] == pytest.approx(4)


def test_what_the_words_leave_is_on_anything_else_or_is_said(tmp_path: Path) -> None:
    implied = bet_table(path=write(tmp_path))
    stated = bet_table(path=write(tmp_path), columns={"other": "rest"})
    np.testing.assert_allclose(implied["other_stake"], stated["other_stake"])
    rounded = bet_table(
        path=write(tmp_path, TABLE.replace("ann,q2,NA,sat,10", "ann,q2,NA,sat,11")), columns={"other": "rest"}
    )
    np.testing.assert_allclose(rounded["other_stake"][2], 90 / 101)
    assert noted(rounded)["answers that did not add up to 100 exactly; made to"] == 1
    shares = pd.DataFrame({"participant": ["a"], "item": [1], "target": ["x"], "word": ["x"], "stake": [0.25]})
    assert bet_study(shares, total=1)["other_stake"].to_numpy().tolist() == [0.75]


def test_a_stake_of_zero_stands_for_what_is_said_and_is_counted(tmp_path: Path) -> None:
    text = TABLE.replace("bo,q1,cat,Cat,60", "bo,q1,cat,Cat,100").replace("cat,dog,30", "cat,dog,0")
    kept = bet_table(path=write(tmp_path, text), models=MODELS)
    assert np.isposinf(bet_losses(kept)).tolist() == [False, True, False, False]
    study = bet_table(path=write(tmp_path, text), models=MODELS, extremes=0.5)
    assert noted(study)["stakes raised to 0.5 (extremes)"] == 2
    np.testing.assert_allclose(study["bet_stake"][:2], [50 / 100.5, 0.5 / 100.5])
    np.testing.assert_allclose(study["other_stake"][1], 0.5 / 100.5)
    assert np.isfinite(bet_losses(study)).all()


def test_words_may_be_folded(tmp_path: Path) -> None:
    study = bet_table(path=write(tmp_path), match="folded")
    assert study["bet_hit"].to_numpy().tolist() == [True, False, True, False]
    with pytest.raises(InputError, match=r"word: is 'CAT' in line 3, which the same participant has named"):
        bet_table(path=write(tmp_path, TABLE.replace("cat,dog", "cat,CAT")), match="folded")


@pytest.mark.parametrize(
    ("settings", "text", "part"),
    [
        ({}, TABLE.replace("cat,dog,30", "cat,,30"), "word: is empty in line 3"),
        ({}, TABLE.replace("cat,dog,30", "cat,dog,80"), "stake: adds up to 130 in the answer that begins in line 2"),
        ({"columns": {"other": "rest"}}, TABLE.replace("30,20", "30,21"), "rest: is .* in another row"),
        ({}, TABLE.replace("bo,q1,cat", "bo,q1,cow"), "target: is 'cow' in line 4, but 'cat' in another row"),
        ({}, TABLE.replace("cat,dog", "cat,cat"), "word: is 'cat' in line 3, which the same participant has named"),
        ({"models": MODELS}, TABLE.replace("-1.5,-2", "-1.5,2"), "g_word: is '2' in line 3, should be ln p"),
        ({"models": MODELS}, TABLE.replace("-1.5,-3", "-1.6,-3"), "g_target: is .* in another row"),
        ({"models": MODELS}, TABLE.replace("-1.5,-3", "-1.5,-.1"), "adds up to 1.1.* under model 'g'"),
        ({"extremes": 20.0}, TABLE, "extremes: is 20, should be below a tenth of 100"),
        ({"missing": "drop"}, "participant,item,target,word,stake\na,q,x,y,\n", "holds no answer without"),
    ],
)  # fmt: skip
def test_mistakes(settings: dict[str, Any], text: str, part: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=part):
        bet_table(**{"path": write(tmp_path, text), **settings})
