"""Reward files inside a sandbox: removed before a verifier starts, fetched without following links afterwards."""

from __future__ import annotations

from envsdk.errors import SandboxError
from envsdk.sandboxes.base import Sandbox
from envsdk.verifying.reward import MAX_BYTES, NAMES, ResultFile

RESULTS_DIR = "/logs/verifier"
TESTS_DIR = "/tests"

# Builtins of the shell only: the agent may have replaced programs in a shared box. A link where a folder is expected
# is removed, never entered.
_CLEAR = f"""
for folder in /logs {RESULTS_DIR} {TESTS_DIR}; do if [ -L "$folder" ]; then rm -f "$folder"; fi; done
rm -rf {TESTS_DIR} {" ".join(f"{RESULTS_DIR}/{name}" for name in NAMES)}
mkdir -p {RESULTS_DIR} {TESTS_DIR}
"""
_KINDS = (
    "cd "
    + RESULTS_DIR
    + """ 2>/dev/null || exit 0
for name in reward.json reward.txt; do
  if [ -L "$name" ]; then echo "$name other"
  elif [ -f "$name" ]; then echo "$name file"
  elif [ -e "$name" ]; then echo "$name other"
  fi
done
"""
)


async def clear_results(sandbox: Sandbox) -> None:
    """Remove what lies under the reward names and under the tests' folder, and make both folders.

    Raises:
        SandboxError: it could not be done, so nothing read later could be trusted.
    """
    result = await sandbox.exec(_CLEAR, user="root", cwd="/", timeout_s=60)
    if not result.ok:
        said = result.stderr[-300:].decode("utf-8", "replace")
        raise SandboxError(
            f"could not clear {RESULTS_DIR}: {said}",
            code="upload_failed",
            hint="the image needs /bin/sh, rm and mkdir, and room on its disk",
            where=sandbox.id,
        )


async def fetch_results(sandbox: Sandbox) -> list[ResultFile]:
    """The reward files as they lie in the sandbox, in the order of the contract; at most one byte over the cap is read.

    Raises:
        SandboxError: the sandbox does not answer.
    """
    listed = await sandbox.exec(_KINDS, user="root", cwd="/", timeout_s=30)
    if listed.exit_code != 0:
        raise SandboxError(
            "the results directory cannot be listed",
            code="results_unreadable",
            hint="the image needs /bin/sh; see that the sandbox has not run out of memory",
            where=sandbox.id,
        )
    kinds = dict(line.split(" ", 1) for line in listed.stdout.decode("utf-8", "replace").splitlines() if " " in line)
    found = []
    for name in NAMES:
        if name not in kinds:
            continue
        if kinds[name] != "file":
            found.append(ResultFile(name, regular=False))
            continue
        data = await sandbox.read(f"{RESULTS_DIR}/{name}", max_bytes=MAX_BYTES + 1)
        found.append(ResultFile(name, regular=True, size=len(data), data=data[:MAX_BYTES]))
    return found
