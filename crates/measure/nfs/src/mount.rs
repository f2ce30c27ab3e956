//! Steps before the first NFS call. The portmapper (RFC 1833, version 2) returns ports, and MOUNT
//! (RFC 1813, appendix I) returns the handle of an export. These steps block. They use a
//! short-lived connection to each service.

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

/// Timeout of a call to the portmapper or to MOUNT.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a reply of these services, in bytes.
const REPLY_BYTES_MAX: usize = 64 * 1024;
/// Maximum length of an export path (MNTPATHLEN), in bytes.
const PATH_BYTES_MAX: usize = 1024;

/// Reason why an export could not be mounted.
#[derive(Debug, Error)]
pub enum MountError {
    /// The host has no address.
    #[error("cannot resolve the host `{host}` of the target: {source}")]
    Host {
        /// Host in the address of the target.
        host: String,
        /// Error of the resolver.
        source: std::io::Error,
    },
    /// A service did not answer.
    #[error("the {service} service at {address} did not answer: {source}")]
    Io {
        /// `portmapper` or `mount`.
        service: &'static str,
        /// Address of the service.
        address: SocketAddr,
        /// Error of the connection.
        source: std::io::Error,
    },
    /// The portmapper does not list a service.
    #[error(
        "{address} does not offer {service} over TCP: check that NFS version 3 is enabled there \
         (nfsport= and mountport= in the address bypass the portmapper)"
    )]
    NotRegistered {
        /// Name of the service.
        service: &'static str,
        /// Address of the portmapper.
        address: SocketAddr,
    },
    /// MOUNT rejected the export.
    #[error("the server at {address} refused to mount {export}: {status}")]
    Refused {
        /// Address of the MOUNT service.
        address: SocketAddr,
        /// Requested path.
        export: String,
        /// Status in the reply.
        status: mountstat3,
    },
    /// A service answered with an error or an invalid reply.
    #[error("the call to the {service} service at {address} failed: {error}")]
    Call {
        /// Name of the service.
        service: &'static str,
        /// Address of the service.
        address: SocketAddr,
        /// Error of the call.
        error: CallError,
    },
    /// The path of the export is too long.
    #[error("the export path is {size_bytes} bytes long; the maximum is {PATH_BYTES_MAX}")]
    Path {
        /// Length in bytes.
        size_bytes: usize,
    },
}

/// A mounted export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Address and port of the NFS service.
    pub nfs: SocketAddr,
    /// Address and port of the MOUNT service.
    pub mount: SocketAddr,
    /// Export path.
    pub path: String,
    /// Handle of the export's root directory.
    pub root: Handle,
    /// Credential that the address specifies.
    pub credential: Credential,
}

impl Export {
    /// Returns the description of the export's server for a client that opens `connections`
    /// connections.
    #[must_use]
    pub fn server(&self, connections: u32) -> ServerSpec {
        ServerSpec { connections, credential: self.credential.clone(), ..ServerSpec::new(self.nfs) }
    }
}

/// Requests the handle of an export.
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

/// Informs the MOUNT service that the export is no longer used. The service only maintains a list
/// of clients, so callers may ignore an error.
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

/// Decodes the reply to MNT, which contains a handle or an error status.
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

/// Returns the TCP port of version 3 of a program.
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

/// A blocking connection to a service, which is used for only a few calls.
struct Service {
    name: &'static str,
    address: SocketAddr,
    stream: TcpStream,
    xid: u32,
}

impl Service {
    fn connect(name: &'static str, address: SocketAddr) -> Result<Self, MountError> {
        let failed = |source| MountError::Io { service: name, address, source };
        // Connects from a reserved port if possible, because many mount services require such a
        // port.
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
        // The call always fits, because its header has at most 192 bytes and its path at most 1,028
        // bytes.
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
                    // The timeout applies to the whole reply, and not only to each read. Otherwise
                    // a server could prolong the reply by sending it byte by byte.
                    if start.elapsed() > ANSWER_TIMEOUT {
                        return Err(io(ErrorKind::TimedOut.into()));
                    }
                    inbound.feed(&piece[..size], &mut []);
                }
            }
        }
    }
}
