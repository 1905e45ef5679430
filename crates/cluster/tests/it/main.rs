//! Scenarios of one target cluster, written once and run on every kind of cluster there is.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs
)]

mod component;
mod connection;
mod documents;
mod env;
mod scenarios;

/// What the simulator cannot do yet; at most ten, and none of apply, conflicts, finalizers and watches.
const NOT_SIMULATED: [&str; 2] = [
    // It does not count resource quotas.
    "the_forbidden_is_named",
    // It does not look into the content of Secrets.
    "a_secret_of_a_wrong_type_is_not_quoted",
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
        a_terminating_namespace_is_waited_for,
    }
    drift {
        a_changed_field_is_healed, a_removed_label_is_healed, our_label_is_put_back, a_deleted_object_is_made_again,
        what_others_add_is_left_alone, a_hand_scaled_deployment_is_healed, a_finished_job_is_not_run_again,
        a_check_sees_all_of_it,
    }
    ownership {
        a_foreign_object_stops_the_component, adopting_takes_it_over, adopting_takes_over_from_other_tools, an_object_moves_between_components,
        another_fleets_parent_is_refused, a_higher_fence_is_refused, the_guard_stops_at_an_object_boundary,
        kubectl_understands_the_set,
    }
    prune {
        what_is_no_longer_rendered_goes, volumes_definitions_and_namespaces_stay, kept_objects_stay,
        copies_of_our_label_are_not_ours, a_kind_that_is_gone_is_no_error,
    }
    delete {
        everything_goes_in_reverse, a_finalizer_is_named, a_full_namespace_stays, an_older_namespace_stays,
        a_shared_namespace_outlives_one_component, orphans_stay, the_cluster_is_left_clean,
    }
    readiness {
        workloads_become_ready, a_failed_job_is_reported_at_once, time_out_gives_a_diagnosis,
        a_terminating_pod_is_not_ready, a_claim_and_a_service_are_waited_for, custom_resources_by_condition,
        a_check_sees_what_is_no_longer_ready,
    }
    renders { renders_are_kept, values_are_read }
    refusals { secrets_are_in_no_error, a_secret_of_a_wrong_type_is_not_quoted, the_forbidden_is_named, bad_manifests_name_their_source }
}
