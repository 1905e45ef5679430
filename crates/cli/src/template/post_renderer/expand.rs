//! `$VAR` and `${VAR}` in a plugin's command line: Go's `os.Expand`.

/// Replaces variables by their values, unknown ones by nothing.
pub(super) fn expand(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let (name, width) = name(after);
        if !name.is_empty() {
            out.push_str(&value(name).unwrap_or_default());
        } else if width == 0 {
            // No name follows.
            out.push('$');
        }
        rest = after.get(width..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// The name at the beginning of a text, and how much of the text it takes; bad syntax takes some and names nothing.
fn name(text: &str) -> (&str, usize) {
    let is_special = |c: char| matches!(c, '*' | '#' | '$' | '@' | '!' | '?' | '-' | '0'..='9');
    if let Some(inner) = text.strip_prefix('{') {
        return match inner.split_once('}') {
            Some(("", _)) => ("", 2),
            Some((name, _)) => (name, name.len() + 2),
            None => ("", 1),
        };
    }
    if text.starts_with(is_special) {
        return (text.get(..1).unwrap_or_default(), 1);
    }
    let end = text
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    (text.get(..end).unwrap_or_default(), end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_as_go_does() {
        let value = |name: &str| (name == "A" || name == "1").then(|| format!("<{name}>"));
        for (text, expanded) in [
            ("$A/x", "<A>/x"),
            ("${A}x$1y", "<A>x<1>y"),
            ("$B-${B}", "-"),
            ("a$", "a$"),
            ("$ $.", "$ $."),
            ("${}x${A", "xA"),
            ("$$A", "A"),
        ] {
            assert_eq!(expand(text, value), expanded, "{text}");
        }
    }
}
