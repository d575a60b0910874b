"""End states kept for later scoring: content-addressed folders beside the episodes' file.

``ROOT/<digest>/answer`` holds the answer's bytes, ``ROOT/<digest>/files/...`` the artifacts,
``ROOT/<digest>/end.json`` what was captured, missing and dropped. A folder that exists is complete: it is written
under another name and renamed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

from envsdk.digest import tree_digest
from envsdk.errors import StoreError
from envsdk.verifying.verdict import Artifacts, EndState

CAP_BYTES = 64 << 20


def keep_end_state(state: EndState, root: Path) -> str:
    """Store an end state and return its digest; the digest is empty where the files are larger than `CAP_BYTES`.

    Raises:
        StoreError: the files cannot be written.
    """
    files = [path for path in state.artifacts.root.rglob("*") if path.is_file()] if state.artifacts else []
    if sum(path.lstat().st_size for path in files) > CAP_BYTES:
        return ""
    try:
        root.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".partial-", dir=root))
    except OSError as error:
        raise _unwritable(error, root) from error
    try:
        manifest: dict[str, object] = {"answer": None, "artifacts": None}
        if state.answer is not None:
            (staging / "answer").write_bytes(state.answer)
            manifest["answer"] = hashlib.sha256(state.answer).hexdigest()
        if state.artifacts is not None:
            shutil.copytree(state.artifacts.root, staging / "files", symlinks=True)
            names = ("captured", "missing", "dropped")
            manifest["artifacts"] = {name: list(getattr(state.artifacts, name)) for name in names}
        (staging / "end.json").write_text(json.dumps(manifest, sort_keys=True), encoding="utf-8")
        digest = tree_digest(staging)
        final = root / digest
        if not final.exists():
            os.replace(staging, final)  # noqa: PTH105 - a folder
    except OSError as error:
        raise _unwritable(error, root) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return digest


def _unwritable(error: OSError, root: Path) -> StoreError:
    hint = "free some space there, or write the episodes elsewhere"
    return StoreError(f"the end state cannot be kept: {error}", code="unwritable", where=str(root), hint=hint)


def kept_end_state(root: Path, digest: str) -> EndState:
    """A stored end state.

    Raises:
        StoreError: there is none of that name (``no_end_state``).
    """
    folder = root / digest
    if not digest or not (folder / "end.json").is_file():
        raise StoreError(
            f"no end state {digest[:12] or '(none recorded)'}",
            code="no_end_state",
            hint="keep the folder of end states beside the episodes' file",
            where=str(root),
        )
    manifest = json.loads((folder / "end.json").read_text(encoding="utf-8"))
    answer = (folder / "answer").read_bytes() if manifest["answer"] else None
    listed = manifest["artifacts"]
    artifacts = None
    if listed is not None:
        artifacts = Artifacts(folder / "files", **{name: tuple(paths) for name, paths in listed.items()})
    return EndState(answer=answer, artifacts=artifacts)
