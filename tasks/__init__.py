"""Bundled families, each a file of its own: importing the package declares them all."""

from __future__ import annotations

from tasks import count_letters, file_chores, fix_function, ledger_api, shell_line, sums, upper_word

__all__ = ["count_letters", "file_chores", "fix_function", "ledger_api", "shell_line", "sums", "upper_word"]
