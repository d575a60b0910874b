"""The kinds of case that the trainer can judge. Tensors are loaded only when a case is judged."""

from __future__ import annotations

from importlib import import_module

from envsdk.conformance.run import Case, Judge

_MODULES = {
    "advantages": "advantages",
    "policy_losses": "policy_losses",
    "corrections": "corrections",
    "kl": "kl",
    "scheduling": "scheduling",
    "routing": "routing",
}


def _late(module: str) -> Judge:
    def judge(case: Case) -> None:
        import_module(f"trainer.conformance.{module}").judge(case)

    return judge


KINDS: dict[str, Judge] = {kind: _late(module) for kind, module in _MODULES.items()}
