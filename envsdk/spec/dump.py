"""Write a task as a directory that is also Harbor's: what was not changed comes back byte for byte.

``task.toml`` is written from the specification. Where the original file is among the contents it is kept, comments and
all, and only fields whose meaning changed are edited. What was written is read again and compared before it appears at
its place, so that load, dump, load is the identity or an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.container import Container
from tomlkit.items import Table as TomlTable

from envsdk.digest import canonical
from envsdk.errors import SpecError
from envsdk.spec.compose import read_compose
from envsdk.spec.contents import FileContent, new_directory, read_contents, write_contents
from envsdk.spec.directory import open_directory
from envsdk.spec.load import load_task, read_spec
from envsdk.spec.meaning import COMPOSE_FILE, NETWORKS, without_canary
from envsdk.spec.model import ContainerSpec, HealthCheck, Task, TaskSpec
from envsdk.spec.problems import spec_error

_HARBOR_NETWORK = {ours: theirs for theirs, ours in NETWORKS.items()}
_EMPTY_BY_DEFAULT = {"description", "family", "system", "entry"}
_FREE_TABLES = {"metadata", "env", "level", "headers", "min_reward"}
Tables = dict[str, Any]


def dump_task(spec: TaskSpec, files: Mapping[str, FileContent], dest: Path) -> Task:
    """Write ``spec`` with ``files`` beside it as the task directory ``dest``, all of it or nothing.

    Args:
        spec: what the task is to be.
        files: everything but what the specification holds; an original ``task.toml``, ``instruction.md`` or
            ``tests/params.json`` among them is kept where it says the same.
        dest: must not exist, or be an empty directory.

    Raises:
        SpecError: the result is no valid task, or does not say what ``spec`` says (code ``not_representable``).
        UsageError: ``dest`` is taken, or a path leaves it.
        StoreError: it cannot be written.
    """
    with new_directory(dest) as draft:
        write_contents(draft, _contents(spec, files))
        original = files.get("task.toml")
        if original is None:
            tables = _pruned(task_tables(spec, elsewhere=_composed(files)))
            (draft / "task.toml").write_text(tomlkit.dumps(tables), encoding="utf-8", newline="")
        else:
            _edit_original(draft / "task.toml", spec, elsewhere=_composed(files))
        (draft / "task.toml").chmod(0o755 if original and original.executable else 0o644)
        _check(draft, spec)
    return load_task(dest)


def copy_task(task: Task, dest: Path) -> Task:
    """Write a task's directory elsewhere, byte for byte. Raises as `dump_task` does."""
    return dump_task(task.spec, read_contents(task.root), dest)


def _composed(files: Mapping[str, FileContent]) -> frozenset[str]:
    """Names of the services that a compose file among the files declares, and ``task.toml`` need not."""
    content = files.get(COMPOSE_FILE)
    if content is None or content.link is not None:
        return frozenset()
    text = content.data.decode("utf-8-sig", "replace")
    return frozenset(service.name for service in read_compose(text, file=COMPOSE_FILE, own="main").services)


def _check(draft: Path, spec: TaskSpec) -> None:
    written, _, problems = read_spec(open_directory(draft))
    errors = [problem for problem in problems if problem.severity == "error"]
    if errors:
        raise spec_error(Path(spec.slug), errors)
    if written is None or _nameless(written) != _nameless(spec):
        raise SpecError(
            "a task directory cannot say this specification",
            code="not_representable",
            hint="write it, load it and compare: what differs has no field in task.toml",
            where=spec.slug,
        )


def _nameless(spec: TaskSpec) -> TaskSpec:
    # A Harbor task without our table is named by its directory, which differs while it is being written.
    return spec.model_copy(update={"slug": "task"})


