"""A PostgreSQL server of one's own in a temporary folder, from Debian's packages; gone when the block ends."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def programs() -> Path | None:
    """Folder with initdb and postgres; None where no version is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@contextmanager
def private_cluster() -> Iterator[str]:
    """Start a server that listens on a free port of 127.0.0.1; gives the URL of an empty database.

    PostgreSQL refuses to run as root: there it runs as the user postgres.
    """
    folder_of_programs = programs()
    if folder_of_programs is None:
        raise FileNotFoundError("no PostgreSQL is installed under /usr/lib/postgresql")
    folder = Path(tempfile.mkdtemp(prefix="collect-postgres-"))
    as_user: dict[str, object] = {}
    if os.getuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": folder}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data, server = folder / "data", None

    def run(program: str, *arguments: str) -> None:
        command = [str(folder_of_programs / program), *arguments]
        subprocess.run(command, check=True, capture_output=True, timeout=120, **as_user)  # type: ignore[call-overload]

    try:
        run("initdb", "-D", str(data), "-A", "trust", "-U", "collect", "-E", "UTF8", "--no-locale")
        # fsync stays on: what is committed is on the disk, as on a real server
        options = ["-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", str(folder), "-c", "max_connections=120"]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(  # type: ignore[call-overload]
                [str(folder_of_programs / "postgres"), *options], stdout=log, stderr=log, **as_user
            )
        _wait(folder_of_programs, port, server)
        run("createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "collect", "games")
        yield f"postgresql+psycopg://collect@127.0.0.1:{port}/games"
    finally:
        if server is not None:
            # fast: it does not wait for connections that somebody left open
            server.send_signal(signal.SIGINT)
            server.wait(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(folder: Path, port: int, server: subprocess.Popen[bytes]) -> None:
    since = time.monotonic()
    while time.monotonic() - since < 60:
        command = [str(folder / "pg_isready"), "-h", "127.0.0.1", "-p", str(port)]
        ready = subprocess.run(command, capture_output=True, check=False)
        if ready.returncode == 0:
            return
        if server.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError("PostgreSQL did not start")
