"""The learner: one update of the weights from one batch.

Promises: gradients do not depend on how a batch is cut into micro-batches (law 3); a masked, rejected or non-finite
token never reaches the optimizer (law 4), and a non-finite gradient costs one update, is counted, and stops the run
after a few in a row; master weights and optimizer are float32. One update a batch: the policy at its start is the
current one. Not promised: thread safety. One thread owns a learner.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from envsdk.errors import EnvsdkError
from trainer import learner_state
from trainer.batch import Batch, build_batch
from trainer.correction.drift import drift
from trainer.correction.rule import DRIFT_RULES
from trainer.kl import kl_loss, kl_per_token
from trainer.learner_config import LearnerConfig
from trainer.loss.aggregate import Denominators
from trainer.loss.policy import policy_loss
from trainer.loss.term import LossInputs
from trainer.master_weights import MasterWeights
from trainer.packing import PackedRow, micro_batches, pack
from trainer.prefix_forward import row_logprobs
from trainer.sample import whole_sample
from trainer.schedule import learning_rate
from trainer.step_metrics import Update, composition_metrics, step_metrics
from trainer.supported_model import require_supported
from trainer.tally import Tally
from trainer.token_table import TokenTable, token_table

if TYPE_CHECKING:
    from trainer.group import CompleteGroup


@dataclass(slots=True)
class _Sums:
    """What the micro-batches of one step add up to."""

    loss: float = 0.0
    kl: float = 0.0
    tally: Tally = field(default_factory=Tally)
    logprobs: list[Tensor] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """A batch and its rows, in which the whole of it is computed."""

    batch: Batch
    rows: tuple[PackedRow, ...]


class Learner:
    """Holds the model, its masters and the optimizer.

    Args:
        model_dir: a folder that transformers loads.
        config: settings.
        model: given instead of loaded, for models made in memory.

    Raises:
        UsageError: ``unsupported_model``: its logprobs would be wrong.
    """

    def __init__(self, model_dir: Path | None, config: LearnerConfig, *, model: Any = None) -> None:
        if config.threads:
            torch.set_num_threads(config.threads)
        if config.deterministic:
            # cuBLAS reads it when it is first used, and torch refuses its products without it.
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            torch.use_deterministic_algorithms(mode=True)
        torch.manual_seed(config.seed or 0)
        self.config = config
        self.model = (_load(model_dir) if model is None else model).to(_device(config))
        self.model.eval()  # dropout would make the ratio of a policy to itself differ from 1
        require_supported(self.model)
        dtype = torch.bfloat16 if config.precision == "bf16" else torch.float32
        self._reference = _frozen_copy(self.model, dtype) if config.kl_coef else None
        self.weights = MasterWeights(self.model, dtype=dtype)
        self.weights.to_model()
        self.optimizer = torch.optim.AdamW(
            self.weights.masters.values(),
            lr=config.lr,
            betas=(config.beta1, config.beta2),
            weight_decay=config.weight_decay,
            fused=True,
        )
        self.updates = 0
        self.skipped_in_a_row = 0
        self.skipped = 0

    def build(self, groups: Sequence[CompleteGroup], *, version: int) -> PackedBatch:
        """The batch of complete groups for weights of ``version``, laid out: all of an update that needs no model."""
        episodes = [group.episodes for group in groups]
        return self.pack(build_batch(episodes, trainer_version=version, config=self.config.batch))

    def pack(self, batch: Batch) -> PackedBatch:
        """A batch in rows of this learner's size."""
        return PackedBatch(batch, tuple(micro_batches(batch.groups, token_budget=self.config.token_budget)))

    def step(self, packed: PackedBatch) -> Mapping[str, float]:
        """One update. An empty batch changes nothing and says so.

        Raises:
            EnvsdkError: ``non_finite_gradient``: too many updates in a row were refused.
        """
        started = time.monotonic()
        batch, rows = packed.batch, packed.rows
        sums = _Sums()
        self.weights.drop_gradients()
        for row in rows:
            self._accumulate(row, Denominators(batch.n_tok, batch.n_seq, self.config.loss.length), sums)
        computed = time.monotonic()
        norm, updated = self._apply(sums.loss + sums.kl) if rows else (0.0, False)
        samples = [sample for row in rows for sample in row.samples]
        update = Update(
            updated=updated,
            loss=sums.loss,
            kl_loss=sums.kl,
            grad_norm=norm,
            lr=learning_rate(self.config, step=max(self.updates - 1, 0)),
            skipped_in_a_row=self.skipped_in_a_row,
            shares=sums.tally.shares(),
            micro_batches=len(rows),
            computed_tokens=sum(len(row.ids) for row in rows),
            plain_tokens=sum(sample.needed for sample in samples),
            forward_backward_s=computed - started,
            optimizer_s=time.monotonic() - computed,
        )
        composition = composition_metrics(batch.report)
        if not samples:
            return composition | step_metrics(update, None, None)
        logp_M = torch.cat(sums.logprobs).float()
        table = token_table(samples, device=logp_M.device)
        return composition | step_metrics(update, table, table.spread(logp_M))

    def named_weights(self) -> Iterator[tuple[str, Tensor]]:
        """Every (name, tensor) that the learner computes with; who writes them rounds to what an engine serves in."""
        return self.weights.published()

    def perturbed(self, *, scale: float, seed: int) -> AbstractContextManager[None]:
        """Within it the learner has other weights, for the rehearsal of a publication; after it the same as before."""
        return self.weights.perturbed(scale=scale, seed=seed)

    def logprobs(self, sequences: Sequence[Sequence[int]]) -> list[list[float]]:
        """Logprob of every token but the first of each sequence, at temperature 1."""
        scored = [whole_sample(ids, name=str(number)) for number, ids in enumerate(sequences)]
        with torch.no_grad():
            flat = iter(row_logprobs(self.model, pack(scored)).tolist())
        return [[next(flat) for _ in sample.trained] for sample in scored]

    def save(self, folder: Path) -> None:
        """Write everything a resume needs into an existing folder."""
        learner_state.save(self, folder)

    def load(self, folder: Path) -> None:
        """Go on where `save` was called, bit for bit."""
        learner_state.load(self, folder)

    def _accumulate(self, row: PackedRow, denominators: Denominators, sums: _Sums) -> None:
        logp_M = row_logprobs(self.model, row, temperature=self.config.temperature)
        table = token_table(row.samples, dtype=logp_M.dtype, device=logp_M.device)
        logp_BT = table.spread(logp_M)
        old_BT = table.engine_BT if self.config.anchor == "engine" else logp_BT.detach()
        weight_BT = self._weight(table, logp_BT, sums)
        inputs = LossInputs.of(
            logp_BT=logp_BT,
            logp_old_BT=old_BT,
            logp_mu_BT=table.engine_BT,
            mask_BT=table.mask_BT,
            advantage=table.advantage_B,
        )
        result = policy_loss(inputs, self.config.loss, denominators, weight_BT=weight_BT)
        loss = result.loss
        if self._reference is not None:
            kl = self._kl(row, table, logp_BT, denominators)
            loss = loss + kl
            sums.kl += kl.item()
        loss.backward()
        sums.loss += result.loss.item()
        for name, hit_BT in result.term.beyond.items():
            sums.tally.add(name, hit_BT, table, unit=result.term.unit)
        sums.logprobs.append(logp_M.detach())

    def _weight(self, table: TokenTable, logp_BT: Tensor, sums: _Sums) -> Tensor:
        correction = self.config.correction
        weight_BT = table.lag_weight_BT
        if correction.rule != "none":
            here = drift(logp_BT, table.engine_BT, table.mask_BT)
            ruled = DRIFT_RULES[correction.rule](here, **correction.options())
            weight_BT = weight_BT * ruled.weight_BT
            if ruled.clipped_BT is not None:
                sums.tally.add("corrected", ruled.clipped_BT, table, unit=ruled.unit)
        sums.tally.add("rejected", weight_BT == 0, table)
        return weight_BT

    def _kl(self, row: PackedRow, table: TokenTable, logp_BT: Tensor, denominators: Denominators) -> Tensor:
        with torch.no_grad():
            reference_BT = table.spread(row_logprobs(self._reference, row, temperature=self.config.temperature))
        # k2 in the gradient: differentiated k3 is not the gradient of the divergence.
        value_BT = kl_per_token("k3_value_k2_grad", logp_BT, reference_BT.to(logp_BT.dtype), table.mask_BT)
        return kl_loss(
            value_BT, table.mask_BT, coef=self.config.kl_coef, how=self.config.loss.agg, denominators=denominators
        )

    def _apply(self, loss: float) -> tuple[float, bool]:
        """Clip and step; returns the gradient's norm before the clip, and whether the weights moved."""
        self.weights.fill_gradients()
        norm = float(torch.nn.utils.clip_grad_norm_(self.weights.masters.values(), self.config.grad_clip))
        if not torch.tensor([norm, loss]).isfinite().all():
            self.skipped += 1
            self.skipped_in_a_row += 1
            self.weights.drop_gradients()
            if self.skipped_in_a_row >= self.config.max_skipped:
                raise EnvsdkError(
                    f"{self.skipped_in_a_row} updates in a row were not finite (last norm {norm}, loss {loss})",
                    code="non_finite_gradient",
                    hint="lower the learning rate, or resume from an earlier checkpoint",
                )
            return norm, False
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.config, step=self.updates)
        self.optimizer.step()
        self.weights.drop_gradients()
        self.weights.to_model()
        self.updates += 1
        self.skipped_in_a_row = 0
        return norm, True


def _device(config: LearnerConfig) -> str:
    if config.device != "auto":
        return config.device
    return "cuda" if torch.cuda.is_available() else "cpu"


def _load(model_dir: Path | None) -> Any:
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    return AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32)


def _frozen_copy(model: Any, dtype: torch.dtype) -> Any:
    copy = type(model)(model.config)
    copy.load_state_dict(model.state_dict())
    return copy.to(model.device, dtype).requires_grad_(requires_grad=False).eval()
