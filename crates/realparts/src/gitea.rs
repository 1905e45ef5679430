//! A Gitea server: Git hosting, Helm repository and OCI registry for tests.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::loopback::{Body, Credentials, Failure, request};
use crate::supervisor::{Ending, Server};
use crate::unprivileged::Instance;
use crate::{Error, binaries, ports};

/// How long tables, administrator and server may take on a busy machine. An idle one needs 3 s.
const START_BOUND: Duration = Duration::from_secs(90);

/// How often a start is tried again because another process took the port first.
const PORT_TRIES: usize = 5;

/// The administrator, whose namespace for packages and repositories is there from the start.
const ADMIN: &str = "evenkeel";
const ADMIN_PASSWORD: &str = "even-keel-1";

/// Makes tables and administrator, then becomes the server: so all of it has the one supervisor.
/// usage: sh -c START gitea BINARY FOLDER ADMIN PASSWORD
const START: &str = r#"
set -e
binary=$1 folder=$2
gitea() { "$binary" --config "$folder/app.ini" --work-path "$folder/data" "$@"; }
gitea migrate
gitea admin user create --username "$3" --password "$4" --email "$3@example.com" --admin --must-change-password=false
exec "$binary" --config "$folder/app.ini" --work-path "$folder/data" web
"#;

/// A running Gitea with an administrator, on loopback, without TLS. It forgets everything when dropped.
#[derive(Debug)]
pub struct Gitea {
    server: Server,
    port: u16,
    token: String,
}

/// Who may see an organisation, its repositories and its packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Everybody, without signing in.
    Public,
    /// Its members.
    Private,
}

/// Somebody who can sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Name, which is also the owner of the user's repositories and packages.
    pub name: String,
    /// Password.
    pub password: String,
}

impl Gitea {
    /// Starts a server in a temporary folder, as an unprivileged user if we are root, and waits until it answers.
    ///
    /// # Errors
    /// When the binary is missing, or it does not start; with the last lines of its log.
    pub fn start() -> Result<Self, Error> {
        let binary = binaries::gitea_binary()?;
        let mut tries = 0;
        loop {
            tries += 1;
            match Self::start_on(&binary, ports::free()?) {
                Err(Error::Start { last_lines, .. })
                    if last_lines.contains("address already in use") && tries < PORT_TRIES => {}
                result => return result,
            }
        }
    }

    fn start_on(binary: &Path, port: u16) -> Result<Self, Error> {
        let instance = Instance::new("Gitea", "ek-git-")?;
        let mut server = match launch(&instance, binary, port) {
            Ok(server) => server,
            Err(error) => {
                instance.remove();
                return Err(error);
            }
        };
        server.wait_until("ready", START_BOUND, || {
            let answer = request(
                port,
                Method::GET,
                "/api/v1/version",
                &Credentials::None,
                Body::None,
            );
            Ok(answer.is_ok_and(|(status, _)| status == 200))
        })?;
        let mut gitea = Self {
            server,
            port,
            token: String::new(),
        };
        gitea.token = gitea.create_token(&gitea.admin())?;
        Ok(gitea)
    }

