"""Sandboxes against the raw engine, in one run: every figure of the sandbox layer, with its bar.

    python benchmarks/sandboxes.py [--json] [--only NAME,...]

Each figure alternates ours and the floor where there is one, so that what else the machine does hits both. Peers' times
are those measured earlier on the same kind of machine and image (SWE-ReX 1.4.0, verifiers 0.4.0): quoted, not run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks import sandbox_figures as figures
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.bubblewrap import BubblewrapProvider
from envsdk.sandboxes.docker import DockerProvider

Figure = Callable[[Any, str], Awaitable[list[figures.Row]]]
DOCKER: dict[str, Figure] = {
    "warm_acquire": figures.warm_acquire,
    "cold_start": figures.cold_start,
    "disabled_network": figures.disabled_network,
    "commands": figures.commands,
    "life": figures.life,
    "fork_prepared": figures.fork_prepared,
    "idle": figures.idle_docker,
}
BUBBLEWRAP: dict[str, Figure] = {
    "start": figures.bubblewrap_start,
    "fork": figures.bubblewrap_fork,
    "bubblewrap_commands": figures.bubblewrap_commands,
    "bubblewrap_life": figures.bubblewrap_life,
}


async def measure(only: set[str]) -> list[figures.Row]:
    rows: list[figures.Row] = []
    for name, group in (("docker", DOCKER), ("bubblewrap", BUBBLEWRAP)):
        wanted = {key: figure for key, figure in group.items() if not only or key in only}
        if not wanted:
            continue
        provider = open_provider(name)
        assert isinstance(provider, DockerProvider | BubblewrapProvider)
        try:
            image = await provider.ensure_image(None, figures.IMAGE)
            for key, figure in wanted.items():
                began = time.monotonic()
                found = await figure(provider, image)
                rows += found
                print(
                    f"{key}: {time.monotonic() - began:.0f} s",
                    *(row.measured for row in found),
                    sep="\n  ",
                    file=sys.stderr,
                )
        finally:
            await provider.close()
    return rows


def table(rows: list[figures.Row]) -> str:
    lines = ["| figure | measured | bar | met |", "|---|---|---|---|"]
    lines += [f"| {row.figure} | {row.measured} | {row.bar} | {row.verdict} |" for row in rows]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--only", default="", help=f"figures, by name: {', '.join([*DOCKER, *BUBBLEWRAP])}")
    options = parser.parse_args()
    rows = asyncio.run(measure(set(filter(None, options.only.split(",")))))
    if options.json:
        machine = {"kernel": platform.release(), "cpus": os.cpu_count(), "load": os.getloadavg()}
        print(json.dumps({"ok": True, "machine": machine, "figures": [row.as_json() for row in rows]}, indent=1))
    else:
        print(table(rows))


if __name__ == "__main__":
    main()
