//! What can go wrong at a target cluster, told so that a person can act and a program can decide.

mod objects;

use std::fmt;
use std::time::Duration;

use evenkeel_core::{ConsentNeeded, Fence, ObjectRef};

use crate::applyset::labels::{ON_CONFLICT, ON_IMMUTABLE_CHANGE};
use crate::hooks::HookFailure;
use crate::race::LostRace;
use crate::readiness::ObjectState;
use crate::siblings::SiblingUnknown;

pub use objects::{
    FieldConflict, ForeignObject, ImmutableChange, ManifestProblem, ObjectError, RenderedTwice, StuckObject,
};

/// How a failure is treated by whoever retries (the classes of the step engine, DESIGN §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorClass {
    /// Trying again later may work without anybody doing anything.
    Transient,
    /// The server asked to be left alone for this long.
    RateLimited(Duration),
    /// Somebody else changed the same thing; look again, then decide.
    Conflict,
    /// The manifest or request is wrong; trying again unchanged is useless.
    Invalid,
    /// The credentials are good and not allowed to do this.
    Forbidden,
    /// The credentials are not accepted.
    Unauthorized,
    /// A person has to agree first.
    Consent,
    /// Nothing answers at the cluster's address.
    Unreachable,
    /// The object or key does not exist.
    NotFound,
    /// The objects did not become ready, or are not gone, within the time given.
    NotReady,
    /// Another attempt has taken the component over; this one must stop. Carries the number found at the target.
    Fenced(Fence),
    /// The caller's own guard ended the work: lease over, superseded, cancelled.
    Stopped,
    /// A fault of Evenkeel itself.
    Bug,
}

/// Why a [`WriteGuard`](crate::WriteGuard) refused a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The lease would end before the request does.
    LeaseEnded,
    /// The work was cancelled, or somebody else goes on with it.
    Cancelled,
    /// A newer configuration takes its place. What runs at the target by itself, like a hook, is still waited for.
    Superseded,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LeaseEnded => "the lease ends before another write could",
            Self::Cancelled => "the work was cancelled",
            Self::Superseded => "a newer configuration takes its place",
        })
    }
}

