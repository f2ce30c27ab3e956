//! A user answers the prompts of running plans with `plimsoll mark`, the API and the web page.

use serde_json::Value;

use crate::support::server::Server;
use crate::support::{Sandbox, json, wait_until};

/// Returns a plan for a load of ten seconds. From the start, its events wait for the operator.
fn plan(sandbox: &Sandbox) -> String {
    let target = sandbox.data();
    format!(
        "version = 1\nname = \"pull\"\n[[event]]\nname = \"pull\"\nat = \"100ms\"\nprompt = \"Pull \
         <disk> 5\"\n[[event]]\nname = \"second\"\nafter = \"pull\"\ndelay = \"100ms\"\nprompt = \
         \"Pull disk 6\"\n[[event]]\nname = \"third\"\nafter = \"pull\"\ndelay = \
         \"200ms\"\nprompt = \"Pull disk 7\"\n[target]\npath = \
         {target:?}\n[workload.matrix]\nfile_size = \"8MiB\"\narrival = \"constant\"\nrate = \
         200\n[phases]\nwarm_up = \"100ms\"\nmeasure = \"10s\"\n[evidence]\nmin_measure = \
         \"1s\"\ninterval = \"100ms\"\n"
    )
}

#[test]
fn an_operator_answers_prompts_from_another_terminal_by_the_api_and_on_the_page() {
    let sandbox = Sandbox::new();
    let server = Server::start(&sandbox, &["--allow-path", sandbox.data().to_str().unwrap()]);
    server.send("/api/mark", "").expect(409);
    server.send("/api/runs", &plan(&sandbox)).expect(200);
    let page = || server.get("/live").expect(200).text();
    wait_until("the prompt", || page().contains("Pull &lt;disk&gt; 5"));
    let run = sandbox.bundle().file_name().unwrap().to_str().unwrap().to_owned();
    sandbox.run(&["mark", "nothing"]).expect(2);
    sandbox.run(&["mark", &run]).expect(0).says("answered: Pull <disk> 5");
    wait_until("the second prompt", || page().contains("Pull disk 6"));
    wait_until("the third prompt", || page().contains("Pull disk 7"));
    server.send("/api/mark?run=other", "").expect(409);
    let answered = server.send("/api/mark", "").expect(200).json();
    assert_eq!(
        (answered["run"].as_str(), &answered["prompt"]),
        (Some(&*run), &"Pull disk 6".into())
    );
    let button = |number: u32| page().contains(&format!("name=\"prompt\" value=\"{number}\""));
    wait_until("the answer", || !button(1));
    assert!(button(2), "an answer confirms one prompt");
    server.post("/live/mark", &[("run", &run), ("prompt", "1")]).expect(409);
    server.post("/live/mark", &[("run", &run), ("prompt", "2")]).expect(303);
    sandbox.run(&["mark", &run]).expect(2).says("does not wait for an operator");
    wait_until("the end", || server.live()["is_under_way"] == false);
    let ended = json(&sandbox.bundle().join("run.json"));
    let events = ended["events"].as_array().unwrap();
    assert_eq!(events.len(), 3);
    assert!(events.iter().all(|event| event["at_ns"].is_u64()), "{ended:#}");
    assert_ne!(server.live()["ended"][0]["verdict"], Value::Null);
}
