"""The kinds of case that envsdk itself can judge."""

from __future__ import annotations

from envsdk.conformance.grader_cases import judge_grader
from envsdk.conformance.outcome_cases import judge_end_reason
from envsdk.conformance.reward_cases import judge_reward_file
from envsdk.conformance.run import Judge
from envsdk.conformance.text_cases import judge_text_and_files
from envsdk.conformance.verifier_cases import judge_verifier

KINDS: dict[str, Judge] = {
    "end_reasons": judge_end_reason,
    "graders": judge_grader,
    "reward_files": judge_reward_file,
    "text_and_files": judge_text_and_files,
    "verifier_defects": judge_verifier,
}
