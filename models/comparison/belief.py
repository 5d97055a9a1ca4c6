r"""The belief of one noise-free player of the comparison game, as a PyMC model (level 1 of the report model)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from estimators.errors import InputError
from models.comparison.belief_data import BeliefData, belief_data
from models.comparison.two_piece import draw
from models.comparison.two_piece_tensor import box_probability, log_density
from models.priors import check_priors

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BeliefData", "BeliefPriors", "belief_data", "belief_model", "set_answers", "start_values"]

FAR = 1e4
"""Nats that stand for the infinite edges of the outermost boxes."""
_FLOOR = 1e-12
_SCALE_FLOOR = 0.02


@dataclass(frozen=True)
class BeliefPriors:
    """Scales of the priors of :func:`belief_model`, weak by default; all in nats or per nat.

    Attributes
    ----------
    mu, a, b, b2, c, d, ga : float
        Standard deviations of normals around zero.
    sigma, omega : float
        Scales of half-normals.
    t_b, t_d : float
        3/2 of the means of gamma distributions of shape 2, which leave out zero: chains get stuck there.
    kap_mean, kap : float
        Mean and standard deviation of kap (0 if y comes from g, 2 if y comes from h).
    log_rho : float
        Standard deviation of ln rho.
    nu : float
        Degrees of freedom of the items' intercepts.
    delta : float
        Standard deviation of delta, by how many sigma the tokens never drawn may be off together.
    """

    mu: float = 1.0
    a: float = 0.3
    b: float = 0.3
    b2: float = 0.3
    sigma: float = 1.5
    omega: float = 0.4
    c: float = 0.15
    d: float = 0.3
    t_b: float = 0.2
    t_d: float = 0.15
    kap_mean: float = 0.7
    kap: float = 0.6
    log_rho: float = 0.5
    ga: float = 0.15
    nu: float = 3.0
    delta: float = 0.15

    def __post_init__(self) -> None:
        check_priors(self, "belief priors", any_sign=("kap_mean",))


def belief_model(data: BeliefData, priors: BeliefPriors | None = None, *, centred: bool | None = None) -> pm.Model:
    r"""Build the belief model of one player.

    For item *q* with target *y* and candidate *x*, :math:`v = \ln\frac{h(x)g(y)}{h(y)g(x)}`, :math:`l = \ln g(x)`,
    :math:`L = \mathrm{logit}\, g(y)` clipped to [-16, 9], :math:`H(l) = \max(-l - 7, 0)`, :math:`E_q` the mean
    surprisal of the candidates and :math:`f` the frequency of a token in the study's other items
    (:func:`models.comparison.tokens.token_frequency`),

    .. math::

        s_q^2 &= (\sigma e^{\omega z_q + c (E_q - 4)})^2 + 0.02^2 \\
        A_q &\sim \mathrm{StudentT}_3\!\left(\mu + a (L_q + 3) - t_b \zeta_q (L_q + 5)
               - \kappa s_q^2 / 2,\ \rho s_q\right) \\
        v_{qx} &= A_q + (b + t_b \zeta_q)(l + 5) + b_2 H(l) + (d + t_d \xi_q)(f_{qx} - f_{qy}) + e_{qx}

    with *e* the mean-zero two-piece normal (:mod:`models.comparison.two_piece`) of scales :math:`s_q e^{\gamma}` on the
    left and
    :math:`s_q e^{-\gamma}` on the right. The normalisation of h gives :math:`A_q` its place: :math:`\kappa` is 0 if
    y comes from g, 2 if it comes from h. A weaker model than the generator leans on words that are frequent anywhere, a
    stronger one does not need to: *d* says how much, and items differ in it, since words that stand in
    the context already are no rarer than others there. Priors: normal for mu, a, b, b2, c, d, kap, ga, delta;
    half-normal for sigma, omega; gamma of shape 2 for t_b, t_d; log-normal for rho; standard normal for z, zeta and xi.

    No answer bears on :math:`\delta`. It is the discrepancy (Kennedy and O'Hagan 2001) of tokens that were never drawn,
    about which the study has nothing but this extrapolation: :mod:`inference.comparison.belief_gap` adds :math:`\sigma
    \delta` to all of theirs, so that the gap is as uncertain as the form of the model is there. Its scale is what the
    sums of such tokens were off by, in units of sigma, in fresh studies of the 14M model and GPT-2 medium: a root of
    the mean square of .2 to .25, of which the tokens not asked take a part back.

    Raw answers enter as the observed variable ``v``. Rounded ones enter as the observed variable ``box``, the position
    of the reported value on the grid: v lies between the edges of that box, and the probability of this is a difference
    of two CDFs; a floor of 1e-12 keeps the sampler moving where a start is far off. Both have a log-likelihood by pair,
    and a predictive distribution (values of v, or boxes).

    Parameters
    ----------
    data : BeliefData
    priors : BeliefPriors, optional
    centred : bool, optional
        Sample A_q itself instead of its standardised deviation from its place; the posterior is the same. By default
        for raw answers, which say much of every item, and not for rounded ones, which say little of some.

    Returns
    -------
    pymc.Model
        Dims ``item`` and ``pair``; what it knows of the items and the answers are data that :func:`set_answers`
        exchanges.

    Examples
    --------
    >>> import models
    >>> from estimators.comparison.examples import comparison_study
    >>> model = models.belief_model(models.belief_data(comparison_study(), "lm-weak"))
    >>> [variable.name for variable in model.observed_RVs]
    ['v']
    >>> model.named_vars_to_dims["A"]
    ('item',)
    """
    p = priors or BeliefPriors()
    coords = {"item": data.item, "pair": np.arange(data.pair_item.size)}
    with pm.Model(coords=coords) as model:
        item = pm.Data("pair_item", data.pair_item, dims="pair")
        log_g = pm.Data("pair_log_g", data.pair_log_g, dims="pair")
        frequency = pm.Data("pair_frequency", data.pair_frequency, dims="pair")
        target_logit = pm.Data("target_logit", data.target_logit, dims="item")
        surprisal = pm.Data("surprisal", data.surprisal, dims="item")

        mu = pm.Normal("mu", 0, p.mu)
        a = pm.Normal("a", 0, p.a)
        b = pm.Normal("b", 0, p.b)
        b2 = pm.Normal("b2", 0, p.b2)
        sigma = pm.HalfNormal("sigma", p.sigma)
        omega = pm.HalfNormal("omega", p.omega)
        c = pm.Normal("c", 0, p.c)
        d = pm.Normal("d", 0, p.d)
        t_b = pm.Gamma("t_b", alpha=2, beta=np.float64(3 / p.t_b))
        kap = pm.Normal("kap", p.kap_mean, p.kap)
        rho = pm.LogNormal("rho", 0, p.log_rho)
        ga = pm.Normal("ga", 0, p.ga)
        t_d = pm.Gamma("t_d", alpha=2, beta=np.float64(3 / p.t_d))
        pm.Normal("delta", 0, p.delta)
        z = pm.Normal("z", 0, 1, dims="item")
        zeta = pm.Normal("zeta", 0, 1, dims="item")
        xi = pm.Normal("xi", 0, 1, dims="item")

        variance = (sigma * pt.exp(omega * z + c * (surprisal - 4))) ** 2 + _SCALE_FLOOR**2
        s = pm.Deterministic("s", pt.sqrt(variance), dims="item")
        place = mu + a * (target_logit + 3) - t_b * zeta * (target_logit + 5) - kap * s**2 / 2
        if data.is_raw if centred is None else centred:
            intercept = pm.StudentT("A", nu=p.nu, mu=place, sigma=rho * s, dims="item")
        else:
            unit = pm.StudentT("A_unit", nu=p.nu, mu=0, sigma=1, dims="item")
            intercept = pm.Deterministic("A", place + rho * s * unit, dims="item")
        mean = (
            intercept[item]
            + (b + t_b * zeta[item]) * (log_g + 5)
            + b2 * pt.maximum(-log_g - 7, 0)
            + (d + t_d * xi[item]) * frequency
        )
        s_left, s_right = (s * pt.exp(ga))[item], (s * pt.exp(-ga))[item]
        if data.is_raw:
            v = pm.Data("v_data", data.pair_lower, dims="pair")
            pm.CustomDist("v", mean, s_left, s_right, logp=log_density, random=_random, observed=v, dims="pair")
        else:
            shift = pm.Data("pair_shift", _shift(data), dims="pair")
            box = pm.Data("box_data", data.pair_box, dims="pair")
            log_p, draw_box = partial(_log_box, edges=data.box_edges), partial(_random_box, edges=data.box_edges)
            pm.CustomDist(
                *("box", mean, s_left, s_right, shift),
                logp=log_p,
                random=draw_box,
                dtype="int64",
                observed=box,
                dims="pair",
            )
    model.belief_grid = data.box_edges
    return model


def set_answers(model: pm.Model, data: BeliefData) -> None:
    """Put other answers into a model, of another player or on other items, so that it need not be compiled again.

    Parameters
    ----------
    model : pymc.Model
        From :func:`belief_model`.
    data : BeliefData
        Any pairs of as many items, with reports on the grid of the model.

    Raises
    ------
    InputError
        If the number of items differs, or reports are on another grid (or rounded in one only).

    Examples
    --------
    >>> import models
    >>> from estimators.comparison.examples import comparison_study
    >>> weak, strong = (models.belief_data(comparison_study(), player) for player in ("lm-weak", "lm-strong"))
    >>> model = models.belief_model(weak)
    >>> models.set_answers(model, strong)
    >>> bool((model["v_data"].get_value() == strong.pair_lower).all())
    True
    """
    source = f"player {data.player!r}"
    if not np.array_equal(model.belief_grid, data.box_edges):
        raise InputError("are not rounded as those of the model", source=source, field="answers")
    n_items = len(model.coords["item"])
    if data.item.size != n_items:
        raise InputError(f"are on {data.item.size} items, the model has {n_items}", source=source, field="answers")
    item, pair = {"item": data.item}, {"pair": np.arange(data.pair_item.size)}
    # the dim grows or shrinks with the first of its variables, and PyMC warns of the others
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.exceptions.ShapeWarning)
        model.set_data("target_logit", data.target_logit, coords=item)
        model.set_data("surprisal", data.surprisal, coords=item)
        model.set_data("pair_item", data.pair_item, coords=pair)
        model.set_data("pair_log_g", data.pair_log_g, coords=pair)
        model.set_data("pair_frequency", data.pair_frequency, coords=pair)
        if data.is_raw:
            model.set_data("v_data", data.pair_lower, coords=pair)
        else:
            model.set_data("pair_shift", _shift(data), coords=pair)
            model.set_data("box_data", data.pair_box, coords=pair)


def start_values(model: pm.Model, priors: BeliefPriors | None = None) -> dict[str, Any]:
    """Where chains should start: near the middle of the priors, as they get lost where scales are huge.

    Not at the very middle, since nutpie refuses a start where an element of the gradient is exactly zero. These are
    no ``initval`` of the variables, because PyMC computes no log-likelihood of models that have any.

    Returns
    -------
    dict of str to float or ndarray
        By the name of the variable; A starts at its place.
    """
    p = priors or BeliefPriors()
    start: dict[str, Any] = dict.fromkeys(("mu", "a", "b", "b2", "c", "d", "ga", "delta"), 0.02)
    start |= {name: 0.9 * getattr(p, name) for name in ("sigma", "omega", "t_b", "t_d")}
    start["kap"] = p.kap_mean + 0.02
    per_item = ("z", "zeta", "xi", "A_unit") if "A_unit" in model.named_vars else ("z", "zeta", "xi")
    return start | {name: np.full(len(model.coords["item"]), 0.02) for name in per_item}


def _shift(data: BeliefData) -> NDArray[np.float64]:
    """What turns minus the log-odds of a report into v: ln g(y)/g(x), shape (pair,)."""
    return data.target_log_g[data.pair_item] - data.pair_log_g


def _random(
    mean: NDArray[np.float64],
    s_left: NDArray[np.float64],
    s_right: NDArray[np.float64],
    *,
    rng: np.random.Generator,
    size: tuple[int, ...] | None = None,
) -> NDArray[np.float64]:
    mean, s_left, s_right = np.broadcast_arrays(mean, s_left, s_right)
    if size is not None:
        mean, s_left, s_right = (np.broadcast_to(x, size) for x in (mean, s_left, s_right))
    return mean + draw(s_left, s_right, rng)


def _log_box(box: Any, mean: Any, s_left: Any, s_right: Any, shift: Any, *, edges: NDArray[np.float64]) -> Any:
    """Log-probability of a box of the grid."""
    # an infinite edge becomes a far one: infinity times a vanished density has no gradient
    edge = pt.constant(np.clip(edges, -FAR, FAR))
    inside = box_probability(mean, s_left, s_right, shift - edge[box + 1], shift - edge[box])
    return pt.log(inside + _FLOOR)


def _random_box(
    mean: NDArray[np.float64],
    s_left: NDArray[np.float64],
    s_right: NDArray[np.float64],
    shift: NDArray[np.float64],
    *,
    rng: np.random.Generator,
    edges: NDArray[np.float64],
    size: tuple[int, ...] | None = None,
) -> NDArray[np.intp]:
    log_odds = shift - _random(mean, s_left, s_right, rng=rng, size=size)
    return np.searchsorted(edges[1:-1], log_odds, side="right")
