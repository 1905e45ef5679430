//! SQL: spoken by one room, as static text with bound parameters.

use super::Finding;
use super::source::{Sources, Strings};

/// The room that speaks SQL.
const ROOM: &str = "crates/inventory/";
/// What lets a text that was made at run time become a statement.
const LOOPHOLES: [&str; 4] = ["AssertSqlSafe", "SqlStr::", "QueryBuilder", "Box::leak"];
/// What makes a text at run time.
const MAKERS: [&str; 6] = [
    "format!(",
    "format_args!(",
    "write!(",
    "writeln!(",
    "push_str(",
    "String::from(",
];
/// How statements begin.
const VERBS: [&str; 8] = [
    "SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH ", "CREATE ", "ALTER ", "DROP ",
];

/// Checks all code that is not for tests.
pub(super) fn check(sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in sources.rust() {
        let path = file.path.display().to_string();
        if path.starts_with("xtask/") {
            continue;
        }
        for (number, line) in file.shipped_lines(Strings::Blank) {
            let place = || format!("{path}:{number}");
            if line.contains("sqlx::") && !path.starts_with(ROOM) {
                let remedy = "ask the inventory; only it speaks SQL";
                findings.push(Finding::new(place(), "speaks SQL", remedy));
            }
            // A reader of the inventory's options may keep a text for ever; nothing else needs to.
            for loophole in LOOPHOLES {
                if line.contains(loophole) && (path.starts_with(ROOM) || loophole == "AssertSqlSafe") {
                    let remedy = "write the statement as static text and bind what varies";
                    findings.push(Finding::new(
                        place(),
                        format!("{loophole} lets a made text become a statement"),
                        remedy,
                    ));
                }
            }
        }
        for (number, line) in file.shipped_lines(Strings::Keep) {
            if makes_sql(&line) {
                let remedy =
                    "write the statement as static text (concat! of literals is one) and bind what varies";
                findings.push(Finding::new(
                    format!("{path}:{number}"),
                    "a statement is put together at run time",
                    remedy,
                ));
            }
        }
    }
    findings
}

/// Whether a line makes a text that begins like a statement.
fn makes_sql(line: &str) -> bool {
    MAKERS.iter().any(|maker| {
        line.match_indices(maker).any(|(at, _)| {
            let rest = line.get(at + maker.len()..).unwrap_or_default();
            let literal = rest.split_once('"').map_or("", |(_, literal)| literal);
            VERBS.iter().any(|verb| literal.starts_with(verb))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::source::SourceFile;
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        let file = SourceFile {
            path: path.into(),
            text: text.to_owned(),
        };
        check(&Sources { files: vec![file] }).len()
    }

    #[test]
    fn formatted_statements_are_found() {
        let room = "crates/inventory/src/sql/list.rs";
        for bad in [
            "let text = format!(\"SELECT * FROM {table}\");",
            "write!(f, \"DELETE FROM x WHERE id = '{id}'\")?;",
            "text.push_str(\"UPDATE x SET y\");",
            "sqlx::query(AssertSqlSafe(text));",
            "let text: &'static str = Box::leak(text.into_boxed_str());",
        ] {
            assert_eq!(found(room, bad), 1, "{bad}");
        }
        for good in [
            "const X: &str = concat!(\"SELECT \", \"a\");",
            "query(\"SELECT 1 WHERE id = $1\").bind(id)",
            "format!(\"expected {n}\")",
            "// format!(\"SELECT 1\")",
            "#[cfg(test)]\nmod tests {\n    fn f() { AssertSqlSafe(text); }\n}",
        ] {
            assert_eq!(found(room, good), 0, "{good}");
        }
    }

    #[test]
    fn only_the_inventory_speaks_sql() {
        let text = "use sqlx::PgPool;";
        assert_eq!(found("crates/fleet/src/queue.rs", text), 1);
        assert_eq!(found("crates/inventory/src/sql.rs", text), 0);
        assert_eq!(found("crates/fleet/tests/it/main.rs", text), 0);
    }
}
