"""The learner in a thread of its own, so that generation goes on while it computes.

All that touches the learner's model runs in this one thread, in the order it was asked for: a step, writing the
weights, scoring a probe, a checkpoint. Torch releases the interpreter during its kernels, so the event loop keeps
turning.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from envsdk.errors import StoreError
from trainer import checkpoint
from trainer.activity import Activity
from trainer.engines.weight_file import WEIGHTS_FOLDER, WeightFile
from trainer.group import CompleteGroup
from trainer.model_folder import write_model
from trainer.recovery import LoopState

T = TypeVar("T")
LOOP_STATE = "loop.json"


class Learner(Protocol):
    """What the loop needs of a learner; every method blocks."""

    def build(self, groups: Sequence[CompleteGroup], *, version: int) -> Any:
        """Pack complete groups into a batch."""
        ...

    def step(self, batch: Any) -> Mapping[str, float]:
        """Train on a batch once; returns finite metrics."""
        ...

    def named_weights(self) -> Iterable[tuple[str, Any]]:
        """Every (name, tensor) that an engine loads."""
        ...

    def perturbed(self, *, scale: float, seed: int) -> AbstractContextManager[None]:
        """Other weights within, the same as before after it."""
        ...

    def logprobs(self, sequences: Sequence[tuple[int, ...]]) -> list[list[float]]:
        """Logprob of every token but the first of each sequence, at temperature 1."""
        ...

    def save(self, folder: Path) -> None: ...
    def load(self, folder: Path) -> None: ...


class LearnerThread:
    """Runs a learner; make it with `start`, close it to end the thread and remove the weight file.

    Args:
        activity: hears when the learner computes.
        folder: of the weight file; one without room gives way to that of temporary files, and ``say`` hears of it.
        dtype: what the engines serve in, as torch names it: of the weight file, and of an exported model.
        say: hears what is odd.
    """

    def __init__(
        self,
        activity: Activity,
        *,
        folder: Path = WEIGHTS_FOLDER,
        dtype: str = "bfloat16",
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._activity = activity
        self._folder = folder
        self._dtype = dtype
        self._say = say
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="learner")
        self._learner: Learner | None = None
        self._file: WeightFile | None = None

    async def start(self, make: Callable[[], Learner]) -> None:
        """Make the learner inside the thread."""
        self._learner = await self._run(make)

    async def build(self, groups: Sequence[CompleteGroup], *, version: int) -> Any:
        """Pack complete groups into a batch."""
        return await self._run(lambda: self._given.build(groups, version=version))

    async def step(self, batch: Any) -> Mapping[str, float]:
        """Train on a batch; counted as the learner's busy time."""
        self._activity.learning(True)
        try:
            return await self._run(lambda: self._given.step(batch))
        finally:
            self._activity.learning(False)

    async def write(self, version: int) -> Path:
        """Put the weights where engines map them, stamped with ``version``."""
        return await self._run(lambda: self._write(version))

    async def score(self, sequences: Sequence[tuple[int, ...]]) -> list[list[float]]:
        """The learner's logprobs of a probe."""
        return await self._run(lambda: self._given.logprobs(sequences))

    @asynccontextmanager
    async def perturbed(self, *, scale: float, seed: int) -> AsyncIterator[None]:
        """Other weights within, for a rehearsal; `write` and `score` see them."""
        other = self._given.perturbed(scale=scale, seed=seed)
        await self._run(other.__enter__)
        try:
            yield
        finally:
            await self._run(lambda: other.__exit__(None, None, None))

    async def save(self, root: Path, state: LoopState) -> None:
        """Write a checkpoint: the learner's state and the loop's, whole or not at all."""

        def write(folder: Path) -> None:
            self._given.save(folder)
            (folder / LOOP_STATE).write_text(state.model_dump_json(), encoding="utf-8")

        await self._run(lambda: checkpoint.save(root, state.step, write))

    async def export(
        self, folder: Path, model_dir: Path, *, lineage: str, version: int, trained_on: Iterable[str] = ()
    ) -> None:
        """Write the weights as a model folder, in what the engines serve in, with the tokenizer of ``model_dir``."""
        await self._run(
            lambda: write_model(
                folder, self._served(), model_dir, lineage=lineage, version=version, trained_on=trained_on
            )
        )

    async def load(self, folder: Path) -> None:
        """Go on from the folder that `save` made a checkpoint."""
        await self._run(lambda: self._given.load(folder))

    def close(self) -> None:
        """Wait for what runs, end the thread, remove the weight file."""
        self._executor.shutdown(wait=True, cancel_futures=True)
        if self._file is not None:
            self._file.close()

    @property
    def _given(self) -> Learner:
        assert self._learner is not None, "start first"
        return self._learner

    def _served(self) -> Iterator[tuple[str, Any]]:
        import torch

        dtype = getattr(torch, self._dtype)
        return ((name, tensor.to(dtype)) for name, tensor in self._given.named_weights())

    def _laid_out(self) -> WeightFile:
        import torch

        def lay_out(folder: Path) -> WeightFile:
            return WeightFile.lay_out(self._given.named_weights(), dtype=getattr(torch, self._dtype), folder=folder)

        try:
            return lay_out(self._folder)
        except StoreError as error:
            disk = Path(tempfile.gettempdir())
            if error.code != "no_space" or disk == self._folder:
                raise
            self._say(
                f"{error}; the weights go through a file in {disk} instead, which is slower on a disk "
                "(of a container, --shm-size is the shared memory)"
            )
            return lay_out(disk)

    def _write(self, version: int) -> Path:
        if self._file is None:
            self._file = self._laid_out()
        self._file.write(self._given.named_weights(), version=version)
        return self._file.path

    async def _run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)
