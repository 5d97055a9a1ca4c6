"""The parts of ``+exp=reproduce``: which experiments, with which settings, on which data, and how they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["ADDED", "DATA", "DISPLAYS", "PAPERS", "PAPER_NOTES", "PARTS", "Addition", "DataSource", "Display", "Part"]


@dataclass(frozen=True)
class DataSource:
    """Public files that parts need.

    Parameters
    ----------
    study : str
        The study that reads them.
    folder : str
        Key of ``data`` in the config, and name of the folder below ``data.root``.
    any_of : tuple of str
        Names below the folder of which one is there if the files are.
    downloads : bool
        Whether the study can get the files itself.
    what : str
        For a reader: what they are and where they come from.
    """

    study: str
    folder: str
    any_of: tuple[str, ...]
    downloads: bool
    what: str


DATA: Mapping[str, DataSource] = MappingProxyType(
    {
        "lm_game": DataSource(
            "lm_game",
            "lm_game",
            ("multi_comparisons", "data.zip"),
            True,
            "multi_comparisons/ and results_raw/ of GitHub FabienRoger/lm-game-analysis",
        ),
        "top1": DataSource(
            "lm_game_top1",
            "lm_game",
            ("docs", "data.zip"),
            True,
            "docs/ and results_raw/ of GitHub FabienRoger/lm-game-analysis",
        ),
        "provo": DataSource(
            "provo", "provo", ("TVD",), False, "the repository evgeniael/predict_next_word (GitHub), as it is"
        ),
        "ranks": DataSource(
            "rank_perplexity",
            "rank_perplexity",
            ("n = 30 reftext1.zip",),
            True,
            "the four zip archives of GitHub ChielToto/Rank-Based-Perplexity",
        ),
    }
)
"""Group of parts -> the data that they read. A group's name may stand in ``experiment.parts``."""


@dataclass(frozen=True)
class Part:
    """One experiment with fixed settings, run in a folder of its own like a job of a sweep.

    Parameters
    ----------
    name : str
    group : str
        A key of :data:`DATA`.
    experiment : str
    settings : tuple of str
        Overrides, beside the study and its root.
    bayes : bool
        Samples from a posterior: minutes, and run only with ``experiment.bayes=true``.
    seeded : bool
        Draws random numbers from the seed of the run.
    seconds : float
        On one core; only the proportions count, to say how much of the work is left.
    """

    name: str
    group: str
    experiment: str
    settings: tuple[str, ...] = ()
    bayes: bool = False
    seeded: bool = True
    seconds: float = 6.0

    @property
    def paper(self) -> str:
        """The paper that it is of, a key of :data:`PAPERS`."""
        return DATA[self.group].folder


# the longest first, so that none of them is left alone at the end
PARTS: Mapping[str, Part] = MappingProxyType(
    {
        part.name: part
        for part in (
            Part("ard", "provo", "ard_conclusion", bayes=True, seconds=600),
            Part("tvd_bayes", "provo", "tvd", ("experiment.bayes.n_contexts=40",), bayes=True, seconds=600),
            Part("rank_slopes", "ranks", "ranks", bayes=True, seconds=120),
            Part("accuracy_posterior", "top1", "accuracy", bayes=True, seconds=300),
            Part("calibration", "lm_game", "calibration", bayes=True, seconds=300),
            Part("human_loss", "lm_game", "human_loss", bayes=True, seconds=150),
            Part("tvd_sample_size_clean", "provo", "tvd_sample_size", seconds=40),
            Part("tvd_legacy", "provo", "tvd_legacy", seconds=41),
            Part("tvd_clean", "provo", "tvd", seconds=33),
            Part("ard_legacy", "provo", "ard_legacy", seeded=False, seconds=11),
            Part("ranks", "ranks", "ranks_published", seconds=13),
            Part("accuracy", "top1", "accuracy", ("experiment.posterior=false",), seconds=14),
            Part(
                "accuracy_anonymous",
                "top1",
                "accuracy",
                ("experiment.posterior=false", "study.anonymous=keep"),
                seconds=12,
            ),
            Part("tvd_sample_size", "provo", "tvd_sample_size_legacy"),
            Part("improve", "provo", "improve_legacy"),
            Part("distributions", "provo", "distributions_legacy", seeded=False, seconds=18),
            Part("perplexity", "lm_game", "perplexity"),
            Part("perplexity_asked", "lm_game", "perplexity", ("estimator.reference=asked", "rounding=none")),
            Part("perplexity_words", "lm_game", "perplexity", ("study.items=word_tokens",)),
            Part(
                "perplexity_same_tokens",
                "lm_game",
                "perplexity",
                ("study.automatic=drop_different_token", "rounding=none"),
            ),
            Part("rounding", "lm_game", "rounding"),
            Part(
                "rounding_set_1",
                "lm_game",
                "rounding",
                (
                    "study.sets={set 1:[10000,10039]}",
                    "estimator.reference=asked",
                    "rounding=none",
                    "experiment.schemes=[none,interface,interface_nearest,interface_log_odds,fine_ends,fine_ends_log_odds]",
                ),
            ),
            Part("bootstrap", "lm_game", "bootstrap"),
            Part("sample_size", "lm_game", "sample_size"),
        )
    }
)
"""Every part by its name."""

