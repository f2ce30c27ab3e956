//! Determines the peers of local (`AF_UNIX`) sockets. `/proc` does not show them, but the kernel
//! reports them through netlink (`sock_diag(7)`).

use std::collections::BTreeMap;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// `SOCK_DIAG_BY_FAMILY`, which is the type of the request and of the response.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// `NLMSG_ERROR` and `NLMSG_DONE`.
const ENDS: [u16; 2] = [2, 3];
/// `UDIAG_SHOW_PEER`.
const SHOW_PEER: u32 = 4;
/// `UNIX_DIAG_PEER`.
const PEER: u16 = 2;
/// `HEAD` is the size of a message header. `BODY` is the size of the fixed part before the
/// attributes.
const HEAD: usize = 16;
const BODY: usize = 16;
/// Maximum number of messages that are read. The limit is needed in case the kernel never ends its
/// reply.
const MESSAGES_MAX: usize = 4096;

/// For each local socket in this network namespace, returns the inode of its peer. The result is
/// empty if the kernel does not report peers.
#[must_use]
pub fn peers() -> BTreeMap<u64, u64> {
    let mut peers = BTreeMap::new();
    let kind = (AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC);
    let Ok(socket) = socket_with(kind.0, kind.1, kind.2, Some(netlink::SOCK_DIAG)) else {
        return peers;
    };
    if send(&socket, &request(), SendFlags::empty()).is_err() {
        return peers;
    }
    let mut buffer = vec![0u8; 1 << 16];
    for _ in 0..MESSAGES_MAX {
        let received = recv(&socket, &mut buffer[..], RecvFlags::empty());
        let Ok((length, _)) = received else { break };
        if length == 0 || parse_messages(&buffer[..length], &mut peers) {
            break;
        }
    }
    peers
}

/// Builds a request for all sockets in all states: `struct nlmsghdr` and `struct unix_diag_req`.
fn request() -> Vec<u8> {
    let mut text = Vec::new();
    text.extend(40u32.to_ne_bytes());
    text.extend(BY_FAMILY.to_ne_bytes());
    text.extend(DUMP.to_ne_bytes());
    text.extend([0; 8]);
    text.extend([AddressFamily::UNIX.as_raw() as u8, 0, 0, 0]);
    for word in [u32::MAX, 0, SHOW_PEER, u32::MAX, u32::MAX] {
        text.extend(word.to_ne_bytes());
    }
    text
}

/// Parses the messages of one response. Returns true if it was the last response.
fn parse_messages(mut text: &[u8], peers: &mut BTreeMap<u64, u64>) -> bool {
    while let (Some(length), Some(kind)) = (word(text, 0), half(text, 4)) {
        let length = length as usize;
        if ENDS.contains(&kind) || length < HEAD || length > text.len() {
            return true;
        }
        let message = &text[HEAD..length];
        if let (Some(inode), Some(peer)) = (word(message, 4), peer(message)) {
            peers.insert(u64::from(inode), u64::from(peer));
        }
        text = text.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    false
}

/// Returns the peer that the attributes of a socket contain.
fn peer(message: &[u8]) -> Option<u32> {
    let mut rest = message.get(BODY..)?;
    while let (Some(length), Some(kind)) = (half(rest, 0), half(rest, 2)) {
        if kind == PEER {
            return word(rest, 4);
        }
        rest = rest.get(usize::from(length).max(4).next_multiple_of(4)..)?;
    }
    None
}

fn word(text: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(text.get(at..at + 4)?.try_into().ok()?))
}

fn half(text: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(text.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn finds_both_ends_of_a_socket_pair() {
        let (one, other) = UnixStream::pair().unwrap();
        let inode = |socket: &UnixStream| {
            let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
            let digits: String =
                link.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
            digits.parse::<u64>().unwrap()
        };
        let peers = peers();
        if peers.is_empty() {
            eprintln!("not tested here: this kernel does not tell of local sockets");
            return;
        }
        assert_eq!(peers.get(&inode(&one)), Some(&inode(&other)));
        assert_eq!(peers.get(&inode(&other)), Some(&inode(&one)));
    }

    #[test]
    fn accepts_a_truncated_response() {
        let mut peers = BTreeMap::new();
        for length in 0..48 {
            parse_messages(&[255; 48][..length], &mut peers);
        }
        assert!(peers.is_empty());
    }
}
