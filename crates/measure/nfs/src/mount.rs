//! Before NFS: the portmapper (RFC 1833, version 2) tells ports, MOUNT (RFC 1813, appendix I) gives
//! the handle of an export. Blocking, one short connection per service.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use nfs3_types::mount::{self, mountstat3};
use nfs3_types::xdr_codec::Unpack;
use nfs3_types::{nfs3, portmap};
use thiserror::Error;

use crate::client::ServerSpec;
use crate::credential::Credential;
use crate::error::CallError;
use crate::handle::Handle;
use crate::inbound::{Inbound, InboundStep};
use crate::rpc::{CallTemplate, results, set_record_mark};
use crate::url::NfsUrl;
use crate::xdr::{HANDLE_BYTES_MAX, Reader, Writer};

/// How long the portmapper and MOUNT have to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest reply accepted from them, in bytes.
const REPLY_BYTES_MAX: usize = 64 * 1024;
/// Longest export path sent (MNTPATHLEN), in bytes.
const PATH_BYTES_MAX: usize = 1024;

/// Why an export could not be reached.
#[derive(Debug, Error)]
pub enum MountError {
    /// The host has no address.
    #[error("the host `{host}` of the target is unknown: {source}")]
    Host {
        /// As given.
        host: String,
        /// Error of the resolver.
        source: std::io::Error,
    },
    /// A service did not answer.
    #[error("the {service} service at {address} did not answer: {source}")]
    Io {
        /// `portmapper` or `mount`.
        service: &'static str,
        /// Where.
        address: SocketAddr,
        /// Error of the connection.
        source: std::io::Error,
    },
    /// The portmapper does not know a service.
    #[error(
        "{address} does not offer {service} over TCP: is NFS version 3 enabled there? \
         (nfsport= and mountport= in the address avoid the portmapper)"
    )]
    NotRegistered {
        /// Which service.
        service: &'static str,
        /// The portmapper.
        address: SocketAddr,
    },
    /// MOUNT refused the export.
    #[error("the server at {address} refuses to mount {export}: {status}")]
    Refused {
        /// Where.
        address: SocketAddr,
        /// The path asked for.
        export: String,
        /// Status in the reply.
        status: mountstat3,
    },
    /// A service's answer was an error or made no sense.
    #[error("the {service} service at {address}: {error}")]
    Call {
        /// Which service.
        service: &'static str,
        /// Where.
        address: SocketAddr,
        /// Error of the call.
        error: CallError,
    },
    /// The export's path is too long.
    #[error("the export path has {size_bytes} bytes; {PATH_BYTES_MAX} are possible")]
    Path {
        /// Length in bytes.
        size_bytes: usize,
    },
}

/// An export that was mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Address and port of the NFS service.
    pub nfs: SocketAddr,
    /// Address and port of the MOUNT service.
    pub mount: SocketAddr,
    /// Export path.
    pub path: String,
    /// Handle of its root directory.
    pub root: Handle,
    /// The credential that the address asks for.
    pub credential: Credential,
}

impl Export {
    /// How to add its server to a client, over `connections` connections.
    #[must_use]
    pub fn server(&self, connections: u32) -> ServerSpec {
        ServerSpec { connections, credential: self.credential.clone(), ..ServerSpec::new(self.nfs) }
    }
}

/// Asks for the handle of an export.
///
/// # Errors
/// [`MountError`].
pub fn mount(url: &NfsUrl) -> Result<Export, MountError> {
    if url.export.len() > PATH_BYTES_MAX {
        return Err(MountError::Path { size_bytes: url.export.len() });
    }
    let host = resolve(&url.host)?;
    let port = |given: Option<u16>, program, service| match given {
        Some(port) => Ok(port),
        None => ask_port(host, program, service),
    };
    let nfs_port = port(url.nfs_port, nfs3::PROGRAM, "nfs")?;
    let mount_port = port(url.mount_port, mount::PROGRAM, "mount")?;
    let (mut nfs, mut address) = (host, host);
    nfs.set_port(nfs_port);
    address.set_port(mount_port);
    let credential = Credential {
        uid: url.uid.unwrap_or(0),
        gid: url.gid.unwrap_or(0),
        ..Credential::default()
    };
    let mut service = Service::connect("mount", address)?;
    let template = CallTemplate::new(mount::PROGRAM, mount::VERSION, &credential, 0);
    const MNT: u32 = 1;
    let path = url.export.as_bytes();
    let root = service.call(&template, MNT, |writer| writer.opaque(path), read_mount)?;
    match root {
        Ok(root) => Ok(Export { nfs, mount: address, path: url.export.clone(), root, credential }),
        Err(status) => Err(MountError::Refused { address, export: url.export.clone(), status }),
    }
}

/// Tells the MOUNT service that the export is no longer used. It only keeps a list by it, so an error
/// needs no attention.
///
/// # Errors
/// [`MountError`].
pub fn unmount(export: &Export) -> Result<(), MountError> {
    let mut service = Service::connect("mount", export.mount)?;
    let template = CallTemplate::new(mount::PROGRAM, mount::VERSION, &export.credential, 0);
    const UMNT: u32 = 3;
    let path = export.path.as_bytes();
    service.call(&template, UMNT, |writer| writer.opaque(path), |_| Ok(()))
}

