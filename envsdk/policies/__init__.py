"""Policies that need nothing but the network; engines in process belong to the trainer."""