/// Everything that the functions of this crate can fail with. No variant carries a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kubeconfig cannot be used; `field` is the path of the wrong field.
    #[error("kubeconfig: {field}: {reason}")]
    Kubeconfig {
        /// Path of the field, like `users[0].user.exec`.
        field: String,
        /// What is wrong and what was expected.
        reason: String,
    },
    /// The credentials could not be made, like an exec plugin that failed.
    #[error("credentials for the cluster could not be obtained: {reason}")]
    Credentials {
        /// What failed, without any output of the plugin.
        reason: String,
    },
    /// No connection could be made, or it broke.
    #[error("{server} cannot be reached ({doing}): {reason}")]
    Unreachable {
        /// The server's address.
        server: String,
        /// What was being done.
        doing: String,
        /// What the connection said.
        reason: String,
    },
    /// It could not be reached just now and is not asked again yet.
    #[error(
        "{server} cannot be reached ({doing} was not tried): {reason}; it is asked again in {retry_in:.1?}"
    )]
    NotTried {
        /// The server's address.
        server: String,
        /// What was to be done.
        doing: String,
        /// What the connection said last.
        reason: String,
        /// When it is asked again.
        retry_in: Duration,
    },
    /// No answer came in time.
    #[error("{doing}: no answer from {server} within {after:?}")]
    Timeout {
        /// The server's address.
        server: String,
        /// What was being done.
        doing: String,
        /// How long was waited.
        after: Duration,
    },
    /// The server does not accept the credentials (401).
    #[error("{doing}: the cluster does not accept the credentials: {message}")]
    Unauthorized {
        /// What was being done.
        doing: String,
        /// The server's message.
        message: String,
    },
    /// The credentials may not do this (403).
    #[error("{doing}: forbidden: {message}")]
    Forbidden {
        /// What was being done.
        doing: String,
        /// The server's message.
        message: String,
    },
    /// The object does not exist (404).
    #[error("{doing}: not found: {message}")]
    NotFound {
        /// What was being done.
        doing: String,
        /// The server's message.
        message: String,
    },
    /// An object of that name was there already (409).
    #[error("{doing}: it exists already")]
    AlreadyExists {
        /// What was being done.
        doing: String,
    },
    /// The object changed in between (409).
    #[error("{doing}: conflict: {message}")]
    Conflict {
        /// What was being done.
        doing: String,
        /// The server's message.
        message: String,
    },
    /// Others wrote the object before each of our tries (409).
    #[error("{0}")]
    LostRace(Box<LostRace>),
    /// Other field managers own fields that we would set, and they are not to be taken (409).
    #[error(
        "{doing}: {}; leave them out of the manifest, or let `onConflict` (--on-conflict) or the annotation {ON_CONFLICT} say that they are taken (force) or left (leave)",
        list(conflicts)
    )]
    FieldConflict {
        /// What was being done.
        doing: String,
        /// Every field and its owner.
        conflicts: Vec<FieldConflict>,
    },
    /// The server refuses the content (400, 413, 415, 422).
    #[error("{doing}: the cluster refuses it: {message}")]
    Invalid {
        /// What was being done.
        doing: String,
        /// The server's message; for Secrets the field paths only.
        message: String,
    },
    /// The server refuses to change fields of an object that exists (422).
    #[error(
        "{doing}: the cluster does not change {} of an existing object: {message}; its annotation {ON_IMMUTABLE_CHANGE} can say that it is made again",
        fields.join(", ")
    )]
    Immutable {
        /// What was being done.
        doing: String,
        /// The fields as the server names them.
        fields: Vec<String>,
        /// The server's message; for Secrets the field paths only.
        message: String,
    },
    /// Fields that never change would have to; nothing was applied.
    #[error("fields that cannot change differ, nothing was applied: {}", list(.0))]
    ImmutableFields(Vec<ImmutableChange>),
    /// The server is too busy (429, or 503 with Retry-After).
    #[error("{doing}: the cluster asks to wait {retry_after:?}")]
    RateLimited {
        /// What was being done.
        doing: String,
        /// How long it asks to be left alone.
        retry_after: Duration,
    },
    /// The server failed (5xx).
    #[error("{doing}: the cluster failed with {status}: {message}")]
    Server {
        /// What was being done.
        doing: String,
        /// HTTP status.
        status: u16,
        /// The server's message.
        message: String,
    },
    /// An admission webhook could not be called; usual for a moment after its installation.
    #[error("{doing}: an admission webhook of the cluster could not be called: {message}")]
    Webhook {
        /// What was being done.
        doing: String,
        /// The server's message, which names the webhook.
        message: String,
    },
    /// The namespace is being deleted, so nothing can be made in it.
    #[error("{doing}: namespace {namespace} is being deleted; it will be made again once it is gone")]
    NamespaceTerminating {
        /// What was being done.
        doing: String,
        /// The namespace.
        namespace: String,
    },
    /// A resource version is too old for a watch or list (410).
    #[error("{doing}: the resource version is too old")]
    Expired {
        /// What was being done.
        doing: String,
    },
    /// The answer could not be read.
    #[error("{doing}: the cluster's answer cannot be read: {reason}")]
    Decode {
        /// What was being done.
        doing: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The cluster serves no such kind and no CustomResourceDefinition of the manifest defines it.
    #[error(
        "the cluster serves no kind {}; expected a served kind or its CustomResourceDefinition in the same manifest",
        list(.0)
    )]
    UnknownKinds(Vec<ManifestProblem>),
    /// The API of this group is known but its server does not answer at the moment.
    #[error("the API {group} is registered in the cluster but does not answer at the moment")]
    ApiUnavailable {
        /// API group, with the version where one is known.
        group: String,
    },
    /// Objects of the manifest are wrong by themselves; nothing was applied.
    #[error("the manifest is wrong: {}", list(.0))]
    Manifest(Vec<ManifestProblem>),
    /// Objects of the same names exist and are not ours; nothing was applied.
    #[error("objects of these names exist already and are not managed by this component: {}; set `adopt: true` (--adopt) to take them over", list(.0))]
    Foreign(Vec<ForeignObject>),
    /// Objects that another component of the same configuration renders, too; nothing was applied.
    #[error("two components render the same objects, nothing was applied: {}; remove them from one of the two", list(.0))]
    RenderedTwice(Vec<RenderedTwice>),
    /// Whether objects move to or from another component cannot be told; nothing was applied.
    #[error("{0}")]
    SiblingUnknown(Box<SiblingUnknown>),
    /// More would be deleted than is done without asking; nothing was applied.
    #[error("{0}: that needs consent, as plan {digest}", digest = .0.digest())]
    NeedsConsent(Box<ConsentNeeded>),
    /// The ApplySet parent belongs to another mothership or names another cluster.
    #[error(
        "{parent} belongs to fleet {fleet:?}, cluster {cluster:?}; expected {expected}; set `adopt: true` (--adopt) to take it over"
    )]
    OtherOwner {
        /// The parent Secret.
        parent: String,
        /// The fleet it names.
        fleet: String,
        /// The cluster it names.
        cluster: String,
        /// Who we are.
        expected: String,
    },
    /// A Secret of our parent's name is no parent that this version can read.
    #[error("{parent} cannot be read as an ApplySet parent: {reason}")]
    BadParent {
        /// The parent Secret.
        parent: String,
        /// What is wrong.
        reason: String,
    },
    /// A newer attempt has taken the component at the target.
    #[error(
        "fence {theirs} is taken at the cluster for {component}, ours is {ours}: a newer attempt works on it"
    )]
    Fenced {
        /// The component.
        component: String,
        /// The number we came with.
        ours: Fence,
        /// The higher number found.
        theirs: Fence,
    },
    /// The caller's guard refused to begin another write.
    #[error("stopped before {doing}: {why}")]
    Stopped {
        /// What would have been done.
        doing: String,
        /// Why not.
        why: Stop,
    },
    /// Several objects failed; the others of the same phase went through.
    #[error("{}", list(.0))]
    Objects(Vec<ObjectError>),
    /// Objects did not become ready: in time, or ever because they failed for good.
    #[error("{}: {}", if *terminal { "failed for good" } else { "not ready in time" }, list(objects))]
    NotReady {
        /// Whether waiting longer is useless.
        terminal: bool,
        /// The objects that are not ready, each with its diagnosis.
        objects: Vec<ObjectState>,
    },
    /// A Helm hook failed, or did not end in time.
    #[error("{0}")]
    Hook(Box<HookFailure>),
    /// Objects are still there though their deletion was asked for.
    #[error("still there after deletion: {}", list(.0))]
    Stuck(Vec<StuckObject>),
    /// A Secret or ConfigMap lacks the key.
    #[error("{object} has no key {key:?}")]
    NoKey {
        /// The object.
        object: ObjectRef,
        /// The missing key.
        key: String,
    },
    /// More than what one Secret of the cluster can hold.
    #[error("{what} takes {bytes} bytes, more than the {limit} that the cluster can store")]
    TooLarge {
        /// What is too large.
        what: String,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A fault of Evenkeel itself.
    #[error("internal: {0}")]
    Bug(String),
}

