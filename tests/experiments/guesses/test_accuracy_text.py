"""Models behind an endpoint in the top-1 game: asked for the next word in words."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from shannon_game.estimators.guesses.study import guess_contexts
from shannon_game.experiments.guesses.accuracy.live import with_live_models
from tests.experiments.command import behind_endpoint, prepared
from tests.experiments.guesses.test_accuracy import overrides
from tests.experiments.studies.guesses.tiny_top1 import played
from tests.inference.api.fake_server import serving
from tests.inference.api.talking_server import TalkingEndpoint


@pytest.mark.usefixtures("api_key")
def test_an_endpoint_is_asked_at_the_positions_of_people(tmp_path: Path) -> None:
    """It knows the targets of texts of even length; of the others it is wrong, or says several words."""
    root = played(tmp_path)
    given = [
        *overrides(root),
        *(f"experiment.{name}={tmp_path / name}" for name in ("store", "api_store")),
        "experiment.live_guesses=null",
        "experiment.posterior=false",
    ]
    study = prepared(*overrides(root)).study
    targets = dict(zip(guess_contexts(study), study["target_token"].to_numpy().tolist(), strict=True))

    def says(system: str, user: str) -> tuple[str, dict[str, float]]:
        context = re.search(r"Text: (.*)\Z", user, re.DOTALL)[1]
        kind = len(context) % 4
        return (targets[context], "two words", targets[context].strip(), "zebra")[kind], {}

    with serving(TalkingEndpoint(says)) as endpoint:
        job = prepared(*given, *behind_endpoint(endpoint.url))
        answered, said = with_live_models(job.settings, job.study)
    asked = np.flatnonzero(np.isfinite(answered["model_hit"].sel(model="api")))
    contexts = guess_contexts(study)
    lengths = np.array([len(contexts[item]) % 4 for item in asked])
    assert len(asked) == len(set(study["response_item"].to_numpy().tolist()))
    np.testing.assert_array_equal(answered["model_hit"].sel(model="api")[asked], np.isin(lengths, [0, 2]))
    assert f"{(lengths == 1).sum()} are no token" in said[0]
    assert 0 < (lengths == 1).sum() < len(asked)
