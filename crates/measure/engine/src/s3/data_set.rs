//! Creates the objects of a run, recognises the objects of earlier runs, and removes objects.

use std::fmt;
use std::net::SocketAddr;

use plimsoll_s3::{CallError, Client, Config, Op, Target, Timeout};
use plimsoll_sys::SysError;
use plimsoll_workload::matrix::name_text;

use super::queue::{Calls, small_prefix};
use crate::{EngineError, stop_request};

/// Name of the object that identifies the owner of all objects with this prefix.
const MANIFEST: &str = "plimsoll.json";
/// Maximum number of requests in flight while objects are created or removed.
const CONNECTIONS: u32 = 8;
/// Maximum number of names that one LIST request returns.
const NAMES_MAX: u16 = 1000;

/// Parameters of a data set: the bucket in which the objects are created, and the plan that owns
/// them.
#[derive(Clone, Debug)]
pub struct S3DataSetRequest<'a> {
    /// Name of the plan.
    pub name: &'a str,
    /// Bucket, `s3://bucket/prefix`.
    pub url: &'a str,
    /// Address of the S3 store.
    pub endpoint: &'a str,
    /// Region of the store. Requests are signed for this region.
    pub region: &'a str,
    /// Time limit for a request in ns. If the store sends no response in this time, the request
    /// fails.
    pub outage_max_ns: u64,
}

/// Objects of a run in an S3 bucket.
pub struct S3DataSet {
    client: Client,
    address: SocketAddr,
    /// Prefix with which the names of all objects start.
    prefix: String,
    url: String,
    /// Counters of this client's requests when they were last reported.
    reported_calls: Calls,
    /// Size of the objects that exist; `None` before the first object is created.
    pub object_bytes: Option<u32>,
    /// True if objects of an earlier run were removed before the new objects were created.
    pub replaced: bool,
}

impl fmt::Debug for S3DataSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S3DataSet({} in {})", self.prefix, self.url)
    }
}

fn failed(doing: String, error: &CallError) -> EngineError {
    let unanswered = matches!(error, CallError::GivenUp { .. });
    let errno = (!unanswered).then(|| error.errno());
    EngineError::Remote { doing, says: error.to_string(), errno }
}

impl S3DataSet {
    /// Removes the objects of an earlier run whose plan has the same name. Reserves the prefix
    /// `plimsoll-NAME/` in the bucket for this run.
    ///
    /// # Errors
    /// Fails in the same cases as [`S3DataSet::probe`].
    pub fn create(request: &S3DataSetRequest<'_>) -> Result<Self, EngineError> {
        let mut data_set = Self::connect(request)?;
        data_set.claim_prefix()?;
        Ok(data_set)
    }

    /// Lists the objects with the prefix, as [`S3DataSet::create`] does, but changes nothing.
    ///
    /// # Errors
    /// Fails if credentials are missing or rejected, if the store cannot be reached, or if the
    /// bucket does not exist. Also fails if the prefix contains objects that Plimsoll did not
    /// create.
    pub fn probe(request: &S3DataSetRequest<'_>) -> Result<(), EngineError> {
        Self::connect(request)?.has_own_objects().map(drop)
    }

    /// Connects to the objects that an earlier call of [`S3DataSet::create`] prepared. Returns
    /// `None` if the object that identifies the owner does not exist.
    ///
    /// # Errors
    /// Fails in the same cases as [`S3DataSet::probe`], except that objects which Plimsoll did not
    /// create are not an error.
    pub fn reopen(request: &S3DataSetRequest<'_>) -> Result<Option<Self>, EngineError> {
        let mut data_set = Self::connect(request)?;
        let (doing, manifest) = (data_set.looking(), data_set.manifest());
        match data_set.client.call(&Op::Head { key: &manifest }, &mut []) {
            Ok(_) => return Ok(Some(data_set)),
            Err(CallError::Status { status: 404, .. }) => {}
            Err(error) => return Err(failed(doing, &error)),
        }
        // The store answers a HEAD in the same way for a missing object and for a missing bucket.
        let list = Op::List { prefix: &manifest, names_max: 1 };
        data_set.client.call(&list, &mut []).map_err(|error| failed(doing, &error))?;
        Ok(None)
    }

    /// Computes the prefix of a run's objects without sending a request.
    pub(crate) fn connect(request: &S3DataSetRequest<'_>) -> Result<Self, EngineError> {
        let S3DataSetRequest { name, url, endpoint, region, outage_max_ns } = *request;
        let target = Target::from_environment(url, endpoint, region)
            .map_err(|error| EngineError::Config(error.to_string()))?;
        let prefix = format!("{}plimsoll-{name}/", target.prefix);
        let config = Config {
            connections: CONNECTIONS,
            give_up_after_ns: outage_max_ns,
            ..Config::default()
        };
        let address = target.address;
        let mut client =
            Client::new(target, config).map_err(|error| EngineError::Config(error.to_string()))?;
        client.fail_requests_when(stop_request::has_timed_out);
        Ok(Self {
            client,
            address,
            prefix,
            url: url.to_owned(),
            reported_calls: Calls::default(),
            object_bytes: None,
            replaced: false,
        })
    }

    fn looking(&self) -> String {
        format!("reading {} in {}", self.prefix, self.url)
    }

    fn manifest(&self) -> String {
        format!("{}{MANIFEST}", self.prefix)
    }

