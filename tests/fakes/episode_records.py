"""Records of episodes with chosen tokens, and a tiny model to score and train them with."""

from __future__ import annotations

import random
from typing import Any

from envsdk.episode.record import EpisodeRecord, Outcome, PolicyId, TokenTrace, VersionSpan
from trainer.sample import TrainSample

VOCABULARY = 89


def tiny_llama(*, seed: int = 0, exact_norms: bool = False, **overrides: Any) -> Any:
    """A random three-layer Llama in float32. ``exact_norms``: its norms keep float64, where transformers' go through 32."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    settings: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": 48,
        "intermediate_size": 80,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
        "max_position_embeddings": 512,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(LlamaConfig(**settings | overrides))
    if exact_norms:
        _swap_norms(model)
    return model


def _swap_norms(module: Any) -> None:
    import torch

    for name, child in list(module.named_children()):
        if type(child).__name__ == "LlamaRMSNorm":
            setattr(module, name, torch.nn.RMSNorm(child.weight.shape[0], eps=child.variance_epsilon))
        else:
            _swap_norms(child)


def make_sample(
    prompt: list[int], own: list[int], *, trained: list[int] | None = None, group: str = "g", advantage: float = 1.0
) -> TrainSample:
    """A sample of ``prompt`` + ``own`` tokens, of which all its own are trained unless ``trained`` says which positions."""
    ids = (*prompt, *own)
    places = tuple(range(len(prompt), len(ids)) if trained is None else trained)
    n = len(places)
    return TrainSample("e", group, ids, places, (-1.0,) * n, (0,) * n, (1.0,) * n, advantage)


def random_groups(
    seed: int, *, groups: int = 3, size: int = 4, turns: int = 1, head: int = 0
) -> list[list[TrainSample]]:
    """Groups with a common prompt each, of which the first ``head`` tokens are common to all.

    With ``turns`` above 1 the samples have holes of tool output between replies.
    """
    draw = random.Random(seed)

    def some(low: int, high: int) -> list[int]:
        return [draw.randrange(VOCABULARY) for _ in range(draw.randint(low, high))]

    common = some(head, head)
    out = []
    for number in range(groups):
        prompt = [*common, *some(5, 15)]
        samples = []
        for _ in range(size):
            own: list[int] = []
            trained: list[int] = []
            for turn in range(turns):
                own += some(2, 5) if turn else []
                reply = some(1, 7)
                trained += [len(prompt) + len(own) + t for t in range(len(reply))]
                own += reply
            samples.append(make_sample(prompt, own, trained=trained, group=str(number), advantage=draw.gauss(0, 1)))
        out.append(samples)
    return out


def make_record(
    *,
    reward: float | None,
    prompt: list[int] | None = None,
    own: list[int] | None = None,
    observation: list[int] | None = None,
    version: int = 0,
    group: str = "g",
    index: int = 0,
    in_gradient: bool = True,
    in_baseline: bool = True,
    cause: str = "finished",
    complete: bool = True,
    logprob: float = -1.0,
) -> EpisodeRecord:
    """An ended episode: ``own`` was generated under ``version``, ``observation`` (if any) stands before its last token."""
    prompt = [1, 2, 3] if prompt is None else prompt
    own = [4, 5] if own is None else own
    tool = observation or []
    head, tail = (own[:-1], own[-1:]) if tool else (own, [])
    ids = (*prompt, *head, *tool, *tail)
    mask = (0,) * len(prompt) + (1,) * len(head) + (0,) * len(tool) + (1,) * len(tail)
    spans = [VersionSpan(version=version, start=len(prompt), end=len(prompt) + len(head))]
    if tail:
        spans.append(VersionSpan(version=version, start=len(ids) - 1, end=len(ids)))
    trace = TokenTrace(
        ids=ids,
        loss_mask=mask,
        logprobs=tuple(logprob if m else 0.0 for m in mask),
        versions=tuple(spans),
        prompt_len=len(prompt),
        complete=complete,
    )
    outcome = Outcome(
        outcome_class="model_success" if reward else "model_failure",
        cause=cause,
        reward=reward,
        graded=reward is not None,
        in_gradient=in_gradient,
        in_baseline=in_baseline,
        redispatch=False,
        counts_in_eval=reward is not None,
    )
    return EpisodeRecord(
        episode_id=f"{group}-{index}",
        slug="task",
        task_digest="0" * 64,
        verifier_digest="0" * 64,
        group_id=group,
        index_in_group=index,
        policy=PolicyId(model="tiny"),
        outcome=outcome,
        tokens=trace,
    )


def updated(learner, batch):
    """What a learner says after it was trained on a batch."""
    return learner.step(learner.pack(batch))
