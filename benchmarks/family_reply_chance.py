"""How likely a model is to give the oracle's reply, for each level of the one-reply families: no engine, no sampling.

    python benchmarks/family_reply_chance.py [--model smollm2] [--tasks 10] [--families upper-word,...]

The reply's tokens and the end after it are scored by one forward pass (teacher forcing), which is exact at
temperature 1 and a lower bound of the pass rate, since other replies may be right too. Prints one Markdown row a
level: mean chance, share of groups of eight that would be mixed (some pass, some do not), the largest and smallest
chance of a task. With it prompts are chosen: what stands last among the examples, and how a question is put, move a
small model more than anything else.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Iterator

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from envsdk.authoring.draw import Draw, Scalar
from envsdk.authoring.families import Family
from envsdk.authoring.find import registered_families
from trainer.models import resolve_model

GROUP = 8


class Scorer:
    """One model that scores replies."""

    def __init__(self, model: str) -> None:
        folder = str(resolve_model(model))
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self._ends = [self._tokenizer.eos_token_id, *self._tokenizer("\n", add_special_tokens=False)["input_ids"]]

    @torch.no_grad()
    def chance(self, messages: list[dict[str, str]], reply: str) -> float:
        """Chance of the reply and of an end right after it, at temperature 1."""
        prompt = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        start = len(self._tokenizer(prompt, add_special_tokens=False)["input_ids"])
        ids = self._tokenizer(prompt + reply, add_special_tokens=False)["input_ids"]
        logprobs = torch.log_softmax(self._model(torch.tensor([ids])).logits[0], dim=-1)  # [tokens, vocabulary]
        said = sum(logprobs[t - 1, ids[t]].item() for t in range(start, len(ids)))
        return math.exp(said) * sum(logprobs[-1, end].exp().item() for end in self._ends)


def messages_of(family: Family, draw: Draw) -> list[dict[str, str]]:
    """The conversation that an episode opens with."""
    agent = draw.agent or family.declaration.agent
    opening = [{"role": "system", "content": agent.system}] if agent.system else []
    for example in agent.examples:
        opening += [{"role": "user", "content": example.user}, {"role": "assistant", "content": example.assistant}]
    return [*opening, {"role": "user", "content": draw.instruction}]


def settings(family: Family) -> Iterator[dict[str, Scalar]]:
    """The easiest setting, and each that differs from it in one knob."""
    easiest = family.complete({})
    yield easiest
    for knob, values in family.levels.items():
        yield from ({**easiest, knob: value} for value in values[1:])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--seed", type=int, default=100_000)
    parser.add_argument("--longest", type=int, default=120, help="leave out replies of more characters")
    parser.add_argument("--families", default="")
    options = parser.parse_args()
    scorer = Scorer(options.model)
    print("| family | level | chance of the oracle's reply | mixed groups of 8 | of a task, least to most |")
    print("|---|---|---|---|---|", flush=True)
    for name, family in registered_families().items():
        if family.declaration.agent.protocol == "shell" or (
            options.families and name not in options.families.split(",")
        ):
            continue
        for level in settings(family):
            draws = [family.sample(seed=options.seed + n, level=level) for n in range(options.tasks)]
            if max(len(draw.oracle) for draw in draws) > options.longest:
                continue
            chances = [scorer.chance(messages_of(family, draw), draw.oracle) for draw in draws]
            mixed = statistics.fmean(1 - (1 - p) ** GROUP - p**GROUP for p in chances)
            knobs = ", ".join(f"{knob}={value}" for knob, value in level.items())
            span = f"{min(chances):.3f} - {max(chances):.3f}"
            print(f"| {name} | {knobs} | {statistics.fmean(chances):.3f} | {mixed:.2f} | {span} |", flush=True)


if __name__ == "__main__":
    main()
