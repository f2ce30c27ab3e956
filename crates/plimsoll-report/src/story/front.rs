//! What the load saw beside what the drives did: the page on which a hero number is recognised.

use plimsoll_judge::story::{ArmStory, Front, Story};

use crate::document::{Block, Section};
use crate::number::{Letters, Unit};
use crate::table::{Cell, Column, Table, Tone};

pub(super) fn shows_front(story: &Story, arm: &ArmStory) -> bool {
    arm.front.is_some() && story.arms.iter().any(|arm| arm.expects.is_some())
}

/// What the load saw, and what the drives did.
pub(super) fn fronts(story: &Story) -> Section {
    let mut table = Table::new(
        "What the load saw, and what the drives did",
        vec![
            Column::words("arm", "arm"),
            Column::of(Unit::Rate, "front end", "front_ios_per_s").under("I/Os per second"),
            Column::of(Unit::Rate, "drives", "drive_ios_per_s").under("I/Os per second"),
            Column::numbers("front end", "front_bytes_per_s").under("bandwidth"),
            Column::numbers("front end", "front_latency_ns").under("latency"),
            Column::numbers("drives", "drive_latency_ns").under("latency"),
            Column::numbers("read", "read_set_bytes").under("working set"),
            Column::numbers("written", "write_set_bytes").under("working set"),
            Column::words("order", "pattern"),
            Column::remarks("reads came from", "reads_from"),
        ],
    );
    let known = |size: Option<u64>| Cell::observed(Unit::Size, size.map(|bytes| bytes as f64));
    for arm in &story.arms {
        let Some(front) = &arm.front else { continue };
        table.rows.push(vec![
            Cell::text(arm.name.clone()).tone(Tone::Strong),
            Cell::number(Unit::Rate, front.front_ios_per_s),
            Cell::observed(Unit::Rate, front.drive_ios_per_s),
            Cell::number(Unit::Bandwidth, front.front_bytes_per_s),
            Cell::maybe(Unit::Latency, front.front_latency_ns),
            Cell::maybe(Unit::Latency, front.drive_latency_ns),
            known(front.read_set_bytes),
            known(front.write_set_bytes),
            Cell::text(order(front)),
            Cell::text(reads_from(front)),
        ]);
    }
    let says = "A figure that the drives did not carry shows in four places: I/O at the front and almost none \
        at the drives, a latency below that of the drives, a working set that fits a cache, and reads that \
        come from memory or from nowhere.";
    Section::brief("front", "Front end and drives")
        .with(Block::Table(table))
        .with(Block::Words(says.to_owned()))
}

/// The order of addresses: the plan's word, and what was seen of it.
fn order(front: &Front) -> String {
    match front.sequential_share {
        Some(share) => {
            let seen = Unit::Share.show(share, Letters::Unicode);
            format!("{}, {seen} sequential", front.pattern)
        }
        None => front.pattern.clone(),
    }
}

fn reads_from(front: &Front) -> String {
    if front.reads_from.is_empty() {
        return "unknown".to_owned();
    }
    let word = |place: &str| match place {
        "zero" => "zero (never written)".to_owned(),
        "dram" => "DRAM cache".to_owned(),
        "log" => "write log".to_owned(),
        "ssd" => "SSD".to_owned(),
        "hdd" => "HDD".to_owned(),
        other => other.to_owned(),
    };
    let parts: Vec<String> = front
        .reads_from
        .iter()
        .map(|(place, share)| {
            format!("{} {}", Unit::Share.show(*share, Letters::Unicode), word(place))
        })
        .collect();
    parts.join(", ")
}
