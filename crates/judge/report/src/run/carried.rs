//! Section of a quickstart: the number of mailboxes that the storage's rate and space allow, the
//! uncertainty of this number, and the next command.

use plimsoll_evidence::Bundle;
use plimsoll_judge::Verdict;
use plimsoll_judge::mailbox_capacity::{MailboxEstimate, ProfileEstimate, estimate};

use super::checks::label;
use super::empty_section;
use crate::document::{Block, Section};
use crate::number::{Letters, Unit};
use crate::table::{Cell, Column, Table};

/// Returns the section of a quickstart. It is empty for all other runs.
pub(super) fn section(bundle: &Bundle, verdict: &Verdict) -> Section {
    let Some(capacity) = estimate(bundle, verdict) else { return empty_section() };
    let mut section =
        Section::brief("carried", "Number of mailboxes that this storage would sustain")
            .with(Block::Table(table(&capacity)))
            .with(Block::List(words(&capacity)));
    section = match (&capacity.next, capacity.promised) {
        (Some(next), Some(mailboxes)) => section.with(Block::Listing {
            caption: format!(
                "Next, check these figures with a two-hour test of {mailboxes} heavy mailboxes"
            ),
            text: next.clone(),
        }),
        _ => section.with(Block::Words(
            "The space is too small for one mailbox of 1 GiB: select a larger file system with \
             --path."
                .to_owned(),
        )),
    };
    section
}

fn table(capacity: &MailboxEstimate) -> Table {
    let size = Unit::Size.show(capacity.mailbox_bytes as f64, Letters::Unicode);
    let mut table = Table::new(
        &format!("Mailboxes of {size}"),
        vec![
            Column::words("users", "users"),
            Column::numbers("by rate", "by_rate"),
            Column::numbers("95 % interval from", "by_rate_low").rank(1),
            Column::numbers("to", "by_rate_high").rank(1),
            Column::numbers("by space", "by_space"),
            Column::words("limited by", "limited_by"),
        ],
    );
    table.rows = capacity.profiles.iter().map(row).collect();
    table
}

fn row(one: &ProfileEstimate) -> Vec<Cell> {
    let count = |count: Option<u64>| count.map_or_else(Cell::unknown, Cell::count);
    let [low, high] = one.by_rate_interval.map_or([None; 2], |ends| ends.map(Some));
    vec![
        Cell::text(one.users.clone()),
        Cell::count(one.by_rate),
        count(low),
        count(high),
        count(one.by_space),
        Cell::text(one.limited_by.clone()),
    ]
}

fn words(capacity: &MailboxEstimate) -> Vec<String> {
    let rate = Unit::Rate.show(capacity.rate_per_s, Letters::Unicode);
    let free = match capacity.free_bytes {
        Some(free) => format!("{} are free", Unit::Size.show(free as f64, Letters::Unicode)),
        None => "free space is unknown".to_owned(),
    };
    let mut all = Vec::new();
    if !capacity.can_be_relied_on {
        all.push("The run is INVALID, so none of these figures is reliable.".to_owned());
    }
    all.push(format!(
        "Rate: {rate} transactional I/Os from four sessions. The 95 % intervals describe only this \
         half minute. They do not apply if the data is larger than the caches, if the storage is \
         full, or after hours of writes."
    ));
    all.push(format!("Space: {free}."));
    if !capacity.limits_broken.is_empty() {
        let broken: Vec<String> = capacity.limits_broken.iter().map(|name| label(name)).collect();
        all.push(format!(
            "At this rate, the measurement exceeded at least one limit ({}), so the storage \
             sustains only a lower rate.",
            broken.join("; ")
        ));
    }
    all
}
