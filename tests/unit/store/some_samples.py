"""Hypothesis strategies for whole records."""

import numpy as np
from hypothesis import strategies as st

from strop.sample import Group, Prompt, Sample, Sampling, SpecInfo, Status, Tokens

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
tables = st.dictionaries(st.text(max_size=4), json_values, max_size=3)
finite = st.floats(allow_nan=False, allow_infinity=False)
samplings = st.none() | st.builds(
    Sampling,
    max_tokens=st.integers(1, 9),
    temperature=st.floats(0, 2),
    stop_token_ids=st.lists(st.integers(0, 9), max_size=2).map(tuple),
    top_p=st.floats(0.1, 1),
    stop=st.lists(st.text(min_size=1, max_size=3), max_size=2).map(tuple),
)
messages = st.lists(
    st.fixed_dictionaries({"role": st.just("user"), "content": st.text(max_size=5)}), max_size=2
)


@st.composite
def tokens(draw):
    rows = draw(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.booleans(), st.booleans()), max_size=6))
    sampled = np.array([row[1] for row in rows], bool)
    logp = draw(st.lists(st.floats(-50, 0, width=32), min_size=len(rows), max_size=len(rows)))
    return Tokens(
        np.array([row[0] for row in rows], np.int32),
        sampled,
        np.array([row[2] for row in rows], bool) & sampled,
        np.where(sampled, np.array(logp, np.float32), np.float32(np.nan)),
        np.where(sampled, 7, -1),
    )


@st.composite
def arrays(draw):
    dtype = draw(st.sampled_from(["<i4", "<f4", "|u1", "<i8", "|b1", "<f8"]))
    shape = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    return np.arange(int(np.prod(shape))).astype(dtype).reshape(shape)


@st.composite
def samples(draw):
    sequence = draw(tokens())
    return Sample(
        index=draw(st.integers(0, 2**40)),
        group_id=draw(st.integers(0, 2**40)),
        prompt_id=draw(st.text(max_size=5)),
        trajectory_id=draw(st.integers(-1, 9)),
        policy=draw(st.text(max_size=3)),
        prompt=draw(st.text(max_size=5) | messages),
        label=draw(json_values),
        sequence=sequence,
        prompt_length=draw(st.integers(0, len(sequence))),
        response=draw(st.text(max_size=8)),
        status=draw(st.sampled_from(Status)),
        error=draw(st.none() | st.text(max_size=5)),
        reward=draw(st.none() | finite),
        scores=draw(st.dictionaries(st.text(max_size=3), finite, max_size=2)),
        remove_sample=draw(st.booleans()),
        metadata=draw(tables),
        timing=draw(st.dictionaries(st.text(max_size=3), finite, max_size=2)),
        sampling=draw(samplings),
        extras=draw(st.dictionaries(st.text(min_size=1, max_size=3), arrays(), max_size=2)),
        media=draw(st.lists(st.text(max_size=3), max_size=2).map(tuple)),
        spec_info=draw(st.builds(SpecInfo, st.integers(0, 9), st.integers(0, 9))),
    )


prompts = st.builds(
    Prompt,
    id=st.text(max_size=4),
    messages=st.text(max_size=4) | messages.map(tuple),
    label=json_values,
    metadata=tables,
    tools=st.lists(tables, max_size=2).map(tuple),
    media=st.lists(st.text(max_size=3), max_size=2).map(tuple),
    environment=st.none() | st.text(max_size=3),
    reward=st.none() | st.text(max_size=3),
    sampling=samplings,
)
groups = st.builds(
    Group,
    id=st.integers(0, 2**40),
    prompt=prompts,
    samples=st.lists(samples(), max_size=2),
    tries=st.integers(0, 5),
)


def assert_same(a: Sample, b: Sample) -> None:
    """Equality of samples, which arrays in `extras` keep `==` from telling."""
    assert a.extras.keys() == b.extras.keys()
    for name, array in a.extras.items():
        assert array.dtype == b.extras[name].dtype
        np.testing.assert_array_equal(array, b.extras[name])
        assert array.shape == b.extras[name].shape
    extras, a.extras = a.extras, b.extras
    assert a == b
    a.extras = extras
