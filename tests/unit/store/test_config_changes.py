from strop.store.config_changes import changed_keys, differing_keys, free_to_change

CONSTANT = {"train": {"optim": {"schedule": "constant"}}}


def test_changed_keys_are_dotted_and_sorted():
    optim = {"lr": 1e-6, "schedule": "constant"}
    old = {"model": "tiny", "train": {"optim": optim, "batch_size": 8}, "loop": {"seed": 0}}
    new = {"model": "tiny", "train": {"optim": {**optim, "lr": 1e-5}, "batch_size": 8}, "loop": {"seed": 1}}
    assert changed_keys(old, new) == ["loop.seed", "train.optim.lr"]


def test_a_resumed_run_may_set_steps_store_telemetry_and_threads_anew():
    old = {
        **CONSTANT,
        "loop": {"steps": 4},
        "store": {"keep": 1},
        "telemetry": {"sinks": []},
        "runtime": {"threads": 1},
    }
    new = {
        **CONSTANT,
        "loop": {"steps": 8},
        "store": {"keep": 2},
        "telemetry": {"sinks": ["console"]},
        "runtime": {},
    }
    assert changed_keys(old, new) == ["runtime"]
    assert changed_keys(old, {**new, "runtime": {"threads": 2}}) == []


def test_steps_are_fixed_where_the_learning_rate_ends_with_them():
    old = {"train": {"optim": {"schedule": "cosine"}}, "loop": {"steps": 4}}
    assert changed_keys(old, {**old, "loop": {"steps": 8}}) == ["loop.steps"]
    assert free_to_change(old) == ("store", "telemetry", "runtime.threads")
    assert free_to_change(CONSTANT) == ("loop.steps", "store", "telemetry", "runtime.threads")


def test_a_key_that_one_side_lacks_differs():
    assert differing_keys({"a": {"b": None}}, {"a": {"c": 1}}) == ["a.b", "a.c"]
