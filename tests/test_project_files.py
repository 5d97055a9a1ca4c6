"""Files for maintainers and hosts agree with each other and with the package."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]


def read_yaml(name: str):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_version_is_one():
    # tags give it; a copy without git's history has the one that is written down
    assert PROJECT["dynamic"] == ["version"]
    version = SETTINGS["tool"]["setuptools_scm"]["fallback_version"]
    assert re.fullmatch(SETTINGS["tool"]["setuptools_scm"]["tag_regex"], f"v{version}")
    assert read_yaml("CITATION.cff")["version"] == version
    assert read_yaml("CITATION.cff")["license"] == PROJECT["license"]
    newest = re.search(r"^## \[([^]]+)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert newest is not None
    assert newest[1] == version


def sessions() -> set[str]:
    """Names of the sessions of the noxfile, with the Python where there are several."""
    found = set()
    for node in ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            (keyword,) = node.decorator_list[0].keywords
            pythons = ast.literal_eval(keyword.value) if isinstance(keyword.value, ast.List) else []
            found |= {f"{node.name}-{python}" for python in pythons} or {node.name}
    return found


def test_hosted_tests_and_the_guide_name_sessions_that_exist():
    asked = set()
    for job in read_yaml(".github/workflows/tests.yml")["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {})
        for command in (step["run"] for step in job["steps"] if "run" in step):
            name = command.removeprefix("pipx run nox -s ")
            ((key, values),) = matrix.items() or [("none", [""])]
            asked |= {name.replace(f"${{{{ matrix.{key} }}}}", value) for value in values}
    assert {"lint", "tests-3.13", "slow"} <= asked
    assert asked <= sessions()
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = {name for names in re.findall(r"`nox -s ([^`]+)`", guide) for name in names.split()}
    assert named
    assert named <= sessions()


def test_a_wheel_has_every_file_that_the_code_reads():
    declared = SETTINGS["tool"]["setuptools"]["package-data"]
    packed = set()
    for package, patterns in declared.items():
        folder = ROOT.joinpath(*(package.split(".")[1:] or ["shannon_game"]))
        packed |= {path for pattern in patterns for path in folder.glob(pattern)}
    kept = {
        path
        for name in ("conf", "estimators", "experiments", "inference", "models")
        for path in (ROOT / name).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc") and "__pycache__" not in path.parts
    }
    assert kept - packed == set()
