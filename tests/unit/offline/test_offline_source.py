"""Groups that rows give: whole, in order, once, and the same after a resume."""

import asyncio
import json

import numpy as np
import pytest

from strop.buffer.buffer import Buffer
from strop.config.offline import Rows
from strop.config.tree import Prompts
from strop.errors import DataError
from strop.offline.facts import row_facts
from strop.offline.rows import RowReader, check_rows
from strop.offline.source import Offline, groups_of
from strop.prompts.none import NoPrompts
from strop.prompts.open import look_ahead, open_prompts
from strop.render.bytes import ByteRenderer
from strop.store.jsonl import Log
from strop.store.ledger import Ledger, audit, read_ledger

ROWS = {
    "texts": [{"prompt": "abc"[:n], "completion": "x" * (n + 1)} for n in (1, 2, 3)],
    "pairs": [{"prompt": f"{n}", "chosen": "y" * n, "rejected": "nn"} for n in (1, 2, 3)],
    "marked": [{"prompt": f"{n}", "completion": f"{n}" * n, "label": n != 2} for n in (1, 2, 3)],
    "ranked": [{"prompt": f"{n}", "responses": ["y" * n, "n"]} for n in (1, 2, 3)],
}


@pytest.fixture
def opened(tmp_path):
    """Rows of a shape, read; `more` are written behind them."""

    def opened(shape, *more, **keys):
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in (*ROWS[shape], *more)))
        return open_prompts(Prompts(files=[str(path)], seed=3, **keys), shape)

    return opened


def reader(longest=64, **keys):
    return RowReader(ByteRenderer(), Rows(**keys), longest)


@pytest.fixture
def source(tmp_path, opened):
    def source(shape, name="ledger"):
        log = Log(tmp_path / f"{name}.jsonl")
        return Offline(opened(shape).source, reader(), batch_size=2, ledger=Ledger(log))

    return source


async def taken(source, steps):
    buffer, groups = Buffer(groups_per_step=2, staleness=0), []
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(source.fill(buffer, steps))
        for _ in steps:
            groups.append(await buffer.take(2))
            await buffer.release(groups[-1])
    return groups


def content(groups):
    return [
        (g.id, g.prompt.id, [(s.index, s.trajectory_id, s.role, s.tokens, s.response) for s in g.samples])
        for step in groups
        for g in step
    ]


@pytest.mark.parametrize("shape", ROWS)
async def test_a_restored_source_goes_on_with_the_same_groups(source, shape):
    expected = await taken(source(shape, "one"), range(5))
    stopped, resumed = source(shape, "two"), source(shape, "three")
    await taken(stopped, range(2))
    resumed.restore(json.loads(json.dumps(stopped.state())))
    assert content(await taken(resumed, range(2, 5))) == content(expected[2:])
    assert sorted(g.prompt.id for step in expected[:3] for g in step) == sorted(
        f"rows.jsonl:{n}" for n in (1, 2, 3) for _ in range(2)
    ), "two epochs hold every row twice"


@pytest.mark.parametrize("shape", ROWS)
async def test_every_group_is_in_the_books_once(source, tmp_path, shape):
    made = source(shape)
    for step, groups in enumerate(await taken(made, range(3))):
        made.record_trained(step, groups)
        assert made.reports.pop(step).is_given
    balance = audit(read_ledger(tmp_path / "ledger.jsonl"))
    assert balance.is_balanced
    assert (balance.trained, balance.pending) == (6, 0)


def test_the_chosen_response_comes_first_and_shares_its_prompt(opened):
    for group in groups_of(look_ahead(opened("pairs").source, 3), reader()):
        chosen, rejected = group.samples
        assert (chosen.role, rejected.role) == ("chosen", "rejected")
        assert chosen.tokens[: chosen.prompt_length] == rejected.tokens[: rejected.prompt_length]
        assert rejected.response == "nn"
        assert chosen.reward is None
        assert chosen.sequence.is_given


def test_a_marked_response_brings_its_prompt_with_the_response_of_the_row_before(opened):
    rows = look_ahead(opened("marked").source, 3)
    groups = groups_of(rows, reader(), first_group=4, first_index=10)
    for place, group in enumerate(groups):
        own, other = group.samples
        before = groups[place - 1].samples[0]
        assert other.role == "mismatched"
        assert other.remove_sample
        assert other.trajectory_id == own.trajectory_id == own.index
        assert other.tokens[: own.prompt_length] == own.tokens[: own.prompt_length]
        assert other.response == before.response
    indices = [sample.index for group in groups for sample in group.samples]
    assert indices == list(range(10, 16))
    roles = {group.prompt.id: group.samples[0].role for group in groups}
    assert roles == {
        "rows.jsonl:1": "desirable",
        "rows.jsonl:2": "undesirable",
        "rows.jsonl:3": "desirable",
    }


def test_an_evaluation_has_no_rows_to_train():
    assert row_facts(NoPrompts(), reader()).said == "none: nothing is trained"


