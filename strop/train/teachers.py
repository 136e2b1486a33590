"""`Teachers`: frozen models, or the policy itself with a hint, on the tokens that the policy drew."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.algo.batch import Batch
from strop.config.algo import Algo
from strop.config.teacher import OneTeacher, Teacher
from strop.config.tree import Train
from strop.errors import NonFinite
from strop.nn.divergence import Measure, Predictor, divergence
from strop.nn.loading import CausalLM, load_model
from strop.nn.logprobs import Distribution
from strop.prompts.mixture import SOURCE_NAME
from strop.train.forward import packed_hidden, packed_stats
from strop.train.packing import Packed, pack

# S samples, N tokens of the batch, n those of them that one teacher is asked about, T tokens of a micro-batch


@dataclass(frozen=True, slots=True)
class TeacherModel:
    """One of them."""

    model: CausalLM | None
    """None: the policy, with the weights that it has when it is asked."""
    weight: float = 1.0
    sources: tuple[str, ...] = ()
    """`metadata.source_name` of the prompts that it teaches; empty: all."""

    def teaches(self, source: object) -> bool:
        """Whether prompts of this source are among them."""
        return not self.sources or source in self.sources


def open_teachers(paths: Sequence[Path | None], algo: Algo, train: Train) -> "Teachers":
    """By `[algo.teacher]` and `[[algo.teachers]]`; `paths`: where each model is. One path is loaded once."""
    loaded = {path: load_model(path, torch.float32) for path in dict.fromkeys(paths) if path is not None}
    one = algo.teacher.model
    rows = algo.teachers if one is None else [OneTeacher(model=one)]
    models = [None if path is None else loaded[path] for path in paths]
    teachers = [_asked(row, model) for row, model in zip(rows, models, strict=True)]
    return Teachers(teachers, algo.teacher, train)


def _asked(row: OneTeacher, model: CausalLM | None) -> TeacherModel:
    return TeacherModel(model, row.weight, tuple(row.sources))


class Teachers:
    """All teachers of a run. They see `batch.for_teacher` where there is one: the same responses behind other
    prompts; temperature and kept sets are those of the batch."""

    def __init__(self, teachers: Sequence[TeacherModel], section: Teacher, train: Train) -> None:
        self._teachers = teachers
        self._measure = Measure(section.beta, section.top_k if section.form == "top_k" else None)
        self._max_tokens = train.max_tokens_per_device
        self._dtype: torch.dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[train.dtype]

    @torch.inference_mode()
    def score(self, batch: Batch, policy: CausalLM) -> NDArray[np.float32]:
        """[N] log-probs of the sampled tokens: of a sample with several teachers their mean by weight, whose
        difference to the policy's log-prob is the mean of the differences. NaN where the policy did not
        sample, and where no teacher is asked. Raises NonFinite."""
        seen, total_N = batch.for_teacher or batch, np.zeros(batch.num_tokens)
        is_scored_N = np.zeros(batch.num_tokens, bool)
        for teacher, share_S in zip(self._teachers, self._shares(batch), strict=True):
            share_N = share_S[batch.sample_of_token]
            for packed in pack(seen, np.flatnonzero(share_S).tolist(), max_tokens=self._max_tokens):
                stats = packed_stats(
                    teacher.model or policy, packed, temperature=batch.temperature, dtype=self._dtype
                )
                total_N[packed.columns] += share_N[packed.columns] * stats.logp_N.numpy()
                is_scored_N[packed.columns] = True
        if not np.isfinite(total_N).all():
            raise NonFinite("algo.teacher: a teacher's log-prob of a sampled token is not finite")
        return np.where(is_scored_N, total_N, np.nan).astype(np.float32)

    def divergence(self, batch: Batch, packed: Packed, policy: CausalLM, hidden_TD: Tensor) -> Tensor:
        """For each sampled token of a micro-batch, how far the policy's distribution is from its teachers', a
        mean by weight; 0 where none is asked. `hidden_TD`: the policy's hidden states there, through which
        the gradient goes."""
        seen, at = batch.for_teacher or batch, packed.columns
        row_of_column = batch.sample_of_token[at]
        hidden_ND = hidden_TD.index_select(0, torch.from_numpy(packed.predecessors))
        total_N = hidden_ND.new_zeros(len(at), dtype=torch.float32)
        for teacher, share_S in zip(self._teachers, self._shares(batch), strict=True):
            model, rows = teacher.model or policy, packed.rows[share_S[packed.rows] > 0]
            for theirs in pack(seen, rows.tolist(), max_tokens=self._max_tokens):
                chosen_n = np.searchsorted(at, theirs.columns)
                chosen = torch.from_numpy(chosen_n)
                with torch.no_grad():
                    told_TD = packed_hidden(model, theirs, dtype=self._dtype)
                    told_nD = told_TD.index_select(0, torch.from_numpy(theirs.predecessors))
                found_n = divergence(
                    self._predictor(policy, hidden_ND.index_select(0, chosen), batch, theirs),
                    self._predictor(model, told_nD, batch, theirs),
                    self._measure,
                )
                share_n = torch.from_numpy(share_S[row_of_column[chosen_n]].astype(np.float32))
                total_N = total_N.index_add(0, chosen, share_n * found_n)
        return total_N

    def _predictor(self, model: CausalLM, hidden_nD: Tensor, batch: Batch, packed: Packed) -> Predictor:
        return Predictor(
            hidden_nD.to(self._dtype),
            model.head_VD.to(self._dtype),
            Distribution(batch.temperature, model.final_softcap, packed.kept),
        )

    def _shares(self, batch: Batch) -> list[NDArray[np.float64]]:
        """[S] of each teacher: its part in what is learnt from a sample; together 1, or 0 where none is."""
        weights = np.array(
            [
                [t.weight * t.teaches(s.metadata.get(SOURCE_NAME)) for s in batch.samples]
                for t in self._teachers
            ]
        )
        total_S = weights.sum(0)
        return list(np.divide(weights, total_S, out=np.zeros_like(weights), where=total_S > 0))