/// The most items one message lists; the rest are counted.
const LISTED_MAX: usize = 10;

fn list<T: fmt::Display>(items: &[T]) -> String {
    let mut text = items
        .iter()
        .take(LISTED_MAX)
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ");
    if items.len() > LISTED_MAX {
        text.push_str(&format!("; and {} more", items.len() - LISTED_MAX));
    }
    text
}

impl Error {
    /// How whoever retries should treat it.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Kubeconfig { .. }
            | Self::Invalid { .. }
            | Self::Immutable { .. }
            | Self::ImmutableFields(_)
            | Self::UnknownKinds(_)
            | Self::Manifest(_)
            | Self::Foreign(_)
            // What is taken is taken at once, so whoever sees one was told not to take it: a person decides.
            | Self::FieldConflict { .. }
            | Self::RenderedTwice(_)
            | Self::OtherOwner { .. }
            | Self::BadParent { .. }
            | Self::TooLarge { .. } => ErrorClass::Invalid,
            Self::Credentials { .. } | Self::Unauthorized { .. } => ErrorClass::Unauthorized,
            Self::Unreachable { .. } | Self::NotTried { .. } | Self::Timeout { .. } => {
                ErrorClass::Unreachable
            }
            Self::Forbidden { .. } => ErrorClass::Forbidden,
            Self::NotFound { .. } | Self::NoKey { .. } => ErrorClass::NotFound,
            Self::AlreadyExists { .. }
            | Self::Conflict { .. }
            | Self::LostRace(_) => ErrorClass::Conflict,
            Self::RateLimited { retry_after, .. } => ErrorClass::RateLimited(*retry_after),
            Self::Server { .. }
            | Self::Webhook { .. }
            | Self::NamespaceTerminating { .. }
            | Self::Expired { .. }
            | Self::Decode { .. }
            | Self::ApiUnavailable { .. } => ErrorClass::Transient,
            Self::Fenced { theirs, .. } => ErrorClass::Fenced(*theirs),
            Self::Stopped { .. } => ErrorClass::Stopped,
            Self::Objects(errors) => worst(errors),
            Self::NotReady { .. } | Self::Hook(_) | Self::Stuck(_) => ErrorClass::NotReady,
            Self::SiblingUnknown(sibling) if sibling.unknown.may_pass => ErrorClass::Transient,
            Self::SiblingUnknown(_) => ErrorClass::Invalid,
            Self::NeedsConsent(_) => ErrorClass::Consent,
            Self::Bug(_) => ErrorClass::Bug,
        }
    }

    /// Whether the thing asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    pub(crate) fn decode(doing: &str, error: &serde_json::Error) -> Self {
        // The error's own text may quote the content, which may be a Secret.
        let reason = format!(
            "{:?} at line {} column {}",
            error.classify(),
            error.line(),
            error.column()
        );
        Self::Decode {
            doing: doing.to_owned(),
            reason,
        }
    }
}

