//! `template --verify`: signatures of charts judged beside the real Helm, down to the words of its errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::serving::Serving;
use crate::template::{Oracle, difference, no_differences, repository};

const CHART: &str = "signed-1.0.0.tgz";
const PROVENANCE: &str = "signed-1.0.0.tgz.prov";
/// Signatures that Helm accepts and that cannot be checked here: of curves and hashes that aws-lc-rs does not have.
const UNCHECKED: [&str; 3] = ["brainpool", "ed448", "rsa-sha224"];

fn data() -> PathBuf {
    repository().join("crates/source/tests/data/provenance")
}

fn key_of(signature: &str) -> PathBuf {
    let name = signature.strip_prefix("helm-").unwrap_or(signature);
    let name = name.split("-sha").next().unwrap_or_default();
    let name = if name == "text" { "rsa" } else { name };
    data().join(format!("keys/{name}.asc"))
}

/// The last line of standard error, which tells what went wrong.
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines().last().unwrap_or_default().to_owned()
}

/// A folder with the chart, and the file of its signature.
struct Signed {
    folder: tempfile::TempDir,
    oracle: Oracle,
    differences: Vec<String>,
}

impl Signed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(data().join(CHART), folder.path().join(CHART)).unwrap();
        Self {
            folder,
            oracle: Oracle::new(),
            differences: Vec::new(),
        }
    }

    fn sign(&self, provenance: &[u8]) {
        fs::write(self.folder.path().join(PROVENANCE), provenance).unwrap();
    }

    /// Both print the same, end the same and say the same.
    fn same(&mut self, case: &str, arguments: &[&str]) -> Output {
        let arguments = [&["template", "x", "--verify"], arguments].concat();
        let theirs = self.oracle.helm(self.folder.path(), &arguments);
        let ours = Oracle::evenkeel(self.folder.path(), &arguments);
        if let Some(difference) = difference(&theirs, &ours) {
            self.differences.push(format!("{case}: {difference}"));
        } else if said(&theirs) != said(&ours) {
            self.differences.push(format!(
                "{case}:\n  Helm says: {}\n  Evenkeel says: {}",
                said(&theirs),
                said(&ours)
            ));
        }
        theirs
    }

    fn done(self) {
        no_differences(self.differences);
    }
}

#[test]
fn signatures_are_judged_as_helm_judges_them() {
    let mut signed = Signed::new();
    let (mut accepted, mut refused) = (0, 0);
    for file in fs::read_dir(data().join("signatures")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if UNCHECKED.contains(&name.as_str()) {
            continue;
        }
        signed.sign(&fs::read(&path).unwrap());
        let keys = key_of(&name);
        let ended = signed.same(&name, &[CHART, "--keyring", keys.to_str().unwrap()]);
        if ended.status.success() {
            accepted += 1;
        } else {
            refused += 1;
        }
    }
    assert!(accepted > 20 && refused > 4, "{accepted} {refused}");
    for (keyring, signers) in [
        ("all.gpg", ["rsa", "subkey"]),
        ("pubring.kbx", ["ed25519", "p256"]),
        ("sec-ed25519.gpg", ["ed25519", "rsa"]),
        ("certonly.asc", ["rsa", "ed25519"]),
        ("../README.md", ["rsa", "ed25519"]),
        ("nothing.gpg", ["rsa", "ed25519"]),
    ] {
        let keys = data().join("keys").join(keyring);
        for signer in signers {
            signed.sign(&fs::read(data().join(format!("signatures/{signer}.prov"))).unwrap());
            signed.same(keyring, &[CHART, "--keyring", keys.to_str().unwrap()]);
        }
    }
    signed.done();
}

