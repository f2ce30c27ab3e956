//! Reads all data back and holds it against what was written.

use plimsoll_nfs::{Op, Timeout};
use plimsoll_workload::content::Content;
use plimsoll_workload::stamp::{DamageCounts, Finding, Generations, Verdict, Verifier};

use super::{Home, failed};
use crate::EngineError;

/// READs kept outstanding.
const DEPTH: usize = 16;
/// Findings that are kept.
const FINDINGS_MAX: usize = 100;

/// What a check came to.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Units by verdict.
    pub counts: DamageCounts,
    /// The first of those that were damaged.
    pub findings: Vec<Finding>,
    /// Bytes read.
    pub read_bytes: u64,
    /// Everything was read.
    pub complete: bool,
}

/// Reads every data file of `home`. `generations` are those of the files, by number; `each` is told the
/// bytes read so far and says whether to go on.
///
/// # Errors
/// A call that failed.
pub fn verify(
    home: &mut Home,
    content: &Content,
    generations: &[Generations],
    each: &mut dyn FnMut(u64) -> bool,
) -> Result<Checked, EngineError> {
    let (files, size_bytes, block_bytes) = home.files();
    let mut checked = Checked::default();
    let Some(verifier) = Verifier::new(content, &[]) else { return Ok(checked) };
    let blocks_of_file = size_bytes.div_ceil(u64::from(block_bytes));
    let all = blocks_of_file * files.len() as u64;
    let block = block_bytes as usize;
    let mut arena = vec![0u8; block * DEPTH];
    let mut doing = [(0u32, 0u64, 0u32); DEPTH];
    let mut free: Vec<usize> = (0..DEPTH).collect();
    let (mut next, mut out) = (0u64, Vec::with_capacity(DEPTH));
    let mut go_on = true;
    while (go_on && next < all) || free.len() < DEPTH {
        while go_on
            && next < all
            && let Some(place) = free.pop()
        {
            let (number, at) = ((next / blocks_of_file) as u32, next % blocks_of_file);
            let offset_bytes = at * u64::from(block_bytes);
            let read_bytes = u64::from(block_bytes).min(size_bytes - offset_bytes) as u32;
            doing[place] = (number, offset_bytes, read_bytes);
            let read = Op::Read {
                file: files[number as usize],
                offset_bytes,
                size_bytes: read_bytes,
                buffer_offset_bytes: (place * block) as u64,
            };
            home.client
                .submit(place as u64, &read)
                .map_err(|error| failed("reading back", &error))?;
            next += 1;
        }
        home.client
            .poll(&mut arena, Timeout::Completion, &mut out)
            .map_err(|error| failed("reading back", &error))?;
        for completion in out.drain(..) {
            let place = completion.token as usize;
            free.push(place);
            let (file, offset_bytes, asked) = doing[place];
            let doing = || format!("reading back {} at byte {offset_bytes}", home.name_of(file));
            let got = completion.result.map_err(|error| failed(doing(), &error))?;
            if got < asked {
                let path = home.name_of(file).into();
                let (doing, size_bytes, moved_bytes) = ("reading back", asked, got);
                return Err(EngineError::Short {
                    doing,
                    path,
                    offset_bytes,
                    size_bytes,
                    moved_bytes,
                });
            }
            let data = &arena[place * block..place * block + asked as usize];
            take(&mut checked, &verifier, generations, (file, offset_bytes), data);
            go_on &= each(checked.read_bytes);
        }
    }
    checked.complete = next >= all;
    Ok(checked)
}

fn take(
    checked: &mut Checked,
    verifier: &Verifier<'_>,
    generations: &[Generations],
    (file, offset_bytes): (u32, u64),
    data: &[u8],
) {
    checked.read_bytes += data.len() as u64;
    let Some(should) = generations.get(file as usize) else { return };
    let unit_bytes = verifier.unit_bytes() as u64;
    let Checked { counts, findings, .. } = checked;
    let good = verifier.check(
        file,
        offset_bytes,
        data,
        |unit| should.expected(unit),
        |unit, v| {
            counts.add(&v);
            if let Verdict::Damaged(damage) = v
                && findings.len() < FINDINGS_MAX
            {
                findings.push(Finding {
                    target: file,
                    offset_bytes: unit * unit_bytes,
                    expected: should.expected(unit),
                    damage,
                });
            }
        },
    );
    counts.good += good.unwrap_or(0);
}
