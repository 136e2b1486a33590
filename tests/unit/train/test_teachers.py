"""Teachers score what the policy sampled: its ids, temperature and sets, behind the prompts shown to them."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from eager import eager
from fresh import fresh

from strop.algo.batch import Batch, behind, make_batch
from strop.algo.distill import gkd, top_k_reverse_kl
from strop.algo.policy import PolicyGradient
from strop.config.algo import Algo
from strop.config.teacher import Teacher
from strop.config.tree import Optim, Train
from strop.nn.loading import CausalLM
from strop.nn.tiny import make_tiny
from strop.runtime.compute import Compute
from strop.sample import Group, Prompt, Sample, Tokens
from strop.train.forward import packed_hidden, packed_stats
from strop.train.local import LocalTrainer, Models
from strop.train.packing import pack
from strop.train.teachers import TeacherModel, Teachers

FORMS = {
    "sampled": Teacher(model="t"),
    "full": Teacher(model="t", form="full"),
    "top_k": Teacher(model="t", form="top_k", top_k=3),
    "between": Teacher(model="t", form="full", beta=0.5),
}
HINT = [72, 105, 33]


@pytest.fixture(scope="module")
def other_dir(tmp_path_factory):
    """A wider model over the same ids."""
    return make_tiny(tmp_path_factory.mktemp("teachers") / "other", seed=5, hidden=96)


@pytest.fixture
def other(other_dir) -> CausalLM:
    return fresh(other_dir)


def batch_of(
    *,
    kept: list[int] | None = None,
    temperature: float = 1.0,
    num: int = 4,
    seed: int = 0,
    max_tokens: int = 6,
) -> Batch:
    """Two groups with tool tokens in the middle of each reply. `kept`: what every token was drawn from."""
    rng, samples = np.random.default_rng(seed), []
    for i in range(num):
        prompt = [10, 20, 30] if i < num // 2 else [65, 66, 67, 68]
        sample = Sample(
            index=i, group_id=2 * i // num, sequence=Tokens.context(prompt), prompt_length=len(prompt)
        )
        for turn in range(2):
            n = int(rng.integers(1, max_tokens // 2 + 1))
            ids = rng.choice(kept if kept is not None else 256, n).tolist()
            sets = (
                {"top_p_token_ids": kept * n, "top_p_token_offsets": [len(kept) * j for j in range(n + 1)]}
                if kept
                else {}
            )
            sample.append_response_tokens(tokens=ids, log_probs=[-1.0] * n, meta_info=sets)
            if turn == 0:
                sample.append_response_tokens(tokens=[1, 2], trainable=False)
        sample.reward, sample.metadata = float(i % 2), {"source_name": "even" if i % 2 == 0 else "odd"}
        samples.append(sample)
    groups = [
        Group(g, Prompt(id=str(g), messages=""), [s for s in samples if s.group_id == g]) for g in range(2)
    ]
    return make_batch(groups, num_updates=1, max_response_tokens=12, temperature=temperature)


def teachers_of(*models: CausalLM | None, section: Teacher = FORMS["sampled"], **train) -> Teachers:
    return Teachers([TeacherModel(model) for model in models], section, Train(**train))


def trainer_of(
    model: CausalLM, teachers: Teachers, section: Teacher, *, lr: float = 1e-2, **keys
) -> LocalTrainer:
    algorithm = PolicyGradient(Algo(advantage="none", teacher=section), num_updates=1)
    train = Train(optim=Optim(lr=lr), **keys)
    return LocalTrainer(Models(model, teachers=teachers), train, algorithm, Compute(), total_updates=900)


async def stepped(trainer: LocalTrainer, batch: Batch) -> dict[str, float]:
    for what in sorted(trainer._algorithm.needs & {"old", "teacher"}):
        batch.scored[what] = await trainer.score(batch, what)
    trainer._algorithm.credit(batch)
    return await trainer.step(batch)


def all_logp(theirs, ids: list[int], batch: Batch, kept: list[int]) -> torch.Tensor:
    """[T, K] of every next token, by transformers' own forward: `theirs` is an eager model."""
    logits = theirs(input_ids=torch.tensor([ids])).logits[0].float()
    return torch.log_softmax(logits[:, kept] / batch.temperature, -1)


async def test_a_teacher_scores_at_the_temperature_and_within_the_sets_of_the_sampler(tiny, other):
    """slime#2085, verl#6867: at temperature 0; slime#2319: at 1, whatever the sampler's was."""
    kept = list(range(40, 90))
    batch = batch_of(kept=kept, temperature=0.6)
    column, theirs = teachers_of(other).score(batch, tiny), eager(other)
    for row, sample in enumerate(batch.samples):
        logp = all_logp(theirs, sample.tokens, batch, kept)
        at = np.flatnonzero(sample.sequence.sampled)
        expected = [logp[i - 1, kept.index(sample.tokens[i])].item() for i in at]
        found = column[batch.tokens_of(row)][at - sample.prompt_length]
        assert found == pytest.approx(expected, abs=1e-4)
    assert np.isnan(column).sum() == 2 * len(batch.samples)
    assert np.nanmax(np.abs(column - teachers_of(other).score(replace(batch, temperature=1.0), tiny))) > 0.01


