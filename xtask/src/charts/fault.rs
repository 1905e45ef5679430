//! What an engine says when it refuses a chart.

/// How Helm and Evenkeel begin the text that ends them; what stands before it are warnings.
const START: &str = "Error: ";

/// Advice that Helm appends to some.
const ADVICE: &str = "Use --debug flag to render out invalid YAML";

/// What the faults of values against a schema begin with.
const SCHEMA: &str = "values don't meet the specifications of the schema(s)";

/// A refusal, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    text: String,
    places: Vec<String>,
    causes: Vec<String>,
}

impl Fault {
    /// Reads what was printed to standard error.
    pub(super) fn read(errors: &str) -> Self {
        let start = match errors.strip_prefix(START) {
            Some(rest) => Some(rest),
            None => errors.split_once(&format!("\n{START}")).map(|(_, rest)| rest),
        };
        let text = start.unwrap_or(errors).replace(ADVICE, "");
        let text = text.trim().to_owned();
        Self {
            places: places(&text),
            causes: causes(&text),
            text,
        }
    }

    /// The text without warnings before it and advice after it.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether both find the same faults of values against a schema, which Helm tells in another order each time.
    pub(super) fn is_same_set(&self, other: &Self) -> bool {
        self.text.starts_with(SCHEMA) && as_set(&self.text) == as_set(&other.text)
    }

    /// Whether both name the same cause at the same places, whatever else they say.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        self.places == other.places && self.causes == other.causes
    }
}

/// The lines in an order of their own, and the names of properties that a line lists.
fn as_set(text: &str) -> Vec<String> {
    const NAMES: &str = "additional properties ";
    let sorted = |line: &str| match line.split_once(NAMES) {
        Some((before, names)) => {
            let (names, after) = names.split_once(" not allowed").unwrap_or((names, ""));
            let mut names: Vec<&str> = names.split(", ").collect();
            names.sort_unstable();
            format!("{before}{NAMES}{} not allowed{after}", names.join(", "))
        }
        None => line.to_owned(),
    };
    let mut lines: Vec<String> = text.lines().map(sorted).collect();
    lines.sort_unstable();
    lines
}

/// Every `file:line:column` and `line n`, in order, each once.
fn places(text: &str) -> Vec<String> {
    let mut places: Vec<String> = Vec::new();
    let mut add = |place: String| {
        if !places.contains(&place) {
            places.push(place);
        }
    };
    let mut previous = "";
    for word in text.split(|c: char| c.is_whitespace() || "()<>\"'[]".contains(c)) {
        let word = word.trim_end_matches([':', ',', '.']);
        let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if previous == "line" && number(word) {
            add(format!("line {word}"));
        }
        let mut parts = word.rsplitn(3, ':');
        if let (Some(last), Some(middle)) = (parts.next(), parts.next())
            && number(last)
            && (number(middle) || middle.contains('/'))
        {
            add(word.to_owned());
        }
        previous = word;
    }
    places
}

/// The innermost cause: what follows the last `: ` of the last line. A list of faults (of values against a schema) has
/// a cause in each line, in any order.
fn causes(text: &str) -> Vec<String> {
    let cause = |line: &str| {
        let last = line.rsplit(": ").next().unwrap_or(line);
        last.trim().trim_end_matches('.').to_lowercase()
    };
    // Go's text shows the value, and a verb that does not suit it.
    if let Some((_, name)) = text.split_once("type mismatch on ") {
        let name = name.split(':').next().unwrap_or(name);
        return vec![format!("type mismatch on {name}")];
    }
    // Why a schema that another refers to cannot be had depends on the network.
    if let Some((_, url)) = text.split_once("failing loading \"") {
        let url = url.split('"').next().unwrap_or(url);
        return vec![format!("failing loading {url}")];
    }
    // What is wrong with a schema itself is told by its first line.
    if let Some(line) = text
        .lines()
        .find(|line| line.contains("is not valid against metaschema"))
    {
        return vec![line.to_owned()];
    }
    let mut list: Vec<String> = text
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("- "))
        .map(without_value)
        .collect();
    if list.is_empty() {
        return text.lines().last().map(cause).into_iter().collect();
    }
    list.sort();
    list.dedup();
    list
}

/// A fault of a schema without the text that Helm shows of the value, which may be secret.
fn without_value(line: &str) -> String {
    for middle in [" does not match pattern ", " is not valid "] {
        if let (Some((place, _)), Some((_, rest))) = (line.split_once(": "), line.split_once(middle)) {
            return format!("{place}: value{middle}{rest}");
        }
    }
    line.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_and_advice_do_not_matter() {
        let theirs = Fault::read(
            "level=WARN msg=\"x\"\nError: template: c/templates/a.yaml:1:3: no\n\nUse --debug flag to render out invalid YAML\n",
        );
        let ours = Fault::read("Error: template: c/templates/a.yaml:1:3: no\n");
        assert_eq!(theirs.text(), "template: c/templates/a.yaml:1:3: no");
        assert_eq!(theirs, ours);
    }

    #[test]
    fn the_cause_and_the_place_decide() {
        let theirs =
            Fault::read("Error: c/templates/a.yaml:7:12\n  executing \"a\" at <.x>:\n    nil pointer");
        assert_eq!(theirs.places, ["c/templates/a.yaml:7:12"]);
        assert!(theirs.is_alike(&Fault::read(
            "Error: template: c/templates/a.yaml:7:12: at <.x>: Nil pointer"
        )));
        assert!(!theirs.is_alike(&Fault::read(
            "Error: template: c/templates/a.yaml:7:13: at <.x>: nil pointer"
        )));
        assert!(!theirs.is_alike(&Fault::read(
            "Error: template: c/templates/a.yaml:7:12: at <.x>: other"
        )));
        let yaml = Fault::read("Error: YAML parse error on c/t.yaml: error converting: yaml: line 3: no key");
        assert_eq!(
            (yaml.places.as_slice(), yaml.causes.as_slice()),
            (["line 3".to_owned()].as_slice(), ["no key".to_owned()].as_slice())
        );
    }

    #[test]
    fn lists_have_no_order() {
        let theirs = Fault::read("Error: values don't meet:\nc:\n- at '/a': one\n- at '/b': two\n");
        let ours = Fault::read("Error: values don't meet:\nc:\n- at '/b': two\n- at '/a': one\n");
        assert!(theirs.is_alike(&ours));
        assert!(!theirs.is_alike(&Fault::read("Error: values don't meet:\nc:\n- at '/b': two\n")));
    }

    #[test]
    fn shown_values_do_not_matter() {
        let shown = Fault::read("Error: c:\n- at '/a': 'x: y' does not match pattern '^a$'\n");
        let hidden = Fault::read("Error: c:\n- at '/a': value does not match pattern '^a$'\n");
        assert!(shown.is_alike(&hidden));
        let shown = Fault::read("Error: type mismatch on sub: %!t(string=x)");
        let hidden = Fault::read("Error: type mismatch on sub: must be a mapping");
        assert!(shown.is_alike(&hidden));
        let there = Fault::read("Error: c:\nfailing loading \"https://a.test/x.json\": no such host");
        let here = Fault::read("Error: c:\nfailing loading \"https://a.test/x.json\": not read");
        assert!(there.is_alike(&here));
    }
}
