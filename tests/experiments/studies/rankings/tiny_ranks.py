"""Small archives of workbooks in the layout of the rank-based perplexity data, to load and to break."""

from __future__ import annotations

import io
import math
import zipfile
from ast import literal_eval
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from tests.oracles.rank_perplexity import perplexity, scores

ARCHIVES = {
    "n = 30 reftext1.zip": "text 1",
    "n = 30 reftext2.zip": "text 2",
    "128 5 reps n=30 text 1.zip": "text 1",
    "128 5 reps n=30 text 2.zip": "text 2",
}
MODELS = ("gpt-3.5-turbo", "gpt-4", "gpt-4-turbo", "gpt-4o")
LENGTHS = (32, 64, 128, 256)
N_TOKENS = 6
HEADER = [
    *("Reference token", "Generated token", "Token ranking", "Token logprobs", "Linear Score", "Recipr. Score"),
    *("Perplexity", "NL Score a=0.1", "NL Score a=0.3"),
]
_WORDS = [" the", "the", " a", ",", " in", " cat's", ' "', "\n", " of", "NA", " é", " to"]

Sheet = list[list[Any]]


def sheet(seed: int, n_tokens: int = N_TOKENS, shift: float = 0.0) -> Sheet:
    """Header and rows; a larger `shift` puts the reference nearer to the top."""
    rng = np.random.default_rng(seed)
    rows: Sheet = []
    for _ in range(n_tokens):
        ranked = [str(token) for token in rng.permutation(_WORDS)[:8]]
        values = np.sort(np.log(rng.dirichlet(np.ones(9)))[:8])[::-1].round(6).tolist()
        at = int(min(rng.exponential(6 * math.exp(-shift)), 7))
        reference = ranked[at] if rng.random() < 0.8 else " nowhere"
        generated = reference if rng.random() < 0.7 else ranked[0]
        score = scores(reference, ranked)
        order = ("linear", "reciprocal", "exponential_01", "exponential_01", "exponential_03")
        rows.append([reference, generated, repr(ranked), repr(values), *(score[name] for name in order)])
    references = [row[0] for row in rows]
    whole = perplexity(references, [literal_eval(row[2]) for row in rows], [literal_eval(row[3]) for row in rows])
    for row in rows:
        row[6] = whole
    return [list(HEADER), *rows]


def sheets() -> dict[str, dict[str, Sheet]]:
    """Every workbook by archive and name."""
    found: dict[str, dict[str, Sheet]] = {}
    for number, (archive, text) in enumerate(ARCHIVES.items()):
        stem = "reftext2" if text == "text 2" else "reftext"
        found[archive] = {}
        repeats = archive.startswith("128")
        for place in (7, 11) if repeats else LENGTHS:
            length = 128 if repeats else place
            start = f"{place} " if repeats else ""
            for at, model in enumerate(MODELS):
                name = f"Saved Data {start}{stem} {model} {length}.xlsx"
                found[archive][name] = sheet(1000 * number + 10 * place + at, shift=0.3 * at)
        found[archive][f"Saved Data {'0 ' if repeats else ''}{stem} 128 AVERAGES.xlsx"] = [["gpt-4o"], [0.5]]
    return found


def workbook(rows: Sheet) -> bytes:
    """The least that is a workbook: strings inline, numbers as they are."""
    cells = "".join(
        f'<row r="{number}">' + "".join(_cell(at, number, value) for at, value in enumerate(row)) + "</row>"
        for number, row in enumerate(rows, start=1)
    )
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    files = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {main} xmlns:r="{office}"><sheets>'
        '<sheet name="Sheet1" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="r1" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f"<worksheet {main}><sheetData>{cells}</sheetData></worksheet>",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, '<?xml version="1.0" encoding="UTF-8"?>' + text)
    return buffer.getvalue()


def _cell(column: int, row: int, value: Any) -> str:
    place = f"{chr(ord('A') + column)}{row}"
    if isinstance(value, str):
        text = escape(value).replace("\n", "&#10;")
        return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'
    return f'<c r="{place}"><v>{value!r}</v></c>'


def write(root: Path, found: Mapping[str, Mapping[str, Sheet | bytes]] | None = None) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for archive, books in (sheets() if found is None else found).items():
        with zipfile.ZipFile(root / archive, "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in books.items():
                data = content if isinstance(content, bytes) else workbook(content)
                file.writestr(f"{Path(archive).stem}/{name}", data)
    return root
