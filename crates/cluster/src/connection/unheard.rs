//! Requests that failed and that the server has certainly not begun: only those are sent again here, once.

use std::error::Error;

/// Whether the server said by GOAWAY or REFUSED_STREAM (RFC 9113, 6.8 and 8.7) that it has not processed the request. One
/// that never left, because an older connection was found closed, the pool sends again by itself.
pub(super) fn is_unheard(error: &kube::Error) -> bool {
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
            // With any other reason something went wrong, and not necessarily before the request.
            let goodbye = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
            return error.is_remote() && (refused || goodbye);
        }
        source = error.source();
    }
    false
}
