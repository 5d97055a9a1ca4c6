"""Make the folders beside this file packages of ``shannon_game``; pyproject.toml has everything else."""

from setuptools import find_packages, setup

FOLDERS = ("conf", "estimators", "experiments", "inference", "models")

setup(
    packages=[
        "shannon_game",
        *(f"shannon_game.{name}" for name in find_packages(include=[*FOLDERS, *(f"{folder}.*" for folder in FOLDERS)])),
    ],
    package_dir={f"shannon_game.{folder}": folder for folder in FOLDERS},
)
