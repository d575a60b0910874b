"""Tasks that a query finds, written out as directories: what ``envsdk export`` asks an installed registry for."""

from __future__ import annotations

from pathlib import Path

from envsdk.spec.model import Task
from registry.client import open_registry


def fetch_query(query: str, dest: Path) -> list[Task]:
    """Every task of the default registry that ``query`` finds, in its order, each in a folder of its own in ``dest``.

    Raises:
        UsageError: the query is none.
        StoreError: the registry or the folder fails.
    """
    tasks: list[Task] = []
    with open_registry() as registry:
        cursor: str | None = None
        while True:
            page = registry.query(query, limit=200, cursor=cursor)
            tasks += [
                registry.fetch(item.task_digest, item.verifier_digest, dest / f"{len(tasks) + number:06d}")
                for number, item in enumerate(page.items)
            ]
            if page.next is None:
                return tasks
            cursor = page.next
