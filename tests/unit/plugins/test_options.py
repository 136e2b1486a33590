"""Options of a function, checked from its signature."""

import functools

import pytest
from cases import case

from strop.errors import PluginError
from strop.plugins import check_options


def scored(sample, *, pattern, share=1.0): ...


def free(sample, **options): ...


class Made:
    def __init__(self, pattern, share=1.0): ...

    def __call__(self, sample, *, scale=1): ...


def test_options_that_fit_pass():
    cases = [
        (scored, {"pattern": "a"}, 1),
        (free, {"anything": 1}, 1),
        (functools.partial(scored, pattern="a"), {"share": 2.0}, 1),
        (Made, {"pattern": "a"}, 0),
        (Made("a"), {"scale": 2}, 1),
        (lambda *samples: 0, {}, 1),
    ]
    for fn, options, num_given in cases:
        with case(fn, options):
            check_options(fn, options, key="reward.options", num_given=num_given)


def test_options_that_do_not_fit_are_named():
    cases = [
        (
            scored,
            {"patern": "a"},
            "reward.options.patern: scored takes no such option; did you mean 'pattern'?",
        ),
        (
            scored,
            {"zzz": 1, "pattern": ""},
            "reward.options.zzz: scored takes no such option; it takes pattern, share",
        ),
        (
            scored,
            {"sample": 1, "pattern": ""},
            "reward.options.sample: scored takes no such option; it takes pattern, share",
        ),
        (scored, {}, "reward.options: scored needs 'pattern'; add reward.options.pattern = …"),
        (
            functools.partial(scored, pattern="a"),
            {"shar": 1},
            "reward.options.shar: scored takes no such option; did you mean 'share'?",
        ),
        (
            Made("a"),
            {"sale": 1},
            "reward.options.sale: Made takes no such option; did you mean 'scale'?",
        ),
        (
            lambda: 0,
            {},
            "reward.options: <lambda> must take 1 argument(s) before its options, takes 0",
        ),
    ]
    for fn, options, message in cases:
        with case(fn, options):
            with pytest.raises(PluginError) as caught:
                check_options(fn, options, key="reward.options", num_given=1)
            assert str(caught.value) == message