def _contents(spec: TaskSpec, files: Mapping[str, FileContent]) -> dict[str, FileContent]:
    contents = {"task.toml": FileContent(), **files}
    if not spec.steps:
        contents["instruction.md"] = _instruction(spec.instruction, files.get("instruction.md"))
    for step in spec.steps:
        path = f"steps/{step.name}/instruction.md"
        contents[path] = _instruction(step.instruction, files.get(path))
    if spec.verifier.kind != "script" and (spec.verifier.params or "tests/params.json" in files):
        contents["tests/params.json"] = _params(spec.verifier.params, files.get("tests/params.json"))
    return contents


def _instruction(text: str, original: FileContent | None) -> FileContent:
    if original is not None and original.link is None and without_canary(original.data.decode("utf-8-sig")) == text:
        return original
    return FileContent(text.encode())


def _params(params: Mapping[str, Any], original: FileContent | None) -> FileContent:
    if original is not None and json.loads(original.data) == params:
        return original
    return FileContent(
        (json.dumps(params, ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False) + "\n").encode()
    )


def _edit_original(path: Path, spec: TaskSpec, *, elsewhere: frozenset[str]) -> None:
    """Bring a kept ``task.toml`` to say what ``spec`` says; untouched where it does already."""
    before, raw, _ = read_spec(open_directory(path.parent))
    named = raw.get("metadata", {}).get("envsdk", {}).get("slug", spec.slug) if before is not None else None
    if before is not None and _nameless(before) == _nameless(spec) and named == spec.slug:
        return
    old = task_tables(before, elsewhere=elsewhere) if before is not None else {}
    new = task_tables(spec, elsewhere=elsewhere)
    if not isinstance(raw.get("metadata"), dict) or "envsdk" not in raw["metadata"]:
        # Our table changes what absent fields mean, so that every field is written; the task keeps its name.
        old = {}
        new["task"]["name"] = raw.get("task", {}).get("name", new["task"]["name"])
    document = tomlkit.parse(path.read_bytes().decode("utf-8-sig"))
    _edit(document, old, new)
    path.write_text(tomlkit.dumps(document), encoding="utf-8", newline="")


def _edit(
    target: TomlTable | Container | Any, old: Mapping[str, Any], new: Mapping[str, Any], *, is_free: bool = False
) -> None:
    for key in set(old) - set(new):
        target.pop(key, None)
    for key, value in new.items():
        if (key in old and old[key] == value) or (key in target and _same(target[key], value)):
            continue
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            before = old.get(key)
            inner_is_free = _is_free(key, outer_is_free=is_free)
            _edit(target[key], before if isinstance(before, dict) else {}, value, is_free=inner_is_free)
        elif key not in target and not is_free and _says_nothing(key, value):
            continue
        elif value is None:
            target.pop(key, None)
        else:
            inner_is_free = _is_free(key, outer_is_free=is_free)
            target[key] = _pruned(value, is_free=inner_is_free) if isinstance(value, dict) else value


def _pruned(value: Tables, *, is_free: bool = False) -> Tables:
    """Without what means the same as nothing; in a free table everything means something."""
    kept: Tables = {}
    for key, item in value.items():
        inner = _pruned(item, is_free=_is_free(key, outer_is_free=is_free)) if isinstance(item, dict) else item
        if isinstance(inner, list) and not is_free:
            inner = [_pruned(row) if isinstance(row, dict) else row for row in inner]
        if is_free or not _says_nothing(key, inner):
            kept[key] = inner
    return kept


def _is_free(key: str, *, outer_is_free: bool) -> bool:
    return key in _FREE_TABLES or (outer_is_free and key != "envsdk")


def _same(item: Any, value: Any) -> bool:
    """The document says it already, if in another spelling (``1`` and ``1.0``, not ``1`` and ``true``)."""
    plain = item.unwrap() if hasattr(item, "unwrap") else item
    return canonical(plain) == canonical(value)


def _says_nothing(key: str, value: Any) -> bool:
    """Absent, an empty table or list, or a text that is empty by default."""
    return value is None or value in ({}, []) or (value == "" and key in _EMPTY_BY_DEFAULT)


