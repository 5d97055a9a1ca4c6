"""Every page of the documentation that is meant to be run is run, in a fresh folder."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml

from tests.conftest import DATA
from tests.docs.pages import DOCS, WRITTEN, blocks, name_of, run_page
from tests.experiments.tiny_language_models import write_models

PAGES = (
    *("which_estimator.md", "own_comparison_study.md", "own_cloze_study.md", "own_sentences.md", "beside_people.md"),
    # tests/walks runs the commands of collect_and_estimate
    *("sweeps.md", "papers.md"),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes minutes, which docs/results/durations.csv has."""
    monkeypatch.chdir(tmp_path)
    # what a page stores in the user's cache folder stays here
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    if "SHANNON_DATA=" in (DOCS / name).read_text(encoding="utf-8"):
        if not (DATA / "lm_game").is_dir():
            pytest.skip(f"the studies' public files are not at {DATA}; set SHANNON_DATA to their folder")
        monkeypatch.setenv("SHANNON_DATA", str(DATA))
    assert run_page(DOCS / name, tmp_path) > 1


@pytest.mark.torch
def test_the_python_of_the_front_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a tiny model for the one of its last paragraph, which a notebook loads by the same name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    found = blocks((DOCS.parent / "README.md").read_text(encoding="utf-8"))
    (code,) = (block.code for block in found if block.language == "python")
    assert 'models=["smollm2"]' in code
    write_models(tmp_path)
    exec(compile(code.replace('"smollm2"', repr(str(tmp_path / "a"))), "README.md", "exec"), {})
    assert (tmp_path / "perplexity.png").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("title", ["An experiment", "An estimator", "A loader", "A model", "An engine"])
def test_each_section_of_what_users_add_stands_alone(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one with a model takes a minute."""
    monkeypatch.chdir(tmp_path)
    # Python keeps for "." the folder of the test before
    monkeypatch.syspath_prepend(tmp_path)
    text = (DOCS / "add_your_own.md").read_text(encoding="utf-8")
    section = next(part for part in text.split("\n## ")[1:] if part.startswith(f"{title}\n"))
    page = tmp_path / "section.md"
    page.write_text(f"## {section}", encoding="utf-8")
    assert run_page(page, tmp_path) > 1


@pytest.mark.parametrize("path", WRITTEN, ids=name_of)
def test_python_blocks_of_a_page_compile_and_their_imports_work(path: Path) -> None:
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.language == "python":
            tree = ast.parse(block.code, f"{path.name}, line {block.line}")
            ours = [
                node
                for node in tree.body
                if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "shannon_game"
            ]
            exec(compile(ast.Module([*ours], []), path.name, "exec"), {})


@pytest.mark.parametrize("path", WRITTEN, ids=name_of)
def test_yaml_blocks_of_a_page_can_be_read(path: Path) -> None:
    from markdown_it import MarkdownIt

    for token in MarkdownIt().parse(path.read_text(encoding="utf-8")):
        if token.type == "fence" and token.info.strip() == "yaml":
            assert yaml.safe_load(token.content)


def test_links_between_pages_lead_somewhere() -> None:
    """Relative links and figures of every page exist."""
    from markdown_it import MarkdownIt

    missing = []
    for path in WRITTEN:
        for token in MarkdownIt().parse(path.read_text(encoding="utf-8")):
            for child in token.children or ():
                target = str(child.attrGet("href") or child.attrGet("src") or "").split("#")[0]
                if target and "://" not in target and not (path.parent / target).exists():
                    missing.append(f"{name_of(path)}: {target}")
    assert not missing
