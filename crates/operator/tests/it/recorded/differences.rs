//! Where ours is not as it was recorded, and why: a list that fails when something else differs, and when something no longer does.

use std::ops::RangeInclusive;

use super::comparison::Found;

/// A difference that is meant.
struct Difference {
    /// Number of the fault or the demand in the list of `docs/operator-faults.md`.
    number: &'static str,
    /// What is right, in our eyes.
    why: &'static str,
    /// Where it is seen.
    places: &'static [Place],
}

struct Place {
    /// The steps after which it is seen, all of them.
    steps: RangeInclusive<usize>,
    /// Of these; a `*` at the end stands for any names.
    subject: &'static str,
    /// The field, with all below it.
    at: &'static str,
    /// What we have there, as JSON: `null` for nothing. Empty for anything, where it is an object that stays as it was.
    ours: &'static str,
}

const fn place(
    steps: RangeInclusive<usize>,
    subject: &'static str,
    at: &'static str,
    ours: &'static str,
) -> Place {
    Place {
        steps,
        subject,
        at,
        ours,
    }
}

const DIFFERENCES: &[Difference] = &[
    Difference {
        number: "B2",
        why: "a tenant has a finalizer: it must not go before its clusters",
        places: &[place(
            1..=15,
            "Tenant t-*",
            "/metadata/finalizers",
            r#"["cluster.lieutenant.syn.tools"]"#,
        )],
    },
    Difference {
        number: "L25",
        why: "what its clusters bring is written to the GitRepo, and the specification stays the user's",
        places: &[
            place(
                2..=3,
                "Tenant t-one",
                "/spec/gitRepoTemplate/templateFiles",
                "null",
            ),
            place(
                4..=14,
                "Tenant t-one",
                "/spec/gitRepoTemplate/templateFiles/c-one.yml",
                "null",
            ),
            place(
                5..=14,
                "Tenant t-one",
                "/spec/gitRepoTemplate/templateFiles/.gitlab-ci.yml",
                "null",
            ),
            place(
                8..=14,
                "Tenant t-one",
                "/spec/gitRepoTemplate/templateFiles/c-unmanaged.yml",
                "null",
            ),
            place(
                11..=15,
                "Tenant t-two",
                "/spec/gitRepoTemplate/templateFiles/c-two.yml",
                "null",
            ),
            place(
                5..=14,
                "Tenant t-one",
                "/spec/gitRepoTemplate/ciVariables",
                r#"[{"name":"PLAIN","value":"v"},{"gitlabOptions":{"masked":true,"protected":true},"name":"SECRET","valueFrom":{"secretKeyRef":{"key":"token","name":"git"}}}]"#,
            ),
        ],
    },
    Difference {
        number: "B11",
        why: "a file that the user asks for is none to be deleted",
        places: &[
            place(
                4..=14,
                "Tenant t-one",
                "/spec/gitRepoTemplate/templateFiles/README.md",
                r#""hello""#,
            ),
            place(
                4..=15,
                "GitRepo t-one",
                "/spec/templateFiles/README.md",
                r#""hello""#,
            ),
            place(4..=15, "project tenants/t-one", "/files/README.md", r#""hello""#),
            place(
                10..=14,
                "Tenant t-one",
                "/spec/gitRepoTemplate/templateFiles/a.txt",
                r#""A""#,
            ),
            place(10..=15, "GitRepo t-one", "/spec/templateFiles/a.txt", r#""A""#),
            place(10..=15, "project tenants/t-one", "/files/a.txt", r#""A""#),
            place(
                10..=15,
                "Tenant t-two",
                "/spec/gitRepoTemplate/templateFiles/a.txt",
                r#""A""#,
            ),
            place(10..=15, "GitRepo t-two", "/spec/templateFiles/a.txt", r#""A""#),
            place(10..=15, "project fromtemplate/t-two", "/files/a.txt", r#""A""#),
        ],
    },
    Difference {
        number: "B11",
        why: "a tombstone that was carried out is taken away",
        places: &[
            place(14..=15, "GitRepo t-one", "/spec/templateFiles/c-one.yml", "null"),
            place(12..=15, "GitRepo t-two", "/spec/templateFiles/c-two.yml", "null"),
        ],
    },
    Difference {
        number: "B7",
        why: "an object is claimed and told what is wrong, whatever is wrong; the recorded one stays without a trace",
        places: &[
            place(
                9..=15,
                "Cluster c-bad",
                "/metadata/annotations",
                r#"{"syn.tools/protected-delete":"true"}"#,
            ),
            place(
                9..=15,
                "GitRepo g-nosecret",
                "/metadata/annotations",
                r#"{"syn.tools/protected-delete":"true"}"#,
            ),
            place(
                11..=15,
                "GitRepo g-conflict",
                "/metadata/annotations",
                r#"{"syn.tools/protected-delete":"true"}"#,
            ),
            place(
                9..=15,
                "GitRepo g-nosecret",
                "/metadata/labels",
                r#"{"syn.tools/tenant":"t-one"}"#,
            ),
            place(
                11..=15,
                "GitRepo g-conflict",
                "/metadata/labels",
                r#"{"syn.tools/tenant":"t-two"}"#,
            ),
        ],
    },
    Difference {
        number: "B36",
        why: "the finalizer comes before anything else",
        places: &[
            place(
                9..=15,
                "Cluster c-bad",
                "/metadata/finalizers",
                r#"["cluster.lieutenant.syn.tools","cluster.lieutenant.syn.tools/pipelines"]"#,
            ),
            place(
                9..=15,
                "GitRepo g-nosecret",
                "/metadata/finalizers",
                r#"["cluster.lieutenant.syn.tools"]"#,
            ),
            place(
                11..=15,
                "GitRepo g-conflict",
                "/metadata/finalizers",
                r#"["cluster.lieutenant.syn.tools"]"#,
            ),
        ],
    },
    Difference {
        number: "B34",
        why: "a Secret that is missing is told in the status",
        places: &[place(
            9..=15,
            "GitRepo g-nosecret",
            "/status",
            r#"{"phase":"failed"}"#,
        )],
    },
    Difference {
        number: "B34",
        why: "the kind of host is known although its repository is another's",
        places: &[place(
            11..=15,
            "GitRepo g-conflict",
            "/status/type",
            r#""gitlab""#,
        )],
    },
    Difference {
        number: "B17",
        why: "what an object does not speak of is not its to take away, of two that share a repository too",
        places: &[
            place(
                11..=13,
                "project tenants/t-one",
                "/keys",
                r#"{"generated-g1":{"can_push":true,"key":"<key>"},"k2":{"key":"<key>"}}"#,
            ),
            place(
                11..=13,
                "project tenants/t-one",
                "/description",
                r#""Tenant One""#,
            ),
        ],
    },
    Difference {
        number: "B1",
        why: "a protected cluster keeps everything",
        places: &[
            place(
                13..=13,
                "Cluster c-one",
                "/metadata/finalizers",
                r#"["cluster.lieutenant.syn.tools","cluster.lieutenant.syn.tools/pipelines"]"#,
            ),
            place(13..=13, "vault t-one/c-one/steward", "", r#"["token"]"#),
        ],
    },
    Difference {
        number: "B2",
        why: "a tenant that has clusters waits for them, with all that is its and theirs",
        places: &[
            place(15..=15, "Tenant t-one", "", ""),
            place(15..=15, "Role t-one", "", ""),
            place(15..=15, "RoleBinding t-one", "", ""),
            place(15..=15, "Secret t-one", "", ""),
            place(15..=15, "ServiceAccount t-one", "", ""),
            place(15..=15, "GitRepo t-one", "/metadata/deletionTimestamp", "null"),
            place(15..=15, "project tenants/t-one", "/archived", "null"),
            place(
                15..=15,
                "Cluster c-unmanaged",
                "/metadata/deletionTimestamp",
                "null",
            ),
            place(15..=15, "vault t-one/c-unmanaged/steward", "", r#"["token"]"#),
        ],
    },
];

impl Place {
    fn covers(&self, step: usize, found: &Found) -> bool {
        let is_subject = match self.subject.strip_suffix('*') {
            Some(start) => found.subject.starts_with(start),
            None => found.subject == self.subject,
        };
        let below = found.at.strip_prefix(self.at);
        let ours = found.ours.to_string();
        self.steps.contains(&step)
            && is_subject
            && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            && (self.ours.is_empty() || ours == self.ours)
    }
}

/// What differs after a step and is not listed, and what is listed and does not differ.
pub(super) fn unexpected(step: usize, found: &[Found]) -> Vec<String> {
    let places = || {
        DIFFERENCES
            .iter()
            .flat_map(|difference| difference.places.iter().map(move |place| (difference, place)))
    };
    let listed = |found: &Found| places().any(|(_, place)| place.covers(step, found));
    let new = found.iter().filter(|found| !listed(found)).map(|found| {
        format!(
            "step {step}: {}{} was recorded as {}, and is {}",
            found.subject, found.at, found.recorded, found.ours
        )
    });
    let stale = places().filter(|(_, place)| {
        place.steps.contains(&step) && !found.iter().any(|found| place.covers(step, found))
    });
    let stale = stale.map(|(difference, place)| {
        format!(
            "step {step}: {}{} is listed under {} ({}) with {}, and is not so",
            place.subject, place.at, difference.number, difference.why, place.ours
        )
    });
    new.chain(stale).collect()
}

#[test]
fn what_is_new_and_what_is_no_longer_so_are_both_told() {
    let finalizers = Found {
        subject: "Tenant t-one".to_owned(),
        at: "/metadata/finalizers".to_owned(),
        recorded: serde_json::Value::Null,
        ours: serde_json::json!(["cluster.lieutenant.syn.tools"]),
    };
    assert_eq!(unexpected(1, std::slice::from_ref(&finalizers)), [""; 0]);
    assert_eq!(unexpected(1, &[]).len(), 1);
    let other = Found {
        at: "/metadata/labels".to_owned(),
        ..finalizers.clone()
    };
    assert_eq!(unexpected(1, &[finalizers, other]).len(), 1);
}