    /// Address for browsers, Git and the REST interface: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.host())
    }

    /// Host and port, as the names of images and OCI charts begin with: `127.0.0.1:PORT`.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The TCP port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The administrator.
    pub fn admin(&self) -> User {
        User {
            name: ADMIN.to_owned(),
            password: ADMIN_PASSWORD.to_owned(),
        }
    }

    /// A token of the administrator that may do everything.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Address of an owner's Helm repository, below which lie `index.yaml` and the archives.
    pub fn helm_repository(&self, owner: &str) -> String {
        format!("{}/api/packages/{owner}/helm", self.url())
    }

    /// Address of an owner's charts in the OCI registry, to which the chart's name is added. It speaks plain HTTP.
    pub fn oci_registry(&self, owner: &str) -> String {
        format!("oci://{}/{owner}", self.host())
    }

    /// Address to clone a repository from. Who may not see it without signing in puts `name:password@` before the
    /// host.
    pub fn clone_url(&self, owner: &str, repository: &str) -> String {
        format!("{}/{owner}/{repository}.git", self.url())
    }

    /// The log file, for as long as the server runs.
    pub fn log(&self) -> &Path {
        self.server.log()
    }

    /// Creates an organisation.
    ///
    /// # Errors
    /// When it exists, or the name is not allowed.
    pub fn create_organization(&self, name: &str, visibility: Visibility) -> Result<(), Error> {
        let visibility = match visibility {
            Visibility::Public => "public",
            Visibility::Private => "private",
        };
        let body = json!({ "username": name, "visibility": visibility });
        self.call(Method::POST, "orgs", body).map(drop)
    }

    /// Creates a user with a password.
    ///
    /// # Errors
    /// When it exists, or the name is not allowed.
    pub fn create_user(&self, name: &str) -> Result<User, Error> {
        let user = User {
            name: name.to_owned(),
            password: format!("password-of-{name}"),
        };
        let body = json!({
            "username": user.name, "password": user.password, "email": format!("{name}@example.com"),
            "must_change_password": false,
        });
        self.call(Method::POST, "admin/users", body)?;
        Ok(user)
    }

    /// Creates a token of that user, good for everything the user may do.
    ///
    /// # Errors
    /// When the password is wrong.
    pub fn create_token(&self, user: &User) -> Result<String, Error> {
        let path = format!("v1/users/{}/tokens", user.name);
        let name = format!("token-{}", std::process::id());
        let body = json!({ "name": name, "scopes": ["all"] });
        let answer = self.call_as(
            &Credentials::Password {
                name: &user.name,
                password: &user.password,
            },
            Method::POST,
            &path,
            Body::Json(&body),
        )?;
        Ok(answer["sha1"].as_str().unwrap_or_default().to_owned())
    }

    /// Creates a repository with one commit, of a README, on branch `main`. `owner` is an organisation or a user.
    ///
    /// # Errors
    /// When there is no such owner, or the repository exists.
    pub fn create_repository(&self, owner: &str, name: &str, visibility: Visibility) -> Result<(), Error> {
        let body = json!({
            "name": name, "auto_init": true, "default_branch": "main",
            "private": visibility == Visibility::Private,
        });
        let is_organization = self
            .call(Method::GET, &format!("orgs/{owner}"), Value::Null)
            .is_ok();
        let path = if is_organization {
            format!("orgs/{owner}/repos")
        } else {
            format!("admin/users/{owner}/repos")
        };
        self.call(Method::POST, &path, body).map(drop)
    }

    /// Puts a packaged chart into an owner's Helm repository, as the administrator. The same version again takes the
    /// place of what was there.
    ///
    /// # Errors
    /// When it is no chart.
    pub fn upload_chart(&self, owner: &str, archive: &[u8]) -> Result<(), Error> {
        let path = format!("packages/{owner}/helm/api/charts");
        let credentials = Credentials::Header("Authorization", format!("token {}", self.token));
        self.call_as(&credentials, Method::POST, &path, Body::Bytes(archive))
            .map(drop)
    }

    /// Calls the REST interface as the administrator. `path` is what follows `/api/v1/`; a null body is none. Gives
    /// back the JSON of the answer, null where there is none.
    ///
    /// # Errors
    /// [`Error::Refused`] when the answer is no success, [`Error::Http`] when there is none.
    pub fn call(&self, method: Method, path: &str, body: Value) -> Result<Value, Error> {
        let body = if body.is_null() {
            Body::None
        } else {
            Body::Json(&body)
        };
        self.call_as(
            &Credentials::Header("Authorization", format!("token {}", self.token)),
            method,
            &format!("v1/{path}"),
            body,
        )
    }

    fn call_as(
        &self,
        credentials: &Credentials<'_>,
        method: Method,
        path: &str,
        body: Body<'_>,
    ) -> Result<Value, Error> {
        let doing = format!("{method} {path} at Gitea");
        let (status, answer) = request(self.port, method, &format!("/api/{path}"), credentials, body)
            .map_err(|failure| match failure {
                Failure::Io(error) => error,
                Failure::Http(source) => Error::Http {
                    doing: doing.clone(),
                    source,
                },
            })?;
        if !(200..300).contains(&status) {
            return Err(Error::Refused {
                server: "Gitea",
                doing,
                status,
                answer,
            });
        }
        // A success without JSON, as of an upload, says all by its status.
        Ok(serde_json::from_str(&answer).unwrap_or_default())
    }
}