    /// Returns true if the prefix contains objects of an earlier run.
    fn has_own_objects(&mut self) -> Result<bool, EngineError> {
        let (doing, prefix, manifest) = (self.looking(), self.prefix.clone(), self.manifest());
        let list = Op::List { prefix: &prefix, names_max: 1 };
        let found =
            self.client.call(&list, &mut []).map_err(|error| failed(doing.clone(), &error))?;
        if found == 0 {
            return Ok(false);
        }
        match self.client.call(&Op::Head { key: &manifest }, &mut []) {
            Ok(_) => Ok(true),
            Err(CallError::Status { status: 404, .. }) => {
                let path = format!("{}: {prefix}", self.url);
                let source = SysError::new("create", libc::EEXIST).at(path.as_ref());
                Err(EngineError::system("creating the run's objects", source))
            }
            Err(error) => Err(failed(doing, &error)),
        }
    }

    fn claim_prefix(&mut self) -> Result<(), EngineError> {
        if self.has_own_objects()? {
            self.clear("")?;
            self.replaced = true;
        }
        let (doing, manifest) = (self.looking(), self.manifest());
        let mut text = b"{\"plimsoll\": 1}\n".to_vec();
        let put = Op::Put { key: &manifest, size_bytes: text.len() as u32, buffer_offset_bytes: 0 };
        self.client.call(&put, &mut text).map_err(|error| failed(doing, &error))?;
        Ok(())
    }

    /// Returns the network address of the store.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Removes all objects whose names start with the prefix followed by `below`.
    ///
    /// # Errors
    /// Fails if a request fails.
    pub fn clear(&mut self, below: &str) -> Result<(), EngineError> {
        let prefix = format!("{}{below}", self.prefix);
        let doing = || format!("removing {prefix} from {}", self.url);
        loop {
            let list = Op::List { prefix: &prefix, names_max: NAMES_MAX };
            let found =
                self.client.call(&list, &mut []).map_err(|error| failed(doing(), &error))?;
            if found == 0 {
                return Ok(());
            }
            let keys = self.client.listed().to_vec();
            change_each(&mut self.client, &keys, |_, key| Op::Delete { key })
                .map_err(|error| failed(doing(), &error))?;
        }
    }

    /// Creates the small objects that must exist when the clients start. Removes all other small
    /// objects.
    ///
    /// # Errors
    /// Fails if a request fails.
    pub fn reset_small(
        &mut self,
        shares: u32,
        clients: u32,
        names_per_client: u32,
    ) -> Result<(), EngineError> {
        for share in 0..shares.max(1) {
            if stop_request::is_requested() {
                return Err(EngineError::Stopped);
            }
            self.clear(&small_prefix(share))?;
            let mut keys = Vec::new();
            for client in (share..clients).step_by(shares.max(1) as usize) {
                let name = |number: u32| name_text(client, number.into());
                let keys_of = (0..names_per_client).map(name);
                keys.extend(
                    keys_of.map(|name| format!("{}{}{name}", self.prefix, small_prefix(share))),
                );
            }
            let put = |_, key| Op::Put { key, size_bytes: 0, buffer_offset_bytes: 0 };
            let url = &self.url;
            change_each(&mut self.client, &keys, put)
                .map_err(|error| failed(format!("creating small objects in {url}"), &error))?;
        }
        Ok(())
    }

    /// Returns the bucket, and the prefix with which the names of all objects start.
    #[must_use]
    pub fn bucket(&self) -> (Target, String) {
        (self.client.target().clone(), self.prefix.clone())
    }

    /// Returns the location of the objects.
    #[must_use]
    pub fn directory(&self) -> String {
        format!("{} {}", self.url, self.prefix)
    }

    /// Returns the counters of the requests that this client sent since the previous call of this
    /// method.
    #[must_use]
    pub fn calls(&mut self) -> Calls {
        let mut counted = Calls::default();
        counted.count(self.client.stats());
        let calls = counted.clone().since(&self.reported_calls);
        self.reported_calls = counted;
        calls
    }

    /// Removes everything that the run created. If the store does not respond for `timeout_ns`, the
    /// removal ends.
    ///
    /// # Errors
    /// Fails if a request fails, or if the operator's request to stop shortened the wait for the
    /// store.
    pub fn remove(mut self, timeout_ns: u64) -> Result<(), EngineError> {
        self.client.give_up_after(timeout_ns);
        self.clear("")
    }
}

/// For each key, sends one request that contains no data.
fn change_each<'k>(
    client: &mut Client,
    keys: &'k [String],
    op: impl Fn(usize, &'k str) -> Op<'k>,
) -> Result<(), CallError> {
    call_each(client, keys, &mut [], op, |_, result| result.map(drop))
}

/// Sends one request for each key, with several requests in flight. `op` creates the request from
/// the number of the key. `done` receives this number and the result of the request. After the
/// first error from `done`, the function sends no more requests.
pub(crate) fn call_each<'k>(
    client: &mut Client,
    keys: &'k [String],
    arena: &mut [u8],
    op: impl Fn(usize, &'k str) -> Op<'k>,
    mut done: impl FnMut(usize, Result<u32, CallError>) -> Result<(), CallError>,
) -> Result<(), CallError> {
    let (mut keys, mut out) = (keys.iter().enumerate().peekable(), Vec::new());
    let mut result = Ok(());
    loop {
        while result.is_ok()
            && let Some((number, key)) = keys.peek()
        {
            if client.submit(*number as u64, &op(*number, key)).is_err() {
                break;
            }
            keys.next();
        }
        if client.outstanding() == 0 {
            return result;
        }
        client.poll(arena, Timeout::Completion, &mut out);
        for completion in out.drain(..) {
            result = result.and(done(completion.token as usize, completion.result));
        }
    }
}
