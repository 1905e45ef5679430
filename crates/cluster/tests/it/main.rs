//! Scenarios of one target cluster, written once and run on every kind of cluster there is.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs
)]

mod cases;
mod component;
mod connection;
mod documents;
mod env;
mod every_call;
mod scenarios;
mod watched;
mod wire;

/// What the simulator cannot do yet; at most ten, and none of apply, conflicts, finalizers and watches.
const NOT_SIMULATED: [&str; 5] = [
    // It does not count resource quotas.
    "the_forbidden_is_named",
    // It does not look into the content of Secrets.
    "a_secret_of_a_wrong_type_is_not_quoted",
    // It calls no webhooks.
    "a_webhook_that_is_not_up_yet_is_waited_for",
    // It has no admission policies.
    "what_admission_changes_is_no_drift",
    // It does not read protobuf, in which Helm writes its releases.
    "a_release_of_the_real_helm_is_taken_over",
];

/// Makes of each scenario one test per kind of cluster: `real::<scenario>` and `simulated::<scenario>`.
macro_rules! scenarios {
    ($($room:ident { $($scenario:ident),* $(,)? })*) => {
        mod real {
            $($(
                #[tokio::test]
                async fn $scenario() {
                    crate::scenarios::$room::$scenario(&crate::env::Env::real(stringify!($scenario)).await).await;
                }
            )*)*
        }

        mod simulated {
            $($(
                #[tokio::test]
                async fn $scenario() {
                    if crate::NOT_SIMULATED.contains(&stringify!($scenario)) {
                        return;
                    }
                    crate::scenarios::$room::$scenario(&crate::env::Env::simulated(stringify!($scenario)).await).await;
                }
            )*)*
        }
    };
}

