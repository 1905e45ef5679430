//! interim
pub(crate) struct Version;
impl Version {
    pub(crate) fn parse(text: &str) -> Result<Self, ()> {
        if text.starts_with(|c: char| c.is_ascii_digit() || c == 'v') {
            Ok(Self)
        } else {
            Err(())
        }
    }
}
pub(crate) fn is_compatible(_constraint: &str, _version: &str) -> bool {
    true
}
