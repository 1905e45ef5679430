//! Servers that refuse to run as root.

use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;

/// A new folder for one server inside one for its instance, and the user that it belongs to and that shall run in it.
#[derive(Debug)]
pub(crate) struct Instance {
    /// The server's folder. Whoever starts no server in it calls [`Self::remove`].
    pub(crate) folder: PathBuf,
    /// Numeric user and group; none but our own, unless we are root.
    pub(crate) user: Option<(u32, u32)>,
}

impl Instance {
    /// Makes it. Names of the folders start with `prefix`; `server` is for errors.
    pub(crate) fn new(server: &'static str, prefix: &str) -> Result<Self, Error> {
        let doing = format!("create a temporary folder for {server}");
        let instance = tempfile::Builder::new()
            .prefix(prefix)
            .tempdir()
            .map_err(Error::io(doing.as_str()))?;
        let folder = instance.path().join("server");
        std::fs::create_dir(&folder).map_err(Error::io(doing.as_str()))?;
        // What we create is ours: the portable way to ask who we are.
        let is_root = folder.metadata().map_err(Error::io(doing.as_str()))?.uid() == 0;
        let made = Self {
            folder,
            user: if is_root {
                Some(unprivileged_user(server)?)
            } else {
                None
            },
        };
        made.give(instance.path())?;
        made.give(&made.folder)?;
        // From here on the watcher of the server removes both.
        let _ = instance.keep();
        Ok(made)
    }

    /// Another folder of the same instance and user.
    pub(crate) fn sibling(&self, name: &str) -> Result<Self, Error> {
        let folder = self.folder.with_file_name(name);
        std::fs::create_dir(&folder).map_err(Error::io(format!("create {}", folder.display())))?;
        let made = Self {
            folder,
            user: self.user,
        };
        made.give(&made.folder)?;
        Ok(made)
    }

    /// Makes `path` the user's.
    fn give(&self, path: &Path) -> Result<(), Error> {
        let Some((user, group)) = self.user else {
            return Ok(());
        };
        chown(path, Some(user), Some(group))
            .map_err(Error::io(format!("give {} to another user", path.display())))
    }

    /// Writes a file that the user may change.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.folder.join(name);
        std::fs::write(&path, text).map_err(Error::io(format!("write {}", path.display())))?;
        self.give(&path)?;
        Ok(path)
    }

    /// Lets `command` run as the user.
    pub(crate) fn run_as(&self, command: &mut Command) {
        use std::os::unix::process::CommandExt as _;

        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
    }

    /// Removes it, where no server was started in it.
    pub(crate) fn remove(&self) {
        if let Some(instance) = self.folder.parent() {
            let _ = std::fs::remove_dir_all(instance);
        }
    }
}

#[cfg(any(feature = "gitea", feature = "vault"))]
impl Instance {
    /// A folder with the contents of `part` that the user can reach: the folder itself, or links to its files, since
    /// the home of root is closed to everybody else.
    pub(crate) fn reach(&self, part: &Path) -> Result<PathBuf, Error> {
        if self.user.is_none() {
            return Ok(part.to_owned());
        }
        let linked = self.folder.join("part");
        self.link(part, &linked).map_err(Error::io(format!(
            "link {} to {}",
            part.display(),
            linked.display()
        )))?;
        Ok(linked)
    }

    fn link(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        std::fs::create_dir(to)?;
        if let Some((user, group)) = self.user {
            chown(to, Some(user), Some(group))?;
        }
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            let target = to.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                self.link(&entry.path(), &target)?;
            } else if std::fs::hard_link(entry.path(), &target).is_err() {
                // Another file system.
                std::fs::copy(entry.path(), &target)?;
            }
        }
        Ok(())
    }
}

/// User and group to run as in root's stead.
fn unprivileged_user(server: &'static str) -> Result<(u32, u32), Error> {
    let passwd = std::fs::read_to_string("/etc/passwd").map_err(Error::io("read /etc/passwd"))?;
    ["postgres", "nobody"]
        .iter()
        .find_map(|name| user_in(&passwd, name))
        .ok_or(Error::NoUnprivilegedUser { server })
}

/// User and group id of a line of `/etc/passwd`.
fn user_in(passwd: &str, name: &str) -> Option<(u32, u32)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let user = fields.nth(1)?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        Some((user, group))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        let passwd =
            "root:x:0:0:root:/root:/bin/bash\npostgres:x:105:113:,,,:/var/lib/postgresql:/bin/bash\n";
        assert_eq!(user_in(passwd, "postgres"), Some((105, 113)));
        assert_eq!(user_in(passwd, "post"), None);
        assert_eq!(user_in("broken", "broken"), None);
    }

    #[test]
    fn a_part_is_reached_with_all_its_files() {
        let part = tempfile::tempdir().unwrap();
        std::fs::create_dir(part.path().join("options")).unwrap();
        std::fs::write(part.path().join("options/locale"), "en").unwrap();
        let instance = Instance::new("a test", "ek-test-").unwrap();
        let reached = instance.reach(part.path()).unwrap();
        assert_eq!(
            std::fs::read_to_string(reached.join("options/locale")).unwrap(),
            "en"
        );
        instance.remove();
        assert!(!instance.folder.exists());
        assert!(
            part.path().join("options/locale").exists(),
            "the part itself stays"
        );
    }
}
