//! Operations of components, through the crate's public face, on the simulator and on a real API server alike.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bench;
mod everywhere;
mod helm;
mod keys;
mod kustomize;
mod scenarios;

/// Each scenario as two tests, one on each kind of cluster.
macro_rules! on_both {
    ($($scenario:ident),+ $(,)?) => {
        mod real {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $scenario() {
                crate::scenarios::$scenario(&crate::bench::Bench::real(stringify!($scenario)).await).await;
            })+
        }
        mod simulated {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $scenario() {
                crate::scenarios::$scenario(&crate::bench::Bench::simulated(stringify!($scenario)).await).await;
            })+
        }
    };
}

on_both!(
    an_install_becomes_ready_and_a_second_run_changes_nothing,
    a_dry_run_shows_the_plan_and_writes_nothing,
    changed_values_make_another_revision,
    what_is_no_longer_rendered_is_pruned,
    a_password_survives_retries_and_repairs,
    a_certificate_survives_retries_and_repairs,
    hooks_run_at_their_moment_and_never_else,
    a_plan_lists_the_hooks_that_would_run,
    ignored_hooks_are_listed_and_never_run,
    a_failing_hook_ends_the_operation,
    hooks_of_a_deletion_run_though_the_source_is_gone,
    hooks_of_a_deletion_can_be_left_out,
    a_takeover_runs_no_install_hooks,
    a_hook_is_waited_for_though_a_newer_version_comes,
    a_cancelled_operation_leaves_its_hook_to_the_next,
    hooks_keep_their_passwords,
    values_kept_at_the_target_are_used,
    a_broken_template_says_where_and_applies_nothing,
    one_broken_manifest_applies_nothing,
    an_object_of_somebody_else_stops_the_component,
    uninstalling_leaves_nothing_behind,
    orphaning_leaves_everything_running,
    plain_manifests_are_applied_kept_and_pruned,
    a_broken_manifest_says_where_and_applies_nothing,
    a_kustomization_is_built_kept_and_pruned,
    values_for_what_takes_none_are_refused,
    each_strategy_does_what_its_table_says,
    a_deletion_takes_definitions_only_when_all_is_asked,
    definitions_of_all_go_first_and_once,
    a_new_proxy_restarts_what_runs_the_old_one,
);
