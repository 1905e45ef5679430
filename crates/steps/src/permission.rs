//! What steps ask of what is outside, declared beforehand (E2, E14).

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;

use crate::Failure;

/// One thing that is asked of a system outside: `kubernetes: patch secrets`.
///
/// A step declares all of them ([`Spec::may`](crate::Spec::may)). From that follow the rights that a process needs, which a manifest
/// can be compared with ([`Pipeline::permissions`](crate::Pipeline::permissions)); and code that calls a system says so by [`ask`],
/// which refuses what the step did not declare, and every write before the step acts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permission {
    /// Which system: `kubernetes`, `vault`.
    pub system: &'static str,
    /// What is done, in that system's words: `get`, `patch`.
    pub verb: &'static str,
    /// To what, in that system's words: `secrets`.
    pub target: Cow<'static, str>,
    /// Whether it changes anything there.
    pub writes: bool,
}

/// Who asks, on this thread, now.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub(crate) rights: Arc<Rights>,
    /// Whether it is still deciding what to do.
    pub(crate) only_reads: bool,
}

/// What somebody may ask for.
#[derive(Debug)]
pub(crate) struct Rights {
    /// In errors: `step fields`.
    pub(crate) who: String,
    pub(crate) may: Vec<Permission>,
}

thread_local! {
    /// Set while a step's future is polled, and by nothing else.
    static ASKER: RefCell<Option<Asker>> = const { RefCell::new(None) };
}

/// Puts back who asked before, also after a panic.
struct Turn(Option<Asker>);

impl Permission {
    /// One that changes nothing.
    pub fn read(system: &'static str, verb: &'static str, target: impl Into<Cow<'static, str>>) -> Self {
        Self {
            system,
            verb,
            target: target.into(),
            writes: false,
        }
    }

    /// One that changes something.
    pub fn write(system: &'static str, verb: &'static str, target: impl Into<Cow<'static, str>>) -> Self {
        Self {
            system,
            verb,
            target: target.into(),
            writes: true,
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.system, self.verb, self.target)
    }
}

/// Says that the system is about to be asked for this. Called right before the call itself, in the step's own future: what a step
/// hands to other threads has to ask before. Who is no step may ask for anything.
///
/// # Errors
/// A [bug](crate::FailureClass::Bug) when the step that runs did not declare it, or declared that it writes and does not act yet.
///
/// ```
/// use evenkeel_steps::{Outcome, Permission, ask, step};
///
/// let publish = step::<()>("publish").may([Permission::write("mail", "send", "news")]).act(|_, ()| async {
///     ask("mail", "send", "news")?;
///     // … the call
///     Ok(Outcome::changed("sent"))
/// });
/// # let _ = publish;
/// # assert!(ask("mail", "send", "anything").is_ok(), "nobody asks here");
/// ```
pub fn ask(system: &str, verb: &str, target: &str) -> Result<(), Failure> {
    ASKER.with_borrow(|asker| {
        let Some(asker) = asker else {
            return Ok(());
        };
        let Rights { who, may } = &*asker.rights;
        let declared = may.iter().find(|permission| {
            permission.system == system && permission.verb == verb && permission.target == target
        });
        match declared {
            None => Err(Failure::bug(format!(
                "{who} asks to {verb} {target} ({system}), which it does not declare"
            ))),
            Some(permission) if permission.writes && asker.only_reads => Err(Failure::bug(format!(
                "{who} asks to {verb} {target} ({system}) before it acts"
            ))),
            Some(_) => Ok(()),
        }
    })
}

/// Runs what is no step, such as the gathering of a snapshot, with these permissions alone, and lets it write nothing.
pub async fn only_reading<F: Future>(who: &str, may: Vec<Permission>, future: F) -> F::Output {
    let rights = Rights {
        who: who.to_owned(),
        may,
    };
    let asker = Asker {
        rights: Arc::new(rights),
        only_reads: true,
    };
    asking(asker, future).await
}

/// Runs a future as `asker`.
pub(crate) async fn asking<F: Future>(asker: Asker, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let _turn = Turn(ASKER.replace(Some(asker.clone())));
        future.as_mut().poll(cx)
    })
    .await
}

impl Drop for Turn {
    fn drop(&mut self) {
        // A thread that ends has nobody left who asks.
        let _ = ASKER.try_with(|asker| *asker.borrow_mut() = self.0.take());
    }
}
