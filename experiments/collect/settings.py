"""What can be set of a collection."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from shannon_game.estimators.errors import InputError
from shannon_game.estimators.messages import Set
from shannon_game.experiments.collect.demo import DEMO
from shannon_game.experiments.collect.games.registry import GAMES, known_game
from shannon_game.experiments.harness.settings import Seeded
from shannon_game.experiments.harness.text_models import TextModels
from shannon_game.experiments.harness.yaml_text import parse_yaml
from shannon_game.experiments.studies.comparison.designed import Crowd
from shannon_game.experiments.studies.comparison.file import comparison_file
from shannon_game.experiments.studies.documents.texts import texts
from shannon_game.inference.settings import Count, Positive, Settings, Text, UserPath
from shannon_game.inference.text.prompts import PromptSettings

if TYPE_CHECKING:
    import xarray as xr

GameName = Annotated[str, AfterValidator(known_game)]
"""Name of a registered game."""

MAY_CHANGE = frozenset(
    {
        *("host", "port", "https", "proxies", "n_sessions", "answers_per_question", "closes", "idle_minutes", "pilot"),
        *("players", "n_players", "belief", "population", "models", "prompt", "temperature", "tries", "store"),
        *("api_store", "languages", "leaderboard", "recruiter.completion_code", "database", "beside_people"),
        *(f"recruiter.{name}_url" for name in ("return", "full", "declined", "screened")),
    }
)
"""Settings of a server and of its players, quotas, and addresses: no answer depends on them. All others stay as they
were when the study was launched."""
OF_PLAYERS = frozenset({"n_players", "belief", "population", "models", "prompt", "temperature", "tries"})
"""What players who are no people answer by: a study that they play keeps it."""

_FILES = Path(__file__).parent / "data"
_NAMED = ("served", "consent", "before", "after", "vocabulary")
"""Settings that name files: those beside the plan, else those in the folder of the command."""
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "prolific": ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID"),
    "sona": ("id",),
    "mturk": ("workerId", "assignmentId", "hitId", "turkSubmitTo"),
    "other": (),
}

_OneOrMore = BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)
Games = Annotated[tuple[GameName, ...], Field(min_length=1), _OneOrMore]
_Name = Annotated[Text, Field(max_length=64)]
_Languages = Annotated[tuple[Text, ...], Field(min_length=1), _OneOrMore]


class RecruiterSettings(Settings):
    """What a recruiter of people puts into the address, and where it wants them back."""

    platform: Literal["prolific", "sona", "mturk", "other"] = "prolific"
    """Whose names of parameters are taken; mturk shows the pages in a frame of its own, which needs https."""
    parameters: tuple[Text, ...] = _PARAMETERS["prolific"]
    """Names of the parameters, by default the platform's; the first one is the recruiter's id of the person."""
    required: bool = False
    """Let nobody in without the first parameter."""
    completion_code: Text | None = None
    """Shown on the last page; null makes a new one for every session."""
    return_url: Text | None = None
    """Where the last page leads; {code} is the completion code there, and {PROLIFIC_PID} or another parameter what came
    in the address, here and in the three addresses below."""
    full_url: Text | None = None
    """Where people are sent back for whom there is no place."""
    declined_url: Text | None = None
    """Where people are sent back who do not agree to take part."""
    screened_url: Text | None = None
    """Where people are sent back whose visit ended by failed checks."""

    @model_validator(mode="before")
    @classmethod
    def _of_platform(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("platform") in _PARAMETERS and "parameters" not in given:
            return given | {"parameters": _PARAMETERS[given["platform"]]}
        return given

    def for_players(self) -> RecruiterSettings:
        """As players who are no people need it: each comes with an id, by which a killed rehearsal goes on."""
        return self if self.parameters else self.model_copy(update={"parameters": ("player",)})


class PaySettings(Settings):
    """What people earn: written to the export, not paid by this program."""

    currency: Text = "USD"
    """Of all amounts."""
    base: Annotated[float, Field(ge=0)] = 0.0
    """For a complete session."""
    planned_minutes: Positive | None = None
    """Announced length of a session; the launch and the experimenter's page say what it pays an hour."""
    screened: Annotated[float, Field(ge=0)] = 0.0
    """For a session that ended by failed checks, without a bonus."""
    bonus_per_1000_points: Annotated[float, Field(ge=0)] = 0.0
    """For every 1,000 points above 0."""
    most: Annotated[float, Field(ge=0)] | None = None
    """The bonus is no larger; null sets no limit."""

    def an_hour(self, minutes: float) -> float:
        """Base per hour where a session takes so many minutes."""
        return 60 * self.base / minutes


