//! Prints the reference of all plan fields and fio job options: `docs/plan.md`.

fn main() {
    print!("{}", plimsoll_import::fio_job::plan_reference());
}
