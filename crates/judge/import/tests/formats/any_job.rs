//! No job text makes the reader panic, and the resulting plan can be parsed.

use plimsoll_import::fio_job::import_fio;
use plimsoll_plan::Plan;
use proptest::prelude::*;

fn import(text: &str) {
    match import_fio(text, "any.fio") {
        Ok(import) => assert_eq!(
            Plan::parse(import.plan.text(), "any.fio").expect("its own text").resolve(),
            import.plan.resolve()
        ),
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        import(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_characters(text in "\\PC{0,200}") {
        import(&text);
    }

    #[test]
    fn a_job_with_any_values(lines in prop::collection::vec(("(rw|bs|bssplit|bsrange|size|iodepth|numjobs|rate_iops|rate|runtime|filename|directory|ioengine|random_distribution|fsync|offset|filesize|nrfiles|thinktime|rwmixread|percentage_random|buffer_compress_percentage|dedupe_percentage|kb_base|ba|verify|loops|nonsense)", "[0-9]{0,12}[kmgtib%]{0,2}|randrw|rw|read|null|libaio|/dev/sdb|/tmp/x|4k/50:8k/|1k-64k|zipf:1.2|normal:10|,8k|\\PC{0,8}"), 0..10)) {
        let lines: Vec<String> = lines.into_iter().map(|(k, v)| format!("{k}={v}")).collect();
        import(&format!("[global]\n{}\n[a b]\n{}\n[a b]\n", lines.join("\n"), lines.first().cloned().unwrap_or_default()));
    }
}
