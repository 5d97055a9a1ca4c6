"""What a repository beside a paper gets of a collection: nothing in it names a person or a platform's id."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from shannon_game.estimators.code_identity import package_version
from shannon_game.experiments.collect.settings import MAY_CHANGE
from shannon_game.experiments.collect.surveys import text_version
from shannon_game.experiments.collect.tables import Study
from shannon_game.experiments.harness.report import fill


def free_questions(study: Study) -> list[str]:
    """Questions before and after the games to which people write what they like."""
    asked = [*study.settings.get("before", []), *study.settings.get("after", [])]
    return [each["name"] for each in asked if each["kind"] in ("line", "text")]


def bundle_texts(study: Study) -> Mapping[str, str]:
    """File -> its text: a README, the plan, and the consent in each language."""
    consent = study.settings["consent"]
    plan = {name: value for name, value in study.settings.items() if name not in MAY_CHANGE and name != "consent"}
    plan["recruiter"] = {"platform": study.settings["recruiter"]["platform"]}
    readme = fill(
        "bundle.md",
        Path(__file__).parent / "data",
        of=study.name,
        now=package_version(),
        version=study.version,
        consents={language: text_version(paragraphs) for language, paragraphs in consent.items()},
        free=free_questions(study),
    )
    texts = {f"consent.{language}.md": "\n\n".join(paragraphs) + "\n" for language, paragraphs in consent.items()}
    return {"README.md": readme, "plan.yaml": yaml.safe_dump(plan, sort_keys=False, allow_unicode=True), **texts}