@pytest.mark.parametrize("form", FORMS)
async def test_a_policy_that_is_its_teacher_learns_nothing(tiny, tiny_dir, form):
    batch = batch_of(kept=list(range(40, 90)), temperature=0.6)
    teachers = teachers_of(fresh(tiny_dir), section=FORMS[form])
    metrics = await stepped(trainer_of(tiny, teachers, FORMS[form]), batch)
    assert not batch.advantage.any()
    assert metrics["train/grad_norm"] < 1e-6
    assert metrics.get("train/opd_kl", 0.0) == pytest.approx(0, abs=1e-6)


async def test_advantages_are_what_the_teacher_thinks_more_of_a_token(tiny, other):
    batch = batch_of()
    section = Teacher(model="t", coef=0.5)
    await stepped(trainer_of(tiny, teachers_of(other), section), batch)
    difference = 0.5 * (batch.scored["teacher"] - batch.scored["old"])
    assert batch.advantage == pytest.approx(np.where(batch.mask, difference, 0.0), abs=1e-7)
    assert np.abs(batch.advantage).max() > 0.01


def test_several_teachers_count_by_weight_and_each_for_its_own_sources(tiny, other, tiny_dir):
    batch = batch_of()
    one, two = (teachers_of(model).score(batch, tiny) for model in (other, tiny))
    both = Teachers([TeacherModel(other, 3.0), TeacherModel(tiny, 1.0)], FORMS["sampled"], Train()).score(
        batch, tiny
    )
    np.testing.assert_allclose(both, 0.75 * one + 0.25 * two, atol=1e-6)
    parted = Teachers(
        [TeacherModel(other, 3.0, ("even",)), TeacherModel(tiny, 1.0, ("other",))], FORMS["sampled"], Train()
    )
    is_even = batch.spread(np.array([1.0, 0.0, 1.0, 0.0])) == 1
    np.testing.assert_allclose(parted.score(batch, tiny), np.where(is_even, one, np.nan), atol=1e-6)


async def test_prompts_that_nobody_teaches_are_left_alone(tiny, other):
    for form in ("sampled", "full"):
        batch = batch_of()
        of_even = Teachers([TeacherModel(other, 1.0, ("even",))], FORMS[form], Train())
        await stepped(trainer_of(tiny, of_even, FORMS[form]), batch)
        is_even = batch.spread(np.array([1.0, 0.0, 1.0, 0.0])) == 1
        assert not batch.advantage[~is_even].any()
        packed_N = _divergences(tiny, of_even, batch) if form == "full" else batch.advantage
        assert (packed_N != 0)[is_even & batch.mask].all()
        assert not packed_N[~is_even].any()


def _divergences(model: CausalLM, teachers: Teachers, batch: Batch) -> np.ndarray:
    """[N] as a training pass has them."""
    column = np.zeros(batch.num_tokens, np.float32)
    for packed in pack(batch, range(len(batch.samples)), max_tokens=40):
        with torch.no_grad():
            hidden = packed_hidden(model, packed, dtype=torch.float32)
            column[packed.columns] = teachers.divergence(batch, packed, model, hidden).numpy()
    return column


def test_a_hint_is_seen_by_the_teacher_and_scores_stay_with_their_tokens(tiny):
    batch = batch_of(temperature=0.7)
    batch.for_teacher = behind(batch, [[*HINT, *s.tokens[: s.prompt_length]] for s in batch.samples])
    column, theirs = teachers_of(None).score(batch, tiny), eager(tiny)
    every = list(range(264))
    for row, sample in enumerate(batch.samples):
        logp = all_logp(theirs, [*HINT, *sample.tokens], batch, every)
        at = np.flatnonzero(sample.sequence.sampled)
        expected = [logp[len(HINT) + i - 1, sample.tokens[i]].item() for i in at]
        assert column[batch.tokens_of(row)][at - sample.prompt_length] == pytest.approx(expected, abs=1e-4)
    plain = replace(batch, for_teacher=None)
    assert np.nanmax(np.abs(column - teachers_of(None).score(plain, tiny))) > 1e-3


