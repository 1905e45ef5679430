//! `evenkeel operator` on a real control plane: custom resources looked after, and Lieutenant's API beside them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use evenkeel_testkit::{CallFault, FaultProxy, TestCluster};
use serde_json::{Value, json};

use crate::mothership::world::eventually;
use crate::program::{BOUND, Program, evenkeel};
use crate::ran::Ran;

/// A cluster that knows the kinds, and a namespace in it.
struct Land {
    cluster: &'static TestCluster,
    namespace: String,
    folder: tempfile::TempDir,
}

impl Land {
    fn new(name: &str) -> Self {
        let cluster = evenkeel_testkit::cluster("local");
        let definitions = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
        let land = Self {
            cluster,
            namespace: format!("{name}-{}", std::process::id()),
            folder: evenkeel_testkit::temp_dir(),
        };
        let definitions = definitions.to_str().unwrap();
        land.kubectl(&["apply", "--server-side", "-f", definitions]);
        land.kubectl(&[
            "wait",
            "--for=condition=Established",
            "--timeout=60s",
            "-f",
            definitions,
        ]);
        land.kubectl(&["create", "namespace", &land.namespace]);
        land
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        let ran = self.cluster.kubectl().args(arguments).output().unwrap();
        Ran::of(ran).exits(0).stdout
    }

    fn get(&self, what: &str) -> Value {
        let text = self.kubectl(&["-n", &self.namespace, "get", what, "-o", "json"]);
        serde_json::from_str(&text).unwrap()
    }

