import pytest

from envsdk.sandboxes import pools


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool makes up for what was taken at once."""
    monkeypatch.setattr(pools, "REFILL_PAUSE_S", 0.0)
