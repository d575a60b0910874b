"""A stage for one task: plays scenes on it (what an agent might leave) and hears what the verifier says.

Every scene starts from the pristine image, or from what the oracle left, in a sandbox of its own; sandboxes of the
oracle's state are started from one snapshot. Tasks without a container are judged on their answer alone.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from envsdk.checks.check import is_full
from envsdk.checks.opening import Opening, run_solution
from envsdk.checks.outputs import changed_files, hash_files, list_folders, read_files
from envsdk.checks.scene import Scene, set_scene
from envsdk.checks.shared import Shared
from envsdk.errors import SandboxError
from envsdk.sandboxes.base import ExecResult, Sandbox, SandboxProvider, SandboxSpec, Snapshot
from envsdk.sandboxes.services import start_services
from envsdk.spec.model import Task
from envsdk.verifying.pristine import box_spec, image_of
from envsdk.verifying.script import run_script
from envsdk.verifying.verdict import EndState, Verdict, answer_path, declared_artifacts
from envsdk.verifying.verify import verify

ANSWER = "answer.txt"
_PATIENCE_S = 60.0
_PATIENCE_TIMES = 10


@dataclass(frozen=True, slots=True)
class OracleRun:
    """What came of the oracle.

    Attributes:
        verdict: what the verifier said of it.
        ended: how its script ended; `None` for a plain answer.
        outputs: files that it wrote or changed among the declared artifacts.
        before: what lay at those paths before.
        folders: declared artifacts that are folders in the end.
        snapshot: the box as it left it; `None` where only its answer counts.
    """

    verdict: Verdict
    ended: ExecResult | None
    outputs: dict[str, bytes]
    before: dict[str, bytes]
    snapshot: Snapshot | None = None
    folders: tuple[str, ...] = ()


class Stage:
    """One task, one provider, and the oracle's end state, made once. Close it by leaving its context."""

    def __init__(
        self,
        task: Task,
        provider: SandboxProvider | None,
        *,
        at_once: int | None = None,
        repeats: int = 10,
        shared: Shared | None = None,
        opening: Opening | None = None,
    ) -> None:
        self.task = task
        self.opening = opening
        self.provider = provider
        self.has_box = task.spec.container is not None
        self.repeats = repeats
        self.runs = 0
        self.verify_s = 0.0
        self._free = asyncio.Semaphore(at_once or (os.cpu_count() or 1) + 1)
        self._image = ""
        self._usual_s = math.inf
        self._oracle: asyncio.Task[OracleRun | None] | None = None
        self._memo: dict[str, asyncio.Task[Any]] = {}
        self._lock = asyncio.Lock()
        self._shared = shared if shared is not None else Shared()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pending = [task for task in (self._oracle, *self._memo.values()) if task is not None]
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    @property
    def artifacts(self) -> tuple[str, ...]:
        """Paths that are carried to the verifier."""
        return declared_artifacts(self.task.spec)

    @property
    def answer_path(self) -> str:
        """Where a plain answer lies."""
        return answer_path(self.task.spec)

    def read_file(self, path: str) -> bytes | None:
        """A file of the task's directory, or `None`."""
        place = self.task.root / path
        return place.read_bytes() if place.is_file() and not place.is_symlink() else None

    async def play(self, scene: Scene) -> Verdict:
        """What the verifier says after a scene.

        Raises:
            SandboxError: no box could be had, or the scene could not be set.
        """
        if scene.after_oracle:
            await self.oracle()  # before a slot is taken: the oracle needs one
        plain = await self._plain_answer(scene)
        async with self._free:
            if plain is not None or not self.has_box:
                end = EndState(answer=plain)
                verdict = await verify(self._timed(scene), end, None, env=scene.env, faketime=scene.faketime)
                return self._counted(verdict)
            async with AsyncExitStack() as closing:
                network = await self._network(closing)
                box = await self._box(scene, network)
                closing.push_async_callback(box.close)
                await set_scene(self.task, box, scene)
                verdict = await verify(
                    self._timed(scene),
                    EndState(sandbox=box, network=network),
                    self.provider,
                    env=scene.env,
                    faketime=scene.faketime,
                    before_start=scene.before_start,
                )
                return self._counted(verdict)

    async def _plain_answer(self, scene: Scene) -> bytes | None:
        """The answer that a scene comes down to, where the verifier sees nothing but an answer; needs no box then."""
        if not self.has_box and scene.solution is not None:
            return (scene.solution / ANSWER).read_bytes()
        if self.has_box and (self.task.spec.verifier.kind != "text" or scene.script or scene.solution):
            return None
        if self.answer_path in scene.files:
            return scene.files[self.answer_path]
        if scene.after_oracle:
            run = await self.oracle()
            return run.outputs.get(self.answer_path) if run is not None else None
        return await self._pristine_answer() if self.has_box else None

    async def _pristine_answer(self) -> bytes | None:
        """What lies in the image where the answer is looked for: empty where nothing does."""
        path = self.answer_path

        async def read() -> bytes:
            return (await self.read_pristine([path])).get(path, b"")

        return await self.once_per_image(f"answer at {path}", read)  # type: ignore[no-any-return]

    @asynccontextmanager
    async def box(self, scene: Scene) -> AsyncIterator[Sandbox]:
        """A box in which the scene is set, closed when the context is left. Raises `SandboxError`."""
        if scene.after_oracle:
            await self.oracle()  # before a slot is taken, as in `play`
        async with self._free, AsyncExitStack() as closing:
            network = await self._network(closing) if self.opening is not None else ""
            box = await self._box(scene, network)
            try:
                await set_scene(self.task, box, scene)
                yield box
            finally:
                await box.close()

    async def probe(self, command: str, *, user: str = "root", after_oracle: bool = False) -> ExecResult:
        """The end of one command in a box in which nothing else was done. Raises `SandboxError`."""
        async with self.box(Scene(after_oracle=after_oracle)) as box:
            return await box.exec(command, user=user, cwd="/", timeout_s=60.0, output_cap_bytes=8 << 20)

    async def watch(self, scene: Scene, *, before: str = "", after: str) -> tuple[Verdict, bytes]:
        """Verify a scene in the agent's own box; the verdict, and what the command ``after`` printed in it then.

        ``before`` is run as root when the tests lie there, right before the script starts. Raises `SandboxError`.
        """

        async def prepare(box: Sandbox) -> None:
            if before:
                await box.exec(before, user="root", cwd="/")

        async with self.box(scene) as box:
            verdict = self._counted(await run_script(self._timed(scene), box, before_start=prepare))
            told = await box.exec(after, user="root", cwd="/", output_cap_bytes=4 << 20)
        return verdict, told.stdout

    async def oracle(self) -> OracleRun | None:
        """The oracle's run, made once; `None` where the task has no oracle. Raises `SandboxError`."""
        if self._oracle is None:
            self._oracle = asyncio.ensure_future(self._run_oracle())
        run = await asyncio.shield(self._oracle)
        if run is not None:
            self._usual_s = max(_PATIENCE_S, _PATIENCE_TIMES * run.verdict.seconds)
        return run

    def known(self) -> dict[str, str]:
        """What is known without asking anything more: the image's reference, the oracle's reward."""
        run = self._oracle.result() if self._oracle is not None and _succeeded(self._oracle) else None
        found = {"image": self._image}
        if run is not None and run.verdict.reward is not None:
            found["oracle_reward"] = f"{run.verdict.reward:g}"
        return {name: value for name, value in found.items() if value}

    async def passing_oracle(self) -> OracleRun | None:
        """The oracle's run where it earned the full reward, else `None`."""
        run = await self.oracle()
        return run if run is not None and is_full(run.verdict, self.task.spec.verifier) else None

    async def once(self, name: str, make: Callable[[], Awaitable[Any]]) -> Any:
        """The value of ``make``, computed once per name on this stage and shared by its checks."""
        if name not in self._memo:
            self._memo[name] = asyncio.ensure_future(make())
        return await asyncio.shield(self._memo[name])

    async def once_per_image(self, name: str, make: Callable[[], Awaitable[Any]]) -> Any:
        """The value of ``make``, computed once for all tasks whose boxes are the same. Raises `SandboxError`."""
        if self.opening is not None:
            return await self.once(f"image: {name}", make)
        return await self._shared.once((name, box_spec(self.task, await self.image())), make)

    async def image(self) -> str:
        """The pristine image of this task, made ready once. Raises `SandboxError`."""
        if self.provider is None:
            raise SandboxError(
                "this task needs a sandbox",
                code="no_provider",
                hint="`envsdk doctor` says which can be had",
                where=self.task.slug,
            )
        async with self._lock:
            if not self._image:
                self._image = await image_of(self.task, self.provider)
        return self._image

    async def _box(self, scene: Scene, network: str) -> Sandbox:
        spec = box_spec(self.task, await self.image(), network=network)
        assert self.provider is not None
        if scene.after_oracle:
            run = await self.oracle()
            if run is None:
                raise SandboxError("there is no state of the oracle to start from", code="no_oracle")
            if run.snapshot is not None:
                return (await self.provider.start_from(run.snapshot, spec, 1))[0]
        box = await self._begun(spec)
        if scene.after_oracle:
            try:
                await run_solution(self.task, box, self.task.root / "solution")
            except BaseException:
                await box.close()  # nobody else knows of it
                raise
        return box

    async def _begun(self, spec: SandboxSpec) -> Sandbox:
        """A box as the agent meets it: pristine, or as the steps before this one left it."""
        provider, opening = self.provider, self.opening
        assert provider is not None
        if opening is None or opening.is_pristine:
            return await provider.acquire(spec, timeout_s=self.task.spec.budget.acquire_s)
        if self.task.spec.services:  # they keep what earlier steps did, and no snapshot holds it
            return await opening.begin(provider, spec)
        snapshot = await self.once("opening", lambda: opening.freeze(provider, spec))
        return (await provider.start_from(snapshot, spec, 1))[0]

    async def _network(self, closing: AsyncExitStack) -> str:
        if not self.task.spec.services:
            return ""
        assert self.provider is not None
        group = await closing.enter_async_context(start_services(self.task, self.provider))
        return group.network

    async def _run_oracle(self) -> OracleRun | None:
        if not self.has_box:
            answer = self.read_file(f"solution/{ANSWER}")
            if answer is None:
                return None
            verdict = await self.play(Scene(files={self.answer_path: answer}))
            return OracleRun(verdict, None, {self.answer_path: answer}, {})
        if self.task.oracle is None:
            return None
        async with self._free, AsyncExitStack() as closing:
            network = await self._network(closing)
            box = await self._box(Scene(), network)
            closing.push_async_callback(box.close)
            before = await hash_files(box, self.artifacts)
            ended = await set_scene(self.task, box, Scene(solution=self.task.root / "solution"))
            paths = changed_files(before, await hash_files(box, self.artifacts))
            outputs = await read_files(box, paths)
            folders = await list_folders(box, self.artifacts)
            pristine = await self._read_pristine([path for path in outputs if path in before])
            # Of a text answer nothing but the answer is asked again: a snapshot would cost more than the whole run.
            snapshot = await box.snapshot() if self.task.spec.verifier.kind != "text" else None
            end = EndState(sandbox=box, network=network)
            verdict = self._counted(await verify(self.task, end, self.provider))
            return OracleRun(verdict, ended, outputs, pristine, snapshot, folders)

    async def read_pristine(self, paths: list[str]) -> dict[str, bytes]:
        """Content of files of the image; those that are not there are left out. Raises `SandboxError`."""
        if not paths:
            return {}
        async with self.box(Scene()) as box:
            return await read_files(box, paths)

    async def download_pristine(self, path: str, target: Path) -> None:
        """Copy a file or folder of the image to this machine. Raises `SandboxError`."""
        async with self.box(Scene()) as box:
            await box.download(path, target)

    async def _read_pristine(self, paths: list[str]) -> dict[str, bytes]:
        if not paths or (self.opening is not None and self.task.spec.services):
            return {}  # playing earlier steps once more would change what their services hold
        box = await self._box(Scene(), "")
        try:
            return await read_files(box, paths)
        finally:
            await box.close()

    def _timed(self, scene: Scene) -> Task:
        """The task with the shortest of its own limit, the scene's, and many times what the oracle's state took."""
        budget = self.task.spec.budget
        limit_s = min(scene.verify_s or budget.verify_s, self._usual_s, budget.verify_s)
        if limit_s >= budget.verify_s:
            return self.task
        spec = self.task.spec.model_copy(update={"budget": budget.model_copy(update={"verify_s": limit_s})})
        return self.task.model_copy(update={"spec": spec})

    def _counted(self, verdict: Verdict) -> Verdict:
        self.runs += 1
        self.verify_s += verdict.seconds
        return verdict


def _succeeded(task: asyncio.Task[Any]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


async def oracle_scene(stage: Stage) -> Scene:
    """The scene that shows what the oracle left; there must be an oracle. Raises `SandboxError`."""
    run = await stage.oracle()
    assert run is not None
    return Scene(after_oracle=True) if stage.has_box else Scene(files=run.outputs)
