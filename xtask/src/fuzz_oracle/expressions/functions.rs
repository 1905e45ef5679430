//! Every function that a template may call, with what it takes and gives.

use super::super::choices::Choices;

/// A function.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    takes: &'static str,
    pub(crate) gives: char,
    /// Its result has no order until it is sorted.
    pub(crate) wrapped: bool,
}

impl Function {
    /// Types of the arguments of one call. A star after a type stands for none to three more of it.
    pub(crate) fn arguments(&self, choices: &mut Choices) -> Vec<char> {
        let mut arguments = Vec::new();
        let mut last = 'a';
        for wanted in self.takes.chars() {
            if wanted == '*' {
                arguments.extend(std::iter::repeat_n(last, choices.count(0, 3)));
            } else {
                arguments.push(wanted);
                last = wanted;
            }
        }
        arguments
    }
}

const fn function(name: &'static str, takes: &'static str, gives: char) -> Function {
    Function {
        name,
        takes,
        gives,
        wrapped: false,
    }
}

const fn unordered(name: &'static str, takes: &'static str) -> Function {
    Function {
        name,
        takes,
        gives: 'S',
        wrapped: true,
    }
}

/// Left out, because what they give depends on more than their arguments, or is made of it.
#[cfg(test)]
const LEFT_OUT: [&str; 27] = [
    "ago",
    "bcrypt",
    "buildCustomCert",
    "call",
    "decryptAES",
    "derivePassword",
    "encryptAES",
    "genCA",
    "genCAWithKey",
    "genPrivateKey",
    "genSelfSignedCert",
    "genSelfSignedCertWithKey",
    "genSignedCert",
    "genSignedCertWithKey",
    "getHostByName",
    "htpasswd",
    "lookup",
    "now",
    "randAlpha",
    "randAlphaNum",
    "randAscii",
    "randBytes",
    "randInt",
    "randNumeric",
    "shuffle",
    "uuidv4",
    "hello",
];

/// One whose last argument may be this, which comes through a pipe.
pub(crate) fn taking(choices: &mut Choices, given: char) -> &'static Function {
    let fits = |function: &&Function| {
        let last = function.takes.trim_end_matches('*').chars().last();
        last.is_some_and(|last| match last {
            'a' => true,
            'l' => matches!(given, 'l' | 'S'),
            'n' => matches!(given, 'n' | 'i' | 'f'),
            'w' => given == 'i',
            'm' => matches!(given, 'm' | 'M'),
            's' | 'k' => matches!(given, 's' | 'y' | 'j' | '6' | '2' | 'T'),
            other => other == given,
        })
    };
    let index = choices.below(FUNCTIONS.iter().filter(fits).count());
    seldom_refusing(choices, FUNCTIONS.iter().filter(fits).nth(index))
}

/// Those that stop the render cost a process of their own, so they are rare.
fn seldom_refusing(choices: &mut Choices, chosen: Option<&'static Function>) -> &'static Function {
    match chosen {
        Some(function) if !REFUSING.contains(&function.name) || choices.once_in(40) => function,
        _ => &FALLBACK,
    }
}

/// One of those that give this, or any.
pub(crate) fn giving(choices: &mut Choices, wanted: char) -> &'static Function {
    let fits = |function: &&Function| match wanted {
        'a' => true,
        'l' => matches!(function.gives, 'l' | 'S'),
        'n' => matches!(function.gives, 'n' | 'i' | 'f'),
        'i' | 'w' => function.gives == 'i',
        'k' | 's' => function.gives == 's',
        other => function.gives == other,
    };
    let count = FUNCTIONS.iter().filter(fits).count();
    if count == 0 {
        let index = choices.below(FUNCTIONS.len());
        return seldom_refusing(choices, FUNCTIONS.get(index));
    }
    let index = choices.below(count);
    seldom_refusing(choices, FUNCTIONS.iter().filter(fits).nth(index))
}

/// Functions that Helm's linter takes for granted.
pub(crate) const REFUSING: [&str; 2] = ["fail", "required"];

static FALLBACK: Function = function("list", "a*", 'l');

