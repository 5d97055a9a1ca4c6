"""Hydra configs, installed as a package so that the command finds them from any directory.

What lives here: ``config.yaml`` and one folder per group. An option is one file, its name is what the user types
(``rounding=coarse``); options that are a name and nothing else follow from the names themselves.
"""

from typing import get_args

from hydra.core.config_store import ConfigStore

from shannon_game.estimators.comparison import ESTIMATORS, SCHEMES
from shannon_game.inference.posterior.thresholds import SamplerName

for _group, _names in {"rounding": SCHEMES, "estimator": ESTIMATORS, "sampler": get_args(SamplerName)}.items():
    # that of the naive estimator has more than a name
    for _name in set(_names) - {"naive"}:
        ConfigStore.instance().store(group=_group, name=_name, node={"name": _name})
