"""What a game is: its functions for the server, what files and pages have to know of it, and what is passed on.

The server knows sessions, pages and the database; a game knows its rules. All values are what JSON can hold, because
they are stored as they are. ``content`` is what :attr:`QuestionRow.content` holds, ``layout`` what the game's own
:meth:`Game.layout` gave when the question was assigned, ``steps`` the values of the steps answered so far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np

from shannon_game.experiments.harness.yaml_text import parse_yaml

if TYPE_CHECKING:
    import xarray as xr

    from shannon_game.experiments.collect.settings import CollectSettings

Content = Mapping[str, Any]
"""A JSON object."""
Steps = Sequence[Mapping[str, Any]]
"""Values of a question's earlier steps, first one first."""

CHECK = "check"
"""Content of an attention check: what the instruction asks for. The view has it as ``check``."""

CHECK_WORDS = ("river", "window", "garden", "bread", "summer")
"""What attention checks ask for, one after the other."""

CUT = "cut"
"""Content of a question whose context begins inside its text: true, and the page says so."""

PRACTICE = "practice"
"""Content of a practice question that is none of the study's: true."""


class FormError(ValueError):
    """What a person sent is no answer; the page shows again, with the reason."""

    def __init__(self, key: str, **values: object) -> None:
        super().__init__(key)
        self.key = key
        self.values = values


@dataclass(frozen=True)
class QuestionRow:
    """A question as a game makes it of a study; what its fields mean says the table ``question``."""

    item_id: str
    content: Content
    document: str = ""
    position: int = 0
    opens: bool = True


@dataclass(frozen=True)
class Reading:
    """An answer that was understood; one that is not final, such as a wrong guess, leaves the question open."""

    value: Content = field(default_factory=dict)
    final: bool = True
    correct: bool | None = None
    score: float | None = None


BY_SCRIPT = ("client_ms", "revisions", "frame_us", "hidden_ms", "n_hidden")
"""What the script of the page sends of an answer, as fields of the form and columns of the export."""
ONE_ROW = dict.fromkeys(("server_ms", *BY_SCRIPT, "correct", "score_points"))
"""Common columns of an export that are of a whole question: where it has several rows, empty in all but one."""


class Game:
    """The rules of a game; what most games have in common is here: no options, and one word as the answer.

    A game is its module, its template ``play_NAME.html`` and its texts ``NAME.yaml``, registered in :data:`.GAMES`.
    """

    name: ClassVar[str]
    columns: ClassVar[tuple[str, ...]] = ("word",)
    """Columns of its answers beside the common ones; ``data/columns.yaml``, or its texts, say what they are."""
    field: ClassVar[str] = "word"
    """Field of the form, and of the stored answer."""
    kind: ClassVar[str] = "cloze"
    """Kind of study that its answers are."""
    earns: ClassVar[Literal["", "points", "right"]] = ""
    """What the pages count: nothing, points, or right answers."""
    has_right: ClassVar[bool] = True
    """Whether an answer can be wrong, so that pages say after it what was right."""
    goes_on: ClassVar[bool | None] = None
    """Whether it goes on from one place of a text to the next; None: as the setting ``order`` says."""
    shows_signs: ClassVar[bool] = False
    """Whether blanks and line breaks are answers, so that pages show them as signs."""
    folder: ClassVar[Path] = Path(__file__).parent
    """Where its template and its texts are."""

    def texts(self) -> Mapping[str, Any]:
        """What ``NAME.yaml`` holds: a mapping of texts per language, and ``columns``."""
        path = self.folder / f"{self.name}.yaml"
        found = parse_yaml(path.read_text(encoding="utf-8"), path, "texts") if path.is_file() else {}
        return cast("Mapping[str, Any]", found)

    def rows(self, _content: Content, _layout: Content, value: Content, _steps: Steps, /) -> list[dict[str, Any]]:
        """Cells of the game's own columns, of one answer: a row, or several."""
        return [{self.columns[0]: value[self.field]}]

    def given(self, value: Content, /) -> str:
        """What a person did, whatever it meant."""
        return str(value[self.field])

    def questions(self, study: xr.Dataset, settings: CollectSettings, /) -> list[QuestionRow]:
        """Make the questions of a study, in its order."""
        raise NotImplementedError

    def attention_check(self, content: Content, number: int, /) -> Content:
        """Make an attention check of a question's content: it has :data:`CHECK`, and says what is right."""
        return {**content, CHECK: CHECK_WORDS[number % len(CHECK_WORDS)]}

    def practised(self, content: Content, _other: str, _settings: CollectSettings, /) -> Content:
        """Make the content of a practice question of a context, the target that obviously follows, and another word."""
        return content

    def layout(self, _content: Content, _n_served: int, _rng: np.random.Generator, /) -> dict[str, Any]:
        """Choose how a question is shown; ``rng`` is the same for the ``n_served`` 2k and 2k + 1 of a question."""
        return {}

    def automatic(self, _content: Content, _layout: Content, /) -> Reading | None:
        """Answer for the person, where there is nothing to ask; None where there is."""
        return None

    def view(self, content: Content, _layout: Content, _steps: Steps, /) -> dict[str, Any]:
        """Say what the browser may see before the answer: never the target, its side, or a model's probability."""
        return {"context": content["context"], "check": content.get(CHECK)}

    def read(self, content: Content, layout: Content, steps: Steps, form: Mapping[str, str], /) -> Reading:
        """Understand what was sent."""
        raise NotImplementedError

    def feedback(self, content: Content, layout: Content, steps: Steps, value: Content, /) -> dict[str, Any]:
        """Say what the page shows after the answer: the right token, the score and how it came about."""
        raise NotImplementedError
