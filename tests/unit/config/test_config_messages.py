"""Every wrong input: the exact line that the user reads."""

# ruff: noqa: E501 (a message is one line, here as there)

from pathlib import Path

import pytest
from cases import case

from strop.config.load import load_config
from strop.config.rules import CACHE_STEP
from strop.engines.local.capacity import ROUNDING, longest_sequence
from strop.errors import ConfigError

BASE = 'model = "tiny"\n[loop]\nsteps = 5\n[prompts]\nfiles = ["/data/a.jsonl"]\n'

FILES = {
    "[rollout]\nbath_size = 3": "run.toml:7: rollout.bath_size is unknown; did you mean rollout.batch_size?",
    "[rolout]\nbatch_size = 3": "run.toml:6: rolout is unknown; did you mean rollout?",
    "[rollout]\nlr = 3": "run.toml:7: rollout.lr is unknown; did you mean train.optim.lr?",
    "[rollout]\nn_samples_per_promt = 3": (
        "run.toml:7: rollout.n_samples_per_promt is unknown; did you mean rollout.samples_per_prompt?"
    ),
    "[sync]\nxyzzy = 3": "run.toml:7: sync.xyzzy is unknown; the keys here are transport",
    "train.optim = 3\n": "run.toml:6: prompts.train is unknown; did you mean train?",
    '[train]\noptim = "adam"': (
        'run.toml:7: train.optim = "adam" must be a table; put its keys below it, or remove it'
    ),
    '[rollout]\nbatch_size = "3"': (
        'run.toml:7: rollout.batch_size = "3" must be a whole number; write it without quotes'
    ),
    "[rollout]\nbatch_size = 2.5": (
        "run.toml:7: rollout.batch_size = 2.5 must be a whole number; the default is 8"
    ),
    "[rollout]\nbatch_size = true": (
        "run.toml:7: rollout.batch_size = true must be a whole number; the default is 8"
    ),
    "[rollout]\ntemperature = true": (
        "run.toml:7: rollout.temperature = true must be a number; the default is 1.0"
    ),
    "[rollout]\ntemperature = 0": "run.toml:7: rollout.temperature = 0 must be more than 0; the default is 1.0",
    "[rollout]\nbatch_size = 2.5\ntemperature = 0": (
        "run.toml:7: rollout.batch_size = 2.5 must be a whole number; the default is 8 (and 1 more)"
    ),
    "[rollout]\nstop_token_ids = [1, 'a']": (
        'run.toml:7: rollout.stop_token_ids = [1, "a"] must be a list of whole numbers; the default is []'
    ),
    "[train.optim]\nlr = nan": (
        "run.toml:7: train.optim.lr = nan must be a finite number; the default is 1e-06"
    ),
    "[train.optim]\nbetas = [0.9]": (
        "run.toml:7: train.optim.betas = [0.9] must be a list of 2 numbers; the default is [0.9, 0.98]"
    ),
    "[train.optim]\nbetas = [0.9, 1.5]": (
        "run.toml:7: train.optim.betas = [0.9, 1.5] must be a list, each less than 1; the default is [0.9, 0.98]"
    ),
    '[train]\non_nan = "skipp"': (
        'run.toml:7: train.on_nan = "skipp" must be one of "stop", "skip"; did you mean "skip"?'
    ),
    '[algo]\ntype = "a2c"': 'run.toml:7: algo.type = "a2c" must be one of "grpo", "dr_grpo", "dapo", "gspo", "cispo", "rloo", "remax", "reinforce_pp", "reinforce_pp_baseline", "ppo", "sft", "dpo", "ipo", "kto", "orpo", "simpo", "cpo", "reward_model", "opd"; the default is "grpo"',
    "[algo]\nnormalize_std = 1": "run.toml:7: algo.normalize_std = 1 must be true or false; the default is true",
    '[reward]\nfn = ""': 'run.toml:7: reward.fn = "" must be text that is not empty; the default is "exact"',
    "[reward.options]\nday = 2024-01-01": (
        "run.toml:7: reward.options.day = 2024-01-01 must be text, a finite number, true or false, a list or a "
        "table; quote it to make it text"
    ),
    "[[eval.datasets]]\nn = 3": (
        "run.toml:7: eval.datasets.0.name is missing; add name under [[eval.datasets]]"
    ),
    "[eval]\ndatasets = [3]": "run.toml:7: eval.datasets.0 = 3 must be a table with a name",
    "[eval]\ndatasets = 3": "run.toml:7: eval.datasets = 3 must be a list of tables; the default is []",
    "[[eval.datasets]]\nname = 'a/b'\nfiles = ['x']": (
        "run.toml:7: eval.datasets.0.name = \"a/b\" must be letters, digits, '.', '_' and '-' only, the first a letter or digit"
    ),
    "[[eval.datasets]]\nname = '..'\nfiles = ['x']": (
        "run.toml:7: eval.datasets.0.name = \"..\" must be letters, digits, '.', '_' and '-' only, the first a letter or digit"
    ),
    "[[eval.datasets]]\nname = '--help'\nfiles = ['x']": (
        "run.toml:7: eval.datasets.0.name = \"--help\" must be letters, digits, '.', '_' and '-' only, the first a letter or digit"
    ),
    "[[eval.datasets]]\nname = 'results.jsonl'\nfiles = ['x']": (
        'run.toml:7: eval.datasets.0.name = "results.jsonl" is the log of all results; choose another'
    ),
    "[eval]\ndatasets = [{name = 'dev', files = ['a']}, {name = 'Dev', files = ['b']}]": (
        'run.toml:7: eval.datasets.1.name = "Dev" is taken: eval.datasets.0.name = "dev" (run.toml:7); '
        "names must differ"
    ),
    "[rollout]\nbatch_size = 3\nbatch_size = 4": (
        "run.toml:8: not valid TOML: Cannot overwrite a value (the text ends here)"
    ),
    "[rollout\n": "run.toml:6: not valid TOML: Expected ']' at the end of a table declaration (column 9)",
    # Rules between keys.
    "[train]\nbatch_size = 48": (
        "run.toml:7: rollout.batch_size = 8 (default) × rollout.samples_per_prompt = 8 (default) = 64 samples a step, "
        "but train.batch_size = 48 (run.toml:7) × train.updates_per_step = 1 (default) = 48; "
        "set train.batch_size = 64"
    ),
    "[train]\nupdates_per_step = 3": (
        "run.toml:7: rollout.batch_size = 8 (default) × rollout.samples_per_prompt = 8 (default) = 64 samples a step "
        "cannot be divided by train.updates_per_step = 3 (run.toml:7); make it a multiple"
    ),
    "[rollout]\nsamples_per_prompt = 1": (
        'run.toml:7: rollout.samples_per_prompt = 1 with algo.advantage = "group" (default) learns nothing: the '
        "advantage is relative to the group, so that of one sample is 0; give at least 2"
    ),
    '[algo]\ntype = "gspo"\naggregation = "token_mean"': (
        'run.toml:8: algo.aggregation = "token_mean" (run.toml:8) does not go with algo.policy_loss = "gspo" '
        '(algo.type = gspo), whose ratio is of a whole sample; set algo.aggregation = "seq_mean_token_mean"'
    ),
    '[algo]\npolicy_loss = "gspo"\naggregation = "seq_mean_token_mean"': (
        'run.toml:7: algo.policy_loss = "gspo" (run.toml:7) needs bounds of its own, far below those of single '
        'tokens; set algo.clip_low = 3e-4 and algo.clip_high = 4e-4, or algo.type = "gspo"'
    ),
    '[algo]\nold = "behavior"\ncorrection.type = "tis"': (
        'run.toml:8: algo.correction.type = "tis" (run.toml:8) with algo.old = "behavior" (run.toml:7) would correct '
        "twice: the ratio is to the sampler's log-probs already; remove one"
    ),
    "[algo]\nkl_coef = 0.1\nkl_loss_coef = 0.2": (
        "run.toml:7: algo.kl_coef = 0.1 (run.toml:7) puts KL into the reward and algo.kl_loss_coef = 0.2 (run.toml:8) "
        "into the loss; set one of them to 0"
    ),
    "[algo.correction]\ntype = 'mis'\nlow = 2.0\nhigh = 1.0": (
        "run.toml:8: algo.correction.low = 2.0 (run.toml:8) is not below algo.correction.high = 1.0 (run.toml:9)"
    ),
    "[algo.correction]\ntype = 'mis'\nhigh = 0.4": (
        'run.toml:8: algo.correction.low = 0.5 (algo.correction.type = "mis") is not below algo.correction.high = 0.4 '
        "(run.toml:8)"
    ),
    "[algo.correction]\ntype = 'tis'\nlow = 3.0": (
        "run.toml:8: algo.correction.low = 3.0 (run.toml:8) is not below algo.correction.high = 2 "
        '(algo.correction.type = "tis")'
    ),
    "[algo.correction]\nhigh = 2.0": (
        'run.toml:7: algo.correction.high = 2.0 (run.toml:7) has no effect with algo.correction.type = "none" '
        "(default); remove one"
    ),
    '[algo]\ntype = "rloo"\nnormalize_std = false': (
        'run.toml:8: algo.normalize_std = false (run.toml:8) has no effect with algo.advantage = "leave_one_out" '
        "(algo.type = rloo); remove one"
    ),
    '[algo]\ntype = "remax"\n[reward]\ngroup = true': (
        "run.toml:9: reward.group = true (run.toml:9) rewards the samples of a group together, and algo.advantage = "
        '"greedy" (algo.type = remax) compares each with a greedy reply outside of it; remove one'
    ),
    "[buffer]\nstaleness = 1": (
        "run.toml:7: buffer.staleness = 1 is not supported yet; remove it: 0 is synchronous"
    ),
    "source = '/t.py:f'": (
        'run.toml:5: prompts.files = ["/data/a.jsonl"] (run.toml:5) and prompts.source = "/t.py:f" (run.toml:6) '
        "exclude each other; remove one"
    ),
    "mixture = [{name = 'a', files = ['/data/b.jsonl']}]": (
        'run.toml:5: prompts.files = ["/data/a.jsonl"] (run.toml:5) and prompts.mixture (run.toml:6) exclude each '
        "other; remove one"
    ),
    "options = {a = 1}": (
        "run.toml:6: prompts.options = {a = 1} needs prompts.source; remove it, or name a source"
    ),
    "[[eval.datasets]]\nname = 'dev'": (
        "run.toml:7: eval.datasets.0 has no prompts: eval.datasets.0.files is empty and eval.datasets.0.source is "
        'unset; give eval.datasets.0.files = ["data.jsonl"] or eval.datasets.0.source = "file.py:name"'
    ),
    "[[eval.datasets]]\nname = 'dev'\nsource = 'm:f'": (
        'run.toml:8: eval.datasets.0.source = "m:f" (run.toml:8) has no end; '
        "say how many prompts: eval.datasets.0.n = 256"
    ),
    "[eval]\ndatasets = [{name = 'dev', files = ['a']}, {name = 'dev', files = ['b']}]": (
        'run.toml:7: eval.datasets.1.name = "dev" is taken: eval.datasets.0.name = "dev" (run.toml:7); '
        "names must differ"
    ),
    "[eval]\nevery = 2": (
        "run.toml:7: eval.every = 2 needs data sets; add an [[eval.datasets]] table or remove it"
    ),
    "[engine]\nmax_tokens = 256": (
        "run.toml:7: rollout.max_response_tokens = 256 (default) does not fit into engine.max_tokens = 256 "
        "(run.toml:7); raise engine.max_tokens to 272, more for prompts of more than 16 tokens, or lower "
        "rollout.max_response_tokens"
    ),
    "[train.optim]\nwarmup = 6": (
        "run.toml:7: train.optim.warmup = 6 (run.toml:7) is longer than the run: loop.steps = 5 (run.toml:3) × "
        "train.updates_per_step = 1 (default) = 5 updates; lower train.optim.warmup"
    ),
    "[rollout]\ngenerate = 'm:f'\n[env]\noptions = {role = 'user'}": (
        'run.toml:9: env.options = {role = "user"} (run.toml:9) has no effect with '
        'rollout.generate = "m:f" (run.toml:7); remove one'
    ),
    "[rollout]\ngenerate = 'm:f'\n[env]\nmax_turns = 3": (
        'run.toml:9: env.max_turns = 3 (run.toml:9) has no effect with rollout.generate = "m:f" (run.toml:7); '
        "remove one"
    ),
    "[telemetry]\nsinks = []\nshow_sample_every = 5": (
        "run.toml:8: telemetry.show_sample_every = 5 (run.toml:8) has no effect with telemetry.sinks = [] "
        "(run.toml:7); remove one"
    ),
    "[[eval.datasets]]\nname = 'dev'\nfiles = ['a']\nsamples_per_prompt = 4": (
        "run.toml:9: eval.datasets.0.samples_per_prompt = 4 (run.toml:9) would all be the same with "
        "eval.datasets.0.temperature = 0.0 (default); raise the temperature, or remove "
        "eval.datasets.0.samples_per_prompt"
    ),
    "[rollout]\ntop_k = 0": (
        "run.toml:7: rollout.top_k = 0 (run.toml:7) draws from no token; give at least 2, or -1 to draw from all"
    ),
    "[rollout]\ntop_k = 1": (
        "run.toml:7: rollout.top_k = 1 (run.toml:7) always draws the likeliest token; give at least 2, "
        "or -1 to draw from all"
    ),
    "[[eval.datasets]]\nname = 'dev'\nfiles = ['a']\ntop_p = 0.9": (
        "run.toml:9: eval.datasets.0.top_p = 0.9 (run.toml:9) has no effect with "
        "eval.datasets.0.temperature = 0.0 (default); raise the temperature"
    ),
    "[[eval.datasets]]\nname = 'dev'\nfiles = ['a']\ntop_k = 0\ntemperature = 1": (
        "run.toml:9: eval.datasets.0.top_k = 0 (run.toml:9) draws from no token; give -1 to draw from all"
    ),
    "[rollout]\nignore_eos = true\n[env]\ntype = 'calculator'": (
        "run.toml:7: rollout.ignore_eos = true (run.toml:7) leaves the first reply without an end, so that "
        'env.type = "calculator" (run.toml:9) would answer none; give rollout.stop, or remove rollout.ignore_eos'
    ),
    "[rollout]\ngenerate = 'm:f'\n[env]\ntype = 'calculator'": (
        'run.toml:7: rollout.generate = "m:f" (run.toml:7) replaces the whole episode, so '
        'env.type = "calculator" (run.toml:9) would never be asked; remove one'
    ),
}