PAPERS: Mapping[str, str] = MappingProxyType(
    {
        "lm_game": "Language Models Are Better Than Humans at Next-token Prediction (Shlegeris, Roger, Chan, McLean)",
        "provo": "Predict the Next Word: Humans exhibit uncertainty in this task and language models _____",
        "rank_perplexity": "An Alternative to Perplexity for the Evaluation of Long-context LLMs (de Jong, 2024)",
    }
)
"""Short name of a paper in the tables of published values -> its title."""


PAPER_NOTES: Mapping[str, str] = MappingProxyType(
    {
        "lm_game": "The paper shows most of its results as figures without numbers. Published values of the comparison "
        "game are those that the authors' public code gives on their public files; the paper writes bits where its "
        "code takes natural logarithms.",
        "provo": "A value as printed stands beside the value of the authors' code with more digits. Stored lists are "
        "compared element by element, and count as one value each: the largest difference.",
        "rank_perplexity": "Published values are those of the author's own workbooks at the precision of print, and "
        "the few that only the text has. Cells of tables 1 and 2 stand in the appendices again.",
    }
)
"""Short name of a paper -> what its published values are."""


@dataclass(frozen=True)
class Display:
    """One published figure, table or section.

    Parameters
    ----------
    paper : str
        A key of :data:`PAPERS`.
    where : str
        As in the tables of published values.
    title : str
    part : str
        The part that makes our figure; empty where nothing public allows one.
    figures : tuple of str
        Its figures, by file name without extension.
    text : str
        What a reader should know.
    folded : bool
        Show only what is not reproduced, the whole table on demand.
    """

    paper: str
    where: str
    title: str
    part: str = ""
    figures: tuple[str, ...] = ()
    text: str = ""
    folded: bool = False


