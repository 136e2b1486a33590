"""TRL's GRPOTrainer as a side: between two steps it waits until another is asked for.

Its settings are those of the run in `strop_grpo.py`, and else the fastest on processors: no gradient
checkpointing, one static batch for all samples of a step, no other log than a line a step.
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any, TextIO

import torch
from datasets import Dataset
from digits import of_completions
from serving import answer, requests, settings, take_stdout
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer


class Held(TrainerCallback):  # type: ignore[misc]  # not installed where types are checked
    """Blocks the trainer where a step would begin: the last has been logged, nothing is generated ahead."""

    def __init__(self, to: TextIO) -> None:
        self._to, self._work, self._began = to, requests(), 0.0
        self._seen = 0
        self._lengths: list[int] = []
        self._rewards: list[float] = []

    def digits(
        self, completions: list[list[dict[str, str]]], completion_ids: list[list[int]], **_: Any
    ) -> list[float]:
        """The reward; what was generated is counted on the way."""
        self._lengths = [len(ids) for ids in completion_ids]
        self._rewards = of_completions(completions)
        return self._rewards

    def on_step_begin(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
        """Answer with the step before, if any, then wait. Raises SystemExit when no more is wanted."""
        if self._lengths:
            groups = torch.tensor(self._rewards).view(-1, args.num_generations)
            tokens = sum(self._lengths)
            answer(
                self._to,
                seconds=time.perf_counter() - self._began,
                tokens=tokens,
                longest=max(self._lengths),
                prompt_tokens=state.num_input_tokens_seen - self._seen - tokens,
                spread=float(groups.std(1, correction=0).mean()),
            )
            self._seen = state.num_input_tokens_seen
        if next(self._work, None) is None:
            raise SystemExit
        self._began = time.perf_counter()


def config(given: dict[str, Any], folder: str) -> GRPOConfig:
    """`bf16` is TRL's way to compute in bfloat16: autocast over weights in float32."""
    return GRPOConfig(
        output_dir=folder,
        use_cpu=True,
        bf16=given["dtype"] == "bfloat16",
        fp16=False,
        gradient_checkpointing=False,
        use_vllm=False,
        use_transformers_continuous_batching=False,
        per_device_train_batch_size=given["batch"],
        gradient_accumulation_steps=given["prompts"] * given["samples"] // given["batch"],
        num_generations=given["samples"],
        num_iterations=1,
        max_completion_length=given["cap"],
        shuffle_dataset=False,
        temperature=1.0,
        top_p=1.0,
        top_k=0,
        repetition_penalty=1.0,
        beta=0.0,
        loss_type="dapo",
        scale_rewards="group",
        importance_sampling_level="token",
        epsilon=0.2,
        epsilon_high=0.2,
        mask_truncated_completions=False,
        disable_dropout=True,
        learning_rate=given["lr"],
        lr_scheduler_type="constant",
        warmup_steps=0,
        max_grad_norm=1.0,
        max_steps=given["steps"],
        seed=0,
        dataloader_num_workers=0,
        report_to=[],
        save_strategy="no",
        logging_steps=1,
        disable_tqdm=True,
    )


def main() -> None:
    """`threads`, `model`, `dtype`, `rows`, `prompts`, `samples`, `cap`, `lr`, `steps`; `batch`: samples a
    forward and backward pass."""
    to, given = take_stdout(), settings()
    torch.set_num_threads(given["threads"])
    rows = [json.loads(line) for line in Path(given["rows"]).read_text().splitlines()]
    held = Held(to)
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=AutoModelForCausalLM.from_pretrained(given["model"], dtype=torch.float32),
            processing_class=AutoTokenizer.from_pretrained(given["model"]),
            reward_funcs=held.digits,
            args=config(given, folder),
            train_dataset=Dataset.from_list(
                [{"prompt": [{"role": "user", "content": row["prompt"]}]} for row in rows]
            ),
            callbacks=[held],
        )
        answer(to)
        trainer.train()


if __name__ == "__main__":
    main()