SOURCE = "--prompts.files [] --prompts.source m:f"
FLAGS = {
    f"{SOURCE} --rollout-shuffle": (
        '--rollout-shuffle: prompts.shuffle = true (--rollout-shuffle) has no effect with prompts.source = "m:f" '
        "(--prompts.source); remove one"
    ),
    f"{SOURCE} --label-key answer": (
        '--label-key: prompts.label_key = "answer" (--label-key) has no effect with prompts.source = "m:f" '
        "(--prompts.source); remove one"
    ),
    "--loop.steps -3": "--loop.steps: loop.steps = -3 must be at least 0",
    "--loop.steps abc": '--loop.steps: loop.steps = "abc" must be a whole number',
    "--train.optim.lr nan": (
        "--train.optim.lr: train.optim.lr = nan must be a finite number; the default is 1e-06"
    ),
    "--rollout.bath_size 3": "--rollout.bath_size: unknown flag; did you mean --rollout.batch_size?",
    "--rollout.batch-size 3": "--rollout.batch-size: unknown flag; did you mean --rollout.batch_size?",
    "--rollout-bath-size 3": "--rollout-bath-size: unknown flag; did you mean --rollout-batch-size?",
    "--resum": "--resum: unknown flag; did you mean --resume?",
    "--zzz 3": "--zzz: unknown flag; `strop config --keys` lists all",
    "--sync 3": "--sync: unknown flag; it names a section, whose keys are transport",
    "--loop.steps": "--loop.steps: needs a value: a whole number",
    "--loop.steps 3 more.toml": (
        "--loop.steps: takes one value, but more.toml follows --loop.steps 3; run files go before the flags"
    ),
    "more.toml --loop.steps 3": (
        "command line: more.toml is not a flag; flags begin with --, run files go before them"
    ),
    "--prompts.files": "--prompts.files: needs values: a list of texts; --prompts.files [] is none",
    "--prompts.shuffle no": '--prompts.shuffle: prompts.shuffle = "no" must be true or false; the default is true',
    "--loop.steps 3 --loop.steps=4": (
        "--loop.steps: loop.steps is set twice, by `--loop.steps 3` and by `--loop.steps 4`; remove one"
    ),
    "--lr 1e-5 --train.optim.lr 2e-5": (
        "--train.optim.lr: train.optim.lr is set twice, by `--lr 1e-5` and by `--train.optim.lr 2e-5`; remove one"
    ),
    "--train.optim.betas 0.9 0.9 --adam-beta1 0.8": (
        "--adam-beta1: train.optim.betas.0 is set twice, by `--train.optim.betas 0.9 0.9` and by "
        "`--adam-beta1 0.8`; remove one"
    ),
    "--eval.datasets.0.n 3": "--eval.datasets.0.n: eval.datasets has no number 0: it has 0, counted from 0",
    "--rollout-shuffle true": "--rollout-shuffle: takes no value, but true follows; remove true",
    "--use-kl-loss": (
        "--use-kl-loss: algo.kl_loss_coef = 0 leaves nothing to use; give --kl-loss-coef 0.001, "
        "or remove --use-kl-loss"
    ),
    "--over-sampling-batch-size 4": (
        "--over-sampling-batch-size: 4 groups are fewer than rollout.batch_size = 8; give at least 8"
    ),
    "--eval-prompt-data dev": "--eval-prompt-data: takes pairs NAME PATH, but got dev",
    "--eval-temperature 1": (
        "--eval-temperature: there is no eval data set; add --eval-prompt-data NAME PATH or [[eval.datasets]]"
    ),
    "--group-rm yes": "--group-rm: takes no value, but yes follows; remove yes",
    "--custom-rm-path": "--custom-rm-path: takes one value, the path of a function, but got nothing",
    "--rm-type math --custom-rm-path my.f": (
        "--custom-rm-path: reward.fn is set twice, by `--rm-type math` and by `--custom-rm-path my.f`; "
        "remove one"
    ),
    "--save out": "--save: use --store.dir: checkpoints are in the run directory",
    "--tensor-model-parallel-size 2": (
        "--tensor-model-parallel-size: not supported yet: a run is one process on one device; remove the flag"
    ),
    "--num-layers 28": (
        "--num-layers: strop reads the architecture from the checkpoint's config.json; remove the flag"
    ),
    "--sglang-enable-metrics": (
        "--sglang-enable-metrics: not supported yet: SGLang; the engine is --engine.backend local"
    ),
}

