//! Why keys or signatures are not accepted, in the words of Helm's library.

/// What is wrong with keys, or with a signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// It breaks a rule of the format.
    #[error("openpgp: invalid data: {0}")]
    Structural(String),
    /// It may be right, but nothing here can tell.
    #[error("openpgp: unsupported feature: {0}")]
    Unsupported(String),
    /// Key and signature do not fit each other.
    #[error("openpgp: invalid argument: {0}")]
    Argument(&'static str),
    /// The signature is not one of this key over this text.
    #[error("openpgp: invalid signature: {0}")]
    Signature(String),
    /// The signature, or one that its key rests on, has expired or is of the future.
    #[error("openpgp: signature expired")]
    SignatureExpired,
    /// The key has expired or is of the future.
    #[error("openpgp: key expired")]
    KeyExpired,
    /// Nobody in the keyring signed this.
    #[error("openpgp: signature made by unknown entity{0}")]
    UnknownIssuer(String),
    /// The key was revoked.
    #[error("openpgp: signature made by revoked key")]
    KeyRevoked,
    /// A packet that nobody has to know.
    #[error("openpgp: unknown packet type: {0}")]
    UnknownPacket(u8),
    /// A packet that has to be known.
    #[error("openpgp: unknown critical packet type: {0}")]
    UnknownCriticalPacket(u8),
    /// A number on no curve.
    #[error("{0}: failed to parse EC point")]
    Point(&'static str),
    /// Base64 that is none, at a character of the piece that was being read.
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
    /// It ends too early.
    #[error("unexpected EOF")]
    Truncated,
    /// It ends.
    #[error("EOF")]
    End,
}

impl Error {
    pub(super) fn structural(problem: impl Into<String>) -> Self {
        Self::Structural(problem.into())
    }

    pub(super) fn unsupported(feature: impl Into<String>) -> Self {
        Self::Unsupported(feature.into())
    }

    /// Whether a key of a keyring that fails with this is passed over rather than spoiling the keyring.
    pub(super) fn skips_key(&self) -> bool {
        matches!(self, Self::Structural(_) | Self::Unsupported(_))
    }
}