DISPLAYS = (
    Display(
        "lm_game",
        "figures 1 and 2, section 3",
        "Figures 1 and 2, section 3: top-1 accuracy of people and language models",
        "accuracy",
        ("accuracy",),
        "Lines are the accuracies that the authors stored for language models; they are read, not computed. "
        "Participants have the labels of our own table; their names in the public file are hashes.",
    ),
    Display(
        "lm_game",
        "section 3, the public file",
        "Section 3: what the public file of guesses gives",
        "accuracy_anonymous",
        (),
        "Values that the public file must give, whichever file the paper had.",
    ),
    Display(
        "lm_game",
        "table 1",
        "Table 1: language models on documents",
        text="Its 24 values have no verdict: models and texts are not public, and the paper's text was not "
        "at hand. `+exp=corpus` computes loss, perplexity and accuracy of any model that you have.",
    ),
    Display(
        "lm_game",
        "figure 3",
        "Figure 3: error of the estimator against the number of samples",
        "sample_size",
        ("sample_size",),
        "The paper's text gives two numbers, in bits; its code takes natural logarithms. Both units stand below.",
    ),
    Display(
        "lm_game",
        "figures 4 and 9",
        "Figures 4 and 9: perplexity of humans and language models",
        "perplexity",
        ("perplexity",),
    ),
    Display(
        "lm_game",
        "figure 7",
        "Figure 7: half of the participants dropped",
        "bootstrap",
        ("bootstrap",),
        "The paper shows the median and prints no number. Mean and median over halves lie below the estimate from "
        "everybody: the estimator is biased down, the more so the fewer answers it has.",
    ),
    Display("lm_game", "figure 8", "Figure 8: coarser reports", "rounding", ("rounding",)),
    Display("lm_game", "word tokens", "Word tokens only", "perplexity_words", ("perplexity",)),
    Display(
        "lm_game",
        "the first set of questions",
        "The first 40 questions, and six ways to round",
        "rounding_set_1",
        ("rounding",),
        "The authors' code prints these; the paper shows none of them.",
    ),
    Display("lm_game", "losses of the language models", "Losses of the language models"),
    Display("lm_game", "who answered what", "Participants and automatic answers"),
    Display(
        "provo",
        "figure 1, appendix G",
        "Figure 1, appendix G: words of people and models, side by side",
        "distributions",
        ("*",),
        "Contexts in the figure are examples; `+exp=distributions experiment.item=TEXT:WORD` shows any other.",
    ),
    Display("provo", "table 1", "Table 1: TVD and calibration", "tvd_legacy"),
    Display(
        "provo",
        "figure 2",
        "Figure 2: distance to people over contexts",
        "tvd_legacy",
        ("tvd",),
        "The figure shows densities; their means are in table 1.",
    ),
    Display(
        "provo",
        "table 3, figures 4-7",
        "Table 3, figures 4 to 7: what the distance depends on (appendix B)",
        "ard_legacy",
        ("*",),
    ),
    Display(
        "provo",
        "table 2, figure 3",
        "Table 2, figure 3: two halves of the people, and GPT-2 renormalised (appendix A)",
        "tvd_legacy",
        ("oracles",),
        "The calibration of the renormalised GPT-2 needs samples that are not public; its distances are those that the "
        "authors stored.",
    ),
    Display(
        "provo",
        "figure 9, appendix C",
        "Figure 9: how much farther from people a model is than people are (appendix C)",
        "tvd_clean",
        ("differences",),
        "With independent splits and the words of both sides treated alike. The paper prints no number for it.",
    ),
    Display(
        "provo",
        "table 4, figure 10",
        "Table 4, figure 10: tokens in place of words (appendix D)",
        "tvd_legacy",
        ("tokens",),
        "The samples of tokens are not public. Errors and distances are those that the authors stored, read and not "
        "computed.",
    ),
    Display(
        "provo",
        "figure 15, appendix F",
        "Figure 15: loss of fine-tuning by epoch (appendix F)",
        "tvd_legacy",
        ("training",),
        "As the authors stored it, for each of the four folds. The paper prints no number for it.",
    ),
    Display("provo", "figure 8, appendix C", "Figure 8: fewer samples (appendix C)", "tvd_sample_size", ("*",)),
    Display(
        "provo",
        "figures 11-13",
        "Figures 11 to 13: improving a model by k% (section 5, appendix E)",
        "improve",
        ("*",),
        "Densities and curves; the lists behind them are compared below, value by value.",
    ),
    Display("provo", "table 1, other runs of the code", "Table 1: other runs of the authors' code"),
    Display("provo", "oracles, independent splits", "Two halves of the people, split at random"),
    Display("provo", "appendix F", "Appendix F: GPT-2 fine-tuned"),
    Display("provo", "table 1, stored lists", "Stored lists behind table 1", folded=True),
    Display("provo", "appendix A, stored lists", "Stored lists of appendix A: oracles", folded=True),
    Display("provo", "appendix D, stored lists", "Stored lists of appendix D: tokens in place of words", folded=True),
    Display("provo", "appendix E, stored lists", "Stored lists of appendix E: improvement", folded=True),
    Display("provo", "appendix F, stored lists", "Stored lists of appendix F: fine-tuning", folded=True),
    Display(
        "rank_perplexity",
        "tables 1-2",
        "Tables 1 and 2: average rank score and perplexity by context length",
        "ranks",
        ("scores",),
    ),
    Display("rank_perplexity", "tables 3-4", "Tables 3 and 4: five windows at 128 tokens"),
    Display("rank_perplexity", "appendix A", "Appendix A: every score, text 1"),
    Display("rank_perplexity", "appendix B", "Appendix B: every score, text 2"),
    Display("rank_perplexity", "appendix C, both texts", "Appendix C: a line through both texts"),
    Display("rank_perplexity", "mean", "Mean perplexities in the text"),
    Display("rank_perplexity", "mean of text 1", "Mean score and perplexity of text 1 in the text"),
    Display("rank_perplexity", "mean of text 2", "Mean score and perplexity of text 2 in the text"),
    Display("rank_perplexity", "repeats", "Spread over repeated windows"),
    Display(
        "rank_perplexity",
        "repeats, stored averages",
        "The single scores of the repeated windows",
        text="The author's workbooks have them; the thesis prints their average (tables 3 and 4).",
        folded=True,
    ),
    Display("rank_perplexity", "outliers", "Lengths that are outliers"),
    Display("rank_perplexity", "repeats and main run", "Spread over repeated windows and the main run"),
)
"""Published figures and tables, in the order of the report. Places that only the tables of values name follow them."""


@dataclass(frozen=True)
class Addition:
    """What the toolkit adds: the summary and the figures of one part.

    Parameters
    ----------
    title : str
    part : str
    figures : tuple of str
    text : str
    """

    title: str
    part: str
    figures: tuple[str, ...] = ("*",)
    text: str = ""


ADDED = (
    Addition("The human loss, with what it rests on", "human_loss"),
    Addition("How participants answer", "calibration"),
    Addition(
        "Distances between samples, with their floor",
        "tvd_clean",
        text="Table 1 as one would compute it today: the words of both sides treated alike, and beside every raw TVD "
        "what samples of the same sizes from one distribution would differ by.",
    ),
    Addition("The Bayesian TVD", "tvd_bayes", ("tvd",)),
    Addition("Fewer samples, paired and corrected", "tvd_sample_size_clean"),
    Addition("What the distance depends on (automatic relevance determination)", "ard"),
    Addition("Slopes of rank scores, with windows as random effects", "rank_slopes", ("scores", "slopes", "power")),
    Addition("The posterior of accuracy", "accuracy_posterior", ("participants", "practice")),
)
"""Second half of the report."""