class ArmSettings(Settings):
    """A condition of the study: people are spread evenly over the arms."""

    name: _Name
    """In the export."""
    items: tuple[Text, ...] = ()
    """Items, or whole documents, that this arm is asked; [] asks all."""
    order: tuple[GameName, ...] = ()
    """Order of the blocks; [] takes the plan's."""
    feedback: bool | None = None
    """Show the right token and the score after every answer; null takes the plan's."""


class BlockSettings(Settings):
    """A part of a visit: one game, with its own rules and questions."""

    game: GameName
    """Which game."""
    n_questions: Count = 40
    """Questions that count; training and attention checks come on top."""
    training_rounds: Annotated[int, Field(ge=0)] = 3
    """Rounds before those that count."""


class PlayerPopulation(Crowd):
    """How simulated players differ, and what they believe where ``belief=assumed``."""

    exponent: Positive = 0.9
    """Belief is proportional to the generator's to this power: below 1 people are less sure."""
    noise_nats: Annotated[float, Field(ge=0)] = 1.5
    """How far the belief's log-probability of a token is from the generator's (standard deviation, Laplace)."""
    unigram_share: Annotated[float, Field(ge=0, lt=1)] = 0.05
    """Share of the belief that knows how frequent tokens are and nothing of the context."""


class CollectSettings(Seeded):
    OWN: ClassVar[tuple[str, ...]] = ("players",)

    game: Games = tuple(GAMES)
    """Games on offer: comparison, top1, cloze, guess_until_right, bets."""
    plan: UserPath | None = None
    """A plan (YAML) with any of these settings, blocks foremost; what is given beside it may
    contradict it in quotas, addresses and the server alone."""
    served: UserPath | None = None
    """File of the study that is served, so that a plan names it: study.nc, or the sentences that ``shannon-game study``
    wrote; null takes study=."""
    blocks: tuple[BlockSettings, ...] = ()
    """Parts of a visit, one after the other, with one consent, one code and one pay: [{game: cloze, n_questions: 15},
    {game: comparison, n_questions: 40}]; [] lets people choose one of the games."""
    arms: tuple[ArmSettings, ...] = ()
    """Conditions over which people are spread evenly: [{name: sea, items: [moby]}, {name: blind, feedback: false}]."""
    lists: dict[_Name, tuple[Text, ...]] = Field(default_factory=dict)
    """Counterbalanced lists of items, or of whole documents, over which people are spread evenly within each arm."""
    n_questions: Count = 40
    """Questions of a session that count; training and attention checks come on top."""
    comprehension: bool = True
    """Ask questions on the rules, which have to be answered right before a game begins."""
    comprehension_tries: Count | None = 3
    """Wrong tries at these questions after which the visit ends, in its first part alone; null sets no limit."""
    training_rounds: Annotated[int, Field(ge=0)] = 3
    """Rounds before those that count, on the questions whose answers are the most obvious; asked for nothing else."""
    attention_share: Annotated[float, Field(ge=0, le=0.5)] = 0.05
    """Attention checks, as a share of the questions that count, rounded up in each block: 0.05 of 15 questions is 1."""
    screen_out_after: Count | None = None
    """Failed attention checks after which a visit ends; its answers are kept, marked, and do not count. null ends
    none."""
    contexts: Count | None = None
    """Items of the study that are asked, drawn from those that every game on offer can ask about; null takes all, and
    whole texts where the study has them."""
    answers_per_question: Count | None = None
    """A question is asked no more once so many people have answered it or are about to; null sets no limit."""
    n_sessions: Count | None = None
    """Sessions of a game that may be under way or complete; null sets no limit."""
    questions: Literal["balanced", "random", "fixed", "adaptive"] = "balanced"
    """Who is asked what: balanced (those with the fewest answers first), random, fixed (in the study's order), or
    adaptive (comparisons by what they are expected to add, once there are free answers; needs the cloze game too)."""
    width_nats: Positive | None = 0.5
    """adaptive: questions end once the 90% interval of people's gap on the items asked is at most so wide, at two looks
    in a row; null does not end them."""
    look_answers: Count = 60
    """adaptive: comparisons between two looks at the answers."""
    order: Literal["independent", "cumulative"] = "independent"
    """Word by word through a text (cumulative), as top1 always is, or places in any order (independent), as comparison
    always is."""
    scale: Literal["interface", "slider"] = "interface"
    """Comparison: the eleven values of the game of 2022 (interface), or a slider in log-odds to 10,000 : 1 (slider), as
    +exp=design plans it; analyses take the same name as rounding."""
    candidates: Count | None = None
    """Comparison: how many of a question's candidates are shown, the first ones; null takes all."""
    max_context_words: Count | None = None
    """Games on texts: words shown before the place; null shows the text from its beginning."""
    most_guesses: Count = 10
    """guess_until_right: guesses after which the word is shown."""
    vocabulary: UserPath = _FILES / "vocabulary.jsonl.gz"
    """top1: the tokens that are taken, as one JSON string a line or a byte-level tokenizer.json; the default has
    SmolLM2's."""
    feedback: bool | None = None
    """Show after every answer how the text goes on, and the score; null: in all games but cloze."""
    leaderboard: bool = True
    """Keep one, of people who give a name for it."""
    session_minutes: Positive | None = None
    """After so long no new question is asked; null sets no limit."""
    idle_minutes: Positive = 30.0
    """After so long without a request, a session's open question and its place go to others; the person may still come
    back."""
    retention_days: Positive | None = None
    """So long after somebody's last visit the recruiter's parameters are deleted, and pay.csv has none; null keeps
    them."""
    pilot: bool = False
    """Mark all sessions as a pilot's; the export leaves them out unless it is asked for them."""
    consent: UserPath = _FILES / "consent.md"
    """Text that people agree to: paragraphs with an empty line between them; in further languages
    NAME.LANGUAGE.md beside it."""
    before: UserPath | None = _FILES / "before.yaml"
    """Questions before the game (YAML); null asks none."""
    after: UserPath | None = _FILES / "after.yaml"
    """Questions after the game (YAML); null asks none."""
    languages: _Languages = ("en",)
    """Languages of the pages, the first one where the browser asks for none of them."""
    text_language: Text | None = None
    """Language of the texts (en, de, zh-Hans): browsers choose voices and fonts by it; null says none."""
    recruiter: RecruiterSettings = RecruiterSettings()
    """Who sends people here."""
    pay: PaySettings = PaySettings()
    """What people earn."""
    players: Literal["people", "simulated", "exact", "model"] = "people"
    """Who plays: people, until Ctrl-C; or, on a free port of this machine and until all are done, players who are none.
    simulated: people of a known belief with bias, slope, noise and lapses; exact: report what they believe, as a
    language model of the study; model: language models that answer in text what the page shows."""
    n_players: Count = 40
    """Players who are no people; with n_sessions, as many as these unless it is said."""
    belief: Text | None = None
    """What these believe: a language model of the study; human for a simulation's truth; assumed for what +exp=design
    assumes, made of the generator's whole distribution (population.exponent and the like); invented for words of a
    study of texts alone. null takes the truth where the study has it, else assumed where it has whole distributions,
    else a model that is not the generator; of texts alone invented."""
    population: PlayerPopulation = PlayerPopulation()
    """How simulated players differ."""
    models: TextModels = Field(default_factory=dict)
    """Language models that play (players=model), each of them n_players sessions: model=[smollm2], or model=[api]."""
    prompt: PromptSettings = PromptSettings()
    """Texts in which these are asked."""
    temperature: Annotated[float, Field(ge=0)] = 0.0
    """Of their answers; 0 takes the most probable token every time."""
    tries: Count = 3
    """How often a model is asked that cannot be read, after the first time at temperature 1 or more; then it leaves."""
    store: UserPath | None = None
    """Folder with what models that run here have answered; null is one in the user's cache folder."""
    api_store: UserPath = Path("api_answers.db")
    """SQLite file with paid answers of a model behind an endpoint."""
    collection: Text | None = None
    """Name under which the study is launched, in a database that may hold several; null takes the study's own. A study
    that was launched stays as it is: a start with another setting that data depend on is refused."""
    closes: Text | None = None
    """Day or time (2026-11-24T18:00) after which nobody new is let in; null lets people in until the quota is full."""
    database: Text | None = None
    """sqlite:///FILE (relative to the folder of the command), or postgresql+psycopg://USER@HOST/NAME. null is
    sqlite:///collect.sqlite, and sqlite:///collect_rehearsal.sqlite for players who are no people."""
    beside_people: bool = False
    """Let players who are no people play in a database that holds a study of people."""
    host: Text = "127.0.0.1"
    """Address to listen on; 0.0.0.0 is every one of this machine."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8000
    """Port to listen on; 0 takes a free one."""
    https: bool = False
    """Cookies travel by https alone; set it behind a proxy with TLS."""
    proxies: Text = "127.0.0.1"
    """Addresses of proxies whose word on the visitor's address is believed, with commas; * believes all."""

    def study_of(self, given: xr.Dataset) -> xr.Dataset:
        """Load the study that is served, where a plan names it in place of the one `given`."""
        if self.served is None:
            return given
        table, is_table = str(self.served), self.served.suffix != ".nc"
        regions = ("start", "stop") if self.served.suffix == ".csv" else None
        study = texts(path=table, id_field="item", regions=regions) if is_table else comparison_file(path=table)
        same = given.attrs.get("data_sha256") == study.attrs["data_sha256"]
        if not same and given.attrs.get("name") != DEMO:
            problem = f"is {str(self.served)!r}, and the study is {given.attrs.get('name')!r}; give one of them"
            raise InputError(problem, field="served")
        return study

    @property
    def url(self) -> str:
        """Address of the database."""
        return self.database or f"sqlite:///collect{'' if self.players == 'people' else '_rehearsal'}.sqlite"

    def goes_on(self, game: str) -> bool:
        """Whether a game goes on from one place of a text to the next."""
        always = GAMES[game].goes_on
        return self.order == "cumulative" if always is None else always

    def shows(self, game: str) -> bool:
        """Whether a game shows after an answer how the text goes on."""
        return GAMES[game].has_right if self.feedback is None else self.feedback

    def block(self, game: str) -> BlockSettings:
        """How much is asked of a game."""
        given = next((block for block in self.blocks if block.game == game), None)
        return given or BlockSettings(game=game, n_questions=self.n_questions, training_rounds=self.training_rounds)

    def n_checks(self, game: str) -> int:
        """Attention checks of a game."""
        return math.ceil(self.attention_share * self.block(game).n_questions)

    def visits(self) -> list[tuple[BlockSettings, ...]]:
        """Blocks of the visits that there are: the plan's, or one of each game."""
        return [self.blocks] if self.blocks else [(self.block(game),) for game in self.game]

    def of_arm(self, name: str) -> CollectSettings:
        """Settings as an arm has them."""
        arm = next((arm for arm in self.arms if arm.name == name), None)
        if arm is None or (arm.feedback is None and not arm.order):
            return self
        blocks = tuple(self.block(game) for game in arm.order) or self.blocks
        feedback = self.feedback if arm.feedback is None else arm.feedback
        return self.model_copy(update={"blocks": blocks, "feedback": feedback})

    def items_of(self, arm: str, item_list: str) -> list[tuple[str, ...]]:
        """Items or documents to which an arm and a list restrict what is asked; nothing where they do not."""
        found = [each.items for each in self.arms if each.name == arm]
        return [items for items in [*found, self.lists.get(item_list, ())] if items]

    @property
    def closes_at(self) -> float | None:
        """Seconds since 1970 after which nobody new is let in."""
        return None if self.closes is None else datetime.fromisoformat(self.closes).timestamp()

    @model_validator(mode="before")
    @classmethod
    def _planned(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        if given.get("plan") is not None:
            plan = read_plan(Path(given["plan"]))
            for name in plan.keys() & given.keys() - MAY_CHANGE:
                if given[name] != plan[name]:
                    problem = f"is {given[name]!r}, and the plan {given['plan']} says {plan[name]!r}; give one of them"
                    raise InputError(problem, field=name)
            given = plan | given
        if given.get("n_sessions"):
            given = {"n_players": given["n_sessions"]} | given
        blocks = given.get("blocks")
        if isinstance(blocks, list | tuple) and blocks and "game" not in given:
            games = [block["game"] if isinstance(block, dict) else getattr(block, "game", "") for block in blocks]
            given = given | {"game": tuple(games)}
        return given

    @model_validator(mode="after")
    def _fits(self) -> Self:
        try:
            _ = self.closes_at
        except ValueError:
            problem = f"is {self.closes!r}, should be a day or a time such as 2026-11-24T18:00"
            raise InputError(problem, field="closes") from None
        if len(set(self.game)) != len(self.game):
            raise InputError(f"is {list(self.game)}, should name a game once", field="game")
        if self.blocks and self.game != tuple(block.game for block in self.blocks):
            raise InputError(f"is {list(self.game)}; blocks name the games of a visit, each once", field="game")
        self._arms_fit()
        if self.recruiter.platform == "mturk" and not self.https:
            problem = "is false; the frame of MTurk takes pages by https alone, and cookies that are marked for it"
            raise InputError(problem, field="https")
        if self.recruiter.required and not self.recruiter.parameters:
            raise InputError("is true, and recruiter.parameters names none", field="recruiter.required")
        if self.questions == "adaptive" and not {"comparison", "cloze"} <= set(self.game):
            problem = "is 'adaptive', which needs comparisons and free answers: name comparison and cloze in game"
            raise InputError(problem, field="questions")
        most = min(sum(self.n_checks(block.game) for block in blocks) for blocks in self.visits())
        if self.screen_out_after is not None and self.screen_out_after > most:
            problem = f"is {self.screen_out_after}, and a visit has {most} attention checks; raise attention_share"
            raise InputError(problem, field="screen_out_after")
        if (self.players == "model") != bool(self.models):
            names = ", ".join(self.models) or "none"
            raise InputError(
                f"is {self.players!r}, but the models are {names}; models play with "
                f"{Set('experiment.players', 'model')} and {Set('model', ['smollm2'])} or the like",
                field="players",
            )
        return self

    def _arms_fit(self) -> None:
        names = [arm.name for arm in self.arms]
        if len(set(names)) != len(names):
            raise InputError(f"are named {names}, should have a name of their own each", field="arms")
        for arm in self.arms:
            if arm.order and sorted(arm.order) != sorted(block.game for block in self.blocks):
                raise InputError(f"is {list(arm.order)}, should name each block once", field=f"arms.{arm.name}.order")


def read_plan(path: Path) -> dict[str, Any]:
    """Read the settings of a plan, with the files beside it that it names; InputError where it is none."""
    try:
        text = path.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"is {str(path)!r}, which cannot be read: {error}", field="plan") from error
    content = parse_yaml(text, path, "plan")
    if not isinstance(content, dict) or "plan" in content:
        raise InputError("should be a mapping of settings of collect, without plan", source=path, field="plan")
    named = {name: value for name in _NAMED if isinstance(value := content.get(name), str) and value}
    return content | {name: _beside(path.expanduser().parent, value) for name, value in named.items()}


def _beside(folder: Path, name: str) -> str:
    # a text where the name of one should stand may be too long for a name
    with suppress(OSError):
        if (folder / name).exists():
            return str(folder / name)
    return name