/// Types, for arguments and results: a any, b bool, s text, k key, i int, w small int, n number or what looks like one, f float,
/// l list, S list of texts, m map, M map that may be changed, t time, D duration, v version, c constraint on versions,
/// r regular expression, p replacement, y YAML, j JSON, T TOML, z zone, o layout of dates, O date, u URL, U parsed URL, 6 and 2 base64
/// and base32, / path, F format, e template, E template's name, Y name of a type.
static FUNCTIONS: &[Function] = &[
    function("print", "a*", 's'),
    function("quote", "a*", 's'),
    function("println", "a*", 's'),
    function("printf", "Fa*", 's'),
    function("html", "a*", 's'),
    function("js", "a*", 's'),
    function("urlquery", "a*", 's'),
    function("and", "aa*", 'a'),
    function("or", "aa*", 'a'),
    function("not", "a", 'b'),
    function("len", "l", 'i'),
    function("len", "a", 'i'),
    function("index", "lw", 'a'),
    function("index", "mk", 'a'),
    function("index", "aa*", 'a'),
    function("slice", "lww", 'l'),
    function("slice", "aw*", 'a'),
    function("mustSlice", "lw*", 'l'),
    function("eq", "aa*", 'b'),
    function("eq", "nn*", 'b'),
    function("eq", "ss*", 'b'),
    function("ne", "aa", 'b'),
    function("lt", "nn", 'b'),
    function("le", "ss", 'b'),
    function("gt", "nn", 'b'),
    function("ge", "aa", 'b'),
    function("include", "Ea", 's'),
    function("tpl", "ea", 's'),
    function("required", "sa", 'a'),
    function("fail", "s", 's'),
    function("abbrev", "ws", 's'),
    function("abbrevboth", "wws", 's'),
    function("add", "n*", 'i'),
    function("add1", "n", 'i'),
    function("add1f", "n", 'f'),
    function("addf", "n*", 'f'),
    function("adler32sum", "s", 's'),
    function("all", "a*", 'b'),
    function("any", "a*", 'b'),
    function("append", "la", 'l'),
    function("mustAppend", "la", 'l'),
    function("push", "la", 'l'),
    function("mustPush", "la", 'l'),
    function("prepend", "la", 'l'),
    function("mustPrepend", "la", 'l'),
    function("atoi", "s", 'i'),
    function("b32dec", "2", 's'),
    function("b32enc", "s", '2'),
    function("b64dec", "6", 's'),
    function("b64enc", "s", '6'),
    function("base", "/", 's'),
    function("biggest", "nn*", 'i'),
    function("camelcase", "s", 's'),
    function("cat", "a*", 's'),
    function("ceil", "n", 'f'),
    function("chunk", "wl", 'l'),
    function("mustChunk", "wl", 'l'),
    function("clean", "/", 's'),
    function("coalesce", "a*", 'a'),
    function("compact", "l", 'l'),
    function("mustCompact", "l", 'l'),
    function("concat", "ll*", 'l'),
    function("contains", "ss", 'b'),
    function("date", "ot", 's'),
    function("dateInZone", "otz", 's'),
    function("dateModify", "st", 't'),
    function("date_in_zone", "otz", 's'),
    function("date_modify", "st", 't'),
    function("mustDateModify", "st", 't'),
    function("must_date_modify", "st", 't'),
    function("deepCopy", "a", 'a'),
    function("mustDeepCopy", "a", 'a'),
    function("deepEqual", "aa", 'b'),
    function("default", "aa", 'a'),
    function("dict", "kakaka", 'm'),
    function("dict", "ka", 'm'),
    function("dict", "a*", 'm'),
    function("dig", "kkam", 'a'),
    function("dig", "kam", 'a'),
    function("dir", "/", 's'),
    function("div", "nn", 'i'),
    function("divf", "nn*", 'f'),
    function("duration", "D", 's'),
    function("durationDays", "D", 'f'),
    function("durationHours", "D", 'f'),
    function("durationMicroseconds", "D", 'i'),
    function("durationMilliseconds", "D", 'i'),
    function("durationMinutes", "D", 'f'),
    function("durationNanoseconds", "D", 'i'),
    function("durationSeconds", "D", 'f'),
    function("durationWeeks", "D", 'f'),
    function("durationRound", "D", 's'),
    function("durationRoundTo", "DD", 's'),
    function("durationTruncateTo", "DD", 's'),
    function("mustToDuration", "D", 'D'),
    function("empty", "a", 'b'),
    function("ext", "/", 's'),
    function("first", "l", 'a'),
    function("mustFirst", "l", 'a'),
    function("float64", "n", 'f'),
    function("floor", "n", 'f'),
    function("fromJson", "j", 'm'),
    function("fromJsonArray", "j", 'l'),
    function("mustFromJson", "j", 'a'),
    function("fromToml", "T", 'm'),
    function("fromYaml", "y", 'm'),
    function("fromYamlArray", "y", 'l'),
    function("get", "mk", 'a'),
    function("has", "al", 'b'),
    function("mustHas", "al", 'b'),
    function("hasKey", "mk", 'b'),
    function("hasPrefix", "ss", 'b'),
    function("hasSuffix", "ss", 'b'),
    function("htmlDate", "t", 's'),
    function("htmlDateInZone", "tz", 's'),
    function("indent", "ws", 's'),
    function("nindent", "ws", 's'),
    function("initial", "l", 'l'),
    function("mustInitial", "l", 'l'),
    function("initials", "s", 's'),
    function("int", "n", 'i'),
    function("int64", "n", 'i'),
    function("isAbs", "/", 'b'),
    function("join", "sl", 's'),
    function("join", "sa", 's'),
    function("kebabcase", "s", 's'),
    unordered("keys", "mm*"),
    unordered("values", "m"),
    function("kindIs", "Ya", 'b'),
    function("kindOf", "a", 's'),
    function("last", "l", 'a'),
    function("mustLast", "l", 'a'),
    function("list", "a*", 'l'),
    function("tuple", "a*", 'l'),
    function("lower", "s", 's'),
    function("max", "nn*", 'i'),
    function("maxf", "nn*", 'f'),
    function("merge", "Mm*", 'm'),
    function("mergeOverwrite", "Mm*", 'm'),
    function("mustMerge", "Mm*", 'm'),
    function("mustMergeOverwrite", "Mm*", 'm'),
    function("min", "nn*", 'i'),
    function("minf", "nn*", 'f'),
    function("mod", "nn", 'i'),
    function("mul", "nn*", 'i'),
    function("mulf", "nn*", 'f'),
    function("nospace", "s", 's'),
    function("omit", "mk*", 'm'),
    function("pick", "mk*", 'm'),
    function("osBase", "/", 's'),
    function("osClean", "/", 's'),
    function("osDir", "/", 's'),
    function("osExt", "/", 's'),
    function("osIsAbs", "/", 'b'),
    function("pluck", "km*", 'l'),
    function("plural", "ssi", 's'),
    function("regexFind", "rs", 's'),
    function("mustRegexFind", "rs", 's'),
    function("regexFindAll", "rsw", 'S'),
    function("mustRegexFindAll", "rsw", 'S'),
    function("regexMatch", "rs", 'b'),
    function("mustRegexMatch", "rs", 'b'),
    function("regexQuoteMeta", "s", 's'),
    function("regexReplaceAll", "rsp", 's'),
    function("mustRegexReplaceAll", "rsp", 's'),
    function("regexReplaceAllLiteral", "rsp", 's'),
    function("mustRegexReplaceAllLiteral", "rsp", 's'),
    function("regexSplit", "rsw", 'S'),
    function("mustRegexSplit", "rsw", 'S'),
    function("repeat", "ws", 's'),
    function("replace", "sss", 's'),
    function("rest", "l", 'l'),
    function("mustRest", "l", 'l'),
    function("reverse", "l", 'l'),
    function("mustReverse", "l", 'l'),
    function("round", "nw", 'f'),
    function("round", "nwf", 'f'),
    function("semver", "v", 'v'),
    function("semverCompare", "cv", 'b'),
    function("seq", "w*", 's'),
    function("set", "Mka", 'm'),
    function("unset", "Mk", 'm'),
    function("sha1sum", "s", 's'),
    function("sha256sum", "s", 's'),
    function("sha512sum", "s", 's'),
    function("snakecase", "s", 's'),
    function("sortAlpha", "l", 'S'),
    function("split", "ss", 'm'),
    function("splitList", "ss", 'S'),
    function("splitn", "sws", 'm'),
    function("squote", "a*", 's'),
    function("sub", "nn", 'i'),
    function("subf", "nn*", 'f'),
    function("substr", "wws", 's'),
    function("swapcase", "s", 's'),
    function("ternary", "aab", 'a'),
    function("title", "s", 's'),
    function("untitle", "s", 's'),
    function("toDate", "oO", 't'),
    function("mustToDate", "oO", 't'),
    function("toDecimal", "n", 'i'),
    function("toJson", "a", 'j'),
    function("mustToJson", "a", 'j'),
    function("toPrettyJson", "a", 'j'),
    function("mustToPrettyJson", "a", 'j'),
    function("toRawJson", "a", 'j'),
    function("mustToRawJson", "a", 'j'),
    function("toString", "a", 's'),
    function("toStrings", "l", 'S'),
    function("toToml", "m", 'T'),
    function("mustToToml", "m", 'T'),
    function("toYaml", "a", 'y'),
    function("mustToYaml", "a", 'y'),
    function("toYamlPretty", "a", 'y'),
    function("trim", "s", 's'),
    function("trimAll", "ss", 's'),
    function("trimall", "ss", 's'),
    function("trimPrefix", "ss", 's'),
    function("trimSuffix", "ss", 's'),
    function("trunc", "ws", 's'),
    function("typeIs", "Ya", 'b'),
    function("typeIsLike", "Ya", 'b'),
    function("typeOf", "a", 's'),
    function("uniq", "l", 'l'),
    function("mustUniq", "l", 'l'),
    function("unixEpoch", "t", 's'),
    function("until", "w", 'l'),
    function("untilStep", "www", 'l'),
    function("upper", "s", 's'),
    function("urlJoin", "U", 's'),
    function("urlParse", "u", 'U'),
    function("without", "la*", 'l'),
    function("mustWithout", "la*", 'l'),
    function("wrap", "ws", 's'),
    function("wrapWith", "wss", 's'),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_function_is_called_or_left_out_for_a_reason() {
        let called: BTreeSet<&str> = FUNCTIONS.iter().map(|function| function.name).collect();
        let left_out: BTreeSet<&str> = LEFT_OUT.into_iter().collect();
        assert!(called.is_disjoint(&left_out));
        let known: BTreeSet<&str> = evenkeel_gotemplate::FuncMap::native_names().into_iter().collect();
        let of_charts = ["include", "tpl", "required", "fail", "lookup"];
        let forgotten: Vec<_> = known
            .iter()
            .filter(|name| !called.contains(*name) && !left_out.contains(*name))
            .collect();
        assert!(forgotten.is_empty(), "{forgotten:?}");
        let unknown: Vec<_> = called
            .union(&left_out)
            .filter(|name| !known.contains(*name) && !of_charts.contains(name))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
