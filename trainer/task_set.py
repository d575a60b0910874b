"""From a query, or the name of a set's revision, to tasks on this machine: resolved once, pinned by digest."""

from __future__ import annotations

from pathlib import Path

from envsdk.errors import FaultyError
from envsdk.spec.load import load_task
from envsdk.spec.model import Task
from registry.client import Pair, RegistryClient
from trainer.sampler import Belief, Sampler


def pin(registry: RegistryClient, *, query: str = "", revision: str = "") -> tuple[str, str, tuple[Pair, ...]]:
    """(name@revision, digest, the pairs of digests) of what a query finds now, or of a revision.

    Raises:
        FaultyError: ``empty_query``: nothing that may be used matches.
        UsageError: a query with a fault in it, or an unknown revision.
    """
    found = registry.revision(revision) if revision else registry.resolve(query)
    if not found.items:
        left_out = ", ".join(f"{item.slug} ({item.why})" for item in found.left_out[:3])
        raise FaultyError(
            "the query matches no task that may be used" + (f"; left out: {left_out}" if left_out else ""),
            code="empty_query",
            hint="envsdk registry query shows what a query finds; tasks need a complete check report",
            where=query or revision,
        )
    pairs = tuple((item.task_digest, item.verifier_digest) for item in found.items)
    return f"{found.name}@{found.revision}", found.digest, pairs


def fetch(registry: RegistryClient, pairs: tuple[Pair, ...], folder: Path) -> list[Task]:
    """The tasks' files, each in a folder of its own under ``folder``; what is there already is not fetched again."""
    tasks = []
    for task_digest, verifier_digest in pairs:
        place = folder / f"{task_digest[:16]}-{verifier_digest[:8]}"
        tasks.append(load_task(place) if place.is_dir() else registry.fetch(task_digest, verifier_digest, place))
    return tasks


def sampler(registry: RegistryClient, tasks: list[Task], *, lineage: str, version: int, seed: int) -> Sampler:
    """A sampler that starts from what the registry knows about this lineage.

    Its counts stand for the model that the run begins with, of weight version ``version``, whatever versions they came
    from: a run that begins at 0 again would otherwise never outgrow those of the run before.
    """
    pairs = [(task.digests.task, task.digests.verifier) for task in tasks]
    known = registry.posteriors(pairs, lineage=lineage)
    beliefs = {
        pair[0]: Belief(
            found.prior_alpha,
            found.prior_beta,
            found.alpha - found.prior_alpha,
            found.beta - found.prior_beta,
            version,
        )
        for pair, found in known.items()
    }
    return Sampler(tasks, beliefs=beliefs, seed=seed)
