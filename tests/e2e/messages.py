"""What a user reads: wrong input → the one line on stderr, after `strop: `. HERE is the working directory."""

# ruff: noqa: E501 (a message is one line, here as there)

from strop.cli.main import COMMANDS as NAMES
from strop.rewards.open import BUILTIN as REWARDS

FLAGS = {
    "--rollout.bath_size 3": "--rollout.bath_size: unknown flag; did you mean --rollout.batch_size?",
    "--rollout-batch-sise 3": "--rollout-batch-sise: unknown flag; did you mean --rollout-batch-size?",
    "--loop.steps -3": "--loop.steps: loop.steps = -3 must be at least 0",
    "--loop.steps three": '--loop.steps: loop.steps = "three" must be a whole number',
    "--train.optim.lr nan": (
        "--train.optim.lr: train.optim.lr = nan must be a finite number; the default is 1e-06"
    ),
    "--train.optim.lr -1e-5": (
        "--train.optim.lr: train.optim.lr = -1e-05 must be at least 0; the default is 1e-06"
    ),
    "--rollout.batch_size 2.5": (
        '--rollout.batch_size: rollout.batch_size = "2.5" must be a whole number; the default is 8'
    ),
    "--rollout.temperature 0": (
        "--rollout.temperature: rollout.temperature = 0.0 must be more than 0; the default is 1.0"
    ),
    "--rollout.samples_per_prompt 1": (
        '--rollout.samples_per_prompt: rollout.samples_per_prompt = 1 with algo.advantage = "group" (default) learns nothing: the advantage is relative to the group, so that of one sample is 0; give at least 2'
    ),
    "--train.batch_size 3": (
        "--train.batch_size: rollout.batch_size = 2 (run.toml:5) × rollout.samples_per_prompt = 2 (run.toml:6) = 4 samples a step, but train.batch_size = 3 (--train.batch_size) × train.updates_per_step = 1 (default) = 3; set train.batch_size = 4"
    ),
    "--train.updates_per_step 3": (
        "--train.updates_per_step: rollout.batch_size = 2 (run.toml:5) × rollout.samples_per_prompt = 2 (run.toml:6) = 4 samples a step cannot be divided by train.updates_per_step = 3 (--train.updates_per_step); make it a multiple"
    ),
    "--algo.old trainr": '--algo.old: algo.old = "trainr" must be one of "trainer", "behavior"; did you mean "trainer"?',
    "--algo.policy_loss gpso": (
        "algo.policy_loss = 'gpso': no such name; did you mean 'gspo'? (cispo, clip, gspo, gspo_token, file.py:name, package.module:name)"
    ),
    "--algo.policy_loss mine.py:nothing": (
        "algo.policy_loss = 'HERE/mine.py:nothing': HERE/mine.py has no 'nothing'"
    ),
    "--train.dtype float16": (
        '--train.dtype: train.dtype = "float16" must be one of "float32", "bfloat16"; did you mean "bfloat16"?'
    ),
    "--engine.backend sglang": (
        '--engine.backend: engine.backend = "sglang" must be "local"; nothing else is supported yet'
    ),
    "--tensor-model-parallel-size 2": (
        "--tensor-model-parallel-size: not supported yet: a run is one process on one device; remove the flag"
    ),
    "--save out": "--save: use --store.dir: checkpoints are in the run directory",
    "--lr 1e-5 --train.optim.lr 1e-6": (
        "--train.optim.lr: train.optim.lr is set twice, by `--lr 1e-5` and by `--train.optim.lr 1e-6`; remove one"
    ),
    "more.toml --loop.steps 3": "more.toml: no such file; there is run.toml",
    "--store.dir models": (
        'store.dir = "models" already exists; choose another, or add --resume to continue it'
    ),
    "--store.dir data.jsonl/run": (
        'store.dir = "data.jsonl/run" cannot be made: Not a directory; choose another'
    ),
    "--resume": "--resume needs --store.dir, the directory of the run to continue",
    "--resume --store.dir nowhere": (
        'store.dir = "nowhere" does not exist; leave --resume out to begin a run, or name the directory of one'
    ),
    "--resume --store.dir models": (
        'store.dir = "models" is not a run directory: it has no run.json; leave --resume out to begin a run, or name the directory of one'
    ),
    "--prompts.files missing.txt": "prompts.files = 'HERE/missing.txt': no such file",
    "--prompts.files data.json": (
        "prompts.files = 'HERE/data.json': no such file; did you mean 'data.jsonl'?"
    ),
    "--prompts.files models": (
        "prompts.files = 'HERE/models': is a directory without Parquet files and without a data set that `datasets` saved"
    ),
    "--prompts.files data.parquet": (
        "HERE/data.parquet: cannot be read as Parquet: Parquet file size is 0 bytes"
    ),
    "--prompts.files data.csv": (
        "prompts.files = 'HERE/data.csv': .csv files are not read; write the rows as JSONL or Parquet; JSONL (also .gz) and Parquet files, and directories that `datasets` saved, are read"
    ),
    "--prompts.files data.jsonl@[0:2:1]": (
        "prompts.files = 'HERE/data.jsonl@[0:2:1]': a slice has no step; give @[a:b] with whole numbers, such as @[:1000] or @[-100:]"
    ),
    "--prompts.files data.jsonl@[9:]": (
        "prompts.files = 'HERE/data.jsonl@[9:]': the slice takes no row; there are 2"
    ),
    "--prompts.files ${STROP_NOWHERE}/data.jsonl": (
        '--prompts.files: prompts.files = ["${STROP_NOWHERE}/data.jsonl"]: the environment variable STROP_NOWHERE is not set; run `STROP_NOWHERE=/path strop …`, or give --prompts.files'
    ),
    "--prompts.on_bad_row skip --input-key promt": (
        "prompts.files = 'HERE/data.jsonl': every row is malformed; the first: HERE/data.jsonl:1: no field 'promt' (prompts.input_key); did you mean 'prompt'? (the row has 'prompt', 'label')"
    ),
    "--prompts.chat_template_kwargs.enable_thinking false": (
        "prompts.chat_template_kwargs.enable_thinking: the byte-level tokenizer has no chat template that could use it; remove it"
    ),
    "--prompts.files broken.jsonl": "HERE/broken.jsonl:3: not valid JSON: Input data was truncated",
    "--prompts.files latin1.jsonl": "HERE/latin1.jsonl:1: not valid JSON: Invalid UTF-8 encoded string",
    "--prompts.files list.jsonl": "HERE/list.jsonl:1: expected a JSON object, got list ['ab', 'b']",
    "--prompts.files number.jsonl": (
        "HERE/number.jsonl:1: 'prompt' must be text or a list of chat messages, got int 12"
    ),
    "--prompts.files empty.jsonl": "prompts.files = 'HERE/empty.jsonl': the file holds no rows",
    "--prompts.files roles.jsonl": (
        "roles.jsonl:1: the byte-level renderer knows the roles user, assistant, tool, system; got 'robot'"
    ),
    "--prompts.files long.jsonl": (
        "prompts: long.jsonl:3 has 3003 tokens, and with rollout.max_response_tokens = 8 more than the 2048 that fit (engine.max_tokens = 16384, the model takes 2048); set prompts.max_tokens = 2040 to leave such rows out, or lower rollout.max_response_tokens"
    ),
    "--prompts.files []": (
        '--prompts.files: prompts has no prompts: prompts.files is empty and prompts.source is unset; give prompts.files = ["data.jsonl"] or prompts.source = "file.py:name"'
    ),
    "--input-key promt": (
        "HERE/data.jsonl:1: no field 'promt' (prompts.input_key); did you mean 'prompt'? (the row has 'prompt', 'label')"
    ),
    "--label-key lable": (
        "prompts.label_key = 'lable': no row of HERE/data.jsonl has it; did you mean 'label'? (they have 'prompt', 'label')"
    ),
    "--prompts.max_tokens 1": ("prompts.max_tokens = 1: all 2 prompts are longer; the shortest has 5 tokens"),
    "--prompts.files [] --prompts.source mine.py:misspelt_task": (
        "prompts.source = 'HERE/mine.py:misspelt_task': misspelt_task, task 0: unknown key 'lable'; did you mean 'label'?; expected prompt, label, metadata, tools"
    ),
    "--prompts.files [] --prompts.source mine.py:broken_task": (
        "prompts.source = 'HERE/mine.py:broken_task': broken_task, task 0: HERE/mine.py:19: KeyError: 'no'"
    ),
    "--prompts.files [] --prompts.source mine.py:random_task": (
        "prompts.source = 'HERE/mine.py:random_task': random_task: two calls with equal generators made different tasks (str '0' and str '1'); draw from `rng` only"
    ),
    "--prompts.files [] --prompts.source mine.py:long_task": (
        "prompts: long_task-0f6a732f-0 has 3003 tokens, and with rollout.max_response_tokens = 8 more than the 2048 that fit (engine.max_tokens = 16384, the model takes 2048); shorten it, or lower rollout.max_response_tokens"
    ),
    "--prompts.files [] --prompts.source mine.py:long_tsk": (
        "prompts.source = 'HERE/mine.py:long_tsk': HERE/mine.py has no 'long_tsk'; did you mean 'long_task'?"
    ),
    "--eval-prompt-data dev data.json": (
        "eval.datasets.dev.files = 'HERE/data.json': no such file; did you mean 'data.jsonl'?"
    ),
    "--eval-prompt-data dev long.jsonl": (
        "eval.datasets.dev: long.jsonl:3 has 3003 tokens, and with rollout.max_response_tokens = 8 more than the 2048 that fit (engine.max_tokens = 16384, the model takes 2048); shorten it, or lower rollout.max_response_tokens"
    ),
    "--engine.max_tokens 64 --rollout.max_response_tokens 60": (
        "prompts: data.jsonl:2 has 5 tokens, and with rollout.max_response_tokens = 60 more than the 64 that fit (engine.max_tokens = 64, the model takes 2048); shorten it, or lower rollout.max_response_tokens, or raise engine.max_tokens to 80"
    ),
    "--engine.max_tokens 64 --rollout.max_response_tokens 50 --prompts.files long.jsonl": (
        "prompts: long.jsonl:3 has 3003 tokens, and with rollout.max_response_tokens = 50 more than the 64 that fit (engine.max_tokens = 64, the model takes 2048); set prompts.max_tokens = 14 to leave such rows out, or lower rollout.max_response_tokens"
    ),
    "--reward.fn nowhere.py:reward": "reward.fn = 'HERE/nowhere.py:reward': no file 'HERE/nowhere.py'",
    "--reward.fn mine.py:rewrad": (
        "reward.fn = 'HERE/mine.py:rewrad': HERE/mine.py has no 'rewrad'; did you mean 'reward'?"
    ),
    "--reward.fn mine.py:NUMBER": (
        "reward.fn = 'HERE/mine.py:NUMBER': expected a function or a class, got int 3"
    ),
    "--reward.fn mine.py:two_samples": "reward.options: two_samples needs 'b'; add reward.options.b = …",
    "--reward.fn mine.py": ("reward.fn = 'mine.py': a file needs the name of a function in it: mine.py:name"),
    "--reward.fn exakt": (
        f"reward.fn = 'exakt': no such name; did you mean 'exact'? ({', '.join(sorted(REWARDS))}, file.py:name, package.module:name)"
    ),
    "--reward.fn no_such_module:reward": (
        "reward.fn = 'no_such_module:reward': no module 'no_such_module' here or installed"
    ),
    "--reward.fn syntax.py:reward": (
        "reward.fn = 'HERE/syntax.py:reward': HERE/syntax.py:1: SyntaxError: '(' was never closed (syntax.py, line 1)"
    ),
    "--reward.fn regex": "reward.options: Regex needs 'pattern'; add reward.options.pattern = …",
    "--reward.fn first_number --reward.options.first 1": (
        "reward.options.first: first_number takes no such option; it takes none"
    ),
    "--env.type mine.py:HalfAnEnv": (
        "env.type = 'HERE/mine.py:HalfAnEnv': HalfAnEnv has no method 'step', which an Environment needs"
    ),
    "--env.type calculater": (
        "env.type = 'calculater': no such name; did you mean 'calculator'? (calculator, single_turn, file.py:name, package.module:name)"
    ),
    "--env.type calculator --env.options.role robot": (
        "env.type = 'calculator': ValueError: role must be 'tool' or 'user', got 'robot'"
    ),
    "--rollout.keep reward_sdt": (
        "rollout.keep = 'reward_sdt': no such name; did you mean 'reward_std'? (all, reward_std, reward_std_or_fill, file.py:name, package.module:name)"
    ),
    "--rollout.generate mine.py:nothing": (
        "rollout.generate = 'HERE/mine.py:nothing': HERE/mine.py has no 'nothing'"
    ),
    "--model nowhere": (
        'model = "nowhere" is not a directory, nor one of the known names: tiny, smollm2-135m'
    ),
    "--model smollm2-135": (
        'model = "smollm2-135" is not a directory, nor one of the known names: tiny, smollm2-135m'
    ),
    "--model smollm2-135m": (
        'model = "smollm2-135m" is not on this machine; get it with: strop model pull smollm2-135m'
    ),
    "--model ./models/no_tokenizer": (
        "model = 'HERE/models/no_tokenizer': the directory holds no tokenizer; expected one of tokenizer.json, tokenizer.model, vocab.json, vocab.txt beside the weights (copy it from the model that these were made from)"
    ),
    "--model ./models/no_weights": (
        'model = "HERE/models/no_weights" has no model.safetensors (nor model.safetensors.index.json); other weight files are not loaded (pickle)'
    ),
    "--model ./models/cut_short": (
        'model = "HERE/models/cut_short": model.safetensors holds 5000 bytes, its header says 531808: it was cut short or damaged; get it anew'
    ),
    "--model ./models/one_layer": (
        'model = "HERE/models/one_layer": weight model.layers.1.input_layernorm.weight is not one of this model\'s (and 8 more); config.json and weights must be of one model'
    ),
    "--model ./models/no_config": (
        'model = "HERE/models/no_config" has no config.json; expected a Hugging Face model directory'
    ),
    "--model ./models/broken_config": (
        "HERE/models/broken_config/config.json: is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    ),
    "--model ./models/gpt2": (
        'model = "HERE/models/gpt2" is of type "gpt2", which is not supported yet; supported: gemma, gemma2, '
        "gemma3_text, llama, mistral, mixtral, olmo2, olmo3, phi3, qwen2, qwen2_moe, qwen3, qwen3_moe, smollm3"
    ),
}

COMMANDS = {
    "trian run.toml": "trian is not a command; did you mean train?",
    "train nowhere.toml": "nowhere.toml: no such file; there is run.toml",
    "train models": "models: is a directory; name a run file, such as models/run.toml",
    "train run.json": "run.json: no such file; there is run.toml",
    "model pull smollm2": "strop model pull smollm2: unknown model; known: smollm2-135m",
    "model tiny --hepl": "--hepl: unknown flag of strop model; it has none",
    "model pull -x": "-x: unknown flag of strop model; it has none",
    "model tiny a b": "strop model tiny a b: expected pull NAME or tiny [DIR]",
    "model tiny models": "strop model tiny models: already exists; choose another directory",
    "eval models --eval-prompt-data dev data.jsonl": (
        'strop eval models: is not a run directory; as a model: model = "models" has no config.json; expected a Hugging Face model directory'
    ),
    "eval run.toml": (
        "eval.datasets is empty: there is nothing to evaluate; add an [[eval.datasets]] table, or --eval-prompt-data NAME PATH"
    ),
    "show models": (
        "models is not a run directory: it has no run.json; name the directory of a run, e.g. runs/latest"
    ),
    "show models --stpe 0": "--stpe: unknown flag of strop show; did you mean --step?",
    "compare models": "strop compare: expected two run directories or more, got 1",
    "compare models nowhere": (
        "models is not a run directory: it has no run.json; name the directory of a run, e.g. runs/latest"
    ),
    "config run.tml": "run.tml: no such file; there is run.toml",
    "--help-me": f"--help-me is not a command; expected one of: {', '.join(NAMES)}",
}

TOML = {
    ("[rollout]\n", "[rolout]\n"): "run.toml:4: rolout is unknown; did you mean rollout?",
    ("batch_size = 2", "bath_size = 2"): (
        "run.toml:5: rollout.bath_size is unknown; did you mean rollout.batch_size?"
    ),
    ("batch_size = 2", 'batch_size = "2"'): (
        'run.toml:5: rollout.batch_size = "2" must be a whole number; write it without quotes'
    ),
    ("samples_per_prompt = 2", "samples_per_prompt = 1"): (
        'run.toml:6: rollout.samples_per_prompt = 1 with algo.advantage = "group" (default) learns nothing: the advantage is relative to the group, so that of one sample is 0; give at least 2'
    ),
    ("steps = 1", ""): (
        "run.toml: loop.steps is missing: a whole number; add steps under [loop], or give --loop.steps (--num-rollout)"
    ),
    ("[loop]", "[loop"): (
        "run.toml:8: not valid TOML: Expected ']' at the end of a table declaration (column 6)"
    ),
    ('model = "tiny"', ""): (
        "run.toml: model is missing: text; add model at the top of the run file, or give --model (--hf-checkpoint)"
    ),
    ('files = ["data.jsonl"]', 'files = "data.jsonl"'): (
        'run.toml:3: prompts.files = "data.jsonl" must be a list of texts; the default is []'
    ),
    ("[prompts]", "[prompts]\nseed = true"): (
        "run.toml:3: prompts.seed = true must be a whole number; the default is 42"
    ),
}

RUN_FAILS = {
    "--rollout.keep reward_std --rollout.max_tries 2 --reward.fn mine.py:reward": (
        "step 0: after rollout.max_tries = 2 rounds (4 groups) only 0 of 2 groups can be trained; dropped: 4 × all rewards equal: 1; make the task easier or harder, raise rollout.samples_per_prompt, or change rollout.keep"
    ),
    "--rollout.max_tries 2 --reward.fn mine.py:broken_reward --reward.retries 0": (
        "step 0: after rollout.max_tries = 2 rounds (4 groups) only 0 of 2 groups can be trained; dropped: 4 × failed: reward HERE/mine.py:broken_reward: AttributeError: 'Sample' object has no attribute 'lable' (calls: 1); mend what failed"
    ),
    "--rollout.max_tries 2 --env.type mine.py:BrokenEnv": (
        "step 0: after rollout.max_tries = 2 rounds (4 groups) only 0 of 2 groups can be trained; dropped: 4 × failed: environment HERE/mine.py:BrokenEnv: KeyError: 'no'; mend what failed"
    ),
    "--lr 1e30 --loop.steps 3 --reward.fn mine.py:length": (
        "the model's logits are not finite: its weights are broken; lower train.optim.lr, or get the model anew"
    ),
}
