//! Free ports on the loopback interface.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};

use crate::Error;

/// Ports to choose from. Below the kernel's ephemeral range, so that no outgoing connection takes one between our
/// look and the server's bind.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// How many ports are tried before giving up.
const TRIES: usize = 200;

/// A port that nothing listens on now. Another process may still be faster: a caller whose server says that its
/// address is in use asks again.
pub(crate) fn free() -> Result<u16, Error> {
    let mut last = None;
    for _ in 0..TRIES {
        let random = RandomState::new().build_hasher().finish();
        let port = FIRST + u16::try_from(random % u64::from(COUNT)).unwrap_or_default();
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = Some(error),
        }
    }
    let source = last.unwrap_or_else(|| std::io::ErrorKind::AddrInUse.into());
    Err(Error::Io {
        doing: format!(
            "find a free port between {FIRST} and {} on 127.0.0.1",
            FIRST + COUNT - 1
        ),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_port_can_be_bound_and_a_taken_one_is_not_offered() {
        let port = free().unwrap();
        assert!((FIRST..FIRST + COUNT).contains(&port));
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        for _ in 0..50 {
            assert_ne!(free().unwrap(), port);
        }
    }
}
