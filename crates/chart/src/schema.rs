//! interim
use crate::Error;
use crate::dependencies::Node;
pub(crate) fn check(_root: &Node, _values: &evenkeel_gotemplate::Map) -> Result<(), Error> {
    Ok(())
}
