"""The real vLLM with the tiny model: exact tokens, versions across an update, probes, refusals. One engine for all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from envsdk.errors import EngineError
from envsdk.policy import Message
from trainer.engines.base import Request
from trainer.engines.chat import ChatTokens
from trainer.engines.policy import load_tokenizer
from trainer.engines.rotation import Rotation
from trainer.engines.token_policy import TokenPolicy
from trainer.models import tiny_model_dir
from trainer.probe import PROBE_TEXTS, Probe
from trainer.weights import WeightPublisher

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore"),  # of vLLM and torch, by the dozen, while they are imported
]

CONTEXT = 256


@dataclass
class Bench:
    """A trainer's model, an engine with the same weights, and the publisher between them."""

    model: object
    policy: TokenPolicy
    publisher: WeightPublisher
    probe: Probe
    folder: Path
    told: list
    lie: bool = False

    @property
    def engine(self):
        return self.policy.rotation.replicas[0]

    def perturb(self, scale: float = 0.1) -> None:
        import torch

        with torch.no_grad():
            for weight in self.model.parameters():
                weight.mul_(1 + scale * torch.randn_like(weight))

    def scores(self, sequences) -> list[list[float]]:
        import torch

        found = []
        for ids in sequences:
            with torch.no_grad():
                logprobs = self.model(torch.tensor([ids])).logits[0].float().log_softmax(-1)
            found.append([logprobs[i, ids[i + 1]].item() for i in range(len(ids) - 1)])
        return found


async def start(folder: Path) -> Bench:
    import torch
    from transformers import AutoModelForCausalLM

    from trainer.engines.policy import policy_id
    from trainer.engines.token_policy import Sampling
    from trainer.engines.vllm_engine import EngineOptions, VllmEngine
    from trainer.engines.weight_file import WeightFile

    model_dir = tiny_model_dir()
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32)
    options = EngineOptions(max_model_len=CONTEXT, max_concurrent=8, kv_cache_gib=1)
    engine = await VllmEngine.start(model_dir, options)
    chat = ChatTokens(load_tokenizer(model_dir))
    rotation = Rotation([engine])
    policy = TokenPolicy(rotation, chat, identity=policy_id(model_dir, engine=options, sampling=Sampling()))
    file = WeightFile.lay_out(model.named_parameters(), dtype=torch.bfloat16, folder=folder)

    async def write(version: int) -> Path:
        liars = ((name, weight * 1.5 if bench.lie else weight) for name, weight in model.named_parameters())
        file.write(liars, version=version)
        return file.path

    async def score(sequences):
        return bench.scores(sequences)

    probe = Probe([tuple(chat.plain(text)) for text in PROBE_TEXTS], score)
    bench = Bench(model, policy, WeightPublisher(rotation, probe, write), probe, folder, [])
    await bench.publisher.start()
    return bench


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(tmp_path_factory) -> AsyncIterator[Bench]:
    made = await start(tmp_path_factory.mktemp("weights"))
    yield made
    await made.policy.close()


async def test_engine_and_trainer_agree_before_any_update(bench: Bench) -> None:
    assert bench.probe.baseline is not None
    assert bench.probe.baseline < 0.05


async def test_a_conversations_tokens_are_those_the_engine_saw_and_their_logprobs_are_the_trainers(
    bench: Bench,
) -> None:
    session = await bench.policy.begin(session_id="conversation", seed=3)
    await session.reply([Message(role="user", content="one two three")], max_tokens=12)
    second = await session.reply([Message(role="user", content="and four?")], max_tokens=12)
    trace = session.trace()
    assert second.prompt_tokens == len(trace.ids) - second.generated_tokens
    assert second.cached_prompt_tokens > 0
    (scores,) = bench.scores([trace.ids])
    made = [i for i, mask in enumerate(trace.loss_mask) if mask]
    differences = [abs(trace.logprobs[i] - scores[i - 1]) for i in made]
    assert sum(differences) / len(differences) < 0.05


async def test_siblings_share_their_prompt_and_other_versions_do_not(bench: Bench) -> None:
    ids = tuple(range(100, 180))
    first = await bench.engine.generate(Request("p1", ids, 2, salt="x"))
    again = await bench.engine.generate(Request("p2", ids, 2, salt="x"))
    other = await bench.engine.generate(Request("p3", ids, 2, salt="y"))
    assert (first.cached_tokens, other.cached_tokens) == (0, 0)
    assert again.cached_tokens >= 64


async def test_the_first_and_the_second_update_arrive_and_are_probed(bench: Bench) -> None:
    for _ in range(2):
        before = bench.publisher.version
        bench.perturb()
        publication = await bench.publisher.publish()
        assert publication.version == bench.engine.version == before + 1
        assert publication.mismatch <= bench.probe.limit


async def test_an_update_in_flight_splits_the_tokens_of_a_running_request(bench: Bench) -> None:
    old = bench.publisher.version
    prompt = tuple(range(200, 210))
    for attempt in range(20):
        running = [
            asyncio.create_task(bench.engine.generate(Request(f"long-{attempt}-{n}", prompt, 240))) for n in range(6)
        ]
        await asyncio.sleep(0.05 * (attempt + 1))
        bench.perturb(0.01)
        await bench.publisher.publish()
        made = await asyncio.gather(*running)
        if any(len(reply.versions) == 2 for reply in made):
            break
    split = next(reply for reply in made if len(reply.versions) == 2)
    assert [span.version for span in split.versions] == [bench.publisher.version - 1, bench.publisher.version]
    assert split.versions[0].end == split.versions[1].start
    assert split.versions[1].end == len(split.ids)
    assert bench.publisher.version > old


async def test_a_reply_that_runs_out_of_time_keeps_the_tokens_it_had(bench: Bench) -> None:
    prompt = tuple(range(200, 210))
    request = Request("cut", prompt, CONTEXT - 11, timeout_s=0.15)
    made = await bench.engine.generate(request)
    assert len(made.ids) == len(made.logprobs) == sum(span.end - span.start for span in made.versions)
    assert made.finish in {"cut", "length", "stop"}


async def test_a_file_of_another_version_is_refused_by_the_engine(bench: Bench, tmp_path: Path) -> None:
    path = await bench.publisher._write(77)
    await bench.engine.pause()
    with pytest.raises(EngineError, match="asked for version 78"):
        await bench.engine.load(path, version=78)
    # What was begun cannot be undone: the same load, with the right version, brings the engine back.
    await bench.engine.load(path, version=77)
    await bench.engine.resume()
    bench.publisher.version = 77
    assert (await bench.probe.read(bench.engine)).mean <= bench.probe.limit


async def test_corrupted_weights_are_refused_and_cost_the_replica(bench: Bench) -> None:
    """Last in the file: it closes the engine."""
    version = bench.publisher.version
    bench.lie = True
    with pytest.raises(EngineError, match="differ by"):
        await bench.publisher.publish()
    assert bench.publisher.version == version
    assert bench.policy.rotation.active == []
    session = await bench.policy.begin(session_id="after")
    with pytest.raises(EngineError, match="no replica"):
        await session.reply([Message(role="user", content="x")], max_tokens=2)