YAML = {
    "lr: 1e-5": "run.yaml:4: lr is unknown; did you mean train.optim.lr?",
    "train: {optim: {lr: 1e-5, lr: 2}}": "run.yaml:4: lr was given before, in line 4; remove one",
    "train:\n  optim:\n    lt: 3": "run.yaml:6: train.optim.lt is unknown; did you mean train.optim.lr?",
    "train:\n": "run.yaml:4: train = null must be a table; put its keys below it, or remove it",
    "name: 2024-99-99": "run.yaml: not valid YAML: month must be in 1..12; quote the value to make it text",
    "name: [": "run.yaml:4: not valid YAML: expected the node content, but found '<stream end>'",
    "x: &a [*a]": "run.yaml:4: refers to itself; write it out",
    "reward: {options: {1: 2}}": "run.yaml:4: a key must be text; quote it",
}


def message(files: list[str], flags: str = "") -> str:
    with pytest.raises(ConfigError) as caught:
        load_config([Path(file) for file in files], flags.split(), also=["--resume"])
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_toml_that_is_wrong_is_refused_in_one_line() -> None:
    for text, line in FILES.items():
        with case(text):
            Path("run.toml").write_text(BASE + text)
            assert message(["run.toml"]) == line


def test_flags_that_are_wrong_are_refused_in_one_line() -> None:
    for flags, line in FLAGS.items():
        with case(flags):
            Path("run.toml").write_text(BASE)
            assert message(["run.toml"], flags) == line


