"""Known faults of other frameworks around what is trained, and where strop is tested with the input that showed them.

E: templates, turns, tools. G: evaluation and metrics. H: rewards. J: data and small sizes. A text in the place of tests says why the fault cannot occur here.
"""

# ruff: noqa: E501 (the name of a test is one line)

from faults import Covered

FAULTS_OF_RUNS: dict[str, Covered] = {
    # verl #6921, #6501, #3720: the separator behind the stop token was lost at each turn
    "E1": (
        "tests/unit/rollout/test_spans_of_turns.py::test_six_turns_of_the_user_keep_all_six_spans_of_the_assistant",
        "tests/unit/render/test_chat.py::test_separator_after_the_stop_token_is_not_lost",
        "tests/contract/test_render.py::test_what_grows_turn_by_turn_is_the_full_render",
    ),
    # TRL #5242, #5330: the text of replies was tokenised anew
    "E2": (
        "tests/unit/rollout/test_spans_of_turns.py::test_ids_that_no_tokenizer_would_make_of_their_text_stay_as_drawn",
        "tests/unit/rollout/test_episode.py::test_two_turns_are_the_ids_of_the_rendered_conversation",
        "tests/e2e/test_determinism.py::test_the_environments_tokens_are_its_message_and_nothing_else",
    ),
    # verl #6854, #5576, prime-rl #1334, verifiers #37: the template drops earlier thoughts
    "E3": (
        "tests/unit/doctor/test_template_probe.py::test_dropped_thoughts_concern_runs_of_several_turns_alone",
        "tests/unit/rollout/test_spans_of_turns.py::test_thoughts_are_neither_dropped_nor_wrapped_when_the_conversation_goes_on",
        "tests/unit/render/test_chat.py::test_a_template_that_rewrites_earlier_turns_is_refused",
        "tests/unit/test_preflight.py::test_a_template_that_rewrites_earlier_turns_is_refused_where_turns_follow",
    ),
    # TRL #6363: a reply with `</think>` alone got an empty thought around it
    "E4": (
        "tests/unit/rollout/test_spans_of_turns.py::test_thoughts_are_neither_dropped_nor_wrapped_when_the_conversation_goes_on",
        "tests/unit/doctor/test_template_probe.py::test_an_empty_thought_around_a_last_reply_is_told",
    ),
    # verl #3960: calls of tools were cleared before rendering
    "E6": (
        "tests/unit/rollout/test_spans_of_turns.py::test_calls_of_tools_in_a_prompt_are_rendered_and_stay_when_it_goes_on",
    ),
    # open-instruct #1806, prime-rl #2261: one row that cannot be rendered ends the preparation of all
    "E8": (
        "tests/unit/test_preflight.py::test_a_row_that_the_template_refuses_does_not_end_a_run_that_leaves_bad_rows_out",
        "tests/unit/doctor/test_template_probe.py::test_appended_ids_are_those_of_the_whole_conversation",
    ),
    # TRL #4890, verifiers #1763: a malformed call of a tool crashed the rollout
    "E10": (
        "tests/unit/envs/test_calculator.py::test_a_call_is_answered_with_its_value_or_its_fault",
        "tests/contract/test_envs.py::test_an_episode_ends_whatever_the_model_says",
        "tests/unit/rollout/test_episode.py::test_fault_of_an_environment_ends_on_its_sample",
    ),
    # verifiers #1739: trying the whole program again left its branches twice
    "E12": (
        "tests/unit/rollout/test_group_rewards.py::test_a_reward_that_is_asked_again_does_not_play_the_sample_again",
        "tests/unit/rollout/test_rollouts.py::test_failed_reward_is_never_a_reward_of_zero",
    ),
    # verl #6046: routing of a resumed rollout overwritten by that of newer weights
    "E14": "at staleness 0 no rollout goes on under newer weights, and no engine reports routing or trainer reads it yet",
    # verl #423: held-out prompts were shuffled
    "G2": (
        "tests/unit/eval/test_evaluate.py::test_held_out_prompts_are_never_shuffled_and_each_is_asked_once",
    ),
    # AReaL #356: each rank submitted the whole held-out set
    "G4": (
        "tests/unit/eval/test_evaluate.py::test_held_out_prompts_are_never_shuffled_and_each_is_asked_once",
    ),
    # prime-rl #1903, #2913, #3123, open-instruct #1493: evaluations jumped, dropped at the end, never queued again
    "G6": (
        "tests/unit/eval/test_due.py::test_the_last_step_is_always_evaluated",
        "tests/unit/eval/test_due.py::test_a_resumed_run_jumps_over_none",
        "tests/e2e/test_run_records.py::test_every_evaluation_that_is_due_is_there_once_the_last_step_included",
    ),
    # miles #1706, prime-rl #3182: a reward of None crashed, or shrank the denominator
    "G8": (
        "tests/unit/eval/test_evaluate.py::test_none_among_rewards_neither_crashes_nor_shrinks_in_silence",
        "tests/unit/rewards/test_select.py::test_a_group_function_that_returns_something_else_fails_and_is_never_0",
        "tests/unit/telemetry/test_group_metrics.py::test_failed_samples_are_counted_and_have_no_reward",
    ),
    # TRL #5353: the logged reward ignored the weights
    "G10": (
        "tests/unit/rewards/test_select.py::test_the_logged_reward_includes_the_weights",
        "tests/unit/telemetry/test_group_metrics.py::test_a_logged_reward_is_the_weighted_one_that_is_trained_on",
    ),
    # slime #2242: keys of a data set ignored, unknown ones accepted
    "G12": (
        "tests/unit/eval/test_evaluate.py::test_each_data_set_has_its_own_stop_texts",
        "tests/unit/eval/test_evaluate.py::test_a_key_that_a_data_set_does_not_have_is_refused",
        "tests/unit/config/test_config_slime_eval.py::test_what_is_wrong_in_the_file_is_one_line",
    ),
    # verl #5635, #5839, TRL #5281: math-verify outside the main thread scores all 0, or hangs
    "H2": (
        "tests/unit/rewards/test_math_reward.py::test_answers_outside_the_main_thread_are_not_all_scored_0",
        "tests/unit/rewards/test_math_reward.py::test_no_answer_hangs_or_executes_and_the_next_is_scored",
        "tests/unit/rewards/test_workers.py::test_a_process_ended_from_outside_is_a_failure_and_not_the_questions_doing",
    ),
    # ROLL 9c6ce5c0: zeros in the place of what a worker could not say
    "H4": (
        "tests/unit/rewards/test_select.py::test_a_group_function_that_returns_something_else_fails_and_is_never_0",
        "tests/unit/rewards/test_scorer.py::test_what_is_no_number_fails_and_says_what_it_was",
        "tests/unit/rewards/test_remote.py::test_what_is_no_reward_is_a_failure_and_says_what_it_was",
        "tests/unit/rollout/test_rollouts.py::test_failed_reward_is_never_a_reward_of_zero",
    ),
    # verifiers #1480: the model wrote the marker by which its result was found (no reward runs a model's program yet)
    "H6": (
        "tests/unit/rewards/test_math_worker.py::test_what_a_comparison_prints_is_never_taken_for_its_reply",
        "tests/unit/rewards/test_math_worker.py::test_a_comparison_may_neither_write_nor_start_anything",
    ),
    # TRL #6313: a functools.partial has no __name__
    "H8": (
        "tests/unit/plugins/test_resolve.py::test_everything_callable_has_a_name",
        "tests/unit/rewards/test_scorer.py::test_numbers_of_every_kind_of_function_are_taken",
        "tests/unit/plugins/test_options.py::test_options_that_fit_pass",
    ),
    # verl #6673, AReaL #697: no time limit for a sample; the exit waits for a call that never ends
    "H10": (
        "tests/unit/rewards/test_scorer.py::test_a_slow_coroutine_is_stopped",
        "tests/unit/rewards/test_scorer.py::test_retries_of_calls_that_hang_never_add_threads",
        "tests/unit/rewards/test_scorer.py::test_a_reward_that_never_returns_does_not_hold_the_exit",
        "tests/unit/rewards/test_workers.py::test_no_process_outlives_a_parent_that_is_killed",
    ),
    # vime #414: of three rows eight prompts were asked and six came
    "J1": (
        "tests/unit/prompts/test_dataset_source.py::test_three_rows_give_eight_prompts",
        "tests/unit/prompts/test_dataset_source.py::test_prompts_that_cannot_be_trained_on_are_refused",
        "tests/unit/prompts/test_jsonl.py::test_a_file_without_rows_is_named",
    ),
    # labs-molt #85: 30 prompts in batches of 16 were the first 16 for ever
    "J2": (
        "tests/unit/prompts/test_dataset_source.py::test_thirty_prompts_in_batches_of_sixteen_are_not_the_first_sixteen_again_and_again",
        "tests/unit/prompts/test_dataset_source.py::test_batches_that_do_not_divide_the_data_visit_all_of_it",
    ),
    # AReaL #456, #665, NeMo #583: a data set split over ranks, its rest dropped (one source serves all of strop)
    "J4": (
        "tests/unit/prompts/test_dataset_source.py::test_nothing_is_dropped_at_the_end_of_an_epoch",
        "tests/contract/test_prompts.py::test_exactly_n_prompts_come",
    ),
    # verl #7051: a key that is there as null hid what stands in for it
    "J6": (
        "tests/unit/prompts/test_open_prompts.py::test_a_key_of_an_eval_set_wins_and_one_that_is_unset_does_not_hide_the_runs",
        "tests/unit/config/test_config_slime_eval.py::test_a_set_says_more_than_the_defaults_and_these_more_than_flags",
        "tests/unit/prompts/test_row_fields.py::test_an_empty_choice_is_no_choice",
    ),
    # slime #2256: a block of zeros in FP8 made NaN weights
    "J8": "weights are never written in FP8, and a model whose weights are quantized is refused by name",
}
