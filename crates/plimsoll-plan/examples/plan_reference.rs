//! Prints the reference of every field of a plan: `docs/plan.md`.

fn main() {
    print!("{}", plimsoll_plan::reference_markdown());
}
