"""The kinds of case that the trainer can judge. Tensors are loaded only when a case is judged."""

from __future__ import annotations

from importlib import import_module

from envsdk.conformance.run import Case, Judge

_KINDS = ("advantages", "policy_losses", "corrections", "kl", "scheduling", "routing")
"""Each a module here with a function ``judge``."""


def _late(kind: str) -> Judge:
    def judge(case: Case) -> None:
        import_module(f"trainer.conformance.{kind}").judge(case)

    return judge


KINDS: dict[str, Judge] = {kind: _late(kind) for kind in _KINDS}
