//! Access tokens of a repository.

use evenkeel_core::Sensitive;
use jiff::civil::Date;

/// A token that a repository has, or once had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresentToken {
    /// Its number at the host.
    pub id: u64,
    /// Its name. Several may have the same.
    pub name: String,
    /// The day from which on it is good no more; none if there is none.
    pub expires_on: Option<Date>,
    /// Whether it can be used: neither revoked nor expired.
    pub is_active: bool,
}

/// A token that was made now. It is shown this once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// Its number at the host.
    pub id: u64,
    /// The token.
    pub secret: Sensitive<String>,
    /// The day from which on it is good no more. The host may set an earlier one than was asked for.
    pub expires_on: Date,
}
