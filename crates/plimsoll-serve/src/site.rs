//! The frame around every page.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use minijinja::value::Value;
use minijinja::{Environment, context};
use plimsoll_report::html;
use plimsoll_runner::allow::Allow;
use plimsoll_runner::places::Places;

use crate::ServeError;
use crate::answer::{Answer, Problem};
use crate::ask::Ask;
use crate::fleet::Fleet;
use crate::gate::Gate;
use crate::known::Known;
use crate::live::Live;
use crate::shown::Drawn;
use crate::tokens::Role;

const TEMPLATES: [(&str, &str); 16] = [
    ("layout.html", include_str!("pages/layout.html")),
    ("rows.html", include_str!("pages/rows.html")),
    ("overview.html", include_str!("pages/overview.html")),
    ("overview_ended.html", include_str!("pages/overview_ended.html")),
    ("runs.html", include_str!("pages/runs.html")),
    ("one.html", include_str!("pages/one.html")),
    ("compare.html", include_str!("pages/compare.html")),
    ("audit.html", include_str!("pages/audit.html")),
    ("start.html", include_str!("pages/start.html")),
    ("live.html", include_str!("pages/live.html")),
    ("live_now.html", include_str!("pages/live_now.html")),
    ("live_more.html", include_str!("pages/live_more.html")),
    ("models.html", include_str!("pages/models.html")),
    ("model.html", include_str!("pages/model.html")),
    ("login.html", include_str!("pages/login.html")),
    ("problem.html", include_str!("pages/problem.html")),
];

/// What pages are made of.
pub struct Site {
    /// Who may ask.
    pub gate: Gate,
    /// The runs.
    pub known: Arc<Known>,
    /// The run that goes on.
    pub live: Live,
    /// What plans may be started on.
    pub allow: Allow,
    /// The hosts of a fleet, where one is named.
    pub fleet: Option<Arc<Fleet>>,
    /// Reports.
    pub drawn: Drawn,
    /// Archives are packed one at a time: each is held in memory.
    pub packing: Mutex<()>,
    /// Models are run one at a time.
    pub modelling: Mutex<()>,
    /// Where they are packed.
    pub cache: PathBuf,
    templates: Arc<Environment<'static>>,
}

impl Site {
    /// A site with its templates.
    ///
    /// # Errors
    /// A defect in one of these.
    pub fn new(
        gate: Gate,
        known: Known,
        places: Places,
        allow: Allow,
        fleet: Option<Arc<Fleet>>,
    ) -> Result<Self, ServeError> {
        let mut templates = html::environment();
        for (name, text) in TEMPLATES {
            templates
                .add_template(name, text)
                .map_err(|error| ServeError::Template(error.to_string()))?;
        }
        let (drawn, known) = (Drawn::default(), Arc::new(known));
        let (packing, modelling) = (Mutex::default(), Mutex::default());
        let (templates, cache) = (Arc::new(templates), places.cache.clone());
        let live = Live::new(places, Arc::clone(&templates));
        Ok(Self { gate, known, live, allow, fleet, drawn, packing, modelling, cache, templates })
    }

    /// A page. `within` is the entry of the menu that it belongs to.
    ///
    /// # Errors
    /// A defect in its template.
    pub fn page(
        &self,
        template: &str,
        title: &str,
        within: &str,
        ask: &Ask,
        values: Value,
    ) -> Result<Answer, Problem> {
        let context = context! {
            page_title => title,
            within => within,
            csrf => ask.who.csrf.as_str(),
            may_run => ask.who.role >= Role::Run,
            may_view => ask.who.role >= Role::View,
            has_session => ask.who.session.is_some(),
            team_says => self.known.team().and_then(|team| team.says()),
            version => env!("CARGO_PKG_VERSION"),
            ..values
        };
        Ok(Answer::Html(self.templates.get_template(template)?.render(context)?))
    }

    /// A part of a page, which is the same whoever asks.
    ///
    /// # Errors
    /// A defect in its template.
    pub fn part(&self, template: &str, values: Value) -> Result<String, Problem> {
        Ok(self.templates.get_template(template)?.render(values)?)
    }

    /// The page that says what went wrong.
    pub fn problem(&self, problem: &Problem, ask: &Ask) -> Answer {
        let title = problem.status.canonical_reason().unwrap_or("Problem");
        let values = context! {
            status => problem.status.as_u16(),
            says => problem.says.as_str(),
            hints => problem.hints.clone(),
        };
        let page = self.page("problem.html", title, "", ask, values);
        page.unwrap_or_else(|_| Answer::Text("text/plain; charset=utf-8", problem.says.clone()))
    }
}
