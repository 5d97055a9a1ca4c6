"""Windows of text scored through an endpoint, as a ranking study; and what that will cost, before the first call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path

import numpy as np
import xarray as xr

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.layout import add_note
from shannon_game.estimators.messages import Set
from shannon_game.inference.api.calls import Position, call_for, positions_of
from shannon_game.inference.api.client import ApiClient, UnusableCallError
from shannon_game.inference.api.settings import ApiSettings
from shannon_game.inference.api.stopping import run_calls
from shannon_game.inference.api.store import AnswerStore, Ledger


@dataclass(frozen=True)
class TextWindow:
    """A run of reference tokens with the context before it, in the tokens of the model.

    Attributes
    ----------
    text, name : str
        Names of the text, and of the window in it.
    sliding : bool
        Every reference token is scored after exactly ``len(context)`` tokens, the first ones dropped; otherwise the
        context grows from token to token. A reused completion grows within itself either way.
    """

    text: str
    name: str
    context: tuple[str, ...]
    reference: tuple[str, ...]
    sliding: bool = True

    def before(self, position: int) -> str:
        """Text before a reference token."""
        start = position if self.sliding else 0
        return "".join((*self.context, *self.reference[:position])[start:])


@dataclass(frozen=True)
class CostEstimate:
    """What scoring windows will take, from all completions right to none, at the caller's count of tokens."""

    n_calls_least: int
    n_calls_most: int
    usd_least: float
    usd_most: float


def estimate_cost(windows: Sequence[TextWindow], settings: ApiSettings) -> CostEstimate:
    """Estimate calls and price, without what the store has already; nothing is asked.

    Examples
    --------
    >>> from shannon_game.inference import api
    >>> settings = api.ApiSettings(model="davinci-002", base_url="http://localhost:8000/v1")
    >>> window = api.TextWindow("novel", "first", context=("The", " old", " clock"), reference=(" in", " the", " hall"))
    >>> api.estimate_cost([window], settings).n_calls_most
    3
    """
    per_call = settings.tokens_per_call
    calls, usd = [0, 0], [0.0, 0.0]
    for window in windows:
        for which, step in enumerate((per_call, 1)):
            for position in range(0, len(window.reference), step)[: settings.calls_per_window]:
                calls[which] += 1
                n_input = len(window.context) + (0 if window.sliding else position)
                usd[which] += settings.cost_usd(n_input, per_call)
    return CostEstimate(calls[0], calls[1], usd[0], usd[1])