def task_tables(spec: TaskSpec, *, elsewhere: frozenset[str] = frozenset()) -> Tables:
    """The specification as the tables of ``task.toml``, every field explicit, `None` for what has no value.

    Services named in ``elsewhere`` stand in another file and are left out.
    """
    verifier, budget = spec.verifier, spec.budget
    return {
        "schema_version": spec.schema_version,
        "artifacts": list(spec.artifacts),
        "multi_step_reward_strategy": spec.step_reward if spec.steps else None,
        "task": {
            "name": f"envsdk/{_harbor_name(spec.slug)}",
            "description": spec.description,
            "keywords": list(spec.tags),
        },
        "agent": {"timeout_sec": budget.episode_s, "user": spec.agent.user},
        "verifier": {
            "timeout_sec": budget.verify_s,
            "user": verifier.user,
            "environment_mode": verifier.mode,
            "network_mode": _HARBOR_NETWORK.get(verifier.network, "no-network"),
            "env": dict(verifier.env),
            "environment": _box(verifier.container) if verifier.container else None,
        },
        "environment": _environment(spec.container, budget.build_s) if spec.container else {},
        "steps": _steps(spec),
        "metadata": {**spec.metadata, "envsdk": _own(spec, elsewhere)},
    }


def _harbor_name(slug: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", slug.lower()).strip("-._") or "task"


def _environment(container: ContainerSpec, build_s: float) -> Tables:
    return {
        **_box(container),
        "build_timeout_sec": build_s,
        "network_mode": _HARBOR_NETWORK.get(container.network, "no-network"),
        "allowed_hosts": list(container.allowed_hosts),
        "healthcheck": _healthcheck(container.healthcheck),
        "mcp_servers": [server.model_dump(mode="json", exclude_none=True) for server in container.mcp_servers],
    }


def _box(container: ContainerSpec) -> Tables:
    limits = container.limits
    return {
        "docker_image": container.image,
        "workdir": container.workdir,
        "cpus": limits.cpus,
        "memory_mb": limits.memory_mib,
        "storage_mb": limits.disk_mib,
        "env": dict(container.env),
    }


def _healthcheck(check: HealthCheck | None) -> Tables | None:
    if check is None:
        return None
    return {
        "command": check.command,
        "interval_sec": check.interval_s,
        "timeout_sec": check.timeout_s,
        "retries": check.retries,
        "start_period_sec": 0.0,  # counted into the retries
    }


def _steps(spec: TaskSpec) -> list[Tables]:
    return [
        {
            "name": step.name,
            "agent": {"timeout_sec": step.episode_s},
            "verifier": {"timeout_sec": step.verify_s, "env": dict(step.env)},
            "healthcheck": _healthcheck(step.healthcheck),
            "min_reward": dict(step.min_reward),
            "artifacts": list(step.artifacts),
        }
        for step in spec.steps
    ]


def _own(spec: TaskSpec, elsewhere: frozenset[str]) -> Tables:
    budget = spec.budget.model_dump(exclude={"build_s", "episode_s", "verify_s"})
    container = spec.container
    return {
        "slug": spec.slug,
        "family": spec.family,
        "level": dict(spec.level),
        "seed": spec.seed,
        "agent": {
            "protocol": spec.agent.protocol,
            "system": spec.agent.system,
            "stop": list(spec.agent.stop),
            "examples": [example.model_dump() for example in spec.agent.examples],
        },
        "container": {
            "network": "internal" if container and container.network == "internal" else None,
            "pids": container.limits.pids if container else None,
            "setup": container.setup or None if container else None,
        },
        "services": [
            service.model_dump(mode="json", exclude_none=True)
            for service in spec.services
            if service.name not in elsewhere
        ],
        "verifier": {
            "kind": spec.verifier.kind,
            "entry": spec.verifier.entry,
            "low": spec.verifier.low,
            "high": spec.verifier.high,
            "pass_mark": spec.verifier.pass_mark,
            "exit_status": spec.verifier.exit_status,
        },
        "budget": budget,
    }
