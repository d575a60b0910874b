"""The kinds of case that envsdk itself can judge."""

from __future__ import annotations

from envsdk.conformance.run import Judge
from envsdk.conformance.text_cases import judge_text_and_files

KINDS: dict[str, Judge] = {
    "text_and_files": judge_text_and_files,
}
