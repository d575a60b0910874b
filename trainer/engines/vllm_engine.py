"""vLLM in process: one replica behind the `Engine` protocol, on a CPU or a GPU by the same code.

The engine's core runs in a process of its own that vLLM spawns; it ends when this one does. Promised: tokens, logprobs
and version spans exactly as the engine reports them; a missing logprob or span is an `EngineError`, never a filler.
Tested on a CPU; on a GPU the same calls are made, with the settings of `trainer.engines.options` for one: untested.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envsdk.episode.record import VersionSpan
from envsdk.errors import EngineError, PrerequisiteError
from trainer.engines.base import Generation, Request
from trainer.engines.environment import prepare_environment
from trainer.engines.launch import launched
from trainer.engines.options import EngineOptions, arguments
from trainer.engines.plugin import BACKEND
from trainer.engines.sockets import keep_sockets_together, note_shared_memory

if TYPE_CHECKING:
    from vllm.outputs import CompletionOutput, RequestOutput

_NEEDED = "this needs vLLM 0.32 or later, as `make setup` installs it"


class VllmEngine:
    """One vLLM replica. Make it with `start`."""

    def __init__(self, llm: Any, *, name: str, max_model_len: int, version: int) -> None:
        self._llm = llm
        self.name = name
        self.max_model_len = max_model_len
        self._version = version

    @classmethod
    async def start(
        cls,
        model_dir: Path,
        options: EngineOptions,
        *,
        name: str = "0",
        version: int = 0,
        gpus: tuple[int, ...] = (),
    ) -> VllmEngine:
        """Start a replica with the weights of ``model_dir``, labelled ``version``. Takes 15-60 s; may be cancelled.

        Args:
            model_dir: of the model.
            options: of the engine; ``threads`` and ``gpu_share`` are this replica's.
            name: of the replica, in messages.
            version: of the weights in ``model_dir``.
            gpus: that it computes on, numbered among the visible ones; empty for vLLM's own choice, and on a CPU.

        Raises:
            PrerequisiteError: ``no_vllm``: vLLM is not installed.
            EngineError: ``engine_start``: vLLM did not come up.
        """
        prepare_environment(kv_cache_gib=options.kv_cache_gib, threads=options.threads, compiled=options.compile)
        keep_sockets_together()
        try:
            llm = await launched(partial(_load, model_dir, options, gpus))
            await llm.update_weight_version(str(version))
            note_shared_memory()
        except PrerequisiteError:
            raise
        except Exception as error:
            # vLLM reports a failed start with whatever its child raised; all of it means that there is no engine.
            raise EngineError(
                f"vLLM did not start: {error}", code="engine_start", where=str(model_dir), hint="see vLLM's lines above"
            ) from error
        return cls(llm, name=name, max_model_len=options.max_model_len, version=version)

    @property
    def alive(self) -> bool:
        return self._llm is not None and not self._llm.errored

    @property
    def version(self) -> int:
        return self._version

    async def generate(self, request: Request) -> Generation:
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        params = SamplingParams(
            max_tokens=request.max_tokens,
            temperature=request.temperature,
            stop=list(request.stop),
            seed=request.seed,
            logprobs=0,  # the sampled token's own, no others
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        output = await self._run(request.request_id, request.prompt_ids, params, request.salt, request.timeout_s)
        return _read(output, self.name)

    async def score(self, ids: Sequence[int], *, salt: str) -> list[float]:
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        params = SamplingParams(
            max_tokens=1, temperature=0.0, prompt_logprobs=0, output_kind=RequestOutputKind.FINAL_ONLY
        )
        output = await self._run(f"score-{salt}", ids, params, salt, None)
        rows = [row for row in output.prompt_logprobs or () if row is not None]  # the first token has none
        if len(rows) != len(ids) - 1:
            raise EngineError(
                "the engine returned no prompt logprobs", code="no_logprobs", where=f"engine {self.name}", hint=_NEEDED
            )
        # A row holds the token itself and, where they differ, the likeliest one.
        return [float(row[token].logprob) for row, token in zip(rows, ids[1:], strict=True)]

    async def pause(self) -> None:
        async with self._failures("pause"):
            await self._llm.pause_generation(mode="keep", clear_cache=False)

    async def load(self, path: Path, *, version: int) -> None:
        from vllm.distributed.weight_transfer.base import WeightTransferUpdateRequest

        async with self._failures("weight update"):
            await self._llm.start_weight_update()
            await self._llm.update_weights(WeightTransferUpdateRequest({"path": str(path), "version": version}))
            await self._llm.finish_weight_update(str(version))
            self._version = int(await self._llm.get_weight_version())

    async def resume(self) -> None:
        async with self._failures("resume"):
            await self._llm.resume_generation()

    async def close(self) -> None:
        llm, self._llm = self._llm, None
        if llm is not None:
            if llm.output_handler is not None:
                llm.output_handler.cancel()  # or it reports the engine's orderly end as a death
            await asyncio.to_thread(llm.shutdown)
            llm.shutdown = lambda: None  # its finaliser calls it again, at exit, when its modules are gone

    async def _run(
        self, request_id: str, ids: Sequence[int], params: Any, salt: str, timeout_s: float | None
    ) -> RequestOutput:
        from vllm import TokensPrompt

        prompt = TokensPrompt(prompt_token_ids=list(ids))
        if salt:
            prompt["cache_salt"] = salt
        # Aborting by id makes vLLM hand over what it has; cancelling the task would throw it away.
        loop = asyncio.get_running_loop()
        aborts: list[asyncio.Task[None]] = []
        alarm = timeout_s and loop.call_later(
            timeout_s, lambda: aborts.append(loop.create_task(self._llm.abort(request_id)))
        )
        try:
            async with self._failures(f"request {request_id}"):
                last: RequestOutput | None = None
                async for output in self._llm.generate(prompt, params, request_id):
                    last = output
                if last is None or not last.outputs:
                    raise EngineError(
                        "the engine ended a request without an output",
                        code="inference_empty",
                        where=f"engine {self.name}",
                        hint="see vLLM's lines on stderr",
                    )
                return last
        finally:
            if alarm:
                alarm.cancel()
            await asyncio.gather(*aborts, return_exceptions=True)

    @asynccontextmanager
    async def _failures(self, what: str) -> AsyncIterator[None]:
        try:
            yield
        except (EngineError, asyncio.CancelledError):
            raise
        except Exception as error:
            # vLLM raises its own, torch's and zmq's errors; to the caller each means that this replica failed.
            raise EngineError(
                f"{what} failed: {type(error).__name__}: {error}",
                where=f"engine {self.name}",
                hint="see vLLM's lines on stderr",
            ) from error


def _load(model_dir: Path, options: EngineOptions, gpus: tuple[int, ...]) -> Callable[[], Any]:
    """Import vLLM; what this returns starts it."""
    try:
        from vllm.v1.engine.async_llm import AsyncLLM
    except ImportError as error:
        raise PrerequisiteError(
            f"vLLM cannot be imported: {error}", code="no_vllm", hint="pip install 'envsdk[trainer,cpu]' (or gpu)"
        ) from error
    return partial(AsyncLLM.from_engine_args, _engine_args(model_dir, options, gpus))


def _engine_args(model_dir: Path, options: EngineOptions, gpus: tuple[int, ...]) -> Any:
    from vllm.config import WeightTransferConfig
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.platforms import current_platform

    return AsyncEngineArgs(
        model=str(model_dir),
        weight_transfer_config=WeightTransferConfig(backend=BACKEND),
        **arguments(options, cpu=current_platform.is_cpu(), gpus=gpus),
    )


def _read(output: RequestOutput, name: str) -> Generation:
    made = output.outputs[0]
    ids = tuple(made.token_ids)
    timing = output.metrics
    return Generation(
        ids=ids,
        logprobs=_logprobs(made, name),
        text=made.text,
        finish="stop" if made.finish_reason == "stop" else "length" if made.finish_reason == "length" else "cut",
        versions=_spans(made, name),
        cached_tokens=output.num_cached_tokens or 0,
        queue_s=_between(timing, "queued_ts", "scheduled_ts"),
        prefill_s=_between(timing, "scheduled_ts", "first_token_ts"),
        decode_s=_between(timing, "first_token_ts", "last_token_ts"),
    )


def _logprobs(made: CompletionOutput, name: str) -> tuple[float, ...]:
    rows = [row for row in made.logprobs or () if row is not None]
    if len(rows) != len(made.token_ids):
        raise EngineError(
            f"{len(made.token_ids)} tokens came with {len(rows)} logprobs",
            code="no_logprobs",
            where=f"engine {name}",
            hint=_NEEDED,
        )
    return tuple(float(row[token].logprob) for row, token in zip(rows, made.token_ids, strict=True))


def _spans(made: CompletionOutput, name: str) -> tuple[VersionSpan, ...]:
    spans = tuple(
        VersionSpan(version=int(span.version), start=span.start, end=span.end)
        for span in made.weight_versions or ()
        if span.end > span.start
    )
    if sum(span.end - span.start for span in spans) != len(made.token_ids):
        raise EngineError(
            "the engine did not say which weights made which token",
            code="no_versions",
            hint=_NEEDED,
            where=f"engine {name}",
        )
    return spans


def _between(timing: Any, start: str, end: str) -> float:
    """Seconds between two stamps of vLLM's request statistics; 0 where either was not reached."""
    first, last = (getattr(timing, key, 0.0) for key in (start, end))
    return max(0.0, last - first) if first and last else 0.0
