//! Prints the reference of every field of a plan and of every option of a job: `docs/plan.md`.

fn main() {
    print!("{}", plimsoll_import::fio_job::plan_reference());
}
