"""The bundled sandbox back ends, for contract tests that each must pass."""

import pytest

BACK_ENDS = [
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
]
