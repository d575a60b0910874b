"""``envsdk registry``: one command a file."""

from registry.cli.app import app

__all__ = ["app"]