/// The answer to MNT: a handle, or a status.
fn read_mount(mut reader: Reader<'_>) -> Result<Result<Handle, mountstat3>, CallError> {
    const FLAVORS_MAX: u32 = 1024;
    match reader.u32("status")? {
        0 => {}
        code => {
            return match mountstat3::unpack(&mut code.to_be_bytes().as_slice()) {
                Ok((status, _)) => Ok(Err(status)),
                Err(_) => Err(CallError::UnknownStatus(code)),
            };
        }
    }
    let bytes = reader.opaque(HANDLE_BYTES_MAX, "handle")?;
    let size_bytes = bytes.len() as u32;
    let handle = Handle::new(bytes).filter(|handle| !handle.is_empty());
    let flavors = reader.u32("flavors")?.min(FLAVORS_MAX);
    reader.skip(flavors as usize * 4, "flavors")?;
    reader.end()?;
    let empty = crate::error::Violation::BadValue { field: "handle", value: size_bytes };
    Ok(Ok(handle.ok_or(empty)?))
}

fn resolve(host: &str) -> Result<SocketAddr, MountError> {
    let failed = |source| MountError::Host { host: host.to_owned(), source };
    let mut found = (host, 0).to_socket_addrs().map_err(failed)?;
    found.next().ok_or_else(|| failed(ErrorKind::NotFound.into()))
}

/// The TCP port of version 3 of a program.
fn ask_port(host: SocketAddr, program: u32, name: &'static str) -> Result<u16, MountError> {
    const GETPORT: u32 = 3;
    let mut address = host;
    address.set_port(portmap::PMAP_PORT);
    let mut service = Service::connect("portmapper", address)?;
    let template = CallTemplate::new(portmap::PROGRAM, portmap::VERSION, &Credential::default(), 0);
    let write = |writer: &mut Writer<'_>| {
        for word in [program, 3, portmap::IPPROTO_TCP, 0] {
            writer.u32(word);
        }
    };
    let port = service.call(&template, GETPORT, write, |mut reader| {
        let port = reader.u32("port")?;
        reader.end()?;
        Ok(port)
    })?;
    match u16::try_from(port) {
        Ok(port) if port != 0 => Ok(port),
        _ => Err(MountError::NotRegistered { service: name, address }),
    }
}

/// A short blocking connection to one service.
struct Service {
    name: &'static str,
    address: SocketAddr,
    stream: TcpStream,
    xid: u32,
}

impl Service {
    fn connect(name: &'static str, address: SocketAddr) -> Result<Self, MountError> {
        let failed = |source| MountError::Io { service: name, address, source };
        // From a reserved port where possible: mount services often insist.
        let fd = crate::socket::start(address, true).map_err(|error| failed(error.into()))?;
        let timeout_ns = ANSWER_TIMEOUT.as_nanos() as u64;
        match crate::socket::wait_writable(&fd, timeout_ns) {
            Ok(true) => {}
            Ok(false) => return Err(failed(ErrorKind::TimedOut.into())),
            Err(error) => return Err(failed(error.into())),
        }
        crate::socket::finish(&fd).map_err(|error| failed(error.into()))?;
        let stream = TcpStream::from(fd);
        stream.set_nonblocking(false).map_err(failed)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(failed)?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT)).map_err(failed)?;
        Ok(Self { name, address, stream, xid: 1 })
    }

    fn call<T>(
        &mut self,
        template: &CallTemplate,
        procedure: u32,
        write: impl FnOnce(&mut Writer<'_>),
        read: impl FnOnce(Reader<'_>) -> Result<T, CallError>,
    ) -> Result<T, MountError> {
        let (service, address) = (self.name, self.address);
        let io = |source| MountError::Io { service, address, source };
        let call = |error| MountError::Call { service, address, error };
        self.xid += 1;
        let mut buffer = [0u8; 2048];
        let mut writer = template.start(&mut buffer, self.xid, procedure);
        write(&mut writer);
        // 192 bytes of header and a path of at most 1,028.
        let end = writer.finish().unwrap_or(0);
        set_record_mark(&mut buffer, end - 4);
        self.stream.write_all(&buffer[..end]).map_err(io)?;
        let mut inbound = Inbound::new(REPLY_BYTES_MAX);
        let mut piece = [0u8; 4096];
        let start = Instant::now();
        loop {
            match inbound.step().map_err(|violation| call(violation.into()))? {
                InboundStep::Record(record) => {
                    let (xid, reader) = results(record).map_err(call)?;
                    if xid == self.xid {
                        return read(reader).map_err(call);
                    }
                    return Err(call(crate::error::Violation::UnknownXid { xid }.into()));
                }
                InboundStep::Head { record_bytes, .. } => {
                    inbound.buffer_it(record_bytes).map_err(|violation| call(violation.into()))?
                }
                InboundStep::More | InboundStep::Streamed => {
                    let size = self.stream.read(&mut piece).map_err(io)?;
                    if size == 0 {
                        return Err(io(ErrorKind::UnexpectedEof.into()));
                    }
                    // Each read has the time-out, and so has the whole: a reply may not trickle on.
                    if start.elapsed() > ANSWER_TIMEOUT {
                        return Err(io(ErrorKind::TimedOut.into()));
                    }
                    inbound.feed(&piece[..size], &mut []);
                }
            }
        }
    }
}
