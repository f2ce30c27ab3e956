//! Headless Chromium, controlled through a pair of pipes with its DevTools protocol. `./test`
//! installs it.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::tool;

/// Widths and colour schemes that are checked on each page.
const LOOKS: [(u32, bool); 4] = [(1280, false), (1280, true), (390, false), (390, true)];

/// Script that finds accessibility problems of a page.
const ACCESSIBLE: &str = include_str!("accessible.js");

/// A browser with one page. It ends when this value is dropped.
pub struct Browser {
    child: Child,
    asks: File,
    reported: BufReader<File>,
    number: u64,
    session: Option<String>,
    /// Errors that occurred in pages: failed scripts and violations of the content policy.
    pub amiss: Vec<String>,
    _home: TempDir,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser is closed with a command, because its child processes then exit, too. A
        // signal would leave them running.
        let close = json!({"id": 0, "method": "Browser.close"});
        let _ = self.asks.write_all(format!("{close}\0").as_bytes());
        let _ = self.child.wait();
    }
}

impl Browser {
    pub fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let [ask, reported] =
            ["ask", "told"].map(|name| home.path().join(name).display().to_string());
        tool("mkfifo", &[&ask, &reported]);
        let profile = home.path().join("profile");
        let start = "exec timeout --kill-after=5 240 chromium --headless=new --no-sandbox \
                     --disable-gpu --disable-dev-shm-usage --remote-debugging-pipe \
                     --user-data-dir=\"$0\" about:blank 3<\"$1\" 4>\"$2\"";
        let child = Command::new("sh")
            .args(["-c", start])
            .args([profile.to_str().unwrap(), &ask, &reported])
            .env("HOME", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The pipes are opened in the same order as in the shell, because each open waits for the
        // other end.
        let asks = File::options().write(true).open(ask).unwrap();
        let reported = BufReader::new(File::open(reported).unwrap());
        let (session, amiss) = (None, Vec::new());
        let mut browser = Self { child, asks, reported, number: 0, session, amiss, _home: home };
        let page = browser.tell("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": page["targetId"], "flatten": true});
        let attached = browser.tell("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.tell(domain, json!({}));
        }
        browser
    }

    /// Sends a command and waits for the response.
    #[track_caller]
    fn tell(&mut self, method: &str, params: Value) -> Value {
        let reported = self.ask(method, params);
        assert_eq!(reported["error"], Value::Null, "{method}: {reported:#}");
        reported["result"].clone()
    }

    /// Sends a command and waits for the response, which may be an error.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let mut ask = json!({"id": self.number, "method": method, "params": params});
        if let Some(session) = &self.session {
            ask["sessionId"] = json!(session);
        }
        self.asks.write_all(format!("{ask}\0").as_bytes()).unwrap();
        loop {
            let mut bytes = Vec::new();
            self.reported.read_until(0, &mut bytes).unwrap();
            assert_eq!(bytes.pop(), Some(0), "is chromium installed? it ended at {method}");
            let reported: Value = serde_json::from_slice(&bytes).unwrap();
            if reported["id"] == self.number {
                return reported;
            }
            let failed = match reported["method"].as_str() {
                Some("Runtime.exceptionThrown") => true,
                Some("Log.entryAdded") => reported["params"]["entry"]["level"] == "error",
                _ => false,
            };
            if failed {
                self.amiss.push(reported["params"].to_string());
            }
        }
    }

    /// Evaluates a script in the page.
    pub fn script(&mut self, script: &str) -> Value {
        let ask = json!({"expression": script, "awaitPromise": true, "returnByValue": true});
        let reported = self.tell("Runtime.evaluate", ask);
        assert_eq!(reported["exceptionDetails"], Value::Null, "{script}: {reported:#}");
        reported["result"]["value"].clone()
    }

    /// Waits until a condition is true in the page.
    #[track_caller]
    pub fn until(&mut self, what: &str) {
        let held = format!("document.readyState === 'complete' && Boolean({what})");
        let ask = json!({"expression": held, "returnByValue": true});
        // While a page is loading, the document or the element may be missing.
        let mut came =
            || self.ask("Runtime.evaluate", ask.clone())["result"]["result"]["value"] == true;
        let until = Instant::now() + Duration::from_secs(120);
        while !came() {
            if Instant::now() > until {
                let shown = self.script("location.href + '\\n' + document.body.innerText");
                panic!("{what} did not come about: {}", shown.as_str().unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Loads a page.
    pub fn load(&mut self, url: &str) {
        self.script("window.plimsollLeft = true");
        self.tell("Page.navigate", json!({"url": url}));
        self.until("!window.plimsollLeft");
    }

    /// Enters a value into a form field like a user.
    pub fn fill(&mut self, name: &str, value: &str) {
        let (name, value) = (json!(format!("[name=\"{name}\"]")), json!(value));
        self.script(&format!(
            "{{ const field = document.querySelector({name}); field.value = {value}; \
             field.dispatchEvent(new Event('input', {{ bubbles: true }})); }}"
        ));
    }

    /// Clicks an element.
    pub fn click(&mut self, selector: &str) {
        self.script(&format!("document.querySelector({}).click()", json!(selector)));
    }

    /// Returns the text of the page.
    pub fn text(&mut self) -> String {
        self.script("document.body.innerText").as_str().unwrap().to_owned()
    }

    /// Checks the page at phone and desktop width, in the light and the dark scheme: nothing
    /// overflows, every element has a name, and text has enough contrast. If `PLIMSOLL_SCREENSHOTS`
    /// is set, saves screenshots in that directory.
    pub fn look(&mut self, name: &str) {
        for (width, dark) in LOOKS {
            let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500});
            self.tell("Emulation.setDeviceMetricsOverride", metrics);
            let scheme = if dark { "dark" } else { "light" };
            let feature = json!([{"name": "prefers-color-scheme", "value": scheme}]);
            self.tell("Emulation.setEmulatedMedia", json!({"features": feature}));
            let widest = self.script("document.documentElement.scrollWidth").as_u64().unwrap();
            assert!(widest <= u64::from(width), "{name} is {widest} px wide on {width}");
            let barriers = self.script(ACCESSIBLE);
            let barriers = barriers.as_array().unwrap();
            assert!(barriers.is_empty(), "{name}, {width} px, {scheme}: {barriers:#?}");
            if let Some(directory) = std::env::var_os("PLIMSOLL_SCREENSHOTS") {
                let taken = json!({"captureBeyondViewport": true});
                let taken = self.tell("Page.captureScreenshot", taken);
                let path =
                    Path::new(&directory).join(format!("{name}-{width}-{scheme}.png.base64"));
                std::fs::write(path, taken["data"].as_str().unwrap()).unwrap();
            }
        }
    }
}