@pytest.mark.parametrize(
    ("form", "has_hint"),
    [
        ("full", True),
        ("top_k", False),
        *(pytest.param(*other, marks=pytest.mark.slow) for other in (("between", True), ("top_k", True))),
    ],
)
async def test_divergence_and_gradient_are_those_of_all_logits_however_an_update_is_split(
    tiny_dir, other, form, has_hint
):
    section, results = FORMS[form], []
    for budget in (10_000, 20, 1):
        model, batch = fresh(tiny_dir), batch_of(temperature=0.7)
        if has_hint:
            batch.for_teacher = behind(batch, [[*HINT, *s.tokens[: s.prompt_length]] for s in batch.samples])
        trainer = trainer_of(
            model,
            teachers_of(other, section=section, max_tokens_per_device=budget),
            section,
            max_tokens_per_device=budget,
        )
        trainer._optimizer.step = lambda: None
        trainer._optimizer.zero_grad = lambda: None
        metrics = await stepped(trainer, batch)
        results.append((metrics["train/opd_kl"], {name: p.grad for name, p in model.named_parameters()}))
    results.append(_plain(fresh(tiny_dir), other, batch, section, HINT if has_hint else []))
    scale = max(float(grad.abs().max()) for grad in results[-1][1].values())
    for value, gradients in results[:-1]:
        assert value == pytest.approx(results[-1][0], rel=1e-4)
        for name, expected in results[-1][1].items():
            norm = min(1.0, 1.0 / _norm(results[-1][1]))  # the trainer has clipped
            torch.testing.assert_close(gradients[name], expected * norm, rtol=0, atol=1e-4 * scale)


def _norm(gradients: dict[str, torch.Tensor]) -> float:
    return float(torch.stack([grad.norm() for grad in gradients.values()]).norm())


def _plain(model: CausalLM, teacher: CausalLM, batch: Batch, section: Teacher, hint: list[int]):
    """One sample at a time, all logits, transformers' own forward."""
    every, losses, num = list(range(264)), [], int(batch.mask.sum())
    theirs, of_teacher = eager(model), eager(teacher)
    for sample in batch.samples:
        at = np.flatnonzero(sample.sequence.sampled) - 1
        logits = theirs(input_ids=torch.tensor([sample.tokens])).logits[0, at].float()
        p = torch.log_softmax(logits / batch.temperature, -1)
        with torch.no_grad():
            q = all_logp(of_teacher, [*hint, *sample.tokens], batch, every)[at + len(hint)]
        if section.form == "top_k":
            chosen = p.detach().topk(section.top_k).indices
            losses.append(top_k_reverse_kl(p.gather(1, chosen), q.gather(1, chosen)).sum() / num)
        else:
            losses.append(gkd(p, q, beta=section.beta).sum() / num)
    torch.stack(losses).sum().backward()
    value = float(torch.stack(losses).sum().detach())
    return value, {name: p.grad for name, p in model.named_parameters()}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["sampled", "full", "top_k"])
async def test_a_policy_of_three_symbols_ends_below_a_twentieth_of_its_kl(tiny, other, form):
    """In the real trainer: every token is drawn from three ids, by the policy as it is."""
    section = FORMS[form] if form != "top_k" else Teacher(model="t", form="top_k", top_k=2)
    trainer = trainer_of(tiny, teachers_of(other, section=section), section, lr=1e-3)
    other.head_VD.data[66] *= 3  # apart from the policy
    exact = teachers_of(other, section=FORMS["full"])
    kl, steps = [], 40 if form == "sampled" else 25
    for step in range(steps):
        batch = three_symbols(tiny, seed=step)
        kl.append(float(_divergences(tiny, exact, batch).mean()))
        await stepped(trainer, batch)
    assert kl[0] > 0.01
    assert np.mean(kl[-3:]) < 0.05 * kl[0]


def three_symbols(model: CausalLM, *, seed: int) -> Batch:
    """32 tokens after one prompt, drawn by the policy from three ids."""
    kept, rng = [65, 66, 67], np.random.default_rng(seed)
    p = probabilities(model, kept)
    return of_tokens([kept[rng.choice(3, p=p / p.sum())] for _ in range(32)], kept)


def probabilities(model: CausalLM, kept: list[int]) -> np.ndarray:
    (packed,) = pack(of_tokens(kept, kept), range(3), max_tokens=99)
    with torch.no_grad():
        logp = packed_stats(model, packed, temperature=1.0, dtype=torch.float32).logp_N
    return logp.double().exp().numpy()


def of_tokens(tokens: list[int], kept: list[int]) -> Batch:
    samples = []
    for index, token in enumerate(tokens):
        sample = Sample(index=index, group_id=0, sequence=Tokens.context([10, 20, 30]), prompt_length=3)
        sets = {"top_p_token_ids": kept, "top_p_token_offsets": [0, 3]}
        sample.append_response_tokens(tokens=[token], log_probs=[-1.0], meta_info=sets)
        sample.reward = 0.0
        samples.append(sample)
    group = Group(0, Prompt(id="0", messages=""), samples)
    return make_batch([group], num_updates=1, max_response_tokens=1, temperature=1.0)
