"""What the keys of `[algo]` compose: advantages, penalties, masks, corrections and functions of one's own."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from small_steps import batch_of, with_kl

from strop.algo.base import LossInputs
from strop.algo.policy import PolicyGradient
from strop.algo.sequence import sums_by_sample
from strop.config.algo import Algo, Correction
from strop.errors import NonFinite, PluginError
from strop.sample import Status

COLUMNS = [spec.name for spec in fields(LossInputs) if spec.name.endswith("_N")]


def algorithm(*, num_updates=1, **keys):
    return PolicyGradient(Algo(**keys), num_updates=num_updates)


def inputs_of(batch, *, logp, old=None, behavior=None):
    n = batch.num_tokens
    logp_N = torch.tensor(logp, dtype=torch.float64, requires_grad=True)
    old_N = logp_N.detach() if old is None else torch.tensor(old, dtype=torch.float64)
    return LossInputs(
        logp_N=logp_N,
        entropy_N=torch.zeros(n),
        old_N=old_N,
        ref_N=old_N,
        behavior_N=old_N if behavior is None else torch.tensor(behavior, dtype=torch.float64),
        advantage_N=torch.from_numpy(batch.advantage),
        weight_N=torch.full((n,), 1 / n, dtype=torch.float64),
        sums=sums_by_sample(torch.from_numpy(batch.sample_of_token)),
        sample_N=torch.from_numpy(batch.sample_of_token),
        columns={n: torch.from_numpy(c) for n, c in batch.scored.items() if n == "mean_weight"},
    )


def gradient(algo, inputs):
    return torch.autograd.grad(algo.loss(inputs).total, inputs.logp_N)[0]


def test_kl_in_the_reward_gives_the_worked_values_of_reinforce_pp():
    batch = with_kl(batch_of([1.0, 0.0], [3, 2], group_size=1), [0.1, 0.2, 0.3, 0.0, 0.4])
    algo = algorithm(advantage="returns", whiten="bessel", kl_coef=0.1)
    assert algo.needs == {"old", "ref"}
    algo.credit(batch)
    assert batch.advantage == pytest.approx([0.705651, 0.724027, 0.760780, -1.095229, -1.095229], abs=1e-5)


def white(values_N, *, ddof):
    return (values_N - values_N.mean()) / values_N.std(ddof=ddof)


@pytest.mark.parametrize("kl_coef", [0.0, 0.3])
def test_the_keys_of_reinforce_pp_are_its_equation(kl_coef):
    rewards, kl = [1.0, 0.0, 0.5, 2.0], np.linspace(0, 1, 10)
    batch = with_kl(batch_of(rewards, [3, 2, 4, 1]), kl)
    algorithm(advantage="returns", whiten="bessel", kl_coef=kl_coef, gamma=0.9).credit(batch)
    expected = -kl_coef * kl
    expected[batch.offsets[1:] - 1] += rewards
    for token in (7, 6, 5, 3, 1, 0):  # those that another of their sample follows
        expected[token] += 0.9 * expected[token + 1]
    np.testing.assert_allclose(batch.advantage, white(expected, ddof=1), atol=1e-6)


@pytest.mark.parametrize("kl_coef", [0.0, 0.3])
def test_the_keys_of_its_form_with_a_baseline_are_its_equation(kl_coef):
    kl = np.linspace(0, 1, 10)
    batch = with_kl(batch_of([1.0, 0.0, 0.5, 2.0], [3, 2, 4, 1]), kl)
    algorithm(normalize_std=False, whiten="population", kl_coef=kl_coef).credit(batch)
    expected = np.repeat([0.5, -0.5, -0.75, 0.75], [3, 2, 4, 1]) - kl_coef * kl
    np.testing.assert_allclose(batch.advantage, white(expected, ddof=0), atol=1e-6)


def test_kl_is_charged_for_trained_tokens_alone():
    batch = with_kl(batch_of([1.0], [3], group_size=1), [0.1, np.nan, 0.3])
    batch.mask[1] = False
    algorithm(advantage="returns", gamma=0.0, kl_coef=0.5).credit(batch)
    assert batch.advantage == pytest.approx([-0.05, 0, 0.85])


def test_a_kl_that_is_no_number_is_named():
    for advantage in ("group", "returns"):
        batch = with_kl(batch_of([1.0, 0.0], [1, 1]), [0.1, np.nan])
        with pytest.raises(
            NonFinite, match=r"^kl of 1 of 2 trained tokens is not finite .*token 1 of the step"
        ):
            algorithm(advantage=advantage, kl_coef=0.5).credit(batch)


def test_a_price_on_one_token_leaves_the_others():  # NeMo#2787: a view that was one number
    batch = with_kl(batch_of([0.0, 0.0], [3, 1]), [0, 1, 0, 0])
    algorithm(kl_coef=1.0).credit(batch)
    assert batch.advantage.tolist() == [0, -1, 0, 0]


def test_without_a_baseline_discount_and_whitening_every_token_earns_the_reward():
    batch = batch_of([1.0, 0.25], [3, 2], group_size=1)
    algorithm(advantage="returns").credit(batch)
    assert batch.advantage.tolist() == [1, 1, 1, 0.25, 0.25]


def test_remax_compares_with_the_greedy_reply():
    batch = batch_of([1.0, 0.0], [2, 1])
    batch.greedy = {0: 0.75}
    algo = algorithm(advantage="greedy")
    algo.credit(batch)
    assert algo.needs == {"greedy"}
    assert batch.advantage.tolist() == [0.25, 0.25, -0.75]


def test_truncated_samples_leave_the_mask_and_the_denominators_yet_count_in_the_baseline():
    batch = batch_of([1.0, 0.0], [2, 2])
    batch.samples[1].status = Status.TRUNCATED
    algo = algorithm(mask_truncated=True, normalize_std=False)
    algo.credit(batch)
    assert batch.advantage.tolist() == [0.5, 0.5, -0.5, -0.5]
    assert algo.weights(batch).tolist() == [0.5, 0.5, 0, 0]
    assert algo.contributes(batch).tolist() == [True, False]


def test_behavior_as_old_needs_no_pass_and_makes_the_ratio_to_the_sampler():
    batch = batch_of([1.0, 0.0], [1, 1])
    algo = algorithm(old="behavior", num_updates=4, normalize_std=False, clip_high=9.0)
    assert algo.needs == set()
    algo.credit(batch)
    inputs = inputs_of(batch, logp=[-1.0, -1.0], behavior=[-1.2, -1.0])
    assert gradient(algo, inputs)[0].item() == pytest.approx(-0.5 * 0.5 * np.exp(0.2), rel=1e-5)


def test_a_correction_weighs_the_policy_loss_and_not_the_kl():
    batch = batch_of([1.0, 0.0], [1, 1])
    keys = {"normalize_std": False, "kl_loss_coef": 1.0, "kl_loss_type": "k2"}
    plain, corrected = algorithm(**keys), algorithm(**keys, correction=Correction(type="tis", high=2.0))
    plain.credit(batch)
    inputs = inputs_of(batch, logp=[-1.0, -1.0], behavior=[-4.0, -1.0])
    inputs = replace(inputs, ref_N=inputs.ref_N - 1)
    parts, weighed = plain.loss(inputs).parts, corrected.loss(inputs).parts
    assert weighed["kl_loss"] == parts["kl_loss"]
    assert weighed["correction_clip_frac"].item() == pytest.approx(0.5)
    assert weighed["pg_loss"].item() == pytest.approx((-0.5 * 2 + 0.5) / 2)


def test_normalised_weights_have_mean_one_over_the_update():
    batch = batch_of([1.0, 0.0, 1.0, 0.0], [2, 1, 3, 2], num_updates=2)
    batch.scored["old"] = batch.behavior + np.linspace(-0.5, 0.6, batch.num_tokens, dtype=np.float32)
    algo = algorithm(correction=Correction(type="tis", normalize=True))
    assert algo.needs == {"old"}
    algo.credit(batch)
    for index in (0, 1):
        rows = np.flatnonzero(batch.update[batch.sample_of_token] == index)
        inputs = inputs_of(batch, logp=batch.scored["old"], behavior=batch.behavior)
        part = replace(
            inputs,
            **{name: getattr(inputs, name)[rows] for name in COLUMNS},
            sums=sums_by_sample(torch.from_numpy(batch.sample_of_token[rows])),
            columns={name: column[rows] for name, column in inputs.columns.items()},
        )
        mean = algo.loss(part).parts["correction_weight"].item() / part.weight_N.sum().item()
        assert mean == pytest.approx(1, rel=1e-5)


def test_sequence_masking_leaves_out_far_tokens_of_negative_advantage():
    batch = batch_of([1.0, 0.0], [2, 2])
    algo = algorithm(opsm_delta=0.1, normalize_std=False)
    algo.credit(batch)
    far = inputs_of(batch, logp=[-1.0] * 4, behavior=[-0.5] * 4)
    assert (gradient(algo, far) != 0).tolist() == [True, True, False, False]
    near = inputs_of(batch, logp=[-1.0] * 4, behavior=[-1.0] * 4)
    assert (gradient(algo, near) != 0).all()


def test_gspo_takes_the_ratio_of_the_whole_sample():
    batch = batch_of([1.0, 0.0], [3, 1])
    algo = algorithm(
        policy_loss="gspo", normalize_std=False, clip_high=1.0, aggregation="seq_mean_token_mean"
    )
    algo.credit(batch)
    inputs = inputs_of(batch, logp=[-1.0, -1.0, -1.0, -1.0], old=[-1.1, -0.8, -1.4, -1.0])
    assert gradient(algo, inputs)[0].item() == pytest.approx(-0.5 * np.exp(0.1) / 4, rel=1e-5)


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import numpy as np\n"
        "def half(batch): return batch.spread(batch.rewards / 2)\n"
        "def short(batch): return np.zeros(3)\n"
        "def nan(batch): return np.full(batch.num_tokens, np.nan)\n"
        "def complex(batch): return np.full(batch.num_tokens, 1j)\n"
        "def words(batch): return np.full(batch.num_tokens, 'x')\n"
        "def plain(inputs): return -inputs.advantage_N * inputs.logp_N\n"
        "def total(inputs): return (-inputs.advantage_N * inputs.logp_N).sum()\n"
    )
    return lambda name: f"{path}:{name}"


def test_an_advantage_of_ones_own_is_used_as_it_is(mine):
    batch = batch_of([1.0, 0.0], [2, 1])
    algorithm(advantage=mine("half")).credit(batch)
    assert batch.advantage.tolist() == [0.5, 0.5, 0]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("short", r"expected an array of 3 .* got \[3\]"),
        ("nan", "token 0, .* is nan"),
        ("complex", "expected an array of numbers, got one of complex128"),
        ("words", "expected an array of numbers, got one of <U1"),
    ],
)
def test_an_advantage_of_ones_own_that_cannot_be_one_is_named(mine, name, told):
    batch = batch_of([1.0, 0.0], [2, 2 if name == "short" else 1])
    told = told.replace("of 3", f"of {batch.num_tokens}")
    with pytest.raises(PluginError, match=told):
        algorithm(advantage=mine(name)).credit(batch)


def test_a_policy_loss_of_ones_own_is_aggregated_like_any(mine):
    batch = batch_of([1.0, 0.0], [1, 1])
    algo = algorithm(policy_loss=mine("plain"), normalize_std=False)
    algo.credit(batch)
    assert gradient(algo, inputs_of(batch, logp=[-1.0, -2.0])).tolist() == [-0.25, 0.25]


def test_a_policy_loss_that_is_one_number_is_refused(mine):
    batch = batch_of([1.0, 0.0], [1, 1])
    algo = algorithm(policy_loss=mine("total"))
    with pytest.raises(PluginError, match=r"expected a tensor of 2 losses, got \[\]"):
        algo.loss(inputs_of(batch, logp=[-1.0, -2.0]))


def test_samples_without_advantage_are_computed_for_a_policy_loss_of_ones_own(mine):
    batch = batch_of([1.0, 1.0], [1, 1])
    for own in (True, False):
        algo = algorithm(policy_loss=mine("plain") if own else "clip")
        algo.credit(batch)
        assert algo.contributes(batch).tolist() == [own, own]


def test_geometric_weights_can_be_normalised():  # slime's MIS example: a ValueError
    batch = batch_of([1.0, 0.0], [2, 1])
    batch.scored["old"] = batch.behavior + np.float32([0.1, 0.3, -0.4])
    algo = algorithm(correction=Correction(type="mis", level="geometric", normalize=True))
    algo.credit(batch)
    inputs = inputs_of(batch, logp=batch.scored["old"], behavior=batch.behavior)
    assert algo.loss(inputs).parts["correction_weight"].item() == pytest.approx(1, rel=1e-5)


def test_the_masked_share_is_of_trained_tokens():  # slime: tool tokens made it larger than 1
    batch = batch_of([1.0, 0.0], [2, 4])
    batch.mask[3:] = False
    algo = algorithm(opsm_delta=0.1)
    algo.credit(batch)
    inputs = inputs_of(batch, logp=[-1.0] * 6, behavior=[-0.5] * 6)
    inputs = replace(inputs, weight_N=torch.from_numpy(algo.weights(batch)))
    assert algo.loss(inputs).parts["opsm_frac"].item() == pytest.approx(1 / 3)
