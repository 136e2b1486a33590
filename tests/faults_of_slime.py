"""slime's own values, which strop gives to the digit, and the defects found in slime's code that strop must not have.

A text in the place of tests says why there are none yet, or why the defect cannot occur here.
"""

# ruff: noqa: E501 (the name of a test is one line)

from faults import Covered

VALUES: dict[str, Covered] = {
    # Sums of sample means: 15.0, 16.0 with siblings, a sequence on two ranks
    "4.2": (
        "tests/golden/test_aggregation.py::test_weighted_sum_however_it_is_split",
        "tests/unit/algo/test_aggregate.py::test_siblings_in_two_microbatches_share_their_trajectory_denominator",
        "tests/unit/algo/test_aggregate.py::test_sequence_cut_in_two_sums_to_the_whole",
    ),
    # Metrics: 8.0 and 6.5 for six layouts, 1249.875 for every split
    "4.3": (
        "tests/golden/test_aggregation.py::test_weighted_sum_however_it_is_split",
        "tests/unit/telemetry/test_reductions.py::test_a_mean_does_not_depend_on_how_its_tokens_are_spread_over_ranks",
        "tests/unit/telemetry/test_reductions.py::test_a_mean_per_response_is_the_same_for_every_data_and_context_parallel_split",
        "tests/unit/telemetry/test_ranks.py::test_a_trajectory_on_two_ranks_counts_once",
    ),
    # The gradient of a one-weight model: 1249.875
    "4.4": (
        "tests/golden/test_aggregation.py::test_gradient_of_one_weight_is_the_same_for_every_layout",
        "tests/unit/algo/test_policy.py::test_gradient_of_a_one_weight_model_is_the_mean_of_its_inputs",
    ),
    # Whitening of eight responses: the step is one column, so no layout over ranks exists
    "4.5": (
        "tests/golden/test_advantage_values.py::test_whitening_of_slimes_eight_responses",
        "tests/unit/algo/test_whiten.py::test_whitening_does_not_depend_on_how_tokens_are_laid_out",
    ),
    # Returns and GAE of the serial loop
    "4.6": (
        "tests/golden/test_advantage_values.py::test_returns_are_those_of_slimes_serial_loop",
        "tests/golden/test_advantage_values.py::test_returns_behind_the_right_padding_stay_zero",
        "tests/golden/test_advantage_values.py::test_returns",
        "tests/golden/test_advantage_values.py::test_advantages_are_those_of_slimes_serial_loop",
    ),
    # Dual clip of three ratios
    "4.7": ("tests/golden/test_policy_losses.py::test_dual_clip_of_three_ratios",),
    # CISPO: weights of four ratios, and their gradient
    "4.8": ("tests/golden/test_policy_losses.py::test_cispo_and_its_gradient",),
    # KL of three tokens, as it was
    "4.9": (
        "tests/golden/test_advantage_values.py::test_the_reported_kl_is_not_changed_by_the_reward",
        "tests/golden/test_policy_losses.py::test_k1_of_three_tokens",
    ),
    # Kept sets by row; no context parallelism exists yet
    "4.11": (
        "tests/unit/train/test_kept_sets.py::test_set_of_a_token_goes_to_the_row_that_predicts_it",
        "tests/unit/train/test_kept_sets.py::test_tool_tokens_have_empty_sets_and_are_not_scored",
    ),
    # Sample: round trip, growth, counters. Versions are whole numbers here, so ["1", "2"] for slime's ["v1", "v2"]
    "4.13": (
        "tests/unit/compat/test_compat_sample.py::test_every_field_survives_a_round_trip",
        "tests/unit/store/test_records.py::test_a_sample_survives_json",
        "tests/unit/store/test_records.py::test_every_field_is_in_the_record",
        "tests/unit/compat/test_compat_sample.py::test_an_unknown_key_stays_as_an_attribute",
        "tests/unit/compat/test_compat_sample.py::test_finish_reasons_are_statuses_and_unknown_ones_change_nothing",
        "tests/unit/compat/test_compat_sample.py::test_replies_are_counted_one_after_another",
        "tests/unit/compat/test_compat_sample.py::test_speculation_is_counted_only_when_it_took_place",
        "tests/unit/compat/test_compat_sample.py::test_tool_tokens_get_mask_zero_log_prob_zero_and_empty_spans",
        "tests/unit/compat/test_compat_sample.py::test_spans_are_merged",
        "tests/unit/compat/test_compat_sample.py::test_routed_experts_must_fit_the_tokens",
        "tests/unit/compat/test_compat_sample.py::test_log_probs_that_do_not_fit_change_nothing",
        "tests/unit/test_sample.py::test_finish_reason_sets_the_status_and_an_unknown_one_leaves_it",
        "tests/unit/test_sample.py::test_weight_versions_are_those_of_sampled_tokens_in_order",
        "tests/unit/test_sample.py::test_speculation_is_counted_only_when_the_engine_speculates",
        "tests/unit/test_sample.py::test_tool_tokens_are_masked_and_read_as_zero",
        "tests/unit/test_sample.py::test_tool_tokens_have_empty_top_p_sets",
        "tests/unit/test_sample.py::test_top_p_sets_of_two_replies_are_one_ragged_array",
        "tests/unit/test_sample.py::test_routed_experts_are_one_row_a_token_but_the_last",
        "tests/unit/test_sample.py::test_what_does_not_fit_is_refused_and_the_sample_is_unchanged",
        "tests/unit/rollout/test_samples_keep_sets.py::test_mean_size_of_the_sets_counts_trained_tokens_of_samples_that_are_not_removed",
    ),
    # Data: slices, long prompts; what follows a shard follows its samples here, as rewards are on them
    "4.14": (
        "tests/unit/prompts/test_slices.py::test_a_slice_takes_the_rows_that_slime_takes",
        "tests/unit/prompts/test_open_prompts.py::test_the_long_prompt_filter_keeps_the_order_of_messages_and_text",
        "tests/unit/telemetry/test_ranks.py::test_every_metric_of_two_ranks_is_that_of_one",
        "tests/contract/test_trainers.py::test_scores_are_in_the_order_of_the_batch_and_nan_where_nothing_was_sampled",
    ),
    # Held-out sets: a set before the defaults before the command line; "temperture" is named
    "4.15": (
        "tests/unit/config/test_config_slime_eval.py::test_a_set_says_more_than_the_defaults_and_these_more_than_flags",
        "tests/unit/config/test_config_slime_eval.py::test_what_is_wrong_in_the_file_is_one_line",
    ),
    # Queue of groups, as far as staleness 0 has one: its bound is that of the slots
    "4.16": (
        "tests/unit/buffer/test_buffer.py::test_of_ten_groups_four_are_taken_and_six_stay_in_their_order",
        "tests/unit/buffer/test_buffer.py::test_finished_groups_never_wait_to_be_put",
        "tests/unit/buffer/test_buffer.py::test_no_new_work_before_the_step_is_released",
    ),
    # Hooks, the numbers of a batch; placement on GPUs does not exist yet
    "4.17": (
        "tests/unit/rollout/test_hooks.py::test_a_fault_is_recorded_and_the_sample_is_not_rewarded",
        "tests/unit/compat/test_compat_functions.py::test_a_hook_that_returns_something_else_is_a_type_error",
        "tests/unit/rollout/test_fan_out.py::test_samples_are_flat_in_the_order_of_their_trajectories",
        "tests/unit/config/test_config_messages.py::test_toml_that_is_wrong_is_refused_in_one_line",
    ),
    # Rewards
    "4.18": (
        "tests/unit/rewards/test_word_overlap.py::test_case_punctuation_and_articles_do_not_count",
        "tests/unit/rewards/test_word_overlap.py::test_precision_recall_and_f1",
        "tests/unit/rewards/test_word_overlap.py::test_f1",
        "tests/unit/rewards/test_choices.py::test_the_letter_of_a_response",
        "tests/unit/rewards/test_choices.py::test_only_letters_of_a_choice_count",
        "tests/unit/rewards/test_choices.py::test_gpqa",
        "tests/unit/compat/test_compat_convert.py::test_a_response_that_a_function_left_without_text_is_empty_text_which_is_worth_0",
        "tests/unit/rewards/test_latex.py::test_the_last_box",
        "tests/unit/rewards/test_latex.py::test_one_spelling",
        "tests/unit/rewards/test_latex.py::test_what_the_spelling_tells",
        "tests/unit/rewards/test_math_reward.py::test_what_spelling_tells_needs_no_process",
        "tests/unit/rewards/test_math_reward.py::test_answers_outside_the_main_thread_are_not_all_scored_0",
        "tests/unit/rewards/test_math_reward.py::test_deepscaler_wants_an_answer_behind_the_thought",
        "tests/unit/rewards/test_dapo.py::test_normal_answers",
        "tests/unit/rewards/test_dapo.py::test_the_verdict_is_slimes_table",
    ),
    # Masks of turns, and of supervised training by the template's marks or by position
    "4.19": (
        "tests/unit/render/test_said.py::test_every_reply_is_trained_up_to_the_end_of_its_turn_and_nothing_between",
        "tests/unit/render/test_said.py::test_marks_of_the_template_say_what_is_trained",
        "tests/unit/render/test_said.py::test_the_last_reply_alone_can_be_trained",
        "tests/unit/render/test_said.py::test_a_template_that_hides_earlier_thoughts_is_named_and_the_last_reply_still_trained",
        "tests/unit/rollout/test_spans_of_turns.py::test_six_turns_of_the_user_keep_all_six_spans_of_the_assistant",
        "tests/unit/rollout/test_spans_of_turns.py::test_tool_messages_in_a_row_become_what_the_template_makes_of_them_together",
        "tests/unit/rollout/test_spans_of_turns.py::test_what_a_tokenizer_would_merge_with_a_reply_is_refused_in_words",
        "tests/unit/rollout/test_episode.py::test_tool_tokens_are_neither_sampled_nor_trained",
    ),
}

