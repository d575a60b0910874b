"""Inference engines that a trainer talks to: vLLM in process, its weight transfer, the token-exact policy."""
