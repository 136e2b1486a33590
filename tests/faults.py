"""Known faults of other frameworks, and where strop is tested with the input that showed them.

A: aggregation and gradient scale. B: KL, ratio, entropy. C: advantages and groups. D: masks, ends, lengths. Those around a run are in `faults_of_runs.py`.
A text in the place of tests says why the fault cannot occur here.
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
        "tests/contract/test_layouts.py::test_no_layout_changes_loss_or_gradient",
    ),
    # verl #5366, #5417: ranks averaged in silence where the global count was missing (no loss can be had without the weights of its whole update)
    "A2": (
        "tests/unit/algo/test_policy.py::test_loss_and_gradient_do_not_depend_on_the_split_into_microbatches",
        "tests/contract/test_algorithms.py::test_weights_of_every_update_sum_to_what_the_aggregation_says",
        "tests/contract/test_layouts.py::test_processes_that_hold_parts_of_an_update_agree_with_one",
    ),
    # prime-rl #2562: each rank divided by its own tokens
    "A3": (
        "tests/unit/algo/test_aggregate.py::test_rank_with_few_tokens_is_not_overweighted",
        "tests/contract/test_layouts.py::test_processes_that_hold_parts_of_an_update_agree_with_one",
    ),
    # prime-rl #2034: custom losses divided by the number of sequences
    "A4": (
        "tests/unit/algo/test_aggregate.py::test_updates_have_denominators_of_their_own",
        "tests/contract/test_algorithms.py::test_no_split_changes_loss_parts_or_gradient",
        "tests/contract/test_layouts.py::test_every_function_that_is_a_loss_is_driven",
    ),
    # slime #987, #990: a token mean scaled by micro-batches; a factor missing where a sequence lies on two ranks
    "A6": (
        "tests/unit/algo/test_aggregate.py::test_sequence_cut_in_two_sums_to_the_whole",
        "tests/unit/algo/test_policy_gradients.py::test_gspo_does_not_depend_on_how_a_sample_is_split_over_ranks",
        "tests/unit/algo/test_policy.py::test_gradient_of_a_one_weight_model_is_the_mean_of_its_inputs",
        "tests/contract/test_layouts.py::test_no_layout_changes_loss_or_gradient",
        "tests/contract/test_layouts.py::test_a_rank_that_sums_its_own_tokens_only_is_found_out",
    ),
    # TRL #2615, #2638, #2645, #2647, #2648, #3716: not divided by the steps of accumulation
    "A8": (
        "tests/unit/train/test_local_trainer.py::test_micro_batches_do_not_change_the_update",
        "tests/golden/test_preference.py::test_a_pair_is_judged_by_itself_so_that_a_batch_may_be_split_anywhere",
        "tests/contract/test_layouts.py::test_no_layout_changes_loss_or_gradient_of_any_algorithm",
        "tests/contract/test_layouts.py::test_no_loss_of_rows_depends_on_the_rows_beside",
    ),
    # verl #3994: a mean of the means of ranks
    "A10": (
        "tests/unit/algo/test_aggregate.py::test_rank_with_few_tokens_is_not_overweighted",
        "tests/unit/algo/test_aggregate.py::test_weights_of_the_two_means_sum_to_one",
        "tests/contract/test_layouts.py::test_no_layout_changes_loss_or_gradient_of_any_algorithm",
    ),
    # verl #931: a mode that was another one
    "A12": ("tests/unit/algo/test_aggregate.py::test_four_modes_are_four_different_weightings",),
    # ROLL 3a7b01f9: a rank without trained tokens gave a zero without a graph, and the others hung
    "A14": (
        "tests/unit/algo/test_policy.py::test_loss_without_trained_tokens_is_a_zero_with_a_graph",
        "tests/contract/test_algorithms.py::test_loss_is_a_finite_scalar_in_the_graph_even_of_nothing",
        "tests/contract/test_layouts.py::test_processes_that_hold_parts_of_an_update_agree_with_one",
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
        "tests/golden/test_advantage_values.py::test_the_reported_kl_is_not_changed_by_the_reward",
    ),
    # SkyRL #1635, OpenRLHF #1240, verl #2377: 0 · NaN of a token that is not trained
    "B6": (
        "tests/unit/algo/test_policy.py::test_masked_nan_does_not_poison_the_loss",
        "tests/unit/algo/test_correction.py::test_what_is_not_trained_changes_no_correction",
        "tests/unit/algo/test_correction.py::test_a_trained_token_without_a_sampled_log_prob_is_named",
        "tests/unit/algo/test_policy_gradients.py::test_ratio_of_a_sample_counts_trained_tokens_of_all_turns_only",
        "tests/contract/test_layouts.py::test_no_layout_changes_loss_or_gradient",
        "tests/unit/algo/test_finite.py::test_a_column_of_the_policy_loss_is_named",
        "tests/unit/algo/test_finite.py::test_an_infinite_old_log_prob_is_not_a_large_loss",
        "tests/unit/algo/test_finite.py::test_a_log_prob_of_rows_is_named",
        "tests/unit/train/test_local_trainer.py::test_an_old_log_prob_that_is_not_finite_stops_the_run_by_its_name",
        "tests/unit/train/test_local_trainer.py::test_an_update_with_an_old_log_prob_that_is_not_finite_can_be_skipped",
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
        "tests/unit/algo/test_recipes.py::test_a_price_on_one_token_leaves_the_others",
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
        "tests/unit/algo/test_reinforce_pp.py::test_a_group_of_one_is_refused_by_the_algorithms_name",
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
        "tests/contract/test_layouts.py::test_advantages_do_not_depend_on_the_order_of_trajectories",
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
        "tests/unit/algo/test_reinforce_pp.py::test_equal_rewards_give_exactly_zero_over_any_chunk",
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
        "tests/unit/algo/test_gae.py::test_a_tools_answer_neither_earns_nor_cuts_credit",
    ),
    # prime-rl #1188, PipelineRL f90d0ef: statistics over steps instead of rollouts
    "C18": (
        "tests/unit/algo/test_advantages.py::test_baseline_counts_trajectories_not_their_samples",
        "tests/unit/algo/test_advantages.py::test_leave_one_out_leaves_a_whole_trajectory_out",
        "tests/unit/algo/test_rank_advantages.py::test_a_trajectory_takes_one_place_however_many_samples_it_has",
        "tests/unit/algo/test_roles.py::test_samples_of_one_trajectory_and_role_move_the_baseline_once",
        "tests/unit/algo/test_reinforce_pp.py::test_the_group_baseline_counts_trajectories",
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
        "tests/unit/test_given_tokens.py::test_an_end_of_turn_that_is_also_the_padding_id_is_trained",
        "tests/golden/test_reward_model.py::test_the_end_is_found_by_its_place_where_padding_is_the_end_of_a_turn",
    ),
    # verl #3287: the first response token was never trained
    "D2": (
        "tests/unit/train/test_kept_sets.py::test_first_response_token_is_trained",
        "tests/unit/rollout/test_token_budgets.py::test_first_response_token_is_trained",
        "tests/unit/render/test_said.py::test_every_reply_is_trained_up_to_the_end_of_its_turn_and_nothing_between",
    ),
    # verl #50, #1440, #1850: the mask of values shifted by one
    "D4": (
        "tests/unit/train/test_critic.py::test_a_value_is_of_the_state_before_its_token",
        "tests/unit/train/test_critic.py::test_a_next_value_is_of_the_state_after_the_last_token",
        "tests/unit/train/test_ppo_by_hand.py::test_ppo_takes_the_steps_of_an_independent_program",
    ),
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
        "tests/unit/rewards/test_overlong.py::test_it_grows_over_the_last_tokens_before_the_limit",
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
}
