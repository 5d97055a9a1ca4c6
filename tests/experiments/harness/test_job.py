"""The door: what is composed is checked before it is run, and nothing that is set does nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hydra import compose, initialize_config_module
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from shannon_game import experiments
from shannon_game.estimators.errors import InputError
from shannon_game.experiments.harness.command_line import one_line
from shannon_game.experiments.harness.job import SHARED
from shannon_game.experiments.harness.kinds import KINDS
from shannon_game.experiments.harness.registry import _OWN, Entry, entry_of, load_target
from shannon_game.experiments.harness.result import CHOICES
from shannon_game.inference.settings import field_meanings
from tests.experiments.command import ROOT, TINY, config, prepared, run


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "conf/exp").glob("*.yaml")))
def test_every_yaml_registers_an_experiment_and_repeats_no_default(name: str) -> None:
    with initialize_config_module("shannon_game.conf", version_base="1.3"):
        node = compose("config", overrides=[f"+exp={name}"]).experiment
    # what another key gives is no copy of a default
    values = OmegaConf.to_container(node, resolve=False)
    given = {key: value for key, value in values.items() if key not in _OWN}
    entry = entry_of(node, what="experiment")
    assert entry.name == name
    assert entry.target.rpartition(".")[2] == name
    function = load_target(entry, what="experiment")
    fields = function.settings_class.model_fields  # type: ignore[attr-defined]
    meanings = field_meanings(function.settings_class)  # type: ignore[attr-defined]
    assert set(given) <= set(fields)
    same = [key for key, value in given.items() if fields[key].default == value and not isinstance(value, dict)]
    assert not same
    assert all(field.description or meanings.get(name) for name, field in fields.items())


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "conf/study").glob("*.yaml")))
def test_every_yaml_registers_a_loader(name: str) -> None:
    node = OmegaConf.load(ROOT / f"conf/study/{name}.yaml")
    # one that changes another's settings has its name and loader
    (base,) = [each for each in node.pop("defaults", []) if each != "_self_"] or [name]
    node = OmegaConf.merge(OmegaConf.load(ROOT / f"conf/study/{base}.yaml"), node)
    assert node.name == base
    entry = entry_of(node, what="study")
    assert set(entry.kinds) <= set(KINDS)
    function = load_target(Entry(name, node._target_, entry.kinds, ()), what="study")
    assert set(node) - set(_OWN) <= set(function.settings_class.model_fields)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["experiment.seed=1"], "experiment.seed: is a setting of the run: write seed="),
        (["study.nitems=4"], "study: unknown setting 'nitems'; did you mean 'n_items'?"),
        (["study.participants={slop: 1}"], "study.participants: unknown setting 'slop'; did you mean 'slope'?"),
        (["study=provo"], "study: is 'provo', a cloze study; perplexity needs a comparison study: "),
        (["estimator.log_mean=nowhere.f"], "estimator.log_mean: is 'nowhere.f', which cannot be imported"),
        (["+data={root: x}"], "command line, data: does nothing: perplexity reads of the run's settings seed"),
        (["experiment._target_=nowhere.f"], "_target_: is 'nowhere.f', which cannot be imported"),
        (["experiment._target_=null"], "experiment 'perplexity', _target_: has no _target_"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_before_anything_runs(overrides: list[str], message: str) -> None:
    with pytest.raises(InputError) as error:
        prepared("+exp=perplexity", *TINY, *overrides)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("study=lmgame", "unknown study 'lmgame'; did you mean 'lm_game'?"),
        ("sutdy=lm_game", "unknown setting 'sutdy'; did you mean 'study'?"),
        ("hydra.rn.dir=x", "unknown setting 'hydra.rn.dir'; add `--cfg all`"),
        ("rounding=nearest", "unknown rounding 'nearest'; choose one of: "),
        ("rounding=custom", "rounding.values"),
    ],
)
def test_what_hydra_refuses_is_said_in_one_line(override: str, said: str) -> None:
    with pytest.raises((HydraException, OmegaConfBaseException)) as error:
        prepared("+exp=perplexity", override)
    line = one_line(error.value, ("experiment", "study", *SHARED))
    assert said in line
    assert line.isprintable()


@pytest.mark.subprocess
def test_an_installed_package_brings_experiments(tmp_path: Path) -> None:
    """An entry point in the group shannon_game.conf names a package's folder of YAML files."""
    package = tmp_path / "site" / "their_package"
    (package / "conf" / "estimator").mkdir(parents=True)
    for folder in (package, package / "conf"):
        (folder / "__init__.py").touch()
    (package / "conf" / "estimator" / "theirs.yaml").write_text("name: psis\n", encoding="utf-8")
    info = tmp_path / "site" / "their_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[shannon_game.conf]\ntheirs = their_package.conf\n", encoding="utf-8")
    patch = f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})"
    done = run(tmp_path, "+exp=perplexity", "estimator=theirs", *TINY, patch=patch)
    assert done.returncode == 0, done.stderr
    assert "psis" in done.stdout


@pytest.mark.parametrize("name", ["perplexity", "recovery", "design"])
def test_command_and_notebook_have_the_same_choices(name: str) -> None:
    ((setting, others),) = getattr(experiments, name).choices.items()
    assert setting in CHOICES
    assert {path.stem for path in (ROOT / "conf" / setting).glob("*.yaml")} > set(others)
    for option, target in others.items():
        assert config(f"+exp={name}", f"{setting}={option}").experiment._target_ == target
