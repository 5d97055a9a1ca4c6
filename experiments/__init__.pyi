from .comparison.perplexity import perplexity as perplexity
from .papers.published import published as published
from .papers.reproduce.experiment import reproduce as reproduce
from .studies.comparison.file import comparison_file as comparison_file
from .studies.comparison.lm_game import lm_game as lm_game
from .studies.comparison.simulated import simulated as simulated
