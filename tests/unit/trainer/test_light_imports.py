"""Settings, layouts, decisions and simulations load without torch: a command line starts in a blink."""

from __future__ import annotations

import subprocess
import sys

import pytest

LIGHT = [
    "trainer.admission",
    "trainer.advantage",
    "trainer.batch_config",
    "trainer.checkpoint",
    "trainer.conformance",
    "trainer.engines.options",
    "trainer.launch_order",
    "trainer.learner_config",
    "trainer.loss.config",
    "trainer.loss.preset",
    "trainer.packing",
    "trainer.placement",
    "trainer.pool_policy",
    "trainer.router",
    "trainer.sampler",
    "trainer.simulation.collect",
]


@pytest.mark.parametrize("heavy", ["torch", "transformers", "vllm"])
def test_light_modules_load_nothing_heavy(heavy: str) -> None:
    program = f"import sys, {', '.join(LIGHT)}; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
