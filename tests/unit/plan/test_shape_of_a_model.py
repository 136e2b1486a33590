"""What the memory of a model depends on, read off the model itself."""

import torch

from strop.config.tree import Lora
from strop.forecast.shape import shape_of
from strop.nn.attention import attention


def test_weights_and_cache_are_counted(tiny_dir, tiny):
    shape = shape_of(tiny_dir, Lora())
    assert shape.weights == sum(p.numel() for _, p in tiny.named_parameters())
    assert (shape.layers, shape.hidden, shape.vocabulary, shape.widest) == (2, 64, 264, 192)
    assert shape.cached == 2 * 2 * 2 * 16


def test_what_a_backward_pass_keeps_is_what_autograd_says(tiny_dir, tiny):
    weights = {p.untyped_storage().data_ptr() for _, p in tiny.named_parameters()}

    def kept(tokens):
        sizes, alive = {}, []

        def pack(tensor):
            alive.append(tensor)  # or its memory would be another's
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in weights:
                sizes[storage.data_ptr()] = storage.nbytes()
            return tensor

        def attend(layer, q, k, v, rule):
            return attention(q, k, v, rule, is_causal=True)

        ids = torch.arange(tokens)[None]
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            tiny.trunk(ids, ids, attend)
        return sum(sizes.values())

    per_token = (kept(96) - kept(32)) / 64 / 4
    assert abs(shape_of(tiny_dir, Lora()).kept / per_token - 1) < 0.1


def test_adapters_are_counted_by_rank_and_target(tiny_dir):
    whole = shape_of(tiny_dir, Lora(rank=4))
    assert whole.adapted == whole.in_products
    some = shape_of(tiny_dir, Lora(rank=4, targets=["q_proj"]))
    assert (some.adapters, some.adapted) == (2 * 4 * (64 + 64), 2 * 64 * 64)
    assert shape_of(tiny_dir, Lora()).adapters == 0
