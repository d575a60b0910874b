"""The probe: what is compared, and when a difference is one too many."""

from __future__ import annotations

import dataclasses
import math

import pytest

from envsdk.errors import EngineError
from tests.fakes.engine import FakeEngine, trainer_scores
from trainer.probe import Probe

SEQUENCES = [(5, 6, 7, 8), (9, 5, 9)]


def probe_at(version: int) -> Probe:
    return Probe(SEQUENCES, lambda sequences: trainer_scores(version, sequences))


async def test_equal_weights_agree_on_every_token_of_prompt_and_reply() -> None:
    reading = await probe_at(0).read(FakeEngine())
    assert (reading.mean, reading.maximum) == (0.0, 0.0)
    assert reading.tokens == (3 + 4) + (2 + 4)


async def test_other_weights_disagree() -> None:
    reading = await probe_at(1).read(FakeEngine())
    assert reading.maximum >= reading.mean > 0.1
    assert reading.divergence["k3"] > 0
    assert reading.divergence["ess_token"] < 1


async def test_a_reading_holds_the_divergence_of_the_very_tokens_it_compared() -> None:
    reading = await probe_at(0).read(FakeEngine())
    assert reading.divergence["n_tok"] == reading.tokens
    assert reading.divergence["n_seq"] == len(SEQUENCES)
    for name, value in {"k1": 0.0, "k3": 0.0, "chi2_token": 0.0, "ess_token": 1.0, "ratio_q50": 1.0}.items():
        assert reading.divergence[name] == pytest.approx(value, abs=1e-9)


async def test_the_baseline_is_the_worst_replicas() -> None:
    class Rough(FakeEngine):
        async def score(self, ids, *, salt):
            return [logprob - 0.1 for logprob in await super().score(ids, salt=salt)]

    probe = probe_at(0)
    readings = await probe.measure_baseline([FakeEngine("a"), Rough("b")])
    assert probe.baseline == readings[1].mean > 0
    assert probe.limit == 2 * probe.baseline


@pytest.mark.parametrize(("off", "agrees"), [(0.0, True), (0.19, True), (0.21, False), (math.nan, False)])
async def test_a_baseline_that_numerics_cannot_explain_ends_the_run_before_it_trains(off: float, agrees: bool) -> None:
    class Other(FakeEngine):
        async def score(self, ids, *, salt):
            return [logprob - off for logprob in await super().score(ids, salt=salt)]

        async def generate(self, request):
            made = await super().generate(request)
            return dataclasses.replace(made, logprobs=tuple(logprob - off for logprob in made.logprobs))

    probe = probe_at(0)
    if agrees:
        await probe.measure_baseline([FakeEngine("a"), Other("b")])
        assert probe.baseline == pytest.approx(off)
        return
    with pytest.raises(EngineError, match="before any update") as caught:
        await probe.measure_baseline([FakeEngine("a"), Other("b")])
    assert (caught.value.code, caught.value.where) == ("engine_disagrees", "engine b")
    assert probe.baseline is None


async def test_a_difference_that_is_no_number_is_not_accepted() -> None:
    class Broken(FakeEngine):
        async def score(self, ids, *, salt):
            return [math.nan for _ in ids[1:]]

    probe = probe_at(0)
    await probe.measure_baseline([FakeEngine()])
    assert not probe.accepts(await probe.read(Broken()))


async def test_what_an_engine_is_asked_shares_no_prefix_with_another_version() -> None:
    engine = FakeEngine(version=3)
    await probe_at(3).read(engine)
    assert {request.salt for request in engine.requests} == {"probe-3"}


@pytest.mark.parametrize(("difference", "accepted"), [(0.0, True), (0.0099, True), (0.0101, False)])
async def test_below_the_floor_a_doubled_difference_is_noise(difference: float, accepted: bool) -> None:
    class Off(FakeEngine):
        async def score(self, ids, *, salt):
            return [logprob - difference for logprob in await super().score(ids, salt=salt)]

        async def generate(self, request):
            made = await super().generate(request)
            return type(made)(
                made.ids, tuple(p - difference for p in made.logprobs), made.text, made.finish, made.versions
            )

    probe = probe_at(0)
    await probe.measure_baseline([FakeEngine()])
    assert probe.accepts(await probe.read(Off())) is accepted