scenarios! {
    apply {
        installs_in_order, is_idle_when_nothing_changed, applies_only_what_changed, takes_a_crd_and_its_resource,
        places_objects, keeps_named_ports_apart, says_what_the_server_refuses, an_interrupted_pass_is_completed, progress_is_not_lost,
        replicas_belong_to_the_autoscaler, a_new_autoscaler_takes_over_without_a_dip,
        a_terminating_namespace_is_waited_for, a_definition_is_upgraded_with_its_stored_versions,
        a_webhook_that_is_not_up_yet_is_waited_for,
    }
    immutable {
        the_server_agrees_with_every_rule, a_stateful_set_is_made_again_around_its_pods, an_annotation_decides,
        an_interrupted_recreation_is_completed, only_what_was_looked_at_is_made_again, replicas_survive_being_made_again,
        a_grown_claim_is_kept,
    }
    drift {
        a_changed_field_is_healed, a_removed_label_is_healed, our_label_is_put_back, a_deleted_object_is_made_again,
        what_others_add_is_left_alone, a_hand_scaled_deployment_is_healed, a_finished_job_is_not_run_again,
        a_check_sees_all_of_it,
    }
    ownership {
        a_foreign_object_stops_the_component, adopting_takes_it_over, adopting_takes_over_from_other_tools,
        another_fleets_parent_is_refused, a_higher_fence_is_refused, the_guard_stops_at_an_object_boundary,
        kubectl_understands_the_set, fields_of_others_are_forced_left_or_refused,
        a_component_says_what_becomes_of_fields_of_others,
        a_helm_release_is_taken_over_without_a_restart, a_release_of_the_real_helm_is_taken_over,
    }
    prune {
        what_is_no_longer_rendered_goes, volumes_definitions_and_namespaces_stay, kept_objects_stay,
        copies_of_our_label_are_not_ours, a_kind_that_is_gone_is_no_error,
    }
    consent {
        an_empty_render_deletes_nothing, many_deletions_need_consent, an_agreed_plan_can_be_gone_on_with,
        protected_objects_stay,
    }
    moves {
        an_object_moves_between_components, the_losing_component_goes, what_two_components_render_is_refused,
        what_may_be_wanted_is_not_deleted,
    }
    delete {
        everything_goes_in_reverse, a_finalizer_is_named, a_deletion_need_not_wait, a_full_namespace_stays, an_older_namespace_stays,
        a_shared_namespace_outlives_one_component, orphans_stay, the_cluster_is_left_clean,
        a_component_without_its_parent_is_found, finalizers_of_own_kinds_go_by_policy,
    }
    readiness {
        workloads_become_ready, a_failed_job_is_reported_at_once, time_out_gives_a_diagnosis,
        a_terminating_pod_is_not_ready, a_claim_and_a_service_are_waited_for, custom_resources_by_condition,
        a_check_sees_what_is_no_longer_ready, a_rule_of_the_component_decides,
        a_webhook_waits_for_somebody_to_answer, what_its_controller_has_never_seen_is_not_ready, a_claim_may_wait_for_its_first_consumer,
        the_last_words_of_a_crashing_container_are_told,
    }
    faults {
        an_install_survives_a_fault_at_any_call, an_upgrade_survives_a_fault_at_any_call,
        a_prune_survives_a_fault_at_any_call, a_deletion_survives_a_fault_at_any_call,
        a_record_in_parts_survives_a_fault_at_any_call, a_move_survives_a_fault_at_any_call,
        a_component_without_its_parent_survives_a_fault_at_any_call,
        a_deletion_without_the_parent_survives_a_fault_at_any_call,
    }
    inventory { a_large_record_is_kept_in_parts, twenty_thousand_objects_are_remembered }
    contested {
        a_contested_field_is_not_fought_for, what_admission_changes_is_no_drift, what_controllers_fill_in_stays,
        who_writes_all_the_time_stops_nobody, who_never_lets_us_write_is_named,
    }
    reported {
        an_entry_of_somebody_else_is_named, repeated_entries_become_one, taking_over_touches_no_selector,
        replicas_stay_when_the_chart_names_none, an_empty_list_is_not_wiped_without_a_word, a_kind_may_be_served_late,
        scope_comes_from_the_kind, a_namespace_that_cannot_go_says_why, a_namespace_that_two_render_outlives_one,
        an_owner_that_somebody_added_protects_nothing, a_definition_that_two_render_is_shared,
        a_busy_disruption_budget_costs_no_look, a_plan_shows_fields_and_no_secrets,
    }
    hooks {
        hooks_run_by_weight_then_by_name, a_failing_hook_stops_the_component_and_says_why,
        a_failed_hook_does_not_keep_the_others_from_being_removed, upgrades_replace_what_an_earlier_run_left,
        a_hook_over_somebody_elses_object_is_refused, a_crash_between_making_and_recording_runs_nothing_twice,
        a_running_hook_is_gone_on_with, a_hook_that_vanished_fails_once_and_runs_again, a_job_that_removes_itself_is_done,
        definitions_may_be_hooks, a_deletion_has_hooks_and_takes_along_what_they_left,
        orphans_of_hooks_stay_without_our_label, an_install_with_hooks_survives_a_fault_at_any_call,
        a_deletion_with_hooks_survives_a_fault_at_any_call,
    }
    renders { renders_are_kept, values_are_read }
    refusals { secrets_are_in_no_error, a_secret_of_a_wrong_type_is_not_quoted, the_forbidden_is_named, bad_manifests_name_their_source }
}

/// As [`scenarios`], on a real cluster where one scenario runs at a time: watches see the records of all components.
macro_rules! watched_scenarios {
    ($($scenario:ident),* $(,)?) => {
        mod watched_real {
            $(
                #[tokio::test]
                async fn $scenario() {
                    let (env, _alone) = crate::env::Env::real_by_turns(stringify!($scenario)).await;
                    crate::scenarios::watches::$scenario(&env).await;
                }
            )*
        }

        mod watched_simulated {
            $(
                #[tokio::test]
                async fn $scenario() {
                    crate::scenarios::watches::$scenario(&crate::env::Env::simulated(stringify!($scenario)).await).await;
                }
            )*
        }
    };
}

watched_scenarios! {
    every_edit_is_seen, no_false_drift, nothing_is_asked, our_own_writes_are_no_drift,
    an_edit_while_the_wire_is_cut_is_seen, what_the_server_forgot_is_compared, one_connection_carries_it_all,
    readiness_is_judged_again,
}
