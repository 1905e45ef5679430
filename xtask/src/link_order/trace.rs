//! What callgrind writes: which functions ran.
//!
//! Names of objects and functions are written out once, as `(12) name`, and `(12)` stands for them from then on,
//! wherever they come up: as the place of costs (`ob=`, `fn=`) or as what is called there (`cob=`, `cfn=`).

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// The functions of `binary` that ran.
pub(super) fn functions(text: &str, binary: &Path) -> BTreeSet<String> {
    let binary = binary.to_string_lossy();
    let (mut objects, mut names) = (HashMap::new(), HashMap::new());
    let mut is_ours = false;
    let mut ran = BTreeSet::new();
    for line in text.lines() {
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        match key {
            "ob" => is_ours = resolve(&mut objects, value) == binary,
            "cob" => {
                resolve(&mut objects, value);
            }
            "fn" => {
                let name = resolve(&mut names, value);
                if is_ours {
                    ran.insert(name.to_owned());
                }
            }
            "cfn" => {
                resolve(&mut names, value);
            }
            _ => {}
        }
    }
    ran
}

/// The name that `(number) name` gives or `(number)` stands for.
fn resolve<'t>(known: &mut HashMap<&'t str, &'t str>, value: &'t str) -> &'t str {
    match value.split_once(' ') {
        Some((number, name)) => {
            known.insert(number, name);
            name
        }
        None => known.get(value).copied().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_binary_alone_are_told() {
        let text = "ob=(1) /lib/libc.so\nfn=(1) memcpy\n0 5\ncob=(2) /bin/evenkeel\ncfn=(2) main\ncalls=1 0\n0 7\n\
                    ob=(2)\nfn=(2)\n0 5\ncfn=(3) never_ran\nfn=(4) render\n0 1\nob=(1)\nfn=(1)\n0 1\n";
        let ran = functions(text, Path::new("/bin/evenkeel"));
        assert_eq!(ran.into_iter().collect::<Vec<_>>(), ["main", "render"]);
    }
}
