# What the package offers, for type checkers and editors: the questions and loaders of experiments, and the packages.

from . import estimators as estimators
from . import experiments as experiments
from . import inference as inference
from . import models as models
from .experiments import *  # noqa: F403 - a stub with every name

__version__: str
