"""transformers' generate as a side: static batches in arrival order; a batch runs until its longest ends."""

import time
from typing import Any

import torch
from serving import answer, requests, settings, take_stdout
from transformers import AutoModelForCausalLM, StoppingCriteria, StoppingCriteriaList


class Ends(StoppingCriteria):
    """Each row ends at its own length."""

    def __init__(self, prompt: int, lengths: list[int]) -> None:
        self._ends = torch.tensor([prompt + n for n in lengths])

    def __call__(self, input_ids: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        return self._ends <= input_ids.shape[1]


@torch.inference_mode()
def run(model: Any, work: dict[str, Any]) -> float:
    """Seconds for all batches of `rows`."""
    flat = [(p, n) for p, ns in zip(work["prompts"], work["lengths"], strict=True) for n in ns]
    began = time.perf_counter()
    for start in range(0, len(flat), work["rows"]):
        some = flat[start : start + work["rows"]]
        width = max(len(p) for p, _ in some)
        ids = torch.tensor([[0] * (width - len(p)) + p for p, _ in some])
        seen = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p, _ in some])
        model.generate(
            ids,
            attention_mask=seen,
            do_sample=True,
            top_k=0,
            top_p=1.0,
            temperature=1.0,
            max_new_tokens=work["cap"],
            pad_token_id=0,
            use_cache=True,
            stopping_criteria=StoppingCriteriaList([Ends(width, [n for _, n in some])]),
        )
    return time.perf_counter() - began


def main() -> None:
    """`threads`, `model`, `dtype`."""
    to, given = take_stdout(), settings()
    torch.set_num_threads(given["threads"])
    dtype = getattr(torch, given["dtype"])
    model = AutoModelForCausalLM.from_pretrained(
        given["model"], dtype=dtype, attn_implementation="sdpa"
    ).eval()
    model.generation_config.eos_token_id = None
    answer(to)
    for work in requests():
        answer(to, seconds=run(model, work))


if __name__ == "__main__":
    main()
