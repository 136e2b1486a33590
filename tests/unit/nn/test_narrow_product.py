"""Products of few tokens by own code, and by torch where that code is not the fastest."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from cases import case
from llvmlite import binding, ir
from torch.utils._python_dispatch import TorchDispatchMode

from strop.errors import RunError
from strop.nn import narrow_product as own
from strop.nn import product as products
from strop.nn.machine_code import Compiled
from strop.nn.narrow_product import is_narrow, narrow_product
from strop.nn.own_code import made_once
from strop.nn.product import add_product, product, product_rows

SHAPES = [(1, 8), (5, 16), (6, 8), (7, 24), (12, 8), (25, 64), (130, 576)]
"""Outputs and inputs: fewer rows than a tile has, just as many, and some left over."""
TOKENS = [1, 2, 7, 8, 9, 15, 16, 17, 24, 25, 31, 100, 255]


def tensors(outputs, inputs, tokens, *, dtype=torch.float32, are_columns=True):
    """A weight, whose rows are apart, and tokens as columns or as rows that are turned."""
    generator = torch.Generator().manual_seed(outputs * 1000 + tokens)
    weight_OI = torch.randn(outputs, inputs + 8, generator=generator).to(dtype)[:, :inputs]
    if are_columns:
        return weight_OI, torch.randn(inputs, tokens, generator=generator)
    return weight_OI, torch.randn(tokens, inputs, generator=generator).t()


def exact(weight_OI, x_IN):
    return (weight_OI.double() @ x_IN.double()).float()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_products_are_right_and_nothing_beside_them_is_written(dtype):
    for shape in SHAPES:
        for tokens in TOKENS:
            for adds in (False, True):
                weight_OI, x_IN = tensors(*shape, tokens, dtype=dtype, are_columns=adds)
                around = tensors(shape[0], tokens + 5, 1)[0]
                out_ON, before = around[:, 2:-3], around.clone()
                narrow_product(weight_OI, x_IN, out_ON, adds=adds)
                with case(shape, tokens, adds):
                    expected = exact(weight_OI, x_IN) + (before[:, 2:-3] if adds else 0)
                    torch.testing.assert_close(out_ON, expected, rtol=1e-5, atol=1e-4)
                    out_ON.copy_(before[:, 2:-3])
                    assert torch.equal(around, before)


def test_a_token_has_the_same_numbers_whatever_tokens_are_beside_it():
    weight_OI, x_IN = tensors(25, 64, 40)
    together = product_by_own(weight_OI, x_IN)
    for at in (slice(0, 1), slice(7, 16), slice(3, 36)):
        assert torch.equal(product_by_own(weight_OI, x_IN[:, at]), together[:, at])


def product_by_own(weight_OI, x_IN):
    out_ON = torch.empty(len(weight_OI), x_IN.shape[1])
    narrow_product(weight_OI, x_IN, out_ON, adds=False)
    return out_ON


def test_nan_and_infinity_stay_with_their_token():
    weight_OI, x_IN = tensors(12, 8, 10)
    x_IN[3, 4], x_IN[5, 9] = torch.nan, torch.inf
    is_finite = product_by_own(weight_OI, x_IN).isfinite().all(0)
    assert (~is_finite).nonzero().flatten().tolist() == [4, 9]


def test_threads_that_begin_together_make_the_code_once():
    both_are_here, made = Barrier(2), []

    @made_once
    def make():
        made.append(1)
        time.sleep(0.05)
        return len(made)

    def ask(_):
        both_are_here.wait()
        return make()

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(ask, range(2))) == [1, 1]


def test_a_machine_that_executes_no_new_code_is_answered_in_one_line(monkeypatch):
    def refuses():
        raise OSError("cannot allocate executable memory")

    monkeypatch.setattr(binding, "check_jit_execution", refuses)
    with pytest.raises(RunError, match=r"^this machine lets no code be made .* ATEN_CPU_CAPABILITY=default"):
        Compiled(ir.Module())


def test_a_default_type_that_somebody_sets_does_not_make_the_space_too_small():
    weight_OI, x_IN = tensors(130, 576, 64)
    expected = product_by_own(weight_OI, x_IN)
    torch.set_default_dtype(torch.bfloat16)
    try:
        found = torch.empty(130, 64, dtype=torch.float32)
        spaces = watched_spaces(lambda: narrow_product(weight_OI, x_IN, found, adds=False))
    finally:
        torch.set_default_dtype(torch.float32)
    assert {space.dtype for space in spaces} == {torch.float32}
    assert torch.equal(found, expected)


def watched_spaces(work):
    """The tensors that were made."""
    made = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            made.append(out)
            return out

    with Watch():
        work()
    return made


@pytest.mark.parametrize("by", ["own code", "torch"])
def test_every_product_is_right_by_own_code_and_by_torch(by, monkeypatch):
    monkeypatch.setattr(products, "is_narrow", lambda *_: by == "own code")
    for dtype in (torch.float32, torch.bfloat16):
        for tokens in (1, 3, 5, 15, 40, 130):
            weight_OI, x_IN = tensors(25, 64, tokens, dtype=dtype)
            sum_ON, bias_O = tensors(25, tokens, 25)[0], tensors(25, 1, 1)[0][:, 0]
            expected = exact(weight_OI, x_IN.to(dtype)) + bias_O[:, None]
            tolerance = {"rtol": 1e-5, "atol": 2e-5}
            if dtype is torch.bfloat16 and tokens < products.PLAIN:
                tolerance = {"rtol": 1e-2, "atol": 5e-2}  # torch rounds the result
            with case(dtype, tokens):
                torch.testing.assert_close(product(weight_OI, x_IN, bias_O), expected, **tolerance)
                out_ON = torch.empty(25, tokens)
                assert product(weight_OI, x_IN, bias_O, out_ON=out_ON) is out_ON
                torch.testing.assert_close(out_ON, expected, **tolerance)
                rows = product_rows(weight_OI, x_IN, bias_O)
                torch.testing.assert_close(rows, expected.t(), **tolerance)
                for target in (sum_ON.clone(), torch.empty_like(sum_ON)):
                    add_product(sum_ON, weight_OI, x_IN, bias_O, out_ON=target)
                    torch.testing.assert_close(target, expected + sum_ON, **tolerance)
                before = sum_ON.clone()
                add_product(sum_ON, weight_OI, x_IN, bias_O, out_ON=sum_ON)
                torch.testing.assert_close(sum_ON, expected + before, **tolerance)


def test_own_code_is_for_one_thread_few_tokens_and_types_that_it_has(monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    weight_OI, x_IN = tensors(1024, 64, 40)
    assert is_narrow(weight_OI, x_IN)
    for weight, tokens in (
        (weight_OI.double(), x_IN),
        (weight_OI.half(), x_IN),
        (weight_OI[:, :60], x_IN[:60]),
        (weight_OI[:1000], x_IN),
        (torch.empty(64, 1024).t(), x_IN),
        (weight_OI, x_IN[:, :1]),
        (weight_OI, torch.empty(64, own.MANY)),
    ):
        with case(weight.dtype, weight.shape, tokens.shape):
            assert not is_narrow(weight, tokens)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert not is_narrow(weight_OI, x_IN)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    assert not is_narrow(weight_OI, x_IN)
