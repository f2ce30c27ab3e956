//! Frame of every page.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use minijinja::value::Value;
use minijinja::{Environment, context};
use plimsoll_report::html;
use plimsoll_runner::allow::Allow;
use plimsoll_runner::places::Places;

use crate::ServeError;
use crate::access::AccessControl;
use crate::catalogue::CachedCatalogue;
use crate::fleet::Fleet;
use crate::live::Live;
use crate::reports::ReportCache;
use crate::request::PageRequest;
use crate::response::{PageResponse, Problem};
use crate::tokens::Role;

const TEMPLATES: [(&str, &str); 16] = [
    ("layout.html", include_str!("pages/layout.html")),
    ("rows.html", include_str!("pages/rows.html")),
    ("overview.html", include_str!("pages/overview.html")),
    ("overview_ended.html", include_str!("pages/overview_ended.html")),
    ("runs.html", include_str!("pages/runs.html")),
    ("run.html", include_str!("pages/run.html")),
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

/// Shared state of all pages.
pub struct Site {
    /// Authentication and roles.
    pub access: AccessControl,
    /// The runs.
    pub catalogue: Arc<CachedCatalogue>,
    /// The run of this server and its viewers.
    pub live: Live,
    /// Targets that the operator allows for plans.
    pub allow: Allow,
    /// The hosts of the fleet, if a fleet is configured.
    pub fleet: Option<Arc<Fleet>>,
    pub reports: ReportCache,
    /// Only one archive is packed at a time, because archives are in memory.
    pub packing_lock: Mutex<()>,
    /// Only one model runs at a time.
    pub modelling_lock: Mutex<()>,
    /// Directory in which archives are packed.
    pub cache: PathBuf,
    templates: Arc<Environment<'static>>,
}

impl Site {
    /// Creates a site with the templates of its pages.
    ///
    /// # Errors
    /// A template has a defect.
    pub fn new(
        access: AccessControl,
        catalogue: CachedCatalogue,
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
        let (reports, catalogue) = (ReportCache::default(), Arc::new(catalogue));
        let (packing_lock, modelling_lock) = (Mutex::default(), Mutex::default());
        let (templates, cache) = (Arc::new(templates), places.cache.clone());
        let live = Live::new(places, Arc::clone(&templates));
        Ok(Self {
            access,
            catalogue,
            live,
            allow,
            fleet,
            reports,
            packing_lock,
            modelling_lock,
            cache,
            templates,
        })
    }

    /// Returns the fleet, if plans may be started on its hosts.
    pub fn fleet_to_start(&self) -> Option<&Fleet> {
        self.fleet.as_deref().filter(|fleet| fleet.runner.is_some())
    }

    /// Renders a page. `within`: the menu entry to which the page belongs.
    ///
    /// # Errors
    /// The template has a defect.
    pub fn page(
        &self,
        template: &str,
        title: &str,
        within: &str,
        request: &PageRequest,
        values: Value,
    ) -> Result<PageResponse, Problem> {
        let context = context! {
            page_title => title,
            within => within,
            csrf => request.identity.csrf.as_str(),
            may_run => request.identity.role >= Role::Run,
            may_view => request.identity.role >= Role::View,
            has_session => request.identity.session.is_some(),
            team_says => self.catalogue.team().and_then(|team| team.status_message()),
            version => env!("CARGO_PKG_VERSION"),
            ..values
        };
        Ok(PageResponse::Html(self.templates.get_template(template)?.render(context)?))
    }

    /// Renders a part of a page that is the same for all clients.
    ///
    /// # Errors
    /// The template has a defect.
    pub fn part(&self, template: &str, values: Value) -> Result<String, Problem> {
        Ok(self.templates.get_template(template)?.render(values)?)
    }

    /// Renders the page for an error.
    pub fn problem(&self, problem: &Problem, request: &PageRequest) -> PageResponse {
        let title = problem.status.canonical_reason().unwrap_or("Problem");
        let values = context! {
            status => problem.status.as_u16(),
            says => problem.message.as_str(),
            hints => problem.hints.clone(),
        };
        let page = self.page("problem.html", title, "", request, values);
        page.unwrap_or_else(|_| {
            PageResponse::Text("text/plain; charset=utf-8", problem.message.clone())
        })
    }
}