def test_yaml_that_is_wrong_is_refused_in_one_line() -> None:
    for text, line in YAML.items():
        with case(text):
            Path("run.yaml").write_text(f"model: tiny\nloop: {{steps: 5}}\nprompts: {{files: [a]}}\n{text}")
            assert message(["run.yaml"]) == line


def test_a_missing_key_is_named_with_where_to_add_it() -> None:
    Path("run.toml").write_text('model = "tiny"\n')
    assert message(["run.toml"]) == (
        "run.toml: loop.steps is missing: a whole number; add steps under [loop], "
        "or give --loop.steps (--num-rollout)"
    )
    assert message([], "--loop.steps 3") == (
        "command line: model is missing: text; add model at the top of the run file, "
        "or give --model (--hf-checkpoint)"
    )


def test_a_misspelt_key_does_not_also_count_as_missing() -> None:
    Path("run.toml").write_text('model = "tiny"\n[loop]\nstep = 3')
    assert message(["run.toml"]) == "run.toml:3: loop.step is unknown; did you mean loop.steps?"


def test_a_file_that_cannot_be_read_is_named() -> None:
    Path("run.toml").write_bytes(b"name = '\xff'")
    Path("run.json").write_text("{}")
    assert message(["nope.toml"]) == "nope.toml: no such file; there is run.toml"
    assert message(["."]) == ".: is a directory; name a run file, such as ./run.toml"
    assert message(["run.toml"]) == "run.toml: not UTF-8 text (byte 8); save it as UTF-8"
    assert message(["run.json"]) == "run.json: not a run file: its name must end in .toml, .yaml or .yml"


def test_the_first_problem_in_the_order_of_files_is_named() -> None:
    Path("run.toml").write_text(BASE + "[algo]\nclip_low = 2\n[rollout]\nx = 1")
    assert message(["run.toml"], "--lr x") == (
        "run.toml:7: algo.clip_low = 2 must be at most 1; the default is 0.2 (and 2 more)"
    )


def test_the_advised_cache_is_enough() -> None:
    assert CACHE_STEP == ROUNDING
    Path("run.toml").write_text(BASE)
    assert load_config([Path("run.toml")], ["--engine.max_tokens", "272"]).config.engine.max_tokens == 272
    assert longest_sequence(272, 2048) >= 256 + 16


def test_field_names_have_an_effect_where_held_out_files_are_read_by_them() -> None:
    Path("run.toml").write_text(BASE)
    flags = f"{SOURCE} --label-key answer --eval-prompt-data dev dev.jsonl"
    assert load_config([Path("run.toml")], flags.split()).config.prompts.label_key == "answer"
