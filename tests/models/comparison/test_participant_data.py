"""What the participant model is given, against loops over a study, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from shannon_game.estimators.comparison import (
    ParticipantPopulation,
    QuestionDesign,
    rounding_scheme,
    simulate_designed_study,
)
from shannon_game.estimators.comparison.examples import comparison_study, designed_study
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.studies.comparison.lm_game import lm_game
from shannon_game.models.comparison.participant_data import ParticipantData, participant_data, without_participants
from tests.estimators.comparison.comparison_studies import small_study, study_with_answers
from tests.experiments.studies.comparison.tiny_lm_game import CONFIG, write_folder
from tests.oracles.participants import study_rows


def check(study: xr.Dataset, data: ParticipantData, grid: str = "interface") -> None:
    """Everything but the rest, against the loops; the rest has what is left of the distribution."""
    wanted, label = study_rows(study), data.item.tolist()
    assert label == wanted["item"]
    place = [study["item"].values.tolist().index(one) for one in label]
    strings = study["candidate_token"].values
    token = [
        (label[q], str(strings[place[q], column]), round(float(log_g), 5))
        for q, column, log_g in zip(data.token_item, data.token_column, data.token_log_g, strict=True)
    ]
    assert len(token) == len(wanted["tokens"])
    assert set(token) == wanted["tokens"]
    values = rounding_scheme(grid).values
    rows = zip(data.row_token, data.row_participant, data.row_box, data.row_response, strict=True)
    found = [(token[x], str(data.participant[p]), values[box], int(at)) for x, p, box, at in rows]
    assert sorted(found) == sorted(wanted["rows"])
    assert (np.diff(data.row_token) >= 0).all()
    assert (np.diff(data.token_item) >= 0).all()
    assert data.n_other_reference == wanted["n_other"]
    assert data.n_answers.tolist() == [wanted["total"][one] for one in label]
    assert data.target_answers.tolist() == [wanted["answers"][one, None] for one in label]
    assert data.other_answers.tolist() == [wanted["unknown"][one] for one in label]
    assert data.token_answers.tolist() == [wanted["answers"][x[0], x] for x in token]
    assert data.token_shown.tolist() == [wanted["shown"][x[0], x] for x in token]
    assert data.target_shown.tolist() == [wanted["shown"][one, None] for one in label]
    mass = np.exp(data.target_log_g)
    np.add.at(mass, data.token_item, np.exp(data.token_log_g))
    np.add.at(mass, data.rest_item, data.rest_count * np.exp(data.rest_log_g))
    # no mass is lost; stored draws may say a little more than one of the whole
    assert (mass >= 1 - 1e-6).all()


def test_a_tiny_game_is_read_as_loops_read_it(tmp_path: Path) -> None:
    study = lm_game(root=write_folder(tmp_path), **CONFIG)
    check(study, participant_data(study))


def test_free_answers_and_the_whole_vocabulary() -> None:
    study = designed_study()
    data = participant_data(study, "slider")
    check(study, data, "slider")
    assert data.whole
    assert data.has_answers
    count = 1.0 + np.bincount(data.token_item, minlength=data.item.size)
    count += np.bincount(data.rest_item, data.rest_count, data.item.size)
    np.testing.assert_allclose(count, study.sizes["token"])


def test_unknown_answers_and_items_that_were_answered_alone() -> None:
    study = study_with_answers()
    asked = study["response_item"].values != study["item"].values[2]
    study = study.isel(response=np.flatnonzero(asked))
    data = participant_data(study)
    check(study, data)
    assert data.other_answers.any()
    assert data.item.size == study.sizes["item"]
    assert data.informed.all()


def test_comparisons_of_two_candidates_are_left_out_and_counted() -> None:
    study = comparison_study()
    reference = np.where(np.arange(study.sizes["response"]) % 3, -1, 1)
    study = study.assign(response_reference=("response", reference))
    data = participant_data(study)
    check(study, data)
    assert data.n_other_reference > 0


def test_one_string_can_stand_for_many_tokens() -> None:
    """A token that nobody saw gets the string of one that was shown: which of them it was, ln g says."""
    study = designed_study()
    strings = study["token"].values.astype(object)
    there = {*study["candidate_token"].values.ravel().tolist(), *study["target_token"].values.tolist()}
    unseen = [at for at, text in enumerate(strings) if text not in there]
    strings[unseen[:2]] = str(study["candidate_token"].values[0, 0])
    check(study, participant_data(study.assign_coords(token=strings), "slider"), "slider")


def test_tokens_of_equal_probability_are_taken_one_each() -> None:
    rng = np.random.default_rng(0)
    uniform = np.full((2, 40), -np.log(40))
    design = QuestionDesign(n_draws=12, n_answers=6, n_comparisons=12, n_participants=18)
    study = simulate_designed_study(uniform, uniform, rng.integers(0, 40, 2), design, ParticipantPopulation(), seed=0)
    check(study, participant_data(study, "slider"), "slider")


def test_a_player_answers_the_people_s_questions_once_each() -> None:
    study = small_study()
    people, exact = participant_data(study), participant_data(study, player="weak")
    assert exact.is_player
    assert not exact.has_answers
    np.testing.assert_array_equal(exact.row_token, np.arange(exact.token_item.size))
    np.testing.assert_array_equal(exact.token_log_g, people.token_log_g)
    own = study["candidate_logprob"].sel(model="weak").values[exact.token_item, exact.token_column]
    log_odds = study["target_logprob"].sel(model="weak").values[exact.token_item] - own
    np.testing.assert_allclose((exact.row_low + exact.row_high) / 2, log_odds)
    rounded = participant_data(study, player="weak", rounding="interface")
    assert ((rounded.row_low <= log_odds) & (log_odds <= rounded.row_high)).all()
    np.testing.assert_allclose(rounded.row_low, np.maximum(people.box_edges[rounded.row_box, 0], -1e4))
    with pytest.raises(InputError, match=r"weakest.*weak"):
        participant_data(study, player="weakest")


@pytest.mark.parametrize(("report", "near"), [(0.15, r"nearest are 0\.1, 0\.2"), (np.nan, r"1 of \d+ reports")])
def test_a_report_off_the_grid_is_named(report: float, near: str) -> None:
    study = small_study()
    values = study["report"].values.copy()
    values[np.flatnonzero(~study["automatic"].values)[0]] = report
    study["report"] = ("response", values)
    with pytest.raises(InputError, match=rf"report: {report} .*{near}.*rounding=custom"):
        participant_data(study)


def test_studies_without_what_is_needed_are_refused() -> None:
    study = small_study()
    with pytest.raises(InputError, match="no values"):
        participant_data(study, "none")
    nobody = study.assign(automatic=("response", np.ones(study.sizes["response"], dtype=bool)))
    with pytest.raises(InputError, match="no report"):
        participant_data(nobody)
    # a target and one draw of a thousandth each leave no idea of the rest
    few = study.isel(candidate=[0], response=np.flatnonzero(study["response_candidate"].values == 0))
    if not few.sizes["response"]:
        few = study.isel(candidate=[0]).assign(response_candidate=0 * study["response_candidate"])
    rare = few.assign(target_logprob=few["target_logprob"] * 0 - 7, candidate_logprob=few["candidate_logprob"] * 0 - 7)
    rare["automatic"] = ("response", np.zeros(rare.sizes["response"], dtype=bool))
    with pytest.raises(InputError, match=r"cover 0%.*reference_logprob"):
        participant_data(rare)
    other = designed_study()
    wrong = other.assign(reference_logprob=other["reference_logprob"] - 1.0)
    with pytest.raises(InputError, match="reference_logprob: has no token of item"):
        participant_data(wrong, "slider")


def test_participants_are_left_out_of_the_reports_alone() -> None:
    data = participant_data(small_study())
    less = without_participants(data, ["p1", "p3"])
    assert less.participant.tolist() == ["p0", "p2"]
    kept = np.isin(data.participant[data.row_participant], ["p0", "p2"])
    for name in ("row_token", "row_box", "row_response", "row_low"):
        np.testing.assert_array_equal(getattr(less, name), getattr(data, name)[kept])
    np.testing.assert_array_equal(less.participant[less.row_participant], data.participant[data.row_participant][kept])
    np.testing.assert_array_equal(less.token_item, data.token_item)
    with pytest.raises(InputError, match="p9"):
        without_participants(data, ["p9"])
    with pytest.raises(InputError, match="nobody"):
        without_participants(data, data.participant.tolist())
