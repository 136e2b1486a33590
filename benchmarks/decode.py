"""Decoding of the local engine against its bound: the matrix-product peak of the same run, and generate.

python benchmarks/decode.py [MODEL_DIR] [THREADS]. Without SmolLM2 on this machine it uses the tiny model,
whose ratios say little. The bound counts 2 floating-point operations a parameter a token, none for attention.
"""

import asyncio
import sys
import time
from pathlib import Path

import numpy as np
import torch

from strop.config.home import models_dir
from strop.engines.base import Request
from strop.engines.local.engine import LocalEngine
from strop.nn.loading import CausalLM, load_model
from strop.nn.tiny import make_tiny
from strop.runtime.compute import Compute
from strop.sample import Sampling

PROMPT, NEW = 54, 32


def peak_gflops() -> float:
    """The fastest of several large float32 products."""
    a, b = torch.randn(512, 2048), torch.randn(2048, 2048)
    best = float("inf")
    for _ in range(20):
        began = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - began)
    return 2 * 512 * 2048 * 2048 / best / 1e9


async def engine_rate(model: CausalLM, prompts: list[np.ndarray]) -> float:
    """Tokens drawn a second, prefill included."""
    compute = Compute()
    engine = LocalEngine(model, compute, max_tokens=32768, stop_ids=())
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(engine.serve())
        await _all(engine, prompts[:2], "warm")
        began, drawn = time.perf_counter(), engine.tokens_drawn
        await _all(engine, prompts, "timed")
        rate = (engine.tokens_drawn - drawn) / (time.perf_counter() - began)
        serving.cancel()
    compute.close()
    return rate


async def _all(engine: LocalEngine, prompts: list[np.ndarray], name: str) -> None:
    sampling = Sampling(max_tokens=NEW)
    requests = [Request(f"{name}/{i}", ids, sampling, seed=i) for i, ids in enumerate(prompts)]
    await asyncio.gather(*(engine.generate(request) for request in requests))


def generate_rate(path: Path, prompts: list[np.ndarray]) -> float:
    """transformers' generate on the same prompts as one padded batch."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
    ids = torch.from_numpy(np.stack(prompts).astype(np.int64))
    began = time.perf_counter()
    model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=True,
        min_new_tokens=NEW,
        max_new_tokens=NEW,
        pad_token_id=0,
    )
    return len(prompts) * NEW / (time.perf_counter() - began)


def main(path: Path, threads: int) -> None:
    """Print tokens a second and the ratios, for 8 prompts × 8 samples."""
    torch.set_num_threads(threads)
    model = load_model(path, torch.float32)
    rng = np.random.default_rng(0)
    groups = [rng.integers(0, min(model.vocab_size, 40_000), PROMPT).astype(np.int32) for _ in range(8)]
    prompts = [ids for ids in groups for _ in range(8)]
    peak = peak_gflops()
    parameters = sum(p.numel() for _, p in model.named_parameters())
    bound = peak * 1e9 / (2 * parameters)
    ours, theirs = asyncio.run(engine_rate(model, prompts)), generate_rate(path, prompts)
    print(f"{path.name}, {threads} threads, 64 sequences of {PROMPT} + {NEW} tokens, 8 to a prompt")
    print(f"peak {peak:.0f} GFLOPS, so decoding alone is bound by {bound:.0f} tokens/s")
    print(f"engine   {ours:6.0f} tokens/s, prefill included: {ours / bound:.2f} of the bound")
    print(f"generate {theirs:6.0f} tokens/s; the engine is {ours / theirs:.2f} times as fast")


if __name__ == "__main__":
    smollm = models_dir() / "smollm2-135m"
    default = smollm if smollm.is_dir() else make_tiny(models_dir() / "tiny")
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default, int(sys.argv[2]) if len(sys.argv) > 2 else 2)
