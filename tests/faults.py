"""Known faults of other frameworks, and where strop is tested with the input that showed them.

A: aggregation and gradient scale. B: KL, ratio, entropy. C: advantages and groups. D: masks, ends, lengths. E: templates, turns, tools. G: evaluation and metrics.
H: rewards. J: data and small sizes. A text in the place of tests says why the fault cannot occur here.
"""

# ruff: noqa: E501 (the name of a test is one line)

Covered = tuple[str, ...] | str
"""Tests, or why there are none."""

FAULTS: dict[str, Covered] = {
    # verl #6957: a loss normalised per micro-batch grew with their number
    "A1": (
        "tests/unit/algo/test_policy.py::test_loss_and_gradient_do_not_depend_on_the_split_into_microbatches",
        "tests/unit/algo/test_correction.py::test_correction_does_not_depend_on_the_split_into_microbatches",
        "tests/contract/test_algorithms.py::test_no_split_changes_loss_parts_or_gradient",
        "tests/unit/train/test_local_trainer.py::test_micro_batches_do_not_change_the_update",
        "tests/unit/train/test_critic.py::test_the_critics_gradient_does_not_depend_on_micro_batches",
    ),
    # verl #5366, #5417: ranks averaged in silence where the global count was missing (no loss can be had without the weights of its whole update)
    "A2": (
        "tests/unit/algo/test_policy.py::test_loss_and_gradient_do_not_depend_on_the_split_into_microbatches",
        "tests/contract/test_algorithms.py::test_weights_of_every_update_sum_to_what_the_aggregation_says",
    ),
    # prime-rl #2562: each rank divided by its own tokens
    "A3": ("tests/unit/algo/test_aggregate.py::test_rank_with_few_tokens_is_not_overweighted",),
    # prime-rl #2034: custom losses divided by the number of sequences
    "A4": (
        "tests/unit/algo/test_aggregate.py::test_updates_have_denominators_of_their_own",
        "tests/contract/test_algorithms.py::test_no_split_changes_loss_parts_or_gradient",
    ),
    # slime #987, #990: a token mean scaled by micro-batches; a factor missing where a sequence lies on two ranks
    "A6": (
        "tests/unit/algo/test_aggregate.py::test_sequence_cut_in_two_sums_to_the_whole",
        "tests/unit/algo/test_policy_gradients.py::test_gspo_does_not_depend_on_how_a_sample_is_split_over_ranks",
        "tests/unit/algo/test_policy.py::test_gradient_of_a_one_weight_model_is_the_mean_of_its_inputs",
    ),
    # TRL #2615, #2638, #2645, #2647, #2648, #3716: not divided by the steps of accumulation
    "A8": (
        "tests/unit/train/test_local_trainer.py::test_micro_batches_do_not_change_the_update",
        "tests/golden/test_preference.py::test_a_pair_is_judged_by_itself_so_that_a_batch_may_be_split_anywhere",
    ),
    # verl #3994: a mean of the means of ranks
    "A10": (
        "tests/unit/algo/test_aggregate.py::test_rank_with_few_tokens_is_not_overweighted",
        "tests/unit/algo/test_aggregate.py::test_weights_of_the_two_means_sum_to_one",
    ),
    # verl #931: a mode that was another one
    "A12": ("tests/unit/algo/test_aggregate.py::test_four_modes_are_four_different_weightings",),
    # ROLL 3a7b01f9: a rank without trained tokens gave a zero without a graph, and the others hung
    "A14": (
        "tests/unit/algo/test_policy.py::test_loss_without_trained_tokens_is_a_zero_with_a_graph",
        "tests/contract/test_algorithms.py::test_loss_is_a_finite_scalar_in_the_graph_even_of_nothing",
    ),
    # SkyRL #2008: gradients of all micro-batches but the last were lost
    "A16": ("tests/unit/train/test_local_trainer.py::test_micro_batches_do_not_change_the_update",),
    # OpenRLHF 1b23ecf0: GSPO with the mean over all tokens
    "A18": (
        "tests/unit/config/test_config_messages.py::test_toml_that_is_wrong_is_refused_in_one_line",
        "tests/unit/algo/test_policy_gradients.py::test_gspo_has_the_value_and_gradient_of_its_equation",
    ),
    # SkyRL #1353: the KL of the loss was computed without gradient
    "B2": (
        "tests/unit/algo/test_losses.py::test_kl_has_a_gradient",
        "tests/unit/algo/test_policy_gradients.py::test_gradient_is_the_slope",
    ),
    # slime #2114: the logged KL was multiplied by its coefficient
    "B4": (
        "tests/unit/algo/test_policy.py::test_logged_kl_does_not_depend_on_its_coefficient",
        "tests/unit/algo/test_policy.py::test_inputs_are_left_as_they_were",
        "tests/unit/algo/test_token_rewards.py::test_the_kl_that_is_reported_does_not_depend_on_its_coefficient",
        "tests/golden/test_advantage_values.py::test_the_reported_kl_is_not_changed_by_the_reward",
    ),
    # SkyRL #1635, OpenRLHF #1240, verl #2377: 0 · NaN of a token that is not trained
    "B6": (
        "tests/unit/algo/test_policy.py::test_masked_nan_does_not_poison_the_loss",
        "tests/unit/algo/test_policy.py::test_unmasked_nan_surfaces",
        "tests/unit/algo/test_correction.py::test_what_is_not_trained_changes_no_correction",
        "tests/unit/algo/test_correction.py::test_a_trained_token_without_a_sampled_log_prob_is_named",
        "tests/unit/algo/test_policy_gradients.py::test_ratio_of_a_sample_counts_trained_tokens_of_all_turns_only",
    ),
    # OpenRLHF feeb0283: the reported KL was of the ratio, not of its logarithm
    "B8": ("tests/unit/algo/test_policy.py::test_ppo_kl_is_old_minus_new",),
    # slime #2247, miles #1729: the dual clip was parsed and never passed on
    "B10": (
        "tests/unit/algo/test_losses.py::test_dual_clip_changes_the_loss",
        "tests/unit/algo/test_policy.py::test_every_option_changes_the_loss",
    ),
    # TRL #3029, #4159, NeMo #316, #935, OpenRLHF #857, verl #3133, AReaL #581: the trainer ignored the temperature
    "B12": (
        "tests/unit/train/test_kept_sets.py::test_trainer_and_sampler_speak_of_one_distribution",
        "tests/unit/nn/test_logprobs.py::test_chunked_equals_plain",
    ),
    # TRL #6789, #6944, #6945: the sampler's log-probs were of what top-p left, the trainer's of the whole vocabulary
    "B13": (
        "tests/unit/train/test_kept_sets.py::test_trainer_and_sampler_speak_of_one_distribution",
        "tests/unit/train/test_kept_sets.py::test_on_policy_ratio_is_exactly_one",
    ),
    # TRL #4873, NeMo #3392, prime-rl #697: log-probs of the scores before temperature and cuts
    "B14": (
        "tests/unit/engines/test_local_engine.py::test_logprobs_equal_a_teacher_forced_forward",
        "tests/unit/engines/test_truncation.py::test_kept_set_and_logprob_equal_the_plain_reference",
    ),
    # TRL #4857: sequence masking compared with the trainer's own log-probs
    "B16": (
        "tests/unit/algo/test_correction.py::test_sequence_masking_is_of_what_was_sampled_and_of_trained_tokens",
    ),
    # slime #2085, verl #6867: the teacher was scored at temperature 0
    "B18": (
        "tests/unit/train/test_teachers.py::test_a_teacher_scores_at_the_temperature_and_within_the_sets_of_the_sampler",
        "tests/unit/train/test_teachers.py::test_a_policy_that_is_its_teacher_learns_nothing",
    ),
    # verl #3119: recomputed log-probs differed from those being trained
    "B20": (
        "tests/unit/algo/test_policy.py::test_ratio_is_exactly_one_when_old_is_the_training_forward_itself",
        "tests/unit/train/test_kept_sets.py::test_on_policy_ratio_is_exactly_one",
        "tests/unit/algo/test_correction.py::test_equal_policies_have_weights_of_exactly_one",
    ),
    # NeMo #2787: one advantage seen as that of many tokens, all of which a penalty in place hit
    "B22": (
        "tests/unit/algo/test_batch.py::test_tokens_of_a_sample_have_advantages_of_their_own",
        "tests/unit/algo/test_token_rewards.py::test_a_price_on_one_token_leaves_the_others",
        "tests/unit/algo/test_advantages.py::test_an_advantage_of_one_sample_is_changed_alone",
    ),
    # slime #2235: whitened over some of the ranks that hold a sequence; a rank without tokens waits for ever
    "C1": (
        "tests/unit/algo/test_whiten.py::test_whitening_does_not_depend_on_how_tokens_are_laid_out",
        "tests/golden/test_advantage_values.py::test_whitening_of_slimes_eight_responses",
    ),
    # OpenRLHF #1250: Dr. GRPO with one sample a prompt trains on zeros; a mean over the wrong axis
    "C2": (
        "tests/unit/algo/test_advantages.py::test_group_of_one_trajectory_is_refused",
        "tests/unit/algo/test_advantages.py::test_two_samples_of_one_trajectory_are_still_one",
        "tests/unit/algo/test_advantages.py::test_interleaved_groups_do_not_mix",
        "tests/unit/algo/test_advantages.py::test_leave_one_out_of_one_is_refused",
        "tests/unit/algo/test_rank_advantages.py::test_one_alone_cannot_be_ranked",
        "tests/unit/algo/test_step_advantages.py::test_one_trajectory_alone_is_refused",
        "tests/unit/algo/test_global_advantages.py::test_a_group_of_one_is_refused_by_the_algorithms_name",
        "tests/unit/config/test_config_messages.py::test_toml_that_is_wrong_is_refused_in_one_line",
    ),
    # ROLL 370cb24c, c93093e8, 620cc0c9: whitening of no token or one gives NaN
    "C4": ("tests/unit/algo/test_whiten.py::test_no_trained_token_or_one_is_no_nan_and_is_told",),
    # RLinf #335: groups mixed by a reshape
    "C6": (
        "tests/unit/algo/test_advantages.py::test_interleaved_groups_do_not_mix",
        "tests/unit/algo/test_advantages.py::test_advantages_do_not_depend_on_the_order_of_samples",
        "tests/unit/algo/test_rank_advantages.py::test_groups_are_ranked_apart",
        "tests/unit/algo/test_step_advantages.py::test_groups_are_standardised_apart",
    ),
    # slime #1674: eight rewards of 0.1 differ by rounding
    "C8": (
        "tests/unit/algo/test_advantages.py::test_eight_rewards_of_a_tenth_give_exactly_zero",
        "tests/unit/algo/test_advantages.py::test_equal_rewards_give_exactly_zero",
        "tests/unit/algo/test_advantages.py::test_rewards_that_differ_by_rounding_are_equal",
        "tests/unit/algo/test_advantages.py::test_leave_one_out_of_equal_rewards_gives_exactly_zero",
        "tests/unit/algo/test_rank_advantages.py::test_scores_that_differ_by_rounding_are_tied",
        "tests/unit/algo/test_step_advantages.py::test_equal_steps_give_exactly_zero",
        "tests/unit/algo/test_whiten.py::test_values_that_differ_by_rounding_are_constant",
        "tests/unit/algo/test_global_advantages.py::test_equal_rewards_give_exactly_zero_over_any_chunk",
        "tests/contract/test_keep.py::test_rewards_that_differ_are_worth_training_on",
        "tests/unit/telemetry/test_group_metrics.py::test_rewards_that_differ_by_rounding_are_equal_as_they_are_for_the_advantages",
        "tests/unit/compat/test_compat_functions.py::test_filters_say_keep_or_why_not",
    ),
    # NeMo #2478: a filter that sees the reward after it was shaped by length
    "C10": (
        "tests/contract/test_keep.py::test_the_filter_sees_the_reward_as_the_reward_function_gave_it",
        "tests/contract/test_keep.py::test_a_filter_may_compare_one_score_of_a_reward_that_is_shaped_by_length",
    ),
    # verl #3280: held-out prompts grouped by their text
    "C12": (
        "tests/unit/eval/test_evaluate.py::test_two_prompts_of_the_same_text_are_evaluated_as_two",
        "tests/unit/prompts/test_dataset_source.py::test_two_prompts_with_the_same_text_stay_two",
        "tests/unit/prompts/test_open_prompts.py::test_two_eval_rows_with_the_same_text_stay_two",
        "tests/unit/train/test_packed_gradients.py::test_groups_of_the_same_text_share_the_prompt_and_nothing_else",
    ),
    # AReaL #1346: the advantage of a sequence averaged over what is not trained
    "C14": (
        "tests/unit/algo/test_aggregate.py::test_mean_of_a_sequence_leaves_tokens_out_that_are_not_trained",
        "tests/unit/algo/test_whiten.py::test_statistics_leave_out_tokens_that_are_not_trained",
        "tests/unit/algo/test_policy.py::test_credit_puts_the_advantage_of_a_sample_on_each_of_its_tokens",
    ),
    # miles #1827, #1720: GAE through tool tokens, the reward on a token that is not trained
    "C16": (
        "tests/unit/algo/test_token_rewards.py::test_the_outcome_is_not_on_a_tool_token_that_comes_last",
        "tests/unit/algo/test_token_rewards.py::test_a_sample_that_is_not_trained_gets_no_outcome_and_is_no_obstacle",
        "tests/unit/algo/test_returns.py::test_an_observation_neither_earns_nor_cuts_credit_nor_is_discounted_for",
        "tests/unit/algo/test_returns.py::test_tokens_that_are_not_trained_might_as_well_not_be_there",
    ),
    # prime-rl #1188, PipelineRL f90d0ef: statistics over steps instead of rollouts
    "C18": (
        "tests/unit/algo/test_advantages.py::test_baseline_counts_trajectories_not_their_samples",
        "tests/unit/algo/test_advantages.py::test_leave_one_out_leaves_a_whole_trajectory_out",
        "tests/unit/algo/test_rank_advantages.py::test_a_trajectory_takes_one_place_however_many_samples_it_has",
        "tests/unit/algo/test_roles.py::test_samples_of_one_trajectory_and_role_move_the_baseline_once",
        "tests/unit/algo/test_global_advantages.py::test_the_group_baseline_counts_trajectories",
        "tests/unit/telemetry/test_group_metrics.py::test_samples_of_one_trajectory_count_as_one",
        "tests/unit/telemetry/test_ranks.py::test_a_trajectory_on_two_ranks_counts_once",
        "tests/unit/rollout/test_fan_out.py::test_one_and_zero_fanned_to_four_samples_have_a_baseline_of_a_half",
    ),
    # TRL #6357, #3200, ROLL 1f9d2171: pad = eos, and the model never learns to stop
    "D1": (
        "tests/unit/train/test_kept_sets.py::test_end_of_turn_is_trained_even_when_it_is_the_padding_id_too",
        "tests/unit/rollout/test_token_budgets.py::test_end_of_turn_of_a_finished_reply_is_trained_in_every_turn",
        "tests/unit/nn/test_loading.py::test_the_padding_token_learns_where_it_is_a_token_like_any_other",
        "tests/unit/doctor/test_template_probe.py::test_a_pad_token_that_ends_a_text_or_is_missing_does_no_harm",
    ),
    # verl #3287: the first response token was never trained
    "D2": (
        "tests/unit/train/test_kept_sets.py::test_first_response_token_is_trained",
        "tests/unit/rollout/test_token_budgets.py::test_first_response_token_is_trained",
    ),
    # verl #50, #1440, #1850: the mask of values shifted by one
    "D4": ("tests/unit/train/test_critic.py::test_a_value_is_of_the_state_before_its_token",),
    # verl #7207, slime #2261: a rollout that goes on gets a fresh budget
    "D6": (
        "tests/unit/rollout/test_episode.py::test_a_later_turn_gets_what_is_left_of_the_budget",
        "tests/unit/rollout/test_episode.py::test_response_with_tool_tokens_never_exceeds_the_budget",
        "tests/unit/compat/test_compat_budgets.py::test_a_second_reply_has_what_the_first_left_of_the_budget",
    ),
    # slime #1861: what was tried again keeps its old tokens; a budget for each turn exceeds the context
    "D8": (
        "tests/unit/compat/test_compat_source.py::test_groups_that_were_added_come_first_and_are_played_anew",
        "tests/unit/rollout/test_rollouts.py::test_dropped_groups_are_replaced_and_named",
        "tests/unit/rollout/test_token_budgets.py::test_all_turns_together_stay_within_the_budget",
    ),
    # TRL #3601, #3698: the limit on prompts ignored, or the prompt cut
    "D10": (
        "tests/unit/prompts/test_open_prompts.py::test_a_long_prompt_is_left_out_and_never_cut",
        "tests/unit/prompts/test_open_prompts.py::test_long_prompts_are_left_out_in_order_and_counted",
        "tests/unit/engines/test_local_engine.py::test_request_that_never_fits_is_refused_with_the_way_out",
    ),
    # verifiers #1625, #1365: an overlong prompt crashed the rollout
    "D12": (
        "tests/unit/rollout/test_token_budgets.py::test_prompt_that_leaves_no_token_ends_truncated_and_spares_the_run",
        "tests/contract/test_engines.py::test_request_that_never_fits_is_refused_and_the_others_are_served",
    ),
    # SkyRL #755: overlong measured from the context
    "D14": (
        "tests/unit/rollout/test_token_budgets.py::test_a_long_prompt_does_not_make_a_short_answer_overlong",
    ),
    # open-instruct #1601: tokens of the system message counted twice
    "D16": (
        "tests/unit/render/test_chat.py::test_tokens_of_a_system_message_are_there_once",
        "tests/unit/rollout/test_episode.py::test_opening_messages_follow_the_prompt_and_are_not_trained",
    ),
    # NeMo #962, #747, #835: two beginnings of text
    "D18": (
        "tests/unit/render/test_chat.py::test_a_templates_beginning_of_text_is_not_doubled",
        "tests/unit/render/test_chat.py::test_plain_text_begins_with_one_beginning_of_text",
        "tests/unit/doctor/test_template_probe.py::test_the_beginning_of_a_text_stands_there_once",
    ),
    # prime-rl #1991, #2241, SkyRL #1232: pad_token_id is a list or null (as the tiny model's is)
    "D20": (
        "tests/unit/nn/test_loading.py::test_padding_ids_that_no_model_takes_are_refused_in_one_line",
        "tests/unit/nn/test_loading.py::test_several_end_of_text_ids_are_taken",
        "tests/unit/doctor/test_template_probe.py::test_a_pad_token_that_ends_a_text_or_is_missing_does_no_harm",
    ),
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
