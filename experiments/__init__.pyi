from .comparison.perplexity import perplexity as perplexity
from .studies.comparison.simulated import simulated as simulated