#[test]
fn what_is_not_what_was_signed_is_refused_in_helms_words() {
    let mut signed = Signed::new();
    let good = fs::read(data().join("signatures/ed25519.prov")).unwrap();
    let keys = key_of("ed25519");
    let keyring = ["--keyring", keys.to_str().unwrap()];
    let same = |case: &str, signed: &mut Signed, chart: &str| {
        let ended = signed.same(case, &[&[chart], &keyring[..]].concat());
        assert!(!ended.status.success(), "{case}");
    };
    same("no signature", &mut signed, CHART);
    same("no chart", &mut signed, "./nothing.tgz");
    for (case, text) in [
        ("no block", "files: {}\n"),
        ("empty", ""),
        (
            "two texts",
            "-----BEGIN PGP SIGNED MESSAGE-----\nHash: MD7\n\na\n-----BEGIN PGP SIGNATURE-----\n",
        ),
    ] {
        signed.sign(text.as_bytes());
        same(case, &mut signed, CHART);
    }
    let text = String::from_utf8(good.clone()).unwrap();
    for (case, from, to) in [
        ("another text", "name: signed", "name: Signed"),
        ("another digest", "sha256:0", "sha256:1"),
        (
            "an armor without its end",
            "-----END PGP SIGNATURE",
            "-----END PGP",
        ),
        ("base64 that is none", "\niI", "\ni*"),
        ("base64 that is none at its start", "\niI", "\n*I"),
        ("a packet that is none", "\niI", "\nAA"),
        ("padding in between", "\niI", "\n=="),
        ("another version of signatures", "\niIoE", "\niIoD"),
    ] {
        assert!(text.contains(from), "{case}");
        signed.sign(text.replacen(from, to, 1).as_bytes());
        same(case, &mut signed, CHART);
    }
    for cut in [1, 2, 3, 4, 17, 40, 64, 100] {
        let end = text.find("\n=").unwrap();
        let short = format!("{}{}", &text[..end - cut], &text[end..]);
        signed.sign(short.as_bytes());
        same(&format!("{cut} characters too few"), &mut signed, CHART);
    }
    signed.sign(&good);
    let folder = signed.folder.path().to_owned();
    fs::write(
        folder.join("other-1.0.0.tgz"),
        fs::read(folder.join(CHART)).unwrap(),
    )
    .unwrap();
    fs::write(folder.join("other-1.0.0.tgz.prov"), &good).unwrap();
    same("another name", &mut signed, "other-1.0.0.tgz");
    fs::write(folder.join("signed.tar"), "").unwrap();
    same("no archive", &mut signed, "signed.tar");
    fs::create_dir(folder.join("unpacked")).unwrap();
    same("a directory", &mut signed, "unpacked");
    let mut changed = fs::read(folder.join(CHART)).unwrap();
    changed.push(0);
    fs::write(folder.join(CHART), changed).unwrap();
    same("a changed archive", &mut signed, CHART);
    signed.done();
}

#[test]
fn the_keyring_of_gnupg_is_the_usual_one() {
    let signed = Signed::new();
    signed.sign(&fs::read(data().join("signatures/rsa.prov")).unwrap());
    let home = tempfile::tempdir().unwrap();
    let ended = || {
        let run = |mut command: std::process::Command| {
            command
                .args(["template", "x", CHART, "--verify"])
                .current_dir(signed.folder.path())
                .env("GNUPGHOME", home.path())
                .output()
                .unwrap()
        };
        let theirs = run(signed.oracle.helm_command());
        let ours = run(std::process::Command::new(env!("CARGO_BIN_EXE_evenkeel")));
        assert_eq!(difference(&theirs, &ours), None);
        assert_eq!(said(&theirs), said(&ours));
        ours.status.success()
    };
    assert!(!ended());
    fs::copy(data().join("keys/pubring.kbx"), home.path().join("pubring.kbx")).unwrap();
    assert!(ended());
    fs::copy(data().join("keys/all.gpg"), home.path().join("pubring.gpg")).unwrap();
    assert!(ended());
    fs::write(home.path().join("pubring.gpg"), "").unwrap();
    assert!(!ended());
}

/// A repository whose archive has its signature beside it, as Helm's users publish them.
fn repository_of(folder: &Path) -> Serving {
    let repository = folder.join("repo");
    fs::create_dir_all(&repository).unwrap();
    fs::copy(data().join(CHART), repository.join(CHART)).unwrap();
    let provenance = data().join("signatures/helm-rsa.prov");
    fs::copy(provenance, repository.join(PROVENANCE)).unwrap();
    fs::create_dir_all(repository.join("bare")).unwrap();
    fs::copy(data().join(CHART), repository.join("bare").join(CHART)).unwrap();
    let server = Serving::start(&repository);
    let index = format!(
        "apiVersion: v1\nentries:\n  signed:\n  - {{name: signed, version: 1.0.0, urls: [{:?}]}}\n",
        server.url(CHART)
    );
    fs::write(repository.join("index.yaml"), index).unwrap();
    server
}

