"""Weight transfer inside the vLLM worker: load from a mapped `WeightFile`. Imported by vLLM's processes only.

Works on a CPU, where vLLM's own transfers do not, and wherever trainer and engine share a machine. Linear layers are
packed for the CPU when they are loaded, so a load goes through vLLM's layerwise reload, which unpacks and packs again.
With tied embeddings that is not enough: the output head shares its parameter with the embedding and is never reloaded,
so its packed copy would keep the OLD weights, without an error. `finish_weight_update` packs every head anew; the probe
of `trainer.weights` is what would notice if that stopped working.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.model_executor.layers.vocab_parallel_embedding import ParallelLMHead
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

from trainer.engines.weight_file import WeightReader


@dataclass
class MappedInitInfo(WeightTransferInitInfo):
    """Nothing to agree on before the first update."""


@dataclass
class MappedUpdateInfo(WeightTransferUpdateInfo):
    """Which file, and which version it must hold."""

    path: str
    version: int


class MappedTransferEngine(WeightTransferEngine[MappedInitInfo, MappedUpdateInfo]):
    """One worker's end of the transfer."""

    init_info_cls = MappedInitInfo
    update_info_cls = MappedUpdateInfo

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._reader: WeightReader | None = None

    def init_transfer_engine(self, init_info: MappedInitInfo) -> None:
        """Nothing to set up: the file is mapped at the first update."""

    def start_weight_update(self) -> None:
        initialize_layerwise_reload(self.model)

    def update_weights(self, update_info: dict[str, Any]) -> None:
        # The base method waits for an accelerator, which a CPU has not.
        self.receive_weights(self.parse_update_info(update_info))
        if torch.accelerator.is_available():
            torch.accelerator.synchronize()

    def receive_weights(self, update_info: MappedUpdateInfo) -> None:
        path = Path(update_info.path)
        if self._reader is None or self._reader.path != path:
            self._reader = WeightReader(path)
        self.model.load_weights(self._reader.tensors(version=update_info.version))  # type: ignore[operator]

    def finish_weight_update(self) -> None:
        finalize_layerwise_reload(self.model, self.model_config)  # type: ignore[no-untyped-call]
        for module in self.model.modules():
            if isinstance(module, ParallelLMHead):
                module.quant_method.process_weights_after_loading(module)

    def shutdown(self) -> None:
        self._reader = None
