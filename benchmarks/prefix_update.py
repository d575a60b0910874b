"""The learner's forward and backward: padded rows, rows of their own, and each group's common prefix once.

    python benchmarks/prefix_update.py [--model smollm2] [--groups 4] [--samples 8] [--rounds 3] [--precision bf16]

All arms compute the same gradient of the same random groups (prompts of 120-200 tokens, replies of 6-24), in turns
within each round, so that a busy machine slows them alike. Printed for each arm: tokens computed, seconds of wall clock
and of processor time (median over rounds), and how many times faster than padded, round by round. The optimizer's step
is the same for all and left out. The first line proves that the arms agree: largest logprob difference and the ratio of
gradient norms against padded, in float32.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from trainer.models import resolve_model
from trainer.packing import PackedRow, micro_batches, pack
from trainer.prefix_forward import padded_logprobs, row_logprobs
from trainer.sample import TrainSample

Forward = Callable[[Any, PackedRow], Tensor]


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to lay the samples out."""

    name: str
    rows: list[PackedRow]
    forward: Forward
    tokens: int


def random_groups(groups: int, samples: int, vocabulary: int) -> list[list[TrainSample]]:
    """Groups of few-shot size: prompts of 120-200 tokens, replies of 6-24."""
    draw = random.Random(0)

    def tokens(low: int, high: int) -> list[int]:
        return [draw.randrange(vocabulary) for _ in range(draw.randint(low, high))]

    out = []
    for number in range(groups):
        prompt = tokens(120, 200)
        members = []
        for _ in range(samples):
            reply = tokens(6, 24)
            trained = tuple(range(len(prompt), len(prompt) + len(reply)))
            zeros = (0.0,) * len(reply)
            ids = (*prompt, *reply)
            members.append(TrainSample("", str(number), ids, trained, zeros, (0,) * len(reply), zeros, 1.0))
        out.append(members)
    return out


def arms(groups: Sequence[Sequence[TrainSample]], *, budget: int) -> list[Arm]:
    """Padded (one group a micro-batch), packed without sharing, and packed with a shared prefix."""
    padded = [pack([group]) for group in groups]
    alone = micro_batches([[sample] for group in groups for sample in group], token_budget=budget)
    shared = micro_batches(groups, token_budget=budget)
    widths = [max(sample.needed for sample in group) * len(group) for group in groups]
    return [
        Arm("padded", padded, padded_logprobs, sum(widths)),
        Arm("packed, a row a sample", alone, row_logprobs, sum(len(row.ids) for row in alone)),
        Arm("packed, shared prefix", shared, row_logprobs, sum(len(row.ids) for row in shared)),
    ]


def update(model: Any, arm: Arm) -> Tensor:
    """Forward and backward of all rows; returns every logprob."""
    out = []
    for row in arm.rows:
        logprobs = arm.forward(model, row)
        (-logprobs.sum() / 1000).backward()
        out.append(logprobs.detach())
    return torch.cat(out)


def gradient_norm(model: Any) -> float:
    """Norm of all gradients together."""
    return float(torch.stack([p.grad.float().norm() for p in model.parameters()]).norm())


def main() -> None:
    """Run the comparison and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    model = AutoModelForCausalLM.from_pretrained(resolve_model(given.model), dtype=torch.float32)
    groups = random_groups(given.groups, given.samples, model.config.vocab_size)
    _prove(model, groups)
    model.to(torch.bfloat16 if given.precision == "bf16" else torch.float32)
    layouts = arms(groups, budget=4096)
    wall: dict[str, list[float]] = {arm.name: [] for arm in layouts}
    cpu: dict[str, list[float]] = {arm.name: [] for arm in layouts}
    for _ in range(given.rounds):
        for arm in layouts:
            started, used = time.perf_counter(), time.process_time()
            update(model, arm)
            wall[arm.name].append(time.perf_counter() - started)
            cpu[arm.name].append(time.process_time() - used)
            model.zero_grad()
    print(
        f"\n{given.groups} groups x {given.samples}, {given.precision}, {given.threads} threads, {given.rounds} rounds\n"
    )
    print("| layout | tokens computed | wall s | processor s | against padded, round by round (processor) |")
    print("| --- | --- | --- | --- | --- |")
    for arm in layouts:
        ratios = " ".join(f"{a / b:.2f}" for a, b in zip(cpu["padded"], cpu[arm.name], strict=True))
        print(
            f"| {arm.name} | {arm.tokens} | {statistics.median(wall[arm.name]):.2f} "
            f"| {statistics.median(cpu[arm.name]):.2f} | {ratios} |"
        )


def _prove(model: Any, groups: Sequence[Sequence[TrainSample]]) -> None:
    padded, _, shared = arms(groups[:1], budget=4096)
    plain = update(model, padded)
    plain_norm = gradient_norm(model)
    model.zero_grad()
    packed = update(model, shared)
    ratio = gradient_norm(model) / plain_norm
    model.zero_grad()
    print(
        f"float32, one group: largest logprob difference {(plain - packed).abs().max():.1e}, gradient norms {ratio:.6f}"
    )


if __name__ == "__main__":
    main()