LONG = {"prompt": "a" * 5, "completion": "b" * 20}


def test_a_long_row_stops_the_run_by_name(opened):
    with pytest.raises(DataError) as caught:
        check_rows(opened("texts", LONG, LONG), {}, reader(max_tokens=16), skip_bad=False)
    assert str(caught.value) == (
        "prompts: rows.jsonl:4 has 29 tokens, more than prompts.rows.max_tokens = 16 (and 1 more rows are "
        'too long); set prompts.rows.on_long = "truncate" to cut such rows at their end, or "skip" to leave '
        "them out"
    )
    with pytest.raises(DataError, match="more than the 20 that the model takes"):
        check_rows(opened("texts", LONG), {}, reader(longest=20), skip_bad=False)


def test_a_long_row_can_be_left_out_and_is_counted(opened):
    found = check_rows(opened("texts", LONG), {}, reader(max_tokens=16, on_long="skip"), skip_bad=False)
    assert (len(found.opened.source), found.opened.num_too_long, found.num_cut) == (3, 1, 0)


def test_a_long_row_can_be_cut_at_its_end_and_is_counted(opened):
    short = reader(max_tokens=16, on_long="truncate")
    found = check_rows(opened("texts", LONG, {**LONG, "prompt": "a" * 20}), {}, short, skip_bad=False)
    assert (len(found.opened.source), found.opened.num_too_long, found.num_cut) == (4, 1, 1)
    cut = next(row for row in look_ahead(found.opened.source, 4) if row.id == "rows.jsonl:4")
    ((sample,),) = [group.samples for group in groups_of([cut], short)]
    assert (len(sample.sequence), sample.response, sample.status) == (16, "b" * 8, "truncated")
    np.testing.assert_array_equal(sample.sequence.mask, np.arange(16) >= 8)


def test_a_pair_that_is_the_same_once_it_is_cut_is_left_out_and_counted(opened):
    """Nothing tells which is better: `per_token` has no token to compare, no other loss a gradient."""
    alike = {"prompt": "a", "chosen": "b" * 20 + "c", "rejected": "b" * 20 + "d"}
    short = reader(max_tokens=16, on_long="truncate")
    found = check_rows(opened("pairs", alike), {}, short, skip_bad=False)
    assert (len(found.opened.source), found.opened.num_too_long, found.num_cut) == (3, 1, 0)
    with pytest.raises(DataError, match=r"eval\.datasets\.dev: rows\.jsonl:4 is longer than the 16 tokens"):
        check_rows(
            opened("pairs"), {"dev": look_ahead(opened("pairs", alike).source, 4)}, short, skip_bad=False
        )


def test_responses_that_are_the_same_tokens_are_named(opened):
    alike = {"prompt": "a", "responses": ["b", "c", [{"role": "assistant", "content": "b"}]]}
    with pytest.raises(DataError, match=r"rows\.jsonl:4: two of its responses are the same tokens"):
        check_rows(opened("ranked", alike), {}, reader(), skip_bad=False)
    found = check_rows(opened("ranked", alike, on_bad_row="skip"), {}, reader(), skip_bad=True).opened
    assert (len(found.source), found.bad.count) == (3, 1)


def test_nothing_left_to_learn_from_is_said(opened):
    with pytest.raises(DataError, match="holds no prompts that has something to learn within 4 tokens"):
        check_rows(opened("texts"), {}, reader(max_tokens=4, on_long="skip"), skip_bad=False)


def test_a_row_that_cannot_be_shown_is_named_or_left_out_and_counted(opened):
    bad = {"prompt": "a", "completion": [{"role": "user", "content": "b"}]}
    with pytest.raises(DataError, match=r"rows\.jsonl:4: a response begins with a message of the role"):
        check_rows(opened("texts", bad), {}, reader(), skip_bad=False)
    found = check_rows(opened("texts", bad, on_bad_row="skip"), {}, reader(), skip_bad=True).opened
    assert (len(found.source), found.bad.count) == (3, 1)


def test_a_marked_row_without_another_is_refused(opened):
    """It would be compared with its own response, and never be on the right side of that."""
    few, limit = opened("marked"), reader(max_tokens=6, on_long="skip")
    with pytest.raises(DataError, match=r"prompts: rows\.jsonl:1 is the only row, .* give at least 2"):
        check_rows(few, {}, limit, skip_bad=False)
    with pytest.raises(DataError, match=r"eval\.datasets\.dev: rows\.jsonl:1 is the only row"):
        check_rows(
            few,
            {"dev": [row for row in look_ahead(few.source, 0) if row.id == "rows.jsonl:1"]},
            reader(),
            skip_bad=False,
        )


def test_held_out_rows_are_never_left_out(opened):
    held_out = look_ahead(opened("texts", LONG).source, 4)
    with pytest.raises(DataError, match=r"eval\.datasets\.dev: rows\.jsonl:4 is longer than the 16 tokens"):
        check_rows(opened("texts"), {"dev": held_out}, reader(max_tokens=16, on_long="skip"), skip_bad=False)
