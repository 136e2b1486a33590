"""vLLM-CPU as a side, in process and eager. Its scheduler does not plan with `max_tokens`: it is no hint."""

import os
import time
from typing import Any

from serving import answer, requests, settings, take_stdout


def main() -> None:
    """`threads`, `model`, `dtype`, `max_num_seqs`, `max_num_batched_tokens`."""
    to, given = take_stdout(), settings()
    os.environ |= {
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_CPU_KVCACHE_SPACE": "4",
        "HF_HUB_OFFLINE": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
    }
    from vllm import LLM

    llm = LLM(
        model=given["model"],
        dtype=given["dtype"],
        enforce_eager=True,
        distributed_executor_backend="uni",
        max_model_len=1024,
        enable_prefix_caching=True,
        block_size=given.get("block_size", 32),
        max_num_seqs=given["max_num_seqs"],
        max_num_batched_tokens=given["max_num_batched_tokens"],
        disable_log_stats=True,
    )
    answer(to)
    for work in requests():
        answer(to, seconds=run(llm, work))


def run(llm: Any, work: dict[str, Any]) -> float:
    """Seconds for all responses; log-probs of the drawn tokens come along, as training needs them."""
    from vllm import SamplingParams, TokensPrompt

    flat = [(p, n) for p, ns in zip(work["prompts"], work["lengths"], strict=True) for n in ns]
    llm.reset_prefix_cache()
    params = [SamplingParams(temperature=1.0, max_tokens=n, ignore_eos=True, logprobs=0) for _, n in flat]
    began = time.perf_counter()
    done = llm.generate([TokensPrompt(prompt_token_ids=p) for p, _ in flat], params, use_tqdm=False)
    seconds = time.perf_counter() - began
    assert [len(d.outputs[0].token_ids) for d in done] == [n for _, n in flat], "lengths differ"
    return seconds


if __name__ == "__main__":
    main()
