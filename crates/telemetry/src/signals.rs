//! Ctrl-C and SIGTERM: the first stops cleanly, the second at once.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{Error, Tasks};

/// The exit code after a second signal: 128 plus the number of SIGINT, as shells report it.
pub const EXIT_INTERRUPTED: i32 = 130;

/// Listens from now on. The first SIGINT or SIGTERM cancels `tasks`, and the process ends when its main function
/// has shut them down; the second ends it at once with [`EXIT_INTERRUPTED`].
///
/// # Errors
/// When the handlers cannot be installed.
pub fn install(tasks: &Tasks) -> Result<(), Error> {
    let listen =
        |kind: SignalKind, name| signal(kind).map_err(|source| Error::Signal { signal: name, source });
    let mut interrupt = listen(SignalKind::interrupt(), "SIGINT")?;
    let mut terminate = listen(SignalKind::terminate(), "SIGTERM")?;
    let tasks = tasks.clone();
    let listener = async move {
        let name = next(&mut interrupt, &mut terminate).await;
        tracing::info!(
            signal = name,
            "stopping; a second signal ends the process at once"
        );
        tasks.cancel();
        let name = next(&mut interrupt, &mut terminate).await;
        tracing::warn!(signal = name, "second signal: ending at once");
        end_at_once();
    };
    // Not one of `tasks`: it has to outlive their shutdown to hear the second signal.
    #[expect(clippy::disallowed_methods, reason = "supervision itself is not supervised")]
    drop(tokio::spawn(listener));
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the user asked twice: nothing may delay the end"
)]
fn end_at_once() {
    std::process::exit(EXIT_INTERRUPTED);
}

async fn next(interrupt: &mut Signal, terminate: &mut Signal) -> &'static str {
    tokio::select! {
        _ = interrupt.recv() => "SIGINT",
        _ = terminate.recv() => "SIGTERM",
    }
}
