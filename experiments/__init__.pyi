from .comparison.perplexity import perplexity as perplexity
from .papers.published import published as published
from .papers.reproduce.experiment import reproduce as reproduce
from .studies.comparison.file import comparison_file as comparison_file
from .studies.comparison.lm_game import lm_game as lm_game
from .studies.comparison.simulated import simulated as simulated
from .studies.comparison.table import comparison_study as comparison_study
from .studies.comparison.table import comparison_table as comparison_table