#[test]
fn signatures_of_repositories_are_fetched_and_judged() {
    let mut signed = Signed::new();
    let server = repository_of(signed.folder.path());
    let right = key_of("rsa");
    let wrong = key_of("ed25519");
    let (right, wrong) = (right.to_str().unwrap(), wrong.to_str().unwrap());
    let (repo, archive) = (server.url(""), server.url(CHART));
    for keyring in [right, wrong, "/nothing"] {
        let keyring = ["--keyring", keyring];
        signed.same(
            "by repository",
            &[&["signed", "--repo", &repo], &keyring[..]].concat(),
        );
        signed.same("by address", &[&[archive.as_str()], &keyring[..]].concat());
    }
    let bare = server.url(&format!("bare/{CHART}"));
    let arguments = ["template", "x", &bare, "--verify", "--keyring", right];
    // One that has not seen the archive before: Helm keeps signatures by the digests of charts.
    let theirs = Oracle::new().helm(signed.folder.path(), &arguments);
    let ours = Oracle::evenkeel(signed.folder.path(), &arguments);
    assert_eq!(difference(&theirs, &ours), None);
    // Helm does not tell why.
    assert!(
        said(&theirs).starts_with("Error: failed to fetch provenance"),
        "{}",
        said(&theirs)
    );
    assert!(said(&ours).starts_with(&said(&theirs)), "{}", said(&ours));
    assert!(said(&ours).contains("404"), "{}", said(&ours));
    signed.done();
}

#[test]
fn values_are_read_from_addresses_as_helm_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let oracle = Oracle::new();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n");
    write("c/templates/a.yaml", "values: {{ .Values | toJson }}\n");
    write("web/a.yaml", "a: 1\nb: {c: 2}\n");
    write("web/b.yaml", "b: {c: 3}\n");
    write("web/bad.yaml", "a: [\n");
    write("web/private/p.yaml", "p: 1\n");
    write("here.yaml", "here: 1\n");
    write("a%zz.yaml", "z: 1\n");
    let server = Serving::start(&folder.path().join("web"));
    let url = |path: &str| server.url(path);
    let known = url("private/p.yaml").replace("http://", "http://me:open@");
    let (a, b, text) = (url("a.yaml"), url("b.yaml"), format!("text={}", url("b.yaml")));
    let (shouted, queried) = (url("b.yaml").replace("http", "HTTP"), url("b.yaml?x=1"));
    let cases: Vec<(Vec<&str>, bool)> = vec![
        (vec!["-f", &a], true),
        (vec!["-f", &a, "-f", &b, "-f", "here.yaml"], true),
        (vec!["--set-file", &text], true),
        (vec!["-f", &shouted, "-f", &queried], true),
        (vec!["-f", &known], true),
        (vec!["-f", "s3://bucket/values.yaml"], false),
        (vec!["-f", "a%zz.yaml"], false),
        (vec!["-f", "1:2"], false),
    ];
    let mut differences = Vec::new();
    for (arguments, succeeds) in cases {
        let arguments = [&["template", "x", "c"], arguments.as_slice()].concat();
        let theirs = oracle.helm(folder.path(), &arguments);
        let ours = Oracle::evenkeel(folder.path(), &arguments);
        assert_eq!(
            theirs.status.success(),
            succeeds,
            "{arguments:?} {}",
            said(&theirs)
        );
        differences.extend(difference(&theirs, &ours).map(|text| format!("{arguments:?}: {text}")));
    }
    for (path, words) in [
        ("nothing.yaml", "404 Not Found"),
        ("private/p.yaml", "401 Unauthorized"),
        ("bad.yaml", "failed to parse"),
    ] {
        let address = url(path);
        let arguments = ["template", "x", "c", "-f", &address];
        let theirs = oracle.helm(folder.path(), &arguments);
        let ours = Oracle::evenkeel(folder.path(), &arguments);
        differences.extend(difference(&theirs, &ours));
        for said in [said(&theirs), said(&ours)] {
            assert!(said.contains(words) && said.contains(&address), "{said}");
        }
    }
    no_differences(differences);
}
