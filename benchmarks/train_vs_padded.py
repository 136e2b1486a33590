"""Forward and backward over groups, each prompt once, against batches padded as TRL 1.16 pads them.

python benchmarks/train_vs_padded.py. The other side: prompts padded on the left and completions on the right
to the longest of all, transformers' sdpa, logits of completions alone, entropies as TRL's trainer computes
them for its metrics, at its best number of rows, which is found on half of the groups. Both sides are timed
in turn; the gradients of the last turn are compared, and of every number of rows those on the half.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import torch
from harness import interleaved, line_of, print_lines, ratio_of, say, seconds, watched
from torch import Tensor, nn
from training import batch, model, model_dir, peak_gib

from strop.algo.batch import Batch
from strop.config.tree import Train
from strop.nn.loading import CausalLM
from strop.runtime.memory import GIB, peak_bytes
from strop.train.forward import packed_stats
from strop.train.packing import pack

NAME = "train_vs_padded"
WANT = 3.0
MINUTES = 7
NUM_PROMPTS, REPEATS, ROWS = 4, 3, (4, 8, 16)

# B rows, P prompt tokens, C completion tokens, T = P + C, V vocabulary


def shared(made: CausalLM, data: Batch) -> None:
    """Gradients of Σ advantage · log-prob."""
    for packed in pack(data, range(len(data.samples)), max_tokens=Train().max_tokens_per_device):
        stats = packed_stats(made, packed, temperature=1.0, dtype=torch.float32)
        (stats.logp_N * torch.from_numpy(data.advantage[packed.columns])).sum().backward()


def peer() -> nn.Module:
    """transformers' own modules, with the same weights."""
    from transformers import AutoModelForCausalLM  # not at the top: our side's peak memory is without it

    made: nn.Module = AutoModelForCausalLM.from_pretrained(
        model_dir(), dtype=torch.float32, attn_implementation="sdpa"
    )
    # transformers gives the padding id's embedding no gradient, also where it ends a turn of the prompt
    made.get_input_embeddings().padding_idx = None
    return made


def padded(module: nn.Module, data: Batch, rows: int, most: int | None = None) -> None:
    """The same gradients, `rows` samples at a time; of no more than the first `most` samples, if given."""
    longest = max(s.prompt_length for s in data.samples)
    completion = max(s.response_length for s in data.samples)
    ids_ST = torch.zeros(len(data.samples), longest + completion, dtype=torch.long)
    seen_ST, advantage_SC = torch.zeros_like(ids_ST), torch.zeros(len(data.samples), completion)
    for row, sample in enumerate(data.samples):
        at = slice(longest - sample.prompt_length, longest + sample.response_length)
        ids_ST[row, at], seen_ST[row, at] = torch.tensor(sample.tokens), 1
        advantage_SC[row, : sample.response_length] = torch.from_numpy(data.advantage[data.tokens_of(row)])
    for start in range(0, len(ids_ST) if most is None else most, rows):
        part = slice(start, start + rows)
        logits_BCV = module(
            input_ids=ids_ST[part],
            attention_mask=seen_ST[part],
            logits_to_keep=completion + 1,
            use_cache=False,
        ).logits[:, :-1]
        logp_BC = _selected(logits_BCV, ids_ST[part, -completion:])
        with torch.no_grad():
            for chunk_CV in logits_BCV.flatten(0, 1).split(128):
                logps_CV = torch.log_softmax(chunk_CV, -1)
                (logps_CV.exp() * logps_CV).sum(-1)
        (logp_BC * advantage_SC[part]).sum().backward()


def _selected(logits_BCV: Tensor, ids_BC: Tensor) -> Tensor:
    """As TRL does in float32: row by row, so that no second tensor of logits is there."""
    chosen_BC = logits_BCV.gather(-1, ids_BC[..., None])[..., 0]
    return chosen_BC - torch.stack([torch.logsumexp(one_CV, -1) for one_CV in logits_BCV])


def _gradients(made: CausalLM | nn.Module) -> dict[str, Tensor]:
    taken = {n: p.grad for n, p in made.named_parameters() if p.grad is not None}
    for _, parameter in made.named_parameters():
        parameter.grad = None
    return taken


def _difference(a: dict[str, Tensor], b: dict[str, Tensor]) -> float:
    """Relative to the largest gradient entry; NaN where a gradient is."""
    largest = torch.stack([g.abs().max() for g in a.values()]).max()
    return float(torch.stack([(a[n] - b[n]).abs().max() for n in a]).max() / largest)


def _data(num_prompts: int = NUM_PROMPTS) -> Batch:
    vocabulary: int = json.loads((model_dir() / "config.json").read_text())["vocab_size"]
    data = batch(num_prompts, vocabulary)
    data.advantage[:] /= data.num_tokens
    return data


def _equal(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> float:
    """Their difference. Raises SystemExit when it is no rounding."""
    difference = _difference(ours, theirs)
    if not difference < 1e-5:  # nor is NaN
        raise SystemExit(f"gradients of the two sides differ by {difference}, relative to the largest entry")
    return difference


def _probed(made: CausalLM, theirs: nn.Module) -> dict[int, float]:
    """Seconds by rows."""
    data, tried = _data(NUM_PROMPTS // 2), {}
    shared(made, data)
    ours = _gradients(made)
    padded(theirs, data, min(ROWS), most=min(ROWS))  # first touches of memory, and what libraries put off
    _gradients(theirs)
    for rows in ROWS:
        tried[rows] = seconds(lambda rows=rows: padded(theirs, data, rows))
        say(f"  probe: {rows} rows {tried[rows]:.1f} s")
        _equal(ours, _gradients(theirs))
    return tried


def bench() -> list[dict[str, Any]]:
    """How many times as long the padded form takes."""
    torch.set_num_threads(2)
    made, theirs, data = model(), peer(), _data()
    tried = _probed(made, theirs)
    best, last = min(tried, key=lambda rows: tried[rows]), {}

    def timed(side: str, of: CausalLM | nn.Module, work: Callable[[], None]) -> float:
        took = seconds(work)
        last[side] = _gradients(of)
        return took

    with watched() as details:
        sides = {
            "shared": lambda: timed("shared", made, lambda: shared(made, data)),
            "padded": lambda: timed("padded", theirs, lambda: padded(theirs, data, best)),
        }
        took = interleaved(sides, REPEATS)
    longest = max(s.prompt_length for s in data.samples) + max(s.response_length for s in data.samples)
    packs = pack(data, range(len(data.samples)), max_tokens=Train().max_tokens_per_device)
    details |= {
        "threads": 2,
        "rows": best,
        "probe_s": tried,
        "seconds": took,
        "tokens": {"shared": sum(len(p.ids) for p in packs), "padded": longest * len(data.samples)},
        "gradient_difference": _equal(last["shared"], last["padded"]),
        "peak_gib": {"shared": peak_gib(__file__, "shared"), "padded": peak_gib(__file__, str(best))},
    }
    return [line_of(NAME, ratio_of(took["padded"], took["shared"]), REPEATS, **details)]


def _once(side: str) -> None:
    """What `peak_gib` runs. From the second batch on there are gradients beside it: then memory is at its
    peak."""
    if side == "shared":
        shared(model(), _data())
    else:
        padded(peer(), _data(), int(side), most=2 * int(side))


if __name__ == "__main__":
    if sys.argv[1:]:
        _once(sys.argv[1])
        print(peak_bytes() / GIB)
    else:
        print_lines(bench())
