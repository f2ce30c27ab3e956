//! The file with the users of a fleet's server, which Plimsoll rewrites when hosts are added or
//! removed. `nats.conf` includes this file; `nats.conf` itself may be edited by the operator.

use plimsoll_evidence::seal::sha256_hex;
use plimsoll_runner::error::RunnerError;

use crate::permissions::Permissions;

/// Name of the file with the users. It is in the same directory as `nats.conf`.
pub(crate) const FILE: &str = "users.conf";
/// Start of the file; the SHA-256 covers all lines after it.
const HEAD: &str = "# The users of a Plimsoll fleet's server. `plimsoll fleet add` and `remove` write them anew, \
                    where nobody else changed them:\n# SHA-256 ";
const LIST_START: &str = "users: [\n";
const LIST_END: &str = "]\n";
const USER_END: &str = "\n    }\n";

#[derive(Clone, Debug, PartialEq, Eq)]
struct User {
    /// Name of the agent, or of the coordinator.
    name: String,
    /// The lines of the file that describe the user.
    text: String,
}

/// All users, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Users(Vec<User>);

impl Users {
    /// Parses the file. Fails if it was changed by hand.
    pub(crate) fn read(text: &str) -> Result<Self, RunnerError> {
        let changed = || {
            RunnerError::usage(format!("{FILE} was changed by hand since Plimsoll wrote it")).hint(
                "this command rewrites the file: undo your change, repeat the command, then make \
                 your change again",
            )
        };
        let body = text.strip_prefix(HEAD).and_then(|rest| rest.split_once('\n'));
        let Some((_, body)) = body.filter(|(sha, body)| *sha == sha256_hex(body.as_bytes())) else {
            return Err(changed());
        };
        let list = body.strip_prefix(LIST_START).and_then(|body| body.strip_suffix(LIST_END));
        let users = list.ok_or_else(changed)?.split_inclusive(USER_END).map(|text| {
            let name = text.lines().next()?.trim_start().strip_prefix("# ")?.to_owned();
            Some(User { name, text: text.to_owned() })
        });
        users.collect::<Option<Vec<_>>>().map(Self).ok_or_else(changed)
    }

    pub(crate) fn add(&mut self, name: &str, public_key: &str, permissions: &Permissions) {
        let permissions = permissions.text("      ");
        let text = format!(
            "    # {name}\n    {{ nkey: {public_key}\n      permissions: {permissions}{USER_END}"
        );
        self.0.push(User { name: name.to_owned(), text });
    }

    /// Removes a user. Returns true if the user existed.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|user| user.name != name);
        self.0.len() < before
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|user| user.name == name)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Formats the file.
    pub(crate) fn text(&self) -> String {
        let list: String = self.0.iter().map(|user| user.text.as_str()).collect();
        let body = format!("{LIST_START}{list}{LIST_END}");
        format!("{HEAD}{}\n{body}", sha256_hex(body.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::permissions;

    #[test]
    fn adding_and_removing_users_leaves_the_others_unchanged() {
        let mut users = Users::default();
        users.add("the coordinator", "UA", &permissions::coordinator());
        for (name, key) in [("node1", "UB"), ("node2", "UC")] {
            users.add(name, key, &permissions::agent(name));
        }
        let mut read = Users::read(&users.text()).unwrap();
        assert_eq!(read, users);
        assert!(read.has("node1") && !read.has("node") && !read.has("# node1"));
        assert!(read.remove("node1") && !read.remove("node1"));
        let after = read.text();
        assert!(!after.contains("node1") && !after.contains("UB"), "{after}");
        read.add("node1", "UB", &permissions::agent("node1"));
        read.remove("node2");
        read.add("node2", "UC", &permissions::agent("node2"));
        assert_eq!(Users::read(&read.text()).unwrap().text(), users.text());
    }

    #[test]
    fn a_file_changed_by_hand_is_not_rewritten() {
        let mut users = Users::default();
        users.add("node1", "UB", &permissions::agent("node1"));
        let text = users.text();
        for other in [
            text.replace("UB", "UX"),
            text.replace("\n    # node1\n", "\n    # node1 \n"),
            format!("{text}\n"),
            format!("# mine\n{text}"),
            text.replacen("SHA-256 ", "SHA-256 0", 1),
            text.replacen('\n', "\r\n", 1),
            String::new(),
        ] {
            let error = Users::read(&other).unwrap_err().to_string();
            assert!(error.contains("changed by hand"), "{error}\n{other}");
        }
    }
}
