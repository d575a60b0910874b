"""Verifying: from an end state to a reward, or to the reason why there is none."""
