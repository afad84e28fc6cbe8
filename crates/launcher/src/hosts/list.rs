//! The hosts that the user names.

use gondwana_console::failure::Failure;
use std::net::{IpAddr, ToSocketAddrs};

/// One host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// The name, as inserted into the launcher template.
    pub name: String,
    /// The address at which its nodes listen, if the user has given one.
    pub address: Option<IpAddr>,
}

impl Host {
    /// True if the name leads to this computer's loopback interface.
    pub(super) fn is_this_computer(&self) -> bool {
        match self.address {
            Some(address) => address.is_loopback(),
            None => resolve(&self.name).is_some_and(|all| all.iter().all(IpAddr::is_loopback)),
        }
    }
}

/// The addresses of a host's name; `None` if it has none here.
pub(super) fn resolve(name: &str) -> Option<Vec<IpAddr>> {
    let name = name.rsplit_once('@').map_or(name, |(_, name)| name);
    let all: Vec<IpAddr> = (name, 0).to_socket_addrs().ok()?.map(|address| address.ip()).collect();
    (!all.is_empty()).then_some(all)
}

/// Reads `name` or `name=address`.
pub(super) fn parse(words: &[String]) -> Result<Vec<Host>, Failure> {
    let mut hosts: Vec<Host> = vec![];
    for word in words {
        let (name, address) = match word.split_once('=') {
            None => (word.as_str(), None),
            Some((name, text)) => {
                let address = text.parse().map_err(|_| {
                    Failure::usage(format!("--hosts {word}: {text} is not an address such as 10.0.0.1"))
                })?;
                (name, Some(address))
            }
        };
        // A name that begins with a dash would be an option of the launcher's command.
        if name.is_empty() || name.starts_with('-') {
            return Err(Failure::usage(format!("--hosts: \"{name}\" is not the name of a host")));
        }
        if hosts.iter().any(|host| host.name == name) {
            return Err(Failure::usage(format!(
                "--hosts names {name} twice: use -n to run several nodes on a host"
            )));
        }
        hosts.push(Host { name: name.to_owned(), address });
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn hosts_have_names_and_perhaps_addresses() {
        let hosts = parse(&words("me@a,b=10.0.0.2")).unwrap();
        assert_eq!(hosts[0], Host { name: "me@a".to_owned(), address: None });
        assert_eq!(hosts[1], Host { name: "b".to_owned(), address: Some([10, 0, 0, 2].into()) });
        assert!(!hosts[1].is_this_computer());
        assert!(parse(&words("a=127.0.0.1")).unwrap()[0].is_this_computer());
    }

    #[test]
    fn names_that_cannot_be_hosts_are_refused() {
        for wrong in ["a,a", "a,", "-oProxyCommand=x", "a=b"] {
            assert!(parse(&words(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_user_is_no_part_of_the_address() {
        assert_eq!(resolve("me@127.0.0.1"), Some(vec![[127, 0, 0, 1].into()]));
    }
}