/// The class that decides when several objects failed: what ends the attempt first, then what a person must fix, then
/// what may pass by itself.
fn worst(errors: &[ObjectError]) -> ErrorClass {
    let rank = |class: &ErrorClass| match class {
        ErrorClass::Fenced(_) => 0,
        ErrorClass::Stopped => 1,
        ErrorClass::Unauthorized => 2,
        ErrorClass::Bug => 3,
        ErrorClass::Invalid => 4,
        ErrorClass::Forbidden => 5,
        ErrorClass::NotFound => 6,
        ErrorClass::Unreachable => 7,
        ErrorClass::RateLimited(_) => 8,
        ErrorClass::Conflict => 9,
        ErrorClass::NotReady => 10,
        ErrorClass::Consent => 11,
        ErrorClass::Transient => 12,
    };
    errors
        .iter()
        .map(|failed| failed.error.class())
        .min_by_key(rank)
        .unwrap_or(ErrorClass::Bug)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(error: Error) -> ObjectError {
        ObjectError {
            object: ObjectRef {
                group: String::new(),
                kind: "ConfigMap".into(),
                namespace: None,
                name: "x".into(),
            },
            error,
        }
    }

    #[test]
    fn what_a_person_must_fix_decides_over_what_passes() {
        let busy = || Error::RateLimited {
            doing: "apply".into(),
            retry_after: Duration::from_secs(3),
        };
        let wrong = Error::Invalid {
            doing: "apply".into(),
            message: "unknown field".into(),
        };
        assert_eq!(
            Error::Objects(vec![failed(busy())]).class(),
            ErrorClass::RateLimited(Duration::from_secs(3))
        );
        assert_eq!(
            Error::Objects(vec![failed(busy()), failed(wrong)]).class(),
            ErrorClass::Invalid
        );
    }

    #[test]
    fn long_lists_are_counted() {
        let problems = |count: usize| {
            let problem = |index| ManifestProblem {
                source: format!("t{index}.yaml"),
                object: "ConfigMap/x".into(),
                message: "m".into(),
            };
            Error::Manifest((0..count).map(problem).collect()).to_string()
        };
        assert!(problems(10).ends_with("t9.yaml: ConfigMap/x: m"));
        assert!(problems(12).ends_with("; and 2 more"));
    }
}
