"""Placeholder head; its owner writes it."""
