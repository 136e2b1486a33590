"""pass@k and pass^k in worked numbers."""

import pytest

from strop.telemetry.passes import pass_all, pass_at


@pytest.mark.parametrize(
    ("samples", "passed", "any_of_k", "all_of_k"),
    [
        pytest.param(5, 3, [0.6, 0.9, 1.0], [0.6, 0.3, 0.1], id="2.20-pass"),
        pytest.param(4, 0, [0, 0, 0, 0], [0, 0, 0, 0], id="none"),
        pytest.param(2, 2, [1, 1], [1, 1], id="all"),
    ],
)
def test_one_of_k_passes_and_all_of_k_do(samples, passed, any_of_k, all_of_k):
    for k, (one, every) in enumerate(zip(any_of_k, all_of_k, strict=True), start=1):
        assert pass_at(k, samples=samples, passed=passed) == pytest.approx(one, abs=1e-12)
        assert pass_all(k, samples=samples, passed=passed) == pytest.approx(every, abs=1e-12)
