"""The vLLM plugin: makes the ``envsdk_mapped`` weight transfer known in every process that vLLM starts.

The engine lives in a process of its own, so registering in the trainer alone does nothing: vLLM calls `register` there
through the entry-point group ``vllm.general_plugins``. Cheap: the transfer itself is imported when it is used.
"""

from __future__ import annotations

import multiprocessing
import os

from trainer.engines.orphans import OWNED, end_with_parent
from trainer.engines.sockets import keep_temporary_files_there

BACKEND = "envsdk_mapped"


def register() -> None:
    """Register the transfer with vLLM, and tie an engine that is ours to its trainer; may be called more than once."""
    if os.environ.get(OWNED):
        end_with_parent()
        if multiprocessing.parent_process() is not None:
            keep_temporary_files_there()
    from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory

    if BACKEND not in WeightTransferEngineFactory._registry:  # noqa: SLF001 - the factory has no question to ask
        WeightTransferEngineFactory.register_engine(BACKEND, "trainer.engines.mapped_transfer", "MappedTransferEngine")