DEFECTS: dict[int, Covered] = {
    # Whitening of constant advantages is NaN
    1: ("tests/golden/test_advantage_values.py::test_whitened_constants_are_exactly_zero",),
    # Misspelt flags are ignored
    2: (
        "tests/unit/config/test_config_typos.py::test_a_misspelt_flag_is_refused",
        "tests/unit/config/test_config_slime.py::test_every_flag_of_slime_is_answered",
    ),
    # Groups of 4, 3 and 5 are reshaped as if they were of 4
    3: (
        "tests/unit/algo/test_advantages.py::test_uneven_groups_that_total_a_rectangle_do_not_mix",
        "tests/unit/rollout/test_fan_out.py::test_groups_of_four_three_and_four_equal_rewards_give_exactly_zero",
    ),
    # The outcome under context parallelism: placed before anything is split
    4: (
        "tests/unit/algo/test_token_rewards.py::test_the_outcome_is_not_on_a_tool_token_that_comes_last",
        "tests/unit/algo/test_returns.py::test_estimates_of_a_packed_step_are_those_of_its_samples",
        "tests/contract/test_layouts.py::test_processes_that_hold_parts_of_an_update_agree_with_one",
    ),
    # The outcome on a token that is not trained
    5: (
        "tests/unit/algo/test_token_rewards.py::test_the_outcome_is_not_on_a_tool_token_that_comes_last",
        "tests/unit/algo/test_gae.py::test_a_tools_answer_neither_earns_nor_cuts_credit",
    ),
    # A sample of which nothing is trained ends the run
    6: (
        "tests/contract/test_trainers.py::test_a_sample_of_nothing_but_tool_tokens_is_no_obstacle",
        "tests/unit/algo/test_reinforce_pp.py::test_a_removed_sample_does_not_end_the_run",
        "tests/contract/test_layouts.py::test_advantages_do_not_depend_on_the_order_of_trajectories",
        "tests/unit/algo/test_batch.py::test_removed_sample_has_no_mask_but_keeps_its_place",
        "tests/unit/algo/test_aggregate.py::test_fully_masked_trajectory_is_not_counted",
    ),
    # A resumed run skips a batch
    7: (
        "tests/e2e/test_resume.py::test_a_run_killed_in_rollout_ends_as_if_it_had_not_been",
        "tests/unit/rollout/test_rollouts.py::test_state_restores_prompts_and_counters",
    ),
    # A position that is missing is logged and data begin anew
    8: (
        "tests/unit/store/test_checkpoints.py::test_a_missing_file_is_named",
        "tests/unit/store/test_run_dir.py::test_a_changed_checkpoint_stops_the_resume_before_anything_is_deleted",
        "tests/unit/prompts/test_dataset_source.py::test_position_in_other_data_or_another_order_is_refused",
    ),
    # 5 rows, 3 taken, 12 asked: 7 came
    9: (
        "tests/unit/prompts/test_dataset_source.py::test_a_request_that_crosses_an_epoch_is_filled_and_the_offset_stays_in_range",
    ),
    # Surplus groups vanish
    10: (
        "tests/unit/rollout/test_rollouts.py::test_surplus_groups_are_dropped_by_name",
        "tests/contract/test_group_sources.py::test_every_group_that_was_begun_is_in_the_books",
    ),
    # One exception of the user's ends the run; nothing is timed
    11: (
        "tests/unit/rollout/test_generate.py::test_fault_of_generate_ends_on_its_sample",
        "tests/unit/compat/test_compat_generate.py::test_a_fault_is_recorded_on_its_sample",
        "tests/unit/rewards/test_scorer.py::test_a_slow_coroutine_is_stopped",
    ),
    # A filter that drops everything is asked for ever
    12: (
        "tests/unit/rollout/test_rollouts.py::test_all_groups_equal_for_ever_ends_with_a_clear_error",
        "tests/contract/test_group_sources.py::test_nothing_to_learn_from_ends_with_a_clear_error",
    ),
    # A refusal is asked again 60 times
    13: (
        "tests/unit/rewards/test_remote.py::test_a_server_that_refuses_is_not_asked_again",
        "tests/unit/rewards/test_scorer.py::test_a_refusal_is_not_retried",
    ),
    # Lists of samples where a sample is expected; a prompt's own reward ignored in batches
    14: (
        "tests/unit/rollout/test_fan_out.py::test_keep_and_rewards_get_samples_never_lists",
        "tests/unit/rollout/test_group_rewards.py::test_a_fanned_out_trajectory_is_scored_sample_by_sample_in_the_same_call",
        "tests/unit/compat/test_compat_functions.py::test_a_batched_reward_is_asked_once_with_flat_samples",
        "tests/unit/compat/test_compat_functions.py::test_a_filter_of_a_fanned_out_group_gets_samples_never_lists",
        "tests/unit/rewards/test_select.py::test_a_prompts_own_reward_scores_the_samples_of_a_group_one_by_one",
    ),
    # One table of sampling parameters for all, whose budget shrinks
    15: (
        "tests/unit/compat/test_compat_budgets.py::test_a_function_that_lowers_its_budget_shrinks_nobody_elses",
        "tests/unit/eval/test_evaluate.py::test_a_prompt_of_small_budget_leaves_the_others_theirs",
    ),
    # A shuffle seeds the global random numbers
    16: (
        "tests/contract/test_prompts.py::test_global_random_state_is_neither_read_nor_changed",
        "tests/unit/prompts/test_dataset_source.py::test_seed_decides_the_order_and_global_random_state_does_not",
        "tests/unit/rewards/test_select.py::test_chance_is_a_function_of_the_sample_alone",
        "tests/shape/test_budgets.py::test_global_random_state_is_never_touched",
    ),
    # Metadata lost on the way to the trainer: the batch is of the samples themselves here
    17: (
        "tests/unit/store/test_stored_samples.py::test_samples_survive_parquet",
        "tests/unit/algo/test_batch.py::test_samples_lie_by_group_then_index",
        "tests/unit/train/test_teachers.py::test_divergence_and_gradient_are_those_of_all_logits_however_an_update_is_split",
    ),
    # pass@k of rewards of exactly 1, and of even groups alone; a share of masked tokens above 1
    18: (
        "tests/unit/algo/test_correction.py::test_sequence_masking_is_of_what_was_sampled_and_of_trained_tokens",
        "tests/unit/telemetry/test_passes.py::test_a_reward_below_one_passes_when_the_threshold_says_so",
        "tests/unit/telemetry/test_passes.py::test_groups_of_uneven_size_are_no_error",
        "tests/unit/eval/test_evaluate.py::test_a_sample_passes_from_the_threshold_on",
    ),
    # Geometric weights that are normalised raised; rejected tokens left the denominator
    19: (
        "tests/golden/test_corrections.py::test_normalised_weights_are_divided_by_their_mean",
        "tests/unit/algo/test_correction.py::test_kept_tokens_do_not_weigh_more_when_others_are_rejected",
    ),
    # k1 as a loss has no expected gradient, and is the default
    20: ("tests/unit/algo/test_losses.py::test_the_default_kl_pulls_towards_the_reference",),
    21: "no routing is replayed yet, and no environment variable is written in a run",
    # A reward that clones and installs a program as it is imported
    22: ("tests/unit/rewards/test_select.py::test_a_section_that_cannot_work_is_one_line",),
    # Help that does not say what happens
    23: (
        "tests/docs/test_reference_pages.py::test_a_generated_page_is_current",
        "tests/e2e/test_run_records.py::test_a_run_writes_declared_numbers_only",
    ),
    # No evaluation at the end
    24: (
        "tests/unit/eval/test_due.py::test_the_last_step_is_always_evaluated",
        "tests/e2e/test_run_records.py::test_every_evaluation_that_is_due_is_there_once_the_last_step_included",
    ),
    # YAML put over what was validated
    25: ("tests/unit/config/test_yaml_overrides.py::test_what_yaml_overrides_is_validated_too",),
    # Staleness without bound
    26: (
        "tests/unit/buffer/test_buffer.py::test_no_new_work_before_the_step_is_released",
        "tests/e2e/test_determinism.py::test_every_token_of_a_step_is_drawn_by_the_weights_that_the_step_trains",
    ),
    # A rollout with images that goes on loses its tokens
    27: ("tests/unit/prompts/test_dataset_source.py::test_prompts_that_cannot_be_trained_on_are_refused",),
    # Flags that nobody reads
    28: ("tests/shape/test_options_are_read.py::test_every_key_is_read_where_it_acts",),
}
