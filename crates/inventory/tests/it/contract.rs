//! What every store promises. Each test is a function over a [`Backend`]; a database joins with one line.

mod artifacts;
mod audit;
mod change_log;
mod clusters;
mod concurrent;
mod consents;
mod due;
mod given_up;
mod leases;
mod lists;
mod measures;
mod missing;
mod model;
mod processes;
mod queue;
mod requests;
mod retention;
mod rotation;
mod runs;
mod settings;
mod shares;
mod status;
mod supersede;

macro_rules! on {
    ($backend:ident: $($module:ident :: { $($test:ident),+ $(,)? }),+ $(,)?) => {
        $(mod $module {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $test() {
                super::super::$module::$test::<crate::fixture::$backend>().await;
            })+
        })+
    };
}

/// All tests of the contract, on one database.
macro_rules! contract {
    ($name:ident, $backend:ident) => {
        mod $name {
            on!($backend:
                clusters::{
                    an_equal_configuration_makes_no_version,
                    a_put_without_kubeconfig_keeps_it,
                    a_kubeconfig_may_be_kept_elsewhere,
                    a_name_is_free_again_after_deletion,
                    ids_of_brokers_are_checked,
                    a_precondition_is_compared_with_the_newest_version,
                    what_cannot_be_run_is_refused,
                    archives_are_kept_while_named,
                    identities_are_compared,
                    a_deletion_takes_no_changes,
                    forgetting_ends_a_life_at_once,
                    versions_are_listed_and_immutable,
                },
                lists::{
                    pages_hold_every_cluster_once,
                    filters_select,
                    filters_are_data,
                },
                leases::{
                    fences_grow,
                    a_paused_worker_cannot_overwrite,
                    an_expired_lease_returns_the_work,
                    heartbeats_keep_the_lease,
                    a_higher_fence_at_the_target_is_taken_over,
                    a_crash_loses_nothing,
                    leases_are_in_the_time_that_the_store_tells,
                },
                requests::{
                    a_call_is_known_to_what_it_sets_off,
                    what_comes_by_itself_was_asked_for_by_nobody,
                },
                status::{
                    only_changes_are_recorded,
                    the_table_of_states_holds,
                    ready_never_speaks_of_an_older_version,
                    one_that_is_refused_keeps_no_other_away,
                    failures_are_counted_per_version,
                    components_that_are_not_ready_are_named,
                    an_old_look_ends_no_life,
                    what_is_tried_again_leaves_the_cluster_degraded,
                    clusters_are_counted_by_state,
                },
                due::{
                    the_due_come_by_urgency,
                    the_long_overdue_come_before_the_more_urgent,
                    a_check_does_not_wipe_out_a_change,
                    many_checks_are_noted_at_once,
                    a_suspended_cluster_is_not_due,
                },
                runs::{
                    one_run_per_cluster_whoever_tries,
                    four_schedulers_begin_fifty_runs,
                    a_newer_version_supersedes,
                    a_component_is_never_run_twice_at_once,
                    plans_are_checked,
                    a_run_ends_once,
                    a_deadline_ends_what_is_left,
                    a_run_is_about_the_newest_version,
                    settled_runs_are_found_again,
                    runs_are_listed_newest_first,
                    a_deleted_component_begins_anew,
                },
                shares::{
                    limits_hold_over_all_claims,
                    a_tenant_with_its_share_is_passed_over,
                    a_component_with_its_share_is_passed_over,
                    tenants_take_turns_in_the_queue,
                    what_was_asked_is_kept_until_it_is_acted_upon,
                },
                missing::{
                    what_is_missing_is_looked_for_when_another_succeeds,
                    a_failure_brings_nothing,
                    who_waits_for_an_answer_is_left_alone,
                    the_next_run_may_bring_it,
                },
                given_up::{
                    what_a_run_gives_up_no_check_takes_up,
                    what_was_asked_for_meanwhile_is_done,
                },
                supersede::{
                    who_waits_for_the_former_keeps_its_dependencies,
                    equal_operations_change_hands,
                    what_ended_meanwhile_is_made_anew,
                    a_carried_retry_is_tried_at_once,
                    a_new_operation_waits_for_the_former,
                    the_former_ends_with_its_lease,
                    what_ended_with_another_is_not_ended_again,
                    who_is_let_go_on_at_the_deadline_does,
                },
                queue::{
                    dependencies_give_the_order,
                    a_failure_skips_what_depends_on_it,
                    nothing_is_claimed_twice,
                    only_the_table_is_allowed,
                    a_retry_waits_for_its_time,
                    a_wait_ends_at_its_deadline,
                    a_wait_is_resumed,
                    giving_back_costs_no_attempt,
                    a_final_report_may_come_twice,
                    one_refused_report_does_not_touch_the_others,
                    what_was_done_and_said_is_kept,
                    a_timeline_is_bounded,
                    urgent_lanes_go_first_and_none_starves,
                    whoever_waits_is_woken,
                },
                consents::{
                    a_consent_lets_the_operation_go_on,
                    without_an_answer_the_wait_fails,
                    questions_that_nobody_needs_go,
                    a_consent_just_before_the_wait_counts,
                },
                artifacts::{
                    the_first_render_counts,
                    revisions_follow_the_inputs,
                },
                settings::{
                    settings_have_layers,
                    what_is_not_valid_is_refused,
                    whoever_uses_settings_is_told,
                },
                audit::{
                    whatever_a_call_changes_is_written_down,
                    a_change_and_its_entry_are_one,
                    the_chain_grows_under_everybody,
                    a_beginning_goes_and_the_rest_holds,
                },
                retention::{
                    runs_go_by_age_and_number,
                    what_is_spoken_of_stays,
                    a_deleted_cluster_goes_in_the_end,
                    cleaning_disturbs_nobody,
                },
                change_log::{
                    changes_are_found_by_object_and_time,
                    changes_come_in_pages,
                },
                concurrent::{
                    everybody_at_once,
                },
                processes::{
                    processes_are_seen_and_forgotten,
                    a_chore_is_done_by_one,
                },
                model::{
                    the_queue_keeps_its_promises,
                },
            );
        }
    };
}

/// What a real database promises besides.
macro_rules! database {
    ($name:ident, $backend:ident) => {
        mod $name {
            on!($backend:
                rotation::{
                    a_rotation_reaches_every_value,
                    a_rotation_goes_on_where_it_was_cut_off,
                    a_rotation_does_not_undo_what_others_write,
                    a_key_in_use_is_not_removed,
                    a_broken_ring_leaves_the_keys_in_use,
                },
                measures::{
                    rows_are_counted,
                },
            );
        }
    };
}

contract!(memory, Memory);
contract!(sqlite, Sqlite);
contract!(postgres, Pg);
database!(sqlite_database, Sqlite);
database!(postgres_database, Pg);
