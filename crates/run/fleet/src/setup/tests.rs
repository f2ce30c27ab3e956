#![allow(clippy::unwrap_used)]
use std::os::unix::fs::PermissionsExt;

use super::*;

fn setup(root: &Path) -> Setup {
    Setup {
        directory: root.join("fleet"),
        server_name: "nats.example".to_owned(),
        port: 4222,
        agents: vec!["node1".to_owned(), "node2".to_owned()],
        allow_paths: vec!["/mnt/test".into()],
        forgets_authority: false,
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Returns every file below a directory with its content.
fn files(root: &Path) -> Vec<(PathBuf, String)> {
    let (mut all, mut places) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(place) = places.pop() {
        for path in fs::read_dir(place).unwrap().flatten().map(|entry| entry.path()) {
            match path.is_dir() {
                true => places.push(path),
                false => all.push((path.clone(), fs::read_to_string(path).unwrap())),
            }
        }
    }
    all.sort();
    all
}

#[test]
fn each_host_gets_its_own_file_and_no_file_is_overwritten() {
    let root = tempfile::tempdir().unwrap();
    let setup = setup(root.path());
    let made = set_up(&setup).unwrap();
    let access = Access::read(&made.agents[1]).unwrap();
    assert_eq!(access.name.as_deref(), Some("node2"));
    assert_eq!(access.allow_paths, [PathBuf::from("/mnt/test")]);
    assert_eq!(access.server, "tls://nats.example:4222");
    let seed = |file: &Path| Access::read(file).unwrap().nkey.unwrap().read(true).unwrap();
    assert_ne!(seed(&made.agents[0]), seed(&made.agents[1]));
    assert_eq!(mode(&made.agents[0]), 0o600);
    fs::set_permissions(&made.agents[0], fs::Permissions::from_mode(0o644)).unwrap();
    assert!(Access::read(&made.agents[0]).unwrap_err().to_string().contains("other users"));
    let authority = made.authority.unwrap();
    assert_eq!((mode(&authority), mode(&authority.join("ca.key"))), (0o700, 0o600));
    let key = fs::read_to_string(authority.join("ca.key")).unwrap();
    let holders: Vec<PathBuf> =
        files(&setup.directory).into_iter().filter(|(_, text)| *text == key).map(|f| f.0).collect();
    assert_eq!(holders, [authority.join("ca.key")], "no host has the authority's key");
    let users = fs::read_to_string(made.server.join("users.conf")).unwrap();
    assert_eq!(users.matches("nkey: U").count(), 3);
    assert!(set_up(&setup).unwrap_err().to_string().contains("is not empty"));
    let wrong = |agents: &[&str], server: &str| {
        let directory = root.path().join("other");
        let agents = names(agents);
        let setup = Setup { directory, server_name: server.to_owned(), agents, ..setup.clone() };
        set_up(&setup).unwrap_err().to_string()
    };
    assert!(wrong(&["a", "a"], "h").contains("twice"));
    assert!(wrong(&["a.b"], "h").contains("not a valid agent name"));
    assert!(wrong(&[], "h").contains("1 to"));
    assert!(wrong(&["a"], "h\"\nport: 1").contains("not a host name"));
}

#[test]
fn adding_and_removing_hosts_leaves_the_others_unchanged() {
    let root = tempfile::tempdir().unwrap();
    let setup = setup(root.path());
    let directory = &setup.directory;
    set_up(&setup).unwrap();
    // The operator changes a line of the configuration.
    let configuration = directory.join("server/nats.conf");
    let own = fs::read_to_string(&configuration).unwrap().replace("4MB", "8MB");
    fs::write(&configuration, own).unwrap();
    let before = files(directory);
    let changed = add(directory, &names(&["node3", "node4"]), &[], None).unwrap();
    assert_eq!(changed.server, "tls://nats.example:4222");
    let path = directory.join("server/users.conf");
    assert_eq!((&changed.users, mode(&path)), (&path, 0o600));
    let after = files(directory);
    let kept = |files: &[(PathBuf, String)]| -> Vec<(PathBuf, String)> {
        let is_old = |(file, _): &&(PathBuf, String)| {
            *file != path
                && !file.ends_with("fleet.toml")
                && !changed.agents.iter().any(|agent| file.starts_with(agent))
        };
        files.iter().filter(is_old).cloned().collect()
    };
    assert_eq!(kept(&after), kept(&before));
    let hosts = || Access::read(&directory.join("coordinator/fleet.toml")).unwrap().hosts;
    assert_eq!(hosts(), ["node1", "node2", "node3", "node4"]);
    let access = |name: &str| Access::read(&agent_file(directory, name));
    let (first, third) = (access("node1").unwrap(), access("node3").unwrap());
    assert_eq!((third.name.as_deref(), &third.trust), (Some("node3"), &first.trust));
    assert_eq!((third.server, mode(&changed.agents[0])), (first.server, 0o600));
    let users = |text: &str| text.matches("nkey: U").count();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(users(&text), 5);

    let refused = |error: RunnerError, says: &str| {
        assert!(error.message.contains(says), "{error:?}");
        assert!(!error.hints.is_empty() || says == "twice", "{error:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "nothing is changed");
    };
    for (wrong, says) in [
        (&["node3"][..], "already in the fleet"),
        (&["node5", "node1"], "cannot add node1: it is already in the fleet"),
        (&["no.name"], "not a valid agent name"),
        (&["node5", "node5"], "twice"),
        (&["../node5"], "not a valid agent name"),
    ] {
        refused(add(directory, &names(wrong), &[], None).unwrap_err(), says);
        assert!(!agent_file(directory, "node5").exists());
    }
    refused(remove(directory, &names(&["node4", "node9"])).unwrap_err(), "cannot remove node9");
    // The name of the coordinator is not a valid agent name.
    refused(remove(directory, &names(&["the coordinator"])).unwrap_err(), "not a valid agent name");

    remove(directory, &names(&["node4"])).unwrap();
    assert_eq!(hosts(), ["node1", "node2", "node3"]);
    let now = fs::read_to_string(&path).unwrap();
    assert_eq!((users(&now), now.contains("node4")), (4, false));
    let error = add(directory, &names(&["node4"]), &[], None).unwrap_err();
    assert!(error.message.contains("has no such agent"), "{error:?}");
    fs::remove_file(agent_file(directory, "node4")).unwrap();
    add(directory, &names(&["node4"]), &[], None).unwrap();
}

#[test]
fn add_needs_the_authority_and_an_unchanged_list_of_users() {
    let root = tempfile::tempdir().unwrap();
    let kept = setup(root.path());
    let forgetful =
        Setup { directory: root.path().join("forgetful"), forgets_authority: true, ..kept.clone() };
    assert!(set_up(&forgetful).unwrap().authority.is_none());
    let authority = set_up(&kept).unwrap().authority.unwrap();
    let new = names(&["node3"]);
    let refused = |directory: &Path, authority: Option<&Path>, says: &str| {
        let error = add(directory, &new, &[], authority).unwrap_err();
        assert!(error.message.contains(says), "{error:?}");
        assert!(!error.hints.is_empty(), "{error:?}");
        assert!(!agent_file(directory, "node3").exists());
    };
    refused(&forgetful.directory, None, "authority");
    refused(&forgetful.directory, Some(&authority), "of another fleet");
    refused(root.path(), None, "server");

    // The authority's key is moved to another directory.
    let directory = &kept.directory;
    let offline = root.path().join("offline");
    fs::rename(&authority, &offline).unwrap();
    refused(directory, None, "authority");
    let configuration = directory.join("server/nats.conf");
    let own = fs::read_to_string(&configuration).unwrap();
    fs::write(&configuration, own.replace("users.conf", "mine.conf")).unwrap();
    refused(directory, Some(&offline), "does not include");
    fs::write(&configuration, &own).unwrap();
    let users = directory.join("server/users.conf");
    let text = fs::read_to_string(&users).unwrap();
    fs::write(&users, text.replace("plimsoll.clock.node1", ">")).unwrap();
    refused(directory, Some(&offline), "changed by hand");
    assert!(remove(directory, &names(&["node1"])).unwrap_err().message.contains("by hand"));
    fs::write(&users, &text).unwrap();
    {
        let _other = lock(directory).unwrap();
        refused(directory, Some(&offline), "cannot lock");
    }
    add(directory, &new, &[], Some(&offline)).unwrap();
    // An earlier version stored all users in one file, so `users.conf` is missing.
    fs::remove_file(&users).unwrap();
    fs::remove_file(agent_file(directory, "node3")).unwrap();
    refused(directory, Some(&offline), "users.conf");
}
