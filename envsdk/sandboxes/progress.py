"""Who is told, line by line, how an image build goes on."""

from collections.abc import Callable

Progress = Callable[[str], None]
"""Called with each line; silent by default. An exception it raises ends the build."""


def silent(_line: str) -> None:
    """Tell nobody."""
