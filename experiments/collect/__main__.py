"""``shannon-game answers COMMAND``: what a collection holds, beside the server or after it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import select

from shannon_game.estimators.errors import InputError
from shannon_game.experiments.collect.database import existing_database
from shannon_game.experiments.collect.deletion import forget, forget_recruiters
from shannon_game.experiments.collect.export import chosen_study, write_exports
from shannon_game.experiments.collect.export_public import PUBLIC_GAMES, write_public
from shannon_game.experiments.collect.tables import Study
from shannon_game.experiments.studies.collected.settings import CollectedSettings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the commands."""
    given = _parser().parse_args(arguments)
    try:
        given.run(given)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - a command
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="shannon-game answers", description=__doc__)
    commands = parser.add_subparsers(required=True)
    export = commands.add_parser("export", help="write answers, surveys and pay as CSV")
    bundle = commands.add_parser("bundle", help="write what a repository gets: tables, plan and consent, no ids")
    public = commands.add_parser("public", help="write the public layout of the original site")
    delete = commands.add_parser("forget", help="delete participants with all that they answered")
    expire = commands.add_parser("expire", help="delete recruiter's ids after each study's retention_days")
    runs = (export, _export), (bundle, _export), (public, _public), (delete, _forget), (expire, _expire)
    for command, run in runs:
        command.add_argument("--url", default="sqlite:///collect.sqlite", help="the database (%(default)s)")
        command.set_defaults(run=run)
    for command in (export, bundle, public):
        command.add_argument("--collection", help="name or number of the study, where there are several")
        command.add_argument("--folder", type=Path, required=True, help="where to write")
    export.set_defaults(bundle=False)
    export.add_argument("--no-pay", action="store_true", help="write no pay.csv, which has the recruiter's ids")
    bundle.set_defaults(bundle=True, no_pay=True)
    public.add_argument("--game", choices=PUBLIC_GAMES, default=PUBLIC_GAMES[0])
    delete.add_argument("--may-return", action="store_true", help="let the recruiter's ids begin anew, as nobody's")
    delete.add_argument("participant", nargs="+", help="pseudonyms, or the recruiter's ids")
    return parser


def _export(given: argparse.Namespace) -> None:
    with existing_database(given.url) as database, database.read() as transaction:
        study = chosen_study(transaction, given.collection)
        for path in write_exports(transaction, study, given.folder, pay=not given.no_pay, bundle=given.bundle):
            print(path)  # noqa: T201 - a command


def _public(given: argparse.Namespace) -> None:
    settings = CollectedSettings(url=given.url, game=given.game, collection=given.collection)
    print(write_public(settings, given.folder))  # noqa: T201 - a command


def _forget(given: argparse.Namespace) -> None:
    with existing_database(given.url) as database:
        for name in given.participant:
            with database.write() as transaction:
                if not forget(transaction, name, may_return=given.may_return):
                    raise InputError(f"is {name!r}, of whom nothing is stored", field="participant")
            print(f"deleted {name}")  # noqa: T201 - a command


def _expire(given: argparse.Namespace) -> None:
    with existing_database(given.url) as database, database.write() as transaction:
        for study in transaction.scalars(select(Study)):
            forget_recruiters(transaction, study.id, study.settings.get("retention_days"))


if __name__ == "__main__":
    sys.exit(main())