    /// A file with a tenant of this name, whose repository is not ours.
    fn tenant_file(&self, name: &str) -> String {
        let tenant = json!({
            "apiVersion": "syn.tools/v1alpha1", "kind": "Tenant",
            "metadata": { "name": name, "namespace": self.namespace },
            "spec": { "displayName": name, "gitRepoTemplate": { "repoType": "unmanaged" } },
        });
        let file = self.folder.path().join("tenant.yaml");
        std::fs::write(&file, tenant.to_string()).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// `evenkeel operator plan` in this namespace.
    fn plan(&self, kubeconfig: &Path, arguments: &[&str]) -> Ran {
        let mut command = evenkeel(self.folder.path());
        command.args(["operator", "plan", "--skip-vault-setup"]);
        command.args(["--watch-namespace", &self.namespace]);
        command.arg("--kubeconfig").arg(kubeconfig).args(arguments);
        Ran::of(command.output().unwrap())
    }

    fn operator(&self) -> Program {
        Program::start(
            evenkeel(self.folder.path())
                .args(["operator", "--skip-vault-setup", "--leader-elect"])
                .args(["--lieutenant-create-serviceaccount-token-secret"])
                .args(["--watch-namespace", &self.namespace])
                .args([
                    "--metrics-bind-address",
                    "0",
                    "--health-probe-bind-address",
                    "127.0.0.1:0",
                ])
                .args(["--api-bind-address", "127.0.0.1:0"])
                .arg("--kubeconfig")
                .arg(self.cluster.kubeconfig_file())
                .env("NAMESPACE", &self.namespace),
        )
    }
}

/// One call of Lieutenant's API: status and body.
fn call(address: &str, token: Option<&str>, request: &str, body: Option<&Value>) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    let body = body.map(Value::to_string).unwrap_or_default();
    let token = token.map_or_else(String::new, |token| format!("authorization: Bearer {token}\r\n"));
    let head = format!(
        "{request} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n{token}content-length: \
         {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split_whitespace().nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

#[test]
fn tenants_and_clusters_are_looked_after_and_installed() {
    let land = Land::new("land");
    let own = &land.namespace;
    land.kubectl(&["-n", own, "create", "serviceaccount", "caller"]);
    let (binding, account) = (format!("{own}-caller"), format!("--serviceaccount={own}:caller"));
    land.kubectl(&[
        "create",
        "clusterrolebinding",
        &binding,
        "--clusterrole=cluster-admin",
        &account,
    ]);
    let token = land.kubectl(&["-n", own, "create", "token", "caller"]);
    let token = Some(token.trim());

    let mut operator = land.operator();
    let said = operator.says("serving Lieutenant's API on http://");
    let address = said.rsplit('/').next().unwrap();
    assert_eq!(call(address, None, "GET /tenants", None).0, 401);
    let repository = json!({"type": "unmanaged", "url": "ssh://git@git.example.org/group/t-blue.git"});
    let tenant = json!({"id": "t-blue", "displayName": "Blue", "gitRepo": repository});
    let (status, made) = call(address, token, "POST /tenants", Some(&tenant));
    assert_eq!(status, 201, "{made}");
    let repository = json!({"type": "unmanaged", "url": "ssh://git@git.example.org/group/c-sky.git"});
    let cluster = json!({"id": "c-sky", "tenant": "t-blue", "displayName": "Sky", "gitRepo": repository,
                         "facts": {"cloud": "none"}});
    let (status, made) = call(address, token, "POST /clusters", Some(&cluster));
    assert_eq!(status, 201, "{made}");

    let ready = |what: &str, condition: &str| {
        eventually(what, || {
            let object = land.get(what);
            let conditions = object["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let is_met = |one: &Value| one["type"] == condition && one["status"] == "True";
            conditions
                .iter()
                .any(is_met)
                .then_some(())
                .ok_or_else(|| object.to_string())
        });
    };
    ready("tenant/t-blue", "RbacReady");
    ready("cluster/c-sky", "RbacReady");
    // The agent of the new cluster is installed by a token that is good once.
    let url = eventually("the address of the manifest", || {
        let (_, cluster) = call(address, token, "GET /clusters/c-sky", None);
        cluster["installURL"]
            .as_str()
            .map(ToOwned::to_owned)
            .ok_or_else(|| cluster.to_string())
    });
    let path = url.split_once("/install/").unwrap().1;
    let install = format!("GET /install/{path}");
    let manifest = eventually("the manifest, with the token of the account", || {
        match call(address, None, &install, None) {
            (200, manifest) => Ok(manifest),
            // Kubernetes makes the account's token in its own time; ours is not used up meanwhile.
            (503, why) => Err(why.to_string()),
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(manifest["kind"], "List", "{manifest}");
    assert_eq!(call(address, None, &install, None).0, 401, "it is good once");

    operator.signal("TERM");
    assert_eq!(operator.ends(BOUND).code(), Some(0), "{operator:?}");
    let one_time = path.split_once("token=").unwrap().1;
    assert!(
        !operator.stderr().join("\n").contains(one_time),
        "no log has the token"
    );
    let lease = land.get("lease/9b76ddd4.syn.tools");
    assert_eq!(
        lease["spec"]["holderIdentity"].as_str().unwrap_or_default(),
        "",
        "given back: {lease}"
    );
}

/// What would be done is told, for people and programs, and nothing is done (E12).
#[test]
fn a_plan_is_shown_and_nothing_is_changed() {
    let land = Land::new("plan");
    let file = land.tenant_file("t-plan");
    let plan = |arguments: &[&str]| land.plan(land.cluster.kubeconfig_file(), arguments);
    plan(&[])
        .exits(0)
        .prints(&["0 objects, of which 0 would be changed"]);
    // As it would be once it is applied; and it is not.
    plan(&["-f", &file])
        .exits(2)
        .prints(&["Tenant", "claim  planned", "create Role t-plan"]);
    land.kubectl(&["apply", "--server-side", "-f", &file]);
    let before = land.get("tenant/t-plan");
    let ran = plan(&["tenant/t-plan", "-o", "json"]).exits(2);
    let plans: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(plans[0]["name"], "t-plan", "{plans}");
    assert!(
        plans[0]["digest"].as_str().unwrap().starts_with("sha256:"),
        "{plans}"
    );
    let steps = plans[0]["steps"].as_array().unwrap();
    let step = |name: &str| steps.iter().find(|step| step["step"] == name).unwrap();
    assert_eq!(
        step("role")["changes"][0],
        json!({ "verb": "create", "target": "Role t-plan" })
    );
    assert_eq!(step("token-secret")["skip"], "not_selected");
    assert_eq!(step("token-secret")["why"], "token secrets is false");
    plan(&["--changed"])
        .exits(2)
        .prints(&["1 objects, of which 1 would be changed"]);
    assert_eq!(land.get("tenant/t-plan"), before, "nothing was written");
    plan(&["tenant/t-none"]).exits(1).says(&["t-none"]);
    plan(&["secret/x"]).exits(2).says(&["tenant, cluster or gitrepo"]);
}

/// The API server answers 429 while it begins with a kind or has enough for a moment: whichever question of a plan that meets,
/// the plan is there in the end.
#[test]
fn a_plan_asks_again_what_the_server_has_no_time_for() {
    let land = Land::new("busy");
    land.kubectl(&["apply", "--server-side", "-f", &land.tenant_file("t-busy")]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let proxy = runtime.block_on(async { FaultProxy::start(land.cluster.client().await).await });
    let kubeconfig = land.folder.path().join("busy.kubeconfig");
    std::fs::write(&kubeconfig, proxy.kubeconfig()).unwrap();
    let plan = || land.plan(&kubeconfig, &["tenant/t-busy"]);
    let calm = plan().exits(2).stdout;
    // Until there is no such question: one or two depend on what comes first.
    let mut met = 0;
    loop {
        proxy.fail(met, CallFault::TooManyRequests);
        assert_eq!(plan().exits(2).stdout, calm, "question {met}");
        if !proxy.heal() {
            break;
        }
        met += 1;
    }
    assert!(met > 2, "{met} questions");
}

/// The pipelines are printed without any cluster.
#[test]
fn the_pipelines_are_described() {
    let folder = evenkeel_testkit::temp_dir();
    let describe = |arguments: &[&str]| {
        let mut command = evenkeel(folder.path());
        Ran::of(
            command
                .args(["operator", "describe"])
                .args(arguments)
                .output()
                .unwrap(),
        )
        .exits(0)
    };
    describe(&[]).prints(&[
        "pipeline tenant\n",
        "pipeline gitrepo.teardown",
        "may      git: create repositories",
    ]);
    describe(&["--dot"]).prints(&["digraph \"cluster\"", "\"claim\" -> \"role\""]);
}

/// What cannot be understood is refused before anything is done, with what was expected.
#[test]
fn settings_that_cannot_be_used_are_refused() {
    let folder = evenkeel_testkit::temp_dir();
    let refused = |arguments: &[&str], variable: (&str, &str), words: &[&str]| {
        let mut command = evenkeel(folder.path());
        command
            .arg("operator")
            .args(arguments)
            .env(variable.0, variable.1);
        let ran = Ran::of(command.output().unwrap()).exits(2);
        for word in words {
            assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr);
        }
    };
    refused(
        &[],
        ("DEFAULT_DELETION_POLICY", "Sometimes"),
        &["Sometimes", "Archive, Delete and Retain"],
    );
    refused(&[], ("LEADER_ELECT", "perhaps"), &["perhaps"]);
    refused(&[], ("VAULT_ADDR", ""), &["VAULT_ADDR", "--skip-vault-setup"]);
    let skip = ["--skip-vault-setup", "--api-bind-address", "somewhere"];
    refused(&skip, ("A", "b"), &["somewhere", ":8080"]);
    refused(
        &["--skip-vault-setup"],
        ("METRICS_BIND_ADDRESS", ":many"),
        &[":many"],
    );
}
