"""Priors of the relevance regression."""

from __future__ import annotations

from dataclasses import dataclass

from shannon_game.models.priors import check_priors


@dataclass(frozen=True)
class ArdPriors:
    """Priors of ``ard_model``, on log-odds; a Gaussian likelihood takes a quarter of every length.

    Attributes
    ----------
    intercept : float
        Standard deviation of a normal around 0 (a distance of one half).
    coefficient : float
        Typical size of a coefficient of a standardised predictor: scale of the Student t that the prior "ard" comes
        to, standard deviation of the prior "normal".
    coefficient_shape : float
        Shape a of the gamma prior of the precisions ("ard"); the Student t has 2a degrees of freedom.
    n_relevant : float
        Number of predictors expected to matter ("horseshoe").
    slab : float
        Scale of the slab, the size of coefficients that matter ("horseshoe").
    local_df : float
        Degrees of freedom of the half-t of the local scales; 1 is the horseshoe.
    text_spread, item_spread, player_spread : float
        Half-normals for standard deviations over texts, items, players.
    noise : float
        Half-normal for the noise of the logit-normal and Gaussian likelihoods.
    log_concentration_mean, log_concentration : float
        Normal for the log of the beta distribution's concentration.
    latent_slope : float
        Normals for how a measured predictor's true values depend on the other predictors, standardised.
    latent_spread : float
        Half-normal for the rest of their spread.
    edge_mean, edge : float
        Normal for the log of how far the beta's cut points are from 0, on log-odds; see
        :func:`shannon_game.models.cloze.ard_likelihood.add_likelihood`.
    """

    intercept: float = 1.5
    coefficient: float = 0.25
    coefficient_shape: float = 2.0
    n_relevant: float = 2.0
    slab: float = 0.5
    slab_df: float = 20.0
    local_df: float = 1.0
    text_spread: float = 0.5
    item_spread: float = 0.5
    player_spread: float = 0.5
    noise: float = 1.0
    log_concentration_mean: float = 2.5
    log_concentration: float = 1.0
    latent_slope: float = 0.7
    latent_spread: float = 1.0
    edge_mean: float = 2.0
    edge: float = 0.4

    def __post_init__(self) -> None:
        check_priors(self, "ard priors", any_sign=("log_concentration_mean", "edge_mean"))
