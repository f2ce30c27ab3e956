//! An S3 bucket as a target (`plimsoll-s3`). The files of the streams are divided into objects.
//!
//! S3 cannot write a part of an object. A file of the plan therefore consists of several objects.
//! The size of an object is the size of the largest transfer. A write replaces one whole object
//! (PUT, in parts if the object is large). A read requests one object (GET). If the read is smaller
//! than the object, it requests a range of the object.
//!
//! | operation | request |
//! |---|---|
//! | read | GET of the object, or of a range if the transfer is smaller than the object |
//! | write | PUT |
//! | getattr, lookup, access | HEAD of the first object of a data file |
//! | readdir | LIST of the small objects in the share, up to 1,000 names |
//! | create, remove | PUT of an empty object, DELETE |
//!
//! The time to the first byte of a read is recorded in a separate class. It ends when the first
//! byte of the object arrives. The head of the response does not count. If an operation is retried,
//! its time to the first byte and its latency both start with the first attempt.
//!
//! Some operations do not exist in S3: rename, setattr, and syncs that are separate from the write.
//! The target rejects them.

mod data_set;
mod queue;

pub(crate) use data_set::call_each;
pub use data_set::{S3DataSet, S3DataSetRequest};
pub use queue::{Calls, S3Queue, S3Target};

/// Returns the object size for the plan's only stream. Fails if the plan has several streams.
///
/// # Errors
/// The error is a sentence that explains which operation, size or number of streams is not
/// supported.
pub fn check_streams(configs: &[plimsoll_workload::matrix::StreamConfig]) -> Result<u32, String> {
    match configs {
        [config] => object_bytes(config),
        _ => {
            Err("a load on S3 can have only one stream, because all objects have the size of the \
                 stream's writes"
                .to_owned())
        }
    }
}

/// Returns the object size for a stream. The size of the stream's reads must divide the object
/// size, and its writes must replace whole objects.
///
/// # Errors
/// The error is a sentence that explains which operation or size is not supported.
pub fn object_bytes(config: &plimsoll_workload::matrix::StreamConfig) -> Result<u32, String> {
    let (name, mix) = (&config.name, &config.metadata_mix);
    let sizes = config.all_sizes_bytes();
    let object = sizes.iter().copied().max().unwrap_or(0);
    let writes = if config.write_sizes.is_empty() { &config.sizes } else { &config.write_sizes };
    let whole = writes.iter().all(|size| size.size_bytes == object);
    if config.read_percent < 100.0 && !whole {
        return Err(format!(
            "stream {name}: on S3 a write replaces a whole object, so all writes must have the \
             largest size, {object} bytes"
        ));
    }
    if let Some(size) = sizes.iter().find(|size| !object.is_multiple_of(**size)) {
        return Err(format!(
            "stream {name}: the read size, {size} bytes, must divide the object size, {object} \
             bytes"
        ));
    }
    let files = &config.files;
    if [files.file_size_bytes, files.offset_bytes].iter().any(|b| !b.is_multiple_of(object)) {
        return Err(format!(
            "stream {name}: file_size and offset must be multiples of the object size, {object} \
             bytes"
        ));
    }
    if config.align_bytes > 0 && config.align_bytes != object {
        return Err(format!("stream {name}: on S3 `align` must be equal to the object size"));
    }
    if config.metadata_percent > 0.0 && (mix.rename_percent > 0.0 || mix.setattr_percent > 0.0) {
        return Err(format!(
            "stream {name}: S3 has no rename and no setattr: set both to 0 in metadata_mix"
        ));
    }
    if config.sync.kind.flushes() {
        return Err(format!(
            "stream {name}: S3 has no separate sync, because each write is durable: set sync = \
             \"none\""
        ));
    }
    u32::try_from(object)
        .map_err(|_| format!("stream {name}: objects of {object} bytes are too large"))
}