def score_windows(
    windows: Sequence[TextWindow],
    settings: ApiSettings,
    store: Path,
    *,
    before: Callable[[CostEstimate, Ledger], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> xr.Dataset:
    """Score every reference token through an endpoint, as a ranking study whose ``generated_token`` is the sampled one.

    Every answer is in the store before it is used; the same call resumes a stopped run and pays nothing twice. Ctrl-C
    and SIGTERM let the calls in flight end first; a second one stops at once. A window with a call whose answers cannot
    be used, asked once more, is left out with a note.

    Parameters
    ----------
    windows : sequence of TextWindow
        No two of the same text, context length and name.
    store : Path
        SQLite file of :class:`~shannon_game.inference.api.store.AnswerStore`.
    before : callable, optional
        Takes the estimate and what the store has cost, before the first call; it may raise.
    progress : callable, optional
        Takes how many tokens are scored, and of how many.

    Raises
    ------
    InputError
        If windows or settings are wrong, the least cost is above the budget (before the first call), no window is left,
        or as :meth:`shannon_game.inference.api.client.ApiClient.answer`.
    StoppedError
        After a signal whose handler raises nothing.
    """
    _check(windows)
    with AnswerStore(store) as answers:
        ledger = answers.ledger()
        estimate = estimate_cost(windows, settings)
        if before is not None:
            before(estimate, ledger)
        budget = settings.budget_usd or 0.0
        if not ledger.n_answers and estimate.usd_least > budget:
            raise InputError(
                f"is ${budget:.4f}, but these windows cost ${estimate.usd_least:.4f} to "
                f"${estimate.usd_most:.4f}; nothing was asked",
                source=Set("model", ["api"]),
                field="budget_usd",
            )
        work = [partial(_positions, window=window) for window in windows]
        total = sum(len(window.reference) for window in windows)
        scored, other_names = run_calls(settings, answers, positions_of, work, total=total, progress=progress)
        after = answers.ledger()
    found = [(window, its) for window, its in zip(windows, scored, strict=True) if not isinstance(its, InputError)]
    unusable = [its for its in scored if isinstance(its, InputError)]
    if not found:
        raise unusable[0]
    study = _ranking_of(settings, found)
    if unusable:
        add_note(
            study,
            f"windows left out, for a call whose answers cannot be used; the first: {unusable[0]}",
            count=len(unusable),
            level="warning",
        )
    for name in sorted(other_names):
        add_note(study, f"answers are of the model {name!r}, asked for as {settings.model!r}")
    add_note(study, after.said(store), level="warning" if after.n_unsure else "info")
    return study


def _check(windows: Sequence[TextWindow]) -> None:
    if not windows:
        raise InputError("is empty", field="windows")
    keys = [(window.text, len(window.context), window.name) for window in windows]
    for window, key in zip(windows, keys, strict=True):
        if not window.context or not window.reference or not all((*window.context, *window.reference)):
            raise InputError(f"window {key} has no context, no reference or an empty token", field="windows")
        if keys.count(key) > 1:
            raise InputError(f"{key} is there twice", field="windows")


async def _positions(
    client: ApiClient[list[Position]], done: Callable[[], None], *, window: TextWindow
) -> list[Position]:
    """Score a window token by token, going on with a completion only while its sampled tokens are the reference."""
    found: list[Position] = []
    completion: list[Position] = []
    n_calls = 0
    for position, reference in enumerate(window.reference):
        goes_on = bool(completion) and found[-1].sampled == window.reference[position - 1]
        if not goes_on and n_calls == client.settings.calls_per_window:
            # what is not asked about counts as done
            for _ in window.reference[position:]:
                done()
            break
        if not goes_on:
            n_calls += 1
            completion = await client.answer(call_for(client.settings, window.before(position)))
            if not completion:
                raise UnusableCallError(
                    f"answered without any token before {reference!r} (an end of text?)",
                    source=client.settings.base_url,
                )
        found.append(completion[0])
        completion = completion[1:] if client.settings.reuse else []
        done()
    return found


def _ranking_of(settings: ApiSettings, found: Sequence[tuple[TextWindow, Sequence[Position]]]) -> xr.Dataset:
    """Make a ranking study of windows and the ranked tokens at each of their reference tokens."""
    rows = [(window, at, position) for window, positions in found for at, position in enumerate(positions)]
    token = np.array([*zip_longest(*(position.token for _, _, position in rows))], dtype=object).T
    logprob = np.array([*zip_longest(*(position.logprob for _, _, position in rows), fillvalue=np.nan)]).T

    def text(values: list[str]) -> tuple[str, object]:
        return "token", np.array(values, dtype=object)

    return xr.Dataset(
        {
            "model": text([settings.model] * len(rows)),
            "text": text([window.text for window, _, _ in rows]),
            "context_length": ("token", np.array([len(window.context) for window, _, _ in rows])),
            "window": text([window.name for window, _, _ in rows]),
            "position": ("token", np.array([at for _, at, _ in rows])),
            "reference_token": text([window.reference[at] for window, at, _ in rows]),
            "generated_token": text([position.sampled for _, _, position in rows]),
            "ranked_token": (("token", "rank"), token),
            "ranked_logprob": (("token", "rank"), logprob, {"units": "nats"}),
        },
        attrs={"name": f"api {settings.model}"},
    )
