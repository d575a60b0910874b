"""What is read from vLLM's outputs: the sampled token's own logprob, every token's version, and no fillers."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from envsdk.errors import EngineError, PrerequisiteError
from trainer.engines.vllm_engine import EngineOptions, VllmEngine, _read


@dataclass
class Logprob:
    logprob: float


@dataclass
class Span:
    version: str
    start: int
    end: int


def output(**changes):
    made = {
        "token_ids": [7, 8, 9],
        "text": "abc",
        "finish_reason": "stop",
        # The likeliest token may come first in a row; the sampled one is what counts.
        "logprobs": [{5: Logprob(-0.1), 7: Logprob(-2.0)}, {8: Logprob(-0.5)}, {9: Logprob(-0.25), 1: Logprob(-3.0)}],
        "weight_versions": [Span("3", 0, 2), Span("4", 2, 3)],
    } | changes
    times = SimpleNamespace(queued_ts=1.0, scheduled_ts=1.5, first_token_ts=2.0, last_token_ts=5.0)
    return SimpleNamespace(outputs=[SimpleNamespace(**made)], metrics=times, num_cached_tokens=32)


def test_the_logprob_of_a_token_is_its_own_wherever_it_stands_in_the_row() -> None:
    assert _read(output(), "0").logprobs == (-2.0, -0.5, -0.25)


def test_versions_are_numbers_over_every_token() -> None:
    spans = _read(output(), "0").versions
    assert [(span.version, span.start, span.end) for span in spans] == [(3, 0, 2), (4, 2, 3)]


def test_an_empty_span_is_no_span() -> None:
    spans = _read(output(weight_versions=[Span("3", 0, 0), Span("4", 0, 3)]), "0").versions
    assert [span.version for span in spans] == [4]


@pytest.mark.parametrize("rows", [None, [], [{7: Logprob(-2.0)}]])
def test_missing_logprobs_are_an_error_never_zero(rows) -> None:
    with pytest.raises(EngineError) as caught:
        _read(output(logprobs=rows), "0")
    assert caught.value.code == "no_logprobs"


@pytest.mark.parametrize("spans", [None, [], [Span("3", 0, 2)]])
def test_tokens_nobody_vouches_for_are_an_error(spans) -> None:
    with pytest.raises(EngineError) as caught:
        _read(output(weight_versions=spans), "0")
    assert caught.value.code == "no_versions"


@pytest.mark.parametrize(
    ("reason", "finish"), [("stop", "stop"), ("length", "length"), ("abort", "cut"), (None, "cut")]
)
def test_how_a_reply_ended(reason, finish: str) -> None:
    assert _read(output(finish_reason=reason), "0").finish == finish


def test_the_engines_own_split_of_the_time_is_kept() -> None:
    made = _read(output(), "0")
    assert (made.queue_s, made.prefill_s, made.decode_s, made.cached_tokens) == (0.5, 0.5, 3.0, 32)


def test_times_an_engine_does_not_tell_are_zero() -> None:
    silent = output()
    silent.metrics = None
    assert _read(silent, "0").decode_s == 0.0


class FakeOutputHandler:
    """The task that reads the core's output, and takes its end for a death."""

    def __init__(self, calls: list[str]) -> None:
        self._calls = calls

    def cancel(self) -> None:
        self._calls.append("cancel output")


class FakeLlm:
    """As much of AsyncLLM as the engine touches."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.errored = False
        self.calls: list[str] = []
        self.output_handler: FakeOutputHandler | None = FakeOutputHandler(self.calls)

    async def pause_generation(self, *, mode: str, clear_cache: bool) -> None:
        self.calls.append(f"pause {mode} {clear_cache}")
        if self.error:
            raise self.error

    async def resume_generation(self) -> None:
        self.calls.append("resume")

    def shutdown(self) -> None:
        self.calls.append("shutdown")


async def test_a_pause_keeps_requests_and_caches() -> None:
    llm = FakeLlm()
    engine = VllmEngine(llm, name="0", max_model_len=10, version=0)
    await engine.pause()
    await engine.resume()
    assert llm.calls == ["pause keep False", "resume"]


async def test_whatever_vllm_raises_is_an_engine_error_that_names_the_replica() -> None:
    engine = VllmEngine(FakeLlm(ValueError("zmq")), name="replica-1", max_model_len=10, version=0)
    with pytest.raises(EngineError, match="zmq") as caught:
        await engine.pause()
    assert "replica-1" in caught.value.where


async def test_an_engine_is_closed_once_and_dead_afterwards() -> None:
    llm = FakeLlm()
    engine = VllmEngine(llm, name="0", max_model_len=10, version=0)
    assert engine.alive
    await engine.close()
    await engine.close()
    assert llm.calls == ["cancel output", "shutdown"]
    assert not engine.alive


async def test_an_engine_that_never_answered_has_nobody_to_stop_listening() -> None:
    llm = FakeLlm()
    llm.output_handler = None
    await VllmEngine(llm, name="0", max_model_len=10, version=0).close()
    assert llm.calls == ["shutdown"]


async def test_an_engine_whose_core_died_is_not_alive() -> None:
    llm = FakeLlm()
    llm.errored = True
    assert not VllmEngine(llm, name="0", max_model_len=10, version=0).alive


async def test_no_vllm_is_a_missing_prerequisite(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "vllm.v1.engine.async_llm", None)
    with pytest.raises(PrerequisiteError) as caught:
        await VllmEngine.start(tmp_path, EngineOptions())
    assert caught.value.code == "no_vllm"
