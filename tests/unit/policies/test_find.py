"""Policies by name."""

from __future__ import annotations

import pytest

from envsdk.errors import UsageError
from envsdk.policies.find import open_policy
from envsdk.policies.openai import OpenAIPolicy


def test_a_kind_gets_the_rest_and_its_own_options() -> None:
    policy = open_policy("openai:http://127.0.0.1:1/v1#m", temperature=0.25)
    assert isinstance(policy, OpenAIPolicy)
    assert (policy.id.model, policy.id.sampling["temperature"]) == ("m", 0.25)


@pytest.mark.parametrize("name", ["opnai:http://x", "openai", "", ":", "gpt"])
def test_an_unknown_kind_lists_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_policy(name)
    assert caught.value.code == "unknown_policy"
    assert "oracle" in caught.value.hint
    assert "openai:..." in caught.value.hint


def test_a_near_miss_is_suggested() -> None:
    with pytest.raises(UsageError) as caught:
        open_policy("opnai:http://x")
    assert "did you mean 'openai'" in caught.value.hint
