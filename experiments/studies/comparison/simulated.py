"""The embedded simulated study, and its items with the default settings: to simulate them takes over a second.

The file beside this one is a NumPy archive of what
:func:`shannon_game.estimators.comparison.simulation.study.simulate_items` gives. A test compares the two, and
``python -m shannon_game.experiments.studies.comparison.simulated`` writes the file anew after a change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from shannon_game.estimators.comparison import is_word_token, response_positions, validate_comparison_study
from shannon_game.estimators.comparison.simulation.settings import ParticipantPopulation, SimulationSettings
from shannon_game.estimators.comparison.simulation.study import simulate_comparison_study
from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import add_note
from shannon_game.experiments.harness.result import loader
from shannon_game.inference.settings import Settings, settings_of, to_dataclass

if TYPE_CHECKING:
    import xarray as xr


from collections.abc import Mapping
from pathlib import Path

from numpy.typing import NDArray

from shannon_game.estimators.comparison.simulation.study import ITEM_SETTINGS, SimulatedItems, simulate_items

_SOURCE = "study simulated"


class _Items(Settings):
    items: Literal["all", "word_tokens"] = "all"
    """Items that are asked: all, or those whose target is a space and letters only."""


Population = settings_of(ParticipantPopulation, "Population", base=Settings)
"""How participants differ; the fields of ``ParticipantPopulation``."""

SimulatedSettings = settings_of(SimulationSettings, "SimulatedSettings", base=_Items, participants=Population)
"""The fields of :class:`~shannon_game.estimators.comparison.simulation.settings.SimulationSettings`, and ``items``."""


@loader(SimulatedSettings)
def simulated(settings: Any) -> xr.Dataset:
    """Simulate a comparison study whose truth is known.

    See :func:`~shannon_game.estimators.comparison.simulation.study.simulate_comparison_study`. With
    ``items=word_tokens`` only the items whose target is a word token are selected, and answers to the others are
    dropped; the reference loss stays the one of all items.

    Examples
    --------
    >>> from shannon_game import simulated
    >>> simulated(n_items=5, n_reference_items=10, vocab_size=100, n_candidates=4).sizes["item"]
    10
    """
    population = to_dataclass(ParticipantPopulation, settings.participants)
    wanted = to_dataclass(SimulationSettings, settings.model_copy(update={"participants": population}))
    study = simulate_comparison_study(wanted, kept_items(wanted))
    return _word_tokens_only(study) if settings.items == "word_tokens" else study


def _word_tokens_only(study: xr.Dataset) -> xr.Dataset:
    targets = study["target_token"].values
    selected = np.asarray([is_word_token(str(token)) for token in targets])
    asked = study["item_set"].values != ""
    if not (selected & asked).any():
        raise InputError(
            f"word_tokens leaves none of the {int(asked.sum())} asked items; ask more items or use all",
            source=_SOURCE,
            field="items",
        )
    kept = selected[response_positions(study)]
    filtered = study.assign(selected=("item", selected)).isel(response=np.flatnonzero(kept))
    add_note(
        filtered, "asked items left out because their target is not a word token", count=int((asked & ~selected).sum())
    )
    add_note(filtered, "responses left out with them", count=int((~kept).sum()))
    return validate_comparison_study(filtered)


KEPT = Path(__file__).with_name("simulated_items.npz")
"""The file."""


def kept_items(settings: SimulationSettings, path: Path = KEPT) -> SimulatedItems | None:
    """Read the items of a simulated study from the file, if they are those of the default settings."""
    default = SimulationSettings()
    if settings.store_reference or any(getattr(settings, name) != getattr(default, name) for name in ITEM_SETTINGS):
        return None
    if not path.is_file():
        return None
    with np.load(path, allow_pickle=False) as file:
        found = {name: file[name] for name in file.files}
    players = found["player"].tolist()
    row = np.arange(found["target"].size)[:, None]
    # what every player gives to a token stands once an item, however often it was drawn
    at = found["first"][row] + found["candidate"]
    token = found["token"][at]
    return SimulatedItems(
        context=found["context"],
        target_token=found["vocabulary"][found["target"]],
        candidate_token=found["vocabulary"][token],
        target_logprob=_by_player(players, found["target_logprob"]),
        candidate_logprob=_by_player(players, found["token_logprob"][:, at]),
        kl_nats=_by_player(players, found["kl_nats"]),
        same=token == found["target"][:, None],
    )


def _by_player(players: list[str], rows: NDArray[np.float32]) -> Mapping[str, NDArray[np.float64]]:
    return {player: values.astype(float) for player, values in zip(players, rows, strict=True)}


def write_items(path: Path = KEPT) -> Path:
    """Simulate the default items and write the file."""
    items = simulate_items(SimulationSettings())
    players = list(items.target_logprob)
    vocabulary = np.unique(np.concatenate([items.target_token, items.candidate_token.ravel()]))
    candidate = np.searchsorted(vocabulary, items.candidate_token)
    drawn = [np.unique(row, return_index=True, return_inverse=True) for row in candidate]
    sizes = [tokens.size for tokens, _, _ in drawn]

    def once(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate([row[at] for row, (_, at, _) in zip(rows, drawn, strict=True)])

    np.savez_compressed(
        path,
        player=np.asarray(players),
        vocabulary=vocabulary,
        context=items.context,
        target=np.searchsorted(vocabulary, items.target_token).astype(np.uint16),
        first=np.cumsum([0, *sizes[:-1]]).astype(np.int32),
        token=np.concatenate([tokens for tokens, _, _ in drawn]).astype(np.uint16),
        candidate=np.stack([place for _, _, place in drawn]).astype(np.uint16),
        # the simulation has them in single precision
        token_logprob=np.stack([once(items.candidate_logprob[player]) for player in players]).astype(np.float32),
        target_logprob=np.stack([items.target_logprob[player] for player in players]).astype(np.float32),
        kl_nats=np.stack([items.kl_nats[player] for player in players]).astype(np.float32),
    )
    return path


if __name__ == "__main__":
    write_items()
