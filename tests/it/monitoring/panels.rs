//! How Grafana's dashboards in `deploy/grafana/dashboards` look.

use std::collections::BTreeSet;

use super::{dashboards, list, panels, text};

#[test]
fn panels_say_what_they_show_and_in_which_unit() {
    let mut uids = BTreeSet::new();
    for (file, dashboard) in dashboards() {
        assert!(
            uids.insert(text(&dashboard, "uid", &file).to_owned()),
            "{file}: a uid twice"
        );
        text(&dashboard, "description", &file);
        let mut ids = BTreeSet::new();
        for panel in panels(&dashboard) {
            let title = text(panel, "title", &file);
            assert!(
                ids.insert(panel["id"].as_u64()),
                "{file}, {title}: an id twice"
            );
            text(panel, "description", title);
            text(&panel["fieldConfig"]["defaults"], "unit", title);
            let targets = list(&panel["targets"]).iter();
            let named: BTreeSet<&str> =
                targets.map(|target| text(target, "refId", title)).collect();
            assert_eq!(
                named.len(),
                list(&panel["targets"]).len(),
                "{file}, {title}: a refId twice"
            );
            for source in list(&panel["targets"]).iter().chain([panel]) {
                let uid = &source["datasource"]["uid"];
                assert_eq!(
                    uid, "${datasource}",
                    "{file}, {title}: bound to one installation"
                );
            }
        }
    }
}

#[test]
fn panels_stand_side_by_side() {
    for (file, dashboard) in dashboards() {
        let mut taken = BTreeSet::new();
        for panel in list(&dashboard["panels"]) {
            let at = |key: &str| panel["gridPos"][key].as_u64().expect("a number");
            let (x, y, width, height) = (at("x"), at("y"), at("w"), at("h"));
            let title = text(panel, "title", &file);
            assert!(x + width <= 24, "{file}: {title} is out of the grid");
            for cell in (x..x + width).flat_map(|x| (y..y + height).map(move |y| (x, y))) {
                assert!(taken.insert(cell), "{file}: {title} covers another panel");
            }
        }
    }
}
