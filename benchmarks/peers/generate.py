"""transformers' generate as a side: static batches in arrival order; a batch runs until its longest ends."""

import time
from typing import Any

import torch
from serving import answer, requests, settings, take_stdout
from transformers import AutoModelForCausalLM, StoppingCriteria, StoppingCriteriaList


class Ends(StoppingCriteria):
    """Each row ends at its own length; `first` is when the first token was there."""

    def __init__(self, prompt: int, lengths: list[int]) -> None:
        self._ends = torch.tensor([prompt + n for n in lengths])
        self.first: float | None = None

    def __call__(self, input_ids: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        self.first = self.first or time.perf_counter()
        return self._ends <= input_ids.shape[1]


def run(model: Any, work: dict[str, Any]) -> dict[str, float]:
    """Seconds for all batches of `rows`, and of these, seconds to their first tokens."""
    flat = [(p, n) for p, ns in zip(work["prompts"], work["lengths"], strict=True) for n in ns]
    began, first_s = time.perf_counter(), 0.0
    for start in range(0, len(flat), work["rows"]):
        first_s += batch(model, flat[start : start + work["rows"]], work["cap"])
    return {"seconds": time.perf_counter() - began, "first_s": first_s}


@torch.inference_mode()
def batch(model: Any, some: list[tuple[list[int], int]], cap: int) -> float:
    """Seconds to the first token."""
    began = time.perf_counter()
    width = max(len(p) for p, _ in some)
    ids = torch.tensor([[0] * (width - len(p)) + p for p, _ in some])
    seen = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p, _ in some])
    ends = Ends(width, [n for _, n in some])
    model.generate(
        ids,
        attention_mask=seen,
        do_sample=True,
        top_k=0,
        top_p=1.0,
        temperature=1.0,
        max_new_tokens=cap,
        pad_token_id=0,
        use_cache=True,
        stopping_criteria=StoppingCriteriaList([ends]),
    )
    assert ends.first is not None
    return ends.first - began


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
        answer(to, **run(model, work))


if __name__ == "__main__":
    main()
