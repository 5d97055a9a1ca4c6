"""What the participant model is given, against loops over a study, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from estimators.comparison import rounding_scheme
from estimators.comparison.examples import comparison_study, designed_study
from estimators.comparison.rounding import RoundingScheme
from estimators.comparison.simulation.settings import SimulationSettings
from estimators.comparison.simulation.study import simulate_comparison_study
from estimators.errors import InputError
from experiments.studies.comparison.lm_game import lm_game
from models.comparison.participant_data import ParticipantData, participant_data, with_reports, without_participants
from tests.estimators.comparison.comparison_studies import small_study
from tests.experiments.studies.comparison.tiny_lm_game import CONFIG, write_folder
from tests.oracles.participants import study_rows
from tests.same import assert_same


def simulated_study() -> xr.Dataset:
    settings = SimulationSettings(n_items=12, n_reference_items=14, vocab_size=200, n_candidates=25, n_participants=6)
    return simulate_comparison_study(settings)


def check(study: xr.Dataset, data: ParticipantData) -> None:
    """Everything of it but the tail, against the loops."""
    wanted = study_rows(study)
    assert data.item.tolist() == wanted["item"]
    assert data.n_same.tolist() == wanted["same"]
    np.testing.assert_allclose(data.target_log_g, wanted["target_log_g"])
    values = rounding_scheme("interface").values
    # a pair is known by its item and its ln g
    pair = [
        (int(data.item[q]), round(float(log_g), 5)) for q, log_g in zip(data.pair_item, data.pair_log_g, strict=True)
    ]
    found = [
        (pair[at], str(data.participant[who]), values[box], int(response))
        for at, who, box, response in zip(
            data.row_pair, data.row_participant, data.row_box, data.row_response, strict=True
        )
    ]
    assert found == [((label, log_g), who, report, at) for (label, _, log_g), who, report, at in wanted["rows"]]
    assert data.pair_item.size == len(wanted["answered"])
    assert data.n_shared == sum(count > 1 for count in wanted["answered"].values())
    count = np.bincount(data.row_pair, minlength=data.pair_item.size)
    assert (count[: data.n_shared] > 1).all()
    assert (count[data.n_shared :] == 1).all()
    columns = study["candidate_token"].values[np.searchsorted(study["item"].values, data.item)]
    tokens = [str(columns[q, column]) for q, column in zip(data.pair_item, data.pair_column, strict=True)]
    shown = [wanted["shown"][label, token, log_g] for (label, log_g), token in zip(pair, tokens, strict=True)]
    assert data.pair_n_shown.tolist() == shown
    rest = zip(data.item[data.rest_item].tolist(), data.rest_log_g.round(5).tolist(), strict=True)
    assert sorted(rest) == sorted((label, log_g) for label, _, log_g in wanted["rest"])
    assert data.participant.tolist() == sorted({who for _, who, _, _ in wanted["rows"]})
    assert data.answers.all()
    np.testing.assert_allclose(data.pair_log_g_ratio, data.pair_log_g - data.target_log_g[data.pair_item])
    # the tail has the mass that is left
    mass = np.bincount(data.tail_item, data.tail_mass, data.item.size)
    np.testing.assert_allclose(mass, data.unseen_mass, atol=1e-9)
    np.testing.assert_allclose(1 / (1 + np.exp(-data.box_edges[1:, 0])), np.arange(0.05, 1, 0.1), atol=1e-12)
    assert values[data.half_box] == 0.5
    assert data.box_edges[0, 0] == -np.inf
    assert data.box_edges[-1, 1] == np.inf


def test_a_tiny_game_is_read_as_loops_read_it(tmp_path: Path) -> None:
    study = lm_game(root=write_folder(tmp_path), cache=False, **CONFIG)
    data = participant_data(study)
    check(study, data)
    assert data.generator == study.attrs["generator"]


def test_simulated_people_are_read_as_loops_read_them() -> None:
    study = simulated_study()
    data = participant_data(study)
    check(study, data)
    assert 0 < data.n_shared < data.pair_item.size
    assert data.n_same.sum() + data.pair_n_shown.sum() == study.sizes["response"]


def test_one_string_can_stand_for_many_tokens() -> None:
    """A token that nobody saw gets the string of one that was shown: which of them it was, ln g says."""
    settings = SimulationSettings(
        n_items=12, n_reference_items=14, vocab_size=200, n_candidates=25, n_participants=6, store_reference=True
    )
    study = simulate_comparison_study(settings)
    strings = study["token"].values.astype(object)
    there = {*study["candidate_token"].values.ravel().tolist(), *study["target_token"].values.tolist()}
    unseen = [at for at, text in enumerate(strings) if text not in there]
    shown = str(study["candidate_token"].values[0, 0])
    renamed = strings.copy()
    renamed[unseen[:2]] = shown
    before, after = participant_data(study), participant_data(study.assign_coords(token=("token", renamed)))
    assert_same(after.pair_log_g, before.pair_log_g)
    mass = [np.bincount(data.tail_item, data.tail_mass, data.item.size) for data in (before, after)]
    np.testing.assert_allclose(*mass)
    np.testing.assert_allclose(mass[1], after.unseen_mass, atol=1e-9)


def test_answers_that_the_site_gave_are_tokens_shown_only() -> None:
    study = small_study()
    told = study["automatic"].values.copy()
    different = np.flatnonzero(~told)[:3]
    told[different] = True
    study["automatic"] = ("response", told)
    data = participant_data(study)
    assert not np.isin(data.row_response, different).any()
    wanted = study_rows(study)
    assert data.row_box.size == len(wanted["rows"]) == (~told).sum()
    in_pairs = sum(count for token, count in wanted["shown"].items() if token in wanted["answered"])
    assert data.pair_n_shown.sum() == in_pairs


def test_the_real_game(lm_game_root: Path) -> None:
    study = lm_game(root=lm_game_root, cache=False)
    data = participant_data(study)
    check(study, data)
    counts = (data.pair_item.size, data.n_shared, data.row_box.size, data.participant.size, data.item.size)
    assert counts == (679, 169, 1056, 29, 120)


def test_another_grid_has_its_own_boxes() -> None:
    study = small_study()
    coarse = RoundingScheme("thirds", (0.2, 0.5, 0.9))
    study["report"] = ("response", np.asarray(coarse.values)[np.arange(study.sizes["response"]) % 3])
    data = participant_data(study, coarse)
    edges = 1 / (1 + np.exp(-data.box_edges))
    np.testing.assert_allclose(edges, [[0, 0.35], [0.35, 0.7], [0.7, 1]], atol=1e-12)
    assert data.half_box == 1
    np.testing.assert_array_equal(data.row_box, data.row_response % 3)


@pytest.mark.parametrize(("report", "near"), [(0.15, r"nearest are 0\.1, 0\.2"), (np.nan, r"1 of \d+ reports")])
def test_a_report_off_the_grid_is_named(report: float, near: str) -> None:
    study = small_study()
    values = study["report"].values.copy()
    values[np.flatnonzero(~study["automatic"].values)[0]] = report
    study["report"] = ("response", values)
    with pytest.raises(InputError, match=rf"report: {report} .*{near}.*rounding\.values"):
        participant_data(study)


def test_studies_without_what_is_needed_are_refused() -> None:
    study = small_study()
    with pytest.raises(InputError, match="no values"):
        participant_data(study, "none")
    with pytest.raises(InputError, match="rounding"):
        participant_data(study, "interfaces")
    nobody = study.copy()
    nobody["automatic"] = ("response", np.ones(study.sizes["response"], dtype=bool))
    with pytest.raises(InputError, match="no answer"):
        participant_data(nobody)


def test_other_reports_are_checked() -> None:
    data = participant_data(small_study())
    other = with_reports(data, (data.row_box + 1) % 11)
    np.testing.assert_array_equal(other.row_box, (data.row_box + 1) % 11)
    assert other.row_pair is data.row_pair
    bad: list[Any] = [data.row_box[1:], data.row_box[:, None], data.row_box - 20, data.row_box + 11]
    for boxes in bad:
        with pytest.raises(InputError, match="row_box"):
            with_reports(data, boxes)


def test_participants_are_left_out_of_the_answers_alone() -> None:
    study = small_study()
    data = participant_data(study)
    less = without_participants(data, ["p1", "p3"])
    assert less.participant.tolist() == data.participant.tolist()
    assert less.answers.tolist() == [name not in {"p1", "p3"} for name in data.participant]
    kept = ~np.isin(study["participant"].values.astype(str)[data.row_response], ["p1", "p3"])
    for name in ("row_pair", "row_participant", "row_box", "row_response"):
        np.testing.assert_array_equal(getattr(less, name), getattr(data, name)[kept])
    gone = np.bincount(data.row_pair[~kept], minlength=data.pair_item.size)
    np.testing.assert_array_equal(data.pair_n_shown - less.pair_n_shown, gone)
    assert less.n_shared == data.n_shared
    np.testing.assert_array_equal(without_participants(data, []).row_box, data.row_box)
    with pytest.raises(InputError, match="p9"):
        without_participants(data, ["p9"])
    with pytest.raises(InputError, match="nobody"):
        without_participants(data, data.participant.tolist())
    assert replace(less, study="x").answers.sum() == 2


def test_candidates_that_the_generator_did_not_draw_are_refused() -> None:
    with pytest.raises(InputError, match=r"candidate_source: is not 'generator' for \d+ candidates"):
        participant_data(designed_study(), "slider")


def test_a_comparison_of_two_candidates_is_refused() -> None:
    study = comparison_study()
    reference = np.full(study.sizes["response"], -1)
    reference[0] = 1
    with pytest.raises(InputError, match="response_reference: is a candidate for 1 responses"):
        participant_data(study.assign(response_reference=("response", reference)))
