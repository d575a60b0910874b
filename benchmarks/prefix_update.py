"""The learner's forward and backward: padded, each group's common prefix once, and what groups share once.

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
    """Groups of few-shot size: a head of 140 tokens, 10-40 of each group's own, replies of 6-24."""
    draw = random.Random(0)

    def tokens(low: int, high: int) -> list[int]:
        return [draw.randrange(vocabulary) for _ in range(draw.randint(low, high))]

    head = tokens(140, 140)
    out = []
    for number in range(groups):
        prompt = [*head, *tokens(10, 40)]
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
    """Padded and packed with one group a row, and packed with all groups in a row."""
    by_group = [pack(group) for group in groups]
    together = micro_batches(groups, token_budget=budget)
    widths = [max(sample.needed for sample in group) * len(group) for group in groups]
    return [
        Arm("padded", by_group, padded_logprobs, sum(widths)),
        Arm("a group's prefix once", by_group, row_logprobs, sum(len(row.ids) for row in by_group)),
        Arm("what groups share once", together, row_logprobs, sum(len(row.ids) for row in together)),
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
        f"\n{given.groups} groups x {given.samples}, {given.precision}, {given.threads} threads, {given.rounds} rounds"
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
    padded, _, shared = arms(groups[:2], budget=4096)
    plain = update(model, padded)
    plain_norm = gradient_norm(model)
    model.zero_grad()
    packed = update(model, shared)
    ratio = gradient_norm(model) / plain_norm
    model.zero_grad()
    furthest = float((plain - packed).abs().max())
    print(f"float32, two groups: largest logprob difference {furthest:.1e}, gradient norms {ratio:.6f}")


if __name__ == "__main__":
    main()