/// Writes the settings and starts the server.
fn launch(instance: &Instance, binary: &Path, port: u16) -> Result<Server, Error> {
    let part = instance.reach(binary.parent().unwrap_or(binary))?;
    let folder = &instance.folder;
    instance.write("app.ini", &settings(folder, &part, port))?;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", START, "gitea"]).arg(part.join("gitea"));
    command.arg(folder).args([ADMIN, ADMIN_PASSWORD]);
    command.env("HOME", folder).env_remove("GITEA_WORK_DIR");
    command.env_remove("XDG_CONFIG_HOME");
    Server::start("gitea", &command, folder, Ending::Kill, instance.user)
}

/// Nothing that is not needed, nothing that leaves the machine, everything in the one folder. The secrets protect
/// nothing: server and data end with the test.
fn settings(folder: &Path, part: &Path, port: u16) -> String {
    let (folder, part) = (folder.display(), part.display());
    let secret = "0123456789abcdef".repeat(4);
    // A signed token, as Gitea demands; it is for calls of Gitea to itself.
    let internal = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJuYmYiOjE3NjAwMDAwMDB9.\
                    X4H2uzhBS2MFZH1aDLbYyiSGqjsl9EpGH1NQFrOFIhI";
    format!(
        "APP_NAME = Evenkeel tests\n\
         RUN_MODE = prod\n\
         WORK_PATH = {folder}/data\n\
         [server]\n\
         PROTOCOL = http\n\
         HTTP_ADDR = 127.0.0.1\n\
         HTTP_PORT = {port}\n\
         ROOT_URL = http://127.0.0.1:{port}/\n\
         STATIC_ROOT_PATH = {part}\n\
         DISABLE_SSH = true\n\
         OFFLINE_MODE = true\n\
         [database]\n\
         DB_TYPE = sqlite3\n\
         PATH = {folder}/data/gitea.db\n\
         SQLITE_JOURNAL_MODE = WAL\n\
         [security]\n\
         INSTALL_LOCK = true\n\
         SECRET_KEY = {secret}\n\
         INTERNAL_TOKEN = {internal}\n\
         [service]\n\
         DISABLE_REGISTRATION = true\n\
         [repository]\n\
         ROOT = {folder}/data/repositories\n\
         DEFAULT_BRANCH = main\n\
         [indexer]\n\
         ISSUE_INDEXER_TYPE = db\n\
         [queue]\n\
         TYPE = channel\n\
         [session]\n\
         PROVIDER = memory\n\
         [webhook]\n\
         ALLOWED_HOST_LIST = *\n\
         [log]\n\
         MODE = console\n\
         LEVEL = Warn\n\
         ROOT_PATH = {folder}/data/log\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_keep_everything_in_the_folder() {
        let text = settings(
            Path::new("/tmp/instance/server"),
            Path::new("/cache/gitea"),
            20_001,
        );
        assert!(text.contains("ROOT_URL = http://127.0.0.1:20001/\n"), "{text}");
        assert!(text.contains("STATIC_ROOT_PATH = /cache/gitea\n"), "{text}");
        for line in text.lines().filter(|line| line.contains("= /")) {
            let value = line.split_once(" = ").unwrap().1;
            assert!(
                value.starts_with("/tmp/instance/server/") || value == "/cache/gitea",
                "{line}"
            );
        }
    }
}
