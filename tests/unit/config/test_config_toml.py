"""Writing TOML and finding its lines, over arbitrary keys and values."""

import tomllib

from hypothesis import given, settings
from hypothesis import strategies as st

from strop.config.toml_lines import key_lines
from strop.config.toml_text import write_key, write_value

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = texts | st.integers(-(2**60), 2**60) | st.booleans() | st.floats(allow_nan=False)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
tables = st.dictionaries(texts, values, max_size=5)


@settings(max_examples=20, deadline=None)
@given(tables)
def test_what_is_written_is_read_back(table: dict[str, object]) -> None:
    text = "".join(f"{write_key(key)} = {write_value(value)}\n" for key, value in table.items())
    assert tomllib.loads(text) == table


@settings(max_examples=20, deadline=None)
@given(tables, st.lists(values, max_size=3))
def test_every_key_is_found_on_its_line(table: dict[str, object], elements: list[object]) -> None:
    spread = "".join(f"  {write_value(element)}, # '\"[{{\n" for element in elements)
    lines = [f"{write_key(key)} = {write_value(value)} # ]" for key, value in table.items()]
    text = "\n".join(["# one", "[a.'b']", f"zero.list = [\n{spread}]", *lines])
    found = key_lines(text)
    first = 4 + len(elements)
    assert found["a", "b"] == 2
    assert found["a", "b", "zero", "list"] == 3
    assert {key: found["a", "b", key] for key in table if key != "zero"} == {
        key: first + number for number, key in enumerate(table, start=1) if key != "zero"
    }
